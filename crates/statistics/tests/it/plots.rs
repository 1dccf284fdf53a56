//! Residual plots and binned residual plots on the papers' models; quick form of `examples/plots_study.rs`.

use reticent_accounting::Relation;
use reticent_statistics::histogram::Method;
use reticent_statistics::residuals::Bounds;

use crate::plots_study::{Model, World, separation, shape_difference, similarity};

/// n·ε = 2000 under add/remove, 4000 under replace-one: the same noise.
fn p_values(model: Model, relation: Relation, seed: u64) -> [f64; 2] {
    let world = World::linear(model, 2000, seed);
    let epsilon = match relation {
        Relation::AddRemove => "1",
        Relation::ReplaceOne => "2",
    };
    let value = world.residuals(relation, epsilon, seed, &|mut c| {
        c.tests = true;
        c
    });
    ["curvature", "fan"].map(|t| value["tests"][t]["p_value"].as_f64().unwrap())
}

/// Level clouds: at most 18 of 60 p values below .05 (by chance 19 or more with probability 2e-11; catches a test that rejects half of
/// the time). Hook and fan of the papers: curvature below 1e-6, fan below .01 in each of 10 runs.
#[test]
fn moment_tests_hold_their_level_and_see_hooks_and_fans() {
    for relation in [Relation::AddRemove, Relation::ReplaceOne] {
        let mut low = [0; 2];
        for seed in 0..60 {
            let p = p_values(Model::Ideal, relation, seed);
            low[0] += usize::from(p[0] < 0.05);
            low[1] += usize::from(p[1] < 0.05);
        }
        assert!(low[0] <= 18 && low[1] <= 18, "{relation} {low:?}");
        for seed in 100..110 {
            let curved = p_values(Model::Curved(0.01), relation, seed);
            let fan = p_values(Model::Fan(1.0), relation, seed);
            assert!(curved[0] < 1e-6, "{relation} {curved:?}");
            assert!(fan[1] < 0.01, "{relation} {fan:?}");
        }
    }
}

/// Fixed seeds. The full form (1000 plots) is recorded in `docs/studies-plots.md`.
#[test]
fn residual_plots_separate_the_models() {
    for (relation, least) in [(Relation::AddRemove, 0.95), (Relation::ReplaceOne, 0.95)] {
        let ideal = World::linear(Model::Ideal, 1000, 1);
        let truth = ideal.points();
        let sample = |world: &World| -> Vec<f64> {
            (0..100)
                .map(|s| similarity(&truth, &world.residuals(relation, "1", s, &|c| c)))
                .collect()
        };
        let base = sample(&ideal);
        for model in [Model::Fan(1.0), Model::Curved(0.01)] {
            let other = sample(&World::linear(model, 1000, 2));
            let tv = separation(&base, &other);
            assert!(tv >= least, "{relation} {model:?}: {tv}");
        }
    }
}

/// Published box and every method of the papers: the plot of a level cloud stays nearer to the truth than a plot of nothing (1).
#[test]
fn every_perturbation_method_draws_the_plot() {
    let world = World::linear(Model::Ideal, 5000, 3);
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
        let value = world.residuals(Relation::AddRemove, "1", 5, &|mut c| {
            c.method = method;
            c.bounds = Bounds::Doubling { unit: Some(1.0) };
            c
        });
        assert_eq!(value["method"], method.name());
        let frame = value["box"]["x_high"].as_f64().unwrap();
        assert!(frame.log2().fract() == 0.0 && value["box"]["x_low"] == -frame);
        let side = value["side"].as_u64().unwrap();
        assert_eq!(side, 21); // √(.95²·5000/10)
        assert_eq!(
            value["counts"].as_array().unwrap().len() as u64,
            side * side
        );
        let distance = similarity(&truth, &value);
        assert!(distance < most, "{}: {distance}", method.name());
    }
}

/// Fixed seeds: the wrong model is told from the right one at n·ε = 2500 under replace-one (papers: 20000).
#[test]
fn binned_plots_separate_the_models() {
    let right = World::logistic(false, 2500, 1);
    let wrong = World::logistic(true, 2500, 2);
    let truth = right.exact_bins();
    let sample = |world: &World| -> Vec<f64> {
        (0..100)
            .map(|s| {
                let bins = world.binned(Relation::ReplaceOne, "1", s, &|c| c);
                shape_difference(&truth, &bins)
            })
            .collect()
    };
    let tv = separation(&sample(&right), &sample(&wrong));
    assert!(tv >= 0.8, "{tv}");
}

/// Adjusted bins: few of them are nearly empty, and they tile [0, 1].
#[test]
fn adjusted_bins_are_large_and_tile_the_axis() {
    let world = World::logistic(false, 5000, 4);
    let (mut small, mut all) = (0, 0);
    for seed in 0..20 {
        let bins = world.binned(Relation::AddRemove, "1", seed, &|c| {
            reticent_statistics::binned::Config::published(c.epsilon, Some(5000.0))
        });
        // 64 bins of about 78; half of that is the aim. Fixed seeds, so no false alarm.
        assert!(bins.len() >= 16 && bins.len() <= 64, "{}", bins.len());
        let total: f64 = bins.iter().map(|b| b[2]).sum();
        assert!((total - 5000.0).abs() < 300.0, "{total}");
        small += bins.iter().filter(|b| b[2] < 30.0).count();
        all += bins.len();
    }
    // 39 is half of the aim; the noise of a comparison has scale 10
    assert!(small * 10 <= all, "{small} of {all}");
}
