//! Sentences of the report: the worst-case odds, kinds and flags in words. Its numbers: [`numbers`](super::numbers).
//!
//! Everything here is total: a number that is missing, infinite or out of range becomes a dash or a plain statement.
//! Functions that return HTML say so; all others return plain text that the caller escapes.

use serde_json::Value;
use std::fmt::Write as _;

use super::html::escape;
pub(super) use super::numbers::{
    NONE, amount, as_f64, combine, cost, exponent, factor, fixed, interval, number, percent_up,
    plural, plus_minus, scientific, to_error, value_of,
};
use super::{Cost, Unit};

/// What is protected, as one HTML sentence: the privacy unit and the neighbour relation.
pub(super) fn protection(relation: Option<&str>, unit: &Unit) -> String {
    let unit_text = match unit {
        Unit::Row => "any single <strong>row</strong>".to_owned(),
        Unit::Column { column, max_rows } => format!(
            "all rows that share one value of <strong>{}</strong> taken together{}",
            escape(column),
            max_rows.map_or(String::new(), |k| format!(
                " (no more than {} of each are used)",
                plural(usize::try_from(k).unwrap_or(usize::MAX), "row", "rows")
            ))
        ),
        Unit::Unknown => "one privacy unit (the file does not say which)".to_owned(),
    };
    let those = if matches!(unit, Unit::Column { .. }) {
        "those rows"
    } else {
        "that row"
    };
    let say = if matches!(unit, Unit::Column { .. }) {
        "say"
    } else {
        "says"
    };
    let relation_text = match relation {
        Some("add_remove") => format!("The promise compares the table <strong>with and without</strong> {those}."),
        Some("replace_one") => format!(
            "The promise compares the table with any table in which {those} {say} <strong>something else</strong>; the \
             size of the table is treated as public."
        ),
        _ => "The file does not name the neighbour relation, so no promise can be read from this report.".to_owned(),
    };
    format!("The protected unit is {unit_text}. {relation_text}")
}

