//! The declaration of columns of type `tokens`: which words count, how many of a record, and what the slots are called.
//!
//! [`crate::scan`] reads such columns, [`crate::text`] says what a text becomes.

use std::path::{Path, PathBuf};

use reticent_mechanisms::rows::{Column, Kind, Missing, Schema};
use serde_json::{Value, json};

use crate::document::{Item, Section};
use crate::outcome::Refusal;
use crate::text::{Choice, ENGLISH, TextColumn, Tokenizer, Vocabulary};

/// Words of a record that can count.
const MOST_SLOTS: u32 = 1_000;
/// Words of a vocabulary, and buckets.
const MOST_WORDS: u32 = 1 << 20;
/// Largest word file.
const MOST_BYTES: u64 = 64 << 20;

/// A declared column of type `tokens`.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// Position of its first slot in the schema.
    pub first: usize,
    /// How texts become slots.
    pub column: TextColumn,
}

impl Tokens {
    /// Everything declared that says what a text becomes.
    pub(crate) fn digest(&self) -> Value {
        let c = &self.column;
        let choice = match &c.choice {
            Choice::First => json!("first"),
            Choice::Sampled { salt } => json!(["sampled", salt]),
        };
        let stop = c.tokenizer.stop_words();
        json!([
            c.name,
            self.first,
            c.most,
            c.vocabulary.digest(),
            stop,
            choice
        ])
    }

    /// The positions of its slots in the schema.
    pub(crate) fn slots(&self) -> std::ops::Range<usize> {
        self.first..self.first.saturating_add(self.column.most)
    }
}

