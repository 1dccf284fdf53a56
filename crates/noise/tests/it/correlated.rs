//! Gaussian rows with a given covariance. `bound` makes a false alarm of a comparison less likely than 1e-11, of the whole file 1e-9; the smallest
//! fault caught is a deviation 5 % off in any tested direction (the negative control), hence entries of the covariance off by a tenth of the variances.

use reticent_laws::{Recorder, Seeded, Silent};
use reticent_noise::{Correlated, Natural, Noise};

use crate::tools::fits;

/// S of records, a and the number of rows.
fn law(records: &[&[i128]], p: usize, added: u64, rows: usize) -> Correlated {
    let pairs = (0..p).flat_map(|i| (i..p).map(move |j| (i, j)));
    Correlated {
        rows,
        dimension: p,
        moments: pairs
            .map(|(i, j)| records.iter().map(|x| x[i] * x[j]).sum())
            .collect(),
        added: Natural::from(added),
    }
}

/// aᵀ(S + added·I)a, from the records themselves.
fn variance(records: &[&[i128]], added: u64, a: &[i128]) -> f64 {
    let dot = |x: &[i128]| -> i128 { x.iter().zip(a).map(|(x, a)| x * a).sum() };
    let sum: i128 = records.iter().map(|x| dot(x).pow(2)).sum();
    (sum + i128::from(added) * a.iter().map(|a| a * a).sum::<i128>()) as f64
}

/// Counts of z·a in forty cells of a normal variable of that variance.
fn counts(drawn: &[i128], a: &[i128], variance: f64) -> Vec<u64> {
    let mut counts = vec![0; 42];
    for row in drawn.chunks(a.len()) {
        let z: i128 = row.iter().zip(a).map(|(z, a)| z * a).sum();
        let cell = (z as f64 / variance.sqrt() * 7.0 + 21.0).clamp(0.0, 41.0);
        counts[cell as usize] += 1;
    }
    counts
}

fn masses(scale: f64) -> Vec<f64> {
    let below = |x: f64| 0.5 * libm::erfc(-x / scale / std::f64::consts::SQRT_2);
    let mut edges: Vec<f64> = (1..=41).map(|i| below(f64::from(i - 21) / 7.0)).collect();
    edges.insert(0, 0.0);
    edges.push(1.0);
    edges.windows(2).map(|w| w[1] - w[0]).collect()
}

/// Whether e_i, e_i + e_j and e_i − e_j all have the variance of S + a·I: together these say every entry.
fn agrees(drawn: &[i128], records: &[&[i128]], p: usize, added: u64, scale: f64) -> bool {
    let mut directions = Vec::new();
    for i in 0..p {
        for j in i..p {
            for sign in [1, -1] {
                let mut a = vec![0; p];
                a[j] = sign;
                a[i] = 1;
                directions.push(a);
            }
        }
    }
    directions.iter().all(|a| {
        let counts = counts(drawn, a, variance(records, added, a));
        fits(&counts, &masses(scale))
    })
}

const ROWS: usize = 40_000;

#[test]
fn rows_have_their_law() {
    let records: [&[i128]; 3] = [
        &[9_000, -3_000, 200, 4_000],
        &[1_000, 8_000, -700, 0],
        &[-2_000, 5_000, 6_000, -6_000],
    ];
    for p in 1..=4 {
        let added = 9_000_000;
        let drawn = Seeded::new(70 + p as u64).rows(&law(&records, p, added, ROWS));
        assert_eq!(drawn.len(), ROWS * p);
        assert!(agrees(&drawn, &records, p, added, 1.0), "{p}");
        assert!(!agrees(&drawn, &records, p, added, 1.05), "control {p}");
        // one row says nothing of the next
        let cross: f64 = (drawn.chunks(2 * p))
            .map(|w| w[0] as f64 * w[p] as f64)
            .sum();
        let deviation = variance(&records, added, &[&[1][..], &vec![0; p - 1]].concat());
        assert!(cross.abs() / deviation < 7.0 * (ROWS as f64 / 2.0).sqrt());
    }
}

/// No records, and a million equal ones: all directions but one have only what is added.
#[test]
fn rows_of_a_rank_deficient_sum() {
    let nothing: [&[i128]; 0] = [];
    let drawn = Seeded::new(75).rows(&law(&nothing, 3, 1_000_000, ROWS));
    assert!(agrees(&drawn, &nothing, 3, 1_000_000, 1.0));
    let large = 1 << 40;
    let one: [&[i128]; 1] = [&[large, large, -2 * large]];
    let drawn = Seeded::new(76).rows(&law(&one, 3, 1_000_000, ROWS));
    assert!(agrees(&drawn, &one, 3, 1_000_000, 1.0));
    for a in [[1, -1, 0], [2, 0, 1]] {
        // orthogonal to the record: far below the rounding of floating point
        let counts = counts(&drawn, &a, variance(&[], 1_000_000, &a));
        assert!(fits(&counts, &masses(1.0)) && !fits(&counts, &masses(1.05)));
    }
}

/// A rounded Gaussian of deviation 2, cell by cell: S = 3, a = 1. The control has S + a = 4.41.
#[test]
fn faults_are_caught() {
    let drawn = Seeded::new(77).rows(&law(&[&[1], &[1], &[1]], 1, 1, ROWS));
    let mut counts = vec![0; 17];
    for z in drawn {
        counts[usize::try_from(z.clamp(-8, 8) + 8).unwrap()] += 1;
    }
    let masses = |sd: f64| -> Vec<f64> {
        let below = |x: f64| 0.5 * libm::erfc(-x / sd / std::f64::consts::SQRT_2);
        (-8..=8)
            .map(|k| {
                let low = if k == -8 {
                    0.0
                } else {
                    below(f64::from(k) - 0.5)
                };
                let high = if k == 8 {
                    1.0
                } else {
                    below(f64::from(k) + 0.5)
                };
                high - low
            })
            .collect()
    };
    assert!(fits(&counts, &masses(2.0)));
    assert!(!fits(&counts, &masses(2.1)));
}

/// A recording gives the same rows again; the silent source gives none.
#[test]
fn recordings_repeat_rows() {
    let d = law(&[&[1 << 50, 3], &[5, 1 << 50]], 2, 1, 50);
    let mut recorder = Recorder::new(Seeded::new(78));
    let first = recorder.rows(&d);
    assert_eq!(recorder.into_tape().rows(&d), first);
    assert_eq!(Silent.rows(&d), vec![0; 100]);
}
