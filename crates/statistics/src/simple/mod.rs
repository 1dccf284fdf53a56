//! Counts, sums, means, histograms, cross tables, quantiles and bounds.

mod order;
mod tables;
mod totals;

pub use order::{bounds, quantiles};
pub(crate) use tables::cut;
pub use tables::{AxisCut, AxisSpec, MAX_CELLS, crosstab, histogram};
pub(crate) use totals::flags;
pub use totals::{count, mean, sum};
