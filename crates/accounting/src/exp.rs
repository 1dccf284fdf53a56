//! Certified rational bounds on exp, ln and the square root.
//!
//! Every function returns a bound on the stated side, whatever the input; the distance to the true
//! value is at most 2⁻⁶⁴ relative for `exp` and `sqrt`, and 2⁻⁹⁶ absolute plus 2⁻⁹⁶ relative for
//! `ln`. Results have at most [`PRECISION`] significant bits plus the exponent's.
//!
//! # Arithmetic
//! Fixed-point integers with `P` fractional bits; each division and shift is rounded outward, so
//! an interval [lo, hi] always contains the true value. Series have positive terms; their tails
//! are bounded by a geometric series.
//! # Checked by
//! `exp::tests::{bounds_bracket_golden_values, bounds_are_tight, extreme_arguments_are_total}`

#![allow(
    clippy::arithmetic_side_effects,
    reason = "big-number arithmetic cannot overflow; exponents are bounded by MAX_ARGUMENT and bit lengths; divisors are positive constants or checked"
)]

use dashu::base::{BitTest, SquareRoot};
use dashu::integer::{IBig, UBig};

use crate::{AccountingError, Rational, format_rational};

/// Significant bits kept in a result.
pub const PRECISION: usize = 96;

/// Largest |x| for which `exp` is computed: beyond it e^x needs more than 90,000 bits.
pub const MAX_ARGUMENT: u32 = 1 << 16;

/// Fractional bits of intermediate values.
const P: usize = 192;

/// An upper bound on e^x. Refused above [`MAX_ARGUMENT`].
pub fn exp_upper(x: &Rational) -> Result<Rational, AccountingError> {
    if x.is_zero() {
        return Ok(Rational::ONE);
    }
    let limit = Rational::from(MAX_ARGUMENT);
    if *x > limit {
        return Err(AccountingError::OutOfRange {
            name: "exponent",
            value: format_rational(x),
            allowed: "at most 65536",
        });
    }
    let (_, hi, k) = exp_interval(&x.clone().max(-limit));
    Ok(round(&scaled(hi, k), true))
}

/// A lower bound on e^x; 0 below −[`MAX_ARGUMENT`], e^[`MAX_ARGUMENT`] above it.
pub fn exp_lower(x: &Rational) -> Rational {
    if x.is_zero() {
        return Rational::ONE;
    }
    let limit = Rational::from(MAX_ARGUMENT);
    if *x < -limit.clone() {
        return Rational::ZERO;
    }
    let (lo, _, k) = exp_interval(&x.clone().min(limit));
    round(&scaled(lo, k), false)
}

/// An upper bound on ln x, for x > 0.
pub fn ln_upper(x: &Rational) -> Result<Rational, AccountingError> {
    Ok(ln_interval(x)?.1)
}

/// A lower bound on ln x, for x > 0.
pub fn ln_lower(x: &Rational) -> Result<Rational, AccountingError> {
    Ok(ln_interval(x)?.0)
}

/// An upper bound on √x, exact for squares that fit the precision; 0 for x ≤ 0.
pub fn sqrt_upper(x: &Rational) -> Rational {
    sqrt_interval(x).1
}

/// A lower bound on √x, exact for squares that fit the precision; 0 for x ≤ 0.
pub fn sqrt_lower(x: &Rational) -> Rational {
    sqrt_interval(x).0
}

/// Rounds a non-negative value to [`PRECISION`] significant bits, up or down.
pub(crate) fn round(value: &Rational, up: bool) -> Rational {
    if *value <= Rational::ZERO {
        return Rational::ZERO;
    }
    let (top, bottom) = (value.numerator().bit_len(), value.denominator().bit_len());
    if bottom + PRECISION >= top {
        to_grid(value, bottom + PRECISION - top, up)
    } else {
        let step = Rational::from(UBig::ONE << (top - bottom - PRECISION));
        to_grid(&(value / &step), 0, up) * step
    }
}

/// The nearest multiple of 2^−bits on one side.
pub(crate) fn to_grid(value: &Rational, bits: usize, up: bool) -> Rational {
    let integer = fixed(value, bits, up);
    Rational::from_parts(integer, UBig::ONE << bits)
}

/// ⌊value·2^bits⌋ or ⌈value·2^bits⌉.
pub(crate) fn fixed(value: &Rational, bits: usize, up: bool) -> IBig {
    let scaled = Rational::from_parts(value.numerator() << bits, value.denominator().clone());
    if up { scaled.ceil() } else { scaled.floor() }
}

