//! Neighbour tests of every paid step: method E (enumeration) or M (strategy matrix), both calibrations, both
//! relations. Every number in a `check` is the exact worst loss as a share of the price.

use super::*;
use reticent_audit::neighbours::{Case, contract};
use reticent_audit::purchases::Purchase;
use reticent_audit::tables::{id, real};
use reticent_mechanisms::fold::Shorten;
use reticent_mechanisms::primitives::{Counts, Payment, Quantile, SecondMoments, Sums};
use reticent_mechanisms::rows::{Column, Kind, Missing, Schema};
use reticent_statistics::bisect::Medians;
use reticent_statistics::range::{Range, RangeScales};
use reticent_statistics::sparse_vector::SparseVector;

pub(crate) fn counts_step(epsilon: Rational) -> Counts {
    Counts {
        name: "counts".to_owned(),
        epsilon,
    }
}

/// Three values in two groups of cells: changes inside a group, across groups, and a missing value.
pub(crate) fn counts() -> Audit {
    let fold = grid(vec![axis(0, Cut::Edges(vec![0.0, 1.0, 2.0, 3.0]))]);
    let step = Purchase::Counts(Some(vec![0..1, 1..3]), counts_step(ratio(4, 1)));
    Audit::new(
        Universe::reals(0.0, 3.0, &[0.0, 1.0, 2.5, f64::NAN]),
        1,
        Purchases::one(fold, step),
        2,
    )
}

#[test]
fn counts_enumerated() {
    counts().check([(1.0, 1.0), (1.0, 1.0)]);
}

/// All cells of a two-way grid, ten kinds of record.
fn crosstab(epsilon: Rational) -> Audit {
    let schema = Schema {
        columns: vec![real("x", 0.0, 5.0), real("y", 0.0, 1.0)],
    };
    let rows = (0..10)
        .map(|i| vec![f64::from(i / 2), f64::from(i % 2)])
        .collect();
    let cut = Cut::Even {
        lower: 0.0,
        upper: 5.0,
        cells: 5,
    };
    let fold = grid(vec![axis(0, cut), axis(1, Cut::Whole(2))]);
    let step = Purchase::Counts(None, counts_step(epsilon));
    Audit::new(
        Universe::rows(schema, rows),
        2,
        Purchases::one(fold, step),
        2,
    )
}

#[test]
fn counts_matrix() {
    for (epsilon, tolerance) in [
        (ratio(1, 1), 1e-15),
        (ratio(1, 3), 1e-15),
        // scales beyond 32 bits are rounded up by less than 2^-30
        (ratio(1, 1_000_000_007) / ratio(3, 1), 1e-9),
    ] {
        let audit = crosstab(epsilon);
        for calibrated in RELATIONS {
            let strategy = audit.strategy(calibrated);
            assert_eq!(strategy.columns.len(), 10);
            let price = audit.price(calibrated);
            for (i, relation) in RELATIONS.into_iter().enumerate() {
                let share = strategy.loss(relation) / price[i];
                assert!(
                    share <= 1.0 + 1e-12 && share > 1.0 - tolerance,
                    "{calibrated} {relation} {share}"
                );
            }
        }
    }
}

pub(crate) fn sums_step(epsilon: Rational, centred: bool) -> Sums {
    Sums {
        name: "sums".to_owned(),
        epsilon,
        centred,
    }
}

/// Two groups whose records lie in −1..1 and 1..2 (grid units), values beyond clamped by the group's limits.
pub(crate) fn sums(centred: bool) -> Audit {
    let schema = Schema {
        columns: vec![real("g", 0.0, 1.0), real("v", -9.0, 9.0)],
    };
    let rows = vec![
        vec![0.0, -5.0],
        vec![0.0, 1.0],
        vec![1.0, 1.0],
        vec![1.0, 7.0],
    ];
    let fold = grid_sum(vec![axis(0, Cut::Whole(2))], 1, 0, vec![(-1, 1), (1, 2)]);
    let step = Purchase::Sums(None, sums_step(ratio(6, 1), centred));
    Audit::new(
        Universe::rows(schema, rows),
        2,
        Purchases::one(fold, step),
        2,
    )
}

#[test]
fn sums_enumerated() {
    sums(false).check([(1.0, 1.0), (1.0, 1.0)]);
    sums(true).check([(1.0, 1.0), (1.0, 1.0)]);
}

