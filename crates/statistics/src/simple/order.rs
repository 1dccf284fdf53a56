//! Quantiles and bounds.

use reticent_accounting::{
    AccountingError, Event, Rational, Relation, rational_to_f64, share, split,
};
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::primitives::Quantile;
use reticent_mechanisms::program::{Expr, Interval};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::json;

use crate::common::{Facts, Prepared, StatisticsError, is_whole, number, numbers, positive, size};
use crate::ends::Ends;
use crate::range::RangeScales;

/// Levels are fractions with this denominator at most.
pub(super) const LEVEL_DENOMINATOR: u32 = 1_000_000;
/// Bounds of the number of cells of a quantile grid.
const MAX_GRID: u32 = 1 << 20;

/// Quantiles of an expression by the exponential mechanism on an even grid of its public bounds; ε is
/// divided evenly among the levels. Whole-valued expressions get one cell per number where that is no more
/// cells than asked for (or 4096).
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// use reticent_statistics::simple::quantiles;
/// let people = People::new();
/// let value = people.release(&quantiles(&people.facts(), AGE, "age", &[0.25, 0.5], 100, &epsilon())?);
/// let median = value["values"][1].as_f64().unwrap();
/// assert!((median - 50.0).abs() < 5.0, "{value}");
/// # Ok(())
/// # }
/// ```
pub fn quantiles(
    facts: &Facts<'_>,
    of: Expr,
    name: &str,
    levels: &[f64],
    cells: u32,
    epsilon: &Rational,
) -> Result<Prepared, StatisticsError> {
    positive(epsilon)?;
    if levels.is_empty() || levels.len() > 1000 {
        return Err(StatisticsError::Parameter {
            name: "levels",
            value: format!("{} levels", levels.len()),
            fix: "give 1 to 1000 levels between 0 and 1".to_owned(),
        });
    }
    if cells == 0 || cells > MAX_GRID {
        return Err(StatisticsError::Parameter {
            name: "cells",
            value: cells.to_string(),
            fix: format!("give 1 to {MAX_GRID}"),
        });
    }
    let bounds = facts.interval(&of)?;
    let (grid, cells) = quantile_grid(facts, &of, bounds, cells);
    let mut sorted = levels.to_vec();
    sorted.sort_by(f64::total_cmp);
    let parts = split(epsilon, &vec![1; sorted.len()]);
    let steps = sorted
        .iter()
        .zip(parts)
        .map(|(q, epsilon)| {
            Ok(Quantile {
                name: format!("quantile {q}"),
                epsilon,
                level: level(*q)?,
            })
        })
        .collect::<Result<Vec<_>, StatisticsError>>()?;
    Ok(Prepared {
        terms: vec![of],
        mechanism: Box::new(Quantiles {
            name: name.to_owned(),
            levels: sorted,
            steps,
            grid,
            bounds,
            cells,
        }),
    })
}

/// The even grid quantiles are chosen from: one cell per number of a whole-valued expression where that is no more than
/// asked for (or 4096), else the public bounds in `cells`.
pub(super) fn quantile_grid(
    facts: &Facts<'_>,
    of: &Expr,
    bounds: Interval,
    cells: u32,
) -> (Interval, u32) {
    let span = bounds.upper - bounds.lower;
    if is_whole(of, facts.schema) && span < f64::from(cells.max(4096)) {
        let grid = Interval {
            lower: bounds.lower - 0.5,
            upper: bounds.upper + 0.5,
        };
        (grid, crate::common::clipped(span + 1.0, 1, MAX_GRID))
    } else {
        (bounds, cells)
    }
}

/// How candidates of a private range grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Search {
    /// By 1.1: the end is found to about 10 %.
    #[default]
    Fine,
    /// By 2, as in Private Bounds (Chen thesis 2018, Algorithm 10), at the corrected scales: fewer candidates, coarser ends.
    Doubling,
}

/// Which ends of a private range are sought; the other one is the public bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sides {
    /// Both, at ε/2 each.
    #[default]
    Both,
    /// The lower end, at the whole ε.
    Lower,
    /// The upper end, at the whole ε.
    Upper,
}

/// How a private range is sought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoundsConfig {
    /// How candidates grow.
    pub search: Search,
    /// Which ends are sought.
    pub sides: Sides,
    /// The noise. Printed scales cost [`printed_share`] of ε and are priced at that.
    pub scales: RangeScales,
}

