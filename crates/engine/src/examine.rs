//! Diagnostics that examine several models at once.

use reticent_accounting::{Rational, rational_to_f64, split};
use reticent_mechanisms::rows::Schema;
use reticent_statistics::planning::{self, Prediction};
use reticent_statistics::roc::{
    Config, Examined, Thresholds, plan, prepare, prepare_several, untied,
};
use reticent_statistics::{Facts, Prepared, Score};
use serde_json::Value;

use crate::formula::Family;
use crate::kinds::RocSpec;
use crate::methods::{about, examined, refuse};
use crate::model::Examined as Input;
use crate::outcome::Refusal;

/// The ROC curve of one model, or those of several in one plot.
pub(crate) fn roc(
    facts: &Facts<'_>,
    spec: &RocSpec,
    models: &[Input],
    schema: &Schema,
    epsilon: &Rational,
) -> Result<Prepared, Refusal> {
    let mut config = Config {
        bins: spec.bins,
        share: spec.threshold_share.as_ref().map(rational_to_f64),
        choice: spec.thresholds,
        counts: spec.counts,
        decide_at: spec.decide_at.clone(),
        ..Config::new(epsilon.clone())
    };
    let mut all = Vec::new();
    let mut outcome = None;
    for (at, named) in spec.models.iter().enumerate() {
        let (model, design) = examined(models.get(at), Family::Logistic, schema)?;
        let response = design.response.expr().clone();
        if outcome.get_or_insert_with(|| response.clone()) != &response {
            return Err(Refusal::request(
                "the models of one plot must have the same outcome and positive level",
            )
            .for_key("models"));
        }
        if spec.thresholds == Thresholds::LabelSeparate {
            untied(schema, design.terms.iter().map(|t| &t.expr)).map_err(|e| refuse(&e))?;
        }
        let metadata = about(named, Some(&design));
        let name = metadata.get("model").and_then(Value::as_str);
        all.push(Examined {
            name: name.unwrap_or_default().to_owned(),
            score: Score::Linear(model.linear_predictor(&design)),
            metadata,
        });
    }
    let missing = || Refusal::request("there is no model to examine").for_key("model");
    let outcome = outcome.ok_or_else(missing)?;
    let prepared = match all.as_slice() {
        [only] => {
            config.metadata.clone_from(&only.metadata);
            prepare(facts, &only.score, outcome, config)
        }
        several => prepare_several(facts, several, outcome, &config),
    };
    prepared.map_err(|e| refuse(&e))
}

/// What to expect of it, from public numbers.
pub(crate) fn expected_roc(facts: &Facts<'_>, spec: &RocSpec, epsilon: &Rational) -> Prediction {
    let models = spec.models.len().max(1);
    let parts = split(epsilon, &vec![1; models]);
    let one = parts.first().unwrap_or(epsilon);
    let mut prediction = planning::roc(facts, one);
    if spec.thresholds == Thresholds::LabelSeparate {
        prediction.error_95 = None;
        "quantiles of both classes and no counts: there is no formula for the error of the area"
            .clone_into(&mut prediction.sentence);
    }
    let plan = plan(facts, epsilon, models);
    if !plan.drawn {
        prediction.sentence = format!("{}. {}", plan.reason, prediction.sentence);
        prediction.enough = false;
    }
    if models > 1 {
        // what was said is about a part of ε
        prediction.enough_epsilon = prediction
            .enough_epsilon
            .map(|e| e * f64::from(u32::try_from(models).unwrap_or(u32::MAX)));
        prediction.sentence = format!("each of {models} curves: {}", prediction.sentence);
    }
    prediction
}
