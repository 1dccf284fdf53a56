//! The count that is farthest from a public guess, by the exponential mechanism.

use reticent_accounting::{Both, Event, Rational};
use reticent_noise::{Cell, LogWeights};

use super::cells::arranged;
use super::linear::{Strategy, Weights};
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId, misuse};

/// One choice among counting queries, of those whose guesses are far off.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let step = WorstQuery { name: "worst".to_owned(), epsilon: Rational::from(20u8), unit: 1 };
/// let queries = Strategy::new(4, (0..4).map(|i| Row::count([i..i + 1], 1)).collect());
/// let worst = buy(&[30, 31, 90, 29], &[4], step.event(&context()), |desk, ages| {
///     desk.worst_query(ages, &queries, &[30; 4], &step)
/// });
/// assert_eq!(worst, 2);
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's unit under either relation; one bounded-range draw.
/// # Assumptions
/// Queries and guesses are public or functions of earlier outputs. Every query counts some cells once (checked).
/// # Sensitivity
/// score_q = |count_q − guess_q|. A record added, removed or replaced moves every count by at most 1, so every score.
/// # Noise
/// Query q is chosen with probability proportional to exp(ε·score_q/(2k)), exactly.
/// # Composition
/// Weight and normaliser each change by at most e^{ε/2} over the k records of a unit; the loss has range at most ε.
/// # Arithmetic
/// Guesses are integers in units of 1/G: scores are integers in that unit and the rate is ε/(2kG).
/// # Checked by
/// `worst_query::enumerated`, `worst_query::canary`, `worst_query::only_counts_are_chosen_from`
/// # References
/// `privacy.md` §11; `decisions.md` §2.10; Hardt, Ligett, McSherry 2012.
#[derive(Clone, Debug, PartialEq)]
pub struct WorstQuery {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the step.
    pub epsilon: Rational,
    /// G ≥ 1: guesses are in units of 1/G.
    pub unit: u32,
}

impl WorstQuery {
    /// The price of the step.
    pub fn event(&self, _: &Context) -> Event {
        Event::BoundedRange {
            mechanism: format!("{}: exponential mechanism over queries", self.name),
            loss: Both::same(&self.epsilon),
        }
    }
}

impl Desk<'_> {
    /// Buys the index of a query with a large error.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "rational arithmetic; the divisor is at least 2"
    )]
    pub fn worst_query(
        &mut self,
        fold: FoldId,
        queries: &Strategy,
        guesses: &[i128],
        step: &WorstQuery,
    ) -> Result<usize, DeskError> {
        let counts = |w: &Weights| match w {
            Weights::Ranges(pieces) => pieces.iter().all(|(_, w)| *w == 1),
            Weights::Window { .. } => false,
        };
        queries.sensitivity(self.context.relation)?;
        let one = guesses.len() == queries.rows.len() && !guesses.is_empty() && step.unit > 0;
        if !one || !queries.rows.iter().all(|r| counts(&r.weights)) {
            return Err(misuse(
                "a choice among queries needs counts with weight 1 and a guess for each",
            ));
        }
        self.charge(&step.event(self.context))?;
        let (fold, state) = self.state(fold)?;
        let cells = arranged(&fold, &state, queries.order.as_deref())?;
        if cells.len() != queries.cells {
            return Err(misuse("the queries are for another number of cells"));
        }
        let scores = queries.answers(&cells).into_iter().zip(guesses);
        let cells = scores
            .map(|(count, guess)| Cell {
                loss: count
                    .saturating_mul(i128::from(step.unit))
                    .saturating_sub(*guess)
                    .unsigned_abs(),
                multiplicity: 1,
            })
            .collect();
        let e = self.context.per_record(&step.epsilon);
        let divisor = Rational::from(u64::from(step.unit).saturating_mul(2));
        self.record_as(&step.name, "exponential mechanism", 0.0);
        // a negative rate prefers large scores
        Ok(self.noise.choose(&LogWeights {
            rate: -(e / divisor),
            cells,
        }))
    }
}
