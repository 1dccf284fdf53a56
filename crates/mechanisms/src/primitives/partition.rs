//! A private partition into buckets of nearly equal counts (DAWA, stage 1, corrected).

use std::ops::Range;

use reticent_accounting::{Event, Rational};
use reticent_noise::Lattice;

use super::cells::arranged;
use super::linear::Order;
use super::payment::{additive, scale};
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId};

/// The cheapest partition of a line of cells into buckets, by noisy costs.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let step = Partition {
///     name: "buckets".to_owned(),
///     epsilon: Rational::from(80u8),
///     penalty: Rational::from(2u8),
///     longest: 4,
///     order: None,
/// };
/// let counts = [5, 5, 5, 5, 40, 40, 40, 40];
/// let buckets = buy(&counts, &[8], step.event(&context()), |desk, ages| desk.partition(ages, &step));
/// assert_eq!(buckets, [0..4, 4..8]);
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit; add/remove ε and replace-one 2ε when calibrated for add/remove; ε/2 and ε when
/// calibrated for replace-one. Only the partition is released.
/// # Assumptions
/// The order of the cells is a public permutation (checked).
/// # Sensitivity
/// Candidates are the ranges of 2^k cells at every offset, 1 ≤ 2^k ≤ L, L the largest power of two that is at most the number of
/// cells, the declared longest length and 2¹⁶. dev(b) = Σ_{i∈b} |x_i − mean_b|. One more record in a cell of b moves dev(b) by at most
/// 2(1 − 1/|b|): with a cells above the mean (the cell among them) dev = 2(Σ_above x − a·mean), whose slope is 2(1 − a/|b|) or, below
/// the mean, −2a/|b|. Counts are cut at 2³⁰, a map that moves by at most as much as its argument.
/// # Noise
/// The cost of *every* candidate, length 1 included, is dev(b) + penalty + Z_b, Z_b discrete Laplace on the lattice 2/L of scale
/// a·k·(2(1 − 1/|b|) + 2(1 − 1/L))/ε, a = 1 (add/remove) or 2 (replace-one). Noisy costs are not clamped.
/// # Composition
/// Every partition has exactly one bucket over the changed cell. Fix the output B*, its bucket b* over that cell, and all
/// noises but Z_{b*}. Partitions without b* cost at least r, moved by at most 2(1 − 1/L); those with b* cost dev(b*) + Z_{b*} + A, A free of
/// the cell. B* wins iff Z_{b*} ≤ t (or < t, by the fixed order of partitions), and t moves by at most the two differences, so the
/// law of Z_{b*} changes it by a factor of at most e^ε. A replacement is two such changes at half the loss each.
/// # Arithmetic
/// Deviations are multiples of 2/|b|, hence integers in units of 2/L; the penalty is rounded to that lattice. Ties go to the
/// partition whose last bucket is shorter, then recursively: a total order that no data enter. With |b| ≤ 2¹⁶ and
/// counts ≤ 2³⁰ sums are at most 2⁴⁶ and deviations in lattice units at most 2⁶².
/// # Checked by
/// `partition::golden_line`, `partition::enumerated`, `partition::canary`, `partition::broken_variants_are_flagged`,
/// `partition::tests::{deviations_are_those_of_the_definition, silent_partitions_are_cheapest}`
/// # References
/// `privacy.md` §10; `decisions.md` §2.8, golden 9; Li, Hay, Miklau, Wang 2014.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the step for the context's relation and unit.
    pub epsilon: Rational,
    /// Public cost of every bucket, in records.
    pub penalty: Rational,
    /// No bucket is longer than this.
    pub longest: usize,
    /// The line of cells.
    pub order: Order,
}

/// Counts are cut here.
const MOST: u32 = 1 << 30;
/// Longest candidate.
const LONGEST: usize = 1 << 16;
/// Windows up to this length are summed directly.
const DIRECT: usize = 64;

impl Partition {
    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        Event::Pure {
            mechanism: format!("{}: private partition", self.name),
            loss: additive(&self.epsilon, context),
        }
    }

    /// The lengths of candidates among `cells` cells: powers of two, ascending.
    pub fn lengths(&self, cells: usize) -> Vec<usize> {
        let most = self.longest.min(cells).min(LONGEST);
        (0..17)
            .map(|k| 1usize << k)
            .take_while(|w| *w == 1 || *w <= most)
            .collect()
    }

    /// The noise on candidates of one length, in units of 2/`longest`.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "lengths are powers of two up to 2^16"
    )]
    fn lattice(
        &self,
        length: usize,
        longest: usize,
        context: &Context,
    ) -> Result<Lattice, DeskError> {
        let shift = (longest - longest / length.max(1)) + (longest - 1);
        let shift = Rational::from(shift) * Rational::from(context.touches());
        let scale = scale(&self.name, &shift, &self.epsilon, context)?;
        Ok(Lattice::Laplace(scale))
    }

    /// The penalty in units of 2/`longest`, from 0 to 2^100.
    #[allow(clippy::arithmetic_side_effects, reason = "rational arithmetic")]
    fn penalty(&self, longest: usize) -> i128 {
        let units = &self.penalty * Rational::from(longest) / Rational::from(2u8);
        i128::try_from(units.round())
            .unwrap_or(i128::MAX)
            .clamp(0, 1 << 100)
    }
}

