//! Invented records: tables of reals, normal variables, and the two designs behind the yardsticks of the models.

use std::sync::Arc;

use reticent_laws::Seeded;
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_noise::Noise;
use reticent_statistics::DesignSpec;
use serde_json::Value;

use crate::pcg::Pcg;
use crate::real;

const BATCH: usize = 4096;

/// A uniform number in [0, 1).
#[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
pub fn uniform(noise: &mut Seeded) -> f64 {
    (noise.bits() >> 11) as f64 / 9_007_199_254_740_992.0
}

/// A standard normal variable (Box and Muller).
pub fn normal(noise: &mut Seeded) -> f64 {
    let (u, v) = (1.0 - uniform(noise), uniform(noise));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Columns with declared bounds as a source, and their schema.
pub fn table(columns: &[(String, &[f64], f64, f64)]) -> (Arc<Schema>, Memory) {
    let rows = columns.first().map_or(0, |c| c.1.len());
    let schema = Arc::new(Schema {
        columns: columns
            .iter()
            .map(|(name, _, lower, upper)| Column {
                name: name.clone(),
                kind: Kind::Real {
                    lower: *lower,
                    upper: *upper,
                },
                missing: Missing::Drop,
            })
            .collect(),
    });
    let batches = (0..rows)
        .step_by(BATCH)
        .map(|start| {
            let range = start..(start + BATCH).min(rows);
            let cells = columns
                .iter()
                .map(|c| Cells::Real(c.1[range.clone()].to_vec()))
                .collect();
            Batch::new(range.len(), cells)
        })
        .collect();
    (schema.clone(), Memory::new(schema, batches))
}

/// A design with an intercept on the first `d` columns; column `d` is the outcome.
pub fn design(d: usize) -> DesignSpec {
    DesignSpec {
        intercept: true,
        terms: (0..d)
            .map(|i| (format!("x{}", i + 1), Expr::Column(i)))
            .collect(),
        outcome: Expr::Column(d),
        metadata: Value::Null,
    }
}

/// Which design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// x ~ N(0, I)/(1.5√d), rows longer than 1 scaled to 1; log odds −.5 + 3√d·(unit direction)·x.
    Logistic,
    /// x = clip(N(0, ¼I), ±1), y = .3 + 2·(unit direction)·x + N(0, ¼), clipped to ±4.
    Linear,
}

/// Covariates by column, and the outcome.
pub struct Sample {
    /// Covariates, one list per column.
    pub x: Vec<Vec<f64>>,
    /// Outcome.
    pub y: Vec<f64>,
}

impl Sample {
    /// As a source with its schema.
    pub fn source(&self, made: Made) -> (Arc<Schema>, Memory) {
        let (low, high) = match made {
            Made::Logistic => (0.0, 1.0),
            Made::Linear => (-4.0, 4.0),
        };
        let mut columns: Vec<(String, &[f64], f64, f64)> = (self.x.iter().enumerate())
            .map(|(i, c)| (format!("x{}", i + 1), c.as_slice(), -1.0, 1.0))
            .collect();
        columns.push(("y".to_owned(), &self.y, low, high));
        table(&columns)
    }

    /// intercept + x·slopes of every record.
    pub fn scores(&self, coefficients: &[f64]) -> Vec<f64> {
        let mut all = vec![coefficients[0]; self.y.len()];
        for (column, b) in self.x.iter().zip(&coefficients[1..]) {
            for (s, x) in all.iter_mut().zip(column) {
                *s += b * x;
            }
        }
        all
    }
}

/// Training and 20,000 test records: the sets of the yardsticks, drawn as their generator draws them.
pub fn pair(made: Made, n: usize, d: usize, seed: u64) -> (Sample, Sample) {
    const TEST: usize = 20_000;
    let mut random = Pcg::new(seed);
    let mut direction: Vec<f64> = (0..d).map(|_| random.normal()).collect();
    let length = direction.iter().map(|b| b * b).sum::<f64>().sqrt();
    direction.iter_mut().for_each(|b| *b /= length);
    let mut x = vec![Vec::with_capacity(n + TEST); d];
    let mut dots = Vec::with_capacity(n + TEST);
    for _ in 0..n + TEST {
        let mut row: Vec<f64> = (0..d).map(|_| random.normal()).collect();
        match made {
            Made::Logistic => {
                row.iter_mut().for_each(|v| *v /= 1.5 * real(d).sqrt());
                let norm = row.iter().map(|v| v * v).sum::<f64>().sqrt().max(1.0);
                row.iter_mut().for_each(|v| *v /= norm);
            }
            Made::Linear => row
                .iter_mut()
                .for_each(|v| *v = (*v / 2.0).clamp(-1.0, 1.0)),
        }
        dots.push(row.iter().zip(&direction).map(|(x, b)| x * b).sum::<f64>());
        x.iter_mut().zip(&row).for_each(|(c, v)| c.push(*v));
    }
    let mut y: Vec<f64> = (dots.iter())
        .map(|dot| match made {
            Made::Logistic => {
                let score = -0.5 + 3.0 * real(d).sqrt() * dot;
                f64::from(u8::from(random.uniform() < 1.0 / (1.0 + (-score).exp())))
            }
            Made::Linear => (0.3 + 2.0 * dot + 0.5 * random.normal()).clamp(-4.0, 4.0),
        })
        .collect();
    let test = Sample {
        x: x.iter_mut().map(|c| c.split_off(n)).collect(),
        y: y.split_off(n),
    };
    (Sample { x, y }, test)
}

/// Area under the curve, ties counted half.
pub fn auc(scores: &[f64], labels: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*a].total_cmp(&scores[*b]));
    let (mut below, mut wins, mut at) = (0.0, 0.0, 0);
    while at < order.len() {
        let mut end = at;
        let (mut yes, mut no) = (0.0, 0.0);
        while end < order.len() && scores[order[end]] <= scores[order[at]] {
            if labels[order[end]] > 0.5 {
                yes += 1.0;
            } else {
                no += 1.0;
            }
            end += 1;
        }
        wins += yes * (below + 0.5 * no);
        below += no;
        at = end;
    }
    let positives = real(labels.iter().filter(|y| **y > 0.5).count());
    wins / (positives * (real(labels.len()) - positives))
}

/// 1 − Σ(y − ŷ)²/Σ(y − ȳ)².
pub fn r_squared(fitted: &[f64], y: &[f64]) -> f64 {
    let mean = y.iter().sum::<f64>() / real(y.len());
    let left: f64 = y.iter().zip(fitted).map(|(y, f)| (y - f) * (y - f)).sum();
    1.0 - left / y.iter().map(|y| (y - mean) * (y - mean)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_measured_as_defined() {
        // Pairs (.1, .4), (.1, .2), (.3, .4) won, (.3, .2) lost; one tie adds half.
        let found = auc(&[0.1, 0.3, 0.4, 0.2], &[0.0, 0.0, 1.0, 1.0]);
        assert!((found - 0.75).abs() < 1e-12);
        assert!((auc(&[0.5; 4], &[0.0, 1.0, 0.0, 1.0]) - 0.5).abs() < 1e-12);
        assert!((r_squared(&[1.0, 2.0, 2.0], &[1.0, 2.0, 3.0]) - 0.5).abs() < 1e-12);
        let (train, test) = pair(Made::Linear, 50, 3, 1);
        assert_eq!(
            (train.y.len(), test.y.len(), train.x.len()),
            (50, 20_000, 3)
        );
        assert!(train.x.iter().flatten().all(|x| x.abs() <= 1.0));
    }
}
