//! The logistic function in integer arithmetic, with an error bound that needs no floating-point reasoning.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    reason = "fixed-point kernel: every quantity is bounded in the function's text"
)]

/// Fractional bits of the fixed-point numbers here.
pub(crate) const Q: u32 = 96;
const ONE: u128 = 1 << Q;
/// ln 2 with 110 fractional bits, rounded down.
const LN2_110: u128 = 0x2c5c_85fd_f473_de6a_f278_ece6_00fc;
/// ⌊2^31 / ln 2⌋.
const INVERSE: u128 = 3_098_164_009;
/// Arguments beyond this (e^−128 < 2^−184) have e^−t = 0 to the precision here.
const LARGE: u128 = 128 << Q;

/// 1/n! for n = 0..=10, rounded down.
const INVERSE_FACTORIALS: [u128; 11] = inverse_factorials();

const fn inverse_factorials() -> [u128; 11] {
    let mut c = [ONE; 11];
    let mut n = 1;
    while n < 11 {
        c[n] = c[n - 1] / n as u128;
        n += 1;
    }
    c
}

/// ⌊a·b·2^−96⌋ for a, b ≤ 2^97.
fn product(a: u128, b: u128) -> u128 {
    const LOW: u128 = (1 << 64) - 1;
    let (a1, a0) = (a >> 64, a & LOW);
    let (b1, b0) = (b >> 64, b & LOW);
    // Each partial product is below 2^98, so nothing overflows.
    ((a1 * b1) << 32) + ((a1 * b0 + a0 * b1 + ((a0 * b0) >> 64)) >> 32)
}

/// e^−t in units of 2^−96.
///
/// # Claim
/// For any t (units of 2^−96) the result differs from e^−t by less than 2^−85.
/// # Arithmetic
/// t = k·ln 2 + r with 0 ≤ r < ln 2 + 2 units (k < 2^8, so k·ln 2 at 110 bits is off by less than one unit).
/// e^−r = (e^−r/64)^64: with v = r/64 < 2^−6.5 the alternating series to degree 10 leaves v¹¹/11! < 2^−96;
/// each of ten products and constants loses less than one unit, so the sum is off by at most 24 units. Six squarings
/// of a number at most 1 double the error and add one unit: below 24·64 + 63 + 1 < 2^11 − 400 units. The shift by k
/// divides the error and loses one unit; the last two units of r give two more: below 2^11 units, i.e. 2^−85.
/// # Checked by
/// `sigmoid::tests::{matches_certified_exponentials, halves_are_exact_at_zero}`
fn exp_neg(t: u128) -> u128 {
    if t >= LARGE {
        return 0;
    }
    // ⌊t / ln 2⌋ up to one too small.
    let k = (((t >> 64) * INVERSE) >> 63) as u32;
    let mut k = k;
    let mut r = t.saturating_sub((u128::from(k) * LN2_110) >> 14);
    if r >= LN2_110 >> 14 {
        r -= LN2_110 >> 14;
        k += 1;
    }
    let v = r >> 6;
    let mut sum = INVERSE_FACTORIALS[10];
    for c in INVERSE_FACTORIALS[..10].iter().rev() {
        sum = c - product(v, sum);
    }
    for _ in 0..6 {
        sum = product(sum, sum);
    }
    sum.checked_shr(k).unwrap_or(0)
}

/// 1/(1 + e^|m|) in units of 2^−96: the smaller of σ(m) and σ(−m).
///
/// # Claim
/// The result differs from the true value by less than 1.1·2^−85.
/// # Arithmetic
/// With e = e^−|m| (error 2^−85) the value is e/(1 + e), whose derivative in e is at most 1. q₀ = fl(1/(1+e)) has relative
/// error below 2^−51; one Newton step q₀(2 − (1+e)q₀) squares it and loses at most 4 units.
/// # Checked by
/// `sigmoid::tests::{matches_certified_exponentials, halves_are_exact_at_zero}`
pub(crate) fn smaller_tail(m: u128) -> u128 {
    let e = exp_neg(m);
    let d = ONE + e;
    // d = 1 + e in units of 2^−96; 2^159/d is 2^63 times its inverse.
    let guess = (libm_inverse(d)) << 33;
    let twice = (ONE << 1) - product(d, guess);
    product(e, product(guess, twice))
}

/// 2^63/(d·2^−96) in floating point: |relative error| < 2^−51, at most 2^63.
fn libm_inverse(d: u128) -> u128 {
    let high = (d >> 44) as u64;
    (9_223_372_036_854_775_808.0 / (high as f64 / 4_503_599_627_370_496.0)) as u128
}

#[cfg(test)]
#[allow(
    clippy::approx_constant,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    clippy::manual_midpoint,
    clippy::needless_pass_by_value,
    reason = "tests compare exact values and count small things"
)]
mod tests {
    use super::*;
    use dashu::integer::{IBig, UBig};
    use reticent_accounting::Rational;
    use reticent_accounting::exp::{exp_lower, exp_upper, ln_lower, ln_upper};
    use reticent_laws::Seeded;
    use reticent_noise::Noise;

    fn rational(x: u128, bits: usize) -> Rational {
        Rational::from_parts(IBig::from(x), UBig::ONE << bits)
    }

    #[test]
    fn ln_two_is_rounded_down() {
        let two = Rational::from(2);
        assert!(rational(LN2_110, 110) <= ln_upper(&two).unwrap());
        assert!(rational(LN2_110 + 2, 110) >= ln_lower(&two).unwrap());
        let gap = ln_upper(&two).unwrap() - rational(LN2_110, 110);
        assert!(
            gap < rational(1 << 15, 110),
            "{}",
            reticent_accounting::rational_to_f64(&gap)
        );
    }

    #[test]
    fn matches_certified_exponentials() {
        let mut noise = Seeded::new(11);
        let mut worst = Rational::ZERO;
        for case in 0..3000u32 {
            let t = match case {
                0..40 => u128::from(case) * (LN2_110 >> 14) + u128::from(case % 3),
                40..80 => (u128::from(case) * (LN2_110 >> 14)).saturating_sub(u128::from(case % 4)),
                _ => {
                    ((u128::from(noise.bits()) << 39) | u128::from(noise.bits()))
                        >> (noise.bits() % 60)
                }
            };
            let x = -rational(t, 96);
            let got = rational(exp_neg(t), 96);
            let (low, high) = (exp_lower(&x), exp_upper(&x).unwrap());
            let off = (&got - low).max(high.clone() - &got);
            worst = worst.max(off.clone());
            assert!(off < rational(1, 85), "case {case}");
            let tail = rational(smaller_tail(t), 96);
            let want = &high / (Rational::ONE + &high);
            let off = if tail > want {
                tail - want
            } else {
                want - tail
            };
            assert!(off < rational(11, 85) / Rational::from(10), "case {case}");
        }
        println!(
            "worst error of e^-t: {:e}",
            reticent_accounting::rational_to_f64(&worst)
        );
    }

    #[test]
    fn halves_are_exact_at_zero() {
        assert_eq!(exp_neg(0), ONE);
        assert!(smaller_tail(0).abs_diff(ONE / 2) < 8);
        assert_eq!(smaller_tail(u128::MAX), 0);
        assert_eq!(smaller_tail(LARGE), 0);
        assert!(smaller_tail(LARGE - 1) < 2);
    }
}
