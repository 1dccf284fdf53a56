//! What else the released counts say: operating points, decisions at a threshold, precision and recall, calibration.

use serde_json::{Value, json};

use super::curve::{Shape, fitted_sums};
use crate::common::number;

/// .95 half-widths of sums of Laplace noises in standard deviations: 2.12 for one, less for more.
const HALF: f64 = 2.12;
/// False positive rates at which a threshold is named.
const RATES: [f64; 4] = [0.01, 0.05, 0.1, 0.2];

/// Thresholds by three rules, among the released ones: largest true minus false positive rate (Youden), nearest to (0, 1), and the
/// most sensitive within a false positive rate. The bounds hold for all vertices together, so choosing among them is paid for.
pub(super) fn operating(shape: &Shape) -> Value {
    let inner = 1..shape.points.len().saturating_sub(1);
    let best = |score: &dyn Fn(f64, f64) -> f64| {
        inner.clone().max_by(|a, b| {
            let of = |k: &usize| shape.points.get(*k).map_or(f64::MIN, |p| score(p.0, p.1));
            of(a).total_cmp(&of(b))
        })
    };
    let mut all = Vec::new();
    let mut push = |rule: String, k: Option<usize>| {
        if let Some(point) = k.and_then(|k| vertex(shape, k, &rule)) {
            all.push(point);
        }
    };
    push("youden".to_owned(), best(&|f, t| t - f));
    push(
        "top_left".to_owned(),
        best(&|f, t| -(f * f + (1.0 - t) * (1.0 - t))),
    );
    for rate in RATES {
        let within = inner
            .clone()
            .rfind(|k| shape.points.get(*k).is_some_and(|p| p.0 <= rate));
        push(format!("fpr_at_most_{rate}"), within);
    }
    Value::Array(all)
}

fn vertex(shape: &Shape, k: usize, rule: &str) -> Option<Value> {
    let (f, t) = shape.points.get(k)?;
    let threshold = shape.tally.lows.get(k.checked_sub(1)?)?;
    let mut point = json!({
        "rule": rule,
        "threshold": number(*threshold),
        "fpr": number(*f),
        "tpr": number(*t),
    });
    if let (Some(bounds), Value::Object(map)) =
        (shape.bounds.as_ref().and_then(|b| b.get(k)), &mut point)
    {
        for (key, x) in [
            ("fpr_low", bounds.0.0),
            ("fpr_high", bounds.0.1),
            ("tpr_low", bounds.1.0),
            ("tpr_high", bounds.1.1),
        ] {
            map.insert(key.to_owned(), number(x));
        }
    }
    Some(point)
}

/// Counts of right and wrong decisions if a score of at least `threshold` counts as positive. A threshold inside a bin takes that part of
/// it that lies above on the probability scale; the interval then reaches from the bin's lower to its upper end. Intervals hold with
/// about .95 each; there are none if the counts err by more than the noise (adaptive histogram methods, label-separate quantiles).
pub(super) fn decision(shape: &Shape, threshold: f64) -> Value {
    let tally = shape.tally;
    let m = tally.lows.len();
    // bins 0..full lie at or above the threshold; bin `full` may hold it
    let full = tally
        .lows
        .iter()
        .take_while(|low| **low >= threshold)
        .count();
    let exact = full == m
        || full
            .checked_sub(1)
            .and_then(|k| tally.lows.get(k))
            .is_some_and(|low| (low - threshold).abs() < 1e-12);
    let above = if exact || full >= m {
        0.0
    } else {
        let low = tally.lows.get(full).copied().unwrap_or(0.0);
        let high = full
            .checked_sub(1)
            .and_then(|k| tally.lows.get(k))
            .copied()
            .unwrap_or(1.0);
        ((high - threshold) / (high - low).max(1e-300)).clamp(0.0, 1.0)
    };
    let next = if exact { full } else { (full + 1).min(m) };
    let side = |counts: &[f64], deviations: &[f64], below: &[f64]| {
        let sums = fitted_sums(counts);
        let at = |k: usize| {
            k.checked_sub(1)
                .and_then(|k| sums.get(k))
                .copied()
                .unwrap_or(0.0)
        };
        let deviation = |k: usize| {
            k.checked_sub(1)
                .and_then(|k| deviations.get(k))
                .copied()
                .unwrap_or(0.0)
        };
        let total = at(m);
        let yes = at(full) + above * (at(next) - at(full));
        let rest = |k: usize| below.get(k).copied().unwrap_or(0.0);
        // Intervals are those of the plain sums, whose errors are known, as far as the estimate lies in them.
        let plain = |k: usize| counts.iter().take(k).sum::<f64>();
        let left = |k: usize| counts.iter().skip(k).sum::<f64>();
        let no = total - yes;
        let yes_range = (
            (plain(full) - HALF * deviation(full)).max(0.0).min(yes),
            (plain(next) + HALF * deviation(next)).max(yes),
        );
        let no_range = (
            (left(next) - HALF * rest(next)).max(0.0).min(no),
            (left(full) + HALF * rest(full)).max(no),
        );
        ((yes, yes_range), (no, no_range))
    };
    let (tp, fnn) = side(&tally.positives, &shape.deviations.1, &shape.below.1);
    let (fp, tn) = side(&tally.negatives, &shape.deviations.0, &shape.below.0);
    let known = shape.known();
    let end = |x: f64| if known { number(x) } else { Value::Null };
    let shown = |(x, (low, high)): (f64, (f64, f64))| json!({"count": number(x), "low": end(low), "high": end(high)});
    let ratio = |a: f64, b: f64| {
        if b > 0.0 {
            number((a / b).clamp(0.0, 1.0))
        } else {
            Value::Null
        }
    };
    json!({
        "threshold": number(threshold),
        "between_released_thresholds": !exact,
        "true_positives": shown(tp),
        "false_positives": shown(fp),
        "false_negatives": shown(fnn),
        "true_negatives": shown(tn),
        "accuracy": ratio(tp.0 + tn.0, tp.0 + fp.0 + fnn.0 + tn.0),
        "precision": ratio(tp.0, tp.0 + fp.0),
        "recall": ratio(tp.0, tp.0 + fnn.0),
        "specificity": ratio(tn.0, tn.0 + fp.0),
        "f1": ratio(2.0 * tp.0, 2.0 * tp.0 + fp.0 + fnn.0),
    })
}

