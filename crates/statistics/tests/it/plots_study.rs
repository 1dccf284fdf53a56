//! The protocols of the papers for residual and binned residual plots, on their synthetic models; used by the tests and by
//! `examples/plots_study.rs`.
//!
//! Similarity: total variation between the points of the true "Ideal" plot and those of a released one on 10 × 10 cells
//! around the true points. Shape difference: |Δ slope| over p ≤ ½ plus |Δ slope| over p > ½, bins weighted by their counts.
//! Two models are separated by the total variation between the distributions of these numbers, in 20 classes.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small numbers of a simulation"
)]

use std::sync::Arc;

use reticent_accounting::{Currency, Relation, Size, parse_decimal};
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Context, Simulated, Unit, simulate};
use reticent_noise::{Noise, Seeded};
use reticent_statistics::{Facts, Score, binned, residuals};
use serde_json::Value;

/// A uniform number in (0, 1).
#[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
fn uniform(noise: &mut Seeded) -> f64 {
    ((noise.bits() >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0
}

fn normal(noise: &mut Seeded) -> f64 {
    let (u, v) = (uniform(noise), uniform(noise));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// How y depends on x.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Model {
    /// y = x + N(0, 1)
    Ideal,
    /// y = x + N(0, variance 1·(1 − a) + ax): a = 1 is the papers' "Heteroscedastic".
    Fan(f64),
    /// y = x + bx² + N(0, 1); b = .01 is "Nonlinear".
    Curved(f64),
}

/// A table of two columns and a public linear predictor a + b·x.
pub(crate) struct World {
    schema: Arc<Schema>,
    source: Memory,
    line: (f64, f64),
    x: Vec<f64>,
    y: Vec<f64>,
}

#[allow(clippy::cast_precision_loss, reason = "sizes are small")]
fn real(n: usize) -> f64 {
    n as f64
}

impl World {
    fn new(x: Vec<f64>, y: Vec<f64>, bounds: [(f64, f64); 2], line: (f64, f64)) -> Self {
        let schema = Arc::new(Schema {
            columns: ["x", "y"]
                .iter()
                .zip(bounds)
                .map(|(name, (lower, upper))| Column {
                    name: (*name).to_owned(),
                    kind: Kind::Real { lower, upper },
                    missing: Missing::Drop,
                })
                .collect(),
        });
        let batch = Batch::new(
            x.len(),
            vec![Cells::Real(x.clone()), Cells::Real(y.clone())],
        );
        Self {
            source: Memory::new(schema.clone(), vec![batch]),
            schema,
            line,
            x,
            y,
        }
    }

    /// x uniform on [1, 50], least squares.
    pub(crate) fn linear(model: Model, rows: usize, seed: u64) -> Self {
        let noise = &mut Seeded::new(seed);
        let x: Vec<f64> = (0..rows).map(|_| 1.0 + 49.0 * uniform(noise)).collect();
        let y: Vec<f64> = x
            .iter()
            .map(|x| match model {
                Model::Ideal => x + normal(noise),
                Model::Fan(a) => x + (1.0 - a + a * x).max(0.0).sqrt() * normal(noise),
                Model::Curved(b) => x + b * x * x + normal(noise),
            })
            .collect();
        let n = real(rows);
        let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
        let xx: f64 = x.iter().map(|v| (v - mx).powi(2)).sum();
        let xy: f64 = x.iter().zip(&y).map(|(a, b)| (a - mx) * (b - my)).sum();
        let slope = xy / xx;
        Self::new(
            x,
            y,
            [(1.0, 50.0), (-50.0, 150.0)],
            (my - slope * mx, slope),
        )
    }

    /// x uniform on [−1, 1], log-odds 2x or x² + 2x − 1, maximum likelihood in x alone.
    pub(crate) fn logistic(curved: bool, rows: usize, seed: u64) -> Self {
        let noise = &mut Seeded::new(seed);
        let x: Vec<f64> = (0..rows).map(|_| 2.0 * uniform(noise) - 1.0).collect();
        let y: Vec<f64> = x
            .iter()
            .map(|x| {
                let eta = if curved {
                    x * x + 2.0 * x - 1.0
                } else {
                    2.0 * x
                };
                f64::from(u8::from(uniform(noise) < 1.0 / (1.0 + (-eta).exp())))
            })
            .collect();
        let (mut a, mut b) = (0.0, 0.0);
        for _ in 0..30 {
            let (mut g, mut h) = ([0.0; 2], [0.0; 3]);
            for (x, y) in x.iter().zip(&y) {
                let eta: f64 = a + b * x;
                let p = 1.0 / (1.0 + (-eta).exp());
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

    fn predictor(&self) -> Expr {
        Expr::Column(0).affine(self.line.1, self.line.0)
    }

    fn release(
        &self,
        relation: Relation,
        seed: u64,
        prepare: impl Fn(&Facts<'_>) -> reticent_statistics::Prepared,
    ) -> Value {
        let context = Context {
            size: match relation {
                Relation::AddRemove => Size::Private,
                Relation::ReplaceOne => Size::Public(self.x.len() as u64),
            },
            currency: Currency::Pure,
            ..Context::records(relation)
        };
        let facts = Facts {
            schema: &self.schema,
            filter: None,
            context: &context,
            rows: Some(real(self.x.len())),
            positive_rate: None,
        };
        let prepared = prepare(&facts);
        let program = RowProgram {
            terms: prepared.terms,
            ..RowProgram::default()
        };
        let Simulated((answer, _)) = simulate(
            &self.source,
            Unit::Row,
            &context,
            &program,
            prepared.mechanism.as_ref(),
            &mut Seeded::new(seed),
        )
        .unwrap();
        answer.value
    }

    /// A released residual plot.
    pub(crate) fn residuals(
        &self,
        relation: Relation,
        epsilon: &str,
        seed: u64,
        config: &dyn Fn(residuals::Config) -> residuals::Config,
    ) -> Value {
        self.release(relation, seed, |facts| {
            let mut config = config(residuals::Config::new(parse_decimal(epsilon).unwrap()));
            config.seed = seed;
            residuals::prepare(facts, &self.predictor(), &Expr::Column(1), config).unwrap()
        })
    }

    /// A released binned residual plot: (place, mean residual, count) of the bins.
    pub(crate) fn binned(
        &self,
        relation: Relation,
        epsilon: &str,
        seed: u64,
        config: &dyn Fn(binned::Config) -> binned::Config,
    ) -> Vec<[f64; 3]> {
        let value = self.release(relation, seed, |facts| {
            let config = config(binned::Config::new(parse_decimal(epsilon).unwrap()));
            let score = Score::Linear(self.predictor());
            binned::prepare(facts, &score, Expr::Column(1), config).unwrap()
        });
        value["bins"]
            .as_array()
            .unwrap()
            .iter()
            .map(|b| ["mean_fitted", "mean_residual", "count"].map(|k| b[k].as_f64().unwrap()))
            .collect()
    }

    /// Fitted values and residuals.
    pub(crate) fn points(&self) -> Vec<[f64; 2]> {
        self.x
            .iter()
            .zip(&self.y)
            .map(|(x, y)| {
                let f = self.line.0 + self.line.1 * x;
                [f, y - f]
            })
            .collect()
    }

    /// The exact binned plot: √n bins of equal size (a power of two).
    pub(crate) fn exact_bins(&self) -> Vec<[f64; 3]> {
        let mut all: Vec<[f64; 2]> = self
            .x
            .iter()
            .zip(&self.y)
            .map(|(x, y)| {
                let p = 1.0 / (1.0 + (-(self.line.0 + self.line.1 * x)).exp());
                [p, y - p]
            })
            .collect();
        all.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let bins = 1usize << (real(all.len()).sqrt().log2().floor() as u32);
        (0..bins)
            .map(|k| {
                let part = &all[k * all.len() / bins..(k + 1) * all.len() / bins];
                let n = real(part.len());
                [0, 1]
                    .map(|i| part.iter().map(|p| p[i]).sum::<f64>() / n)
                    .iter()
                    .copied()
                    .chain([n])
                    .collect::<Vec<f64>>()
                    .try_into()
                    .unwrap()
            })
            .collect()
    }
}

/// Distance of released points to the true ones.
pub(crate) fn similarity(truth: &[[f64; 2]], value: &Value) -> f64 {
    let range = |i: usize| {
        let of = |f: fn(f64, f64) -> f64, start: f64| truth.iter().map(|p| p[i]).fold(start, f);
        (
            of(f64::min, f64::INFINITY) - 0.1,
            of(f64::max, f64::NEG_INFINITY) + 0.1,
        )
    };
    let frame = [range(0), range(1)];
    let shares = |points: &[[f64; 2]]| {
        let mut cells = [0.0; 100];
        for p in points {
            let place = |i: usize| {
                let u = 10.0 * (p[i] - frame[i].0) / (frame[i].1 - frame[i].0);
                (0.0..10.0).contains(&u).then_some(u as usize)
            };
            if let (Some(a), Some(b)) = (place(0), place(1)) {
                cells[10 * a + b] += 1.0 / real(points.len());
            }
        }
        cells
    };
    let shown: Vec<[f64; 2]> = value["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| [p[0].as_f64().unwrap(), p[1].as_f64().unwrap()])
        .collect();
    let (p, q) = (shares(truth), shares(&shown));
    let moved: f64 = p.iter().zip(q).map(|(a, b)| (a - b).abs()).sum();
    0.5 * (moved + 1.0 - q.iter().sum::<f64>())
}

/// Weighted slopes below and above ½.
fn slopes(bins: &[[f64; 3]]) -> [f64; 2] {
    [true, false].map(|low| {
        let part = || {
            bins.iter()
                .filter(move |b| (b[0] <= 0.5) == low && b[2] > 0.0)
        };
        let total: f64 = part().map(|b| b[2]).sum();
        let mean = |i: usize| part().map(|b| b[2] * b[i]).sum::<f64>() / total;
        let (x, y) = (mean(0), mean(1));
        let xx: f64 = part().map(|b| b[2] * (b[0] - x).powi(2)).sum();
        let xy: f64 = part().map(|b| b[2] * (b[0] - x) * (b[1] - y)).sum();
        if xx > 1e-12 { xy / xx } else { 0.0 }
    })
}

/// Difference of two shapes.
pub(crate) fn shape_difference(a: &[[f64; 3]], b: &[[f64; 3]]) -> f64 {
    let (a, b) = (slopes(a), slopes(b));
    (a[0] - b[0]).abs() + (a[1] - b[1]).abs()
}

/// Total variation between two samples in 20 even classes of their common range.
pub(crate) fn separation(a: &[f64], b: &[f64]) -> f64 {
    let all = || a.iter().chain(b).copied();
    let (low, high) = (
        all().fold(f64::INFINITY, f64::min),
        all().fold(f64::NEG_INFINITY, f64::max),
    );
    let classes = |xs: &[f64]| {
        let mut out = [0.0; 20];
        for x in xs {
            let u = 20.0 * (x - low) / (high - low).max(1e-300);
            out[(u as usize).min(19)] += 1.0 / real(xs.len());
        }
        out
    };
    let (p, q) = (classes(a), classes(b));
    0.5 * p.iter().zip(q).map(|(x, y)| (x - y).abs()).sum::<f64>()
}
