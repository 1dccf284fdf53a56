//! Views of zero-concentrated privacy: (ε, δ), and pure ε.
//!
//! # Claim
//! ρ-zCDP implies (ε, δ) whenever, for some α > 1,
//! ε ≥ αρ + ln(1−1/α) − (ln α + ln δ)/(α−1). [`epsilon`] evaluates that bound, rounded up, at an α
//! near the best; [`rho`] solves it for ρ, rounded down. Any α is sound; the search only affects
//! how close to the optimum the result is (within 10⁻⁶ relative).
//! # Arithmetic
//! α is a rational found by integer search with certified logarithms: the same on every machine.
//! # Checked by
//! `zcdp::tests::{golden_conversions, conversion_is_sound_and_close, pure_view_rounds_down}`
//! # References
//! Canonne–Kamath–Steinke 2020, corollary 13; Bun–Steinke 2016.

use reticent_accounting::exp::{PRECISION, ln_lower, ln_upper, round_to, sqrt_lower};
use reticent_accounting::{AccountingError, Rational, floor_to_grid, format_rational, grid_bits};

/// An upper bound on the least ε for which ρ-zCDP gives (ε, δ), never below 0.
pub fn epsilon(rho: &Rational, delta: &Rational) -> Result<Rational, AccountingError> {
    probability(delta)?;
    if rho.is_zero() {
        return Ok(Rational::ZERO);
    }
    positive("rho", rho)?;
    let ln_delta = ln_lower(delta)?;
    let best = largest(|excess| {
        let alpha = excess + Rational::ONE;
        let shift = ln_upper(&(excess / &alpha))? - (ln_lower(&alpha)? + &ln_delta) / excess;
        Ok(-(alpha * rho + shift))
    })?;
    Ok(round_to(&-best, PRECISION, true))
}

/// A lower bound on the largest ρ for which ρ-zCDP gives (ε, δ), never below 0.
pub fn rho(epsilon: &Rational, delta: &Rational) -> Result<Rational, AccountingError> {
    positive("epsilon", epsilon)?;
    probability(delta)?;
    let ln_delta = ln_lower(delta)?;
    let best = largest(|excess| {
        let alpha = excess + Rational::ONE;
        let shift = ln_upper(&(excess / &alpha))? - (ln_lower(&alpha)? + &ln_delta) / excess;
        Ok((epsilon - shift) / alpha)
    })?;
    Ok(round_to(&best, PRECISION, false))
}

/// √(2ρ) rounded down to the grid of derived shares: the pure ε whose cost ε²/2 is at most ρ.
pub fn epsilon_of_pure(rho: &Rational) -> Rational {
    let root = sqrt_lower(&(rho * Rational::from(2)));
    if root.is_zero() {
        root
    } else {
        floor_to_grid(&root, grid_bits(&root))
    }
}

fn positive(name: &'static str, value: &Rational) -> Result<(), AccountingError> {
    in_range(name, value, *value > Rational::ZERO, "greater than 0")
}

fn probability(delta: &Rational) -> Result<(), AccountingError> {
    let inside = *delta > Rational::ZERO && *delta < Rational::ONE;
    in_range("delta", delta, inside, "greater than 0 and less than 1")
}

fn in_range(
    name: &'static str,
    value: &Rational,
    inside: bool,
    allowed: &'static str,
) -> Result<(), AccountingError> {
    if inside {
        return Ok(());
    }
    Err(AccountingError::OutOfRange {
        name,
        value: format_rational(value),
        allowed,
    })
}

/// The largest value of a function of α − 1 > 0 with one peak: first over powers of two, then on
/// finer and finer grids around the best.
fn largest(
    value: impl Fn(&Rational) -> Result<Rational, AccountingError>,
) -> Result<Rational, AccountingError> {
    let two = Rational::from(2);
    let mut center = Rational::ONE;
    let mut best = value(&center)?;
    for factor in [two.clone(), Rational::ONE / &two] {
        let mut excess = Rational::ONE;
        for _ in 0..4096 {
            excess *= &factor;
            let found = value(&excess)?;
            if found <= best {
                break;
            }
            (center, best) = (excess.clone(), found);
        }
    }
    let mut step = &center / &two;
    for _ in 0..14 {
        for excess in [&center - &step, &center + &step] {
            let found = value(&excess)?;
            if found > best {
                (center, best) = (excess, found);
            }
        }
        step /= &two;
    }
    Ok(best)
}

#[cfg(test)]
#[allow(
    clippy::excessive_precision,
    reason = "golden values keep the digits of their source"
)]
mod tests {
    use super::*;
    use reticent_accounting::{gaussian, parse_decimal, parse_rational, rational_to_f64};

