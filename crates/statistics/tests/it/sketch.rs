//! Directions of a sketch: their law, their records, odd requests.

use reticent_accounting::{Currency, Rational, Relation, Size};
use reticent_laws::Seeded;
use reticent_mechanisms::Context;
use reticent_mechanisms::program::Expr;
use reticent_statistics::covariance::{
    Direction, ROWS, Released, Rows, SketchConfig, directions, prepare_sketch, sketch_error,
};
use serde_json::Value;

use crate::support::{Table, rational, reals, uniform};

fn context(size: Size) -> Context {
    Context {
        currency: Currency::Approximate,
        size,
        ..Context::records(Relation::AddRemove)
    }
}

fn columns(names: &[&str]) -> Vec<(String, Expr)> {
    let column = |(i, n): (usize, &&str)| ((*n).to_owned(), Expr::Column(i));
    names.iter().enumerate().map(column).collect()
}

fn config(epsilon: &str, rows: u32) -> SketchConfig {
    SketchConfig {
        rows: Some(rows),
        ..SketchConfig::new(rational(epsilon), rational("0.000001"))
    }
}

fn direction(weights: &[(usize, f64)]) -> Direction {
    Direction {
        name: "d".to_owned(),
        weights: weights.to_vec(),
    }
}

fn field(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap()
}

/// a on [0, 10], b = 2a + up to 5 on [0, 40]; and Σ of a direction's squares around the middles 5 and 20.
fn people(n: usize, seed: u64) -> (Table, impl Fn(f64, f64) -> f64) {
    let mut noise = Seeded::new(seed);
    let a: Vec<f64> = (0..n).map(|_| 10.0 * uniform(&mut noise)).collect();
    let b: Vec<f64> = a
        .iter()
        .map(|a| 2.0 * a + 5.0 * uniform(&mut noise))
        .collect();
    let truth = {
        let (a, b) = (a.clone(), b.clone());
        move |u: f64, v: f64| -> f64 {
            let along = a
                .iter()
                .zip(&b)
                .map(|(a, b)| u * (a - 5.0) + v * (b - 20.0));
            along.map(|x| x * x).sum()
        }
    };
    (reals(&[("a", a, 0.0, 10.0), ("b", b, 0.0, 40.0)]), truth)
}

/// 400 intervals of 200 sketches, nominal .95, two directions each: fewer than 340 has probability below 1e-9 (the two of a sketch may agree: 200 independent
/// pairs, fewer than 170 of either), a true coverage of .75 is caught with probability above .99.
#[test]
fn intervals_of_directions_cover() {
    let context = context(Size::Private);
    let (table, truth) = people(3000, 5);
    let asked = vec![direction(&[(0, 1.0)]), direction(&[(0, -2.0), (1, 1.0)])];
    let truths = [truth(1.0, 0.0), truth(-2.0, 1.0)];
    let config = SketchConfig {
        directions: asked,
        ..config("2", 40)
    };
    let facts = table.facts(&context, None);
    let prepared = prepare_sketch(&facts, &columns(&["a", "b"]), &config).unwrap();
    let mut noise = Seeded::new(6);
    let mut covered = [0; 2];
    for _ in 0..200 {
        let value = table.run(&context, &prepared, &mut noise).0.value;
        for ((found, truth), covered) in (value["directions"].as_array().unwrap().iter())
            .zip(truths)
            .zip(&mut covered)
        {
            *covered += i32::from(field(found, "lower") <= truth && truth <= field(found, "upper"));
        }
    }
    assert!(covered.iter().all(|c| *c >= 166), "{covered:?}");
}

