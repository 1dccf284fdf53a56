//! Reproductions of the papers.
fn main() {}
