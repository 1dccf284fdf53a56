//! The kinds of release and their keys.
//!
//! One struct per kind, one table of fields per kind: the parser, the canonical form and the JSON
//! Schema (`schemas/`) are compared by a test, so that they cannot drift apart.

use std::path::PathBuf;

use reticent_accounting::{Rational, format_rational};
use serde_json::{Value, json};

use crate::document::{Item, Section};
use crate::formula;
use crate::outcome::Refusal;
use crate::plan::{ReleaseSpec, formula_text, unknown_kind};
use crate::suggest;

/// Names of all kinds that can be asked for.
pub(crate) const NAMES: [&str; 12] = [
    "count",
    "sum",
    "mean",
    "crosstab",
    "histogram",
    "quantiles",
    "bounds",
    "logistic",
    "linear",
    "roc",
    "residuals",
    "binned_residuals",
];

/// Bins of a numeric column that declares none.
pub const DEFAULT_BINS: u32 = 20;
/// Cells of the public grid that quantiles are chosen from.
pub const DEFAULT_CELLS: u32 = 4096;
/// Bits of the grid on which second moments are summed.
pub const DEFAULT_GRID_BITS: u32 = 24;

/// What is released, with the fields of that kind.
#[derive(Clone, Debug, PartialEq)]
pub enum KindSpec {
    /// Number of records.
    Count,
    /// Sum of an expression.
    Sum(SumSpec),
    /// Mean of an expression.
    Mean(MeanSpec),
    /// Counts of every combination of several columns.
    Crosstab(CrosstabSpec),
    /// Counts of one column.
    Histogram(HistogramSpec),
    /// Quantiles of an expression.
    Quantiles(QuantilesSpec),
    /// A private range of an expression.
    Bounds(BoundsSpec),
    /// Logistic regression.
    Logistic(LogisticSpec),
    /// Linear regression.
    Linear(LinearSpec),
    /// ROC curve of a released logistic model.
    Roc(RocSpec),
    /// Residual plot of a released linear model.
    Residuals(ResidualsSpec),
    /// Binned residual plot of a released logistic model.
    BinnedResiduals(BinnedResidualsSpec),
}

/// Fields of a `sum`.
#[derive(Clone, Debug, PartialEq)]
pub struct SumSpec {
    /// The expression that is summed.
    pub of: String,
}

/// Fields of a `mean`.
#[derive(Clone, Debug, PartialEq)]
pub struct MeanSpec {
    /// The expression that is averaged.
    pub of: String,
}

/// How a numeric column is cut into bins.
#[derive(Clone, Debug, PartialEq)]
pub enum Binning {
    /// This many bins of equal width over the declared bounds.
    Even(u32),
    /// Bins between these increasing edges; values outside fall into the first or last bin.
    Edges(Vec<f64>),
}

/// Fields of a `crosstab`.
#[derive(Clone, Debug, PartialEq)]
pub struct CrosstabSpec {
    /// The columns, slowest first.
    pub columns: Vec<String>,
    /// Bins of the numeric columns among them, as far as given; others have [`DEFAULT_BINS`].
    pub bins: Vec<(String, Binning)>,
}

impl CrosstabSpec {
    /// The bins of one column.
    pub fn binning(&self, column: &str) -> Binning {
        self.bins
            .iter()
            .find(|b| b.0 == column)
            .map_or(Binning::Even(DEFAULT_BINS), |b| b.1.clone())
    }
}

/// Fields of a `histogram`.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramSpec {
    /// The column.
    pub column: String,
    /// Its bins, if given; a column of levels has its levels, a numeric one [`DEFAULT_BINS`].
    pub bins: Option<Binning>,
}

/// Fields of `quantiles`.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantilesSpec {
    /// The expression.
    pub of: String,
    /// Increasing levels strictly between 0 and 1.
    pub levels: Vec<Rational>,
    /// Number of even cells of the public grid.
    pub cells: u32,
}

/// Fields of `bounds`.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundsSpec {
    /// The expression.
    pub of: String,
    /// Share of the records that the range should hold on each side.
    pub coverage: Rational,
}

/// How predictors are scaled before a logistic fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// By their public bounds, to [−1, 1].
    Bounds,
    /// Not at all; needs `data_norm`.
    None,
}

