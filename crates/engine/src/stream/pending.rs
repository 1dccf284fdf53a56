//! Ticks that are not closed yet. What they hold is stored with every tick that closes, so that no event has to be read twice: an event of a
//! far tick keeps nothing else waiting, and files may go once they are read.

use std::collections::{BTreeMap, BTreeSet};

use reticent_mechanisms::stream::{Session, Tally};

use super::line::Event;

/// A tick that is not closed yet.
pub(super) struct Pending {
    tally: Tally,
    /// Who was counted where and is not stored yet, in the order in which they came.
    units: Vec<(Vec<u8>, u32)>,
    /// How many came before them, and are stored.
    stored: usize,
    /// Events of nobody in particular, by node.
    counts: BTreeMap<u32, i64>,
    /// Nodes where they changed since they were stored.
    changed: BTreeSet<u32>,
}

/// What is to be stored of open ticks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fresh {
    /// Tick, place in its order, unit, node.
    pub units: Vec<(i64, i64, Vec<u8>, u32)>,
    /// Tick, node, count.
    pub counts: Vec<(i64, u32, i64)>,
}

impl Pending {
    /// Nothing yet.
    pub(super) fn new(session: &Session) -> Self {
        Self {
            tally: session.tally(),
            units: Vec::new(),
            stored: 0,
            counts: BTreeMap::new(),
            changed: BTreeSet::new(),
        }
    }

    /// Takes in an event at a node.
    pub(super) fn take(&mut self, event: Event, node: u32) {
        match event.unit {
            None => {
                self.tally.admit_many(node, event.count);
                let count = self.counts.entry(node).or_default();
                *count = count.saturating_add(event.count.max(0));
                self.changed.insert(node);
            }
            Some(unit) => {
                if self.tally.admit(Some(&unit), node) {
                    self.units.push((unit, node));
                }
            }
        }
    }

    /// The counts, for the tick to be closed.
    pub(super) fn into_tally(self) -> Tally {
        self.tally
    }

    /// Adds what is not stored yet, which then counts as stored.
    pub(super) fn store(&mut self, tick: i64, fresh: &mut Fresh) {
        for (unit, node) in self.units.drain(..) {
            let at = i64::try_from(self.stored).unwrap_or(i64::MAX);
            fresh.units.push((tick, at, unit, node));
            self.stored += 1;
        }
        for node in std::mem::take(&mut self.changed) {
            let count = self.counts.get(&node).copied().unwrap_or(0);
            fresh.counts.push((tick, node, count));
        }
    }

    /// The open ticks of a store, as they were when its last tick was closed.
    pub(super) fn restore(session: &Session, stored: Fresh) -> BTreeMap<i64, Self> {
        let mut open: BTreeMap<i64, Self> = BTreeMap::new();
        for (tick, _, unit, node) in stored.units {
            let pending = open.entry(tick).or_insert_with(|| Self::new(session));
            pending.tally.admit(Some(&unit), node);
            pending.stored += 1;
        }
        for (tick, node, count) in stored.counts {
            let pending = open.entry(tick).or_insert_with(|| Self::new(session));
            pending.tally.admit_many(node, count);
            pending.counts.insert(node, count);
        }
        open
    }
}
