//! `plan-accuracy`: error from ε and ε from error, for the releases of a plan or for one kind given by numbers, from public
//! parameters alone. The data are never opened.

use std::path::Path;

use reticent_accounting::{Currency, Relation, rational_from_f64, rational_to_f64};
use reticent_mechanisms::Context;
use reticent_mechanisms::primitives::Payment;
use reticent_mechanisms::program::RowProgram;
use reticent_mechanisms::rows::Schema;
use reticent_statistics::accuracy::{Error, QuantileMethod, Question, Setting};
use reticent_statistics::range::RangeScales;
use reticent_statistics::roc::Thresholds;
use reticent_statistics::simple::{Search, Sides};
use reticent_statistics::{Facts, counters, planning, running, selection, verify};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::formula;
use crate::kinds::{Binning, DEFAULT_BINS, DEFAULT_CELLS, KindSpec};
use crate::methods;
use crate::outcome::Refusal;
use crate::resolve::{Entry, Resolved};
use crate::session;
use crate::suggest;

/// What is known of the accuracy of one release.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The release, or the kind.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Its ε, or ρ for running totals by square root.
    pub budget: f64,
    /// The error, where there is a formula.
    pub error: Option<Error>,
    /// The ε (ρ) for half that error.
    pub for_half: Option<f64>,
    /// What else is known.
    pub remark: Option<String>,
}

/// The accuracy of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct AccuracyTable {
    /// The relation errors are stated for.
    pub relation: Relation,
    /// Number of rows assumed, where one is known.
    pub rows: Option<u64>,
    /// One line per release.
    pub lines: Vec<Line>,
}

impl AccuracyTable {
    /// For machines.
    pub fn to_json(&self) -> Value {
        json!({
            "neighbours": self.relation.to_string(),
            "rows": self.rows,
            "releases": self.lines.iter().map(Line::to_json).collect::<Vec<_>>(),
        })
    }
}

impl Line {
    /// For machines.
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "kind": self.kind,
            "budget": self.budget,
            "error_95": self.error.as_ref().map(|e| e.each),
            "error_95_all": self.error.as_ref().map(|e| e.all),
            "unit": self.error.as_ref().map(|e| e.unit),
            "assuming": self.error.as_ref().and_then(|e| e.assuming),
            "budget_for_half": self.for_half,
            "remark": self.remark,
        })
    }
}

/// The accuracy of every release of a plan; `rows` overrides the public number of rows.
pub fn plan(path: &Path, rows: Option<u64>) -> Result<AccuracyTable, Failure> {
    let resolved = Resolved::load(path)?;
    let rows = rows.or(resolved.public_rows());
    session::validate(&resolved, rows)?;
    let lines = resolved
        .entries
        .iter()
        .map(|entry| line(&resolved, entry, rows.map(session::to_f64)))
        .collect();
    Ok(AccuracyTable {
        relation: resolved.dataset.neighbours,
        rows,
        lines,
    })
}

fn line(resolved: &Resolved, entry: &Entry, rows: Option<f64>) -> Line {
    let context = session::frame_context(resolved, entry);
    let totals = matches!(
        entry.spec.as_ref().map(|s| &s.kind),
        Some(KindSpec::RunningTotal(_))
    );
    let in_rho = totals && resolved.dataset.currency == Currency::Concentrated;
    let part = rows.map(|n| n * entry.fraction);
    let budget = rational_to_f64(&if in_rho {
        entry.payment.claim.amount.clone()
    } else {
        methods::epsilon(resolved, entry, &context, part)
    });
    let setting = Setting {
        context: context.clone(),
    };
    let question = question(resolved, entry, part);
    let error = question.as_ref().and_then(|q| q.error(budget, &setting));
    let for_half = error
        .as_ref()
        .zip(question)
        .and_then(|(e, q)| q.epsilon(0.5 * e.each, &setting));
    Line {
        id: entry.id.clone(),
        kind: entry
            .spec
            .as_ref()
            .map_or("count", |s| s.kind.name())
            .to_owned(),
        budget,
        for_half,
        remark: remark(resolved, entry, &context, rows, error.as_ref()),
        error,
    }
}

