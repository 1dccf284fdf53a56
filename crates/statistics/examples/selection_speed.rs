//! Speed of selection, as ratios within one run: the ten most frequent of 10,000 values by every method, from a fold over 1,000
//! records, to a full sort of 10,000 counts.
//!
//! `cargo run --release -p reticent-statistics --example selection_speed`

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use reticent_accounting::{Rational, Relation};
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Context, Unit, simulate};
use reticent_noise::{Noise, Seeded};
use reticent_statistics::Facts;
use reticent_statistics::selection::{Method, top_k};
use reticent_statistics::simple::{AxisCut, AxisSpec};

const VALUES: u32 = 10_000;
const TOP: u32 = 10;

fn main() {
    let mut noise = Seeded::new(1);
    let counts: Vec<i128> = (0..VALUES)
        .map(|_| i128::from(noise.bits() >> 44))
        .collect();
    let sorting = seconds(20, || {
        let mut order: Vec<usize> = (0..counts.len()).collect();
        order.sort_by_key(|i| std::cmp::Reverse(counts[*i]));
        order[0]
    });
    println!(
        "full sort of {VALUES} counts: ratio 1 ({:.2} ms)",
        sorting * 1e3
    );

    let schema = Schema {
        columns: vec![Column {
            name: "value".to_owned(),
            kind: Kind::Real {
                lower: 0.0,
                upper: f64::from(VALUES),
            },
            missing: Missing::Drop,
        }],
    };
    // 500 records of one value, one of each of 500 others
    let values = (0..1000_u32)
        .map(|i| f64::from(if i < 500 { 7 } else { i }))
        .collect();
    let batch = Batch::new(1000, vec![Cells::Real(values)]);
    let source = Memory::new(Arc::new(schema.clone()), vec![batch]);
    let context = Context::records(Relation::AddRemove);
    let facts = Facts {
        schema: &schema,
        filter: None,
        context: &context,
        rows: Some(1000.0),
        positive_rate: None,
    };
    let axis = AxisSpec {
        name: "value".to_owned(),
        expr: Expr::Column(0),
        cut: AxisCut::Even {
            lower: 0.0,
            upper: f64::from(VALUES),
            cells: VALUES,
        },
    };
    for method in Method::ALL {
        let prepared =
            top_k(&facts, &axis, TOP, Some(method), &Rational::ONE).expect("ten of ten thousand");
        let program = RowProgram {
            terms: prepared.terms.clone(),
            ..RowProgram::default()
        };
        let took = seconds(20, || {
            simulate(
                &source,
                Unit::Row,
                &context,
                &program,
                prepared.mechanism.as_ref(),
                &mut noise,
            )
            .expect("a simulation")
        });
        println!(
            "{:<17} ratio {:.1} ({:.2} ms)",
            method.name(),
            took / sorting,
            took * 1e3
        );
    }
}

/// The fastest of some runs.
fn seconds<T>(runs: u32, mut work: impl FnMut() -> T) -> f64 {
    (0..runs)
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}
