//! What a mechanism did, and what that costs.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "rational arithmetic cannot overflow; the only divisors are the constants 2 and 8"
)]

use serde::{Deserialize, Serialize};

use crate::number::{self, Rational};
use crate::{AccountingError, Cost, Currency, Price, parallel, sequential};

/// An exact loss under each neighbour relation; `None` is unbounded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Both {
    /// When one unit is added or removed.
    #[serde(with = "number::optional_text")]
    pub add_remove: Option<Rational>,
    /// When one unit is replaced.
    #[serde(with = "number::optional_text")]
    pub replace_one: Option<Rational>,
}

impl Both {
    /// The same loss under both relations.
    pub fn same(loss: &Rational) -> Self {
        Self {
            add_remove: Some(loss.clone()),
            replace_one: Some(loss.clone()),
        }
    }

    /// A loss, and twice that loss under replacement: the general conversion for pure ε.
    pub fn doubled(loss: &Rational) -> Self {
        Self {
            add_remove: Some(loss.clone()),
            replace_one: Some(loss + loss),
        }
    }
}

/// What a mechanism did: fixed before any data are read, and priced for both relations.
///
/// Leaves carry the exact loss that the mechanism's proof states; how many rows it has, and
/// whether that number is public, is already in those numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// Pure ε. In zCDP it costs ε²/2.
    Pure {
        /// The mechanism, in the words of its registry row.
        mechanism: String,
        /// ε under each relation.
        loss: Both,
    },
    /// One draw of the exponential mechanism: pure ε whose loss also has range at most ε, hence
    /// ε²/8 in zCDP. Not for permute-and-flip, sparse vector, Laplace or Cauchy noise.
    BoundedRange {
        /// The mechanism, in the words of its registry row.
        mechanism: String,
        /// ε under each relation.
        loss: Both,
    },
    /// (ε, δ) proved directly, as by the analytic Gaussian curve. Payable only where the budget
    /// has a δ.
    Approximate {
        /// The mechanism, in the words of its registry row.
        mechanism: String,
        /// (ε, δ) when one unit is added or removed.
        add_remove: Option<Cost>,
        /// (ε, δ) when one unit is replaced.
        replace_one: Option<Cost>,
    },
    /// ρ-zCDP, as of the discrete Gaussian. Payable only in [`Currency::Concentrated`]: a
    /// conversion to (ε, δ) would need a δ that nobody chose.
    Concentrated {
        /// The mechanism, in the words of its registry row.
        mechanism: String,
        /// ρ under each relation.
        rho: Both,
    },
    /// Post-processing of what is already released.
    Free {
        /// What was computed.
        mechanism: String,
    },
    /// Several events over the same rows.
    Sequence(Vec<Event>),
    /// Events over disjoint row sets to which records are routed by their own content.
    Disjoint(Vec<Event>),
}

/// No mechanism comes near this; a deeper event is a mistake.
const MAX_DEPTH: usize = 64;

impl Event {
    /// The exact price in one currency, or why that currency cannot pay for it.
    ///
    /// # Composition
    /// [`Event::Sequence`] by [`sequential`], [`Event::Disjoint`] by [`parallel`].
    /// # References
    /// Bun–Steinke 2016 (ε²/2); Cesar–Rogers 2021 (ε²/8 for bounded range).
    /// # Checked by
    /// `event::tests::{currencies_price_leaves, unpayable_leaves_are_refused}`
    pub fn price(&self, currency: Currency) -> Result<Price, AccountingError> {
        self.price_at(currency, MAX_DEPTH)
    }

    /// The leaves in order, left to right.
    pub fn leaves(&self) -> Vec<&Event> {
        let mut leaves = Vec::new();
        let mut open = vec![self];
        while let Some(event) = open.pop() {
            match event {
                Self::Sequence(inner) | Self::Disjoint(inner) => open.extend(inner.iter().rev()),
                leaf => leaves.push(leaf),
            }
        }
        leaves
    }

    /// The mechanism of a leaf, or the way a composite composes.
    pub fn name(&self) -> &str {
        match self {
            Self::Pure { mechanism, .. }
            | Self::BoundedRange { mechanism, .. }
            | Self::Approximate { mechanism, .. }
            | Self::Concentrated { mechanism, .. }
            | Self::Free { mechanism } => mechanism,
            Self::Sequence(_) => "sequence",
            Self::Disjoint(_) => "disjoint",
        }
    }

