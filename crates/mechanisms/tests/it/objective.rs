//! Objective perturbation: agreement with exact non-private fits, totality, the density ratio.

use std::path::PathBuf;

use reticent_accounting::{Rational, Relation, parse_decimal, rational_from_f64};
use reticent_laws::{Seeded, Silent};
use reticent_mechanisms::primitives::Objective;
use reticent_mechanisms::{Context, DeskError};
use reticent_noise::{GammaNorm, Noise};

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

/// A budget whose part for the noise, after the solver's hundredth, is exactly 1.
fn one_for_the_noise() -> Rational {
    Rational::from(100u8) / Rational::from(99u8)
}

/// ln of the density of the exact minimiser, without the common normaliser, from its definition:
/// −‖b_D(w)‖/τ + ln det H_D(w). Rows are (x̃, y, how many).
fn log_density(w: &[f64], rows: &[(&[f64], f64, f64)], penalty: f64, tau: f64) -> f64 {
    let p = w.len();
    let mut b: Vec<f64> = w.iter().map(|w| -penalty * w).collect();
    let mut h = vec![vec![0.0; p]; p];
    for (i, row) in h.iter_mut().enumerate() {
        row[i] = penalty;
    }
    for (x, y, count) in rows {
        let m: f64 = y * x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>();
        let s = 1.0 / (1.0 + m.exp());
        for i in 0..p {
            b[i] += count * y * s * x[i];
            for j in 0..p {
                h[i][j] += count * s * (1.0 - s) * x[i] * x[j];
            }
        }
    }
    let norm = b.iter().map(|b| b * b).sum::<f64>().sqrt();
    let det = if p == 1 {
        h[0][0]
    } else {
        h[0][0] * h[1][1] - h[0][1] * h[1][0]
    };
    -norm / tau + det.ln()
}

fn f64_of(x: &Rational) -> f64 {
    reticent_accounting::rational_to_f64(x)
}

