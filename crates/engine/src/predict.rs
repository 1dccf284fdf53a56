//! Predictions of a released model for rows the caller brings. Each row is predicted by itself: nothing
//! depends on which rows come together.
//!
//! Texts become words by the rules that the release states (`tokens`), with the code that reads confidential texts.

mod blank_lines;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};

use reticent_mechanisms::program::{Expr, Function, entry};
use reticent_mechanisms::rows::cell::Meaning;
use reticent_mechanisms::rows::{
    Cells as Decoded, Column, Kind, MISSING_CODE, MISSING_INTEGER, Missing, OTHER_CODE, Schema,
};
use serde_json::{Value, json};

use self::blank_lines::{Blank, BlankLines};
use crate::failure::{Error, Failure};
use crate::file;
use crate::formula::{Family, Response};
use crate::model::Model;
use crate::outcome::Refusal;
use crate::scan::cells;
use crate::suggest;
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

/// Records that are read together.
const AT_ONCE: usize = 1024;

/// Where the cells of a record come from.
enum Place {
    /// The declared column, from this field, read as the fit read its like.
    Plain(usize, usize, Meaning),
    /// The slots of a text, from this field.
    Text(TextColumn, Vec<usize>, usize),
}

/// An open CSV file of rows to predict.
struct Rows {
    reader: csv::Reader<Box<dyn Read>>,
    path: PathBuf,
    places: Vec<Place>,
    /// The blank line before a row, in a file of one column, where it could be an empty cell as well as nothing.
    blank: Option<Blank>,
}

/// The texts that mean a missing cell, by column; the empty one always does.
type MissingValues = BTreeMap<String, Vec<String>>;

/// Those that a model states.
fn missing_values(model: &Value) -> MissingValues {
    let stated = model.get("missing_values").cloned();
    stated
        .and_then(|v| serde_json::from_value(v).ok())
        .unwrap_or_default()
}

impl Rows {
    /// Opens the file and finds the columns that the predictor reads.
    fn open(
        path: &Path,
        (schema, texts): (&Schema, Vec<TextColumn>),
        predictor: &Expr,
        missing: &MissingValues,
    ) -> Result<Self, Failure> {
        let fail = |source: std::io::Error| unreadable(path, source);
        let file = std::fs::File::open(path).map_err(fail)?;
        let plain: Box<dyn Read> = if path.extension().is_some_and(|e| e == "gz") {
            Box::new(flate2::read::MultiGzDecoder::new(file))
        } else {
            Box::new(file)
        };
        let (plain, blank) = BlankLines::watch(plain);
        // cells are trimmed where they are read: which words of a text count may depend on all of it
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .trim(csv::Trim::Headers)
            .from_reader(Box::new(plain) as Box<dyn Read>);
        let headers: Vec<String> = reader
            .byte_headers()
            .map_err(|e| fail(std::io::Error::other(e)))?
            .iter()
            .map(|h| {
                let bare = h.strip_prefix(b"\xef\xbb\xbf").unwrap_or(h);
                String::from_utf8_lossy(bare).into_owned()
            })
            .collect();
        let mut used = Vec::new();
        predictor.walk(&mut |e| match e {
            Expr::Column(c) | Expr::Code(c) | Expr::Level { column: c, .. } => used.push(*c),
            _ => {}
        });
        used.sort_unstable();
        used.dedup();
        let mut places = Vec::new();
        for text in texts {
            let slot = |i| schema.position(&format!("{}.{i}", text.name));
            let slots: Vec<usize> = (1..=text.most).map_while(slot).collect();
            if slots.iter().any(|s| used.contains(s)) {
                let at = field_of(&text.name, &headers, path)?;
                used.retain(|c| !slots.contains(c));
                places.push(Place::Text(text, slots, at));
            }
        }
        for column in used {
            let Some(declared) = schema.columns.get(column) else {
                continue;
            };
            let at = field_of(&declared.name, &headers, path)?;
            let empty = [String::new()];
            let stated = missing
                .get(&declared.name)
                .map_or(&empty[..], Vec::as_slice);
            places.push(Place::Plain(
                column,
                at,
                Meaning::new(&declared.kind, stated),
            ));
        }
        Ok(Self {
            reader,
            path: path.to_owned(),
            places,
            blank: (headers.len() == 1).then_some(blank),
        })
    }

