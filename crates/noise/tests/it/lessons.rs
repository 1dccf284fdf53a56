//! Lessons from the field (`docs/lessons.md`) about sampling.

use std::collections::BTreeSet;

use reticent_laws::{Distribution, Seeded, Window, enumerate};
use reticent_noise::{Lattice, Noise};

use crate::tools::scale;

/// Rows 1 and 3: noise is an integer that does not know the answer it is added to, so the same draws give the same
/// noise for every answer, at every magnitude, and no output is reachable from one answer only.
#[test]
fn every_answer_reaches_the_same_grid() {
    let noise = [
        Lattice::Laplace(scale(1, 1)),
        Lattice::DiscreteGaussian(scale(1, 1)),
        Lattice::RoundedGaussian(scale(1, 1)),
        Lattice::Geometric(scale(1, 1)),
    ];
    for lattice in &noise {
        let outputs = |answer: i128| -> Vec<i128> {
            let mut draws = Seeded::new(1);
            (0..100_000)
                .map(|_| answer + draws.lattice(lattice))
                .collect()
        };
        let (zero, one, large) = (outputs(0), outputs(1), outputs(1 << 40));
        for ((a, b), c) in zero.iter().zip(&one).zip(&large) {
            assert_eq!((b - a, c - a), (1, 1 << 40));
        }
        // trailing zeros of the noise part have one histogram, whatever the answer
        let trailing = |xs: &[i128], answer: i128| -> [u32; 8] {
            let mut histogram = [0; 8];
            for x in xs {
                histogram[((x - answer).trailing_zeros() as usize).min(7)] += 1;
            }
            histogram
        };
        assert_eq!(trailing(&zero, 0), trailing(&large, 1 << 40));
    }
    // the two-sided law of 0 and of 1: every output that one has, the other has
    let law = |answer: i128| {
        enumerate(Window::Tail(1e-12), |draws: &mut dyn Noise| {
            answer + draws.lattice(&noise[0])
        })
    };
    let (a, b) = (law(0), law(1));
    assert!((a.worst_loss(&b, 1e-9) - 1.0).abs() < 1e-9);
    let inner = -20..=20;
    let reach = |d: &Distribution<i128>| -> BTreeSet<i128> {
        d.iter()
            .filter(|(o, p)| *p > 0.0 && inner.contains(*o))
            .map(|(o, _)| *o)
            .collect()
    };
    assert_eq!(reach(&a), inner.clone().collect());
    assert_eq!(reach(&a), reach(&b));
}

/// Row 8: one seed shared by several mechanisms does not give them the same noise, as long as each takes its draws
/// from the one stream.
#[test]
fn mechanisms_of_one_run_do_not_share_draws() {
    let lattice = Lattice::Laplace(scale(1000, 1));
    let mut draws = Seeded::new(0);
    let mut take = || -> Vec<i128> { (0..200).map(|_| draws.lattice(&lattice)).collect() };
    let (first, second) = (take(), take());
    let equal = first.iter().zip(&second).filter(|(a, b)| a == b).count();
    // two independent draws agree with probability below 1/2000; more than 10 of 200 has probability below 1e-19
    assert!(equal <= 10, "{equal} of 200 draws repeat");
}
