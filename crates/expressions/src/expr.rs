//! Expressions: trees that compute one number from one record.

use serde::{Deserialize, Serialize};

use crate::ProgramError;

/// A finite closed interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

impl Interval {
    /// The interval from `lower` to `upper`; refused unless both are finite and in order.
    pub fn new(lower: f64, upper: f64) -> Result<Self, ProgramError> {
        if lower.is_finite() && upper.is_finite() && lower <= upper {
            Ok(Self { lower, upper })
        } else {
            Err(ProgramError::Unbounded { lower, upper })
        }
    }

    /// Largest absolute value.
    pub fn magnitude(self) -> f64 {
        self.lower.abs().max(self.upper.abs())
    }

    pub(crate) fn hull(values: &[f64]) -> Result<Self, ProgramError> {
        let lower = values.iter().copied().fold(f64::INFINITY, f64::min);
        let upper = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if values.iter().any(|v| v.is_nan()) {
            return Err(ProgramError::Unbounded {
                lower: f64::NAN,
                upper: f64::NAN,
            });
        }
        Self::new(lower, upper)
    }
}

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Function {
    /// Natural logarithm; needs a positive argument.
    Log,
    /// log(1 + x); needs x > −1.
    Log1p,
    /// Logarithm to base 2.
    Log2,
    /// Logarithm to base 10.
    Log10,
    /// Square root; needs x ≥ 0.
    Sqrt,
    /// Exponential.
    Exp,
    /// exp(x) − 1.
    Expm1,
    /// 1 / (1 + e^−x).
    Logistic,
    /// Absolute value.
    Abs,
}

/// How two numbers are compared; the answer is 1 or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

impl Comparison {
    /// Whether it holds, taken literally.
    #[inline]
    #[allow(clippy::float_cmp, reason = "what was asked for")]
    pub fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Self::Less => a < b,
            Self::LessEqual => a <= b,
            Self::Greater => a > b,
            Self::GreaterEqual => a >= b,
            Self::Equal => a == b,
            Self::NotEqual => a != b,
        }
    }
}

/// A number computed from one record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Expr {
    /// The same number for every record.
    Constant(f64),
    /// The value of a numeric column, clamped to its declared bounds.
    Column(usize),
    /// The level index of a level column.
    Code(usize),
    /// 1 if the level column has this level, else 0.
    Level {
        /// Schema position of the column.
        column: usize,
        /// Index of the level.
        level: u32,
    },
    /// An earlier term of the same program.
    Term(usize),
    /// Sum.
    Add(Box<Expr>, Box<Expr>),
    /// Difference.
    Sub(Box<Expr>, Box<Expr>),
    /// Product.
    Mul(Box<Expr>, Box<Expr>),
    /// Quotient; the denominator's interval must not contain 0.
    Div(Box<Expr>, Box<Expr>),
    /// Integer power.
    Power(Box<Expr>, i32),
    /// A function.
    Call(Function, Box<Expr>),
    /// The argument, clamped.
    Clamp(Box<Expr>, Interval),
    /// A comparison: 1 or 0.
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// 1 if both are non-zero.
    And(Box<Expr>, Box<Expr>),
    /// 1 if one is non-zero.
    Or(Box<Expr>, Box<Expr>),
    /// 1 if zero.
    Not(Box<Expr>),
    /// The entry of a public table at the argument, rounded down; outside the table its nearest end, 0 if it is empty.
    Lookup(Box<Expr>, Vec<f64>),
}

#[allow(
    clippy::should_implement_trait,
    reason = "builders of an expression tree, not arithmetic"
)]
impl Expr {
    /// `self + other`
    #[must_use]
    pub fn add(self, other: Self) -> Self {
        Self::Add(Box::new(self), Box::new(other))
    }
    /// `self − other`
    #[must_use]
    pub fn sub(self, other: Self) -> Self {
        Self::Sub(Box::new(self), Box::new(other))
    }
    /// `self · other`
    #[must_use]
    pub fn mul(self, other: Self) -> Self {
        Self::Mul(Box::new(self), Box::new(other))
    }
    /// `function(self)`
    #[must_use]
    pub fn call(self, function: Function) -> Self {
        Self::Call(function, Box::new(self))
    }
    /// `self` clamped into an interval.
    #[must_use]
    pub fn clamp(self, interval: Interval) -> Self {
        Self::Clamp(Box::new(self), interval)
    }
    /// `scale·self + shift`
    #[must_use]
    pub fn affine(self, scale: f64, shift: f64) -> Self {
        self.mul(Self::Constant(scale)).add(Self::Constant(shift))
    }

    /// Calls `visit` on every node, parents first.
    pub fn walk(&self, visit: &mut impl FnMut(&Expr)) {
        visit(self);
        match self {
            Self::Constant(_)
            | Self::Column(_)
            | Self::Code(_)
            | Self::Level { .. }
            | Self::Term(_) => {}
            Self::Add(a, b)
            | Self::Sub(a, b)
            | Self::Mul(a, b)
            | Self::Div(a, b)
            | Self::Compare(_, a, b)
            | Self::And(a, b)
            | Self::Or(a, b) => {
                a.walk(visit);
                b.walk(visit);
            }
            Self::Power(a, _)
            | Self::Call(_, a)
            | Self::Clamp(a, _)
            | Self::Not(a)
            | Self::Lookup(a, _) => {
                a.walk(visit);
            }
        }
    }
}

/// The entry of a table at x, rounded down; the nearest end outside of it, the first for NaN, 0 if it is empty.
#[inline]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates; NaN gives 0"
)]
pub fn entry(table: &[f64], x: f64) -> f64 {
    let at = (x.max(0.0) as usize).min(table.len().saturating_sub(1));
    table.get(at).copied().unwrap_or(0.0)
}

/// Applies a function; libm, so that every machine computes the same bits.
#[inline]
pub fn apply(f: Function, x: f64) -> f64 {
    match f {
        Function::Log => libm::log(x),
        Function::Log1p => libm::log1p(x),
        Function::Log2 => libm::log2(x),
        Function::Log10 => libm::log10(x),
        Function::Sqrt => x.sqrt(),
        Function::Exp => libm::exp(x),
        Function::Expm1 => libm::expm1(x),
        Function::Logistic => 1.0 / (1.0 + libm::exp(-x)),
        Function::Abs => x.abs(),
    }
}
