//! `plan.toml`: the list of releases an analyst asks for.
//!
//! Parsing needs the plan alone; [`Plan::check`](crate::plan::Plan::check) compares it with a data set.
//! Neither opens the data. A parsed plan keeps its text, so writing it out gives the same bytes.

use std::path::{Path, PathBuf};

use reticent_accounting::{Rational, format_rational};
use serde_json::{Value, json};

use crate::dataset::{self, folder, version};
use crate::document::{self, Item, Section};
use crate::folds::{FoldSpec, expand};
use crate::formula;
pub use crate::kinds::{
    AucSpec, BinnedResidualsSpec, Binning, BoundsSpec, Clip, CrosstabSpec, HistogramSpec, KindSpec,
    LinearSpec, LogisticSpec, MeanSpec, ModelRef, QuantilesSpec, ResidualsSpec, RocSpec,
    RunningTotalSpec, Scaling, SumSpec, TopKSpec,
};
use crate::outcome::Refusal;
use crate::parameter::{Delta, Epsilon, Rho};
use crate::suggest;

const MOST_RELEASES: usize = 10_000;

/// The analyst's request.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The file it was read from.
    pub file: PathBuf,
    /// The text it was read from, byte for byte.
    pub text: String,
    /// Path of the `dataset.toml`, resolved against the folder of the plan.
    pub dataset: PathBuf,
    /// Division of the rows into a training and a test part.
    pub split: Option<SplitSpec>,
    /// Condition that rows must meet (the key `where`), as written.
    pub filter: Option<String>,
    /// Line of the `where` key; 0 without one.
    pub filter_line: u32,
    /// The releases, in order.
    pub releases: Vec<ReleaseSpec>,
}

/// What a split hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SplitKey {
    /// All declared columns (or the unit's identifier, for units with several rows).
    Content,
    /// One column.
    Column(String),
}

/// A record-wise split into `train` and `test`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitSpec {
    /// What is hashed.
    pub by: SplitKey,
    /// Public salt.
    pub salt: String,
    /// Share of the test part: numerator and denominator, in lowest terms.
    pub test: (u32, u32),
    /// Line of the key.
    pub line: u32,
}

/// The privacy loss a release may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetSpec {
    /// ε.
    pub epsilon: Option<Epsilon>,
    /// δ, for releases with Gaussian noise.
    pub delta: Option<Delta>,
    /// ρ.
    pub rho: Option<Rho>,
}

/// One release.
#[derive(Clone, Debug, PartialEq)]
pub struct ReleaseSpec {
    /// Its name in this plan.
    pub id: String,
    /// What is released.
    pub kind: KindSpec,
    /// The part of the split it reads, defaults resolved; `None` means all rows.
    pub part: Option<String>,
    /// The fold it belongs to, if it is part of a cross-validation; then the split is the fold's, and the budget that of the whole.
    pub fold: Option<FoldSpec>,
    /// Its privacy loss.
    pub budget: BudgetSpec,
    /// 0, or the number of a deliberate fresh draw of an otherwise equal release.
    pub repeat: u32,
    /// Line in the plan.
    pub line: u32,
}

impl Plan {
    /// Reads and checks a `plan.toml`.
    pub fn load(path: &Path) -> Result<Self, Refusal> {
        Self::parse(&document::load(path)?, path)
    }

    /// Checks the text of a `plan.toml`; `file` is used for messages and relative paths.
    pub fn parse(text: &str, file: &Path) -> Result<Self, Refusal> {
        document::read(text, file, |top| plan(top, text, file))
    }

    /// The `where` condition in canonical spelling, as request ids contain it.
    pub fn canonical_filter(&self) -> Option<String> {
        self.filter
            .as_ref()
            .map(|f| formula::canonical(f).unwrap_or_else(|_| f.clone()))
    }
}

impl SplitKey {
    /// The form used in request ids.
    pub(crate) fn canonical(&self) -> Value {
        match self {
            Self::Content => json!("content"),
            Self::Column(name) => json!({"column": name}),
        }
    }
}