/// What an error assumes, and what else can be said; without an error, why there is none.
fn remark(
    resolved: &Resolved,
    entry: &Entry,
    context: &Context,
    rows: Option<f64>,
    error: Option<&Error>,
) -> Option<String> {
    let kind = entry.spec.as_ref().map(|s| &s.kind);
    let mut parts: Vec<String> = Vec::new();
    if let Some(assuming) = error.and_then(|e| e.assuming) {
        parts.push(format!("assuming {assuming}"));
    }
    if error.is_none() || matches!(kind, Some(KindSpec::Verify(_) | KindSpec::Select(_))) {
        parts.extend(methods::expected(resolved, entry, context, rows));
        // of a sketch the sentence above has said it all
        let sketch = matches!(kind, Some(KindSpec::Covariance(s)) if s.sketch.is_some());
        let why = kind.filter(|_| !sketch).and_then(|k| why_none(k.name()));
        parts.extend(why.map(str::to_owned));
    }
    if error.is_none() && rows.is_none() && !kind.is_some_and(KindSpec::is_free) {
        parts.push("give --rows to learn more".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Why a kind has no error that could be stated from public inputs.
fn why_none(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "logistic" => {
            "the error of a coefficient depends on how the confidential covariates vary together, so none is stated; judge the model by its ROC curve"
        }
        "linear" => {
            "the error of a coefficient depends on how the confidential covariates vary together; by noisy moments the release states standard errors that include the noise"
        }
        "covariance" => {
            "the error of an entry is in units of the product of two declared ranges; the release states it for each"
        }
        "cross_validation" => {
            "it is read off the k fits and evaluations that it pays for: a fold's error is that of its evaluation, a k-th of the budget on a k-th of the records"
        }
        "regress" | "threshold" => {
            "it adds no error to that of the release it is read off, and costs nothing"
        }
        _ => return None,
    })
}

/// The question a release asks, from the schema and the plan; none where no formula is known.
fn question(resolved: &Resolved, entry: &Entry, rows: Option<f64>) -> Option<Question> {
    let schema = &*resolved.dataset.schema;
    let interval = |of: &str| {
        let program = RowProgram {
            terms: vec![formula::expression(of, schema).ok()?],
            filter: resolved.filter.clone(),
            part: None,
        };
        program.bounds(schema).ok()?.first().copied()
    };
    let Some(spec) = &entry.spec else {
        return Some(Question::Count);
    };
    let cells = |column: &str, binning: &Binning| methods::cells_of(resolved, column, binning);
    Some(match &spec.kind {
        KindSpec::Count => Question::Count,
        KindSpec::Sum(s) => Question::Sum {
            magnitude: interval(&s.of)?.magnitude(),
        },
        KindSpec::Mean(s) => {
            let bounds = interval(&s.of)?;
            Question::Mean {
                width: bounds.upper - bounds.lower,
                rows: rows?,
            }
        }
        KindSpec::Histogram(s) => {
            let binning = s.bins.clone().unwrap_or(Binning::Even(DEFAULT_BINS));
            Question::Histogram {
                cells: cells(&s.column, &binning)?,
            }
        }
        KindSpec::Crosstab(s) => Question::Histogram {
            cells: s
                .columns
                .iter()
                .map(|c| cells(c, &s.binning(c)))
                .try_fold(1, |all: u64, n| Some(all.saturating_mul(n?)))?,
        },
        KindSpec::Quantiles(s) => Question::Quantiles {
            levels: u32::try_from(s.levels.len()).ok()?,
            cells: s.cells,
            method: s.method.planned(),
        },
        KindSpec::Bounds(s) => Question::Bounds {
            coverage: rational_to_f64(&s.coverage),
            sides: if s.sides == Sides::Both { 2 } else { 1 },
            candidates: candidates(s.method),
            scales: s.scales,
        },
        KindSpec::TopK(s) => {
            let bins = s.bins.clone().unwrap_or(Binning::Even(DEFAULT_BINS));
            Question::TopK {
                candidates: u32::try_from(cells(&s.column, &bins)?).ok()?,
                picks: s.k,
                method: s.method,
            }
        }
        KindSpec::RunningTotal(s) => {
            let payment = methods::totals_payment(resolved.dataset.currency, &entry.payment);
            if matches!(payment, Payment::Approximate { .. }) {
                // its one formula is that of the sentence
                return None;
            }
            let steps = methods::steps_of(&resolved.dataset, resolved.filter.as_ref(), s).ok()?;
            Question::RunningTotal {
                steps: u32::try_from(steps).ok()?,
                method: s
                    .method
                    .unwrap_or_else(|| running::default_method(steps, &payment)),
            }
        }
        KindSpec::Auc(_) => {
            let rate = resolved.dataset.positive_rate.unwrap_or(0.5);
            Question::SmoothAuc {
                smaller: rows? * rate.min(1.0 - rate),
            }
        }
        KindSpec::Residuals(_) => Question::Residuals { rows: rows? },
        KindSpec::BinnedResiduals(_) => Question::BinnedResiduals { rows: rows? },
        // quantiles alone have no formula
        KindSpec::Roc(s) if s.thresholds == Thresholds::LabelSeparate => return None,
        KindSpec::Roc(_) => Question::Roc {
            rows: rows?,
            positive_rate: resolved.dataset.positive_rate.unwrap_or(0.5),
        },
        KindSpec::Select(s) => {
            let context = session::frame_context(resolved, entry);
            methods::select_question(resolved, entry, &context, s)?
        }
        KindSpec::Verify(_) => Question::Votes,
        // what is known of models is said in a sentence
        KindSpec::Logistic(_)
        | KindSpec::Linear(_)
        | KindSpec::Covariance(_)
        | KindSpec::Regress(_)
        | KindSpec::Threshold(_)
        | KindSpec::NaiveBayes(_)
        | KindSpec::CrossValidation(_)
        | KindSpec::Decisions(_) => return None,
    })
}

/// How many candidates a private range looks at: six decades by factors of 1.1 or 2, and the ends.
fn candidates(search: Search) -> u32 {
    match search {
        Search::Fine => 147,
        Search::Doubling => 22,
    }
}

/// One kind by its numbers: what the command line says; everything a kind does not use is ignored.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The kind: one of [`KINDS`].
    pub kind: String,
    /// ε; or ρ for running totals by square root.
    pub budget: Option<f64>,
    /// The wanted error, instead of a budget.
    pub error: Option<f64>,
    /// Cells of a histogram, or of the grid of quantiles.
    pub cells: Option<u32>,
    /// Number of quantiles.
    pub levels: Option<u32>,
    /// Number of records.
    pub rows: Option<f64>,
    /// Largest absolute value of a sum, or width of the interval of a mean.
    pub width: Option<f64>,
    /// Share of a range.
    pub coverage: Option<f64>,
    /// Ends of a range.
    pub sides: Option<u32>,
    /// Positive answers of a sparse vector.
    pub answers: Option<u32>,
    /// Queries of a sparse vector.
    pub queries: Option<u64>,
    /// How many of the candidates (`cells`) are chosen.
    pub k: Option<u32>,
    /// Features that a record can have.
    pub most: Option<u32>,
    /// Coefficients of a regression, the intercept among them.
    pub coefficients: Option<u32>,
    /// Steps of running totals.
    pub steps: Option<u32>,
    /// Share of positive outcomes.
    pub positive_rate: Option<f64>,
    /// Method of quantiles, bounds or running totals.
    pub method: Option<String>,
    /// Replace-one instead of add/remove.
    pub replace_one: bool,
    /// Rows of a privacy unit; 1 if absent.
    pub rows_per_unit: Option<u32>,
}

