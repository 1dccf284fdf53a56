//! Minimises the perturbed logistic objective until an exact certificate holds.
//!
//! J(w) = Σ log(1 + e^(−y w·x)) + (Λ/2)‖w‖² + b·w over rows in the unit ball.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "big-integer and rational arithmetic with positive divisors; doubles only guide the search"
)]

use dashu::integer::{IBig, UBig};
use nalgebra::{Cholesky, DMatrix, DVector, Dyn};
use reticent_accounting::{Rational, rational_to_f64};

use super::rows::{Fast, GRADIENT_BITS, ROW_ERROR_BITS, Rows, WEIGHT_BITS, WEIGHT_LIMIT};

/// Fractional bits of b.
pub(crate) const LINEAR_BITS: u32 = 84;
/// Fractional bits of the full gradient.
const FULL_BITS: u32 = GRADIENT_BITS + 8;
/// Passes of the search in doubles.
const FAST_PASSES: u32 = 300;
/// Exact passes with Newton steps.
const EXACT_PASSES: u32 = 10_000;

/// What is minimised.
pub(crate) struct Problem<'a> {
    pub(crate) rows: &'a Rows<'a>,
    /// Λ.
    pub(crate) penalty: &'a Rational,
    /// b in units of 2^−84, each coordinate within half a unit of the ideal one.
    pub(crate) linear: &'a [i128],
    /// γ.
    pub(crate) tolerance: &'a Rational,
}

/// A point and its gradient in units of 2^−144.
struct Point {
    weights: Vec<i128>,
    gradient: Vec<IBig>,
}

