//! Small builders shared by the tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reticent_accounting::{Cost, Currency, Price, Relation, parse_rational};
use reticent_ledger::{Identity, Ledger, Paid, RequestId, Slot, Stored, Wanted};

pub(crate) fn cost(amount: &str) -> Cost {
    Cost::pure(parse_rational(amount).unwrap())
}

pub(crate) fn price(amount: &str) -> Price {
    Price {
        add_remove: Some(cost(amount)),
        replace_one: Some(cost(amount).plus(&cost(amount))),
    }
}

pub(crate) fn identity(cap: &str) -> Identity {
    Identity {
        dataset: "survey".to_owned(),
        data_version: "2026".to_owned(),
        relation: Relation::AddRemove,
        currency: Currency::Pure,
        cap: cost(cap),
        analysts: BTreeMap::new(),
        fingerprint_key: [7; 32],
        fingerprint: [8; 32],
        schema_digest: [9; 32],
    }
}

pub(crate) fn id(n: u64) -> RequestId {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&n.to_be_bytes());
    RequestId::from_bytes(bytes)
}

pub(crate) fn want(n: u64, amount: &str) -> Wanted {
    Wanted {
        request: id(n),
        price: price(amount),
        partition: None,
        label: format!("count {n}"),
    }
}

pub(crate) fn want_in(n: u64, amount: &str, part: &str) -> Wanted {
    Wanted {
        partition: Some(("split".to_owned(), part.to_owned())),
        ..want(n, amount)
    }
}

pub(crate) fn path(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("survey.ledger")
}

pub(crate) fn create(folder: &tempfile::TempDir, cap: &str) -> Ledger {
    Ledger::create(path(folder), &identity(cap)).unwrap()
}

/// The only slot, which must be a payment.
pub(crate) fn paid(slots: Vec<Slot>) -> Paid {
    match slots.into_iter().next() {
        Some(Slot::Paid(paid)) => paid,
        other => panic!("expected a payment, got {other:?}"),
    }
}

/// Pays and publishes one value.
pub(crate) fn release(ledger: &mut Ledger, n: u64, amount: &str, value: &[u8]) -> Stored {
    let slot = paid(ledger.reserve("ann", &[want(n, amount)]).unwrap());
    ledger.publish(slot, value).unwrap()
}

/// The ledger's path with something appended.
pub(crate) fn beside(ledger: &Path, suffix: &str) -> PathBuf {
    let mut name = ledger.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
