//! Lessons from the field (`docs/lessons.md`) about sensitivity, bounds and odd values: shipped code on tiny
//! tables, noise off or seeded.
#![allow(
    clippy::float_cmp,
    clippy::many_single_char_names,
    clippy::needless_range_loop,
    reason = "test arithmetic; exact values are meant to be exact"
)]

use std::sync::{Arc, Mutex};

use reticent_accounting::{
    AccountingError, Cost, Currency, Event, Rational, Relation, Size, parse_decimal,
    rational_to_f64, sequential,
};
use reticent_audit::density::gaussian_epsilon;
use reticent_audit::tables::{id, real};
use reticent_laws::{Seeded, Silent};
use reticent_mechanisms::fold::Fold;
use reticent_mechanisms::primitives::{Payment, SecondMoments};
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{
    Answer, Context, Desk, DeskError, FoldId, Mechanism, Trace, Unit, simulate,
};
use reticent_noise::Noise;
use reticent_statistics::simple::{AxisCut, AxisSpec};
use reticent_statistics::{
    DesignSpec, Facts, Prepared, Score, StatisticsError, linear, logistic, roc, simple,
};
use serde_json::Value;

fn rational(text: &str) -> Rational {
    parse_decimal(text).unwrap()
}

/// A table of real columns with bounds.
struct Data {
    schema: Schema,
    batches: Vec<Batch>,
}

impl Data {
    fn new(bounds: &[(f64, f64)], rows: &[Vec<f64>]) -> Self {
        let columns = bounds
            .iter()
            .enumerate()
            .map(|(i, (lower, upper))| real(&format!("x{i}"), *lower, *upper))
            .collect();
        let cells = |c: usize| Cells::Real(rows.iter().map(|r| r[c]).collect());
        Self {
            schema: Schema { columns },
            batches: vec![Batch::new(
                rows.len(),
                (0..bounds.len()).map(cells).collect(),
            )],
        }
    }

    fn facts<'a>(&'a self, context: &'a Context, rows: Option<f64>) -> Facts<'a> {
        Facts {
            schema: &self.schema,
            filter: None,
            context,
            rows,
            positive_rate: None,
        }
    }

    fn run(
        &self,
        context: &Context,
        terms: &[Expr],
        mechanism: &dyn Mechanism,
        noise: &mut dyn Noise,
    ) -> (Answer, Trace) {
        self.run_for(Unit::Row, context, terms, mechanism, noise)
    }

    fn run_for(
        &self,
        unit: Unit,
        context: &Context,
        terms: &[Expr],
        mechanism: &dyn Mechanism,
        noise: &mut dyn Noise,
    ) -> (Answer, Trace) {
        let source = Memory::new(Arc::new(self.schema.clone()), self.batches.clone());
        let program = RowProgram {
            terms: terms.to_vec(),
            ..RowProgram::default()
        };
        simulate(&source, unit, context, &program, mechanism, noise)
            .unwrap()
            .0
    }

    /// One release, made ready on the table's own schema.
    fn release(
        &self,
        context: &Context,
        noise: &mut dyn Noise,
        make: impl Fn(&Facts<'_>) -> Result<Prepared, StatisticsError>,
    ) -> (Answer, Trace) {
        let prepared = make(&self.facts(context, None)).unwrap();
        self.run(context, &prepared.terms, prepared.mechanism.as_ref(), noise)
    }
}

const RELATIONS: [Relation; 2] = [Relation::AddRemove, Relation::ReplaceOne];

/// Buys a triangle of second moments and hands its entries over.
struct Triangle {
    fold: Fold,
    step: SecondMoments,
    entries: Mutex<Vec<f64>>,
}

impl Mechanism for Triangle {
    fn kind(&self) -> &'static str {
        "triangle"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(self.step.event(context))
    }
    fn first_pass(&self) -> Vec<Fold> {
        vec![self.fold.clone()]
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        *self.entries.lock().unwrap() = desk.second_moments(FoldId(0), &self.step)?.entries;
        Ok(Answer::default())
    }
}

/// Every combination of the values, one per column.
fn corners(values: &[Vec<f64>]) -> Vec<Vec<f64>> {
    values.iter().fold(vec![Vec::new()], |all, column| {
        all.into_iter()
            .flat_map(|row| {
                column.iter().map(move |v| {
                    let mut row = row.clone();
                    row.push(*v);
                    row
                })
            })
            .collect()
    })
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
}

