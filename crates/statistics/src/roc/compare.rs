//! Differences of areas between models on one plot.
//!
//! Every model is measured with noise of its own, so the noise of two areas is independent; the records are the same. Two questions
//! are kept apart. *These records*: is the difference more than noise? The replicated errors of the two areas, paired at random, give
//! a rank p-value, with the part of the difference that the unknown shape within bins could make taken off first. *Other records*:
//! the variances of Hanley and McNeil (1982) for both areas and the noise are added as if the areas were uncorrelated. Areas of two models of one outcome
//! are positively correlated as a rule, and then this p-value is too large, never too small.

use serde_json::{Value, json};

use super::binormal::{cumulative, quantile};
use super::curve::Shape;
use crate::common::{number, size};

/// All pairs.
pub(super) fn all(names: &[&str], shapes: &[Shape]) -> Value {
    let mut pairs = Vec::new();
    for (i, a) in shapes.iter().enumerate() {
        for (j, b) in shapes.iter().enumerate().skip(i + 1) {
            pairs.push(pair((names[i], a), (names[j], b)));
        }
    }
    Value::Array(pairs)
}

fn pair((first, a): (&str, &Shape), (second, b): (&str, &Shape)) -> Value {
    let difference = a.auc - b.auc;
    let mut value = json!({
        "first": first,
        "second": second,
        "difference": number(difference),
        "low": Value::Null,
        "high": Value::Null,
        "p_these_records": Value::Null,
        "p_value": Value::Null,
    });
    if a.interval.is_none() || b.interval.is_none() {
        return value;
    }
    let slack = a.unknown + b.unknown;
    // 7 is prime to 400: seven pairings of each replication of one with one of the other
    let n = a.errors.len().min(b.errors.len());
    let mut errors: Vec<f64> = (0..7)
        .flat_map(|shift| (0..n).map(move |i| (i, (i * 7 + shift * 57) % n.max(1))))
        .map(|(i, j)| a.errors[i] - b.errors[j])
        .collect();
    let beyond = errors
        .iter()
        .filter(|e| e.abs() + slack >= difference.abs())
        .count();
    // the replications of one model are 400: no smaller p-value can be told
    let p_noise = (size(beyond) / size(errors.len().max(1))).max(1.0 / (size(n) + 1.0));
    let noise = errors.iter().map(|e| e * e).sum::<f64>() / size(errors.len().max(1));
    errors.sort_by(f64::total_cmp);
    let at = |q: f64| {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index below the length"
        )]
        let i = (q * size(errors.len().saturating_sub(1))).round() as usize;
        errors.get(i).copied().unwrap_or(0.0)
    };
    let sampling = variance(a) + variance(b);
    let z = ((difference.abs() - slack).max(0.0)) / (sampling + noise).sqrt().max(1e-300);
    let p_value = (2.0 * cumulative(-z)).min(1.0).max(p_noise);
    let half = quantile(0.975) * (sampling + noise).sqrt() + slack;
    if let Value::Object(map) = &mut value {
        let low = difference - at(0.975).max(0.0) - slack;
        let high = difference - at(0.025).min(0.0) + slack;
        map.insert("low".to_owned(), number(low.max(-1.0)));
        map.insert("high".to_owned(), number(high.min(1.0)));
        map.insert(
            "sampling_low".to_owned(),
            number((difference - half).max(-1.0)),
        );
        map.insert(
            "sampling_high".to_owned(),
            number((difference + half).min(1.0)),
        );
        map.insert("p_these_records".to_owned(), number(p_noise));
        map.insert("p_value".to_owned(), number(p_value));
    }
    value
}

/// Sampling variance of an area (Hanley and McNeil 1982), from the released totals.
fn variance(shape: &Shape) -> f64 {
    let total = |v: &[f64]| v.iter().sum::<f64>().max(1.0);
    let (n0, n1) = (total(&shape.tally.negatives), total(&shape.tally.positives));
    let a = shape.auc.clamp(0.0, 1.0);
    let (q1, q2) = (a / (2.0 - a), 2.0 * a * a / (1.0 + a));
    let sum = a * (1.0 - a) + (n1 - 1.0) * (q1 - a * a) + (n0 - 1.0) * (q2 - a * a);
    (sum / (n0 * n1)).max(0.0)
}
