//! Private against true binned residuals of the Adult test records at ε = 1.
//!
//! The truth of a run is computed at the run's own released edges. A bin is *outside* if its mean residual is more
//! than two standard errors from 0: exact residual and sampling error alone for the true plot, released residual and
//! released limit (which includes the noise) for the private one.

use rayon::prelude::*;
use reticent_accounting::Relation;
use reticent_laws::Seeded;
use reticent_mechanisms::source::Memory;
use reticent_noise::Noise;
use reticent_statistics::binned;
use serde_json::Value;

use super::adult::Adult;
use super::{at, list};
use crate::public::{RELATIONS, mean, release};
use crate::real;
use crate::study::{Findings, Form, StudyError};
use crate::truth::bins::{Bin, bin, shape_difference};

/// Seeds of the runs' noise: plus the position of the relation; the run is the stream.
pub const SEED: u64 = 8_000;

/// The study's data.
pub struct Bench {
    adult: Adult,
    source: Memory,
    /// (predicted probability, outcome) of the test records, by this crate's arithmetic.
    records: Vec<[f64; 2]>,
}

/// Agreement of one released plot with the true one, as shares of the bins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Agreement {
    /// Number of bins.
    pub bins: usize,
    /// True bins outside their limits.
    pub truly_outside: f64,
    /// Released bins outside their limits.
    pub released_outside: f64,
    /// Bins on which the two plots say the same.
    pub same: f64,
    /// True mean residuals farther than the released limit from the released one.
    pub beyond_limit: f64,
    /// Mean absolute error of the mean residual.
    pub error: f64,
    /// The papers' shape difference.
    pub shape: f64,
}

impl Bench {
    /// Reads the data and fits the model.
    pub fn load() -> Result<Self, StudyError> {
        let adult = Adult::load()?;
        let records = adult
            .scored()
            .into_iter()
            .map(|[s, y]| [1.0 / (1.0 + (-s).exp()), y])
            .collect();
        Ok(Self {
            source: adult.test.source(),
            records,
            adult,
        })
    }

    /// A released plot.
    pub fn release(&self, relation: Relation, noise: &mut dyn Noise) -> Result<Value, StudyError> {
        let context = Adult::context(relation);
        let facts = self.adult.facts(&context, "residuals")?;
        let entry = self.adult.example.entry("residuals")?;
        let prepared = binned::prepare(
            &facts,
            &self.adult.score(),
            self.adult.design.response.expr().clone(),
            binned::Config::new(entry.payment.epsilon.clone()),
        )
        .map_err(StudyError::release)?;
        Ok(release(&self.source, &context, None, &prepared, noise)?.value)
    }

    /// The exact bins between the edges of a released plot.
    pub fn true_bins(&self, value: &Value) -> Vec<Bin> {
        list(value, "bins")
            .iter()
            .map(|b| bin(&self.records, at(b, "low"), at(b, "high")))
            .collect()
    }

    /// Compares a released plot with the true one.
    pub fn agreement(&self, value: &Value) -> Agreement {
        let truth = self.true_bins(value);
        let released = list(value, "bins");
        let share = |holds: &dyn Fn(&Bin, &Value) -> bool| {
            let k = truth.iter().zip(released).filter(|(t, r)| holds(t, r));
            real(k.count()) / real(truth.len().max(1))
        };
        let truly = |t: &Bin| t.mean_residual.abs() > t.two_se();
        let said = |r: &Value| at(r, "mean_residual").abs() > at(r, "two_se");
        let error = |t: &Bin, r: &Value| (t.mean_residual - at(r, "mean_residual")).abs();
        let true_points: Vec<[f64; 3]> = truth
            .iter()
            .map(|t| [t.mean_fitted, t.mean_residual, 1.0])
            .collect();
        let points: Vec<[f64; 3]> = released
            .iter()
            .map(|r| [at(r, "mean_fitted"), at(r, "mean_residual"), 1.0])
            .collect();
        let errors: Vec<f64> = truth
            .iter()
            .zip(released)
            .map(|(t, r)| error(t, r))
            .collect();
        Agreement {
            bins: truth.len(),
            truly_outside: share(&|t, _| truly(t)),
            released_outside: share(&|_, r| said(r)),
            same: share(&|t, r| truly(t) == said(r)),
            beyond_limit: share(&|t, r| error(t, r) > at(r, "two_se")),
            error: mean(&errors),
            shape: shape_difference(&true_points, &points),
        }
    }

    /// Runs under one of the relations (0: add/remove, 1: replace-one).
    pub fn runs(&self, which: usize, runs: u32) -> Result<Vec<Agreement>, StudyError> {
        (0..u64::from(runs))
            .into_par_iter()
            .map(|run| {
                let mut noise = Seeded::stream(SEED + which as u64, run);
                Ok(self.agreement(&self.release(RELATIONS[which].0, &mut noise)?))
            })
            .collect()
    }
}

/// Runs the study.
pub fn run(form: Form) -> Result<Findings, StudyError> {
    let bench = Bench::load()?;
    let runs = form.pick(10, 200);
    let mut findings = Findings {
        settings: vec![
            bench.adult.describe(),
            format!(
                "Binned residuals: ε = 1, default rules, {runs} runs, seeds {SEED} and {}, run as stream.",
                SEED + 1
            ),
        ],
        head: [
            "relation",
            "bins",
            "true bins outside",
            "released bins outside",
            "same verdict",
            "true value beyond the released limit",
            "mean abs. error of the mean residual",
            "shape difference, mean",
        ]
        .map(str::to_owned)
        .to_vec(),
        ..Findings::default()
    };
    for (which, (_, name)) in RELATIONS.iter().enumerate() {
        let all = bench.runs(which, runs)?;
        let average = |pick: fn(&Agreement) -> f64| mean(&all.iter().map(pick).collect::<Vec<_>>());
        let percent = |x: f64| format!("{:.1} %", 100.0 * x);
        findings.rows.push(vec![
            (*name).to_owned(),
            all.first().map_or(0, |a| a.bins).to_string(),
            percent(average(|a| a.truly_outside)),
            percent(average(|a| a.released_outside)),
            percent(average(|a| a.same)),
            percent(average(|a| a.beyond_limit)),
            format!("{:.4}", average(|a| a.error)),
            format!("{:.3}", average(|a| a.shape)),
        ]);
    }
    Ok(findings)
}
