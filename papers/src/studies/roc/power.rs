//! Table 4.3: which areas a release tells apart.
//!
//! *Protocol of the papers.* n records, half of them positive, with a curve of area a; 20 private areas of it and 20 of a curve of
//! area a + δ; Student's test of the two means. δ is told apart if p < .05 for every adjacent pair of .7, .7 + δ, …, .95. As one such experiment is
//! itself random, it is repeated, and the share of repetitions in which all pairs are told apart stands beside the first one's largest p.

use rayon::prelude::*;
use reticent_accounting::Relation;
use reticent_statistics::histogram::Method;
use reticent_statistics::roc::Config;

use super::bench::{Bench, SEED, epsilon, printed};
use super::head;
use crate::public::{RELATIONS, mean};
use crate::real;
use crate::studies::at;
use crate::study::{Findings, Form, StudyError};

/// Private areas per curve.
const EACH: u32 = 20;

/// n·ε, δ, the papers' largest p, whether it is required under add/remove and under replace-one.
const SETTINGS: [(usize, f64, &str, [bool; 2]); 5] = [
    (200, 0.1, "3.7e-3", [false, false]),
    (500, 0.05, "1.31e-2", [false, false]),
    (500, 0.025, "above .05", [true, false]),
    (1000, 0.025, "3.29e-3", [true, true]),
    (2000, 0.01, "1.58e-5", [true, true]),
];

/// Two-sided p of Student's test of two equally large samples; 1 if their means are in the wrong order.
fn p_value(low: &[f64], high: &[f64]) -> f64 {
    let squares = |xs: &[f64]| {
        let m = mean(xs);
        xs.iter().map(|x| (x - m).powi(2)).sum::<f64>()
    };
    let n = real(low.len());
    let degrees = 2.0 * n - 2.0;
    let variance = (squares(low) + squares(high)) / degrees;
    let t = (mean(high) - mean(low)) / (variance * 2.0 / n).sqrt();
    if t > 0.0 { both_tails(t, degrees) } else { 1.0 }
}

/// P(|T| > t): with t = √ν·tan θ the density is proportional to cos^{ν−1} θ.
fn both_tails(t: f64, degrees: f64) -> f64 {
    let from = (t / degrees.sqrt()).atan();
    let integral = |a: f64| {
        let cells = 4000;
        let step = (std::f64::consts::FRAC_PI_2 - a) / f64::from(cells);
        (0..cells)
            .map(|i| (a + (f64::from(i) + 0.5) * step).cos().powf(degrees - 1.0))
            .sum::<f64>()
            * step
    };
    integral(from) / integral(0.0)
}

/// The largest p over adjacent areas, for every repetition.
///
/// # Errors
/// When a release cannot be made.
pub fn largest(
    (rows, step): (usize, f64),
    relation: Relation,
    config: &Config,
    repetitions: u32,
) -> Result<Vec<f64>, StudyError> {
    let mut areas = Vec::new();
    while 0.7 + step * real(areas.len()) < 0.95 + 1e-9 {
        areas.push(0.7 + step * real(areas.len()));
    }
    let released: Vec<Vec<f64>> = (areas.par_iter().enumerate())
        .map(|(place, area)| {
            let bench = Bench::of_area(rows, *area);
            (0..EACH * repetitions)
                .map(|run| {
                    let stream = 1_000_000 + place as u64 * 10_000 + u64::from(run);
                    Ok(at(&bench.value(relation, config, stream)?, "auc"))
                })
                .collect()
        })
        .collect::<Result<_, StudyError>>()?;
    let each = EACH as usize;
    Ok((0..repetitions as usize)
        .map(|k| {
            let part = |xs: &'_ [f64]| -> Vec<f64> { xs[k * each..(k + 1) * each].to_vec() };
            (released.windows(2))
                .map(|pair| p_value(&part(&pair[0]), &part(&pair[1])))
                .fold(0.0, f64::max)
        })
        .collect())
}

/// Runs the study.
///
/// # Errors
/// When a release cannot be made.
pub fn run(form: Form) -> Result<Findings, StudyError> {
    let repetitions = form.pick(1, 20);
    let mut out = Findings {
        settings: vec![
            format!(
                "ε = 1, n records, half of them positive, logistic scores at even quantiles; {EACH} private areas per curve, \
                 {repetitions} repetition(s), noise seed {SEED}. \"Papers\": replace-one in the 2016 paper, which prints δ = .025 in its last row where the thesis prints .01."
            ),
            "\"printed\": 2¹⁰ smooth medians for a fifth of ε, counts by DAWA, corrected constants, one repetition.".to_owned(),
        ],
        head: head([
            "n·ε",
            "δ",
            "release",
            "papers: largest p",
            "add/remove: largest p (all told apart)",
            "replace-one: largest p (all told apart)",
        ]),
        ..Findings::default()
    };
    let e = epsilon("1")?;
    let default = Config::new(e.clone());
    for (rows, step, paper, wanted) in SETTINGS {
        if form == Form::Quick && rows != 1000 {
            continue;
        }
        let mut row = vec![
            rows.to_string(),
            step.to_string(),
            "default".to_owned(),
            paper.to_owned(),
        ];
        for (which, (relation, name)) in RELATIONS.into_iter().enumerate() {
            let all = largest((rows, step), relation, &default, repetitions)?;
            let apart = all.iter().filter(|p| **p < 0.05).count();
            row.push(format!("{:.1e} ({apart} of {repetitions})", all[0]));
            if wanted[which] {
                out.require(
                    all[0] < 0.05 && real(apart) >= 0.95 * f64::from(repetitions),
                    format!(
                        "areas {step} apart are told apart at n·ε = {rows}, {name}: largest p {:.1e}; all pairs in {apart} of {repetitions} repetitions",
                        all[0]
                    ),
                );
            }
        }
        out.rows.push(row);
        if form == Form::Full {
            let mut row = vec![
                rows.to_string(),
                step.to_string(),
                "printed".to_owned(),
                paper.to_owned(),
            ];
            let config = printed(&e, Method::Dawa);
            for (relation, _) in RELATIONS {
                let all = largest((rows, step), relation, &config, 1)?;
                let apart = all.iter().filter(|p| **p < 0.05).count();
                row.push(format!("{:.1e} ({apart} of 1)", all[0]));
            }
            out.rows.push(row);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_students() {
        // Tables: t(38) = 2.0244 and t(10) = 4.5869 have two-sided .05 and .001.
        assert!((both_tails(2.0244, 38.0) - 0.05).abs() < 1e-5);
        assert!((both_tails(4.5869, 10.0) - 0.001).abs() < 1e-6);
        let (a, b) = ([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]);
        assert!((p_value(&b, &a) - 1.0).abs() < 1e-15);
        // t = 1/√(2/3) = 1.2247 with 4 degrees: .28786.
        assert!((p_value(&a, &b) - 0.287_86).abs() < 1e-4);
    }
}
