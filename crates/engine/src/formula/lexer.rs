//! Text to tokens, each with its place in characters.

use super::error::FormulaError;

/// Longest formula that is read.
const LONGEST: usize = 200_000;

/// One word of a formula.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Number(f64),
    Text(String),
    /// A name; `true` if it was in backticks and so is never a keyword.
    Name(String, bool),
    Symbol(&'static str),
    End,
}

/// A token with its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lexeme {
    pub(super) token: Token,
    pub(super) start: usize,
    pub(super) end: usize,
}

const SYMBOLS: [&str; 24] = [
    "%in%", "==", "!=", "<=", ">=", "&&", "||", "**", "<-", "+", "-", "*", "/", "^", ":", "(", ")",
    ",", "~", "<", ">", "&", "|", "!",
];

pub(super) fn lex(text: &str) -> Result<Vec<Lexeme>, FormulaError> {
    if text.len() > LONGEST {
        return Err(FormulaError::at(
            &text.chars().take(60).collect::<String>(),
            0,
            1,
            format!("the formula is longer than {LONGEST} bytes"),
        ));
    }
    let chars: Vec<char> = text.chars().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        if c.is_whitespace() {
            at += 1;
            continue;
        }
        let start = at;
        let token = match c {
            '0'..='9' => number(text, &chars, &mut at)?,
            '.' if chars.get(at + 1).is_some_and(char::is_ascii_digit) => {
                number(text, &chars, &mut at)?
            }
            '"' | '\'' => Token::Text(quoted(text, &chars, &mut at, c, "text")?),
            '`' => {
                let name = quoted(text, &chars, &mut at, c, "name")?;
                if name.is_empty() {
                    return Err(FormulaError::at(text, start, at, "the name is empty"));
                }
                Token::Name(name, true)
            }
            c if c.is_alphabetic() || c == '.' => {
                while chars
                    .get(at)
                    .is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_'))
                {
                    at += 1;
                }
                Token::Name(chars[start..at].iter().collect(), false)
            }
            _ => symbol(text, &chars, &mut at)?,
        };
        out.push(Lexeme {
            token,
            start,
            end: at,
        });
    }
    out.push(Lexeme {
        token: Token::End,
        start: at,
        end: at,
    });
    Ok(out)
}

fn number(text: &str, chars: &[char], at: &mut usize) -> Result<Token, FormulaError> {
    let start = *at;
    let digits = |at: &mut usize| {
        while chars.get(*at).is_some_and(char::is_ascii_digit) {
            *at += 1;
        }
    };
    digits(at);
    if chars.get(*at) == Some(&'.') {
        *at += 1;
        digits(at);
    }
    if matches!(chars.get(*at), Some('e' | 'E')) {
        let signed = usize::from(matches!(chars.get(*at + 1), Some('+' | '-')));
        if chars
            .get(*at + 1 + signed)
            .is_some_and(char::is_ascii_digit)
        {
            *at += 1 + signed;
            digits(at);
        }
    }
    let written: String = chars[start..*at].iter().collect();
    // R marks integers with L; the value is the same.
    if chars.get(*at) == Some(&'L') {
        *at += 1;
    }
    if chars
        .get(*at)
        .is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
    {
        return Err(
            FormulaError::at(text, start, *at + 1, "neither a number nor a name").accepting(
                "Names that start with a digit are written in backticks, for example `2nd`.",
            ),
        );
    }
    match written.parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(Token::Number(x)),
        _ => Err(FormulaError::at(
            text,
            start,
            *at,
            "the number is too large",
        )),
    }
}

fn quoted(
    text: &str,
    chars: &[char],
    at: &mut usize,
    quote: char,
    what: &str,
) -> Result<String, FormulaError> {
    let start = *at;
    *at += 1;
    let mut out = String::new();
    while let Some(&c) = chars.get(*at) {
        *at += 1;
        if c == quote {
            return Ok(out);
        }
        if c != '\\' {
            out.push(c);
            continue;
        }
        let escaped = chars.get(*at).copied();
        *at += 1;
        match escaped {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some(c @ ('\\' | '"' | '\'' | '`')) => out.push(c),
            _ => {
                return Err(FormulaError::at(
                    text,
                    *at - 2,
                    *at,
                    "unknown escape in a quoted text",
                )
                .accepting("Write \\\\ for a backslash."));
            }
        }
    }
    Err(FormulaError::at(
        text,
        start,
        start + 1,
        format!("this {what} is never closed"),
    )
    .accepting(format!("Add the closing {quote} .")))
}

fn symbol(text: &str, chars: &[char], at: &mut usize) -> Result<Token, FormulaError> {
    let start = *at;
    let found = SYMBOLS.iter().find(|s| {
        s.chars()
            .enumerate()
            .all(|(i, c)| chars.get(start + i) == Some(&c))
    });
    if let Some(symbol) = found {
        *at += symbol.chars().count();
        return match *symbol {
            "<-" => Err(FormulaError::at(text, start, *at, "`<-` assigns in R")
                .accepting("To compare with a negative number write a space: x < -1.")),
            "**" => Ok(Token::Symbol("^")),
            "&&" => Ok(Token::Symbol("&")),
            "||" => Ok(Token::Symbol("|")),
            other => Ok(Token::Symbol(other)),
        };
    }
    let c = chars.get(start).copied().unwrap_or(' ');
    // Named arguments (`ref = "a"`) use a single `=`.
    if c == '=' {
        *at += 1;
        return Ok(Token::Symbol("="));
    }
    let fix = match c {
        '\u{201c}' | '\u{201d}' | '\u{201e}' => "Use plain double quotes: \"text\".",
        '\u{2018}' | '\u{2019}' => "Use plain single quotes: 'text'.",
        '\u{2212}' | '\u{2013}' | '\u{2014}' => "Use the minus sign of the keyboard: -.",
        '\u{2264}' => "Write <=.",
        '\u{2265}' => "Write >=.",
        '\u{2260}' => "Write !=.",
        '\u{d7}' | '\u{b7}' => "Write * for products (inside I() in a formula).",
        '%' => "The only operator of this form is %in%.",
        '_' => "Names that start with _ are written in backticks, for example `_x`.",
        '$' | '[' | '{' | '@' => "Columns are named directly, and only row-wise functions exist.",
        _ => "Names with special characters are written in backticks.",
    };
    Err(FormulaError::at(
        text,
        start,
        start + 1,
        format!("unexpected character {c:?}"),
    )
    .accepting(fix))
}
