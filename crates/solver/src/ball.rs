//! Where to look for a least-squares fit within a ball.

use nalgebra::{Cholesky, DMatrix, DVector};

/// Steps of the search for the multiplier.
const STEPS: u32 = 80;

/// A proposal for the minimiser of ½wᵀHw − v·w over ‖w‖ ≤ `radius`, for a symmetric positive definite H of `cross.len()` columns
/// (column by column). Zeros where doubles do not do.
///
/// On the ball's surface the minimiser is (H + μI)⁻¹v with the μ > 0 that makes it as long as the radius; Newton's method on
/// 1/‖w(μ)‖ rises to that μ from 0 (Moré and Sorensen 1983).
pub fn within_ball(matrix: Vec<f64>, cross: &[f64], radius: f64) -> Vec<f64> {
    let p = cross.len();
    let mut best = DVector::zeros(p);
    if matrix.len() != p * p {
        return best.as_slice().to_vec();
    }
    let (matrix, cross) = (
        DMatrix::from_vec(p, p, matrix),
        DVector::from_column_slice(cross),
    );
    let mut shift = 0.0;
    for _ in 0..STEPS {
        let shifted = &matrix + DMatrix::from_diagonal_element(p, p, shift);
        let Some(factor) = Cholesky::new(shifted) else {
            break;
        };
        let w = factor.solve(&cross);
        let length = w.norm();
        if !length.is_finite() {
            break;
        }
        best = w;
        let Some(q) = factor.l_dirty().solve_lower_triangular(&best) else {
            break;
        };
        let next = shift + (length / radius - 1.0) * length * length / q.norm_squared();
        if length <= radius || next <= shift || !next.is_finite() {
            break;
        }
        shift = next;
    }
    let length = best.norm();
    if length > radius {
        best *= radius / length;
    }
    best.as_slice().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inside_and_on_the_surface() {
        let matrix = vec![4.0, 1.0, 1.0, 3.0];
        // inside: H⁻¹v = (1, 1)
        let found = within_ball(matrix.clone(), &[5.0, 4.0], 10.0);
        assert!((found[0] - 1.0).abs() < 1e-14 && (found[1] - 1.0).abs() < 1e-14);
        // on the surface: v − Hw is a positive multiple of w
        let w = within_ball(matrix, &[5.0, 4.0], 0.5);
        let rest = [5.0 - 4.0 * w[0] - w[1], 4.0 - w[0] - 3.0 * w[1]];
        assert!((w[0].hypot(w[1]) - 0.5).abs() < 1e-14);
        assert!((rest[0] / w[0] - rest[1] / w[1]).abs() < 1e-10 && rest[0] / w[0] > 0.0);
        // what doubles cannot do gives a point all the same
        assert_eq!(within_ball(vec![f64::NAN], &[1.0], 1.0), [0.0]);
        assert_eq!(within_ball(vec![-1.0], &[1.0], 1.0), [0.0]);
        assert_eq!(within_ball(vec![1.0], &[1.0, 2.0], 1.0), [0.0, 0.0]);
        assert!(within_ball(vec![], &[], 1.0).is_empty());
    }
}
