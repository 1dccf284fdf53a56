//! A plan against a data set: everything that can be refused before anything is opened or paid.

use reticent_accounting::Currency;
use reticent_mechanisms::program::{Expr, Split, SplitBy};
use reticent_mechanisms::rows::{Kind, Schema};
use reticent_statistics::{counters, running};

use crate::bayes::{self, Named};
use crate::dataset::{Dataset, Unit, distinct};
use crate::formula::{self, Family, FormulaError};
use crate::kinds::{Binning, KindSpec, RunningTotalSpec};
use crate::methods;
use crate::outcome::Refusal;
use crate::plan::{Plan, ReleaseSpec, SplitKey, SplitSpec};
use crate::suggest;
use crate::tokens::{self, Tokens};

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
        KindSpec::TopK(s) => {
            let total = cells(schema, &s.column, s.bins.as_ref(), "column")?;
            if s.k as usize > total {
                return Err(Refusal::request(format!(
                    "k = {} of {total} candidates is not possible",
                    s.k
                ))
                .for_key("k")
                .accepting(format!("Write a number from 1 to {total}.")));
            }
            Ok(())
        }
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
        KindSpec::Linear(s) => model(&s.formula, None, Family::Linear),
        KindSpec::NaiveBayes(s) => bayes::check(named, filter, s),
        KindSpec::Select(s) => bayes::candidates(named, s).map(drop),
        KindSpec::Count
        | KindSpec::Auc(_)
        | KindSpec::Roc(_)
        | KindSpec::Threshold(_)
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
    let gaussian =
        square_root || matches!(release.kind, KindSpec::Linear(_) | KindSpec::Covariance(_));
    let kind = release.kind.name();
    let (message, key, fix) = match dataset.currency {
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
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::plan::{ModelRef, Scaling};

    const DATASET: &str = r#"
version = 1
id = "adult"
data_version = "1996"
source = { path = "adult.csv" }
neighbours = "add_remove"
[budget]
epsilon = "10"
[ledger]
path = "adult.ledger"
[columns.age]
type = "integer"
lower = 17
upper = 90
[columns.hours]
type = "integer"
lower = 0
upper = 99
[columns.education]
type = "text"
levels = ["HS-grad", "Bachelors", "Masters"]
[columns.income]
type = "text"
levels = ["<=50K", ">50K"]
"#;

    /// The example of the format's documentation.
    const PLAN: &str = r#"
version = 1
dataset = "dataset.toml"
split = { test = "1/3", by = "content", salt = "adult-1" }
where = "hours > 0"
[[release]]
id = "income"
kind = "logistic"
formula = "income ~ age + C(education) + log1p(hours)"
positive = ">50K"
part = "train"                   # train | test | all
epsilon = "0.5"
[[release]]
id = "roc"
kind = "roc"
model = "income"
epsilon = "0.5"
"#;

    fn dataset() -> Dataset {
        Dataset::parse(DATASET, Path::new("dataset.toml")).unwrap()
    }

    fn plan(text: &str) -> Result<Plan, Refusal> {
        Plan::parse(text, Path::new("work/plan.toml"))
    }

    fn checked(text: &str) -> Result<Checked, Refusal> {
        plan(text)?.check(&dataset())
    }

    fn one(release: &str) -> String {
        format!(
            "version = 1\ndataset = \"dataset.toml\"\n[[release]]\nid = \"r\"\nepsilon = 1\n{release}\n"
        )
    }

    #[test]
    fn the_documented_example_is_read_as_documented() {
        let p = plan(PLAN).unwrap();
        assert_eq!(p.dataset, Path::new("work/dataset.toml"));
        assert_eq!(p.text, PLAN);
        assert_eq!(p.split.as_ref().unwrap().test, (1, 3));
        assert_eq!(p.filter.as_deref(), Some("hours > 0"));
        let [income, roc] = p.releases.as_slice() else {
            panic!("two releases")
        };
        assert_eq!((income.line, roc.line), (6, 13));
        assert_eq!(income.part.as_deref(), Some("train"));
        assert_eq!(roc.part.as_deref(), Some("test"));
        let KindSpec::Logistic(fit) = &income.kind else {
            panic!("logistic")
        };
        assert_eq!(
            (fit.scale, fit.lambda, fit.data_norm),
            (Scaling::Bounds, None, None)
        );
        assert_eq!(roc.kind.inputs(), [&ModelRef::Release("income".into())]);
        let compiled = p.check(&dataset()).unwrap();
        let split = compiled.split.unwrap();
        assert_eq!(
            split.parts,
            [("train".to_owned(), 2, 3), ("test".to_owned(), 1, 3)]
        );
        assert!(compiled.filter.is_some());
    }

    #[test]
    fn request_content_does_not_depend_on_spelling_or_names() {
        let p = plan(PLAN).unwrap();
        let renamed = PLAN
            .replace("\"income\"", "\"model\"")
            .replace("kind = \"logistic\"\n", "")
            .replace(
                "epsilon = \"0.5\"\n[[",
                "epsilon = 0.50\nkind = \"logistic\" # the model\nrepeat = 0\n[[",
            )
            .replace(
                "age + C(education) + log1p(hours)",
                "age+C( education )+log1p(hours)",
            );
        let q = plan(&renamed).unwrap();
        for (a, b) in p.releases.iter().zip(&q.releases) {
            assert_eq!(a.canonical(), b.canonical());
        }
        assert_eq!(p.canonical_filter(), q.canonical_filter());
        assert_ne!(p.releases[0].id, q.releases[0].id);
        let again =
            plan(&PLAN.replace("epsilon = \"0.5\"\n[[", "epsilon = \"0.5\"\nrepeat = 1\n[["))
                .unwrap();
        assert_ne!(p.releases[0].canonical(), again.releases[0].canonical());
        assert_eq!(
            p.releases[1].canonical(),
            serde_json::json!({"kind": "roc", "part": "test", "budget": {"epsilon": "0.5"}, "repeat": 0,
                "bins": null, "threshold_share": null})
        );
        let sum = plan(&one("kind = \"sum\"\ncolumn = \"hours\"")).unwrap();
        let of = plan(&one("kind = \"sum\"\nof = \" hours \"")).unwrap();
        assert_eq!(sum.releases[0].canonical(), of.releases[0].canonical());
    }

    /// Every plan in the guide is one; those over the columns of this data set are accepted for it.
    #[test]
    fn the_plans_of_the_guide_are_plans() {
        let guide = include_str!("../../../docs/guide.md");
        let blocks: Vec<&str> = guide
            .split("```toml\n")
            .skip(1)
            .filter_map(|b| b.split("```").next())
            .filter(|b| b.contains("[[release]]"))
            .collect();
        assert!(blocks.len() >= 2);
        let accepted = blocks
            .iter()
            .map(|b| plan(b).unwrap_or_else(|e| panic!("{b}: {e}")))
            .filter(|p| p.check(&dataset()).is_ok())
            .map(|p| p.releases.len());
        assert_eq!(accepted.sum::<usize>(), 5);
    }

    #[test]
    fn every_kind_is_accepted() {
        for release in [
            "kind = \"count\"",
            "kind = \"sum\"\nof = \"hours * 2\"",
            "kind = \"mean\"\ncolumn = \"age\"",
            // Lessons, row 69: a mean can be swapped for a median.
            "kind = \"quantiles\"\ncolumn = \"age\"\nlevels = [0.5]",
            "kind = \"quantiles\"\nof = \"log1p(hours)\"\nlevels = [\"1/3\", 0.9]\ncells = 100",
            "kind = \"bounds\"\ncolumn = \"hours\"\ncoverage = 0.95",
            "kind = \"histogram\"\ncolumn = \"education\"",
            "kind = \"histogram\"\ncolumn = \"age\"\nbins = 10",
            "kind = \"histogram\"\ncolumn = \"age\"\nedges = [17, 30, 90]",
            "kind = \"crosstab\"\ncolumns = [\"education\", \"age\"]\nbins = 10",
            "kind = \"crosstab\"\ncolumns = [\"education\", \"age\"]\nbins = { age = [17, 40, 90] }",
            "kind = \"linear\"\nformula = \"hours ~ age * education\"\nclip = \"none\"\ngrid_bits = 26",
            "kind = \"logistic\"\nformula = \"income ~ .\"\nscale = \"none\"\ndata_norm = 2\nlambda = 0.5",
            "kind = \"roc\"\nmodel = \"old/release.json#income\"\nbins = 16",
            "kind = \"roc\"\nmodels = [\"old/release.json#a\", \"old/release.json#b\"]\nthresholds = \"smooth\"\ncounts = \"dawa\"\ndecide_at = [0.2, 0.5]",
            "kind = \"auc\"\nmodel = \"old/release.json#income\"",
            "kind = \"bounds\"\ncolumn = \"hours\"\nmethod = \"doubling\"\nscales = \"printed\"",
            "kind = \"top_k\"\ncolumn = \"education\"\nk = 2",
            "kind = \"top_k\"\ncolumn = \"age\"\nbins = 10\nk = 3\nmethod = \"peeling\"",
            "kind = \"running_total\"\ncolumn = \"age\"",
            "kind = \"running_total\"\ncolumn = \"hours\"\nsteps = 12\nmethod = \"tree\"",
            "kind = \"running_total\"\ncolumn = \"education\"\nmethod = \"honaker\"",
        ] {
            checked(&one(release)).unwrap_or_else(|e| panic!("{release}: {e}"));
        }
        let default = plan(&one("kind = \"quantiles\"\ncolumn = \"age\"")).unwrap();
        let KindSpec::Quantiles(q) = &default.releases[0].kind else {
            panic!("quantiles")
        };
        assert_eq!((q.levels.len(), q.cells), (3, 4096));
        assert_eq!(
            Binning::Even(4).edges(0.0, 1.0),
            [0.0, 0.25, 0.5, 0.75, 1.0]
        );
    }

    #[test]
    #[allow(clippy::too_many_lines, reason = "a table of cases")]
    fn every_refusal_names_line_key_and_fix() {
        for (text, parts) in [
            (
                PLAN.replace("version = 1", "version = 3"),
                &["line 2", "version = 3"][..],
            ),
            (
                PLAN.replace("kind = \"roc\"", "kind = \"rock\""),
                &["line 15", "Did you mean \"roc\"?"],
            ),
            (
                PLAN.replace("model = \"income\"", "models = [\"income\", \"income\"]"),
                &["line 16", "named twice"],
            ),
            (
                PLAN.replace("model = \"income\"", "models = [\"income\"]"),
                &["line 16", "2 to 16 models"],
            ),
            (
                PLAN.replace(
                    "model = \"income\"",
                    "models = [\"income\", \"o.json#a\"]\nmodel = \"income\"",
                ),
                &["line 16", "exclude each other"],
            ),
            (
                PLAN.replace(
                    "model = \"income\"",
                    "model = \"income\"\ndecide_at = [0.5, 1.5]",
                ),
                &["line 17", "between 0 and 1"],
            ),
            (
                PLAN.replace(
                    "model = \"income\"",
                    "model = \"income\"\nthresholds = \"even\"\nthreshold_share = 0.2",
                ),
                &["line 18", "no effect"],
            ),
            (
                PLAN.replace("kind = \"roc\"", "kind = \"verify\""),
                &["planned", "\"select\""],
            ),
            (
                PLAN.replace("model = \"income\"", "model = \"incom\""),
                &["line 16", "Did you mean `income`?"],
            ),
            (
                PLAN.replace("kind = \"roc\"", "kind = \"residuals\""),
                &["line 16", "\"logistic\"", "binned_residuals"],
            ),
            (
                PLAN.replace("id = \"roc\"", "id = \"income\""),
                &["line 14", "already used", "line 6"],
            ),
            (
                PLAN.replace("id = \"roc\"", "id = \"_n\""),
                &["line 14", "starting with a letter"],
            ),
            (
                PLAN.replace("positive = ", "positiv = "),
                &[
                    "line 10",
                    "unknown key",
                    "Did you mean `positive`?",
                    "\"logistic\"",
                ],
            ),
            (
                PLAN.replace("epsilon = \"0.5\"\n[[", "epsilon = \"0\"\n[["),
                &["line 12", "release.epsilon = \"0\"", "greater than 0"],
            ),
            (
                PLAN.replace("epsilon = \"0.5\"\n[[", "epsilon = -0.5\n[["),
                &["line 12", "greater than 0"],
            ),
            (
                PLAN.replace("epsilon = \"0.5\"\n[[", "epsilon = nan\n[["),
                &["not a finite number"],
            ),
            (
                PLAN.replace("epsilon = \"0.5\"\n[[", "[["),
                &["line 6", "no privacy budget"],
            ),
            (
                PLAN.replace("epsilon = \"0.5\"\n[[", "epsilon = 1\nrho = 1\n[["),
                &["one currency"],
            ),
            (
                PLAN.replace("epsilon = \"0.5\"\n[[", "epsilon = 1\ndelta = 0.1\n[["),
                &["no delta", "Remove delta"],
            ),
            (
                PLAN.replace("epsilon = \"0.5\"\n[[", "rho = 0.1\n[["),
                &["budget is in epsilon"],
            ),
            (
                PLAN.replace("age + C", "agee + C"),
                &["line 6", "formula", "no column `agee`", "^^^^", "`age`"],
            ),
            (
                PLAN.replace("\">50K\"", "\">50\""),
                &["is not a value of the outcome", "`>50K`"],
            ),
            (
                PLAN.replace("log1p(hours)", "log1p(hours"),
                &["line 9", "never closed"],
            ),
            (
                PLAN.replace("log1p(hours)", "log(hours - 5)"),
                &["log needs an argument above 0"],
            ),
            (
                PLAN.replace("hours > 0", "hours = 0"),
                &["line 5", "where", "write =="],
            ),
            (
                PLAN.replace("hours > 0", "hour > 0"),
                &["line 5", "no column `hour`"],
            ),
            (
                PLAN.replace("\"1/3\"", "1"),
                &["line 4", "split.test = 1", "between 0 and 1"],
            ),
            (
                PLAN.replace("\"1/3\"", "\"1/3\", train = \"1/3\""),
                &["add up to 1"],
            ),
            (
                PLAN.replace("by = \"content\"", "by = \"ages\""),
                &["line 4", "split.by", "`age`"],
            ),
            (PLAN.replace("salt", "sault"), &["Did you mean `salt`?"]),
            (PLAN.replace("split = ", "# "), &["line 11", "no split"]),
            (
                PLAN.replace("part = \"train\" ", "part = \"both\""),
                &["\"train\", \"test\" or \"all\""],
            ),
            (one(""), &["`kind` is missing"]),
            (
                one("kind = \"top_k\"\ncolumn = \"education\"\nk = 4"),
                &["k = 4 of 3 candidates", "from 1 to 3"],
            ),
            (
                one("kind = \"top_k\"\ncolumn = \"education\"\nk = 2\nmethod = \"peal\""),
                &["permute_and_flip"],
            ),
            (
                one("kind = \"running_total\"\ncolumn = \"age\"\nmethod = \"square_root\""),
                &["Gaussian noise", "honaker"],
            ),
            (
                one("kind = \"running_total\"\ncolumn = \"age\"\nsteps = 100000"),
                &["at most 65536"],
            ),
            (one("kind = \"sum\""), &["column = \"age\""]),
            (one("kind = \"sum\"\nof = \"education\""), &["has levels"]),
            (
                one("kind = \"sum\"\ncolumn = \"age\"\nof = \"age\""),
                &["exclude each other"],
            ),
            (
                one("kind = \"quantiles\"\ncolumn = \"age\"\nlevels = [0.5, 0.5]"),
                &["line 8", "must increase"],
            ),
            (
                one("kind = \"quantiles\"\ncolumn = \"age\"\nlevels = [1]"),
                &["between 0 and 1"],
            ),
            (
                one("kind = \"quantiles\"\ncolumn = \"age\"\nlevels = []"),
                &["1000 levels"],
            ),
            (
                one("kind = \"histogram\"\ncolumn = \"agee\""),
                &["no column `agee`", "`age`"],
            ),
            (
                one("kind = \"histogram\"\ncolumn = \"education\"\nbins = 3"),
                &["declared levels"],
            ),
            (
                one("kind = \"histogram\"\ncolumn = \"age\"\nedges = [3, 2]"),
                &["must increase"],
            ),
            (
                one("kind = \"crosstab\"\ncolumns = []"),
                &["between 1 and 10"],
            ),
            (
                one("kind = \"crosstab\"\ncolumns = [\"age\", \"hours\"]\nbins = 10000"),
                &["cells"],
            ),
            (
                one("kind = \"logistic\"\nformula = \"income ~ age\"\nscale = \"none\""),
                &["data_norm"],
            ),
            (
                one("kind = \"logistic\"\nformula = \"income ~ age\"\nlambda = 0"),
                &["greater than 0"],
            ),
            (
                one("kind = \"logistic\"\nformula = \"education ~ age\""),
                &["3 levels"],
            ),
            (
                one("kind = \"linear\"\nformula = \"income ~ age\""),
                &["must be a number", "logistic"],
            ),
            (
                one("kind = \"linear\"\nformula = \"age ~ income\"\ndelta = \"1e-6\""),
                &["no delta"],
            ),
            (one("kind = \"count\"\npart = \"test\""), &["no split"]),
            (
                one("kind = \"count\"").replace("[[release]]", "[release]"),
                &["expected a list"],
            ),
            (
                "version = 1\ndataset = \"d.toml\"".to_owned(),
                &["`release` is missing"],
            ),
        ] {
            let message = checked(&text).expect_err(&text).to_string();
            assert!(message.starts_with("work/plan.toml"), "{message}");
            for part in parts {
                assert!(message.contains(part), "should say {part:?}: {message}");
            }
            for internal in ["Some(", "KindSpec", "Expr", "RBig", "{}", "unwrap"] {
                assert!(!message.contains(internal), "{message}");
            }
        }
    }

    #[test]
    fn epsilon_may_be_whole_tiny_or_huge() {
        for epsilon in ["1", "\"1\"", "1e-9", "1e9", "\"1/3\"", "5e-324"] {
            let text =
                one("kind = \"count\"").replace("epsilon = 1", &format!("epsilon = {epsilon}"));
            checked(&text).unwrap_or_else(|e| panic!("{epsilon}: {e}"));
        }
    }

    #[test]
    fn a_content_split_needs_records_that_differ() {
        // 74 ages, 100 hours, 3 and 2 levels: 44,400 different records; without the hours 444.
        let text =
            one("kind = \"count\"").replace("[[release]]", "split = { test = 0.25 }\n[[release]]");
        assert_eq!(
            checked(&text).unwrap().split.unwrap().parts[1],
            ("test".to_owned(), 1, 4)
        );
        let small = DATASET.replace("upper = 99", "upper = 1");
        let small = Dataset::parse(&small, Path::new("dataset.toml")).unwrap();
        let message = plan(&text).unwrap().check(&small).unwrap_err().to_string();
        for part in [
            "line 3",
            "888 different records",
            "by = \"<column>\"",
            "by = \"age\"",
        ] {
            assert!(message.contains(part), "{message}");
        }
        let by_age = text.replace("0.25", "0.25, by = \"age\"");
        assert!(plan(&by_age).unwrap().check(&small).is_ok());
        let unit = DATASET.replace("upper = 99", "upper = 1").replace(
            "[budget]",
            "unit = { column = \"person\", max_rows = 3 }\n[budget]",
        ) + "[columns.person]\ntype = \"id\"\n";
        let unit = Dataset::parse(&unit, Path::new("dataset.toml")).unwrap();
        assert!(plan(&text).unwrap().check(&unit).is_ok());
    }

    #[test]
    fn gaussian_releases_ask_for_what_their_currency_needs() {
        let linear = |budget: &str| {
            one("kind = \"linear\"\nformula = \"hours ~ age\"").replace("epsilon = 1", budget)
        };
        let count = |budget: &str| one("kind = \"count\"").replace("epsilon = 1", budget);
        let on = |currency: &str, text: &str| {
            let data = DATASET.replace("epsilon = \"10\"", currency);
            let data = Dataset::parse(&data, Path::new("dataset.toml")).unwrap();
            plan(text)
                .unwrap()
                .check(&data)
                .map(drop)
                .map_err(|e| e.to_string())
        };
        let both = "epsilon = 10\ndelta = \"1e-6\"";
        assert!(
            on(both, &linear("epsilon = 1"))
                .unwrap_err()
                .contains("needs delta")
        );
        assert!(on(both, &linear("epsilon = 1\ndelta = \"1e-7\"")).is_ok());
        assert!(on(both, &count("epsilon = 1")).is_ok());
        assert!(
            on(both, &count("epsilon = 1\ndelta = \"1e-7\""))
                .unwrap_err()
                .contains("needs no delta")
        );
        assert!(
            on("rho = 1", &linear("epsilon = 1"))
                .unwrap_err()
                .contains("paid in rho")
        );
        assert!(on("rho = 1", &linear("rho = 0.1")).is_ok());
        assert!(on("rho = 1", &count("epsilon = 1")).is_ok());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_damage_gives_a_plan_or_a_refusal(at in 0usize..600, remove in 0usize..20, put in "[\\[\\]{}=\"a-z0-9\\n.~+-]{0,6}") {
            let mut chars: Vec<char> = PLAN.chars().collect();
            let at = at.min(chars.len());
            let end = (at + remove).min(chars.len());
            chars.splice(at..end, put.chars());
            let text: String = chars.into_iter().collect();
            if let Ok(plan) = plan(&text) {
                // The plan is kept byte for byte (lessons, row 82).
                prop_assert_eq!(&plan.text, &text);
                let _ = plan.check(&dataset()).map_err(|e| e.to_string());
                for release in &plan.releases {
                    let _ = release.canonical();
                }
            }
        }
    }
}
