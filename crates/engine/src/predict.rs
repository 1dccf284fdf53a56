//! Predictions of a released model for rows the caller brings. Each row is predicted by itself: nothing
//! depends on which rows come together.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use reticent_mechanisms::program::{Comparison, Expr, Function, entry};
use reticent_mechanisms::rows::{Kind, Missing, Schema};
use serde_json::{Value, json};

use crate::failure::{Error, Failure};
use crate::formula::{Family, Response};
use crate::model::Model;
use crate::outcome::Refusal;

/// Predicts every row of a CSV file (also .gz) with a model given as `release.json#id`.
///
/// The result is CSV with one line per row: for a logistic model `probability` and `class` (the positive
/// level from the threshold on), for a linear one `prediction`; with one level against the rest, `probability` is that of the
/// most probable level, its share of the sum over the levels. The threshold is ½, a number, or a released one,
/// `release.json#id`. A row with a missing or undeclared cell has empty predictions. Numbers are clamped to the bounds the
/// model was fitted under.
pub fn predict(model: &str, data: &Path, threshold: Option<&str>) -> Result<String, Failure> {
    let (path, value) = released(model, "model")?;
    let refuse = |what: String| Refusal::request(what).in_file(&path);
    let schema: Schema = value
        .get("columns")
        .cloned()
        .and_then(|c| serde_json::from_value(c).ok())
        .ok_or_else(|| {
            refuse("the model does not say which columns it was fitted on".to_owned())
        })?;
    if value.get("texts").is_some() {
        return Err(refuse("the model reads words of texts".to_owned())
            .accepting("Models with columns of tokens can be examined by a plan (roc, binned_residuals), not used by `predict`.")
            .into());
    }
    let threshold = threshold.map(threshold_of).transpose()?;
    if value.get("family").and_then(Value::as_str) == Some("one_against_rest") {
        if threshold.is_some() {
            return Err(refuse("a threshold needs a model of two classes".to_owned()).into());
        }
        return most_probable(&value, &schema, data, &refuse);
    }
    let model = Model::read(&value).map_err(|e| refuse(e.to_string()))?;
    let design = model.design(&schema).map_err(|e| refuse(e.to_string()))?;
    let predictor = model.linear_predictor(&design);
    let rows = Rows::open(data, &schema, &predictor)?;
    let mut out = String::new();
    let classes = classes(&design.response, model.family);
    if classes.is_none() && threshold.is_some() {
        return Err(refuse("a threshold needs a model of two classes".to_owned()).into());
    }
    out.push_str(if classes.is_some() {
        "probability,class\n"
    } else {
        "prediction\n"
    });
    let threshold = threshold.unwrap_or(0.5);
    for cells in rows.cells {
        let linear = cells.as_ref().map(|c| evaluate(&predictor, c));
        match (&classes, linear) {
            (Some((yes, no)), Some(x)) => {
                let p = 1.0 / (1.0 + (-x).exp());
                let _ = writeln!(out, "{p},{}", field(if p >= threshold { yes } else { no }));
            }
            (None, Some(x)) => {
                let _ = writeln!(out, "{x}");
            }
            (Some(_), None) => out.push_str(",\n"),
            (None, None) => out.push_str("\"\"\n"),
        }
    }
    Ok(out)
}

/// A number between 0 and 1, or that of a released threshold.
fn threshold_of(text: &str) -> Result<f64, Failure> {
    let refuse = || {
        Refusal::request("not a probability threshold")
            .for_key("--threshold")
            .with_value(text)
            .accepting("Write a number from 0 to 1, or release.json#id of a threshold release.")
    };
    let value = match text.parse::<f64>() {
        Ok(x) => Some(x),
        Err(_) if text.contains('#') => {
            let (_, value) = released(text, "--threshold")?;
            value.get("threshold").and_then(Value::as_f64)
        }
        Err(_) => None,
    };
    Ok(value
        .filter(|x| (0.0..=1.0).contains(x))
        .ok_or_else(refuse)?)
}

