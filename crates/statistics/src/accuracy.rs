//! Error from ε and ε from error, for every mechanism, from public parameters alone.
//!
//! Errors are half-widths that hold with probability .95. They count what the noise does, not sampling, not clamping.
//! Where an error depends on the data (smooth sensitivity, ROC curves) the assumption is part of the answer.
//!
//! ```
//! use reticent_accounting::Relation;
//! use reticent_statistics::accuracy::{Question, Setting};
//!
//! let setting = Setting::new(Relation::AddRemove);
//! let histogram = Question::Histogram { cells: 4096 };
//! // Laplace noise of scale 1/ε: ln(20)/ε
//! let error = histogram.error(0.1, &setting).unwrap();
//! assert!((error.each - 30.0).abs() < 1.0 && error.all > 2.0 * error.each);
//! // and back
//! let epsilon = histogram.epsilon(error.each, &setting).unwrap();
//! assert!((epsilon / 0.1 - 1.0).abs() < 0.04);
//! ```

use reticent_accounting::hyperbolic::Hyperbolic;
use reticent_accounting::{Currency, Rational, Relation, rational_from_f64, rational_to_f64};
use reticent_laws::Law;
use reticent_mechanisms::Context;
use reticent_mechanisms::primitives::{
    Change, Counts, Draw, ItemCounts, Payment, Sides, SmoothAuc, ThresholdTests,
};
use reticent_mechanisms::rows::Schema;

use crate::bisect::Quantiles;
use crate::common::{Facts, size, widen};
use crate::counters::Method as TotalMethod;
use crate::range::{Range, RangeScales};
use crate::{planning, running, selection, sparse_vector};

/// Under which relation and unit an error is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Relation, unit; the currency does not matter here.
    pub context: Context,
}

impl Setting {
    /// One record per unit.
    pub fn new(relation: Relation) -> Self {
        Self {
            context: Context::records(relation),
        }
    }
}

/// An error and what it is measured in.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Error {
    /// Half-width of one answer.
    pub each: f64,
    /// Half-width that all answers keep together (equal to `each` for one answer).
    pub all: f64,
    /// Unit of both.
    pub unit: &'static str,
    /// What was assumed about the data, if anything.
    pub assuming: Option<&'static str>,
}

/// How quantiles are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantileMethod {
    /// One exponential-mechanism draw per level.
    Exponential,
    /// Recursive bisection by the exponential mechanism.
    Recursive,
    /// Recursive bisection by Cauchy noise on smooth sensitivity.
    Smooth,
}

/// What is released.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// A count.
    Count,
    /// A histogram or cross table.
    Histogram {
        /// Number of cells.
        cells: u64,
    },
    /// A sum of values of absolute size up to `magnitude`.
    Sum {
        /// Largest absolute value.
        magnitude: f64,
    },
    /// A mean of values within an interval.
    Mean {
        /// Width of the interval.
        width: f64,
        /// Number of records.
        rows: f64,
    },
    /// Quantiles, in ranks.
    Quantiles {
        /// Number of levels.
        levels: u32,
        /// Cells of the grid.
        cells: u32,
        /// How they are drawn.
        method: QuantileMethod,
    },
    /// A private range, in records beyond the share.
    Bounds {
        /// The share, at least ½.
        coverage: f64,
        /// One or two ends.
        sides: u32,
        /// Candidates per end.
        candidates: u32,
        /// The noise.
        scales: RangeScales,
    },
    /// Sparse vector on counts: positive answers above threshold + error, negative ones below threshold − error.
    SparseVector {
        /// Positive answers before it stops.
        answers: u32,
        /// Queries in all.
        queries: u64,
        /// Whether a change moves all queries in one direction.
        one_direction: bool,
    },
    /// Area under the ROC curve of a released curve (smooth scores).
    Roc {
        /// Number of records.
        rows: f64,
        /// Share of positive ones.
        positive_rate: f64,
    },
    /// Area under the ROC curve by smooth sensitivity.
    SmoothAuc {
        /// Records of the smaller class.
        smaller: f64,
    },
    /// The most frequent of some candidates: by how much the count of any that was left out can exceed that of any chosen.
    TopK {
        /// Number of candidates.
        candidates: u32,
        /// How many are chosen.
        picks: u32,
        /// How; by rule if absent.
        method: Option<selection::Method>,
    },
    /// Counts of many features of which a record has few: what features are chosen by, and what naive Bayes is made of.
    Features {
        /// Number of features.
        features: u32,
        /// Features that a record can have.
        most: u32,
        /// Whether they are counted within each class, and the classes themselves.
        classes: bool,
    },
    /// The number of groups of records that vote yes (a verified claim).
    Votes,
    /// A residual plot, records per cell.
    Residuals {
        /// Number of records.
        rows: f64,
    },
    /// Mean residuals of bins with about equally many records, from noise alone.
    BinnedResiduals {
        /// Number of records.
        rows: f64,
    },
    /// Running totals, the least accurate step.
    RunningTotal {
        /// Number of steps.
        steps: u32,
        /// How they are measured.
        method: TotalMethod,
    },
}

