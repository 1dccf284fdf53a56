//! What is said about keys of a plan, said about flags.

use std::path::Path;

use crate::outcome::Refusal;

/// What messages call a plan made of flags, which is in no file; paths in it are relative to where the command runs.
pub const NAME: &str = "the command line";

/// The flag of a key.
pub fn flag(key: &str) -> String {
    key.replace('_', "-")
}

/// A word as a shell takes it, quoted if need be.
pub fn shell(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./#=,:+%@…".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A text about keys of a plan with the flags in their place: `--term age` for `term = "age"`.
pub(super) fn of_flags(text: &str, keys: &[&str]) -> String {
    let mut out = String::new();
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        if first == '`'
            && !out.ends_with("column ")
            && let Some((key, after)) = rest[1..].split_once('`')
            && keys.contains(&key)
        {
            let whole = out.strip_suffix("the key ").map(str::to_owned);
            out = whole.unwrap_or(out);
            out.push_str("--");
            out.push_str(&flag(key));
            (rest, before) = (after, '`');
            continue;
        }
        let word_char = |c: char| c.is_alphanumeric() || c == '_';
        let end = rest.find(|c| !word_char(c)).unwrap_or(rest.len());
        if end == 0 || word_char(before) || matches!(before, '-' | '.' | '"') {
            out.push(first);
            (rest, before) = (&rest[first.len_utf8()..], first);
            continue;
        }
        let (word, after) = rest.split_at(end);
        (rest, before) = (after, '_');
        if !keys.contains(&word) {
            out.push_str(word);
            continue;
        }
        if let Some(assigned) = after.strip_prefix(" = ") {
            let (value, after) = value(assigned);
            out.push_str(&format!("--{} {}", flag(word), shell(&value)));
            rest = after;
        } else if word.contains('_') {
            out.push_str("--");
            out.push_str(&flag(word));
        } else {
            out.push_str(word);
        }
    }
    out
}

/// The TOML value that a text begins with (the text in it, if it is one), and what follows.
fn value(text: &str) -> (String, &str) {
    if let Some(inner) = text.strip_prefix('"')
        && let Some((inner, after)) = inner.split_once('"')
    {
        return (inner.to_owned(), after);
    }
    let mut depth = 0_usize;
    let mut end = text.len();
    for (at, c) in text.char_indices() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            c if depth == 0 && (c.is_whitespace() || matches!(c, ',' | ';' | ':' | ')')) => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let (value, _) = text.split_at(end);
    let value = value.trim_end_matches(['.', '?', '!']);
    (value.to_owned(), &text[value.len()..])
}

/// A refusal of the plan as one of the command: flags instead of keys, and no lines of a text that nobody sees. `keys` are those of
/// the kind; refusals of anything else are left as they are.
pub(super) fn refused(mut refusal: Refusal, keys: &[&str]) -> Refusal {
    if refusal
        .file
        .as_deref()
        .is_some_and(|f| f != Path::new(NAME))
    {
        return refusal;
    }
    let ours = refusal.file.take().is_some();
    if ours {
        refusal.line = None;
    }
    if let Some(place) = refusal.key.take() {
        refusal.key = match place_of(&place, keys) {
            Some(flag) => Some(flag.into()),
            None if ours => None,
            None => Some(place),
        };
    }
    refusal.message = match refusal.message.as_str() {
        "no earlier release of this plan has that id" => {
            "not of the form \"release.json#id\"".to_owned()
        }
        message => said(message, keys),
    };
    if let Some(fix) = refusal.fix.take() {
        refusal.fix = Some(said(&without_plan(&fix), keys));
    }
    refusal
}

/// As [`of_flags`], but for words that are the user's: formulas, marked above a last line, and names that are proposed.
fn said(text: &str, keys: &[&str]) -> String {
    if text.contains("Did you mean `") || text.contains("Known: `") {
        return text.to_owned();
    }
    match text.rsplit_once('\n') {
        Some((marked, last)) => format!("{marked}\n{}", of_flags(last, keys)),
        None => of_flags(text, keys),
    }
}

/// `--data-norm` for `release.data_norm` or `release "id", data_norm`.
fn place_of(place: &str, keys: &[&str]) -> Option<String> {
    let key = place.rsplit_once("\", ").map_or(place, |(_, key)| key);
    let key = key.strip_prefix("release.").unwrap_or(key);
    let (key, inner) = key.split_once('.').unwrap_or((key, ""));
    let known = keys.contains(&key).then(|| format!("--{}", flag(key)))?;
    Some(if inner.is_empty() {
        known
    } else {
        format!("{known}, {inner}")
    })
}

/// Without the offer of an earlier release of the same plan, which has none.
fn without_plan(fix: &str) -> String {
    let offered = fix
        .strip_prefix("Name an earlier ")
        .and_then(|rest| rest.split_once(" release of this plan, or write"));
    match offered.and_then(|(kinds, _)| kinds.split(' ').next()) {
        Some(kind) => {
            let like = flag(kind);
            format!(
                "Name a released one, for example out/{kind}/release.json#{kind} after `reticent {like}`."
            )
        }
        None => fix.to_owned(),
    }
}
