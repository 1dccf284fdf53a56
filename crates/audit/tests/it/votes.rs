//! Votes of groups: enumeration, canary, and the lemma that a record moves one group.

use super::*;
use reticent_audit::purchases::Purchase;
use reticent_audit::tables::real;
use reticent_laws::Seeded;
use reticent_mechanisms::primitives::{Ask, Family, Question, Votes};
use reticent_mechanisms::rows::{Batch, Cells, Schema};
use reticent_mechanisms::simulate;
use reticent_mechanisms::source::Memory;
use reticent_noise::Noise;
use std::sync::Arc;

fn step(groups: u32, question: Question, epsilon: Rational, seed: u64) -> Votes {
    let covariates = 0..if question.intercept { 2 } else { 1 };
    Votes {
        name: "votes".to_owned(),
        epsilon,
        groups,
        outcome: covariates.end,
        covariates,
        question,
        seed,
    }
}

fn through_origin(ask: Ask) -> Question {
    Question {
        family: Family::Gaussian,
        intercept: false,
        term: 0,
        ask,
    }
}

/// With this seed the first record (1, 0) joins a group with two of the first three records (1, 1), and the fourth of them the other group: putting
/// (1, 1) in the place of (1, 0) turns both votes.
const SEED: u64 = 2;

/// Records (1, 0), (1, ½) and (1, 1), up to four, in two groups: every loss up to the price occurs.
fn few(units: u32) -> Audit {
    let columns = vec![real("x", 0.0, 1.0), real("y", 0.0, 1.0)];
    let records = [0.0, 0.5, 1.0].map(|y| vec![1.0, y]).to_vec();
    let question = through_origin(Ask::Within(0.7, 1.0));
    let mut audit = Audit::new(
        Universe::rows(Schema { columns }, records),
        2,
        Purchases::one(
            grid(Vec::new()),
            Purchase::Votes(step(2, question, ratio(4, 1), SEED)),
        ),
        4,
    );
    audit.rows_per_unit = units;
    audit
}

#[test]
fn votes_enumerated() {
    few(1).check([(1.0, 1.0), (1.0, 1.0)]);
}

#[test]
fn votes_canary() {
    few(1).canary([1.0, 1.0]);
}

/// Rows of two covariates and an outcome, with many equal ones.
fn rows(n: usize, noise: &mut dyn Noise) -> Vec<[f64; 3]> {
    let mut below = |n: u64| {
        #[allow(clippy::cast_precision_loss, reason = "small numbers")]
        let x = noise.below(n) as f64;
        x
    };
    (0..n)
        .map(|_| {
            let (a, b) = (below(4), below(3));
            [a, b, (a - b + below(5)) / 8.0]
        })
        .collect()
}

/// The yes votes; at this ε there is no noise.
fn yes(all: &[[f64; 3]], step: &Votes, batch: usize) -> i64 {
    let columns = vec![
        real("a", -10.0, 10.0),
        real("b", -10.0, 10.0),
        real("y", -10.0, 10.0),
    ];
    let schema = Arc::new(Schema { columns });
    let batches = all
        .chunks(batch.max(1))
        .map(|rows| {
            let column = |j: usize| Cells::Real(rows.iter().map(|r| r[j]).collect());
            Batch::new(rows.len(), (0..3).map(column).collect())
        })
        .collect();
    let mechanism = Purchases::one(grid(Vec::new()), Purchase::Votes(step.clone()));
    let context = Context::records(Relation::AddRemove);
    let answer = simulate(
        &Memory::new(schema, batches),
        Unit::Row,
        &context,
        &columns_of_three(),
        &mechanism,
        &mut Seeded::new(1),
    )
    .unwrap();
    answer.0.0.value[0].as_i64().unwrap()
}

fn columns_of_three() -> RowProgram {
    columns(3)
}

#[test]
fn a_record_moves_one_group() {
    let noise = &mut Seeded::new(20);
    let mut moved = [0; 3];
    for (family, ask) in [
        (Family::Gaussian, Ask::Above(0.1)),
        (Family::Binomial, Ask::Above(0.0)),
        (Family::Gaussian, Ask::Within(0.05, 0.2)),
    ] {
        let question = Question {
            family,
            intercept: true,
            term: 0,
            ask,
        };
        for (groups, seed) in [(1, 1), (4, 2), (9, 3), (40, 4)] {
            let step = step(groups, question, ratio(1_000_000, 1), seed);
            let all = rows(60, noise);
            let whole = yes(&all, &step, 7);
            assert!((0..=i64::from(groups)).contains(&whole));
            for i in 0..all.len() {
                let mut fewer = all.clone();
                let gone = fewer.remove(i);
                let without = yes(&fewer, &step, 60);
                assert!((whole - without).abs() <= 1, "{question:?} {groups}");
                moved[usize::from(whole != without)] += 1;
                fewer.push([gone[1], gone[0], 1.0 - gone[2]]);
                let other = yes(&fewer, &step, 60);
                assert!((whole - other).abs() <= 2, "{question:?} {groups}");
                moved[2] += usize::from((whole - other).abs() == 2);
            }
        }
    }
    // the test looks at something: votes do change
    assert!(moved.iter().all(|n| *n > 0), "{moved:?}");
}

/// A group is asked whether its coefficient is the very number that its sorted rows give: always. Sums in another order differ in their last
/// bits, and most of them would say no. Whether it is above that number is answered alike in every order, too.
#[test]
fn order_does_not_count() {
    let noise = &mut Seeded::new(21);
    let mut differ = 0;
    for round in 0..40 {
        let mut all = rows(50, noise);
        for r in &mut all {
            for v in r.iter_mut() {
                *v = *v / 3.0 + 0.1;
            }
        }
        let mut sorted = all.clone();
        sorted.sort_by(|a, b| a.partial_cmp(b).unwrap());
        let mut question = Question {
            family: Family::Gaussian,
            intercept: true,
            term: 1,
            ask: Ask::Above(0.0),
        };
        let slices = |rows: &[[f64; 3]]| -> f64 {
            let rows: Vec<&[f64]> = rows.iter().map(<[f64; 3]>::as_slice).collect();
            question.coefficient(&rows).unwrap()
        };
        let (exact, other) = (slices(&sorted), slices(&all));
        differ += usize::from(other.to_bits() != exact.to_bits());
        question.ask = Ask::Within(exact, exact);
        let within = step(1, question, ratio(1_000_000, 1), 0);
        question.ask = Ask::Above(exact);
        let above = step(1, question, ratio(1_000_000, 1), 0);
        let first = yes(&all, &above, 11);
        for turn in 0..5 {
            all.rotate_left(turn * 7 + round % 3);
            assert_eq!(yes(&all, &within, 11), 1);
            assert_eq!(yes(&all, &above, 11), first);
        }
    }
    assert!(
        differ > 5,
        "only {differ} orders differ: the test sees nothing"
    );
}

/// Budgets and numbers of groups that make no sense are refused before the data are read.
#[test]
fn impossible_votes_are_refused() {
    let question = through_origin(Ask::Above(0.0));
    let context = Context::records(Relation::AddRemove);
    for (groups, epsilon) in [(0, 1), (u32::MAX, 1), (3, 0), (3, -1)] {
        let step = step(groups, question, ratio(epsilon, 1), 1);
        assert!(step.lattice(&context).is_err());
    }
}
