//! The closed lists of the field: relation, currency, size.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which pairs of tables count as neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// One privacy unit added or removed; the number of units is private.
    AddRemove,
    /// One privacy unit replaced by another; the number of units is public.
    ReplaceOne,
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AddRemove => "add_remove",
            Self::ReplaceOne => "replace_one",
        })
    }
}

/// The unit a data set's budget is counted in, fixed for the life of its ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Currency {
    /// `{epsilon}`: pure differential privacy, pure mechanisms only.
    Pure,
    /// `{epsilon, delta}`: approximate differential privacy, plain sums of both.
    Approximate,
    /// `{rho}`: zero-concentrated differential privacy.
    Concentrated,
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pure => "pure",
            Self::Approximate => "approximate",
            Self::Concentrated => "concentrated",
        })
    }
}

/// Whether the number of privacy units in a row set is public.
///
/// It belongs to the row set, not the data set: a part chosen by content has a private size even
/// where the file's own count is public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// The count is public and equal to this number.
    Public(u64),
    /// The count is private.
    Private,
}
