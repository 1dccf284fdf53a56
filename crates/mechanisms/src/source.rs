//! Where rows come from. A source hands decoded batches to the folds and learns nothing back.

use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use crate::desk::MOST_ENTRIES;
use crate::evaluate::{Admission, Evaluated, Prepared, Spare, Unit};
use crate::fold::{Fold, State};
use crate::program::{Interval, ProgramError, RowProgram};
use crate::rows::{Batch, Schema};

/// A failure of the machine while reading; never decided by the content of rows.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The data could not be read.
    #[error("{context}: {source}")]
    Io {
        /// What was being read.
        context: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The data are not in the declared format (found after registration: the file is damaged).
    #[error("{0}")]
    Format(String),
    /// A program does not fit the schema.
    #[error(transparent)]
    Program(#[from] ProgramError),
}

/// Whether batches must come one after the other in file order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Any order, any number of threads.
    Any,
    /// File order, one at a time.
    File,
}

/// A program and the folds to compute over the records that count for it.
#[derive(Clone, Debug)]
pub struct Job {
    /// What to read from each record.
    pub program: RowProgram,
    /// What to add up.
    pub folds: Vec<Fold>,
}

/// The numbers of the records that count, kept inside the door for methods that pass over them often.
#[derive(Default)]
pub struct Held {
    /// Number of records.
    pub(crate) rows: usize,
    /// One column per term, in blocks as they were read: `blocks[b][term]`.
    pub(crate) blocks: Vec<Vec<Vec<f64>>>,
}

impl Held {
    /// Adds records. Beyond `most` numbers nothing is kept, and further passes read again.
    fn push(&mut self, rows: Evaluated, most: usize) {
        self.rows = self.rows.saturating_add(rows.rows);
        let numbers = self.rows.saturating_mul(rows.terms.len());
        self.blocks.push(rows.terms);
        if numbers > most {
            self.blocks.clear();
        }
    }

    /// Whether all records are still there.
    fn is_whole(&self) -> bool {
        self.rows == 0 || !self.blocks.is_empty()
    }

    /// Folds over the records as they were read.
    pub(crate) fn scan(&mut self, folds: &[Fold], bounds: &[Interval]) -> Vec<State> {
        let mut states: Vec<State> = folds.iter().map(Fold::zero).collect();
        for block in &mut self.blocks {
            let rows = Evaluated {
                rows: block.first().map_or(0, Vec::len),
                terms: std::mem::take(block),
            };
            for (fold, state) in folds.iter().zip(&mut states) {
                fold.add(state, &rows, bounds);
            }
            *block = rows.terms;
        }
        states
    }
}

/// What one pass computed for a job.
#[derive(Default)]
pub struct Scanned {
    pub(crate) states: Vec<State>,
    /// The terms of the records, if they were wanted and few enough.
    pub(crate) kept: Option<Held>,
}

impl From<Vec<State>> for Scanned {
    fn from(states: Vec<State>) -> Self {
        Self { states, kept: None }
    }
}

/// A table of confidential rows: files, Arrow batches in memory, later a cluster.
pub trait RowSource: Send + Sync {
    /// The declared columns; batches are decoded accordingly.
    fn schema(&self) -> &Arc<Schema>;

    /// Hands every row over exactly once, in batches (columns not in `columns` may be
    /// [`crate::rows::Cells::Unread`]). With [`Order::Any`], `visit` may be called from several threads.
    fn visit(
        &self,
        columns: &[usize],
        order: Order,
        visit: &(dyn Fn(&Batch) + Sync),
    ) -> Result<(), SourceError>;

    /// Computes the folds of all jobs in one pass.
    fn scan(&self, unit: Unit, jobs: &[Job]) -> Result<Vec<Vec<State>>, SourceError> {
        let scanned = self.scan_keeping(unit, jobs, &vec![false; jobs.len()])?;
        Ok(scanned.into_iter().map(|s| s.states).collect())
    }

    /// The same; the terms of the jobs marked in `keep` may be kept for further passes. A cluster source overrides this, ships the
    /// jobs and keeps nothing.
    fn scan_keeping(
        &self,
        unit: Unit,
        jobs: &[Job],
        keep: &[bool],
    ) -> Result<Vec<Scanned>, SourceError> {
        let keep: Vec<bool> = (keep.iter().zip(jobs))
            .map(|(keep, job)| *keep && !job.program.terms.is_empty())
            .collect();
        // all jobs of a pass share the memory
        let shares = keep.iter().filter(|k| **k).count().max(1);
        let most = MOST_ENTRIES.checked_div(shares).unwrap_or(MOST_ENTRIES);
        pass(self, unit, jobs, &keep, most)
    }

    /// Reads the terms of a program into memory, however many they are.
    fn hold(&self, unit: Unit, program: &RowProgram) -> Result<Held, SourceError> {
        let job = Job {
            program: program.clone(),
            folds: Vec::new(),
        };
        let mut scanned = pass(self, unit, &[job], &[true], usize::MAX)?;
        let kept = scanned.pop().and_then(|s| s.kept);
        Ok(kept.unwrap_or_default())
    }
}

