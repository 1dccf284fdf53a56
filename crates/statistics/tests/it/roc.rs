//! ROC variants, several models, and what follows from the counts.

use reticent_accounting::{Currency, Relation};
use reticent_laws::{Seeded, Silent};
use reticent_mechanisms::Context;
use reticent_mechanisms::program::Expr;
use reticent_statistics::histogram::Method;
use reticent_statistics::roc::{
    Config, Examined, Thresholds, plan, prepare, prepare_several, untied,
};
use reticent_statistics::{Prepared, Score, StatisticsError};
use serde_json::{Value, json};

use crate::support::{Table, rational, reals, uniform};

fn context(relation: Relation) -> Context {
    Context::records(relation)
}

/// Two scores of one outcome: p = q-quantile position of the record, a score that ranks perfectly but for every `wrong`th record, and
/// one that is worse.
fn table(rows: usize) -> Table {
    let mut noise = Seeded::new(5);
    let (mut p, mut q, mut y) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let u = uniform(&mut noise);
        let positive = uniform(&mut noise) < u;
        p.push(u);
        q.push(0.5 * u + 0.5 * uniform(&mut noise));
        y.push(f64::from(u8::from(positive)));
    }
    reals(&[("p", p, 0.0, 1.0), ("q", q, 0.0, 1.0), ("y", y, 0.0, 1.0)])
}

fn model(column: usize, name: &str) -> Examined {
    Examined {
        name: name.to_owned(),
        score: Score::Probability(Expr::Column(column)),
        metadata: json!({"model": name}),
    }
}

fn variants() -> Vec<Config> {
    let mut all = Vec::new();
    all.push(Config {
        choice: Thresholds::LabelSeparate,
        bins: Some(8),
        ..Config::new(rational("1"))
    });
    for choice in [
        Thresholds::Medians,
        Thresholds::Smooth,
        Thresholds::Even,
        Thresholds::Stratified,
    ] {
        for counts in [
            Method::Identity,
            Method::Uniform,
            Method::Hb,
            Method::Privelet,
            Method::GreedyH,
            Method::Dawa,
            Method::Ahp,
            Method::Mwem,
        ] {
            all.push(Config {
                choice,
                counts,
                bins: Some(8),
                ..Config::new(rational("1"))
            });
        }
    }
    all
}

fn make(table: &Table, context: &Context, config: &Config, models: usize) -> Prepared {
    let facts = table.facts(context, Some(2000.0));
    let all = [model(0, "a"), model(1, "b")];
    prepare_several(&facts, &all[..models], Expr::Column(2), config).unwrap()
}

/// Every way of choosing thresholds and counting costs ε exactly, for one and for two models.
#[test]
fn prices_add_up() {
    let table = table(10);
    for relation in [Relation::AddRemove, Relation::ReplaceOne] {
        let context = context(relation);
        for config in variants() {
            for models in [1, 2] {
                let prepared = make(&table, &context, &config, models);
                let event = prepared.mechanism.event(&context).unwrap();
                let price = event.price(Currency::Pure).unwrap();
                let paid = &price.under(relation).unwrap().amount;
                assert_eq!(*paid, rational("1"), "{config:?}");
            }
        }
    }
}

