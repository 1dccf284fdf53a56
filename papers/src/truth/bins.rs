//! Exact binned residuals, and the papers' shape difference of two binned residual plots.

use crate::real;

/// Mean prediction and mean residual of a bin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Number of records.
    pub count: usize,
    /// Number of positives.
    pub positives: usize,
    /// Mean prediction; 0 without records.
    pub mean_fitted: f64,
    /// Mean of outcome minus prediction; 0 without records.
    pub mean_residual: f64,
}

impl Bin {
    /// Two standard errors of the mean residual of a well-fitting model, without privacy noise.
    pub fn two_se(&self) -> f64 {
        let variance = self.mean_fitted * (1.0 - self.mean_fitted);
        2.0 * (variance / real(self.count.max(1))).sqrt()
    }
}

/// The bin of the (prediction, outcome) pairs with low ≤ prediction < high; the last bin includes 1.
pub fn bin(records: &[[f64; 2]], low: f64, high: f64) -> Bin {
    let inside = |p: f64| low <= p && (p < high || high >= 1.0);
    let mut found = Bin {
        count: 0,
        positives: 0,
        mean_fitted: 0.0,
        mean_residual: 0.0,
    };
    for [p, y] in records.iter().filter(|r| inside(r[0])) {
        found.count += 1;
        found.positives += usize::from(*y > 0.5);
        found.mean_fitted += p;
        found.mean_residual += y - p;
    }
    if found.count > 0 {
        found.mean_fitted /= real(found.count);
        found.mean_residual /= real(found.count);
    }
    found
}

/// Least-squares slope of unweighted points (x, y); 0 with fewer than two distinct x.
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let n = real(points.len().max(1));
    let (x, y) = points
        .iter()
        .fold((0.0, 0.0), |s, p| (s.0 + p.0 / n, s.1 + p.1 / n));
    let (xx, xy) = points.iter().fold((0.0, 0.0), |s, p| {
        (s.0 + (p.0 - x).powi(2), s.1 + (p.0 - x) * (p.1 - y))
    });
    if xx > 0.0 { xy / xx } else { 0.0 }
}

/// The papers' shape difference: slopes of the points up to ½ and above ½, absolute differences added.
pub fn shape_difference(truth: &[(f64, f64)], released: &[(f64, f64)]) -> f64 {
    let halves = |points: &[(f64, f64)]| {
        let (low, high): (Vec<_>, Vec<_>) = points.iter().partition(|p| p.0 <= 0.5);
        (slope(&low), slope(&high))
    };
    let (a, b) = (halves(truth), halves(released));
    (a.0 - b.0).abs() + (a.1 - b.1).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_and_slopes_by_hand() {
        let records = [[0.1, 0.0], [0.3, 1.0], [0.5, 1.0], [1.0, 1.0]];
        let low = bin(&records, 0.0, 0.5);
        assert_eq!((low.count, low.positives), (2, 1));
        assert!((low.mean_fitted - 0.2).abs() < 1e-15 && (low.mean_residual - 0.3).abs() < 1e-15);
        assert!((low.two_se() - 2.0 * (0.16f64 / 2.0).sqrt()).abs() < 1e-15);
        assert_eq!(bin(&records, 0.5, 1.0).count, 2);
        assert!((slope(&[(0.0, 1.0), (1.0, 3.0)]) - 2.0).abs() < 1e-15);
        let truth = [(0.1, 0.0), (0.4, 0.3), (0.6, 0.0), (0.9, 0.6)];
        let flat = [(0.1, 0.0), (0.4, 0.0), (0.6, 0.0), (0.9, 0.0)];
        assert!((shape_difference(&truth, &flat) - 3.0).abs() < 1e-12);
    }
}
