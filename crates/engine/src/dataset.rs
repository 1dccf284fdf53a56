//! `dataset.toml`: what the curator declares about a table, once.
//!
//! Everything in a [`Dataset`] is public: bounds, levels, privacy unit, neighbour relation, budget. None
//! of it is ever learned from the data. Cells that mean "missing" are those of `missing_values`, by
//! default the empty cell and `NA` (unless `NA` is a declared level); the empty cell is always missing.
//! Without a `missing` key a missing cell is an error at registration, so nothing is silently replaced.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reticent_accounting::{Cost, Currency, Rational, Relation};
use reticent_mechanisms::rows::{Kind, Schema};
use serde::{Deserialize, Serialize};

use crate::columns::columns;
use crate::document::{self, Item, Section};
use crate::outcome::Refusal;
use crate::parameter::{Delta, Epsilon, Rho};
use crate::tokens::Tokens;

/// The two levels of a `boolean` column; cells such as `TRUE` or `0` are read as one of them.
pub const BOOLEAN_LEVELS: [&str; 2] = ["false", "true"];

/// How a file is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Comma-separated text with a header line; compressed if the name ends in `.gz`.
    Csv,
    /// Apache Parquet.
    Parquet,
}

/// Where the rows are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSpec {
    /// Path or glob as written, relative to the folder of `dataset.toml`.
    pub path: String,
    /// Encoding.
    pub format: Format,
}

/// What one person contributes at most: the thing that is added, removed or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// One row.
    Row,
    /// All rows that share an identifier; the first `max_rows` in file order count.
    Column {
        /// Name of the identifier column.
        name: String,
        /// Its position in the schema.
        column: usize,
        /// Rows of one identifier that count.
        max_rows: u32,
    },
}

impl Unit {
    /// The form used in `release.json` and in request ids.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Row => serde_json::json!("row"),
            Self::Column { name, max_rows, .. } => {
                serde_json::json!({"column": name, "max_rows": max_rows})
            }
        }
    }

    /// Rows one unit contributes at most.
    pub fn max_rows(&self) -> u32 {
        match self {
            Self::Row => 1,
            Self::Column { max_rows, .. } => *max_rows,
        }
    }
}

/// What registration does with a missing cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissingPolicy {
    /// Registration fails and lists the rows.
    Reject,
    /// The record does not take part in releases that use the column.
    Drop,
    /// The cell is read as the declared value (in the schema).
    Impute,
}

/// What registration does with a text that is not a declared level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OtherPolicy {
    /// Registration fails and lists the rows.
    Reject,
    /// The record does not take part in releases that use the column.
    Drop,
    /// The cell counts as this level (in [`Kind::Levels`]).
    Level,
}

/// How odd cells of one column are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Missing cells.
    pub missing: MissingPolicy,
    /// Undeclared texts; of no effect on numeric columns.
    pub other: OtherPolicy,
    /// Texts that mean missing, trimmed; always contains the empty text.
    pub missing_values: Vec<String>,
}

/// The curator's declaration.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The file it was read from.
    pub file: PathBuf,
    /// Name of the data set; with `data_version` the key of the ledger.
    pub id: String,
    /// Version of the data.
    pub data_version: String,
    /// Where the rows are.
    pub source: SourceSpec,
    /// What neighbouring tables are.
    pub neighbours: Relation,
    /// Number of rows of the file; declared exactly under replace-one, absent under add/remove.
    pub rows: Option<u64>,
    /// Privacy unit.
    pub unit: Unit,
    /// Public approximate number of rows, for planning only.
    pub size_hint: Option<u64>,
    /// Public approximate share of positive outcomes, for planning only.
    pub positive_rate: Option<f64>,
    /// Caps per analyst; `default` applies to everyone not named.
    pub analysts: BTreeMap<String, Cost>,
    /// Currency of the budget, for the life of the ledger.
    pub currency: Currency,
    /// The whole budget.
    pub cap: Cost,
    /// Ledger file, resolved against the folder of `dataset.toml`.
    pub ledger: PathBuf,
    /// Whether `run` may register the data set itself: only for data the curator calls public.
    pub auto_register: bool,
    /// The declared columns.
    pub schema: Arc<Schema>,
    /// Reading policy of each column, in schema order.
    pub policies: Vec<Policy>,
    /// Texts of the files whose slots are columns of the schema.
    pub tokens: Vec<Tokens>,
}