/// Kinds that [`single`] knows: those of plans, and sparse vector sessions.
pub const KINDS: [&str; 23] = [
    "count",
    "sum",
    "mean",
    "histogram",
    "crosstab",
    "quantiles",
    "bounds",
    "sparse_vector",
    "roc",
    "auc",
    "residuals",
    "binned_residuals",
    "top_k",
    "running_total",
    "select",
    "naive_bayes",
    "verify",
    "logistic",
    "linear",
    "covariance",
    "regress",
    "threshold",
    "cross_validation",
];

/// The error of one kind at a budget, or the budget for an error; for kinds without an error at a budget, why there is none.
pub fn single(asked: &Asked) -> Result<Line, Refusal> {
    if asked.budget.is_some_and(|b| !(b > 0.0 && b.is_finite())) {
        return Err(
            Refusal::request("the budget must be a number greater than 0")
                .accepting("Write for example --epsilon 0.1."),
        );
    }
    if let Some(why) = why_none(&asked.kind) {
        if let Some(error) = asked.error {
            let what = format!("no epsilon can be given for an error of {error}: {why}");
            return Err(Refusal::request(what)
                .accepting("Give --epsilon, or ask about a plan: its numbers say more."));
        }
        return Ok(Line {
            id: asked.kind.clone(),
            kind: asked.kind.clone(),
            budget: asked.budget.unwrap_or(0.0),
            error: None,
            for_half: None,
            remark: Some(why.to_owned()),
        });
    }
    let question = asked.question()?;
    let relation = if asked.replace_one {
        Relation::ReplaceOne
    } else {
        Relation::AddRemove
    };
    let setting = Setting {
        context: Context {
            rows_per_unit: asked.rows_per_unit.unwrap_or(1),
            currency: Currency::Pure,
            ..Context::records(relation)
        },
    };
    let budget = match (asked.budget, asked.error) {
        (Some(budget), None) => budget,
        (None, Some(error)) => question.epsilon(error, &setting).ok_or_else(|| {
            Refusal::request(format!("no epsilon below 1e6 gives an error of {error}"))
                .accepting("Ask for a larger error.")
        })?,
        _ => {
            return Err(
                Refusal::request("give either --epsilon (or --rho) or --error")
                    .accepting("Write for example --epsilon 0.1."),
            );
        }
    };
    let error = question.error(budget, &setting).ok_or_else(|| {
        Refusal::request("these numbers make no sense together").accepting(
            "The budget must be greater than 0, counts at least 1, coverage from 0.5 to below 1.",
        )
    })?;
    Ok(Line {
        id: asked.kind.clone(),
        kind: asked.kind.clone(),
        budget,
        for_half: question.epsilon(0.5 * error.each, &setting),
        remark: if question == Question::Votes {
            asked.power(budget, &setting.context)
        } else {
            error.assuming.map(|a| format!("assuming {a}"))
        },
        error: Some(error),
    })
}

