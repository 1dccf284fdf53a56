//! From the kinds of a plan to the mechanisms that make them, over public facts.

mod models;

use std::collections::BTreeMap;

use reticent_accounting::exp::sqrt_lower;
use reticent_accounting::{
    AccountingError, Currency, Event, Rational, floor_to_grid, grid_bits, rational_to_f64,
};
use reticent_mechanisms::fold::Fold;
use reticent_mechanisms::primitives::Payment as MomentsPayment;
use reticent_mechanisms::program::{Expr, Scope};
use reticent_mechanisms::rows::{Kind, Schema};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, Mechanism};
use reticent_statistics::accuracy::Question;
use reticent_statistics::range::RangeScales;
use reticent_statistics::simple::{self, AxisCut, AxisSpec, Bisect};
use reticent_statistics::{
    DesignSpec, Facts, Prepared, Score, StatisticsError, auc, binned, features, histogram, linear,
    naive_bayes, planning, residuals, running, selection, verify,
};
use serde_json::{Value, json};

use crate::bayes::{self, Named};
use crate::budget::Payment;
use crate::dataset::Dataset;
use crate::formula::{self, Design, Family, FormulaError, Response};
use crate::kinds::{
    Binning, Clip, DEFAULT_BINS, HistogramSpec, KindSpec, LinearSpec, LogisticSpec, ModelRef,
    QuantileMethod, QuantilesSpec, RunningTotalSpec, SelectSpec,
};
use crate::model::{Examined, Model, TextWeights};
use crate::outcome::Refusal;
use crate::plan::ReleaseSpec;
use crate::resolve::{Entry, Resolved};
use crate::tokens::Tokens;

/// The row program's terms and the mechanism of a release. `rows` is the public or released number of rows of
/// its row set; `models` what it is computed from besides the rows.
pub(crate) fn prepare(
    resolved: &Resolved,
    entry: &Entry,
    context: &Context,
    rows: Option<f64>,
    models: &[Examined],
) -> Result<Prepared, Refusal> {
    fit(resolved, entry, context, rows, models).map(|(prepared, _)| prepared)
}

/// The ε that the error of a release is predicted at, if that needs no models: the one that it is written for, or what fits its ρ. Of histograms with a
/// method of their own the noise on every cell alone is predicted, for comparison, which is at √(2ρ).
pub(crate) fn epsilon(
    resolved: &Resolved,
    entry: &Entry,
    context: &Context,
    rows: Option<f64>,
) -> Rational {
    let own = |spec: &ReleaseSpec| matches!(&spec.kind, KindSpec::Histogram(s) if s.method != histogram::Method::Identity);
    if entry.spec.as_ref().is_some_and(own) {
        return entry.payment.epsilon.clone();
    }
    fit(resolved, entry, context, rows, &[])
        .map_or_else(|_| entry.payment.epsilon.clone(), |(_, epsilon)| epsilon)
}

/// Steps towards a ρ; one is enough where every cost grows with the square of ε.
const FITS: usize = 16;

/// Where a plan gives ρ, a release gets the largest ε at which its steps cost no more: √(2ρ) is what one step may have, but k equal ones cost the k-th part of that,
/// and choices by the exponential mechanism a quarter. Whatever is built here, the door takes no more than was paid.
fn fit(
    resolved: &Resolved,
    entry: &Entry,
    context: &Context,
    rows: Option<f64>,
    models: &[Examined],
) -> Result<(Prepared, Rational), Refusal> {
    let mut entry = entry.clone();
    let mut best = made(resolved, &entry, context, rows, models)?;
    let mut epsilon = entry.payment.epsilon.clone();
    let in_rho = |spec: &ReleaseSpec| {
        let printed = matches!(&spec.kind, KindSpec::Bounds(s) if s.scales == RangeScales::Printed);
        spec.budget.rho.is_some() && !printed
    };
    if context.currency != Currency::Concentrated || !entry.spec.as_ref().is_some_and(in_rho) {
        return Ok((best, epsilon));
    }
    let paid = entry.payment.claim.amount.clone();
    let cost = |prepared: &Prepared| {
        let price = prepared.mechanism.event(context).ok()?;
        let price = price.price(Currency::Concentrated).ok()?;
        let cost = price.under(context.relation)?;
        (!cost.amount.is_zero()).then(|| cost.amount.clone())
    };
    let enough = &paid - &paid / Rational::from(1u64 << 20);
    // where the rules of a kind (bins, shares) change with ε its cost may jump over what is paid: then the place is looked for below
    let mut too_much: Option<Rational> = None;
    for _ in 0..FITS {
        let Some(before) = cost(&best).filter(|c| *c < enough) else {
            break;
        };
        let larger = match &too_much {
            None => &epsilon * sqrt_lower(&(&paid / &before)),
            Some(high) => (&epsilon + high) / Rational::from(2u8),
        };
        let larger = floor_to_grid(&larger, grid_bits(&larger));
        entry.payment.epsilon.clone_from(&larger);
        let next = made(resolved, &entry, context, rows, models).ok();
        match next.and_then(|next| cost(&next).map(|now| (next, now))) {
            Some((_, now)) if now == before && too_much.is_none() => break,
            Some((next, now)) if now <= paid => (best, epsilon) = (next, larger),
            _ => too_much = Some(larger),
        }
    }
    Ok((best, epsilon))
}

