//! The declared columns: names, types, bounds.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a column holds, with the public facts that bound it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Kind {
    /// Whole numbers, clamped into `lower..=upper`.
    Integer {
        /// Smallest value that counts.
        lower: i64,
        /// Largest value that counts.
        upper: i64,
    },
    /// Real numbers, clamped into `lower..=upper`.
    Real {
        /// Smallest value that counts.
        lower: f64,
        /// Largest value that counts.
        upper: f64,
    },
    /// One of a declared list of texts; the order is that of treatment coding.
    Levels {
        /// The declared texts.
        levels: Vec<String>,
        /// Index of the level that stands for undeclared texts; `None` drops such a record.
        other: Option<u32>,
    },
    /// An identifier of the privacy unit; never a value.
    Id,
}

/// What a missing cell does to its record.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Missing {
    /// The record does not take part in releases that use this column.
    Drop,
    /// The cell is read as this number (for level columns: this level index).
    Impute(f64),
}

/// One declared column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Name as in the data.
    pub name: String,
    /// Type and bounds.
    pub kind: Kind,
    /// Treatment of missing cells.
    pub missing: Missing,
}

/// The declared columns, in the curator's order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// The columns.
    pub columns: Vec<Column>,
}

impl Schema {
    /// Position of the column of that name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// Digest of the schema's versioned bytes; part of what a ledger remembers.
    pub fn digest(&self) -> [u8; 32] {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        Sha256::digest(&bytes).into()
    }
}
