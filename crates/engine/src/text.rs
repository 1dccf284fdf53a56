//! Texts as records of few words: a tokeniser with a public stop list, a public or hashed vocabulary, and files of
//! `label<TAB>text` lines.
//!
//! # Claim
//! What a text becomes depends on that text and on public declarations alone; every text becomes something. Which of its
//! words count is decided inside the record.
//! # Assumptions
//! Stop list, vocabulary, salt and labels are public: chosen without looking at confidential texts.
//! # Checked by
//! `text::tests::{texts_become_slots, words_are_chosen_by_the_record, odd_lines_never_fail}`
//!
//! A text of up to s words is s whole numbers, the numbers of its words; the number of words of the vocabulary stands for
//! "no word". So memory is s numbers per text, whatever the vocabulary.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use reticent_mechanisms::program::Expr;
use reticent_mechanisms::rows::cell::FIELD_CAP;
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, OTHER_CODE, Schema};
use reticent_mechanisms::source::{Memory, SourceError};
use reticent_noise::Noise;
use reticent_statistics::features::Items;
use sha2::{Digest, Sha256};

/// Frequent English words that say little about a text.
pub const ENGLISH: &str = "a about after again all also am an and any are as at be because been before being both but by can \
    could did do does doing down during each few for from further had has have having he her here hers him his how i if in \
    into is it its just me more most my no nor not now of off on once only or other our out over own s same she should so \
    some such t than that the their them then there these they this those through to too under until up very was we were \
    what when where which while who whom why will with would you your yours";

/// Splits texts into words: lower case, runs of letters and digits, without stop words.
#[derive(Clone, Debug, Default)]
pub struct Tokenizer {
    stop: HashSet<String>,
}

impl Tokenizer {
    /// With a list of stop words, separated by white space.
    pub fn new(stop: &str) -> Self {
        Self {
            stop: stop.split_whitespace().map(str::to_lowercase).collect(),
        }
    }

    /// The words of a text, in its order, repetitions included.
    pub fn words<'a>(&'a self, text: &'a str) -> impl Iterator<Item = String> + 'a {
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|w| !w.is_empty())
            .map(str::to_lowercase)
            .filter(|w| !self.stop.contains(w))
    }

    /// The stop words, sorted.
    pub(crate) fn stop_words(&self) -> Vec<&str> {
        let mut words: Vec<&str> = self.stop.iter().map(String::as_str).collect();
        words.sort_unstable();
        words
    }
}

/// Which words there are.
#[derive(Clone, Debug)]
pub enum Vocabulary {
    /// A public list; other words do not count.
    Words(Words),
    /// Buckets by a salted hash: nothing need be known about the words.
    Hashed {
        /// How many.
        buckets: u32,
        /// Public salt.
        salt: String,
    },
}

/// A list of words and their numbers.
#[derive(Clone, Debug)]
pub struct Words {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Vocabulary {
    /// The listed words, numbered in order; repetitions are dropped.
    pub fn words(list: impl IntoIterator<Item = String>) -> Self {
        let (mut names, mut numbers) = (Vec::new(), HashMap::new());
        for word in list {
            let next = u32::try_from(names.len()).unwrap_or(u32::MAX);
            if let std::collections::hash_map::Entry::Vacant(free) = numbers.entry(word) {
                names.push(free.key().clone());
                free.insert(next);
            }
        }
        Self::Words(Words { names, numbers })
    }

