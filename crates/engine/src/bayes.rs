//! Naive Bayes from a formula: columns of levels, conditions and numbers, each as it is.

use reticent_accounting::{Currency, Rational};
use reticent_mechanisms::primitives::{ItemCounts, Payment as CountsPayment};
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::rows::{Kind, Schema};
use reticent_statistics::Facts;
use reticent_statistics::features::Items;
use reticent_statistics::naive_bayes::{self, Config, Factor, Spec, Term};
use serde_json::{Value, json};

use crate::budget::Payment;
use crate::formula::{self, Design, Family, Response};
use crate::kinds::NaiveBayesSpec;
use crate::outcome::Refusal;

/// Refuses a formula that does more than name columns.
pub(crate) fn check(schema: &Schema, spec: &NaiveBayesSpec) -> Result<(), Refusal> {
    self::spec(schema, spec).map(drop)
}

fn refuse(what: String) -> Refusal {
    Refusal::request(what).for_key("formula").accepting(
        "Name columns of levels, numbers or conditions, for example income ~ education + age.",
    )
}

/// What is told from what.
pub(crate) fn spec(schema: &Schema, spec: &NaiveBayesSpec) -> Result<Spec, Refusal> {
    let design = formula::compile(
        &spec.formula,
        schema,
        spec.positive.as_deref(),
        Family::Logistic,
    )
    .map_err(|e| Refusal::request(e.to_string()).for_key("formula"))?;
    if !design.intercept {
        return Err(refuse(
            "naive Bayes has class sizes; a formula without an intercept says nothing".to_owned(),
        ));
    }
    let (negative, positive) = classes(&design.response);
    let mut out = Spec::new(
        design.response.expr().clone(),
        vec![negative, positive.clone()],
    );
    let mut conditions: Vec<(String, Expr)> = Vec::new();
    let mut squares = String::new();
    for t in &design.terms {
        match &t.expr {
            Expr::Level { column, level } => {
                let (name, levels) = levels(schema, *column)
                    .ok_or_else(|| refuse(format!("{} has no levels", t.name)))?;
                let of = |l: u32| {
                    let level = levels.get(l as usize);
                    format!("{name}={}", level.map_or("", String::as_str))
                };
                if !out.factors.iter().any(|f| f.name == name) {
                    out.factors.push(Factor {
                        name: name.to_owned(),
                        expr: Expr::Code(*column),
                        levels: levels.to_vec(),
                    });
                }
                out.formula
                    .push(indicator(schema, *column, *level, &t.name, &of, &design));
            }
            Expr::Column(column) => {
                let name = name(schema, *column);
                let square = format!("I({}^2)", formula::quote_name(name));
                squares.push_str(" + ");
                squares.push_str(&square);
                out.numeric.push((name.to_owned(), t.expr.clone()));
                out.formula.push(Term::Linear {
                    term: t.name.clone(),
                    feature: name.to_owned(),
                });
                out.formula.push(Term::Square {
                    term: square,
                    feature: name.to_owned(),
                });
            }
            Expr::Compare(..) | Expr::And(..) | Expr::Or(..) | Expr::Not(_) => {
                conditions.push((t.name.clone(), t.expr.clone()));
                out.formula.push(Term::Indicator {
                    term: t.name.clone(),
                    feature: t.name.clone(),
                    reference: None,
                });
            }
            _ => {
                return Err(refuse(format!(
                    "{} is no column as it stands, and naive Bayes takes features one by one",
                    t.name
                )));
            }
        }
    }
    let most = u32::try_from(conditions.len()).unwrap_or(u32::MAX);
    out.items = Items::indicators(conditions, most);
    out.metadata = metadata(schema, &design, &positive, &squares);
    Ok(out)
}

/// The dummy of a level. Of two levels the first has no count of its own: the second's weight says all.
fn indicator(
    schema: &Schema,
    column: usize,
    level: u32,
    term: &str,
    of: &impl Fn(u32) -> String,
    design: &Design,
) -> Term {
    let levels = levels(schema, column).map_or(0, |l| l.1.len());
    let dummies: Vec<u32> = design
        .terms
        .iter()
        .filter_map(|t| match t.expr {
            Expr::Level { column: c, level } if c == column => Some(level),
            _ => None,
        })
        .collect();
    let all = u32::try_from(levels).unwrap_or(u32::MAX);
    let reference = (0..all).find(|l| !dummies.contains(l));
    if levels == 2 && level == 0 {
        // counted is the second level, which the formula takes as the reference
        return Term::Indicator {
            term: term.to_owned(),
            feature: String::new(),
            reference: Some(of(1)),
        };
    }
    Term::Indicator {
        term: term.to_owned(),
        feature: of(level),
        reference: reference.filter(|_| levels > 2).map(of),
    }
}

