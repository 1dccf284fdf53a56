//! Selection: neighbour tests by enumeration of the shipped code, golden instance 4 of `decisions.md` §4, canaries; what selection,
//! threshold tests, bins and items share.

use std::collections::BTreeMap;

use super::joint::joint_step;
use super::merged_bins::bins_step;
use super::threshold_tests::{MIXED, tests_step};
use super::*;
use reticent_accounting::Both;
use reticent_audit::neighbours::{FLOOR, TAIL};
use reticent_audit::purchases::Purchase;
use reticent_audit::tables::{id, real};
use reticent_laws::{Distribution, Seeded, Window, enumerate};
use reticent_mechanisms::primitives::{Change, Rule, Selection, Sides, ThresholdTests};
use reticent_mechanisms::rows::Schema;
use reticent_noise::{Lattice, Noise, Scale};

pub(crate) type Ranges = Vec<std::ops::Range<usize>>;

/// Records in one of `n` cells.
pub(crate) fn cells(n: u32, purchase: Purchase, most: u32) -> Audit {
    let values: Vec<f64> = (0..n).map(f64::from).collect();
    Audit::new(
        Universe::reals(0.0, f64::from(n), &values),
        1,
        Purchases::one(grid(vec![axis(0, Cut::Whole(n))]), purchase),
        most,
    )
}

/// Records with some of `n` items, at most `most` of which count, and a label.
pub(crate) fn items(
    n: u32,
    most: u32,
    records: &[&[f64]],
    purchase: Purchase,
    units: u32,
) -> Audit {
    let columns = (0..=n).map(|i| real(&format!("i{i}"), 0.0, 1.0)).collect();
    let fold = Fold::Items {
        items: 0..n as usize,
        most,
        class: Some(axis(n as usize, Cut::Whole(2))),
    };
    Audit::new(
        Universe::rows(
            Schema { columns },
            records.iter().map(|r| r.to_vec()).collect(),
        ),
        n as usize + 1,
        Purchases::one(fold, purchase),
        units,
    )
}

pub(crate) fn select(
    epsilon: Rational,
    picks: u32,
    rule: Rule,
    candidates: Option<Ranges>,
) -> Purchase {
    let step = Selection {
        name: "select".to_owned(),
        epsilon,
        picks,
        rule,
    };
    Purchase::Select(candidates, step)
}

/// The law of the answer on one table.
pub(crate) fn law(audit: &Audit, relation: Relation, table: &Multiset) -> Distribution<String> {
    let source = audit.universe.source(table);
    let law = audit.with(relation, |case| {
        enumerate(Window::Tail(TAIL), |noise| {
            case.run(&source, noise).unwrap().0[0].to_string()
        })
    });
    assert_eq!(law.problem(), None);
    law
}

pub(crate) fn close(found: f64, wanted: f64, tolerance: f64) {
    assert!(
        (found - wanted).abs() < tolerance,
        "found {found}, wanted {wanted}"
    );
}

/// Overlapping ranges of three cells: a record may be in several candidates.
fn overlapping() -> Ranges {
    vec![0..1, 0..2, 1..3, 2..3]
}

fn exponential(epsilon: Rational, picks: u32, candidates: Option<Ranges>) -> Audit {
    cells(3, select(epsilon, picks, Rule::Exponential, candidates), 4)
}

#[test]
fn exponential_enumerated() {
    exponential(ratio(1, 1), 1, None).check([
        (0.941_053_343, 0.933_065_140),
        (0.775_175_982, 0.809_224_703),
    ]);
    exponential(ratio(2, 1), 1, Some(overlapping())).check([
        (0.998_929_861, 0.995_546_370),
        (0.945_610_958, 0.969_562_576),
    ]);
    exponential(ratio(2, 1), 2, Some(overlapping())).check([
        (0.977_044_990, 0.958_715_391),
        (0.855_147_598, 0.885_222_224),
    ]);
}

