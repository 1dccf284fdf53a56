//! The private range finder: an upper bound below which a public share of the records lies.

use reticent_accounting::{Both, Event, Rational, Relation, share};
use reticent_noise::Lattice;

use super::cells::{Layers, line};
use super::payment::scale;
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId};
use crate::fold::Cut;

/// How the ε of a [`Range`] becomes noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RangeScales {
    /// The smallest scales that ε pays for.
    #[default]
    Calibrated,
    /// Those of Private Bounds as published (Chen thesis 2018, Algorithm 10); part of ε stays unspent.
    Printed,
}

/// AboveThreshold over nested counts #{x ≤ d_k}, one-sided geometric noise.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// // Below which of 1, 10, 100 do 90 % of the records lie?
/// let step = Range {
///     name: "upper end".to_owned(),
///     epsilon: Rational::from(40u8),
///     coverage: (90, 100),
///     scales: RangeScales::Calibrated,
/// };
/// let cut = Cut::UpTo(vec![1.0, 10.0, 100.0]);
/// let fold = Fold::Grid { axes: vec![Axis { term: 0, cut }], sum: None };
/// let incomes = (0..100).map(|i| if i < 95 { 7.0 } else { 700.0 }).collect();
/// let candidate = buy_from(fold, vec![incomes], step.event(&context()), |desk, fold| desk.range(fold, &step));
/// assert_eq!(candidate, 1);
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit, even though the exact number of rows enters the threshold.
/// # Sensitivity
/// g_k = #{x ≤ d_k} − θ·n. Adding x changes g_k by d = 1[x ≤ d_k] − θ; the intervals are nested, so along
/// the candidates d is −θ first and 1−θ from some k on. Replacing x (n public) changes g_k by values of
/// one sign, at most 1.
/// # Noise
/// Threshold noise ρ ~ Geo1(b_θ) once, query noise v ~ Geo1(b_q) per candidate; stop at the first k with
/// g_k + v ≥ ρ, else the public last candidate. Add/remove: b_θ = max(θ, 1−θ)/e₁, b_q = 1/e₂;
/// replace-one: b_θ = 1/e₁, b_q = 1/e₂; e₁ = e₂ = ε/2 (per record).
/// # Composition
/// Shifts must be upward (one-sided noise). With threshold shift s ≥ max(0, max d over the unanswered) and
/// query shift max(s − d, 0) at the answer the cost is s/b_θ + max(s−d,0)/b_q. Add: the answer comes
/// before x is inside: θ/b_q; after: (1−θ)/b_θ. Remove: before: θ/b_θ; after: θ/b_θ + 1/b_q. So
/// cost = max(θ/b_θ + 1/b_q, (1−θ)/b_θ, θ/b_q). For θ ≥ ½ at the add/remove scales: e₁ + e₂ = ε. At the
/// replace-one scales the add/remove cost is at most θ·e₁ + e₂ ≤ ε (so the step is sound on row sets of
/// private size), and the replace-one cost is 1/b_θ + 1/b_q = ε. Replace-one at the add/remove scales:
/// remove and add, 2ε. The number of candidates looked at is implied by the output.
/// [`RangeScales::Printed`]: b_θ = 2/ε, b_q = 4/ε under both relations, the replace-one scales with e₁ = ε/2, e₂ = ε/4: the
/// step costs θ·ε/2 + ε/4 under add/remove, .75 ε under replace-one (n fixed), and is priced at that.
/// # Arithmetic
/// θ = a/G: everything is multiplied by G, so counts, thresholds and shifts are integers; ties are
/// covered because "≥" is used on integers. Scales are rounded up.
/// # Checked by
/// `neighbours::range_enumerated`, `golden::{range_finder, printed_range_scales}`, `canaries::range`
/// # References
/// `decisions.md` §2.4; `privacy.md` §3, §4; Durfee 2023.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the step for the context's relation.
    pub epsilon: Rational,
    /// θ as numerator and denominator; at least ½.
    pub coverage: (u32, u32),
    /// How ε becomes noise.
    pub scales: RangeScales,
}