/// Each row's most probable level.
fn most_probable(
    value: &Value,
    schema: &Schema,
    data: &Path,
    refuse: &dyn Fn(String) -> Refusal,
) -> Result<String, Failure> {
    let classes = value.get("classes").and_then(Value::as_array);
    let mut levels = Vec::new();
    let mut predictors = Vec::new();
    for class in classes.into_iter().flatten() {
        let level = class.get("level").and_then(Value::as_str).unwrap_or("");
        let one = json!({"family": "logistic", "formula": value.get("formula"), "positive": level, "terms": class.get("terms")});
        let model = Model::read(&one).map_err(|e| refuse(e.to_string()))?;
        let design = model.design(schema).map_err(|e| refuse(e.to_string()))?;
        predictors.push(model.linear_predictor(&design));
        levels.push(level.to_owned());
    }
    let Some(all) = predictors.iter().cloned().reduce(Expr::add) else {
        return Err(refuse("the model has no classes".to_owned()).into());
    };
    let mut out = "probability,class\n".to_owned();
    for cells in Rows::open(data, schema, &all)?.cells {
        let Some(cells) = cells else {
            out.push_str(",\n");
            continue;
        };
        let mut total = 0.0;
        let mut best: Option<(f64, &String)> = None;
        for (predictor, level) in predictors.iter().zip(&levels) {
            let p = 1.0 / (1.0 + (-evaluate(predictor, &cells)).exp());
            total += p;
            if best.is_none_or(|b| p > b.0) {
                best = Some((p, level));
            }
        }
        if let Some((p, level)) = best {
            let _ = writeln!(out, "{},{}", p / total.max(f64::MIN_POSITIVE), field(level));
        }
    }
    Ok(out)
}

/// The file and the value of `release.json#id`.
fn released(model: &str, key: &str) -> Result<(std::path::PathBuf, Value), Failure> {
    let (path, id) = model.split_once('#').ok_or_else(|| {
        Refusal::request("names no release")
            .for_key(key)
            .with_value(model)
            .accepting("Write release.json#id.")
    })?;
    let text = read(Path::new(path))?;
    let refuse = |what: String| Refusal::request(what).in_file(Path::new(path));
    let document: Value =
        serde_json::from_str(&text).map_err(|e| refuse(format!("not a release.json: {e}")))?;
    let releases = document.get("releases").and_then(Value::as_array);
    let release = releases
        .into_iter()
        .flatten()
        .find(|r| r.get("id").and_then(Value::as_str) == Some(id))
        .ok_or_else(|| refuse(format!("there is no release \"{id}\"")))?;
    let value = release.get("value").cloned().unwrap_or(Value::Null);
    Ok((Path::new(path).to_owned(), value))
}

/// What the two predicted classes of a logistic model are called.
fn classes(response: &Response, family: Family) -> Option<(String, String)> {
    let (
        Response::Binary {
            levels, positive, ..
        },
        Family::Logistic,
    ) = (response, family)
    else {
        return None;
    };
    let positive = *positive as usize;
    let yes = levels
        .get(positive)
        .cloned()
        .unwrap_or_else(|| "1".to_owned());
    let no = match levels.as_slice() {
        [first, second] => if positive == 0 { second } else { first }.clone(),
        _ => format!("not {yes}"),
    };
    Some((yes, no))
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|source| {
        Error::File {
            path: path.to_owned(),
            what: "the file cannot be read",
            source,
        }
        .into()
    })
}

/// A CSV field, quoted where needed.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Numbers (levels: the index) of one row by schema position.
pub(crate) type Cells = HashMap<usize, f64>;

struct Rows {
    cells: Vec<Option<Cells>>,
}

impl Rows {
    fn open(path: &Path, schema: &Schema, predictor: &Expr) -> Result<Self, Failure> {
        let fail = |source: std::io::Error| -> Failure {
            Error::File {
                path: path.to_owned(),
                what: "the rows cannot be read",
                source,
            }
            .into()
        };
        let file = std::fs::File::open(path).map_err(fail)?;
        let plain: Box<dyn std::io::Read> = if path.extension().is_some_and(|e| e == "gz") {
            Box::new(flate2::read::MultiGzDecoder::new(file))
        } else {
            Box::new(file)
        };
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(plain);
        let headers = reader
            .byte_headers()
            .map_err(|e| fail(std::io::Error::other(e)))?
            .clone();
        let mut used = Vec::new();
        predictor.walk(&mut |e| match e {
            Expr::Column(c) | Expr::Code(c) | Expr::Level { column: c, .. } => used.push(*c),
            _ => {}
        });
        used.sort_unstable();
        used.dedup();
        let mut places = Vec::new();
        for column in used {
            let name = &schema.columns[column].name;
            let bare = |h: &[u8]| h.strip_prefix(b"\xef\xbb\xbf").unwrap_or(h).to_vec();
            let at = headers
                .iter()
                .position(|h| bare(h) == name.as_bytes())
                .ok_or_else(|| {
                    Refusal::request(format!("there is no column {name}, which the model needs"))
                        .in_file(path)
                })?;
            places.push((column, at));
        }
        let mut cells = Vec::new();
        let mut record = csv::ByteRecord::new();
        while reader
            .read_byte_record(&mut record)
            .map_err(|e| fail(std::io::Error::other(e)))?
        {
            cells.push(
                places
                    .iter()
                    .map(|(column, at)| {
                        number(schema, *column, record.get(*at).unwrap_or(b""))
                            .map(|x| (*column, x))
                    })
                    .collect::<Option<Cells>>(),
            );
        }
        Ok(Self { cells })
    }
}

