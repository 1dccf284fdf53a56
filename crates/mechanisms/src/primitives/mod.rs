//! The paid primitives: each is a plain description with its event, and a method of
//! [`Desk`](crate::Desk) that charges the event and draws the noise.

mod bisection;
mod cells;
mod counts;
mod item_counts;
mod joint;
mod least_squares;
mod linear;
mod merged_bins;
mod norm_moments;
mod objective;
mod output;
mod partition;
mod payment;
mod quantile;
mod second_moments;
mod select;
mod sketch;
mod smooth;
mod split_tree;
mod threshold_tests;
mod votes;
mod worst_query;

pub use bisection::{Bisection, Draw, Words};
pub(crate) use cells::Layers;
pub use counts::{Counts, Sums};
pub use item_counts::{ItemCounts, NoisyItems};
pub use joint::JointSelection;
pub use least_squares::LeastSquares;
pub use linear::{Linear, Measured, Order, Row, Strategy, Weights};
pub use merged_bins::MergedBins;
pub use norm_moments::NormMoments;
pub use objective::{Calibration, Objective, ObjectiveFit};
pub use output::OutputPerturbation;
pub use partition::Partition;
pub use payment::Payment;
pub use quantile::Quantile;
pub use second_moments::{NoisyMoments, SecondMoments};
pub use select::{Picked, Rule, Selection};
pub use sketch::{NoisySketch, Sketch};
pub use smooth::{AUC_BITS, SmoothAuc};
pub use split_tree::{Node, SplitTree};
pub(crate) use threshold_tests::Machine;
pub use threshold_tests::{Change, Crossing, Custom, Sides, Test, ThresholdTests};
pub use votes::{Ask, Family, MOST_GROUPS, Question, Votes};
pub use worst_query::WorstQuery;