/// What is written in a plan, at the ε of its payment.
#[allow(clippy::too_many_lines, reason = "one arm per kind")]
fn made(
    resolved: &Resolved,
    entry: &Entry,
    context: &Context,
    rows: Option<f64>,
    models: &[Examined],
) -> Result<Prepared, Refusal> {
    let model = models.first();
    let facts = facts(resolved, context, rows);
    let Some(spec) = &entry.spec else {
        return simple::count(&facts, &entry.payment.epsilon).map_err(|e| refuse(&e));
    };
    let epsilon = &entry.payment.epsilon;
    let schema = &*resolved.dataset.schema;
    let named = Named::of(&resolved.dataset);
    let prepared = match &spec.kind {
        KindSpec::Count => simple::count(&facts, epsilon),
        KindSpec::Sum(s) => simple::sum(&facts, expression(&s.of, schema, "of")?, epsilon),
        KindSpec::Mean(s) => simple::mean(&facts, expression(&s.of, schema, "of")?, epsilon),
        KindSpec::Histogram(s) => tabulated(&facts, s, epsilon)?,
        KindSpec::Crosstab(s) => {
            let axes = s
                .columns
                .iter()
                .map(|c| axis(&facts, c, &s.binning(c)))
                .collect::<Result<_, _>>()?;
            simple::crosstab(&facts, axes, epsilon)
        }
        KindSpec::Quantiles(s) => quantiles(&facts, s, expression(&s.of, schema, "of")?, epsilon),
        KindSpec::Bounds(s) => {
            let coverage = rational_to_f64(&s.coverage);
            simple::bounds_by(
                &facts,
                expression(&s.of, schema, "of")?,
                &s.of,
                coverage,
                simple::BoundsConfig {
                    search: s.method,
                    sides: s.sides,
                    scales: s.scales,
                },
                epsilon,
            )
        }
        KindSpec::TopK(s) => {
            let axis = axis(&facts, &s.column, &binning(s.bins.as_ref()))?;
            selection::top_k(&facts, &axis, s.k, s.method, epsilon)
        }
        KindSpec::RunningTotal(s) => running::prepare(
            &facts,
            &time_axis(&facts, s)?,
            s.method,
            totals_payment(context.currency, &entry.payment),
        ),
        KindSpec::Logistic(s) => models::logistic(&facts, named, s, model, &entry.payment)?,
        KindSpec::Covariance(s) => models::covariance(&facts, s, &entry.payment)?,
        KindSpec::Regress(s) => models::regress(s, model, schema)?,
        KindSpec::Threshold(s) => models::threshold(s, model)?,
        KindSpec::Linear(s) => {
            let design = linear_design(schema, s)?;
            match s.output {
                Some(of) => linear::prepare_output(
                    &facts,
                    &design,
                    &models::output_config(of, s.grid_bits, epsilon),
                ),
                None => linear::prepare(
                    &facts,
                    &design,
                    &linear_config(s, context.currency, &entry.payment)?,
                ),
            }
        }
        KindSpec::NaiveBayes(s) => naive_bayes::prepare(
            &facts,
            &bayes::spec(named, s, model)?,
            bayes::config(s, context.currency, &entry.payment),
        ),
        KindSpec::Select(s) => {
            let (items, label, metadata) = bayes::selection::candidates(named, facts.filter, s)?;
            let config =
                bayes::selection::select_config(s, context.currency, &entry.payment, metadata);
            features::select(&facts, &items, &label, config)
        }
        KindSpec::Roc(s) => return crate::examine::roc(&facts, s, models, schema, epsilon),
        KindSpec::Auc(s) => {
            let (model, design) = examined(model, Family::Logistic, schema)?;
            let score = Score::Linear(model.linear_predictor(&design));
            let outcome = design.response.expr().clone();
            auc::prepare(
                &facts,
                &score,
                outcome,
                epsilon,
                about(&s.model, Some(&design)),
            )
        }
        KindSpec::Residuals(s) => {
            let (model, design) = examined(model, Family::Linear, schema)?;
            let config = residuals::Config {
                side: s.side,
                method: s.method,
                bounds: s.bounds,
                tests: s.tests,
                metadata: about(&s.model, None),
                ..residuals::Config::new(epsilon.clone())
            };
            residuals::prepare(
                &facts,
                &model.fitted(&design),
                design.response.expr(),
                config,
            )
        }
        KindSpec::BinnedResiduals(s) => {
            let (model, design) = examined(model, Family::Logistic, schema)?;
            let default = if s.adjust {
                binned::Config::published(epsilon.clone(), facts.rows)
            } else {
                binned::Config::new(epsilon.clone())
            };
            let against = match &s.against {
                Some(text) => Some((text.clone(), expression(text, schema, "against")?)),
                None => None,
            };
            let levels = s.levels.map(|l| 1u32.checked_shl(l).unwrap_or(u32::MAX));
            let config = binned::Config {
                bins: levels.or(default.bins),
                edges: s.edges.clone(),
                share: s.bin_share.as_ref().map(rational_to_f64),
                against,
                metadata: about(&s.model, Some(&design)),
                ..default
            };
            let score = Score::Linear(model.linear_predictor(&design));
            binned::prepare(&facts, &score, design.response.expr().clone(), config)
        }
        KindSpec::Verify(s) => verify::prepare(
            &facts,
            &models::verified(&facts, s)?,
            &models::verify_config(s, epsilon),
        ),
        KindSpec::CrossValidation(s) => Ok(models::cross_validation(s, resolved, models)),
        KindSpec::Decisions(_) => models::decisions(&facts, model, epsilon)?,
    };
    Ok(stating(resolved, prepared.map_err(|e| refuse(&e))?))
}

