//! `dataset.toml`: what the curator declares about a table, once.
//!
//! Everything in a [`Dataset`] is public: bounds, levels, privacy unit, neighbour relation, budget. None
//! of it is ever learned from the data. Cells that mean "missing" are those of `missing_values`, by
//! default the empty cell and `NA` (unless `NA` is a declared level); the empty cell is always missing.
//! Without a `missing` key a missing cell is an error at registration, so nothing is silently replaced.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reticent_accounting::{
    Cost, Currency, Delta, Epsilon, Rational, Relation, Rho, rational_to_f64,
};
use reticent_mechanisms::rows::{Column, Kind, Missing, Schema};
use serde::{Deserialize, Serialize};

use crate::document::{self, Item, Section};
use crate::outcome::Refusal;

/// Whole numbers beyond this are not exact as doubles.
const EXACT: i64 = 1 << 53;
const MOST_COLUMNS: usize = 20_000;
const MOST_LEVELS: usize = 1_000_000;
/// The two levels of a `boolean` column, named as R prints them.
pub const BOOLEAN_LEVELS: [&str; 2] = ["FALSE", "TRUE"];

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
    /// The cell is read as the declared value (in [`Column::missing`]).
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

    /// The source pattern made absolute or relative to the current folder; `$RETICENT_DATA/` at the
    /// start stands for the folder of data that may not be redistributed.
    pub fn source_pattern(&self) -> PathBuf {
        if let Some(rest) = self.source.path.strip_prefix("$RETICENT_DATA/")
            && let Some(root) = std::env::var_os("RETICENT_DATA")
        {
            return PathBuf::from(root).join(rest);
        }
        self.base().join(&self.source.path)
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
    let (schema, policies) = columns(&top.need("columns", columns_fix)?, columns_fix)?;
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
    toml::Value::String(text.to_owned()).to_string()
}

fn columns(item: &Item<'_>, fix: &str) -> Result<(Schema, Vec<Policy>), Refusal> {
    let mut section = item.section(fix)?;
    let declared = section.all();
    if declared.is_empty() || declared.len() > MOST_COLUMNS {
        return Err(item
            .refuse(format!(
                "{} columns are declared; between 1 and {MOST_COLUMNS} are accepted",
                declared.len()
            ))
            .accepting(fix));
    }
    let mut columns = Vec::with_capacity(declared.len());
    let mut policies = Vec::with_capacity(declared.len());
    for (name, item) in declared {
        let (column, policy) = column(name, &item, fix)?;
        // TOML refuses the same key twice; names that differ only in surrounding space would still
        // collide, because header cells are trimmed.
        if columns
            .iter()
            .any(|c: &Column| c.name.trim() == column.name.trim())
        {
            return Err(item
                .refuse("a column of this name is declared twice")
                .accepting("Remove one of the two."));
        }
        columns.push(column);
        policies.push(policy);
    }
    Ok((Schema { columns }, policies))
}

#[derive(Clone, Copy, PartialEq)]
enum Type {
    Integer,
    Real,
    Text,
    Boolean,
    Id,
}

fn column(name: String, item: &Item<'_>, fix: &str) -> Result<(Column, Policy), Refusal> {
    if name.trim() != name || name.is_empty() {
        return Err(item
            .refuse("a column name may not be empty or start or end with space")
            .accepting("Header cells are trimmed when read: write the trimmed name."));
    }
    let mut section = item.section(fix)?;
    let words = [
        ("integer", Type::Integer),
        ("real", Type::Real),
        ("text", Type::Text),
        ("boolean", Type::Boolean),
        ("id", Type::Id),
    ];
    let kind = section
        .need(
            "type",
            "Write type = \"integer\", \"real\", \"text\", \"boolean\" or \"id\".",
        )?
        .word(&words)?;
    if kind == Type::Id {
        section.finish().map_err(|r| {
            r.accepting("An id column has no further keys: it is never used as a value.")
        })?;
        let policy = Policy {
            missing: MissingPolicy::Drop,
            other: OtherPolicy::Drop,
            missing_values: vec![String::new()],
        };
        return Ok((
            Column {
                name,
                kind: Kind::Id,
                missing: Missing::Drop,
            },
            policy,
        ));
    }
    let (kind, other) = match kind {
        Type::Integer | Type::Real => (bounds(&mut section, &name, kind)?, OtherPolicy::Drop),
        _ => levels(&mut section, &name, kind == Type::Boolean)?,
    };
    let missing_values = missing_values(&mut section, &kind)?;
    let (missing, policy) = missing(&mut section, &kind)?;
    section.finish()?;
    Ok((
        Column {
            name,
            kind,
            missing,
        },
        Policy {
            missing: policy,
            other,
            missing_values,
        },
    ))
}

fn bounds(section: &mut Section<'_>, name: &str, kind: Type) -> Result<Kind, Refusal> {
    let fix = format!(
        "Declare lower and upper for `{name}` from public knowledge (a codebook, a law, common sense), never from the data; values outside are clamped."
    );
    let kind = if kind == Type::Integer {
        let lower = section.need("lower", &fix)?.integer(-EXACT, EXACT, &fix)?;
        let upper = section.need("upper", &fix)?.integer(-EXACT, EXACT, &fix)?;
        (lower < upper).then_some(Kind::Integer { lower, upper })
    } else {
        let lower = section.need("lower", &fix)?.real(&fix)?;
        let upper = section.need("upper", &fix)?.real(&fix)?;
        // The width must be finite too: scaling divides by it.
        (lower < upper && (upper - lower).is_finite()).then_some(Kind::Real { lower, upper })
    };
    kind.ok_or_else(|| {
        let line = section.line_of("upper");
        section
            .refuse("the bounds must satisfy lower < upper, with a finite difference")
            .at_line(line)
            .accepting("Swap or widen them.")
    })
}

