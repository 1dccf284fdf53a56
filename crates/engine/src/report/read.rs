//! Reading values out of `release.json` without ever failing: what is missing or odd is `None` or empty.

use serde_json::Value;

/// A finite number, written as a number or as a decimal string.
pub(super) fn number(v: &Value) -> Option<f64> {
    match v {
        Value::Number(n) => n.as_f64(),
        Value::String(s) => super::words::value_of(s),
        _ => None,
    }
    .filter(|x| x.is_finite())
}

/// The number under `key`.
pub(super) fn num(v: &Value, key: &str) -> Option<f64> {
    v.get(key).and_then(number)
}

/// The text under `key`; numbers and booleans are written out.
pub(super) fn text(v: &Value, key: &str) -> Option<String> {
    v.get(key).and_then(plain)
}

/// A scalar as text.
pub(super) fn plain(v: &Value) -> Option<String> {
    match v {
        Value::String(s) => Some(s.clone()),
        Value::Number(n) => Some(n.to_string()),
        Value::Bool(b) => Some(b.to_string()),
        _ => None,
    }
}

/// The array under `key`, empty when there is none.
pub(super) fn list<'a>(v: &'a Value, key: &str) -> &'a [Value] {
    v.get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The numbers of the array under `key`, `NaN` where an entry is not a number (so that positions still match).
pub(super) fn nums(v: &Value, key: &str) -> Vec<f64> {
    list(v, key)
        .iter()
        .map(|x| number(x).unwrap_or(f64::NAN))
        .collect()
}

/// Pairs of numbers under two keys of the objects of an array; incomplete ones are left out.
pub(super) fn pairs(items: &[Value], a: &str, b: &str) -> Vec<(f64, f64)> {
    items
        .iter()
        .filter_map(|o| Some((num(o, a)?, num(o, b)?)))
        .collect()
}
