//! Parts of a budget that never exceed the whole.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "rational arithmetic cannot overflow; divisors are checked to be positive"
)]

use dashu::base::BitTest;
use dashu::integer::{IBig, UBig};

use crate::Rational;

/// Splits `total` in proportion to `weights`.
///
/// # Claim
/// The parts sum to `total` exactly and none is negative (for a total ≥ 0). All but the last part
/// with a positive weight are rounded down to multiples of 2⁻³², or of a finer power of two where
/// that would lose more than 2⁻²⁰ of the smallest part; that last part is what remains. All
/// weights zero: every part is 0 and nothing is spent.
/// # Checked by
/// `split::tests::{even_splits_never_exceed, stage_weights_sum_to_the_request, tiny_totals_keep_every_part}`
pub fn split(total: &Rational, weights: &[u64]) -> Vec<Rational> {
    let mut parts = vec![Rational::ZERO; weights.len()];
    let sum = weights
        .iter()
        .fold(Rational::ZERO, |s, w| s + Rational::from(*w));
    let Some(last) = weights.iter().rposition(|w| *w > 0) else {
        return parts;
    };
    if *total <= Rational::ZERO {
        return parts;
    }
    let unit_part = total / sum;
    let bits = weights
        .iter()
        .filter(|w| **w > 0)
        .min()
        .map_or(GRID_BITS, |w| grid_bits(&(&unit_part * Rational::from(*w))));
    let mut rest = total.clone();
    for (i, (part, weight)) in parts.iter_mut().zip(weights).enumerate() {
        if i != last {
            *part = floor_to_grid(&(&unit_part * Rational::from(*weight)), bits);
            rest -= &*part;
        }
    }
    if let Some(part) = parts.get_mut(last) {
        *part = rest;
    }
    parts
}

/// `numerator/denominator` of `total`, rounded down as in [`split`], and the rest. A share of 1 or
/// more is the whole; a zero denominator or total gives nothing to the part.
pub fn share(total: &Rational, numerator: u64, denominator: u64) -> (Rational, Rational) {
    if *total <= Rational::ZERO || denominator == 0 || numerator == 0 {
        return (Rational::ZERO, total.clone());
    }
    if numerator >= denominator {
        return (total.clone(), Rational::ZERO);
    }
    let exact = total * Rational::from(numerator) / Rational::from(denominator);
    let part = floor_to_grid(&exact, grid_bits(&exact));
    let rest = total - &part;
    (part, rest)
}

/// The common grid of derived shares is 2⁻³².
const GRID_BITS: usize = 32;

/// 32, or as many more bits as give a positive `value` at least 20 significant ones.
pub fn grid_bits(value: &Rational) -> usize {
    let (top, bottom) = (value.numerator().bit_len(), value.denominator().bit_len());
    (bottom + 21).saturating_sub(top).max(GRID_BITS)
}

/// The largest multiple of 2^−bits that is at most `value`.
pub fn floor_to_grid(value: &Rational, bits: usize) -> Rational {
    let scale = UBig::ONE << bits;
    let scaled = value.numerator() * IBig::from(scale.clone());
    let floor = Rational::from_parts(scaled, value.denominator().clone()).floor();
    Rational::from_parts(floor, scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_rational;

    fn q(text: &str) -> Rational {
        parse_rational(text).unwrap()
    }

    fn sum(parts: &[Rational]) -> Rational {
        parts.iter().fold(Rational::ZERO, |s, p| s + p)
    }

    /// lessons row 33: 1.0 over 1..=200 parts; no part is empty.
    #[test]
    fn even_splits_never_exceed() {
        for total in ["1", "0.1", "1e-9", "1e9", "1/3", "5e-324"] {
            for n in 1..=200 {
                let parts = split(&q(total), &vec![1; n]);
                assert_eq!(sum(&parts), q(total));
                assert!(parts.iter().all(|part| *part > Rational::ZERO));
            }
        }
    }

    /// lessons rows 34 and 37: stage weights, odd counts.
    #[test]
    fn stage_weights_sum_to_the_request() {
        for weights in [
            vec![3, 7, 10],
            vec![1, 1, 1],
            vec![1, 0, 2, 0],
            vec![u64::MAX, 1, u64::MAX],
            vec![2, 70, 28],
        ] {
            let parts = split(&q("0.7"), &weights);
            assert_eq!(sum(&parts), q("0.7"));
            for (part, weight) in parts.iter().zip(&weights) {
                assert_eq!(part.is_zero(), *weight == 0);
            }
        }
        let parts = split(&q("1"), &[1, 2]);
        assert_eq!(
            parts[0],
            Rational::from_parts(1_431_655_765.into(), UBig::ONE << 32)
        );
        assert_eq!(split(&q("1"), &[1, 1]), vec![q("0.5"), q("0.5")]);
        assert_eq!(split(&q("1"), &[]), Vec::<Rational>::new());
        assert_eq!(split(&q("1"), &[0, 0]), vec![Rational::ZERO; 2]);
        assert_eq!(split(&q("-1"), &[1, 1]), vec![Rational::ZERO; 2]);
    }

    #[test]
    fn tiny_totals_keep_every_part() {
        let parts = split(&q("1e-9"), &[1, 999]);
        assert!(parts[0] > q("0.999999e-12") && parts[0] <= q("1e-12"));
    }

    #[test]
    fn shares_and_rests() {
        let (part, rest) = share(&q("0.5"), 1, 50);
        assert!(part <= q("0.01") && part > q("0.01") - q("3e-10"));
        assert_eq!(part + rest, q("0.5"));
        assert_eq!(share(&q("1"), 1, 4), (q("0.25"), q("0.75")));
        assert_eq!(share(&q("1"), 5, 4), (q("1"), Rational::ZERO));
        assert_eq!(share(&q("1"), 1, 0), (Rational::ZERO, q("1")));
        assert_eq!(share(&q("1"), 0, 9), (Rational::ZERO, q("1")));
    }
}
