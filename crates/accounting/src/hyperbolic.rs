//! Calibration of Cauchy noise to a smooth sensitivity, bounded with certainty.
//!
//! # Claim
//! Let S be β-smooth (|ln S/S′| ≤ β between neighbours) and let the statistic move by at most min(S, S′). Then the
//! statistic plus κ·S·C, C standard Cauchy, is ε-differentially private for κ ≥ [`kappa`]`(ε, β)`, 0 < β < ε.
//! # Arithmetic
//! The two-sided max-divergence of Cauchy(m, s) and Cauchy(m′, s′) is the hyperbolic distance of m + is and m′ + is′ in the
//! upper half-plane: cosh d = 1 + ((m−m′)² + (s−s′)²)/(2ss′). With |m−m′| ≤ min(s, s′)/κ and λ = |ln s/s′| ≤ β this is at most
//! cosh λ + e^{−λ}/(2κ²), convex in λ, so the ends decide: κ = max{1/(2 sinh(ε/2)), √(e^{−β}/(2(cosh ε − cosh β)))}.
//! cosh ε − cosh β = 2 sinh((ε+β)/2) sinh((ε−β)/2) keeps small arguments from cancelling. Every step is a bound of
//! [`crate::exp`] on the safe side; κ is rounded up. A loss of more than [`MOST`] is calibrated as [`MOST`].
//! # Checked by
//! `hyperbolic::tests::{golden_multipliers, calibration_is_certified_and_tight, extreme_losses_are_total}`
//! # References
//! `privacy.md` §5.1; `beyond.md` §1; Nissim, Raskhodnikova, Smith 2007 (smooth sensitivity).

#![allow(
    clippy::arithmetic_side_effects,
    reason = "rational arithmetic does not overflow; divisors are checked positive"
)]

use dashu::integer::{IBig, UBig};

use crate::exp::{exp_lower, exp_upper, ln_lower, round_to, sqrt_upper, to_grid};
use crate::{AccountingError, Rational, format_rational};

/// Beyond this loss per draw the noise is below 2⁻⁴⁵ of the smooth sensitivity: nothing is left to gain.
pub const MOST: u32 = 64;

/// 2^−45: losses below it would leave the bounds of `exp` too few digits.
const LEAST_BITS: usize = 45;

/// A rate of smoothness and the multiplier that goes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hyperbolic {
    /// β: how fast the smooth sensitivity may change, on a logarithmic scale.
    pub beta: Rational,
    /// κ: the noise is κ·S·C. It has at most 64 significant bits.
    pub kappa: Rational,
}

/// The default β for one draw of loss ε, with its κ: ε/√2 below 1 (least noise where records are dense), and from 1 on the
/// largest β that needs no more than the least κ: e^β = 2 cosh ε − 1.
pub fn calibrate(epsilon: &Rational) -> Result<Hyperbolic, AccountingError> {
    let e = check(epsilon)?;
    let beta = if e < Rational::ONE {
        over_root_two(&e)
    } else {
        let x = exp_lower(&e) + exp_lower(&-e.clone()) - Rational::ONE;
        to_grid(&ln_lower(&x)?, 64, false)
    };
    Ok(Hyperbolic {
        kappa: kappa(&e, &beta)?,
        beta,
    })
}

/// β = ε/√2 at every ε, with its κ.
pub fn calibrate_dense(epsilon: &Rational) -> Result<Hyperbolic, AccountingError> {
    let e = check(epsilon)?;
    let beta = over_root_two(&e);
    Ok(Hyperbolic {
        kappa: kappa(&e, &beta)?,
        beta,
    })
}

/// An upper bound on κ(ε, β), for 0 < β < ε and ε at most [`MOST`].
pub fn kappa(epsilon: &Rational, beta: &Rational) -> Result<Rational, AccountingError> {
    let e = check(epsilon)?;
    let two = Rational::from(2_u8);
    let sliding = sinh_lower(&(&e / &two));
    let (sum, rest) = ((&e + beta) / &two, (&e - beta) / &two);
    let both = sinh_lower(&sum) * sinh_lower(&rest);
    if *beta <= Rational::ZERO || *beta >= e || both <= Rational::ZERO {
        return Err(AccountingError::OutOfRange {
            name: "beta",
            value: format_rational(beta),
            allowed: "above 0 and clearly below epsilon",
        });
    }
    let dilating = sqrt_upper(&(exp_upper(&-beta.clone())? / (Rational::from(4_u8) * both)));
    let sliding = Rational::ONE / (two * sliding);
    Ok(round_to(&sliding.max(dilating), 64, true))
}

