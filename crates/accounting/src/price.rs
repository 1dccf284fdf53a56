//! Costs, prices under both neighbour relations, and how they compose.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "rational arithmetic cannot overflow and nothing here divides"
)]

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::number::{self, Rational};
use crate::{Currency, Relation, exp, format_rational};

/// A privacy loss in one currency: `amount` is ε or ρ, `delta` is 0 except in
/// [`Currency::Approximate`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cost {
    /// ε, or ρ in [`Currency::Concentrated`].
    #[serde(with = "number::text")]
    pub amount: Rational,
    /// δ.
    #[serde(with = "number::text")]
    pub delta: Rational,
}

/// The fields of a cost as they stand in `release.json` and `dataset.toml`: `epsilon`, `epsilon`
/// and `delta`, or `rho`, each an exact decimal or fraction.
pub type CostFields = BTreeMap<String, String>;

impl Cost {
    /// No loss at all.
    pub fn zero() -> Self {
        Self {
            amount: Rational::ZERO,
            delta: Rational::ZERO,
        }
    }

    /// A loss without δ: pure ε, or ρ.
    pub fn pure(amount: Rational) -> Self {
        Self {
            amount,
            delta: Rational::ZERO,
        }
    }

    /// ε and δ.
    pub fn approximate(amount: Rational, delta: Rational) -> Self {
        Self { amount, delta }
    }

    /// Whether both parts are 0.
    pub fn is_zero(&self) -> bool {
        self.amount.is_zero() && self.delta.is_zero()
    }

    /// Whether neither part is negative.
    pub fn is_valid(&self) -> bool {
        self.amount >= Rational::ZERO && self.delta >= Rational::ZERO
    }

    /// Part-by-part comparison: both parts are at most the other's.
    pub fn within(&self, cap: &Self) -> bool {
        self.amount <= cap.amount && self.delta <= cap.delta
    }

    /// Sequential composition of two losses: parts add.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            amount: &self.amount + &other.amount,
            delta: &self.delta + &other.delta,
        }
    }

    /// What remains of `self` after `spent`, each part at least 0.
    #[must_use]
    pub fn minus(&self, spent: &Self) -> Self {
        Self {
            amount: (&self.amount - &spent.amount).max(Rational::ZERO),
            delta: (&self.delta - &spent.delta).max(Rational::ZERO),
        }
    }

    /// The larger of each part.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            amount: self.amount.clone().max(other.amount.clone()),
            delta: self.delta.clone().max(other.delta.clone()),
        }
    }

    /// The fields under the names of `currency`.
    pub fn to_json(&self, currency: Currency) -> CostFields {
        let mut fields = CostFields::new();
        let name = if currency == Currency::Concentrated {
            "rho"
        } else {
            "epsilon"
        };
        fields.insert(name.to_owned(), format_rational(&self.amount));
        if currency == Currency::Approximate {
            fields.insert("delta".to_owned(), format_rational(&self.delta));
        }
        fields
    }

    /// Whether this can be a budget counted in `currency`: every part of the currency positive, δ below 1.
    pub fn is_budget(&self, currency: Currency) -> bool {
        let delta_fits = if currency == Currency::Approximate {
            self.delta > Rational::ZERO && self.delta < Rational::ONE
        } else {
            self.delta.is_zero()
        };
        self.amount > Rational::ZERO && delta_fits
    }

    /// The cost in words, for messages: `epsilon 0.5`, `epsilon 0.5 and delta 1e-6`, `rho 0.1`.
    pub fn describe(&self, currency: Currency) -> String {
        let amount = format_rational(&self.amount);
        match currency {
            Currency::Pure => format!("epsilon {amount}"),
            Currency::Concentrated => format!("rho {amount}"),
            Currency::Approximate => format!(
                "epsilon {amount} and delta {}",
                format_rational(&self.delta)
            ),
        }
    }
}

