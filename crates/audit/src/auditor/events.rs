//! The search for an event that tells two tables apart, on training runs only.
//!
//! Half of the runs train, the other half picks the event among candidates: upper and lower sets of a logistic
//! classifier's score (as DP-Sniper, Bichsel et al. 2021), and sets of outputs by their frequency ratio where there are few
//! different ones (as StatDP, Ding et al. 2018). Whatever comes out, the bound of the audit rests on fresh runs.

use std::collections::{BTreeMap, BTreeSet};

use super::Output;
use crate::alarms::{Hits, lower_limit, upper_limit};

/// A set of outputs.
#[derive(Clone, Debug)]
pub enum Event {
    /// The classifier's score is at least (at most, if `below`) a number.
    Score {
        /// The classifier.
        classifier: Box<Classifier>,
        /// The number.
        level: f64,
        /// Which side.
        below: bool,
    },
    /// The output is one of these.
    Among(BTreeSet<Vec<u64>>),
}

impl Event {
    /// Whether an output belongs to it.
    pub fn holds(&self, output: &[f64]) -> bool {
        match self {
            Self::Score {
                classifier,
                level,
                below,
            } => {
                let score = classifier.score(output);
                if *below {
                    score <= *level
                } else {
                    score >= *level
                }
            }
            Self::Among(set) => set.contains(&key(output)),
        }
    }

    /// In words.
    pub fn describe(&self) -> String {
        match self {
            Self::Score {
                classifier,
                level,
                below,
            } => format!(
                "score of a logistic classifier on {} numbers {} {level:.4}",
                classifier.width,
                if *below { "<=" } else { ">=" },
            ),
            Self::Among(set) => {
                let text = |k: &Vec<u64>| {
                    let numbers: Vec<String> =
                        k.iter().map(|b| f64::from_bits(*b).to_string()).collect();
                    format!("({})", numbers.join(", "))
                };
                let mut shown: Vec<String> = set.iter().take(4).map(text).collect();
                if set.len() > 4 {
                    shown.push(format!("… {} in all", set.len()));
                }
                format!("output among {}", shown.join(" "))
            }
        }
    }
}

/// A learned event.
#[derive(Clone, Debug)]
pub struct Learned {
    /// The event.
    pub event: Event,
    /// Whether it is more likely on the second table.
    pub swapped: bool,
    /// A cautious estimate of the ε it will show.
    pub estimate: f64,
}

fn key(output: &[f64]) -> Vec<u64> {
    output.iter().map(|x| x.to_bits()).collect()
}

/// A logistic classifier of outputs: first table (score up) against second (score down).
#[derive(Clone, Debug)]
pub struct Classifier {
    width: usize,
    centre: Vec<f64>,
    spread: Vec<f64>,
    /// The most frequent value of each number, where few numbers make it worth asking.
    atoms: Vec<f64>,
    weights: Vec<f64>,
}

/// Beyond this many numbers only the numbers themselves are features.
const FEW: usize = 16;
/// Numbers farther than this many spreads from the centre count as this far.
const FAR: f64 = 8.0;