impl Dataset {
    /// Reads and checks a `dataset.toml`.
    pub fn load(path: &Path) -> Result<Self, Refusal> {
        Self::parse(&document::load(path)?, path)
    }

    /// Checks the text of a `dataset.toml`; `file` is used for messages and relative paths.
    pub fn parse(text: &str, file: &Path) -> Result<Self, Refusal> {
        document::read(text, file, |top| dataset(top, file))
    }

    /// The folder that relative paths start from.
    pub fn base(&self) -> &Path {
        folder(&self.file)
    }

    /// The pattern of the source and the folder it is looked for in; `$RETICENT_DATA/` at the start stands for the folder of data
    /// that may not be redistributed.
    pub fn source_place(&self) -> Result<(&str, PathBuf), Refusal> {
        let Some(rest) = self.source.path.strip_prefix("$RETICENT_DATA/") else {
            return Ok((&self.source.path, self.base().to_owned()));
        };
        std::env::var_os("RETICENT_DATA")
            .map(|root| (rest, PathBuf::from(root)))
            .ok_or_else(|| {
                Refusal::request("the environment variable RETICENT_DATA is not set")
                    .in_file(&self.file)
                    .for_key("source.path")
                    .accepting("Set it to the folder of the data, or write a path without it.")
            })
    }

    /// Number of distinct records the schema allows, saturating: real and identifier columns count as
    /// unlimited.
    pub fn domain_size(&self) -> u128 {
        self.schema.columns.iter().fold(1u128, |product, column| {
            product.saturating_mul(distinct(&column.kind))
        })
    }
}

/// Number of distinct values of a column kind.
pub(crate) fn distinct(kind: &Kind) -> u128 {
    match kind {
        Kind::Integer { lower, upper } => u128::from(upper.abs_diff(*lower)).saturating_add(1),
        Kind::Levels { levels, .. } => levels.len().max(1) as u128,
        Kind::Real { .. } | Kind::Id => u128::MAX,
    }
}

pub(crate) fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}

fn dataset(top: &mut Section<'_>, file: &Path) -> Result<Dataset, Refusal> {
    version(top)?;
    let id = identifier(&top.need("id", "Name the data set, for example id = \"adult\".")?)?;
    let data_version = identifier(&top.need(
        "data_version",
        "Name the version of the data, for example data_version = \"1996\".",
    )?)?;
    let source = source(&top.need(
        "source",
        "Write source = { path = \"table.csv\", format = \"csv\" }; the path is relative to this file.",
    )?)?;
    let neighbours = top
        .need("neighbours", "Write neighbours = \"add_remove\" or \"replace_one\"; SECURITY.md explains the difference.")?
        .word(&[("add_remove", Relation::AddRemove), ("replace_one", Relation::ReplaceOne)])?;
    let rows = rows(top, neighbours)?;
    let size_hint = positive_count(
        top.get("size_hint"),
        "Write the approximate number of rows, for example 48842.",
    )?;
    let positive_rate = match top.get("positive_rate") {
        None => None,
        Some(item) => {
            let fix = "Write a share between 0 and 1, for example positive_rate = 0.24.";
            let rate = item.real(fix)?;
            if rate > 0.0 && rate < 1.0 {
                Some(rate)
            } else {
                return Err(item
                    .refuse("must lie strictly between 0 and 1")
                    .accepting(fix));
            }
        }
    };
    let budget_fix = "Add [budget] with epsilon = \"1\" (or epsilon and delta, or rho).";
    let (currency, cap) = budget(&mut top.need("budget", budget_fix)?.section(budget_fix)?)?;
    let analysts = match top.get("analysts") {
        None => BTreeMap::new(),
        Some(item) => analysts(&item, currency)?,
    };
    let (ledger, auto_register) = ledger(top, file)?;
    let columns_fix = "Declare every column that plans may use, for example [columns.age] with type = \"integer\", lower = 17, upper = 90.";
    let (schema, policies, tokens) = columns(
        &top.need("columns", columns_fix)?,
        folder(file),
        columns_fix,
    )?;
    let unit = match top.get("unit") {
        None => Unit::Row,
        Some(item) => unit(&item, &schema)?,
    };
    top.finish()?;
    Ok(Dataset {
        file: file.to_owned(),
        id,
        data_version,
        source,
        neighbours,
        rows,
        unit,
        size_hint,
        positive_rate,
        analysts,
        currency,
        cap,
        ledger,
        auto_register,
        schema: Arc::new(schema),
        policies,
        tokens,
    })
}