    /// Hands over every row: its cells, or none if one of them is missing.
    fn each(mut self, schema: &Schema, mut see: impl FnMut(Option<&Cells>)) -> Result<(), Failure> {
        let mut records = vec![csv::ByteRecord::new(); AT_ONCE];
        loop {
            let read = self.fill(&mut records)?;
            let records = records.get(..read).unwrap_or_default();
            let columns: Vec<Option<Vec<Option<f64>>>> = (self.places.iter())
                .map(|place| match place {
                    Place::Plain(column, at, meaning) => {
                        let cells = cells::texts(meaning, records.iter().map(|r| r.get(*at)));
                        Some(numbers(schema.columns.get(*column)?, cells))
                    }
                    Place::Text(..) => None,
                })
                .collect();
            for (i, record) in records.iter().enumerate() {
                let mut cells = Cells::new();
                let mut complete = true;
                for (place, numbers) in self.places.iter().zip(&columns) {
                    match place {
                        Place::Plain(column, ..) => {
                            let number = numbers.as_ref().and_then(|n| n.get(i).copied().flatten());
                            match number {
                                Some(x) => drop(cells.insert(*column, x)),
                                None => complete = false,
                            }
                        }
                        Place::Text(text, to, at) => {
                            let cell = record.get(*at).unwrap_or(b"");
                            let words = text.slots(cell);
                            #[allow(
                                clippy::cast_precision_loss,
                                reason = "numbers of words are below 2^21"
                            )]
                            cells.extend(to.iter().copied().zip(words.map(|w| w as f64)));
                        }
                    }
                }
                see(complete.then_some(&cells));
            }
            if read < AT_ONCE {
                return Ok(());
            }
        }
    }

    /// Reads records as long as there are any; gives their number.
    fn fill(&mut self, records: &mut [csv::ByteRecord]) -> Result<usize, Failure> {
        for (i, record) in records.iter_mut().enumerate() {
            let more = self.reader.read_byte_record(record);
            if !more.map_err(|e| unreadable(&self.path, std::io::Error::other(e)))? {
                return Ok(i);
            }
            if let Some(line) = self.blank.as_ref().and_then(|b| b.get()) {
                return Err(Refusal::request(
                    "a blank line before a row: an empty cell, or nothing?",
                )
                .in_file(&self.path)
                .at_line(line)
                .accepting("Write \"\" where a cell is empty, or delete the line.")
                .into());
            }
        }
        Ok(records.len())
    }
}

fn unreadable(path: &Path, source: std::io::Error) -> Failure {
    Error::File {
        path: path.to_owned(),
        what: "the rows cannot be read",
        source,
    }
    .into()
}

/// The field of the file that a column of the model is in.
fn field_of(name: &str, headers: &[String], path: &Path) -> Result<usize, Refusal> {
    let refuse = |what: String| Refusal::request(what).in_file(path).at_line(1);
    let mut found = headers.iter().enumerate().filter(|h| h.1 == name);
    match (found.next(), found.next()) {
        (Some((at, _)), None) => Ok(at),
        (Some(_), Some(_)) => {
            Err(refuse(format!("the column {name} is there twice"))
                .accepting("Rename one of the two."))
        }
        (None, _) => {
            let known: Vec<&str> = headers.iter().map(String::as_str).collect();
            Err(
                refuse(format!("there is no column {name}, which the model needs"))
                    .accepting(suggest::advice(name, &known)),
            )
        }
    }
}

