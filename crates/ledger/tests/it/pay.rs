//! Reservation, publication, caps, totals, raising.

use std::collections::BTreeMap;

use reticent_accounting::{Cost, Currency, Price, Relation};
use reticent_ledger::{EntryKind, Identity, Kind, Ledger, LedgerError, Slot, Whose};

use crate::support::{cost, create, id, identity, paid, path, price, release, want, want_in};

#[test]
fn a_request_is_paid_once_and_answered_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = create(&folder, "1");
    let stored = release(&mut ledger, 1, "0.25", b"{\"value\":41}");
    assert_eq!(stored.sequence, 2);
    let again = ledger.reserve("bob", &[want(1, "0.25")]).unwrap();
    assert!(matches!(&again[0], Slot::Stored(s) if *s == stored));
    assert_eq!(ledger.lookup(&id(1)).unwrap(), Some(stored));
    assert_eq!(ledger.lookup(&id(2)).unwrap(), None);
    let status = ledger.status().unwrap();
    assert_eq!(status.spent, price("0.25"));
    assert_eq!(status.remaining, cost("0.75"));
    assert_eq!(status.unpublished, 0);
}

#[test]
fn a_batch_is_paid_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = create(&folder, "1");
    let error = ledger
        .reserve("ann", &[want(1, "0.5"), want(2, "0.25"), want(3, "0.5")])
        .unwrap_err();
    let LedgerError::Refused {
        asked,
        left,
        cap,
        whose,
        ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(
        (&**asked, &**left, &**cap, whose),
        (&cost("1.25"), &cost("1"), &cost("1"), &Whose::Dataset)
    );
    assert_eq!(
        error.to_string(),
        "asked for epsilon 1.25, but of the epsilon 1 that the data set may spend under add_remove only epsilon 1 is \
         left; ask for at most that, or have the curator raise the cap"
    );
    assert_eq!(error.kind(), Kind::Refused);
    assert_eq!(ledger.status().unwrap().entries, 1);
    let slots = ledger
        .reserve("ann", &[want(1, "0.5"), want(2, "0.25"), want(3, "0.25")])
        .unwrap();
    assert_eq!(slots.len(), 3);
    assert_eq!(ledger.status().unwrap().remaining, Cost::zero());
}

/// lessons row 42: at full budget not even 5e-324 fits; a free release still does.
#[test]
fn the_smallest_spend_at_full_budget_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = create(&folder, "1");
    for n in 0..10 {
        release(&mut ledger, n, "0.1", b"1");
    }
    assert_eq!(
        ledger
            .reserve("ann", &[want(100, "5e-324")])
            .unwrap_err()
            .kind(),
        Kind::Refused
    );
    ledger.reserve("ann", &[want(101, "0")]).unwrap();
    assert_eq!(ledger.status().unwrap().spent, price("1"));
}

#[test]
fn prices_no_mechanism_has_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = create(&folder, "1");
    let mut unbounded = want(1, "0.1");
    unbounded.price.add_remove = None;
    assert!(matches!(
        ledger.reserve("ann", &[unbounded]),
        Err(LedgerError::Unbounded { .. })
    ));
    assert!(matches!(
        ledger.reserve("ann", &[want(1, "-0.1")]),
        Err(LedgerError::ImpossiblePrice { .. })
    ));
    let twice = [want(1, "0.1"), want(1, "0.1")];
    assert!(matches!(
        ledger.reserve("ann", &twice),
        Err(LedgerError::Duplicate { .. })
    ));
    let with_delta = Cost::approximate(cost("0.1").amount, cost("1e-9").amount);
    let mut wrong_currency = want(1, "0.1");
    wrong_currency.price = Price {
        add_remove: Some(with_delta.clone()),
        replace_one: Some(with_delta),
    };
    assert_eq!(
        ledger.reserve("ann", &[wrong_currency]).unwrap_err().kind(),
        Kind::Refused
    );
    // A number too long to be read back would lock everyone out.
    let long = format!("1/{}", "7".repeat(4_900));
    let mut longer = want(1, &long);
    let squared = longer.price.add_remove.unwrap().amount;
    longer.price.add_remove = Some(Cost::pure(&squared * &squared));
    let error = ledger.reserve("ann", &[longer]).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused, "{error}");
    assert_eq!(ledger.status().unwrap().entries, 1);
    Ledger::open(path(&folder)).unwrap();
}