/// The largest of max − min of ln(P/P′) over pairs of neighbours.
fn loss_range(audit: &Audit, calibrated: Relation, relation: Relation) -> f64 {
    let laws: Vec<_> = audit
        .tables
        .iter()
        .map(|t| law(audit, calibrated, t))
        .collect();
    let mut worst: f64 = 0.0;
    for (i, j) in reticent_audit::tables::neighbours(&audit.tables, relation) {
        let losses: Vec<f64> = laws[i]
            .iter()
            .filter(|(_, p)| *p > FLOOR)
            .map(|(o, p)| (p / laws[j].mass(o)).ln())
            .collect();
        let top = losses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let low = losses.iter().copied().fold(f64::INFINITY, f64::min);
        worst = worst.max(top - low);
    }
    worst
}

/// What the ε²/8 price of zCDP rests on: one exponential pick's loss has range at most its ε (row 29 of the lessons:
/// permute-and-flip's has not, and is priced at ε²/2).
#[test]
fn only_the_exponential_mechanism_is_of_bounded_range() {
    for calibrated in RELATIONS {
        let em = exponential(ratio(2, 1), 1, Some(overlapping()));
        let pf = cells(
            3,
            select(ratio(2, 1), 1, Rule::PermuteAndFlip, Some(overlapping())),
            4,
        );
        for (i, relation) in RELATIONS.into_iter().enumerate() {
            let range = loss_range(&em, calibrated, relation);
            assert!(range <= em.price(calibrated)[i] * (1.0 + 1e-9), "{range}");
        }
        let range = loss_range(&pf, calibrated, calibrated);
        assert!(range > 2.0 * 1.2, "{calibrated} {range}");
        for (audit, divisor) in [(em, 8.0), (pf, 2.0)] {
            let event = audit.mechanism.event(&audit.context(calibrated)).unwrap();
            let price = event.price(Currency::Concentrated).unwrap();
            let rho = &price.under(calibrated).unwrap().amount;
            close(rho.to_f64().value(), 4.0 / divisor, 1e-12);
        }
    }
}

#[test]
fn permute_and_flip_enumerated() {
    let audit = |e, k, c| cells(3, select(e, k, Rule::PermuteAndFlip, c), 4);
    audit(ratio(1, 1), 1, None).check([(1.0, 0.994_694_493), (0.968_873_020, 1.0)]);
    audit(ratio(2, 1), 1, Some(overlapping())).check([
        (0.999_731_995, 0.998_873_611),
        (0.985_084_997, 0.992_064_548),
    ]);
    audit(ratio(2, 1), 2, Some(overlapping())).check([
        (0.996_032_274, 0.992_542_498),
        (0.968_970_862, 0.977_020_652),
    ]);
}

/// Instance 4: scores (0,0,3,3) and (1,0,4,4), exponent 1.
#[test]
fn golden_permute_and_flip() {
    let purchase = || select(ratio(1, 1), 1, Rule::PermuteAndFlip, None);
    let records: [&[f64]; 2] = [&[0.0, 0.0, 1.0, 1.0, 0.0], &[1.0, 0.0, 1.0, 1.0, 1.0]];
    let audit = items(4, 4, &records, purchase(), 0);
    let before = law(&audit, Relation::AddRemove, &vec![3, 0]);
    let after = law(&audit, Relation::AddRemove, &vec![3, 1]);
    let second = "[[1]]".to_owned();
    close(before.mass(&second), 0.016_389_126_8, 1e-10);
    close(after.mass(&second), 0.006_029_222_8, 1e-10);
    close(before.worst_loss(&after, FLOOR), 1.0, 1e-9);
    // replaced by its opposite, worst case
    let all: Vec<Vec<f64>> = (0..8u32)
        .map(|b| [0, 1, 2].map(|i| f64::from(b >> i & 1)).to_vec())
        .map(|mut r| {
            r.push(0.0);
            r
        })
        .collect();
    let records: Vec<&[f64]> = all.iter().map(Vec::as_slice).collect();
    let losses = items(3, 3, &records, purchase(), 4).losses(Relation::AddRemove);
    close(losses.add_remove.loss, 1.0, 1e-9);
    close(losses.replace_one.loss, 2.0, 1e-9);
}

