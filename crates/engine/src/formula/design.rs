//! Terms to columns of a model matrix, named and coded as R's `model.matrix` does with treatment coding.
//!
//! In a term, a factor is coded by contrasts (all levels but the first) if an earlier term contains the
//! term without that factor, else by all its levels; a factor alone counts as following the intercept.
//! Without an intercept the first factor of the first term that has one is coded by all its levels. The
//! first factor of a product varies fastest.

use reticent_mechanisms::program::{Comparison, Expr, Scope};
use reticent_mechanisms::rows::{Kind as ColumnKind, Schema};

use super::deparse::deparse;
use super::error::FormulaError;
use super::expand::{Term, Terms, expand};
use super::parser::{Kind, Node, parse};
use super::values::{Reader, Value};
use super::{Design, DesignTerm, Family, Response};
use crate::suggest;

/// Columns of the largest design.
const MOST_COLUMNS: usize = 10_000;
/// Values of an integer column that may serve as levels.
const MOST_INTEGER_LEVELS: u64 = 1000;

/// A variable of the right side.
enum Variable {
    Number(Expr),
    /// Label and indicator of every level.
    Factor(Vec<(String, Expr)>),
}

/// Whether values must have finite public bounds.
pub(super) enum Bounds<'a> {
    /// Not looked at.
    Unchecked,
    /// On records that meet this filter.
    Within(Option<&'a Expr>),
}

/// Compiles, and looks at bounds as asked.
pub(super) fn compile(
    text: &str,
    schema: &Schema,
    bounds: &Bounds<'_>,
    positive: Option<&str>,
    want: Family,
) -> Result<Design, FormulaError> {
    let root = parse(text)?;
    let fix = "Write outcome ~ terms, for example income ~ age + C(education).";
    let Kind::Formula(left, right) = &root.kind else {
        return Err(
            FormulaError::at(text, root.start, root.end, "a model needs `~`").accepting(fix),
        );
    };
    let Some(left) = left else {
        return Err(FormulaError::at(text, 0, 1, "the outcome is missing").accepting(fix));
    };
    let reader = Reader { text, schema };
    let response = response(&reader, left, positive, want)?;
    let outcome = deparse(left);
    let columns = dot_columns(schema, left);
    let terms = expand(text, right, &columns, Some(&outcome))?;
    let variables = terms
        .variables
        .iter()
        .map(|v| variable(&reader, v))
        .collect::<Result<Vec<_>, _>>()?;
    let columns = design_columns(text, right, &terms, &variables)?;
    if columns.is_empty() && !terms.intercept {
        return Err(
            FormulaError::at(text, right.start, right.end, "the model has no term at all")
                .accepting(fix),
        );
    }
    if let Bounds::Within(filter) = bounds {
        let scope = Scope::new(schema, *filter);
        let check = |node: &Node, expr: &Expr| {
            scope
                .interval(expr)
                .map(drop)
                .map_err(|e| FormulaError::at(text, node.start, node.end, e.to_string()))
        };
        check(left, response.expr())?;
        for (node, variable) in terms.variables.iter().zip(&variables) {
            if let Variable::Number(expr) = variable {
                check(node, expr)?;
            }
        }
        for column in &columns {
            check(right, &column.expr)?;
        }
    }
    Ok(Design {
        formula: deparse(&root),
        intercept: terms.intercept,
        terms: columns,
        response,
    })
}

/// What `.` stands for: every column but identifiers and those the outcome uses.
fn dot_columns(schema: &Schema, left: &Node) -> Vec<String> {
    let mut used = Vec::new();
    names(left, &mut used);
    schema
        .columns
        .iter()
        .filter(|c| c.kind != ColumnKind::Id && !used.contains(&c.name))
        .map(|c| c.name.clone())
        .collect()
}

fn names(node: &Node, out: &mut Vec<String>) {
    match &node.kind {
        Kind::Name(n) => out.push(n.clone()),
        Kind::Sum(first, rest) => {
            names(first, out);
            for (_, operand) in rest {
                names(operand, out);
            }
        }
        Kind::Binary(_, a, b) => {
            names(a, out);
            names(b, out);
        }
        Kind::Negate(a) | Kind::Plus(a) | Kind::Not(a) | Kind::Paren(a) => names(a, out),
        Kind::Call(_, arguments) => {
            for (_, argument) in arguments {
                names(argument, out);
            }
        }
        Kind::Formula(a, b) => {
            if let Some(a) = a {
                names(a, out);
            }
            names(b, out);
        }
        Kind::Number(_) | Kind::Text(_) | Kind::Truth(_) | Kind::Dot => {}
    }
}

