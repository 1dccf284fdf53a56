//! Folds: the sums over records that mechanisms need, each with its sensitivity as a lemma.
//!
//! A fold's result is a vector of exact integers. Every record's contribution is clamped and rounded to a
//! public grid *before* it is added, so sensitivities are exact and a result does not depend on threads,
//! batches or row order.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::evaluate::Evaluated;
use crate::program::Interval;

/// A public grid of step 2^−bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixedPoint {
    /// Step exponent; may be negative.
    pub bits: i32,
}

/// Grid indices of one record stay within ±2^51.
const MAX_GRID: f64 = 2_251_799_813_685_248.0;
const MAX_INDEX: i64 = 1 << 51;

/// 1.5·2^52. For |x| ≤ 2^51 the sum x + MAGIC lies in [2^52, 2^53], where f64 are the whole numbers, so the
/// addition rounds x to the nearest integer (ties to even) and the bit patterns differ by exactly that integer.
const MAGIC: f64 = 6_755_399_441_055_744.0;

impl FixedPoint {
    /// The step, 2^−bits.
    pub fn step(self) -> f64 {
        libm::ldexp(1.0, self.bits.saturating_neg())
    }

    /// The finest grid on which the magnitude stays below 2^`precision`.
    pub fn for_magnitude(magnitude: f64, precision: i32) -> Self {
        let (_, exponent) = libm::frexp(magnitude);
        let exponent = if magnitude > 0.0 { exponent } else { 0 };
        Self {
            bits: precision.saturating_sub(exponent).clamp(-900, 900),
        }
    }

    /// The grid index nearest to `x`, in ±2^51; monotone in `x`; 0 for NaN.
    pub fn index(self, x: f64) -> i64 {
        nearest(x * libm::ldexp(1.0, self.bits))
    }

    /// The number a sum of grid indices stands for.
    #[allow(clippy::cast_precision_loss, reason = "for display of released values")]
    pub fn value(self, index: i128) -> f64 {
        libm::ldexp(index as f64, self.bits.saturating_neg())
    }
}

fn nearest(x: f64) -> i64 {
    nearest_within(x, -MAX_GRID, MAX_GRID)
}

/// The whole number nearest to `x` (0 for NaN), clamped between whole numbers −2^51 ≤ low ≤ high ≤ 2^51. Rounding is
/// monotone and leaves whole numbers alone, so clamping before it (which vectorises) is clamping after it.
fn nearest_within(x: f64, low: f64, high: f64) -> i64 {
    let x = if x.is_nan() { 0.0 } else { x };
    let x = if x > low { x } else { low };
    let x = if x < high { x } else { high };
    #[allow(
        clippy::cast_possible_wrap,
        reason = "bit patterns of positive numbers below 2^53"
    )]
    let index = ((x + MAGIC).to_bits() as i64).wrapping_sub(MAGIC.to_bits() as i64);
    index
}

/// How the values of a term are cut into cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Cut {
    /// Equal half-open cells; the last one is closed.
    Even {
        /// Left end of the first cell.
        lower: f64,
        /// Right end of the last cell.
        upper: f64,
        /// Number of cells.
        cells: u32,
    },
    /// Half-open cells between increasing edges, the last one closed; values outside go to the end cells.
    Edges(Vec<f64>),
    /// Cells (−∞, e₀], (e₀, e₁], …, (e_last, ∞): one more than edges. For counts of x ≤ edge.
    UpTo(Vec<f64>),
    /// As [`Cut::Even`], but every edge and every interior is a cell of its own: e₀, (e₀,e₁), e₁, …, e_M;
    /// 2·cells + 1 of them. For exact L = #{x ≤ edge} and R = #{x ≥ edge}.
    Atoms {
        /// First edge.
        lower: f64,
        /// Last edge.
        upper: f64,
        /// Number of interiors M.
        cells: u32,
    },
    /// The term is a whole number 0..cells (a label or level index).
    Whole(u32),
}

