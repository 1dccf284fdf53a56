//! Schema, formula, registration, scanning, plans, sessions and reports.

pub mod report;
