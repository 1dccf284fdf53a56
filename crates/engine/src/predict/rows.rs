//! The rows that are predicted: a CSV file, its cells read as the fit read their like.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use reticent_mechanisms::program::Expr;
use reticent_mechanisms::rows::cell::Meaning;
use reticent_mechanisms::rows::{
    Cells as Decoded, Column, Kind, MISSING_CODE, MISSING_INTEGER, Missing, OTHER_CODE, Schema,
};
use serde_json::Value;

use super::Cells;
use super::blank_lines::{Blank, BlankLines};
use crate::failure::{Error, Failure};
use crate::outcome::Refusal;
use crate::scan::cells;
use crate::suggest;
use crate::text::TextColumn;

/// Records that are read together.
const AT_ONCE: usize = 1024;

/// Where the cells of a record come from.
enum Place {
    /// The declared column, from this field, read as the fit read its like.
    Plain(usize, usize, Meaning),
    /// The slots of a text, from this field.
    Text(TextColumn, Vec<usize>, usize),
}

/// An open CSV file of rows to predict.
pub(super) struct Rows {
    reader: csv::Reader<Box<dyn Read>>,
    path: PathBuf,
    places: Vec<Place>,
    /// The blank line before a row, in a file of one column, where it could be an empty cell as well as nothing.
    blank: Option<Blank>,
}

/// The texts that mean a missing cell, by column; the empty one always does.
pub(super) type MissingValues = BTreeMap<String, Vec<String>>;

/// Those that a model states.
pub(super) fn missing_values(model: &Value) -> MissingValues {
    let stated = model.get("missing_values").cloned();
    stated
        .and_then(|v| serde_json::from_value(v).ok())
        .unwrap_or_default()
}

impl Rows {
    /// Opens the file and finds the columns that the predictor reads.
    pub(super) fn open(
        path: &Path,
        (schema, texts): (&Schema, Vec<TextColumn>),
        predictor: &Expr,
        missing: &MissingValues,
    ) -> Result<Self, Failure> {
        let fail = |source: std::io::Error| unreadable(path, source);
        let file = std::fs::File::open(path).map_err(fail)?;
        let plain: Box<dyn Read> = if path.extension().is_some_and(|e| e == "gz") {
            Box::new(flate2::read::MultiGzDecoder::new(file))
        } else {
            Box::new(file)
        };
        let (plain, blank) = BlankLines::watch(plain);
        // cells are trimmed where they are read: which words of a text count may depend on all of it
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .trim(csv::Trim::Headers)
            .from_reader(Box::new(plain) as Box<dyn Read>);
        let headers: Vec<String> = reader
            .byte_headers()
            .map_err(|e| fail(std::io::Error::other(e)))?
            .iter()
            .map(|h| {
                let bare = h.strip_prefix(b"\xef\xbb\xbf").unwrap_or(h);
                String::from_utf8_lossy(bare).into_owned()
            })
            .collect();
        let mut used = Vec::new();
        predictor.walk(&mut |e| match e {
            Expr::Column(c) | Expr::Code(c) | Expr::Level { column: c, .. } => used.push(*c),
            _ => {}
        });
        used.sort_unstable();
        used.dedup();
        let mut places = Vec::new();
        for text in texts {
            let slot = |i| schema.position(&format!("{}.{i}", text.name));
            let slots: Vec<usize> = (1..=text.most).map_while(slot).collect();
            if slots.iter().any(|s| used.contains(s)) {
                let at = field_of(&text.name, &headers, path)?;
                used.retain(|c| !slots.contains(c));
                places.push(Place::Text(text, slots, at));
            }
        }
        for column in used {
            let Some(declared) = schema.columns.get(column) else {
                continue;
            };
            let at = field_of(&declared.name, &headers, path)?;
            let empty = [String::new()];
            let stated = missing
                .get(&declared.name)
                .map_or(&empty[..], Vec::as_slice);
            places.push(Place::Plain(
                column,
                at,
                Meaning::new(&declared.kind, stated),
            ));
        }
        Ok(Self {
            reader,
            path: path.to_owned(),
            places,
            blank: (headers.len() == 1).then_some(blank),
        })
    }