/// A column of the files.
pub(crate) enum Stored<'a> {
    /// The declared column at this position of the schema.
    Plain(usize, &'a Column),
    /// A text: its slots are columns of the schema.
    Text(&'a Tokens),
}

/// The columns of the files, in schema order: of the slots of a text only the text.
pub(crate) fn stored<'a>(schema: &'a Schema, tokens: &'a [Tokens]) -> Vec<Stored<'a>> {
    let mut stored = Vec::new();
    let mut at = 0;
    while let Some(column) = schema.columns.get(at) {
        let text = tokens.iter().find(|t| t.first == at);
        if let Some(text) = text.filter(|t| !t.slots().is_empty()) {
            stored.push(Stored::Text(text));
            at = text.slots().end;
        } else {
            stored.push(Stored::Plain(at, column));
            at += 1;
        }
    }
    stored
}

/// What a released model says of a text: everything that a reader needs to turn texts into words as the fit did. All of it is
/// declared, nothing comes from records.
pub(crate) fn public(column: &TextColumn) -> Value {
    let mut fields = json!({
        "column": column.name,
        "slots": column.most,
        "words": column.vocabulary.names(),
        "stop": column.tokenizer.stop_words(),
        "choice": match column.choice { Choice::First => "first", Choice::Sampled { .. } => "sampled" },
    });
    if let Value::Object(fields) = &mut fields {
        if let Vocabulary::Hashed { buckets, salt } = &column.vocabulary {
            fields.insert(
                "hashed".to_owned(),
                json!({"buckets": buckets, "salt": salt}),
            );
        }
        if let Choice::Sampled { salt } = &column.choice {
            fields.insert("salt".to_owned(), json!(salt));
        }
    }
    fields
}

/// The texts that a released model reads, or why its words cannot be found in new texts.
pub(crate) fn released(model: &Value) -> Result<Vec<TextColumn>, String> {
    let list = model.get("texts").and_then(Value::as_array);
    let one = |text: &Value| {
        let word = |key: &str| text.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = word("column")?;
        let most = usize::try_from(text.get("slots")?.as_u64()?).ok()?;
        let stop = strings(text.get("stop")?)?;
        let words = strings(text.get("words")?)?;
        let count = words.len();
        let choice = match (word("choice")?.as_str(), word("salt")) {
            ("first", _) => Choice::First,
            ("sampled", Some(salt)) => Choice::Sampled { salt },
            _ => return None,
        };
        let vocabulary = match text.get("hashed") {
            None => Vocabulary::words(words),
            Some(of) => Vocabulary::Hashed {
                buckets: u32::try_from(of.get("buckets")?.as_u64()?).ok()?,
                salt: of.get("salt")?.as_str()?.to_owned(),
            },
        };
        let numbers = usize::try_from(vocabulary.len()).ok()? == count;
        (numbers && most <= usize::try_from(MOST_SLOTS).ok()?).then_some(TextColumn {
            name,
            tokenizer: Tokenizer::new(&stop.join(" ")),
            vocabulary,
            most,
            choice,
        })
    };
    let complete = |text: &Value| {
        one(text).ok_or_else(|| {
            let name = text.get("column").and_then(Value::as_str).unwrap_or("");
            format!("the model does not say how the text {name} is split into words (stop, choice, hashed); fit it again with this version")
        })
    };
    list.into_iter().flatten().map(complete).collect()
}

fn strings(list: &Value) -> Option<Vec<String>> {
    let texts = list.as_array()?.iter();
    texts.map(|t| t.as_str().map(str::to_owned)).collect()
}

/// Reads the keys of a `tokens` column; `folder` is where a word file is looked for.
pub(crate) fn read(
    section: &mut Section<'_>,
    name: String,
    folder: &Path,
) -> Result<TextColumn, Refusal> {
    let fix = "Write the number of distinct words of a text that count, for example most = 20.";
    let most = section.need("most", fix)?.count(1, MOST_SLOTS, fix)?;
    let tokenizer = stop(section)?;
    let salt = match section.get("salt") {
        None => "1".to_owned(),
        Some(item) => item.name("Write any short public text, for example salt = \"1\".")?,
    };
    let choice = match section.get("choice") {
        Some(item) if item.word(&[("first", false), ("sampled", true)])? => {
            Choice::Sampled { salt: salt.clone() }
        }
        _ => Choice::First,
    };
    let fix = "Write words = [\"free\", \"win\"] (public words), words = \"words.txt\" (a public file of them), or hashed = 4096 (buckets, if no vocabulary is public).";
    let hashed = match section.get("hashed") {
        None => None,
        Some(item) => Some(item.count(2, MOST_WORDS, fix)?),
    };
    let vocabulary = match (section.get("words"), hashed) {
        (None, Some(buckets)) => Vocabulary::Hashed { buckets, salt },
        (Some(item), None) => words(&item, &tokenizer, folder, fix)?,
        (None, None) => {
            return Err(section
                .refuse("which words there are is not declared")
                .accepting(fix));
        }
        (Some(item), Some(_)) => {
            return Err(item
                .refuse("`words` and `hashed` exclude each other")
                .accepting("Remove one of the two."));
        }
    };
    Ok(TextColumn {
        name,
        tokenizer,
        vocabulary,
        most: usize::try_from(most).unwrap_or(usize::MAX),
        choice,
    })
}

fn stop(section: &mut Section<'_>) -> Result<Tokenizer, Refusal> {
    let fix = "Write stop = \"english\", \"none\", or a list of words.";
    let Some(item) = section.get("stop") else {
        return Ok(Tokenizer::default());
    };
    if !item.is_list() {
        let english = item.word(&[("english", true), ("none", false)])?;
        return Ok(Tokenizer::new(if english { ENGLISH } else { "" }));
    }
    let mut list = String::new();
    for element in item.list(fix)? {
        list.push_str(&one_word(&element, &Tokenizer::default(), fix)?);
        list.push(' ');
    }
    Ok(Tokenizer::new(&list))
}

/// The one word of a listed text; anything else could never be found in a cell.
fn one_word(item: &Item<'_>, tokenizer: &Tokenizer, fix: &str) -> Result<String, Refusal> {
    let text = item.name(fix)?;
    let mut found = tokenizer.words(&text);
    match (found.next(), found.next()) {
        (Some(word), None) => Ok(word),
        _ => Err(item
            .refuse("not one word: words are runs of letters and digits that are no stop words")
            .accepting(
                "Write single words, without spaces, hyphens or apostrophes; remove stop words.",
            )),
    }
}

fn words(
    item: &Item<'_>,
    tokenizer: &Tokenizer,
    folder: &Path,
    fix: &str,
) -> Result<Vocabulary, Refusal> {
    let vocabulary = if item.is_list() {
        let list = item.list(fix)?;
        let words = list.iter().map(|e| one_word(e, tokenizer, fix));
        Vocabulary::words(words.collect::<Result<Vec<_>, _>>()?)
    } else {
        let path = item.text(fix)?;
        let found = if path.trim().is_empty() || path.contains('\0') {
            Err("the path is empty".to_owned())
        } else {
            word_file(&folder.join(path))
        };
        let text = found.map_err(|what| {
            item.refuse(format!("the word file cannot be read: {what}"))
                .accepting("Name a UTF-8 text of public words; the path is relative to this file.")
        })?;
        Vocabulary::words(tokenizer.words(&text))
    };
    if vocabulary.is_empty() || vocabulary.len() > MOST_WORDS {
        return Err(item
            .refuse(format!(
                "{} words; between 1 and {MOST_WORDS} are accepted",
                vocabulary.len()
            ))
            .accepting(fix));
    }
    Ok(vocabulary)
}

/// The text of a word file, without byte order mark.
fn word_file(path: &PathBuf) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|e| e.to_string())?.len();
    if size > MOST_BYTES {
        return Err(format!(
            "it has {size} bytes; at most {MOST_BYTES} are accepted"
        ));
    }
    if std::fs::metadata(path).is_ok_and(|facts| !facts.is_file()) {
        return Err("it is not a regular file".to_owned());
    }
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

