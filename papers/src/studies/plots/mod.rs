//! Residual and binned residual plots as chapters 4.2 and 4.4 of Chen's thesis (2018) and Chen, Machanavajjhala, Reiter and Barrientos (2016)
//! measure them, on their synthetic models.
//!
//! Two models are separated by the total variation between the distributions of one number of their plots, in even classes of the numbers'
//! common range. Few numbers in many classes look separated by chance; so there are about as many classes as the square root of the numbers,
//! at most 20, and every table also gives what the right model against itself comes to.

pub mod binned;
pub mod pictures;
pub mod residuals;

use std::sync::Arc;

use rayon::prelude::*;
use reticent_accounting::{Currency, Rational, Relation, Size, parse_decimal};
use reticent_laws::Seeded;
use reticent_mechanisms::Context;
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::rows::Schema;
use reticent_mechanisms::source::Memory;
use reticent_statistics::{Facts, Prepared, Score, StatisticsError};
use serde_json::Value;

use crate::public::{context, release};
use crate::real;
use crate::studies::{at, list};
use crate::study::StudyError;
use crate::synthetic::{normal, table, uniform};

/// Seed of the noise.
pub const SEED: u64 = 4_200;
/// Streams set apart for a sample of plots.
const SAMPLE: u64 = 1_000_000;

/// y = x + curve·x² + N(0, base + fan·x), x uniform on [from, 50].
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// Least x.
    pub from: f64,
    /// Coefficient of the square.
    pub curve: f64,
    /// Variance at x = 0.
    pub base: f64,
    /// Growth of the variance.
    pub fan: f64,
}

impl Model {
    /// What the regression assumes.
    pub const IDEAL: Self = Self {
        from: 1.0,
        curve: 0.0,
        base: 1.0,
        fan: 0.0,
    };
    /// Variance x.
    pub const HETEROSCEDASTIC: Self = Self {
        base: 0.0,
        fan: 1.0,
        ..Self::IDEAL
    };
    /// Another .01 x².
    pub const NONLINEAR: Self = Self {
        curve: 0.01,
        ..Self::IDEAL
    };

    /// M₁ to M₃ of the thesis's discriminatory power: x from 0, variance 1 + αx, and γx².
    pub fn violated(alpha: f64, gamma: f64) -> Self {
        Self {
            from: 0.0,
            curve: gamma,
            base: 1.0,
            fan: alpha,
        }
    }
}

/// Records (x, y) and the line a + b·x that a model draws through them; on the log-odds if y is 0 or 1.
pub struct World {
    schema: Arc<Schema>,
    source: Arc<Memory>,
    line: (f64, f64),
    x: Vec<f64>,
    y: Vec<f64>,
}

impl World {
    fn new(x: Vec<f64>, y: Vec<f64>, bounds: [(f64, f64); 2], line: (f64, f64)) -> Self {
        let [of_x, of_y] = bounds;
        let (schema, source) = table(&[
            ("x".to_owned(), x.as_slice(), of_x.0, of_x.1),
            ("y".to_owned(), y.as_slice(), of_y.0, of_y.1),
        ]);
        Self {
            schema,
            source: Arc::new(source),
            line,
            x,
            y,
        }
    }

    /// Least squares.
    pub fn linear(model: Model, rows: usize, seed: u64) -> Self {
        let noise = &mut Seeded::new(seed);
        let x: Vec<f64> = (0..rows)
            .map(|_| model.from + (50.0 - model.from) * uniform(noise))
            .collect();
        let y: Vec<f64> = (x.iter())
            .map(|x| x + model.curve * x * x + (model.base + model.fan * x).sqrt() * normal(noise))
            .collect();
        let n = real(rows);
        let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
        let xx: f64 = x.iter().map(|v| (v - mx).powi(2)).sum();
        let xy: f64 = x.iter().zip(&y).map(|(a, b)| (a - mx) * (b - my)).sum();
        let slope = xy / xx;
        Self::new(
            x,
            y,
            [(model.from, 50.0), (-50.0, 150.0)],
            (my - slope * mx, slope),
        )
    }

