//! A sparse vector whose tests the analyst makes up while it runs.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::sync::Arc;
//! use reticent_accounting::{Cost, Currency, Rational, Relation};
//! use reticent_ledger::{Identity, Ledger, RequestId};
//! use reticent_mechanisms::fold::{Axis, Cut, Fold};
//! use reticent_mechanisms::primitives::{Change, Sides, Test, ThresholdTests};
//! use reticent_mechanisms::program::{Expr, RowProgram};
//! use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
//! use reticent_mechanisms::source::Memory;
//! use reticent_mechanisms::{Private, Slot, Unit, Wanted};
//!
//! let ages = Column { name: "age".into(), kind: Kind::Integer { lower: 0, upper: 99 }, missing: Missing::Drop };
//! let cells = Cells::Integer((0..1000).map(|i| i % 100).collect());
//! let source = Memory::new(Arc::new(Schema { columns: vec![ages] }), vec![Batch::new(1000, vec![cells])]);
//! let folder = tempfile::tempdir()?;
//! let ledger = Ledger::create(folder.path().join("ages.ledger"), &Identity {
//!     dataset: "ages".into(), data_version: "1".into(), relation: Relation::AddRemove, currency: Currency::Pure,
//!     cap: Cost::pure(Rational::from(9u8)), analysts: BTreeMap::new(),
//!     fingerprint_key: [0; 32], fingerprint: [0; 32], schema_digest: [0; 32],
//! })?;
//! let mut private = Private::new(Box::new(source), Unit::Row, None, ledger)?;
//!
//! let epsilon = Rational::from(4u8);
//! let wanted = Wanted {
//!     request: RequestId::from_bytes([1; 32]), claim: Cost::pure(epsilon.clone()), part: None, label: "session".into(),
//! };
//! let Some(Slot::Paid(ticket)) = private.reserve("ann", &[wanted])?.pop() else { unreachable!() };
//! let program = RowProgram { terms: vec![Expr::Column(0)], ..RowProgram::default() };
//! let fold = Fold::Grid { axes: vec![Axis { term: 0, cut: Cut::Whole(100) }], sum: None };
//! let step = ThresholdTests {
//!     name: "ages".into(), epsilon, answers: 2, most: 50, change: Change::COUNT, nested: false,
//!     sides: Sides::One, gaps: true, values: None, custom: None,
//! };
//! let mut session = private.open_session("ann", ticket, &program, &fold, &step)?;
//! // halve the range that surely holds more than 100 people
//! let mut range = 0..100;
//! while !session.stopped() && range.len() > 1 {
//!     let left = range.start..(range.start + range.end) / 2;
//!     let reply = session.ask(&Test::count(left.clone(), 100))?;
//!     range = if reply.crossing.is_some() { left } else { left.end..range.end };
//! }
//! let transcript = session.close();
//! assert!(transcript.len() >= 3); // the opening and two answers or more
//! assert_eq!(private.transcript(RequestId::from_bytes([1; 32]))?, transcript);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A session cannot be copied, asked after it was closed, or held twice:
//! ```compile_fail,E0599
//! fn twice<'a>(s: reticent_mechanisms::session::Session<'a>) -> [reticent_mechanisms::session::Session<'a>; 2] { [s.clone(), s] }
//! ```
//! ```compile_fail,E0382
//! fn late(mut s: reticent_mechanisms::session::Session<'_>, test: &reticent_mechanisms::primitives::Test) {
//!     s.close();
//!     let _ = s.ask(test);
//! }
//! ```
//! ```compile_fail,E0616
//! fn peek(s: &reticent_mechanisms::session::Session<'_>) -> i128 { s.machine.rho }
//! ```

use reticent_accounting::{Event, Price};
use reticent_ledger::{RequestId, Slot};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::context::Context;
use crate::desk::{fits, misuse};
use crate::door::{Body, DoorError, Private, Receipt, Release, Ticket};
use crate::fold::Fold;
use crate::primitives::{Change, Crossing, Layers, Machine, Test, ThresholdTests};
use crate::program::RowProgram;
use crate::source::Job;

/// An open sparse vector: asks, one after the other, tests that may depend on all answers so far.
///
/// # Claim
/// All answers of a session together are what one [`ThresholdTests`] is: ε-DP, paid in full when it is opened.
/// # Assumptions
/// Those of [`ThresholdTests`]; the ledger is durable. The fold and what a record can do to a test are fixed at opening.
/// # Composition
/// The proof of [`ThresholdTests`] allows tests that are functions of earlier answers. It needs that the noisy threshold
/// and every test's noise are drawn once. They are: before the first answer the session is *published* under its request,
/// so that the ledger never again serves that payment with a new draw; the threshold exists in the memory of this
/// process only. Every answer is published, as a free release under an id derived from the session's, before it is returned;
/// an id that already holds an answer is refused. If the process dies, what was answered stays in the ledger
/// ([`Private::transcript`]) and the rest is forfeited: paid, never drawn. If a ledger write fails the session is over.
/// # Arithmetic
/// That of [`ThresholdTests`]; the same code answers ([`crate::Desk::adaptive_tests`]).
/// # Checked by
/// `sessions::{a_session_answers_and_leaves_its_transcript, a_closed_or_crashed_session_is_never_drawn_again,
/// refusals_cost_no_answer, sessions_are_paid_like_the_step}`, `threshold_tests::adaptive_tests_enumerated`
pub struct Session<'a> {
    private: &'a mut Private,
    analyst: String,
    request: RequestId,
    context: Context,
    layers: Layers,
    change: Change,
    machine: Machine,
    over: bool,
    transcript: Vec<Release>,
}