/// Rows 13, 15 and 22: the noise on the cross products of a regression is that of the largest change any record
/// can make, found by trying records at the bounds, in between, far outside and not finite. Bounds such as (0, 100)
/// once gave a sensitivity of zero.
#[test]
fn cross_products_have_the_brute_force_sensitivity() {
    for bounds in [(0.0, 100.0), (-100.0, 0.0), (-3.0, 7.0), (9.0, 11.0)] {
        for columns in 1..=2_usize {
            let all = vec![bounds; columns + 1];
            let (low, high) = bounds;
            let mut values = vec![low, high, 0.3 * low + 0.7 * high];
            if columns == 1 {
                values.extend([1e9, -1e9, f64::INFINITY, f64::NEG_INFINITY, 0.0]);
            }
            let rows = corners(&vec![values; columns + 1]);
            let design = DesignSpec {
                intercept: true,
                terms: (0..columns)
                    .map(|c| (format!("x{c}"), Expr::Column(c)))
                    .collect(),
                outcome: Expr::Column(columns),
                metadata: Value::Null,
            };
            let payment = Payment::Pure {
                epsilon: Rational::ONE,
            };
            for relation in RELATIONS {
                let context = Context::records(relation);
                let empty = Data::new(&all, &[]);
                let mut config = linear::Config::new(payment.clone());
                config.clip = linear::Clip::None;
                config.noise = linear::PureNoise::Laplace;
                let prepared =
                    linear::prepare(&empty.facts(&context, None), &design, &config).unwrap();
                let (_, trace) = empty.run(
                    &context,
                    &prepared.terms,
                    prepared.mechanism.as_ref(),
                    &mut Silent,
                );
                // ε = 1, so the scale of the noise, the same on every entry, is the claimed sensitivity
                let claimed = trace.noise[0].scale;
                assert!(trace.noise.iter().all(|n| n.scale == claimed));
                let fold = prepared.mechanism.first_pass().remove(0);
                let entries = |rows: &[Vec<f64>]| -> Vec<f64> {
                    let triangle = Triangle {
                        fold: fold.clone(),
                        step: SecondMoments {
                            name: "moments".to_owned(),
                            payment: payment.clone(),
                        },
                        entries: Mutex::new(Vec::new()),
                    };
                    Data::new(&all, rows).run(&context, &prepared.terms, &triangle, &mut Silent);
                    triangle.entries.into_inner().unwrap()
                };
                let zero = entries(&[]);
                let changes: Vec<Vec<f64>> = rows
                    .iter()
                    .map(|r| entries(std::slice::from_ref(r)))
                    .collect();
                let found = match relation {
                    Relation::AddRemove => changes
                        .iter()
                        .map(|c| distance(c, &zero))
                        .fold(0.0, f64::max),
                    Relation::ReplaceOne => changes
                        .iter()
                        .flat_map(|a| changes.iter().map(|b| distance(a, b)))
                        .fold(0.0, f64::max),
                };
                assert!(
                    found > 0.5 && found <= claimed * (1.0 + 1e-9),
                    "{bounds:?} {relation}: {found} moves, {claimed} claimed"
                );
                if relation == Relation::AddRemove {
                    // the bound is reached: nothing is wasted either
                    assert!(
                        (found / claimed - 1.0).abs() < 1e-5,
                        "{bounds:?}: {found} of {claimed}"
                    );
                }
            }
        }
    }
}

/// Row 14: two targets with bounds of width 1 and 100 get noise for 1 and 100, in either order.
#[test]
fn every_column_uses_its_own_bounds() {
    let bounds = [(0.0, 1.0), (0.0, 100.0)];
    for order in [[0, 1], [1, 0]] {
        let data = Data::new(&order.map(|i| bounds[i]), &[vec![5.0, 5.0]]);
        for (position, i) in order.into_iter().enumerate() {
            let context = Context::records(Relation::AddRemove);
            let (answer, trace) = data.release(&context, &mut Silent, |f| {
                simple::sum(f, Expr::Column(position), &Rational::ONE)
            });
            let wanted = bounds[i].1;
            assert!((trace.noise[0].scale / wanted - 1.0).abs() < 1e-5);
            assert_eq!(answer.value["sum"].as_f64(), Some(wanted.min(5.0)));
        }
    }
}

