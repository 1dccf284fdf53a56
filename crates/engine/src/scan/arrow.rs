//! Arrow record batches in memory as a row source.

use std::sync::Arc;

use arrow::array::RecordBatch;
use rayon::prelude::*;
use reticent_mechanisms::rows::{Batch, Schema};
use reticent_mechanisms::source::{Order, RowSource, SourceError};

use super::{Layout, arrow_batch, check_types, decoders, locate, parquet::ROWS};
use crate::scan::cells::Decoder;

/// Record batches in memory; their cells mean what the same cells in a Parquet file would mean.
pub struct ArrowBatches {
    layout: Layout,
    decoders: Vec<Decoder>,
    /// Each batch with the place of every declared column.
    batches: Vec<(RecordBatch, Vec<usize>)>,
}

impl ArrowBatches {
    /// A source over the batches; refused if a declared column is absent, doubled or of a nested type.
    pub fn new(batches: Vec<RecordBatch>, layout: Layout) -> Result<Self, SourceError> {
        let placed = |batch: RecordBatch| {
            let names: Vec<String> = batch.schema_ref().fields().iter().map(|f| f.name().clone()).collect();
            let positions = locate(&layout.schema, &names, "record batch")?;
            check_types(&layout.schema, &positions, batch.schema_ref(), "record batch")?;
            Ok((batch, positions))
        };
        let batches = batches.into_iter().map(placed).collect::<Result<Vec<_>, SourceError>>()?;
        Ok(Self { decoders: decoders(&layout), batches, layout })
    }
}

impl RowSource for ArrowBatches {
    fn schema(&self) -> &Arc<Schema> {
        &self.layout.schema
    }

    fn visit(&self, columns: &[usize], order: Order, visit: &(dyn Fn(Batch) + Sync)) -> Result<(), SourceError> {
        let read = |(batch, positions, first): (&RecordBatch, &Vec<usize>, usize)| {
            let rows = batch.num_rows().saturating_sub(first).min(ROWS);
            let wanted = |(c, p): (usize, &usize)| columns.contains(&c).then_some(*p);
            let places: Vec<Option<usize>> = positions.iter().enumerate().map(wanted).collect();
            visit(arrow_batch(&batch.slice(first, rows), &places, &self.decoders, "record batch")?);
            Ok(())
        };
        let slices = |(batch, positions)| {
            let (batch, positions): (&RecordBatch, &Vec<usize>) = (batch, positions);
            (0..batch.num_rows()).step_by(ROWS).map(move |first| (batch, positions, first))
        };
        let slices: Vec<_> = self.batches.iter().map(|(b, p)| (b, p)).flat_map(slices).collect();
        match order {
            Order::Any => slices.into_par_iter().try_for_each(read),
            Order::File => slices.into_iter().try_for_each(read),
        }
    }
}
