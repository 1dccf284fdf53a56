//! The kinds of release and their keys.
//!
//! One struct per kind, one table of fields per kind: the parser, the canonical form and the JSON
//! Schema (`schemas/`) are compared by a test, so that they cannot drift apart.

mod models;
mod read;

use std::path::PathBuf;

use reticent_accounting::{Rational, format_rational};
use reticent_statistics::features::{Keep, Scoring};
use reticent_statistics::histogram::{Method, Workload};
use reticent_statistics::range::RangeScales;
use reticent_statistics::residuals;
use reticent_statistics::roc::Thresholds;
use reticent_statistics::simple::{Search, Sides};
use reticent_statistics::{accuracy, counters, selection};
use serde_json::{Value, json};

use crate::folds::CrossValidationSpec;
use crate::formula;
pub use models::{
    CovarianceSpec, Lambda, LinearOutput, LogisticExtra, Point, Projection, PureNoise, RegressSpec,
    Repair, Reported, SelectSpec, Selected, SketchSpec, ThresholdSpec, VerifySpec,
};

/// Names of all kinds that can be asked for.
pub(crate) const NAMES: [&str; 22] = [
    "count",
    "sum",
    "mean",
    "crosstab",
    "histogram",
    "quantiles",
    "bounds",
    "top_k",
    "running_total",
    "logistic",
    "linear",
    "covariance",
    "regress",
    "naive_bayes",
    "select",
    "auc",
    "roc",
    "threshold",
    "residuals",
    "binned_residuals",
    "verify",
    "cross_validation",
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
    /// Counts of one column, or of the plane of two, by one of several methods.
    Histogram(HistogramSpec),
    /// Quantiles of an expression.
    Quantiles(QuantilesSpec),
    /// A private range of an expression.
    Bounds(BoundsSpec),
    /// The most frequent values of a column.
    TopK(TopKSpec),
    /// Numbers of records up to each step of a column of time.
    RunningTotal(RunningTotalSpec),
    /// Logistic regression.
    Logistic(LogisticSpec),
    /// Linear regression.
    Linear(LinearSpec),
    /// Covariance matrix.
    Covariance(CovarianceSpec),
    /// Regression from a released covariance matrix.
    Regress(RegressSpec),
    /// Naive Bayes.
    NaiveBayes(NaiveBayesSpec),
    /// Features that tell two classes apart.
    Select(SelectSpec),
    /// Area under the ROC curve of a released logistic model, without the curve.
    Auc(AucSpec),
    /// ROC curve of a released logistic model.
    Roc(RocSpec),
    /// Probability threshold from a released ROC curve.
    Threshold(ThresholdSpec),
    /// Residual plot of a released linear model.
    Residuals(ResidualsSpec),
    /// Binned residual plot of a released logistic model.
    BinnedResiduals(BinnedResidualsSpec),
    /// A yes or no about one coefficient of a regression on the confidential rows.
    Verify(VerifySpec),
    /// What a model says of records it has not seen, over several folds; read off the evaluations of the folds.
    CrossValidation(CrossValidationSpec),
    /// Records by outcome and by what a model says at probability ½; an evaluation of a fold.
    Decisions(AucSpec),
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
    /// A second column: the histogram becomes a plane, `column` its rows.
    pub second: Option<String>,
    /// Bins of the second column.
    pub second_bins: Option<Binning>,
    /// The algorithm.
    pub method: Method,
    /// What the histogram is wanted for; methods that use it fit themselves to it.
    pub workload: Workload,
}

impl HistogramSpec {
    /// Whether it is the plain table of noisy counts of one column.
    pub(crate) fn is_plain(&self) -> bool {
        self.second.is_none()
            && self.method == Method::Identity
            && self.workload == Workload::Identity
    }

    /// Its columns with their bins.
    pub(crate) fn axes(&self) -> Vec<(&str, Binning)> {
        let even = || Binning::Even(DEFAULT_BINS);
        let first = (self.column.as_str(), self.bins.clone().unwrap_or_else(even));
        let second = self.second.as_deref().map(|c| {
            let bins = self.second_bins.clone().unwrap_or_else(even);
            (c, bins)
        });
        std::iter::once(first).chain(second).collect()
    }
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
    /// How they are drawn.
    pub method: QuantileMethod,
}

