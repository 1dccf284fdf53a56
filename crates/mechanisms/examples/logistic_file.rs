//! Time and peak memory of one private logistic fit on rows in a file; driven by `benches/logistic.py`.
//!
//! `logistic_file <rows.f64> <columns>`: row-major little-endian doubles, covariates in the unit ball, then the
//! outcome. Prints one line: seconds in all, seconds reading, peak memory over the bytes of the f64 design.
#![allow(clippy::cast_precision_loss, reason = "sizes as doubles")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rayon::prelude::*;
use reticent_accounting::{AccountingError, Event, Rational, Relation};
use reticent_mechanisms::fold::Fold;
use reticent_mechanisms::primitives::Objective;
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::{Order, RowSource, SourceError};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, Mechanism, Unit, simulate};
use reticent_noise::Draws;

const BATCH: usize = 8192;

struct Raw {
    schema: Arc<Schema>,
    file: File,
    rows: usize,
    width: usize,
    seconds: Mutex<f64>,
}

impl Raw {
    fn batch(&self, index: usize) -> std::io::Result<Batch> {
        let n = BATCH.min(self.rows - index * BATCH);
        let mut bytes = vec![0; n * self.width * 8];
        let start = index * BATCH * self.width * 8;
        self.file.read_exact_at(&mut bytes, start as u64)?;
        let mut columns: Vec<Vec<f64>> = vec![Vec::with_capacity(n); self.width];
        for row in bytes.chunks_exact(self.width * 8) {
            for (column, cell) in columns.iter_mut().zip(row.chunks_exact(8)) {
                column.push(f64::from_le_bytes(cell.try_into().unwrap_or_default()));
            }
        }
        Ok(Batch::new(
            n,
            columns.into_iter().map(Cells::Real).collect(),
        ))
    }
}

impl RowSource for Raw {
    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }
    fn visit(
        &self,
        _: &[usize],
        _: Order,
        visit: &(dyn Fn(&Batch) + Sync),
    ) -> Result<(), SourceError> {
        let start = Instant::now();
        let batches = (0..self.rows.div_ceil(BATCH)).into_par_iter();
        batches
            .try_for_each(|i| self.batch(i).map(|batch| visit(&batch)))
            .map_err(|source| SourceError::Io {
                context: "rows".to_owned(),
                source,
            })?;
        *self.seconds.lock().unwrap() += start.elapsed().as_secs_f64();
        Ok(())
    }
}

struct Fit(Objective);

impl Mechanism for Fit {
    fn kind(&self) -> &'static str {
        "logistic"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(self.0.event(context))
    }
    fn first_pass(&self) -> Vec<Fold> {
        vec![]
    }
    fn passes(&self) -> u32 {
        1
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let fit = desk.objective(&self.0)?;
        assert!(fit.coefficients.iter().all(|c| c.is_finite()));
        Ok(Answer::default())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, columns] = arguments.as_slice() else {
        return Err("usage: logistic_file <rows.f64> <columns>".into());
    };
    let columns: usize = columns.parse()?;
    let file = File::open(path)?;
    let rows = usize::try_from(file.metadata()?.len())? / (8 * (columns + 1));
    let column = |i| Column {
        name: format!("x{i}"),
        kind: Kind::Real {
            lower: -1.0,
            upper: 1.0,
        },
        missing: Missing::Drop,
    };
    let source = Raw {
        schema: Arc::new(Schema {
            columns: (0..=columns).map(column).collect(),
        }),
        file,
        rows,
        width: columns + 1,
        seconds: Mutex::new(0.0),
    };
    let program = RowProgram {
        terms: (0..=columns).map(Expr::Column).collect(),
        filter: None,
        part: None,
    };
    // ε = 1; the driver gives its peer the same penalty, C = 1/Λ = .4.
    let fit = Fit(Objective {
        name: "fit".to_owned(),
        epsilon: Rational::ONE,
        covariates: 0..columns,
        outcome: columns,
        intercept: Some(0.25),
        radius: 1.0,
        penalty: Rational::from(5u8) / Rational::from(2u8),
    });
    let start = Instant::now();
    simulate(
        &source,
        Unit::Row,
        &Context::records(Relation::ReplaceOne),
        &program,
        &fit,
        &mut Draws::from_os()?,
    )?;
    let total = start.elapsed().as_secs_f64();
    let reading = *source.seconds.lock().unwrap();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak: f64 = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .and_then(|l| l.trim().trim_end_matches(" kB").trim().parse().ok())
        .unwrap_or(f64::NAN);
    let design = (rows * columns * 8) as f64;
    println!("{total} {reading} {}", peak * 1024.0 / design);
    Ok(())
}