    fn price_at(&self, currency: Currency, depth: usize) -> Result<Price, AccountingError> {
        let inner = |events: &[Event]| -> Result<Vec<Price>, AccountingError> {
            let depth = depth
                .checked_sub(1)
                .ok_or(AccountingError::TooDeep { limit: MAX_DEPTH })?;
            events.iter().map(|e| e.price_at(currency, depth)).collect()
        };
        let price = match (self, currency) {
            (Self::Sequence(events), _) => sequential(&inner(events)?),
            (Self::Disjoint(events), _) => parallel(&inner(events)?),
            (Self::Free { .. }, _) => Price::zero(),
            (Self::Pure { loss, .. }, Currency::Concentrated) => squared(loss, 2),
            (Self::BoundedRange { loss, .. }, Currency::Concentrated) => squared(loss, 8),
            (Self::Pure { loss, .. } | Self::BoundedRange { loss, .. }, _) => plain(loss),
            (Self::Concentrated { rho, .. }, Currency::Concentrated) => plain(rho),
            (
                Self::Approximate {
                    add_remove,
                    replace_one,
                    ..
                },
                Currency::Approximate,
            ) => Price {
                add_remove: add_remove.clone(),
                replace_one: replace_one.clone(),
            },
            (Self::Concentrated { mechanism, .. }, _) => {
                return Err(AccountingError::Unpayable {
                    mechanism: mechanism.clone(),
                    currency,
                    fix: "it needs a data set whose budget is rho",
                });
            }
            (Self::Approximate { mechanism, .. }, _) => {
                return Err(AccountingError::Unpayable {
                    mechanism: mechanism.clone(),
                    currency,
                    fix: "it needs a data set whose budget is epsilon and delta",
                });
            }
        };
        if price.is_valid() && self.losses_are_valid() {
            return Ok(price);
        }
        Err(AccountingError::OutOfRange {
            name: "loss",
            value: self.name().to_owned(),
            allowed: "at least 0 in every part",
        })
    }

    /// Squaring hides a sign, so leaves are checked before they are priced.
    fn losses_are_valid(&self) -> bool {
        match self {
            Self::Pure { loss, .. }
            | Self::BoundedRange { loss, .. }
            | Self::Concentrated { rho: loss, .. } => [&loss.add_remove, &loss.replace_one]
                .into_iter()
                .flatten()
                .all(|l| *l >= Rational::ZERO),
            _ => true,
        }
    }
}

fn plain(loss: &Both) -> Price {
    let cost = |l: &Option<Rational>| l.clone().map(Cost::pure);
    Price {
        add_remove: cost(&loss.add_remove),
        replace_one: cost(&loss.replace_one),
    }
}

