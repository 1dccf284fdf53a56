//! TOML with line numbers: typed access to keys, so that every refusal names its place.
//!
//! A [`Section`] is one table. The parsers of `dataset.toml` and `plan.toml` take values out of it by
//! name; [`Section::finish`] refuses whatever keys nobody asked for. Numbers may be written as TOML
//! numbers or as strings, and are kept as the text that was written, so decimals stay exact.

use std::path::Path;

use reticent_accounting::{Rational, format_rational, parse_rational, rational_to_f64};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::outcome::Refusal;
use crate::suggest;

/// Texts longer than this are no configuration.
const LONGEST: usize = 16 << 20;

/// A file being read.
pub(crate) struct Document<'a> {
    file: &'a Path,
    /// Where lines end.
    ends: Vec<usize>,
}

/// Parses a document and hands its top table to `read`.
pub(crate) fn read<T>(
    text: &str,
    file: &Path,
    read: impl FnOnce(&mut Section<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let ends = text.match_indices('\n').map(|(at, _)| at).collect();
    let document = Document { file, ends };
    if text.len() > LONGEST {
        return Err(Refusal::request(
            "the file is larger than 16 MB, which no configuration file is",
        )
        .in_file(file));
    }
    let table = DeTable::parse(text).map_err(|e| {
        let line = e.span().map_or(1, |s| document.line(s.start));
        Refusal::request(format!("not valid TOML: {}", e.message().trim_end()))
            .in_file(file)
            .at_line(line)
    })?;
    let mut section = Section::new(&document, String::new(), 1, table.get_ref());
    read(&mut section)
}

/// Reads a text file, refusing what is not there or not UTF-8.
pub(crate) fn load(path: &Path) -> Result<String, Refusal> {
    // a pipe or a device would be waited for without end
    let bytes = std::fs::metadata(path).and_then(|facts| {
        if facts.is_file() {
            std::fs::read(path)
        } else {
            Err(std::io::Error::other("it is not a regular file"))
        }
    });
    let bytes = bytes.map_err(|e| {
        Refusal::request(format!("the file cannot be read: {e}"))
            .in_file(path)
            .accepting("Check the path; `reticent init` writes a skeleton.")
    })?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let line = e
            .as_bytes()
            .iter()
            .take(e.utf8_error().valid_up_to())
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        Refusal::request("the file is not UTF-8 text")
            .in_file(path)
            .at_line(u32::try_from(line).unwrap_or(u32::MAX))
            .accepting("Save it as UTF-8.")
    })?;
    Ok(text
        .strip_prefix('\u{feff}')
        .map_or_else(|| text.clone(), str::to_owned))
}

impl Document<'_> {
    fn line(&self, offset: usize) -> u32 {
        let before = self.ends.partition_point(|end| *end < offset);
        u32::try_from(before.saturating_add(1)).unwrap_or(u32::MAX)
    }
}

/// One value with its place.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    document: &'a Document<'a>,
    path: &'a str,
    line: u32,
    value: &'a DeValue<'a>,
}

/// One table with its place, and the keys that were asked for so far.
pub(crate) struct Section<'a> {
    document: &'a Document<'a>,
    path: String,
    /// Line of the table's header.
    pub(crate) line: u32,
    entries: Vec<Entry<'a>>,
    known: Vec<&'static str>,
}

struct Entry<'a> {
    name: &'a str,
    path: String,
    line: u32,
    value: &'a DeValue<'a>,
    asked: bool,
}

