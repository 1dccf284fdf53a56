//! Designs: named terms and an outcome, scaled by their public bounds.

use reticent_mechanisms::program::{Expr, Interval};
use serde_json::Value;

use crate::common::{Facts, StatisticsError, is_indicator};

/// A model's design on the user's scale.
#[derive(Clone, Debug, PartialEq)]
pub struct DesignSpec {
    /// Whether there is an intercept.
    pub intercept: bool,
    /// Named terms, without the intercept.
    pub terms: Vec<(String, Expr)>,
    /// The outcome: 0 or 1 for logistic regression, a number for linear regression.
    pub outcome: Expr,
    /// Public facts copied into the value: formula, response, positive level, columns.
    pub metadata: Value,
}

/// x ↦ factor·x + shift, from public bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Affine {
    pub(crate) factor: f64,
    pub(crate) shift: f64,
}

impl Affine {
    pub(crate) const IDENTITY: Self = Self {
        factor: 1.0,
        shift: 0.0,
    };
    /// A constant term carries nothing.
    pub(crate) const NOTHING: Self = Self {
        factor: 0.0,
        shift: 0.0,
    };

    /// Onto [−1, 1].
    pub(crate) fn to_unit(bounds: Interval) -> Self {
        let width = bounds.upper - bounds.lower;
        if width.is_nan() || width <= 0.0 {
            return Self::NOTHING;
        }
        Self {
            factor: 2.0 / width,
            shift: -(bounds.upper + bounds.lower) / width,
        }
    }

    /// Onto [−½, ½].
    pub(crate) fn to_half(bounds: Interval) -> Self {
        let whole = Self::to_unit(bounds);
        Self {
            factor: 0.5 * whole.factor,
            shift: 0.5 * whole.shift,
        }
    }

    /// Into [−1, 1] without a shift: for models without an intercept.
    fn by_magnitude(bounds: Interval) -> Self {
        if bounds.magnitude() > 0.0 && bounds.upper > bounds.lower {
            Self {
                factor: 1.0 / bounds.magnitude(),
                shift: 0.0,
            }
        } else {
            Self::NOTHING
        }
    }

    /// The scaled term, clamped so that rounding does not leave the target interval.
    pub(crate) fn apply(self, term: &Expr, half_width: f64) -> Expr {
        if self == Self::IDENTITY {
            return term.clone();
        }
        if self == Self::NOTHING {
            return Expr::Constant(0.0);
        }
        let scaled = if self.shift == 0.0 {
            term.clone().mul(Expr::Constant(self.factor))
        } else {
            term.clone().affine(self.factor, self.shift)
        };
        scaled.clamp(Interval {
            lower: -half_width,
            upper: half_width,
        })
    }
}

impl DesignSpec {
    /// The terms' expressions.
    pub(crate) fn exprs(&self) -> Vec<Expr> {
        self.terms.iter().map(|(_, e)| e.clone()).collect()
    }

    /// Scaling of logistic designs: indicators stay, other terms go to [−1, 1] by their interval; without
    /// an intercept no shift is possible, so they are divided by their magnitude.
    pub(crate) fn logistic_scaling(
        &self,
        facts: &Facts<'_>,
    ) -> Result<Vec<Affine>, StatisticsError> {
        let bounds = facts.bounds(&self.exprs())?;
        Ok(self
            .terms
            .iter()
            .zip(bounds)
            .map(|((_, e), b)| {
                if is_indicator(e) {
                    Affine::IDENTITY
                } else if self.intercept {
                    Affine::to_unit(b)
                } else {
                    Affine::by_magnitude(b)
                }
            })
            .collect())
    }

    /// A design needs something to estimate, and names that can be told apart.
    pub(crate) fn check(&self) -> Result<(), StatisticsError> {
        if self.intercept || !self.terms.is_empty() {
            return Ok(());
        }
        Err(StatisticsError::Parameter {
            name: "formula",
            value: "no intercept and no terms".to_owned(),
            fix: "keep the intercept or name a term".to_owned(),
        })
    }
}
