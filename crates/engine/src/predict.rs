//! Predictions of a released model for rows the caller brings. Each row is predicted by itself: nothing
//! depends on which rows come together.
//!
//! Texts become words by the rules that the release states (`tokens`), with the code that reads confidential texts.

mod blank_lines;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;

use reticent_mechanisms::program::{Expr, Function, entry};
use reticent_mechanisms::rows::{Kind, Missing, Schema};
use serde_json::{Value, json};

use self::rows::{MissingValues, Rows, missing_values};
use crate::failure::{Error, Failure};
use crate::file;
use crate::formula::{Family, Response};
use crate::model::Model;
use crate::outcome::Refusal;
use crate::text::TextColumn;
use crate::tokens;

/// Predicts every row of a CSV file (also .gz) with a model given as `release.json#id`.
///
/// The result is CSV with one line per row: for a logistic model `probability` and `class` (the positive
/// level from the threshold on), for a linear one `prediction`; of more than two classes, `probability` is that of the
/// most probable level, and a column `P(level)` follows for each level (with one level against the rest, shares of the sum over the
/// levels). The threshold is ½, a number, or a released one, `release.json#id`. A row with a missing or undeclared cell has empty predictions; a text is
/// never missing. Numbers are clamped to the bounds the model was fitted under. Columns that the model does not use are ignored.
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
    sound(&schema).map_err(&refuse)?;
    let texts = tokens::released(&value).map_err(&refuse)?;
    let threshold = threshold.map(threshold_of).transpose()?;
    if let Some(classes) = Classes::read(&value, &schema).map_err(&refuse)? {
        if threshold.is_some() {
            return Err(refuse("a threshold needs a model of two classes".to_owned()).into());
        }
        return classes.predict((&schema, texts), data, &missing_values(&value));
    }
    let model = Model::read(&value).map_err(|e| refuse(e.to_string()))?;
    let design = model.design(&schema).map_err(|e| refuse(e.to_string()))?;
    let predictor = model.linear_predictor(&design);
    let rows = Rows::open(data, (&schema, texts), &predictor, &missing_values(&value))?;
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
    rows.each(&schema, |cells| {
        let linear = cells.map(|c| evaluate(&predictor, c));
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
    })?;
    Ok(out)
}

/// Writes predictions to a file that is new, or holds predictions already; never over the rows, the model, or anything else.
pub fn write(text: &str, path: &Path, model: &str, data: &Path) -> Result<(), Failure> {
    let failed = |source| Error::File {
        path: path.to_owned(),
        what: "the predictions cannot be written",
        source,
    };
    let model = Path::new(model.split_once('#').map_or(model, |(file, _)| file));
    let read = file::same(path, data) || file::same(path, model);
    let found = match std::fs::metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => return Err(failed(e).into()),
        Ok(facts) => Some(facts),
    };
    let ours = || -> std::io::Result<bool> {
        let mut start = Vec::new();
        std::fs::File::open(path)?
            .take(16)
            .read_to_end(&mut start)?;
        let heads = [&b"probability,clas"[..], b"prediction\n"];
        Ok(start.is_empty() || heads.iter().any(|head| start.starts_with(head)))
    };
    let other = match found {
        Some(facts) if facts.is_file() => read || !ours().map_err(failed)?,
        Some(facts) => facts.is_dir(),
        None => false,
    };
    if other {
        return Err(Refusal::request(
            "there is something else at this path already, which the predictions would replace",
        )
        .in_file(path)
        .for_key("--out")
        .accepting("Name a new file.")
        .into());
    }
    file::write(path, text).map_err(failed)?;
    Ok(())
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

/// Whether the columns of a model could have been declared: a file may have been edited.
fn sound(schema: &Schema) -> Result<(), String> {
    for column in &schema.columns {
        #[allow(clippy::cast_precision_loss, reason = "compared only")]
        let (lower, upper) = match &column.kind {
            Kind::Integer { lower, upper } => (*lower as f64, *upper as f64),
            Kind::Real { lower, upper } => (*lower, *upper),
            Kind::Levels { levels, .. } => (0.0, levels.len() as f64 - 1.0),
            Kind::Id => (0.0, 0.0),
        };
        let inside = |x: f64| (lower..=upper).contains(&x);
        let bounds = lower <= upper && lower.is_finite() && upper.is_finite();
        let imputed = match column.missing {
            Missing::Impute(x) => inside(x),
            Missing::Drop => true,
        };
        let other = match &column.kind {
            Kind::Levels { other, .. } => other.is_none_or(|code| inside(f64::from(code))),
            _ => true,
        };
        if !(bounds && imputed && other) {
            return Err(format!(
                "the model's column {} has bounds {lower} to {upper}, or a value outside of them; restore the file",
                column.name
            ));
        }
    }
    Ok(())
}

