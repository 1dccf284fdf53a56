//! Method C over every composite of the registry: prices add up, exactly the declared steps are bought, and with all
//! noise drowned nothing of the table is left in the answer.

use std::collections::BTreeSet;

use super::*;
use reticent_accounting::Size;
use reticent_audit::neighbours::Case;
use reticent_audit::registry::COMPOSITES;
use reticent_audit::tables::real;
use reticent_mechanisms::primitives::{Payment, RangeScales};
use reticent_mechanisms::rows::Schema;
use reticent_statistics::simple::{AxisCut, AxisSpec};
use reticent_statistics::{
    DesignSpec, Facts, Prepared, Score, StatisticsError, auc, binned, counters, histogram, linear,
    logistic, residuals, roc, running, selection, simple,
};
use serde_json::Value;

/// x in 0..=4, y in 0..=1.
fn schema() -> Schema {
    Schema {
        columns: vec![real("x", 0.0, 4.0), real("y", 0.0, 1.0)],
    }
}

fn x() -> Expr {
    Expr::Column(0)
}

fn y() -> Expr {
    Expr::Column(1)
}

fn axis_of(name: &str, expr: Expr, upper: f64, cells: u32) -> AxisSpec {
    AxisSpec {
        name: name.to_owned(),
        expr,
        cut: AxisCut::Even {
            lower: 0.0,
            upper,
            cells,
        },
    }
}

fn prepare(name: &str, facts: &Facts<'_>) -> Result<Prepared, StatisticsError> {
    let e = ratio(1, 1);
    let design = DesignSpec {
        intercept: true,
        terms: vec![("x".to_owned(), x())],
        outcome: y(),
        metadata: Value::Null,
    };
    let score = Score::Probability(x().affine(0.25, 0.0));
    match name {
        "count" => simple::count(facts, &e),
        "sum" => simple::sum(facts, x(), &e),
        "mean" => simple::mean(facts, x(), &e),
        "histogram" => simple::histogram(facts, axis_of("x", x(), 4.0, 4), &e),
        "crosstab" => {
            let axes = vec![axis_of("x", x(), 4.0, 4), axis_of("y", y(), 1.0, 2)];
            simple::crosstab(facts, axes, &e)
        }
        "quantiles" => simple::quantiles(facts, x(), "x", &[0.25, 0.5, 0.97], 8, &e),
        "quantiles_recursive" | "quantiles_smooth" => {
            let draw = if name == "quantiles_smooth" {
                simple::Bisect::Smooth
            } else {
                simple::Bisect::Exponential
            };
            simple::bisected_quantiles(facts, x(), "x", &[0.25, 0.5, 0.97], 8, draw, &e)
        }
        "bounds_upper" => {
            let how = simple::BoundsConfig {
                search: simple::Search::Doubling,
                sides: simple::Sides::Upper,
                ..simple::BoundsConfig::default()
            };
            simple::bounds_by(facts, x(), "x", 0.9, how, &e)
        }
        "bounds_printed" => {
            let how = simple::BoundsConfig {
                scales: RangeScales::Printed,
                ..simple::BoundsConfig::default()
            };
            simple::bounds_by(facts, x(), "x", 0.9, how, &e)
        }
        "running_total" | "running_total tree" | "running_total square_root" => {
            let (method, payment) = match name {
                "running_total" => (counters::Method::Honaker, Payment::Pure { epsilon: e }),
                "running_total tree" => (counters::Method::Tree, Payment::Pure { epsilon: e }),
                _ => (
                    counters::Method::SquareRoot,
                    Payment::Concentrated { rho: e },
                ),
            };
            running::prepare(facts, &axis_of("x", x(), 4.0, 5), Some(method), payment)
        }
        "bounds" => simple::bounds(facts, x(), "x", 0.9, &e),
        "logistic" => logistic::prepare(facts, &design, &logistic::Config::new(e)),
        "linear" => linear::prepare(
            facts,
            &design,
            &linear::Config::new(Payment::Pure { epsilon: e }),
        ),
        "auc" => auc::prepare(facts, &score, y(), &e, Value::Null),
        "roc" => roc::prepare(facts, &score, y(), roc::Config::new(e)),
        "residuals" => residuals::prepare(
            facts,
            &x().affine(0.25, 0.0),
            &y(),
            residuals::Config {
                side: Some(4),
                ..residuals::Config::new(e)
            },
        ),
        "binned_residuals" => binned::prepare(facts, &score, y(), binned::Config::new(e)),
        other if other.starts_with("histogram ") => {
            let method = histogram::Method::of(&other["histogram ".len()..]).unwrap();
            let mut axes = vec![axis_of("x", x(), 4.0, 4)];
            if method == histogram::Method::Ag {
                axes.push(axis_of("y", y(), 1.0, 2));
            }
            let config = histogram::Config {
                error_draws: 0,
                ..histogram::Config::new(method, e)
            };
            histogram::prepare(facts, axes, config)
        }
        "top_k" => selection::top_k(facts, &axis_of("x", x(), 4.0, 4), 1, None, &e),
        other => panic!("no constructor for {other}: add it here"),
    }
}

#[test]
fn all() {
    let rows = vec![
        vec![0.0, 0.0],
        vec![1.5, 1.0],
        vec![4.0, 1.0],
        vec![f64::NAN, 1.0],
    ];
    let universe = Universe::rows(schema(), rows);
    let tables = universe.tables(2);
    let mut failures = Vec::new();
    let mut names = BTreeSet::new();
    for row in COMPOSITES {
        names.insert(row.name);
        for relation in RELATIONS {
            for rows_per_unit in [1, 3] {
                // the square root is paid in rho
                let currency = if row.name == "running_total square_root" {
                    Currency::Concentrated
                } else {
                    Currency::Pure
                };
                let context = Context {
                    relation,
                    currency,
                    size: Size::Private,
                    rows_per_unit,
                };
                let schema = schema();
                let facts = Facts {
                    schema: &schema,
                    filter: None,
                    context: &context,
                    rows: Some(1000.0),
                    positive_rate: Some(0.5),
                };
                let prepared = prepare(row.name, &facts).unwrap();
                let program = RowProgram {
                    terms: prepared.terms,
                    ..RowProgram::default()
                };
                let case = Case {
                    universe: &universe,
                    program: &program,
                    mechanism: prepared.mechanism.as_ref(),
                    unit: Unit::Row,
                    context: &context,
                };
                match case.contract(&tables) {
                    Ok(price) => {
                        let own = &price.under(relation).unwrap().amount;
                        if *own > ratio(1, 1) {
                            failures.push(format!("{} {relation}: costs {own}", row.name));
                        }
                    }
                    Err(e) => {
                        failures.push(format!("{} {relation} k={rows_per_unit}: {e}", row.name));
                    }
                }
            }
        }
    }
    assert_eq!(names.len(), COMPOSITES.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
