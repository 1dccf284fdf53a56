//! One tick of all series: exact counts, noise, marks.

use std::collections::HashMap;

use reticent_accounting::{Both, Event, Rational, Relation, share};
use reticent_noise::{Lattice, Noise, Scale};
use serde::{Deserialize, Serialize};

use super::StreamError;
use super::forest::{Checked, Forest, PARTS, Plan};
use super::grouper::{Group, GroupNoise, LARGEST_COUNT, Mark};
use crate::context::Context;
use crate::mechanism::Simulated;

/// How the grouper's budget is shared between threshold and deviations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// Half and half, as printed: noise 4/ε and 8/ε.
    Printed,
    /// 1 : 2^{2/3}, which has 13 % less variance.
    Optimal,
}

/// The declared part of the grouper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grouper {
    /// θ, the deviation below which ticks are alike.
    pub threshold: i64,
    /// How its budget is shared.
    pub split: Split,
}

/// A stream as declared and paid for.
///
/// # Claim
/// Let the privacy unit be one person's events of one tick, at most k of them (k = the context's `rows_per_unit`, kept
/// by [`Tally`]). For ever, whatever the plans: calibrated for add/remove the loss is ε when such a unit is added or
/// removed, at most 2ε when it is replaced by any other, at most 2(1 − `common`/[`PARTS`])·ε when its replacement is in
/// the same tick (a change of state); calibrated for replace-one all three are halved. A person present at m ticks
/// is protected by m times that.
/// # Assumptions
/// Each tick's plan is a function of public facts and of outputs of earlier ticks only. An event enters the [`Tally`] of
/// one tick or of none, and which one is decided by its own time, its own arrival and a public clock (this machine's, or
/// marks that the producer writes whatever the events are), never by other events; so do the ticks close, and the number
/// of ticks stepped so far is public. Hence streams that differ in one unit's events of one tick give the same tallies
/// at all ticks but that one, and streams in which it is replaced the same at all but two. Where the caller lets
/// events close ticks (`clock = "events"`), this holds only among streams in order to within the lateness and without gaps
/// above `max_ahead`: in those no event is late or too far ahead, so that each is in the tick of its time; one event that
/// breaks the promise can move any number of others, and how many ticks were stepped so far is not protected.
/// # Sensitivity
/// One event at (leaf, t) adds 1 to the counts of the nodes on one path at one tick. In the groupers see [`Group`].
/// # Noise
/// A node with p parts for its count and g for its grouper: DLap(a·k·PARTS/(p·ε)), and the grouper's scales at
/// ε·g/(PARTS·a·k); a = 1 (add/remove) or 2 (replace-one).
/// # Composition
/// Given the outputs before t the plan of t is fixed, and only nodes on the event's path see another count: the ratio
/// of the two probabilities of all outputs is a product of conditional ratios, e^{Σ_path (p_v + g_v)/PARTS·ε} ≤ e^ε.
/// The event's count also enters comparisons at later ticks, but only those of its own group, and a group keeps the noise
/// of the share it was opened with (a plan with another share closes it first): what they cost together is the g of the
/// plan of t, counted already. Same-tick swaps leave the root's count and grouper unchanged, so each of the two paths
/// costs at most 1 − `common`/PARTS.
/// # Arithmetic
/// Integers; scales are rounded up. Counts are cut to 0..=2⁴⁰ (1-Lipschitz). A node whose g differs from that of its
/// open group has the group closed first, a decision made from plans.
/// # Checked by
/// `streams::counts_matrix`, `streams::plans_enumerated`, `streams::grouper_enumerated`, `streams::swaps_of_state`,
/// `stream::tests::clocks::one_event_changes_one_tick` (the assumption on ticks, for each clock and across restarts)
/// # References
/// `privacy.md` §9; `decisions.md` §2.9; Chen 2018, chapter 5; Dwork, Naor, Pitassi, Rothblum 2010 (event level).
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Its name in receipts.
    pub name: String,
    /// ε for the context's relation and unit.
    pub epsilon: Rational,
    /// The series.
    pub forest: Forest,
    /// The grouper, if any node may run one.
    pub grouper: Option<Grouper>,
    /// Parts that every plan gives the root (one root only; else 0).
    pub common: u32,
}

