//! The sparse vector technique with a cut-off, on counts.

use std::ops::Range as Span;

use reticent_accounting::{Both, Event, Rational, Relation, share};
use reticent_noise::{Lattice, Scale};

use super::counts::grid;
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId};

/// Whether all differences between neighbours have one sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signs {
    /// All of one sign: one sensitivity per positive answer is enough.
    Same,
    /// Any: two per positive answer.
    Mixed,
}

/// AboveThreshold that stops after c positive answers, one-sided geometric noise.
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

/// A positive answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crossing {
    /// Which query.
    pub index: usize,
    /// Noisy query minus noisy threshold, if asked for.
    pub gap: Option<i128>,
}

impl SparseVector {
    /// The signs of query differences under the context's relation.
    pub fn signs(&self, context: &Context) -> Signs {
        match context.relation {
            Relation::AddRemove => Signs::Same,
            Relation::ReplaceOne if self.nested => Signs::Same,
            Relation::ReplaceOne => Signs::Mixed,
        }
    }

    fn paid_shifts(&self, context: &Context) -> u64 {
        let c = u64::from(self.answers.max(1));
        match self.signs(context) {
            Signs::Same => c,
            Signs::Mixed => c.saturating_mul(2),
        }
    }

    /// e₁ (threshold) and e₂ (queries).
    fn shares(&self, context: &Context) -> (Rational, Rational) {
        #[allow(clippy::cast_precision_loss, reason = "c is at most 2^33")]
        let root = libm::cbrt(self.paid_shifts(context) as f64);
        let fraction = 4_294_967_296.0 / (1.0 + root * root);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and 2^31"
        )]
        let numerator = (fraction as u64).max(1);
        share(&self.epsilon, numerator, 1 << 32)
    }

    /// The price of the step.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "rational arithmetic, division by 2"
    )]
    pub fn event(&self, context: &Context) -> Event {
        let (e1, e2) = self.shares(context);
        let loss = match (context.relation, self.signs(context)) {
            (Relation::AddRemove, _) => Both::doubled(&self.epsilon),
            (Relation::ReplaceOne, Signs::Same) => Both::same(&self.epsilon),
            (Relation::ReplaceOne, Signs::Mixed) => Both {
                add_remove: Some(e1 + e2 / Rational::from(2u8)),
                replace_one: Some(self.epsilon.clone()),
            },
        };
        Event::Pure {
            mechanism: format!("{}: sparse vector, {} answers", self.name, self.answers),
            loss,
        }
    }

    /// (threshold noise, query noise).
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "rational arithmetic; divisors are checked"
    )]
    pub fn lattices(&self, context: &Context) -> Result<(Lattice, Lattice), DeskError> {
        let (e1, e2) = self.shares(context);
        let (e1, e2) = (context.per_record(&e1), context.per_record(&e2));
        if e1 <= Rational::ZERO || e2 <= Rational::ZERO {
            return Err(DeskError::Misuse(
                "the budget of a sparse vector is too small to split".to_owned(),
            ));
        }
        let threshold = Rational::from(1u8) / e1;
        let query = Rational::from(self.paid_shifts(context)) / e2;
        Ok((
            Lattice::Geometric(Scale::at_least(&threshold)?),
            Lattice::Geometric(Scale::at_least(&query)?),
        ))
    }
}

impl Desk<'_> {
    /// Buys the first `answers` queries whose counts reach their public thresholds. A query is the count
    /// of a range of cells of the grid's first axis, other axes pooled.
    pub fn sparse_vector(
        &mut self,
        fold: FoldId,
        queries: &[Span<usize>],
        thresholds: &[i128],
        step: &SparseVector,
    ) -> Result<Vec<Crossing>, DeskError> {
        self.charge(&step.event(self.context))?;
        let nested = queries
            .iter()
            .zip(queries.iter().skip(1))
            .all(|(a, b)| b.start <= a.start && a.end <= b.end);
        if step.nested && !nested {
            return Err(DeskError::Misuse(
                "the queries are not nested as declared".to_owned(),
            ));
        }
        if queries.len() != thresholds.len() || step.answers == 0 {
            return Err(DeskError::Misuse(
                "a sparse vector needs a threshold per query and c ≥ 1".to_owned(),
            ));
        }
        let (fold, state) = self.state(fold)?;
        let shape = grid(&fold)?;
        let (threshold, query) = step.lattices(self.context)?;
        self.record(&format!("{}: threshold", step.name), &threshold, 1.0);
        self.record(&format!("{}: queries", step.name), &query, 1.0);
        let rho = self.noise.lattice(&threshold);
        let mut found = Vec::new();
        for (index, (cells, t)) in queries.iter().zip(thresholds).enumerate() {
            let from = cells.start.saturating_mul(shape.inner);
            let to = cells.end.min(shape.first).saturating_mul(shape.inner);
            let count = state
                .0
                .get(from..to)
                .unwrap_or_default()
                .iter()
                .fold(0i128, |s, c| s.saturating_add(*c));
            let need = t.saturating_add(rho).saturating_sub(count);
            if step.gaps {
                let gap = self.noise.lattice(&query).saturating_sub(need);
                if gap >= 0 {
                    found.push(Crossing {
                        index,
                        gap: Some(gap),
                    });
                }
            } else if self.noise.exceeds(&query, need) {
                found.push(Crossing { index, gap: None });
            }
            if found.len() >= step.answers as usize {
                break;
            }
        }
        Ok(found)
    }
}
