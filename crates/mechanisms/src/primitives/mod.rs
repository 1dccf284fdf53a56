//! The paid primitives: each is a plain description with its event, and a method of
//! [`Desk`](crate::Desk) that charges the event and draws the noise.

mod counts;
mod norm_moments;
mod objective;
mod output;
mod quantile;
mod range;
mod second_moments;
mod sparse_vector;

pub use counts::{Counts, Sums};
pub use norm_moments::NormMoments;
pub use objective::{Calibration, Objective, ObjectiveFit};
pub use output::OutputPerturbation;
pub use quantile::{Medians, Quantile};
pub use range::Range;
pub use second_moments::{NoisyMoments, Payment, SecondMoments};
pub use sparse_vector::{Crossing, Signs, SparseVector};

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
