//! Reports as text, as JSON and as a picture.

use std::fmt::Write as _;

use serde::Serializer;

use super::{Auditable, Report};
use crate::picture::{Axis, Chart, short};

/// A number, or "infinite": JSON has no infinity.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub(super) fn number<S: Serializer>(x: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if x.is_finite() {
        serializer.serialize_f64(*x)
    } else {
        serializer.serialize_str("infinite")
    }
}

fn in_words(x: f64) -> String {
    if x.is_infinite() {
        "infinite".to_owned()
    } else {
        format!("{x:.7}")
    }
}

/// The report in words.
pub fn text(report: &Report) -> String {
    let mut out = format!("{}: {}\n", report.name, report.about);
    let claim = report.claim;
    let _ = write!(out, "  claimed       epsilon {}", claim.epsilon);
    if claim.delta > 0.0 {
        let _ = write!(out, ", delta {:.3e}", claim.delta);
    }
    out.push('\n');
    if let Some(exact) = &report.exact {
        let _ = writeln!(
            out,
            "  exact loss    {} ({}){}",
            in_words(exact.loss),
            exact.how,
            if report.flagged_exactly {
                "  refutes the claim"
            } else {
                ""
            }
        );
        if let Some(delta) = exact.delta
            && report.flagged_exactly
        {
            let _ = writeln!(
                out,
                "  exact delta   {delta:.3e} at epsilon {}",
                claim.epsilon
            );
        }
    }
    if let Some(s) = &report.statistical {
        let last = s.looks.last();
        let _ = writeln!(
            out,
            "  runs          {} on each of two tables: {} | {}",
            last.map_or(0, |l| l.runs),
            s.tables.0,
            s.tables.1
        );
        let _ = writeln!(out, "  event         {}", s.event);
        let _ = writeln!(
            out,
            "  hits          {} | {}",
            last.map_or(0, |l| l.more),
            last.map_or(0, |l| l.less)
        );
        let _ = writeln!(
            out,
            "  lower bounds  epsilon {:.4}; delta {:.3e} at the claimed epsilon (each wrong with probability at most {:.0e}){}",
            s.epsilon,
            s.delta,
            s.false_alarm,
            if report.flagged_statistically {
                "  refutes the claim"
            } else {
                ""
            }
        );
    }
    if let Some(r) = &report.replay {
        if r.different_draws == 0 {
            let _ = writeln!(
                out,
                "  same tapes    draws agree in law, scale and order on every one"
            );
        } else {
            let _ = writeln!(
                out,
                "  same tapes    draws differ {} times, {} of them with the same output{}",
                r.different_draws,
                r.hidden_difference,
                r.example
                    .as_ref()
                    .map_or_else(String::new, |(a, b)| format!(" (first: {a} | {b})"))
            );
        }
    }
    let _ = writeln!(
        out,
        "  verdict       {}",
        if report.flagged() {
            "FLAGGED: the claim is false"
        } else {
            "not flagged"
        }
    );
    out
}

/// One line per report.
pub fn summary(reports: &[Report]) -> String {
    let mut out = format!(
        "{:<24} {:>8} {:>12} {:>12} {:>9}  verdict\n",
        "mechanism", "claimed", "exact", "at least", "runs"
    );
    for r in reports {
        let s = r.statistical.as_ref();
        let _ = writeln!(
            out,
            "{:<24} {:>8} {:>12} {:>12} {:>9}  {}",
            r.name,
            r.claim.epsilon,
            r.exact
                .as_ref()
                .map_or_else(|| "-".to_owned(), |e| in_words(e.loss)),
            s.map_or_else(|| "-".to_owned(), |s| format!("{:.4}", s.epsilon)),
            s.and_then(|s| s.looks.last())
                .map_or_else(|| "-".to_owned(), |l| l.runs.to_string()),
            match (r.flagged_exactly, r.flagged_statistically) {
                (true, true) => "FLAGGED exactly, statistically",
                (true, false) => "FLAGGED exactly",
                (false, true) => "FLAGGED statistically",
                (false, false) => "not flagged",
            }
        );
    }
    out
}

/// A line of the list of mechanisms.
pub fn listed(mechanism: &dyn Auditable) -> String {
    format!("  {:<24} {}\n", mechanism.name(), mechanism.about())
}

/// Lower bound against runs, with the claim and the exact loss.
#[allow(clippy::cast_precision_loss, reason = "a drawing")]
pub fn picture(report: &Report) -> String {
    let looks = report
        .statistical
        .as_ref()
        .map_or(&[] as &[_], |s| s.looks.as_slice());
    let exact = report
        .exact
        .as_ref()
        .map(|e| e.loss)
        .filter(|l| l.is_finite());
    let claimed = report.claim.epsilon;
    let proved = looks.iter().map(|l| l.epsilon).fold(0.0, f64::max);
    let top = 1.15 * claimed.max(proved).max(exact.unwrap_or(0.0));
    let (first, last) = (
        looks.first().map_or(100.0, |l| l.runs as f64),
        looks.last().map_or(1000.0, |l| l.runs as f64),
    );
    let mut chart = Chart::new(
        &format!(
            "{}: {}",
            report.name,
            if report.flagged() {
                "flagged"
            } else {
                "not flagged"
            }
        ),
        Axis::log(0.7 * first, 1.4 * last.max(first), "runs on each table"),
        Axis::linear(0.0, top, "privacy loss ε"),
    );
    let across = |y: f64| [(0.7 * first, y), (1.4 * last.max(first), y)];
    chart.line("blue dash", across(claimed));
    chart.note("blue dash", "claimed");
    if let Some(loss) = exact {
        chart.line("red dash", across(loss));
        chart.note("red dash", "exact loss");
    }
    chart.line("red", looks.iter().map(|l| (l.runs as f64, l.epsilon)));
    looks
        .iter()
        .for_each(|l| chart.dot("rf", (l.runs as f64, l.epsilon), 4.0));
    chart.note("red", "statistical lower bound");
    chart.svg(false)
}

/// Claims, exact losses and lower bounds of many mechanisms, in units of the claimed ε, one row each.
pub fn overview(reports: &[Report]) -> String {
    let n = reports.len();
    #[allow(clippy::cast_precision_loss, reason = "a drawing")]
    let rows = n as f64;
    let most = 100.0;
    let mut chart = Chart::new(
        "Privacy loss in units of the claimed ε",
        Axis::log(
            0.05,
            most,
            "loss / claimed ε (100: that or more, or infinite)",
        ),
        Axis::linear(0.0, rows, ""),
    )
    .sized(110.0 + 22.0 * rows, 190.0);
    chart.note("rf", "exact loss");
    chart.note("bf", "statistical lower bound");
    chart.line("blue dash", [(1.0, 0.0), (1.0, rows)]);
    for (i, r) in reports.iter().enumerate() {
        #[allow(clippy::cast_precision_loss, reason = "a drawing")]
        let y = rows - i as f64 - 0.5;
        chart.label((0.05, y), (-8.0, 4.0), "end", &r.name);
        chart.line("g", [(0.05, y), (most, y)]);
        if let Some(e) = &r.exact {
            let x = (e.loss / r.claim.epsilon).min(most);
            chart.dot("rf", (x, y), 5.0);
            if e.loss.is_infinite() {
                chart.label((x, y), (-9.0, 4.0), "end", &short(e.loss));
            }
        }
        if let Some(s) = &r.statistical {
            chart.dot("bf", (s.epsilon / r.claim.epsilon, y), 3.5);
        }
    }
    chart.svg(true)
}
