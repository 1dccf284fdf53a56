//! The keys of each kind of release, read out of a plan.

use std::path::PathBuf;

use reticent_accounting::Rational;
use reticent_statistics::histogram::{Method, Workload};
use reticent_statistics::range::RangeScales;
use reticent_statistics::residuals;
use reticent_statistics::roc::{MOST_MODELS, Thresholds};
use reticent_statistics::simple::{Search, Sides};
use reticent_statistics::{counters, selection};

use super::{
    AucSpec, BinnedResidualsSpec, Binning, BoundsSpec, Clip, CovarianceSpec, CrosstabSpec,
    DEFAULT_CELLS, DEFAULT_GRID_BITS, HistogramSpec, KindSpec, Lambda, LinearOutput, LinearSpec,
    LogisticExtra, LogisticSpec, MeanSpec, ModelRef, NaiveBayesSpec, PureNoise, QuantileMethod,
    QuantilesSpec, RANGES, RegressSpec, Reported, ResidualsSpec, RocSpec, RunningTotalSpec,
    Scaling, SelectSpec, Selected, SumSpec, ThresholdSpec, TopKSpec, VerifySpec,
};
use super::{DECIDE_AT, ROC_COUNTS, ROC_THRESHOLDS};
use crate::document::{Item, Section, quoted};
use crate::folds::CrossValidationSpec;
use crate::formula;
use crate::outcome::Refusal;
use crate::plan::{ReleaseSpec, formula_text, unknown_kind};
use crate::suggest;

impl KindSpec {
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
                method: word(
                    section,
                    "method",
                    &[("fine", Search::Fine), ("doubling", Search::Doubling)],
                )?,
                sides: word(
                    section,
                    "sides",
                    &[
                        ("both", Sides::Both),
                        ("lower", Sides::Lower),
                        ("upper", Sides::Upper),
                    ],
                )?,
                scales: word(
                    section,
                    "scales",
                    &[
                        ("calibrated", RangeScales::Calibrated),
                        ("printed", RangeScales::Printed),
                    ],
                )?,
            }),
            "top_k" => Self::TopK(top_k(section)?),
            "running_total" => Self::RunningTotal(running_total(section)?),
            "logistic" => Self::Logistic(logistic(section, earlier)?),
            "linear" => Self::Linear(linear(section)?),
            "covariance" => Self::Covariance(CovarianceSpec::read(section)?),
            "regress" => Self::Regress(RegressSpec::read(section, earlier)?),
            "threshold" => Self::Threshold(ThresholdSpec::read(section, earlier)?),
            "naive_bayes" => Self::NaiveBayes(naive_bayes(section, earlier)?),
            "select" => Self::Select(SelectSpec::read(section)?),
            "auc" => Self::Auc(AucSpec {
                model: reference(
                    section,
                    earlier,
                    "model",
                    &["logistic"],
                    "An area under the ROC curve examines a logistic model.",
                )?,
            }),
            "roc" => Self::Roc(roc(section, earlier)?),
            "residuals" => Self::Residuals(ResidualsSpec {
                model: reference(
                    section,
                    earlier,
                    "model",
                    &["linear", "regress"],
                    "A residual plot examines a linear model; for a logistic one ask for binned_residuals.",
                )?,
                side: optional_count(
                    section,
                    "side",
                    2,
                    1000,
                    "Write for example side = 32, or leave it to the rule.",
                )?,
                method: perturbation(section)?,
                bounds: plot_bounds(section)?,
                tests: word(section, "tests", &[("none", false), ("both", true)])?,
            }),
            "binned_residuals" => Self::BinnedResiduals(binned_residuals(section, earlier)?),
            "verify" => Self::Verify(VerifySpec::read(section)?),
            "cross_validation" => {
                Self::CrossValidation(CrossValidationSpec::read(section, earlier)?)
            }
            other => return Err(unknown_kind(&item, other)),
        };
        Ok(kind)
    }
}