/// Adds to a model, which names the columns it reads, the texts that mean a missing cell in them, and the bounds that the plan's
/// `where` gave them: whoever predicts has to read cells as the fit did.
fn stating(resolved: &Resolved, prepared: Prepared) -> Prepared {
    let dataset = &resolved.dataset;
    let declared = (dataset.schema.columns.iter().zip(&dataset.policies))
        .filter(|(_, policy)| policy.missing_values.iter().any(|v| !v.is_empty()))
        .map(|(column, policy)| (column.name.clone(), policy.missing_values.clone()));
    let missing: BTreeMap<String, Vec<String>> = declared.collect();
    let narrowed = narrowed(&dataset.schema, resolved.filter.as_ref());
    if missing.is_empty() && narrowed.is_empty() {
        return prepared;
    }
    let inner = prepared.mechanism;
    Prepared {
        terms: prepared.terms,
        mechanism: Box::new(Stating {
            inner,
            missing,
            narrowed,
        }),
    }
}

/// The columns that records which meet the condition have within smaller bounds than the declared ones.
fn narrowed(schema: &Schema, filter: Option<&Expr>) -> BTreeMap<String, Kind> {
    let Some(filter) = filter else {
        return BTreeMap::new();
    };
    let scope = Scope::new(schema, Some(filter));
    let each = schema.columns.iter().enumerate().filter_map(|(i, column)| {
        let bounds = scope.column(i).ok()?;
        let kind = match &column.kind {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "bounds of integers are whole and at most 2^53, or become so"
            )]
            Kind::Integer { .. } => Kind::Integer {
                lower: bounds.lower as i64,
                upper: bounds.upper as i64,
            },
            Kind::Real { .. } => Kind::Real {
                lower: bounds.lower,
                upper: bounds.upper,
            },
            Kind::Levels { .. } | Kind::Id => return None,
        };
        (kind != column.kind).then(|| (column.name.clone(), kind))
    });
    each.collect()
}