    /// x uniform on [−1, 1], log-odds 2x or x² + 2x − 1, maximum likelihood in x alone.
    pub fn logistic(curved: bool, rows: usize, seed: u64) -> Self {
        let noise = &mut Seeded::new(seed);
        let x: Vec<f64> = (0..rows).map(|_| 2.0 * uniform(noise) - 1.0).collect();
        let y: Vec<f64> = (x.iter())
            .map(|x| {
                let eta = if curved {
                    x * x + 2.0 * x - 1.0
                } else {
                    2.0 * x
                };
                f64::from(u8::from(uniform(noise) < chance(eta)))
            })
            .collect();
        let (mut a, mut b) = (0.0, 0.0);
        for _ in 0..30 {
            let (mut g, mut h) = ([0.0; 2], [0.0; 3]);
            for (x, y) in x.iter().zip(&y) {
                let p = chance(a + b * x);
                let w = p * (1.0 - p);
                g = [g[0] + y - p, g[1] + (y - p) * x];
                h = [h[0] + w, h[1] + w * x, h[2] + w * x * x];
            }
            let det = h[0] * h[2] - h[1] * h[1];
            a += (h[2] * g[0] - h[1] * g[1]) / det;
            b += (h[0] * g[1] - h[1] * g[0]) / det;
        }
        Self::new(x, y, [(-1.0, 1.0), (0.0, 1.0)], (a, b))
    }

    /// The same records with another line.
    #[must_use]
    pub fn with_line(self, line: (f64, f64)) -> Self {
        Self { line, ..self }
    }

    fn predictor(&self) -> Expr {
        Expr::Column(0).affine(self.line.1, self.line.0)
    }

