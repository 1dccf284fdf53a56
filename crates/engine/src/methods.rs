//! From the kinds of a plan to the mechanisms that make them, over public facts.

use reticent_accounting::{Currency, Rational, rational_to_f64};
use reticent_mechanisms::Context;
use reticent_mechanisms::primitives::Payment as MomentsPayment;
use reticent_mechanisms::program::{Expr, Scope};
use reticent_mechanisms::rows::{Kind, Schema};
use reticent_statistics::simple::{self, AxisCut, AxisSpec, Bisect};
use reticent_statistics::{
    DesignSpec, Facts, Prepared, Score, StatisticsError, binned, histogram, linear, logistic,
    planning, residuals, roc,
};
use serde_json::{Value, json};

use crate::budget::Payment;
use crate::formula::{self, Design, Family, FormulaError, Response};
use crate::kinds::{
    Binning, Clip, HistogramSpec, KindSpec, LinearSpec, LogisticSpec, ModelRef, QuantileMethod,
    QuantilesSpec, Scaling,
};
use crate::model::Model;
use crate::outcome::Refusal;
use crate::resolve::{Entry, Resolved};

/// The row program's terms and the mechanism of a release. `rows` is the public or released number of rows of
/// its row set; `model` the model a diagnostic examines.
pub(crate) fn prepare(
    resolved: &Resolved,
    entry: &Entry,
    context: &Context,
    rows: Option<f64>,
    model: Option<&Model>,
) -> Result<Prepared, Refusal> {
    let facts = facts(resolved, context, rows);
    let Some(spec) = &entry.spec else {
        return simple::count(&facts, &entry.payment.epsilon).map_err(|e| refuse(&e));
    };
    let epsilon = &entry.payment.epsilon;
    let schema = &*resolved.dataset.schema;
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
                (s.method, s.sides),
                epsilon,
            )
        }
        KindSpec::Logistic(s) => logistic::prepare(
            &facts,
            &logistic_design(schema, s)?,
            &logistic_config(s, &entry.payment),
        ),
        KindSpec::Linear(s) => linear::prepare(
            &facts,
            &linear_design(schema, s)?,
            &linear::Config {
                payment: moments_payment(context.currency, &entry.payment)?,
                clip: if matches!(s.clip, Clip::None) {
                    linear::Clip::None
                } else {
                    linear::Clip::Private
                },
                grid_bits: s.grid_bits,
            },
        ),
        KindSpec::Roc(s) => {
            let (model, design) = examined(model, schema)?;
            let config = roc::Config {
                bins: s.bins,
                share: s.threshold_share.as_ref().map(rational_to_f64),
                metadata: about(&s.model, Some(&design)),
                ..roc::Config::new(epsilon.clone())
            };
            let score = Score::Linear(model.linear_predictor(&design));
            roc::prepare(&facts, &score, design.response.expr().clone(), config)
        }
        KindSpec::Residuals(s) => {
            let (model, design) = examined(model, schema)?;
            let config = residuals::Config {
                side: s.side,
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
            let (model, design) = examined(model, schema)?;
            let config = binned::Config {
                bins: s.levels.map(|l| 1u32.checked_shl(l).unwrap_or(u32::MAX)),
                edges: s.edges.clone(),
                metadata: about(&s.model, Some(&design)),
                ..binned::Config::new(epsilon.clone())
            };
            let score = Score::Linear(model.linear_predictor(&design));
            binned::prepare(&facts, &score, design.response.expr().clone(), config)
        }
    };
    prepared.map_err(|e| refuse(&e))
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

