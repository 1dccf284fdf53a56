//! One private naive Bayes release of texts in memory, timed whenever a line arrives; driven by `benches/naive_bayes.py`.
//!
//! `naive_bayes_speed <texts.u32> <words> <slots>`: little-endian 32-bit numbers, row by row: the class (0 or 1), then the numbers of the
//! text's distinct words, the number of words of the vocabulary where there is none. Prints `ready`, then seconds, a line per release; to the
//! line `exact` it answers the counts without noise, for the driver to compare.

use std::io::BufRead;
use std::sync::Arc;
use std::time::Instant;

use reticent_accounting::{Rational, Relation};
use reticent_laws::Silent;
use reticent_mechanisms::primitives::Payment;
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Context, Simulated, Unit, simulate};
use reticent_noise::{Draws, Noise};
use reticent_statistics::Facts;
use reticent_statistics::features::Items;
use reticent_statistics::naive_bayes::{self, Classifier, Config, Spec};
use serde_json::Value;

const BATCH: usize = 8192;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, words, slots] = arguments.as_slice() else {
        return Err("usage: naive_bayes_speed <texts.u32> <words> <slots>".into());
    };
    let (words, slots): (u32, usize) = (words.parse()?, slots.parse()?);
    let bytes = std::fs::read(path)?;
    let numbers: Vec<u32> = bytes
        .chunks_exact(4)
        .filter_map(|b| Some(u32::from_le_bytes(b.try_into().ok()?)))
        .collect();
    let width = slots + 1;
    let batches: Vec<Batch> = numbers
        .chunks(BATCH * width)
        .map(|rows| {
            let column = |j: usize| rows.iter().skip(j).step_by(width).copied();
            let label = Cells::Code(column(0).collect());
            let slots = (1..width).map(|j| Cells::Integer(column(j).map(i64::from).collect()));
            let cells = std::iter::once(label).chain(slots);
            Batch::new(rows.len() / width, cells.collect())
        })
        .collect();
    drop((bytes, numbers));
    let classes = vec!["0".to_owned(), "1".to_owned()];
    let label = Column {
        name: "label".to_owned(),
        kind: Kind::Levels {
            levels: classes.clone(),
            other: None,
        },
        missing: Missing::Drop,
    };
    let slot = |j| Column {
        name: format!("text.{j}"),
        kind: Kind::Integer {
            lower: 0,
            upper: i64::from(words),
        },
        missing: Missing::Impute(f64::from(words)),
    };
    let columns = std::iter::once(label).chain((1..width).map(slot));
    let schema = Arc::new(Schema {
        columns: columns.collect(),
    });
    let source = Memory::new(schema.clone(), batches);
    let context = Context::records(Relation::AddRemove);
    let facts = Facts {
        schema: &schema,
        filter: None,
        context: &context,
        rows: None,
        positive_rate: None,
    };
    let names = (0..words).map(|w| format!("w{w}")).collect();
    let items = Items::slots(names, (1..width).map(Expr::Column).collect());
    let spec = Spec {
        items,
        ..Spec::new(Expr::Code(0), classes)
    };
    let release = |noise: &mut dyn Noise| -> Result<Value, Box<dyn std::error::Error>> {
        let payment = Payment::Pure {
            epsilon: Rational::ONE,
        };
        let prepared = naive_bayes::prepare(&facts, &spec, Config::new(payment))?;
        let program = RowProgram {
            terms: prepared.terms,
            ..RowProgram::default()
        };
        let mechanism = prepared.mechanism.as_ref();
        let Simulated((answer, _)) =
            simulate(&source, Unit::Row, &context, &program, mechanism, noise)?;
        Ok(answer.value)
    };
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        if line?.trim() == "exact" {
            println!("{}", release(&mut Silent)?["counts"]);
            continue;
        }
        let mut draws = Draws::from_os()?;
        let start = Instant::now();
        let value = release(&mut draws)?;
        let model = Classifier::read(&value).ok_or("no classifier in the release")?;
        let seconds = start.elapsed().as_secs_f64();
        assert_eq!(model.weights.len(), usize::try_from(words)?);
        println!("{seconds}");
    }
    Ok(())
}
