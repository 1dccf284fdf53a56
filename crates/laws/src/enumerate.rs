//! Exact output laws: runs a program once for every combination of its draws.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use crate::Seeded;
use reticent_noise::{
    Cauchy, Correlated, GammaNorm, Lattice, LogWeights, Natural, Noise, Rational,
};

use crate::{Law, Probabilities};

/// How far from zero [`enumerate`] follows a draw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Window {
    /// As far as needed to leave at most this probability outside, per draw.
    Tail(f64),
    /// `[-w, w]` (one-sided: `[0, w]`).
    Width(i128),
}

impl Default for Window {
    fn default() -> Self {
        Self::Tail(1e-13)
    }
}

/// The law of a program's output.
#[derive(Debug, Clone)]
pub struct Distribution<O: Ord> {
    masses: BTreeMap<O, Sum>,
    lost: f64,
    problem: Option<&'static str>,
    runs: u64,
}

impl<O: Ord> Distribution<O> {
    /// Probability of `o` along followed branches (0 if never seen); the true one is at most [`Distribution::lost`] more.
    pub fn mass(&self, o: &O) -> f64 {
        self.masses.get(o).map_or(0.0, Sum::value)
    }
    /// Outputs in order, with their probabilities.
    pub fn iter(&self) -> impl Iterator<Item = (&O, f64)> {
        self.masses.iter().map(|(o, m)| (o, m.value()))
    }
    /// Number of different outputs.
    pub fn len(&self) -> usize {
        self.masses.len()
    }
    /// Whether nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.masses.is_empty()
    }
    /// Probability of the branches not followed.
    pub fn lost(&self) -> f64 {
        self.lost
    }
    /// Probability of all branches followed.
    pub fn total(&self) -> f64 {
        self.masses.values().map(Sum::value).sum()
    }
    /// How often the program ran.
    pub fn runs(&self) -> u64 {
        self.runs
    }
    /// Why the result is not exact: the program drew something that has no finite list of outcomes.
    pub fn problem(&self) -> Option<&'static str> {
        self.problem
    }
    /// The largest `|ln(P(o) / Q(o))|` over outputs with mass above `floor` in both laws; infinite when an output of mass
    /// above `floor` in one is missing in the other.
    pub fn worst_loss(&self, other: &Self, floor: f64) -> f64 {
        let one_way = |a: &Self, b: &Self| {
            a.iter()
                .filter(|(_, p)| *p > floor)
                .map(|(o, p)| {
                    let q = b.mass(o);
                    if q > 0.0 {
                        libm::log(p / q)
                    } else {
                        f64::INFINITY
                    }
                })
                .fold(0.0, f64::max)
        };
        one_way(self, other).max(one_way(other, self))
    }
}

/// A compensated sum (Neumaier).
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    high: f64,
    low: f64,
}

impl Sum {
    fn add(&mut self, x: f64) {
        let t = self.high + x;
        self.low += if self.high.abs() >= x.abs() {
            (self.high - t) + x
        } else {
            (x - t) + self.high
        };
        self.high = t;
    }
    fn value(&self) -> f64 {
        self.high + self.low
    }
}

/// The exact law of `f`'s output: depth-first replay over all outcomes of its draws.
pub fn enumerate<O: Ord>(
    window: Window,
    mut f: impl FnMut(&mut dyn Noise) -> O,
) -> Distribution<O> {
    let mut tree = Tree {
        window,
        known: HashMap::new(),
        path: Vec::new(),
        depth: 0,
        mass: 1.0,
        lost: Sum::default(),
        problem: None,
        spare: Seeded::new(0),
    };
    let mut law = Distribution {
        masses: BTreeMap::new(),
        lost: 0.0,
        problem: None,
        runs: 0,
    };
    loop {
        tree.depth = 0;
        tree.mass = 1.0;
        let output = f(&mut tree);
        law.masses.entry(output).or_default().add(tree.mass);
        law.runs = law.runs.saturating_add(1);
        if !tree.advance() {
            break;
        }
    }
    law.lost = tree.lost.value();
    law.problem = tree.problem;
    law
}

/// The outcomes of a draw, with their masses, and the mass left out.
#[derive(Clone)]
struct Branches {
    outcomes: Rc<[(i128, f64)]>,
    left_out: f64,
}

impl Branches {
    /// Those of positive mass.
    fn new(outcomes: impl Iterator<Item = (i128, f64)>, left_out: f64) -> Self {
        Self {
            outcomes: outcomes.filter(|(_, mass)| *mass > 0.0).collect(),
            left_out,
        }
    }
}