/// lessons §2.6: Ann may spend 0.5, everyone else 0.2; the data set 0.6 in all. Two colluding analysts do not
/// get two budgets.
#[test]
fn analyst_caps_and_the_data_set_cap_both_hold() {
    let folder = tempfile::tempdir().unwrap();
    let analysts = BTreeMap::from([
        ("ann".to_owned(), cost("0.5")),
        ("default".to_owned(), cost("0.2")),
    ]);
    let identity = Identity {
        analysts,
        ..identity("0.6")
    };
    let mut ledger = Ledger::create(path(&folder), &identity).unwrap();
    ledger.reserve("ann", &[want(1, "0.45")]).unwrap();
    let error = ledger.reserve("ann", &[want(2, "0.1")]).unwrap_err();
    assert!(
        matches!(&error, LedgerError::Refused { whose: Whose::Analyst(name), .. } if name == "ann"),
        "{error}"
    );
    let error = ledger.reserve("bob", &[want(3, "0.2")]).unwrap_err();
    assert!(
        matches!(
            &error,
            LedgerError::Refused {
                whose: Whose::Dataset,
                ..
            }
        ),
        "{error}"
    );
    ledger.reserve("bob", &[want(3, "0.15")]).unwrap();
    let status = ledger.status().unwrap();
    assert_eq!(status.analysts["ann"].remaining, Some(cost("0.05")));
    assert_eq!(status.analysts["bob"].cap, Some(cost("0.2")));
    assert_eq!(status.remaining, Cost::zero());
}

/// formats.md rule 7 by hand: train .4, test .6 under add/remove cost .6 together, and 0.7 with .1
/// over all rows; under replace-one max(.8, 1.2, .4+.6) + .2 = 1.4.
#[test]
fn parts_of_one_split_share_credit() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = create(&folder, "0.7");
    ledger
        .reserve(
            "ann",
            &[
                want_in(1, "0.4", "train"),
                want_in(2, "0.6", "test"),
                want(3, "0.1"),
            ],
        )
        .unwrap();
    let status = ledger.status().unwrap();
    assert_eq!(
        status.spent,
        Price {
            add_remove: Some(cost("0.7")),
            replace_one: Some(cost("1.4"))
        }
    );
    assert_eq!(status.partitions.len(), 1);
    assert_eq!(status.partitions[0].parts["train"], price("0.4"));
    // Train has room up to .6 without cost; beyond that it is refused.
    ledger
        .reserve("ann", &[want_in(4, "0.2", "train")])
        .unwrap();
    assert_eq!(
        ledger
            .reserve("ann", &[want_in(5, "0.01", "train")])
            .unwrap_err()
            .kind(),
        Kind::Refused
    );
}

#[test]
fn a_live_owner_keeps_its_request() {
    let folder = tempfile::tempdir().unwrap();
    let mut one = create(&folder, "1");
    let mut two = Ledger::open(path(&folder)).unwrap();
    let slot = paid(one.reserve("ann", &[want(1, "0.5")]).unwrap());
    let error = two
        .reserve("bob", &[want(2, "0.1"), want(1, "0.5")])
        .unwrap_err();
    assert_eq!(error.kind(), Kind::InProgress, "{error}");
    assert_eq!(two.status().unwrap().spent, price("0.5"));
    let stored = one.publish(slot, b"{}").unwrap();
    let slots = two.reserve("bob", &[want(1, "0.5")]).unwrap();
    assert!(matches!(&slots[0], Slot::Stored(s) if *s == stored));
}

#[test]
fn a_dead_owner_leaves_its_payment() {
    let folder = tempfile::tempdir().unwrap();
    let mut one = create(&folder, "0.5");
    let lost = paid(one.reserve("ann", &[want(1, "0.5")]).unwrap());
    drop(one);
    let mut two = Ledger::open(path(&folder)).unwrap();
    // Another price or part for a payment that waits would be a hidden discount.
    assert!(matches!(
        two.reserve("bob", &[want(1, "0.6")]),
        Err(LedgerError::PriceChanged { .. })
    ));
    assert!(matches!(
        two.reserve("bob", &[want_in(1, "0.5", "train")]),
        Err(LedgerError::PriceChanged { .. })
    ));
    let slot = paid(two.reserve("bob", &[want(1, "0.5")]).unwrap());
    assert_eq!(two.status().unwrap().spent, price("0.5"));
    // The old payment is void wherever it is presented.
    assert!(matches!(
        two.publish(lost, b"old"),
        Err(LedgerError::StalePayment { .. })
    ));
    two.publish(slot, b"new").unwrap();
    assert_eq!(two.lookup(&id(1)).unwrap().unwrap().payload, b"new");
}

