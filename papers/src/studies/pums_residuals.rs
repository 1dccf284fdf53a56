//! Private against true residual plots of the PUMS model.
//!
//! The model is one private draw, the same for all runs; the true plot is that of the released model, which is
//! what a residual plot is about. Two distances: the papers' similarity (10 × 10 cells around the true points, the
//! released side given by its drawn points), and total variation on the released grid itself (no drawing).

use rayon::prelude::*;
use reticent_accounting::Relation;
use reticent_engine::model::Model;
use reticent_laws::{Seeded, Silent};
use reticent_mechanisms::source::Memory;
use reticent_noise::Noise;
use reticent_statistics::residuals;
use serde_json::Value;

use super::pums::{Pums, rational};
use super::{at, drawn, list};
use crate::public::{RELATIONS, mean, release};
use crate::real;
use crate::study::{Findings, Form, StudyError};
use crate::truth::plot::{Frame, similarity, total_variation};
use crate::truth::{self};

/// Seed of the model's noise.
pub const MODEL_SEED: u64 = 2000;
/// Seeds of the plots' noise: plus the position of the setting; the run is the stream.
pub const SEED: u64 = 7_000;

/// Distances of one released plot to the true one.
#[derive(Clone, Copy, Debug)]
pub struct Distance {
    /// The papers' similarity.
    pub similarity: f64,
    /// Total variation on the released grid.
    pub own_grid: f64,
    /// Cells on a side of the released grid.
    pub side: usize,
}

/// The study's data.
pub struct Bench {
    pums: Pums,
    source: Memory,
    model: Model,
    /// (fitted value, residual) of every record, by this crate's arithmetic.
    pub points: Vec<[f64; 2]>,
}

impl Bench {
    /// Reads the data and fits the model.
    pub fn load() -> Result<Self, StudyError> {
        let pums = Pums::load()?;
        let source = pums.example.table.source();
        let context = pums.context(Relation::AddRemove);
        let prepared = pums.linear(&context, "1", "5e-7")?;
        let answer = release(
            &source,
            &context,
            None,
            &prepared,
            &mut Seeded::new(MODEL_SEED),
        )?;
        let model = Model::read(&answer.value).map_err(StudyError::release)?;
        let fitted = model.linear_predictor(&pums.design);
        let outcome = pums.design.response.expr();
        let points = truth::values([&fitted, outcome], &pums.example.table)
            .into_iter()
            .map(|[f, y]| [f, y - f])
            .collect();
        Ok(Self {
            pums,
            source,
            model,
            points,
        })
    }

    /// A released plot.
    pub fn release(
        &self,
        relation: Relation,
        epsilon: &str,
        noise: &mut dyn Noise,
    ) -> Result<Value, StudyError> {
        let context = self.pums.context(relation);
        let prepared = residuals::prepare(
            &self.pums.facts(&context),
            &self.model.linear_predictor(&self.pums.design),
            self.pums.design.response.expr(),
            residuals::Config::new(rational(epsilon)?),
        )
        .map_err(StudyError::release)?;
        Ok(release(&self.source, &context, None, &prepared, noise)?.value)
    }

    /// True counts on the grid of a released plot.
    pub fn true_counts(&self, value: &Value) -> Vec<usize> {
        Self::frame(value).counts(&self.points)
    }

    fn frame(value: &Value) -> Frame {
        let ends = value.get("box").unwrap_or(&Value::Null);
        let side = list(value, "counts").len().isqrt();
        Frame {
            x: (at(ends, "x_low"), at(ends, "x_high")),
            y: (at(ends, "y_low"), at(ends, "y_high")),
            side,
        }
    }

    /// Distances of a released plot to the true one.
    pub fn distance(&self, value: &Value) -> Distance {
        let threshold = at(value, "threshold");
        let kept: Vec<f64> = list(value, "counts")
            .iter()
            .map(|c| c.as_f64().filter(|c| *c >= threshold).unwrap_or(0.0))
            .collect();
        let truth: Vec<f64> = self.true_counts(value).into_iter().map(real).collect();
        Distance {
            similarity: similarity(&self.points, &drawn(value)),
            own_grid: total_variation(&truth, &kept),
            side: Self::frame(value).side,
        }
    }
}

/// Runs the study.
pub fn run(form: Form) -> Result<Findings, StudyError> {
    let bench = Bench::load()?;
    let runs = form.pick(10, 200);
    let mut findings = Findings {
        settings: vec![
            format!(
                "PUMS, {} records; model: private `{}` (ε = 1, δ = 5e-7), one draw with seed {MODEL_SEED}.",
                bench.points.len(),
                bench.pums.design.formula
            ),
            format!(
                "Residual plots: default rules, {runs} runs per setting, seeds {SEED} to {}, run as stream; 0 means equal plots.",
                SEED + 3
            ),
            "Noise off: what grid, clamping into the box and drawing at most 2,000 points leave."
                .to_owned(),
        ],
        head: [
            "ε",
            "relation",
            "cells on a side",
            "similarity: mean (noise off)",
            "total variation on its own grid: mean, largest",
        ]
        .map(str::to_owned)
        .to_vec(),
        ..Findings::default()
    };
    for (e, epsilon) in ["0.1", "1"].into_iter().enumerate() {
        for (r, (relation, name)) in RELATIONS.into_iter().enumerate() {
            let all: Vec<Distance> = (0..u64::from(runs))
                .into_par_iter()
                .map(|run| {
                    let mut noise = Seeded::stream(SEED + (2 * e + r) as u64, run);
                    Ok(bench.distance(&bench.release(relation, epsilon, &mut noise)?))
                })
                .collect::<Result<_, StudyError>>()?;
            let silent = bench.distance(&bench.release(relation, epsilon, &mut Silent)?);
            let similarities: Vec<f64> = all.iter().map(|d| d.similarity).collect();
            let own: Vec<f64> = all.iter().map(|d| d.own_grid).collect();
            findings.rows.push(vec![
                epsilon.to_owned(),
                name.to_owned(),
                silent.side.to_string(),
                format!("{:.3} ({:.3})", mean(&similarities), silent.similarity),
                format!(
                    "{:.3}, {:.3}",
                    mean(&own),
                    own.iter().copied().fold(0.0, f64::max)
                ),
            ]);
        }
    }
    Ok(findings)
}
