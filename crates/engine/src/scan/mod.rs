//! Scanning: rows in the clear, between the disk and the folds.
//!
//! [`Files`] (CSV, Parquet) and [`ArrowBatches`] are the row sources of one machine. A source decodes
//! cells by the public [`Layout`] (`fields`: a column of the files becomes one or several of the schema)
//! and hands batches to the door; nothing comes back, and no error made here depends on the content of a
//! row once the data are registered.
//!
//! # Claim
//! Each record of the files is handed over exactly once as one row, decoded record by record, so that
//! adding, removing or replacing a record adds, removes or replaces one row; which threads and batches
//! carried it is forgotten by the integer folds.
//! # Assumptions
//! The files are those that were registered (see [`crate::register`]); paths, format and layout are public.
//! # Checked by
//! `scan::tests::{csv_and_parquet_agree, thread_and_batch_independence, bad_rows_never_fail, a_visit_that_dies_does_not_hang}`
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

mod arrow;
pub(crate) mod cells;
pub(crate) mod csv;
pub(crate) mod fields;
pub(crate) mod parquet;

use std::path::PathBuf;
use std::sync::Arc;

use reticent_mechanisms::rows::{Batch, Schema};
use reticent_mechanisms::source::{Order, RowSource, SourceError};

pub use self::arrow::ArrowBatches;
use self::fields::Field;
use self::parquet::ParquetFile;
pub use crate::layout::{Layout, Rejects};

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated text with a header line, perhaps gzipped.
    Csv,
    /// Apache Parquet.
    Parquet,
}

/// A table in files of one format, read one after the other.
pub struct Files {
    pub(crate) layout: Layout,
    pub(crate) fields: Vec<Field>,
    pub(crate) paths: Vec<PathBuf>,
    /// Footers of Parquet files; empty for CSV.
    pub(crate) parquet: Vec<ParquetFile>,
    pub(crate) format: Format,
    batch_rows: Option<usize>,
}

impl Files {
    /// Opens the files in the order given and checks that each has the declared columns.
    pub fn open(paths: Vec<PathBuf>, format: Format, layout: Layout) -> Result<Self, SourceError> {
        if paths.is_empty() {
            return Err(SourceError::Format(
                "no data files; check `source.path`".into(),
            ));
        }
        let fields = layout.fields();
        let mut parquet = Vec::new();
        for path in &paths {
            match format {
                Format::Csv => {
                    let reader = csv::Reader::open(path)?;
                    locate(&fields, &reader.header, &path.display().to_string())?;
                }
                Format::Parquet => parquet.push(ParquetFile::open(path, &fields)?),
            }
        }
        Ok(Self {
            fields,
            layout,
            paths,
            parquet,
            format,
            batch_rows: None,
        })
    }

    /// Changes the number of rows per batch; results do not depend on it.
    #[must_use]
    pub fn with_batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = Some(rows.max(1));
        self
    }

    /// How cells are read.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The files, in reading order.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

impl RowSource for Files {
    fn schema(&self) -> &Arc<Schema> {
        &self.layout.schema
    }

    fn visit(
        &self,
        columns: &[usize],
        order: Order,
        visit: &(dyn Fn(&Batch) + Sync),
    ) -> Result<(), SourceError> {
        match self.format {
            Format::Csv => {
                let how = (columns, self.batch_rows.unwrap_or(csv::ROWS), order);
                csv::visit(&self.paths, &self.fields, how, visit)
            }
            Format::Parquet => {
                let how = (columns, self.batch_rows.unwrap_or(parquet::ROWS), order);
                parquet::visit(&self.parquet, &self.fields, how, visit)
            }
        }
    }
}

/// Where each column is among the names of a file. The message never quotes the names found: if
/// the header line is missing they are the cells of a record.
fn locate(fields: &[Field], names: &[String], context: &str) -> Result<Vec<usize>, SourceError> {
    let find = |name: &str| {
        let mut places = (1usize..)
            .zip(names)
            .filter(|(_, n)| n.trim() == name.trim());
        let what = match (places.next(), places.next()) {
            (Some((place, _)), None) => return Ok(place.saturating_sub(1)),
            (Some((i, _)), Some((j, _))) => {
                format!("columns {i} and {j} are both named `{name}`; rename one of them")
            }
            (None, _) => {
                let fix = match names {
                    [only] if only.contains(';') => "separate cells by commas, not semicolons",
                    [only] if only.contains('\t') => "separate cells by commas, not tabs",
                    _ => "compare the file's header with the declared columns",
                };
                format!("no column is named `{name}`; {fix}")
            }
        };
        Err(damaged(context, &what))
    };
    fields.iter().map(|f| find(&f.name)).collect()
}

/// Of the positions of the columns, those from which columns of the schema are asked for.
fn asked(fields: &[Field], positions: &[usize], columns: &[usize]) -> Vec<Option<usize>> {
    let each = fields.iter().zip(positions);
    each.map(|(field, at)| field.is_wanted(columns).then_some(*at))
        .collect()
}

fn damaged(context: &str, what: &str) -> SourceError {
    SourceError::Format(format!("{context}: {what}"))
}

fn failed(context: &str, source: std::io::Error) -> SourceError {
    SourceError::Io {
        context: context.to_owned(),
        source,
    }
}

#[cfg(test)]
#[allow(
    clippy::cast_precision_loss,
    reason = "test values are small or meant to round"
)]
pub(crate) mod tests;
