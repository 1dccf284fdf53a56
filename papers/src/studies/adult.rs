//! What the Adult studies share: one private model of the training records, and the test records in memory.

use reticent_accounting::{Currency, Relation, Size};
use reticent_engine::formula::{self, Design, Family};
use reticent_engine::kinds::KindSpec;
use reticent_engine::model::Model;
use reticent_laws::Seeded;
use reticent_mechanisms::Context;
use reticent_mechanisms::program::Part;
use reticent_statistics::{DesignSpec, Facts, Score, logistic};
use serde_json::json;

use crate::public::{Example, Table, context, release};
use crate::study::StudyError;
use crate::truth;

/// Seed of the model's noise.
pub(crate) const MODEL_SEED: u64 = 1996;

/// The example's plan up to the diagnostics.
pub(crate) struct Adult {
    pub(crate) example: Example,
    /// The test part: the records the diagnostics read.
    pub(crate) part: Part,
    pub(crate) test: Table,
    pub(crate) model: Model,
    pub(crate) design: Design,
}

impl Adult {
    /// Reads the example and fits the plan's logistic model (ε = 1, add/remove) to the training part with the
    /// noise of [`MODEL_SEED`].
    pub(crate) fn load() -> Result<Self, StudyError> {
        let example = Example::load("adult/plan.toml")?;
        let schema = example.table.schema().clone();
        let fit = example.entry("income")?;
        let Some(KindSpec::Logistic(spec)) = fit.spec.as_ref().map(|s| &s.kind) else {
            return Err(StudyError::Example("income is not a logistic model".into()));
        };
        let design = formula::compile(
            &spec.formula,
            &schema,
            spec.positive.as_deref(),
            Family::Logistic,
        )
        .map_err(StudyError::release)?;
        let columns = DesignSpec {
            intercept: design.intercept,
            terms: design
                .terms
                .iter()
                .map(|t| (t.name.clone(), t.expr.clone()))
                .collect(),
            outcome: design.response.expr().clone(),
            metadata: json!({"formula": design.formula, "positive": spec.positive}),
        };
        let context = context(Relation::AddRemove, Currency::Pure, Size::Private);
        let facts = Facts {
            schema: &schema,
            filter: None,
            context: &context,
            rows: example.rows(fit),
            positive_rate: example.resolved.dataset.positive_rate,
        };
        let epsilon = fit.payment.epsilon.clone();
        let prepared = logistic::prepare(&facts, &columns, &logistic::Config::new(epsilon))
            .map_err(StudyError::release)?;
        let train = example.table.select(&example.table.part(part(fit)?));
        let answer = release(
            &train.source(),
            &context,
            None,
            &prepared,
            &mut Seeded::new(MODEL_SEED),
        )?;
        let model = Model::read(&answer.value).map_err(StudyError::release)?;
        let part = part(example.entry("roc")?)?.clone();
        let test = example.table.select(&example.table.part(&part));
        Ok(Self {
            example,
            part,
            test,
            model,
            design,
        })
    }

    /// The model's score of a record.
    pub(crate) fn score(&self) -> Score {
        Score::Linear(self.model.linear_predictor(&self.design))
    }

    /// (linear predictor, outcome) of the test records, by this crate's arithmetic.
    pub(crate) fn scored(&self) -> Vec<[f64; 2]> {
        let score = self.model.linear_predictor(&self.design);
        truth::values([&score, self.design.response.expr()], &self.test)
    }

    /// The context of a diagnostic: a content part has a private size under either relation.
    pub(crate) fn context(relation: Relation) -> Context {
        context(relation, Currency::Pure, Size::Private)
    }

    /// The public facts of a diagnostic.
    pub(crate) fn facts<'a>(
        &'a self,
        context: &'a Context,
        id: &str,
    ) -> Result<Facts<'a>, StudyError> {
        Ok(Facts {
            schema: self.test.schema(),
            filter: None,
            context,
            rows: self.example.rows(self.example.entry(id)?),
            positive_rate: self.example.resolved.dataset.positive_rate,
        })
    }

    /// A sentence about the data and the model.
    pub(crate) fn describe(&self) -> String {
        format!(
            "Adult, the example's split: {} test records of {}. Scored model: the plan's private logistic regression \
             (ε = 1, add/remove) on the training part, one draw with seed {MODEL_SEED}, the same for all runs.",
            self.test.rows(),
            self.example.table.rows()
        )
    }
}

fn part(entry: &reticent_engine::resolve::Entry) -> Result<&Part, StudyError> {
    entry
        .part
        .as_ref()
        .ok_or_else(|| StudyError::Example(format!("{} reads all records", entry.id)))
}
