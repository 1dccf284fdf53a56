//! Mean error of the default's area on the yardstick.

use super::bench::{Bench, SEED, epsilon, runs};
use super::head;
use crate::public::{RELATIONS, mean};
use crate::real;
use crate::study::{Findings, Form, StudyError};
use reticent_statistics::roc::Config;

/// Records, ε, the largest mean error under add/remove and under replace-one.
const SETTINGS: [(usize, &str, [f64; 2]); 5] = [
    (1_000, "0.1", [0.050, 0.10]),
    (1_000, "1", [0.0055, 0.0095]),
    (10_000, "1", [0.0009, 0.0012]),
    (100_000, "1", [0.000_13, 0.000_25]),
    (1_000_000, "1", [0.000_018, 0.000_035]),
];

/// Absolute errors of the area, `each` runs on every one of `sets` data sets.
///
/// # Errors
/// When a release cannot be made.
pub fn area_errors(
    (rows, text): (usize, &str),
    which: usize,
    sets: u32,
    each: u32,
) -> Result<Vec<f64>, StudyError> {
    let config = Config::new(epsilon(text)?);
    let mut all = Vec::new();
    for set in 0..sets {
        let bench = Bench::yardstick(rows, u64::from(set));
        let first = u64::from(set) * 1000 + which as u64 * 500;
        let found = runs(first, each, |run| {
            bench.run(RELATIONS[which].0, &config, run)
        })?;
        all.extend(found.iter().map(|r| r.area.abs()));
    }
    Ok(all)
}

/// Runs the study.
///
/// # Errors
/// When a release cannot be made.
pub fn run(form: Form) -> Result<Findings, StudyError> {
    let (settings, sets, each) = (form.pick(2, 5), form.pick(4, 20), form.pick(5, 10));
    let mut out = Findings {
        settings: vec![format!(
            "Data: y ~ Bernoulli(.4), score logistic(N(0, 1) + 1.6y − 1.2), sets 0 to {} of the reference generator (NumPy's numbers), AUC about .871; \
             {each} runs each, noise seed {SEED}. `kind = \"roc\"` with its defaults; n is declared.",
            sets - 1
        )],
        head: head([
            "n",
            "ε",
            "relation",
            "mean abs. AUC error ± s.e.",
            "at most",
            "median",
            "largest",
        ]),
        ..Findings::default()
    };
    for (rows, text, limits) in SETTINGS.into_iter().take(settings as usize) {
        for (which, (_, name)) in RELATIONS.into_iter().enumerate() {
            let mut all = area_errors((rows, text), which, sets, each)?;
            all.sort_by(f64::total_cmp);
            let centre = mean(&all);
            let squares: f64 = all.iter().map(|e| (e - centre).powi(2)).sum();
            let error = squares.sqrt() / real(all.len());
            let limit = limits[which];
            out.rows.push(vec![
                rows.to_string(),
                text.to_owned(),
                name.to_owned(),
                format!("{centre:.6} ± {error:.6}"),
                limit.to_string(),
                format!("{:.6}", all[all.len() / 2]),
                format!("{:.6}", all[all.len() - 1]),
            ]);
            // 20 runs are no 200: the short form asks for three times the limit.
            let factor = f64::from(form.pick(3, 1));
            out.require(
                centre <= factor * limit,
                format!(
                    "mean abs. AUC error at n = {rows}, ε = {text}, {name}: {centre:.6} (at most {})",
                    factor * limit
                ),
            );
        }
    }
    Ok(out)
}