/// A variable of the right side: a number, or a factor with its levels.
fn variable(reader: &Reader<'_>, node: &Node) -> Result<Variable, FormulaError> {
    if let Kind::Call(function, arguments) = &node.kind
        && matches!(function.as_str(), "C" | "factor" | "relevel")
    {
        return factor_call(reader, node, function, arguments);
    }
    match reader.value(node)? {
        Value::Number(e) => Ok(Variable::Number(e)),
        Value::Truth(e) => Ok(truth_factor(e)),
        Value::Level(column) => level_factor(reader, node, column),
        Value::Text(_) => Err(reader.error(node, "a quoted text is no term")),
    }
}

/// R treats a condition as a factor with the levels FALSE and TRUE.
fn truth_factor(e: Expr) -> Variable {
    Variable::Factor(vec![
        ("FALSE".to_owned(), Expr::Not(Box::new(e.clone()))),
        ("TRUE".to_owned(), e),
    ])
}

fn level_factor(reader: &Reader<'_>, node: &Node, column: usize) -> Result<Variable, FormulaError> {
    let levels = reader.levels(column);
    if levels.len() < 2 {
        return Err(reader
            .error(node, "a factor needs at least two levels")
            .accepting("Remove it: it is the same for every record."));
    }
    let boolean = reader.is_boolean(column);
    let factor = (0u32..).zip(levels).map(|(level, name)| {
        let label = if boolean {
            name.to_uppercase()
        } else {
            name.clone()
        };
        (label, Expr::Level { column, level })
    });
    Ok(Variable::Factor(factor.collect()))
}

fn factor_call(
    reader: &Reader<'_>,
    node: &Node,
    function: &str,
    arguments: &[(Option<String>, Node)],
) -> Result<Variable, FormulaError> {
    let (argument, reference) = match (function, arguments) {
        ("C" | "factor", [(None, argument)]) => (argument, None),
        ("relevel", [(None, argument), (name, reference)])
            if name.as_deref().is_none_or(|n| n == "ref") =>
        {
            (argument, Some(reference))
        }
        ("relevel", _) => {
            return Err(reader
                .error(node, "relevel() takes a column and a level")
                .accepting("Write relevel(x, ref = \"a\")."));
        }
        _ => {
            return Err(reader.error(node, format!("{function}() takes one argument here")).accepting(
                "Coding is by treatment, in the declared order of levels; relevel(x, ref = \"a\") changes the reference.",
            ));
        }
    };
    let factor = match reader.value(argument)? {
        Value::Level(column) => level_factor(reader, argument, column)?,
        Value::Truth(e) => truth_factor(e),
        Value::Number(Expr::Column(column)) => integer_factor(reader, argument, column)?,
        _ => {
            return Err(reader
                .error(argument, format!("{function}() needs a column"))
                .accepting("Write a condition such as I(age > 40) for levels of your own."));
        }
    };
    match (factor, reference) {
        (Variable::Factor(mut levels), Some(reference)) => {
            let wanted = match &reference.kind {
                Kind::Text(t) => t.clone(),
                _ => deparse(reference),
            };
            let Some(at) = levels.iter().position(|l| l.0 == wanted) else {
                let names: Vec<&str> = levels.iter().map(|l| l.0.as_str()).collect();
                return Err(reader
                    .error(reference, format!("{wanted:?} is not a level"))
                    .accepting(suggest::advice(&wanted, &names)));
            };
            let first = levels.remove(at);
            levels.insert(0, first);
            Ok(Variable::Factor(levels))
        }
        (factor, _) => Ok(factor),
    }
}

/// An integer column as a factor: every value within the declared bounds is a level, seen or not.
fn integer_factor(
    reader: &Reader<'_>,
    node: &Node,
    column: usize,
) -> Result<Variable, FormulaError> {
    match reader.schema.columns.get(column).map(|c| &c.kind) {
        Some(ColumnKind::Integer { lower, upper })
            if upper.abs_diff(*lower) < MOST_INTEGER_LEVELS =>
        {
            let levels = (*lower..=*upper).map(|k| {
                #[allow(clippy::cast_precision_loss, reason = "declared bounds are below 2^53")]
                let constant = Expr::Constant(k as f64);
                let is = Expr::Compare(
                    Comparison::Equal,
                    Box::new(Expr::Column(column)),
                    Box::new(constant),
                );
                (k.to_string(), is)
            });
            Ok(Variable::Factor(levels.collect()))
        }
        _ => Err(reader
            .error(
                node,
                "only columns with levels and integer columns of at most 1000 values have levels",
            )
            .accepting("Write a condition such as I(age > 40) for levels of your own.")),
    }
}

