//! Predictions of a released model as expressions over the row.

use reticent_mechanisms::program::{Expr, Function};

use crate::common::sum_of;

/// intercept + Σ coefficient·term.
pub fn linear_predictor(intercept: f64, terms: &[(f64, Expr)]) -> Expr {
    let mut parts = vec![Expr::Constant(intercept)];
    parts.extend(
        terms
            .iter()
            .map(|(b, term)| Expr::Constant(*b).mul(term.clone())),
    );
    sum_of(parts)
}

/// 1/(1 + e^−score).
pub fn probability(score: Expr) -> Expr {
    score.call(Function::Logistic)
}
