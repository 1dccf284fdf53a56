//! Masses, tails and spreads of [`Lattice`] distributions in floating point.

use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

use reticent_noise::{Cell, Lattice, LogWeights};

/// The law of an integer draw.
pub trait Law {
    /// `P(X = k)`, relative error about 1e-14 unless the mass is below 1e-30.
    fn mass(&self, k: i128) -> f64;
    /// `P(X >= k)`.
    fn upper_tail(&self, k: i128) -> f64;
    /// `P(X < k)`, accurate also where it is small.
    fn lower_tail(&self, k: i128) -> f64;
    /// `P(|X| > q)` for `q >= 0`.
    fn outside(&self, q: i128) -> f64;
    /// The smallest integer `q >= 0` with `P(|X| > q) <= tail` (at most 2^120).
    fn radius(&self, tail: f64) -> i128;
    /// The smallest integer `q` with `|X| <= q` with probability at least .95.
    fn quantile_95(&self) -> f64;
    /// Standard deviation.
    fn std_dev(&self) -> f64;
}

impl Law for Lattice {
    fn mass(&self, k: i128) -> f64 {
        let s = self.scale().to_f64();
        if self.scale().is_zero() {
            return if k == 0 { 1.0 } else { 0.0 };
        }
        let x = (k as f64).abs();
        match self {
            Self::Laplace(_) => libm::tanh(0.5 / s) * libm::exp(-x / s),
            Self::Geometric(_) if k < 0 => 0.0,
            Self::Geometric(_) => -libm::expm1(-1.0 / s) * libm::exp(-x / s),
            Self::DiscreteGaussian(_) => gaussian(x, s) / gaussian_total(s),
            Self::RoundedGaussian(_) => rounded_mass(x, s),
        }
    }

    fn upper_tail(&self, k: i128) -> f64 {
        let s = self.scale().to_f64();
        if self.scale().is_zero() {
            return if k <= 0 { 1.0 } else { 0.0 };
        }
        let x = k as f64;
        match self {
            Self::Geometric(_) if k <= 0 => 1.0,
            Self::Geometric(_) => libm::exp(-x / s),
            Self::RoundedGaussian(_) => 0.5 * libm::erfc((x - 0.5) / (s * SQRT_2)),
            // symmetric: P(X >= k) = 1 - P(X >= 1 - k)
            _ if k <= 0 => 1.0 - self.upper_tail(1_i128.saturating_sub(k)),
            Self::Laplace(_) => libm::exp(-x / s) / (1.0 + libm::exp(-1.0 / s)),
            Self::DiscreteGaussian(_) => gaussian_tail(x, s) / gaussian_total(s),
        }
    }

    fn lower_tail(&self, k: i128) -> f64 {
        match self {
            Self::Geometric(_) if k <= 0 => 0.0,
            Self::Geometric(s) if s.is_zero() => 1.0,
            Self::Geometric(s) => -libm::expm1(-(k as f64) / s.to_f64()),
            // symmetric: P(X < k) = P(X >= 1 - k)
            _ => self.upper_tail(1_i128.saturating_sub(k)),
        }
    }

    fn outside(&self, q: i128) -> f64 {
        let above = self.upper_tail(q.saturating_add(1));
        if matches!(self, Self::Geometric(_)) {
            above
        } else {
            2.0 * above
        }
    }

