//! The one error type of this crate, and its classification for exit codes.

use std::path::{Path, PathBuf};

use reticent_accounting::{Cost, Currency, Relation};

use crate::RequestId;

/// What a caller has to know about an error to act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The request is valid but may not be paid; nothing was spent.
    Refused,
    /// The same request is being served right now.
    InProgress,
    /// There is no ledger at this path.
    Missing,
    /// There already is a ledger at this path.
    Exists,
    /// The ledger cannot be written.
    ReadOnly,
    /// The ledger is damaged or was edited.
    Damaged,
    /// The ledger is older than its head file, or than a release.
    RolledBack,
    /// No space is left.
    DiskFull,
    /// Another process held the ledger for too long.
    Busy,
    /// The ledger has a format this program does not know.
    Version,
    /// Any other machine failure.
    Io,
}

/// Whose cap a refused spend would have exceeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// The data set's.
    Dataset,
    /// One analyst's.
    Analyst(String),
}

impl std::fmt::Display for Whose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Dataset => f.write_str("the data set"),
            Self::Analyst(name) => write!(f, "analyst {name:?}"),
        }
    }
}

/// Why the ledger did not do what was asked. Nothing is handed out with an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The spend does not fit under a cap.
    #[error(
        "asked for {}, but of the {} that {whose} may spend under {relation} only {} is left; \
         ask for at most that, or have the curator raise the cap",
        asked.describe(*currency), cap.describe(*currency), left.describe(*currency)
    )]
    Refused {
        /// What the whole batch would add to the total.
        asked: Box<Cost>,
        /// What is left.
        left: Box<Cost>,
        /// The cap.
        cap: Box<Cost>,
        /// The currency of all three.
        currency: Currency,
        /// The neighbour relation of the data set.
        relation: Relation,
        /// Whose cap it is.
        whose: Whose,
    },
    /// The loss is unbounded under the data set's relation.
    #[error("{label:?} has unbounded loss under {relation}; no budget can pay for it")]
    Unbounded {
        /// The release.
        label: String,
        /// The relation.
        relation: Relation,
    },
    /// A price no mechanism has, such as a negative one.
    #[error("{label:?} has an impossible price: every part of a cost must be at least 0")]
    ImpossiblePrice {
        /// The release.
        label: String,
    },
    /// An entry that could not be read back as written, such as a price of thousands of digits.
    #[error("the price cannot be recorded exactly; use numbers with fewer digits")]
    Unrecordable,
    /// The same request twice in one batch.
    #[error(
        "request {request} ({label}) is asked twice in one batch; ask once and use the value twice"
    )]
    Duplicate {
        /// The request.
        request: RequestId,
        /// The release.
        label: String,
    },
    /// A reservation paid at another price or for another part.
    #[error(
        "request {request} ({label}) was reserved earlier at another price or for another part; \
         ask for a fresh draw (repeat = 1)"
    )]
    PriceChanged {
        /// The request.
        request: RequestId,
        /// The release.
        label: String,
    },
    /// A new cap that is lower than the present one.
    #[error("a cap can only be raised: it is {}, and {} was asked", old.describe(*currency), new.describe(*currency))]
    CapLowered {
        /// The present cap.
        old: Box<Cost>,
        /// The cap asked for.
        new: Box<Cost>,
        /// The currency of both.
        currency: Currency,
    },
    /// A registration whose cap is not a budget in its currency.
    #[error(
        "{what} is not a budget in {currency} currency: every part must be positive and delta below 1"
    )]
    NotABudget {
        /// The offending cap.
        what: String,
        /// The currency.
        currency: Currency,
    },
    /// Reserved by a process that is still running.
    #[error("request {request} ({label}) is in progress in another process; wait until it ends")]
    InProgress {
        /// The request.
        request: RequestId,
        /// The release.
        label: String,
    },
    /// A payment that no longer holds: its reservation was taken over, or it is another ledger's.
    #[error("the payment for request {request} is no longer valid: another process serves it")]
    StalePayment {
        /// The request.
        request: RequestId,
    },
    /// The ledger's file failed, or is not what it should be.
    #[error("{}", verdict(*kind, path, what))]
    File {
        /// Which way.
        kind: Kind,
        /// The path.
        path: PathBuf,
        /// What was found, or the cause.
        what: String,
    },
}

impl LedgerError {
    /// The class of this error.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Refused { .. }
            | Self::Unbounded { .. }
            | Self::ImpossiblePrice { .. }
            | Self::Unrecordable
            | Self::Duplicate { .. }
            | Self::PriceChanged { .. }
            | Self::CapLowered { .. }
            | Self::NotABudget { .. } => Kind::Refused,
            Self::InProgress { .. } | Self::StalePayment { .. } => Kind::InProgress,
            Self::File { kind, .. } => *kind,
        }
    }
}

fn verdict(kind: Kind, path: &Path, what: &str) -> String {
    let path = path.display();
    match kind {
        Kind::Missing => format!("there is no ledger at {path}; register the data set first"),
        Kind::Exists => format!("{path} exists already; a ledger is never overwritten"),
        Kind::ReadOnly => {
            format!("{path} is read-only; spending needs write access to it and its folder")
        }
        Kind::Damaged => {
            format!("the ledger {path} is damaged or was edited: {what}; restore it from a backup")
        }
        Kind::RolledBack => format!(
            "the ledger {path} is an older copy or lost entries: {what}; restore the latest copy"
        ),
        Kind::DiskFull => format!(
            "no space left for the ledger {path}; free some and try again, nothing was handed out"
        ),
        Kind::Busy => {
            format!("the ledger {path} is in use by another process for too long; try again")
        }
        _ => format!("the ledger {path} cannot be used: {what}"),
    }
}
