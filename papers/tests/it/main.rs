//! The studies in short form, their controls, and the two implementations against each other.

mod agreement;
mod studies;
