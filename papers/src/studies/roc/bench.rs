//! Scored records, their true curve, and one release on them.

use std::sync::Arc;

use rayon::prelude::*;
use reticent_accounting::{Currency, Rational, Relation, Size, parse_decimal};
use reticent_laws::Seeded;
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::rows::Schema;
use reticent_mechanisms::source::Memory;
use reticent_statistics::histogram::Method;
use reticent_statistics::roc::{Config, Thresholds, prepare, symmetric_binormal};
use reticent_statistics::{Facts, Score, auc};
use serde_json::Value;

use crate::pcg::Pcg;
use crate::public::{context, mean, release};
use crate::real;
use crate::studies::{at, list};
use crate::study::StudyError;
use crate::synthetic::{normal, table};
use crate::truth::curve::{Curve, Point, Rectangle};

/// Seed of the invented scores and of the noise; the run is the stream.
pub const SEED: u64 = 4_300;
/// Thresholds of the thesis: 2¹⁰.
const PRINTED_BINS: u32 = 1024;

/// Scores (log-odds) with labels, as a source and as a true curve.
pub struct Bench {
    /// Its name in tables.
    pub name: String,
    schema: Arc<Schema>,
    source: Memory,
    /// The empirical curve.
    pub truth: Curve,
    rows: usize,
}

/// One release against the truth.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Released minus true area.
    pub area: f64,
    /// Mean vertical distance of the curves: the papers' symmetric difference.
    pub between: f64,
    /// Whether the band covers the whole true curve.
    pub covered: bool,
    /// Whether the approximate interval of the area holds the true one.
    pub interval: bool,
    /// Whether the proved interval does.
    pub proved: bool,
    /// Widths of the two.
    pub widths: (f64, f64),
}

/// ε as an exact number.
pub fn epsilon(text: &str) -> Result<Rational, StudyError> {
    parse_decimal(text).map_err(StudyError::release)
}

/// `PriROC` as printed: 2¹⁰ smooth medians for a fifth of ε, counts by a histogram method. Constants as corrected here.
pub fn printed(e: &Rational, counts: Method) -> Config {
    Config {
        bins: Some(PRINTED_BINS),
        share: Some(0.2),
        choice: Thresholds::Smooth,
        counts,
        ..Config::new(e.clone())
    }
}

/// `PriROC-fix`: 2¹⁰ even thresholds, all of ε for the counts.
pub fn fixed(e: &Rational) -> Config {
    Config {
        bins: Some(PRINTED_BINS),
        choice: Thresholds::Even,
        counts: Method::Dawa,
        ..Config::new(e.clone())
    }
}

impl Bench {
    /// From (log-odds, label).
    pub fn new(name: impl Into<String>, scored: &[[f64; 2]]) -> Self {
        let column = |c: usize| -> Vec<f64> { scored.iter().map(|r| r[c]).collect() };
        let (scores, labels) = (column(0), column(1));
        let (schema, source) = table(&[
            ("score".to_owned(), scores.as_slice(), -30.0, 30.0),
            ("label".to_owned(), labels.as_slice(), 0.0, 1.0),
        ]);
        Self {
            name: name.into(),
            schema,
            source,
            truth: Curve::new(scored),
            rows: scored.len(),
        }
    }

    /// Normal log-odds: (number, mean, deviation) of the positives and of the negatives.
    pub fn normals(
        name: &str,
        positives: (usize, f64, f64),
        negatives: (usize, f64, f64),
        seed: u64,
    ) -> Self {
        let mut noise = Seeded::new(SEED + seed);
        let mut all = Vec::new();
        for ((count, centre, deviation), label) in [(positives, 1.0), (negatives, 0.0)] {
            all.extend((0..count).map(|_| [centre + deviation * normal(&mut noise), label]));
        }
        Self::new(name, &all)
    }

    /// Stand-in for the thesis's SMS predictions: 481 positives, 77 negatives.
    pub fn like_sms() -> Self {
        Self::normals("481 and 77 records", (481, 3.5, 1.5), (77, 0.5, 1.5), 1)
    }

    /// Stand-in for its Twitter predictions: 385 positives, 299 negatives.
    pub fn like_twitter() -> Self {
        Self::normals(
            "385 and 299 records",
            (385, 0.45, 0.7),
            (299, -0.35, 0.7),
            2,
        )
    }

    /// The yardstick: labels Bernoulli(.4), log-odds N(0, 1) + 1.6y − 1.2, number for number the reference generator's.
    pub fn yardstick(rows: usize, seed: u64) -> Self {
        let mut random = Pcg::new(seed);
        let labels: Vec<f64> = (0..rows)
            .map(|_| f64::from(u8::from(random.uniform() < 0.4)))
            .collect();
        let scored: Vec<[f64; 2]> = (labels.iter())
            .map(|y| [random.normal() + 1.6 * y - 1.2, *y])
            .collect();
        Self::new(format!("yardstick, n = {rows}"), &scored)
    }

