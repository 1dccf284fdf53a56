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
        asked: Box<Cost>,
        /// What is left.
        left: Box<Cost>,
        /// The cap.
        cap: Box<Cost>,
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
        asked: Box<Cost>,
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
                asked: Box::new(asked.clone()),
                currency: self.currency,
            });
        }
        let total = self.spent.plus(asked);
        if !total.within(&self.cap) {
            return Err(Overdrawn::Cap {
                asked: Box::new(asked.clone()),
                left: Box::new(self.left()),
                cap: Box::new(self.cap.clone()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rational, parse_rational};

    fn pure(amount: &str) -> Price {
        let cost = Some(Cost::pure(parse_rational(amount).unwrap()));
        Price {
            add_remove: cost.clone(),
            replace_one: cost,
        }
    }

    /// lessons row 42.
    #[test]
    fn exhausted_filter_refuses_the_smallest_spend() {
        let cap = Cost::pure(Rational::ONE);
        let mut filter = Filter::new(cap, Currency::Pure, Relation::AddRemove);
        for _ in 0..10 {
            filter.try_spend(&pure("0.1")).unwrap();
        }
        assert_eq!(filter.left(), Cost::zero());
        let refused = filter.try_spend(&pure("5e-324")).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "asked for epsilon 5e-324, but only epsilon 0 of epsilon 1 is left"
        );
        filter.try_spend(&pure("0")).unwrap();
        assert_eq!(filter.spent().amount, Rational::ONE);
    }

    #[test]
    fn unbounded_and_negative_prices_are_refused() {
        let cap = Cost::approximate(Rational::ONE, parse_rational("1e-6").unwrap());
        let mut filter = Filter::new(cap, Currency::Approximate, Relation::AddRemove);
        let unbounded = Price {
            add_remove: None,
            replace_one: Some(Cost::zero()),
        };
        assert!(matches!(
            filter.try_spend(&unbounded),
            Err(Overdrawn::Unbounded { .. })
        ));
        assert!(matches!(
            filter.try_spend(&pure("-1")),
            Err(Overdrawn::Negative { .. })
        ));
        let cost = Some(Cost::approximate(
            Rational::ZERO,
            parse_rational("2e-6").unwrap(),
        ));
        let too_much_delta = Price {
            add_remove: cost.clone(),
            replace_one: cost,
        };
        assert!(matches!(
            filter.try_spend(&too_much_delta),
            Err(Overdrawn::Cap { .. })
        ));
        assert_eq!(filter.spent(), &Cost::zero());
    }
}
