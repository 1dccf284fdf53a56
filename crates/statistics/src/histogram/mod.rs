//! Histograms and range queries: ten algorithms behind one interface.
//!
//! A [`Domain`] is a line of N cells or a plane of rows × columns. [`prepare`] takes the axes, a [`Budget`], a [`Method`] and the
//! [`Workload`] the histogram is wanted for; the release holds an estimate per cell and the expected error of the workload's
//! queries from the noise alone. Data-dependent methods also err by treating unequal cells alike; that part is not in the error.
//!
//! | method | idea | domain |
//! |---|---|---|
//! | identity | noise on every cell | both |
//! | uniform | one noisy total | both |
//! | hb | even tree with tuned fanout, least squares | both |
//! | privelet | Haar wavelet | both |
//! | greedyh | binary tree, budgets fitted to the workload | line |
//! | dawa | private partition, then greedyh on its buckets | both (plane along a Hilbert curve) |
//! | ahp | clusters of similar noisy counts | both |
//! | ag | coarse grid, then finer where it is dense | plane |
//! | mwem | repairs the worst query again and again | both |
//! | privtree | splits dense regions to any depth | both |

mod adaptive;
mod ahp;
mod dawa;
mod linear;
mod mwem;
mod post;
mod tree;
mod wavelet;
mod workload;

pub use post::{hilbert_order, isotonic, nonnegative};
pub use tree::{Tree, least_squares};
pub use wavelet::{haar, haar_inverse};
pub use workload::{Query, Workload};

use reticent_accounting::{AccountingError, Currency, Event, Rational, Relation, Size};
use reticent_laws::Law;
use reticent_mechanisms::fold::{Axis, Fold};
use reticent_mechanisms::primitives::{Payment, Strategy};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::{Value, json};

use crate::common::{Facts, Prepared, StatisticsError, number, numbers, positive, with_metadata};
use crate::simple::AxisSpec;

/// The public shape of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// N cells in a row.
    Line(usize),
    /// rows × columns cells, row-major.
    Plane(usize, usize),
}

impl Domain {
    /// Number of cells.
    pub fn cells(self) -> usize {
        self.rows().saturating_mul(self.columns())
    }

    /// Rows of the plane; a line has one.
    pub fn rows(self) -> usize {
        match self {
            Self::Line(_) => 1,
            Self::Plane(rows, _) => rows,
        }
    }

    /// Cells of a row.
    pub fn columns(self) -> usize {
        match self {
            Self::Line(cells) => cells,
            Self::Plane(_, columns) => columns,
        }
    }
}

/// Which algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Noise on every cell.
    Identity,
    /// One total, spread evenly.
    Uniform,
    /// Hierarchical tree with tuned fanout (Qardaji, Yang, Li 2013).
    Hb,
    /// Haar wavelet (Xiao, Wang, Gehrke 2010).
    Privelet,
    /// Binary tree weighted for the workload (Li, Hay, Miklau, Wang 2014).
    GreedyH,
    /// Private partition and GreedyH, stage 1 corrected (Li, Hay, Miklau, Wang 2014).
    Dawa,
    /// Clusters of similar counts (Zhang et al. 2014).
    Ahp,
    /// Adaptive grid (Qardaji, Yang, Li 2013).
    Ag,
    /// Multiplicative weights (Hardt, Ligett, McSherry 2012).
    Mwem,
    /// Biased-count tree (Zhang, Xiao, Xie 2016).
    PrivTree,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Identity,
        Self::Uniform,
        Self::Hb,
        Self::Privelet,
        Self::GreedyH,
        Self::Dawa,
        Self::Ahp,
        Self::Ag,
        Self::Mwem,
        Self::PrivTree,
    ];

    /// The name in plans.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Uniform => "uniform",
            Self::Hb => "hb",
            Self::Privelet => "privelet",
            Self::GreedyH => "greedyh",
            Self::Dawa => "dawa",
            Self::Ahp => "ahp",
            Self::Ag => "ag",
            Self::Mwem => "mwem",
            Self::PrivTree => "privtree",
        }
    }

    /// The method of a name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|m| m.name() == name)
    }

    /// Whether it works on a domain of so many axes (1 or 2).
    pub fn takes(self, axes: usize) -> bool {
        match self {
            Self::GreedyH => axes == 1,
            Self::Ag => axes == 2,
            _ => axes == 1 || axes == 2,
        }
    }

    /// Whether its errors come from the noise alone, whatever the data are.
    pub fn is_linear(self) -> bool {
        matches!(
            self,
            Self::Identity | Self::Hb | Self::Privelet | Self::GreedyH
        )
    }
}

