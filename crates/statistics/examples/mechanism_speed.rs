//! Speed of the mechanisms that the papers build on, as ratios within one run to the plain computation that gives the same
//! answer without privacy: selection, medians, quantiles and ranges, threshold tests, running totals, counts.
//!
//! `cargo run --release -p reticent-statistics --example mechanism_speed -- [part]`, where a part is `draws`, `selection`,
//! `medians`, `quantiles`, `tests`, `totals` or `counts`; all of them if none is named.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use reticent_accounting::{Rational, Relation};
use reticent_laws::Seeded;
use reticent_mechanisms::primitives::{Change, Payment, Sides, Test, ThresholdTests};
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Context, Unit, simulate};
use reticent_noise::{Cauchy, Lattice, Noise, Scale};
use reticent_statistics::selection::{self, top_k};
use reticent_statistics::simple::{
    AxisCut, AxisSpec, Bisect, BoundsConfig, Search, bisected_quantiles, bounds_by, quantiles,
};
use reticent_statistics::{Facts, Prepared, StatisticsError, counters, running, sparse_vector};

/// One column of public values in a range, and everything a release over it needs.
struct Desk {
    schema: Arc<Schema>,
    source: Memory,
    context: Context,
    values: Vec<f64>,
    upper: f64,
}

impl Desk {
    fn new(values: Vec<f64>, upper: f64) -> Self {
        let schema = Arc::new(Schema {
            columns: vec![Column {
                name: "x".to_owned(),
                kind: Kind::Real { lower: 0.0, upper },
                missing: Missing::Drop,
            }],
        });
        let batches = values
            .chunks(8192)
            .map(|c| Batch::new(c.len(), vec![Cells::Real(c.to_vec())]))
            .collect();
        Self {
            source: Memory::new(schema.clone(), batches),
            schema,
            context: Context::records(Relation::AddRemove),
            values,
            upper,
        }
    }

    /// A thousand records: half of one value, the others of one each.
    fn few(cells: u32) -> Self {
        let values = (0..1000_u32)
            .map(|i| f64::from(if i < 500 { 7 } else { i % cells }))
            .collect();
        Self::new(values, f64::from(cells))
    }

    /// A million values, uniform in [0, 1].
    #[allow(clippy::cast_precision_loss, reason = "53 bits")]
    fn million() -> Self {
        let mut noise = Seeded::new(1);
        let values = (0..1_000_000)
            .map(|_| (noise.bits() >> 11) as f64 / (1_u64 << 53) as f64)
            .collect();
        Self::new(values, 1.0)
    }

    fn axis(&self, cells: u32) -> AxisSpec {
        AxisSpec {
            name: "x".to_owned(),
            expr: Expr::Column(0),
            cut: AxisCut::Even {
                lower: 0.0,
                upper: self.upper,
                cells,
            },
        }
    }

