//! What additive noise is paid with, and the noise that follows from the sensitivities.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "rational arithmetic; divisors are checked to be positive"
)]

use reticent_accounting::exp::sqrt_upper;
use reticent_accounting::{
    Both, Cost, Currency, Event, Rational, Relation, convert_to_replace_one, gaussian,
};
use reticent_noise::{Lattice, Scale};

use crate::context::Context;
use crate::desk::{DeskError, misuse};

/// The noise of a scale.
pub(super) type Law = fn(Scale) -> Lattice;

/// How additive noise is paid.
#[derive(Clone, Debug, PartialEq)]
pub enum Payment {
    /// Rounded continuous Gaussian by the analytic curve.
    Approximate {
        /// ε
        epsilon: Rational,
        /// δ
        delta: Rational,
    },
    /// Discrete Gaussian.
    Concentrated {
        /// ρ
        rho: Rational,
    },
    /// Discrete Laplace.
    Pure {
        /// ε
        epsilon: Rational,
    },
}

impl Payment {
    /// The price of noise calibrated for the context's relation: `both` gives the losses of ε or ρ under both relations; with δ, replace-one
    /// follows from the general conversion, and add/remove costs at most what replace-one does.
    pub(super) fn event(
        &self,
        mechanism: String,
        context: &Context,
        both: fn(&Rational, &Context) -> Both,
    ) -> Event {
        match self {
            Self::Approximate { epsilon, delta } => {
                let cost = Cost::approximate(epsilon.clone(), delta.clone());
                let replaced = match context.relation {
                    Relation::AddRemove => convert_to_replace_one(&cost, Currency::Approximate),
                    Relation::ReplaceOne => cost.clone(),
                };
                Event::Approximate {
                    mechanism,
                    add_remove: Some(cost),
                    replace_one: Some(replaced),
                }
            }
            Self::Concentrated { rho } => Event::Concentrated {
                mechanism,
                rho: both(rho, context),
            },
            Self::Pure { epsilon } => Event::Pure {
                mechanism,
                loss: both(epsilon, context),
            },
        }
    }

    /// The noise and its exact scale, before rounding up.
    ///
    /// # Claim
    /// Pure: discrete Laplace of scale L1/ε is ε-DP for integer statistics that move by at most L1. Concentrated: discrete Gaussian of
    /// σ ≥ L2/√(2ρ) on every coordinate is ρ-zCDP. Approximate: rounded Gaussian of the analytic σ(ε, δ, L2) is (ε, δ)-DP. `l2`
    /// gives (f, q) with L2 = f·√q. Only the sensitivity that is needed is asked for.
    /// # Arithmetic
    /// Roots are rounded up. A discrete Gaussian satisfies the zCDP formula exactly for integer shifts; adding a correctly rounded
    /// Gaussian to an integer is rounding the ideal output, hence post-processing of it.
    /// # Checked by
    /// `linear::gaussian_strategies`, `item_counts::item_counts_matrix`, `second_moments::tests::scales_follow_the_formulas`
    pub(super) fn noise(
        &self,
        step: &str,
        l1: impl FnOnce() -> Result<Rational, DeskError>,
        l2: impl FnOnce() -> Result<(Rational, Rational), DeskError>,
    ) -> Result<(Rational, Law), DeskError> {
        Ok(match self {
            Self::Pure { epsilon } => {
                let epsilon = budget(step, epsilon)?;
                (l1()? / epsilon, Lattice::Laplace)
            }
            Self::Concentrated { rho } => {
                let twice = budget(step, rho)? * Rational::from(2u8);
                let (factor, squared) = l2()?;
                let sigma = factor * sqrt_upper(&(squared / twice));
                (sigma, Lattice::DiscreteGaussian)
            }
            Self::Approximate { epsilon, delta } => {
                let (epsilon, delta) = (budget(step, epsilon)?, budget(step, delta)?);
                let (factor, squared) = l2()?;
                let sigma = gaussian::sigma(epsilon, delta, &(factor * sqrt_upper(&squared)))?;
                (sigma, Lattice::RoundedGaussian)
            }
        })
    }
}

/// Refuses to divide by a budget of nothing.
pub(super) fn budget<'a>(step: &str, paid: &'a Rational) -> Result<&'a Rational, DeskError> {
    if *paid > Rational::ZERO {
        return Ok(paid);
    }
    Err(misuse(format!("{step}: no budget, or too little to split")))
}

/// The scale of Laplace or geometric noise for ε per unit of k records: sensitivity/(ε/k), rounded up.
pub(super) fn scale(
    step: &str,
    sensitivity: &Rational,
    epsilon: &Rational,
    context: &Context,
) -> Result<Scale, DeskError> {
    let e = context.per_record(epsilon);
    Ok(Scale::at_least(&(sensitivity / budget(step, &e)?))?)
}

/// Losses of additive noise calibrated for the context's relation when an add/remove change touches one
/// unit of sensitivity and a replacement at most two.
pub(super) fn additive(epsilon: &Rational, context: &Context) -> Both {
    match context.relation {
        Relation::AddRemove => Both::doubled(epsilon),
        Relation::ReplaceOne => Both {
            add_remove: Some(epsilon / Rational::from(2u8)),
            replace_one: Some(epsilon.clone()),
        },
    }
}

/// Losses of a step calibrated for the context's relation: replace-one at most twice add/remove, add/remove at most replace-one.
pub(super) fn calibrated(epsilon: &Rational, context: &Context) -> Both {
    match context.relation {
        Relation::AddRemove => Both::doubled(epsilon),
        Relation::ReplaceOne => Both::same(epsilon),
    }
}