/// How quantiles are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuantileMethod {
    /// One exponential-mechanism choice per level.
    #[default]
    Exponential,
    /// Recursive bisection by the exponential mechanism.
    Recursive,
    /// Recursive bisection by Cauchy noise on the smooth sensitivity.
    Smooth,
}

/// Fields of `bounds`.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundsSpec {
    /// The expression.
    pub of: String,
    /// Share of the records that the range should hold on each side.
    pub coverage: Rational,
    /// How candidates grow.
    pub method: Search,
    /// Which ends are sought.
    pub sides: Sides,
    /// The noise: as small as ε pays for, or as published, which costs less than ε.
    pub scales: RangeScales,
}

/// Fields of a `top_k`.
#[derive(Clone, Debug, PartialEq)]
pub struct TopKSpec {
    /// The column.
    pub column: String,
    /// Its bins, if it is numeric.
    pub bins: Option<Binning>,
    /// How many values are chosen.
    pub k: u32,
    /// How; a rule on public numbers if absent.
    pub method: Option<selection::Method>,
}

/// Fields of a `running_total`.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningTotalSpec {
    /// The column of time.
    pub column: String,
    /// The steps, if given: a number of even ones or their edges. A column of levels has its levels, a whole-number one its numbers.
    pub steps: Option<Binning>,
    /// How totals are measured; by currency and number of steps if absent.
    pub method: Option<counters::Method>,
}

/// Fields of an `auc`.
#[derive(Clone, Debug, PartialEq)]
pub struct AucSpec {
    /// The model.
    pub model: ModelRef,
}

/// How predictors are scaled before a logistic fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// By their public bounds, to [−1, 1].
    Bounds,
    /// Not at all; needs `data_norm`.
    None,
    /// Not at all, but with the default rules for intercept and clip; needs `data_norm`.
    Norm,
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
    /// Ridge penalty; a public rule chooses it if absent.
    pub lambda: Option<Lambda>,
    /// What most plans leave out.
    pub extra: LogisticExtra,
    /// The release whose choice among the formula's features is used.
    pub features: Option<Selected>,
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
    /// Noise for pure ε.
    pub noise: PureNoise,
    /// What is reported.
    pub reported: Reported,
    /// Output perturbation instead of noisy moments.
    pub output: Option<LinearOutput>,
}

/// Fields of `naive_bayes`.
#[derive(Clone, Debug, PartialEq)]
pub struct NaiveBayesSpec {
    /// The formula: outcome ~ columns, each as it is.
    pub formula: String,
    /// The outcome level that counts as positive.
    pub positive: Option<String>,
    /// All levels of the outcome, to be told apart; empty: two classes.
    pub levels: Vec<String>,
    /// Pseudo-count; a public rule on the noise chooses it if absent.
    pub smoothing: Option<f64>,
    /// The release whose choice among the formula's features is used.
    pub features: Option<Selected>,
    /// Which conditions and words the model uses, chosen by its own noisy counts; all if absent.
    pub keep: Option<(Scoring, Keep)>,
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
    /// The models; more than one are drawn into one plot and compared.
    pub models: Vec<ModelRef>,
    /// Number of bins, a power of two; a public rule chooses it if absent.
    pub bins: Option<u32>,
    /// Share of ε spent on thresholds; a public rule chooses it if absent.
    pub threshold_share: Option<Rational>,
    /// How thresholds come about.
    pub thresholds: Thresholds,
    /// How positives and negatives are counted.
    pub counts: Method,
    /// Thresholds whose tables of decisions are wanted.
    pub decide_at: Vec<f64>,
}

/// Words of a plan for [`RocSpec::thresholds`].
pub(crate) const ROC_THRESHOLDS: [(&str, Thresholds); 5] = [
    ("medians", Thresholds::Medians),
    ("smooth", Thresholds::Smooth),
    ("even", Thresholds::Even),
    ("stratified", Thresholds::Stratified),
    ("label_separate", Thresholds::LabelSeparate),
];

/// Words of a plan for [`RocSpec::counts`].
pub(crate) const ROC_COUNTS: [(&str, Method); 8] = [
    ("laplace", Method::Identity),
    ("hb", Method::Hb),
    ("privelet", Method::Privelet),
    ("greedyh", Method::GreedyH),
    ("dawa", Method::Dawa),
    ("ahp", Method::Ahp),
    ("mwem", Method::Mwem),
    ("uniform", Method::Uniform),
];

