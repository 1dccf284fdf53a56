//! DAWA's first stage: enumeration, the golden line of three cells, a canary, and the unsound variants.

use super::*;
use reticent_audit::broken_partition::{self, Constants, clamped_partition_loss};
use reticent_audit::neighbours::losses;
use reticent_audit::purchases::Purchase;
use reticent_laws::{Law, Window, enumerate};
use reticent_mechanisms::primitives::Partition;
use reticent_noise::{Lattice, Scale};

fn step(epsilon: Rational, penalty: Rational) -> Partition {
    Partition {
        name: "partition".to_owned(),
        epsilon,
        penalty,
        longest: 1 << 20,
        order: None,
    }
}

fn line(cells: u32, step: Partition, most: u32) -> Audit {
    let values: Vec<f64> = (0..cells).map(f64::from).collect();
    Audit::new(
        Universe::reals(0.0, f64::from(cells), &values),
        1,
        Purchases::one(
            grid(vec![axis(0, Cut::Whole(cells))]),
            Purchase::Partition(step),
        ),
        most,
    )
}

/// Two cells, one pair.
fn two() -> Audit {
    line(2, step(ratio(4, 1), ratio(1, 2)), 4)
}

#[test]
fn enumerated() {
    two().check([R_TWO.0, R_TWO.1]);
}

#[test]
fn canary() {
    two().canary([R_TWO.0.0, R_TWO.1.0]);
}

const R_TWO: ((f64, f64), (f64, f64)) = (
    (0.499_728_025, 0.499_056_243),
    (0.479_699_182, 0.487_663_060),
);

/// P(1|2|3), P(12|3), P(1|23) for integer noise of two scales, by sums: a second derivation that shares nothing with the code.
/// Ties go to the first of them.
fn three(x: [i128; 3], single: f64, pair: f64, penalty: i128) -> [f64; 3] {
    let scale = |s: f64| {
        #[allow(clippy::cast_possible_truncation, reason = "small")]
        Lattice::Laplace(Scale::at_least(&ratio((s * 1_000_000.0) as i64, 1_000_000)).unwrap())
    };
    let (one, two) = (scale(single), scale(pair));
    let reach = one.radius(1e-15);
    let (d12, d23) = ((x[0] - x[1]).abs(), (x[1] - x[2]).abs());
    let mut p = [0.0; 3];
    let singles: Vec<(i128, f64)> = (-reach..=reach).map(|z| (z, one.mass(z))).collect();
    // 1|2|3 beats 12|3 iff Z12 ≥ Z1 + Z2 + p − d12, and 1|23 iff Z23 ≥ Z2 + Z3 + p − d23
    for (z2, m2) in &singles {
        let side = |d: i128| -> f64 {
            singles
                .iter()
                .map(|(z, m)| m * two.upper_tail(z + z2 + penalty - d))
                .sum()
        };
        p[0] += m2 * side(d12) * side(d23);
    }
    // 12|3 wins iff Z12 < Z1 + Z2 + p − d12 and Z12 + Z3 + d12 ≤ Z23 + Z1 + d23
    let far = two.radius(1e-15);
    for (z1, m1) in &singles {
        for (z3, m3) in &singles {
            for z12 in -far..=far {
                let beats_singles = one.upper_tail(z12 - z1 - penalty + d12 + 1);
                let beats_other = two.upper_tail(z12 + z3 + d12 - z1 - d23);
                p[1] += m1 * m3 * two.mass(z12) * beats_singles * beats_other;
            }
        }
    }
    p[2] = 1.0 - p[0] - p[1];
    p
}

/// The sums agree with the shipped code, enumerated, at a scale where its draws are few.
#[test]
fn sums_agree_with_the_code() {
    let audit = line(3, step(ratio(16, 1), ratio(1, 1)), 0);
    for table in [[2, 2, 2], [2, 3, 2], [0, 1, 1]] {
        let source = audit.universe.source(&table.to_vec());
        let law = audit.with(Relation::AddRemove, |case| {
            enumerate(Window::Tail(1e-12), |noise| {
                case.run(&source, noise).unwrap().0.to_string()
            })
        });
        let found = ["[[1,2,3]]", "[[2,3]]", "[[1,3]]"].map(|o| law.mass(&o.to_owned()));
        let wanted = three(table.map(i128::from), 1.0 / 16.0, 2.0 / 16.0, 1);
        for (f, w) in found.iter().zip(wanted) {
            assert!((f - w).abs() < 1e-9, "{table:?} {found:?} {wanted:?}");
        }
    }
}

/// `decisions.md` §4, instance 9.
#[test]
fn golden_line() {
    for (x, wanted) in [
        ([2, 2, 2], [0.211_875_0, 0.426_091_8, 0.362_033_2]),
        ([2, 3, 2], [0.358_674_1, 0.341_209_9, 0.300_116_0]),
    ] {
        let found = three(x, 1.0, 2.0, 1);
        for (f, w) in found.iter().zip(wanted) {
            assert!((f - w).abs() < 1e-6, "{found:?}");
        }
    }
    // the shipped scales are these
    let (worst, pair) = worst_of_three(4, 1.0, 2.0);
    assert!((worst[0] - 0.671_613_5).abs() < 1e-6, "{worst:?} {pair:?}");
    assert!((worst[1] - 1.116_164_9).abs() < 1e-6, "{worst:?}");
    // all noised at half the scale
    let (worst, _) = worst_of_three(4, 0.5, 1.0);
    assert!((worst[0] - 1.488_182_4).abs() < 1e-6, "{worst:?}");
}

