//! Exact samplers over 64-bit words.

use dashu::integer::IBig;

use crate::refine::{Exponential, Interval, half_normal, saturate, until};
use crate::{Lattice, Noise, Rational, Scale};

/// Uniform on `0..n` (`0` for `n = 0`).
pub fn uniform_below<N: Noise + ?Sized>(n: u128, noise: &mut N) -> u128 {
    if n <= 1 {
        return 0;
    }
    let mask = u128::MAX >> (n - 1).leading_zeros();
    loop {
        let low = u128::from(noise.bits());
        let high = if mask >> 64 == 0 {
            0
        } else {
            u128::from(noise.bits())
        };
        let x = (high << 64 | low) & mask;
        if x < n {
            return x;
        }
    }
}

/// True with probability `min(p / q, 1)` (false for `q = 0`).
pub fn bernoulli<N: Noise + ?Sized>(p: u128, q: u128, noise: &mut N) -> bool {
    q > 0 && uniform_below(q, noise) < p
}

/// True with probability `exp(-x)`; certain for `x <= 0`.
pub fn bernoulli_exp<N: Noise + ?Sized>(x: &Rational, noise: &mut N) -> bool {
    *x <= Rational::ZERO || Exponential::draw(noise).exceeds(x, noise)
}

/// One draw of `d`.
pub fn lattice<N: Noise + ?Sized>(d: &Lattice, noise: &mut N) -> i128 {
    match d {
        Lattice::Laplace(b) => laplace(*b, noise),
        Lattice::Geometric(b) => geometric(*b, noise),
        Lattice::DiscreteGaussian(sigma) => discrete_gaussian(*sigma, noise),
        Lattice::RoundedGaussian(sigma) => rounded_gaussian(*sigma, noise),
    }
}

/// One-sided geometric: `P(k) = (1 - r) r^k`, `k >= 0`, `r = exp(-1/b)`.
pub fn geometric<N: Noise + ?Sized>(b: Scale, noise: &mut N) -> i128 {
    if b.is_zero() {
        return 0;
    }
    saturate(&Exponential::draw(noise).floor_times(&b.to_rational(), noise))
}

/// Discrete Laplace: `P(k)` proportional to `exp(-|k|/b)`.
pub fn laplace<N: Noise + ?Sized>(b: Scale, noise: &mut N) -> i128 {
    if b.is_zero() {
        return 0;
    }
    loop {
        let word = noise.bits();
        let k = saturate(&Exponential::from_upper(word).floor_times(&b.to_rational(), noise));
        if word & 1 == 0 {
            return k;
        }
        if k != 0 {
            return -k;
        }
    }
}

/// Discrete Gaussian: `P(k)` proportional to `exp(-k² / (2 sigma²))`.
pub fn discrete_gaussian<N: Noise + ?Sized>(sigma: Scale, noise: &mut N) -> i128 {
    if sigma.is_zero() {
        return 0;
    }
    loop {
        let k = laplace(sigma, noise);
        let d = Rational::from(IBig::from(k.unsigned_abs())) / sigma.to_rational() - Rational::ONE;
        let x = &d * &d / Rational::from(2_u8);
        if bernoulli_exp(&x, noise) {
            return k;
        }
    }
}

/// `floor(sigma Z + 1/2)` for a standard normal `Z`.
pub fn rounded_gaussian<N: Noise + ?Sized>(sigma: Scale, noise: &mut N) -> i128 {
    if sigma.is_zero() {
        return 0;
    }
    let mut z = half_normal(noise);
    let scale = sigma.to_rational();
    let k = until(128, |p| {
        z.enclose(p, noise)
            .mul(&Interval::rational(&scale, p), p)
            .round(p)
    });
    let k = saturate(&k);
    if noise.bits() & 1 == 1 { -k } else { k }
}
