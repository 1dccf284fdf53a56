//! Columns of the files: most are one column of the schema; a text becomes whole-number columns, its slots
//! (`name.1`, `name.2`, …), before the door sees it.
//!
//! # Claim
//! What a stored cell puts into the columns of the schema is a function of that cell and of public declarations; no text
//! fails, and whatever is said of one fills its own record.
//! # Assumptions
//! [`crate::text`] says what a text becomes and is called with that text alone; the declaration is that of registration
//! (`books` compares a digest).
//! # Checked by
//! `tokens::tests::{slots_depend_on_the_record_alone, csv_and_parquet_agree, odd_texts_never_fail}`,
//! `scan::tests::texts_in_arrow_batches`

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use reticent_mechanisms::rows::Cells;
use reticent_mechanisms::rows::cell::Meaning;

use super::cells::{self, is_text};
use crate::text::TextColumn;

/// A column of the files.
pub(crate) struct Field {
    /// Its name in the files.
    pub(crate) name: String,
    /// The columns of the schema that come of it.
    pub(crate) columns: Range<usize>,
    /// How it is read.
    pub(crate) content: Content,
}

/// What the cells of a column of the files mean.
pub(crate) enum Content {
    /// A cell of the schema each.
    Cell(Meaning),
    /// The numbers of the words of a text each.
    Words(TextColumn),
}

impl Field {
    /// Whether one of these columns of the schema comes of it.
    pub(crate) fn is_wanted(&self, columns: &[usize]) -> bool {
        columns.iter().any(|c| self.columns.contains(c))
    }

    /// The columns of the schema if it is not read.
    pub(crate) fn unread(&self) -> Vec<Cells> {
        vec![Cells::Unread; self.columns.len()]
    }

    /// Decodes texts; `None` is a null or an absent cell.
    pub(crate) fn texts<'a>(&self, cells: impl Iterator<Item = Option<&'a [u8]>>) -> Vec<Cells> {
        match &self.content {
            Content::Cell(meaning) => vec![cells::texts(meaning, cells)],
            Content::Words(column) => slots(column, cells.map(Option::unwrap_or_default)),
        }
    }

    /// Decodes an Arrow column; for its words, what is no text is taken as it is written in decimal.
    pub(crate) fn array(&self, array: &ArrayRef) -> Result<Vec<Cells>, ArrowError> {
        let kind = match array.data_type() {
            DataType::Dictionary(_, value) => value,
            kind => kind,
        };
        match &self.content {
            Content::Cell(meaning) => Ok(vec![cells::array(meaning, array)?]),
            Content::Words(_) if *kind == DataType::LargeBinary => {
                let texts = cast(array, kind)?;
                Ok(self.texts(texts.as_binary::<i64>().iter()))
            }
            Content::Words(_) if is_text(kind) => self.array(&cast(array, &DataType::LargeBinary)?),
            Content::Words(_) => self.array(&cast(array, &DataType::LargeUtf8)?),
        }
    }
}

/// The numbers of the words of texts, slot by slot. Slots for which there is nothing get the number of words, so that all
/// of them hold one number per record.
fn slots<'a>(column: &TextColumn, texts: impl Iterator<Item = &'a [u8]>) -> Vec<Cells> {
    let none = i64::from(column.vocabulary.len());
    let mut slots = vec![Vec::with_capacity(texts.size_hint().0); column.most];
    for text in texts {
        let mut words = column.slots(text);
        for slot in &mut slots {
            slot.push(words.next().unwrap_or(none));
        }
    }
    slots.into_iter().map(Cells::Integer).collect()
}