    /// Few distinct scores: a classifier with three leaves.
    pub fn ties() -> Self {
        let scored: Vec<[f64; 2]> = (0..1000u32)
            .map(|i| {
                let leaf = i % 3;
                let label = u8::from((i / 3) % 10 < 1 + 4 * leaf);
                [f64::from(leaf) - 1.0, f64::from(label)]
            })
            .collect();
        Self::new("three distinct scores", &scored)
    }

    /// Nearly all probabilities above .99.
    pub fn skewed() -> Self {
        Self::normals("scores above .99", (481, 7.5, 1.0), (77, 6.0, 1.0), 3)
    }

    /// Half positives with a smooth curve of a given area: both labels at the even quantiles of a logistic law, the positives moved.
    pub fn of_area(rows: usize, area: f64) -> Self {
        let half = rows / 2;
        let quantile = |i: usize| {
            let u = (real(i) + 0.5) / real(half);
            (u / (1.0 - u)).ln()
        };
        let scored = |shift: f64| -> Vec<[f64; 2]> {
            (0..half)
                .flat_map(|i| [[quantile(i) + shift, 1.0], [quantile(i), 0.0]])
                .collect()
        };
        let (mut low, mut high) = (0.0, 12.0);
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            if Curve::new(&scored(middle)).area < area {
                low = middle;
            } else {
                high = middle;
            }
        }
        Self::new(format!("AUC {area:.3}"), &scored(high))
    }

    /// One released value.
    pub fn value(
        &self,
        relation: Relation,
        config: &Config,
        run: u64,
    ) -> Result<Value, StudyError> {
        self.simulated(relation, run, |facts| {
            let score = Score::Linear(Expr::Column(0));
            prepare(facts, &score, Expr::Column(1), config.clone())
        })
    }

    fn simulated(
        &self,
        relation: Relation,
        run: u64,
        make: impl Fn(
            &Facts<'_>,
        )
            -> Result<reticent_statistics::Prepared, reticent_statistics::StatisticsError>,
    ) -> Result<Value, StudyError> {
        let context = context(relation, Currency::Pure, Size::Private);
        let facts = Facts {
            schema: &self.schema,
            filter: None,
            context: &context,
            rows: Some(real(self.rows)),
            positive_rate: None,
        };
        let prepared = make(&facts).map_err(StudyError::release)?;
        let mut noise = Seeded::stream(SEED, run);
        Ok(release(&self.source, &context, None, &prepared, &mut noise)?.value)
    }

    /// A released curve against the true one.
    pub fn run(&self, relation: Relation, config: &Config, run: u64) -> Result<Run, StudyError> {
        Ok(self.judge(&self.value(relation, config, run)?))
    }

    /// A released value against the truth.
    pub fn judge(&self, value: &Value) -> Run {
        let curve: Vec<Point> = list(value, "curve")
            .iter()
            .map(|p| (at(p, "fpr"), at(p, "tpr")))
            .collect();
        let band: Vec<Rectangle> = list(value, "band")
            .iter()
            .map(|b| Rectangle {
                fpr: (at(b, "fpr_low"), at(b, "fpr_high")),
                tpr: (at(b, "tpr_low"), at(b, "tpr_high")),
            })
            .collect();
        let within =
            |low: &str, high: &str| (at(value, low)..=at(value, high)).contains(&self.truth.area);
        Run {
            area: at(value, "auc") - self.truth.area,
            between: self.truth.symmetric_difference(&curve),
            covered: self.truth.covered(&band),
            interval: within("auc_low", "auc_high"),
            proved: within("auc_proved_low", "auc_proved_high"),
            widths: (
                at(value, "auc_high") - at(value, "auc_low"),
                at(value, "auc_proved_high") - at(value, "auc_proved_low"),
            ),
        }
    }

    /// The area by smooth sensitivity, and its symmetric binormal curve.
    pub fn smooth(&self, relation: Relation, e: &Rational, run: u64) -> Result<Run, StudyError> {
        let value = self.simulated(relation, run, |facts| {
            let score = Score::Linear(Expr::Column(0));
            auc::prepare(facts, &score, Expr::Column(1), e, Value::Null)
        })?;
        let area = at(&value, "auc");
        Ok(Run {
            area: area - self.truth.area,
            between: self.truth.symmetric_difference(&symmetric_binormal(area)),
            covered: false,
            interval: false,
            proved: false,
            widths: (f64::NAN, f64::NAN),
        })
    }
}

/// Runs `0..runs` (streams from `first` on).
pub fn runs(
    first: u64,
    runs: u32,
    one: impl Fn(u64) -> Result<Run, StudyError> + Sync,
) -> Result<Vec<Run>, StudyError> {
    (0..runs)
        .into_par_iter()
        .map(|run| one(first + u64::from(run)))
        .collect()
}

/// Mean error of the area and mean distance of the curves.
pub fn errors(runs: &[Run]) -> [f64; 2] {
    let all = |pick: fn(&Run) -> f64| mean(&runs.iter().map(pick).collect::<Vec<_>>());
    [all(|r| r.area.abs()), all(|r| r.between)]
}
