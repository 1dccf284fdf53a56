//! A bank of Bayesian filters: the estimate of a count from all noisy counts so far.
//!
//! Everything here reads noisy counts only. The count lives in integer cells; each model says how it moves from tick
//! to tick (stay, a short step, a jump to a profile of where counts have been), each has its own posterior, and the
//! models are weighted by how well they predicted. Constants: `beyond.md` of the design documents, "§11 revised".

use std::sync::Arc;

/// Integer intervals that cover 0..: 0 to 5 one by one, then width a/6; the last one is open upward.
#[derive(Clone, Debug, PartialEq)]
pub struct Cells {
    bounds: Vec<(i64, i64)>,
}

impl Cells {
    /// Cells whose lower ends go up to `cap`.
    pub fn up_to(cap: i64) -> Self {
        let mut bounds: Vec<(i64, i64)> = (0..6).map(|k| (k, k)).collect();
        let mut low = 6;
        while low <= cap {
            // a/6 rounded, halves to even
            let (whole, rest) = (low / 6, low % 6);
            let up = rest > 3 || (rest == 3 && whole % 2 == 1);
            let width = (whole + i64::from(up)).max(1);
            bounds.push((low, low + width - 1));
            low += width;
        }
        Self { bounds }
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.bounds.len()
    }

    /// Whether there are none (never).
    pub fn is_empty(&self) -> bool {
        self.bounds.is_empty()
    }

    /// Lower and upper end of each.
    pub fn bounds(&self) -> &[(i64, i64)] {
        &self.bounds
    }

    /// The cell of a value; values beyond the ends belong to the end cells.
    fn of(&self, value: i64) -> usize {
        self.bounds
            .partition_point(|c| c.1 < value)
            .min(self.len() - 1)
    }
}

/// The law of the noise on the cells: what depends on the scale alone. Shared by all series of a scale.
#[derive(Clone, Debug)]
pub struct Kernel {
    cells: Arc<Cells>,
    /// 1/scale.
    rate: f64,
    /// r = e^{−1/scale}.
    r: f64,
    /// r^w per cell of width w.
    power: Vec<f64>,
    /// (1 − r^w)/w per cell.
    weight: Vec<f64>,
    /// Mean distance from the near end of a cell, under the law cut to the cell.
    inward: Vec<f64>,
}

impl Kernel {
    /// For discrete Laplace noise of this scale (positive).
    pub fn new(cells: &Arc<Cells>, scale: f64) -> Self {
        let rate = 1.0 / scale.max(1e-300);
        let r = (-rate).exp();
        let widths = cells.bounds.iter().map(|c| (c.1 - c.0 + 1) as f64);
        let power: Vec<f64> = widths.clone().map(|w| (-w * rate).exp()).collect();
        let weight = widths.clone().map(|w| -(-w * rate).exp_m1() / w).collect();
        let inward = widths.map(|w| geometric_mean(w, rate)).collect();
        Self {
            cells: Arc::clone(cells),
            rate,
            r,
            power,
            weight,
            inward,
        }
    }

    /// The cells it is for.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Likelihood of every cell given the noisy count, up to a factor; the largest is 1. Returns z's cell.
    fn likelihood(&self, z: i64, out: &mut [f32]) -> usize {
        let bounds = &self.cells.bounds;
        let last = bounds.len() - 1;
        let home = self.cells.of(z);
        let (a, b) = bounds[home];
        let s = 1.0 + self.r;
        let width = (b - a + 1) as f64;
        // relative to the point of the cells nearest to z, so nothing underflows at once
        let here = if z < a || z > b {
            self.weight[home] / s
        } else {
            let (left, right) = ((z - a + 1) as f64, (b - z + 1) as f64);
            let cut = ((-left * self.rate).exp() + (-right * self.rate).exp()) / s;
            (1.0 - cut) / width
        };
        let mut values = [0.0_f64; MOST];
        let values = &mut values[..=last];
        values[home] = here;
        let mut power = if z > a {
            (-((z.min(b) - a) as f64) * self.rate).exp()
        } else {
            1.0
        };
        power *= self.r;
        for k in (0..home).rev() {
            values[k] = power * self.weight[k] / s;
            power *= self.power[k];
        }
        let mut power = if z < b {
            (-((b - z.max(a)) as f64) * self.rate).exp()
        } else {
            1.0
        };
        power *= self.r;
        let above = values.iter_mut().zip(&self.weight).zip(&self.power);
        for ((value, weight), step) in above.skip(home + 1) {
            *value = power * weight / s;
            power *= step;
        }
        let top = values.iter().copied().fold(0.0, f64::max);
        for (out, value) in out.iter_mut().zip(values.iter()) {
            *out = if top > 0.0 { (value / top) as f32 } else { 0.0 } + 1e-20;
        }
        if top <= 0.0 {
            out[home] = 1.0;
        }
        home
    }

