//! Quantiles of the negatives and of the positives by one paid step, on one line that holds both classes.
//!
//! # Claim
//! ε-DP for the context's relation and unit: the class sizes (if bought) and one recursive bisection.
//! # Assumptions
//! Those of the primitives; the outcome is 0 or 1 (otherwise a record stands elsewhere on the line, at no cost to privacy).
//! # Composition
//! A record has one class, hence one place on the line u + y·4097/4096 (u its mixed score): negatives first, then positives.
//! The levels of the bisection are quantiles of the line: k₀ of them split the negatives' part evenly and k₁ the positives'. Its
//! ranges at one depth are disjoint, so adding or removing a record touches one choice per depth, whatever its class: every
//! class's quantiles have the full e of a depth (parallel composition), not half of it. A replaced record may change its label,
//! or its score: it leaves one range and enters another, and both pay, 2e per depth. Both are the step's own
//! composition, so its declared event is the price and nothing rests on a claim of this crate about disjoint records; two
//! steps, one per class, would cost the sum.
//! The levels are a function of the bought sizes (post-processing; the price of a depth does not depend on the levels), or of
//! the declared share of positives.
//! # Arithmetic
//! One cell more than the 4096 of the mixed scale per class, so that u = 1 of a negative does not fall among the positives.
//! # Checked by
//! `roc::{prices_add_up, every_variant_answers_on_every_table}`, `composites::all`,
//! `classes::{both_classes_enumerated, both_classes_canary, half_the_noise_is_not_enough_for_replacing}`
//! # References
//! `privacy.md` Lemma B; `beyond.md` §2 (stratified thresholds, label-separate quantiles); Kaplan, Schnapp, Stemmer 2022
//! (recursion); Xu, Cormode 2025 (curve from quantiles of both classes)

use std::ops::Range;

use reticent_accounting::{Event, Rational, rational_to_f64, share};
use reticent_laws::Law as _;
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::primitives::{Counts, Draw};
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::{Context, Desk, DeskError, FoldId};

use super::GRID;
use super::curve::{Law, Tally};
use crate::bisect::Quantiles;
use crate::common::{Facts, clipped, real, size};
use crate::histogram::Spread;
use crate::scale::{Score, unmixed};

/// Cells of one class.
const CLASS: usize = GRID as usize + 1;
/// Denominator of the levels.
const LEVELS: u32 = 1 << 20;

/// The place of a record on the line, in [0, 2 + 1/4096].
pub(super) fn place(score: &Score, outcome: &Expr) -> Expr {
    let behind = f64::from(GRID + 1) / f64::from(GRID);
    score.mixed().add(outcome.clone().affine(behind, 0.0))
}

/// Counts along the line.
pub(super) fn fold(term: usize) -> Fold {
    let cut = Cut::Even {
        lower: 0.0,
        upper: 2.0 * f64::from(GRID + 1) / f64::from(GRID),
        cells: 2 * (GRID + 1),
    };
    Fold::Grid {
        axes: vec![Axis { term, cut }],
        sum: None,
    }
}

/// The steps.
pub(super) struct Classes {
    /// The sizes of both classes, if they are bought.
    sizes: Option<Counts>,
    /// The quantiles; its levels stand for as many others.
    line: Quantiles,
    /// Declared share of positives.
    rate: Option<f64>,
}

/// What was bought: boundaries on the line with the levels they were asked for.
pub(super) struct Bought {
    cuts: Vec<(usize, f64)>,
    levels: Vec<f64>,
    /// Sizes of the classes (negatives, positives), at least 1, or shares.
    sizes: (f64, f64),
    /// Deviation of a bought size.
    size_deviation: f64,
    /// The add/remove loss of one depth and record.
    each: f64,
}