/// Precision against recall from the top score, and the average precision. Between vertices true and false positives are joined by
/// lines, which bends precision (Davis and Goadrich 2006).
pub(super) fn precision_recall(shape: &Shape) -> (Value, Value) {
    const PARTS: u32 = 16;
    let (positives, negatives) = (
        fitted_sums(&shape.tally.positives),
        fitted_sums(&shape.tally.negatives),
    );
    let total = positives.last().copied().unwrap_or(0.0);
    if total <= 0.0 {
        return (json!([]), Value::Null);
    }
    let mut curve = Vec::new();
    let (mut before, mut area) = ((0.0, 0.0), 0.0);
    for (k, now) in positives.iter().copied().zip(negatives).enumerate() {
        let precision = |share: f64| {
            let tp = before.0 + share * (now.0 - before.0);
            let fp = before.1 + share * (now.1 - before.1);
            (tp / total, if tp + fp > 0.0 { tp / (tp + fp) } else { 1.0 })
        };
        // at the very top the precision of the first bin, not of no record
        let mut last = precision(if k == 0 { 1e-9 } else { 0.0 });
        for part in 1..=PARTS {
            let here = precision(f64::from(part) / f64::from(PARTS));
            area += (here.0 - last.0) * 0.5 * (here.1 + last.1);
            last = here;
        }
        let threshold = shape.tally.lows.get(k).copied().unwrap_or(0.0);
        curve.push(json!({
            "threshold": number(threshold),
            "recall": number(last.0.clamp(0.0, 1.0)),
            "precision": number(last.1.clamp(0.0, 1.0)),
        }));
        before = now;
    }
    (Value::Array(curve), number(area.clamp(0.0, 1.0)))
}

/// Observed share of positives per bin of the score, with a .95 interval for sampling and noise, and whether it can agree with the scores:
/// the scores of a bin lie between its ends, so a calibrated model has its share between them too. Without an interval if the counts err by more
/// than the noise.
pub(super) fn calibration(shape: &Shape) -> Value {
    let tally = shape.tally;
    let mut top = 1.0;
    let mut all = Vec::new();
    for (k, low) in tally.lows.iter().enumerate() {
        let of = |v: &[f64]| v.get(k).copied().unwrap_or(0.0);
        let (positives, negatives) = (of(&tally.positives), of(&tally.negatives));
        let noise = (of(&shape.single.1), of(&shape.single.0));
        let records = positives + negatives;
        let known = records > HALF * noise.0.hypot(noise.1);
        let range = (known && shape.known()).then(|| shares(positives, negatives, noise));
        let rate = (positives.max(0.0) / records).clamp(0.0, 1.0);
        let optional = |x: Option<f64>| x.map_or(Value::Null, number);
        all.push(json!({
            "score_low": number(*low),
            "score_high": number(top),
            "records": number(records),
            "positive_share": optional(known.then_some(rate)),
            "low": optional(range.map(|r| r.0)),
            "high": optional(range.map(|r| r.1)),
            "agrees": range.map(|r| r.0 <= top && *low <= r.1),
        }));
        top = *low;
    }
    Value::Array(all)
}

/// All shares t with |(1−t)P − tN| within 2.12 deviations of noise (1−t)²σ² + t²τ² and sampling nt(1−t), on a grid of 1/2000: the
/// interval of test inversion.
fn shares(positives: f64, negatives: f64, noise: (f64, f64)) -> (f64, f64) {
    let n = (positives + negatives).max(0.0);
    let fits = |t: f64| {
        let off = (1.0 - t) * positives - t * negatives;
        let variance = ((1.0 - t) * noise.0).powi(2) + (t * noise.1).powi(2) + n * t * (1.0 - t);
        off * off <= HALF * HALF * variance.max(1e-12)
    };
    let inside: Vec<f64> = (0..=2000)
        .map(|k| f64::from(k) / 2000.0)
        .filter(|t| fits(*t))
        .collect();
    let rate = (positives / n.max(1e-300)).clamp(0.0, 1.0);
    (
        inside.first().copied().unwrap_or(rate).min(rate),
        inside.last().copied().unwrap_or(rate).max(rate),
    )
}
