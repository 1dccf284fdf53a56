//! SmartNoise metadata (YAML) as the beginning of a `dataset.toml`.
//!
//! The format is a tree of collection, schema, table and column. What it can say is taken over: types,
//! bounds, identifier, rows per identifier, treatment of missing cells. What it cannot say (budget,
//! ledger, path, levels of text columns) is listed, and marked in the draft where it belongs.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use saphyr_parser::{Event, Parser};

use crate::dataset::{toml_key, toml_text};
use crate::document;
use crate::outcome::Refusal;
use crate::suggest;

const LONGEST: usize = 16 << 20;
const DEEPEST: usize = 16;

/// A `dataset.toml` to be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The text.
    pub toml: String,
    /// What the metadata could not say and the curator has to add, in words.
    pub missing: Vec<String>,
    /// What the metadata said and the draft does not carry over, in words.
    pub notes: Vec<String>,
}

/// Reads a metadata file; `table` chooses among several tables.
pub fn import(path: &Path, table: Option<&str>) -> Result<Draft, Refusal> {
    parse(&document::load(path)?, path, table)
}

/// Reads metadata text; `file` is used for messages.
pub fn parse(text: &str, file: &Path, table: Option<&str>) -> Result<Draft, Refusal> {
    if text.len() > LONGEST {
        return Err(Refusal::request("the file is larger than 16 MB").in_file(file));
    }
    let root = tree(text, file)?;
    let mut tables = Vec::new();
    find_tables(&root, &mut Vec::new(), &mut tables);
    let names: Vec<&str> = tables.iter().map(|t| t.0.as_str()).collect();
    let fix = "Each table is a mapping of column names to mappings with `type`, `lower`, `upper`.";
    let chosen = match (table, tables.as_slice()) {
        (_, []) => {
            return Err(Refusal::request("no table was found in the metadata")
                .in_file(file)
                .accepting(fix));
        }
        (None, [only]) => only,
        (None, _) => {
            return Err(
                Refusal::request(format!("the metadata describe {} tables", tables.len()))
                    .in_file(file)
                    .accepting(format!("Choose one of {}.", document::quoted(&names))),
            );
        }
        (Some(wanted), all) => {
            let found = all
                .iter()
                .find(|t| t.0 == wanted || t.0.rsplit('.').next() == Some(wanted));
            found.ok_or_else(|| {
                Refusal::request(format!("there is no table {wanted:?}"))
                    .in_file(file)
                    .accepting(suggest::advice(wanted, &names))
            })?
        }
    };
    draft(&chosen.0, chosen.1, file)
}

/// A YAML node, as far as metadata need it.
enum Node {
    Scalar(String, u32),
    Mapping(Vec<(String, Node)>, u32),
    Other(u32),
}

impl Node {
    fn line(&self) -> u32 {
        match self {
            Self::Scalar(_, line) | Self::Mapping(_, line) | Self::Other(line) => *line,
        }
    }

    fn entries(&self) -> &[(String, Node)] {
        match self {
            Self::Mapping(entries, _) => entries,
            _ => &[],
        }
    }

    fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|e| e.0 == key).map(|e| &e.1)
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Scalar(text, _) => Some(text),
            _ => None,
        }
    }

    fn truth(&self) -> Option<bool> {
        match self.text()?.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => None,
        }
    }

    fn number(&self) -> Option<f64> {
        self.text()?
            .trim()
            .replace('_', "")
            .parse()
            .ok()
            .filter(|x: &f64| x.is_finite())
    }
}

/// A container being filled.
enum Open {
    Mapping(Vec<(String, Node)>, Option<String>, u32),
    Sequence(u32),
}

