//! Threshold tests on counts: accuracy from ε, ε from accuracy, and what to make of gaps and values.
//!
//! The calculators are the thesis' Theorems 3 and 8 for the noise that is used here. With one-sided noise the two
//! kinds of mistake have margins of their own, and both are smaller than the published ones.

use std::ops::Range as Span;

use reticent_accounting::{AccountingError, Event, Rational, rational_from_f64};
use reticent_laws::Law;
use reticent_mechanisms::fold::{Axis, Fold};
use reticent_mechanisms::primitives::{Change, Crossing, Sides, Test, ThresholdTests};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use reticent_noise::Lattice;
use serde_json::{Value, json};

use crate::common::{Facts, Prepared, StatisticsError, number, positive, real, whole};
use crate::simple::{AxisSpec, cut};

/// With probability at least 1 − β, in all answers together: a negative test's difference is below `missed`, a
/// positive one's is at least −`false_alarm`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// By how much a difference can reach its threshold and still be answered no.
    pub missed: f64,
    /// By how much a difference can fall short and still be answered yes.
    pub false_alarm: f64,
}

impl Accuracy {
    /// α of the thesis' definition: the larger of the two.
    pub fn alpha(&self) -> f64 {
        self.missed.max(self.false_alarm)
    }
}

/// The accuracy of up to `most` tests.
///
/// One-sided: a no means difference < ρ − v ≤ ρ, a yes means difference ≥ ρ − v ≥ −v. P(ρ ≥ a) ≤ e^{−a/b_ρ} and
/// P(max v ≥ a) ≤ K e^{−a/b_v}; each gets β/2. Two-sided: both margins are the sum of the bounds on |ρ| and on max |v|, where
/// P(|z| ≥ a) = 2rᵃ/(1 + r).
///
/// ```
/// use reticent_mechanisms::{Context, primitives::{Change, Sides, ThresholdTests}};
/// use reticent_statistics::sparse_vector::{accuracy, epsilon_for};
/// let context = Context::records(reticent_accounting::Relation::AddRemove);
/// let step = ThresholdTests {
///     name: "alarms".to_owned(),
///     epsilon: 1u8.into(),
///     answers: 1,
///     most: 100,
///     change: Change::COUNT,
///     nested: false,
///     sides: Sides::One,
///     gaps: false,
///     values: None,
///     custom: None,
/// };
/// let at_one = accuracy(&step, &context, 0.05)?;
/// // Ten times the ε, a tenth of the margin (up to whole records).
/// let ten = ThresholdTests { epsilon: 10u8.into(), ..step.clone() };
/// assert!(accuracy(&ten, &context, 0.05)?.missed < at_one.missed / 5.0);
/// assert!(epsilon_for(&step, &context, at_one.missed.max(at_one.false_alarm), 0.05)? <= 1.02f64.try_into()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`ThresholdTests::lattices`].
pub fn accuracy(
    step: &ThresholdTests,
    context: &Context,
    beta: f64,
) -> Result<Accuracy, DeskError> {
    let (threshold, query) = step.lattices(context)?;
    let k = f64::from(step.most.max(1));
    let bound = |law: &Lattice, draws: f64| {
        let b = law.scale().to_f64();
        let sides = match law {
            Lattice::Laplace(_) => 2.0 / (1.0 + (-1.0 / b).exp()),
            _ => 1.0,
        };
        (b * (2.0 * draws * sides / beta).ln()).max(0.0)
    };
    let (rho, v) = (bound(&threshold, 1.0), bound(&query, k));
    Ok(match step.sides {
        Sides::One => Accuracy {
            missed: rho,
            false_alarm: v,
        },
        Sides::Both => Accuracy {
            missed: rho + v,
            false_alarm: rho + v,
        },
    })
}

