//! Runs row programs on batches: which records count, and the numbers each of them contributes.
//!
//! # Claim
//! What a record contributes depends on that record alone (for units with several rows: on that unit's
//! rows alone), and every term lies in the interval of [`RowProgram::bounds`].
//! # Assumptions
//! The source hands every row over once; with [`Unit::Column`] in file order.
//! # Checked by
//! `evaluate::tests::{terms_stay_in_their_bounds, columns_are_taken_over_once, record_wise, missing_and_other, unit_cap}`

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use reticent_expressions::cell::Indices;
use reticent_expressions::{apply, entry};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::program::{Expr, Interval, Part, ProgramError, RowProgram, Scope, SplitBy};
use crate::rows::{
    Batch, Cells, Kind, MISSING_CODE, MISSING_INTEGER, Missing, OTHER_CODE, Schema, id_digest,
};

/// Whom the guarantee protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// One row.
    Row,
    /// All rows that share a value of an id column; the first `max_rows` of them in file order count.
    Column {
        /// Schema position of the id column.
        column: usize,
        /// Contribution bound.
        max_rows: u32,
    },
}

impl Unit {
    /// Rows a unit can contribute.
    pub fn max_rows(self) -> u32 {
        match self {
            Self::Row => 1,
            Self::Column { max_rows, .. } => max_rows.max(1),
        }
    }
}

/// Counts the rows of each unit seen so far; lives as long as one scan. Rows without an identifier are nobody's and never admitted:
/// as one unit they would share one bound, and a person among them would decide whether another's row counts.
#[derive(Default, Debug)]
pub(crate) struct Admission {
    seen: HashMap<u128, u32>,
}

impl Admission {
    /// For each row of the batch: is it among its unit's first rows?
    pub(crate) fn admit(&mut self, unit: Unit, batch: &Batch) -> Vec<bool> {
        let Unit::Column { column, max_rows } = unit else {
            return vec![true; batch.rows()];
        };
        let missing = id_digest(b"");
        match batch.column(column) {
            Cells::Id(ids) => ids
                .iter()
                .map(|id| {
                    if *id == missing {
                        return false;
                    }
                    let seen = self.seen.entry(*id).or_insert(0);
                    let admitted = *seen < max_rows;
                    *seen = seen.saturating_add(1);
                    admitted
                })
                .collect(),
            // A source that did not read the id column contributes nothing: safe, and visible in any test.
            _ => vec![false; batch.rows()],
        }
    }
}

/// A program prepared for one schema.
#[derive(Debug)]
pub(crate) struct Prepared {
    program: RowProgram,
    bounds: Vec<Interval>,
    declared: Vec<Option<Interval>>,
    used: Vec<usize>,
    /// Per term, the column it consists of, if no later term reads that column.
    last: Vec<Option<usize>>,
}

/// The records of a batch that count, term by term.
#[derive(Debug, Default)]
pub(crate) struct Evaluated {
    /// Number of records that count.
    pub(crate) rows: usize,
    /// One column per term, `rows` long.
    pub(crate) terms: Vec<Vec<f64>>,
}

/// Memory of columns, used again from batch to batch: giving it back to the system would cost more than the arithmetic.
#[derive(Debug, Default)]
pub(crate) struct Spare(Vec<Vec<f64>>);

impl Spare {
    /// Columns that are no longer needed.
    pub(crate) fn give(&mut self, columns: impl IntoIterator<Item = Vec<f64>>) {
        self.0.extend(columns);
    }

    /// A column of these values.
    fn filled(&mut self, values: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut column = self.0.pop().unwrap_or_default();
        column.clear();
        column.extend(values);
        column
    }
}

impl Prepared {
    pub(crate) fn new(program: &RowProgram, schema: &Schema) -> Result<Self, ProgramError> {
        let bounds = program.bounds(schema)?;
        let scope = Scope::new(schema, None);
        Ok(Self {
            declared: (0..schema.columns.len())
                .map(|c| scope.column(c).ok())
                .collect(),
            used: program.columns(),
            last: last_uses(&program.terms),
            bounds,
            program: program.clone(),
        })
    }

