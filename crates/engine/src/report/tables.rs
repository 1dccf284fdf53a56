//! The numbers of a release as tables, by kind.

use std::fmt::Write as _;

use serde_json::Value;

use super::html::{Cell, Set, details, escape, table};
use super::read::{list, num, nums, plain, text};
use super::words;

/// Rows shown at most in a table of a section; the file holds the rest.
const MOST_ROWS: usize = 200;
/// Tables up to this length stand open; longer ones are folded.
const OPEN_ROWS: usize = 14;

pub(super) fn cell(x: Option<f64>) -> Cell {
    x.map_or_else(|| words::NONE.to_owned(), words::number)
}

/// The table of a kind.
pub(super) fn numbers(kind: &str, v: &Value) -> String {
    match kind {
        "count" | "sum" | "mean" | "bounds" | "threshold" | "auc" | "verify" => String::new(),
        "logistic" | "naive_bayes" => logistic(v),
        "cross_validation" => fold(
            "Folds",
            &[
                ("fold", Set::Number),
                (words::measure(v), Set::Number),
                ("95 % interval", Set::Text),
            ],
            list(v, "folds")
                .iter()
                .map(|f| {
                    let estimate = num(f, "estimate");
                    vec![
                        cell(num(f, "fold")),
                        estimate.map_or_else(|| words::NONE.to_owned(), |x| words::fixed(x, 3)),
                        escape(&words::interval(num(f, "low"), num(f, "high"))),
                    ]
                })
                .collect(),
            true,
        ),
        "linear" | "regress" => linear(v),
        "covariance" => covariance(v),
        "roc" => {
            fold(
                "Measured thresholds",
                &[
                    ("score at least", Set::Number),
                    ("false positive rate", Set::Number),
                    ("true positive rate", Set::Number),
                ],
                list(v, "vertices")
                    .iter()
                    .map(|p| {
                        vec![
                            cell(num(p, "threshold")),
                            share(num(p, "fpr")),
                            share(num(p, "tpr")),
                        ]
                    })
                    .collect(),
                true,
            ) + &super::roc::tables(v)
        }
        "residuals" => fold(
            "Residuals by fitted value",
            &[
                ("fitted", Set::Number),
                ("10 %", Set::Number),
                ("median", Set::Number),
                ("90 %", Set::Number),
            ],
            list(v, "columns")
                .iter()
                .map(|c| ["x", "q10", "q50", "q90"].map(|k| cell(num(c, k))).to_vec())
                .collect(),
            true,
        ),
        "binned_residuals" => fold(
            "Groups",
            &[
                ("fitted", Set::Number),
                ("records", Set::Number),
                ("positives", Set::Number),
                ("mean residual", Set::Number),
                ("± 2 s.e.", Set::Number),
            ],
            list(v, "bins")
                .iter()
                .map(|b| {
                    let limit = num(b, "two_se");
                    vec![
                        share(num(b, "mean_fitted")),
                        cell(num(b, "count").map(f64::round)),
                        cell(num(b, "positives").map(f64::round)),
                        num(b, "mean_residual")
                            .map_or_else(|| words::NONE.to_owned(), |m| words::to_error(m, limit)),
                        limit.map_or_else(|| words::NONE.to_owned(), |l| words::to_error(l, limit)),
                    ]
                })
                .collect(),
            true,
        ),
        "top_k" => top_k(v),
        "select" => chosen(v),
        "running_total" => running_total(v),
        "histogram" => histogram(v),
        "crosstab" => crosstab(v),
        "quantiles" => quantiles(v),
        _ => generic(v),
    }
}

pub(super) fn share(x: Option<f64>) -> Cell {
    x.map_or_else(|| words::NONE.to_owned(), |x| words::fixed(x, 3))
}

/// A table, folded when it is long or `closed`; empty when it has no rows.
pub(super) fn fold(
    name: &str,
    head: &[(&str, Set)],
    mut rows: Vec<Vec<Cell>>,
    closed: bool,
) -> String {
    let total = rows.len();
    if total == 0 {
        return String::new();
    }
    rows.truncate(MOST_ROWS);
    let mut out = table("values", head, &rows, None);
    if total > MOST_ROWS {
        let _ = write!(
            out,
            r#"<p class="small">The first {MOST_ROWS} of {total} rows; all are in release.json.</p>"#
        );
    }
    if closed || total > OPEN_ROWS {
        details(&format!("{name} ({total})"), &out)
    } else {
        out
    }
}

