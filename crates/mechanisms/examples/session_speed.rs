//! What the ledger costs: a payment, a session's opening and a session's answer, as ratios within one run to appending 512 bytes
//! to a file of the same folder and waiting until they are on the disk.
//!
//! `cargo run --release -p reticent-mechanisms --example session_speed -- [folder]` (the current one if none is named; a
//! folder of its own is made there and removed).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use reticent_accounting::{Cost, Currency, Rational, Relation};
use reticent_ledger::{Identity, Ledger, RequestId};
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::primitives::{Change, Sides, Test, ThresholdTests};
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Private, Slot, Unit, Wanted};

const CELLS: usize = 100;
const ANSWERS: usize = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let base = std::env::args()
        .nth(1)
        .map_or_else(|| PathBuf::from("."), PathBuf::from);
    let folder = tempfile::tempdir_in(base)?;
    let mut file = File::create(folder.path().join("plain"))?;
    let sync = median((0..ANSWERS).map(|_| {
        let start = Instant::now();
        file.write_all(&[7; 512])?;
        file.sync_data()?;
        Ok::<_, std::io::Error>(start.elapsed().as_secs_f64())
    }))?;

    let column = Column {
        name: "cell".to_owned(),
        kind: Kind::Integer {
            lower: 0,
            upper: 99,
        },
        missing: Missing::Drop,
    };
    let cells = (0..1000_i64).map(|i| i % 100).collect();
    let source = Memory::new(
        Arc::new(Schema {
            columns: vec![column],
        }),
        vec![Batch::new(1000, vec![Cells::Integer(cells)])],
    );
    let ledger = Ledger::create(
        folder.path().join("cells.ledger"),
        &Identity {
            dataset: "cells".to_owned(),
            data_version: "1".to_owned(),
            relation: Relation::AddRemove,
            currency: Currency::Pure,
            cap: Cost::pure(Rational::from(1000_u16)),
            analysts: BTreeMap::new(),
            fingerprint_key: [0; 32],
            fingerprint: [0; 32],
            schema_digest: [0; 32],
        },
    )?;
    let mut private = Private::new(Box::new(source), Unit::Row, None, ledger)?;
    let program = RowProgram {
        terms: vec![Expr::Column(0)],
        ..RowProgram::default()
    };
    let fold = Fold::Grid {
        axes: vec![Axis {
            term: 0,
            cut: Cut::Whole(100),
        }],
        sum: None,
    };
    let step = ThresholdTests {
        name: "session".to_owned(),
        epsilon: Rational::ONE,
        answers: 1,
        most: u32::try_from(ANSWERS)?,
        change: Change::COUNT,
        nested: false,
        sides: Sides::One,
        gaps: false,
        values: None,
        custom: None,
    };

    let (mut paying, mut opening, mut answering) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..20_u8 {
        let wanted = Wanted {
            request: RequestId::from_bytes([round; 32]),
            claim: Cost::pure(Rational::ONE),
            part: None,
            label: "session".to_owned(),
        };
        let start = Instant::now();
        let Some(Slot::Paid(ticket)) = private.reserve("ann", &[wanted])?.pop() else {
            return Err("the payment of a new request was not new".into());
        };
        paying.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let mut session = private.open_session("ann", ticket, &program, &fold, &step)?;
        opening.push(start.elapsed().as_secs_f64());
        for i in 0..ANSWERS / 20 {
            // far out of reach: never positive
            let test = Test::count(i % CELLS..i % CELLS + 1, 100_000);
            let start = Instant::now();
            session.ask(&test)?;
            answering.push(start.elapsed().as_secs_f64());
        }
        session.close();
    }
    println!("| what | times a write to the disk | |\n|---|---|---|");
    for (what, times) in [
        ("a payment", paying),
        ("opening a session over a thousand records", opening),
        ("an answer of a session", answering),
    ] {
        let time = median(times.into_iter().map(Ok::<_, std::io::Error>))?;
        println!("| {what} | {:.2} | {:.2} ms |", time / sync, time * 1e3);
    }
    Ok(())
}

fn median<E>(times: impl Iterator<Item = Result<f64, E>>) -> Result<f64, E> {
    let mut times = times.collect::<Result<Vec<_>, _>>()?;
    times.sort_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied().unwrap_or(f64::NAN))
}
