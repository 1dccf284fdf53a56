//! Coverage of the nominal 95 % intervals of `linear` on the PUMS extract (public data).
//!
//! Rows are drawn with replacement from the 10,000; the truth is least squares on the 10,000 rows with income
//! clamped to the declared bounds.
//!
//! `cargo run --release -p reticent-statistics --example pums_coverage -- examples/pums/pums.csv 500`

use std::sync::Arc;

use reticent_accounting::{Currency, Rational, Relation, Size, parse_decimal};
use reticent_mechanisms::primitives::Payment;
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Context, Simulated, Unit, simulate};
use reticent_noise::{Noise, Seeded, Silent};
use reticent_statistics::{DesignSpec, Facts, linear};
use serde_json::Value;

const BOUNDS: [(&str, i64, i64); 3] = [("age", 18, 95), ("educ", 1, 16), ("income", 0, 300_000)];

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .unwrap_or_else(|| "examples/pums/pums.csv".to_owned());
    let runs: u64 = arguments.next().map_or(Ok(500), |r| r.parse())?;
    let columns = read(&path)?;
    let truth = slopes(
        &columns,
        &context(Relation::AddRemove, Currency::Pure),
        &linear::Config {
            payment: Payment::Pure {
                epsilon: parse_decimal("1000000000000")?,
            },
            clip: linear::Clip::None,
            grid_bits: 24,
        },
        &mut Silent,
    )?;
    println!("truth: age {:.4}, educ {:.4}", truth[0].0, truth[1].0);
    for relation in [Relation::AddRemove, Relation::ReplaceOne] {
        for (label, pure) in [("epsilon and delta 1e-6", false), ("pure epsilon", true)] {
            for epsilon in ["0.1", "1"] {
                let epsilon: Rational = parse_decimal(epsilon)?;
                let (currency, payment) = if pure {
                    (Currency::Pure, Payment::Pure { epsilon })
                } else {
                    let delta = parse_decimal("0.000001")?;
                    (
                        Currency::Approximate,
                        Payment::Approximate { epsilon, delta },
                    )
                };
                let config = linear::Config::new(payment);
                let context = context(relation, currency);
                let (mut covered, mut length, mut bias) = ([0u32; 2], [0.0; 2], [0.0; 2]);
                for run in 0..runs {
                    let mut noise = Seeded::stream(20_271_127, run);
                    let sample = resample(&columns, &mut noise);
                    let fit = slopes(&sample, &context, &config, &mut noise)?;
                    for (i, (estimate, low, high)) in fit.iter().enumerate() {
                        covered[i] += u32::from(*low <= truth[i].0 && truth[i].0 <= *high);
                        length[i] += (high - low) / truth[i].0.abs();
                        bias[i] += estimate / truth[i].0 - 1.0;
                    }
                }
                #[allow(clippy::cast_precision_loss, reason = "a number of runs")]
                let n = runs as f64;
                println!(
                    "{relation}, {label}, epsilon {}: covered age {:.3} educ {:.3}; length/slope {:.3} {:.3}; mean relative error {:+.3} {:+.3}",
                    config_epsilon(&config),
                    f64::from(covered[0]) / n,
                    f64::from(covered[1]) / n,
                    length[0] / n,
                    length[1] / n,
                    bias[0] / n,
                    bias[1] / n,
                );
            }
        }
    }
    Ok(())
}

fn config_epsilon(config: &linear::Config) -> f64 {
    match &config.payment {
        Payment::Approximate { epsilon, .. } | Payment::Pure { epsilon } => {
            reticent_accounting::rational_to_f64(epsilon)
        }
        Payment::Concentrated { rho } => reticent_accounting::rational_to_f64(rho),
    }
}

fn context(relation: Relation, currency: Currency) -> Context {
    Context {
        relation,
        currency,
        size: Size::Private,
        rows_per_unit: 1,
    }
}

fn read(path: &str) -> Result<Vec<Vec<i64>>, Error> {
    let text = std::fs::read_to_string(path)?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or("").split(',').collect();
    let places: Vec<usize> = BOUNDS
        .iter()
        .filter_map(|(name, ..)| header.iter().position(|h| h.trim_matches('"') == *name))
        .collect();
    let mut columns = vec![Vec::new(); places.len()];
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        for (column, place) in columns.iter_mut().zip(&places) {
            column.push(cells.get(*place).unwrap_or(&"").parse()?);
        }
    }
    Ok(columns)
}

fn resample(columns: &[Vec<i64>], noise: &mut Seeded) -> Vec<Vec<i64>> {
    let n = columns.first().map_or(0, Vec::len);
    let rows: Vec<usize> = (0..n)
        .map(|_| usize::try_from((u128::from(noise.bits()) * n as u128) >> 64).unwrap_or(0))
        .collect();
    columns
        .iter()
        .map(|c| rows.iter().map(|r| c[*r]).collect())
        .collect()
}

/// (estimate, low, high) of the two slopes.
fn slopes(
    columns: &[Vec<i64>],
    context: &Context,
    config: &linear::Config,
    noise: &mut dyn Noise,
) -> Result<Vec<(f64, f64, f64)>, Error> {
    let schema = Arc::new(Schema {
        columns: BOUNDS
            .iter()
            .map(|(name, lower, upper)| Column {
                name: (*name).to_owned(),
                kind: Kind::Integer {
                    lower: *lower,
                    upper: *upper,
                },
                missing: Missing::Drop,
            })
            .collect(),
    });
    let batch = Batch::new(
        columns.first().map_or(0, Vec::len),
        columns.iter().map(|c| Cells::Integer(c.clone())).collect(),
    );
    let source = Memory::new(schema.clone(), vec![batch]);
    let design = DesignSpec {
        intercept: true,
        terms: vec![
            ("age".to_owned(), Expr::Column(0)),
            ("educ".to_owned(), Expr::Column(1)),
        ],
        outcome: Expr::Column(2),
        metadata: Value::Null,
    };
    let facts = Facts {
        schema: &schema,
        filter: None,
        context,
        rows: Some(10_000.0),
        positive_rate: None,
    };
    let prepared = linear::prepare(&facts, &design, config)?;
    let program = RowProgram {
        terms: prepared.terms,
        filter: None,
        part: None,
    };
    let Simulated((answer, _)) = simulate(
        &source,
        Unit::Row,
        context,
        &program,
        prepared.mechanism.as_ref(),
        noise,
    )?;
    let get = |i: usize, k: &str| answer.value["terms"][i][k].as_f64().unwrap_or(f64::NAN);
    Ok((1..=2)
        .map(|i| (get(i, "estimate"), get(i, "conf_low"), get(i, "conf_high")))
        .collect())
}
