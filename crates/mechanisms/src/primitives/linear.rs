//! Additive noise on any public linear strategy.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use reticent_accounting::{Both, Event, Rational, Relation};
use reticent_noise::{Lattice, Scale};

use super::cells::{arranged, prefix_sums};
use super::payment::{Payment, calibrated};
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId, MOST_ENTRIES, misuse};

/// A public order of a grid's cells: place `i` holds the row-major cell `order[i]`. `None` is the row-major order.
pub type Order = Option<Arc<[usize]>>;

/// The weights of one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Weights {
    /// Disjoint, increasing ranges of cells and the weight of each of their cells; other cells have weight 0.
    Ranges(Vec<(Range<usize>, i64)>),
    /// Cells `first`, `first + 1`, … have the weights `list[part]`: rows may share one list.
    Window {
        /// The first cell.
        first: usize,
        /// A list of weights.
        list: Arc<[i64]>,
        /// The part of it that this row uses.
        part: Range<usize>,
    },
}

/// One linear query.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its weights.
    pub weights: Weights,
    /// Its part of the budget, in proportion to those of the other rows; at least 1.
    pub share: u32,
}

impl Row {
    /// The count of some ranges of cells.
    pub fn count(ranges: impl IntoIterator<Item = Range<usize>>, share: u32) -> Self {
        Self {
            weights: Weights::Ranges(ranges.into_iter().map(|r| (r, 1)).collect()),
            share,
        }
    }

    /// The pieces of equal weight, in order.
    fn pieces(&self) -> Box<dyn Iterator<Item = (Range<usize>, i64)> + '_> {
        match &self.weights {
            Weights::Ranges(pieces) => Box::new(pieces.iter().cloned()),
            Weights::Window { first, list, part } => {
                let weights = list.get(part.clone()).unwrap_or_default();
                Box::new(weights.iter().enumerate().map(|(i, w)| {
                    let at = first.saturating_add(i);
                    (at..at.saturating_add(1), *w)
                }))
            }
        }
    }
}

/// Public linear queries on the cells of a grid, in a public order.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    /// The order of the cells.
    pub order: Order,
    /// Number of cells.
    pub cells: usize,
    /// The queries.
    pub rows: Vec<Row>,
}

/// What [`Desk::linear`] sells.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// One noisy value per row.
    pub values: Vec<i128>,
    /// The noise on it.
    pub noise: Vec<Lattice>,
}

/// Noisy answers to the queries of a [`Strategy`].
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// // A tree of height two: the total, and each of two cells. Every cell is in two rows of share 1.
/// let strategy = Strategy::new(2, vec![Row::count([0..2], 1), Row::count([0..1], 1), Row::count([1..2], 1)]);
/// let step = Linear { name: "tree".to_owned(), payment: Payment::Pure { epsilon: Rational::from(80u8) } };
/// let found = buy(&[30, 12], &[2], step.event(&context()), |desk, ages| desk.linear(ages, &strategy, &step));
/// assert_eq!(found.values, [42, 30, 12]);
/// # }
/// ```
///
/// # Claim
/// [`Payment::Pure`]: ε-DP; [`Payment::Concentrated`]: ρ-zCDP; [`Payment::Approximate`]: (ε, δ)-DP; each for the context's
/// relation and unit. Calibrated for replace-one, add/remove costs no more; calibrated for add/remove, replace-one
/// follows from the general conversion.
/// # Assumptions
/// The strategy is public or a function of earlier outputs. Its rows are checked when used: disjoint increasing pieces inside
/// the grid, an order that names every cell once, weights within ±2⁴⁰. Otherwise nothing is sold.
/// # Sensitivity
/// w_vc is the weight of cell c in row v and λ_v the row's share. A record is in one cell, so adding or removing it moves the answers
/// by the column (w_vc)_v. S = max_c Σ_v |w_vc| λ_v (L1) or max_c Σ_v w_vc² (squared L2), exact, from difference arrays.
/// Replacing a record moves them by (w_vc − w_vc′)_v, and rows that are constant over all cells do not move. L1:
/// Σ_v |w_vc − w_vc′| λ_v is at most twice the largest column sum of the other rows (triangle inequality) and at most
/// Σ_v (max_c w_vc − min_c w_vc) λ_v; the smaller bound is used, but never less than the add/remove S. Squared L2: at most
/// 4 times the largest column sum, 2 times if no weight is negative (inner products of columns are then ≥ 0), and at
/// most Σ_v (max − min)²; likewise. Both are attained by the trees and wavelets here. A unit of k rows is k such changes.
/// # Noise
/// Pure: row v gets discrete Laplace noise of scale S·k/(λ_v ε), so whatever the shares are, S fits the price. Concentrated: discrete
/// Gaussian of σ² = S·k²/(2ρ) on every row, shares unused. Approximate: rounded Gaussian of the analytic σ for √S·k.
/// # Composition
/// Pure: Σ_v |Δ_v|/b_v = Σ_v |Δ_v| λ_v ε/(S·k) ≤ ε. Gaussians: the rows are independent with one σ, and only ‖Δ‖₂ counts. A
/// strategy that depends on earlier outputs is covered by adaptive composition: given them it is fixed.
/// # Arithmetic
/// Integers; answers saturate at the ends of i128. |w| ≤ 2⁴⁰, shares < 2³², at most 2²⁶ pieces: sums of |w|·λ stay below
/// 2⁹⁸ and of w² below 2¹⁰⁶. Scales are rounded up.
/// # Checked by
/// `linear::every_strategy_matrix`, `linear::golden_trees`, `linear::enumerated`, `linear::canaries`,
/// `linear::bad_strategies_are_refused`, `linear::gaussian_strategies`
/// # References
/// `privacy.md` §11; `decisions.md` §2.9, §2.10, golden 13; Li, Hay, Rastogi, Miklau, McGregor 2010 (matrix mechanism).
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    /// Name of the step in receipts.
    pub name: String,
    /// How it is paid.
    pub payment: Payment,
}

