//! Streams in the test kit: exact losses of shipped sessions over neighbouring event tables, and the printed pruning.

use std::collections::BTreeMap;

use reticent_laws::{Distribution, Window, enumerate};
use reticent_mechanisms::stream::{Plan, Session, State, StreamError, Ticked};
use reticent_mechanisms::{Context, Simulated};
use reticent_noise::{Lattice, Noise, NoiseError, Rational, Scale};

/// Exact counts per tick and node at which the events happen.
pub type Events = Vec<Vec<i64>>;

/// Runs a session over the ticks of a table; plans may depend on the outputs of earlier ticks.
pub fn run(
    session: &mut Session,
    events: &Events,
    mut plan: impl FnMut(&[Ticked]) -> Plan,
    noise: &mut dyn Noise,
) -> Result<Vec<Ticked>, StreamError> {
    let mut state = State::default();
    let mut out = Vec::new();
    for counts in events {
        let plan = session.check(plan(&out))?;
        let mut tally = session.tally();
        tally.add(counts);
        let Simulated(ticked) = session.simulate(&mut state, tally, &plan, noise)?;
        out.push(ticked);
    }
    Ok(out)
}

/// Cuts counts to a range: post-processing that makes enumerations small.
pub fn cut(mut outputs: Vec<Ticked>, low: i64, high: i64) -> Vec<Ticked> {
    for tick in &mut outputs {
        for count in tick.counts.iter_mut().flatten() {
            *count = (*count).clamp(low, high);
        }
    }
    outputs
}

/// The laws of a program on many tables.
pub struct Laws<O: Ord>(BTreeMap<Events, Distribution<O>>);

/// Which tables are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// One event more or less.
    AddRemove,
    /// One event in another node of the same tick.
    SwapState,
    /// One event replaced by any other.
    Replace,
}

impl<O: Ord + Clone> Laws<O> {
    /// Enumerates `program` on all tables.
    pub fn new(
        tables: impl IntoIterator<Item = Events>,
        tail: f64,
        mut program: impl FnMut(&Events, &mut dyn Noise) -> O,
    ) -> Self {
        Self(
            tables
                .into_iter()
                .map(|t| {
                    let law = enumerate(Window::Tail(tail), |noise| program(&t, noise));
                    (t, law)
                })
                .collect(),
        )
    }

    /// The largest |ln P/P′| over neighbouring tables, outputs above `floor`.
    pub fn worst(&self, change: Change, floor: f64) -> f64 {
        let mut worst: f64 = 0.0;
        for (table, law) in &self.0 {
            for other in neighbours(table, change) {
                if let Some(their) = self.0.get(&other) {
                    worst = worst.max(law.worst_loss(their, floor));
                }
            }
        }
        worst
    }

    /// Largest probability left out for one table.
    pub fn lost(&self) -> f64 {
        self.0.values().map(Distribution::lost).fold(0.0, f64::max)
    }
}

/// Tables one change away that have more events, or as many (the other direction is met from there).
fn neighbours(table: &Events, change: Change) -> Vec<Events> {
    let places: Vec<(usize, usize)> = (0..table.len())
        .flat_map(|t| (0..table[t].len()).map(move |v| (t, v)))
        .collect();
    let mut out = Vec::new();
    for (t, v) in &places {
        let mut more = table.clone();
        match change {
            Change::AddRemove => {
                more[*t][*v] += 1;
                out.push(more);
            }
            Change::SwapState | Change::Replace => {
                if table[*t][*v] == 0 {
                    continue;
                }
                more[*t][*v] -= 1;
                for (s, w) in &places {
                    if (s, w) != (t, v) && (change == Change::Replace || s == t) {
                        let mut moved = more.clone();
                        moved[*s][*w] += 1;
                        out.push(moved);
                    }
                }
            }
        }
    }
    out
}

/// A context at records: one event a unit.
pub fn context(relation: reticent_accounting::Relation) -> Context {
    Context::records(relation)
}

/// PRUNE as printed (Chen 2018, Algorithm 18): every node of a path draws a threshold and a query noise of its own,
/// both 2/ε. Returns the first level that is pruned, or the number of visible decisions. The decisions of different
/// levels share no threshold, so their losses add up: for a path of h nodes ε·(h − 1)/2, not ε.
pub fn printed_prune(
    counts: &[i64],
    threshold: i64,
    epsilon: &Rational,
    noise: &mut dyn Noise,
) -> Result<usize, NoiseError> {
    let law = Lattice::Laplace(Scale::at_least(&(Rational::from(2_u8) / epsilon))?);
    let visible = counts.len().saturating_sub(1);
    for (level, count) in counts.iter().take(visible).enumerate() {
        let need = i128::from(threshold) - i128::from(*count) + noise.lattice(&law);
        if !noise.exceeds(&law, need) {
            return Ok(level);
        }
    }
    Ok(visible)
}

/// The biased-count pruning (the form of PrivTree): open iff max(c − i·δ, θ − δ) + DLap(λ) > θ. Returns the first
/// level that is pruned.
pub fn biased_prune(
    counts: &[i64],
    threshold: i64,
    step: i64,
    scale: &Rational,
    noise: &mut dyn Noise,
) -> Result<usize, NoiseError> {
    let law = Lattice::Laplace(Scale::at_least(scale)?);
    for (level, count) in counts.iter().enumerate() {
        let biased =
            (count - step * i64::try_from(level).unwrap_or(i64::MAX)).max(threshold - step);
        if !noise.exceeds(&law, i128::from(threshold - biased) + 1) {
            return Ok(level);
        }
    }
    Ok(counts.len())
}
