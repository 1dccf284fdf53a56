//! Running totals over public steps of time as a release: how many records up to each step.
//!
//! ```
//! use reticent_accounting::{Rational, Relation};
//! use reticent_mechanisms::primitives::Payment;
//! use reticent_mechanisms::Context;
//! use reticent_statistics::counters::Method;
//! use reticent_statistics::running::half_widths;
//!
//! let payment = Payment::Pure { epsilon: Rational::from(1u8) };
//! let context = Context::records(Relation::AddRemove);
//! let errors = |method| half_widths(method, 365, &payment, &context, 0.05).unwrap();
//! let (tree, weighted) = (errors(Method::Tree), errors(Method::Honaker));
//! // day 255 is tiled by eight nodes, day 256 by one
//! assert!(tree[254] > 2.0 * tree[255] && weighted[254] < tree[254]);
//! ```
//!
//! # References
//! As [`crate::counters`].

use reticent_accounting::{AccountingError, Event, rational_to_f64};
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::primitives::{Linear, Payment, Strategy};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use reticent_noise::Lattice;
use serde_json::{Value, json};

use crate::common::{Facts, Prepared, StatisticsError, numbers, real};
use crate::counters::{BinaryTree, Method, SquareRoot};
use crate::simple::{AxisSpec, cut};

/// Largest number of steps of the trees.
pub const MAX_STEPS: usize = 1 << 16;
/// Largest number of steps of the square root, whose work grows with the square of it.
pub const MAX_ROOT_STEPS: usize = 1 << 13;

/// The method when none is asked for: the square root where Gaussian noise is paid and there are not too many steps,
/// Honaker's weights elsewhere.
///
/// ```
/// use reticent_mechanisms::primitives::Payment;
/// use reticent_statistics::counters::Method;
/// use reticent_statistics::running::default_method;
/// let pure = Payment::Pure { epsilon: 1u8.into() };
/// assert_eq!(default_method(365, &pure), Method::Honaker);
/// let gaussian = Payment::Concentrated { rho: 1u8.into() };
/// assert_eq!(default_method(365, &gaussian), Method::SquareRoot);
/// ```
pub fn default_method(steps: usize, payment: &Payment) -> Method {
    if matches!(payment, Payment::Pure { .. }) || steps > MAX_ROOT_STEPS {
        Method::Honaker
    } else {
        Method::SquareRoot
    }
}

fn most(method: Method) -> usize {
    match method {
        Method::Tree | Method::Honaker => MAX_STEPS,
        Method::SquareRoot => MAX_ROOT_STEPS,
    }
}

/// The noise on every answer with its scale.
#[derive(Clone, Copy)]
enum Noise {
    Laplace(f64),
    Gaussian(f64),
}

impl Noise {
    fn of(lattice: &Lattice) -> Self {
        let scale = lattice.scale().to_f64();
        if matches!(lattice, Lattice::Laplace(_)) {
            Self::Laplace(scale)
        } else {
            Self::Gaussian(scale)
        }
    }
}

/// What is measured, and how totals come of it.
enum Counter {
    Tree(BinaryTree, bool),
    Root(SquareRoot),
}

impl Counter {
    fn new(method: Method, steps: usize) -> Self {
        match method {
            Method::Tree => Self::Tree(BinaryTree::new(steps), false),
            Method::Honaker => Self::Tree(BinaryTree::new(steps), true),
            Method::SquareRoot => Self::Root(SquareRoot::new(steps)),
        }
    }

    fn strategy(&self) -> Strategy {
        match self {
            Self::Tree(tree, _) => tree.strategy(),
            Self::Root(root) => root.strategy(),
        }
    }

    fn totals(&self, answers: &[f64]) -> Vec<f64> {
        match self {
            Self::Tree(tree, false) => tree.totals(answers),
            Self::Tree(tree, true) => tree.totals_from_below(answers),
            Self::Root(root) => root.totals(answers),
        }
    }

