//! Coverage of the nominal 95 % intervals of `income ~ age + educ` on PUMS records.
//!
//! Each run draws 10,000 records with replacement from the 10,000 and releases the model. The truth is least
//! squares on the 10,000 records with all values clamped to the declared bounds. The line is not a true model of
//! income (errors are skewed and grow with education), so this asks more of the intervals than their theory.

use rayon::prelude::*;
use reticent_laws::Seeded;
use reticent_mechanisms::program::Expr;
use reticent_noise::Noise;
use serde_json::Value;

use super::pums::Pums;
use super::{at, list, of};
use crate::public::{RELATIONS, mean, release};
use crate::real;
use crate::study::{Findings, Form, StudyError};
use crate::truth::{self, least_squares};

/// Seed of the resampling; the run is the stream, so all settings see the same tables.
pub const ROWS_SEED: u64 = 5_000;
/// Seeds of the noise: plus the position of the setting; the run is the stream.
pub const NOISE_SEED: u64 = 6_000;
/// δ of every run.
pub const DELTA: &str = "1e-6";
/// The values of ε.
pub const EPSILONS: [&str; 2] = ["0.1", "1"];

/// One released coefficient.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The study's data.
pub struct Bench {
    pums: Pums,
    /// Names of the coefficients, intercept first.
    pub names: Vec<String>,
    /// The true coefficients.
    pub truth: Vec<f64>,
}

impl Bench {
    /// Reads the data and computes the truth.
    pub fn load() -> Result<Self, StudyError> {
        let pums = Pums::load()?;
        let [age, educ] = pums.design.terms.as_slice() else {
            return Err(StudyError::Example(
                "the model has other terms than two".into(),
            ));
        };
        let outcome: &Expr = pums.design.response.expr();
        let records: Vec<([f64; 2], f64)> =
            truth::values([&age.expr, &educ.expr, outcome], &pums.example.table)
                .into_iter()
                .map(|[a, b, y]| ([a, b], y))
                .collect();
        let truth = least_squares::fit(&records)
            .ok_or_else(|| StudyError::Example("least squares has no solution".into()))?;
        let names = std::iter::once("(Intercept)".to_owned())
            .chain([age.name.clone(), educ.name.clone()])
            .collect();
        Ok(Self { pums, names, truth })
    }

    /// The coefficients of each run, in the order of [`Bench::names`]; `setting` is 2·(position of ε) + relation.
    pub fn runs(&self, setting: usize, runs: u32) -> Result<Vec<Vec<Interval>>, StudyError> {
        self.runs_with(setting, runs, |noise| Box::new(noise))
    }

    /// The same with noise made from that of the run: for controls.
    pub fn runs_with(
        &self,
        setting: usize,
        runs: u32,
        wrap: impl Fn(Seeded) -> Box<dyn Noise> + Sync,
    ) -> Result<Vec<Vec<Interval>>, StudyError> {
        let context = self.pums.context(RELATIONS[setting % 2].0);
        let prepared = self.pums.linear(&context, EPSILONS[setting / 2], DELTA)?;
        (0..u64::from(runs))
            .into_par_iter()
            .map(|run| {
                let mut rows = Seeded::stream(ROWS_SEED, run);
                let source = self.pums.example.table.resample(&mut rows).source();
                let mut noise = wrap(Seeded::stream(NOISE_SEED + setting as u64, run));
                let answer = release(&source, &context, None, &prepared, noise.as_mut())?;
                Ok(self
                    .names
                    .iter()
                    .map(|n| interval(&answer.value, n))
                    .collect())
            })
            .collect()
    }

    /// How many intervals of a coefficient hold its true value.
    pub fn holds(&self, runs: &[Vec<Interval>], coefficient: usize) -> usize {
        let truth = self.truth[coefficient];
        runs.iter()
            .map(|r| r[coefficient])
            .filter(|i| i.low <= truth && truth <= i.high)
            .count()
    }
}

/// A coefficient of a released model; not-a-number if it is not there.
fn interval(value: &Value, name: &str) -> Interval {
    let term = list(value, "terms")
        .iter()
        .find(|t| t.get("name").and_then(Value::as_str) == Some(name))
        .unwrap_or(&Value::Null);
    Interval {
        estimate: at(term, "estimate"),
        low: at(term, "conf_low"),
        high: at(term, "conf_high"),
    }
}

/// Runs the study.
pub fn run(form: Form) -> Result<Findings, StudyError> {
    let bench = Bench::load()?;
    let runs = form.pick(60, 500);
    let n = bench.pums.example.table.rows();
    let mut findings = Findings {
        settings: vec![
            format!(
                "PUMS, `{}`, n = {n} drawn with replacement from {n} records (seed {ROWS_SEED}, run as stream), δ = {DELTA}, {runs} runs.",
                bench.pums.design.formula
            ),
            format!(
                "Truth (least squares on the {n} records, values clamped to the declared bounds): {}.",
                bench
                    .names
                    .iter()
                    .zip(&bench.truth)
                    .map(|(name, b)| format!("{name} {b:.4}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            format!(
                "Noise seeds {NOISE_SEED} to {}, run as stream.",
                NOISE_SEED + 3
            ),
        ],
        head: [
            "ε",
            "relation",
            "coefficient",
            "intervals that hold",
            "mean length",
            "mean of estimates minus truth, in mean standard errors",
        ]
        .map(str::to_owned)
        .to_vec(),
        ..Findings::default()
    };
    for setting in 0..2 * EPSILONS.len() {
        let (epsilon, relation) = (EPSILONS[setting / 2], RELATIONS[setting % 2].1);
        let all = bench.runs(setting, runs)?;
        for (i, name) in bench.names.iter().enumerate() {
            let holds = bench.holds(&all, i);
            let length = mean(&all.iter().map(|r| r[i].high - r[i].low).collect::<Vec<_>>());
            let bias =
                mean(&all.iter().map(|r| r[i].estimate).collect::<Vec<_>>()) - bench.truth[i];
            findings.rows.push(vec![
                epsilon.to_owned(),
                relation.to_owned(),
                name.clone(),
                format!(
                    "{} ({:.1} %)",
                    of(holds, all.len()),
                    100.0 * real(holds) / real(all.len())
                ),
                format!("{length:.1}"),
                format!("{:+.2}", bias / (length / 3.92)),
            ]);
            if i > 0 && form == Form::Full {
                let share = real(holds) / real(all.len());
                findings.require(
                    (0.90..=0.99).contains(&share),
                    format!("ε = {epsilon}, {relation}: intervals of {name} hold in 90 to 99 % of the runs ({holds} of {})", all.len()),
                );
            }
        }
    }
    Ok(findings)
}
