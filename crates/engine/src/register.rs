//! Registration: the one time a whole table is read cell by cell, for its curator's eyes.
//!
//! Everything reported here is about individual rows and exists nowhere else; none of it may be stored
//! or shown to an analyst. What is kept afterwards is a key and a keyed fingerprint of the files: without
//! the key it tells nothing about them, and with it `run` notices that they have changed.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::util::display::array_value_to_string;
use reticent_mechanisms::rows::cell::FIELD_CAP;
use reticent_mechanisms::rows::{
    Batch, Cells, Kind, MISSING_CODE, MISSING_INTEGER, OTHER_CODE, id_digest,
};
use reticent_mechanisms::source::{RowSource, SourceError};
use sha2::{Digest, Sha256};

use crate::file::same;
use crate::scan::fields::{Content, Field};
use crate::scan::{Files, Format, Layout, csv, parquet};

/// Errors shown; further ones are counted.
pub const SHOWN: usize = 100;

/// Something wrong with a cell or a line, for the curator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellError {
    /// The file.
    pub file: PathBuf,
    /// Line of a CSV file on which the record begins (the header is line 1), or row of a Parquet file
    /// counted from 1.
    pub line: u64,
    /// The column; empty if the error is about the line.
    pub column: String,
    /// The cell, shortened.
    pub value: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub fix: String,
}

impl std::fmt::Display for CellError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, line {}", self.file.display(), self.line)?;
        if !self.column.is_empty() {
            write!(f, ", column `{}`, value `{}`", self.column, self.value)?;
        }
        write!(f, ": {}; {}", self.what, self.fix)
    }
}

/// The outcome of reading a table for registration. Confidential except for key and fingerprint.
#[derive(Clone, Debug)]
pub struct Registration {
    /// The first [`SHOWN`] errors, in file order. Data with errors must not be registered.
    pub errors: Vec<CellError>,
    /// Number of errors.
    pub total_errors: u64,
    /// Per column, its name and how many cells lie outside its bounds (they will be clamped).
    pub clamped: Vec<(String, u64)>,
    /// Number of rows: for the curator's screen, never stored.
    pub rows: u64,
    /// Random key of the fingerprint.
    pub key: [u8; 32],
    /// Keyed fingerprint of the files.
    pub fingerprint: [u8; 32],
}

/// Reads the whole table and applies every policy. Refused outright (the error names file and fix) if a
/// file is unreadable, empty, or lacks a declared column or has it twice.
pub fn register(files: &Files) -> Result<Registration, SourceError> {
    let mut key = [0u8; 32];
    getrandom::fill(&mut key).map_err(|e| SourceError::Io {
        context: "random key".into(),
        source: std::io::Error::other(e.to_string()),
    })?;
    let before = fingerprint(&key, &files.paths)?;
    let mut report = Report {
        layout: &files.layout,
        fields: &files.fields,
        errors: Vec::new(),
        total: 0,
        rows: 0,
        file: PathBuf::new(),
        file_rows: 0,
        clamped: vec![0; files.fields.len()],
    };
    inspect(files, &mut |seen| report.look(seen))?;
    if report.rows == 0 {
        let file = files.paths.first().cloned().unwrap_or_default();
        report.add(
            file,
            1,
            "",
            &[],
            "there are no rows below the header",
            "check `source.path`",
        );
    }
    if fingerprint(&key, &files.paths)? != before {
        return Err(SourceError::Format(
            "the data changed while they were read; register them again".into(),
        ));
    }
    Ok(Registration {
        clamped: files
            .fields
            .iter()
            .map(|f| f.name.clone())
            .zip(report.clamped)
            .collect(),
        errors: report.errors,
        total_errors: report.total,
        rows: report.rows,
        key,
        fingerprint: before,
    })
}

