//! The histogram algorithms: reference vectors, closed forms, totality, prices.

use reticent_accounting::{Currency, Rational, Relation, Size};
use reticent_laws::{Seeded, Silent};
use reticent_mechanisms::Context;
use reticent_mechanisms::program::Expr;
use reticent_statistics::histogram::{
    Budget, Config, Domain, Method, Tree, Workload, haar, haar_inverse, hilbert_order, isotonic,
    least_squares, nonnegative, prepare,
};
use reticent_statistics::simple::{AxisCut, AxisSpec};
use reticent_statistics::{Prepared, StatisticsError};
use serde_json::Value;

use crate::support::{Table, floats, json, rational, reals, uniform};

fn near(found: &[f64], wanted: &[f64], tolerance: f64) -> bool {
    found.len() == wanted.len()
        && found
            .iter()
            .zip(wanted)
            .all(|(a, b)| (a - b).abs() <= tolerance * b.abs().max(1.0))
}

/// `golden/haar.json` (numpy): sums and differences, exactly; the inverse gives the cells back.
#[test]
fn haar_reference() {
    let golden = json("haar.json");
    for case in golden["one_d"].as_array().unwrap() {
        let x = floats(&case["x"]);
        let wanted = floats(&case["sums_and_differences"]);
        assert!(near(&haar(&x), &wanted, 1e-12), "{case}");
        assert!(near(&haar_inverse(x.len(), &wanted), &x, 1e-12), "{case}");
    }
    let two = &golden["two_d_rows_then_columns"];
    let rows =
        |key: &str| -> Vec<Vec<f64>> { two[key].as_array().unwrap().iter().map(floats).collect() };
    let lines: Vec<Vec<f64>> = rows("x").iter().map(|r| haar(r)).collect();
    let wanted = rows("sums_and_differences");
    for c in 0..wanted[0].len() {
        let column: Vec<f64> = lines.iter().map(|l| l[c]).collect();
        let expected: Vec<f64> = wanted.iter().map(|l| l[c]).collect();
        assert!(near(&haar(&column), &expected, 1e-12));
    }
    // any length
    for n in [1, 3, 5, 6, 7, 100] {
        let x: Vec<f64> = (0..n).map(|i| f64::from(i * i % 17)).collect();
        assert!(near(&haar_inverse(x.len(), &haar(&x)), &x, 1e-12), "{n}");
    }
}

/// `golden/hilbert.json`: sides 1 to 16, exactly; other shapes visit every cell once.
#[test]
fn hilbert_reference() {
    let golden = json("hilbert.json");
    for (side, case) in golden["sides"].as_object().unwrap() {
        let side: usize = side.parse().unwrap();
        let wanted: Vec<usize> = case["points_x_y"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| {
                let at = |i: usize| usize::try_from(p[i].as_u64().unwrap()).unwrap();
                at(0) * side + at(1)
            })
            .collect();
        assert_eq!(hilbert_order(side, side), wanted);
    }
    for (rows, columns) in [(1, 7), (5, 3), (6, 1), (12, 20)] {
        let mut order = hilbert_order(rows, columns);
        order.sort_unstable();
        assert_eq!(order, (0..rows * columns).collect::<Vec<_>>());
    }
}

/// `golden/isotonic.json` (scikit-learn), within 1e-12: increasing, decreasing (by negation), weighted, clipped.
#[test]
fn isotonic_reference() {
    let golden = json("isotonic.json");
    let mut weighted = 0;
    for case in golden["cases"].as_array().unwrap() {
        let sign = if case["increasing"].as_bool().unwrap() {
            1.0
        } else {
            -1.0
        };
        let y: Vec<f64> = floats(&case["y"]).iter().map(|v| v * sign).collect();
        let weights = case["weights"].as_array().map(|_| floats(&case["weights"]));
        weighted += usize::from(weights.is_some());
        let low = case["y_min"].as_f64().unwrap_or(f64::NEG_INFINITY);
        let high = case["y_max"].as_f64().unwrap_or(f64::INFINITY);
        let fit: Vec<f64> = isotonic(&y, weights.as_deref())
            .iter()
            .map(|v| (v * sign).clamp(low, high))
            .collect();
        assert!(near(&fit, &floats(&case["fit"]), 1e-12), "{case} {fit:?}");
    }
    assert!(weighted > 0);
}

