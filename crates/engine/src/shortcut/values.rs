//! Values of flags: each is read by itself, by the type of its key, and written as TOML on one line.

use std::fmt::Write as _;

use reticent_accounting::{format_rational, parse_rational, rational_from_f64};
use serde_json::Value as Json;
use toml::Value;
use toml::de::{DeTable, DeValue};

/// What a key can hold, by the JSON Schema of plans.
#[derive(Clone, Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each type of the schema is there or not, in any combination"
)]
pub(super) struct Shape {
    /// Any text.
    pub(super) text: bool,
    /// Numbers, all or whole ones.
    pub(super) number: bool,
    /// True and false.
    pub(super) truth: bool,
    /// Tables.
    pub(super) table: bool,
    /// Lists of this.
    pub(super) list: Option<Box<Shape>>,
}

impl Shape {
    /// That of a key: what its type, or any of its alternatives, allows.
    pub(super) fn of(schema: &Json, key: &Json) -> Self {
        let key = resolve(schema, key);
        let mut shape = Self {
            text: key.get("enum").is_some(),
            ..Self::default()
        };
        let types = match key.get("type") {
            Some(Json::Array(all)) => all.iter().collect(),
            one => Vec::from_iter(one),
        };
        for name in types.into_iter().filter_map(Json::as_str) {
            match name {
                "string" => shape.text = true,
                "number" | "integer" => shape.number = true,
                "boolean" => shape.truth = true,
                "object" => shape.table = true,
                "array" => {
                    let items = Self::of(schema, key.get("items").unwrap_or(&Json::Null));
                    shape.list = Some(Box::new(items));
                }
                _ => {}
            }
        }
        for other in (key.get("oneOf").and_then(Json::as_array))
            .into_iter()
            .flatten()
        {
            let other = Self::of(schema, other);
            shape.text |= other.text;
            shape.number |= other.number;
            shape.truth |= other.truth;
            shape.table |= other.table;
            shape.list = shape.list.or(other.list);
        }
        shape
    }

    /// The value of a flag: several are a list, and so is one where nothing else is possible.
    pub(super) fn read(&self, given: &[String]) -> Value {
        match (given, &self.list) {
            ([one], _) => self.read_one(one),
            (many, items) => {
                let items = items.as_deref().unwrap_or(self);
                Value::Array(many.iter().map(|one| items.read_item(one)).collect())
            }
        }
    }

    fn read_one(&self, text: &str) -> Value {
        if let Some(value) = parsed(text).filter(|v| self.takes(v)) {
            return value;
        }
        match &self.list {
            Some(items) if !(self.text || self.number || self.table) => {
                Value::Array(vec![items.read_item(text)])
            }
            Some(_) => self.read_item(text),
            None => self.plain(text),
        }
    }

    /// What may stand beside a list, or in one: a text in quotes is the text, so that one like a list can be written.
    fn read_item(&self, text: &str) -> Value {
        match parsed(text) {
            Some(Value::String(inner)) if self.text => Value::String(inner),
            Some(table @ Value::Table(_)) if self.table => table,
            _ => self.plain(text),
        }
    }

    /// A text, a number or a truth value as written. What is neither, or not wanted, is for the plan's reader to refuse.
    fn plain(&self, text: &str) -> Value {
        if !self.text {
            let word = text.trim();
            if self.truth && (word == "true" || word == "false") {
                return Value::Boolean(word == "true");
            }
            if self.number || parse_rational(word).is_ok() {
                return number(word);
            }
        }
        Value::String(text.to_owned())
    }

    /// Whether a list or table, as TOML, is one of those that are wanted here. Where a text is no possibility all are: what is wrong
    /// in them is for the plan's reader to say.
    fn takes(&self, value: &Value) -> bool {
        match (value, &self.list) {
            (Value::Table(_), _) => self.table,
            (Value::Array(all), Some(items)) => {
                !items.text || all.iter().all(|one| items.names(one))
            }
            _ => false,
        }
    }

    /// Whether a single value is of a type that is wanted here.
    fn names(&self, value: &Value) -> bool {
        match value {
            Value::String(_) => self.text,
            Value::Integer(_) | Value::Float(_) => self.number,
            Value::Boolean(_) => self.truth,
            Value::Table(_) => self.table,
            Value::Array(_) | Value::Datetime(_) => false,
        }
    }
}

fn resolve<'a>(schema: &'a Json, of: &'a Json) -> &'a Json {
    let name = of.get("$ref").and_then(Json::as_str);
    let found = name.and_then(|r| schema.pointer(r.trim_start_matches('#')));
    found.unwrap_or(of)
}

/// A number as everywhere else in plans; as a text, which plans read exactly, where TOML has no number that is the same.
fn number(text: &str) -> Value {
    let as_text = || Value::String(text.to_owned());
    let Ok(exact) = parse_rational(text) else {
        return as_text();
    };
    if let Ok(whole) = format_rational(&exact).parse() {
        return Value::Integer(whole);
    }
    match text.parse::<f64>() {
        Ok(x) if rational_from_f64(x).is_ok_and(|same| same == exact) => Value::Float(x),
        _ => as_text(),
    }
}

/// A list, a table or a text in quotes, as TOML: exactly one value and nothing else.
fn parsed(text: &str) -> Option<Value> {
    let text = text.trim();
    if !text.starts_with(['[', '{', '"', '\'']) {
        return None;
    }
    DeValue::parse(text).ok().map(|v| value(v.get_ref()))
}

fn value(of: &DeValue<'_>) -> Value {
    match of {
        DeValue::String(s) => Value::String(s.to_string()),
        DeValue::Integer(i) if i.radix() == 10 => number(i.as_str()),
        DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix())
            .map_or_else(|_| Value::String(i.to_string()), Value::Integer),
        DeValue::Float(x) => number(x.as_str()),
        DeValue::Boolean(b) => Value::Boolean(*b),
        DeValue::Datetime(d) => Value::Datetime(*d),
        DeValue::Array(all) => Value::Array(all.iter().map(|v| value(v.get_ref())).collect()),
        DeValue::Table(table) => Value::Table(entries(table)),
    }
}

fn entries(of: &DeTable<'_>) -> toml::Table {
    of.iter()
        .map(|(key, v)| (key.get_ref().to_string(), value(v.get_ref())))
        .collect()
}

/// A value as TOML, on one line whatever is in it.
pub(super) fn written(of: &Value) -> String {
    match of {
        Value::String(text) => quoted(text),
        Value::Array(all) => {
            let each: Vec<String> = all.iter().map(written).collect();
            format!("[{}]", each.join(", "))
        }
        Value::Table(table) => {
            let each: Vec<String> = table
                .iter()
                .map(|(key, v)| format!("{} = {}", name(key), written(v)))
                .collect();
            format!("{{ {} }}", each.join(", "))
        }
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {
            of.to_string()
        }
    }
}

/// A key as TOML.
fn name(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(bare) {
        key.to_owned()
    } else {
        quoted(key)
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