    /// Hands over every row: its cells, or none if one of them is missing.
    pub(super) fn each(
        mut self,
        schema: &Schema,
        mut see: impl FnMut(Option<&Cells>),
    ) -> Result<(), Failure> {
        let mut records = vec![csv::ByteRecord::new(); AT_ONCE];
        loop {
            let read = self.fill(&mut records)?;
            let records = records.get(..read).unwrap_or_default();
            let columns: Vec<Option<Vec<Option<f64>>>> = (self.places.iter())
                .map(|place| match place {
                    Place::Plain(column, at, meaning) => {
                        let cells = cells::texts(meaning, records.iter().map(|r| r.get(*at)));
                        Some(numbers(schema.columns.get(*column)?, cells))
                    }
                    Place::Text(..) => None,
                })
                .collect();
            for (i, record) in records.iter().enumerate() {
                let mut cells = Cells::new();
                let mut complete = true;
                for (place, numbers) in self.places.iter().zip(&columns) {
                    match place {
                        Place::Plain(column, ..) => {
                            let number = numbers.as_ref().and_then(|n| n.get(i).copied().flatten());
                            match number {
                                Some(x) => drop(cells.insert(*column, x)),
                                None => complete = false,
                            }
                        }
                        Place::Text(text, to, at) => {
                            let cell = record.get(*at).unwrap_or(b"");
                            let words = text.slots(cell);
                            #[allow(
                                clippy::cast_precision_loss,
                                reason = "numbers of words are below 2^21"
                            )]
                            cells.extend(to.iter().copied().zip(words.map(|w| w as f64)));
                        }
                    }
                }
                see(complete.then_some(&cells));
            }
            if read < AT_ONCE {
                return Ok(());
            }
        }
    }

    /// Reads records as long as there are any; gives their number.
    fn fill(&mut self, records: &mut [csv::ByteRecord]) -> Result<usize, Failure> {
        for (i, record) in records.iter_mut().enumerate() {
            let more = self.reader.read_byte_record(record);
            if !more.map_err(|e| unreadable(&self.path, std::io::Error::other(e)))? {
                return Ok(i);
            }
            if let Some(line) = self.blank.as_ref().and_then(|b| b.get()) {
                return Err(Refusal::request(
                    "a blank line before a row: an empty cell, or nothing?",
                )
                .in_file(&self.path)
                .at_line(line)
                .accepting("Write \"\" where a cell is empty, or delete the line.")
                .into());
            }
        }
        Ok(records.len())
    }
}

fn unreadable(path: &Path, source: std::io::Error) -> Failure {
    Error::File {
        path: path.to_owned(),
        what: "the rows cannot be read",
        source,
    }
    .into()
}

/// The field of the file that a column of the model is in.
fn field_of(name: &str, headers: &[String], path: &Path) -> Result<usize, Refusal> {
    let refuse = |what: String| Refusal::request(what).in_file(path).at_line(1);
    let mut found = headers.iter().enumerate().filter(|h| h.1 == name);
    match (found.next(), found.next()) {
        (Some((at, _)), None) => Ok(at),
        (Some(_), Some(_)) => {
            Err(refuse(format!("the column {name} is there twice"))
                .accepting("Rename one of the two."))
        }
        (None, _) => {
            let known: Vec<&str> = headers.iter().map(String::as_str).collect();
            Err(
                refuse(format!("there is no column {name}, which the model needs"))
                    .accepting(suggest::advice(name, &known)),
            )
        }
    }
}

/// Cells as the model saw their like: clamped, or the level's index; `None` if missing or undeclared.
#[allow(
    clippy::cast_precision_loss,
    reason = "bounds are at most 2^53 and levels few"
)]
pub(super) fn numbers(column: &Column, cells: Decoded) -> Vec<Option<f64>> {
    let (imputed, bounds, other) = (
        match column.missing {
            Missing::Impute(x) => Some(x),
            Missing::Drop => None,
        },
        match &column.kind {
            Kind::Integer { lower, upper } => (*lower as f64, *upper as f64),
            Kind::Real { lower, upper } => (*lower, *upper),
            Kind::Levels { levels, .. } => (0.0, levels.len().saturating_sub(1) as f64),
            Kind::Id => (0.0, 0.0),
        },
        match &column.kind {
            Kind::Levels { other, .. } => other.map(f64::from),
            _ => None,
        },
    );
    let into = |x: Option<f64>| x.or(imputed).map(|x| x.clamp(bounds.0, bounds.1));
    match cells {
        Decoded::Integer(all) => (all.into_iter())
            .map(|x| into((x != MISSING_INTEGER).then_some(x as f64)))
            .collect(),
        Decoded::Real(all) => (all.into_iter())
            .map(|x| into((!x.is_nan()).then_some(x)))
            .collect(),
        Decoded::Code(all) => (all.into_iter())
            .map(|x| match x {
                OTHER_CODE => other,
                x => into((x != MISSING_CODE).then_some(f64::from(x))),
            })
            .collect(),
        Decoded::Id(_) | Decoded::Unread => Vec::new(),
    }
}