fn tree(text: &str, file: &Path) -> Result<Node, Refusal> {
    let mut stack: Vec<Open> = Vec::new();
    let mut root = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|e| {
            let line = u32::try_from(e.marker().line()).unwrap_or(u32::MAX);
            Refusal::request(format!("not valid YAML: {}", e.info()))
                .in_file(file)
                .at_line(line)
        })?;
        let line = u32::try_from(span.start.line()).unwrap_or(u32::MAX);
        let refuse = |message: &str| Refusal::request(message).in_file(file).at_line(line);
        let done = match event {
            Event::MappingStart(..) => {
                stack.push(Open::Mapping(Vec::new(), None, line));
                None
            }
            Event::SequenceStart(..) => {
                stack.push(Open::Sequence(line));
                None
            }
            Event::MappingEnd | Event::SequenceEnd => stack.pop().map(|open| match open {
                Open::Mapping(entries, _, line) => Node::Mapping(entries, line),
                Open::Sequence(line) => Node::Other(line),
            }),
            Event::Scalar(text, ..) => Some(Node::Scalar(Cow::into_owned(text), line)),
            Event::Alias(_) => {
                return Err(refuse("aliases are not supported").accepting("Write the values out."));
            }
            Event::DocumentStart(_) if root.is_some() => {
                return Err(
                    refuse("the file holds several documents").accepting("Keep one of them.")
                );
            }
            _ => None,
        };
        if stack.len() > DEEPEST {
            return Err(refuse("nested more deeply than any metadata"));
        }
        let Some(node) = done else { continue };
        match stack.last_mut() {
            None => root = Some(node),
            Some(Open::Sequence(_)) => {}
            Some(Open::Mapping(entries, key, _)) => match key.take() {
                Some(name) => {
                    if entries.iter().any(|e| e.0 == name) {
                        return Err(refuse("this key occurs twice")
                            .for_key(&name)
                            .accepting("Remove one of the two."));
                    }
                    entries.push((name, node));
                }
                None => *key = Some(node.text().unwrap_or("").to_owned()),
            },
        }
    }
    root.ok_or_else(|| Refusal::request("the file is empty").in_file(file))
}

/// Tables are the mappings that have a column, and columns are the mappings that have a type.
fn find_tables<'a>(node: &'a Node, path: &mut Vec<&'a str>, out: &mut Vec<(String, &'a Node)>) {
    let is_column = |n: &Node| n.get("type").is_some_and(|t| t.text().is_some());
    if node.entries().iter().any(|(_, child)| is_column(child)) {
        let name: Vec<&str> = path.iter().copied().filter(|p| !p.is_empty()).collect();
        out.push((name.join("."), node));
        return;
    }
    for (name, child) in node.entries() {
        path.push(name);
        find_tables(child, path, out);
        path.pop();
    }
}

/// Settings of a table that are not columns, and what becomes of them.
const IGNORED: [&str; 6] = [
    "sample_max_ids",
    "censor_dims",
    "clamp_counts",
    "clamp_columns",
    "use_dpsu",
    "engine",
];

fn draft(name: &str, table: &Node, file: &Path) -> Result<Draft, Refusal> {
    let mut missing = vec![
        "the path of the data (source)".to_owned(),
        "the budget".to_owned(),
        "the neighbour relation, if it is not add_remove".to_owned(),
    ];
    let mut notes = Vec::new();
    let mut columns = String::new();
    let mut id = None;
    for (column, node) in table.entries() {
        if node.get("type").is_none() {
            if IGNORED.contains(&column.as_str()) {
                notes.push(format!(
                    "line {}: `{column}` has no counterpart and is left out",
                    node.line()
                ));
            } else if !matches!(column.as_str(), "row_privacy" | "max_ids" | "rows") {
                notes.push(format!(
                    "line {}: `{column}` is not known and is left out",
                    node.line()
                ));
            }
            continue;
        }
        if node.get("private_id").and_then(Node::truth) == Some(true) {
            if let Some(first) = id.replace(column.clone()) {
                return Err(Refusal::request(format!(
                    "`{first}` and `{column}` are both marked as private_id"
                ))
                .in_file(file)
                .at_line(node.line())
                .accepting("One column says who a row is about: keep the mark of that one."));
            }
            let _ = write!(columns, "\n[columns.{}]\ntype = \"id\"\n", toml_key(column));
            continue;
        }
        columns.push_str(&draft_column(column, node, file, &mut missing, &mut notes)?);
    }
    let row_privacy = table
        .get("row_privacy")
        .and_then(Node::truth)
        .unwrap_or(false);
    let whole = |key: &str, most: f64| -> Result<Option<f64>, Refusal> {
        let Some(node) = table.get(key) else {
            return Ok(None);
        };
        let number = node
            .number()
            .filter(|k| k.fract() == 0.0 && (1.0..=most).contains(k));
        number.map(Some).ok_or_else(|| {
            Refusal::request(format!("`{key}` is not a whole number from 1 to {most}"))
                .in_file(file)
                .at_line(node.line())
                .accepting("Correct it, or remove the key.")
        })
    };
    let (max_ids, hinted) = (whole("max_ids", f64::from(u32::MAX))?, whole("rows", 1e15)?);
    let unit = match (&id, row_privacy) {
        (Some(id), false) => {
            let rows = max_ids.unwrap_or(1.0);
            format!(
                "unit = {{ column = {}, max_rows = {rows} }}\n",
                toml_text(id)
            )
        }
        (None, false) => {
            missing.push(
                "the privacy unit: the metadata name neither a private_id column nor row_privacy"
                    .to_owned(),
            );
            "unit = \"row\"   # to be decided: one row, or { column = \"…\", max_rows = … }\n"
                .to_owned()
        }
        (_, true) => "unit = \"row\"\n".to_owned(),
    };
    let hint = hinted.map_or_else(String::new, |n| {
        format!("size_hint = {n}   # from the metadata; used for planning only\n")
    });
    let short = name.rsplit('.').next().unwrap_or(name);
    let toml = format!(
        "# Begun from SmartNoise metadata. Complete what is marked with TODO; nothing here may be taken from the data.\n\
         version = 1\n\
         id = {id}\n\
         data_version = \"1\"\n\
         # TODO source = {{ path = \"table.csv\", format = \"csv\" }}\n\
         neighbours = \"add_remove\"   # or \"replace_one\", then also rows = …\n\
         {unit}{hint}\n\
         [budget]\n\
         # TODO epsilon = \"1\"\n\n\
         [ledger]\n\
         path = {ledger}\n{columns}",
        id = toml_text(short),
        ledger = toml_text(&format!("{short}.ledger")),
    );
    Ok(Draft {
        toml,
        missing,
        notes,
    })
}