/// The share of its ε that a range at the printed scales costs: θ/2 + ¼ under add/remove (.725 at .95), ¾ under replace-one.
pub fn printed_share(coverage: f64, relation: Relation) -> Rational {
    let three = Rational::from(3u8) / Rational::from(4u8);
    match relation {
        Relation::ReplaceOne => three,
        Relation::AddRemove => {
            let (a, g) = coverage_fraction(coverage);
            Rational::from(a) / Rational::from(2 * g) + Rational::from(1u8) / Rational::from(4u8)
        }
    }
}

/// An interval that holds about the share `coverage` of the values at each end, by two range finders of
/// ε/2 each. It never leaves the public bounds.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// use reticent_statistics::simple::bounds;
/// let people = People::new();
/// // the public bounds are 0 and 600, the values end at 535
/// let value = people.release(&bounds(&people.facts(), INCOME, "income", 0.95, &epsilon())?);
/// let upper = value["upper"].as_f64().unwrap();
/// assert!((450.0..=600.0).contains(&upper), "{value}");
/// # Ok(())
/// # }
/// ```
#[allow(clippy::needless_pass_by_value, reason = "as the other constructors")]
pub fn bounds(
    facts: &Facts<'_>,
    of: Expr,
    name: &str,
    coverage: f64,
    epsilon: &Rational,
) -> Result<Prepared, StatisticsError> {
    bounds_by(facts, of, name, coverage, BoundsConfig::default(), epsilon)
}

/// As [`bounds`], with the search, the sides and the noise scales of choice (`privacy.md` §4).
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// use reticent_statistics::simple::{BoundsConfig, Sides, bounds_by};
/// let people = People::new();
/// let config = BoundsConfig { sides: Sides::Upper, ..BoundsConfig::default() };
/// let value = people.release(&bounds_by(&people.facts(), INCOME, "income", 0.95, config, &epsilon())?);
/// assert_eq!(value["lower"], 0.0); // the public bound: that end was not bought
/// # Ok(())
/// # }
/// ```
#[allow(clippy::needless_pass_by_value, reason = "as the other constructors")]
pub fn bounds_by(
    facts: &Facts<'_>,
    of: Expr,
    name: &str,
    coverage: f64,
    BoundsConfig {
        search,
        sides,
        scales,
    }: BoundsConfig,
    epsilon: &Rational,
) -> Result<Prepared, StatisticsError> {
    positive(epsilon)?;
    if !(0.5..1.0).contains(&coverage) {
        return Err(StatisticsError::Parameter {
            name: "coverage",
            value: coverage.to_string(),
            fix: "give a share of at least 0.5 and below 1, such as 0.985".to_owned(),
        });
    }
    let theta = coverage_fraction(coverage);
    let mut terms = Vec::new();
    let (halves, calls) = match sides {
        Sides::Both => (share(epsilon, 1, 2), 2.0),
        _ => ((epsilon.clone(), epsilon.clone()), 1.0),
    };
    let too_few = facts
        .signal(epsilon)
        .is_some_and(|s| (1.0 - coverage) * s / calls < 4.0);
    let mut ends = Ends::new(facts, &of, name, theta, halves, &mut terms)?;
    if search == Search::Doubling {
        ends.grow_by(2.0);
    }
    ends.scaled(scales);
    Ok(Prepared {
        terms,
        mechanism: Box::new(Bounds {
            name: name.to_owned(),
            coverage: f64::from(theta.0) / f64::from(theta.1),
            ends,
            sides,
            too_few,
        }),
    })
}

/// θ rounded down to a multiple of 1/1000, within [½, 999/1000].
fn coverage_fraction(coverage: f64) -> (u32, u32) {
    (
        crate::common::clipped((coverage * 1000.0 + 1e-6).floor(), 500, 999),
        1000,
    )
}

fn level(q: f64) -> Result<(u32, u32), StatisticsError> {
    let numerator = (q * f64::from(LEVEL_DENOMINATOR)).round();
    if !(numerator >= 1.0 && numerator < f64::from(LEVEL_DENOMINATOR)) {
        return Err(StatisticsError::Parameter {
            name: "levels",
            value: q.to_string(),
            fix: "levels lie strictly between 0 and 1; for the ends use kind \"bounds\"".to_owned(),
        });
    }
    let numerator = crate::common::clipped(numerator, 1, LEVEL_DENOMINATOR - 1);
    let divisor = gcd(numerator, LEVEL_DENOMINATOR);
    Ok((numerator / divisor, LEVEL_DENOMINATOR / divisor))
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}