/// # Claim
/// That of the mechanism inside: what is added is declared.
struct Stating {
    inner: Box<dyn Mechanism>,
    missing: BTreeMap<String, Vec<String>>,
    narrowed: BTreeMap<String, Kind>,
}

impl Mechanism for Stating {
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        self.inner.event(context)
    }
    fn first_pass(&self) -> Vec<Fold> {
        self.inner.first_pass()
    }
    fn passes(&self) -> u32 {
        self.inner.passes()
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let mut answer = self.inner.run(desk)?;
        let columns = answer.value.pointer_mut("/columns/columns");
        for column in columns.and_then(Value::as_array_mut).into_iter().flatten() {
            let name = column.get("name").and_then(Value::as_str);
            let kind = name.and_then(|n| self.narrowed.get(n));
            if let (Some(kind), Value::Object(fields)) = (kind, column) {
                fields.insert("kind".to_owned(), json!(kind));
            }
        }
        let columns = answer.value.pointer("/columns/columns");
        let names = columns.and_then(Value::as_array).into_iter().flatten();
        let stated: serde_json::Map<String, Value> = names
            .filter_map(|column| column.get("name")?.as_str())
            .filter_map(|name| Some((name.to_owned(), json!(self.missing.get(name)?))))
            .collect();
        if let (false, Value::Object(fields)) = (stated.is_empty(), &mut answer.value) {
            fields.insert("missing_values".to_owned(), Value::Object(stated));
        }
        Ok(answer)
    }
}

fn quantiles(
    facts: &Facts<'_>,
    spec: &QuantilesSpec,
    of: Expr,
    epsilon: &Rational,
) -> Result<Prepared, StatisticsError> {
    let levels: Vec<f64> = spec.levels.iter().map(rational_to_f64).collect();
    let draw = match spec.method {
        QuantileMethod::Exponential => {
            return simple::quantiles(facts, of, &spec.of, &levels, spec.cells, epsilon);
        }
        QuantileMethod::Recursive => Bisect::Exponential,
        QuantileMethod::Smooth => Bisect::Smooth,
    };
    simple::bisected_quantiles(facts, of, &spec.of, &levels, spec.cells, draw, epsilon)
}

/// What to expect of a release if the number of rows of the whole table is known, from public numbers only.
pub(crate) fn accuracy(
    resolved: &Resolved,
    entry: &Entry,
    context: &Context,
    rows: Option<f64>,
) -> Option<String> {
    rows?;
    expected(resolved, entry, context, rows)
}

/// The error of a selection, from public numbers only.
pub(crate) fn select_question(
    resolved: &Resolved,
    entry: &Entry,
    context: &Context,
    spec: &SelectSpec,
) -> Option<Question> {
    let facts = facts(resolved, context, None);
    bayes::selection::select_question(&facts, Named::of(&resolved.dataset), spec, &entry.payment)
}