fn levels(
    section: &mut Section<'_>,
    name: &str,
    boolean: bool,
) -> Result<(Kind, OtherPolicy), Refusal> {
    let fix = format!(
        "Declare levels = [\"a\", \"b\"] for `{name}` from public knowledge, the reference level first; undeclared texts go by `other`."
    );
    let mut levels: Vec<String> = Vec::new();
    if boolean && section.get("levels").is_none() {
        levels.extend(BOOLEAN_LEVELS.map(str::to_owned));
    } else {
        let list = section.need("levels", &fix)?;
        let mut seen = std::collections::HashSet::new();
        for item in list.list(&fix)? {
            let level = item.name(&fix)?;
            if level.trim().is_empty() || level.trim() != level {
                return Err(item
                    .refuse("a level may not be empty or start or end with space")
                    .accepting("Cells are trimmed when read and the empty cell means missing: write the trimmed text."));
            }
            if !seen.insert(level.clone()) {
                return Err(item
                    .refuse("this level is listed twice")
                    .accepting("Remove one of the two."));
            }
            levels.push(level);
        }
        if levels.is_empty() || levels.len() > MOST_LEVELS {
            return Err(list
                .refuse(format!("between 1 and {MOST_LEVELS} levels are accepted"))
                .accepting(fix));
        }
        if boolean && levels.len() != 2 {
            return Err(list
                .refuse("a boolean column has exactly two levels")
                .accepting(
                    "List the two texts, the one for false first, or use type = \"text\".",
                ));
        }
    }
    let (policy, other) = match section.get("other") {
        None => (OtherPolicy::Reject, None),
        Some(item) => other(&item, &levels)?,
    };
    Ok((Kind::Levels { levels, other }, policy))
}

/// What an undeclared text stands for.
fn other(item: &Item<'_>, levels: &[String]) -> Result<(OtherPolicy, Option<u32>), Refusal> {
    let fix = "Write \"reject\", \"drop\" or the name of a declared level.";
    let written = item.name(fix)?;
    match written.as_str() {
        "reject" => return Ok((OtherPolicy::Reject, None)),
        "drop" => return Ok((OtherPolicy::Drop, None)),
        _ => {}
    }
    let index = levels
        .iter()
        .position(|l| *l == written)
        .and_then(|i| u32::try_from(i).ok());
    if index.is_some() {
        return Ok((OtherPolicy::Level, index));
    }
    let near = crate::suggest::nearest(&written, levels.iter().map(String::as_str)).map_or_else(
        || fix.to_owned(),
        |n| format!("Did you mean \"{n}\"? {fix}"),
    );
    Err(item.refuse("not a declared level").accepting(near))
}

fn missing_values(section: &mut Section<'_>, kind: &Kind) -> Result<Vec<String>, Refusal> {
    let is_level = |text: &str| matches!(kind, Kind::Levels { levels, .. } if levels.iter().any(|l| l == text));
    let mut texts = vec![String::new()];
    match section.get("missing_values") {
        None => {
            if !is_level("NA") {
                texts.push("NA".to_owned());
            }
        }
        Some(item) => {
            let fix = "Write a list of texts, for example missing_values = [\"\", \"?\"].";
            for element in item.list(fix)? {
                let text = element.name(fix)?.trim().to_owned();
                if is_level(&text) {
                    return Err(element
                        .refuse("this text is also a declared level")
                        .accepting("Remove it from one of the two lists."));
                }
                if !texts.contains(&text) {
                    texts.push(text);
                }
            }
        }
    }
    Ok(texts)
}

fn missing(section: &mut Section<'_>, kind: &Kind) -> Result<(Missing, MissingPolicy), Refusal> {
    let words = [
        ("reject", MissingPolicy::Reject),
        ("drop", MissingPolicy::Drop),
        ("impute", MissingPolicy::Impute),
    ];
    let policy = section
        .get("missing")
        .map(|i| i.word(&words))
        .transpose()?
        .unwrap_or(MissingPolicy::Reject);
    if policy != MissingPolicy::Impute {
        if let Some(item) = section.get("impute") {
            return Err(item
                .refuse("has no effect without missing = \"impute\"")
                .accepting("Add it or remove this key."));
        }
        return Ok((Missing::Drop, policy));
    }
    let fix = "missing = \"impute\" needs a public value within the declared bounds or levels, for example impute = 40.";
    let item = section.need("impute", fix)?;
    let value = match kind {
        Kind::Levels { levels, .. } => {
            let text = item.name(fix)?;
            levels
                .iter()
                .position(|l| {
                    *l == text || (levels == &BOOLEAN_LEVELS && l.eq_ignore_ascii_case(&text))
                })
                .and_then(|i| u32::try_from(i).ok())
                .map(f64::from)
                .ok_or_else(|| item.refuse("not a declared level").accepting(fix))?
        }
        Kind::Integer { lower, upper } => {
            let n = item.integer(*lower, *upper, fix)?;
            rational_to_f64(&Rational::from(n))
        }
        Kind::Real { lower, upper } => {
            let x = item.real(fix)?;
            if x < *lower || x > *upper {
                return Err(item
                    .refuse(format!("lies outside the bounds {lower} to {upper}"))
                    .accepting(fix));
            }
            x
        }
        Kind::Id => 0.0,
    };
    Ok((Missing::Impute(value), policy))
}
