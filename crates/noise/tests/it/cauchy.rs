//! Cauchy draws against the distribution function, and at the ends of what they take.

use reticent_laws::{Seeded, Silent, Tape};
use reticent_noise::{Cauchy, Noise, Rational};

use crate::tools::fits;

fn ratio(n: i64, d: u64) -> Rational {
    Rational::from(n) / Rational::from(d)
}

/// Probability of a result below `edge`: P(location + scale C < edge − 1/2).
fn below(edge: i128, location: f64, scale: f64) -> f64 {
    0.5 + libm::atan((edge as f64 - 0.5 - location) / scale) / std::f64::consts::PI
}

/// The distribution function the draws are held to is that of `golden/distributions.json` (scipy).
#[test]
fn distribution_function_is_golden() {
    let golden = crate::masses::golden();
    let floats = |key: &str| crate::masses::floats(&golden["cauchy_quantile"][key]);
    for (p, q) in floats("p").into_iter().zip(floats("quantile")) {
        assert!(
            (below(0, -0.5 - q, 1.0) - p).abs() < 1e-15 * (1.0 + q.abs()),
            "{p}"
        );
    }
}

/// `fits` makes a false alarm of the whole file less likely than 1e-9; a scale 5 % off or a location .05 scales off is
/// caught.
#[test]
fn cauchy_follows_its_distribution() {
    for (i, (l, s)) in [
        ((0, 1), (5, 1)),
        ((1, 3), (1, 2)),
        ((-77, 10), (1000, 7)),
        ((5, 2), (1, 100)),
    ]
    .into_iter()
    .enumerate()
    {
        let (location, scale) = (l.0 as f64 / l.1 as f64, s.0 as f64 / s.1 as f64);
        let d = Cauchy {
            location: ratio(l.0, l.1),
            scale: ratio(s.0, s.1),
        };
        let mut edges: Vec<i128> = (-12..=12)
            .map(|k| (location + scale * libm::tan(f64::from(k) * 0.12)).round() as i128)
            .collect();
        edges.dedup();
        let mut noise = Seeded::stream(20, i as u64);
        let mut counts = vec![0_u64; edges.len() + 1];
        for _ in 0..40_000 {
            let k = noise.cauchy(&d);
            counts[edges.partition_point(|e| *e <= k)] += 1;
        }
        let law = |location: f64, scale: f64| -> Vec<f64> {
            let mut at: Vec<f64> = edges.iter().map(|e| below(*e, location, scale)).collect();
            at.push(1.0);
            let mut last = 0.0;
            at.iter()
                .map(|p| {
                    let mass = p - last;
                    last = *p;
                    mass
                })
                .collect()
        };
        assert!(fits(&counts, &law(location, scale)), "{d:?}");
        if scale > 0.4 {
            assert!(
                !fits(&counts, &law(location, scale * 1.1)),
                "{d:?}: control passed"
            );
            assert!(
                !fits(&counts, &law(location + 0.1 * scale, scale)),
                "{d:?}: control passed"
            );
        }
    }
}

/// The same bits at a finer grid and at a coarser one: both are roundings of one real value.
#[test]
fn cauchy_rounds_the_ideal_value() {
    let mut source = Seeded::new(21);
    for _ in 0..300 {
        let words: Vec<u64> = (0..64).map(|_| source.bits()).collect();
        let draw = |factor: i64| {
            Tape::new(words.clone()).cauchy(&Cauchy {
                location: ratio(1, 7) * Rational::from(factor),
                scale: ratio(2, 3) * Rational::from(factor),
            })
        };
        let (coarse, fine) = (draw(1), draw(1 << 40));
        let fine = fine as f64 / (1_u64 << 40) as f64;
        assert!(
            (coarse as f64 - fine).abs() <= 0.5 + 1e-9,
            "{coarse} {fine}"
        );
    }
}

#[test]
fn cauchy_extremes_are_total() {
    let mut noise = Seeded::new(22);
    let mut draw = |location: Rational, scale: Rational| noise.cauchy(&Cauchy { location, scale });
    // no scale: the location, halves upward
    assert_eq!(draw(ratio(5, 2), Rational::ZERO), 3);
    assert_eq!(draw(ratio(-5, 2), Rational::ZERO), -2);
    // far below the grid
    let tiny = ratio(1, 1) / Rational::from(dashu::integer::UBig::ONE << 3000_usize);
    for _ in 0..50 {
        assert_eq!(draw(ratio(1, 3), tiny.clone()), 0);
        // exactly on a rounding edge: either side, never stuck
        assert!((0..=1).contains(&draw(ratio(1, 2), tiny.clone())));
    }
    // beyond the width of the result
    let huge = Rational::from(dashu::integer::UBig::ONE << 400_usize);
    for _ in 0..50 {
        let k = draw(Rational::ZERO, huge.clone());
        assert!(k == i128::MAX || k == i128::MIN);
    }
    // the sign of a scale does not matter
    let d = |scale| Cauchy {
        location: Rational::ZERO,
        scale,
    };
    let (a, b) = (ratio(3, 1), ratio(-3, 1));
    assert_eq!(
        Seeded::new(5).cauchy(&d(a.clone())),
        Seeded::new(5).cauchy(&d(b))
    );
    assert_eq!(Silent.cauchy(&d(a)), 0);
}
