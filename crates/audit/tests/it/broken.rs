//! Negative controls: the harness that passes the shipped mechanisms flags these.

use super::*;
use reticent_audit::broken;
use reticent_audit::density::gaussian_epsilon;
use reticent_audit::neighbours::losses;

/// Two kinds of record: the first counts in the early queries, the second in the late ones.
fn pairs(most: u32) -> Vec<Multiset> {
    Universe::reals(0.0, 1.0, &[0.0, 1.0]).tables(most)
}

#[test]
fn threshold_testing_is_flagged() {
    let found = losses(&pairs(2), |t, noise| {
        let scores = [i128::from(t[0]), i128::from(t[1])];
        broken::threshold_testing(&scores, 1, &ratio(2, 1), noise).unwrap()
    })
    .unwrap();
    assert!(found.add_remove.loss.is_infinite() && found.replace_one.loss.is_infinite());
}

/// Queries 1..t count the first kind of record, t+1..2t the second; the answer of interest is t times no, t times yes.
fn long_answer(t: usize) -> impl Fn(&[bool]) -> bool + Copy {
    move |answers: &[bool]| answers.iter().enumerate().all(|(i, yes)| *yes == (i >= t))
}

#[test]
fn generalised_testing_is_flagged() {
    // total 1, split ½ and ½; the proved lower bound on the loss is t·ε₂
    for t in [2, 3, 5, 10] {
        let is_long = long_answer(t);
        let found = losses(&pairs(1), |table, noise| {
            let kinds = [i128::from(table[0]), i128::from(table[1])];
            let scores: Vec<i128> = (0..2 * t).map(|i| kinds[i / t]).collect();
            let answers =
                broken::generalised_testing(&scores, 0, &ratio(2, 1), &ratio(2, 1), is_long, noise);
            is_long(&answers.unwrap())
        })
        .unwrap();
        let loss = found.replace_one.loss;
        assert!(loss > 1.0 || t < 3, "t={t}: {loss}");
        if t == 10 {
            assert!(loss > 4.0, "{loss}");
        }
    }
}

#[test]
fn sparse_vector_with_inner_reset_is_flagged() {
    let epsilon = ratio(1, 1);
    let is_long = long_answer(10);
    let found = losses(&pairs(1), |table, noise| {
        let kinds = [i128::from(table[0]), i128::from(table[1])];
        let scores: Vec<i128> = (0..20).map(|i| kinds[i / 10]).collect();
        let answers = broken::sparse_vector_inner_reset(&scores, 0, &epsilon, 2, is_long, noise);
        is_long(&answers.unwrap())
    })
    .unwrap();
    assert!(found.replace_one.loss > 1.5, "{found:?}");
    // two positive answers should have ended it
    let answers = broken::sparse_vector_inner_reset(
        &[1 << 40; 50],
        0,
        &epsilon,
        2,
        |_| true,
        &mut reticent_laws::Seeded::new(1),
    );
    assert_eq!(answers.unwrap(), vec![true; 50]);
}

#[test]
fn unsound_ranges_are_flagged() {
    // records at 0 and (one) at 2, candidates 0, 1, 2
    let run = |coverage, threshold: Rational, query: Rational, tables: &[Multiset]| {
        losses(tables, move |t, noise| {
            let (zeros, twos) = (i128::from(t[0]), i128::from(t[1]));
            let nested = [zeros, zeros, zeros + twos];
            broken::range_with_scales(&nested, zeros + twos, coverage, &threshold, &query, noise)
                .unwrap()
        })
        .unwrap()
        .add_remove
        .loss
    };
    // θ = ¼ with θ/e₁ and 2θ/e₂: 1.5
    let few = pairs(4);
    let loss = run((1, 4), ratio(1, 2), ratio(1, 1), &few);
    assert!((loss - 1.5).abs() < 1e-6, "{loss}");
    // θ = .95 with .8/e₂: 1.0829538
    let many = vec![vec![60, 0], vec![60, 1]];
    let loss = run((19, 20), ratio(19, 10), ratio(8, 5), &many);
    assert!((loss - 1.082_953_8).abs() < 1e-6, "{loss}");
    // the shipped constants on the same tables
    assert!(run((19, 20), ratio(19, 10), ratio(2, 1), &many) <= 1.0);
    assert!(run((1, 4), ratio(3, 2), ratio(2, 1), &few) <= 1.0);
}

#[test]
fn printed_bin_sums_are_flagged() {
    let bins = |edges: &[f64]| -> Vec<(usize, f64, f64)> {
        (0..=128)
            .flat_map(|i| {
                let p = f64::from(i) / 128.0;
                let bin = edges[1..edges.len() - 1]
                    .iter()
                    .filter(|e| **e <= p)
                    .count();
                [(bin, p, 0.0), (bin, p, 1.0)]
            })
            .collect()
    };
    for (last, added, replaced) in [
        (1.0 / 64.0, 16.496, 17.0),
        (0.0625, 4.485, 4.97),
        (0.125, 2.472, 2.94),
    ] {
        let edges = [0.0, 0.5, 1.0 - last, 1.0];
        let (ar, r1) = broken::printed_bin_sums(&edges, &bins(&edges));
        assert!((ar - added).abs() < 0.01, "{last}: {ar}");
        assert!(r1 >= replaced - 0.3 && r1 > 1.0, "{last}: {r1}");
    }
}

#[test]
fn covariance_at_the_published_sensitivity_is_flagged() {
    // d = 6: true/claimed ε is 1.06 at ε = .01 and 1.74 at ε = 1, δ = 2^-16, with the classical constant
    let delta = 1.0 / 65536.0;
    for (epsilon, ratio) in [(0.01, 1.06), (1.0, 1.74)] {
        let d: u32 = 6;
        let sigma = f64::from(d).sqrt() * (2.0 * (1.25_f64 / delta).ln()).sqrt() / epsilon;
        let (added, replaced) = broken::covariance_squared_sensitivity(d);
        assert!((added - 28.0).abs() < 1e-12 && (replaced - 27.0).abs() < 1e-12);
        let truth = gaussian_epsilon(sigma, delta, added.sqrt()) / epsilon;
        assert!(
            (truth - ratio).abs() < 0.006 && truth > 1.0,
            "{epsilon}: {truth}"
        );
    }
}