/// The schema with one more number per text, so that formulas can name the text itself.
pub(crate) fn with_texts<'a>(schema: &Schema, names: impl Iterator<Item = &'a str>) -> Schema {
    let mut columns = schema.columns.clone();
    columns.extend(names.map(|name| Column {
        name: name.to_owned(),
        kind: Kind::Integer { lower: 0, upper: 1 },
        missing: Missing::Drop,
    }));
    Schema { columns }
}

/// The schema with the texts themselves at the end.
pub(crate) fn named(schema: &Schema, tokens: &[Tokens]) -> Schema {
    with_texts(schema, tokens.iter().map(|t| t.column.name.as_str()))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use ::parquet::arrow::ArrowWriter;
    use arrow::array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
    use arrow::datatypes::{DataType, Field, Schema as ArrowSchema};
    use proptest::prelude::*;
    use reticent_mechanisms::rows::Cells;
    use reticent_mechanisms::source::{Order, RowSource};
    use tempfile::TempDir;

    use super::*;
    use crate::books;
    use crate::dataset::Dataset;

    fn declared(dir: &TempDir, file: &str, keys: &str) -> Result<Dataset, Refusal> {
        let text = format!(
            "version = 1\nid = \"t\"\ndata_version = \"1\"\nsource = {{ path = \"{file}\" }}\nneighbours = \"add_remove\"\n\
             [budget]\nepsilon = 1\n[ledger]\npath = \"t.ledger\"\n[columns.before]\ntype = \"boolean\"\nmissing = \"drop\"\n\
             [columns.text]\ntype = \"tokens\"\n{keys}\n[columns.after]\ntype = \"integer\"\nlower = 0\nupper = 9\nmissing = \"drop\"\n"
        );
        Dataset::parse(&text, &dir.path().join("dataset.toml"))
    }

    const WORDS: &str = "most = 2\nwords = [\"Free\", \"win\", \"lunch\"]";

    /// Slots and the plain columns beside them, in file order.
    fn rows(dataset: &Dataset, order: Order) -> Vec<Vec<i64>> {
        let source = books::files(dataset).unwrap();
        let all: Vec<usize> = (0..dataset.schema.columns.len()).collect();
        let out = Mutex::new(Vec::new());
        source
            .visit(&all, order, &|batch| {
                let cell = |c: usize, r: usize| match batch.column(c) {
                    Cells::Integer(v) => v[r],
                    Cells::Code(v) => i64::from(v[r]),
                    other => panic!("{other:?}"),
                };
                let mut out = out.lock().unwrap();
                for r in 0..batch.rows() {
                    out.push(all.iter().map(|c| cell(*c, r)).collect());
                }
            })
            .unwrap();
        let mut out = out.into_inner().unwrap();
        if order == Order::Any {
            out.sort();
        }
        out
    }

    fn csv_of(keys: &str, bytes: &[u8]) -> Vec<Vec<i64>> {
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join("t.csv"), bytes).unwrap();
        rows(&declared(&dir, "t.csv", keys).unwrap(), Order::File)
    }

    #[test]
    fn slots_depend_on_the_record_alone() {
        let lines: [(&[u8], [i64; 2]); 9] = [
            (b"", [3, 3]),                                // empty
            (b"\"\"", [3, 3]),                            // quoted and empty
            (b"nothing known here", [3, 3]),              // no known word
            (b"WIN win, Win!", [1, 3]),                   // duplicates; the comma splits the cell
            (b"\"lunch, free; lunch free win\"", [2, 0]), // more than `most`
            (b"free", [0, 3]),
            (b"\xff\xfefree\xfd", [0, 3]), // not UTF-8
            (b"NA", [3, 3]),
            (b"lunch-win", [2, 1]),
        ];
        let mut all = b"after,text,before\n".to_vec();
        let mut expected = Vec::new();
        for (i, (text, slots)) in lines.iter().enumerate() {
            let i = i64::try_from(i).unwrap();
            let line = [format!("{i},").as_bytes(), text, b",true\n"].concat();
            // The record alone gives the same row as among the others.
            let alone = csv_of(WORDS, &[b"after,text,before\n", &line[..]].concat());
            assert_eq!(alone[0][1..], [slots[0], slots[1], i]);
            expected.extend(alone);
            all.extend(line);
        }
        assert_eq!(csv_of(WORDS, &all), expected);
        // a record too short to have a text
        assert_eq!(csv_of(WORDS, b"after,text,before\n7\n")[0][1..], [3, 3, 7]);
    }

    #[test]
    fn csv_and_parquet_agree() {
        let texts: Vec<Option<Vec<u8>>> = (0..9000u32)
            .map(|i| match i % 5 {
                0 => None,
                1 => Some(format!("free {i} lunch").into_bytes()),
                2 => Some(b"\xffwin \xc3\x28 lunch free".to_vec()),
                3 => Some(Vec::new()),
                _ => Some(b"none of these".to_vec()),
            })
            .collect();
        let dir = TempDir::new().unwrap();
        let mut csv = b"before,text,after\n".to_vec();
        for (i, text) in texts.iter().enumerate() {
            csv.extend(b"false,");
            csv.extend(text.iter().flatten());
            csv.extend(format!(",{}\n", i % 10).into_bytes());
        }
        std::fs::write(dir.path().join("t.csv"), csv).unwrap();
        let fields = vec![
            Field::new("before", DataType::Utf8, true),
            Field::new("text", DataType::Binary, true),
            Field::new("after", DataType::Utf8, true),
        ];
        let after: Vec<String> = (0..texts.len()).map(|i| (i % 10).to_string()).collect();
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec!["false"; texts.len()])),
            Arc::new(texts.iter().map(Option::as_deref).collect::<BinaryArray>()),
            Arc::new(StringArray::from(after)),
        ];
        let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), arrays).unwrap();
        let file = std::fs::File::create(dir.path().join("t.parquet")).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        for keys in [
            WORDS,
            "most = 3\nhashed = 64\nstop = \"english\"\nchoice = \"sampled\"",
        ] {
            let of = |file: &str, order| rows(&declared(&dir, file, keys).unwrap(), order);
            assert_eq!(of("t.csv", Order::File).len(), texts.len());
            assert_eq!(of("t.csv", Order::File), of("t.parquet", Order::File));
            assert_eq!(of("t.csv", Order::Any), of("t.parquet", Order::Any));
        }
    }

    #[test]
    fn registration_and_digest() {
        let dir = TempDir::new().unwrap();
        std::fs::write(
            dir.path().join("t.csv"),
            b"before,text,after\ntrue,free lunch,1\nfalse,,2\n",
        )
        .unwrap();
        std::fs::write(dir.path().join("w.txt"), "\u{feff}free win\nlunch don't\n").unwrap();
        let by_file = declared(&dir, "t.csv", "most = 2\nwords = \"w.txt\"").unwrap();
        assert_eq!(
            by_file.tokens[0].column.vocabulary.names(),
            ["free", "win", "lunch", "don", "t"]
        );
        let (report, _) = books::register(&by_file).unwrap();
        assert_eq!((report.rows, report.total_errors), (2, 0));
        assert!(books::ledger(&by_file).is_ok());
        // another word in the file is another declaration
        std::fs::write(dir.path().join("w.txt"), "free win lunch don u").unwrap();
        let other = declared(&dir, "t.csv", "most = 2\nwords = \"w.txt\"").unwrap();
        assert_eq!(other.schema.digest(), by_file.schema.digest());
        assert!(
            books::ledger(&other)
                .err()
                .map(|e| e.to_string())
                .unwrap()
                .contains("not what was registered")
        );
    }

    #[test]
    fn refusals_name_line_key_value_and_fix() {
        let dir = TempDir::new().unwrap();
        for (keys, parts) in [
            (
                "words = [\"a\"]",
                &["line 13", "columns.text", "`most` is missing", "most = 20"][..],
            ),
            (
                "most = 0\nhashed = 8",
                &["line 15", "columns.text.most = 0", "between 1 and 1000"],
            ),
            ("most = 2", &["line 13", "which words", "hashed = 4096"]),
            (
                "most = 2\nhashed = 1",
                &["line 16", "columns.text.hashed = 1"],
            ),
            (
                "most = 2\nhashed = 8\nwords = [\"a\"]",
                &["line 17", "exclude each other"],
            ),
            (
                "most = 2\nwords = [\"two words\"]",
                &["line 16", "two words", "not one word"],
            ),
            (
                "most = 2\nstop = \"english\"\nwords = [\"the\"]",
                &["line 17", "the", "stop words"],
            ),
            ("most = 2\nwords = []", &["line 16", "0 words"]),
            (
                "most = 2\nwords = \"absent.txt\"",
                &[
                    "line 16",
                    "absent.txt",
                    "cannot be read",
                    "relative to this file",
                ],
            ),
            (
                "most = 2\nhashed = 8\nstop = \"french\"",
                &["line 17", "columns.text.stop", "\"english\""],
            ),
            (
                "most = 2\nhashed = 8\nlevels = [\"a\"]",
                &["line 17", "unknown key"],
            ),
            (
                "most = 2\nhashed = 8\n[columns.\"text.1\"]\ntype = \"id\"",
                &["line 17", "declared twice"],
            ),
            (
                "most = 2\nhashed = 8\nchoice = \"last\"",
                &["line 17", "\"sampled\""],
            ),
        ] {
            let message = declared(&dir, "t.csv", keys).unwrap_err().to_string();
            assert!(message.contains("dataset.toml"), "{message}");
            for part in parts {
                assert!(
                    message.contains(part),
                    "{keys:?} should say {part:?}: {message}"
                );
            }
        }
    }

    #[test]
    fn mocks_can_be_read() {
        let dir = TempDir::new().unwrap();
        let dataset = declared(&dir, "t.csv", WORDS).unwrap();
        let mut out = Vec::new();
        crate::mock::write(&dataset, 50, 1, &mut out).unwrap();
        std::fs::write(dir.path().join("t.csv"), out).unwrap();
        let rows = rows(&dataset, Order::File);
        assert_eq!(rows.len(), 50);
        assert!(rows.iter().any(|r| r[1] < 3) && rows.iter().any(|r| r[2] == 3));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn odd_texts_never_fail(texts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..4)) {
            let dir = TempDir::new().unwrap();
            let dataset = declared(&dir, "t.csv", WORDS).unwrap();
            let column = &dataset.tokens[0].column;
            for text in &texts {
                let slots: Vec<i64> = column.slots(text).collect();
                prop_assert_eq!(slots.len(), 2);
                prop_assert!(slots.iter().all(|s| (0..=3).contains(s)));
                prop_assert!(slots[0] == 3 || slots[0] != slots[1]);
            }
            let mut csv = b"after,text,before\n".to_vec();
            let quoted = |text: &Vec<u8>| text.iter().flat_map(|b| vec![*b; if *b == b'"' { 2 } else { 1 }]).collect();
            for text in &texts {
                csv.extend([b"7,\"".to_vec(), quoted(text), b"\",true\n".to_vec()].concat());
            }
            std::fs::write(dir.path().join("t.csv"), csv).unwrap();
            for (row, text) in rows(&dataset, Order::File).iter().zip(&texts) {
                let alone: Vec<i64> = column.slots(text).collect();
                prop_assert_eq!(row, &[1, alone[0], alone[1], 7]);
            }
        }
    }
}