fn draft_column(
    name: &str,
    node: &Node,
    file: &Path,
    missing: &mut Vec<String>,
    notes: &mut Vec<String>,
) -> Result<String, Refusal> {
    let written = node.get("type").and_then(Node::text).unwrap_or("");
    let mut out = format!("\n[columns.{}]\n", toml_key(name));
    let numeric = match written.to_ascii_lowercase().as_str() {
        "int" | "integer" => {
            out.push_str("type = \"integer\"\n");
            true
        }
        "float" | "double" | "real" | "numeric" => {
            out.push_str("type = \"real\"\n");
            true
        }
        "string" | "str" | "text" => {
            out.push_str("type = \"text\"\n");
            let cardinality = node.get("cardinality").and_then(Node::text);
            let known = cardinality.map_or_else(String::new, |c| format!(" ({c} of them)"));
            let _ = writeln!(out, "# TODO levels = [\"…\"]{known}");
            missing.push(format!("the levels of `{name}`"));
            false
        }
        "boolean" | "bool" => {
            out.push_str("type = \"boolean\"\n");
            false
        }
        other => {
            let known = ["int", "float", "string", "boolean"];
            if other.starts_with("date") || other.starts_with("time") {
                notes.push(format!(
                    "line {}: `{name}` is a date, which is not supported, and is left out",
                    node.line()
                ));
                return Ok(String::new());
            }
            return Err(Refusal::request("not a column type of SmartNoise metadata")
                .in_file(file)
                .at_line(node.line())
                .for_key(format!("{name}.type"))
                .with_value(written)
                .accepting(suggest::advice(written, &known)));
        }
    };
    if numeric {
        for key in ["lower", "upper"] {
            match node.get(key).map(|n| (n.number(), n)) {
                Some((Some(x), _)) => {
                    let _ = writeln!(out, "{key} = {x}");
                }
                Some((None, n)) => {
                    return Err(Refusal::request("not a finite number")
                        .in_file(file)
                        .at_line(n.line())
                        .for_key(format!("{name}.{key}"))
                        .with_value(n.text().unwrap_or("…")));
                }
                None => {
                    let _ = writeln!(out, "# TODO {key} = …");
                    missing.push(format!("the {key} bound of `{name}`"));
                }
            }
        }
    }
    // In that format columns are nullable unless they say otherwise.
    let nullable = node.get("nullable").and_then(Node::truth).unwrap_or(true);
    match node.get("missing_value").and_then(Node::text) {
        Some(value) => {
            let value = node
                .get("missing_value")
                .and_then(Node::number)
                .map_or_else(|| toml_text(value), |x| x.to_string());
            let _ = write!(out, "missing = \"impute\"\nimpute = {value}\n");
        }
        None if nullable => out.push_str("missing = \"drop\"\n"),
        None => out.push_str("missing = \"reject\"\n"),
    }
    for (key, value) in node.entries() {
        let known = [
            "type",
            "lower",
            "upper",
            "nullable",
            "missing_value",
            "private_id",
            "cardinality",
        ];
        if !known.contains(&key.as_str()) {
            notes.push(format!(
                "line {}: `{name}.{key}` has no counterpart and is left out",
                value.line()
            ));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dataset::Dataset;

    const METADATA: &str = "\
'':
  Census:
    People:
      row_privacy: False
      rows: 1000
      max_ids: 3
      censor_dims: True
      pid:
        type: string
        private_id: True
      age:
        type: int
        lower: 0
        upper: 100
        nullable: False
      income:
        type: float
        lower: 0
        upper: 500000
        missing_value: 0
      married:
        type: boolean
      region:
        type: string
        cardinality: 4
      score:
        type: float
        sensitivity: 3
      born:
        type: datetime
";

    fn read(text: &str) -> Result<Draft, Refusal> {
        parse(text, Path::new("meta.yaml"), None)
    }

    #[test]
    fn what_the_metadata_say_is_taken_over_and_the_rest_is_listed() {
        let draft = read(METADATA).unwrap();
        for line in [
            "id = \"People\"",
            "unit = { column = \"pid\", max_rows = 3 }",
            "size_hint = 1000",
            "[columns.age]\ntype = \"integer\"\nlower = 0\nupper = 100\nmissing = \"reject\"",
            "[columns.income]\ntype = \"real\"\nlower = 0\nupper = 500000\nmissing = \"impute\"\nimpute = 0",
            "[columns.pid]\ntype = \"id\"",
            "# TODO levels = [\"…\"] (4 of them)",
            "# TODO lower = …",
        ] {
            assert!(draft.toml.contains(line), "{line}\n{}", draft.toml);
        }
        for what in [
            "budget",
            "source",
            "levels of `region`",
            "lower bound of `score`",
            "upper bound of `score`",
        ] {
            assert!(draft.missing.iter().any(|m| m.contains(what)), "{what}");
        }
        for what in ["censor_dims", "score.sensitivity", "`born` is a date"] {
            assert!(draft.notes.iter().any(|n| n.contains(what)), "{what}");
        }
        assert!(!draft.toml.contains("born"));
    }

    #[test]
    fn a_completed_draft_is_a_data_set() {
        let draft = read(METADATA).unwrap().toml;
        let completed = draft
            .replace("# TODO source", "source")
            .replace("# TODO epsilon", "epsilon")
            .replace(
                "# TODO levels = [\"…\"] (4 of them)",
                "levels = [\"n\", \"s\"]",
            )
            .replace("# TODO lower = …", "lower = 0")
            .replace("# TODO upper = …", "upper = 1");
        let dataset = Dataset::parse(&completed, Path::new("dataset.toml"))
            .unwrap_or_else(|e| panic!("{e}\n{completed}"));
        assert_eq!(dataset.unit.max_rows(), 3);
        assert_eq!(dataset.schema.columns.len(), 6);
        // Unfinished, it is refused rather than guessed (lessons, row 16).
        assert!(Dataset::parse(&draft, Path::new("dataset.toml")).is_err());
    }

    #[test]
    fn tables_are_chosen_by_name() {
        let two = "S:\n  A:\n    x: {type: int, lower: 0, upper: 1}\n  B:\n    y: {type: int, lower: 0, upper: 1}\n";
        let refused = parse(two, Path::new("m.yaml"), None)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("\"S.A\" or \"S.B\""), "{refused}");
        assert!(
            parse(two, Path::new("m.yaml"), Some("B"))
                .unwrap()
                .toml
                .contains("[columns.y]")
        );
        let refused = parse(two, Path::new("m.yaml"), Some("S.C"))
            .unwrap_err()
            .to_string();
        assert!(refused.contains("no table \"S.C\""), "{refused}");
    }

    #[test]
    fn bad_metadata_are_refused_with_their_line() {
        for (text, part) in [
            ("", "empty"),
            ("a: [", "not valid YAML"),
            ("S:\n  T:\n    x:\n      type: complex\n", "line 4"),
            (
                "S:\n  T:\n    x:\n      type: int\n      lower: .inf\n",
                "line 5",
            ),
            ("a: 1\n", "no table"),
            ("a: &b 1\nc: *b\n", "aliases"),
            ("T:\n  x: {type: int}\n  x: {type: int}\n", "twice"),
            ("- - - - - - - - - - - - - - - - - - - a\n", "nested"),
        ] {
            let refused = read(text).unwrap_err().to_string();
            assert!(refused.contains(part), "{text:?}: {refused}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn any_text_gives_a_draft_or_a_refusal(text in "[a-c:{}\\[\\]\\- \n'\"&*!|>#,0-9]{0,80}") {
            let _ = read(&text).map_err(|e| e.to_string());
        }
    }
}