    /// What the words are called.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Words(w) => w.names.clone(),
            Self::Hashed { buckets, .. } => (0..*buckets).map(|b| format!("#{b}")).collect(),
        }
    }

    /// Number of words.
    pub fn len(&self) -> u32 {
        match self {
            Self::Words(w) => u32::try_from(w.names.len()).unwrap_or(u32::MAX),
            Self::Hashed { buckets, .. } => *buckets,
        }
    }

    /// A digest of the words in their order, or of salt and number of buckets.
    pub(crate) fn digest(&self) -> String {
        match self {
            Self::Words(w) => {
                let names: Vec<&str> = w.names.iter().map(String::as_str).collect();
                hex(&sha(&names))
            }
            Self::Hashed { buckets, salt } => format!("{buckets} {}", hex(&sha(&[salt]))),
        }
    }

    /// Whether there is no word.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn number(&self, word: &str) -> Option<u32> {
        match self {
            Self::Words(w) => w.numbers.get(word).copied(),
            Self::Hashed { buckets, salt } => {
                let first = digest(&[salt, word]);
                u32::try_from(first.checked_rem(u64::from(*buckets))?).ok()
            }
        }
    }
}

fn sha(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

fn digest(parts: &[&str]) -> u64 {
    sha(parts)
        .iter()
        .take(8)
        .fold(0, |n, b| n << 8 | u64::from(*b))
}

/// Which of a record's distinct words count when it has too many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The first ones of the text.
    First,
    /// A sample, by a hash of the salt, the text and the word.
    Sampled {
        /// Public salt.
        salt: String,
    },
}

/// A column of texts.
#[derive(Clone, Debug)]
pub struct TextColumn {
    /// Its name; its slots are `name.1`, `name.2`, …
    pub name: String,
    /// How texts are split.
    pub tokenizer: Tokenizer,
    /// Which words there are.
    pub vocabulary: Vocabulary,
    /// How many distinct words of a text count, s.
    pub most: usize,
    /// Which.
    pub choice: Choice,
}

impl TextColumn {
    /// The numbers of the words of a text that count: distinct, at most `most`.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let words = self.tokenizer.words(text);
        let known = words.filter_map(|w| Some((self.vocabulary.number(&w)?, w)));
        match &self.choice {
            Choice::First => {
                let mut out: Vec<u32> = Vec::with_capacity(self.most);
                for (number, _) in known {
                    if out.len() == self.most {
                        break;
                    }
                    if !out.contains(&number) {
                        out.push(number);
                    }
                }
                out
            }
            Choice::Sampled { salt } => {
                let mut all: Vec<(u32, String)> = known.collect();
                all.sort();
                all.dedup_by_key(|w| w.0);
                if all.len() > self.most {
                    // once for all words: a long text of many words takes time in proportion to its length
                    let text = hex(&sha(&[text]));
                    let coin = |w: &(u32, String)| (digest(&[salt, &text, &w.1]), w.0);
                    let mut coins: Vec<(u64, u32)> = all.iter().map(coin).collect();
                    coins.sort_unstable();
                    return coins.iter().take(self.most).map(|c| c.1).collect();
                }
                all.into_iter().map(|w| w.0).collect()
            }
        }
    }

    /// The numbers that a stored text puts into its slots: those of its words, then the number of words, which stands for
    /// "no word". Bytes that are no UTF-8 separate words; of a text longer than [`FIELD_CAP`] only the beginning counts.
    pub(crate) fn slots(&self, text: &[u8]) -> impl Iterator<Item = i64> {
        let cut = text.get(..=FIELD_CAP).unwrap_or(text);
        let words = self.encode(&String::from_utf8_lossy(cut));
        let none = self.vocabulary.len();
        let slots = words.into_iter().chain(std::iter::repeat(none));
        slots.take(self.most).map(i64::from)
    }

    /// A fake text: some of the words, each as likely as any other.
    pub(crate) fn mock(&self, noise: &mut dyn Noise) -> String {
        let mut below = |n: u64| noise.bits().checked_rem(n).unwrap_or(0);
        let count = below(
            u64::try_from(self.most)
                .unwrap_or(u64::MAX)
                .saturating_add(1),
        );
        let words = (0..count).map(|_| below(u64::from(self.vocabulary.len())));
        let named = words.map(|n| match &self.vocabulary {
            Vocabulary::Words(w) => {
                let at = usize::try_from(n).unwrap_or(usize::MAX);
                w.names.get(at).cloned().unwrap_or_default()
            }
            Vocabulary::Hashed { .. } => format!("w{n}"),
        });
        named.collect::<Vec<_>>().join(" ")
    }

    /// The declared columns of the slots.
    pub fn columns(&self) -> Vec<Column> {
        let none = self.vocabulary.len();
        (1..=self.most)
            .map(|i| Column {
                name: format!("{}.{i}", self.name),
                kind: Kind::Integer {
                    lower: 0,
                    upper: i64::from(none),
                },
                missing: Missing::Impute(f64::from(none)),
            })
            .collect()
    }

    /// The words as features of a record whose slots start at this schema position.
    pub fn items(&self, first: usize) -> Items {
        let slots = (first..first + self.most).map(Expr::Column).collect();
        Items::slots(self.vocabulary.names(), slots)
    }
}

