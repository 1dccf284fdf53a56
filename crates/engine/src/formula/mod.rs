//! Formulas and expressions: R's model language over a declared schema.
//!
//! [`compile`] turns `income ~ age + C(education)` into a [`Design`]: one expression per column of the
//! model matrix, named, ordered and coded as R does (treatment coding, declared level order, R's rules
//! of marginality). [`expression`] and [`condition`] read the `of` and `where` keys of plans. Nothing
//! here looks at data: levels, bounds and therefore the design are public.

mod error;

pub use error::FormulaError;
use reticent_mechanisms::program::Expr;
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
pub fn compile(formula: &str, schema: &Schema, positive: Option<&str>, want: Family) -> Result<Design, FormulaError> {
    let _ = (schema, positive, want);
    Err(FormulaError::at(formula, 0, 0, "not implemented"))
}

/// Reads a numeric expression such as `log1p(hours)`.
pub fn expression(text: &str, schema: &Schema) -> Result<Expr, FormulaError> {
    let _ = schema;
    Err(FormulaError::at(text, 0, 0, "not implemented"))
}

/// Reads a condition such as `hours > 0 & income != ">50K"`.
pub fn condition(text: &str, schema: &Schema) -> Result<Expr, FormulaError> {
    let _ = schema;
    Err(FormulaError::at(text, 0, 0, "not implemented"))
}

/// The canonical spelling of a formula or expression: as R's `deparse` prints it.
pub fn canonical(text: &str) -> Result<String, FormulaError> {
    Ok(text.to_owned())
}

/// A column name as formulas write it: in backticks unless it is a plain name.
pub fn quote_name(name: &str) -> String {
    name.to_owned()
}
