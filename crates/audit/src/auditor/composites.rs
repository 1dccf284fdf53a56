//! One constructor per composite of the registry, for the contract test and for the auditor.

use reticent_accounting::{Currency, Rational};
use reticent_mechanisms::primitives::Payment;
use reticent_mechanisms::program::{Comparison, Expr};
use reticent_mechanisms::rows::Schema;
use reticent_statistics::features::{self, Items, Keep};
use reticent_statistics::range::RangeScales;
use reticent_statistics::simple::{AxisCut, AxisSpec};
use reticent_statistics::{
    DesignSpec, Facts, Prepared, Score, StatisticsError, auc, binned, counters, covariance,
    histogram, linear, logistic, naive_bayes, residuals, roc, running, selection, simple, verify,
};
use serde_json::Value;

use crate::tables::real;

/// x in 0..=4, y in 0..=1: what every composite is prepared on.
pub fn schema() -> Schema {
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

fn above(k: f64) -> Expr {
    Expr::Compare(
        Comparison::Greater,
        Box::new(x()),
        Box::new(Expr::Constant(k)),
    )
}

/// Three features of which a record has up to two.
fn words() -> Items {
    let each = [1.0, 2.0, 3.0].map(|k| (format!("x > {k}"), above(k)));
    Items::indicators(each.to_vec(), 2)
}

/// The currency a composite of this name is paid in.
pub fn currency(name: &str) -> Currency {
    match name {
        "running_total square_root" => Currency::Concentrated,
        "covariance sketch" => Currency::Approximate,
        _ => Currency::Pure,
    }
}

/// A composite of the registry at ε = 1 (ρ = 1) with default rules; `None` for a name that is not there.
///
/// # Errors
/// As its constructor.
#[allow(clippy::too_many_lines, reason = "one arm per composite")]
pub fn prepare(name: &str, facts: &Facts<'_>) -> Option<Result<Prepared, StatisticsError>> {
    let e = Rational::ONE;
    let design = DesignSpec {
        intercept: true,
        terms: vec![("x".to_owned(), x())],
        outcome: y(),
        metadata: Value::Null,
    };
    let score = Score::Probability(x().affine(0.25, 0.0));
    Some(match name {
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
        "linear output" => {
            // x + .9: scaled by ½ and −.725 no two draws of drowned noise, small multiples of one number, cancel in the intercept
            let design = DesignSpec {
                terms: vec![("x".to_owned(), x().affine(1.0, 0.9))],
                ..design
            };
            linear::prepare_output(facts, &design, &linear::OutputConfig::new(e))
        }
        "auc" => auc::prepare(facts, &score, y(), &e, Value::Null),
        "covariance" => covariance::prepare(
            facts,
            &[("x".to_owned(), x()), ("y".to_owned(), y())],
            &covariance::Config {
                clip: linear::Clip::Private,
                ..covariance::Config::new(Payment::Pure { epsilon: e })
            },
        ),
        "covariance sketch" => {
            let sketch = covariance::SketchConfig {
                rows: Some(2),
                ..covariance::SketchConfig::new(e, Rational::ONE / Rational::from(1_000_000u32))
            };
            let columns = [("x".to_owned(), x()), ("y".to_owned(), y())];
            covariance::prepare_sketch(facts, &columns, &sketch)
        }
        "roc" => roc::prepare(facts, &score, y(), roc::Config::new(e)),
        "roc stratified" | "roc label_separate" => {
            let choice = if name == "roc stratified" {
                roc::Thresholds::Stratified
            } else {
                roc::Thresholds::LabelSeparate
            };
            // without a declared share of positives the class sizes are bought
            let facts = Facts {
                positive_rate: None,
                ..*facts
            };
            let config = roc::Config {
                choice,
                ..roc::Config::new(e)
            };
            roc::prepare(&facts, &score, y(), config)
        }
        "residuals" => residuals::prepare(
            facts,
            &x().affine(0.25, 0.0),
            &y(),
            residuals::Config {
                side: Some(4),
                ..residuals::Config::new(e)
            },
        ),
        "residuals_published" | "residuals_tests" => {
            let config = if name == "residuals_tests" {
                residuals::Config {
                    tests: true,
                    ..residuals::Config::new(e)
                }
            } else {
                residuals::Config::published(e)
            };
            residuals::prepare(
                facts,
                &x().affine(0.25, 0.0),
                &y(),
                residuals::Config {
                    side: Some(4),
                    ..config
                },
            )
        }
        "binned_residuals" => binned::prepare(facts, &score, y(), binned::Config::new(e)),
        "binned_residuals_published" => {
            let config = binned::Config::published(e, facts.rows);
            binned::prepare(facts, &score, y(), config)
        }
        "binned_residuals_against" => {
            let config = binned::Config {
                against: Some(("x".to_owned(), x())),
                ..binned::Config::new(e)
            };
            binned::prepare(facts, &score, y(), config)
        }
        other if other.starts_with("histogram ") => {
            let method = histogram::Method::of(&other["histogram ".len()..])?;
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
        "verify" => {
            let config = verify::Config {
                claim: verify::Claim::Differs {
                    from: 0.0,
                    level: 0.5,
                },
                ..verify::Config::new(e, "x")
            };
            verify::prepare(facts, &design, &config)
        }
        "naive_bayes" | "naive_bayes keep" => {
            let spec = naive_bayes::Spec {
                factors: vec![naive_bayes::Factor {
                    name: "x > 2".to_owned(),
                    expr: above(2.0),
                    levels: vec!["no".to_owned(), "yes".to_owned()],
                }],
                items: words(),
                numeric: vec![("x".to_owned(), x())],
                ..naive_bayes::Spec::new(y(), vec!["0".to_owned(), "1".to_owned()])
            };
            let keep = (features::Scoring::DifferenceCount, Keep::Top(1));
            let config = naive_bayes::Config {
                keep: (name == "naive_bayes keep").then_some(keep),
                ..naive_bayes::Config::new(Payment::Pure { epsilon: e })
            };
            naive_bayes::prepare(facts, &spec, config)
        }
        "select" | "select by picks" | "select by sparse vector" => {
            let (keep, method) = match name {
                "select" => (Keep::Above(1.0), features::Method::Clusters(2)),
                "select by picks" => (Keep::Top(2), features::Method::Picks),
                _ => {
                    let method = features::Method::SparseVector { answers: 1 };
                    (Keep::Above(1.0), method)
                }
            };
            let config = features::Config {
                payment: Payment::Pure { epsilon: e },
                scoring: features::Scoring::TotalCount,
                keep,
                method: Some(method),
                metadata: Value::Null,
            };
            features::select(facts, &words(), &y(), config)
        }
        "top_k" => selection::top_k(facts, &axis_of("x", x(), 4.0, 4), 1, None, &e),
        _ => return None,
    })
}
