//! Models and diagnostics built on paid primitives; this crate never sees a row.
//!
//! Every kind of release has a constructor that takes the public [`Facts`] and gives a [`Prepared`]: the
//! terms of a row program and a [`Mechanism`](reticent_mechanisms::Mechanism). What the mechanism learns it
//! buys at the desk; everything after that is post-processing of what was bought. A mistake here can give a
//! useless answer, not an unpaid one.
//!
//! * [`simple`]: counts, sums, means, histograms, cross tables, quantiles, bounds.
//! * [`histogram`]: ten algorithms for counts of many cells and range queries.
//! * [`covariance`]: second moments, and any regression from them at no cost; [`threshold`]: classes from a released ROC.
//! * [`logistic`], [`linear`]: the two models. [`model`]: their predictions as expressions.
//! * [`naive_bayes`], [`features`]: classification from noisy counts, and which features are worth it.
//! * [`auc`]: the area alone. [`roc`], [`residuals`], [`binned`]: the three diagnostics.
//! * [`cross_validation`]: the figures of several folds as one, at no cost.
//! * [`verify`]: a private yes or no about one coefficient.
//! * [`counters`], [`running`]: strategies for running totals and the totals of their noisy answers; running totals as releases.
//! * [`accuracy`]: error from ε and ε from error.
//! * [`bisect`]: several quantiles, or recursive medians, at one ε.
//! * [`range`]: below which candidate a share of the records lies.
//! * [`selection`], [`sparse_vector`]: the most frequent of many candidates; threshold tests.
//! * [`streams`]: filters, smoothers, windows, alarms and hierarchies over private event streams.
//! * [`planning`]: what accuracy to expect, from public numbers only.

pub mod accuracy;
pub mod auc;
pub mod binned;
pub mod bisect;
mod common;
pub mod counters;
pub mod covariance;
pub mod cross_validation;
mod curve;
pub mod derived;
mod design;
mod ends;
pub mod features;
pub mod histogram;
pub mod linear;
pub mod logistic;
pub mod model;
pub mod naive_bayes;
pub mod planning;
pub mod range;
pub mod residuals;
pub mod roc;
pub mod running;
mod scale;
pub mod selection;
pub mod simple;
pub mod sparse_vector;
pub mod streams;
mod student;
pub mod threshold;
pub mod verify;
pub mod zcdp;

pub use common::{Facts, Prepared, StatisticsError};
pub use design::DesignSpec;
pub use scale::Score;
