//! Models and diagnostics built on paid primitives; this crate never sees a row.
//!
//! Every kind of release has a constructor that takes the public [`Facts`] and gives a [`Prepared`]: the
//! terms of a row program and a [`Mechanism`](reticent_mechanisms::Mechanism). What the mechanism learns it
//! buys at the desk; everything after that is post-processing of what was bought. A mistake here can give a
//! useless answer, not an unpaid one.
//!
//! * [`simple`]: counts, sums, means, histograms, cross tables, quantiles, bounds.
//! * [`logistic`], [`linear`]: the two models. [`model`]: their predictions as expressions.
//! * [`roc`], [`residuals`], [`binned`]: the three diagnostics.
//! * [`streams`]: filters, smoothers, windows, alarms and hierarchies over private event streams.
//! * [`planning`]: what accuracy to expect, from public numbers only.

pub mod binned;
mod common;
mod curve;
mod design;
mod ends;
pub mod linear;
pub mod logistic;
pub mod model;
pub mod planning;
pub mod residuals;
pub mod roc;
mod scale;
pub mod simple;
pub mod streams;
mod student;

pub use common::{Facts, Prepared, StatisticsError};
pub use design::DesignSpec;
pub use scale::Score;
