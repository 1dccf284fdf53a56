//! Schema, formula, registration, scanning, plans, sessions and reports.

pub mod accuracy;
mod bayes;
pub mod books;
pub mod budget;
pub mod check;
mod columns;
pub mod dataset;
mod document;
mod examine;
mod failure;
pub mod formula;
pub mod init;
pub mod kinds;
pub mod methods;
pub mod mock;
pub mod model;
pub mod outcome;
pub mod parameter;
pub mod plan;
pub mod predict;
pub mod register;
pub mod release;
pub mod report;
mod request;
pub mod resolve;
pub mod scan;
pub mod schema_json;
pub mod session;
pub mod smartnoise;
pub mod stream;
pub mod suggest;
pub mod text;
pub mod tokens;

pub use failure::{Error, Failure};
pub use reticent_accounting as accounting;
pub use reticent_ledger as ledger;
