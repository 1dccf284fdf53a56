//! Studies on public data: how accurate the shipped releases are, and how often their intervals hold.
//!
//! A study runs the shipped mechanisms through [`simulate`](reticent_mechanisms::simulate) with seeded noise and compares
//! what they release with the truth. The truth is computed here, from the decoded cells, by code that shares
//! nothing with the mechanisms ([`truth`]). Metrics that need the true plot exist only in this crate, because
//! no user of confidential data could ever see them.
//!
//! * [`study`]: what a study is, the list of them, what it reports.
//! * [`public`]: the example data in memory, their parts, resampling.
//! * [`truth`]: exact curves, fits and histograms.
//! * [`panels`]: small scatter plots side by side.
//! * [`synthetic`]: invented records.
//! * [`studies`]: one file per study.

pub mod panels;
mod pcg;
pub mod public;
pub mod studies;
pub mod study;
pub mod synthetic;
pub mod truth;

/// Nearest f64 of a size.
#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
pub(crate) fn real(n: usize) -> f64 {
    n as f64
}