impl SplitSpec {
    /// The form used in request ids.
    pub fn canonical(&self) -> Value {
        let (n, d) = self.test;
        json!({"by": self.by.canonical(), "salt": self.salt, "test": format!("{n}/{d}")})
    }
}

impl ReleaseSpec {
    /// The release as request ids contain it: all defaults resolved, formulas in canonical spelling,
    /// without its own id and without the names of its inputs (see [`KindSpec::inputs`]: their request
    /// ids enter beside it).
    pub fn canonical(&self) -> Value {
        let mut value = self.kind.canonical();
        if let Value::Object(fields) = &mut value {
            fields.insert("kind".to_owned(), json!(self.kind.name()));
            fields.insert(
                "part".to_owned(),
                json!(self.part.as_deref().unwrap_or("all")),
            );
            fields.insert("budget".to_owned(), self.budget.canonical());
            fields.insert("repeat".to_owned(), json!(self.repeat));
            if let Some(fold) = &self.fold {
                fields.insert("fold".to_owned(), fold.canonical());
            }
        }
        value
    }
}

impl BudgetSpec {
    /// That of what is computed from released values.
    pub(crate) fn none() -> Self {
        Self {
            epsilon: None,
            delta: None,
            rho: None,
        }
    }

    /// The form used in request ids.
    pub fn canonical(&self) -> Value {
        let mut fields = serde_json::Map::new();
        let mut put = |key: &str, value: Option<&Rational>| {
            if let Some(v) = value {
                fields.insert(key.to_owned(), json!(format_rational(v)));
            }
        };
        put("epsilon", self.epsilon.as_ref().map(Epsilon::rational));
        put("delta", self.delta.as_ref().map(Delta::rational));
        put("rho", self.rho.as_ref().map(Rho::rational));
        Value::Object(fields)
    }
}

fn plan(top: &mut Section<'_>, text: &str, file: &Path) -> Result<Plan, Refusal> {
    version(top)?;
    let fix = "Write dataset = \"dataset.toml\"; the path is relative to this file.";
    let dataset_item = top.need("dataset", fix)?;
    let path = dataset_item.text(fix)?;
    if path.trim().is_empty() || path.contains('\0') {
        return Err(dataset_item.refuse("the path is empty").accepting(fix));
    }
    let dataset = folder(file).join(path);
    let split = top.get("split").map(|i| split(&i)).transpose()?;
    let filter_line = top.line_of("where");
    let filter = match top.get("where") {
        None => None,
        Some(item) => Some(formula_text(
            &item,
            "Write a condition, for example where = \"hours > 0\".",
        )?),
    };
    let fix = "Add at least one [[release]] with id, kind and epsilon.";
    let list = top.need("release", fix)?;
    let items = list.list(fix)?;
    if items.is_empty() || items.len() > MOST_RELEASES {
        return Err(list
            .refuse(format!(
                "between 1 and {MOST_RELEASES} releases are accepted"
            ))
            .accepting(fix));
    }
    let mut releases: Vec<ReleaseSpec> = Vec::with_capacity(items.len());
    for item in &items {
        let release = release(item, split.is_some(), &releases, fix)?;
        let more = expand(release, &releases)?;
        releases.extend(more);
        if releases.len() > MOST_RELEASES {
            return Err(list
                .refuse(format!(
                    "with the fits and evaluations of folds these are more than {MOST_RELEASES} releases"
                ))
                .accepting("Ask for fewer folds, or divide the plan."));
        }
    }
    top.finish()?;
    let filter_line = if filter.is_some() { filter_line } else { 0 };
    Ok(Plan {
        file: file.to_owned(),
        text: text.to_owned(),
        dataset,
        split,
        filter,
        filter_line,
        releases,
    })
}

