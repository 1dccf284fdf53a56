//! The analytic Gaussian mechanism: the exact (ε, δ) curve, bounded with certainty.
//!
//! # Claim
//! The value Δ-sensitive in L2 plus N(0, σ²) noise (each coordinate) is (ε, δ)-differentially
//! private exactly for δ ≥ δ(σ, ε) = Φ(a−b) − e^ε·Φ(−a−b), a = Δ/2σ, b = εσ/Δ. [`delta_upper`]
//! bounds δ(σ, ε) from above; [`sigma`] returns a σ for which that bound is at most δ.
//! # Assumptions
//! The noise is the *continuous* Gaussian, possibly correctly rounded afterwards. A discrete
//! Gaussian in several coordinates is priced by zCDP instead.
//! # Arithmetic
//! With the Mills ratio R(x) = (1−Φ(x))/φ(x) and ε = 2ab, e^ε·φ(a+b) = φ(b−a), hence
//! δ = φ(b−a)·(R(b−a) − R(b+a)): no large factor is left. R is bounded in fixed-point integers,
//! rounded outward: below 6 by R(x) = √(π/2)·e^{x²/2} − Σ x^{2n+1}/(2n+1)!!, above by interval
//! evaluation of the continued fraction x + 1/(x + 2/(x + 3/(x + …))). R decreases, so a rounded
//! argument is covered by rounding it to the safe side. The number of bits grows with 1/a and b,
//! where the difference cancels. Floating point only proposes where to look for σ next; what is
//! returned was certified.
//! # Checked by
//! `gaussian::tests::{golden_sigma, sigma_is_certified_and_tight, curve_matches_quadrature, invalid_inputs_are_refused}`
//! # References
//! Balle–Wang 2018, theorem 8.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "big-number arithmetic cannot overflow; shifts and counts are bounded by bit lengths of the inputs; divisors are checked positive"
)]

use dashu::base::{BitTest, SquareRoot};
use dashu::integer::{IBig, UBig};

use crate::exp::{exp_interval, exp_upper, fixed, round_to, to_grid};
use crate::{AccountingError, Rational, format_rational, rational_to_f64};

/// The least σ, up to 2⁻³⁸ relative, for which δ(σ, ε) is certified to be at most `delta`.
/// It has at most 48 significant bits.
pub fn sigma(
    epsilon: &Rational,
    delta: &Rational,
    sensitivity: &Rational,
) -> Result<Rational, AccountingError> {
    check(
        "epsilon",
        epsilon,
        "greater than 0",
        *epsilon > Rational::ZERO,
    )?;
    check(
        "delta",
        delta,
        "between 0 and 1",
        *delta > Rational::ZERO && *delta < Rational::ONE,
    )?;
    check(
        "sensitivity",
        sensitivity,
        "at least 0",
        *sensitivity >= Rational::ZERO,
    )?;
    let bound = |sigma: &Rational| unit_delta_upper(sigma, epsilon);
    let sigma = least(first_guess(epsilon, delta), delta, &bound);
    Ok(round_to(&(sigma * sensitivity), 48, true))
}

/// A place, up to 2⁻³⁹ relative the least one, at which a bound that falls is at most `delta`.
pub(crate) fn least(
    first: Rational,
    delta: &Rational,
    bound: &dyn Fn(&Rational) -> Rational,
) -> Rational {
    // log₂ of the bound over δ: positive where the place is too small. Only its sign, taken exactly, decides.
    let level = |place: &Rational| {
        let bound = bound(place);
        let sign = if bound <= *delta { -1.0 } else { 1.0 };
        sign * (log2_near(&bound) - log2_near(delta)).abs().max(1e-300)
    };
    let two = Rational::from(2);
    let mut high = first;
    let mut low = &high / &two;
    let (mut at_low, mut at_high) = (level(&low), level(&high));
    while at_high > 0.0 {
        (low, at_low) = (high, at_high);
        high = &low * &two;
        at_high = level(&high);
    }
    while at_low <= 0.0 {
        (high, at_high) = (low, at_low);
        low = &high / &two;
        at_low = level(&low);
    }
    for step in 0..STEPS {
        let width = &high - &low;
        let relative = rational_to_f64(&(&width / &high));
        if relative <= TOLERANCE {
            break;
        }
        // Where the chord meets zero, moved to either side in turn, so that both ends come near.
        let aside = (4.0 * relative).clamp(1e-3, 0.125) * if step % 2 == 0 { 1.0 } else { -1.0 };
        let share = at_low / (at_low - at_high) + aside;
        let usable = step < SECANTS && share > 0.0 && share < 1.0;
        let share = Rational::try_from(if usable { share } else { 0.5 }).unwrap_or(Rational::ZERO);
        let middle = round_to(&(&low + width * share), 64, true);
        let at_middle = level(&middle);
        if at_middle <= 0.0 {
            (high, at_high) = (middle, at_middle);
        } else {
            (low, at_low) = (middle, at_middle);
        }
    }
    high
}

