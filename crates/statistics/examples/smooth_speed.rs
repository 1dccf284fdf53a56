//! Speed of smooth sensitivity, as ratios within one run: a Cauchy draw to a discrete Laplace draw, and a private median of
//! a million values (scan, smooth sensitivity on 4096 and 65536 cells, draw) to sorting them.
//!
//! `cargo run --release -p reticent-statistics --example smooth_speed`

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use reticent_accounting::{Rational, Relation};
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Context, Unit, simulate};
use reticent_noise::{Cauchy, Lattice, Noise, Scale, Seeded};
use reticent_statistics::Facts;
use reticent_statistics::simple::{Bisect, bisected_quantiles};

fn main() {
    let mut noise = Seeded::new(1);
    let laplace = Lattice::Laplace(Scale::at_least(&Rational::from(100_u8)).expect("a scale"));
    let cauchy = Cauchy {
        location: Rational::from(7_u8),
        scale: Rational::from(100_u8),
    };
    let one = seconds(5, || {
        (0..200_000).fold(0, |s: i128, _| s.wrapping_add(noise.lattice(&laplace)))
    });
    let other = seconds(5, || {
        (0..200_000).fold(0, |s: i128, _| s.wrapping_add(noise.cauchy(&cauchy)))
    });
    println!(
        "draw: Laplace {:.0} ns, Cauchy {:.0} ns, ratio {:.1}",
        one * 5e3,
        other * 5e3,
        other / one
    );

    #[allow(clippy::cast_precision_loss, reason = "53 bits")]
    let values: Vec<f64> = (0..1_000_000)
        .map(|_| (noise.bits() >> 11) as f64 / (1_u64 << 53) as f64)
        .collect();
    let sorting = seconds(5, || {
        let mut sorted = values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.len()
    });
    let schema = Arc::new(Schema {
        columns: vec![Column {
            name: "x".to_owned(),
            kind: Kind::Real {
                lower: 0.0,
                upper: 1.0,
            },
            missing: Missing::Drop,
        }],
    });
    let batches = values
        .chunks(8192)
        .map(|c| Batch::new(c.len(), vec![Cells::Real(c.to_vec())]))
        .collect();
    let source = Memory::new(schema.clone(), batches);
    let context = Context::records(Relation::AddRemove);
    let facts = Facts {
        schema: &schema,
        filter: None,
        context: &context,
        rows: None,
        positive_rate: None,
    };
    for cells in [4096, 65_536] {
        for draw in [Bisect::Smooth, Bisect::Exponential] {
            let prepared = bisected_quantiles(
                &facts,
                Expr::Column(0),
                "x",
                &[0.5],
                cells,
                draw,
                &Rational::ONE,
            )
            .expect("a median");
            let program = RowProgram {
                terms: prepared.terms.clone(),
                ..RowProgram::default()
            };
            let time = seconds(5, || {
                simulate(
                    &source,
                    Unit::Row,
                    &context,
                    &program,
                    prepared.mechanism.as_ref(),
                    &mut noise,
                )
                .is_ok()
            });
            println!(
                "median of 1e6, {cells} cells, {draw:?}: {:.1} ms, {:.2} of a sort ({:.1} ms)",
                time * 1e3,
                time / sorting,
                sorting * 1e3
            );
        }
    }
}

/// The fastest of some runs.
fn seconds<T>(runs: u32, mut f: impl FnMut() -> T) -> f64 {
    (0..runs)
        .map(|_| {
            let start = Instant::now();
            black_box(f());
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}