fn name(schema: &Schema, column: usize) -> &str {
    schema.columns.get(column).map_or("", |c| c.name.as_str())
}

fn levels(schema: &Schema, column: usize) -> Option<(&str, &[String])> {
    match &schema.columns.get(column)?.kind {
        Kind::Levels { levels, .. } => Some((name(schema, column), levels)),
        _ => None,
    }
}

fn classes(response: &Response) -> (String, String) {
    let Response::Binary {
        levels, positive, ..
    } = response
    else {
        return ("0".to_owned(), "1".to_owned());
    };
    let yes = levels
        .get(*positive as usize)
        .cloned()
        .unwrap_or_else(|| "1".to_owned());
    let no = match levels.as_slice() {
        [first, second] if *first == yes => second.clone(),
        [first, _] => first.clone(),
        _ => format!("not {yes}"),
    };
    (no, yes)
}

/// The public facts that let the released model predict by itself.
fn metadata(schema: &Schema, design: &Design, positive: &str, squares: &str) -> Value {
    let mut used = Vec::new();
    let mut visit = |e: &Expr| match e {
        Expr::Column(c) | Expr::Code(c) | Expr::Level { column: c, .. } => used.push(*c),
        _ => {}
    };
    design.terms.iter().for_each(|t| t.expr.walk(&mut visit));
    design.response.expr().walk(&mut visit);
    used.sort_unstable();
    used.dedup();
    let columns = used.iter().filter_map(|c| schema.columns.get(*c).cloned());
    json!({
        "formula": format!("{}{squares}", design.formula),
        "response": design.response.name(),
        "positive": positive,
        "columns": Schema { columns: columns.collect() },
    })
}

fn payment(currency: Currency, payment: &Payment) -> CountsPayment {
    match currency {
        Currency::Concentrated => CountsPayment::Concentrated {
            rho: payment.claim.amount.clone(),
        },
        Currency::Approximate if payment.delta > Rational::ZERO => CountsPayment::Approximate {
            epsilon: payment.epsilon.clone(),
            delta: payment.delta.clone(),
        },
        _ => CountsPayment::Pure {
            epsilon: payment.epsilon.clone(),
        },
    }
}

/// How it is paid and smoothed.
pub(crate) fn config(spec: &NaiveBayesSpec, currency: Currency, paid: &Payment) -> Config {
    Config {
        smoothing: spec.smoothing,
        ..Config::new(payment(currency, paid))
    }
}

/// What to expect of the counts.
pub(crate) fn accuracy(
    facts: &Facts<'_>,
    schema: &Schema,
    spec: &NaiveBayesSpec,
    paid: &Payment,
) -> Option<String> {
    let spec = self::spec(schema, spec).ok()?;
    let factors = u32::try_from(spec.factors.len()).ok()?;
    // an upper bound: numeric features take two shares each
    let shares = factors + spec.items.most + 2 * u32::try_from(spec.numeric.len()).ok()?;
    let step = ItemCounts {
        name: "counts".to_owned(),
        payment: payment(facts.context.currency, paid),
        most: shares,
        classes: true,
    };
    let noise = naive_bayes::deviation(&step.lattice(facts.context).ok()?);
    Some(format!(
        "each count by class carries noise of standard deviation {noise:.1}"
    ))
}

#[cfg(test)]
mod tests {
    use reticent_accounting::Relation;
    use reticent_mechanisms::program::RowProgram;
    use reticent_mechanisms::rows::{Batch, Cells, Column, Missing};
    use reticent_mechanisms::source::Memory;
    use reticent_mechanisms::{Context, Simulated, Unit, simulate};
    use reticent_noise::{Noise, Seeded, Silent};
    use reticent_statistics::naive_bayes::Classifier;

    use super::*;
    use crate::model::Model;

    fn schema() -> Schema {
        let column = |name: &str, kind| Column {
            name: name.to_owned(),
            kind,
            missing: Missing::Drop,
        };
        let levels = |of: &[&str]| Kind::Levels {
            levels: of.iter().map(|l| (*l).to_owned()).collect(),
            other: None,
        };
        let number = |lower, upper| Kind::Real { lower, upper };
        Schema {
            columns: vec![
                column("y", levels(&["no", "yes"])),
                column("three", levels(&["a", "b", "c"])),
                column("two", levels(&["p", "q"])),
                column("x value", number(0.0, 10.0)),
                column("z", number(-1.0, 1.0)),
            ],
        }
    }

