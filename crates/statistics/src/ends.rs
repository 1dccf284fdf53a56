//! Both ends of an expression's range, each by one private range finder.
//!
//! Distances are measured from an anchor: 0 if the public bounds contain it (so that residuals are framed
//! around 0), else from the public ends. Values that have no reason to lie around 0 (fitted values) are framed
//! in two steps instead: the upper end, then the lower one by its distance from the *released* upper end. The
//! result never leaves the public bounds.

use reticent_accounting::Rational;
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::program::{Expr, Interval};
use reticent_mechanisms::{Desk, DeskError, FoldId};

use crate::common::{Facts, StatisticsError};
use crate::range::{Range, RangeScales};

/// Ratio of neighbouring candidates, if not another is asked for.
const GROWTH: f64 = 1.1;
/// Smallest candidate above 0, as a share of the largest possible distance.
const FINEST: f64 = 1e-6;

/// The two range calls of one expression.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    bounds: Interval,
    /// Anchors from which the upper and the lower end are sought.
    anchors: (f64, f64),
    /// Candidates for the two distances.
    candidates: (Vec<f64>, Vec<f64>),
    /// Ratio of neighbouring candidates.
    growth: f64,
    /// Terms that hold the two distances.
    terms: (usize, usize),
    /// The two purchases, upper end first.
    pub(crate) steps: (Range, Range),
}

impl Ends {
    /// Appends the two distance terms of `expr` to the program.
    pub(crate) fn new(
        facts: &Facts<'_>,
        expr: &Expr,
        name: &str,
        coverage: (u32, u32),
        epsilons: (Rational, Rational),
        terms: &mut Vec<Expr>,
    ) -> Result<Self, StatisticsError> {
        let bounds = facts.interval(expr)?;
        let anchors = if bounds.lower < 0.0 && bounds.upper > 0.0 {
            (0.0, 0.0)
        } else {
            (bounds.lower, bounds.upper)
        };
        let first = terms.len();
        terms.push(expr.clone().sub(Expr::Constant(anchors.0)));
        terms.push(Expr::Constant(anchors.1).sub(expr.clone()));
        Ok(Self {
            bounds,
            anchors,
            candidates: (
                candidates(bounds.upper - anchors.0, GROWTH),
                candidates(anchors.1 - bounds.lower, GROWTH),
            ),
            growth: GROWTH,
            terms: (first, first + 1),
            steps: (
                Range {
                    name: format!("upper end of {name}"),
                    epsilon: epsilons.0,
                    coverage,
                    scales: RangeScales::default(),
                },
                Range {
                    name: format!("lower end of {name}"),
                    epsilon: epsilons.1,
                    coverage,
                    scales: RangeScales::default(),
                },
            ),
        })
    }

    /// Candidates that grow by another factor than 1.1.
    pub(crate) fn grow_by(&mut self, factor: f64) {
        self.growth = factor;
        self.candidates = (
            candidates(self.bounds.upper - self.anchors.0, factor),
            candidates(self.anchors.1 - self.bounds.lower, factor),
        );
    }

    /// Other noise scales than the calibrated ones.
    pub(crate) fn scaled(&mut self, scales: RangeScales) {
        self.steps.0.scales = scales;
        self.steps.1.scales = scales;
    }

    /// The two folds the calls read.
    pub(crate) fn folds(&self) -> [Fold; 2] {
        [
            up_to(self.terms.0, self.candidates.0.clone()),
            up_to(self.terms.1, self.candidates.1.clone()),
        ]
    }

    /// The fold of the upper end alone.
    pub(crate) fn upper_fold(&self) -> Fold {
        let [upper, _] = self.folds();
        upper
    }

    fn up(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<usize, DeskError> {
        self.steps.0.buy(desk, fold, self.candidates.0.len())
    }

    fn down(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<usize, DeskError> {
        self.steps.1.buy(desk, fold, self.candidates.1.len())
    }

    /// Buys the upper end, then, with one more pass, the lower end by its distance from the released upper one.
    /// Candidates are functions of released values, so this is adaptive sequential composition of two calls.
    pub(crate) fn buy_in_turn(
        &self,
        desk: &mut Desk<'_>,
        first: FoldId,
    ) -> Result<Interval, DeskError> {
        let up = self.up(desk, first)?;
        let upper = (self.anchors.0 + pick(&self.candidates.0, up))
            .clamp(self.bounds.lower, self.bounds.upper);
        let distances = candidates(upper - self.bounds.lower, self.growth);
        let shift = self.anchors.1 - upper;
        let fold = up_to(self.terms.1, distances.iter().map(|d| d + shift).collect());
        let folds = desk.scan(vec![fold])?;
        let fold = folds.first().copied().unwrap_or(first);
        let down = self.steps.1.buy(desk, fold, distances.len())?;
        let lower = (upper - pick(&distances, down)).clamp(self.bounds.lower, upper);
        Ok(Interval { lower, upper })
    }

    /// Buys the upper end alone, from its fold; the lower one is the public bound.
    pub(crate) fn buy_upper(
        &self,
        desk: &mut Desk<'_>,
        fold: FoldId,
    ) -> Result<Interval, DeskError> {
        let up = self.up(desk, fold)?;
        let upper = (self.anchors.0 + pick(&self.candidates.0, up))
            .clamp(self.bounds.lower, self.bounds.upper);
        Ok(Interval {
            lower: self.bounds.lower,
            upper,
        })
    }

    /// Buys the lower end alone, from its fold; the upper one is the public bound.
    pub(crate) fn buy_lower(
        &self,
        desk: &mut Desk<'_>,
        fold: FoldId,
    ) -> Result<Interval, DeskError> {
        let down = self.down(desk, fold)?;
        let lower = (self.anchors.1 - pick(&self.candidates.1, down))
            .clamp(self.bounds.lower, self.bounds.upper);
        Ok(Interval {
            lower,
            upper: self.bounds.upper,
        })
    }

    /// Buys both ends; `first` is the fold of the upper one.
    pub(crate) fn buy(&self, desk: &mut Desk<'_>, first: FoldId) -> Result<Interval, DeskError> {
        let up = self.up(desk, first)?;
        let down = self.down(desk, FoldId(first.0 + 1))?;
        let upper = (self.anchors.0 + pick(&self.candidates.0, up))
            .clamp(self.bounds.lower, self.bounds.upper);
        let lower = (self.anchors.1 - pick(&self.candidates.1, down))
            .clamp(self.bounds.lower, self.bounds.upper);
        // Anchored at the public ends the two searches may cross when noise wins.
        Ok(Interval {
            lower: lower.min(upper),
            upper: upper.max(lower),
        })
    }
}

fn up_to(term: usize, edges: Vec<f64>) -> Fold {
    Fold::Grid {
        axes: vec![Axis {
            term,
            cut: Cut::UpTo(edges),
        }],
        sum: None,
    }
}

/// The candidate of an answer.
fn pick(edges: &[f64], k: usize) -> f64 {
    edges.get(k).or(edges.last()).copied().unwrap_or(0.0)
}

/// 0, then μ·growth^k up to `far`.
pub(crate) fn candidates(far: f64, growth: f64) -> Vec<f64> {
    let mut edges = vec![0.0];
    let mut next = far * FINEST;
    while next > 0.0 && next < far && edges.len() < 400 {
        edges.push(next);
        next *= growth;
    }
    if far > 0.0 {
        edges.push(far);
    }
    edges
}
