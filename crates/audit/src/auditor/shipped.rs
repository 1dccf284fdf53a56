//! The shipped mechanisms in small public worlds, run by the code path of releases (`simulate`).
//!
//! A row of [`crate::registry`] without a world here is vouched for by its tests alone; [`worlds`] lists what can be run.

use reticent_accounting::{Currency, Rational, Relation, Size};
use reticent_mechanisms::fold::{Axis, CellSum, Cut, FixedPoint, Fold, Shorten};
use reticent_mechanisms::primitives::{
    Counts, Medians, Payment, Quantile, Range, RangeScales, SecondMoments, SparseVector, Sums,
};
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::Schema;
use reticent_mechanisms::{Context, Mechanism, Simulated, Unit, simulate};
use reticent_noise::Noise;
use reticent_statistics::simple::{AxisCut, AxisSpec};
use reticent_statistics::{
    DesignSpec, Facts, Prepared, Score, StatisticsError, binned, histogram, linear, logistic,
    residuals, roc, running, selection, simple,
};
use serde_json::Value;

use super::{Auditable, Claim, Effort, Exact, Output, enumerated};
use crate::AuditError;
use crate::purchases::{Purchase, Purchases};
use crate::tables::{Multiset, Table, Universe, neighbours, real};

/// A shipped mechanism with the tables it is run on.
pub struct World {
    name: &'static str,
    about: String,
    program: RowProgram,
    mechanism: Box<dyn Mechanism>,
    context: Context,
    tables: Vec<(String, Table)>,
    pairs: Vec<(usize, usize)>,
    claim: Claim,
    finite: bool,
    effort: Effort,
}

impl World {
    /// Over the given multisets of a universe; all neighbours among them are pairs.
    fn new(
        name: &'static str,
        universe: &Universe,
        program: RowProgram,
        mechanism: Box<dyn Mechanism>,
        relation: Relation,
        tables: &[Multiset],
    ) -> Self {
        let context = Context {
            relation,
            currency: Currency::Pure,
            size: Size::Private,
            rows_per_unit: 1,
        };
        let claim = mechanism
            .event(&context)
            .ok()
            .and_then(|e| e.price(Currency::Pure).ok())
            .and_then(|p| p.under(relation).map(|c| c.amount.to_f64().value()))
            .unwrap_or(0.0);
        Self {
            name,
            about: format!("shipped; calibrated for {relation}"),
            program,
            mechanism,
            context,
            pairs: neighbours(tables, relation),
            tables: tables
                .iter()
                .map(|t| (format!("table {t:?}"), universe.source(t)))
                .collect(),
            claim: Claim::pure(claim),
            finite: false,
            effort: Effort {
                training: 2_000,
                most: 8_192,
            },
        }
    }

    pub(super) fn finite(mut self) -> Self {
        self.finite = true;
        self
    }

    pub(super) fn effort(mut self, training: u64, most: u64) -> Self {
        self.effort = Effort { training, most };
        self
    }
}

/// A released value as numbers: lists with their lengths, so that different lists differ.
fn flatten(value: &Value, out: &mut Output) {
    match value {
        Value::Null => out.push(f64::NAN),
        Value::Bool(b) => out.push(f64::from(u8::from(*b))),
        Value::Number(n) => out.push(n.as_f64().unwrap_or(f64::NAN)),
        // integers beyond i64 are written as text; other words are not numbers
        Value::String(s) => out.extend(s.parse::<f64>()),
        #[allow(clippy::cast_precision_loss, reason = "a length")]
        Value::Array(a) => {
            out.push(a.len() as f64);
            a.iter().for_each(|v| flatten(v, out));
        }
        Value::Object(o) => o.values().for_each(|v| flatten(v, out)),
    }
}

impl Auditable for World {
    fn name(&self) -> &str {
        self.name
    }
    fn about(&self) -> &str {
        &self.about
    }
    fn claim(&self) -> Claim {
        self.claim
    }
    fn tables(&self) -> Vec<String> {
        self.tables.iter().map(|(name, _)| name.clone()).collect()
    }
    fn pairs(&self) -> Vec<(usize, usize)> {
        self.pairs.clone()
    }
    fn run(&self, table: usize, noise: &mut dyn Noise) -> Result<Output, AuditError> {
        let (name, source) = &self.tables[table];
        let Simulated((answer, _)) = simulate(
            source,
            Unit::Row,
            &self.context,
            &self.program,
            self.mechanism.as_ref(),
            noise,
        )
        .map_err(|e| AuditError::Method(format!("{} failed on {name}: {e}", self.name)))?;
        let mut out = Vec::new();
        flatten(&answer.value, &mut out);
        Ok(out)
    }
    fn exact(&self) -> Result<Option<Exact>, AuditError> {
        if self.finite {
            Ok(Some(enumerated(self)?))
        } else {
            Ok(None)
        }
    }
    fn effort(&self) -> Effort {
        self.effort
    }
}

fn columns(n: usize) -> RowProgram {
    RowProgram {
        terms: (0..n).map(Expr::Column).collect(),
        ..RowProgram::default()
    }
}

