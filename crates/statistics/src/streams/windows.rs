//! Sums over sliding windows and alarms, from estimates and noisy counts.

use std::collections::VecDeque;

use super::bank::Cells;

/// The last values of a series with their sum over a window.
#[derive(Clone, Debug)]
struct Window {
    values: VecDeque<f64>,
    length: usize,
    sum: f64,
}

impl Window {
    fn new(length: usize) -> Self {
        Self {
            values: VecDeque::new(),
            length: length.max(1),
            sum: 0.0,
        }
    }

    fn push(&mut self, value: f64) {
        if self.values.len() == self.length {
            self.sum -= self.values.pop_front().unwrap_or(0.0);
        }
        self.values.push_back(value);
        self.sum += value;
    }
}

/// Window sums that weigh the sum of posterior means against the unsmoothed sum of noisy counts.
///
/// x = sm + B/(B + v)·(raw − sm), where v is the known variance of raw and B the estimated squared bias of sm
/// (a slow average of (raw − sm)² − v, at least 0); then x is kept within raw ± κ√v. So the bias that smoothing adds up
/// over long windows is bounded by a multiple of the noise of plain sums.
#[derive(Clone, Debug)]
pub struct BlendedSum {
    raw: Window,
    smooth: Window,
    noise: Noisiness,
    excess: f64,
    keep: f64,
    reach: f64,
}

/// The variance of the noise in a window.
#[derive(Clone, Debug)]
enum Noisiness {
    /// The same at all times.
    Constant(f64),
    /// Of those ticks that have any, by tick.
    ByTick(Window),
}

impl BlendedSum {
    /// Sums over `window` ticks; `variance` is that of the noise of one count.
    pub fn new(window: usize, variance: f64) -> Self {
        Self::with(window, |w| Noisiness::Constant(w.length as f64 * variance))
    }

    /// Sums over `window` ticks of a node of a hierarchy, whose noise changes from tick to tick
    /// ([`BlendedSum::push_measured`]).
    ///
    /// ```
    /// use reticent_statistics::streams::BlendedSum;
    ///
    /// let mut sums = BlendedSum::by_tick(3);
    /// // measured with variance 200, left out twice, measured again
    /// let ticks = [(Some(31), 200.0, 20.0), (None, 0.0, 0.0), (None, 0.0, 0.0), (Some(12), 200.0, 18.0)];
    /// let found = ticks.map(|(noisy, variance, mean)| sums.push_measured(noisy, variance, mean));
    /// assert!(found[2] >= 20.0 && found[2] <= 31.0 && found[3] <= 18.0);
    /// ```
    pub fn by_tick(window: usize) -> Self {
        Self::with(window, |w| Noisiness::ByTick(w.clone()))
    }

    fn with(window: usize, noise: impl Fn(&Window) -> Noisiness) -> Self {
        let raw = Window::new(window);
        let window = raw.length;
        let w = window as f64;
        Self {
            noise: noise(&raw),
            smooth: raw.clone(),
            raw,
            excess: 0.0,
            keep: 1.0 - 1.0 / (20.0 * w),
            reach: if window < 32 { 1.5 } else { 1.0 },
        }
    }

    /// The sum of the window that ends here. `noisy` as released, negative values included.
    pub fn push(&mut self, noisy: i64, mean: f64) -> f64 {
        self.push_measured(Some(noisy), 0.0, mean)
    }

    /// The same where a tick may be without a measurement (its mean then stands on both sides), and where the variance
    /// of its noise changes if the sum was made [`BlendedSum::by_tick`].
    pub fn push_measured(&mut self, noisy: Option<i64>, variance: f64, mean: f64) -> f64 {
        self.raw.push(noisy.map_or(mean, |z| z as f64));
        self.smooth.push(mean);
        let variance = match &mut self.noise {
            Noisiness::Constant(whole) => *whole,
            Noisiness::ByTick(window) => {
                window.push(noisy.map_or(0.0, |_| variance));
                window.sum.max(0.0)
            }
        };
        let (raw, smooth) = (self.raw.sum, self.smooth.sum);
        let off = raw - smooth;
        self.excess = self.keep * self.excess + (1.0 - self.keep) * (off * off - variance);
        let bias = self.excess.max(0.0);
        let sd = variance.sqrt();
        let blended = if bias + variance > 0.0 {
            smooth + bias / (bias + variance) * off
        } else {
            raw
        };
        blended.clamp(raw - self.reach * sd, raw + self.reach * sd)
    }

