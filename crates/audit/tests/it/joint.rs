//! The joint exponential mechanism: golden instance 3 of `decisions.md` §4, worst losses, canary.

use super::*;
use reticent_audit::neighbours::FLOOR;
use reticent_audit::purchases::Purchase;
use reticent_laws::Seeded;
use reticent_mechanisms::primitives::JointSelection;

use super::selection::*;

pub(crate) fn joint_step(epsilon: Rational, picks: u32, cap: u32) -> JointSelection {
    JointSelection {
        name: "joint".to_owned(),
        epsilon,
        picks,
        cap,
    }
}

/// `n` items, a record with exactly one of them: a multiset is a vector of counts.
fn joint(n: u32, step: JointSelection) -> Audit {
    let records: Vec<Vec<f64>> = (0..n)
        .map(|i| (0..=n).map(|j| f64::from(u8::from(i == j))).collect())
        .collect();
    let records: Vec<&[f64]> = records.iter().map(Vec::as_slice).collect();
    items(n, 1, &records, Purchase::Jointly(None, step), 0)
}

/// Instance 3, first part, and every sequence against the formula.
#[test]
fn golden_joint() {
    let audit = joint(4, joint_step(ratio(1, 1), 2, 40));
    let found = law(&audit, Relation::AddRemove, &vec![3, 2, 2, 0]);
    for (sequences, wanted) in [
        (&["[0,1]", "[0,2]"][..], 0.161_312),
        (&["[1,0]", "[1,2]", "[2,0]", "[2,1]"], 0.097_841),
        (&["[0,3]", "[1,3]", "[2,3]"], 0.059_344),
        (&["[3,0]", "[3,1]", "[3,2]"], 0.035_994),
    ] {
        for s in sequences {
            close(found.mass(&(*s).to_owned()), wanted, 5e-7);
        }
    }
    assert_eq!(found.len(), 12);
}

fn joint_loss(counts: &[i64], sequence: &[usize], cap: i64) -> i64 {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable_by_key(|c| -c);
    let loss = |(i, s): (usize, &usize)| sorted[i] - counts[*s];
    sequence
        .iter()
        .enumerate()
        .map(loss)
        .max()
        .unwrap()
        .min(cap)
}

/// Sequences of three of five against e^{−r·loss}, ties and a cap that bites included.
#[test]
fn joint_counts_sequences() {
    for (counts, cap) in [
        ([4, 4, 4, 4, 4], 9),
        ([9, 5, 4, 2, 0], 40),
        ([9, 5, 4, 2, 0], 3),
        ([0, 7, 7, 1, 6], 0),
        ([0, 0, 3, 3, 3], 2),
    ] {
        let audit = joint(5, joint_step(ratio(3, 1), 3, cap));
        for (relation, rate) in RELATIONS.into_iter().zip([1.5, 0.75]) {
            let found = law(
                &audit,
                relation,
                &counts.map(|c: i64| u32::try_from(c).unwrap()).to_vec(),
            );
            let mut weights = Vec::new();
            for a in 0..5 {
                for b in (0..5).filter(|b| *b != a) {
                    for c in (0..5).filter(|c| *c != a && *c != b) {
                        let l = joint_loss(&counts, &[a, b, c], i64::from(cap));
                        #[allow(clippy::cast_precision_loss, reason = "small")]
                        weights.push((format!("[{a},{b},{c}]"), (-rate * l as f64).exp()));
                    }
                }
            }
            let total: f64 = weights.iter().map(|w| w.1).sum();
            assert_eq!(found.len(), 60);
            for (s, w) in weights {
                close(found.mass(&s), w / total, 1e-11);
            }
        }
    }
}

