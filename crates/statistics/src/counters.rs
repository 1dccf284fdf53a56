//! Running totals over T public steps: strategies (which sums are measured) and what makes totals of their noisy answers.
//!
//! The noise is not drawn here: a strategy is plain data with exact sensitivities, for the paid primitive
//! [`Linear`](reticent_mechanisms::primitives::Linear) that adds independent noise of one scale to the integer answers of its
//! rows. [`BinaryTree`] goes with Laplace noise (pure ε) or Gaussian, [`SquareRoot`] with Gaussian noise under ρ-zCDP.
//! Everything from noisy answers to totals is post-processing. [`crate::running`] makes releases of them.
//!
//! Root mean square error of all totals, Gaussian noise, T = 57901, in units of 1/√(2ρ): tree 11.5, tree with Honaker's
//! weights 8.5, square root 4.4.
//!
//! ```
//! use reticent_statistics::counters::{BinaryTree, SquareRoot};
//!
//! let tree = BinaryTree::new(5);
//! let exact = tree.answers(&[1, 0, 2, 0, 4]);
//! assert_eq!(tree.totals(&exact.iter().map(|x| *x as f64).collect::<Vec<_>>()), [1.0, 1.0, 3.0, 3.0, 7.0]);
//!
//! let root = SquareRoot::new(1000);
//! assert!(root.rms_error(0.5) < 3.2);
//! ```
//!
//! # References
//! Dwork, Naor, Pitassi, Rothblum 2010 and Chan, Shi, Song 2011 (tree); Honaker 2015 (weights); Fichtenberger, Henzinger,
//! Upadhyay 2022 (square root); `decisions.md` §2.10, `beyond.md` §11b.

use std::ops::Range;
use std::sync::Arc;

use reticent_accounting::Relation;
use reticent_mechanisms::primitives::{Row, Strategy, Weights};

use crate::common::{real, size};

/// How running totals are measured and recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// [`BinaryTree`], the sum of the nodes that tile the steps.
    Tree,
    /// [`BinaryTree`] with Honaker's weights: every tiling node is estimated from all nodes below it as well.
    Honaker,
    /// [`SquareRoot`].
    SquareRoot,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Tree, Self::Honaker, Self::SquareRoot];

    /// The name in plans.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Honaker => "honaker",
            Self::SquareRoot => "square_root",
        }
    }
}

/// Dyadic sums: node (level, i) is the sum of steps i·2^level up to (i+1)·2^level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryTree {
    steps: usize,
    levels: u32,
}

impl BinaryTree {
    /// For at least one step.
    pub fn new(steps: usize) -> Self {
        let steps = steps.max(1);
        Self {
            steps,
            levels: usize::BITS - (steps - 1).leading_zeros() + 1,
        }
    }

    /// Number of levels: how many nodes a step is in at most.
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// Nodes of a level that lie within the steps; only those are ever needed for totals.
    fn nodes(&self, level: u32) -> usize {
        self.steps >> level
    }

    /// The steps of each measured node, leaves first.
    pub fn rows(&self) -> Vec<Range<usize>> {
        (0..self.levels)
            .flat_map(|level| (0..self.nodes(level)).map(move |i| i << level..(i + 1) << level))
            .collect()
    }

    /// The measured sums as linear queries.
    pub fn strategy(&self) -> Strategy {
        let rows = self.rows().into_iter().map(|r| Row::count([r], 1));
        Strategy::new(self.steps, rows.collect())
    }

    /// L1 distance of the answers between neighbours: add/remove, or replace-one.
    pub fn sensitivity(&self, relation: Relation) -> u64 {
        let levels = u64::from((0..self.levels).fold(0, |n, l| n + u32::from(self.nodes(l) > 0)));
        match relation {
            Relation::AddRemove => levels,
            // two steps share the nodes above both; the worst pair shares a top node only if that holds all steps
            Relation::ReplaceOne if self.steps.is_power_of_two() => 2 * (levels - 1),
            Relation::ReplaceOne => self.replaced(levels),
        }
    }

    /// The two steps with the most unshared nodes: a step of the largest complete subtree and one outside of it.
    fn replaced(&self, levels: u64) -> u64 {
        let largest = 1_usize << (levels - 1);
        let rest = self.steps - largest;
        let below = if rest == 0 {
            0
        } else {
            u64::from(rest.ilog2()) + 1
        };
        (levels + below).max(2 * (levels - 1))
    }

