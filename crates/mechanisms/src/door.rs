//! The door: the only way from private rows to a value.
//!
//! A release is always: 1 price, 2 refuse, 3 pay on disk, 4 first touch of the data, 5 noise, 6 store,
//! 7 return. Steps 1–3 ([`Private::reserve`]) read public inputs only and pay for a whole plan in one
//! commit. Steps 4–7 ([`Private::fulfil`]) serve what was paid. There are no refunds; what was paid and not
//! published (the process died) is served by a new draw for the same payment, because nothing had left.
//!
//! ```compile_fail,E0277
//! fn look(rows: &reticent_mechanisms::Private) { println!("{rows:?}"); } // no Debug
//! ```
//! ```compile_fail,E0599
//! fn copy(rows: &reticent_mechanisms::Private) -> reticent_mechanisms::Private { rows.clone() } // no Clone
//! ```
//! ```compile_fail,E0599
//! fn count(rows: &reticent_mechanisms::Private) -> usize { rows.len() } // no length
//! ```
//! ```compile_fail,E0616
//! fn peek(state: &reticent_mechanisms::fold::State) -> i128 { state.0[0] } // folds are opaque
//! ```
//! ```compile_fail,E0599
//! fn twice(t: reticent_mechanisms::Ticket) -> (reticent_mechanisms::Ticket, reticent_mechanisms::Ticket) { (t.clone(), t) }
//! ```

use std::collections::BTreeMap;

use reticent_accounting::{
    AccountingError, Cost, CostFields, Currency, Event, Price, Relation, Size,
    convert_to_replace_one,
};
use reticent_ledger::{Ledger, LedgerError, Paid, RequestId, Status};
use reticent_noise::{Draws, NoiseError};
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::desk::{DeskError, NoiseRecord};
use crate::evaluate::Unit;
use crate::mechanism::{Mechanism, run, scan};
use crate::program::{Part, ProgramError, RowProgram};
use crate::rows::{Kind, Missing, Schema};
use crate::source::{Job, RowSource, SourceError};

/// Why the door did not serve.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// The ledger refused or failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The price could not be computed.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
    /// A mechanism would cost more than was paid for it.
    #[error("release {label} would cost {asked}, more than the {paid} paid for it")]
    Overdrawn {
        /// The release.
        label: String,
        /// Its price.
        asked: String,
        /// The payment.
        paid: String,
    },
    /// The program works on other rows than were paid for.
    #[error("release {label} was paid for another part of the rows")]
    OtherRows {
        /// The release.
        label: String,
    },
    /// The program does not fit the schema.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// Reading the rows failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A mechanism failed.
    #[error(transparent)]
    Desk(#[from] DeskError),
    /// The operating system gave no randomness.
    #[error(transparent)]
    Noise(#[from] NoiseError),
    /// A stored release could not be read back.
    #[error("the stored release {request} cannot be read: {reason}")]
    Stored {
        /// Its request id.
        request: RequestId,
        /// What is wrong.
        reason: String,
    },
}

/// Private rows with their privacy unit and their ledger.
pub struct Private {
    pub(crate) source: Box<dyn RowSource>,
    pub(crate) unit: Unit,
    rows: Option<u64>,
    pub(crate) ledger: Ledger,
    pub(crate) draws: Draws,
}

/// What a plan wants to pay for: one release.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Identity of the request; the same one is served once and then from the store.
    pub request: RequestId,
    /// The whole price under the data set's relation, in its currency.
    pub claim: Cost,
    /// The part of the rows it works on.
    pub part: Option<Part>,
    /// The kind, for people who read the ledger.
    pub label: String,
}

impl Wanted {
    /// What the ledger is asked for.
    pub fn entry(&self, relation: Relation, currency: Currency) -> reticent_ledger::Wanted {
        reticent_ledger::Wanted {
            request: self.request,
            price: claim_price(&self.claim, relation, currency),
            partition: self.part.as_ref().map(Part::names),
            label: self.label.clone(),
        }
    }
}

/// The answer to a [`Wanted`].
#[allow(clippy::large_enum_variant, reason = "a handful per plan")]
pub enum Slot {
    /// It was released before; here it is, at no cost.
    Stored(Release),
    /// It is paid; bring the mechanism.
    Paid(Ticket),
}

/// Proof of payment for one release. Cannot be copied; dropping it refunds nothing.
pub struct Ticket {
    pub(crate) paid: Paid,
    pub(crate) claim: Price,
    part: Option<Part>,
    label: String,
}

