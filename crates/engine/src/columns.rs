//! The `[columns.…]` tables of `dataset.toml`: types, bounds, levels and reading policies.

use std::path::Path;

use reticent_accounting::{Rational, rational_to_f64};
use reticent_mechanisms::rows::{Column, Kind, Missing, Schema};

use crate::dataset::{BOOLEAN_LEVELS, MissingPolicy, OtherPolicy, Policy};
use crate::document::{Item, Section};
use crate::outcome::Refusal;
use crate::text::TextColumn;
use crate::tokens::Tokens;

/// Whole numbers beyond this are not exact as doubles.
const EXACT: i64 = 1 << 53;
const MOST_COLUMNS: usize = 20_000;
const MOST_LEVELS: usize = 1_000_000;

/// Schema and policies in file order, and which columns of the schema are slots of texts.
pub(crate) type Columns = (Schema, Vec<Policy>, Vec<Tokens>);

/// Reads all columns; `folder` is where word files are looked for.
pub(crate) fn columns(item: &Item<'_>, folder: &Path, fix: &str) -> Result<Columns, Refusal> {
    let mut section = item.section(fix)?;
    let declared = section.all();
    if declared.is_empty() || declared.len() > MOST_COLUMNS {
        return Err(item
            .refuse(format!(
                "{} columns are declared; between 1 and {MOST_COLUMNS} are accepted",
                declared.len()
            ))
            .accepting(fix));
    }
    let mut columns = Vec::with_capacity(declared.len());
    let mut policies = Vec::with_capacity(declared.len());
    let mut tokens: Vec<Tokens> = Vec::new();
    let mut names = std::collections::HashSet::new();
    for (name, item) in declared {
        let own = name.trim().to_owned();
        let read = column(name, &item, folder, fix)?;
        let first = columns.len();
        match read {
            Read::Plain(column, policy) => {
                columns.push(column);
                policies.push(policy);
            }
            Read::Text(column) => {
                let slots = column.columns();
                policies.extend(slots.iter().map(|_| Policy {
                    missing: MissingPolicy::Impute,
                    other: OtherPolicy::Drop,
                    missing_values: vec![String::new()],
                }));
                columns.extend(slots);
                tokens.push(Tokens { first, column });
            }
        }
        // TOML refuses the same key twice; names that differ only in surrounding space would still
        // collide, because header cells are trimmed. So would a column named as the slot of a text.
        let fresh = columns
            .iter()
            .skip(first)
            .all(|c| names.insert(c.name.trim().to_owned()));
        let slot = tokens.last().is_some_and(|t| t.first == first);
        if !fresh || (slot && !names.insert(own)) {
            return Err(item
                .refuse("a column of this name is declared twice")
                .accepting("Remove one of the two; a column of tokens has slots `name.1`, `name.2`, … besides."));
        }
        if columns.len() > MOST_COLUMNS {
            return Err(item
                .refuse(format!(
                    "more than {MOST_COLUMNS} columns and slots are declared"
                ))
                .accepting("Declare fewer columns, or a smaller `most`."));
        }
    }
    Ok((Schema { columns }, policies, tokens))
}

/// A declared column.
enum Read {
    /// One that is read as it is.
    Plain(Column, Policy),
    /// One that becomes slots.
    Text(TextColumn),
}

#[derive(Clone, Copy, PartialEq)]
enum Type {
    Integer,
    Real,
    Text,
    Boolean,
    Id,
    Tokens,
}