/// No table makes a variant fail, leave a step unbought, or release a number that is none.
#[test]
fn every_variant_answers_on_every_table() {
    let empty = reals(&[
        ("p", vec![], 0.0, 1.0),
        ("q", vec![], 0.0, 1.0),
        ("y", vec![], 0.0, 1.0),
    ]);
    let ties = reals(&[
        ("p", vec![0.5; 40], 0.0, 1.0),
        ("q", vec![1.0; 40], 0.0, 1.0),
        ("y", vec![1.0; 40], 0.0, 1.0),
    ]);
    for relation in [Relation::AddRemove, Relation::ReplaceOne] {
        let context = context(relation);
        for table in [&empty, &ties, &table(200)] {
            for config in variants() {
                for epsilon in ["0.000000001", "0.01", "1000", "1000000000"] {
                    if epsilon.len() > 6 && config.choice == Thresholds::Smooth {
                        // refused: its scale would not be a number
                        continue;
                    }
                    let config = Config {
                        epsilon: rational(epsilon),
                        ..config.clone()
                    };
                    let prepared = make(table, &context, &config, 2);
                    let (answer, trace) = table.run(&context, &prepared, &mut Seeded::new(3));
                    assert!(trace.unused.is_empty(), "{config:?}");
                    for part in answer.value["models"].as_array().unwrap() {
                        let auc = part["auc"].as_f64().unwrap();
                        assert!((0.0..=1.0).contains(&auc), "{config:?}");
                        // bounds only where the noise is all by which counts err
                        let known =
                            config.counts.is_linear() && config.choice != Thresholds::LabelSeparate;
                        let low = &part["decisions"][0]["true_positives"]["low"];
                        assert_eq!(low.is_number(), known, "{config:?}");
                    }
                }
            }
        }
    }
}

/// With hardly any noise every variant finds the area of the true curve: u against Bernoulli(u) has area 5/6, and 4000 records have
/// a sampling deviation of .0065; all within .03 (smooth medians and uniform counts aside: those lose shape, as they should).
#[test]
fn variants_agree_without_noise() {
    let table = table(4000);
    let context = context(Relation::AddRemove);
    for config in variants() {
        if config.counts == Method::Uniform || config.counts == Method::Mwem {
            continue;
        }
        let config = Config {
            epsilon: rational("10000"),
            bins: Some(32),
            ..config
        };
        let prepared = make(&table, &context, &config, 1);
        let value = table.run(&context, &prepared, &mut Seeded::new(1)).0.value;
        let auc = value["models"][0]["auc"].as_f64().unwrap();
        assert!((auc - 5.0 / 6.0).abs() < 0.03, "{auc} {config:?}");
    }
}

/// Decisions hold their counts for every way of counting whose noise is known, also where it is shared between bins: 200 runs, each bound
/// missed at most 36 times (by chance at .05: below 1e-9). Caught with probability .999: a coverage of .7. Bounds of the negatives that took the
/// noise of bins for independent missed in half of the runs and more.
#[test]
fn decisions_hold_with_shared_noise() {
    let table = table(2000);
    let context = context(Relation::AddRemove);
    for counts in [
        Method::Identity,
        Method::Hb,
        Method::Privelet,
        Method::GreedyH,
    ] {
        let config = Config {
            choice: Thresholds::Even,
            counts,
            bins: Some(64),
            ..Config::new(rational("0.5"))
        };
        let prepared = make(&table, &context, &config, 1);
        let silent = table.run(&context, &prepared, &mut Silent).0.value;
        let keys = [
            "true_positives",
            "false_positives",
            "false_negatives",
            "true_negatives",
        ];
        let mut missed = [0u32; 4];
        for run in 0..200 {
            let value = table
                .run(&context, &prepared, &mut Seeded::stream(41, run))
                .0
                .value;
            for (key, missed) in keys.iter().zip(&mut missed) {
                let truth = silent["models"][0]["decisions"][0][key]["count"]
                    .as_f64()
                    .unwrap();
                let found = &value["models"][0]["decisions"][0][key];
                let (low, high) = (
                    found["low"].as_f64().unwrap(),
                    found["high"].as_f64().unwrap(),
                );
                *missed += u32::from(!(low - 1e-6..=high + 1e-6).contains(&truth));
            }
        }
        assert!(missed.iter().all(|m| *m <= 36), "{counts:?}: {missed:?}");
    }
}

