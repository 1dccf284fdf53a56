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

use super::rows::{Extent, GRADIENT_BITS, ROW_ERROR_BITS, Rows, WEIGHT_BITS, WEIGHT_LIMIT};

/// Fractional bits of b.
pub(crate) const LINEAR_BITS: u32 = 84;
/// Fractional bits of the full gradient.
const FULL_BITS: u32 = GRADIENT_BITS + 8;
/// Passes of the search in doubles.
const FAST_PASSES: u32 = 300;
/// Shortest fraction of a Newton step that is tried.
const SMALLEST_STEP: f64 = 1e-9;
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
    /// At most 2^40 rows and 4097 coordinates, γ ≥ 2^−31, 2^−34 ≤ Λ ≤ 2^38 (the lower end only for speed), 2‖b‖/Λ + √(2·2^40·ln 2/Λ) ≤ 2^40.
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
        match self.newton(&start, curvature) {
            Ok(weights) => weights,
            Err(()) => self.descend(),
        }
    }

    /// The search in doubles: on a sample first if the table is large, then on all rows.
    fn search(&self) -> (Vec<f64>, Option<Cholesky<f64, Dyn>>) {
        let mut start = vec![0.0; self.linear.len()];
        if self.rows.has_sample() {
            // Within about the sampling error; the rest is for all rows to find.
            start = self.walk(start, Extent::Sample, 1e-2).0;
        }
        self.walk(start, Extent::All, 0.0)
    }

    /// Damped Newton in doubles; ends after a step shorter than `short`, or when the gradient after the step is
    /// expected below γ/4. Returns the end and the last factorised Hessian.
    fn walk(
        &self,
        start: Vec<f64>,
        extent: Extent,
        short: f64,
    ) -> (Vec<f64>, Option<Cholesky<f64, Dyn>>) {
        let penalty = rational_to_f64(self.penalty);
        let target = rational_to_f64(self.tolerance) / 4.0;
        let b: Vec<f64> = self
            .linear
            .iter()
            .map(|b| libm::ldexp(*b as f64, -LINEAR_BITS.cast_signed()))
            .collect();
        // Last accepted point, its value; the step from it.
        let mut best: Option<(Vec<f64>, f64)> = None;
        let mut step = DVector::zeros(b.len());
        let mut scale = 1.0;
        let mut factor: Option<Cholesky<f64, Dyn>> = None;
        // Distance from the point where `factor` was taken; whether it may serve once more.
        let (mut distance, mut again) = (0.0, false);
        for _ in 0..FAST_PASSES {
            let w: Vec<f64> = match &best {
                None => start.clone(),
                Some((w, _)) => w.iter().zip(&step).map(|(w, s)| w + scale * s).collect(),
            };
            let fast = self.rows.fast(&w, extent, !again);
            let value = fast.value
                + 0.5 * penalty * w.iter().map(|w| w * w).sum::<f64>()
                + w.iter().zip(&b).map(|(w, b)| w * b).sum::<f64>();
            if let Some((end, before)) = &best
                && (value > before + 1e-12 * before.abs() || value.is_nan())
            {
                scale *= 0.5;
                again = false;
                if scale < 1e-6 {
                    return (end.clone(), factor);
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
            if !again {
                factor = factorise(fast.hessian, penalty, self.rows.len());
                distance = 0.0;
            }
            let Some(solver) = &factor else {
                return (w, None);
            };
            step = -solver.solve(&gradient);
            scale = 1.0;
            let length = step.norm();
            if !length.is_finite() {
                return (w, None);
            }
            // Along a step the Hessian changes by a factor of at most e^‖step‖ (rows are in the unit ball), so
            // the gradient after the step is at most about ‖G‖·(e^(distance + ‖step‖) − 1).
            let left = gradient.norm() * libm::expm1(distance + length);
            if left <= target || length <= short {
                return (w.iter().zip(&step).map(|(w, s)| w + s).collect(), factor);
            }
            distance += length;
            again = left * libm::expm1(distance + length) <= target;
            best = Some((w, value));
        }
        (best.map_or(start, |b| b.0), factor)
    }

    /// Newton steps with exact gradients, halved until ‖Ĝ‖ falls (it falls along a Newton direction). `Err` when
    /// they stop helping.
    fn newton(
        &self,
        start: &[f64],
        mut curvature: Option<Cholesky<f64, Dyn>>,
    ) -> Result<Vec<i128>, ()> {
        let mut last: Vec<i128> = start.iter().map(|w| units(*w)).collect();
        last.resize(self.linear.len(), 0);
        let mut step = DVector::zeros(last.len());
        let (mut before, mut scale) = (f64::INFINITY, 1.0);
        for _ in 0..EXACT_PASSES {
            let weights = last
                .iter()
                .zip(&step)
                .map(|(w, s)| {
                    w.saturating_sub(units(scale * s))
                        .clamp(-WEIGHT_LIMIT, WEIGHT_LIMIT)
                })
                .collect();
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
                scale *= 0.5;
                if scale < SMALLEST_STEP {
                    return Err(());
                }
                continue;
            }
            if norm > 0.1 * before || curvature.is_none() {
                let w: Vec<f64> = point.weights.iter().map(|w| value(*w)).collect();
                curvature = factorise(
                    self.rows.fast(&w, Extent::All, true).hessian,
                    rational_to_f64(self.penalty),
                    self.rows.len(),
                );
            }
            let Some(factor) = &curvature else {
                return Err(());
            };
            step = factor.solve(&gradient);
            last = point.weights;
            (before, scale) = (norm, 1.0);
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
fn factorise(mut hessian: DMatrix<f64>, penalty: f64, rows: usize) -> Option<Cholesky<f64, Dyn>> {
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

#[cfg(test)]
#[allow(
    clippy::approx_constant,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    clippy::manual_midpoint,
    clippy::needless_pass_by_value,
    reason = "tests compare exact values and count small things"
)]
mod tests {
    use super::*;
    use crate::source::Held;
    use reticent_noise::{Noise, Seeded};

    fn table(n: usize, d: usize, kind: &str) -> Held {
        let mut noise = Seeded::new(n as u64);
        let mut uniform = || (noise.bits() >> 11) as f64 / 9_007_199_254_740_992.0;
        let mut columns = vec![Vec::new(); d + 1];
        for _ in 0..n {
            let x: Vec<f64> = (0..d)
                .map(|_| (2.0 * uniform() - 1.0) / (d as f64).sqrt())
                .collect();
            let y = match kind {
                "one class" => true,
                "separable" => x[0] > 0.0,
                _ => uniform() < 0.5,
            };
            for (j, c) in columns.iter_mut().take(d).enumerate() {
                c.push(match kind {
                    "constant" => 0.25,
                    "collinear" => x[0] * if j % 2 == 0 { 1.0 } else { -0.5 },
                    "duplicates" => f64::from(u8::from(x[j] > 0.0)) / (d as f64).sqrt(),
                    "zeros" => 0.0,
                    _ => x[j],
                });
            }
            columns[d].push(f64::from(u8::from(y)));
        }
        Held {
            rows: n,
            blocks: if n == 0 { vec![] } else { vec![columns] },
        }
    }

    fn ratio(n: i64, d: u64) -> Rational {
        Rational::from(n) / Rational::from(d)
    }

    #[test]
    fn certifies_hard_problems() {
        let tolerance = ratio(1, 1_000_000_000);
        for kind in [
            "plain",
            "one class",
            "separable",
            "constant",
            "collinear",
            "duplicates",
            "zeros",
        ] {
            for n in [0usize, 1, 2, 300] {
                for penalty in [
                    ratio(1, 1 << 31),
                    ratio(1, 1_000_000),
                    ratio(1, 4),
                    ratio(1 << 30, 1),
                ] {
                    for size in [0.0, 1e-3, 1.0, 300.0] {
                        if penalty < ratio(1, 1000) && size > 1.0 {
                            continue; // refused by the calibration
                        }
                        let held = table(n, 4, kind);
                        let rows = Rows::new(&held, 0..4, 4, Some(0.2), 0.9, 0);
                        let linear: Vec<i128> = [0.3, -0.7, 0.1, 0.9, -0.2]
                            .iter()
                            .map(|b| libm::ldexp(b * size, 84) as i128)
                            .collect();
                        let problem = Problem {
                            rows: &rows,
                            penalty: &penalty,
                            linear: &linear,
                            tolerance: &tolerance,
                        };
                        let (start, curvature) = problem.search();
                        let found = problem.newton(&start, curvature);
                        let weights =
                            found.unwrap_or_else(|()| panic!("{kind} {n} {penalty} {size}"));
                        assert!(problem.certified(&problem.at(weights)));
                    }
                }
            }
        }
    }

    #[test]
    fn gradient_steps_alone_certify() {
        let (tolerance, penalty) = (ratio(1, 1_000_000_000), ratio(1, 1));
        for (n, kind) in [
            (0, "plain"),
            (1, "plain"),
            (60, "separable"),
            (60, "collinear"),
        ] {
            let held = table(n, 4, kind);
            let rows = Rows::new(&held, 0..4, 4, None, 0.9, 0);
            let linear = [3i128 << 84, -(1 << 82), 12_345, 0];
            let problem = Problem {
                rows: &rows,
                penalty: &penalty,
                linear: &linear,
                tolerance: &tolerance,
            };
            let slow = problem.descend();
            assert!(problem.certified(&problem.at(slow.clone())), "{kind} {n}");
            let quick = problem.minimise();
            for (a, b) in slow.iter().zip(&quick) {
                // both within γ/Λ of the minimiser
                assert!((value(*a) - value(*b)).abs() < 2.1e-9);
            }
        }
    }

    #[test]
    fn a_point_off_the_minimum_is_not_certified() {
        let (tolerance, penalty) = (ratio(1, 1_000_000_000), ratio(1, 2));
        let held = table(50, 3, "plain");
        let rows = Rows::new(&held, 0..3, 3, None, 0.9, 0);
        let problem = Problem {
            rows: &rows,
            penalty: &penalty,
            linear: &[1 << 84; 3],
            tolerance: &tolerance,
        };
        let mut weights = problem.minimise();
        assert!(problem.certified(&problem.at(weights.clone())));
        // a move of 5e-9 changes the gradient by at least Λ·5e-9 = 2.5 γ
        weights[1] += units(5e-9);
        assert!(!problem.certified(&problem.at(weights)));
    }
}
