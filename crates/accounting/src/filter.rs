//! A privacy filter: spends are accepted while their sum stays within the cap, exactly.

use crate::{Cost, Currency, Price, Relation};

/// Adds up spends in one currency under one relation and refuses what does not fit.
///
/// # Claim
/// Whatever sequence of prices is offered, adaptively, the accepted ones sum to at most the cap in
/// every part. Sums are exact, so a spend of 5·10⁻³²⁴ at full budget is refused.
/// # Checked by
/// `filter::tests::{exhausted_filter_refuses_the_smallest_spend, unbounded_and_negative_prices_are_refused}`
#[derive(Debug, Clone)]
pub struct Filter {
    cap: Cost,
    spent: Cost,
    currency: Currency,
    relation: Relation,
}

/// Why a filter refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Overdrawn {
    /// The spend is larger than what is left.
    #[error("asked for {}, but only {} of {} is left", asked.describe(*currency), left.describe(*currency), cap.describe(*currency))]
    Cap {
        /// The spend.
        asked: Cost,
        /// What is left.
        left: Cost,
        /// The cap.
        cap: Cost,
        /// The currency of all three.
        currency: Currency,
    },
    /// The loss is unbounded under the filter's relation.
    #[error("the loss is unbounded under {relation}, so no budget can pay for it")]
    Unbounded {
        /// The relation.
        relation: Relation,
    },
    /// A negative cost: no mechanism has one.
    #[error("a cost cannot be negative: {}", asked.describe(*currency))]
    Negative {
        /// The spend.
        asked: Cost,
        /// Its currency.
        currency: Currency,
    },
}

impl Filter {
    /// A filter with nothing spent.
    pub fn new(cap: Cost, currency: Currency, relation: Relation) -> Self {
        Self {
            cap,
            spent: Cost::zero(),
            currency,
            relation,
        }
    }

    /// Accepts the price, or refuses and changes nothing.
    pub fn try_spend(&mut self, price: &Price) -> Result<(), Overdrawn> {
        let asked = price.under(self.relation).ok_or(Overdrawn::Unbounded {
            relation: self.relation,
        })?;
        if !asked.is_valid() {
            return Err(Overdrawn::Negative {
                asked: asked.clone(),
                currency: self.currency,
            });
        }
        let total = self.spent.plus(asked);
        if !total.within(&self.cap) {
            return Err(Overdrawn::Cap {
                asked: asked.clone(),
                left: self.left(),
                cap: self.cap.clone(),
                currency: self.currency,
            });
        }
        self.spent = total;
        Ok(())
    }

    /// The sum of all accepted spends.
    pub fn spent(&self) -> &Cost {
        &self.spent
    }

    /// The cap.
    pub fn cap(&self) -> &Cost {
        &self.cap
    }

    /// What is left under the cap.
    pub fn left(&self) -> Cost {
        self.cap.minus(&self.spent)
    }
}
