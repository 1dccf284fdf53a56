//! Measured errors of the mechanisms against n·ε, on one made-up table: the figure of the guide's advice which mechanism to use when.
//!
//! Every error is a share: of the records for counts, ranks and totals, of the whole for areas. So the curves can be compared, and what is
//! read off at one n·ε holds for other n and ε with the same product (`n` = 20,000 here, ε varies).
//!
//! With `RETICENT_PICTURES` set to a folder, the figure is written there as `which-mechanism.svg`.

use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;
use reticent_accounting::{Currency, Rational, Relation, Size};
use reticent_audit::picture::{Axis, Chart};
use reticent_laws::Seeded;
use reticent_mechanisms::Context;
use reticent_mechanisms::primitives::Payment;
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_noise::Noise;
use reticent_statistics::counters::Method;
use reticent_statistics::simple::{AxisCut, AxisSpec, Bisect};
use reticent_statistics::{
    Facts, Prepared, Score, StatisticsError, auc, roc, running, selection, simple,
};

use crate::public::{context, release};
use crate::real;
use crate::studies::{at, list};
use crate::study::{Findings, Form, StudyError};

/// Seed of the table and of the noise.
pub const SEED: u64 = 2_026;
/// Records.
pub const ROWS: usize = 20_000;
/// Steps of time.
const DAYS: u32 = 365;
/// Values of which the ten most frequent are sought.
const VALUES: u32 = 200;
const TOP: u32 = 10;

/// n·ε of the figure.
pub const SIGNALS: [u32; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];

/// The table: value in [0, 1], day, frequent value, score in [0, 1], label.
struct World {
    schema: Schema,
    columns: Vec<Vec<f64>>,
    source: Memory,
}

impl World {
    fn new(rows: usize) -> Self {
        let mut noise = Seeded::new(SEED);
        let mut uniform = || real((noise.bits() >> 11) as usize) / 9_007_199_254_740_992.0;
        let mut columns = vec![Vec::new(); 5];
        for _ in 0..rows {
            let score = uniform();
            // squares and cubes: skewed like incomes, seasons and words; halves keep away from the edges of cells
            columns[0].push(uniform().powi(2));
            columns[1].push((uniform().powf(0.8) * f64::from(DAYS)).floor() + 0.5);
            columns[2].push((uniform().powi(3) * f64::from(VALUES)).floor() + 0.5);
            columns[3].push(score);
            columns[4].push(f64::from(u8::from(uniform() < 0.1 + 0.5 * score)));
        }
        let real = |name: &str, upper: f64| Column {
            name: name.to_owned(),
            kind: Kind::Real { lower: 0.0, upper },
            missing: Missing::Drop,
        };
        let schema = Schema {
            columns: vec![
                real("x", 1.0),
                real("day", f64::from(DAYS)),
                real("value", f64::from(VALUES)),
                real("score", 1.0),
                real("label", 1.0),
            ],
        };
        let batch = Batch::new(rows, columns.iter().cloned().map(Cells::Real).collect());
        let source = Memory::new(Arc::new(schema.clone()), vec![batch]);
        Self {
            schema,
            columns,
            source,
        }
    }

    fn rows(&self) -> usize {
        self.columns[0].len()
    }

    /// Numbers of records per whole value of a column.
    fn counts(&self, column: usize, cells: u32) -> Vec<usize> {
        let mut counts = vec![0; cells as usize];
        for v in &self.columns[column] {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole numbers below the number of cells"
            )]
            let cell = (*v as usize).min(counts.len() - 1);
            counts[cell] += 1;
        }
        counts
    }

    /// Share of the records below a value.
    fn rank(&self, value: f64) -> f64 {
        real(self.columns[0].iter().filter(|x| **x < value).count()) / real(self.rows())
    }

    /// The area by sorted scores.
    fn area(&self) -> f64 {
        let mut pairs: Vec<(f64, f64)> = self.columns[3]
            .iter()
            .copied()
            .zip(self.columns[4].iter().copied())
            .collect();
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut zeros, mut won) = (0.0, 0.0);
        for (_, label) in &pairs {
            if *label > 0.5 {
                won += zeros;
            } else {
                zeros += 1.0;
            }
        }
        won / (zeros * (real(pairs.len()) - zeros))
    }
}

