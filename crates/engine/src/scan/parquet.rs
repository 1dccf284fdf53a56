//! Parquet files as row sources.
//!
//! # Claim
//! Every row of every row group is handed over exactly once, whatever the number of threads.
//! # Arithmetic
//! Row groups are read in parallel; long ones are cut into pieces of [`PIECE`] rows, so that one huge row
//! group still feeds all threads. Only needed columns are read. Text columns with declared levels keep
//! their dictionary, so each distinct text is looked up once. A batch holds at most [`ROWS`] rows, fewer
//! if the file's own sizes say that they would exceed [`BATCH_BYTES`]; memory is a batch and its pages
//! per thread. Files the decoder cannot read, damaged ones included, are errors, never panics.
//! # Checked by
//! `scan::tests::{csv_and_parquet_agree, parquet_pieces, thread_and_batch_independence, damaged_parquet}`

#![allow(
    clippy::arithmetic_side_effects,
    reason = "sums of row counts of a file, below 2^63; divisors are at least 1"
)]

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field as ArrowField, Schema as ArrowSchema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
    RowSelector,
};
use rayon::prelude::*;
use reticent_mechanisms::rows::Batch;
use reticent_mechanisms::rows::cell::Meaning;
use reticent_mechanisms::source::{Order, SourceError};

use super::arrow::{decode, locate_arrow};
use super::cells::is_text;
use super::fields::{Content, Field};
use super::{asked, damaged, failed};

/// Rows per batch unless asked otherwise: a column of a batch stays in the cache, and its memory is used again
/// instead of going back to the system (which costs more than decoding the values).
pub(crate) const ROWS: usize = 1 << 13;
/// Rows per piece of a row group.
const PIECE: usize = 1 << 20;
/// Aimed size of a batch.
const BATCH_BYTES: usize = 32 << 20;

/// One Parquet file whose footer has been read.
pub(crate) struct ParquetFile {
    pub(crate) path: PathBuf,
    metadata: ArrowReaderMetadata,
    /// Position in the file of each column.
    positions: Vec<usize>,
}

/// A range of rows of one row group.
#[derive(Clone, Copy)]
pub(crate) struct Piece<'a> {
    file: &'a ParquetFile,
    group: usize,
    first: usize,
    rows: usize,
}

impl ParquetFile {
    /// Reads the footer and finds the declared columns.
    pub(crate) fn open(path: &Path, fields: &[Field]) -> Result<Self, SourceError> {
        let context = path.display().to_string();
        let file = File::open(path).map_err(|e| failed(&context, e))?;
        let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let found = guard(&context, || ArrowReaderMetadata::load(&file, plain))?;
        let positions = locate_arrow(fields, found.schema(), &context)?;
        // Level columns keep their dictionaries.
        let mut hint: Vec<Arc<ArrowField>> = found.schema().fields().iter().cloned().collect();
        for (field, place) in fields.iter().zip(&positions) {
            if let Some(stored) = hint.get_mut(*place)
                && matches!(field.content, Content::Cell(Meaning::Levels(_)))
                && is_text(stored.data_type())
            {
                let value = Box::new(stored.data_type().clone());
                let kind = DataType::Dictionary(Box::new(DataType::Int32), value);
                *stored = Arc::new(ArrowField::new(stored.name(), kind, stored.is_nullable()));
            }
        }
        let options = ArrowReaderOptions::new().with_schema(Arc::new(ArrowSchema::new(hint)));
        let footer = Arc::clone(found.metadata());
        let metadata = guard(&context, || ArrowReaderMetadata::try_new(footer, options))?;
        Ok(Self {
            path: path.to_path_buf(),
            metadata,
            positions,
        })
    }

    fn group_rows(&self, group: usize) -> usize {
        let meta = self.metadata.metadata().row_groups().get(group);
        meta.map_or(0, |m| usize::try_from(m.num_rows()).unwrap_or(0))
    }

    /// All rows of the file, in order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        (0..self.metadata.metadata().num_row_groups()).flat_map(move |group| {
            let total = self.group_rows(group);
            let firsts = (0..total).step_by(PIECE);
            firsts.map(move |first| Piece {
                file: self,
                group,
                first,
                rows: PIECE.min(total - first),
            })
        })
    }
}

impl Piece<'_> {
    /// Reads the piece and hands over its record batches and what they mean, in order.
    pub(crate) fn read(
        self,
        columns: &[usize],
        rows: usize,
        fields: &[Field],
        mut see: impl FnMut(&RecordBatch, Batch),
    ) -> Result<(), SourceError> {
        let context = self.file.path.display().to_string();
        let file = File::open(&self.file.path).map_err(|e| failed(&context, e))?;
        let asked = asked(fields, &self.file.positions, columns);
        let mut roots: Vec<usize> = asked.iter().flatten().copied().collect();
        roots.sort_unstable();
        roots.dedup();
        // Record batches hold the read columns in the order of the file.
        let place = |root: &Option<usize>| roots.binary_search(&(*root)?).ok();
        let places: Vec<Option<usize>> = asked.iter().map(place).collect();
        let metadata = &self.file.metadata;
        let mask = ProjectionMask::roots(metadata.parquet_schema(), roots.iter().copied());
        let mut reader = guard(&context, || {
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone())
                .with_row_groups(vec![self.group])
                .with_batch_size(self.batch_rows(rows, &mask))
                .with_projection(mask)
                .with_row_selection(RowSelection::from(vec![
                    RowSelector::skip(self.first),
                    RowSelector::select(self.rows),
                ]))
                .build()
        })?;
        let mut left = self.rows;
        while let Some(batch) = guard(&context, || reader.next().transpose())? {
            left = left.saturating_sub(batch.num_rows());
            see(&batch, decode(&batch, &places, fields, &context)?);
        }
        if left > 0 {
            return Err(damaged(
                &context,
                "the file holds fewer rows than its footer says",
            ));
        }
        Ok(())
    }

    /// Rows per batch: as asked, fewer if the needed columns are wide.
    fn batch_rows(&self, rows: usize, mask: &ProjectionMask) -> usize {
        let group = self.file.metadata.metadata().row_group(self.group);
        let read = group
            .columns()
            .iter()
            .enumerate()
            .filter(|(i, _)| mask.leaf_included(*i));
        let sizes = read.map(|(_, c)| usize::try_from(c.uncompressed_size()).unwrap_or(0));
        let width = sizes.fold(0, usize::saturating_add) / self.file.group_rows(self.group).max(1);
        rows.min(BATCH_BYTES / width.max(1)).max(1)
    }
}

/// Reads all files and visits their batches.
pub(crate) fn visit(
    files: &[ParquetFile],
    fields: &[Field],
    (columns, rows, order): (&[usize], usize, Order),
    visit: &(dyn Fn(&Batch) + Sync),
) -> Result<(), SourceError> {
    let read = |piece: Piece<'_>| piece.read(columns, rows, fields, |_, batch| visit(&batch));
    let pieces: Vec<Piece<'_>> = files.iter().flat_map(ParquetFile::pieces).collect();
    match order {
        Order::Any => pieces.into_par_iter().try_for_each(read),
        Order::File => pieces.into_iter().try_for_each(read),
    }
}

/// Runs the decoder; its errors and, should a damaged file make it panic, its panics become an error.
fn guard<T, E: std::fmt::Display>(
    context: &str,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<T, SourceError> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|e| damaged(context, &e.to_string())),
        Err(_) => Err(damaged(
            context,
            "the Parquet decoder gave up: the file is damaged",
        )),
    }
}
