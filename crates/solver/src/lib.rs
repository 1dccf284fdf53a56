//! Numerical work that the trusted crates do not rely on: where to look for the minimiser of an objective, and how a group of records votes.
//!
//! [`Search`] looks for the minimiser of J(w) = Σ log(1 + e^(−y w·x)) + (Λ/2)‖w‖² + b·w over rows in the unit ball.
//!
//! It proposes in doubles. Whoever asks for it checks the exact gradient at the proposed point, and goes on
//! by other means if no proposal passes. [`within_ball`] looks for a least-squares fit. [`Question::vote`] fits a regression to one group of records; how well it does so is a matter of
//! usefulness, not of privacy. What is relied on is only that these are functions of their arguments (no state,
//! no clock, no files, no randomness) that return: every loop has a bound that does not depend on the rows.
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "numeric kernels: what rounding costs shows in the exact gradient"
)]

mod ball;
mod rows;
mod votes;

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

pub use ball::within_ball;
pub use rows::{Design, Gram};
use rows::{Extent, Rows};
pub use votes::{Ask, Family, Question};

/// Passes of the search in doubles.
const FAST_PASSES: u32 = 300;
/// Shortest fraction of a Newton step that is tried.
const SMALLEST_STEP: f64 = 1e-9;
/// Passes with exact gradients.
const EXACT_PASSES: u32 = 10_000;

/// What is minimised, and how far.
pub struct Problem<'a> {
    /// The rows.
    pub design: Design<'a>,
    /// Λ.
    pub penalty: f64,
    /// b.
    pub linear: Vec<f64>,
    /// The gradient norm that is good enough.
    pub tolerance: f64,
    /// Proposals count multiples of 2^−bits.
    pub bits: i32,
}

/// A search in progress: [`Search::start`] once, then [`Search::improve`] with the exact gradient at each proposal.
pub struct Search<'a> {
    rows: Rows<'a>,
    penalty: f64,
    linear: Vec<f64>,
    tolerance: f64,
    bits: i32,
    /// The last point whose gradient was smaller than the one before, that gradient's norm, and the step from it.
    last: Vec<i128>,
    norm: f64,
    step: DVector<f64>,
    scale: f64,
    curvature: Option<Cholesky<f64, Dyn>>,
    passes: u32,
}

impl<'a> Search<'a> {
    /// A search that has not started.
    pub fn new(problem: Problem<'a>) -> Self {
        let p = problem.linear.len();
        Self {
            rows: Rows::new(problem.design),
            penalty: problem.penalty,
            linear: problem.linear,
            tolerance: problem.tolerance,
            bits: problem.bits,
            last: vec![0; p],
            norm: f64::INFINITY,
            step: DVector::zeros(p),
            scale: 1.0,
            curvature: None,
            passes: 0,
        }
    }

    /// The end of a search in doubles: on a sample first if the table is large, then on all rows.
    pub fn start(&mut self) -> Vec<i128> {
        let mut start = vec![0.0; self.linear.len()];
        if self.rows.has_sample() {
            // Within about the sampling error; the rest is for all rows to find.
            start = self.walk(start, Extent::Sample, 1e-2).0;
        }
        let (end, curvature) = self.walk(start, Extent::All, 0.0);
        self.curvature = curvature;
        end.iter().map(|w| self.units(*w)).collect()
    }

    /// The next proposal, given the exact gradient at the last one: a Newton step, halved until the gradient's norm falls
    /// (it falls along a Newton direction). `None` when steps stop helping.
    pub fn improve(&mut self, proposed: &[i128], gradient: &[f64]) -> Option<Vec<i128>> {
        self.passes += 1;
        let gradient = DVector::from_column_slice(gradient);
        let norm = gradient.norm();
        if norm.is_nan() || norm >= self.norm {
            self.scale *= 0.5;
            if self.scale < SMALLEST_STEP || self.passes > EXACT_PASSES {
                return None;
            }
        } else {
            if norm > 0.1 * self.norm || self.curvature.is_none() {
                let unit = libm::ldexp(1.0, -self.bits);
                let w: Vec<f64> = proposed.iter().map(|w| *w as f64 * unit).collect();
                let hessian = self.rows.fast(&w, Extent::All, true).hessian;
                self.curvature = factorise(hessian, self.penalty, self.rows.len());
            }
            self.step = self.curvature.as_ref()?.solve(&gradient);
            self.last = proposed.to_vec();
            (self.norm, self.scale) = (norm, 1.0);
        }
        let moved = self.last.iter().zip(&self.step);
        Some(
            moved
                .map(|(w, s)| w.saturating_sub(self.units(self.scale * s)))
                .collect(),
        )
    }

