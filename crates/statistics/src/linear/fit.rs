//! Least squares on a noisy matrix: repair, solution, covariance.

use nalgebra::{DMatrix, DVector};
use reticent_mechanisms::primitives::NoisyMoments;
use serde_json::{Value, json};

use crate::common::{number, size};
use crate::student;

/// A fit in the coordinates of z.
pub(super) struct Fit {
    /// Coefficients of y on (z₀, x).
    pub(super) b: DVector<f64>,
    pub(super) sampling: DMatrix<f64>,
    pub(super) noise: DMatrix<f64>,
    pub(super) residual_variance: f64,
    pub(super) floored: bool,
    pub(super) singular: bool,
}

/// (A symmetric)⁻¹ with eigenvalues floored; also whether the floor was used.
pub(super) fn floored_inverse(
    a: &DMatrix<f64>,
    floor: f64,
    ridge: f64,
) -> (DMatrix<f64>, DMatrix<f64>, bool) {
    let eigen = a.clone().symmetric_eigen();
    let top = eigen.eigenvalues.iter().copied().fold(0.0, f64::max);
    let floor = floor.max(1e-13 * top).max(1e-300);
    let used = eigen.eigenvalues.iter().any(|l| *l < floor);
    let kept = eigen.eigenvalues.map(|l| l.max(floor));
    let v = &eigen.eigenvectors;
    let rebuild = |values: DVector<f64>| v * DMatrix::from_diagonal(&values) * v.transpose();
    let inverse = rebuild(kept.map(|l| 1.0 / (l + ridge)));
    let repaired = if used { rebuild(kept) } else { a.clone() };
    (inverse, repaired, used)
}

/// The table of coefficients, and whether every number in it is finite.
pub(super) fn rows_of(
    names: &[String],
    estimate: &[f64],
    (sampling, noise): (&[f64], &[f64]),
    t: f64,
    df: f64,
) -> (Vec<Value>, bool) {
    let mut finite = true;
    let terms = names
        .iter()
        .enumerate()
        .map(|(i, name)| {
            let at = |v: &[f64]| v.get(i).copied().unwrap_or(0.0);
            let b = at(estimate);
            let (vs, vn) = (at(sampling).max(0.0), at(noise).max(0.0));
            let se = (vs + vn).sqrt();
            finite &= b.is_finite() && se.is_finite();
            let p = student::tail((b / se).abs(), df);
            json!({
                "name": name,
                "estimate": number(b),
                "std_error": number(se),
                "sampling_error": number(vs.sqrt()),
                "noise_error": number(vn.sqrt()),
                "conf_low": number(b - t * se),
                "conf_high": number(b + t * se),
                "t": number(b / se),
                "p": number(p),
                "stars": stars(p),
            })
        })
        .collect();
    (terms, finite)
}

/// R's significance codes.
fn stars(p: f64) -> &'static str {
    match p {
        p if p < 0.001 => "***",
        p if p < 0.01 => "**",
        p if p < 0.05 => "*",
        p if p < 0.1 => ".",
        _ => "",
    }
}

/// The full symmetric matrix of a released triangle.
pub(crate) fn triangle(noisy: &NoisyMoments, dimension: usize) -> DMatrix<f64> {
    let mut full = DMatrix::zeros(dimension, dimension);
    let mut entries = noisy.entries.iter();
    for i in 0..dimension {
        for j in i..dimension {
            let e = entries
                .next()
                .copied()
                .filter(|e| e.is_finite())
                .unwrap_or(0.0);
            full[(i, j)] = e;
            full[(j, i)] = e;
        }
    }
    full
}