impl Cut {
    /// Number of cells.
    pub fn cells(&self) -> usize {
        match self {
            Self::Even { cells, .. } | Self::Whole(cells) => (*cells).max(1) as usize,
            Self::Edges(edges) => edges.len().saturating_sub(1).max(1),
            Self::UpTo(edges) => edges.len().saturating_add(1),
            Self::Atoms { cells, .. } => ((*cells).max(1) as usize)
                .saturating_mul(2)
                .saturating_add(1),
        }
    }

    /// The cell of a value: a total function, monotone in the value.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the cell range before the cast"
    )]
    pub fn cell(&self, x: f64) -> usize {
        let last = self.cells().saturating_sub(1);
        match self {
            Self::Even {
                lower,
                upper,
                cells,
            } => even_cell(x, *lower, upper - lower, *cells),
            Self::Edges(edges) => edges
                .partition_point(|e| *e <= x)
                .saturating_sub(1)
                .min(last),
            Self::UpTo(edges) => edges.partition_point(|e| *e < x).min(last),
            Self::Atoms {
                lower,
                upper,
                cells,
            } => {
                let width = upper - lower;
                if width <= 0.0 {
                    return 0;
                }
                let position = position(x, *lower, width, (*cells).max(1));
                let whole = (position as usize).min(last / 2);
                let inside = usize::from(position > position.floor());
                whole.saturating_mul(2).saturating_add(inside).min(last)
            }
            Self::Whole(_) => (x.max(0.0) as usize).min(last),
        }
    }
}

/// One axis of a grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Which term of the program.
    pub term: usize,
    /// Its cells.
    pub cut: Cut,
}

/// A sum carried beside the counts of a grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellSum {
    /// Which term is summed.
    pub term: usize,
    /// Grid to which every record's value is rounded.
    pub fixed: FixedPoint,
    /// Smallest and largest grid index a record may contribute, per cell of the *first* axis (the last
    /// entry also for all further cells); a group of cells is bounded by the hull of its cells' limits.
    /// Empty: the term's own bounds, in every cell.
    pub limits: Vec<(i64, i64)>,
}

/// How rows of a second-moment fold are shortened: by a factor that depends on the covariates alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shorten {
    /// Value of the intercept coordinate, g.
    pub intercept: f64,
    /// Q: rows with g² + ‖x‖² + ¼ > Q are multiplied by √(Q/(g²+‖x‖²+¼)). Infinite: never.
    pub squared_norm: f64,
}

/// A sum over records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Fold {
    /// Counts of the cells of a grid (row-major, last axis fastest), then, if asked, a sum per cell.
    Grid {
        /// The axes; none means one cell.
        axes: Vec<Axis>,
        /// A term to sum per cell.
        sum: Option<CellSum>,
    },
    /// Upper triangle (row-major, diagonal included) of Σ zzᵀ, z = f·(g, terms…), on the grid 2^−2·bits.
    Moments {
        /// The covariates, each in [−½, ½].
        terms: Range<usize>,
        /// The response, in [−½, ½], if there is one (last coordinate of z).
        response: Option<usize>,
        /// Row shortening.
        shorten: Shorten,
        /// Coordinates are rounded toward zero to multiples of 2^−bits, at most 24.
        bits: u32,
    },
    /// Counts of items, a record having up to `most` of many; see [`crate::items`].
    Items {
        /// One term per item: the record has it where the term is above ½.
        items: Range<usize>,
        /// How many items of a record count: the first ones in the order of the terms.
        most: u32,
        /// Counts by the cells of this axis (a label); none means one cell.
        class: Option<Axis>,
    },
    /// As [`Fold::Items`], for many items of which a record has few: each slot holds the number of an item.
    Slots {
        /// The terms that hold item numbers, one item each; a record counts once for every item it names.
        slots: Range<usize>,
        /// Number of items m; a slot outside 0..m is empty.
        items: u32,
        /// How many items of a record count: the first ones in the order of the slots.
        most: u32,
        /// Counts by the cells of this axis (a label); none means one cell.
        class: Option<Axis>,
    },
}

/// The shape of [`Fold::Items`] and [`Fold::Slots`].
pub(crate) struct ItemShape {
    pub(crate) items: usize,
    pub(crate) classes: usize,
    /// Items of one record that can count.
    pub(crate) most: u32,
}

