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

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema as ArrowSchema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use rayon::prelude::*;
use reticent_mechanisms::rows::{Batch, Kind, Schema};
use reticent_mechanisms::source::{Order, SourceError};

use super::cells::{Decoder, is_text};
use super::{arrow_batch, check_types, damaged, failed, locate};

/// Rows per batch unless asked otherwise.
pub(crate) const ROWS: usize = 1 << 16;
/// Rows per piece of a row group.
const PIECE: usize = 1 << 20;
/// Aimed size of a batch.
const BATCH_BYTES: usize = 32 << 20;

/// One Parquet file whose footer has been read.
pub(crate) struct ParquetFile {
    pub(crate) path: PathBuf,
    metadata: ArrowReaderMetadata,
    /// File column of each declared column.
    positions: Vec<usize>,
}

/// A range of rows of one row group.
#[derive(Clone, Copy)]
struct Piece<'a> {
    file: &'a ParquetFile,
    group: usize,
    first: usize,
    rows: usize,
    group_rows: usize,
}

impl ParquetFile {
    /// Reads the footer and finds the declared columns.
    pub(crate) fn open(path: &Path, schema: &Schema) -> Result<Self, SourceError> {
        let context = path.display().to_string();
        let file = File::open(path).map_err(|e| failed(&context, e))?;
        let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let found = guard(&context, || ArrowReaderMetadata::load(&file, plain))?;
        let names: Vec<String> = found.schema().fields().iter().map(|f| f.name().clone()).collect();
        let positions = locate(schema, &names, &context)?;
        check_types(schema, &positions, found.schema(), &context)?;
        let levels = |i: usize| {
            let column = positions.iter().position(|p| *p == i).and_then(|c| schema.columns.get(c));
            column.is_some_and(|c| matches!(c.kind, Kind::Levels { .. }))
        };
        let hinted = |(i, field): (usize, &Arc<Field>)| {
            if levels(i) && is_text(field.data_type()) {
                let value = Box::new(field.data_type().clone());
                let kind = DataType::Dictionary(Box::new(DataType::Int32), value);
                Arc::new(Field::new(field.name(), kind, field.is_nullable()))
            } else {
                Arc::clone(field)
            }
        };
        let hint = ArrowSchema::new(found.schema().fields().iter().enumerate().map(hinted).collect::<Vec<_>>());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(hint));
        let metadata = guard(&context, || ArrowReaderMetadata::try_new(Arc::clone(found.metadata()), options))?;
        Ok(Self { path: path.to_path_buf(), metadata, positions })
    }

    fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        self.metadata.metadata().row_groups().iter().enumerate().flat_map(move |(group, meta)| {
            let group_rows = usize::try_from(meta.num_rows()).unwrap_or(0);
            (0..group_rows).step_by(PIECE).map(move |first| Piece {
                file: self,
                group,
                first,
                rows: group_rows.saturating_sub(first).min(PIECE),
                group_rows,
            })
        })
    }
}

impl Piece<'_> {
    /// Reads the piece and hands over its record batches in order.
    fn read(
        self,
        columns: &[usize],
        rows: usize,
        mut see: impl FnMut(&RecordBatch) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let context = self.file.path.display().to_string();
        let file = File::open(&self.file.path).map_err(|e| failed(&context, e))?;
        let roots: Vec<usize> = columns.iter().filter_map(|c| self.file.positions.get(*c)).copied().collect();
        let mask = ProjectionMask::roots(self.file.metadata.parquet_schema(), roots);
        let mut reader = guard(&context, || {
            let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.file.metadata.clone())
                .with_row_groups(vec![self.group])
                .with_batch_size(self.batch_rows(rows, &mask))
                .with_projection(mask);
            if self.rows < self.group_rows {
                let selection = vec![RowSelector::skip(self.first), RowSelector::select(self.rows)];
                builder = builder.with_row_selection(RowSelection::from(selection));
            }
            builder.build()
        })?;
        let mut left = self.rows;
        while let Some(batch) = guard(&context, || reader.next().transpose())? {
            left = left.saturating_sub(batch.num_rows());
            see(&batch)?;
        }
        if left == 0 { Ok(()) } else { Err(damaged(&context, "the file holds fewer rows than its footer says")) }
    }

    /// Rows per batch: as asked, fewer if the needed columns are wide.
    fn batch_rows(&self, rows: usize, mask: &ProjectionMask) -> usize {
        let columns = self.file.metadata.metadata().row_group(self.group).columns().iter().enumerate();
        let bytes = columns
            .filter(|(i, _)| mask.leaf_included(*i))
            .map(|(_, c)| usize::try_from(c.uncompressed_size()).unwrap_or(0))
            .fold(0, usize::saturating_add);
        let width = bytes.checked_div(self.group_rows).unwrap_or(0).max(1);
        rows.min(BATCH_BYTES.checked_div(width).unwrap_or(1)).max(1)
    }
}

/// Reads all files and visits their batches.
pub(crate) fn visit(
    files: &[ParquetFile],
    decoders: &[Decoder],
    (columns, rows, order): (&[usize], usize, Order),
    visit: &(dyn Fn(Batch) + Sync),
) -> Result<(), SourceError> {
    let read = |piece: Piece<'_>| {
        piece.read(columns, rows, |batch| {
            visit(decode(piece.file, batch, decoders, columns)?);
            Ok(())
        })
    };
    let pieces: Vec<Piece<'_>> = files.iter().flat_map(ParquetFile::pieces).collect();
    match order {
        Order::Any => pieces.into_par_iter().try_for_each(read),
        Order::File => pieces.into_iter().try_for_each(read),
    }
}

/// Hands over every record batch of the file with its decoded form, in order.
pub(crate) fn inspect(
    file: &ParquetFile,
    decoders: &[Decoder],
    columns: &[usize],
    mut see: impl FnMut(&RecordBatch, Batch),
) -> Result<(), SourceError> {
    file.pieces().try_for_each(|piece| {
        piece.read(columns, ROWS, |batch| {
            see(batch, decode(file, batch, decoders, columns)?);
            Ok(())
        })
    })
}

fn decode(
    file: &ParquetFile,
    batch: &RecordBatch,
    decoders: &[Decoder],
    columns: &[usize],
) -> Result<Batch, SourceError> {
    let names = file.metadata.schema();
    let at = |c: usize| {
        let field = names.fields().get(*file.positions.get(c)?)?;
        batch.schema_ref().index_of(field.name()).ok()
    };
    let positions: Vec<Option<usize>> = (0..decoders.len()).map(|c| at(c).filter(|_| columns.contains(&c))).collect();
    arrow_batch(batch, &positions, decoders, &file.path.display().to_string())
}

/// Runs the decoder; its errors and, should a damaged file make it panic, its panics become an error.
fn guard<T, E: std::fmt::Display>(context: &str, run: impl FnOnce() -> Result<T, E>) -> Result<T, SourceError> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|e| damaged(context, &e.to_string())),
        Err(_) => Err(damaged(context, "the Parquet decoder gave up: the file is damaged")),
    }
}