/// `golden/tree_least_squares.json` (numpy's least squares), within 1e-10: with and without the root.
#[test]
fn tree_reference() {
    let golden = json("tree_least_squares.json");
    let tree = Tree::even(Domain::Line(8), 2);
    let noisy = floats(&golden["noisy"]);
    let nodes = least_squares(&tree.nodes, &noisy, &[1.0; 15]);
    assert!(near(
        &nodes,
        &floats(&golden["consistent_node_values"]),
        1e-10
    ));
    assert!(near(
        &nodes[7..],
        &floats(&golden["equal_weights_estimate"]),
        1e-10
    ));
    let mut variances = [1.0; 15];
    variances[0] = f64::INFINITY;
    let nodes = least_squares(&tree.nodes, &noisy, &variances);
    assert!(near(
        &nodes[7..],
        &floats(&golden["without_root_estimate"]),
        1e-10
    ));
}

/// Two passes against the normal equations, uneven trees and variances, some nodes not measured.
#[test]
fn trees_solve_the_normal_equations() {
    let mut random = Seeded::new(5);
    for (domain, fanout) in [
        (Domain::Line(11), 3),
        (Domain::Line(16), 2),
        (Domain::Plane(5, 6), 2),
        (Domain::Line(1), 2),
    ] {
        let tree = Tree::even(domain, fanout);
        let n = tree.nodes.len();
        let values: Vec<f64> = (0..n).map(|_| 20.0 * uniform(&mut random)).collect();
        let variances: Vec<f64> = tree
            .nodes
            .iter()
            .map(|node| {
                let inner = !node.children.is_empty();
                if inner && uniform(&mut random) < 0.3 {
                    f64::INFINITY
                } else {
                    0.1 + uniform(&mut random)
                }
            })
            .collect();
        let leaves = tree.leaves();
        let inside = |node: usize, leaf: usize| {
            let (a, b) = (&tree.nodes[node], &tree.nodes[leaf]);
            f64::from(u8::from(
                a.rows.contains(&b.rows.start) && a.columns.contains(&b.columns.start),
            ))
        };
        let k = leaves.len();
        let mut normal = nalgebra::DMatrix::<f64>::zeros(k, k);
        let mut right = nalgebra::DVector::<f64>::zeros(k);
        for v in (0..n).filter(|v| variances[*v].is_finite()) {
            for i in 0..k {
                right[i] += inside(v, leaves[i]) * values[v] / variances[v];
                for j in 0..k {
                    normal[(i, j)] += inside(v, leaves[i]) * inside(v, leaves[j]) / variances[v];
                }
            }
        }
        let wanted: nalgebra::DVector<f64> = normal.lu().solve(&right).unwrap();
        let found = least_squares(&tree.nodes, &values, &variances);
        for (i, leaf) in leaves.iter().enumerate() {
            assert!((found[*leaf] - wanted[i]).abs() < 1e-8, "{domain:?}");
        }
    }
}

#[test]
fn projections_keep_the_total() {
    let mut random = Seeded::new(8);
    for n in [1usize, 2, 7, 100] {
        let cells: Vec<f64> = (0..n).map(|_| 10.0 * uniform(&mut random) - 3.0).collect();
        let total: f64 = cells.iter().sum();
        let moved = nonnegative(&cells);
        assert!(moved.iter().all(|x| *x >= 0.0));
        assert!((moved.iter().sum::<f64>() - total.max(0.0)).abs() < 1e-9);
        // optimal: one shift for all cells that stay positive, the others lie below it
        let shift = cells
            .iter()
            .zip(&moved)
            .find(|(_, m)| **m > 0.0)
            .map(|(c, m)| c - m);
        if let Some(shift) = shift {
            assert!(
                cells
                    .iter()
                    .zip(&moved)
                    .all(|(c, m)| (m - (c - shift).max(0.0)).abs() < 1e-9)
            );
        }
    }
    assert_eq!(nonnegative(&[-1.0, 0.5]), [0.0, 0.0]);
    assert_eq!(nonnegative(&[]), Vec::<f64>::new());
}

#[allow(clippy::cast_precision_loss, reason = "few cells")]
fn axis(column: usize, cells: usize) -> AxisSpec {
    AxisSpec {
        name: format!("x{column}"),
        expr: Expr::Column(column),
        cut: AxisCut::Even {
            lower: 0.0,
            upper: cells as f64,
            cells: u32::try_from(cells).unwrap(),
        },
    }
}

/// Rows with both coordinates in the middle of cells.
#[allow(clippy::cast_precision_loss, reason = "few cells")]
fn table(domain: Domain, counts: &[usize]) -> Table {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (cell, count) in counts.iter().enumerate() {
        for _ in 0..*count {
            x.push((cell / domain.columns()) as f64 + 0.5);
            y.push((cell % domain.columns()) as f64 + 0.5);
        }
    }
    reals(&[
        ("x0", x, 0.0, domain.rows() as f64),
        ("x1", y, 0.0, domain.columns() as f64),
    ])
}