/// The integers of a fold. No `Debug`: they are confidential.
#[derive(Clone, PartialEq)]
pub struct State(pub(crate) Vec<i128>);

impl State {
    /// Adds another partial result of the same fold.
    pub fn merge(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0
            .iter_mut()
            .zip(&other.0)
            .for_each(|(a, b)| *a = a.saturating_add(*b));
    }
}

impl Fold {
    /// Length of the state.
    pub fn len(&self) -> usize {
        match self {
            Self::Grid { axes, sum } => {
                let cells = cells(axes);
                if sum.is_some() {
                    cells.saturating_mul(2)
                } else {
                    cells
                }
            }
            Self::Moments {
                terms, response, ..
            } => {
                let p = terms
                    .len()
                    .saturating_add(1)
                    .saturating_add(usize::from(response.is_some()));
                p.saturating_mul(p.saturating_add(1)) / 2
            }
            Self::Items { .. } | Self::Slots { .. } => self.items().map_or(0, |shape| {
                shape.items.saturating_add(1).saturating_mul(shape.classes)
            }),
        }
    }

    /// What a fold of items counts.
    pub(crate) fn items(&self) -> Option<ItemShape> {
        let (items, class, most) = match self {
            Self::Items { items, most, class } => (items.len(), class, *most),
            Self::Slots {
                items, most, class, ..
            } => (*items as usize, class, *most),
            _ => return None,
        };
        Some(ItemShape {
            items,
            classes: class.as_ref().map_or(1, |a| a.cut.cells()),
            most,
        })
    }

    /// Whether the state has no entries (it never has none).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn zero(&self) -> State {
        State(vec![0; self.len()])
    }

    /// Adds the records of a batch. `bounds` are the program's term bounds.
    pub(crate) fn add(&self, state: &mut State, rows: &Evaluated, bounds: &[Interval]) {
        match self {
            Self::Grid { axes, sum } => add_grid(axes, sum.as_ref(), state, rows, bounds),
            Self::Moments {
                terms,
                response,
                shorten,
                bits,
            } => crate::moments::add(terms.clone(), *response, *shorten, *bits, state, rows),
            Self::Items { items, most, class } => {
                crate::items::add(items.clone(), *most, class.as_ref(), state, rows);
            }
            Self::Slots {
                slots,
                items,
                most,
                class,
            } => {
                crate::items::add_slots(
                    slots.clone(),
                    (*items, *most),
                    class.as_ref(),
                    state,
                    rows,
                );
            }
        }
    }
}

/// Number of cells of a grid.
pub(crate) fn cells(axes: &[Axis]) -> usize {
    axes.iter()
        .map(|a| a.cut.cells())
        .fold(1, usize::saturating_mul)
}

fn add_grid(
    axes: &[Axis],
    sum: Option<&CellSum>,
    state: &mut State,
    rows: &Evaluated,
    bounds: &[Interval],
) {
    let total = cells(axes);
    let mut index = Vec::new();
    if axes.is_empty() {
        if let Some(s) = state.0.first_mut() {
            *s = s.saturating_add(i128::try_from(rows.rows).unwrap_or(i128::MAX));
        }
    } else {
        index = cell_indices(axes, rows);
        // Many cells and few rows: straight into the state.
        if total > rows.rows {
            for i in &index {
                if let Some(s) = state.0.get_mut(*i) {
                    *s = s.saturating_add(1);
                }
            }
        } else {
            let mut counts = vec![0u64; total];
            for i in &index {
                if let Some(c) = counts.get_mut(*i) {
                    // At most one per row in memory.
                    *c = c.wrapping_add(1);
                }
            }
            state
                .0
                .iter_mut()
                .zip(&counts)
                .for_each(|(s, c)| *s = s.saturating_add(i128::from(*c)));
        }
    }
    let Some(sum) = sum else { return };
    let Some(values) = rows.terms.get(sum.term) else {
        return;
    };
    let limits = limits(sum, bounds);
    let scale = libm::ldexp(1.0, sum.fixed.bits);
    if let ([], Some((low, high))) = (axes, limits.first()) {
        #[allow(clippy::cast_precision_loss, reason = "limits are within ±2^51")]
        let (low, high) = (*low as f64, (*high).max(*low) as f64);
        // Blocks of 1024 indices of at most 2^51 in absolute value add up to at most 2^61.
        let exact = values.chunks(1024).fold(0i128, |total, block| {
            let part = block.iter().fold(0i64, |s, x| {
                s.wrapping_add(nearest_within(x * scale, low, high))
            });
            total.saturating_add(i128::from(part))
        });
        if let Some(s) = state.0.get_mut(1) {
            *s = s.saturating_add(exact);
        }
        return;
    }
    let inner = total
        .checked_div(axes.first().map_or(1, |a| a.cut.cells()))
        .unwrap_or(1)
        .max(1);
    for (i, x) in index.iter().zip(values) {
        let (low, high) = limits
            .get(i.checked_div(inner).unwrap_or(0))
            .or(limits.last())
            .copied()
            .unwrap_or((0, 0));
        let v = nearest(x * scale).clamp(low, high.max(low));
        if let Some(s) = state.0.get_mut(total.saturating_add(*i)) {
            *s = s.saturating_add(i128::from(v));
        }
    }
}

