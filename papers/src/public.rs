//! The example data in memory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use reticent_accounting::{Currency, Relation, Size};
use reticent_engine::books;
use reticent_engine::resolve::{Entry, Resolved};
use reticent_laws::Seeded;
use reticent_mechanisms::program::{Expr, Part, RowProgram, SplitBy};
use reticent_mechanisms::rows::{Batch, Cells, MISSING_CODE, MISSING_INTEGER, Schema};
use reticent_mechanisms::source::{Memory, Order, RowSource};
use reticent_mechanisms::{Answer, Context, Simulated, Unit, simulate};
use reticent_noise::Noise;
use reticent_statistics::Prepared;
use sha2::{Digest, Sha256};

use crate::real;
use crate::study::StudyError;

/// Rows of a batch.
const BATCH: usize = 8192;

/// A plan of `examples/`, resolved, and its table.
pub struct Example {
    /// The plan with its data set.
    pub resolved: Resolved,
    /// All records.
    pub table: Table,
}

impl Example {
    /// Reads `examples/<plan>` of this repository.
    pub fn load(plan: &str) -> Result<Self, StudyError> {
        let resolved = Resolved::load(&examples().join(plan))
            .map_err(|e| StudyError::Example(e.to_string()))?;
        let files =
            books::files(&resolved.dataset).map_err(|e| StudyError::Example(e.to_string()))?;
        let table = Table::read(&files)?;
        Ok(Self { resolved, table })
    }

    /// A release of the plan.
    pub fn entry(&self, id: &str) -> Result<&Entry, StudyError> {
        self.resolved
            .entries
            .iter()
            .find(|e| e.id == id)
            .ok_or_else(|| StudyError::Example(format!("the plan has no release {id}")))
    }

    /// The declared size of a release's records: the size hint times the share of its part.
    pub fn rows(&self, entry: &Entry) -> Option<f64> {
        #[allow(clippy::cast_precision_loss, reason = "a row count")]
        self.resolved
            .public_rows()
            .map(|n| n as f64 * entry.fraction)
    }
}

/// The folder of the examples.
pub fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

/// Records in memory, column by column.
#[derive(Clone, Debug)]
pub struct Table {
    schema: Arc<Schema>,
    columns: Vec<Cells>,
    rows: usize,
}

impl Table {
    /// Reads a source, in file order.
    pub fn read(source: &dyn RowSource) -> Result<Self, StudyError> {
        let schema = source.schema().clone();
        let all: Vec<usize> = (0..schema.columns.len()).collect();
        let batches: Mutex<Vec<Batch>> = Mutex::new(Vec::new());
        source.visit(&all, Order::File, &|batch| {
            batches
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(batch.clone());
        })?;
        let batches = batches.into_inner().unwrap_or_else(PoisonError::into_inner);
        let columns = all
            .iter()
            .map(|c| concatenate(batches.iter().map(|b| b.column(*c))))
            .collect();
        let rows = batches.iter().map(Batch::rows).sum();
        Ok(Self {
            schema,
            columns,
            rows,
        })
    }

    /// Number of records.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The declared columns.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Cells of a column.
    pub fn column(&self, index: usize) -> &Cells {
        self.columns.get(index).unwrap_or(&Cells::Unread)
    }

