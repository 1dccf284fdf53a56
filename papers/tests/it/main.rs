//! The studies in short form, their controls, and the two implementations against each other.

mod agreement;
mod empirical_ml;
mod plots;
mod sparse_vector;
mod studies;
