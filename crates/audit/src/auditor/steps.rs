//! Worlds of the paid steps for selection, threshold tests, histograms and smooth sensitivity.

use reticent_accounting::Rational;
use reticent_mechanisms::fold::{Cut, Fold, Shorten};
use reticent_mechanisms::primitives::{
    Ask, Change, Draw, Family, ItemCounts, JointSelection, LeastSquares, Linear, MergedBins,
    NormMoments, Objective, OutputPerturbation, Partition, Payment, Question, Row, Rule, Selection,
    Sides, Sketch, SmoothAuc, SplitTree, Strategy, Test, ThresholdTests, Votes, WorstQuery,
};
use reticent_mechanisms::rows::Schema;
use reticent_statistics::bisect::Quantiles;

use super::shipped::{World, axis, corners, grid, moments_fold, step};
use crate::purchases::Purchase;
use crate::tables::{Multiset, Universe, real};

fn one() -> Rational {
    Rational::from(1u8)
}

fn named(name: &str) -> String {
    name.to_owned()
}

/// Records in one of `n` cells.
fn cells(name: &'static str, n: u32, purchase: Purchase, tables: &[Multiset]) -> World {
    let values: Vec<f64> = (0..n).map(f64::from).collect();
    step(
        name,
        &Universe::reals(0.0, f64::from(n), &values),
        1,
        grid(vec![axis(0, Cut::Whole(n))]),
        purchase,
        tables,
    )
}

/// Selection and threshold tests: their outputs are few, so most losses are exact.
fn selections() -> Vec<World> {
    let selection = Selection {
        name: named("select"),
        epsilon: one(),
        picks: 1,
        rule: Rule::PermuteAndFlip,
    };
    let joint = JointSelection {
        name: named("joint"),
        epsilon: one(),
        picks: 1,
        cap: 60,
    };
    let tests = [0..1, 1..2, 1..3].into_iter().zip(1..);
    let threshold_tests = ThresholdTests {
        name: named("tests"),
        epsilon: one(),
        answers: 1,
        most: 9,
        change: Change::COUNT,
        nested: false,
        sides: Sides::One,
        gaps: false,
        values: None,
        custom: None,
    };
    let merged = MergedBins {
        name: named("bins"),
        epsilon: one(),
        threshold: 1,
        sides: Sides::Both,
    };
    let items = Schema {
        columns: vec![real("a", 0.0, 1.0), real("b", 0.0, 1.0)],
    };
    let item_counts = ItemCounts {
        name: named("items"),
        payment: Payment::Pure { epsilon: one() },
        most: 1,
        classes: false,
    };
    let session = ThresholdTests {
        answers: 2,
        ..threshold_tests.clone()
    };
    vec![
        cells(
            "session",
            4,
            Purchase::Search(4, session),
            &[vec![0, 0, 1, 0], vec![1, 0, 1, 0], vec![0, 0, 2, 0]],
        )
        .finite(),
        cells(
            "selection",
            3,
            Purchase::Select(None, selection),
            &[vec![3, 0, 0], vec![4, 0, 0]],
        )
        .finite(),
        cells(
            "joint_selection",
            3,
            Purchase::Jointly(None, joint),
            &[vec![20, 0, 0], vec![21, 0, 0]],
        )
        .finite(),
        cells(
            "threshold_tests",
            3,
            Purchase::Tests(
                tests.map(|(cells, t)| Test::count(cells, t)).collect(),
                threshold_tests,
            ),
            &[vec![1, 1, 1], vec![2, 1, 1], vec![1, 2, 1]],
        )
        .finite(),
        cells(
            "merged_bins",
            3,
            Purchase::MergedBins(merged),
            &[vec![3, 3, 3], vec![4, 3, 3]],
        )
        .finite(),
        step(
            "item_counts",
            &Universe::rows(items, vec![vec![1.0, 1.0], vec![0.0, 1.0]]),
            2,
            Fold::Items {
                items: 0..2,
                most: 1,
                class: None,
            },
            Purchase::ItemCounts(item_counts),
            &[vec![0, 0], vec![1, 0], vec![0, 1]],
        )
        .finite(),
    ]
}

/// The steps of histograms.
fn histograms() -> Vec<World> {
    let row = |range| Row::count(std::iter::once(range), 1);
    let linear = Linear {
        name: named("queries"),
        payment: Payment::Pure { epsilon: one() },
    };
    let partition = Partition {
        name: named("partition"),
        epsilon: one(),
        penalty: Rational::from(2u8),
        longest: 1 << 20,
        order: None,
    };
    let split_tree = SplitTree {
        name: named("splits"),
        epsilon: one(),
        threshold: 1,
        decay: 1,
        height: 3,
        fanout: 2,
        columns: 8,
    };
    let worst_query = WorstQuery {
        name: named("worst"),
        epsilon: one(),
        unit: 4,
    };
    let queries = vec![row(0..1), Row::count([0..1, 2..3], 1), row(1..4), row(0..4)];
    vec![
        cells(
            "linear queries",
            2,
            Purchase::Linear(Strategy::new(2, vec![row(0..1), row(0..2)]), linear),
            &[vec![0, 0], vec![1, 0]],
        )
        .finite(),
        cells(
            "partition",
            2,
            Purchase::Partition(partition),
            &[vec![0, 3], vec![0, 4], vec![1, 3]],
        ),
        cells(
            "split_tree",
            8,
            Purchase::SplitTree(split_tree),
            &[
                vec![4, 0, 0, 0, 0, 0, 0, 0],
                vec![5, 0, 0, 0, 0, 0, 0, 0],
                vec![4, 0, 0, 0, 0, 0, 0, 1],
            ],
        ),
        cells(
            "worst_query",
            4,
            Purchase::WorstQuery(Strategy::new(4, queries), vec![10, 2, 0, -3], worst_query),
            &[vec![2, 0, 0, 0], vec![3, 0, 0, 0], vec![2, 0, 1, 0]],
        ),
    ]
}