/// Binned residuals: counts by bin and label, and centred sums of p per bin; edges 0, 1/4, 1/2, 63/64, 1 and p in
/// multiples of 1/128. `decisions.md` §4, instance 12.
pub(crate) fn binned(counts: Rational, sums: Rational) -> Audit {
    let schema = Schema {
        columns: vec![real("p", 0.0, 1.0), real("y", 0.0, 1.0)],
    };
    let rows = (0..=128)
        .flat_map(|p| [0.0, 1.0].map(|y| vec![f64::from(p) / 128.0, y]))
        .collect();
    let edges = vec![0.0, 0.25, 0.5, 63.0 / 64.0, 1.0];
    let by_label = grid(vec![
        axis(0, Cut::Edges(edges.clone())),
        axis(1, Cut::Whole(2)),
    ]);
    let limits = vec![(0, 32), (32, 64), (64, 126), (126, 128)];
    let by_bin = grid_sum(vec![axis(0, Cut::Edges(edges))], 0, 7, limits);
    Audit::new(
        Universe::rows(schema, rows),
        2,
        Purchases(vec![
            (by_label, Purchase::Counts(None, counts_step(counts))),
            (by_bin, Purchase::Sums(None, sums_step(sums, true))),
        ]),
        0,
    )
}

#[test]
fn binned_sums_algebra() {
    let audit = binned(ratio(9, 10), ratio(1, 10));
    for calibrated in RELATIONS {
        let strategy = audit.strategy(calibrated);
        let price = audit.price(calibrated);
        assert!((price[usize::from(calibrated == Relation::ReplaceOne)] - 1.0).abs() < 1e-15);
        for (i, relation) in RELATIONS.into_iter().enumerate() {
            let share = strategy.loss(relation) / price[i];
            assert!(
                (share - 1.0).abs() < 1e-12,
                "{calibrated} {relation} {share}"
            );
        }
    }
}

/// A group that merges cells is bounded by the widest of its cells, in whatever order the limits come.
#[test]
fn sums_of_groups_with_unordered_limits() {
    let schema = Schema {
        columns: vec![real("g", 0.0, 2.0), real("v", -9.0, 9.0)],
    };
    let rows = vec![
        vec![0.0, 5.0],
        vec![1.0, -9.0],
        vec![1.0, 9.0],
        vec![2.0, 5.0],
    ];
    for centred in [false, true] {
        let fold = grid_sum(
            vec![axis(0, Cut::Whole(3))],
            1,
            0,
            vec![(0, 0), (-9, 8), (1, 0)],
        );
        let step = Purchase::Sums(Some(vec![0..2, 2..3]), sums_step(ratio(1, 1), centred));
        let audit = Audit::new(
            Universe::rows(schema.clone(), rows.clone()),
            2,
            Purchases::one(fold, step),
            0,
        );
        for calibrated in RELATIONS {
            let strategy = audit.strategy(calibrated);
            let price = audit.price(calibrated);
            for (i, relation) in RELATIONS.into_iter().enumerate() {
                let share = strategy.loss(relation) / price[i];
                assert!(
                    share <= 1.0 + 1e-12,
                    "{centred} {calibrated} {relation} {share}"
                );
            }
        }
    }
}

pub(crate) fn quantile_step(epsilon: Rational, level: (u32, u32)) -> Quantile {
    Quantile {
        name: "quantile".to_owned(),
        epsilon,
        level,
    }
}

pub(crate) fn quantile(epsilon: Rational, level: (u32, u32), values: &[f64], most: u32) -> Audit {
    let cut = Cut::Atoms {
        lower: 0.0,
        upper: 16.0,
        cells: 4,
    };
    Audit::new(
        Universe::reals(0.0, 16.0, values),
        1,
        Purchases::one(
            grid(vec![axis(0, cut)]),
            Purchase::Quantile(quantile_step(epsilon, level)),
        ),
        most,
    )
}

pub(crate) const EDGES_AND_INSIDES: [f64; 10] =
    [0.0, 1.0, 4.0, 5.0, 8.0, 9.0, 11.0, 12.0, 15.0, 16.0];

