//! Independent arithmetic and the chi-square test.

use dashu::integer::UBig;
use reticent_noise::{Rational, Scale};

pub(crate) fn ratio(n: u64, d: u64) -> Rational {
    Rational::from(n) / Rational::from(d)
}

pub(crate) fn scale(n: u64, d: u64) -> Scale {
    Scale::at_least(&ratio(n, d)).unwrap()
}

/// `floor(2^bits exp(-x))`, by Taylor's series of `exp(x / 2^k)` over rationals and repeated squaring: nothing shared with the
/// crate, which knows only logarithms. Carries 160 bits, so only a value within 2^-80 of an integer could be wrong.
pub(crate) fn exp_neg(x: &Rational, bits: usize) -> UBig {
    const W: usize = 160;
    let mut halvings = 0;
    let mut y = x.clone();
    while y > ratio(1, 4) {
        y /= Rational::from(2_u8);
        halvings += 1;
    }
    let y = UBig::try_from((y.numerator() << (W + halvings)) / y.denominator()).unwrap();
    let w = W + halvings;
    let one = UBig::ONE << w;
    let (mut term, mut sum, mut k) = (one.clone(), one.clone(), 0_u32);
    while !term.is_zero() {
        k += 1;
        term = ((term * &y) >> w) / k;
        sum += &term;
    }
    for _ in 0..halvings {
        sum = (&sum * &sum) >> w;
    }
    // 2^bits / exp(x)
    (UBig::ONE << (w + bits)) / sum
}

/// Pearson's statistic and its cells, cells with fewer than 50 expected being merged into one.
pub(crate) fn chi_square(observed: &[u64], probabilities: &[f64]) -> (f64, usize) {
    assert_eq!(observed.len(), probabilities.len());
    let n: u64 = observed.iter().sum();
    let (mut statistic, mut cells) = (0.0, 0);
    let (mut rest_seen, mut rest_expected) = (0.0, 0.0);
    for (&seen, p) in observed.iter().zip(probabilities) {
        let (seen, expected) = (seen as f64, n as f64 * p);
        if expected < 50.0 {
            rest_seen += seen;
            rest_expected += expected;
        } else {
            statistic += (seen - expected).powi(2) / expected;
            cells += 1;
        }
    }
    // a rest too thin for the normal approximation is left to the other tests
    if rest_expected >= 10.0 {
        statistic += (rest_seen - rest_expected).powi(2) / rest_expected;
        cells += 1;
    }
    (statistic, cells)
}

/// A bound that a chi-square variable of `cells - 1` degrees exceeds with probability at most 1e-11 (Laurent and Massart,
/// 2000, lemma 1: `P(X >= d + 2 sqrt(d x) + 2 x) <= exp(-x)`); the fifty or so tests together stay below 1e-9.
pub(crate) fn bound(cells: usize) -> f64 {
    let (d, x) = (
        cells.saturating_sub(1) as f64,
        11.0 * std::f64::consts::LN_10,
    );
    d + 2.0 * (d * x).sqrt() + 2.0 * x
}

pub(crate) fn fits(observed: &[u64], probabilities: &[f64]) -> bool {
    let (statistic, cells) = chi_square(observed, probabilities);
    statistic <= bound(cells)
}

pub(crate) fn close(got: f64, want: f64, relative: f64) -> bool {
    (got - want).abs() <= relative * want.abs()
}

#[test]
fn independent_exponential_is_right() {
    // 2^64 / e = 6786177901268885274.2...
    assert_eq!(
        exp_neg(&ratio(1, 1), 64),
        UBig::from(6_786_177_901_268_885_274_u64)
    );
    assert_eq!(exp_neg(&ratio(0, 1), 64), UBig::ONE << 64);
    // exp(-10) = 4.5399929762484851535591515560550...e-5
    let got = (exp_neg(&ratio(10, 1), 100) * UBig::from(10_u8).pow(30)) >> 100_usize;
    assert_eq!(got, UBig::from(45_399_929_762_484_851_535_591_515_u128));
}