fn design_columns(
    text: &str,
    right: &Node,
    terms: &Terms,
    variables: &[Variable],
) -> Result<Vec<DesignTerm>, FormulaError> {
    let is_factor = |v: u16| matches!(variables.get(usize::from(v)), Some(Variable::Factor(_)));
    // The one place where a missing intercept is made up for.
    let full = if terms.intercept {
        None
    } else {
        let first = terms
            .list
            .iter()
            .enumerate()
            .find(|(_, t)| t.iter().any(|v| is_factor(*v)));
        first.and_then(|(i, t)| t.iter().find(|v| is_factor(**v)).map(|v| (i, *v)))
    };
    let mut columns: Vec<DesignTerm> = Vec::new();
    for (index, term) in terms.list.iter().enumerate() {
        let mut pieces: Vec<Vec<(String, Expr)>> = Vec::with_capacity(term.len());
        for &v in term {
            let name = terms.names.get(usize::from(v)).cloned().unwrap_or_default();
            let piece = match variables.get(usize::from(v)) {
                Some(Variable::Number(e)) => vec![(name, e.clone())],
                Some(Variable::Factor(levels)) => {
                    let all = full == Some((index, v)) || !marginal(&terms.list, index, v);
                    let skipped = usize::from(!all);
                    levels
                        .iter()
                        .skip(skipped)
                        .map(|(l, e)| (format!("{name}{l}"), e.clone()))
                        .collect()
                }
                None => Vec::new(),
            };
            pieces.push(piece);
        }
        let size = pieces.iter().fold(1usize, |n, p| n.saturating_mul(p.len()));
        if columns.len().saturating_add(size) > MOST_COLUMNS {
            return Err(FormulaError::at(
                text,
                right.start,
                right.end,
                format!("the design has more than {MOST_COLUMNS} columns"),
            )
            .accepting("Name fewer terms, or columns with fewer levels."));
        }
        columns.extend(product(&pieces));
    }
    Ok(columns)
}

/// Whether an earlier term contains this term without variable `v` (the empty term is the intercept).
fn marginal(terms: &[Term], index: usize, v: u16) -> bool {
    let Some(term) = terms.get(index) else {
        return false;
    };
    if term.len() == 1 {
        return true;
    }
    let rest = || term.iter().filter(|w| **w != v);
    terms
        .iter()
        .take(index)
        .any(|t| rest().all(|w| t.binary_search(w).is_ok()))
}

/// All products of one member of each piece, the first piece varying fastest.
fn product(pieces: &[Vec<(String, Expr)>]) -> Vec<DesignTerm> {
    let mut out: Vec<DesignTerm> = Vec::new();
    for (position, piece) in pieces.iter().enumerate() {
        out = if position == 0 {
            piece
                .iter()
                .map(|(name, expr)| DesignTerm {
                    name: name.clone(),
                    expr: expr.clone(),
                })
                .collect()
        } else {
            piece
                .iter()
                .flat_map(|(name, expr)| {
                    out.iter().map(move |before| DesignTerm {
                        name: format!("{}:{name}", before.name),
                        expr: before.expr.clone().mul(expr.clone()),
                    })
                })
                .collect()
        };
    }
    out
}

fn response(
    reader: &Reader<'_>,
    left: &Node,
    positive: Option<&str>,
    want: Family,
) -> Result<Response, FormulaError> {
    let name = deparse(left);
    let inner = stripped(left);
    if matches!(inner.kind, Kind::Dot) {
        return Err(reader.error(left, "the outcome must be one column or expression"));
    }
    // `C(y)` and `factor(y)` as outcomes mean the column itself.
    let inner = match &inner.kind {
        Kind::Call(f, arguments) if matches!(f.as_str(), "C" | "factor") => {
            match arguments.as_slice() {
                [(None, only)] => only,
                _ => inner,
            }
        }
        _ => inner,
    };
    let value = reader.value(inner)?;
    match want {
        Family::Linear => linear_response(reader, left, name, value, positive),
        Family::Logistic => binary_response(reader, left, name, value, positive),
    }
}

fn stripped(node: &Node) -> &Node {
    match &node.kind {
        Kind::Paren(inner) => stripped(inner),
        Kind::Call(f, arguments) if f == "I" => match arguments.as_slice() {
            [(None, inner)] => stripped(inner),
            _ => node,
        },
        _ => node,
    }
}