/// Row 17: the bounds that count are those of the expression inside the aggregate.
#[test]
fn sums_of_expressions_are_bounded_after_the_expression() {
    let of = Expr::Column(0).mul(Expr::Constant(1000.0));
    let context = Context::records(Relation::AddRemove);
    let data = Data::new(&[(0.0, 1.0)], &[vec![1e9], vec![0.5], vec![f64::NAN]]);
    let (answer, trace) = data.release(&context, &mut Silent, |f| {
        simple::sum(f, of.clone(), &Rational::ONE)
    });
    assert!((answer.value["sum"].as_f64().unwrap() - 1500.0).abs() < 1e-6);
    assert!((trace.noise[0].scale / 1000.0 - 1.0).abs() < 1e-5);
}

/// Rows 18, 31 and 56: a mean pays for a sum and a count, exactly ε together; it is defined for the empty table; it
/// never leaves its bounds, whatever the noise.
#[test]
fn a_mean_pays_for_both_parts_and_stays_in_its_bounds() {
    let make = |f: &Facts<'_>| simple::mean(f, Expr::Column(0), &rational("0.1"));
    for relation in RELATIONS {
        let context = Context::records(relation);
        for n in [0_usize, 1, 20] {
            let data = Data::new(&[(-3.0, 7.0)], &vec![vec![6.0]; n]);
            for seed in 0..200 {
                let (answer, trace) = data.release(&context, &mut Seeded::new(seed), make);
                let mean = answer.value["mean"].as_f64().unwrap();
                assert!((-3.0..=7.0).contains(&mean), "{mean}");
                let error = answer.error_95.unwrap();
                assert!(error > 0.0 && error <= 10.0, "{error}");
                assert_eq!(trace.event.leaves().len(), 2);
                assert_eq!(trace.noise.len(), 2);
                let price = trace.event.price(Currency::Pure).unwrap();
                assert_eq!(price.under(relation).unwrap().amount, rational("0.1"));
            }
        }
        let (answer, _) = Data::new(&[(-3.0, 7.0)], &[]).release(&context, &mut Silent, make);
        assert_eq!(answer.flags, ["too_few_rows"]);
        // a count that happens to be public is only free where it really is
        let public = Context {
            size: Size::Public(20),
            ..Context::records(Relation::ReplaceOne)
        };
        let data = Data::new(&[(-3.0, 7.0)], &vec![vec![6.0]; 20]);
        let (answer, trace) = data.release(&public, &mut Silent, make);
        assert_eq!(trace.noise.len(), 1);
        assert!((answer.value["mean"].as_f64().unwrap() - 6.0).abs() < 1e-9);
    }
}

fn integers(lower: i64, upper: i64, values: &[i64]) -> Data {
    Data {
        schema: Schema {
            columns: vec![Column {
                name: "k".to_owned(),
                kind: Kind::Integer { lower, upper },
                missing: Missing::Drop,
            }],
        },
        batches: vec![Batch::new(
            values.len(),
            vec![Cells::Integer(values.to_vec())],
        )],
    }
}

/// Row 19: half of an odd width is rounded up, never down. Records of 0..=3 lie within 2 of the centre, those of
/// 0..=1 within 1.
#[test]
fn half_of_an_odd_width_is_rounded_up() {
    for (upper, wanted) in [(1, 1.0), (2, 1.0), (3, 2.0), (7, 4.0)] {
        for relation in RELATIONS {
            let context = Context::records(relation);
            let data = integers(0, upper, &[0, upper]);
            let (_, trace) = data.release(&context, &mut Silent, |f| {
                simple::mean(f, Expr::Column(0), &rational("4"))
            });
            // three quarters of ε = 4
            let scale = wanted * f64::from(context.touches()) / 3.0;
            assert!(
                trace.noise[0].scale >= scale && trace.noise[0].scale < scale * (1.0 + 1e-5),
                "0..={upper}: {} for {scale}",
                trace.noise[0].scale
            );
        }
    }
}

