//! Audits of any mechanism: exact losses where outputs can be listed, statistical lower bounds everywhere.
//!
//! An [`Auditable`] is something that can be run on a few public tables: a shipped mechanism through `simulate`
//! ([`shipped`]), a broken one ([`catalogue`]), another program ([`program`]). [`audit`] then
//!
//! 1. takes the exact loss if the mechanism offers one (enumeration, closed form, quadrature);
//! 2. learns an event from training runs ([`events`]): the pair of tables, the direction, and a set of outputs that tells
//!    them apart;
//! 3. counts that event in fresh runs and turns the hits into a lower bound on ε that is wrong with a stated
//!    probability ([`crate::alarms`]), at a few looks decided beforehand, each with its share of that probability, so
//!    that it may stop as soon as the claim is refuted;
//! 4. replays random tapes on both tables ([`replay`]): what is drawn may depend on the tape and the outputs only.
//!
//! A private mechanism is flagged with probability at most [`Settings::false_alarm`]; one that is not may escape.

pub mod catalogue;
pub mod composites;
pub mod events;
pub mod program;
pub mod replay;
pub mod report;
pub mod shipped;
mod steps;
mod streams;

use rayon::prelude::*;
use reticent_laws::{Distribution, Seeded, Window, enumerate};
use reticent_noise::Noise;
use serde::Serialize;

use crate::AuditError;
use crate::alarms::{Hits, epsilon_at_least, lower_limit, upper_limit};
use crate::neighbours::{FLOOR, TAIL};
use events::{Event, Learned};

/// What a mechanism gives out, as numbers.
pub type Output = Vec<f64>;

/// What a mechanism promises for neighbouring tables.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// ε.
    pub epsilon: f64,
    /// δ; 0 for pure privacy.
    pub delta: f64,
}

impl Claim {
    /// (ε, 0).
    pub fn pure(epsilon: f64) -> Self {
        Self {
            epsilon,
            delta: 0.0,
        }
    }
}

/// An exact result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exact {
    /// The largest loss |ln P/P′| over the pairs; infinite if an output is possible on one side only. With δ > 0 in the
    /// claim: the smallest ε at that δ.
    #[serde(serialize_with = "report::number")]
    pub loss: f64,
    /// How it was computed.
    pub how: String,
    /// The smallest δ at the claimed ε, where it is known.
    pub delta: Option<f64>,
}

/// How many runs are worth while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Effort {
    /// Runs on each table from which the event is learned.
    pub training: u64,
    /// The most runs on each table in which it is counted; 0: nothing is drawn, only exact losses are computed.
    pub most: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            training: 20_000,
            most: 200_000,
        }
    }
}

/// Something that can be audited.
pub trait Auditable: Sync {
    /// Its name.
    fn name(&self) -> &str;
    /// One line: what it is.
    fn about(&self) -> &str;
    /// What it promises.
    fn claim(&self) -> Claim;
    /// The public tables it is run on, in words.
    fn tables(&self) -> Vec<String>;
    /// Which of them are neighbours.
    fn pairs(&self) -> Vec<(usize, usize)> {
        vec![(0, 1)]
    }
    /// One run.
    fn run(&self, table: usize, noise: &mut dyn Noise) -> Result<Output, AuditError>;
    /// Its exact loss, if there is a way to compute it.
    fn exact(&self) -> Result<Option<Exact>, AuditError> {
        Ok(None)
    }
    /// Whether runs can be drawn at all (some counter-examples are densities only).
    fn samples(&self) -> bool {
        true
    }
    /// Whether runs take their randomness from the noise they are given, so that a tape can be replayed.
    fn replays(&self) -> bool {
        true
    }
    /// Default number of runs.
    fn effort(&self) -> Effort {
        Effort::default()
    }
    /// `n` independent runs, all different for different (table, stream).
    fn batch(
        &self,
        table: usize,
        seed: u64,
        stream: u64,
        n: u64,
    ) -> Result<Vec<Output>, AuditError> {
        let stream = stream.wrapping_mul(64).wrapping_add(table as u64);
        let mut noise = Seeded::stream(seed, stream);
        (0..n).map(|_| self.run(table, &mut noise)).collect()
    }
}

/// How to audit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Seed of all runs.
    pub seed: u64,
    /// Runs, instead of the mechanism's own.
    pub effort: Option<Effort>,
    /// Probability with which a private mechanism may be flagged.
    pub false_alarm: f64,
    /// Whether to go on after the claim is refuted, for a better bound.
    pub exhaust: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 20_261_127,
            effort: None,
            false_alarm: 1e-9,
            exhaust: false,
        }
    }
}