/// The files a path or glob pattern names, relative to `base`, in order of name.
pub fn expand(pattern: &str, base: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let literal = base.join(pattern);
    if literal.is_file() {
        return Ok(vec![literal]);
    }
    let found = glob::glob(&rooted(pattern, base))
        .map_err(|e| SourceError::Format(format!("source.path `{pattern}`: {e}")))?;
    let mut paths = Vec::new();
    for path in found {
        let path = path.map_err(|e| SourceError::Io {
            context: e.path().display().to_string(),
            source: e.into(),
        })?;
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(SourceError::Format(format!(
            "source.path `{pattern}`: no such file under {}",
            base.display()
        )));
    }
    Ok(paths)
}

/// Whether a pattern means a path, now or when there is something at it.
pub fn matches(pattern: &str, base: &Path, path: &Path) -> Result<bool, SourceError> {
    let literal = base.join(pattern);
    if literal.is_file() {
        return Ok(literal == path || same(&literal, path));
    }
    let pattern = glob::Pattern::new(&rooted(pattern, base))
        .map_err(|e| SourceError::Format(format!("source.path `{pattern}`: {e}")))?;
    let options = glob::MatchOptions {
        require_literal_separator: true,
        ..glob::MatchOptions::default()
    };
    Ok(pattern.matches_path_with(path, options))
}

fn rooted(pattern: &str, base: &Path) -> String {
    if Path::new(pattern).is_absolute() {
        return pattern.to_owned();
    }
    Path::new(&glob::Pattern::escape(&base.to_string_lossy()))
        .join(pattern)
        .to_string_lossy()
        .into_owned()
}

/// Keyed SHA-256 over number, lengths and bytes of the files in the order given.
pub fn fingerprint(key: &[u8; 32], paths: &[PathBuf]) -> Result<[u8; 32], SourceError> {
    let mut outer = Sha256::new();
    outer.update(key);
    outer.update(b"reticent fingerprint 1");
    outer.update((paths.len() as u64).to_le_bytes());
    for path in paths {
        let (length, digest) = digest(key, path).map_err(|source| SourceError::Io {
            context: path.display().to_string(),
            source,
        })?;
        outer.update(length.to_le_bytes());
        outer.update(digest);
    }
    Ok(outer.finalize().into())
}

/// Checks that the files are still those that were registered.
pub fn verify_fingerprint(
    key: &[u8; 32],
    paths: &[PathBuf],
    expected: &[u8; 32],
) -> Result<(), SourceError> {
    if fingerprint(key, paths)? == *expected {
        return Ok(());
    }
    Err(SourceError::Format(
        "data changed since registration; restore the files, or register them under a new `data_version`".into(),
    ))
}

