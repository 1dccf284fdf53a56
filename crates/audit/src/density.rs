//! Method D: losses of real-valued mechanisms from their densities, on a grid or in closed form.

/// The largest |ln p − ln q| over grid points, and where.
pub fn worst_on_grid(
    log_p: impl Fn(&[f64]) -> f64,
    log_q: impl Fn(&[f64]) -> f64,
    grid: impl IntoIterator<Item = Vec<f64>>,
) -> (f64, Vec<f64>) {
    let mut worst = (0.0, Vec::new());
    for point in grid {
        let loss = (log_p(&point) - log_q(&point)).abs();
        if loss > worst.0 {
            worst = (loss, point);
        }
    }
    worst
}

/// A record of a logistic regression, with how often it occurs.
#[derive(Clone, Debug, PartialEq)]
pub struct Labelled {
    /// Covariates, intercept coordinate included.
    pub x: Vec<f64>,
    /// +1 or −1.
    pub y: f64,
    /// Multiplicity.
    pub times: f64,
}

/// The log density (up to a constant that does not depend on the data) of the exact minimiser of
/// Σ ln(1+e^{−y w·x}) + (Λ/2)‖w‖² + b·w at `w`, where b has density ∝ e^{−‖b‖/τ}: −‖b_D(w)‖/τ + ln det H_D(w).
pub fn objective_log_density(w: &[f64], rows: &[Labelled], penalty: f64, tau: f64) -> f64 {
    let p = w.len();
    let mut gradient: Vec<f64> = w.iter().map(|w| penalty * w).collect();
    let mut hessian = vec![vec![0.0; p]; p];
    for (i, row) in hessian.iter_mut().enumerate() {
        row[i] = penalty;
    }
    for r in rows {
        let z: f64 = r.y * r.x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>();
        let s = 1.0 / (1.0 + libm::exp(z));
        for i in 0..p {
            gradient[i] -= r.times * r.y * s * r.x[i];
            for (h, x) in hessian[i].iter_mut().zip(&r.x) {
                *h += r.times * s * (1.0 - s) * r.x[i] * x;
            }
        }
    }
    let norm = libm::sqrt(gradient.iter().map(|g| g * g).sum());
    log_determinant(hessian) - norm / tau
}

/// ln det of a positive definite matrix, by elimination.
pub fn log_determinant(mut m: Vec<Vec<f64>>) -> f64 {
    let p = m.len();
    let mut log = 0.0;
    for k in 0..p {
        log += libm::log(m[k][k]);
        let pivot = m[k].clone();
        for row in &mut m[k + 1..] {
            let factor = row[k] / pivot[k];
            for (a, b) in row.iter_mut().zip(&pivot) {
                *a -= factor * b;
            }
        }
    }
    log
}

/// The exact δ of Gaussian noise at ε: Φ(Δ/2σ − εσ/Δ) − e^ε·Φ(−Δ/2σ − εσ/Δ).
pub fn gaussian_delta(sigma: f64, epsilon: f64, sensitivity: f64) -> f64 {
    let (a, b) = (sensitivity / (2.0 * sigma), epsilon * sigma / sensitivity);
    phi(a - b) - libm::exp(epsilon + libm::log(phi(-a - b)))
}

/// The smallest σ at which Gaussian noise is (ε, δ)-private.
pub fn gaussian_sigma(epsilon: f64, delta: f64, sensitivity: f64) -> f64 {
    turn(1e-6, 1e9, |s| {
        gaussian_delta(s, epsilon, sensitivity) <= delta
    })
}

/// The smallest ε at which Gaussian noise of deviation σ is (ε, δ)-private.
pub fn gaussian_epsilon(sigma: f64, delta: f64, sensitivity: f64) -> f64 {
    turn(1e-9, 500.0, |e| {
        gaussian_delta(sigma, e, sensitivity) <= delta
    })
}

fn phi(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// Where a condition becomes true, by bisection on a logarithmic scale.
fn turn(low: f64, high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (libm::log(low), libm::log(high));
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if holds(libm::exp(middle)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    libm::exp(high)
}
