//! The private range finder: an upper bound below which a public share of the records lies.

use reticent_accounting::{Event, Rational, Relation, share};
use reticent_mechanisms::primitives::{Change, Custom, Sides, Test, ThresholdTests};
use reticent_mechanisms::{Context, Desk, DeskError, FoldId};
use reticent_noise::Lattice;

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
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../mechanisms/doc/desk.rs"));
/// # fn main() {
/// use reticent_statistics::range::{Range, RangeScales};
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
/// let candidate = buy_from(fold, vec![incomes], step.event(&context()), |desk, fold| step.buy(desk, fold, 3));
/// assert_eq!(candidate, 1);
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit, even though the exact number of rows enters the threshold: one [`ThresholdTests`], nested,
/// with e₁ = e₂ = ε/2.
/// # Sensitivity
/// With θ = a/G the tests are G·#{x ≤ d_k} − a·n ≥ 0: a record more moves them by −a first and by G − a from some k on.
/// # Noise
/// In records and for θ ≥ ½: add/remove: b_θ = θ/e₁, b_q = 1/e₂; replace-one: b_θ = 1/e₁, b_q = 1/e₂ (per record).
/// # Composition
/// Add/remove at the replace-one scales costs θ·e₁ + e₂ ≤ ε, so the step is sound on row sets of private size. The number of
/// candidates looked at is implied by the output.
/// [`RangeScales::Printed`]: b_θ = 2/ε, b_q = 4/ε under both relations, the replace-one scales with e₁ = ε/2, e₂ = ε/4: the
/// step costs θ·ε/2 + ε/4 under add/remove, .75 ε under replace-one (n fixed), and is priced at that.
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
    /// Refuses θ outside [½, 1).
    ///
    /// # Errors
    /// When it is.
    pub fn check(&self) -> Result<(), DeskError> {
        let (a, g) = self.coverage;
        if a < g && u64::from(a) * 2 >= u64::from(g) {
            return Ok(());
        }
        Err(DeskError::Misuse(format!(
            "coverage {a}/{g} must be at least 1/2 and below 1"
        )))
    }

    /// The step as the desk sells it, for so many candidates.
    fn step(&self, candidates: usize, context: &Context) -> ThresholdTests {
        let (a, g) = self.coverage;
        let (e1, e2) = share(&self.epsilon, 1, 2);
        let (e2, scales) = match self.scales {
            RangeScales::Calibrated => (e2, context.relation),
            RangeScales::Printed => (share(&e2, 1, 2).0, Relation::ReplaceOne),
        };
        ThresholdTests {
            name: self.name.clone(),
            epsilon: self.epsilon.clone(),
            answers: 1,
            most: u32::try_from(candidates).unwrap_or(u32::MAX),
            change: Change {
                down: a,
                up: g.saturating_sub(a),
            },
            nested: true,
            sides: Sides::One,
            gaps: false,
            values: None,
            custom: Some(Custom {
                parts: (e1, e2),
                scales,
                called: "above threshold on nested counts".to_owned(),
                unit: g,
            }),
        }
    }

    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        self.step(0, context).event(context)
    }

    /// (threshold noise, query noise) in units of 1/G.
    ///
    /// # Errors
    /// As [`Range::check`] and [`ThresholdTests::lattices`].
    pub fn lattices(&self, context: &Context) -> Result<(Lattice, Lattice), DeskError> {
        self.check()?;
        self.step(0, context).lattices(context)
    }

    /// Buys the index of the first of so many candidate edges that covers the share, from a fold over one axis of
    /// [`Cut::UpTo`](reticent_mechanisms::fold::Cut::UpTo) those edges. The last candidate is returned if none answers.
    ///
    /// # Errors
    /// As [`Range::check`] and [`Desk::threshold_tests`].
    pub fn buy(
        &self,
        desk: &mut Desk<'_>,
        fold: FoldId,
        candidates: usize,
    ) -> Result<usize, DeskError> {
        self.check()?;
        let (a, g) = self.coverage;
        let tests: Vec<Test> = (0..candidates)
            .map(|k| Test {
                cells: 0..k + 1,
                weight: g,
                against: Some((0..candidates + 1, a)),
                threshold: 0,
            })
            .collect();
        let step = self.step(candidates, desk.context());
        let found = desk.threshold_tests(fold, &tests, &step)?;
        let last = candidates.saturating_sub(1);
        Ok(found.first().map_or(last, |crossing| crossing.index))
    }
}