fn column(name: String, item: &Item<'_>, folder: &Path, fix: &str) -> Result<Read, Refusal> {
    if name.trim() != name || name.is_empty() {
        return Err(item
            .refuse("a column name may not be empty or start or end with space")
            .accepting("Header cells are trimmed when read: write the trimmed name."));
    }
    let mut section = item.section(fix)?;
    let words = [
        ("integer", Type::Integer),
        ("real", Type::Real),
        ("text", Type::Text),
        ("boolean", Type::Boolean),
        ("id", Type::Id),
        ("tokens", Type::Tokens),
    ];
    let kind = section
        .need(
            "type",
            "Write type = \"integer\", \"real\", \"text\", \"boolean\", \"id\" or \"tokens\".",
        )?
        .word(&words)?;
    if kind == Type::Tokens {
        let column = crate::tokens::read(&mut section, name, folder)?;
        section.finish()?;
        return Ok(Read::Text(column));
    }
    if kind == Type::Id {
        let declared = section.get("missing_values").is_some();
        let missing_values = if declared {
            missing_values(&mut section, &Kind::Id)?
        } else {
            vec![String::new()]
        };
        let words = [
            ("reject", MissingPolicy::Reject),
            ("drop", MissingPolicy::Drop),
        ];
        let missing = section.get("missing").map(|i| i.word(&words)).transpose()?;
        section.finish().map_err(|r| {
            r.accepting("An id column has only `missing` and `missing_values` beside its type: it is never used as a value.")
        })?;
        let policy = Policy {
            missing: missing.unwrap_or(MissingPolicy::Reject),
            other: OtherPolicy::Drop,
            missing_values,
        };
        let column = Column {
            name,
            kind: Kind::Id,
            missing: Missing::Drop,
        };
        return Ok(Read::Plain(column, policy));
    }
    let (kind, other) = match kind {
        Type::Integer | Type::Real => (bounds(&mut section, &name, kind)?, OtherPolicy::Drop),
        _ => levels(&mut section, &name, kind == Type::Boolean)?,
    };
    let missing_values = missing_values(&mut section, &kind)?;
    let (missing, policy) = missing(&mut section, &kind)?;
    section.finish()?;
    Ok(Read::Plain(
        Column {
            name,
            kind,
            missing,
        },
        Policy {
            missing: policy,
            other,
            missing_values,
        },
    ))
}

fn bounds(section: &mut Section<'_>, name: &str, kind: Type) -> Result<Kind, Refusal> {
    let fix = format!(
        "Declare lower and upper for `{name}` from public knowledge (a codebook, a law, common sense), never from the data; values outside are clamped."
    );
    let kind = if kind == Type::Integer {
        let lower = section.need("lower", &fix)?.integer(-EXACT, EXACT, &fix)?;
        let upper = section.need("upper", &fix)?.integer(-EXACT, EXACT, &fix)?;
        (lower < upper).then_some(Kind::Integer { lower, upper })
    } else {
        let lower = section.need("lower", &fix)?.real(&fix)?;
        let upper = section.need("upper", &fix)?.real(&fix)?;
        // The width must be finite too: scaling divides by it.
        (lower < upper && (upper - lower).is_finite()).then_some(Kind::Real { lower, upper })
    };
    kind.ok_or_else(|| {
        let line = section.line_of("upper");
        section
            .refuse("the bounds must satisfy lower < upper, with a finite difference")
            .at_line(line)
            .accepting("Swap or widen them.")
    })
}

fn levels(
    section: &mut Section<'_>,
    name: &str,
    boolean: bool,
) -> Result<(Kind, OtherPolicy), Refusal> {
    let fix = format!(
        "Declare levels = [\"a\", \"b\"] for `{name}` from public knowledge, the reference level first; undeclared texts go by `other`."
    );
    let mut levels: Vec<String> = Vec::new();
    if boolean && section.get("levels").is_none() {
        levels.extend(BOOLEAN_LEVELS.map(str::to_owned));
    } else {
        let list = section.need("levels", &fix)?;
        let mut seen = std::collections::HashSet::new();
        for item in list.list(&fix)? {
            let level = item.name(&fix)?;
            if level.trim().is_empty() || level.trim() != level {
                return Err(item
                    .refuse("a level may not be empty or start or end with space")
                    .accepting("Cells are trimmed when read and the empty cell means missing: write the trimmed text."));
            }
            if !seen.insert(level.clone()) {
                return Err(item
                    .refuse("this level is listed twice")
                    .accepting("Remove one of the two."));
            }
            levels.push(level);
        }
        if levels.is_empty() || levels.len() > MOST_LEVELS {
            return Err(list
                .refuse(format!("between 1 and {MOST_LEVELS} levels are accepted"))
                .accepting(fix));
        }
        if boolean && levels.len() != 2 {
            return Err(list
                .refuse("a boolean column has exactly two levels")
                .accepting(
                    "List the two texts, the one for false first, or use type = \"text\".",
                ));
        }
    }
    let (policy, other) = match section.get("other") {
        None => (OtherPolicy::Reject, None),
        Some(item) => other(&item, &levels)?,
    };
    Ok((Kind::Levels { levels, other }, policy))
}

