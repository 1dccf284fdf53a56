//! The exponential mechanism's choice.

use reticent_laws::{Probabilities, Seeded, Window, enumerate};
use reticent_noise::{Cell, LogWeights, Natural, Noise, Rational};

use crate::tools::{fits, ratio};

fn weights(rate: Rational, cells: &[(u128, u64)]) -> LogWeights {
    LogWeights {
        rate,
        cells: cells
            .iter()
            .map(|&(loss, multiplicity)| Cell { loss, multiplicity })
            .collect(),
    }
}

fn counts(w: &LogWeights, n: u32, seed: u64) -> Vec<u64> {
    let mut noise = Seeded::stream(seed, 2);
    let mut counts = vec![0; w.cells.len()];
    for _ in 0..n {
        counts[noise.choose(w)] += 1;
    }
    counts
}

#[test]
fn golden_quantile_choice() {
    // decisions 4.7: cells (0,4) (4,8) (8,12) (12,16), median, exponent (1/2)|L - R|; records {0,0,1,12}, then with 12 added
    for (losses, want) in [
        (
            [1, 2, 2, 4],
            [0.410_476_766, 0.248_966_744, 0.248_966_744, 0.091_589_747],
        ),
        (
            [0, 1, 1, 5],
            [0.435_702_069, 0.264_266_663, 0.264_266_663, 0.035_764_604],
        ),
    ] {
        let w = weights(ratio(1, 2), &losses.map(|l| (l, 1)));
        let law = enumerate(Window::default(), |noise| noise.choose(&w));
        for (i, p) in want.into_iter().enumerate() {
            assert!((law.mass(&i) - p).abs() < 1e-9, "{i} {}", law.mass(&i));
        }
        assert!(law.problem().is_none() && law.lost() == 0.0 && law.runs() == 4);
        assert!(fits(&counts(&w, 100_000, 1), &want));
    }
}

#[test]
fn choices_follow_their_probabilities() {
    // false alarm below 1e-9; the control is a rate 5 % higher
    let cells: Vec<(u128, u64)> = (0..30)
        .map(|i| (1_000 + i * i, (i as u64 * 7) % 5))
        .collect();
    let w = weights(ratio(1, 40), &cells);
    let counts = counts(&w, 400_000, 3);
    assert!(fits(&counts, &w.probabilities()));
    assert!(!fits(
        &counts,
        &weights(ratio(21, 800), &cells).probabilities()
    ));
    for (c, (_, multiplicity)) in counts.iter().zip(&cells) {
        assert!(*multiplicity > 0 || *c == 0);
    }
}

#[test]
fn large_multiplicities_follow_their_probabilities() {
    // total multiplicity beyond 64 bits: integer weights are shifted
    let cells = [
        (5, u64::MAX),
        (6, u64::MAX),
        (6, u64::MAX / 2),
        (9, u64::MAX),
        (400, u64::MAX),
    ];
    let w = weights(ratio(1, 3), &cells);
    assert!(fits(&counts(&w, 50_000, 4), &w.probabilities()));
    let one_against_many = weights(ratio(40, 1), &[(0, 1), (1, 1 << 60)]);
    // 2^60 e^-40 = 4.9
    assert!(fits(
        &counts(&one_against_many, 20_000, 5),
        &one_against_many.probabilities()
    ));
}

#[test]
fn a_negative_rate_prefers_large_losses() {
    let cells = [(5, 1), (6, 1), (9, 1), (9, 0)];
    let w = weights(-ratio(1, 3), &cells);
    let mirrored = weights(ratio(1, 3), &[(4, 1), (3, 1), (0, 1), (0, 0)]);
    assert_eq!(w.probabilities(), mirrored.probabilities());
    assert_eq!(
        (w.best(), counts(&w, 1000, 6)),
        (2, counts(&mirrored, 1000, 6))
    );
}

