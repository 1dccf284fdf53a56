//! Objective perturbation for logistic regression, with a certified minimiser.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "rational arithmetic; divisors are positive constants or checked"
)]

use std::ops::Range as Span;

use dashu::base::BitTest;
use dashu::integer::UBig;
use reticent_accounting::exp::{ln_upper, sqrt_upper};
use reticent_accounting::{Event, Rational, rational_to_f64};
use reticent_noise::GammaNorm;

use super::payment::calibrated;
use crate::context::Context;
use crate::desk::{Desk, DeskError, misuse};
use crate::numeric::certificate::{LINEAR_BITS, Problem, value};
use crate::numeric::rows::{Rows, WEIGHT_BITS};
use crate::numeric::{MAX_DIMENSION, exact};

/// Logistic regression by objective perturbation, sum form.
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
/// let released = buy_terms(None, terms, vec![ages, sick], fit.event(&context()), |desk, _| desk.objective(&fit));
/// assert!(released.coefficients[0] > 5.0); // the old are sick
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit. Calibrated for add/remove, replace-one costs at most 2ε (two
/// changes); calibrated for replace-one, add/remove costs at most ε.
/// # Assumptions
/// One row x̃ = (g, x) per record, a function of that record alone, ‖x̃‖ ≤ R = √(radius² + g²): the intercept coordinate
/// is inside the norm and penalised (without that H is singular along it and the ratio below is unbounded).
/// Λ, R, ε are public. At most 2^40 rows. ‖b‖ at most 2^10 times its mean (false with probability below e^(−1000), beyond
/// which the fixed-width words of the solver end).
/// # Sensitivity
/// The gradient of one record's loss is −y·σ(−y w·x̃)·x̃, of norm at most R: for a fixed w, b_D(w) = −∇(Σ loss + (Λ/2)‖w‖²)
/// moves by at most R under add/remove and 2R under replace-one. Its Hessian is a·x̃x̃ᵀ, 0 ≤ a ≤ ¼.
/// # Noise
/// w* = argmin Σ log(1 + e^(−y w·x̃)) + (Λ/2)‖w‖² + b·w with b of density ∝ e^(−‖b‖/τ), τ = R/ε′ (add/remove) or 2R/ε′
/// (replace-one), ε′ = ε_o − ln(1 + R²/(4Λ)), ε_o = ε − ε_s, ε_s = ε/100. Released is w̃ + η, η of density
/// ∝ e^(−‖η‖·Λε_s/(2γ)), γ = 10⁻⁹R.
/// # Composition
/// b ↦ w* is a C¹ bijection with inverse b_D, so w* has density ∝ e^(−‖b_D(w)‖/τ)·det H_D(w), with one and the same
/// normaliser for every D. The first factor changes by at most e^(ε′). Add/remove: H_D′ = H_D + a·x̃x̃ᵀ and
/// H_D ≥ ΛI, so the determinants' ratio lies in [1, 1 + R²/(4Λ)]. Replace-one: with H₀ ≥ ΛI of the common records
/// both determinants lie in det H₀·[1, 1 + R²/(4Λ)], so one factor again bounds the ratio both ways (a *single*
/// logarithm). Hence w* costs ε_o. Solver: w̃ is a function of D and b with ‖∇J(w̃)‖ ≤ γ, so ‖w̃ − w*‖ ≤ γ/Λ by strong
/// convexity; for the same w* the points w̃ of two tables differ by at most 2γ/Λ, and η makes their laws
/// e^(ε_s)-close. Post-processing a w* of either law by such kernels costs ε_o + ε_s = ε.
/// A unit of k rows: k single changes at ε/k each. With τ = 2R/ε′ an add/remove change costs ε′/2 + ln(1 + R²/(4Λ)) + ε_s.
/// # Arithmetic
/// Rows are scaled by a power of two, exactly; shortening is rounded so that ‖x̃‖ ≤ R holds
/// (`numeric::rows::Rows`). b is drawn on a lattice of step 2^−84 of the scaled problem; the distance to the ideal b is
/// part of the certified gradient. The certificate is integer arithmetic (`numeric::certificate::Problem::minimise`,
/// with the proof that it ends). Where to look comes from the crate `reticent-solver`; of it nothing is relied on but that it
/// returns and has no effect besides: what it proposes is certified here or not used. w̃ is on the lattice 2^−78 and w̃ + η
/// is the rounding of the ideal sum to it. R and the logarithm are rounded up, so τ is at least the ideal. Nothing but w̃ + η leaves: no loss, count, iteration or status.
/// # Checked by
/// `it::objective::{noise_off_meets_exact_coefficients, density_ratio_one_coefficient, density_ratio_with_intercept,
/// determinant_ratio_is_bounded, empty_table_gives_scaled_noise, every_table_gives_finite_coefficients,
/// impossible_budgets_are_refused_before_the_data, row_clip_is_enforced, single_class_is_noisy}`,
/// `numeric::certificate::tests::{certifies_hard_problems, gradient_steps_alone_certify, a_point_off_the_minimum_is_not_certified}`,
/// `numeric::rows::tests::{rows_never_exceed_the_radius, exact_gradient_against_rationals, sums_do_not_depend_on_blocks}`,
/// `audit::objective::{shipped_minimiser_inverts_the_gradient, shipped_losses, shipped_losses_with_intercept, shipped_canary}`
/// # References
/// `decisions.md` §2.6, §5.4, §6.1, §6.2; `privacy.md` §13; Chaudhuri, Monteleoni, Sarwate 2011; Iyengar et al. 2019.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the step for the context's relation.
    pub epsilon: Rational,
    /// The covariates among the program's terms.
    pub covariates: Span<usize>,
    /// The outcome term, 0 or 1.
    pub outcome: usize,
    /// Value of the intercept coordinate, if there is one; it counts in the norm and is penalised.
    pub intercept: Option<f64>,
    /// Rows of covariates longer than this are shortened to it.
    pub radius: f64,
    /// Λ, the penalty of the sum form: (Λ/2)·‖w‖².
    pub penalty: Rational,
}

