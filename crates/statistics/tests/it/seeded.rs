//! Statistics with fixed seeds: power and false-alarm probability are stated at each test.

use reticent_accounting::Relation;
use reticent_laws::Seeded;
use reticent_mechanisms::Context;
use reticent_mechanisms::primitives::Payment;
use reticent_mechanisms::program::Expr;
use reticent_statistics::{DesignSpec, Score, binned, linear, residuals, roc};
use serde_json::Value;

use crate::support::{Table, rational, reals, uniform};

/// Standard normal by the sum of twelve uniforms less six: enough for tables of test data.
fn normal(noise: &mut Seeded) -> f64 {
    (0..12).map(|_| uniform(noise)).sum::<f64>() - 6.0
}

/// Log-odds s and a label drawn from them.
fn scored(rows: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut noise = Seeded::new(seed);
    (0..rows)
        .map(|_| {
            let s = -1.2 + 1.8 * normal(&mut noise);
            let y = f64::from(u8::from(uniform(&mut noise) < 1.0 / (1.0 + (-s).exp())));
            (s, y)
        })
        .unzip()
}

fn score_table(s: &[f64], y: &[f64]) -> Table {
    reals(&[("s", s.to_vec(), -20.0, 20.0), ("y", y.to_vec(), 0.0, 1.0)])
}

/// Empirical curve from the top score and its area (ties do not occur).
fn truth(s: &[f64], y: &[f64]) -> (Vec<(f64, f64)>, f64) {
    let mut order: Vec<usize> = (0..s.len()).collect();
    order.sort_by(|a, b| s[*b].total_cmp(&s[*a]));
    let positives: f64 = y.iter().sum();
    let negatives = y.iter().map(|y| 1.0 - y).sum::<f64>();
    let (mut f, mut t, mut area) = (0.0, 0.0, 0.0);
    let mut curve = vec![(0.0, 0.0)];
    for i in order {
        if y[i] > 0.5 {
            t += 1.0 / positives;
        } else {
            f += 1.0 / negatives;
            area += t / negatives;
        }
        curve.push((f, t));
    }
    (curve, area)
}

/// ROC at ε = 1 on 16,000 rows: area within .01 in at least 38 of 40 runs (mean error here is below .002, so
/// a failure of one run has probability below 1e-6 and of three below 1e-9; catches a share or scale wrong by
/// a factor of ten), and the proved band covers the whole curve in at least 94 % (nominal .95; empirically
/// above .97, and below 33 of 40 at a true .95 has probability below 1e-5).
#[test]
fn roc_is_accurate_and_covered() {
    let (s, y) = scored(16_000, 1);
    let (curve, area) = truth(&s, &y);
    let table = score_table(&s, &y);
    let context = Context::records(Relation::AddRemove);
    let facts = table.facts(&context, Some(16_000.0));
    let prepared = roc::prepare(
        &facts,
        &Score::Linear(Expr::Column(0)),
        Expr::Column(1),
        roc::Config::new(rational("1")),
    )
    .unwrap();
    let (mut near, mut covered, mut inside) = (0, 0, 0);
    for run in 0..40 {
        let value = table
            .run(&context, &prepared, &mut Seeded::stream(9, run))
            .0
            .value;
        let auc = value["auc"].as_f64().unwrap();
        near += i32::from((auc - area).abs() < 0.01);
        let get = |k: &str| value[k].as_f64().unwrap();
        inside += i32::from(get("auc_low") <= area && area <= get("auc_high"));
        assert!(get("auc_proved_low") <= auc && auc <= get("auc_proved_high"));
        let band: Vec<[f64; 4]> = value["band"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| ["fpr_low", "fpr_high", "tpr_low", "tpr_high"].map(|k| r[k].as_f64().unwrap()))
            .collect();
        covered += i32::from(curve.iter().all(|(f, t)| {
            band.iter().any(|[a, b, c, d]| {
                *f >= a - 1e-9 && *f <= b + 1e-9 && *t >= c - 1e-9 && *t <= d + 1e-9
            })
        }));
    }
    assert!(
        near >= 38 && covered >= 33 && inside >= 30,
        "{near} {covered} {inside}"
    );
}

/// The right model stays inside the limits of its binned residuals; a shifted one is seen.
#[test]
fn binned_residuals_see_a_shift() {
    let (s, y) = scored(10_000, 2);
    let table = score_table(&s, &y);
    let context = Context::records(Relation::AddRemove);
    let facts = table.facts(&context, Some(10_000.0));
    let outside = |shift: f64| -> usize {
        let score = Score::Linear(Expr::Column(0).add(Expr::Constant(shift)));
        let config = binned::Config::new(rational("1"));
        let prepared = binned::prepare(&facts, &score, Expr::Column(1), config).unwrap();
        let value = table.run(&context, &prepared, &mut Seeded::new(4)).0.value;
        value["bins"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|b| b["mean_residual"].as_f64().unwrap().abs() > b["two_se"].as_f64().unwrap())
            .count()
    };
    // 64 bins, about 5 % outside by chance (3): 16 or more has probability below 1e-7.
    assert!(outside(0.0) < 16, "{}", outside(0.0));
    assert!(outside(0.8) > 32, "{}", outside(0.8));
}