    fn radius(&self, tail: f64) -> i128 {
        if self.outside(0) <= tail {
            return 0;
        }
        let (mut low, mut high) = (0_i128, 1_i128);
        while self.outside(high) > tail && high < 1 << 120 {
            low = high;
            high = high.saturating_mul(2);
        }
        // outside(low) > tail >= outside(high)
        while high.saturating_sub(low) > 1 {
            let middle = i128::midpoint(low, high);
            if self.outside(middle) <= tail {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }

    fn quantile_95(&self) -> f64 {
        self.radius(0.05) as f64
    }

    fn std_dev(&self) -> f64 {
        let s = self.scale().to_f64();
        match self {
            _ if self.scale().is_zero() => 0.0,
            Self::Laplace(_) => FRAC_1_SQRT_2 / libm::sinh(0.5 / s),
            Self::Geometric(_) => 0.5 / libm::sinh(0.5 / s),
            // corrections of the order of exp(-2 pi² s²)
            Self::DiscreteGaussian(_) if s >= 4.0 => s,
            Self::RoundedGaussian(_) if s >= 4.0 => libm::sqrt(s * s + 1.0 / 12.0),
            _ => libm::sqrt(
                (1..200_u8)
                    .map(|k| 2.0 * f64::from(k) * f64::from(k) * self.mass(i128::from(k)))
                    .sum(),
            ),
        }
    }
}

/// `exp(-x² / (2 s²))`.
fn gaussian(x: f64, s: f64) -> f64 {
    libm::exp(-0.5 * (x / s) * (x / s))
}

/// Sum of [`gaussian`] over the integers; for `s >= 1` by Poisson summation, whose third term is below 1e-34.
fn gaussian_total(s: f64) -> f64 {
    if s < 1.0 {
        return 1.0 + 2.0 * (1..12_u8).map(|k| gaussian(f64::from(k), s)).sum::<f64>();
    }
    s * libm::sqrt(2.0 * PI) * (1.0 + 2.0 * libm::exp(-2.0 * PI * PI * s * s))
}

/// Sum of [`gaussian`] over the integers from `k >= 1`; for large `s` the integral from `a = k - 1/2` and the first two
/// midpoint corrections, 1/24 of the first derivative at `a` less 7/5760 of the third; the next is `3.2e-5 (a/s²)^6` of the sum.
fn gaussian_tail(k: f64, s: f64) -> f64 {
    if s > 512.0 {
        let u = (k - 0.5) / s;
        let first = -u / s / 24.0;
        let third = 7.0 * (u * u * u - 3.0 * u) / (s * s * s) / 5760.0;
        return s * libm::sqrt(PI / 2.0) * libm::erfc(u * FRAC_1_SQRT_2)
            + (first + third) * libm::exp(-0.5 * u * u);
    }
    let (mut j, mut sum) = (k, 0.0);
    loop {
        let term = gaussian(j, s);
        sum += term;
        if term <= sum * 1e-18 {
            return sum;
        }
        j += 1.0;
    }
}

/// Mass of `[k - 1/2, k + 1/2]` under `N(0, s²)`, `k >= 0`: a difference of tails where they differ clearly, else the
/// density at `k` times the mean of `cosh(k t / s²) exp(-t² / (2 s²))` over `|t| <= 1/2`, by eight-point Gauss-Legendre.
fn rounded_mass(k: f64, s: f64) -> f64 {
    const NODES: [(f64, f64); 4] = [
        (0.183_434_642_495_649_8, 0.362_683_783_378_362),
        (0.525_532_409_916_329, 0.313_706_645_877_887_3),
        (0.796_666_477_413_626_7, 0.222_381_034_453_374_47),
        (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
    ];
    if s >= 1.0 && k < 0.5 * s * s {
        let slope = 0.5 * k / s / s;
        let mean: f64 = NODES
            .iter()
            .map(|(x, w)| w * libm::cosh(slope * x) * libm::exp(-0.125 * (x / s) * (x / s)))
            .sum();
        return gaussian(k, s) / (s * libm::sqrt(2.0 * PI)) * mean;
    }
    let c = s * SQRT_2;
    if k < 0.5 {
        return libm::erf(0.5 / c);
    }
    0.5 * (libm::erfc((k - 0.5) / c) - libm::erfc((k + 0.5) / c))
}

/// The probabilities of a choice's cells.
pub trait Probabilities {
    /// One number per cell, relative error about 1e-13; all zero when no cell can be chosen.
    fn probabilities(&self) -> Vec<f64>;

    /// The index a choice without noise takes: the first cell of largest weight (0 when no cell can be chosen).
    fn best(&self) -> usize;
}

impl Probabilities for LogWeights {
    fn probabilities(&self) -> Vec<f64> {
        let Some(best) = self.best_loss() else {
            return vec![0.0; self.cells.len()];
        };
        let rate = self.rate.to_f64().value().abs();
        let weights: Vec<f64> = self
            .cells
            .iter()
            .map(|c| {
                let gap = c.loss.abs_diff(best);
                // an infinite rate times no gap would be NaN
                let factor = if gap == 0 {
                    1.0
                } else {
                    libm::exp(-(rate * gap as f64))
                };
                c.multiplicity as f64 * factor
            })
            .collect();
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|w| w / total).collect()
    }

    fn best(&self) -> usize {
        let Some(best) = self.best_loss() else {
            return 0;
        };
        let tied = |c: &Cell| c.multiplicity > 0 && (c.loss == best || self.rate.is_zero());
        let most = self
            .cells
            .iter()
            .filter(|c| tied(c))
            .map(|c| c.multiplicity)
            .max()
            .unwrap_or(0);
        self.cells
            .iter()
            .position(|c| tied(c) && c.multiplicity == most)
            .unwrap_or(0)
    }
}