/// Row 20: sums at the ends of 32- and 64-bit integers move by exactly what the record holds and never wrap.
#[test]
fn sums_at_the_ends_of_integers_do_not_wrap() {
    let context = Context::records(Relation::AddRemove);
    for top in [i64::from(i32::MAX), (1 << 51) - 1] {
        let sum = |values: &[i64]| -> f64 {
            integers(0, top, values)
                .release(&context, &mut Silent, |f| {
                    simple::sum(f, Expr::Column(0), &Rational::ONE)
                })
                .0
                .value["sum"]
                .as_f64()
                .unwrap()
        };
        #[allow(clippy::cast_precision_loss, reason = "below 2^53")]
        let wide = top as f64;
        assert_eq!(sum(&[top, 1]) - sum(&[top, 0]), 1.0);
        assert_eq!(sum(&vec![top; 4096]), 4096.0 * wide);
        assert_eq!(sum(&vec![top; 100_000]), 100_000.0 * wide);
    }
    // bounds beyond exact doubles: a record is still one bounded step, and thousands of them keep their sign
    let wide = |n: usize| {
        integers(i64::MIN + 1, i64::MAX, &vec![i64::MAX; n])
            .release(&context, &mut Silent, |f| {
                simple::sum(f, Expr::Column(0), &Rational::ONE)
            })
            .0
            .value["sum"]
            .as_f64()
            .unwrap()
    };
    assert!((wide(5000) / (5000.0 * 9.223_372_036_854_776e18) - 1.0).abs() < 1e-9);
}

/// Row 6: the result does not depend on the order of the records, to the last bit, where floating-point sums do.
#[test]
fn sums_do_not_depend_on_the_order_of_records() {
    let large = 9_007_199_254_740_992.0;
    let mut rows = vec![vec![large]];
    rows.extend(vec![vec![1.0]; 1000]);
    rows.extend(vec![vec![0.1]; 1000]);
    let reversed: Vec<Vec<f64>> = rows.iter().rev().cloned().collect();
    let floats = |rows: &[Vec<f64>]| rows.iter().map(|r| r[0]).sum::<f64>();
    assert_ne!(floats(&rows), floats(&reversed));
    let context = Context::records(Relation::AddRemove);
    let sum = |rows: &[Vec<f64>]| {
        Data::new(&[(0.0, large)], rows)
            .release(&context, &mut Seeded::new(4), |f| {
                simple::sum(f, Expr::Column(0), &Rational::ONE)
            })
            .0
    };
    assert_eq!(sum(&rows), sum(&reversed));
}

/// Row 26: replacing a record costs twice what adding one costs, in the noise when the price is fixed and in the
/// price when the noise is.
#[test]
fn the_two_relations_differ_by_the_right_factor() {
    let data = Data::new(&[(0.0, 1.0)], &[vec![0.5]]);
    let make = |f: &Facts<'_>| simple::count(f, &rational("0.5"));
    let run = |relation| {
        data.release(&Context::records(relation), &mut Silent, make)
            .1
    };
    let (added, replaced) = (run(Relation::AddRemove), run(Relation::ReplaceOne));
    assert_eq!((added.noise[0].scale, replaced.noise[0].scale), (2.0, 4.0));
    let amounts = |t: &Trace| {
        let price = t.event.price(Currency::Pure).unwrap();
        RELATIONS.map(|r| price.under(r).unwrap().amount.clone())
    };
    assert_eq!(amounts(&added), [rational("0.5"), rational("1")]);
    assert_eq!(amounts(&replaced), [rational("0.25"), rational("0.5")]);
}