/// An ε, at most 1 % more than needed, with which the tests are (α, β)-accurate.
///
/// # Errors
/// As [`ThresholdTests::lattices`], or when no ε between 1e-12 and 1e12 will do.
pub fn epsilon_for(
    step: &ThresholdTests,
    context: &Context,
    alpha: f64,
    beta: f64,
) -> Result<Rational, DeskError> {
    let with = |epsilon: f64| -> Result<(Rational, f64), DeskError> {
        let epsilon = rational_from_f64(epsilon)?;
        let step = ThresholdTests {
            epsilon: epsilon.clone(),
            ..step.clone()
        };
        Ok((epsilon, accuracy(&step, context, beta)?.alpha()))
    };
    // margins are nearly in proportion to 1/ε
    let mut epsilon = with(1.0)?.1 / alpha / 1.01;
    for _ in 0..1000 {
        if !(1e-12..1e12).contains(&epsilon) {
            break;
        }
        let (exact, reached) = with(epsilon)?;
        if reached <= alpha {
            return Ok(exact);
        }
        epsilon *= 1.01;
    }
    Err(DeskError::Misuse(format!(
        "no epsilon makes these tests accurate to {alpha} at {beta}"
    )))
}

/// A difference estimated from its paid value and its free gap, weighted by their inverse variances, and the standard
/// deviation. Without a value the gap alone; `None` with neither.
///
/// The gap has noise v − ρ. That the test was positive makes a gap a little too large where the difference is near its threshold.
///
/// # Errors
/// As [`ThresholdTests::lattices`].
pub fn combine(
    step: &ThresholdTests,
    context: &Context,
    crossing: &Crossing,
) -> Result<Option<(f64, f64)>, DeskError> {
    let (threshold, query) = step.lattices(context)?;
    let variance = |law: &Lattice| law.std_dev() * law.std_dev();
    let mean = |law: &Lattice| match law {
        Lattice::Geometric(s) => 1.0 / (1.0 / s.to_f64()).exp_m1(),
        _ => 0.0,
    };
    let from_gap = crossing.gap.map(|g| {
        let estimate = real(g) + mean(&threshold) - mean(&query);
        (estimate, variance(&threshold) + variance(&query))
    });
    let law = step.value_lattice(context)?;
    let from_value = crossing
        .value
        .zip(law)
        .map(|(v, law)| (real(v), variance(&law)));
    Ok(match (from_value, from_gap) {
        (Some((a, s)), Some((b, t))) if s + t > 0.0 => {
            Some(((a * t + b * s) / (s + t), (s * t / (s + t)).sqrt()))
        }
        (one, other) => one.or(other).map(|(x, v)| (x, v.sqrt())),
    })
}

/// AboveThreshold that stops after c positive answers: counts against public thresholds, one-sided geometric noise.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../mechanisms/doc/desk.rs"));
/// # fn main() {
/// use reticent_statistics::sparse_vector::SparseVector;
/// let step = SparseVector {
///     name: "first above 50".to_owned(),
///     epsilon: Rational::from(40u8),
///     answers: 1,
///     nested: false,
///     gaps: false,
/// };
/// let queries = [0..1, 1..2, 2..3, 3..4].map(Into::into);
/// let found = buy(&[3, 8, 90, 95], &[4], step.event(&context()), |desk, ages| {
///     step.buy(desk, ages, &queries, &[50; 4])
/// });
/// assert_eq!((found.len(), found[0].index), (1, 2));
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit: one [`ThresholdTests`] with [`Change::COUNT`].
/// # Checked by
/// `neighbours::sparse_vector_enumerated`, `golden::sparse_vector`, `canaries::sparse_vector`
/// # References
/// Lyu, Su, Li 2017; thesis Algorithm 8 with its counter repaired.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseVector {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the step for the context's relation.
    pub epsilon: Rational,
    /// Number of positive answers after which it stops (c ≥ 1).
    pub answers: u32,
    /// Whether the queries' cell ranges are nested (checked when used).
    pub nested: bool,
    /// Release q̃ − T̃ with each positive answer, at no further cost.
    pub gaps: bool,
}