pub(super) fn axis(term: usize, cut: Cut) -> Axis {
    Axis { term, cut }
}

pub(super) fn grid(axes: Vec<Axis>) -> Fold {
    Fold::Grid { axes, sum: None }
}

pub(super) fn step(
    name: &'static str,
    universe: &Universe,
    terms: usize,
    fold: Fold,
    purchase: Purchase,
    tables: &[Multiset],
) -> World {
    World::new(
        name,
        universe,
        columns(terms),
        Box::new(Purchases::one(fold, purchase)),
        Relation::AddRemove,
        tables,
    )
}

/// Paid steps, each on tables that include (nearly) its worst pair.
#[allow(clippy::too_many_lines, reason = "a list")]
fn steps() -> Vec<World> {
    let e = Rational::from(1u8);
    let name = |s: &str| s.to_owned();
    let one = Universe::reals(0.0, 1.0, &[0.0]);
    let four = Universe::reals(0.0, 3.0, &[0.0, 1.0, 2.0, 3.0]);
    let quantiles = Universe::reals(0.0, 16.0, &[0.0, 1.0, 12.0]);
    let ranges = Universe::reals(0.0, 4.0, &[0.0, 1.0, 2.0, 4.0]);
    let medians = Universe::reals(0.0, 6.0, &[0.0, 1.0, 3.0, 5.5]);
    let moments = Universe::rows(
        Schema {
            columns: vec![real("x", -0.5, 0.5), real("y", -0.5, 0.5)],
        },
        vec![vec![0.5, 0.5], vec![-0.5, 0.5]],
    );
    let sums = Universe::reals(-4.0, 4.0, &[-4.0, 4.0]);
    let mut second_moments = step(
        "second_moments",
        &moments,
        2,
        Fold::Moments {
            terms: 0..1,
            response: Some(1),
            shorten: Shorten {
                intercept: 0.25,
                squared_norm: f64::INFINITY,
            },
            bits: 10,
        },
        Purchase::SecondMoments(SecondMoments {
            name: name("moments"),
            payment: Payment::Approximate {
                epsilon: e.clone(),
                delta: Rational::from(1u8) / Rational::from(1_000_000u32),
            },
        }),
        &[vec![0, 0], vec![1, 0]],
    )
    // its scale is found anew for every run
    .effort(200, 512);
    // (ε, δ) is paid outside the pure currency
    second_moments.context.currency = Currency::Approximate;
    second_moments.claim = Claim {
        epsilon: 1.0,
        delta: 1e-6,
    };
    vec![
        step(
            "counts",
            &one,
            1,
            grid(vec![axis(0, Cut::Whole(1))]),
            Purchase::Counts(
                None,
                Counts {
                    name: name("counts"),
                    epsilon: e.clone(),
                },
            ),
            &[vec![0], vec![1], vec![2]],
        )
        .finite(),
        step(
            "sums",
            &sums,
            1,
            Fold::Grid {
                axes: vec![],
                sum: Some(CellSum {
                    term: 0,
                    fixed: FixedPoint { bits: 0 },
                    limits: vec![(-4, 4)],
                }),
            },
            Purchase::Sums(
                None,
                Sums {
                    name: name("sums"),
                    epsilon: e.clone(),
                    centred: false,
                },
            ),
            &[vec![0, 0], vec![1, 0], vec![0, 1]],
        )
        .finite(),
        step(
            "quantile",
            &quantiles,
            1,
            grid(vec![axis(
                0,
                Cut::Atoms {
                    lower: 0.0,
                    upper: 16.0,
                    cells: 4,
                },
            )]),
            Purchase::Quantile(Quantile {
                name: name("quantile"),
                epsilon: e.clone(),
                level: (1, 2),
            }),
            &[vec![2, 1, 1], vec![2, 1, 2], vec![3, 1, 1]],
        )
        .finite(),
        step(
            "medians",
            &medians,
            1,
            grid(vec![axis(
                0,
                Cut::Even {
                    lower: 0.0,
                    upper: 6.0,
                    cells: 6,
                },
            )]),
            Purchase::Medians(Medians {
                name: name("medians"),
                epsilon: e.clone(),
                depth: 2,
            }),
            &[vec![0, 3, 0, 0], vec![1, 3, 0, 0], vec![0, 3, 0, 1]],
        )
        .finite(),
        step(
            "range",
            &ranges,
            1,
            grid(vec![axis(0, Cut::UpTo(vec![0.0, 1.0, 2.0, 3.0]))]),
            Purchase::Range(Range {
                name: name("range"),
                epsilon: e.clone(),
                coverage: (19, 20),
                scales: RangeScales::default(),
            }),
            &[vec![20, 0, 0, 0], vec![20, 0, 1, 0]],
        )
        .finite(),
        step(
            "sparse_vector",
            &four,
            1,
            grid(vec![axis(0, Cut::Whole(4))]),
            Purchase::SparseVector(
                vec![0..1, 1..2, 1..3],
                vec![1, 2, 3],
                SparseVector {
                    name: name("sparse"),
                    epsilon: e,
                    answers: 1,
                    nested: false,
                    gaps: false,
                },
            ),
            &[vec![1, 1, 1, 0], vec![2, 1, 1, 0], vec![1, 2, 1, 0]],
        )
        .finite(),
        second_moments,
    ]
}

