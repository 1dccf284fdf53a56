//! Tokens to a tree, with R's operator precedence.
//!
//! From loose to tight: `~`, `|`, `&`, `!`, comparisons, `+ -`, `* /`, `%in%`, `:`, unary `+ -`, `^`.
//! `and`, `or`, `not` stand for `&`, `|`, `!`. The tree's depth is limited, so that everything that
//! walks it is total; long sums are one node.

use super::error::FormulaError;
use super::lexer::{Lexeme, Token, lex};

const DEEPEST: u16 = 120;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) depth: u16,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Number(f64),
    Text(String),
    Truth(bool),
    Name(String),
    Dot,
    /// First operand, then sign (`true` for plus) and operand.
    Sum(Box<Node>, Vec<(bool, Node)>),
    Binary(Operator, Box<Node>, Box<Node>),
    Negate(Box<Node>),
    Plus(Box<Node>),
    Not(Box<Node>),
    Call(String, Vec<(Option<String>, Node)>),
    Paren(Box<Node>),
    Formula(Option<Box<Node>>, Box<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Multiply,
    Divide,
    Power,
    Colon,
    In,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    And,
    Or,
}

/// Reads a whole text.
pub(super) fn parse(text: &str) -> Result<Node, FormulaError> {
    let mut parser = Parser {
        text,
        lexemes: lex(text)?,
        at: 0,
        nesting: 0,
    };
    if parser.peek() == &Token::End {
        return Err(FormulaError::at(text, 0, 0, "the text is empty")
            .accepting("Write for example income ~ age."));
    }
    let node = parser.formula()?;
    match parser.peek() {
        Token::End => Ok(node),
        _ => Err(parser.unexpected("the end")),
    }
}

/// A tree without `~`.
pub(super) fn parse_expression(text: &str) -> Result<Node, FormulaError> {
    let node = parse(text)?;
    if let Kind::Formula(..) = node.kind {
        return Err(
            FormulaError::at(text, node.start, node.end, "`~` belongs to models only")
                .accepting("Write a single expression."),
        );
    }
    Ok(node)
}