/// .975 quantile of the standard Cauchy law.
const CAUCHY_95: f64 = 12.706_204_736_174_7;

impl Question {
    /// The error at ε; `None` if the parameters make no sense. Running totals where the context counts ρ, and by the square root
    /// everywhere: at ρ.
    ///
    /// # Sources
    /// Counts, sums, means: the quantiles of the noise that is drawn. Quantiles: `privacy.md` §5.4, utility theorem of the
    /// exponential mechanism with a union bound over the grid (McSherry, Talwar 2007). Ranges and sparse vector: tails of
    /// one-sided geometric noise with a union bound (Chen thesis 2018, Theorems 3 and 8, at these scales). Totals: the law of
    /// the sum of draws in them.
    #[allow(clippy::too_many_lines, reason = "one arm per question")]
    pub fn error(&self, epsilon: f64, setting: &Setting) -> Option<Error> {
        let context = &setting.context;
        let e = rational_from_f64(epsilon)
            .ok()
            .filter(|e| *e > Rational::ZERO)?;
        let plain = |each: f64, unit| Error {
            each,
            all: each,
            unit,
            assuming: None,
        };
        let error = match self {
            Self::Count => plain(laplace(&e, context)?, "records"),
            Self::Histogram { cells } => {
                let each = laplace(&e, context)?;
                Error {
                    all: widen(each, 0.05 / whole(*cells).max(1.0)),
                    ..plain(each, "records")
                }
            }
            Self::Sum { magnitude } => {
                plain(laplace(&e, context)? * magnitude.abs(), "the summed value")
            }
            Self::Mean { width, rows } => {
                let (sum, count) = reticent_accounting::share(&e, 3, 4);
                let half = 0.5 * width.abs();
                let sum = half * widen(laplace(&sum, context)?, 0.025);
                let count = 0.25 * half * widen(laplace(&count, context)?, 0.025);
                plain(
                    ((sum + count) / rows.max(1.0)).min(width.abs()),
                    "the averaged value",
                )
            }
            Self::Quantiles {
                levels,
                cells,
                method,
            } => quantiles(*levels, *cells, *method, &e, context)?,
            Self::Bounds {
                coverage,
                sides,
                candidates,
                scales,
            } => plain(
                bounds((*coverage, *scales), *sides, *candidates, &e, context)?,
                "records beyond the share",
            ),
            Self::SparseVector {
                answers,
                queries,
                one_direction,
            } => {
                let step = ThresholdTests {
                    name: String::new(),
                    epsilon: e,
                    answers: *answers,
                    most: u32::try_from(*queries).unwrap_or(u32::MAX),
                    change: if *one_direction {
                        Change::COUNT
                    } else {
                        Change { down: 1, up: 1 }
                    },
                    nested: false,
                    sides: Sides::One,
                    gaps: false,
                    values: None,
                    custom: None,
                };
                let found = sparse_vector::accuracy(&step, context, 0.05).ok()?;
                plain(found.alpha(), "records")
            }
            Self::Roc {
                rows,
                positive_rate,
            } => {
                let schema = Schema {
                    columns: Vec::new(),
                };
                let facts = Facts {
                    positive_rate: Some(*positive_rate),
                    ..sized(&schema, context, *rows)
                };
                Error {
                    assuming: Some("scores without heavy ties"),
                    ..plain(planning::roc(&facts, &e).error_95?, "area")
                }
            }
            Self::SmoothAuc { smaller } => {
                let step = SmoothAuc {
                    name: String::new(),
                    epsilon: e,
                };
                let h = step.calibration(context).ok()?;
                let (beta, kappa) = floats(&h);
                let m = smaller.max(1.0);
                let s = (1.0 / m).max((-(m - 1.0) * beta).exp());
                plain(kappa * s * CAUCHY_95, "area")
            }
            Self::TopK {
                candidates,
                picks,
                method,
            } => {
                if *picks == 0 || picks > candidates {
                    return None;
                }
                let method = method.unwrap_or(selection::Method::by_rule(*picks, 1));
                let d = usize::try_from(*candidates).ok()?;
                let each = selection::error(method, d, *picks, 1, &e, context, 0.05);
                plain(each, "records")
            }
            Self::Features {
                features,
                most,
                classes,
            } => {
                if *features == 0 || *most == 0 {
                    return None;
                }
                let step = ItemCounts {
                    name: String::new(),
                    payment: Payment::Pure { epsilon: e },
                    most: *most,
                    classes: *classes,
                };
                let each = step.lattice(context).ok()?.quantile_95();
                let counts = f64::from(*features) * if *classes { 2.0 } else { 1.0 };
                Error {
                    all: widen(each, 0.05 / counts),
                    ..plain(each, "records")
                }
            }
            Self::Votes => plain(laplace(&e, context)?, "yes votes"),
            Self::Residuals { rows } => {
                let schema = Schema {
                    columns: Vec::new(),
                };
                let found = planning::residuals(&sized(&schema, context, *rows), &e);
                plain(found.error_95?, "records per cell of the plot")
            }
            Self::BinnedResiduals { rows } => {
                let schema = Schema {
                    columns: Vec::new(),
                };
                let (bins, error) = planning::binned_error(&sized(&schema, context, *rows), &e);
                let per_bin = (rows / f64::from(bins)).max(1.0);
                let each = (error / per_bin).min(1.0);
                Error {
                    all: (widen(error, 0.05 / f64::from(bins)) / per_bin).min(1.0),
                    assuming: Some("bins of equal size"),
                    ..plain(each, "mean residual")
                }
            }
            Self::RunningTotal { steps, method } => totals(*steps, *method, &e, context)?,
        };
        (error.each.is_finite() && error.each >= 0.0).then_some(error)
    }

