//! Selection among public candidates by their counts: exponential mechanism, permute-and-flip, noisy maximum.

use std::ops::Range;

use reticent_accounting::{Event, Rational, rational_to_f64, split};
use reticent_noise::{Cell, Lattice, LogWeights, Scale};

use super::Sides;
use super::cells::Layers;
use super::payment::{additive, budget};
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId};
use crate::fold::{Fold, State};

/// How each pick is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The exponential mechanism. Repeated without replacement it has the law of one-shot Gumbel top-k (noise of scale
    /// k/ε on every score, the k largest): both draw the next candidate in proportion to its weight among those left.
    Exponential,
    /// Candidates in random order, each accepted with probability e^{−rate·(best − score)}.
    PermuteAndFlip,
    /// The largest noisy score.
    NoisyMax {
        /// Noise above zero only, or on both sides.
        sides: Sides,
        /// Release with each pick by how much the winner could have been lower and still have won.
        gaps: bool,
    },
}

/// The k candidates of the largest counts, one after the other.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let step = Selection {
///     name: "most frequent".to_owned(),
///     epsilon: Rational::from(20u8),
///     picks: 1,
///     rule: Rule::PermuteAndFlip,
/// };
/// let counts = [5, 90, 40, 1];
/// let best = buy(&counts, &[4], step.event(&context()), |desk, words| desk.select(words, None, &step));
/// assert_eq!(best[0].index, 1);
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit; with [`Rule::Exponential`] every pick is a bounded-range draw.
/// # Assumptions
/// The candidates are public.
/// # Sensitivity
/// A candidate's score is the count of a range of cells of a grid (ranges may overlap), or of one item of a
/// [`Fold::Items`]: a record contributes 0 or 1 to it. Adding a record moves every score by 0 or +1; replacing one
/// by −1, 0 or +1. How many scores move does not matter.
/// # Noise
/// A pick has e = ε/k (a record: divided by the unit's rows) and rate r = e (add/remove) or e/2 (replace-one).
/// Exponential: weights e^{r·score}. Permute-and-flip: acceptance e^{−r(best − score)}. Noisy maximum: Geo1(1/r) or
/// DLap(1/r) on every score, ties to the first.
/// # Composition
/// *Exponential.* Add: each weight and the normaliser grow by a factor in [1, e^r], so that the loss is r, its range
/// included: zCDP r²/8. Replace: the factors lie in [e^{−r}, e^r], loss and range 2r.
/// *Noisy maximum.* Fix the others' noise: i wins iff its noise is at least t, an integer that moves by at most 1 when a
/// record is added (its own score and the largest of the others both move by 0 or +1), by 2 when one is replaced; both
/// laws have P(Z ≥ t) log-Lipschitz with constant r. Loss r and 2r.
/// *Permute-and-flip* is the noisy maximum with exponential noise of scale 1/r on the reals, where the same holds.
/// *Gaps.* gap g = s_i + Z_i − M, M = max over the others of s_j + Z_j, plus 1 for those before i: what i needs to
/// win, so that the pair (i, g) is Z_i = M + g − s_i and nothing else. DLap: for fixed M, Z_i is shifted by at most 1
/// (replace: 2). Geo1, a record added: after a common shift of all scores s_i stays and a set A of others rises by 1, or
/// falls by 1. Write P for the probability of (i, g) with A raised, P′ without; ρ = e^{−r}. P′ ≤ P/ρ: M rises by 0 or 1; shift
/// Z_i upward by as much. P ≤ P′/ρ: condition on the others outside A, with maximum B, and put y₀ = s_i − g. If B ≥ y₀, the
/// probability of Z_i = M + g − s_i only falls as M rises. Else M is the maximum over A whenever Z_i ≥ 0; let p be its law without
/// the rise. p(y + 1) ≥ ρ·p(y), because its distribution function at y is φ(ρ^{y+1}) with φ(t) = Π(1 − u_j t) convex. So
/// P′ = Σ_{y≥y₀} p(y)(1−ρ)ρ^{y−y₀} ≥ p(y₀−1)·ρ/(1+ρ) and P = (1−ρ)p(y₀−1) + ρP′ ≤ P′/ρ. Replacing is two such steps.
/// k picks compose sequentially. At add/remove rates replace-one costs 2ε; at replace-one rates add/remove costs ε/2.
/// # Arithmetic
/// Scores are integers. The exponential choice is exact at a rational rate; noise scales 1/r are rounded up, which
/// is a smaller rate. Acceptance is asked as Geo1(1/r) ≥ best − score, which has exactly that probability.
/// The largest score is always accepted, so that a pick needs at most as many flips as there are candidates.
/// # Checked by
/// `selection::{exponential_enumerated, permute_and_flip_enumerated, noisy_max_enumerated, items_enumerated, golden_permute_and_flip,
/// selection_canaries, gumbel_has_the_law_of_peeling}`
/// # References
/// McSherry, Talwar 2007; McKenna, Sheldon 2020; Ding et al. 2021 (exponential noise), 2022 (gaps); Durfee, Rogers 2019
/// (bounded range); `decisions.md` table and §4, instance 4; `beyond.md` §9.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the whole step for the context's relation.
    pub epsilon: Rational,
    /// k, at least 1; fewer are returned if there are fewer candidates.
    pub picks: u32,
    /// How each is made.
    pub rule: Rule,
}

