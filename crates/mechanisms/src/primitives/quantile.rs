//! Exponential-mechanism quantiles on a public grid, and recursive medians.

use std::collections::VecDeque;

use reticent_accounting::{Both, Event, Rational, Relation, share};
use reticent_noise::{Cell, LogWeights};

use super::bisection::{boundaries, prefix};
use super::counts::grid;
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId};
use crate::fold::{Cut, Fold};

/// One quantile by the exponential mechanism over the cells of an even grid.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let step = Quantile { name: "median".to_owned(), epsilon: Rational::from(40u8), level: (1, 2) };
/// // Four cells between the edges 0, …, 4; the median, 2, opens the third.
/// let cut = Cut::Atoms { lower: 0.0, upper: 4.0, cells: 4 };
/// let fold = Fold::Grid { axes: vec![Axis { term: 0, cut }], sum: None };
/// let values = [0.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0, 4.0].repeat(10);
/// let cell = buy_from(fold, vec![values], step.event(&context()), |desk, ages| desk.quantile(ages, &step));
/// assert_eq!(cell, 2);
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit. With add/remove loss e the replace-one loss is e/M.
/// # Assumptions
/// 0 < q < 1, checked by [`Quantile::check`]: with a > G the loss M would count in units above 1.
/// # Sensitivity
/// For the cell [a, b] let L = #{x ≤ a}, R = #{x ≥ b}; points strictly inside count on neither side. The
/// exponent is (e/(2M))·|(1−q)L − qR|, M = max(q, 1−q). Adding or removing a record moves the argument by
/// 1−q, −q or 0, hence by at most M; replacing one by at most 1 (left to right) or by q or 1−q.
/// # Noise
/// One choice with weights e^{−exponent}; all cells have the same length.
/// # Composition
/// Weight and normaliser each give half: add/remove 2·(e/(2M))·M = e; replace-one 2·e/(2M) = e/M. The
/// exponent change has range at most the loss, hence zCDP loss²/8.
/// # Arithmetic
/// q = a/G: losses are the integers |(G−a)L − aR|, the rate e/(2·max(a, G−a)) is rational; the choice is
/// exact. Edges are exact too: the fold counts every edge and every interior as an atom of its own.
/// # Checked by
/// `neighbours::quantile_enumerated`, `golden::em_quantile`, `canaries::quantile`
/// # References
/// `decisions.md` §2.2; Smith 2011.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantile {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the step for the context's relation.
    pub epsilon: Rational,
    /// Level q as numerator and denominator, 0 < q < 1.
    pub level: (u32, u32),
}

/// 2^depth − 1 thresholds by recursive medians on an even grid.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let step = Medians { name: "quartiles".to_owned(), epsilon: Rational::from(80u8), depth: 2 };
/// let counts = [0, 20, 0, 40, 0, 20, 0];
/// let edges = buy(&counts, &[7], step.event(&context()), |desk, scores| desk.medians(scores, &step));
/// assert_eq!(edges.len(), 3);
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit.
/// # Sensitivity
/// Candidates are the inner cell boundaries b of the current range of cells; L = #{x < b}, R = #{x ≥ b}
/// within the range, exponent (e/2)|L − R|. Every point is on one side, so |L − R| moves by at most 1
/// (add/remove) or 2 (replace-one).
/// # Noise
/// One exact choice per range, also on empty ranges. A range of a single cell has no inner boundary:
/// nothing is drawn and nothing is lost; ranges are functions of earlier outputs.
/// # Composition
/// The ranges of one level are disjoint and split by `<`/`≥` at released boundaries: an add/remove change
/// touches one choice per level, loss e; a replacement touches one choice in the replace-one way (2e) or
/// two in the add/remove way (e + e). Over `depth` levels: depth·e and 2·depth·e. So e = ε/depth under
/// add/remove and ε/(2·depth) under replace-one. zCDP: every level is a bounded-range draw.
/// # Arithmetic
/// As for [`Quantile`].
/// # Checked by
/// `neighbours::medians_enumerated`, `canaries::medians`
/// # References
/// `decisions.md` §2.2 and table; Kaplan, Schnapp, Stemmer 2022.
#[derive(Clone, Debug, PartialEq)]
pub struct Medians {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the whole step for the context's relation.
    pub epsilon: Rational,
    /// Number of levels.
    pub depth: u32,
}

impl Quantile {
    fn heavier_side(&self) -> u32 {
        let (a, g) = self.level;
        a.max(g.saturating_sub(a)).max(1)
    }

    /// Refuses a level outside (0, 1): beyond 1 the replace-one exponent would grow without limit.
    pub fn check(&self) -> Result<(), DeskError> {
        let (a, g) = self.level;
        if 0 < a && a < g {
            return Ok(());
        }
        Err(DeskError::Misuse(format!(
            "the level {a}/{g} of a quantile must lie between 0 and 1"
        )))
    }

    /// e of the exponent, per unit: the add/remove loss.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "rational arithmetic; denominators are at least 1"
    )]
    fn exponent(&self, context: &Context) -> Rational {
        match context.relation {
            Relation::AddRemove => self.epsilon.clone(),
            Relation::ReplaceOne => {
                &self.epsilon * Rational::from(self.heavier_side())
                    / Rational::from(self.level.1.max(1))
            }
        }
    }

    /// The price of the step.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "rational arithmetic; denominators are at least 1"
    )]
    pub fn event(&self, context: &Context) -> Event {
        let e = self.exponent(context);
        let replaced =
            &e * Rational::from(self.level.1.max(1)) / Rational::from(self.heavier_side());
        Event::BoundedRange {
            mechanism: format!("{}: exponential-mechanism quantile", self.name),
            loss: Both {
                add_remove: Some(e),
                replace_one: Some(replaced),
            },
        }
    }
}