    /// The smallest integer of cell k at which the law, cut to the cell, reaches `fraction`.
    fn within(&self, k: usize, z: i64, fraction: f64) -> i64 {
        let (a, b) = self.cells.bounds[k];
        if k + 1 == self.cells.len() && z > b {
            return z;
        }
        let z = z.clamp(a, b);
        // (1 − r)·Σ_{c=a}^{x} r^|c−z|, from G(n) = (1 − r)·Σ_{j<n} r^j = 1 − r^n
        let geometric = |n: i64| -(-(n as f64) * self.rate).exp_m1();
        let mass = |x: i64| {
            if x < z {
                (-((z - x) as f64) * self.rate).exp() * geometric(x - a + 1)
            } else {
                geometric(z - a + 1) + self.r * geometric(x - z)
            }
        };
        let goal = fraction * mass(b);
        let (mut low, mut high) = (a, b);
        while low < high {
            let middle = low + (high - low) / 2;
            if mass(middle) >= goal {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    fn width(&self, k: usize) -> f64 {
        let (a, b) = self.cells.bounds[k];
        (b - a + 1) as f64
    }

    /// Mean of the law cut to cell k.
    fn mean(&self, k: usize, z: i64) -> f64 {
        let (a, b) = self.cells.bounds[k];
        if z < a {
            return a as f64 + self.inward[k];
        }
        if z > b {
            return if k + 1 == self.cells.len() {
                z as f64
            } else {
                b as f64 - self.inward[k]
            };
        }
        let (left, right) = ((z - a + 1) as f64, (b - z) as f64);
        let geometric = |n: f64| -(-n * self.rate).exp_m1();
        let (down, up) = (geometric(left), self.r * geometric(right));
        let pull =
            up * (1.0 + geometric_mean(right, self.rate)) - down * geometric_mean(left, self.rate);
        z as f64 + pull / (down + up)
    }
}

/// Mean of j in 0..w with weights e^{−j·rate}.
fn geometric_mean(w: f64, rate: f64) -> f64 {
    if w <= 1.0 {
        return 0.0;
    }
    if w * rate < 1e-4 {
        return 0.5 * (w - 1.0) - rate * (w * w - 1.0) / 12.0;
    }
    1.0 / rate.exp_m1() - w / (w * rate).exp_m1()
}

/// Where counts jump to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Profile {
    /// Long-run average of the posterior.
    Global,
    /// Nearly always zero; fixed.
    Zero,
    /// Average at this slot of the season.
    Season,
    /// Average of the recent posterior, at one of three rates.
    Local(usize),
}

const LOCAL_RATES: [f32; 3] = [0.3, 0.1, 0.02];

/// A model: (profile, share of short steps, their decay, share of jumps).
type Model = (Profile, f32, f32, f32);

use Profile::{Global, Local, Season, Zero};

#[rustfmt::skip]
const LARGE: [Model; 30] = [
    (Global, 0.02, 0.4, 0.002), (Global, 0.1, 0.4, 0.01), (Global, 0.3, 0.5, 0.01), (Global, 0.6, 0.6, 0.03),
    (Global, 0.9, 0.7, 0.05), (Global, 0.9, 0.85, 0.05), (Global, 0.005, 0.3, 0.0005), (Global, 0.1, 0.3, 0.001),
    (Global, 0.0, 0.0, 1.0),
    (Season, 0.02, 0.4, 0.002), (Season, 0.1, 0.4, 0.01), (Season, 0.3, 0.5, 0.01), (Season, 0.6, 0.6, 0.03),
    (Season, 0.9, 0.7, 0.05), (Season, 0.9, 0.85, 0.05), (Season, 0.005, 0.3, 0.0005), (Season, 0.1, 0.3, 0.001),
    (Season, 0.1, 0.5, 0.2), (Season, 0.3, 0.6, 0.4), (Season, 0.3, 0.7, 0.6), (Season, 0.0, 0.0, 1.0),
    (Zero, 0.02, 0.4, 0.0005), (Zero, 0.1, 0.4, 0.003), (Zero, 0.0, 0.0, 1e-4), (Zero, 0.0, 0.0, 1e-6),
    (Local(0), 0.0, 0.0, 1.0), (Local(1), 0.0, 0.0, 1.0), (Local(2), 0.0, 0.0, 1.0),
    (Local(0), 0.3, 0.6, 0.5), (Local(1), 0.3, 0.6, 0.5),
];

#[rustfmt::skip]
const SMALL: [Model; 16] = [
    (Global, 0.02, 0.4, 0.002), (Global, 0.1, 0.3, 0.001), (Global, 0.3, 0.5, 0.01), (Global, 0.9, 0.7, 0.05),
    (Season, 0.02, 0.4, 0.002), (Season, 0.1, 0.3, 0.001), (Season, 0.3, 0.5, 0.01), (Season, 0.9, 0.7, 0.05),
    (Season, 0.3, 0.6, 0.4), (Season, 0.0, 0.0, 1.0),
    (Zero, 0.02, 0.4, 0.0005), (Zero, 0.0, 0.0, 1e-4), (Zero, 0.0, 0.0, 1e-6),
    (Global, 0.0, 0.0, 1.0), (Local(0), 0.0, 0.0, 1.0), (Local(1), 0.0, 0.0, 1.0),
];

#[rustfmt::skip]
const NODE: [Model; 8] = [
    (Global, 0.02, 0.4, 0.002), (Global, 0.1, 0.3, 0.001), (Global, 0.3, 0.5, 0.01), (Global, 0.9, 0.7, 0.05),
    (Global, 0.0, 0.0, 1.0),
    (Zero, 0.02, 0.4, 0.0005), (Zero, 0.0, 0.0, 1e-4),
    (Local(1), 0.3, 0.6, 0.5),
];

/// Which models a filter runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// 30 models (18 without a season) on 72 cells: the default up to a thousand series.
    Large,
    /// 16 models (10 without a season) on 72 cells, at most 48 slots.
    Small,
    /// 8 models on 49 cells: the nodes of a hierarchy, and more than a thousand series.
    Node,
}

impl Size {
    fn models(self) -> &'static [Model] {
        match self {
            Self::Large => &LARGE,
            Self::Small => &SMALL,
            Self::Node => &NODE,
        }
    }

