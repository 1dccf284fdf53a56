//! ROC of the Adult test records at ε = 1: private against true area, and how often the proved band covers
//! the whole true curve.
//!
//! A run covers if every point of the empirical curve – vertices at every distinct score, straight lines across
//! ties – lies in the union of the released rectangles ([`Curve::covered`]).

use rayon::prelude::*;
use reticent_accounting::Relation;
use reticent_laws::Seeded;
use reticent_mechanisms::Answer;
use reticent_mechanisms::source::Memory;
use reticent_noise::Noise;
use reticent_statistics::roc;
use serde_json::Value;

use super::adult::Adult;
use super::{at, list, of};
use crate::public::{RELATIONS, mean, release};
use crate::real;
use crate::study::{Findings, Form, StudyError};
use crate::truth::curve::{Curve, Point, Rectangle};

/// Seeds of the runs' noise: the seed plus the position of the relation, the run as stream.
pub const SEED: u64 = 2_003;
/// Runs that count for the area.
pub const AREA_RUNS: usize = 20;

/// One simulated release against the truth.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "four independent verdicts")]
pub struct Run {
    /// Released area minus true area.
    pub area_error: f64,
    /// Whether the band covers the whole true curve.
    pub covered: bool,
    /// Whether the true vertex at every released threshold lies within its own bounds: what is proved, and more
    /// than the curve needs (a vertex outside its bounds may lie in a neighbouring rectangle).
    pub vertices_covered: bool,
    /// Whether the approximate interval of the area holds the true one.
    pub interval_holds: bool,
    /// Whether the proved interval of the area holds the true one.
    pub proved_holds: bool,
    /// Widths of the approximate and of the proved interval.
    pub widths: (f64, f64),
    /// The papers' symmetric difference of curves.
    pub symmetric_difference: f64,
    /// Mean height of the band: its area.
    pub band_height: f64,
}

/// The study's data: a model, test records, their true curve.
pub struct Bench {
    adult: Adult,
    source: Memory,
    truth: Curve,
    /// Predicted probabilities of the negatives and of the positives, increasing.
    predictions: [Vec<f64>; 2],
}

impl Bench {
    /// Reads the data and fits the model.
    pub fn load() -> Result<Self, StudyError> {
        let adult = Adult::load()?;
        let scored = adult.scored();
        let predictions = [0.0, 1.0].map(|label| {
            let of_label = scored.iter().filter(|s| (s[1] - label).abs() < 0.5);
            let mut p: Vec<f64> = of_label.map(|s| 1.0 / (1.0 + (-s[0]).exp())).collect();
            p.sort_by(f64::total_cmp);
            p
        });
        Ok(Self {
            source: adult.test.source(),
            truth: Curve::new(&scored),
            predictions,
            adult,
        })
    }

    /// The true curve.
    pub fn truth(&self) -> &Curve {
        &self.truth
    }

    /// The released curve on the test records alone, with any noise.
    pub fn release(&self, relation: Relation, noise: &mut dyn Noise) -> Result<Answer, StudyError> {
        let context = Adult::context(relation);
        let facts = self.adult.facts(&context, "roc")?;
        let epsilon = self.adult.example.entry("roc")?.payment.epsilon.clone();
        let outcome = self.adult.design.response.expr().clone();
        let prepared = roc::prepare(
            &facts,
            &self.adult.score(),
            outcome,
            roc::Config::new(epsilon),
        )
        .map_err(StudyError::release)?;
        release(&self.source, &context, None, &prepared, noise)
    }

    /// The same release as a plan makes it: all records, routed by the shipped rule.
    pub fn release_of_part(
        &self,
        relation: Relation,
        noise: &mut dyn Noise,
    ) -> Result<Answer, StudyError> {
        use reticent_mechanisms::program::RowProgram;
        use reticent_mechanisms::{Simulated, Unit, simulate};
        let context = Adult::context(relation);
        let facts = self.adult.facts(&context, "roc")?;
        let epsilon = self.adult.example.entry("roc")?.payment.epsilon.clone();
        let outcome = self.adult.design.response.expr().clone();
        let config = roc::Config::new(epsilon);
        let prepared = roc::prepare(&facts, &self.adult.score(), outcome, config)
            .map_err(StudyError::release)?;
        let program = RowProgram {
            terms: prepared.terms,
            filter: None,
            part: Some(self.adult.part.clone()),
        };
        let all = self.adult.example.table.source();
        let mechanism = prepared.mechanism.as_ref();
        let Simulated((answer, _)) =
            simulate(&all, Unit::Row, &context, &program, mechanism, noise)
                .map_err(StudyError::release)?;
        Ok(answer)
    }

    /// Runs under one of the relations (0: add/remove, 1: replace-one).
    pub fn runs(&self, which: usize, runs: u32) -> Result<Vec<Run>, StudyError> {
        (0..runs)
            .into_par_iter()
            .map(|run| {
                let mut noise = Seeded::stream(SEED + which as u64, u64::from(run));
                let answer = self.release(RELATIONS[which].0, &mut noise)?;
                Ok(self.judge(&answer.value))
            })
            .collect()
    }

