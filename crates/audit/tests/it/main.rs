//! Audits of the shipped mechanisms: neighbour tests, golden instances, canaries, negative controls.

mod attacks;
mod auditor;
mod broken;
mod canaries;
mod classes;
mod composites;
mod flags;
mod golden;
mod item_counts;
mod joint;
mod least_squares;
mod lessons;
mod linear;
mod merged_bins;
mod models;
mod moments;
mod neighbours;
mod objective;
mod partition;
mod registry;
mod selection;
mod sketch;
mod smooth;
mod split_tree;
mod statistical;
mod streams;
mod threshold_tests;
mod votes;
mod worst_query;

use dashu::integer::{IBig, UBig};
use reticent_accounting::{Currency, Rational, Relation};
use reticent_audit::neighbours::{Case, Losses, Strategy};
use reticent_audit::purchases::Purchases;
use reticent_audit::tables::{Multiset, Universe};
use reticent_mechanisms::fold::{Axis, CellSum, Cut, FixedPoint, Fold};
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::{Context, Mechanism, Unit};

const RELATIONS: [Relation; 2] = [Relation::AddRemove, Relation::ReplaceOne];

fn ratio(n: i64, d: u64) -> Rational {
    Rational::from_parts(IBig::from(n), UBig::from(d))
}

/// Reads the given columns as terms.
fn columns(n: usize) -> RowProgram {
    RowProgram {
        terms: (0..n).map(Expr::Column).collect(),
        ..RowProgram::default()
    }
}

fn axis(term: usize, cut: Cut) -> Axis {
    Axis { term, cut }
}

fn grid(axes: Vec<Axis>) -> Fold {
    Fold::Grid { axes, sum: None }
}

fn grid_sum(axes: Vec<Axis>, term: usize, bits: i32, limits: Vec<(i64, i64)>) -> Fold {
    Fold::Grid {
        axes,
        sum: Some(CellSum {
            term,
            fixed: FixedPoint { bits },
            limits,
        }),
    }
}

/// A set of paid steps in a world of its own.
struct Audit {
    universe: Universe,
    program: RowProgram,
    mechanism: Purchases,
    unit: Unit,
    rows_per_unit: u32,
    tables: Vec<Multiset>,
}

impl Audit {
    fn new(universe: Universe, terms: usize, mechanism: Purchases, most: u32) -> Self {
        Self {
            tables: universe.tables(most),
            universe,
            program: columns(terms),
            mechanism,
            unit: Unit::Row,
            rows_per_unit: 1,
        }
    }

    fn context(&self, relation: Relation) -> Context {
        Context {
            rows_per_unit: self.rows_per_unit,
            ..Context::records(relation)
        }
    }

    fn with<T>(&self, relation: Relation, f: impl FnOnce(&Case<'_>) -> T) -> T {
        let context = self.context(relation);
        f(&Case {
            universe: &self.universe,
            program: &self.program,
            mechanism: &self.mechanism,
            unit: self.unit,
            context: &context,
        })
    }

    /// Priced (add/remove, replace-one) loss when calibrated for `relation`.
    fn price(&self, relation: Relation) -> [f64; 2] {
        let event = self.mechanism.event(&self.context(relation)).unwrap();
        let price = event.price(Currency::Pure).unwrap();
        RELATIONS.map(|r| price.under(r).unwrap().amount.to_f64().value())
    }

    fn losses(&self, relation: Relation) -> Losses {
        self.with(relation, |case| case.losses(&self.tables))
            .unwrap()
    }

    fn weakened(&self, relation: Relation, factor: &Rational) -> Losses {
        self.with(relation, |case| {
            case.weakened_losses(&self.tables, Some(factor))
        })
        .unwrap()
    }

    #[allow(
        clippy::redundant_closure_for_method_calls,
        reason = "the path does not infer the lifetime of the case"
    )]
    fn strategy(&self, relation: Relation) -> Strategy {
        self.with(relation, |case: &Case<'_>| case.strategy())
            .unwrap()
    }

    /// Exact worst losses as shares of the price: own relation and other relation, for both calibrations.
    fn shares(&self) -> [(f64, f64); 2] {
        RELATIONS.map(|calibrated| {
            let losses = self.losses(calibrated);
            let price = self.price(calibrated);
            assert!(losses.lost < 1e-12, "{losses:?}");
            let share = |i: usize| losses.under(RELATIONS[i]) / price[i];
            for (i, relation) in RELATIONS.into_iter().enumerate() {
                assert!(
                    share(i) <= 1.0 + 1e-9,
                    "NOT PRIVATE: calibrated {calibrated}, under {relation}: {} of the price; {losses:?}",
                    share(i)
                );
            }
            match calibrated {
                Relation::AddRemove => (share(0), share(1)),
                Relation::ReplaceOne => (share(1), share(0)),
            }
        })
    }

    /// Enumerates under both calibrations: every exact worst loss is within its price and equal to the recorded
    /// share of the price to 1e-6; per calibration (add/remove first) the share under its own relation, then the other.
    fn check(&self, recorded: [(f64, f64); 2]) {
        let shares = self.shares();
        let close = |a: f64, b: f64| (a - b).abs() < 1e-6;
        let all = shares
            .iter()
            .zip(&recorded)
            .all(|(s, r)| close(s.0, r.0) && close(s.1, r.1));
        assert!(all, "shares {shares:.9?}, recorded {recorded:?}");
    }

    /// A canary at .95·r of the noise must lose more than the price under the relation it is calibrated for, r
    /// being the recorded share (`shares` for add/remove and replace-one; [`Audit::check`] asserts them).
    fn canary(&self, shares: [f64; 2]) {
        for (i, (relation, share)) in RELATIONS.into_iter().zip(shares).enumerate() {
            let price = self.price(relation)[i];
            let intact = self.losses(relation).under(relation);
            assert!(
                (intact / price - share).abs() < 1e-6,
                "{relation}: share {}",
                intact / price
            );
            // 0.95 r, rounded up a little: the noise is cut by no more than the rule says
            #[allow(clippy::cast_possible_truncation, reason = "below 10^6")]
            let millionths = (950_000.0 * share).ceil() as i64;
            let cut = self
                .weakened(relation, &ratio(millionths, 1_000_000))
                .under(relation);
            assert!(
                cut > price * (1.0 + 1e-6),
                "{relation}: the canary at {millionths} millionths of the noise loses only {cut} of {price}"
            );
        }
    }
}
