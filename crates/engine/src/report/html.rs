//! HTML building blocks: escaping, tables, folded parts, legends.

use std::fmt::Write as _;

/// Text made safe for element content and for quoted attributes. Control characters that HTML forbids become `�`.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// How a column is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    /// Left, as text.
    Text,
    /// Left, never broken.
    Whole,
    /// Right, with figures of equal width.
    Number,
}

/// One cell: its markup (already escaped).
pub(super) type Cell = String;

/// A table in a frame that scrolls sideways on narrow screens. The first cell of each row is its header.
pub(super) fn table(
    class: &str,
    head: &[(&str, Set)],
    rows: &[Vec<Cell>],
    foot: Option<&[Cell]>,
) -> String {
    let mut out = format!(r#"<div class="scroll"><table class="{class}"><thead><tr>"#);
    for (name, set) in head {
        let _ = write!(
            out,
            r#"<th scope="col"{}>{}</th>"#,
            align(*set),
            escape(name)
        );
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        line(&mut out, head, row);
    }
    out.push_str("</tbody>");
    if let Some(foot) = foot {
        out.push_str("<tfoot>");
        line(&mut out, head, foot);
        out.push_str("</tfoot>");
    }
    out.push_str("</table></div>");
    out
}

fn line(out: &mut String, head: &[(&str, Set)], row: &[Cell]) {
    out.push_str("<tr>");
    for (i, cell) in row.iter().enumerate() {
        let set = align(head.get(i).map_or(Set::Text, |h| h.1));
        let _ = match i {
            0 => write!(out, r#"<th scope="row"{set}>{cell}</th>"#),
            _ => write!(out, "<td{set}>{cell}</td>"),
        };
    }
    out.push_str("</tr>");
}

fn align(set: Set) -> &'static str {
    match set {
        Set::Text => "",
        Set::Whole => r#" class="w""#,
        Set::Number => r#" class="n""#,
    }
}

/// A part that is folded away until asked for (and printed open).
pub(super) fn details(summary: &str, body: &str) -> String {
    format!(
        "<details><summary>{}</summary>{body}</details>",
        escape(summary)
    )
}

/// The legend of a chart: a small drawing of each mark and its words.
pub(super) fn legend(entries: &[(&'static str, String)], basis: &str) -> String {
    let mut out = r#"<ul class="legend">"#.to_owned();
    for (class, words) in entries {
        let key = match *class {
            "line" | "reference" | "zero" | "median" | "edge" | "s1" | "s2" | "s3" | "s4" | "s5" => format!(r#"<path class="{class}" d="M1 7H25"/>"#),
            "bar-interval" => r#"<path class="bar-interval" d="M2 7H24"/>"#.to_owned(),
            "whisker" => r#"<path class="whisker" d="M13 1V13"/>"#.to_owned(),
            "band" => r#"<g class="band"><rect class="solid" x="1" y="1" width="24" height="12"/></g><path class="edge" d="M1 1H25M1 13H25"/>"#.to_owned(),
            "shade" => r#"<rect class="shade" x="1" y="1" width="24" height="12"/><path class="edge" d="M1 1H25M1 13H25"/>"#.to_owned(),
            "bar" | "frame" | "miss" => format!(r#"<rect class="{class}" x="3" y="1" width="20" height="12"/>"#),
            "dot" => r#"<path class="dots large" d="M6 9h0M13 4h0M20 9h0"/>"#.to_owned(),
            other => format!(r#"<circle class="{other}" cx="13" cy="7" r="5"/>"#),
        };
        let _ = write!(
            out,
            r#"<li><svg viewBox="0 0 26 14" width="26" height="14" aria-hidden="true">{key}</svg>{}</li>"#,
            escape(words)
        );
    }
    let _ = write!(out, r#"<li class="basis">{}</li></ul>"#, escape(basis));
    out
}