fn cell_indices(axes: &[Axis], rows: &Evaluated) -> Vec<usize> {
    let mut index = vec![0usize; rows.rows];
    for axis in axes {
        let Some(values) = rows.terms.get(axis.term) else {
            continue;
        };
        // The kind of cut is told apart once, not for every row.
        match axis.cut {
            Cut::Even {
                lower,
                upper,
                cells,
            } => place(&mut index, values, &axis.cut, |x| {
                even_cell(x, lower, upper - lower, cells)
            }),
            _ => place(&mut index, values, &axis.cut, |x| axis.cut.cell(x)),
        }
    }
    index
}

fn place(index: &mut [usize], values: &[f64], cut: &Cut, cell: impl Fn(f64) -> usize) {
    let width = cut.cells();
    for (i, x) in index.iter_mut().zip(values) {
        *i = i.saturating_mul(width).saturating_add(cell(*x));
    }
}

/// The cell of a value among equal cells; `width` is that of all of them together.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; `as` saturates above every cell"
)]
fn even_cell(x: f64, lower: f64, width: f64, cells: u32) -> usize {
    if width > 0.0 {
        (position(x, lower, width, cells) as u32).min(cells.saturating_sub(1)) as usize
    } else {
        0
    }
}

/// How many cells lie below a value, at least 0; monotone in the value. Multiplied before it is divided: with whole numbers
/// below 2^26 both products are exact, and the rounded quotient reaches k only where the true one does, so a value on an
/// edge lies in the cell above it.
fn position(x: f64, lower: f64, width: f64, cells: u32) -> f64 {
    let cells = f64::from(cells);
    let fits = (width * cells).is_finite();
    let (times, over) = if fits {
        (cells, width)
    } else {
        (1.0, width / cells)
    };
    ((x - lower) * times / over).max(0.0)
}

/// The limits of a cell sum: as given, put in order and within ±2^51, or the term's own bounds.
pub(crate) fn limits(sum: &CellSum, bounds: &[Interval]) -> Vec<(i64, i64)> {
    if sum.limits.is_empty() {
        let b = bounds.get(sum.term).copied().unwrap_or(Interval {
            lower: 0.0,
            upper: 0.0,
        });
        vec![(sum.fixed.index(b.lower), sum.fixed.index(b.upper))]
    } else {
        // Within ±2^51 like every index, so that blocks of records add up without overflow.
        sum.limits
            .iter()
            .map(|(low, high)| {
                let low = (*low).clamp(-MAX_INDEX, MAX_INDEX);
                (low, (*high).clamp(low, MAX_INDEX))
            })
            .collect()
    }
}

#[cfg(test)]
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "small test data"
)]
mod tests {
    use reticent_laws::Seeded;
    use reticent_noise::Noise;

    use super::*;

    fn rows(terms: Vec<Vec<f64>>) -> Evaluated {
        Evaluated {
            rows: terms[0].len(),
            terms,
        }
    }

