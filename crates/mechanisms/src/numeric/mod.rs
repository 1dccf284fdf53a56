//! Numerical kernels shared by the folds and primitives that pass over real-valued rows.

pub(crate) mod certificate;
pub(crate) mod rows;
pub(crate) mod sigmoid;

use dashu::rational::RBig;
use nalgebra::{DMatrix, DMatrixView, Dyn};
use reticent_accounting::Rational;

/// Largest number of coordinates of a row: the rounding margins below are proved up to it.
pub(crate) const MAX_DIMENSION: usize = 4096;

/// Relative margin by which rows are shortened before they are rounded.
///
/// # Claim
/// Let v have at most [`MAX_DIMENSION`] + 1 coordinates, s = fl(Σ v_i²), and f = 1 if s ≤ fl(B·MARGIN) and
/// f = fl(fl(√fl(B/s))·MARGIN) else. Then every z with |z_i| ≤ |fl(f·v_i)| has ‖z‖² ≤ B.
/// # Arithmetic
/// With u = 2^−53 a sum of m non-negative squares has relative error below (m + 1)·u < 2^−40 (m ≤ 4098) plus
/// m·2^−1074 for underflow, which is below 2^−53·B for B ≥ 2^−900. Quotient, root and products add at
/// most 5u. So f ≤ √(B/‖v‖²)·(1 + 2^−41 + 5u)·MARGIN, and (1 + 2^−40)(1 − 2^−38) < 1.
/// An overflow of s to infinity gives f = 0.
/// # Checked by
/// `moments::tests::rows_never_exceed_the_norm`, `numeric::rows::tests::rows_never_exceed_the_radius`
pub(crate) const MARGIN: f64 = 1.0 - 1.0 / 274_877_906_944.0;

/// The shortening factor of [`MARGIN`]'s lemma; `bound` is B, `squares` is s.
pub(crate) fn shorten(bound: f64, squares: f64) -> f64 {
    if squares <= bound * MARGIN {
        1.0
    } else {
        libm::sqrt(bound / squares) * MARGIN
    }
}

/// `v` without its fraction, for |v| ≤ 2^51; NaN gives NaN. Written so that it vectorises everywhere.
pub(crate) fn whole(v: f64) -> f64 {
    const SHIFT: f64 = 4_503_599_627_370_496.0;
    let a = v.abs();
    let near = (a + SHIFT) - SHIFT;
    let down = if near > a { near - 1.0 } else { near };
    down.copysign(v)
}

/// The whole number nearest to `v` (ties to even), for |v| ≤ 2^51; NaN gives NaN. See [`crate::fold`] for 1.5·2^52.
pub(crate) fn nearest(v: f64) -> f64 {
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    (v + SHIFT) - SHIFT
}

/// The exact value of a double; `None` when it is not finite.
pub(crate) fn exact(x: f64) -> Option<Rational> {
    RBig::try_from(x).ok()
}

/// Largest side for which plain loops are used.
const SMALL: usize = 5;

/// `total` ← AᵀA (+ `total`, if `add`) for the column-major `rows` × p matrix A at the head of `a`.
///
/// With integer entries whose products sum to at most 2^53 in absolute value the result is exact,
/// whatever the order of summation.
pub(crate) fn gram(a: &[f64], rows: usize, total: &mut DMatrix<f64>, add: bool) {
    let p = total.ncols();
    let Some(a) = a.get(..rows.saturating_mul(p)).filter(|a| !a.is_empty()) else {
        return;
    };
    if p <= SMALL || rows <= SMALL {
        // Small products are faster in plain loops (and nalgebra's own small path does not serve strided views).
        for (i, x) in a.chunks_exact(rows).enumerate() {
            for (j, y) in a.chunks_exact(rows).enumerate().skip(i) {
                let sum: f64 = x.iter().zip(y).map(|(x, y)| x * y).sum();
                let before = total.get((i, j)).copied().filter(|_| add).unwrap_or(0.0);
                for at in [(i, j), (j, i)] {
                    if let Some(t) = total.get_mut(at) {
                        *t = before + sum;
                    }
                }
            }
        }
        return;
    }
    let columns =
        DMatrixView::from_slice_with_strides_generic(a, Dyn(rows), Dyn(p), Dyn(1), Dyn(rows));
    let lines =
        DMatrixView::from_slice_with_strides_generic(a, Dyn(p), Dyn(rows), Dyn(rows), Dyn(1));
    total.gemm(1.0, &lines, &columns, if add { 1.0 } else { 0.0 });
}
