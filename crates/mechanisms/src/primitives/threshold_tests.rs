//! The sparse vector technique in general form: counts against public thresholds or against other counts.

use std::ops::Range;

use reticent_accounting::{Both, Event, Rational, Relation, share};
use reticent_noise::{Lattice, Noise, Scale};

use super::cells::Layers;
use super::payment::scale;
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId};

/// On which side of zero noise lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// Geometric, never below zero: half the variance.
    One,
    /// Discrete Laplace.
    Both,
}

impl Sides {
    pub(super) fn of(self, scale: Scale) -> Lattice {
        match self {
            Self::One => Lattice::Geometric(scale),
            Self::Both => Lattice::Laplace(scale),
        }
    }
}

/// One test: is `weight`·#cells − (its multiple of #against) at least `threshold`?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// Cells of the grid's first axis (other axes pooled), or one item.
    pub cells: Range<usize>,
    /// Multiple of their count.
    pub weight: u32,
    /// A threshold that depends on the data: a multiple of the count of other (or the same) cells.
    pub against: Option<(Range<usize>, u32)>,
    /// The public part of the threshold.
    pub threshold: i128,
}

impl Test {
    /// A count against a public threshold.
    pub fn count(cells: Range<usize>, threshold: i128) -> Self {
        Self {
            cells,
            weight: 1,
            against: None,
            threshold,
        }
    }

    /// What one more record can do to the difference, from the two groups of cells alone.
    ///
    /// It adds w if only the first group holds it, −v if only the second does, w − v if both, else 0. `single`:
    /// the groups are items; a record can have any of them.
    fn change(&self, single: bool) -> Change {
        let q = &self.cells;
        let w = i64::from(self.weight);
        let mut moves = vec![0];
        match &self.against {
            None => moves.extend((!q.is_empty()).then_some(w)),
            Some((t, v)) => {
                let v = i64::from(*v);
                let from = q.start.max(t.start);
                let both = q.end.min(t.end).saturating_sub(from);
                moves.extend((q.len() > both).then_some(w));
                moves.extend((t.len() > both).then_some(v.saturating_neg()));
                let together = both > 0 || (single && !q.is_empty() && !t.is_empty());
                moves.extend(together.then_some(w.saturating_sub(v)));
            }
        }
        let part = |x: Option<i64>| u32::try_from(x.unwrap_or(0)).unwrap_or(0);
        Change {
            down: part(moves.iter().map(|m| m.saturating_neg()).max()),
            up: part(moves.iter().copied().max()),
        }
    }

    /// The exact difference, if the test keeps to the declared change.
    pub(crate) fn difference(&self, layers: &Layers, change: Change) -> Result<i128, DeskError> {
        let own = self.change(layers.single());
        if own.down > change.down || own.up > change.up {
            return Err(DeskError::Misuse(format!(
                "a record can change this test by -{}..+{}, beyond the declared -{}..+{}",
                own.down, own.up, change.down, change.up
            )));
        }
        let against = match &self.against {
            None => 0,
            Some((t, v)) => layers.count(t)?.saturating_mul(i128::from(*v)),
        };
        Ok(layers
            .count(&self.cells)?
            .saturating_mul(i128::from(self.weight))
            .saturating_sub(against)
            .saturating_sub(self.threshold))
    }
}

/// What one more record can do to the difference of any test: lower it by up to `down`, raise it by up to `up`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Largest decrease.
    pub down: u32,
    /// Largest increase.
    pub up: u32,
}

impl Change {
    /// Counts against public thresholds.
    pub const COUNT: Self = Self { down: 0, up: 1 };
}

/// A positive answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crossing {
    /// Which test.
    pub index: usize,
    /// Noisy difference minus noisy threshold, if asked for.
    pub gap: Option<i128>,
    /// The difference with noise of its own, if paid for.
    pub value: Option<i128>,
}

/// Parts of ε, scales and words that are not the usual ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Custom {
    /// e₁ (threshold) and e₂ (queries), in place of ε.
    pub parts: (Rational, Rational),
    /// The relation whose scales are used under either relation.
    pub scales: Relation,
    /// What the event calls the step.
    pub called: String,
    /// Receipts show differences in units of one over this.
    pub unit: u32,
}

