//! The box of a residual plot: fine searches for both ends of the fitted values and for one or both ends of the residuals, or the paper's two
//! symmetric doubling ones.

use reticent_accounting::{Event, Rational};
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::program::{Expr, Function, Interval};
use reticent_mechanisms::{Context, Desk, DeskError, FoldId};

use crate::common::{Facts, StatisticsError};
use crate::ends::{Ends, candidates};
use crate::range::{Range, RangeScales};

/// θ of the paper.
pub(super) const PUBLISHED_COVERAGE: (u32, u32) = (19, 20);
/// Most doublings.
const MOST: usize = 200;

/// Both sides of the box.
#[allow(clippy::large_enum_variant, reason = "one per release")]
pub(super) enum Frame {
    /// Upper and lower ends of the fitted values, and the sides of the residuals.
    Fine {
        /// Fitted values.
        x: Ends,
        /// Residuals.
        y: Sides,
    },
    /// [−d, d], d found by doubling.
    Doubling {
        /// Fitted values.
        x: Symmetric,
        /// Residuals.
        y: Symmetric,
    },
}

/// How residuals are framed.
#[allow(clippy::large_enum_variant, reason = "one per release")]
pub(super) enum Sides {
    /// Each end on its own.
    Both(Ends),
    /// One distance from 0 on both sides.
    Same(Symmetric),
}

impl Sides {
    fn events(&self, context: &Context) -> Vec<Event> {
        match self {
            Self::Both(ends) => vec![ends.steps.0.event(context), ends.steps.1.event(context)],
            Self::Same(one) => vec![one.step.event(context)],
        }
    }

    fn folds(&self) -> Vec<Fold> {
        match self {
            Self::Both(ends) => ends.folds().to_vec(),
            Self::Same(one) => vec![one.fold()],
        }
    }

    fn buy(&self, desk: &mut Desk<'_>, first: FoldId) -> Result<Interval, DeskError> {
        match self {
            Self::Both(ends) => ends.buy(desk, first),
            Self::Same(one) => one.buy(desk, first),
        }
    }
}

/// Algorithm "Private Bounds" for one expression: the first d = μ2ⁱ with about θ·n records in [−d, d].
pub(super) struct Symmetric {
    candidates: Vec<f64>,
    term: usize,
    step: Range,
}

impl Symmetric {
    /// Appends |expr| to the terms. μ is `unit`, or the power of two 2²⁰ times below the largest possible value.
    pub(super) fn new(
        facts: &Facts<'_>,
        expr: &Expr,
        name: &str,
        unit: Option<f64>,
        epsilon: Rational,
        terms: &mut Vec<Expr>,
    ) -> Result<Self, StatisticsError> {
        if let Some(u) = unit.filter(|u| !(u.is_finite() && *u > 0.0)) {
            return Err(StatisticsError::Parameter {
                name: "unit",
                value: u.to_string(),
                fix: "give a number above 0, such as 1 for scores or 1000 for incomes".to_owned(),
            });
        }
        let bounds = facts.interval(expr)?;
        let far = bounds.lower.abs().max(bounds.upper.abs());
        let mut next = unit.unwrap_or_else(|| (far.log2().floor() - 20.0).exp2());
        let mut candidates = Vec::new();
        while next < far && candidates.len() < MOST {
            candidates.push(next);
            next *= 2.0;
        }
        candidates.push(next.max(far));
        let term = terms.len();
        terms.push(expr.clone().call(Function::Abs));
        Ok(Self {
            candidates,
            term,
            step: Range {
                name: name.to_owned(),
                epsilon,
                coverage: PUBLISHED_COVERAGE,
                scales: RangeScales::Calibrated,
            },
        })
    }

    /// The same over the candidates of the fine searches.
    pub(super) fn fine(
        facts: &Facts<'_>,
        expr: &Expr,
        coverage: (u32, u32),
        epsilon: Rational,
        terms: &mut Vec<Expr>,
    ) -> Result<Self, StatisticsError> {
        let bounds = facts.interval(expr)?;
        let far = bounds.lower.abs().max(bounds.upper.abs());
        let term = terms.len();
        terms.push(expr.clone().call(Function::Abs));
        Ok(Self {
            candidates: candidates(far, super::GROWTH),
            term,
            step: Range {
                name: "size of residuals".to_owned(),
                epsilon,
                coverage,
                scales: RangeScales::Calibrated,
            },
        })
    }

    fn fold(&self) -> Fold {
        Fold::Grid {
            axes: vec![Axis {
                term: self.term,
                cut: Cut::UpTo(self.candidates.clone()),
            }],
            sum: None,
        }
    }

    fn buy(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<Interval, DeskError> {
        let chosen = self.step.buy(desk, fold, self.candidates.len())?;
        let d = self
            .candidates
            .get(chosen)
            .or(self.candidates.last())
            .copied()
            .unwrap_or(0.0);
        Ok(Interval {
            lower: -d,
            upper: d,
        })
    }
}

impl Frame {
    /// The range calls, in the order in which they are bought.
    pub(super) fn events(&self, context: &Context) -> Vec<Event> {
        match self {
            Self::Fine { x, y } => [&x.steps.0, &x.steps.1]
                .map(|s| s.event(context))
                .into_iter()
                .chain(y.events(context))
                .collect(),
            Self::Doubling { x, y } => vec![x.step.event(context), y.step.event(context)],
        }
    }

    /// What the first pass counts.
    pub(super) fn folds(&self) -> Vec<Fold> {
        match self {
            Self::Fine { x, y } => [x.upper_fold()].into_iter().chain(y.folds()).collect(),
            Self::Doubling { x, y } => vec![x.fold(), y.fold()],
        }
    }

    /// Further passes, with that of the cells.
    pub(super) fn passes(&self) -> u32 {
        match self {
            Self::Fine { .. } => 2,
            Self::Doubling { .. } => 1,
        }
    }

    /// Buys the box.
    pub(super) fn buy(&self, desk: &mut Desk<'_>) -> Result<(Interval, Interval), DeskError> {
        match self {
            Self::Fine { x, y } => Ok((x.buy_in_turn(desk, FoldId(0))?, y.buy(desk, FoldId(1))?)),
            Self::Doubling { x, y } => Ok((x.buy(desk, FoldId(0))?, y.buy(desk, FoldId(1))?)),
        }
    }

    /// The paper leaves points outside its box out; otherwise they are moved to its edge.
    pub(super) fn leaves_out(&self) -> bool {
        matches!(self, Self::Doubling { .. })
    }
}