/// An upper bound on δ(σ, ε), at most 1 and within 2⁻⁴⁰ relative of it down to 10⁻¹⁰⁰⁰⁰; for σ ≤ 0
/// it is 1 unless the sensitivity is 0.
pub fn delta_upper(sigma: &Rational, epsilon: &Rational, sensitivity: &Rational) -> Rational {
    if *sensitivity <= Rational::ZERO {
        return Rational::ZERO;
    }
    if *sigma <= Rational::ZERO || *epsilon < Rational::ZERO {
        return Rational::ONE;
    }
    unit_delta_upper(&(sigma / sensitivity), epsilon)
}

/// Width, relative to σ, at which the search ends: 2⁻³⁹.
const TOLERANCE: f64 = 1.0 / 549_755_813_888.0;
/// Steps by chords before the search bisects.
const SECANTS: u32 = 40;
/// Steps inside a factor of two; forty of them halve.
const STEPS: u32 = 80;

pub(crate) fn check(
    name: &'static str,
    value: &Rational,
    allowed: &'static str,
    holds: bool,
) -> Result<(), AccountingError> {
    if holds {
        return Ok(());
    }
    Err(AccountingError::OutOfRange {
        name,
        value: format_rational(value),
        allowed,
    })
}

/// A power of two near σ/Δ, which is of order min(1/δ, 1/ε) for small and 1/√ε for large ε.
fn first_guess(epsilon: &Rational, delta: &Rational) -> Rational {
    let inverse = log2(epsilon);
    let small = (-log2(delta)).min(if inverse <= 0 { -inverse } else { -inverse / 2 });
    power_of_two(small)
}

/// ⌊log₂⌋ of a positive value, to within one.
pub(crate) fn log2(value: &Rational) -> i64 {
    let bits = |n: usize| i64::try_from(n).unwrap_or(i64::MAX / 4);
    bits(value.numerator().bit_len()) - bits(value.denominator().bit_len())
}

/// log₂ of a value in floating point, for proposals only; −∞ at 0.
pub(crate) fn log2_near(value: &Rational) -> f64 {
    let whole = log2(value);
    #[allow(clippy::cast_precision_loss, reason = "a proposal")]
    let log = whole as f64 + libm::log2(rational_to_f64(&(value * power_of_two(-whole))));
    log
}

pub(crate) fn power_of_two(exponent: i64) -> Rational {
    let power = UBig::ONE << usize::try_from(exponent.unsigned_abs()).unwrap_or(0);
    if exponent >= 0 {
        Rational::from(power)
    } else {
        Rational::from_parts(IBig::ONE, power)
    }
}

