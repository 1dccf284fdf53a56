//! One-pass releases over a Parquet file of 10 million rows; driven by `benches/scan.py`.
//!
//! Prints the path of the file (written if it is not there), then scans it for every line on standard input and
//! prints the seconds.
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "small generated numbers"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Float64Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema as ArrowSchema};
use parquet::arrow::ArrowWriter;
use reticent_engine::scan::{Files, Format, Layout, Rejects};
use reticent_mechanisms::Unit;
use reticent_mechanisms::fold::{Axis, CellSum, Cut, FixedPoint, Fold};
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Column, Kind, Missing, Schema};
use reticent_mechanisms::source::{Job, RowSource};

const ROWS: usize = 10_000_000;

fn write(path: &Path) {
    let schema = Arc::new(ArrowSchema::new(vec![
        Field::new("age", DataType::Int64, false),
        Field::new("income", DataType::Float64, false),
        Field::new("hours", DataType::Float64, false),
    ]));
    let file = std::fs::File::create(path).expect("a file");
    let mut writer = ArrowWriter::try_new(file, schema.clone(), None).expect("a writer");
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    for _ in 0..ROWS / 500_000 {
        let age: Vec<i64> = (0..500_000).map(|_| 17 + (next() * 74.0) as i64).collect();
        let income: Vec<f64> = (0..500_000).map(|_| next() * 300_000.0).collect();
        let hours: Vec<f64> = (0..500_000).map(|_| next() * 99.0).collect();
        let batch = RecordBatch::try_new(
            schema.clone(),
            vec![
                Arc::new(Int64Array::from(age)),
                Arc::new(Float64Array::from(income)),
                Arc::new(Float64Array::from(hours)),
            ],
        )
        .expect("a batch");
        writer.write(&batch).expect("written");
    }
    writer.close().expect("closed");
}

fn ours(path: &Path) -> impl Fn() {
    let real = |name: &str, upper: f64| Column {
        name: name.into(),
        kind: Kind::Real { lower: 0.0, upper },
        missing: Missing::Drop,
    };
    let schema = Arc::new(Schema {
        columns: vec![
            Column {
                name: "age".into(),
                kind: Kind::Integer {
                    lower: 17,
                    upper: 90,
                },
                missing: Missing::Drop,
            },
            real("income", 300_000.0),
            real("hours", 99.0),
        ],
    });
    let layout = Layout {
        schema,
        texts: Vec::new(),
        missing_values: vec![Vec::new(); 3],
        rejects: vec![Rejects::default(); 3],
    };
    let files = Files::open(vec![path.to_owned()], Format::Parquet, layout).expect("opened");
    let sum = |term: usize, top: f64| Fold::Grid {
        axes: Vec::new(),
        sum: Some(CellSum {
            term,
            fixed: FixedPoint::for_magnitude(top, 40),
            limits: Vec::new(),
        }),
    };
    let job = Job {
        program: RowProgram {
            terms: vec![Expr::Column(0), Expr::Column(1), Expr::Column(2)],
            filter: None,
            part: None,
        },
        folds: vec![
            Fold::Grid {
                axes: vec![Axis {
                    term: 0,
                    cut: Cut::Even {
                        lower: 17.0,
                        upper: 91.0,
                        cells: 74,
                    },
                }],
                sum: None,
            },
            sum(1, 300_000.0),
            sum(2, 99.0),
        ],
    };
    move || {
        files
            .scan(Unit::Row, std::slice::from_ref(&job))
            .expect("scanned");
    }
}

fn main() {
    let path: PathBuf = std::env::temp_dir().join("reticent-scan-speed.parquet");
    if !path.exists() {
        let part = path.with_extension("part");
        write(&part);
        std::fs::rename(&part, &path).expect("in place");
    }
    let ours = ours(&path);
    println!("{}", path.display());
    for _ in std::io::stdin().lines() {
        let start = Instant::now();
        ours();
        println!("{}", start.elapsed().as_secs_f64());
    }
}
