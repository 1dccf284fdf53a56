//! Biased-count trees: enumeration, the golden paths, a canary.

use super::*;
use reticent_audit::purchases::Purchase;
use reticent_laws::Law;
use reticent_mechanisms::primitives::SplitTree;

fn step(epsilon: Rational, threshold: i128, decay: u32, height: u32, columns: usize) -> SplitTree {
    SplitTree {
        name: "splits".to_owned(),
        epsilon,
        threshold,
        decay,
        height,
        fanout: 2,
        columns,
    }
}

/// A line of eight cells with records at both ends and in the middle, three decisions along a path.
fn line() -> Audit {
    Audit::new(
        Universe::reals(0.0, 7.0, &[0.0, 1.0, 7.0]),
        1,
        Purchases::one(
            grid(vec![axis(0, Cut::Whole(8))]),
            Purchase::SplitTree(step(ratio(1, 1), 1, 1, 3, 8)),
        ),
        5,
    )
}

/// A plane of 4 × 4 cells, quartered.
fn plane() -> Audit {
    Audit::new(
        Universe::reals(0.0, 15.0, &[0.0, 15.0]),
        1,
        Purchases::one(
            grid(vec![axis(0, Cut::Whole(16))]),
            Purchase::SplitTree(step(ratio(1, 2), 2, 2, 2, 4)),
        ),
        6,
    )
}

const LINE: [(f64, f64); 2] = [
    (0.998_024_680, 0.598_876_588),
    (1.000_000_000, 0.851_580_021),
];
const PLANE: [(f64, f64); 2] = [
    (1.000_000_000, 0.408_942_145),
    (0.817_884_290, 1.000_000_000),
];

#[test]
fn enumerated() {
    line().check(LINE);
    plane().check(PLANE);
}

#[test]
fn canary() {
    line().canary([LINE[0].0, LINE[1].0]);
}

/// `decisions.md` §4, instance 10: a path of seven nodes, all falling counts below 200, one more record on the whole path.
#[test]
fn golden_biased_counts() {
    for (epsilon, decay, threshold, wanted) in [
        (ratio(1, 1), 2, 3, 0.997_572_0),
        (ratio(1, 5), 10, 3, 0.2 * 0.999_901_5),
    ] {
        let step = step(epsilon, threshold, decay, 7, 128);
        let lattice = step
            .lattice(&Context::records(Relation::AddRemove))
            .unwrap();
        let yes = |count: i128, depth: i128| {
            let decay = i128::from(decay);
            let biased = (count - depth * decay).max(threshold - decay);
            (
                lattice.upper_tail(threshold - biased + 1),
                lattice.lower_tail(threshold - biased + 1),
            )
        };
        // most[c]: the largest loss of splitting on and on from a node with count c (counts fall along the path)
        let mut worst: f64 = 0.0;
        let mut most = vec![0.0f64; COUNTS];
        for depth in (0..7).rev() {
            let mut best = vec![0.0f64; COUNTS];
            for (count, best) in (0i128..).zip(&mut best) {
                let (more, less) = (yes(count + 1, depth), yes(count, depth));
                worst = worst.max((less.1 / more.1).ln());
                let below = most[..=usize::try_from(count).unwrap()]
                    .iter()
                    .copied()
                    .fold(0.0, f64::max);
                *best = (more.0 / less.0).ln() + below;
            }
            most = best;
        }
        worst = most.iter().copied().fold(worst, f64::max);
        assert!((worst - wanted).abs() < 1e-6, "{worst} {wanted}");
    }
}

/// Counts 0..COUNTS of a node.
const COUNTS: usize = 200;