    /// The fastest of some whole releases: reading the records, draws, answer.
    fn release(
        &self,
        runs: u32,
        prepare: impl FnOnce(&Facts<'_>) -> Result<Prepared, StatisticsError>,
    ) -> f64 {
        let facts = Facts {
            schema: &self.schema,
            filter: None,
            context: &self.context,
            rows: None,
            positive_rate: None,
        };
        let prepared = prepare(&facts).expect("a release of the example");
        let program = RowProgram {
            terms: prepared.terms.clone(),
            ..RowProgram::default()
        };
        let mut noise = Seeded::new(2);
        seconds(runs, || {
            simulate(
                &self.source,
                Unit::Row,
                &self.context,
                &program,
                prepared.mechanism.as_ref(),
                &mut noise,
            )
            .expect("a simulation")
        })
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

fn row(what: &str, peer: &str, time: f64, base: f64) {
    println!(
        "| {what} | {peer} | {:.2} | {:.3} ms |",
        time / base,
        time * 1e3
    );
}

fn draws() {
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
    row(
        "200,000 exact Cauchy draws",
        "as many discrete Laplace draws",
        other,
        one,
    );
}

fn selection() {
    let (values, top) = (10_000, 10);
    let desk = Desk::few(values);
    let mut noise = Seeded::new(1);
    let counts: Vec<u64> = (0..values).map(|_| noise.bits() >> 44).collect();
    let sorting = seconds(20, || {
        let mut order: Vec<usize> = (0..counts.len()).collect();
        order.sort_by_key(|i| std::cmp::Reverse(counts[*i]));
        order[0]
    });
    for method in selection::Method::ALL {
        let time = desk.release(20, |f| {
            top_k(f, &desk.axis(values), top, Some(method), &Rational::ONE)
        });
        row(
            &format!("ten of 10,000 values, `{}`", method.name()),
            "sorting 10,000 counts",
            time,
            sorting,
        );
    }
}

fn sorting(desk: &Desk) -> f64 {
    seconds(5, || {
        let mut sorted = desk.values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.len()
    })
}

fn medians() {
    let desk = Desk::million();
    let base = sorting(&desk);
    for cells in [4096, 65_536] {
        for draw in [Bisect::Smooth, Bisect::Exponential] {
            let time = desk.release(5, |f| {
                bisected_quantiles(f, Expr::Column(0), "x", &[0.5], cells, draw, &Rational::ONE)
            });
            let name = match draw {
                Bisect::Smooth => "Cauchy",
                Bisect::Exponential => "exponential mechanism",
            };
            row(
                &format!("median of a million, {cells} cells, {name}"),
                "sorting them",
                time,
                base,
            );
        }
    }
}

fn quantiles_and_ranges() {
    let desk = Desk::million();
    let base = sorting(&desk);
    for levels in [1_u8, 9, 63] {
        let levels: Vec<f64> = (1..=levels)
            .map(|i| f64::from(i) / (f64::from(levels) + 1.0))
            .collect();
        let time = desk.release(5, |f| {
            quantiles(f, Expr::Column(0), "x", &levels, 4096, &Rational::ONE)
        });
        row(
            &format!("{} quantiles of a million, 4096 cells", levels.len()),
            "sorting them",
            time,
            base,
        );
    }
    for levels in [3_u8, 63] {
        let levels: Vec<f64> = (1..=levels)
            .map(|i| f64::from(i) / (f64::from(levels) + 1.0))
            .collect();
        let time = desk.release(5, |f| {
            let draw = Bisect::Exponential;
            bisected_quantiles(f, Expr::Column(0), "x", &levels, 4096, draw, &Rational::ONE)
        });
        row(
            &format!(
                "{} quantiles of a million by bisection, 4096 cells",
                levels.len()
            ),
            "sorting them",
            time,
            base,
        );
    }
    for search in [Search::Fine, Search::Doubling] {
        let time = desk.release(5, |f| {
            let config = BoundsConfig {
                search,
                ..BoundsConfig::default()
            };
            bounds_by(f, Expr::Column(0), "x", 0.95, config, &Rational::ONE)
        });
        let name = match search {
            Search::Fine => "fine",
            Search::Doubling => "doubling",
        };
        row(
            &format!("range of a million, both ends, {name}"),
            "sorting them",
            time,
            base,
        );
    }
}

fn tests() {
    let cells = 10_000;
    let desk = Desk::few(cells);
    let counts: Vec<i128> = (0..cells).map(i128::from).collect();
    let base = seconds(2_000, || {
        black_box(&counts).iter().filter(|c| **c > 9_990).count()
    });
    for (name, sides, values) in [
        ("one-sided", Sides::One, None),
        ("one-sided, with values", Sides::One, Some(Rational::ONE)),
        ("two-sided", Sides::Both, None),
    ] {
        for answers in [1, 100] {
            let step = ThresholdTests {
                name: "tests".to_owned(),
                epsilon: Rational::ONE,
                answers,
                most: cells,
                change: Change::COUNT,
                nested: false,
                sides,
                gaps: true,
                values: values.clone(),
                custom: None,
            };
            // a threshold that none reaches: all are asked
            let list = (0..cells as usize)
                .map(|c| Test::count(c..c + 1, 100_000))
                .collect();
            let time = desk.release(10, |f| {
                sparse_vector::tests(f, &desk.axis(cells), list, step)
            });
            row(
                &format!("10,000 threshold tests, {name}, up to {answers} answers"),
                "10,000 comparisons",
                time,
                base,
            );
        }
    }
}

fn totals() {
    for steps in [365_u32, 8192] {
        let counts: Vec<u64> = (0..u64::from(steps)).collect();
        let base = seconds(2_000, || {
            let mut total = 0;
            let sums = black_box(&counts).iter().map(|c| {
                total += c;
                total
            });
            sums.collect::<Vec<u64>>()
        });
        for method in counters::Method::ALL {
            let payment = if method == counters::Method::SquareRoot {
                Payment::Concentrated { rho: Rational::ONE }
            } else {
                Payment::Pure {
                    epsilon: Rational::ONE,
                }
            };
            let mut desk = Desk::few(steps);
            if method == counters::Method::SquareRoot {
                desk.context.currency = reticent_accounting::Currency::Concentrated;
            }
            let time = desk.release(5, |f| {
                running::prepare(f, &desk.axis(steps), Some(method), payment)
            });
            row(
                &format!("{steps} running totals, `{}`", method.name()),
                "one pass of sums",
                time,
                base,
            );
        }
    }
}

fn counts() {
    use reticent_statistics::histogram::{Config, Method, prepare};
    for cells in [1_u32 << 12, 1 << 16, 1 << 20] {
        let desk = Desk::few(cells);
        let plain: Vec<u64> = vec![1; cells as usize];
        let base = seconds(50, || {
            black_box(&plain).iter().map(|c| c + 1).collect::<Vec<_>>()
        });
        for method in [Method::Identity, Method::Hb] {
            let time = desk.release(3, |f| {
                let config = Config {
                    error_draws: 0,
                    ..Config::new(method, Rational::ONE)
                };
                prepare(f, vec![desk.axis(cells)], config)
            });
            row(
                &format!("{cells} counts, `{}`", method.name()),
                "copying as many",
                time,
                base,
            );
        }
    }
}

fn main() {
    let parts: [(&str, fn()); 7] = [
        ("draws", draws),
        ("selection", selection),
        ("medians", medians),
        ("quantiles", quantiles_and_ranges),
        ("tests", tests),
        ("totals", totals),
        ("counts", counts),
    ];
    let wanted = std::env::args().nth(1);
    println!("| what | peer | times the peer | |\n|---|---|---|---|");
    for (name, part) in parts {
        if wanted.as_deref().is_none_or(|w| w == name) {
            part();
        }
    }
}