/// Largest |ln p_D/p_D′| over a grid, with the shipped constants and with τ multiplied by `cut`.
fn worst_one_coefficient(relation: Relation, cut: f64) -> (f64, f64) {
    let mut objective = step(1, 1.0, None, Rational::from(1u8) / Rational::from(4u8), "1");
    objective.epsilon = one_for_the_noise();
    let tau = cut
        * f64_of(
            &objective
                .calibration(&Context::records(relation))
                .unwrap()
                .scale,
        );
    let tables: [&[(&[f64], f64, f64)]; 6] = [
        &[],
        &[(&[1.0], 1.0, 1.0)],
        &[(&[1.0], -1.0, 1.0)],
        &[(&[0.5], 1.0, 1.0)],
        &[(&[1.0], 1.0, 1.0), (&[-1.0], 1.0, 1.0)],
        &[(&[1.0], 1.0, 1.0), (&[1.0], -1.0, 1.0)],
    ];
    let neighbours: &[(usize, usize)] = match relation {
        Relation::AddRemove => &[(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (2, 5)],
        Relation::ReplaceOne => &[(1, 2), (1, 3), (2, 3), (4, 5)],
    };
    let mut worst = (0.0, 0.0);
    for (a, b) in neighbours {
        for i in -8_000..=8_000 {
            let w = [f64::from(i) * 2.5e-3];
            let loss = (log_density(&w, tables[*a], 0.25, tau)
                - log_density(&w, tables[*b], 0.25, tau))
            .abs();
            if loss > worst.0 {
                worst = (loss, w[0].abs());
            }
        }
    }
    worst
}

#[test]
fn density_ratio_one_coefficient() {
    let mut objective = step(1, 1.0, None, Rational::from(1u8) / Rational::from(4u8), "1");
    objective.epsilon = one_for_the_noise();
    let constants = objective
        .calibration(&Context::records(Relation::AddRemove))
        .unwrap();
    assert!((f64_of(&constants.noise_epsilon) - 0.306_852_8).abs() < 1e-7);
    assert!((f64_of(&constants.scale) - 3.258_891_4).abs() < 1e-7);
    // ∅ against {(1, +1)}: decisions.md §4.2
    let loss = |w: f64| {
        let tau = f64_of(&constants.scale);
        (log_density(&[w], &[], 0.25, tau) - log_density(&[w], &[(&[1.0], 1.0, 1.0)], 0.25, tau))
            .abs()
    };
    assert!((loss(1.0425) - 0.651_437_3).abs() < 1e-7);
    let (worst, at) = worst_one_coefficient(Relation::AddRemove, 1.0);
    assert!((0.651_437..=1.0).contains(&worst), "{worst} at {at}");
    let (replaced, _) = worst_one_coefficient(Relation::ReplaceOne, 1.0);
    assert!(replaced <= 1.0, "{replaced}");
    println!("worst losses: add/remove {worst:.7} at {at}, replace-one {replaced:.7}");
    // Recorded worst losses; a scale cut to .95 of what these allow is seen by them.
    assert!((worst - WORST_ADD_REMOVE).abs() < 1e-5 && (replaced - WORST_REPLACE_ONE).abs() < 1e-5);
    assert!(
        worst_one_coefficient(Relation::AddRemove, 0.95 * WORST_ADD_REMOVE).0
            > WORST_ADD_REMOVE + 1e-3
    );
    assert!(
        worst_one_coefficient(Relation::ReplaceOne, 0.95 * WORST_REPLACE_ONE).0
            > WORST_REPLACE_ONE + 1e-3
    );
}

const WORST_ADD_REMOVE: f64 = 0.651_437_3;
const WORST_REPLACE_ONE: f64 = 0.466_849_2;

/// The rows of decisions.md §4.2 with an intercept: loss at (17, −20) and the largest on a grid.
fn intercept_losses(penalty: f64, tau: f64) -> (f64, f64) {
    let common: [(&[f64], f64, f64); 2] =
        [(&[1.0, 0.77], 1.0, 6459.0), (&[1.0, 0.93], -1.0, 6051.0)];
    let one = [common[0], common[1], (&[1.0, 1.0], 1.0, 1.0)];
    let other = [common[0], common[1], (&[1.0, 0.7], -1.0, 1.0)];
    let loss = |w: [f64; 2]| {
        (log_density(&w, &one, penalty, tau) - log_density(&w, &other, penalty, tau)).abs()
    };
    let mut worst = 0.0f64;
    for i in 0..=60 {
        for j in -70..=0 {
            worst = worst.max(loss([f64::from(i), f64::from(j)]));
        }
    }
    (loss([17.0, -20.0]), worst)
}

#[test]
fn density_ratio_with_intercept() {
    // The published constants, which leave the intercept outside the norm: flagged.
    let (at, _) = intercept_losses(4.876_041_6, 2.222_222_2);
    assert!((at - 1.125_184).abs() < 1e-5, "{at}");
    // The shipped ones.
    let penalty = 2.0 / (4.0 * 0.1f64.exp_m1());
    assert!((penalty - 4.754_166_0).abs() < 1e-6);
    let mut objective = step(1, 1.0, Some(1.0), rational_from_f64(penalty).unwrap(), "1");
    objective.epsilon = one_for_the_noise();
    let constants = objective
        .calibration(&Context::records(Relation::ReplaceOne))
        .unwrap();
    let tau = f64_of(&constants.scale);
    assert!((tau - 3.142_696_8).abs() < 1e-6, "{tau}");
    let (at, worst) = intercept_losses(penalty, tau);
    assert!((at - 0.784_383_4).abs() < 1e-5, "{at}");
    assert!((worst - 0.831_176_2).abs() < 1e-5, "{worst}");
    // Canary: the scale cut to .95 r breaks the bound.
    let (_, cut) = intercept_losses(penalty, tau * 0.95 * worst);
    assert!(cut > 1.0, "{cut}");
}

#[test]
fn determinant_ratio_is_bounded() {
    // det(H + a x xᵀ)/det H ≤ 1 + R²/(4Λ) for H ≥ ΛI, a ≤ ¼, ‖x‖ ≤ R = 1.
    let mut noise = Seeded::new(9);
    let mut uniform = || (noise.bits() >> 11) as f64 / 9_007_199_254_740_992.0;
    let mut largest = 0.0f64;
    for case in 0..4000 {
        let penalty = libm::exp2(-6.0 + 12.0 * uniform());
        let mut h = three::identity(penalty);
        for _ in 0..case % 4 {
            let v = [uniform() - 0.5, uniform() - 0.5, uniform() - 0.5];
            three::add(&mut h, &v, uniform());
        }
        let mut x = [uniform() - 0.5, uniform() - 0.5, uniform() - 0.5];
        let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        x.iter_mut().for_each(|x| *x /= norm);
        let before = three::det(&h);
        three::add(&mut h, &x, 0.25);
        let ratio = three::det(&h) / before;
        largest = largest.max(ratio / (1.0 + 0.25 / penalty));
        assert!(ratio >= 1.0 - 1e-12);
    }
    assert!((0.999..=1.0 + 1e-12).contains(&largest), "{largest}");
}

/// Three by three matrices.
mod three {
    pub(super) type M = [[f64; 3]; 3];
    pub(super) fn identity(s: f64) -> M {
        [[s, 0.0, 0.0], [0.0, s, 0.0], [0.0, 0.0, s]]
    }
    pub(super) fn add(m: &mut M, v: &[f64; 3], a: f64) {
        for (row, x) in m.iter_mut().zip(v) {
            for (e, y) in row.iter_mut().zip(v) {
                *e += a * x * y;
            }
        }
    }
    pub(super) fn det(m: &M) -> f64 {
        m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
            - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
            + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
    }
}

#[test]
fn empty_table_gives_scaled_noise() {
    // R in (½, 1] is not scaled, so the lattice of b is known: w = −b/Λ + η.
    let penalty = Rational::from(3u8) / Rational::from(2u8);
    let objective = step(3, 0.8, Some(0.2), penalty, "1");
    let context = Context::records(Relation::AddRemove);
    let constants = objective.calibration(&context).unwrap();
    let empty = vec![vec![]; 4];
    for seed in 0..20 {
        let w = fit(&empty, 10, &objective, &context, &mut Seeded::new(seed)).unwrap();
        let b = Seeded::new(seed).vector(&GammaNorm {
            dimension: 4,
            scale: constants.scale.clone(),
            bits: 84,
        });
        // η has norm Gamma(4, 2γ/(Λ ε_s)) with scale 1.1e-7: beyond 5e-6 with probability below 1e-15
        for (w, b) in w.iter().zip(&b) {
            let want = -libm::ldexp(*b as f64, -84) / 1.5;
            assert!((w - want).abs() < 5e-6, "{w} {want}");
            assert!(*w != want);
        }
    }
}

#[test]
fn single_class_is_noisy() {
    let columns = vec![vec![0.5; 30], vec![1.0; 30]];
    let objective = step(1, 1.0, Some(0.25), Rational::from(2u8), "1");
    let context = Context::records(Relation::ReplaceOne);
    let fits: Vec<Vec<f64>> = (0..5)
        .map(|seed| fit(&columns, 8, &objective, &context, &mut Seeded::new(seed)).unwrap())
        .collect();
    for (i, a) in fits.iter().enumerate() {
        for b in &fits[..i] {
            assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() > 1e-6));
        }
    }
}

