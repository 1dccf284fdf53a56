//! With noise off a release has to equal the truth of this crate: two implementations of routing, scores, bins,
//! histograms and least squares, one result.

use reticent_accounting::Relation;
use reticent_laws::{Seeded, Silent};
use reticent_papers::studies::{adult_binned, adult_roc, pums_linear, pums_residuals};
use serde_json::Value;

const BOTH: [Relation; 2] = [Relation::AddRemove, Relation::ReplaceOne];

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap()
}

/// The test part as the shipped rule routes it, read through a plan's row program, gives the same release as the
/// records this crate routes: bit for bit, with the same noise.
#[test]
fn the_test_part_is_the_same_by_both_routings() {
    let bench = adult_roc::Bench::load().unwrap();
    for relation in BOTH {
        let alone = bench.release(relation, &mut Seeded::new(3)).unwrap();
        let routed = bench
            .release_of_part(relation, &mut Seeded::new(3))
            .unwrap();
        assert_eq!(alone, routed);
    }
}

/// Every vertex of the noiseless curve is a vertex of the exact one, and the area differs only by what the shape
/// within bins leaves.
#[test]
fn the_noiseless_curve_lies_on_the_true_one() {
    let bench = adult_roc::Bench::load().unwrap();
    let truth = bench.truth();
    for relation in BOTH {
        let answer = bench.release(relation, &mut Silent).unwrap();
        let vertices = answer.value["vertices"].as_array().unwrap();
        assert!(vertices.len() > 16);
        for v in vertices {
            let (f, t) = (number(v, "fpr"), number(v, "tpr"));
            let nearest = truth
                .vertices
                .iter()
                .map(|p| (p.0 - f).abs() + (p.1 - t).abs())
                .fold(f64::INFINITY, f64::min);
            assert!(nearest < 1e-12, "({f}, {t}) is {nearest} from the curve");
        }
        assert!((number(&answer.value, "auc") - truth.area).abs() < 5e-4);
        // Without noise every vertex is within its bounds, so the thresholds are read alike, too.
        let run = bench.judge(&answer.value);
        assert!(run.vertices_covered && run.covered && run.proved_holds);
        let bins = answer.value["bins"].as_array().unwrap();
        let sum = |key: &str| bins.iter().map(|b| b[key].as_u64().unwrap()).sum::<u64>();
        let (positives, negatives) = truth.sizes;
        assert_eq!(sum("positives"), positives as u64);
        assert_eq!(sum("negatives"), negatives as u64);
    }
}

/// Counts and positives of every bin exactly, mean prediction and mean residual to the summation grid.
#[test]
fn noiseless_binned_residuals_are_the_true_ones() {
    let bench = adult_binned::Bench::load().unwrap();
    for relation in BOTH {
        let value = bench.release(relation, &mut Silent).unwrap();
        let truth = bench.true_bins(&value);
        assert!(truth.len() >= 8);
        for (t, r) in truth.iter().zip(value["bins"].as_array().unwrap()) {
            assert_eq!(r["count"].as_u64().unwrap(), t.count as u64);
            assert_eq!(r["positives"].as_u64().unwrap(), t.positives as u64);
            assert!((number(r, "mean_fitted") - t.mean_fitted).abs() < 1e-9);
            assert!((number(r, "mean_residual") - t.mean_residual).abs() < 1e-9);
        }
    }
}

/// Every cell of the released grid.
#[test]
fn the_noiseless_residual_plot_is_the_true_histogram() {
    let bench = pums_residuals::Bench::load().unwrap();
    for relation in BOTH {
        for epsilon in ["0.1", "1"] {
            let value = bench.release(relation, epsilon, &mut Silent).unwrap();
            let counts: Vec<usize> = value["counts"]
                .as_array()
                .unwrap()
                .iter()
                .map(|c| usize::try_from(c.as_u64().unwrap()).unwrap())
                .collect();
            assert_eq!(counts, bench.true_counts(&value), "{relation} {epsilon}");
            assert_eq!(counts.iter().sum::<usize>(), 10_000);
        }
    }
}

/// Exact normal equations of the 10,000 records, values clamped to the declared bounds, by an independent
/// computation (Python integers and fractions).
#[test]
fn the_true_coefficients_are_those_of_another_tool() {
    let bench = pums_linear::Bench::load().unwrap();
    assert_eq!(bench.names, ["(Intercept)", "age", "educ"]);
    for (b, known) in bench.truth.iter().zip(REFERENCE) {
        assert!((b - known).abs() < 1e-9 * known.abs(), "{b} {known}");
    }
}

const REFERENCE: [f64; 3] = [
    -20_707.858_789_477_283,
    251.119_485_924_301_47,
    4_132.336_932_758_807,
];
