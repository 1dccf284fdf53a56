//! Full form of the study of residual and binned residual plots: separation of right and wrong models, and distance by
//! perturbation method. `cargo run --release --example plots_study -- [plots per setting]`.

#[path = "../tests/it/plots_study.rs"]
mod plots_study;

use plots_study::{Model, World, separation, shape_difference, similarity};
use reticent_accounting::Relation;
use reticent_statistics::histogram::Method;
use reticent_statistics::{binned, residuals};

type Plot = dyn Fn(residuals::Config) -> residuals::Config;
type Bins = dyn Fn(binned::Config) -> binned::Config;

const RELATIONS: [Relation; 2] = [Relation::AddRemove, Relation::ReplaceOne];

fn published(method: Method) -> impl Fn(residuals::Config) -> residuals::Config {
    move |c| residuals::Config {
        method,
        ..residuals::Config::published(c.epsilon)
    }
}

fn distances(
    world: &World,
    truth: &[[f64; 2]],
    relation: Relation,
    config: &Plot,
    runs: u64,
) -> Vec<f64> {
    (0..runs)
        .map(|s| similarity(truth, &world.residuals(relation, "1", s, config)))
        .collect()
}

#[allow(clippy::cast_precision_loss, reason = "few runs")]
fn mean(xs: &[f64]) -> f64 {
    xs.iter().sum::<f64>() / xs.len() as f64
}

#[allow(clippy::too_many_lines, reason = "one block per table")]
fn main() {
    let runs: u64 = std::env::args()
        .nth(1)
        .and_then(|a| a.parse().ok())
        .unwrap_or(100);
    println!("{runs} plots per setting, epsilon 1, n = n·ε");
    println!("residual plots: separation from Ideal (Heteroscedastic / Nonlinear)");
    for rows in [500, 1000, 2000] {
        let [ideal, fan, curved] =
            [Model::Ideal, Model::Fan(1.0), Model::Curved(0.01)].map(|m| World::linear(m, rows, 1));
        let truth = ideal.points();
        for relation in RELATIONS {
            let ours: &Plot = &|c| c;
            let dawa = published(Method::Dawa);
            for (name, config) in [("default", ours), ("PriRP", &dawa)] {
                let base = distances(&ideal, &truth, relation, config, runs);
                let [h, n] = [&fan, &curved]
                    .map(|w| separation(&base, &distances(w, &truth, relation, config, runs)));
                println!(
                    "  n·ε {rows:5} {relation} {name:8} {h:.3} / {n:.3}  distance {:.3}",
                    mean(&base)
                );
            }
        }
    }
    println!("distance to the own plot by perturbation method, published box, add-remove");
    for rows in [500, 1000, 2000, 5000] {
        let ideal = World::linear(Model::Ideal, rows, 1);
        let truth = ideal.points();
        let all: Vec<(&str, f64)> = [
            Method::Dawa,
            Method::Ahp,
            Method::Identity,
            Method::Hb,
            Method::Ag,
            Method::Uniform,
            Method::Mwem,
        ]
        .into_iter()
        .map(|m| {
            let config = published(m);
            let d = distances(&ideal, &truth, Relation::AddRemove, &config, runs.min(100));
            (m.name(), mean(&d))
        })
        .collect();
        let best = all.iter().map(|m| m.1).fold(f64::INFINITY, f64::min);
        for (name, d) in all {
            println!("  n·ε {rows:5} {name:9} {d:.3}  regret {:.2}", d / best);
        }
    }
    println!("tests: share of runs with p < .05 (curvature, fan), fresh data in each run");
    for (name, model) in [
        ("ideal", Model::Ideal),
        ("curved .0015", Model::Curved(0.0015)),
        ("fan .02", Model::Fan(0.02)),
    ] {
        for rows in [1000, 2000, 5000] {
            let mut hits = [0.0; 2];
            for seed in 0..runs {
                let value = World::linear(model, rows, 1000 + seed).residuals(
                    Relation::AddRemove,
                    "1",
                    seed,
                    &|c| residuals::Config { tests: true, ..c },
                );
                for (h, t) in hits.iter_mut().zip(["curvature", "fan"]) {
                    *h += f64::from(u8::from(
                        value["tests"][t]["p_value"]
                            .as_f64()
                            .is_some_and(|p| p < 0.05),
                    ));
                }
            }
            #[allow(clippy::cast_precision_loss, reason = "few runs")]
            let [c, f] = hits.map(|h| h / runs as f64);
            println!("  n·ε {rows:5} {name:13} {c:.3} {f:.3}");
        }
    }
    println!(
        "binned residual plots: separation of the right from the wrong model (mean of 3 pairs of data sets)"
    );
    for rows in [1000, 2500, 5000, 20_000] {
        for relation in RELATIONS {
            let ours: &Bins = &|c| c;
            #[allow(clippy::cast_precision_loss, reason = "few rows")]
            let merged: &Bins = &move |c| binned::Config::published(c.epsilon, Some(rows as f64));
            for (name, config) in [("default", ours), ("PriBRP corrected", merged)] {
                let all: Vec<f64> = (0..3)
                    .map(|d| {
                        let right = World::logistic(false, rows, 10 + d);
                        let wrong = World::logistic(true, rows, 20 + d);
                        let truth = right.exact_bins();
                        let sample = |w: &World| -> Vec<f64> {
                            (0..runs.min(500))
                                .map(|s| {
                                    shape_difference(&truth, &w.binned(relation, "1", s, config))
                                })
                                .collect()
                        };
                        separation(&sample(&right), &sample(&wrong))
                    })
                    .collect();
                println!("  n·ε {rows:5} {relation} {name:16} {:.3}", mean(&all));
            }
        }
    }
}