    /// The smallest ε at which [`Error::each`] is at most `error`, to 10⁻⁴ of it; `None` if none between 10⁻⁹ and 10⁶ is.
    pub fn epsilon(&self, error: f64, setting: &Setting) -> Option<f64> {
        let enough = |e: f64| {
            self.error(e, setting)
                .is_some_and(|found| found.each <= error)
        };
        let (mut low, mut high) = (1e-9_f64.ln(), 1e6_f64.ln());
        if !enough(high.exp()) {
            return None;
        }
        while high - low > 1e-4 {
            let middle = 0.5 * (low + high);
            if enough(middle.exp()) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(high.exp())
    }
}

fn whole(n: u64) -> f64 {
    crate::common::real(i128::from(n))
}

fn floats(h: &Hyperbolic) -> (f64, f64) {
    (rational_to_f64(&h.beta), rational_to_f64(&h.kappa))
}

fn laplace(e: &Rational, context: &Context) -> Option<f64> {
    let step = Counts {
        name: String::new(),
        epsilon: e.clone(),
    };
    Some(step.lattice(context).ok()?.quantile_95())
}

fn quantiles(
    levels: u32,
    cells: u32,
    method: QuantileMethod,
    e: &Rational,
    context: &Context,
) -> Option<Error> {
    // the levels are listed below, and there are no more boundaries than cells
    if levels > 1 << 20 {
        return None;
    }
    let m = f64::from(levels.max(1));
    let unions = |k: f64| (f64::from(cells.max(2)) * k / 0.05).ln();
    let touches = f64::from(context.touches());
    let per_record = rational_to_f64(&context.per_record(e));
    let step = Quantiles {
        name: String::new(),
        epsilon: e.clone(),
        levels: (1..=levels.max(1)).collect(),
        denominator: levels.max(1).checked_add(1)?,
        draw: Draw::Smooth,
    };
    let depth = f64::from(step.depth());
    let (each, all, assuming) = match method {
        QuantileMethod::Exponential => {
            let scale = 2.0 * m * touches / per_record;
            (scale * unions(1.0), scale * unions(m), None)
        }
        QuantileMethod::Recursive => {
            let scale = 2.0 * depth * depth * touches / per_record;
            (scale * unions(depth), scale * unions(m), None)
        }
        QuantileMethod::Smooth => {
            let first = step.calibrations(context).ok()?;
            // ranks: κ times the smooth sensitivity of evenly spread records, one per unit
            let ranks = first
                .iter()
                .map(|h| {
                    let (beta, kappa) = floats(h);
                    let k = (1.0 / beta - 1.0).max(0.0);
                    kappa * (k + 1.0) * (-k * beta).exp() * CAUCHY_95
                })
                .sum::<f64>();
            (
                ranks,
                ranks * m,
                Some("records spread evenly, many of them"),
            )
        }
    };
    Some(Error {
        each,
        all,
        unit: "ranks",
        assuming,
    })
}

/// Tails of the geometric noise of threshold and of all candidates, .025 each.
fn bounds(
    (coverage, scales): (f64, RangeScales),
    sides: u32,
    candidates: u32,
    e: &Rational,
    context: &Context,
) -> Option<f64> {
    let part = if sides >= 2 {
        reticent_accounting::share(e, 1, 2).0
    } else {
        e.clone()
    };
    let step = Range {
        name: String::new(),
        epsilon: part,
        coverage: (crate::common::clipped(coverage * 1000.0, 500, 999), 1000),
        scales,
    };
    let (threshold, query) = step.lattices(context).ok()?;
    let scale = |l: &reticent_noise::Lattice| l.scale().to_f64() / 1000.0;
    let tail = 1.0 / 0.025_f64;
    Some(scale(&threshold) * tail.ln() + scale(&query) * (f64::from(candidates.max(1)) * tail).ln())
}

/// Facts with a number of rows and nothing else.
fn sized<'a>(schema: &'a Schema, context: &'a Context, rows: f64) -> Facts<'a> {
    Facts {
        schema,
        filter: None,
        context,
        rows: Some(rows),
        positive_rate: None,
    }
}

fn totals(steps: u32, method: TotalMethod, e: &Rational, context: &Context) -> Option<Error> {
    let steps = usize::try_from(steps.max(1)).ok()?;
    let counts_rho =
        method == TotalMethod::SquareRoot || context.currency == Currency::Concentrated;
    let payment = if counts_rho {
        Payment::Concentrated { rho: e.clone() }
    } else {
        Payment::Pure { epsilon: e.clone() }
    };
    let worst = |tail: f64| -> Option<f64> {
        let all = running::half_widths(method, steps, &payment, context, tail).ok()?;
        Some(all.into_iter().fold(0.0, f64::max))
    };
    Some(Error {
        each: worst(0.05)?,
        all: worst(0.05 / size(steps))?,
        unit: "records",
        assuming: None,
    })
}
