//! The checked privacy parameters of the field: ε, δ, ρ.

use reticent_accounting::{AccountingError, Rational, format_rational};

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

            /// The exact value.
            pub fn rational(&self) -> &Rational {
                &self.0
            }
        }
    };
}

parameter!(Epsilon, "epsilon", positive);
parameter!(Delta, "delta", between_zero_and_one);
parameter!(Rho, "rho", positive);

#[cfg(test)]
mod tests {
    use reticent_accounting::parse_rational;

    use super::*;

    #[test]
    fn ranges_are_enforced() {
        let q = |text: &str| parse_rational(text).unwrap();
        for text in ["0", "-1", "-0", "0e9", "-1e-300"] {
            assert!(Epsilon::new(q(text)).is_err(), "{text}");
            assert!(Rho::new(q(text)).is_err(), "{text}");
            assert!(Delta::new(q(text)).is_err(), "{text}");
        }
        for text in ["1e9", "1e-9", "5e-324", "1/3", "0.5"] {
            assert_eq!(Epsilon::new(q(text)).unwrap().rational(), &q(text));
            assert_eq!(Rho::new(q(text)).unwrap().rational(), &q(text));
        }
        for text in ["1", "1.0", "2", "1e9"] {
            assert!(Delta::new(q(text)).is_err(), "{text}");
        }
        assert!(Delta::new(q("0.999999")).is_ok());
        let message = Epsilon::new(Rational::ZERO).unwrap_err().to_string();
        assert_eq!(
            message,
            "epsilon = 0 is out of range: it must be greater than 0"
        );
    }
}
