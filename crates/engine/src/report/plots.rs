//! The charts: each takes a released value and returns a drawing with its legend, or nothing when there is nothing to
//! draw. Only released numbers are read here.

use std::fmt::Write as _;

use serde_json::Value;

use super::read::{list, num, nums, pairs, plain, text};
use super::svg::{Axis, Plot, Ticks, Words, squeeze};
use super::words::{self, as_f64};

/// A drawing and the entries of its legend (the class of the key, its words).
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) svg: String,
    pub(super) legend: Vec<(&'static str, String)>,
    /// Something the reader must know about the drawing, such as points left out.
    pub(super) note: Option<String>,
}

/// Points drawn at most; more would only blacken the page.
const MOST_POINTS: usize = 4000;
/// Rows drawn at most in charts with one row per term or level.
pub(super) const MOST_ROWS: usize = 60;
/// Bars drawn at most; more become a line of steps.
const MOST_BARS: usize = 300;
const ROW: f64 = 21.0;

/// The chart of a kind.
pub(super) fn figure(kind: &str, value: &Value, key: &str) -> Option<Figure> {
    match kind {
        "roc" => super::roc::several(value, key).or_else(|| roc(value, key)),
        "auc" => super::roc::binormal(value, key),
        "residuals" => residuals(value, key),
        "binned_residuals" => binned(value, key),
        "histogram" => histogram(value, key),
        "linear" | "regress" | "logistic" | "naive_bayes" => coefficients(value, key),
        "quantiles" => quantiles(value, key),
        "running_total" => super::counted::running_total(value, key),
        "top_k" => super::counted::top_k(value, key),
        "select" => super::counted::select(value, key),
        _ => None,
    }
}

fn roc(v: &Value, key: &str) -> Option<Figure> {
    let vertices = pairs(list(v, "vertices"), "fpr", "tpr");
    let mut curve = pairs(list(v, "curve"), "fpr", "tpr");
    if curve.is_empty() {
        curve.clone_from(&vertices);
    }
    if curve.is_empty() {
        return None;
    }
    if !super::roc::drawn(v) {
        return super::roc::band_alone(v, key);
    }
    let mut p = Plot::new(
        Axis::exact(0.0, 1.0, 5.0),
        Axis::exact(0.0, 1.0, 5.0),
        468.0,
    );
    let mut legend = vec![("line", "private ROC curve".to_owned())];
    if !vertices.is_empty() {
        let marks = match text(v, "thresholds").as_deref() {
            Some("stratified") => "measured thresholds, quantiles of each class",
            Some("label_separate") => "quantiles of each class; nothing is counted between them",
            _ => "measured thresholds",
        };
        legend.push(("mark", marks.to_owned()));
    }
    if super::roc::draw_band(&mut p, v) {
        legend.push(("band", "95 % band for the true curve".to_owned()));
    }
    p.line("reference", &[(0.0, 0.0), (1.0, 1.0)]);
    legend.push(("reference", "no better than chance".to_owned()));
    p.line("line", &curve);
    for (f, t) in &vertices {
        p.circle("mark", (*f, *t), 3.2);
    }
    let auc = words::interval(num(v, "auc_low"), num(v, "auc_high"));
    let half = num(v, "auc_high")
        .zip(num(v, "auc_low"))
        .map(|(h, l)| (h - l) / 2.0);
    let area = num(v, "auc").map(|a| format!("AUC {}", words::to_error(a, half)));
    if let Some(area) = &area {
        p.text("big", p.width - 24.0, p.height - 94.0, "end", area);
        if auc != words::NONE {
            p.text(
                "note",
                p.width - 24.0,
                p.height - 74.0,
                "end",
                &format!("95 %: {auc}"),
            );
        }
    }
    let description = format!(
        "Curve of the true positive rate against the false positive rate, from {} measured thresholds. {}{}",
        vertices.len(),
        area.map_or_else(String::new, |a| format!("{a}, 95 % interval {auc}. ")),
        middle(&curve)
    );
    let words = Words {
        title: "ROC curve",
        description: &description,
        x: "false positive rate",
        y: "true positive rate",
    };
    Some(Figure {
        svg: p.finish(key, &words, Ticks::Numbers, Ticks::Numbers),
        legend,
        note: None,
    })
}

