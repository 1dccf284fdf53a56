//! Feature selection: exact without noise, priced as paid, and better for looking at more counts.

#![allow(clippy::float_cmp, reason = "whole numbers kept as floats")]

use reticent_accounting::{Currency, Rational, Relation};
use reticent_laws::{Seeded, Silent};
use reticent_mechanisms::Context;
use reticent_mechanisms::primitives::Payment;
use reticent_mechanisms::program::{Comparison, Expr};
use reticent_noise::Noise;
use reticent_statistics::features::{Config, Items, Keep, Method, Scoring, select};
use reticent_statistics::{Facts, Prepared, StatisticsError};
use serde_json::json;

use crate::support::{Table, rational, reals};

/// Columns as in the contract suite: x₀ … x₄, y (0/1) at 5.
pub(crate) fn of_columns(
    facts: &Facts<'_>,
    e: &Rational,
    method: Option<Method>,
) -> Result<Prepared, StatisticsError> {
    let above = |c| {
        Expr::Compare(
            Comparison::Greater,
            Box::new(Expr::Column(c)),
            Box::new(Expr::Constant(0.0)),
        )
    };
    let items = Items::indicators((0..5).map(|c| (format!("x{c}"), above(c))).collect(), 3);
    let epsilon = e.clone();
    let mut config = config(
        Payment::Pure { epsilon },
        Scoring::PurityIndex,
        Keep::Top(2),
    );
    config.method = method;
    select(facts, &items, &Expr::Column(5), config)
}

fn config(payment: Payment, scoring: Scoring, keep: Keep) -> Config {
    Config {
        payment,
        scoring,
        keep,
        method: None,
        metadata: json!({}),
    }
}

const WORDS: u8 = 12;

fn word(column: usize) -> Expr {
    let table = (0..=WORDS).map(f64::from).collect();
    Expr::Lookup(Box::new(Expr::Column(column)), table)
}

/// Three slots, a label; word i is the rarer the larger i, and some words prefer a class.
fn texts(rows: usize) -> (Table, Vec<[f64; 4]>) {
    let mut random = Seeded::new(77);
    let records: Vec<[f64; 4]> = (0..rows)
        .map(|_| {
            let mut next = |n: u64| u32::try_from(random.bits() % n).unwrap();
            let label = next(2);
            let mut draw = || {
                let w = (next(13) * next(13)) / 12;
                let w = if w % 3 == 0 && label == 1 { w + 1 } else { w };
                f64::from(w.min(12))
            };
            [draw(), draw(), draw(), f64::from(label)]
        })
        .collect();
    let column = |i: usize| records.iter().map(|r| r[i]).collect::<Vec<f64>>();
    let upper = f64::from(WORDS);
    let table = reals(&[
        ("w1", column(0), 0.0, upper),
        ("w2", column(1), 0.0, upper),
        ("w3", column(2), 0.0, upper),
        ("label", column(3), 0.0, 1.0),
    ]);
    (table, records)
}

fn items() -> Items {
    let names = (0..WORDS).map(|i| format!("word{i}")).collect();
    Items::slots(names, vec![word(0), word(1), word(2)])
}

fn pure(e: &str) -> Payment {
    Payment::Pure {
        epsilon: rational(e),
    }
}

/// Every score and way of choosing against counting records directly.
#[test]
fn silent_selection_is_exact() {
    let (table, records) = texts(4000);
    let context = Context::records(Relation::AddRemove);
    let facts = table.facts(&context, None);
    let count = |keep: &dyn Fn(&[f64; 4]) -> bool| {
        f64::from(u32::try_from(records.iter().filter(|r| keep(r)).count()).unwrap())
    };
    let all = [0.0, 1.0].map(|l| count(&|r| r[3] == l));
    let having = |w: f64| [0.0, 1.0].map(|l| count(&|r| r[3] == l && r[..3].contains(&w)));
    for scoring in Scoring::ALL {
        let scores: Vec<f64> = (0..WORDS)
            .map(|w| scoring.of(having(f64::from(w)), all))
            .collect();
        let mut order: Vec<usize> = (0..usize::from(WORDS)).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        let names =
            |n: usize| -> Vec<String> { order[..n].iter().map(|i| format!("word{i}")).collect() };
        let threshold = scores[order[4]];
        for (keep, want) in [(Keep::Top(5), names(5)), (Keep::Above(threshold), names(4))] {
            let config = config(pure("1"), scoring, keep);
            let prepared = select(&facts, &items(), &Expr::Column(3), config).unwrap();
            let (answer, trace) = table.run(&context, &prepared, &mut Silent);
            assert!(trace.unused.is_empty());
            assert_eq!(answer.value["features"], json!(want), "{scoring:?}");
        }
        if scoring == Scoring::TotalCount {
            let few = config(pure("1"), scoring, Keep::Top(3));
            let prepared = select(&facts, &items(), &Expr::Column(3), few).unwrap();
            let (answer, _) = table.run(&context, &prepared, &mut Silent);
            assert_eq!(answer.value["method"], "picks");
            assert_eq!(answer.value["features"], json!(names(3)));
            let mut tests = config(pure("1"), scoring, Keep::Above(threshold));
            tests.method = Some(Method::SparseVector { answers: 4 });
            let prepared = select(&facts, &items(), &Expr::Column(3), tests).unwrap();
            let (answer, _) = table.run(&context, &prepared, &mut Silent);
            let mut found: Vec<String> = names(4);
            found.sort_by_key(|n| n["word".len()..].parse::<u32>().unwrap());
            assert_eq!(answer.value["features"], json!(found));
        }
        // one cluster per word is every word by itself
        let mut each = config(pure("1"), scoring, Keep::Top(5));
        each.method = Some(Method::Clusters(u32::from(WORDS)));
        let prepared = select(&facts, &items(), &Expr::Column(3), each).unwrap();
        let (answer, _) = table.run(&context, &prepared, &mut Silent);
        assert_eq!(answer.value["features"].as_array().unwrap().len(), 5);
    }
}