fn logistic(v: &Value) -> String {
    // of naive Bayes `classes` are names
    let several = ["classes", "log_odds"].map(|key| list(v, key).iter().filter(|c| c.is_object()));
    let each = several.into_iter().flatten().map(|c| {
        let level = text(c, "level").unwrap_or_default();
        let other = text(c, "against").unwrap_or_else(|| "the rest".to_owned());
        let (level, other) = (escape(&level), escape(&other));
        format!("<h3>{level} against {other}</h3>{}", odds(c))
    });
    let all: String = each.collect();
    if all.is_empty() { odds(v) } else { all }
}

fn odds(v: &Value) -> String {
    let rows = list(v, "terms")
        .iter()
        .map(|t| {
            let b = num(t, "estimate");
            let name = text(t, "name").unwrap_or_default();
            // An intercept is a log odds itself; there is no ratio to speak of.
            let ratio = b
                .map(f64::exp)
                .filter(|x| x.is_finite() && name != "(Intercept)");
            vec![escape(&name), cell(b), cell(ratio)]
        })
        .collect();
    let head = [
        ("term", Set::Text),
        ("log odds per unit", Set::Number),
        ("odds ratio", Set::Number),
    ];
    fold("Coefficients", &head, rows, false)
}

/// Coefficients of output perturbation: the noise is all that is known of their errors.
fn perturbed(v: &Value) -> String {
    let rows = list(v, "terms")
        .iter()
        .map(|t| {
            let noise = num(t, "noise_error");
            let shown = |key: &str| {
                num(t, key).map_or_else(|| words::NONE.to_owned(), |x| words::to_error(x, noise))
            };
            let name = escape(&text(t, "name").unwrap_or_default());
            vec![name, shown("estimate"), shown("noise_error")]
        })
        .collect();
    let head = [
        ("term", Set::Text),
        ("estimate", Set::Number),
        ("std. deviation of the noise", Set::Number),
    ];
    fold("Coefficients", &head, rows, false)
}

fn linear(v: &Value) -> String {
    if text(v, "perturbation").is_some() {
        return perturbed(v);
    }
    let rows = list(v, "terms")
        .iter()
        .map(|t| {
            let se = num(t, "std_error");
            let shown = |key: &str| {
                num(t, key).map_or_else(|| words::NONE.to_owned(), |x| words::to_error(x, se))
            };
            vec![
                escape(&text(t, "name").unwrap_or_default()),
                shown("estimate"),
                match (num(t, "conf_low"), num(t, "conf_high")) {
                    (Some(l), Some(h)) => {
                        format!("{} to {}", words::to_error(l, se), words::to_error(h, se))
                    }
                    _ => words::NONE.to_owned(),
                },
                shown("std_error"),
                shown("sampling_error"),
                shown("noise_error"),
                num(t, "t").map_or_else(|| words::NONE.to_owned(), |x| words::fixed(x, 2)),
                num(t, "p").map_or_else(|| words::NONE.to_owned(), words::probability),
                escape(&text(t, "stars").unwrap_or_default()),
            ]
        })
        .collect();
    let head = [
        ("term", Set::Text),
        ("estimate", Set::Number),
        ("95 % interval", Set::Number),
        ("std. error", Set::Number),
        ("from sampling", Set::Number),
        ("from noise", Set::Number),
        ("t", Set::Number),
        ("p", Set::Number),
        ("", Set::Text),
    ];
    let mut out = fold("Coefficients", &head, rows, false);
    if let Some(naive) = v.get("naive").filter(|n| n.is_object()) {
        out.push_str(&naively(naive));
    }
    out
}

