//! Running totals: sensitivities against brute force over the measured rows, unbiased recovery, errors against published ones.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "small test data"
)]

use reticent_accounting::Relation;
use reticent_laws::Seeded;
use reticent_mechanisms::primitives::Weights;
use reticent_noise::{Lattice, Noise, Rational, Scale};
use reticent_statistics::counters::{BinaryTree, SquareRoot};

fn column(rows: &[Vec<(usize, i128)>], cell: usize) -> Vec<i128> {
    rows.iter()
        .map(|r| r.iter().filter(|(c, _)| *c == cell).map(|(_, w)| w).sum())
        .collect()
}

/// (add/remove, replace-one) of a norm over all columns and pairs.
fn brute(rows: &[Vec<(usize, i128)>], steps: usize, power: u32) -> (i128, i128) {
    let columns: Vec<Vec<i128>> = (0..steps).map(|c| column(rows, c)).collect();
    let norm = |d: &mut dyn Iterator<Item = i128>| -> i128 { d.map(|x| x.abs().pow(power)).sum() };
    let alone = columns.iter().map(|c| norm(&mut c.iter().copied())).max();
    let pairs = columns
        .iter()
        .flat_map(|a| columns.iter().map(move |b| (a, b)))
        .map(|(a, b)| norm(&mut a.iter().zip(b).map(|(a, b)| a - b)))
        .max();
    (alone.unwrap(), pairs.unwrap())
}

#[test]
fn tree_sensitivities_are_exact() {
    for steps in 1..70 {
        let tree = BinaryTree::new(steps);
        let rows: Vec<Vec<(usize, i128)>> = tree
            .rows()
            .into_iter()
            .map(|r| r.map(|c| (c, 1)).collect())
            .collect();
        let (alone, pairs) = brute(&rows, steps, 1);
        assert_eq!(
            i128::from(tree.sensitivity(Relation::AddRemove)),
            alone,
            "{steps}"
        );
        let replaced = i128::from(tree.sensitivity(Relation::ReplaceOne));
        assert_eq!(replaced, pairs, "{steps}");
    }
}

#[test]
fn square_root_sensitivities_hold() {
    for steps in [1, 2, 3, 10, 64] {
        let root = SquareRoot::new(steps);
        let rows: Vec<Vec<(usize, i128)>> = root
            .strategy()
            .rows
            .into_iter()
            .map(|r| match r.weights {
                Weights::Window { first, list, part } => list[part]
                    .iter()
                    .enumerate()
                    .map(|(i, w)| (first + i, i128::from(*w)))
                    .collect(),
                Weights::Ranges(_) => panic!("rows of weights"),
            })
            .collect();
        let (alone, pairs) = brute(&rows, steps, 2);
        let claimed = |r| i128::try_from(root.squared_sensitivity(r)).unwrap();
        assert_eq!(claimed(Relation::AddRemove), alone);
        assert!(pairs <= claimed(Relation::ReplaceOne));
    }
}

#[test]
fn totals_without_noise_are_exact() {
    let mut noise = Seeded::new(40);
    for steps in [1_usize, 2, 7, 100, 513] {
        let counts: Vec<i128> = (0..steps).map(|_| i128::from(noise.bits() % 50)).collect();
        let want: Vec<i128> = counts
            .iter()
            .scan(0, |sum, c| {
                *sum += c;
                Some(*sum)
            })
            .collect();
        let float = |v: Vec<i128>| -> Vec<f64> { v.into_iter().map(|x| x as f64).collect() };
        let (tree, root) = (BinaryTree::new(steps), SquareRoot::new(steps));
        for totals in [
            tree.totals(&float(tree.answers(&counts))),
            tree.totals_from_below(&float(tree.answers(&counts))),
            root.totals(&float(root.answers(&counts))),
        ] {
            let far = totals.iter().zip(&want).map(|(a, b)| (a - *b as f64).abs());
            assert!(far.fold(0.0, f64::max) < 1e-6, "{steps}");
        }
    }
}

/// `beyond.md` §11b, T = 57901, units 1/√(2ρ): 11.5 (max 16.0), 8.5, 4.40.
#[test]
fn errors_are_the_published_ones() {
    let steps = 57_901;
    let tree = BinaryTree::new(steps);
    let rms = |v: &[f64]| (v.iter().sum::<f64>() / v.len() as f64).sqrt();
    // 17 nodes per step in the published tree, one of them never complete
    let nodes = f64::from(tree.levels());
    let plain = tree.total_variances(false);
    assert!(
        (rms(&plain) * nodes.sqrt() - 11.5).abs() < 0.2,
        "{}",
        rms(&plain) * nodes.sqrt()
    );
    let below = rms(&tree.total_variances(true)) * nodes.sqrt();
    assert!((below - 8.5).abs() < 0.3, "{below}");
    let root = SquareRoot::new(steps).rms_error(0.5);
    assert!((root - 4.40).abs() < 0.01, "{root}");
}

/// Simulated errors against the formulas; 2,000 runs, false alarm below 1e-9 (6.5 standard errors of a variance), catches 4 %
/// per total.
#[test]
fn simulated_errors_agree() {
    let steps = 24;
    let (tree, root) = (BinaryTree::new(steps), SquareRoot::new(steps));
    let lattice = Lattice::DiscreteGaussian(Scale::at_least(&Rational::from(1_u64 << 24)).unwrap());
    let sigma = lattice.scale().to_f64();
    let mut noise = Seeded::new(41);
    let runs = 2000;
    let mut squares = [0.0_f64; 3];
    for _ in 0..runs {
        let mut draw = |n: usize| -> Vec<f64> {
            (0..n)
                .map(|_| noise.lattice(&lattice) as f64 / sigma)
                .collect()
        };
        let nodes = draw(tree.rows().len());
        let answers = draw(steps);
        let norm = (root.squared_sensitivity(Relation::AddRemove) as f64).sqrt();
        let scaled: Vec<f64> = answers.iter().map(|x| x * norm).collect();
        for (at, totals) in [
            tree.totals(&nodes),
            tree.totals_from_below(&nodes),
            root.totals(&scaled),
        ]
        .iter()
        .enumerate()
        {
            squares[at] += totals.iter().map(|x| x * x).sum::<f64>();
        }
    }
    let n = f64::from(runs) * steps as f64;
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let want = [
        mean(&tree.total_variances(false)),
        mean(&tree.total_variances(true)),
        root.rms_error(0.5).powi(2),
    ];
    for (got, want) in squares.iter().zip(want) {
        assert!((got / n / want - 1.0).abs() < 0.2, "{} {want}", got / n);
    }
}