fn linear_response(
    reader: &Reader<'_>,
    left: &Node,
    name: String,
    value: Value,
    positive: Option<&str>,
) -> Result<Response, FormulaError> {
    if positive.is_some() {
        return Err(reader
            .error(left, "a linear model has no positive level")
            .accepting("Remove `positive`."));
    }
    match value {
        Value::Number(expr) | Value::Truth(expr) => Ok(Response::Numeric { name, expr }),
        _ => Err(reader
            .error(left, "the outcome of a linear model must be a number")
            .accepting("Use kind = \"logistic\" for an outcome with levels.")),
    }
}

fn binary_response(
    reader: &Reader<'_>,
    left: &Node,
    name: String,
    value: Value,
    positive: Option<&str>,
) -> Result<Response, FormulaError> {
    match value {
        Value::Level(column) => {
            let levels = reader.levels(column).to_vec();
            let level = match positive {
                Some(p) => positive_index(reader, left, &levels, p)?,
                None if levels.len() == 2 => 1,
                None => {
                    return Err(reader
                        .error(left, format!("the outcome has {} levels", levels.len()))
                        .accepting("Name the level that counts as positive: positive = \"…\"."));
                }
            };
            let expr = Expr::Level { column, level };
            Ok(Response::Binary {
                name,
                column: Some(column),
                positive: level,
                levels,
                expr,
            })
        }
        Value::Truth(e) => {
            let levels = vec!["FALSE".to_owned(), "TRUE".to_owned()];
            let level = positive.map_or(Ok(1), |p| positive_index(reader, left, &levels, p))?;
            let expr = if level == 1 {
                e
            } else {
                Expr::Not(Box::new(e))
            };
            Ok(Response::Binary {
                name,
                column: None,
                positive: level,
                levels,
                expr,
            })
        }
        Value::Number(Expr::Column(column)) => {
            integer_response(reader, left, name, column, positive)
        }
        _ => Err(reader
            .error(left, "the outcome of a logistic model must have two values")
            .accepting(format!(
                "Write a condition, for example I({} > 0).",
                deparse(left)
            ))),
    }
}

fn positive_index(
    reader: &Reader<'_>,
    left: &Node,
    levels: &[String],
    positive: &str,
) -> Result<u32, FormulaError> {
    let found = levels
        .iter()
        .position(|l| l == positive)
        .or_else(|| {
            let boolean = levels == crate::dataset::BOOLEAN_LEVELS;
            levels
                .iter()
                .position(|l| boolean && l.eq_ignore_ascii_case(positive))
        })
        .and_then(|i| u32::try_from(i).ok());
    found.ok_or_else(|| {
        let names: Vec<&str> = levels.iter().map(String::as_str).collect();
        reader
            .error(
                left,
                format!("positive = {positive:?} is not a value of the outcome"),
            )
            .accepting(suggest::advice(positive, &names))
    })
}

/// An integer column of few values as a two-valued outcome.
fn integer_response(
    reader: &Reader<'_>,
    left: &Node,
    name: String,
    column: usize,
    positive: Option<&str>,
) -> Result<Response, FormulaError> {
    let Some(ColumnKind::Integer { lower, upper }) =
        reader.schema.columns.get(column).map(|c| &c.kind)
    else {
        return Err(reader
            .error(left, "the outcome of a logistic model must have two values")
            .accepting(format!("Write a condition, for example I({name} > 0).")));
    };
    let few = upper.abs_diff(*lower) < MOST_INTEGER_LEVELS;
    if !few || (positive.is_none() && upper.abs_diff(*lower) != 1) {
        return Err(reader.error(left, format!("the outcome takes the values {lower} to {upper}")).accepting(format!(
            "Write a condition, for example I({name} > {lower}), or name the positive value: positive = \"{upper}\"."
        )));
    }
    let levels: Vec<String> = (*lower..=*upper).map(|k| k.to_string()).collect();
    let level = match positive {
        Some(p) => positive_index(reader, left, &levels, p.trim())?,
        None => 1,
    };
    let expr = if (*lower, *upper, level) == (0, 1, 1) {
        Expr::Column(column)
    } else {
        #[allow(clippy::cast_precision_loss, reason = "declared bounds are below 2^53")]
        let constant = lower.saturating_add(i64::from(level)) as f64;
        Expr::Compare(
            Comparison::Equal,
            Box::new(Expr::Column(column)),
            Box::new(Expr::Constant(constant)),
        )
    };
    Ok(Response::Binary {
        name,
        column: Some(column),
        positive: level,
        levels,
        expr,
    })
}