/// The worst-case-odds paragraph as HTML.
///
/// `spent` is the cost under the plan's relation, `other` the cost under replace-one when the relation is add/remove.
/// Claims made (all hold for someone who knows every other unit):
/// pure ε: posterior odds move by at most e^ε.
/// (ε, δ): S = {P > e^{2ε} Q} has P(S) ≤ e^ε Q(S) + δ ≤ e^{−ε} P(S) + δ, so P(S) ≤ δ/(1 − e^{−ε}); the opposite
/// direction adds at most e^{−2ε} of the same, hence 2δ/(1 − e^{−ε}) in all.
/// ρ: the moment bound E exp((α−1)Z) ≤ exp((α−1)αρ) gives P(Z > ρ + t) ≤ exp(−t²/(4ρ)); with both directions and
/// t = 2√(ρ ln(2/β)) the odds move by at most e^{ρ+t} except with probability β.
pub(super) fn odds(
    relation: Option<&str>,
    unit: &Unit,
    spent: Option<&Cost>,
    other: Option<&Cost>,
) -> String {
    let (one, rest) = match unit {
        Unit::Row | Unit::Unknown => (
            "a given row".to_owned(),
            "every other row of the table".to_owned(),
        ),
        Unit::Column { column, .. } => {
            let c = escape(column);
            (
                format!("the rows of one given {c}"),
                format!("all rows of every other {c}"),
            )
        }
    };
    let verb = if matches!(unit, Unit::Column { .. }) {
        ("are", "they")
    } else {
        ("is", "it")
    };
    let Some(spent) = spent else {
        return "The cost of at least one release is missing or unlimited under the stated relation, so this report \
                cannot state a limit on what it reveals about one person."
            .to_owned();
    };
    let read = |v: &Option<String>| v.as_deref().and_then(value_of);
    let add_remove = match relation {
        Some("add_remove") => true,
        Some("replace_one") => false,
        _ => return "Without a neighbour relation no limit can be stated.".to_owned(),
    };
    let about = if add_remove {
        format!("that {one} {} in the table at all", verb.0)
    } else {
        format!("between any two things that {one} might say")
    };
    let start = format!(
        "Take someone who already knows {rest}. Reading this whole report can change their odds {about}"
    );
    match (read(&spent.epsilon), read(&spent.delta), read(&spent.rho)) {
        (Some(e), delta, None) if e >= 0.0 && delta.is_none_or(|d| d == 0.0) => {
            let mut text = format!(
                "{start} by at most a factor of e<sup>ε</sup> = <strong>{}</strong>, in either direction: from an even \
                 chance to {} at the most.",
                factor(e),
                percent_up(1.0 / (1.0 + (-e).exp()))
            );
            if add_remove {
                // Removing and adding costs at most 2ε; the exact replace-one cost may be smaller.
                let swap = other
                    .and_then(|c| read(&c.epsilon))
                    .filter(|x| *x >= 0.0)
                    .map_or(2.0 * e, |x| x.min(2.0 * e));
                let _ = write!(
                    text,
                    " Their odds between any two things {} might say change by at most a factor of {}.",
                    verb.1,
                    factor(swap)
                );
            }
            text + &remark(e)
        }
        (Some(e), Some(d), None) if e > 0.0 && d > 0.0 => {
            let miss = 2.0 * d / -(-e).exp_m1();
            let alarm = (e.exp() * 0.05 + d).min(1.0);
            let exception = if miss < 0.01 {
                format!(
                    " by at most a factor of e<sup>2ε</sup> = <strong>{}</strong>, except with probability at most {}.",
                    factor(2.0 * e),
                    scientific(miss * 1.005, 3)
                )
            } else {
                "; how far depends on luck.".to_owned()
            };
            format!(
                "{start}{exception} A test that wrongly says yes in 5 % of cases rightly says yes in at most {}.{}",
                percent_up(alarm),
                remark(e)
            )
        }
        (None, _, Some(r)) if r > 0.0 => {
            let beta: f64 = 1e-6;
            let e = r + 2.0 * (r * (2.0 / beta).ln()).sqrt();
            format!(
                "{start} by at most a factor of <strong>{}</strong>, except with probability at most one in a million \
                 (ρ = {}; smaller factors hold with somewhat smaller certainty).{}",
                factor(e),
                amount(spent.rho.as_deref().unwrap_or("")),
                remark(e)
            )
        }
        _ => "The total cost is not written in a form this report can read, so no limit is stated."
            .to_owned(),
    }
}

/// What a total in ε means as a factor, as plain text to follow a comma; empty for other currencies.
pub(super) fn as_factor(c: &Cost) -> String {
    match (c.epsilon.as_deref().and_then(value_of), &c.delta, &c.rho) {
        (Some(e), None, None) if e >= 0.0 => format!(", a factor of {}", factor(e)),
        _ => String::new(),
    }
}

fn remark(loss: f64) -> String {
    if loss > 5.0 {
        " A factor this large is a weak promise in the worst case.".to_owned()
    } else {
        String::new()
    }
}

/// The limit of every such promise, said once.
pub(super) const NOT_PROMISED: &str = "The promise concerns what one person’s own data add. It does not hide general facts, such \
    as income rising with education, that would be found without that person as well, even where such facts let others \
    guess something about them.";

// ---------------------------------------------------------------------------------------------
// Kinds, readings, flags

