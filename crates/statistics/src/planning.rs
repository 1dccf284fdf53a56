//! What accuracy to expect, from public numbers only: for `price`, before anything is spent.

use std::fmt::Write as _;

use reticent_accounting::{Rational, rational_to_f64, share, split};
use reticent_laws::Law;
use reticent_mechanisms::primitives::{Counts, Payment};
use reticent_mechanisms::program::Expr;
use serde::Serialize;

use crate::DesignSpec;
use crate::accuracy::{QuantileMethod, Question, Setting};
use crate::common::{Facts, StatisticsError, size, widen};
use crate::counters::Method;
use crate::covariance::{self, Rows};
use crate::linear::PureNoise;
use crate::selection;
use crate::{binned, linear, logistic, residuals, roc, running, verify};

/// A prediction: a number where there is one, a sentence always.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Expected half-width that holds with probability .95, where the kind has one.
    pub error_95: Option<f64>,
    /// What to expect, in words.
    pub sentence: String,
    /// False when the release will carry little: more rows or budget are needed.
    pub enough: bool,
    /// The ε that would be enough with these rows, if the number of rows is known.
    pub enough_epsilon: Option<f64>,
}

/// Rows with per-record ε: n·ε must reach `needed` (as counted by `signal`).
fn against(
    epsilon: f64,
    signal: Option<f64>,
    needed: f64,
    sentence: &str,
    error_95: Option<f64>,
) -> Prediction {
    match signal {
        None => Prediction {
            error_95,
            sentence: format!("{sentence} (number of rows unknown)"),
            enough: true,
            enough_epsilon: None,
        },
        Some(signal) => {
            let enough = signal >= needed;
            let wanted = epsilon * needed / signal.max(f64::MIN_POSITIVE);
            let sentence = if enough {
                sentence.to_owned()
            } else {
                format!(
                    "{sentence}; too little signal: about {signal:.0} rows times epsilon, {needed:.0} would do (epsilon {wanted:.2} with these rows)",
                )
            };
            Prediction {
                error_95,
                sentence,
                enough,
                enough_epsilon: (!enough).then_some(wanted),
            }
        }
    }
}

fn laplace_95(facts: &Facts<'_>, epsilon: &Rational) -> f64 {
    Counts {
        name: String::new(),
        epsilon: epsilon.clone(),
    }
    .lattice(facts.context)
    .map_or(f64::INFINITY, |l| l.quantile_95())
}

/// A count.
pub fn count(facts: &Facts<'_>, epsilon: &Rational) -> Prediction {
    let error = laplace_95(facts, epsilon);
    against(
        rational_to_f64(epsilon),
        facts.signal(epsilon),
        10.0,
        &format!("the count will be within {error:.0} of the truth with probability .95"),
        Some(error),
    )
}

/// Each cell of a histogram or cross table with the given number of cells.
pub fn table(facts: &Facts<'_>, cells: usize, epsilon: &Rational) -> Prediction {
    let error = laplace_95(facts, epsilon);
    against(
        rational_to_f64(epsilon),
        facts.signal(epsilon),
        10.0 * size(cells.max(1)),
        &format!("each cell will be within {error:.0} of the truth with probability .95"),
        Some(error),
    )
}

/// A histogram by a method other than identity: its error depends on the data, or on which sums of cells are wanted, so only the
/// error of a single noisy cell is given for comparison.
pub fn other_histogram(
    facts: &Facts<'_>,
    method: crate::histogram::Method,
    cells: usize,
    epsilon: &Rational,
) -> Prediction {
    let error = laplace_95(facts, epsilon);
    let sentence = format!(
        "{} on {cells} cells states its error with the release; noise on every cell alone would be within {error:.0} with probability .95",
        method.name()
    );
    against(
        rational_to_f64(epsilon),
        facts.signal(epsilon),
        100.0,
        &sentence,
        None,
    )
}

