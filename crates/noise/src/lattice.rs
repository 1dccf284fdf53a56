//! Distributions on the integers: names, masses, tails.

use crate::Scale;

/// A distribution on the integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lattice {
    /// Two-sided discrete Laplace: `P(k)` proportional to `exp(-|k|/b)`.
    Laplace(Scale),
    /// One-sided geometric: `P(k) = (1 - r) r^k`, `k >= 0`, `r = exp(-1/b)`.
    Geometric(Scale),
    /// Discrete Gaussian (Canonne, Kamath, Steinke): `P(k)` proportional to `exp(-k² / (2 sigma²))`.
    DiscreteGaussian(Scale),
    /// The continuous Gaussian `N(0, sigma²)` correctly rounded: `floor(sigma Z + 1/2)`.
    RoundedGaussian(Scale),
}

impl Lattice {
    /// The scale.
    pub fn scale(&self) -> Scale {
        let (Self::Laplace(s)
        | Self::Geometric(s)
        | Self::DiscreteGaussian(s)
        | Self::RoundedGaussian(s)) = self;
        *s
    }

    /// Name of the distribution.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Laplace(_) => "discrete Laplace",
            Self::Geometric(_) => "geometric",
            Self::DiscreteGaussian(_) => "discrete Gaussian",
            Self::RoundedGaussian(_) => "rounded Gaussian",
        }
    }

    /// `P(X = k)`.
    pub fn mass(&self, k: i128) -> f64 {
        if self.scale().is_zero() {
            return if k == 0 { 1.0 } else { 0.0 };
        }
        let s = self.scale().to_f64();
        let x = k as f64;
        match self {
            Self::Laplace(_) => libm::tanh(0.5 / s) * libm::exp(-x.abs() / s),
            Self::Geometric(_) if k < 0 => 0.0,
            Self::Geometric(_) => -libm::expm1(-1.0 / s) * libm::exp(-x / s),
            Self::DiscreteGaussian(_) => discrete_density(x, s) / discrete_total(s),
            Self::RoundedGaussian(_) => rounded_mass(x.abs(), s),
        }
    }

    /// `P(X >= k)`.
    pub fn upper_tail(&self, k: i128) -> f64 {
        if self.scale().is_zero() {
            return if k <= 0 { 1.0 } else { 0.0 };
        }
        let s = self.scale().to_f64();
        match self {
            Self::Geometric(_) if k <= 0 => 1.0,
            Self::Geometric(_) => libm::exp(-(k as f64) / s),
            Self::RoundedGaussian(_) => {
                0.5 * libm::erfc((k as f64 - 0.5) / (s * std::f64::consts::SQRT_2))
            }
            _ if k <= 0 => 1.0 - self.upper_tail(k.saturating_neg().saturating_add(1)),
            Self::Laplace(_) => libm::exp(-(k as f64) / s) / (1.0 + libm::exp(-1.0 / s)),
            Self::DiscreteGaussian(_) => discrete_tail(k as f64, s) / discrete_total(s),
        }
    }

    /// `P(X < k)`, accurate also where it is small.
    pub fn lower_tail(&self, k: i128) -> f64 {
        match self {
            Self::Geometric(_) if k <= 0 => 0.0,
            Self::Geometric(s) if s.is_zero() => 1.0,
            Self::Geometric(s) => -libm::expm1(-(k as f64) / s.to_f64()),
            // symmetric: P(X < k) = P(X >= 1 - k)
            _ => self.upper_tail(1_i128.saturating_sub(k)),
        }
    }

    /// `P(|X| > q)` for `q >= 0`.
    pub fn outside(&self, q: i128) -> f64 {
        let above = self.upper_tail(q.saturating_add(1));
        if matches!(self, Self::Geometric(_)) {
            above
        } else {
            2.0 * above
        }
    }

    /// The smallest integer `q` with `|X| <= q` with probability at least .95.
    pub fn quantile_95(&self) -> f64 {
        let (mut low, mut high) = (-1_i128, 1_i128 << 110);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.outside(middle) <= 0.05 {
                high = middle
            } else {
                low = middle
            }
        }
        high as f64
    }

    /// Standard deviation.
    pub fn std_dev(&self) -> f64 {
        if self.scale().is_zero() {
            return 0.0;
        }
        let s = self.scale().to_f64();
        match self {
            Self::Laplace(_) => std::f64::consts::FRAC_1_SQRT_2 / libm::sinh(0.5 / s),
            Self::Geometric(_) => 0.5 / libm::sinh(0.5 / s),
            Self::DiscreteGaussian(_) if s >= 4.0 => s,
            Self::RoundedGaussian(_) if s >= 4.0 => libm::sqrt(s * s + 1.0 / 12.0),
            _ => libm::sqrt(
                (1..200)
                    .map(|k| 2.0 * f64::from(k * k) * self.mass(i128::from(k)))
                    .sum(),
            ),
        }
    }
}

fn discrete_density(x: f64, s: f64) -> f64 {
    libm::exp(-0.5 * (x / s) * (x / s))
}

fn discrete_total(s: f64) -> f64 {
    if s < 1.0 {
        return 1.0
            + 2.0
                * (1..12)
                    .map(|k| discrete_density(f64::from(k), s))
                    .sum::<f64>();
    }
    let a = 2.0 * std::f64::consts::PI * std::f64::consts::PI * s * s;
    s * libm::sqrt(2.0 * std::f64::consts::PI)
        * (1.0 + 2.0 * libm::exp(-a) + 2.0 * libm::exp(-4.0 * a))
}

fn discrete_tail(k: f64, s: f64) -> f64 {
    let mut sum = 0.0;
    let mut j = k;
    loop {
        let term = discrete_density(j, s);
        sum += term;
        if term <= sum * 1e-19 {
            return sum;
        }
        j += 1.0;
    }
}

fn rounded_mass(k: f64, s: f64) -> f64 {
    let c = s * std::f64::consts::SQRT_2;
    if k == 0.0 {
        return libm::erf(0.5 / c);
    }
    0.5 * (libm::erfc((k - 0.5) / c) - libm::erfc((k + 0.5) / c))
}
