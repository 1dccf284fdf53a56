//! Exact samplers over 64-bit words.
//!
//! Each asks `fast` for an answer that is decided whatever the remaining bits are, and `refine` for the rare rest.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_precision_loss,
    reason = "exact rationals with positive divisors; shifts below the width by the choice of Scale::split; constants are powers of two"
)]

use dashu::base::BitTest;
use dashu::integer::UBig;

use crate::fast::{self, ERROR};
use crate::refine::{Exponential, half_normal, saturate};
use crate::{Lattice, Noise, Rational, Scale};

/// Uniform on `0..n` (`0` for `n = 0`): the low bits of fresh words, redrawn while they are `n` or more.
///
/// # Checked by
/// `uniform_below_splits_every_word_evenly`
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

/// An index with probability exactly `weight / sum of weights` (0 when no weight is positive): a uniform integer below
/// the sum, drawn with as many bits as the sum has and drawn again while it is not below.
///
/// # Checked by
/// `picks_follow_their_weights`
pub fn pick<N: Noise + ?Sized>(weights: &[UBig], noise: &mut N) -> usize {
    let mut cumulative = Vec::with_capacity(weights.len());
    let mut sum = UBig::ZERO;
    for w in weights {
        sum += w;
        cumulative.push(sum.clone());
    }
    let length = sum.bit_len();
    if length == 0 {
        return 0;
    }
    loop {
        let mut x = UBig::ZERO;
        for _ in 0..length.div_ceil(64) {
            x = (x << 64) + noise.bits();
        }
        x.clear_high_bits(length);
        if x < sum {
            return cumulative.partition_point(|c| *c <= x);
        }
    }
}

/// True with probability `min(p / q, 1)` (false for `q = 0`).
pub fn bernoulli<N: Noise + ?Sized>(p: u128, q: u128, noise: &mut N) -> bool {
    q > 0 && uniform_below(q, noise) < p
}

/// True with probability `exp(-x)`; certain for `x <= 0`: `P(E > x)` for an exponential `E`.
///
/// In code that is to be enumerated ask instead whether a geometric draw of scale `1/x` exceeds 1.
///
/// # Checked by
/// `bernoulli_exp_changes_at_its_probability`
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
/// Above scale 2^28, `k = 2^j h + l` with `h` geometric of scale `b / 2^j` and `l` uniform below `2^j`, kept with
/// probability `exp(-l/b)`: `r^k` factors, so the parts are independent. This keeps the floating-point path decided.
/// # Checked by
/// `geometric_changes_at_its_tails`, `samplers_follow_their_masses`, `split_scales_follow_their_masses`
pub fn geometric<N: Noise + ?Sized>(b: Scale, noise: &mut N) -> i128 {
    if b.is_zero() {
        return 0;
    }
    let head = noise.bits();
    geometric_from(b, head, 64, noise)
}

