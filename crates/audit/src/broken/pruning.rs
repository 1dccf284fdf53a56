//! PRUNE (Chen thesis 2018, Algorithm 18): one path of a hierarchy, pruned at the first node whose noisy count is
//! below its own noisy threshold. Claimed ε for the whole path; the truth is (h − 1)·ε/2.

use reticent_laws::{Distribution, Window, enumerate};
use reticent_noise::{Noise, NoiseError, Rational};

use super::laplace;

/// One decision: whether the node is pruned. Both noises at scale 2/ε, drawn afresh for every node.
pub fn decision(
    count: i128,
    threshold: i128,
    epsilon: &Rational,
    noise: &mut dyn Noise,
) -> Result<bool, NoiseError> {
    let law = laplace(&(Rational::from(2u8) / epsilon))?;
    let level = threshold + noise.lattice(&law);
    Ok(!noise.exceeds(&law, level - count))
}

/// The level at which a path is pruned; its length if nowhere. `counts` are those of the h − 1 nodes whose decision
/// shows (pruning a leaf has no effect).
pub fn path(
    counts: &[i128],
    threshold: i128,
    epsilon: &Rational,
    noise: &mut dyn Noise,
) -> Result<usize, NoiseError> {
    for (level, count) in counts.iter().enumerate() {
        if decision(*count, threshold, epsilon, noise)? {
            return Ok(level);
        }
    }
    Ok(counts.len())
}

/// ln P(outcome) for every outcome of [`path`], from the exact law of one decision (decisions are independent).
pub fn log_law(
    counts: &[i128],
    threshold: i128,
    epsilon: &Rational,
) -> Result<Vec<f64>, NoiseError> {
    // a scale that cannot be had fails here, not inside the enumeration
    laplace(&(Rational::from(2u8) / epsilon))?;
    let mut log = 0.0;
    let mut outcomes = Vec::new();
    for count in counts {
        let law: Distribution<bool> = enumerate(Window::Tail(1e-18), |noise| {
            decision(*count, threshold, epsilon, noise).unwrap_or(false)
        });
        outcomes.push(log + libm::log(law.mass(&true)));
        log += libm::log(law.mass(&false));
    }
    outcomes.push(log);
    Ok(outcomes)
}

/// The exact worst loss of a path between two tables.
pub fn loss(
    a: &[i128],
    b: &[i128],
    threshold: i128,
    epsilon: &Rational,
) -> Result<f64, NoiseError> {
    let (p, q) = (
        log_law(a, threshold, epsilon)?,
        log_law(b, threshold, epsilon)?,
    );
    Ok(p.iter()
        .zip(&q)
        .map(|(p, q)| (p - q).abs())
        .fold(0.0, f64::max))
}

/// The same for continuous Laplace noise and "nothing pruned" on a path of `nodes` equal counts, `below` = threshold −
/// count: nodes·ln(S(below − 1)/S(below)), S(x) = P(Lap + Lap ≥ x) = ½e^{−x/b}(1 + x/(2b)), x ≥ 0, b = 2/ε.
pub fn continuous_loss(nodes: u32, below: f64, epsilon: f64) -> f64 {
    let log_tail = |x: f64| libm::log1p(0.25 * x * epsilon) - 0.5 * x * epsilon;
    f64::from(nodes) * (log_tail(below - 1.0) - log_tail(below))
}
