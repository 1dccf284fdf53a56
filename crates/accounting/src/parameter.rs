//! The checked privacy parameters of the field: ε, δ, ρ.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::number::{self, Rational};
use crate::{AccountingError, format_rational, parse_rational, rational_from_f64, rational_to_f64};

/// A privacy-loss bound ε > 0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epsilon(Rational);

/// A failure probability 0 < δ < 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Delta(Rational);

/// A zero-concentrated privacy loss ρ > 0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rho(Rational);

fn positive(name: &'static str, value: Rational) -> Result<Rational, AccountingError> {
    if value > Rational::ZERO {
        Ok(value)
    } else {
        Err(AccountingError::OutOfRange {
            name,
            value: format_rational(&value),
            allowed: "greater than 0",
        })
    }
}

fn between_zero_and_one(name: &'static str, value: Rational) -> Result<Rational, AccountingError> {
    if value > Rational::ZERO && value < Rational::ONE {
        Ok(value)
    } else {
        Err(AccountingError::OutOfRange {
            name,
            value: format_rational(&value),
            allowed: "greater than 0 and less than 1",
        })
    }
}

macro_rules! parameter {
    ($type:ident, $name:literal, $check:ident) => {
        impl $type {
            /// Checks the range and keeps the exact value.
            pub fn new(value: Rational) -> Result<Self, AccountingError> {
                $check($name, value).map(Self)
            }

            /// Takes the shortest decimal form of a double at its word: `0.1` is exactly 1/10.
            pub fn from_f64(value: f64) -> Result<Self, AccountingError> {
                Self::new(rational_from_f64(value)?)
            }

            /// The exact value.
            pub fn rational(&self) -> &Rational {
                &self.0
            }

            /// The nearest double, for display and planning.
            pub fn to_f64(&self) -> f64 {
                rational_to_f64(&self.0)
            }
        }

        impl FromStr for $type {
            type Err = AccountingError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(parse_rational(text)?)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&format_rational(&self.0))
            }
        }

        impl From<$type> for Rational {
            fn from(value: $type) -> Self {
                value.0
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                number::text::serialize(&self.0, to)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let value = number::text::deserialize(from)?;
                Self::new(value).map_err(serde::de::Error::custom)
            }
        }
    };
}

parameter!(Epsilon, "epsilon", positive);
parameter!(Delta, "delta", between_zero_and_one);
parameter!(Rho, "rho", positive);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_enforced() {
        for text in ["0", "-1", "nan", "inf", "-0", "0e9", ""] {
            assert!(text.parse::<Epsilon>().is_err(), "{text}");
            assert!(text.parse::<Rho>().is_err(), "{text}");
            assert!(text.parse::<Delta>().is_err(), "{text}");
        }
        for text in ["1e9", "1e-9", "5e-324", "1/3", "0.5"] {
            assert_eq!(
                text.parse::<Epsilon>().unwrap().to_string(),
                text.replace("1e9", "1000000000")
            );
        }
        for text in ["1", "1.0", "2", "1e9"] {
            assert!(text.parse::<Delta>().is_err(), "{text}");
        }
        assert!("0.999999".parse::<Delta>().is_ok());
        let message = "0".parse::<Epsilon>().unwrap_err().to_string();
        assert_eq!(
            message,
            "epsilon = 0 is out of range: it must be greater than 0"
        );
        assert!(Epsilon::from_f64(f64::NAN).is_err());
        assert!(Epsilon::from_f64(-1.0).is_err());
    }

    #[test]
    fn values_stay_exact() {
        let tenth = Epsilon::from_f64(0.1).unwrap();
        assert_eq!(tenth.rational(), &parse_rational("1/10").unwrap());
        assert!((tenth.to_f64() - 0.1).abs() < f64::EPSILON);
        assert!("5e-324".parse::<Epsilon>().unwrap().to_f64() > 0.0);
    }
}