/// One pass over the rows: the folds of all jobs, and the terms of those marked in `keep` if they are at most `most` numbers.
fn pass<S: RowSource + ?Sized>(
    source: &S,
    unit: Unit,
    jobs: &[Job],
    keep: &[bool],
    most: usize,
) -> Result<Vec<Scanned>, SourceError> {
    let schema = source.schema();
    let prepared = jobs
        .iter()
        .map(|j| Prepared::new(&j.program, schema))
        .collect::<Result<Vec<_>, _>>()?;
    let needs = needed(&prepared, schema, unit);
    let order = order(unit);
    let zero = || {
        let states = |j: &Job| j.folds.iter().map(Fold::zero).collect();
        let all: Vec<Vec<State>> = jobs.iter().map(states).collect();
        (all, Spare::default())
    };
    let pool = Mutex::new(Vec::new());
    let kept: Vec<Option<Mutex<Held>>> = keep.iter().map(|k| k.then(Mutex::default)).collect();
    let admission = Mutex::new(Admission::default());
    source.visit(&needs, order, &|batch| {
        let admitted = lock(&admission).admit(unit, batch);
        let (mut states, mut spare) = lock(&pool).pop().unwrap_or_else(zero);
        for (((prepared, job), states), kept) in
            prepared.iter().zip(jobs).zip(&mut states).zip(&kept)
        {
            let rows = prepared.run(schema, unit, batch, &admitted, &mut spare);
            for (fold, state) in job.folds.iter().zip(states) {
                fold.add(state, &rows, prepared.bounds());
            }
            match kept {
                Some(kept) => lock(kept).push(rows, most),
                None => spare.give(rows.terms),
            }
        }
        lock(&pool).push((states, spare));
    })?;
    let mut total = zero().0;
    for (partial, _) in lock(&pool).iter() {
        for (job, partial) in total.iter_mut().zip(partial) {
            job.iter_mut().zip(partial).for_each(|(a, b)| a.merge(b));
        }
    }
    let held = |k: Mutex<Held>| k.into_inner().unwrap_or_else(PoisonError::into_inner);
    let kept = kept.into_iter().map(|k| k.map(held).filter(Held::is_whole));
    Ok(total
        .into_iter()
        .zip(kept)
        .map(|(states, kept)| Scanned { states, kept })
        .collect())
}

fn needed(prepared: &[Prepared], schema: &Schema, unit: Unit) -> Vec<usize> {
    let mut needs: Vec<usize> = prepared
        .iter()
        .flat_map(|p| p.needs(schema, unit))
        .collect();
    needs.sort_unstable();
    needs.dedup();
    needs
}

fn order(unit: Unit) -> Order {
    match unit {
        Unit::Row => Order::Any,
        Unit::Column { .. } => Order::File,
    }
}

/// A poisoned lock only means that another thread of the same scan died; its rows are lost with the scan.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Batches already in memory.
pub struct Memory {
    schema: Arc<Schema>,
    batches: Vec<Batch>,
}

impl Memory {
    /// A source over decoded batches.
    pub fn new(schema: Arc<Schema>, batches: Vec<Batch>) -> Self {
        Self { schema, batches }
    }
}

impl RowSource for Memory {
    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn visit(
        &self,
        _: &[usize],
        order: Order,
        visit: &(dyn Fn(&Batch) + Sync),
    ) -> Result<(), SourceError> {
        match order {
            Order::Any => self.batches.par_iter().for_each(visit),
            Order::File => self.batches.iter().for_each(visit),
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "small test data"
)]
mod tests {
    use reticent_laws::Seeded;
    use reticent_noise::Noise;

    use super::*;
    use crate::fold::{Axis, CellSum, Cut, FixedPoint};
    use crate::program::Expr;
    use crate::rows::{Cells, Column, Kind, Missing};

    fn schema() -> Arc<Schema> {
        let column = |name: &str, kind| Column {
            name: name.to_owned(),
            kind,
            missing: Missing::Drop,
        };
        Arc::new(Schema {
            columns: vec![
                column("who", Kind::Id),
                column(
                    "x",
                    Kind::Real {
                        lower: 0.0,
                        upper: 1.0,
                    },
                ),
            ],
        })
    }

    /// The same rows cut into batches of these lengths.
    fn batches(lengths: &[usize]) -> Memory {
        let mut random = Seeded::new(6);
        let batches = lengths
            .iter()
            .map(|n| {
                let (ids, xs) = (0..*n)
                    .map(|_| {
                        let bits = random.bits();
                        (
                            u128::from(bits % 400),
                            (bits >> 32) as f64 / 4_294_967_296.0,
                        )
                    })
                    .unzip();
                Batch::new(*n, vec![Cells::Id(ids), Cells::Real(xs)])
            })
            .collect();
        Memory::new(schema(), batches)
    }

