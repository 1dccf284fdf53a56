//! A plan of one release, from the flags of a command: which keys there are, what they mean and what they hold is read off
//! the JSON Schema of plans, so that a kind has its flags as soon as it is in there. Every value is read by itself and written as
//! one TOML value on one line, so a flag sets its own key and nothing else.

mod examples;
mod values;
mod words;

use std::path::Path;

use serde_json::Value as Json;
use toml::Value;

pub use examples::{example, examples};
pub use words::{NAME, flag, shell};

use crate::outcome::Refusal;
use crate::schema_json::PLAN;
use values::{Shape, written};

/// A key of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name in plans.
    pub name: String,
    /// What it means.
    pub help: String,
    /// Whether it can be given more than once.
    pub list: bool,
    /// Whether it is a list only, rather than one value or a list.
    pub only_list: bool,
    /// Whether it is true or false.
    pub truth: bool,
    /// What its value is, in a word; the words it can be, if it is one of a few.
    pub value: String,
}

/// Keys that one release by itself has no use for: parts need a split, and `kind` is the command.
const ELSEWHERE: [&str; 2] = ["kind", "part"];

/// The same of single kinds: features chosen by another release of the plan.
const ELSEWHERE_OF: [(&str, &str); 2] = [("logistic", "features"), ("naive_bayes", "features")];

/// What the schema says of plans, and what is so of one release by itself.
const ALONE: [(&str, &str); 3] = [
    (
        "Name of the release in this plan.",
        "Name of the release; its kind if absent.",
    ),
    (
        "An earlier model of this plan, or \"release.json#id\".",
        "A released model: release.json#id.",
    ),
    (
        "An earlier release of this plan, or \"release.json#id\".",
        "A release: release.json#id.",
    ),
];

/// Keys of the plan itself that are flags.
const OF_PLAN: [&str; 1] = ["where"];

fn schema() -> Json {
    serde_json::from_str(PLAN).unwrap_or_default()
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// All kinds that can stand alone, with what they are: a cross-validation repeats a fit of its own plan.
pub fn kinds() -> Vec<(String, String)> {
    let schema = schema();
    let all = schema
        .pointer("/properties/release/items/oneOf")
        .or_else(|| schema.pointer("/$defs/release/items/oneOf"))
        .and_then(Json::as_array);
    let named = all.into_iter().flatten().filter_map(|one| {
        let name = one.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?;
        if name == "cross_validation" {
            return None;
        }
        let about = schema.get("$defs")?.get(name)?.get("description")?;
        Some((name.to_owned(), text(about)))
    });
    named.collect()
}

/// The keys of a kind, in the order of the schema; none for a kind that does not exist.
pub fn keys(kind: &str) -> Vec<Key> {
    let schema = schema();
    let properties = schema.pointer(&format!("/$defs/{kind}/properties"));
    let fields = properties.and_then(Json::as_object);
    let about = |value: &Json| text(value.get("description").unwrap_or(&Json::Null));
    let each = fields.into_iter().flatten().filter(|(name, value)| {
        !ELSEWHERE.contains(&name.as_str())
            && !ELSEWHERE_OF.contains(&(kind, name.as_str()))
            && !about(value).starts_with("Not accepted")
    });
    let each: Vec<(&String, &Json)> = each.collect();
    let names: Vec<&str> = each.iter().map(|(name, _)| name.as_str()).collect();
    each.iter()
        .map(|(name, value)| {
            let shape = Shape::of(&schema, value);
            let about = about(value);
            let alone = ALONE.iter().find(|(of_plan, _)| *of_plan == about);
            let help = alone.map_or_else(|| words::of_flags(&about, &names), |a| a.1.to_owned());
            Key {
                name: (*name).clone(),
                help,
                list: shape.list.is_some(),
                only_list: shape.list.is_some() && !(shape.text || shape.number || shape.table),
                truth: shape.truth && !shape.text,
                value: value_name(value, &shape),
            }
        })
        .collect()
}

fn value_name(key: &Json, shape: &Shape) -> String {
    if let Some(all) = key.get("enum").and_then(Json::as_array) {
        return all.iter().map(text).collect::<Vec<_>>().join("|");
    }
    let of_number = key.get("$ref").is_some_and(|r| r == "#/$defs/number");
    let numbers = shape.number && !shape.text && !shape.table && shape.list.is_none();
    if shape.truth && !shape.text {
        "true|false"
    } else if of_number || numbers {
        "NUMBER"
    } else if shape.table && !shape.number {
        "TABLE"
    } else {
        "VALUE"
    }
    .to_owned()
}

/// The text of a plan with one release. Paths in it are relative to where the plan is said to be.
///
/// ```
/// use reticent_engine::shortcut::plan;
///
/// let given = [("formula".to_owned(), vec!["income ~ age".to_owned()]), ("epsilon".to_owned(), vec!["1".to_owned()])];
/// let text = plan("linear", "pums/dataset.toml".as_ref(), Some("income > 0"), &given);
/// assert!(text.ends_with("kind = \"linear\"\nid = \"linear\"\nformula = \"income ~ age\"\nepsilon = \"1\"\n"));
/// ```
pub fn plan(
    kind: &str,
    dataset: &Path,
    filter: Option<&str>,
    given: &[(String, Vec<String>)],
) -> String {
    let schema = schema();
    let properties = schema.pointer(&format!("/$defs/{kind}/properties"));
    let plain = |text: &str| Value::String(text.to_owned());
    let mut top = vec![
        ("version", Value::Integer(1)),
        ("dataset", plain(&dataset.to_string_lossy())),
    ];
    top.extend(filter.map(|condition| ("where", plain(condition))));
    let mut release = vec![("kind", plain(kind))];
    if !given.iter().any(|(key, _)| key == "id") {
        release.push(("id", plain(kind)));
    }
    for (key, values) in given {
        let of = properties.and_then(|p| p.get(key)).unwrap_or(&Json::Null);
        release.push((key, Shape::of(&schema, of).read(values)));
    }
    format!("{}\n[[release]]\n{}", lines(&top), lines(&release))
}

fn lines(of: &[(&str, Value)]) -> String {
    let each = of
        .iter()
        .map(|(key, value)| format!("{key} = {}\n", written(value)));
    each.collect::<Vec<_>>().concat()
}

/// A refusal of such a plan, said of the flags of the command.
pub fn refused(kind: &str, refusal: Refusal) -> Refusal {
    let known = keys(kind);
    let mut names: Vec<&str> = known.iter().map(|k| k.name.as_str()).collect();
    names.extend(OF_PLAN);
    words::refused(refusal, &names)
}

#[cfg(test)]
mod tests;
