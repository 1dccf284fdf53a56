//! Residual plot of a released model: a box around most points, counts of its cells, points drawn from them.
//!
//! By default three or four range calls frame fitted values and residuals (with little budget residuals get one distance from 0 for both
//! sides); one further pass counts the cells of an even grid in
//! the box (points outside are moved to its edge). The points shown are drawn from the *released* cells with
//! a printed seed: they are an image of the noisy counts, not of rows.
//!
//! PriRP as published (Chen, Machanavajjhala, Reiter, Barrientos 2016) is [`Config::published`]: symmetric boxes by doubling, points
//! outside left out, cells perturbed by DAWA. Every histogram method of a plane can perturb the cells, in either box. [`moments`] adds
//! two tests, for curvature and for a fan.

mod frame;
pub mod moments;

use reticent_accounting::{AccountingError, Event, Rational, rational_to_f64, split};
use reticent_laws::{Law, Seeded};
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::primitives::{Counts, Linear, Payment};
use reticent_mechanisms::program::{Expr, Interval};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use reticent_noise::Noise;
use serde_json::{Value, json};

use crate::common::{
    Facts, Prepared, StatisticsError, clipped, number, numbers, positive, real, size, whole,
    with_metadata,
};
use crate::ends::Ends;
use crate::histogram::{Method, Square};
use crate::simple::flags;
use frame::{Frame, PUBLISHED_COVERAGE, Sides, Symmetric};

/// Largest number of cells on a side.
pub const MAX_SIDE: u32 = 512;
/// Largest number of points drawn.
const MAX_POINTS: usize = 2000;

/// How the box is found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Bounds {
    /// Searches over candidates half as large again each: both ends of the fitted values, and one distance for the residuals or, from
    /// n·ε = 5000 on, both their ends. Points outside move to the edge.
    #[default]
    Fine,
    /// The paper's: [−d, d] on both axes, d = μ2ⁱ; points outside are left out.
    Doubling {
        /// μ; by default a power of two 2²⁰ times below the largest possible value.
        unit: Option<f64>,
    },
}

/// How a residual plot is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// ε of the release.
    pub epsilon: Rational,
    /// Cells on a side; by default √(ñε₂/10).
    pub side: Option<u32>,
    /// Seed of the points drawn from the released cells; printed.
    pub seed: u64,
    /// How the cells are perturbed: a histogram method that takes a plane.
    pub method: Method,
    /// How the box is found.
    pub bounds: Bounds,
    /// Whether a quarter of what remains after the box buys the tests for curvature and fan.
    pub tests: bool,
    /// Public facts copied into the value (model).
    pub metadata: Value,
}

impl Config {
    /// The default rules.
    pub fn new(epsilon: Rational) -> Self {
        Self {
            epsilon,
            side: None,
            seed: 1,
            method: Method::Identity,
            bounds: Bounds::Fine,
            tests: false,
            metadata: Value::Null,
        }
    }

    /// PriRP as published, with DAWA.
    pub fn published(epsilon: Rational) -> Self {
        Self {
            method: Method::Dawa,
            bounds: Bounds::Doubling { unit: None },
            ..Self::new(epsilon)
        }
    }
}

