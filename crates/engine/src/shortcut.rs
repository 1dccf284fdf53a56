//! A plan of one release, from the flags of a command: which keys there are, what they mean and what they hold is read off
//! the JSON Schema of plans, so that a kind has its flags as soon as it is in there.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::schema_json::PLAN;

/// A key of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name in plans.
    pub name: String,
    /// What it means.
    pub help: String,
    /// Whether it can be given more than once.
    pub list: bool,
    /// The words that it can be, if it is one of a few.
    pub words: Vec<String>,
}

/// Keys that one release by itself has no use for: parts need a split, and `kind` is the command.
const ELSEWHERE: [&str; 2] = ["kind", "part"];

fn schema() -> Value {
    serde_json::from_str(PLAN).unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// All kinds that can stand alone, with what they are: a cross-validation repeats a fit of its own plan.
pub fn kinds() -> Vec<(String, String)> {
    let schema = schema();
    let all = schema
        .pointer("/properties/release/items/oneOf")
        .or_else(|| schema.pointer("/$defs/release/items/oneOf"))
        .and_then(Value::as_array);
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
    let fields = properties.and_then(Value::as_object);
    let about = |value: &Value| text(value.get("description").unwrap_or(&Value::Null));
    let each = fields.into_iter().flatten().filter(|(name, value)| {
        !ELSEWHERE.contains(&name.as_str()) && !about(value).starts_with("Not accepted")
    });
    each.map(|(name, value)| Key {
        name: name.clone(),
        help: about(value),
        list: value.get("type").is_some_and(|t| t == "array"),
        words: (value.get("enum").and_then(Value::as_array))
            .map(|all| all.iter().map(text).collect())
            .unwrap_or_default(),
    })
    .collect()
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
    let mut out = format!(
        "version = 1\ndataset = {}\n",
        quoted(&dataset.to_string_lossy())
    );
    if let Some(condition) = filter {
        let _ = writeln!(out, "where = {}", quoted(condition));
    }
    let _ = write!(out, "\n[[release]]\nkind = {}\n", quoted(kind));
    if !given.iter().any(|(key, _)| key == "id") {
        let _ = writeln!(out, "id = {}", quoted(kind));
    }
    for (key, values) in given {
        let of = properties.and_then(|p| p.get(key)).unwrap_or(&Value::Null);
        let _ = writeln!(out, "{key} = {}", written(&schema, of, values));
    }
    out
}

/// Values as TOML, by the type of their key: texts are quoted (numbers too where a text is read exactly), lists may be given one by
/// one, and what begins with a bracket where no plain text is expected is TOML already.
fn written(schema: &Value, of: &Value, values: &[String]) -> String {
    let of = resolve(schema, of);
    let first = values.first().map_or("", String::as_str);
    let is = |name: &str| match of.get("type") {
        Some(Value::Array(all)) => all.iter().any(|t| t == name),
        t => t.is_some_and(|t| t == name),
    };
    let bracket = first.trim_start().starts_with(['[', '{']);
    if is("array") {
        if bracket && values.len() == 1 && !first.trim_start().starts_with('{') {
            return first.to_owned();
        }
        let items = of.get("items").unwrap_or(&Value::Null);
        let each = values
            .iter()
            .map(|v| written(schema, items, std::slice::from_ref(v)));
        return format!("[{}]", each.collect::<Vec<_>>().join(", "));
    }
    let plain = match first {
        "true" | "false" => is("boolean"),
        number => (is("integer") || is("number")) && number.parse::<f64>().is_ok(),
    };
    let exact = is("string") || of.get("enum").is_some();
    if !exact && (plain || bracket) {
        return first.to_owned();
    }
    quoted(first)
}

fn resolve<'a>(schema: &'a Value, of: &'a Value) -> &'a Value {
    let name = of.get("$ref").and_then(Value::as_str);
    let found = name.and_then(|r| schema.pointer(r.trim_start_matches('#')));
    found.unwrap_or(of)
}

/// A TOML string. What JSON escapes TOML escapes alike, but for the one character that JSON leaves.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::kinds::NAMES;
    use crate::plan::Plan;

    #[test]
    fn every_kind_has_its_flags() {
        let kinds = kinds();
        assert_eq!(kinds.len() + 1, NAMES.len());
        for (kind, about) in &kinds {
            assert!(
                NAMES.contains(&kind.as_str()) && !about.is_empty(),
                "{kind}"
            );
            let keys = keys(kind);
            assert!(keys.iter().any(|k| k.name == "id"), "{kind}");
            assert!(keys.iter().all(|k| !k.help.is_empty()), "{kind}: {keys:?}");
        }
        assert!(keys("nothing").is_empty());
    }

    #[test]
    fn values_follow_the_types_of_their_keys() {
        let given = |pairs: &[(&str, &[&str])]| -> Vec<(String, Vec<String>)> {
            let each = pairs.iter();
            each.map(|(k, v)| ((*k).to_owned(), v.iter().map(|s| (*s).to_owned()).collect()))
                .collect()
        };
        let dataset = Path::new("some \"where\"/d.toml");
        let covariance = given(&[
            ("columns", &["age", "log1p(income)"]),
            ("method", &["sketch"]),
            ("rows", &["40"]),
            ("directions", &["{ age = 1 }", "{ age = 2 }"]),
            ("epsilon", &["1"]),
            ("delta", &["1e-6"]),
        ]);
        let text = plan("covariance", dataset, None, &covariance);
        for line in [
            "dataset = \"some \\\"where\\\"/d.toml\"",
            "columns = [\"age\", \"log1p(income)\"]",
            "rows = 40",
            "directions = [{ age = 1 }, { age = 2 }]",
            "delta = \"1e-6\"",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(Plan::parse(&text, Path::new("p.toml")).is_ok(), "{text}");
        let bayes = given(&[
            ("id", &["b"]),
            ("formula", &["y ~ a"]),
            ("positive", &["[\"x\", \"z\"]"]),
            ("epsilon", &["0.5"]),
        ]);
        let text = plan("naive_bayes", dataset, Some("a > 1"), &bayes);
        assert!(text.contains("where = \"a > 1\"") && text.contains("positive = [\"x\", \"z\"]"));
        assert!(Plan::parse(&text, Path::new("p.toml")).is_ok(), "{text}");
        let one = given(&[
            ("formula", &["y ~ a"]),
            ("positive", &["x"]),
            ("keep", &["{ top = 1 }"]),
            ("epsilon", &["0.5"]),
        ]);
        let text = plan("naive_bayes", dataset, None, &one);
        assert!(text.contains("positive = \"x\"") && text.contains("keep = { top = 1 }"));
        assert!(Plan::parse(&text, Path::new("p.toml")).is_ok(), "{text}");
        // a mistake stays one: what is no number is a text, which the plan's reader refuses
        let wrong = given(&[
            ("columns", &["age"]),
            ("rows", &["many"]),
            ("epsilon", &["1"]),
        ]);
        let text = plan("covariance", dataset, None, &wrong);
        assert!(Plan::parse(&text, Path::new("p.toml")).is_err());
    }
}