/// Points lie in the box and in kept cells; a fan in the data is a fan in the released columns.
#[test]
fn residual_points_come_from_released_cells() {
    let mut noise = Seeded::new(6);
    let x: Vec<f64> = (0..20_000).map(|_| uniform(&mut noise)).collect();
    let y: Vec<f64> = x
        .iter()
        .map(|x| x + (0.05 + 0.5 * x) * normal(&mut noise))
        .collect();
    let table = reals(&[("x", x, 0.0, 1.0), ("y", y, -50.0, 50.0)]);
    let context = Context::records(Relation::AddRemove);
    let facts = table.facts(&context, Some(20_000.0));
    let prepared = residuals::prepare(
        &facts,
        &Expr::Column(0),
        &Expr::Column(1),
        residuals::Config::new(rational("1")),
    )
    .unwrap();
    let value = table.run(&context, &prepared, &mut Seeded::new(7)).0.value;
    let frame = |k: &str| value["box"][k].as_f64().unwrap();
    assert!(
        frame("y_low") > -3.0 && frame("y_high") < 3.0,
        "{}",
        value["box"]
    );
    let side = usize::try_from(value["side"].as_u64().unwrap()).unwrap();
    assert_eq!(value["counts"].as_array().unwrap().len(), side * side);
    let counts = crate::support::floats(&value["counts"]);
    let threshold = value["threshold"].as_f64().unwrap();
    let points = value["points"].as_array().unwrap();
    assert!(points.len() > 1000);
    for p in points {
        let (a, b) = (p[0].as_f64().unwrap(), p[1].as_f64().unwrap());
        let edges = |low: f64, high: f64| reticent_mechanisms::fold::Cut::Even {
            lower: low,
            upper: high,
            cells: value["side"]
                .as_u64()
                .and_then(|m| u32::try_from(m).ok())
                .unwrap(),
        };
        let cell = |v: f64, low: f64, high: f64| edges(low, high).cell(v);
        let at = cell(a, frame("x_low"), frame("x_high")) * side
            + cell(b, frame("y_low"), frame("y_high"));
        assert!(counts[at] >= threshold, "a point in an empty cell");
    }
    let columns = value["columns"].as_array().unwrap();
    let width = |c: &Value| c["q90"].as_f64().unwrap() - c["q10"].as_f64().unwrap();
    let (first, last) = (columns.first().unwrap(), columns.last().unwrap());
    assert!(width(last) > 2.0 * width(first), "{first} {last}");
    // The same seed draws the same points.
    let again = table.run(&context, &prepared, &mut Seeded::new(7)).0.value;
    assert_eq!(value["points"], again["points"]);
}

/// Nominal .95 intervals over 200 runs: rows drawn afresh, truth the generating slope. Fewer than 172 or all
/// of 200 × 2 covered would mean a covariance wrong by tens of per cent; binomial tail at .95 below 1e-6.
#[test]
fn linear_intervals_cover() {
    for (relation, seed) in [(Relation::AddRemove, 20), (Relation::ReplaceOne, 21)] {
        let context = Context::records(relation);
        let mut noise = Seeded::new(seed);
        let (mut covered, mut noisy_share) = (0, 0.0);
        for _ in 0..200 {
            let n = 2000;
            let x: Vec<f64> = (0..n)
                .map(|_| normal(&mut noise).clamp(-4.0, 4.0))
                .collect();
            let y: Vec<f64> = x
                .iter()
                .map(|x| 1.0 + 0.7 * x + 0.8 * normal(&mut noise))
                .collect();
            let table = reals(&[("x", x, -4.0, 4.0), ("y", y, -8.0, 10.0)]);
            let spec = DesignSpec {
                intercept: true,
                terms: vec![("x".to_owned(), Expr::Column(0))],
                outcome: Expr::Column(1),
                metadata: Value::Null,
            };
            let config = linear::Config::new(Payment::Pure {
                epsilon: rational("1"),
            });
            let prepared =
                linear::prepare(&table.facts(&context, Some(2000.0)), &spec, &config).unwrap();
            let value = table.run(&context, &prepared, &mut noise).0.value;
            let slope = &value["terms"][1];
            let get = |k: &str| slope[k].as_f64().unwrap();
            covered += i32::from(get("conf_low") <= 0.7 && 0.7 <= get("conf_high"));
            noisy_share += get("noise_error") / get("std_error") / 200.0;
        }
        assert!(covered >= 172, "{relation:?}: {covered}");
        assert!(
            noisy_share > 0.3,
            "the test must feel the noise: {noisy_share}"
        );
    }
}