impl Medians {
    /// Shares of the levels: equal, the last one takes what rounding left.
    fn levels(&self) -> Vec<Rational> {
        let mut rest = self.epsilon.clone();
        let mut levels = Vec::new();
        for left in (1..=u64::from(self.depth)).rev() {
            let (level, remaining) = share(&rest, 1, left);
            levels.push(level);
            rest = remaining;
        }
        levels
    }

    fn exponents(&self, context: &Context) -> Vec<Rational> {
        #[allow(clippy::arithmetic_side_effects, reason = "division by 1 or 2")]
        self.levels()
            .into_iter()
            .map(|e| e / Rational::from(context.touches()))
            .collect()
    }

    /// The price of the step: one bounded-range draw per level along any record's path.
    pub fn event(&self, context: &Context) -> Event {
        Event::Sequence(
            self.exponents(context)
                .iter()
                .enumerate()
                .map(|(level, e)| Event::BoundedRange {
                    mechanism: format!(
                        "{}: exponential-mechanism medians, level {}",
                        self.name,
                        level.saturating_add(1)
                    ),
                    loss: Both::doubled(e),
                })
                .collect(),
        )
    }
}

impl Desk<'_> {
    /// Buys one quantile of a one-dimensional grid of [`Cut::Atoms`]; returns the index of the cell.
    pub fn quantile(&mut self, fold: FoldId, step: &Quantile) -> Result<usize, DeskError> {
        step.check()?;
        self.charge(&step.event(self.context))?;
        let (fold, state) = self.state(fold)?;
        let cells = match &fold {
            Fold::Grid { axes, .. } => match axes.as_slice() {
                [axis] => match axis.cut {
                    Cut::Atoms { cells, .. } => cells.max(1) as usize,
                    _ => {
                        return Err(DeskError::Misuse(
                            "a quantile needs a grid of atoms".to_owned(),
                        ));
                    }
                },
                _ => return Err(DeskError::Misuse("a quantile needs one axis".to_owned())),
            },
            _ => {
                return Err(DeskError::Misuse("a quantile needs a grid".to_owned()));
            }
        };
        let (a, g) = step.level;
        let (low_weight, high_weight) = (u128::from(g.saturating_sub(a)), u128::from(a));
        // Prefix sums over the 2·cells + 1 atoms: edge, inside, edge, inside, …, edge.
        let mut prefix = Vec::with_capacity(state.0.len().saturating_add(1));
        let mut sum = 0u128;
        prefix.push(0u128);
        // counts only: a grid may carry sums after its cells
        for c in state.0.iter().take(grid(&fold)?.cells) {
            sum = sum.saturating_add(u128::try_from(*c).unwrap_or(0));
            prefix.push(sum);
        }
        let at = |i: usize| prefix.get(i).copied().unwrap_or(sum);
        let weights = (0..cells)
            .map(|k| {
                let left = at(k.saturating_mul(2).saturating_add(1));
                let right = sum.saturating_sub(at(k.saturating_mul(2).saturating_add(2)));
                let loss = low_weight
                    .saturating_mul(left)
                    .abs_diff(high_weight.saturating_mul(right));
                Cell {
                    loss,
                    multiplicity: 1,
                }
            })
            .collect();
        let heavier = Rational::from(step.heavier_side());
        #[allow(clippy::arithmetic_side_effects, reason = "the divisor is at least 2")]
        let rate =
            self.context.per_record(&step.exponent(self.context)) / (heavier * Rational::from(2u8));
        self.record_as(
            &step.name,
            "exponential mechanism, rate",
            reticent_accounting::rational_to_f64(&rate),
        );
        Ok(self.noise.choose(&LogWeights {
            rate,
            cells: weights,
        }))
    }

    /// Buys thresholds by recursive medians over the first axis of a grid (other axes pooled); returns the
    /// chosen cell boundaries, increasing and distinct, each in 1..cells.
    pub fn medians(&mut self, fold: FoldId, step: &Medians) -> Result<Vec<usize>, DeskError> {
        self.charge(&step.event(self.context))?;
        let (fold, state) = self.state(fold)?;
        let shape = grid(&fold)?;
        let records = prefix(&shape, &state);
        let mut chosen = Vec::new();
        let mut ranges = VecDeque::new();
        ranges.push_back(0..shape.first);
        for e in step.exponents(self.context) {
            let e = self.context.per_record(&e);
            for _ in 0..ranges.len() {
                let Some(range) = ranges.pop_front() else {
                    break;
                };
                let inner = range.start.saturating_add(1)..range.end;
                if inner.is_empty() {
                    continue;
                }
                let weights = boundaries(&records, &range, (1, 2), &e);
                let b = inner.start.saturating_add(self.noise.choose(&weights));
                let b = b.min(inner.end.saturating_sub(1));
                chosen.push(b);
                ranges.push_back(range.start..b);
                ranges.push_back(b..range.end);
            }
            self.record_as(
                &step.name,
                "exponential mechanism, rate per level",
                reticent_accounting::rational_to_f64(&e) / 2.0,
            );
        }
        chosen.sort_unstable();
        chosen.dedup();
        Ok(chosen)
    }
}
