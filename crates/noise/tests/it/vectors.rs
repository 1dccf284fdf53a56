//! Gamma-norm vectors.

use reticent_laws::{Seeded, Silent};
use reticent_noise::{GammaNorm, Noise, Rational};

use crate::masses::{floats, golden};
use crate::tools::{fits, ratio};

fn draws(d: &GammaNorm, n: usize, seed: u64) -> Vec<Vec<i128>> {
    let mut noise = Seeded::stream(seed, 4);
    (0..n).map(|_| noise.vector(d)).collect()
}

fn norm(v: &[i128], unit: f64) -> f64 {
    v.iter()
        .map(|&x| (x as f64 * unit).powi(2))
        .sum::<f64>()
        .sqrt()
}

#[test]
fn vector_of_one_dimension_is_a_rounded_laplace() {
    // scale 3/4, step 1/2: P(k) = 1 - e^(-1/3) at 0 and e^(-2|k|/3) sinh(1/3) else. False alarm below 1e-9;
    // the control is a scale 5 % larger.
    let d = GammaNorm {
        dimension: 1,
        scale: ratio(3, 4),
        bits: 1,
    };
    let mut counts = vec![0_u64; 41];
    for v in draws(&d, 60_000, 1) {
        counts[usize::try_from(v[0].clamp(-20, 20) + 20).unwrap()] += 1;
    }
    let masses = |step: f64| -> Vec<f64> {
        // step in units of the scale
        let mass = |k: i32| {
            if k == 0 {
                1.0 - (-step / 2.0).exp()
            } else {
                (-step * f64::from(k.abs())).exp() * (step / 2.0).sinh()
            }
        };
        (-20..=20).map(mass).collect()
    };
    assert!(fits(&counts, &masses(2.0 / 3.0)));
    assert!(!fits(&counts, &masses(2.0 / 3.0 / 1.05)));
}

#[test]
fn vector_norm_and_direction() {
    for case in golden()["gamma_norm"].as_array().unwrap() {
        let dimension = usize::try_from(case["d"].as_u64().unwrap()).unwrap();
        let n = if dimension > 20 { 4000 } else { 20_000 };
        let d = GammaNorm {
            dimension,
            scale: ratio(5, 2),
            bits: 20,
        };
        let vectors = draws(&d, n, 2);
        let unit = 2.5 * 2.0_f64.powi(20);
        let norms: Vec<f64> = vectors.iter().map(|v| norm(v, 1.0 / unit)).collect();
        // norm: cells between the golden quantiles of Gamma(d, 1); false alarm below 1e-9
        let (p, quantiles) = (floats(&case["p"]), floats(&case["quantile"]));
        let counts = |stretch: f64| {
            let mut counts = vec![0_u64; p.len() + 1];
            for x in &norms {
                counts[quantiles.partition_point(|q| *q <= x * stretch)] += 1;
            }
            counts
        };
        let mut masses = vec![p[0]];
        masses.extend(p.windows(2).map(|w| w[1] - w[0]));
        masses.push(1.0 - p[p.len() - 1]);
        assert!(fits(&counts(1.0), &masses), "norm, dimension {dimension}");
        // control: 10 % for dimension 1 (least sharp), 5 % else
        assert!(
            !fits(&counts(if dimension < 3 { 1.1 } else { 1.05 }), &masses),
            "control, dimension {dimension}"
        );
        // mean of the norm is d, variance d: six standard errors
        let mean = norms.iter().sum::<f64>() / n as f64;
        assert!(
            (mean - dimension as f64).abs() < 6.2 * (dimension as f64 / n as f64).sqrt(),
            "mean, dimension {dimension}"
        );
        // direction: E v_i / |v| = 0 and E (v_i / |v|)² = 1/d for every coordinate, six standard errors
        for i in 0..dimension {
            let cosines: Vec<f64> = vectors
                .iter()
                .zip(&norms)
                .map(|(v, r)| v[i] as f64 / unit / r.max(1e-9))
                .collect();
            let first = cosines.iter().sum::<f64>() / n as f64;
            assert!(
                first.abs() < 6.5 / (dimension as f64 * n as f64).sqrt(),
                "dimension {dimension}, {i}: {first}"
            );
            if dimension > 1 {
                let second =
                    cosines.iter().map(|c| c * c).sum::<f64>() / n as f64 * dimension as f64;
                assert!(
                    (second - 1.0).abs() < 6.5 * (2.0 / n as f64).sqrt(),
                    "dimension {dimension}, {i}: {second}"
                );
            }
        }
    }
}

#[test]
fn direction_is_uniform_in_the_plane() {
    // sixteen sectors of equal angle; false alarm below 1e-9; independent uniform coordinates on a square would be caught
    let d = GammaNorm {
        dimension: 2,
        scale: ratio(1, 1),
        bits: 40,
    };
    let mut counts = [0_u64; 16];
    for v in draws(&d, 30_000, 3) {
        let turn = (v[1] as f64).atan2(v[0] as f64) / std::f64::consts::TAU + 0.5;
        counts[((turn * 16.0) as usize).min(15)] += 1;
    }
    assert!(fits(&counts, &[1.0 / 16.0; 16]));
}

#[test]
fn precision_only_refines() {
    // the same bits on a lattice 2^30 times finer give the same real vector: they agree after rounding
    let coarse = GammaNorm {
        dimension: 4,
        scale: ratio(7, 3),
        bits: 10,
    };
    let fine = GammaNorm {
        bits: 40,
        ..coarse.clone()
    };
    for seed in 0..100 {
        let (a, b) = (
            draws(&coarse, 1, seed).remove(0),
            draws(&fine, 1, seed).remove(0),
        );
        for (x, y) in a.iter().zip(&b) {
            assert_eq!(*x, (y + (1 << 29)) >> 30);
        }
    }
}

#[test]
fn degenerate_vectors() {
    let mut noise = Seeded::new(5);
    let d = GammaNorm {
        dimension: 3,
        scale: Rational::ZERO,
        bits: 10,
    };
    assert_eq!(noise.vector(&d), vec![0; 3]);
    assert_eq!(
        noise.vector(&GammaNorm {
            dimension: 0,
            scale: ratio(1, 1),
            bits: 10
        }),
        Vec::<i128>::new()
    );
    assert_eq!(
        Silent.vector(&GammaNorm {
            dimension: 2,
            scale: ratio(1, 1),
            bits: 10
        }),
        vec![0; 2]
    );
    let negative = GammaNorm {
        dimension: 3,
        scale: -ratio(1, 2),
        bits: 30,
    };
    assert!(noise.vector(&negative).iter().all(|&x| x != 0));
    let wide = GammaNorm {
        dimension: 2,
        scale: ratio(u64::MAX, 1),
        bits: 100,
    };
    assert!(
        noise
            .vector(&wide)
            .iter()
            .all(|x| x.unsigned_abs() > 1 << 120)
    );
}
