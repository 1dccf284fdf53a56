//! Objective perturbation: agreement with exact non-private fits, totality, the density ratio.

use std::path::PathBuf;

use reticent_accounting::{Rational, Relation, parse_decimal, rational_from_f64};
use reticent_mechanisms::primitives::Objective;
use reticent_mechanisms::{Context, DeskError};
use reticent_noise::{Noise, Seeded, Silent};

use crate::table::{buy, memory};

fn golden(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../golden")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

fn step(
    columns: usize,
    radius: f64,
    intercept: Option<f64>,
    penalty: Rational,
    epsilon: &str,
) -> Objective {
    Objective {
        name: "fit".to_owned(),
        epsilon: parse_decimal(epsilon).unwrap(),
        covariates: 0..columns,
        outcome: columns,
        intercept,
        radius,
        penalty,
    }
}

fn fit(
    columns: &[Vec<f64>],
    batch: usize,
    step: &Objective,
    context: &Context,
    noise: &mut dyn Noise,
) -> Result<Vec<f64>, DeskError> {
    let bound = columns
        .iter()
        .flatten()
        .fold(1.0, |m: f64, x| m.max(x.abs()));
    let source = memory(columns, bound, batch);
    let wanted = step.clone();
    buy(
        &source,
        columns.len(),
        context,
        step.event(context),
        vec![],
        noise,
        &move |desk| Ok(desk.objective(&wanted)?.coefficients),
    )
}

/// Covariates and a 0/1 outcome of one of the reference tables.
fn reference_table(file: &str, target: &str) -> Vec<Vec<f64>> {
    let text = golden(file);
    let mut columns: Vec<Vec<f64>> = Vec::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').map(|c| c.trim_matches('"')).collect();
        columns.resize(cells.len(), Vec::new());
        let (last, numbers) = cells.split_last().unwrap();
        for (column, cell) in columns.iter_mut().zip(numbers) {
            column.push(cell.parse().unwrap());
        }
        let positive = match target {
            "Species != setosa" => *last != "setosa",
            "Species == versicolor" => *last == "versicolor",
            "target" => *last == "1",
            other => panic!("unknown target {other}"),
        };
        columns
            .last_mut()
            .unwrap()
            .push(f64::from(u8::from(positive)));
    }
    columns
}

fn largest_norm(columns: &[Vec<f64>]) -> f64 {
    (0..columns[0].len())
        .map(|i| columns.iter().map(|c| c[i] * c[i]).sum::<f64>().sqrt())
        .fold(0.0, f64::max)
        * (1.0 + 1e-9)
}

#[test]
fn noise_off_meets_exact_coefficients() {
    let golden: serde_json::Value = serde_json::from_str(&golden("privatelr_exact.json")).unwrap();
    let fits = golden["fits"].as_array().unwrap();
    assert_eq!(fits.len(), 18);
    for f in fits {
        let columns = reference_table(f["file"].as_str().unwrap(), f["target"].as_str().unwrap());
        let (n, d) = (columns[0].len(), columns.len() - 1);
        assert_eq!(n as u64, f["n"].as_u64().unwrap());
        let penalty =
            rational_from_f64(f["lambda_used"].as_f64().unwrap()).unwrap() * Rational::from(n);
        let step = step(d, largest_norm(&columns[..d]), Some(1.0), penalty, "1000");
        let w = fit(
            &columns,
            64,
            &step,
            &Context::records(Relation::AddRemove),
            &mut Silent,
        )
        .unwrap();
        let want: Vec<f64> = f["exact_coefficients"]
            .as_array()
            .unwrap()
            .iter()
            .map(|x| x.as_f64().unwrap())
            .collect();
        for (got, want) in w.iter().zip(&want) {
            assert!(
                (got - want).abs() < 1e-6,
                "{} {}: {got} {want}",
                f["dataset"],
                f["lambda_used"]
            );
        }
        assert_eq!(w.len(), want.len());
    }
}

#[test]
fn blocks_and_order_do_not_matter() {
    let columns = reference_table("breast_cancer_unit.csv", "target");
    let d = columns.len() - 1;
    let step = step(d, 0.5, Some(0.25), Rational::from(3), "1");
    let context = Context::records(Relation::ReplaceOne);
    let run = |columns: &[Vec<f64>], batch| {
        fit(columns, batch, &step, &context, &mut Seeded::new(5)).unwrap()
    };
    let one = run(&columns, 1000);
    let reversed: Vec<Vec<f64>> = columns
        .iter()
        .map(|c| c.iter().rev().copied().collect())
        .collect();
    for other in [run(&columns, 7), run(&columns, 100), run(&reversed, 1000)] {
        for (a, b) in one.iter().zip(&other) {
            // both are within γ/Λ of the minimiser of the same problem
            assert!((a - b).abs() < 1e-9, "{a} {b}");
        }
    }
    assert_eq!(run(&columns, 7), run(&columns, 7));
}
