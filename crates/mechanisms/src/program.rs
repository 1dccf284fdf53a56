//! Row programs: what a release reads from one record. Formulas compile to this.
//!
//! A program is data, row-wise and total by construction. The interval of every expression is computed from the
//! declared bounds and enforced by clamping (`evaluate.rs`), so no caller is trusted with a bound.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::rows::Schema;

pub use reticent_expressions::{
    Comparison, Expr, Function, Interval, ProgramError, Scope, entry, squared_norm_bound,
};

/// What a content split hashes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SplitBy {
    /// All declared columns (for units with several rows: the unit's identifier).
    Content,
    /// One column.
    Column(usize),
}

/// A record-wise split of the rows into disjoint parts, by a keyed hash.
///
/// # Claim
/// A record is in exactly one part. Parts go by their names: intervals of the hash that have one name are one part, so a part may
/// be everything but an interval in the middle.
/// # Composition
/// The ledger charges (split, name), and [`Part`] reads the records of that name: what is charged is what is read, whichever of the
/// equal names a [`Part`] points at. Every record has one hash, that hash is in one interval, and the interval has one name.
/// # Checked by
/// `program::tests::parts_have_their_shares`, `evaluate::tests::{parts_are_disjoint, parts_of_one_name_are_one_part}`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// What is hashed.
    pub by: SplitBy,
    /// Public salt.
    pub salt: String,
    /// Name and share of every part as a fraction `numerator/denominator`; the last part takes the rest.
    pub parts: Vec<(String, u32, u32)>,
}

impl Split {
    /// Identity of the partition in the ledger: a digest of (by, salt, fractions).
    ///
    /// The whole digest, because whoever writes plans chooses the salt: with two splits of one shortened name
    /// the ledger would count overlapping parts as disjoint.
    pub fn id(&self) -> String {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        digest.iter().fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// The part a hash value falls into: thresholds are ⌊cumulative share · 2⁶⁴⌋.
    pub(crate) fn part_of(&self, hash: u64) -> usize {
        let mut reached: u128 = 0;
        for (index, (_, numerator, denominator)) in self.parts.iter().enumerate() {
            let width = (u128::from(*numerator) << 64)
                .checked_div(u128::from(*denominator))
                .unwrap_or(0);
            reached = reached.saturating_add(width);
            if u128::from(hash) < reached {
                return index;
            }
        }
        self.parts.len().saturating_sub(1)
    }
}

/// One part of a split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The split.
    pub split: Split,
    /// Position of the part in [`Split::parts`]; any one of its intervals.
    pub index: usize,
}

impl Part {
    /// (partition, part) as the ledger names them.
    pub fn names(&self) -> (String, String) {
        let part = self
            .split
            .parts
            .get(self.index)
            .map_or_else(String::new, |p| p.0.clone());
        (self.split.id(), part)
    }
}

/// What a release reads from each record: numbers (`terms`), which records count (`filter`, `part`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowProgram {
    /// The numbers, in order; later terms may refer to earlier ones.
    pub terms: Vec<Expr>,
    /// Records for which this is 0 do not count.
    pub filter: Option<Expr>,
    /// Only records routed to this part count.
    pub part: Option<Part>,
}

impl RowProgram {
    /// The public bounds of every term, recomputed from the schema.
    ///
    /// # Claim
    /// One finite interval per term, a function of program and schema. Whether the term's values lie in it by
    /// themselves does not matter: they are clamped into it, and what is released is calibrated to it.
    pub fn bounds(&self, schema: &Schema) -> Result<Vec<Interval>, ProgramError> {
        let bounds = reticent_expressions::bounds(schema, self.filter.as_ref(), &self.terms)?;
        if bounds.len() != self.terms.len() {
            return Err(ProgramError::Term(bounds.len()));
        }
        for Interval { lower, upper } in bounds.iter().copied() {
            if !(lower.is_finite() && upper.is_finite() && lower <= upper) {
                return Err(ProgramError::Unbounded { lower, upper });
            }
        }
        Ok(bounds)
    }

    /// Schema positions of the columns the program reads (not counting those a content split hashes).
    ///
    /// Only these can make a record drop out or contribute a number; any other column reads as 0.
    pub fn columns(&self) -> Vec<usize> {
        reticent_expressions::columns(self.terms.iter().chain(&self.filter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thresholds of parts: all of 2^64, in order, with the declared shares.
    #[test]
    fn parts_have_their_shares() {
        let split = |parts: &[(u32, u32)]| Split {
            by: SplitBy::Content,
            salt: String::new(),
            parts: parts.iter().map(|(a, b)| (String::new(), *a, *b)).collect(),
        };
        let half = split(&[(1, 2), (1, 2)]);
        assert_eq!(half.part_of(0), 0);
        assert_eq!(half.part_of((1 << 63) - 1), 0);
        assert_eq!(half.part_of(1 << 63), 1);
        assert_eq!(half.part_of(u64::MAX), 1);
        let thirds = split(&[(1, 3), (1, 3), (1, 3)]);
        let third = u64::MAX / 3;
        assert_eq!(thirds.part_of(third - 1), 0);
        assert_eq!(thirds.part_of(third), 1);
        assert_eq!(thirds.part_of(u64::MAX), 2);
        // shares that do not add up: the last part takes the rest, later ones get nothing
        let over = split(&[(3, 4), (3, 4), (1, 4)]);
        assert_eq!((over.part_of(0), over.part_of(u64::MAX)), (0, 1));
        assert_eq!(split(&[(0, 0)]).part_of(7), 0);
        assert_eq!(split(&[]).part_of(7), 0);
        let counts = (0..3_000_u64)
            .map(|i| thirds.part_of(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .fold([0; 3], |mut c, p| {
                c[p] += 1;
                c
            });
        assert!(counts.iter().all(|c| (900..1100).contains(c)), "{counts:?}");
        // another salt, another partition
        let salted = Split {
            salt: "x".to_owned(),
            ..half.clone()
        };
        assert_ne!(half.id(), salted.id());
        // 256 bits: collisions must be out of reach of somebody who chooses the salt.
        assert_eq!(half.id().len(), 64);
    }
}
