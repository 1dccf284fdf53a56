//! The histogram algorithms on the DPBench data sets (Hay, Machanavajjhala, Miklau, Chen, Zhang 2016): prefix sums of lines of 4096
//! cells, rectangles of planes of 64², 128², 256², and the linear methods against their closed forms.
//!
//! The data are read from `$RETICENT_DATA/dpbench_1d` and `dpbench_2d`. The short form needs none: it uses shapes of its own.

use std::io::Read as _;
use std::path::PathBuf;

use rayon::prelude::*;
use reticent_accounting::{Currency, Rational, Relation, Size, parse_decimal};
use reticent_laws::{Seeded, Silent};
use reticent_mechanisms::Context;
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_noise::Noise;
use reticent_statistics::histogram::{Config, Domain, Method, Workload, prepare};
use reticent_statistics::simple::{AxisCut, AxisSpec};
use reticent_statistics::{Facts, Prepared};

use crate::public::{context, mean, release};
use crate::real;
use crate::studies::{at, list};
use crate::study::{Findings, Form, StudyError};

/// Seed of the samples of records.
const SAMPLE: u64 = 2016;
/// Seed of the noise.
const NOISE: u64 = 2017;
const EPSILON: &str = "0.1";
const LINES: [&str; 8] = [
    "ADULT",
    "BIDS-FJ",
    "HEPTH",
    "INCOME",
    "LC-REQ-F1",
    "MEDCOST",
    "NETTRACE",
    "SEARCHLOGS",
];
const PLANES: [&str; 7] = [
    "ADULT-2D",
    "BEIJING-CABS-E",
    "BEIJING-CABS-S",
    "LOAN-FUNDED-INCOME",
    "SF-CABS-E",
    "SF-CABS-S",
    "TWITTER",
];

/// Records in the cells of a domain.
struct World {
    name: String,
    domain: Domain,
    scale: usize,
    schema: Schema,
    source: Memory,
    truth: Vec<f64>,
}

impl World {
    /// One multinomial draw of `scale` records from a shape.
    fn sample(name: &str, domain: Domain, shape: &[f64], scale: usize) -> Self {
        let mut sums = Vec::with_capacity(shape.len());
        let mut total = 0.0;
        for s in shape {
            total += s;
            sums.push(total);
        }
        let mut random = Seeded::new(SAMPLE);
        let mut cells = vec![0.0; shape.len()];
        for _ in 0..scale {
            #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
            let u = (random.bits() >> 11) as f64 / 9_007_199_254_740_992.0 * total;
            let cell = sums.partition_point(|s| *s <= u).min(shape.len() - 1);
            cells[cell] += 1.0;
        }
        Self::of(name, domain, cells, scale)
    }

    fn of(name: &str, domain: Domain, truth: Vec<f64>, scale: usize) -> Self {
        let (mut x, mut y) = (Vec::with_capacity(scale), Vec::with_capacity(scale));
        for (i, count) in truth.iter().enumerate() {
            let mut left = *count;
            while left > 0.5 {
                x.push(real(i / domain.columns()) + 0.5);
                y.push(real(i % domain.columns()) + 0.5);
                left -= 1.0;
            }
        }
        let column = |name: &str, cells: usize| Column {
            name: name.to_owned(),
            kind: Kind::Real {
                lower: 0.0,
                upper: real(cells),
            },
            missing: Missing::Drop,
        };
        let schema = Schema {
            columns: vec![column("x", domain.rows()), column("y", domain.columns())],
        };
        let batch = Batch::new(x.len(), vec![Cells::Real(x), Cells::Real(y)]);
        Self {
            name: name.to_owned(),
            domain,
            scale,
            source: Memory::new(std::sync::Arc::new(schema.clone()), vec![batch]),
            schema,
            truth,
        }
    }

    fn workload(&self) -> Workload {
        match self.domain {
            Domain::Line(_) => Workload::Prefix,
            Domain::Plane(..) => Workload::Rectangles(2000),
        }
    }

    fn takes(&self, method: Method) -> bool {
        method.takes(if matches!(self.domain, Domain::Line(_)) {
            1
        } else {
            2
        })
    }

