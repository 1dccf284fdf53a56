//! Figure 5.2: a stream, and what is released of it, at its first 8,000 ticks.

use super::{Outputs, Series, scaled, series};
use crate::panels::{Panel, Pictures};
use crate::real;
use crate::study::{Findings, Form, StudyError};

/// Ticks that are drawn.
const TICKS: usize = 8_000;
/// Strokes of a panel; each goes from the least to the largest value of its ticks.
const STROKES: usize = 180;
const METHODS: [&str; 3] = ["Laplace", "PeGaSus", "filters"];

/// Ranges of consecutive ticks, values below 0 drawn as 0 (as the thesis does).
fn panel(title: String, top: f64, values: &[f64]) -> Panel {
    let ticks = real(values.len());
    let each = values.len().div_ceil(STROKES).max(1);
    let ranges = values.chunks(each).enumerate().map(|(i, part)| {
        let low = part.iter().copied().fold(f64::INFINITY, f64::min).max(0.0);
        let high = part.iter().copied().fold(0.0, f64::max);
        [real(i * each), low, high]
    });
    Panel {
        title,
        x: (0.0, ticks),
        y: (0.0, top),
        ranges: ranges.collect(),
        ..Panel::default()
    }
}

/// The busiest stream, as in the thesis.
fn busiest(form: Form) -> Result<Series, StudyError> {
    let name = form.either("DFW", "flights high");
    let found = series(form)?.into_iter().find(|s| s.name == name);
    found.ok_or_else(|| StudyError::Example(format!("no stream {name}")))
}

/// Draws the stream with what three methods release of it, and says how far they are from it.
///
/// # Errors
/// When the data cannot be read, or the picture not be written.
pub fn run(form: Form) -> Result<Findings, StudyError> {
    let mut whole = busiest(form)?;
    whole.counts.truncate(TICKS);
    let counts = &whole.counts;
    let exact: Vec<f64> = counts.iter().map(|c| *c as f64).collect();
    let top = 1.25 * exact.iter().copied().fold(1.0, f64::max);
    let mut findings = Findings {
        settings: vec![format!(
            "The first {} ticks of {}, one run, seed {}: scaled total L1 error, values below 0 cut. PeGaSus with the thesis's constants and medians.",
            counts.len(),
            whole.name,
            super::SEED
        )],
        head: super::head(&["ε", "Laplace", "PeGaSus", "filters"]),
        ..Findings::default()
    };
    let mut panels = vec![panel("true".to_owned(), top, &exact)];
    // the rest of the first row is empty
    panels.extend([Panel::default(), Panel::default()]);
    for epsilon in ["0.1", "0.01"] {
        let of = Outputs::new(&whole, epsilon, 0)?;
        let noisy: Vec<f64> = of.noisy.iter().map(|z| *z as f64).collect();
        let outputs = [noisy, of.medians, of.filtered];
        let errors = outputs
            .each_ref()
            .map(|v| scaled(counts, v.iter().copied()));
        findings.require(
            errors[2] < errors[0].min(errors[1]),
            format!(
                "ε = {epsilon}: the filtered stream is nearest to the true one: {}",
                errors.map(super::three).join(", ")
            ),
        );
        let row = std::iter::once(epsilon.to_owned()).chain(errors.map(super::three));
        findings.rows.push(row.collect());
        for (method, values) in METHODS.iter().zip(&outputs) {
            panels.push(panel(format!("{method}, ε = {epsilon}"), top, values));
        }
    }
    Pictures::from_env().write(
        "figure-5-2.svg",
        "Figure 5.2: a stream and its private releases",
        "A panel with the true counts of a stream, then two rows of three panels: Laplace counts, PeGaSus and filters with epsilon 0.1 and 0.01.",
        3,
        &panels,
    )?;
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strokes_span_their_ticks() {
        let values: Vec<f64> = (0..1_000).map(|t| f64::from(t % 7) - 3.0).collect();
        let drawn = panel("t".to_owned(), 4.0, &values);
        assert_eq!(drawn.ranges.len(), 167);
        assert!(drawn.ranges.iter().all(|r| r[1] == 0.0 && r[2] <= 3.0));
        let second = drawn.ranges[1];
        assert!((second[0] - 6.0).abs() + second[1].abs() + (second[2] - 3.0).abs() < 1e-12);
    }
}