impl Ticket {
    /// The request it was paid for.
    pub fn request(&self) -> RequestId {
        *self.paid.request()
    }
}

/// A paid release and how to make it.
pub struct Task {
    /// Proof of payment.
    pub ticket: Ticket,
    /// What is read from each record.
    pub program: RowProgram,
    /// What is computed.
    pub mechanism: Box<dyn Mechanism>,
}

/// What a release cost and how far its numbers can be off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// What happened, leaf by leaf.
    pub event: Event,
    /// What was debited, under both relations (`null`: not bounded under that relation).
    pub cost: BTreeMap<String, Option<CostFields>>,
    /// Which noise protected what.
    pub noise: Vec<NoiseRecord>,
    /// Headline error with probability .95.
    pub error_95: Option<f64>,
}

/// The public content of a release, as stored in the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Body {
    /// Kind of release.
    pub kind: String,
    /// The value.
    pub value: serde_json::Value,
    /// The receipt.
    pub receipt: Receipt,
    /// Public remarks.
    pub flags: Vec<String>,
}

/// A release.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// Its request id.
    pub request: RequestId,
    /// Its content.
    pub body: Body,
    /// Its place in the ledger.
    pub sequence: u64,
    /// Head of the ledger's hash chain at that place.
    pub head: [u8; 32],
}

/// The price of a claim under both relations: a replacement is a removal and an addition; and every
/// mechanism calibrated for replacements here costs at most its claim under add/remove too (the meter
/// and [`Private::fulfil`] check it).
pub fn claim_price(claim: &Cost, relation: Relation, currency: Currency) -> Price {
    let replace_one = match relation {
        Relation::AddRemove => convert_to_replace_one(claim, currency),
        Relation::ReplaceOne => claim.clone(),
    };
    Price {
        add_remove: Some(claim.clone()),
        replace_one: Some(replace_one),
    }
}

/// Whether the number of rows a program works on is public: only under replace-one, with a declared count,
/// rows as units, and no condition, part or dropped record.
pub fn row_set_size(
    schema: &Schema,
    unit: Unit,
    relation: Relation,
    rows: Option<u64>,
    program: &RowProgram,
) -> Size {
    let drops = program.columns().iter().any(|c| {
        schema.columns.get(*c).is_none_or(|c| {
            matches!(c.missing, Missing::Drop) || matches!(c.kind, Kind::Levels { other: None, .. })
        })
    });
    match (relation, unit, rows) {
        (Relation::ReplaceOne, Unit::Row, Some(n))
            if program.filter.is_none() && program.part.is_none() && !drops =>
        {
            Size::Public(n)
        }
        _ => Size::Private,
    }
}

/// Noise for a session that is paid for elsewhere in this crate.
pub(crate) fn system_draws() -> Result<Draws, NoiseError> {
    Draws::from_os()
}

impl Private {
    /// Closes the door behind a source: from here on only paid releases come out.
    ///
    /// `rows` is the curator's declared number of rows (replace-one only).
    pub fn new(
        source: Box<dyn RowSource>,
        unit: Unit,
        rows: Option<u64>,
        ledger: Ledger,
    ) -> Result<Self, DoorError> {
        Ok(Self {
            source,
            unit,
            rows,
            ledger,
            draws: Draws::from_os()?,
        })
    }

    /// The public facts for a program.
    pub fn context(&self, program: &RowProgram) -> Context {
        let identity = self.ledger.identity();
        Context {
            relation: identity.relation,
            currency: identity.currency,
            size: row_set_size(
                self.source.schema(),
                self.unit,
                identity.relation,
                self.rows,
                program,
            ),
            rows_per_unit: self.unit.max_rows(),
        }
    }

    /// Steps 1–3 for a whole plan: price, refuse, pay all in one commit. Reads no row.
    pub fn reserve(&mut self, analyst: &str, wanted: &[Wanted]) -> Result<Vec<Slot>, DoorError> {
        let (relation, currency) = (
            self.ledger.identity().relation,
            self.ledger.identity().currency,
        );
        let prices: Vec<Price> = wanted
            .iter()
            .map(|w| claim_price(&w.claim, relation, currency))
            .collect();
        let entries: Vec<reticent_ledger::Wanted> =
            wanted.iter().map(|w| w.entry(relation, currency)).collect();
        let slots = self.ledger.reserve(analyst, &entries)?;
        slots
            .into_iter()
            .zip(wanted.iter().zip(prices))
            .map(|(slot, (w, claim))| match slot {
                reticent_ledger::Slot::Stored(stored) => {
                    Release::read(&w.request, &stored).map(Slot::Stored)
                }
                reticent_ledger::Slot::Paid(paid) => Ok(Slot::Paid(Ticket {
                    paid,
                    claim,
                    part: w.part.clone(),
                    label: w.label.clone(),
                })),
            })
            .collect()
    }

