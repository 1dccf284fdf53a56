//! Certified rational bounds on exp, ln and the square root.
//!
//! Every function returns a bound on the stated side, whatever the input; the distance to the true
//! value is at most 2⁻⁶⁴ relative for `exp` and `sqrt`, and 2⁻⁹⁶ absolute plus 2⁻⁹⁶ relative for
//! `ln`. Results of `exp` have at most [`PRECISION`] significant bits.
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

/// Fractional bits of intermediate values in this module's bounds.
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
    let (_, hi, k) = exp_interval(&x.clone().max(-limit), P);
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
    let (lo, _, k) = exp_interval(&x.clone().min(limit), P);
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
fn round(value: &Rational, up: bool) -> Rational {
    round_to(value, PRECISION, up)
}

/// Rounds a non-negative value to a number of significant bits, up or down.
pub fn round_to(value: &Rational, precision: usize, up: bool) -> Rational {
    if *value <= Rational::ZERO {
        return Rational::ZERO;
    }
    let (top, bottom) = (value.numerator().bit_len(), value.denominator().bit_len());
    if bottom + precision >= top {
        return to_grid(value, bottom + precision - top, up);
    }
    let step = Rational::from(UBig::ONE << (top - bottom - precision));
    to_grid(&(value / &step), 0, up) * step
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

/// (lo, hi, k) with e^x in [lo, hi]·2^(k−p), for |x| up to [`MAX_ARGUMENT`].
///
/// k = ⌊x/ln 2⌋ − 1 leaves r = x − k·ln 2 in (0.69, 1.4), so every term is positive and from the
/// third on each is less than half the one before: the tail is below the last term.
pub(crate) fn exp_interval(x: &Rational, p: usize) -> (IBig, IBig, i64) {
    let (ln2_lo, ln2_hi) = ln2(p);
    let ln2_high = Rational::from_parts(ln2_hi.clone(), UBig::ONE << p);
    let k = i64::try_from((x / ln2_high).floor()).unwrap_or(0) - 1;
    let (k_lo, k_hi) = if k >= 0 {
        (&ln2_hi, &ln2_lo)
    } else {
        (&ln2_lo, &ln2_hi)
    };
    let (r_lo, r_hi) = (fixed(x, p, false) - k_lo * k, fixed(x, p, true) - k_hi * k);
    let one = IBig::ONE << p;
    let (mut lo, mut hi) = (one.clone(), one.clone());
    let (mut term_lo, mut term_hi) = (one.clone(), one);
    let mut n = 0_u32;
    while n < 3 || !term_lo.is_zero() {
        n += 1;
        term_lo = ((&term_lo * &r_lo) >> p) / n;
        term_hi = (((&term_hi * &r_hi) >> p) + IBig::ONE) / n + IBig::ONE;
        lo += &term_lo;
        hi += &term_hi;
    }
    (lo, hi + term_hi, k)
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
    if x.is_one() {
        return Ok((Rational::ZERO, Rational::ZERO));
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
    let (a_lo, a_hi) = artanh(&t, P);
    let (ln2_lo, ln2_hi) = ln2(P);
    let (k_lo, k_hi) = if k >= 0 {
        (ln2_lo, ln2_hi)
    } else {
        (ln2_hi, ln2_lo)
    };
    let bound = |a: IBig, l: IBig| Rational::from_parts(a * 2 + l * k, UBig::ONE << P);
    Ok((bound(a_lo, k_lo), bound(a_hi, k_hi)))
}

/// Fixed-point bounds on artanh t for |t| ≤ 1/3: powers shrink ninefold, so the tail is below the
/// next power.
fn artanh(t: &Rational, p: usize) -> (IBig, IBig) {
    if *t < Rational::ZERO {
        let (lo, hi) = artanh(&-t.clone(), p);
        return (-hi, -lo);
    }
    let (mut p_lo, mut p_hi) = (fixed(t, p, false), fixed(t, p, true));
    let (s_lo, s_hi) = ((&p_lo * &p_lo) >> p, ((&p_hi * &p_hi) >> p) + IBig::ONE);
    let (mut lo, mut hi) = (IBig::ZERO, IBig::ZERO);
    let mut n = 1_u32;
    while n == 1 || !p_lo.is_zero() {
        lo += &p_lo / n;
        hi += &p_hi / n + IBig::ONE;
        p_lo = (&p_lo * &s_lo) >> p;
        p_hi = ((&p_hi * &s_hi) >> p) + IBig::ONE;
        n += 2;
    }
    (lo, hi + p_hi)
}

/// Fixed-point bounds on ln 2 = 2·artanh(1/3).
fn ln2(p: usize) -> (IBig, IBig) {
    let (lo, hi) = artanh(&Rational::from_parts(IBig::ONE, UBig::from(3_u8)), p);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse_decimal, rational_to_f64};

    fn q(text: &str) -> Rational {
        parse_decimal(text).unwrap()
    }

    /// 30-digit values computed with mpmath at 50 digits: [lower, upper] must contain them up to
    /// the last printed digit and be narrow.
    fn brackets(lower: &Rational, upper: &Rational, golden: &str) {
        let golden = q(golden);
        let slack = golden.clone() * q("1e-29");
        let slack = if slack < Rational::ZERO {
            -slack
        } else {
            slack
        };
        assert!(lower <= &(&golden + &slack), "lower bound above {golden}");
        assert!(upper >= &(&golden - &slack), "upper bound below {golden}");
        assert!(lower <= upper);
        let width = upper - lower;
        assert!(
            width <= &slack * q("20"),
            "too wide at {golden}: {}",
            rational_to_f64(&width)
        );
    }

    #[test]
    fn bounds_bracket_golden_values() {
        for (x, golden) in [
            ("1", "2.71828182845904523536028747135"),
            ("-1", "0.367879441171442321595523770161"),
            ("0.1", "1.10517091807564762481170782649"),
            ("50", "5184705528587072464087.45332293"),
            ("-300.25", "4.00942236462285703995128321703e-131"),
        ] {
            brackets(&exp_lower(&q(x)), &exp_upper(&q(x)).unwrap(), golden);
        }
        for (x, golden) in [
            ("2", "0.693147180559945309417232121458"),
            ("10", "2.30258509299404568401799145468"),
            ("0.5", "-0.693147180559945309417232121458"),
            ("0.999", "-0.00100050033358353350014298225407"),
            ("1.0000000001", "9.99999999950000000003333333333e-11"),
            ("1e-300", "-690.775527898213705205397436405"),
            ("3e200", "461.615630887477246494993536174"),
        ] {
            brackets(&ln_lower(&q(x)).unwrap(), &ln_upper(&q(x)).unwrap(), golden);
        }
        for (x, golden) in [
            ("2", "1.41421356237309504880168872421"),
            ("1e-9", "0.0000316227766016837933199889354443"),
            ("0.3", "0.547722557505166113456969782801"),
        ] {
            brackets(&sqrt_lower(&q(x)), &sqrt_upper(&q(x)), golden);
        }
    }

    #[test]
    fn bounds_are_tight() {
        let tolerance = Rational::from_parts(IBig::ONE, UBig::ONE << 64);
        for i in -60..60 {
            let x = Rational::from_parts(IBig::from(i * 7919), UBig::from(1000_u32));
            let (lo, hi) = (exp_lower(&x), exp_upper(&x).unwrap());
            assert!(lo <= hi && (&hi - &lo) <= &lo * &tolerance, "exp at {x}");
        }
        for i in 1..200 {
            let x = Rational::from_parts(IBig::from(i * 7919), UBig::from(100_003_u32));
            assert!(
                ln_upper(&x).unwrap() - ln_lower(&x).unwrap() <= tolerance,
                "ln at {x}"
            );
            let (lo, hi) = (sqrt_lower(&x), sqrt_upper(&x));
            assert!(&lo * &lo <= x && &hi * &hi >= x && &hi - &lo <= &lo * &tolerance);
        }
        assert_eq!(sqrt_lower(&q("2.25")), q("1.5"));
        assert_eq!(sqrt_upper(&q("2.25")), q("1.5"));
        assert_eq!(ln_upper(&q("1")).unwrap(), Rational::ZERO);
        assert_eq!(ln_lower(&q("1")).unwrap(), Rational::ZERO);
    }

    #[test]
    fn extreme_arguments_are_total() {
        assert_eq!(exp_upper(&Rational::ZERO).unwrap(), Rational::ONE);
        assert!(exp_upper(&q("65536")).is_ok());
        assert!(matches!(
            exp_upper(&q("1e9")),
            Err(AccountingError::OutOfRange { .. })
        ));
        assert!(exp_upper(&q("-1e9")).unwrap() > Rational::ZERO);
        assert_eq!(exp_lower(&q("-1e9")), Rational::ZERO);
        assert!(exp_lower(&q("1e9")) > q("1e1000"));
        assert!(exp_upper(&q("5e-324")).unwrap() > Rational::ONE);
        assert!(exp_lower(&q("5e-324")) > q("0.9999999999"));
        assert!(exp_upper(&q("-5e-324")).unwrap() <= q("1.0000000001"));
        assert!(ln_upper(&Rational::ZERO).is_err());
        assert!(ln_lower(&q("-1")).is_err());
        assert_eq!(sqrt_upper(&q("-1")), Rational::ZERO);
    }
}
