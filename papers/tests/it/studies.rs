//! The requirements in short form. Each states what it assumes of correct code, its false alarm probability under
//! that assumption (checked with exact binomial tails), and the smallest fault it catches.

use reticent_accounting::Relation;
use reticent_audit::alarms::{at_least, at_most};
use reticent_laws::Seeded;
use reticent_noise::{Lattice, Noise};
use reticent_papers::studies::{
    adult_binned, adult_roc, dpbench, pums_linear, pums_residuals, roc,
};
use reticent_papers::study::{Form, STUDIES};

/// Additive noise `factor` times as large as the mechanism asked for.
struct Louder {
    inner: Seeded,
    factor: i128,
}

impl Noise for Louder {
    fn bits(&mut self) -> u64 {
        self.inner.bits()
    }
    fn lattice(&mut self, d: &Lattice) -> i128 {
        self.factor * self.inner.lattice(d)
    }
}

/// At least 19 of 20 areas within .01 of the true one (16 under replace-one), and their mean error within .002 (.004).
///
/// Over 200 runs errors have standard deviation .0009 (.0020) and the largest is .0024 (.0090). Assumed: one in 10⁶ (one in
/// 1000) is beyond .01. False alarm: P(X ≥ 2) (P(X ≥ 5)) of 20 below 2·10⁻¹⁰; the bounds on the mean are 9.9 (8.9) of its
/// standard deviations. Caught with probability .99: a bias of .003 (.006), more than 29 % (48 %) of the areas beyond .01.
#[test]
fn adult_areas_are_close() {
    let bench = adult_roc::Bench::load().unwrap();
    assert!(at_least(5, 20, 1e-3) < 1e-9 && at_least(2, 20, 1e-6) < 1e-9);
    for (which, misses, bias) in [(0, 1, 0.002), (1, 4, 0.004)] {
        let runs = bench.runs(which, 20).unwrap();
        let missed = runs.iter().filter(|r| r.area_error.abs() > 0.01).count();
        assert!(
            missed <= misses,
            "{missed} of 20 areas are off by more than .01"
        );
        let mean = runs.iter().map(|r| r.area_error).sum::<f64>() / 20.0;
        assert!(mean.abs() < bias, "the areas are off by {mean} on average");
    }
}

/// The band misses the whole curve, and the bounds of the vertices miss a true vertex, in at most 20 of 60 runs
/// (the claim: each run misses with probability .05 at most); bounds that hold every vertex cover the curve.
///
/// False alarm: P(X ≥ 21), X binomial(60, .05), below 10⁻¹¹ for each relation and kind. Caught with probability .99:
/// coverage below .50. Control: counts with noise three times as large as declared are flagged.
#[test]
fn the_band_covers_the_curve() {
    let bench = adult_roc::Bench::load().unwrap();
    let (runs, most) = (60u32, 20usize);
    assert!(at_least(21, 60, 0.05) < 1e-11);
    assert!(at_most(20, 60, 0.50) < 0.01);
    for which in [0, 1] {
        let all = bench.runs(which, runs).unwrap();
        let missed = all.iter().filter(|r| !r.covered).count();
        assert!(missed <= most, "the band misses in {missed} of {runs}");
        let outside = all.iter().filter(|r| !r.vertices_covered).count();
        assert!(outside <= most, "a vertex leaves its bounds in {outside}");
        assert!(all.iter().all(|r| !r.vertices_covered || r.covered));
        // The proved interval of the area follows from the bounds of the vertices.
        assert!(all.iter().all(|r| !r.vertices_covered || r.proved_holds));
    }
    let flagged = (0..u64::from(runs))
        .filter(|run| {
            let mut noise = Louder {
                inner: Seeded::stream(adult_roc::SEED, *run),
                factor: 3,
            };
            let answer = bench.release(Relation::AddRemove, &mut noise).unwrap();
            !bench.judge(&answer.value).covered
        })
        .count();
    assert!(flagged > most, "three times the noise: missed in {flagged}");
}

/// Every slope's interval misses at most 33 of 120 times at either ε and relation, and the standard errors fit the
/// spread of the estimates.
///
/// Assumed: intervals miss with probability .08 at most (500 runs: .034 to .066). False alarm: 8·P(X ≥ 34), X
/// binomial(120, .08), below 10⁻⁹; the ratio of lengths to spread has standard deviation .065 and is held
/// between .55 and 2 (chi-squared, 119 degrees: below 10⁻¹⁰). Caught with probability .99: coverage below .61, and
/// lengths 2.5 times too large or .4 times too small. Control: moments with noise three times as large are flagged.
#[test]
fn pums_intervals_hold() {
    let bench = pums_linear::Bench::load().unwrap();
    let (runs, most) = (120u32, 33usize);
    assert!(8.0 * at_least(34, 120, 0.08) < 1e-9);
    for setting in 0..4 {
        let all = bench.runs(setting, runs).unwrap();
        for i in [1, 2] {
            let missed = all.len() - bench.holds(&all, i);
            assert!(missed <= most, "setting {setting}: {missed} of {runs} miss");
            let n = f64::from(runs);
            let mean = all.iter().map(|r| r[i].estimate).sum::<f64>() / n;
            let spread = (all
                .iter()
                .map(|r| (r[i].estimate - mean).powi(2))
                .sum::<f64>()
                / (n - 1.0))
                .sqrt();
            let error = all
                .iter()
                .map(|r| (r[i].high - r[i].low) / 3.92)
                .sum::<f64>()
                / n;
            let ratio = error / spread;
            assert!((0.55..2.0).contains(&ratio), "setting {setting}: {ratio}");
        }
    }
    let louder = |inner| -> Box<dyn Noise> { Box::new(Louder { inner, factor: 3 }) };
    let all = bench.runs_with(0, runs, louder).unwrap();
    let missed = all.len() - bench.holds(&all, 2);
    assert!(missed > most, "three times the noise: {missed} miss");
}

