//! Covariances and what is read off released values, over public facts.

use reticent_accounting::Rational;
use reticent_mechanisms::program::{Comparison, Expr};
use reticent_mechanisms::rows::Schema;
use reticent_statistics::simple::{self, AxisCut, AxisSpec};
use reticent_statistics::{
    DesignSpec, Facts, Prepared, StatisticsError, covariance, cross_validation, linear, logistic,
    threshold, verify,
};
use serde_json::{Value, json};

use super::{about, compile, design_spec, expression, moments_payment};
use crate::bayes::Named;
use crate::budget::Payment;
use crate::folds::CrossValidationSpec;
use crate::formula::{self, Family, Response};
use crate::kinds::{
    Clip, CovarianceSpec, KindSpec, Lambda, LinearOutput, LogisticSpec, Point, Projection,
    PureNoise, RegressSpec, Repair, Reported, Scaling, SketchSpec, ThresholdSpec, VerifySpec,
};
use crate::model::Examined;
use crate::outcome::Refusal;
use crate::resolve::Resolved;

type Made = Result<Result<Prepared, StatisticsError>, Refusal>;

/// A covariance matrix of columns or expressions.
pub(super) fn covariance(facts: &Facts<'_>, spec: &CovarianceSpec, payment: &Payment) -> Made {
    let columns = spec
        .columns
        .iter()
        .map(|c| Ok((c.clone(), expression(c, facts.schema, "columns")?)))
        .collect::<Result<Vec<(String, Expr)>, Refusal>>()?;
    if let Some(sketch) = &spec.sketch {
        let config = sketch_config(spec, sketch, payment);
        return Ok(covariance::prepare_sketch(facts, &columns, &config));
    }
    let payment = moments_payment(facts.context.currency, payment)?;
    let config = covariance::Config {
        rows: spec
            .data_norm
            .map_or(covariance::Rows::Box, covariance::Rows::Ball),
        clip: match spec.clip {
            Clip::Private | Clip::Rule => linear::Clip::Private,
            Clip::None => linear::Clip::None,
        },
        noise: noise(spec.noise),
        repair: match spec.repair {
            Repair::Clip => covariance::Repair::Clip,
            Repair::Lift => covariance::Repair::Lift,
            Repair::None => covariance::Repair::None,
        },
        grid_bits: spec.grid_bits,
        ..covariance::Config::new(payment)
    };
    Ok(covariance::prepare(facts, &columns, &config))
}

/// A sketch as the plan asks for it.
pub(super) fn sketch_config(
    spec: &CovarianceSpec,
    sketch: &SketchSpec,
    payment: &Payment,
) -> covariance::SketchConfig {
    let place = |name: &String| spec.columns.iter().position(|c| c == name);
    let direction = |weights: &Vec<(String, f64)>| covariance::Direction {
        name: combination(weights),
        weights: (weights.iter())
            .filter_map(|(name, w)| Some((place(name)?, *w)))
            .collect(),
    };
    covariance::SketchConfig {
        rows: sketch.rows,
        norm: (spec.data_norm).map_or(covariance::Rows::Box, covariance::Rows::Ball),
        directions: sketch.directions.iter().map(direction).collect(),
        grid_bits: spec.grid_bits,
        ..covariance::SketchConfig::new(payment.epsilon.clone(), payment.delta.clone())
    }
}

/// A combination of columns as it is written: `age - 2 educ`.
fn combination(weights: &[(String, f64)]) -> String {
    let mut text = String::new();
    for (name, weight) in weights.iter().filter(|w| w.1 != 0.0) {
        let sign = match (text.is_empty(), *weight < 0.0) {
            (true, false) => "",
            (true, true) => "-",
            (false, false) => " + ",
            (false, true) => " - ",
        };
        text.push_str(sign);
        if (weight.abs() - 1.0).abs() > 0.0 {
            text.push_str(&format!("{} ", weight.abs()));
        }
        text.push_str(name);
    }
    text
}

/// The value that stands for a covariance before it is released: its columns, and whether it will be a sketch.
pub(super) fn unreleased(spec: &CovarianceSpec) -> Value {
    match spec.sketch {
        None => json!({"names": spec.columns}),
        Some(_) => json!({"names": spec.columns, "sketch": {}}),
    }
}