/// With much ε and 2,000 rows estimates are near the truth on the user's scale: within 6 deviations √(2/2000) (false alarm below 1e-8); later directions
/// agree with earlier ones; a mean appears with a public size only.
#[test]
fn directions_follow_the_records() {
    let (table, truth) = people(3000, 7);
    for (size, public) in [(Size::Private, false), (Size::Public(3000), true)] {
        let context = context(size);
        let facts = table.facts(&context, None);
        let prepared = prepare_sketch(&facts, &columns(&["a", "b"]), &config("500", 2000)).unwrap();
        let (answer, _) = table.run(&context, &prepared, &mut Seeded::new(8));
        let value = answer.value;
        assert_eq!(
            value["directions"][1]["name"], "b",
            "a direction for every column"
        );
        for (i, (u, v)) in [(1.0, 0.0), (0.0, 1.0)].into_iter().enumerate() {
            let found = &value["directions"][i];
            let off = field(found, "estimate") / truth(u, v) - 1.0;
            assert!(off.abs() < 6.0 * (2.0f64 / 2000.0).sqrt(), "{found}");
            assert_eq!(found["mean"].is_number(), public);
            // the middles of the bounds
            let centre = value["centres"][i].as_f64().unwrap();
            assert!((centre - [5.0, 20.0][i]).abs() < 1e-9, "{centre}");
            if public {
                let mean = field(found, "mean") * 3000.0;
                assert!((mean - field(found, "estimate")).abs() < 1e-6 * mean);
            }
        }
        let more = directions(&value, &[direction(&[(1, 1.0)])]).unwrap();
        assert_eq!(more[0]["estimate"], value["directions"][1]["estimate"]);
        assert!(answer.flags.is_empty(), "{:?}", answer.flags);
        assert!(
            Released::read(&value).is_err(),
            "no regression is read off a sketch"
        );
    }
    // rows in a ball: from 0, one scale
    let context = context(Size::Private);
    let (table, _) = people(2000, 9);
    let ball = SketchConfig {
        norm: Rows::Ball(50.0),
        ..config("500", 2000)
    };
    let prepared =
        prepare_sketch(&table.facts(&context, None), &columns(&["a", "b"]), &ball).unwrap();
    let value = table.run(&context, &prepared, &mut Seeded::new(10)).0.value;
    // Σa² is 100/3 each
    let found = field(&value["directions"][0], "estimate");
    assert!(
        (found / (2000.0 * 100.0 / 3.0) - 1.0).abs() < 0.3,
        "{value}"
    );
}

#[test]
fn odd_requests_are_refused() {
    let context = context(Size::Private);
    let (table, _) = people(0, 11);
    let facts = table.facts(&context, None);
    let make = |c: &SketchConfig| prepare_sketch(&facts, &columns(&["a", "b"]), c);
    for rows in [0, 1, 3, 2002] {
        let text = make(&config("1", rows)).unwrap_err().to_string();
        assert!(text.contains("even"), "{text}");
    }
    assert!(make(&config("0", 2)).is_err());
    assert!(
        make(&SketchConfig {
            norm: Rows::Ball(-1.0),
            ..config("1", 2)
        })
        .is_err()
    );
    assert!(
        make(&SketchConfig {
            grid_bits: 30,
            ..config("1", 2)
        })
        .is_err()
    );
    // nobody: what is added is all there is
    let prepared = make(&config("1", 20)).unwrap();
    let (answer, _) = table.run(&context, &prepared, &mut Seeded::new(12));
    assert!(answer.flags.contains(&"added_dominates".to_owned()));
    let value = answer.value;
    assert!(field(&value["directions"][0], "lower").abs() < 1e-9);
    assert!(directions(&value, &[direction(&[(2, 1.0)])]).is_err());
    assert!(directions(&Value::Null, &[]).is_err());
    // the error said beforehand is the one released
    let (relative, added) = sketch_error(&config("1", 20), 2, &context).unwrap();
    assert!((relative - 0.1f64.sqrt()).abs() < 1e-12);
    let released = field(&value["sketch"], "added");
    assert!((added / released - 1.0).abs() < 1e-9);
    assert_eq!(ROWS, 500);
    assert!(rational("1") == Rational::ONE);
}