/// ε₁ : ε₂ = 1 : 2^{2/3}, in 2³²ths: any share is sound, this one has the least variance.
const OPTIMAL: u64 = 1_659_954_209;

#[allow(
    clippy::arithmetic_side_effects,
    reason = "rational arithmetic; divisors are at least 1 or checked"
)]
impl Stream {
    /// What opening the stream costs.
    pub fn event(&self, context: &Context) -> Event {
        let half = &self.epsilon / Rational::from(2_u8);
        let loss = match context.relation {
            Relation::AddRemove => Both::doubled(&self.epsilon),
            Relation::ReplaceOne => Both {
                add_remove: Some(half),
                replace_one: Some(self.epsilon.clone()),
            },
        };
        Event::Pure {
            mechanism: format!("{}: stream of {} series", self.name, self.forest.len()),
            loss,
        }
    }

    /// The loss when a unit changes its states within its tick, as proved above.
    pub fn swap_loss(&self, context: &Context) -> Rational {
        let kept = Rational::from(PARTS.saturating_sub(self.common)) / Rational::from(PARTS);
        Rational::from(2_u8) / Rational::from(context.touches()) * &self.epsilon * kept
    }

    /// ε of one event.
    fn per_event(&self, context: &Context) -> Rational {
        context.per_record(&self.epsilon) / Rational::from(context.touches())
    }

    /// The noise on a count that gets `parts`.
    pub fn count_noise(&self, context: &Context, parts: u32) -> Result<Lattice, StreamError> {
        let e = self.per_event(context) * Rational::from(parts);
        laplace(1, &e)
    }

    /// The noises of a grouper that gets `parts`.
    pub fn group_noise(
        &self,
        context: &Context,
        split: Split,
        parts: u32,
    ) -> Result<GroupNoise, StreamError> {
        let numerator = match split {
            Split::Printed => 1 << 31,
            Split::Optimal => OPTIMAL,
        };
        let e = self.per_event(context) * Rational::from(parts);
        let (threshold, deviation) = share(&e, numerator, 1 << 32);
        Ok(GroupNoise {
            threshold: laplace(2, &threshold)?,
            deviation: laplace(4, &deviation)?,
        })
    }
}

/// Discrete Laplace of scale `sensitivity`·PARTS/e.
#[allow(clippy::arithmetic_side_effects, reason = "e > 0 is checked")]
fn laplace(sensitivity: u8, e: &Rational) -> Result<Lattice, StreamError> {
    if *e <= Rational::ZERO {
        return Err(StreamError::Declaration("a stream needs epsilon above 0"));
    }
    let scale = Rational::from(sensitivity) * Rational::from(PARTS) / e;
    Ok(Lattice::Laplace(Scale::at_least(&scale)?))
}

/// The exact counts of one tick while it is open. Confidential.
///
/// # Claim
/// A person (or other unit) adds at most k to all nodes together, at most 1 to each; later and repeated events of a
/// unit beyond that are left out, which is decided by the events of the same unit in the same tick alone. An event
/// without a unit is a unit of its own. Where a unit has more than k, one event less lets in another of the same unit:
/// a change of state within the tick.
/// # Checked by
/// `a_unit_is_bounded`
#[derive(Clone)]
pub struct Tally {
    counts: Vec<i64>,
    per_unit: usize,
    seen: HashMap<Vec<u8>, Vec<u32>>,
}

impl Tally {
    /// Nothing seen yet.
    pub fn new(stream: &Stream, context: &Context) -> Self {
        Self {
            counts: vec![0; stream.forest.len()],
            per_unit: context.rows_per_unit.max(1) as usize,
            seen: HashMap::new(),
        }
    }