fn noisy_max(epsilon: Rational, picks: u32, sides: Sides, gaps: bool) -> Audit {
    let rule = Rule::NoisyMax { sides, gaps };
    // the first two ranges share a cell: ties, and moves of several candidates at once
    cells(
        3,
        select(epsilon, picks, rule, Some(vec![0..2, 1..2, 1..3])),
        2,
    )
}

#[test]
fn noisy_max_enumerated() {
    noisy_max(ratio(3, 1), 1, Sides::One, false)
        .check([(1.0, 0.999_626_479), (0.989_622_494, 1.0)]);
    noisy_max(ratio(8, 1), 1, Sides::Both, false).check([
        (0.999_979_042, 0.974_651_449),
        (0.948_584_564, 0.997_763_268),
    ]);
    noisy_max(ratio(3, 1), 1, Sides::One, true).check([(1.0, 0.999_626_479), (0.989_622_494, 1.0)]);
    noisy_max(ratio(8, 1), 1, Sides::Both, true)
        .check([(1.0, 0.974_661_926), (0.949_709_810, 1.0)]);
}

/// Why the gap is what the winner needed and not its lead in noisy score: with ties to the first, the lead of a
/// winner after the runner-up in order is not free.
#[test]
fn the_plain_lead_of_a_tied_winner_is_not_free() {
    let lead = |scores: [i128; 3], noise: &mut dyn Noise| {
        let law = Lattice::Geometric(Scale::at_least(&ratio(1, 3)).unwrap());
        let noisy = scores.map(|s| s + noise.lattice(&law));
        let top = *noisy.iter().max().unwrap();
        let winner = noisy.iter().position(|x| *x == top).unwrap();
        let rest = (0..3).filter(|j| *j != winner).map(|j| noisy[j]).max();
        (winner, top - rest.unwrap())
    };
    let law = |s| enumerate(Window::Tail(TAIL), |noise| lead(s, noise));
    let loss = law([0, 0, 0]).worst_loss(&law([1, 0, 0]), FLOOR);
    // twice the price of 3, less a little for three candidates
    assert!(loss > 3.9, "{loss}");
}

/// Items of which a record has several, by all three rules, with units of two rows.
#[test]
fn items_enumerated() {
    let records: [&[f64]; 3] = [
        &[1.0, 1.0, 1.0, 0.0],
        &[0.0, 1.0, 1.0, 1.0],
        &[1.0, 0.0, 0.0, 1.0],
    ];
    let noisy = Rule::NoisyMax {
        sides: Sides::Both,
        gaps: false,
    };
    for (rule, shares) in [
        (
            Rule::Exponential,
            [
                (0.999_958_839, 0.998_860_866),
                (0.983_940_528, 0.996_061_234),
            ],
        ),
        (Rule::PermuteAndFlip, [(1.0, 1.0), (1.0, 1.0)]),
        (
            noisy,
            [
                (0.999_999_973, 0.999_958_869),
                (0.996_187_558, 0.999_877_941),
            ],
        ),
    ] {
        items(3, 2, &records, select(ratio(4, 1), 1, rule, None), 3).check(shares);
    }
    let schema = Schema {
        columns: vec![id("who"), real("x", 0.0, 3.0)],
    };
    let row = |x: f64| vec![0.0, x];
    let units = vec![
        vec![row(0.5)],
        vec![row(0.5), row(0.5)],
        vec![row(1.5), row(1.5), row(0.5)],
    ];
    for rule in [Rule::Exponential, Rule::PermuteAndFlip] {
        let mut audit = Audit::new(
            Universe::new(schema.clone(), units.clone()),
            1,
            Purchases::one(
                grid(vec![axis(0, Cut::Edges(vec![0.0, 1.0, 2.0, 3.0]))]),
                select(ratio(4, 1), 1, rule, None),
            ),
            2,
        );
        audit.program.terms = vec![Expr::Column(1)];
        audit.unit = Unit::Column {
            column: 0,
            max_rows: 2,
        };
        audit.rows_per_unit = 2;
        for share in audit.shares() {
            assert!(share.0 > 0.5, "{rule:?} {share:?}");
        }
    }
}