impl Range {
    fn shares(&self) -> (Rational, Rational) {
        let (e1, e2) = share(&self.epsilon, 1, 2);
        match self.scales {
            RangeScales::Calibrated => (e1, e2),
            RangeScales::Printed => {
                let quarter = share(&e2, 1, 2).0;
                (e1, quarter)
            }
        }
    }

    /// θ, or 1 if the declared pair makes no sense (checked by [`Range::check`]).
    #[allow(clippy::arithmetic_side_effects, reason = "the divisor is at least 1")]
    fn theta(&self) -> Rational {
        Rational::from(self.coverage.0) / Rational::from(self.coverage.1.max(1))
    }

    /// Refuses θ outside [½, 1).
    pub fn check(&self) -> Result<(), DeskError> {
        let (a, g) = self.coverage;
        if a < g && u64::from(a).saturating_mul(2) >= u64::from(g) {
            return Ok(());
        }
        Err(DeskError::Misuse(format!(
            "coverage {a}/{g} must be at least 1/2 and below 1"
        )))
    }

    /// The price of the step.
    #[allow(clippy::arithmetic_side_effects, reason = "rational arithmetic")]
    pub fn event(&self, context: &Context) -> Event {
        let (e1, e2) = self.shares();
        let loss = match (self.scales, context.relation) {
            (RangeScales::Calibrated, Relation::AddRemove) => Both::doubled(&self.epsilon),
            (RangeScales::Calibrated, Relation::ReplaceOne) | (RangeScales::Printed, _) => Both {
                add_remove: Some(&e1 * self.theta() + &e2),
                replace_one: Some(e1 + e2),
            },
        };
        Event::Pure {
            mechanism: format!("{}: above threshold on nested counts", self.name),
            loss,
        }
    }

    /// (threshold noise, query noise) in units of 1/G.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "rational arithmetic; divisors are checked"
    )]
    pub fn lattices(&self, context: &Context) -> Result<(Lattice, Lattice), DeskError> {
        self.check()?;
        let (e1, e2) = self.shares();
        let unit = Rational::from(self.coverage.1.max(1));
        let threshold = match (self.scales, context.relation) {
            (RangeScales::Calibrated, Relation::AddRemove) => self.theta() * &unit,
            (RangeScales::Calibrated, Relation::ReplaceOne) | (RangeScales::Printed, _) => {
                unit.clone()
            }
        };
        let law = |moved: &Rational, e: &Rational| {
            let scale = scale(&self.name, moved, e, context)?;
            Ok::<_, DeskError>(Lattice::Geometric(scale))
        };
        Ok((law(&threshold, &e1)?, law(&unit, &e2)?))
    }
}

impl Desk<'_> {
    /// Buys the index of the first candidate edge that covers the share; a fold over one axis of
    /// [`Cut::UpTo`]. The last candidate is returned if none answers.
    pub fn range(&mut self, fold: FoldId, step: &Range) -> Result<usize, DeskError> {
        self.charge(&step.event(self.context))?;
        let (fold, state) = self.state(fold)?;
        let Some(Cut::UpTo(edges)) = line(&fold) else {
            return Err(DeskError::Misuse(
                "a range needs counts up to edges of one axis".to_owned(),
            ));
        };
        let layers = Layers::of(&fold, &state)?;
        let (threshold, query) = step.lattices(self.context)?;
        let (a, g) = (i128::from(step.coverage.0), i128::from(step.coverage.1));
        let unit = 1.0 / f64::from(step.coverage.1.max(1));
        self.record(&format!("{}: threshold", step.name), &threshold, unit);
        self.record(&format!("{}: queries", step.name), &query, unit);
        let level = layers
            .before(layers.len())
            .saturating_mul(a)
            .saturating_add(self.noise.lattice(&threshold));
        for k in 0..edges.len() {
            let count = layers.before(k.saturating_add(1));
            let need = level.saturating_sub(count.saturating_mul(g));
            if self.noise.exceeds(&query, need) {
                return Ok(k);
            }
        }
        Ok(edges.len().saturating_sub(1))
    }
}
