//! A plan against a data set: everything that can be refused before anything is opened or paid.

use reticent_accounting::Currency;
use reticent_mechanisms::program::{Expr, Split, SplitBy};
use reticent_mechanisms::rows::{Kind, Schema};

use crate::dataset::{Dataset, Unit, distinct};
use crate::formula::{self, Family, FormulaError};
use crate::kinds::{Binning, KindSpec};
use crate::outcome::Refusal;
use crate::plan::{Plan, ReleaseSpec, SplitKey, SplitSpec};
use crate::suggest;

/// Records that a content split must be able to tell apart.
const SMALLEST_DOMAIN: u128 = 10_000;
/// Cells of one table of counts.
const MOST_CELLS: usize = 10_000_000;

/// What a plan means over a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The compiled `where` condition.
    pub filter: Option<Expr>,
    /// The compiled split: its parts are `train` and `test`, in this order.
    pub split: Option<Split>,
}

impl Plan {
    /// Compares the plan with the data set: columns, levels, formulas, bounds, currency, split.
    ///
    /// Neither the data nor the ledger is opened; what is left of the budget is not looked at.
    pub fn check(&self, dataset: &Dataset) -> Result<Checked, Refusal> {
        let schema = &*dataset.schema;
        let split = self
            .split
            .as_ref()
            .map(|s| s.compile(dataset))
            .transpose()
            .map_err(|r| r.in_file(&self.file))?;
        let filter = match &self.filter {
            None => None,
            Some(text) => {
                let filter = formula::condition(text, schema)
                    .map_err(|e| self.refuse(&e).at_line(self.filter_line).for_key("where"))?;
                Some(filter)
            }
        };
        for release in &self.releases {
            check_release(release, dataset, filter.as_ref()).map_err(|r| {
                let line = r.line.unwrap_or(release.line);
                let key = r.key.clone().map_or_else(
                    || format!("release \"{}\"", release.id),
                    |key| format!("release \"{}\", {key}", release.id),
                );
                r.in_file(&self.file).at_line(line).for_key(key)
            })?;
        }
        Ok(Checked { filter, split })
    }

    fn refuse(&self, error: &FormulaError) -> Refusal {
        Refusal::request(error.to_string()).in_file(&self.file)
    }
}

impl SplitSpec {
    /// The split over a schema; refused if a content split could not tell records apart.
    pub fn compile(&self, dataset: &Dataset) -> Result<Split, Refusal> {
        let schema = &*dataset.schema;
        let by = match &self.by {
            SplitKey::Content => {
                let by_unit = matches!(dataset.unit, Unit::Column { .. });
                if !by_unit && dataset.domain_size() < SMALLEST_DOMAIN {
                    return Err(Refusal::request(format!(
                        "the declared columns allow only {} different records (at least {SMALLEST_DOMAIN} are needed), so a split by content would put all equal records on one side",
                        dataset.domain_size()
                    ))
                    .at_line(self.line)
                    .for_key("split.by")
                    .accepting(by_column_advice(schema)));
                }
                SplitBy::Content
            }
            SplitKey::Column(name) => {
                let Some(column) = schema.position(name) else {
                    let names: Vec<&str> = schema.columns.iter().map(|c| c.name.as_str()).collect();
                    return Err(Refusal::request(
                        "neither \"content\" nor a column of the data set",
                    )
                    .at_line(self.line)
                    .for_key("split.by")
                    .with_value(format!("{name:?}"))
                    .accepting(suggest::advice(name, &names)));
                };
                SplitBy::Column(column)
            }
        };
        let (n, d) = self.test;
        let parts = vec![
            ("train".to_owned(), d.saturating_sub(n), d),
            ("test".to_owned(), n, d),
        ];
        Ok(Split {
            by,
            salt: self.salt.clone(),
            parts,
        })
    }
}

/// Names the column that tells most records apart.
fn by_column_advice(schema: &Schema) -> String {
    let widest = schema.columns.iter().max_by_key(|c| distinct(&c.kind));
    let name = widest.map_or("column", |c| c.name.as_str());
    format!(
        "Declare an identifier or a finer column and write by = \"<column>\"; among those declared, by = {} tells most records apart.",
        crate::dataset::toml_text(name)
    )
}

