//! Exponential-mechanism quantiles on a public grid.

use reticent_accounting::{Both, Event, Rational, Relation};
use reticent_noise::{Cell, LogWeights};

use super::cells::{Layers, line};
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId, misuse};
use crate::fold::Cut;

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
        Err(misuse(format!(
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

impl Desk<'_> {
    /// Buys one quantile of a one-dimensional grid of [`Cut::Atoms`]; returns the index of the cell.
    pub fn quantile(&mut self, fold: FoldId, step: &Quantile) -> Result<usize, DeskError> {
        step.check()?;
        self.charge(&step.event(self.context))?;
        let (fold, state) = self.state(fold)?;
        let Some(Cut::Atoms { cells, .. }) = line(&fold) else {
            return Err(misuse("a quantile needs a grid of atoms of one axis"));
        };
        // 2·cells + 1 atoms: edge, inside, edge, inside, …, edge
        let atoms = Layers::of(&fold, &state)?;
        let all = atoms.before(atoms.len());
        let (a, g) = step.level;
        let (low_weight, high_weight) = (i128::from(g.saturating_sub(a)), i128::from(a));
        let weights = (0..(*cells).max(1) as usize)
            .map(|k| {
                let inside = k.saturating_mul(2).saturating_add(1);
                let left = atoms.before(inside);
                let right = all.saturating_sub(atoms.before(inside.saturating_add(1)));
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
}
