//! k-means on points that are already noisy: post-processing, whatever the clusters turn out to be.

/// Rounds of Lloyd's algorithm.
const ROUNDS: usize = 50;

/// Centres of at most `k` clusters, and the cluster of every point. Deterministic: the first centres are points evenly
/// spaced in the order of their sums.
pub fn clusters(points: &[[f64; 2]], k: usize) -> (Vec<[f64; 2]>, Vec<usize>) {
    if points.is_empty() || k == 0 {
        return (Vec::new(), Vec::new());
    }
    let k = k.min(points.len());
    let mut order: Vec<&[f64; 2]> = points.iter().collect();
    order.sort_by(|a, b| (a[0] + a[1]).total_cmp(&(b[0] + b[1])));
    // squares of the places: counts of words have few large ones, which deserve centres of their own
    let last = crate::common::size(order.len() - 1);
    let mut centres: Vec<[f64; 2]> = (0..k)
        .map(|i| {
            let from_top =
                ((crate::common::size(k - 1 - i)) / crate::common::size(k.max(2) - 1)).powi(3);
            let at = crate::common::clipped(last * (1.0 - from_top), 0, u32::MAX);
            *order[at as usize]
        })
        .collect();
    let mut members = vec![usize::MAX; points.len()];
    for _ in 0..ROUNDS {
        let next: Vec<usize> = points.iter().map(|p| nearest(&centres, p)).collect();
        let settled = next == members;
        members = next;
        if settled {
            break;
        }
        let mut sums = vec![([0.0; 2], 0usize); k];
        for (p, m) in points.iter().zip(&members) {
            let (sum, n) = &mut sums[*m];
            sum[0] += p[0];
            sum[1] += p[1];
            *n += 1;
        }
        for (centre, (sum, n)) in centres.iter_mut().zip(&sums) {
            if *n > 0 {
                *centre = sum.map(|x| x / crate::common::size(*n));
            }
        }
    }
    (centres, members)
}

fn nearest(centres: &[[f64; 2]], p: &[f64; 2]) -> usize {
    let distance = |c: &[f64; 2]| (c[0] - p[0]).powi(2) + (c[1] - p[1]).powi(2);
    let each = centres.iter().enumerate();
    each.min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)))
        .map_or(0, |(i, _)| i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separate_groups_are_found() {
        let mut points = vec![
            [0.0, 1.0],
            [1.0, 0.0],
            [50.0, 52.0],
            [52.0, 50.0],
            [200.0, 0.0],
        ];
        let (centres, members) = clusters(&points, 3);
        assert_eq!(members, [0, 0, 1, 1, 2]);
        assert_eq!(centres, [[0.5, 0.5], [51.0, 51.0], [200.0, 0.0]]);
        points.truncate(1);
        assert_eq!(clusters(&points, 9).1, [0]);
        assert_eq!(clusters(&[], 3), (vec![], vec![]));
    }
}