#[test]
fn extreme_rates_and_losses() {
    let mut noise = Seeded::new(7);
    let top = 1_u128 << 100;
    let far: Vec<(u128, u64)> = vec![
        (top + 3, 1),
        (top, 2),
        (top, 0),
        (top + 1, u64::MAX),
        (u128::MAX, 9),
    ];
    // epsilon 1e9: only the smallest loss survives (e^-1e9 against 2^64 multiplicity)
    let w = weights(ratio(1_000_000_000, 1), &far);
    assert!((0..200).all(|_| noise.choose(&w) == 1));
    assert_eq!(
        (w.best(), w.probabilities()),
        (1, vec![0.0, 1.0, 0.0, 0.0, 0.0])
    );
    // a rate beyond the range of floats, and one below it
    let beyond = Rational::from(dashu::integer::UBig::ONE << 2000);
    assert!((0..200).all(|_| noise.choose(&weights(beyond.clone(), &far)) == 1));
    let below = weights(Rational::ONE / beyond, &[(0, 1), (u128::MAX, 3)]);
    assert!(fits(&counts(&below, 20_000, 8), &[0.25, 0.75]));
    // epsilon 1e-9 on small losses: nearly the multiplicities
    let w = weights(ratio(1, 1_000_000_000), &[(0, 1), (1, 2), (2, 1)]);
    assert!(fits(&counts(&w, 20_000, 9), &[0.25, 0.5, 0.25]));
    // ties, a rate of zero, a single cell
    assert!(fits(
        &counts(&weights(ratio(5, 1), &[(7, 1); 10]), 20_000, 10),
        &[0.1; 10]
    ));
    assert!(fits(
        &counts(&weights(ratio(0, 1), &[(7, 1), (9, 3)]), 20_000, 11),
        &[0.25, 0.75]
    ));
    assert_eq!(noise.choose(&weights(ratio(5, 1), &[(u128::MAX, 1)])), 0);
    // nothing to choose from
    assert_eq!(
        noise.choose(&weights(ratio(5, 1), &[]))
            + noise.choose(&weights(ratio(5, 1), &[(1, 0), (2, 0)])),
        0
    );
}

#[test]
fn a_million_cells_do_not_underflow() {
    // lesson 11: 800,000 copies of 65,000 among 200,000 even values on 0..=10^6, epsilon 1/2: the loss |L - R| of the cells
    // right of the heap is at least 600,000 larger than 0, far beyond the range of exp in floating point
    let (mut left, mut cells) = (0_u128, Vec::new());
    for value in 0..1_000_000_u128 {
        if value % 5 == 0 {
            left += 1;
        }
        if value == 65_000 {
            left += 800_000;
        }
        cells.push((left.abs_diff(1_000_000 - left), 1));
    }
    let w = weights(ratio(1, 4), &cells);
    let best = cells.iter().map(|c| c.0).min().unwrap();
    let mut noise = Seeded::new(12);
    for _ in 0..3 {
        let i = noise.choose(&w);
        // P(loss exceeds the best by more than t) <= 10^6 e^(-t/4): t = 140 is missed with probability below 1e-9
        assert!(cells[i].0 - best < 140 && i.abs_diff(65_000) < 1000, "{i}");
    }
}

#[test]
fn neighbours_around_an_underflow_edge_both_succeed() {
    // lesson 12: 1491 and 1492 zeros, exp(-745) being the last positive float
    let mut noise = Seeded::new(13);
    for n in [1491_u128, 1492, 100_000] {
        let w = weights(ratio(1, 2), &[(n, 1), (n + 1, 1), (3 * n, 1), (4 * n, 5)]);
        assert!((0..100).all(|_| noise.choose(&w) < 2));
    }
}

/// Weights of three words each and zeros: 100,000 picks within 7 standard errors (false alarm below 1e-11 per cell); a weight
/// 5 % off would be 15 errors away. And the enumerated law is the ratio of the weights.
#[test]
fn picks_follow_their_weights() {
    let big = Natural::ONE << 150;
    let weights = [
        big.clone(),
        Natural::ZERO,
        big.clone() * Natural::from(3u8),
        Natural::ONE,
        big,
    ];
    let n = 100_000;
    let mut noise = Seeded::new(8);
    let mut counts = [0.0; 5];
    for _ in 0..n {
        counts[noise.pick(&weights)] += 1.0;
    }
    for (count, share) in counts.iter().zip([0.2, 0.0, 0.6, 0.0, 0.2]) {
        let n = f64::from(n);
        let error = (share * (1.0 - share) / n).sqrt();
        assert!((count / n - share).abs() <= 7.0 * error, "{counts:?}");
    }
    let law = enumerate(Window::default(), |noise| noise.pick(&weights));
    assert!((law.mass(&2) - 0.6).abs() < 1e-12 && law.mass(&1) == 0.0 && law.mass(&3) > 0.0);
    let uniform = enumerate(Window::default(), |noise| noise.below(3));
    assert!((0..3).all(|i| (uniform.mass(&i) - 1.0 / 3.0).abs() < 1e-15));
    assert_eq!((noise.below(0), noise.below(1), noise.pick(&[])), (0, 0, 0));
    assert_eq!(noise.pick(&[Natural::ZERO, Natural::ZERO]), 0);
}