/// Residuals (observed − fitted) against fitted values.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// let people = People::new();
/// let fitted = AGE.mul(Expr::Constant(5.0));
/// let config = residuals::Config::new(epsilon());
/// let value = people.release(&residuals::prepare(&people.facts(), &fitted, &INCOME, config)?);
/// assert!(value["box"]["y_high"].as_f64().unwrap() <= 100.0, "residuals lie between 0 and 40: {}", value["box"]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`StatisticsError::Parameter`] for sides, units and methods that are not possible, decided from public inputs.
pub fn prepare(
    facts: &Facts<'_>,
    fitted: &Expr,
    observed: &Expr,
    config: Config,
) -> Result<Prepared, StatisticsError> {
    positive(&config.epsilon)?;
    if config.side.is_some_and(|m| m == 0 || m > MAX_SIDE) {
        return Err(StatisticsError::Parameter {
            name: "side",
            value: config.side.unwrap_or(0).to_string(),
            fix: format!("give 1 to {MAX_SIDE}"),
        });
    }
    let residual = observed.clone().sub(fitted.clone());
    let mut terms = vec![fitted.clone(), residual.clone()];
    // Four parts of the budget go to the cells, or three to the cells and one to the tests.
    let shares = |mut weights: Vec<u64>, rest: u64| {
        let (cells, tests) = if config.tests { (3, 1) } else { (4, 0) };
        weights.iter_mut().for_each(|w| *w *= 4);
        weights.extend([rest * cells, rest * tests]);
        split(&config.epsilon, &weights).into_iter()
    };
    let (frame, for_cells, for_tests, coverage) = match config.bounds {
        Bounds::Fine => {
            let rules = rules(facts, &config.epsilon);
            let weight = u64::from(rules.range_percent);
            // Fitted values take two parts, residuals two or, on one call, twice one.
            let calls = if rules.one_distance {
                vec![weight, weight, 2 * weight]
            } else {
                vec![weight; 4]
            };
            let mut parts = shares(calls, (100 - weight) * 4);
            let mut part = || parts.next().unwrap_or(Rational::ZERO);
            let coverage = rules.coverage;
            let both = |of: &Expr, name: &str, parts, terms: &mut Vec<Expr>| {
                let mut ends = Ends::new(facts, of, name, coverage, parts, terms)?;
                ends.grow_by(GROWTH);
                Ok::<_, StatisticsError>(ends)
            };
            let x = both(fitted, "fitted values", (part(), part()), &mut terms)?;
            let y = if rules.one_distance {
                Sides::Same(Symmetric::fine(
                    facts,
                    &residual,
                    coverage,
                    part(),
                    &mut terms,
                )?)
            } else {
                Sides::Both(both(&residual, "residuals", (part(), part()), &mut terms)?)
            };
            (Frame::Fine { x, y }, part(), part(), coverage)
        }
        Bounds::Doubling { unit } => {
            let share = published_share(facts, &config.epsilon);
            let mut parts = shares(vec![share; 2], (10_000 - share) * 2);
            let mut part = || parts.next().unwrap_or(Rational::ZERO);
            let (for_x, for_y) = (part(), part());
            let x = Symmetric::new(facts, fitted, "fitted values", unit, for_x, &mut terms)?;
            let y = Symmetric::new(facts, &residual, "residuals", unit, for_y, &mut terms)?;
            (Frame::Doubling { x, y }, part(), part(), PUBLISHED_COVERAGE)
        }
    };
    let side = config.side.unwrap_or_else(|| {
        facts.rows.map_or(16, |n| {
            let signal = match config.bounds {
                Bounds::Fine => n * facts.per_record(&for_cells),
                // N₀ = θ²n records lie in both bounds
                Bounds::Doubling { .. } => 0.95 * 0.95 * n * facts.per_record(&config.epsilon),
            };
            clipped((signal / 10.0).max(1.0).sqrt().floor(), 1, MAX_SIDE)
        })
    });
    let ring = 2 * usize::from(frame.leaves_out());
    let square = match config.method {
        Method::Identity => None,
        method => Some(Square::new(
            facts,
            side as usize + ring,
            method,
            for_cells.clone(),
        )?),
    };
    Ok(Prepared {
        terms,
        mechanism: Box::new(Residuals {
            frame,
            side,
            cells: Counts {
                name: "cells of the plot".to_owned(),
                epsilon: for_cells,
            },
            square,
            tests: config.tests.then(|| Linear {
                name: "tests for curvature and fan".to_owned(),
                payment: Payment::Pure { epsilon: for_tests },
            }),
            method: config.method,
            seed: config.seed,
            unknown_size: facts.rows.is_none(),
            coverage,
            metadata: config.metadata,
        }),
    })
}

/// ε₁/ε of the paper in ten-thousandths: min(.3, 470/(ñε)).
fn published_share(facts: &Facts<'_>, epsilon: &Rational) -> u64 {
    let signal = facts.rows.unwrap_or(0.0) * facts.per_record(epsilon);
    u64::from(clipped((4_700_000.0 / signal.max(1e-9)).floor(), 1, 3000))
}

/// Ratio of neighbouring candidates for an end of the box. Every candidate is a look that may stop too early; at ratio 1.1 there are about a hundred
/// before the right end, and with n·ε = 500 many boxes ended inside the points.
const GROWTH: f64 = 1.5;

/// From this n·ε on residuals get two ends. Below it one search with twice the budget loses less to noise than a skew of the residuals
/// wastes of a box as high as deep (measured at 500 to 20,000 with normal and log-normal errors).
const TWO_ENDS: f64 = 5000.0;

pub(crate) struct Rules {
    /// Share of the range calls, in per cent.
    pub(crate) range_percent: u32,
    /// θ of each call.
    pub(crate) coverage: (u32, u32),
    /// Whether residuals are framed by one distance from 0.
    pub(crate) one_distance: bool,
}

