//! Released models: read back from a release, turned into the linear predictor of a row.

use std::collections::HashMap;

use reticent_mechanisms::program::{Expr, Function};
use reticent_mechanisms::rows::Schema;
use serde_json::Value;

use crate::formula::{self, Design, Family};

/// Coefficients of a model, on the user's scale, with the formula they belong to.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Linear or logistic.
    pub family: Family,
    /// The formula in canonical spelling.
    pub formula: String,
    /// The positive level of a logistic model.
    pub positive: Option<String>,
    /// Intercept, 0 without.
    pub intercept: f64,
    /// Name and coefficient of every other column of the design.
    pub coefficients: Vec<(String, f64)>,
    /// Texts among the terms of the formula.
    pub texts: Vec<TextWeights>,
}

/// What the words of a text add to the linear predictor.
#[derive(Clone, Debug, PartialEq)]
pub struct TextWeights {
    /// The column of texts.
    pub column: String,
    /// Number of its slots.
    pub slots: usize,
    /// By the number of the word; the last is that of "no word".
    pub weights: Vec<f64>,
}

/// What a release is computed from besides the rows: a model, or any other released value.
#[derive(Clone, Debug, PartialEq)]
pub enum Examined {
    /// A model.
    Model(Model),
    /// Another release's value; null stands for one that is not there yet.
    Value(Value),
}

impl Examined {
    /// Reads the value of a release.
    pub fn read(value: &Value) -> Result<Self, ModelError> {
        match family(value) {
            Some(_) => Model::read(value).map(Self::Model),
            None => Ok(Self::Value(value.clone())),
        }
    }
}

/// What family of model a released value is; none if it is no model.
fn family(value: &Value) -> Option<Family> {
    match value.get("family").and_then(Value::as_str) {
        Some("logistic" | "naive_bayes") => Some(Family::Logistic),
        Some("linear") => Some(Family::Linear),
        _ => None,
    }
}

/// Why a model cannot be used, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ModelError(pub String);

impl TextWeights {
    /// The sum of the weights of a record's words.
    fn predictor(&self, schema: &Schema) -> Result<Expr, ModelError> {
        let mut sum = Expr::Constant(0.0);
        for i in 1..=self.slots {
            let name = format!("{}.{i}", self.column);
            let Some(at) = schema.position(&name) else {
                return Err(ModelError(format!(
                    "the model reads {} words of the text {}, which this data set does not have",
                    self.slots, self.column
                )));
            };
            let slot = Box::new(Expr::Column(at));
            sum = sum.add(Expr::Lookup(slot, self.weights.clone()));
        }
        Ok(sum)
    }
}

/// The texts of a released model; their words leave the coefficients, and each text gets one of 1.
fn texts(value: &Value, coefficients: &mut Vec<(String, f64)>) -> Vec<TextWeights> {
    let mut found = Vec::new();
    let list = value.get("texts").and_then(Value::as_array);
    for text in list.into_iter().flatten() {
        let column = text.get("column").and_then(Value::as_str).unwrap_or("");
        let slots = text.get("slots").and_then(Value::as_u64).unwrap_or(0);
        let words = text.get("words").and_then(Value::as_array);
        let names = words.into_iter().flatten().filter_map(Value::as_str);
        let places: HashMap<String, usize> =
            names.map(|w| format!("{column}={w}")).zip(0..).collect();
        let mut weights = vec![0.0; places.len() + 1];
        coefficients.retain(|(name, weight)| match places.get(name) {
            Some(at) => {
                weights[*at] = *weight;
                false
            }
            None => true,
        });
        coefficients.push((formula::quote_name(column), 1.0));
        found.push(TextWeights {
            column: column.to_owned(),
            slots: usize::try_from(slots).unwrap_or(0),
            weights,
        });
    }
    found
}

