//! The one error type of this crate, and its classification for exit codes.

use std::path::PathBuf;

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
    /// No ledger.
    #[error("there is no ledger at {}; register the data set first", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// A ledger where a new one should go.
    #[error("{} exists already; a ledger is never overwritten", path.display())]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// A file that cannot be written.
    #[error("{} is read-only; spending needs write access to it and its folder", path.display())]
    ReadOnly {
        /// The path.
        path: PathBuf,
    },
    /// A damaged or edited file.
    #[error("the ledger {} is damaged or was edited: {what}; restore it from a backup", path.display())]
    Damaged {
        /// The path.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// An older copy.
    #[error("the ledger {} is an older copy or lost entries: {what}; restore the latest copy", path.display())]
    RolledBack {
        /// The path.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// No space.
    #[error("no space left for the ledger {}; free some and try again, nothing was handed out", path.display())]
    DiskFull {
        /// The path.
        path: PathBuf,
    },
    /// Lock contention.
    #[error("the ledger {} is in use by another process for too long; try again", path.display())]
    Busy {
        /// The path.
        path: PathBuf,
    },
    /// An unknown format version.
    #[error("the ledger {} has format version {found}; this program knows up to {supported}: use a newer one", path.display())]
    Version {
        /// The path.
        path: PathBuf,
        /// The version found.
        found: i64,
        /// The newest version known.
        supported: i64,
    },
    /// Any other machine failure.
    #[error("the ledger {} cannot be used: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
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
            Self::Missing { .. } => Kind::Missing,
            Self::Exists { .. } => Kind::Exists,
            Self::ReadOnly { .. } => Kind::ReadOnly,
            Self::Damaged { .. } => Kind::Damaged,
            Self::RolledBack { .. } => Kind::RolledBack,
            Self::DiskFull { .. } => Kind::DiskFull,
            Self::Busy { .. } => Kind::Busy,
            Self::Version { .. } => Kind::Version,
            Self::Io { .. } => Kind::Io,
        }
    }
}