/// Whether long rows are shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clip {
    /// By a public rule on the size of the data, the number of predictors and ε.
    Rule,
    /// To a privately chosen length, which costs a share of the budget.
    Private,
    /// Never.
    None,
}

/// Fields of a `logistic` regression.
#[derive(Clone, Debug, PartialEq)]
pub struct LogisticSpec {
    /// The formula.
    pub formula: String,
    /// The outcome level that counts as positive.
    pub positive: Option<String>,
    /// Scaling of the predictors.
    pub scale: Scaling,
    /// Public bound on the Euclidean norm of a row of predictors, without the intercept; longer rows are
    /// shortened. Given exactly when `scale` is none.
    pub data_norm: Option<f64>,
    /// Row clip.
    pub clip: Clip,
    /// Ridge penalty on the sum of losses; a public rule chooses it if absent.
    pub lambda: Option<f64>,
}

/// Fields of a `linear` regression.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearSpec {
    /// The formula.
    pub formula: String,
    /// Row clip: private or none.
    pub clip: Clip,
    /// Bits of the summation grid.
    pub grid_bits: u32,
}

/// A released model that a diagnostic examines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelRef {
    /// A release of the same plan.
    Release(String),
    /// A release inside a `release.json`, written `path#id`; the path is relative to the plan.
    File {
        /// The file.
        path: PathBuf,
        /// The release in it.
        id: String,
    },
}

/// Fields of a `roc`.
#[derive(Clone, Debug, PartialEq)]
pub struct RocSpec {
    /// The model.
    pub model: ModelRef,
    /// Number of bins, a power of two; a public rule chooses it if absent.
    pub bins: Option<u32>,
    /// Share of ε spent on thresholds; a public rule chooses it if absent.
    pub threshold_share: Option<Rational>,
}

/// Fields of `residuals`.
#[derive(Clone, Debug, PartialEq)]
pub struct ResidualsSpec {
    /// The model.
    pub model: ModelRef,
    /// Cells along each side of the plot; a public rule chooses it if absent.
    pub side: Option<u32>,
}

/// Fields of `binned_residuals`.
#[derive(Clone, Debug, PartialEq)]
pub struct BinnedResidualsSpec {
    /// The model.
    pub model: ModelRef,
    /// Number of halvings: 2^levels bins; a public rule chooses it if absent.
    pub levels: Option<u32>,
    /// Public edges of the bins of the fitted probability, instead of privately chosen ones.
    pub edges: Option<Vec<f64>>,
}