    /// Takes in one event. Units of more than one event need a name; without one k must be 1.
    pub fn admit(&mut self, unit: Option<&[u8]>, node: u32) -> bool {
        let Some(count) = self.counts.get_mut(node as usize) else {
            return false;
        };
        if let Some(unit) = unit {
            let nodes = match self.seen.get_mut(unit) {
                Some(nodes) => nodes,
                None => self.seen.entry(unit.to_vec()).or_default(),
            };
            if nodes.len() >= self.per_unit || nodes.contains(&node) {
                return false;
            }
            nodes.push(node);
        }
        *count = count.saturating_add(1);
        true
    }

    /// Takes in many events of different units at one node.
    pub fn admit_many(&mut self, node: u32, events: i64) {
        if let Some(count) = self.counts.get_mut(node as usize) {
            *count = count.saturating_add(events.max(0));
        }
    }

    /// Takes in many events of different units: counts per node.
    pub fn add(&mut self, counts: &[i64]) {
        for (mine, more) in self.counts.iter_mut().zip(counts) {
            *mine = mine.saturating_add((*more).max(0));
        }
    }
}

/// What is kept between ticks: the open groups. Confidential; cannot be printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct State {
    groups: Vec<Group>,
    /// The share each open group was opened with.
    shares: Vec<u32>,
}

impl State {
    /// For storage next to the data (file mode 0600).
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend((self.groups.len() as u64).to_le_bytes());
        for (group, share) in self.groups.iter().zip(&self.shares) {
            out.extend(share.to_le_bytes());
            group.encode(&mut out);
        }
        out
    }

    /// From storage.
    pub fn decode(mut bytes: &[u8]) -> Result<Self, StreamError> {
        let damaged = StreamError::State;
        let mut state = Self::default();
        let Some((count, rest)) = bytes.split_first_chunk::<8>() else {
            return Err(damaged);
        };
        bytes = rest;
        for _ in 0..u64::from_le_bytes(*count) {
            let Some((share, rest)) = bytes.split_first_chunk::<4>() else {
                return Err(damaged);
            };
            bytes = rest;
            let Some(group) = Group::decode(&mut bytes) else {
                return Err(damaged);
            };
            state.groups.push(group);
            state.shares.push(u32::from_le_bytes(*share));
        }
        if bytes.is_empty() {
            Ok(state)
        } else {
            Err(damaged)
        }
    }
}

/// What leaves a tick.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticked {
    /// Noisy count per node; `None` where the plan measured nothing.
    pub counts: Vec<Option<i64>>,
    /// Mark per node.
    pub marks: Vec<Mark>,
}

/// A declared stream with its public facts, ready to step.
pub struct Session {
    stream: Stream,
    context: Context,
    counts: HashMap<u32, Lattice>,
    groups: HashMap<u32, GroupNoise>,
}

impl Session {
    /// Checks the declaration.
    pub fn new(stream: Stream, context: Context) -> Result<Self, StreamError> {
        stream.count_noise(&context, PARTS)?;
        if stream.common > 0 && !stream.forest.single_root() {
            return Err(StreamError::Declaration(
                "parts can be promised to the root only where there is one root",
            ));
        }
        if stream.common > PARTS {
            return Err(StreamError::Declaration(
                "more than the whole budget is promised to the root",
            ));
        }
        Ok(Self {
            stream,
            context,
            counts: HashMap::new(),
            groups: HashMap::new(),
        })
    }

    /// The declaration.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The public facts.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// An empty tally for the next tick.
    pub fn tally(&self) -> Tally {
        Tally::new(&self.stream, &self.context)
    }

    /// A plan that may be run.
    pub fn check(&self, plan: Plan) -> Result<Checked, StreamError> {
        let grouped = plan.group.iter().position(|g| *g > 0);
        if let (Some(node), None) = (grouped, self.stream.grouper) {
            return Err(StreamError::NoGrouper { node });
        }
        Checked::new(plan, &self.stream.forest, self.stream.common)
    }

    /// One tick with any noise, without payment: for audits, papers and examples on public data.
    pub fn simulate(
        &mut self,
        state: &mut State,
        tally: Tally,
        plan: &Checked,
        noise: &mut dyn Noise,
    ) -> Result<Simulated<Ticked>, StreamError> {
        self.step(state, tally, plan, noise).map(Simulated)
    }