fn x() -> Expr {
    Expr::Column(0)
}

fn y() -> Expr {
    Expr::Column(1)
}

fn axis_of(name: &str, expr: Expr, upper: f64, cells: u32) -> AxisSpec {
    AxisSpec {
        name: name.to_owned(),
        expr,
        cut: AxisCut::Even {
            lower: 0.0,
            upper,
            cells,
        },
    }
}

/// A release at ε = 1 with default rules; `None` for names that have no world here.
fn prepared(name: &str, facts: &Facts<'_>) -> Option<Result<Prepared, StatisticsError>> {
    let e = Rational::from(1u8);
    let design = DesignSpec {
        intercept: true,
        terms: vec![("x".to_owned(), x())],
        outcome: y(),
        metadata: Value::Null,
    };
    let score = Score::Probability(x().affine(0.25, 0.0));
    Some(match name {
        "count" => simple::count(facts, &e),
        "sum" => simple::sum(facts, x(), &e),
        "mean" => simple::mean(facts, x(), &e),
        "histogram" => simple::histogram(facts, axis_of("x", x(), 4.0, 4), &e),
        "crosstab" => {
            let axes = vec![axis_of("x", x(), 4.0, 4), axis_of("y", y(), 1.0, 2)];
            simple::crosstab(facts, axes, &e)
        }
        "quantiles" => simple::quantiles(facts, x(), "x", &[0.25, 0.5, 0.97], 8, &e),
        "quantiles_recursive" => {
            let draw = simple::Bisect::Exponential;
            simple::bisected_quantiles(facts, x(), "x", &[0.25, 0.5, 0.97], 8, draw, &e)
        }
        "bounds" => simple::bounds(facts, x(), "x", 0.9, &e),
        "bounds_printed" => {
            let how = simple::BoundsConfig {
                scales: RangeScales::Printed,
                ..simple::BoundsConfig::default()
            };
            simple::bounds_by(facts, x(), "x", 0.9, how, &e)
        }
        "top_k" => selection::top_k(facts, &axis_of("x", x(), 4.0, 4), 2, None, &e),
        "running_total" => running::prepare(
            facts,
            &axis_of("x", x(), 4.0, 5),
            None,
            Payment::Pure { epsilon: e },
        ),
        other if other.starts_with("histogram ") => {
            let method = histogram::Method::of(&other["histogram ".len()..])?;
            let mut axes = vec![axis_of("x", x(), 4.0, 4)];
            if method == histogram::Method::Ag {
                axes.push(axis_of("y", y(), 1.0, 2));
            }
            let config = histogram::Config {
                error_draws: 0,
                ..histogram::Config::new(method, e)
            };
            histogram::prepare(facts, axes, config)
        }
        "logistic" => logistic::prepare(facts, &design, &logistic::Config::new(e)),
        "linear" => linear::prepare(
            facts,
            &design,
            &linear::Config::new(Payment::Pure { epsilon: e }),
        ),
        "roc" => roc::prepare(facts, &score, y(), roc::Config::new(e)),
        "residuals" => residuals::prepare(
            facts,
            &x().affine(0.25, 0.0),
            &y(),
            residuals::Config {
                side: Some(4),
                ..residuals::Config::new(e)
            },
        ),
        "binned_residuals" => binned::prepare(facts, &score, y(), binned::Config::new(e)),
        _ => return None,
    })
}

/// Releases on ten records of (x, y), and one more.
fn composite(name: &'static str) -> Option<Result<World, StatisticsError>> {
    let schema = || Schema {
        columns: vec![real("x", 0.0, 4.0), real("y", 0.0, 1.0)],
    };
    let universe = Universe::rows(
        schema(),
        vec![
            vec![0.0, 0.0],
            vec![1.5, 1.0],
            vec![4.0, 1.0],
            vec![4.0, 0.0],
        ],
    );
    let tables = [vec![3, 4, 3, 0], vec![3, 4, 3, 1]];
    let context = Context::records(Relation::AddRemove);
    let schema = schema();
    let facts = Facts {
        schema: &schema,
        filter: None,
        context: &context,
        rows: Some(1000.0),
        positive_rate: Some(0.5),
    };
    let prepared = match prepared(name, &facts)? {
        Ok(p) => p,
        Err(e) => return Some(Err(e)),
    };
    let program = RowProgram {
        terms: prepared.terms,
        ..RowProgram::default()
    };
    Some(Ok(World::new(
        name,
        &universe,
        program,
        prepared.mechanism,
        Relation::AddRemove,
        &tables,
    )
    .effort(200, 512)))
}

/// Everything of the registry that can be run here.
pub fn worlds() -> Result<Vec<World>, AuditError> {
    let mut worlds = steps();
    worlds.extend(super::steps::worlds());
    for row in crate::registry::COMPOSITES {
        if let Some(world) = composite(row.name) {
            worlds.push(world.map_err(|e| AuditError::Method(format!("{}: {e}", row.name)))?);
        }
    }
    Ok(worlds)
}
