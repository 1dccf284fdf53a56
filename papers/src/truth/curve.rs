//! The exact ROC curve of a list of scores and labels, and when a band covers it.

use crate::real;

/// A point (false positive rate, true positive rate).
pub type Point = (f64, f64);

/// The empirical curve: one vertex per distinct score, from (0, 0) to (1, 1), joined by straight lines (tied records
/// are passed together; half of the tied pairs count for the area).
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The vertices, from the highest score down.
    pub vertices: Vec<Point>,
    /// The area under the curve: the share of (positive, negative) pairs in the right order, ties half.
    pub area: f64,
    /// Number of positives and negatives.
    pub sizes: (usize, usize),
}

impl Curve {
    /// The curve of (score, label) pairs; labels are 1 or 0.
    pub fn new(scored: &[[f64; 2]]) -> Self {
        let mut sorted = scored.to_vec();
        sorted.sort_by(|a, b| b[0].total_cmp(&a[0]));
        let positives = sorted.iter().filter(|s| s[1] > 0.5).count();
        let negatives = sorted.len() - positives;
        let (mut tp, mut fp, mut twice_area) = (0usize, 0usize, 0usize);
        let mut vertices = vec![(0.0, 0.0)];
        #[allow(clippy::float_cmp, reason = "ties are equal scores")]
        for group in sorted.chunk_by(|a, b| a[0] == b[0]) {
            let p = group.iter().filter(|s| s[1] > 0.5).count();
            let n = group.len() - p;
            twice_area += n * (2 * tp + p);
            tp += p;
            fp += n;
            vertices.push((real(fp) / real(negatives), real(tp) / real(positives)));
        }
        Self {
            vertices,
            area: real(twice_area) / (2.0 * real(positives) * real(negatives)),
            sizes: (positives, negatives),
        }
    }

    /// Whether the whole curve, vertices and the lines between them, lies in the union of the rectangles.
    pub fn covered(&self, band: &[Rectangle]) -> bool {
        self.vertices
            .windows(2)
            .all(|w| segment_covered(w[0], w[1], band))
    }

    /// The mean vertical distance to another curve: the papers' symmetric difference, on 10,000 even cells.
    pub fn symmetric_difference(&self, other: &[Point]) -> f64 {
        let cells = 10_000;
        (0..cells)
            .map(|i| {
                let f = (f64::from(i) + 0.5) / f64::from(cells);
                (height(&self.vertices, f) - height(other, f)).abs()
            })
            .sum::<f64>()
            / f64::from(cells)
    }
}

/// A closed rectangle of a band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rectangle {
    /// Range of the false positive rate.
    pub fpr: (f64, f64),
    /// Range of the true positive rate.
    pub tpr: (f64, f64),
}

/// Rates are quotients of the same integers computed along different ways; edges forgive their rounding.
const ROUNDING: f64 = 1e-12;

/// Whether every point of a segment lies in one of the rectangles: the parts inside them, as intervals of the
/// segment's parameter, have to leave no gap in [0, 1].
fn segment_covered(a: Point, b: Point, band: &[Rectangle]) -> bool {
    let mut inside: Vec<(f64, f64)> = band
        .iter()
        .filter_map(|r| {
            let (mut from, mut to) = (0.0f64, 1.0f64);
            for (start, end, (low, high)) in [(a.0, b.0, r.fpr), (a.1, b.1, r.tpr)] {
                let (low, high) = (low - ROUNDING, high + ROUNDING);
                let step = end - start;
                // The rates never decrease along the curve.
                if step > 0.0 {
                    from = from.max((low - start) / step);
                    to = to.min((high - start) / step);
                } else if start < low || start > high {
                    return None;
                }
            }
            (from <= to).then_some((from, to))
        })
        .collect();
    inside.sort_by(|x, y| x.0.total_cmp(&y.0));
    let mut reached = 0.0;
    for (from, to) in inside {
        if from > reached {
            return false;
        }
        reached = f64::max(reached, to);
        if reached >= 1.0 {
            return true;
        }
    }
    false
}

/// Height of a non-decreasing polyline at f.
fn height(points: &[Point], f: f64) -> f64 {
    let after = points.partition_point(|p| p.0 <= f);
    let (a, b) = (
        points[after.saturating_sub(1)],
        points[after.min(points.len() - 1)],
    );
    if b.0 > a.0 {
        a.1 + (b.1 - a.1) * (f - a.0) / (b.0 - a.0)
    } else {
        b.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_records_by_hand() {
        // Scores 3(+), 2(+,−), 1(−): pairs 3>2, 3>1, 2=2, 2>1 of four: 3.5/4.
        let curve = Curve::new(&[[1.0, 0.0], [2.0, 1.0], [3.0, 1.0], [2.0, 0.0]]);
        assert_eq!(
            curve.vertices,
            [(0.0, 0.0), (0.0, 0.5), (0.5, 1.0), (1.0, 1.0)]
        );
        assert!((curve.area - 0.875).abs() < 1e-15);
        assert_eq!(curve.sizes, (2, 2));
        // Against the diagonal: area .875 − .5.
        let diagonal = [(0.0, 0.0), (1.0, 1.0)];
        assert!((curve.symmetric_difference(&diagonal) - 0.375).abs() < 1e-6);
    }

    #[test]
    fn a_curve_is_covered_by_touching_rectangles_only() {
        let curve = Curve::new(&[[1.0, 0.0], [2.0, 1.0], [3.0, 1.0], [2.0, 0.0]]);
        let r = |f0, f1, t0, t1| Rectangle {
            fpr: (f0, f1),
            tpr: (t0, t1),
        };
        let whole = [
            r(0.0, 0.0, 0.0, 0.5),
            r(0.0, 0.5, 0.5, 1.0),
            r(0.5, 1.0, 1.0, 1.0),
        ];
        assert!(curve.covered(&whole));
        // Every vertex is inside, but the line from (0, ½) to (½, 1) leaves.
        let corners = [whole[0], r(0.0, 0.2, 0.5, 0.8), r(0.3, 1.0, 0.8, 1.0)];
        assert!(!curve.covered(&corners));
        // Two rectangles share the line.
        let shared = [whole[0], r(0.0, 0.3, 0.5, 0.8), r(0.3, 1.0, 0.8, 1.0)];
        assert!(curve.covered(&shared));
        assert!(!curve.covered(&whole[..2]));
        assert!(!curve.covered(&[]));
    }
}
