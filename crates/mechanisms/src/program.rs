//! Row programs: what a release reads from one record. Formulas compile to this.
//!
//! A program is data, row-wise and total by construction. The interval of every expression is computed
//! here from the declared bounds and enforced by clamping, so no caller is trusted with a bound.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::rows::{Kind, Schema};

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

    fn hull(values: &[f64]) -> Result<Self, ProgramError> {
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
            Self::Power(a, _) | Self::Call(_, a) | Self::Clamp(a, _) | Self::Not(a) => {
                a.walk(visit);
            }
        }
    }
}

/// What a content split hashes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SplitBy {
    /// All declared columns (for units with several rows: the unit's identifier).
    Content,
    /// One column.
    Column(usize),
}

/// A record-wise split of the rows into disjoint parts, by a keyed hash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// What is hashed.
    pub by: SplitBy,
    /// Public salt.
    pub salt: String,
    /// Name and share of every part as a fraction `numerator/denominator`; the last part takes the rest.
    pub parts: Vec<(String, u32, u32)>,
}

impl Split {
    /// Identity of the partition in the ledger: a digest of (by, salt, fractions).
    ///
    /// The whole digest, because whoever writes plans chooses the salt: with two splits of one shortened name
    /// the ledger would count overlapping parts as disjoint.
    pub fn id(&self) -> String {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        digest.iter().fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// The part a hash value falls into: thresholds are ⌊cumulative share · 2⁶⁴⌋.
    pub(crate) fn part_of(&self, hash: u64) -> usize {
        let mut reached: u128 = 0;
        for (index, (_, numerator, denominator)) in self.parts.iter().enumerate() {
            let width = (u128::from(*numerator) << 64)
                .checked_div(u128::from(*denominator))
                .unwrap_or(0);
            reached = reached.saturating_add(width);
            if u128::from(hash) < reached {
                return index;
            }
        }
        self.parts.len().saturating_sub(1)
    }
}

/// One part of a split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The split.
    pub split: Split,
    /// Position of the part in [`Split::parts`].
    pub index: usize,
}

impl Part {
    /// (partition, part) as the ledger names them.
    pub fn names(&self) -> (String, String) {
        let part = self
            .split
            .parts
            .get(self.index)
            .map_or_else(String::new, |p| p.0.clone());
        (self.split.id(), part)
    }
}

/// What a release reads from each record: numbers (`terms`), which records count (`filter`, `part`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowProgram {
    /// The numbers, in order; later terms may refer to earlier ones.
    pub terms: Vec<Expr>,
    /// Records for which this is 0 do not count.
    pub filter: Option<Expr>,
    /// Only records routed to this part count.
    pub part: Option<Part>,
}

/// A program that cannot be run, with the reason (public: it depends on the program and schema only).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProgramError {
    /// An expression has no finite bounds.
    #[error(
        "an expression has no finite bounds ({lower} to {upper}); narrow the declared bounds or add a `where` condition"
    )]
    Unbounded {
        /// Lower end found.
        lower: f64,
        /// Upper end found.
        upper: f64,
    },
    /// A function is asked outside its domain.
    #[error(
        "{function} needs an argument {needs}, but the declared bounds allow {lower} to {upper}; narrow the bounds or add a `where` condition"
    )]
    Domain {
        /// Name of the function.
        function: &'static str,
        /// What it needs.
        needs: &'static str,
        /// Lower bound of the argument.
        lower: f64,
        /// Upper bound of the argument.
        upper: f64,
    },
    /// A column is used as something it is not, or does not exist.
    #[error("column {column} cannot be used as {used_as}")]
    Column {
        /// Name or position.
        column: String,
        /// The attempted use.
        used_as: &'static str,
    },
    /// A term refers to a term that does not precede it.
    #[error("term {0} is not an earlier term")]
    Term(usize),
}

/// The schema and the conditions under which expressions are bounded: what [`RowProgram::bounds`] uses.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    schema: &'a Schema,
    /// Narrowed bounds per column, from conjunctive comparisons with constants in the filter.
    narrowed: Vec<Option<Interval>>,
    terms: Vec<Interval>,
}