    /// The nearest multiple of the unit; NaN gives 0, what is out of range the nearest end.
    fn units(&self, w: f64) -> i128 {
        libm::ldexp(w, self.bits).round_ties_even() as i128
    }

    /// Damped Newton in doubles; ends after a step shorter than `short`, or when the gradient after the step is
    /// expected below γ/4. Returns the end and the last factorised Hessian.
    fn walk(
        &self,
        start: Vec<f64>,
        extent: Extent,
        short: f64,
    ) -> (Vec<f64>, Option<Cholesky<f64, Dyn>>) {
        let (penalty, b) = (self.penalty, &self.linear);
        let target = self.tolerance / 4.0;
        // Last accepted point, its value; the step from it.
        let mut best: Option<(Vec<f64>, f64)> = None;
        let mut step = DVector::zeros(b.len());
        let mut scale = 1.0;
        let mut factor: Option<Cholesky<f64, Dyn>> = None;
        // Distance from the point where `factor` was taken; whether it may serve once more.
        let (mut distance, mut again) = (0.0, false);
        for _ in 0..FAST_PASSES {
            let w: Vec<f64> = match &best {
                None => start.clone(),
                Some((w, _)) => w.iter().zip(&step).map(|(w, s)| w + scale * s).collect(),
            };
            let fast = self.rows.fast(&w, extent, !again);
            let value = fast.value
                + 0.5 * penalty * w.iter().map(|w| w * w).sum::<f64>()
                + w.iter().zip(b).map(|(w, b)| w * b).sum::<f64>();
            if let Some((end, before)) = &best
                && (value > before + 1e-12 * before.abs() || value.is_nan())
            {
                scale *= 0.5;
                again = false;
                if scale < 1e-6 {
                    return (end.clone(), factor);
                }
                continue;
            }
            let gradient = DVector::from_iterator(
                b.len(),
                fast.gradient
                    .iter()
                    .zip(&w)
                    .zip(b)
                    .map(|((g, w), b)| g + penalty * w + b),
            );
            if !again {
                factor = factorise(fast.hessian, penalty, self.rows.len());
                distance = 0.0;
            }
            let Some(solver) = &factor else {
                return (w, None);
            };
            step = -solver.solve(&gradient);
            scale = 1.0;
            let length = step.norm();
            if !length.is_finite() {
                return (w, None);
            }
            // Along a step the Hessian changes by a factor of at most e^‖step‖ (rows are in the unit ball), so
            // the gradient after the step is at most about ‖G‖·(e^(distance + ‖step‖) − 1).
            let left = gradient.norm() * libm::expm1(distance + length);
            if left <= target || length <= short {
                return (w.iter().zip(&step).map(|(w, s)| w + s).collect(), factor);
            }
            distance += length;
            again = left * libm::expm1(distance + length) <= target;
            best = Some((w, value));
        }
        (best.map_or(start, |b| b.0), factor)
    }
}

/// Factorises Hessian + Λ; adds what rounding may have taken when that is needed.
fn factorise(mut hessian: DMatrix<f64>, penalty: f64, rows: usize) -> Option<Cholesky<f64, Dyn>> {
    let mut extra = penalty;
    let mut next = 1e-15 * (rows as f64 + 1.0);
    for _ in 0..40 {
        for i in 0..hessian.nrows() {
            if let Some(h) = hessian.get_mut((i, i)) {
                *h += extra;
            }
        }
        if let Some(factor) = Cholesky::new(hessian.clone()) {
            return Some(factor);
        }
        extra = next;
        next *= 4.0;
    }
    None
}
