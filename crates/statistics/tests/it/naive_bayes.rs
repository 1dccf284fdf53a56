//! Naive Bayes: exact without noise, priced as declared, read back as released.

#![allow(clippy::float_cmp, reason = "whole numbers kept as floats")]

use reticent_accounting::{Currency, Rational, Relation};
use reticent_laws::{Seeded, Silent};
use reticent_mechanisms::Context;
use reticent_mechanisms::primitives::Payment;
use reticent_mechanisms::program::{Comparison, Expr};
use reticent_noise::Noise;
use reticent_statistics::features::{Items, Keep, Scoring};
use reticent_statistics::naive_bayes::{Classifier, Config, Factor, Spec, prepare};
use reticent_statistics::{Facts, Prepared, StatisticsError};
use serde_json::json;

use crate::support::{Table, rational, reals};

fn above(column: usize, k: f64) -> Expr {
    Expr::Compare(
        Comparison::Greater,
        Box::new(Expr::Column(column)),
        Box::new(Expr::Constant(k)),
    )
}

fn strings(of: &[&str]) -> Vec<String> {
    of.iter().map(|s| (*s).to_owned()).collect()
}

/// Columns as in the contract suite: x₀ … x₄, y (0/1) at 5.
pub(crate) fn of_columns(facts: &Facts<'_>, e: &Rational) -> Result<Prepared, StatisticsError> {
    let items = (1..4).map(|c| (format!("x{c}"), above(c, 0.0))).collect();
    let spec = Spec {
        factors: vec![Factor {
            name: "x0".to_owned(),
            expr: above(0, 0.0),
            levels: strings(&["low", "high"]),
        }],
        items: Items::indicators(items, 2),
        numeric: vec![("x4".to_owned(), Expr::Column(4))],
        ..Spec::new(Expr::Column(5), strings(&["0", "1"]))
    };
    let epsilon = e.clone();
    prepare(facts, &spec, Config::new(Payment::Pure { epsilon }))
}

/// Columns: label (3 classes), two (2 levels), three (3 levels), two word slots of a vocabulary of 3, a number.
fn table(rows: usize) -> (Table, Vec<[f64; 6]>) {
    let mut random = Seeded::new(31);
    let mut next = |n: u64| f64::from(u32::try_from(random.bits() % n).unwrap());
    let records: Vec<[f64; 6]> = (0..rows)
        .map(|_| {
            let label = next(3);
            let word = (next(3) + label).min(3.0);
            let number = next(1000) / 100.0 - 5.0 + label;
            [label, next(2), next(3), word, next(4), number]
        })
        .collect();
    let column = |i: usize| records.iter().map(|r| r[i]).collect::<Vec<f64>>();
    let table = reals(&[
        ("label", column(0), 0.0, 2.0),
        ("two", column(1), 0.0, 1.0),
        ("three", column(2), 0.0, 2.0),
        ("w1", column(3), 0.0, 3.0),
        ("w2", column(4), 0.0, 3.0),
        ("number", column(5), -6.0, 8.0),
    ]);
    (table, records)
}

/// A whole number, from a real column: levels are numbered.
fn code(column: usize, levels: u32) -> Expr {
    let table = (0..levels).map(f64::from).collect();
    Expr::Lookup(Box::new(Expr::Column(column)), table)
}

fn spec(classes: usize) -> Spec {
    let names: Vec<String> = (0..classes).map(|c| format!("c{c}")).collect();
    Spec {
        factors: vec![
            Factor {
                name: "two".to_owned(),
                expr: code(1, 2),
                levels: strings(&["a", "b"]),
            },
            Factor {
                name: "three".to_owned(),
                expr: code(2, 3),
                levels: strings(&["p", "q", "r"]),
            },
        ],
        items: Items::slots(strings(&["u", "v", "w"]), vec![code(3, 4), code(4, 4)]),
        numeric: vec![("number".to_owned(), Expr::Column(5))],
        ..Spec::new(Expr::Column(0), names)
    }
}

fn pure() -> Payment {
    Payment::Pure {
        epsilon: Rational::from(1u8),
    }
}