/// One selected candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Picked {
    /// Which candidate.
    pub index: usize,
    /// By how much it could have been lower and still have won, if asked for.
    pub gap: Option<i128>,
}

impl Selection {
    fn shares(&self) -> Vec<Rational> {
        split(&self.epsilon, &vec![1; self.picks.max(1) as usize])
    }

    /// The price of the step: one leaf per pick.
    pub fn event(&self, context: &Context) -> Event {
        let leaf = |(i, e): (usize, Rational)| {
            let pick = i.saturating_add(1);
            let loss = additive(&e, context);
            match self.rule {
                Rule::Exponential => Event::BoundedRange {
                    mechanism: format!("{}: exponential mechanism, pick {pick}", self.name),
                    loss,
                },
                Rule::PermuteAndFlip => Event::Pure {
                    mechanism: format!("{}: permute-and-flip, pick {pick}", self.name),
                    loss,
                },
                Rule::NoisyMax { .. } => Event::Pure {
                    mechanism: format!("{}: noisy maximum, pick {pick}", self.name),
                    loss,
                },
            }
        };
        Event::Sequence(self.shares().into_iter().enumerate().map(leaf).collect())
    }

    /// The rate r of a pick that has `epsilon`.
    #[allow(clippy::arithmetic_side_effects, reason = "division by 1 or 2")]
    fn rate(&self, epsilon: &Rational, context: &Context) -> Result<Rational, DeskError> {
        let r = context.per_record(epsilon) / Rational::from(context.touches());
        budget(&self.name, &r)?;
        Ok(r)
    }
}

