//! Least squares by the normal equations of whole numbers.

/// Coefficients of y on an intercept and the columns of x, for whole-numbered records (x, y). The cross
/// products are exact integers; their centred system is solved by elimination with the largest pivot.
///
/// Nothing if the columns are collinear or a value is not a whole number below 2³¹.
pub fn fit<const N: usize>(records: &[([f64; N], f64)]) -> Option<Vec<f64>> {
    let n = i128::try_from(records.len()).ok()?;
    let mut sums = vec![0i128; N + 1];
    let mut products = vec![vec![0i128; N + 1]; N + 1];
    for (x, y) in records {
        let row: Vec<i128> = x
            .iter()
            .chain([y])
            .map(|v| whole(*v))
            .collect::<Option<_>>()?;
        for (i, a) in row.iter().enumerate() {
            sums[i] += a;
            for (j, b) in row.iter().enumerate() {
                products[i][j] += a * b;
            }
        }
    }
    // n·Σab − Σa·Σb is an integer: nothing cancels in floating point.
    #[allow(
        clippy::cast_precision_loss,
        reason = "one rounding of an exact number"
    )]
    let centred = |i: usize, j: usize| (n * products[i][j] - sums[i] * sums[j]) as f64;
    let mut system: Vec<Vec<f64>> = (0..N)
        .map(|i| (0..=N).map(|j| centred(i, j)).collect())
        .collect();
    let slopes = solve(&mut system)?;
    #[allow(clippy::cast_precision_loss, reason = "sums are below 2^53")]
    let mean = |i: usize| sums[i] as f64 / n as f64;
    let intercept = mean(N) - (0..N).map(|i| slopes[i] * mean(i)).sum::<f64>();
    Some(std::iter::once(intercept).chain(slopes).collect())
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "checked to be whole and small"
)]
fn whole(x: f64) -> Option<i128> {
    (x.fract() == 0.0 && x.abs() < 2_147_483_648.0).then_some(x as i128)
}

/// Solves a square system given with its right-hand side as last column.
fn solve(system: &mut [Vec<f64>]) -> Option<Vec<f64>> {
    let n = system.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|a, b| system[*a][k].abs().total_cmp(&system[*b][k].abs()))?;
        system.swap(k, pivot);
        if system[k][k] == 0.0 {
            return None;
        }
        for i in 0..n {
            if i != k {
                let factor = system[i][k] / system[k][k];
                let above = system[k].clone();
                for (entry, above) in system[i].iter_mut().zip(&above).skip(k) {
                    *entry -= factor * above;
                }
            }
        }
    }
    Some((0..n).map(|i| system[i][n] / system[i][i]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plane_is_found_and_a_residual_is_orthogonal() {
        let plane: Vec<([f64; 2], f64)> = [(1.0, 2.0), (3.0, 5.0), (4.0, -1.0), (0.0, 7.0)]
            .iter()
            .map(|(a, b)| ([*a, *b], 4.0 + 3.0 * a - 2.0 * b))
            .collect();
        let fitted = fit(&plane).unwrap();
        for (b, truth) in fitted.iter().zip([4.0, 3.0, -2.0]) {
            assert!((b - truth).abs() < 1e-12, "{fitted:?}");
        }
        // y on x = 0, 1, 2 with y = 0, 0, 3: slope 1.5, intercept −.5.
        let line = fit(&[([0.0], 0.0), ([1.0], 0.0), ([2.0], 3.0)]).unwrap();
        assert!((line[0] + 0.5).abs() < 1e-14 && (line[1] - 1.5).abs() < 1e-14);
        assert!(fit(&[([1.0], 0.0), ([1.0], 2.0)]).is_none());
        assert!(fit(&[([0.5], 0.0), ([1.0], 2.0)]).is_none());
    }
}
