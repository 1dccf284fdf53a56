//! Tests of a residual plot's two questions, curvature and fan, by two noisy sums.
//!
//! T₁ = Σ s·g(u) and T₂ = Σ (|s| − c)·h(u), where u is the place of the fitted value in the released box, s the residual divided by
//! the reach R of the box, clipped to [−1, 1], g a parabola and h a line. A level cloud gives sums around 0, a hook moves
//! T₁, a fan T₂. Both are linear queries on a grid of [`SIDE`] × [`SIDE`] cells.
//!
//! The shapes are chosen after the cells of the plot were bought, from those: g is 6u² − 6u + 1 less its regression on 1 and u over the
//! released distribution of u, h is centred over it, c is the released mean of |s|. So an intercept or slope
//! that is off because the *coefficients* are noisy does not count as curvature, and clipped residuals whose mean is not 0 do not either.

use reticent_laws::Law;
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::primitives::{Linear, Row, Strategy, Weights};
use reticent_mechanisms::program::Interval;
use reticent_mechanisms::{Desk, DeskError, FoldId};
use serde_json::{Value, json};

use crate::common::{number, real, size};

/// Cells on a side of the grid of the tests.
pub const SIDE: u32 = 64;
/// Weights are whole multiples of 1/2²⁰.
const UNIT: f64 = 1_048_576.0;

/// The two queries: `curvature[k]·residual[j]` and `fan[k]·(|residual[j]| − centre)` for cell (k, j), every factor clipped to
/// [−1, 1], in units of 2⁻²⁰.
///
/// # Claim
/// Bought by one [`Linear`] step of ε both sums together are ε-DP for the context's relation and unit.
/// # Assumptions
/// The factors are public or functions of earlier releases.
/// # Sensitivity
/// A record is in one cell: adding it moves the pair by |g·s| + |h·(|s| − c)| ≤ |s| + max(|s| − c, c − |s|) ≤ 2 − c for 0 ≤ c ≤ 1,
/// attained at |s| = 1 at the ends of u; replacing it by at most twice that. Alone: 1 | 2 and max(c, 1−c) | twice. The
/// step computes the exact column sums of the rounded weights, so what is paid for is these or less.
/// # Noise
/// Discrete Laplace at one common scale.
/// # Composition
/// One purchase; it depends on the released box and cells only (adaptive sequential composition).
/// # Arithmetic
/// Integer weights, integer counts. The place in a cell is rounded to its middle, before the sum, record by record.
/// # Checked by
/// `moments::{golden_sensitivities, worst_losses_by_matrix, canary}`, `composites::all`
/// # References
/// `decisions.md` §2.5; `beyond.md` §5.
pub fn strategy(curvature: &[f64], fan: &[f64], residual: &[f64], centre: f64) -> Strategy {
    let cells = curvature.len().saturating_mul(residual.len());
    let row = |shape: &[f64], of: &dyn Fn(f64) -> f64| {
        let list: Vec<i64> = shape
            .iter()
            .flat_map(|g| {
                residual
                    .iter()
                    .map(|s| units(g.clamp(-1.0, 1.0) * of(s.clamp(-1.0, 1.0))))
            })
            .collect();
        Row {
            weights: Weights::Window {
                first: 0,
                part: 0..list.len(),
                list: list.into(),
            },
            share: 1,
        }
    };
    Strategy::new(
        cells,
        vec![row(curvature, &|s| s), row(fan, &|s| s.abs() - centre)],
    )
}

#[allow(clippy::cast_possible_truncation, reason = "within ±2^21")]
fn units(x: f64) -> i64 {
    (x * UNIT).round() as i64
}

/// Middles of `n` even cells of [0, 1].
fn middles(n: usize) -> Vec<f64> {
    (0..n).map(|k| (size(k) + 0.5) / size(n.max(1))).collect()
}

/// R: the larger distance of the released residual range from 0.
fn reach(y: Interval) -> f64 {
    y.lower.abs().max(y.upper.abs())
}

