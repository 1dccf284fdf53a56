//! Schema, formula, registration, scanning, plans, sessions and reports.

pub mod register;
pub mod scan;
