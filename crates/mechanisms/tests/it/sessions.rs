//! Sessions of adaptive threshold tests through the door.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use reticent_accounting::{Cost, Currency, Rational, Relation};
use reticent_ledger::{Identity, Ledger, RequestId};
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::primitives::{Change, Sides, Test, ThresholdTests};
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{DoorError, Private, Slot, Ticket, Unit, Wanted};

/// Cell i of 8 holds 1000·i records.
fn open(path: &Path) -> Private {
    let column = Column {
        name: "cell".to_owned(),
        kind: Kind::Integer { lower: 0, upper: 7 },
        missing: Missing::Drop,
    };
    let cells: Vec<i64> = (0..8)
        .zip(0..)
        .flat_map(|(i, n)| vec![i; 1000 * n])
        .collect();
    let source = Memory::new(
        Arc::new(Schema {
            columns: vec![column],
        }),
        vec![Batch::new(cells.len(), vec![Cells::Integer(cells)])],
    );
    let ledger = if path.exists() {
        Ledger::open(path).unwrap()
    } else {
        let identity = Identity {
            dataset: "cells".to_owned(),
            data_version: "1".to_owned(),
            relation: Relation::AddRemove,
            currency: Currency::Pure,
            cap: Cost::pure(Rational::from(3u8)),
            analysts: BTreeMap::new(),
            fingerprint_key: [0; 32],
            fingerprint: [0; 32],
            schema_digest: [0; 32],
        };
        Ledger::create(path, &identity).unwrap()
    };
    Private::new(Box::new(source), Unit::Row, None, ledger).unwrap()
}

fn request(n: u8) -> RequestId {
    RequestId::from_bytes([n; 32])
}

fn reserve(private: &mut Private, n: u8, epsilon: u8) -> Result<Option<Ticket>, DoorError> {
    let wanted = Wanted {
        request: request(n),
        claim: Cost::pure(Rational::from(epsilon)),
        part: None,
        label: "session".to_owned(),
    };
    Ok(match private.reserve("ann", &[wanted])?.pop() {
        Some(Slot::Paid(ticket)) => Some(ticket),
        _ => None,
    })
}

fn program() -> RowProgram {
    RowProgram {
        terms: vec![Expr::Column(0)],
        ..RowProgram::default()
    }
}

fn fold() -> Fold {
    Fold::Grid {
        axes: vec![Axis {
            term: 0,
            cut: Cut::Whole(8),
        }],
        sum: None,
    }
}

fn step(epsilon: u8) -> ThresholdTests {
    ThresholdTests {
        name: "session".to_owned(),
        epsilon: Rational::from(epsilon),
        answers: 2,
        most: 5,
        change: Change::COUNT,
        nested: false,
        sides: Sides::One,
        gaps: false,
        values: None,
        custom: None,
    }
}

/// Differences are hundreds of noise scales from 0, so that answers are certain (wrong with probability below 1e-90).
#[test]
fn a_session_answers_and_leaves_its_transcript() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cells.ledger");
    let mut private = open(&path);
    let ticket = reserve(&mut private, 1, 2).unwrap().unwrap();
    let mut session = private
        .open_session("ann", ticket, &program(), &fold(), &step(2))
        .unwrap();
    let expected = [(2, false), (6, true), (3, false), (7, true)];
    for (cell, positive) in expected {
        let reply = session.ask(&Test::count(cell..cell + 1, 5000)).unwrap();
        assert_eq!(reply.crossing.is_some(), positive, "{cell}");
        assert_eq!(reply.release.body.value["positive"], positive);
    }
    // two positive answers: it has stopped
    assert!(session.stopped());
    assert!(session.ask(&Test::count(0..1, 0)).is_err());
    let transcript = session.close();
    assert_eq!(transcript.len(), 5);
    assert_eq!(private.transcript(request(1)).unwrap(), transcript);
    assert_eq!(private.transcript(request(9)).unwrap(), []);
    // answers cost nothing more: 1 of 3 is left
    assert!(reserve(&mut private, 2, 1).unwrap().is_some());
    assert!(reserve(&mut private, 3, 1).is_err());
}

/// The tests end after K, however few positive answers there were.
#[test]
fn a_closed_or_crashed_session_is_never_drawn_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cells.ledger");
    let mut private = open(&path);
    // paid, the process dies before it is opened: the payment still stands
    drop(reserve(&mut private, 1, 2).unwrap().unwrap());
    drop(private);
    let mut private = open(&path);
    let ticket = reserve(&mut private, 1, 2).unwrap().unwrap();
    let mut session = private
        .open_session("ann", ticket, &program(), &fold(), &step(2))
        .unwrap();
    let reply = session.ask(&Test::count(7..8, 5000)).unwrap();
    // dies in the middle
    drop(session);
    drop(private);
    let mut private = open(&path);
    assert!(
        reserve(&mut private, 1, 2).unwrap().is_none(),
        "served from the store"
    );
    let left = private.transcript(request(1)).unwrap();
    assert_eq!(left.len(), 2);
    assert_eq!(left[1], reply.release);
}

/// What is refused is refused from public numbers and uses up no test.
#[test]
fn refusals_cost_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let mut private = open(&folder.path().join("cells.ledger"));
    let ticket = reserve(&mut private, 1, 2).unwrap().unwrap();
    let mut session = private
        .open_session("ann", ticket, &program(), &fold(), &step(2))
        .unwrap();
    let against = Test {
        against: Some((0..2, 1)),
        ..Test::count(3..4, 0)
    };
    for _ in 0..9 {
        assert!(session.ask(&Test::count(7..9, 0)).is_err());
        assert!(session.ask(&against).is_err());
    }
    for _ in 0..5 {
        assert!(!session.stopped());
        session.ask(&Test::count(0..1, 5000)).unwrap();
    }
    assert!(session.stopped());
    assert_eq!(session.close().len(), 6);
}

/// A ticket for less than the step costs does not open a session; nor does a nested step.
#[test]
fn sessions_are_paid_like_the_step() {
    let folder = tempfile::tempdir().unwrap();
    let mut private = open(&folder.path().join("cells.ledger"));
    let ticket = reserve(&mut private, 1, 1).unwrap().unwrap();
    let outcome = private.open_session("ann", ticket, &program(), &fold(), &step(2));
    assert!(matches!(outcome.err(), Some(DoorError::Overdrawn { .. })));
    let ticket = reserve(&mut private, 1, 1).unwrap().unwrap();
    let nested = ThresholdTests {
        nested: true,
        ..step(1)
    };
    assert!(
        private
            .open_session("ann", ticket, &program(), &fold(), &nested)
            .is_err()
    );
    let with_values = ThresholdTests {
        values: Some(Rational::from(1u8)),
        ..step(1)
    };
    let ticket = reserve(&mut private, 1, 1).unwrap().unwrap();
    let outcome = private.open_session("ann", ticket, &program(), &fold(), &with_values);
    assert!(matches!(outcome.err(), Some(DoorError::Overdrawn { .. })));
}