/// The name of a kind in words.
pub(super) fn kind(kind: &str) -> String {
    match kind {
        "count" => "Count",
        "sum" => "Sum",
        "mean" => "Mean",
        "histogram" => "Histogram",
        "crosstab" => "Cross-table",
        "quantiles" => "Quantiles",
        "bounds" => "Range",
        "top_k" => "Most frequent values",
        "running_total" => "Running total",
        "auc" => "Area under the ROC curve",
        "logistic" => "Logistic regression",
        "linear" => "Linear regression",
        "covariance" => "Covariance matrix",
        "regress" => "Regression from a covariance",
        "threshold" => "Probability threshold",
        "naive_bayes" => "Naive Bayes",
        "select" => "Chosen features",
        "roc" => "ROC curve",
        "residuals" => "Residual plot",
        "binned_residuals" => "Binned residual plot",
        "verify" => "Verified claim",
        "cross_validation" => "Cross-validation",
        other => {
            let other = other.replace('_', " ");
            let mut letters = other.chars();
            return letters
                .next()
                .map_or_else(String::new, |c| c.to_uppercase().chain(letters).collect());
        }
    }
    .to_owned()
}

/// What a cross-validation measures.
pub(super) fn measure(v: &Value) -> &'static str {
    match v.get("measure").and_then(Value::as_str) {
        Some("accuracy") => "Accuracy",
        _ => "AUC",
    }
}

/// How to read a sketch.
pub(super) const SKETCH: &str = "Each line is the sum over records of the square of a combination of columns, every column measured from its centre: the middle of its declared bounds, as the \
     condition narrows them (with data_norm: 0). Under repeated releases of the same records the interval holds it in 95 of 100; sampling is not part of it. What was added for privacy (last column) has been subtracted. \
     The error grows with the sum itself, so the noisy second moments of a covariance without method = \"sketch\", whose error does not, are usually better. Any other combination can be read off \
     the rows in release.json at no further cost.";