/// Largest absolute weight.
const MAX_WEIGHT: i64 = 1 << 40;
/// Largest number of pieces.
const MAX_PIECES: usize = 1 << 26;

impl Strategy {
    /// Queries on cells in row-major order.
    pub fn new(cells: usize, rows: Vec<Row>) -> Self {
        Self {
            order: None,
            cells,
            rows,
        }
    }

    /// Refuses what the sensitivity lemma does not cover.
    fn check(&self) -> Result<(), DeskError> {
        if self.cells > MOST_ENTRIES {
            return Err(misuse("a strategy has at most 2^26 cells"));
        }
        let mut pieces = 0usize;
        for row in &self.rows {
            if row.share == 0 {
                return Err(misuse("a row of a strategy needs a share of at least 1"));
            }
            let mut end = 0;
            for (range, weight) in row.pieces() {
                let inside = range.start >= end && range.start <= range.end;
                if !inside || range.end > self.cells || weight.unsigned_abs() > MAX_WEIGHT as u64 {
                    return Err(misuse(
                        "the pieces of a row must be disjoint, in order, inside the grid, with weights within 2^40",
                    ));
                }
                end = range.end;
                pieces = pieces.saturating_add(1);
            }
        }
        if pieces > MAX_PIECES {
            return Err(misuse("a strategy has at most 2^26 pieces"));
        }
        Ok(())
    }

    /// Largest column sum of `cost(weight, share)` over rows that `counts` accepts.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "the sums are bounded in the proof's arithmetic section"
    )]
    fn column(&self, counts: impl Fn(&Row) -> bool, cost: impl Fn(i64, u32) -> i128) -> i128 {
        let mut steps = vec![0i128; self.cells.saturating_add(1)];
        for row in self.rows.iter().filter(|r| counts(r)) {
            for (range, weight) in row.pieces() {
                let cost = cost(weight, row.share);
                if let Some(s) = steps.get_mut(range.start) {
                    *s += cost;
                }
                if let Some(s) = steps.get_mut(range.end) {
                    *s -= cost;
                }
            }
        }
        let mut sum = 0;
        let mut most = 0;
        for step in steps {
            sum += step;
            most = most.max(sum);
        }
        most
    }

    /// Largest minus smallest weight of a row over all cells.
    #[allow(clippy::arithmetic_side_effects, reason = "weights within ±2^40")]
    fn span(&self, row: &Row) -> i64 {
        let mut covered = 0usize;
        let mut ends: Option<(i64, i64)> = None;
        for (range, w) in row.pieces().filter(|(r, _)| !r.is_empty()) {
            covered = covered.saturating_add(range.len());
            ends = Some(ends.map_or((w, w), |(low, high)| (low.min(w), high.max(w))));
        }
        let (low, high) = ends.unwrap_or((0, 0));
        if covered < self.cells {
            high.max(0) - low.min(0)
        } else {
            high - low
        }
    }

    /// S of the proof for one record: Σ|w|·λ, in units of the shares.
    #[allow(clippy::arithmetic_side_effects, reason = "as for `column`")]
    pub fn sensitivity(&self, relation: Relation) -> Result<i128, DeskError> {
        self.check()?;
        let cost = |w: i64, share: u32| i128::from(w.unsigned_abs()) * i128::from(share);
        let added = self.column(|_| true, cost);
        Ok(match relation {
            Relation::AddRemove => added,
            Relation::ReplaceOne => {
                let spans = self.rows.iter().fold(0i128, |s, r| {
                    s.saturating_add(i128::from(self.span(r)) * i128::from(r.share))
                });
                let twice = 2 * self.column(|r| self.span(r) != 0, cost);
                twice.min(spans).max(added)
            }
        })
    }

    /// S of the proof for one record: Σw².
    #[allow(clippy::arithmetic_side_effects, reason = "as for `column`")]
    pub fn squared_sensitivity(&self, relation: Relation) -> Result<i128, DeskError> {
        self.check()?;
        let cost = |w: i64, _: u32| i128::from(w) * i128::from(w);
        let added = self.column(|_| true, cost);
        Ok(match relation {
            Relation::AddRemove => added,
            Relation::ReplaceOne => {
                let signed = self.rows.iter().any(|r| r.pieces().any(|(_, w)| w < 0));
                let factor = if signed { 4 } else { 2 };
                let spans = self.rows.iter().fold(0i128, |s, r| {
                    let span = i128::from(self.span(r));
                    s.saturating_add(span * span)
                });
                let pairs = factor * self.column(|r| self.span(r) != 0, cost);
                pairs.min(spans).max(added)
            }
        })
    }

    /// The exact answers, from the cells in the strategy's order.
    pub(super) fn answers(&self, cells: &[i128]) -> Vec<i128> {
        let prefix = prefix_sums(cells.iter().copied());
        let at = |i: usize| prefix.get(i).copied().unwrap_or(0);
        self.rows
            .iter()
            .map(|row| match &row.weights {
                Weights::Ranges(pieces) => pieces.iter().fold(0i128, |sum, (range, w)| {
                    let count = at(range.end).saturating_sub(at(range.start));
                    sum.saturating_add(count.saturating_mul(i128::from(*w)))
                }),
                Weights::Window { first, list, part } => cells
                    .iter()
                    .skip(*first)
                    .zip(list.get(part.clone()).unwrap_or_default())
                    .fold(0i128, |sum, (c, w)| {
                        sum.saturating_add(c.saturating_mul(i128::from(*w)))
                    }),
            })
            .collect()
    }
}

