//! Regression models: second moments at the published sensitivity, logistic regression as PrivateLR does it.

use reticent_noise::{GammaNorm, Lattice, Noise, NoiseError, Rational, Scale};

use crate::density::{Labelled, gaussian_epsilon, objective_log_density};

/// The classical Gaussian deviation for the published sensitivity √d: √d·√(2 ln(1.25/δ))/ε.
pub fn published_deviation(d: u32, epsilon: f64, delta: f64) -> f64 {
    libm::sqrt(f64::from(d)) * libm::sqrt(2.0 * libm::log(1.25 / delta)) / epsilon
}

/// The true L2 sensitivity of the triangle of Σ(1,x)(1,x)ᵀ, x in the unit cube, one record added or removed.
pub fn true_sensitivity(d: u32) -> f64 {
    libm::sqrt(f64::from((d + 1) * (d + 2)) / 2.0)
}

/// The exact ε of the published noise at δ.
pub fn true_epsilon(d: u32, epsilon: f64, delta: f64) -> f64 {
    gaussian_epsilon(
        published_deviation(d, epsilon, delta),
        delta,
        true_sensitivity(d),
    )
}

/// The triangle of Σ(1,x)(1,x)ᵀ over `ones` records x = (1,…,1), with the published noise (correctly rounded).
pub fn second_moments(
    d: u32,
    ones: i128,
    deviation: f64,
    noise: &mut dyn Noise,
) -> Result<Vec<i128>, NoiseError> {
    let scale = Rational::try_from(deviation).unwrap_or_default();
    let law = Lattice::RoundedGaussian(Scale::at_least(&scale)?);
    let entries = (d + 1) * (d + 2) / 2;
    Ok((0..entries).map(|_| ones + noise.lattice(&law)).collect())
}

/// PrivateLR's constants at ε = 1 (intercept outside the unit ball): penalty Λ and scale of ‖b‖.
pub fn private_lr_constants() -> (f64, f64) {
    // λ = 1/(4n(e^{ε/20} − 1)), Λ = nλ; ε′ = ε − 2 ln(1 + 1/(4Λ)); ‖b‖ ~ Gamma(d, 2/ε′)
    let penalty = 0.25 / libm::expm1(0.05);
    let left = 1.0 - 2.0 * libm::log1p(0.25 / penalty);
    (penalty, 2.0 / left)
}

/// Exact loss of PrivateLR's density at one point for one replaced record: 6459 × (.77, +1), 6051 × (.93, −1), and
/// (1, +1) against (.7, −1), at w = (17, −20), the intercept first.
pub fn private_lr_intercept_loss() -> f64 {
    let (penalty, tau) = private_lr_constants();
    let record = |x: f64, y: f64, times: f64| Labelled {
        x: vec![1.0, x],
        y,
        times,
    };
    let common = [record(0.77, 1.0, 6459.0), record(0.93, -1.0, 6051.0)];
    let with = |r: Labelled| [common.to_vec(), vec![r]].concat();
    let density = |rows: &[Labelled]| objective_log_density(&[17.0, -20.0], rows, penalty, tau);
    (density(&with(record(1.0, 1.0, 1.0))) - density(&with(record(0.7, -1.0, 1.0)))).abs()
}

/// Logistic regression on one covariate, x = 1 throughout, by objective perturbation, as PrivateLR runs it: when all labels agree it
/// returns ½ and no noise is drawn. Else the minimiser, in floating point.
pub fn single_class_branch(labels: &[bool], noise: &mut dyn Noise) -> f64 {
    let (penalty, tau) = private_lr_constants();
    if labels.windows(2).all(|w| w[0] == w[1]) {
        return 0.5;
    }
    let law = GammaNorm {
        dimension: 1,
        scale: Rational::try_from(tau).unwrap_or_default(),
        bits: 30,
    };
    #[allow(clippy::cast_precision_loss, reason = "a draw in units of 2^-30")]
    let b = noise.vector(&law)[0] as f64 / f64::from(1 << 30);
    let gradient = |w: f64| {
        let data: f64 = labels
            .iter()
            .map(|y| {
                let y = if *y { 1.0 } else { -1.0 };
                -y / (1.0 + libm::exp(y * w))
            })
            .sum();
        data + penalty * w + b
    };
    let (mut low, mut high) = (-1e4, 1e4);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if gradient(middle) > 0.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    0.5 * (low + high)
}

/// Ridge regression on one covariate without a bound on the coefficient: its exact value on rows (x, y, how many).
pub fn ridge_without_a_ball(rows: &[(f64, f64, f64)], penalty: f64) -> f64 {
    let sum =
        |of: fn(f64, f64) -> f64| -> f64 { rows.iter().map(|(x, y, n)| n * of(*x, *y)).sum() };
    sum(|x, y| x * y) / (sum(|x, _| x * x) + penalty)
}