/// The grid of the tests: u across, s up.
pub(super) fn fold(x: Interval, y: Interval) -> Fold {
    let r = reach(y);
    let axis = |term, lower, upper| Axis {
        term,
        cut: Cut::Even {
            lower,
            upper,
            cells: SIDE,
        },
    };
    Fold::Grid {
        axes: vec![axis(0, x.lower, x.upper), axis(1, -r, r)],
        sum: None,
    }
}

/// What was released before: the plot, its counts (column by column) and the deviation of their noise.
pub(super) struct Seen<'a> {
    pub(super) y: Interval,
    pub(super) side: usize,
    pub(super) counts: &'a [f64],
    pub(super) noise: f64,
}

/// The shapes, and what the plot says about the sums if nothing is wrong.
struct Shapes {
    curvature: Vec<f64>,
    fan: Vec<f64>,
    centre: f64,
    /// Variances of T₁, T₂ from sampling and from not knowing the distributions exactly.
    variances: (f64, f64),
}

/// Weighted mean; `None` without weight.
fn mean(weights: &[f64], values: impl Iterator<Item = f64>) -> Option<f64> {
    let total: f64 = weights.iter().sum();
    (total > 0.0).then(|| weights.iter().zip(values).map(|(w, v)| w * v).sum::<f64>() / total)
}

impl Seen<'_> {
    fn shapes(&self) -> Shapes {
        let side = self.side.max(1);
        let us = middles(side);
        let r = reach(self.y).max(f64::MIN_POSITIVE);
        let height = self.y.upper - self.y.lower;
        let ss: Vec<f64> = middles(side)
            .iter()
            .map(|v| ((self.y.lower + v * height) / r).clamp(-1.0, 1.0))
            .collect();
        let across: Vec<f64> = self
            .counts
            .chunks(side)
            .map(|c| c.iter().sum::<f64>().max(0.0))
            .collect();
        let up: Vec<f64> = (0..side)
            .map(|j| {
                self.counts
                    .iter()
                    .skip(j)
                    .step_by(side)
                    .sum::<f64>()
                    .max(0.0)
            })
            .collect();
        let total = across.iter().sum::<f64>().max(1.0);
        // Few columns cannot say how u is distributed: then an even spread stands in.
        let known = side >= 4 && across.iter().sum::<f64>() > 0.0;
        let (places, weights) = if known {
            (us.clone(), across)
        } else {
            let even = middles(SIDE as usize);
            let ones = vec![1.0; even.len()];
            (even, ones)
        };
        let parabola = |u: f64| 6.0 * u * u - 6.0 * u + 1.0;
        let average =
            |f: &dyn Fn(f64) -> f64| mean(&weights, places.iter().map(|u| f(*u))).unwrap_or(0.0);
        let (u0, q0) = (average(&|u| u), average(&parabola));
        let spread = average(&|u| (u - u0).powi(2));
        let slope = if spread > 1e-9 {
            average(&|u| (u - u0) * (parabola(u) - q0)) / spread
        } else {
            0.0
        };
        let bent = |u: f64| parabola(u) - q0 - slope * (u - u0);
        let grid = middles(SIDE as usize);
        let largest =
            |f: &dyn Fn(f64) -> f64| grid.iter().fold(0.0, |m: f64, u| m.max(f(*u).abs()));
        let (top, wide) = (largest(&bent), largest(&|u| u - u0));
        // A parabola less a line is at least .75 somewhere in [0, 1], a centred line at least .49: both divisors are positive.
        let g = |u: f64| bent(u) / top.max(0.5);
        let h = |u: f64| (u - u0) / wide.max(0.25);
        let centre = mean(&up, ss.iter().map(|s| s.abs()))
            .unwrap_or(0.5)
            .clamp(0.1, 0.9);
        Shapes {
            curvature: grid.iter().map(|u| g(*u)).collect(),
            fan: grid.iter().map(|u| h(*u)).collect(),
            centre,
            variances: self.variances((&us, &ss), (&g, &h), (u0, spread), centre, total),
        }
    }

    /// Sampling: Σ w² over the records, from the cells jointly, at least half of what the margins alone say. Not knowing the
    /// distribution of u (of |s|) exactly: deviation of the released mean of g (h) times the level of s (error of c).
    fn variances(
        &self,
        (us, ss): (&[f64], &[f64]),
        (g, h): (&dyn Fn(f64) -> f64, &dyn Fn(f64) -> f64),
        (u0, spread): (f64, f64),
        centre: f64,
        total: f64,
    ) -> (f64, f64) {
        let side = ss.len();
        let cells = || us.iter().flat_map(|u| ss.iter().map(move |s| (*u, *s)));
        let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
            cells()
                .zip(self.counts)
                .map(|((u, s), c)| c * f(u, s))
                .sum()
        };
        let sampling =
            |w: &dyn Fn(f64, f64) -> f64, a: &dyn Fn(f64) -> f64, b: &dyn Fn(f64) -> f64| {
                let joint = sum(&|u, s| w(u, s).powi(2));
                let apart =
                    sum(&|u, _| a(u).powi(2)).max(0.0) * sum(&|_, s| b(s).powi(2)).max(0.0) / total;
                joint.max(0.5 * apart).max(0.0)
            };
        let per_column = size(side) * self.noise * self.noise;
        let level = sum(&|_, s| s) / total;
        let tilt = if spread > 1e-9 {
            sum(&|u, s| (u - u0) * s) / total / spread
        } else {
            0.0
        };
        let unsure: f64 = us
            .iter()
            .map(|u| (g(*u) * (level + tilt * (u - u0))).powi(2))
            .sum();
        let of_centre = self.noise.powi(2) * size(side) * ss.iter().map(|s| s * s).sum::<f64>()
            / (total * total);
        let lines: f64 = us.iter().map(|u| h(*u).powi(2)).sum();
        (
            sampling(&|u, s| g(u) * s, g, &|s| s) + per_column * unsure,
            sampling(&|u, s| h(u) * (s.abs() - centre), h, &|s| s.abs() - centre)
                + per_column * of_centre.min(1.0) * lines,
        )
    }
}