    fn unit(random: &mut Seeded) -> f64 {
        (random.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    const WILD: [f64; 9] = [
        f64::NEG_INFINITY,
        -1e308,
        -1.0,
        -0.0,
        0.0,
        0.5,
        1.0,
        1e308,
        f64::INFINITY,
    ];

    fn cuts() -> Vec<Cut> {
        let (lower, upper) = (-1.0, 2.0);
        vec![
            Cut::Even {
                lower,
                upper,
                cells: 7,
            },
            Cut::Even {
                lower: 1.0,
                upper: 1.0,
                cells: 3,
            },
            Cut::Edges(vec![-1.0, 0.0, 0.5, 2.0]),
            Cut::Edges(Vec::new()),
            Cut::UpTo(vec![0.0, 1.0]),
            Cut::Atoms {
                lower,
                upper,
                cells: 6,
            },
            Cut::Whole(3),
            Cut::Whole(0),
        ]
    }

    /// Edges are whole numbers: each lies in the cell above it, and is an atom of its own.
    #[test]
    fn values_on_edges_lie_above_them() {
        for (cells, step) in [
            (10_u32, 1_i32),
            (3, 7),
            (49, 3),
            (1000, 1),
            (77, 13),
            (4096, 11),
        ] {
            for first in [-1000_i32, 0, 3] {
                let lower = f64::from(first);
                let upper = f64::from(first + step * i32::try_from(cells).unwrap());
                let even = Cut::Even {
                    lower,
                    upper,
                    cells,
                };
                let atoms = Cut::Atoms {
                    lower,
                    upper,
                    cells,
                };
                for k in 0..cells as usize {
                    let edge = f64::from(first + step * i32::try_from(k).unwrap());
                    assert_eq!(even.cell(edge), k);
                    assert_eq!(atoms.cell(edge), 2 * k);
                    assert_eq!(atoms.cell(edge + 0.5), 2 * k + 1);
                    assert_eq!(even.cell(edge + f64::from(step) - 0.5), k);
                }
                assert_eq!(atoms.cell(upper), 2 * cells as usize);
            }
        }
    }

    #[test]
    fn cells_are_total_and_monotone() {
        for cut in cuts() {
            let cells: Vec<usize> = WILD.iter().map(|x| cut.cell(*x)).collect();
            assert!(cells.iter().all(|c| *c < cut.cells()), "{cut:?} {cells:?}");
            assert!(cells.is_sorted(), "{cut:?} {cells:?}");
            assert!(cut.cell(f64::NAN) < cut.cells());
        }
    }

    #[test]
    fn atoms_are_cut_on_edges() {
        let cut = Cut::Atoms {
            lower: 0.0,
            upper: 16.0,
            cells: 4,
        };
        for k in 0..=4_u32 {
            assert_eq!(cut.cell(f64::from(4 * k)), 2 * k as usize);
        }
        for k in 0..4_u32 {
            for x in [1e-9, 2.0, 3.999_999] {
                assert_eq!(cut.cell(f64::from(4 * k) + x), 2 * k as usize + 1);
            }
        }
        assert_eq!((cut.cell(-3.0), cut.cell(17.0)), (0, 8));
        assert_eq!(Cut::Edges(vec![0.0, 1.0, 2.0]).cell(1.0), 1);
        assert_eq!(Cut::Edges(vec![0.0, 1.0, 2.0]).cell(2.0), 1);
        assert_eq!(Cut::UpTo(vec![0.0, 1.0, 2.0]).cell(1.0), 1);
        assert_eq!(Cut::UpTo(vec![0.0, 1.0, 2.0]).cell(2.5), 3);
    }

    #[test]
    fn indices_round_to_even_and_stay_within_limits() {
        let mut random = Seeded::new(1);
        let exact = |x: f64| x.clamp(-MAX_GRID, MAX_GRID).round_ties_even() as i64;
        for x in [
            0.5,
            1.5,
            -0.5,
            -2.5,
            MAX_GRID,
            -MAX_GRID,
            MAX_GRID - 0.5,
            1e308,
            f64::INFINITY,
        ] {
            assert_eq!(nearest(x), exact(x), "{x}");
        }
        assert_eq!(nearest(f64::NAN), 0);
        for _ in 0..10_000 {
            let x = (unit(&mut random) - 0.5) * libm::exp2(52.0 * unit(&mut random));
            assert_eq!(nearest(x), exact(x), "{x}");
        }
    }

    /// Every record in exactly one cell, every clamped and rounded value in that cell's sum: against plain loops.
    #[test]
    fn grids_agree_with_plain_loops() {
        let mut random = Seeded::new(2);
        let bounds = [Interval {
            lower: -3.0,
            upper: 3.0,
        }; 3];
        for step in 0..200 {
            let n = 1 + step % 50;
            let mut term = || -> Vec<f64> {
                (0..n)
                    .map(|_| (8.0 * unit(&mut random)).floor() / 2.0 - 1.5)
                    .collect()
            };
            let data = rows(vec![term(), term(), term()]);
            let all = cuts();
            let axes: Vec<Axis> = (0..step % 3)
                .map(|a| Axis {
                    term: a,
                    cut: all[(step + a) % all.len()].clone(),
                })
                .collect();
            let limits = match step % 4 {
                0 => Vec::new(),
                1 => vec![(-2, 3)],
                _ => vec![(0, 1), (-5, -1), (4, 2)],
            };
            let sum = CellSum {
                term: 2,
                fixed: FixedPoint { bits: 1 },
                limits: limits.clone(),
            };
            let fold = Fold::Grid {
                axes: axes.clone(),
                sum: Some(sum),
            };
            let mut state = fold.zero();
            fold.add(&mut state, &data, &bounds);
            let total = cells(&axes);
            let inner: usize = axes.iter().skip(1).map(|a| a.cut.cells()).product();
            let mut plain = vec![0i128; 2 * total];
            for i in 0..n {
                let mut cell = 0;
                for axis in &axes {
                    cell = cell * axis.cut.cells() + axis.cut.cell(data.terms[axis.term][i]);
                }
                plain[cell] += 1;
                let (low, high) = if limits.is_empty() {
                    (-6, 6)
                } else {
                    let (l, h) = limits[(cell / inner).min(limits.len() - 1)];
                    (l, h.max(l))
                };
                let v = (data.terms[2][i] * 2.0).round_ties_even() as i64;
                plain[total + cell] += i128::from(v.clamp(low, high));
            }
            assert!(state.0 == plain, "step {step}");
        }
    }

    #[test]
    fn merging_does_not_depend_on_order() {
        let fold = Fold::Grid {
            axes: vec![Axis {
                term: 0,
                cut: Cut::Whole(3),
            }],
            sum: None,
        };
        let part = |values: &[f64]| {
            let mut state = fold.zero();
            fold.add(&mut state, &rows(vec![values.to_vec()]), &[]);
            state
        };
        let parts = [part(&[0.0, 1.0]), part(&[2.0, 2.0, 1.0]), part(&[])];
        let whole = part(&[2.0, 0.0, 1.0, 1.0, 2.0]);
        for order in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ] {
            let mut state = fold.zero();
            order.iter().for_each(|i| state.merge(&parts[*i]));
            assert!(state == whole);
        }
    }

    /// Limits beyond the range of indices cannot make a sum of records wrap around.
    #[test]
    fn extreme_limits_do_not_wrap() {
        for (limits, each) in [
            ((i64::MAX, i64::MAX), MAX_INDEX),
            ((i64::MIN, i64::MIN), -MAX_INDEX),
            ((i64::MIN, i64::MAX), 1),
            ((5, 3), 5),
        ] {
            for axes in [
                Vec::new(),
                vec![Axis {
                    term: 0,
                    cut: Cut::Whole(1),
                }],
            ] {
                let sum = CellSum {
                    term: 0,
                    fixed: FixedPoint { bits: 0 },
                    limits: vec![limits],
                };
                let fold = Fold::Grid {
                    axes,
                    sum: Some(sum),
                };
                let mut state = fold.zero();
                fold.add(&mut state, &rows(vec![vec![1.0; 3000]]), &[]);
                assert!(state.0 == [3000, 3000 * i128::from(each)]);
            }
        }
    }
}
