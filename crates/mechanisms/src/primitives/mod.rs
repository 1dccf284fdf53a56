//! The paid primitives: each is a plain description with its event, and a method of
//! [`Desk`](crate::Desk) that charges the event and draws the noise.

mod bisection;
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
mod quantile;
mod range;
mod second_moments;
mod select;
mod sketch;
mod smooth;
mod split_tree;
mod threshold_tests;
mod votes;
mod worst_query;

pub use bisection::{Bisection, Draw};
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
pub use quantile::{Medians, Quantile};
pub use range::{Range, RangeScales};
pub use second_moments::{NoisyMoments, Payment, SecondMoments};
pub(crate) use select::Layers;
pub use select::{Picked, Rule, Selection};
pub use sketch::{NoisySketch, Sketch};
pub use smooth::{AUC_BITS, SmoothAuc};
pub use split_tree::{Node, SplitTree};
pub(crate) use threshold_tests::Machine;
pub use threshold_tests::{Change, Crossing, Sides, Test, ThresholdTests};
pub use votes::{Ask, Family, MOST_GROUPS, Question, Votes};
pub use worst_query::WorstQuery;

use reticent_accounting::{Both, Rational, Relation};

use crate::context::Context;

/// Losses of additive noise calibrated for the context's relation when an add/remove change touches one
/// unit of sensitivity and a replacement at most two.
#[allow(clippy::arithmetic_side_effects, reason = "division by 2")]
fn additive(epsilon: &Rational, context: &Context) -> Both {
    match context.relation {
        Relation::AddRemove => Both::doubled(epsilon),
        Relation::ReplaceOne => Both {
            add_remove: Some(epsilon / Rational::from(2u8)),
            replace_one: Some(epsilon.clone()),
        },
    }
}
