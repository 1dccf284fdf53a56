//! Streams: what is computed from noisy counts and groups, and plans for hierarchies. Post-processing only.
//!
//! * [`Bank`]: the default estimate, a bank of Bayesian filters on full-budget counts.
//! * [`Hierarchy`]: past-output pruning with a filter on every measured node; [`least_squares`].
//! * [`BlendedSum`], [`Monitor`]: windows and alarms.
//! * [`GroupSmoother`], [`WindowSumSmoother`]: PeGaSus (Chen 2018, chapter 5), faithful; [`GroupedHierarchy`] on trees.
//! * [`baselines`]: what they are compared with.
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "numeric post-processing: counts are far below 2^53, indices below 2^31"
)]

mod bank;
pub mod baselines;
mod hierarchy;
mod smooth;
mod windows;

pub use bank::{Bank, Cells, Estimate, Kernel, Size};
pub use hierarchy::{GroupedHierarchy, Hierarchy, Pruning, consistent, least_squares, pruned_plan};
pub use smooth::{
    BackwardSmoother, GroupSmoother, RunningMedian, Smoother, Towards, WindowSumSmoother,
    efron_morris,
};
pub use windows::{
    Alarm, BlendedSum, JumpProbability, Monitor, Score, Side, Watch, area, low_signal_score,
};
