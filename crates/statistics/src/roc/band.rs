//! The proved band of a ROC curve.
//!
//! # Claim
//! With probability at least .95 over the noise, the empirical ROC curve lies in the union of the returned
//! rectangles.
//! # Assumptions
//! Independent Laplace noise of scale b on every count of every bin and label.
//! # Noise
//! One label, m bins from the top: noisy prefix Ŝ_k and total Ŝ_m, truth t_k = A_k/N. As A_k − t_k·N = 0,
//! Ŝ_k − t_k·Ŝ_m = (1−t_k)·P_k − t_k·R_k with P_k, R_k the noise in the prefix and in the suffix. With
//! v_k(t) = b√2·√((1−t)²k + t²(m−k)) and c the .95 quantile of the largest |(1−t)P_k − tR_k|/v_k(t) over both
//! labels, k < m and t ∈ [0, 1], all t_k lie in {t: |Ŝ_k − tŜ_m| ≤ c·v_k(t)} together.
//! The largest ratio over t has a closed form: √(P²/k + R²/(m−k)) if P and R have opposite signs, else the
//! larger of |P|/√k and |R|/√(m−k) (Cauchy–Schwarz with non-negative weights), over b√2.
//! The empirical curve is monotone through its vertices, so bin k's part lies in the rectangle from the
//! lower bounds of vertex k−1 to the upper bounds of vertex k.
//! # Arithmetic
//! c is a table for powers of two from 4 to 512 and simulated with a fixed seed otherwise, for continuous
//! Laplace noise and rounded up by two standard errors of the simulated level.
//! # Checked by
//! `roc::band::tests::table_is_reproduced`, `roc::band::tests::curve_is_covered`
//! # References
//! `decisions.md` §2.3, §5.1

use reticent_laws::Seeded;
use reticent_noise::Noise;

use crate::common::size;

/// A rectangle of the band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rectangle {
    pub(super) fpr: (f64, f64),
    pub(super) tpr: (f64, f64),
}

/// Rectangles from the top score down, the smallest and largest area that fits into them, and the bounds of the vertices.
pub(super) fn band(
    negatives: &[f64],
    positives: &[f64],
    scale: f64,
) -> (Vec<Rectangle>, (f64, f64), Vec<super::curve::Bounds>) {
    let c = critical(positives.len());
    let fpr = hulls(negatives, scale, c);
    let tpr = hulls(positives, scale, c);
    let mut rectangles = Vec::with_capacity(positives.len());
    let (mut low, mut high) = (0.0, 0.0);
    let pairs = fpr.iter().zip(&tpr);
    for ((f0, t0), (f1, t1)) in pairs.clone().zip(pairs.skip(1)) {
        rectangles.push(Rectangle {
            fpr: (f0.0, f1.1),
            tpr: (t0.0, t1.1),
        });
        // The smallest area takes the lowest T and the highest F at every vertex, and steps down inside
        // bins; the largest the reverse. Both are monotone in every vertex (summation by parts).
        low += (f1.1 - f0.1) * t0.0;
        high += (f1.0 - f0.0) * t1.1;
    }
    let bounds = fpr.into_iter().zip(tpr).collect();
    (
        rectangles,
        (low.clamp(0.0, 1.0), high.clamp(0.0, 1.0)),
        bounds,
    )
}

/// Bounds of the m+1 vertices of one label, (0,0) and (1,1) exact.
fn hulls(counts: &[f64], scale: f64, c: f64) -> Vec<(f64, f64)> {
    let m = counts.len();
    let total: f64 = counts.iter().sum();
    let mut sum = 0.0;
    let mut all = vec![(0.0, 0.0)];
    for (k, n) in counts.iter().enumerate().take(m.saturating_sub(1)) {
        sum += n;
        all.push(hull(sum, total, size(k + 1), size(m - k - 1), scale, c));
    }
    all.push((1.0, 1.0));
    // The true rates increase, so every bound holds for all later (earlier) vertices too.
    let mut low = 0.0f64;
    for v in &mut all {
        low = low.max(v.0);
        v.0 = low;
    }
    let mut high = 1.0f64;
    for v in all.iter_mut().rev() {
        high = high.min(v.1);
        v.1 = high;
    }
    for v in &mut all {
        // Crossed bounds: the .05 event happened, or rounding at no noise; keep them in order.
        if v.0 > v.1 {
            *v = (v.1, v.0);
        }
    }
    all
}

