//! Draws against masses. `bound` makes a false alarm of the whole file less likely than 1e-9; the smallest fault every test
//! catches is a scale 5 % off (the negative control).

use reticent_laws::{Law, Recorder, Seeded};
use reticent_noise::{Lattice, Noise, Rational, Scale};

use crate::tools::{fits, ratio, scale};

const KINDS: [fn(Scale) -> Lattice; 4] = [
    Lattice::Laplace,
    Lattice::Geometric,
    Lattice::DiscreteGaussian,
    Lattice::RoundedGaussian,
];

/// Counts of draws in cells bounded by `edges`: below the first, between neighbours, from the last on.
fn histogram(lattice: &Lattice, edges: &[i128], n: u32, noise: &mut dyn Noise) -> Vec<u64> {
    let mut counts = vec![0; edges.len() + 1];
    for _ in 0..n {
        let k = noise.lattice(lattice);
        counts[edges.partition_point(|e| *e <= k)] += 1;
    }
    counts
}

fn probabilities(lattice: &Lattice, edges: &[i128]) -> Vec<f64> {
    let mut p = vec![lattice.lower_tail(edges[0])];
    p.extend(
        edges
            .windows(2)
            .map(|w| lattice.upper_tail(w[0]) - lattice.upper_tail(w[1])),
    );
    p.push(lattice.upper_tail(edges[edges.len() - 1]));
    p
}

/// About forty edges over the bulk.
fn edges(lattice: &Lattice) -> Vec<i128> {
    let far = lattice.radius(1e-3).max(2);
    let mut edges: Vec<i128> = (-20..=20)
        .map(|i| far / 20 * i + far % 20 * i / 20)
        .collect();
    edges.dedup();
    edges
}

fn check(kind: fn(Scale) -> Lattice, s: Scale, five_percent_more: Scale, n: u32, seed: u64) {
    let lattice = kind(s);
    let edges = edges(&lattice);
    let counts = histogram(&lattice, &edges, n, &mut Seeded::stream(seed, 1));
    assert!(
        fits(&counts, &probabilities(&lattice, &edges)),
        "{} {s:?}",
        lattice.name()
    );
    let control = kind(five_percent_more);
    assert!(
        !fits(&counts, &probabilities(&control, &edges)),
        "{} {s:?}: control passed",
        lattice.name()
    );
}

#[test]
fn samplers_follow_their_masses() {
    for (i, kind) in KINDS.into_iter().enumerate() {
        for (j, (n, d)) in [(2, 5), (1, 1), (7, 2), (100, 1), (1_000_000, 1)]
            .into_iter()
            .enumerate()
        {
            let more = Scale::at_least(&(ratio(n, d) * ratio(21, 20))).unwrap();
            check(kind, scale(n, d), more, 200_000, (10 * i + j) as u64);
        }
    }
}

#[test]
fn split_scales_follow_their_masses() {
    for (i, kind) in KINDS.into_iter().enumerate() {
        for (j, power) in [29_usize, 40, 64, 95].into_iter().enumerate() {
            let x = ratio(1 << 20, 1) * Rational::from(dashu::integer::UBig::ONE << (power - 20));
            let s = Scale::at_least(&x).unwrap();
            let more = Scale::at_least(&(x * ratio(21, 20))).unwrap();
            check(kind, s, more, 100_000, (100 + 10 * i + j) as u64);
        }
    }
}

#[test]
fn low_bits_are_even_at_large_scales() {
    // lessons 1 and 3: at a scale far above 2^16 the low eight bits are uniform to within 2^-20, whatever is added
    for kind in KINDS {
        let lattice = kind(scale(1 << 40, 1));
        let mut noise = Seeded::stream(3, 3);
        let mut counts = [0_u64; 256];
        for _ in 0..100_000 {
            counts[usize::try_from(noise.lattice(&lattice).rem_euclid(256)).unwrap()] += 1;
        }
        assert!(fits(&counts, &[1.0 / 256.0; 256]), "{}", lattice.name());
    }
}