fn make(
    table: &Table,
    context: &Context,
    domain: Domain,
    config: Config,
) -> Result<Prepared, StatisticsError> {
    let axes = match domain {
        Domain::Line(n) => vec![axis(1, n)],
        Domain::Plane(rows, columns) => vec![axis(0, rows), axis(1, columns)],
    };
    prepare(&table.facts(context, None), axes, config)
}

fn takes(method: Method, domain: Domain) -> bool {
    method.takes(if matches!(domain, Domain::Line(_)) {
        1
    } else {
        2
    })
}

fn domains() -> Vec<Domain> {
    [1, 2, 3, 5, 64, 100]
        .map(Domain::Line)
        .into_iter()
        .chain([
            Domain::Plane(1, 1),
            Domain::Plane(3, 5),
            Domain::Plane(8, 8),
        ])
        .collect()
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
        size: Size::Public(7),
        ..Context::records(Relation::ReplaceOne)
    });
    all
}

/// Empty table, one row, full cells; one to a hundred cells; ε from 1e-9 to 1e9: finite cells, everything bought.
#[test]
fn every_method_answers_on_every_table() {
    for domain in domains() {
        let cells = domain.cells();
        let one: Vec<usize> = (0..cells).map(|i| usize::from(i + 1 == cells)).collect();
        let tables = [
            table(domain, &vec![0; cells]),
            table(domain, &one),
            table(domain, &vec![3; cells]),
        ];
        for context in contexts() {
            for method in Method::ALL {
                if !takes(method, domain) {
                    continue;
                }
                for epsilon in ["1e-9", "1", "1e9"] {
                    for table in &tables {
                        let config = Config {
                            workload: Workload::Rectangles(20),
                            nonnegative: epsilon == "1",
                            error_draws: 2,
                            ..Config::new(method, rational(epsilon))
                        };
                        let prepared = make(table, &context, domain, config).unwrap();
                        let (answer, trace) = table.run(&context, &prepared, &mut Seeded::new(3));
                        let what = format!("{} {domain:?} {context:?} {epsilon}", method.name());
                        assert!(trace.unused.is_empty(), "{what}: {:?}", trace.unused);
                        let counts = answer.value["counts"].as_array().unwrap();
                        assert_eq!(counts.len(), cells, "{what}");
                        assert!(
                            counts
                                .iter()
                                .all(|c| c.as_f64().is_some_and(f64::is_finite)),
                            "{what}: {counts:?}"
                        );
                    }
                }
            }
        }
    }
}

/// The leaves add up to the declared ε exactly, in every currency to what that ε costs at most; a public total is free.
#[test]
fn prices_add_up() {
    for domain in [Domain::Line(9), Domain::Plane(4, 6)] {
        let table = table(domain, &vec![1; domain.cells()]);
        for context in contexts() {
            for method in Method::ALL.into_iter().filter(|m| takes(*m, domain)) {
                for epsilon in ["0.1", "1", "1/3"] {
                    let epsilon = reticent_accounting::parse_rational(epsilon).unwrap();
                    let config = Config::new(method, epsilon.clone());
                    let prepared = make(&table, &context, domain, config).unwrap();
                    let event = prepared.mechanism.event(&context).unwrap();
                    let price = event.price(context.currency).unwrap();
                    let paid = &price.under(context.relation).unwrap().amount;
                    let free = method == Method::Uniform && context.size != Size::Private;
                    match context.currency {
                        _ if free => assert!(paid.is_zero()),
                        Currency::Concentrated => {
                            assert!(*paid <= &epsilon * &epsilon / Rational::from(2u8));
                        }
                        _ => assert_eq!(*paid, epsilon, "{} {context:?}", method.name()),
                    }
                }
            }
        }
    }
}

/// Without noise the data-independent methods are exact; all keep the total where they measure it.
#[test]
fn silent_estimates_are_exact() {
    for domain in domains() {
        let counts: Vec<usize> = (0..domain.cells()).map(|i| i * 7 % 5).collect();
        let table = table(domain, &counts);
        #[allow(clippy::cast_precision_loss, reason = "small counts")]
        let wanted: Vec<f64> = counts.iter().map(|c| *c as f64).collect();
        for relation in [Relation::AddRemove, Relation::ReplaceOne] {
            let mut context = Context::records(relation);
            let sizes = [Size::Private, Size::Public(table.rows as u64)];
            for size in sizes.into_iter().take(if relation == Relation::ReplaceOne {
                2
            } else {
                1
            }) {
                context.size = size;
                for method in Method::ALL.into_iter().filter(|m| takes(*m, domain)) {
                    let config = Config {
                        workload: Workload::Prefix,
                        ..Config::new(method, rational("1"))
                    };
                    let prepared = make(&table, &context, domain, config).unwrap();
                    let value = table.run(&context, &prepared, &mut Silent).0.value;
                    let found = floats(&value["counts"]);
                    if method.is_linear() {
                        assert!(near(&found, &wanted, 1e-9), "{domain:?} {}", method.name());
                    }
                    let total: f64 = found.iter().sum();
                    let truth: f64 = wanted.iter().sum();
                    if method != Method::Mwem || truth >= 1.0 {
                        assert!(
                            (total - truth).abs() < 1e-6 * truth.max(1.0),
                            "{}",
                            method.name()
                        );
                    }
                }
            }
        }
    }
}

