//! Cluster selection (Stoddard, Chen, Machanavajjhala 2014, Algorithm 1): features are points, one record moves many.

/// Features, each a vector of counts, one per class: the points that are clustered.
pub type Points = Vec<Vec<i64>>;

/// The nearest of the given centres, from exact counts, as printed: membership itself is released.
pub fn membership(points: &Points, centres: &[Vec<f64>]) -> Vec<usize> {
    #[allow(clippy::cast_precision_loss, reason = "small counts")]
    let distance = |p: &[i64], c: &[f64]| -> f64 {
        p.iter()
            .zip(c)
            .map(|(p, c)| (*p as f64 - c) * (*p as f64 - c))
            .sum()
    };
    points
        .iter()
        .map(|p| {
            let mut best = (f64::INFINITY, 0);
            for (i, c) in centres.iter().enumerate() {
                let d = distance(p, c);
                if d < best.0 {
                    best = (d, i);
                }
            }
            best.1
        })
        .collect()
}

/// What one step of k-means asks: the size of every cluster (q_a) and the sum of its points (q_b).
pub fn questions(points: &Points, centres: &[Vec<f64>]) -> (Vec<i64>, Vec<Vec<i64>>) {
    let dimension = centres.first().map_or(0, Vec::len);
    let mut sizes = vec![0; centres.len()];
    let mut sums = vec![vec![0; dimension]; centres.len()];
    for (p, c) in points.iter().zip(membership(points, centres)) {
        sizes[c] += 1;
        for (s, x) in sums[c].iter_mut().zip(p) {
            *s += x;
        }
    }
    (sizes, sums)
}

/// L1 distances of q_a and of q_b between two tables.
pub fn moves(a: &Points, b: &Points, centres: &[Vec<f64>]) -> (i64, i64) {
    let ((sizes, sums), (sizes_b, sums_b)) = (questions(a, centres), questions(b, centres));
    let size = sizes.iter().zip(&sizes_b).map(|(x, y)| (x - y).abs()).sum();
    let sum = sums
        .iter()
        .flatten()
        .zip(sums_b.iter().flatten())
        .map(|(x, y)| (x - y).abs())
        .sum();
    (size, sum)
}

/// The published pair (`privacy.md` §12): s = 20 features with count 10, centres at 0 and 20.9; one record lifts all to 11.
pub fn worst_pair() -> (Points, Points, Vec<Vec<f64>>) {
    (
        vec![vec![10]; 20],
        vec![vec![11]; 20],
        vec![vec![0.0], vec![20.9]],
    )
}

/// Loss at ε = 1 when the budget is split evenly and q_a is noised for sensitivity 1, q_b for s = 20.
#[allow(clippy::cast_precision_loss, reason = "small counts")]
pub fn loss() -> f64 {
    let (a, b, centres) = worst_pair();
    let (size, sum) = moves(&a, &b, &centres);
    0.5 * size as f64 + 0.5 * sum as f64 / 20.0
}