    fn prepare(
        &self,
        context: &Context,
        method: Method,
        error_draws: u32,
    ) -> Result<Prepared, StudyError> {
        let facts = Facts {
            schema: &self.schema,
            filter: None,
            context,
            rows: None,
            positive_rate: None,
        };
        let axis = |column: usize, cells: usize| -> Result<AxisSpec, StudyError> {
            Ok(AxisSpec {
                name: format!("{column}"),
                expr: Expr::Column(column),
                cut: AxisCut::Even {
                    lower: 0.0,
                    upper: real(cells),
                    cells: u32::try_from(cells).map_err(StudyError::release)?,
                },
            })
        };
        let axes = match self.domain {
            Domain::Line(n) => vec![axis(1, n)?],
            Domain::Plane(rows, columns) => vec![axis(0, rows)?, axis(1, columns)?],
        };
        let config = Config {
            workload: self.workload(),
            error_draws,
            ..Config::new(method, epsilon()?)
        };
        prepare(&facts, axes, config).map_err(StudyError::release)
    }

    /// Root mean square error over the queries, one per trial.
    fn errors(&self, method: Method, trials: u32) -> Result<Vec<f64>, StudyError> {
        let context = context(Relation::AddRemove, Currency::Pure, Size::Private);
        let prepared = self.prepare(&context, method, 0)?;
        let queries = self.workload().queries(self.domain);
        let truth = Workload::answers(self.domain, &self.truth, &queries);
        (0..u64::from(trials))
            .into_par_iter()
            .map(|run| {
                let mut noise = Seeded::stream(NOISE, run);
                let answer = release(&self.source, &context, None, &prepared, &mut noise)?;
                let cells: Vec<f64> = list(&answer.value, "counts")
                    .iter()
                    .map(|c| c.as_f64().unwrap_or(f64::NAN))
                    .collect();
                let found = Workload::answers(self.domain, &cells, &queries);
                let squares: Vec<f64> = found
                    .iter()
                    .zip(&truth)
                    .map(|(a, b)| (a - b) * (a - b))
                    .collect();
                Ok(mean(&squares).sqrt())
            })
            .collect()
    }
}

fn epsilon() -> Result<Rational, StudyError> {
    parse_decimal(EPSILON).map_err(StudyError::release)
}

fn file(folder: &str, name: &str) -> Result<Vec<f64>, StudyError> {
    let root = std::env::var_os("RETICENT_DATA").ok_or_else(|| {
        StudyError::Example(
            "set RETICENT_DATA to the folder that holds dpbench_1d and dpbench_2d".into(),
        )
    })?;
    let path = PathBuf::from(root).join(folder).join(name);
    let cause = |e: std::io::Error| StudyError::Example(format!("{}: {e}", path.display()));
    let bytes = std::fs::read(&path).map_err(cause)?;
    let mut text = String::new();
    if path.extension().is_some_and(|e| e == "gz") {
        flate2::read::GzDecoder::new(bytes.as_slice())
            .read_to_string(&mut text)
            .map_err(cause)?;
    } else {
        text = String::from_utf8_lossy(&bytes).into_owned();
    }
    text.split(|c: char| c == ',' || c.is_whitespace())
        .filter(|t| !t.is_empty())
        .map(|t| t.parse::<f64>().map_err(StudyError::release))
        .collect()
}

/// A square of 256 × 256 cells, blocks added up to a smaller side.
fn blocks(full: &[f64], side: usize) -> Vec<f64> {
    let mut cells = vec![0.0; side * side];
    for (i, x) in full.iter().enumerate() {
        let (r, c) = (i / 256 * side / 256, i % 256 * side / 256);
        cells[r * side + c] += x;
    }
    cells
}

