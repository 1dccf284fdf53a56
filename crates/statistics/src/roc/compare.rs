//! Differences of areas between models on one plot.
//!
//! Every model is measured with noise of its own, so the noise of two areas is independent; the records are the same. Two questions
//! are kept apart. *These records*: is the difference more than noise? *Other records*: the variances of Hanley and McNeil (1982) for
//! both areas are added as if the areas were uncorrelated. Areas of two models of one outcome are positively correlated as a rule,
//! and then this p-value is too large, never too small.
//!
//! # Claim
//! Approximately: if two models have the same area on these records, `p_these_records` is below α in at most a share α of releases, at every size
//! of the noise; `p_value` is never smaller.
//! # Noise
//! I(z) is the interval of `interval` at z deviations of one model's noise, widened by the unknown shape within bins. At the true
//! area the two standardised sums are independent, u and v; the difference d is kept at z if there are areas x ∈ I₁(z·cos θ) and
//! y ∈ I₂(z·sin θ) with x − y = d, 0 ≤ θ ≤ π/2: the pairs of areas whose sum of squares is at most z². Where the noise is small against the
//! totals this is |x − y − d| ≤ z·√(σ₁² + σ₂²), because the largest σ₁·cos θ + σ₂·sin θ is the root of the sum of squares. Where the totals may be
//! noise, I(z) is all of [0, 1] and nothing is excluded. Sampling enters as a third such part.
//! p is the largest tail, at the smallest z that keeps 0, among those of a normal and of a single Laplace noise: max(2Φ(−z), e^{−√2·z}). At z = 2.12
//! it is .05, so p < .05 exactly if 0 is outside the interval.
//! # Checked by
//! `roc::{comparisons_are_honest, differences_are_found}`, `compare::tests::small_noise_adds_in_squares`
//! # References
//! Fieller 1954; Hanley, McNeil 1982

use serde_json::{Value, json};

use super::binormal::cumulative;
use super::curve::Shape;
use super::interval::Z;
use crate::common::{clipped, number, size};

/// Directions θ between the two models.
const DIRECTIONS: u32 = 48;
/// No smaller p-value is told apart from 0: e^{−√2·20} is below 10⁻¹².
const MOST: f64 = 20.0;
/// Intervals are tabulated for every 1/100 deviation and looked up at the next larger one.
const STEPS: usize = 100;

/// Intervals of one area by z.
struct Table(Vec<(f64, f64)>);

impl Table {
    fn new(shape: &Shape) -> Option<Self> {
        // MOST deviations
        (0..=20 * STEPS)
            .map(|k| shape.interval_at(size(k) / size(STEPS)))
            .collect::<Option<_>>()
            .map(Self)
    }

    fn at(&self, z: f64) -> (f64, f64) {
        let k = clipped((z * size(STEPS) - 1e-9).ceil(), 0, u32::MAX) as usize;
        self.0.get(k).copied().unwrap_or((0.0, 1.0))
    }
}

/// All pairs.
pub(super) fn all(names: &[&str], shapes: &[Shape]) -> Value {
    let tables: Vec<Option<Table>> = if shapes.len() > 1 {
        shapes.iter().map(Table::new).collect()
    } else {
        Vec::new()
    };
    let mut pairs = Vec::new();
    for (i, (a, first)) in shapes.iter().zip(&tables).enumerate() {
        for (j, (b, second)) in shapes.iter().zip(&tables).enumerate().skip(i + 1) {
            let mut value = json!({
                "first": names[i],
                "second": names[j],
                "difference": number(a.auc - b.auc),
                "low": Value::Null,
                "high": Value::Null,
                "p_these_records": Value::Null,
                "p_value": Value::Null,
            });
            if let (Some(first), Some(second), Value::Object(map)) = (first, second, &mut value) {
                let sampling = (variance(a) + variance(b)).sqrt();
                for (key, x) in pair(&|z| first.at(z), &|z| second.at(z), sampling) {
                    map.insert(key.to_owned(), number(x));
                }
            }
            pairs.push(value);
        }
    }
    Value::Array(pairs)
}

type Intervals<'a> = &'a dyn Fn(f64) -> (f64, f64);

