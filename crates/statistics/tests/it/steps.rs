//! What composites of one primitive buy, to the last bit: how their ε is divided, and in which words.

use reticent_accounting::{Both, Event, Rational, Relation, share, split};
use reticent_mechanisms::Context;
use reticent_mechanisms::primitives::Draw;
use reticent_statistics::bisect::{Medians, Quantiles};
use reticent_statistics::range::{Range, RangeScales};

const RELATIONS: [Relation; 2] = [Relation::AddRemove, Relation::ReplaceOne];

fn ratio(n: u32, d: u32) -> Rational {
    Rational::from(n) / Rational::from(d)
}

fn both(add_remove: Rational, replace_one: Rational) -> Both {
    Both {
        add_remove: Some(add_remove),
        replace_one: Some(replace_one),
    }
}

/// Each level takes its part of what is left; equal parts would differ in the last bits.
#[test]
fn medians_take_parts_of_the_rest() {
    let step = Medians {
        name: "bins".to_owned(),
        epsilon: Rational::ONE,
        depth: 6,
    };
    for (relation, touches) in RELATIONS.into_iter().zip([1u8, 2]) {
        let mut rest = Rational::ONE;
        let mut leaves = Vec::new();
        for left in (1..=6u64).rev() {
            let (part, remaining) = share(&rest, 1, left);
            rest = remaining;
            let e = part / Rational::from(touches);
            let level = 7 - left;
            leaves.push(Event::BoundedRange {
                mechanism: format!("bins: exponential-mechanism medians, level {level}"),
                loss: both(e.clone(), &e + &e),
            });
        }
        let context = Context::records(relation);
        assert_eq!(step.event(&context), Event::Sequence(leaves));
    }
    let parts = step.step(&Context::records(RELATIONS[0])).losses;
    assert_ne!(parts, split(&Rational::ONE, &[1; 6]));
    let spent = parts.iter().fold(Rational::ZERO, |s, e| s + e);
    assert_eq!(spent, Rational::ONE);
}

#[test]
fn quantiles_are_paid_by_depth() {
    let step = |draw| Quantiles {
        name: "q".to_owned(),
        epsilon: ratio(5, 1),
        levels: vec![1, 2, 3],
        denominator: 4,
        draw,
    };
    let smooth = |depth: u32, add: Rational, replace: Rational| Event::Pure {
        mechanism: format!("q: smooth-sensitivity bisection, depth {depth}"),
        loss: both(add, replace),
    };
    let exponential = |depth: u32, add: Rational, replace: Rational| Event::BoundedRange {
        mechanism: format!("q: exponential-mechanism bisection, depth {depth}"),
        loss: both(add, replace),
    };
    let event = |draw, relation| step(draw).event(&Context::records(relation));
    let (half, quarter) = (ratio(5, 2), ratio(5, 4));
    assert_eq!(
        event(Draw::Exponential, Relation::AddRemove),
        Event::Sequence(vec![
            exponential(1, half.clone(), ratio(5, 1)),
            exponential(2, half.clone(), ratio(5, 1)),
        ])
    );
    assert_eq!(
        event(Draw::Exponential, Relation::ReplaceOne),
        Event::Sequence(vec![
            exponential(1, quarter.clone(), half.clone()),
            exponential(2, quarter, half.clone()),
        ])
    );
    assert_eq!(
        event(Draw::Smooth, Relation::AddRemove),
        Event::Sequence(vec![
            smooth(1, half.clone(), half.clone()),
            smooth(2, half, ratio(5, 1)),
        ])
    );
    // the root is shared: one part of three, and two parts of which a change pays for two
    let parts = split(&ratio(5, 1), &[1, 2]);
    let [first, second] = parts.as_slice() else {
        panic!("two parts")
    };
    assert_eq!(
        event(Draw::Smooth, Relation::ReplaceOne),
        Event::Sequence(vec![
            smooth(1, first.clone(), first.clone()),
            smooth(2, second / Rational::from(2u8), second.clone()),
        ])
    );
}

#[test]
fn ranges_are_paid_by_halves() {
    let priced = |scales, relation| {
        Range {
            name: "upper end".to_owned(),
            epsilon: Rational::ONE,
            coverage: (19, 20),
            scales,
        }
        .event(&Context::records(relation))
    };
    let event = |loss| Event::Pure {
        mechanism: "upper end: above threshold on nested counts".to_owned(),
        loss,
    };
    assert_eq!(
        priced(RangeScales::Calibrated, Relation::AddRemove),
        event(both(ratio(1, 1), ratio(2, 1)))
    );
    assert_eq!(
        priced(RangeScales::Calibrated, Relation::ReplaceOne),
        event(both(ratio(39, 40), ratio(1, 1)))
    );
    for relation in RELATIONS {
        assert_eq!(
            priced(RangeScales::Printed, relation),
            event(both(ratio(29, 40), ratio(3, 4)))
        );
    }
}

/// Scales in records, per unit of several rows.
#[test]
fn ranges_have_the_scales_of_their_proof() {
    for rows in [1u32, 3] {
        for (scales, relation, threshold, query) in [
            (RangeScales::Calibrated, Relation::AddRemove, 1.9, 2.0),
            (RangeScales::Calibrated, Relation::ReplaceOne, 2.0, 2.0),
            (RangeScales::Printed, Relation::AddRemove, 2.0, 4.0),
            (RangeScales::Printed, Relation::ReplaceOne, 2.0, 4.0),
        ] {
            let step = Range {
                name: "upper end".to_owned(),
                epsilon: Rational::ONE,
                coverage: (19, 20),
                scales,
            };
            let context = Context {
                rows_per_unit: rows,
                ..Context::records(relation)
            };
            let (t, q) = step.lattices(&context).unwrap();
            for (law, wanted) in [(t, threshold), (q, query)] {
                let found = law.scale().to_f64() / 20.0 / f64::from(rows);
                assert!((found / wanted - 1.0).abs() < 1e-9, "{found} {wanted}");
            }
        }
    }
}