/// Smallest interval of [0, 1] that contains {t: (prefix − t·total)² ≤ K·((1−t)²k + t²·rest)}.
fn hull(prefix: f64, total: f64, k: f64, rest: f64, scale: f64, c: f64) -> (f64, f64) {
    let limit = 2.0 * (c * scale).powi(2);
    // Quadratic a·t² + b·t + d ≤ 0.
    let a = total * total - limit * (k + rest);
    let b = -2.0 * prefix * total + 2.0 * limit * k;
    let d = prefix * prefix - limit * k;
    solutions(a, b, d).unwrap_or_else(|| {
        if total > 0.0 && a * 0.25 + b * 0.5 + d > 0.0 {
            // No t fits (noise off: rounding; otherwise the .05 event): the plain estimate.
            let t = (prefix / total).clamp(0.0, 1.0);
            (t, t)
        } else {
            (0.0, 1.0)
        }
    })
}

/// Smallest interval that contains {t in [0, 1]: a·t² + b·t + d ≤ 0}; `None` if none is found.
pub(super) fn solutions(a: f64, b: f64, d: f64) -> Option<(f64, f64)> {
    let holds = |t: f64| a * t * t + b * t + d <= 0.0;
    let mut candidates: Vec<f64> = [0.0, 1.0].into_iter().filter(|t| holds(*t)).collect();
    let disc = b * b - 4.0 * a * d;
    if a != 0.0 && disc >= 0.0 {
        let q = -0.5 * (b + disc.sqrt().copysign(b));
        let mut roots = vec![q / a];
        if q != 0.0 {
            roots.push(d / q);
        }
        candidates.extend(roots.into_iter().filter(|t| (0.0..=1.0).contains(t)));
    }
    let low = candidates.iter().copied().fold(f64::INFINITY, f64::min);
    let high = candidates.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (low.is_finite() && high.is_finite()).then_some((low, high))
}

/// c for m bins.
pub(super) fn critical(m: usize) -> f64 {
    match m {
        0 | 1 => 0.0,
        4 => 3.50,
        8 => 3.63,
        16 => 3.78,
        32 => 3.83,
        64 => 3.88,
        128 => 3.94,
        // Simulated here, 20,000 runs: 3.953 and 3.954 with two standard errors.
        256 => 3.98,
        512 => 4.02,
        // Public thresholds may give many bins; beyond this c grows by less than .02 per doubling.
        _ if m > 2048 => simulated(2048, 4000) + 0.1,
        _ => simulated(m, 4000),
    }
}

/// The simulated .95 quantile plus two standard errors of its level.
fn simulated(m: usize, runs: u32) -> f64 {
    let mut noise = Seeded::new(0x0062_616e_6400 + m as u64);
    let mut largest: Vec<f64> = (0..runs)
        .map(|_| {
            let a = one_label(m, &mut noise);
            a.max(one_label(m, &mut noise))
        })
        .collect();
    largest.sort_by(f64::total_cmp);
    let runs = f64::from(runs);
    let level = 0.95 + 2.0 * (0.95 * 0.05 / runs).sqrt();
    let index = crate::common::clipped((level * runs).ceil(), 0, u32::MAX) as usize;
    largest
        .get(index)
        .or(largest.last())
        .copied()
        .unwrap_or(4.0)
}

/// The largest ratio of one label with fresh continuous noise.
fn one_label(m: usize, noise: &mut Seeded) -> f64 {
    let draws: Vec<f64> = (0..m).map(|_| laplace(noise)).collect();
    largest_ratio(&draws)
}

/// The largest ratio over vertices and rates for given noise, in units of b√2.
fn largest_ratio(draws: &[f64]) -> f64 {
    let m = draws.len();
    let total: f64 = draws.iter().sum();
    let mut prefix = 0.0;
    let mut largest = 0.0f64;
    for (k, draw) in draws.iter().enumerate().take(m.saturating_sub(1)) {
        prefix += draw;
        let rest = total - prefix;
        let (p, r) = (prefix / size(k + 1).sqrt(), rest / size(m - k - 1).sqrt());
        let ratio = if p * r < 0.0 {
            p.hypot(r)
        } else {
            p.abs().max(r.abs())
        };
        largest = largest.max(ratio);
    }
    largest / std::f64::consts::SQRT_2
}

