//! What the PUMS studies share: the example's linear model as a release.

use reticent_accounting::{Currency, Rational, Relation, Size, parse_rational};
use reticent_engine::formula::{self, Design, Family};
use reticent_engine::kinds::KindSpec;
use reticent_mechanisms::Context;
use reticent_mechanisms::primitives::Payment;
use reticent_statistics::{DesignSpec, Facts, Prepared, linear};
use serde_json::json;

use crate::public::{Example, context};
use crate::study::StudyError;

/// The example and the design of its model.
pub(crate) struct Pums {
    pub(crate) example: Example,
    pub(crate) design: Design,
}

impl Pums {
    pub(crate) fn load() -> Result<Self, StudyError> {
        let example = Example::load("pums/plan.toml")?;
        let Some(KindSpec::Linear(spec)) = example.entry("income")?.spec.as_ref().map(|s| &s.kind)
        else {
            return Err(StudyError::Example("income is not a linear model".into()));
        };
        let design = formula::compile(&spec.formula, example.table.schema(), None, Family::Linear)
            .map_err(StudyError::release)?;
        Ok(Self { example, design })
    }

    /// The context of a release on all records: their number is public under replace-one.
    pub(crate) fn context(&self, relation: Relation) -> Context {
        let size = match relation {
            Relation::AddRemove => Size::Private,
            Relation::ReplaceOne => Size::Public(self.example.table.rows() as u64),
        };
        context(relation, Currency::Approximate, size)
    }

    /// The public facts of a release on all records.
    pub(crate) fn facts<'a>(&'a self, context: &'a Context) -> Facts<'a> {
        #[allow(clippy::cast_precision_loss, reason = "a row count")]
        Facts {
            schema: self.example.table.schema(),
            filter: None,
            context,
            rows: self.example.resolved.public_rows().map(|n| n as f64),
            positive_rate: None,
        }
    }

    /// The linear model, default rules.
    pub(crate) fn linear(
        &self,
        context: &Context,
        epsilon: &str,
        delta: &str,
    ) -> Result<Prepared, StudyError> {
        let columns = DesignSpec {
            intercept: self.design.intercept,
            terms: self
                .design
                .terms
                .iter()
                .map(|t| (t.name.clone(), t.expr.clone()))
                .collect(),
            outcome: self.design.response.expr().clone(),
            metadata: json!({"formula": self.design.formula}),
        };
        let payment = Payment::Approximate {
            epsilon: rational(epsilon)?,
            delta: rational(delta)?,
        };
        linear::prepare(
            &self.facts(context),
            &columns,
            &linear::Config::new(payment),
        )
        .map_err(StudyError::release)
    }
}

pub(crate) fn rational(text: &str) -> Result<Rational, StudyError> {
    parse_rational(text).map_err(StudyError::release)
}
