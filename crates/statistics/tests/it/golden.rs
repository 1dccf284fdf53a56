//! Noise off: every method equals its non-private counterpart.

use reticent_accounting::Relation;
use reticent_laws::Silent;
use reticent_mechanisms::Context;
use reticent_mechanisms::primitives::Payment;
use reticent_mechanisms::program::{Comparison, Expr};
use reticent_statistics::simple::{AxisCut, AxisSpec};
use reticent_statistics::{DesignSpec, Score, binned, linear, logistic, roc, simple};
use serde_json::Value;

use crate::support::{Table, csv, floats, json, rational, reals, with_data_bounds};

fn context() -> Context {
    Context::records(Relation::AddRemove)
}

fn close(a: f64, b: f64, relative: f64, absolute: f64) -> bool {
    (a - b).abs() <= absolute + relative * b.abs()
}

/// A design on the first columns of a table, the last one as outcome.
fn design(names: &[String], intercept: bool, outcome: Expr) -> DesignSpec {
    DesignSpec {
        intercept,
        terms: names
            .iter()
            .enumerate()
            .map(|(i, n)| (n.clone(), Expr::Column(i)))
            .collect(),
        outcome,
        metadata: Value::Null,
    }
}

fn linear_fit(table: &Table, design: &DesignSpec) -> Value {
    let context = context();
    let config = linear::Config {
        // Only the planned deviations shrink with this budget: the noise itself is off.
        payment: Payment::Pure {
            epsilon: rational("1000000000000000"),
        },
        clip: linear::Clip::None,
        grid_bits: 24,
        noise: linear::PureNoise::Laplace,
        options: linear::Options::default(),
    };
    let prepared = linear::prepare(&table.facts(&context, None), design, &config).unwrap();
    table.run(&context, &prepared, &mut Silent).0.value
}

#[allow(clippy::too_many_lines, reason = "one reference file")]
#[test]
fn linear_meets_least_squares() {
    let golden = json("ols.json");
    for (name, model) in golden["models"].as_object().unwrap() {
        let (names, columns) = csv(model["file"].as_str().unwrap());
        let wanted: Vec<String> = model["columns"]
            .as_array()
            .unwrap()
            .iter()
            .skip(1)
            .map(|c| c.as_str().unwrap().to_owned())
            .collect();
        let position = |n: &str| {
            names
                .iter()
                .position(|x| x == n || x.replace('.', "_").to_lowercase() == n)
                .unwrap()
        };
        let table = with_data_bounds(&names, &columns);
        let spec = DesignSpec {
            intercept: true,
            terms: wanted
                .iter()
                .map(|n| (n.clone(), Expr::Column(position(n))))
                .collect(),
            outcome: Expr::Column(position(model["target"].as_str().unwrap())),
            metadata: Value::Null,
        };
        let value = linear_fit(&table, &spec);
        let (coef, se) = (floats(&model["coef"]), floats(&model["se"]));
        for (i, term) in value["terms"].as_array().unwrap().iter().enumerate() {
            let b = term["estimate"].as_f64().unwrap();
            assert!(close(b, coef[i], 1e-5, 0.0), "{name} {i}: {b} {}", coef[i]);
            let e = term["sampling_error"].as_f64().unwrap();
            assert!(close(e, se[i], 1e-5, 0.0), "{name} {i}: {e} {}", se[i]);
            let interval = floats(&model["conf_int95"][i]);
            assert!(close(
                term["conf_low"].as_f64().unwrap(),
                interval[0],
                1e-4,
                1e-6
            ));
            assert!(close(
                term["conf_high"].as_f64().unwrap(),
                interval[1],
                1e-4,
                1e-6
            ));
        }
        let (t, p) = (floats(&model["t"]), floats(&model["p"]));
        for (i, term) in value["terms"].as_array().unwrap().iter().enumerate() {
            assert!(
                close(term["t"].as_f64().unwrap(), t[i], 1e-4, 0.0),
                "{name} {i}"
            );
            let got = term["p"].as_f64().unwrap();
            assert!(
                close(got, p[i], 1e-3 * (1.0 + t[i] * t[i]), 1e-300),
                "{name} {i}: {got} {}",
                p[i]
            );
            let stars = match p[i] {
                p if p < 0.001 => "***",
                p if p < 0.01 => "**",
                p if p < 0.05 => "*",
                p if p < 0.1 => ".",
                _ => "",
            };
            assert_eq!(term["stars"], stars);
        }
        let f = &value["f"];
        assert!(close(
            f["statistic"].as_f64().unwrap(),
            model["f"].as_f64().unwrap(),
            1e-4,
            0.0
        ));
        assert_eq!(f["df1"], wanted.len());
        let (got, want) = (f["p"].as_f64().unwrap(), model["f_p"].as_f64().unwrap());
        assert!(
            close((got + 1e-300).ln(), (want + 1e-300).ln(), 1e-3, 0.5),
            "{name}: {got} {want}"
        );
        let r2 = value["r_squared"].as_f64().unwrap();
        assert!(
            close(r2, model["r2"].as_f64().unwrap(), 1e-5, 0.0),
            "{name}"
        );
        let sd = value["residual_sd"].as_f64().unwrap();
        assert!(
            close(sd * sd, model["sigma2"].as_f64().unwrap(), 1e-5, 0.0),
            "{name}"
        );
        let n = value["n"].as_f64().unwrap();
        assert!(close(n, model["n"].as_f64().unwrap(), 1e-9, 0.0), "{name}");
    }
}