/// Which differences reach zero: stops after c positive answers or K tests, whichever comes first.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let step = ThresholdTests {
///     name: "which are above".to_owned(),
///     epsilon: Rational::from(40u8),
///     answers: 2,
///     most: 4,
///     change: Change::COUNT,
///     nested: false,
///     sides: Sides::One,
///     gaps: true,
///     values: None,
///     custom: None,
/// };
/// let tests = [0..1, 1..2, 2..3, 3..4].map(|cells| Test::count(cells, 50));
/// let found = buy(&[3, 80, 7, 95], &[4], step.event(&context()), |desk, ages| {
///     desk.threshold_tests(ages, &tests, &step)
/// });
/// assert_eq!(found.iter().map(|c| c.index).collect::<Vec<_>>(), [1, 3]);
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit, plus the ε of the values if they are asked for. With [`Custom`] parts ε is e₁ + e₂ and the
/// relation that of the scales.
/// # Assumptions
/// The tests are public functions of earlier answers; thresholds may be counts, only the difference matters.
/// # Sensitivity
/// One more record moves every difference by some d in [−`down`, `up`] (checked for every test from its two groups of
/// cells, before it is answered); one less by −d; a replacement by the difference of two such, within ±(down + up).
/// [`ThresholdTests::nested`]: counts of nested ranges against one multiple of the number of all records of the grid (or none) and
/// public thresholds. A replacement leaves that number alone and moves the differences in one direction, each by at most
/// up + down; where it moves a record into the grid or out of it, it is a record more or less.
/// # Noise
/// Threshold ρ once, scale S/e₁; query v for every test, scale c·W/e₂; positive iff difference + v ≥ ρ.
/// Add/remove: S = max(up, down), W = up + down. Replace-one: S = up + down, W = 2S; nested: S = W = up + down.
/// e₁ : e₂ = 1 : (cW/S)^{2/3}, which minimises the sum of the variances, or as [`Custom`] says. Geo1 or DLap.
/// Values: the difference + DLap(c·S/ε_v), drawn apart.
/// # Composition
/// For D → D′ with moves d_i pick s = max(0, the largest d), shift ρ by s and v at each positive answer by s − d: both
/// upward, so one-sided noise will do. Negative answers stay negative (d ≤ s), positive answers and their gaps stay as
/// they are. Cost s/b_ρ + Σ(s − d)/b_v ≤ S/b_ρ + cW/b_v = e₁ + e₂: add: s ≤ up, s − d ≤ up + down; remove:
/// s ≤ down, s − d ≤ up + down; replace: s ≤ S, s − d ≤ 2S; nested: s ≤ S, s − d ≤ S. The tests asked next are
/// functions of the answers, hence the same on both sides. Replace-one at add/remove scales: 2ε. Add/remove at replace-one
/// scales: e₁·max(up, down)/S + e₂/2, nested + e₂. Values: c answers, each moved by at most S.
/// # Arithmetic
/// Integers; "≥" throughout, ties included in the shift argument. Scales are rounded up.
/// # Checked by
/// `threshold_tests::{threshold_tests_enumerated, threshold_tests_against_counts, adaptive_tests_enumerated, threshold_tests_canary}`,
/// `neighbours::{sparse_vector_enumerated, range_enumerated}`, `golden::{sparse_vector, range_finder, printed_range_scales}`,
/// `hostile::{nested_tests_have_public_thresholds, nested_tests_may_compare_with_all_records}`
/// # References
/// `decisions.md` §2.4; `privacy.md` §3; Lyu, Su, Li 2017; thesis Algorithms 1 and 8, the latter with its counter repaired
/// and the sensitivity of the difference in place of the sum of sensitivities; Ding et al. 2022 (gaps); Durfee 2023 (nested).
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdTests {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the tests for the context's relation.
    pub epsilon: Rational,
    /// Number of positive answers after which it stops, c ≥ 1.
    pub answers: u32,
    /// Number of tests after which it stops, K.
    pub most: u32,
    /// What one more record can do to any test.
    pub change: Change,
    /// Counts of nested, growing ranges against one multiple of all records, or none (checked when used).
    pub nested: bool,
    /// The noise.
    pub sides: Sides,
    /// Release the gap with each positive answer, at no further cost.
    pub gaps: bool,
    /// ε for releasing each positive answer's difference.
    pub values: Option<Rational>,
    /// Parts, scales and words that are not the usual ones.
    pub custom: Option<Custom>,
}

/// The scales of a step.
struct Scales {
    threshold: Lattice,
    query: Lattice,
    value: Option<Lattice>,
}

impl ThresholdTests {
    /// The relation whose scales are used.
    fn relation(&self, context: &Context) -> Relation {
        self.custom.as_ref().map_or(context.relation, |c| c.scales)
    }

    /// S and W.
    fn moves(&self, context: &Context) -> (u64, u64) {
        let (down, up) = (u64::from(self.change.down), u64::from(self.change.up));
        let both = down.saturating_add(up);
        let (s, w) = match self.relation(context) {
            Relation::AddRemove => (down.max(up), both),
            Relation::ReplaceOne if self.nested => (both, both),
            Relation::ReplaceOne => (both, both.saturating_mul(2)),
        };
        (s.max(1), w.max(1))
    }