impl Problem<'_> {
    /// A point w (units of 2^−78) with ‖∇J(w)‖ ≤ γ for the ideal b.
    ///
    /// # Claim
    /// For every table the result is certified, and the search ends after a number of passes bounded in public
    /// numbers.
    /// # Assumptions
    /// At most 2^40 rows and 4097 coordinates, γ ≥ 2^−31, Λ ≤ 2^38, 2‖b‖/Λ + √(2·2^40·ln 2/Λ) ≤ 2^40.
    /// # Arithmetic
    /// *Certificate.* The computed gradient Ĝ differs from ∇J by less than n·2^−83 (rows), p·2^−85 (rounding of b) and
    /// p·2^−144 (the penalty term). Ĝ and the comparison ‖Ĝ‖ ≤ γ − (n + p)·2^−83 are integers.
    /// *End.* Newton steps (their passes are bounded by constants) nearly always suffice; they stop when ‖Ĝ‖ no
    /// longer falls. Then gradient steps start from 0. Let h = 2^−78, L = Λ + n/4 + 1 (above the norm of the
    /// Hessian), and let coordinate j move by −Δ_j, where |Δ_j| is |Ĝ_j|/L cut to a multiple of h. If all Δ_j = 0 then
    /// ‖Ĝ‖ < √p·L·h ≤ 2^−32.9 < γ − (n + p)·2^−83: certified. Otherwise, where Δ_j ≠ 0, |Ĝ_j| ≥ L|Δ_j| ≥ Lh while Ĝ_j errs by
    /// less than n·2^−83 + 2^−84 ≤ Lh/4, so ∂_jJ·Δ_j ≥ ¾LΔ_j², and J falls by at least ¾L‖Δ‖² − ½L‖Δ‖² ≥ Lh²/4. As
    /// J(0) − min J ≤ n·ln 2 + ‖b‖²/(2Λ), fewer than (n·ln 2 + ‖b‖²/(2Λ))·2^158/L + 1 steps are made. All of them stay
    /// where J ≤ J(0), i.e. within 2‖b‖/Λ + √(2n·ln 2/Λ) of 0, so no coordinate meets the limit 2^40. (If a caller breaks
    /// the assumption on b, steps can stop at the limit; then the last point is returned.)
    /// # Checked by
    /// `numeric::newton::tests::{certifies_hard_problems, gradient_steps_alone_certify}`
    pub(crate) fn minimise(&self) -> Vec<i128> {
        let (start, curvature) = self.search();
        match self.newton(start, curvature) {
            Ok(weights) => weights,
            Err(()) => self.descend(),
        }
    }

    /// Damped Newton in doubles from 0; returns the end and the last factorised Hessian.
    fn search(&self) -> (Vec<f64>, Option<Cholesky<f64, Dyn>>) {
        let penalty = rational_to_f64(self.penalty);
        let target = rational_to_f64(self.tolerance) / 4.0;
        let b: Vec<f64> = self
            .linear
            .iter()
            .map(|b| libm::ldexp(*b as f64, -LINEAR_BITS.cast_signed()))
            .collect();
        let mut best: Option<(Vec<f64>, f64)> = None;
        let mut step = DVector::zeros(b.len());
        let mut scale = 1.0;
        let mut curvature = None;
        for _ in 0..FAST_PASSES {
            let w: Vec<f64> = match &best {
                None => vec![0.0; b.len()],
                Some((w, _)) => w.iter().zip(&step).map(|(w, s)| w + scale * s).collect(),
            };
            let fast = self.rows.fast(&w);
            let value = fast.value
                + 0.5 * penalty * w.iter().map(|w| w * w).sum::<f64>()
                + w.iter().zip(&b).map(|(w, b)| w * b).sum::<f64>();
            if let Some((end, before)) = &best
                && (value > before + 1e-12 * before.abs() || value.is_nan())
            {
                scale *= 0.5;
                if scale < 1e-6 {
                    return (end.clone(), curvature);
                }
                continue;
            }
            let gradient = DVector::from_iterator(
                b.len(),
                fast.gradient
                    .iter()
                    .zip(&w)
                    .zip(&b)
                    .map(|((g, w), b)| g + penalty * w + b),
            );
            let Some(factor) = factorise(fast, penalty, self.rows.len()) else {
                return (w, curvature);
            };
            step = -factor.solve(&gradient);
            curvature = Some(factor);
            scale = 1.0;
            // A full step leaves a gradient of about ‖G‖·(e^‖step‖ − 1): the Hessian changes by that factor.
            let length = step.norm();
            if !length.is_finite() {
                return (w, None);
            }
            if gradient.norm() * libm::expm1(length) <= target {
                return (w.iter().zip(&step).map(|(w, s)| w + s).collect(), curvature);
            }
            best = Some((w, value));
        }
        (best.map(|b| b.0).unwrap_or_default(), curvature)
    }

    /// Newton steps with exact gradients. `Err` when they stop helping.
    fn newton(
        &self,
        start: Vec<f64>,
        mut curvature: Option<Cholesky<f64, Dyn>>,
    ) -> Result<Vec<i128>, ()> {
        let mut weights: Vec<i128> = start.iter().map(|w| units(*w)).collect();
        weights.resize(self.linear.len(), 0);
        let mut before = f64::INFINITY;
        for _ in 0..EXACT_PASSES {
            let point = self.at(weights);
            if self.certified(&point) {
                return Ok(point.weights);
            }
            let gradient = DVector::from_iterator(
                point.gradient.len(),
                point
                    .gradient
                    .iter()
                    .map(|g| libm::ldexp(g.to_f64().value(), -FULL_BITS.cast_signed())),
            );
            let norm = gradient.norm();
            if norm.is_nan() || norm >= before {
                return Err(());
            }
            if norm > 0.1 * before || curvature.is_none() {
                let w: Vec<f64> = point.weights.iter().map(|w| value(*w)).collect();
                curvature = factorise(
                    self.rows.fast(&w),
                    rational_to_f64(self.penalty),
                    self.rows.len(),
                );
            }
            before = norm;
            let Some(factor) = &curvature else {
                return Err(());
            };
            let step = factor.solve(&gradient);
            weights = point
                .weights
                .iter()
                .zip(&step)
                .map(|(w, s)| {
                    w.saturating_sub(units(*s))
                        .clamp(-WEIGHT_LIMIT, WEIGHT_LIMIT)
                })
                .collect();
        }
        Err(())
    }

    /// Gradient steps from 0.
    fn descend(&self) -> Vec<i128> {
        let mut weights = vec![0i128; self.linear.len()];
        let bound =
            self.penalty + Rational::from(self.rows.len()) / Rational::from(4u8) + Rational::ONE;
        // Ĝ counts 2^−144, w counts 2^−78.
        let divisor = bound * Rational::from(UBig::ONE << (FULL_BITS - WEIGHT_BITS) as usize);
        loop {
            let point = self.at(weights);
            if self.certified(&point) {
                return point.weights;
            }
            let next: Vec<i128> = point
                .weights
                .iter()
                .zip(&point.gradient)
                .map(|(w, g)| {
                    // IBig division cuts toward zero.
                    let delta =
                        (g * IBig::from(divisor.denominator().clone())) / divisor.numerator();
                    let delta = i128::try_from(delta).unwrap_or(0);
                    w.saturating_sub(delta).clamp(-WEIGHT_LIMIT, WEIGHT_LIMIT)
                })
                .collect();
            if next == point.weights {
                return next;
            }
            weights = next;
        }
    }

    fn at(&self, weights: Vec<i128>) -> Point {
        let mut gradient = self.rows.exact_gradient(&weights);
        let (top, bottom) = (self.penalty.numerator(), self.penalty.denominator());
        for ((g, w), b) in gradient.iter_mut().zip(&weights).zip(self.linear) {
            *g <<= (FULL_BITS - GRADIENT_BITS) as usize;
            *g += ((IBig::from(*w) * top) << (FULL_BITS - WEIGHT_BITS) as usize)
                / IBig::from(bottom.clone());
            *g += IBig::from(*b) << (FULL_BITS - LINEAR_BITS) as usize;
        }
        Point { weights, gradient }
    }

    fn certified(&self, point: &Point) -> bool {
        let errors = Rational::from(self.rows.len().saturating_add(point.weights.len()))
            / Rational::from(UBig::ONE << ROW_ERROR_BITS as usize);
        let bound = (self.tolerance - errors) * Rational::from(UBig::ONE << FULL_BITS as usize);
        let bound = bound.floor();
        let norm = point.gradient.iter().fold(IBig::ZERO, |sum, g| sum + g * g);
        bound > IBig::ZERO && norm <= &bound * &bound
    }
}

/// Factorises Hessian + Λ; adds what rounding may have taken when that is needed.
fn factorise(fast: Fast, penalty: f64, rows: usize) -> Option<Cholesky<f64, Dyn>> {
    let mut hessian: DMatrix<f64> = fast.hessian;
    let mut extra = penalty;
    let mut next = 1e-15 * (rows as f64 + 1.0);
    for _ in 0..40 {
        for i in 0..hessian.nrows() {
            if let Some(h) = hessian.get_mut((i, i)) {
                *h += extra;
            }
        }
        if let Some(factor) = Cholesky::new(hessian.clone()) {
            return Some(factor);
        }
        extra = next;
        next *= 4.0;
    }
    None
}

/// The nearest multiple of 2^−78, within the limit; NaN gives 0.
fn units(w: f64) -> i128 {
    let scaled = libm::ldexp(w, WEIGHT_BITS.cast_signed());
    (scaled.round_ties_even() as i128).clamp(-WEIGHT_LIMIT, WEIGHT_LIMIT)
}

/// The double nearest to a coefficient.
pub(crate) fn value(w: i128) -> f64 {
    libm::ldexp(w as f64, -WEIGHT_BITS.cast_signed())
}
