//! Residual plot of a released model: a box around most points, counts of its cells, points drawn from them.
//!
//! Four range calls frame fitted values and residuals; one further pass counts the cells of an even grid in
//! the box (points outside are moved to its edge). The points shown are drawn from the *released* cells with
//! a printed seed: they are an image of the noisy counts, not of rows.

use reticent_accounting::{AccountingError, Event, Rational, rational_to_f64, split};
use reticent_laws::Law;
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::primitives::Counts;
use reticent_mechanisms::program::{Expr, Interval};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use reticent_noise::{Noise, Seeded};
use serde_json::{Value, json};

use crate::common::{
    Facts, Prepared, StatisticsError, clipped, number, numbers, positive, real, size, whole,
    with_metadata,
};
use crate::ends::Ends;
use crate::simple::flags;

/// Largest number of cells on a side.
pub const MAX_SIDE: u32 = 512;
/// Largest number of points drawn.
const MAX_POINTS: usize = 2000;

/// How a residual plot is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// ε of the release.
    pub epsilon: Rational,
    /// Cells on a side; by default √(ñε₂/10).
    pub side: Option<u32>,
    /// Seed of the points drawn from the released cells; printed.
    pub seed: u64,
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
            metadata: Value::Null,
        }
    }
}

/// Residuals (observed − fitted) against fitted values.
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
    let rules = rules(facts, &config.epsilon);
    let weight = u64::from(rules.range_percent);
    let quarter = weight * 25;
    let parts = split(
        &config.epsilon,
        &[quarter, quarter, quarter, quarter, (100 - weight) * 100],
    );
    let mut parts = parts.into_iter();
    let mut part = || parts.next().unwrap_or(Rational::ZERO);
    let (for_x, for_y) = ((part(), part()), (part(), part()));
    let for_cells = part();
    let mut terms = vec![fitted.clone(), observed.clone().sub(fitted.clone())];
    let residual = observed.clone().sub(fitted.clone());
    let x = Ends::new(
        facts,
        fitted,
        "fitted values",
        rules.coverage,
        for_x,
        &mut terms,
    )?;
    let y = Ends::new(
        facts,
        &residual,
        "residuals",
        rules.coverage,
        for_y,
        &mut terms,
    )?;
    let side = config.side.unwrap_or_else(|| {
        facts.rows.map_or(16, |n| {
            let per_cell = n * facts.per_record(&for_cells) / 10.0;
            clipped(per_cell.max(1.0).sqrt().floor(), 1, MAX_SIDE)
        })
    });
    Ok(Prepared {
        terms,
        mechanism: Box::new(Residuals {
            x,
            y,
            side,
            cells: Counts {
                name: "cells of the plot".to_owned(),
                epsilon: for_cells,
            },
            seed: config.seed,
            unknown_size: facts.rows.is_none(),
            coverage: rules.coverage,
            metadata: config.metadata,
        }),
    })
}

pub(crate) struct Rules {
    /// Share of the four range calls, in per cent.
    pub(crate) range_percent: u32,
    /// θ of each call.
    pub(crate) coverage: (u32, u32),
}

/// `decisions.md` §5.2; "ñε" is not halved here.
pub(crate) fn rules(facts: &Facts<'_>, epsilon: &Rational) -> Rules {
    let Some(rows) = facts.rows else {
        return Rules {
            range_percent: 30,
            coverage: (190, 200),
        };
    };
    let signal = rows * facts.per_record(epsilon);
    let range_percent = if signal < 2000.0 { 30 } else { 20 };
    let per_call = signal * f64::from(range_percent) / 400.0;
    let theta = (1.0 - 4.0 / per_call.max(1e-9)).clamp(0.85, 0.985);
    Rules {
        range_percent,
        coverage: (clipped((theta * 200.0 + 1e-9).floor(), 170, 197), 200),
    }
}

/// # Claim
/// ε-DP for the context's relation and unit: four range calls and one [`Counts`] are bought.
/// # Assumptions
/// Those of the primitives; fitted values come from a released model.
/// # Composition
/// Sequential: share/4 of ε for each call (all four see every record), the rest for the cells; the total is
/// exact (`accounting::split`). The lower end of the fitted values is
/// sought from their released upper end (second pass); the grid of the last pass depends on the released box only.
/// # Arithmetic
/// Points outside the box count in its edge cells. Points shown are a seeded function of the noisy counts.
/// # Checked by
/// `contract::inner_events_sum_to_epsilon`, `contract::every_kind_answers_on_every_table`,
/// `seeded::residual_points_come_from_released_cells`
/// # References
/// `decisions.md` §2.4, §5.2; `beyond.md` §4, §5
struct Residuals {
    x: Ends,
    y: Ends,
    side: u32,
    cells: Counts,
    seed: u64,
    unknown_size: bool,
    coverage: (u32, u32),
    metadata: Value,
}

impl Mechanism for Residuals {
    fn kind(&self) -> &'static str {
        "residuals"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(Event::Sequence(vec![
            self.x.steps.0.event(context),
            self.x.steps.1.event(context),
            self.y.steps.0.event(context),
            self.y.steps.1.event(context),
            self.cells.event(context),
        ]))
    }
    fn first_pass(&self) -> Vec<Fold> {
        let [high, low] = self.y.folds();
        vec![self.x.upper_fold(), high, low]
    }
    fn passes(&self) -> u32 {
        2
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let x = self.x.buy_in_turn(desk, FoldId(0))?;
        let y = self.y.buy(desk, FoldId(1))?;
        let axis = |term: usize, ends: Interval| Axis {
            term,
            cut: Cut::Even {
                lower: ends.lower,
                upper: ends.upper,
                cells: self.side,
            },
        };
        let folds = desk.scan(vec![Fold::Grid {
            axes: vec![axis(0, x), axis(1, y)],
            sum: None,
        }])?;
        let fold = folds.first().copied().unwrap_or(FoldId(0));
        let noisy = desk.counts(fold, None, &self.cells)?;
        let error = self.cells.lattice(desk.context())?.quantile_95();
        let threshold = 1.0 / rational_to_f64(&desk.context().per_record(&self.cells.epsilon));
        let plot = Plot {
            x,
            y,
            side: self.side as usize,
            kept: noisy
                .iter()
                .map(|n| if real(*n) < threshold { 0.0 } else { real(*n) })
                .collect(),
        };
        let points = plot.points(self.seed);
        let value = json!({
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
            "columns": plot.columns(threshold),
            "error_95": number(error),
        });
        Ok(Answer {
            value: with_metadata(value, &self.metadata),
            error_95: Some(error),
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
