//! The Laplace mechanism in double precision, as in textbooks: value − b·sgn(u)·ln(1 − 2|u|), u on the grid of 2⁻⁵³.
//!
//! Mironov 2012: which doubles can come out depends on the value. An output that only one of two neighbours can
//! produce names it, at any ε.

use reticent_noise::Noise;

const GRID: f64 = 9_007_199_254_740_992.0; // 2^53
const TOP: u64 = 1 << 53;

/// Output for the uniform k·2⁻⁵³, 0 ≤ k < 2⁵³.
#[allow(clippy::cast_precision_loss, reason = "k < 2^53 is exact")]
pub fn output(value: f64, scale: f64, k: u64) -> f64 {
    let u = k as f64 / GRID - 0.5;
    value - scale * 1.0_f64.copysign(u) * libm::log(1.0 - 2.0 * u.abs())
}

/// One release.
pub fn naive_laplace(value: f64, scale: f64, noise: &mut dyn Noise) -> f64 {
    output(value, scale, noise.bits() >> 11)
}

/// How many grid points each side of the analytic inverse are tried. Two roundings (ln and the sum) move the inverse by
/// less than three grid points; see `floats` tests for the check on outputs known to be reachable.
pub const REACH: u64 = 16;

/// Whether some uniform gives `seen` for `value`.
pub fn reachable(seen: f64, value: f64, scale: f64) -> bool {
    if !seen.is_finite() {
        return true;
    }
    let t = (seen - value) / scale;
    // 1 − 2|u| = e^{−|t|}, u has the sign of t
    let u = 0.5 * -libm::expm1(-t.abs());
    [0.5 + u, 0.5 - u].into_iter().any(|x| {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 ≤ x ≤ 1, checked against the top of the grid"
        )]
        let middle = ((x * GRID).round() as u64).min(TOP - 1);
        let first = middle.saturating_sub(REACH);
        let last = (middle + REACH).min(TOP - 1);
        (first..=last).any(|k| output(value, scale, k).to_bits() == seen.to_bits())
    })
}