/// Rows 27 and 85: one unit with a thousand rows that repeat other people's values counts as often as its bound
/// says, and the noise is that of the bound.
#[test]
fn a_unit_with_a_thousand_rows_is_capped() {
    let schema = Schema {
        columns: vec![id("person"), real("x", 0.0, 10.0)],
    };
    let mut ids: Vec<u128> = vec![7; 1000];
    ids.extend(0..5);
    let values: Vec<f64> = (0..1005).map(|i| f64::from(i % 10)).collect();
    let data = Data {
        schema,
        batches: vec![Batch::new(1005, vec![Cells::Id(ids), Cells::Real(values)])],
    };
    let unit = Unit::Column {
        column: 0,
        max_rows: 3,
    };
    let context = Context {
        rows_per_unit: 3,
        ..Context::records(Relation::AddRemove)
    };
    let facts = data.facts(&context, None);
    let prepared = simple::count(&facts, &Rational::ONE).unwrap();
    let (answer, trace) = data.run_for(
        unit,
        &context,
        &prepared.terms,
        prepared.mechanism.as_ref(),
        &mut Silent,
    );
    assert_eq!(answer.value["count"], 8);
    assert_eq!(trace.noise[0].scale, 3.0);
    // every cell together holds 8 rows, too: repeating a value does not escape the bound
    let axis = AxisSpec {
        name: "x".to_owned(),
        expr: Expr::Column(1),
        cut: AxisCut::Even {
            lower: 0.0,
            upper: 10.0,
            cells: 10,
        },
    };
    let prepared = simple::histogram(&facts, axis, &Rational::ONE).unwrap();
    let (answer, _) = data.run_for(
        unit,
        &context,
        &prepared.terms,
        prepared.mechanism.as_ref(),
        &mut Silent,
    );
    let total: i64 = answer.value["counts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c.as_i64().unwrap())
        .sum();
    assert_eq!(total, 8);
}

/// Row 32: k Gaussian steps composed by the ledger's arithmetic against the exact curve of their composition, which
/// is one Gaussian step of √k times the sensitivity. Never below it, and close.
#[test]
fn composed_gaussian_steps_against_the_exact_curve() {
    let delta = rational("0.000001");
    for k in [1_u32, 10, 1000] {
        let each = rational("0.0005");
        let rho = &each * Rational::from(k);
        let composed = rational_to_f64(&reticent_statistics::zcdp::epsilon(&rho, &delta).unwrap());
        // ρ = 1/(2σ²) for one step of sensitivity 1
        let sigma = (1.0 / (2.0 * 0.0005_f64)).sqrt();
        let exact = gaussian_epsilon(sigma, 1e-6, f64::from(k).sqrt());
        assert!(
            composed >= exact && composed <= 1.25 * exact + 0.01,
            "k = {k}: {composed} against {exact}"
        );
    }
}

/// Row 39: the order of queries does not change what they cost together, and less noise never costs less.
#[test]
fn costs_do_not_depend_on_order() {
    let context = Context::records(Relation::AddRemove);
    let data = Data::new(&[(0.0, 1.0)], &[]);
    let facts = data.facts(&context, None);
    let price = |epsilon: &str| {
        let prepared = simple::mean(&facts, Expr::Column(0), &rational(epsilon)).unwrap();
        let event = prepared.mechanism.event(&context).unwrap();
        event.price(Currency::Pure).unwrap()
    };
    let prices = ["0.1", "0.2", "0.3", "1e-11"].map(price);
    let mut reversed = prices.clone();
    reversed.reverse();
    let total = sequential(&prices);
    assert_eq!(sequential(&reversed), total);
    assert_eq!(
        total.under(Relation::AddRemove),
        Some(&Cost::pure(rational("0.60000000001")))
    );
    let scale = |epsilon: &str| {
        data.release(&context, &mut Silent, |f| {
            simple::count(f, &rational(epsilon))
        })
        .1
        .noise[0]
            .scale
    };
    assert!(scale("0.1") > scale("0.2") && scale("0.2") > scale("0.3"));
}

/// Row 48: a value far below, not finite or missing changes one cell by at most one.
#[test]
fn odd_values_change_one_cell_by_one() {
    let context = Context::records(Relation::AddRemove);
    let base = vec![vec![0.5], vec![2.5]];
    let counts = |rows: &[Vec<f64>]| -> Vec<i64> {
        let axis = AxisSpec {
            name: "x".to_owned(),
            expr: Expr::Column(0),
            cut: AxisCut::Even {
                lower: 1.0,
                upper: 2.0,
                cells: 4,
            },
        };
        let (answer, _) = Data::new(&[(0.0, 3.0)], rows).release(&context, &mut Silent, |f| {
            simple::histogram(f, axis.clone(), &Rational::ONE)
        });
        answer.value["counts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c.as_i64().unwrap())
            .collect()
    };
    let before = counts(&base);
    assert_eq!(before, [1, 0, 0, 1]);
    for (odd, change) in [
        (-1e300, 1),
        (1e300, 1),
        (f64::INFINITY, 1),
        (f64::NEG_INFINITY, 1),
        (f64::MIN_POSITIVE, 1),
        (f64::NAN, 0),
    ] {
        let mut rows = base.clone();
        rows.push(vec![odd]);
        let moved: i64 = counts(&rows)
            .iter()
            .zip(&before)
            .map(|(a, b)| (a - b).abs())
            .sum();
        assert_eq!(moved, change, "{odd}");
    }
}

/// Rows 10 and 11: quantiles of a million whole numbers with heavy ties stay within their bounds and near the tie,
/// and the same seed gives the same answers when several are asked for at once.
#[test]
fn heavy_ties_give_quantiles_within_bounds() {
    let mut values = vec![65_000.0; 800_000];
    values.extend((0..200_000_u32).map(|i| f64::from(i % 100_000)));
    let rows: Vec<Vec<f64>> = values.into_iter().map(|v| vec![v]).collect();
    let data = Data::new(&[(0.0, 100_000.0)], &rows);
    let context = Context::records(Relation::AddRemove);
    let run = |seed| {
        data.release(&context, &mut Seeded::new(seed), |f| {
            simple::quantiles(
                f,
                Expr::Column(0),
                "x",
                &[0.25, 0.5, 0.75],
                4096,
                &rational("0.5"),
            )
        })
        .0
        .value
    };
    let value = run(0);
    assert_eq!(value, run(0));
    let found: Vec<f64> = value["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|q| q.as_f64().unwrap())
        .collect();
    assert_eq!(found.len(), 3);
    // one cell is 24.4 wide; the tie outweighs every other cell by e^10000 and more
    assert!(
        found.iter().all(|q| (q - 65_000.0).abs() < 50.0),
        "{found:?}"
    );
}

fn finite(value: &Value, kind: &str) {
    match value {
        Value::Array(a) => a.iter().for_each(|v| finite(v, kind)),
        Value::Object(o) => o.values().for_each(|v| finite(v, kind)),
        Value::Number(n) => assert!(n.as_f64().is_some_and(f64::is_finite), "{kind}: {n}"),
        _ => {}
    }
}

/// Rows 51, 56 and 60: with 20 records and ε = 0.01 nothing is "not a number", and what has a provable range stays
/// in it.
#[test]
fn tiny_budgets_give_numbers_in_their_range() {
    let rows: Vec<Vec<f64>> = (0..20)
        .map(|i| vec![f64::from(i % 7), f64::from(i % 3), f64::from(i % 2)])
        .collect();
    let data = Data::new(&[(0.0, 6.0), (0.0, 2.0), (0.0, 1.0)], &rows);
    let epsilon = rational("0.01");
    let design = |outcome: usize| DesignSpec {
        intercept: true,
        terms: vec![
            ("x0".to_owned(), Expr::Column(0)),
            ("x1".to_owned(), Expr::Column(1)),
        ],
        outcome: Expr::Column(outcome),
        metadata: Value::Null,
    };
    for relation in RELATIONS {
        let context = Context::records(relation);
        for seed in 0..20 {
            let noise = || Seeded::new(seed);
            let (fit, _) = data.release(&context, &mut noise(), |f| {
                let payment = Payment::Pure {
                    epsilon: epsilon.clone(),
                };
                linear::prepare(f, &design(2), &linear::Config::new(payment))
            });
            finite(&fit.value, "linear");
            assert!(fit.value["residual_sd"].as_f64().unwrap() >= 0.0);
            if let Some(r) = fit.value["r_squared"].as_f64() {
                assert!((0.0..=1.0).contains(&r));
            } else {
                assert!(fit.flags.iter().any(|f| f == "r_squared_undefined"));
            }
            for term in fit.value["terms"].as_array().unwrap() {
                assert!(term["std_error"].as_f64().unwrap() >= 0.0);
                assert!(term["conf_low"].as_f64() <= term["conf_high"].as_f64());
            }
            let (curve, _) = data.release(&context, &mut noise(), |f| {
                roc::prepare(
                    f,
                    &Score::Linear(Expr::Column(0)),
                    Expr::Column(2),
                    roc::Config::new(epsilon.clone()),
                )
            });
            finite(&curve.value, "roc");
            let auc = curve.value["auc"].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&auc), "{auc}");
        }
        let (model, _) = data.release(&context, &mut Seeded::new(1), |f| {
            logistic::prepare(f, &design(2), &logistic::Config::new(epsilon.clone()))
        });
        finite(&model.value, "logistic");
    }
}

/// Rows 53 and 55: at ε = 10⁷ the released coefficients are those of the plain fit with the same public penalty,
/// found here by Newton's method in ordinary floating point. Published code was flat in ε there.
#[test]
fn logistic_at_a_huge_epsilon_is_the_plain_fit() {
    let n = 400;
    let rows: Vec<Vec<f64>> = (0..n)
        .map(|i: u32| {
            let x = f64::from((i * 37) % 101) / 50.0 - 1.0;
            let z = f64::from((i * 53) % 89) / 44.0 - 1.0;
            let y = x - 0.5 * z + f64::from((i * 29) % 97) / 48.0 - 1.0 > 0.2;
            vec![x, z, f64::from(u8::from(y))]
        })
        .collect();
    let data = Data::new(&[(-1.0, 1.02), (-1.0, 1.0), (0.0, 1.0)], &rows);
    let penalty = 2.0;
    let design = DesignSpec {
        intercept: true,
        terms: vec![
            ("x".to_owned(), Expr::Column(0)),
            ("z".to_owned(), Expr::Column(1)),
        ],
        outcome: Expr::Column(2),
        metadata: Value::Null,
    };
    let released = |epsilon: &str| -> Vec<f64> {
        let mut config = logistic::Config::new(rational(epsilon));
        config.scaling = logistic::Scaling::None { data_norm: 1.5 };
        config.clip = logistic::Clip::None;
        config.penalty = Some(logistic::Penalty::Sum(penalty));
        let context = Context::records(Relation::ReplaceOne);
        let (answer, _) = data.release(&context, &mut Seeded::new(8), |f| {
            logistic::prepare(f, &design, &config)
        });
        answer.value["terms"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["estimate"].as_f64().unwrap())
            .collect()
    };
    let plain = newton(&rows, penalty);
    let error = |epsilon: &str| {
        released(epsilon)
            .iter()
            .zip(&plain)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max)
    };
    let huge = error("10000000");
    assert!(huge < 1e-3, "{huge}");
    // and epsilon matters: the error falls with it
    assert!(error("10") > 10.0 * error("10000"));
}