impl<'a> Section<'a> {
    fn new(document: &'a Document<'a>, path: String, line: u32, table: &'a DeTable<'a>) -> Self {
        let mut keys: Vec<(&Spanned<_>, &Spanned<DeValue<'a>>)> = table.iter().collect();
        // The order of the file: the map itself is sorted by name.
        keys.sort_by_key(|(k, _)| k.span().start);
        let entries = keys
            .into_iter()
            .map(|(key, value)| {
                let name: &str = key.get_ref();
                let full = if path.is_empty() {
                    name.to_owned()
                } else {
                    format!("{path}.{name}")
                };
                Entry {
                    name,
                    path: full,
                    line: document.line(key.span().start),
                    value: value.get_ref(),
                    asked: false,
                }
            })
            .collect();
        Self {
            document,
            path,
            line,
            entries,
            known: Vec::new(),
        }
    }

    /// The value of a key, if present.
    pub(crate) fn get(&mut self, key: &'static str) -> Option<Item<'_>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        let entry = self.entries.iter_mut().find(|e| e.name == key)?;
        entry.asked = true;
        Some(Item {
            document: self.document,
            path: &entry.path,
            line: entry.line,
            value: entry.value,
        })
    }

    /// The value of a key that must be there.
    pub(crate) fn need(&mut self, key: &'static str, fix: &str) -> Result<Item<'_>, Refusal> {
        if self.entries.iter().any(|e| e.name == key) {
            return self.get(key).ok_or_else(|| unreachable_key(key));
        }
        Err(self
            .refuse(format!("the key `{key}` is missing"))
            .accepting(fix))
    }

    /// All entries in file order, whatever their names.
    pub(crate) fn all(&mut self) -> Vec<(String, Item<'_>)> {
        let document = self.document;
        self.entries
            .iter_mut()
            .map(|e| {
                e.asked = true;
                (
                    e.name.to_owned(),
                    Item {
                        document,
                        path: &e.path,
                        line: e.line,
                        value: e.value,
                    },
                )
            })
            .collect()
    }

    /// Line of a key, or of the table when the key is absent.
    pub(crate) fn line_of(&self, key: &str) -> u32 {
        self.entries
            .iter()
            .find(|e| e.name == key)
            .map_or(self.line, |e| e.line)
    }

    /// A refusal that concerns the table.
    pub(crate) fn refuse(&self, message: impl Into<String>) -> Refusal {
        let refusal = Refusal::request(message)
            .in_file(self.document.file)
            .at_line(self.line);
        if self.path.is_empty() {
            refusal
        } else {
            refusal.for_key(&self.path)
        }
    }

    /// Refuses keys that nobody asked for, naming the nearest known one.
    pub(crate) fn finish(&self) -> Result<(), Refusal> {
        match self.entries.iter().find(|e| !e.asked) {
            None => Ok(()),
            Some(unknown) => Err(Refusal::request("unknown key")
                .in_file(self.document.file)
                .at_line(unknown.line)
                .for_key(&unknown.path)
                .accepting(suggest::advice(unknown.name, &self.known))),
        }
    }
}

fn unreachable_key(key: &str) -> Refusal {
    Refusal::request(format!("the key `{key}` is missing"))
}

impl<'a> Item<'a> {
    /// The line.
    pub(crate) fn line(&self) -> u32 {
        self.line
    }

    /// A refusal of this value.
    pub(crate) fn refuse(&self, message: impl Into<String>) -> Refusal {
        Refusal::request(message)
            .in_file(self.document.file)
            .at_line(self.line)
            .for_key(self.path)
            .with_value(shown(self.value))
    }

    fn expected(&self, what: &str, fix: &str) -> Refusal {
        self.refuse(format!("expected {what}, found {}", kind(self.value)))
            .accepting(fix)
    }

    /// The table behind this value.
    pub(crate) fn section(&self, fix: &str) -> Result<Section<'a>, Refusal> {
        match self.value {
            DeValue::Table(t) => Ok(Section::new(
                self.document,
                self.path.to_owned(),
                self.line,
                t,
            )),
            _ => Err(self.expected("a table", fix)),
        }
    }

    /// Whether the value is a table.
    pub(crate) fn is_table(&self) -> bool {
        matches!(self.value, DeValue::Table(_))
    }

    /// Whether the value is a list.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.value, DeValue::Array(_))
    }

    /// The elements of a list.
    pub(crate) fn list(&self, fix: &str) -> Result<Vec<Item<'a>>, Refusal>
    where
        Self: 'a,
    {
        match self.value {
            DeValue::Array(elements) => Ok(elements
                .iter()
                .map(|e| Item {
                    document: self.document,
                    path: self.path,
                    line: self.document.line(e.span().start),
                    value: e.get_ref(),
                })
                .collect()),
            _ => Err(self.expected("a list", fix)),
        }
    }

