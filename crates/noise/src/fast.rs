//! Floating-point enclosures with proved errors, tried before any big integer.
//!
//! Only additions, products, quotients and square roots are used: each is correctly rounded (IEEE 754, relative error
//! at most 2⁻⁵³), so the bounds below hold on every machine. A value too close to a decision is left to `refine`.
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "numeric kernels: casts are exact or counted in the stated error, table indices are masked to the table length"
)]

use std::sync::OnceLock;

/// Unit of absolute errors: the least error [`neg_ln`] reports.
pub(crate) const ERROR: f64 = 1.0 / (1_u64 << 45) as f64;

/// A float and a bound on its distance from the true value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Near {
    pub(crate) value: f64,
    pub(crate) error: f64,
}

/// Bound on the relative error of [`exp_neg`].
pub(crate) const EXP_ERROR: f64 = 1.0 / (1_u64 << 40) as f64;

/// `-ln U` for any `U` in `[head, head + 2] 2^-64`; `None` when `head < 2^24` (probability 2⁻⁴⁰).
///
/// # Arithmetic
/// `U = 2^-n m`, `1 <= m < 2`; with `c` the midpoint of the 128th of `[1, 2)` that holds `m`,
/// `-ln U = n ln 2 - ln c - 2 atanh z`, `z = (m - c) / (m + c)`, `|z| < 2⁻⁹`. Errors: cutting `m` to 52 bits 2⁻⁵²; `z` (the
/// numerator is exact) 2⁻⁶⁰; series after `z⁵` 2⁻⁶⁴; table 2⁻⁵⁴; `n ln 2` and the last two sums, each below 32: 3 * 2⁻⁴⁹.
/// Together below 2⁻⁴⁷, hence inside [`ERROR`]. To this comes the width of the interval for `U`, at most `2 / head`, and
/// `head >= 2^(64-n)`: `2^(n-63)`.
/// # Checked by
/// `float_logarithm_is_within_its_bound`
#[inline]
pub(crate) fn neg_ln(head: u64) -> Option<Near> {
    if head < 1 << 24 {
        return None;
    }
    let zeros = head.leading_zeros();
    let bits = head << zeros;
    let m = f64::from_bits(0x3FF0_0000_0000_0000 | (bits << 1) >> 12);
    let cell = ((bits >> 56) & 127) as usize;
    let c = 1.0 + (2 * cell + 1) as f64 / 256.0;
    let z = (m - c) / (m + c);
    let z2 = z * z;
    let series = 2.0 * z + 2.0 * z * z2 * (1.0 / 3.0 + z2 * 0.2);
    let width = f64::from_bits(u64::from(1023 + zeros + 1 - 63) << 52);
    Some(Near {
        value: f64::from(zeros + 1) * LN_TWO - (LN_MIDPOINT[cell] + series),
        error: ERROR + width,
    })
}

/// Whether `e > x`, when `x` is within `slack` of its true value and that decides it.
#[inline]
pub(crate) fn exceeds(e: Near, x: f64, slack: f64) -> Option<bool> {
    let slack = e.error + slack;
    if e.value > x + slack {
        Some(true)
    } else if e.value < x - slack {
        Some(false)
    } else {
        None
    }
}

/// `floor(x)`, when `x` is within `slack >= x * 2⁻⁵⁰` of the true value and that decides it.
#[inline]
pub(crate) fn floor(x: f64, slack: f64) -> Option<i64> {
    let (low, high) = (x - slack, x + slack);
    // below 2^52 the casts (towards zero) are exact; a negative `low` could hide a crossing of zero
    if low < 0.0 || high >= (1_u64 << 52) as f64 {
        return None;
    }
    let floor = low as i64;
    (floor == high as i64).then_some(floor)
}

/// `exp(-x)` within relative error [`EXP_ERROR`], for `0 <= x <= 700`.
///
/// # Arithmetic
/// `x = (n + j/64) ln 2 + r`, `0 <= r < .011` up to rounding. The reduction errs by at most 4 * 700 * 2⁻⁵³ < 2⁻⁴¹·⁵, the
/// powers of `2^(-1/64)` by 2⁻⁴⁹ (at most six products of square roots), the series after `r⁵` by 2⁻⁴⁸; the power of two is exact.
/// # Checked by
/// `float_exponential_is_within_its_bound`
pub(crate) fn exp_neg(x: f64, roots: &[f64; 64]) -> f64 {
    let steps = (x * (64.0 / LN_TWO)) as u64;
    let r = x - steps as f64 * (LN_TWO / 64.0);
    let series = 1.0 - r * (1.0 - r * (0.5 - r * (1.0 / 6.0 - r * (1.0 / 24.0 - r / 120.0))));
    let power = f64::from_bits((1023_u64.saturating_sub(steps / 64)) << 52);
    power * roots[(steps % 64) as usize] * series
}