/// The table that ignores the noise, under its warning.
fn naively(v: &Value) -> String {
    let rows: Vec<Vec<Cell>> = list(v, "terms")
        .iter()
        .map(|t| {
            vec![
                escape(&text(t, "name").unwrap_or_default()),
                cell(num(t, "estimate")),
                cell(num(t, "std_error")),
                num(t, "t").map_or_else(|| words::NONE.to_owned(), |x| words::fixed(x, 2)),
                num(t, "p").map_or_else(|| words::NONE.to_owned(), words::probability),
            ]
        })
        .collect();
    let head = [
        ("term", Set::Text),
        ("estimate", Set::Number),
        ("std. error", Set::Number),
        ("t", Set::Number),
        ("p", Set::Number),
    ];
    fold(
        "Wrong: as if there were no privacy noise",
        &head,
        rows,
        true,
    )
}

/// Sums of squares along directions.
fn sketch(v: &Value) -> String {
    let rows = list(v, "directions").iter().map(|d| {
        let name = d.get("name").and_then(plain).unwrap_or_default();
        vec![
            escape(&name),
            cell(num(d, "estimate")),
            escape(&words::interval(num(d, "lower"), num(d, "upper"))),
            cell(num(d, "mean")),
            cell(num(d, "added")),
        ]
    });
    let names = list(v, "names").iter().filter_map(plain);
    let centres = list(v, "centres").iter().map(Value::as_f64);
    let from: Vec<String> = (names.zip(centres))
        .map(|(name, centre)| {
            let centre = centre.map_or_else(|| "its only value".to_owned(), words::number);
            format!("{} from {centre}", escape(&name))
        })
        .collect();
    let measured = format!(
        "<p>Sums of squares along directions; measured are {}.</p>",
        from.join(", ")
    );
    measured
        + &fold(
            "Sums of squares along directions",
            &[
                ("direction", Set::Text),
                ("estimate", Set::Number),
                ("95 % interval", Set::Text),
                ("per record", Set::Number),
                ("added", Set::Number),
            ],
            rows.collect(),
            false,
        )
}

fn covariance(v: &Value) -> String {
    if v.get("sketch").is_some() {
        return sketch(v);
    }
    let names: Vec<String> = list(v, "names").iter().filter_map(plain).collect();
    let matrix = |key: &str, show: &dyn Fn(&Value) -> Cell| -> Vec<Vec<Cell>> {
        list(v, key)
            .iter()
            .zip(&names)
            .map(|(row, name)| {
                let cells = row.as_array().into_iter().flatten().map(show);
                std::iter::once(escape(name)).chain(cells).collect()
            })
            .collect()
    };
    let head: Vec<(&str, Set)> = std::iter::once(("", Set::Text))
        .chain(names.iter().map(|n| (n.as_str(), Set::Number)))
        .collect();
    let means = list(v, "means");
    let rows = names
        .iter()
        .zip(means)
        .map(|(n, m)| vec![escape(n), cell(m.as_f64())])
        .collect();
    let mut out = fold(
        "Means",
        &[("column", Set::Text), ("mean", Set::Number)],
        rows,
        false,
    );
    let number = |x: &Value| cell(x.as_f64());
    out.push_str(&fold(
        "Covariances",
        &head,
        matrix("covariance", &number),
        true,
    ));
    let short = |x: &Value| share(x.as_f64());
    out.push_str(&fold(
        "Correlations",
        &head,
        matrix("correlation", &short),
        false,
    ));
    out
}

fn histogram(v: &Value) -> String {
    if !list(v, "axes").is_empty() {
        return crosstab(v);
    }
    let edges = nums(v, "edges");
    let error = num(v, "error_95");
    let levels = list(v, "levels");
    let rows = nums(v, "counts")
        .into_iter()
        .enumerate()
        .map(|(i, c)| {
            let name = match (
                levels.get(i).and_then(plain),
                edges.get(i),
                edges.get(i + 1),
            ) {
                (Some(l), _, _) => l,
                (None, Some(a), Some(b)) => {
                    format!("{} to {}", words::number(*a), words::number(*b))
                }
                _ => format!("bin {}", i + 1),
            };
            vec![escape(&name), words::to_error(c, error)]
        })
        .collect();
    fold(
        "Counts as released",
        &[("bin", Set::Text), ("count", Set::Number)],
        rows,
        true,
    )
}