/// Texts with labels in memory: schema column 0 is the label, the slots follow.
pub struct Labelled {
    /// The declared columns.
    pub schema: Arc<Schema>,
    batch: Vec<i64>,
    labels: Vec<u32>,
    most: usize,
    none: i64,
}

impl Labelled {
    /// No texts yet, of these labels.
    pub fn new(labels: &[&str], column: &TextColumn) -> Self {
        let label = Column {
            name: "label".to_owned(),
            kind: Kind::Levels {
                levels: labels.iter().map(|l| (*l).to_owned()).collect(),
                other: None,
            },
            missing: Missing::Drop,
        };
        let columns = std::iter::once(label).chain(column.columns()).collect();
        Self {
            schema: Arc::new(Schema { columns }),
            batch: Vec::new(),
            labels: Vec::new(),
            most: column.most,
            none: i64::from(column.vocabulary.len()),
        }
    }

    /// Reads lines `label<TAB>text`; a line without a declared label is a record without a label, which does not count.
    ///
    /// # Errors
    /// When the bytes cannot be read.
    pub fn read(
        labels: &[&str],
        column: &TextColumn,
        from: impl Read,
    ) -> Result<Self, std::io::Error> {
        let mut out = Self::new(labels, column);
        let mut reader = BufReader::new(from);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            let text = String::from_utf8_lossy(&line);
            let (label, text) = split(&text);
            let code = labels.iter().position(|l| *l == label);
            let code = code.and_then(|c| u32::try_from(c).ok());
            out.push(code, &column.encode(text));
            line.clear();
        }
        Ok(out)
    }

    /// Reads a file of such lines; gzip by its ending.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn open(labels: &[&str], column: &TextColumn, path: &Path) -> Result<Self, SourceError> {
        let fail = |source| SourceError::Io {
            context: path.display().to_string(),
            source,
        };
        let file = std::fs::File::open(path).map_err(fail)?;
        if path.extension().is_some_and(|e| e == "gz") {
            return Self::read(labels, column, flate2::read::MultiGzDecoder::new(file))
                .map_err(fail);
        }
        Self::read(labels, column, file).map_err(fail)
    }

    /// Adds a record; more than the declared number of words are dropped.
    pub fn push(&mut self, label: Option<u32>, words: &[u32]) {
        self.labels.push(label.unwrap_or(OTHER_CODE));
        let given = words.iter().map(|w| i64::from(*w)).take(self.most);
        let end = self.batch.len() + self.most;
        self.batch.extend(given);
        self.batch.resize(end, self.none);
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// As a source of rows, of those records that `keep` says.
    pub fn source(&self, keep: impl Fn(usize) -> bool) -> Memory {
        const ROWS: usize = 8192;
        let chosen: Vec<usize> = (0..self.len()).filter(|i| keep(*i)).collect();
        let batches = chosen
            .chunks(ROWS)
            .map(|rows| {
                let label = rows.iter().filter_map(|i| self.labels.get(*i).copied());
                let slot = |s: usize| {
                    let cells = rows.iter().map(|i| self.batch.get(i * self.most + s));
                    Cells::Integer(cells.map(|c| c.copied().unwrap_or(self.none)).collect())
                };
                let cells = std::iter::once(Cells::Code(label.collect()));
                Batch::new(rows.len(), cells.chain((0..self.most).map(slot)).collect())
            })
            .collect();
        Memory::new(self.schema.clone(), batches)
    }
}