/// A regression among the columns of a released covariance.
pub(super) fn regress(spec: &RegressSpec, from: Option<&Examined>, schema: &Schema) -> Made {
    let refuse = |what: String, key: &str| Refusal::request(what).for_key(key);
    let Some(Examined::Value(value)) = from else {
        return Err(refuse(
            "a regression is read off a covariance release".to_owned(),
            "from",
        ));
    };
    if value.get("sketch").is_some() {
        return Err(refuse(
            "a sketch has no means, so no regression is read off it".to_owned(),
            "from",
        )
        .accepting("Name a covariance release without method = \"sketch\"."));
    }
    let names: Vec<String> = value
        .get("names")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|n| n.as_str().map(str::to_owned))
        .collect();
    let exprs = names
        .iter()
        .map(|n| formula::expression(n, schema).map_err(|e| refuse(e.to_string(), "from")))
        .collect::<Result<Vec<Expr>, Refusal>>()?;
    let place = |name: &str, expr: &Expr| {
        exprs.iter().position(|e| e == expr).ok_or_else(|| {
            refuse(
                format!("{name} is not a column of the covariance release"),
                "formula",
            )
            .accepting(format!("Its columns are {}.", names.join(", ")))
        })
    };
    let design = compile(&spec.formula, schema, None, Family::Linear)?;
    let outcome = place(design.response.name(), design.response.expr())?;
    let terms = design
        .terms
        .iter()
        .map(|t| Ok((t.name.clone(), place(&t.name, &t.expr)?)))
        .collect::<Result<Vec<(String, usize)>, Refusal>>()?;
    if value.get("moments").is_none() {
        return Ok(Ok(covariance::regress_placeholder()));
    }
    let intercept = design.intercept;
    let mut metadata = design_spec(schema, design, None).metadata;
    if let Value::Object(fields) = &mut metadata {
        fields.insert("from".to_owned(), about(&spec.from, None)["model"].clone());
    }
    Ok(covariance::Released::read(value).and_then(|released| {
        covariance::regress(
            &released,
            &terms,
            outcome,
            intercept,
            options(spec.reported),
            &metadata,
        )
    }))
}

/// A threshold of a released ROC curve.
pub(super) fn threshold(spec: &ThresholdSpec, from: Option<&Examined>) -> Made {
    let Some(Examined::Value(value)) = from else {
        return Err(Refusal::request("a threshold is read off a ROC curve").for_key("from"));
    };
    let method = match spec.method {
        Point::Youden => threshold::Method::Youden,
        Point::TopLeft => threshold::Method::TopLeft,
    };
    let metadata = json!({"from": about(&spec.from, None)["model"]});
    Ok(threshold::prepare(value, method, &metadata))
}

/// Records by outcome and by what a model says at probability ½.
pub(super) fn decisions(facts: &Facts<'_>, model: Option<&Examined>, epsilon: &Rational) -> Made {
    let (model, design) = super::examined(model, Family::Logistic, facts.schema)?;
    let Some((yes, no)) = crate::predict::classes(&design.response, model.family) else {
        return Err(Refusal::request("decisions need a model of two classes").for_key("model"));
    };
    let positive = Expr::Compare(
        Comparison::GreaterEqual,
        Box::new(model.linear_predictor(&design)),
        Box::new(Expr::Constant(0.0)),
    );
    let axis = |name: &str, expr: Expr| AxisSpec {
        name: name.to_owned(),
        expr,
        cut: AxisCut::Levels(vec![no.clone(), yes.clone()]),
    };
    let axes = vec![
        axis("outcome", design.response.expr().clone()),
        axis("predicted", positive),
    ];
    Ok(simple::crosstab(facts, axes, epsilon))
}

/// The figures of the folds as one.
pub(super) fn cross_validation(
    spec: &CrossValidationSpec,
    resolved: &Resolved,
    found: &[Examined],
) -> Prepared {
    let values: Vec<Value> = found
        .iter()
        .map(|f| match f {
            Examined::Value(value) => value.clone(),
            Examined::Model(_) => Value::Null,
        })
        .collect();
    let of = |id: &str| resolved.entries.iter().find(|e| e.id == id);
    let mut metadata = json!({"model": spec.model});
    let fit = of(&spec.model).and_then(|e| e.spec.as_ref());
    if let (Value::Object(fields), Some(fit)) = (&mut metadata, fit) {
        let (formula, positive) = match &fit.kind {
            KindSpec::Logistic(s) => (Some(&s.formula), s.positive.as_ref()),
            KindSpec::NaiveBayes(s) => (Some(&s.formula), s.positive.as_ref()),
            _ => (None, None),
        };
        fields.insert("family".to_owned(), json!(fit.kind.name()));
        fields.insert("formula".to_owned(), json!(formula));
        fields.insert("positive".to_owned(), json!(positive));
    }
    cross_validation::prepare(spec.measure, &values, &metadata)
}

