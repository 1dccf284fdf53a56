//! Minimises the perturbed logistic objective: the search proposes, an exact certificate decides.
//!
//! J(w) = Σ log(1 + e^(−y w·x)) + (Λ/2)‖w‖² + b·w over rows in the unit ball.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_precision_loss,
    reason = "big-integer and rational arithmetic with positive divisors; doubles only guide the search"
)]

use dashu::integer::{IBig, UBig};
use reticent_accounting::{Rational, rational_to_f64};
use reticent_solver::Search;

use super::rows::{GRADIENT_BITS, ROW_ERROR_BITS, Rows, WEIGHT_BITS, WEIGHT_LIMIT};

/// Fractional bits of b.
pub(crate) const LINEAR_BITS: u32 = 84;
/// Fractional bits of the full gradient.
const FULL_BITS: u32 = GRADIENT_BITS + 8;
/// Proposals that are looked at.
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
    /// *Search.* Crate `reticent-solver` proposes points; nothing is assumed about them, and at most 10 000 are looked at. Nearly
    /// always one of the first is certified. It is relied on to return and to have no other effect.
    /// *End.* If none is certified, gradient steps start from 0. Let h = 2^−78, L = Λ + n/4 + 1 (above the norm of the
    /// Hessian), and let coordinate j move by −Δ_j, where |Δ_j| is |Ĝ_j|/L cut to a multiple of h. If all Δ_j = 0 then
    /// ‖Ĝ‖ < √p·L·h ≤ 2^−32.9 < γ − (n + p)·2^−83: certified. Otherwise, where Δ_j ≠ 0, |Ĝ_j| ≥ L|Δ_j| ≥ Lh while Ĝ_j errs by
    /// less than n·2^−83 + 2^−84 ≤ Lh/4, so ∂_jJ·Δ_j ≥ ¾LΔ_j², and J falls by at least ¾L‖Δ‖² − ½L‖Δ‖² ≥ Lh²/4. As
    /// J(0) − min J ≤ n·ln 2 + ‖b‖²/(2Λ), fewer than (n·ln 2 + ‖b‖²/(2Λ))·2^158/L + 1 steps are made. All of them stay
    /// where J ≤ J(0), i.e. within 2‖b‖/Λ + √(2n·ln 2/Λ) of 0, so no coordinate meets the limit 2^40. (If a caller breaks
    /// the assumption on b, steps can stop at the limit; then the last point is returned.)
    /// # Checked by
    /// `numeric::certificate::tests::{certifies_hard_problems, gradient_steps_alone_certify}`
    pub(crate) fn minimise(&self) -> Vec<i128> {
        self.follow().unwrap_or_else(|| self.descend())
    }

    /// Follows the search to a certified point; `None` when it gives up or makes too many proposals.
    fn follow(&self) -> Option<Vec<i128>> {
        let scaled = |x: f64, bits: u32| libm::ldexp(x, -bits.cast_signed());
        let mut search = Search::new(reticent_solver::Problem {
            design: self.rows.design(),
            penalty: rational_to_f64(self.penalty),
            linear: self
                .linear
                .iter()
                .map(|b| scaled(*b as f64, LINEAR_BITS))
                .collect(),
            tolerance: rational_to_f64(self.tolerance),
            bits: WEIGHT_BITS.cast_signed(),
        });
        let mut proposed = search.start();
        for _ in 0..EXACT_PASSES {
            proposed.resize(self.linear.len(), 0);
            let within = |w: i128| w.clamp(-WEIGHT_LIMIT, WEIGHT_LIMIT);
            let point = self.at(proposed.into_iter().map(within).collect());
            if self.certified(&point) {
                return Some(point.weights);
            }
            let gradient: Vec<f64> = point
                .gradient
                .iter()
                .map(|g| scaled(g.to_f64().value(), FULL_BITS))
                .collect();
            proposed = search.improve(&point.weights, &gradient)?;
        }
        None
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
    use reticent_laws::Seeded;
    use reticent_noise::Noise;

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
                        let found = problem.follow();
                        let weights =
                            found.unwrap_or_else(|| panic!("{kind} {n} {penalty} {size}"));
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
        weights[1] += libm::ldexp(5e-9, WEIGHT_BITS.cast_signed()) as i128;
        assert!(!problem.certified(&problem.at(weights)));
    }
}