impl<'a> Scope<'a> {
    /// Scope of a program: the filter narrows the bounds of the columns it compares with constants.
    ///
    /// Narrowing is sound because the filter is decided before any term is read: a record that counts
    /// has its (clamped) value inside the narrowed bounds, so the clamp is the identity on it.
    pub fn new(schema: &'a Schema, filter: Option<&Expr>) -> Self {
        let narrowed = vec![None; schema.columns.len()];
        let mut scope = Self {
            schema,
            narrowed,
            terms: Vec::new(),
        };
        if let Some(filter) = filter {
            scope.narrow(filter);
        }
        scope
    }

    /// Declared bounds of a numeric column, after narrowing.
    pub fn column(&self, index: usize) -> Result<Interval, ProgramError> {
        if let Some(Some(i)) = self.narrowed.get(index) {
            return Ok(*i);
        }
        self.declared(index)
    }

    fn declared(&self, index: usize) -> Result<Interval, ProgramError> {
        let column = self
            .schema
            .columns
            .get(index)
            .ok_or_else(|| ProgramError::Column {
                column: index.to_string(),
                used_as: "a column",
            })?;
        match &column.kind {
            #[allow(
                clippy::cast_precision_loss,
                reason = "declared integer bounds are at most 2^53 (checked at the schema); beyond, the clamp still encloses"
            )]
            Kind::Integer { lower, upper } => Interval::new(*lower as f64, *upper as f64),
            Kind::Real { lower, upper } => Interval::new(*lower, *upper),
            Kind::Levels { .. } | Kind::Id => Err(ProgramError::Column {
                column: column.name.clone(),
                used_as: "a number",
            }),
        }
    }

    fn narrow(&mut self, filter: &Expr) {
        match filter {
            Expr::And(a, b) => {
                self.narrow(a);
                self.narrow(b);
            }
            Expr::Compare(how, a, b) => match (a.as_ref(), b.as_ref()) {
                (Expr::Column(c), Expr::Constant(k)) => self.narrow_column(*c, *how, *k),
                (Expr::Constant(k), Expr::Column(c)) => self.narrow_column(*c, mirrored(*how), *k),
                _ => {}
            },
            _ => {}
        }
    }

    fn narrow_column(&mut self, index: usize, how: Comparison, k: f64) {
        let Ok(mut i) = self.column(index) else {
            return;
        };
        let integer = matches!(
            self.schema.columns.get(index).map(|c| &c.kind),
            Some(Kind::Integer { .. })
        );
        match how {
            Comparison::Greater if integer => i.lower = i.lower.max(k.floor() + 1.0),
            Comparison::GreaterEqual if integer => i.lower = i.lower.max(k.ceil()),
            Comparison::Less if integer => i.upper = i.upper.min(k.ceil() - 1.0),
            Comparison::LessEqual if integer => i.upper = i.upper.min(k.floor()),
            Comparison::Greater | Comparison::GreaterEqual => i.lower = i.lower.max(k),
            Comparison::Less | Comparison::LessEqual => i.upper = i.upper.min(k),
            Comparison::Equal => {
                i.lower = i.lower.max(k);
                i.upper = i.upper.min(k);
            }
            Comparison::NotEqual => {}
        }
        // An empty interval means the filter keeps no record: leave the declared bounds.
        if let Ok(i) = Interval::new(i.lower, i.upper)
            && let Some(slot) = self.narrowed.get_mut(index)
        {
            *slot = Some(i);
        }
    }

    /// Bounds of an expression.
    pub fn interval(&self, expr: &Expr) -> Result<Interval, ProgramError> {
        let truth = Interval {
            lower: 0.0,
            upper: 1.0,
        };
        match expr {
            Expr::Constant(c) => Interval::new(*c, *c),
            Expr::Column(c) => self.column(*c),
            Expr::Code(c) => match self.schema.columns.get(*c).map(|c| &c.kind) {
                #[allow(clippy::cast_precision_loss, reason = "level counts are below 2^32")]
                Some(Kind::Levels { levels, .. }) if !levels.is_empty() => {
                    Interval::new(0.0, (levels.len().saturating_sub(1)) as f64)
                }
                _ => Err(ProgramError::Column {
                    column: self.name(*c),
                    used_as: "a factor",
                }),
            },
            Expr::Level { column, level } => {
                match self.schema.columns.get(*column).map(|c| &c.kind) {
                    Some(Kind::Levels { levels, .. }) if (*level as usize) < levels.len() => {
                        Ok(truth)
                    }
                    _ => Err(ProgramError::Column {
                        column: self.name(*column),
                        used_as: "a factor with that level",
                    }),
                }
            }
            Expr::Term(t) => self.terms.get(*t).copied().ok_or(ProgramError::Term(*t)),
            Expr::Add(a, b) => {
                let (a, b) = (self.interval(a)?, self.interval(b)?);
                Interval::new(a.lower + b.lower, a.upper + b.upper)
            }
            Expr::Sub(a, b) => {
                let (a, b) = (self.interval(a)?, self.interval(b)?);
                Interval::new(a.lower - b.upper, a.upper - b.lower)
            }
            Expr::Mul(a, b) => {
                let (a, b) = (self.interval(a)?, self.interval(b)?);
                Interval::hull(&[
                    a.lower * b.lower,
                    a.lower * b.upper,
                    a.upper * b.lower,
                    a.upper * b.upper,
                ])
            }
            Expr::Div(a, b) => {
                let (a, b) = (self.interval(a)?, self.interval(b)?);
                if b.lower <= 0.0 && b.upper >= 0.0 {
                    return Err(ProgramError::Domain {
                        function: "division",
                        needs: "other than 0",
                        lower: b.lower,
                        upper: b.upper,
                    });
                }
                Interval::hull(&[
                    a.lower / b.lower,
                    a.lower / b.upper,
                    a.upper / b.lower,
                    a.upper / b.upper,
                ])
            }
            Expr::Power(a, k) => self.power(a, *k),
            Expr::Call(f, a) => called(*f, self.interval(a)?),
            Expr::Clamp(a, to) => {
                let a = self.interval(a)?;
                let to = Interval::new(to.lower, to.upper)?;
                Interval::new(
                    a.lower.clamp(to.lower, to.upper),
                    a.upper.clamp(to.lower, to.upper),
                )
            }
            Expr::Compare(_, a, b) | Expr::And(a, b) | Expr::Or(a, b) => {
                self.interval(a)?;
                self.interval(b)?;
                Ok(truth)
            }
            Expr::Not(a) => {
                self.interval(a)?;
                Ok(truth)
            }
        }
    }

    fn power(&self, base: &Expr, k: i32) -> Result<Interval, ProgramError> {
        let a = self.interval(base)?;
        if k < 0 && a.lower <= 0.0 && a.upper >= 0.0 {
            return Err(ProgramError::Domain {
                function: "a negative power",
                needs: "other than 0",
                lower: a.lower,
                upper: a.upper,
            });
        }
        let ends = [
            libm::pow(a.lower, f64::from(k)),
            libm::pow(a.upper, f64::from(k)),
        ];
        let mut hull = Interval::hull(&ends)?;
        if k > 0 && k % 2 == 0 && a.lower < 0.0 && a.upper > 0.0 {
            hull.lower = 0.0;
        }
        Ok(hull)
    }

    fn name(&self, index: usize) -> String {
        self.schema
            .columns
            .get(index)
            .map_or_else(|| index.to_string(), |c| c.name.clone())
    }
}