    /// Slots of a season at most; a longer season has several ticks in a slot.
    fn most_slots(self) -> usize {
        match self {
            Self::Small => 48,
            _ => usize::MAX,
        }
    }

    /// The cells of the bank.
    pub fn cells(self) -> Arc<Cells> {
        Arc::new(Cells::up_to(match self {
            Self::Node => 4096,
            _ => 131_072,
        }))
    }
}

/// The estimate of one tick.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Posterior median: what is published.
    pub median: i64,
    /// Posterior mean: for sums and alarms.
    pub mean: f64,
    /// Posterior variance: for weighing estimates against each other.
    pub variance: f64,
}

/// The filters of one series. Fixed memory; a function of the noisy counts alone, so it is never stored but replayed.
///
/// ```
/// use std::sync::Arc;
/// use reticent_statistics::streams::{Bank, Kernel, Size};
///
/// let cells = Size::Large.cells();
/// let noise = Kernel::new(&cells, 10.0); // discrete Laplace of scale 10: epsilon = 0.1
/// let mut bank = Bank::new(Size::Large, None);
/// let noisy = [23, 11, 31, 25, 4, 19, 22, 40, 17, 24, 20, 28, 9, 22, 21, 18];
/// let last = noisy.map(|z| bank.observe(z, &noise)).last().copied().unwrap();
/// assert!((last.mean - 20.0).abs() < 6.0);
/// ```
#[derive(Clone, Debug)]
pub struct Bank(Lanes);