/// Ridge logistic regression (penalty on the summed loss, intercept included) by Newton's method.
fn newton(rows: &[Vec<f64>], penalty: f64) -> Vec<f64> {
    let mut w = [0.0_f64; 3];
    for _ in 0..50 {
        let mut gradient: [f64; 3] = std::array::from_fn(|i| penalty * w[i]);
        let mut hessian: [[f64; 3]; 3] =
            std::array::from_fn(|i| std::array::from_fn(|j| if i == j { penalty } else { 0.0 }));
        for row in rows {
            let x = [1.0, row[0], row[1]];
            let score: f64 = (0..3).map(|i| w[i] * x[i]).sum();
            let p = 1.0 / (1.0 + (-score).exp());
            for i in 0..3 {
                gradient[i] += (p - row[2]) * x[i];
                for j in 0..3 {
                    hessian[i][j] += p * (1.0 - p) * x[i] * x[j];
                }
            }
        }
        // Cramer's rule
        let det = |m: &[[f64; 3]; 3]| {
            m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
                - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
                + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
        };
        let d = det(&hessian);
        for c in 0..3 {
            let mut m = hessian;
            for i in 0..3 {
                m[i][c] = gradient[i];
            }
            w[c] -= det(&m) / d;
        }
    }
    w.to_vec()
}

