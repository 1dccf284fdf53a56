//! Exact choice of a cell with weights `multiplicity * exp(-rate * loss)`.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "integer bounds are stated at each sum, the roundings of floats are part of the stated errors"
)]

use dashu::integer::UBig;

use crate::refine::{Exponential, Interval, neg_ln, until};
use crate::{Noise, Rational, exact, fast};

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
    pub fn best_loss(&self) -> Option<u128> {
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

    /// `|rate|`.
    fn speed(&self) -> Rational {
        if self.rate < Rational::ZERO {
            -self.rate.clone()
        } else {
            self.rate.clone()
        }
    }
}

/// Draws an index; 0 when no cell can be chosen.
///
/// # Claim
/// Cell `i` is returned with probability exactly `w_i / Σ w`, `w_i = multiplicity_i exp(-rate (loss_i - best))`.
/// # Arithmetic
/// Rejection from integer weights `q_i >= c w_i`, `c = 2^(62 - s)`: a cell is proposed with probability `q_i / Σ q` by an
/// exact uniform below the integer `Σ q`, and kept with probability `c w_i / q_i`, which lazy refinement decides exactly.
/// `q_i` comes from a float that is rounded up by more than its proved error, so nearly all proposals are kept, the best cell
/// has `w = multiplicity` whatever the losses (nothing underflows to an empty choice), and only the proposed cell is refined.
/// `Σ q < 2^127`, since `s` is what the total multiplicity has beyond 64 bits. One pass over the cells per draw.
/// # Checked by
/// `rejection_of_a_choice_is_exact`, `golden_quantile_choice`, `choices_follow_their_probabilities`,
/// `large_multiplicities_follow_their_probabilities`, `extreme_rates_and_losses`, `a_million_cells_do_not_underflow`
pub(crate) fn choose<N: Noise + ?Sized>(w: &LogWeights, noise: &mut N) -> usize {
    let Some(best) = w.best_loss() else { return 0 };
    let proposal = Proposal::new(w, best);
    loop {
        let x = exact::uniform_below(proposal.total(), noise);
        let i = proposal.cumulative.partition_point(|c| *c <= x);
        let Some(cell) = w.cells.get(i) else { return 0 };
        if proposal.keep(*cell, noise) {
            return i;
        }
    }
}

/// Integer weights above the ideal ones.
struct Proposal {
    best: u128,
    speed: Rational,
    speed_f64: f64,
    shift: u32,
    roots: &'static [f64; 64],
    cumulative: Vec<u128>,
}

impl Proposal {
    fn new(w: &LogWeights, best: u128) -> Self {
        // at most 2^64 for each of at most 2^60 cells in memory
        let multiplicity: u128 = w.cells.iter().map(|c| u128::from(c.multiplicity)).sum();
        let shift = 64_u32.saturating_sub(multiplicity.leading_zeros());
        let speed = w.speed();
        let speed_f64 = speed.to_f64().value();
        let mut proposal = Self {
            best,
            speed,
            speed_f64,
            shift,
            roots: fast::roots_of_half(),
            cumulative: Vec::new(),
        };
        let mut sum = 0_u128;
        proposal.cumulative = w
            .cells
            .iter()
            .map(|c| {
                if c.multiplicity > 0 {
                    sum += proposal.integer_weight(*c, proposal.factor(*c));
                }
                sum
            })
            .collect();
        proposal
    }

    fn total(&self) -> u128 {
        self.cumulative.last().copied().unwrap_or(0)
    }

    /// An integer at least `2^62 exp(-x)` and at most `2^62 exp(-x) (1 + 2^-38) + 1`, where `x = rate * gap`.
    fn factor(&self, c: Cell) -> u64 {
        const ONE: u64 = 1 << 62;
        let gap = c.loss.abs_diff(self.best);
        if gap == 0 {
            return ONE;
        }
        // three roundings; a rate below the range of floats becomes 0 (x below 2^-890), one above it infinity
        let below = self.speed_f64 * gap as f64 * (1.0 - 1.0 / (1_u64 << 50) as f64);
        // not `below >= 44`: an infinite rate times a gap is infinite, never NaN, as gap > 0
        if below > 44.0 {
            return 1;
        }
        let above = fast::exp_neg(below, self.roots) * (1.0 + 2.0 * fast::EXP_ERROR);
        // the product with 2^62 is exact and below 2^63: the cast rounds down by less than 1
        ((above * ONE as f64) as u64 + 1).min(ONE)
    }

    /// `q`: at least `multiplicity * exp(-x) * 2^(62 - shift)`.
    fn integer_weight(&self, c: Cell, factor: u64) -> u128 {
        let product = u128::from(c.multiplicity) * u128::from(factor);
        if self.shift == 0 {
            product
        } else {
            (product >> self.shift) + 1
        }
    }

    /// True with probability `multiplicity exp(-x) 2^(62 - shift) / q`.
    fn keep<N: Noise + ?Sized>(&self, c: Cell, noise: &mut N) -> bool {
        let gap = c.loss.abs_diff(self.best);
        if gap == 0 && self.shift == 0 {
            return true;
        }
        let factor = self.factor(c);
        let mut e = Exponential::draw(noise);
        // keep when E > -ln(probability); with s = 0 the probability is at least 1 - 2^-38 - 2 / factor
        let slack = 1.0 / (1_u64 << 36) as f64 + 4.0 / factor as f64;
        let quick = if self.shift == 0 && factor > 64 {
            e.approximate()
        } else {
            None
        };
        if quick.is_some_and(|e| e.value > slack + e.error) {
            return true;
        }
        let x = Rational::from(UBig::from(gap)) * &self.speed;
        let q = UBig::from(self.integer_weight(c, factor));
        let m = UBig::from(c.multiplicity) << 62;
        until(128, |p| {
            // x + ln q - ln m + s ln 2, each `neg_ln(v, n)` being n ln 2 - ln v
            let threshold = Interval::rational(&x, p)
                .add(&neg_ln(&m, usize::try_from(self.shift).unwrap_or(0), p))
                .sub(&neg_ln(&q, 0, p));
            e.enclose(p, noise).exceeds(&threshold)
        })
    }
}