/// # Claim
/// ε-DP: one [`Quantile`] per level.
/// # Composition
/// Sequential, ε divided evenly, exact. Sorting the answers is post-processing.
/// # Checked by
/// `golden::simple_kinds_are_exact`, `contract::{inner_events_sum_to_epsilon, every_kind_answers_on_every_table}`
/// # References
/// `decisions.md` §2.2
struct Quantiles {
    name: String,
    levels: Vec<f64>,
    steps: Vec<Quantile>,
    grid: Interval,
    bounds: Interval,
    cells: u32,
}

impl Quantiles {
    /// Rank error that all levels keep with probability .95: a union bound over cells and levels on the
    /// exponential mechanism's tail.
    fn rank_error(&self, context: &Context) -> f64 {
        let unions = f64::from(self.cells) * size(self.steps.len()) / 0.05;
        self.steps
            .iter()
            .map(|step| {
                let q = f64::from(step.level.0) / f64::from(step.level.1.max(1));
                let heavier = q.max(1.0 - q);
                let e = rational_to_f64(&context.per_record(&step.epsilon));
                let exponent = match context.relation {
                    reticent_accounting::Relation::AddRemove => e,
                    reticent_accounting::Relation::ReplaceOne => e * heavier,
                };
                2.0 * heavier * unions.ln() / exponent
            })
            .fold(0.0, f64::max)
    }
}

impl Mechanism for Quantiles {
    fn kind(&self) -> &'static str {
        "quantiles"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(Event::Sequence(
            self.steps.iter().map(|s| s.event(context)).collect(),
        ))
    }
    fn first_pass(&self) -> Vec<Fold> {
        vec![Fold::Grid {
            axes: vec![Axis {
                term: 0,
                cut: Cut::Atoms {
                    lower: self.grid.lower,
                    upper: self.grid.upper,
                    cells: self.cells,
                },
            }],
            sum: None,
        }]
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let step = (self.grid.upper - self.grid.lower) / f64::from(self.cells.max(1));
        let mut values = Vec::with_capacity(self.steps.len());
        for purchase in &self.steps {
            let cell = desk.quantile(FoldId(0), purchase)?;
            let middle = self.grid.lower + (size(cell) + 0.5) * step;
            values.push(middle.clamp(self.bounds.lower, self.bounds.upper));
        }
        let crossed = values.windows(2).any(|w| w.first() > w.last());
        // Quantiles of one column increase with the level: sorting is post-processing.
        values.sort_by(f64::total_cmp);
        let error = self.rank_error(desk.context());
        Ok(Answer {
            value: json!({
                "column": self.name,
                "levels": numbers(&self.levels),
                "values": numbers(&values),
                "step": number(step),
                "rank_error_95": number(error),
            }),
            error_95: None,
            flags: super::totals::flags(&[(crossed, "sorted")]),
        })
    }
}

/// # Claim
/// ε-DP: two range calls of ε/2 (both see every record), or one of ε; at the printed scales each costs [`printed_share`] of that.
/// # Checked by
/// `golden::simple_kinds_are_exact`, `contract::inner_events_sum_to_epsilon`
/// # References
/// `decisions.md` §2.4
struct Bounds {
    name: String,
    coverage: f64,
    ends: Ends,
    sides: Sides,
    too_few: bool,
}

impl Mechanism for Bounds {
    fn kind(&self) -> &'static str {
        "bounds"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        let upper = self.ends.steps.0.event(context);
        let lower = self.ends.steps.1.event(context);
        Ok(match self.sides {
            Sides::Both => Event::Sequence(vec![upper, lower]),
            Sides::Lower => lower,
            Sides::Upper => upper,
        })
    }
    fn first_pass(&self) -> Vec<Fold> {
        let [upper, lower] = self.ends.folds();
        match self.sides {
            Sides::Both => vec![upper, lower],
            Sides::Lower => vec![lower],
            Sides::Upper => vec![upper],
        }
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let found = match self.sides {
            Sides::Both => self.ends.buy(desk, FoldId(0))?,
            Sides::Lower => self.ends.buy_lower(desk, FoldId(0))?,
            Sides::Upper => self.ends.buy_upper(desk, FoldId(0))?,
        };
        Ok(Answer {
            value: json!({
                "column": self.name,
                "coverage": number(self.coverage),
                "lower": number(found.lower),
                "upper": number(found.upper),
            }),
            error_95: None,
            flags: super::totals::flags(&[(self.too_few, "too_few_rows")]),
        })
    }
}