/// `2^(-j/64)` for `j < 64`, each a product of at most six repeated square roots.
pub(crate) fn roots_of_half() -> &'static [f64; 64] {
    static ROOTS: OnceLock<[f64; 64]> = OnceLock::new();
    ROOTS.get_or_init(|| {
        // 2^(-1/2), 2^(-1/4), ..., 2^(-1/64)
        let mut root = 0.5;
        let factors: [f64; 6] = std::array::from_fn(|_| {
            root = f64::sqrt(root);
            root
        });
        std::array::from_fn(|j| {
            (0..6)
                .filter(|i| j >> (5 - i) & 1 == 1)
                .map(|i| factors[i])
                .product()
        })
    })
}

const LN_TWO: f64 = ln_fixed(1, 3);

/// `ln(1 + (2 i + 1) / 256)`.
static LN_MIDPOINT: [f64; 128] = {
    let mut table = [0.0; 128];
    let mut i = 0;
    while i < 128 {
        let odd = 2 * i as u128 + 1;
        table[i] = ln_fixed(odd, 512 + odd);
        i += 1;
    }
    table
};

/// `2 atanh(n / d)` for `n / d <= 1/3`, that is `ln((d + n) / (d - n))`: the series in 62-bit fixed point, every step rounded
/// down; below 25 terms of at most 3 units each, so the error is below 2⁻⁵⁴.
const fn ln_fixed(n: u128, d: u128) -> f64 {
    let z = (n << 62) / d;
    let square = (z * z) >> 62;
    let (mut term, mut sum, mut k) = (z, z, 1);
    while term > 0 {
        term = (term * square) >> 62;
        k += 2;
        sum += term / k;
    }
    sum as f64 / (1_u64 << 61) as f64
}

#[cfg(test)]
mod tests {
    use dashu::integer::UBig;

    use super::*;
    use crate::source::tests::Fixed;
    use crate::{Noise, Rational, refine};

    /// The value in the middle of the exact enclosure at 120 bits.
    fn reference(v: u64, bits: usize) -> f64 {
        let e = refine::neg_ln(&UBig::from(v), bits, 120);
        Rational::from_parts(e.lo + e.hi, UBig::ONE << 121)
            .to_f64()
            .value()
    }

    #[test]
    fn float_logarithm_is_within_its_bound() {
        let mut noise = Fixed::new(1);
        let edges = (0..40).flat_map(|n| {
            let p = 1_u64 << (63 - n);
            [
                p,
                p + 1,
                p - 2,
                p + (p >> 7),
                p + (p >> 7) - 1,
                u64::MAX - 2,
            ]
        });
        let random: Vec<u64> = (0..20_000).map(|i| noise.bits() >> (i % 40)).collect();
        for head in edges.chain(random).filter(|h| *h >= 1 << 24) {
            let got = neg_ln(head).unwrap();
            // the rounding errors alone, where U is known exactly
            assert!(
                (got.value - reference(head, 64)).abs() < ERROR / 4.0,
                "{head}"
            );
            for v in [head + 1, head.saturating_add(2)] {
                assert!((got.value - reference(v, 64)).abs() < got.error, "{head}");
            }
        }
        assert_eq!(neg_ln((1 << 24) - 1), None);
        assert!(neg_ln(1 << 63).unwrap().error < 1.5 * ERROR);
    }

    #[test]
    fn float_exponential_is_within_its_bound() {
        let roots = roots_of_half();
        let mut noise = Fixed::new(2);
        let mut worst = 0.0_f64;
        for i in 0..20_000 {
            let v = noise.bits() >> (i % 40) | 1;
            // x = -ln(v / 2^64), so exp(-x) = v / 2^64; x carries one rounding of its own
            let x = reference(v, 64);
            let want = v as f64 / 2.0_f64.powi(64);
            worst = worst.max((exp_neg(x, roots) / want - 1.0).abs());
        }
        assert!(worst < EXP_ERROR / 8.0, "{worst:e}");
        for (x, want) in [
            (0.0, 1.0),
            (1.0, 0.367_879_441_171_442_33),
            (700.0, 9.859_676_543_759_77e-305),
        ] {
            assert!((exp_neg(x, roots) / want - 1.0).abs() < EXP_ERROR);
        }
    }

    #[test]
    fn floor_is_decided_only_outside_the_slack() {
        assert_eq!(floor(3.5, 0.25), Some(3));
        assert_eq!(floor(3.9, 0.25), None);
        assert_eq!(floor(0.1, 0.25), None);
        assert_eq!(floor(4.6e15, 1.0), None);
        let one = Near {
            value: 1.0,
            error: 0.25,
        };
        assert_eq!(exceeds(one, 0.5, 0.0), Some(true));
        assert_eq!(exceeds(one, 1.5, 0.0), Some(false));
        assert_eq!(
            (exceeds(one, 1.1, 0.0), exceeds(one, 0.5, 0.5)),
            (None, None)
        );
    }
}