/// What the step releases.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectiveFit {
    /// Coefficients of the scaled design: intercept coordinate first if there is one.
    pub coefficients: Vec<f64>,
}

/// The constants of a step, all functions of public numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// R, an upper bound on the norm of a row with its intercept coordinate.
    pub radius: Rational,
    /// ε′, what the noise b has to pay for per record.
    pub noise_epsilon: Rational,
    /// ε_s, what the solver's error costs per record.
    pub solver_epsilon: Rational,
    /// τ, the scale of b.
    pub scale: Rational,
    /// γ, the certified bound on the gradient where the solver stops.
    pub tolerance: Rational,
    /// Scale of η.
    pub solver_scale: Rational,
    /// e with ½ < R·2^−e ≤ 1: rows are scaled by 2^−e.
    pub(super) exponent: i32,
}

impl Objective {
    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        Event::Pure {
            mechanism: format!("{}: objective perturbation", self.name),
            loss: calibrated(&self.epsilon, context),
        }
    }

    /// Number of coefficients.
    pub fn dimension(&self) -> usize {
        self.covariates
            .len()
            .saturating_add(usize::from(self.intercept.is_some()))
    }

    /// The constants of the step, or why it cannot be bought. Public inputs only: usable for prices.
    pub fn calibration(&self, context: &Context) -> Result<Calibration, DeskError> {
        let refuse = |text: String| Err(misuse(format!("{}: {text}", self.name)));
        let p = self.dimension();
        if p == 0 || self.covariates.len() > MAX_DIMENSION {
            return refuse(format!(
                "{p} coefficients; between 1 and {MAX_DIMENSION} are supported"
            ));
        }
        let sizes = 1e-60..=1e60;
        let g = self.intercept.unwrap_or(self.radius);
        let (Some(radius), Some(intercept)) = (exact(self.radius), exact(g)) else {
            return refuse("radius and intercept must be finite".to_owned());
        };
        if !sizes.contains(&self.radius) || !sizes.contains(&g) {
            return refuse(format!(
                "radius {} and intercept coordinate {g} must lie between 1e-60 and 1e60",
                self.radius
            ));
        }
        let mut square = &radius * &radius;
        if self.intercept.is_some() {
            square += &intercept * &intercept;
        }
        let radius = sqrt_upper(&square);
        if self.epsilon <= Rational::ZERO || self.penalty <= Rational::ZERO {
            return refuse("epsilon and penalty must be positive".to_owned());
        }
        let epsilon = context.per_record(&self.epsilon);
        let solver_epsilon = &epsilon / Rational::from(100u8);
        let curvature =
            ln_upper(&(Rational::ONE + &square / (&self.penalty * Rational::from(4u8))))?;
        let noise_epsilon = &epsilon - &solver_epsilon - &curvature;
        if noise_epsilon <= Rational::ZERO {
            return refuse(format!(
                "the penalty {} leaves nothing for the noise: its curvature term is {:.3e} of {:.3e} per record; raise the penalty or epsilon",
                rational_to_f64(&self.penalty),
                rational_to_f64(&curvature),
                rational_to_f64(&epsilon),
            ));
        }
        let scale = &radius * Rational::from(context.touches()) / &noise_epsilon;
        let tolerance = &radius / Rational::from(1_000_000_000u32);
        let solver_scale = Rational::from(2u8) * &tolerance / (&self.penalty * &solver_epsilon);
        let calibration = Calibration {
            exponent: exponent(&radius),
            radius,
            noise_epsilon,
            solver_epsilon,
            scale,
            tolerance,
            solver_scale,
        };
        calibration
            .within_the_solver(&self.penalty, p)
            .map_or(Ok(calibration), refuse)
    }
}