/// How to read the plot or table of a kind; plain text.
pub(super) fn reading(kind: &str) -> &'static str {
    match kind {
        "count" | "sum" => {
            "In 95 of 100 runs the added noise is no larger than the value after ±. Nothing else is in that error: values \
             held at declared bounds and sampling are not part of it."
        }
        "mean" => {
            "The mean is a released sum divided by a released count. The value after ± covers the added noise in 95 of 100 \
             runs; it says nothing about sampling error. Values outside the declared bounds were moved to the bound first."
        }
        "histogram" => {
            "Bars are released counts. Each whisker covers the noise added to that bar in 95 of 100 runs; a bar whose whisker \
             reaches zero may be empty. Negative counts come from the noise: they are kept in release.json and drawn as zero."
        }
        "crosstab" => {
            "The stronger the shade, the more records. Every cell carries the same noise, so compare a cell with the error given below \
             the table before reading anything into it."
        }
        "quantiles" => {
            "Each value is a point that roughly the stated share of records lies below. Errors are in ranks: the share really \
             below the value differs from the stated one by no more than the rank error in 95 of 100 runs."
        }
        "bounds" => {
            "A range that holds about the stated share of the records. It is rounded outward to a public grid; it is not the \
             smallest and largest value."
        }
        "top_k" => {
            "Values in the order in which they were chosen. Two that are closer than the stated number of records may stand in the \
             wrong order, or one of them may be missing."
        }
        "running_total" => {
            "The line is the released number of records up to each step. In 95 of 100 runs the true number at a given step lies in the \
             band. Neighbouring steps share noise, so the line may fall although the true numbers cannot; differences of far steps \
             are less sure than either end."
        }
        "auc" => {
            "The chance that a positive record scores higher than a negative one: 0.5 is no better than guessing, 1 is perfect. \
             The curve shows what such an area means if the scores of both classes are normal with equal variance on some scale; it is \
             not the curve of the data. \
             Rare draws of the noise are very large; a roc release gives the curve and is steadier with a thousand records or more."
        }
        "logistic" => {
            "Right of zero: the odds of the positive outcome rise with the term; left of zero they fall. A difference of 0.7 in \
             log odds about doubles the odds. The noise is inside the fit, so these estimates carry no interval; judge \
             the model by its ROC curve and binned residuals."
        }
        "naive_bayes" => {
            "Each term adds its number to the log odds of the positive outcome, as if the features were independent within each \
             outcome; a number enters by itself and by its square. All of it follows from the noisy counts and sums in \
             release.json. Judge it by its ROC curve and binned residuals: the order is often good where the probabilities are not."
        }
        "select" => {
            "Features that tell the outcomes apart, best first by their noisy scores. A feature with a true score near that of the last one \
             may be missing or be here by chance; scores of the chosen ones are on average a little too large."
        }
        "linear" | "regress" => {
            "Each bar covers the true coefficient in 95 of 100 studies, sampling error and privacy noise together. \
             A bar that crosses the zero line does not tell the sign of the effect."
        }
        "covariance" => {
            "Covariances are as released, with noise; correlations are taken after a repair that makes the matrix possible \
             (no negative eigenvalue). Any regression among these columns can be read off this release without further cost."
        }
        "threshold" => {
            "A row counts as positive from this probability on. It was read off the released ROC curve, so it costs nothing."
        }
        "roc" => {
            "The higher the curve above the diagonal, the better the model separates the two classes; on the diagonal it does \
             no better than chance. With probability 95 % the shaded area holds the whole curve that the same records give \
             without noise. How far other records would differ (sampling) is not part of it."
        }
        "residuals" => {
            "A level cloud around zero supports the model. A fan (the cloud widens to one side) means unequal variance: \
             standard errors are then wrong. A hook or arch means the relation is not linear: add a term or transform. \
             The points are drawn at random inside released cells. They show the shape of the cloud; no point is a record."
        }
        "binned_residuals" => {
            "Each circle is a group of records with similar fitted probabilities. About 95 % of the circles of a good model \
             lie between the dashed limits, which include sampling error and privacy noise. A run of circles outside, or a \
             slope or arch, means the fitted probabilities are wrong there: above zero they are too low, below it too high."
        }
        "verify" => {
            "The records were divided into groups by a public rule, a regression was fitted to each, and the groups voted; the number of votes was \
             released with noise. \"Undecided\" means that the votes do not show it through noise and chance: it does not mean no. \
             The question was about these records; a group has few of them, so an effect must be clear to be confirmed."
        }
        "cross_validation" => {
            "Every record was left out by one fit and judged by that fit alone. The figure is about models fitted with the budget and the \
             records of one fold's fit, fewer than the whole, so it is rather too low for a model fitted with more. The interval holds the \
             privacy noise and the choice of the records left out. Other training records would have given other models: that is \
             not part of it, and the folds show only some of it, since they share most of their training records. Fits and evaluations \
             of the folds are in release.json."
        }
        _ => "Values as released.",
    }
}

/// How to read a linear regression whose noise is on the coefficients.
pub(super) const OUTPUT_PERTURBATION: &str = "Noise was added to the coefficients of a ridge fit. Each coefficient is shrunk toward zero by the penalty and then \
    moved by the noise, whose standard deviation is stated; what sampling adds is not known here, so there are no intervals. A \
    linear release by noisy moments has them.";

