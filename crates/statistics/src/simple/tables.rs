//! Histograms and cross tables over public cells.

use reticent_accounting::{AccountingError, Event, Rational};
use reticent_laws::Law;
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::primitives::Counts;
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::{Value, json};

use crate::common::{Facts, Prepared, StatisticsError, number, numbers, positive, whole};

/// Largest number of cells of a table. Public, so that a request is refused before anything is spent.
pub const MAX_CELLS: usize = 1 << 22;

/// One axis of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisSpec {
    /// Name, as shown.
    pub name: String,
    /// What is cut into cells.
    pub expr: Expr,
    /// The cells.
    pub cut: AxisCut,
}

/// How an axis is cut.
#[derive(Clone, Debug, PartialEq)]
pub enum AxisCut {
    /// One cell per level; the expression is the level index.
    Levels(Vec<String>),
    /// Equal cells; values outside go to the end cells.
    Even {
        /// Left end.
        lower: f64,
        /// Right end.
        upper: f64,
        /// Number of cells.
        cells: u32,
    },
    /// Increasing edges; values outside go to the end cells.
    Edges(Vec<f64>),
}

/// Counts of the cells of one axis. Cells are disjoint, so ε is spent once.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// use reticent_statistics::simple::{AxisCut, AxisSpec, histogram};
/// let people = People::new();
/// let cut = AxisCut::Even { lower: 0.0, upper: 100.0, cells: 10 };
/// let axis = AxisSpec { name: "age".to_owned(), expr: AGE, cut };
/// let value = people.release(&histogram(&people.facts(), axis, &epsilon())?);
/// assert!((value["counts"][3].as_f64().unwrap() - 400.0).abs() < 30.0);
/// # Ok(())
/// # }
/// ```
pub fn histogram(
    facts: &Facts<'_>,
    axis: AxisSpec,
    epsilon: &Rational,
) -> Result<Prepared, StatisticsError> {
    table(facts, vec![axis], epsilon, true)
}

/// Counts of the cells of several axes, row-major. Cells are disjoint, so ε is spent once.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// use reticent_statistics::simple::{AxisCut, AxisSpec, crosstab};
/// let people = People::new();
/// let axis = |name: &str, expr, upper| AxisSpec {
///     name: name.to_owned(),
///     expr,
///     cut: AxisCut::Even { lower: 0.0, upper, cells: 2 },
/// };
/// let axes = vec![axis("age", AGE, 100.0), axis("sick", SICK, 1.0)];
/// let value = people.release(&crosstab(&people.facts(), axes, &epsilon())?);
/// // row-major: the young and well, the young and sick, the old and well, the old and sick
/// assert!(value["counts"][0].as_f64().unwrap() > 1700.0, "{value}");
/// # Ok(())
/// # }
/// ```
pub fn crosstab(
    facts: &Facts<'_>,
    axes: Vec<AxisSpec>,
    epsilon: &Rational,
) -> Result<Prepared, StatisticsError> {
    table(facts, axes, epsilon, false)
}

fn table(
    facts: &Facts<'_>,
    specs: Vec<AxisSpec>,
    epsilon: &Rational,
    one: bool,
) -> Result<Prepared, StatisticsError> {
    positive(epsilon)?;
    if specs.is_empty() {
        return Err(StatisticsError::Parameter {
            name: "columns",
            value: "[]".to_owned(),
            fix: "name at least one column".to_owned(),
        });
    }
    let mut terms = Vec::new();
    let mut axes = Vec::new();
    let mut labels = Vec::new();
    for (term, spec) in specs.into_iter().enumerate() {
        let (cut, label) = cut(&spec)?;
        labels.push((spec.name, label));
        terms.push(spec.expr);
        axes.push(Axis { term, cut });
    }
    facts.bounds(&terms)?;
    let cells = axes
        .iter()
        .map(|a| a.cut.cells())
        .fold(1usize, usize::saturating_mul);
    if cells > MAX_CELLS {
        return Err(StatisticsError::Parameter {
            name: "cells",
            value: cells.to_string(),
            fix: format!("use at most {MAX_CELLS} cells: fewer columns or wider bins"),
        });
    }
    Ok(Prepared {
        terms,
        mechanism: Box::new(Table {
            axes,
            labels,
            step: Counts {
                name: "counts".to_owned(),
                epsilon: epsilon.clone(),
            },
            one,
        }),
    })
}