#[test]
fn quantile_enumerated() {
    // 2 · .8782209 is the replace-one loss of decisions §4, instance 7
    quantile(ratio(1, 1), (1, 2), &EDGES_AND_INSIDES, 4).check([
        (0.928_452_816, 0.878_220_878),
        (0.827_988_939, 0.863_074_052),
    ]);
    quantile(ratio(1, 1), (3, 4), &[0.0, 4.0, 5.0, 9.0, 12.0, 16.0], 6).check([
        (0.966_124_648, 0.959_119_858),
        (0.934_204_693, 0.942_319_333),
    ]);
    quantile(ratio(4, 1), (97, 100), &[0.0, 3.0, 8.0, 16.0], 4).check([
        (0.511_964_430, 0.499_311_063),
        (0.499_165_081, 0.511_424_164),
    ]);
}

/// A grid that carries a sum beside its counts must not let the sum into the ranks: a record with a large value in
/// the summed term would move them by more than one.
#[test]
fn quantile_ignores_sums_of_its_grid() {
    let cut = Cut::Atoms {
        lower: 0.0,
        upper: 16.0,
        cells: 4,
    };
    let schema = Schema {
        columns: vec![real("x", 0.0, 16.0), real("v", 0.0, 3.0)],
    };
    let rows = vec![vec![5.0, 0.0], vec![5.0, 3.0], vec![12.0, 0.0]];
    let audit = Audit::new(
        Universe::rows(schema, rows),
        2,
        Purchases::one(
            grid_sum(vec![axis(0, cut)], 1, 0, Vec::new()),
            Purchase::Quantile(quantile_step(ratio(1, 1), (1, 2))),
        ),
        4,
    );
    audit.shares();
}

/// A level outside (0, 1) is refused: beyond 1 the replace-one exponent would grow without limit.
#[test]
fn quantile_levels_outside_the_unit_interval_are_refused() {
    for level in [(3, 1), (5, 0), (0, 0), (0, 1), (1, 1), (u32::MAX, 7)] {
        let audit = quantile(ratio(1, 1), level, &[0.0, 16.0], 1);
        for relation in RELATIONS {
            let outcome = audit.with(relation, |case| case.losses(&audit.tables));
            assert!(outcome.is_err(), "{level:?} {relation}: {outcome:?}");
        }
    }
}

pub(crate) fn medians(epsilon: Rational, depth: u32, cells: u32, most: u32) -> Audit {
    let cut = Cut::Even {
        lower: 0.0,
        upper: f64::from(cells),
        cells,
    };
    let values: Vec<f64> = [0.0, 1.0, 3.0, 5.5].to_vec();
    Audit::new(
        Universe::reals(0.0, f64::from(cells), &values),
        1,
        Purchases::one(
            grid(vec![axis(0, cut)]),
            Purchase::Medians(Medians {
                name: "medians".to_owned(),
                epsilon,
                depth,
            }),
        ),
        most,
    )
}

#[test]
fn medians_enumerated() {
    medians(ratio(1, 1), 1, 6, 4).check([
        (0.945_290_772, 0.905_065_248),
        (0.864_839_725, 0.893_605_265),
    ]);
    medians(ratio(2, 1), 2, 6, 4).check([
        (0.897_748_434, 0.626_002_484),
        (0.570_025_047, 0.811_298_468),
    ]);
    medians(ratio(6, 1), 3, 6, 4).check([
        (0.946_190_588, 0.589_820_631),
        (0.511_533_139, 0.818_562_723),
    ]);
}

pub(crate) fn range(
    epsilon: Rational,
    coverage: (u32, u32),
    candidates: &[f64],
    most: u32,
) -> Audit {
    Audit::new(
        Universe::reals(0.0, 4.0, &[0.0, 1.0, 2.0, 4.0]),
        1,
        Purchases::one(
            grid(vec![axis(0, Cut::UpTo(candidates.to_vec()))]),
            Purchase::Range(Range {
                name: "range".to_owned(),
                epsilon,
                coverage,
                scales: RangeScales::default(),
            }),
        ),
        most,
    )
}

#[test]
fn range_enumerated() {
    range(ratio(1, 1), (3, 4), &[0.0, 1.0, 2.0, 3.0], 4).check([
        (0.969_943_101, 0.568_304_884),
        (0.976_696_788, 0.973_367_758),
    ]);
    range(ratio(2, 1), (1, 2), &[0.0, 1.0, 2.0, 3.0], 3).check([
        (0.879_797_597, 0.689_898_798),
        (0.926_564_419, 0.902_085_892),
    ]);
}

