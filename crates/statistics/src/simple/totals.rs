//! Count, sum and mean.

use reticent_accounting::{AccountingError, Event, Rational, Size, share};
use reticent_laws::Law;
use reticent_mechanisms::fold::{CellSum, FixedPoint, Fold};
use reticent_mechanisms::primitives::{Counts, Sums};
use reticent_mechanisms::program::{Expr, Interval};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::json;

use crate::common::{
    Facts, Prepared, StatisticsError, is_whole, number, positive, real, whole, widen,
};

/// The number of rows, with discrete Laplace noise. The value may be negative: clipping would bias sums.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// let people = People::new();
/// let value = people.release(&simple::count(&people.facts(), &epsilon())?);
/// assert!((value["count"].as_i64().unwrap() - 4000).abs() < 30);
/// # Ok(())
/// # }
/// ```
pub fn count(facts: &Facts<'_>, epsilon: &Rational) -> Result<Prepared, StatisticsError> {
    let _ = facts;
    positive(epsilon)?;
    Ok(Prepared {
        terms: Vec::new(),
        mechanism: Box::new(Count {
            step: Counts {
                name: "count".to_owned(),
                epsilon: epsilon.clone(),
            },
        }),
    })
}

/// The sum of an expression. Whole-valued expressions are added exactly; others are rounded record by
/// record to a public grid of 2⁻⁴⁰ of their magnitude.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// let people = People::new();
/// let value = people.release(&simple::sum(&people.facts(), AGE, &epsilon())?);
/// assert!((value["sum"].as_f64().unwrap() - 198_000.0).abs() < 3000.0);
/// # Ok(())
/// # }
/// ```
pub fn sum(facts: &Facts<'_>, of: Expr, epsilon: &Rational) -> Result<Prepared, StatisticsError> {
    positive(epsilon)?;
    let bounds = facts.interval(&of)?;
    let fixed = grid(facts, &of, bounds);
    Ok(Prepared {
        terms: vec![of],
        mechanism: Box::new(Sum {
            step: Sums {
                name: "sum".to_owned(),
                epsilon: epsilon.clone(),
                centred: false,
            },
            fixed,
            bounds,
        }),
    })
}

/// The mean of an expression: a sum of deviations from the middle of the public bounds, and a count.
///
/// Three quarters of ε go to the sum, the rest to the count (near the best split when the mean is a
/// quarter of the half-range from the middle); with a public number of rows the sum gets all. The result
/// is defined for every table, also the empty one, and lies within the public bounds.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// let people = People::new();
/// let value = people.release(&simple::mean(&people.facts(), AGE, &epsilon())?);
/// assert!((value["mean"].as_f64().unwrap() - 49.5).abs() < 1.0);
/// # Ok(())
/// # }
/// ```
pub fn mean(facts: &Facts<'_>, of: Expr, epsilon: &Rational) -> Result<Prepared, StatisticsError> {
    positive(epsilon)?;
    let bounds = facts.interval(&of)?;
    let fixed = grid(facts, &of, bounds);
    let public = match facts.context.size {
        Size::Public(n) if facts.context.rows_per_unit <= 1 => Some(n),
        _ => None,
    };
    let (for_sum, for_count) = if public.is_some() {
        (epsilon.clone(), None)
    } else {
        let (a, b) = share(epsilon, 3, 4);
        (a, Some(b))
    };
    Ok(Prepared {
        terms: vec![of],
        mechanism: Box::new(Mean {
            sum: Sums {
                name: "sum of deviations".to_owned(),
                epsilon: for_sum,
                centred: true,
            },
            count: for_count.map(|epsilon| Counts {
                name: "count".to_owned(),
                epsilon,
            }),
            public,
            fixed,
            bounds,
        }),
    })
}

fn grid(facts: &Facts<'_>, of: &Expr, bounds: Interval) -> FixedPoint {
    // 2^51 leaves room for the clamp of the grid at 2^52.
    if is_whole(of, facts.schema) && bounds.magnitude() <= 2_251_799_813_685_248.0 {
        FixedPoint { bits: 0 }
    } else {
        FixedPoint::for_magnitude(bounds.magnitude(), 40)
    }
}

fn total(fixed: FixedPoint) -> Vec<Fold> {
    vec![Fold::Grid {
        axes: Vec::new(),
        sum: Some(CellSum {
            term: 0,
            fixed,
            limits: Vec::new(),
        }),
    }]
}

/// # Claim
/// ε-DP: one [`Counts`] purchase.
/// # Checked by
/// `golden::simple_kinds_are_exact`, `contract::inner_events_sum_to_epsilon`
struct Count {
    step: Counts,
}