/// The released limit (two standard errors that include the noise) holds the distance to the true mean residual in
/// all but a few bins.
///
/// Assumed: a bin is farther with probability .02 at most (200 runs: .001 and .004; a Laplace variable beyond two
/// standard deviations: .06, of which sampling error leaves little). False alarm: P(X ≥ 30) of 320 (160) bins below 10⁻¹⁰.
/// Caught with probability .99: 15 % (27 %) of the bins beyond their limits.
#[test]
fn binned_residuals_are_within_their_limits() {
    let bench = adult_binned::Bench::load().unwrap();
    assert!(at_least(30, 320, 0.02) < 1e-9);
    for which in [0, 1] {
        let all = bench.runs(which, 5).unwrap();
        let bins: usize = all.iter().map(|a| a.bins).sum();
        assert!((40..=320).contains(&bins));
        let beyond: f64 = all
            .iter()
            .map(|a| a.beyond_limit * f64::from(u32::try_from(a.bins).unwrap()))
            .sum();
        assert!(beyond < 29.5, "{beyond} of {bins}");
    }
}

/// Released residual plots at ε = 1 are much closer to the true plot than to its mirror image.
///
/// Distances over 200 runs: .036 ± .002 (add/remove), .076 ± .004; the bounds .06 and .12 are more than ten standard
/// deviations away. Caught: cells in the wrong order, noise twice as large.
#[test]
fn residual_plots_look_like_the_true_one() {
    let mut bench = pums_residuals::Bench::load().unwrap();
    let mut plots = Vec::new();
    for (relation, most) in [(Relation::AddRemove, 0.06), (Relation::ReplaceOne, 0.12)] {
        for run in 0..5 {
            let mut noise = Seeded::stream(pums_residuals::SEED, run);
            let value = bench.release(relation, "1", &mut noise).unwrap();
            let distance = bench.distance(&value);
            assert!(distance.own_grid < most, "{}", distance.own_grid);
            assert!(distance.similarity < 0.2, "{}", distance.similarity);
            plots.push(value);
        }
    }
    for point in &mut bench.points {
        point[1] = -point[1];
    }
    for value in plots {
        let distance = bench.distance(&value);
        assert!(distance.own_grid > 0.3 && distance.similarity > 0.3);
    }
}

/// Every listed study runs in its short form, and its requirements are met.
#[test]
fn short_forms_run() {
    for study in STUDIES {
        let findings = (study.run)(Form::Quick).unwrap();
        assert!(findings.met(), "{}\n{findings}", study.name);
        assert!(!findings.rows.is_empty());
        let columns = findings.head.len();
        assert!(
            findings.rows.iter().all(|r| r.len() == columns),
            "{}\n{findings}",
            study.name
        );
    }
}

/// The short form of the histogram study: its own public shapes, closed forms of the linear methods within 8 % over 2,000 runs (more
/// than 6 standard deviations of a root mean square over prefixes; catches scales wrong by 15 %).
#[test]
fn histogram_errors_have_their_closed_forms() {
    let findings = dpbench::run(Form::Quick).unwrap();
    assert!(findings.met(), "{findings}");
    assert!(!findings.rows.is_empty());
}

/// Band and interval of the area hold in at least 39 of 60 runs of seven hard settings under both relations (77 negatives, 20
/// positives, three distinct scores, scores above .99), and areas .025 apart are told apart at n·ε = 1000.
///
/// Assumed: a miss has probability .06 at most (500 runs: .04). False alarm: 28·P(X ≥ 22), X binomial(60, .06), below 10⁻⁹. Caught with
/// probability .99: coverage below .47, as of intervals around the released curve at ε = .1 (.45 to .85 before test inversion).
#[test]
fn roc_bands_and_intervals_hold_in_hard_settings() {
    assert!(28.0 * at_least(22, 60, 0.06) < 1e-9);
    assert!(at_most(21, 60, 0.53) < 0.01);
    let held = roc::coverage::run(Form::Quick).unwrap();
    assert!(held.met() && held.requirements.len() == 28, "{held}");
    let apart = roc::power::run(Form::Quick).unwrap();
    assert!(apart.met(), "{apart}");
}

/// Mean errors of the area over 20 runs are at most three times the limits that hold over 200.
///
/// Over 200 runs the means are at most .92 of the limits, and single errors have a deviation below their mean: the bounds are more than ten
/// standard errors away (exponential errors: a sum of 20 beyond 3.2 times its mean has probability below 10⁻⁹). Caught with
/// probability .99: errors six times as large.
#[test]
fn roc_areas_are_accurate() {
    let found = roc::accuracy::run(Form::Quick).unwrap();
    assert!(found.met(), "{found}");
}
