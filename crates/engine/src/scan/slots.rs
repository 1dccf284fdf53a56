//! Columns of type `tokens`: a text column of the files becomes whole-number columns, its slots, before the door sees it.
//!
//! `Expanded` is the row source: the scanner reads the files with the text as an identifier, and every record's
//! text is replaced by the numbers of its words (`name.1`, `name.2`, …; the number of words stands for "none").
//!
//! It holds no state; texts longer than [`FIELD_CAP`] bytes are cut, so memory is a block per thread.
//!
//! # Claim
//! Every record of the files is handed over exactly once as one row; its slots are a function of its own text and of
//! public declarations; no text fails. So adding, removing or replacing a record does the same to one row.
//! # Assumptions
//! Those of [`crate::scan`] and [`crate::text`], which says what a text becomes and is called with that text alone; the
//! declaration is that of registration (`books` compares a digest).
//! # Checked by
//! `tokens::tests::{slots_depend_on_the_record_alone, csv_and_parquet_agree, odd_texts_never_fail}`

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use rayon::prelude::*;
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::{Order, RowSource, SourceError};

use super::{FIELD_CAP, Files, Format, csv, parquet};
use crate::text::TextColumn;
use crate::tokens::Tokens;

/// A column of the files.
enum Place {
    /// As it is, at this position of the schema.
    Plain(usize),
    /// The text of `tokens[i]`.
    Text(usize),
}

/// The columns of the files, in schema order: of the slots of a text only the text.
fn places(schema: &Schema, tokens: &[Tokens]) -> Vec<Place> {
    let mut places = Vec::new();
    for at in 0..schema.columns.len() {
        match tokens.iter().position(|t| t.slots().contains(&at)) {
            None => places.push(Place::Plain(at)),
            Some(i) if tokens.get(i).is_some_and(|t| t.first == at) => places.push(Place::Text(i)),
            Some(_) => {}
        }
    }
    places
}

/// What the scanner takes for the declared columns: texts are identifiers to it. With each, its place in the schema;
/// none for a text.
pub(crate) fn of_files(schema: &Schema, tokens: &[Tokens]) -> Vec<(Column, Option<usize>)> {
    let column = |place| match place {
        Place::Plain(at) => Some((schema.columns.get(at)?.clone(), Some(at))),
        Place::Text(i) => Some((
            Column {
                name: tokens.get(i)?.column.name.clone(),
                kind: Kind::Id,
                missing: Missing::Drop,
            },
            None,
        )),
    };
    places(schema, tokens)
        .into_iter()
        .filter_map(column)
        .collect()
}

/// Files whose texts become slots.
struct Expanded {
    files: Files,
    schema: Arc<Schema>,
    tokens: Vec<Tokens>,
    places: Vec<Place>,
}

/// The files as the door takes them: as they are without `tokens` columns, else with slots in place of texts.
pub(crate) fn source(files: Files, schema: &Arc<Schema>, tokens: &[Tokens]) -> Box<dyn RowSource> {
    if tokens.is_empty() {
        return Box::new(files);
    }
    Box::new(Expanded {
        files,
        schema: schema.clone(),
        tokens: tokens.to_vec(),
        places: places(schema, tokens),
    })
}

