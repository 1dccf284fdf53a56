//! Exact samplers over 64-bit words.
//!
//! Each asks `fast` for an answer that is decided whatever the remaining bits are, and `refine` for the rare rest.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_precision_loss,
    reason = "exact rationals with positive divisors; shifts below the width by the choice of Scale::split; constants are powers of two"
)]

use crate::fast::{self, ERROR};
use crate::refine::{Exponential, half_normal, saturate};
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
///
/// # Claim
/// `floor(b E)` for an exponential `E` has this law: `P(floor(b E) >= k) = P(E >= k/b) = r^k`.
/// # Arithmetic
/// Above [`DIRECT`], `k = 2^j h + l` with `h` geometric of scale `b / 2^j` and `l` uniform below `2^j`, kept with
/// probability `exp(-l/b)`: `r^k` factors, so the parts are independent. This keeps the floating-point path decided.
/// # Checked by
/// `samplers_follow_their_masses`, `split_scales_follow_their_masses`, `single_round_is_exact_by_layers`
pub fn geometric<N: Noise + ?Sized>(b: Scale, noise: &mut N) -> i128 {
    if b.is_zero() {
        return 0;
    }
    let e = Exponential::draw(noise);
    geometric_from(b, e, noise)
}

/// Discrete Laplace: `P(k)` proportional to `exp(-|k|/b)`.
///
/// # Claim
/// A geometric magnitude with a fair sign, where "minus zero" is drawn again. The sign is the lowest bit of the word
/// whose other 63 bits begin the uniform behind the magnitude.
/// # Checked by
/// `samplers_follow_their_masses`, `single_round_is_exact_by_layers`
pub fn laplace<N: Noise + ?Sized>(b: Scale, noise: &mut N) -> i128 {
    if b.is_zero() {
        return 0;
    }
    loop {
        let word = noise.bits();
        let k = geometric_from(b, Exponential::from_upper(word), noise);
        if word & 1 == 0 {
            return k;
        }
        if k != 0 {
            return k.saturating_neg();
        }
    }
}

/// Discrete Gaussian: `P(k)` proportional to `exp(-k² / (2 sigma²))`.
///
/// # Claim
/// A discrete Laplace `k` of scale `sigma`, kept with probability `exp(-(|k|/sigma - 1)² / 2)`: the product is
/// `exp(-k² / (2 sigma²) - 1/2)`. The shape is that of Canonne, Kamath and Steinke, whose Laplace scale is
/// `floor(sigma) + 1`; any scale is exact, and `sigma` itself accepts most often (about .76 for large `sigma`).
/// # Checked by
/// `samplers_follow_their_masses`, `mass_times_acceptance_is_gaussian`
/// # References
/// Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020, algorithm 3.
pub fn discrete_gaussian<N: Noise + ?Sized>(sigma: Scale, noise: &mut N) -> i128 {
    if sigma.is_zero() {
        return 0;
    }
    loop {
        let k = laplace(sigma, noise);
        let mut e = Exponential::draw(noise);
        // |k|/sigma carries three roundings; (1 + ratio)² 2^-50 bounds the error of x, far inside ERROR * factor
        let ratio = to_f64(k.unsigned_abs()) / sigma.to_f64();
        let x = 0.5 * (ratio - 1.0) * (ratio - 1.0);
        let quick = e
            .approximate()
            .and_then(|e| fast::exceeds(e, x, 1.0 + ratio * ratio));
        if quick.unwrap_or_else(|| e.exceeds(&acceptance_exponent(k, sigma), noise)) {
            return k;
        }
    }
}

/// The continuous Gaussian correctly rounded: `floor(sigma Z + 1/2)` for a standard normal `Z`.
///
/// # Claim
/// The magnitude `floor(sigma |Z| + 1/2)` of the ideal real value, with a fair sign (ties have probability 0, so rounding
/// commutes with the sign).
/// # Checked by
/// `samplers_follow_their_masses`, `mass_of_rounded_gaussian_sums`
pub fn rounded_gaussian<N: Noise + ?Sized>(sigma: Scale, noise: &mut N) -> i128 {
    if sigma.is_zero() {
        return 0;
    }
    let mut z = half_normal(noise);
    let s = sigma.to_f64();
    let quick = z.approximate().and_then(|z| {
        let x = s * z;
        fast::floor(x + 0.5, s * ERROR + (x + 0.5) * ROUNDINGS)
    });
    let k = quick.map_or_else(
        || saturate(&z.round_times(&sigma.to_rational(), noise)),
        i128::from,
    );
    if noise.bits() & 1 == 1 {
        k.saturating_neg()
    } else {
        k
    }
}

/// Scales up to 2^28 need one exponential; the float decides all but one draw in about 2^16.
const DIRECT: f64 = (1_u64 << 28) as f64;

/// Relative error of a product of a scale in floating point with a float, with room: 2^-50.
const ROUNDINGS: f64 = 1.0 / (1_u64 << 50) as f64;

/// The geometric law of [`geometric`], from a given exponential.
#[inline]
fn geometric_from<N: Noise + ?Sized>(b: Scale, e: Exponential, noise: &mut N) -> i128 {
    let s = b.to_f64();
    if s > DIRECT {
        geometric_split(b, e, noise)
    } else {
        floor_times(b, s, e, noise)
    }
}

/// `floor(b E)`; `s` is the float of `b`.
#[inline]
fn floor_times<N: Noise + ?Sized>(b: Scale, s: f64, mut e: Exponential, noise: &mut N) -> i128 {
    let quick = e
        .approximate()
        .and_then(|e| fast::floor(s * e, s * ERROR + s * e * ROUNDINGS));
    quick.map_or_else(
        || saturate(&e.floor_times(&b.to_rational(), noise)),
        i128::from,
    )
}

/// Scales above [`DIRECT`]: low bits apart.
fn geometric_split<N: Noise + ?Sized>(b: Scale, e: Exponential, noise: &mut N) -> i128 {
    let (high, shift) = b.split(28);
    let high = floor_times(high, high.to_f64(), e, noise);
    loop {
        let low = if shift <= 64 {
            u128::from(noise.bits()) & ((1 << shift) - 1)
        } else {
            (u128::from(noise.bits()) << 64 | u128::from(noise.bits())) & ((1 << shift) - 1)
        };
        let mut keep = Exponential::draw(noise);
        let quick = keep
            .approximate()
            .and_then(|e| fast::exceeds(e, to_f64(low) / b.to_f64(), 1.0));
        if quick.unwrap_or_else(|| keep.exceeds(&(Rational::from(low) / b.to_rational()), noise)) {
            return high.saturating_mul(1 << shift).saturating_add_unsigned(low);
        }
    }
}

/// `(|k|/sigma - 1)² / 2`, exactly.
fn acceptance_exponent(k: i128, sigma: Scale) -> Rational {
    let d = Rational::from(k.unsigned_abs()) / sigma.to_rational() - Rational::ONE;
    &d * &d / Rational::from(2_u8)
}

/// The nearest float.
#[allow(
    clippy::cast_precision_loss,
    reason = "the one rounding is counted by the callers"
)]
fn to_f64(x: u128) -> f64 {
    x as f64
}