impl Linear {
    /// The price of the step.
    #[allow(clippy::arithmetic_side_effects, reason = "rational arithmetic")]
    pub fn event(&self, context: &Context) -> Event {
        let mechanism = format!("{}: linear queries", self.name);
        // weights of both signs: a replacement can move the answers by twice an addition, which costs four times its ρ
        let twice = |rho: &Rational, context: &Context| match context.relation {
            Relation::AddRemove => Both {
                add_remove: Some(rho.clone()),
                replace_one: Some(rho * Rational::from(4u8)),
            },
            Relation::ReplaceOne => Both::same(rho),
        };
        let concentrated = matches!(self.payment, Payment::Concentrated { .. });
        let both = if concentrated { twice } else { calibrated };
        self.payment.event(mechanism, context, both)
    }

    /// The noise on every row; checks the strategy.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "rational arithmetic; shares are checked to be positive"
    )]
    pub fn lattices(
        &self,
        strategy: &Strategy,
        context: &Context,
    ) -> Result<Vec<Lattice>, DeskError> {
        let relation = context.relation;
        let records = Rational::from(context.rows_per_unit.max(1));
        let l1 = || Ok(Rational::from(strategy.sensitivity(relation)?) * &records);
        let l2 = || {
            let squared = strategy.squared_sensitivity(relation)?;
            Ok((records.clone(), Rational::from(squared)))
        };
        let (scale, law) = self.payment.noise(&self.name, l1, l2)?;
        let mut known: BTreeMap<u32, Lattice> = BTreeMap::new();
        let mut all = Vec::with_capacity(strategy.rows.len());
        for row in &strategy.rows {
            let share = match self.payment {
                Payment::Pure { .. } => row.share,
                _ => 1,
            };
            let lattice = match known.get(&share) {
                Some(lattice) => *lattice,
                None => law(Scale::at_least(&(&scale / Rational::from(share)))?),
            };
            known.insert(share, lattice);
            all.push(lattice);
        }
        Ok(all)
    }
}

impl Desk<'_> {
    /// Buys noisy answers to linear queries on the counts of a grid (sums carried beside them are not read).
    pub fn linear(
        &mut self,
        fold: FoldId,
        strategy: &Strategy,
        step: &Linear,
    ) -> Result<Measured, DeskError> {
        let noise = step.lattices(strategy, self.context)?;
        self.charge(&step.event(self.context))?;
        let (fold, state) = self.state(fold)?;
        let cells = arranged(&fold, &state, strategy.order.as_deref())?;
        if cells.len() != strategy.cells {
            return Err(misuse("the strategy is for another number of cells"));
        }
        let widest = noise
            .iter()
            .max_by(|a, b| a.scale().to_f64().total_cmp(&b.scale().to_f64()));
        if let Some(lattice) = widest {
            self.record(&step.name, lattice, 1.0);
        }
        let values = strategy
            .answers(&cells)
            .into_iter()
            .zip(&noise)
            .map(|(exact, lattice)| exact.saturating_add(self.noise.lattice(lattice)))
            .collect();
        Ok(Measured { values, noise })
    }
}
