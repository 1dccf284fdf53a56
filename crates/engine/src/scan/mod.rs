//! Scanning: rows in the clear, between the disk and the folds.
//!
//! [`Files`] (CSV, Parquet) and [`ArrowBatches`] are the row sources of one machine. A source decodes
//! cells by the public [`Layout`] and hands batches to the door; nothing comes back, and no error made
//! here depends on the content of a row once the data are registered.
//!
//! # Claim
//! Each record of the files is handed over exactly once as one row, decoded record by record, so that
//! adding, removing or replacing a record adds, removes or replaces one row; which threads and batches
//! carried it is forgotten by the integer folds.
//! # Assumptions
//! The files are those that were registered (see [`crate::register`]); paths, format and layout are public.
//! # Checked by
//! `scan::tests`
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
mod cells;
mod csv;
mod parquet;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::arrow::array::RecordBatch;
use ::arrow::datatypes::Schema as ArrowSchema;
use reticent_mechanisms::rows::{Batch, Cells, Schema};
use reticent_mechanisms::source::{Order, RowSource, SourceError};

pub use self::arrow::ArrowBatches;
pub use self::cells::FIELD_CAP;
use self::cells::{Decoder, supported};
use self::parquet::ParquetFile;

/// How cells are read: all of it declared by the curator, none of it learned from rows.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The declared columns.
    pub schema: Arc<Schema>,
    /// Per column, the texts that mean missing (empty text always does, unless it is a declared level).
    pub missing_values: Vec<Vec<String>>,
    /// Per column, what registration must reject.
    pub rejects: Vec<Rejects>,
}

/// Cells that registration reports as errors. Scanning never looks at this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rejects {
    /// Missing cells.
    pub missing: bool,
    /// Texts that are not declared levels.
    pub other: bool,
    /// Numbers outside the bounds; otherwise they are counted, and clamped.
    pub outside: bool,
}

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
    layout: Layout,
    decoders: Vec<Decoder>,
    paths: Vec<PathBuf>,
    /// Footers of Parquet files; empty for CSV.
    parquet: Vec<ParquetFile>,
    format: Format,
    batch_rows: Option<usize>,
}

/// What registration sees of a batch.
pub(crate) struct Seen<'a> {
    /// The file it comes from.
    pub(crate) path: &'a Path,
    /// Decoded cells.
    pub(crate) batch: &'a Batch,
    /// For CSV: the line of each record and its number of fields, and the header's.
    pub(crate) records: Option<(&'a [(u64, usize)], usize)>,
    /// Bytes of a cell as stored.
    pub(crate) raw: &'a dyn Fn(usize, usize) -> Vec<u8>,
}

