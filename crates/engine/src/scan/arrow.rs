//! Arrow record batches in memory as a row source, and what Arrow columns have in common with Parquet's.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema as ArrowSchema;
use rayon::prelude::*;
use reticent_mechanisms::rows::{Batch, Cells, Schema};
use reticent_mechanisms::source::{Order, RowSource, SourceError};

use super::cells::{Decoder, supported};
use super::parquet::ROWS;
use super::{Layout, damaged, locate};

/// Record batches in memory; their cells mean what the same cells in a Parquet file would mean.
pub struct ArrowBatches {
    layout: Layout,
    decoders: Vec<Decoder>,
    /// Slices of at most [`ROWS`] rows, each with the place of every declared column.
    batches: Vec<(RecordBatch, Vec<usize>)>,
}

impl ArrowBatches {
    /// A source over the batches; refused if a declared column is absent, doubled or of a nested type.
    pub fn new(batches: &[RecordBatch], layout: Layout) -> Result<Self, SourceError> {
        let mut slices = Vec::new();
        for batch in batches {
            let places = locate_arrow(&layout.schema, batch.schema_ref(), "record batch")?;
            for first in (0..batch.num_rows()).step_by(ROWS) {
                let rows = batch.num_rows().saturating_sub(first).min(ROWS);
                slices.push((batch.slice(first, rows), places.clone()));
            }
        }
        Ok(Self {
            decoders: layout.decoders(),
            batches: slices,
            layout,
        })
    }
}

impl RowSource for ArrowBatches {
    fn schema(&self) -> &Arc<Schema> {
        &self.layout.schema
    }

    fn visit(
        &self,
        columns: &[usize],
        order: Order,
        visit: &(dyn Fn(&Batch) + Sync),
    ) -> Result<(), SourceError> {
        let read = |(batch, places): &(RecordBatch, Vec<usize>)| {
            let asked = |(c, place): (usize, &usize)| columns.contains(&c).then_some(*place);
            let places: Vec<_> = places.iter().enumerate().map(asked).collect();
            visit(&decode(batch, &places, &self.decoders, "record batch")?);
            Ok(())
        };
        match order {
            Order::Any => self.batches.par_iter().try_for_each(read),
            Order::File => self.batches.iter().try_for_each(read),
        }
    }
}

/// Where each declared column is in an Arrow schema; refuses types that have no decoding.
pub(super) fn locate_arrow(
    schema: &Schema,
    found: &ArrowSchema,
    context: &str,
) -> Result<Vec<usize>, SourceError> {
    let names: Vec<String> = found.fields().iter().map(|f| f.name().clone()).collect();
    let places = locate(schema, &names, context)?;
    for field in places.iter().filter_map(|p| found.fields().get(*p)) {
        if !supported(field.data_type()) {
            let (name, kind) = (field.name(), field.data_type());
            let what = format!("column `{name}`: {kind} is neither number, text, Boolean nor date");
            return Err(damaged(context, &what));
        }
    }
    Ok(places)
}

/// Decodes the columns at these places of a record batch.
pub(super) fn decode(
    batch: &RecordBatch,
    places: &[Option<usize>],
    decoders: &[Decoder],
    context: &str,
) -> Result<Batch, SourceError> {
    let array = |place: &Option<usize>| batch.columns().get((*place)?);
    let cells = decoders
        .iter()
        .zip(places)
        .map(|(decoder, place)| match array(place) {
            Some(array) => decoder
                .array(array)
                .map_err(|e| damaged(context, &e.to_string())),
            None => Ok(Cells::Unread),
        });
    Ok(Batch::new(
        batch.num_rows(),
        cells.collect::<Result<_, _>>()?,
    ))
}