/// What was known after some runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Look {
    /// Runs on each table so far.
    pub runs: u64,
    /// Hits on the table where more were expected.
    pub more: u64,
    /// Hits on the other.
    pub less: u64,
    /// Lower bound on ε at the claimed δ.
    pub epsilon: f64,
    /// Lower bound on δ at the claimed ε.
    pub delta: f64,
}

/// The statistical part of an audit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistical {
    /// The table on which the event is more likely, and the other.
    pub tables: (String, String),
    /// The event.
    pub event: String,
    /// Probability with which the bounds are wrong.
    pub false_alarm: f64,
    /// All looks, in order; the last one taken is where it stopped.
    pub looks: Vec<Look>,
    /// The best lower bound on ε.
    pub epsilon: f64,
    /// The best lower bound on δ at the claimed ε.
    pub delta: f64,
}

/// What an audit found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The mechanism.
    pub name: String,
    /// What it is.
    pub about: String,
    /// What it promises.
    pub claim: Claim,
    /// The exact loss.
    pub exact: Option<Exact>,
    /// The statistical bounds.
    pub statistical: Option<Statistical>,
    /// Same tape, both tables.
    pub replay: Option<replay::Replay>,
    /// Whether the claim is refuted by the exact loss.
    pub flagged_exactly: bool,
    /// Whether the claim is refuted by the statistical bounds.
    pub flagged_statistically: bool,
}

impl Report {
    /// Whether the claim is refuted.
    pub fn flagged(&self) -> bool {
        self.flagged_exactly || self.flagged_statistically
    }
}

/// Runs a chunk holds.
const CHUNK: u64 = 512;
/// Which runs a stream belongs to.
const PILOT: u64 = 1 << 40;
const TRAINING: u64 = 2 << 40;
const TEST: u64 = 3 << 40;

/// Audits a mechanism.
pub fn audit(mechanism: &dyn Auditable, settings: &Settings) -> Result<Report, AuditError> {
    let claim = mechanism.claim();
    let exact = mechanism.exact()?;
    // rounding in the last place of an enumerated mass is not a leak
    let flagged_exactly = exact.as_ref().is_some_and(|e| {
        e.loss > claim.epsilon * (1.0 + 1e-9)
            || (claim.delta > 0.0 && e.delta.is_some_and(|d| d > claim.delta * (1.0 + 1e-9)))
    });
    let effort = settings.effort.unwrap_or_else(|| mechanism.effort());
    let drawn = mechanism.samples() && effort.most > 0;
    let statistical = if drawn {
        Some(statistical(mechanism, settings)?)
    } else {
        None
    };
    let flagged_statistically = statistical
        .as_ref()
        .is_some_and(|s| s.epsilon > claim.epsilon);
    let replay = if drawn && mechanism.replays() {
        Some(replay::replay(mechanism, settings.seed)?)
    } else {
        None
    };
    Ok(Report {
        name: mechanism.name().to_owned(),
        about: mechanism.about().to_owned(),
        claim,
        exact,
        statistical,
        replay,
        flagged_exactly,
        flagged_statistically,
    })
}

/// `n` runs on a table, in parallel chunks.
fn runs(
    mechanism: &dyn Auditable,
    table: usize,
    seed: u64,
    base: u64,
    n: u64,
) -> Result<Vec<Output>, AuditError> {
    let chunks: Vec<Vec<Output>> = (0..n.div_ceil(CHUNK))
        .into_par_iter()
        .map(|c| mechanism.batch(table, seed, base + c, CHUNK.min(n - c * CHUNK)))
        .collect::<Result<_, _>>()?;
    Ok(chunks.into_iter().flatten().collect())
}

/// Hits in the chunks `from..to` (of [`CHUNK`] runs each).
fn hits(
    mechanism: &dyn Auditable,
    table: usize,
    seed: u64,
    chunks: std::ops::Range<u64>,
    event: &Event,
) -> Result<u64, AuditError> {
    chunks
        .into_par_iter()
        .map(|c| {
            let outputs = mechanism.batch(table, seed, TEST + c, CHUNK)?;
            Ok(outputs.iter().filter(|o| event.holds(o)).count() as u64)
        })
        .sum()
}