fn digest(key: &[u8; 32], path: &Path) -> std::io::Result<(u64, [u8; 32])> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    hash.update(key);
    let mut buffer = vec![0u8; 1 << 18];
    let mut length = 0u64;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((length, hash.finalize().into())),
            Ok(n) => {
                hash.update(&buffer[..n]);
                length += n as u64;
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// What registration sees of a batch.
struct Seen<'a> {
    /// The file it comes from.
    path: &'a Path,
    /// Decoded cells.
    batch: &'a Batch,
    /// For CSV: the line of each record and its number of fields, and the header's.
    records: Option<(&'a [(u64, usize)], usize)>,
    /// Bytes of a cell as stored, by row and column of the files.
    raw: &'a dyn Fn(usize, usize) -> Vec<u8>,
}

/// Shows every batch, in file order, with the places and bytes of its cells.
fn inspect(files: &Files, see: &mut dyn FnMut(&Seen<'_>)) -> Result<(), SourceError> {
    let fields = &files.fields;
    let all: Vec<usize> = (0..files.schema().columns.len()).collect();
    for file in &files.parquet {
        for piece in file.pieces() {
            piece.read(&all, parquet::ROWS, fields, |stored, batch| {
                let raw = |row: usize, field: usize| -> Vec<u8> {
                    let name = fields[field].name.trim();
                    let found = stored.schema_ref().fields();
                    let place = found.iter().position(|f| f.name().trim() == name);
                    place.map_or_else(Vec::new, |p| shown(stored.column(p), row))
                };
                see(&Seen {
                    path: &file.path,
                    batch: &batch,
                    records: None,
                    raw: &raw,
                });
            })?;
        }
    }
    if files.format == Format::Csv {
        for path in &files.paths {
            let reader = csv::Reader::open(path)?;
            let width = reader.header.len();
            reader.blocks(fields, (&all, csv::ROWS), |block, wanted| {
                let raw = |row: usize, field: usize| wanted.raw(&block, row, field).to_vec();
                let batch = wanted.decode(&block, fields);
                let records = Some((&block.records[..], width));
                see(&Seen {
                    path,
                    batch: &batch,
                    records,
                    raw: &raw,
                });
                Some(block)
            })?;
        }
    }
    Ok(())
}

/// A cell as it would be written: bytes as they are, anything else as text.
fn shown(column: &ArrayRef, row: usize) -> Vec<u8> {
    let kind = match column.data_type() {
        DataType::Dictionary(_, value) => value,
        kind => kind,
    };
    if kind.is_binary()
        && let Ok(one) = cast(&column.slice(row, 1), &DataType::LargeBinary)
    {
        let one = one.as_binary::<i64>();
        return if one.is_null(0) {
            Vec::new()
        } else {
            one.value(0).to_vec()
        };
    }
    let text = array_value_to_string(column, row).unwrap_or_default();
    text.into_bytes()
}

struct Report<'a> {
    layout: &'a Layout,
    fields: &'a [Field],
    errors: Vec<CellError>,
    total: u64,
    rows: u64,
    file: PathBuf,
    file_rows: u64,
    clamped: Vec<u64>,
}

impl Report<'_> {
    fn look(&mut self, seen: &Seen<'_>) {
        if self.file != seen.path {
            self.file = seen.path.to_path_buf();
            self.file_rows = 0;
        }
        for row in 0..seen.batch.rows() {
            let line = seen
                .records
                .map_or(self.file_rows + 1, |(records, _)| records[row].0);
            if let Some((records, width)) = seen.records
                && records[row].1 != width
            {
                let what = format!("the line has {} cells, the header {width}", records[row].1);
                let fix =
                    "add or remove cells, or quote a cell that contains a comma or line break";
                self.add(self.file.clone(), line, "", &[], &what, fix);
            }
            for (index, field) in self.fields.iter().enumerate() {
                let absent = seen
                    .records
                    .is_some_and(|(records, width)| records[row].1 < width);
                let wrong = match field.content {
                    Content::Cell(_) => self.judge(seen, row, (index, field), absent),
                    Content::Words(_) => too_long(&(seen.raw)(row, index)),
                };
                if let Some((what, fix)) = wrong {
                    self.add(
                        self.file.clone(),
                        line,
                        &field.name,
                        &(seen.raw)(row, index),
                        &what,
                        &fix,
                    );
                }
            }
            self.file_rows += 1;
            self.rows += 1;
        }
    }

    /// What is wrong with a cell, and the fix.
    fn judge(
        &mut self,
        seen: &Seen<'_>,
        row: usize,
        (index, field): (usize, &Field),
        absent: bool,
    ) -> Option<(String, String)> {
        let at = field.columns.start;
        let column = self.layout.schema.columns.get(at)?;
        let rejects = self.layout.rejects.get(at).copied().unwrap_or_default();
        let is_missing = match seen.batch.column(at) {
            Cells::Integer(v) => v[row] == MISSING_INTEGER,
            Cells::Real(v) => v[row].is_nan(),
            Cells::Code(v) => v[row] == MISSING_CODE,
            Cells::Id(_) | Cells::Unread => false,
        };
        if is_missing {
            let raw = (seen.raw)(row, index);
            let text = raw.trim_ascii();
            if !absent && !self.means_missing(at, text) {
                let fix = "correct the cell, or list its text in `missing_values`";
                return Some(match column.kind {
                    Kind::Integer { .. } if number(text).is_some_and(f64::is_finite) => (
                        "not a whole number".into(),
                        "correct the cell, or declare the column `real`".into(),
                    ),
                    Kind::Integer { .. } => ("not a whole number".into(), fix.into()),
                    _ => ("not a number".into(), fix.into()),
                });
            }
            return rejects.missing.then(|| {
                let fix = "fill the cell, or set `missing` to \"drop\" or \"impute\"";
                (
                    "the cell is missing, which this column rejects".into(),
                    fix.into(),
                )
            });
        }
        let outside = match (seen.batch.column(at), &column.kind) {
            (Cells::Integer(v), Kind::Integer { lower, upper }) => {
                v[row] < *lower || v[row] > *upper
            }
            (Cells::Real(v), Kind::Real { lower, upper }) => v[row] < *lower || v[row] > *upper,
            (Cells::Code(v), _) if v[row] == OTHER_CODE => {
                let raw = (seen.raw)(row, index);
                let (what, fix) = if raw.len() > FIELD_CAP {
                    (
                        "the text is longer than a mebibyte",
                        "a quote may have been left open; shorten the text",
                    )
                } else if std::str::from_utf8(&raw).is_err() {
                    ("the text is not UTF-8", "convert the file to UTF-8")
                } else if rejects.other {
                    (
                        "not a declared level",
                        "correct the cell, add the level, or set `other`",
                    )
                } else {
                    return None;
                };
                return Some((what.into(), fix.into()));
            }
            (Cells::Id(ids), _) => {
                let raw = (seen.raw)(row, index);
                let missing = ids[row] == id_digest(b"");
                return too_long(&raw).or_else(|| (missing && rejects.missing).then(|| {
                    let fix = "fill the cell, or set `missing` to \"drop\": rows without an identifier then count nowhere, if the column is the unit";
                    ("the identifier is missing, which this column rejects".into(), fix.into())
                }));
            }
            _ => false,
        };
        if outside {
            self.clamped[index] += 1;
        }
        (outside && rejects.outside).then(|| {
            (
                "outside the declared bounds".into(),
                "correct the cell or widen the bounds".into(),
            )
        })
    }

    /// Whether the text stands for a missing cell by declaration or by its nature.
    fn means_missing(&self, at: usize, text: &[u8]) -> bool {
        let declared = self
            .layout
            .missing_values
            .get(at)
            .map_or(&[][..], Vec::as_slice);
        let same_number = |t: &str| {
            number(t.trim().as_bytes()).is_some() && number(t.trim().as_bytes()) == number(text)
        };
        text.is_empty()
            || number(text).is_some_and(f64::is_nan)
            || declared
                .iter()
                .any(|t| t.trim().as_bytes() == text || same_number(t))
    }

    fn add(&mut self, file: PathBuf, line: u64, column: &str, value: &[u8], what: &str, fix: &str) {
        self.total += 1;
        if self.errors.len() < SHOWN {
            let text = String::from_utf8_lossy(value);
            let mut value: String = text.chars().take(40).flat_map(char::escape_debug).collect();
            if text.chars().nth(40).is_some() {
                value.push('…');
            }
            let (column, what, fix) = (column.to_owned(), what.to_owned(), fix.to_owned());
            self.errors.push(CellError {
                file,
                line,
                column,
                value,
                what,
                fix,
            });
        }
    }
}