    fn ready(
        &self,
        relation: Relation,
        prepare: impl Fn(&Facts<'_>) -> Result<Prepared, StatisticsError>,
    ) -> Result<Ready, StudyError> {
        let size = match relation {
            Relation::AddRemove => Size::Private,
            Relation::ReplaceOne => Size::Public(self.x.len() as u64),
        };
        let context = context(relation, Currency::Pure, size);
        let facts = Facts {
            schema: &self.schema,
            filter: None,
            context: &context,
            rows: Some(real(self.x.len())),
            positive_rate: None,
        };
        let prepared = prepare(&facts).map_err(StudyError::release)?;
        Ok(Ready { context, prepared })
    }

    /// A released residual plot; its points are drawn with the stream as seed.
    ///
    /// # Errors
    /// When the release cannot be made.
    pub fn residuals(
        &self,
        relation: Relation,
        stream: u64,
        config: &reticent_statistics::residuals::Config,
    ) -> Result<Value, StudyError> {
        let config = reticent_statistics::residuals::Config {
            seed: stream,
            ..config.clone()
        };
        let ready = self.ready(relation, |facts| {
            reticent_statistics::residuals::prepare(
                facts,
                &self.predictor(),
                &Expr::Column(1),
                config.clone(),
            )
        })?;
        ready.run(self, stream)
    }

    /// A binned residual plot along this line, for records as many as these.
    ///
    /// # Errors
    /// When the release is refused.
    pub fn binned(
        &self,
        relation: Relation,
        config: &reticent_statistics::binned::Config,
    ) -> Result<Ready, StudyError> {
        self.ready(relation, |facts| {
            let score = Score::Linear(self.predictor());
            reticent_statistics::binned::prepare(facts, &score, Expr::Column(1), config.clone())
        })
    }

    /// Fitted values and residuals.
    pub fn points(&self) -> Vec<[f64; 2]> {
        (self.fitted().zip(&self.y))
            .map(|(f, y)| [f, y - f])
            .collect()
    }

    /// Fitted probabilities and outcomes.
    pub fn outcomes(&self) -> Vec<[f64; 2]> {
        (self.fitted().zip(&self.y))
            .map(|(f, y)| [chance(f), *y])
            .collect()
    }

    fn fitted(&self) -> impl Iterator<Item = f64> {
        self.x.iter().map(|x| self.line.0 + self.line.1 * x)
    }
}

/// A release ready to run. Preparing a binned plot takes longer than running it.
pub struct Ready {
    context: Context,
    prepared: Prepared,
}

impl Ready {
    /// One released value for records.
    ///
    /// # Errors
    /// When the release cannot be made.
    pub fn run(&self, records: &World, stream: u64) -> Result<Value, StudyError> {
        let mut noise = Seeded::stream(SEED, stream);
        let answer = release(
            &records.source,
            &self.context,
            None,
            &self.prepared,
            &mut noise,
        )?;
        Ok(answer.value)
    }
}

fn chance(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// ε = 1: the plots depend on n·ε only.
///
/// # Errors
/// Never.
pub fn one() -> Result<Rational, StudyError> {
    parse_decimal("1").map_err(StudyError::release)
}

/// (place, mean residual, count) of the bins of a released plot.
pub fn bins(value: &Value) -> Vec<[f64; 3]> {
    list(value, "bins")
        .iter()
        .map(|b| ["mean_fitted", "mean_residual", "count"].map(|k| at(b, k)))
        .collect()
}

/// One number of each of some plots: `each` gets the streams of a sample in turn.
///
/// # Errors
/// The first of `each`.
fn sample<T: Send>(
    place: u64,
    plots: u32,
    each: impl Fn(u64) -> Result<T, StudyError> + Sync,
) -> Result<Vec<T>, StudyError> {
    (0..u64::from(plots))
        .into_par_iter()
        .map(|run| each(place * SAMPLE + run))
        .collect()
}

/// Total variation between two samples in even classes of their common range, about as many as the root of their size, at most 20.
pub fn separation(a: &[f64], b: &[f64]) -> f64 {
    separation_in((a.len().min(b.len())).isqrt().clamp(2, 20), a, b)
}

/// The same in so many classes.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to the classes"
)]
pub fn separation_in(count: usize, a: &[f64], b: &[f64]) -> f64 {
    let all = || a.iter().chain(b).copied();
    let low = all().fold(f64::INFINITY, f64::min);
    let high = all().fold(f64::NEG_INFINITY, f64::max);
    let classes = |xs: &[f64]| {
        let mut out = vec![0.0; count];
        for x in xs {
            let u = real(count) * (x - low) / (high - low).max(1e-300);
            out[(u as usize).min(count - 1)] += 1.0 / real(xs.len());
        }
        out
    };
    let (p, q) = (classes(a), classes(b));
    0.5 * p.iter().zip(q).map(|(x, y)| (x - y).abs()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separation_by_hand() {
        // Two classes of four numbers: shares ¾, ¼ and 0, 1.
        let found = separation(&[0.0, 0.1, 0.2, 1.0], &[0.9, 1.0, 0.8, 0.9]);
        assert!((found - 0.75).abs() < 1e-15);
        assert!(separation(&[1.0; 9], &[1.0; 9]).abs() < 1e-15);
    }

    #[test]
    fn fits_solve_their_equations() {
        let linear = World::linear(Model::NONLINEAR, 300, 1);
        let logistic = World::logistic(true, 300, 2);
        let of_linear: Vec<f64> = linear.points().iter().map(|p| p[1]).collect();
        let of_logistic: Vec<f64> = logistic.outcomes().iter().map(|[p, y]| y - p).collect();
        for (world, residuals) in [(linear, of_linear), (logistic, of_logistic)] {
            let moment: f64 = residuals.iter().zip(&world.x).map(|(r, x)| r * x).sum();
            assert!(residuals.iter().sum::<f64>().abs() < 1e-8 && moment.abs() < 1e-8);
        }
    }
}