/// Buys both sums and compares them with what a level cloud gives, noise included.
pub(super) fn buy(
    desk: &mut Desk<'_>,
    fold: FoldId,
    step: &Linear,
    seen: &Seen<'_>,
) -> Result<Value, DeskError> {
    let shapes = seen.shapes();
    let residual: Vec<f64> = middles(SIDE as usize)
        .iter()
        .map(|v| 2.0 * v - 1.0)
        .collect();
    let strategy = strategy(&shapes.curvature, &shapes.fan, &residual, shapes.centre);
    let measured = desk.linear(fold, &strategy, step)?;
    let result = |i: usize, variance: f64| {
        let sum = measured.values.get(i).map_or(0.0, |v| real(*v)) / UNIT;
        let (scale, noise) = measured.noise.get(i).map_or((0.0, 0.0), |l| {
            (l.scale().to_f64() / UNIT, l.std_dev() / UNIT)
        });
        let all = (variance + noise * noise).sqrt();
        json!({
            "sum": number(sum),
            "statistic": number(if all > 0.0 { sum / all } else { 0.0 }),
            "sampling_sd": number(variance.sqrt()),
            "noise_sd": number(noise),
            "p_value": number(p_value(sum, variance.sqrt(), scale)),
        })
    };
    Ok(json!({
        "curvature": result(0, shapes.variances.0),
        "fan": result(1, shapes.variances.1),
        "centre": number(shapes.centre),
        "reach": number(reach(seen.y)),
    }))
}