/// Cells as the model saw their like: clamped, or the level's index; `None` if missing or undeclared.
#[allow(
    clippy::cast_precision_loss,
    reason = "bounds are at most 2^53 and levels few"
)]
fn numbers(column: &Column, cells: Decoded) -> Vec<Option<f64>> {
    let (imputed, bounds, other) = (
        match column.missing {
            Missing::Impute(x) => Some(x),
            Missing::Drop => None,
        },
        match &column.kind {
            Kind::Integer { lower, upper } => (*lower as f64, *upper as f64),
            Kind::Real { lower, upper } => (*lower, *upper),
            Kind::Levels { levels, .. } => (0.0, levels.len().saturating_sub(1) as f64),
            Kind::Id => (0.0, 0.0),
        },
        match &column.kind {
            Kind::Levels { other, .. } => other.map(f64::from),
            _ => None,
        },
    );
    let into = |x: Option<f64>| x.or(imputed).map(|x| x.clamp(bounds.0, bounds.1));
    match cells {
        Decoded::Integer(all) => (all.into_iter())
            .map(|x| into((x != MISSING_INTEGER).then_some(x as f64)))
            .collect(),
        Decoded::Real(all) => (all.into_iter())
            .map(|x| into((!x.is_nan()).then_some(x)))
            .collect(),
        Decoded::Code(all) => (all.into_iter())
            .map(|x| match x {
                OTHER_CODE => other,
                x => into((x != MISSING_CODE).then_some(f64::from(x))),
            })
            .collect(),
        Decoded::Id(_) | Decoded::Unread => Vec::new(),
    }
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
        Expr::Compare(how, a, b) => truth(how.holds(of(a), of(b))),
        Expr::And(a, b) => truth(of(a) != 0.0 && of(b) != 0.0),
        Expr::Or(a, b) => truth(of(a) != 0.0 || of(b) != 0.0),
        Expr::Not(a) => truth(of(a) == 0.0),
        Expr::Lookup(a, table) => entry(table, of(a)),
    }
}

#[cfg(test)]
mod tests {
    use reticent_accounting::{Rational, Relation};
    use reticent_laws::Silent;
    use reticent_mechanisms::primitives::Payment;
    use reticent_mechanisms::program::RowProgram;
    use reticent_mechanisms::source::RowSource;
    use reticent_mechanisms::{Context, Simulated, Unit, simulate};
    use reticent_statistics::simple::{AxisCut, AxisSpec, histogram};
    use reticent_statistics::{Facts, Prepared, naive_bayes};
    use tempfile::TempDir;

    use super::*;
    use crate::bayes::{self, Named};
    use crate::books;
    use crate::dataset::Dataset;
    use crate::kinds::NaiveBayesSpec;
    use reticent_mechanisms::rows::cell::FIELD_CAP;

    /// Labels and texts: known words, none, repeated and too many ones, bytes that are no UTF-8, quotes, an enormous cell whose
    /// only known word lies behind what is read, blanks at the ends (a sample of words depends on them).
    fn hostile() -> Vec<u8> {
        let mut out = b"\xef\xbb\xbfunused,text,y,hour\n".to_vec();
        let enormous = [&vec![b'x'; FIELD_CAP + 7][..], b" free"].concat();
        let texts: Vec<&[u8]> = vec![
            b"free lunch",
            b"",
            b"nothing that is known",
            b"\"FREE, free; Free\"",
            b"\"win \"\"free\"\" lunch money now\"",
            b"\xff\xfefree\xc3\x28",
            b"\"  free win lunch money now   \"",
            b"\"free win lunch money now\"",
            &enormous,
            b"the the the win",
            b"\"two\nlines win\"",
        ];
        for (i, text) in texts.iter().cycle().take(44).enumerate() {
            let label: &[u8] = if (i / 11 + i) % 2 == 0 { b"no" } else { b"yes" };
            out.extend_from_slice(&[b"?,", *text, b",", label].concat());
            out.extend_from_slice(format!(",{}\n", i % 24).as_bytes());
        }
        out
    }