    /// Steps 4–7: one fused scan, then noise, store and return, in the order given.
    ///
    /// Everything that can be refused is refused before the first row is read.
    pub fn fulfil(&mut self, tasks: Vec<Task>) -> Result<Vec<Release>, DoorError> {
        // A forked process must not repeat its parent's noise.
        self.draws.check_process()?;
        let mut contexts = Vec::with_capacity(tasks.len());
        for task in &tasks {
            let context = self.context(&task.program);
            let event = task.mechanism.event(&context)?;
            self.admit(&task.ticket, &task.program, &context, &event)?;
            contexts.push((context, event));
        }
        let jobs: Vec<Job> = tasks
            .iter()
            .map(|t| Job {
                program: t.program.clone(),
                folds: t.mechanism.first_pass(),
            })
            .collect();
        let keep: Vec<bool> = tasks.iter().map(|t| t.mechanism.passes() > 0).collect();
        let scanned = scan(self.source.as_ref(), self.unit, &jobs, &keep)?;
        let mut releases = Vec::with_capacity(tasks.len());
        for (((task, (context, event)), job), scanned) in
            tasks.into_iter().zip(contexts).zip(jobs).zip(scanned)
        {
            let (answer, trace) = run(
                self.source.as_ref(),
                self.unit,
                &context,
                &task.program,
                task.mechanism.as_ref(),
                event,
                &mut self.draws,
                job.folds,
                scanned,
            )?;
            let body = Body {
                kind: task.mechanism.kind().to_owned(),
                value: answer.value,
                receipt: Receipt {
                    event: trace.event,
                    cost: task.ticket.claim.to_json(context.currency),
                    noise: trace.noise,
                    error_95: answer.error_95,
                },
                flags: answer.flags,
            };
            let request = task.ticket.request();
            let payload = serde_json::to_vec(&body).map_err(|e| DoorError::Stored {
                request,
                reason: e.to_string(),
            })?;
            let stored = self.ledger.publish(task.ticket.paid, &payload)?;
            releases.push(Release::read(&request, &stored)?);
        }
        Ok(releases)
    }

    /// Refuses, from public inputs, what was not paid for: a higher price under either relation, or other rows.
    pub(crate) fn admit(
        &self,
        ticket: &Ticket,
        program: &RowProgram,
        context: &Context,
        event: &Event,
    ) -> Result<(), DoorError> {
        // The sum of the leaves: a mechanism outside this crate cannot show that what it buys touches disjoint rows.
        let leaves = event.leaves().into_iter().cloned().collect();
        let price = Event::Sequence(leaves).price(context.currency)?;
        let paid = &ticket.claim;
        for relation in [Relation::AddRemove, Relation::ReplaceOne] {
            let covered = match (price.under(relation), paid.under(relation)) {
                (Some(asked), Some(paid)) => asked.within(paid),
                (_, paid) => paid.is_none(),
            };
            if !covered {
                let say = |p: &Price| {
                    p.under(relation).map_or_else(
                        || "an unbounded loss".to_owned(),
                        |c| c.describe(context.currency),
                    )
                };
                return Err(DoorError::Overdrawn {
                    label: ticket.label.clone(),
                    asked: format!("{} under {relation}", say(&price)),
                    paid: say(paid),
                });
            }
        }
        if program.part != ticket.part {
            return Err(DoorError::OtherRows {
                label: ticket.label.clone(),
            });
        }
        program.bounds(self.source.schema())?;
        Ok(())
    }

    /// Totals of the ledger.
    pub fn status(&self) -> Result<Status, DoorError> {
        Ok(self.ledger.status()?)
    }
}

impl Release {
    /// Reads a release back from the ledger's store.
    pub fn read(request: &RequestId, stored: &reticent_ledger::Stored) -> Result<Self, DoorError> {
        let body = serde_json::from_slice(&stored.payload).map_err(|e| DoorError::Stored {
            request: *request,
            reason: e.to_string(),
        })?;
        Ok(Self {
            request: *request,
            body,
            sequence: stored.sequence,
            head: stored.head,
        })
    }
}
