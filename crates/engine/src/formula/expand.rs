//! The right side of a formula to a list of terms, as R's `terms.formula` does it.
//!
//! A term is a set of variables. `+` unites, `:` joins, `a*b` = `a + b + a:b`, `(…)^n` crosses n times,
//! `a/b` = `a + a:b`, `-` removes, `0`, `1` switch the intercept, `.` is every column that the outcome
//! does not use. Terms are ordered by degree, equal degrees as written.
//!
//! Two departures from R, both refusals where R would quietly drop something: `x^2` outside `I()` (R reads
//! it as `x`), and the outcome as a term.

use std::collections::HashSet;

use super::deparse::deparse;
use super::error::FormulaError;
use super::parser::{Kind, Node, Operator};

/// More terms than any model that can be fitted has.
const MOST_TERMS: usize = 20_000;

/// A set of variables, in order of first appearance.
pub(super) type Term = Vec<u16>;

/// Variables, terms and intercept of a right side.
pub(super) struct Terms {
    /// One tree per variable, in order of first appearance.
    pub(super) variables: Vec<Node>,
    /// Their spelling.
    pub(super) names: Vec<String>,
    pub(super) list: Vec<Term>,
    pub(super) intercept: bool,
}

/// Expands a right side; `columns` is what `.` stands for, `outcome` the spelling of the left side.
pub(super) fn expand(
    text: &str,
    right: &Node,
    columns: &[String],
    outcome: Option<&str>,
) -> Result<Terms, FormulaError> {
    let mut state = State {
        text,
        columns,
        outcome,
        names: Vec::new(),
        variables: Vec::new(),
        intercept: true,
        adding: true,
    };
    let mut terms = state.encode(right)?;
    terms.sort_by_key(Vec::len);
    Ok(Terms {
        variables: state.variables,
        names: state.names,
        list: terms,
        intercept: state.intercept,
    })
}

struct State<'a> {
    text: &'a str,
    columns: &'a [String],
    outcome: Option<&'a str>,
    names: Vec<String>,
    variables: Vec<Node>,
    intercept: bool,
    /// `false` while inside an odd number of removals, where `1` and `0` change their roles.
    adding: bool,
}