    /// e₁ (threshold) and e₂ (queries).
    fn shares(&self, context: &Context) -> (Rational, Rational) {
        if let Some(custom) = &self.custom {
            return custom.parts.clone();
        }
        let (s, w) = self.moves(context);
        let paid = u64::from(self.answers.max(1)).saturating_mul(w);
        #[allow(clippy::cast_precision_loss, reason = "decides only how ε is divided")]
        let root = libm::cbrt(paid as f64 / s as f64);
        let fraction = 4_294_967_296.0 / (1.0 + root * root);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and 2^32"
        )]
        let numerator = (fraction as u64).max(1);
        share(&self.epsilon, numerator, 1 << 32)
    }

    /// The price of the step.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "rational arithmetic with positive divisors"
    )]
    pub fn event(&self, context: &Context) -> Event {
        let (e1, e2) = self.shares(context);
        let (s, _) = self.moves(context);
        let largest = Rational::from(self.change.down.max(self.change.up)) / Rational::from(s);
        let divisor = Rational::from(if self.nested { 1u8 } else { 2u8 });
        let loss = match self.relation(context) {
            Relation::AddRemove => Both::doubled(&(e1 + e2)),
            Relation::ReplaceOne => Both {
                add_remove: Some(&e1 * &largest + &e2 / divisor),
                replace_one: Some(e1 + e2),
            },
        };
        let usual = || format!("sparse vector, {} answers", self.answers);
        let called = self
            .custom
            .as_ref()
            .map_or_else(usual, |c| c.called.clone());
        let tests = Event::Pure {
            mechanism: format!("{}: {called}", self.name),
            loss,
        };
        let Some(e) = &self.values else { return tests };
        let loss = match self.relation(context) {
            Relation::AddRemove => Both::doubled(e),
            Relation::ReplaceOne => Both {
                add_remove: Some(e * largest),
                replace_one: Some(e.clone()),
            },
        };
        let values = Event::Pure {
            mechanism: format!("{}: values of {} answers", self.name, self.answers),
            loss,
        };
        Event::Sequence(vec![tests, values])
    }

    /// The exact difference of a test that keeps to what is declared, among others nesting: it then counts all cells of the test before.
    /// With other cells to compare against the ranges say nothing about what is counted: #(0..2) − #(0..1) and #(0..2) − #(1..2)
    /// move in opposite directions.
    fn admit(
        &self,
        before: Option<&Test>,
        test: &Test,
        layers: &Layers,
    ) -> Result<i128, DeskError> {
        let all = 0..layers.len();
        let records = |r: &Range<usize>| *r == all && !layers.single();
        let fixed = test.against.as_ref().is_none_or(|(r, _)| records(r));
        let grows = before.is_none_or(|b| {
            let (now, then) = (&test.cells, &b.cells);
            now.start <= then.start && then.end <= now.end && test.against == b.against
        });
        if self.nested && !(fixed && grows) {
            return Err(DeskError::Misuse(
                "the queries are not nested as declared".to_owned(),
            ));
        }
        test.difference(layers, self.change)
    }

    /// (threshold noise, query noise).
    pub fn lattices(&self, context: &Context) -> Result<(Lattice, Lattice), DeskError> {
        let scales = self.scales(context)?;
        Ok((scales.threshold, scales.query))
    }

    /// The noise on values, if there are any.
    pub fn value_lattice(&self, context: &Context) -> Result<Option<Lattice>, DeskError> {
        Ok(self.scales(context)?.value)
    }

    #[allow(clippy::arithmetic_side_effects, reason = "rational arithmetic")]
    fn scales(&self, context: &Context) -> Result<Scales, DeskError> {
        if self.answers == 0 {
            let text = "a sparse vector needs c ≥ 1".to_owned();
            return Err(DeskError::Misuse(text));
        }
        let (s, w) = self.moves(context);
        let c = Rational::from(self.answers);
        let scale = |moved: Rational, epsilon| scale(&self.name, &moved, epsilon, context);
        let (e1, e2) = self.shares(context);
        let value = match &self.values {
            None => None,
            Some(e) => Some(Lattice::Laplace(scale(&c * Rational::from(s), e)?)),
        };
        Ok(Scales {
            threshold: self.sides.of(scale(Rational::from(s), &e1)?),
            query: self.sides.of(scale(c * Rational::from(w), &e2)?),
            value,
        })
    }
}

/// A running sparse vector: the noisy threshold is drawn once and never leaves.
pub(crate) struct Machine {
    rho: i128,
    scales: Scales,
    gaps: bool,
    answers: u32,
    tests: u32,
    asked: usize,
}

