// What the examples of the primitives share: public counts of a grid of cells, one purchase at a desk, seeded noise.
// A release goes through the door instead, with the same code from the exact sums on.
use reticent_accounting::{AccountingError, Event, Rational, Relation};
use reticent_mechanisms::fold::{Axis, CellSum, Cut, FixedPoint, Fold, Shorten};
use reticent_mechanisms::primitives::*;
use reticent_mechanisms::program::{Expr, Interval, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism, Unit, simulate};

/// Records are protected as added or removed.
fn context() -> Context {
    Context::records(Relation::AddRemove)
}

/// Buys from a table with so many records in each cell of a grid (row-major).
fn buy<A: Send>(
    counts: &[u32],
    shape: &[u32],
    event: Event,
    purchase: impl Fn(&mut Desk<'_>, FoldId) -> Result<A, DeskError> + Send + Sync,
) -> A {
    let axis = |(term, cells): (usize, &u32)| Axis { term, cut: Cut::Whole(*cells) };
    let axes = shape.iter().enumerate().map(axis).collect();
    let mut columns = vec![Vec::new(); shape.len()];
    for (cell, count) in counts.iter().enumerate() {
        let mut rest = cell;
        for (column, cells) in columns.iter_mut().zip(shape).rev() {
            let at = rest % *cells as usize;
            column.extend((0..*count).map(|_| at as f64));
            rest /= *cells as usize;
        }
    }
    buy_from(Fold::Grid { axes, sum: None }, columns, event, purchase)
}

/// Buys from the sums of a fold over these columns of numbers from 0 to 1000.
fn buy_from<A: Send>(
    fold: Fold,
    columns: Vec<Vec<f64>>,
    event: Event,
    purchase: impl Fn(&mut Desk<'_>, FoldId) -> Result<A, DeskError> + Send + Sync,
) -> A {
    let terms = (0..columns.len()).map(Expr::Column).collect();
    buy_terms(Some(fold), terms, columns, event, purchase)
}

/// Buys from the sums of a fold over expressions of these columns, or from the rows if there is no fold.
fn buy_terms<A: Send>(
    fold: Option<Fold>,
    terms: Vec<Expr>,
    columns: Vec<Vec<f64>>,
    event: Event,
    purchase: impl Fn(&mut Desk<'_>, FoldId) -> Result<A, DeskError> + Send + Sync,
) -> A {
    struct Step<A, F>(Option<Fold>, Event, F, std::sync::Mutex<Option<A>>);
    impl<A: Send, F: Fn(&mut Desk<'_>, FoldId) -> Result<A, DeskError> + Send + Sync> Mechanism for Step<A, F> {
        fn kind(&self) -> &'static str {
            "example"
        }
        fn event(&self, _: &Context) -> Result<Event, AccountingError> {
            Ok(self.1.clone())
        }
        fn first_pass(&self) -> Vec<Fold> {
            self.0.iter().cloned().collect()
        }
        fn passes(&self) -> u32 {
            u32::from(self.0.is_none())
        }
        fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
            *self.3.lock().unwrap() = Some((self.2)(desk, FoldId(0))?);
            Ok(Answer::default())
        }
    }
    let column = |c: usize| Column {
        name: format!("x{c}"),
        kind: Kind::Real { lower: 0.0, upper: 1000.0 },
        missing: Missing::Drop,
    };
    let schema = std::sync::Arc::new(Schema { columns: (0..columns.len()).map(column).collect() });
    let program = RowProgram { terms, ..RowProgram::default() };
    let cells = columns.into_iter().map(Cells::Real).collect::<Vec<_>>();
    let rows = cells.first().map_or(0, |c| if let Cells::Real(v) = c { v.len() } else { 0 });
    let source = Memory::new(schema, vec![Batch::new(rows, cells)]);
    let step = Step(fold, event, purchase, std::sync::Mutex::new(None));
    let mut noise = reticent_laws::Seeded::new(7);
    simulate(&source, Unit::Row, &context(), &program, &step, &mut noise).unwrap();
    step.3.into_inner().unwrap().unwrap()
}