pub(super) fn middle(curve: &[(f64, f64)]) -> String {
    curve
        .iter()
        .find(|(f, _)| *f >= 0.1)
        .map_or_else(String::new, |(f, t)| {
            format!(
                "At a false positive rate of {} the true positive rate is {}.",
                words::fixed(*f, 2),
                words::fixed(*t, 2)
            )
        })
}

/// Points joined by straight lines, in data coordinates.
pub(super) type Polyline = Vec<(f64, f64)>;

/// Upper and lower edge of a union of rectangles, as steps; a gap in the union starts a new piece.
pub(super) fn outline(band: &[[f64; 4]]) -> Vec<Polyline> {
    let mut cuts: Vec<f64> = band.iter().flat_map(|b| [b[0], b[1]]).collect();
    cuts.sort_by(f64::total_cmp);
    cuts.dedup();
    let (mut upper, mut lower): (Vec<Polyline>, Vec<Polyline>) =
        (vec![Vec::new()], vec![Vec::new()]);
    for w in cuts.windows(2) {
        let &[a, b] = w else { continue };
        let over: Vec<&[f64; 4]> = band.iter().filter(|r| r[0] <= a && r[1] >= b).collect();
        if over.is_empty() {
            upper.push(Vec::new());
            lower.push(Vec::new());
            continue;
        }
        let high = over.iter().map(|r| r[3]).fold(f64::NEG_INFINITY, f64::max);
        let low = over.iter().map(|r| r[2]).fold(f64::INFINITY, f64::min);
        if let (Some(u), Some(l)) = (upper.last_mut(), lower.last_mut()) {
            u.extend([(a, high), (b, high)]);
            l.extend([(a, low), (b, low)]);
        }
    }
    upper
        .into_iter()
        .chain(lower)
        .filter(|e| !e.is_empty())
        .collect()
}

fn residuals(v: &Value, key: &str) -> Option<Figure> {
    let frame = v.get("box")?;
    let (x0, x1) = (num(frame, "x_low")?, num(frame, "x_high")?);
    let (y0, y1) = (num(frame, "y_low")?, num(frame, "y_high")?);
    let (dx, dy) = ((x1 - x0).abs() * 0.03, (y1 - y0).abs() * 0.03);
    // Zero stays in view even when the released box does not hold it.
    let mut p = Plot::new(
        Axis::exact(x0 - dx, x1 + dx, 5.0),
        Axis::exact(y0.min(0.0) - dy, y1.max(0.0) + dy, 6.0),
        380.0,
    );
    let points: Vec<(f64, f64)> = list(v, "points")
        .iter()
        .filter_map(|q| {
            Some((
                super::read::number(q.get(0)?)?,
                super::read::number(q.get(1)?)?,
            ))
        })
        .collect();
    let every = points.len().div_ceil(MOST_POINTS).max(1);
    let drawn: Vec<(f64, f64)> = points.iter().copied().step_by(every).collect();
    let columns = list(v, "columns");
    let (low, mid, high) = (
        pairs(columns, "x", "q10"),
        pairs(columns, "x", "q50"),
        pairs(columns, "x", "q90"),
    );
    let mut legend = vec![("dot", "drawn from released cells".to_owned())];
    p.rect("frame", (x0, y0), (x1, y1));
    p.area("shade", &low, &high);
    let size = match drawn.len() {
        0..=600 => "dots large",
        601..=2000 => "dots middle",
        _ => "dots small",
    };
    p.dots(size, &drawn);
    p.across("zero", 0.0);
    if low.len() > 1 {
        p.line("edge", &low);
        p.line("edge", &high);
        p.line("median", &mid);
        legend.push(("median", "median of each column".to_owned()));
        legend.push(("shade", "middle 80 %".to_owned()));
    }
    legend.push(("zero", "zero".to_owned()));
    legend.push(("frame", "released box".to_owned()));
    let note = match (points.len(), every) {
        (0, _) => {
            Some("No cell rose above the noise threshold, so there are no points.".to_owned())
        }
        (n, e) if e > 1 => Some(format!(
            "{} of {} points are drawn; all are in release.json.",
            words::fixed(as_f64(drawn.len()), 0),
            words::fixed(as_f64(n), 0)
        )),
        _ => None,
    };
    let tests = v.get("tests").map_or_else(String::new, |t| {
        let p = |test: &str| {
            t.get(test)
                .and_then(|t| num(t, "p_value"))
                .map_or_else(|| "unknown".to_owned(), chance)
        };
        format!(
            "Test for curvature: p {}; for a fan: p {} (sampling and privacy noise included).",
            p("curvature"),
            p("fan")
        )
    });
    let note = match (note, tests.is_empty()) {
        (note, true) => note,
        (None, false) => Some(tests.clone()),
        (Some(note), false) => Some(format!("{note} {tests}")),
    };
    let description = format!(
        "Residuals against fitted values: {} points drawn from the released cells of a box from {} to {} across and {} to {} \
         up. A horizontal line marks zero. {tests}",
        points.len(),
        words::number(x0),
        words::number(x1),
        words::number(y0),
        words::number(y1)
    );
    let (xn, yn) = (
        text(v, "x").unwrap_or_else(|| "fitted".into()),
        text(v, "y").unwrap_or_else(|| "residual".into()),
    );
    let words = Words {
        title: "Residual plot",
        description: description.trim_end(),
        x: &xn,
        y: &yn,
    };
    Some(Figure {
        svg: p.finish(key, &words, Ticks::Numbers, Ticks::Numbers),
        legend,
        note,
    })
}

