//! ROC reports beyond the one curve: several models, the band alone, precision and recall, calibration, and the tables.

use serde_json::Value;

use super::html::{Set, escape};
use super::plots::{Figure, middle, outline};
use super::read::{list, num, pairs, text};
use super::svg::{Axis, Plot, Ticks, Words};
use super::tables::{cell, fold, share};
use super::words;

/// Classes of the lines of several models; they differ in colour and dashes.
const LINES: [&str; 6] = ["line", "s1", "s2", "s3", "s4", "s5"];

/// Whether the released curve may be drawn.
pub(super) fn drawn(v: &Value) -> bool {
    v.get("drawn").and_then(Value::as_bool) != Some(false)
}

fn square() -> Plot {
    let axis = || Axis::exact(0.0, 1.0, 5.0);
    Plot::new(axis(), axis(), 468.0)
}

fn rates<'a>(title: &'a str, description: &'a str) -> Words<'a> {
    Words {
        title,
        description,
        x: "false positive rate",
        y: "true positive rate",
    }
}

/// Draws the band; false if there is none.
pub(super) fn draw_band(p: &mut Plot, v: &Value) -> bool {
    let band: Vec<[f64; 4]> = list(v, "band")
        .iter()
        .filter_map(|b| {
            Some([
                num(b, "fpr_low")?,
                num(b, "fpr_high")?,
                num(b, "tpr_low")?,
                num(b, "tpr_high")?,
            ])
        })
        .collect();
    if band.is_empty() {
        return false;
    }
    // One group, so that overlapping rectangles do not add up to darker patches.
    p.raw(r#"<g class="band">"#);
    for [f0, f1, t0, t1] in &band {
        p.rect("solid", (*f0, *t0), (*f1, *t1));
    }
    p.raw("</g>");
    for edge in outline(&band) {
        p.line("edge", &edge);
    }
    true
}

/// What is drawn where the curve itself would be noise.
pub(super) fn band_alone(v: &Value, key: &str) -> Option<Figure> {
    let mut p = square();
    if !draw_band(&mut p, v) {
        return None;
    }
    p.line("reference", &[(0.0, 0.0), (1.0, 1.0)]);
    let description = "Band that holds the true curve with probability 95 %. The curve itself is not drawn: there are too few records for this budget.";
    Some(Figure {
        svg: p.finish(
            key,
            &rates("Band of the ROC curve", description),
            Ticks::Numbers,
            Ticks::Numbers,
        ),
        legend: vec![
            ("band", "95 % band for the true curve".to_owned()),
            ("reference", "no better than chance".to_owned()),
        ],
        note: Some("No curve is drawn: at this budget it would show noise.".to_owned()),
    })
}

fn name(v: &Value, at: usize) -> String {
    text(v, "model").unwrap_or_else(|| format!("model {}", at + 1))
}

fn auc(v: &Value) -> String {
    let (low, high) = (num(v, "auc_low"), num(v, "auc_high"));
    let half = low.zip(high).map(|(l, h)| (h - l) / 2.0);
    num(v, "auc").map_or_else(
        || words::NONE.to_owned(),
        |a| format!("AUC {}", words::to_error(a, half)),
    )
}

/// The curves of several models in one plot; nothing for a single one.
pub(super) fn several(v: &Value, key: &str) -> Option<Figure> {
    let models = list(v, "models");
    if models.is_empty() {
        return None;
    }
    let mut p = square();
    p.line("reference", &[(0.0, 0.0), (1.0, 1.0)]);
    let (mut legend, mut said, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
    for (at, m) in models.iter().enumerate() {
        if !drawn(m) {
            hidden.push(name(m, at));
            continue;
        }
        let class = LINES[at % LINES.len()];
        p.line(class, &pairs(list(m, "curve"), "fpr", "tpr"));
        let words = format!("{}: {}", name(m, at), auc(m));
        legend.push((class, words.clone()));
        said.push(words);
    }
    legend.push(("reference", "no better than chance".to_owned()));
    let description = format!(
        "Curves of the true positive rate against the false positive rate of {} models. {}.",
        models.len(),
        said.join("; ")
    );
    let note = (!hidden.is_empty()).then(|| {
        format!(
            "Not drawn, because at this budget the curve would show noise: {}.",
            hidden.join(", ")
        )
    });
    Some(Figure {
        svg: p.finish(
            key,
            &rates("ROC curves", &description),
            Ticks::Numbers,
            Ticks::Numbers,
        ),
        legend,
        note,
    })
}

/// The symmetric binormal curve of a released area.
pub(super) fn binormal(v: &Value, key: &str) -> Option<Figure> {
    let curve = pairs(list(v, "binormal_curve"), "fpr", "tpr");
    if curve.is_empty() {
        return None;
    }
    let area = words::fixed(num(v, "auc")?, 3);
    let mut p = square();
    p.line("reference", &[(0.0, 0.0), (1.0, 1.0)]);
    p.line("s1", &curve);
    p.text(
        "big",
        p.width - 24.0,
        p.height - 94.0,
        "end",
        &format!("AUC {area}"),
    );
    p.text(
        "note",
        p.width - 24.0,
        p.height - 74.0,
        "end",
        "the curve is a model",
    );
    let description = format!(
        "Symmetric binormal curve of the released area {area}: what such an area means if the scores of both classes are normal with equal variance on some scale. It is not the curve of the data. {}",
        middle(&curve)
    );
    Some(Figure {
        svg: p.finish(
            key,
            &rates("Binormal curve of the area", &description),
            Ticks::Numbers,
            Ticks::Numbers,
        ),
        legend: vec![
            ("s1", format!("symmetric binormal curve of AUC {area}, a model")),
            ("reference", "no better than chance".to_owned()),
        ],
        note: Some(
            "Drawn from the released area alone, at no further cost. It assumes that the scores of both classes are normal with equal variance on some scale; the curve of the data may be steeper at one end. A roc release measures it."
                .to_owned(),
        ),
    })
}

/// What follows from the same counts: precision against recall, and calibration of a single model.
pub(super) fn more(kind: &str, v: &Value, n: usize) -> Vec<Figure> {
    if kind != "roc" {
        return Vec::new();
    }
    let models = list(v, "models");
    let all: Vec<&Value> = if models.is_empty() {
        vec![v]
    } else {
        models.iter().collect()
    };
    let mut out: Vec<Figure> = precision(&all, &format!("{n}-pr")).into_iter().collect();
    if let [only] = all.as_slice() {
        out.extend(calibration(only, &format!("{n}-cal")));
    }
    out
}

fn precision(models: &[&Value], key: &str) -> Option<Figure> {
    let mut p = square();
    let mut legend = Vec::new();
    for (at, m) in models.iter().enumerate() {
        let curve = pairs(list(m, "precision_recall"), "recall", "precision");
        if curve.is_empty() || !drawn(m) {
            continue;
        }
        let class = LINES[at % LINES.len()];
        p.line(class, &curve);
        let average = num(m, "average_precision")
            .map_or_else(|| words::NONE.to_owned(), |a| words::fixed(a, 3));
        let whose = if models.len() > 1 {
            format!("{}: average precision {average}", name(m, at))
        } else {
            format!("average precision {average}")
        };
        legend.push((class, whose));
    }
    if legend.is_empty() {
        return None;
    }
    let said: Vec<&str> = legend.iter().map(|l| l.1.as_str()).collect();
    let description = format!(
        "Share of true positives among the records above a threshold, against the share of positives found. {}.",
        said.join("; ")
    );
    let words = Words {
        title: "Precision and recall",
        description: &description,
        x: "recall",
        y: "precision",
    };
    Some(Figure {
        svg: p.finish(key, &words, Ticks::Numbers, Ticks::Numbers),
        legend,
        note: None,
    })
}

fn calibration(v: &Value, key: &str) -> Option<Figure> {
    let bins = list(v, "calibration");
    let mut p = square();
    p.line("reference", &[(0.0, 0.0), (1.0, 1.0)]);
    let (mut shown, mut missed) = (0, 0);
    for b in bins {
        let Some([x0, x1, y0, y1]) = ["score_low", "score_high", "low", "high"]
            .iter()
            .map(|k| num(b, k))
            .collect::<Option<Vec<f64>>>()
            .and_then(|v| <[f64; 4]>::try_from(v).ok())
        else {
            continue;
        };
        let agrees = b.get("agrees").and_then(Value::as_bool) != Some(false);
        p.rect(if agrees { "shade" } else { "miss" }, (x0, y0), (x1, y1));
        if let Some(y) = num(b, "positive_share") {
            p.line("line", &[(x0, y), (x1, y)]);
        }
        shown += 1;
        missed += u32::from(!agrees);
    }
    if shown == 0 {
        return None;
    }
    let description = format!(
        "Observed share of positives in {shown} bins of the score, with 95 % intervals. {missed} of them cannot agree with their scores."
    );
    let words = Words {
        title: "Calibration",
        description: &description,
        x: "score",
        y: "share of positives",
    };
    let mut legend = vec![
        ("line", "observed share in a bin".to_owned()),
        ("shade", "95 % interval, sampling and noise".to_owned()),
    ];
    if missed > 0 {
        legend.push(("miss", "cannot agree with the scores".to_owned()));
    }
    legend.push((
        "reference",
        "a calibrated model crosses every box".to_owned(),
    ));
    Some(Figure {
        svg: p.finish(key, &words, Ticks::Numbers, Ticks::Numbers),
        legend,
        note: None,
    })
}

/// How to read one curve that has no band.
pub(super) fn reading(kind: &str, v: &Value) -> Option<&'static str> {
    let bare = kind == "roc" && list(v, "models").is_empty() && list(v, "band").is_empty();
    bare.then_some(
        "The higher the curve above the diagonal, the better the model separates the two classes; on the diagonal it does no \
         better than chance. There is no band: how far this way of measuring errs depends on the private records.",
    )
}

/// The models, in a line.
pub(super) fn about(v: &Value) -> String {
    let names: Vec<String> = list(v, "models")
        .iter()
        .enumerate()
        .map(|(at, m)| format!("<code>{}</code>", escape(&name(m, at))))
        .collect();
    format!(
        "How well the scores of {} separate the classes",
        names.join(", ")
    )
}

/// The best area and by how much.
pub(super) fn headline(v: &Value) -> Option<(String, String)> {
    let models = list(v, "models");
    let (at, best) = models.iter().enumerate().max_by(|a, b| {
        let of = |m: &Value| num(m, "auc").unwrap_or(f64::NEG_INFINITY);
        of(a.1).total_cmp(&of(b.1))
    })?;
    Some((
        auc(best),
        format!("the largest of {}, model {}", models.len(), name(best, at)),
    ))
}

/// The tables after the measured thresholds.
pub(super) fn tables(v: &Value) -> String {
    let models = list(v, "models");
    if models.is_empty() {
        return operating(v) + &decisions(v);
    }
    let mut out = comparisons(v);
    for (at, m) in models.iter().enumerate() {
        let inner = operating(m) + &decisions(m);
        if !inner.is_empty() {
            out.push_str("<h3>");
            out.push_str(&escape(&name(m, at)));
            out.push_str("</h3>");
            out.push_str(&inner);
        }
    }
    out
}

fn rule(r: &str) -> String {
    match r {
        "youden" => "largest true minus false positive rate (Youden)".to_owned(),
        "top_left" => "nearest to the upper left corner".to_owned(),
        other => other.strip_prefix("fpr_at_most_").map_or_else(
            || escape(other),
            |rate| format!("false positive rate at most {}", escape(rate)),
        ),
    }
}

fn operating(v: &Value) -> String {
    let rows = list(v, "operating_points")
        .iter()
        .map(|o| {
            vec![
                rule(&text(o, "rule").unwrap_or_default()),
                cell(num(o, "threshold")),
                share(num(o, "fpr")),
                share(num(o, "tpr")),
                words::interval(num(o, "tpr_low"), num(o, "tpr_high")),
            ]
        })
        .collect();
    let head = [
        ("rule", Set::Text),
        ("score at least", Set::Number),
        ("false positive rate", Set::Number),
        ("true positive rate", Set::Number),
        ("95 % for it", Set::Number),
    ];
    fold("Operating points", &head, rows, false)
}

fn decisions(v: &Value) -> String {
    let count = |d: &Value, key: &str| {
        let c = d.get(key).unwrap_or(&Value::Null);
        let shown = num(c, "count").map_or_else(|| words::NONE.to_owned(), |x| words::fixed(x, 0));
        match (num(c, "low"), num(c, "high")) {
            (Some(low), Some(high)) => {
                format!(
                    "{shown} ({} to {})",
                    words::fixed(low, 0),
                    words::fixed(high, 0)
                )
            }
            _ => shown,
        }
    };
    let rows = list(v, "decisions")
        .iter()
        .map(|d| {
            vec![
                cell(num(d, "threshold")),
                count(d, "true_positives"),
                count(d, "false_positives"),
                count(d, "false_negatives"),
                count(d, "true_negatives"),
                share(num(d, "accuracy")),
                share(num(d, "precision")),
                share(num(d, "recall")),
            ]
        })
        .collect();
    let head = [
        ("score at least", Set::Number),
        ("true positives", Set::Number),
        ("false positives", Set::Number),
        ("false negatives", Set::Number),
        ("true negatives", Set::Number),
        ("accuracy", Set::Number),
        ("precision", Set::Number),
        ("recall", Set::Number),
    ];
    fold("Decisions at a threshold", &head, rows, false)
}

fn comparisons(v: &Value) -> String {
    let rows = list(v, "comparisons")
        .iter()
        .map(|c| {
            let pair = format!(
                "{} against {}",
                text(c, "first").unwrap_or_default(),
                text(c, "second").unwrap_or_default()
            );
            vec![
                escape(&pair),
                share(num(c, "difference")),
                words::interval(num(c, "low"), num(c, "high")),
                share(num(c, "p_these_records")),
                share(num(c, "p_value")),
            ]
        })
        .collect();
    let head = [
        ("areas of", Set::Text),
        ("difference", Set::Number),
        ("95 % for these records", Set::Number),
        ("p, these records", Set::Number),
        ("p, with sampling", Set::Number),
    ];
    fold("Differences of areas", &head, rows, false)
}
