//! What every constructor takes and gives, and small helpers for values.

use reticent_accounting::{Rational, Relation, rational_to_f64};
use reticent_mechanisms::program::{Expr, Interval, ProgramError, RowProgram};
use reticent_mechanisms::rows::{Column, Kind, Missing, Schema};
use reticent_mechanisms::{Context, Mechanism};
use serde_json::Value;

/// The public facts a release is planned with.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The declared columns.
    pub schema: &'a Schema,
    /// Which records count; narrows the bounds of the columns it compares with constants.
    pub filter: Option<&'a Expr>,
    /// Relation, currency, size, contribution bound.
    pub context: &'a Context,
    /// A public or released number of rows in this row set, if there is one.
    pub rows: Option<f64>,
    /// Declared share of positive outcomes, if there is one.
    pub positive_rate: Option<f64>,
}

/// A release ready to run: the engine adds filter and part to the terms.
pub struct Prepared {
    /// The terms of the row program.
    pub terms: Vec<Expr>,
    /// What buys and computes.
    pub mechanism: Box<dyn Mechanism>,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared")
            .field("terms", &self.terms)
            .field("kind", &self.mechanism.kind())
            .finish()
    }
}

/// A release that cannot be made as asked. Decided from public inputs; nothing is spent.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StatisticsError {
    /// An expression does not fit the schema.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A parameter is outside what is possible.
    #[error("{name} = {value} is not possible: {fix}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// What would be accepted.
        fix: String,
    },
    /// The currency of the data set cannot pay for it.
    #[error("{what} cannot be paid from this budget: {fix}")]
    Currency {
        /// The release.
        what: &'static str,
        /// What would work.
        fix: &'static str,
    },
}

impl Facts<'_> {
    /// Bounds of the terms of a program over this row set.
    pub(crate) fn bounds(&self, terms: &[Expr]) -> Result<Vec<Interval>, StatisticsError> {
        Ok(self.program(terms).bounds(self.schema)?)
    }

    /// Bounds of one expression.
    pub(crate) fn interval(&self, expr: &Expr) -> Result<Interval, StatisticsError> {
        let bounds = self.bounds(std::slice::from_ref(expr))?;
        bounds
            .first()
            .copied()
            .ok_or(StatisticsError::Program(ProgramError::Term(0)))
    }

    pub(crate) fn program(&self, terms: &[Expr]) -> RowProgram {
        RowProgram {
            terms: terms.to_vec(),
            filter: self.filter.cloned(),
            part: None,
        }
    }

    /// ε of one record: a unit of k rows shares its ε among them.
    pub(crate) fn per_record(&self, epsilon: &Rational) -> f64 {
        rational_to_f64(epsilon) / f64::from(self.context.rows_per_unit.max(1))
    }

    /// ñ·ε, halved under replace-one where noise is twice as large: the signal of the default rules.
    pub(crate) fn signal(&self, epsilon: &Rational) -> Option<f64> {
        let rows = self.rows.filter(|r| r.is_finite() && *r > 0.0)?;
        Some(rows * self.per_record(epsilon) / f64::from(self.context.touches()))
    }

    /// ñ·ε, divided by 4 under replace-one: the rule of objective perturbation.
    pub(crate) fn quartered_signal(&self, epsilon: &Rational) -> Option<f64> {
        let rows = self.rows.filter(|r| r.is_finite() && *r > 0.0)?;
        let divisor = match self.context.relation {
            Relation::AddRemove => 1.0,
            Relation::ReplaceOne => 4.0,
        };
        Some(rows * self.per_record(epsilon) / divisor)
    }
}

/// Refuses an ε that is not positive, or so far out that noise scales would leave their range.
pub(crate) fn positive(epsilon: &Rational) -> Result<(), StatisticsError> {
    let value = rational_to_f64(epsilon);
    if *epsilon > Rational::ZERO && (1e-12..=1e15).contains(&value) {
        return Ok(());
    }
    Err(StatisticsError::Parameter {
        name: "epsilon",
        value: Some(reticent_accounting::format_rational(epsilon))
            .filter(|exact| exact.len() <= 24)
            .unwrap_or_else(|| format!("{value:e}")),
        fix: "give a number above 0, between 1e-12 and 1e15".to_owned(),
    })
}