/// δ at sensitivity 1, σ > 0 and ε ≥ 0.
fn unit_delta_upper(sigma: &Rational, epsilon: &Rational) -> Rational {
    let two = Rational::from(2);
    let a = Rational::ONE / (&two * sigma);
    let b = epsilon * sigma;
    let difference = &b - &a;
    if difference < Rational::from(-40) {
        return Rational::ONE;
    }
    let bits = |n: i64| usize::try_from(n.max(0)).unwrap_or(0);
    let p = 160 + bits(-log2(&a)) + 2 * bits(log2(&b)) + 2 * bits(log2(&a));
    let near = to_grid(&difference, p, false);
    let far = to_grid(&(&b + &a), p, true);
    let root = sqrt_half_pi(p);
    let gap = mills(&near, p, &root).1 - mills(&far, p, &root).0;
    // φ(|difference|) grows towards 0, so the argument is rounded towards 0.
    let closest = if difference > Rational::ZERO {
        near
    } else {
        to_grid(&difference, p, true)
    };
    let Ok(density) = exp_upper(&(-(&closest * &closest) / two)) else {
        return Rational::ONE;
    };
    let ratio = Rational::from_parts(
        gap,
        UBig::from(2_u8) * UBig::try_from(root.0).unwrap_or(UBig::ONE),
    );
    (density * ratio).min(Rational::ONE)
}

/// Fixed-point bounds on R(x) for a multiple x of 2^−p, x ≥ −41; `root` are those of √(π/2).
fn mills(x: &Rational, p: usize, root: &(IBig, IBig)) -> (IBig, IBig) {
    if *x > Rational::from(6) {
        mills_fraction(x, p)
    } else {
        mills_series(x, p, root)
    }
}

/// R(x) = √(π/2)·e^{x²/2} − S(x), S(x) = Σ x^{2n+1}/(2n+1)!! odd in x. Once x² ≤ (2n+3)/2 each term
/// is at most half the one before, so the tail is below the last term.
fn mills_series(x: &Rational, p: usize, (root_lo, root_hi): &(IBig, IBig)) -> (IBig, IBig) {
    let magnitude = fixed(x, p, false);
    let negative = magnitude < IBig::ZERO;
    let size = if negative { -magnitude } else { magnitude };
    let square = &size * &size;
    let (s_lo, s_hi) = (&square >> p, (&square >> p) + IBig::ONE);
    let (mut term_lo, mut term_hi) = (size.clone(), size.clone());
    let (mut lo, mut hi) = (size.clone(), size);
    let mut n = 1_u32;
    while !term_lo.is_zero() || (&s_hi >> p) * 2 > IBig::from(n) {
        n += 2;
        term_lo = ((&term_lo * &s_lo) >> p) / n;
        term_hi = (((&term_hi * &s_hi) >> p) + IBig::ONE) / n + IBig::ONE;
        lo += &term_lo;
        hi += &term_hi;
    }
    hi += term_hi;
    let half_square = Rational::from_parts(square, UBig::ONE << (2 * p + 1));
    let (e_lo, e_hi, k) = exp_interval(&half_square, p);
    let (k, down) = (
        usize::try_from(k).unwrap_or(0),
        usize::try_from(-k).unwrap_or(0),
    );
    let main_lo = ((e_lo * root_lo) << k) >> (p + down);
    let main_hi = (((e_hi * root_hi) << k) >> (p + down)) + IBig::ONE;
    if negative {
        (main_lo + lo, main_hi + hi)
    } else {
        (main_lo - hi, main_hi - lo)
    }
}

/// R(x) = 1/f₁ with f_k = x + k/f_{k+1}, and f_N in [x, x + N/x].
fn mills_fraction(x: &Rational, p: usize) -> (IBig, IBig) {
    let x_fixed = fixed(x, p, false);
    let whole = usize::try_from(x.floor())
        .unwrap_or(usize::MAX)
        .clamp(6, 1 << 20);
    // The relative width shrinks like e^{−2x√N}.
    let depth = (p * 2 / (5 * whole)).pow(2) + 24;
    let quotient = |k: usize, f: &IBig| (IBig::from(k) << (2 * p)) / f;
    let mut lo = x_fixed.clone();
    let mut hi = &x_fixed + quotient(depth, &x_fixed) + IBig::ONE;
    for k in (1..depth).rev() {
        let next_lo = &x_fixed + quotient(k, &hi);
        hi = &x_fixed + quotient(k, &lo) + IBig::ONE;
        lo = next_lo;
    }
    (quotient(1, &hi), quotient(1, &lo) + IBig::ONE)
}

