//! A verified claim in words.

use std::fmt::Write as _;

use serde_json::Value;

use super::html::escape;
use super::read::{num, text};
use super::words;

/// What was asked of a coefficient; HTML.
pub(super) fn claim(v: &Value) -> String {
    let of = |key: &str| {
        text(v, key).map_or_else(String::new, |t| format!("<code>{}</code>", escape(&t)))
    };
    let value = |key: &str| num(v, key).map_or_else(|| words::NONE.to_owned(), words::number);
    let asked = if text(v, "question").as_deref() == Some("within") {
        format!("between {} and {}", value("low"), value("high"))
    } else {
        format!(
            "different from {}, at level {}",
            value("from"),
            value("level")
        )
    };
    let by = text(v, "family").map_or_else(String::new, |f| format!(" by {}", escape(&f)));
    format!(
        "Is the coefficient of {} in {}{by} {asked}?",
        of("term"),
        of("formula")
    )
}

/// The answer, and the votes behind it.
pub(super) fn verdict(v: &Value) -> Option<(String, String)> {
    let answer = match (text(v, "answer")?.as_str(), text(v, "direction")) {
        ("yes", Some(side)) => format!("Yes, {side}"),
        ("yes", None) => "Yes".to_owned(),
        ("no", _) => "No".to_owned(),
        _ => "Undecided".to_owned(),
    };
    Some((answer, votes(v)))
}

/// The votes behind an answer.
fn votes(v: &Value) -> String {
    let count =
        |key: &str| num(v, key).map_or_else(|| words::NONE.to_owned(), |x| words::fixed(x, 0));
    let said = if text(v, "question").as_deref() == Some("within") {
        "in the range"
    } else {
        "above it"
    };
    let mut out = format!(
        "{} ± {} of {} groups say {said}",
        count("votes"),
        count("error_95"),
        count("groups")
    );
    if let Some(p) = num(v, "p_value") {
        let _ = write!(out, "; p {}, noise included", words::probability(p));
    }
    if let Some(t) = num(v, "detects") {
        let _ = write!(
            out,
            "; a |t| of {} or more is found in 4 of 5 cases",
            words::fixed(t, 1)
        );
    }
    out
}