/// An answer of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The crossing if the test was positive.
    pub crossing: Option<Crossing>,
    /// What the ledger stored.
    pub release: Release,
}

impl Private {
    /// Opens a session for a payment: reads the rows once, draws the threshold, and records that the session took place.
    pub fn open_session(
        &mut self,
        analyst: &str,
        ticket: Ticket,
        program: &RowProgram,
        fold: &Fold,
        step: &ThresholdTests,
    ) -> Result<Session<'_>, DoorError> {
        self.draws.check_process()?;
        let context = self.context(program);
        let event = step.event(&context);
        self.admit(&ticket, program, &context, &event)?;
        fits(std::slice::from_ref(fold))?;
        if step.nested {
            return Err(misuse("the tests of a session cannot be declared nested").into());
        }
        step.lattices(&context)?;
        let job = Job {
            program: program.clone(),
            folds: vec![fold.clone()],
        };
        let mut states = self.source.scan(self.unit, &[job])?;
        let state = states.pop().and_then(|mut s| s.pop());
        let state = state.ok_or_else(|| misuse("the source gave no counts"))?;
        let layers = Layers::of(fold, &state)?;
        let machine = Machine::open(step, &context, &mut self.draws)?;
        let request = ticket.request();
        let opening = Body {
            kind: "session".to_owned(),
            value: json!({
                "name": step.name,
                "answers": step.answers,
                "tests": step.most,
                "cells": layers.len(),
                "change": [step.change.down, step.change.up],
            }),
            receipt: Receipt {
                event,
                cost: ticket.claim.to_json(context.currency),
                noise: Vec::new(),
                error_95: None,
            },
            flags: Vec::new(),
        };
        let stored = self
            .ledger
            .publish(ticket.paid, &payload(request, &opening)?)?;
        let transcript = vec![Release::read(&request, &stored)?];
        Ok(Session {
            analyst: analyst.to_owned(),
            request,
            context,
            layers,
            change: step.change,
            machine,
            over: false,
            transcript,
            private: self,
        })
    }

    /// What the ledger holds of a session: its opening and the answers given, also after a crash. Empty if there is none.
    pub fn transcript(&self, session: RequestId) -> Result<Vec<Release>, DoorError> {
        let mut releases = Vec::new();
        let mut id = session;
        while let Some(stored) = self.ledger.lookup(&id)? {
            releases.push(Release::read(&id, &stored)?);
            id = answer_id(&session, releases.len().saturating_sub(1));
        }
        Ok(releases)
    }
}

impl Session<'_> {
    /// Whether no more tests are answered: a function of the answers given.
    pub fn stopped(&self) -> bool {
        self.over || self.machine.stopped()
    }

    /// Answers one test. What is refused (a range outside the cells, a change beyond the declared one) costs nothing.
    pub fn ask(&mut self, test: &Test) -> Result<Reply, DoorError> {
        if self.stopped() {
            return Err(misuse("the session has given all its answers").into());
        }
        let difference = test.difference(&self.layers, self.change)?;
        let index = self.machine.asked();
        let request = answer_id(&self.request, index);
        self.over = true;
        let wanted = reticent_ledger::Wanted {
            request,
            price: Price::zero(),
            partition: None,
            label: format!("answer {} of a session", index.saturating_add(1)),
        };
        let slots = self.private.ledger.reserve(&self.analyst, &[wanted])?;
        let Some(Slot::Paid(paid)) = slots.into_iter().next() else {
            return Err(DoorError::Stored {
                request,
                reason: "there is an answer under this id already".to_owned(),
            });
        };
        let crossing = self.machine.test(difference, &mut self.private.draws);
        let body = Body {
            kind: "session_answer".to_owned(),
            value: json!({
                "session": self.request.to_string(),
                "index": index,
                "test": {
                    "cells": [test.cells.start, test.cells.end],
                    "weight": test.weight,
                    "against": test.against.as_ref().map(|(t, v)| json!([t.start, t.end, v])),
                    "threshold": integer(test.threshold),
                },
                "positive": crossing.is_some(),
                "gap": crossing.and_then(|c| c.gap).map(integer),
                "value": crossing.and_then(|c| c.value).map(integer),
            }),
            receipt: Receipt {
                event: Event::Free {
                    mechanism: "answer of a paid session".to_owned(),
                },
                cost: Price::zero().to_json(self.context.currency),
                noise: Vec::new(),
                error_95: None,
            },
            flags: Vec::new(),
        };
        let stored = self
            .private
            .ledger
            .publish(paid, &payload(request, &body)?)?;
        let release = Release::read(&request, &stored)?;
        self.transcript.push(release.clone());
        self.over = false;
        Ok(Reply { crossing, release })
    }

    /// Ends the session; what it has not answered is forfeited. Returns what the ledger stored, the opening first.
    pub fn close(self) -> Vec<Release> {
        self.transcript
    }
}

/// The id of an answer: a digest of the session's and its number.
fn answer_id(session: &RequestId, index: usize) -> RequestId {
    let mut digest = Sha256::new();
    digest.update(b"reticent session answer");
    digest.update(session.as_bytes());
    digest.update(u64::try_from(index).unwrap_or(u64::MAX).to_be_bytes());
    RequestId::from_bytes(digest.finalize().into())
}

fn payload(request: RequestId, body: &Body) -> Result<Vec<u8>, DoorError> {
    serde_json::to_vec(body).map_err(|e| DoorError::Stored {
        request,
        reason: e.to_string(),
    })
}

/// Exact in the range of i64, text beyond.
fn integer(value: i128) -> Value {
    i64::try_from(value).map_or_else(|_| value.to_string().into(), Value::from)
}