    /// Rectangle k runs from the lower bounds of vertex k to the upper bounds of vertex k + 1, so the bounds of the
    /// vertex below bin k are the upper ones of rectangle k and the lower ones of rectangle k + 1.
    fn vertices_covered(&self, band: &[Rectangle], value: &Value) -> bool {
        let bins = list(value, "bins");
        bins.iter()
            .zip(band.iter().zip(band.iter().skip(1)))
            .all(|(bin, (above, below))| {
                let threshold = at(bin, "score_low");
                let [f, t] = [0, 1].map(|label| {
                    let p: &[f64] = &self.predictions[label];
                    let passed = p.len() - p.partition_point(|p| *p < threshold);
                    real(passed) / real(p.len())
                });
                let within =
                    |low: f64, v: f64, high: f64| low - ROUNDING <= v && v <= high + ROUNDING;
                within(below.fpr.0, f, above.fpr.1) && within(below.tpr.0, t, above.tpr.1)
            })
    }

    /// Compares a released curve with the true one.
    pub fn judge(&self, value: &Value) -> Run {
        let band = band(value);
        let curve: Vec<Point> = list(value, "curve")
            .iter()
            .map(|p| (at(p, "fpr"), at(p, "tpr")))
            .collect();
        let (low, high) = (at(value, "auc_low"), at(value, "auc_high"));
        let (proved_low, proved_high) = (at(value, "auc_proved_low"), at(value, "auc_proved_high"));
        Run {
            area_error: at(value, "auc") - self.truth.area,
            covered: self.truth.covered(&band),
            vertices_covered: self.vertices_covered(&band, value),
            interval_holds: low <= self.truth.area && self.truth.area <= high,
            proved_holds: proved_low <= self.truth.area && self.truth.area <= proved_high,
            widths: (high - low, proved_high - proved_low),
            symmetric_difference: self.truth.symmetric_difference(&curve),
            band_height: height(&band),
        }
    }
}

/// Rates at a threshold are exact quotients; bounds forgive the rounding of their own computation.
const ROUNDING: f64 = 1e-12;

/// The rectangles of a released curve.
fn band(value: &Value) -> Vec<Rectangle> {
    list(value, "band")
        .iter()
        .map(|r| Rectangle {
            fpr: (at(r, "fpr_low"), at(r, "fpr_high")),
            tpr: (at(r, "tpr_low"), at(r, "tpr_high")),
        })
        .collect()
}

/// Mean height of the union of rectangles, on 1,000 even cells.
fn height(band: &[Rectangle]) -> f64 {
    let cells = 1000;
    (0..cells)
        .map(|i| {
            let f = (f64::from(i) + 0.5) / f64::from(cells);
            let over = band.iter().filter(|r| r.fpr.0 <= f && f <= r.fpr.1);
            let (low, high) = over.fold((1.0f64, 0.0f64), |(low, high), r| {
                (low.min(r.tpr.0), high.max(r.tpr.1))
            });
            (high - low).max(0.0)
        })
        .sum::<f64>()
        / f64::from(cells)
}

/// Runs the study.
pub fn run(form: Form) -> Result<Findings, StudyError> {
    let bench = Bench::load()?;
    let runs = form.pick(20, 200);
    let (positives, negatives) = bench.truth.sizes;
    let mut findings = Findings {
        settings: vec![
            bench.adult.describe(),
            format!(
                "Truth: {positives} positives, {negatives} negatives, {} distinct scores, AUC {:.6} (ties half).",
                bench.truth.vertices.len() - 1,
                bench.truth.area
            ),
            format!(
                "ROC: ε = 1, default rules, {runs} runs, seeds {SEED} and {}, run as stream.",
                SEED + 1
            ),
        ],
        head: [
            "relation",
            "AUC within .01 (first 20)",
            "mean, largest abs. AUC error",
            "band covers the whole curve",
            "true vertices within their own bounds",
            "band height, mean",
            "AUC interval holds (width)",
            "proved AUC interval holds (width)",
            "symmetric difference, mean",
        ]
        .map(str::to_owned)
        .to_vec(),
        ..Findings::default()
    };
    for (which, (_, name)) in RELATIONS.iter().enumerate() {
        let all = bench.runs(which, runs)?;
        let n = all.len();
        let close = all
            .iter()
            .take(AREA_RUNS)
            .filter(|r| r.area_error.abs() <= 0.01)
            .count();
        let count = |pick: fn(&Run) -> bool| all.iter().filter(|r| pick(r)).count();
        let average = |pick: fn(&Run) -> f64| mean(&all.iter().map(pick).collect::<Vec<_>>());
        let covered = count(|r| r.covered);
        let largest = all.iter().map(|r| r.area_error.abs()).fold(0.0, f64::max);
        findings.rows.push(vec![
            (*name).to_owned(),
            of(close, AREA_RUNS.min(n)),
            format!("{:.5}, {largest:.5}", average(|r| r.area_error.abs())),
            of(covered, n),
            of(count(|r| r.vertices_covered), n),
            format!("{:.4}", average(|r| r.band_height)),
            format!(
                "{} ({:.4})",
                of(count(|r| r.interval_holds), n),
                average(|r| r.widths.0)
            ),
            format!(
                "{} ({:.4})",
                of(count(|r| r.proved_holds), n),
                average(|r| r.widths.1)
            ),
            format!("{:.5}", average(|r| r.symmetric_difference)),
        ]);
        findings.require(
            close >= 19,
            format!(
                "{name}: private AUC within .01 of the true one in at least 19 of 20 runs ({close})"
            ),
        );
        if form == Form::Full {
            findings.require(
                real(covered) >= 0.94 * real(n),
                format!("{name}: the band covers the whole true curve in at least 94 % of the runs ({covered} of {n})"),
            );
        }
    }
    Ok(findings)
}