/// What an undeclared text stands for.
fn other(item: &Item<'_>, levels: &[String]) -> Result<(OtherPolicy, Option<u32>), Refusal> {
    let fix = "Write \"reject\", \"drop\" or the name of a declared level.";
    let written = item.name(fix)?;
    match written.as_str() {
        "reject" => return Ok((OtherPolicy::Reject, None)),
        "drop" => return Ok((OtherPolicy::Drop, None)),
        _ => {}
    }
    let index = levels
        .iter()
        .position(|l| *l == written)
        .and_then(|i| u32::try_from(i).ok());
    if index.is_some() {
        return Ok((OtherPolicy::Level, index));
    }
    let near = crate::suggest::nearest(&written, levels.iter().map(String::as_str)).map_or_else(
        || fix.to_owned(),
        |n| format!("Did you mean \"{n}\"? {fix}"),
    );
    Err(item.refuse("not a declared level").accepting(near))
}

fn missing_values(section: &mut Section<'_>, kind: &Kind) -> Result<Vec<String>, Refusal> {
    let is_level = |text: &str| matches!(kind, Kind::Levels { levels, .. } if levels.iter().any(|l| l == text));
    let mut texts = vec![String::new()];
    match section.get("missing_values") {
        None => {
            if !is_level("NA") {
                texts.push("NA".to_owned());
            }
        }
        Some(item) => {
            let fix = "Write a list of texts, for example missing_values = [\"\", \"?\"].";
            for element in item.list(fix)? {
                let text = element.name(fix)?.trim().to_owned();
                if is_level(&text) {
                    return Err(element
                        .refuse("this text is also a declared level")
                        .accepting("Remove it from one of the two lists."));
                }
                if !texts.contains(&text) {
                    texts.push(text);
                }
            }
        }
    }
    Ok(texts)
}

fn missing(section: &mut Section<'_>, kind: &Kind) -> Result<(Missing, MissingPolicy), Refusal> {
    let words = [
        ("reject", MissingPolicy::Reject),
        ("drop", MissingPolicy::Drop),
        ("impute", MissingPolicy::Impute),
    ];
    let policy = section
        .get("missing")
        .map(|i| i.word(&words))
        .transpose()?
        .unwrap_or(MissingPolicy::Reject);
    if policy != MissingPolicy::Impute {
        if let Some(item) = section.get("impute") {
            return Err(item
                .refuse("has no effect without missing = \"impute\"")
                .accepting("Add it or remove this key."));
        }
        return Ok((Missing::Drop, policy));
    }
    let fix = "missing = \"impute\" needs a public value within the declared bounds or levels, for example impute = 40.";
    let item = section.need("impute", fix)?;
    let value = match kind {
        Kind::Levels { levels, .. } => {
            let text = item.name(fix)?;
            levels
                .iter()
                .position(|l| {
                    *l == text || (levels == &BOOLEAN_LEVELS && l.eq_ignore_ascii_case(&text))
                })
                .and_then(|i| u32::try_from(i).ok())
                .map(f64::from)
                .ok_or_else(|| item.refuse("not a declared level").accepting(fix))?
        }
        Kind::Integer { lower, upper } => {
            let n = item.integer(*lower, *upper, fix)?;
            rational_to_f64(&Rational::from(n))
        }
        Kind::Real { lower, upper } => {
            let x = item.real(fix)?;
            if x < *lower || x > *upper {
                return Err(item
                    .refuse(format!("lies outside the bounds {lower} to {upper}"))
                    .accepting(fix));
            }
            x
        }
        Kind::Id => 0.0,
    };
    Ok((Missing::Impute(value), policy))
}