impl Expanded {
    /// The rows of a batch: cells of plain columns as decoded, slots from the texts.
    fn expand<'t>(
        &self,
        read: &Batch,
        text: impl Fn(usize, usize) -> &'t [u8],
        wanted: &[usize],
    ) -> Batch {
        let rows = read.rows();
        let mut cells: Vec<Cells> = self.schema.columns.iter().map(|_| Cells::Unread).collect();
        for (at, place) in self.places.iter().enumerate() {
            match place {
                Place::Plain(to) => {
                    if let Some(cell) = cells.get_mut(*to) {
                        *cell = read.column(at).clone();
                    }
                }
                Place::Text(i) if wanted.contains(&at) => {
                    let Some(tokens) = self.tokens.get(*i) else {
                        continue;
                    };
                    let slots = slots(&tokens.column, (0..rows).map(|row| text(row, at)));
                    for (to, slot) in tokens.slots().zip(slots) {
                        if let Some(cell) = cells.get_mut(to) {
                            *cell = Cells::Integer(slot);
                        }
                    }
                }
                Place::Text(_) => {}
            }
        }
        Batch::new(rows, cells)
    }

    /// Columns of the files from which these columns of the schema come.
    fn wanted(&self, columns: &[usize]) -> Vec<usize> {
        let needed = |place: &Place| match place {
            Place::Plain(at) => columns.contains(at),
            Place::Text(i) => self
                .tokens
                .get(*i)
                .is_some_and(|t| columns.iter().any(|c| t.slots().contains(c))),
        };
        let each = self.places.iter().enumerate();
        each.filter(|(_, p)| needed(p)).map(|(at, _)| at).collect()
    }

    fn csv(
        &self,
        wanted: &[usize],
        order: Order,
        visit: &(dyn Fn(&Batch) + Sync),
    ) -> Result<(), SourceError> {
        let work = |(block, places): &(csv::Block, Arc<csv::Wanted>)| {
            let read = places.decode(block, &self.files.decoders);
            let text = |row, at| places.raw(block, row, at);
            visit(&self.expand(&read, text, wanted));
        };
        // As many blocks at a time as keep every thread busy; all of them are done before the next are read.
        let most = match order {
            Order::File => 1,
            Order::Any => rayon::current_num_threads().saturating_mul(2),
        };
        for path in &self.files.paths {
            let mut held: Vec<(csv::Block, Arc<csv::Wanted>)> = Vec::new();
            csv::Reader::open(path)?.blocks(
                self.files.schema(),
                (wanted, csv::ROWS),
                |block, places| {
                    held.push((block, Arc::clone(places)));
                    if held.len() < most {
                        return Some(csv::Block::default());
                    }
                    held.par_iter().for_each(work);
                    let spare = held.pop().map(|h| h.0);
                    held.clear();
                    Some(spare.unwrap_or_default())
                },
            )?;
            held.par_iter().for_each(work);
        }
        Ok(())
    }

    fn parquet(
        &self,
        wanted: &[usize],
        order: Order,
        visit: &(dyn Fn(&Batch) + Sync),
    ) -> Result<(), SourceError> {
        let read = |piece: parquet::Piece<'_>| {
            piece.read(
                wanted,
                parquet::ROWS,
                &self.files.decoders,
                |stored, batch| {
                    let arrays: Vec<Option<ArrayRef>> = (0..self.places.len())
                        .map(|at| self.stored(stored, at))
                        .collect();
                    let text = |row: usize, at: usize| {
                        let array = arrays.get(at).and_then(Option::as_ref);
                        array
                            .and_then(|a| a.as_binary_opt::<i64>())
                            .filter(|a| a.is_valid(row))
                            .map_or(&[][..], |a| a.value(row))
                    };
                    visit(&self.expand(&batch, text, wanted));
                },
            )
        };
        let pieces: Vec<parquet::Piece<'_>> = self
            .files
            .parquet
            .iter()
            .flat_map(parquet::ParquetFile::pieces)
            .collect();
        match order {
            Order::Any => pieces.into_par_iter().try_for_each(read),
            Order::File => pieces.into_iter().try_for_each(read),
        }
    }

    /// The bytes of a text column of a record batch; what is no text is taken as it is written in decimal.
    fn stored(&self, batch: &RecordBatch, at: usize) -> Option<ArrayRef> {
        if !matches!(self.places.get(at)?, Place::Text(_)) {
            return None;
        }
        let name = self.files.schema().columns.get(at)?.name.trim();
        let fields = batch.schema_ref().fields();
        let place = fields.iter().position(|f| f.name().trim() == name)?;
        let array = batch.columns().get(place)?;
        let bytes = |a: &ArrayRef| cast(a, &DataType::LargeBinary).ok();
        bytes(array)
            .filter(|_| !array.data_type().is_numeric())
            .or_else(|| {
                let text = cast(array, &DataType::LargeUtf8).ok()?;
                bytes(&text)
            })
    }
}

/// The slots of texts, slot by slot.
pub(crate) fn slots<'t>(
    column: &TextColumn,
    texts: impl Iterator<Item = &'t [u8]>,
) -> Vec<Vec<i64>> {
    let none = i64::from(column.vocabulary.len());
    let mut slots: Vec<Vec<i64>> = vec![Vec::with_capacity(texts.size_hint().0); column.most];
    for bytes in texts {
        let cut = bytes.get(..=FIELD_CAP).unwrap_or(bytes);
        let words = column.encode(&String::from_utf8_lossy(cut));
        let mut words = words.into_iter().map(i64::from);
        for slot in &mut slots {
            slot.push(words.next().unwrap_or(none));
        }
    }
    slots
}

impl RowSource for Expanded {
    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn visit(
        &self,
        columns: &[usize],
        order: Order,
        visit: &(dyn Fn(&Batch) + Sync),
    ) -> Result<(), SourceError> {
        let wanted = self.wanted(columns);
        match self.files.format {
            Format::Csv => self.csv(&wanted, order, visit),
            Format::Parquet => self.parquet(&wanted, order, visit),
        }
    }
}
