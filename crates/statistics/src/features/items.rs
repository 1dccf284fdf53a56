//! The 0/1 features of a record: words of a text, levels of columns, indicators.

use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::program::Expr;

use crate::common::{Facts, StatisticsError, size};

/// Named features and how a record says which of them it has: every slot evaluates to the number of one feature, or to
/// anything outside `0..names.len()` for none. A feature named by several slots counts once.
#[derive(Clone, Debug, PartialEq)]
pub struct Items {
    /// What the features are called.
    pub names: Vec<String>,
    /// The slots, in the order in which they count.
    pub slots: Vec<Expr>,
    /// How many features of a record count: the first ones.
    pub most: u32,
}

impl Items {
    /// No features.
    pub fn none() -> Self {
        Self {
            names: Vec::new(),
            slots: Vec::new(),
            most: 0,
        }
    }

    /// Features that each have a 0/1 expression; the first `most` that a record has count.
    pub fn indicators(features: Vec<(String, Expr)>, most: u32) -> Self {
        let (names, terms): (Vec<_>, Vec<_>) = features.into_iter().unzip();
        let empty = size(names.len());
        let slots = terms
            .into_iter()
            .enumerate()
            .map(|(i, e)| {
                let above = Expr::Compare(
                    reticent_mechanisms::program::Comparison::Greater,
                    Box::new(e),
                    Box::new(Expr::Constant(0.5)),
                );
                Expr::Lookup(Box::new(above), vec![empty, size(i)])
            })
            .collect();
        Self { names, slots, most }
    }

    /// Slots that hold the number of a word of a vocabulary.
    pub fn slots(names: Vec<String>, slots: Vec<Expr>) -> Self {
        let most = u32::try_from(slots.len()).unwrap_or(u32::MAX);
        Self { names, slots, most }
    }

    /// Appends other features; as many of a record count as of both together.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let (before, after) = (self.names.len(), other.names.len());
        let empty = size(before + after);
        // what stands for no feature must not become one of the appended
        let mut own: Vec<f64> = (0..before).map(size).collect();
        own.push(empty);
        self.slots = self.slots.into_iter().map(|s| table(s, &own)).collect();
        let mut shifted: Vec<f64> = (before..before + after).map(size).collect();
        shifted.push(empty);
        self.slots
            .extend(other.slots.into_iter().map(|s| table(s, &shifted)));
        self.names.extend(other.names);
        self.most = self.most.saturating_add(other.most);
        self
    }

    /// Only some of the features, numbered in the order of `chosen`; at most `most` of a record's count. The others do
    /// not use up the places of these.
    #[must_use]
    pub fn restricted(&self, chosen: &[usize], most: u32) -> Self {
        let empty = size(chosen.len());
        let mut map = vec![empty; self.names.len() + 1];
        let mut names = Vec::with_capacity(chosen.len());
        for i in chosen {
            if let (Some(name), Some(to)) = (self.names.get(*i), map.get_mut(*i)) {
                *to = size(names.len());
                names.push(name.clone());
            }
        }
        Self {
            names,
            slots: self.slots.iter().map(|s| table(s.clone(), &map)).collect(),
            most: most.min(self.most),
        }
    }

    /// The fold that counts them by class, and the terms it reads: the slots, then the label.
    pub(crate) fn fold(&self, label: Option<(&Expr, usize)>) -> (Vec<Expr>, Fold) {
        let mut terms = self.slots.clone();
        let class = label.map(|(expr, classes)| {
            terms.push(expr.clone());
            Axis {
                term: self.slots.len(),
                cut: Cut::Whole(u32::try_from(classes).unwrap_or(u32::MAX)),
            }
        });
        let fold = Fold::Slots {
            slots: 0..self.slots.len(),
            items: u32::try_from(self.names.len()).unwrap_or(u32::MAX),
            most: self.most,
            class,
        };
        (terms, fold)
    }

    /// The sum of a weight per feature that a record has, as an expression (a feature named twice adds twice).
    pub fn weighted(&self, weights: &[f64]) -> Expr {
        let mut table_of = weights.to_vec();
        table_of.resize(self.names.len(), 0.0);
        table_of.push(0.0);
        let parts = self.slots.iter().map(|s| table(s.clone(), &table_of));
        crate::common::sum_of(parts.collect())
    }

    /// Refuses slots that do not fit the schema. What is not whole is rounded down where it is looked up or counted.
    pub(crate) fn check(&self, facts: &Facts<'_>) -> Result<(), StatisticsError> {
        facts.bounds(&self.slots)?;
        Ok(())
    }
}

/// Looks a slot up in a table whose last entry stands for no feature. Negative numbers are no feature either.
fn table(slot: Expr, entries: &[f64]) -> Expr {
    // one more place in front: a slot below 0 is clamped to it
    let mut shifted = Vec::with_capacity(entries.len() + 1);
    shifted.extend(entries.last());
    shifted.extend(entries);
    Expr::Lookup(Box::new(slot.add(Expr::Constant(1.0))), shifted)
}
