//! ROC curves as chapter 4.3 of Chen's thesis (2018) and section 3 of Chen, Machanavajjhala, Reiter and Barrientos (2016)
//! measure them, and what the release has to reach beyond that.
//!
//! The 2016 paper replaces a record; the thesis defines neighbours by adding or removing one and keeps the paper's proofs and budget, which
//! hold for replacing. So the papers' relation is replace-one here, and add/remove stands beside it.

pub mod accuracy;
pub mod bench;
pub mod coverage;
pub mod figures;
pub mod power;
mod texts;

/// The heads of a table.
fn head<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}