impl KindSpec {
    /// The name in plans and releases.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum(_) => "sum",
            Self::Mean(_) => "mean",
            Self::Crosstab(_) => "crosstab",
            Self::Histogram(_) => "histogram",
            Self::Quantiles(_) => "quantiles",
            Self::Bounds(_) => "bounds",
            Self::Logistic(_) => "logistic",
            Self::Linear(_) => "linear",
            Self::Roc(_) => "roc",
            Self::Residuals(_) => "residuals",
            Self::BinnedResiduals(_) => "binned_residuals",
        }
    }

    /// The part it reads when the plan has a split and names none: fits train, diagnostics test.
    pub fn default_part(&self) -> Option<&'static str> {
        match self {
            Self::Logistic(_) | Self::Linear(_) => Some("train"),
            Self::Roc(_) | Self::Residuals(_) | Self::BinnedResiduals(_) => Some("test"),
            _ => None,
        }
    }

    /// The released models it reads, in the order in which their request ids enter its own.
    pub fn inputs(&self) -> Vec<&ModelRef> {
        match self {
            Self::Roc(s) => vec![&s.model],
            Self::Residuals(s) => vec![&s.model],
            Self::BinnedResiduals(s) => vec![&s.model],
            _ => Vec::new(),
        }
    }

    /// The fields with defaults resolved, without the names of inputs.
    pub fn canonical(&self) -> Value {
        let text = |t: &str| json!(formula::canonical(t).unwrap_or_else(|_| t.to_owned()));
        match self {
            Self::Count => json!({}),
            Self::Sum(s) => json!({"of": text(&s.of)}),
            Self::Mean(s) => json!({"of": text(&s.of)}),
            Self::Crosstab(s) => {
                let bins: Vec<Value> = s.columns.iter().map(|c| s.binning(c).canonical()).collect();
                json!({"columns": s.columns, "bins": bins})
            }
            Self::Histogram(s) => {
                let bins = s.bins.clone().unwrap_or(Binning::Even(DEFAULT_BINS));
                json!({"column": s.column, "bins": bins.canonical()})
            }
            Self::Quantiles(s) => {
                let levels: Vec<String> = s.levels.iter().map(format_rational).collect();
                json!({"of": text(&s.of), "levels": levels, "cells": s.cells})
            }
            Self::Bounds(s) => json!({"of": text(&s.of), "coverage": format_rational(&s.coverage)}),
            Self::Logistic(s) => json!({
                "formula": text(&s.formula),
                "positive": s.positive,
                "scale": match s.scale { Scaling::Bounds => "bounds", Scaling::None => "none" },
                "data_norm": s.data_norm,
                "clip": s.clip.name(),
                "lambda": s.lambda,
            }),
            Self::Linear(s) => {
                json!({"formula": text(&s.formula), "clip": s.clip.name(), "grid_bits": s.grid_bits})
            }
            Self::Roc(s) => {
                json!({"bins": s.bins, "threshold_share": s.threshold_share.as_ref().map(format_rational)})
            }
            Self::Residuals(s) => json!({"side": s.side}),
            Self::BinnedResiduals(s) => json!({"levels": s.levels, "edges": s.edges}),
        }
    }

    /// Reads `kind` and the fields of that kind.
    pub(crate) fn read(
        section: &mut Section<'_>,
        earlier: &[ReleaseSpec],
    ) -> Result<Self, Refusal> {
        let item = section.need("kind", "Write for example kind = \"count\".")?;
        let name = item.text("Write for example kind = \"count\".")?;
        let kind = match name {
            "count" => Self::Count,
            "sum" => Self::Sum(SumSpec { of: of(section)? }),
            "mean" => Self::Mean(MeanSpec { of: of(section)? }),
            "crosstab" => Self::Crosstab(crosstab(section)?),
            "histogram" => Self::Histogram(histogram(section)?),
            "quantiles" => Self::Quantiles(quantiles(section)?),
            "bounds" => Self::Bounds(BoundsSpec {
                of: of(section)?,
                coverage: coverage(section)?,
            }),
            "logistic" => Self::Logistic(logistic(section)?),
            "linear" => Self::Linear(linear(section)?),
            "roc" => Self::Roc(roc(section, earlier)?),
            "residuals" => Self::Residuals(ResidualsSpec {
                model: model(
                    section,
                    earlier,
                    "linear",
                    "A residual plot examines a linear model; for a logistic one ask for binned_residuals.",
                )?,
                side: optional_count(
                    section,
                    "side",
                    2,
                    1000,
                    "Write for example side = 32, or leave it to the rule.",
                )?,
            }),
            "binned_residuals" => Self::BinnedResiduals(binned_residuals(section, earlier)?),
            other => return Err(unknown_kind(&item, other)),
        };
        Ok(kind)
    }
}

impl Clip {
    fn name(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Private => "private",
            Self::None => "none",
        }
    }
}

impl Binning {
    fn canonical(&self) -> Value {
        match self {
            Self::Even(n) => json!({"even": n}),
            Self::Edges(edges) => json!({"edges": edges}),
        }
    }

    /// The edges over an interval: one more than there are bins.
    pub fn edges(&self, lower: f64, upper: f64) -> Vec<f64> {
        match self {
            Self::Edges(edges) => edges.clone(),
            Self::Even(n) => (0..=*n)
                .map(|k| {
                    if k == *n {
                        upper
                    } else {
                        lower + (upper - lower) * (f64::from(k) / f64::from(*n))
                    }
                })
                .collect(),
        }
    }

    /// Number of bins.
    pub fn len(&self) -> usize {
        match self {
            Self::Even(n) => *n as usize,
            Self::Edges(edges) => edges.len().saturating_sub(1),
        }
    }

    /// Whether there is no bin at all; never true of a parsed plan.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn read(item: &Item<'_>) -> Result<Self, Refusal> {
        if item.is_list() {
            return Ok(Self::Edges(increasing(
                item,
                "Write increasing edges, for example [0, 10, 20, 50].",
            )?));
        }
        Ok(Self::Even(item.count(
            1,
            1_000_000,
            "Write a number of bins such as 20, or a list of increasing edges.",
        )?))
    }
}