/// Fixed-point bounds on √(π/2), by Machin's π = 16·arctan(1/5) − 4·arctan(1/239).
fn sqrt_half_pi(p: usize) -> (IBig, IBig) {
    // Squares need twice the bits; 16 more absorb the rounding of the series.
    let bits = 2 * p + 16;
    let (five, five_error) = arctan_inverse(5, bits);
    let (other, other_error) = arctan_inverse(239, bits);
    let pi = five * 16 - other * 4;
    let error = five_error * 16 + other_error * 4;
    let root = |value: IBig, up: bool| {
        // √(π/2)·2^p = √(π·2^(bits)/2^17)
        let (_, magnitude) = (value >> 17).into_parts();
        IBig::from(magnitude.sqrt() + UBig::from(u8::from(up)) * UBig::from(2_u8))
    };
    (root(&pi - &error, false), root(pi + error, true))
}

/// arctan(1/k) in fixed point and a bound on the error: one unit per term and one for the tail.
fn arctan_inverse(k: u32, bits: usize) -> (IBig, IBig) {
    let square = k * k;
    let mut power: IBig = (IBig::ONE << bits) / k;
    let (mut sum, mut n, mut terms) = (IBig::ZERO, 1_u32, 1_u32);
    while !power.is_zero() {
        let term = &power / n;
        if terms % 2 == 1 {
            sum += term;
        } else {
            sum -= term;
        }
        power /= square;
        n += 2;
        terms += 1;
    }
    // Each power carries at most two units of its own rounding, each division one more.
    (sum, IBig::from(terms) * 3 + IBig::from(3))
}

#[cfg(test)]
#[allow(
    clippy::excessive_precision,
    reason = "golden values keep the digits of their source"
)]
mod tests {
    use super::*;
    use crate::{parse_decimal, rational_to_f64};

    fn delta(sigma: &Rational, epsilon: &Rational, sensitivity: &Rational) -> f64 {
        rational_to_f64(&delta_upper(sigma, epsilon, sensitivity))
    }

    fn q(text: &str) -> Rational {
        parse_decimal(text).unwrap()
    }

    fn close(value: f64, golden: f64, relative: f64) {
        assert!(
            (value - golden).abs() <= relative * golden.abs(),
            "{value} against {golden}"
        );
    }

    /// Values from 80-digit bisection of the printed formula (mpmath); the four of the design
    /// documents and the fifteen of `distributions_accounting.json` are among them.
    const GOLDEN: [(&str, &str, f64); 26] = [
        ("0.01", "0.0000152587890625", 231.407_707_895_991_12),
        ("0.1", "1e-6", 36.304_690_426_195_785),
        ("1", "1e-6", 4.224_678_889_326_835_5),
        ("10", "1e-6", 0.541_086_831_818_365_98),
        ("1e-9", "1e-6", 398_742.940_845_376_5),
        ("1e-9", "1e-12", 2_436_407_769.223_126_9),
        ("1e9", "1e-6", 2.236_305_660_228_031_4e-5),
        ("1", "1e-300", 36.865_497_894_111_1),
        ("0.5", "0.9", 0.284_120_155_289_477_14),
        ("100", "1e-10", 0.108_760_426_020_126_64),
        ("1e-3", "0.999999", 0.102_213_183_943_924_82),
        ("0.1", "1e-5", 30.749_566_131_977_293),
        ("0.1", "1e-9", 50.209_818_263_016_16),
        ("0.5", "1e-5", 7.031_826_675_582_504),
        ("0.5", "1e-6", 8.057_618_480_725_03),
        ("0.5", "1e-9", 10.673_896_815_08),
        ("1", "1e-5", 3.730_631_634_815_938_7),
        ("1", "1e-6", 4.224_678_889_326_83),
        ("1", "1e-9", 5.495_266_157_238_277),
        ("2", "1e-5", 1.993_812_445_643_543_5),
        ("2", "1e-6", 2.230_476_271_186_419_4),
        ("2", "1e-9", 2.844_547_073_495_745),
        ("5", "1e-5", 0.891_868_264_951_517_4),
        ("5", "1e-6", 0.980_049_000_309_209_2),
        ("5", "1e-9", 1.211_712_466_134_582_6),
        ("0.1", "1e-6", 36.304_690_426_195_464),
    ];