/// Two models that rank alike, one with all its probabilities in few even bins: their areas are not told apart; 20 runs, none of which may (a
/// .05 test would do so in one; that interval said so in all).
#[test]
fn crowded_bins_tell_nothing_apart() {
    let noise = &mut Seeded::new(8);
    let p: Vec<f64> = (0..4000).map(|_| uniform(noise)).collect();
    let y = p
        .iter()
        .map(|p| f64::from(u8::from(uniform(noise) < *p)))
        .collect();
    let q = p.iter().map(|p| 0.5 + p / 1000.0).collect();
    let table = reals(&[("p", p, 0.0, 1.0), ("q", q, 0.0, 1.0), ("y", y, 0.0, 1.0)]);
    let context = context(Relation::AddRemove);
    let config = Config {
        choice: Thresholds::Even,
        ..Config::new(rational("10"))
    };
    let prepared = make(&table, &context, &config, 2);
    for run in 0..20 {
        let value = table
            .run(&context, &prepared, &mut Seeded::stream(42, run))
            .0
            .value;
        let comparison = &value["comparisons"][0];
        assert!(
            comparison["p_value"].as_f64().unwrap() > 0.05,
            "{comparison}"
        );
        let flat = &value["models"][1];
        let interval = flat["auc_low"].as_f64().unwrap()..=flat["auc_high"].as_f64().unwrap();
        assert!(interval.contains(&(5.0 / 6.0)), "{interval:?}");
    }
}

/// Scores that take few values by declaration have ties: no quantiles of each class.
#[test]
fn quantiles_of_each_class_need_scores_without_ties() {
    let table = table(10);
    let context = context(Relation::AddRemove);
    let schema = table.facts(&context, None).schema;
    let refused = untied(schema, &[Expr::Constant(0.5)]).unwrap_err();
    assert!(refused.to_string().contains("ties"), "{refused}");
    assert!(untied(schema, &[Expr::Column(0)]).is_ok());
}