fn worlds(form: Form) -> Result<Vec<World>, StudyError> {
    if form == Form::Quick {
        // a smooth hill, and a few towns
        let hill: Vec<f64> = (0..128)
            .map(|i| (-(real(i) - 50.0).powi(2) / 300.0).exp())
            .collect();
        let towns: Vec<f64> = (0..256)
            .map(|i| if i % 37 == 5 { 50.0 } else { 0.1 })
            .collect();
        return Ok(vec![
            World::sample("hill", Domain::Line(128), &hill, 2000),
            World::sample("towns", Domain::Plane(16, 16), &towns, 2000),
        ]);
    }
    let mut all = Vec::new();
    for name in LINES {
        let shape = file("dpbench_1d", &format!("{name}.csv"))?;
        for scale in [1_000, 100_000] {
            all.push(World::sample(
                name,
                Domain::Line(shape.len()),
                &shape,
                scale,
            ));
        }
    }
    for name in PLANES {
        let full = file("dpbench_2d", &format!("{name}.csv.gz"))?;
        for side in [64, 128, 256] {
            let domain = Domain::Plane(side, side);
            all.push(World::sample(name, domain, &blocks(&full, side), 10_000));
        }
    }
    Ok(all)
}

/// Runs it.
pub fn run(form: Form) -> Result<Findings, StudyError> {
    let trials = form.pick(5, 20);
    let mut findings = Findings {
        settings: vec![
            format!(
                "ε = {EPSILON}, add/remove, {trials} trials, noise seed {NOISE}; each data set is one multinomial draw of its scale from the set's shape, seed {SAMPLE}."
            ),
            "Error: mean over trials of the root mean square over the queries: all prefixes of a line, 2,000 random rectangles of a plane. Totals that a method needs are bought.".to_owned(),
        ],
        head: ["data", "cells", "scale"]
            .map(str::to_owned)
            .into_iter()
            .chain(Method::ALL.iter().map(|m| m.name().to_owned()))
            .chain(["best".to_owned()])
            .collect(),
        ..Findings::default()
    };
    for world in worlds(form)? {
        let mut row = vec![
            world.name.clone(),
            match world.domain {
                Domain::Line(n) => n.to_string(),
                Domain::Plane(a, b) => format!("{a} × {b}"),
            },
            world.scale.to_string(),
        ];
        let mut best: Option<(f64, Method)> = None;
        for method in Method::ALL {
            if !world.takes(method) {
                row.push("–".to_owned());
                continue;
            }
            let error = mean(&world.errors(method, trials)?);
            row.push(format!("{error:.1}"));
            if best.is_none_or(|(e, _)| error < e) {
                best = Some((error, method));
            }
        }
        row.push(best.map_or_else(String::new, |(_, m)| m.name().to_owned()));
        findings.rows.push(row);
    }
    closed_forms(form, &mut findings)?;
    Ok(findings)
}

/// Identity prefix sums: √(Var·(N + 1)/2) with the variance 2r/(1 − r)², r = e^−ε; the other linear methods: their stated errors.
fn closed_forms(form: Form, findings: &mut Findings) -> Result<(), StudyError> {
    let cells = usize::try_from(form.pick(256, 4096)).map_err(StudyError::release)?;
    let (trials, tolerance) = (
        form.pick(2000, 5_000),
        if form == Form::Quick { 0.08 } else { 0.03 },
    );
    let world = World::of("empty", Domain::Line(cells), vec![0.0; cells], 0);
    let r = (-reticent_accounting::rational_to_f64(&epsilon()?)).exp();
    let context = context(Relation::AddRemove, Currency::Pure, Size::Private);
    for method in [Method::Identity, Method::Hb, Method::Privelet] {
        let wanted = if method == Method::Identity {
            (2.0 * r / (1.0 - r).powi(2) * (real(cells) + 1.0) / 2.0).sqrt()
        } else {
            let prepared = world.prepare(&context, method, trials)?;
            let stated = release(&world.source, &context, None, &prepared, &mut Silent)?;
            at(&stated.value["workload"], "rms_error")
        };
        let squares: Vec<f64> = world
            .errors(method, trials)?
            .iter()
            .map(|e| e * e)
            .collect();
        let found = mean(&squares).sqrt();
        findings.require(
            (found / wanted - 1.0).abs() <= tolerance,
            format!(
                "{}, prefixes of {cells} cells, {trials} trials: root of the mean square {found:.1} within {:.0} % of {} {wanted:.1}",
                method.name(),
                100.0 * tolerance,
                if method == Method::Identity { "the closed form" } else { "the stated error" },
            ),
        );
    }
    Ok(())
}
