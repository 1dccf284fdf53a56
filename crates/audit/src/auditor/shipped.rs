//! The shipped mechanisms in small public worlds, run by the code path of releases (`simulate`).
//!
//! [`worlds`] has one for every row of [`crate::registry`] that draws (a test says so), but for the objective, whose density is tested instead.

use reticent_accounting::{Currency, Rational, Relation, Size};
use reticent_mechanisms::fold::{Axis, CellSum, Cut, FixedPoint, Fold, Shorten};
use reticent_mechanisms::primitives::{Counts, Payment, Quantile, SecondMoments, Sums};
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::Schema;
use reticent_mechanisms::{Context, Mechanism, Simulated, Unit, simulate};
use reticent_noise::Noise;
use reticent_statistics::Facts;
use reticent_statistics::bisect::Medians;
use reticent_statistics::range::{Range, RangeScales};
use reticent_statistics::sparse_vector::SparseVector;
use serde_json::Value;

use super::composites::{currency, prepare, schema};
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

    /// (ε, δ) is paid outside the pure currency.
    pub(super) fn approximate(mut self, epsilon: f64, delta: f64) -> Self {
        self.context.currency = Currency::Approximate;
        self.claim = Claim { epsilon, delta };
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
        // integers beyond i64 are written as text; words become numbers that differ
        Value::String(s) => out.push(s.parse::<f64>().unwrap_or_else(|_| word(s))),
        #[allow(clippy::cast_precision_loss, reason = "a length")]
        Value::Array(a) => {
            out.push(a.len() as f64);
            a.iter().for_each(|v| flatten(v, out));
        }
        Value::Object(o) => o.values().for_each(|v| flatten(v, out)),
    }
}

/// A number for a word (FNV-1a, below 1009): which of a few names was chosen is part of an output.
fn word(text: &str) -> f64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    #[allow(clippy::cast_precision_loss, reason = "below 1009")]
    let small = (hash % 1009) as f64;
    small
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
        // everything of a release that its mechanism computes
        let mut out = Vec::new();
        flatten(&answer.value, &mut out);
        flatten(&answer.flags.into(), &mut out);
        flatten(&answer.error_95.into(), &mut out);
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

/// Two records at corners of the box of (x, y).
pub(super) fn corners() -> Universe {
    Universe::rows(
        Schema {
            columns: vec![real("x", -0.5, 0.5), real("y", -0.5, 0.5)],
        },
        vec![vec![0.5, 0.5], vec![-0.5, 0.5]],
    )
}

/// Second moments of x and y with an intercept.
pub(super) fn moments_fold() -> Fold {
    Fold::Moments {
        terms: 0..1,
        response: Some(1),
        shorten: Shorten {
            intercept: 0.25,
            squared_norm: f64::INFINITY,
        },
        bits: 10,
    }
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
    let moments = corners();
    let sums = Universe::reals(-4.0, 4.0, &[-4.0, 4.0]);
    let second_moments = step(
        "second_moments",
        &moments,
        2,
        moments_fold(),
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
    .effort(200, 512)
    .approximate(1.0, 1e-6);
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

/// Releases on ten records of (x, y), and one more.
fn composite(name: &'static str) -> Result<World, AuditError> {
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
    let context = Context {
        currency: currency(name),
        ..Context::records(Relation::AddRemove)
    };
    let schema = schema();
    let facts = Facts {
        schema: &schema,
        filter: None,
        context: &context,
        rows: Some(1000.0),
        positive_rate: Some(0.5),
    };
    let failed = |e: String| AuditError::Method(format!("{name}: {e}"));
    let prepared = prepare(name, &facts)
        .ok_or_else(|| failed("it has no constructor".to_owned()))?
        .map_err(|e| failed(e.to_string()))?;
    let program = RowProgram {
        terms: prepared.terms,
        ..RowProgram::default()
    };
    let mut world = World::new(
        name,
        &universe,
        program,
        prepared.mechanism,
        Relation::AddRemove,
        &tables,
    )
    .effort(200, 512);
    if context.currency == Currency::Concentrated {
        // ρ = 1 as (ε, δ): ε = ρ + 2·sqrt(ρ·ln(1/δ)); at a small δ more runs than these could never refute so large an ε
        world.context.currency = Currency::Concentrated;
        world.claim = Claim {
            epsilon: 1.0 + 2.0 * 10_f64.ln().sqrt(),
            delta: 0.1,
        };
        world = world.effort(200, 2048);
    }
    if context.currency == Currency::Approximate {
        world = world.approximate(1.0, 1e-6);
    }
    Ok(world)
}

/// Everything of the registry.
///
/// # Errors
/// A release that cannot be prepared, a stream that cannot be declared.
pub fn worlds() -> Result<Vec<Box<dyn Auditable>>, AuditError> {
    let composites = crate::registry::COMPOSITES
        .iter()
        .map(|r| composite(r.name));
    let worlds = steps()
        .into_iter()
        .chain(super::steps::worlds())
        .map(Ok)
        .chain(composites)
        .map(|w| w.map(|w| Box::new(w) as Box<dyn Auditable>));
    let streams = super::streams::worlds()?
        .into_iter()
        .map(|w| Ok(Box::new(w) as Box<dyn Auditable>));
    worlds.chain(streams).collect()
}