/// Ten records at public thresholds, without noise: every table by hand.
#[test]
fn tables_of_ten_records() {
    let p = vec![0.9, 0.9, 0.9, 0.7, 0.7, 0.4, 0.4, 0.4, 0.1, 0.1];
    let y = vec![1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    let table = reals(&[("p", p, 0.0, 1.0), ("y", y, 0.0, 1.0)]);
    let context = context(Relation::AddRemove);
    let config = Config {
        thresholds: Some(vec![0.25, 0.5, 0.8]),
        decide_at: vec![0.5, 0.65],
        ..Config::new(rational("1000"))
    };
    let score = Score::Probability(Expr::Column(0));
    let facts = table.facts(&context, Some(10.0));
    let prepared = prepare(&facts, &score, Expr::Column(1), config).unwrap();
    let value = table.run(&context, &prepared, &mut Silent).0.value;
    let near = |v: &Value, x: f64| (v.as_f64().unwrap() - x).abs() < 1e-9;
    let table_at = &value["decisions"][0];
    for (key, want) in [
        ("true_positives", 4.0),
        ("false_positives", 1.0),
        ("false_negatives", 1.0),
        ("true_negatives", 4.0),
    ] {
        assert!(near(&table_at[key]["count"], want), "{key} {table_at}");
    }
    assert_eq!(table_at["between_released_thresholds"], false);
    assert!(near(&table_at["accuracy"], 0.8) && near(&table_at["precision"], 0.8));
    // .65 lies half way between .8 and .5: half of the bin's (1, 1)
    let between = &value["decisions"][1];
    assert_eq!(between["between_released_thresholds"], true);
    assert!(near(&between["true_positives"]["count"], 3.5));
    assert!(near(&between["false_positives"]["count"], 0.5));
    // vertices (0, .6), (.2, .8), (.6, 1): Youden .6 at the first two, the later one is taken
    let rules = value["operating_points"].as_array().unwrap();
    let rule = |name: &str| rules.iter().find(|r| r["rule"] == name).unwrap();
    assert!(near(&rule("youden")["threshold"], 0.5), "{rules:?}");
    assert!(near(&rule("fpr_at_most_0.05")["threshold"], 0.8));
    assert!(near(&rule("fpr_at_most_0.2")["tpr"], 0.8));
    // precision 1 up to recall .6, then 4/5, 5/8, 5/10 with lines between counts
    let pr = value["precision_recall"].as_array().unwrap();
    assert!(near(&pr[0]["precision"], 1.0) && near(&pr[2]["precision"], 0.625));
    let bent = |tp: f64, fp: f64, dt: f64, df: f64| -> f64 {
        (0..100_000)
            .map(|i| {
                let s = (f64::from(i) + 0.5) / 1e5;
                let (t, f) = (tp + s * dt, fp + s * df);
                t / (t + f) * dt / 5.0 / 1e5
            })
            .sum()
    };
    let want = 0.6 + bent(3.0, 0.0, 1.0, 1.0) + bent(4.0, 1.0, 1.0, 2.0);
    let got = value["average_precision"].as_f64().unwrap();
    assert!((got - want).abs() < 1e-3, "{got} {want}");
    // the bin of scores .5 to .8 has one positive of two
    let bin = &value["calibration"][1];
    assert!(near(&bin["positive_share"], 0.5) && near(&bin["score_low"], 0.5));
    assert_eq!(bin["agrees"], true);
    assert_eq!(value["drawn"], true);
}

/// Records whose score p separates the classes by `strength`, of which a share is positive, and the same order in q; ties: p has
/// that many values.
fn ordered(rows: usize, share: f64, strength: f64, ties: Option<f64>) -> Table {
    let mut noise = Seeded::new(40);
    let (mut p, mut q, mut y) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..rows {
        let positive = uniform(&mut noise) < share || i == 0;
        let pull = if positive { strength } else { 0.0 };
        let u = uniform(&mut noise).powf(1.0 / (1.0 + pull));
        let u = ties.map_or(u, |t| (u * t).floor() / t);
        p.push(u);
        q.push(u * u);
        y.push(f64::from(u8::from(positive)));
    }
    reals(&[("p", p, 0.0, 1.0), ("q", q, 0.0, 1.0), ("y", y, 0.0, 1.0)])
}

/// Two models with the same area (a score and its square order the records alike) are found different at p < .05 in at most 5 % of
/// releases: n·ε from 100 to 10,000, both relations, ties, unequal classes, useless scores. At a true rate of .05 a setting of 400
/// releases exceeds 52 with probability below 10⁻¹⁰ (binomial tail), and all 4,800 exceed 340 (a rate of .071) with probability below
/// 10⁻¹⁰. Sampling included, the p-value is never smaller.
#[test]
fn comparisons_are_honest() {
    use Relation::{AddRemove, ReplaceOne};
    let (mut all, mut report) = (0, Vec::new());
    for (at, (rows, share, strength, ties, epsilon, relation)) in [
        (1000, 0.5, 4.0, None, "0.1", AddRemove),
        (1000, 0.5, 4.0, None, "0.2", ReplaceOne),
        (1000, 0.3, 4.0, None, "0.5", AddRemove),
        (1000, 0.5, 4.0, None, "1", AddRemove),
        (1000, 0.5, 4.0, None, "1", ReplaceOne),
        (1000, 0.5, 4.0, None, "10", AddRemove),
        (1000, 0.5, 4.0, None, "10", ReplaceOne),
        (1000, 0.1, 4.0, None, "1", AddRemove),
        (1000, 0.5, 4.0, Some(5.0), "0.3", AddRemove),
        (1000, 0.5, 4.0, Some(5.0), "1", ReplaceOne),
        (1000, 0.4, 4.0, Some(12.0), "10", AddRemove),
        (1000, 0.5, 0.0, None, "1", AddRemove),
    ]
    .into_iter()
    .enumerate()
    {
        let table = ordered(rows, share, strength, ties);
        let context = context(relation);
        let facts = table.facts(&context, Some(1000.0));
        let config = Config::new(rational(epsilon));
        let same = [model(0, "a"), model(1, "squared")];
        let prepared = prepare_several(&facts, &same, Expr::Column(2), &config).unwrap();
        let mut found = 0;
        for run in 0..400 {
            let mut noise = Seeded::stream(77 + at as u64, run);
            let value = table.run(&context, &prepared, &mut noise).0.value;
            let get = |key: &str| value["comparisons"][0][key].as_f64().unwrap();
            let (p, low, high) = (get("p_these_records"), get("low"), get("high"));
            assert_eq!(p < 0.05, !(low..=high).contains(&0.0), "{p} {low} {high}");
            assert!(get("p_value") >= p);
            assert!(get("sampling_low") <= low && high <= get("sampling_high"));
            found += u32::from(p < 0.05);
        }
        report.push(found);
        all += found;
        assert!(found <= 52, "{at}: {found} of 400");
    }
    println!("{report:?}");
    assert!(all <= 340, "{all}: {report:?}");
}

/// A clearly better model is found in every one of twenty releases, with sampling too.
#[test]
fn differences_are_found() {
    let table = table(2000);
    let context = context(Relation::AddRemove);
    let facts = table.facts(&context, Some(2000.0));
    let different = [model(0, "a"), model(1, "b")];
    let config = Config::new(rational("1"));
    let apart = prepare_several(&facts, &different, Expr::Column(2), &config).unwrap();
    for run in 0..20 {
        let mut noise = Seeded::stream(78, run);
        let value = table.run(&context, &apart, &mut noise).0.value;
        let pair = &value["comparisons"][0];
        assert!(pair["difference"].as_f64().unwrap() > 0.0);
        assert!(pair["p_value"].as_f64().unwrap() < 0.05, "{pair}");
    }
}

#[test]
fn plans_refuse_to_draw_noise() {
    let table = table(10);
    let context = context(Relation::AddRemove);
    let mut facts = table.facts(&context, Some(500.0));
    assert!(plan(&facts, &rational("1"), 1).drawn);
    facts.positive_rate = Some(0.01);
    let few = plan(&facts, &rational("1"), 1);
    assert!(!few.drawn && few.reason.contains("5.0 records"));
    assert!(plan(&facts, &rational("4"), 1).drawn);
    assert!(!plan(&facts, &rational("4"), 4).drawn);
    facts.rows = None;
    assert!(plan(&facts, &rational("1"), 1).drawn);
    // and the release carries it
    facts.rows = Some(500.0);
    let score = Score::Probability(Expr::Column(0));
    let config = Config::new(rational("1"));
    let prepared = prepare(&facts, &score, Expr::Column(2), config).unwrap();
    let answer = table.run(&context, &prepared, &mut Seeded::new(1)).0;
    assert_eq!(answer.value["drawn"], false);
    assert!(answer.flags.contains(&"too_little_signal".to_owned()));
}

#[test]
fn impossible_choices_are_refused() {
    let table = table(10);
    let context = context(Relation::AddRemove);
    let facts = table.facts(&context, None);
    let refused = |models: &[Examined], config: Config| match prepare_several(
        &facts,
        models,
        Expr::Column(2),
        &config,
    ) {
        Err(StatisticsError::Parameter { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    let config = || Config::new(rational("1"));
    assert_eq!(refused(&[], config()), "models");
    let one = [model(0, "a")];
    let many = vec![model(0, "a"); 17];
    assert_eq!(refused(&many, config()), "models");
    for (want, config) in [
        (
            "counts",
            Config {
                counts: Method::Ag,
                ..config()
            },
        ),
        (
            "decide_at",
            Config {
                decide_at: vec![f64::NAN],
                ..config()
            },
        ),
        (
            "bins",
            Config {
                bins: Some(1),
                choice: Thresholds::Even,
                ..config()
            },
        ),
        (
            "share",
            Config {
                share: Some(f64::NAN),
                ..config()
            },
        ),
    ] {
        assert_eq!(refused(&one, config), want);
    }
}