/// Deviations of all windows of one length, in units of 2/`longest`.
#[allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "windows lie inside the cells; magnitudes are bounded in the proof's arithmetic section"
)]
fn deviations(cells: &[u32], length: usize, longest: usize) -> Vec<i128> {
    if length == 1 || length > cells.len() {
        return vec![0; (cells.len() + 1).saturating_sub(length)];
    }
    let (w, unit) = (length as u64, (longest / length) as u64);
    let mut sum: u64 = cells[..length].iter().map(|x| u64::from(*x)).sum();
    // in units of 2/length: length·Σ_{x>m}(x − m) − a·(Σx − length·m), m = ⌊mean⌋, a the number of x > m
    let deviation = |sum: u64, above: u64, excess: u64| {
        let m = sum / w;
        i128::from((w * excess - above * (sum - w * m)) * unit)
    };
    let mut out = Vec::with_capacity(cells.len() + 1 - length);
    if length <= DIRECT {
        for window in cells.windows(length) {
            let sum: u64 = window.iter().map(|x| u64::from(*x)).sum();
            #[allow(clippy::cast_possible_truncation, reason = "a mean of u32")]
            let m = (sum / w) as u32;
            let (mut above, mut excess) = (0u32, 0u64);
            for x in window {
                above += u32::from(*x > m);
                excess += u64::from(x.saturating_sub(m));
            }
            out.push(deviation(sum, u64::from(above), excess));
        }
        return out;
    }
    let mut order: Vec<u32> = (0..u32::try_from(cells.len()).unwrap_or(u32::MAX)).collect();
    order.sort_by_key(|i| cells[*i as usize]);
    let values: Vec<u32> = order.iter().map(|i| cells[*i as usize]).collect();
    let mut rank = vec![0u32; cells.len()];
    for (r, i) in (0u32..).zip(&order) {
        rank[*i as usize] = r;
    }
    let mut seen = Ranks::new(values);
    (0..length).for_each(|i| seen.change(rank[i], cells[i], true));
    for start in 0.. {
        let m = sum / w;
        let (below, below_sum) = seen.at_most(m);
        let above = w - below;
        out.push(deviation(sum, above, (sum - below_sum) - above * m));
        let Some(next) = cells.get(start + length) else {
            break;
        };
        seen.change(rank[start], cells[start], false);
        seen.change(rank[start + length], *next, true);
        sum = sum + u64::from(*next) - u64::from(cells[start]);
    }
    out
}

/// Number and sum of the cells of a window by rank (a Fenwick tree).
struct Ranks {
    values: Vec<u32>,
    nodes: Vec<(u64, u64)>,
    top: usize,
}

#[allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "indices stay within 1..=len; sums of at most 2^16 counts of 2^30, removals match insertions"
)]
impl Ranks {
    fn new(values: Vec<u32>) -> Self {
        let nodes = vec![(0, 0); values.len() + 1];
        let top = (values.len() + 1).next_power_of_two() / 2;
        Self { values, nodes, top }
    }

    fn change(&mut self, rank: u32, value: u32, add: bool) {
        let mut i = rank as usize + 1;
        while i < self.nodes.len() {
            let (count, sum) = self.nodes[i];
            self.nodes[i] = if add {
                (count + 1, sum + u64::from(value))
            } else {
                (count - 1, sum - u64::from(value))
            };
            i += i & i.wrapping_neg();
        }
    }

    /// Number and sum of the window's cells that are at most `bound`.
    fn at_most(&self, bound: u64) -> (u64, u64) {
        let (mut at, mut count, mut sum) = (0, 0, 0);
        let mut step = self.top;
        while step > 0 {
            let next = at + step;
            if next < self.nodes.len() && u64::from(self.values[next - 1]) <= bound {
                at = next;
                count += self.nodes[next].0;
                sum += self.nodes[next].1;
            }
            step /= 2;
        }
        (count, sum)
    }
}

/// The cheapest partition from the costs of windows by length and start; ties to the shorter last bucket.
#[allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "candidates lie inside the cells; length 1 is always there"
)]
fn cheapest(cells: usize, lengths: &[usize], costs: &[Vec<i128>]) -> Vec<Range<usize>> {
    let mut best = vec![0i128; cells + 1];
    let mut last = vec![1usize; cells + 1];
    for end in 1..=cells {
        let mut found: Option<i128> = None;
        for (length, costs) in lengths.iter().zip(costs).filter(|(w, _)| **w <= end) {
            let cost = best[end - length].saturating_add(costs[end - length]);
            if found.is_none_or(|f| cost < f) {
                found = Some(cost);
                last[end] = *length;
            }
        }
        best[end] = found.unwrap_or(0);
    }
    let mut buckets = Vec::new();
    let mut end = cells;
    while end > 0 {
        buckets.push(end - last[end]..end);
        end -= last[end];
    }
    buckets.reverse();
    buckets
}

