//! Arrow record batches in memory as a row source, and what Arrow columns have in common with Parquet's.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema as ArrowSchema;
use rayon::prelude::*;
use reticent_mechanisms::rows::{Batch, Schema};
use reticent_mechanisms::source::{Order, RowSource, SourceError};

use super::cells::supported;
use super::fields::Field;
use super::parquet::ROWS;
use super::{Layout, asked, damaged, locate};

/// Record batches in memory; their cells mean what the same cells in a Parquet file would mean.
pub struct ArrowBatches {
    layout: Layout,
    fields: Vec<Field>,
    /// Slices of at most [`ROWS`] rows, each with the place of every column.
    batches: Vec<(RecordBatch, Vec<usize>)>,
}

impl ArrowBatches {
    /// A source over the batches; refused if a declared column is absent, doubled or of a nested type.
    pub fn new(batches: &[RecordBatch], layout: Layout) -> Result<Self, SourceError> {
        let fields = layout.fields();
        let mut slices = Vec::new();
        for batch in batches {
            let places = locate_arrow(&fields, batch.schema_ref(), "record batch")?;
            for first in (0..batch.num_rows()).step_by(ROWS) {
                let rows = batch.num_rows().saturating_sub(first).min(ROWS);
                slices.push((batch.slice(first, rows), places.clone()));
            }
        }
        Ok(Self {
            fields,
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
            let asked = asked(&self.fields, places, columns);
            visit(&decode(batch, &asked, &self.fields, "record batch")?);
            Ok(())
        };
        match order {
            Order::Any => self.batches.par_iter().try_for_each(read),
            Order::File => self.batches.iter().try_for_each(read),
        }
    }
}

/// Where each column is in an Arrow schema; refuses types that have no decoding.
pub(super) fn locate_arrow(
    fields: &[Field],
    found: &ArrowSchema,
    context: &str,
) -> Result<Vec<usize>, SourceError> {
    let names: Vec<String> = found.fields().iter().map(|f| f.name().clone()).collect();
    let places = locate(fields, &names, context)?;
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
    fields: &[Field],
    context: &str,
) -> Result<Batch, SourceError> {
    let mut cells = Vec::new();
    for (field, place) in fields.iter().zip(places) {
        match place.and_then(|at| batch.columns().get(at)) {
            Some(array) => {
                let read = field.array(array);
                cells.extend(read.map_err(|e| damaged(context, &e.to_string()))?);
            }
            None => cells.extend(field.unread()),
        }
    }
    Ok(Batch::new(batch.num_rows(), cells))
}
