//! Exact rationals: reading and writing.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "big-number arithmetic cannot overflow, machine integers here are bounded by the text limits, and every divisor is checked or a denominator"
)]

use dashu::base::Sign;
use dashu::integer::{IBig, UBig};

use crate::AccountingError;

/// An exact fraction of arbitrary-precision integers, always in lowest terms.
pub type Rational = dashu::rational::RBig;

/// Reads a signed decimal exactly: `"0.5"`, `"-2"`, `"1e-9"`, `"5e-324"`.
///
/// The exponent is bounded by 1100 in size and the text by 5000 characters (both more than any
/// double needs), so that a short text cannot ask for an enormous number.
pub fn parse_decimal(text: &str) -> Result<Rational, AccountingError> {
    let refuse = |reason| AccountingError::NotANumber {
        text: text.chars().take(60).collect(),
        reason,
    };
    if text.len() > MAX_TEXT {
        return Err(refuse("it is too long"));
    }
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (
            mantissa,
            read_exponent(exponent).ok_or_else(|| {
                refuse("its exponent is not a whole number between -1100 and 1100")
            })?,
        ),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(refuse(if text.is_empty() {
            "it is empty"
        } else {
            "it has no digits"
        }));
    }
    if !whole
        .bytes()
        .chain(fraction.bytes())
        .all(|b| b.is_ascii_digit())
    {
        return Err(refuse(
            "only digits, one point and one exponent are allowed",
        ));
    }
    let digits = format!("{whole}{fraction}");
    let magnitude =
        UBig::from_str_radix(&digits, 10).map_err(|_| refuse("its digits cannot be read"))?;
    let places = i64::try_from(fraction.len()).map_err(|_| refuse("it is too long"))?;
    let shift = i64::from(exponent).saturating_sub(places);
    let sign = if negative {
        Sign::Negative
    } else {
        Sign::Positive
    };
    let power = power_of_ten(shift.unsigned_abs());
    Ok(if shift >= 0 {
        Rational::from(IBig::from_parts(sign, magnitude * power))
    } else {
        Rational::from_parts(IBig::from_parts(sign, magnitude), power)
    })
}

/// Reads a decimal (see [`parse_decimal`]) or a fraction of two decimals such as `"1/3"`.
pub fn parse_rational(text: &str) -> Result<Rational, AccountingError> {
    let Some((top, bottom)) = text.split_once('/') else {
        return parse_decimal(text);
    };
    let (top, bottom) = (parse_decimal(top.trim())?, parse_decimal(bottom.trim())?);
    if bottom.is_zero() {
        return Err(AccountingError::NotANumber {
            text: text.chars().take(60).collect(),
            reason: "it divides by zero",
        });
    }
    Ok(top / bottom)
}

/// The value of a double's shortest decimal form: `0.1` gives exactly 1/10, as the author of a
/// configuration file means it. NaN and infinities are refused.
pub fn rational_from_f64(value: f64) -> Result<Rational, AccountingError> {
    if !value.is_finite() {
        return Err(AccountingError::NotANumber {
            text: value.to_string(),
            reason: "it is not finite",
        });
    }
    parse_decimal(&format!("{value:e}"))
}

/// Writes a rational so that [`parse_rational`] reads back the same value: the exact decimal where
/// it ends (in scientific form when that is shorter), else `"p/q"`.
pub fn format_rational(value: &Rational) -> String {
    let Some((digits, places)) = finite_decimal(value) else {
        return format!("{}/{}", value.numerator(), value.denominator());
    };
    let sign = if value.sign() == Sign::Negative && !value.is_zero() {
        "-"
    } else {
        ""
    };
    let plain = plain_form(&digits, places);
    let shorter = scientific_form(&digits, places)
        .filter(|s| s.len() < plain.len())
        .unwrap_or(plain);
    format!("{sign}{shorter}")
}

/// The nearest double, for display and planning only: nothing debited is computed from it.
pub fn rational_to_f64(value: &Rational) -> f64 {
    value.to_f64().value()
}

const MAX_TEXT: usize = 5000;
const MAX_EXPONENT: i32 = 1100;
/// Decimals longer than this are written as fractions.
const MAX_PLACES: usize = 1100;

fn read_exponent(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|e: &i32| e.abs() <= MAX_EXPONENT)
}

/// 10ⁿ for n bounded by the text and exponent limits above.
fn power_of_ten(n: u64) -> UBig {
    UBig::from(10_u8).pow(usize::try_from(n).unwrap_or(0))
}

/// The digits of |value|·10^places and `places`, if value has a finite decimal expansion.
fn finite_decimal(value: &Rational) -> Option<(String, usize)> {
    let twos = value.denominator().trailing_zeros().unwrap_or(0);
    let mut rest: UBig = value.denominator() >> twos;
    let five = UBig::from(5_u8);
    let mut fives = 0_usize;
    while fives <= MAX_PLACES && (&rest % &five).is_zero() {
        rest /= &five;
        fives += 1;
    }
    let places = twos.max(fives);
    if !rest.is_one() || places > MAX_PLACES {
        return None;
    }
    let (_, magnitude) = value.numerator().clone().into_parts();
    let digits = magnitude * UBig::from(10_u8).pow(places) / value.denominator();
    Some((digits.to_string(), places))
}

