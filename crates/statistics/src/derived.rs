//! Releases that are computed from released values alone: they cost nothing and read no row.

use reticent_accounting::{AccountingError, Event};
use reticent_mechanisms::fold::Fold;
use reticent_mechanisms::{Answer, Context, Desk, DeskError, Mechanism};
use serde_json::Value;

use crate::common::Prepared;

/// # Claim
/// Costs nothing under every relation: no fold, no purchase, and the answer was fixed before the rows are
/// touched (post-processing of released values).
/// # Checked by
/// `models::derived_releases_are_free`
struct Derived {
    kind: &'static str,
    answer: Answer,
}

impl Mechanism for Derived {
    fn kind(&self) -> &'static str {
        self.kind
    }
    fn event(&self, _: &Context) -> Result<Event, AccountingError> {
        Ok(Event::Sequence(Vec::new()))
    }
    fn first_pass(&self) -> Vec<Fold> {
        Vec::new()
    }
    fn run(&self, _: &mut Desk<'_>) -> Result<Answer, DeskError> {
        Ok(self.answer.clone())
    }
}

/// A free release with this value.
pub fn derived(kind: &'static str, value: Value, flags: Vec<String>) -> Prepared {
    Prepared {
        terms: Vec::new(),
        mechanism: Box::new(Derived {
            kind,
            answer: Answer {
                value,
                error_95: None,
                flags,
            },
        }),
    }
}