/// Requests that cannot be met are refused from public inputs.
#[test]
fn bad_requests_are_refused() {
    let line = Domain::Line(4);
    let plane = Domain::Plane(2, 2);
    let t = table(line, &[1; 4]);
    let context = Context::records(Relation::AddRemove);
    let message = |domain, config| make(&t, &context, domain, config).unwrap_err().to_string();
    assert!(message(line, Config::new(Method::Ag, rational("1"))).contains("two columns"));
    assert!(message(plane, Config::new(Method::GreedyH, rational("1"))).contains("one column"));
    assert!(message(line, Config::new(Method::Hb, rational("0"))).contains("epsilon"));
    let gaussian = |method| Config {
        budget: Budget::Concentrated(rational("0.5")),
        ..Config::new(method, rational("1"))
    };
    assert!(message(line, gaussian(Method::Hb)).contains("rho"));
    let zcdp = Context {
        currency: Currency::Concentrated,
        ..context.clone()
    };
    assert!(make(&t, &zcdp, line, gaussian(Method::Dawa)).is_err());
    for method in [Method::Identity, Method::Hb, Method::Privelet] {
        let prepared = make(&t, &zcdp, line, gaussian(method)).unwrap();
        let price = prepared
            .mechanism
            .event(&zcdp)
            .unwrap()
            .price(Currency::Concentrated)
            .unwrap();
        assert_eq!(price.add_remove.unwrap().amount, rational("0.5"));
        let (answer, _) = t.run(&zcdp, &prepared, &mut Seeded::new(1));
        assert_eq!(answer.value["counts"].as_array().unwrap().len(), 4);
    }
    let huge = prepare(
        &t.facts(&context, None),
        vec![axis(0, 2048), axis(1, 2048)],
        Config::new(Method::Hb, rational("1")),
    );
    assert!(huge.unwrap_err().to_string().contains("cells"));
}

fn root_mean_square(runs: &[Vec<f64>]) -> f64 {
    let all: Vec<f64> = runs.iter().flatten().map(|x| x * x).collect();
    #[allow(clippy::cast_precision_loss, reason = "few numbers")]
    let n = all.len() as f64;
    (all.iter().sum::<f64>() / n).sqrt()
}

/// Stated errors against errors of 2,000 runs (400 for the weighted tree) on an empty table of 256 cells, prefix sums, and
/// identity against its closed form √(Var·257/2), Var = 2r/(1 − r)². Mean squares over 2,000 runs scatter by less than 2.6 %, so
/// 8 % of their roots is more than 6 deviations (false alarm below 1e-9); caught: scales wrong by 15 %.
#[test]
fn stated_errors_are_those_of_the_runs() {
    let domain = Domain::Line(256);
    let table = table(domain, &[0; 256]);
    let context = Context::records(Relation::AddRemove);
    let queries = Workload::Prefix.queries(domain);
    for method in [
        Method::Identity,
        Method::Hb,
        Method::Privelet,
        Method::GreedyH,
    ] {
        let config = |draws| Config {
            workload: Workload::Prefix,
            error_draws: draws,
            ..Config::new(method, rational("0.1"))
        };
        let stated = make(&table, &context, domain, config(2000)).unwrap();
        let value = table.run(&context, &stated, &mut Silent).0.value;
        let stated = value["workload"]["rms_error"].as_f64().unwrap();
        assert_eq!(value["workload"]["errors"].as_array().unwrap().len(), 256);
        let prepared = make(&table, &context, domain, config(0)).unwrap();
        let runs: Vec<Vec<f64>> = (0..2000)
            .map(|run| {
                let value: Value = table
                    .run(&context, &prepared, &mut Seeded::stream(4, run))
                    .0
                    .value;
                Workload::answers(domain, &floats(&value["counts"]), &queries)
            })
            .collect();
        let found = root_mean_square(&runs);
        assert!(
            (found / stated - 1.0).abs() < 0.08,
            "{}: {found} {stated}",
            method.name()
        );
        if method == Method::Identity {
            let r = (-0.1f64).exp();
            let closed = (2.0 * r / (1.0 - r).powi(2) * 257.0 / 2.0).sqrt();
            assert!((found / closed - 1.0).abs() < 0.08, "{found} {closed}");
        }
    }
}