fn axis(name: &str, column: usize, cells: u32) -> AxisSpec {
    AxisSpec {
        name: name.to_owned(),
        expr: Expr::Column(column),
        cut: AxisCut::Even {
            lower: 0.0,
            upper: f64::from(cells),
            cells,
        },
    }
}

type Make = fn(&Facts<'_>, &Rational) -> Result<Prepared, StatisticsError>;

/// A mechanism of the figure.
struct Shown {
    name: &'static str,
    class: &'static str,
    make: Make,
    /// The error of an answer as a share.
    error: fn(&World, &serde_json::Value) -> f64,
}

fn shown() -> Vec<Shown> {
    let median_error = |w: &World, v: &serde_json::Value| {
        let value = list(v, "values")
            .first()
            .and_then(serde_json::Value::as_f64);
        (w.rank(value.unwrap_or(f64::NAN)) - 0.5).abs()
    };
    let area_error = |w: &World, v: &serde_json::Value| (at(v, "auc") - w.area()).abs();
    vec![
        Shown {
            name: "count",
            class: "blue",
            make: simple::count,
            error: |w, v| (at(v, "count") - real(w.rows())).abs() / real(w.rows()),
        },
        Shown {
            name: "worst of 365 running totals",
            class: "blue",
            make: |f, e| {
                let payment = Payment::Pure { epsilon: e.clone() };
                running::prepare(f, &axis("day", 1, DAYS), Some(Method::Honaker), payment)
            },
            error: |w, v| {
                let mut sum = 0;
                let truth = w.counts(1, DAYS).into_iter().map(|c| {
                    sum += c;
                    real(sum)
                });
                list(v, "totals")
                    .iter()
                    .zip(truth)
                    .map(|(a, b)| (a.as_f64().unwrap_or(f64::NAN) - b).abs())
                    .fold(0.0, f64::max)
                    / real(w.rows())
            },
        },
        Shown {
            name: "top 10 of 200",
            class: "blue dash",
            make: |f, e| selection::top_k(f, &axis("value", 2, VALUES), TOP, None, e),
            error: |w, v| {
                let counts = w.counts(2, VALUES);
                // the labels are the edges of cells
                let picked: Vec<usize> = list(v, "top")
                    .iter()
                    .filter_map(|t| t.as_str()?.split_once(" to ")?.0.parse::<f64>().ok())
                    .filter_map(|t| (0..counts.len()).find(|i| (real(*i) - t).abs() < 0.5))
                    .collect();
                let least = picked.iter().map(|i| counts[*i]).min().unwrap_or(0);
                let missed = (0..counts.len())
                    .filter(|i| !picked.contains(i))
                    .map(|i| counts[i])
                    .max()
                    .unwrap_or(0);
                real(missed.saturating_sub(least)) / real(w.rows())
            },
        },
        Shown {
            name: "median, exponential",
            class: "red",
            make: |f, e| simple::quantiles(f, Expr::Column(0), "x", &[0.5], 4096, e),
            error: median_error,
        },
        Shown {
            name: "median, smooth (Cauchy)",
            class: "red dash",
            make: |f, e| {
                let x = Expr::Column(0);
                simple::bisected_quantiles(f, x, "x", &[0.5], 4096, Bisect::Smooth, e)
            },
            error: median_error,
        },
        Shown {
            name: "area by roc",
            class: "green",
            make: |f, e| {
                let score = Score::Probability(Expr::Column(3));
                roc::prepare(f, &score, Expr::Column(4), roc::Config::new(e.clone()))
            },
            error: area_error,
        },
        Shown {
            name: "area by auc (Cauchy)",
            class: "green dash",
            make: |f, e| {
                let score = Score::Probability(Expr::Column(3));
                auc::prepare(f, &score, Expr::Column(4), e, serde_json::Value::Null)
            },
            error: area_error,
        },
    ]
}

fn facts<'a>(world: &'a World, context: &'a Context) -> Facts<'a> {
    Facts {
        schema: &world.schema,
        filter: None,
        context,
        rows: Some(real(world.rows())),
        positive_rate: Some(0.35),
    }
}

/// Mean errors, one list over [`SIGNALS`] per mechanism.
fn measure(world: &World, runs: u64) -> Result<Vec<Vec<f64>>, StudyError> {
    let context = context(Relation::AddRemove, Currency::Pure, Size::Private);
    shown()
        .iter()
        .enumerate()
        .map(|(m, shown)| {
            SIGNALS
                .iter()
                .map(|signal| {
                    let n = u32::try_from(world.rows()).map_err(StudyError::release)?;
                    let e = Rational::from(*signal) / Rational::from(n);
                    let prepared =
                        (shown.make)(&facts(world, &context), &e).map_err(StudyError::release)?;
                    let errors: Vec<f64> = (0..runs)
                        .into_par_iter()
                        .map(|run| {
                            let stream = u64::from(*signal) * 1000 + real_stream(m) + run * 7919;
                            let mut noise = Seeded::stream(SEED, stream);
                            let answer =
                                release(&world.source, &context, None, &prepared, &mut noise)?;
                            Ok((shown.error)(world, &answer.value))
                        })
                        .collect::<Result<_, StudyError>>()?;
                    Ok(errors.iter().sum::<f64>() / real(errors.len()))
                })
                .collect()
        })
        .collect()
}

fn real_stream(m: usize) -> u64 {
    (m as u64) << 40
}

/// The figure.
fn figure(errors: &[Vec<f64>]) -> String {
    let mut chart = Chart::new(
        "Which mechanism when: mean error against n·ε",
        Axis::log(100.0, 1e6, "number of records times ε"),
        Axis::log(1e-6, 1.0, "error, as a share"),
    )
    .sized(520.0, 90.0);
    for (shown, row) in shown().iter().zip(errors) {
        let points: Vec<(f64, f64)> = SIGNALS
            .iter()
            .zip(row)
            .map(|(s, e)| (f64::from(*s), e.max(1e-6)))
            .collect();
        chart.line(shown.class, points);
    }
    for (shown, row) in shown().iter().zip(errors) {
        // beside the left end; the three lowest curves begin too close together for that and are labelled below it
        let by = match shown.name.split(' ').next() {
            Some("top") => 12.0,
            Some("count") => 16.0,
            Some("median,") if shown.name.ends_with("exponential") => 30.0,
            _ => -8.0,
        };
        let at = row.first().copied().unwrap_or(1.0);
        chart.label((100.0, at), (6.0, by), "start", shown.name);
    }
    chart.svg(false)
}

/// Runs the study.
pub fn run(form: Form) -> Result<Findings, StudyError> {
    let runs = u64::from(form.pick(3, 60));
    let rows = if form == Form::Quick { 4_000 } else { ROWS };
    let world = World::new(rows);
    let errors = measure(&world, runs)?;
    let mut found = Findings {
        settings: vec![
            format!("{rows} made-up records, add/remove, pure ε, {runs} runs, seed {SEED}"),
            "error: mean of |error| as a share of the records (counts, ranks, totals) or of the whole (areas)".to_owned(),
        ],
        head: std::iter::once("mechanism".to_owned())
            .chain(SIGNALS.iter().map(|s| format!("n·ε = {s}")))
            .collect(),
        ..Findings::default()
    };
    for (shown, row) in shown().iter().zip(&errors) {
        found.rows.push(
            std::iter::once(shown.name.to_owned())
                .chain(row.iter().map(|e| format!("{e:.2e}")))
                .collect(),
        );
    }
    for (shown, row) in shown().iter().zip(&errors) {
        let ends = row.first().zip(row.last());
        found.require(
            ends.is_some_and(|(a, b)| b < a && row.iter().all(|e| e.is_finite())),
            format!("{}: the error falls with n·ε", shown.name),
        );
    }
    if let Some(folder) = std::env::var_os("RETICENT_PICTURES") {
        let path = PathBuf::from(folder).join("which-mechanism.svg");
        std::fs::write(&path, figure(&errors)).map_err(StudyError::release)?;
    }
    Ok(found)
}