    fn dataset(dir: &TempDir, keys: &str) -> Dataset {
        let text = format!(
            "version = 1\nid = \"t\"\ndata_version = \"1\"\nsource = {{ path = \"t.csv\" }}\nneighbours = \"add_remove\"\n\
             [budget]\nepsilon = 1\n[ledger]\npath = \"t.ledger\"\n[columns.y]\ntype = \"text\"\nlevels = [\"no\", \"yes\"]\n\
             [columns.text]\ntype = \"tokens\"\n{keys}\n[columns.hour]\ntype = \"integer\"\nlower = 0\nupper = 20\nmissing = \"drop\"\n"
        );
        Dataset::parse(&text, &dir.path().join("dataset.toml")).unwrap()
    }

    fn silently(source: &dyn RowSource, prepared: Prepared) -> Value {
        let program = RowProgram {
            terms: prepared.terms,
            ..RowProgram::default()
        };
        let context = Context::records(Relation::AddRemove);
        let mechanism = prepared.mechanism.as_ref();
        let Simulated((answer, _)) = simulate(
            source,
            Unit::Row,
            &context,
            &program,
            mechanism,
            &mut Silent,
        )
        .unwrap();
        answer.value
    }

    /// A release of naive Bayes on the text, and what it was made from.
    fn released(dir: &TempDir, keys: &str) -> (Dataset, Value, String) {
        std::fs::write(dir.path().join("t.csv"), hostile()).unwrap();
        let dataset = dataset(dir, keys);
        let source = books::files(&dataset).unwrap();
        let spec = NaiveBayesSpec {
            formula: "y ~ text + hour".to_owned(),
            positive: None,
            levels: Vec::new(),
            smoothing: Some(1.0),
            keep: None,
            features: None,
        };
        let spec = bayes::spec(Named::of(&dataset), &spec, None).unwrap();
        let context = Context::records(Relation::AddRemove);
        let facts = Facts {
            schema: &dataset.schema,
            filter: None,
            context: &context,
            rows: None,
            positive_rate: None,
        };
        let config = naive_bayes::Config {
            smoothing: Some(1.0),
            ..naive_bayes::Config::new(Payment::Pure {
                epsilon: Rational::from(1u8),
            })
        };
        let value = silently(
            &source,
            naive_bayes::prepare(&facts, &spec, config).unwrap(),
        );
        let file = dir.path().join("release.json");
        let document = json!({"releases": [{"id": "m", "value": value}]});
        std::fs::write(&file, document.to_string()).unwrap();
        (dataset, value, format!("{}#m", file.display()))
    }

    const RULES: [&str; 3] = [
        "most = 2\nwords = [\"free\", \"win\", \"lunch\", \"money\", \"now\"]",
        "most = 3\nwords = [\"free\", \"win\", \"lunch\", \"now\", \"lines\"]\nstop = [\"money\"]\nchoice = \"sampled\"\nsalt = \"s\"",
        "most = 2\nhashed = 16\nstop = \"english\"\nsalt = \"2\"",
    ];