/// What to expect of a release, from public numbers only; `rows` counts the whole table.
pub(crate) fn accuracy(
    resolved: &Resolved,
    entry: &Entry,
    context: &Context,
    rows: Option<f64>,
) -> Option<String> {
    let rows = rows.map(|n| n * entry.fraction);
    rows?;
    let facts = facts(resolved, context, rows);
    let epsilon = &entry.payment.epsilon;
    let schema = &*resolved.dataset.schema;
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
        KindSpec::Quantiles(s) => planning::quantiles(&facts, s.levels.len(), s.cells, epsilon),
        KindSpec::Bounds(s) => planning::bounds(&facts, rational_to_f64(&s.coverage), epsilon),
        KindSpec::Logistic(s) => planning::logistic(
            &facts,
            logistic_design(schema, s).ok()?.terms.len(),
            epsilon,
        ),
        KindSpec::Linear(s) => {
            let payment = moments_payment(context.currency, &entry.payment).ok()?;
            planning::linear(&facts, linear_design(schema, s).ok()?.terms.len(), &payment)
        }
        KindSpec::Roc(_) => planning::roc(&facts, epsilon),
        KindSpec::Residuals(_) => planning::residuals(&facts, epsilon),
        KindSpec::BinnedResiduals(_) => planning::binned_residuals(&facts, epsilon),
    };
    Some(prediction.sentence)
}

/// Number of cells of a column's axis.
pub(crate) fn cells_of(resolved: &Resolved, column: &str, binning: &Binning) -> Option<u64> {
    let context = Context::records(resolved.dataset.neighbours);
    let axis = axis(&facts(resolved, &context, None), column, binning).ok()?;
    u64::try_from(cells(&axis)).ok()
}

/// A model with the design of a planned release and coefficients 0: enough to price what examines it.
pub(crate) fn blank_model(resolved: &Resolved, entry: &Entry) -> Result<Model, Refusal> {
    let schema = &*resolved.dataset.schema;
    let (formula, positive, family) = match entry.spec.as_ref().map(|s| &s.kind) {
        Some(KindSpec::Logistic(s)) => (&s.formula, s.positive.clone(), Family::Logistic),
        Some(KindSpec::Linear(s)) => (&s.formula, None, Family::Linear),
        _ => {
            return Err(Refusal::request("examines a release that is not a model").for_key("model"));
        }
    };
    let design = compile(formula, schema, positive.as_deref(), family)?;
    Ok(Model {
        family,
        formula: design.formula,
        positive,
        intercept: 0.0,
        coefficients: Vec::new(),
    })
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

fn refuse(error: &StatisticsError) -> Refusal {
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
                Binning::Edges(edges) => AxisCut::Edges(edges.clone()),
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

fn cells(axis: &AxisSpec) -> usize {
    match &axis.cut {
        AxisCut::Levels(levels) => levels.len(),
        AxisCut::Even { cells, .. } => *cells as usize,
        AxisCut::Edges(edges) => edges.len().saturating_sub(1),
    }
}

fn logistic_design(schema: &Schema, spec: &LogisticSpec) -> Result<DesignSpec, Refusal> {
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

fn logistic_config(spec: &LogisticSpec, payment: &Payment) -> logistic::Config {
    logistic::Config {
        epsilon: payment.epsilon.clone(),
        scaling: match (spec.scale, spec.data_norm) {
            (Scaling::None, Some(data_norm)) => logistic::Scaling::None { data_norm },
            _ => logistic::Scaling::Bounds,
        },
        clip: match spec.clip {
            Clip::Rule => logistic::Clip::Rule,
            Clip::Private => logistic::Clip::Private,
            Clip::None => logistic::Clip::None,
        },
        penalty: spec.lambda.map(logistic::Penalty::Sum),
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
                "a linear model needs a delta here: its noise is Gaussian",
            )
            .for_key("release.delta")
            .accepting("Write for example delta = \"1e-7\"."));
        }
    })
}

fn examined<'m>(model: Option<&'m Model>, schema: &Schema) -> Result<(&'m Model, Design), Refusal> {
    let model =
        model.ok_or_else(|| Refusal::request("there is no model to examine").for_key("model"))?;
    let design = model
        .design(schema)
        .map_err(|e| Refusal::request(e.to_string()).for_key("model"))?;
    Ok((model, design))
}

/// Public facts copied into a diagnostic's value.
fn about(model: &ModelRef, design: Option<&Design>) -> Value {
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