#[test]
fn selection_canaries() {
    exponential(ratio(2, 1), 1, Some(overlapping())).canary([0.998_929_861, 0.945_610_958]);
    cells(
        3,
        select(ratio(2, 1), 1, Rule::PermuteAndFlip, Some(overlapping())),
        4,
    )
    .canary([0.999_731_995, 0.985_084_997]);
    noisy_max(ratio(3, 1), 1, Sides::One, true).canary([1.0, 0.989_622_494]);
    noisy_max(ratio(8, 1), 1, Sides::Both, true).canary([1.0, 0.949_709_810]);
}

/// One-shot Gumbel noise of scale k/ε in floating point against the enumerated law of peeling: 12 sequences,
/// 200,000 draws, 7 standard errors each: false alarm below 1e-10; a rate 5 % off moves the likeliest by 12 errors.
#[test]
fn gumbel_has_the_law_of_peeling() {
    let audit = cells(4, select(ratio(2, 1), 2, Rule::Exponential, None), 0);
    let scores = [3.0, 2.0, 2.0, 0.0];
    let peeling = law(&audit, Relation::AddRemove, &vec![3, 2, 2, 0]);
    let n = 200_000;
    let sequences = |rate: f64| {
        let mut noise = Seeded::new(77);
        let mut counts = BTreeMap::new();
        for _ in 0..n {
            let noisy = scores.map(|s| {
                #[allow(clippy::cast_precision_loss, reason = "53 bits")]
                let u = ((noise.bits() >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0;
                rate * s - (-u.ln()).ln()
            });
            let mut order = [0, 1, 2, 3];
            order.sort_by(|a, b| noisy[*b].total_cmp(&noisy[*a]));
            *counts
                .entry(format!("[[{}],[{}]]", order[0], order[1]))
                .or_insert(0.0) += 1.0;
        }
        let worst = peeling.iter().map(|(o, p)| {
            let f = counts.get(o).copied().unwrap_or(0.0) / f64::from(n);
            (f - p).abs() / (p * (1.0 - p) / f64::from(n)).sqrt()
        });
        worst.fold(0.0, f64::max)
    };
    assert_eq!(peeling.len(), 12);
    assert!(sequences(1.0) < 7.0, "{}", sequences(1.0));
    assert!(sequences(1.05) > 7.0);
}

/// Every step's leaves add up to its ε, in every currency that can pay, for both relations.
#[test]
fn steps_cost_their_epsilon() {
    let e = ratio(1, 3);
    let noisy = Rule::NoisyMax {
        sides: Sides::One,
        gaps: true,
    };
    for relation in RELATIONS {
        let context = Context::records(relation);
        let mut events = vec![
            joint_step(e.clone(), 3, 5).event(&context),
            bins_step(e.clone(), 5, Sides::One).event(&context),
            tests_step(e.clone(), 3, MIXED, Sides::One).event(&context),
            ThresholdTests {
                values: Some(ratio(1, 6)),
                custom: None,
                ..tests_step(ratio(1, 6), 3, Change::COUNT, Sides::Both)
            }
            .event(&context),
        ];
        for rule in [Rule::Exponential, Rule::PermuteAndFlip, noisy] {
            let Purchase::Select(_, step) = select(e.clone(), 7, rule, None) else {
                unreachable!()
            };
            events.push(step.event(&context));
        }
        for event in events {
            let price = event.price(Currency::Pure).unwrap();
            assert_eq!(price.under(relation).unwrap().amount, e, "{event:?}");
            let other = price.under(Relation::AddRemove).unwrap();
            assert!(other.amount <= e);
            let twice = Both::doubled(&e).replace_one.unwrap();
            assert!(price.under(Relation::ReplaceOne).unwrap().amount <= twice);
        }
    }
}