    /// Half-widths that each total keeps with probability 1 − `tail`.
    ///
    /// Gaussian noise: exact. The plain tree: exact for continuous Laplace noise. Honaker's weights average more draws than the
    /// plain tree does, so that the law is closer to normal and the plain tree's ratio of half-width to deviation errs on the safe side.
    fn half_widths(&self, noise: Noise, tail: f64) -> Vec<f64> {
        let variances = match self {
            Self::Tree(tree, weighted) => tree.total_variances(*weighted),
            Self::Root(root) => root.total_variances(),
        };
        let scale = match noise {
            Noise::Laplace(scale) => scale,
            Noise::Gaussian(scale) => {
                let z = root(normal_beyond, tail);
                return variances.iter().map(|v| z * scale * v.sqrt()).collect();
            }
        };
        // by number of draws
        let mut ratios = vec![0.0_f64; usize::BITS as usize + 1];
        variances
            .iter()
            .enumerate()
            .map(|(i, v)| {
                let draws = (i + 1).count_ones();
                let Some(ratio) = ratios.get_mut(draws as usize) else {
                    return f64::NAN;
                };
                if *ratio == 0.0 {
                    *ratio = sum_of_laplace(draws, tail) / f64::from(draws).sqrt();
                }
                *ratio * scale * v.sqrt()
            })
            .collect()
    }
}