#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "the lanes are on the heap; the weights differ by 96 bytes"
)]
enum Lanes {
    Wide(Core<32>),
    Middle(Core<16>),
    Narrow(Core<8>),
}

macro_rules! each {
    ($bank:expr, $core:ident => $body:expr) => {
        match $bank {
            Lanes::Wide($core) => $body,
            Lanes::Middle($core) => $body,
            Lanes::Narrow($core) => $body,
        }
    };
}

impl Bank {
    /// A bank that has seen nothing. `season` is the number of ticks after which counts are expected to repeat
    /// (a day, a week); without one the models of the season are left out.
    pub fn new(size: Size, season: Option<usize>) -> Self {
        let season = season.filter(|s| *s > 1);
        Self(match size {
            Size::Large => Lanes::Wide(Core::new(size, season)),
            Size::Small => Lanes::Middle(Core::new(size, season)),
            Size::Node => Lanes::Narrow(Core::new(size, None)),
        })
    }

    /// Predicts, takes in the noisy count, estimates.
    pub fn observe(&mut self, noisy: i64, kernel: &Kernel) -> Estimate {
        each!(&mut self.0, core => core.observe(noisy, kernel))
    }

    /// A tick without a measurement: the prediction step alone.
    pub fn pass(&mut self) {
        each!(&mut self.0, core => core.pass());
    }

    /// Mean of the present belief, by cell middles.
    pub fn belief(&mut self, cells: &Cells) -> f64 {
        each!(&mut self.0, core => core.belief(cells))
    }

    /// Posterior probability that the count of the last measured tick is below a number (cells cut evenly).
    pub fn probability_below(&self, number: f64, cells: &Cells) -> f64 {
        each!(&self.0, core => core.below(number, cells))
    }

    /// The posterior of the last measured tick, by cell: the mixture over the models.
    pub fn posterior(&self) -> &[f32] {
        each!(&self.0, core => &core.mixture)
    }

    /// Bytes of one bank.
    pub fn bytes(&self) -> usize {
        each!(&self.0, core => core.bytes())
    }
}

/// Weight of uniform in a profile; in the zero profile.
const SPREAD: (f32, f32) = (2e-4, 2e-5);
/// Share of the weights that returns to the start every tick.
const RETURN: f32 = 1e-5;
/// Keeps joint probabilities above the subnormal range, where arithmetic is slow.
const FLOOR: f32 = 1e-18;
/// Most cells of any bank.
const MOST: usize = 96;

#[derive(Clone, Debug)]
struct Core<const L: usize> {
    profile: [u8; L],
    stay: [f32; L],
    step: [f32; L],
    decay: [f32; L],
    jump: [f32; L],
    start: [f32; L],
    weight: [f32; L],
    /// Posterior per cell and model.
    belief: Vec<[f32; L]>,
    /// Mixture over the models.
    mixture: Vec<f32>,
    global: Vec<f32>,
    locals: [Vec<f32>; 3],
    slots: Vec<f32>,
    visits: Vec<u32>,
    /// Ticks of the season; a slot may hold several.
    season: usize,
    tick: usize,
}

fn lively(cells: usize) -> Vec<f32> {
    let mut q = vec![0.7 / (cells - 1) as f32; cells];
    q[0] = 0.3;
    q
}

fn at_zero(cells: usize) -> Vec<f32> {
    let mut q = vec![0.01 / (cells - 1) as f32; cells];
    q[0] = 0.99;
    q
}

