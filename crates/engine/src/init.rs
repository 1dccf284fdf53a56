//! `init`: a `dataset.toml` to be filled in, written from the names of the columns alone.
//!
//! Of a CSV file only the header line is looked at, of a Parquet file only its schema: no bound, level or
//! count is ever learned from rows, because that would be an unpaid release.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use parquet::basic::Type as Physical;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::dataset::{Format, format_of, toml_key, toml_text};
use crate::outcome::Refusal;

/// Longest header line that is read, in bytes.
const LONGEST_HEADER: u64 = 8 << 20;

/// The skeleton for a data file.
pub fn skeleton(data: &Path) -> Result<String, Refusal> {
    let name = data.to_string_lossy();
    let format = format_of(&name).ok_or_else(|| {
        Refusal::request("the format cannot be told from the name of the file")
            .in_file(data)
            .accepting("Use a name that ends in .csv, .csv.gz or .parquet.")
    })?;
    // a pipe would be waited for without end
    if std::fs::metadata(data).is_ok_and(|facts| !facts.is_file()) {
        return Err(unreadable(data, "it is not a regular file"));
    }
    let columns = match format {
        Format::Csv => csv_columns(data)?,
        Format::Parquet => parquet_columns(data)?,
    };
    let mut seen = std::collections::HashSet::new();
    for (column, _) in &columns {
        let problem = if column.is_empty() {
            Some("a column has no name".to_owned())
        } else if seen.insert(column.as_str()) {
            None
        } else {
            Some(format!("two columns are named `{column}`"))
        };
        if let Some(problem) = problem {
            return Err(Refusal::request(problem)
                .in_file(data)
                .at_line(1)
                .accepting("Give every column its own name."));
        }
    }
    Ok(text(data, format, &columns))
}

fn unreadable(data: &Path, error: impl std::fmt::Display) -> Refusal {
    Refusal::request(format!("the file cannot be read: {error}"))
        .in_file(data)
        .accepting("Check the path and the format.")
}