/// P(|N(0,1)| > z) for z ≥ 0: the series Σ z^{2k+1}/(1·3···(2k+1)) below 4, the continued fraction of Mills' ratio above.
fn normal_beyond(z: f64) -> f64 {
    let density = (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
    if z < 4.0 {
        let (mut term, mut sum) = (z, z);
        for k in 1..80 {
            term *= z * z / f64::from(2 * k + 1);
            sum += term;
        }
        return 1.0 - 2.0 * density * sum;
    }
    2.0 * density / (1..60).rev().fold(z, |below, k| z + f64::from(k) / below)
}

/// x with P(|sum of m Laplace draws of scale 1| > x) = `tail`.
///
/// The sum is a difference of two Gamma(m, 1) variables, so P = e^{−x} Σ_{k<m} (m−1+k)!/(k! (m−1)! 2^{m−1+k}) Σ_{i≤m−1−k} xⁱ/i!.
fn sum_of_laplace(m: u32, tail: f64) -> f64 {
    let beyond = |x: f64| {
        let mut sum = 0.0;
        let mut coefficient = 0.5_f64.powf(f64::from(m) - 1.0);
        for k in 0..m {
            let (mut term, mut inner) = (1.0, 1.0);
            for i in 1..m - k {
                term *= x / f64::from(i);
                inner += term;
            }
            sum += coefficient * inner;
            coefficient *= f64::from(m + k) / f64::from(k + 1) / 2.0;
        }
        sum * (-x).exp()
    };
    root(beyond, tail)
}

/// Where a decreasing tail on [0, 2¹⁰] falls to `tail`.
fn root(beyond: impl Fn(f64) -> f64, tail: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1024.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if beyond(middle) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Half-width of every total that is kept with probability 1 − `tail`, from public numbers alone.
///
/// ```
/// use reticent_mechanisms::{Context, primitives::Payment};
/// use reticent_statistics::counters::Method;
/// use reticent_statistics::running::half_widths;
/// let context = Context::records(reticent_accounting::Relation::AddRemove);
/// let payment = Payment::Pure { epsilon: 1u8.into() };
/// let tree = half_widths(Method::Tree, 64, &payment, &context, 0.05)?;
/// let honaker = half_widths(Method::Honaker, 64, &payment, &context, 0.05)?;
/// assert!(honaker[62] < tree[62]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A payment without budget, or too many steps.
pub fn half_widths(
    method: Method,
    steps: usize,
    payment: &Payment,
    context: &Context,
    tail: f64,
) -> Result<Vec<f64>, DeskError> {
    if steps > most(method) {
        return Err(DeskError::Misuse(format!(
            "at most {} steps are measured by {}",
            most(method),
            method.name()
        )));
    }
    let counter = Counter::new(method, steps);
    let noise = match (&counter, payment) {
        // as the strategy's, without its T²/2 weights
        (Counter::Root(root), Payment::Concentrated { rho }) if steps > 1 => {
            let squared = i128::try_from(root.squared_sensitivity(context.relation));
            let rho = rational_to_f64(rho);
            if rho <= 0.0 {
                return Err(DeskError::Misuse("a step has no budget".to_owned()));
            }
            let deviation = (real(squared.unwrap_or(i128::MAX)) / (2.0 * rho)).sqrt();
            Some(Noise::Gaussian(
                deviation * f64::from(context.rows_per_unit.max(1)),
            ))
        }
        _ => {
            let step = Linear {
                name: "running totals".to_owned(),
                payment: payment.clone(),
            };
            let all = step.lattices(&counter.strategy(), context)?;
            all.first().map(Noise::of)
        }
    };
    Ok(noise.map_or_else(Vec::new, |n| counter.half_widths(n, tail)))
}

/// The number of records up to each cell of an axis of time.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// use reticent_statistics::simple::{AxisCut, AxisSpec};
/// let people = People::new();
/// let cut = AxisCut::Even { lower: 0.0, upper: 100.0, cells: 10 };
/// let axis = AxisSpec { name: "age".to_owned(), expr: AGE, cut };
/// let payment = Payment::Pure { epsilon: epsilon() };
/// let value = people.release(&running::prepare(&people.facts(), &axis, None, payment)?);
/// assert!((value["totals"][9].as_f64().unwrap() - 4000.0).abs() < 100.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// An axis that does not fit the schema, too many steps, the square root without a payment for Gaussian noise.
pub fn prepare(
    facts: &Facts<'_>,
    axis: &AxisSpec,
    method: Option<Method>,
    payment: Payment,
) -> Result<Prepared, StatisticsError> {
    let (cells, label) = cut(axis)?;
    let steps = cells.cells();
    facts.bounds(std::slice::from_ref(&axis.expr))?;
    let method = method.unwrap_or_else(|| default_method(steps, &payment));
    if steps > most(method) {
        return Err(StatisticsError::Parameter {
            name: "steps",
            value: steps.to_string(),
            fix: format!("at most {} with method {}", most(method), method.name()),
        });
    }
    if method == Method::SquareRoot && matches!(payment, Payment::Pure { .. }) {
        return Err(StatisticsError::Currency {
            what: "the square root of running totals",
            fix: "it needs Gaussian noise, paid in rho or with a delta; use honaker or tree with a pure epsilon",
        });
    }
    let counter = Counter::new(method, steps);
    let strategy = counter.strategy();
    let step = Linear {
        name: "running totals".to_owned(),
        payment,
    };
    step.lattices(&strategy, facts.context)
        .map_err(|e| StatisticsError::Parameter {
            name: "budget",
            value: format!("{:?}", facts.context.currency).to_lowercase(),
            fix: e.to_string(),
        })?;
    Ok(Prepared {
        terms: vec![axis.expr.clone()],
        mechanism: Box::new(Running {
            of: axis.name.clone(),
            cut: cells,
            label,
            method,
            counter,
            strategy,
            step,
        }),
    })
}

/// # Claim
/// As [`Linear`]: one purchase of a public strategy; everything after it is post-processing.
/// # Checked by
/// `running::{totals_without_noise_are_exact, stated_errors_hold, prices_are_the_declared_ones}`, `composites::all`
struct Running {
    of: String,
    cut: Cut,
    label: Value,
    method: Method,
    counter: Counter,
    strategy: Strategy,
    step: Linear,
}

impl Mechanism for Running {
    fn kind(&self) -> &'static str {
        "running_total"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(self.step.event(context))
    }
    fn first_pass(&self) -> Vec<Fold> {
        vec![Fold::Grid {
            axes: vec![Axis {
                term: 0,
                cut: self.cut.clone(),
            }],
            sum: None,
        }]
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let measured = desk.linear(FoldId(0), &self.strategy, &self.step)?;
        let answers: Vec<f64> = measured.values.iter().map(|v| real(*v)).collect();
        let totals = self.counter.totals(&answers);
        let errors = measured
            .noise
            .first()
            .map(|l| self.counter.half_widths(Noise::of(l), 0.05))
            .unwrap_or_default();
        let largest = errors.iter().copied().fold(0.0, f64::max);
        let mut value = json!({
            "column": self.of,
            "method": self.method.name(),
            "steps": totals.len(),
            "totals": numbers(&totals),
            "errors_95": numbers(&errors),
        });
        if let (Value::Object(all), Value::Object(axis)) = (&mut value, &self.label) {
            all.extend(axis.clone());
        }
        Ok(Answer {
            value,
            error_95: largest.is_finite().then_some(largest),
            flags: Vec::new(),
        })
    }
}