impl Files {
    /// Opens the files in the order given and checks that each has the declared columns.
    pub fn open(paths: Vec<PathBuf>, format: Format, layout: Layout) -> Result<Self, SourceError> {
        if paths.is_empty() {
            return Err(SourceError::Format("no data files; check `source.path`".into()));
        }
        let mut parquet = Vec::new();
        for path in &paths {
            match format {
                Format::Csv => {
                    let reader = csv::Reader::open(path)?;
                    locate(&layout.schema, &reader.header, &path.display().to_string())?;
                }
                Format::Parquet => parquet.push(ParquetFile::open(path, &layout.schema)?),
            }
        }
        Ok(Self { decoders: decoders(&layout), layout, paths, parquet, format, batch_rows: None })
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

    /// Shows every batch, in file order, with the places and bytes of its cells: for registration only.
    pub(crate) fn inspect(&self, see: &mut dyn FnMut(&Seen<'_>)) -> Result<(), SourceError> {
        let all: Vec<usize> = (0..self.decoders.len()).collect();
        for file in &self.parquet {
            parquet::inspect(file, &self.decoders, &all, |stored, batch| {
                let raw = |row: usize, column: usize| -> Vec<u8> {
                    let name = self.layout.schema.columns.get(column).map_or("", |c| c.name.as_str());
                    let cells = stored.columns().iter().zip(stored.schema_ref().fields());
                    let array = cells.filter(|(_, f)| f.name().trim() == name.trim()).map(|(a, _)| a).next();
                    let text = array.and_then(|a| ::arrow::util::display::array_value_to_string(a, row).ok());
                    text.unwrap_or_default().into_bytes()
                };
                see(&Seen { path: &file.path, batch: &batch, records: None, raw: &raw });
            })?;
        }
        if self.format == Format::Csv {
            for path in &self.paths {
                let reader = csv::Reader::open(path)?;
                let width = reader.header.len();
                reader.blocks(&self.layout.schema, &all, csv::ROWS, |block, wanted| {
                    let raw = |row: usize, column: usize| {
                        let slot = wanted.slot_of.get(column).copied().flatten();
                        slot.map(|s| block.field(row, s, wanted.slots).to_vec()).unwrap_or_default()
                    };
                    let batch = wanted.decode(&block, &self.decoders);
                    see(&Seen { path, batch: &batch, records: Some((&block.records, width)), raw: &raw });
                    Some(block)
                })?;
            }
        }
        Ok(())
    }
}

impl RowSource for Files {
    fn schema(&self) -> &Arc<Schema> {
        &self.layout.schema
    }

    fn visit(&self, columns: &[usize], order: Order, visit: &(dyn Fn(Batch) + Sync)) -> Result<(), SourceError> {
        match self.format {
            Format::Csv => {
                let how = (columns, self.batch_rows.unwrap_or(csv::ROWS), order);
                csv::visit(&self.paths, &self.layout.schema, &self.decoders, how, visit)
            }
            Format::Parquet => {
                let how = (columns, self.batch_rows.unwrap_or(parquet::ROWS), order);
                parquet::visit(&self.parquet, &self.decoders, how, visit)
            }
        }
    }
}

/// The files a path or glob pattern names, relative to `base`, in order of name.
pub fn expand(pattern: &str, base: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let literal = base.join(pattern);
    if literal.is_file() {
        return Ok(vec![literal]);
    }
    let rooted = if Path::new(pattern).is_absolute() {
        pattern.to_owned()
    } else {
        Path::new(&glob::Pattern::escape(&base.to_string_lossy())).join(pattern).to_string_lossy().into_owned()
    };
    let found = glob::glob(&rooted).map_err(|e| SourceError::Format(format!("source.path `{pattern}`: {e}")))?;
    let mut paths = Vec::new();
    for path in found {
        let path = path.map_err(|e| failed(&e.path().display().to_string(), std::io::Error::other(e.to_string())))?;
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(SourceError::Format(format!("source.path `{pattern}`: no such file under {}", base.display())));
    }
    Ok(paths)
}

fn decoders(layout: &Layout) -> Vec<Decoder> {
    let missing = |i: usize| layout.missing_values.get(i).map_or(&[][..], Vec::as_slice);
    layout.schema.columns.iter().enumerate().map(|(i, c)| Decoder::new(c, missing(i))).collect()
}

/// Decodes the columns at these places of a record batch.
fn arrow_batch(
    batch: &RecordBatch,
    places: &[Option<usize>],
    decoders: &[Decoder],
    context: &str,
) -> Result<Batch, SourceError> {
    let cells = decoders.iter().zip(places).map(|(decoder, place)| match place.and_then(|p| batch.columns().get(p)) {
        Some(array) => decoder.array(array).map_err(|e| damaged(context, &e.to_string())),
        None => Ok(Cells::Unread),
    });
    Ok(Batch::new(batch.num_rows(), cells.collect::<Result<_, _>>()?))
}

/// Where each declared column is among the names of a file. The message never quotes the names found: if
/// the header line is missing they are the cells of a record.
fn locate(schema: &Schema, names: &[String], context: &str) -> Result<Vec<usize>, SourceError> {
    let find = |name: &str| {
        let mut places = names.iter().enumerate().filter(|(_, n)| n.trim() == name.trim()).map(|(i, _)| i);
        match (places.next(), places.next()) {
            (Some(place), None) => Ok(place),
            (Some(first), Some(second)) => Err(damaged(
                context,
                &format!(
                    "two columns (number {} and {}) are named `{name}`; rename one of them",
                    first.saturating_add(1),
                    second.saturating_add(1)
                ),
            )),
            (None, _) => {
                let separator = match names {
                    [only] if only.contains(';') => "; it seems to be separated by semicolons, commas are needed",
                    [only] if only.contains('\t') => "; it seems to be separated by tabs, commas are needed",
                    _ => "; compare the header line with the declared columns",
                };
                Err(damaged(context, &format!("no column is named `{name}` ({} columns){separator}", names.len())))
            }
        }
    };
    schema.columns.iter().map(|c| find(&c.name)).collect()
}

/// Refuses Arrow types that have no decoding.
fn check_types(schema: &Schema, places: &[usize], found: &ArrowSchema, context: &str) -> Result<(), SourceError> {
    for (column, place) in schema.columns.iter().zip(places) {
        if let Some(kind) = found.fields().get(*place).map(|f| f.data_type())
            && !supported(kind)
        {
            let what = format!("column `{}` has type {kind}; numbers, text, Booleans, dates are read", column.name);
            return Err(damaged(context, &what));
        }
    }
    Ok(())
}

fn damaged(context: &str, what: &str) -> SourceError {
    SourceError::Format(format!("{context}: {what}"))
}

fn failed(context: &str, source: std::io::Error) -> SourceError {
    SourceError::Io { context: context.to_owned(), source }
}