#[test]
fn linear_without_intercept_is_exact() {
    // y = 2·x₁ − 3·x₂ exactly, columns far from 0: needs the change of coordinates.
    let x1: Vec<f64> = (0..200).map(|i| 10.0 + f64::from(i % 17) / 4.0).collect();
    let x2: Vec<f64> = (0..200).map(|i| 3.0 + f64::from(i % 11) / 8.0).collect();
    let y: Vec<f64> = x1.iter().zip(&x2).map(|(a, b)| 2.0 * a - 3.0 * b).collect();
    let table = reals(&[
        ("x1", x1, 8.0, 16.0),
        ("x2", x2, 2.0, 6.0),
        ("y", y, -10.0, 40.0),
    ]);
    let spec = design(&["x1".to_owned(), "x2".to_owned()], false, Expr::Column(2));
    let value = linear_fit(&table, &spec);
    let terms = value["terms"].as_array().unwrap();
    assert_eq!(terms.len(), 2);
    assert!(
        close(terms[0]["estimate"].as_f64().unwrap(), 2.0, 1e-5, 0.0),
        "{value}"
    );
    assert!(
        close(terms[1]["estimate"].as_f64().unwrap(), -3.0, 1e-5, 0.0),
        "{value}"
    );
}

fn exact_logistic(
    scaling: impl Fn(f64) -> logistic::Scaling,
    check: impl Fn(&Value, &[f64], &str),
) {
    let golden = json("privatelr_exact.json");
    for fit in golden["fits"].as_array().unwrap() {
        let (names, columns) = csv(fit["file"].as_str().unwrap());
        let covariates = names.len() - 1;
        let table = with_data_bounds(&names, &columns);
        let equals = |level: f64| {
            Expr::Compare(
                Comparison::Equal,
                Box::new(Expr::Column(covariates)),
                Box::new(Expr::Constant(level)),
            )
        };
        let target = fit["target"].as_str().unwrap();
        let outcome = match target {
            "Species != setosa" => Expr::Not(Box::new(equals(0.0))),
            // Versicolor is coded 1, and so is the benign class.
            _ => equals(1.0),
        };
        let norm = (0..table.rows)
            .map(|i| {
                columns[..covariates]
                    .iter()
                    .map(|c| c[i] * c[i])
                    .sum::<f64>()
                    .sqrt()
            })
            .fold(0.0, f64::max)
            * (1.0 + 1e-9);
        let context = context();
        let config = logistic::Config {
            scaling: scaling(norm),
            clip: logistic::Clip::None,
            penalty: Some(logistic::Penalty::Mean(
                fit["lambda_used"].as_f64().unwrap(),
            )),
            ..logistic::Config::new(rational("1000000"))
        };
        let spec = design(&names[..covariates], true, outcome);
        let rows = fit["n"].as_f64();
        let prepared = logistic::prepare(&table.facts(&context, rows), &spec, &config).unwrap();
        let value = table.run(&context, &prepared, &mut Silent).0.value;
        check(
            &value,
            &floats(&fit["exact_coefficients"]),
            fit["dataset"].as_str().unwrap(),
        );
    }
}