/// Coefficients and their covariance.
///
/// The estimating equation is X(y − Xᵀb) with moments M + E; its noise e = E_{Xy} − E_{XX}·b has
/// Var e_i = o²(1 + ‖b‖²) + (s² − o²)·b_i² and Cov(e_i, e_k) = o²·b_i·b_k, with s and o the deviations of a
/// diagonal and an off-diagonal entry. (s² = 2o² gives (s²/2)((1+‖b‖²)I + bbᵀ).) Sampling adds σ_r²·G.
///
/// Where eigenvalues were raised, Ĝ = G + D, the solution is off by Ĝ⁻¹Dβ as well. Its direction is unknown: ββᵀ is taken as
/// (‖b‖² + tr Cov b)/p·I, since b has been shrunk. Without it intervals are too short once the noise reaches the
/// eigenvalues.
#[allow(clippy::too_many_arguments, reason = "the moments and their noise")]
pub(super) fn fit(
    gram: &DMatrix<f64>,
    cross: &DVector<f64>,
    yy: f64,
    (s, o): (f64, f64),
    df: f64,
    floor: f64,
    lift: Option<&DMatrix<f64>>,
    y_shift: f64,
) -> Fit {
    let p = gram.nrows();
    let (inverse, repaired, singular) = floored_inverse(gram, floor, 0.0);
    // z-coordinates of the residual y − (·)ᵀz, and the map from the noisy equation to coefficients.
    let (b, coefficients_of_z, sandwich) = if let Some(lift) = lift {
        let (h, weights) = lifted_inverse(&repaired, lift, 0.0);
        let shifted = cross + gram.column(0) * y_shift;
        let b = &weights * &h * &weights * lift * &shifted;
        let mut z = lift.transpose() * &b;
        z[0] -= y_shift;
        let sandwich = &weights * &h * &weights * lift;
        (b, z, sandwich)
    } else {
        let b = &inverse * cross;
        (b.clone(), b, inverse)
    };
    let z = &coefficients_of_z;
    let spread = 1.0 + z.norm_squared();
    let residual = yy - 2.0 * z.dot(cross) + (z.transpose() * gram * z)[(0, 0)];
    // The noise in a quadratic form along (z, −1) has deviation s·(1+‖z‖²) at most.
    let least = s * spread;
    let floored = residual < least;
    let residual_variance = residual.max(least).max(0.0) / df;
    let mut noise = z * z.transpose() * (o * o);
    for i in 0..p {
        noise[(i, i)] += o * o * spread + (s * s - 2.0 * o * o) * z[i] * z[i];
    }
    let sampling = &sandwich * &repaired * sandwich.transpose() * residual_variance;
    let mut noise = &sandwich * noise * sandwich.transpose();
    if singular {
        let all = &sampling + &noise;
        let spread = lift.map_or_else(|| all.trace(), |l| (l.transpose() * &all * l).trace());
        let shift = &sandwich * (&repaired - gram);
        noise += &shift * shift.transpose() * ((z.norm_squared() + spread) / size(p));
    }
    Fit {
        sampling,
        noise,
        b,
        residual_variance,
        floored: floored && least > 0.0,
        singular,
    }
}

/// (W·B·G·Bᵀ·W + λI)⁻¹ and W, which brings the rows of B to length 1.
fn lifted_inverse(
    gram: &DMatrix<f64>,
    lift: &DMatrix<f64>,
    ridge: f64,
) -> (DMatrix<f64>, DMatrix<f64>) {
    let lengths = DVector::from_iterator(
        lift.nrows(),
        lift.row_iter().map(|r| {
            let n = r.norm();
            if n > 0.0 { 1.0 / n } else { 0.0 }
        }),
    );
    let weights = DMatrix::from_diagonal(&lengths);
    let scaled = &weights * lift;
    let (inverse, _, _) = floored_inverse(&(&scaled * gram * scaled.transpose()), 0.0, ridge);
    (inverse, weights)
}

/// Shrunk coefficients of a design without intercept.
pub(super) fn solve_lifted(
    gram: &DMatrix<f64>,
    cross: &DVector<f64>,
    lift: &DMatrix<f64>,
    floor: f64,
    ridge: f64,
    y_shift: f64,
) -> DVector<f64> {
    let (_, repaired, _) = floored_inverse(gram, floor, 0.0);
    let (h, weights) = lifted_inverse(&repaired, lift, ridge);
    let shifted = cross + gram.column(0) * y_shift;
    &weights * h * &weights * lift * shifted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raised_eigenvalues_widen_intervals() {
        // G = diag(4, −1), floor 2: b = (1, ½), no residual, no noise; D = diag(0, 3), Ĝ⁻¹D = diag(0, 3/2), and
        // ‖b‖²/p = 5/8: variances 0 and 9/4·5/8.
        let gram = DMatrix::from_diagonal(&DVector::from_vec(vec![4.0, -1.0]));
        let cross = DVector::from_vec(vec![4.0, 1.0]);
        let found = fit(&gram, &cross, 5.25, (0.0, 0.0), 10.0, 2.0, None, 0.0);
        assert!(found.singular && found.sampling.norm() < 1e-12);
        let expected = DMatrix::from_diagonal(&DVector::from_vec(vec![0.0, 1.406_25]));
        assert!((found.noise - expected).norm() < 1e-12);
        // Nothing is added where nothing was raised.
        let plain = fit(
            &gram.map(f64::abs),
            &cross,
            5.0,
            (0.0, 0.0),
            10.0,
            0.5,
            None,
            0.0,
        );
        assert!(!plain.singular && plain.noise.norm() < 1e-12);
    }
}