impl Classifier {
    fn prepare(outputs: &[&Output]) -> Self {
        let width = outputs.iter().map(|o| o.len()).max().unwrap_or(0);
        let sample: Vec<&&Output> = outputs
            .iter()
            .step_by((outputs.len() / 4000).max(1))
            .collect();
        let (mut centre, mut spread, mut atoms) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..width {
            let mut values: Vec<f64> = sample
                .iter()
                .map(|o| o.get(i).copied().unwrap_or(0.0))
                .filter(|v| v.is_finite())
                .collect();
            values.sort_by(f64::total_cmp);
            let at = |q: f64| -> f64 {
                #[allow(
                    clippy::cast_precision_loss,
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "an index"
                )]
                let i = (q * values.len().saturating_sub(1) as f64) as usize;
                values.get(i).copied().unwrap_or(0.0)
            };
            let middle = at(0.5);
            // a robust spread; for nearly constant numbers the whole range; 1 for constants
            let spreads = [0.5 * (at(0.84) - at(0.16)), 0.25 * (at(1.0) - at(0.0)), 1.0];
            centre.push(middle);
            spread.push(spreads.into_iter().find(|s| *s > 0.0).unwrap_or(1.0));
            if width <= FEW {
                let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
                for v in &values {
                    *counts.entry(v.to_bits()).or_default() += 1;
                }
                let most = counts.iter().max_by_key(|(_, n)| **n);
                atoms.push(most.map_or(0.0, |(b, _)| f64::from_bits(*b)));
            }
        }
        let features = width + 2 + if width <= FEW { 2 * width } else { 0 };
        Self {
            width,
            centre,
            spread,
            atoms,
            weights: vec![0.0; features],
        }
    }

    /// Constant, length, numbers, and for few numbers their squares and whether each is the most frequent value.
    fn features(&self, output: &[f64], out: &mut Vec<f64>) {
        out.clear();
        out.push(1.0);
        #[allow(clippy::cast_precision_loss, reason = "a length")]
        out.push(output.len() as f64 - self.width as f64);
        for i in 0..self.width {
            let v = output.get(i).copied().unwrap_or(0.0);
            let z = (v - self.centre[i]) / self.spread[i];
            out.push(if z.is_nan() { -FAR } else { z.clamp(-FAR, FAR) });
        }
        for (i, atom) in self.atoms.iter().enumerate() {
            let z = out[2 + i];
            out.push(z * z / FAR);
            let same = output.get(i).is_some_and(|v| v.to_bits() == atom.to_bits());
            out.push(f64::from(u8::from(same)));
        }
    }

    /// The logit.
    pub fn score(&self, output: &[f64]) -> f64 {
        let mut features = Vec::with_capacity(self.weights.len());
        self.features(output, &mut features);
        dot(&self.weights, &features)
    }

    /// From the difference of means, by normalised stochastic gradient steps; the average of the later steps.
    fn train(&mut self, first: &[Output], second: &[Output]) {
        let k = self.weights.len();
        let mut f = Vec::with_capacity(k);
        let mut means = [vec![0.0; k], vec![0.0; k]];
        let mut squares = vec![0.0; k];
        #[allow(clippy::cast_precision_loss, reason = "numbers of runs")]
        let n = first.len().max(1) as f64;
        for (mean, outputs) in means.iter_mut().zip([first, second]) {
            for o in outputs {
                self.features(o, &mut f);
                for ((m, s), x) in mean.iter_mut().zip(&mut squares).zip(&f) {
                    *m += x / n;
                    *s += x * x / (2.0 * n);
                }
            }
        }
        for i in 0..k {
            let centre = 0.5 * (means[0][i] + means[1][i]);
            let variance = (squares[i] - centre * centre).max(1e-6);
            self.weights[i] = (means[0][i] - means[1][i]) / variance;
        }
        // what is only chance in the means drowns in many dimensions less if the start is short
        let length = libm::sqrt(dot(&self.weights, &self.weights));
        if length > 1.0 {
            self.weights.iter_mut().for_each(|w| *w /= length);
        }
        let passes = 4;
        let total = passes * 2 * first.len();
        let (mut average, mut taken) = (vec![0.0; k], 0.0);
        let mut step = 0;
        for _ in 0..passes {
            for (a, b) in first.iter().zip(second) {
                for (o, label) in [(a, 1.0), (b, 0.0)] {
                    self.features(o, &mut f);
                    let guess = 1.0 / (1.0 + libm::exp(-dot(&self.weights, &f)));
                    let norm = 1.0 + dot(&f, &f);
                    #[allow(clippy::cast_precision_loss, reason = "a step number")]
                    let rate = 2.0 / (norm * libm::sqrt(1.0 + 0.01 * step as f64));
                    for (w, x) in self.weights.iter_mut().zip(&f) {
                        *w += rate * (label - guess) * x;
                    }
                    step += 1;
                    if 2 * step > total {
                        for (m, w) in average.iter_mut().zip(&self.weights) {
                            *m += w;
                        }
                        taken += 1.0;
                    }
                }
            }
        }
        if taken > 0.0 {
            self.weights = average.into_iter().map(|w| w / taken).collect();
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Hit counts on the validation halves, turned into what they will probably show: one-sided 99 % limits.
fn estimate(more: u64, less: u64, runs: u64, delta: f64) -> f64 {
    let p = lower_limit(Hits { hits: more, runs }, 0.01) - delta;
    let q = upper_limit(Hits { hits: less, runs }, 0.01);
    if p > 0.0 {
        libm::log(p / q)
    } else {
        f64::NEG_INFINITY
    }
}

/// Learns from runs on the two tables (equally many).
pub fn learn(first: &[Output], second: &[Output], delta: f64) -> Learned {
    let half = first.len().min(second.len()) / 2;
    let (train_a, valid_a) = first.split_at(half);
    let (train_b, valid_b) = second.split_at(half);
    let valid_b = &valid_b[..valid_b.len().min(valid_a.len())];
    let valid_a = &valid_a[..valid_b.len()];
    let runs = valid_a.len() as u64;
    let mut best = scores((train_a, train_b), (valid_a, valid_b), runs, delta);
    if let Some(other) = frequencies((train_a, train_b), (valid_a, valid_b), runs, delta)
        && other.estimate > best.estimate
    {
        best = other;
    }
    best
}

type Sides<'a> = (&'a [Output], &'a [Output]);

fn scores(train: Sides<'_>, valid: Sides<'_>, runs: u64, delta: f64) -> Learned {
    let pooled: Vec<&Output> = train.0.iter().chain(train.1).collect();
    let mut classifier = Classifier::prepare(&pooled);
    classifier.train(train.0, train.1);
    let sorted = |outputs: &[Output]| {
        let mut s: Vec<f64> = outputs.iter().map(|o| classifier.score(o)).collect();
        s.sort_by(f64::total_cmp);
        s
    };
    let (a, b) = (sorted(valid.0), sorted(valid.1));
    let mut best = (f64::NEG_INFINITY, 0.0, false);
    // candidate levels: quantiles of either side, and its ends
    let mut levels = Vec::new();
    for s in [&a, &b] {
        let n = s.len();
        for i in 0..=60 {
            // dense at both ends
            let t = f64::from(i) / 60.0;
            let q = t * t * (3.0 - 2.0 * t);
            #[allow(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "an index"
            )]
            let at = (q * n.saturating_sub(1) as f64) as usize;
            levels.extend(s.get(at));
        }
        levels.extend(s.first().map(|x| x.next_down()));
        levels.extend(s.last().map(|x| x.next_up()));
    }
    for level in levels {
        let from = |s: &[f64]| (s.len() - s.partition_point(|x| *x < level)) as u64;
        let upto = |s: &[f64]| s.partition_point(|x| *x <= level) as u64;
        for (below, value) in [
            (false, estimate(from(&a), from(&b), runs, delta)),
            (true, estimate(upto(&b), upto(&a), runs, delta)),
        ] {
            if value > best.0 {
                best = (value, level, below);
            }
        }
    }
    Learned {
        event: Event::Score {
            classifier: Box::new(classifier),
            level: best.1,
            below: best.2,
        },
        swapped: best.2,
        estimate: best.0,
    }
}