fn quantiles(v: &Value) -> String {
    let step = num(v, "step");
    let rows = nums(v, "levels")
        .into_iter()
        .zip(nums(v, "values"))
        .map(|(q, x)| vec![words::percent(q), words::number(x)])
        .collect();
    let mut out = fold(
        "Quantiles",
        &[("share below", Set::Number), ("value", Set::Number)],
        rows,
        false,
    );
    let mut notes = Vec::new();
    if let Some(e) = num(v, "rank_error_95") {
        let unit = if e < 1.0 {
            words::percent(e)
        } else {
            format!("{} records", words::number(e.ceil()))
        };
        notes.push(format!("Rank error at 95 %: {unit}."));
    }
    if let Some(s) = step {
        notes.push(format!(
            "Values lie on a public grid with step {}.",
            words::number(s)
        ));
    }
    if !notes.is_empty() {
        let _ = write!(out, r#"<p class="small">{}</p>"#, escape(&notes.join(" ")));
    }
    out
}

/// What was chosen, best first, with those numbers that were released.
fn ranked(name: &str, of: &str, chosen: &[Value], released: &[(&'static str, Vec<f64>)]) -> String {
    let shown = || released.iter().filter(|r| !r.1.is_empty());
    let mut head = vec![("rank", Set::Number), (of, Set::Text)];
    head.extend(shown().map(|r| (r.0, Set::Number)));
    let rows = chosen
        .iter()
        .enumerate()
        .map(|(i, what)| {
            let mut row = vec![
                words::number(words::as_f64(i + 1)),
                escape(&plain(what).unwrap_or_default()),
            ];
            row.extend(shown().map(|r| cell(r.1.get(i).copied())));
            row
        })
        .collect();
    fold(name, &head, rows, false)
}

fn top_k(v: &Value) -> String {
    let released = [
        ("records", nums(v, "counts")),
        ("ahead of the next by", nums(v, "gaps")),
    ];
    let mut out = ranked("Most frequent values", "value", list(v, "top"), &released);
    if let Some(e) = num(v, "rank_error_95") {
        let _ = write!(
            out,
            r#"<p class="small">In 95 of 100 runs nothing left out has {} records more than anything chosen.</p>"#,
            words::number(e.ceil())
        );
    }
    out
}

fn chosen(v: &Value) -> String {
    let released = [("noisy score", nums(v, "scores"))];
    let mut out = ranked("Chosen features", "feature", list(v, "features"), &released);
    if let Some(sd) = num(v, "noise_sd") {
        let _ = write!(
            out,
            r#"<p class="small">The noise of each count behind the scores has standard deviation {}.</p>"#,
            words::number(sd)
        );
    }
    out
}

fn running_total(v: &Value) -> String {
    let names = levels(v);
    let errors = nums(v, "errors_95");
    let rows = nums(v, "totals")
        .iter()
        .enumerate()
        .map(|(i, total)| {
            let error = errors.get(i).copied();
            vec![
                names
                    .get(i)
                    .map_or_else(|| words::number(words::as_f64(i + 1)), |name| escape(name)),
                words::to_error(*total, error),
                error.map_or_else(|| words::NONE.to_owned(), |e| words::to_error(e, Some(e))),
            ]
        })
        .collect();
    let head = [
        ("step", Set::Text),
        ("records up to it", Set::Number),
        ("±", Set::Number),
    ];
    fold("Totals", &head, rows, false)
}

/// Names of the cells along one axis.
fn levels(axis: &Value) -> Vec<String> {
    let names: Vec<String> = list(axis, "levels")
        .iter()
        .map(|l| plain(l).unwrap_or_default())
        .collect();
    if !names.is_empty() {
        return names;
    }
    nums(axis, "edges")
        .windows(2)
        .filter_map(|w| {
            Some(format!(
                "{} to {}",
                words::number(*w.first()?),
                words::number(*w.get(1)?)
            ))
        })
        .collect()
}

/// A table whose cells are shaded by count; axes before the last are combined into rows.
fn crosstab(v: &Value) -> String {
    const MOST_COLUMNS: usize = 30;
    /// Larger tables are folded.
    const MOST_OPEN: usize = 200;
    let axes: Vec<Vec<String>> = list(v, "axes").iter().map(levels).collect();
    let counts = nums(v, "counts");
    let Some((columns, before)) = axes.split_last().filter(|(last, _)| !last.is_empty()) else {
        return generic(v);
    };
    let error = num(v, "error_95");
    let top = counts
        .iter()
        .copied()
        .filter(|c| c.is_finite())
        .fold(1.0, f64::max);
    let names: Vec<String> = list(v, "axes")
        .iter()
        .map(|a| text(a, "name").unwrap_or_default())
        .collect();
    let corner = names
        .split_last()
        .map(|(last, first)| format!("{} \\ {last}", first.join(", ")))
        .unwrap_or_default();
    let mut head: Vec<(&str, Set)> = vec![(corner.trim_start_matches(" \\ "), Set::Text)];
    head.extend(
        columns
            .iter()
            .take(MOST_COLUMNS)
            .map(|c| (c.as_str(), Set::Number)),
    );
    let mut out = r#"<div class="scroll"><table class="heat"><thead><tr>"#.to_owned();
    for (name, _) in &head {
        let _ = write!(out, r#"<th scope="col">{}</th>"#, escape(name));
    }
    out.push_str("</tr></thead><tbody>");
    let rows = counts.len().div_ceil(columns.len());
    for (i, row) in counts.chunks(columns.len()).take(MOST_ROWS).enumerate() {
        let _ = write!(
            out,
            r#"<tr><th scope="row">{}</th>"#,
            escape(&row_name(before, i))
        );
        for c in row.iter().take(MOST_COLUMNS) {
            let weight = if c.is_finite() {
                (c / top).clamp(0.0, 1.0)
            } else {
                0.0
            };
            let _ = write!(
                out,
                r#"<td style="--w:{weight:.2}">{}</td>"#,
                words::to_error(*c, error)
            );
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    let mut notes = Vec::new();
    if let Some(e) = error {
        notes.push(format!(
            "Each count is within {} of the true one in 95 of 100 draws.",
            words::to_error(e, Some(e))
        ));
    }
    if rows > MOST_ROWS || columns.len() > MOST_COLUMNS {
        notes.push("The table is cut here; release.json holds all cells.".to_owned());
    }
    let _ = write!(out, r#"<p class="small">{}</p>"#, escape(&notes.join(" ")));
    if counts.len() > MOST_OPEN {
        return details(&format!("Counts ({})", counts.len()), &out);
    }
    out
}

/// The name of row `i` when the cells of `axes` are counted with the last axis fastest.
fn row_name(axes: &[Vec<String>], i: usize) -> String {
    let mut rest = i;
    let mut parts = Vec::new();
    for axis in axes.iter().rev() {
        let n = axis.len().max(1);
        parts.push(axis.get(rest % n).cloned().unwrap_or_default());
        rest /= n;
    }
    parts.reverse();
    if parts.is_empty() {
        "all".to_owned()
    } else {
        parts.join(" · ")
    }
}

/// Keys and values of a kind this report knows nothing about.
fn generic(v: &Value) -> String {
    let rows: Vec<Vec<Cell>> = match v {
        Value::Object(o) => o
            .iter()
            .map(|(k, x)| vec![escape(k), escape(&brief(x))])
            .collect(),
        Value::Null => Vec::new(),
        other => vec![vec!["value".to_owned(), escape(&brief(other))]],
    };
    fold(
        "Values",
        &[("name", Set::Text), ("value", Set::Text)],
        rows,
        false,
    )
}

fn brief(v: &Value) -> String {
    const MOST: usize = 12;
    match v {
        Value::Number(_) => super::read::number(v).map_or_else(|| v.to_string(), words::number),
        Value::String(s) => super::svg::shorten(s, 300),
        Value::Array(a) if a.iter().all(|x| !x.is_array() && !x.is_object()) => {
            let mut parts: Vec<String> = a.iter().take(MOST).map(brief).collect();
            if a.len() > MOST {
                parts.push(format!("… ({} in all)", a.len()));
            }
            parts.join(", ")
        }
        Value::Array(a) => format!(
            "{} in release.json",
            words::plural(a.len(), "entry", "entries")
        ),
        Value::Null => words::NONE.to_owned(),
        other => super::svg::shorten(&other.to_string(), 300),
    }
}
