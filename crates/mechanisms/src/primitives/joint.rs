//! The joint exponential mechanism for top-k: one draw of a whole sequence.

use reticent_accounting::exp::exp_lower;
use reticent_accounting::{Event, Rational, rational_to_f64};
use reticent_noise::Natural;

use super::payment::{additive, budget};
use super::select::scores;
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId, misuse};

/// k distinct candidates in one draw, each as far as possible no worse than the true one of its rank.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let step = JointSelection { name: "top two".to_owned(), epsilon: Rational::from(20u8), picks: 2, cap: 50 };
/// let counts = [5, 90, 40, 1];
/// let best = buy(&counts, &[4], step.event(&context()), |desk, words| desk.select_jointly(words, None, &step));
/// assert_eq!(best, [1, 2]);
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit, as one bounded-range draw.
/// # Assumptions
/// As for [`Selection`](super::Selection); scores are counts to which a record contributes 0 or 1.
/// # Sensitivity
/// A sequence s has loss l = min(max_i (c_(i) − c_{s_i}), L), c_(i) the i-th largest count, L the public cap. Adding a record moves
/// c_(i) and c_{s_i} by 0 or 1, hence l by at most 1; replacing by at most 2. Capping keeps that.
/// # Noise
/// P(s) ∝ v(l(s)), v(L) = 2^64, v(l−1) = ⌊v(l)·g⌋ with a rational 1 ≤ g ≤ e^r, r = ε/2 (add/remove) or ε/4
/// (replace-one), per record: so 0 ≤ ln v(l−1) − ln v(l) ≤ r.
/// # Composition
/// Weight and normaliser move by a factor within e^{±r·1} (replace: e^{±2r}): add/remove 2r = ε, replace-one 4r = ε;
/// the change of the exponent has range at most 2r (4r), hence zCDP ε²/8. At add/remove rates replace-one costs 2ε; at
/// replace-one rates add/remove costs ε/2. Several sequences of one item each lift or lower the loss: ε is tight.
/// # Arithmetic
/// With A_i(l) = {j: c_j ≥ c_(i) − l} (everything at l = L), t_i = |A_i|: N(l) = Π(t_i(l) − i + 1) sequences have loss at most l.
/// (a) A level l with weight (N(l) − N(l−1))·v(l). (b) The first position i whose own loss is exactly l, with weight
/// Π_{j<i}(t_j(l−1) − j + 1)·(t_i(l) − t_i(l−1))·Π_{j>i}(t_j(l) − j + 1); these add up to N(l) − N(l−1) by telescoping. (c) Items
/// in turn, uniformly: from A_j(l−1) before i, A_i(l)∖A_i(l−1) at i, A_j(l) after, less those taken. The A are nested initial
/// pieces of the sorted candidates and items taken before are in the later pieces, none of them in the shell at i; so every
/// sequence of loss l has one path, of probability v(l)/Σ. All weights are whole numbers of any size; no rejection,
/// and the number of steps depends on k, L and the number of candidates only.
/// # Checked by
/// `joint::{golden_joint, joint_enumerated, joint_canary, joint_counts_sequences}`
/// # References
/// Gillenwater et al. 2022; `decisions.md` §2.11 and §4, instance 3.
#[derive(Clone, Debug, PartialEq)]
pub struct JointSelection {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the step for the context's relation.
    pub epsilon: Rational,
    /// k, at least 1; fewer are returned if there are fewer candidates.
    pub picks: u32,
    /// L: losses beyond are not told apart.
    pub cap: u32,
}

/// Bits of all level weights together: 128 MB.
const MOST_BITS: u64 = 1 << 30;
/// Fractional bits of g.
const FRACTION: usize = 48;

impl JointSelection {
    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        Event::BoundedRange {
            mechanism: format!("{}: joint exponential mechanism", self.name),
            loss: additive(&self.epsilon, context),
        }
    }

    /// r.
    #[allow(clippy::arithmetic_side_effects, reason = "division by 2 or 4")]
    fn rate(&self, context: &Context) -> Result<Rational, DeskError> {
        let touches = Rational::from(context.touches());
        let r = context.per_record(&self.epsilon) / (touches * Rational::from(2u8));
        budget(&self.name, &r)?;
        Ok(r)
    }

    /// v(0), …, v(L).
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "big integers; at most 32 · 3/2 · 2^32 bits are counted"
    )]
    fn levels(&self, context: &Context) -> Result<Vec<Natural>, DeskError> {
        // beyond e^32 per level the draw is the best sequence in all but 10^-14 of the cases
        let rate = self.rate(context)?.min(Rational::from(32u8));
        let levels = u64::from(self.cap) + 1;
        // a level adds at most rate · log2(e) < rate · 3/2 bits; the mean length is half the largest
        let growth =
            (Rational::from(levels) * &rate * Rational::from(3u8) / Rational::from(4u8)).ceil();
        let bits = u64::try_from(growth).unwrap_or(u64::MAX).saturating_add(64);
        if bits.saturating_mul(levels) > MOST_BITS {
            return Err(misuse(format!(
                "{}: a cap of {} is too far at this budget; losses beyond 100 divided by the rate {:.3} hardly occur",
                self.name,
                self.cap,
                rational_to_f64(&rate)
            )));
        }
        let one = Natural::ONE << FRACTION;
        let scaled = (exp_lower(&rate) * Rational::from(one.clone())).floor();
        let g = Natural::try_from(scaled).unwrap_or(Natural::ONE).max(one);
        let mut v = vec![Natural::ONE << 64];
        for _ in 0..self.cap {
            let next = v
                .last()
                .map(|last| (last * &g) >> FRACTION)
                .unwrap_or_default();
            v.push(next);
        }
        v.reverse();
        Ok(v)
    }
}