/// The threshold of the table of decisions, unless a plan names others.
pub(crate) const DECIDE_AT: [f64; 1] = [0.5];

impl RocSpec {
    /// All by rule.
    pub(crate) fn plain(model: ModelRef) -> Self {
        Self {
            models: vec![model],
            bins: None,
            threshold_share: None,
            thresholds: Thresholds::Medians,
            counts: Method::Identity,
            decide_at: DECIDE_AT.to_vec(),
        }
    }

    fn canonical(&self) -> Value {
        let fields = json!({
            "bins": self.bins,
            "threshold_share": self.threshold_share.as_ref().map(format_rational),
        });
        // keys of their own only where they say something: plain curves keep their request ids
        let thresholds = ROC_THRESHOLDS
            .iter()
            .skip(1)
            .find(|w| w.1 == self.thresholds)
            .map(|w| w.0);
        let counts = ROC_COUNTS
            .iter()
            .skip(1)
            .find(|w| w.1 == self.counts)
            .map(|w| w.0);
        let mut fields = with_choices(fields, &[("thresholds", thresholds), ("counts", counts)]);
        if let Value::Object(map) = &mut fields {
            if self.models.len() > 1 {
                map.insert("models".to_owned(), json!(self.models.len()));
            }
            if self.decide_at != DECIDE_AT {
                map.insert("decide_at".to_owned(), json!(self.decide_at));
            }
        }
        fields
    }
}

/// Fields of `residuals`.
#[derive(Clone, Debug, PartialEq)]
pub struct ResidualsSpec {
    /// The model.
    pub model: ModelRef,
    /// Cells along each side of the plot; a public rule chooses it if absent.
    pub side: Option<u32>,
    /// How the cells are perturbed.
    pub method: Method,
    /// How the box is found.
    pub bounds: residuals::Bounds,
    /// Whether tests for curvature and fan are bought.
    pub tests: bool,
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
    /// Merge neighbouring bins that are too small.
    pub adjust: bool,
    /// Share of the budget for choosing the bins, and as much again for merging; a public rule chooses it if absent.
    pub bin_share: Option<Rational>,
    /// An expression along which bins are made, instead of the fitted probability.
    pub against: Option<String>,
}