fn statistical(mechanism: &dyn Auditable, settings: &Settings) -> Result<Statistical, AuditError> {
    let claim = mechanism.claim();
    let effort = settings.effort.unwrap_or_else(|| mechanism.effort());
    let pairs = mechanism.pairs();
    let learn = |pair: (usize, usize), base: u64, n: u64| -> Result<Learned, AuditError> {
        let first = runs(mechanism, pair.0, settings.seed, base, n)?;
        let second = runs(mechanism, pair.1, settings.seed, base, n)?;
        Ok(events::learn(&first, &second, claim.delta))
    };
    let pair = match pairs.as_slice() {
        [] => {
            return Err(AuditError::Method(format!(
                "{} has no neighbouring tables",
                mechanism.name()
            )));
        }
        [one] => *one,
        many => {
            let mut best = (f64::NEG_INFINITY, many[0]);
            for pair in many {
                let found = learn(*pair, PILOT, (effort.training / 4).max(200))?;
                if found.estimate > best.0 {
                    best = (found.estimate, *pair);
                }
            }
            best.1
        }
    };
    let learned = learn(pair, TRAINING, effort.training.max(100))?;
    let (more, less) = if learned.swapped {
        (pair.1, pair.0)
    } else {
        pair
    };
    // the looks: doubling numbers of chunks, fixed beforehand
    let most = effort.most.div_ceil(CHUNK).max(1);
    let mut plan = vec![most];
    while plan[0] > 4 && plan.len() < 10 {
        plan.insert(0, plan[0] / 2);
    }
    #[allow(clippy::cast_precision_loss, reason = "at most ten looks")]
    let share = settings.false_alarm / plan.len() as f64;
    let mut found = Statistical {
        tables: {
            let names = mechanism.tables();
            let name = |i: usize| names.get(i).cloned().unwrap_or_default();
            (name(more), name(less))
        },
        event: learned.event.describe(),
        false_alarm: settings.false_alarm,
        looks: Vec::new(),
        epsilon: 0.0,
        delta: 0.0,
    };
    let (mut done, mut counts) = (0, [0_u64; 2]);
    for chunks in plan {
        for (count, table) in counts.iter_mut().zip([more, less]) {
            *count += hits(
                mechanism,
                table,
                settings.seed,
                done..chunks,
                &learned.event,
            )?;
        }
        done = chunks;
        let [a, b] = counts.map(|hits| Hits {
            hits,
            runs: done * CHUNK,
        });
        let epsilon = epsilon_at_least(a, b, claim.delta, share);
        let delta =
            lower_limit(a, share / 2.0) - libm::exp(claim.epsilon) * upper_limit(b, share / 2.0);
        let look = Look {
            runs: a.runs,
            more: a.hits,
            less: b.hits,
            epsilon,
            delta: delta.max(0.0),
        };
        found.looks.push(look);
        found.epsilon = found.epsilon.max(look.epsilon);
        found.delta = found.delta.max(look.delta);
        if found.epsilon > claim.epsilon && !settings.exhaust {
            break;
        }
    }
    Ok(found)
}

/// The exact loss by enumeration of all tables that have a neighbour, and the exact δ at the claimed ε.
pub fn enumerated(mechanism: &dyn Auditable) -> Result<Exact, AuditError> {
    enumerated_within(mechanism, TAIL)
}

/// The same with at most `tail` left out per draw: for mechanisms with many draws. Outputs below [`FLOOR`] do not count.
pub fn enumerated_within(mechanism: &dyn Auditable, tail: f64) -> Result<Exact, AuditError> {
    type Law = Distribution<Vec<u64>>;
    let laws: Vec<Result<Law, AuditError>> = (0..mechanism.tables().len())
        .into_par_iter()
        .map(|table| {
            let mut failure = None;
            let law = enumerate(Window::Tail(tail), |noise| {
                match mechanism.run(table, noise) {
                    Ok(output) => output.iter().map(|x| x.to_bits()).collect(),
                    Err(e) => {
                        failure = Some(e);
                        Vec::new()
                    }
                }
            });
            match (failure, law.problem()) {
                (Some(e), _) => Err(e),
                (None, Some(problem)) => Err(AuditError::Method(problem.to_owned())),
                (None, None) => Ok(law),
            }
        })
        .collect();
    let laws = laws.into_iter().collect::<Result<Vec<_>, _>>()?;
    let growth = libm::exp(mechanism.claim().epsilon);
    let (mut loss, mut delta) = (0.0_f64, 0.0_f64);
    for (i, j) in mechanism.pairs() {
        let (Some(a), Some(b)) = (laws.get(i), laws.get(j)) else {
            continue;
        };
        loss = loss.max(a.worst_loss(b, FLOOR));
        for (p, q) in [(a, b), (b, a)] {
            let excess: f64 = p
                .iter()
                .map(|(o, mass)| (mass - growth * q.mass(o)).max(0.0))
                .sum();
            delta = delta.max(excess);
        }
    }
    Ok(Exact {
        loss,
        how: "enumeration".to_owned(),
        delta: Some(delta),
    })
}
