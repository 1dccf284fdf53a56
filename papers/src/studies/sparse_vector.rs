//! Tables 3.1 to 3.3 of Chen's thesis (2018): reconstruction of four histograms through threshold testing without a
//! cut-off, and the accuracy theorems of the sparse vector technique by simulation.
//!
//! The histograms are DPBench's, read from `$RETICENT_DATA/dpbench_1d` (the short form: capital loss of the Adult example). The attack is Algorithm 7 of the thesis with the constants that give its
//! figures ([`Config::printed`]); the constants it states ([`Config::stated`]) are reported beside them.

use std::path::PathBuf;

use rayon::prelude::*;
use reticent_audit::attacks::histogram;
use reticent_audit::attacks::reconstruct::{Config, exact_prefix, reconstruct, success, unbroken};
use reticent_laws::Seeded;
use reticent_noise::{Lattice, Noise, Rational, Scale};

use crate::public::examples;
use crate::real;
use crate::study::{Findings, Form, StudyError};

/// Seed of all runs; the run is the stream.
pub const SEED: u64 = 2_018;
/// Repetitions in the thesis.
pub const REPETITIONS: u64 = 10;

/// A row of the thesis: name, scale, k, cells with counts 0 to 5, success at ε = 1, .5, .1 for all cells and for those.
pub struct Printed {
    /// File name and the thesis' name.
    pub name: (&'static str, &'static str),
    /// Table 3.1: number of records, k.
    pub overview: (i64, i64),
    /// Table 3.3: number of cells with 0 to 5 records.
    pub small_cells: usize,
    /// Table 3.2.
    pub all: [f64; 3],
    /// Table 3.3.
    pub small: [f64; 3],
}

/// The rows of Tables 3.1 to 3.3.
pub const PRINTED: [Printed; 4] = [
    Printed {
        name: ("ADULT", "Adult"),
        overview: (17_665, 15),
        small_cells: 4062,
        all: [0.994, 0.991, 0.981],
        small: [0.999, 0.997, 0.992],
    },
    Printed {
        name: ("MEDCOST", "MedicalCost"),
        overview: (9_415, 26),
        small_cells: 3878,
        all: [0.985, 0.977, 0.949],
        small: [1.0, 1.0, 0.960],
    },
    Printed {
        name: ("INCOME", "Income"),
        overview: (20_787_122, 98),
        small_cells: 2369,
        all: [0.798, 0.741, 0.636],
        small: [1.0, 1.0, 0.979],
    },
    Printed {
        name: ("HEPTH", "HepPh"),
        overview: (347_414, 275),
        small_cells: 1153,
        all: [0.904, 0.795, 0.477],
        small: [1.0, 1.0, 0.970],
    },
];

/// The ε of the tables.
pub const EPSILONS: [&str; 3] = ["1", "0.5", "0.1"];

fn epsilon(text: &str) -> Rational {
    let tenths: u32 = match text {
        "1" => 10,
        "0.5" => 5,
        _ => 1,
    };
    Rational::from(tenths) / Rational::from(10u8)
}

/// The four histograms; an error that says how to get them if they are not there. The short form has capital loss of the Adult
/// example alone: the cells of DPBench's ADULT, which holds a third of its records.
pub fn histograms(form: Form) -> Result<Vec<Vec<i64>>, StudyError> {
    if form == Form::Quick {
        let path = examples().join("adult/adult.csv.gz");
        let text = histogram::text(&path).map_err(StudyError::release)?;
        return Ok(vec![
            histogram::capital_loss(&text, "adult").map_err(StudyError::release)?,
        ]);
    }
    let root = std::env::var_os("RETICENT_DATA").ok_or_else(|| {
        StudyError::Example(
            "RETICENT_DATA must name a folder with dpbench_1d/ADULT.csv and its neighbours (papers/README.md)"
                .to_owned(),
        )
    })?;
    PRINTED
        .iter()
        .map(|p| {
            let path = PathBuf::from(&root)
                .join("dpbench_1d")
                .join(format!("{}.csv", p.name.0));
            let text = histogram::text(&path).map_err(StudyError::release)?;
            histogram::counts(&text, p.name.0).map_err(StudyError::release)
        })
        .collect()
}

/// Success rates of many runs: mean and deviation of a run, over all cells and over cells with 0 to 5.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// All cells: mean, standard deviation of one run.
    pub all: (f64, f64),
    /// Cells with 0 to 5 records.
    pub small: (f64, f64),
    /// Share of the runs whose first groups are exactly the cells with 0, …, k − 2θ (Theorem 6).
    pub prefix: f64,
    /// Mean over the first ten runs.
    pub ten: (f64, f64),
}