/// Discrete Laplace: `P(k)` proportional to `exp(-|k|/b)`.
///
/// # Claim
/// A geometric magnitude with a fair sign, where "minus zero" is drawn again. The sign is the lowest bit of the word
/// whose other 63 bits begin the uniform behind the magnitude.
/// # Checked by
/// `laplace_changes_at_its_tails`, `samplers_follow_their_masses`, `words_drawn_do_not_tell_the_magnitude`
pub fn laplace<N: Noise + ?Sized>(b: Scale, noise: &mut N) -> i128 {
    if b.is_zero() {
        return 0;
    }
    loop {
        let word = noise.bits();
        let k = geometric_from(b, word & !1, 63, noise);
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
/// A discrete Laplace `k` of scale `t`, kept with probability `exp(-(|k|/sigma - sigma/t)² / 2)`: the product with
/// `exp(-|k|/t)` is `exp(-k² / (2 sigma²))` times a constant. The shape is that of Canonne, Kamath and Steinke, whose
/// scale is `floor(sigma) + 1`; every `t` is exact. `t = sigma` keeps most (.76 for large `sigma`), `2 sigma` below 1/4.
/// # Checked by
/// `gaussian_acceptance_changes_at_its_probability`, `mass_times_acceptance_is_gaussian`, `samplers_follow_their_masses`
/// # References
/// Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020, algorithm 3.
pub fn discrete_gaussian<N: Noise + ?Sized>(sigma: Scale, noise: &mut N) -> i128 {
    if sigma.is_zero() {
        return 0;
    }
    let (proposal, center) = proposal(sigma);
    loop {
        let k = laplace(proposal, noise);
        let head = noise.bits();
        // |k|/sigma carries three roundings; so x errs by less than (1 + ratio)² 2^-50
        let ratio = to_f64(k.unsigned_abs()) / sigma.to_f64();
        let x = 0.5 * (ratio - center) * (ratio - center);
        let quick =
            fast::neg_ln(head).and_then(|e| fast::exceeds(e, x, ERROR * (1.0 + ratio * ratio)));
        if quick.unwrap_or_else(|| {
            exceeds_slowly(head, &acceptance_exponent(k, sigma, proposal), noise)
        }) {
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
/// `rounded_gaussian_rounds_at_the_half`, `samplers_follow_their_masses`
pub fn rounded_gaussian<N: Noise + ?Sized>(sigma: Scale, noise: &mut N) -> i128 {
    if sigma.is_zero() {
        return 0;
    }
    let s = sigma.to_f64();
    let mut z = half_normal(noise);
    let quick = z.approximate().and_then(|z| {
        let x = s * z.value + 0.5;
        fast::floor(x, s * z.error + x * ROUNDINGS)
    });
    let k = match quick {
        Some(k) => i128::from(k),
        None => saturate(&z.round_times(&sigma.to_rational(), noise)),
    };
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

/// The geometric law of [`geometric`], from the first `known` bits of a uniform, aligned to the left of `head`.
#[inline]
fn geometric_from<N: Noise + ?Sized>(b: Scale, head: u64, known: u32, noise: &mut N) -> i128 {
    let s = b.to_f64();
    if s > DIRECT {
        geometric_split(b, head, known, noise)
    } else {
        floor_times(b, s, head, known, noise)
    }
}

/// `floor(b E)`; `s` is the float of `b`.
#[inline]
fn floor_times<N: Noise + ?Sized>(b: Scale, s: f64, head: u64, known: u32, noise: &mut N) -> i128 {
    match fast::neg_ln(head)
        .and_then(|e| fast::floor(s * e.value, s * e.error + s * e.value * ROUNDINGS))
    {
        Some(k) => i128::from(k),
        None => floor_slowly(b, head, known, noise),
    }
}

/// Scales above [`DIRECT`]: low bits apart.
#[inline(never)]
fn geometric_split<N: Noise + ?Sized>(b: Scale, head: u64, known: u32, noise: &mut N) -> i128 {
    let (high, shift) = b.split(28);
    let high = floor_times(high, high.to_f64(), head, known, noise);
    let mask = (1_u128 << shift) - 1;
    loop {
        let mut low = u128::from(noise.bits());
        if shift > 64 {
            low = low << 64 | u128::from(noise.bits());
        }
        low &= mask;
        let keep = noise.bits();
        let quick =
            fast::neg_ln(keep).and_then(|e| fast::exceeds(e, to_f64(low) / b.to_f64(), ERROR));
        let x = || Rational::from(low) / b.to_rational();
        if quick.unwrap_or_else(|| exceeds_slowly(keep, &x(), noise)) {
            return high.saturating_mul(1 << shift).saturating_add_unsigned(low);
        }
    }
}

#[cold]
fn floor_slowly<N: Noise + ?Sized>(b: Scale, head: u64, known: u32, noise: &mut N) -> i128 {
    saturate(&Exponential::from_head(head, known).floor_times(&b.to_rational(), noise))
}

#[cold]
fn exceeds_slowly<N: Noise + ?Sized>(head: u64, x: &Rational, noise: &mut N) -> bool {
    Exponential::from_head(head, 64).exceeds(x, noise)
}

/// The Laplace scale `t` to propose from, and `sigma / t`: both powers of two apart, so the quotient is exact.
fn proposal(sigma: Scale) -> (Scale, f64) {
    if sigma.to_f64() < 0.25 {
        (sigma.doubled(), 0.5)
    } else {
        (sigma, 1.0)
    }
}

/// `(|k| / sigma - sigma / t)² / 2`, exactly.
fn acceptance_exponent(k: i128, sigma: Scale, proposal: Scale) -> Rational {
    let s = sigma.to_rational();
    let d = Rational::from(k.unsigned_abs()) / &s - &s / proposal.to_rational();
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