/// A sum.
pub fn sum(
    facts: &Facts<'_>,
    of: &Expr,
    epsilon: &Rational,
) -> Result<Prediction, StatisticsError> {
    let error = laplace_95(facts, epsilon) * facts.interval(of)?.magnitude();
    Ok(against(
        rational_to_f64(epsilon),
        facts.signal(epsilon),
        10.0,
        &format!("the sum will be within {error:.4} of the truth with probability .95"),
        Some(error),
    ))
}

/// A mean.
pub fn mean(
    facts: &Facts<'_>,
    of: &Expr,
    epsilon: &Rational,
) -> Result<Prediction, StatisticsError> {
    let bounds = facts.interval(of)?;
    let half = 0.5 * (bounds.upper - bounds.lower);
    let (for_sum, for_count) = share(epsilon, 3, 4);
    let error = facts.rows.map(|n| {
        let sum = half * widen(laplace_95(facts, &for_sum), 0.025);
        let count = 0.25 * half * widen(laplace_95(facts, &for_count), 0.025);
        ((sum + count) / n.max(1.0)).min(2.0 * half)
    });
    let sentence = match error {
        Some(e) => {
            format!("the mean will be within about {e:.4} of the truth with probability .95")
        }
        None => "the error of a mean falls with the number of rows".to_owned(),
    };
    Ok(against(
        rational_to_f64(epsilon),
        facts.signal(epsilon),
        30.0,
        &sentence,
        error,
    ))
}

/// Quantiles by any method.
pub fn quantiles(
    facts: &Facts<'_>,
    levels: usize,
    cells: u32,
    method: QuantileMethod,
    epsilon: &Rational,
) -> Prediction {
    let question = Question::Quantiles {
        levels: u32::try_from(levels).unwrap_or(u32::MAX),
        cells,
        method,
    };
    let setting = Setting {
        context: facts.context.clone(),
    };
    let error = question.error(rational_to_f64(epsilon), &setting);
    let ranks = error.as_ref().map_or(f64::INFINITY, |e| e.each);
    let how = match method {
        QuantileMethod::Exponential => "one draw per level",
        QuantileMethod::Recursive => "recursive bisection",
        QuantileMethod::Smooth => "recursive bisection with Cauchy noise",
    };
    let assuming = error
        .and_then(|e| e.assuming)
        .map_or_else(String::new, |a| format!(", assuming {a}"));
    let m = size(levels.max(1));
    // one draw per level divides ε by their number, bisection by their depth
    let draws = match method {
        QuantileMethod::Exponential => m,
        QuantileMethod::Recursive | QuantileMethod::Smooth => (m + 1.0).log2().ceil(),
    };
    against(
        rational_to_f64(epsilon),
        facts.signal(epsilon),
        20.0 * draws * (f64::from(cells.max(1)) * 20.0).ln(),
        &format!(
            "each quantile will be within about {ranks:.0} ranks of its level ({how}{assuming})"
        ),
        None,
    )
}

/// Bounds.
pub fn bounds(facts: &Facts<'_>, coverage: f64, epsilon: &Rational) -> Prediction {
    against(
        rational_to_f64(epsilon),
        facts.signal(epsilon),
        8.0 / (1.0 - coverage).max(1e-6),
        "each end will be within about 10 % of the distance that covers the share",
        None,
    )
}

/// Logistic regression. What noise does to the objective is known: a linear term that shifts its gradient. What the
/// shift does to coefficients depends on the curvature of the data's loss, so no error of theirs is given.
pub fn logistic(
    facts: &Facts<'_>,
    design: &DesignSpec,
    config: &logistic::Config,
) -> Result<Prediction, StatisticsError> {
    let columns = design.terms.len();
    let d = size(columns.max(1));
    let records = logistic::noise_in_records(facts, design, config)?;
    let share = match facts.rows {
        Some(n) if n >= 1.0 => format!(" ({} of all rows)", percent(records / n)),
        _ => String::new(),
    };
    let sentence = format!(
        "noise shifts the gradient of the loss by no more than {:.0} records can, with probability .95{share}; how far that \
         moves a coefficient depends on the private curvature, so no error is stated for coefficients",
        records.ceil(),
    );
    Ok(against(
        rational_to_f64(&config.epsilon),
        facts.quartered_signal(&config.epsilon),
        9.0 * d * d,
        &sentence,
        None,
    ))
}

