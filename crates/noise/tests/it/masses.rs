//! Mass functions against independent sums and golden values.

use reticent_laws::Law;
use reticent_noise::{Lattice, Scale};
use serde_json::Value;

use crate::tools::{close, ratio, scale};

pub(crate) fn golden() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../golden/distributions.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub(crate) fn floats(v: &Value) -> Vec<f64> {
    v.as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_f64().unwrap())
        .collect()
}

fn all(s: Scale) -> [Lattice; 4] {
    [
        Lattice::Laplace(s),
        Lattice::Geometric(s),
        Lattice::DiscreteGaussian(s),
        Lattice::RoundedGaussian(s),
    ]
}

#[test]
fn laplace_matches_the_golden_values() {
    for case in golden()["discrete_laplace"].as_array().unwrap() {
        let eps = case["eps_over_sensitivity"].as_f64().unwrap();
        let (n, d) = [(0.1, (10, 1)), (0.5, (2, 1)), (1.0, (1, 1)), (2.0, (1, 2))]
            .into_iter()
            .find(|(e, _)| *e == eps)
            .unwrap()
            .1;
        let lattice = Lattice::Laplace(scale(n, d));
        for ((k, pmf), cdf) in floats(&case["k"])
            .into_iter()
            .zip(floats(&case["pmf"]))
            .zip(floats(&case["cdf"]))
        {
            let k = k as i128;
            assert!(close(lattice.mass(k), pmf, 1e-12), "{eps} {k}");
            assert!(close(lattice.lower_tail(k + 1), cdf, 1e-12), "{eps} {k}");
        }
        let variance = case["variance"].as_f64().unwrap();
        assert!(close(lattice.std_dev().powi(2), variance, 1e-11), "{eps}");
    }
}

/// On a fine grid the discrete law is the continuous one: the golden values of scipy's Laplace law to 1e-6.
#[test]
fn laplace_tends_to_the_continuous_law() {
    let steps = 1_000_000_i128;
    for case in golden()["laplace"].as_array().unwrap() {
        let b = case["scale"].as_f64().unwrap();
        let lattice = Lattice::Laplace(scale((b * steps as f64).round() as u64, 1));
        let cell = |x: f64| (x * steps as f64).round() as i128;
        for ((x, cdf), pdf) in floats(&case["x"])
            .into_iter()
            .zip(floats(&case["cdf"]))
            .zip(floats(&case["pdf"]))
        {
            let below = lattice.lower_tail(cell(x)) + lattice.mass(cell(x)) / 2.0;
            assert!(close(below, cdf, 1e-6), "{b} {x}: {below}");
            let density = lattice.mass(cell(x)) * steps as f64;
            assert!(close(density, pdf, 1e-6), "{b} {x}: {density}");
        }
        for (p, quantile) in floats(&case["p"])
            .into_iter()
            .zip(floats(&case["quantile"]))
        {
            let below = lattice.lower_tail(cell(quantile)) + lattice.mass(cell(quantile)) / 2.0;
            assert!(close(below, p, 1e-5), "{b} {p}: {below}");
        }
    }
}