#[test]
fn logistic_meets_exact_coefficients() {
    exact_logistic(
        |data_norm| logistic::Scaling::None { data_norm },
        |value, exact, name| {
            let terms = value["terms"].as_array().unwrap();
            assert_eq!(terms.len(), exact.len());
            assert_eq!(terms[0]["name"], "(Intercept)");
            for (term, b) in terms.iter().zip(exact) {
                let got = term["estimate"].as_f64().unwrap();
                assert!(close(got, *b, 0.0, 1e-6), "{name}: {got} {b}");
            }
        },
    );
}

#[test]
fn logistic_scaling_is_undone() {
    // A vanishing penalty on overlapping classes: the fit on scaled columns, mapped back, is the maximum
    // likelihood fit, whose score equations hold on the user's scale.
    let x: Vec<f64> = (0..400).map(|i| 40.0 + f64::from(i % 20)).collect();
    let y: Vec<f64> = (0..400)
        .map(|i| f64::from(u8::from((i * 7919) % 400 > 100 + (i % 20) * 10)))
        .collect();
    let table = reals(&[("x", x.clone(), 30.0, 70.0), ("y", y.clone(), 0.0, 1.0)]);
    let context = context();
    let config = logistic::Config {
        scaling: logistic::Scaling::Bounds,
        clip: logistic::Clip::Rule,
        penalty: Some(logistic::Penalty::Sum(1e-7)),
        ..logistic::Config::new(rational("1000000"))
    };
    let spec = design(&["x".to_owned()], true, Expr::Column(1));
    let prepared = logistic::prepare(&table.facts(&context, None), &spec, &config).unwrap();
    let value = table.run(&context, &prepared, &mut Silent).0.value;
    let b: Vec<f64> = value["terms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["estimate"].as_f64().unwrap())
        .collect();
    let (mut g0, mut g1) = (0.0, 0.0);
    for (x, y) in x.iter().zip(&y) {
        let r = y - 1.0 / (1.0 + (-(b[0] + b[1] * x)).exp());
        g0 += r;
        g1 += r * x;
    }
    assert!(g0.abs() < 1e-3 && g1.abs() < 1e-1, "{b:?} {g0} {g1}");
    assert!(b[1].abs() > 0.01);
}

fn roc_at(scores: &[f64], labels: &[f64], thresholds: &[f64]) -> Value {
    let table = reals(&[
        ("p", scores.to_vec(), 0.0, 1.0),
        ("y", labels.to_vec(), 0.0, 1.0),
    ]);
    let context = context();
    let mut config = roc::Config::new(rational("1000"));
    config.thresholds = Some(thresholds.to_vec());
    let prepared = roc::prepare(
        &table.facts(&context, None),
        &Score::Probability(Expr::Column(0)),
        Expr::Column(1),
        config,
    )
    .unwrap();
    table.run(&context, &prepared, &mut Silent).0.value
}

#[test]
fn roc_is_the_step_function() {
    let golden = json("roc.json");
    let (_, model) = csv("roc_scores_breast_cancer.csv");
    for (name, case) in golden["cases"].as_object().unwrap() {
        let (scores, labels) = if case.get("scores").is_some() {
            (floats(&case["scores"]), floats(&case["labels"]))
        } else if name == "rounded_2dp" {
            let rounded = model[0]
                .iter()
                .map(|p| format!("{p:.2}").parse().unwrap())
                .collect();
            (rounded, model[1].clone())
        } else {
            (model[0].clone(), model[1].clone())
        };
        let thresholds: Vec<f64> =
            floats(&case["thresholds_predict_positive_if_score_ge"])[1..].to_vec();
        let value = roc_at(&scores, &labels, &thresholds);
        let vertices = value["vertices"].as_array().unwrap();
        let (fpr, tpr) = (floats(&case["fpr"]), floats(&case["tpr"]));
        assert!(vertices.len() > fpr.len(), "{name}");
        for (i, v) in vertices.iter().take(fpr.len()).enumerate() {
            assert!(
                close(v["fpr"].as_f64().unwrap(), fpr[i], 0.0, 1e-12),
                "{name} {i}"
            );
            assert!(
                close(v["tpr"].as_f64().unwrap(), tpr[i], 0.0, 1e-12),
                "{name} {i}"
            );
            if i > 0 {
                let at = v["threshold"].as_f64().unwrap();
                assert!(close(at, thresholds[i - 1], 0.0, 0.0), "{name}");
            }
        }
        let auc = value["auc"].as_f64().unwrap();
        assert!(
            close(auc, case["auc"].as_f64().unwrap(), 0.0, 1e-12),
            "{name}: {auc}"
        );
    }
}

#[test]
fn roc_with_its_own_thresholds_is_close() {
    let (_, model) = csv("roc_scores_breast_cancer.csv");
    let table = reals(&[
        ("p", model[0].clone(), 0.0, 1.0),
        ("y", model[1].clone(), 0.0, 1.0),
    ]);
    let context = context();
    let mut config = roc::Config::new(rational("1000"));
    config.bins = Some(64);
    let score = Score::Probability(Expr::Column(0));
    let prepared = roc::prepare(
        &table.facts(&context, None),
        &score,
        Expr::Column(1),
        config,
    )
    .unwrap();
    let answer = table.run(&context, &prepared, &mut Silent).0;
    let auc = answer.value["auc"].as_f64().unwrap();
    assert!((auc - 0.981_105_65).abs() < 0.002, "{auc}");
    assert_eq!(answer.value["bins"].as_array().unwrap().len(), 64);
}

#[test]
fn binned_residuals_meet_the_reference() {
    let golden = json("binned_residuals.json");
    let cases = [
        ("breast_cancer", "pow2", "roc_scores_breast_cancer.csv"),
        ("breast_cancer", "sqrt_n", "roc_scores_breast_cancer.csv"),
        ("synthetic_misspecified", "pow2", "binned_input.csv"),
        ("synthetic_misspecified", "sqrt_n", "binned_input.csv"),
    ];
    for (set, bins, input) in cases {
        let wanted = golden[set][bins].as_array().unwrap();
        let (_, data) = csv(input);
        let table = reals(&[
            ("p", data[0].clone(), 0.0, 1.0),
            ("y", data[1].clone(), 0.0, 1.0),
        ]);
        let mut edges = vec![0.0];
        for pair in wanted.windows(2) {
            // Halfway between neighbours; where a tie crosses the cut this would not separate them.
            let (a, b) = (
                pair[0]["p_max"].as_f64().unwrap(),
                pair[1]["p_min"].as_f64().unwrap(),
            );
            assert!(a < b, "{set} {bins}: a tie at the cut");
            edges.push(0.5 * (a + b));
        }
        edges.push(1.0);
        let context = context();
        let mut config = binned::Config::new(rational("1000"));
        config.edges = Some(edges);
        let score = Score::Probability(Expr::Column(0));
        let prepared = binned::prepare(
            &table.facts(&context, None),
            &score,
            Expr::Column(1),
            config,
        )
        .unwrap();
        let value = table.run(&context, &prepared, &mut Silent).0.value;
        let got = value["bins"].as_array().unwrap();
        assert_eq!(got.len(), wanted.len());
        for (g, w) in got.iter().zip(wanted) {
            assert_eq!(g["count"].as_f64(), w["n"].as_f64(), "{set} {bins}");
            let mean = g["mean_fitted"].as_f64().unwrap();
            let residual = g["mean_residual"].as_f64().unwrap();
            assert!(
                close(mean, w["mean_p"].as_f64().unwrap(), 0.0, 1e-10),
                "{g} {w}"
            );
            assert!(
                close(residual, w["mean_resid"].as_f64().unwrap(), 0.0, 1e-10),
                "{g} {w}"
            );
            // The reference uses the residuals' own deviation, which is not bought; in a narrow bin the
            // outcome's deviation stands for it.
            let positives = g["positives"].as_f64().unwrap();
            if positives > 0.0 && positives < w["n"].as_f64().unwrap() {
                let two_se = g["two_se"].as_f64().unwrap();
                let reference = w["two_se"].as_f64().unwrap();
                assert!(close(two_se, reference, 0.15, 0.01), "{g} {w}");
            }
        }
    }
}

#[test]
fn simple_kinds_are_exact() {
    let x = vec![3.0, -1.5, 4.0, 4.0, 10.0, 0.25];
    let table = reals(&[("x", x.clone(), -5.0, 12.0)]);
    let context = context();
    let facts = table.facts(&context, None);
    let e = rational("1");
    let run = |p| table.run(&context, &p, &mut Silent).0.value;
    assert_eq!(run(simple::count(&facts, &e).unwrap())["count"], 6);
    let sum = run(simple::sum(&facts, Expr::Column(0), &e).unwrap());
    assert!(close(sum["sum"].as_f64().unwrap(), 19.75, 0.0, 1e-9));
    let mean = run(simple::mean(&facts, Expr::Column(0), &e).unwrap());
    assert!(close(
        mean["mean"].as_f64().unwrap(),
        19.75 / 6.0,
        0.0,
        1e-9
    ));
    assert!(close(mean["sum"].as_f64().unwrap(), 19.75, 0.0, 1e-9));
    let histogram = run(simple::histogram(
        &facts,
        AxisSpec {
            name: "x".to_owned(),
            expr: Expr::Column(0),
            cut: AxisCut::Edges(vec![-5.0, 0.0, 4.0, 12.0]),
        },
        &e,
    )
    .unwrap());
    assert_eq!(histogram["counts"], serde_json::json!([1, 2, 3]));
    let axis = |lower, upper| AxisSpec {
        name: "x".to_owned(),
        expr: Expr::Column(0),
        cut: AxisCut::Even {
            lower,
            upper,
            cells: 2,
        },
    };
    let table2 = run(simple::crosstab(&facts, vec![axis(-5.0, 12.0), axis(0.0, 8.0)], &e).unwrap());
    assert_eq!(table2["counts"], serde_json::json!([3, 0, 0, 3]));
    let quantiles =
        run(simple::quantiles(&facts, Expr::Column(0), "x", &[0.9, 0.5], 1700, &e).unwrap());
    let values = floats(&quantiles["values"]);
    assert!(
        values[0] >= 2.9 && values[0] <= 4.1 && values[1] >= 4.0,
        "{values:?}"
    );
    let bounds = run(simple::bounds(&facts, Expr::Column(0), "x", 0.985, &e).unwrap());
    assert!(bounds["lower"].as_f64().unwrap() <= -1.5 && bounds["upper"].as_f64().unwrap() >= 10.0);
    assert!(bounds["upper"].as_f64().unwrap() <= 11.0);
}