    /// Exact answers, in the order of [`BinaryTree::rows`].
    pub fn answers(&self, counts: &[i128]) -> Vec<i128> {
        self.rows()
            .into_iter()
            .map(|r| counts.get(r).unwrap_or_default().iter().sum())
            .collect()
    }

    fn offsets(&self) -> Vec<usize> {
        (0..self.levels)
            .scan(0, |at, level| {
                let here = *at;
                *at += self.nodes(level);
                Some(here)
            })
            .collect()
    }

    /// The total after each step: the sum of the nodes that tile it.
    pub fn totals(&self, answers: &[f64]) -> Vec<f64> {
        self.tile(answers)
    }

    /// The total after each step from all nodes below the tiling ones: a node's estimate is the mean of its own answer and
    /// of the sum of its halves' estimates, weighted by inverse variance. Uses answers of the past only.
    pub fn totals_from_below(&self, answers: &[f64]) -> Vec<f64> {
        let offsets = self.offsets();
        let variances = self.variances();
        let mut estimates = answers.to_vec();
        for level in 1..self.levels {
            let (Some(below), Some(here)) =
                (offsets.get(level as usize - 1), offsets.get(level as usize))
            else {
                break;
            };
            // own variance 1; two halves
            let halves = 2.0 * variances.get(level as usize - 1).copied().unwrap_or(1.0);
            for i in 0..self.nodes(level) {
                let sum: f64 = [2 * i, 2 * i + 1]
                    .iter()
                    .filter_map(|c| estimates.get(below + c))
                    .sum();
                if let Some(own) = estimates.get_mut(here + i) {
                    *own = (*own * halves + sum) / (halves + 1.0);
                }
            }
        }
        self.tile(&estimates)
    }

    /// Variance of the estimate from below of a node of each level, in units of one answer's.
    fn variances(&self) -> Vec<f64> {
        let mut variances = vec![1.0];
        for _ in 1..self.levels {
            let halves = 2.0 * variances.last().copied().unwrap_or(1.0);
            variances.push(halves / (halves + 1.0));
        }
        variances
    }

    fn tile(&self, nodes: &[f64]) -> Vec<f64> {
        let offsets = self.offsets();
        (1..=self.steps)
            .map(|t| {
                tiling(t)
                    .filter_map(|(level, i)| nodes.get(offsets.get(level as usize)? + i))
                    .sum()
            })
            .collect()
    }

    /// Variance of each total in units of one answer's, plain or from below.
    pub fn total_variances(&self, from_below: bool) -> Vec<f64> {
        let variances = self.variances();
        (1..=self.steps)
            .map(|t| {
                tiling(t)
                    .map(|(level, _)| {
                        if from_below {
                            variances.get(level as usize).copied().unwrap_or(1.0)
                        } else {
                            1.0
                        }
                    })
                    .sum()
            })
            .collect()
    }
}

/// The nodes (level, index) that tile the first `t` steps.
fn tiling(t: usize) -> impl Iterator<Item = (u32, usize)> {
    (0..usize::BITS)
        .filter(move |l| t >> l & 1 == 1)
        .map(move |l| (l, ((t >> l) - 1)))
}

/// The square root of the running-total matrix: totals = B·(B·counts), B lower triangular Toeplitz with first column f,
/// f₀ = 1, f_k = f_{k−1}(1 − 1/(2k)).
///
/// Measured are the integers Σ_j w_{t−j}·count_j with w = f·2^20 rounded to nearest; totals are recovered with the exact inverse of
/// the rounded weights, so rounding costs no bias and (below 10⁻⁶) no accuracy.
#[derive(Clone, Debug, PartialEq)]
pub struct SquareRoot {
    weights: Vec<i64>,
}

/// Bits of the rounded weights.
const WEIGHT_BITS: u32 = 20;

