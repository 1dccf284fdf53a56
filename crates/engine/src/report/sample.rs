//! A made-up `release.json` with every kind of release, for tests and for looking at the report.
//!
//! All numbers are simulated with a fixed seed (shapes resemble UCI Adult and a census extract); nothing here is private.

use serde_json::{Value, json};

/// A small fixed generator: the sample must be the same on every machine.
struct Rng(u64);

impl Rng {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        #[allow(clippy::cast_precision_loss)]
        let u = ((z ^ (z >> 31)) >> 11) as f64;
        (u + 0.5) / 9_007_199_254_740_992.0
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Two-sided geometric noise of scale `b`, rounded.
    fn noise(&mut self, b: f64) -> f64 {
        (b * (self.uniform().ln() - self.uniform().ln())).round()
    }
}

/// Normal distribution function, to some 1e-7.
fn phi(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let tail = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt()
        * t
        * (0.319_381_530
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    if x >= 0.0 { 1.0 - tail } else { tail }
}

/// One entry of `releases`.
pub(crate) fn release(
    id: &str,
    kind: &str,
    epsilon: &str,
    replace: &str,
    value: &Value,
    flags: &[&str],
) -> Value {
    json!({
        "id": id, "kind": kind, "value": value,
        "receipt": {
            "event": {"kind": kind, "epsilon": epsilon},
            "cost": {"add_remove": {"epsilon": epsilon}, "replace_one": {"epsilon": replace}},
            "noise": [{"name": "counts", "distribution": "discrete Laplace", "scale": "20/9"}],
            "error_95": value.get("error_95").cloned().unwrap_or(Value::Null),
        },
        "flags": flags,
    })
}

/// The file around the releases.
pub(crate) fn file(id: &str, relation: &str, unit: &Value, releases: &[Value]) -> Value {
    json!({
        "version": 1, "software": "reticent 0.1.0", "dataset": {"id": id, "data_version": "1996"},
        "relation": relation, "unit": unit, "releases": releases,
        "ledger": {"sequence": 14, "head": "6b0e5f0c1d9a4f7b8d3a2c5e4f60718293a4b5c6d7e8f9010a1b2c3d4e5f6071"},
    })
}

fn income_model() -> Value {
    let terms = [
        ("(Intercept)", -6.91),
        ("age", 0.0312),
        ("educationHS-grad", 0.71),
        ("educationSome-college", 1.12),
        ("educationBachelors", 1.93),
        ("educationMasters", 2.31),
        ("educationDoctorate", 3.02),
        ("sexMale", 0.88),
        ("marital_statusMarried-civ-spouse", 2.08),
        ("hours_per_week", 0.0294),
        ("log1p(capital_gain)", 0.231),
    ];
    json!({
        "family": "logistic", "formula": "income ~ age + education + sex + marital_status + hours_per_week + log1p(capital_gain)",
        "response": "income", "positive": ">50K", "lambda": 1.9, "data_norm": 2.5,
        "terms": terms.iter().map(|(n, e)| json!({"name": n, "estimate": e})).collect::<Vec<_>>(),
        "columns": {"age": {"type": "integer", "lower": 17, "upper": 90}, "hours_per_week": {"type": "integer", "lower": 1, "upper": 99}},
    })
}

fn roc(rng: &mut Rng) -> Value {
    const M: usize = 32;
    let (positives, negatives, scale, c) = (3900.0, 12400.0, 1.0 / 0.45, 3.78);
    let (mut vertices, mut band) = (
        vec![json!({"threshold": 1.0, "fpr": 0.0, "tpr": 0.0})],
        Vec::new(),
    );
    let (mut tp, mut fp): (f64, f64) = (0.0, 0.0);
    let (mut true_tp, mut true_fp) = (0.0, 0.0);
    let mut previous = [0.0_f64; 4];
    for k in 1..=M {
        let cut = 4.6 - 7.4 * f64::from(u32::try_from(k).unwrap()) / 32.0;
        let (t, f) = if k == M {
            (1.0, 1.0)
        } else {
            (1.0 - phi(cut - 1.75), 1.0 - phi(cut))
        };
        tp += ((t - true_tp) * positives).round() + rng.noise(scale);
        fp += ((f - true_fp) * negatives).round() + rng.noise(scale);
        (true_tp, true_fp) = (t, f);
        let (tpr, fpr) = (
            (tp / positives).clamp(0.0, 1.0),
            (fp / negatives).clamp(0.0, 1.0),
        );
        let (tpr, fpr) = if k == M { (1.0, 1.0) } else { (tpr, fpr) };
        let kf = f64::from(u32::try_from(k).unwrap());
        let half = |x: f64, n: f64| {
            c * scale * 2.0_f64.sqrt() * ((1.0 - x).powi(2) * kf + x * x * (32.0 - kf)).sqrt() / n
        };
        let now = [
            (fpr - half(fpr, negatives)).max(0.0),
            if k == M {
                1.0
            } else {
                (fpr + half(fpr, negatives)).min(1.0)
            },
            (tpr - half(tpr, positives)).max(0.0),
            if k == M {
                1.0
            } else {
                (tpr + half(tpr, positives)).min(1.0)
            },
        ];
        band.push(json!({"fpr_low": previous[0], "fpr_high": now[1], "tpr_low": previous[2], "tpr_high": now[3]}));
        previous = now;
        vertices
            .push(json!({"threshold": 1.0 / (1.0 + (-(cut - 1.9)).exp()), "fpr": fpr, "tpr": tpr}));
    }
    json!({
        "model": "income", "positive": ">50K", "vertices": vertices, "curve": [], "interpolation": "lines",
        "auc": 0.8921, "auc_low": 0.8868, "auc_high": 0.8974, "band": band, "bins": [], "error_95": 9.0,
    })
}

fn binormal(area: f64) -> Vec<Value> {
    reticent_statistics::roc::symmetric_binormal(area)
        .into_iter()
        .map(|(f, t)| json!({"fpr": f, "tpr": t}))
        .collect()
}

fn binned(rng: &mut Rng) -> Value {
    let bins: Vec<Value> = (0..32)
        .map(|i| {
            let u = (f64::from(i) + 0.5) / 32.0;
            let p = u.powi(2) * 0.93 + 0.004;
            let n = 508.0 + rng.noise(3.0);
            let se = (p * (1.0 - p) / n).sqrt() + 0.004;
            let miss = 0.045 * (u * 7.0).sin() * u;
            json!({"low": p - 0.01, "high": p + 0.01, "count": n, "positives": (n * p).round(), "mean_fitted": p,
                   "mean_residual": miss + se * rng.normal(), "two_se": 2.0 * se})
        })
        .collect();
    json!({"model": "income", "x": "fitted probability", "bins": bins, "weighted_slope": 0.012, "error_95": 13.0})
}

fn income_linear() -> Value {
    let term = |n: &str, e: f64, s: f64, z: f64| {
        let se = s.hypot(z);
        json!({"name": n, "estimate": e, "std_error": se, "sampling_error": s, "noise_error": z,
               "conf_low": e - 1.96 * se, "conf_high": e + 1.96 * se})
    };
    json!({
        "family": "linear", "formula": "income ~ age + educ + sex + married", "response": "income",
        "terms": [term("(Intercept)", -32410.0, 1460.0, 910.0), term("age", 341.2, 19.1, 14.7), term("educ", 4387.0, 105.0, 71.0),
                  term("sex", -14320.0, 640.0, 512.0), term("married", 8012.0, 690.0, 530.0)],
        "prediction": [{"name": "(Intercept)", "estimate": -32100.0}], "residual_sd": 35210.0, "r_squared": 0.2413, "df": 9987, "n": 9992.0,
        "columns": {"age": {"lower": 18, "upper": 93}, "educ": {"lower": 1, "upper": 16}},
    })
}

fn residuals(rng: &mut Rng) -> Value {
    const M: usize = 18;
    let (x0, x1, y0, y1) = (-14000.0, 74000.0, -60000.0, 150_000.0);
    let mut cells = vec![0.0_f64; M * M];
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let place =
        |v: f64, a: f64, b: f64| (((v - a) / (b - a) * 18.0).floor().clamp(0.0, 17.0)) as usize;
    for _ in 0..3400 {
        let x: f64 = (24000.0 + 15000.0 * rng.normal()).clamp(x0, x1);
        let spread = 6000.0 + 0.5 * (x - x0);
        let y =
            (spread * (rng.normal() + 0.35 * (rng.normal().powi(2) - 1.0))).clamp((-x).max(y0), y1);
        cells[place(x, x0, x1) * M + place(y, y0, y1)] += 1.0;
    }
    let (mut points, mut columns) = (Vec::new(), Vec::new());
    let at = |i: f64, a: f64, b: f64| a + (b - a) * i / 18.0;
    for i in 0..M {
        let mut ys = Vec::new();
        for j in 0..M {
            let c = cells[i * M + j] + rng.noise(1.25);
            cells[i * M + j] = c;
            let mut left = if c < 1.25 { 0.0 } else { c };
            while left >= 1.0 {
                left -= 1.0;
                let (fi, fj) = (
                    f64::from(u32::try_from(i).unwrap()),
                    f64::from(u32::try_from(j).unwrap()),
                );
                let y = at(fj + rng.uniform(), y0, y1).round();
                points.push(json!([at(fi + rng.uniform(), x0, x1).round(), y]));
                ys.push(y);
            }
        }
        if ys.len() >= 40 {
            ys.sort_by(f64::total_cmp);
            let n = ys.len();
            let x = at(f64::from(u32::try_from(i).unwrap()) + 0.5, x0, x1);
            columns
                .push(json!({"x": x, "q10": ys[n / 10], "q50": ys[n / 2], "q90": ys[n * 9 / 10]}));
        }
    }
    json!({"model": "pay", "x": "fitted", "y": "residual", "box": {"x_low": x0, "x_high": x1, "y_low": y0, "y_high": y1}, "side": M,
           "counts": cells, "threshold": 1.25, "points": points, "seed": 17, "columns": columns})
}

/// One release of every kind.
#[allow(
    clippy::too_many_lines,
    reason = "one document, read from top to bottom"
)]
pub(crate) fn releases() -> Vec<Value> {
    let mut rng = Rng(7);
    let ages: Vec<f64> = (0..20)
        .map(|i| {
            let a = 17.0 + 3.65 * f64::from(i);
            (5600.0 * (-(a - 34.0).powi(2) / (if a < 34.0 { 300.0 } else { 620.0 })).exp()).round()
                + rng.noise(4.0)
                - 4.0
        })
        .collect();
    let edges: Vec<f64> = (0..=20).map(|i| 17.0 + 3.65 * f64::from(i)).collect();
    let education = [
        "<HS",
        "HS-grad",
        "Some-college",
        "Associate (academic)",
        "Bachelors",
        "Masters",
        "Doctorate",
    ];
    vec![
        release(
            "people",
            "count",
            "0.05",
            "0.1",
            &json!({"count": 48861, "error_95": 60.0}),
            &[],
        ),
        release(
            "income",
            "logistic",
            "0.5",
            "1",
            &income_model(),
            &["row_clip"],
        ),
        release("roc", "roc", "0.5", "1", &roc(&mut rng), &[]),
        release(
            "fit-check",
            "binned_residuals",
            "0.5",
            "1",
            &binned(&mut rng),
            &[],
        ),
        release("pay", "linear", "0.5", "0.7072", &income_linear(), &[]),
        release(
            "pay-residuals",
            "residuals",
            "1",
            "1.8",
            &residuals(&mut rng),
            &[],
        ),
        release(
            "ages",
            "histogram",
            "0.1",
            "0.2",
            &json!({"column": "age", "edges": edges, "counts": ages, "error_95": 30.0}),
            &[],
        ),
        release(
            "schooling",
            "histogram",
            "0.1",
            "0.2",
            &json!({"column": "education", "levels": education, "counts": [6390, 15802, 10871, 3669, 8012, 2663, 588], "error_95": 30.0}),
            &[],
        ),
        release(
            "sex-by-school",
            "crosstab",
            "0.1",
            "0.2",
            &json!({"axes": [{"name": "education", "levels": education}, {"name": "sex", "levels": ["Female", "Male"]}],
                    "counts": [1990, 4411, 5099, 10684, 4212, 6688, 1452, 2190, 2471, 5560, 822, 1829, 118, 489], "error_95": 30.0}),
            &[],
        ),
        release(
            "hours",
            "quantiles",
            "0.1",
            "0.2",
            &json!({"column": "hours_per_week", "levels": [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95], "values": [17.5, 24.0, 39.9, 40.1, 45.0, 54.9, 60.0],
                    "step": 0.0239, "rank_error_95": 0.004}),
            &[],
        ),
        release(
            "occupations",
            "top_k",
            "0.1",
            "0.2",
            &json!({"column": "occupation", "k": 3, "method": "counts", "candidates": 14,
                    "top": ["Prof-specialty", "Craft-repair", "Exec-managerial"], "counts": [6172, 6112, 6086], "gaps": null,
                    "rank_error_95": 112.7}),
            &[],
        ),
        release(
            "words",
            "select",
            "0.1",
            "0.2",
            &json!({"score": "difference", "method": "counts", "candidates": 4096, "features": ["text=free", "text=win", "(hours > 40)TRUE"],
                    "scores": [402, 371, 120], "noise_sd": 28.3, "label": "spam", "positive": "yes", "formula": "spam ~ text + (hours > 40)"}),
            &[],
        ),
        release(
            "arrivals",
            "running_total",
            "0.1",
            "0.2",
            &json!({"column": "day", "method": "honaker", "steps": 8, "edges": [0, 1, 2, 3, 4, 5, 6, 7, 8],
                    "totals": [411.0, 905.3, 1410.9, 1822.0, 2390.2, 2702.8, 3260.4, 3711.1],
                    "errors_95": [119.8, 97.8, 152.2, 90.6, 148.8, 132.6, 178.2, 87.7]}),
            &[],
        ),
        release(
            "area",
            "auc",
            "0.3",
            "0.3",
            &json!({"model": "income", "positive": ">50K", "auc": 0.884, "binormal_curve": binormal(0.884),
                    "binormal_assumes": "normal scores of equal variance"}),
            &[],
        ),
        release(
            "premium",
            "verify",
            "0.5",
            "1",
            &json!({"question": "differs", "from": 0.0, "level": 0.05, "term": "education", "family": "least squares",
                    "formula": "income ~ age + education", "groups": 257, "votes": 231, "share": 0.8988, "p_value": 1.2e-33,
                    "answer": "yes", "direction": "above", "detects": 3.9, "error_95": 5.0}),
            &[],
        ),
        release(
            "unseen",
            "cross_validation",
            "0",
            "0",
            &json!({"measure": "auc", "estimate": 0.881, "low": 0.874, "high": 0.888, "model": "income", "family": "logistic",
                    "formula": "income ~ age + education", "positive": ">50K", "interval": "approximately .95",
                    "folds": [{"fold": 1, "estimate": 0.884, "low": 0.868, "high": 0.9}, {"fold": 2, "estimate": 0.878, "low": 0.862, "high": 0.894},
                              {"fold": 3, "estimate": null, "low": null, "high": null}]}),
            &["fold_without_figure"],
        ),
        release(
            "gain",
            "sum",
            "0.05",
            "0.1",
            &json!({"sum": 48_812_345.0, "error_95": 1_198_293.0, "bounds": [0, 20000]}),
            &[],
        ),
        release(
            "age",
            "mean",
            "0.05",
            "0.06",
            &json!({"mean": 38.643, "error_95": 0.031, "sum": 1_888_000, "count": 48861}),
            &[],
        ),
        release(
            "income-range",
            "bounds",
            "0.05",
            "0.05",
            &json!({"column": "income", "coverage": 0.985, "lower": -1200.0, "upper": 201_000.0}),
            &["range_fallback"],
        ),
        release(
            "later",
            "naive_bayes",
            "0.1",
            "0.2",
            &json!({"classes": ["a", "b"], "table": [[1, 2], [3, 4]], "note": null}),
            &[],
        ),
    ]
}
