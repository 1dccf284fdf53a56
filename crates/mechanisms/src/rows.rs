//! Rows as the door sees them: the declared schema, batches of decoded cells, and the batch a source
//! hands over. Everything here is plain data with a fixed meaning, decided record by record.
//!
//! The cell rules are those of `docs/guide.md` ("Cells"): NaN, empty and unparsable cells are *missing*;
//! infinities and values out of bounds are clamped; a text that is not a declared level goes to the
//! declared substitute level or makes the record drop out. None of these rules looks at another record.

use sha2::{Digest, Sha256};

pub use reticent_expressions::cell::{self, MISSING_CODE, MISSING_INTEGER, OTHER_CODE};
pub use reticent_expressions::{Column, Kind, Missing, Schema};

/// The decoded cells of one column in a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Integer cells; [`MISSING_INTEGER`] marks a missing one.
    Integer(Vec<i64>),
    /// Real cells; NaN marks a missing one, infinities are allowed.
    Real(Vec<f64>),
    /// Level indices; [`MISSING_CODE`] and [`OTHER_CODE`] as named.
    Code(Vec<u32>),
    /// Digests of identifiers.
    Id(Vec<u128>),
    /// The column was not asked for.
    Unread,
}

impl Cells {
    fn len(&self) -> Option<usize> {
        match self {
            Self::Integer(v) => Some(v.len()),
            Self::Real(v) => Some(v.len()),
            Self::Code(v) => Some(v.len()),
            Self::Id(v) => Some(v.len()),
            Self::Unread => None,
        }
    }
}

/// Consecutive rows of a source, column by column in schema order.
#[derive(Clone, Debug)]
pub struct Batch {
    rows: usize,
    columns: Vec<Cells>,
}

impl Batch {
    /// A batch of `rows` rows; columns that do not have exactly `rows` cells count as all missing.
    pub fn new(rows: usize, columns: Vec<Cells>) -> Self {
        let columns = columns
            .into_iter()
            .map(|c| match c.len() {
                Some(n) if n != rows => Cells::Unread,
                _ => c,
            })
            .collect();
        Self { rows, columns }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Cells of a column; a column the source did not read is [`Cells::Unread`].
    pub fn column(&self, index: usize) -> &Cells {
        self.columns.get(index).unwrap_or(&Cells::Unread)
    }

    /// Feeds the canonical encoding of one cell to a hash: a tag and the value, so that CSV and Parquet
    /// copies of one table are routed alike (integers as i64, reals as IEEE bits with −0 → 0 and one
    /// NaN, levels by index).
    pub(crate) fn encode(&self, column: usize, row: usize, hash: &mut Sha256) {
        match self.column(column) {
            Cells::Integer(v) => match v.get(row) {
                Some(&x) if x != MISSING_INTEGER => {
                    hash.update([1]);
                    hash.update(x.to_le_bytes());
                }
                _ => hash.update([0]),
            },
            Cells::Real(v) => match v.get(row) {
                Some(&x) if !x.is_nan() => {
                    let x = if x == 0.0 { 0.0 } else { x };
                    hash.update([2]);
                    hash.update(x.to_bits().to_le_bytes());
                }
                _ => hash.update([0]),
            },
            Cells::Code(v) => match v.get(row) {
                Some(&x) if x != MISSING_CODE => {
                    hash.update([3]);
                    hash.update(x.to_le_bytes());
                }
                _ => hash.update([0]),
            },
            Cells::Id(v) => match v.get(row) {
                Some(&x) => {
                    hash.update([4]);
                    hash.update(x.to_le_bytes());
                }
                None => hash.update([0]),
            },
            Cells::Unread => hash.update([0]),
        }
    }
}

/// The 128-bit digest by which an identifier is known inside the door.
///
/// Assumption: no two identifiers share a digest (finding such a pair takes about 2^64 hashes). Two units with one
/// digest would count as one, and taking one of them away could let up to k rows of the other in.
pub fn id_digest(text: &[u8]) -> u128 {
    let d: [u8; 32] = Sha256::digest(text).into();
    let mut first = [0u8; 16];
    first.iter_mut().zip(d).for_each(|(a, b)| *a = b);
    u128::from_le_bytes(first)
}
