//! Mechanisms that try to buy more than they pay for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use reticent_accounting::{AccountingError, Cost, Currency, Event, Rational, Relation};
use reticent_laws::Silent;
use reticent_ledger::{Identity, Ledger, RequestId};
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::primitives::{
    Change, Counts, Linear, Payment, Row, Sides, Strategy, Test, ThresholdTests,
};
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::stream::{Forest, Live, Opened, Order, Session, Stream, StreamError};
use reticent_mechanisms::{
    Answer, Context, Desk, DeskError, DoorError, FoldId, Mechanism, Private, Release, Slot, Task,
    Unit, Wanted,
};

use crate::table::{buy, memory};

fn count(epsilon: u32) -> Counts {
    Counts {
        name: "count".to_owned(),
        epsilon: Rational::from(epsilon),
    }
}

/// Declares `first`, then `later` whenever it is asked again; buys counts of the given ε.
struct Hostile {
    asked: AtomicU32,
    first: fn(&Context) -> Event,
    later: fn(&Context) -> Event,
    buys: Vec<u32>,
}

impl Mechanism for Hostile {
    fn kind(&self) -> &'static str {
        "hostile"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        let again = self.asked.fetch_add(1, Ordering::SeqCst) > 0;
        Ok(if again { self.later } else { self.first }(context))
    }
    fn first_pass(&self) -> Vec<Fold> {
        let axes = vec![Axis {
            term: 0,
            cut: Cut::Whole(2),
        }];
        vec![Fold::Grid { axes, sum: None }]
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let mut bought = Vec::new();
        for epsilon in &self.buys {
            bought.push(format!(
                "{:?}",
                desk.counts(FoldId(0), None, &count(*epsilon))?
            ));
        }
        Ok(Answer {
            value: bought.into(),
            ..Answer::default()
        })
    }
}

fn identity() -> Identity {
    Identity {
        dataset: "bits".to_owned(),
        data_version: "1".to_owned(),
        relation: Relation::AddRemove,
        currency: Currency::Pure,
        cap: Cost::pure(Rational::ONE),
        analysts: BTreeMap::new(),
        fingerprint_key: [0; 32],
        fingerprint: [0; 32],
        schema_digest: [0; 32],
    }
}

/// Pays ε = 1 for the mechanism and runs it.
fn release(mechanism: Hostile) -> Result<Vec<Release>, DoorError> {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::create(folder.path().join("bits.ledger"), &identity()).unwrap();
    let schema = Schema {
        columns: vec![Column {
            name: "bit".to_owned(),
            kind: Kind::Integer { lower: 0, upper: 1 },
            missing: Missing::Drop,
        }],
    };
    let batch = Batch::new(3, vec![Cells::Integer(vec![0, 1, 1])]);
    let source = Memory::new(Arc::new(schema), vec![batch]);
    let mut private = Private::new(Box::new(source), Unit::Row, None, ledger).unwrap();
    let wanted = Wanted {
        request: RequestId::from_bytes([1; 32]),
        claim: Cost::pure(Rational::ONE),
        part: None,
        label: "hostile".to_owned(),
    };
    let Some(Slot::Paid(ticket)) = private.reserve("eve", &[wanted])?.pop() else {
        panic!("not paid")
    };
    private.fulfil(vec![Task {
        ticket,
        program: RowProgram {
            terms: vec![Expr::Column(0)],
            ..RowProgram::default()
        },
        mechanism: Box::new(mechanism),
    }])
}

/// An honest one is served; one that declares ε = 1 to the door and ε = 1000 to the desk is not.
#[test]
fn the_event_that_was_priced_is_the_one_that_is_bought() {
    let cheap: fn(&Context) -> Event = |c| count(1).event(c);
    let dear: fn(&Context) -> Event = |c| count(1000).event(c);
    let go = |later, buys| {
        release(Hostile {
            asked: AtomicU32::new(0),
            first: cheap,
            later,
            buys,
        })
    };
    assert!(go(cheap, vec![1]).is_ok());
    assert!(matches!(
        go(dear, vec![1000]),
        Err(DoorError::Desk(DeskError::Undeclared { .. }))
    ));
}

/// A mechanism cannot show that its purchases touch disjoint rows: the door charges their sum.
#[test]
fn purchases_declared_disjoint_cost_their_sum() {
    let disjoint: fn(&Context) -> Event =
        |c| Event::Disjoint((0..9).map(|_| count(1).event(c)).collect());
    let outcome = release(Hostile {
        asked: AtomicU32::new(0),
        first: disjoint,
        later: disjoint,
        buys: vec![1; 9],
    });
    assert!(matches!(outcome, Err(DoorError::Overdrawn { .. })));
}

