//! What accuracy to expect, from public numbers only: for `price`, before anything is spent.

use reticent_accounting::{Rational, rational_to_f64, share, split};
use reticent_laws::Law;
use reticent_mechanisms::primitives::{Counts, Payment};
use reticent_mechanisms::program::Expr;
use serde::Serialize;

use crate::common::{Facts, StatisticsError, size, widen};
use crate::covariance::{self, Rows};
use crate::linear::PureNoise;
use crate::{binned, linear, logistic, residuals, roc};

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

/// Quantiles.
pub fn quantiles(facts: &Facts<'_>, levels: usize, cells: u32, epsilon: &Rational) -> Prediction {
    let parts = split(epsilon, &vec![1; levels.max(1)]);
    let e = parts.first().map_or(0.0, |p| facts.per_record(p)) / f64::from(facts.context.touches());
    let ranks = 2.0 * (f64::from(cells.max(1)) * size(levels.max(1)) / 0.05).ln() / e;
    against(
        rational_to_f64(epsilon),
        facts.signal(epsilon),
        20.0 * size(levels.max(1)) * (f64::from(cells.max(1)) * 20.0).ln(),
        &format!("each quantile will be within about {ranks:.0} ranks of its level"),
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

/// Logistic regression on `columns` columns.
pub fn logistic(facts: &Facts<'_>, columns: usize, epsilon: &Rational) -> Prediction {
    let d = size(columns.max(1));
    let clip = logistic::clips_by_rule(facts, epsilon, columns);
    let f = logistic::fraction(facts, epsilon, columns);
    let sentence = format!(
        "{:.0} % of epsilon pays for the curvature{}; close to the non-private fit once the square root of rows times epsilon is ten times the number of columns",
        100.0 * f,
        if clip { ", 5 % for a row clip" } else { "" }
    );
    against(
        rational_to_f64(epsilon),
        facts.quartered_signal(epsilon),
        9.0 * d * d,
        &sentence,
        None,
    )
}

/// Linear regression on `columns` columns.
pub fn linear(facts: &Facts<'_>, columns: usize, payment: &Payment) -> Prediction {
    let epsilon = linear::budget(payment, facts.context);
    let signal = facts.rows.map(|n| n * epsilon);
    against(
        epsilon,
        signal,
        100.0 * size(columns.max(1)),
        "intervals of the coefficients include the privacy noise",
        None,
    )
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
    against(
        rational_to_f64(epsilon),
        facts.rows.map(|n| n * facts.per_record(epsilon)),
        1000.0,
        &format!(
            "{} % of epsilon frames the plot, the rest counts its cells",
            rules.range_percent
        ),
        None,
    )
}

/// A binned residual plot.
pub fn binned_residuals(facts: &Facts<'_>, epsilon: &Rational) -> Prediction {
    let depth = match (facts.rows, facts.signal(epsilon)) {
        (Some(rows), Some(signal)) => binned::default_depth(rows, signal),
        _ => 3,
    };
    let parts = split(epsilon, &[2, 7, 1]);
    let error = parts.get(1).map(|e| laplace_95(facts, e));
    against(
        rational_to_f64(epsilon),
        facts.signal(epsilon),
        1250.0,
        &format!(
            "{} bins; each label count within {:.0} with probability .95",
            1u32 << depth,
            error.unwrap_or(f64::NAN)
        ),
        error,
    )
}