impl<const L: usize> Core<L> {
    fn new(size: Size, season: Option<usize>) -> Self {
        let n = size.cells().len();
        let models: Vec<Model> = size
            .models()
            .iter()
            .copied()
            .filter(|m| season.is_some() || m.0 != Season)
            .collect();
        let zeros = models.iter().filter(|m| m.0 == Zero).count() as f32;
        let others = models.len() as f32 - zeros;
        let (mut profile, mut used) = ([0_u8; L], [false; 3]);
        let [mut stay, mut step, mut decay, mut jump, mut start] = [[0.0_f32; L]; 5];
        let mut belief = vec![[0.0_f32; L]; n];
        let (lively, zero) = (lively(n), at_zero(n));
        for (l, (from, share, alpha, jumps)) in models.iter().enumerate() {
            profile[l] = match from {
                Global => 0,
                Zero => 1,
                Season => 2,
                Local(i) => {
                    used[*i] = true;
                    3 + *i as u8
                }
            };
            stay[l] = 1.0 - share - jumps;
            step[l] = share * (1.0 - alpha) / (1.0 + alpha);
            (decay[l], jump[l]) = (*alpha, *jumps);
            start[l] = if *from == Zero {
                0.8 / zeros
            } else {
                0.2 / others
            };
            let first = if *from == Zero { &zero } else { &lively };
            belief.iter_mut().zip(first).for_each(|(b, q)| b[l] = *q);
        }
        let season = season.unwrap_or(0);
        let slots = season.min(size.most_slots());
        Self {
            profile,
            stay,
            step,
            decay,
            jump,
            start,
            weight: start,
            belief,
            mixture: lively.clone(),
            locals: used.map(|u| if u { lively.clone() } else { Vec::new() }),
            slots: lively.repeat(slots),
            visits: vec![0; slots],
            season,
            global: lively,
            tick: 0,
        }
    }

    /// The slot of the present tick: the season is cut into slots of (nearly) equal length.
    fn slot(&self) -> Option<usize> {
        let phase = self.tick.checked_rem(self.season)?;
        Some(phase * self.visits.len() / self.season)
    }

    /// Per cell, the masses of the profiles by number, mixed with uniform.
    fn masses(&self) -> [[f32; 8]; MOST] {
        let n = self.belief.len();
        let mix = |q: f32, by: f32| (1.0 - by) * q + by / n as f32;
        let slot = match self.slot() {
            None => &[][..],
            Some(at) => &self.slots[at * n..][..n],
        };
        let [a, b, c] = &self.locals;
        let sources = [&self.global[..], &[], slot, a, b, c];
        let mut out = [[0.0; 8]; MOST];
        for (p, source) in sources.into_iter().enumerate() {
            for (row, q) in out.iter_mut().zip(source) {
                row[p] = mix(*q, SPREAD.0);
            }
        }
        for (k, row) in out[..n].iter_mut().enumerate() {
            let q = if k == 0 { 0.99 } else { 0.01 / (n - 1) as f32 };
            row[1] = mix(q, SPREAD.1);
        }
        out
    }