fn increasing(item: &Item<'_>, fix: &str) -> Result<Vec<f64>, Refusal> {
    let elements = item.list(fix)?;
    let values = elements
        .iter()
        .map(|e| e.real(fix))
        .collect::<Result<Vec<f64>, _>>()?;
    if values.len() < 2 || values.len() > 1_000_001 {
        return Err(item.refuse("at least two edges are needed").accepting(fix));
    }
    if values.windows(2).any(|w| matches!(w, [a, b] if a >= b)) {
        return Err(item.refuse("the edges must increase").accepting(fix));
    }
    Ok(values)
}

/// The expression of a one-variable release: `of = "log1p(hours)"`, or `column = "hours"`.
fn of(section: &mut Section<'_>) -> Result<String, Refusal> {
    let fix = "Write column = \"age\", or of = \"log1p(hours)\" for an expression.";
    let column = section
        .get("column")
        .map(|i| i.text(fix).map(formula::quote_name))
        .transpose()?;
    let expression = section
        .get("of")
        .map(|i| formula_text(&i, fix))
        .transpose()?;
    match (column, expression) {
        (Some(text), None) | (None, Some(text)) => Ok(text),
        (None, None) => Err(section
            .refuse("what is to be released is missing")
            .accepting(fix)),
        (Some(_), Some(_)) => Err(section
            .refuse("`column` and `of` exclude each other")
            .accepting(fix)),
    }
}

fn coverage(section: &mut Section<'_>) -> Result<Rational, Refusal> {
    match section.get("coverage") {
        None => Ok(Rational::from_parts(197.into(), 200u8.into())),
        Some(item) => {
            let fix = "Write a share from 0.5 to below 1, for example coverage = 0.985.";
            let value = item.rational(fix)?;
            if value >= Rational::from_parts(1.into(), 2u8.into()) && value < Rational::ONE {
                Ok(value)
            } else {
                Err(item
                    .refuse("must be at least 0.5 and below 1")
                    .accepting(fix))
            }
        }
    }
}

fn crosstab(section: &mut Section<'_>) -> Result<CrosstabSpec, Refusal> {
    let fix = "Write columns = [\"education\", \"income\"].";
    let item = section.need("columns", fix)?;
    let mut columns: Vec<String> = Vec::new();
    for element in item.list(fix)? {
        let name = element.text(fix)?.to_owned();
        if columns.contains(&name) {
            return Err(element
                .refuse("this column is listed twice")
                .accepting("Remove one of the two."));
        }
        columns.push(name);
    }
    if columns.is_empty() || columns.len() > 10 {
        return Err(item
            .refuse("between 1 and 10 columns are accepted")
            .accepting(fix));
    }
    let fix =
        "Write bins = 10 for all numeric columns, or bins = { age = 10, hours = [0, 20, 40, 99] }.";
    let mut bins = Vec::new();
    match section.get("bins") {
        None => {}
        Some(item) if item.is_table() => {
            for (name, element) in item.section(fix)?.all() {
                if !columns.contains(&name) {
                    let known: Vec<&str> = columns.iter().map(String::as_str).collect();
                    return Err(element
                        .refuse("not among the columns of this crosstab")
                        .accepting(suggest::advice(&name, &known)));
                }
                bins.push((name, Binning::read(&element)?));
            }
        }
        Some(item) => {
            let n = item.count(1, 1_000_000, fix)?;
            bins.extend(columns.iter().map(|c| (c.clone(), Binning::Even(n))));
        }
    }
    Ok(CrosstabSpec { columns, bins })
}

fn histogram(section: &mut Section<'_>) -> Result<HistogramSpec, Refusal> {
    let fix = "Write column = \"age\".";
    let column = section.need("column", fix)?.text(fix)?.to_owned();
    let bins = section.get("bins").map(|i| Binning::read(&i)).transpose()?;
    let edges = section
        .get("edges")
        .map(|i| {
            increasing(&i, "Write increasing edges, for example [0, 10, 20, 50].")
                .map(Binning::Edges)
        })
        .transpose()?;
    if bins.is_some() && edges.is_some() {
        return Err(section
            .refuse("`bins` and `edges` exclude each other")
            .accepting("Remove one of the two."));
    }
    Ok(HistogramSpec {
        column,
        bins: bins.or(edges),
    })
}