struct Parser<'a> {
    text: &'a str,
    lexemes: Vec<Lexeme>,
    at: usize,
    nesting: u16,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.lexemes.get(self.at).map_or(&Token::End, |l| &l.token)
    }

    fn place(&self) -> (usize, usize) {
        match self.lexemes.get(self.at) {
            Some(l) => (l.start, l.end),
            None => (usize::MAX, usize::MAX),
        }
    }

    fn step(&mut self) {
        self.at += 1;
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(s) if *s == symbol);
        if found {
            self.step();
        }
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Name(n, false) if n == word);
        if found {
            self.step();
        }
        found
    }

    fn unexpected(&self, wanted: &str) -> FormulaError {
        let (start, end) = self.place();
        let found = match self.peek() {
            Token::Number(_) => "a number".to_owned(),
            Token::Text(_) => "a quoted text".to_owned(),
            Token::Name(n, _) => format!("`{n}`"),
            Token::Symbol(s) => format!("`{s}`"),
            Token::End => "the end".to_owned(),
        };
        let error = FormulaError::at(
            self.text,
            start,
            end,
            format!("expected {wanted}, found {found}"),
        );
        match self.peek() {
            Token::Symbol("=") => error.accepting("To compare write ==."),
            Token::Symbol("~") => error.accepting("A formula has one `~`."),
            Token::Name(..) | Token::Number(_) | Token::Text(_) => {
                error.accepting("Is an operator missing here, such as `+`?")
            }
            _ => error,
        }
    }

    fn node(&self, kind: Kind, start: usize, end: usize) -> Result<Node, FormulaError> {
        let below = match &kind {
            Kind::Number(_) | Kind::Text(_) | Kind::Truth(_) | Kind::Name(_) | Kind::Dot => 0,
            Kind::Sum(first, rest) => rest
                .iter()
                .map(|(_, n)| n.depth)
                .fold(first.depth, u16::max),
            Kind::Binary(_, a, b) => a.depth.max(b.depth),
            Kind::Negate(a) | Kind::Plus(a) | Kind::Not(a) | Kind::Paren(a) => a.depth,
            Kind::Call(_, arguments) => arguments.iter().map(|a| a.1.depth).max().unwrap_or(0),
            Kind::Formula(a, b) => a.as_ref().map_or(0, |a| a.depth).max(b.depth),
        };
        let depth = below.saturating_add(1);
        if depth > DEEPEST {
            return Err(self.too_deep(start, end));
        }
        Ok(Node {
            kind,
            start,
            end,
            depth,
        })
    }

    fn too_deep(&self, start: usize, end: usize) -> FormulaError {
        FormulaError::at(
            self.text,
            start,
            end,
            format!("nested more than {DEEPEST} levels deep"),
        )
        .accepting("Write it with fewer parentheses or operators.")
    }

    fn binary(&self, op: Operator, a: Node, b: Node) -> Result<Node, FormulaError> {
        let (start, end) = (a.start, b.end);
        self.node(Kind::Binary(op, Box::new(a), Box::new(b)), start, end)
    }

    fn formula(&mut self) -> Result<Node, FormulaError> {
        let (start, _) = self.place();
        if self.symbol("~") {
            let right = self.or()?;
            let end = right.end;
            return self.node(Kind::Formula(None, Box::new(right)), start, end);
        }
        let left = self.or()?;
        if !self.symbol("~") {
            return Ok(left);
        }
        let right = self.or()?;
        let end = right.end;
        self.node(
            Kind::Formula(Some(Box::new(left)), Box::new(right)),
            start,
            end,
        )
    }

    fn or(&mut self) -> Result<Node, FormulaError> {
        let mut left = self.and()?;
        while self.symbol("|") || self.word("or") {
            let right = self.and()?;
            left = self.binary(Operator::Or, left, right)?;
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Node, FormulaError> {
        let mut left = self.not()?;
        while self.symbol("&") || self.word("and") {
            let right = self.not()?;
            left = self.binary(Operator::And, left, right)?;
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Node, FormulaError> {
        let (start, end) = self.place();
        if self.symbol("!") || self.word("not") {
            self.enter(start, end)?;
            let inner = self.not()?;
            self.nesting -= 1;
            let end = inner.end;
            return self.node(Kind::Not(Box::new(inner)), start, end);
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Node, FormulaError> {
        const COMPARISONS: [(&str, Operator); 6] = [
            ("<", Operator::Less),
            ("<=", Operator::LessEqual),
            (">", Operator::Greater),
            (">=", Operator::GreaterEqual),
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
        ];
        let left = self.sum()?;
        let Some((_, op)) = COMPARISONS.into_iter().find(|c| self.symbol(c.0)) else {
            return Ok(left);
        };
        let right = self.sum()?;
        if COMPARISONS
            .into_iter()
            .any(|c| matches!(self.peek(), Token::Symbol(s) if *s == c.0))
        {
            let (start, end) = self.place();
            return Err(
                FormulaError::at(self.text, start, end, "comparisons cannot be chained")
                    .accepting("Write for example 18 <= age & age < 65."),
            );
        }
        self.binary(op, left, right)
    }

    fn sum(&mut self) -> Result<Node, FormulaError> {
        let first = self.product()?;
        let mut rest = Vec::new();
        loop {
            let plus = if self.symbol("+") {
                true
            } else if self.symbol("-") {
                false
            } else {
                break;
            };
            rest.push((plus, self.product()?));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        let (start, end) = (first.start, rest.last().map_or(first.end, |r| r.1.end));
        self.node(Kind::Sum(Box::new(first), rest), start, end)
    }

    fn product(&mut self) -> Result<Node, FormulaError> {
        let mut left = self.within()?;
        loop {
            let op = if self.symbol("*") {
                Operator::Multiply
            } else if self.symbol("/") {
                Operator::Divide
            } else {
                return Ok(left);
            };
            let right = self.within()?;
            left = self.binary(op, left, right)?;
        }
    }

    fn within(&mut self) -> Result<Node, FormulaError> {
        let mut left = self.colon()?;
        while self.symbol("%in%") {
            let right = self.colon()?;
            left = self.binary(Operator::In, left, right)?;
        }
        Ok(left)
    }

    fn colon(&mut self) -> Result<Node, FormulaError> {
        let mut left = self.unary()?;
        while self.symbol(":") {
            let right = self.unary()?;
            left = self.binary(Operator::Colon, left, right)?;
        }
        Ok(left)
    }

    fn enter(&mut self, start: usize, end: usize) -> Result<(), FormulaError> {
        self.nesting += 1;
        if self.nesting > DEEPEST {
            Err(self.too_deep(start, end))
        } else {
            Ok(())
        }
    }

    fn unary(&mut self) -> Result<Node, FormulaError> {
        let (start, end) = self.place();
        let negative = self.symbol("-");
        if negative || self.symbol("+") {
            self.enter(start, end)?;
            let inner = self.unary()?;
            self.nesting -= 1;
            let end = inner.end;
            let inner = Box::new(inner);
            let kind = if negative {
                Kind::Negate(inner)
            } else {
                Kind::Plus(inner)
            };
            return self.node(kind, start, end);
        }
        self.power()
    }

    fn power(&mut self) -> Result<Node, FormulaError> {
        let base = self.primary()?;
        let (start, end) = self.place();
        if !self.symbol("^") {
            return Ok(base);
        }
        // Right associative, and the exponent may carry a sign.
        self.enter(start, end)?;
        let exponent = self.unary()?;
        self.nesting -= 1;
        self.binary(Operator::Power, base, exponent)
    }

    fn primary(&mut self) -> Result<Node, FormulaError> {
        let (start, end) = self.place();
        let token = self.peek().clone();
        match token {
            Token::Number(x) => {
                self.step();
                self.node(Kind::Number(x), start, end)
            }
            Token::Text(t) => {
                self.step();
                self.node(Kind::Text(t), start, end)
            }
            Token::Name(name, quoted) => {
                if !quoted && matches!(name.as_str(), "and" | "or" | "not") {
                    return Err(self.unexpected("a name, a number or a parenthesis"));
                }
                self.step();
                if matches!(self.peek(), Token::Symbol("(")) {
                    return self.call(name, start);
                }
                let kind = match (name.as_str(), quoted) {
                    (".", false) => Kind::Dot,
                    ("TRUE", false) => Kind::Truth(true),
                    ("FALSE", false) => Kind::Truth(false),
                    _ => Kind::Name(name),
                };
                self.node(kind, start, end)
            }
            Token::Symbol("(") => {
                self.step();
                self.enter(start, end)?;
                let inner = self.or()?;
                self.nesting -= 1;
                let end = self.close(start)?;
                self.node(Kind::Paren(Box::new(inner)), start, end)
            }
            _ => Err(self.unexpected("a name, a number or a parenthesis")),
        }
    }

    fn close(&mut self, open: usize) -> Result<usize, FormulaError> {
        let (_, end) = self.place();
        if self.symbol(")") {
            return Ok(end);
        }
        if self.peek() == &Token::End {
            return Err(FormulaError::at(
                self.text,
                open,
                open + 1,
                "this parenthesis is never closed",
            )
            .accepting("Add the closing `)`."));
        }
        Err(self.unexpected("`)`"))
    }

    fn call(&mut self, name: String, start: usize) -> Result<Node, FormulaError> {
        let (open, end) = self.place();
        self.step();
        self.enter(open, end)?;
        let mut arguments = Vec::new();
        if !matches!(self.peek(), Token::Symbol(")")) {
            loop {
                let named = match (self.peek(), self.lexemes.get(self.at + 1)) {
                    (
                        Token::Name(n, _),
                        Some(Lexeme {
                            token: Token::Symbol("="),
                            ..
                        }),
                    ) => Some(n.clone()),
                    _ => None,
                };
                if named.is_some() {
                    self.step();
                    self.step();
                }
                arguments.push((named, self.or()?));
                if !self.symbol(",") {
                    break;
                }
            }
        }
        self.nesting -= 1;
        let end = self.close(open)?;
        self.node(Kind::Call(name, arguments), start, end)
    }
}