fn split(item: &Item<'_>) -> Result<SplitSpec, Refusal> {
    let fix = "Write split = { test = \"1/3\", by = \"content\", salt = \"1\" }.";
    let mut section = item.section(fix)?;
    let test = section.get("test").map(|i| share(&i)).transpose()?;
    let train = section.get("train").map(|i| share(&i)).transpose()?;
    let test = match (train, test) {
        (None, Some(test)) => test,
        (Some(train), None) => Rational::ONE - train,
        (Some(train), Some(test)) if &train + &test == Rational::ONE => test,
        (Some(_), Some(_)) => {
            return Err(section
                .refuse("the shares of train and test must add up to 1")
                .accepting("Give one of them; the other is the rest."));
        }
        (None, None) => {
            return Err(section
                .refuse("the share of the test part is missing")
                .accepting(fix));
        }
    };
    let by = by_key(&mut section)?;
    let salt = salt_of(&mut section)?;
    section.finish()?;
    let parts = format_fraction(&test);
    let test = parts.ok_or_else(|| {
        item.refuse("the share of the test part needs a denominator below 2^32")
            .accepting("Write for example \"1/3\".")
    })?;
    Ok(SplitSpec {
        by,
        salt,
        test,
        line: item.line(),
    })
}

/// What is hashed: `by = "content"` or a column.
pub(crate) fn by_key(section: &mut Section<'_>) -> Result<SplitKey, Refusal> {
    let fix = "Write by = \"content\" or the name of a column.";
    match section.get("by") {
        None => Ok(SplitKey::Content),
        Some(i) => match i.text(fix)? {
            "content" => Ok(SplitKey::Content),
            "" => Err(i.refuse("names no column").accepting(fix)),
            name => Ok(SplitKey::Column(name.to_owned())),
        },
    }
}

/// The public salt of a hash.
pub(crate) fn salt_of(section: &mut Section<'_>) -> Result<String, Refusal> {
    match section.get("salt") {
        None => Ok("1".to_owned()),
        Some(i) => i.name("Write any short public text, for example salt = \"1\"."),
    }
}

/// A share strictly between 0 and 1.
fn share(item: &Item<'_>) -> Result<Rational, Refusal> {
    let fix = "Write a share between 0 and 1, for example \"1/3\" or 0.25.";
    let value = item.rational(fix)?;
    if value > Rational::ZERO && value < Rational::ONE {
        Ok(value)
    } else {
        Err(item
            .refuse("must lie strictly between 0 and 1")
            .accepting(fix))
    }
}

fn format_fraction(value: &Rational) -> Option<(u32, u32)> {
    let numerator = u32::try_from(value.numerator().clone()).ok()?;
    let denominator = u32::try_from(value.denominator().clone()).ok()?;
    Some((numerator, denominator))
}

/// A formula or expression: a text that can be read at all; names are checked against the schema later.
pub(crate) fn formula_text(item: &Item<'_>, fix: &str) -> Result<String, Refusal> {
    let text = item.text(fix)?;
    formula::canonical(text).map_err(|e| item.refuse(e.to_string()))?;
    Ok(text.to_owned())
}

fn release(
    item: &Item<'_>,
    has_split: bool,
    earlier: &[ReleaseSpec],
    fix: &str,
) -> Result<ReleaseSpec, Refusal> {
    let mut section = item.section(fix)?;
    let line = item.line();
    section.line = line;
    let id = release_id(&section.need("id", "Name the release, for example id = \"income\".")?)?;
    if let Some(other) = earlier.iter().find(|r| r.id == id) {
        let line = section.line_of("id");
        return Err(section
            .refuse(format!(
                "the id \"{id}\" is already used by the release in line {}",
                other.line
            ))
            .at_line(line)
            .for_key("release.id")
            .accepting("Give every release its own id."));
    }
    let kind = KindSpec::read(&mut section, earlier)?;
    let part = part(&mut section, &kind, has_split)?;
    let whole = matches!(kind, KindSpec::CrossValidation(_));
    let budget = if kind.is_free() && !whole {
        free(&mut section)?
    } else {
        budget(&mut section, kind.gaussian())?
    };
    let repeat = section
        .get("repeat")
        .map(|i| i.count(0, 1_000_000, "Write repeat = 1 for one fresh draw."))
        .transpose()?;
    section.finish().map_err(|r| {
        let kind = kind.name();
        let fix = r.fix.clone().unwrap_or_default();
        r.accepting(format!("{fix} (This release is of kind \"{kind}\".)"))
    })?;
    Ok(ReleaseSpec {
        id,
        kind,
        part,
        fold: None,
        budget,
        repeat: repeat.unwrap_or(0),
        line,
    })
}

