//! Charts of running totals and of the most frequent values.

use serde_json::Value;

use super::plots::{Figure, MOST_ROWS, rows_plot};
use super::read::{list, num, nums, plain, text};
use super::svg::{Axis, Plot, Ticks, Words};
use super::words::{self, as_f64};

/// Corners of a line drawn at most.
const MOST_CORNERS: usize = 2000;

/// Totals after each step, with the band of their noise.
pub(super) fn running_total(v: &Value, key: &str) -> Option<Figure> {
    let totals = nums(v, "totals");
    let errors = nums(v, "errors_95");
    if totals.len() < 2 || errors.len() != totals.len() {
        return None;
    }
    // the right end of a step; its number where steps are levels
    let edges = nums(v, "edges");
    let timed = edges.len() == totals.len() + 1;
    let at = |i: usize| {
        let number = as_f64(i + 1);
        if timed {
            edges.get(i + 1).copied().unwrap_or(number)
        } else {
            number
        }
    };
    let every = totals.len().div_ceil(MOST_CORNERS);
    let last = totals.len() - 1;
    let (mut line, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
    for (i, (total, error)) in totals.iter().zip(&errors).enumerate() {
        if !(total.is_finite() && error.is_finite()) || (i % every != 0 && i != last) {
            continue;
        }
        line.push((at(i), *total));
        low.push((at(i), total - error));
        high.push((at(i), total + error));
    }
    let ends = [&low, &high];
    let ys = ends.iter().flat_map(|e| e.iter().map(|p| p.1));
    let mut p = Plot::new(
        Axis::exact(line.first()?.0, line.last()?.0, 6.0),
        Axis::around(ys, 5.0),
        320.0,
    );
    p.area("band", &low, &high);
    p.line("line", &line);
    let name = text(v, "column").unwrap_or_default();
    let largest = errors.iter().copied().fold(0.0, f64::max);
    let description = format!(
        "Running total over {} steps of {name}, {} at the end.",
        totals.len(),
        words::to_error(*totals.last()?, errors.last().copied()),
    );
    let x = if timed {
        name
    } else {
        format!("step of {name}")
    };
    let words = Words {
        title: "Running total",
        description: &description,
        x: &x,
        y: "records up to here",
    };
    Some(Figure {
        svg: p.finish(key, &words, Ticks::Numbers, Ticks::Numbers),
        legend: vec![
            ("line", "released total".to_owned()),
            (
                "band",
                format!(
                    "95 % of the noise at each step, at most ± {}",
                    words::to_error(largest, Some(largest))
                ),
            ),
        ],
        note: (every > 1).then(|| format!("Every {every}th step is drawn.")),
    })
}

/// Noisy counts of the chosen values, where the method releases them.
pub(super) fn top_k(v: &Value, key: &str) -> Option<Figure> {
    let counts = nums(v, "counts");
    let names: Vec<String> = list(v, "top")
        .iter()
        .map(|l| plain(l).unwrap_or_default())
        .take(MOST_ROWS)
        .collect();
    let p = ranked(&names, &counts)?;
    let column = text(v, "column").unwrap_or_default();
    let description = format!("The {} most frequent values of {column}.", names.len());
    let words = Words {
        title: "Most frequent values",
        description: &description,
        x: "records",
        y: &column,
    };
    let rank = num(v, "rank_error_95").map_or_else(String::new, |e| {
        format!(", order sure to about {} records", words::number(e.ceil()))
    });
    Some(Figure {
        svg: p.finish(key, &words, Ticks::Numbers, Ticks::None),
        legend: vec![("bar", format!("released count{rank}"))],
        note: (counts.len() > MOST_ROWS).then(|| format!("The first {MOST_ROWS} are drawn.")),
    })
}

/// Noisy scores of the chosen features, where the method releases them.
pub(super) fn select(v: &Value, key: &str) -> Option<Figure> {
    let scores = nums(v, "scores");
    let names: Vec<String> = list(v, "features")
        .iter()
        .map(|l| plain(l).unwrap_or_default())
        .take(MOST_ROWS)
        .collect();
    let p = ranked(&names, &scores)?;
    let label = text(v, "label").unwrap_or_default();
    let description = format!("The {} features that tell {label} apart best.", names.len());
    let x = match text(v, "score").as_deref() {
        Some("total") => "records that have the feature",
        Some("difference") => "difference between the outcomes, in records",
        Some("purity") => "purity index, in records",
        _ => "information gain times records, in nats",
    };
    let words = Words {
        title: "Chosen features",
        description: &description,
        x,
        y: "feature",
    };
    Some(Figure {
        svg: p.finish(key, &words, Ticks::Numbers, Ticks::None),
        legend: vec![("bar", "noisy score".to_owned())],
        note: (scores.len() > MOST_ROWS).then(|| format!("The first {MOST_ROWS} are drawn.")),
    })
}

/// One bar per name.
fn ranked(names: &[String], sizes: &[f64]) -> Option<Plot> {
    if sizes.len() < 2 || sizes.len() < names.len() {
        return None;
    }
    let finite = sizes.iter().copied().filter(|c| c.is_finite());
    let top = finite.fold(0.0, f64::max);
    let labels: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut p = rows_plot(&labels, Axis::around([0.0, top], 5.0), 30.0);
    for (i, c) in sizes.iter().take(names.len()).enumerate() {
        let y = as_f64(i) + 0.5;
        p.rect("bar", (0.0, y - 0.32), (c.max(0.0), y + 0.32));
    }
    Some(p)
}