/// A p value to two digits.
fn chance(p: f64) -> String {
    if p < 0.0001 {
        "below 0.0001".to_owned()
    } else {
        format!("= {}", words::fixed(p, if p < 0.1 { 4 } else { 2 }))
    }
}

fn binned(v: &Value, key: &str) -> Option<Figure> {
    struct Bin {
        at: (f64, f64),
        limit: f64,
        count: f64,
    }
    let mut bins: Vec<Bin> = list(v, "bins")
        .iter()
        .filter_map(|b| {
            Some(Bin {
                at: (
                    num(b, "place").or_else(|| num(b, "mean_fitted"))?,
                    num(b, "mean_residual")?,
                ),
                limit: num(b, "two_se").unwrap_or(0.0).abs(),
                count: num(b, "count").unwrap_or(0.0).max(0.0),
            })
        })
        .collect();
    if bins.is_empty() {
        return None;
    }
    bins.sort_by(|a, b| a.at.0.total_cmp(&b.at.0));
    let most = bins.iter().map(|b| b.count).fold(1.0, f64::max);
    // A near-empty bin has limits so wide that they would flatten everything else: the view follows the points and
    // the usual limits.
    let mut widths: Vec<f64> = bins.iter().map(|b| b.limit).collect();
    widths.sort_by(f64::total_cmp);
    let usual = widths
        .get(widths.len() * 9 / 10)
        .or(widths.last())
        .copied()
        .unwrap_or(0.0);
    let reach = bins.iter().map(|b| b.at.1.abs()).fold(usual, f64::max) * 1.08;
    let (first, last) = (bins.first()?.at.0, bins.last()?.at.0);
    // Room for the circles at both ends.
    let pad = ((last - first) * 0.04).max(1e-3);
    let xs = Axis::exact(first - pad, last + pad, 5.0);
    let mut p = Plot::new(xs, Axis::around([-reach, reach], 6.0), 360.0);
    let upper: Vec<(f64, f64)> = bins.iter().map(|b| (b.at.0, b.limit)).collect();
    let lower: Vec<(f64, f64)> = upper.iter().map(|(x, y)| (*x, -y)).collect();
    p.area("shade", &lower, &upper);
    p.line("edge", &upper);
    p.line("edge", &lower);
    p.across("zero", 0.0);
    let mut outside = 0;
    for b in &bins {
        let out = b.at.1.abs() > b.limit;
        outside += usize::from(out);
        p.circle(
            if out { "bubble out" } else { "bubble" },
            b.at,
            3.0 + 6.0 * (b.count / most).sqrt(),
        );
    }
    let description = format!(
        "Mean residual for {} groups of records, from left to right; {outside} lie outside the limits of two standard errors.",
        bins.len()
    );
    let legend = vec![
        ("bubble", "group of records, area by count".to_owned()),
        ("bubble out", "outside its limits".to_owned()),
        ("shade", "± 2 standard errors, noise included".to_owned()),
        ("zero", "zero".to_owned()),
    ];
    let slope = num(v, "weighted_slope").map_or_else(String::new, |s| {
        format!(
            " Slope of the residuals, weighted by count: {}.",
            words::number(s)
        )
    });
    let note = Some(format!(
        "{outside} of {} lie outside; about {} would by chance.{slope}",
        words::plural(bins.len(), "group", "groups"),
        words::number((as_f64(bins.len()) * 0.5).round() / 10.0)
    ));
    let xn = if list(v, "bins").iter().any(|b| b.get("place").is_some()) {
        text(v, "x").unwrap_or_else(|| "column".into())
    } else {
        "mean fitted probability".to_owned()
    };
    let words = Words {
        title: "Binned residual plot",
        description: &description,
        x: &xn,
        y: "mean residual",
    };
    Some(Figure {
        svg: p.finish(key, &words, Ticks::Numbers, Ticks::Numbers),
        legend,
        note,
    })
}