/// Worst losses over {0..most}³, and the add/remove pair that attains it. Probabilities depend on the two differences only.
fn worst_of_three(most: i128, single: f64, pair: f64) -> ([f64; 2], [i128; 3]) {
    let mut known = std::collections::BTreeMap::new();
    let mut law = |x: [i128; 3]| {
        let key = ((x[0] - x[1]).abs(), (x[1] - x[2]).abs());
        *known
            .entry(key)
            .or_insert_with(|| three(x, single, pair, 1))
    };
    let mut worst = [0.0f64; 2];
    let mut at = [0; 3];
    let range = || 0..=most;
    for a in range() {
        for b in range() {
            for c in range() {
                let p = law([a, b, c]);
                for i in 0..3 {
                    let mut more = [a, b, c];
                    more[i] += 1;
                    if more[i] > most {
                        continue;
                    }
                    let loss = |q: [f64; 3]| {
                        p.iter()
                            .zip(q)
                            .map(|(p, q)| (p / q).ln().abs())
                            .fold(0.0, f64::max)
                    };
                    let added = loss(law(more));
                    if added > worst[0] {
                        (worst[0], at) = (added, [a, b, c]);
                    }
                    for j in (0..3).filter(|j| *j != i && more[*j] > 0) {
                        let mut moved = more;
                        moved[j] -= 1;
                        worst[1] = worst[1].max(loss(law(moved)));
                    }
                }
            }
        }
    }
    (worst, at)
}

/// Un-noised singletons, half the scale, clamped costs.
#[test]
fn broken_variants_are_flagged() {
    let universe = Universe::reals(0.0, 2.0, &[0.0, 1.0, 2.0]);
    let tables: Vec<Multiset> = universe
        .tables(9)
        .into_iter()
        .filter(|t| t.iter().all(|c| (1..=3).contains(c)))
        .collect();
    let run = |constants: Constants| {
        losses(&tables, move |t, noise| {
            let cells: Vec<i128> = t.iter().map(|c| i128::from(*c)).collect();
            broken_partition::partition(&cells, &constants, noise).unwrap()
        })
        .unwrap()
        .add_remove
        .loss
    };
    // singletons without noise, pairs at scale 1: two pairs move at once
    let loss = run(Constants {
        single: Rational::ZERO,
        pair: ratio(1, 1),
        penalty: 1,
        clamp: false,
    });
    assert!((loss - 2.0).abs() < 1e-6, "{loss}");
    // ε = 16: scales 1/16 and 2/16 keep the claim, half of them do not
    let at = |n: i64, d: u64| Constants {
        single: ratio(n, d),
        pair: ratio(2 * n, d),
        penalty: 1,
        clamp: false,
    };
    let (intact, half) = (run(at(1, 16)), run(at(1, 32)));
    assert!(intact <= 16.0 && half > 16.0, "{intact} {half}");
    // clamping: the longer the line, the worse
    for (cells, wanted) in [(4, 0.875), (8, 2.4375), (16, 5.968_75), (32, 13.484_375)] {
        let loss = clamped_partition_loss(cells, 4.0);
        assert!((loss - wanted).abs() < 1e-12, "{cells}: {loss}");
    }
}

/// `golden/l1_partition.json` (exhaustive search): with noise off the shipped partition has the least cost among lengths 2^k.
#[test]
fn reference_costs() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../golden/l1_partition.json"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let golden: serde_json::Value = serde_json::from_str(&text).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let x: Vec<u32> = case["x"]
            .as_array()
            .unwrap()
            .iter()
            .map(|v| u32::try_from(v.as_u64().unwrap()).unwrap())
            .collect();
        let penalty = case["penalty_per_bucket"].as_f64().unwrap();
        let rational = reticent_accounting::rational_from_f64(penalty).unwrap();
        let audit = line(
            u32::try_from(x.len()).unwrap(),
            step(ratio(1, 1), rational),
            0,
        );
        let (value, _) = audit
            .with(Relation::AddRemove, |case| {
                case.run(&audit.universe.source(&x), &mut reticent_laws::Silent)
            })
            .unwrap();
        let (mut start, mut cost) = (0, 0.0);
        for end in reticent_audit::neighbours::numbers(&value) {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "small"
            )]
            let end = end as usize;
            let bucket = &x[start..end];
            #[allow(clippy::cast_precision_loss, reason = "small")]
            let mean = f64::from(bucket.iter().sum::<u32>()) / bucket.len() as f64;
            cost += penalty
                + bucket
                    .iter()
                    .map(|v| (f64::from(*v) - mean).abs())
                    .sum::<f64>();
            start = end;
        }
        assert_eq!(start, x.len());
        let wanted = case["power_of_two_lengths"]["cost"].as_f64().unwrap();
        assert!((cost - wanted).abs() < 1e-9, "{case}: {cost}");
    }
}