/// The largest ε at which the composition of `times` draws still costs δ, from the exact law of the discrete Laplace
/// noise on a grid of `steps` per unit of sensitivity: losses are whole multiples of 2/b but for the two ends.
fn composed_epsilon(b: f64, times: u32, delta: f64, steps: usize) -> f64 {
    let lattice = Lattice::Laplace(scale((b * steps as f64).round() as u64, 1));
    // the noise z costs (|z − n| − |z|)/(nb): 1/b below 0, −1/b from n on, and n + 1 steps of 2/(nb) between
    let n = steps as i128;
    let one: Vec<f64> = (0..=n)
        .map(|z| {
            if z == 0 {
                lattice.lower_tail(1)
            } else if z == n {
                lattice.upper_tail(n)
            } else {
                lattice.mass(z)
            }
        })
        .collect();
    let convolve = |a: &[f64], b: &[f64]| {
        let mut sum = vec![0.0; a.len() + b.len() - 1];
        for (i, x) in a.iter().enumerate() {
            for (s, y) in sum[i..].iter_mut().zip(b) {
                *s += x * y;
            }
        }
        sum
    };
    let (mut all, mut power, mut left) = (vec![1.0], one, times);
    while left > 0 {
        if left & 1 == 1 {
            all = convolve(&all, &power);
        }
        left >>= 1;
        if left > 0 {
            power = convolve(&power, &power);
        }
    }
    let most = f64::from(times) / b;
    let loss = |i: usize| most - 2.0 * i as f64 / (steps as f64 * b);
    let cost = |epsilon: f64| {
        all.iter()
            .enumerate()
            .map(|(i, p)| p * -(epsilon - loss(i)).exp_m1().min(0.0))
            .sum::<f64>()
    };
    let (mut low, mut high) = (0.0, most);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if cost(middle) > delta {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// dp-accounting's privacy loss distributions of composed Laplace noise, from our law alone: at a δ the composition costs what
/// they say. Our price of it in pure ε is their `basic_epsilon`, which is more where many draws are composed.
#[test]
fn composed_laplace_agrees_with_dp_accounting() {
    let cases = &golden()["dp_accounting"]["cases"];
    let mut seen = 0;
    for case in cases.as_array().unwrap() {
        if !case["mechanism"].as_str().unwrap().starts_with("laplace") {
            continue;
        }
        seen += 1;
        let real = |key: &str| case[key].as_f64().unwrap();
        let times = case["compositions"].as_u64().unwrap() as u32;
        assert!(close(
            f64::from(times) / real("parameter"),
            real("basic_epsilon"),
            1e-12
        ));
        let found = composed_epsilon(real("parameter"), times, real("delta"), 200);
        // theirs rounds losses up to multiples of 1e-4 or so
        assert!(close(found, real("pld_epsilon"), 1e-3), "{case}: {found}");
        assert!(found <= real("basic_epsilon"));
    }
    assert_eq!(seen, 4);
}

#[test]
fn gaussians_match_the_golden_normal_quantiles() {
    let normal = &golden()["normal"];
    let sigma = 1_000_000_000_000_u64;
    for (p, q) in floats(&normal["p"])
        .into_iter()
        .zip(floats(&normal["quantile"]))
    {
        let k = (q * sigma as f64).round() as i128;
        for d in [
            Lattice::DiscreteGaussian(scale(sigma, 1)),
            Lattice::RoundedGaussian(scale(sigma, 1)),
        ] {
            assert!(close(d.lower_tail(k), p, 1e-9), "{} {p}", d.name());
        }
    }
    // 1.959964 sigma
    assert!(close(
        Lattice::RoundedGaussian(scale(sigma, 1)).quantile_95(),
        1.959_963_984_540_054e12,
        1e-9
    ));
    assert!(close(
        Lattice::DiscreteGaussian(scale(sigma, 1)).quantile_95(),
        1.959_963_984_540_054e12,
        1e-9
    ));
}

#[test]
fn masses_sum_to_tails_means_and_one() {
    for (n, d) in [
        (1, 10),
        (1, 3),
        (9, 10),
        (1, 1),
        (7, 5),
        (4, 1),
        (37, 1),
        (600, 1),
    ] {
        for lattice in all(scale(n, d)) {
            let label = format!("{} {n}/{d}", lattice.name());
            let far = lattice.radius(1e-16) + 5;
            let low = if matches!(lattice, Lattice::Geometric(_)) {
                0
            } else {
                -far
            };
            let masses: Vec<(i128, f64)> = (low..=far).map(|k| (k, lattice.mass(k))).collect();
            let total: f64 = masses.iter().map(|(_, m)| m).sum();
            assert!(close(total, 1.0, 1e-12), "{label} {total}");
            let mean: f64 = masses.iter().map(|(k, m)| *k as f64 * m).sum();
            let variance: f64 = masses
                .iter()
                .map(|(k, m)| (*k as f64 - mean).powi(2) * m)
                .sum();
            assert!(
                close(lattice.std_dev(), variance.sqrt(), 1e-9),
                "{label} {} {}",
                lattice.std_dev(),
                variance.sqrt()
            );
            for k in [
                -2,
                -1,
                0,
                1,
                2,
                i128::from(n / d),
                i128::from(3 * n / d + 1),
            ] {
                let above: f64 = masses.iter().filter(|(j, _)| *j >= k).map(|(_, m)| m).sum();
                assert!(
                    (lattice.upper_tail(k) - above).abs() <= 1e-12,
                    "{label} {k}"
                );
                assert!(
                    (lattice.upper_tail(k) + lattice.lower_tail(k) - 1.0).abs() <= 1e-13,
                    "{label} {k}"
                );
            }
            let q = lattice.quantile_95() as i128;
            assert!(
                lattice.outside(q) <= 0.05 && (q == 0 || lattice.outside(q - 1) > 0.05),
                "{label} {q}"
            );
        }
    }
}

#[test]
fn mass_of_rounded_gaussian_sums() {
    // the two formulas of the mass agree where they meet, and with a plain midpoint sum of the density
    for (sigma, k) in [
        (1.0_f64, 0_i128),
        (1.0, 1),
        (3.0, 4),
        (3.0, 5),
        (20.0, 199),
        (20.0, 201),
        (512.5, 700),
    ] {
        let lattice = Lattice::RoundedGaussian(scale((sigma * 2.0) as u64, 2));
        let steps = 20_000;
        let density = |x: f64| {
            (-0.5 * (x / sigma).powi(2)).exp() / (sigma * (2.0 * std::f64::consts::PI).sqrt())
        };
        let sum: f64 = (0..steps)
            .map(|i| density(k as f64 - 0.5 + (f64::from(i) + 0.5) / f64::from(steps)))
            .sum();
        assert!(
            close(lattice.mass(k), sum / f64::from(steps), 2e-10),
            "{sigma} {k}"
        );
    }
}

#[test]
fn tails_of_large_discrete_gaussians_match_sums() {
    // across the switch from summing to Euler-Maclaurin
    for s in [512_u64, 513, 5000] {
        let lattice = Lattice::DiscreteGaussian(scale(s, 1));
        for k in [1, s / 2, s, 3 * s, 7 * s] {
            let k = i128::from(k);
            let sum: f64 = (k..k + 12 * i128::from(s))
                .rev()
                .map(|j| lattice.mass(j))
                .sum();
            assert!(close(lattice.upper_tail(k), sum, 1e-12), "{s} {k}");
        }
    }
}

#[test]
fn extreme_scales_give_numbers() {
    let tiny = Scale::at_least(&(ratio(1, 1_000_000_000) * ratio(1, 1_000_000_000))).unwrap();
    let huge = Scale::at_least(&(ratio(u64::MAX, 1) * ratio(1 << 36, 1))).unwrap();
    for lattice in all(Scale::ZERO).into_iter().chain(all(tiny)) {
        assert_eq!(
            (
                lattice.mass(0),
                lattice.mass(1),
                lattice.std_dev(),
                lattice.quantile_95()
            ),
            (1.0, 0.0, 0.0, 0.0)
        );
        assert_eq!(
            (
                lattice.upper_tail(0),
                lattice.upper_tail(1),
                lattice.lower_tail(1)
            ),
            (1.0, 0.0, 1.0)
        );
    }
    for lattice in all(huge) {
        for k in [i128::MIN, -1, 0, 1, i128::MAX] {
            assert!(
                lattice.mass(k).is_finite() && (0.0..=1.0).contains(&lattice.upper_tail(k)),
                "{} {k}",
                lattice.name()
            );
        }
        assert!(
            lattice.quantile_95() > 2.0_f64.powi(100) && lattice.quantile_95() < 2.0_f64.powi(103)
        );
        assert!(lattice.std_dev() > 2.0_f64.powi(99));
    }
}