impl Mechanism for Count {
    fn kind(&self) -> &'static str {
        "count"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(self.step.event(context))
    }
    fn first_pass(&self) -> Vec<Fold> {
        vec![Fold::Grid {
            axes: Vec::new(),
            sum: None,
        }]
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let noisy = desk.counts(FoldId(0), None, &self.step)?;
        let error = self.step.lattice(desk.context())?.quantile_95();
        let n = noisy.first().copied().unwrap_or(0);
        Ok(Answer {
            value: json!({"count": whole(n), "error_95": number(error)}),
            error_95: Some(error),
            flags: flags(&[(n < 0, "negative_count")]),
        })
    }
}

/// # Claim
/// ε-DP: one [`Sums`] purchase on the expression's own public bounds.
/// # Checked by
/// `golden::simple_kinds_are_exact`, `contract::inner_events_sum_to_epsilon`
struct Sum {
    step: Sums,
    fixed: FixedPoint,
    bounds: Interval,
}

impl Mechanism for Sum {
    fn kind(&self) -> &'static str {
        "sum"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(self.step.event(context))
    }
    fn first_pass(&self) -> Vec<Fold> {
        total(self.fixed)
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let (noisy, _) = desk.sums(FoldId(0), None, &self.step)?;
        let error = error_of(&self.step, self.fixed, self.bounds, desk.context())?;
        let sum = self.fixed.value(noisy.first().copied().unwrap_or(0));
        Ok(Answer {
            value: json!({
                "sum": number(sum),
                "error_95": number(error),
                "bounds": [number(self.bounds.lower), number(self.bounds.upper)],
            }),
            error_95: Some(error),
            flags: Vec::new(),
        })
    }
}

/// # Claim
/// ε-DP: centred [`Sums`] and, where the number of rows is private, [`Counts`].
/// # Composition
/// Sequential: both are paid (¾ε + ¼ε, exact); a mean is two releases.
/// # Arithmetic
/// mean = c + S/max(n, 1), clamped to the public bounds; the half-width takes both noises at .975.
/// # Checked by
/// `golden::simple_kinds_are_exact`, `contract::{inner_events_sum_to_epsilon, every_kind_answers_on_every_table}`
struct Mean {
    sum: Sums,
    count: Option<Counts>,
    public: Option<u64>,
    fixed: FixedPoint,
    bounds: Interval,
}

impl Mechanism for Mean {
    fn kind(&self) -> &'static str {
        "mean"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        let mut steps = vec![self.sum.event(context)];
        steps.extend(self.count.as_ref().map(|c| c.event(context)));
        Ok(Event::Sequence(steps))
    }
    fn first_pass(&self) -> Vec<Fold> {
        total(self.fixed)
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let (noisy, centres) = desk.sums(FoldId(0), None, &self.sum)?;
        let deviations = self.fixed.value(noisy.first().copied().unwrap_or(0));
        let centre = self
            .fixed
            .value(i128::from(centres.first().copied().unwrap_or(0)));
        let mut sum_error = error_of(&self.sum, self.fixed, self.bounds, desk.context())?;
        let mut count_error = 0.0;
        let n = match &self.count {
            Some(step) => {
                let n = desk.counts(FoldId(0), None, step)?;
                // Both noises stay within these widths together with probability .95.
                sum_error = widen(sum_error, 0.025);
                count_error = widen(step.lattice(desk.context())?.quantile_95(), 0.025);
                n.first().copied().unwrap_or(0)
            }
            None => i128::from(self.public.unwrap_or(0)),
        };
        let safe = real(n).max(1.0);
        let raw = centre + deviations / safe;
        let mean = raw.clamp(self.bounds.lower, self.bounds.upper);
        let width = self.bounds.upper - self.bounds.lower;
        let error = ((sum_error + (mean - centre).abs() * count_error)
            / (safe - count_error).max(1.0))
        .min(width);
        let sum = centre * real(n) + deviations;
        Ok(Answer {
            value: json!({
                "mean": number(mean),
                "error_95": number(error),
                "sum": number(sum),
                "count": whole(n),
            }),
            error_95: Some(error),
            flags: flags(&[
                (real(n) < 1.0, "too_few_rows"),
                (
                    raw < self.bounds.lower || raw > self.bounds.upper,
                    "clamped",
                ),
            ]),
        })
    }
}

fn error_of(
    step: &Sums,
    fixed: FixedPoint,
    bounds: Interval,
    context: &Context,
) -> Result<f64, DeskError> {
    let lattice = step.lattice(
        fixed.index(bounds.lower),
        fixed.index(bounds.upper),
        context,
    )?;
    Ok(lattice.quantile_95() * fixed.step())
}

/// The codes whose condition holds.
pub(crate) fn flags(all: &[(bool, &str)]) -> Vec<String> {
    all.iter()
        .filter(|(on, _)| *on)
        .map(|(_, code)| (*code).to_owned())
        .collect()
}