fn pair(first: Intervals<'_>, second: Intervals<'_>, sampling: f64) -> [(&'static str, f64); 6] {
    let kept = |z: f64| differences(first, second, z);
    let sampled = |z: f64| {
        let parts = (0..=DIRECTIONS / 4).map(|k| turn(k, DIRECTIONS / 4));
        hull(parts.map(|(c, s)| {
            let (low, high) = kept(z * c);
            (low - z * s * sampling, high + z * s * sampling)
        }))
    };
    let (noise, both) = (kept(Z), sampled(Z));
    let p_noise = p(smallest(&kept));
    [
        ("low", noise.0.max(-1.0)),
        ("high", noise.1.min(1.0)),
        ("sampling_low", both.0.max(-1.0)),
        ("sampling_high", both.1.min(1.0)),
        ("p_these_records", p_noise),
        ("p_value", p(smallest(&sampled)).max(p_noise)),
    ]
}

/// Cosine and sine of a part of a right angle.
fn turn(k: u32, of: u32) -> (f64, f64) {
    let angle = std::f64::consts::FRAC_PI_2 * f64::from(k) / f64::from(of);
    (angle.cos(), angle.sin())
}

fn hull(parts: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    parts.fold((f64::INFINITY, f64::NEG_INFINITY), |h, p| {
        (h.0.min(p.0), h.1.max(p.1))
    })
}

/// The differences kept at z, from the intervals of both areas at every z.
fn differences(first: Intervals<'_>, second: Intervals<'_>, z: f64) -> (f64, f64) {
    hull((0..=DIRECTIONS).map(|k| {
        let (c, s) = turn(k, DIRECTIONS);
        let (a, b) = (first(z * c), second(z * s));
        (a.0 - b.1, a.1 - b.0)
    }))
}

/// The smallest z at which no difference is among those kept; at most [`MOST`].
fn smallest(kept: Intervals<'_>) -> f64 {
    let holds = |z: f64| {
        let (low, high) = kept(z);
        low <= 0.0 && 0.0 <= high
    };
    if holds(0.0) {
        return 0.0;
    }
    let (mut out, mut inside) = (0.0, MOST);
    for _ in 0..40 {
        let middle = 0.5 * (out + inside);
        if holds(middle) {
            inside = middle;
        } else {
            out = middle;
        }
    }
    // the smaller end: a p-value is rounded up
    out
}

/// The larger of the two-sided tails of a normal and of a Laplace noise, z deviations out.
fn p(z: f64) -> f64 {
    let laplace = (-std::f64::consts::SQRT_2 * z).exp();
    (2.0 * cumulative(-z)).max(laplace).min(1.0)
}

/// Sampling variance of an area (Hanley and McNeil 1982): the largest for the areas of its interval, with the totals less 2.12
/// deviations of their noise.
fn variance(shape: &Shape) -> f64 {
    let total = |v: &[f64], deviations: &[f64]| {
        let noise = deviations.last().copied().unwrap_or(0.0);
        (v.iter().sum::<f64>() - Z * noise).max(1.0)
    };
    let n0 = total(&shape.tally.negatives, &shape.deviations.0);
    let n1 = total(&shape.tally.positives, &shape.deviations.1);
    let (low, high) = shape.interval.unwrap_or((0.0, 1.0));
    let of = |a: f64| {
        let (q1, q2) = (a / (2.0 - a), 2.0 * a * a / (1.0 + a));
        let sum = a * (1.0 - a) + (n1 - 1.0) * (q1 - a * a) + (n0 - 1.0) * (q2 - a * a);
        (sum / (n0 * n1)).max(0.0)
    };
    (0..=32_usize)
        .map(|k| of(low + (high - low) * size(k) / 32.0))
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two areas .8 ± .03 and .75 ± .04 per deviation: the difference is .05 ± .05, found to the accuracy of 48 directions.
    #[test]
    fn small_noise_adds_in_squares() {
        let first = |z: f64| (0.8 - 0.03 * z, 0.8 + 0.03 * z);
        let second = |z: f64| (0.75 - 0.04 * z, 0.75 + 0.04 * z);
        let kept = |z: f64| differences(&first, &second, z);
        let (low, high) = kept(2.0);
        assert!((low + 0.05).abs() < 1e-4 && (high - 0.15).abs() < 1e-4);
        let z = smallest(&kept);
        assert!((z - 1.0).abs() < 1e-3 && z <= 1.0 + 1e-3, "{z}");
        assert!((p(z) - 0.3173).abs() < 1e-3);
        assert!(p(Z) <= 0.05 && p(Z - 0.01) > 0.05);
        assert!((p(0.0) - 1.0).abs() < 1e-12);
        let everything = |_: f64| (0.0, 1.0);
        assert!(smallest(&|z| differences(&first, &everything, z)) < 1e-9);
        let nothing = |_: f64| (0.3, 0.3);
        let certain = smallest(&|z| differences(&nothing, &|_| (0.9, 0.9), z));
        assert!(p(certain) < 1e-11);
    }
}
