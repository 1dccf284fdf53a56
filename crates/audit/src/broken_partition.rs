//! DAWA's first stage with its constants open: as printed and released it is not private.

use reticent_noise::{Lattice, Noise, NoiseError, Rational, Scale};

/// Noise scales, penalty and clamping of a partition of a line into buckets of 1 or 2 cells.
#[derive(Clone, Debug)]
pub struct Constants {
    /// Noise on buckets of one cell, in records; zero as in the authors' released code.
    pub single: Rational,
    /// Noise on buckets of two cells.
    pub pair: Rational,
    /// Cost of a bucket.
    pub penalty: i128,
    /// Noisy deviations below 0 are set to 0, before the penalty.
    pub clamp: bool,
}

/// The ends of the buckets of the cheapest partition; ties go to the shorter last bucket.
pub fn partition(
    cells: &[i128],
    constants: &Constants,
    noise: &mut dyn Noise,
) -> Result<Vec<usize>, NoiseError> {
    let single = Lattice::Laplace(Scale::at_least(&constants.single)?);
    let pair = Lattice::Laplace(Scale::at_least(&constants.pair)?);
    let mut cost = |deviation: i128, lattice: &Lattice| {
        let noisy = if lattice.scale().is_zero() {
            deviation
        } else {
            deviation + noise.lattice(lattice)
        };
        let noisy = if constants.clamp { noisy.max(0) } else { noisy };
        noisy + constants.penalty
    };
    let ones: Vec<i128> = cells.iter().map(|_| cost(0, &single)).collect();
    // |a − m| + |b − m| about the mean m is |a − b|
    let twos: Vec<i128> = cells
        .windows(2)
        .map(|w| cost((w[0] - w[1]).abs(), &pair))
        .collect();
    let mut best = vec![0i128; cells.len() + 1];
    let mut last = vec![1usize; cells.len() + 1];
    for end in 1..=cells.len() {
        best[end] = best[end - 1] + ones[end - 1];
        if end >= 2 && best[end - 2] + twos[end - 2] < best[end] {
            best[end] = best[end - 2] + twos[end - 2];
            last[end] = 2;
        }
    }
    let mut ends = Vec::new();
    let mut end = cells.len();
    while end > 0 {
        ends.push(end);
        end -= last[end];
    }
    ends.reverse();
    Ok(ends)
}

/// The exact loss of "all singletons" when noisy deviations are clamped at 0: `cells` (a power of two) cells of 2, the one at the middle
/// plus one record, candidates 2^k at every offset, scale `scale` on each. Every longer candidate over that cell sits
/// in its Laplace tail, so each adds its change of deviation over its scale.
pub fn clamped_partition_loss(cells: usize, scale: f64) -> f64 {
    let middle = cells / 2;
    let mut loss = 0.0;
    let mut length = 2;
    while length <= cells {
        let starts = (0..=cells - length).filter(|s| (*s..*s + length).contains(&middle));
        let change = 2.0 * (1.0 - 1.0 / real(length));
        loss += real(starts.count()) * change / scale;
        length *= 2;
    }
    loss
}

#[allow(clippy::cast_precision_loss, reason = "small sizes")]
fn real(n: usize) -> f64 {
    n as f64
}
