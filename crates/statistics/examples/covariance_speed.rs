//! One private covariance release of rows in memory, timed whenever a line arrives; driven by `benches/covariance.py`.
//!
//! `covariance_speed <rows.f64> <columns>`: row-major little-endian doubles within [−1, 1]. Prints seconds, a line per release.

use std::io::BufRead;
use std::sync::Arc;
use std::time::Instant;

use reticent_accounting::{Currency, Relation, parse_decimal};
use reticent_mechanisms::primitives::Payment;
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Context, Unit, simulate};
use reticent_noise::Draws;
use reticent_statistics::{Facts, covariance};

const BATCH: usize = 2048;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, columns] = arguments.as_slice() else {
        return Err("usage: covariance_speed <rows.f64> <columns>".into());
    };
    let d: usize = columns.parse()?;
    let bytes = std::fs::read(path)?;
    let numbers: Vec<f64> = bytes
        .chunks_exact(8)
        .filter_map(|b| Some(f64::from_le_bytes(b.try_into().ok()?)))
        .collect();
    let batches: Vec<Batch> = numbers
        .chunks(BATCH * d)
        .map(|rows| {
            let column = |j: usize| Cells::Real(rows.iter().skip(j).step_by(d).copied().collect());
            Batch::new(rows.len() / d, (0..d).map(column).collect())
        })
        .collect();
    drop((bytes, numbers));
    let column = |j| Column {
        name: format!("x{j}"),
        kind: Kind::Real {
            lower: -1.0,
            upper: 1.0,
        },
        missing: Missing::Drop,
    };
    let schema = Arc::new(Schema {
        columns: (0..d).map(column).collect(),
    });
    let source = Memory::new(schema.clone(), batches);
    let context = Context {
        currency: Currency::Approximate,
        ..Context::records(Relation::AddRemove)
    };
    let facts = Facts {
        schema: &schema,
        filter: None,
        context: &context,
        rows: None,
        positive_rate: None,
    };
    let names: Vec<(String, Expr)> = (0..d).map(|j| (format!("x{j}"), Expr::Column(j))).collect();
    let config = covariance::Config::new(Payment::Approximate {
        epsilon: parse_decimal("1")?,
        delta: parse_decimal("1e-6")?,
    });
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        line?;
        let start = Instant::now();
        let prepared = covariance::prepare(&facts, &names, &config)?;
        let program = RowProgram {
            terms: prepared.terms,
            filter: None,
            part: None,
        };
        simulate(
            &source,
            Unit::Row,
            &context,
            &program,
            prepared.mechanism.as_ref(),
            &mut Draws::from_os()?,
        )?;
        println!("{}", start.elapsed().as_secs_f64());
    }
    Ok(())
}