/// Quantiles by bisection and the two releases with Cauchy noise.
fn smooth() -> Vec<World> {
    let values = [0.0, 1.0, 2.0, 3.0];
    let quantiles = |name: &'static str, draw| {
        step(
            name,
            &Universe::reals(-0.5, 3.5, &values),
            1,
            grid(vec![axis(
                0,
                Cut::Even {
                    lower: -0.5,
                    upper: 3.5,
                    cells: 4,
                },
            )]),
            Purchase::Bisection(Quantiles {
                name: named("quantiles"),
                epsilon: one(),
                levels: vec![1, 2, 3],
                denominator: 4,
                draw,
            }),
            &[vec![2, 0, 0, 1], vec![3, 0, 0, 1], vec![2, 0, 0, 2]],
        )
    };
    let scores = Schema {
        columns: vec![real("score", 0.0, 2.0), real("label", 0.0, 1.0)],
    };
    let records = (0..6u8)
        .map(|i| vec![f64::from(i / 2), f64::from(i % 2)])
        .collect();
    let area = step(
        "smooth_auc",
        &Universe::rows(scores, records),
        2,
        grid(vec![
            axis(
                0,
                Cut::Even {
                    lower: -0.5,
                    upper: 2.5,
                    cells: 3,
                },
            ),
            axis(1, Cut::Whole(2)),
        ]),
        Purchase::SmoothAuc(SmoothAuc {
            name: named("area"),
            epsilon: one(),
        }),
        &[vec![2, 0, 0, 0, 0, 2], vec![2, 0, 0, 0, 0, 3]],
    );
    vec![
        quantiles("bisection", Draw::Exponential),
        quantiles("smooth_medians", Draw::Smooth).effort(500, 2048),
        area.effort(500, 2048),
    ]
}

/// A least-squares fit by output perturbation: a record whose pull on w = 0 is nearly the largest one.
fn least_squares() -> World {
    step(
        "least_squares",
        &corners(),
        2,
        moments_fold(),
        Purchase::LeastSquares(LeastSquares {
            name: named("fit"),
            epsilon: one(),
            penalty: Rational::from(40u8),
            largest: Rational::ONE / Rational::from(64u8),
        }),
        &[vec![0, 0], vec![0, 1]],
    )
}

/// Two Gaussian rows, and the longest record beside no others.
fn sketch() -> World {
    let fold = Fold::Moments {
        terms: 0..2,
        response: None,
        shorten: Shorten {
            intercept: 0.0,
            squared_norm: f64::INFINITY,
        },
        bits: 10,
    };
    let step_of = Sketch {
        name: named("sketch"),
        epsilon: one(),
        delta: Rational::ONE / Rational::from(1_000_000u32),
        rows: 2,
    };
    step(
        "sketch",
        &corners(),
        2,
        fold,
        Purchase::Sketch(step_of),
        &[vec![0, 0], vec![0, 1]],
    )
    // its scale is found anew for every run
    .effort(200, 512)
    .approximate(1.0, 1e-6)
}

/// Second moments by the norm mechanism, fits by output perturbation, votes.
fn models() -> Vec<World> {
    let norm = step(
        "norm_moments",
        &corners(),
        2,
        moments_fold(),
        Purchase::NormMoments(NormMoments {
            name: named("moments"),
            epsilon: one(),
        }),
        &[vec![0, 1], vec![1, 1]],
    );
    let records = Universe::rows(
        Schema {
            columns: vec![real("x", -1.0, 1.0), real("y", 0.0, 1.0)],
        },
        vec![vec![1.0, 0.0], vec![1.0, 1.0]],
    );
    let fit = step(
        "output_perturbation",
        &records,
        2,
        grid(Vec::new()),
        Purchase::Output(OutputPerturbation(Objective {
            name: named("fit"),
            epsilon: one(),
            covariates: 0..1,
            outcome: 1,
            intercept: None,
            radius: 1.0,
            penalty: Rational::from(4u8),
        })),
        &[vec![0, 0], vec![0, 1]],
    );
    let votes = step(
        "votes",
        &records,
        2,
        grid(Vec::new()),
        Purchase::Votes(Votes {
            name: named("votes"),
            epsilon: one(),
            groups: 1,
            covariates: 0..1,
            outcome: 1,
            question: Question {
                family: Family::Gaussian,
                intercept: false,
                term: 0,
                ask: Ask::Within(0.25, 1.0),
            },
            seed: 1,
        }),
        // 2 records with outcome 0: a slope of 0; one more with outcome 1: a third
        &[vec![2, 0], vec![2, 1]],
    )
    .finite();
    vec![norm, fit, least_squares(), sketch(), votes]
}

/// All of them.
pub(super) fn worlds() -> Vec<World> {
    [selections(), histograms(), smooth(), models()]
        .into_iter()
        .flatten()
        .collect()
}