/// Whatever the way, exactly what is paid is spent, under both relations and in every currency that can pay.
#[test]
fn selection_costs_what_is_paid() {
    let (table, _) = texts(100);
    let third = rational("1") / Rational::from(3u8);
    for relation in [Relation::AddRemove, Relation::ReplaceOne] {
        for (currency, payment) in [
            (
                Currency::Pure,
                Payment::Pure {
                    epsilon: third.clone(),
                },
            ),
            (
                Currency::Approximate,
                Payment::Approximate {
                    epsilon: third.clone(),
                    delta: rational("1e-6"),
                },
            ),
            (
                Currency::Concentrated,
                Payment::Concentrated { rho: third.clone() },
            ),
        ] {
            let mut context = Context::records(relation);
            context.currency = currency;
            let ways = [
                (Keep::Top(2), Method::Counts),
                (Keep::Top(2), Method::Clusters(3)),
                (Keep::Top(2), Method::Picks),
                (Keep::Above(9.0), Method::SparseVector { answers: 3 }),
            ];
            for (keep, method) in ways {
                let mut config = config(payment.clone(), Scoring::TotalCount, keep);
                config.method = Some(method);
                let facts = table.facts(&context, None);
                let prepared = select(&facts, &items(), &Expr::Column(3), config);
                let all = matches!(method, Method::Counts | Method::Clusters(_));
                if currency != Currency::Pure && !all {
                    assert!(prepared.is_err());
                    continue;
                }
                let event = prepared.unwrap().mechanism.event(&context).unwrap();
                let price = event.price(currency).unwrap();
                assert_eq!(price.under(relation).unwrap().amount, third, "{method:?}");
            }
        }
    }
}

#[test]
fn refusals_name_what_would_do() {
    let (table, _) = texts(10);
    let context = Context::records(Relation::AddRemove);
    let facts = table.facts(&context, None);
    let refused = |items: &Items, config: Config| {
        let error = select(&facts, items, &Expr::Column(3), config).unwrap_err();
        assert!(!error.to_string().is_empty());
    };
    let base = |keep| config(pure("1"), Scoring::TotalCount, keep);
    refused(&items(), base(Keep::Top(0)));
    refused(&items(), base(Keep::Top(13)));
    refused(&items(), base(Keep::Above(f64::NAN)));
    refused(&Items::none(), base(Keep::Top(1)));
    refused(
        &items(),
        config(pure("0"), Scoring::TotalCount, Keep::Top(1)),
    );
    for (scoring, method) in [
        (Scoring::PurityIndex, Method::Picks),
        (Scoring::TotalCount, Method::SparseVector { answers: 1 }),
        (Scoring::TotalCount, Method::Clusters(0)),
    ] {
        let mut asked = config(pure("1"), scoring, Keep::Top(1));
        asked.method = Some(method);
        refused(&items(), asked);
    }
}

/// Restricting keeps names and places together, and features left out do not use up the places of those kept.
#[test]
fn restricted_items_count_alone() {
    let (table, records) = texts(500);
    let context = Context::records(Relation::AddRemove);
    let only = items().restricted(&[7, 2], 1);
    assert_eq!(only.names, ["word7", "word2"]);
    let config = config(pure("1"), Scoring::TotalCount, Keep::Top(2));
    let facts = table.facts(&context, None);
    let prepared = select(&facts, &only, &Expr::Column(3), config).unwrap();
    let (answer, _) = table.run(&context, &prepared, &mut Silent);
    // at most one of the two counts per record: the one in the earlier slot
    let first = |w: f64| {
        let leads = |r: &&[f64; 4]| r[..3].iter().find(|x| **x == 7.0 || **x == 2.0) == Some(&w);
        u32::try_from(records.iter().filter(leads).count()).unwrap()
    };
    let mut want = [f64::from(first(7.0)), f64::from(first(2.0))];
    want.sort_by(|a, b| b.total_cmp(a));
    assert_eq!(answer.value["scores"], json!(want));
}