impl Asked {
    /// What a vote at this budget finds: a coefficient that differs from 0, at level .05.
    fn power(&self, budget: f64, context: &Context) -> Option<String> {
        let schema = Schema {
            columns: Vec::new(),
        };
        let facts = Facts {
            schema: &schema,
            filter: None,
            context,
            rows: self.rows,
            positive_rate: None,
        };
        let config = verify::Config::new(rational_from_f64(budget).ok()?, "");
        let coefficients = self.coefficients.unwrap_or(2) as usize;
        Some(planning::votes(&facts, coefficients, &config).sentence)
    }

    #[allow(clippy::too_many_lines, reason = "one arm per kind")]
    fn question(&self) -> Result<Question, Refusal> {
        let need = |value: Option<f64>, key: &str| {
            value.ok_or_else(|| {
                Refusal::request(format!("a {} needs --{key}", self.kind))
                    .accepting(format!("Add for example --{key} 1000."))
            })
        };
        let method = self.method.as_deref();
        let word = |known: &[&str]| {
            Refusal::request(format!(
                "{} is not a method of {}",
                method.unwrap_or_default(),
                self.kind
            ))
            .accepting(suggest::advice(method.unwrap_or_default(), known))
        };
        Ok(match self.kind.as_str() {
            "count" => Question::Count,
            "sum" => Question::Sum {
                magnitude: need(self.width, "width")?,
            },
            "mean" => Question::Mean {
                width: need(self.width, "width")?,
                rows: need(self.rows, "rows")?,
            },
            "histogram" | "crosstab" => Question::Histogram {
                cells: u64::from(self.cells.unwrap_or(DEFAULT_BINS)),
            },
            "quantiles" => Question::Quantiles {
                levels: self.levels.unwrap_or(3),
                cells: self.cells.unwrap_or(DEFAULT_CELLS),
                method: match method {
                    None | Some("exponential") => QuantileMethod::Exponential,
                    Some("recursive") => QuantileMethod::Recursive,
                    Some("smooth") => QuantileMethod::Smooth,
                    Some(_) => return Err(word(&["exponential", "recursive", "smooth"])),
                },
            },
            "bounds" => Question::Bounds {
                coverage: self.coverage.unwrap_or(0.985),
                sides: self.sides.unwrap_or(2),
                scales: RangeScales::Calibrated,
                candidates: match method {
                    None | Some("fine") => candidates(Search::Fine),
                    Some("doubling") => candidates(Search::Doubling),
                    Some(_) => return Err(word(&["fine", "doubling"])),
                },
            },
            "sparse_vector" => Question::SparseVector {
                answers: self.answers.unwrap_or(1),
                queries: self.queries.unwrap_or(100),
                one_direction: true,
            },
            "roc" => Question::Roc {
                rows: need(self.rows, "rows")?,
                positive_rate: self.positive_rate.unwrap_or(0.5),
            },
            "auc" => {
                let rate = self.positive_rate.unwrap_or(0.5);
                Question::SmoothAuc {
                    smaller: need(self.rows, "rows")? * rate.min(1.0 - rate),
                }
            }
            "residuals" => Question::Residuals {
                rows: need(self.rows, "rows")?,
            },
            "binned_residuals" => Question::BinnedResiduals {
                rows: need(self.rows, "rows")?,
            },
            "top_k" => {
                let known = selection::Method::ALL.map(|m| (m.name(), m));
                Question::TopK {
                    candidates: self.cells.unwrap_or(100),
                    picks: self.k.unwrap_or(10),
                    method: named(method, &known).map_err(|names| word(&names))?,
                }
            }
            "select" | "naive_bayes" => self.features(&word)?,
            "verify" => Question::Votes,
            "running_total" => {
                let known = counters::Method::ALL.map(|m| (m.name(), m));
                Question::RunningTotal {
                    steps: self.steps.unwrap_or(365),
                    method: named(method, &known)
                        .map_err(|names| word(&names))?
                        .unwrap_or(counters::Method::Honaker),
                }
            }
            other => {
                return Err(
                    Refusal::request(format!("there is no kind \"{other}\" here"))
                        .accepting(suggest::advice(other, &KINDS)),
                );
            }
        })
    }
}