    /// Prediction times likelihood, in place; returns each lane's total and leaves the weighted mixture behind.
    fn predict(&mut self, likelihood: &[f32]) -> [f32; L] {
        let n = self.belief.len();
        let masses = self.masses();
        let profile = self.profile.map(|p| usize::from(p) & 7);
        let (decay, stay, step) = (self.decay, self.stay, self.step);
        let (jump, weight) = (self.jump, self.weight);
        let mut back = [[0.0_f32; L]; MOST];
        let back = &mut back[..n];
        let mut run = [0.0_f32; L];
        for (row, b) in back.iter_mut().zip(&self.belief).rev() {
            for l in 0..L {
                run[l] = decay[l] * run[l] + b[l];
            }
            *row = run;
        }
        // steps beyond the lowest cell end there; likewise, below, beyond the highest
        let beyond = |run: &[f32; L]| -> [f32; L] {
            std::array::from_fn(|l| decay[l] / (1.0 - decay[l]) * run[l])
        };
        let mut edge = beyond(&run);
        let mut forward = [0.0_f32; L];
        let mut totals = [0.0_f32; L];
        let rows = self.belief.iter_mut().zip(back.iter()).zip(&masses);
        for (k, ((b, back), masses)) in rows.enumerate() {
            let q: [f32; L] = std::array::from_fn(|l| masses[profile[l]]);
            for l in 0..L {
                forward[l] = decay[l] * forward[l] + b[l];
            }
            if k + 1 == n {
                edge = beyond(&forward);
            }
            let seen = likelihood[k];
            let mut joint = [0.0_f32; L];
            for l in 0..L {
                let near = forward[l] + back[l] - b[l] + edge[l];
                let ahead = stay[l] * b[l] + step[l] * near + jump[l] * q[l];
                joint[l] = ahead * seen + FLOOR;
                totals[l] += joint[l];
            }
            *b = joint;
            if k == 0 {
                edge = [0.0; L];
            }
            // eight running sums, so that additions do not wait for each other
            let mut mixed = [0.0_f32; 8];
            for (joint, weight) in joint.chunks_exact(8).zip(weight.chunks_exact(8)) {
                for i in 0..8 {
                    mixed[i] += weight[i] * joint[i];
                }
            }
            self.mixture[k] = mixed.iter().sum();
        }
        totals
    }

    fn normalise(&mut self, totals: &[f32; L]) {
        let scale = totals.map(|t| 1.0 / t);
        for b in &mut self.belief {
            for l in 0..L {
                b[l] *= scale[l];
            }
        }
        let sum: f32 = self.mixture.iter().sum();
        self.mixture.iter_mut().for_each(|m| *m /= sum);
        self.tick += 1;
    }

    fn observe(&mut self, z: i64, kernel: &Kernel) -> Estimate {
        let n = self.belief.len();
        let mut likelihood = [0.0_f32; MOST];
        kernel.likelihood(z, &mut likelihood[..n]);
        let totals = self.predict(&likelihood[..n]);
        let slot = self.slot();
        let age = self.tick;
        self.normalise(&totals);
        self.weight
            .iter_mut()
            .zip(totals)
            .for_each(|(w, t)| *w *= t);
        let sum: f32 = self.weight.iter().sum();
        for (w, start) in self.weight.iter_mut().zip(self.start) {
            *w = (1.0 - RETURN) * *w / sum + RETURN * start;
        }
        self.learn(age, slot);
        let (mut before, mut median, mut mean, mut square) = (0.0_f64, 0, 0.0, 0.0);
        let mut found = false;
        for (k, p) in self.mixture.iter().enumerate() {
            let p = f64::from(*p);
            let (centre, width) = (kernel.mean(k, z), kernel.width(k));
            mean += p * centre;
            square += p * (centre * centre + (width * width - 1.0) / 12.0);
            if !found && (before + p >= 0.5 || k + 1 == n) {
                found = true;
                median = kernel.within(k, z, ((0.5 - before) / p.max(1e-30)).clamp(0.0, 1.0));
            }
            before += p;
        }
        let variance = (square - mean * mean).max(0.0);
        Estimate {
            median,
            mean,
            variance,
        }
    }

    fn learn(&mut self, age: usize, slot: Option<usize>) {
        let n = self.belief.len();
        let towards = |q: &mut [f32], rate: f32, p: &[f32]| {
            q.iter_mut().zip(p).for_each(|(q, p)| *q += rate * (p - *q));
        };
        towards(
            &mut self.global,
            1.0 / (200 + age).min(20_000) as f32,
            &self.mixture,
        );
        for (q, rate) in self.locals.iter_mut().zip(LOCAL_RATES) {
            towards(q, rate, &self.mixture);
        }
        let Some(slot) = slot else { return };
        let period = self.visits.len();
        let rate = (1.0 / (self.visits[slot] + 2) as f32).max(0.06);
        self.visits[slot] += 1;
        let (reach, share) = if period < 60 {
            (1, 1.0 / 6.0)
        } else {
            (2, 1.0 / 3.0)
        };
        for off in 0..=2 * reach {
            let at = (slot + period * reach + off - reach) % period;
            let rate = if off == reach { rate } else { rate * share };
            towards(&mut self.slots[at * n..][..n], rate, &self.mixture);
        }
    }