#[allow(
    clippy::too_many_lines,
    reason = "one drawing, read from top to bottom"
)]
fn histogram(v: &Value, key: &str) -> Option<Figure> {
    if !list(v, "axes").is_empty() {
        return super::heat::figure(v, key);
    }
    let counts = nums(v, "counts");
    if counts.is_empty() {
        return None;
    }
    let error = num(v, "error_95").unwrap_or(0.0).abs();
    let name = text(v, "column").unwrap_or_default();
    let clipped = counts.iter().filter(|c| **c < 0.0).count();
    let note = (clipped > 0).then(|| {
        format!(
            "{} below zero because of the noise; drawn as zero.",
            words::plural(clipped, "count is", "counts are")
        )
    });
    let mut legend = vec![("bar", "released count".to_owned())];
    if error > 0.0 {
        legend.push((
            "whisker",
            format!(
                "± {}, 95 % of the noise",
                words::to_error(error, Some(error))
            ),
        ));
    }
    let top = counts
        .iter()
        .copied()
        .filter(|c| c.is_finite())
        .fold(0.0, f64::max)
        + error;
    let largest = counts
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, c)| c.is_finite())
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let edges = nums(v, "edges");
    if edges.len() == counts.len() + 1 && edges.iter().all(|e| e.is_finite()) {
        let xs = Axis::exact(edges.first().copied()?, edges.last().copied()?, 6.0);
        let mut p = Plot::new(xs, Axis::around([0.0, top], 5.0), 320.0);
        let many = counts.len() > MOST_BARS;
        if many {
            let steps: Vec<(f64, f64)> = edges
                .windows(2)
                .zip(&counts)
                .filter(|(_, c)| c.is_finite())
                .flat_map(|(pair, c)| pair.iter().map(|x| (*x, c.max(0.0))).collect::<Vec<_>>())
                .collect();
            p.line("line", &steps);
            legend = vec![("line", "released count".to_owned())];
        }
        for (pair, c) in edges.windows(2).zip(&counts).filter(|_| !many) {
            if let (&[a, b], true) = (pair, c.is_finite()) {
                p.rect("bar", (a, 0.0), (b, c.max(0.0)));
                let at = f64::midpoint(a, b);
                if error > 0.0 {
                    p.line(
                        "whisker",
                        &[(at, (c - error).max(0.0)), (at, (c + error).max(0.0))],
                    );
                }
            }
        }
        let description = format!(
            "Histogram of {name} in {} bins{}.",
            counts.len(),
            largest.map_or_else(String::new, |(i, c)| format!(
                ", the fullest from {} to {} with {} records",
                words::number(edges.get(i).copied().unwrap_or(f64::NAN)),
                words::number(edges.get(i + 1).copied().unwrap_or(f64::NAN)),
                words::number(c)
            ))
        );
        let words = Words {
            title: "Histogram",
            description: &description,
            x: &name,
            y: "records per bin",
        };
        return Some(Figure {
            svg: p.finish(key, &words, Ticks::Numbers, Ticks::Numbers),
            legend,
            note,
        });
    }
    let levels: Vec<String> = list(v, "levels")
        .iter()
        .map(|l| plain(l).unwrap_or_default())
        .collect();
    let rows: Vec<(String, f64)> = counts
        .iter()
        .enumerate()
        .map(|(i, c)| {
            (
                levels
                    .get(i)
                    .cloned()
                    .unwrap_or_else(|| format!("bin {}", i + 1)),
                *c,
            )
        })
        .take(MOST_ROWS)
        .collect();
    let names: Vec<&str> = rows.iter().map(|r| r.0.as_str()).collect();
    let mut p = rows_plot(&names, Axis::around([0.0, top], 5.0), 30.0);
    for (i, (_, c)) in rows.iter().enumerate() {
        let y = as_f64(i) + 0.5;
        p.rect("bar", (0.0, y - 0.32), (c.max(0.0), y + 0.32));
        if error > 0.0 && c.is_finite() {
            p.line(
                "whisker",
                &[((c - error).max(0.0), y), ((c + error).max(0.0), y)],
            );
        }
    }
    let description = format!(
        "Counts of {} levels of {name}{}.",
        counts.len(),
        largest
            .and_then(|(i, c)| Some(format!(
                ", most frequent {} with {}",
                levels.get(i)?,
                words::number(c)
            )))
            .unwrap_or_default()
    );
    let words = Words {
        title: "Histogram",
        description: &description,
        x: "records",
        y: &name,
    };
    let note = if counts.len() > MOST_ROWS {
        Some(format!("The first {MOST_ROWS} levels are drawn."))
    } else {
        note
    };
    Some(Figure {
        svg: p.finish(key, &words, Ticks::Numbers, Ticks::None),
        legend,
        note,
    })
}