impl State<'_> {
    fn error(&self, node: &Node, message: impl Into<String>) -> FormulaError {
        FormulaError::at(self.text, node.start, node.end, message)
    }

    #[allow(
        clippy::float_cmp,
        reason = "literals are compared with 0 and 1 exactly"
    )]
    fn encode(&mut self, node: &Node) -> Result<Vec<Term>, FormulaError> {
        match &node.kind {
            Kind::Number(x) if *x == 1.0 => {
                self.intercept = self.adding;
                Ok(Vec::new())
            }
            Kind::Number(x) if *x == 0.0 => {
                self.intercept = !self.adding;
                Ok(Vec::new())
            }
            Kind::Number(_) => Err(self.error(node, "a number other than 0 and 1 is no term").accepting(
                "1 keeps and 0 (or -1) removes the intercept; arithmetic goes inside I(), for example I(2 * x).",
            )),
            Kind::Text(_) => Err(self
                .error(node, "a quoted text is no term")
                .accepting("Column names are written without quotes or in backticks.")),
            Kind::Truth(_) => Err(self.error(node, "TRUE and FALSE are no terms")),
            Kind::Dot => self.dot(node),
            Kind::Paren(inner) | Kind::Plus(inner) => self.encode(inner),
            Kind::Negate(inner) => {
                // Removing from nothing leaves nothing, but `-1` still switches the intercept.
                self.flipped(inner)?;
                Ok(Vec::new())
            }
            Kind::Sum(first, rest) => self.sum(first, rest),
            Kind::Binary(Operator::Colon, a, b) => {
                let (a, b) = self.pair(a, b)?;
                self.join(node, &a, &b)
            }
            Kind::Binary(Operator::Multiply, a, b) => {
                let (a, b) = self.pair(a, b)?;
                let both = self.join(node, &a, &b)?;
                Ok(unite([a, b, both]))
            }
            Kind::Binary(Operator::Divide, a, b) => {
                let (a, b) = self.pair(a, b)?;
                let all: Term = union(&a.concat(), &[]);
                let nested = b.iter().map(|t| union(&all, t)).collect();
                Ok(unite([a, nested]))
            }
            Kind::Binary(Operator::Power, a, b) => self.power(node, a, b),
            Kind::Binary(Operator::In, ..) => Err(self
                .error(node, "%in% between terms is not supported")
                .accepting("Write a:b for nesting, or I(x %in% c(\"a\", \"b\")) for a condition.")),
            Kind::Call(f, _) if f == "offset" => Err(self
                .error(node, "offset() is not supported")
                .accepting("Subtract a known part from the outcome instead.")),
            Kind::Formula(..) => Err(self.error(node, "a formula has one `~`")),
            _ => Ok(vec![vec![self.variable(node)?]]),
        }
    }

    fn flipped(&mut self, node: &Node) -> Result<Vec<Term>, FormulaError> {
        self.adding = !self.adding;
        let terms = self.encode(node);
        self.adding = !self.adding;
        terms
    }

    fn sum(&mut self, first: &Node, rest: &[(bool, Node)]) -> Result<Vec<Term>, FormulaError> {
        let mut terms = self.encode(first)?;
        let mut present: HashSet<Term> = terms.iter().cloned().collect();
        for (plus, operand) in rest {
            if *plus {
                for term in self.encode(operand)? {
                    if present.insert(term.clone()) {
                        terms.push(term);
                    }
                }
            } else {
                let gone: HashSet<Term> = self.flipped(operand)?.into_iter().collect();
                if !gone.is_empty() {
                    terms.retain(|t| !gone.contains(t));
                    present.retain(|t| !gone.contains(t));
                }
            }
            self.within_limit(operand, terms.len())?;
        }
        Ok(terms)
    }

    fn within_limit(&self, node: &Node, count: usize) -> Result<(), FormulaError> {
        if count <= MOST_TERMS {
            return Ok(());
        }
        Err(self
            .error(
                node,
                format!("the formula has more than {MOST_TERMS} terms"),
            )
            .accepting("Name fewer interactions."))
    }

    /// Both sides of an operator that crosses terms; a bare number there is almost surely arithmetic.
    fn pair(&mut self, a: &Node, b: &Node) -> Result<(Vec<Term>, Vec<Term>), FormulaError> {
        for side in [a, b] {
            if matches!(side.kind, Kind::Number(_)) {
                return Err(self.error(side, "a number cannot be crossed with a term").accepting(
                    "In a formula * : / cross terms; arithmetic goes inside I(), for example I(x / 10).",
                ));
            }
        }
        Ok((self.encode(a)?, self.encode(b)?))
    }

    fn join(&self, node: &Node, a: &[Term], b: &[Term]) -> Result<Vec<Term>, FormulaError> {
        self.within_limit(node, a.len().saturating_mul(b.len()))?;
        let joined = a
            .iter()
            .flat_map(|s| b.iter().map(move |t| union(s, t)))
            .collect();
        Ok(unite([joined]))
    }

    fn power(&mut self, node: &Node, a: &Node, b: &Node) -> Result<Vec<Term>, FormulaError> {
        let fix = "For a power of a number write I(x^2); (a + b)^2 crosses terms.";
        let times = match &b.kind {
            Kind::Number(x) if x.fract() == 0.0 && (1.0..=100.0).contains(x) => *x,
            _ => {
                return Err(self
                    .error(
                        b,
                        "terms are crossed a whole number of times, at least once",
                    )
                    .accepting(fix));
            }
        };
        let base = self.encode(a)?;
        if base.len() < 2 {
            return Err(self
                .error(
                    node,
                    "in a formula ^ crosses terms, so this would stand for the bare variable",
                )
                .accepting(fix));
        }
        let mut terms = base.clone();
        let mut done = 1.0;
        while done < times {
            // R crosses the whole list each time; products of members of the list include the list.
            let crossed = self.join(node, &terms, &base)?;
            let next = unite([crossed]);
            let next = unite([terms.clone(), next]);
            if next.len() == terms.len() {
                break;
            }
            terms = next;
            self.within_limit(node, terms.len())?;
            done += 1.0;
        }
        Ok(terms)
    }

    fn dot(&mut self, node: &Node) -> Result<Vec<Term>, FormulaError> {
        let columns = self.columns;
        if columns.is_empty() {
            return Err(self.error(node, "`.` stands for no column here"));
        }
        columns
            .iter()
            .map(|name| {
                let kind = Kind::Name(name.clone());
                Ok(vec![self.variable(&Node {
                    kind,
                    ..node.clone()
                })?])
            })
            .collect()
    }

    fn variable(&mut self, node: &Node) -> Result<u16, FormulaError> {
        let name = deparse(node);
        if self.outcome == Some(name.as_str()) {
            return Err(self
                .error(
                    node,
                    format!("{name} is the outcome and cannot also be a term"),
                )
                .accepting("Remove it from the right side."));
        }
        let found = self.names.iter().position(|n| *n == name);
        let index = found.unwrap_or(self.names.len());
        if found.is_none() {
            self.within_limit(node, index)?;
            self.names.push(name);
            self.variables.push(node.clone());
        }
        u16::try_from(index).map_err(|_| self.error(node, "too many variables"))
    }
}

/// The union of two sorted sets.
fn union(a: &[u16], b: &[u16]) -> Term {
    let mut out: Term = a.iter().chain(b).copied().collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// Lists one after the other, repeats removed.
fn unite<const N: usize>(lists: [Vec<Term>; N]) -> Vec<Term> {
    let mut present = HashSet::new();
    lists
        .into_iter()
        .flatten()
        .filter(|t| present.insert(t.clone()))
        .collect()
}
