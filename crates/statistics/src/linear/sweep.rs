//! The sweep operator.

use nalgebra::DMatrix;

/// Sweeps a symmetric matrix on the given pivots: with M = [[A, b], [bᵀ, c]] and all of A swept the result is
/// [[−A⁻¹, A⁻¹b], [bᵀA⁻¹, c − bᵀA⁻¹b]], i.e. inverse, coefficients and residual sum of squares of a regression.
/// Pivots beyond the matrix, or that are exactly 0, are left out. Sweeping in any order gives the same result.
///
/// ```
/// // Two records (1, 0, 0) and (1, 1, 3): intercept, x, y.
/// let moments = nalgebra::DMatrix::from_row_slice(3, 3, &[2.0, 1.0, 3.0, 1.0, 1.0, 3.0, 3.0, 3.0, 9.0]);
/// let swept = reticent_statistics::linear::sweep(&moments, &[0, 1]);
/// assert!((swept[(1, 2)] - 3.0).abs() < 1e-12 && swept[(2, 2)].abs() < 1e-12);
/// ```
pub fn sweep(matrix: &DMatrix<f64>, pivots: &[usize]) -> DMatrix<f64> {
    let mut m = matrix.clone();
    let n = m.nrows().min(m.ncols());
    for &k in pivots.iter().filter(|k| **k < n) {
        let d = m[(k, k)];
        if d == 0.0 || !d.is_finite() {
            continue;
        }
        let before = m.clone();
        for i in 0..n {
            for j in 0..n {
                m[(i, j)] = match (i == k, j == k) {
                    (true, true) => -1.0 / d,
                    (true, false) | (false, true) => before[(i, j)] / d,
                    (false, false) => before[(i, j)] - before[(i, k)] * before[(k, j)] / d,
                };
            }
        }
    }
    m
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeping_all_is_the_negative_inverse() {
        let a = DMatrix::from_fn(4, 4, |i, j| {
            1.0 / (1.0 + f64::from(u32::try_from(i + j).unwrap())) + if i == j { 1.0 } else { 0.0 }
        });
        let inverse = a.clone().try_inverse().unwrap();
        assert!((sweep(&a, &[0, 1, 2, 3]) + &inverse).norm() < 1e-12);
        // Any order, and nothing for pivots that cannot be.
        assert!((sweep(&a, &[2, 0, 3, 1, 9]) + inverse).norm() < 1e-12);
        assert_eq!(sweep(&DMatrix::zeros(2, 2), &[0, 1]), DMatrix::zeros(2, 2));
    }
}
