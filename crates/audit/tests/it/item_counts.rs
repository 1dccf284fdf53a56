//! Counts of items of which a record has several: enumeration, matrix, golden instance 12 of `decisions.md` §4, canary.

use super::*;
use reticent_audit::purchases::Purchase;
use reticent_audit::tables::real;
use reticent_mechanisms::primitives::{ItemCounts, Payment};
use reticent_mechanisms::rows::Schema;

use super::selection::*;

/// Records with four items and a label; at most two items count.
fn item_counts(payment: Payment, classes: bool, units: u32) -> Audit {
    let all: Vec<Vec<f64>> = [0, 1, 3, 12, 15, 16, 19, 28u32]
        .into_iter()
        .map(|b| (0..5).map(|i| f64::from(b >> i & 1)).collect())
        .collect();
    let records: Vec<&[f64]> = all.iter().map(Vec::as_slice).collect();
    let step = ItemCounts {
        name: "items".to_owned(),
        payment,
        most: 2,
        classes,
    };
    items(4, 2, &records, Purchase::ItemCounts(step), units)
}

fn pure(epsilon: Rational) -> Payment {
    Payment::Pure { epsilon }
}

/// Instance 12: m = 4, s = 2: L1 3 | 6 with the labels, 2 | 4 without; squared L2 2 | 4.
#[test]
fn item_counts_matrix() {
    for calibrated in RELATIONS {
        for classes in [false, true] {
            let audit = item_counts(pure(ratio(1, 1)), classes, 0);
            let strategy = audit.strategy(calibrated);
            let price = audit.price(calibrated);
            let l1 = if classes { 3.0 } else { 2.0 };
            assert_eq!(strategy.noise.len(), if classes { 10 } else { 8 });
            let touches = if calibrated == Relation::AddRemove {
                1.0
            } else {
                2.0
            };
            assert!(
                strategy
                    .noise
                    .iter()
                    .all(|n| (n.1 - touches * l1).abs() < 1e-12)
            );
            for (i, relation) in RELATIONS.into_iter().enumerate() {
                close(strategy.loss(relation) / price[i], 1.0, 1e-12);
            }
            let rho = ratio(1, 8);
            let audit = item_counts(Payment::Concentrated { rho }, classes, 0);
            let strategy = audit.strategy(calibrated);
            let spent = strategy.deviations(calibrated).powi(2) / 2.0;
            assert!(spent <= 0.125 && spent > 0.125 * (1.0 - 1e-6), "{spent}");
            let mut context = audit.context(calibrated);
            context.currency = Currency::Concentrated;
            let event = audit.mechanism.event(&context).unwrap();
            let price = event.price(Currency::Concentrated).unwrap();
            for relation in RELATIONS {
                let paid = price.under(relation).unwrap().amount.to_f64().value();
                assert!(strategy.deviations(relation).powi(2) / 2.0 <= paid * (1.0 + 1e-12));
            }
            let payment = Payment::Approximate {
                epsilon: ratio(1, 1),
                delta: ratio(1, 1_000_000),
            };
            let strategy = item_counts(payment, classes, 0).strategy(calibrated);
            let distance = strategy.deviations(calibrated);
            let epsilon = reticent_audit::density::gaussian_epsilon(1.0, 1e-6, distance);
            assert!(epsilon <= 1.0 + 1e-9 && epsilon > 1.0 - 1e-6, "{epsilon}");
        }
    }
}

/// Two items, a record has at most one of them that counts: the draws enumerated.
fn few_items(epsilon: Rational) -> Audit {
    let records: [&[f64]; 4] = [&[1.0, 1.0], &[0.0, 1.0], &[1.0, 0.0], &[0.0, 0.0]];
    let fold = Fold::Items {
        items: 0..2,
        most: 1,
        class: None,
    };
    let step = ItemCounts {
        name: "items".to_owned(),
        payment: pure(epsilon),
        most: 1,
        classes: false,
    };
    let columns = vec![real("a", 0.0, 1.0), real("b", 0.0, 1.0)];
    Audit::new(
        Universe::rows(
            Schema { columns },
            records.iter().map(|r| r.to_vec()).collect(),
        ),
        2,
        Purchases::one(fold, Purchase::ItemCounts(step)),
        2,
    )
}