/// Sets of outputs by frequency ratio; `None` where most outputs are seen once.
fn frequencies(train: Sides<'_>, valid: Sides<'_>, runs: u64, delta: f64) -> Option<Learned> {
    let tally = |sides: Sides<'_>| {
        let mut counts: BTreeMap<Vec<u64>, [u64; 2]> = BTreeMap::new();
        for (side, outputs) in [sides.0, sides.1].into_iter().enumerate() {
            for o in outputs {
                counts.entry(key(o)).or_default()[side] += 1;
            }
        }
        counts
    };
    let counts = tally(train);
    if counts.len() > train.0.len() / 4 {
        return None;
    }
    let checked = tally(valid);
    let mut best: Option<Learned> = None;
    for swapped in [false, true] {
        let (more, less) = if swapped { (1, 0) } else { (0, 1) };
        #[allow(clippy::cast_precision_loss, reason = "counts")]
        let ratio = |c: &[u64; 2]| (c[more] as f64 + 0.5) / (c[less] as f64 + 0.5);
        let mut order: Vec<(&Vec<u64>, f64)> = counts.iter().map(|(k, c)| (k, ratio(c))).collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        let (mut hits, mut misses) = (0, 0);
        let mut top = (f64::NEG_INFINITY, 0);
        for (i, (k, _)) in order.iter().enumerate() {
            if let Some(c) = checked.get(*k) {
                hits += c[more];
                misses += c[less];
            }
            let value = estimate(hits, misses, runs, delta);
            if value > top.0 {
                top = (value, i + 1);
            }
        }
        if best.as_ref().is_none_or(|b| top.0 > b.estimate) {
            let set = order[..top.1].iter().map(|(k, _)| (*k).clone()).collect();
            best = Some(Learned {
                event: Event::Among(set),
                swapped,
                estimate: top.0,
            });
        }
    }
    best
}
