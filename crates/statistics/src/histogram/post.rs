//! Post-processing: non-negative cells, monotone sums, the Hilbert order.

use crate::common::size;

/// The nearest cells (least squares) without negative ones and with the same total; all zero if the total is not positive.
///
/// ```
/// use reticent_statistics::histogram::nonnegative;
/// // The excess of one is taken from the others in equal parts.
/// assert_eq!(nonnegative(&[5.0, -2.0, 3.0]), [4.0, 0.0, 2.0]);
/// ```
pub fn nonnegative(cells: &[f64]) -> Vec<f64> {
    let total: f64 = cells.iter().sum();
    if total.is_nan() || total <= 0.0 {
        return vec![0.0; cells.len()];
    }
    // max(x − t, 0) sums to the total for one t: found along the sorted cells
    let mut sorted = cells.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut shift) = (0.0, 0.0);
    for (k, x) in sorted.iter().enumerate() {
        sum += x;
        let t = (sum - total) / size(k + 1);
        if *x <= t {
            break;
        }
        shift = t;
    }
    cells.iter().map(|x| (x - shift).max(0.0)).collect()
}

/// The nearest non-decreasing values (weighted least squares, pool adjacent violators): for released prefix sums. Weights are positive;
/// `None` for equal ones; values beyond the last weight are left out.
///
/// ```
/// use reticent_statistics::histogram::isotonic;
/// assert_eq!(isotonic(&[1.0, 4.0, 2.0, 5.0], None), [1.0, 3.0, 3.0, 5.0]);
/// assert_eq!(isotonic(&[4.0, 1.0], Some(&[2.0, 1.0])), [3.0, 3.0]);
/// ```
pub fn isotonic(values: &[f64], weights: Option<&[f64]>) -> Vec<f64> {
    match weights {
        None => crate::curve::isotonic(values),
        Some(weights) => crate::curve::isotonic_weighted(values, weights),
    }
}

/// The cells of a plane along the Hilbert curve of the smallest square with a power-of-two side that holds it (cells outside the plane
/// left out). Row is x, column is y; the curve starts at (0, 0) and ends at (side − 1, 0).
///
/// ```
/// use reticent_statistics::histogram::hilbert_order;
/// // (0, 0), (0, 1), (1, 1), (1, 0) of a square of side 2, row by row.
/// assert_eq!(hilbert_order(2, 2), [0, 1, 3, 2]);
/// ```
pub fn hilbert_order(rows: usize, columns: usize) -> Vec<usize> {
    let side = rows.max(columns).max(1).next_power_of_two();
    (0..side * side)
        .map(|d| point(side, d))
        .filter(|(x, y)| *x < rows && *y < columns)
        .map(|(x, y)| x * columns + y)
        .collect()
}

/// The point at distance `d` along the curve: quadrants from the finest scale up, each turned into place.
fn point(side: usize, d: usize) -> (usize, usize) {
    let (mut x, mut y, mut rest) = (0, 0, d);
    let mut s = 1;
    while s < side {
        let right = (rest / 2) & 1;
        let up = (rest ^ right) & 1;
        if up == 0 {
            if right == 1 {
                (x, y) = (s - 1 - x, s - 1 - y);
            }
            (x, y) = (y, x);
        }
        x += s * right;
        y += s * up;
        rest /= 4;
        s *= 2;
    }
    (x, y)
}