fn squared(loss: &Both, divisor: u8) -> Price {
    let cost = |l: &Option<Rational>| {
        l.as_ref()
            .map(|e| Cost::pure(e * e / Rational::from(divisor)))
    };
    Price {
        add_remove: cost(&loss.add_remove),
        replace_one: cost(&loss.replace_one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_rational;

    fn q(text: &str) -> Rational {
        parse_rational(text).unwrap()
    }

    fn laplace(eps: &str) -> Event {
        Event::Pure {
            mechanism: "count".to_owned(),
            loss: Both::doubled(&q(eps)),
        }
    }

    fn amounts(event: &Event, currency: Currency) -> (Rational, Rational) {
        let price = event.price(currency).unwrap();
        (
            price.add_remove.unwrap().amount,
            price.replace_one.unwrap().amount,
        )
    }

    #[test]
    fn currencies_price_leaves() {
        assert_eq!(amounts(&laplace("0.5"), Currency::Pure), (q("0.5"), q("1")));
        assert_eq!(
            amounts(&laplace("0.5"), Currency::Approximate),
            (q("0.5"), q("1"))
        );
        assert_eq!(
            amounts(&laplace("0.5"), Currency::Concentrated),
            (q("0.125"), q("0.5"))
        );
        let quantile = Event::BoundedRange {
            mechanism: "quantile".to_owned(),
            loss: Both::same(&q("0.5")),
        };
        assert_eq!(amounts(&quantile, Currency::Pure), (q("0.5"), q("0.5")));
        assert_eq!(
            amounts(&quantile, Currency::Concentrated),
            (q("1/32"), q("1/32"))
        );
        let moments = Event::Concentrated {
            mechanism: "moments".to_owned(),
            rho: Both {
                add_remove: Some(q("0.1")),
                replace_one: Some(q("0.2")),
            },
        };
        assert_eq!(
            amounts(&moments, Currency::Concentrated),
            (q("0.1"), q("0.2"))
        );
        let free = Event::Free {
            mechanism: "auc".to_owned(),
        };
        for currency in [
            Currency::Pure,
            Currency::Approximate,
            Currency::Concentrated,
        ] {
            assert_eq!(free.price(currency).unwrap(), Price::zero());
        }
    }

    #[test]
    fn unpayable_leaves_are_refused() {
        let gaussian = Event::Approximate {
            mechanism: "moments".to_owned(),
            add_remove: Some(Cost::approximate(q("1"), q("1e-6"))),
            replace_one: None,
        };
        assert!(gaussian.price(Currency::Approximate).is_ok());
        for currency in [Currency::Pure, Currency::Concentrated] {
            let error = Event::Sequence(vec![laplace("1"), gaussian.clone()])
                .price(currency)
                .unwrap_err();
            assert!(
                matches!(error, AccountingError::Unpayable { .. }),
                "{error}"
            );
        }
        let discrete = Event::Concentrated {
            mechanism: "moments".to_owned(),
            rho: Both::same(&q("0.1")),
        };
        assert!(discrete.price(Currency::Pure).is_err());
        assert!(discrete.price(Currency::Approximate).is_err());
    }

    /// lessons rows 30 and 31: inner charges sum to the declared ε, a mean pays for both its parts.
    #[test]
    fn composites_add_up() {
        let parts = crate::split(&q("0.3"), &[1, 2, 4, 8, 16]);
        let events = parts
            .iter()
            .map(|p| Event::Pure {
                mechanism: "part".to_owned(),
                loss: Both::same(p),
            })
            .collect();
        assert_eq!(
            amounts(&Event::Sequence(events), Currency::Pure),
            (q("0.3"), q("0.3"))
        );
        let mean = Event::Sequence(vec![laplace("0.1"), laplace("0.2")]);
        assert_eq!(amounts(&mean, Currency::Pure), (q("0.3"), q("0.6")));
        let classes = Event::Disjoint(vec![laplace("0.5"), laplace("0.5")]);
        assert_eq!(amounts(&classes, Currency::Pure), (q("0.5"), q("1")));
        // Under zCDP two parts at ε²/2 = .125 (replace-one .5): max(.5, .125 + .125).
        assert_eq!(
            amounts(&classes, Currency::Concentrated),
            (q("0.125"), q("0.5"))
        );
        let nested = Event::Sequence(vec![
            mean,
            classes,
            Event::Free {
                mechanism: "ratio".to_owned(),
            },
        ]);
        assert_eq!(amounts(&nested, Currency::Pure), (q("0.8"), q("1.6")));
        assert_eq!(nested.leaves().len(), 5);
    }

    /// lessons rows 39 and 40: cost is monotone in ε, independent of order, never negative.
    #[test]
    fn costs_are_monotone_ordered_and_not_negative() {
        let mut last = Rational::ZERO;
        for eps in ["1e-9", "0.1", "1", "10", "1e9"] {
            let (now, _) = amounts(&laplace(eps), Currency::Concentrated);
            assert!(now > last);
            last = now;
        }
        let events = [laplace("0.1"), laplace("0.7"), laplace("1/3")];
        let mut reversed = events.to_vec();
        reversed.reverse();
        for currency in [Currency::Pure, Currency::Concentrated] {
            assert_eq!(
                Event::Sequence(events.to_vec()).price(currency),
                Event::Sequence(reversed.clone()).price(currency)
            );
            assert!(laplace("-0.1").price(currency).is_err());
        }
    }

    /// Also lessons row 52: nothing non-finite can be read into a price.
    #[test]
    fn json_round_trips_exactly() {
        let event = Event::Sequence(vec![
            laplace("1/3"),
            Event::Disjoint(vec![Event::Pure {
                mechanism: "exact count".to_owned(),
                loss: Both {
                    add_remove: None,
                    replace_one: Some(Rational::ZERO),
                },
            }]),
            Event::Approximate {
                mechanism: "moments".to_owned(),
                add_remove: Some(Cost::approximate(q("5e-324"), q("1e-6"))),
                replace_one: None,
            },
            Event::Free {
                mechanism: "auc".to_owned(),
            },
        ]);
        let text = serde_json::to_string(&event).unwrap();
        assert!(text.starts_with(
            r#"{"sequence":[{"pure":{"mechanism":"count","loss":{"add_remove":"1/3","replace_one":"2/3"}}}"#
        ));
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
        assert!(
            serde_json::from_str::<Both>(r#"{"add_remove":"NaN","replace_one":null}"#).is_err()
        );
    }

    #[test]
    fn depth_is_bounded() {
        let mut event = laplace("1");
        for _ in 0..63 {
            event = Event::Sequence(vec![event]);
        }
        assert!(event.price(Currency::Pure).is_ok());
        for _ in 0..10 {
            event = Event::Disjoint(vec![event]);
        }
        assert!(matches!(
            event.price(Currency::Pure),
            Err(AccountingError::TooDeep { .. })
        ));
    }
}