impl SparseVector {
    /// The same step in general form, for a list of `tests`.
    pub fn general(&self, tests: usize) -> ThresholdTests {
        ThresholdTests {
            name: self.name.clone(),
            epsilon: self.epsilon.clone(),
            answers: self.answers,
            most: u32::try_from(tests).unwrap_or(u32::MAX),
            change: Change::COUNT,
            nested: self.nested,
            sides: Sides::One,
            gaps: self.gaps,
            values: None,
            custom: None,
        }
    }

    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        self.general(0).event(context)
    }

    /// (threshold noise, query noise).
    ///
    /// # Errors
    /// As [`ThresholdTests::lattices`].
    pub fn lattices(&self, context: &Context) -> Result<(Lattice, Lattice), DeskError> {
        self.general(0).lattices(context)
    }

    /// Buys the first `answers` queries whose counts reach their public thresholds. A query is the count
    /// of a range of cells of the grid's first axis, other axes pooled, or of one item.
    ///
    /// # Errors
    /// As [`Desk::threshold_tests`], or when there is not one threshold per query.
    pub fn buy(
        &self,
        desk: &mut Desk<'_>,
        fold: FoldId,
        queries: &[Span<usize>],
        thresholds: &[i128],
    ) -> Result<Vec<Crossing>, DeskError> {
        if queries.len() != thresholds.len() {
            return Err(DeskError::Misuse(
                "a sparse vector needs a threshold per query".to_owned(),
            ));
        }
        let tests: Vec<Test> = queries
            .iter()
            .zip(thresholds)
            .map(|(q, t)| Test::count(q.clone(), *t))
            .collect();
        desk.threshold_tests(fold, &tests, &self.general(tests.len()))
    }
}

/// Which of a public list of tests on the cells of an axis are positive; stops after the step's number of answers.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// use reticent_mechanisms::primitives::{Change, Sides, Test, ThresholdTests};
/// use reticent_statistics::simple::{AxisCut, AxisSpec};
/// let people = People::new();
/// let cut = AxisCut::Even { lower: 0.0, upper: 600.0, cells: 6 };
/// let axis = AxisSpec { name: "income".to_owned(), expr: INCOME, cut };
/// let step = ThresholdTests {
///     name: "thin classes".to_owned(),
///     epsilon: epsilon(),
///     answers: 1,
///     most: 6,
///     change: Change::COUNT,
///     nested: false,
///     sides: Sides::One,
///     gaps: false,
///     values: None,
///     custom: None,
/// };
/// // which is the first class that 700 people or more are in?
/// let list = (0..6).map(|c| Test::count(c..c + 1, 700)).collect();
/// let value = people.release(&sparse_vector::tests(&people.facts(), &axis, list, step)?);
/// assert_eq!(value["positive"][0]["index"], 1, "{value}");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When the axis, the budget or the step makes no sense.
pub fn tests(
    facts: &Facts<'_>,
    axis: &AxisSpec,
    tests: Vec<Test>,
    step: ThresholdTests,
) -> Result<Prepared, StatisticsError> {
    positive(&step.epsilon)?;
    let (cells, label) = cut(axis)?;
    facts.bounds(std::slice::from_ref(&axis.expr))?;
    step.lattices(facts.context)
        .map_err(|e| StatisticsError::Parameter {
            name: "step",
            value: step.name.clone(),
            fix: e.to_string(),
        })?;
    Ok(Prepared {
        terms: vec![axis.expr.clone()],
        mechanism: Box::new(Tests {
            axis: Axis {
                term: 0,
                cut: cells,
            },
            label,
            list: tests,
            step,
        }),
    })
}

/// # Claim
/// ε-DP (plus the ε of values): one purchase; estimates and margins are post-processing.
/// # Checked by
/// `selection::{tests_are_exact_without_noise, accuracy_holds_on_public_data}`
struct Tests {
    axis: Axis,
    label: Value,
    list: Vec<Test>,
    step: ThresholdTests,
}

impl Mechanism for Tests {
    fn kind(&self) -> &'static str {
        "threshold_tests"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(self.step.event(context))
    }
    fn first_pass(&self) -> Vec<Fold> {
        vec![Fold::Grid {
            axes: vec![self.axis.clone()],
            sum: None,
        }]
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let found = desk.threshold_tests(FoldId(0), &self.list, &self.step)?;
        let margins = accuracy(&self.step, desk.context(), 0.05)?;
        let mut positive = Vec::with_capacity(found.len());
        for crossing in &found {
            let estimate = combine(&self.step, desk.context(), crossing)?;
            positive.push(json!({
                "index": crossing.index,
                "gap": crossing.gap.map(whole),
                "value": crossing.value.map(whole),
                "estimate": estimate.map(|e| number(e.0)),
                "standard_deviation": estimate.map(|e| number(e.1)),
            }));
        }
        Ok(Answer {
            value: json!({
                "axis": self.label,
                "tests": self.list.len(),
                "positive": positive,
                "missed_95": number(margins.missed),
                "false_alarm_95": number(margins.false_alarm),
            }),
            error_95: None,
            flags: Vec::new(),
        })
    }
}
