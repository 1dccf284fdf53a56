//! Stage 1 of DAWA (Li, Hay, Miklau, Wang 2014): the cheapest partition of a histogram by noisy costs, and three ways
//! in which it is not private. Published claim: ε₁.
//!
//! A candidate interval b costs dev(b) + penalty + noise, dev(b) = Σ|x_i − mean(b)|. All costs are exact integers in
//! units of 1/`unit`.

use reticent_noise::{Noise, NoiseError, Rational};

use super::laplace;

/// The constants of the stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Candidate lengths (at every offset), 1 first.
    pub lengths: Vec<usize>,
    /// Units per 1; deviations must be multiples of 1/unit.
    pub unit: i128,
    /// Added to every cost, in units.
    pub penalty: i128,
    /// Laplace scale per length, in units; `None`: no draw.
    pub scales: Vec<Option<Rational>>,
    /// Whether noisy deviations below 0 are raised to 0 (before the penalty is added).
    pub clamped: bool,
}

fn ratio(n: usize, d: usize) -> Rational {
    Rational::from(n) / Rational::from(d)
}

impl Stage {
    /// The scales of the proof, 2(2 − 1/|b| − 1/L)/ε₁ (L the longest candidate), times `factor`; single cells without
    /// noise if `bare`. The authors' released code is `factor` ½ and `bare`.
    pub fn new(
        lengths: &[usize],
        unit: i128,
        penalty: i128,
        epsilon: &Rational,
        factor: &Rational,
        bare: bool,
    ) -> Self {
        let longest = lengths.iter().copied().max().unwrap_or(1);
        Self::with_longest(lengths, longest, unit, penalty, epsilon, factor, bare)
    }

    /// As [`Stage::new`], with another L in the scales.
    pub fn with_longest(
        lengths: &[usize],
        longest: usize,
        unit: i128,
        penalty: i128,
        epsilon: &Rational,
        factor: &Rational,
        bare: bool,
    ) -> Self {
        let scale = |b: usize| {
            let width = Rational::from(2u8) - ratio(1, b) - ratio(1, longest);
            Rational::from(2u8) * width * factor * Rational::from(unit) / epsilon
        };
        Self {
            lengths: lengths.to_vec(),
            unit,
            penalty,
            scales: lengths
                .iter()
                .map(|b| (!bare || *b > 1).then(|| scale(*b)))
                .collect(),
            clamped: false,
        }
    }

    /// dev(b) in units.
    fn deviation(&self, cells: &[i128]) -> i128 {
        let n = i128::try_from(cells.len()).unwrap_or(1);
        let sum: i128 = cells.iter().sum();
        let times_n: i128 = cells.iter().map(|x| (x * n - sum).abs()).sum();
        times_n * self.unit / n
    }

    fn noised(&self, cost: i128, noise: i128) -> i128 {
        let cost = cost + noise;
        if self.clamped { cost.max(0) } else { cost }
    }

    /// The cheapest partition as bucket lengths, ties to the shorter last bucket, recursively.
    pub fn partition(
        &self,
        cells: &[i128],
        noise: &mut dyn Noise,
    ) -> Result<Vec<usize>, NoiseError> {
        let n = cells.len();
        let mut costs = vec![Vec::new(); self.lengths.len()];
        for ((length, scale), row) in self.lengths.iter().zip(&self.scales).zip(&mut costs) {
            for start in 0..(n + 1).saturating_sub(*length) {
                let dev = self.deviation(&cells[start..start + length]);
                let draw = match scale {
                    Some(s) => noise.lattice(&laplace(s)?),
                    None => 0,
                };
                row.push(self.noised(dev, draw) + self.penalty);
            }
        }
        let mut best: Vec<(i128, usize)> = vec![(0, 0)];
        for end in 1..=n {
            let mut cheapest = (i128::MAX, 1);
            for (length, row) in self.lengths.iter().zip(&costs) {
                if *length <= end {
                    let cost = best[end - length].0 + row[end - length];
                    if cost < cheapest.0 {
                        cheapest = (cost, *length);
                    }
                }
            }
            best.push(cheapest);
        }
        let (mut lengths, mut end) = (Vec::new(), n);
        while end > 0 {
            lengths.push(best[end].1);
            end -= best[end].1;
        }
        lengths.reverse();
        Ok(lengths)
    }