impl SquareRoot {
    /// For at least one step.
    #[allow(clippy::cast_possible_truncation, reason = "weights are at most 2^20")]
    pub fn new(steps: usize) -> Self {
        let one = f64::from(1_u32 << WEIGHT_BITS);
        let weights = (0..steps.max(1))
            .scan(1.0, |f, k| {
                if k > 0 {
                    *f *= 1.0 - 0.5 / size(k);
                }
                Some((*f * one).round() as i64)
            })
            .collect();
        Self { weights }
    }

    /// The measured sums as linear queries, one per step.
    pub fn strategy(&self) -> Strategy {
        let list: Arc<[i64]> = self.weights.iter().rev().copied().collect();
        let n = list.len();
        let rows = (0..n).map(|t| Row {
            weights: Weights::Window {
                first: 0,
                list: list.clone(),
                part: n - 1 - t..n,
            },
            share: 1,
        });
        Strategy::new(n, rows.collect())
    }

    /// Squared L2 distance of the answers between neighbours. Columns are suffixes of one non-negative list, so inner products are
    /// not negative and replacing costs at most twice what adding does (ρ doubles, it does not quadruple).
    pub fn squared_sensitivity(&self, relation: Relation) -> u128 {
        let squares = self
            .weights
            .iter()
            .map(|w| u128::from(w.unsigned_abs()).pow(2))
            .sum();
        match relation {
            Relation::AddRemove => squares,
            Relation::ReplaceOne => 2 * squares,
        }
    }

    /// Exact answers.
    pub fn answers(&self, counts: &[i128]) -> Vec<i128> {
        (0..self.weights.len())
            .map(|t| {
                let past = counts.iter().take(t + 1).rev();
                past.zip(&self.weights)
                    .map(|(c, w)| c * i128::from(*w))
                    .sum()
            })
            .collect()
    }

    /// The column of the matrix that makes totals of answers: the series 1/((1−x)·w(x)).
    fn recovery(&self) -> Vec<f64> {
        let n = self.weights.len();
        let w = |k: usize| self.weights.get(k).map_or(0.0, |w| real(i128::from(*w)));
        let mut series = Vec::with_capacity(n);
        for t in 0..n {
            let known: f64 = series.iter().enumerate().map(|(j, g)| g * w(t - j)).sum();
            series.push((1.0 - known) / w(0));
        }
        series
    }

    /// The total after each step, from noisy answers. O(T²).
    pub fn totals(&self, answers: &[f64]) -> Vec<f64> {
        let g = self.recovery();
        (0..self.weights.len())
            .map(|t| {
                let past = answers.iter().take(t + 1).rev();
                past.zip(&g).map(|(y, g)| y * g).sum()
            })
            .collect()
    }

    /// Variance of each total in units of one answer's: Σ_{k<t} g_k², with g = w/2⁴⁰ to 10⁻⁶ of it.
    pub fn total_variances(&self) -> Vec<f64> {
        let one = f64::from(1_u32 << WEIGHT_BITS);
        let square = |w: &i64| (real(i128::from(*w)) / (one * one)).powi(2);
        self.weights
            .iter()
            .scan(0.0, |sum, w| {
                *sum += square(w);
                Some(*sum)
            })
            .collect()
    }

    /// Variance of the last total, the least accurate one, under add/remove at ρ.
    pub fn last_variance(&self, rho: f64) -> f64 {
        let norm: f64 = self
            .weights
            .iter()
            .map(|w| (real(i128::from(*w)) / f64::from(1_u32 << WEIGHT_BITS)).powi(2))
            .sum();
        norm * norm / (2.0 * rho)
    }

    /// Root mean square error of all totals under add/remove at ρ: σ² = ‖w‖²/(2ρ) on every answer.
    pub fn rms_error(&self, rho: f64) -> f64 {
        let n = self.weights.len();
        let norm = real(
            i128::try_from(self.squared_sensitivity(Relation::AddRemove)).unwrap_or(i128::MAX),
        );
        // total t has variance σ² Σ_{k≤t} g_k², and g is w/2^40 to 10⁻⁶
        let one = f64::from(1_u32 << WEIGHT_BITS);
        let scale = 1.0 / (one * one);
        let weighted: f64 = self
            .weights
            .iter()
            .enumerate()
            .map(|(k, w)| (real(i128::from(*w)) * scale).powi(2) * size(n - k))
            .sum();
        (norm / (2.0 * rho) * weighted / size(n)).sqrt()
    }
}