/// What to expect of a release, from public numbers only; `rows` counts the whole table.
pub(crate) fn expected(
    resolved: &Resolved,
    entry: &Entry,
    context: &Context,
    rows: Option<f64>,
) -> Option<String> {
    let rows = rows.map(|n| n * entry.fraction);
    let epsilon = &epsilon(resolved, entry, context, rows);
    let facts = facts(resolved, context, rows);
    let schema = &*resolved.dataset.schema;
    let named = Named::of(&resolved.dataset);
    let Some(spec) = &entry.spec else {
        return Some(planning::count(&facts, epsilon).sentence);
    };
    let prediction = match &spec.kind {
        KindSpec::Count => planning::count(&facts, epsilon),
        KindSpec::Sum(s) => {
            planning::sum(&facts, &formula::expression(&s.of, schema).ok()?, epsilon).ok()?
        }
        KindSpec::Mean(s) => {
            planning::mean(&facts, &formula::expression(&s.of, schema).ok()?, epsilon).ok()?
        }
        KindSpec::Histogram(s) => {
            let total = s
                .axes()
                .iter()
                .map(|(c, b)| Some(cells(&axis(&facts, c, b).ok()?)))
                .try_fold(1usize, |n, cells| Some(n.saturating_mul(cells?)))?;
            if s.method == histogram::Method::Identity {
                planning::table(&facts, total, epsilon)
            } else {
                planning::other_histogram(&facts, s.method, total, epsilon)
            }
        }
        KindSpec::Crosstab(s) => {
            let each = s
                .columns
                .iter()
                .map(|c| axis(&facts, c, &s.binning(c)).map_or(1, |a| cells(&a)));
            planning::table(&facts, each.fold(1, usize::saturating_mul), epsilon)
        }
        KindSpec::Quantiles(s) => {
            planning::quantiles(&facts, s.levels.len(), s.cells, s.method.planned(), epsilon)
        }
        KindSpec::TopK(s) => {
            let axis = axis(&facts, &s.column, &binning(s.bins.as_ref())).ok()?;
            planning::top_k(&facts, cells(&axis), s.k, s.method, epsilon)
        }
        KindSpec::RunningTotal(s) => {
            let steps = cells(&time_axis(&facts, s).ok()?);
            let payment = totals_payment(context.currency, &entry.payment);
            planning::running_total(&facts, steps, s.method, &payment)
        }
        KindSpec::Auc(_) => planning::auc(&facts, epsilon),
        KindSpec::Bounds(s) => planning::bounds(&facts, rational_to_f64(&s.coverage), epsilon),
        KindSpec::Logistic(s) => planning::logistic(
            &facts,
            &logistic_design(named, s, None).ok()?,
            &models::logistic_config(s, &entry.payment),
        )
        .ok()?,
        KindSpec::Linear(s) => {
            let design = linear_design(schema, s).ok()?;
            if let Some(of) = s.output {
                let config = models::output_config(of, s.grid_bits, epsilon);
                planning::linear_output(&facts, &design, &config).ok()?
            } else {
                let config = linear_config(s, context.currency, &entry.payment).ok()?;
                planning::linear(&facts, &design, &config).ok()?
            }
        }
        KindSpec::Covariance(s) if s.sketch.is_some() => {
            let config = models::sketch_config(s, s.sketch.as_ref()?, &entry.payment);
            planning::sketch(&facts, s.columns.len(), &config)?
        }
        KindSpec::Covariance(s) => {
            let payment = moments_payment(context.currency, &entry.payment).ok()?;
            planning::covariance(&facts, s.columns.len(), s.data_norm, &payment)?
        }
        KindSpec::Decisions(_) => planning::table(&facts, 4, epsilon),
        KindSpec::Regress(_) | KindSpec::Threshold(_) | KindSpec::CrossValidation(_) => {
            return Some("computed from released values: costs nothing".to_owned());
        }
        KindSpec::Roc(s) => crate::examine::expected_roc(&facts, s, epsilon),
        KindSpec::NaiveBayes(s) => return bayes::accuracy(&facts, named, s, &entry.payment),
        KindSpec::Select(s) => {
            return bayes::selection::select_accuracy(&facts, named, s, &entry.payment);
        }
        KindSpec::Residuals(_) => planning::residuals(&facts, epsilon),
        KindSpec::BinnedResiduals(_) => planning::binned_residuals(&facts, epsilon),
        KindSpec::Verify(s) => planning::verify(
            &facts,
            &models::verified(&facts, s).ok()?,
            &models::verify_config(s, epsilon),
        ),
    };
    Some(prediction.sentence)
}

/// Number of cells of a column's axis.
pub(crate) fn cells_of(resolved: &Resolved, column: &str, binning: &Binning) -> Option<u64> {
    let context = Context::records(resolved.dataset.neighbours);
    let axis = axis(&facts(resolved, &context, None), column, binning).ok()?;
    u64::try_from(cells(&axis)).ok()
}

