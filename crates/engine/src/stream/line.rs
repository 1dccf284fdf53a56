//! What a line of the events says.

use std::borrow::Cow;

use super::config::Source;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub time: i64,
    /// Where.
    pub state: String,
    /// Whose.
    pub unit: Option<Vec<u8>>,
    /// How many, of different units.
    pub count: i64,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// Something happened.
    Event(Event),
    /// It is this late, says the producer; no event.
    Mark(i64),
}

/// A line that is no event, and why; for the curator only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// What is wrong.
    pub why: &'static str,
    /// The line.
    pub line: String,
}

impl Bad {
    pub(super) fn too_long() -> Self {
        Self {
            why: "longer than 1 MB",
            line: String::new(),
        }
    }
}

/// What is known of the header of a file of CSV.
///
/// It is the first line with something on it, but for remarks (`#`); if that names other fields the file has none. A later line never is one:
/// an event that reads like a header must not decide about those behind it.
pub(super) enum Header {
    Unread,
    None,
    Columns(Columns),
}

impl Header {
    /// After a line with something on it.
    pub(super) fn of(source: &Source, line: &str) -> Self {
        if line.trim_start_matches('\u{feff}').starts_with('#') {
            return Self::Unread;
        }
        let found = split(line).and_then(|fields| columns(source, &fields));
        found.map_or(Self::None, Self::Columns)
    }

    /// After a line that cannot be read.
    pub(super) fn none(&mut self) {
        if matches!(self, Self::Unread) {
            *self = Self::None;
        }
    }
}

/// Which column holds what.
pub(super) struct Columns {
    time: usize,
    state: usize,
    unit: Option<usize>,
    count: Option<usize>,
}

/// What a line of JSON says.
pub(super) fn json(source: &Source, line: &str) -> Result<Row, &'static str> {
    let line = line.trim_start_matches('\u{feff}');
    let value: serde_json::Value = serde_json::from_str(line).map_err(|_| "not JSON")?;
    let text = |key: &str| match value.get(key) {
        Some(serde_json::Value::String(s)) => Some(Cow::Borrowed(s.as_str())),
        Some(v @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => {
            Some(Cow::Owned(v.to_string()))
        }
        _ => None,
    };
    // other numbers were rounded when they were read: different names would become one
    let exact = |key: &str| match value.get(key) {
        Some(serde_json::Value::Number(n)) if n.is_f64() => {
            Err("a state or unit that is a number is whole and below 2^64, or written as text")
        }
        _ => Ok(text(key)),
    };
    row(
        source,
        text(&source.time).as_deref(),
        exact(&source.state)?.as_deref(),
        match &source.unit {
            None => Field::Undeclared,
            Some(unit) => Field::of(exact(unit)?),
        },
        source
            .count
            .as_ref()
            .map_or(Field::Undeclared, |c| Field::of(text(c))),
    )
}

/// Fields of a line of CSV: commas, double quotes. None if the line is more than one record (a field with a line break inside is
/// not supported, and a carriage return alone ends no line).
pub(super) fn split(line: &str) -> Option<Vec<Cow<'_, str>>> {
    if plain(line) {
        return Some(line.split(',').map(Cow::Borrowed).collect());
    }
    by_reader(line)
}

/// The same of any line.
fn by_reader(line: &str) -> Option<Vec<Cow<'_, str>>> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(line.as_bytes());
    let mut record = csv::StringRecord::new();
    let first = reader.read_record(&mut record);
    let fields = record.iter().map(|f| Cow::Owned(f.to_owned())).collect();
    match (first, reader.read_record(&mut record)) {
        (Ok(true), Ok(false)) => Some(fields),
        _ => None,
    }
}

/// Whether only commas mean anything in a line: no quotes, no line breaks, no mark of the byte order (which is cut off) before it,
/// and something is in it.
fn plain(line: &str) -> bool {
    let special = |b: u8| matches!(b, b'"' | b'\r' | b'\n');
    !line.is_empty() && !line.starts_with('\u{feff}') && !line.bytes().any(special)
}