    /// The scores of `predict` are those that the door computes for a ROC curve, to the last bit: between every score and the next
    /// larger number there is one cell, which counts all the records that have it.
    #[test]
    fn scores_of_texts_are_those_of_the_engine() {
        for keys in RULES {
            let dir = TempDir::new().unwrap();
            let (dataset, value, model) = released(&dir, keys);
            let data = dir.path().join("t.csv");
            let fit = Model::read(&value).unwrap();
            let columns: Schema = serde_json::from_value(value["columns"].clone()).unwrap();
            let predictor = fit.linear_predictor(&fit.design(&columns).unwrap());
            let texts = tokens::released(&value).unwrap();
            let mut scores = Vec::new();
            Rows::open(&data, (&columns, texts), &predictor, &MissingValues::new())
                .unwrap()
                .each(&columns, |cells| {
                    scores.push(evaluate(&predictor, cells.unwrap()));
                })
                .unwrap();
            assert_eq!(scores.len(), 44);
            let lines = predict(&model, &data, None).unwrap();
            for (line, x) in lines.lines().skip(1).zip(&scores) {
                let p: f64 = line.split(',').next().unwrap().parse().unwrap();
                assert!((p - 1.0 / (1.0 + (-x).exp())).abs() < 1e-15);
            }
            let mut sorted = scores.clone();
            sorted.sort_by(f64::total_cmp);
            sorted.dedup();
            assert!(sorted.len() > 4, "{sorted:?}");
            let ends = sorted.iter().flat_map(|x| [*x, x.next_up()]);
            let edges: Vec<f64> = std::iter::once(-1e9).chain(ends).chain([1e9]).collect();
            let context = Context::records(Relation::AddRemove);
            let facts = Facts {
                schema: &dataset.schema,
                filter: None,
                context: &context,
                rows: None,
                positive_rate: None,
            };
            let axis = AxisSpec {
                name: "score".to_owned(),
                expr: fit.linear_predictor(&fit.design(&dataset.schema).unwrap()),
                cut: AxisCut::Edges(edges),
            };
            let table = histogram(&facts, axis, &Rational::from(1u8)).unwrap();
            let source = books::files(&dataset).unwrap();
            let counts = silently(&source, table)["counts"].clone();
            for (i, x) in sorted.iter().enumerate() {
                let here = scores.iter().filter(|s| s.total_cmp(x).is_eq()).count();
                assert_eq!(counts[2 * i + 1], here, "{x} of {counts}");
                assert_eq!(counts[2 * i], 0, "{counts}");
            }
        }
    }

    /// A row alone is predicted as among the others, and what no text can hold against it never fails.
    #[test]
    fn texts_are_predicted_one_by_one() {
        for keys in RULES {
            let dir = TempDir::new().unwrap();
            let (.., model) = released(&dir, keys);
            let predict = |bytes: &[u8]| {
                let file = dir.path().join("new.csv");
                std::fs::write(&file, bytes).unwrap();
                let out = super::predict(&model, &file, None).unwrap();
                out.lines().map(str::to_owned).collect::<Vec<_>>()
            };
            let odd: [&[u8]; 6] = [
                b"3,free win",
                b"3,",
                b"3",
                b"3,\xff\xff\xfe win",
                b"3,\"unknown\nwords\"",
                b"99,\"lunch, lunch\"",
            ];
            let header = b"hour,text\n";
            let all = predict(&[&header[..], &odd.join(&b'\n')].concat());
            assert_eq!(all.len(), 7);
            assert!(
                all[1..].iter().all(|l| l.contains(',') && l != ","),
                "{all:?}"
            );
            for (i, row) in odd.iter().enumerate() {
                assert_eq!(predict(&[&header[..], row].concat())[1], all[i + 1]);
            }
            // a number that is missing leaves the row without a prediction
            assert_eq!(predict(b"hour,text\n,free\n")[1], ",");
        }
    }

