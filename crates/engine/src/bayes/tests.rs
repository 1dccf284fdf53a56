//! A released model is the classifier it was made from.

use reticent_accounting::Relation;
use reticent_laws::{Seeded, Silent};
use reticent_mechanisms::program::RowProgram;
use reticent_mechanisms::rows::{Batch, Cells, Column, Missing};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Context, Simulated, Unit, simulate};
use reticent_noise::Noise;
use reticent_statistics::naive_bayes::Classifier;

use super::*;
use crate::model::Model;

fn schema() -> Schema {
    let column = |name: &str, kind| Column {
        name: name.to_owned(),
        kind,
        missing: Missing::Drop,
    };
    let levels = |of: &[&str]| Kind::Levels {
        levels: of.iter().map(|l| (*l).to_owned()).collect(),
        other: None,
    };
    let number = |lower, upper| Kind::Real { lower, upper };
    Schema {
        columns: vec![
            column("y", levels(&["no", "yes"])),
            column("three", levels(&["a", "b", "c"])),
            column("two", levels(&["p", "q"])),
            column("x value", number(0.0, 10.0)),
            column("z", number(-1.0, 1.0)),
        ],
    }
}

fn spec_of(formula: &str) -> NaiveBayesSpec {
    NaiveBayesSpec {
        formula: formula.to_owned(),
        positive: None,
        levels: Vec::new(),
        smoothing: Some(1.0),
        features: None,
        keep: None,
    }
}

fn named(schema: &Schema) -> Named<'_> {
    Named {
        schema,
        tokens: &[],
    }
}

/// 500 records, as codes.
fn records() -> Vec<[u32; 5]> {
    let mut random = Seeded::new(3);
    let mut next = |n: u64| u32::try_from(random.bits() % n).unwrap();
    (0..500)
        .map(|_| {
            let y = next(2);
            [
                y,
                (next(3) + y) % 3,
                next(2 + u64::from(y)) % 2,
                next(6) + 2 * y,
                next(10),
            ]
        })
        .collect()
}

/// The numbers of a record.
fn numbers(r: &[u32; 5]) -> (f64, f64) {
    (f64::from(r[3]), f64::from(r[4]) / 5.0 - 1.0)
}

/// What is released without noise.
fn released(schema: &Schema, spec: &NaiveBayesSpec) -> Value {
    let rows = records();
    let codes = |i: usize| Cells::Code(rows.iter().map(|r| r[i]).collect());
    let reals = |f: &dyn Fn(&[u32; 5]) -> f64| Cells::Real(rows.iter().map(f).collect());
    let batch = Batch::new(
        500,
        vec![
            codes(0),
            codes(1),
            codes(2),
            reals(&|r| numbers(r).0),
            reals(&|r| numbers(r).1),
        ],
    );
    let source = Memory::new(schema.clone().into(), vec![batch]);
    let context = Context::records(Relation::AddRemove);
    let facts = Facts {
        schema,
        filter: None,
        context: &context,
        rows: None,
        positive_rate: None,
    };
    let spec = self::spec(named(schema), spec, None).unwrap();
    let config = Config {
        smoothing: Some(1.0),
        ..Config::new(CountsPayment::Pure {
            epsilon: Rational::from(1u8),
        })
    };
    let prepared = naive_bayes::prepare(&facts, &spec, config).unwrap();
    let program = RowProgram {
        terms: prepared.terms,
        ..RowProgram::default()
    };
    let mechanism = prepared.mechanism.as_ref();
    let mut silent = Silent;
    let Simulated((answer, _)) = simulate(
        &source,
        Unit::Row,
        &context,
        &program,
        mechanism,
        &mut silent,
    )
    .unwrap();
    answer.value
}