#[test]
fn row_clip_is_enforced() {
    // A row a million times too long does what the same row at the radius does.
    let context = Context::records(Relation::AddRemove);
    let objective = step(2, 0.5, Some(0.125), Rational::from(1u8), "1");
    let table = |scale: f64| {
        vec![
            vec![0.1, 0.3 * scale, -0.2],
            vec![0.2, -0.4 * scale, 0.1],
            vec![1.0, 1.0, 0.0],
        ]
    };
    let near = fit(&table(1.0), 2, &objective, &context, &mut Silent).unwrap();
    for scale in [2.0, 1e6, 1e150, 1e300] {
        let far = fit(&table(scale), 2, &objective, &context, &mut Silent).unwrap();
        for (a, b) in near.iter().zip(&far) {
            assert!((a - b).abs() < 1e-8 || scale > 1e200, "{scale}: {a} {b}");
            assert!(b.is_finite());
        }
    }
}

#[test]
fn every_table_gives_finite_coefficients() {
    let tables: Vec<Vec<Vec<f64>>> = vec![
        vec![vec![], vec![], vec![]],
        vec![vec![1.0], vec![0.0], vec![1.0]],
        vec![vec![0.5; 40], vec![0.5; 40], vec![0.0; 40]],
        vec![vec![0.0; 9], vec![0.0; 9], vec![1.0; 9]],
        vec![
            (0..50).map(|i| f64::from(i % 2)).collect(),
            (0..50).map(|i| -f64::from(i % 2)).collect(),
            (0..50).map(|i| f64::from(i % 2)).collect(),
        ],
    ];
    for relation in [Relation::AddRemove, Relation::ReplaceOne] {
        let mut context = Context::records(relation);
        for rows in [1, 5] {
            context.rows_per_unit = rows;
            for (epsilon, penalty) in [
                ("0.000001", "2500000"),
                ("0.01", "250"),
                ("1", "2.5"),
                ("20", "0.05"),
                ("1000000000", "0.000000001"),
                ("1000000000", "0.00000001"),
            ] {
                for radius in [1e-6, 1.0, 7e5] {
                    let penalty = parse_decimal(penalty).unwrap()
                        * Rational::from(5u8)
                        * rational_from_f64(radius * radius).unwrap();
                    let objective = step(2, radius, Some(radius / 4.0), penalty, epsilon);
                    for (i, table) in tables.iter().enumerate() {
                        let w = fit(table, 7, &objective, &context, &mut Seeded::new(i as u64))
                            .unwrap();
                        assert!(
                            w.len() == 3 && w.iter().all(|w| w.is_finite()),
                            "{epsilon} {radius} {i}: {w:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn impossible_budgets_are_refused_before_the_data() {
    let context = Context::records(Relation::AddRemove);
    let refused = |objective: &Objective, word: &str| {
        let text = objective.calibration(&context).unwrap_err().to_string();
        assert!(text.contains(word), "{text}");
        assert!(fit(&[vec![0.1], vec![1.0]], 5, objective, &context, &mut Silent).is_err());
    };
    let rational = |s: &str| parse_decimal(s).unwrap();
    refused(
        &step(1, 1.0, None, rational("1"), "0.000000001"),
        "raise the penalty or epsilon",
    );
    refused(
        &step(1, 1.0, None, rational("0.25"), "0.7"),
        "raise the penalty or epsilon",
    );
    refused(
        &step(1, 1.0, None, rational("100000000000"), "0.00000000001"),
        "epsilon is too small",
    );
    refused(
        &step(1, 1.0, None, rational("0.0000000000001"), "100"),
        "penalty",
    );
    refused(&step(1, 1.0, None, rational("0"), "1"), "positive");
    refused(&step(1, 1.0, None, rational("1"), "0"), "positive");
    refused(&step(0, 1.0, None, rational("1"), "1"), "coefficients");
    refused(&step(1, f64::NAN, None, rational("1"), "1"), "finite");
    refused(&step(1, f64::INFINITY, None, rational("1"), "1"), "finite");
    refused(&step(1, 0.0, None, rational("1"), "1"), "between");
    refused(&step(1, 1.0, Some(-1.0), rational("1"), "1"), "between");
}
