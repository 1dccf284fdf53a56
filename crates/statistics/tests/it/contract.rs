//! What every kind keeps: exact totals, totality, no not-a-number, all purchases made.

use reticent_accounting::{Cost, Currency, Rational, Relation, Size};
use reticent_laws::{Seeded, Silent};
use reticent_mechanisms::Context;
use reticent_mechanisms::primitives::Payment;
use reticent_mechanisms::program::Expr;
use reticent_statistics::accuracy::QuantileMethod;
use reticent_statistics::counters;
use reticent_statistics::histogram::Method;
use reticent_statistics::simple::{AxisCut, AxisSpec};
use reticent_statistics::{
    DesignSpec, Facts, Prepared, Score, StatisticsError, auc, binned, linear, logistic, model,
    planning, residuals, roc, running, selection, simple, verify,
};
use serde_json::Value;

use crate::support::{Table, rational, reals};

type Make = Box<dyn Fn(&Facts<'_>, &Rational) -> Result<Prepared, StatisticsError>>;

/// Columns: x₁ … x₅, y (0/1), z (number).
fn design(columns: usize, intercept: bool, outcome: usize) -> DesignSpec {
    DesignSpec {
        intercept,
        terms: (0..columns)
            .map(|c| (format!("x{c}"), Expr::Column(c)))
            .collect(),
        outcome: Expr::Column(outcome),
        metadata: serde_json::json!({"formula": "y ~ x"}),
    }
}

fn score() -> Expr {
    model::linear_predictor(0.1, &[(0.8, Expr::Column(0)), (-0.3, Expr::Column(1))])
}

#[allow(clippy::too_many_lines, reason = "a list")]
fn kinds() -> Vec<(&'static str, Make)> {
    let axis = |c: usize| AxisSpec {
        name: format!("x{c}"),
        expr: Expr::Column(c),
        cut: AxisCut::Even {
            lower: -3.0,
            upper: 3.0,
            cells: 7,
        },
    };
    let mut all: Vec<(&'static str, Make)> = vec![
        ("count", Box::new(simple::count)),
        ("sum", Box::new(|f, e| simple::sum(f, Expr::Column(0), e))),
        ("mean", Box::new(|f, e| simple::mean(f, Expr::Column(0), e))),
        ("naive_bayes", Box::new(crate::naive_bayes::of_columns)),
        (
            "select",
            Box::new(|f, e| crate::features::of_columns(f, e, None)),
        ),
        (
            "select",
            Box::new(|f, e| {
                let method = reticent_statistics::features::Method::Clusters(2);
                crate::features::of_columns(f, e, Some(method))
            }),
        ),
        (
            "histogram",
            Box::new(move |f, e| simple::histogram(f, axis(0), e)),
        ),
        (
            "crosstab",
            Box::new(move |f, e| simple::crosstab(f, vec![axis(0), axis(1)], e)),
        ),
        (
            "quantiles",
            Box::new(|f, e| {
                simple::quantiles(f, Expr::Column(0), "x0", &[0.25, 0.5, 0.75], 512, e)
            }),
        ),
        (
            "quantiles",
            Box::new(|f, e| {
                let levels = [0.25, 0.5, 0.75];
                let draw = simple::Bisect::Exponential;
                simple::bisected_quantiles(f, Expr::Column(0), "x0", &levels, 64, draw, e)
            }),
        ),
        (
            "quantiles",
            Box::new(|f, e| {
                let levels = [0.25, 0.5, 0.75];
                let draw = simple::Bisect::Smooth;
                simple::bisected_quantiles(f, Expr::Column(0), "x0", &levels, 64, draw, e)
            }),
        ),
        (
            "bounds",
            Box::new(|f, e| simple::bounds(f, Expr::Column(0), "x0", 0.985, e)),
        ),
        (
            "bounds",
            Box::new(|f, e| {
                let how = simple::BoundsConfig {
                    search: simple::Search::Doubling,
                    sides: simple::Sides::Lower,
                    ..simple::BoundsConfig::default()
                };
                simple::bounds_by(f, Expr::Column(0), "x0", 0.985, how, e)
            }),
        ),
        (
            "auc",
            Box::new(|f, e| {
                let score = Score::Linear(score());
                auc::prepare(f, &score, Expr::Column(5), e, Value::Null)
            }),
        ),
        (
            "roc",
            Box::new(|f, e| {
                roc::prepare(
                    f,
                    &Score::Linear(score()),
                    Expr::Column(5),
                    roc::Config::new(e.clone()),
                )
            }),
        ),
        (
            "binned_residuals",
            Box::new(|f, e| {
                binned::prepare(
                    f,
                    &Score::Linear(score()),
                    Expr::Column(5),
                    binned::Config::new(e.clone()),
                )
            }),
        ),
        (
            "residuals",
            Box::new(|f, e| {
                residuals::prepare(
                    f,
                    &score(),
                    &Expr::Column(6),
                    residuals::Config::new(e.clone()),
                )
            }),
        ),
    ];
    for choice in [roc::Thresholds::Stratified, roc::Thresholds::LabelSeparate] {
        all.push((
            "roc",
            Box::new(move |f, e| {
                let config = roc::Config {
                    choice,
                    ..roc::Config::new(e.clone())
                };
                roc::prepare(f, &Score::Linear(score()), Expr::Column(5), config)
            }),
        ));
    }
    for (bounds, method, tests) in [
        (residuals::Bounds::Fine, Method::Identity, true),
        (
            residuals::Bounds::Doubling { unit: None },
            Method::Dawa,
            true,
        ),
        (residuals::Bounds::Fine, Method::Hb, false),
        (
            residuals::Bounds::Doubling { unit: Some(0.5) },
            Method::Ahp,
            false,
        ),
        (residuals::Bounds::Fine, Method::Ag, false),
        (residuals::Bounds::Fine, Method::Mwem, false),
    ] {
        all.push((
            "residuals",
            Box::new(move |f, e| {
                let config = residuals::Config {
                    side: Some(8),
                    bounds,
                    method,
                    tests,
                    ..residuals::Config::new(e.clone())
                };
                residuals::prepare(f, &score(), &Expr::Column(6), config)
            }),
        ));
    }
    for against in [None, Some(("x2".to_owned(), Expr::Column(2)))] {
        all.push((
            "binned_residuals",
            Box::new(move |f, e| {
                let config = binned::Config {
                    against: against.clone(),
                    ..binned::Config::published(e.clone(), f.rows)
                };
                binned::prepare(f, &Score::Linear(score()), Expr::Column(5), config)
            }),
        ));
    }
    for (family, outcome) in [(verify::Family::Gaussian, 6), (verify::Family::Binomial, 5)] {
        for claim in [
            verify::Claim::Differs {
                from: 0.5,
                level: 0.9,
            },
            verify::Claim::Within {
                low: -1.0,
                high: 1.0,
            },
        ] {
            all.push((
                "verify",
                Box::new(move |f, e| {
                    let config = verify::Config {
                        family,
                        claim,
                        groups: Some(10_001),
                        ..verify::Config::new(e.clone(), "x1")
                    };
                    verify::prepare(f, &design(2, true, outcome), &config)
                }),
            ));
        }
    }
    for method in [None, Some(counters::Method::Tree)] {
        all.push((
            "running_total",
            Box::new(move |f, e| {
                let payment = Payment::Pure { epsilon: e.clone() };
                running::prepare(f, &axis(0), method, payment)
            }),
        ));
    }
    // the other methods are checked in `selection`
    all.push((
        "top_k",
        Box::new(move |f, e| selection::top_k(f, &axis(0), 2, Some(selection::Method::Counts), e)),
    ));
    for intercept in [true, false] {
        for p in 1..=5 {
            all.push((
                "logistic",
                Box::new(move |f, e| {
                    let config = logistic::Config::new(e.clone());
                    logistic::prepare(f, &design(p, intercept, 5), &config)
                }),
            ));
            all.push((
                "linear",
                Box::new(move |f, e| {
                    let config = linear::Config::new(Payment::Pure { epsilon: e.clone() });
                    linear::prepare(f, &design(p, intercept, 6), &config)
                }),
            ));
        }
    }
    all.push((
        "logistic",
        Box::new(|f, e| {
            let mut config = logistic::Config::new(e.clone());
            config.clip = logistic::Clip::Private;
            logistic::prepare(f, &design(0, true, 5), &config)
        }),
    ));
    all.push((
        "linear",
        Box::new(|f, e| {
            let config = linear::Config::new(Payment::Pure { epsilon: e.clone() });
            linear::prepare(f, &design(0, true, 6), &config)
        }),
    ));
    for p in [0, 4] {
        all.push((
            "linear",
            Box::new(move |f, e| {
                let config = linear::OutputConfig::new(e.clone());
                linear::prepare_output(f, &design(p, true, 6), &config)
            }),
        ));
    }
    all
}

fn contexts() -> Vec<Context> {
    let mut all = Vec::new();
    for relation in [Relation::AddRemove, Relation::ReplaceOne] {
        for currency in [
            Currency::Pure,
            Currency::Approximate,
            Currency::Concentrated,
        ] {
            for rows_per_unit in [1, 3] {
                all.push(Context {
                    relation,
                    currency,
                    size: Size::Private,
                    rows_per_unit,
                });
            }
        }
    }
    all.push(Context {
        relation: Relation::ReplaceOne,
        currency: Currency::Pure,
        size: Size::Public(300),
        rows_per_unit: 1,
    });
    all
}

/// Seven columns of `rows` rows from a function of (row, column).
fn table(rows: usize, cell: impl Fn(usize, usize) -> f64) -> Table {
    let columns: Vec<(&str, Vec<f64>, f64, f64)> = ["x0", "x1", "x2", "x3", "x4", "y", "z"]
        .into_iter()
        .enumerate()
        .map(|(c, name)| {
            let (lower, upper) = if c == 5 { (0.0, 1.0) } else { (-3.0, 3.0) };
            (name, (0..rows).map(|r| cell(r, c)).collect(), lower, upper)
        })
        .collect();
    reals(&columns)
}

fn ordinary(rows: usize) -> Table {
    let mut noise = Seeded::new(77);
    let cells: Vec<f64> = (0..rows * 7)
        .map(|_| crate::support::uniform(&mut noise))
        .collect();
    table(rows, |r, c| {
        let u = cells[r * 7 + c];
        match c {
            5 => f64::from(u8::from(u > 0.4)),
            _ => 4.0 * u - 2.0,
        }
    })
}

fn no_nan(value: &Value, kind: &str) {
    match value {
        Value::Number(n) => assert!(n.as_f64().unwrap().is_finite(), "{kind}"),
        Value::Array(a) => a.iter().for_each(|v| no_nan(v, kind)),
        Value::Object(o) => o.values().for_each(|v| no_nan(v, kind)),
        _ => {}
    }
}

/// Charges sum to the declared ε exactly: diffprivlib #104 spent the same slice twice.
#[test]
fn inner_events_sum_to_epsilon() {
    let table = ordinary(60);
    for context in contexts() {
        // Pure steps are given an ε in every currency; the pure view must come out exactly.
        let view = Currency::Pure;
        for rows in [None, Some(300.0), Some(1e6)] {
            let facts = table.facts(&context, rows);
            for (kind, make) in kinds() {
                for epsilon in ["1", "0.3", "0.1234567"] {
                    let epsilon = rational(epsilon);
                    let prepared = make(&facts, &epsilon).unwrap();
                    let event = prepared.mechanism.event(&context).unwrap();
                    let price = event.price(view).unwrap();
                    let cost = price.under(context.relation).unwrap();
                    assert_eq!(cost.amount, epsilon, "{kind} {context:?}");
                    assert_eq!(cost.delta, Rational::ZERO);
                    assert_eq!(prepared.mechanism.kind(), kind);
                }
            }
        }
    }
}

#[test]
fn linear_totals_in_every_currency() {
    let table = ordinary(60);
    for relation in [Relation::AddRemove, Relation::ReplaceOne] {
        for clip in [linear::Clip::Private, linear::Clip::None] {
            for (currency, payment, total) in [
                (
                    Currency::Approximate,
                    Payment::Approximate {
                        epsilon: rational("0.7"),
                        delta: rational("0.000001"),
                    },
                    Cost::approximate(rational("0.7"), rational("0.000001")),
                ),
                (
                    Currency::Concentrated,
                    Payment::Concentrated {
                        rho: rational("0.0244"),
                    },
                    Cost::pure(rational("0.0244")),
                ),
            ] {
                let context = Context {
                    relation,
                    currency,
                    size: Size::Private,
                    rows_per_unit: 1,
                };
                let mut config = linear::Config::new(payment);
                config.clip = clip;
                for p in 0..=5 {
                    for intercept in [true, false] {
                        if p == 0 && !intercept {
                            continue;
                        }
                        let prepared = linear::prepare(
                            &table.facts(&context, None),
                            &design(p, intercept, 6),
                            &config,
                        )
                        .unwrap();
                        let event = prepared.mechanism.event(&context).unwrap();
                        let price = event.price(currency).unwrap();
                        assert_eq!(price.under(relation), Some(&total));
                        let (answer, trace) = table.run(&context, &prepared, &mut Seeded::new(3));
                        assert!(trace.unused.is_empty());
                        no_nan(&answer.value, "linear");
                    }
                }
            }
        }
    }
}

/// Extreme budgets in the currencies with Gaussian noise: an answer, or a refusal before anything is bought.
#[test]
fn extreme_gaussian_budgets_are_total() {
    let table = ordinary(40);
    for relation in [Relation::AddRemove, Relation::ReplaceOne] {
        for amount in ["0.000000001", "1000000000"] {
            for currency in [Currency::Approximate, Currency::Concentrated] {
                let payment = match currency {
                    Currency::Concentrated => Payment::Concentrated {
                        rho: rational(amount),
                    },
                    _ => Payment::Approximate {
                        epsilon: rational(amount),
                        delta: rational("0.000001"),
                    },
                };
                let context = Context {
                    relation,
                    currency,
                    size: Size::Private,
                    rows_per_unit: 1,
                };
                let config = linear::Config::new(payment);
                let facts = table.facts(&context, None);
                let prepared = linear::prepare(&facts, &design(3, true, 6), &config).unwrap();
                let (answer, trace) = table.run(&context, &prepared, &mut Seeded::new(2));
                assert!(trace.unused.is_empty());
                no_nan(&answer.value, "linear");
            }
        }
    }
}

#[test]
fn every_kind_answers_on_every_table() {
    let tables = [
        ("empty", table(0, |_, _| 0.0)),
        ("one row", ordinary(1)),
        (
            "all equal",
            table(50, |_, c| if c == 5 { 1.0 } else { 0.5 }),
        ),
        (
            "at the bounds",
            table(50, |r, c| match c {
                5 => f64::from(u8::from(r % 2 == 0)),
                _ => {
                    if r % 2 == 0 {
                        1e308
                    } else {
                        f64::NEG_INFINITY
                    }
                }
            }),
        ),
        (
            "missing cells",
            table(50, |r, c| if (r + c) % 3 == 0 { f64::NAN } else { 0.25 }),
        ),
        ("all missing", table(20, |_, _| f64::NAN)),
        ("ordinary", ordinary(300)),
    ];
    for relation in [Relation::AddRemove, Relation::ReplaceOne] {
        let context = Context::records(relation);
        for (name, table) in &tables {
            for (rows, epsilons) in [
                (None, &["1", "0.000000001"][..]),
                (Some(300.0), &["0.01", "1000000000"]),
            ] {
                for epsilon in epsilons {
                    let epsilon = rational(epsilon);
                    let facts = table.facts(&context, rows);
                    for (kind, make) in kinds() {
                        let prepared = match make(&facts, &epsilon) {
                            Ok(prepared) => prepared,
                            // A fit that cannot be calibrated is refused in words, from public numbers.
                            Err(StatisticsError::Parameter { name, .. })
                                if kind == "logistic" && epsilon < rational("0.000001") =>
                            {
                                assert_eq!(name, "epsilon");
                                continue;
                            }
                            // Votes that could never show through the noise are not bought.
                            Err(StatisticsError::Parameter { name, .. })
                                if kind == "verify" && epsilon < rational("0.000001") =>
                            {
                                assert_eq!(name, "groups");
                                continue;
                            }
                            Err(other) => panic!("{kind} on {name}: {other}"),
                        };
                        let (answer, trace) = table.run(&context, &prepared, &mut Seeded::new(11));
                        assert!(trace.unused.is_empty(), "{kind} on {name}");
                        assert!(answer.value.is_object());
                        assert!(
                            answer.error_95.is_none_or(f64::is_finite),
                            "{kind} on {name}"
                        );
                        no_nan(&answer.value, kind);
                    }
                }
            }
        }
    }
}

/// diffprivlib #97: accuracy must not stay flat as ε grows.
#[test]
fn large_epsilon_is_the_plain_fit() {
    let table = ordinary(300);
    let context = Context::records(Relation::AddRemove);
    let facts = table.facts(&context, Some(300.0));
    for (kind, make) in kinds() {
        if kind == "bounds" || kind == "residuals" {
            continue;
        }
        let prepared = make(&facts, &rational("10000000")).unwrap();
        let noisy = table.run(&context, &prepared, &mut Seeded::new(5)).0;
        let silent = table.run(&context, &prepared, &mut Silent).0;
        let pick = |v: &Value| -> Vec<f64> {
            // Thresholds with equal losses are a coin flip, so binned slopes and areas by quantiles of each
            // class are not compared.
            if v["thresholds"].is_string() {
                return Vec::new();
            }
            ["count", "sum", "mean", "auc"]
                .iter()
                .filter_map(|k| v[k].as_f64())
                .chain(
                    v["terms"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .filter_map(|t| t["estimate"].as_f64()),
                )
                .collect()
        };
        for (a, b) in pick(&noisy.value).iter().zip(pick(&silent.value)) {
            assert!((a - b).abs() <= 1e-3 * b.abs().max(1.0), "{kind}: {a} {b}");
        }
    }
}

/// Clipping at zero would bias sums of many empty cells (opendp #2749).
#[test]
fn a_thousand_empty_cells_are_unbiased() {
    let table = table(0, |_, _| 0.0);
    let context = Context::records(Relation::AddRemove);
    let axis = AxisSpec {
        name: "x".to_owned(),
        expr: Expr::Column(0),
        cut: AxisCut::Even {
            lower: -3.0,
            upper: 3.0,
            cells: 1000,
        },
    };
    let facts = table.facts(&context, None);
    let prepared = simple::histogram(&facts, axis, &rational("0.5")).unwrap();
    let value = table.run(&context, &prepared, &mut Seeded::new(1)).0.value;
    let counts = crate::support::floats(&value["counts"]);
    // Deviation of the sum is at most √(2000)·2 = 89.5: 6.2 of them is 555. Clipping at 0 would add 1000.
    assert!(counts.iter().sum::<f64>().abs() < 555.0);
    assert!(counts.iter().any(|c| *c < 0.0));
}

#[test]
fn refusals_name_the_parameter() {
    let table = ordinary(10);
    let context = Context::records(Relation::AddRemove);
    let facts = table.facts(&context, None);
    let parameter = |r: Result<Prepared, StatisticsError>| match r {
        Err(StatisticsError::Parameter { name, fix, .. }) => {
            assert!(!fix.is_empty());
            name
        }
        other => panic!("{other:?}"),
    };
    let e = rational("1");
    assert_eq!(parameter(simple::count(&facts, &Rational::ZERO)), "epsilon");
    let x = || Expr::Column(0);
    assert_eq!(
        parameter(simple::quantiles(&facts, x(), "x", &[], 10, &e)),
        "levels"
    );
    assert_eq!(
        parameter(simple::quantiles(&facts, x(), "x", &[1.0], 10, &e)),
        "levels"
    );
    assert_eq!(
        parameter(simple::quantiles(&facts, x(), "x", &[f64::NAN], 10, &e)),
        "levels"
    );
    assert_eq!(
        parameter(simple::quantiles(&facts, x(), "x", &[0.5], 0, &e)),
        "cells"
    );
    assert_eq!(
        parameter(simple::bounds(&facts, x(), "x", 0.2, &e)),
        "coverage"
    );
    let axis = |cut| AxisSpec {
        name: "x".to_owned(),
        expr: x(),
        cut,
    };
    let odd = AxisCut::Edges(vec![1.0, 0.0]);
    assert_eq!(parameter(simple::histogram(&facts, axis(odd), &e)), "bins");
    let many = AxisCut::Even {
        lower: 0.0,
        upper: 1.0,
        cells: 1 << 12,
    };
    let wide = vec![axis(many.clone()), axis(many)];
    assert_eq!(parameter(simple::crosstab(&facts, wide, &e)), "cells");
    let mut config = logistic::Config::new(e.clone());
    config.penalty = Some(logistic::Penalty::Mean(0.1));
    assert_eq!(
        parameter(logistic::prepare(&facts, &design(2, true, 5), &config)),
        "lambda"
    );
    config.penalty = Some(logistic::Penalty::Sum(1e-9));
    assert_eq!(
        parameter(logistic::prepare(&facts, &design(2, true, 5), &config)),
        "lambda"
    );
    let gaussian = linear::Config::new(Payment::Concentrated { rho: e });
    assert!(matches!(
        linear::prepare(&facts, &design(2, true, 6), &gaussian),
        Err(StatisticsError::Currency { .. })
    ));
}

#[test]
fn predictions_need_no_data() {
    let table = ordinary(0);
    for context in contexts() {
        for rows in [None, Some(10.0), Some(50_000.0)] {
            let facts = table.facts(&context, rows);
            let e = rational("0.5");
            let pure = Payment::Pure { epsilon: e.clone() };
            let all = [
                planning::count(&facts, &e),
                planning::table(&facts, 12, &e),
                planning::sum(&facts, &Expr::Column(0), &e).unwrap(),
                planning::mean(&facts, &Expr::Column(0), &e).unwrap(),
                planning::quantiles(&facts, 3, 512, QuantileMethod::Exponential, &e),
                planning::quantiles(&facts, 3, 512, QuantileMethod::Recursive, &e),
                planning::quantiles(&facts, 3, 512, QuantileMethod::Smooth, &e),
                planning::bounds(&facts, 0.985, &e),
                planning::logistic(
                    &facts,
                    &design(5, true, 5),
                    &logistic::Config::new(e.clone()),
                )
                .unwrap(),
                planning::linear(
                    &facts,
                    &design(5, true, 6),
                    &linear::Config::new(pure.clone()),
                )
                .unwrap(),
                planning::top_k(&facts, 12, 3, None, &e),
                planning::auc(&facts, &e),
                planning::running_total(&facts, 100, None, &pure),
                planning::roc(&facts, &e),
                planning::residuals(&facts, &e),
                planning::binned_residuals(&facts, &e),
            ];
            for p in all {
                assert!(
                    !p.sentence.is_empty() && !p.sentence.contains("NaN"),
                    "{p:?}"
                );
                assert_eq!(p.enough, p.enough_epsilon.is_none());
            }
        }
    }
    let context = Context::records(Relation::AddRemove);
    let facts = table.facts(&context, Some(10.0));
    assert!(!planning::roc(&facts, &rational("0.5")).enough);
    let facts = table.facts(&context, Some(16_000.0));
    let p = planning::roc(&facts, &rational("1"));
    assert!(p.enough && p.error_95.is_some_and(|e| e < 0.01), "{p:?}");
}

/// A number and a factor of three levels: the longest row has norm² 1 + 1, not 1 + 2, and every coefficient
/// comes back on the user's scale.
#[test]
fn factors_count_once_in_the_row_norm() {
    use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
    use reticent_mechanisms::source::Memory;
    let schema = std::sync::Arc::new(Schema {
        columns: vec![
            Column {
                name: "age".to_owned(),
                kind: Kind::Integer {
                    lower: 17,
                    upper: 90,
                },
                missing: Missing::Drop,
            },
            Column {
                name: "job".to_owned(),
                kind: Kind::Levels {
                    levels: ["a", "b", "c"].map(str::to_owned).to_vec(),
                    other: None,
                },
                missing: Missing::Drop,
            },
        ],
    });
    let rows = 90;
    let ages: Vec<i64> = (0..rows).map(|i| 20 + i % 60).collect();
    let codes: Vec<u32> = (0..90u32).map(|i| i % 3).collect();
    let batch = Batch::new(90, vec![Cells::Integer(ages), Cells::Code(codes)]);
    let table = Table {
        source: Memory::new(schema.clone(), vec![batch]),
        schema,
        rows: 90,
    };
    let context = Context::records(Relation::AddRemove);
    let facts = table.facts(&context, None);
    let level = |level| Expr::Level { column: 1, level };
    let spec = DesignSpec {
        intercept: true,
        terms: vec![
            ("age".to_owned(), Expr::Column(0)),
            ("jobb".to_owned(), level(1)),
            ("jobc".to_owned(), level(2)),
        ],
        outcome: level(1),
        metadata: serde_json::json!({"formula": "job == b ~ age + job", "positive": "b"}),
    };
    let config = logistic::Config::new(rational("100"));
    let prepared = logistic::prepare(&facts, &spec, &config).unwrap();
    let value = table.run(&context, &prepared, &mut Silent).0.value;
    let norm = value["data_norm"].as_f64().unwrap();
    // c² = 2 and g = c/4.
    assert!(
        (norm * norm - 2.0 * (1.0 + 1.0 / 16.0)).abs() < 1e-9,
        "{value}"
    );
    assert_eq!(value["positive"], "b");
    let names: Vec<&str> = value["terms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["(Intercept)", "age", "jobb", "jobc"]);
    let estimate = |i: usize| value["terms"][i]["estimate"].as_f64().unwrap();
    assert!(estimate(2) > 1.0 && estimate(1).abs() < 0.2, "{value}");
    // Whole-valued sums are exact integers: Σ (20 + i mod 60) over 90 rows.
    let sum = simple::sum(&facts, Expr::Column(0), &rational("1")).unwrap();
    let sum = table.run(&context, &sum, &mut Silent).0.value;
    assert_eq!(
        sum["sum"].as_f64().map(f64::to_bits),
        Some(4005f64.to_bits())
    );
}