    fn spec_of(formula: &str) -> NaiveBayesSpec {
        NaiveBayesSpec {
            formula: formula.to_owned(),
            positive: None,
            smoothing: Some(1.0),
        }
    }

    /// The model read back from a release predicts what the classifier does, record by record: all levels, also with another
    /// reference, conditions, numbers and their squares.
    #[test]
    fn the_released_model_is_the_classifier() {
        let schema = schema();
        let mut random = Seeded::new(3);
        let mut next = |n: u64| u32::try_from(random.bits() % n).unwrap();
        let rows: Vec<[u32; 5]> = (0..500)
            .map(|_| {
                let y = next(2);
                [
                    y,
                    (next(3) + y) % 3,
                    next(2 + u64::from(y)) % 2,
                    next(6) + 2 * y,
                    next(10),
                ]
            })
            .collect();
        let codes = |i: usize| Cells::Code(rows.iter().map(|r| r[i]).collect());
        let x = |r: &[u32; 5]| f64::from(r[3]);
        let z = |r: &[u32; 5]| f64::from(r[4]) / 5.0 - 1.0;
        let numbers = |f: &dyn Fn(&[u32; 5]) -> f64| Cells::Real(rows.iter().map(f).collect());
        let batch = Batch::new(
            500,
            vec![codes(0), codes(1), codes(2), numbers(&x), numbers(&z)],
        );
        let source = Memory::new(schema.clone().into(), vec![batch]);
        let context = Context::records(Relation::AddRemove);
        let facts = Facts {
            schema: &schema,
            filter: None,
            context: &context,
            rows: None,
            positive_rate: None,
        };
        for formula in [
            "y ~ three + two + `x value` + (z > 0)",
            "y ~ relevel(three, ref = \"b\") + relevel(two, ref = \"q\") + z",
        ] {
            let spec = self::spec(&schema, &spec_of(formula)).unwrap();
            let config = Config {
                smoothing: Some(1.0),
                ..Config::new(CountsPayment::Pure {
                    epsilon: Rational::from(1u8),
                })
            };
            let prepared = naive_bayes::prepare(&facts, &spec, config).unwrap();
            let program = RowProgram {
                terms: prepared.terms,
                ..RowProgram::default()
            };
            let mechanism = prepared.mechanism.as_ref();
            let mut silent = Silent;
            let Simulated((answer, _)) = simulate(
                &source,
                Unit::Row,
                &context,
                &program,
                mechanism,
                &mut silent,
            )
            .unwrap();
            let classifier = Classifier::read(&answer.value).unwrap();
            let model = Model::read(&answer.value).unwrap();
            assert_eq!(model.positive.as_deref(), Some("yes"));
            let predictor = model.linear_predictor(&model.design(&schema).unwrap());
            for r in &rows {
                let names = [
                    format!("three={}", ["a", "b", "c"][r[1] as usize]),
                    format!("two={}", ["p", "q"][r[2] as usize]),
                ];
                let held =
                    |w: &str| names.iter().any(|n| n == w) || (w.contains('>') && z(r) > 0.0);
                let has: Vec<usize> = (0..classifier.weights.len())
                    .filter(|i| held(&classifier.weights[*i].name))
                    .collect();
                let numeric: Vec<f64> = classifier
                    .numeric
                    .iter()
                    .map(|n| if n.name == "z" { z(r) } else { x(r) })
                    .collect();
                let scores = classifier.scores(&has, &numeric);
                let cells = [
                    f64::from(r[0]),
                    f64::from(r[1]),
                    f64::from(r[2]),
                    x(r),
                    z(r),
                ];
                let odds =
                    crate::predict::evaluate(&predictor, &cells.into_iter().enumerate().collect());
                assert!(
                    (odds - (scores[1] - scores[0])).abs() < 1e-8,
                    "{formula} {r:?}"
                );
            }
        }
    }

    #[test]
    fn formulas_that_do_more_are_refused() {
        for formula in [
            "y ~ three:two",
            "y ~ log1p(z + 2)",
            "y ~ I(z^2)",
            "y ~ 0 + three",
            "y ~ w",
        ] {
            let refusal = check(&schema(), &spec_of(formula)).unwrap_err();
            assert!(!refusal.to_string().is_empty(), "{formula}");
        }
    }
}
