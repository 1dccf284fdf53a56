//! The one error type of this crate.

use crate::Currency;

/// Why a number, a cost or an event was not accepted. Every message names the value and the fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountingError {
    /// Text that is not a number this crate reads.
    #[error("{text:?} is not a number: {reason}; write a decimal such as \"0.5\" or \"1e-6\"")]
    NotANumber {
        /// The text as given, cut to a readable length.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A number outside the range its meaning allows.
    #[error("{name} = {value} is out of range: it must be {allowed}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// The range, in words.
        allowed: &'static str,
    },
    /// A mechanism that the data set's currency cannot pay.
    #[error("{mechanism} cannot be paid in {currency}: {fix}")]
    Unpayable {
        /// The mechanism.
        mechanism: String,
        /// The currency asked for.
        currency: Currency,
        /// What would be accepted.
        fix: &'static str,
    },
    /// An event nested deeper than any real mechanism.
    #[error("the event is nested more than {limit} levels deep")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
}