/// The features that the record has, and its numbers, as the classifier takes them.
fn features_of(classifier: &Classifier, r: &[u32; 5]) -> (Vec<usize>, Vec<f64>) {
    let (x, z) = numbers(r);
    let names = [
        format!("y={}", ["no", "yes"][r[0] as usize]),
        format!("three={}", ["a", "b", "c"][r[1] as usize]),
        format!("two={}", ["p", "q"][r[2] as usize]),
    ];
    let held = |w: &str| {
        names.iter().any(|n| n == w)
            || (w.contains('>') && z > 0.0)
            || (w.contains("==") && r[1] == 1)
    };
    let has = (0..classifier.weights.len())
        .filter(|i| held(&classifier.weights[*i].name))
        .collect();
    let values = classifier.numeric.iter();
    (
        has,
        values.map(|n| if n.name == "z" { z } else { x }).collect(),
    )
}

fn cells(r: &[u32; 5]) -> crate::predict::Cells {
    let (x, z) = numbers(r);
    let cells = [f64::from(r[0]), f64::from(r[1]), f64::from(r[2]), x, z];
    cells.into_iter().enumerate().collect()
}

/// The model read back from a release predicts what the classifier does, record by record: all levels, also with another
/// reference, conditions, numbers and their squares.
#[test]
fn the_released_model_is_the_classifier() {
    let schema = schema();
    for formula in [
        "y ~ three + two + `x value` + (z > 0)",
        "y ~ (three == 'b') + two + `x value` + (z > 0)",
        "y ~ relevel(three, ref = \"b\") + relevel(two, ref = \"q\") + z",
    ] {
        let value = released(&schema, &spec_of(formula));
        let classifier = Classifier::read(&value).unwrap();
        let model = Model::read(&value).unwrap();
        assert_eq!(model.positive.as_deref(), Some("yes"));
        let predictor = model.linear_predictor(&model.design(&schema).unwrap());
        for r in &records() {
            let (has, values) = features_of(&classifier, r);
            let scores = classifier.scores(&has, &values);
            let odds = crate::predict::evaluate(&predictor, &cells(r));
            assert!(
                (odds - (scores[1] - scores[0])).abs() < 1e-8,
                "{formula} {r:?}"
            );
        }
    }
}

/// The same of three classes, in whatever order the plan lists them; their price is that of two.
#[test]
fn several_classes_are_the_classifier() {
    let schema = schema();
    for formula in [
        "three ~ y + two + `x value` + (z > 0)",
        "three ~ relevel(two, ref = \"q\") + z",
        "three ~ 1",
    ] {
        let spec = NaiveBayesSpec {
            levels: ["c", "a", "b"].map(str::to_owned).to_vec(),
            ..spec_of(formula)
        };
        let value = released(&schema, &spec);
        assert!(value.get("positive").is_none() && value.get("terms").is_none());
        let classifier = Classifier::read(&value).unwrap();
        assert_eq!(classifier.classes, ["a", "b", "c"]);
        let model = crate::predict::Classes::read(&value, &schema)
            .unwrap()
            .unwrap();
        for r in &records() {
            let (has, values) = features_of(&classifier, r);
            let expected = classifier.probabilities(&has, &values);
            for (p, q) in model.probabilities(&cells(r)).iter().zip(&expected) {
                assert!((p - q).abs() < 1e-9, "{formula} {r:?}");
            }
        }
        assert!(Model::read(&value).is_err());
    }
    let refused = |formula: &str, levels: &[&str]| {
        let spec = NaiveBayesSpec {
            levels: levels.iter().map(|l| (*l).to_owned()).collect(),
            ..spec_of(formula)
        };
        check(named(&schema), None, &spec).unwrap_err().to_string()
    };
    let message = refused("three ~ two", &["a", "b"]);
    assert!(message.contains("the level c is not listed"), "{message}");
    let message = refused("three ~ two", &["a", "b", "d"]);
    assert!(message.contains("d is no level"), "{message}");
    let message = refused("(z > 0) ~ two", &["TRUE", "FALSE"]);
    assert!(message.contains("declared levels"), "{message}");
}

#[test]
fn formulas_that_do_more_are_refused() {
    for formula in [
        "y ~ three:two",
        "y ~ log1p(z + 2)",
        "y ~ I(z^2)",
        "y ~ 0 + three",
        "y ~ w",
    ] {
        let refusal = check(named(&schema()), None, &spec_of(formula)).unwrap_err();
        assert!(!refusal.to_string().is_empty(), "{formula}");
    }
}
