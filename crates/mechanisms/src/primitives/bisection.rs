//! Several quantiles by recursive bisection of a grid.

use std::collections::VecDeque;
use std::ops::Range;

use reticent_accounting::hyperbolic::{self, Hyperbolic};
use reticent_accounting::{AccountingError, Both, Event, Rational, rational_to_f64};
use reticent_noise::{Cauchy, Cell, LogWeights};

use super::cells::{Layers, grid};
use super::smooth::Smoothness;
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId, misuse};

/// How one boundary is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// Exponential mechanism.
    Exponential,
    /// Cauchy noise on the smooth sensitivity.
    Smooth,
}

/// What a [`Bisection`] is called in its event and in receipts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Words {
    /// Before the number of a depth in the event.
    pub event: &'static str,
    /// The noise of a depth.
    pub noise: &'static str,
    /// Its scale there, as a multiple of κ (smooth) or of the loss per record (exponential).
    pub unit: f64,
}

/// Cell boundaries near several quantiles: the middle level splits the grid, the others follow in the two parts.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let step = Bisection {
///     name: "quartiles".to_owned(),
///     words: Words { event: "bisection, depth", noise: "exponential mechanism", unit: 1.0 },
///     losses: vec![Rational::from(100u8); 2],
///     levels: vec![1, 2, 3],
///     denominator: 4,
///     draw: Draw::Exponential,
/// };
/// let counts = [10, 30, 20, 30, 10];
/// let found = buy(&counts, &[5], step.event(), |desk, ages| desk.bisection(ages, &step));
/// // Boundary 2 stands before cell 2: 40 of the 100 records lie below it, 60 below the next, 90 below the last.
/// assert_eq!(found, [Some(2), Some(3), Some(4)]);
/// # }
/// ```
///
/// # Claim
/// Depth d, counted from 0, costs e_d = `losses[d]` under add/remove and t_d·e_d under replace-one, for the context's unit, whatever the
/// caller made of ε: t_d = 2, but t_0 = 1 with [`Draw::Smooth`]. One level ½ is the private median; the levels k/2^s are the
/// 2^s − 1 recursive medians.
/// # Assumptions
/// Levels increase strictly inside (0, 1) and no loss is negative, checked by [`Bisection::check`]. Depths without a loss are not drawn.
/// # Sensitivity
/// At a node with range of cells c..d and levels a₋ < a < a₊ (the ends are the levels of the boundaries that made the range) the
/// level within the range is q = (a − a₋)/(a₊ − a₋), public. *Exponential*: candidates are the inner boundaries b, L = #{x < b},
/// R = #{x ≥ b} within the range, exponent (e/(2M))·|(1−q)L − qR|, M = max(q, 1−q): moves by at most M when a record is added or
/// removed, by at most 1 when one is replaced. *Smooth*: the cell of rank ⌈q·n⌉ and `smooth::Smoothness` of it, both relations.
/// # Noise
/// *Exponential*: one exact choice. *Smooth*: cell + ½ + κ(e, β)·S·Cauchy rounded to a boundary; outside the range, the middle of
/// the range. Always drawn, also on empty ranges; a range of one cell has no inner boundary, nothing is drawn and nothing lost.
/// # Composition
/// The ranges of one depth are disjoint and split by `<`/`≥` at released boundaries, so they are record-wise filters. Add/remove
/// touches one node per depth, loss e. Replace-one touches one node, in the replace-one way, until the two values part, then two
/// in the add/remove way. *Exponential*: at most 2e per depth (e/M ≤ 2e). *Smooth*: e at a shared node (S is smooth under both
/// relations), 2e after; the root is always shared. With s equal depths: s·e and 2s·e, or s·e and (2s−1)·e.
/// A unit of k records pays k times the loss of e/k. zCDP: every exponential depth is a bounded-range draw.
/// # Arithmetic
/// Exact choices and exact draws; κ is rounded up, S is computed as `smooth::Smoothness` proves.
/// # Checked by
/// `smooth::bisection_enumerated`, `smooth::median_density`, `smooth::medians_enumerated`,
/// `smooth::bisection_canary`, `smooth::median_canary`, `smooth::golden_losses`, `neighbours::medians_enumerated`, `canaries::medians`,
/// `bisection::losses_are_not_negative`
/// # References
/// `privacy.md` §5; `decisions.md` §1, §2.2; Kaplan, Schnapp, Stemmer 2022 (recursion).
#[derive(Clone, Debug, PartialEq)]
pub struct Bisection {
    /// Name of the step in receipts.
    pub name: String,
    /// Its words elsewhere.
    pub words: Words,
    /// The add/remove loss of a draw at each depth, per unit.
    pub losses: Vec<Rational>,
    /// Numerators of the levels, increasing.
    pub levels: Vec<u32>,
    /// Their denominator.
    pub denominator: u32,
    /// How boundaries are drawn.
    pub draw: Draw,
}