/// Counts, means and variances against direct sums over the records; probabilities against the product formula.
#[test]
fn counts_are_exact_without_noise() {
    let (table, records) = table(3000);
    let context = Context::records(Relation::AddRemove);
    let config = Config {
        smoothing: Some(1.0),
        ..Config::new(pure())
    };
    let prepared = prepare(&table.facts(&context, None), &spec(3), config).unwrap();
    let (answer, trace) = table.run(&context, &prepared, &mut Silent);
    assert!(trace.unused.is_empty());
    let value = answer.value;
    let has = |r: &[f64; 6], name: &str| match name {
        "two=b" => r[1] == 1.0,
        "three=p" => r[2] == 0.0,
        "three=q" => r[2] == 1.0,
        "three=r" => r[2] == 2.0,
        "u" => r[3] == 0.0 || r[4] == 0.0,
        "v" => r[3] == 1.0 || r[4] == 1.0,
        _ => r[3] == 2.0 || r[4] == 2.0,
    };
    let names = ["two=b", "three=p", "three=q", "three=r", "u", "v", "w"];
    let of = |c: f64| records.iter().filter(move |r| r[0] == c);
    let count = |name: &str, c: f64| of(c).filter(|r| has(r, name)).count();
    for name in names {
        let want: Vec<usize> = [0.0, 1.0, 2.0].map(|c| count(name, c)).to_vec();
        assert_eq!(value["counts"][name], json!(want), "{name}");
    }
    let sizes = [0.0, 1.0, 2.0].map(|c| of(c).count());
    assert_eq!(value["class_counts"], json!(sizes));
    let model = Classifier::read(&value).unwrap();
    let order: Vec<&str> = model.weights.iter().map(|w| w.name.as_str()).collect();
    assert_eq!(order, names);
    #[allow(clippy::cast_precision_loss, reason = "small counts")]
    let f = |n: usize| n as f64;
    let total = f(records.len());
    for (c, size) in sizes.iter().enumerate() {
        let class = [0.0, 1.0, 2.0][c];
        let mean = of(class).map(|r| r[5]).sum::<f64>() / f(*size);
        let variance = of(class).map(|r| (r[5] - mean).powi(2)).sum::<f64>() / f(*size);
        assert!((model.numeric[0].mean[c] - mean).abs() < 1e-6);
        assert!((model.numeric[0].variance[c] - variance).abs() < 1e-5);
    }
    let record = [0.0, 1.0, 2.0, 0.0, 2.0, 1.25];
    let likelihood = |c: usize| {
        let class = [0.0, 1.0, 2.0][c];
        let mut p = f(sizes[c]) / total;
        for name in ["two=b", "u", "v", "w"] {
            let all: usize = [0.0, 1.0, 2.0].map(|c| count(name, c)).iter().sum();
            let rate = f(all) / total;
            let own = (f(count(name, class)) + 1.0) / (f(sizes[c]) + 1.0 / rate);
            p *= if has(&record, name) { own } else { 1.0 - own };
        }
        p *= (f(count("three=r", class)) + 1.0) / (f(sizes[c]) + 3.0);
        let (m, v) = (model.numeric[0].mean[c], model.numeric[0].variance[c]);
        p * (-(record[5] - m).powi(2) / (2.0 * v)).exp() / v.sqrt()
    };
    let raw: Vec<f64> = (0..3).map(likelihood).collect();
    let sum: f64 = raw.iter().sum();
    let held: Vec<usize> = (0..7).filter(|i| has(&record, names[*i])).collect();
    let given = model.probabilities(&held, &[record[5]]);
    for (got, want) in given.iter().zip(&raw) {
        assert!((got - want / sum).abs() < 1e-9, "{given:?}");
    }
    let best = model.predict(&held, &[record[5]]);
    assert!(given.iter().all(|p| *p <= given[best]));
    // what does not exist or is missing says nothing; a feature named twice counts once
    let odd = [held.clone(), held.clone(), vec![99]].concat();
    assert_eq!(
        model.scores(&odd, &[record[5]]),
        model.scores(&held, &[record[5]])
    );
    assert!(
        model
            .scores(&held, &[f64::NAN])
            .iter()
            .all(|s| s.is_finite())
    );
}

