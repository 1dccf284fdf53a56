//! Public rules: penalty, share of the curvature, row clip, projection.

use reticent_accounting::{Rational, Relation};
use reticent_laws::Seeded;
use reticent_mechanisms::program::Expr;
use reticent_noise::Noise;

use super::{Config, Penalty, Perturbation, Projection};
use crate::common::{Facts, StatisticsError, clipped, size, sum_of};

/// f = clip(.05·√(ñε)/d, .02, .2), with ñε/4 under replace-one; .05 when no size is known. Half of the rule it replaces, clip(.1·√(ñε)/d, .05, .3):
/// in all sixteen settings of the study `studies/penalty` at least as good in AUC and, but for .0001 in one, in logarithmic loss.
pub(crate) fn fraction(facts: &Facts<'_>, epsilon: &Rational, d: usize) -> f64 {
    facts.quartered_signal(epsilon).map_or(0.05, |s| {
        (0.05 * s.sqrt() / size(d.max(1))).clamp(0.02, 0.2)
    })
}

/// Whether the rule asks for a private row clip: √(ñε)/d < 10 (ñε/4 under replace-one).
pub(crate) fn clips_by_rule(facts: &Facts<'_>, epsilon: &Rational, d: usize) -> bool {
    d > 0
        && facts
            .quartered_signal(epsilon)
            .is_some_and(|s| s.sqrt() / size(d) < 10.0)
}

/// Λ as a function of the full row norm R.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    Given(f64),
    /// Λ such that the curvature term costs the given fraction of ε (per record).
    Curvature {
        fraction: f64,
        epsilon: f64,
    },
    /// Λ = R²·factor.
    Scaled(f64),
}

impl Rule {
    /// The rule of a configuration for `p` coefficients on `d` columns. Output perturbation balances noise and
    /// shrinkage: with coefficients of size 3/R the sum of the excess loss n·R²/(4p)·(pR/(Λε))²/2·… and of the penalty is
    /// least near Λ = R²·(n·p/(9ε²))^⅓ (ε halved under replace-one), never below the package's default rule.
    pub(super) fn of(
        facts: &Facts<'_>,
        config: &Config,
        epsilon: &Rational,
        d: usize,
        p: usize,
    ) -> Result<Self, StatisticsError> {
        let per_record = facts.per_record(epsilon);
        let share = |fraction| Self::Curvature {
            fraction,
            epsilon: per_record,
        };
        Ok(match (&config.penalty, config.perturbation) {
            (Some(Penalty::Default), _) => share(0.05),
            (Some(Penalty::Adjusted), _) => share(0.25),
            (Some(given), _) => Self::Given(given_penalty(facts, given)?),
            (None, Perturbation::Objective) => share(fraction(facts, epsilon, d)),
            (None, Perturbation::Output) => match facts.rows {
                Some(n) if n.is_finite() && n > 0.0 => {
                    let e = match facts.context.relation {
                        Relation::AddRemove => per_record,
                        Relation::ReplaceOne => per_record / 2.0,
                    };
                    let least = 1.0 / (4.0 * (0.05 * per_record).min(20.0).exp_m1());
                    Self::Scaled((n * size(p) / (9.0 * e * e)).cbrt().max(least))
                }
                _ => share(0.05),
            },
        })
    }

    /// Λ for a full row norm R.
    pub(super) fn penalty(self, norm: f64) -> f64 {
        match self {
            Self::Given(total) => total,
            Self::Scaled(factor) => norm * norm * factor,
            // The exponent is capped so that a huge ε leaves a tiny but positive penalty.
            Self::Curvature { fraction, epsilon } => {
                norm * norm / (4.0 * (fraction * epsilon).min(20.0).exp_m1())
            }
        }
    }
}

fn given_penalty(facts: &Facts<'_>, given: &Penalty) -> Result<f64, StatisticsError> {
    let refuse = |value: f64, fix: &str| StatisticsError::Parameter {
        name: "lambda",
        value: value.to_string(),
        fix: fix.to_owned(),
    };
    match given {
        Penalty::Sum(total) if total.is_finite() && *total > 0.0 => Ok(*total),
        Penalty::Mean(lambda) if lambda.is_finite() && *lambda > 0.0 => facts
            .rows
            .filter(|n| n.is_finite() && *n >= 1.0)
            .map(|n| lambda * n)
            .ok_or_else(|| {
                refuse(
                    *lambda,
                    "a penalty per row needs a public number of rows: declare size_hint, or give the penalty of the summed loss",
                )
            }),
        Penalty::Sum(x) | Penalty::Mean(x) => Err(refuse(*x, "give a number above 0")),
        Penalty::Default | Penalty::Adjusted => Err(refuse(f64::NAN, "give a number above 0")),
    }
}

/// A random projection of d columns onto fewer, from a public seed: entries 0 (⅔), ±√(3/k) (⅙ each) (Achlioptas 2003).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Projected {
    pub(super) seed: u64,
    /// One row per new column: its weights.
    pub(super) rows: Vec<Vec<f64>>,
}

impl Projected {
    /// The projection asked for; none if it would not reduce the number of columns.
    pub(super) fn of(
        facts: &Facts<'_>,
        how: Option<Projection>,
        d: usize,
    ) -> Result<Option<Self>, StatisticsError> {
        let (k, seed) = match how {
            None => return Ok(None),
            Some(Projection::Size { size, seed }) => (size, seed),
            Some(Projection::Auto { seed }) => {
                let rows = facts.rows.filter(|n| n.is_finite() && *n >= 1.0);
                let n = rows.ok_or_else(|| StatisticsError::Parameter {
                    name: "projection",
                    value: "auto".to_owned(),
                    fix: "its size is round(2·ln n): declare size_hint, or give the number of columns"
                        .to_owned(),
                })?;
                (clipped((2.0 * n.ln()).round(), 1, 4096), seed)
            }
        };
        if k == 0 {
            return Err(StatisticsError::Parameter {
                name: "projection",
                value: "0".to_owned(),
                fix: "give the number of columns to project onto, at least 1".to_owned(),
            });
        }
        if k as usize >= d {
            return Ok(None);
        }
        let mut bits = Seeded::new(seed);
        let weight = (3.0 / f64::from(k)).sqrt();
        let mut draw = || loop {
            // A fair die from three bits.
            match bits.bits() & 7 {
                0 => return weight,
                1 => return -weight,
                2..=5 => return 0.0,
                _ => {}
            }
        };
        let rows = (0..k).map(|_| (0..d).map(|_| draw()).collect()).collect();
        Ok(Some(Self { seed, rows }))
    }

    /// The new columns as expressions over terms 0..d.
    pub(super) fn terms(&self) -> Vec<Expr> {
        let column = |weights: &Vec<f64>| {
            let parts = weights.iter().enumerate().filter(|w| *w.1 != 0.0);
            sum_of(
                parts
                    .map(|(i, w)| Expr::Term(i).mul(Expr::Constant(*w)))
                    .collect(),
            )
        };
        self.rows.iter().map(column).collect()
    }

    /// Coefficients of the original columns: Pᵀw.
    pub(super) fn lift(&self, w: &[f64]) -> Vec<f64> {
        let d = self.rows.first().map_or(0, Vec::len);
        (0..d)
            .map(|i| {
                let all = self.rows.iter().zip(w);
                all.map(|(row, w)| row.get(i).copied().unwrap_or(0.0) * w)
                    .sum()
            })
            .collect()
    }
}