fn columns(source: &Source, header: &[Cow<'_, str>]) -> Option<Columns> {
    let find = |name: &String| header.iter().position(|h| h.trim() == name);
    Some(Columns {
        time: find(&source.time)?,
        state: find(&source.state)?,
        unit: match &source.unit {
            None => None,
            Some(unit) => Some(find(unit)?),
        },
        count: match &source.count {
            None => None,
            Some(count) => Some(find(count)?),
        },
    })
}

pub(super) fn from_fields(
    source: &Source,
    columns: &Columns,
    fields: &[Cow<'_, str>],
) -> Result<Row, &'static str> {
    let get = |i: usize| fields.get(i).map(AsRef::as_ref);
    let of = |i: usize| Field::of(get(i).map(Cow::Borrowed));
    row(
        source,
        get(columns.time),
        get(columns.state),
        columns.unit.map_or(Field::Undeclared, of),
        columns.count.map_or(Field::Undeclared, of),
    )
}

/// A field: not declared, declared and missing (or empty), or there.
enum Field<'a> {
    Undeclared,
    Missing,
    Text(Cow<'a, str>),
}

impl<'a> Field<'a> {
    fn of(text: Option<Cow<'a, str>>) -> Self {
        text.filter(|t| !t.trim().is_empty())
            .map_or(Self::Missing, Self::Text)
    }
}

/// Counts above this are cut to it, so that one event more or less changes a count by at most one.
const MOST: i64 = 1 << 40;

/// A number of events, from 0 on.
fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    match text.parse::<i64>() {
        Ok(count) => (count >= 0).then_some(count.min(MOST)),
        Err(_) => (text.parse::<f64>().ok()? >= MOST as f64).then_some(MOST),
    }
}

fn row(
    source: &Source,
    time: Option<&str>,
    state: Option<&str>,
    unit: Field<'_>,
    count: Field<'_>,
) -> Result<Row, &'static str> {
    let time = time
        .and_then(|t| t.trim().parse::<i64>().ok())
        .ok_or("the time is not a whole number")?;
    let state = state.ok_or("there is no state")?;
    if source.mark.as_deref() == Some(state.trim()) {
        return Ok(Row::Mark(time));
    }
    let unit = match unit {
        Field::Undeclared => None,
        // many people without a name must not pass for one person, whose first event alone counts
        Field::Missing => return Err("there is no unit"),
        Field::Text(unit) => Some(unit.trim().as_bytes().to_vec()),
    };
    let count = match count {
        Field::Undeclared => Some(1),
        Field::Missing => None,
        Field::Text(count) => number(&count),
    };
    Ok(Row::Event(Event {
        time,
        state: state.trim().to_owned(),
        unit,
        count: count.ok_or("the count is not a whole number from 0 on")?,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// Lines with nothing special in them are split as the CSV reader splits them; all others go to it.
        #[test]
        fn plain_lines_are_split_as_csv(
            line in "\u{feff}?([a-c0-9 ,]|[,\"\r\n\t\0;'\\\\#]|[\u{feff}\u{a0}é𝄞]){0,12}",
            plainer in "[ab,; 0-9é\t]{0,12}",
        ) {
            for line in [&line, &plainer] {
                prop_assert_eq!(split(line), by_reader(line), "{:?}", line);
            }
        }
    }

    /// What is special is seen to be so, wherever it is.
    #[test]
    fn special_lines_are_not_plain() {
        for line in ["", "\u{feff}a,b", "a,\"b\"", "a\rb", "a\nb", "a,b\""] {
            assert!(!plain(line), "{line:?}");
        }
        for line in [" ", ",", "a,\u{feff}b", "1,s0,é"] {
            assert!(plain(line), "{line:?}");
        }
    }
}