    /// These records, in this order; a record may come several times.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            schema: self.schema.clone(),
            columns: self.columns.iter().map(|c| pick(c, rows)).collect(),
            rows: rows.len(),
        }
    }

    /// As many records as there are, drawn with replacement.
    #[must_use]
    pub fn resample(&self, noise: &mut Seeded) -> Self {
        let n = self.rows as u128;
        let rows: Vec<usize> = (0..self.rows)
            // Multiply and shift: off from uniform by n/2⁶⁴.
            .map(|_| usize::try_from((u128::from(noise.bits()) * n) >> 64).unwrap_or(0))
            .collect();
        self.select(&rows)
    }

    /// A source over the records.
    pub fn source(&self) -> Memory {
        let batches = (0..self.rows)
            .step_by(BATCH)
            .map(|start| {
                let rows: Vec<usize> = (start..self.rows.min(start + BATCH)).collect();
                Batch::new(
                    rows.len(),
                    self.columns.iter().map(|c| pick(c, &rows)).collect(),
                )
            })
            .collect();
        Memory::new(self.schema.clone(), batches)
    }

    /// The records of a content part, routed by a second implementation of the rule: SHA-256 of the salt, a zero
    /// byte and the tagged cells; the first eight bytes against the cumulative shares.
    pub fn part(&self, part: &Part) -> Vec<usize> {
        let (mut below, mut width) = (0u128, 0u128);
        let last = part.split.parts.len() - 1;
        for (i, (_, n, d)) in part.split.parts.iter().enumerate().take(part.index + 1) {
            below += width;
            width = if i == last {
                (1 << 64) - below
            } else {
                (u128::from(*n) << 64) / u128::from(*d)
            };
        }
        (0..self.rows)
            .filter(|row| {
                let mut hash = Sha256::new();
                hash.update(part.split.salt.as_bytes());
                hash.update([0]);
                match part.split.by {
                    SplitBy::Column(c) => hash.update(tagged(self.column(c), *row)),
                    SplitBy::Content => self
                        .columns
                        .iter()
                        .for_each(|c| hash.update(tagged(c, *row))),
                }
                let digest = hash.finalize();
                let mut first = [0; 8];
                first.copy_from_slice(&digest[..8]);
                let at = u128::from(u64::from_le_bytes(first));
                (below..below + width).contains(&at)
            })
            .collect()
    }
}

/// A cell as the routing rule hashes it.
fn tagged(cells: &Cells, row: usize) -> Vec<u8> {
    let with = |tag: u8, bytes: &[u8]| [&[tag], bytes].concat();
    match cells {
        Cells::Integer(v) if v[row] != MISSING_INTEGER => with(1, &v[row].to_le_bytes()),
        Cells::Real(v) if !v[row].is_nan() => with(2, &(v[row] + 0.0).to_bits().to_le_bytes()),
        Cells::Code(v) if v[row] != MISSING_CODE => with(3, &v[row].to_le_bytes()),
        Cells::Id(v) => with(4, &v[row].to_le_bytes()),
        _ => vec![0],
    }
}

fn pick(cells: &Cells, rows: &[usize]) -> Cells {
    match cells {
        Cells::Integer(v) => Cells::Integer(rows.iter().map(|r| v[*r]).collect()),
        Cells::Real(v) => Cells::Real(rows.iter().map(|r| v[*r]).collect()),
        Cells::Code(v) => Cells::Code(rows.iter().map(|r| v[*r]).collect()),
        Cells::Id(v) => Cells::Id(rows.iter().map(|r| v[*r]).collect()),
        Cells::Unread => Cells::Unread,
    }
}

fn concatenate<'a>(mut parts: impl Iterator<Item = &'a Cells>) -> Cells {
    let Some(first) = parts.next() else {
        return Cells::Unread;
    };
    parts.fold(first.clone(), |all, next| match (all, next) {
        (Cells::Integer(a), Cells::Integer(b)) => Cells::Integer([a.as_slice(), b].concat()),
        (Cells::Real(a), Cells::Real(b)) => Cells::Real([a.as_slice(), b].concat()),
        (Cells::Code(a), Cells::Code(b)) => Cells::Code([a.as_slice(), b].concat()),
        (Cells::Id(a), Cells::Id(b)) => Cells::Id([a.as_slice(), b].concat()),
        _ => Cells::Unread,
    })
}

/// The context of a release on one record per person.
pub(crate) fn context(relation: Relation, currency: Currency, size: Size) -> Context {
    Context {
        relation,
        currency,
        size,
        rows_per_unit: 1,
    }
}

/// Runs a release on a source that holds exactly its records.
pub(crate) fn release(
    source: &Memory,
    context: &Context,
    filter: Option<&Expr>,
    prepared: &Prepared,
    noise: &mut dyn Noise,
) -> Result<Answer, StudyError> {
    let program = RowProgram {
        terms: prepared.terms.clone(),
        filter: filter.cloned(),
        part: None,
    };
    let Simulated((answer, _)) = simulate(
        source,
        Unit::Row,
        context,
        &program,
        prepared.mechanism.as_ref(),
        noise,
    )
    .map_err(StudyError::release)?;
    Ok(answer)
}

/// The two relations, with the words of the tables.
pub(crate) const RELATIONS: [(Relation, &str); 2] = [
    (Relation::AddRemove, "add/remove"),
    (Relation::ReplaceOne, "replace-one"),
];

/// Mean of some numbers.
pub(crate) fn mean(xs: &[f64]) -> f64 {
    xs.iter().sum::<f64>() / real(xs.len().max(1))
}