/// Laplace of scale 1, for public simulation.
pub(super) fn laplace(noise: &mut Seeded) -> f64 {
    let bits = noise.bits();
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    let u = ((bits >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0;
    let magnitude = -u.ln();
    if bits & 1 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_reproduced() {
        // The table adds two standard errors to larger simulations; ours adds two of 10,000 runs.
        for m in [4, 8, 16, 32, 64, 128, 256] {
            let c = simulated(m, 10_000);
            assert!((c - critical(m)).abs() < 0.12, "{m}: {c} {}", critical(m));
        }
    }

    /// The counts carry discrete noise, c is computed for the continuous law: at every scale the discrete
    /// ratios exceed c in at most 5 % of runs. 4,000 runs: more than 290 has probability < 1e-9 at a true .05
    /// (6.5 standard deviations).
    #[test]
    fn discrete_noise_stays_within_the_continuous_quantile() {
        use reticent_noise::{Lattice, Scale};
        let mut noise = Seeded::new(12);
        for (p, q) in [
            (1u8, 8u8),
            (1, 6),
            (1, 5),
            (1, 4),
            (1, 3),
            (1, 2),
            (3, 4),
            (1, 1),
            (3, 1),
        ] {
            let b = reticent_accounting::Rational::from(p) / reticent_accounting::Rational::from(q);
            let lattice = Lattice::Laplace(Scale::at_least(&b).unwrap());
            for m in [4, 16] {
                let scale = lattice.scale().to_f64();
                let beyond = (0..4000)
                    .filter(|_| {
                        (0..2).any(|_| {
                            let draws: Vec<f64> = (0..m)
                                .map(|_| crate::common::real(noise.lattice(&lattice)) / scale)
                                .collect();
                            largest_ratio(&draws) > critical(m)
                        })
                    })
                    .count();
                assert!(beyond <= 290, "scale {p}/{q}, {m} bins: {beyond}");
            }
        }
    }

    #[test]
    fn curve_is_covered() {
        // 2,000 runs at nominal .95; a true coverage of .95 gives fewer than 1,840 with probability < 1e-9
        // (normal approximation: 6.2 standard deviations).
        let negatives = [5.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0, 140.0];
        let positives = [150.0, 90.0, 60.0, 40.0, 20.0, 10.0, 5.0, 2.0];
        let truth = |counts: &[f64]| -> Vec<f64> {
            let total: f64 = counts.iter().sum();
            let mut sum = 0.0;
            counts
                .iter()
                .map(|c| {
                    sum += c;
                    sum / total
                })
                .collect()
        };
        let (f, t) = (truth(&negatives), truth(&positives));
        let b = 4.0;
        let mut noise = Seeded::new(7);
        let mut covered = 0;
        for _ in 0..2000 {
            let mut add =
                |c: &[f64]| -> Vec<f64> { c.iter().map(|x| x + b * laplace(&mut noise)).collect() };
            let (n, p) = (add(&negatives), add(&positives));
            let c = critical(8);
            let inside = |h: &[(f64, f64)], t: &[f64]| {
                t.iter()
                    .zip(h.iter().skip(1))
                    .all(|(t, (low, high))| low - 1e-9 <= *t && *t <= high + 1e-9)
            };
            if inside(&hulls(&n, b, c), &f) && inside(&hulls(&p, b, c), &t) {
                covered += 1;
            }
        }
        assert!(covered >= 1840, "{covered}");
    }

    #[test]
    fn hulls_are_total() {
        for counts in [
            vec![],
            vec![0.0],
            vec![0.0; 4],
            vec![-5.0, 3.0, -2.0],
            vec![1e300, -1e300, 1.0],
        ] {
            for scale in [0.0, 1.0, 1e9] {
                for (low, high) in hulls(&counts, scale, 3.5) {
                    assert!((0.0..=1.0).contains(&low) && low <= high && high <= 1.0);
                }
            }
        }
    }
}