/// #(0..2) − #(0..1) and #(0..2) − #(1..2) have nested ranges and opposite moves: at the scales of nested tests the
/// answer "no, yes" loses up to e₁ + 2e₂ = 1.5ε. Refused as a list and when made up on the way.
#[test]
fn nested_tests_have_public_thresholds() {
    let step = ThresholdTests {
        name: "nested".to_owned(),
        epsilon: Rational::ONE,
        answers: 1,
        most: 9,
        change: Change::COUNT,
        nested: true,
        sides: Sides::One,
        gaps: false,
        values: None,
        custom: None,
    };
    let against = |other: std::ops::Range<usize>| Test {
        against: Some((other, 1)),
        ..Test::count(0..2, 3)
    };
    let tests = [against(0..1), against(1..2)];
    let context = Context::records(Relation::ReplaceOne);
    let source = memory(&[vec![0.0, 1.0, 1.0]], 2.0, 3);
    let axes = vec![Axis {
        term: 0,
        cut: Cut::Whole(2),
    }];
    let folds = vec![Fold::Grid { axes, sum: None }];
    let refusal = |made_up: bool| {
        let (tests, step) = (tests.clone(), step.clone());
        let event = step.event(&context);
        let ask = move |desk: &mut Desk<'_>| {
            if !made_up {
                return desk.threshold_tests(FoldId(0), &tests, &step);
            }
            let mut rest = tests.iter();
            desk.adaptive_tests(FoldId(0), &step, &mut |_| rest.next().cloned())
        };
        let folds = folds.clone();
        buy(&source, 1, &context, event, folds, &mut Silent, &ask).unwrap_err()
    };
    for made_up in [false, true] {
        let text = refusal(made_up).to_string();
        assert!(text.contains("nested"), "{text}");
    }
}

/// All records do not change when one is replaced: nested counts may be compared with one multiple of them, not with several.
#[test]
fn nested_tests_may_compare_with_all_records() {
    let context = Context::records(Relation::ReplaceOne);
    let source = memory(&[vec![0.0, 1.0, 1.0]], 2.0, 3);
    let outcome = |multiples: [u32; 2]| {
        let step = ThresholdTests {
            name: "nested".to_owned(),
            epsilon: Rational::ONE,
            answers: 1,
            most: 9,
            change: Change { down: 2, up: 2 },
            nested: true,
            sides: Sides::One,
            gaps: false,
            values: None,
            custom: None,
        };
        let tests: Vec<Test> = (1..)
            .zip(multiples)
            .map(|(end, v)| Test {
                against: Some((0..2, v)),
                ..Test::count(0..end, 0)
            })
            .collect();
        let axes = vec![Axis {
            term: 0,
            cut: Cut::Whole(2),
        }];
        let folds = vec![Fold::Grid { axes, sum: None }];
        let event = step.event(&context);
        let ask = move |desk: &mut Desk<'_>| desk.threshold_tests(FoldId(0), &tests, &step);
        buy(&source, 1, &context, event, folds, &mut Silent, &ask)
    };
    // 1 of 3 records, then 3 of 3
    assert_eq!(outcome([1, 1]).unwrap().len(), 1);
    assert!(outcome([1, 2]).unwrap_err().to_string().contains("nested"));
}

/// A strategy for more cells than fit into memory is refused before anything is paid.
#[test]
fn strategies_beyond_memory_are_refused() {
    let step = Linear {
        name: "linear".to_owned(),
        payment: Payment::Pure {
            epsilon: Rational::ONE,
        },
    };
    let strategy = Strategy::new(usize::MAX, vec![Row::count([0..1, 1..2], 1)]);
    let context = Context::records(Relation::AddRemove);
    assert!(step.lattices(&strategy, &context).is_err());
}

/// The ledger serves what is stored under a name at no cost; a stream must not be opened on a cheaper payment.
#[test]
fn a_stream_is_not_opened_on_another_payment() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::create(folder.path().join("s.ledger"), &identity()).unwrap();
    let mut open = |epsilon: Rational, label: &str| {
        let stream = Stream {
            name: label.to_owned(),
            epsilon,
            forest: Forest::flat(2).unwrap(),
            grouper: None,
            common: 0,
        };
        let context = Context::records(Relation::AddRemove);
        let order = Order {
            request: RequestId::from_bytes([7; 32]),
            analyst: "eve".to_owned(),
            statement: b"two series".to_vec(),
        };
        let session = Session::new(stream, context).unwrap();
        Live::open(session, &mut ledger, &order).map(|(_, opened)| opened)
    };
    assert_eq!(open(Rational::ONE, "s").unwrap(), Opened::New);
    assert_eq!(open(Rational::ONE, "s").unwrap(), Opened::Again);
    let dear = open(Rational::from(1000u32), "s").unwrap_err();
    assert!(matches!(dear, StreamError::Declaration(_)), "{dear}");
}