impl Machine {
    pub(crate) fn open(
        step: &ThresholdTests,
        context: &Context,
        noise: &mut dyn Noise,
    ) -> Result<Self, DeskError> {
        let scales = step.scales(context)?;
        Ok(Self {
            rho: noise.lattice(&scales.threshold),
            scales,
            gaps: step.gaps,
            answers: step.answers,
            tests: step.most,
            asked: 0,
        })
    }

    /// Whether it has stopped; a function of the answers given.
    pub(crate) fn stopped(&self) -> bool {
        self.answers == 0 || self.tests == 0
    }

    /// Number of tests answered.
    pub(crate) fn asked(&self) -> usize {
        self.asked
    }

    /// Answers one test, unless it has stopped.
    pub(crate) fn test(&mut self, difference: i128, noise: &mut dyn Noise) -> Option<Crossing> {
        if self.stopped() {
            return None;
        }
        let index = self.asked;
        self.asked = self.asked.saturating_add(1);
        self.tests = self.tests.saturating_sub(1);
        let need = self.rho.saturating_sub(difference);
        let gap = if self.gaps {
            Some(noise.lattice(&self.scales.query).saturating_sub(need)).filter(|g| *g >= 0)?
        } else if noise.exceeds(&self.scales.query, need) {
            0
        } else {
            return None;
        };
        self.answers = self.answers.saturating_sub(1);
        Some(Crossing {
            index,
            gap: self.gaps.then_some(gap),
            value: self
                .scales
                .value
                .map(|law| difference.saturating_add(noise.lattice(&law))),
        })
    }
}

impl Desk<'_> {
    /// Buys which of the tests are positive, in order, until c of them are.
    pub fn threshold_tests(
        &mut self,
        fold: FoldId,
        tests: &[Test],
        step: &ThresholdTests,
    ) -> Result<Vec<Crossing>, DeskError> {
        // a list is refused as a whole: not only if the answers happen to reach a test
        let (shape, state) = self.state(fold)?;
        let layers = Layers::of(&shape, &state)?;
        let mut before = None;
        for test in tests {
            step.admit(before, test, &layers)?;
            before = Some(test);
        }
        let mut list = tests.iter();
        self.adaptive_tests(fold, step, &mut |_| list.next().cloned())
    }

    /// Buys tests that may depend on the answers to earlier ones: `next` is given the answers so far (one per test
    /// asked), and ends the list with `None`.
    pub fn adaptive_tests(
        &mut self,
        fold: FoldId,
        step: &ThresholdTests,
        next: &mut dyn FnMut(&[Option<Crossing>]) -> Option<Test>,
    ) -> Result<Vec<Crossing>, DeskError> {
        self.charge(&step.event(self.context))?;
        let (fold, state) = self.state(fold)?;
        let layers = Layers::of(&fold, &state)?;
        let mut machine = Machine::open(step, self.context, &mut *self.noise)?;
        let Scales {
            threshold,
            query,
            value,
        } = &machine.scales;
        let unit = 1.0 / f64::from(step.custom.as_ref().map_or(1, |c| c.unit.max(1)));
        self.record(&format!("{}: threshold", step.name), threshold, unit);
        self.record(&format!("{}: queries", step.name), query, unit);
        if let Some(law) = value {
            self.record(&format!("{}: values", step.name), law, unit);
        }
        let mut answers: Vec<Option<Crossing>> = Vec::new();
        let mut before: Option<Test> = None;
        while !machine.stopped() {
            let Some(test) = next(&answers) else { break };
            let difference = step.admit(before.as_ref(), &test, &layers)?;
            answers.push(machine.test(difference, &mut *self.noise));
            before = Some(test);
        }
        Ok(answers.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The change of a test against brute force over the cell a record may be in.
    #[test]
    fn changes_are_exact_for_all_pairs_of_ranges() {
        let ranges: Vec<Range<usize>> = (0..=4).flat_map(|a| (a..=4).map(move |b| a..b)).collect();
        for q in &ranges {
            for t in &ranges {
                for (w, v) in [(1, 1), (2, 1), (1, 3)] {
                    let test = Test {
                        cells: q.clone(),
                        weight: w,
                        against: Some((t.clone(), v)),
                        threshold: 5,
                    };
                    let moves: Vec<i64> = (0..5)
                        .map(|cell| {
                            i64::from(w) * i64::from(q.contains(&cell))
                                - i64::from(v) * i64::from(t.contains(&cell))
                        })
                        .collect();
                    let change = test.change(false);
                    assert_eq!(
                        i64::from(change.up),
                        *moves.iter().max().unwrap(),
                        "{test:?}"
                    );
                    assert_eq!(
                        i64::from(change.down),
                        -moves.iter().min().unwrap(),
                        "{test:?}"
                    );
                }
            }
        }
    }
}