    fn job() -> Job {
        let axes = vec![Axis {
            term: 0,
            cut: Cut::Even {
                lower: 0.0,
                upper: 1.0,
                cells: 8,
            },
        }];
        let sum = Some(CellSum {
            term: 0,
            fixed: FixedPoint { bits: 30 },
            limits: Vec::new(),
        });
        Job {
            program: RowProgram {
                terms: vec![Expr::Column(1)],
                ..RowProgram::default()
            },
            folds: vec![
                Fold::Grid { axes, sum },
                Fold::Grid {
                    axes: Vec::new(),
                    sum: None,
                },
            ],
        }
    }

    /// Sums do not depend on how rows come in batches or on which thread adds them; with units of several rows
    /// neither does the choice of the rows that count.
    #[test]
    fn batches_and_threads_do_not_matter() {
        let cuts: [&[usize]; 4] = [&[3000], &[1, 2999], &[0, 1000, 0, 1000, 1000], &[30; 100]];
        for unit in [
            Unit::Row,
            Unit::Column {
                column: 0,
                max_rows: 5,
            },
        ] {
            let jobs = [job(), job()];
            let first = batches(cuts[0]).scan(unit, &jobs).unwrap();
            let total: i128 = first[0][1].0[0];
            match unit {
                Unit::Row => assert_eq!(total, 3000),
                Unit::Column { .. } => assert!((1500..=2000).contains(&total), "{total}"),
            }
            for cut in cuts {
                let source = batches(cut);
                for _ in 0..5 {
                    assert!(source.scan(unit, &jobs).unwrap() == first, "{cut:?}");
                }
                let held = source.hold(unit, &job().program).unwrap();
                assert_eq!(i128::try_from(held.rows).unwrap(), total);
                let lengths: usize = held.blocks.iter().map(|b| b[0].len()).sum();
                assert_eq!(lengths, held.rows);
            }
        }
    }

    /// Folds over kept records are those of another reading, whatever the unit; too many numbers are not kept.
    #[test]
    fn kept_records_give_the_same_folds() {
        let want = |unit| batches(&[3000]).scan(unit, &[job()]).unwrap().remove(0);
        for unit in [
            Unit::Row,
            Unit::Column {
                column: 0,
                max_rows: 5,
            },
        ] {
            let source = batches(&[500, 0, 1300, 1200]);
            let mut scanned = source
                .scan_keeping(unit, &[job(), job()], &[true, false])
                .unwrap();
            assert!(scanned[1].kept.is_none() && scanned[0].states == want(unit));
            let held = scanned[0].kept.as_mut().unwrap();
            let bounds = job().program.bounds(&schema()).unwrap();
            for _ in 0..2 {
                assert!(held.scan(&job().folds, &bounds) == want(unit));
            }
        }
        let mut held = Held::default();
        let rows = || Evaluated {
            rows: 5,
            terms: vec![vec![0.0; 5]; 2],
        };
        assert!(held.is_whole());
        held.push(rows(), 15);
        assert!(held.blocks.len() == 1 && held.is_whole());
        for _ in 0..2 {
            held.push(rows(), 15);
            assert!(held.blocks.is_empty() && !held.is_whole());
        }
    }

    /// Jobs without folds get empty lists in their places; without any fold the rows are not read.
    #[test]
    fn jobs_without_folds_are_skipped() {
        struct Sealed(Arc<Schema>);
        impl RowSource for Sealed {
            fn schema(&self) -> &Arc<Schema> {
                &self.0
            }
            fn visit(
                &self,
                _: &[usize],
                _: Order,
                _: &(dyn Fn(&Batch) + Sync),
            ) -> Result<(), SourceError> {
                panic!("read")
            }
        }
        let empty = Job {
            folds: Vec::new(),
            ..job()
        };
        let source = batches(&[500, 500]);
        let want = source.scan(Unit::Row, &[job()]).unwrap().remove(0);
        let jobs = [empty.clone(), job(), empty.clone()];
        let mixed = crate::mechanism::scan(&source, Unit::Row, &jobs, &[true; 3]).unwrap();
        let states: Vec<_> = mixed.iter().map(|s| s.states.clone()).collect();
        assert!(states == [Vec::new(), want, Vec::new()]);
        let kept: Vec<bool> = mixed.iter().map(|s| s.kept.is_some()).collect();
        assert_eq!(kept, [false, true, false]);
        let none = crate::mechanism::scan(&Sealed(schema()), Unit::Row, &[empty], &[true]).unwrap();
        assert!(none[0].states.is_empty() && none[0].kept.is_none());
    }

    /// A job gets the same answer alone and beside others.
    #[test]
    fn jobs_do_not_see_each_other() {
        let filtered = Job {
            program: RowProgram {
                filter: Some(Expr::Compare(
                    crate::program::Comparison::Less,
                    Box::new(Expr::Column(1)),
                    Box::new(Expr::Constant(0.25)),
                )),
                ..job().program
            },
            ..job()
        };
        let source = batches(&[500, 500]);
        let together = source.scan(Unit::Row, &[job(), filtered.clone()]).unwrap();
        let alone = |j: Job| source.scan(Unit::Row, &[j]).unwrap().remove(0);
        assert!(together[0] == alone(job()) && together[1] == alone(filtered));
        assert!(together[1][1].0[0] < together[0][1].0[0]);
    }
}