fn percent(share: f64) -> String {
    if share >= 0.1 {
        format!("{:.0} %", 100.0 * share)
    } else {
        format!("{:.2} %", 100.0 * share)
    }
}

/// Linear regression: the noise on the second moments is known, the error of a coefficient depends on their private values and is
/// part of the released intervals.
pub fn linear(
    facts: &Facts<'_>,
    design: &DesignSpec,
    config: &linear::Config,
) -> Result<Prediction, StatisticsError> {
    let columns = design.terms.len();
    let epsilon = linear::budget(&config.payment, facts.context);
    let signal = facts.rows.map(|n| n * epsilon);
    let deviation = linear::moment_deviation(facts, design, config)?;
    let mut sentence = format!(
        "second moments of columns scaled to ±1/2 carry noise of standard deviation up to {deviation:.1}"
    );
    if let Some(n) = facts.rows.filter(|n| *n >= 1.0) {
        let _ = write!(
            sentence,
            ", {} of the most that {n:.0} rows can add up to",
            percent(4.0 * deviation / n)
        );
    }
    sentence.push_str("; the intervals of the coefficients include it");
    Ok(against(
        epsilon,
        signal,
        100.0 * size(columns.max(1)),
        &sentence,
        None,
    ))
}

/// A linear regression by output perturbation.
pub fn linear_output(
    facts: &Facts<'_>,
    design: &DesignSpec,
    config: &linear::OutputConfig,
) -> Result<Prediction, StatisticsError> {
    let (noise, shrunk) = linear::expected(facts, design, config)?;
    let mut sentence = format!(
        "noise on the coefficients of scaled columns, its mean length {} of the largest that coefficients can have",
        percent(noise)
    );
    if let Some(share) = shrunk {
        let _ = write!(
            sentence,
            "; the penalty shrinks coefficients by about {} where columns spread evenly",
            percent(share)
        );
    }
    sentence
        .push_str("; no standard errors; method = \"moments\" has them, and usually less noise");
    let epsilon = rational_to_f64(&config.epsilon);
    // by the rule for the penalty the noise is then about a tenth of the largest coefficients
    let needed = 200.0 * size(design.terms.len() + 1).powi(2);
    Ok(against(
        epsilon,
        facts.signal(&config.epsilon),
        needed,
        &sentence,
        None,
    ))
}

/// A covariance matrix of `columns` columns; none if the budget cannot be calibrated.
pub fn covariance(
    facts: &Facts<'_>,
    columns: usize,
    data_norm: Option<f64>,
    payment: &Payment,
) -> Option<Prediction> {
    let rows = data_norm.map_or(Rows::Box, Rows::Ball);
    let found = covariance::error(payment, PureNoise::Auto, columns, rows, facts.context).ok()?;
    let epsilon = linear::budget(payment, facts.context);
    let sentence = match facts.rows {
        Some(n) => format!(
            "covariances within {:.2e} of the product of the two ranges, with probability .95",
            found.entry / n.max(1.0)
        ),
        None => "intervals of regressions from it include the privacy noise".to_owned(),
    };
    let signal = facts.rows.map(|n| n * epsilon);
    let enough = 100.0 * size(columns.max(1));
    Some(against(epsilon, signal, enough, &sentence, None))
}

