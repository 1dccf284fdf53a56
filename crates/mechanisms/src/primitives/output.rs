//! Output perturbation for logistic regression: a certified minimiser, then noise.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "rational arithmetic; divisors are positive and checked by the calibration"
)]

use reticent_accounting::{Event, Rational, rational_to_f64};
use reticent_noise::GammaNorm;

use super::Objective;
use crate::context::Context;
use crate::desk::{Desk, DeskError};
use crate::numeric::certificate::{Problem, value};
use crate::numeric::rows::{Rows, WEIGHT_BITS};

/// Penalised logistic regression by output perturbation; rows, penalty and ε are described as for [`Objective`].
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let terms = vec![
///     // from [0, 1000] to [-1/2, 1/2]
///     Expr::Column(0).mul(Expr::Constant(0.001)).add(Expr::Constant(-0.5)),
///     Expr::Column(1).clamp(Interval { lower: 0.0, upper: 1.0 }),
/// ];
/// let fit = Objective {
///     name: "sick".to_owned(),
///     epsilon: Rational::from(40u8),
///     covariates: 0..1,
///     outcome: 1,
///     intercept: None,
///     radius: 0.5,
///     penalty: Rational::from(1u8),
/// };
/// let ages: Vec<f64> = (0..1000).map(f64::from).collect();
/// let sick = ages.iter().map(|a| if *a > 500.0 { 1.0 } else { 0.0 }).collect();
/// let step = OutputPerturbation(fit);
/// let released = buy_terms(None, terms, vec![ages, sick], step.event(&context()), |desk, _| {
///     desk.output_perturbation(&step)
/// });
/// assert!(released[0] > 5.0); // the old are sick
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit. Calibrated for add/remove, replace-one costs at most 2ε; calibrated
/// for replace-one, add/remove costs at most ε.
/// # Assumptions
/// Those of [`Objective`] (row norm ≤ R with the intercept coordinate; Λ, R, ε public).
/// # Sensitivity
/// J_D(w) = Σ log(1 + e^(−y w·x̃)) + (Λ/2)‖w‖² is Λ-strongly convex with minimiser w_D, so Λ‖w_D − w_D′‖ ≤ ‖∇J_D(w_D′)‖ =
/// ‖∇J_D(w_D′) − ∇J_D′(w_D′)‖ ≤ R under add/remove and 2R under replace-one (one record's gradient has norm ≤ R).
/// The solver stops at w̃ with ‖∇J_D(w̃)‖ ≤ γ, so ‖w̃ − w_D‖ ≤ γ/Λ, and w̃ moves by at most (R + 2γ)/Λ or (2R + 2γ)/Λ.
/// # Noise
/// η of density ∝ e^(−‖η‖/τ), τ = (R + 2γ)/(Λε) or (2R + 2γ)/(Λε), γ = 10⁻⁹R: the norm is Gamma(p, τ), p the number of
/// coefficients. The density of w̃ + η changes by at most e^(‖Δw̃‖/τ) = e^ε.
/// # Composition
/// One draw. A unit of k records: k changes at ε/k each. With τ for replace-one an add/remove change costs
/// ε(R + 2γ)/(2R + 2γ) ≤ ε; with τ for add/remove a replacement costs ε(2R + 2γ)/(R + 2γ) ≤ 2ε.
/// # Arithmetic
/// As in [`Objective`]: exact rows and certificate (`numeric::certificate::Problem::minimise` with b = 0), R rounded up, w̃ on
/// the lattice 2^−78 and w̃ + η the rounding of the ideal sum to it. Stricter than needed, the calibration also
/// asks for a penalty that objective perturbation could use, which keeps the solver within its proved range.
/// # Checked by
/// `models::{output_perturbation_distances, weaker_noise_is_flagged, output_noise_off_is_the_penalised_fit}`
/// # References
/// `privacy.md` §13.4; Chaudhuri, Monteleoni, Sarwate 2011, Algorithm 1; Wu et al. 2017.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputPerturbation(pub Objective);

impl OutputPerturbation {
    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        let mut event = self.0.event(context);
        if let Event::Pure { mechanism, .. } = &mut event {
            *mechanism = format!("{}: output perturbation", self.0.name);
        }
        event
    }

    /// τ, the scale of the noise, or why the step cannot be bought. Public inputs only.
    pub fn scale(&self, context: &Context) -> Result<Rational, DeskError> {
        let constants = self.0.calibration(context)?;
        let moved = &constants.radius * Rational::from(context.touches())
            + Rational::from(2u8) * &constants.tolerance;
        Ok(moved / (&self.0.penalty * context.per_record(&self.0.epsilon)))
    }
}

impl Desk<'_> {
    /// Buys a logistic fit by output perturbation; needs one pass (the rows are held in memory).
    pub fn output_perturbation(
        &mut self,
        step: &OutputPerturbation,
    ) -> Result<Vec<f64>, DeskError> {
        let (fit, scale) = (&step.0, step.scale(self.context)?);
        let constants = fit.calibration(self.context)?;
        self.bounds(fit.outcome)?;
        self.bounds(fit.covariates.end.saturating_sub(1))?;
        self.charge(&step.event(self.context))?;
        let held = self.hold()?;
        let rows = Rows::new(
            &held,
            fit.covariates.clone(),
            fit.outcome,
            fit.intercept,
            fit.radius,
            constants.exponent,
        );
        let minimum = Problem {
            rows: &rows,
            penalty: &constants.scaled(&fit.penalty, 2),
            linear: &vec![0; fit.dimension()],
            tolerance: &constants.scaled(&constants.tolerance, 1),
        }
        .minimise();
        let noise = self.noise.vector(&GammaNorm {
            dimension: fit.dimension(),
            scale: constants.scaled(&scale, -1),
            bits: WEIGHT_BITS,
        });
        self.record_as(
            &format!("{}: coefficients", fit.name),
            "uniform direction, Gamma norm, scale",
            rational_to_f64(&scale),
        );
        let unit = libm::ldexp(1.0, constants.exponent.saturating_neg());
        let noisy = minimum.iter().zip(&noise);
        Ok(noisy
            .map(|(w, n)| value(w.saturating_add(*n)) * unit)
            .collect())
    }
}