    pub(crate) fn bounds(&self) -> &[Interval] {
        &self.bounds
    }

    /// Columns a source must decode for this program.
    pub(crate) fn needs(&self, schema: &Schema, unit: Unit) -> Vec<usize> {
        let mut needs = self.used.clone();
        if let Unit::Column { column, .. } = unit {
            needs.push(column);
        }
        if let Some(part) = &self.program.part {
            match (&part.split.by, unit) {
                (SplitBy::Column(c), Unit::Row) => needs.push(*c),
                (SplitBy::Content, Unit::Row) => needs.extend(0..schema.columns.len()),
                (_, Unit::Column { .. }) => {}
            }
        }
        needs.sort_unstable();
        needs.dedup();
        needs
    }

    /// Runs the program on a batch; `admitted` says which rows are within their unit's bound.
    pub(crate) fn run(
        &self,
        schema: &Schema,
        unit: Unit,
        batch: &Batch,
        admitted: &[bool],
        spare: &mut Spare,
    ) -> Evaluated {
        let n = batch.rows();
        let mut keep = admitted.to_vec();
        keep.resize(n, false);
        if let Some(part) = &self.program.part {
            route(part, schema, unit, batch, &mut keep);
        }
        let mut inputs = Inputs {
            schema,
            batch,
            numbers: HashMap::new(),
            spare: RefCell::new(std::mem::take(spare)),
        };
        for &c in &self.used {
            inputs.present(c, &mut keep);
        }
        inputs.read(&self.used, &self.declared);
        if let Some(filter) = &self.program.filter {
            let truth = inputs.values(filter, &[], n);
            keep.iter_mut()
                .zip(truth.iter())
                .for_each(|(k, t)| *k = *k && *t != 0.0);
        }
        let mut terms: Vec<Vec<f64>> = Vec::with_capacity(self.program.terms.len());
        let uses = self.last.iter().zip(&self.bounds);
        for (term, (last, bound)) in self.program.terms.iter().zip(uses) {
            // A column that was read into these very bounds is taken over as it is.
            let own = last.filter(|c| self.declared.get(*c) == Some(&Some(*bound)));
            if let Some(values) = own.and_then(|c| inputs.numbers.remove(&c)) {
                terms.push(values);
                continue;
            }
            terms.push(inputs.owned(inputs.values(term, &terms, n), |v| into(v, *bound)));
        }
        *spare = inputs.spare.into_inner();
        // Programs may give more than they take: what is kept stays in proportion to the program.
        spare.0.truncate(terms.len());
        spare.give(inputs.numbers.into_values());
        let rows = keep
            .iter()
            .map(|k| usize::from(*k))
            .fold(0, usize::wrapping_add);
        if rows != n {
            for values in &mut terms {
                let mut flags = keep.iter();
                values.retain(|_| flags.next().copied().unwrap_or(false));
            }
        }
        Evaluated { rows, terms }
    }
}

/// For terms that are a column as it stands and the last to read it: that column.
fn last_uses(terms: &[Expr]) -> Vec<Option<usize>> {
    let mut later = HashSet::new();
    let mut last: Vec<Option<usize>> = terms
        .iter()
        .rev()
        .map(|term| {
            let own = match term {
                Expr::Column(c) if !later.contains(c) => Some(*c),
                _ => None,
            };
            term.walk(&mut |e| {
                if let Expr::Column(c) = e {
                    later.insert(*c);
                }
            });
            own
        })
        .collect();
    last.reverse();
    last
}

/// Clamps, sending NaN (which cannot occur after [`Inputs::present`]) to the lower end. Two selections that vectorise.
fn into(v: f64, i: Interval) -> f64 {
    let v = if v > i.lower { v } else { i.lower };
    if v < i.upper { v } else { i.upper }
}