/// Queries on the counts of four cells against thresholds near them.
pub(crate) fn sparse_vector(
    epsilon: Rational,
    queries: &[std::ops::Range<usize>],
    thresholds: &[i128],
    answers: u32,
    nested: bool,
    gaps: bool,
    most: u32,
) -> Audit {
    Audit::new(
        Universe::reals(0.0, 3.0, &[0.0, 1.0, 2.0, 3.0]),
        1,
        Purchases::one(
            grid(vec![axis(0, Cut::Whole(4))]),
            Purchase::SparseVector(
                queries.to_vec(),
                thresholds.to_vec(),
                SparseVector {
                    name: "sparse".to_owned(),
                    epsilon,
                    answers,
                    nested,
                    gaps,
                },
            ),
        ),
        most,
    )
}

#[test]
fn sparse_vector_enumerated() {
    // Mixed signs: both calibrations reach their price exactly; add/remove scales lose 1.5 (c = 1) and 1.6135
    // (c = 2) under replacement, as decisions §4, instance 6 has it, of a price of 2.
    let general = [0..1, 1..2, 1..3];
    let shares = [
        [(1.0, 0.75), (1.0, 1.0)],
        [(1.0, 0.806_755_895), (1.0, 1.0)],
    ];
    for (c, shares) in [1, 2].into_iter().zip(shares) {
        sparse_vector(ratio(1, 1), &general, &[1, 2, 3], c, false, false, 3).check(shares);
    }
    // Nested: an added record stays inside once it is, so that a crossing never pays twice.
    let nested = [1..2, 1..3, 0..4];
    let shares = [
        [(0.5, 0.5), (1.0, 0.5)],
        [(0.693_244_105, 0.5), (1.0, 0.693_244_105)],
    ];
    for (c, shares) in [1, 2].into_iter().zip(shares) {
        sparse_vector(ratio(1, 1), &nested, &[1, 2, 3], c, true, false, 3).check(shares);
    }
    // The gaps are free.
    sparse_vector(ratio(4, 1), &general[..2], &[1, 2], 1, false, true, 2)
        .check([(1.0, 0.75), (1.0, 1.0)]);
}

/// Rows x₁, x₂ and a response on the cube's corners, faces and centre, shortened to a squared norm of Q.
pub(crate) fn moments(payment: Payment, squared_norm: f64) -> Audit {
    let schema = Schema {
        columns: vec![
            real("x", -0.5, 0.5),
            real("w", -0.5, 0.5),
            real("y", -0.5, 0.5),
        ],
    };
    let values = [-0.5, 0.3, 0.5];
    let mut rows = Vec::new();
    for x in values {
        for w in values {
            for y in values {
                rows.push(vec![x, w, y]);
            }
        }
    }
    let fold = Fold::Moments {
        terms: 0..2,
        response: Some(2),
        shorten: Shorten {
            intercept: 0.25,
            squared_norm,
        },
        bits: 10,
    };
    let step = SecondMoments {
        name: "moments".to_owned(),
        payment,
    };
    Audit::new(
        Universe::rows(schema, rows),
        3,
        Purchases::one(fold, Purchase::SecondMoments(step)),
        0,
    )
}