/// The format version of a file; only 1 exists.
pub(crate) fn version(top: &mut Section<'_>) -> Result<(), Refusal> {
    let fix = "Write version = 1.";
    let item = top.need("version", fix)?;
    match item.integer(0, i64::MAX, fix)? {
        1 => Ok(()),
        _ => Err(item
            .refuse("this program reads version 1 of the format")
            .accepting(fix)),
    }
}

fn identifier(item: &Item<'_>) -> Result<String, Refusal> {
    let fix = "Write a short text without line breaks.";
    let text = item.name(fix)?;
    if text.trim().is_empty() || text.chars().count() > 200 || text.chars().any(char::is_control) {
        return Err(item
            .refuse("must be a non-empty text of at most 200 characters")
            .accepting(fix));
    }
    Ok(text)
}

fn source(item: &Item<'_>) -> Result<SourceSpec, Refusal> {
    let fix = "Write source = { path = \"table.csv\", format = \"csv\" }.";
    let mut section = item.section(fix)?;
    let path_item = section.need("path", fix)?;
    let path = path_item.text(fix)?.to_owned();
    if path.trim().is_empty() || path.contains('\0') {
        return Err(path_item.refuse("the path is empty").accepting(fix));
    }
    let format = match section.get("format") {
        Some(f) => f.word(&[("csv", Format::Csv), ("parquet", Format::Parquet)])?,
        None => match format_of(&path) {
            Some(f) => f,
            None => {
                return Err(section
                    .refuse(format!(
                        "the format of {path:?} cannot be told from its name"
                    ))
                    .accepting("Add format = \"csv\" or format = \"parquet\"."));
            }
        },
    };
    section.finish()?;
    Ok(SourceSpec { path, format })
}

/// The format a file name stands for.
pub(crate) fn format_of(path: &str) -> Option<Format> {
    let name = path.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    match name.rsplit_once('.') {
        Some((_, "csv")) => Some(Format::Csv),
        Some((_, "parquet")) => Some(Format::Parquet),
        _ => None,
    }
}

fn rows(top: &mut Section<'_>, neighbours: Relation) -> Result<Option<u64>, Refusal> {
    let fix = "Write the exact number of rows of the file, for example rows = 48842.";
    let rows = positive_count(top.get("rows"), fix)?;
    match (neighbours, rows) {
        (Relation::ReplaceOne, None) => Err(top
            .refuse("the key `rows` is missing: under replace_one the number of rows is public and must be declared")
            .accepting(fix)),
        (Relation::AddRemove, Some(_)) => {
            let line = top.line_of("rows");
            Err(top
                .refuse("under add_remove the number of rows is private")
                .at_line(line)
                .for_key("rows")
                .accepting("Remove it; an approximate public number may be given as size_hint."))
        }
        (_, rows) => Ok(rows),
    }
}

fn positive_count(item: Option<Item<'_>>, fix: &str) -> Result<Option<u64>, Refusal> {
    item.map(|i| i.integer(1, i64::MAX, fix).map(i64::unsigned_abs))
        .transpose()
}

/// Reads `epsilon`, `epsilon` and `delta`, or `rho`.
fn budget(section: &mut Section<'_>) -> Result<(Currency, Cost), Refusal> {
    let epsilon = section.get("epsilon").map(|i| epsilon(&i)).transpose()?;
    let delta = section.get("delta").map(|i| delta(&i)).transpose()?;
    let rho = section.get("rho").map(|i| rho(&i)).transpose()?;
    section.finish()?;
    let value = |r: &Rational| r.clone();
    match (epsilon, delta, rho) {
        (Some(e), None, None) => Ok((Currency::Pure, Cost::pure(value(e.rational())))),
        (Some(e), Some(d), None) => Ok((
            Currency::Approximate,
            Cost::approximate(value(e.rational()), value(d.rational())),
        )),
        (None, None, Some(r)) => Ok((Currency::Concentrated, Cost::pure(value(r.rational())))),
        _ => Err(section
            .refuse("a budget is given in exactly one currency")
            .accepting(
                "Write epsilon = \"1\"; or epsilon = \"1\" and delta = \"1e-7\"; or rho = \"0.5\".",
            )),
    }
}