/// `decisions.md` §5.2 for the shares and θ; "ñε" is not halved here.
pub(crate) fn rules(facts: &Facts<'_>, epsilon: &Rational) -> Rules {
    let Some(rows) = facts.rows else {
        return Rules {
            range_percent: 30,
            coverage: (190, 200),
            one_distance: true,
        };
    };
    let signal = rows * facts.per_record(epsilon);
    let range_percent = if signal < 2000.0 { 30 } else { 20 };
    let per_call = signal * f64::from(range_percent) / 400.0;
    let theta = (1.0 - 4.0 / per_call.max(1e-9)).clamp(0.85, 0.985);
    Rules {
        range_percent,
        one_distance: signal < TWO_ENDS,
        coverage: (clipped((theta * 200.0 + 1e-9).floor(), 170, 197), 200),
    }
}

/// # Claim
/// ε-DP for the context's relation and unit: range calls, the cells' histogram and, if wanted, one [`Linear`] step for the tests are bought.
/// # Assumptions
/// Those of the primitives; fitted values come from a released model or from public coefficients.
/// # Composition
/// Sequential: each range call its share of ε (all see every record), then the cells, then the tests; the total is
/// exact (`accounting::split`). The lower end of the fitted values is
/// sought from their released upper end (second pass); the grid of the last pass depends on the released box only, the
/// tests' weights on the released box and cells.
/// # Arithmetic
/// Points outside the box count in its edge cells, or in a ring of cells that is thrown away. Points shown are a seeded function
/// of the noisy counts.
/// # Checked by
/// `contract::inner_events_sum_to_epsilon`, `contract::every_kind_answers_on_every_table`,
/// `seeded::residual_points_come_from_released_cells`, `composites::all`
/// # References
/// `decisions.md` §2.4, §5.2; `beyond.md` §4, §5; `privacy.md` §4
struct Residuals {
    frame: Frame,
    side: u32,
    cells: Counts,
    square: Option<Square>,
    tests: Option<Linear>,
    method: Method,
    seed: u64,
    unknown_size: bool,
    coverage: (u32, u32),
    metadata: Value,
}

impl Residuals {
    /// Noisy counts of the cells of the plot, without the ring.
    fn counts(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<Vec<i128>, DeskError> {
        let all = match &self.square {
            None => desk.counts(fold, None, &self.cells)?,
            Some(square) => square.buy(desk, fold)?.into_iter().map(nearest).collect(),
        };
        if !self.frame.leaves_out() {
            return Ok(all);
        }
        let side = self.side as usize;
        Ok(all
            .chunks(side + 2)
            .skip(1)
            .take(side)
            .flat_map(|column| column.iter().skip(1).take(side).copied())
            .collect())
    }
}

/// The nearest whole number.
#[allow(clippy::cast_possible_truncation, reason = "clamped before the cast")]
fn nearest(x: f64) -> i128 {
    if x.is_nan() {
        0
    } else {
        x.round().clamp(-1e18, 1e18) as i128
    }
}

impl Mechanism for Residuals {
    fn kind(&self) -> &'static str {
        "residuals"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        let mut steps = self.frame.events(context);
        match &self.square {
            None => steps.push(self.cells.event(context)),
            Some(square) => steps.extend(square.events(context)),
        }
        steps.extend(self.tests.as_ref().map(|t| t.event(context)));
        Ok(Event::Sequence(steps))
    }
    fn first_pass(&self) -> Vec<Fold> {
        self.frame.folds()
    }
    fn passes(&self) -> u32 {
        self.frame.passes()
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let (x, y) = self.frame.buy(desk)?;
        let ring = u32::from(self.frame.leaves_out());
        let axis = |term: usize, ends: Interval| {
            let cell = f64::from(ring) * (ends.upper - ends.lower) / f64::from(self.side.max(1));
            Axis {
                term,
                cut: Cut::Even {
                    lower: ends.lower - cell,
                    upper: ends.upper + cell,
                    cells: self.side + 2 * ring,
                },
            }
        };
        let mut folds = vec![Fold::Grid {
            axes: vec![axis(0, x), axis(1, y)],
            sum: None,
        }];
        if self.tests.is_some() {
            folds.push(moments::fold(x, y));
        }
        let folds = desk.scan(folds)?;
        let fold = |i: usize| folds.get(i).copied().unwrap_or(FoldId(0));
        let noisy = self.counts(desk, fold(0))?;
        let lattice = self.cells.lattice(desk.context())?;
        let raw: Vec<f64> = noisy.iter().map(|n| real(*n)).collect();
        let tests = match &self.tests {
            None => None,
            Some(step) => {
                let seen = moments::Seen {
                    y,
                    side: self.side as usize,
                    counts: &raw,
                    noise: lattice.std_dev(),
                };
                Some(moments::buy(desk, fold(1), step, &seen)?)
            }
        };
        // A method with several steps has no single error of a cell.
        let error = self.square.is_none().then(|| lattice.quantile_95());
        let per_record = 1.0 / rational_to_f64(&desk.context().per_record(&self.cells.epsilon));
        let threshold = if self.square.is_none() && ring == 0 {
            per_record
        } else {
            0.0
        };
        let plot = Plot {
            x,
            y,
            side: self.side as usize,
            kept: raw
                .iter()
                .map(|n| if *n < threshold { 0.0 } else { n.max(0.0) })
                .collect(),
        };
        let points = plot.points(self.seed);
        let mut value = json!({
            "x": "fitted",
            "y": "residual",
            "box": {
                "x_low": number(x.lower), "x_high": number(x.upper),
                "y_low": number(y.lower), "y_high": number(y.upper),
            },
            "coverage": number(f64::from(self.coverage.0) / f64::from(self.coverage.1)),
            "side": self.side,
            "counts": noisy.iter().map(|n| whole(*n)).collect::<Vec<_>>(),
            "threshold": number(threshold),
            "points": points.iter().map(|(a, b)| numbers(&[*a, *b])).collect::<Vec<_>>(),
            "seed": self.seed,
            "columns": plot.columns(per_record),
            "error_95": error.map_or(Value::Null, number),
        });
        if let Value::Object(map) = &mut value {
            if self.square.is_some() || ring > 0 {
                map.insert("method".to_owned(), json!(self.method.name()));
            }
            if let Some(tests) = tests {
                map.insert("tests".to_owned(), tests);
            }
        }
        Ok(Answer {
            value: with_metadata(value, &self.metadata),
            error_95: error,
            flags: flags(&[
                (self.unknown_size, "size_unknown"),
                (points.is_empty(), "no_cells_above_noise"),
                (x.upper <= x.lower || y.upper <= y.lower, "flat_box"),
            ]),
        })
    }
}