impl KindSpec {
    /// The name in plans and releases.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum(_) => "sum",
            Self::Mean(_) => "mean",
            Self::Crosstab(_) | Self::Decisions(_) => "crosstab",
            Self::Histogram(_) => "histogram",
            Self::Quantiles(_) => "quantiles",
            Self::Bounds(_) => "bounds",
            Self::TopK(_) => "top_k",
            Self::RunningTotal(_) => "running_total",
            Self::Logistic(_) => "logistic",
            Self::Linear(_) => "linear",
            Self::Covariance(_) => "covariance",
            Self::Regress(_) => "regress",
            Self::Threshold(_) => "threshold",
            Self::NaiveBayes(_) => "naive_bayes",
            Self::Select(_) => "select",
            Self::Auc(_) => "auc",
            Self::Roc(_) => "roc",
            Self::Residuals(_) => "residuals",
            Self::BinnedResiduals(_) => "binned_residuals",
            Self::Verify(_) => "verify",
            Self::CrossValidation(_) => "cross_validation",
        }
    }

    /// Whether it is computed from released values alone and costs nothing.
    pub fn is_free(&self) -> bool {
        matches!(
            self,
            Self::Regress(_) | Self::Threshold(_) | Self::CrossValidation(_)
        )
    }

    /// The part it reads when the plan has a split and names none: fits train, diagnostics test.
    pub fn default_part(&self) -> Option<&'static str> {
        match self {
            Self::Logistic(_)
            | Self::Linear(_)
            | Self::Covariance(_)
            | Self::NaiveBayes(_)
            | Self::Select(_) => Some("train"),
            Self::Auc(_) | Self::Roc(_) | Self::Residuals(_) | Self::BinnedResiduals(_) => {
                Some("test")
            }
            _ => None,
        }
    }

    /// The key that names them.
    pub(crate) fn input_key(&self) -> &'static str {
        match self {
            Self::Regress(_) | Self::Threshold(_) => "from",
            Self::Roc(s) if s.models.len() > 1 => "models",
            _ => "model",
        }
    }

    /// Whether it is paid with a delta on a data set that has one: Gaussian noise.
    pub(crate) fn gaussian(&self) -> bool {
        match self {
            Self::RunningTotal(s) => s.method == Some(counters::Method::SquareRoot),
            Self::Linear(s) => s.output.is_none(),
            Self::Covariance(_) => true,
            _ => false,
        }
    }

    /// The released models it reads, in the order in which their request ids enter its own.
    pub fn inputs(&self) -> Vec<&ModelRef> {
        match self {
            Self::Regress(s) => vec![&s.from],
            Self::Threshold(s) => vec![&s.from],
            Self::Auc(s) | Self::Decisions(s) => vec![&s.model],
            Self::CrossValidation(s) => s.evaluations.iter().collect(),
            Self::Roc(s) => s.models.iter().collect(),
            Self::Residuals(s) => vec![&s.model],
            Self::BinnedResiduals(s) => vec![&s.model],
            Self::Logistic(LogisticSpec { features, .. })
            | Self::NaiveBayes(NaiveBayesSpec { features, .. }) => {
                features.iter().map(|f| &f.from).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The fields with defaults resolved, without the names of inputs.
    #[allow(clippy::too_many_lines, reason = "one arm per kind")]
    pub fn canonical(&self) -> Value {
        let text = |t: &str| json!(formula::canonical(t).unwrap_or_else(|_| t.to_owned()));
        match self {
            Self::Count | Self::Auc(_) => json!({}),
            Self::Sum(s) => json!({"of": text(&s.of)}),
            Self::Mean(s) => json!({"of": text(&s.of)}),
            Self::Crosstab(s) => {
                let bins: Vec<Value> = s.columns.iter().map(|c| s.binning(c).canonical()).collect();
                json!({"columns": s.columns, "bins": bins})
            }
            Self::Histogram(s) => {
                // keys of their own only where they say something: plain histograms keep their request ids
                let mut fields = serde_json::Map::new();
                for ((name, bins), keys) in s
                    .axes()
                    .into_iter()
                    .zip([("column", "bins"), ("second", "second_bins")])
                {
                    fields.insert(keys.0.to_owned(), json!(name));
                    fields.insert(keys.1.to_owned(), bins.canonical());
                }
                if s.method != Method::Identity {
                    fields.insert("method".to_owned(), json!(s.method.name()));
                }
                if let Some(name) = workload_name(s.workload) {
                    fields.insert("workload".to_owned(), json!(name));
                }
                Value::Object(fields)
            }
            Self::Quantiles(s) => {
                let levels: Vec<String> = s.levels.iter().map(format_rational).collect();
                let fields = json!({"of": text(&s.of), "levels": levels, "cells": s.cells});
                with_choices(fields, &[("method", s.method.name())])
            }
            Self::Bounds(s) => {
                let fields = json!({"of": text(&s.of), "coverage": format_rational(&s.coverage)});
                let method = (s.method == Search::Doubling).then_some("doubling");
                let sides = match s.sides {
                    Sides::Both => None,
                    Sides::Lower => Some("lower"),
                    Sides::Upper => Some("upper"),
                };
                let scales = (s.scales == RangeScales::Printed).then_some("printed");
                with_choices(
                    fields,
                    &[("method", method), ("sides", sides), ("scales", scales)],
                )
            }
            Self::TopK(s) => json!({
                "column": s.column,
                "bins": s.bins.as_ref().map(Binning::canonical),
                "k": s.k,
                "method": s.method.map(selection::Method::name),
            }),
            Self::RunningTotal(s) => json!({
                "column": s.column,
                "steps": s.steps.as_ref().map(Binning::canonical),
                "method": s.method.map(counters::Method::name),
            }),
            Self::Logistic(s) => {
                let lambda = match s.lambda {
                    None => Value::Null,
                    Some(Lambda::Default) => json!("default"),
                    Some(Lambda::Adjusted) => json!("adjusted"),
                    Some(Lambda::Value(x)) => json!(x),
                };
                let scale = match s.scale {
                    Scaling::Bounds => "bounds",
                    Scaling::None => "none",
                    Scaling::Norm => "norm",
                };
                with(
                    json!({
                        "formula": text(&s.formula), "positive": s.positive, "scale": scale,
                        "data_norm": s.data_norm, "clip": s.clip.name(), "lambda": lambda,
                    }),
                    |fields| {
                        s.extra.canonical(fields);
                        Selected::canonical(s.features.as_ref(), fields);
                    },
                )
            }
            Self::Linear(s) => with(
                json!({"formula": text(&s.formula), "clip": s.clip.name(), "grid_bits": s.grid_bits}),
                |fields| {
                    s.noise.canonical(fields);
                    s.reported.canonical(fields);
                    if let Some(output) = s.output {
                        output.canonical(fields);
                    }
                },
            ),
            Self::Covariance(s) => s.canonical(),
            Self::Regress(s) => with(json!({"formula": text(&s.formula)}), |fields| {
                s.reported.canonical(fields);
            }),
            Self::Threshold(s) => s.canonical(),
            Self::Roc(s) => s.canonical(),
            Self::Residuals(s) => {
                let method = (s.method != Method::Identity).then(|| s.method.name());
                let bounds = (s.bounds != residuals::Bounds::Fine).then_some("doubling");
                let tests = s.tests.then_some("both");
                let mut fields = with_choices(
                    json!({"side": s.side}),
                    &[("method", method), ("bounds", bounds), ("tests", tests)],
                );
                if let (residuals::Bounds::Doubling { unit: Some(unit) }, Value::Object(map)) =
                    (s.bounds, &mut fields)
                {
                    map.insert("unit".to_owned(), json!(unit));
                }
                fields
            }
            Self::BinnedResiduals(s) => {
                let against = s.against.as_deref().map(text);
                let against = against.as_ref().and_then(Value::as_str);
                let share = s.bin_share.as_ref().map(format_rational);
                with_choices(
                    json!({"levels": s.levels, "edges": s.edges}),
                    &[
                        ("adjust", s.adjust.then_some("merge")),
                        ("against", against),
                        ("bin_share", share.as_deref()),
                    ],
                )
            }
            Self::NaiveBayes(s) => with(
                json!({"formula": text(&s.formula), "positive": s.positive, "smoothing": s.smoothing}),
                |fields| {
                    // an order of its own says nothing: classes come as they are declared
                    let mut levels = s.levels.clone();
                    levels.sort_unstable();
                    if !levels.is_empty() {
                        fields.insert("levels".to_owned(), json!(levels));
                    }
                    Selected::canonical(s.features.as_ref(), fields);
                    if let Some((scoring, keep)) = s.keep {
                        fields.insert("keep".to_owned(), models::canonical_keep(keep));
                        fields.insert("scoring".to_owned(), json!(scoring.name()));
                    }
                },
            ),
            Self::Select(s) => s.canonical(),
            Self::Verify(s) => s.canonical(),
            Self::CrossValidation(s) => s.canonical(),
            Self::Decisions(_) => json!({"decisions": "0.5"}),
        }
    }
}

/// Queries of `workload = "ranges"`.
pub(crate) const RANGES: u32 = 2000;

/// The name of a workload in plans; none for the default.
fn workload_name(workload: Workload) -> Option<&'static str> {
    match workload {
        Workload::Identity => None,
        Workload::Prefix => Some("prefix"),
        Workload::Rectangles(_) => Some("ranges"),
    }
}

/// Adds the choices that are not defaults: a plan that does not make them keeps its request id.
fn with_choices(mut fields: Value, choices: &[(&str, Option<&str>)]) -> Value {
    if let Value::Object(map) = &mut fields {
        for (key, choice) in choices {
            if let Some(choice) = choice {
                map.insert((*key).to_owned(), json!(choice));
            }
        }
    }
    fields
}

impl QuantileMethod {
    /// As the planner knows it.
    pub(crate) fn planned(self) -> accuracy::QuantileMethod {
        match self {
            Self::Exponential => accuracy::QuantileMethod::Exponential,
            Self::Recursive => accuracy::QuantileMethod::Recursive,
            Self::Smooth => accuracy::QuantileMethod::Smooth,
        }
    }

    /// The name in plans, unless it is the default.
    fn name(self) -> Option<&'static str> {
        match self {
            Self::Exponential => None,
            Self::Recursive => Some("recursive"),
            Self::Smooth => Some("smooth"),
        }
    }
}

/// A JSON object with more fields.
fn with(mut value: Value, more: impl FnOnce(&mut serde_json::Map<String, Value>)) -> Value {
    if let Value::Object(fields) = &mut value {
        more(fields);
    }
    value
}

impl Clip {
    pub(crate) fn name(self) -> &'static str {
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
}
