//! A noisy number of votes: records are divided into groups, and every group answers one question.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "rational arithmetic; divisors are checked to be positive"
)]

use std::ops::Range as Span;

use reticent_accounting::{Event, Rational};
use reticent_noise::Lattice;
pub use reticent_solver::{Ask, Family, Question};

use super::payment::{additive, scale};
use crate::context::Context;
use crate::desk::{Desk, DeskError, misuse};
use crate::numeric::MAX_DIMENSION;

/// Most groups of a vote.
pub const MOST_GROUPS: u32 = 1 << 20;

/// The number of groups of records that answer a question about a coefficient with yes, and noise (subsample and aggregate).
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// use reticent_mechanisms::primitives::{Ask, Family, Question};
/// let step = Votes {
///     name: "does income rise with age?".to_owned(),
///     epsilon: Rational::from(40u8),
///     groups: 25,
///     covariates: 0..1,
///     outcome: 1,
///     question: Question { family: Family::Gaussian, intercept: true, term: 0, ask: Ask::Above(0.0) },
///     seed: 1,
/// };
/// let ages: Vec<f64> = (0..500).map(f64::from).collect();
/// let incomes = ages.iter().map(|a| a / 2.0 + a % 7.0).collect();
/// let terms = vec![Expr::Column(0), Expr::Column(1)];
/// let yes = buy_terms(None, terms, vec![ages, incomes], step.event(&context()), |desk, _| desk.votes(&step));
/// assert_eq!(yes, 25);
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit. Calibrated for add/remove, replace-one costs 2ε; calibrated for replace-one, add/remove
/// costs ε/2.
/// # Assumptions
/// A vote is a function of the group's number, its sorted rows and public numbers: it comes from the crate `reticent-solver`, of
/// which it is relied on that its functions have no state, no effect, and return.
/// # Sensitivity
/// The i-th of the records with equal terms goes to the group that (terms, i, seed) hash to. With one record more, of m equal ones
/// there are m + 1: the pairs (terms, 1) to (terms, m) stay where they are, and (terms, m + 1) joins one group. Every other group
/// keeps its rows, hence its vote. So the number of yes votes moves by at most 1 under add/remove and 2 under replace-one; k times
/// that for a unit of k rows.
/// # Noise
/// Discrete Laplace of scale k/ε (add/remove) or 2k/ε (replace-one) on the number of yes votes.
/// # Composition
/// One draw.
/// # Arithmetic
/// Integers. Equal are terms of equal bits. Rows are sorted before they are divided, and come to a group in that order: neither the order in which
/// they were read nor other groups can change a rounding. Nothing is assumed of the hash but that it is a function.
/// # Checked by
/// `votes::{votes_enumerated, votes_canary, a_record_moves_one_group, order_does_not_count}`
/// # References
/// `beyond.md` §5; Nissim, Raskhodnikova, Smith 2007 (subsample and aggregate); Barrientos, Reiter, Machanavajjhala, Chen 2019.
#[derive(Clone, Debug, PartialEq)]
pub struct Votes {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the step for the context's relation.
    pub epsilon: Rational,
    /// Number of groups, 1 to [`MOST_GROUPS`].
    pub groups: u32,
    /// The covariates among the program's terms.
    pub covariates: Span<usize>,
    /// The outcome term.
    pub outcome: usize,
    /// What every group is asked.
    pub question: Question,
    /// Public seed of the division into groups.
    pub seed: u64,
}

impl Votes {
    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        Event::Pure {
            mechanism: format!("{}: votes of {} groups", self.name, self.groups),
            loss: additive(&self.epsilon, context),
        }
    }

    /// The noise on the number of yes votes.
    pub fn lattice(&self, context: &Context) -> Result<Lattice, DeskError> {
        if !(1..=MOST_GROUPS).contains(&self.groups) {
            let text = format!("{}: not 1 to {MOST_GROUPS} groups", self.name);
            return Err(DeskError::Misuse(text));
        }
        let touches = Rational::from(context.touches());
        let scale = scale(&self.name, &touches, &self.epsilon, context)?;
        Ok(Lattice::Laplace(scale))
    }

    /// The group of the `i`-th record with these terms.
    fn group(&self, terms: &[f64], i: u64) -> usize {
        let mixed = terms.iter().fold(self.seed, |h, t| mix(h ^ t.to_bits()));
        let place = u128::from(mix(mixed ^ i)) * u128::from(self.groups);
        usize::try_from(place >> 64).unwrap_or(0)
    }
}

/// The output function of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Desk<'_> {
    /// Buys the number of yes votes; needs one pass (the rows are held in memory).
    pub fn votes(&mut self, step: &Votes) -> Result<i128, DeskError> {
        let lattice = step.lattice(self.context)?;
        self.bounds(step.outcome)?;
        self.bounds(step.covariates.end.saturating_sub(1))?;
        if step.covariates.len() > MAX_DIMENSION {
            return Err(misuse(format!("{}: too many terms", step.name)));
        }
        self.charge(&step.event(self.context))?;
        let held = self.hold()?;
        let mut rows: Vec<Vec<f64>> = Vec::with_capacity(held.rows);
        for block in &held.blocks {
            let wanted = step.covariates.clone().chain([step.outcome]);
            let columns: Vec<&Vec<f64>> = wanted.filter_map(|t| block.get(t)).collect();
            let length = columns.iter().map(|c| c.len()).min().unwrap_or(0);
            rows.extend(
                (0..length).map(|i| columns.iter().filter_map(|c| c.get(i).copied()).collect()),
            );
        }
        rows.sort_unstable_by(|a, b| {
            let differ = a
                .iter()
                .zip(b)
                .map(|(x, y)| x.total_cmp(y))
                .find(|o| o.is_ne());
            differ.unwrap_or(std::cmp::Ordering::Equal)
        });
        let mut groups: Vec<Vec<&[f64]>> =
            vec![Vec::new(); usize::try_from(step.groups).unwrap_or(0)];
        let (mut last, mut i): (&[f64], u64) = (&[], 0);
        for row in &rows {
            let same = row
                .iter()
                .zip(last)
                .all(|(x, y)| x.to_bits() == y.to_bits());
            i = if same && !last.is_empty() {
                i.saturating_add(1)
            } else {
                0
            };
            last = row;
            if let Some(group) = groups.get_mut(step.group(row, i)) {
                group.push(row);
            }
        }
        let yes = (0u32..)
            .zip(&groups)
            .filter(|(number, rows)| step.question.vote(*number, rows));
        let yes = i128::try_from(yes.count()).unwrap_or(i128::MAX);
        self.record(&step.name, &lattice, 1.0);
        Ok(yes.saturating_add(self.noise.lattice(&lattice)))
    }
}