/// Label and text of a line, without its line end.
fn split(line: &str) -> (&str, &str) {
    let line = line.trim_end_matches(['\n', '\r']);
    line.split_once('\t').unwrap_or((line, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(most: usize, choice: Choice) -> TextColumn {
        TextColumn {
            name: "text".to_owned(),
            tokenizer: Tokenizer::new(ENGLISH),
            vocabulary: Vocabulary::words(["free", "win", "lunch", "5"].map(str::to_owned)),
            most,
            choice,
        }
    }

    #[test]
    fn texts_become_slots() {
        let c = column(2, Choice::First);
        assert_eq!(c.encode("WIN a free-free lunch!"), [1, 0]);
        assert_eq!(c.encode("the unknown"), [0u32; 0]);
        assert_eq!(c.encode("5 wins at LUNCH"), [3, 2]);
        let words: Vec<String> = c
            .tokenizer
            .words("Don't \u{c9}t\u{e9} it's 2-day")
            .collect();
        assert_eq!(words, ["don", "\u{e9}t\u{e9}", "2", "day"]);
        assert_eq!(c.columns().len(), 2);
        assert_eq!(c.items(1).names, ["free", "win", "lunch", "5"]);
        let hashed = Vocabulary::Hashed {
            buckets: 16,
            salt: "s".to_owned(),
        };
        assert_eq!(hashed.len(), 16);
        assert!(hashed.number("anything").is_some_and(|n| n < 16));
    }

    /// The sample depends on the record alone, and another salt gives another.
    #[test]
    fn words_are_chosen_by_the_record() {
        let by = |salt: &str| {
            let salt = salt.to_owned();
            column(2, Choice::Sampled { salt })
        };
        let text = "free lunch win 5";
        let one = by("a").encode(text);
        assert_eq!((one.len(), by("a").encode(text)), (2, one.clone()));
        let others: HashSet<Vec<u32>> = (0..40u8)
            .map(|i| {
                let mut v = by(&i.to_string()).encode(text);
                v.sort_unstable();
                v
            })
            .collect();
        assert_eq!(others.len(), 6);
        // few enough words all count
        assert_eq!(by("a").encode("lunch free lunch"), [0, 2]);
    }

    /// A mebibyte of different words: a second, not the minutes that hashing the text anew for every word would take.
    #[test]
    fn long_texts_are_sampled_in_time() {
        let mut long = column(
            2,
            Choice::Sampled {
                salt: "a".to_owned(),
            },
        );
        long.vocabulary = Vocabulary::Hashed {
            buckets: 1 << 20,
            salt: String::new(),
        };
        let text = (0..150_000).fold(String::new(), |mut text, i| {
            let _ = write!(text, "{i} ");
            text
        });
        let start = std::time::Instant::now();
        assert_eq!(long.encode(&text).len(), 2);
        assert!(start.elapsed().as_secs() < 60);
    }

    #[test]
    fn odd_lines_never_fail() {
        let c = column(3, Choice::First);
        let lines = b"ham\tfree lunch\nspam\twin\r\nneither\twin\nham\n\xff\xfe\tfree\n\n";
        let read = Labelled::read(&["ham", "spam"], &c, &lines[..]).unwrap();
        assert_eq!(read.len(), 6);
        assert_eq!(read.labels, [0, 1, OTHER_CODE, 0, OTHER_CODE, OTHER_CODE]);
        assert_eq!(read.batch[..6], [0, 2, 4, 1, 4, 4]);
        assert!(Labelled::read(&[], &c, &b""[..]).unwrap().is_empty());
        assert!(Labelled::open(&[], &c, Path::new("/nowhere/at.all")).is_err());
    }
}