fn check_release(
    release: &ReleaseSpec,
    dataset: &Dataset,
    filter: Option<&Expr>,
) -> Result<(), Refusal> {
    let schema = &*dataset.schema;
    currency(release, dataset)?;
    let expression = |text: &str, key: &str| {
        formula::expression_within(text, schema, filter)
            .map(drop)
            .map_err(|e| Refusal::request(e.to_string()).for_key(key))
    };
    let model = |text: &str, positive: Option<&str>, want: Family| {
        formula::compile_within(text, schema, filter, positive, want)
            .map(drop)
            .map_err(|e| Refusal::request(e.to_string()).for_key("formula"))
    };
    match &release.kind {
        KindSpec::Sum(s) => expression(&s.of, "of"),
        KindSpec::Mean(s) => expression(&s.of, "of"),
        KindSpec::Quantiles(s) => expression(&s.of, "of"),
        KindSpec::Bounds(s) => expression(&s.of, "of"),
        KindSpec::Histogram(s) => cells(schema, &s.column, s.bins.as_ref(), "column").map(drop),
        KindSpec::Crosstab(s) => {
            let mut total = 1usize;
            for name in &s.columns {
                let given = s.bins.iter().find(|b| b.0 == *name).map(|b| &b.1);
                // A number of bins for the whole table concerns its numeric columns only.
                let uniform =
                    matches!(given, Some(Binning::Even(_))) && s.bins.len() == s.columns.len();
                let levels = schema.position(name).and_then(|p| schema.columns.get(p));
                let skip = uniform && matches!(levels.map(|c| &c.kind), Some(Kind::Levels { .. }));
                total = total.saturating_mul(cells(
                    schema,
                    name,
                    if skip { None } else { given },
                    "columns",
                )?);
            }
            if total > MOST_CELLS {
                return Err(Refusal::request(format!(
                    "the table has {total} cells; at most {MOST_CELLS} are accepted"
                ))
                .for_key("columns")
                .accepting("Name fewer columns, or fewer bins."));
            }
            Ok(())
        }
        KindSpec::Logistic(s) => model(&s.formula, s.positive.as_deref(), Family::Logistic),
        KindSpec::Linear(s) => model(&s.formula, None, Family::Linear),
        KindSpec::Count
        | KindSpec::Roc(_)
        | KindSpec::Residuals(_)
        | KindSpec::BinnedResiduals(_) => Ok(()),
    }
}

/// Number of cells of a column of counts.
fn cells(schema: &Schema, name: &str, bins: Option<&Binning>, key: &str) -> Result<usize, Refusal> {
    let Some(column) = schema.position(name).and_then(|p| schema.columns.get(p)) else {
        let names: Vec<&str> = schema.columns.iter().map(|c| c.name.as_str()).collect();
        return Err(Refusal::request(format!("there is no column `{name}`"))
            .for_key(key)
            .accepting(suggest::advice(name, &names)));
    };
    match &column.kind {
        Kind::Levels { levels, .. } if bins.is_none() => Ok(levels.len()),
        Kind::Levels { .. } => Err(Refusal::request(format!(
            "`{name}` is counted by its declared levels"
        ))
        .for_key("bins")
        .accepting("Remove the bins of this column.")),
        Kind::Id => Err(
            Refusal::request(format!("`{name}` is an identifier and never a value"))
                .for_key(key)
                .accepting("Name another column."),
        ),
        Kind::Integer { .. } | Kind::Real { .. } => {
            let n = bins.map_or(crate::kinds::DEFAULT_BINS as usize, Binning::len);
            Ok(n)
        }
    }
}

/// Whether the data set's currency can pay the release as its budget is written.
fn currency(release: &ReleaseSpec, dataset: &Dataset) -> Result<(), Refusal> {
    let budget = &release.budget;
    let gaussian = matches!(release.kind, KindSpec::Linear(_));
    let kind = release.kind.name();
    let (message, key, fix) = match dataset.currency {
        Currency::Pure if budget.rho.is_some() => (
            "the data set's budget is in epsilon",
            "rho",
            "Write epsilon = \"…\" instead.",
        ),
        Currency::Pure if budget.delta.is_some() => (
            "the data set's budget has no delta",
            "delta",
            "Remove delta: every release is then paid in epsilon alone.",
        ),
        Currency::Approximate if budget.rho.is_some() => (
            "the data set's budget is in epsilon and delta",
            "rho",
            "Write epsilon and, for a linear model, delta.",
        ),
        Currency::Approximate if budget.delta.is_some() && !gaussian => (
            "this kind of release needs no delta",
            "delta",
            "Remove delta: it would be spent for nothing.",
        ),
        Currency::Approximate if budget.delta.is_none() && gaussian => (
            "a linear model on this data set is released with Gaussian noise, which needs delta",
            "delta",
            "Add delta = \"1e-7\" or another part of the data set's delta.",
        ),
        Currency::Concentrated if budget.delta.is_some() => (
            "the data set's budget is in rho",
            "delta",
            "Remove delta; give rho, or epsilon alone for a pure release.",
        ),
        Currency::Concentrated if budget.rho.is_none() && gaussian => (
            "a linear model on this data set is released with Gaussian noise, which is paid in rho",
            "rho",
            "Write rho = \"…\" instead of epsilon.",
        ),
        _ => return Ok(()),
    };
    Err(Refusal::request(format!("{message} (kind \"{kind}\")"))
        .for_key(key)
        .accepting(fix))
}