    /// The sum of noisy counts and the sum of means.
    pub fn parts(&self) -> (f64, f64) {
        (self.raw.sum, self.smooth.sum)
    }
}

/// A function of the estimates of a window, oldest first.
pub type Score = std::sync::Arc<dyn Fn(&[f64]) -> f64 + Send + Sync>;

/// What is watched (thesis §5.2.2: a function of the last w counts, compared with a threshold δ).
#[derive(Clone)]
pub enum Watch {
    /// |c_t − c_{t−w+1}| ≥ δ.
    JumpOrDrop,
    /// Σ of the window < δ.
    LowSignal,
    /// Any function of the window (oldest first), and whether high or low values raise the alarm.
    Window(Score, Side),
}

/// Which side of the threshold raises an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// f ≥ δ.
    AtLeast,
    /// f < δ.
    Below,
}

/// The state of an alarm at a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alarm {
    /// f of the window.
    pub score: f64,
    /// Whether δ is passed.
    pub raised: bool,
}

/// An event monitor EM(s, w, f, B) on estimates; silent until the window is full.
///
/// ```
/// use reticent_statistics::streams::{Monitor, Watch};
///
/// let mut jumps = Monitor::new(Watch::JumpOrDrop, 2, 10.0);
/// let raised: Vec<bool> = [3.0, 4.0, 20.0, 19.0].iter().map(|c| jumps.push(*c).raised).collect();
/// assert_eq!(raised, [false, false, true, false]);
/// ```
#[derive(Clone)]
pub struct Monitor {
    watch: Watch,
    threshold: f64,
    window: Window,
}

impl Monitor {
    /// Watches windows of `window` ticks for `threshold` δ.
    pub fn new(watch: Watch, window: usize, threshold: f64) -> Self {
        Self {
            watch,
            threshold,
            window: Window::new(window),
        }
    }

    /// Takes in the estimate of a tick.
    pub fn push(&mut self, estimate: f64) -> Alarm {
        self.window.push(estimate);
        let window = &self.window;
        if window.values.len() < window.length {
            return Alarm {
                score: 0.0,
                raised: false,
            };
        }
        let ends = (window.values.front(), window.values.back());
        let (score, side) = match &self.watch {
            Watch::JumpOrDrop => {
                let (first, last) = (ends.0.unwrap_or(&0.0), ends.1.unwrap_or(&0.0));
                ((last - first).abs(), Side::AtLeast)
            }
            Watch::LowSignal => (window.values.iter().sum(), Side::Below),
            Watch::Window(f, side) => {
                let values: Vec<f64> = window.values.iter().copied().collect();
                (f(&values), *side)
            }
        };
        let raised = match side {
            Side::AtLeast => score >= self.threshold,
            Side::Below => score < self.threshold,
        };
        Alarm { score, raised }
    }
}

/// The jump score of the bank: the posterior probability that the count differs from that of w − 1 ticks before by at
/// least δ, from the posterior of each of the two ticks when it was measured.
///
/// The two are taken as independent given what was released. Counts are spread evenly over the integers of a cell, so
/// every pair of cells has a closed form, and pairs of cells that are near or far for sure need none.
///
/// ```
/// use reticent_statistics::streams::{Bank, JumpProbability, Kernel, Size};
///
/// let cells = Size::Large.cells();
/// let noise = Kernel::new(&cells, 2.0);
/// let (mut bank, mut jump) = (Bank::new(Size::Large, None), JumpProbability::new(&cells, 2, 20.0));
/// let mut score = 0.0;
/// for noisy in [9, 11, 10, 12, 9, 10, 11, 60] {
///     bank.observe(noisy, &noise);
///     score = jump.push(bank.posterior());
/// }
/// assert!(score > 0.5);
/// ```
#[derive(Clone, Debug)]
pub struct JumpProbability {
    bounds: Vec<(f64, f64)>,
    delta: f64,
    window: usize,
    /// Posteriors of the window, oldest first.
    past: VecDeque<Vec<f32>>,
}