/// e with 2^(e−1) < x ≤ 2^e, for x > 0.
fn exponent(x: &Rational) -> i32 {
    let bits = |n: usize| i32::try_from(n).unwrap_or(i32::MAX / 2);
    let top = bits(x.numerator().bit_len());
    let bottom = bits(x.denominator().bit_len());
    let e = top - bottom;
    if *x <= power(e) { e } else { e + 1 }
}

fn power(e: i32) -> Rational {
    let n = Rational::from(UBig::ONE << usize::try_from(e.unsigned_abs()).unwrap_or(0));
    if e >= 0 { n } else { Rational::ONE / n }
}

impl Calibration {
    /// A quantity with the unit of rows^k, for rows scaled into the unit ball.
    pub(super) fn scaled(&self, x: &Rational, k: i32) -> Rational {
        x * power(-self.exponent.saturating_mul(k))
    }

    /// The assumptions of [`Problem::minimise`], with room for ‖b‖ up to 2^10 times its mean p·τ: it is larger
    /// with probability below e^(−1000·p). Some text when they fail.
    fn within_the_solver(&self, penalty: &Rational, p: usize) -> Option<String> {
        let penalty = self.scaled(penalty, 2);
        let p = Rational::from(p);
        let longest = &p * self.scaled(&self.scale, 1) * power(10);
        let spread = power(40) * Rational::from(7u8) / Rational::from(5u8);
        let reach = Rational::from(2u8) * &longest / &penalty + sqrt_upper(&(spread / &penalty));
        if longest > power(42) || penalty > power(38) {
            return Some("epsilon is too small for this step; ask for more".to_owned());
        }
        if penalty < power(-34)
            || reach > power(40)
            || p * self.scaled(&self.solver_scale, -1) > power(37)
        {
            return Some(format!(
                "the penalty {} is too small for rows of length {:.3e}; raise it",
                rational_to_f64(&self.scaled(&penalty, -2)),
                rational_to_f64(&self.radius),
            ));
        }
        None
    }
}

impl Desk<'_> {
    /// Buys a logistic fit; needs one pass (the rows are held in memory).
    pub fn objective(&mut self, step: &Objective) -> Result<ObjectiveFit, DeskError> {
        let constants = step.calibration(self.context)?;
        self.bounds(step.outcome)?;
        self.bounds(step.covariates.end.saturating_sub(1))?;
        self.charge(&step.event(self.context))?;
        let held = self.hold()?;
        let rows = Rows::new(
            &held,
            step.covariates.clone(),
            step.outcome,
            step.intercept,
            step.radius,
            constants.exponent,
        );
        let dimension = step.dimension();
        let penalty = constants.scaled(&step.penalty, 2);
        let tolerance = constants.scaled(&constants.tolerance, 1);
        let linear = self.noise.vector(&GammaNorm {
            dimension,
            scale: constants.scaled(&constants.scale, 1),
            bits: LINEAR_BITS,
        });
        let minimum = Problem {
            rows: &rows,
            penalty: &penalty,
            linear: &linear,
            tolerance: &tolerance,
        }
        .minimise();
        let cover = self.noise.vector(&GammaNorm {
            dimension,
            scale: constants.scaled(&constants.solver_scale, -1),
            bits: WEIGHT_BITS,
        });
        self.record_as(
            &format!("{}: linear term", step.name),
            "uniform direction, Gamma norm, scale",
            rational_to_f64(&constants.scale),
        );
        self.record_as(
            &format!("{}: solver", step.name),
            "uniform direction, Gamma norm, scale",
            rational_to_f64(&constants.solver_scale),
        );
        let unit = libm::ldexp(1.0, constants.exponent.saturating_neg());
        Ok(ObjectiveFit {
            coefficients: minimum
                .iter()
                .zip(&cover)
                .map(|(w, n)| value(w.saturating_add(*n)) * unit)
                .collect(),
        })
    }
}