/// Runs the attack `runs` times.
pub fn rates(counts: &[i64], config: &Config, runs: u64) -> Result<Rates, StudyError> {
    let bound = unbroken(counts).map_or(-1, |k| i128::from(k) - 2 * config.offset());
    let rows: Vec<(f64, f64, bool)> = (0..runs)
        .into_par_iter()
        .map(|run| {
            let mut noise = Seeded::stream(SEED, run);
            let found = reconstruct(counts, config, &mut noise).map_err(StudyError::release)?;
            let m = i64::try_from(bound).unwrap_or(-1);
            Ok((
                success(counts, &found.estimates, |_| true),
                success(counts, &found.estimates, |x| x <= 5),
                exact_prefix(counts, &found.groups, m),
            ))
        })
        .collect::<Result<_, StudyError>>()?;
    let moments = |f: fn(&(f64, f64, bool)) -> f64| {
        let n = real(rows.len());
        let mean = rows.iter().map(f).sum::<f64>() / n;
        let squares = rows.iter().map(|r| (f(r) - mean).powi(2)).sum::<f64>();
        (mean, (squares / (n - 1.0).max(1.0)).sqrt())
    };
    let first = rows.len().min(10);
    let ten =
        |f: fn(&(f64, f64, bool)) -> f64| rows[..first].iter().map(f).sum::<f64>() / real(first);
    Ok(Rates {
        all: moments(|r| r.0),
        small: moments(|r| r.1),
        prefix: real(rows.iter().filter(|r| r.2).count()) / real(rows.len()),
        ten: (ten(|r| r.0), ten(|r| r.1)),
    })
}

/// How often an answer of the sparse vector technique (thesis Algorithms 1 and 8, Laplace noise, cut-off c) breaks
/// (α, β)-accuracy: `k` queries, c of them just above θ + α in the last places, the others just below θ − α.
pub fn misses(
    k: usize,
    c: u32,
    epsilon: &Rational,
    alpha: i128,
    runs: u64,
) -> Result<u64, StudyError> {
    let law = |scale: Rational| Scale::at_least(&scale).map(Lattice::Laplace);
    let threshold = law(Rational::from(2u8) / epsilon).map_err(StudyError::release)?;
    let query = law(Rational::from(4 * c) / epsilon).map_err(StudyError::release)?;
    let above = k - c as usize;
    let missed = (0..runs)
        .into_par_iter()
        .filter(|run| {
            let mut noise = Seeded::stream(SEED + 1, *run);
            let level = noise.lattice(&threshold);
            (0..k).any(|i| {
                // the nearest values for which a wrong answer counts
                let value = if i < above { -alpha - 1 } else { alpha + 1 };
                noise.exceeds(&query, level - value) != (i >= above)
            })
        })
        .count();
    Ok(missed as u64)
}

/// The same on public counts: cells in order against the threshold `theta` until c of them were found above it. An answer errs if
/// it says above of a count below θ − α, or below of one above θ + α.
pub fn astray(
    counts: &[i64],
    (theta, c): (i128, u32),
    epsilon: &Rational,
    alpha: i128,
    runs: u64,
) -> Result<u64, StudyError> {
    let law = |scale: Rational| Scale::at_least(&scale).map(Lattice::Laplace);
    let threshold = law(Rational::from(2u8) / epsilon).map_err(StudyError::release)?;
    let query = law(Rational::from(4 * c) / epsilon).map_err(StudyError::release)?;
    let wrong = (0..runs)
        .into_par_iter()
        .filter(|run| {
            let mut noise = Seeded::stream(SEED + 2, *run);
            let level = theta + noise.lattice(&threshold);
            let mut left = c;
            counts.iter().any(|count| {
                if left == 0 {
                    return false;
                }
                let count = i128::from(*count);
                let above = noise.exceeds(&query, level - count);
                left -= u32::from(above);
                if above {
                    count < theta - alpha
                } else {
                    count > theta + alpha
                }
            })
        })
        .count();
    Ok(wrong as u64)
}

/// α of Theorems 3 and 8 at Δ (or Δ₁ + Δ₂) = 1.
#[allow(clippy::cast_possible_truncation, reason = "far below 2^63")]
pub fn promised(k: usize, c: u32, epsilon: f64, beta: f64) -> i128 {
    (8.0 * f64::from(c) * (real(k).ln() + (2.0 / beta).ln()) / epsilon).ceil() as i128
}

fn form_data(form: Form) -> &'static str {
    match form {
        Form::Quick => {
            "Capital loss of the Adult example (4096 cells); the row of the thesis is that of a third of its records."
        }
        Form::Full => {
            "DPBench ADULT, MEDCOST, INCOME, HEPTH (4096 cells each), the histograms of Table 3.1."
        }
    }
}