/// ε/√2, rounded down by less than 2·10⁻¹⁶ of it.
fn over_root_two(e: &Rational) -> Rational {
    e * Rational::from_parts(
        IBig::from(7_071_067_811_865_475_u64),
        UBig::from(10_000_000_000_000_000_u64),
    )
}

/// ε, at most [`MOST`]; refused below 2⁻⁴⁵.
fn check(epsilon: &Rational) -> Result<Rational, AccountingError> {
    if *epsilon < Rational::from_parts(IBig::ONE, UBig::ONE << LEAST_BITS) {
        return Err(AccountingError::OutOfRange {
            name: "loss of one Cauchy draw",
            value: format_rational(epsilon),
            allowed: "at least 2^-45",
        });
    }
    Ok(epsilon.clone().min(Rational::from(MOST)))
}

/// A lower bound on sinh x for 0 ≤ x ≤ 65536; exp bounds are within 2⁻⁶⁴ relative.
fn sinh_lower(x: &Rational) -> Rational {
    let falling = exp_upper(&-x.clone()).unwrap_or(Rational::ONE);
    (exp_lower(x) - falling) / Rational::from(2_u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse_rational, rational_to_f64};

    fn q(text: &str) -> Rational {
        parse_rational(text).unwrap()
    }

    /// `decisions.md` §4, instance 1.
    #[test]
    fn golden_multipliers() {
        let root = std::f64::consts::FRAC_1_SQRT_2;
        for (e, beta, want) in [
            ("0.1", "0.05", 11.256_045_755_9),
            ("0.1", &format!("{:.17}", 0.1 * root), 13.642_344_089_5),
            ("1", "0.735", 0.959_517_375_7),
        ] {
            let got = rational_to_f64(&kappa(&q(e), &q(beta)).unwrap());
            assert!((got / want - 1.0).abs() < 1e-10, "{e} {beta}: {got}");
        }
        let one = calibrate(&q("1")).unwrap();
        let beta = rational_to_f64(&one.beta);
        assert!((beta - (2.0 * 1f64.cosh() - 1.0).ln()).abs() < 1e-15);
        assert!((rational_to_f64(&one.kappa) - 0.5 / 0.5f64.sinh()).abs() < 1e-15);
        let small = calibrate(&q("0.1")).unwrap();
        assert!((rational_to_f64(&small.kappa) - 13.642_344_089_5).abs() < 1e-9);
    }

    /// Against f64: never below the formula, and within 1e-9 of it; the larger of the two ends meets ε exactly.
    #[test]
    fn calibration_is_certified_and_tight() {
        for e in [
            "0.001", "0.02", "0.25", "0.7", "0.999", "1", "1.5", "3", "10", "30",
        ] {
            for h in [calibrate(&q(e)).unwrap(), calibrate_dense(&q(e)).unwrap()] {
                let (e, b) = (rational_to_f64(&q(e)), rational_to_f64(&h.beta));
                let k = rational_to_f64(&h.kappa);
                let ends = [0.0, b].map(|l: f64| l.cosh() + (-l).exp() / (2.0 * k * k));
                let loss = ends[0].max(ends[1]).acosh();
                assert!(b > 0.0 && b < e);
                assert!(
                    loss <= e * (1.0 + 1e-9) && loss > e * (1.0 - 1e-9),
                    "{e}: {loss}"
                );
            }
        }
    }

    #[test]
    fn extreme_losses_are_total() {
        let tiny = calibrate(&q("1e-12")).unwrap();
        let k = rational_to_f64(&tiny.kappa);
        assert!(
            (k / (std::f64::consts::SQRT_2 * 1e12) - 1.0).abs() < 1e-4,
            "{k}"
        );
        for e in ["64", "1e9", "1e300"] {
            let h = calibrate(&q(e)).unwrap();
            assert!(rational_to_f64(&h.kappa) < 2e-14 && h.kappa > Rational::ZERO);
            assert_eq!(h, calibrate(&q("64")).unwrap());
            assert!(calibrate_dense(&q(e)).is_ok());
        }
        for bad in ["0", "-1", "1e-20"] {
            assert!(calibrate(&q(bad)).is_err(), "{bad}");
        }
        assert!(kappa(&q("1"), &q("1")).is_err());
        assert!(kappa(&q("1"), &q("0")).is_err());
        assert!(kappa(&q("1"), &q("2")).is_err());
    }
}