/// P(|σZ + L| ≥ |t|) for Z standard normal and L Laplace of scale b, by Simpson's rule over z in [−9, 9].
///
/// The integrand has kinks at z = ±t/σ; with 3600 steps the error is below 1e-5.
///
/// ```
/// use reticent_statistics::residuals::moments::p_value;
///
/// assert!((p_value(1.959964, 1.0, 0.0) - 0.05).abs() < 1e-2);
/// assert!((p_value(3.0, 0.0, 1.0) - (-3.0f64).exp()).abs() < 1e-9);
/// ```
pub fn p_value(t: f64, sigma: f64, scale: f64) -> f64 {
    const STEPS: u32 = 3600;
    let t = t.abs();
    if !(t.is_finite() && sigma.is_finite() && scale.is_finite()) {
        return 1.0;
    }
    let above = |a: f64| {
        if scale > 0.0 {
            if a >= 0.0 {
                0.5 * (-a / scale).exp()
            } else {
                1.0 - 0.5 * (a / scale).exp()
            }
        } else if a > 0.0 {
            0.0
        } else {
            1.0
        }
    };
    let width = 18.0 / f64::from(STEPS);
    let sum: f64 = (0..=STEPS)
        .map(|i| {
            let z = -9.0 + width * f64::from(i);
            let weight = match i {
                0 | STEPS => 1.0,
                _ if i % 2 == 1 => 4.0,
                _ => 2.0,
            };
            let density = (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
            weight * density * (above(t - sigma * z) + above(t + sigma * z))
        })
        .sum();
    (sum * width / 3.0).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the closed form ½e^{σ²/2b²}(…) at b = σ = 1: P(|Z + L| > 2) = 2[Φ̄(2) + ½e^{½−2}Φ(1) − ½e^{½+2}Φ̄(3)].
    #[test]
    fn tail_of_normal_plus_laplace() {
        let exact = 2.0
            * (0.022_750_131_948_179_21 + 0.5 * (-1.5f64).exp() * 0.841_344_746_068_542_9
                - 0.5 * 2.5f64.exp() * 0.001_349_898_031_630_094_6);
        assert!((p_value(2.0, 1.0, 1.0) - exact).abs() < 1e-5);
        assert!((p_value(0.0, 1.0, 1.0) - 1.0).abs() < 1e-9);
        assert!(p_value(f64::NAN, 1.0, 1.0).to_bits() == 1.0f64.to_bits());
    }

    /// The shapes are orthogonal to level (both) and slope (curvature) over the released distribution.
    #[test]
    fn shapes_ignore_level_and_slope() {
        let side = 8;
        let counts: Vec<f64> = (0..side * side).map(|i| size(i * 37 % 11) + 1.0).collect();
        let seen = Seen {
            y: Interval {
                lower: -1.0,
                upper: 2.0,
            },
            side,
            counts: &counts,
            noise: 1.0,
        };
        let shapes = seen.shapes();
        // both shapes are exact polynomials, so three values give them everywhere
        let at = |list: &[f64], u: f64| {
            let n = size(list.len());
            let x = |k: usize| (size(k) + 0.5) / n;
            let (a, b, c) = (0, list.len() / 2, list.len() - 1);
            let l = |i: usize, j: usize, k: usize| {
                list[i] * (u - x(j)) * (u - x(k)) / ((x(i) - x(j)) * (x(i) - x(k)))
            };
            l(a, b, c) + l(b, a, c) + l(c, a, b)
        };
        let column = |k: usize| counts[k * side..(k + 1) * side].iter().sum::<f64>();
        let us = middles(side);
        let sum = |list: &[f64], power: i32| -> f64 {
            us.iter()
                .enumerate()
                .map(|(k, u)| column(k) * at(list, *u) * u.powi(power))
                .sum()
        };
        for s in [
            sum(&shapes.curvature, 0),
            sum(&shapes.curvature, 1),
            sum(&shapes.fan, 0),
        ] {
            assert!(s.abs() < 1e-9, "{s}");
        }
        let peak = |l: &[f64]| l.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        assert!((peak(&shapes.curvature) - 1.0).abs() < 1e-12);
        assert!((peak(&shapes.fan) - 1.0).abs() < 1e-12);
    }
}
