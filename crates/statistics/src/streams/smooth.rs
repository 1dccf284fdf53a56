//! Smoothers: estimates of a tick from the noisy counts of its group (Chen 2018, §5.3.3, Algorithm 17).

use std::collections::VecDeque;

use reticent_mechanisms::stream::Mark;

/// The running median of a multiset, by sorted runs and a cursor: O(log distinct) to find the place, memory by
/// distinct values. Exact.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunningMedian {
    /// (value, how often), by value.
    runs: Vec<(f64, u64)>,
    size: u64,
    /// The run that holds the lower middle, and how many values lie before that run.
    cursor: usize,
    before: u64,
}

impl RunningMedian {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.runs.clear();
        (self.size, self.cursor, self.before) = (0, 0, 0);
    }

    /// Takes in a value (NaN counts as 0).
    pub fn push(&mut self, value: f64) {
        let value = if value.is_nan() { 0.0 } else { value };
        let at = self.runs.partition_point(|r| r.0 < value);
        if self.runs.get(at).is_some_and(|r| r.0 <= value) {
            self.runs[at].1 += 1;
        } else {
            self.runs.insert(at, (value, 1));
            if at <= self.cursor && self.size > 0 {
                self.cursor += 1;
            }
        }
        if self.size > 0 && at < self.cursor {
            self.before += 1;
        }
        self.size += 1;
        let rank = (self.size - 1) / 2;
        while self.before > rank {
            self.cursor -= 1;
            self.before -= self.runs[self.cursor].1;
        }
        while self.before + self.runs[self.cursor].1 <= rank {
            self.before += self.runs[self.cursor].1;
            self.cursor += 1;
        }
    }

    /// The median (mean of the two middle values of an even number; 0 of none).
    pub fn median(&self) -> f64 {
        let Some(low) = self.runs.get(self.cursor) else {
            return 0.0;
        };
        if self.size % 2 == 1 || self.before + low.1 > self.size / 2 {
            return low.0;
        }
        let high = self.runs.get(self.cursor + 1).map_or(low.0, |r| r.0);
        f64::midpoint(low.0, high)
    }

    /// Number of values.
    pub fn len(&self) -> u64 {
        self.size
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }
}

/// How a tick is estimated from its group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Smoother {
    /// Median of the group's noisy counts (5.6), the thesis's default.
    Median,
    /// Their mean (5.5).
    Average,
    /// James–Stein (5.7), τ² the noise variance.
    JamesStein {
        /// Variance of the noise of a count.
        variance: f64,
        /// What the shrunken difference is added to.
        towards: Towards,
        /// Cut the shrinkage factor at 0.
        positive_part: bool,
    },
}

/// The two readings of the last term of (5.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Towards {
    /// "+ c̃_t", as printed, which moves away from the mean.
    Printed,
    /// "+ avg", shrinkage to the mean.
    Mean,
}

/// Smooths one series, tick by tick.
///
/// ```
/// use reticent_mechanisms::stream::Mark;
/// use reticent_statistics::streams::{GroupSmoother, Smoother};
///
/// let mut smooth = GroupSmoother::new(Smoother::Median);
/// let marks = [Mark::Opened, Mark::Joined, Mark::Joined, Mark::Alone, Mark::Opened];
/// let noisy = [5.6, 4.4, 6.7, 9.5, 10.2]; // thesis, Example 8
/// let out: Vec<f64> = marks.iter().zip(noisy).map(|(m, c)| smooth.push(*m, c)).collect();
/// assert_eq!(out, [5.6, 5.0, 5.6, 9.5, 10.2]);
/// ```
#[derive(Clone, Debug)]
pub struct GroupSmoother {
    how: Smoother,
    median: RunningMedian,
    size: f64,
    mean: f64,
    /// Σ (c̃ − avg)², by Welford's update.
    squares: f64,
}

impl GroupSmoother {
    /// With an empty group.
    pub fn new(how: Smoother) -> Self {
        Self {
            how,
            median: RunningMedian::default(),
            size: 0.0,
            mean: 0.0,
            squares: 0.0,
        }
    }

    /// The estimate at a tick with this mark and noisy count. A tick the grouper did not see is its own estimate.
    pub fn push(&mut self, mark: Mark, noisy: f64) -> f64 {
        match mark {
            Mark::Off => return noisy,
            Mark::Opened | Mark::Alone => {
                self.median.clear();
                (self.size, self.mean, self.squares) = (0.0, 0.0, 0.0);
            }
            Mark::Joined => {}
        }
        if self.how == Smoother::Median {
            self.median.push(noisy);
            return self.median.median();
        }
        self.size += 1.0;
        let off = noisy - self.mean;
        self.mean += off / self.size;
        self.squares += off * (noisy - self.mean);
        match self.how {
            Smoother::JamesStein {
                variance,
                towards,
                positive_part,
            } => {
                if self.squares <= 0.0 {
                    return noisy;
                }
                james_stein(
                    noisy,
                    self.mean,
                    self.squares,
                    self.size,
                    variance,
                    towards,
                    positive_part,
                )
            }
            _ => self.mean,
        }
    }
}

/// Formula (5.7) for one value of a group.
fn james_stein(
    value: f64,
    mean: f64,
    squares: f64,
    size: f64,
    variance: f64,
    towards: Towards,
    positive_part: bool,
) -> f64 {
    let factor = 1.0 - (size - 1.0) * variance / squares;
    let factor = if positive_part {
        factor.max(0.0)
    } else {
        factor
    };
    factor * (value - mean)
        + match towards {
            Towards::Printed => value,
            Towards::Mean => mean,
        }
}