fn mirrored(how: Comparison) -> Comparison {
    match how {
        Comparison::Less => Comparison::Greater,
        Comparison::LessEqual => Comparison::GreaterEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterEqual => Comparison::LessEqual,
        other => other,
    }
}

/// Applies a function; libm, so that every machine computes the same bits.
pub(crate) fn apply(f: Function, x: f64) -> f64 {
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

fn called(f: Function, a: Interval) -> Result<Interval, ProgramError> {
    let (function, needs, fine) = match f {
        Function::Log => ("log", "above 0", a.lower > 0.0),
        Function::Log2 => ("log2", "above 0", a.lower > 0.0),
        Function::Log10 => ("log10", "above 0", a.lower > 0.0),
        Function::Log1p => ("log1p", "above -1", a.lower > -1.0),
        Function::Sqrt => ("sqrt", "of at least 0", a.lower >= 0.0),
        Function::Exp | Function::Expm1 | Function::Logistic | Function::Abs => ("", "", true),
    };
    if !fine {
        return Err(ProgramError::Domain {
            function,
            needs,
            lower: a.lower,
            upper: a.upper,
        });
    }
    if f == Function::Abs {
        let far = a.magnitude();
        let near = if a.lower <= 0.0 && a.upper >= 0.0 {
            0.0
        } else {
            a.lower.abs().min(a.upper.abs())
        };
        return Interval::new(near, far);
    }
    Interval::new(apply(f, a.lower), apply(f, a.upper))
}

impl RowProgram {
    /// The public bounds of every term, recomputed from the schema.
    pub fn bounds(&self, schema: &Schema) -> Result<Vec<Interval>, ProgramError> {
        let mut scope = Scope::new(schema, self.filter.as_ref());
        if let Some(filter) = &self.filter {
            // Terms must not be used in the filter: it is decided first.
            Scope::new(schema, None).interval(filter)?;
        }
        for term in &self.terms {
            let interval = scope.interval(term)?;
            scope.terms.push(interval);
        }
        Ok(scope.terms)
    }

    /// Schema positions of the columns the program reads (not counting those a content split hashes).
    pub fn columns(&self) -> Vec<usize> {
        let mut used = Vec::new();
        let mut visit = |e: &Expr| match e {
            Expr::Column(c) | Expr::Code(c) | Expr::Level { column: c, .. } => used.push(*c),
            _ => {}
        };
        self.terms.iter().for_each(|t| t.walk(&mut visit));
        if let Some(filter) = &self.filter {
            filter.walk(&mut visit);
        }
        used.sort_unstable();
        used.dedup();
        used
    }

    /// Largest possible Euclidean norm of the given terms over all records the schema allows, squared.
    ///
    /// # Claim
    /// For every record, Σ_{t∈terms} v_t² ≤ the returned number (before rounding of the sum, which the
    /// caller covers by its relative margin).
    /// Terms that contain level indicators of the same set of factor columns exclude each other when
    /// their levels differ, so of each such group only the largest combination counts; every other
    /// term counts with its largest square.
    pub fn squared_norm_bound(
        &self,
        schema: &Schema,
        terms: &[usize],
    ) -> Result<f64, ProgramError> {
        use std::collections::BTreeMap;
        let bounds = self.bounds(schema)?;
        let mut groups: BTreeMap<Vec<usize>, BTreeMap<Vec<u32>, f64>> = BTreeMap::new();
        for &t in terms {
            let bound = bounds.get(t).ok_or(ProgramError::Term(t))?;
            let square = bound.magnitude() * bound.magnitude();
            let mut key = self.terms.get(t).map(indicators).unwrap_or_default();
            key.sort_unstable();
            key.dedup();
            let (columns, levels): (Vec<usize>, Vec<u32>) = key.into_iter().unzip();
            *groups
                .entry(columns)
                .or_default()
                .entry(levels)
                .or_insert(0.0) += square;
        }
        Ok(groups
            .values()
            .map(|combos| combos.values().copied().fold(0.0, f64::max))
            .sum())
    }
}

/// The (column, level) indicators that multiply an expression: if any of them is 0, so is the value.
fn indicators(expr: &Expr) -> Vec<(usize, u32)> {
    match expr {
        Expr::Level { column, level } => vec![(*column, *level)],
        Expr::Mul(a, b) => {
            let mut both = indicators(a);
            both.extend(indicators(b));
            both
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{Column, Missing};

    fn schema() -> Schema {
        let column = |name: &str, kind| Column {
            name: name.to_owned(),
            kind,
            missing: Missing::Drop,
        };
        let levels = |n: usize| Kind::Levels {
            levels: (0..n).map(|i| i.to_string()).collect(),
            other: None,
        };
        Schema {
            columns: vec![
                column(
                    "n",
                    Kind::Integer {
                        lower: 0,
                        upper: 10,
                    },
                ),
                column(
                    "x",
                    Kind::Real {
                        lower: -1.0,
                        upper: 2.0,
                    },
                ),
                column("a", levels(3)),
                column("b", levels(2)),
            ],
        }
    }

    fn level(column: usize, level: u32) -> Expr {
        Expr::Level { column, level }
    }

    fn compare(how: Comparison, column: usize, k: f64) -> Expr {
        Expr::Compare(
            how,
            Box::new(Expr::Column(column)),
            Box::new(Expr::Constant(k)),
        )
    }

    /// Against all records of a grid: the bound holds, and is reached where the claim says so.
    #[test]
    fn squared_norms_hold_for_every_record() {
        let schema = schema();
        let x = || Expr::Column(1);
        let value = |e: &Expr, x: f64, a: u32, b: u32| -> f64 {
            fn at(e: &Expr, x: f64, codes: [u32; 2]) -> f64 {
                match e {
                    Expr::Column(1) => x,
                    Expr::Constant(c) => *c,
                    Expr::Level { column, level } => {
                        f64::from(u8::from(codes[column - 2] == *level))
                    }
                    Expr::Mul(a, b) => at(a, x, codes) * at(b, x, codes),
                    Expr::Add(a, b) => at(a, x, codes) + at(b, x, codes),
                    other => panic!("{other:?}"),
                }
            }
            at(e, x, [a, b])
        };
        let designs: Vec<(Vec<Expr>, f64)> = vec![
            (vec![level(2, 1), level(2, 2)], 1.0),
            (
                vec![x(), level(2, 1), level(2, 2), level(3, 1)],
                4.0 + 1.0 + 1.0,
            ),
            (
                vec![
                    level(2, 1).mul(x()),
                    level(2, 2).mul(x()),
                    level(3, 0),
                    level(3, 1),
                ],
                4.0 + 1.0,
            ),
            (
                vec![
                    level(2, 1).mul(level(3, 1)),
                    level(3, 1).mul(level(2, 2)),
                    level(2, 1).mul(level(3, 0)).mul(x()),
                ],
                4.0,
            ),
            // indicators under a sum do not exclude each other
            (
                vec![
                    level(2, 0).add(Expr::Constant(1.0)),
                    level(2, 1).add(Expr::Constant(1.0)),
                ],
                8.0,
            ),
            // the same indicator twice, and two that never meet
            (
                vec![level(2, 0).mul(level(2, 0)), level(2, 0).mul(level(2, 1))],
                2.0,
            ),
        ];
        for (terms, want) in designs {
            let program = RowProgram {
                terms: terms.clone(),
                ..RowProgram::default()
            };
            let all: Vec<usize> = (0..terms.len()).collect();
            let bound = program.squared_norm_bound(&schema, &all).unwrap();
            assert!((bound - want).abs() < 1e-12, "{terms:?}: {bound}");
            for i in 0..=30 {
                for a in 0..3 {
                    for b in 0..2 {
                        let x = f64::from(i) / 10.0 - 1.0;
                        let norm: f64 = terms.iter().map(|t| value(t, x, a, b).powi(2)).sum();
                        assert!(norm <= bound + 1e-12, "{terms:?} at {x} {a} {b}: {norm}");
                    }
                }
            }
        }
    }

    #[test]
    fn filters_narrow_the_columns_they_compare() {
        let schema = schema();
        let bounds = |filter: Expr, column: usize| {
            let i = Scope::new(&schema, Some(&filter)).column(column).unwrap();
            (i.lower, i.upper)
        };
        let and = |a, b| Expr::And(Box::new(a), Box::new(b));
        let or = |a, b| Expr::Or(Box::new(a), Box::new(b));
        assert_eq!(bounds(compare(Comparison::Greater, 0, 3.0), 0), (4.0, 10.0));
        assert_eq!(bounds(compare(Comparison::Less, 0, 3.5), 0), (0.0, 3.0));
        assert_eq!(bounds(compare(Comparison::Greater, 1, 0.5), 1), (0.5, 2.0));
        assert_eq!(bounds(compare(Comparison::Equal, 0, 7.0), 0), (7.0, 7.0));
        let both = and(
            compare(Comparison::GreaterEqual, 0, 2.0),
            compare(Comparison::LessEqual, 0, 5.0),
        );
        assert_eq!(bounds(both.clone(), 0), (2.0, 5.0));
        // only what every kept record satisfies narrows
        let either = or(both, compare(Comparison::Less, 0, 1.0));
        assert_eq!(bounds(either, 0), (0.0, 10.0));
        let none = and(
            compare(Comparison::Greater, 0, 8.0),
            compare(Comparison::Less, 0, 3.0),
        );
        assert_eq!(bounds(none, 0), (9.0, 10.0));
        assert_eq!(
            bounds(compare(Comparison::Greater, 1, f64::NAN), 1),
            (-1.0, 2.0)
        );
    }

    #[test]
    fn what_has_no_bounds_is_refused() {
        let schema = schema();
        let refused = |term: Expr| {
            let program = RowProgram {
                terms: vec![term],
                ..RowProgram::default()
            };
            program.bounds(&schema).is_err()
        };
        let x = || Expr::Column(1);
        for f in [
            Function::Log,
            Function::Log1p,
            Function::Log2,
            Function::Log10,
            Function::Sqrt,
        ] {
            assert!(refused(x().call(f)), "{f:?}");
        }
        assert!(refused(Expr::Div(
            Box::new(Expr::Constant(1.0)),
            Box::new(x())
        )));
        assert!(refused(Expr::Power(Box::new(x()), -1)));
        assert!(refused(Expr::Constant(f64::NAN)) && refused(Expr::Constant(f64::INFINITY)));
        assert!(refused(x().affine(1e308, 0.0).affine(1e308, 0.0)));
        assert!(refused(Expr::Column(2)) && refused(Expr::Code(1)) && refused(Expr::Column(9)));
        assert!(refused(level(2, 3)) && refused(Expr::Term(0)));
        let filter = RowProgram {
            terms: vec![x()],
            filter: Some(Expr::Term(0)),
            part: None,
        };
        assert!(filter.bounds(&schema).is_err());
    }

    /// Thresholds of parts: all of 2^64, in order, with the declared shares.
    #[test]
    fn parts_have_their_shares() {
        let split = |parts: &[(u32, u32)]| Split {
            by: SplitBy::Content,
            salt: String::new(),
            parts: parts.iter().map(|(a, b)| (String::new(), *a, *b)).collect(),
        };
        let half = split(&[(1, 2), (1, 2)]);
        assert_eq!(half.part_of(0), 0);
        assert_eq!(half.part_of((1 << 63) - 1), 0);
        assert_eq!(half.part_of(1 << 63), 1);
        assert_eq!(half.part_of(u64::MAX), 1);
        let thirds = split(&[(1, 3), (1, 3), (1, 3)]);
        let third = u64::MAX / 3;
        assert_eq!(thirds.part_of(third - 1), 0);
        assert_eq!(thirds.part_of(third), 1);
        assert_eq!(thirds.part_of(u64::MAX), 2);
        // shares that do not add up: the last part takes the rest, later ones get nothing
        let over = split(&[(3, 4), (3, 4), (1, 4)]);
        assert_eq!((over.part_of(0), over.part_of(u64::MAX)), (0, 1));
        assert_eq!(split(&[(0, 0)]).part_of(7), 0);
        assert_eq!(split(&[]).part_of(7), 0);
        let counts = (0..3_000_u64)
            .map(|i| thirds.part_of(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .fold([0; 3], |mut c, p| {
                c[p] += 1;
                c
            });
        assert!(counts.iter().all(|c| (900..1100).contains(c)), "{counts:?}");
        // another salt, another partition
        let salted = Split {
            salt: "x".to_owned(),
            ..half.clone()
        };
        assert_ne!(half.id(), salted.id());
        // 256 bits: collisions must be out of reach of somebody who chooses the salt.
        assert_eq!(half.id().len(), 64);
    }
}