/// A privacy-loss bound, refused unless positive and finite.
pub(crate) fn epsilon(item: &Item<'_>) -> Result<Epsilon, Refusal> {
    let fix = "Write a positive number, for example epsilon = \"0.5\".";
    Epsilon::new(item.rational(fix)?)
        .map_err(|_| item.refuse("must be greater than 0").accepting(fix))
}

/// A failure probability, refused unless strictly between 0 and 1.
pub(crate) fn delta(item: &Item<'_>) -> Result<Delta, Refusal> {
    let fix =
        "Write a small probability, well below 1 / number of rows, for example delta = \"1e-7\".";
    Delta::new(item.rational(fix)?).map_err(|_| {
        item.refuse("must lie strictly between 0 and 1")
            .accepting(fix)
    })
}

/// A zero-concentrated loss, refused unless positive and finite.
pub(crate) fn rho(item: &Item<'_>) -> Result<Rho, Refusal> {
    let fix = "Write a positive number, for example rho = \"0.5\".";
    Rho::new(item.rational(fix)?).map_err(|_| item.refuse("must be greater than 0").accepting(fix))
}

fn analysts(item: &Item<'_>, currency: Currency) -> Result<BTreeMap<String, Cost>, Refusal> {
    let fix = "Write analysts = { default = { epsilon = \"4\" } }.";
    let mut caps = BTreeMap::new();
    for (name, cap) in item.section(fix)?.all() {
        let (own, cost) = budget(&mut cap.section(fix)?)?;
        if own != currency {
            return Err(cap
                .refuse(format!(
                    "an analyst's cap must be in the currency of the budget, which is {currency}"
                ))
                .accepting("Use the same keys as in [budget]."));
        }
        caps.insert(name, cost);
    }
    Ok(caps)
}

fn ledger(top: &mut Section<'_>, file: &Path) -> Result<(PathBuf, bool), Refusal> {
    let fix = "Add [ledger] with path = \"data.ledger\"; the path is relative to this file.";
    let mut section = top.need("ledger", fix)?.section(fix)?;
    let item = section.need("path", fix)?;
    let path = item.text(fix)?;
    if path.trim().is_empty() || path.contains('\0') {
        return Err(item.refuse("the path is empty").accepting(fix));
    }
    let path = folder(file).join(path);
    let auto = section
        .get("auto_register")
        .map(|i| i.truth())
        .transpose()?
        .unwrap_or(false);
    section.finish()?;
    Ok((path, auto))
}

fn unit(item: &Item<'_>, schema: &Schema) -> Result<Unit, Refusal> {
    let fix = "Write unit = \"row\", or unit = { column = \"person\", max_rows = 4 }.";
    if !item.is_table() {
        return item
            .word(&[("row", Unit::Row.max_rows())])
            .map(|_| Unit::Row)
            .map_err(|r| r.accepting(fix));
    }
    let mut section = item.section(fix)?;
    let column_item = section.need("column", fix)?;
    let name = column_item.text(fix)?.to_owned();
    let position = schema
        .position(&name)
        .filter(|p| schema.columns.get(*p).is_some_and(|c| c.kind == Kind::Id));
    let Some(column) = position else {
        return Err(column_item
            .refuse("the privacy unit needs an identifier column")
            .accepting(format!(
                "Declare [columns.{}] with type = \"id\".",
                toml_key(&name)
            )));
    };
    let max_rows = section.need("max_rows", fix)?.count(1, 1_000_000, fix)?;
    section.finish()?;
    Ok(Unit::Column {
        name,
        column,
        max_rows,
    })
}

/// A key as TOML writes it: bare if it may be, else quoted.
pub(crate) fn toml_key(name: &str) -> String {
    let bare = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare {
        name.to_owned()
    } else {
        toml_text(name)
    }
}