impl Desk<'_> {
    /// Buys the k best candidates, best first. `candidates` are ranges of cells of the grid's first axis (other axes
    /// pooled), `None` every cell, or every item of a [`Fold::Items`] (classes pooled).
    pub fn select(
        &mut self,
        fold: FoldId,
        candidates: Option<&[Range<usize>]>,
        step: &Selection,
    ) -> Result<Vec<Picked>, DeskError> {
        self.charge(&step.event(self.context))?;
        let (fold, state) = self.state(fold)?;
        let scores = scores(&fold, &state, candidates)?;
        let mut left: Vec<usize> = (0..scores.len()).collect();
        let mut picks = Vec::new();
        let mut rates = Vec::new();
        for e in step.shares() {
            rates.push(step.rate(&e, self.context)?);
        }
        if let Some(r) = rates.first() {
            let rate = rational_to_f64(r);
            match step.rule {
                Rule::Exponential => {
                    self.record_as(&step.name, "exponential mechanism, rate per pick", rate);
                }
                Rule::PermuteAndFlip => {
                    self.record_as(&step.name, "permute-and-flip, rate per pick", rate);
                }
                Rule::NoisyMax { sides, .. } => self.record(&step.name, &sides.lattice(r)?, 1.0),
            }
        }
        for rate in rates {
            let open: Vec<i128> = left
                .iter()
                .map(|i| scores.get(*i).copied().unwrap_or(0))
                .collect();
            if open.is_empty() {
                break;
            }
            let (at, gap) = match step.rule {
                Rule::Exponential => (self.exponential(&open, rate), None),
                Rule::PermuteAndFlip => (
                    self.permute_and_flip(&open, Sides::One.lattice(&rate)?),
                    None,
                ),
                Rule::NoisyMax { sides, gaps } => {
                    let (at, gap) = self.noisy_max(&open, sides.lattice(&rate)?);
                    (at, gaps.then_some(gap))
                }
            };
            let at = at.min(left.len().saturating_sub(1));
            picks.push(Picked {
                index: left.remove(at),
                gap,
            });
        }
        Ok(picks)
    }

    fn exponential(&mut self, scores: &[i128], rate: Rational) -> usize {
        let best = scores.iter().copied().max().unwrap_or(0);
        let cells = scores
            .iter()
            .map(|s| Cell {
                loss: best.abs_diff(*s),
                multiplicity: 1,
            })
            .collect();
        self.noise.choose(&LogWeights { rate, cells })
    }

    fn permute_and_flip(&mut self, scores: &[i128], flip: Lattice) -> usize {
        let best = scores.iter().copied().max().unwrap_or(0);
        let mut order: Vec<usize> = (0..scores.len()).collect();
        let mut last = 0;
        for visited in 0..scores.len() {
            let left = u64::try_from(scores.len().saturating_sub(visited)).unwrap_or(1);
            let ahead = usize::try_from(self.noise.below(left)).unwrap_or(0);
            let end = scores.len().saturating_sub(1);
            order.swap(visited, visited.saturating_add(ahead).min(end));
            last = order.get(visited).copied().unwrap_or(0);
            let behind = best.saturating_sub(scores.get(last).copied().unwrap_or(best));
            if self.noise.exceeds(&flip, behind) {
                return last;
            }
        }
        last
    }

    /// The first of the largest noisy scores and its gap.
    fn noisy_max(&mut self, scores: &[i128], law: Lattice) -> (usize, i128) {
        let noisy: Vec<i128> = scores
            .iter()
            .map(|s| s.saturating_add(self.noise.lattice(&law)))
            .collect();
        let top = noisy.iter().copied().max().unwrap_or(0);
        let winner = noisy.iter().position(|x| *x == top).unwrap_or(0);
        let needed = noisy
            .iter()
            .enumerate()
            .filter(|(j, _)| *j != winner)
            .map(|(j, x)| x.saturating_add(i128::from(j < winner)))
            .max();
        // a single candidate needs nothing
        (winner, needed.map_or(0, |m| top.saturating_sub(m)))
    }
}

/// Exact counts of the candidates; a record contributes 0 or 1 to each.
pub(super) fn scores(
    fold: &Fold,
    state: &State,
    candidates: Option<&[Range<usize>]>,
) -> Result<Vec<i128>, DeskError> {
    let layers = Layers::of(fold, state)?;
    let all: Vec<Range<usize>>;
    let candidates = if let Some(candidates) = candidates {
        candidates
    } else {
        all = (0..layers.len()).map(|i| i..i.saturating_add(1)).collect();
        &all
    };
    candidates.iter().map(|range| layers.count(range)).collect()
}

impl Sides {
    /// Noise of rate `rate`: scale 1/rate, rounded up.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "the rate was checked to be positive"
    )]
    fn lattice(self, rate: &Rational) -> Result<Lattice, DeskError> {
        Ok(self.of(Scale::at_least(&(Rational::ONE / rate))?))
    }
}