/// The parts add up to the whole payment in every currency that can pay, and class counts cost one entry.
#[test]
fn parts_are_the_whole() {
    let (table, _) = table(50);
    for relation in [Relation::AddRemove, Relation::ReplaceOne] {
        for numbers in [true, false] {
            let mut spec = spec(3);
            if !numbers {
                spec.numeric.clear();
            }
            let third = rational("1").clone() / Rational::from(3u8);
            let payments = [
                (
                    Currency::Pure,
                    Payment::Pure {
                        epsilon: third.clone(),
                    },
                ),
                (
                    Currency::Approximate,
                    Payment::Approximate {
                        epsilon: third.clone(),
                        delta: rational("1e-6"),
                    },
                ),
                (
                    Currency::Concentrated,
                    Payment::Concentrated { rho: third.clone() },
                ),
            ];
            for (currency, payment) in payments {
                let mut context = Context::records(relation);
                context.currency = currency;
                let config = Config::new(payment);
                let prepared = prepare(&table.facts(&context, None), &spec, config).unwrap();
                let event = prepared.mechanism.event(&context).unwrap();
                let price = event.price(currency).unwrap();
                assert_eq!(price.under(relation).unwrap().amount, third, "{currency:?}");
                let (answer, trace) = table.run(&context, &prepared, &mut Seeded::new(5));
                assert!(trace.unused.is_empty());
                assert!(Classifier::read(&answer.value).is_some());
            }
        }
    }
}

/// For two classes the log-odds and the expression are the difference of the scores; selected features alone are used.
#[test]
fn log_odds_and_selection() {
    let (table, records) = table(3000);
    let context = Context::records(Relation::AddRemove);
    let config = Config {
        keep: Some((Scoring::DifferenceCount, Keep::Top(1))),
        ..Config::new(pure())
    };
    let prepared = prepare(&table.facts(&context, None), &spec(2), config.clone()).unwrap();
    let (answer, _) = table.run(&context, &prepared, &mut Silent);
    let model = Classifier::read(&answer.value).unwrap();
    assert_eq!(model.weights.len(), 5);
    // labels 1 and 2 are the second class
    let gap = |w: f64| {
        let with = |r: &&[f64; 6]| r[3] == w || r[4] == w;
        let (a, b): (Vec<[f64; 6]>, Vec<_>) = records
            .iter()
            .filter(with)
            .copied()
            .partition(|r| r[0] == 0.0);
        a.len().abs_diff(b.len())
    };
    let best = (0..3u8).max_by_key(|w| gap(f64::from(*w))).unwrap();
    assert_eq!(model.weights[4].name, ["u", "v", "w"][usize::from(best)]);
    let (intercept, weights, quadratic) = model.log_odds().unwrap();
    for (has, x) in [(vec![0, 2, 4], 1.5), (vec![], -3.0), (vec![1], 7.0)] {
        let s = model.scores(&has, &[x]);
        let held: f64 = has.iter().map(|i| weights[*i]).sum();
        let odds = intercept + held + quadratic[0].0 * x + quadratic[0].1 * x * x;
        assert!((odds - (s[1] - s[0])).abs() < 1e-9);
    }
    assert!(
        model
            .predictor(&spec(2).items, &[Expr::Column(5)])
            .is_some()
    );
    let total = Config {
        keep: Some((Scoring::PurityIndex, Keep::Top(1))),
        ..config
    };
    assert!(prepare(&table.facts(&context, None), &spec(3), total).is_err());
}

/// Tables without records, without a class, and extreme budgets give finite numbers.
#[test]
fn odd_tables_have_values() {
    for rows in [0, 1] {
        let (table, _) = table(rows);
        for e in ["1e-9", "1e9"] {
            let context = Context::records(Relation::ReplaceOne);
            let payment = Payment::Pure {
                epsilon: rational(e),
            };
            let config = Config::new(payment);
            let prepared = prepare(&table.facts(&context, None), &spec(3), config).unwrap();
            let (answer, _) = table.run(&context, &prepared, &mut Seeded::new(8));
            let model = Classifier::read(&answer.value).unwrap();
            let p = model.probabilities(&[0, 1], &[0.0]);
            assert!(
                (p.iter().sum::<f64>() - 1.0).abs() < 1e-12,
                "{rows} {e} {p:?}"
            );
        }
    }
    let (table, _) = table(5);
    let context = Context::records(Relation::AddRemove);
    let facts = table.facts(&context, None);
    let refused = |spec: Spec, config: Config| assert!(prepare(&facts, &spec, config).is_err());
    refused(spec(1), Config::new(pure()));
    refused(
        spec(3),
        Config {
            smoothing: Some(0.0),
            ..Config::new(pure())
        },
    );
    refused(
        spec(3),
        Config::new(Payment::Pure {
            epsilon: Rational::ZERO,
        }),
    );
    let mut one = spec(3);
    one.factors[0].levels.truncate(1);
    refused(one, Config::new(pure()));
}
