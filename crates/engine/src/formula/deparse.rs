//! A tree back to text, spelled as R's `deparse` does: the names of terms and the canonical form.

use super::parser::{Kind, Node, Operator};

/// The canonical spelling.
pub(super) fn deparse(node: &Node) -> String {
    let mut out = String::new();
    write(node, &mut out);
    out
}

fn write(node: &Node, out: &mut String) {
    match &node.kind {
        Kind::Number(x) => out.push_str(&number(*x)),
        Kind::Text(t) => text(t, out),
        Kind::Truth(t) => out.push_str(if *t { "TRUE" } else { "FALSE" }),
        Kind::Name(n) => out.push_str(&name(n)),
        Kind::Dot => out.push('.'),
        Kind::Sum(first, rest) => {
            write(first, out);
            for (plus, operand) in rest {
                out.push_str(if *plus { " + " } else { " - " });
                write(operand, out);
            }
        }
        Kind::Binary(op, a, b) => {
            write(a, out);
            out.push_str(spelled(*op));
            write(b, out);
        }
        Kind::Negate(a) => prefixed("-", a, out),
        Kind::Plus(a) => prefixed("+", a, out),
        Kind::Not(a) => prefixed("!", a, out),
        Kind::Call(function, arguments) => {
            out.push_str(&name(function));
            out.push('(');
            for (index, (named, value)) in arguments.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                if let Some(named) = named {
                    out.push_str(&name(named));
                    out.push_str(" = ");
                }
                write(value, out);
            }
            out.push(')');
        }
        Kind::Paren(a) => {
            out.push('(');
            write(a, out);
            out.push(')');
        }
        Kind::Formula(left, right) => {
            if let Some(left) = left {
                write(left, out);
                out.push(' ');
            }
            out.push_str("~ ");
            write(right, out);
        }
    }
}

fn prefixed(sign: &str, node: &Node, out: &mut String) {
    out.push_str(sign);
    write(node, out);
}

fn spelled(op: Operator) -> &'static str {
    match op {
        Operator::Multiply => " * ",
        Operator::Divide => "/",
        Operator::Power => "^",
        Operator::Colon => ":",
        Operator::In => " %in% ",
        Operator::Less => " < ",
        Operator::LessEqual => " <= ",
        Operator::Greater => " > ",
        Operator::GreaterEqual => " >= ",
        Operator::Equal => " == ",
        Operator::NotEqual => " != ",
        Operator::And => " & ",
        Operator::Or => " | ",
    }
}

/// Words that need backticks when they are names: those of R, and ours.
const RESERVED: [&str; 20] = [
    "and", "or", "not", "TRUE", "FALSE", "if", "else", "for", "while", "repeat", "function",
    "next", "break", "NULL", "NA", "NaN", "Inf", "in", ".", "...",
];

/// A name, in backticks unless it is a plain one.
pub(super) fn name(name: &str) -> String {
    let mut chars = name.chars();
    let first = chars.next();
    let second = chars.next();
    let starts = match first {
        Some('.') => !second.is_some_and(|c| c.is_ascii_digit()),
        Some(c) => c.is_alphabetic(),
        None => false,
    };
    let plain = starts
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '.' | '_'))
        && !RESERVED.contains(&name);
    if plain {
        return name.to_owned();
    }
    let mut out = String::from("`");
    for c in name.chars() {
        match c {
            '`' => out.push_str("\\`"),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('`');
    out
}

fn text(t: &str, out: &mut String) {
    out.push('"');
    for c in t.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A number as R prints it: at most 15 significant digits, fixed notation unless scientific is shorter;
/// all digits if 15 would not give the same number back, so that equal spellings mean equal numbers.
pub(super) fn number(x: f64) -> String {
    let digits = (0..15)
        .map(|d| format!("{x:.d$e}"))
        .find(|s| s.parse() == Ok(x))
        .unwrap_or_else(|| format!("{x:e}"));
    let Some((mantissa, exponent)) = digits.split_once('e') else {
        return digits;
    };
    let Ok(exponent) = exponent.parse::<i32>() else {
        return digits;
    };
    let significant = mantissa.chars().filter(char::is_ascii_digit).count();
    let sign = if exponent < 0 { '-' } else { '+' };
    let scientific = format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    let integer_digits = usize::try_from(exponent.max(0)).unwrap_or(0) + 1;
    let decimals = i32::try_from(significant).unwrap_or(i32::MAX) - 1 - exponent;
    let decimals = usize::try_from(decimals.max(0)).unwrap_or(0);
    let width = integer_digits + if decimals > 0 { decimals + 1 } else { 0 };
    let width = width + usize::from(mantissa.starts_with('-'));
    if width <= scientific.len() {
        format!("{x:.decimals$}")
    } else {
        scientific
    }
}
