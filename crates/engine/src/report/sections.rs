//! One section of the report per release: what it is, its result, plot, table, how to read it, flags and receipt.

use std::fmt::Write as _;

use serde_json::Value;

use super::html::{Cell, Set, details, escape, legend, table};
use super::read::{list, num, nums, plain, text};
use super::words;
use super::{Release, plots, tables, verify};

/// The section of the release at position `n` (counted from 1).
pub(super) fn section(n: usize, r: &Release<'_>, relation: Option<&str>) -> String {
    let mut out = format!(
        r#"<section id="release-{n}"><h2><span class="kind">{}</span> {}</h2>"#,
        escape(&words::kind(r.kind)),
        escape(r.id)
    );
    let about = describe(r.kind, r.value);
    if !about.is_empty() {
        let _ = write!(out, r#"<p class="about">{about}</p>"#);
    }
    if let Some((value, note)) = headline(r.kind, r.value) {
        let _ = write!(
            out,
            r#"<p class="headline"><strong>{}</strong> <span>{}</span></p>"#,
            escape(&value),
            escape(&note)
        );
    }
    for flag in &r.flags {
        let _ = write!(
            out,
            r#"<p class="flag"><strong>Note.</strong> {}</p>"#,
            escape(&words::flag(flag))
        );
    }
    if let Some(why) = crate::not_made::reason(r.value) {
        let _ = write!(out, r#"<p class="about">{}</p>"#, escape(why));
        out.push_str(&receipt(r));
        out.push_str("</section>");
        return out;
    }
    let basis = words::basis(relation, r.cost_under(relation).as_ref());
    let first = plots::figure(r.kind, r.value, &n.to_string());
    for figure in first
        .into_iter()
        .chain(super::roc::more(r.kind, r.value, n))
    {
        let _ = write!(
            out,
            "<figure>{}<figcaption>{}",
            figure.svg,
            legend(&figure.legend, &basis)
        );
        if let Some(note) = figure.note {
            let _ = write!(out, "<p>{}</p>", escape(&note));
        }
        out.push_str("</figcaption></figure>");
    }
    out.push_str(&tables::numbers(r.kind, r.value));
    let _ = write!(
        out,
        r#"<p class="reading"><strong>How to read this.</strong> {}</p>"#,
        escape(reading(r.kind, r.value))
    );
    out.push_str(&receipt(r));
    out.push_str("</section>");
    out
}

/// How to read a release of this kind.
fn reading(kind: &str, v: &Value) -> &'static str {
    if kind == "linear" && text(v, "perturbation").is_some() {
        return words::OUTPUT_PERTURBATION;
    }
    if kind == "covariance" && v.get("sketch").is_some() {
        return words::SKETCH;
    }
    super::roc::reading(kind, v).unwrap_or_else(|| words::reading(kind))
}

/// What was released, in one line of HTML; empty when the value says nothing about it.
pub(super) fn describe(kind: &str, v: &Value) -> String {
    let code = |key: &str| text(v, key).map(|t| format!("<code>{}</code>", escape(&t)));
    let of_model = code("model").map_or_else(String::new, |m| format!(" of model {m}"));
    match kind {
        "logistic" | "linear" | "regress" | "naive_bayes" => {
            let formula = code("formula").unwrap_or_default();
            let kept = num(v, "candidates").map_or_else(String::new, |all| {
                let kept = list(v, "features").len();
                format!(
                    "; conditions and words: {kept} kept, of {}",
                    words::number(all)
                )
            });
            match code("positive").filter(|_| !matches!(kind, "linear" | "regress")) {
                Some(p) => format!("{formula}, positive outcome {p}{kept}"),
                None => formula,
            }
        }
        "roc" if !list(v, "models").is_empty() => super::roc::about(v),
        "roc" => format!(
            "How well the scores{of_model} separate the classes{}",
            code("positive").map_or_else(String::new, |p| format!(", positive outcome {p}"))
        ),
        "residuals" => format!("Residuals against fitted values{of_model}"),
        "binned_residuals" => {
            let against = code("x")
                .filter(|_| list(v, "bins").iter().any(|b| b.get("place").is_some()))
                .unwrap_or_else(|| "fitted probabilities".to_owned());
            format!("Mean residuals against {against}{of_model}, in groups of similar size")
        }
        "histogram" if code("column").is_some() => {
            code("column").map_or_else(String::new, |c| format!("Records by {c}"))
        }
        "quantiles" => code("column").map_or_else(String::new, |c| format!("Quantiles of {c}")),
        "bounds" => code("column").map_or_else(String::new, |c| format!("Range of {c}")),
        "top_k" => code("column").map_or_else(String::new, |c| {
            format!(
                "Most frequent of {} values of {c}",
                num(v, "candidates").map_or_else(|| "the".to_owned(), words::number)
            )
        }),
        "select" => format!(
            "Features, of {}, that tell {} apart",
            num(v, "candidates").map_or_else(|| "all".to_owned(), words::number),
            code("label").unwrap_or_default()
        ),
        "running_total" => {
            code("column").map_or_else(String::new, |c| format!("Records up to each step of {c}"))
        }
        "auc" => format!(
            "How well the scores{of_model} separate the classes{}",
            code("positive").map_or_else(String::new, |p| format!(", positive outcome {p}"))
        ),
        "verify" => verify::claim(v),
        "cross_validation" => format!(
            "{}{of_model} on the records that each of {} fits had left out: {}{}",
            words::measure(v),
            list(v, "folds").len(),
            code("formula").unwrap_or_default(),
            code("positive").map_or_else(String::new, |p| format!(", positive outcome {p}"))
        ),
        "threshold" => "The probability from which an outcome is called positive".to_owned(),
        "crosstab" | "histogram" => {
            let names: Vec<String> = list(v, "axes")
                .iter()
                .filter_map(|a| text(a, "name"))
                .map(|n| format!("<code>{}</code>", escape(&n)))
                .collect();
            if names.is_empty() {
                String::new()
            } else {
                format!("Records by {}", names.join(" and "))
            }
        }
        _ => String::new(),
    }
}

/// The result in a few words: a value and what it is.
pub(super) fn headline(kind: &str, v: &Value) -> Option<(String, String)> {
    let error = num(v, "error_95");
    let noise = "error at 95 % from noise";
    Some(match kind {
        "count" => (
            words::plus_minus(Some(num(v, "count")?), error),
            format!("records, {noise}"),
        ),
        "sum" => (
            words::plus_minus(Some(num(v, "sum")?), error),
            format!("sum, {noise}{}", within(v)),
        ),
        "mean" => (
            words::plus_minus(Some(num(v, "mean")?), error),
            format!("mean, {noise}{}", within(v)),
        ),
        "bounds" => (
            format!(
                "{} to {}",
                words::number(num(v, "lower")?),
                words::number(num(v, "upper")?)
            ),
            num(v, "coverage").map_or_else(String::new, |c| {
                format!("holds about {} of the records", words::percent(c))
            }),
        ),
        "roc" if !list(v, "models").is_empty() => super::roc::headline(v)?,
        "auc" => (
            format!("AUC {}", words::fixed(num(v, "auc")?, 3)),
            "its error depends on the private sizes of the classes and is not released".to_owned(),
        ),
        "top_k" => (plain(list(v, "top").first()?)?, "chosen first".to_owned()),
        "select" => (
            plain(list(v, "features").first()?)?,
            "best of the chosen features".to_owned(),
        ),
        "running_total" => {
            let error = nums(v, "errors_95").last().copied();
            (
                words::plus_minus(nums(v, "totals").last().copied(), error),
                format!("records in all, {noise}"),
            )
        }
        "roc" => {
            let (low, high) = (num(v, "auc_low"), num(v, "auc_high"));
            let half = low.zip(high).map(|(l, h)| (h - l) / 2.0);
            let note = if half.is_some() {
                format!("95 % interval {}", words::interval(low, high))
            } else {
                String::new()
            };
            (
                format!("AUC {}", words::to_error(num(v, "auc")?, half)),
                note,
            )
        }
        "linear" | "regress" => fit(v)?,
        "verify" => verify::verdict(v)?,
        "cross_validation" => {
            let (low, high) = (num(v, "low"), num(v, "high"));
            let half = low.zip(high).map(|(l, h)| (h - l) / 2.0);
            (
                format!(
                    "{} {}",
                    words::measure(v),
                    words::to_error(num(v, "estimate")?, half)
                ),
                format!("95 % interval {}", words::interval(low, high)),
            )
        }
        "threshold" => (
            format!(
                "positive from probability {}",
                words::fixed(num(v, "threshold")?, 3)
            ),
            match (num(v, "sensitivity"), num(v, "specificity")) {
                (Some(a), Some(b)) => format!(
                    "sensitivity {}, specificity {}",
                    words::fixed(a, 3),
                    words::fixed(b, 3)
                ),
                _ => String::new(),
            },
        ),
        "covariance" if v.get("sketch").is_some() => (
            format!("{} columns", list(v, "names").len()),
            num(v, "rows").map_or_else(String::new, |r| {
                format!("a sketch of {} rows", words::fixed(r, 0))
            }),
        ),
        "covariance" => (
            format!("{} columns", list(v, "names").len()),
            num(v, "n").map_or_else(String::new, |n| {
                format!("about {} records", words::fixed(n, 0))
            }),
        ),
        _ => return None,
    })
}

/// How well a linear model fits.
fn fit(v: &Value) -> Option<(String, String)> {
    let mut notes = Vec::new();
    if let Some(s) = num(v, "residual_sd") {
        notes.push(format!("residual standard deviation {}", words::number(s)));
    }
    if let Some(f) = v.get("f").filter(|f| f.is_object()) {
        notes.push(format!(
            "F {} on {} and {} degrees of freedom, p {}",
            num(f, "statistic").map_or_else(|| words::NONE.to_owned(), words::number),
            num(f, "df1").map_or_else(|| words::NONE.to_owned(), |x| words::fixed(x, 0)),
            num(f, "df2").map_or_else(|| words::NONE.to_owned(), |x| words::fixed(x, 0)),
            num(f, "p").map_or_else(|| words::NONE.to_owned(), words::probability),
        ));
    }
    if let Some(n) = num(v, "n") {
        notes.push(format!("about {} records", words::fixed(n, 0)));
    }
    Some((
        format!("R² {}", words::fixed(num(v, "r_squared")?, 3)),
        notes.join(", "),
    ))
}

fn within(v: &Value) -> String {
    match nums(v, "bounds").as_slice() {
        [low, high] if low.is_finite() && high.is_finite() => {
            format!(
                "; values held between {} and {}",
                words::number(*low),
                words::number(*high)
            )
        }
        _ => String::new(),
    }
}

/// The receipt: what was drawn and what it cost.
fn receipt(r: &Release<'_>) -> String {
    if r.receipt.as_str() == Some("public") {
        return r#"<p class="small">Declared public by the curator; nothing was spent on it.</p>"#
            .to_owned();
    }
    if !r.receipt.is_object() {
        return r#"<p class="small">No receipt.</p>"#.to_owned();
    }
    let mut body = String::new();
    let noise: Vec<Vec<Cell>> = list(r.receipt, "noise")
        .iter()
        .map(|n| {
            let scale = match n.get("scale") {
                Some(Value::String(s)) => escape(&words::amount(s)),
                Some(x) => tables::cell(super::read::number(x)),
                None => words::NONE.to_owned(),
            };
            vec![
                escape(&text(n, "name").unwrap_or_default()),
                escape(&text(n, "distribution").unwrap_or_default()),
                scale,
            ]
        })
        .collect();
    if !noise.is_empty() {
        let head = [
            ("noise on", Set::Text),
            ("distribution", Set::Text),
            ("scale", Set::Number),
        ];
        body.push_str(&table("values", &head, &noise, None));
    }
    let costs = [
        ("add_remove", "add/remove one"),
        ("replace_one", "replace one"),
    ]
    .map(|(key, name)| {
        vec![
            name.to_owned(),
            r.cost(key)
                .map_or_else(|| "not limited".to_owned(), |c| escape(&words::cost(&c))),
        ]
    });
    body.push_str(&table(
        "values",
        &[("relation", Set::Text), ("cost", Set::Text)],
        &costs,
        None,
    ));
    if let Some(e) = num(r.receipt, "error_95") {
        let _ = write!(
            body,
            r#"<p class="small">Error at 95 %: {}.</p>"#,
            words::to_error(e, Some(e))
        );
    }
    if let Some(event) = r.receipt.get("event").filter(|e| !e.is_null()) {
        let written = serde_json::to_string_pretty(event).unwrap_or_default();
        let _ = write!(
            body,
            "<pre>{}</pre>",
            escape(&super::svg::shorten(&written, 4000))
        );
    }
    details(
        if noise.is_empty() {
            "Receipt: cost"
        } else {
            "Receipt: noise and cost"
        },
        &body,
    )
    .replacen("<details>", r#"<details class="receipt">"#, 1)
}
