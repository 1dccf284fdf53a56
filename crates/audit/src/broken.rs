//! Published mechanisms that are not private, for teaching, attacks and as negative controls: a neighbour test that
//! does not flag them is worth nothing. Never behind a plan; they see exact counts of invented tables only.
//!
//! Here: the sparse vector family, the range finder with open constants, the sums of the binned residual plot and
//! the second moments. In modules: [`clusters`], [`floats`], [`medians`], [`models`], [`partitions`], [`pruning`].
//! [`crate::auditor::catalogue`] lists them all with their claims.

pub mod clusters;
pub mod floats;
pub mod medians;
pub mod models;
pub mod partitions;
pub mod pruning;

use reticent_noise::{Lattice, Noise, NoiseError, Rational, Scale};

pub(crate) fn laplace(scale: &Rational) -> Result<Lattice, NoiseError> {
    Ok(Lattice::Laplace(Scale::at_least(scale)?))
}

/// How a variant of generalised testing splits its budget: the shares of the threshold and of every query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Lee and Clifton 2014, NoisyCut (thesis Algorithm 2): ¼ and ¾.
    NoisyCut,
    /// Chen, Xiao, Zhang, Xu 2015 (thesis Algorithm 4): ½ and ½.
    Halves,
}

impl Split {
    /// (ε₁, ε₂) for a total ε.
    pub fn shares(self, epsilon: &Rational) -> (Rational, Rational) {
        let quarter = epsilon / Rational::from(4u8);
        match self {
            Self::NoisyCut => (quarter.clone(), quarter * Rational::from(3u8)),
            Self::Halves => {
                let half = quarter * Rational::from(2u8);
                (half.clone(), half)
            }
        }
    }
}

/// Thesis Algorithms 2 and 4 with all answers kept: [`generalised_testing`] at the scales of a [`Split`].
pub fn uncut_testing(
    scores: &[i128],
    threshold: i128,
    epsilon: &Rational,
    split: Split,
    noise: &mut dyn Noise,
) -> Result<Vec<bool>, NoiseError> {
    let one = Rational::from(1u8);
    let (threshold_share, query_share) = split.shares(epsilon);
    generalised_testing(
        scores,
        threshold,
        &(&one / threshold_share),
        &(&one / query_share),
        |_| true,
        noise,
    )
}

/// Binned residual plot as printed (Chen thesis 2018, Algorithm 13), one bin [l, r) with records (p, y), p in multiples
/// of 1/128, ε = 1: noisy count, Σp and Σ(y − p), both sums in units of 1/128. The loss of one record is
/// [`printed_bin_sums`].
pub fn printed_bin_release(
    (l, r): (i64, i64),
    records: &[(i64, i64)],
    noise: &mut dyn Noise,
) -> Result<[i128; 3], NoiseError> {
    let unit = 128;
    let scale = |width: i64| laplace(&Rational::from(4 * width));
    let predicted: i64 = records.iter().map(|(p, _)| p).sum();
    let residual: i64 = records.iter().map(|(p, y)| y * unit - p).sum();
    let count = i128::try_from(records.len()).unwrap_or(i128::MAX);
    Ok([
        count + noise.lattice(&scale(1)?),
        i128::from(predicted) + noise.lattice(&scale(r - l)?),
        i128::from(residual) + noise.lattice(&scale(unit + r - l)?),
    ])
}

/// Private threshold testing (Stoddard, Chen, Machanavajjhala 2014, Algorithm 2): noise on the threshold only, exact
/// scores. One record that lifts one of two equal scores makes impossible answers possible: ε = ∞.
pub fn threshold_testing(
    scores: &[i128],
    threshold: i128,
    scale: &Rational,
    noise: &mut dyn Noise,
) -> Result<Vec<bool>, NoiseError> {
    let level = threshold + noise.lattice(&laplace(scale)?);
    Ok(scores.iter().map(|s| *s >= level).collect())
}

/// Generalised private threshold testing (Chen thesis 2018, Algorithm 5): noise on threshold and scores, but no
/// cut-off. A budget for the queries is claimed to cover any number of answers; the loss grows with their number.
///
/// `keep` is asked after every answer; when it says no, the rest is not asked (for tests of one long answer).
pub fn generalised_testing(
    scores: &[i128],
    threshold: i128,
    threshold_scale: &Rational,
    query_scale: &Rational,
    keep: impl Fn(&[bool]) -> bool,
    noise: &mut dyn Noise,
) -> Result<Vec<bool>, NoiseError> {
    let level = threshold + noise.lattice(&laplace(threshold_scale)?);
    let query = laplace(query_scale)?;
    let mut answers = Vec::new();
    for s in scores {
        answers.push(noise.exceeds(&query, level - s));
        if !keep(&answers) {
            break;
        }
    }
    Ok(answers)
}