/// Second moments by the matrix of the shipped fold and the scales of the shipped noise, all three payments: the
/// distance between neighbours in standard deviations (Gaussian) or scales (Laplace) costs no more than the price.
#[test]
#[allow(
    clippy::redundant_closure_for_method_calls,
    reason = "the path does not infer the lifetime of the case"
)]
fn second_moments_matrix() {
    // g² + ¼ + q with q below and above the longest row
    for squared_norm in [0.4, 0.6, f64::INFINITY] {
        for calibrated in RELATIONS {
            let pure = moments(
                Payment::Pure {
                    epsilon: ratio(1, 1),
                },
                squared_norm,
            );
            let price = pure.price(calibrated);
            let strategy = pure.strategy(calibrated);
            let rho = ratio(1, 8);
            let gaussian = moments(Payment::Concentrated { rho: rho.clone() }, squared_norm);
            let zcdp = gaussian.strategy(calibrated);
            let mut context = gaussian.context(calibrated);
            context.currency = Currency::Concentrated;
            let event = gaussian.mechanism.event(&context).unwrap();
            let rhos = event.price(Currency::Concentrated).unwrap();
            let (epsilon, delta) = (1.0, 1e-6);
            let payment = Payment::Approximate {
                epsilon: ratio(1, 1),
                delta: ratio(1, 1_000_000),
            };
            // the same fold, hence the same matrix
            let analytic = Strategy {
                noise: moments(payment, squared_norm)
                    .with(calibrated, |case: &Case<'_>| case.noise())
                    .unwrap(),
                ..zcdp.clone()
            };
            for (i, relation) in RELATIONS.into_iter().enumerate() {
                let loss = strategy.loss(relation);
                assert!(
                    loss <= price[i] && loss > 0.2 * price[i],
                    "{relation}: {loss} of {price:?}"
                );
                let spent = zcdp.deviations(relation).powi(2) / 2.0;
                let paid = rhos.under(relation).unwrap().amount.to_f64().value();
                assert!(
                    spent <= paid && spent > 0.2 * paid,
                    "{relation}: {spent} of {paid}"
                );
                if relation == calibrated || relation == Relation::AddRemove {
                    let distance = analytic.deviations(relation);
                    let lost = reticent_audit::density::gaussian_delta(1.0, epsilon, distance);
                    assert!(lost <= delta, "{relation}: {lost} of {delta}");
                    if relation == calibrated
                        && relation == Relation::AddRemove
                        && squared_norm < 0.5
                    {
                        // a canary: five percent less noise shows
                        let cut = distance / 0.95;
                        assert!(reticent_audit::density::gaussian_delta(1.0, epsilon, cut) > delta);
                    }
                }
            }
        }
    }
}

/// Units with two rows each at most: every step calibrated for one record is paid per record.
#[test]
fn units_with_several_rows() {
    let schema = Schema {
        columns: vec![id("who"), real("x", 0.0, 3.0)],
    };
    let row = |x: f64| vec![0.0, x];
    // the last unit has three rows, one more than counts
    let units = vec![
        vec![row(0.5)],
        vec![row(0.5), row(0.5)],
        vec![row(1.5), row(1.5)],
        vec![row(0.5), row(1.5), row(1.5)],
    ];
    let world = || Universe::new(schema.clone(), units.clone());
    let x = RowProgram {
        terms: vec![Expr::Column(1)],
        ..RowProgram::default()
    };
    let atoms = Cut::Atoms {
        lower: 0.0,
        upper: 3.0,
        cells: 3,
    };
    let even = Cut::Even {
        lower: 0.0,
        upper: 4.0,
        cells: 4,
    };
    let four = ratio(4, 1);
    let medians = Medians {
        name: "medians".to_owned(),
        epsilon: four.clone(),
        depth: 2,
    };
    let range = Range {
        name: "range".to_owned(),
        epsilon: four.clone(),
        coverage: (3, 4),
        scales: RangeScales::default(),
    };
    let sparse = SparseVector {
        name: "sparse".to_owned(),
        epsilon: four.clone(),
        answers: 1,
        nested: false,
        gaps: false,
    };
    let steps = [
        (
            grid(vec![axis(0, Cut::Edges(vec![0.0, 1.5, 3.0]))]),
            Purchase::Counts(None, counts_step(four.clone())),
        ),
        (
            grid(vec![axis(0, atoms)]),
            Purchase::Quantile(quantile_step(four, (1, 2))),
        ),
        (grid(vec![axis(0, even)]), Purchase::Medians(medians)),
        (
            grid(vec![axis(0, Cut::UpTo(vec![0.0, 1.0, 3.0]))]),
            Purchase::Range(range),
        ),
        (
            grid(vec![axis(0, Cut::Edges(vec![0.0, 1.5, 3.0]))]),
            Purchase::SparseVector(vec![0..1, 1..2], vec![1, 1], sparse),
        ),
    ];
    for (fold, step) in steps {
        let mut audit = Audit::new(world(), 1, Purchases::one(fold, step), 2);
        audit.program = x.clone();
        audit.unit = Unit::Column {
            column: 0,
            max_rows: 2,
        };
        audit.rows_per_unit = 2;
        for calibrated in RELATIONS {
            let losses = audit.losses(calibrated);
            for (relation, price) in RELATIONS.into_iter().zip(audit.price(calibrated)) {
                let loss = losses.under(relation);
                assert!(
                    loss <= price * (1.0 + 1e-9) && loss >= 0.2 * price,
                    "{:?}: {calibrated} {relation}: {loss} of {price}",
                    audit.mechanism
                );
            }
        }
    }
}

/// The driver of method C passes an honest composite and refuses the three ways to break the contract.
#[test]
fn contract_driver() {
    let honest = binned(ratio(9, 10), ratio(1, 10));
    let few: Vec<Multiset> = (0..5)
        .map(|i| (0..258).map(|u| u32::from(u % 61 == i)).collect())
        .collect();
    for relation in RELATIONS {
        let price = honest.with(relation, |case| case.contract(&few)).unwrap();
        assert_eq!(price.under(relation).unwrap().amount, ratio(1, 1));
        for breach in [Breach::Unused, Breach::Undeclared, Breach::Unpaid] {
            let context = honest.context(relation);
            let mechanism = Broken(honest.mechanism.clone(), breach);
            let case = Case {
                universe: &honest.universe,
                program: &honest.program,
                mechanism: &mechanism,
                unit: Unit::Row,
                context: &context,
            };
            assert!(contract(&case, &few).is_err(), "{breach:?}");
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Breach {
    /// Declares a step it does not buy.
    Unused,
    /// Buys a step it does not declare.
    Undeclared,
    /// Buys a sum whose limits say that no record matters, so no noise is drawn, on a value that does differ.
    Unpaid,
}

struct Broken(Purchases, Breach);

impl Mechanism for Broken {
    fn kind(&self) -> &'static str {
        "broken"
    }
    fn event(
        &self,
        context: &Context,
    ) -> Result<reticent_accounting::Event, reticent_accounting::AccountingError> {
        let mut steps = self.0.clone();
        match self.1 {
            Breach::Unused => steps.0.push(steps.0[0].clone()),
            Breach::Undeclared => drop(steps.0.pop()),
            Breach::Unpaid => {}
        }
        steps.event(context)
    }
    fn first_pass(&self) -> Vec<Fold> {
        self.0.first_pass()
    }
    fn run(
        &self,
        desk: &mut reticent_mechanisms::Desk<'_>,
    ) -> Result<reticent_mechanisms::Answer, reticent_mechanisms::DeskError> {
        let mut answer = self.0.run(desk)?;
        if matches!(self.1, Breach::Unpaid) {
            // no way to see a row: what a mechanism outside the door can do is remember an earlier run
            static RUNS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
            answer.value = RUNS
                .fetch_add(1, std::sync::atomic::Ordering::Relaxed)
                .into();
        }
        Ok(answer)
    }
}

/// Records that drop out (missing, filtered) and columns of levels do not disturb the guarantee.
#[test]
fn filters_and_levels_enumerated() {
    let schema = Schema {
        columns: vec![
            real("x", 0.0, 2.0),
            Column {
                name: "colour".to_owned(),
                kind: Kind::Levels {
                    levels: vec!["red".to_owned(), "blue".to_owned()],
                    other: Some(1),
                },
                missing: Missing::Drop,
            },
        ],
    };
    let other = f64::from(u32::MAX - 1);
    let rows = vec![
        vec![0.0, 0.0],
        vec![2.0, 0.0],
        vec![2.0, 1.0],
        vec![2.0, other],
        vec![f64::NAN, 0.0],
    ];
    let fold = grid(vec![axis(0, Cut::Whole(2))]);
    let mut audit = Audit::new(
        Universe::rows(schema, rows),
        1,
        Purchases::one(fold, Purchase::Counts(None, counts_step(ratio(4, 1)))),
        2,
    );
    audit.program = RowProgram {
        terms: vec![Expr::Code(1)],
        filter: Some(Expr::Compare(
            reticent_mechanisms::program::Comparison::Greater,
            Box::new(Expr::Column(0)),
            Box::new(Expr::Constant(1.0)),
        )),
        part: None,
    };
    audit.check([(1.0, 1.0), (1.0, 1.0)]);
}
