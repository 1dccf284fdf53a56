//! Views of a fold's counts: by the first axis of a grid, by items, or along a public line of cells.

use std::ops::Range;

use crate::desk::{DeskError, misuse};
use crate::fold::{CellSum, Cut, Fold, State, cells};

/// The shape of a grid.
pub(super) struct Grid<'a> {
    pub(super) first: usize,
    pub(super) inner: usize,
    pub(super) cells: usize,
    pub(super) sum: Option<&'a CellSum>,
}

pub(super) fn grid(fold: &Fold) -> Result<Grid<'_>, DeskError> {
    match fold {
        Fold::Grid { axes, sum } => {
            let first = axes.first().map_or(1, |a| a.cut.cells());
            let cells = cells(axes);
            Ok(Grid {
                first,
                inner: cells.checked_div(first).unwrap_or(0),
                cells,
                sum: sum.as_ref(),
            })
        }
        _ => Err(misuse("this step needs a grid")),
    }
}

/// The cut of a grid of one axis.
pub(super) fn line(fold: &Fold) -> Option<&Cut> {
    match fold {
        Fold::Grid { axes, .. } => match axes.as_slice() {
            [axis] => Some(&axis.cut),
            _ => None,
        },
        _ => None,
    }
}

/// 0, x₀, x₀ + x₁, …
pub(super) fn prefix_sums(cells: impl Iterator<Item = i128>) -> Vec<i128> {
    let mut sums = vec![0i128];
    let mut sum = 0i128;
    sums.extend(cells.map(|c| {
        sum = sum.saturating_add(c);
        sum
    }));
    sums
}

/// The counts of a grid in a public order; refuses an order that does not name every cell exactly once, because
/// then a record would be in several places.
pub(super) fn arranged(
    fold: &Fold,
    state: &State,
    order: Option<&[usize]>,
) -> Result<Vec<i128>, DeskError> {
    let counts = state.0.get(..grid(fold)?.cells).unwrap_or_default();
    let Some(order) = order else {
        return Ok(counts.to_vec());
    };
    let mut seen = vec![false; counts.len()];
    let placed = order
        .iter()
        .map(|cell| {
            let free = seen.get_mut(*cell).filter(|s| !**s)?;
            *free = true;
            counts.get(*cell).copied()
        })
        .collect::<Option<Vec<i128>>>()
        .filter(|p| p.len() == counts.len());
    placed.ok_or_else(|| misuse("an order of cells must name every cell exactly once"))
}

/// Prefix sums over the first axis of a grid (others pooled), or the items of a [`Fold::Items`].
pub(crate) struct Layers {
    pub(super) prefix: Vec<i128>,
    pub(super) single: bool,
}

impl Layers {
    pub(crate) fn of(fold: &Fold, state: &State) -> Result<Self, DeskError> {
        let (first, inner, single) = if let Some(shape) = fold.items() {
            (shape.items, shape.classes, true)
        } else {
            let shape = grid(fold)?;
            (shape.first, shape.inner, false)
        };
        let layers = state.0.chunks(inner.max(1)).take(first);
        let sums = layers.map(|cells| cells.iter().fold(0i128, |s, c| s.saturating_add(*c)));
        Ok(Self {
            prefix: prefix_sums(sums),
            single,
        })
    }

    /// Number of cells or items.
    pub(crate) fn len(&self) -> usize {
        self.prefix.len().saturating_sub(1)
    }

    /// Whether these are items, of which a record can have several.
    pub(crate) fn single(&self) -> bool {
        self.single
    }

    /// The count of all cells before `cell`.
    pub(super) fn before(&self, cell: usize) -> i128 {
        let last = self.prefix.last();
        self.prefix.get(cell).or(last).copied().unwrap_or(0)
    }

    /// The count of a range, which must lie within the axis and, among items, hold at most one.
    pub(crate) fn count(&self, range: &Range<usize>) -> Result<i128, DeskError> {
        let ends = (self.prefix.get(range.start), self.prefix.get(range.end));
        match ends {
            (Some(from), Some(to))
                if range.start <= range.end && (!self.single || range.len() <= 1) =>
            {
                Ok(to.saturating_sub(*from))
            }
            _ => Err(misuse(format!(
                "{}..{} is not a range of the {} {}",
                range.start,
                range.end,
                self.len(),
                if self.single {
                    "items, one at a time"
                } else {
                    "cells"
                }
            ))),
        }
    }
}
