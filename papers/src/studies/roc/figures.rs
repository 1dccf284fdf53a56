//! Figures 4.7 to 4.11 and Table 4.4: areas and curves by algorithm, split of the budget, way of counting.

use reticent_accounting::{Rational, Relation};
use reticent_statistics::histogram::Method;
use reticent_statistics::roc::Config;

use super::bench::{Bench, SEED, epsilon, errors, fixed, printed, runs};
use super::{head, texts};
use crate::public::RELATIONS;
use crate::real;
use crate::study::{Findings, Form, StudyError};

/// How a curve is made.
enum Way {
    Curve(Config),
    /// `SmoothS`: an area, and the symmetric binormal curve with that area.
    Area(Rational),
}

/// Mean error of the area and mean distance of the curves.
fn measured(
    bench: &Bench,
    relation: Relation,
    way: &Way,
    count: u32,
) -> Result<[f64; 2], StudyError> {
    let found = runs(0, count, |run| match way {
        Way::Curve(config) => bench.run(relation, config, run),
        Way::Area(e) => bench.smooth(relation, e, run),
    })?;
    Ok(errors(&found))
}

fn shown(e: [f64; 2]) -> String {
    format!("{:.4} / {:.4}", e[0], e[1])
}

/// A row with both relations.
fn row(out: &mut Findings, (figure, setting, paper): (&str, String, &str), both: [String; 2]) {
    let [add, replace] = both;
    out.rows.push(vec![
        figure.to_owned(),
        setting,
        paper.to_owned(),
        replace,
        add,
    ]);
}

fn both(bench: &Bench, way: &Way, count: u32) -> Result<[[f64; 2]; 2], StudyError> {
    let one = |which: usize| measured(bench, RELATIONS[which].0, way, count);
    Ok([one(0)?, one(1)?])
}

/// Figures 4.7 (one run), 4.8 and 4.9.
fn algorithms(form: Form, benches: &[Bench], out: &mut Findings) -> Result<(), StudyError> {
    let count = form.pick(2, 20);
    let budgets: &[&str] = if form == Form::Quick {
        &["1"]
    } else {
        &["0.1", "0.25", "0.5", "1"]
    };
    // How often an order that the papers read off their figures holds, of settings, per relation: area and distance.
    let (mut fixed_below, mut medians_below) = ([[0u32; 2]; 2], [[0u32; 2]; 2]);
    let mut default_best = [[0u32; 2]; 2];
    let mut settings = 0;
    for bench in benches {
        for text in budgets {
            settings += 1;
            let e = epsilon(text)?;
            let ways = [
                (
                    "PriROC (smooth medians, DAWA)",
                    Way::Curve(printed(&e, Method::Dawa)),
                ),
                ("PriROC-fix (even thresholds, DAWA)", Way::Curve(fixed(&e))),
                ("SmoothS (area, binormal curve)", Way::Area(e.clone())),
                ("default", Way::Curve(Config::new(e.clone()))),
            ];
            let mut all = Vec::new();
            for (name, way) in &ways {
                let found = both(bench, way, count)?;
                all.push(found);
                let setting = format!("{}, ε = {text}: {name}", bench.name);
                row(out, ("4.8, 4.9", setting, "plot"), found.map(shown));
            }
            for which in 0..2 {
                for metric in 0..2 {
                    let [medians, even, smooth, default] =
                        [0, 1, 2, 3].map(|a: usize| all[a][which][metric]);
                    fixed_below[which][metric] += u32::from(even < smooth && medians < smooth);
                    medians_below[which][metric] += u32::from(medians < even);
                    let best = medians.min(even).min(smooth);
                    default_best[which][metric] += u32::from(default <= best);
                }
            }
        }
    }
    let orders = [
        (
            "PriROC and PriROC-fix are better than SmoothS",
            "always",
            fixed_below,
        ),
        ("PriROC is better than PriROC-fix", "always", medians_below),
        ("the default is better than all three", "–", default_best),
    ];
    for (what, paper, counts) in orders {
        let text = |c: [u32; 2]| format!("{} / {} of {settings}", c[0], c[1]);
        row(out, ("4.8, 4.9", what.to_owned(), paper), counts.map(text));
    }
    for bench in benches {
        for text in ["1", "0.1"] {
            let way = Way::Curve(printed(&epsilon(text)?, Method::Dawa));
            let setting = format!("{}, ε = {text}: one private curve of PriROC", bench.name);
            row(
                out,
                ("4.7", setting, "\"track quite well\""),
                both(bench, &way, 1)?.map(shown),
            );
        }
    }
    Ok(())
}

