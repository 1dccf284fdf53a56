//! The sparse vector technique with a cut-off, on counts.

use std::ops::Range as Span;

use reticent_accounting::{Event, Rational};
use reticent_noise::Lattice;

use super::{Change, Crossing, Sides, Test, ThresholdTests};
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId};

/// AboveThreshold that stops after c positive answers, one-sided geometric noise.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let step = SparseVector {
///     name: "first above 50".to_owned(),
///     epsilon: Rational::from(40u8),
///     answers: 1,
///     nested: false,
///     gaps: false,
/// };
/// let queries = [0..1, 1..2, 2..3, 3..4].map(Into::into);
/// let found = buy(&[3, 8, 90, 95], &[4], step.event(&context()), |desk, ages| {
///     desk.sparse_vector(ages, &queries, &[50; 4], &step)
/// });
/// assert_eq!((found.len(), found[0].index), (1, 2));
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit.
/// # Sensitivity
/// Every query is the count of a range of disjoint cells: a record changes each by at most Δ = 1. Adding
/// a record changes all of them by 0 or +1 (one sign). Replacing one can change some by +1 and others by
/// −1, unless the ranges are nested.
/// # Noise
/// Threshold ρ ~ Geo1(Δ/e₁) once; query v ~ Geo1(c′Δ/e₂) each; positive iff q + v ≥ T + ρ; stop after c
/// positive answers and at the end of the public list. c′ = c (one sign) or 2c; e₁ : e₂ = 1 : c′^{2/3}.
/// # Composition
/// Pick s ≥ max(0, d over the negative answers, d at a positive answer whose gap is released), s ≤ Δ. Shift
/// the threshold noise by s and a positive query's noise by max(s − d, 0); both upward, so the cost is
/// s/b_θ + Σ_⊤ max(s−d, 0)/b_q ≤ e₁ + c·(Δ or 2Δ)/b_q = e₁ + e₂. Thresholds are public.
/// Replace-one at add/remove scales: 2ε. Add/remove at replace-one scales: e₁ + (½ or 1)·e₂ ≤ ε.
/// # Arithmetic
/// Integers; "≥" throughout, ties included in the shift argument.
/// # Checked by
/// `neighbours::sparse_vector_enumerated`, `golden::sparse_vector`, `canaries::sparse_vector`
/// # References
/// `decisions.md` §2.4; `privacy.md` §3; Lyu, Su, Li 2017; thesis Algorithm 8 with its counter repaired.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseVector {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the step for the context's relation.
    pub epsilon: Rational,
    /// Number of positive answers after which it stops (c ≥ 1).
    pub answers: u32,
    /// Whether the queries' cell ranges are nested (checked when used).
    pub nested: bool,
    /// Release q̃ − T̃ with each positive answer, at no further cost.
    pub gaps: bool,
}

impl SparseVector {
    /// The same step in general form, for a list of `tests`.
    pub fn general(&self, tests: usize) -> ThresholdTests {
        ThresholdTests {
            name: self.name.clone(),
            epsilon: self.epsilon.clone(),
            answers: self.answers,
            most: u32::try_from(tests).unwrap_or(u32::MAX),
            change: Change::COUNT,
            nested: self.nested,
            sides: Sides::One,
            gaps: self.gaps,
            values: None,
        }
    }

    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        self.general(0).event(context)
    }

    /// (threshold noise, query noise).
    pub fn lattices(&self, context: &Context) -> Result<(Lattice, Lattice), DeskError> {
        self.general(0).lattices(context)
    }
}

impl Desk<'_> {
    /// Buys the first `answers` queries whose counts reach their public thresholds. A query is the count
    /// of a range of cells of the grid's first axis, other axes pooled, or of one item.
    pub fn sparse_vector(
        &mut self,
        fold: FoldId,
        queries: &[Span<usize>],
        thresholds: &[i128],
        step: &SparseVector,
    ) -> Result<Vec<Crossing>, DeskError> {
        if queries.len() != thresholds.len() {
            return Err(DeskError::Misuse(
                "a sparse vector needs a threshold per query".to_owned(),
            ));
        }
        let tests: Vec<Test> = queries
            .iter()
            .zip(thresholds)
            .map(|(q, t)| Test::count(q.clone(), *t))
            .collect();
        self.threshold_tests(fold, &tests, &step.general(tests.len()))
    }
}