/// What stands for a planned release before it is made: a model with its design and coefficients 0, or the public part
/// of its value. Enough to price what is computed from it.
pub(crate) fn blank(resolved: &Resolved, entry: &Entry) -> Result<Examined, Refusal> {
    let schema = &*resolved.dataset.schema;
    let (formula, positive, family) = match entry.spec.as_ref().map(|s| &s.kind) {
        Some(KindSpec::Logistic(s)) if s.extra.levels.is_empty() => {
            (&s.formula, s.positive.clone(), Family::Logistic)
        }
        Some(KindSpec::Linear(s)) => (&s.formula, None, Family::Linear),
        Some(KindSpec::Regress(s)) => (&s.formula, None, Family::Linear),
        Some(KindSpec::Covariance(s)) => return Ok(Examined::Value(models::unreleased(s))),
        Some(KindSpec::Roc(_) | KindSpec::Select(_) | KindSpec::Decisions(_)) => {
            return Ok(Examined::Value(Value::Null));
        }
        Some(KindSpec::NaiveBayes(s)) if s.levels.is_empty() => {
            (&s.formula, s.positive.clone(), Family::Logistic)
        }
        _ => {
            return Err(Refusal::request("examines a release that is not a model").for_key("model"));
        }
    };
    let tokens = &resolved.dataset.tokens;
    let schema = crate::tokens::named(schema, tokens);
    let design = compile(formula, &schema, positive.as_deref(), family)?;
    let unknown = |t: &Tokens| TextWeights {
        column: t.column.name.clone(),
        slots: t.column.most,
        weights: vec![0.0],
    };
    Ok(Examined::Model(Model {
        family,
        formula: design.formula,
        positive,
        intercept: 0.0,
        coefficients: Vec::new(),
        texts: tokens.iter().map(unknown).collect(),
    }))
}

fn facts<'a>(resolved: &'a Resolved, context: &'a Context, rows: Option<f64>) -> Facts<'a> {
    Facts {
        schema: &resolved.dataset.schema,
        filter: resolved.filter.as_ref(),
        context,
        rows,
        positive_rate: resolved.dataset.positive_rate,
    }
}

pub(crate) fn refuse(error: &StatisticsError) -> Refusal {
    Refusal::request(error.to_string())
}

fn formula_error(error: &FormulaError, key: &str) -> Refusal {
    Refusal::request(error.to_string()).for_key(key)
}

fn expression(text: &str, schema: &Schema, key: &str) -> Result<Expr, Refusal> {
    formula::expression(text, schema).map_err(|e| formula_error(&e, key))
}

fn compile(
    text: &str,
    schema: &Schema,
    positive: Option<&str>,
    family: Family,
) -> Result<Design, Refusal> {
    formula::compile(text, schema, positive, family).map_err(|e| formula_error(&e, "formula"))
}

fn axis(facts: &Facts<'_>, column: &str, binning: &Binning) -> Result<AxisSpec, Refusal> {
    let at = facts
        .schema
        .position(column)
        .ok_or_else(|| Refusal::request(format!("there is no column {column}")))?;
    let (expr, cut) = match &facts.schema.columns[at].kind {
        Kind::Levels { levels, .. } => (Expr::Code(at), AxisCut::Levels(levels.clone())),
        Kind::Id => {
            return Err(Refusal::request(format!(
                "{column} identifies people; it cannot be tabulated"
            )));
        }
        Kind::Integer { .. } | Kind::Real { .. } => {
            let bounds = Scope::new(facts.schema, facts.filter)
                .column(at)
                .map_err(|e| Refusal::request(e.to_string()))?;
            let cut = match binning {
                Binning::Even(n) => AxisCut::Even {
                    lower: bounds.lower,
                    upper: bounds.upper,
                    cells: *n,
                },
                Binning::Edges(edges) => {
                    let ends = edges.first().zip(edges.last());
                    let inside =
                        |(low, high): (&f64, &f64)| *low <= bounds.lower && bounds.upper <= *high;
                    if !ends.is_some_and(inside) {
                        return Err(Refusal::request(format!(
                            "the edges do not reach from {} to {}, between which `{column}` lies: what is outside of them would count in the first or last cell",
                            bounds.lower, bounds.upper
                        ))
                        .accepting(format!("Add edges at both ends, or leave those records out by a condition on the column itself, for example where = \"{column} >= {}\".", edges.first().copied().unwrap_or_default())));
                    }
                    AxisCut::Edges(edges.clone())
                }
            };
            (Expr::Column(at), cut)
        }
    };
    Ok(AxisSpec {
        name: column.to_owned(),
        expr,
        cut,
    })
}

