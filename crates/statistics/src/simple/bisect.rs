//! Several quantiles in one release, by recursive bisection.

use reticent_accounting::{AccountingError, Event, Rational, rational_to_f64};
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::primitives::Draw;
use reticent_mechanisms::program::{Expr, Interval};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::json;

use super::order::{LEVEL_DENOMINATOR, quantile_grid};
use crate::bisect::Quantiles;
use crate::common::{Facts, Prepared, StatisticsError, number, numbers, positive, size};

/// How [`bisected_quantiles`] draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bisect {
    /// The exponential mechanism at every node.
    Exponential,
    /// Cauchy noise on the smooth sensitivity at every node: rank errors of order 1/ε², heavy tails.
    Smooth,
}

/// Quantiles of an expression on an even grid of its public bounds: the middle level splits the range, the others follow in
/// the two parts. s = ⌈log₂(levels + 1)⌉ depths share ε; errors add up along the depths.
///
/// Values are cell edges, increasing. The grid is that of [`super::quantiles`]. In ρ-zCDP smooth draws are priced by ε²/2.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// use reticent_statistics::simple::{Bisect, bisected_quantiles};
/// let people = People::new();
/// let draw = Bisect::Exponential;
/// let value = people.release(&bisected_quantiles(&people.facts(), AGE, "age", &[0.25, 0.5], 100, draw, &epsilon())?);
/// let median = value["values"][1].as_f64().unwrap();
/// assert!((median - 50.0).abs() < 5.0, "{value}");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Levels that are not increasing inside (0, 1) to six digits, more than 1000 of them, `cells` beyond 2¹⁶, an ε that leaves a
/// draw less than 2⁻⁴⁵.
/// # References
/// Kaplan, Schnapp, Stemmer 2022; Nissim, Raskhodnikova, Smith 2007.
pub fn bisected_quantiles(
    facts: &Facts<'_>,
    of: Expr,
    name: &str,
    levels: &[f64],
    cells: u32,
    draw: Bisect,
    epsilon: &Rational,
) -> Result<Prepared, StatisticsError> {
    positive(epsilon)?;
    let parameter = |name, value: String, fix: &str| StatisticsError::Parameter {
        name,
        value,
        fix: fix.to_owned(),
    };
    if !(1..=MAX_CELLS).contains(&cells) {
        return Err(parameter("cells", cells.to_string(), "give 1 to 65536"));
    }
    let mut numerators: Vec<u32> = levels.iter().map(|q| numerator(*q)).collect();
    numerators.sort_unstable();
    let inside = |a: &u32| (1..LEVEL_DENOMINATOR).contains(a);
    if levels.is_empty()
        || levels.len() > 1000
        || !numerators.iter().all(inside)
        || !numerators.is_sorted_by(|a, b| a < b)
    {
        return Err(parameter(
            "levels",
            format!("{levels:?}"),
            "give 1 to 1000 different levels strictly between 0 and 1, with at most six digits",
        ));
    }
    let bounds = facts.interval(&of)?;
    let (grid, cells) = quantile_grid(facts, &of, bounds, cells);
    let step = Quantiles {
        name: "quantiles".to_owned(),
        epsilon: epsilon.clone(),
        levels: numerators,
        denominator: LEVEL_DENOMINATOR,
        draw: match draw {
            Bisect::Exponential => Draw::Exponential,
            Bisect::Smooth => Draw::Smooth,
        },
    };
    if draw == Bisect::Smooth {
        step.calibrations(facts.context).map_err(|e| {
            parameter(
                "epsilon",
                rational_to_f64(epsilon).to_string(),
                &e.to_string(),
            )
        })?;
    }
    Ok(Prepared {
        terms: vec![of],
        mechanism: Box::new(Bisected {
            name: name.to_owned(),
            step,
            grid,
            bounds,
            cells,
        }),
    })
}

/// Largest grid: smooth sensitivities are searched over all its cells.
const MAX_CELLS: u32 = 1 << 16;

fn numerator(q: f64) -> u32 {
    crate::common::clipped(
        (q * f64::from(LEVEL_DENOMINATOR)).round(),
        0,
        LEVEL_DENOMINATOR,
    )
}

/// # Claim
/// ε-DP: one [`Quantiles`].
/// # Checked by
/// `accuracy::bisected_quantiles_keep_their_rank_error`, `contract::{inner_events_sum_to_epsilon, every_kind_answers_on_every_table}`
struct Bisected {
    name: String,
    step: Quantiles,
    grid: Interval,
    bounds: Interval,
    cells: u32,
}

impl Bisected {
    /// Rank error that all levels keep with probability .95, exponential draws: every depth adds at most the tail of one draw.
    fn rank_error(&self, context: &Context) -> Option<f64> {
        if self.step.draw == Draw::Smooth {
            return None;
        }
        let depth = f64::from(self.step.depth());
        let e = rational_to_f64(&context.per_record(&self.step.epsilon))
            / (depth * f64::from(context.touches()));
        let unions = f64::from(self.cells) * size(self.step.levels.len()) / 0.05;
        Some(depth * 2.0 * unions.ln() / e)
    }
}

impl Mechanism for Bisected {
    fn kind(&self) -> &'static str {
        "quantiles"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(self.step.event(context))
    }
    fn first_pass(&self) -> Vec<Fold> {
        vec![Fold::Grid {
            axes: vec![Axis {
                term: 0,
                cut: Cut::Even {
                    lower: self.grid.lower,
                    upper: self.grid.upper,
                    cells: self.cells,
                },
            }],
            sum: None,
        }]
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let found = self.step.buy(desk, FoldId(0))?;
        let cells = f64::from(self.cells.max(1));
        let step = (self.grid.upper - self.grid.lower) / cells;
        let edge =
            |b: f64| (self.grid.lower + b * step).clamp(self.bounds.lower, self.bounds.upper);
        // a level without a draw lies in the one cell between its neighbours
        let known = |b: Option<usize>| b.map(size);
        let values: Vec<f64> = (0..found.len())
            .map(|i| {
                let before = found.iter().take(i + 1).rev().find_map(|b| known(*b));
                let after = found.iter().skip(i).find_map(|b| known(*b));
                edge(0.5 * (before.unwrap_or(0.0) + after.unwrap_or(cells)))
            })
            .collect();
        let denominator = f64::from(self.step.denominator.max(1));
        let levels: Vec<f64> = self
            .step
            .levels
            .iter()
            .map(|a| f64::from(*a) / denominator)
            .collect();
        let error = self.rank_error(desk.context());
        Ok(Answer {
            value: json!({
                "column": self.name,
                "levels": numbers(&levels),
                "values": numbers(&values),
                "step": number(step),
                "rank_error_95": error.map_or(serde_json::Value::Null, number),
            }),
            error_95: None,
            flags: Vec::new(),
        })
    }
}
