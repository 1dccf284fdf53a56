//! Time and peak memory of a private logistic fit and of a second-moment pass on generated rows.
//!
//! `cargo run --release -p reticent-mechanisms --example logistic_speed -- [rows] [columns] [epsilon]`
//!
//! Rows are made batch by batch (normal covariates cut to the unit ball, outcome from a logistic model with an
//! intercept), so the only full copy of the design is the one the fit holds.
#![allow(
    clippy::cast_precision_loss,
    reason = "row counts and random words as doubles"
)]

use std::sync::{Arc, Mutex};
use std::time::Instant;

use rayon::prelude::*;
use reticent_accounting::{AccountingError, Event, Rational, Relation, parse_decimal};
use reticent_mechanisms::fold::{Fold, Shorten};
use reticent_mechanisms::primitives::{Objective, Payment, SecondMoments};
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::{Order, RowSource, SourceError};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, Mechanism, Unit, simulate};
use reticent_noise::{Noise, Seeded};

const BATCH: usize = 32_768;

struct Generated {
    schema: Arc<Schema>,
    rows: usize,
    columns: usize,
    direction: Vec<f64>,
    /// Seconds and processor seconds of the last pass.
    spent: Mutex<(f64, f64)>,
}

fn uniform(noise: &mut Seeded) -> f64 {
    ((noise.bits() >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0
}

fn normals(noise: &mut Seeded, count: usize) -> Vec<f64> {
    let mut v = Vec::with_capacity(count + 1);
    while v.len() < count {
        let r = (-2.0 * uniform(noise).ln()).sqrt();
        let (s, c) = (uniform(noise) * std::f64::consts::TAU).sin_cos();
        v.extend([r * s, r * c]);
    }
    v.truncate(count);
    v
}

impl Generated {
    fn new(rows: usize, columns: usize) -> Self {
        let mut direction = normals(&mut Seeded::new(1), columns);
        let norm = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
        direction
            .iter_mut()
            .for_each(|x| *x *= 3.0 * (columns as f64).sqrt() / norm);
        let column = |name: String| Column {
            name,
            kind: Kind::Real {
                lower: -1.0,
                upper: 1.0,
            },
            missing: Missing::Drop,
        };
        Self {
            schema: Arc::new(Schema {
                columns: (0..=columns).map(|i| column(format!("x{i}"))).collect(),
            }),
            rows,
            columns,
            direction,
            spent: Mutex::new((0.0, 0.0)),
        }
    }

    fn batch(&self, index: usize) -> Batch {
        let n = BATCH.min(self.rows - index * BATCH);
        let mut noise = Seeded::stream(20_180_417, index as u64);
        let d = self.columns;
        let mut columns = vec![Vec::with_capacity(n); d + 1];
        for _ in 0..n {
            let mut x = normals(&mut noise, d);
            let scale = 1.0 / (1.5 * (d as f64).sqrt());
            x.iter_mut().for_each(|x| *x *= scale);
            let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt().max(1.0);
            x.iter_mut().for_each(|x| *x /= norm);
            let m: f64 = -0.5
                + x.iter()
                    .zip(&self.direction)
                    .map(|(x, b)| x * b)
                    .sum::<f64>();
            let y = f64::from(u8::from(uniform(&mut noise) < 1.0 / (1.0 + (-m).exp())));
            for (c, x) in columns.iter_mut().zip(x.into_iter().chain([y])) {
                c.push(x);
            }
        }
        Batch::new(n, columns.into_iter().map(Cells::Real).collect())
    }
}

impl RowSource for Generated {
    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }
    fn visit(
        &self,
        _: &[usize],
        _: Order,
        visit: &(dyn Fn(Batch) + Sync),
    ) -> Result<(), SourceError> {
        let (start, processor) = (Instant::now(), processor_seconds());
        (0..self.rows.div_ceil(BATCH))
            .into_par_iter()
            .for_each(|i| {
                visit(self.batch(i));
            });
        *self.spent.lock().unwrap() = (
            start.elapsed().as_secs_f64(),
            processor_seconds() - processor,
        );
        Ok(())
    }
}

struct Fit(Objective);

impl Mechanism for Fit {
    fn kind(&self) -> &'static str {
        "logistic"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(self.0.event(context))
    }
    fn first_pass(&self) -> Vec<Fold> {
        vec![]
    }
    fn passes(&self) -> u32 {
        1
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let fit = desk.objective(&self.0)?;
        println!("first coefficients {:.4?}", &fit.coefficients[..3]);
        Ok(Answer::default())
    }
}

struct Moments(SecondMoments, usize);

impl Mechanism for Moments {
    fn kind(&self) -> &'static str {
        "moments"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(self.0.event(context))
    }
    fn first_pass(&self) -> Vec<Fold> {
        vec![Fold::Moments {
            terms: 0..self.1,
            response: Some(self.1),
            shorten: Shorten {
                intercept: 0.1,
                squared_norm: 0.3,
            },
            bits: 24,
        }]
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let fold = reticent_mechanisms::FoldId(0);
        let moments = desk.second_moments(fold, &self.0)?;
        println!("first moments {:.2?}", &moments.entries[..3]);
        Ok(Answer::default())
    }
}

fn peak_kib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .and_then(|l| l.trim().trim_end_matches(" kB").trim().parse().ok())
        .unwrap_or(0.0)
}

/// Processor seconds of all threads so far (clock ticks of 10 ms).
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect();
    let ticks = |i: usize| {
        fields
            .get(i)
            .and_then(|t| t.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    (ticks(11) + ticks(12)) / 100.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |i: usize, default: usize| arguments.get(i).map_or(Ok(default), |a| a.parse::<usize>());
    let (rows, columns) = (number(0, 1_000_000)?, number(1, 50)?);
    let epsilon = parse_decimal(arguments.get(2).map_or("1", String::as_str))?;
    let source = Generated::new(rows, columns);
    let program = RowProgram {
        terms: (0..=columns).map(Expr::Column).collect(),
        filter: None,
        part: None,
    };
    let context = Context::records(Relation::ReplaceOne);
    let fit = Fit(Objective {
        name: "fit".to_owned(),
        epsilon: epsilon.clone(),
        covariates: 0..columns,
        outcome: columns,
        intercept: Some(0.25),
        radius: 1.0,
        penalty: Rational::from(5u8) / Rational::from(2u8) / epsilon.clone(),
    });
    let (start, processor) = (Instant::now(), processor_seconds());
    simulate(
        &source,
        Unit::Row,
        &context,
        &program,
        &fit,
        &mut Seeded::new(7),
    )?;
    let total = start.elapsed().as_secs_f64();
    let used = processor_seconds() - processor;
    let (reading, reading_used) = *source.spent.lock().unwrap();
    let design = (rows * columns * 8) as f64 / 1024.0;
    println!(
        "logistic {rows} x {columns}: reading {reading:.2} s, fitting {:.2} s ({:.2} processor s); peak {:.0} MiB = {:.3} of the f64 design",
        total - reading,
        used - reading_used,
        peak_kib() / 1024.0,
        peak_kib() / design
    );

    let moments = Moments(
        SecondMoments {
            name: "moments".to_owned(),
            payment: Payment::Concentrated { rho: epsilon },
        },
        columns,
    );
    let processor = processor_seconds();
    simulate(
        &source,
        Unit::Row,
        &context,
        &program,
        &moments,
        &mut Seeded::new(7),
    )?;
    println!(
        "second moments {rows} x {columns}: {:.2} processor s more than reading alone",
        processor_seconds() - processor - reading_used
    );
    Ok(())
}
