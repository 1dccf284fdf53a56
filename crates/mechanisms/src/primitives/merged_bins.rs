//! Bins adjustment: neighbouring cells merged until each group is large enough.

use reticent_accounting::{Event, Rational};
use reticent_noise::Lattice;

use super::Sides;
use super::cells::Layers;
use super::payment::{additive, scale};
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId, misuse};

/// Merges the cells of a grid's first axis from the left until each group's noisy count reaches a threshold.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let step = MergedBins {
///     name: "bins".to_owned(),
///     epsilon: Rational::from(80u8),
///     threshold: 10,
///     sides: Sides::One,
/// };
/// // Bins are closed as soon as they hold ten records, up to noise.
/// let counts = [4, 8, 20, 3, 9];
/// let ends = buy(&counts, &[5], step.event(&context()), |desk, ages| desk.merged_bins(ages, &step));
/// assert_eq!(ends, [2, 3, 5]);
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit, whatever the number of groups.
/// # Assumptions
/// The threshold is public or computed from releases.
/// # Sensitivity
/// A record lies in one cell, hence in one group; the counts compared inside a group are nested.
/// # Noise
/// A fresh threshold noise ρ for every group, a fresh query noise v for every comparison, both Geo1 or DLap of scale a/ε,
/// a = 1 (add/remove) or 2 (replace-one). A group closes at the first cell where count + v ≥ threshold + ρ.
/// # Composition
/// Fix the output. The factors of groups without the record are the same on both sides. In its group the comparisons before
/// the record's cell do not move, those from it on, the closing one included, move by d = 1. Added: ρ shifted by 1, the
/// closing query by 1 − d = 0: cost 1/b. Removed: the closing query by 1, ρ by 0: cost 1/b (nothing in a last group that
/// never closes). So ε under add/remove; replacing costs two such steps, 2ε, or ε at half the rate. Shifts are upward.
/// # Arithmetic
/// Integers, "≥"; scales are rounded up. The cells after the last closed group are a group of their own, which can be empty
/// of records: what to do with it is up to post-processing.
/// # Checked by
/// `merged_bins::{merged_bins_enumerated, golden_bins, merged_bins_canary}`
/// # References
/// Thesis Algorithm 14 with half its noise; `decisions.md` table and §4, instance 8; `privacy.md` §7.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedBins {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the step for the context's relation.
    pub epsilon: Rational,
    /// The count every group should reach.
    pub threshold: i128,
    /// The noise.
    pub sides: Sides,
}

impl MergedBins {
    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        Event::Pure {
            mechanism: format!("{}: bins adjustment", self.name),
            loss: additive(&self.epsilon, context),
        }
    }

    /// The noise on thresholds and on comparisons.
    pub fn lattice(&self, context: &Context) -> Result<Lattice, DeskError> {
        let touches = Rational::from(context.touches());
        let scale = scale(&self.name, &touches, &self.epsilon, context)?;
        Ok(self.sides.of(scale))
    }
}

impl Desk<'_> {
    /// Buys the ends (exclusive) of the closed groups, increasing; other axes are pooled.
    pub fn merged_bins(
        &mut self,
        fold: FoldId,
        step: &MergedBins,
    ) -> Result<Vec<usize>, DeskError> {
        self.charge(&step.event(self.context))?;
        let (fold, state) = self.state(fold)?;
        if fold.items().is_some() {
            return Err(misuse("items cannot be merged"));
        }
        let layers = Layers::of(&fold, &state)?;
        let law = step.lattice(self.context)?;
        self.record(&step.name, &law, 1.0);
        let mut ends = Vec::new();
        let mut start = 0usize;
        let mut level = 0;
        for end in 1..=layers.len() {
            if end == start.saturating_add(1) {
                level = step.threshold.saturating_add(self.noise.lattice(&law));
            }
            let count = layers.count(&(start..end))?;
            if self.noise.exceeds(&law, level.saturating_sub(count)) {
                ends.push(end);
                start = end;
            }
        }
        Ok(ends)
    }
}