/// A sketch of `columns` columns; none if the budget cannot be calibrated.
pub fn sketch(
    facts: &Facts<'_>,
    columns: usize,
    config: &covariance::SketchConfig,
) -> Option<Prediction> {
    let (relative, added) = covariance::sketch_error(config, columns, facts.context).ok()?;
    let sentence = format!(
        "sums of squares along a direction within {:.0} % of themselves and {:.2} times the sum of its squared products of coefficient and range, with probability .95; \
         noisy second moments (without method = \"sketch\") usually err less",
        196.0 * relative,
        1.96 * relative * added,
    );
    // the records' own sum of squares, about n/12 per column, should outweigh what is added
    let (needed, epsilon) = (24.0 * added, rational_to_f64(&config.epsilon));
    Some(against(
        epsilon,
        facts.rows.map(|n| n * epsilon),
        needed * epsilon,
        &sentence,
        None,
    ))
}

/// A ROC curve; area errors by interpolation in a table of simulations (smooth scores).
pub fn roc(facts: &Facts<'_>, epsilon: &Rational) -> Prediction {
    let signal = facts.signal(epsilon);
    // Mean |error| of the area at ñε = 10², 10³, 10⁴, 10⁵, 10⁶; .95 half-width about 2.5 times that.
    let error = signal.map(|s| {
        let table = [0.047, 0.0050, 0.000_80, 0.000_11, 0.000_015];
        let x = (s.max(1.0).log10() - 2.0).clamp(-1.0, 4.0);
        let at = |i: usize| -> f64 { table.get(i.min(4)).copied().unwrap_or(0.0) };
        let i = crate::common::clipped(x.floor(), 0, 3) as usize;
        let mean = at(i) * (at(i + 1) / at(i)).powf(x - size(i));
        let balance = facts
            .positive_rate
            .map_or(1.0, |p| 0.5 / p.min(1.0 - p).clamp(1e-3, 0.5));
        (2.5 * mean * balance).min(0.5)
    });
    let bins = signal.map_or(8, |s| 1u32 << roc::default_depth(s));
    let sentence = match error {
        Some(e) => format!(
            "{bins} bins; the area will be within about {e:.3} of the truth with probability .95"
        ),
        None => format!("{bins} bins"),
    };
    let minority = facts
        .positive_rate
        .map_or(0.5, |p| p.min(1.0 - p).clamp(1e-6, 0.5));
    against(
        rational_to_f64(epsilon),
        signal,
        30.0 / minority,
        &sentence,
        error,
    )
}

/// A residual plot.
pub fn residuals(facts: &Facts<'_>, epsilon: &Rational) -> Prediction {
    let rules = residuals::rules(facts, epsilon);
    let (_, cells) = share(epsilon, u64::from(rules.range_percent), 100);
    let error = laplace_95(facts, &cells);
    against(
        rational_to_f64(epsilon),
        facts.rows.map(|n| n * facts.per_record(epsilon)),
        1000.0,
        &format!(
            "{} % of epsilon frames the plot; each of its cells counts records within {error:.0} with probability .95",
            rules.range_percent
        ),
        Some(error),
    )
}

/// A verified claim: how many groups vote, and what they can show.
pub fn verify(facts: &Facts<'_>, design: &DesignSpec, config: &verify::Config) -> Prediction {
    let coefficients = design.terms.len() + usize::from(design.intercept);
    votes(facts, coefficients, config)
}

/// The same by the number of coefficients (the intercept counts).
pub fn votes(facts: &Facts<'_>, coefficients: usize, config: &verify::Config) -> Prediction {
    let plan = verify::Plan::new(facts, coefficients, config);
    let error = laplace_95(facts, &config.epsilon);
    let shows = plan.detects().map_or_else(
        || "a range of several standard errors of a group's estimate is confirmed".to_owned(),
        |t| {
            format!(
                "a coefficient whose t on all records is beyond ±{t:.1} is found in 4 of 5 cases"
            )
        },
    );
    let records = plan
        .records
        .map_or_else(String::new, |r| format!(" of about {r:.0} records"));
    against(
        rational_to_f64(&config.epsilon),
        facts.signal(&config.epsilon),
        300.0,
        &format!(
            "{} groups{records} vote, the yes votes counted within {error:.0} with probability .95; {shows}",
            plan.groups
        ),
        Some(error),
    )
}