/// What is spent.
#[derive(Clone, Debug, PartialEq)]
pub enum Budget {
    /// ε.
    Pure(Rational),
    /// ρ, by discrete Gaussian noise: for identity, hb and privelet on a data set whose budget is ρ.
    Concentrated(Rational),
}

/// How a histogram is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The algorithm.
    pub method: Method,
    /// The budget.
    pub budget: Budget,
    /// What the histogram is wanted for.
    pub workload: Workload,
    /// Move the estimate to the nearest one without negative cells and with the same total.
    pub nonnegative: bool,
    /// Simulations behind the expected errors (relative error √(2/draws) of a variance); 0 leaves them out.
    pub error_draws: u32,
}

impl Config {
    /// Defaults: workload identity, signed cells, 128 simulations.
    pub fn new(method: Method, epsilon: Rational) -> Self {
        Self {
            method,
            budget: Budget::Pure(epsilon),
            workload: Workload::Identity,
            nonnegative: false,
            error_draws: 128,
        }
    }
}

/// Largest number of cells for the algorithms of this module.
pub const MAX_CELLS: usize = 1 << 20;

/// An estimate of every cell, with how noise enters it.
pub(crate) struct Estimate {
    pub(crate) cells: Vec<f64>,
    pub(crate) spread: Option<Spread>,
    details: Value,
}

/// Turns measurements into cells: an affine map.
pub(crate) type Rebuild = Box<dyn Fn(&[f64]) -> Vec<f64>>;

/// The last, linear step of an algorithm.
pub(crate) struct Spread {
    pub(crate) deviations: Vec<f64>,
    pub(crate) rebuild: Rebuild,
}

impl Estimate {
    /// From measured values with their noise and the affine map that makes cells of them.
    fn new(measured: &reticent_mechanisms::primitives::Measured, rebuild: Rebuild) -> Self {
        let values: Vec<f64> = measured
            .values
            .iter()
            .map(|v| crate::common::real(*v))
            .collect();
        Self {
            cells: rebuild(&values),
            spread: Some(Spread {
                deviations: measured.noise.iter().map(|l| deviation(*l)).collect(),
                rebuild,
            }),
            details: json!({}),
        }
    }
}

/// Standard deviation of a noise.
fn deviation(lattice: reticent_noise::Lattice) -> f64 {
    lattice.std_dev()
}

/// What a method is made of.
pub(crate) trait Algorithm: Send + Sync {
    /// What it buys, in order.
    fn events(&self, context: &Context) -> Vec<Event>;
    /// Buys it, from the counts of a grid.
    fn run(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<Estimate, DeskError>;
}

/// The public inputs of an algorithm.
struct Setting<'a> {
    domain: Domain,
    config: &'a Config,
    context: &'a Context,
    /// A public or released number of rows.
    rows: Option<f64>,
}

impl Setting<'_> {
    fn refuse(&self, fix: &str) -> StatisticsError {
        StatisticsError::Parameter {
            name: "method",
            value: self.config.method.name().to_owned(),
            fix: fix.to_owned(),
        }
    }

    /// ε, for algorithms with several steps.
    fn epsilon(&self) -> Result<&Rational, StatisticsError> {
        match &self.config.budget {
            Budget::Pure(epsilon) => Ok(epsilon),
            Budget::Concentrated(_) => Err(StatisticsError::Currency {
                what: "this histogram method",
                fix: "give it epsilon; only identity, hb and privelet take rho",
            }),
        }
    }

    fn payment(&self) -> Payment {
        match &self.config.budget {
            Budget::Pure(epsilon) => Payment::Pure {
                epsilon: epsilon.clone(),
            },
            Budget::Concentrated(rho) => Payment::Concentrated { rho: rho.clone() },
        }
    }

    /// The number of rows, where it is public and neighbours share it.
    fn public_total(&self) -> Option<f64> {
        match self.context.size {
            #[allow(clippy::cast_precision_loss, reason = "a row count")]
            Size::Public(n)
                if self.context.rows_per_unit <= 1
                    && self.context.relation == Relation::ReplaceOne =>
            {
                Some(n as f64)
            }
            _ => None,
        }
    }
}