impl Binning {
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
    let fix = "Write second = \"hours\" for a histogram of two columns.";
    let second = section
        .get("second")
        .map(|i| i.text(fix).map(str::to_owned))
        .transpose()?;
    let second_bins = section
        .get("second_bins")
        .map(|i| Binning::read(&i))
        .transpose()?;
    let methods = Method::ALL.map(|m| (m.name(), m));
    let method = section
        .get("method")
        .map(|i| i.word(&methods))
        .transpose()?
        .unwrap_or(Method::Identity);
    let workloads = [
        ("identity", Workload::Identity),
        ("prefix", Workload::Prefix),
        ("ranges", Workload::Rectangles(RANGES)),
    ];
    let workload = section
        .get("workload")
        .map(|i| i.word(&workloads))
        .transpose()?
        .unwrap_or(Workload::Identity);
    if bins.is_some() && edges.is_some() {
        return Err(section
            .refuse("`bins` and `edges` exclude each other")
            .accepting("Remove one of the two."));
    }
    if second.is_none() && second_bins.is_some() {
        return Err(section
            .refuse("`second_bins` belongs to a second column")
            .accepting(fix));
    }
    if second.as_deref() == Some(column.as_str()) {
        return Err(section
            .refuse("the two columns of a histogram must differ")
            .accepting(fix));
    }
    let axes = if second.is_some() { 2 } else { 1 };
    if !method.takes(axes) {
        let known: Vec<&str> = Method::ALL
            .into_iter()
            .filter(|m| m.takes(axes))
            .map(Method::name)
            .collect();
        return Err(section
            .refuse(format!(
                "method \"{}\" does not take {axes} column{}",
                method.name(),
                if axes == 1 { "" } else { "s" }
            ))
            .accepting(format!("Write one of {}.", quoted(&known))));
    }
    Ok(HistogramSpec {
        column,
        bins: bins.or(edges),
        second,
        second_bins,
        method,
        workload,
    })
}

fn top_k(section: &mut Section<'_>) -> Result<TopKSpec, Refusal> {
    let fix = "Write column = \"occupation\".";
    let column = section.need("column", fix)?.text(fix)?.to_owned();
    let bins = section.get("bins").map(|i| Binning::read(&i)).transpose()?;
    let fix = "Write for example k = 10.";
    let k = section.need("k", fix)?.count(1, 1_000_000, fix)?;
    let methods = selection::Method::ALL.map(|m| (m.name(), m));
    let method = section
        .get("method")
        .map(|i| i.word(&methods))
        .transpose()?;
    Ok(TopKSpec {
        column,
        bins,
        k,
        method,
    })
}