/// Number of bins of a binned residual plot and the half-width of a bin's count of positive outcomes.
pub(crate) fn binned_error(facts: &Facts<'_>, epsilon: &Rational) -> (u32, f64) {
    let depth = match (facts.rows, facts.signal(epsilon)) {
        (Some(rows), Some(signal)) => binned::default_depth(rows, signal),
        _ => 3,
    };
    let parts = split(epsilon, &[2, 7, 1]);
    let error = parts.get(1).map_or(f64::NAN, |e| laplace_95(facts, e));
    (1u32 << depth, error)
}

/// A binned residual plot.
pub fn binned_residuals(facts: &Facts<'_>, epsilon: &Rational) -> Prediction {
    let (bins, error) = binned_error(facts, epsilon);
    let residual = facts.rows.map_or_else(String::new, |n| {
        let half = (error * f64::from(bins) / n.max(1.0)).min(1.0);
        format!(", a mean residual within about {half:.3} of its value without noise")
    });
    against(
        rational_to_f64(epsilon),
        facts.signal(epsilon),
        1250.0,
        &format!("{bins} bins; each label count within {error:.0} with probability .95{residual}"),
        Some(error),
    )
}

/// The k most frequent of some candidates.
pub fn top_k(
    facts: &Facts<'_>,
    candidates: usize,
    k: u32,
    method: Option<selection::Method>,
    epsilon: &Rational,
) -> Prediction {
    let method = method.unwrap_or(selection::Method::by_rule(k, 1));
    let error = selection::error(method, candidates, k, 1, epsilon, facts.context, 0.05);
    against(
        rational_to_f64(epsilon),
        facts.signal(epsilon),
        // the error is in proportion to 1/ε: a tenth of the records
        10.0 * error * facts.per_record(epsilon) / f64::from(facts.context.touches()),
        &format!(
            "nothing left out will exceed anything chosen by more than {error:.0} records with probability .95 ({})",
            method.name()
        ),
        Some(error),
    )
}

/// The area under a ROC curve by smooth sensitivity.
pub fn auc(facts: &Facts<'_>, epsilon: &Rational) -> Prediction {
    let rate = facts.positive_rate.unwrap_or(0.5);
    let smaller = facts.rows.map(|n| n * rate.min(1.0 - rate).max(0.0));
    let setting = Setting {
        context: facts.context.clone(),
    };
    let error = smaller.and_then(|smaller| {
        let question = Question::SmoothAuc { smaller };
        question.error(rational_to_f64(epsilon), &setting)
    });
    let sentence = match &error {
        Some(e) => format!(
            "the area will be within about {:.3} of the truth with probability .95",
            e.each.min(1.0)
        ),
        None => "the error falls with the records of the smaller class".to_owned(),
    };
    against(
        rational_to_f64(epsilon),
        facts.signal(epsilon),
        // Cauchy noise of scale √2/(ε m), half-width 12.7 of it: .2 at a balanced m = n/2
        200.0,
        &sentence,
        error.map(|e| e.each.min(1.0)),
    )
}

/// Running totals; the error of the least accurate step.
pub fn running_total(
    facts: &Facts<'_>,
    steps: usize,
    method: Option<Method>,
    payment: &Payment,
) -> Prediction {
    let method = method.unwrap_or_else(|| running::default_method(steps, payment));
    let all = running::half_widths(method, steps, payment, facts.context, 0.05);
    let error = all.ok().map(|e| e.into_iter().fold(0.0, f64::max));
    let sentence = match error {
        Some(e) => format!(
            "each of the {steps} totals will be within {e:.0} of the truth with probability .95 ({})",
            method.name()
        ),
        None => "this payment does not fit the method".to_owned(),
    };
    let epsilon = linear::budget(payment, facts.context);
    let signal = facts.rows.map(|n| n * epsilon);
    against(
        epsilon,
        signal,
        error.map_or(10.0, |e| 10.0 * e * epsilon),
        &sentence,
        error,
    )
}