impl Model {
    /// Reads the value of a `logistic` or `linear` release. For a linear model the prediction coefficients
    /// are used where the release has them (they predict better than the unbiased ones).
    pub fn read(value: &Value) -> Result<Self, ModelError> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let family = family(value).ok_or_else(|| {
            ModelError(
                "the release is not a model: it has no \"family\" of \"logistic\" or \"linear\""
                    .into(),
            )
        })?;
        let formula =
            text("formula").ok_or_else(|| ModelError("the model has no \"formula\"".into()))?;
        let list = value
            .get("prediction")
            .filter(|p| p.is_array())
            .or_else(|| value.get("terms"));
        let Some(list) = list.and_then(Value::as_array) else {
            return Err(ModelError("the model has no \"terms\"".into()));
        };
        let mut intercept = 0.0;
        let mut coefficients = Vec::new();
        for term in list {
            let name = term.get("name").and_then(Value::as_str);
            let estimate = term
                .get("estimate")
                .and_then(Value::as_f64)
                .filter(|x| x.is_finite());
            match (name, estimate) {
                (Some("(Intercept)"), Some(x)) => intercept = x,
                (Some(name), Some(x)) => coefficients.push((name.to_owned(), x)),
                (name, _) => {
                    let name = name.unwrap_or("without a name");
                    return Err(ModelError(format!(
                        "the term {name} of the model has no finite estimate"
                    )));
                }
            }
        }
        let texts = texts(value, &mut coefficients);
        Ok(Self {
            family,
            formula,
            positive: text("positive"),
            intercept,
            coefficients,
            texts,
        })
    }

    /// The design over a schema, checked against the coefficients' names.
    pub fn design(&self, schema: &Schema) -> Result<Design, ModelError> {
        let positive = self.positive.as_deref();
        let names = self.texts.iter().map(|t| t.column.as_str());
        let named = crate::tokens::with_texts(schema, names);
        let mut design =
            formula::compile(&self.formula, &named, positive, self.family).map_err(|e| {
                ModelError(format!(
                    "the model's formula does not fit this data set: {e}"
                ))
            })?;
        let plain = schema.columns.len();
        for term in &mut design.terms {
            if let Expr::Column(at) = term.expr
                && let Some(text) = at.checked_sub(plain).and_then(|i| self.texts.get(i))
            {
                term.expr = text.predictor(schema)?;
            }
        }
        for (name, _) in &self.coefficients {
            if !design.terms.iter().any(|t| t.name == *name) {
                return Err(ModelError(format!(
                    "the model has a coefficient {name} that its formula does not have here"
                )));
            }
        }
        Ok(design)
    }

    /// The linear predictor of a record.
    pub fn linear_predictor(&self, design: &Design) -> Expr {
        design
            .terms
            .iter()
            .fold(Expr::Constant(self.intercept), |sum, term| {
                match self
                    .coefficients
                    .iter()
                    .find(|(name, _)| *name == term.name)
                {
                    Some((_, coefficient)) => {
                        sum.add(term.expr.clone().mul(Expr::Constant(*coefficient)))
                    }
                    None => sum,
                }
            })
    }

    /// The fitted value of a record: the linear predictor, or the probability of the positive level.
    pub fn fitted(&self, design: &Design) -> Expr {
        let predictor = self.linear_predictor(design);
        match self.family {
            Family::Linear => predictor,
            Family::Logistic => predictor.call(Function::Logistic),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_terms_and_prefers_prediction_coefficients() {
        let value = json!({"family": "linear", "formula": "y ~ x", "terms": [{"name": "(Intercept)", "estimate": 1.0}, {"name": "x", "estimate": 2.0}],
            "prediction": [{"name": "(Intercept)", "estimate": 1.5}, {"name": "x", "estimate": 1.75}]});
        let model = Model::read(&value).unwrap();
        assert_eq!(
            (model.intercept, model.coefficients.as_slice()),
            (1.5, [("x".to_owned(), 1.75)].as_slice())
        );
    }

    #[test]
    fn refuses_what_is_not_a_model() {
        for value in [
            json!({}),
            json!({"family": "logistic"}),
            json!({"family": "linear", "formula": "y~x", "terms": [{"name": "x", "estimate": null}]}),
        ] {
            assert!(Model::read(&value).is_err());
        }
    }
}