/// The design of the regression that a claim is about.
pub(super) fn verified(facts: &Facts<'_>, spec: &VerifySpec) -> Result<DesignSpec, Refusal> {
    let design = compile(
        &spec.formula,
        facts.schema,
        spec.positive.as_deref(),
        spec.family(),
    )?;
    let positive = match &design.response {
        Response::Binary {
            levels, positive, ..
        } => levels.get(*positive as usize).cloned(),
        Response::Numeric { .. } => None,
    };
    Ok(design_spec(facts.schema, design, positive.as_deref()))
}

pub(super) fn verify_config(spec: &VerifySpec, epsilon: &Rational) -> verify::Config {
    verify::Config {
        epsilon: epsilon.clone(),
        family: if spec.logistic {
            verify::Family::Binomial
        } else {
            verify::Family::Gaussian
        },
        term: spec.term.clone(),
        claim: spec.claim,
        groups: spec.groups,
        seed: u64::from(spec.seed),
    }
}

pub(super) fn noise(noise: PureNoise) -> linear::PureNoise {
    match noise {
        PureNoise::Auto => linear::PureNoise::Auto,
        PureNoise::Laplace => linear::PureNoise::Laplace,
        PureNoise::Norm => linear::PureNoise::Norm,
    }
}

pub(super) fn output_config(
    of: LinearOutput,
    grid_bits: u32,
    epsilon: &Rational,
) -> linear::OutputConfig {
    let default = linear::OutputConfig::new(epsilon.clone());
    linear::OutputConfig {
        penalty: of.lambda,
        coefficient_norm: of.coefficient_norm.unwrap_or(default.coefficient_norm),
        grid_bits,
        ..default
    }
}

pub(super) fn options(reported: Reported) -> linear::Options {
    linear::Options {
        naive: reported.naive,
        prediction: match (reported.ridge, reported.adassp) {
            (Some(ridge), _) => linear::Prediction::Ridge(ridge),
            (None, true) => linear::Prediction::AdaSsp,
            (None, false) => linear::Prediction::Rule,
        },
    }
}

/// A logistic regression: two classes, or each of several levels against the rest.
pub(super) fn logistic(
    facts: &Facts<'_>,
    named: Named<'_>,
    spec: &LogisticSpec,
    found: Option<&Examined>,
    payment: &Payment,
) -> Made {
    let config = logistic_config(spec, payment);
    let levels = &spec.extra.levels;
    if levels.is_empty() {
        let design = super::logistic_design(named, spec, found)?;
        return Ok(logistic::prepare(facts, &design, &config));
    }
    let (design, outcomes) = against_rest(facts.schema, spec)?;
    Ok(logistic::one_against_rest(
        facts, &design, &outcomes, &config,
    ))
}

/// The design and the outcome of every level.
fn against_rest(
    schema: &Schema,
    spec: &LogisticSpec,
) -> Result<(DesignSpec, Vec<(String, Expr)>), Refusal> {
    let mut outcomes = Vec::new();
    let mut first = None;
    for level in &spec.extra.levels {
        let design = compile(&spec.formula, schema, Some(level), Family::Logistic)?;
        let name = match &design.response {
            Response::Binary {
                levels, positive, ..
            } => levels.get(*positive as usize).unwrap_or(level).clone(),
            Response::Numeric { .. } => level.clone(),
        };
        outcomes.push((name, design.response.expr().clone()));
        first.get_or_insert(design);
    }
    let design = first.ok_or_else(|| Refusal::request("no levels").for_key("positive"))?;
    Ok((design_spec(schema, design, None), outcomes))
}

pub(super) fn logistic_config(spec: &LogisticSpec, payment: &Payment) -> logistic::Config {
    let seed = u64::from(spec.extra.projection_seed);
    logistic::Config {
        epsilon: payment.epsilon.clone(),
        scaling: match (spec.scale, spec.data_norm) {
            (Scaling::None, Some(data_norm)) => logistic::Scaling::None { data_norm },
            (Scaling::Norm, Some(data_norm)) => logistic::Scaling::Norm { data_norm },
            _ => logistic::Scaling::Bounds,
        },
        clip: match spec.clip {
            Clip::Rule => logistic::Clip::Rule,
            Clip::Private => logistic::Clip::Private,
            Clip::None => logistic::Clip::None,
        },
        penalty: spec.lambda.map(|l| match l {
            Lambda::Default => logistic::Penalty::Default,
            Lambda::Adjusted => logistic::Penalty::Adjusted,
            Lambda::Value(x) => logistic::Penalty::Sum(x),
        }),
        perturbation: if spec.extra.output {
            logistic::Perturbation::Output
        } else {
            logistic::Perturbation::Objective
        },
        projection: spec.extra.projection.map(|p| match p {
            Projection::Size(size) => logistic::Projection::Size { size, seed },
            Projection::Auto => logistic::Projection::Auto { seed },
        }),
    }
}