impl Classes {
    /// 2^depth − 1 quantiles for ε; so many millionths of it buy the class sizes, none if 0.
    pub(super) fn new(
        facts: &Facts<'_>,
        called: &dyn Fn(&str) -> String,
        epsilon: &Rational,
        depth: u32,
        millionths: u64,
    ) -> Self {
        let (sizes, quantiles) = share(epsilon, millionths, 1_000_000);
        let finite = facts.positive_rate.filter(|p| p.is_finite());
        Self {
            sizes: (millionths > 0).then(|| Counts {
                name: called("sizes of both classes"),
                epsilon: sizes,
            }),
            line: Quantiles {
                name: called("quantiles of both classes"),
                epsilon: quantiles,
                levels: (1..1 << depth).collect(),
                denominator: LEVELS,
                draw: Draw::Exponential,
            },
            rate: finite.map(|p| p.clamp(0.0, 1.0)),
        }
    }

    pub(super) fn events(&self, context: &Context) -> Vec<Event> {
        let sizes = self.sizes.as_ref().map(|s| s.event(context));
        sizes
            .into_iter()
            .chain([self.line.event(context)])
            .collect()
    }

    pub(super) fn buy(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<Bought, DeskError> {
        let (sizes, size_deviation) = if let Some(step) = &self.sizes {
            let noisy = desk.counts(fold, Some(&[0..CLASS, CLASS..2 * CLASS]), step)?;
            let at = |i: usize| noisy.get(i).map_or(1.0, |n| real(*n).max(1.0));
            ((at(0), at(1)), step.lattice(desk.context())?.std_dev())
        } else {
            let positives = self.rate.unwrap_or(0.5);
            ((1.0 - positives, positives), 0.0)
        };
        let levels = levels(self.line.levels.len(), sizes);
        let line = Quantiles {
            levels: levels.clone(),
            ..self.line.clone()
        };
        let levels: Vec<f64> = levels
            .into_iter()
            .map(|l| f64::from(l) / f64::from(LEVELS))
            .collect();
        let found = line.buy(desk, fold)?;
        let context = desk.context();
        let paths = f64::from(line.depth()) * f64::from(context.touches());
        Ok(Bought {
            cuts: found
                .into_iter()
                .zip(&levels)
                .filter_map(|(b, level)| Some((b?, *level)))
                .collect(),
            levels,
            sizes,
            size_deviation,
            each: rational_to_f64(&context.per_record(&line.epsilon)) / paths,
        })
    }
}

/// Levels of the line: as many per class as possible, one more for the larger one; increasing strictly inside (0, 1).
fn levels(count: usize, (negatives, positives): (f64, f64)) -> Vec<u32> {
    let border = negatives / (negatives + positives);
    let (more, fewer) = (count.div_ceil(2), count / 2);
    let (no, yes) = if positives > negatives {
        (fewer, more)
    } else {
        (more, fewer)
    };
    // the middles of equal parts, so that only half a part lies beyond the outermost
    let split = |from: f64, to: f64, parts: usize| {
        (0..parts).map(move |j| from + (to - from) * (size(j) + 0.5) / size(parts))
    };
    let last = LEVELS - 1;
    let mut all: Vec<u32> = split(0.0, border, no)
        .chain(split(border, 1.0, yes))
        .map(|level| clipped((level * f64::from(LEVELS)).round(), 1, last))
        .collect();
    // 2^20 levels and at most a few thousand of them: both passes keep them inside.
    let mut least = 1;
    for level in &mut all {
        *level = (*level).max(least);
        least = *level + 1;
    }
    let mut most = last;
    for level in all.iter_mut().rev() {
        *level = (*level).min(most);
        most = level.saturating_sub(1);
    }
    all
}

impl Bought {
    /// The union of both classes' quantiles, as boundaries of the mixed scale's cells.
    pub(super) fn thresholds(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self
            .cuts
            .iter()
            .map(|(b, _)| if *b > CLASS { b - CLASS } else { b % CLASS })
            .map(|cell| cell.min(GRID as usize - 1))
            .filter(|cell| *cell > 0)
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The counts that the quantiles stand for, with straight lines between them on the mixed scale, in the bins between all of them.
    ///
    /// The errors are those of scores without ties: the rank of a boundary errs by Laplace of scale 2M/e, M = max(q, 1 − q), around
    /// the level within its range, and the ends of the range err themselves.
    pub(super) fn tally(self) -> Tally {
        let thresholds = self.thresholds();
        let lows: Vec<f64> = std::iter::once(0.0)
            .chain(
                thresholds
                    .iter()
                    .map(|t| unmixed(size(*t) / f64::from(GRID))),
            )
            .collect();
        let mut deviations: Vec<f64> = self.noise();
        deviations.extend([self.size_deviation; 2]);
        let rebuild = move |noise: &[f64]| self.cells(&thresholds, noise);
        let zero = vec![0.0; deviations.len()];
        let mut negatives = rebuild(&zero);
        let positives = negatives.split_off(lows.len().min(negatives.len()));
        let spread = Spread {
            deviations,
            rebuild: Box::new(rebuild),
        };
        Tally::new(
            &lows,
            negatives,
            positives,
            Law::Linear(false, Some(spread)),
        )
    }

    /// Every range of levels with the places of its ends (0 is before the first level), in the order of the bisection.
    fn nodes(&self) -> Vec<(usize, Range<usize>)> {
        let mut open: Vec<Range<usize>> = std::iter::once(0..self.levels.len()).collect();
        let mut all = Vec::with_capacity(self.levels.len());
        while let Some(node) = open.pop() {
            if node.is_empty() {
                continue;
            }
            let at = node.start.midpoint(node.end);
            open.push(node.start..at);
            open.push(at + 1..node.end);
            all.push((at, node));
        }
        all
    }

    /// Level of the boundary before index `end` counted from 1, 0 at the start and 1 at the end.
    fn level(&self, end: usize) -> f64 {
        end.checked_sub(1)
            .map_or(0.0, |i| self.levels.get(i).copied().unwrap_or(1.0))
    }

    /// The level of a node within its range.
    fn within(&self, at: usize, node: &Range<usize>) -> f64 {
        let (low, high) = (self.level(node.start), self.level(node.end + 1));
        ((self.level(at + 1) - low) / (high - low).max(1e-300)).clamp(0.0, 1.0)
    }

    /// Deviations of the boundaries' own rank errors, in records.
    fn noise(&self) -> Vec<f64> {
        let total = self.sizes.0 + self.sizes.1;
        let mut all = vec![0.0; self.levels.len()];
        for (at, node) in self.nodes() {
            let q = self.within(at, &node);
            let scale = 2.0 * q.max(1.0 - q) / self.each.max(1e-300);
            if let Some(place) = all.get_mut(at) {
                *place = (std::f64::consts::SQRT_2 * scale).min(total);
            }
        }
        all
    }

    /// Counts of negatives, then of positives, if ranks and sizes err by `noise`.
    fn cells(&self, thresholds: &[usize], noise: &[f64]) -> Vec<f64> {
        let own = |i: usize| noise.get(i).copied().unwrap_or(0.0);
        let k = self.levels.len();
        let mut moved = vec![0.0; k + 2];
        for (at, node) in self.nodes() {
            let q = self.within(at, &node);
            let ends = |i: usize| moved.get(i).copied().unwrap_or(0.0);
            let here = (1.0 - q) * ends(node.start) + q * ends(node.end + 1) + own(at);
            if let Some(place) = moved.get_mut(at + 1) {
                *place = here;
            }
        }
        let known = self.sizes.0 + self.sizes.1;
        let border = (self.sizes.0 + own(k)).max(0.0);
        let total = border + (self.sizes.1 + own(k + 1)).max(0.0);
        // records before each place of the line, class by class
        let mut line = Vec::new();
        for (start, range) in [(0, (0.0, border)), (CLASS, (border, total))] {
            let mut own: Vec<(f64, f64)> = Vec::new();
            for (boundary, level) in &self.cuts {
                if *boundary <= start || *boundary >= start + CLASS {
                    continue;
                }
                let at = (self.levels.partition_point(|l| l < level) + 1).min(k);
                let records = level * known + moved.get(at).copied().unwrap_or(0.0);
                let least = own.last().map_or(range.0, |p| p.1);
                own.push((size(*boundary), records.clamp(range.0, range.1).max(least)));
            }
            let (low, high) = (size(start), size(start + CLASS));
            // Half a part lies beyond the outermost quantiles: no wider than the part beside them.
            let ends = match own.as_slice() {
                [a, b, ..] => {
                    let (y, z) = own.split_last().map_or((*a, *b), |(z, rest)| {
                        (rest.last().copied().unwrap_or(*a), *z)
                    });
                    ((2.0 * a.0 - b.0).max(low), (2.0 * z.0 - y.0).min(high))
                }
                _ => (low, high),
            };
            line.extend([(low, range.0), (ends.0, range.0)]);
            line.extend(own);
            line.extend([(ends.1, range.1), (high, range.1)]);
        }
        let before = |x: usize| {
            let x = size(x);
            let i = line.partition_point(|p| p.0 < x).clamp(1, line.len() - 1);
            match (line.get(i - 1), line.get(i)) {
                (Some(a), Some(b)) => {
                    a.1 + (b.1 - a.1) * ((x - a.0) / (b.0 - a.0).max(1e-300)).clamp(0.0, 1.0)
                }
                _ => 0.0,
            }
        };
        let class = |start: usize| {
            let ends: Vec<f64> = std::iter::once(start)
                .chain(thresholds.iter().map(|t| start + t))
                .chain([start + CLASS])
                .map(before)
                .collect();
            let steps: Vec<f64> = ends
                .iter()
                .zip(ends.iter().skip(1))
                .map(|(a, b)| b - a)
                .collect();
            steps
        };
        let mut cells = class(0);
        cells.extend(class(CLASS));
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_split_both_classes() {
        let million = f64::from(LEVELS);
        let fractions = |count, sizes| -> Vec<f64> {
            levels(count, sizes)
                .into_iter()
                .map(|l| (f64::from(l) / million * 1e4).round() / 1e4)
                .collect()
        };
        assert_eq!(fractions(3, (300.0, 100.0)), [0.1875, 0.5625, 0.875]);
        assert_eq!(fractions(3, (100.0, 300.0)), [0.125, 0.4375, 0.8125]);
        assert_eq!(fractions(1, (1.0, 1.0)), [0.25]);
        for sizes in [(1.0, 1e12), (1e12, 1.0), (0.0, 1.0), (1.0, 0.0)] {
            let all = levels(511, sizes);
            assert!(all.is_sorted_by(|a, b| a < b), "{sizes:?}");
            assert!(all[0] > 0 && all[510] < LEVELS);
        }
    }

    /// Thirds by hand: a hundred negatives of which two quantiles are known, and a hundred positives of which one is.
    #[test]
    fn counts_follow_the_quantiles() {
        let bought = || Bought {
            cuts: vec![(1000, 0.125), (1200, 0.375), (CLASS + 2048, 0.75)],
            levels: vec![0.125, 0.375, 0.75],
            sizes: (100.0, 100.0),
            size_deviation: 1.0,
            each: 1.0,
        };
        let thresholds = bought().thresholds();
        assert_eq!(thresholds, [1000, 1200, 2048]);
        let cells = bought().cells(&thresholds, &[0.0; 5]);
        // a quarter of the negatives lies beyond each of their quantiles, within the 200 cells beside; half of the
        // positives on either side of theirs, anywhere
        let low = [50.0 * 1000.0 / 2048.0, 50.0 * 200.0 / 2048.0];
        let want = [
            25.0,
            50.0,
            25.0,
            0.0,
            low[0],
            low[1],
            50.0 - low[0] - low[1],
            50.0,
        ];
        assert_eq!(cells.len(), want.len());
        for (got, want) in cells.iter().zip(want) {
            assert!((got - want).abs() < 1e-9, "{cells:?}");
        }
        // ten positives more than bought: the border stays, the total grows
        let cells = bought().cells(&thresholds, &[0.0, 0.0, 0.0, 0.0, 10.0]);
        assert!((cells.iter().skip(4).sum::<f64>() - 110.0).abs() < 1e-9);
        // boundaries of the wrong class keep everything increasing
        let odd = Bought {
            cuts: vec![(CLASS, 0.1), (CLASS + 7, 0.2), (CLASS + 9, 0.9)],
            levels: vec![0.1, 0.2, 0.9],
            ..bought()
        };
        assert_eq!(odd.thresholds(), [7, 9]);
        assert!(odd.cells(&[7, 9], &[5.0; 5]).iter().all(|c| *c >= 0.0));
    }
}