/// A model of more than two classes.
pub(crate) struct Classes {
    levels: Vec<String>,
    predictors: Vec<Expr>,
    /// Whether the predictors are log odds against the first level, instead of one level against the rest.
    jointly: bool,
}

impl Classes {
    /// The model in a released value; none if it is one of two classes or of numbers.
    pub(crate) fn read(value: &Value, schema: &Schema) -> Result<Option<Self>, String> {
        let jointly = value.get("log_odds").is_some();
        let rest = value.get("family").and_then(Value::as_str) == Some("one_against_rest");
        if !jointly && !rest {
            return Ok(None);
        }
        let list = value.get(if jointly { "log_odds" } else { "classes" });
        let mut out = Self {
            levels: Vec::new(),
            predictors: Vec::new(),
            jointly,
        };
        for class in list.and_then(Value::as_array).into_iter().flatten() {
            let word = |key: &str| class.get(key).and_then(Value::as_str);
            let level = word("level").unwrap_or("");
            if jointly && out.levels.is_empty() {
                out.levels.push(word("against").unwrap_or("").to_owned());
                out.predictors.push(Expr::Constant(0.0));
            }
            let one = json!({"family": "logistic", "formula": value.get("formula"), "positive": level,
                "terms": class.get("terms"), "texts": value.get("texts")});
            let model = Model::read(&one).map_err(|e| e.to_string())?;
            let design = model.design(schema).map_err(|e| e.to_string())?;
            out.predictors.push(model.linear_predictor(&design));
            out.levels.push(level.to_owned());
        }
        if out.levels.is_empty() {
            return Err("the model has no classes".to_owned());
        }
        Ok(Some(out))
    }

    /// The probabilities of the levels.
    pub(crate) fn probabilities(&self, cells: &Cells) -> Vec<f64> {
        let scores: Vec<f64> = (self.predictors.iter())
            .map(|p| evaluate(p, cells))
            .collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let raised: Vec<f64> = scores
            .iter()
            .map(|x| {
                if self.jointly {
                    (x - top).exp()
                } else {
                    1.0 / (1.0 + (-x).exp())
                }
            })
            .collect();
        let total = raised.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        raised.iter().map(|p| p / total).collect()
    }

    /// The most probable level of each row and the probability of every level.
    fn predict(
        &self,
        (schema, texts): (&Schema, Vec<TextColumn>),
        data: &Path,
        missing: &MissingValues,
    ) -> Result<String, Failure> {
        let mut out = "probability,class".to_owned();
        for level in &self.levels {
            let _ = write!(out, ",{}", field(&format!("P({level})")));
        }
        out.push('\n');
        let all = (self.predictors.iter().cloned())
            .reduce(Expr::add)
            .unwrap_or(Expr::Constant(0.0));
        Rows::open(data, (schema, texts), &all, missing)?.each(schema, |cells| {
            let Some(cells) = cells else {
                out.push_str(&",".repeat(self.levels.len().saturating_add(1)));
                out.push('\n');
                return;
            };
            let each = self.probabilities(cells);
            let mut best: Option<(f64, &String)> = None;
            for (p, level) in each.iter().zip(&self.levels) {
                if best.is_none_or(|b| *p > b.0) {
                    best = Some((*p, level));
                }
            }
            if let Some((p, level)) = best {
                let _ = write!(out, "{p},{}", field(level));
            }
            for p in each {
                let _ = write!(out, ",{p}");
            }
            out.push('\n');
        })?;
        Ok(out)
    }
}

/// The file and the value of `release.json#id`.
fn released(model: &str, key: &str) -> Result<(std::path::PathBuf, Value), Failure> {
    let named = model
        .split_once('#')
        .filter(|(path, id)| !path.is_empty() && !id.is_empty());
    let (path, id) = named.ok_or_else(|| {
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
pub(crate) fn classes(response: &Response, family: Family) -> Option<(String, String)> {
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
    file::text(path).map_err(|source| {
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
        Expr::Compare(how, a, b) => truth(how.holds(of(a), of(b))),
        Expr::And(a, b) => truth(of(a) != 0.0 && of(b) != 0.0),
        Expr::Or(a, b) => truth(of(a) != 0.0 || of(b) != 0.0),
        Expr::Not(a) => truth(of(a) == 0.0),
        Expr::Lookup(a, table) => entry(table, of(a)),
    }
}
