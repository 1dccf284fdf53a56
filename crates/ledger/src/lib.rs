//! The durable record of every spend and every release.
//!
//! A ledger is one SQLite file beside a data set. It holds no row data: only who asked, what it
//! cost under both neighbour relations, and the released values themselves. Money is paid *before*
//! data are touched ([`Ledger::reserve`]) and a value is stored *before* it is handed out
//! ([`Ledger::publish`]), so whatever happens to the machine, what is on disk as spent is never
//! less than what left.
//!
//! Reading order: [`Identity`] (what is fixed at registration), `entry` (the hash chain), `book`
//! (entries folded into totals), [`Ledger`] (the operations); below them `store` (SQLite),
//! `sidecar` (the head file that detects an older copy) and `owner` (is the process that reserved
//! still alive?).
//!
//! What this does not stop: someone who may write the ledger *and* its head file can rewrite both
//! consistently. A head published with an earlier release still convicts them: see
//! [`Ledger::verify`].

#![cfg_attr(
    not(test),
    warn(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::float_cmp,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss
    )
)]

mod book;
mod entry;
mod error;
mod identity;
mod ledger;
mod owner;
mod sidecar;
mod store;

pub use book::{AnalystStatus, PartitionStatus, Status};
pub use entry::{Entry, EntryKind, Spend};
pub use error::{Kind, LedgerError, Whose};
pub use identity::{Identity, NotARequestId, RequestId};
pub use ledger::{AgainstRelease, Ledger, Paid, Report, Slot, Stored, Wanted};
