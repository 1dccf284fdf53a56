//! Formulas and expressions: R's model language over a declared schema.
//!
//! [`compile`] turns `income ~ age + C(education)` into a [`Design`]: one expression per column of the
//! model matrix, named, ordered and coded as R does (treatment coding, declared level order, R's rules
//! of marginality). [`expression`] and [`condition`] read the `of` and `where` keys of plans. Nothing
//! here looks at data: levels, bounds and therefore the design are public.

mod deparse;
mod design;
mod error;
mod expand;
mod lexer;
mod parser;
mod values;

pub use error::FormulaError;
use reticent_mechanisms::program::{Expr, Scope};
use reticent_mechanisms::rows::Schema;

/// What a formula is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// A two-valued outcome.
    Logistic,
    /// A numeric outcome.
    Linear,
}

/// A compiled formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// The formula in canonical spelling.
    pub formula: String,
    /// Whether there is an intercept.
    pub intercept: bool,
    /// The columns of the model matrix without the intercept.
    pub terms: Vec<DesignTerm>,
    /// The outcome.
    pub response: Response,
}

/// One column of the model matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct DesignTerm {
    /// Name as R prints it.
    pub name: String,
    /// Its value, on the user's scale; products of level indicators where factors are involved.
    pub expr: Expr,
}

/// The outcome of a model.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// A number.
    Numeric {
        /// Name as R prints it.
        name: String,
        /// Its value.
        expr: Expr,
    },
    /// One of two values.
    Binary {
        /// Name as R prints it.
        name: String,
        /// The column, unless the outcome is a condition on several.
        column: Option<usize>,
        /// Index into `levels` of the value that counts as 1.
        positive: u32,
        /// The values; all but the positive one count as 0.
        levels: Vec<String>,
        /// 1 or 0.
        expr: Expr,
    },
}

impl Response {
    /// Name as R prints it.
    pub fn name(&self) -> &str {
        match self {
            Self::Numeric { name, .. } | Self::Binary { name, .. } => name,
        }
    }

    /// The expression: a number, or 1 and 0.
    pub fn expr(&self) -> &Expr {
        match self {
            Self::Numeric { expr, .. } | Self::Binary { expr, .. } => expr,
        }
    }
}

/// Compiles a formula over a schema.
///
/// Whether every value has finite public bounds may depend on the plan's `where` condition; see
/// [`compile_within`].
pub fn compile(
    formula: &str,
    schema: &Schema,
    positive: Option<&str>,
    want: Family,
) -> Result<Design, FormulaError> {
    design::compile(formula, schema, &design::Bounds::Unchecked, positive, want)
}

/// Compiles a formula and checks that every value has finite public bounds on records that meet the
/// filter: `log(income)` needs `income > 0`.
pub fn compile_within(
    formula: &str,
    schema: &Schema,
    filter: Option<&Expr>,
    positive: Option<&str>,
    want: Family,
) -> Result<Design, FormulaError> {
    design::compile(
        formula,
        schema,
        &design::Bounds::Within(filter),
        positive,
        want,
    )
}

/// Reads a numeric expression such as `log1p(hours)`; a condition counts as 1 and 0.
pub fn expression(text: &str, schema: &Schema) -> Result<Expr, FormulaError> {
    let node = parser::parse_expression(text)?;
    values::Reader { text, schema }.number(&node)
}

/// Reads a numeric expression and checks that it has finite public bounds on records that meet the
/// filter.
pub fn expression_within(
    text: &str,
    schema: &Schema,
    filter: Option<&Expr>,
) -> Result<Expr, FormulaError> {
    let expr = expression(text, schema)?;
    bounded(text, schema, filter, &expr)?;
    Ok(expr)
}

/// Reads a condition such as `hours > 0 & income != ">50K"`.
pub fn condition(text: &str, schema: &Schema) -> Result<Expr, FormulaError> {
    let node = parser::parse_expression(text)?;
    let expr = values::Reader { text, schema }.truth(&node)?;
    bounded(text, schema, None, &expr)?;
    Ok(expr)
}

fn bounded(
    text: &str,
    schema: &Schema,
    filter: Option<&Expr>,
    expr: &Expr,
) -> Result<(), FormulaError> {
    Scope::new(schema, filter)
        .interval(expr)
        .map(drop)
        .map_err(|e| FormulaError::at(text, 0, text.chars().count(), e.to_string()))
}

/// The canonical spelling of a formula or expression: as R's `deparse` prints it.
pub fn canonical(text: &str) -> Result<String, FormulaError> {
    parser::parse(text).map(|node| deparse::deparse(&node))
}

/// A column name as formulas write it: in backticks unless it is a plain name.
pub fn quote_name(name: &str) -> String {
    deparse::name(name)
}

#[cfg(test)]
mod tests;
