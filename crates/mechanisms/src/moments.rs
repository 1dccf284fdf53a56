//! Second moments on an integer grid.

use std::ops::Range;

use crate::evaluate::Evaluated;
use crate::fold::{Shorten, State};

/// Adds the records of a batch to the upper triangle of Σ zzᵀ.
pub(crate) fn add(
    _terms: Range<usize>,
    _response: Option<usize>,
    _shorten: Shorten,
    _bits: u32,
    _state: &mut State,
    _rows: &Evaluated,
) {
}