/// Plain noisy counts of one column, or one of the histogram algorithms.
fn tabulated(
    facts: &Facts<'_>,
    spec: &HistogramSpec,
    epsilon: &Rational,
) -> Result<Result<Prepared, StatisticsError>, Refusal> {
    let mut axes = spec
        .axes()
        .iter()
        .map(|(column, binning)| axis(facts, column, binning))
        .collect::<Result<Vec<_>, _>>()?;
    if spec.is_plain()
        && let Some(only) = axes.pop()
    {
        return Ok(simple::histogram(facts, only, epsilon));
    }
    let config = histogram::Config {
        workload: spec.workload,
        ..histogram::Config::new(spec.method, epsilon.clone())
    };
    Ok(histogram::prepare(facts, axes, config))
}

/// Steps of a running total: the levels of a column in their order, the given steps, or every whole number between the bounds.
fn time_axis(facts: &Facts<'_>, spec: &RunningTotalSpec) -> Result<AxisSpec, Refusal> {
    let mut axis = axis(facts, &spec.column, &binning(spec.steps.as_ref()))?;
    let kind = facts
        .schema
        .position(&spec.column)
        .map(|at| &facts.schema.columns[at].kind);
    if let (Some(Kind::Integer { .. }), None, AxisCut::Even { lower, upper, .. }) =
        (kind, &spec.steps, &axis.cut)
    {
        let (first, last) = (lower.ceil(), upper.floor());
        let steps = last - first + 1.0;
        #[allow(clippy::cast_precision_loss, reason = "a small limit")]
        let most = running::MAX_STEPS as f64;
        if !(1.0..=most).contains(&steps) {
            return Err(Refusal::request(format!(
                "`{}` has {steps} whole numbers between its bounds; at most {most} steps are accepted",
                spec.column
            ))
            .for_key("steps")
            .accepting("Write for example steps = 365."));
        }
        let mut edges = vec![first];
        while edges.last().is_some_and(|e| *e <= last) {
            edges.push(first + whole(edges.len()));
        }
        axis.cut = AxisCut::Edges(edges);
    }
    Ok(axis)
}

#[allow(
    clippy::cast_precision_loss,
    reason = "at most as many as there are steps"
)]
fn whole(n: usize) -> f64 {
    n as f64
}

/// Number of steps of a running total, checked against the schema.
pub(crate) fn steps_of(
    dataset: &Dataset,
    filter: Option<&Expr>,
    spec: &RunningTotalSpec,
) -> Result<usize, Refusal> {
    let context = Context::records(dataset.neighbours);
    let facts = Facts {
        schema: &dataset.schema,
        filter,
        context: &context,
        rows: None,
        positive_rate: None,
    };
    Ok(cells(&time_axis(&facts, spec)?))
}

fn binning(given: Option<&Binning>) -> Binning {
    given.cloned().unwrap_or(Binning::Even(DEFAULT_BINS))
}

fn cells(axis: &AxisSpec) -> usize {
    match &axis.cut {
        AxisCut::Levels(levels) => levels.len(),
        AxisCut::Even { cells, .. } => *cells as usize,
        AxisCut::Edges(edges) => edges.len().saturating_sub(1),
    }
}

fn logistic_design(
    named: Named<'_>,
    spec: &LogisticSpec,
    found: Option<&Examined>,
) -> Result<DesignSpec, Refusal> {
    let schema = named.schema;
    if let Some(selected) = &spec.features {
        let positive = spec.positive.as_deref();
        return bayes::selection::design_of_chosen(named, &spec.formula, positive, selected, found);
    }
    let design = compile(
        &spec.formula,
        schema,
        spec.positive.as_deref(),
        Family::Logistic,
    )?;
    let positive = match &design.response {
        Response::Binary {
            levels, positive, ..
        } => levels.get(*positive as usize).cloned(),
        Response::Numeric { .. } => None,
    };
    Ok(design_spec(schema, design, positive.as_deref()))
}

fn linear_design(schema: &Schema, spec: &LinearSpec) -> Result<DesignSpec, Refusal> {
    Ok(design_spec(
        schema,
        compile(&spec.formula, schema, None, Family::Linear)?,
        None,
    ))
}