    /// One tick. All scales are made before the first draw, so that nothing fails half-way.
    pub(super) fn step(
        &mut self,
        state: &mut State,
        tally: Tally,
        plan: &Checked,
        noise: &mut dyn Noise,
    ) -> Result<Ticked, StreamError> {
        let plan = plan.plan();
        let nodes = self.stream.forest.len();
        if plan.perturb.len() != nodes {
            return Err(StreamError::Shape {
                plan: plan.perturb.len(),
                nodes,
            });
        }
        self.prepare(plan)?;
        let grouping = self
            .stream
            .grouper
            .filter(|_| plan.group.iter().any(|g| *g > 0));
        if self.stream.grouper.is_some() {
            state.groups.resize_with(nodes, Group::default);
            state.shares.resize(nodes, 0);
        }
        for node in &plan.close {
            if let Some(group) = state.groups.get_mut(*node) {
                group.close();
            }
        }
        let mut counts = tally.counts;
        self.stream.forest.total(&mut counts);
        for count in &mut counts {
            *count = (*count).clamp(0, LARGEST_COUNT);
        }
        let mut out = Ticked {
            counts: Vec::with_capacity(nodes),
            marks: Vec::new(),
        };
        let mut known: Option<(u32, Lattice)> = None;
        for (count, parts) in counts.iter().zip(&plan.perturb) {
            let law = match known {
                Some((p, law)) if p == *parts => Some(law),
                _ => self.counts.get(parts).copied(),
            };
            known = law.map(|law| (*parts, law));
            out.counts.push(law.map(|law| {
                let noisy = noise.lattice(&law).saturating_add(i128::from(*count));
                i64::try_from(noisy).unwrap_or(if noisy < 0 { i64::MIN } else { i64::MAX })
            }));
        }
        if let Some(grouper) = grouping {
            let groups = state.groups.iter_mut().zip(&mut state.shares);
            for ((count, parts), (group, share)) in counts.iter().zip(&plan.group).zip(groups) {
                let Some(law) = self.groups.get(parts) else {
                    out.marks.push(Mark::Off);
                    continue;
                };
                if *share != *parts {
                    group.close();
                    *share = *parts;
                }
                out.marks
                    .push(group.push(*count, grouper.threshold, law, noise));
            }
        } else {
            out.marks.resize(nodes, Mark::Off);
        }
        Ok(out)
    }

    fn prepare(&mut self, plan: &Plan) -> Result<(), StreamError> {
        let mut last = 0;
        for parts in plan.perturb.iter().copied() {
            if parts != last && parts > 0 && !self.counts.contains_key(&parts) {
                let law = self.stream.count_noise(&self.context, parts)?;
                self.counts.insert(parts, law);
            }
            last = parts;
        }
        let Some(grouper) = self.stream.grouper else {
            return Ok(());
        };
        last = 0;
        for parts in plan.group.iter().copied() {
            if parts != last && parts > 0 && !self.groups.contains_key(&parts) {
                let law = self
                    .stream
                    .group_noise(&self.context, grouper.split, parts)?;
                self.groups.insert(parts, law);
            }
            last = parts;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(nodes: usize) -> Stream {
        Stream {
            name: "s".to_owned(),
            epsilon: Rational::from(1_u8),
            forest: Forest::flat(nodes).unwrap(),
            grouper: None,
            common: 0,
        }
    }

    #[test]
    fn a_unit_is_bounded() {
        let context = Context {
            rows_per_unit: 2,
            ..Context::records(Relation::AddRemove)
        };
        let mut tally = Tally::new(&stream(4), &context);
        for node in [0, 0, 3, 1, 9] {
            tally.admit(Some(b"ann"), node);
        }
        tally.admit(Some(b"bob"), 3);
        tally.admit(None, 1);
        assert_eq!(tally.counts, [1, 1, 0, 2]);
    }

    #[test]
    fn damaged_state_is_refused() {
        let bytes = State::default().encode();
        assert!(State::decode(&bytes).is_ok());
        assert!(State::decode(&bytes[1..]).is_err());
        assert!(State::decode(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]).is_err());
        assert!(State::decode(&[255; 40]).is_err());
    }
}