/// Sorted counts, largest first, and the sizes t_i(l).
struct Ladder {
    counts: Vec<i128>,
    picks: usize,
    cap: usize,
}

impl Ladder {
    /// t_i(l) for i from 0; `None` below level 0: nothing.
    fn size(&self, i: usize, level: Option<usize>) -> usize {
        let Some(level) = level else { return 0 };
        if level >= self.cap {
            return self.counts.len();
        }
        let floor = self
            .counts
            .get(i)
            .copied()
            .unwrap_or(0)
            .saturating_sub(i128::try_from(level).unwrap_or(i128::MAX));
        self.counts.partition_point(|c| *c >= floor)
    }

    fn sizes(&self, level: Option<usize>) -> Vec<usize> {
        (0..self.picks).map(|i| self.size(i, level)).collect()
    }
}

/// Π(t_j − j), j from 0; zero as soon as one is.
fn sequences(sizes: impl Iterator<Item = (usize, usize)>) -> Natural {
    #[allow(clippy::arithmetic_side_effects, reason = "big integers")]
    sizes.fold(Natural::ONE, |n, (j, t)| {
        n * Natural::from(t.saturating_sub(j))
    })
}

impl Desk<'_> {
    /// Buys k candidates at once, by rank; `candidates` as for [`Desk::select`].
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "big integers; N grows with the level"
    )]
    pub fn select_jointly(
        &mut self,
        fold: FoldId,
        candidates: Option<&[std::ops::Range<usize>]>,
        step: &JointSelection,
    ) -> Result<Vec<usize>, DeskError> {
        self.charge(&step.event(self.context))?;
        let v = step.levels(self.context)?;
        let (fold, state) = self.state(fold)?;
        let scores = scores(&fold, &state, candidates)?;
        let rate = rational_to_f64(&step.rate(self.context)?);
        self.record_as(&step.name, "joint exponential mechanism, rate", rate);
        let mut order: Vec<usize> = (0..scores.len()).collect();
        let count = |i: &usize| scores.get(*i).copied().unwrap_or(0);
        order.sort_by_key(|i| std::cmp::Reverse(count(i)));
        let ladder = Ladder {
            counts: order.iter().map(count).collect(),
            picks: order.len().min(step.picks.max(1) as usize),
            cap: step.cap as usize,
        };
        let mut weights = Vec::with_capacity(v.len());
        let (mut sizes, mut below) = (Vec::new(), Natural::ZERO);
        for (level, v) in v.iter().enumerate() {
            let now = ladder.sizes(Some(level));
            let upto = if now == sizes {
                below.clone()
            } else {
                sequences(now.iter().copied().enumerate())
            };
            weights.push((&upto - &below.min(upto.clone())) * v);
            (sizes, below) = (now, upto);
        }
        let level = self.noise.pick(&weights);
        let (inner, outer) = (
            ladder.sizes(level.checked_sub(1)),
            ladder.sizes(Some(level)),
        );
        let shells: Vec<Natural> = (0..ladder.picks)
            .map(|i| {
                let (t, before) = (size(&outer, i), size(&inner, i));
                let shell = Natural::from(t.saturating_sub(before));
                let others = (0..ladder.picks).filter(|j| *j != i);
                let sizes = others.map(|j| (j, size(if j < i { &inner } else { &outer }, j)));
                // at level 0 only the first position has sequences: nothing lies below
                shell * sequences(sizes)
            })
            .collect();
        let first = if level == 0 {
            0
        } else {
            self.noise.pick(&shells)
        };
        let mut picked = Vec::new();
        for j in 0..ladder.picks {
            let from = if level > 0 && j == first {
                size(&inner, j)
            } else {
                0
            };
            let to = size(if j < first { &inner } else { &outer }, j);
            // the taken ones lie in 0..to, and none of them in the shell
            let taken = if from > 0 { 0 } else { j };
            let free = to.saturating_sub(from).saturating_sub(taken);
            let mut at = usize::try_from(self.noise.below(u64::try_from(free).unwrap_or(1)))
                .unwrap_or(0)
                .saturating_add(from);
            let mut before: Vec<usize> = picked.iter().copied().filter(|p| *p >= from).collect();
            before.sort_unstable();
            for p in before {
                if p <= at {
                    at = at.saturating_add(1);
                }
            }
            picked.push(at);
        }
        Ok(picked
            .into_iter()
            .filter_map(|p| order.get(p).copied())
            .collect())
    }
}

fn size(sizes: &[usize], i: usize) -> usize {
    sizes.get(i).copied().unwrap_or(0)
}