/// The released picture.
struct Plot {
    x: Interval,
    y: Interval,
    side: usize,
    kept: Vec<f64>,
}

impl Plot {
    /// Points uniform in cells, cells drawn in proportion to the kept counts.
    fn points(&self, seed: u64) -> Vec<(f64, f64)> {
        let mut sum = 0.0;
        let cumulative: Vec<f64> = self
            .kept
            .iter()
            .map(|k| {
                sum += k;
                sum
            })
            .collect();
        if !(sum >= 1.0 && sum.is_finite()) {
            return Vec::new();
        }
        let mut noise = Seeded::new(seed);
        let wanted = clipped(sum.round(), 1, u32::MAX) as usize;
        let (width, height) = self.cell();
        (0..wanted.min(MAX_POINTS))
            .map(|_| {
                let target = uniform(&mut noise) * sum;
                let cell = cumulative
                    .partition_point(|c| *c <= target)
                    .min(self.kept.len().saturating_sub(1));
                let (column, row) = (cell / self.side.max(1), cell % self.side.max(1));
                (
                    self.x.lower + (size(column) + uniform(&mut noise)) * width,
                    self.y.lower + (size(row) + uniform(&mut noise)) * height,
                )
            })
            .collect()
    }

    fn cell(&self) -> (f64, f64) {
        let side = size(self.side.max(1));
        (
            (self.x.upper - self.x.lower) / side,
            (self.y.upper - self.y.lower) / side,
        )
    }

    /// Quantile bands of the columns whose kept cells hold at least ten thresholds' worth of rows.
    fn columns(&self, threshold: f64) -> Vec<Value> {
        let (width, height) = self.cell();
        self.kept
            .chunks(self.side.max(1))
            .enumerate()
            .filter_map(|(column, cells)| {
                let total: f64 = cells.iter().sum();
                if total < 10.0 * threshold || !total.is_finite() {
                    return None;
                }
                let quantile = |q: f64| {
                    let mut below = 0.0;
                    for (row, cell) in cells.iter().enumerate() {
                        if *cell > 0.0 && below + cell >= q * total {
                            let inside = (q * total - below) / cell;
                            return self.y.lower + (size(row) + inside) * height;
                        }
                        below += cell;
                    }
                    self.y.upper
                };
                Some(json!({
                    "x": number(self.x.lower + (size(column) + 0.5) * width),
                    "q10": number(quantile(0.1)),
                    "q50": number(quantile(0.5)),
                    "q90": number(quantile(0.9)),
                }))
            })
            .collect()
    }
}

#[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
fn uniform(noise: &mut Seeded) -> f64 {
    (noise.bits() >> 11) as f64 / 9_007_199_254_740_992.0
}