fn csv_columns(data: &Path) -> Result<Vec<(String, Option<&'static str>)>, Refusal> {
    let file = File::open(data).map_err(|e| unreadable(data, e))?;
    let packed = data
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("gz"));
    let bytes: Box<dyn Read> = if packed {
        Box::new(MultiGzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(bytes.take(LONGEST_HEADER));
    let mut header = csv::ByteRecord::new();
    let found = reader
        .read_byte_record(&mut header)
        .map_err(|e| unreadable(data, e))?;
    if !found {
        return Err(Refusal::request("the file is empty")
            .in_file(data)
            .accepting("The first line names the columns."));
    }
    header
        .iter()
        .enumerate()
        .map(|(index, cell)| {
            let name = std::str::from_utf8(cell).map_err(|_| {
                Refusal::request(format!("the name of column {} is not UTF-8", index + 1))
                    .in_file(data)
                    .at_line(1)
                    .accepting("Save the file as UTF-8.")
            })?;
            let name = if index == 0 {
                name.trim_start_matches('\u{feff}')
            } else {
                name
            };
            Ok((name.trim().to_owned(), None))
        })
        .collect()
}

fn parquet_columns(data: &Path) -> Result<Vec<(String, Option<&'static str>)>, Refusal> {
    let file = File::open(data).map_err(|e| unreadable(data, e))?;
    let reader = SerializedFileReader::new(file).map_err(|e| unreadable(data, e))?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let fields = schema.root_schema().get_fields();
    let kind = |field: &parquet::schema::types::Type| {
        if !field.is_primitive() {
            return None;
        }
        match field.get_physical_type() {
            Physical::BOOLEAN => Some("boolean"),
            Physical::INT32 | Physical::INT64 => Some("integer"),
            Physical::FLOAT | Physical::DOUBLE => Some("real"),
            Physical::BYTE_ARRAY => Some("text"),
            Physical::INT96 | Physical::FIXED_LEN_BYTE_ARRAY => None,
        }
    };
    Ok(fields
        .iter()
        .map(|f| (f.name().trim().to_owned(), kind(f)))
        .collect())
}

fn text(data: &Path, format: Format, columns: &[(String, Option<&str>)]) -> String {
    let name = data
        .file_name()
        .map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let stem = name
        .split('.')
        .next()
        .filter(|s| !s.is_empty())
        .unwrap_or("data")
        .to_owned();
    let format = match format {
        Format::Csv => "csv",
        Format::Parquet => "parquet",
    };
    let mut out = format!(
        "# Fill in what is commented out, from public knowledge only: codebook, law, common sense.\n\
         # Nothing here was read from the rows, and nothing here may be.\n\
         version = 1\n\
         id = {id}\n\
         data_version = \"1\"\n\
         source = {{ path = {path}, format = \"{format}\" }}\n\
         neighbours = \"add_remove\"     # or \"replace_one\", then also: rows = …\n\
         unit = \"row\"                  # or {{ column = \"person\", max_rows = 4 }}\n\
         # size_hint = 10000           # public approximate number of rows, for planning\n\n\
         [budget]\n\
         # epsilon = \"1\"              # or epsilon and delta = \"1e-7\"; or rho = \"0.5\"\n\n\
         [ledger]\n\
         path = {ledger}\n",
        id = toml_text(&stem),
        path = toml_text(&name),
        ledger = toml_text(&format!("{stem}.ledger")),
    );
    for (column, kind) in columns {
        let _ = write!(out, "\n[columns.{}]\n", toml_key(column));
        match kind {
            Some(kind) => {
                let _ = writeln!(out, "type = \"{kind}\"");
            }
            None => out.push_str(
                "# type = \"integer\"            # integer | real | text | boolean | id\n",
            ),
        }
        if matches!(kind, None | Some("integer" | "real")) {
            out.push_str(
                "# lower = 0\n# upper = 100                 # values outside are clamped\n",
            );
        }
        if matches!(kind, None | Some("text")) {
            out.push_str(
                "# levels = [\"a\", \"b\"]         # text only; the reference level first\n",
            );
        }
        out.push_str(
            "# missing = \"drop\"            # reject (default) | drop | impute, then impute = …\n",
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::dataset::Dataset;

    fn file(name: &str, content: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        (folder, path)
    }

    #[test]
    fn only_the_header_matters() {
        let header = "\u{feff}age,\"hours, weekly\",income\r\n";
        let (_a, empty) = file("people.csv", header.as_bytes());
        let (_b, full) = file(
            "people.csv",
            format!("{header}17,40,>50K\n90,99,secret\n").as_bytes(),
        );
        let (_c, broken) = file(
            "people.csv",
            &[header.as_bytes(), b"\xff\xfe,1,\"\n"].concat(),
        );
        let skeletons = [&empty, &full, &broken].map(|p| skeleton(p).unwrap());
        assert_eq!(skeletons[0], skeletons[1]);
        assert_eq!(skeletons[0], skeletons[2]);
        assert!(skeletons[0].contains("[columns.age]"));
        assert!(skeletons[0].contains("[columns.\"hours, weekly\"]"));
        assert!(!skeletons[1].contains("secret") && !skeletons[1].contains("90"));
    }

    #[test]
    fn compressed_headers_are_read() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"a,b\n1,2\n").unwrap();
        let (_folder, path) = file("t.csv.gz", &packed.finish().unwrap());
        let text = skeleton(&path).unwrap();
        assert!(
            text.contains("[columns.b]") && text.contains("path = \"t.csv.gz\""),
            "{text}"
        );
    }

    #[test]
    fn the_skeleton_is_toml_that_asks_for_the_rest() {
        let (_folder, path) = file("t.csv", b"a,b\n");
        let text = skeleton(&path).unwrap();
        let refused = Dataset::parse(&text, Path::new("dataset.toml"))
            .unwrap_err()
            .to_string();
        assert!(refused.contains("budget"), "{refused}");
        let filled = text
            .replace("# epsilon", "epsilon")
            .replace("# type", "type")
            .replace("# lower", "lower")
            .replace("# upper", "upper");
        let dataset = Dataset::parse(&filled, Path::new("dataset.toml"))
            .unwrap_or_else(|e| panic!("{e}\n{filled}"));
        assert_eq!(dataset.schema.columns.len(), 2);
    }

    #[test]
    fn bad_files_are_refused() {
        for (name, content, part) in [
            ("t.csv", &b""[..], "empty"),
            ("t.csv", b"a,a\n", "two columns are named `a`"),
            ("t.csv", b"a,,b\n", "no name"),
            ("t.csv", b"a,\xff\n", "not UTF-8"),
            ("t.txt", b"a\n", "format"),
            ("t.parquet", b"no parquet", "cannot be read"),
            ("t.csv.gz", b"no gzip", "cannot be read"),
        ] {
            let (_folder, path) = file(name, content);
            let refused = skeleton(&path).unwrap_err().to_string();
            assert!(refused.contains(part), "{refused}");
        }
        assert!(skeleton(Path::new("nowhere.csv")).is_err());
    }
}
