//! The studies in short form, their controls, and the two implementations against each other.

mod agreement;
mod sparse_vector;
mod studies;