    fn pass(&mut self) {
        let ones = [1.0_f32; MOST];
        let totals = self.predict(&ones[..self.belief.len()]);
        self.normalise(&totals);
    }

    fn belief(&mut self, cells: &Cells) -> f64 {
        let middle = |c: &(i64, i64)| f64::midpoint(c.0 as f64, c.1 as f64);
        cells
            .bounds
            .iter()
            .zip(&self.mixture)
            .map(|(c, p)| middle(c) * f64::from(*p))
            .sum()
    }

    fn below(&self, number: f64, cells: &Cells) -> f64 {
        let share =
            |c: &(i64, i64)| ((number - c.0 as f64) / (c.1 - c.0 + 1) as f64).clamp(0.0, 1.0);
        cells
            .bounds
            .iter()
            .zip(&self.mixture)
            .map(|(c, p)| share(c) * f64::from(*p))
            .sum()
    }

    fn bytes(&self) -> usize {
        let floats = self.mixture.len()
            + self.global.len()
            + self.slots.len()
            + self.visits.len()
            + self.locals.iter().map(Vec::len).sum::<usize>();
        std::mem::size_of::<Self>() + self.belief.len() * L * 4 + floats * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_those_of_the_design() {
        for (size, count) in [(Size::Large, 72), (Size::Node, 49)] {
            let cells = size.cells();
            assert_eq!(cells.len(), count);
            let gaps = cells
                .bounds
                .windows(2)
                .filter(|w| w[0].1 + 1 != w[1].0)
                .count();
            assert_eq!(gaps, 0);
            for (k, (a, b)) in cells.bounds.iter().enumerate() {
                assert!(cells.of(*a) == k && cells.of(*b) == k);
            }
        }
        assert_eq!((LARGE.len(), SMALL.len(), NODE.len()), (30, 16, 8));
    }

    /// Likelihoods, means and medians within cells against sums over the integers.
    #[test]
    fn cell_arithmetic_is_that_of_the_integers() {
        let cells = Size::Node.cells();
        for scale in [0.3_f64, 1.0, 10.0, 400.0] {
            let kernel = Kernel::new(&cells, scale);
            let r = (-1.0 / scale).exp();
            for z in [-40_i64, -1, 0, 3, 6, 17, 100, 150, 4200, 4300, 4400] {
                let law = |c: i64| r.powf((c - z).abs() as f64) * (1.0 - r) / (1.0 + r);
                let mut got = vec![0.0; cells.len()];
                kernel.likelihood(z, &mut got);
                let want: Vec<f64> = cells
                    .bounds
                    .iter()
                    .map(|(a, b)| (*a..=*b).map(law).sum::<f64>() / (b - a + 1) as f64)
                    .collect();
                let top = want.iter().copied().fold(0.0, f64::max);
                for k in 0..cells.len() {
                    let (a, b) = cells.bounds[k];
                    if top > 1e-280 {
                        assert!(
                            (f64::from(got[k]) - want[k] / top).abs() < 1e-6,
                            "{scale} {z} {k}"
                        );
                    }
                    // shifted so that nothing underflows
                    let near = z.clamp(a, b);
                    let law = |c: i64| r.powf(((c - z).abs() - (near - z).abs()) as f64);
                    let mass: f64 = (a..=b).map(law).sum();
                    let mean: f64 = (a..=b).map(|c| c as f64 * law(c)).sum::<f64>() / mass;
                    let open = k + 1 == cells.len() && z > b;
                    let mean = if open { z as f64 } else { mean };
                    assert!(
                        (kernel.mean(k, z) - mean).abs() < 1e-6 * (1.0 + mean),
                        "{scale} {z} {k}"
                    );
                    for fraction in [0.01, 0.3, 0.5, 0.77, 1.0] {
                        // inside the cell the count is measured at the nearest end
                        let law = |c: i64| r.powf((c - near).abs() as f64);
                        let mass: f64 = (a..=b).map(law).sum();
                        let mut cdf = 0.0;
                        let want = (a..=b).find(|c| {
                            cdf += law(*c) / mass;
                            cdf >= fraction - 1e-9
                        });
                        let got = kernel.within(k, z, fraction - 1e-9);
                        if open {
                            assert_eq!(got, z);
                        } else {
                            assert!(
                                (got - want.unwrap_or(b)).abs() <= 1,
                                "{scale} {z} {k} {fraction}"
                            );
                        }
                    }
                }
            }
        }
    }

    /// Prediction conserves mass and equals the plain double sum over cells.
    #[test]
    fn prediction_is_the_kernel_of_the_design() {
        let mut core: Core<8> = Core::new(Size::Node, None);
        let n = core.belief.len();
        for b in &mut core.belief {
            *b = [0.0; 8];
        }
        for l in 0..8 {
            core.belief[3][l] = 0.25;
            core.belief[20][l] = 0.75;
        }
        let masses = core.masses();
        let before = core.belief.clone();
        let ones = vec![1.0; n];
        core.predict(&ones);
        for l in 0..8 {
            let a = f64::from(core.decay[l]);
            let (_, share, _, jump) = NODE[l];
            let kernel = |i: usize, j: usize| {
                let inside = (1.0 - a) / (1.0 + a) * a.powi((i as i32 - j as i32).abs());
                let beyond = |d: i32| a.powi(d + 1) / (1.0 + a);
                inside
                    + if i == 0 { beyond(j as i32) } else { 0.0 }
                    + if i == n - 1 {
                        beyond((n - 1 - j) as i32)
                    } else {
                        0.0
                    }
            };
            for i in 0..n {
                let steps: f64 = (0..n).map(|j| kernel(i, j) * f64::from(before[j][l])).sum();
                let q = f64::from(masses[i][usize::from(core.profile[l])]);
                let want = f64::from(1.0 - share - jump) * f64::from(before[i][l])
                    + f64::from(share) * steps
                    + f64::from(jump) * q;
                assert!(
                    (f64::from(core.belief[i][l]) - want).abs() < 1e-6,
                    "{l} {i}"
                );
            }
        }
    }

    /// A season of 288 ticks has 48 slots of six ticks in the small bank, one of 24 has 24, and the large bank all 288.
    #[test]
    fn the_small_bank_has_at_most_48_slots() {
        let slots = |size, season: usize| {
            let mut core: Core<32> = Core::new(size, Some(season));
            let seen: Vec<usize> = (0..2 * season)
                .map(|tick| {
                    core.tick = tick;
                    core.slot().unwrap()
                })
                .collect();
            assert_eq!(seen[..season], seen[season..]);
            (core.visits.len(), seen)
        };
        let (count, seen) = slots(Size::Small, 288);
        assert_eq!(count, 48);
        assert!((0..288).all(|t| seen[t] == t / 6));
        assert_eq!(slots(Size::Small, 24).0, 24);
        assert_eq!(slots(Size::Large, 288).0, 288);
        assert!(Bank::new(Size::Small, Some(1 << 20)).bytes() < 21_000);
        assert!(Core::<16>::new(Size::Small, None).slot().is_none());
    }

    /// Hostile inputs give finite estimates.
    #[test]
    fn extremes_are_survived() {
        let cells = Size::Large.cells();
        for scale in [1e-9, 1.0, 1e9] {
            let kernel = Kernel::new(&cells, scale);
            let mut bank = Bank::new(Size::Large, Some(7));
            for z in [0, i64::MAX / 4, i64::MIN / 4, 5, -5, 131_072, 1 << 40, 0] {
                let e = bank.observe(z, &kernel);
                assert!(
                    e.mean.is_finite() && e.mean >= 0.0 && e.median >= 0,
                    "{scale} {z} {e:?}"
                );
                bank.pass();
            }
        }
    }
}
