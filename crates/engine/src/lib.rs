//! Schema, formula, registration, scanning, plans, sessions and reports.

pub mod check;
pub mod dataset;
mod document;
pub mod formula;
pub mod kinds;
pub mod outcome;
pub mod plan;
pub mod suggest;