/// A node: its range of cells and its levels.
type Node = (Range<usize>, Range<usize>);

impl Bisection {
    /// Refuses levels that do not increase strictly inside (0, 1), or none, and negative losses.
    pub fn check(&self) -> Result<(), DeskError> {
        let inside = self.levels.iter().all(|a| 0 < *a && *a < self.denominator);
        let increasing = self.levels.iter().is_sorted_by(|a, b| a < b);
        if !inside || !increasing || self.levels.is_empty() {
            return Err(misuse(
                "the levels of quantiles must increase strictly between 0 and 1",
            ));
        }
        if self.losses.iter().any(|e| *e < Rational::ZERO) {
            return Err(misuse("a loss is negative"));
        }
        Ok(())
    }

    /// The price of the step: one draw per depth along any record's path.
    #[allow(clippy::arithmetic_side_effects, reason = "rational arithmetic")]
    pub fn event(&self) -> Event {
        let leaf = |(depth, e): (usize, &Rational)| {
            let mechanism = format!(
                "{}: {} {}",
                self.name,
                self.words.event,
                depth.saturating_add(1)
            );
            let shared = self.draw == Draw::Smooth && depth == 0;
            let loss = if shared {
                Both::same(e)
            } else {
                Both::doubled(e)
            };
            match self.draw {
                Draw::Exponential => Event::BoundedRange { mechanism, loss },
                Draw::Smooth => Event::Pure { mechanism, loss },
            }
        };
        Event::Sequence(self.losses.iter().enumerate().map(leaf).collect())
    }

    /// β and κ per depth, for one record.
    pub fn calibrations(&self, context: &Context) -> Result<Vec<Hyperbolic>, AccountingError> {
        self.losses
            .iter()
            .map(|e| hyperbolic::calibrate(&context.per_record(e)))
            .collect()
    }

    /// The level of index `at` within a node, as a fraction.
    fn level(&self, node: &Range<usize>, at: usize) -> (u32, u32) {
        let get = |i: usize| self.levels.get(i).copied().unwrap_or(self.denominator);
        let low = node.start.checked_sub(1).map_or(0, get);
        (
            get(at).saturating_sub(low),
            get(node.end).saturating_sub(low),
        )
    }
}

/// The weights of the inner boundaries of a range for a level a/g: losses |(g−a)L − aR| at rate e/(2·max(a, g−a)).
#[allow(
    clippy::arithmetic_side_effects,
    reason = "rational arithmetic; the divisor is at least 2"
)]
fn boundaries(
    records: &Layers,
    range: &Range<usize>,
    level: (u32, u32),
    e: &Rational,
) -> LogWeights {
    let (a, rest) = (level.0, level.1.saturating_sub(level.0));
    let (first, last) = (records.before(range.start), records.before(range.end));
    let loss = |b: usize| {
        let left = records.before(b).saturating_sub(first);
        let right = last.saturating_sub(records.before(b));
        i128::from(rest)
            .saturating_mul(left)
            .abs_diff(i128::from(a).saturating_mul(right))
    };
    LogWeights {
        rate: e / Rational::from(2 * u64::from(a.max(rest).max(1))),
        cells: (range.start.saturating_add(1)..range.end)
            .map(|b| Cell {
                loss: loss(b),
                multiplicity: 1,
            })
            .collect(),
    }
}