/// What is wrong with an identifier or text that is cut where it is read, and the fix.
fn too_long(raw: &[u8]) -> Option<(String, String)> {
    let fix = "a quote may have been left open; shorten the text";
    (raw.len() > FIELD_CAP).then(|| ("the cell is longer than a mebibyte".into(), fix.into()))
}

fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ::parquet::arrow::ArrowWriter;
    use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
    use reticent_mechanisms::rows::Missing;
    use tempfile::TempDir;

    use super::*;
    use crate::scan::Rejects;
    use crate::scan::tests::{layout, write};

    fn strict() -> Layout {
        let mut layout = layout();
        layout.rejects = vec![
            Rejects {
                missing: true,
                other: true,
                outside: true
            };
            4
        ];
        layout
    }

    fn csv_report(bytes: &[u8], layout: Layout) -> Registration {
        let dir = TempDir::new().unwrap();
        let path = write(&dir, "t.csv", bytes);
        register(&Files::open(vec![path], Format::Csv, layout).unwrap()).unwrap()
    }

    fn short(report: &Registration) -> Vec<(u64, &str, &str, &str)> {
        let errors = report.errors.iter();
        errors
            .map(|e| (e.line, e.column.as_str(), e.value.as_str(), e.what.as_str()))
            .collect()
    }

    #[test]
    fn every_fault_names_line_column_value_and_fix() {
        let text = b"age,income,group,person\r\n\
            30,1,a,p\r\n\
            abc,1,a,p\r\n\
            3.5,1,a,p\r\n\
            \r\n\
            30,\"1\n\",a,p\r\n\
            30,x,\xff\xfe,p\r\n\
            ,,?,\r\n\
            16,1000001,c,p\r\n\
            30,inf,b\r\n\
            30,1,a,p,q\r\n";
        let report = csv_report(text, strict());
        let missing = "the cell is missing, which this column rejects";
        let outside = "outside the declared bounds";
        let expected = [
            (3, "age", "abc", "not a whole number"),
            (4, "age", "3.5", "not a whole number"),
            (8, "income", "x", "not a number"),
            (8, "group", "\u{fffd}\u{fffd}", "the text is not UTF-8"),
            (9, "age", "", missing),
            (9, "income", "", missing),
            (9, "group", "?", missing),
            (
                9,
                "person",
                "",
                "the identifier is missing, which this column rejects",
            ),
            (10, "age", "16", outside),
            (10, "income", "1000001", outside),
            (10, "group", "c", "not a declared level"),
            (11, "", "", "the line has 3 cells, the header 4"),
            (11, "income", "inf", outside),
            (
                11,
                "person",
                "",
                "the identifier is missing, which this column rejects",
            ),
            (12, "", "", "the line has 5 cells, the header 4"),
        ];
        assert_eq!(short(&report), expected);
        assert_eq!((report.rows, report.total_errors), (9, 15));
        assert!(
            report
                .errors
                .iter()
                .all(|e| !e.fix.is_empty() && e.file.ends_with("t.csv"))
        );
        let shown = report.errors[0].to_string();
        assert!(shown.ends_with(
            "t.csv, line 3, column `age`, value `abc`: not a whole number; \
             correct the cell, or list its text in `missing_values`"
        ));
    }

    #[test]
    fn lenient_policies_accept_what_they_declare() {
        let text = b"age,income,group,person\n16,1,a,p\n-9,nan,?,\n30,-inf,zzz,p\n91,,,p\n";
        let report = csv_report(text, layout());
        assert_eq!(short(&report), []);
        let clamped: Vec<(&str, u64)> = report
            .clamped
            .iter()
            .map(|(name, n)| (name.as_str(), *n))
            .collect();
        assert_eq!(
            clamped,
            [("age", 2), ("income", 1), ("group", 0), ("person", 0)]
        );
    }

    #[test]
    fn long_fields_are_shortened_and_errors_capped() {
        let long = "y".repeat(1_000_000);
        let longer = "z".repeat(FIELD_CAP + 5);
        let text =
            format!("age,income,group,person\n1,1,{long},p\n1,1,a,{longer}\n1,1,{longer},p\n");
        let report = csv_report(text.as_bytes(), {
            let mut layout = layout();
            layout.rejects[2].other = true;
            layout
        });
        assert_eq!(report.total_errors, 3);
        assert_eq!(report.errors[0].value, format!("{}…", "y".repeat(40)));
        assert_eq!(report.errors[1].what, "the cell is longer than a mebibyte");
        assert_eq!(report.errors[2].what, "the text is longer than a mebibyte");
        let many = format!("age,income,group,person\n{}", "x,1,a,p\n".repeat(500));
        let report = csv_report(many.as_bytes(), layout());
        assert_eq!((report.errors.len(), report.total_errors), (SHOWN, 500));
    }

    #[test]
    fn no_rows_is_an_error() {
        let report = csv_report(b"age,income,group,person\n", layout());
        assert_eq!(
            short(&report),
            [(1, "", "", "there are no rows below the header")]
        );
        assert_eq!(
            csv_report(b"age,income,group,person\n20,1,a,p", layout()).total_errors,
            0
        );
    }

    #[test]
    fn parquet_rows_are_counted_from_one() {
        let text = |v: Vec<Option<&str>>| Arc::new(StringArray::from(v)) as ArrayRef;
        let income = Float64Array::from(vec![Some(f64::NAN), Some(-1.0), None]);
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("age", text(vec![Some("20"), Some("twenty"), None]), true),
            ("income", Arc::new(income) as ArrayRef, true),
            ("group", text(vec![Some("a"), Some("c"), Some("b")]), true),
            ("person", text(vec![Some("p"), Some("p"), Some("p")]), true),
        ])
        .unwrap();
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("t.parquet");
        let file = File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let report =
            register(&Files::open(vec![path], Format::Parquet, strict()).unwrap()).unwrap();
        let missing = "the cell is missing, which this column rejects";
        let expected = [
            (1, "income", "NaN", missing),
            (2, "age", "twenty", "not a whole number"),
            (2, "income", "-1.0", "outside the declared bounds"),
            (2, "group", "c", "not a declared level"),
            (3, "age", "", missing),
            (3, "income", "", missing),
        ];
        assert_eq!(short(&report), expected);
        assert_eq!(report.clamped[1], ("income".to_owned(), 1));
    }

    #[test]
    fn fingerprints_notice_any_change_and_hide_the_data() {
        let dir = TempDir::new().unwrap();
        let (a, b) = (write(&dir, "a", b"12"), write(&dir, "b", b"345"));
        let key = [7; 32];
        let of = |paths: &[&PathBuf]| {
            fingerprint(
                &key,
                &paths.iter().map(|p| (*p).clone()).collect::<Vec<_>>(),
            )
            .unwrap()
        };
        let first = of(&[&a, &b]);
        assert_eq!(first, of(&[&a, &b]));
        assert!(first != of(&[&b, &a]) && first != of(&[&a]) && first != of(&[&a, &b, &b]));
        assert!(first != fingerprint(&[8; 32], &[a.clone(), b.clone()]).unwrap());
        verify_fingerprint(&key, &[a.clone(), b.clone()], &first).unwrap();
        // A byte moved across the border between files.
        write(&dir, "a", b"123");
        write(&dir, "b", b"45");
        let message = verify_fingerprint(&key, &[a.clone(), b], &first)
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("data changed since registration"),
            "{message}"
        );
        std::fs::remove_file(&a).unwrap();
        assert!(matches!(
            fingerprint(&key, &[a]),
            Err(SourceError::Io { .. })
        ));
        // Fresh keys: two registrations of the same bytes do not look alike.
        let text = b"age,income,group,person\n20,1,a,p\n";
        let (x, y) = (csv_report(text, layout()), csv_report(text, layout()));
        assert!(x.key != y.key && x.fingerprint != y.fingerprint);
    }

    #[test]
    fn imputation_does_not_hide_unparsable_cells() {
        let mut layout = layout();
        let mut schema = (*layout.schema).clone();
        schema.columns[0].missing = Missing::Impute(40.0);
        layout.schema = Arc::new(schema);
        let report = csv_report(b"age,income,group,person\n,1,a,p\nabc,1,a,p\n", layout);
        assert_eq!(short(&report), [(3, "age", "abc", "not a whole number")]);
    }
}