    fn q(text: &str) -> Rational {
        parse_decimal(text).unwrap()
    }

    /// Optima found with mpmath (50 digits, golden section on ln(α−1)).
    #[test]
    fn golden_conversions() {
        for (eps, delta, golden) in [
            ("1", "1e-6", 0.024_355_970_359_538_373),
            ("0.1", "1e-6", 0.000_321_047_690_345_740_1),
            ("1e-3", "1e-9", 2.547_197_698_213_541_7e-8),
            ("1000", "1e-6", 793.664_179_563_924_5),
        ] {
            let found = rational_to_f64(&rho(&q(eps), &q(delta)).unwrap());
            assert!(
                found <= golden * (1.0 + 1e-12) && found >= golden * (1.0 - 1e-6),
                "{found} {golden}"
            );
        }
        for (r, delta, golden) in [
            ("0.125", "1e-6", 2.419_093_176_867_195),
            ("0.15", "1e-6", 2.672_935_856_915_409),
            ("0.5", "1e-5", 4.728_386_984_943_314),
            ("100", "1e-10", 194.024_020_821_524_1),
            ("1e-9", "1e-6", 8.953_361_886_779_92e-5),
        ] {
            let found = rational_to_f64(&epsilon(&q(r), &q(delta)).unwrap());
            assert!(
                found >= golden * (1.0 - 1e-12) && found <= golden * (1.0 + 1e-6),
                "{found} {golden}"
            );
        }
    }

    /// lessons row 32, against the exact curve of the composed Gaussian (k draws at σ are one at σ/√k) and against
    /// dp-accounting 0.6.0 for 30 Laplace draws: an upper bound, and at most 20 % above.
    #[test]
    fn conversion_is_sound_and_close() {
        let delta = q("1e-6");
        for (k, sigma_of_one, sigma_of_all) in [
            (1, "5", "5"),
            (10, "10", "3.1622776601683795"),
            (1000, "100", "3.1622776601683795"),
        ] {
            let variance = q(sigma_of_one) * q(sigma_of_one);
            let total = Rational::from(k) / (variance * Rational::from(2));
            let bound = epsilon(&total, &delta).unwrap();
            assert!(gaussian::delta_upper(&q(sigma_of_all), &bound, &Rational::ONE) <= delta);
            let lower = &bound * q("0.8");
            assert!(gaussian::delta_upper(&q(sigma_of_all), &lower, &Rational::ONE) > delta);
        }
        let exact = 2.254_084_656_659_037_6;
        let ours = rational_to_f64(&epsilon(&q("0.125"), &delta).unwrap());
        assert!(ours >= exact && ours <= 2.419_102_488_693_920_5);
        let laplace = rational_to_f64(&epsilon(&q("0.15"), &delta).unwrap());
        assert!((2.297_819_033_080_175..=3.0).contains(&laplace));
    }

    #[test]
    fn extreme_inputs_are_total() {
        for (r, d) in [
            ("1e-300", "1e-9"),
            ("1e9", "1e-300"),
            ("5e-324", "0.999"),
            ("1", "0.5"),
        ] {
            let eps = epsilon(&q(r), &q(d)).unwrap();
            assert!(eps >= Rational::ZERO);
        }
        assert_eq!(
            epsilon(&Rational::ZERO, &q("1e-6")).unwrap(),
            Rational::ZERO
        );
        assert!(epsilon(&q("-1"), &q("1e-6")).is_err());
        assert!(epsilon(&q("1"), &q("1")).is_err());
        assert!(rho(&Rational::ZERO, &q("1e-6")).is_err());
        assert!(rho(&q("1e-9"), &q("1e-300")).unwrap() > Rational::ZERO);
        assert!(rho(&q("1e9"), &q("1e-6")).unwrap() > q("9e8"));
    }

    #[test]
    fn pure_view_rounds_down() {
        for r in ["0.5", "0.02", "1e-9", "1e9", "1/3", "5e-324"] {
            let r = parse_rational(r).unwrap();
            let eps = epsilon_of_pure(&r);
            let two = Rational::from(2);
            assert!(&eps * &eps / &two <= r && eps > Rational::ZERO);
            let above = &eps * (Rational::ONE + q("2e-6"));
            assert!(&above * &above / two > r);
        }
        assert_eq!(epsilon_of_pure(&q("0.5")), Rational::ONE);
        assert_eq!(epsilon_of_pure(&Rational::ZERO), Rational::ZERO);
    }
}
