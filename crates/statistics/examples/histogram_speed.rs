//! Processor time of one run of each histogram algorithm, and its ratio to one plain pass over the cells.
//!
//! `cargo run --release -p reticent-statistics --example histogram_speed`

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use reticent_accounting::{Rational, Relation};
use reticent_laws::Seeded;
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Context, Unit, simulate};
use reticent_statistics::Facts;
use reticent_statistics::histogram::{Config, Domain, Method, Workload, prepare};
use reticent_statistics::simple::{AxisCut, AxisSpec};

/// Seconds this thread has been on a processor (Linux), else seconds since the start.
fn clock(start: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|t| t.parse::<f64>().ok());
    nanoseconds.map_or_else(|| start.elapsed().as_secs_f64(), |n| n * 1e-9)
}

/// Mean of `runs` times, in milliseconds: the clock of processor time is coarse, so they are taken together.
fn average(runs: u32, mut work: impl FnMut(u64)) -> f64 {
    let start = Instant::now();
    work(0);
    let before = clock(start);
    (0..u64::from(runs)).for_each(&mut work);
    (clock(start) - before) * 1e3 / f64::from(runs)
}

/// Counts of a domain, one record in most cells and towns, and the records.
#[allow(clippy::cast_precision_loss, reason = "few cells")]
fn world(domain: Domain) -> (Vec<usize>, Arc<Schema>, Memory) {
    let cells = domain.cells();
    let counts: Vec<usize> = (0..cells)
        .map(|i| usize::from(i % 3 != 0) + 40 * usize::from(i % 977 < 20))
        .collect();
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (i, count) in counts.iter().enumerate() {
        for _ in 0..*count {
            x.push((i / domain.columns()) as f64 + 0.5);
            y.push((i % domain.columns()) as f64 + 0.5);
        }
    }
    let column = |name: &str, n: usize| Column {
        name: name.to_owned(),
        kind: Kind::Real {
            lower: 0.0,
            upper: n as f64,
        },
        missing: Missing::Drop,
    };
    let schema = Arc::new(Schema {
        columns: vec![column("x", domain.rows()), column("y", domain.columns())],
    });
    let batch = Batch::new(x.len(), vec![Cells::Real(x), Cells::Real(y)]);
    let source = Memory::new(schema.clone(), vec![batch]);
    (counts, schema, source)
}

#[allow(clippy::cast_precision_loss, reason = "few cells")]
fn main() {
    println!("| method | cells | milliseconds | times a plain pass |\n|---|---|---|---|");
    for domain in [Domain::Line(4096), Domain::Plane(256, 256)] {
        let cells = domain.cells();
        let (counts, schema, source) = world(domain);
        let context = Context::records(Relation::AddRemove);
        let facts = Facts {
            schema: &schema,
            filter: None,
            context: &context,
            rows: None,
            positive_rate: None,
        };
        let axis = |c: usize, n: usize| AxisSpec {
            name: format!("{c}"),
            expr: Expr::Column(c),
            cut: AxisCut::Even {
                lower: 0.0,
                upper: n as f64,
                cells: u32::try_from(n).unwrap_or(1),
            },
        };
        let pass = average(400_000_000 / u32::try_from(cells).unwrap_or(1), |_| {
            black_box(
                black_box(&counts)
                    .iter()
                    .map(|c| *c as f64 * 1.000_001)
                    .sum::<f64>(),
            );
        });
        let mut floor = 0.0;
        for method in std::iter::once(Method::Uniform).chain(Method::ALL) {
            let line = matches!(domain, Domain::Line(_));
            if !method.takes(if line { 1 } else { 2 }) {
                continue;
            }
            let axes = if line {
                vec![axis(1, cells)]
            } else {
                vec![axis(0, domain.rows()), axis(1, domain.columns())]
            };
            let config = Config {
                workload: if line {
                    Workload::Prefix
                } else {
                    Workload::Rectangles(2000)
                },
                error_draws: 0,
                ..Config::new(method, Rational::ONE)
            };
            let Ok(prepared) = prepare(&facts, axes, config) else {
                continue;
            };
            let program = RowProgram {
                terms: prepared.terms.clone(),
                ..RowProgram::default()
            };
            let time = average(if line { 200 } else { 10 }, |run| {
                let mut noise = Seeded::stream(1, run);
                let done = simulate(
                    &source,
                    Unit::Row,
                    &context,
                    &program,
                    prepared.mechanism.as_ref(),
                    &mut noise,
                );
                let _ = black_box(done);
            });
            if method == Method::Uniform && floor <= 0.0 {
                // reading the records and writing the answer, common to all
                floor = time;
                continue;
            }
            println!(
                "| {} | {cells} | {:.2} | {:.0} |",
                method.name(),
                (time - floor).max(0.0),
                (time - floor).max(0.0) / pass
            );
        }
    }
}