/// Sparse vector with its counter set to zero inside the loop (Chen thesis 2018, Algorithm 8 as printed): for c ≥ 2
/// the counter never reaches c, so nothing stops the answers.
pub fn sparse_vector_inner_reset(
    scores: &[i128],
    threshold: i128,
    epsilon: &Rational,
    cutoff: u32,
    keep: impl Fn(&[bool]) -> bool,
    noise: &mut dyn Noise,
) -> Result<Vec<bool>, NoiseError> {
    let level = threshold + noise.lattice(&laplace(&(Rational::from(2u8) / epsilon))?);
    let query = laplace(&(Rational::from(4 * u64::from(cutoff)) / epsilon))?;
    let mut answers = Vec::new();
    for s in scores {
        let mut count = 0;
        let positive = noise.exceeds(&query, level - s);
        answers.push(positive);
        count += u32::from(positive);
        if count == cutoff || !keep(&answers) {
            break;
        }
    }
    Ok(answers)
}

/// Above-threshold on nested counts with given one-sided scales (in counts): the range finder with its constants
/// open, so that unsound ones can be tried. `nested[k]` = #{x ≤ d_k}; θ = `coverage`. Returns the first answer, or
/// `nested.len()`.
pub fn range_with_scales(
    nested: &[i128],
    n: i128,
    coverage: (u32, u32),
    threshold_scale: &Rational,
    query_scale: &Rational,
    noise: &mut dyn Noise,
) -> Result<usize, NoiseError> {
    let (a, g) = (i128::from(coverage.0), i128::from(coverage.1));
    let unit = Rational::from(coverage.1);
    let threshold = Lattice::Geometric(Scale::at_least(&(threshold_scale * &unit))?);
    let query = Lattice::Geometric(Scale::at_least(&(query_scale * &unit))?);
    let level = n * a + noise.lattice(&threshold);
    for (k, count) in nested.iter().enumerate() {
        if noise.exceeds(&query, level - count * g) {
            return Ok(k);
        }
    }
    Ok(nested.len())
}

/// The losses of the binned residual plot as printed (Chen thesis 2018, Algorithm 13): per bin [l, r), count,
/// Σp and Σ(y − p) get Laplace noise of scale 4/ε, 4(r−l)/ε and 4(1+r−l)/ε, as if a record could only be moved inside
/// its bin. `records` are (bin, p, y); returns max Σ|change|/scale at ε = 1 when one is added, and when one is
/// replaced by another.
pub fn printed_bin_sums(edges: &[f64], records: &[(usize, f64, f64)]) -> (f64, f64) {
    let width = |b: usize| edges[b + 1] - edges[b];
    let cost = |b: usize, count: f64, p: f64, y: f64| {
        count.abs() / 4.0 + p.abs() / (4.0 * width(b)) + (y - p).abs() / (4.0 * (1.0 + width(b)))
    };
    let alone = |r: &(usize, f64, f64)| cost(r.0, 1.0, r.1, r.2);
    let added = records.iter().map(alone).fold(0.0, f64::max);
    let mut replaced: f64 = 0.0;
    for a in records {
        for b in records {
            let loss = if a.0 == b.0 {
                cost(a.0, 0.0, a.1 - b.1, a.2 - b.2)
            } else {
                alone(a) + alone(b)
            };
            replaced = replaced.max(loss);
        }
    }
    (added, replaced)
}

/// Squared L2 distance that a row x ∈ the unit cube can move the upper triangle of Σ(1,x)(1,x)ᵀ: brute force over the
/// vertices, add/remove and replace-one. The published bound is d.
pub fn covariance_squared_sensitivity(d: u32) -> (f64, f64) {
    let triangle = |bits: u32| {
        let row: Vec<f64> = std::iter::once(1.0)
            .chain((0..d).map(|i| f64::from(bits >> i & 1)))
            .collect();
        let mut out = Vec::new();
        for i in 0..row.len() {
            for j in i..row.len() {
                out.push(row[i] * row[j]);
            }
        }
        out
    };
    let all: Vec<Vec<f64>> = (0..1 << d).map(triangle).collect();
    let squared = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    let zero = vec![0.0; all[0].len()];
    let added = all.iter().map(|a| squared(a, &zero)).fold(0.0, f64::max);
    let replaced = all
        .iter()
        .flat_map(|a| all.iter().map(|b| squared(a, b)))
        .fold(0.0, f64::max);
    (added, replaced)
}

/// (location, scale) of the smooth-sensitivity median with the published constants 8·S_β/ε at β = ε (Chen thesis 2018;
/// 8 is the constant of Nissim, Raskhodnikova, Smith 2007, which goes with β = ε/2): up to 1.0077 ε.
pub fn seed_median(sorted: &[f64], lower: f64, upper: f64, epsilon: f64) -> (f64, f64) {
    let median = sorted
        .len()
        .div_ceil(2)
        .checked_sub(1)
        .map_or(lower, |i| sorted[i]);
    let s = crate::heavy::smooth_sensitivity(sorted, lower, upper, epsilon);
    (median, 8.0 * s / epsilon)
}

/// (location, scale) of a smooth-sensitivity median whose windows stop at the ends of the data: constant data get no noise.
pub fn unpadded_median(sorted: &[f64], epsilon: f64) -> (f64, f64) {
    let (lower, upper) = (sorted[0], sorted[sorted.len() - 1]);
    seed_median(sorted, lower, upper, epsilon)
}