    /// Whether the partition is all single cells: they win iff every longer candidate costs at least the cells it
    /// covers. One draw per single cell, one comparison per longer candidate, in the order of [`Stage::partition`].
    pub fn all_single(&self, cells: &[i128], noise: &mut dyn Noise) -> Result<bool, NoiseError> {
        let mut single = Vec::with_capacity(cells.len());
        for _ in cells {
            let draw = match self.scales.first() {
                Some(Some(s)) => noise.lattice(&laplace(s)?),
                _ => 0,
            };
            single.push(self.noised(0, draw) + self.penalty);
        }
        let mut all = true;
        for (length, scale) in self.lengths.iter().zip(&self.scales).skip(1) {
            for start in 0..(cells.len() + 1).saturating_sub(*length) {
                let part = start..start + length;
                let dev = self.deviation(&cells[part.clone()]);
                let rival = single[part].iter().sum::<i128>() - self.penalty;
                let bound = if self.clamped && rival <= 0 {
                    i128::MIN / 4
                } else {
                    rival - dev
                };
                let loses = match scale {
                    Some(s) => noise.exceeds(&laplace(s)?, bound),
                    None => 0 >= bound,
                };
                all &= loses;
            }
        }
        Ok(all)
    }
}

impl Stage {
    /// Which partition of three cells into buckets of one or two wins: 0 all single, 1 the first two together, 2 the
    /// last two. As [`Stage::partition`], with a comparison as the last draw, so that it can be enumerated.
    pub fn of_three(&self, cells: &[i128; 3], noise: &mut dyn Noise) -> Result<u8, NoiseError> {
        let law = |i: usize| match self.scales.get(i) {
            Some(Some(s)) => laplace(s),
            _ => laplace(&Rational::ZERO),
        };
        let (alone, pair) = (law(0)?, law(1)?);
        let mut single = [0; 3];
        for s in &mut single {
            *s = self.noised(0, noise.lattice(&alone)) + self.penalty;
        }
        let first = self.noised(self.deviation(&cells[..2]), noise.lattice(&pair)) + self.penalty;
        let (all, early) = (single[0] + single[1] + single[2], first + single[2]);
        let (best, winner) = if all <= early { (all, 0) } else { (early, 1) };
        // the last two together win if dev + noise + penalty + the first cell is less than that
        let rival = best - single[0] - self.penalty;
        let bound = if self.clamped && rival <= 0 {
            i128::MIN / 4
        } else {
            rival - self.deviation(&cells[1..])
        };
        Ok(if noise.exceeds(&pair, bound) {
            winner
        } else {
            2
        })
    }
}

/// Exact loss of "all single cells" in units of ε₁ when noisy deviations are raised to 0: all cells 2 and penalty 1, then cell
/// N/2 raised by one; lengths 2ᵏ up to N, scale 4/ε₁ on all. Every longer candidate over that cell sits in the tail of
/// its noise, so that the loss is Σ 2(1 − 1/|b|)/(4/ε₁) over the candidates that cover it.
pub fn clamped_loss(cells: usize) -> f64 {
    let changed = cells / 2;
    let mut loss = 0.0;
    let mut length = 2;
    while length <= cells {
        let covering = (0..=cells - length)
            .filter(|start| (*start..start + length).contains(&changed))
            .count();
        #[allow(clippy::cast_precision_loss, reason = "small counts")]
        let each = 2.0 * (1.0 - 1.0 / length as f64) / 4.0;
        #[allow(clippy::cast_precision_loss, reason = "small counts")]
        let number = covering as f64;
        loss += number * each;
        length *= 2;
    }
    loss
}
