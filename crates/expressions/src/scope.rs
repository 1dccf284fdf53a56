//! The bounds an expression has because of the declared bounds of its columns.

use std::collections::BTreeMap;

use crate::{Comparison, Expr, Function, Interval, Kind, Schema, apply};

/// A program that cannot be run, with the reason (public: it depends on the program and schema only).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProgramError {
    /// An expression has no finite bounds.
    #[error(
        "an expression has no finite bounds ({lower} to {upper}); narrow the declared bounds or add a `where` condition that compares the column itself with a number, such as x > 0"
    )]
    Unbounded {
        /// Lower end found.
        lower: f64,
        /// Upper end found.
        upper: f64,
    },
    /// A function is asked outside its domain.
    #[error(
        "{function} needs an argument {needs}, but the declared bounds allow {lower} to {upper}; narrow the bounds or add a `where` condition that compares the column itself with a number, such as x > 0"
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

/// The schema and the conditions under which expressions are bounded: what [`bounds`] uses.
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
            Expr::Lookup(a, table) => {
                self.interval(a)?;
                Interval::hull(if table.is_empty() { &[0.0] } else { table })
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

/// The bounds of every term; later terms may refer to earlier ones, the filter to none: it is decided first.
pub fn bounds(
    schema: &Schema,
    filter: Option<&Expr>,
    terms: &[Expr],
) -> Result<Vec<Interval>, ProgramError> {
    let mut scope = Scope::new(schema, filter);
    if let Some(filter) = filter {
        Scope::new(schema, None).interval(filter)?;
    }
    for term in terms {
        let interval = scope.interval(term)?;
        scope.terms.push(interval);
    }
    Ok(scope.terms)
}

/// Schema positions of the columns that expressions read.
pub fn columns<'a>(expressions: impl IntoIterator<Item = &'a Expr>) -> Vec<usize> {
    let mut used = Vec::new();
    for expression in expressions {
        expression.walk(&mut |e| {
            if let Expr::Column(c) | Expr::Code(c) | Expr::Level { column: c, .. } = e {
                used.push(*c);
            }
        });
    }
    used.sort_unstable();
    used.dedup();
    used
}

/// Largest possible Euclidean norm of some of the terms over all records the schema allows, squared.
///
/// For every record, Σ v_t² over the `chosen` terms is at most the returned number (before rounding of the sum, which the
/// caller covers by its relative margin).
/// Terms that contain level indicators of the same set of factor columns exclude each other when
/// their levels differ, so of each such group only the largest combination counts; every other
/// term counts with its largest square.
pub fn squared_norm_bound(
    terms: &[Expr],
    bounds: &[Interval],
    chosen: &[usize],
) -> Result<f64, ProgramError> {
    let mut groups: BTreeMap<Vec<usize>, BTreeMap<Vec<u32>, f64>> = BTreeMap::new();
    for &t in chosen {
        let bound = bounds.get(t).ok_or(ProgramError::Term(t))?;
        let square = bound.magnitude() * bound.magnitude();
        let mut key = terms.get(t).map(indicators).unwrap_or_default();
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
    use crate::{Column, Missing};

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
            let all: Vec<usize> = (0..terms.len()).collect();
            let bounds = bounds(&schema, None, &terms).unwrap();
            let bound = squared_norm_bound(&terms, &bounds, &all).unwrap();
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
        let refused = |term: Expr| bounds(&schema, None, &[term]).is_err();
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
        assert!(bounds(&schema, Some(&Expr::Term(0)), &[x()]).is_err());
    }
}
