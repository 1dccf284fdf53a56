//! Residual plots and binned residual plots on the papers' models. Seeds are fixed; bounds say what they would do with others.

use reticent_accounting::{Relation, parse_decimal};
use reticent_audit::alarms::{at_least, at_most};
use reticent_papers::studies::plots::residuals::p_values;
use reticent_papers::studies::plots::{self, Model, World, bins, one};
use reticent_papers::study::Form;
use reticent_papers::truth::plot::similarity;
use reticent_statistics::binned;
use reticent_statistics::histogram::Method;
use reticent_statistics::residuals::{Bounds, Config};
use serde_json::Value;

/// n·ε = 2000 under add/remove, 4000 under replace-one: the same noise.
fn both(model: Model, relation: Relation, seed: u64) -> [f64; 2] {
    let epsilon = match relation {
        Relation::AddRemove => "1",
        Relation::ReplaceOne => "2",
    };
    let world = World::linear(model, 2000, seed);
    p_values(&world, relation, seed, &parse_decimal(epsilon).unwrap()).unwrap()
}

/// Level clouds: at most 18 of 60 p values below .05. Hook and fan of the papers: p below .01 in at least 9 of 20 runs.
///
/// False alarm: 4·P(X ≥ 19), X binomial(60, .05), and 4·P(Y ≥ 12), Y binomial(20, .05) – over 400 runs 1 to 3 % are not below – below
/// 10⁻⁹ together. Caught with probability .99: a test that rejects 46 % of right models, or sees 20 % of the hooks or fans.
#[test]
fn moment_tests_hold_their_level_and_see_hooks_and_fans() {
    assert!(4.0 * (at_least(19, 60, 0.05) + at_least(12, 20, 0.05)) < 1e-9);
    assert!(at_most(18, 60, 0.46) < 0.01);
    assert!(at_least(9, 20, 0.2) < 0.01);
    for relation in [Relation::AddRemove, Relation::ReplaceOne] {
        let (mut low, mut seen) = ([0; 2], [0; 2]);
        for seed in 0..60 {
            let p = both(Model::IDEAL, relation, seed);
            low[0] += usize::from(p[0] < 0.05);
            low[1] += usize::from(p[1] < 0.05);
        }
        for seed in 100..120 {
            seen[0] += usize::from(both(Model::NONLINEAR, relation, seed)[0] < 0.01);
            seen[1] += usize::from(both(Model::HETEROSCEDASTIC, relation, seed)[1] < 0.01);
        }
        assert!(low.iter().all(|k| *k <= 18), "{relation} {low:?}");
        assert!(seen.iter().all(|k| *k >= 9), "{relation} {seen:?}");
    }
}

/// Published box and every method of the papers: the plot of a level cloud stays nearer to the truth than a plot of nothing (1).
#[test]
fn every_perturbation_method_draws_the_plot() {
    let world = World::linear(Model::IDEAL, 5000, 3);
    let truth = world.points();
    for (method, most) in [
        (Method::Identity, 0.35),
        (Method::Dawa, 0.35),
        (Method::Ahp, 0.35),
        (Method::Hb, 0.35),
        (Method::Ag, 0.45),
        (Method::Mwem, 0.7),
        (Method::Uniform, 0.9),
    ] {
        let config = Config {
            method,
            bounds: Bounds::Doubling { unit: Some(1.0) },
            ..Config::new(one().unwrap())
        };
        let value = world.residuals(Relation::AddRemove, 5, &config).unwrap();
        assert_eq!(value["method"], method.name());
        let frame = value["box"]["x_high"].as_f64().unwrap();
        assert!(frame.log2().fract() == 0.0 && value["box"]["x_low"] == -frame);
        let side = value["side"].as_u64().unwrap();
        assert_eq!(side, 21); // √(.95²·5000/10)
        assert_eq!(
            value["counts"].as_array().unwrap().len() as u64,
            side * side
        );
        let shown: Vec<[f64; 2]> = (value["points"].as_array().unwrap().iter())
            .map(|p: &Value| [0, 1].map(|i| p[i].as_f64().unwrap()))
            .collect();
        let distance = similarity(&truth, &shown);
        assert!(distance < most, "{}: {distance}", method.name());
    }
}

/// Adjusted bins: few of them are nearly empty, and they tile [0, 1].
#[test]
fn adjusted_bins_are_large_and_tile_the_axis() {
    let world = World::logistic(false, 5000, 4);
    let config = binned::Config::published(one().unwrap(), Some(5000.0));
    let plot = world.binned(Relation::AddRemove, &config).unwrap();
    let (mut small, mut all) = (0, 0);
    for stream in 0..20 {
        let value = plot.run(&world, stream).unwrap();
        let ends = value["bins"].as_array().unwrap();
        assert!(ends.windows(2).all(|b| b[0]["high"] == b[1]["low"]));
        assert!(ends[0]["low"] == 0.0 && ends[ends.len() - 1]["high"] == 1.0);
        let bins = bins(&value);
        // 64 bins of about 78; half of that is the aim.
        assert!(bins.len() >= 16 && bins.len() <= 64, "{}", bins.len());
        let total: f64 = bins.iter().map(|b| b[2]).sum();
        assert!((total - 5000.0).abs() < 300.0, "{total}");
        small += bins.iter().filter(|b| b[2] < 30.0).count();
        all += bins.len();
    }
    // 39 is half of the aim; the noise of a comparison has scale 10
    assert!(small * 10 <= all, "{small} of {all}");
}

/// Short form at n·ε = 1000: "Heteroscedastic" and "Nonlinear" are separated by at least .77 over 100 plots each (10 classes).
///
/// Over 1000 plots they are separated by at least .96: a cut between them leaves at most 4 % of both samples together, 2 % of 200 plots, on the
/// wrong side. Below .77 more than 23 are. False alarm: 4·P(X ≥ 23), X binomial(200, .02), below 10⁻⁹. Caught with probability .99: a
/// separation of .6.
#[test]
fn residual_plots_separate_the_models() {
    assert!(4.0 * at_least(23, 200, 0.02) < 1e-9);
    assert!(at_most(22, 200, 0.2) < 0.01);
    let found = plots::residuals::run(Form::Quick).unwrap();
    assert!(found.met() && found.requirements.len() == 4, "{found}");
}

/// Short form at n·ε = 2500 under replace-one, where the papers need 20000: separation of at least .7, mean of three pairs of 100 plots, and at least
/// 88 % of the bins of a right model inside their limits.
///
/// Separation over 500 plots is above .9: the mean of three falls below .7 with probability below P(X ≥ 45), X binomial(300, .05). The
/// normal law puts .954 of the bins inside; 100 plots have 800. False alarm below 10⁻⁹. Caught with probability .99: limits that leave out
/// the noise and hold 85 %.
#[test]
fn binned_plots_separate_the_models_and_their_limits_hold() {
    assert!(at_least(45, 300, 0.05) < 1e-9);
    assert!(at_least(97, 800, 0.05) < 1e-9);
    assert!(at_most(96, 800, 0.16) < 0.01);
    let found = plots::binned::run(Form::Quick).unwrap();
    assert!(found.met() && found.requirements.len() == 2, "{found}");
}
