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

/// √n bins of equal size (a power of two), by increasing prediction: (mean prediction, mean residual, count).
pub fn equal_bins(records: &[[f64; 2]]) -> Vec<[f64; 3]> {
    let mut all = records.to_vec();
    all.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let bins = 1 << all.len().isqrt().max(1).ilog2();
    (0..bins)
        .map(|k| {
            let part = &all[k * all.len() / bins..(k + 1) * all.len() / bins];
            let n = real(part.len());
            let mean = |of: fn(&[f64; 2]) -> f64| part.iter().map(of).sum::<f64>() / n;
            [mean(|r| r[0]), mean(|r| r[1] - r[0]), n]
        })
        .collect()
}

/// Least-squares slope of points (x, y, weight); 0 with fewer than two distinct x. Weights that are not above 0 leave a point out.
pub fn slope(points: &[[f64; 3]]) -> f64 {
    let points = || points.iter().filter(|p| p[2] > 0.0);
    let total: f64 = points().map(|p| p[2]).sum();
    let (x, y) = points().fold((0.0, 0.0), |s, p| {
        (s.0 + p[2] * p[0] / total, s.1 + p[2] * p[1] / total)
    });
    let (xx, xy) = points().fold((0.0, 0.0), |s, p| {
        (
            s.0 + p[2] * (p[0] - x).powi(2),
            s.1 + p[2] * (p[0] - x) * (p[1] - y),
        )
    });
    if xx > 1e-12 { xy / xx } else { 0.0 }
}

/// The papers' shape difference: slopes of the points (x, y, weight) up to ½ and above ½, absolute differences added. The papers' weights
/// are 1.
pub fn shape_difference(truth: &[[f64; 3]], released: &[[f64; 3]]) -> f64 {
    let halves = |points: &[[f64; 3]]| {
        let (low, high): (Vec<_>, Vec<_>) = points.iter().partition(|p| p[0] <= 0.5);
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
        assert!((slope(&[[0.0, 1.0, 1.0], [1.0, 3.0, 1.0]]) - 2.0).abs() < 1e-15);
        // Weights 1, 1, 2: as if the last point were there twice. One without weight is left out.
        let weighted = [
            [0.0, 0.0, 1.0],
            [1.0, 2.0, 1.0],
            [2.0, 2.0, 2.0],
            [9.0, 9.0, 0.0],
        ];
        assert!((slope(&weighted) - 10.0 / 11.0).abs() < 1e-15);
        let of = |ys: [f64; 4]| [0, 1, 2, 3].map(|i| [[0.1, 0.4, 0.6, 0.9][i], ys[i], 1.0]);
        let (truth, flat) = (of([0.0, 0.3, 0.0, 0.6]), of([0.0; 4]));
        assert!((shape_difference(&truth, &flat) - 3.0).abs() < 1e-12);
        // Four records: two bins.
        let equal = equal_bins(&records);
        assert_eq!(equal.len(), 2);
        assert!((equal[0][0] - 0.2).abs() < 1e-15 && (equal[0][1] - 0.3).abs() < 1e-15);
        assert!((equal[1][2] - 2.0).abs() < 1e-15);
    }
}
