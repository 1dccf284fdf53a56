//! Two-dimensional histograms of residual plots and the papers' similarity of two plots.

use crate::real;

/// A frame cut into side × side even cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Range of the fitted values.
    pub x: (f64, f64),
    /// Range of the residuals.
    pub y: (f64, f64),
    /// Cells on a side.
    pub side: usize,
}

impl Frame {
    /// The papers' frame: smallest and largest values, .1 wider on every side, ten cells on a side.
    pub fn around(points: &[[f64; 2]]) -> Self {
        let range = |k: usize| {
            let low = points.iter().map(|p| p[k]).fold(f64::INFINITY, f64::min);
            let high = points
                .iter()
                .map(|p| p[k])
                .fold(f64::NEG_INFINITY, f64::max);
            (low - 0.1, high + 0.1)
        };
        Self {
            x: range(0),
            y: range(1),
            side: 10,
        }
    }

    /// Counts per cell, residuals running fastest; points outside are moved to the edge.
    pub fn counts(&self, points: &[[f64; 2]]) -> Vec<usize> {
        let mut counts = vec![0; self.side * self.side];
        for p in points {
            counts[self.cell(p[0], self.x) * self.side + self.cell(p[1], self.y)] += 1;
        }
        counts
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the cells"
    )]
    fn cell(&self, v: f64, (low, high): (f64, f64)) -> usize {
        let position = (v - low) / (high - low) * real(self.side);
        position.floor().clamp(0.0, real(self.side - 1)) as usize
    }
}

/// Total variation between two non-negative weights on the same cells, each scaled to sum 1; an empty one is at
/// distance 1.
pub fn total_variation(a: &[f64], b: &[f64]) -> f64 {
    let (sum_a, sum_b) = (a.iter().sum::<f64>(), b.iter().sum::<f64>());
    if !(sum_a > 0.0 && sum_b > 0.0) {
        return 1.0;
    }
    a.iter()
        .zip(b)
        .map(|(x, y)| (x / sum_a - y / sum_b).abs())
        .sum::<f64>()
        / 2.0
}

/// The papers' similarity of a released plot to the true one, over the 10 × 10 cells of the true plot's frame:
/// ½(Σ|P − P′| + 1 − ΣP′) with shares P of the true and P′ of the released points. 0 means equal shares everywhere;
/// released points outside the frame count in full.
pub fn similarity(truth: &[[f64; 2]], released: &[[f64; 2]]) -> f64 {
    let frame = Frame::around(truth);
    let within = |v: f64, (low, high): (f64, f64)| low <= v && v <= high;
    let inside: Vec<[f64; 2]> = released
        .iter()
        .copied()
        .filter(|p| within(p[0], frame.x) && within(p[1], frame.y))
        .collect();
    let outside = released.len() - inside.len();
    let distances: f64 = frame
        .counts(truth)
        .into_iter()
        .zip(frame.counts(&inside))
        .map(|(a, b)| (real(a) / real(truth.len()) - real(b) / real(released.len().max(1))).abs())
        .sum();
    let missing = if released.is_empty() {
        1.0
    } else {
        real(outside) / real(released.len())
    };
    0.5 * distances + 0.5 * missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_by_hand() {
        let frame = Frame {
            x: (0.0, 2.0),
            y: (0.0, 2.0),
            side: 2,
        };
        let points = [[0.5, 0.5], [0.5, 1.5], [1.5, 5.0], [-3.0, 0.0]];
        assert_eq!(frame.counts(&points), [2, 1, 0, 1]);
        assert!(
            (total_variation(&[2.0, 1.0, 0.0, 1.0], &[1.0, 0.0, 1.0, 0.0]) - 0.5).abs() < 1e-15
        );
        assert!((total_variation(&[1.0], &[0.0]) - 1.0).abs() < 1e-15);
        assert!(similarity(&points, &points).abs() < 1e-15);
        assert!((similarity(&points, &[[0.5, 0.5]]) - 0.75).abs() < 1e-15);
        // Nothing released, or everything outside the frame.
        assert!((similarity(&points, &[]) - 1.0).abs() < 1e-15);
        assert!((similarity(&points, &[[9.0, 9.0]]) - 1.0).abs() < 1e-15);
    }
}
