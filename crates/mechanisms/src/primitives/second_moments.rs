//! Second moments Σ zzᵀ in Frobenius-isometric form.

use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId};
use reticent_accounting::{
    Both, Cost, Currency, Event, Rational, Relation, convert_to_replace_one,
};

/// How the noise on second moments is paid.
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
    /// Discrete Laplace on the triangle.
    Pure {
        /// ε
        epsilon: Rational,
    },
}

/// Noisy second moments of z = f·(g, x, y).
#[derive(Clone, Debug, PartialEq)]
pub struct SecondMoments {
    /// Name of the step in receipts.
    pub name: String,
    /// How it is paid.
    pub payment: Payment,
}

/// The released triangle.
#[derive(Clone, Debug, PartialEq)]
pub struct NoisyMoments {
    /// Dimension of z.
    pub dimension: usize,
    /// Upper triangle, row-major, diagonal included, on the scale of z zᵀ.
    pub entries: Vec<f64>,
    /// Standard deviation of the noise on a diagonal entry.
    pub sd_diagonal: f64,
    /// Standard deviation of the noise on an off-diagonal entry.
    pub sd_off_diagonal: f64,
}

impl SecondMoments {
    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        let mechanism = format!("{}: second moments", self.name);
        match (&self.payment, context.relation) {
            (Payment::Approximate { epsilon, delta }, relation) => {
                let cost = Cost::approximate(epsilon.clone(), delta.clone());
                let replaced = match relation {
                    Relation::AddRemove => convert_to_replace_one(&cost, Currency::Approximate),
                    Relation::ReplaceOne => cost.clone(),
                };
                Event::Approximate {
                    mechanism,
                    add_remove: Some(cost),
                    replace_one: Some(replaced),
                }
            }
            (Payment::Concentrated { rho }, Relation::AddRemove) => Event::Concentrated {
                mechanism,
                rho: Both::doubled(rho),
            },
            (Payment::Concentrated { rho }, Relation::ReplaceOne) => Event::Concentrated {
                mechanism,
                rho: Both::same(rho),
            },
            (Payment::Pure { epsilon }, Relation::AddRemove) => Event::Pure {
                mechanism,
                loss: Both::doubled(epsilon),
            },
            (Payment::Pure { epsilon }, Relation::ReplaceOne) => Event::Pure {
                mechanism,
                loss: Both::same(epsilon),
            },
        }
    }
}

impl Desk<'_> {
    /// Buys the noisy second moments of a moments fold.
    pub fn second_moments(
        &mut self,
        fold: FoldId,
        step: &SecondMoments,
    ) -> Result<NoisyMoments, DeskError> {
        self.charge(&step.event(self.context))?;
        let _ = self.state(fold)?;
        Err(DeskError::Misuse("not yet".to_owned()))
    }
}