fn release_id(item: &Item<'_>) -> Result<String, Refusal> {
    let fix =
        "Use letters, digits, `_`, `-` and `.`, starting with a letter; at most 100 characters.";
    let id = item.text(fix)?;
    let starts = id.chars().next().is_some_and(char::is_alphabetic);
    let rest = id
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if starts && rest && id.chars().count() <= 100 {
        Ok(id.to_owned())
    } else {
        Err(item.refuse("not a name for a release").accepting(fix))
    }
}

fn part(
    section: &mut Section<'_>,
    kind: &KindSpec,
    has_split: bool,
) -> Result<Option<String>, Refusal> {
    match section.get("part") {
        None => Ok(if has_split {
            kind.default_part().map(str::to_owned)
        } else {
            None
        }),
        Some(item) => {
            let part = item.word(&[
                ("train", Some("train")),
                ("test", Some("test")),
                ("all", None),
            ])?;
            if part.is_some() && matches!(kind, KindSpec::CrossValidation(_)) {
                return Err(item
                    .refuse("folds divide all records; there is no credit for parts of parts")
                    .accepting("Remove `part`."));
            }
            if part.is_some() && !has_split {
                return Err(item.refuse("the plan has no split").accepting(
                    "Add split = { test = \"1/3\" } at the top of the plan, or remove `part`.",
                ));
            }
            Ok(part.map(str::to_owned))
        }
    }
}

/// No budget: the release is computed from released values.
fn free(section: &mut Section<'_>) -> Result<BudgetSpec, Refusal> {
    for key in ["epsilon", "delta", "rho"] {
        if let Some(item) = section.get(key) {
            return Err(item
                .refuse("this release is computed from released values and costs nothing")
                .accepting("Remove it."));
        }
    }
    Ok(BudgetSpec::none())
}

fn budget(section: &mut Section<'_>, gaussian: bool) -> Result<BudgetSpec, Refusal> {
    let epsilon = section
        .get("epsilon")
        .map(|i| dataset::epsilon(&i))
        .transpose()?;
    let delta = section
        .get("delta")
        .map(|i| dataset::delta(&i))
        .transpose()?;
    let rho = section.get("rho").map(|i| dataset::rho(&i)).transpose()?;
    let fix = if gaussian {
        "Write epsilon = \"0.5\" (with delta = \"1e-7\" for Gaussian noise), or rho = \"0.01\"."
    } else {
        "Write epsilon = \"0.5\", or rho = \"0.01\" where the data set's budget is in rho."
    };
    match (&epsilon, &delta, &rho) {
        (Some(_), _, None) | (None, None, Some(_)) => Ok(BudgetSpec {
            epsilon,
            delta,
            rho,
        }),
        (None, _, None) => Err(section
            .refuse("the release has no privacy budget")
            .accepting(fix)),
        _ => Err(section
            .refuse("a release is paid in one currency")
            .accepting(fix)),
    }
}

/// Refuses an unknown kind, naming the nearest one, or all.
pub(crate) fn unknown_kind(item: &Item<'_>, name: &str) -> Refusal {
    let known = crate::kinds::NAMES;
    item.refuse("not a kind of release")
        .accepting(match suggest::nearest(name, known) {
            Some(near) => format!("Did you mean \"{near}\"?"),
            None => format!("Available: {}.", document::quoted(&known)),
        })
}