fn quantiles(section: &mut Section<'_>) -> Result<QuantilesSpec, Refusal> {
    let of = of(section)?;
    let levels = match section.get("levels") {
        None => (1..4u8)
            .map(|k| Rational::from_parts(k.into(), 4u8.into()))
            .collect(),
        Some(item) => {
            let fix = "Write increasing levels between 0 and 1, for example [0.25, 0.5, 0.75].";
            let elements = item.list(fix)?;
            let mut levels: Vec<Rational> = Vec::new();
            for element in &elements {
                let level = element.rational(fix)?;
                if level <= Rational::ZERO || level >= Rational::ONE {
                    return Err(element
                        .refuse("must lie strictly between 0 and 1")
                        .accepting(fix));
                }
                if levels.last().is_some_and(|last| *last >= level) {
                    return Err(element.refuse("the levels must increase").accepting(fix));
                }
                levels.push(level);
            }
            if levels.is_empty() || levels.len() > 1000 {
                return Err(item
                    .refuse("between 1 and 1000 levels are accepted")
                    .accepting(fix));
            }
            levels
        }
    };
    let cells = optional_count(
        section,
        "cells",
        2,
        1 << 20,
        "Write for example cells = 4096.",
    )?;
    Ok(QuantilesSpec {
        of,
        levels,
        cells: cells.unwrap_or(DEFAULT_CELLS),
    })
}

fn optional_count(
    section: &mut Section<'_>,
    key: &'static str,
    lowest: u32,
    highest: u32,
    fix: &str,
) -> Result<Option<u32>, Refusal> {
    section
        .get(key)
        .map(|i| i.count(lowest, highest, fix))
        .transpose()
}

fn positive_real(
    section: &mut Section<'_>,
    key: &'static str,
    fix: &str,
) -> Result<Option<f64>, Refusal> {
    let Some(item) = section.get(key) else {
        return Ok(None);
    };
    let value = item.real(fix)?;
    if value > 0.0 {
        Ok(Some(value))
    } else {
        Err(item.refuse("must be greater than 0").accepting(fix))
    }
}

fn formula_of(section: &mut Section<'_>) -> Result<String, Refusal> {
    let fix = "Write a formula as in R, for example formula = \"income ~ age + C(education)\".";
    formula_text(&section.need("formula", fix)?, fix)
}

fn logistic(section: &mut Section<'_>) -> Result<LogisticSpec, Refusal> {
    let formula = formula_of(section)?;
    let positive = match section.get("positive") {
        None => None,
        Some(item) => Some(
            item.name("Write the level that counts as positive, for example positive = \">50K\".")?,
        ),
    };
    let scale = match section.get("scale") {
        None => Scaling::Bounds,
        Some(item) => item.word(&[("bounds", Scaling::Bounds), ("none", Scaling::None)])?,
    };
    let fix = "Write the largest Euclidean norm of a row of predictors that should count, for example data_norm = 2.";
    let data_norm = positive_real(section, "data_norm", fix)?;
    if scale == Scaling::None && data_norm.is_none() {
        return Err(section
            .refuse("scale = \"none\" needs the key `data_norm`")
            .accepting(fix));
    }
    if scale == Scaling::Bounds && data_norm.is_some() {
        let line = section.line_of("data_norm");
        return Err(section
            .refuse("`data_norm` has no effect while predictors are scaled by their bounds")
            .at_line(line)
            .accepting("Remove it, or add scale = \"none\"."));
    }
    let clip = match section.get("clip") {
        // Without scaling the norm is declared, so there is nothing left to choose.
        None if scale == Scaling::None => Clip::None,
        None => Clip::Rule,
        Some(item) => item.word(&[
            ("rule", Clip::Rule),
            ("none", Clip::None),
            ("private", Clip::Private),
        ])?,
    };
    let fix = "Write a positive penalty, for example lambda = 0.1, or leave it to the rule.";
    let lambda = positive_real(section, "lambda", fix)?;
    Ok(LogisticSpec {
        formula,
        positive,
        scale,
        data_norm,
        clip,
        lambda,
    })
}

