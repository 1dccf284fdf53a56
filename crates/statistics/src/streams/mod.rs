//! Streams: what is computed from noisy counts and groups, and plans for hierarchies. Post-processing only.
//!
//! * [`Bank`]: the default estimate, a bank of Bayesian filters on full-budget counts.
//! * [`GroupSmoother`], [`WindowSumSmoother`]: PeGaSus (Chen 2018, chapter 5), faithful.
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "numeric post-processing: counts are far below 2^53, indices below 2^31"
)]

mod bank;
mod smooth;

pub use bank::{Bank, Cells, Estimate, Kernel, Size};
pub use smooth::{
    BackwardSmoother, GroupSmoother, RunningMedian, Smoother, Towards, WindowSumSmoother,
    efron_morris,
};