    /// Booleans in any spelling, missing numbers in any notation, numbers that are not whole: as the fit reads them.
    #[test]
    fn cells_are_read_as_the_fit_reads_them() {
        let column = |kind, missing| Column {
            name: "c".to_owned(),
            kind,
            missing,
        };
        let read = |column: &Column, stated: &[&str], cells: &[&str]| {
            let stated: Vec<String> = stated.iter().map(|s| (*s).to_owned()).collect();
            let meaning = Meaning::new(&column.kind, &stated);
            let cells = cells.iter().map(|c| Some(c.as_bytes()));
            numbers(column, cells::texts(&meaning, cells))
        };
        let levels = ["false", "true"].map(str::to_owned).to_vec();
        let flag = column(
            Kind::Levels {
                levels,
                other: None,
            },
            Missing::Drop,
        );
        let cells = ["True", " FALSE", "1", "0", "true", "yes", ""];
        let want = [
            Some(1.0),
            Some(0.0),
            Some(1.0),
            Some(0.0),
            Some(1.0),
            None,
            None,
        ];
        assert_eq!(read(&flag, &[""], &cells), want);
        let whole = column(Kind::Integer { lower: 0, upper: 9 }, Missing::Impute(4.0));
        let cells = ["-9", "-9.0", "-8", "3.5", "7", "1e3", "NA"];
        let want = [4.0, 4.0, 0.0, 4.0, 7.0, 9.0, 4.0].map(Some);
        assert_eq!(read(&whole, &["", "-9"], &cells), want);
        let real = column(
            Kind::Real {
                lower: 0.0,
                upper: 2.0,
            },
            Missing::Drop,
        );
        let cells = ["999", "999.0", "9.99e2", "1.5", "inf", "x"];
        let want = [None, None, None, Some(1.5), Some(2.0), None];
        assert_eq!(read(&real, &["", "999"], &cells), want);
    }

    /// In a file of one column nothing tells an empty cell from no row, so blank lines are refused; behind the last row
    /// they are none. Line ends of every kind, and cells of several lines.
    #[test]
    fn blank_lines_shift_no_rows() {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("new.csv");
        let empty = Schema {
            columns: Vec::new(),
        };
        let rows = |text: &str| {
            std::fs::write(&file, text).unwrap();
            let none = (&empty, Vec::new());
            let rows = Rows::open(&file, none, &Expr::Constant(0.0), &MissingValues::new());
            let mut seen = 0;
            let each = rows.unwrap().each(&empty, |_| seen += 1);
            each.map(|()| seen).map_err(|e| e.to_string())
        };
        for end in ["\n", "\r\n"] {
            let whole = |text: &str| rows(&text.replace('\n', end));
            for text in [
                "x\n1\n2\n3\n",
                "x\n1\n2\n3",
                "x\n1\n2\n3\n\n\n",
                "x\n1\n\"\"\n\"a\n\nb\"\n",
            ] {
                assert_eq!(whole(text), Ok(3), "{text:?} {end:?}");
            }
            for text in ["x\n1\n\n3\n", "x\n1\n\n3", "x\n\"1\"\n\n\n3\n"] {
                let message = whole(text).unwrap_err();
                assert!(message.contains("blank line"), "{message}");
            }
            assert!(whole("x\n\n1\n").unwrap_err().contains("line 2"));
            // with more columns a blank line can be no row
            assert_eq!(whole("x,y\n1,2\n\n3,4\n"), Ok(2));
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let dir = TempDir::new().unwrap();
        let (_, mut value, model) = released(&dir, RULES[0]);
        let file = dir.path().join("new.csv");
        let refused = |bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            predict(&model, &file, None).unwrap_err().to_string()
        };
        let message = refused(b"hour,texts\n3,free\n");
        for part in [
            "new.csv",
            "line 1",
            "there is no column text",
            "Did you mean `texts`?",
        ] {
            assert!(message.contains(part), "{message}");
        }
        let message = refused(b"hour,text,text\n3,free,free\n");
        assert!(message.contains("text is there twice"), "{message}");
        // a model that does not say how texts are split
        for key in ["stop", "choice", "slots", "words"] {
            let whole = value.clone();
            value["texts"][0].as_object_mut().unwrap().remove(key);
            let old = dir.path().join("old.json");
            let document = json!({"releases": [{"id": "m", "value": value}]});
            std::fs::write(&old, document.to_string()).unwrap();
            let message = predict(&format!("{}#m", old.display()), &file, None)
                .unwrap_err()
                .to_string();
            assert!(message.contains("old.json"), "{message}");
            assert!(message.contains("how the text text is split"), "{message}");
            value = whole;
        }
    }
}