impl JumpProbability {
    /// For windows of `window` ticks (at least 2) and the jump δ.
    pub fn new(cells: &Cells, window: usize, delta: f64) -> Self {
        let ends = cells.bounds().iter();
        Self {
            bounds: ends.map(|c| (c.0 as f64, c.1 as f64)).collect(),
            // counts are whole numbers
            delta: delta.ceil().max(1.0),
            window: window.max(2),
            past: VecDeque::new(),
        }
    }

    /// The probability after a tick with this posterior ([`Bank::posterior`](super::Bank::posterior)); 0 until the
    /// window is full.
    pub fn push(&mut self, posterior: &[f32]) -> f64 {
        let mut row = if self.past.len() == self.window {
            self.past.pop_front().unwrap_or_default()
        } else {
            Vec::new()
        };
        row.clear();
        row.extend_from_slice(posterior);
        self.past.push_back(row);
        match self.past.front() {
            Some(first) if self.past.len() == self.window => {
                self.above(first, posterior) + self.above(posterior, first)
            }
            _ => 0.0,
        }
    }

    /// P(X − Y ≥ δ) for X by `high` and Y by `low`.
    fn above(&self, low: &[f32], high: &[f32]) -> f64 {
        let mut total = 0.0;
        // cells of Y before `far` are at least δ below every number of the present cell of X
        let (mut far, mut below) = (0, 0.0);
        for (x, p) in self.bounds.iter().zip(high) {
            while far < self.bounds.len() && self.bounds[far].1 + self.delta <= x.0 {
                below += f64::from(low[far]);
                far += 1;
            }
            let mut mass = below;
            for (y, q) in self.bounds.iter().zip(low).skip(far) {
                if y.0 + self.delta > x.1 {
                    break;
                }
                mass += f64::from(*q) * reaching(*x, (y.0 + self.delta, y.1 + self.delta));
            }
            total += f64::from(*p) * mass;
        }
        total.clamp(0.0, 1.0)
    }
}

/// P(X ≥ Y) for independent X and Y, each even over the whole numbers of an interval.
fn reaching(x: (f64, f64), y: (f64, f64)) -> f64 {
    // pairs with X ≤ B, Y ≥ C and X ≥ Y: 1 + 2 + … + n, n = B − C + 1
    let pairs = |b: f64, c: f64| {
        let n = (b - c + 1.0).max(0.0);
        0.5 * n * (n + 1.0)
    };
    let (b, d) = (x.0 - 1.0, y.1 + 1.0);
    let all = pairs(x.1, y.0) - pairs(b, y.0) - pairs(x.1, d) + pairs(b, d);
    all / ((x.1 - b) * (d - y.0))
}

/// The low-signal score of the bank: the sum of posterior means, for long windows kept within one standard deviation
/// of the unsmoothed sum.
pub fn low_signal_score(parts: (f64, f64), window: usize, variance: f64) -> f64 {
    let (raw, smooth) = parts;
    if window <= 64 {
        return smooth;
    }
    let sd = (window as f64 * variance).sqrt();
    smooth.clamp(raw - sd, raw + sd)
}