fn plain_form(digits: &str, places: usize) -> String {
    if places == 0 {
        return digits.to_owned();
    }
    let padded = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = padded.split_at(padded.len() - places);
    format!("{whole}.{fraction}")
}

/// d.ddd·10^e; only taken for magnitudes below 1e-4 or above 1e20, where it reads better.
fn scientific_form(digits: &str, places: usize) -> Option<String> {
    let exponent = i64::try_from(digits.len()).ok()? - 1 - i64::try_from(places).ok()?;
    if (-4..=20).contains(&exponent) {
        return None;
    }
    let significant = digits.trim_end_matches('0');
    let (lead, tail) = significant.split_at_checked(1)?;
    let point = if tail.is_empty() { "" } else { "." };
    Some(format!("{lead}{point}{tail}e{exponent}"))
}

/// Rationals as text in serde formats.
pub(crate) mod text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{Rational, format_rational, parse_rational};

    pub(crate) fn serialize<S: Serializer>(value: &Rational, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format_rational(value))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Rational, D::Error> {
        parse_rational(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// [`text`] for optional values: `null` stands for an unbounded loss.
pub(crate) mod optional_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Rational;

    #[derive(Serialize, Deserialize)]
    struct Wrapped(#[serde(with = "super::text")] Rational);

    #[allow(clippy::ref_option, reason = "the signature serde calls")]
    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Rational>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        value.clone().map(Wrapped).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Rational>, D::Error> {
        Ok(Option::<Wrapped>::deserialize(from)?.map(|w| w.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_exactly() {
        for (text, top, bottom) in [
            ("0.5", 1_i64, 2_u64),
            ("1", 1, 1),
            ("-2.50", -5, 2),
            ("+.25", 1, 4),
            ("3.", 3, 1),
            ("1e-9", 1, 1_000_000_000),
            ("12.5E2", 1250, 1),
            ("0e5", 0, 1),
        ] {
            assert_eq!(
                parse_decimal(text).unwrap(),
                Rational::from_parts(top.into(), bottom.into()),
                "{text}"
            );
        }
        assert_eq!(
            parse_decimal("5e-324").unwrap(),
            Rational::from_parts(5.into(), UBig::from(10_u8).pow(324))
        );
        assert_eq!(
            parse_rational("1/3").unwrap(),
            Rational::from_parts(1.into(), 3_u8.into())
        );
        assert_eq!(
            parse_rational("0.5/1.5").unwrap(),
            Rational::from_parts(1.into(), 3_u8.into())
        );
    }

    #[test]
    fn junk_is_refused_with_its_reason() {
        for text in [
            "",
            ".",
            "-",
            "+",
            "e5",
            "1e",
            "1e+",
            "1e999999999",
            "1e-1101",
            "nan",
            "NaN",
            "inf",
            "-inf",
            "0x10",
            "1_000",
            "1,5",
            "1 2",
            "--1",
            "1.2.3",
            "1e2e3",
            "½",
            "1e0.5",
            "0/0",
            "1/0",
            "1/2/3",
            "/2",
            "1/",
        ] {
            let error = parse_rational(text).unwrap_err();
            assert!(
                error.to_string().contains("is not a number"),
                "{text}: {error}"
            );
        }
        assert!(parse_decimal(&"9".repeat(5001)).is_err());
        assert!(rational_from_f64(f64::NAN).is_err());
        assert!(rational_from_f64(f64::INFINITY).is_err());
    }

    #[test]
    fn doubles_mean_their_shortest_decimal() {
        assert_eq!(
            rational_from_f64(0.1).unwrap(),
            parse_decimal("0.1").unwrap()
        );
        assert_eq!(
            rational_from_f64(5e-324).unwrap(),
            parse_decimal("5e-324").unwrap()
        );
        assert_eq!(
            rational_from_f64(f64::MAX).unwrap(),
            parse_decimal("1.7976931348623157e308").unwrap()
        );
        assert_eq!(rational_from_f64(-0.0).unwrap(), Rational::ZERO);
    }

    #[test]
    fn writing_and_reading_round_trip() {
        for text in [
            "0",
            "1",
            "-1",
            "0.5",
            "-0.125",
            "0.1",
            "1e-9",
            "5e-324",
            "1.25e-7",
            "1e30",
            "123456789",
            "1/3",
            "-22/7",
            "0.0001",
            "100000",
        ] {
            let value = parse_rational(text).unwrap();
            assert_eq!(format_rational(&value), text);
        }
        for denominator in 1..400_u64 {
            for numerator in [-7_i64, 1, 3, 1_000_003] {
                let value = Rational::from_parts(numerator.into(), denominator.into());
                assert_eq!(parse_rational(&format_rational(&value)).unwrap(), value);
            }
        }
        let fine = Rational::from_parts(3.into(), UBig::ONE << 32);
        assert_eq!(
            format_rational(&fine),
            "6.98491930961608886718750e-10".replace("50e", "5e")
        );
        let finer = Rational::from_parts(3.into(), UBig::ONE << 2000);
        assert!(format_rational(&finer).starts_with("3/"));
        assert_eq!(parse_rational(&format_rational(&finer)).unwrap(), finer);
    }
}
