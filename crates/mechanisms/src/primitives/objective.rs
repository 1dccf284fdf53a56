//! Objective perturbation for logistic regression, with a certified minimiser.

use std::ops::Range as Span;

use reticent_accounting::{Both, Event, Rational, Relation};

use crate::context::Context;
use crate::desk::{Desk, DeskError};

/// Logistic regression by objective perturbation, sum form.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the step for the context's relation.
    pub epsilon: Rational,
    /// The covariates among the program's terms.
    pub covariates: Span<usize>,
    /// The outcome term, 0 or 1.
    pub outcome: usize,
    /// Value of the intercept coordinate, if there is one; it counts in the norm and is penalised.
    pub intercept: Option<f64>,
    /// Rows of covariates longer than this are shortened to it.
    pub radius: f64,
    /// Λ, the penalty of the sum form: (Λ/2)·‖w‖².
    pub penalty: Rational,
}

/// What the step releases.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectiveFit {
    /// Coefficients of the scaled design: intercept coordinate first if there is one.
    pub coefficients: Vec<f64>,
}

impl Objective {
    /// The price of the step.
    #[allow(clippy::arithmetic_side_effects, reason = "rational arithmetic")]
    pub fn event(&self, context: &Context) -> Event {
        let loss = match context.relation {
            Relation::AddRemove => Both::doubled(&self.epsilon),
            Relation::ReplaceOne => Both::same(&self.epsilon),
        };
        Event::Pure {
            mechanism: format!("{}: objective perturbation", self.name),
            loss,
        }
    }
}

impl Desk<'_> {
    /// Buys a logistic fit; needs one pass (the rows are held in memory).
    pub fn objective(&mut self, step: &Objective) -> Result<ObjectiveFit, DeskError> {
        self.charge(&step.event(self.context))?;
        let _ = self.hold()?;
        Err(DeskError::Misuse("not yet".to_owned()))
    }
}
