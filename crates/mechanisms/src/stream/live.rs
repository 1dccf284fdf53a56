//! A stream that is paid for.

use reticent_ledger::{Entry, EntryKind, Ledger, RequestId, Slot, Stored, Wanted};
use reticent_noise::Draws;

use super::session::{Session, State, Tally, Ticked};
use super::{Checked, StreamError};
use crate::door::{claim_price, system_draws};

/// What opening a stream asks of a ledger.
#[derive(Clone, Debug)]
pub struct Order {
    /// Names this stream for good: a digest of everything declared.
    pub request: RequestId,
    /// Who opens it.
    pub analyst: String,
    /// What is public about it, stored in the ledger.
    pub statement: Vec<u8>,
}

/// Whether the payment was made now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// Just paid: there are no ticks yet.
    New,
    /// Paid in an earlier run, whose ticks must be carried on with.
    Again,
}

/// A paid session with noise from the operating system.
///
/// # Claim
/// The stream's event is on disk as spent before a session exists. Ticks cost nothing more, being parallel (each unit
/// is in one tick, under the assumptions of [`Stream`](super::Stream) on ticks), as long as no tick is stepped twice with both results handed out: the caller stores every tick
/// durably before it publishes anything of it, and goes on from the stored state.
/// # Checked by
/// `stream::tests::opening_is_paid_once`, `hostile::a_stream_is_not_opened_on_another_payment`
pub struct Live {
    session: Session,
    draws: Draws,
    stored: Stored,
}

impl Live {
    /// Pays, or finds the payment of an earlier run.
    pub fn open(
        session: Session,
        ledger: &mut Ledger,
        order: &Order,
    ) -> Result<(Self, Opened), StreamError> {
        let (relation, currency) = (ledger.identity().relation, ledger.identity().currency);
        let facts = session.context();
        if facts.relation != relation || facts.currency != currency {
            return Err(StreamError::Declaration(
                "the stream is calibrated for another relation or currency than its ledger's",
            ));
        }
        let price = session.stream().event(facts).price(currency)?;
        let Some(claim) = price.under(relation) else {
            return Err(StreamError::Declaration(
                "the loss of the stream is not bounded under its relation",
            ));
        };
        let wanted = Wanted {
            request: order.request,
            price: claim_price(claim, relation, currency),
            partition: None,
            label: "stream".to_owned(),
        };
        let draws = system_draws()?;
        let slot = ledger
            .reserve(&order.analyst, std::slice::from_ref(&wanted))?
            .pop();
        let (stored, opened) = match slot {
            Some(Slot::Stored(stored)) => {
                // The ledger gives what is stored under a name at no cost, whatever was paid for it then.
                let same = |entry: Entry| matches!(entry.kind, EntryKind::Spend(spend) if spend.request == wanted.request && spend.price == wanted.price && spend.label == wanted.label);
                if !ledger.entries()?.into_iter().any(same) {
                    return Err(StreamError::Declaration(
                        "something else was paid for under the name of this stream; give it another name",
                    ));
                }
                (stored, Opened::Again)
            }
            Some(Slot::Paid(paid)) => (ledger.publish(paid, &order.statement)?, Opened::New),
            None => return Err(StreamError::Declaration("the ledger gave no payment")),
        };
        let live = Self {
            session,
            draws,
            stored,
        };
        Ok((live, opened))
    }

    /// The ledger's entry for the opening.
    pub fn payment(&self) -> &Stored {
        &self.stored
    }

    /// The session, for tallies and plans.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// One tick. Its outputs and the new state must be stored together before anything is published.
    pub fn tick(
        &mut self,
        state: &mut State,
        tally: Tally,
        plan: &Checked,
    ) -> Result<Ticked, StreamError> {
        self.draws.check_process()?;
        self.session.step(state, tally, plan, &mut self.draws)
    }
}