/// Efron–Morris shrinkage of a whole group to its mean, factor 1 − (k − 3)τ²/Σ(c − avg)².
pub fn efron_morris(values: &[f64], variance: f64, positive_part: bool) -> Vec<f64> {
    let k = values.len() as f64;
    let mean = values.iter().sum::<f64>() / k.max(1.0);
    let squares: f64 = values.iter().map(|c| (c - mean) * (c - mean)).sum();
    if squares <= 0.0 {
        return values.to_vec();
    }
    let factor = 1.0 - (k - 3.0) * variance / squares;
    let factor = if positive_part {
        factor.max(0.0)
    } else {
        factor
    };
    values.iter().map(|c| mean + factor * (c - mean)).collect()
}

/// Window sums by group medians (Algorithm 17): every tick of the window counts as its group's median at time t.
#[derive(Clone, Debug)]
pub struct WindowSumSmoother {
    window: u64,
    tick: u64,
    /// Closed groups that reach into the window: first tick, length, median.
    closed: VecDeque<(u64, u64, f64)>,
    closed_sum: f64,
    open: RunningMedian,
    open_from: u64,
}

impl WindowSumSmoother {
    /// For sums over the last `window` ticks (at least 1).
    pub fn new(window: u64) -> Self {
        Self {
            window: window.max(1),
            tick: 0,
            closed: VecDeque::new(),
            closed_sum: 0.0,
            open: RunningMedian::default(),
            open_from: 0,
        }
    }

    /// The estimated sum of the window that ends at this tick.
    pub fn push(&mut self, mark: Mark, noisy: f64) -> f64 {
        if mark != Mark::Joined && !self.open.is_empty() {
            let (length, median) = (self.open.len(), self.open.median());
            self.closed.push_back((self.open_from, length, median));
            self.closed_sum += length as f64 * median;
            self.open.clear();
        }
        if self.open.is_empty() {
            self.open_from = self.tick;
        }
        self.open.push(noisy);
        self.tick += 1;
        let from = self.tick.saturating_sub(self.window);
        while let Some((start, length, median)) = self.closed.front().copied() {
            if start + length > from {
                break;
            }
            self.closed.pop_front();
            self.closed_sum -= length as f64 * median;
        }
        if self.closed.is_empty() {
            self.closed_sum = 0.0;
        }
        let cut = self.closed.front().map_or(0.0, |(start, _, median)| {
            from.saturating_sub(*start) as f64 * median
        });
        let overlap = self.tick - self.open_from.max(from);
        self.closed_sum - cut + overlap as f64 * self.open.median()
    }
}

/// BS_k: the mean of the last k + 1 noisy counts (Figure 5.3).
#[derive(Clone, Debug)]
pub struct BackwardSmoother {
    last: VecDeque<f64>,
    length: usize,
}

impl BackwardSmoother {
    /// Looks back k ticks.
    pub fn new(k: usize) -> Self {
        Self {
            last: VecDeque::new(),
            length: k + 1,
        }
    }

    /// The estimate at this tick; the noisy count itself until k ticks have gone by.
    pub fn push(&mut self, noisy: f64) -> f64 {
        if self.last.len() == self.length {
            self.last.pop_front();
        }
        self.last.push_back(noisy);
        if self.last.len() < self.length {
            return noisy;
        }
        self.last.iter().sum::<f64>() / self.length as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against sorting, on values with many ties, growing and falling.
    #[test]
    fn medians_are_exact() {
        for modulus in [1_u64, 2, 3, 7, 1000] {
            let mut running = RunningMedian::default();
            let mut all = Vec::new();
            let mut x = 12345_u64;
            for i in 0..500_u64 {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let value = ((x >> 33) % modulus) as f64 + if i % 3 == 0 { i as f64 } else { 0.0 };
                running.push(value);
                all.push(value);
                let mut sorted = all.clone();
                sorted.sort_by(f64::total_cmp);
                let n = sorted.len();
                let want = f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]);
                assert!((running.median() - want).abs() < 1e-12, "{modulus} {i}");
            }
        }
    }

    /// Against the definition of Algorithm 17.
    #[test]
    fn window_sums_follow_the_definition() {
        let mut x = 7_u64;
        let ticks: Vec<(Mark, f64)> = (0..400)
            .map(|i| {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(11);
                let mark = match (i, x >> 61) {
                    (0, _) | (_, 0) => Mark::Opened,
                    (_, 1) => Mark::Alone,
                    _ => Mark::Joined,
                };
                (mark, ((x >> 40) % 19) as f64)
            })
            .collect();
        for w in [1, 2, 3, 10, 64] {
            let mut smoother = WindowSumSmoother::new(w);
            let mut groups: Vec<Vec<f64>> = Vec::new();
            for (t, (mark, noisy)) in ticks.iter().enumerate() {
                if *mark != Mark::Joined {
                    groups.push(Vec::new());
                }
                groups.last_mut().unwrap().push(*noisy);
                let mut estimates = Vec::new();
                for g in &groups {
                    let mut m = RunningMedian::default();
                    g.iter().for_each(|v| m.push(*v));
                    estimates.extend(vec![m.median(); g.len()]);
                }
                let want: f64 = estimates.iter().rev().take(w as usize).sum();
                let got = smoother.push(*mark, *noisy);
                assert!((got - want).abs() < 1e-9, "{w} {t}: {got} {want}");
            }
        }
    }
}