/// What something costs under each neighbour relation; `None` is an unbounded loss.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Price {
    /// The cost when one unit is added or removed.
    pub add_remove: Option<Cost>,
    /// The cost when one unit is replaced.
    pub replace_one: Option<Cost>,
}

impl Price {
    /// No loss under either relation.
    pub fn zero() -> Self {
        Self {
            add_remove: Some(Cost::zero()),
            replace_one: Some(Cost::zero()),
        }
    }

    /// The cost under one relation; `None` if it is unbounded.
    pub fn under(&self, relation: Relation) -> Option<&Cost> {
        match relation {
            Relation::AddRemove => self.add_remove.as_ref(),
            Relation::ReplaceOne => self.replace_one.as_ref(),
        }
    }

    /// The fields of both relations for `release.json`; `None` is written as `null`.
    pub fn to_json(&self, currency: Currency) -> BTreeMap<String, Option<CostFields>> {
        [Relation::AddRemove, Relation::ReplaceOne]
            .into_iter()
            .map(|r| (r.to_string(), self.under(r).map(|c| c.to_json(currency))))
            .collect()
    }

    /// Whether no part of a bounded cost is negative.
    pub fn is_valid(&self) -> bool {
        [&self.add_remove, &self.replace_one]
            .into_iter()
            .flatten()
            .all(Cost::is_valid)
    }
}

/// The price of several releases over the same rows.
///
/// # Composition
/// Losses add part by part under each relation; an unbounded loss absorbs everything. Budgets may
/// be chosen from earlier outputs: on every transcript the likelihood ratio is a product of
/// conditional ratios, each bounded by its own budget.
/// # Checked by
/// `price::tests::sequential_adds_and_unbounded_absorbs`
pub fn sequential(prices: &[Price]) -> Price {
    prices.iter().fold(Price::zero(), |total, price| Price {
        add_remove: total
            .add_remove
            .zip(price.add_remove.as_ref())
            .map(|(a, b)| a.plus(b)),
        replace_one: total
            .replace_one
            .zip(price.replace_one.as_ref())
            .map(|(a, b)| a.plus(b)),
    })
}

/// The price of releases over disjoint row sets to which each record is routed by its own content.
///
/// # Claim
/// Add/remove: the largest branch. Replace-one: the largest of every branch's own replace-one
/// cost, every branch's add/remove cost, and the sum of the add/remove costs of every two
/// branches. For (ε, δ) the sum is (εᵢ+εⱼ, δᵢ·e^{εⱼ}+δⱼ) in the worse order, e^ε rounded up. Parts
/// of a cost are maximised separately, which can only overstate.
/// # Sensitivity
/// Adding or removing a record touches one branch. A replaced record stays in its branch, or
/// leaves one and enters another, or moves to or from rows that no branch reads: the second case
/// removes from one and adds to the other, the third is one add/remove step.
/// # Assumptions
/// Part sizes are private: a branch whose add/remove loss is unbounded (an exact count) is
/// unbounded here under both relations.
/// # Checked by
/// `price::tests::{hash_split_golden, parallel_cross_terms_with_delta, exact_counts_are_unbounded_inside_a_part}`
pub fn parallel(prices: &[Price]) -> Price {
    let add_remove: Option<Vec<&Cost>> = prices.iter().map(|p| p.add_remove.as_ref()).collect();
    let replace_one: Option<Vec<&Cost>> = prices.iter().map(|p| p.replace_one.as_ref()).collect();
    let largest = |costs: &[&Cost]| {
        costs
            .iter()
            .fold(Cost::zero(), |worst, cost| worst.or(cost))
    };
    Price {
        replace_one: add_remove
            .as_ref()
            .zip(replace_one)
            .map(|(ar, own)| largest(&own).or(&largest(ar)).or(&worst_pair(ar))),
        add_remove: add_remove.map(|ar| largest(&ar)),
    }
}