#[test]
fn small_scales_are_rarely_nonzero() {
    // P(X != 0) at scale 1/10 is 9.08e-5 (Laplace), 4.54e-5 (geometric), 3.9e-22, 5.7e-7; of 10^6 draws about 91, 45, 0, .6.
    // Limits from Chernoff's bound for a Poisson count: each fails with probability below 1e-10.
    for (kind, low, high) in [
        (KINDS[0], 40, 170),
        (KINDS[1], 10, 105),
        (KINDS[2], 0, 0),
        (KINDS[3], 0, 15),
    ] {
        let lattice = kind(scale(1, 10));
        let mut noise = Seeded::new(4);
        let nonzero = (0..1_000_000)
            .filter(|_| noise.lattice(&lattice) != 0)
            .count();
        assert!(
            (low..=high).contains(&nonzero),
            "{} {nonzero}",
            lattice.name()
        );
    }
}

#[test]
fn zero_scale_is_no_noise_and_extreme_scales_end() {
    let mut noise = Seeded::new(5);
    for kind in KINDS {
        for s in [
            Scale::ZERO,
            scale(1, 1_000_000_000),
            Scale::at_least(&(ratio(1, u64::MAX) * ratio(1, u64::MAX))).unwrap(),
        ] {
            assert!((0..1000).all(|_| noise.lattice(&kind(s)) == 0));
        }
        let huge = Scale::at_least(&(ratio(u64::MAX, 1) * ratio(1 << 36, 1))).unwrap();
        assert!(
            (0..100)
                .map(|_| noise.lattice(&kind(huge)))
                .any(|k| k.unsigned_abs() > 1 << 90)
        );
    }
}

#[test]
fn every_scale_can_be_drawn_from() {
    // scales n/d 2^e over the whole range: no panic, and magnitudes of at most 100 standard deviations (e^-100 otherwise)
    let mut noise = Seeded::new(8);
    for i in 0..3000_usize {
        let power = dashu::integer::UBig::ONE << (i % 100);
        let x = ratio(noise.bits() >> 40 | 1, (noise.bits() >> (20 + i % 44)) | 1);
        let x = if i % 2 == 0 {
            x * Rational::from(power)
        } else {
            x / Rational::from(power)
        };
        let Ok(s) = Scale::at_least(&x) else {
            assert!(x > ratio(1 << 63, 1));
            continue;
        };
        for kind in KINDS {
            let k = noise.lattice(&kind(s));
            assert!(
                k.unsigned_abs() as f64 <= 100.0 * s.to_f64() + 1.0,
                "{s:?} {k}"
            );
        }
    }
}

#[test]
fn exceeds_is_a_draw_compared() {
    let lattice = Lattice::Laplace(scale(3, 1));
    let (mut a, mut b) = (Seeded::new(6), Seeded::new(6));
    for i in 0..1000_i128 {
        assert_eq!(
            a.exceeds(&lattice, i % 7 - 3),
            b.lattice(&lattice) >= i % 7 - 3
        );
    }
}

#[test]
fn words_drawn_do_not_tell_the_magnitude() {
    // lesson 7 without a clock: rounds of rejection are independent of what is finally kept. Correlation of 50,000 draws:
    // standard error .0045, limit six of them (false alarm about 2e-9 per kind by the normal law, fixed seed); a sampler that
    // counts up to its result has correlation near 1.
    for kind in KINDS {
        let lattice = kind(scale(50, 1));
        let mut noise = Recorder::new(Seeded::new(7));
        let (mut words, mut sizes) = (Vec::new(), Vec::new());
        let mut before = 0;
        for _ in 0..50_000 {
            sizes.push(noise.lattice(&lattice).unsigned_abs() as f64);
            words.push((noise.words().len() - before) as f64);
            before = noise.words().len();
        }
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let (mw, ms) = (mean(&words), mean(&sizes));
        let covariance: f64 = words
            .iter()
            .zip(&sizes)
            .map(|(w, s)| (w - mw) * (s - ms))
            .sum();
        let variances: f64 = words.iter().map(|w| (w - mw).powi(2)).sum::<f64>()
            * sizes.iter().map(|s| (s - ms).powi(2)).sum::<f64>();
        assert!(
            covariance.abs() <= 0.027 * variances.sqrt() || variances == 0.0,
            "{}",
            lattice.name()
        );
    }
}