/// Runs the study.
#[allow(clippy::too_many_lines, reason = "one table and its requirements")]
pub fn run(form: Form) -> Result<Findings, StudyError> {
    let runs = u64::from(form.pick(10, 100));
    let data = histograms(form)?;
    let mut findings = Findings {
        settings: vec![
            form_data(form).to_owned(),
            format!(
                "Algorithm 7, δ = .05, {runs} runs (seed {SEED}, run as stream), discrete Laplace noise. *As printed*: ε for the threshold and Lap(2/ε) on group totals, which is what the thesis' figures agree with. *As stated*: half of ε for each."
            ),
        ],
        head: [
            "data",
            "ε",
            "all cells: thesis",
            "as printed, 10 runs",
            "all runs (s.e. of 10)",
            "as stated",
            "0-5: thesis",
            "as printed, 10 runs",
            "all runs (s.e. of 10)",
            "as stated",
            "Theorem 6 holds",
        ]
        .map(str::to_owned)
        .to_vec(),
        ..Findings::default()
    };
    for (printed, counts) in PRINTED.iter().zip(&data) {
        let records: i64 = counts.iter().sum();
        let k = unbroken(counts).unwrap_or(-1);
        let small = counts.iter().filter(|x| **x <= 5).count();
        let same = records == printed.overview.0 && small == printed.small_cells;
        // HepPh: the thesis prints one more than its own definition gives
        let off = i64::from(printed.name.1 == "HepPh");
        findings.require(
            form == Form::Quick || (same && k + off == printed.overview.1),
            format!(
                "Table 3.1, {}: {} cells, {records} records, k = {k} (thesis {}), {small} cells with 0 to 5",
                printed.name.1,
                counts.len(),
                printed.overview.1
            ),
        );
        for (i, text) in EPSILONS.iter().enumerate() {
            let e = epsilon(text);
            let got = rates(counts, &Config::printed(&e), runs)?;
            let stated = rates(counts, &Config::stated(&e), runs)?;
            let error = |sd: f64| sd / 10_f64.sqrt();
            let show = |x: (f64, f64)| format!("{:.3} ({:.3})", x.0, error(x.1));
            findings.rows.push(vec![
                printed.name.1.to_owned(),
                (*text).to_owned(),
                format!("{:.3}", printed.all[i]),
                format!("{:.3}", got.ten.0),
                show(got.all),
                format!("{:.3}", stated.all.0),
                format!("{:.3}", printed.small[i]),
                format!("{:.3}", got.ten.1),
                show(got.small),
                format!("{:.3}", stated.small.0),
                format!("{:.3}", got.prefix),
            ]);
            for (what, mean, thesis) in [
                ("all cells", got.all, printed.all[i]),
                ("cells with 0 to 5", got.small, printed.small[i]),
            ] {
                let apart = (mean.0 - thesis).abs();
                // a mean of ten runs is itself random: within .02 or three of its standard errors
                let allowed = 0.02_f64.max(3.0 * error(mean.1));
                let how = if apart <= 0.02 {
                    "within .02".to_owned()
                } else {
                    format!(
                        "explained: a mean of ten runs has a standard error of {:.3} here, the difference is {:.1} of them",
                        error(mean.1),
                        apart / error(mean.1)
                    )
                };
                findings.require(
                    apart <= allowed,
                    format!(
                        "{} ε = {text}, {what}: {:.3} against {thesis:.3}, {how}",
                        printed.name.1, mean.0
                    ),
                );
            }
            findings.require(
                got.prefix >= 0.95 - 3.0 * (0.95 * 0.05 / real(usize::try_from(runs).unwrap_or(1))).sqrt(),
                format!(
                    "{} ε = {text}: Theorem 6 holds in {:.1} % of the runs (promised 95 %, three standard errors allowed)",
                    printed.name.1,
                    100.0 * got.prefix
                ),
            );
        }
    }
    let trials = u64::from(form.pick(2_000, 20_000));
    for (k, c, e, beta) in [
        (100, 1, "1", 0.05),
        (100, 3, "1", 0.05),
        (1000, 1, "0.1", 0.2),
    ] {
        let value = epsilon(e);
        let alpha = promised(k, c, value.to_f64().value(), beta);
        let missed = misses(k, c, &value, alpha, trials)?;
        // doubling the promise's tightness shows how much of it is slack
        let tight = misses(k, c, &value, alpha / 2, trials)?;
        let share = |m: u64| {
            100.0 * real(usize::try_from(m).unwrap_or(0))
                / real(usize::try_from(trials).unwrap_or(1))
        };
        findings.require(
            share(missed) <= 100.0 * beta,
            format!(
                "Theorems 3 and 8, k = {k}, c = {c}, ε = {e}: at α = {alpha} (β = {beta}) {:.2} % of {trials} runs err; at α/2 {:.2} %",
                share(missed),
                share(tight)
            ),
        );
    }
    let trials = u64::from(form.pick(200, 2_000));
    for (printed, counts) in PRINTED.iter().zip(&data) {
        let (theta, c, beta) = (150, 5, 0.05);
        let one = Rational::from(1u8);
        let alpha = promised(counts.len(), c, 1.0, beta);
        let at = |alpha: i128| -> Result<f64, StudyError> {
            let wrong = astray(counts, (theta, c), &one, alpha, trials)?;
            Ok(100.0 * real(usize::try_from(wrong).unwrap_or(0))
                / real(usize::try_from(trials).unwrap_or(1)))
        };
        let (whole, half, quarter) = (at(alpha)?, at(alpha / 2)?, at(alpha / 4)?);
        findings.require(
            whole <= 100.0 * beta,
            format!(
                "Theorems 3 and 8 on {}, cells above {theta}, c = {c}, ε = 1: at α = {alpha} (β = {beta}) {whole:.2} % of {trials} runs err; at α/2 {half:.2} %, at α/4 {quarter:.2} %",
                printed.name.1
            ),
        );
    }
    Ok(findings)
}