/// A flag as a sentence; an unknown flag is shown as it is written.
pub(super) fn flag(flag: &str) -> String {
    let code = flag.trim().replace('-', "_");
    match code.as_str() {
        "size_unknown" => {
            "No public number of rows was declared, so the default rules took a cautious middle way; declare size_hint for better ones."
        }
        "noisy_folds" => {
            "Noise nearly drowns the area of some folds and draws it towards ½, and with it their mean: read the interval, not the estimate. Fewer folds or a larger ε would help."
        }
        "not_made" => {
            "This release could not be made from what the releases before it said; nothing was read from the data for it. Its budget counts as spent."
        }
        "too_few_rows" => {
            "There are too few records for this privacy budget: noise dominates. More records or a larger ε would be needed."
        }
        "negative_count" => "The noise made this count negative. It is kept as it is, so that sums stay unbiased; read it as 0.",
        "few_positives" => "Hardly any positive outcome rises above the noise; treat the curve as undetermined.",
        "few_negatives" => "Hardly any negative outcome rises above the noise; treat the curve as undetermined.",
        "too_little_signal" => "The smaller class has too few records for this budget: noise would draw the curve, so only its band is shown.",
        "thin_bins" => {
            "Some bins hold few records, so the curve is joined by straight lines and single bins should not be read closely."
        }
        "no_cells_above_noise" => "No cell rose above the noise threshold, so no points are drawn.",
        "flat_box" => "The released box has no width in one direction: all values look equal at this noise level.",
        "not_positive_semidefinite" => {
            "The noise made the matrix impossible (a negative eigenvalue). The raw matrix and a repaired one are both given."
        }
        "rows_shortened_with_outcome" => {
            "Long rows were shortened with the outcome counted in their length, which can bias this regression; ask for the covariance with clip = \"none\" to avoid it."
        }
        "added_dominates" => {
            "Along at least one direction what was added for privacy is more than what the records have: read the interval, not the estimate."
        }
        "threshold_not_measured" => "The curve has no measured threshold; ½ is used.",
        "fold_without_figure" => "For at least one fold noise leaves no figure; the others stand for it.",
        "projection_not_needed" => "The projection would not have reduced the number of columns, so none was made.",
        "no_standard_errors" => {
            "There are no standard errors, intervals or tests: they need the residual variance and how the columns vary together, which are not part of this release, and the penalty shrinks all coefficients toward 0. The noise alone is stated."
        }
        "rows_clipped" => "Long rows were shortened before fitting, at a released limit.",
        "constant_term" => "A term is constant over its declared bounds; it was left out and has coefficient 0.",
        "eigenvalues_floored" => {
            "Some columns can hardly be told apart at this noise level; the fit was kept stable, and their separate coefficients are unreliable."
        }
        "residual_below_noise" => {
            "The residual variance came out below what the noise allows to see and was set to its smallest sensible value."
        }
        "r_squared_undefined" => "The outcome shows no variance above the noise, so R² has no meaning here.",
        "not_finite" => "A number grew beyond what can be written and is left out.",
        "clamped" => "A value left its public bounds because of the noise and was moved back to them.",
        "sorted" => "The noise put some quantiles out of order; they are shown sorted.",
        "simulated" => "SIMULATED: made with a fixed seed on public data. This is not a private release.",
        "public" | "public_model" => "The curator declared this public; nothing was spent on it.",
        _ => return flag.trim().to_owned(),
    }
    .to_owned()
}

/// A line under the plot that says at which cost it was made; plain text.
pub(super) fn basis(relation: Option<&str>, spent: Option<&Cost>) -> String {
    let relation = match relation {
        Some("add_remove") => "add/remove",
        Some("replace_one") => "replace one",
        _ => "relation not stated",
    };
    match spent {
        Some(c) => format!("{}, {relation}", cost(c)),
        None => format!("no finite cost, {relation}"),
    }
}

/// A p value as R prints it.
pub(super) fn probability(p: f64) -> String {
    if p < 2e-16 {
        "below 2 × 10⁻¹⁶".to_owned()
    } else if p < 1e-3 {
        scientific(p, 2)
    } else {
        fixed(p, 3)
    }
}