/// The worst loss over count vectors within 0..=2 (or what they become) of four items when any set of items moves together.
fn joint_worst(step: &JointSelection, calibrated: Relation) -> (f64, f64) {
    let audit = joint(4, step.clone());
    // one higher, so that counts can fall below 0: only differences matter
    let digits = |code: usize, base: usize| -> Vec<usize> {
        (0..4).map(|i| code / base.pow(i) % base).collect()
    };
    let laws: Vec<_> = (0..625)
        .map(|code| {
            let counts = digits(code, 5);
            #[allow(clippy::cast_possible_truncation, reason = "small")]
            let table = counts.iter().map(|c| *c as u32).collect();
            law(&audit, calibrated, &table)
        })
        .collect();
    let at = |counts: &[usize]| counts.iter().rev().fold(0, |c, d| c * 5 + d);
    let (mut added, mut replaced) = (0.0_f64, 0.0_f64);
    for code in 0..81 {
        let from: Vec<usize> = digits(code, 3).iter().map(|c| c + 1).collect();
        for moves in (0..81).map(|code| digits(code, 3)) {
            let to: Vec<usize> = from.iter().zip(&moves).map(|(c, m)| c + m - 1).collect();
            let loss = laws[at(&from)].worst_loss(&laws[at(&to)], FLOOR);
            replaced = replaced.max(loss);
            if moves.iter().all(|m| *m >= 1) {
                added = added.max(loss);
            }
        }
    }
    (added, replaced)
}

/// Instance 3: worst cases; exponent ½ and ¼, and the bound approached as the number of items grows.
#[test]
fn joint_enumerated() {
    let step = joint_step(ratio(1, 1), 2, 30);
    let (added, replaced) = joint_worst(&step, Relation::AddRemove);
    close(added, 0.652_331_6, 1e-7);
    close(replaced, 1.262_740_5, 1e-7);
    let (added, replaced) = joint_worst(&step, Relation::ReplaceOne);
    assert!(added <= 0.5);
    // printed as .6306315; the sequences' law is checked to 1e-11 below
    close(replaced, 0.630_631_98, 1e-7);
    for (n, wanted) in [(10, 0.909_057_8), (100, 0.989_155_8)] {
        let audit = joint(n + 2, joint_step(ratio(1, 1), 2, 60));
        let counts = |more: u32| {
            let mut c = vec![9; n as usize + 2];
            c[0] = 10 + more;
            c[n as usize + 1] = more;
            law(&audit, Relation::AddRemove, &c)
        };
        close(counts(0).worst_loss(&counts(1), FLOOR), wanted, 1e-7);
    }
}

/// Whole weights have no scale to cut; instead ε is raised by 1/(.95 r): the loss then exceeds the price.
#[test]
fn joint_canary() {
    for (relation, share) in RELATIONS.into_iter().zip([0.652_331_6, 0.630_631_5]) {
        #[allow(clippy::cast_possible_truncation, reason = "small")]
        let raised = ratio((1e6 / (0.95 * share)) as i64, 1_000_000);
        let (added, replaced) = joint_worst(&joint_step(raised, 2, 30), relation);
        let own = match relation {
            Relation::AddRemove => added,
            Relation::ReplaceOne => replaced,
        };
        assert!(own > 1.0, "{relation} {own}");
    }
}

/// A cap too far for the budget is refused from public numbers; one item, no record, huge and tiny budgets are served.
#[test]
fn joint_is_total() {
    let run = |n: u32, step: JointSelection, counts: Vec<u32>| {
        let audit = joint(n, step);
        let source = audit.universe.source(&counts);
        audit.with(Relation::AddRemove, |case| {
            case.run(&source, &mut Seeded::new(3))
                .map(|(v, _)| v[0].clone())
        })
    };
    assert!(run(2, joint_step(ratio(9, 1), 1, u32::MAX), vec![1, 1]).is_err());
    assert!(run(2, joint_step(ratio(0, 1), 1, 5), vec![1, 1]).is_err());
    assert_eq!(
        run(1, joint_step(ratio(1, 1), 3, 5), vec![7]).unwrap(),
        serde_json::json!([0])
    );
    for e in [ratio(1, 1_000_000_000), ratio(1_000_000_000, 1)] {
        let found = run(3, joint_step(e, 2, 20), vec![0, 0, 9]).unwrap();
        assert_eq!(found.as_array().unwrap().len(), 2);
    }
    assert_eq!(
        run(3, joint_step(ratio(1_000_000_000, 1), 2, 20), vec![0, 8, 9]).unwrap(),
        serde_json::json!([2, 1])
    );
}