/// A chart with one labelled row per entry; the vertical axis counts rows from the top.
pub(super) fn rows_plot(names: &[&str], xs: Axis, top: f64) -> Plot {
    const MOST: usize = 26;
    let n = as_f64(names.len().max(1));
    let longest = names
        .iter()
        .map(|s| s.chars().count().min(MOST))
        .max()
        .unwrap_or(0);
    let mut ys = Axis::exact(0.0, n, 5.0);
    std::mem::swap(&mut ys.low, &mut ys.high);
    let mut p = Plot::new(xs, ys, 0.0);
    p.top = top;
    p.height = top + p.bottom + ROW * n;
    p.left = (as_f64(longest) * 7.8 + 16.0).clamp(54.0, 220.0);
    for (i, name) in names.iter().enumerate() {
        let y = p.y(as_f64(i) + 0.5).unwrap_or(0.0) + 4.0;
        let x = p.left - 7.0;
        p.text("tick", x, y, "end", &squeeze(name, MOST));
    }
    p
}

/// A term in comparable units: what it adds over the declared range of its column, or against the base level.
struct Effect {
    label: String,
    estimate: f64,
    low: Option<f64>,
    high: Option<f64>,
}

fn effects(v: &Value) -> Vec<Effect> {
    let columns = v.get("columns");
    list(v, "terms")
        .iter()
        .filter_map(|t| {
            let name = text(t, "name")?;
            let estimate = num(t, "estimate")?;
            let range = columns
                .and_then(|c| c.get(&name))
                .and_then(|c| Some((num(c, "lower")?, num(c, "upper")?)))
                .filter(|(a, b)| b > a && (b - a).is_finite());
            let (by, label) = match range {
                Some((a, b)) => (
                    b - a,
                    format!("{name} ({}→{})", words::number(a), words::number(b)),
                ),
                None => (1.0, name.clone()),
            };
            (name != "(Intercept)").then(|| Effect {
                label,
                estimate: estimate * by,
                low: num(t, "conf_low").map(|x| x * by),
                high: num(t, "conf_high").map(|x| x * by),
            })
        })
        .collect()
}