/// The replace-one loss implied by an add/remove loss (remove, then add); never the other way.
///
/// ε → 2ε, ρ → 4ρ, (ε, δ) → (2ε, (1+e^ε)δ) with e^ε rounded up and δ capped at 1, where the
/// statement is empty. Use the exact replace-one number of a mechanism where it is known.
pub fn convert_to_replace_one(cost: &Cost, currency: Currency) -> Cost {
    let factor = Rational::from(if currency == Currency::Concentrated {
        4
    } else {
        2
    });
    Cost {
        amount: &cost.amount * factor,
        delta: amplified(&cost.delta, &cost.amount, &cost.delta),
    }
}

/// The worst sum over two different branches, each in the worse order.
fn worst_pair(costs: &[&Cost]) -> Cost {
    let mut once = BTreeSet::new();
    let twice: BTreeSet<&Cost> = costs.iter().copied().filter(|c| !once.insert(*c)).collect();
    let mut worst = Cost::zero();
    for a in &once {
        for b in &once {
            if a != b || twice.contains(a) {
                worst = worst.or(&Cost {
                    amount: &a.amount + &b.amount,
                    delta: amplified(&a.delta, &b.amount, &b.delta),
                });
            }
        }
    }
    worst
}

/// min(1, δ·e^ε + δ′) with e^ε rounded up; exactly δ′ when δ = 0.
fn amplified(delta: &Rational, epsilon: &Rational, other: &Rational) -> Rational {
    if delta.is_zero() {
        return other.clone();
    }
    match exp::exp_upper(epsilon) {
        Ok(factor) => (delta * factor + other).min(Rational::ONE),
        Err(_) => Rational::ONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_rational;

    fn q(text: &str) -> Rational {
        parse_rational(text).unwrap()
    }

    fn price(add_remove: &str, replace_one: &str) -> Price {
        Price {
            add_remove: Some(Cost::pure(q(add_remove))),
            replace_one: Some(Cost::pure(q(replace_one))),
        }
    }

    #[test]
    fn sequential_adds_and_unbounded_absorbs() {
        let total = sequential(&[price("0.1", "0.2"), price("0.3", "0.3"), Price::zero()]);
        assert_eq!(total, price("0.4", "0.5"));
        let exact_count = Price {
            add_remove: None,
            replace_one: Some(Cost::zero()),
        };
        let total = sequential(&[price("0.1", "0.2"), exact_count]);
        assert_eq!(
            total,
            Price {
                add_remove: None,
                replace_one: Some(Cost::pure(q("0.2")))
            }
        );
        assert_eq!(sequential(&[]), Price::zero());
    }

    /// decisions.md golden 14: hash split, counts at ε .4 and .6, replace-one across is 1.0;
    /// lessons row 38: disjoint parts charge the maximum under add/remove.
    #[test]
    fn hash_split_golden() {
        let total = parallel(&[price("0.4", "0.8"), price("0.6", "0.9")]);
        assert_eq!(total, price("0.6", "1"));
        assert_eq!(
            parallel(&[price("0.4", "0.8"), price("0.1", "0.2")]),
            price("0.4", "0.8")
        );
        assert_eq!(
            parallel(&[price("0.5", "0.5"), price("0.5", "0.5")]),
            price("0.5", "1")
        );
        assert_eq!(parallel(&[]), Price::zero());
    }

    /// Order never matters, and a part more never costs less.
    #[test]
    fn parallel_is_symmetric_and_monotone() {
        let parts = [
            price("0.4", "0.7"),
            price("0.25", "0.5"),
            price("0.3", "0.65"),
            price("0.3", "0.3"),
        ];
        let whole = parallel(&parts);
        assert_eq!(whole, price("0.4", "0.7"));
        let mut reversed = parts.to_vec();
        reversed.reverse();
        assert_eq!(parallel(&reversed), whole);
        for n in 0..parts.len() {
            let less = parallel(&parts[..n]);
            assert!(
                less.add_remove
                    .unwrap()
                    .within(whole.add_remove.as_ref().unwrap())
            );
            assert!(
                less.replace_one
                    .unwrap()
                    .within(whole.replace_one.as_ref().unwrap())
            );
        }
    }

    /// lessons row 41: a count that looks public is private inside a part.
    #[test]
    fn exact_counts_are_unbounded_inside_a_part() {
        let exact_count = Price {
            add_remove: None,
            replace_one: Some(Cost::zero()),
        };
        let total = parallel(&[exact_count, price("0.1", "0.2")]);
        assert_eq!(
            total,
            Price {
                add_remove: None,
                replace_one: None
            }
        );
        // A lone part can lose its record to rows no part reads: its add/remove cost counts.
        assert_eq!(parallel(&[price("0.4", "0.1")]), price("0.4", "0.4"));
    }

    #[test]
    fn parallel_cross_terms_with_delta() {
        let part = |eps: &str, delta: &str| {
            let cost = Some(Cost::approximate(q(eps), q(delta)));
            Price {
                add_remove: cost.clone(),
                replace_one: cost,
            }
        };
        let total = parallel(&[part("1", "1e-6"), part("2", "1e-7")])
            .replace_one
            .unwrap();
        assert_eq!(total.amount, q("3"));
        // The worse order multiplies 1e-6 by e²: 7.389…e-6 + 1e-7 (the other gives 1.27e-6).
        let golden = 2_f64.exp() * 1e-6 + 1e-7;
        let delta = crate::rational_to_f64(&total.delta);
        assert!((delta - golden).abs() < 1e-15 && delta >= golden * (1.0 - 1e-15));
        let huge = parallel(&[part("1e9", "0.5"), part("1e9", "0.5")])
            .replace_one
            .unwrap();
        assert_eq!(huge.delta, Rational::ONE);
    }

    #[test]
    fn conversion_to_replace_one() {
        let pure = convert_to_replace_one(&Cost::pure(q("0.5")), Currency::Pure);
        assert_eq!(pure, Cost::pure(q("1")));
        let rho = convert_to_replace_one(&Cost::pure(q("0.5")), Currency::Concentrated);
        assert_eq!(rho, Cost::pure(q("2")));
        let both =
            convert_to_replace_one(&Cost::approximate(q("1"), q("1e-6")), Currency::Approximate);
        assert_eq!(both.amount, q("2"));
        let exact = q("1e-6") * (Rational::ONE + q("2.71828182845904523536"));
        assert!(both.delta > exact && both.delta < exact * q("1.0000000001"));
    }

    #[test]
    fn fields_follow_the_currency() {
        let cost = Cost::approximate(q("1/3"), q("1e-6"));
        let fields = |currency| cost.to_json(currency).into_iter().collect::<Vec<_>>();
        let pair = |key: &str, text: &str| (key.to_owned(), text.to_owned());
        assert_eq!(fields(Currency::Pure), [pair("epsilon", "1/3")]);
        assert_eq!(fields(Currency::Concentrated), [pair("rho", "1/3")]);
        assert_eq!(
            fields(Currency::Approximate),
            [pair("delta", "1e-6"), pair("epsilon", "1/3")]
        );
    }

    #[test]
    fn budgets_are_positive_in_every_part() {
        let fits = |amount: &str, delta: &str, currency| {
            Cost::approximate(q(amount), q(delta)).is_budget(currency)
        };
        for currency in [Currency::Pure, Currency::Concentrated] {
            assert!(fits("1/3", "0", currency) && fits("1e-300", "0", currency));
            assert!(!fits("0", "0", currency) && !fits("-1", "0", currency));
            assert!(!fits("1", "1e-9", currency));
        }
        assert!(fits("10", "1e-7", Currency::Approximate));
        for (amount, delta) in [
            ("0", "1e-7"),
            ("-1", "1e-7"),
            ("1", "0"),
            ("1", "1"),
            ("1", "-1"),
        ] {
            assert!(!fits(amount, delta, Currency::Approximate));
        }
    }
}