impl Desk<'_> {
    /// Buys a partition of the grid's counts, laid out in the step's order, into ranges.
    pub fn partition(
        &mut self,
        fold: FoldId,
        step: &Partition,
    ) -> Result<Vec<Range<usize>>, DeskError> {
        self.charge(&step.event(self.context))?;
        let (fold, state) = self.state(fold)?;
        let cells: Vec<u32> = arranged(&fold, &state, step.order.as_deref())?
            .into_iter()
            .map(|c| u32::try_from(c.clamp(0, i128::from(MOST))).unwrap_or(MOST))
            .collect();
        let lengths = step.lengths(cells.len());
        let longest = lengths.last().copied().unwrap_or(1);
        let penalty = step.penalty(longest);
        let mut costs = Vec::with_capacity(lengths.len());
        for length in &lengths {
            let lattice = step.lattice(*length, longest, self.context)?;
            if *length == longest {
                #[allow(clippy::cast_precision_loss, reason = "at most 2^16")]
                self.record(&step.name, &lattice, 2.0 / longest as f64);
            }
            let mut level = deviations(&cells, *length, longest);
            for cost in &mut level {
                *cost = cost
                    .saturating_add(penalty)
                    .saturating_add(self.noise.lattice(&lattice));
            }
            costs.push(level);
        }
        Ok(cheapest(cells.len(), &lengths, &costs))
    }
}

#[cfg(test)]
#[allow(clippy::cast_precision_loss, reason = "small test data")]
mod tests {
    use reticent_laws::Seeded;
    use reticent_noise::Noise;

    use super::*;

    fn naive(cells: &[u32], longest: usize) -> f64 {
        let mean = cells.iter().map(|x| f64::from(*x)).sum::<f64>() / cells.len() as f64;
        let dev: f64 = cells.iter().map(|x| (f64::from(*x) - mean).abs()).sum();
        dev * longest as f64 / 2.0
    }

    #[test]
    fn deviations_are_those_of_the_definition() {
        let mut random = Seeded::new(11);
        for n in [1, 2, 3, 17, 300, 1024] {
            for most in [1, 3, 1000, 1 << 30] {
                let cells: Vec<u32> = (0..n)
                    .map(|_| u32::try_from(random.bits() % (most + 1)).unwrap())
                    .collect();
                for length in [1usize, 2, 4, 8, 64, 128, 256, 512] {
                    let found = deviations(&cells, length, 512);
                    assert_eq!(found.len(), (cells.len() + 1).saturating_sub(length));
                    for (window, d) in cells.windows(length).zip(found) {
                        let want = naive(window, 512);
                        assert!((d as f64 - want).abs() <= 1e-9 * want.max(1.0) + 1e-3);
                    }
                }
            }
        }
    }

    /// Against exhaustive search over all partitions, with costs that tie often.
    #[test]
    fn silent_partitions_are_cheapest() {
        let mut random = Seeded::new(12);
        for _ in 0..200 {
            let cells: Vec<u32> = (0..9).map(|_| (random.bits() % 4) as u32).collect();
            let lengths = [1usize, 2, 4, 8];
            let penalty = i128::from(random.bits() % 12);
            let costs: Vec<Vec<i128>> = lengths
                .iter()
                .map(|w| {
                    deviations(&cells, *w, 8)
                        .iter()
                        .map(|d| d + penalty)
                        .collect()
                })
                .collect();
            let price = |buckets: &[Range<usize>]| -> i128 {
                buckets
                    .iter()
                    .map(|b| costs[b.len().ilog2() as usize][b.start])
                    .sum()
            };
            let mut all: Vec<Vec<Range<usize>>> = vec![vec![]];
            let mut done = Vec::new();
            while let Some(open) = all.pop() {
                let at = open.last().map_or(0, |b: &Range<usize>| b.end);
                if at == 9 {
                    done.push(open);
                    continue;
                }
                for w in lengths.iter().filter(|w| at + **w <= 9) {
                    let mut next = open.clone();
                    next.push(at..at + w);
                    all.push(next);
                }
            }
            let best = done.iter().map(|b| price(b)).min().unwrap();
            let found = cheapest(9, &lengths, &costs);
            assert_eq!(price(&found), best);
            // among equally cheap ones, the shortest last bucket first
            let mut tied: Vec<Vec<usize>> = done
                .iter()
                .filter(|b| price(b) == best)
                .map(|b| b.iter().rev().map(Range::len).collect())
                .collect();
            tied.sort();
            let ours: Vec<usize> = found.iter().rev().map(Range::len).collect();
            assert_eq!(tied[0], ours);
        }
    }
}