impl Desk<'_> {
    /// Buys boundaries near the levels over the first axis of a grid (other axes pooled): one for each level, in 1..cells and
    /// increasing; `None` where a range had come down to one cell.
    pub fn bisection(
        &mut self,
        fold: FoldId,
        step: &Bisection,
    ) -> Result<Vec<Option<usize>>, DeskError> {
        step.check()?;
        let calibrations = match step.draw {
            Draw::Exponential => Vec::new(),
            Draw::Smooth => step.calibrations(self.context)?,
        };
        self.charge(&step.event())?;
        let (fold, state) = self.state(fold)?;
        let shape = grid(&fold)?;
        let records = Layers::of(&fold, &state)?;
        let smoothness = Smoothness::new(if step.draw == Draw::Smooth {
            shape.first
        } else {
            0
        });
        let mut chosen = vec![None; step.levels.len()];
        let mut nodes: VecDeque<Node> = VecDeque::new();
        nodes.push_back((0..shape.first, 0..step.levels.len()));
        for (depth, e) in step.losses.iter().enumerate() {
            let e = self.context.per_record(e);
            let calibration = calibrations.get(depth);
            for _ in 0..nodes.len() {
                let Some((range, levels)) = nodes.pop_front() else {
                    break;
                };
                if levels.is_empty() || range.len() < 2 {
                    continue;
                }
                let at = levels.start.midpoint(levels.end);
                let level = step.level(&levels, at);
                let b = match calibration {
                    None => {
                        let index = self.noise.choose(&boundaries(&records, &range, level, &e));
                        range.start.saturating_add(1).saturating_add(index)
                    }
                    Some(h) => self.smooth_boundary(&smoothness, &records, &range, level, h)?,
                };
                if let Some(place) = chosen.get_mut(at) {
                    *place = Some(b);
                }
                nodes.push_back((range.start..b, levels.start..at));
                nodes.push_back((b..range.end, at.saturating_add(1)..levels.end));
            }
            let scale = rational_to_f64(calibration.map_or(&e, |h| &h.kappa));
            self.record_as(&step.name, step.words.noise, scale * step.words.unit);
        }
        Ok(chosen)
    }

    fn smooth_boundary(
        &mut self,
        smoothness: &Smoothness,
        records: &Layers,
        range: &Range<usize>,
        level: (u32, u32),
        h: &Hyperbolic,
    ) -> Result<usize, DeskError> {
        let (cell, s) = smoothness.of(records, (range.start, range.end), level, &h.beta)?;
        #[allow(
            clippy::arithmetic_side_effects,
            reason = "rational arithmetic does not overflow"
        )]
        let draw = Cauchy {
            location: Rational::from(cell) + Rational::ONE / Rational::from(2_u8),
            scale: &h.kappa * s,
        };
        let inside = |b: &usize| range.start < *b && *b < range.end;
        Ok(usize::try_from(self.noise.cauchy(&draw))
            .ok()
            .filter(inside)
            .unwrap_or(range.start.midpoint(range.end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_not_negative() {
        let step = |loss: i8| Bisection {
            name: "quantiles".to_owned(),
            words: Words {
                event: "bisection, depth",
                noise: "exponential mechanism",
                unit: 1.0,
            },
            losses: vec![Rational::ONE, Rational::from(loss)],
            levels: vec![1, 2, 3],
            denominator: 4,
            draw: Draw::Exponential,
        };
        assert!(step(0).check().is_ok());
        assert!(step(-1).check().is_err());
    }
}