/// Keeps the records of the part: those in any interval of its name, which is what the ledger charges.
fn route(part: &Part, schema: &Schema, unit: Unit, batch: &Batch, keep: &mut [bool]) {
    let name = |index: usize| part.split.parts.get(index).map(|p| &p.0);
    for (row, k) in keep.iter_mut().enumerate().filter(|(_, k)| **k) {
        let mut hash = Sha256::new();
        hash.update(part.split.salt.as_bytes());
        hash.update([0]);
        match (unit, &part.split.by) {
            (Unit::Column { column, .. }, _) => batch.encode(column, row, &mut hash),
            (Unit::Row, SplitBy::Column(c)) => batch.encode(*c, row, &mut hash),
            (Unit::Row, SplitBy::Content) => {
                (0..schema.columns.len()).for_each(|c| batch.encode(c, row, &mut hash));
            }
        }
        let digest: [u8; 32] = hash.finalize().into();
        let at = u64::from_le_bytes(digest.first_chunk().copied().unwrap_or_default());
        *k = name(part.split.part_of(at)) == name(part.index);
    }
}

/// Clears `keep` where the cell is gone.
fn clear<T: Copy>(keep: &mut [bool], cells: &[T], gone: impl Fn(T) -> bool) {
    // Looking first is a loop without stores; nearly always it finds nothing.
    if cells.iter().fold(false, |any, x| any | gone(*x)) {
        keep.iter_mut()
            .zip(cells)
            .for_each(|(k, x)| *k = *k && !gone(*x));
    }
}

struct Inputs<'a> {
    schema: &'a Schema,
    batch: &'a Batch,
    /// Numeric columns as numbers inside their bounds.
    numbers: HashMap<usize, Vec<f64>>,
    spare: RefCell<Spare>,
}