/// A histogram of one axis (a line) or two (a plane, the first axis its rows).
///
/// # Errors
/// [`StatisticsError::Parameter`] for axes, cells, methods or budgets that are not possible, decided from public inputs.
///
/// ```
/// use reticent_accounting::{Rational, Relation};
/// use reticent_mechanisms::{Context, program::Expr, rows::{Column, Kind, Missing, Schema}};
/// use reticent_statistics::{Facts, histogram::{Config, Method, Workload, prepare}, simple::{AxisCut, AxisSpec}};
///
/// let schema = Schema {
///     columns: vec![Column {
///         name: "age".into(),
///         kind: Kind::Real { lower: 0.0, upper: 128.0 },
///         missing: Missing::Drop,
///     }],
/// };
/// let context = Context::records(Relation::AddRemove);
/// let facts = Facts { schema: &schema, filter: None, context: &context, rows: None, positive_rate: None };
/// let age = AxisSpec {
///     name: "age".into(),
///     expr: Expr::Column(0),
///     cut: AxisCut::Even { lower: 0.0, upper: 128.0, cells: 128 },
/// };
/// let mut config = Config::new(Method::Hb, Rational::ONE);
/// config.workload = Workload::Prefix;
/// let release = prepare(&facts, vec![age], config)?;
/// assert_eq!(release.mechanism.kind(), "histogram");
/// # Ok::<(), reticent_statistics::StatisticsError>(())
/// ```
pub fn prepare(
    facts: &Facts<'_>,
    axes: Vec<AxisSpec>,
    config: Config,
) -> Result<Prepared, StatisticsError> {
    match (&config.budget, facts.context.currency) {
        (Budget::Pure(epsilon), _) => positive(epsilon)?,
        (Budget::Concentrated(rho), Currency::Concentrated) => positive(rho)?,
        (Budget::Concentrated(_), _) => {
            return Err(StatisticsError::Currency {
                what: "a histogram with Gaussian noise",
                fix: "give it epsilon, or use a data set whose budget is rho",
            });
        }
    }
    if axes.is_empty() || axes.len() > 2 {
        return Err(StatisticsError::Parameter {
            name: "columns",
            value: format!("{} columns", axes.len()),
            fix: "a histogram has one or two; use a crosstab for more".to_owned(),
        });
    }
    let (mut terms, mut cuts, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    for (term, spec) in axes.into_iter().enumerate() {
        let (cut, label) = crate::simple::cut(&spec)?;
        labels.push((spec.name, label));
        terms.push(spec.expr);
        cuts.push(Axis { term, cut });
    }
    facts.bounds(&terms)?;
    let domain = match cuts.as_slice() {
        [rows, columns] => Domain::Plane(rows.cut.cells(), columns.cut.cells()),
        _ => Domain::Line(cuts.first().map_or(1, |a| a.cut.cells())),
    };
    if domain.cells() > MAX_CELLS {
        return Err(StatisticsError::Parameter {
            name: "bins",
            value: domain.cells().to_string(),
            fix: format!("use at most {MAX_CELLS} cells"),
        });
    }
    let setting = Setting {
        domain,
        config: &config,
        context: facts.context,
        rows: facts.rows.filter(|r| r.is_finite() && *r >= 0.0),
    };
    if !config.method.takes(cuts.len()) {
        return Err(setting.refuse(if cuts.len() == 1 {
            "it needs two columns; use hb, privelet or dawa for one"
        } else {
            "it needs one column; use hb, dawa or privtree for two"
        }));
    }
    let algorithm = algorithm(&setting)?;
    Ok(Prepared {
        terms,
        mechanism: Box::new(Histogram {
            axes: cuts,
            labels,
            domain,
            config,
            algorithm,
        }),
    })
}

fn algorithm(setting: &Setting<'_>) -> Result<Box<dyn Algorithm>, StatisticsError> {
    Ok(match setting.config.method {
        Method::Identity => Box::new(linear::identity(setting)),
        Method::Uniform => Box::new(linear::uniform(setting)?),
        Method::Hb => Box::new(linear::hb(setting)),
        Method::Privelet => Box::new(wavelet::privelet(setting)),
        Method::GreedyH => Box::new(linear::greedy(setting)?),
        Method::Dawa => Box::new(dawa::dawa(setting)?),
        Method::Ahp => Box::new(ahp::ahp(setting)?),
        Method::Ag => Box::new(adaptive::grid(setting)?),
        Method::Mwem => Box::new(mwem::mwem(setting)?),
        Method::PrivTree => Box::new(adaptive::tree(setting)?),
    })
}

/// A method on the square grid of another release, bought like a step of it.
pub(crate) struct Square {
    algorithm: Box<dyn Algorithm>,
}

impl Square {
    /// For `side` × `side` cells.
    pub(crate) fn new(
        facts: &Facts<'_>,
        side: usize,
        method: Method,
        epsilon: Rational,
    ) -> Result<Self, StatisticsError> {
        let config = Config::new(method, epsilon);
        let setting = Setting {
            domain: Domain::Plane(side, side),
            config: &config,
            context: facts.context,
            rows: facts.rows.filter(|r| r.is_finite() && *r >= 0.0),
        };
        if !method.takes(2) {
            return Err(setting.refuse("it needs one column; use dawa, hb or identity here"));
        }
        Ok(Self {
            algorithm: algorithm(&setting)?,
        })
    }

    /// What it buys.
    pub(crate) fn events(&self, context: &Context) -> Vec<Event> {
        self.algorithm.events(context)
    }

    /// An estimate of every cell of the grid of a fold.
    pub(crate) fn buy(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<Vec<f64>, DeskError> {
        Ok(self.algorithm.run(desk, fold)?.cells)
    }
}

/// One of the algorithms on a line of cells that a diagnostic counts. Its events depend on ε and its names, not on `cells`.
pub(crate) fn on_line(
    method: Method,
    cells: usize,
    epsilon: &Rational,
    context: &Context,
    rows: Option<f64>,
) -> Result<Box<dyn Algorithm>, StatisticsError> {
    let config = Config {
        workload: Workload::Prefix,
        ..Config::new(method, epsilon.clone())
    };
    let setting = Setting {
        domain: Domain::Line(cells.max(1)),
        config: &config,
        context,
        rows,
    };
    if !method.takes(1) {
        return Err(setting.refuse("it needs two columns; use laplace, hb, privelet, dawa or ahp"));
    }
    algorithm(&setting)
}

/// The queries a data-independent method measures when no total is public; `None` for other methods and for domains the method
/// does not take.
pub fn strategy(method: Method, domain: Domain, workload: Workload) -> Option<Strategy> {
    let of = |(tree, shares): (Tree, Vec<u32>)| tree.strategy(domain, &shares).0;
    match (method, domain) {
        (Method::Identity, _) => Some(linear::identity_strategy(domain.cells())),
        (Method::Hb, _) => Some(of(linear::hb_tree(domain))),
        (Method::Privelet, _) => Some(wavelet::strategy(domain)),
        (Method::GreedyH, Domain::Line(_)) => Some(of(linear::greedy_tree(domain, workload))),
        _ => None,
    }
}

/// # Claim
/// ε-DP (ρ-zCDP): the steps of its method, whose prices add up to the budget.
/// # Composition
/// Sequential. Everything after the purchases is post-processing.
/// # Checked by
/// `histogram::every_method_answers_on_every_table`, `histogram::prices_add_up`, `composites::all`
struct Histogram {
    axes: Vec<Axis>,
    labels: Vec<(String, Value)>,
    domain: Domain,
    config: Config,
    algorithm: Box<dyn Algorithm>,
}

impl Mechanism for Histogram {
    fn kind(&self) -> &'static str {
        "histogram"
    }

    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(Event::Sequence(self.algorithm.events(context)))
    }

    fn first_pass(&self) -> Vec<Fold> {
        vec![Fold::Grid {
            axes: self.axes.clone(),
            sum: None,
        }]
    }

    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let mut estimate = self.algorithm.run(desk, FoldId(0))?;
        if self.config.nonnegative {
            estimate.cells = nonnegative(&estimate.cells);
        }
        let mut flags = Vec::new();
        if !self.config.method.is_linear() {
            flags.push(
                "cells are treated alike where the method found them alike: the stated error is that of the noise only"
                    .to_owned(),
            );
        }
        let queries = self.config.workload.queries(self.domain);
        let (cell_error, errors) = estimate
            .spread
            .as_ref()
            .filter(|_| self.config.error_draws > 0)
            .map(|s| workload::expected_errors(self.domain, s, &queries, self.config.error_draws))
            .unzip();
        // .95 of a Laplace law lies within 2.12 deviations, of a sum of several within about 2
        let error = cell_error
            .filter(|_| self.config.method.is_linear())
            .map(|e| 2.12 * e);
        let mut value = json!({
            "method": self.config.method.name(),
            "counts": numbers(&estimate.cells),
            "error_95": error.map_or(Value::Null, number),
            "workload": self.config.workload.describe(&queries, errors.as_deref()),
        });
        value = with_metadata(value, &estimate.details);
        match self.labels.as_slice() {
            [(name, label)] => {
                value = with_metadata(value, &json!({"column": name}));
                value = with_metadata(value, label);
            }
            labels => {
                let axes: Vec<Value> = labels
                    .iter()
                    .map(|(name, label)| with_metadata(json!({"name": name}), label))
                    .collect();
                value = with_metadata(value, &json!({"axes": axes}));
            }
        }
        Ok(Answer {
            value,
            error_95: error,
            flags,
        })
    }
}