    #[test]
    fn golden_sigma() {
        for (epsilon, delta, golden) in GOLDEN {
            let found = rational_to_f64(&sigma(&q(epsilon), &q(delta), &Rational::ONE).unwrap());
            close(found, golden, 2e-11);
        }
    }

    #[test]
    fn sigma_is_certified_and_tight() {
        let nearly = Rational::ONE - q("1e-10");
        for (epsilon, delta, _) in GOLDEN {
            for sensitivity in ["1", "0.001", "1.41421356237", "1e9"] {
                let (epsilon, delta, sensitivity) = (q(epsilon), q(delta), q(sensitivity));
                let sigma = sigma(&epsilon, &delta, &sensitivity).unwrap();
                assert!(delta_upper(&sigma, &epsilon, &sensitivity) <= delta);
                assert!(delta_upper(&(sigma * &nearly), &epsilon, &sensitivity) > delta);
            }
        }
    }

    #[test]
    fn curve_matches_quadrature() {
        for (sigma, epsilon, golden) in [
            ("1", "0", 0.382_924_922_548_026_2),
            ("1", "1", 0.126_936_737_506_643_95),
            ("3", "0.2", 0.061_674_771_975_478_806),
            ("0.2", "40", 8.823_257_920_004_711e-9),
        ] {
            close(delta(&q(sigma), &q(epsilon), &Rational::ONE), golden, 1e-12);
        }
        // dp-accounting's discretised privacy loss of N(0, 1) and N(0, 5²), δ 1e-5 and 1e-6.
        close(
            delta(&q("1"), &q("4.37717810002493"), &Rational::ONE),
            1e-5,
            2e-3,
        );
        close(
            delta(&q("5"), &q("0.8341175648589775"), &Rational::ONE),
            1e-6,
            2e-3,
        );
        // a hundred draws of N(0, 20²) are one of N(0, 2²)
        close(
            delta(&q("2"), &q("2.2540846566590376"), &Rational::ONE),
            1e-6,
            2e-3,
        );
        // Trapezoid rule on the hockey-stick integral, independent of any special function.
        let (sigma, epsilon) = (0.8, 0.7_f64);
        let density = |x: f64| {
            (-x * x / (2.0 * sigma * sigma)).exp() / (sigma * (2.0 * std::f64::consts::PI).sqrt())
        };
        let h = 1e-4;
        let integral: f64 = (-100_000..=100_000)
            .map(|i| f64::from(i) * h)
            .map(|x| (density(x) - epsilon.exp() * density(x - 1.0)).max(0.0) * h)
            .sum();
        close(delta(&q("0.8"), &q("0.7"), &Rational::ONE), integral, 1e-6);
    }

    #[test]
    fn more_noise_never_costs_more() {
        let mut last = Rational::ONE;
        for i in 1..60_u32 {
            let now = delta_upper(&Rational::from(i), &q("0.25"), &q("3"));
            assert!(now <= last);
            last = now;
        }
    }

    #[test]
    fn invalid_inputs_are_refused() {
        let one = Rational::ONE;
        assert!(sigma(&Rational::ZERO, &q("1e-6"), &one).is_err());
        assert!(sigma(&q("-1"), &q("1e-6"), &one).is_err());
        assert!(sigma(&one, &Rational::ZERO, &one).is_err());
        assert!(sigma(&one, &one, &one).is_err());
        assert!(sigma(&one, &q("1e-6"), &q("-1")).is_err());
        assert_eq!(
            sigma(&one, &q("1e-6"), &Rational::ZERO).unwrap(),
            Rational::ZERO
        );
        assert_eq!(delta_upper(&Rational::ZERO, &one, &one), Rational::ONE);
        assert_eq!(delta_upper(&one, &one, &Rational::ZERO), Rational::ZERO);
        assert_eq!(delta_upper(&q("1e-9"), &one, &one), Rational::ONE);
        assert!(delta_upper(&q("1e9"), &q("1e9"), &one) > Rational::ZERO);
    }
}
