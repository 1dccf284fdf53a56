//! CSV cells behind a header: whatever the bytes, every record is one row and nothing fails.
#![no_main]

use std::sync::{Arc, Mutex};

use libfuzzer_sys::fuzz_target;
use reticent_engine::scan::{Files, Format, Layout, Rejects};
use reticent_mechanisms::rows::{Batch, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::{Order, RowSource};

fn layout() -> Layout {
    let column = |name: &str, kind| Column {
        name: name.to_owned(),
        kind,
        missing: Missing::Drop,
    };
    let levels = ["a", "b"].map(str::to_owned).to_vec();
    let columns = vec![
        column(
            "age",
            Kind::Integer {
                lower: 17,
                upper: 90,
            },
        ),
        column(
            "income",
            Kind::Real {
                lower: 0.0,
                upper: 1e6,
            },
        ),
        column(
            "group",
            Kind::Levels {
                levels,
                other: None,
            },
        ),
        column("person", Kind::Id),
    ];
    Layout {
        missing_values: vec![vec!["?".to_owned()]; columns.len()],
        rejects: vec![Rejects::default(); columns.len()],
        schema: Arc::new(Schema { columns }),
        texts: Vec::new(),
    }
}

fn rows(files: &Files, order: Order) -> usize {
    let rows = Mutex::new(0);
    let count = |batch: &Batch| *rows.lock().expect("no visit panics") += batch.rows();
    files
        .visit(&[0, 1, 2, 3], order, &count)
        .expect("rows cannot fail");
    rows.into_inner().expect("no visit panics")
}

fuzz_target!(|body: &[u8]| {
    let path = std::env::temp_dir().join(format!("reticent-fuzz-{}.csv", std::process::id()));
    let text = [&b"age,income,group,person\n"[..], body].concat();
    std::fs::write(&path, text).expect("a temporary file");
    let files =
        Files::open(vec![path.clone()], Format::Csv, layout()).expect("the header is there");
    let (whole, pieces) = (
        rows(&files, Order::File),
        rows(&files.with_batch_rows(2), Order::File),
    );
    assert_eq!(whole, pieces);
    std::fs::remove_file(&path).expect("the temporary file");
});