/// The design with the public facts that let the released model predict by itself.
fn design_spec(schema: &Schema, design: Design, positive: Option<&str>) -> DesignSpec {
    let mut used = Vec::new();
    let mut visit = |e: &Expr| match e {
        Expr::Column(c) | Expr::Code(c) | Expr::Level { column: c, .. } => used.push(*c),
        _ => {}
    };
    design.terms.iter().for_each(|t| t.expr.walk(&mut visit));
    design.response.expr().walk(&mut visit);
    used.sort_unstable();
    used.dedup();
    let columns = Schema {
        columns: used
            .iter()
            .filter_map(|c| schema.columns.get(*c).cloned())
            .collect(),
    };
    let mut metadata = json!({
        "formula": design.formula,
        "response": design.response.name(),
        "columns": columns,
    });
    if let (Some(positive), Value::Object(fields)) = (positive, &mut metadata) {
        fields.insert("positive".to_owned(), json!(positive));
    }
    DesignSpec {
        intercept: design.intercept,
        outcome: design.response.expr().clone(),
        terms: design.terms.into_iter().map(|t| (t.name, t.expr)).collect(),
        metadata,
    }
}

fn linear_config(
    spec: &LinearSpec,
    currency: Currency,
    payment: &Payment,
) -> Result<linear::Config, Refusal> {
    Ok(linear::Config {
        payment: moments_payment(currency, payment)?,
        clip: if matches!(spec.clip, Clip::None) {
            linear::Clip::None
        } else {
            linear::Clip::Private
        },
        grid_bits: spec.grid_bits,
        noise: models::noise(spec.noise),
        options: models::options(spec.reported),
    })
}

/// Running totals are paid in ρ where the data set counts it, with Gaussian noise where a δ is given, else in ε.
pub(crate) fn totals_payment(currency: Currency, payment: &Payment) -> MomentsPayment {
    match currency {
        Currency::Concentrated => MomentsPayment::Concentrated {
            rho: payment.claim.amount.clone(),
        },
        Currency::Approximate if payment.delta > Rational::ZERO => MomentsPayment::Approximate {
            epsilon: payment.epsilon.clone(),
            delta: payment.delta.clone(),
        },
        Currency::Pure | Currency::Approximate => MomentsPayment::Pure {
            epsilon: payment.epsilon.clone(),
        },
    }
}

fn moments_payment(currency: Currency, payment: &Payment) -> Result<MomentsPayment, Refusal> {
    Ok(match currency {
        Currency::Pure => MomentsPayment::Pure {
            epsilon: payment.epsilon.clone(),
        },
        Currency::Concentrated => MomentsPayment::Concentrated {
            rho: payment.claim.amount.clone(),
        },
        Currency::Approximate if payment.delta > Rational::ZERO => MomentsPayment::Approximate {
            epsilon: payment.epsilon.clone(),
            delta: payment.delta.clone(),
        },
        Currency::Approximate => {
            return Err(Refusal::request(
                "second moments need a delta here: their noise is Gaussian",
            )
            .for_key("release.delta")
            .accepting("Write for example delta = \"1e-7\"."));
        }
    })
}

/// The model that is examined, which must be of this family: also one of a file, of which a plan knows no kind.
pub(crate) fn examined<'m>(
    model: Option<&'m Examined>,
    family: Family,
    schema: &Schema,
) -> Result<(&'m Model, Design), Refusal> {
    let Some(Examined::Model(model)) = model else {
        return Err(
            Refusal::request("there is no model of two classes or of a number to examine")
                .for_key("model"),
        );
    };
    if model.family != family {
        let (is, wants) = match family {
            Family::Logistic => ("linear", "logistic"),
            Family::Linear => ("logistic", "linear"),
        };
        return Err(Refusal::request(format!(
            "the model is {is}, and this examines {wants} models"
        ))
        .for_key("model")
        .accepting(format!("Name a {wants} model.")));
    }
    let design = model
        .design(schema)
        .map_err(|e| Refusal::request(e.to_string()).for_key("model"))?;
    Ok((model, design))
}

/// Public facts copied into a diagnostic's value.
pub(crate) fn about(model: &ModelRef, design: Option<&Design>) -> Value {
    let name = match model {
        ModelRef::Release(id) => id.clone(),
        ModelRef::File { path, id } => {
            format!(
                "{}#{id}",
                path.file_name().unwrap_or_default().to_string_lossy()
            )
        }
    };
    let mut fields = json!({"model": name});
    if let (
        Some(Response::Binary {
            levels, positive, ..
        }),
        Value::Object(fields),
    ) = (design.map(|d| &d.response), &mut fields)
    {
        fields.insert("positive".to_owned(), json!(levels.get(*positive as usize)));
    }
    fields
}