impl Asked {
    fn features(&self, word: &impl Fn(&[&str]) -> Refusal) -> Result<Question, Refusal> {
        let features = self.cells.unwrap_or(100);
        let method = match (self.kind.as_str(), self.method.as_deref()) {
            ("naive_bayes", Some(_)) => return Err(word(&[])),
            (_, method) => method.unwrap_or("counts"),
        };
        Ok(match method {
            "picks" => Question::TopK {
                candidates: features,
                picks: self.k.unwrap_or(10),
                method: Some(selection::Method::PermuteAndFlip),
            },
            "sparse_vector" => Question::SparseVector {
                answers: self.answers.unwrap_or(1),
                queries: u64::from(features),
                one_direction: true,
            },
            "counts" | "clusters" => Question::Features {
                features,
                most: self.most.ok_or_else(|| {
                    Refusal::request(format!("a {} needs --most", self.kind)).accepting(
                        "Add the largest number of features of a record, for example --most 20.",
                    )
                })?,
                classes: self.kind == "naive_bayes" || method == "clusters",
            },
            _ => return Err(word(&["counts", "clusters", "picks", "sparse_vector"])),
        })
    }
}

/// A method by its name, none without one; the known names if there is no such method.
fn named<T: Copy>(
    method: Option<&str>,
    known: &[(&'static str, T)],
) -> Result<Option<T>, Vec<&'static str>> {
    method
        .map(|m| {
            known
                .iter()
                .find(|k| k.0 == m)
                .map(|k| k.1)
                .ok_or_else(|| known.iter().map(|k| k.0).collect())
        })
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(kind: &str) -> Asked {
        Asked {
            kind: kind.to_owned(),
            budget: Some(0.1),
            rows: Some(1e5),
            width: Some(2.0),
            most: Some(6),
            ..Asked::default()
        }
    }

    #[test]
    fn budgets_are_numbers_above_zero() {
        for kind in KINDS {
            for budget in [0.0, -1.0, f64::NAN, f64::INFINITY] {
                let asked = Asked {
                    kind: (*kind).to_owned(),
                    budget: Some(budget),
                    ..Asked::default()
                };
                assert!(single(&asked).is_err(), "{kind} {budget}");
            }
        }
    }

    #[test]
    fn every_kind_has_an_error_and_an_epsilon_for_it() {
        for name in crate::kinds::NAMES {
            assert!(KINDS.contains(&name), "{name}");
        }
        for kind in KINDS {
            let line = single(&asked(kind)).unwrap();
            let Some(error) = line.error else {
                // a sentence says why, and no epsilon is made up
                assert!(line.remark.unwrap().len() > 40, "{kind}");
                let budget = None;
                let back = Asked {
                    budget,
                    error: Some(1.0),
                    ..asked(kind)
                };
                assert!(single(&back).is_err(), "{kind}");
                continue;
            };
            assert!(error.each > 0.0 && error.all >= error.each, "{kind}");
            if kind == "binned_residuals" {
                // the number of bins follows ε, so that its error does not fall evenly
                continue;
            }
            let back = single(&Asked {
                budget: None,
                error: Some(error.each),
                ..asked(kind)
            })
            .unwrap();
            assert!(
                (back.budget / 0.1 - 1.0).abs() < 0.5,
                "{kind}: {}",
                back.budget
            );
            assert!(line.for_half.unwrap() > 0.1, "{kind}");
        }
    }

    /// A vote says what it finds; a choice has the error of what decides.
    #[test]
    fn votes_and_choices() {
        let said = |rows: Option<f64>| {
            let line = single(&Asked {
                budget: Some(1.0),
                rows,
                ..asked("verify")
            })
            .unwrap();
            // Laplace noise of scale 1: ln(20)
            assert!((line.error.unwrap().each - 3.0).abs() < 0.6);
            line.remark.unwrap()
        };
        // 64 groups or 101; unanimous t of about 2.8·√(π/2)
        assert!(
            said(Some(1e5)).contains("101 groups of about 990 records vote"),
            "{}",
            said(Some(1e5))
        );
        assert!(said(None).contains("found in 4 of 5 cases"));
        let each = |method: &str| {
            let method = Some(method.to_owned());
            single(&Asked {
                method,
                budget: Some(1.0),
                ..asked("select")
            })
            .unwrap()
            .error
            .unwrap()
            .each
        };
        // 6 features a record: scale 6, ln(20)·6 = 18
        assert!((each("counts") - 18.0).abs() < 1.0, "{}", each("counts"));
        assert!(each("picks") > 10.0 && each("sparse_vector") > 1.0);
        let naive = single(&Asked {
            budget: Some(1.0),
            ..asked("naive_bayes")
        })
        .unwrap();
        assert!((naive.error.unwrap().each - 21.0).abs() < 1.0);
    }

    #[test]
    fn what_cannot_be_answered_is_refused_with_a_fix() {
        let refused = |a: Asked| single(&a).unwrap_err().to_string();
        assert!(refused(asked("histogran")).contains("histogram"));
        assert!(
            refused(Asked {
                budget: None,
                ..asked("count")
            })
            .contains("--epsilon")
        );
        assert!(
            refused(Asked {
                error: Some(1.0),
                ..asked("count")
            })
            .contains("--error")
        );
        assert!(
            refused(Asked {
                rows: None,
                ..asked("mean")
            })
            .contains("--rows")
        );
        assert!(
            refused(Asked {
                budget: Some(-1.0),
                ..asked("count")
            })
            .contains("greater than 0")
        );
        let method = Some("smoth".to_owned());
        assert!(
            refused(Asked {
                method,
                ..asked("quantiles")
            })
            .contains("smooth")
        );
    }
}
