//! Second moments by the norm mechanism: pure ε with noise in proportion to the Frobenius norm.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "rational arithmetic with positive divisors, checked"
)]

use dashu::integer::UBig;
use reticent_accounting::{Event, Rational, rational_to_f64};
use reticent_noise::GammaNorm;

use super::NoisyMoments;
use super::payment::{budget, calibrated};
use super::second_moments::Shape;
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId};
use crate::fold::Fold;

/// 1/c with the dyadic c = 181/128, just below √2: the weight of an off-diagonal entry.
const DIAGONAL: i128 = 128;
const OFF_DIAGONAL: i128 = 181;

/// Noisy second moments Σ zzᵀ of z = f·(g, x, y), pure ε.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let step = NormMoments { name: "ages".to_owned(), epsilon: Rational::from(40u8) };
/// let fold = Fold::Moments {
///     terms: 0..1,
///     response: None,
///     shorten: Shorten { intercept: 0.5, squared_norm: 0.5 },
///     bits: 20,
/// };
/// // from [0, 1000] to [-1/2, 1/2]
/// let scaled = Expr::Column(0).mul(Expr::Constant(0.001)).add(Expr::Constant(-0.5));
/// let ages = (0..1000).map(f64::from).collect();
/// let noisy = buy_terms(Some(fold), vec![scaled], vec![ages], step.event(&context()), |desk, fold| {
///     desk.norm_moments(fold, &step)
/// });
/// // the sums of 1/4, of z/2 and of z^2, for z even on [-1/2, 1/2]
/// assert!((noisy.entries[0] - 250.0).abs() < 5.0);
/// assert!(noisy.entries[1].abs() < 5.0);
/// assert!((noisy.entries[2] - 1000.0 / 12.0).abs() < 5.0);
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit. Calibrated for replace-one, add/remove costs no more; calibrated for
/// add/remove, replace-one costs at most 2ε.
/// # Assumptions
/// Those of [`SecondMoments`](super::SecondMoments) on the fold.
/// # Sensitivity
/// Let u(M) hold the diagonal entries M_ii and c·M_ij for i < j. As c² < 2, ‖u(M)‖ ≤ ‖M‖_F, hence u moves by at most
/// Δ = Q under add/remove and √2·Q under replace-one (the Frobenius bounds of `SecondMoments`); k times that for a unit of k.
/// # Noise
/// u + v, v of density ∝ e^(−ε‖v‖/Δ) in p′ = p(p+1)/2 dimensions (Gamma(p′, Δ/ε) norm, uniform direction). The density of u + v at
/// any point changes by at most e^(ε‖Δu‖/Δ) ≤ e^ε (triangle inequality).
/// # Composition
/// One joint draw. A replacement is two add/remove changes.
/// # Arithmetic
/// M is an integer in units of 4^−bits, so u is an integer in units of 4^−bits/128: the exact reason for a
/// dyadic c. v is drawn rounded coordinate by coordinate to those units, so what leaves is the rounding of the
/// ideal u + v, a post-processing of it; dividing by c comes after. Δ/ε is an exact rational from upper bounds.
/// Fewer than 2^60 records, so that 181·M stays within 128 bits.
/// # Checked by
/// `models::{norm_moments_distances, weaker_noise_is_flagged, norm_moments_noise_has_the_law}`
/// # References
/// `decisions.md` §5.5 (c), §2.7; Hardt and Talwar 2010.
#[derive(Clone, Debug, PartialEq)]
pub struct NormMoments {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the step.
    pub epsilon: Rational,
}

impl NormMoments {
    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        Event::Pure {
            mechanism: format!("{}: second moments, norm mechanism", self.name),
            loss: calibrated(&self.epsilon, context),
        }
    }

    /// The noise on u in units of 4^−bits/128, or why the step cannot be bought.
    pub fn vector(&self, fold: &Fold, context: &Context) -> Result<GammaNorm, DeskError> {
        let shape = Shape::of(fold)?;
        let epsilon = budget(&self.name, &self.epsilon)?;
        let units = Rational::from(UBig::ONE << (shape.bits as usize).saturating_mul(2));
        let moved = shape.frobenius(context.relation)
            * Rational::from(context.rows_per_unit.max(1))
            * units
            * Rational::from(DIAGONAL);
        let p = shape.dimension;
        Ok(GammaNorm {
            dimension: p.saturating_mul(p.saturating_add(1)) / 2,
            scale: moved / epsilon,
            bits: 0,
        })
    }

    /// Standard deviations of the noise on a diagonal and an off-diagonal entry of Σ zzᵀ.
    pub fn deviations(&self, fold: &Fold, context: &Context) -> Result<(f64, f64), DeskError> {
        let (law, shape) = (self.vector(fold, context)?, Shape::of(fold)?);
        // E‖v‖² = p′(p′ + 1)τ², spread evenly over the coordinates.
        #[allow(clippy::cast_precision_loss, reason = "a small number of coordinates")]
        let one = rational_to_f64(&law.scale) * libm::sqrt(law.dimension as f64 + 1.0);
        let unit = unit(shape.bits);
        Ok((one * unit / 128.0, one * unit / 181.0))
    }
}

fn unit(bits: u32) -> f64 {
    libm::ldexp(1.0, i32::try_from(bits).unwrap_or(0).saturating_mul(-2))
}

impl Desk<'_> {
    /// Buys the noisy second moments of a moments fold.
    pub fn norm_moments(
        &mut self,
        fold: FoldId,
        step: &NormMoments,
    ) -> Result<NoisyMoments, DeskError> {
        let (fold, state) = self.state(fold)?;
        let law = step.vector(&fold, self.context)?;
        let (sd_diagonal, sd_off_diagonal) = step.deviations(&fold, self.context)?;
        let shape = Shape::of(&fold)?;
        self.charge(&step.event(self.context))?;
        let mut noise = self.noise.vector(&law).into_iter();
        let mut sums = state.0.iter();
        let mut entries = Vec::with_capacity(state.0.len());
        for i in 0..shape.dimension {
            for j in i..shape.dimension {
                let weight = if i == j { DIAGONAL } else { OFF_DIAGONAL };
                let sum = sums.next().map_or(0, |m| m.saturating_mul(weight));
                let noisy = sum.saturating_add(noise.next().unwrap_or(0));
                #[allow(clippy::cast_precision_loss, reason = "an already noisy value")]
                entries.push(noisy as f64 / weight as f64 * unit(shape.bits));
            }
        }
        self.record_as(
            &format!("{}: triangle", step.name),
            "uniform direction, Gamma norm, scale",
            rational_to_f64(&law.scale) * unit(shape.bits) / 128.0,
        );
        Ok(NoisyMoments {
            dimension: shape.dimension,
            entries,
            sd_diagonal,
            sd_off_diagonal,
        })
    }
}
