//! Reconstruction of a histogram through generalised private threshold testing with ε₂ = ∞ (Chen thesis 2018,
//! Algorithms 6 and 7): one noisy threshold, exact difference queries.
//!
//! The adversary asks diff(u, v) = x_u − x_v for all pairs, sees only "at least the noisy threshold" or not, and
//! groups the cells that get the same answers. Of each group one noisy total is bought, whose mean, rounded, is the estimate of
//! every cell. The n² answers are read row by row into fingerprints; they are never stored.

use std::collections::BTreeMap;

use reticent_noise::{Lattice, Noise, NoiseError, Rational, Scale};

/// What the adversary pays, and how often the order of the groups may fail.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// ε of the threshold.
    pub threshold: Rational,
    /// ε of the group totals: noise Lap(2/ε) on each.
    pub totals: Rational,
    /// δ of the attack.
    pub failure: f64,
}

impl Config {
    /// As the thesis states it: half of ε for the threshold, half for the totals, δ = .05.
    pub fn stated(epsilon: &Rational) -> Self {
        let half = epsilon / Rational::from(2u8);
        Self {
            threshold: half.clone(),
            totals: half,
            failure: 0.05,
        }
    }

    /// The constants that reproduce the thesis' tables: the whole ε for each step.
    pub fn printed(epsilon: &Rational) -> Self {
        Self {
            threshold: epsilon.clone(),
            totals: epsilon.clone(),
            failure: 0.05,
        }
    }

    /// θ = ⌈ln(1/δ)/ε⌉.
    #[allow(clippy::cast_possible_truncation, reason = "saturates")]
    pub fn offset(&self) -> i128 {
        libm::ceil(-libm::log(self.failure) / self.threshold.to_f64().value()) as i128
    }
}

/// Cells that got the same answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Number of cells that are larger by at least the noisy threshold.
    pub larger: usize,
    /// The cells.
    pub cells: Vec<usize>,
}

/// Algorithm 6: the ordered groups of `cells` cells, smallest counts first, from the answers alone.
///
/// `ask(u, v)` is whether x_u − x_v reaches the noisy threshold. Asked with u = v as well (its true answer, 0, is known
/// to everyone).
pub fn groups(cells: usize, ask: impl Fn(usize, usize) -> bool) -> Vec<Group> {
    let mut found: BTreeMap<(std::cmp::Reverse<usize>, u64), Vec<usize>> = BTreeMap::new();
    for v in 0..cells {
        let mut larger = 0;
        let mut print: u64 = 0xcbf2_9ce4_8422_2325;
        for u in 0..cells {
            let yes = ask(u, v);
            larger += usize::from(yes);
            // a multiplicative fingerprint of the set, so that equal sizes of different sets are told apart
            print = (print ^ u64::from(yes))
                .wrapping_mul(0x0000_0100_0000_01b3)
                .rotate_left(23);
        }
        found
            .entry((std::cmp::Reverse(larger), print))
            .or_default()
            .push(v);
    }
    found
        .into_iter()
        .map(|((larger, _), cells)| Group {
            larger: larger.0,
            cells,
        })
        .collect()
}

/// What the adversary got.
#[derive(Clone, Debug, PartialEq)]
pub struct Reconstruction {
    /// θ plus its noise: never shown to the adversary.
    pub level: i128,
    /// Ordered groups.
    pub groups: Vec<Group>,
    /// The estimate of every cell.
    pub estimates: Vec<i64>,
    /// Number of comparisons read.
    pub queries: u64,
}

/// Algorithm 7 on a histogram.
pub fn reconstruct(
    counts: &[i64],
    config: &Config,
    noise: &mut dyn Noise,
) -> Result<Reconstruction, NoiseError> {
    let one = Rational::from(1u8);
    let law = Lattice::Laplace(Scale::at_least(&(&one / &config.threshold))?);
    let level = config.offset().saturating_add(noise.lattice(&law));
    let groups = groups(counts.len(), |u, v| {
        i128::from(counts[u]) - i128::from(counts[v]) >= level
    });
    let law = Lattice::Laplace(Scale::at_least(&(Rational::from(2u8) / &config.totals))?);
    let mut estimates = vec![0; counts.len()];
    for group in &groups {
        let total: i128 = group.cells.iter().map(|c| i128::from(counts[*c])).sum();
        let noisy = total.saturating_add(noise.lattice(&law));
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "a mean of counts, rounded"
        )]
        let mean = libm::round(noisy as f64 / group.cells.len() as f64) as i64;
        for c in &group.cells {
            estimates[*c] = mean;
        }
    }
    let n = counts.len() as u64;
    Ok(Reconstruction {
        level,
        groups,
        estimates,
        queries: n * n,
    })
}

/// Share of the cells for which `which` holds that are reconstructed exactly; 0 if there is none.
#[allow(clippy::cast_precision_loss, reason = "numbers of cells")]
pub fn success(counts: &[i64], estimates: &[i64], which: impl Fn(i64) -> bool) -> f64 {
    let (mut all, mut right) = (0_usize, 0_usize);
    for (x, e) in counts.iter().zip(estimates) {
        if which(*x) {
            all += 1;
            right += usize::from(x == e);
        }
    }
    if all == 0 {
        return 0.0;
    }
    right as f64 / all as f64
}

/// The largest k such that every count 0..=k occurs; `None` without an empty cell.
pub fn unbroken(counts: &[i64]) -> Option<i64> {
    let seen: std::collections::BTreeSet<i64> =
        counts.iter().copied().filter(|x| *x >= 0).collect();
    let gap = seen.iter().zip(0..).find(|(value, k)| *value != k);
    let next = gap.map_or(i64::try_from(seen.len()).unwrap_or(i64::MAX), |(_, k)| k);
    next.checked_sub(1).filter(|k| *k >= 0)
}

/// Whether the first groups are exactly the cells with count 0, 1, …, m (Theorem 6 promises it with probability 1 − δ for
/// m = k − 2θ).
pub fn exact_prefix(counts: &[i64], groups: &[Group], m: i64) -> bool {
    (0..=m).zip(0..).all(|(value, i): (i64, usize)| {
        let cells: Vec<usize> = (0..counts.len()).filter(|c| counts[*c] == value).collect();
        groups.get(i).is_some_and(|g| g.cells == cells)
    })
}
