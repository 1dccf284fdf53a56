//! Exact choice of a cell with weights `multiplicity * exp(-rate * loss)`.

use dashu::integer::{IBig, UBig};

use crate::refine::{Exponential, Interval, neg_ln, until};
use crate::{Noise, Rational, exact};

/// Weights of an exponential-mechanism choice: `multiplicity * exp(-rate * loss)` for each cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogWeights {
    /// Factor of the losses; usually positive. A negative rate prefers large losses.
    pub rate: Rational,
    /// The cells to choose from.
    pub cells: Vec<Cell>,
}

/// One cell of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Loss in units of the rate.
    pub loss: u128,
    /// How many outcomes the cell stands for; 0 = never chosen.
    pub multiplicity: u64,
}

impl LogWeights {
    /// The loss of largest weight among cells that can be chosen.
    pub(crate) fn best_loss(&self) -> Option<u128> {
        let losses = self
            .cells
            .iter()
            .filter(|c| c.multiplicity > 0)
            .map(|c| c.loss);
        if self.rate < Rational::ZERO {
            losses.max()
        } else {
            losses.min()
        }
    }

    /// The index a choice without noise takes: the first cell of largest weight (0 when no cell can be chosen).
    pub fn best(&self) -> usize {
        let Some(best) = self.best_loss() else {
            return 0;
        };
        let tied = |c: &Cell| c.multiplicity > 0 && (c.loss == best || self.rate.is_zero());
        let most = self
            .cells
            .iter()
            .filter(|c| tied(c))
            .map(|c| c.multiplicity)
            .max()
            .unwrap_or(0);
        self.cells
            .iter()
            .position(|c| tied(c) && c.multiplicity == most)
            .unwrap_or(0)
    }

    /// `|rate|`.
    fn speed(&self) -> Rational {
        if self.rate < Rational::ZERO {
            -self.rate.clone()
        } else {
            self.rate.clone()
        }
    }

    /// Probabilities of the cells in floating point (relative error about 1e-13), for enumeration and tests.
    pub fn probabilities(&self) -> Vec<f64> {
        let Some(best) = self.best_loss() else {
            return vec![0.0; self.cells.len()];
        };
        let rate = self.speed().to_f64().value();
        let weight = |c: &Cell| {
            let gap = c.loss.abs_diff(best);
            let factor = if gap == 0 {
                1.0
            } else {
                libm::exp(-(rate * gap as f64))
            };
            c.multiplicity as f64 * factor
        };
        let weights: Vec<f64> = self.cells.iter().map(weight).collect();
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|w| w / total).collect()
    }
}

/// Draws an index; 0 when no cell can be chosen.
pub(crate) fn choose<N: Noise + ?Sized>(w: &LogWeights, noise: &mut N) -> usize {
    let Some(best) = w.best_loss() else { return 0 };
    let speed = w.speed();
    let total = w.cells.iter().map(|c| u128::from(c.multiplicity)).sum();
    loop {
        // placeholder: rejection from the multiplicities
        let mut x = exact::uniform_below(total, noise);
        for (i, c) in w.cells.iter().enumerate() {
            let m = u128::from(c.multiplicity);
            if x < m {
                let gap = Rational::from(UBig::from(c.loss.abs_diff(best))) * &speed;
                if exact::bernoulli_exp(&gap, noise) {
                    return i;
                }
                break;
            }
            x -= m;
        }
    }
}