#[test]
fn a_cap_only_goes_up_and_the_raise_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = create(&folder, "1");
    release(&mut ledger, 1, "1", b"1");
    assert!(matches!(
        ledger.raise(&cost("0.5"), "carl"),
        Err(LedgerError::CapLowered { .. })
    ));
    assert!(matches!(
        ledger.raise(&cost("-1"), "carl"),
        Err(LedgerError::NotABudget { .. })
    ));
    let status = ledger.raise(&cost("1.5"), "carl").unwrap();
    assert_eq!((status.cap, status.remaining), (cost("1.5"), cost("0.5")));
    assert_eq!(ledger.identity().cap, cost("1.5"));
    release(&mut ledger, 2, "0.5", b"2");
    let entries = ledger.entries().unwrap();
    let kinds: Vec<bool> = entries
        .iter()
        .map(|e| matches!(e.kind, EntryKind::Raise { .. }))
        .collect();
    assert_eq!(kinds, [false, false, false, true, false, false]);
    assert_eq!(
        Ledger::open(path(&folder)).unwrap().identity().cap,
        cost("1.5")
    );
}

#[test]
fn budgets_are_checked_at_registration() {
    let folder = tempfile::tempdir().unwrap();
    let mut bad = identity("1");
    bad.currency = Currency::Approximate;
    let error = Ledger::create(path(&folder), &bad).err().unwrap();
    assert!(matches!(error, LedgerError::NotABudget { .. }), "{error}");
    assert!(!path(&folder).exists());
}

#[test]
fn totals_follow_the_relation_of_the_data_set() {
    let folder = tempfile::tempdir().unwrap();
    let mut replace = identity("1");
    replace.relation = Relation::ReplaceOne;
    let mut ledger = Ledger::create(path(&folder), &replace).unwrap();
    // 0.6 under add/remove is 1.2 here.
    assert_eq!(
        ledger.reserve("ann", &[want(1, "0.6")]).unwrap_err().kind(),
        Kind::Refused
    );
    ledger.reserve("ann", &[want(1, "0.5")]).unwrap();
    assert_eq!(ledger.status().unwrap().remaining, Cost::zero());
}

/// Two handles race for the last budget in turn: exactly the cap is sold.
#[test]
fn two_clients_cannot_overspend_together() {
    let folder = tempfile::tempdir().unwrap();
    drop(create(&folder, "1"));
    let clients: Vec<_> = (0..4_u64)
        .map(|client| {
            let path = path(&folder);
            std::thread::spawn(move || {
                let mut ledger = Ledger::open(path).unwrap();
                let mut sold = 0;
                for n in 0..12 {
                    match ledger.reserve("ann", &[want(client * 1000 + n, "0.05")]) {
                        Ok(_) => sold += 1,
                        Err(error) => assert_eq!(error.kind(), Kind::Refused, "{error}"),
                    }
                }
                sold
            })
        })
        .collect();
    let sold: i32 = clients.into_iter().map(|c| c.join().unwrap()).sum();
    assert_eq!(sold, 20);
    let mut ledger = Ledger::open(path(&folder)).unwrap();
    assert_eq!(ledger.verify(None).unwrap().status.spent, price("1"));
}

/// A link leads to the same head file and the same owners.
#[cfg(unix)]
#[test]
fn a_link_is_the_same_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let mut one = create(&folder, "1");
    let link = folder.path().join("link.ledger");
    std::os::unix::fs::symlink(path(&folder), &link).unwrap();
    let mut two = Ledger::open(&link).unwrap();
    let slot = paid(one.reserve("ann", &[want(1, "0.5")]).unwrap());
    assert_eq!(
        two.reserve("bob", &[want(1, "0.5")]).unwrap_err().kind(),
        Kind::InProgress
    );
    one.publish(slot, b"1").unwrap();
    assert!(!folder.path().join("link.ledger.head").exists());
    assert_eq!(two.lookup(&id(1)).unwrap().unwrap().payload, b"1");
}
