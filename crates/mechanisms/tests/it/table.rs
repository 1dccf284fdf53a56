//! Tables in memory and a mechanism that makes one purchase.

use std::sync::{Arc, Mutex};

use reticent_accounting::{AccountingError, Event};
use reticent_mechanisms::fold::Fold;
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Answer, Context, Desk, DeskError, Mechanism, Unit, simulate};
use reticent_noise::Noise;

/// Columns of reals with bounds ±`bound`, cut into batches of `batch` rows.
pub(crate) fn memory(columns: &[Vec<f64>], bound: f64, batch: usize) -> Memory {
    let schema = Schema {
        columns: (0..columns.len())
            .map(|i| Column {
                name: format!("x{i}"),
                kind: Kind::Real {
                    lower: -bound,
                    upper: bound,
                },
                missing: Missing::Drop,
            })
            .collect(),
    };
    let n = columns.first().map_or(0, Vec::len);
    let batches = (0..n)
        .step_by(batch)
        .map(|start| {
            let rows = start..(start + batch).min(n);
            Batch::new(
                rows.len(),
                columns
                    .iter()
                    .map(|c| Cells::Real(c[rows.clone()].to_vec()))
                    .collect(),
            )
        })
        .collect();
    Memory::new(Arc::new(schema), batches)
}

pub(crate) fn program(columns: usize) -> RowProgram {
    RowProgram {
        terms: (0..columns).map(Expr::Column).collect(),
        filter: None,
        part: None,
    }
}

type Purchase<T> = dyn Fn(&mut Desk<'_>) -> Result<T, DeskError> + Send + Sync;

struct Once<'a, T> {
    event: Event,
    folds: Vec<Fold>,
    buy: &'a Purchase<T>,
    bought: Mutex<Option<T>>,
}

impl<T: Send> Mechanism for Once<'_, T> {
    fn kind(&self) -> &'static str {
        "once"
    }
    fn event(&self, _: &Context) -> Result<Event, AccountingError> {
        Ok(self.event.clone())
    }
    fn first_pass(&self) -> Vec<Fold> {
        self.folds.clone()
    }
    fn passes(&self) -> u32 {
        1
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        *self.bought.lock().unwrap() = Some((self.buy)(desk)?);
        Ok(Answer::default())
    }
}

/// Makes one purchase on a table.
pub(crate) fn buy<T: Send>(
    source: &Memory,
    columns: usize,
    context: &Context,
    event: Event,
    folds: Vec<Fold>,
    noise: &mut dyn Noise,
    buy: &Purchase<T>,
) -> Result<T, DeskError> {
    let once = Once {
        event,
        folds,
        buy,
        bought: Mutex::new(None),
    };
    simulate(source, Unit::Row, context, &program(columns), &once, noise)?;
    Ok(once.bought.into_inner().unwrap().unwrap())
}
