//! A plan against a data set: everything that can be refused before anything is opened or paid.

use reticent_accounting::Currency;
use reticent_mechanisms::program::{Expr, Split, SplitBy};
use reticent_mechanisms::rows::{Kind, Schema};
use reticent_statistics::{counters, running, selection};

use crate::bayes::{self, Named};
use crate::dataset::{Dataset, Unit, distinct};
use crate::formula::{self, Family, FormulaError};
use crate::kinds::{Binning, KindSpec, RunningTotalSpec, TopKSpec};
use crate::methods;
use crate::outcome::Refusal;
use crate::plan::{Plan, ReleaseSpec, SplitKey, SplitSpec};
use crate::suggest;
use crate::tokens::{self, Tokens};

/// Records that a content split must be able to tell apart.
const SMALLEST_DOMAIN: u128 = 10_000;
/// Rounds of a selection times its candidates.
const MOST_ROUNDS: usize = 1_000_000_000;
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
        let (n, d) = self.test;
        let parts = vec![
            ("train".to_owned(), d.saturating_sub(n), d),
            ("test".to_owned(), n, d),
        ];
        Ok(Split {
            by: self.by.compile(dataset, "split.by", self.line)?,
            salt: self.salt.clone(),
            parts,
        })
    }
}

impl SplitKey {
    /// What is hashed, over a schema; refused if contents could not tell records apart.
    pub(crate) fn compile(
        &self,
        dataset: &Dataset,
        key: &str,
        line: u32,
    ) -> Result<SplitBy, Refusal> {
        let schema = &*dataset.schema;
        match self {
            Self::Content => {
                let by_unit = matches!(dataset.unit, Unit::Column { .. });
                if !by_unit && dataset.domain_size() < SMALLEST_DOMAIN {
                    return Err(Refusal::request(format!(
                        "the declared columns allow only {} different records (at least {SMALLEST_DOMAIN} are needed), so a split by content would put all equal records on one side",
                        dataset.domain_size()
                    ))
                    .at_line(line)
                    .for_key(key)
                    .accepting(by_column_advice(schema)));
                }
                Ok(SplitBy::Content)
            }
            Self::Column(name) => {
                let Some(column) = schema.position(name) else {
                    let names: Vec<&str> = schema.columns.iter().map(|c| c.name.as_str()).collect();
                    return Err(Refusal::request(
                        "neither \"content\" nor a column of the data set",
                    )
                    .at_line(line)
                    .for_key(key)
                    .with_value(format!("{name:?}"))
                    .accepting(suggest::advice(name, &names)));
                };
                // All rows of a unit go to one part, whatever they hold.
                if let Unit::Column { column: unit, .. } = dataset.unit
                    && unit != column
                {
                    let unit = schema.columns.get(unit).map_or("", |c| c.name.as_str());
                    return Err(Refusal::request(format!(
                        "the rows of one {unit} stay together, so the split is by {unit}"
                    ))
                    .at_line(line)
                    .for_key(key)
                    .with_value(format!("{name:?}"))
                    .accepting("Remove `by`."));
                }
                Ok(SplitBy::Column(column))
            }
        }
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
    if !release.kind.is_free() {
        currency(release, dataset)?;
    }
    let expression = |text: &str, key: &str| {
        formula::expression_within(text, schema, filter)
            .map(drop)
            .map_err(|e| Refusal::request(e.to_string()).for_key(key))
    };
    let named = Named::of(dataset);
    let model = |text: &str, positive: Option<&str>, want: Family| {
        model_formula(dataset, filter, text, positive, want)
    };
    match &release.kind {
        KindSpec::Sum(s) => expression(&s.of, "of"),
        KindSpec::Mean(s) => expression(&s.of, "of"),
        KindSpec::Quantiles(s) => expression(&s.of, "of"),
        KindSpec::Bounds(s) => expression(&s.of, "of"),
        KindSpec::Histogram(s) => {
            let mut total = cells(schema, &s.column, s.bins.as_ref(), "column")?;
            if let Some(second) = &s.second {
                let more = cells(schema, second, s.second_bins.as_ref(), "second")?;
                total = total.saturating_mul(more);
            }
            let most = reticent_statistics::histogram::MAX_CELLS;
            if !s.is_plain() && total > most {
                return Err(Refusal::request(format!(
                    "the histogram has {total} cells; at most {most} are accepted"
                ))
                .for_key("bins")
                .accepting("Ask for fewer bins."));
            }
            Ok(())
        }
        KindSpec::TopK(s) => top_k(s, schema),
        KindSpec::RunningTotal(s) => running_total(s, dataset, filter),
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
        // The formula is that of the selection, which has been checked.
        KindSpec::Logistic(s) if s.features.is_some() => Ok(()),
        KindSpec::Logistic(s) if s.extra.levels.is_empty() => {
            model(&s.formula, s.positive.as_deref(), Family::Logistic)
        }
        KindSpec::Logistic(s) => {
            (s.extra.levels.iter()).try_for_each(|l| model(&s.formula, Some(l), Family::Logistic))
        }
        KindSpec::Covariance(s) => s.columns.iter().try_for_each(|c| expression(c, "columns")),
        KindSpec::Regress(s) => model(&s.formula, None, Family::Linear),
        KindSpec::Linear(s) => {
            model(&s.formula, None, Family::Linear)?;
            let design = formula::compile(&s.formula, schema, None, Family::Linear);
            if s.output.is_some() && design.is_ok_and(|d| !d.intercept) {
                return Err(Refusal::request(
                    "output perturbation needs an intercept: columns are centred by their bounds",
                )
                .for_key("formula")
                .accepting("Keep the intercept, or remove method = \"output\"."));
            }
            Ok(())
        }
        KindSpec::Verify(s) => {
            model(&s.formula, s.positive.as_deref(), s.family()).map_err(of_family)
        }
        KindSpec::NaiveBayes(s) => bayes::check(named, filter, s),
        KindSpec::Select(s) => bayes::selection::candidates(named, filter, s).map(drop),
        KindSpec::Count
        | KindSpec::Auc(_)
        | KindSpec::Roc(_)
        | KindSpec::Threshold(_)
        | KindSpec::CrossValidation(_)
        | KindSpec::Decisions(_)
        | KindSpec::Residuals(_) => Ok(()),
        KindSpec::BinnedResiduals(s) => match &s.against {
            Some(text) => expression(text, "against"),
            None => Ok(()),
        },
    }
}

/// A formula of numbers and levels; texts have kinds of their own.
fn model_formula(
    dataset: &Dataset,
    filter: Option<&Expr>,
    text: &str,
    positive: Option<&str>,
    want: Family,
) -> Result<(), Refusal> {
    let schema = &*dataset.schema;
    let refuse_text = |of: &Tokens| {
        Refusal::request(format!("`{}` is a text of words, not a number", of.column.name))
            .for_key("formula")
            .accepting("Use it in a naive_bayes release, or choose words in a select release and write features = \"…\" here.")
    };
    let design = formula::compile_within(text, schema, filter, positive, want).map_err(|e| {
        let with_texts = tokens::named(schema, &dataset.tokens);
        let mentioned = |t: &&Tokens| text.contains(&t.column.name);
        match dataset.tokens.iter().find(mentioned) {
            Some(of) if formula::compile(text, &with_texts, positive, want).is_ok() => {
                refuse_text(of)
            }
            _ => Refusal::request(e.to_string()).for_key("formula"),
        }
    })?;
    let slot = design.terms.iter().find_map(|t| match t.expr {
        Expr::Column(at) => Named::of(dataset).slot(at),
        _ => None,
    });
    slot.map_or(Ok(()), |of| Err(refuse_text(of)))
}

/// There are as many candidates as are wanted, and choosing them ends.
fn top_k(s: &TopKSpec, schema: &Schema) -> Result<(), Refusal> {
    let total = cells(schema, &s.column, s.bins.as_ref(), "column")?;
    if s.k as usize > total {
        return Err(
            Refusal::request(format!("k = {} of {total} candidates is not possible", s.k))
                .for_key("k")
                .accepting(format!("Write a number from 1 to {total}.")),
        );
    }
    let rounds = !matches!(s.method, None | Some(selection::Method::Counts));
    if rounds && total.saturating_mul(s.k as usize) > MOST_ROUNDS {
        return Err(Refusal::request(format!(
            "{} rounds over {total} candidates would take hours",
            s.k
        ))
        .for_key("k")
        .accepting("Ask for fewer, or write method = \"counts\"."));
    }
    Ok(())
}

/// Steps of a running total exist, are not too many, and are given where the column does not say them.
fn running_total(
    spec: &RunningTotalSpec,
    dataset: &Dataset,
    filter: Option<&Expr>,
) -> Result<(), Refusal> {
    let schema = &*dataset.schema;
    cells(schema, &spec.column, spec.steps.as_ref(), "column")?;
    let kind = schema
        .position(&spec.column)
        .and_then(|p| schema.columns.get(p))
        .map(|c| &c.kind);
    if matches!(kind, Some(Kind::Real { .. })) && spec.steps.is_none() {
        return Err(Refusal::request(format!(
            "`{}` is not a column of whole numbers: it does not say its steps",
            spec.column
        ))
        .for_key("steps")
        .accepting("Write for example steps = 365, or increasing edges."));
    }
    let steps = methods::steps_of(dataset, filter, spec)?;
    let most = if spec.method == Some(counters::Method::SquareRoot) {
        running::MAX_ROOT_STEPS
    } else {
        running::MAX_STEPS
    };
    if steps > most {
        return Err(
            Refusal::request(format!("{steps} steps; at most {most} are accepted"))
                .for_key("steps")
                .accepting("Ask for fewer steps."),
        );
    }
    Ok(())
}

/// A claim about a coefficient says by `family` what others say by their kind.
fn of_family(mut refusal: Refusal) -> Refusal {
    let (kind, family) = ("kind = \"logistic\"", "family = \"logistic\"");
    refusal.message = refusal.message.replace(kind, family);
    refusal
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
    let square_root = matches!(&release.kind, KindSpec::RunningTotal(s) if s.method == Some(counters::Method::SquareRoot));
    let gaussian = release.kind.gaussian();
    let kind = release.kind.name();
    let sketch = matches!(&release.kind, KindSpec::Covariance(s) if s.sketch.is_some());
    let (message, key, fix) = match dataset.currency {
        Currency::Pure | Currency::Concentrated if sketch => (
            "a sketch is private in the sense of epsilon and delta only, which this data set's budget is not in",
            "method",
            "Remove method = \"sketch\" (and rows, directions): noisy second moments say more. Or use a data set whose budget has a delta.",
        ),
        Currency::Pure if square_root => (
            "the square root of running totals needs Gaussian noise, which a pure epsilon cannot pay",
            "method",
            "Write method = \"honaker\" or method = \"tree\".",
        ),
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
            "Write epsilon and, for Gaussian noise, delta.",
        ),
        Currency::Approximate if budget.delta.is_some() && !gaussian => (
            "this kind of release needs no delta",
            "delta",
            "Remove delta: it would be spent for nothing.",
        ),
        Currency::Approximate if budget.delta.is_none() && gaussian => (
            "on this data set it is released with Gaussian noise, which needs delta",
            "delta",
            "Add delta = \"1e-7\" or another part of the data set's delta.",
        ),
        Currency::Concentrated if budget.delta.is_some() => (
            "the data set's budget is in rho",
            "delta",
            "Remove delta; give rho, or epsilon alone for a pure release.",
        ),
        Currency::Concentrated if budget.rho.is_none() && gaussian => (
            "on this data set it is released with Gaussian noise, which is paid in rho",
            "rho",
            "Write rho = \"…\" instead of epsilon.",
        ),
        _ => return Ok(()),
    };
    Err(Refusal::request(format!("{message} (kind \"{kind}\")"))
        .for_key(key)
        .accepting(fix))
}

#[cfg(test)]
mod tests;