#[test]
fn item_counts_enumerated() {
    few_items(ratio(4, 1)).check([(1.0, 1.0), (1.0, 1.0)]);
    // a fold that lets a record count for more items than were paid for is refused
    let mut wide = few_items(ratio(4, 1));
    wide.mechanism.0[0].0 = Fold::Items {
        items: 0..2,
        most: 2,
        class: None,
    };
    for relation in RELATIONS {
        assert!(
            wide.with(relation, |case| case.losses(&wide.tables))
                .is_err()
        );
    }
}

#[test]
fn item_counts_canary() {
    few_items(ratio(4, 1)).canary([1.0, 1.0]);
    few_slots(1, ratio(4, 1)).canary([1.0, 1.0]);
}

/// Two slots that name items of 0..2, of which the first `most` count; 2 is no item.
fn few_slots(most: u32, epsilon: Rational) -> Audit {
    let records: Vec<Vec<f64>> = [[2.0, 2.0], [0.0, 2.0], [0.0, 1.0], [1.0, 1.0]]
        .map(|r| r.to_vec())
        .to_vec();
    let fold = Fold::Slots {
        slots: 0..2,
        items: 2,
        most,
        class: None,
    };
    let step = ItemCounts {
        name: "words".to_owned(),
        payment: pure(epsilon),
        most,
        classes: false,
    };
    let columns = vec![real("a", 0.0, 2.0), real("b", 0.0, 2.0)];
    Audit::new(
        Universe::rows(Schema { columns }, records),
        2,
        Purchases::one(fold, Purchase::ItemCounts(step)),
        2,
    )
}

/// Words in slots: the bound is the number that counts, and a word named twice is not paid twice.
#[test]
fn slots_enumerated() {
    few_slots(1, ratio(4, 1)).check([(1.0, 1.0), (1.0, 1.0)]);
    let mut wide = few_slots(1, ratio(4, 1));
    wide.mechanism.0[0].0 = Fold::Slots {
        slots: 0..2,
        items: 2,
        most: 2,
        class: None,
    };
    for relation in RELATIONS {
        let refused = wide.with(relation, |case| case.losses(&wide.tables));
        assert!(refused.is_err());
    }
}

/// Instance 12 in slots: m = 4, s = 2, all ordered pairs of words and a label: L1 3 | 6 with the labels, 2 | 4 without.
#[test]
fn slots_matrix() {
    let mut records = Vec::new();
    for a in 0..=4u8 {
        for b in 0..=4u8 {
            records.extend([0.0, 1.0].map(|l| vec![f64::from(a), f64::from(b), l]));
        }
    }
    for classes in [false, true] {
        let fold = Fold::Slots {
            slots: 0..2,
            items: 4,
            most: 2,
            class: Some(axis(2, Cut::Whole(2))),
        };
        let step = ItemCounts {
            name: "words".to_owned(),
            payment: pure(ratio(1, 1)),
            most: 2,
            classes,
        };
        let columns = vec![
            real("a", 0.0, 4.0),
            real("b", 0.0, 4.0),
            real("l", 0.0, 1.0),
        ];
        let audit = Audit::new(
            Universe::rows(Schema { columns }, records.clone()),
            3,
            Purchases::one(fold, Purchase::ItemCounts(step)),
            0,
        );
        for (calibrated, touches) in RELATIONS.into_iter().zip([1.0, 2.0]) {
            let strategy = audit.strategy(calibrated);
            let l1 = touches * if classes { 3.0 } else { 2.0 };
            assert!(strategy.noise.iter().all(|n| (n.1 - l1).abs() < 1e-12));
            let price = audit.price(calibrated);
            for (i, relation) in RELATIONS.into_iter().enumerate() {
                close(strategy.loss(relation) / price[i], 1.0, 1e-12);
            }
        }
    }
}