fn linear(section: &mut Section<'_>) -> Result<LinearSpec, Refusal> {
    let formula = formula_of(section)?;
    let clip = match section.get("clip") {
        None => Clip::Private,
        Some(item) => item.word(&[("private", Clip::Private), ("none", Clip::None)])?,
    };
    let grid_bits = optional_count(
        section,
        "grid_bits",
        8,
        30,
        "Write for example grid_bits = 24.",
    )?;
    Ok(LinearSpec {
        formula,
        clip,
        grid_bits: grid_bits.unwrap_or(DEFAULT_GRID_BITS),
    })
}

fn roc(section: &mut Section<'_>, earlier: &[ReleaseSpec]) -> Result<RocSpec, Refusal> {
    let model = model(
        section,
        earlier,
        "logistic",
        "A ROC curve examines a logistic model.",
    )?;
    let bins = match section.get("bins") {
        None => None,
        Some(item) => {
            let fix = "Write a power of two from 2 to 4096, or leave it to the rule.";
            let n = item.count(2, 4096, fix)?;
            if !n.is_power_of_two() {
                return Err(item.refuse("must be a power of two").accepting(fix));
            }
            Some(n)
        }
    };
    let threshold_share = match section.get("threshold_share") {
        None => None,
        Some(item) => {
            let fix = "Write a share between 0 and 1, for example threshold_share = 0.1.";
            let value = item.rational(fix)?;
            if value <= Rational::ZERO || value >= Rational::ONE {
                return Err(item
                    .refuse("must lie strictly between 0 and 1")
                    .accepting(fix));
            }
            Some(value)
        }
    };
    Ok(RocSpec {
        model,
        bins,
        threshold_share,
    })
}

fn binned_residuals(
    section: &mut Section<'_>,
    earlier: &[ReleaseSpec],
) -> Result<BinnedResidualsSpec, Refusal> {
    let why = "Binned residuals examine a logistic model; for a linear one ask for residuals.";
    let model = model(section, earlier, "logistic", why)?;
    let levels = optional_count(
        section,
        "levels",
        1,
        10,
        "Write for example levels = 4 for 16 bins.",
    )?;
    let fix = "Write increasing edges from 0 to 1, for example edges = [0, 0.25, 0.5, 0.75, 1].";
    let edges = section
        .get("edges")
        .map(|i| increasing(&i, fix))
        .transpose()?;
    if levels.is_some() && edges.is_some() {
        return Err(section
            .refuse("`levels` and `edges` exclude each other")
            .accepting("Remove one of the two."));
    }
    if let Some(edges) = &edges
        && edges.iter().any(|e| !(0.0..=1.0).contains(e))
    {
        let line = section.line_of("edges");
        return Err(section
            .refuse("fitted probabilities lie between 0 and 1")
            .at_line(line)
            .accepting(fix));
    }
    Ok(BinnedResidualsSpec {
        model,
        levels,
        edges,
    })
}

fn model(
    section: &mut Section<'_>,
    earlier: &[ReleaseSpec],
    kind: &str,
    why: &str,
) -> Result<ModelRef, Refusal> {
    let fix = format!("Name an earlier {kind} release of this plan, or write \"release.json#id\".");
    let item = section.need("model", &fix)?;
    let text = item.text(&fix)?;
    if let Some((path, id)) = text.rsplit_once('#') {
        if path.trim().is_empty() || id.trim().is_empty() || path.contains('\0') {
            return Err(item
                .refuse("not of the form \"release.json#id\"")
                .accepting(fix));
        }
        return Ok(ModelRef::File {
            path: PathBuf::from(path),
            id: id.to_owned(),
        });
    }
    match earlier.iter().find(|r| r.id == text) {
        Some(found) if found.kind.name() == kind => Ok(ModelRef::Release(text.to_owned())),
        Some(found) => Err(item
            .refuse(format!(
                "the release \"{text}\" is of kind \"{}\"",
                found.kind.name()
            ))
            .accepting(why)),
        None => {
            let models: Vec<&str> = earlier
                .iter()
                .filter(|r| r.kind.name() == kind)
                .map(|r| r.id.as_str())
                .collect();
            let advice = if models.is_empty() {
                fix
            } else {
                suggest::advice(text, &models)
            };
            Err(item
                .refuse("no earlier release of this plan has that id")
                .accepting(advice))
        }
    }
}