#[allow(
    clippy::too_many_lines,
    reason = "one drawing, read from top to bottom"
)]
fn coefficients(v: &Value, key: &str) -> Option<Figure> {
    let all = effects(v);
    if all.is_empty() {
        return None;
    }
    let shown: Vec<&Effect> = all.iter().take(MOST_ROWS).collect();
    let with_range = shown
        .iter()
        .any(|e| e.label.ends_with(')') && e.label.contains('→'));
    // One very wide interval must not flatten the others: the view holds all estimates and the narrower intervals.
    let widest = shown.iter().map(|e| e.estimate.abs()).fold(0.0, f64::max) * 2.5;
    let ends = shown.iter().flat_map(|e| {
        let cap = |x: f64| {
            if widest > 0.0 {
                x.clamp(-widest, widest)
            } else {
                x
            }
        };
        [
            e.estimate,
            e.low.map_or(e.estimate, cap),
            e.high.map_or(e.estimate, cap),
            0.0,
        ]
    });
    let names: Vec<&str> = shown.iter().map(|e| e.label.as_str()).collect();
    let mut p = rows_plot(&names, Axis::around(ends, 5.0), 10.0);
    p.upright("zero", 0.0);
    let mut intervals = false;
    for (i, e) in shown.iter().enumerate() {
        let y = as_f64(i) + 0.5;
        if let (Some(low), Some(high)) = (e.low, e.high) {
            intervals = true;
            p.line("bar-interval", &[(low, y), (high, y)]);
        } else {
            p.line("stem", &[(0.0, y), (e.estimate, y)]);
        }
        p.circle("mark full", (e.estimate, y), 3.6);
    }
    let linear = text(v, "family").as_deref() == Some("linear");
    let response = text(v, "response").unwrap_or_else(|| "the response".into());
    let x = if linear {
        format!("change in {response}")
    } else {
        "change in log odds".to_owned()
    };
    let mut legend = vec![("mark full", "estimate".to_owned())];
    if intervals {
        legend.push(("bar-interval", "95 % interval, noise included".to_owned()));
    }
    legend.push(("zero", "no effect".to_owned()));
    let mut note = String::new();
    if with_range {
        note.push_str(
            "Arrows give the declared range over which the effect of a numeric column is drawn; ",
        );
        note.push_str("other terms are drawn per unit or against their base level. ");
    }
    if shown
        .iter()
        .flat_map(|e| [e.low, e.high])
        .flatten()
        .any(|x| x < p.xs.low || x > p.xs.high)
    {
        note.push_str("An interval that reaches the edge goes on beyond it. ");
    }
    if all.len() > shown.len() {
        let _ = write!(
            note,
            "The first {MOST_ROWS} of {} terms are drawn.",
            all.len()
        );
    }
    let strongest = shown
        .iter()
        .max_by(|a, b| a.estimate.abs().total_cmp(&b.estimate.abs()));
    let description = format!(
        "Estimates of {} terms{}{}.",
        all.len(),
        if intervals {
            " with 95 % intervals"
        } else {
            ""
        },
        strongest.map_or_else(String::new, |e| format!(
            ", the largest {} at {}",
            e.label,
            words::number(e.estimate)
        ))
    );
    let words = Words {
        title: "Coefficients",
        description: &description,
        x: &x,
        y: "",
    };
    let note = (!note.is_empty()).then(|| note.trim_end().to_owned());
    Some(Figure {
        svg: p.finish(key, &words, Ticks::Numbers, Ticks::None),
        legend,
        note,
    })
}

fn quantiles(v: &Value, key: &str) -> Option<Figure> {
    let points: Vec<(f64, f64)> = nums(v, "values")
        .into_iter()
        .zip(nums(v, "levels"))
        .filter(|(x, q)| x.is_finite() && (0.0..=1.0).contains(q))
        .collect();
    if points.len() < 3 {
        return None;
    }
    let mut p = Plot::new(
        Axis::around(points.iter().map(|q| q.0), 5.0),
        Axis::exact(0.0, 1.0, 5.0),
        300.0,
    );
    p.line("line", &points);
    for q in &points {
        p.circle("mark", *q, 3.4);
    }
    let name = text(v, "column").unwrap_or_default();
    let description = format!(
        "Share of records below a value of {name}, at {} released quantiles.",
        points.len()
    );
    let words = Words {
        title: "Quantiles",
        description: &description,
        x: &name,
        y: "share of records below",
    };
    let legend = vec![("mark", "released quantile".to_owned())];
    Some(Figure {
        svg: p.finish(key, &words, Ticks::Numbers, Ticks::Numbers),
        legend,
        note: None,
    })
}
