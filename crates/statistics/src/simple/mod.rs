//! Counts, sums, means, histograms, cross tables, quantiles and bounds.

mod bisect;
mod order;
mod tables;
mod totals;

pub use bisect::{Bisect, bisected_quantiles};
pub use order::{BoundsConfig, Search, Sides, bounds, bounds_by, printed_share, quantiles};
pub(crate) use tables::cut;
pub use tables::{AxisCut, AxisSpec, MAX_CELLS, crosstab, histogram};
pub(crate) use totals::flags;
pub use totals::{count, mean, sum};