/// One draw on the current path: its outcomes, and which is being followed.
struct Node {
    outcomes: Rc<[(i128, f64)]>,
    at: usize,
}

struct Tree {
    window: Window,
    known: HashMap<Lattice, Branches>,
    path: Vec<Node>,
    depth: usize,
    mass: f64,
    lost: Sum,
    problem: Option<&'static str>,
    spare: Seeded,
}

impl Tree {
    /// The outcome followed at this draw; `branches` is asked when the draw is met first.
    fn follow(&mut self, branches: impl FnOnce(&mut Self) -> Branches) -> i128 {
        if self.depth >= self.path.len() {
            let Branches { outcomes, left_out } = branches(self);
            self.lost.add(self.mass * left_out);
            self.path.push(Node { outcomes, at: 0 });
        }
        let node = self.path.get(self.depth);
        self.depth = self.depth.saturating_add(1);
        let (outcome, mass) = node
            .and_then(|n| n.outcomes.get(n.at))
            .copied()
            .unwrap_or((0, 1.0));
        self.mass *= mass;
        outcome
    }

    /// Moves to the next path; false when all were followed.
    fn advance(&mut self) -> bool {
        self.path.truncate(self.depth);
        while let Some(node) = self.path.last_mut() {
            node.at = node.at.saturating_add(1);
            if node.at < node.outcomes.len() {
                return true;
            }
            self.path.pop();
        }
        false
    }
}

impl Noise for Tree {
    fn bits(&mut self) -> u64 {
        self.problem = Some("raw bits were drawn: not enumerable");
        self.spare.bits()
    }

    fn lattice(&mut self, d: &Lattice) -> i128 {
        self.follow(|tree| {
            let window = tree.window;
            let branches = || {
                let width = match window {
                    Window::Width(w) => w.max(0),
                    Window::Tail(tail) => d.radius(tail),
                };
                let low = if matches!(d, Lattice::Geometric(_)) {
                    0
                } else {
                    width.saturating_neg()
                };
                Branches::new((low..=width).map(|k| (k, d.mass(k))), d.outside(width))
            };
            tree.known.entry(*d).or_insert_with(branches).clone()
        })
    }

    fn exceeds(&mut self, d: &Lattice, bound: i128) -> bool {
        let both = [(1, d.upper_tail(bound)), (0, d.lower_tail(bound))];
        self.follow(|_| Branches::new(both.into_iter(), 0.0)) == 1
    }

    fn choose(&mut self, w: &LogWeights) -> usize {
        let index = self.follow(|_| Branches::new((0..).zip(w.probabilities()), 0.0));
        usize::try_from(index).unwrap_or(0)
    }

    fn below(&mut self, n: u64) -> u64 {
        if n > 1 << 16 {
            self.problem = Some("a uniform integer with too many values was drawn: not enumerable");
        }
        #[allow(clippy::cast_precision_loss, reason = "n is small")]
        let each = 1.0 / n.max(1) as f64;
        let index = self.follow(|_| {
            Branches::new((0..n.clamp(1, 1 << 16)).map(|i| (i128::from(i), each)), 0.0)
        });
        u64::try_from(index).unwrap_or(0)
    }

    fn pick(&mut self, weights: &[Natural]) -> usize {
        #[allow(clippy::arithmetic_side_effects, reason = "big integers")]
        let sum: Natural = weights.iter().fold(Natural::ZERO, |s, w| s + w);
        if sum.is_zero() {
            return 0;
        }
        let share = |w: &Natural| {
            Rational::from_parts(w.clone().into(), sum.clone())
                .to_f64()
                .value()
        };
        let index = self.follow(|_| Branches::new((0..).zip(weights.iter().map(share)), 0.0));
        usize::try_from(index).unwrap_or(0)
    }

    fn vector(&mut self, d: &GammaNorm) -> Vec<i128> {
        self.problem = Some("a real vector was drawn: not enumerable");
        vec![0; d.dimension]
    }

    fn rows(&mut self, d: &Correlated) -> Vec<i128> {
        self.problem = Some("real rows were drawn: not enumerable");
        vec![0; d.rows.saturating_mul(d.dimension)]
    }

    fn cauchy(&mut self, d: &Cauchy) -> i128 {
        self.problem = Some("a Cauchy variable was drawn: its tails are too heavy to enumerate");
        d.centre()
    }
}
