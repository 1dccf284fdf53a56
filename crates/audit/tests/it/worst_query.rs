//! A choice among queries by the exponential mechanism.

use super::*;
use reticent_audit::purchases::Purchase;
use reticent_mechanisms::primitives::{Row, Strategy, Weights, WorstQuery};

fn rows() -> Vec<Row> {
    let one = |range| Row::count(std::iter::once(range), 1);
    vec![one(0..1), Row::count([0..1, 2..3], 1), one(1..4), one(0..4)]
}

/// Four counting queries with guesses in quarters, some above and some below.
fn choice(rows: Vec<Row>) -> Audit {
    let step = WorstQuery {
        name: "worst".to_owned(),
        epsilon: ratio(1, 1),
        unit: 4,
    };
    let guesses = vec![10, 2, 0, -3];
    Audit::new(
        Universe::reals(0.0, 3.0, &[0.0, 1.0, 2.0, 3.0]),
        1,
        Purchases::one(
            grid(vec![axis(0, Cut::Whole(4))]),
            Purchase::WorstQuery(Strategy::new(4, rows), guesses, step),
        ),
        4,
    )
}

const SHARES: [(f64, f64); 2] = [
    (0.823_050_934, 0.663_061_746),
    (0.663_061_746, 0.823_050_934),
];

#[test]
fn enumerated() {
    choice(rows()).check(SHARES);
}

/// The noise of a choice is its rate.
#[test]
fn canary() {
    choice(rows()).canary([SHARES[0].0, SHARES[1].0]);
}

#[test]
fn only_counts_are_chosen_from() {
    let weight = |w| {
        let mut all = rows();
        all[2].weights = Weights::Ranges(vec![(1..4, w)]);
        all
    };
    let mut twice = rows();
    twice[1].weights = Weights::Ranges(vec![(0..2, 1), (1..3, 1)]);
    for bad in [weight(2), weight(-1), twice, rows()[..3].to_vec()] {
        let audit = choice(bad);
        for relation in RELATIONS {
            let outcome = audit.with(relation, |case| case.losses(&audit.tables));
            assert!(outcome.is_err(), "{outcome:?}");
        }
    }
}