/// Figure 4.10: the share of the thresholds.
fn shares(form: Form, benches: &[Bench], out: &mut Findings) -> Result<(), StudyError> {
    let count = form.pick(2, 20);
    let budgets: &[&str] = if form == Form::Quick {
        &["1"]
    } else {
        &["0.1", "1"]
    };
    let some: &[f64] = if form == Form::Quick {
        &[0.2]
    } else {
        &[0.05, 0.1, 0.2, 0.4, 0.8, 0.95]
    };
    for bench in benches {
        for text in budgets {
            let e = epsilon(text)?;
            for share in some {
                for (name, config) in [
                    ("PriROC", printed(&e, Method::Dawa)),
                    ("default", Config::new(e.clone())),
                ] {
                    let way = Way::Curve(Config {
                        share: Some(*share),
                        ..config
                    });
                    let setting = format!("{}, ε = {text}: {name}, ρ = {share}", bench.name);
                    let paper = if *share > 0.5 {
                        "large loss"
                    } else {
                        "about flat, .2 good"
                    };
                    row(
                        out,
                        ("4.10", setting, paper),
                        both(bench, &way, count)?.map(shown),
                    );
                }
            }
        }
    }
    Ok(())
}

/// Figure 4.11 and Table 4.4: mean ratio to the best way of counting of the same setting.
fn regrets(form: Form, benches: &[Bench], out: &mut Findings) -> Result<(), StudyError> {
    let count = form.pick(2, 20);
    let budgets: &[&str] = if form == Form::Quick {
        &["1"]
    } else {
        &["0.1", "0.25", "0.5", "1"]
    };
    let ways = [
        (Method::Dawa, "1 / 1"),
        (Method::Ahp, "2.126 / 1.745"),
        (Method::Hb, "2.634 / 2.071"),
        (Method::Identity, "3.032 / 2.605"),
        (Method::Mwem, "14.472 / 10.403"),
        (Method::Uniform, "14.543 / 10.443"),
        (Method::Privelet, "–"),
    ];
    // Per way and relation: sums of regrets over settings, and over ε = 1 alone.
    let mut sums = vec![[[0.0; 2]; 2]; ways.len()];
    for bench in benches {
        for text in budgets {
            let e = epsilon(text)?;
            let all = ways
                .iter()
                .map(|(method, _)| both(bench, &Way::Curve(printed(&e, *method)), count))
                .collect::<Result<Vec<_>, _>>()?;
            for which in 0..2 {
                for metric in 0..2 {
                    let values = all.iter().map(|a| a[which][metric]);
                    let best = values.clone().fold(f64::INFINITY, f64::min).max(1e-9);
                    for (sum, value) in sums.iter_mut().zip(values) {
                        sum[which][metric] += value / best;
                    }
                }
            }
            for ((method, _), found) in ways.iter().zip(&all) {
                let setting = format!(
                    "{}, ε = {text}: PriROC, counts by {}",
                    bench.name,
                    method.name()
                );
                row(out, ("4.11", setting, "plot"), found.map(shown));
            }
        }
    }
    let settings = real(benches.len() * budgets.len());
    for ((method, paper), sum) in ways.iter().zip(&sums) {
        let ratio = |s: [f64; 2]| format!("{:.2} / {:.2}", s[0] / settings, s[1] / settings);
        let setting = format!("regret, counts by {}", method.name());
        row(out, ("Table 4.4", setting, paper), sum.map(ratio));
    }
    Ok(())
}

/// Runs the study. The short form has normal scores in place of the predictions on SMS and tweets.
///
/// # Errors
/// When the data cannot be read or a release cannot be made.
pub fn run(form: Form) -> Result<Findings, StudyError> {
    let benches = if form == Form::Full {
        texts::predictions()?
    } else {
        vec![Bench::like_sms(), Bench::like_twitter()]
    };
    let mut out = Findings {
        settings: vec![
            "Two numbers a / b: mean abs. error of the area / mean distance of true and private curve (symmetric difference).".to_owned(),
            format!("{} runs, noise seed {SEED}. PriROC as printed but for corrected constants of the smooth medians, and both labels' counts \
                     from one purchase.", form.pick(2, 20)),
        ],
        head: head(["figure", "setting", "papers", "replace-one (papers' relation)", "add/remove"]),
        ..Findings::default()
    };
    for bench in &benches {
        let (positives, negatives) = bench.truth.sizes;
        out.settings.push(format!(
            "{}: {positives} positives, {negatives} negatives, {} distinct scores, AUC {:.4}.",
            bench.name,
            bench.truth.vertices.len() - 1,
            bench.truth.area
        ));
    }
    algorithms(form, &benches, &mut out)?;
    shares(form, &benches, &mut out)?;
    regrets(form, &benches, &mut out)?;
    Ok(out)
}