pub(crate) fn cut(spec: &AxisSpec) -> Result<(Cut, Value), StatisticsError> {
    let refuse = |value: String, fix: &str| {
        Err(StatisticsError::Parameter {
            name: "bins",
            value,
            fix: format!("{fix} (axis \"{}\")", spec.name),
        })
    };
    match &spec.cut {
        AxisCut::Levels(levels) => {
            let count = u32::try_from(levels.len()).unwrap_or(0);
            if count == 0 {
                return refuse("no levels".to_owned(), "declare at least one level");
            }
            Ok((Cut::Whole(count), json!({"levels": levels})))
        }
        AxisCut::Even {
            lower,
            upper,
            cells,
        } => {
            if *cells == 0 || !lower.is_finite() || !upper.is_finite() || lower >= upper {
                return refuse(
                    format!("{cells} from {lower} to {upper}"),
                    "give at least one bin between finite, increasing ends",
                );
            }
            let width = (upper - lower) / f64::from(*cells);
            let edges: Vec<f64> = (0..*cells)
                .map(|i| lower + width * f64::from(i))
                .chain([*upper])
                .collect();
            Ok((
                Cut::Even {
                    lower: *lower,
                    upper: *upper,
                    cells: *cells,
                },
                json!({"edges": numbers(&edges)}),
            ))
        }
        AxisCut::Edges(edges) => {
            let increasing = edges.iter().zip(edges.iter().skip(1)).all(|(a, b)| a < b);
            if edges.len() < 2 || !increasing || edges.iter().any(|e| !e.is_finite()) {
                return refuse(
                    format!("{edges:?}"),
                    "give at least two finite, increasing edges",
                );
            }
            Ok((Cut::Edges(edges.clone()), json!({"edges": numbers(edges)})))
        }
    }
}

/// # Claim
/// ε-DP: one [`Counts`] purchase over disjoint cells.
/// # Arithmetic
/// Counts stay signed: clipping them at 0 would bias every sum over cells.
/// # Checked by
/// `golden::simple_kinds_are_exact`, `contract::a_thousand_empty_cells_are_unbiased`
struct Table {
    axes: Vec<Axis>,
    labels: Vec<(String, Value)>,
    step: Counts,
    one: bool,
}

impl Mechanism for Table {
    fn kind(&self) -> &'static str {
        if self.one { "histogram" } else { "crosstab" }
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(self.step.event(context))
    }
    fn first_pass(&self) -> Vec<Fold> {
        vec![Fold::Grid {
            axes: self.axes.clone(),
            sum: None,
        }]
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let noisy = desk.counts(FoldId(0), None, &self.step)?;
        let error = self.step.lattice(desk.context())?.quantile_95();
        let counts: Vec<Value> = noisy.iter().map(|n| whole(*n)).collect();
        let mut value = json!({"counts": counts, "error_95": number(error)});
        if self.one {
            if let Some((name, label)) = self.labels.first() {
                value = crate::common::with_metadata(value, &json!({"column": name}));
                value = crate::common::with_metadata(value, label);
            }
        } else {
            let axes: Vec<Value> = self
                .labels
                .iter()
                .map(|(name, label)| crate::common::with_metadata(json!({"name": name}), label))
                .collect();
            value = crate::common::with_metadata(value, &json!({"axes": axes}));
        }
        Ok(Answer {
            value,
            error_95: Some(error),
            flags: Vec::new(),
        })
    }
}
