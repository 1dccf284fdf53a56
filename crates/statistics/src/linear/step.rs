//! Which paid step buys the second moments.

use reticent_accounting::Event;
use reticent_laws::Law;
use reticent_mechanisms::fold::Fold;
use reticent_mechanisms::primitives::{NoisyMoments, NormMoments, Payment, SecondMoments};
use reticent_mechanisms::{Context, Desk, DeskError, FoldId};

use crate::common::StatisticsError;

const NAME: &str = "second moments";

/// Noise on second moments that are paid in pure ε (other budgets buy Gaussian noise).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PureNoise {
    /// Whichever puts less noise on an off-diagonal entry; both are known from public numbers (the default).
    #[default]
    Auto,
    /// Laplace on the triangle.
    Laplace,
    /// The norm mechanism: noise in proportion to the Frobenius norm. Better from a few columns on.
    Norm,
}

/// The paid step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Entries(SecondMoments),
    Norm(NormMoments),
}

impl Step {
    /// Entry by entry: Gaussian, or Laplace for pure ε.
    pub(crate) fn laplace(payment: Payment) -> Self {
        Self::Entries(SecondMoments {
            name: NAME.to_owned(),
            payment,
        })
    }

    /// The step that a choice of noise means for a fold.
    pub(crate) fn choose(&self, noise: PureNoise, fold: &Fold, context: &Context) -> Self {
        let Self::Entries(SecondMoments {
            payment: Payment::Pure { epsilon },
            ..
        }) = self
        else {
            return self.clone();
        };
        let norm = NormMoments {
            name: NAME.to_owned(),
            epsilon: epsilon.clone(),
        };
        let better = || {
            let by_norm = norm.deviations(fold, context).map(|d| d.1);
            let by_entry = self.deviations(fold, context).map(|d| d.1);
            matches!((by_norm, by_entry), (Ok(a), Ok(b)) if a < b)
        };
        match noise {
            PureNoise::Norm => Self::Norm(norm),
            PureNoise::Auto if better() => Self::Norm(norm),
            PureNoise::Laplace | PureNoise::Auto => self.clone(),
        }
    }

    pub(crate) fn event(&self, context: &Context) -> Event {
        match self {
            Self::Entries(step) => step.event(context),
            Self::Norm(step) => step.event(context),
        }
    }

    /// Standard deviations of the noise on a diagonal and an off-diagonal entry of Σ zzᵀ.
    pub(crate) fn deviations(
        &self,
        fold: &Fold,
        context: &Context,
    ) -> Result<(f64, f64), DeskError> {
        match self {
            Self::Norm(step) => step.deviations(fold, context),
            Self::Entries(step) => {
                let (diagonal, off) = step.lattices(fold, context)?;
                let unit = match fold {
                    Fold::Moments { bits, .. } => (-2.0 * f64::from(*bits)).exp2(),
                    _ => 1.0,
                };
                Ok((diagonal.std_dev() * unit, off.std_dev() * unit))
            }
        }
    }

    /// Refuses what cannot be calibrated, before anything is bought.
    pub(crate) fn check(
        &self,
        fold: &Fold,
        context: &Context,
        payment: &Payment,
    ) -> Result<(f64, f64), StatisticsError> {
        self.deviations(fold, context)
            .map_err(|reason| StatisticsError::Parameter {
                name: "budget",
                value: format!("{payment:?}"),
                fix: format!("it cannot be calibrated ({reason})"),
            })
    }

    pub(crate) fn buy(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<NoisyMoments, DeskError> {
        match self {
            Self::Entries(step) => desk.second_moments(fold, step),
            Self::Norm(step) => desk.norm_moments(fold, step),
        }
    }
}