/// A share in per cent.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", number((share * 1e5).round() / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epsilon(e: &str) -> Cost {
        Cost {
            epsilon: Some(e.to_owned()),
            ..Cost::default()
        }
    }

    #[test]
    fn digits_follow_the_error() {
        assert_eq!(plus_minus(Some(0.891_234), Some(0.0041)), "0.8912 ± 0.0041");
        assert_eq!(plus_minus(Some(31402.0), Some(38.0)), "31\u{202f}402 ± 38");
        assert_eq!(plus_minus(Some(-3.0), Some(6.0)), "−3 ± 6");
        assert_eq!(
            plus_minus(Some(1_234_567.89), Some(4321.5)),
            "1\u{202f}234\u{202f}600 ± 4400"
        );
        assert_eq!(
            plus_minus(Some(48_812_345.0), Some(1_198_293.0)),
            "48\u{202f}800\u{202f}000 ± 1\u{202f}200\u{202f}000"
        );
        assert_eq!(plus_minus(Some(0.5), Some(0.00411)), "0.5000 ± 0.0042");
        assert_eq!(plus_minus(Some(12.0), Some(2.5)), "12.0 ± 2.5");
        assert_eq!(plus_minus(Some(5.0), None), "5");
        assert_eq!(plus_minus(None, Some(1.0)), NONE);
        assert_eq!(plus_minus(Some(5.0), Some(f64::NAN)), "5");
        assert_eq!(interval(Some(0.8851), Some(0.9011)), "0.8851 to 0.9011");
        assert_eq!(fixed(-0.0001, 2), "0.00");
        assert_eq!(number(f64::INFINITY), NONE);
        assert_eq!(number(1.5e-7), "1.5 × 10⁻⁷");
        assert_eq!(number(-0.5), "−0.5");
        assert_eq!(number(1996.0), "1996");
    }

    #[test]
    fn factors_are_rounded_up() {
        assert_eq!(factor(0.5), "1.65"); // 1.6487
        assert_eq!(factor(1.0), "2.72"); // 2.71828
        assert_eq!(factor(2.0), "7.39"); // 7.38906
        assert_eq!(factor(0.1), "1.11"); // 1.10517
        assert_eq!(factor(10.0), "22\u{202f}027"); // 22026.47
        assert_eq!(factor(1e-9), "1.0000000011");
        assert_eq!(factor(0.0), "1");
        assert_eq!(factor(1e9), "any amount");
        assert_eq!(factor(f64::NAN), "any amount");
        for i in 1..2000 {
            let x = f64::from(i) * 0.01;
            let shown = factor(x).replace('\u{202f}', "");
            if let Ok(v) = shown.parse::<f64>() {
                assert!(v >= x.exp() * (1.0 - 1e-12), "{x}: {shown}");
                assert!(v <= x.exp() * 1.011, "{x}: {shown}");
            }
        }
    }

    #[test]
    fn odds_for_pure_epsilon_under_both_relations() {
        let text = odds(Some("add_remove"), &Unit::Row, Some(&epsilon("0.5")), None);
        assert!(
            text.contains("e<sup>ε</sup> = <strong>1.65</strong>"),
            "{text}"
        );
        assert!(text.contains("63 %"), "{text}"); // 1/(1+e^-0.5) = .6225
        assert!(
            text.contains("at all") && text.contains("factor of 2.72"),
            "{text}"
        );
        // The exact replace-one price is used where it is below twice the other.
        let text = odds(
            Some("add_remove"),
            &Unit::Row,
            Some(&epsilon("0.5")),
            Some(&epsilon("0.6")),
        );
        assert!(text.contains("factor of 1.83"), "{text}"); // e^0.6 = 1.8221
        let text = odds(Some("replace_one"), &Unit::Row, Some(&epsilon("1")), None);
        assert!(
            text.contains("between any two things") && !text.contains("at all"),
            "{text}"
        );
        assert!(text.contains("<strong>2.72</strong>"), "{text}");
    }

    #[test]
    fn odds_for_delta_and_rho() {
        let c = Cost {
            epsilon: Some("1".into()),
            delta: Some("1e-6".into()),
            rho: None,
        };
        let text = odds(Some("add_remove"), &Unit::Row, Some(&c), None);
        // e² = 7.389; 2e-6 / (1 − e⁻¹) = 3.164e-6; e·0.05 + 1e-6 = .1359.
        assert!(
            text.contains("<strong>7.39</strong>")
                && text.contains("3.18 × 10⁻⁶")
                && text.contains("14 %"),
            "{text}"
        );
        let r = Cost {
            rho: Some("0.05".into()),
            ..Cost::default()
        };
        let text = odds(Some("replace_one"), &Unit::Row, Some(&r), None);
        // .05 + 2·sqrt(.05·ln(2e6)) = 1.75346; e^ of it 5.7746.
        assert!(
            text.contains("<strong>5.78</strong>") && text.contains("one in a million"),
            "{text}"
        );
    }

    #[test]
    fn odds_for_units_with_several_rows_and_for_odd_input() {
        let unit = Unit::Column {
            column: "<b>person".into(),
            max_rows: Some(4),
        };
        let text = odds(Some("add_remove"), &unit, Some(&epsilon("1")), None);
        assert!(
            text.contains("the rows of one given &lt;b&gt;person are in the table"),
            "{text}"
        );
        assert!(protection(Some("add_remove"), &unit).contains("no more than 4 rows of each"));
        assert!(
            protection(Some("replace_one"), &Unit::Row)
                .contains("that row says <strong>something else")
        );
        assert!(odds(Some("add_remove"), &Unit::Row, None, None).contains("cannot state"));
        assert!(odds(None, &Unit::Row, Some(&epsilon("1")), None).contains("no limit"));
        for e in ["nan", "inf", "-1", "", "x"] {
            assert!(
                odds(Some("add_remove"), &Unit::Row, Some(&epsilon(e)), None).contains("no limit"),
                "{e}"
            );
        }
        assert!(
            odds(Some("add_remove"), &Unit::Row, Some(&epsilon("30")), None)
                .contains("more than 99 %")
        );
        assert!(
            odds(Some("add_remove"), &Unit::Row, Some(&epsilon("1e9")), None)
                .contains("weak promise")
        );
    }

    #[test]
    fn sums_of_decimals_are_exact() {
        assert_eq!(combine("0.1", "0.2", 1).as_deref(), Some("0.3"));
        assert_eq!(combine("1", "0.9", -1).as_deref(), Some("0.1"));
        assert_eq!(combine("1e-7", "1e-9", 1).as_deref(), Some("0.000000101"));
        assert_eq!(combine("1e3", "-0.5", 1).as_deref(), Some("999.5"));
        assert_eq!(
            combine("1/4", "0.25", 1).as_deref().and_then(value_of),
            Some(0.5)
        );
        assert_eq!(combine("x", "1", 1), None);
        assert_eq!(combine("1.-5", "1", 1), None);
        let mut sum = "0".to_owned();
        for _ in 0..100 {
            sum = combine(&sum, "0.01", 1).unwrap();
        }
        assert_eq!(sum, "1");
        assert_eq!(amount("0.333333333333333333"), "≈ 0.333333");
        assert_eq!(amount("1e-7"), "10⁻⁷");
        assert_eq!(cost(&Cost::default()), NONE);
    }

    #[test]
    fn unknown_flags_and_kinds_are_shown_as_written() {
        assert_eq!(flag("odd thing"), "odd thing");
        for code in [
            "size_unknown",
            "not_made",
            "noisy_folds",
            "too_few_rows",
            "negative_count",
            "few_positives",
            "few_negatives",
            "too_little_signal",
            "thin_bins",
            "no_cells_above_noise",
            "flat_box",
            "rows_clipped",
            "no_standard_errors",
            "constant_term",
            "eigenvalues_floored",
            "residual_below_noise",
            "r_squared_undefined",
            "not_finite",
            "clamped",
            "sorted",
        ] {
            assert_ne!(
                flag(code),
                code,
                "every flag of the statistics has a sentence"
            );
        }
        assert!(flag("few-positives").contains("undetermined"));
        assert_eq!(kind("naive_bayes"), "Naive Bayes");
        assert_eq!(kind(""), "");
    }
}
