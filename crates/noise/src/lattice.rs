//! Distributions on the integers.

use crate::Scale;

/// A distribution on the integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
}
