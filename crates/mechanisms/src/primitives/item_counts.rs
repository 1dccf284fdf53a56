//! Noisy counts of items, where a record may have several.

use reticent_accounting::{Event, Rational};
use reticent_noise::{Lattice, Scale};

use super::payment::{Payment, additive};
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId, misuse};

/// All counts n(item, class) of a [`Fold::Items`](crate::fold::Fold::Items) or [`Fold::Slots`](crate::fold::Fold::Slots), and the class counts n(class) if asked for.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// // Three words, of which a text has at most two.
/// let step = ItemCounts {
///     name: "words".to_owned(),
///     payment: Payment::Pure { epsilon: Rational::from(80u8) },
///     most: 2,
///     classes: false,
/// };
/// let fold = Fold::Items { items: 0..3, most: 2, class: None };
/// // Columns are words; of the second text's three, the first two count.
/// let texts = vec![vec![1.0, 1.0, 0.0], vec![0.0, 1.0, 0.0], vec![0.0, 1.0, 1.0]];
/// let found = buy_from(fold, texts, step.event(&context()), |desk, words| desk.item_counts(words, &step));
/// assert_eq!(found.items, [2, 1, 1]);
/// # }
/// ```
///
/// # Claim
/// [`Payment::Pure`]: ε-DP; [`Payment::Concentrated`]: ρ-zCDP; [`Payment::Approximate`]: (ε, δ)-DP; each for the context's
/// relation and unit.
/// # Assumptions
/// A record counts for at most s = `most` items of the fold, the first it has in a public order.
/// # Sensitivity
/// [`crate::items`]: L1 and squared L2 are both S = s (+1 with the class counts) under add/remove and 2S under
/// replace-one. A unit of k rows: k times the L1, k times the L2.
/// # Noise
/// On every count. Pure: discrete Laplace of scale k·S/ε, 2k·S/ε. Concentrated: discrete Gaussian of variance k²S/(2ρ),
/// k²S/ρ. Approximate: rounded Gaussian, σ(ε, δ, k√S) and σ(ε, δ, k√(2S)).
/// # Composition
/// One joint draw. Replace-one at add/remove scales: 2ε; squared L2 doubles, so 2ρ; (ε, δ) by the general conversion.
/// Calibrated for replace-one, add/remove costs ε/2, ρ/2, and no more than (ε, δ). F = 0 counts of binary items
/// are n(class) − n(item, class): post-processing.
/// # Arithmetic
/// Integers; scales are rounded up. A correctly rounded Gaussian added to an integer is the ideal output, rounded.
/// # Checked by
/// `item_counts::{item_counts_enumerated, item_counts_matrix, item_counts_canary, slots_enumerated, slots_matrix}`,
/// `items::tests::{a_record_moves_what_the_lemma_says, slots_count_every_item_once}`
/// # References
/// `privacy.md` §12; `decisions.md` table (features, naive Bayes) and §4, instance 12.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemCounts {
    /// Name of the step in receipts.
    pub name: String,
    /// What is paid.
    pub payment: Payment,
    /// `most` of the fold it is bought on.
    pub most: u32,
    /// Whether the class counts are bought too.
    pub classes: bool,
}

/// What [`ItemCounts`] buys.
#[derive(Clone, Debug, PartialEq)]
pub struct NoisyItems {
    /// n(item, class), item by item.
    pub items: Vec<i128>,
    /// n(class); empty if not asked for.
    pub classes: Vec<i128>,
}

impl ItemCounts {
    /// S.
    fn entries(&self) -> u64 {
        u64::from(self.most).saturating_add(u64::from(self.classes))
    }

    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        let mechanism = format!("{}: counts of items", self.name);
        self.payment.event(mechanism, context, additive)
    }

    /// The noise on every count.
    #[allow(clippy::arithmetic_side_effects, reason = "rational arithmetic")]
    pub fn lattice(&self, context: &Context) -> Result<Lattice, DeskError> {
        let records = Rational::from(context.rows_per_unit.max(1));
        let s = Rational::from(self.entries()) * Rational::from(context.touches());
        let l1 = || Ok(&s * &records);
        let l2 = || Ok((records.clone(), s.clone()));
        let (scale, law) = self.payment.noise(&self.name, l1, l2)?;
        Ok(law(Scale::at_least(&scale)?))
    }
}

impl Desk<'_> {
    /// Buys the counts of a fold of items.
    pub fn item_counts(
        &mut self,
        fold: FoldId,
        step: &ItemCounts,
    ) -> Result<NoisyItems, DeskError> {
        self.charge(&step.event(self.context))?;
        let (fold, state) = self.state(fold)?;
        let Some(shape) = fold.items().filter(|shape| shape.most <= step.most) else {
            return Err(misuse(format!(
                "{}: needs a fold of at most {} items per record",
                step.name, step.most
            )));
        };
        let (items, classes) = (shape.items, shape.classes);
        let lattice = step.lattice(self.context)?;
        self.record(&step.name, &lattice, 1.0);
        let wanted = items.saturating_add(usize::from(step.classes));
        let mut noisy: Vec<i128> = state
            .0
            .iter()
            .take(wanted.saturating_mul(classes))
            .map(|c| c.saturating_add(self.noise.lattice(&lattice)))
            .collect();
        let classes = noisy.split_off(items.saturating_mul(classes).min(noisy.len()));
        Ok(NoisyItems {
            items: noisy,
            classes,
        })
    }
}
