//! Small worlds: all tables over a few privacy units, and which of them are neighbours.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use reticent_accounting::Relation;
use reticent_mechanisms::Unit;
use reticent_mechanisms::fold::{Fold, State};
use reticent_mechanisms::program::RowProgram;
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, MISSING_INTEGER, Missing, Schema};
use reticent_mechanisms::source::{Job, Order, RowSource, Scanned, SourceError};

/// One row: a number per column. Integer columns round it (NaN is missing), level columns take it as an index,
/// id columns ignore it.
pub type Row = Vec<f64>;

/// How often each unit of a [`Universe`] occurs.
pub type Multiset = Vec<u32>;

/// The privacy units that tables are made of. With [`Unit::Row`] every unit has one row.
#[derive(Clone, Debug)]
pub struct Universe {
    schema: Arc<Schema>,
    units: Vec<Vec<Row>>,
}

impl Universe {
    /// Units with any number of rows; an [`Kind::Id`] column gets one identifier per occurrence of a unit.
    pub fn new(schema: Schema, units: Vec<Vec<Row>>) -> Self {
        Self {
            schema: Arc::new(schema),
            units,
        }
    }

    /// Units of one row.
    pub fn rows(schema: Schema, rows: Vec<Row>) -> Self {
        Self::new(schema, rows.into_iter().map(|r| vec![r]).collect())
    }

    /// One real column `x` with declared bounds, a unit per value.
    pub fn reals(lower: f64, upper: f64, values: &[f64]) -> Self {
        let schema = Schema {
            columns: vec![real("x", lower, upper)],
        };
        Self::rows(schema, values.iter().map(|v| vec![*v]).collect())
    }

    /// Number of different units.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether there is no unit at all.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// All tables of at most `most` units, the empty one first.
    pub fn tables(&self, most: u32) -> Vec<Multiset> {
        let mut tables = vec![Vec::new()];
        for _ in &self.units {
            tables = tables
                .into_iter()
                .flat_map(|t: Multiset| {
                    let left = most - t.iter().sum::<u32>();
                    (0..=left).map(move |c| {
                        let mut t = t.clone();
                        t.push(c);
                        t
                    })
                })
                .collect();
        }
        tables
    }

    /// A table as a source of rows.
    pub fn source(&self, table: &Multiset) -> Table {
        let mut rows: Vec<(u128, &Row)> = Vec::new();
        let mut id = 0;
        for (unit, count) in self.units.iter().zip(table) {
            for _ in 0..*count {
                id += 1;
                rows.extend(unit.iter().map(|r| (id, r)));
            }
        }
        let column = |c: usize| match &self.schema.columns[c].kind {
            Kind::Real { .. } => Cells::Real(rows.iter().map(|(_, r)| r[c]).collect()),
            Kind::Integer { .. } => Cells::Integer(rows.iter().map(|(_, r)| whole(r[c])).collect()),
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "level indices are small whole numbers"
            )]
            Kind::Levels { .. } => Cells::Code(rows.iter().map(|(_, r)| r[c] as u32).collect()),
            Kind::Id => Cells::Id(rows.iter().map(|(id, _)| *id).collect()),
        };
        let columns = (0..self.schema.columns.len()).map(column).collect();
        Table {
            schema: self.schema.clone(),
            batch: Batch::new(rows.len(), columns),
            seen: Mutex::new(Vec::new()),
        }
    }
}

/// A real column that drops missing cells.
pub fn real(name: &str, lower: f64, upper: f64) -> Column {
    Column {
        name: name.to_owned(),
        kind: Kind::Real { lower, upper },
        missing: Missing::Drop,
    }
}

/// An identifier column.
pub fn id(name: &str) -> Column {
    Column {
        name: name.to_owned(),
        kind: Kind::Id,
        missing: Missing::Drop,
    }
}

fn whole(x: f64) -> i64 {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "test data are small whole numbers"
    )]
    if x.is_nan() {
        MISSING_INTEGER
    } else {
        x.round() as i64
    }
}

/// Positions of neighbouring tables, each pair once.
pub fn neighbours(tables: &[Multiset], relation: Relation) -> Vec<(usize, usize)> {
    let position: BTreeMap<&Multiset, usize> =
        tables.iter().enumerate().map(|(i, t)| (t, i)).collect();
    let mut pairs = BTreeSet::new();
    let mut note = |i: usize, other: &Multiset| {
        if let Some(j) = position.get(other) {
            pairs.insert((i.min(*j), i.max(*j)));
        }
    };
    for (i, table) in tables.iter().enumerate() {
        let mut other = table.clone();
        for u in 0..table.len() {
            other[u] += 1;
            match relation {
                Relation::AddRemove => note(i, &other),
                Relation::ReplaceOne => {
                    for v in (0..table.len()).filter(|v| *v != u && table[*v] > 0) {
                        other[v] -= 1;
                        note(i, &other);
                        other[v] += 1;
                    }
                }
            }
            other[u] -= 1;
        }
    }
    pairs.into_iter().collect()
}

type Pass = (RowProgram, Vec<Fold>, Vec<State>);

/// A table in memory that remembers the results of earlier passes, so that enumerating a mechanism's noise does
/// not read the same rows ten thousand times. The first pass of each kind runs the shipped code.
pub struct Table {
    schema: Arc<Schema>,
    batch: Batch,
    seen: Mutex<Vec<Pass>>,
}

/// The same rows without the memory of earlier passes.
struct Bare<'a>(&'a Table);

impl RowSource for Bare<'_> {
    fn schema(&self) -> &Arc<Schema> {
        &self.0.schema
    }
    fn visit(
        &self,
        _: &[usize],
        _: Order,
        visit: &(dyn Fn(&Batch) + Sync),
    ) -> Result<(), SourceError> {
        visit(&self.0.batch);
        Ok(())
    }
}

impl RowSource for Table {
    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn visit(
        &self,
        columns: &[usize],
        order: Order,
        visit: &(dyn Fn(&Batch) + Sync),
    ) -> Result<(), SourceError> {
        Bare(self).visit(columns, order, visit)
    }

    fn scan_keeping(
        &self,
        unit: Unit,
        jobs: &[Job],
        _: &[bool],
    ) -> Result<Vec<Scanned>, SourceError> {
        let states = self.scan(unit, jobs)?;
        Ok(states.into_iter().map(Scanned::from).collect())
    }

    fn scan(&self, unit: Unit, jobs: &[Job]) -> Result<Vec<Vec<State>>, SourceError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut results = Vec::new();
        for job in jobs {
            let known = seen
                .iter()
                .find(|(p, f, _)| *p == job.program && *f == job.folds);
            if let Some((_, _, states)) = known {
                results.push(states.clone());
            } else {
                let mut fresh = Bare(self).scan(unit, std::slice::from_ref(job))?;
                let states = fresh.pop().unwrap_or_default();
                seen.push((job.program.clone(), job.folds.clone(), states.clone()));
                results.push(states);
            }
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tables_and_their_neighbours() {
        let universe = Universe::reals(0.0, 3.0, &[0.0, 1.0, 2.0, 3.0]);
        let tables = universe.tables(4);
        // multisets of at most 4 of 4 units: C(8, 4)
        assert_eq!(tables.len(), 70);
        // every table of size n < 4 has 4 neighbours above it: 1 + 4 + 10 + 20 tables
        assert_eq!(neighbours(&tables, Relation::AddRemove).len(), 35 * 4);
        // replace-one pairs are pairs with a common sub-table of n-1 units: C(4,2) pairs for each of 35
        assert_eq!(neighbours(&tables, Relation::ReplaceOne).len(), 35 * 6);
    }
}
