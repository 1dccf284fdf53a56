//! Smooth-sensitivity medians with Cauchy noise: the papers' constants, and the median without padding.
//!
//! Written in plain floating point for audits, apart from whatever the workspace ships.

use reticent_noise::Noise;

/// The exact two-sided max-divergence of Cauchy(m, s) and Cauchy(m′, s′): the hyperbolic distance of m + is and
/// m′ + is′ (`privacy.md` §5, Theorem H).
pub fn cauchy_loss((m, s): (f64, f64), (m2, s2): (f64, f64)) -> f64 {
    libm::acosh(1.0 + ((m - m2) * (m - m2) + (s - s2) * (s - s2)) / (2.0 * s * s2))
}

/// Lower median and its β-smooth sensitivity in [0, 1]. With `padded`, the sequence continues with 0 on the left and 1
/// on the right; without it (unsound) only gaps between records count.
pub fn smooth_median(sorted: &[f64], beta: f64, padded: bool) -> (f64, f64) {
    let n = i64::try_from(sorted.len()).unwrap_or(i64::MAX);
    let at = |i: i64| -> Option<f64> {
        if i >= 1 && i <= n {
            usize::try_from(i - 1)
                .ok()
                .and_then(|i| sorted.get(i).copied())
        } else if padded {
            Some(if i < 1 { 0.0 } else { 1.0 })
        } else {
            None
        }
    };
    let middle = (n + 1) / 2;
    let median = at(middle).unwrap_or(0.0);
    let mut smooth: f64 = 0.0;
    for k in 0..=n + 1 {
        #[allow(clippy::cast_precision_loss, reason = "small tables")]
        let weight = libm::exp(-(k as f64) * beta);
        for t in 0..=k + 1 {
            if let (Some(high), Some(low)) = (at(middle + t), at(middle + t - k - 1)) {
                smooth = smooth.max(weight * (high - low));
            }
        }
    }
    (median, smooth)
}

/// κ(ε, β) of the corrected mechanism (`privacy.md` §5.1).
pub fn kappa(epsilon: f64, beta: f64) -> f64 {
    let sliding = 0.5 / libm::sinh(0.5 * epsilon);
    let both = libm::sqrt(libm::exp(-beta) / (2.0 * (libm::cosh(epsilon) - libm::cosh(beta))));
    sliding.max(both)
}

/// The realisable pair that shows the papers' constants unsound: `n` odd, the median at 0, `k` copies of e^{−kε} above
/// it, ones on the rest, as many zeros below; the neighbour turns one zero into a one.
pub fn cauchy_pair(n: usize, k: usize, epsilon: f64) -> (Vec<f64>, Vec<f64>) {
    #[allow(clippy::cast_precision_loss, reason = "small tables")]
    let gap = libm::exp(-(k as f64) * epsilon);
    let zeros = n.div_ceil(2);
    let table = |zeros: usize| {
        let mut t = vec![0.0; zeros];
        t.extend(vec![gap; k]);
        t.resize(n, 1.0);
        t
    };
    (table(zeros), table(zeros - 1))
}

/// Exact loss of median + κ·S·Cauchy on two tables.
pub fn median_loss(a: &[f64], b: &[f64], kappa: f64, beta: f64) -> f64 {
    let ((m, s), (m2, s2)) = (smooth_median(a, beta, true), smooth_median(b, beta, true));
    cauchy_loss((m, kappa * s), (m2, kappa * s2))
}

/// One release of the median with Cauchy noise (floating point).
pub fn release(sorted: &[f64], epsilon: f64, padded: bool, noise: &mut dyn Noise) -> f64 {
    let beta = epsilon / std::f64::consts::SQRT_2;
    let (median, smooth) = smooth_median(sorted, beta, padded);
    #[allow(clippy::cast_precision_loss, reason = "53 bits")]
    let u = ((noise.bits() >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0;
    median + kappa(epsilon, beta) * smooth * libm::tan(std::f64::consts::PI * (u - 0.5))
}
