//! The symmetric binormal curve of an area.
//!
//! # Claim
//! Costs nothing: a function of a released area.
//! # Assumptions
//! Scores of both classes are normal with equal variance on some increasing scale. Real curves that are steeper at one end than
//! at the other have the same area and are not this one.
//! # Checked by
//! `binormal::tests::its_area_is_the_area`, `accuracy::areas_are_those_of_pairs`
//! # References
//! Hanley 1988; Chen thesis 2018 §4.3 (SmoothS)

/// Points of T = Φ(√2·Φ⁻¹(a) + Φ⁻¹(F)), the curve of two normal scores of equal variance whose area is a (clamped to
/// [10⁻⁶, 1 − 10⁻⁶]). It shows what an area means; it is not the curve of the data.
///
/// ```
/// let curve = reticent_statistics::roc::symmetric_binormal(0.5);
/// assert!(curve.iter().all(|(f, t)| (f - t).abs() < 1e-9));
/// ```
pub fn symmetric_binormal(area: f64) -> Vec<(f64, f64)> {
    let shift = std::f64::consts::SQRT_2 * quantile(area.clamp(1e-6, 1.0 - 1e-6));
    // even steps along the antidiagonal keep the steep ends smooth
    let mut points = vec![(0.0, 0.0)];
    points.extend((-60..=60).map(|k| {
        let z = f64::from(k) / 15.0;
        (cumulative(z - shift / 2.0), cumulative(z + shift / 2.0))
    }));
    points.push((1.0, 1.0));
    points
}

/// Φ.
pub(super) fn cumulative(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// Φ⁻¹, by bisection.
pub(super) fn quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if cumulative(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The area under the curve is the area asked for (trapezoids of 122 pieces: within 10⁻³), and it is symmetric.
    #[test]
    fn its_area_is_the_area() {
        for a in [0.3, 0.5, 0.75, 0.9, 0.99] {
            let curve = symmetric_binormal(a);
            let area = crate::curve::area_of_lines(&curve);
            assert!((area - a).abs() < 1e-3, "{a}: {area}");
            for ((f, t), (g, u)) in curve.iter().zip(curve.iter().rev()) {
                assert!((f - (1.0 - u)).abs() < 1e-12 && (t - (1.0 - g)).abs() < 1e-12);
            }
        }
        assert!((quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-9);
    }
}