/// Row 61: the tutorial case works untuned. A thousand records, ε = 1, one predictor: the fit is flagged by nothing
/// and off by less than one (standard errors are near 0.2; coverage is measured elsewhere).
#[test]
fn a_thousand_rows_at_epsilon_one_need_no_tuning() {
    let rows: Vec<Vec<f64>> = (0..1000)
        .map(|i: u32| {
            let x = f64::from((i * 37) % 101);
            let wobble = f64::from((i * 53) % 41) - 20.0;
            vec![x, 2.0 * x + wobble + 50.0]
        })
        .collect();
    let data = Data::new(&[(0.0, 100.0), (0.0, 300.0)], &rows);
    let design = DesignSpec {
        intercept: true,
        terms: vec![("x".to_owned(), Expr::Column(0))],
        outcome: Expr::Column(1),
        metadata: Value::Null,
    };
    for relation in RELATIONS {
        let context = Context::records(relation);
        let (answer, _) = data.release(&context, &mut Seeded::new(6), |f| {
            let payment = Payment::Pure {
                epsilon: Rational::ONE,
            };
            linear::prepare(f, &design, &linear::Config::new(payment))
        });
        assert!(
            !answer
                .flags
                .iter()
                .any(|f| f == "eigenvalues_floored" || f == "not_finite"),
            "{:?}",
            answer.flags
        );
        let slope = &answer.value["terms"][1];
        let number = |key: &str| slope[key].as_f64().unwrap();
        assert!((number("estimate") - 2.0).abs() < 1.0, "{slope}");
        assert!(number("conf_high") - number("conf_low") < 2.0, "{slope}");
    }
}