/// Area under the ROC curve of scores against truth: the chance that an event scores above a non-event, ties half.
/// `None` when one of the two kinds is missing.
pub fn area(scores: &[f64], truth: &[bool]) -> Option<f64> {
    let mut pairs: Vec<(f64, bool)> = scores.iter().copied().zip(truth.iter().copied()).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let events = pairs.iter().filter(|p| p.1).count() as f64;
    let others = pairs.len() as f64 - events;
    if events == 0.0 || others == 0.0 {
        return None;
    }
    let (mut at, mut below, mut total) = (0, 0.0, 0.0);
    while at < pairs.len() {
        let same = pairs[at..]
            .iter()
            .take_while(|p| p.0 <= pairs[at].0)
            .count();
        let hits = pairs[at..at + same].iter().filter(|p| p.1).count() as f64;
        let misses = same as f64 - hits;
        total += hits * (below + 0.5 * misses);
        below += misses;
        at += same;
    }
    Some(total / (events * others))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: exact means give the sum of means; means that are always 0 are found out.
    #[test]
    fn blending_follows_the_bias() {
        let mut exact = BlendedSum::new(4, 2.0);
        let mut wrong = BlendedSum::new(4, 2.0);
        let (mut a, mut b) = (0.0, 0.0);
        for t in 0..4000_i64 {
            let noisy = 50 + [1, -1, 0, 2, -2][(t % 5) as usize];
            a = exact.push(noisy, 50.0);
            b = wrong.push(noisy, 0.0);
        }
        assert!((a - 200.0).abs() < 1.5, "{a}");
        // raw ± 1.5 √8
        assert!((b - 200.0).abs() < 2.0 + 1.5 * 8.0_f64.sqrt(), "{b}");
        let first = BlendedSum::new(1, 0.0).push(7, 3.0);
        assert!((first - 7.0).abs() < 1e-12);
    }

    /// With the same variance in every tick the two forms agree once the window is full and the start is forgotten;
    /// ticks without a measurement add no noise and their mean counts on both sides.
    #[test]
    fn noise_by_tick_is_that_of_the_window() {
        let (mut constant, mut by_tick) = (BlendedSum::new(4, 2.0), BlendedSum::by_tick(4));
        let (mut a, mut b) = (0.0, 0.0);
        for t in 0..4000_i64 {
            let noisy = 50 + [1, -1, 0, 2, -2][(t % 5) as usize];
            a = constant.push(noisy, 20.0);
            b = by_tick.push_measured(Some(noisy), 2.0, 20.0);
        }
        assert!((a - b).abs() < 1e-6, "{a} {b}");
        for _ in 0..4 {
            b = by_tick.push_measured(None, 9.0, 5.0);
        }
        assert!((b - 20.0).abs() < 1e-9, "{b}");
    }

    #[test]
    fn monitors_follow_their_definitions() {
        let counts = [5.0, 1.0, 0.0, 0.0, 9.0, 9.0];
        let mut low = Monitor::new(Watch::LowSignal, 3, 6.5);
        let raised: Vec<bool> = counts.iter().map(|c| low.push(*c).raised).collect();
        assert_eq!(raised, [false, false, true, true, false, false]);
        let largest = |w: &[f64]| w.iter().copied().fold(0.0, f64::max);
        let watch = Watch::Window(std::sync::Arc::new(largest), Side::AtLeast);
        let mut high = Monitor::new(watch, 2, 9.0);
        let raised: Vec<bool> = counts.iter().map(|c| high.push(*c).raised).collect();
        assert_eq!(raised, [false, false, false, false, true, true]);
    }

    /// Against the sum over pairs of integers, for posteriors that are even within cells.
    #[test]
    fn jump_probabilities_are_those_of_the_integers() {
        let cells = Cells::up_to(40);
        let n = cells.len();
        let posterior = |seed: usize| -> Vec<f32> {
            let each: Vec<f32> = (0..n).map(|k| ((k * seed) % 7 + 1) as f32).collect();
            let sum: f32 = each.iter().sum();
            each.iter().map(|p| p / sum).collect()
        };
        let (a, b) = (posterior(3), posterior(5));
        let spread = |p: &[f32]| -> Vec<(f64, f64)> {
            let each = cells.bounds().iter().zip(p);
            each.flat_map(|((low, high), p)| {
                let width = (high - low + 1) as f64;
                (*low..=*high).map(move |c| (c as f64, f64::from(*p) / width))
            })
            .collect()
        };
        for delta in [1.0, 3.0, 10.0, 200.0] {
            let mut jump = JumpProbability::new(&cells, 2, delta);
            assert!(jump.push(&a) <= 0.0);
            let got = jump.push(&b);
            let mut want = 0.0;
            for (x, p) in spread(&a) {
                for (y, q) in spread(&b) {
                    want += if (x - y).abs() >= delta { p * q } else { 0.0 };
                }
            }
            assert!((got - want).abs() < 1e-6, "{delta}: {got} {want}");
        }
    }

    #[test]
    fn areas_count_pairs() {
        let area = |s: &[f64], t: &[bool]| area(s, t).unwrap();
        assert!((area(&[1.0, 2.0, 3.0], &[false, true, true]) - 1.0).abs() < 1e-12);
        assert!((area(&[1.0, 1.0], &[false, true]) - 0.5).abs() < 1e-12);
        assert!((area(&[3.0, 1.0, 2.0, 2.0], &[true, false, true, false]) - 0.875).abs() < 1e-12);
        assert!(super::area(&[1.0], &[true]).is_none());
    }
}