/// (lo, hi, k) with e^x in [lo, hi]·2^(k−P).
///
/// k = ⌊x/ln 2⌋ − 1 leaves r = x − k·ln 2 in (0.69, 1.4), so every term is positive and the terms
/// after the third shrink by more than half: the tail is below the last term.
fn exp_interval(x: &Rational) -> (IBig, IBig, i64) {
    let (ln2_lo, ln2_hi) = ln2();
    let ln2_high = Rational::from_parts(ln2_hi.clone(), UBig::ONE << P);
    let k = i64::try_from((x / ln2_high).floor()).unwrap_or(0) - 1;
    let (k_lo, k_hi) = if k >= 0 {
        (&ln2_hi, &ln2_lo)
    } else {
        (&ln2_lo, &ln2_hi)
    };
    let (r_lo, r_hi) = (fixed(x, P, false) - k_lo * k, fixed(x, P, true) - k_hi * k);
    let one = IBig::ONE << P;
    let (mut lo, mut hi) = (one.clone(), one.clone());
    let (mut term_lo, mut term_hi) = (one.clone(), one);
    for n in 1_u32..=80 {
        term_lo = ((&term_lo * &r_lo) >> P) / n;
        term_hi = (((&term_hi * &r_hi) >> P) + IBig::ONE) / n + IBig::ONE;
        lo += &term_lo;
        hi += &term_hi;
    }
    hi += term_hi;
    (lo, hi, k)
}

fn scaled(mantissa: IBig, k: i64) -> Rational {
    let value = Rational::from_parts(mantissa, UBig::ONE << P);
    let shift = usize::try_from(k.unsigned_abs()).unwrap_or(0);
    let power = Rational::from(UBig::ONE << shift);
    if k >= 0 { value * power } else { value / power }
}

/// Bounds on ln x = k·ln 2 + 2·artanh((m−1)/(m+1)) with x = m·2^k, m in (1/2, 2).
fn ln_interval(x: &Rational) -> Result<(Rational, Rational), AccountingError> {
    if *x <= Rational::ZERO {
        return Err(AccountingError::OutOfRange {
            name: "argument of the logarithm",
            value: format_rational(x),
            allowed: "greater than 0",
        });
    }
    let half = Rational::from_parts(IBig::ONE, UBig::from(2_u8));
    let (mut k, mut m) = (0_i64, x.clone());
    if m <= half || m >= Rational::from(2) {
        let top = i64::try_from(x.numerator().bit_len()).unwrap_or(0);
        let bottom = i64::try_from(x.denominator().bit_len()).unwrap_or(0);
        k = top - bottom;
        let power = Rational::from(UBig::ONE << usize::try_from(k.unsigned_abs()).unwrap_or(0));
        m = if k >= 0 { x / power } else { x * power };
    }
    let t = (&m - Rational::ONE) / (m + Rational::ONE);
    let (a_lo, a_hi) = (artanh(&t).0, artanh(&t).1);
    let (ln2_lo, ln2_hi) = ln2();
    let (k_lo, k_hi) = if k >= 0 {
        (ln2_lo, ln2_hi)
    } else {
        (ln2_hi, ln2_lo)
    };
    let bound = |a: IBig, l: IBig| Rational::from_parts(a * 2 + l * k, UBig::ONE << P);
    Ok((bound(a_lo, k_lo), bound(a_hi, k_hi)))
}

/// Fixed-point bounds on artanh t for |t| ≤ 1/3: terms shrink ninefold.
fn artanh(t: &Rational) -> (IBig, IBig) {
    if *t < Rational::ZERO {
        let (lo, hi) = artanh(&-t.clone());
        return (-hi, -lo);
    }
    let (mut p_lo, mut p_hi) = (fixed(t, P, false), fixed(t, P, true));
    let (s_lo, s_hi) = ((&p_lo * &p_lo) >> P, ((&p_hi * &p_hi) >> P) + IBig::ONE);
    let (mut lo, mut hi) = (IBig::ZERO, IBig::ZERO);
    for n in (1_u32..=135).step_by(2) {
        lo += &p_lo / n;
        hi += &p_hi / n + IBig::ONE;
        p_lo = (&p_lo * &s_lo) >> P;
        p_hi = ((&p_hi * &s_hi) >> P) + IBig::ONE;
    }
    (lo, hi + p_hi)
}

/// Fixed-point bounds on ln 2 = 2·artanh(1/3).
fn ln2() -> (IBig, IBig) {
    let (lo, hi) = artanh(&Rational::from_parts(IBig::ONE, UBig::from(3_u8)));
    (lo * 2, hi * 2)
}

/// √(p/q) = ⌊√(p·2^2s/q)⌋/2^s and one unit more, s giving at least [`PRECISION`] bits.
fn sqrt_interval(x: &Rational) -> (Rational, Rational) {
    if *x <= Rational::ZERO {
        return (Rational::ZERO, Rational::ZERO);
    }
    let (top, bottom) = (x.numerator().bit_len(), x.denominator().bit_len());
    let s = (bottom + 2 * PRECISION + 2).saturating_sub(top).div_ceil(2);
    let scaled = Rational::from_parts(x.numerator() << (2 * s), x.denominator().clone());
    let (_, floor) = scaled.floor().into_parts();
    let root = floor.sqrt();
    let lower = Rational::from_parts(IBig::from(root.clone()), UBig::ONE << s);
    if &lower * &lower == *x {
        return (lower.clone(), lower);
    }
    (
        lower,
        Rational::from_parts(IBig::from(root + UBig::ONE), UBig::ONE << s),
    )
}
