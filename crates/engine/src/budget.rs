//! From the budget written in a plan to the claim paid at the door.

use reticent_accounting::{AccountingError, Cost, Currency, Rational, parse_rational};
use reticent_statistics::zcdp;

use crate::outcome::Refusal;
use crate::parameter::{Delta, Epsilon, Rho};
use crate::plan::{BudgetSpec, ReleaseSpec};

/// A release's payment: the claim in the data set's currency, and the ε, δ or ρ its mechanism may use.
#[derive(Clone, Debug, PartialEq)]
pub struct Payment {
    /// What is debited under the data set's relation.
    pub claim: Cost,
    /// ε for the steps of the mechanism (for Gaussian steps together with `delta`).
    pub epsilon: Rational,
    /// δ for Gaussian steps; zero without.
    pub delta: Rational,
    /// ρ, if the plan named it.
    pub rho: Option<Rational>,
}

/// A cap from the text of its parts; the parts that are given say the currency.
pub fn cap(
    epsilon: Option<&str>,
    delta: Option<&str>,
    rho: Option<&str>,
) -> Result<(Currency, Cost), Refusal> {
    let fix = "Give the whole new cap in the ledger's currency, for example --epsilon 12.";
    let number = |text: &str| parse_rational(text);
    let read = || -> Result<Option<(Currency, Cost)>, AccountingError> {
        Ok(match (epsilon, delta, rho) {
            (Some(e), None, None) => {
                let e = Epsilon::new(number(e)?)?;
                Some((Currency::Pure, Cost::pure(e.rational().clone())))
            }
            (Some(e), Some(d), None) => {
                let (e, d) = (Epsilon::new(number(e)?)?, Delta::new(number(d)?)?);
                let cost = Cost::approximate(e.rational().clone(), d.rational().clone());
                Some((Currency::Approximate, cost))
            }
            (None, None, Some(r)) => {
                let r = Rho::new(number(r)?)?;
                Some((Currency::Concentrated, Cost::pure(r.rational().clone())))
            }
            _ => None,
        })
    };
    match read() {
        Ok(Some(cap)) => Ok(cap),
        Ok(None) => Err(Refusal::request(
            "a cap is given in exactly one currency: epsilon, or epsilon and delta, or rho",
        )
        .accepting(fix)),
        Err(e) => Err(Refusal::request(e.to_string()).accepting(fix)),
    }
}

/// The payment of a release, or why the data set's currency does not allow it.
pub fn payment(currency: Currency, release: &ReleaseSpec) -> Result<Payment, Refusal> {
    let BudgetSpec {
        epsilon,
        delta,
        rho,
    } = &release.budget;
    let refuse = |message: &str, key: &str, fix: &str| {
        Refusal::request(message)
            .at_line(release.line)
            .for_key(format!("release.{key}"))
            .accepting(fix)
    };
    let delta_value = delta
        .as_ref()
        .map_or(Rational::ZERO, |d| d.rational().clone());
    if release.kind.is_free() {
        return Ok(Payment {
            claim: Cost::zero(),
            epsilon: Rational::ZERO,
            delta: Rational::ZERO,
            rho: None,
        });
    }
    match currency {
        Currency::Pure => {
            if delta.is_some() {
                return Err(refuse(
                    "this data set's budget is a pure epsilon",
                    "delta",
                    "Remove delta; the release then uses Laplace noise.",
                ));
            }
            let epsilon = need(epsilon.as_ref(), &refuse)?;
            Ok(Payment {
                claim: Cost::pure(epsilon.clone()),
                epsilon,
                delta: Rational::ZERO,
                rho: None,
            })
        }
        Currency::Approximate => {
            let epsilon = need(epsilon.as_ref(), &refuse)?;
            Ok(Payment {
                claim: Cost::approximate(epsilon.clone(), delta_value.clone()),
                epsilon,
                delta: delta_value,
                rho: None,
            })
        }
        Currency::Concentrated => {
            concentrated(epsilon.as_ref(), delta.is_some(), rho.as_ref(), &refuse)
        }
    }
}

fn need(
    epsilon: Option<&Epsilon>,
    refuse: &impl Fn(&str, &str, &str) -> Refusal,
) -> Result<Rational, Refusal> {
    epsilon.map(|e| e.rational().clone()).ok_or_else(|| {
        refuse(
            "this data set's budget is counted in epsilon",
            "rho",
            "Write epsilon = \"0.5\" instead of rho.",
        )
    })
}

fn concentrated(
    epsilon: Option<&Epsilon>,
    has_delta: bool,
    rho: Option<&Rho>,
    refuse: &impl Fn(&str, &str, &str) -> Refusal,
) -> Result<Payment, Refusal> {
    if has_delta {
        return Err(refuse(
            "this data set's budget is counted in rho",
            "delta",
            "Remove delta and write rho = \"0.01\".",
        ));
    }
    match (epsilon, rho) {
        (_, Some(rho)) => {
            let rho = rho.rational().clone();
            let epsilon = zcdp::epsilon_of_pure(&rho);
            Ok(Payment {
                claim: Cost::pure(rho.clone()),
                epsilon,
                delta: Rational::ZERO,
                rho: Some(rho),
            })
        }
        (Some(epsilon), None) => {
            let epsilon = epsilon.rational().clone();
            let rho = &epsilon * &epsilon / Rational::from(2u8);
            Ok(Payment {
                claim: Cost::pure(rho.clone()),
                epsilon,
                delta: Rational::ZERO,
                rho: Some(rho),
            })
        }
        (None, None) => Err(refuse(
            "the release has no privacy budget",
            "rho",
            "Write rho = \"0.01\".",
        )),
    }
}
