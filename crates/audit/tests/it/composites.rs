//! Method C over every composite of the registry: prices add up, exactly the declared steps are bought, and with all
//! noise drowned nothing of the table is left in the answer.

use std::collections::BTreeSet;

use super::*;
use reticent_accounting::Size;
use reticent_audit::auditor::composites::{currency, prepare, schema};
use reticent_audit::neighbours::{Case, Drowned, losses};
use reticent_audit::registry::COMPOSITES;
use reticent_audit::tables::real as binary;
use reticent_mechanisms::primitives::Payment;
use reticent_mechanisms::program::Comparison;
use reticent_mechanisms::rows::Schema;
use reticent_noise::Noise;
use reticent_statistics::features::{self, Items, Keep, Scoring};
use reticent_statistics::{DesignSpec, Facts, Prepared, logistic, naive_bayes};
use serde_json::Value;

#[test]
fn all() {
    let rows = vec![
        vec![0.0, 0.0],
        vec![1.5, 1.0],
        vec![4.0, 1.0],
        vec![f64::NAN, 1.0],
    ];
    let universe = Universe::rows(schema(), rows);
    let tables = universe.tables(2);
    let mut failures = Vec::new();
    let mut names = BTreeSet::new();
    for row in COMPOSITES {
        names.insert(row.name);
        for relation in RELATIONS {
            for rows_per_unit in [1, 3] {
                let context = Context {
                    relation,
                    currency: currency(row.name),
                    size: Size::Private,
                    rows_per_unit,
                };
                let schema = schema();
                let facts = Facts {
                    schema: &schema,
                    filter: None,
                    context: &context,
                    rows: Some(1000.0),
                    positive_rate: Some(0.5),
                };
                let prepared = prepare(row.name, &facts)
                    .unwrap_or_else(|| panic!("no constructor for {}", row.name))
                    .unwrap();
                let program = RowProgram {
                    terms: prepared.terms,
                    ..RowProgram::default()
                };
                let case = Case {
                    universe: &universe,
                    program: &program,
                    mechanism: prepared.mechanism.as_ref(),
                    unit: Unit::Row,
                    context: &context,
                };
                match case.contract(&tables) {
                    Ok(price) => {
                        let own = &price.under(relation).unwrap().amount;
                        if *own > ratio(1, 1) {
                            failures.push(format!("{} {relation}: costs {own}", row.name));
                        }
                    }
                    Err(e) => {
                        failures.push(format!("{} {relation} k={rows_per_unit}: {e}", row.name));
                    }
                }
            }
        }
    }
    assert_eq!(names.len(), COMPOSITES.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Two features of which a record has up to two, and a label.
fn three() -> (Schema, Universe) {
    let schema = Schema {
        columns: ["a", "b", "y"].map(|n| binary(n, 0.0, 1.0)).to_vec(),
    };
    let rows = [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0]];
    let universe = Universe::rows(schema.clone(), rows.iter().map(|r| r.to_vec()).collect());
    (schema, universe)
}

fn items() -> Items {
    let has = |at: usize| {
        let half = Box::new(Expr::Constant(0.5));
        Expr::Compare(Comparison::Greater, Box::new(Expr::Column(at)), half)
    };
    Items::indicators(vec![("a".to_owned(), has(0)), ("b".to_owned(), has(1))], 2)
}

/// One release after the other on the same table: the second is prepared from what the first released.
fn selection(facts: &Facts<'_>, epsilon: Rational) -> Prepared {
    let config = features::Config {
        payment: Payment::Pure { epsilon },
        scoring: Scoring::TotalCount,
        keep: Keep::Top(1),
        method: Some(features::Method::Picks),
        metadata: Value::Null,
    };
    features::select(facts, &items(), &Expr::Column(2), config).unwrap()
}

fn bayes(facts: &Facts<'_>, epsilon: Rational, chosen: &[usize]) -> Prepared {
    let spec = naive_bayes::Spec {
        items: items().restricted(chosen, 1),
        ..naive_bayes::Spec::new(Expr::Column(2), vec!["0".to_owned(), "1".to_owned()])
    };
    let config = naive_bayes::Config::new(Payment::Pure { epsilon });
    naive_bayes::prepare(facts, &spec, config).unwrap()
}

fn odds(facts: &Facts<'_>, epsilon: Rational, chosen: &[usize]) -> Prepared {
    let names = items().names;
    let design = DesignSpec {
        intercept: true,
        terms: chosen
            .iter()
            .map(|i| (names[*i].clone(), Expr::Column(*i)))
            .collect(),
        outcome: Expr::Column(2),
        metadata: Value::Null,
    };
    logistic::prepare(facts, &design, &logistic::Config::new(epsilon)).unwrap()
}

fn ran(
    universe: &Universe,
    context: &Context,
    prepared: &Prepared,
    table: &Multiset,
    noise: &mut dyn Noise,
) -> Value {
    let program = RowProgram {
        terms: prepared.terms.clone(),
        ..RowProgram::default()
    };
    let case = Case {
        universe,
        program: &program,
        mechanism: prepared.mechanism.as_ref(),
        unit: Unit::Row,
        context,
    };
    case.run(&universe.source(table), noise).unwrap().0
}

fn chosen(value: &Value) -> Vec<usize> {
    let names = items().names;
    let list = value["features"].as_array().unwrap().iter();
    list.map(|f| names.iter().position(|n| f == n.as_str()).unwrap())
        .collect()
}

fn price(prepared: &Prepared, context: &Context) -> [f64; 2] {
    let event = prepared.mechanism.event(context).unwrap();
    let price = event.price(Currency::Pure).unwrap();
    RELATIONS.map(|r| price.under(r).unwrap().amount.to_f64().value())
}

/// Enumeration of both releases together, choice and noisy counts, over tables of at most one record: the joint loss is at most the sum of the prices under both relations,
/// with either calibration; and the canary, counts paid for half, exceeds it.
#[test]
fn select_then_model_enumerated() {
    let (schema, universe) = three();
    let tables = universe.tables(1);
    let (first, second) = (ratio(1, 1), ratio(16, 1));
    for (i, calibrated) in RELATIONS.into_iter().enumerate() {
        let context = Context::records(calibrated);
        let facts = Facts {
            schema: &schema,
            filter: None,
            context: &context,
            rows: Some(10.0),
            positive_rate: None,
        };
        let select = selection(&facts, first.clone());
        let joint = |paid: &Rational| {
            let models = [0, 1].map(|f| bayes(&facts, paid.clone(), &[f]));
            losses(&tables, |table, noise| {
                let found = chosen(&ran(&universe, &context, &select, table, noise));
                let model = &models[found[0]];
                let value = ran(&universe, &context, model, table, noise);
                (
                    found,
                    value["class_counts"].to_string(),
                    value["counts"].to_string(),
                )
            })
            .unwrap()
        };
        let found = joint(&second);
        let prices = [
            price(&select, &context),
            price(&bayes(&facts, second.clone(), &[0]), &context),
        ];
        for (r, relation) in RELATIONS.into_iter().enumerate() {
            let paid = prices[0][r] + prices[1][r];
            let loss = found.under(relation);
            assert!(
                loss <= paid * (1.0 + 1e-9),
                "{calibrated} {relation}: {loss} of {paid}"
            );
        }
        // counts with the noise of twice the budget, sold for the budget
        let canary = joint(&ratio(32, 1)).under(calibrated);
        assert!(
            canary > prices[0][i] + prices[1][i],
            "{calibrated}: {canary}"
        );
    }
}

/// The price of a model does not depend on what was chosen, and with all noise drowned neither the choice nor the model knows the table.
#[test]
fn select_then_model_contract() {
    let (schema, universe) = three();
    let tables = universe.tables(2);
    for relation in RELATIONS {
        let context = Context::records(relation);
        let facts = Facts {
            schema: &schema,
            filter: None,
            context: &context,
            rows: Some(10.0),
            positive_rate: None,
        };
        let select = selection(&facts, ratio(1, 1));
        for model in [bayes, odds] {
            let before = price(&model(&facts, ratio(1, 1), &[0]), &context);
            let other = price(&model(&facts, ratio(1, 1), &[1]), &context);
            assert_eq!(before.map(f64::to_bits), other.map(f64::to_bits));
            for pattern in 0..3 {
                let mut answers = BTreeSet::new();
                for table in &tables {
                    let noise = &mut Drowned::new(pattern);
                    let found = chosen(&ran(&universe, &context, &select, table, noise));
                    let prepared = model(&facts, ratio(1, 1), &found);
                    let value = ran(&universe, &context, &prepared, table, noise);
                    let terms: Vec<String> = (value["terms"].as_array().into_iter().flatten())
                        .map(|t| format!("{:.8e}", t["estimate"].as_f64().unwrap()))
                        .collect();
                    answers.insert((found, value["class_counts"].to_string(), terms));
                }
                assert_eq!(answers.len(), 1, "{relation}: {answers:?}");
            }
        }
    }
}