    /// A text.
    pub(crate) fn text(&self, fix: &str) -> Result<&'a str, Refusal> {
        match self.value {
            DeValue::String(s) => Ok(s),
            _ => Err(self.expected("a text in quotes", fix)),
        }
    }

    /// A text or the text of a number or truth value: names of levels may look like either.
    pub(crate) fn name(&self, fix: &str) -> Result<String, Refusal> {
        match self.value {
            DeValue::String(s) => Ok(s.to_string()),
            DeValue::Integer(i) => Ok(i.to_string()),
            DeValue::Float(x) => Ok(x.to_string()),
            DeValue::Boolean(b) => Ok(b.to_string()),
            _ => Err(self.expected("a text", fix)),
        }
    }

    /// One of a list of words.
    pub(crate) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Refusal> {
        let names: Vec<&str> = words.iter().map(|w| w.0).collect();
        let fix = format!("Write one of {}.", quoted(&names));
        let text = self.text(&fix)?;
        words
            .iter()
            .find(|w| w.0 == text)
            .map(|w| w.1)
            .ok_or_else(|| {
                let fix = match suggest::nearest(text, names.iter().copied()) {
                    Some(near) => format!("Did you mean \"{near}\"? {fix}"),
                    None => fix,
                };
                self.refuse("not a word that is known here").accepting(fix)
            })
    }

    /// true or false.
    pub(crate) fn truth(&self) -> Result<bool, Refusal> {
        match self.value {
            DeValue::Boolean(b) => Ok(*b),
            _ => Err(self.expected("true or false", "Write true or false without quotes.")),
        }
    }

    /// A number, exactly; written as a number or as a text such as "0.1" or "1/3".
    pub(crate) fn rational(&self, fix: &str) -> Result<Rational, Refusal> {
        let text = match self.value {
            DeValue::String(s) => s.trim().to_owned(),
            DeValue::Integer(i) if i.radix() == 10 => i.as_str().to_owned(),
            DeValue::Integer(i) => match i128::from_str_radix(i.as_str(), i.radix()) {
                Ok(n) => n.to_string(),
                Err(_) => return Err(self.refuse("the number is too large").accepting(fix)),
            },
            DeValue::Float(x) => x.as_str().to_owned(),
            _ => return Err(self.expected("a number", fix)),
        };
        parse_rational(&text).map_err(|_| self.refuse("not a finite number").accepting(fix))
    }

    /// A finite number as a double, with the exact value.
    pub(crate) fn real(&self, fix: &str) -> Result<f64, Refusal> {
        let value = rational_to_f64(&self.rational(fix)?);
        if value.is_finite() {
            Ok(value)
        } else {
            Err(self.refuse("the number is too large").accepting(fix))
        }
    }

    /// A whole number in a range.
    pub(crate) fn integer(&self, lowest: i64, highest: i64, fix: &str) -> Result<i64, Refusal> {
        let value = self.rational(fix)?;
        let whole = format_rational(&value).parse::<i64>();
        match whole {
            Ok(n) if (lowest..=highest).contains(&n) => Ok(n),
            Ok(_) if highest == i64::MAX => Err(self
                .refuse(format!("must be at least {lowest}"))
                .accepting(fix)),
            Ok(_) => Err(self
                .refuse(format!("must be between {lowest} and {highest}"))
                .accepting(fix)),
            Err(_) => Err(self
                .refuse("must be a whole number of ordinary size")
                .accepting(fix)),
        }
    }

    /// A count from `lowest`.
    pub(crate) fn count(&self, lowest: u32, highest: u32, fix: &str) -> Result<u32, Refusal> {
        let n = self.integer(i64::from(lowest), i64::from(highest), fix)?;
        u32::try_from(n).map_err(|_| self.refuse("out of range").accepting(fix))
    }
}

/// `"a", "b" or "c"`.
pub(crate) fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|w| format!("\"{w}\"")).collect();
    match words.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} or {last}", first.join(", ")),
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a truth value",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(s) => format!("\"{s}\""),
        DeValue::Integer(i) => i.to_string(),
        DeValue::Float(x) => x.to_string(),
        DeValue::Boolean(b) => b.to_string(),
        DeValue::Datetime(d) => d.to_string(),
        DeValue::Array(elements) => {
            let shown: Vec<String> = elements
                .iter()
                .take(8)
                .map(|e| shown_flat(e.get_ref()))
                .collect();
            let more = if elements.len() > 8 { ", …" } else { "" };
            format!("[{}{more}]", shown.join(", "))
        }
        DeValue::Table(_) => "{…}".to_owned(),
    }
}

fn shown_flat(value: &DeValue<'_>) -> String {
    match value {
        DeValue::Array(_) => "[…]".to_owned(),
        other => shown(other),
    }
}