impl Inputs<'_> {
    fn missing(&self, c: usize) -> Missing {
        self.schema
            .columns
            .get(c)
            .map_or(Missing::Drop, |c| c.missing)
    }

    /// Clears `keep` where the column is missing and its policy is to drop.
    fn present(&self, c: usize, keep: &mut [bool]) {
        let drops = matches!(self.missing(c), Missing::Drop);
        let other = match self.schema.columns.get(c).map(|c| &c.kind) {
            Some(Kind::Levels { other, .. }) => *other,
            _ => None,
        };
        match self.batch.column(c) {
            Cells::Integer(v) if drops => clear(keep, v, |x| x == MISSING_INTEGER),
            Cells::Real(v) if drops => clear(keep, v, f64::is_nan),
            Cells::Code(v) => clear(keep, v, |x| {
                (drops && x == MISSING_CODE) || (other.is_none() && x == OTHER_CODE)
            }),
            Cells::Integer(_) | Cells::Real(_) | Cells::Id(_) => {}
            Cells::Unread => keep.iter_mut().for_each(|k| *k = false),
        }
    }

    /// Reads the numeric columns; missing cells are imputed or (dropped anyway) low.
    fn read(&mut self, used: &[usize], bounds: &[Option<Interval>]) {
        for &c in used {
            let Some(Some(bound)) = bounds.get(c).copied() else {
                continue;
            };
            let fill = match self.missing(c) {
                Missing::Impute(x) => x,
                Missing::Drop => bound.lower,
            };
            let spare = self.spare.get_mut();
            let values = match self.batch.column(c) {
                #[allow(
                    clippy::cast_precision_loss,
                    reason = "clamped; declared bounds are at most 2^53"
                )]
                Cells::Integer(v) => spare.filled(v.iter().map(|x| {
                    let gone = *x == MISSING_INTEGER;
                    into(if gone { fill } else { *x as f64 }, bound)
                })),
                Cells::Real(v) => spare.filled(
                    v.iter()
                        .map(|x| into(if x.is_nan() { fill } else { *x }, bound)),
                ),
                Cells::Code(_) | Cells::Id(_) | Cells::Unread => {
                    vec![bound.lower; self.batch.rows()]
                }
            };
            self.numbers.insert(c, values);
        }
    }

    /// Level indices of a level column, with missing cells imputed and undeclared texts substituted.
    fn codes(&self, c: usize, n: usize) -> Vec<u32> {
        match (self.schema.columns.get(c), self.batch.column(c)) {
            (Some(column), Cells::Code(v)) => {
                let index = Indices::new(column);
                v.iter().map(|x| index.of(*x)).collect()
            }
            _ => vec![0; n],
        }
    }

    fn values<'s>(&'s self, expr: &Expr, terms: &'s [Vec<f64>], n: usize) -> Cow<'s, [f64]> {
        match expr {
            Expr::Constant(c) => Cow::Owned(vec![*c; n]),
            Expr::Column(c) => self
                .numbers
                .get(c)
                .map_or_else(|| Cow::Owned(vec![0.0; n]), |v| Cow::Borrowed(v.as_slice())),
            Expr::Code(c) => Cow::Owned(self.codes(*c, n).into_iter().map(f64::from).collect()),
            Expr::Level { column, level } => Cow::Owned(
                self.codes(*column, n)
                    .into_iter()
                    .map(|x| truth(x == *level))
                    .collect(),
            ),
            Expr::Term(t) => terms
                .get(*t)
                .map_or_else(|| Cow::Owned(vec![0.0; n]), |v| Cow::Borrowed(v.as_slice())),
            Expr::Add(a, b) => self.pair(a, b, terms, n, |x, y| x + y),
            Expr::Sub(a, b) => self.pair(a, b, terms, n, |x, y| x - y),
            Expr::Mul(a, b) => self.pair(a, b, terms, n, |x, y| x * y),
            Expr::Div(a, b) => self.pair(a, b, terms, n, |x, y| x / y),
            Expr::Power(a, 2) => self.each(a, terms, n, |x| x * x),
            Expr::Power(a, k) => self.each(a, terms, n, |x| libm::pow(x, f64::from(*k))),
            Expr::Call(f, a) => self.each(a, terms, n, |x| apply(*f, x)),
            Expr::Clamp(a, i) => self.each(a, terms, n, |x| into(x, *i)),
            Expr::Compare(how, a, b) => self.pair(a, b, terms, n, |x, y| truth(how.holds(x, y))),
            Expr::And(a, b) => self.pair(a, b, terms, n, |x, y| truth(x != 0.0 && y != 0.0)),
            Expr::Or(a, b) => self.pair(a, b, terms, n, |x, y| truth(x != 0.0 || y != 0.0)),
            Expr::Not(a) => self.each(a, terms, n, |x| truth(x == 0.0)),
            Expr::Lookup(a, table) => self.each(a, terms, n, |x| entry(table, x)),
        }
    }

    fn each<'s>(
        &'s self,
        a: &Expr,
        terms: &'s [Vec<f64>],
        n: usize,
        f: impl Fn(f64) -> f64,
    ) -> Cow<'s, [f64]> {
        Cow::Owned(self.owned(self.values(a, terms, n), f))
    }

    /// The values under `f`, in memory of their own.
    fn owned(&self, values: Cow<'_, [f64]>, f: impl Fn(f64) -> f64) -> Vec<f64> {
        match values {
            Cow::Borrowed(v) => self.spare.borrow_mut().filled(v.iter().map(|x| f(*x))),
            Cow::Owned(mut v) => {
                v.iter_mut().for_each(|x| *x = f(*x));
                v
            }
        }
    }

    fn pair<'s>(
        &'s self,
        a: &Expr,
        b: &Expr,
        terms: &'s [Vec<f64>],
        n: usize,
        f: impl Fn(f64, f64) -> f64,
    ) -> Cow<'s, [f64]> {
        if let Expr::Constant(k) = b {
            return self.each(a, terms, n, |x| f(x, *k));
        }
        let mut x = self.owned(self.values(a, terms, n), |x| x);
        let y = self.values(b, terms, n);
        x.iter_mut().zip(y.iter()).for_each(|(x, y)| *x = f(*x, *y));
        Cow::Owned(x)
    }
}

fn truth(t: bool) -> f64 {
    if t { 1.0 } else { 0.0 }
}

#[cfg(test)]
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "small test data"
)]
mod tests;