fn running_total(section: &mut Section<'_>) -> Result<RunningTotalSpec, Refusal> {
    let fix = "Write column = \"day\".";
    let column = section.need("column", fix)?.text(fix)?.to_owned();
    let steps = section
        .get("steps")
        .map(|i| Binning::read(&i))
        .transpose()?;
    let methods = counters::Method::ALL.map(|m| (m.name(), m));
    let method = section
        .get("method")
        .map(|i| i.word(&methods))
        .transpose()?;
    Ok(RunningTotalSpec {
        column,
        steps,
        method,
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
    let method = word(
        section,
        "method",
        &[
            ("exponential", QuantileMethod::Exponential),
            ("recursive", QuantileMethod::Recursive),
            ("smooth", QuantileMethod::Smooth),
        ],
    )?;
    Ok(QuantilesSpec {
        of,
        levels,
        cells: cells.unwrap_or(DEFAULT_CELLS),
        method,
    })
}

/// One of a few words; the default if the key is absent.
fn word<T: Copy + Default>(
    section: &mut Section<'_>,
    key: &'static str,
    words: &[(&'static str, T)],
) -> Result<T, Refusal> {
    section
        .get(key)
        .map_or_else(|| Ok(T::default()), |item| item.word(words))
}

pub(super) fn optional_count(
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

pub(super) fn positive_real(
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

pub(super) fn formula_of(section: &mut Section<'_>) -> Result<String, Refusal> {
    let fix = "Write a formula as in R, for example formula = \"income ~ age + C(education)\".";
    formula_text(&section.need("formula", fix)?, fix)
}

fn logistic(section: &mut Section<'_>, earlier: &[ReleaseSpec]) -> Result<LogisticSpec, Refusal> {
    let selected = Selected::read(section, earlier)?;
    let formula = match &selected {
        Some((_, from)) => from.formula.clone(),
        None => formula_of(section)?,
    };
    let fix = "Write the level that counts as positive, for example positive = \">50K\", or a list of levels: each is then fitted against the rest.";
    let (positive, levels) = positive_levels(section, fix)?;
    let scale = match section.get("scale") {
        None => Scaling::Bounds,
        Some(item) => item.word(&[
            ("bounds", Scaling::Bounds),
            ("none", Scaling::None),
            ("norm", Scaling::Norm),
        ])?,
    };
    let fix = "Write the largest Euclidean norm of a row of predictors that should count, for example data_norm = 2.";
    let data_norm = positive_real(section, "data_norm", fix)?;
    if scale != Scaling::Bounds && data_norm.is_none() {
        return Err(section
            .refuse("this scale needs the key `data_norm`")
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
    let fix = "Write a positive penalty, for example lambda = 0.1, or \"default\", \"adjusted\" or \"rule\".";
    let lambda = match section.get("lambda") {
        None => None,
        Some(item) => match item.text("") {
            Ok("rule") => None,
            Ok("default") => Some(Lambda::Default),
            Ok("adjusted") => Some(Lambda::Adjusted),
            _ => positive_real(section, "lambda", fix)?.map(Lambda::Value),
        },
    };
    let extra = LogisticExtra::read(section, levels)?;
    let (features, chosen) = selected.unzip();
    Ok(LogisticSpec {
        formula,
        positive: chosen.map_or(positive, |from| from.positive),
        scale,
        data_norm,
        clip,
        lambda,
        extra,
        features,
    })
}

/// The positive level of two classes, or a list of levels.
fn positive_levels(
    section: &mut Section<'_>,
    fix: &str,
) -> Result<(Option<String>, Vec<String>), Refusal> {
    let item = match section.get("positive") {
        None => return Ok((None, Vec::new())),
        Some(item) if !item.is_list() => return Ok((Some(item.name(fix)?), Vec::new())),
        Some(item) => item,
    };
    let mut levels: Vec<String> = Vec::new();
    for element in item.list(fix)? {
        let level = element.name(fix)?;
        if levels.contains(&level) {
            return Err(element
                .refuse("this level is listed twice")
                .accepting("Remove one of the two."));
        }
        levels.push(level);
    }
    if levels.len() < 2 || levels.len() > 1000 {
        return Err(item
            .refuse("between 2 and 1000 levels are accepted")
            .accepting(fix));
    }
    Ok((None, levels))
}

fn naive_bayes(
    section: &mut Section<'_>,
    earlier: &[ReleaseSpec],
) -> Result<NaiveBayesSpec, Refusal> {
    let selected = Selected::read(section, earlier)?;
    let (formula, (positive, levels)) = if let Some((_, from)) = &selected {
        (from.formula.clone(), (from.positive.clone(), Vec::new()))
    } else {
        let fix = "Write the level that counts as positive, for example positive = \">50K\", or the list of all levels: they are then told apart by one release.";
        (formula_of(section)?, positive_levels(section, fix)?)
    };
    let fix = "Write a positive pseudo-count, for example smoothing = 1, or leave it to the rule.";
    let keep = super::models::kept(section, selected.is_some())?;
    if keep.is_some() && !levels.is_empty() {
        let line = section.line_of("keep");
        return Err(section
            .refuse("`keep` chooses by how well a feature parts two classes")
            .at_line(line)
            .accepting("Remove `keep`, or name the one level that counts as positive."));
    }
    Ok(NaiveBayesSpec {
        formula,
        positive,
        levels,
        smoothing: positive_real(section, "smoothing", fix)?,
        keep,
        features: selected.map(|s| s.0),
    })
}

fn linear(section: &mut Section<'_>) -> Result<LinearSpec, Refusal> {
    let formula = formula_of(section)?;
    let output = LinearOutput::read(section)?;
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
        noise: PureNoise::read(section)?,
        reported: Reported::read(section)?,
        output,
    })
}

fn roc(section: &mut Section<'_>, earlier: &[ReleaseSpec]) -> Result<RocSpec, Refusal> {
    let models = roc_models(section, earlier)?;
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
    let fix = "Write a share between 0 and 1, for example threshold_share = 0.1.";
    let threshold_share = share(section, "threshold_share", fix)?;
    let thresholds = word(section, "thresholds", &ROC_THRESHOLDS)?;
    if thresholds == Thresholds::Even && threshold_share.is_some() {
        let line = section.line_of("threshold_share");
        return Err(section
            .refuse("`threshold_share` has no effect with even thresholds, which are public")
            .at_line(line)
            .accepting("Remove one of the two."));
    }
    let counts = section
        .get("counts")
        .map(|i| i.word(&ROC_COUNTS))
        .transpose()?
        .unwrap_or(Method::Identity);
    if thresholds == Thresholds::LabelSeparate && section.get("counts").is_some() {
        let line = section.line_of("counts");
        return Err(section
            .refuse("`counts` has no effect with label-separate thresholds: nothing is counted between them")
            .at_line(line)
            .accepting("Remove it, or write thresholds = \"stratified\"."));
    }
    let decide_at = match section.get("decide_at") {
        None => DECIDE_AT.to_vec(),
        Some(item) => probabilities(&item)?,
    };
    Ok(RocSpec {
        models,
        bins,
        threshold_share,
        thresholds,
        counts,
        decide_at,
    })
}

/// Probabilities at which decisions are made, in order and each once, however they are written.
fn probabilities(item: &Item<'_>) -> Result<Vec<f64>, Refusal> {
    let fix = "Write probabilities, for example decide_at = [0.5, 0.8].";
    let elements = item.list(fix)?;
    let mut list = elements
        .iter()
        .map(|e| e.real(fix).map(|t| t + 0.0)) // 0 for -0
        .collect::<Result<Vec<f64>, _>>()?;
    if list.is_empty() || list.len() > 64 || list.iter().any(|t| !(0.0..=1.0).contains(t)) {
        return Err(item
            .refuse("must be 1 to 64 numbers between 0 and 1")
            .accepting(fix));
    }
    list.sort_by(f64::total_cmp);
    list.dedup();
    Ok(list)
}

/// How the cells of a residual plot are perturbed.
fn perturbation(section: &mut Section<'_>) -> Result<Method, Refusal> {
    let words: Vec<(&str, Method)> = Method::ALL
        .into_iter()
        .filter(|m| m.takes(2))
        .map(|m| (m.name(), m))
        .collect();
    section
        .get("method")
        .map_or(Ok(Method::Identity), |item| item.word(&words))
}

/// How the box of a residual plot is found; `unit` belongs to doubling.
fn plot_bounds(section: &mut Section<'_>) -> Result<residuals::Bounds, Refusal> {
    let doubling = word(section, "bounds", &[("fine", false), ("doubling", true)])?;
    let unit = positive_real(
        section,
        "unit",
        "Write the smallest half-width of the box that makes sense, for example unit = 1.",
    )?;
    match (doubling, unit) {
        (true, unit) => Ok(residuals::Bounds::Doubling { unit }),
        (false, None) => Ok(residuals::Bounds::Fine),
        (false, Some(_)) => Err(section
            .refuse("`unit` belongs to bounds = \"doubling\"")
            .accepting("Remove it, or add bounds = \"doubling\".")),
    }
}

/// The one `model`, or the list `models`.
fn roc_models(
    section: &mut Section<'_>,
    earlier: &[ReleaseSpec],
) -> Result<Vec<ModelRef>, Refusal> {
    let why = "A ROC curve examines a logistic model.";
    let single = section.get("model").is_some();
    let Some(item) = section.get("models") else {
        return Ok(vec![reference(
            section,
            earlier,
            "model",
            &["logistic"],
            why,
        )?]);
    };
    let fix = "Write for example models = [\"small\", \"large\"], or model = \"small\" for one.";
    if single {
        return Err(item
            .refuse("`model` and `models` exclude each other")
            .accepting(fix));
    }
    let list = item.list(fix)?;
    let mut models: Vec<ModelRef> = Vec::new();
    for entry in &list {
        let found = model_named(entry, earlier, &["logistic"], why)?;
        if models.contains(&found) {
            return Err(entry.refuse("is named twice").accepting(fix));
        }
        models.push(found);
    }
    if !(2..=MOST_MODELS).contains(&models.len()) {
        return Err(item
            .refuse(format!("must name 2 to {MOST_MODELS} models"))
            .accepting(fix));
    }
    Ok(models)
}

fn binned_residuals(
    section: &mut Section<'_>,
    earlier: &[ReleaseSpec],
) -> Result<BinnedResidualsSpec, Refusal> {
    let why = "Binned residuals examine a logistic model; for a linear one ask for residuals.";
    let model = reference(section, earlier, "model", &["logistic"], why)?;
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
    let against = section
        .get("against")
        .map(|i| i.text("Name a column or an expression, for example against = \"age\"."))
        .transpose()?
        .map(str::to_owned);
    let adjust = word(section, "adjust", &[("none", false), ("merge", true)])?;
    if adjust && edges.is_some() {
        return Err(section
            .refuse("public `edges` are not adjusted")
            .accepting("Remove `edges`, or `adjust`."));
    }
    let fix_share = "Write a share between 0 and 1, for example bin_share = 0.2.";
    let bin_share = share(section, "bin_share", fix_share)?;
    let line = section.line_of("bin_share");
    match &bin_share {
        Some(_) if edges.is_some() => {
            return Err(section
                .refuse("`bin_share` has no effect with public `edges`")
                .at_line(line)
                .accepting("Remove one of the two."));
        }
        Some(share) if adjust && share + share >= Rational::ONE => {
            return Err(section
                .refuse("with `adjust`, which takes as much again, `bin_share` must lie below 1/2")
                .at_line(line)
                .accepting("Write for example bin_share = 0.15."));
        }
        _ => {}
    }
    if against.is_none()
        && let Some(edges) = &edges
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
        adjust,
        bin_share,
        against,
    })
}

/// A share of the budget, strictly between 0 and 1.
fn share(
    section: &mut Section<'_>,
    key: &'static str,
    fix: &str,
) -> Result<Option<Rational>, Refusal> {
    let Some(item) = section.get(key) else {
        return Ok(None);
    };
    let value = item.rational(fix)?;
    if value <= Rational::ZERO || value >= Rational::ONE {
        return Err(item
            .refuse("must lie strictly between 0 and 1")
            .accepting(fix));
    }
    Ok(Some(value))
}

/// Whether a release is of one of these kinds; naive Bayes gives log-odds like a logistic model.
fn fits(release: &ReleaseSpec, kinds: &[&str]) -> bool {
    let name = release.kind.name();
    kinds.contains(&name) || (name == "naive_bayes" && kinds.contains(&"logistic"))
}

/// A released value: the id of an earlier release of one of these kinds, or `path#id`.
pub(super) fn reference(
    section: &mut Section<'_>,
    earlier: &[ReleaseSpec],
    key: &'static str,
    kinds: &[&str],
    why: &str,
) -> Result<ModelRef, Refusal> {
    let kind = kinds.join(" or ");
    let fix = format!("Name an earlier {kind} release of this plan, or write \"release.json#id\".");
    model_named(&section.need(key, &fix)?, earlier, kinds, why)
}

fn model_named(
    item: &Item<'_>,
    earlier: &[ReleaseSpec],
    kinds: &[&str],
    why: &str,
) -> Result<ModelRef, Refusal> {
    let kind = kinds.join(" or ");
    let fix = format!("Name an earlier {kind} release of this plan, or write \"release.json#id\".");
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
        Some(found) if fits(found, kinds) => Ok(ModelRef::Release(text.to_owned())),
        Some(found) => Err(item
            .refuse(format!(
                "the release \"{text}\" is of kind \"{}\"",
                found.kind.name()
            ))
            .accepting(why)),
        None => {
            let models: Vec<&str> = earlier
                .iter()
                .filter(|r| fits(r, kinds))
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