/// A cell as the model saw its like: clamped, or the level's index; `None` if missing or undeclared.
#[allow(
    clippy::cast_precision_loss,
    reason = "bounds are at most 2^53 and levels few"
)]
fn number(schema: &Schema, column: usize, cell: &[u8]) -> Option<f64> {
    let column = schema.columns.get(column)?;
    let text = std::str::from_utf8(cell).ok();
    let imputed = match column.missing {
        Missing::Impute(x) => Some(x),
        Missing::Drop => None,
    };
    match &column.kind {
        Kind::Integer { lower, upper } => parsed(text)
            .map(|x| x.clamp(*lower as f64, *upper as f64))
            .or(imputed),
        Kind::Real { lower, upper } => parsed(text).map(|x| x.clamp(*lower, *upper)).or(imputed),
        Kind::Levels { levels, other } => {
            if cell.is_empty() {
                return imputed;
            }
            let found = text.and_then(|t| levels.iter().position(|l| l == t));
            found.map(|i| i as f64).or_else(|| other.map(f64::from))
        }
        Kind::Id => None,
    }
}

fn parsed(text: Option<&str>) -> Option<f64> {
    text.and_then(|t| t.parse::<f64>().ok())
        .filter(|x| !x.is_nan())
}

pub(crate) fn evaluate(expr: &Expr, cells: &Cells) -> f64 {
    let truth = |t: bool| if t { 1.0 } else { 0.0 };
    let of = |e: &Expr| evaluate(e, cells);
    match expr {
        Expr::Constant(c) => *c,
        Expr::Column(c) | Expr::Code(c) => cells.get(c).copied().unwrap_or(f64::NAN),
        #[allow(clippy::float_cmp, reason = "level indices are small integers")]
        Expr::Level { column, level } => {
            truth(cells.get(column).copied() == Some(f64::from(*level)))
        }
        Expr::Term(_) => f64::NAN,
        Expr::Add(a, b) => of(a) + of(b),
        Expr::Sub(a, b) => of(a) - of(b),
        Expr::Mul(a, b) => of(a) * of(b),
        Expr::Div(a, b) => of(a) / of(b),
        Expr::Power(a, k) => of(a).powi(*k),
        Expr::Call(f, a) => {
            let x = of(a);
            match f {
                Function::Log => x.ln(),
                Function::Log1p => x.ln_1p(),
                Function::Log2 => x.log2(),
                Function::Log10 => x.log10(),
                Function::Sqrt => x.sqrt(),
                Function::Exp => x.exp(),
                Function::Expm1 => x.exp_m1(),
                Function::Logistic => 1.0 / (1.0 + (-x).exp()),
                Function::Abs => x.abs(),
            }
        }
        Expr::Clamp(a, i) => of(a).clamp(i.lower, i.upper),
        #[allow(
            clippy::float_cmp,
            reason = "the analyst's comparison, taken literally"
        )]
        Expr::Compare(how, a, b) => {
            let (a, b) = (of(a), of(b));
            truth(match how {
                Comparison::Less => a < b,
                Comparison::LessEqual => a <= b,
                Comparison::Greater => a > b,
                Comparison::GreaterEqual => a >= b,
                Comparison::Equal => a == b,
                Comparison::NotEqual => a != b,
            })
        }
        Expr::And(a, b) => truth(of(a) != 0.0 && of(b) != 0.0),
        Expr::Or(a, b) => truth(of(a) != 0.0 || of(b) != 0.0),
        Expr::Not(a) => truth(of(a) == 0.0),
        Expr::Lookup(a, table) => entry(table, of(a)),
    }
}
