//! Threshold tests: neighbour tests by enumeration of the shipped code, refusals, canary.

use super::*;
use reticent_audit::purchases::Purchase;
use reticent_laws::Seeded;
use reticent_mechanisms::primitives::{Change, Sides, Test, ThresholdTests};

use super::merged_bins::bins_step;
use super::selection::*;

pub(crate) fn tests_step(
    epsilon: Rational,
    answers: u32,
    change: Change,
    sides: Sides,
) -> ThresholdTests {
    ThresholdTests {
        name: "tests".to_owned(),
        epsilon,
        answers,
        most: 9,
        change,
        nested: false,
        sides,
        gaps: false,
        values: None,
        custom: None,
    }
}

pub(crate) const MIXED: Change = Change { down: 1, up: 1 };

/// Public thresholds near the counts, answers only.
fn public(answers: u32) -> Audit {
    let tests = [0..1, 1..2, 1..3].into_iter().zip(1..);
    let tests = tests.map(|(cells, t)| Test::count(cells, t)).collect();
    let step = tests_step(ratio(2, 1), answers, Change::COUNT, Sides::Both);
    cells(3, Purchase::Tests(tests, step), 3)
}

/// Two tests with gaps, values or both; the many outcomes of the noise want a large budget.
fn detailed(sides: Sides, gaps: bool, values: Option<Rational>) -> Audit {
    let tests = vec![Test::count(0..1, 1), Test::count(0..2, 1)];
    let step = ThresholdTests {
        gaps,
        values,
        ..tests_step(ratio(8, 1), 1, Change::COUNT, sides)
    };
    cells(2, Purchase::Tests(tests, step), 2)
}

#[test]
fn threshold_tests_enumerated() {
    public(1).check([
        (0.499_163_144, 0.494_849_914),
        (0.599_132_350, 0.439_631_197),
    ]);
    public(2).check([
        (0.516_888_374, 0.411_374_631),
        (0.475_570_626, 0.465_140_903),
    ]);
    detailed(Sides::One, true, None).check([(0.5, 0.5), (0.693_244_105, 0.557_506_666)]);
    detailed(Sides::Both, true, None).check([(0.5, 0.249_980_155), (0.306_567_081, 0.553_639_333)]);
    detailed(Sides::One, false, Some(ratio(8, 1)))
        .check([(0.75, 0.375), (0.653_377_948, 0.818_835_397)]);
    detailed(Sides::One, true, Some(ratio(16, 1))).check([
        (0.833_333_333, 0.416_666_667),
        (0.795_496_070, 0.886_101_711),
    ]);
}

/// Counts against counts: the differences move both ways, or only one where the groups are nested.
fn against(answers: u32, sides: Sides, weights: (u32, u32)) -> Audit {
    let test = |cells, other, threshold| Test {
        cells,
        weight: weights.0,
        against: Some((other, weights.1)),
        threshold,
    };
    let tests = vec![
        test(0..1, 1..2, 0),
        test(1..2, 2..3, 0),
        test(0..1, 1..3, 0),
    ];
    let change = Change {
        down: weights.1,
        up: weights.0,
    };
    cells(
        3,
        Purchase::Tests(tests, tests_step(ratio(2, 1), answers, change, sides)),
        3,
    )
}

#[test]
fn threshold_tests_against_counts() {
    against(1, Sides::One, (1, 1)).check([(1.0, 0.846_622_052), (0.846_622_052, 1.0)]);
    against(2, Sides::One, (1, 1)).check([(1.0, 0.731_538_870), (0.731_538_870, 1.0)]);
    against(1, Sides::Both, (1, 1)).check([
        (0.541_355_734, 0.417_698_389),
        (0.392_923_280, 0.506_584_182),
    ]);
    against(1, Sides::One, (2, 1)).check([
        (0.982_547_108, 0.797_264_085),
        (0.897_748_035, 0.929_993_832),
    ]);
    // is the first cell at least half of all? 2·#(0) − #(0, 1, 2) moves by −1 or +1
    let half = |declared| {
        let test = Test {
            cells: 0..1,
            weight: 2,
            against: Some((0..3, 1)),
            threshold: 0,
        };
        let step = tests_step(ratio(1, 1), 1, declared, Sides::One);
        cells(3, Purchase::Tests(vec![test], step), 3)
    };
    half(MIXED).check([
        (0.386_488_209, 0.386_488_209),
        (0.386_488_209, 0.386_488_209),
    ]);
    // a test beyond the declared change is refused on every table
    for declared in [Change::COUNT, Change { down: 1, up: 0 }] {
        let audit = half(declared);
        for relation in RELATIONS {
            let outcome = audit.with(relation, |case| case.losses(&audit.tables));
            assert!(outcome.is_err(), "{declared:?}");
        }
    }
}

/// Lists are refused as a whole, whatever the answers: nested as declared, ranges that exist.
#[test]
fn lists_of_tests_are_refused_as_a_whole() {
    let many = |tests: Vec<Test>, nested| {
        let step = ThresholdTests {
            nested,
            ..tests_step(ratio(1, 1), 1, Change::COUNT, Sides::One)
        };
        let audit = cells(3, Purchase::Tests(tests, step), 3);
        let outcomes: Vec<bool> = audit
            .tables
            .iter()
            .map(|t| {
                audit.with(Relation::ReplaceOne, |case| {
                    case.run(&audit.universe.source(t), &mut Seeded::new(1))
                        .is_err()
                })
            })
            .collect();
        assert!(outcomes.iter().all(|o| *o == outcomes[0]));
        outcomes[0]
    };
    let easy = || Test::count(0..2, -1000);
    assert!(!many(vec![easy(), Test::count(0..3, 5)], true));
    assert!(many(vec![easy(), Test::count(1..3, 5)], true));
    assert!(many(vec![easy(), Test::count(1..4, 5)], false));
    #[allow(clippy::reversed_empty_ranges, reason = "what is tested")]
    let reversed = Test::count(2..1, 5);
    assert!(many(vec![easy(), reversed], false));
    assert!(!many(Vec::new(), false));
}

#[test]
fn adaptive_tests_enumerated() {
    let mut audit = cells(
        4,
        Purchase::MergedBins(bins_step(ratio(1, 1), 0, Sides::One)),
        3,
    );
    audit.tables = audit.universe.tables(3);
    let mut shares = Vec::new();
    for answers in [1, 2] {
        let step = tests_step(ratio(2, 1), answers, Change::COUNT, Sides::One);
        let search = Purchases::one(
            grid(vec![axis(0, Cut::Whole(4))]),
            Purchase::Search(4, step),
        );
        for relation in RELATIONS {
            let context = Context::records(relation);
            let case = Case {
                universe: &audit.universe,
                program: &audit.program,
                mechanism: &search,
                unit: Unit::Row,
                context: &context,
            };
            let share = case.losses(&audit.tables).unwrap().under(relation) / 2.0;
            assert!(share <= 1.0 + 1e-9, "{share}");
            shares.push(share);
        }
    }
    let recorded = [1.0, 1.0, 0.693_244_105, 0.642_051_827];
    let same = shares
        .iter()
        .zip(recorded)
        .all(|(s, r)| (s - r).abs() < 1e-6);
    assert!(same, "{shares:.9?}");
}

#[test]
fn threshold_tests_canary() {
    public(2).canary([0.516_888_374, 0.475_570_626]);
    detailed(Sides::One, true, None).canary([0.5, 0.693_244_105]);
    detailed(Sides::One, false, Some(ratio(8, 1))).canary([0.75, 0.653_377_948]);
    against(2, Sides::One, (1, 1)).canary([1.0, 0.731_538_870]);
}