/// A whole number as JSON, exact while it fits 64 bits.
pub(crate) fn whole(n: i128) -> Value {
    i64::try_from(n).map_or_else(|_| number(real(n)), Value::from)
}

/// A number as JSON; not-a-number and infinities become null.
pub(crate) fn number(x: f64) -> Value {
    serde_json::Number::from_f64(x).map_or(Value::Null, Value::Number)
}

/// Numbers as JSON.
pub(crate) fn numbers(xs: &[f64]) -> Value {
    xs.iter().map(|x| number(*x)).collect()
}

/// Nearest f64 of a released integer.
#[allow(
    clippy::cast_precision_loss,
    reason = "released numbers are shown as f64"
)]
pub(crate) fn real(n: i128) -> f64 {
    n as f64
}

/// Nearest f64 of a size.
#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
pub(crate) fn size(n: usize) -> f64 {
    n as f64
}

/// A whole number within `low..=high` from a number; NaN gives `low`.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to the range of u32 before the cast"
)]
pub(crate) fn clipped(x: f64, low: u32, high: u32) -> u32 {
    if x.is_nan() {
        low
    } else {
        x.clamp(f64::from(low), f64::from(high)) as u32
    }
}

/// Copies public metadata (model, positive level, …) into a value.
pub(crate) fn with_metadata(value: Value, metadata: &Value) -> Value {
    match (value, metadata) {
        (Value::Object(mut map), Value::Object(extra)) => {
            for (key, v) in extra {
                map.entry(key.clone()).or_insert_with(|| v.clone());
            }
            Value::Object(map)
        }
        (value, _) => value,
    }
}

/// Whether an expression is a whole number for every record, from the schema alone.
pub(crate) fn is_whole(expr: &Expr, schema: &Schema) -> bool {
    let column = |c: &usize| match schema.columns.get(*c) {
        Some(Column {
            kind: Kind::Integer { .. },
            missing,
            ..
        }) => match missing {
            Missing::Drop => true,
            Missing::Impute(x) => x.fract() == 0.0,
        },
        _ => false,
    };
    match expr {
        Expr::Constant(c) => c.fract() == 0.0,
        Expr::Column(c) => column(c),
        Expr::Code(_)
        | Expr::Level { .. }
        | Expr::Compare(..)
        | Expr::And(..)
        | Expr::Or(..)
        | Expr::Not(_) => true,
        Expr::Add(a, b) | Expr::Sub(a, b) | Expr::Mul(a, b) => {
            is_whole(a, schema) && is_whole(b, schema)
        }
        Expr::Power(a, k) => *k >= 0 && is_whole(a, schema),
        Expr::Call(reticent_mechanisms::program::Function::Abs, a) => is_whole(a, schema),
        Expr::Clamp(a, i) => {
            is_whole(a, schema) && i.lower.fract() == 0.0 && i.upper.fract() == 0.0
        }
        Expr::Lookup(_, table) => table.iter().all(|x| x.fract() == 0.0),
        Expr::Term(_) | Expr::Div(..) | Expr::Call(..) => false,
    }
}

/// Whether an expression is built of 0/1 indicators only.
pub(crate) fn is_indicator(expr: &Expr) -> bool {
    match expr {
        Expr::Level { .. } | Expr::Compare(..) | Expr::And(..) | Expr::Or(..) | Expr::Not(_) => {
            true
        }
        Expr::Mul(a, b) => is_indicator(a) && is_indicator(b),
        _ => false,
    }
}

/// Sum of expressions as a balanced tree, so that wide designs do not nest deeply.
pub(crate) fn sum_of(mut parts: Vec<Expr>) -> Expr {
    while parts.len() > 1 {
        let mut next = Vec::with_capacity(parts.len().div_ceil(2));
        let mut iter = parts.into_iter();
        while let Some(a) = iter.next() {
            next.push(match iter.next() {
                Some(b) => a.add(b),
                None => a,
            });
        }
        parts = next;
    }
    parts.pop().unwrap_or(Expr::Constant(0.0))
}

/// Half-width of a Laplace law that is left with probability `tail`, given the one for .05.
pub(crate) fn widen(quantile_95: f64, tail: f64) -> f64 {
    quantile_95 * tail.ln() / 0.05f64.ln()
}