/// A text as TOML writes it.
pub(crate) fn toml_text(text: &str) -> String {
    // The escapes of JSON are those of TOML, which also asks for that of DEL; a key may not have several lines.
    serde_json::Value::from(text)
        .to_string()
        .replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reticent_mechanisms::rows::Missing;

    use super::*;

    /// Keys and texts are read as what was written, whatever is in them.
    #[test]
    fn names_are_quoted() {
        for name in [
            "a\nb", "c\"d", "e\\f", "g\u{7f}", "h\r\t", "ü", "", "x y", "x-y",
        ] {
            let text = format!("{} = {}", toml_key(name), toml_text(name));
            let table: toml::Table = text.parse().unwrap();
            assert_eq!(table[name].as_str(), Some(name), "{text}");
        }
    }

    /// The example of the format's documentation.
    const ADULT: &str = r#"
version = 1
id = "adult"                     # ledger key, together with data_version
data_version = "1996"
source = { path = "adult.csv.gz", format = "csv" }
neighbours = "add_remove"
unit = "row"
size_hint = 48842
positive_rate = 0.24
analysts = { default = { epsilon = "4" } }
[budget]
epsilon = "10"
[ledger]
path = "adult.ledger"
auto_register = true
[columns.age]
type = "integer"
lower = 17
upper = 90
missing = "drop"
[columns.income]
type = "text"
levels = ["<=50K", ">50K"]
missing_values = ["", "?"]
"#;

    fn parse(text: &str) -> Result<Dataset, Refusal> {
        Dataset::parse(text, Path::new("data/dataset.toml"))
    }

    fn refused(from: &str, to: &str) -> String {
        assert!(ADULT.contains(from), "{from}");
        parse(&ADULT.replacen(from, to, 1))
            .expect_err(to)
            .to_string()
    }

    #[test]
    fn the_documented_example_is_read_as_documented() {
        let d = parse(ADULT).unwrap();
        assert_eq!((d.id.as_str(), d.data_version.as_str()), ("adult", "1996"));
        assert_eq!(d.source.format, Format::Csv);
        assert_eq!(
            d.source_place().unwrap(),
            ("adult.csv.gz", Path::new("data").to_owned())
        );
        assert_eq!(d.ledger, Path::new("data/adult.ledger"));
        assert_eq!((d.neighbours, d.rows), (Relation::AddRemove, None));
        assert_eq!(
            (d.currency, d.cap.amount.clone()),
            (Currency::Pure, Rational::from(10))
        );
        assert_eq!(d.analysts["default"], Cost::pure(Rational::from(4)));
        assert_eq!((d.size_hint, d.positive_rate), (Some(48842), Some(0.24)));
        assert!(d.auto_register);
        let age = &d.schema.columns[0];
        assert_eq!(
            age.kind,
            Kind::Integer {
                lower: 17,
                upper: 90
            }
        );
        assert_eq!(d.policies[0].missing, MissingPolicy::Drop);
        assert_eq!(d.policies[0].missing_values, ["", "NA"]);
        assert_eq!(d.policies[1].missing, MissingPolicy::Reject);
        assert_eq!(d.policies[1].other, OtherPolicy::Reject);
        assert_eq!(d.policies[1].missing_values, ["", "?"]);
        assert_eq!(d.domain_size(), 148);
        assert_eq!(d.unit.to_json(), serde_json::json!("row"));
    }

    #[test]
    #[allow(clippy::too_many_lines, reason = "a table of cases")]
    fn every_refusal_names_line_key_and_fix() {
        for (from, to, parts) in [
            (
                "version = 1\n",
                "version = 2\n",
                &["line 2", "version = 2"][..],
            ),
            (
                "lower = 17\n",
                "",
                &[
                    "line 16",
                    "columns.age",
                    "`lower` is missing",
                    "never from the data",
                ],
            ),
            ("upper = 90", "upper = 17", &["line 19", "lower < upper"]),
            ("upper = 90", "upper = 3", &["line 19", "lower < upper"]),
            (
                "upper = 90",
                "upper = inf",
                &["line 19", "columns.age.upper = inf", "not a finite number"],
            ),
            ("upper = 90", "upper = nan", &["not a finite number"]),
            ("upper = 90", "upper = 90.5", &["whole number"]),
            ("upper = 90", "uper = 90", &["`upper` is missing"]),
            (
                "missing = \"drop\"",
                "mising = \"drop\"",
                &["line 20", "unknown key", "Did you mean `missing`?"],
            ),
            (
                "missing = \"drop\"",
                "missing = \"dropp\"",
                &["Did you mean \"drop\"?"],
            ),
            (
                "missing = \"drop\"",
                "missing = \"impute\"",
                &["`impute` is missing", "public value"],
            ),
            (
                "missing = \"drop\"",
                "missing = \"impute\"\nimpute = 91",
                &["line 21", "between 17 and 90"],
            ),
            ("missing = \"drop\"", "impute = 40", &["no effect"]),
            ("[\"<=50K\", \">50K\"]", "[]", &["line 23", "between 1 and"]),
            ("[\"<=50K\", \">50K\"]", "[\"a\", \"a\"]", &["listed twice"]),
            (
                "[\"<=50K\", \">50K\"]",
                "[\"a\", \" b\"]",
                &["start or end with space"],
            ),
            ("[\"\", \"?\"]", "[\">50K\"]", &["also a declared level"]),
            (
                "type = \"text\"",
                "type = \"string\"",
                &["line 22", "\"text\""],
            ),
            (
                "levels = ",
                "other = \">50\"\nlevels = ",
                &["line 23", "Did you mean \">50K\"?"],
            ),
            (
                "epsilon = \"10\"",
                "epsilon = 0",
                &["line 12", "budget.epsilon = 0", "greater than 0"],
            ),
            ("epsilon = \"10\"", "epsilon = -1", &["greater than 0"]),
            (
                "epsilon = \"10\"",
                "epsilon = nan",
                &["not a finite number"],
            ),
            (
                "epsilon = \"10\"",
                "epsilon = \"ten\"",
                &["not a finite number"],
            ),
            (
                "epsilon = \"10\"",
                "epsilon = \"10\"\ndelta = 1",
                &["strictly between 0 and 1"],
            ),
            (
                "epsilon = \"10\"",
                "epsilon = \"10\"\nrho = 1",
                &["exactly one currency"],
            ),
            ("epsilon = \"10\"", "delta = 0.1", &["exactly one currency"]),
            (
                "{ epsilon = \"4\" }",
                "{ rho = \"4\" }",
                &["line 10", "currency of the budget"],
            ),
            (
                "add_remove",
                "replace_one",
                &["`rows` is missing", "rows = 48842"],
            ),
            (
                "size_hint = 48842",
                "rows = 48842",
                &["line 8", "private", "size_hint"],
            ),
            ("add_remove", "addremove", &["Did you mean \"add_remove\"?"]),
            (
                "unit = \"row\"",
                "unit = { column = \"person\", max_rows = 2 }",
                &["[columns.person]", "type = \"id\""],
            ),
            (
                "unit = \"row\"",
                "unit = { column = \"age\", max_rows = 2 }",
                &["identifier column"],
            ),
            (
                "positive_rate = 0.24",
                "positive_rate = 1",
                &["strictly between 0 and 1"],
            ),
            (
                "adult.csv.gz\", format = \"csv\"",
                "adult.dat\"",
                &["format", "cannot be told"],
            ),
            (
                "[columns.income]",
                "[columns.age]",
                &["line 21", "not valid TOML"],
            ),
            (
                "[columns.income]",
                "[columns.\" age\"]",
                &["start or end with space"],
            ),
            (
                "[ledger]\npath = \"adult.ledger\"",
                "[ledger]",
                &["line 13", "`path` is missing"],
            ),
            ("id = \"adult\"  ", "id = \"\"", &["non-empty"]),
            ("[budget]", "[budgte]", &["`budget` is missing"]),
        ] {
            let message = refused(from, to);
            assert!(message.starts_with("data/dataset.toml"), "{message}");
            for part in parts {
                assert!(
                    message.contains(part),
                    "{to:?} should say {part:?}: {message}"
                );
            }
            for internal in ["Some(", "DeValue", "Spanned", "RBig", "{}"] {
                assert!(!message.contains(internal), "{message}");
            }
        }
    }

    #[test]
    fn numbers_may_be_written_as_numbers_or_texts() {
        for (from, to) in [
            ("epsilon = \"10\"", "epsilon = 10"),
            ("epsilon = \"10\"", "epsilon = 10.0"),
            ("lower = 17", "lower = \"17\""),
            ("lower = 17", "lower = 17.0"),
            ("size_hint = 48842", "size_hint = 48_842"),
            ("data_version = \"1996\"", "data_version = 1996"),
        ] {
            let d = parse(&ADULT.replacen(from, to, 1)).unwrap_or_else(|e| panic!("{to}: {e}"));
            assert_eq!(d.cap.amount, Rational::from(10));
            assert_eq!(
                d.schema.columns[0].kind,
                Kind::Integer {
                    lower: 17,
                    upper: 90
                }
            );
        }
        let tenth = parse(&ADULT.replacen("\"10\"", "0.1", 1)).unwrap();
        assert_eq!(
            tenth.cap.amount,
            Rational::from_parts(1.into(), 10_u8.into())
        );
    }

    #[test]
    fn units_policies_and_relations() {
        let text = ADULT
            .replace("add_remove\"", "replace_one\"\nrows = 48842")
            .replace(
                "unit = \"row\"",
                "unit = { column = \"person\", max_rows = 4 }",
            )
            .replace("missing = \"drop\"", "missing = \"impute\"\nimpute = 40")
            + "other = \"<=50K\"\n[columns.person]\ntype = \"id\"\n[columns.flag]\ntype = \"boolean\"\nmissing = \"impute\"\nimpute = true\n\
               [columns.na]\ntype = \"text\"\nlevels = [\"NA\", 1, true]\n";
        let d = parse(&text).unwrap();
        assert_eq!(d.rows, Some(48842));
        assert_eq!(
            d.unit,
            Unit::Column {
                name: "person".into(),
                column: 2,
                max_rows: 4
            }
        );
        assert_eq!(d.schema.columns[0].missing, Missing::Impute(40.0));
        assert_eq!(d.policies[1].other, OtherPolicy::Level);
        assert!(matches!(
            &d.schema.columns[1].kind,
            Kind::Levels { other: Some(0), .. }
        ));
        let flag = &d.schema.columns[3];
        assert!(matches!(&flag.kind, Kind::Levels { levels, .. } if levels == &BOOLEAN_LEVELS));
        assert_eq!(flag.missing, Missing::Impute(1.0));
        // A declared level is a level, not a sign of absence; numbers and truth values stand for text.
        assert_eq!(d.policies[4].missing_values, [""]);
        assert!(
            matches!(&d.schema.columns[4].kind, Kind::Levels { levels, .. } if levels == &["NA", "1", "true"])
        );
        // Order is that of the file, not of the alphabet.
        let names: Vec<&str> = d.schema.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["age", "income", "person", "flag", "na"]);
        assert_eq!(d.domain_size(), u128::MAX);
    }

    #[test]
    fn currencies() {
        let with = |budget: &str| {
            let text = ADULT
                .replace("epsilon = \"10\"", budget)
                .replace("analysts = { default = { epsilon = \"4\" } }", "");
            parse(&text).unwrap().currency
        };
        assert_eq!(with("epsilon = 1\ndelta = \"1e-7\""), Currency::Approximate);
        assert_eq!(with("rho = \"1/2\""), Currency::Concentrated);
        assert_eq!(with("epsilon = \"1e-9\""), Currency::Pure);
    }

    #[test]
    fn files_that_are_no_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dataset.toml");
        assert!(
            Dataset::load(&path)
                .unwrap_err()
                .to_string()
                .contains("cannot be read")
        );
        std::fs::write(&path, b"version = 1\nid = \"\xff\"").unwrap();
        let message = Dataset::load(&path).unwrap_err().to_string();
        assert!(
            message.contains("line 2") && message.contains("UTF-8"),
            "{message}"
        );
        std::fs::write(&path, format!("\u{feff}{ADULT}").replace('\n', "\r\n")).unwrap();
        assert_eq!(Dataset::load(&path).unwrap().id, "adult");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_gives_a_data_set_or_a_refusal(text in ".{0,200}") {
            let _ = parse(&text).map_err(|e| e.to_string());
        }

        #[test]
        fn any_damage_gives_a_data_set_or_a_refusal(at in 0usize..700, remove in 0usize..20, put in "[\\[\\]{}=\"a-z0-9\\n.-]{0,6}") {
            let mut chars: Vec<char> = ADULT.chars().collect();
            let at = at.min(chars.len());
            let end = (at + remove).min(chars.len());
            chars.splice(at..end, put.chars());
            let text: String = chars.into_iter().collect();
            let _ = parse(&text).map_err(|e| e.to_string());
        }
    }
}
