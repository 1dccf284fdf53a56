//! Counts of items where a record may have several: words of a text, features of a sparse row.
//!
//! # Lemma
//! The state of [`Fold::Items`](crate::fold::Fold::Items) with m items, at most s = `most` items of a record and C classes
//! holds n(i, c) for item i and class c (item by item), then the class counts n(c). Which items of a record count is
//! a function of that record alone (the first s it has, in the public order of the terms), and so is its class. In
//! [`Fold::Slots`](crate::fold::Fold::Slots) it has the items its slots name, in that order, each once. Hence
//!
//! | | add or remove a record | replace a record |
//! |---|---|---|
//! | entries n(i, c) | at most s move, by 1, in one direction | at most s move down and s up, by 1 |
//! | L1 of n(i, c) | s | 2s |
//! | squared L2 of n(i, c) | s | 2s |
//! | L1 and squared L2 of n(c) | 1 | 2 |
//! | any one n(i, c), or n(i, ·) | 1 | 1 |
//!
//! Replacing is removing and adding: every entry moves by −1, 0 or +1 (a record contributes 0 or 1 to each), at most
//! s entries down and s up, so that L1 and squared L2 are both at most 2s. An item pooled over classes moves by at most 1,
//! because a record has one class.

use std::ops::Range;

use crate::evaluate::Evaluated;
use crate::fold::{Axis, State};

/// Adds the records of a batch. A term that is not a number is not above ½.
pub(crate) fn add(
    items: Range<usize>,
    most: u32,
    class: Option<&Axis>,
    state: &mut State,
    rows: &Evaluated,
) {
    let (classes, of_row) = classes(class, rows);
    let last = items.len().saturating_mul(classes);
    let mut count = |at: usize| {
        if let Some(s) = state.0.get_mut(at) {
            *s = s.saturating_add(1);
        }
    };
    let mut taken = vec![0u32; rows.rows];
    for (i, term) in items.enumerate() {
        let Some(values) = rows.terms.get(term) else {
            continue;
        };
        for ((x, c), t) in values.iter().zip(&of_row).zip(&mut taken) {
            if *x > 0.5 && *t < most {
                *t = t.saturating_add(1);
                count(i.saturating_mul(classes).saturating_add(*c));
            }
        }
    }
    of_row.iter().for_each(|c| count(last.saturating_add(*c)));
}

/// Number of classes, and the class of every record.
fn classes(class: Option<&Axis>, rows: &Evaluated) -> (usize, Vec<usize>) {
    let of_row = match class.and_then(|a| rows.terms.get(a.term).map(|t| (a, t))) {
        Some((axis, values)) => values.iter().map(|x| axis.cut.cell(*x)).collect(),
        None => vec![0; rows.rows],
    };
    (class.map_or(1, |a| a.cut.cells()), of_row)
}

/// Adds the records of a batch whose terms `slots` hold item numbers. A slot that is not a number is empty.
pub(crate) fn add_slots(
    slots: Range<usize>,
    (items, most): (u32, u32),
    class: Option<&Axis>,
    state: &mut State,
    rows: &Evaluated,
) {
    let (classes, of_row) = classes(class, rows);
    let last = (items as usize).saturating_mul(classes);
    let slots: Vec<&Vec<f64>> = rows.terms.get(slots).unwrap_or_default().iter().collect();
    let mut count = |at: usize| {
        if let Some(s) = state.0.get_mut(at) {
            *s = s.saturating_add(1);
        }
    };
    // the items of one record so far: an item it names again does not count again
    let mut seen: Vec<u32> = Vec::with_capacity(slots.len());
    for (row, c) in of_row.iter().enumerate() {
        seen.clear();
        for x in slots.iter().filter_map(|slot| slot.get(row)) {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "within 0..items, which is a u32"
            )]
            let item = if *x >= 0.0 && *x < f64::from(items) {
                *x as u32
            } else {
                continue;
            };
            if seen.len() < most as usize && !seen.contains(&item) {
                seen.push(item);
                count((item as usize).saturating_mul(classes).saturating_add(*c));
            }
        }
        count(last.saturating_add(*c));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::{Cut, Fold};

    fn state(fold: &Fold, rows: &[[f64; 4]]) -> Vec<i128> {
        let terms = (0..4)
            .map(|t| rows.iter().map(|r| r[t]).collect())
            .collect();
        let mut state = fold.zero();
        let evaluated = Evaluated {
            rows: rows.len(),
            terms,
        };
        fold.add(&mut state, &evaluated, &[]);
        state.0
    }

    fn fold(most: u32, labelled: bool) -> Fold {
        Fold::Items {
            items: 0..3,
            most,
            class: labelled.then_some(Axis {
                term: 3,
                cut: Cut::Whole(2),
            }),
        }
    }

    #[test]
    fn items_are_counted_by_class_up_to_the_bound() {
        let rows = [
            [1.0, 1.0, 1.0, 0.0],
            [0.0, 1.0, 1.0, 1.0],
            [f64::NAN, 0.0, 1.0, 1.0],
        ];
        assert_eq!(state(&fold(2, true), &rows), [1, 0, 1, 1, 0, 2, 1, 2]);
        assert_eq!(state(&fold(3, true), &rows), [1, 0, 1, 1, 1, 2, 1, 2]);
        assert_eq!(state(&fold(0, true), &rows), [0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(state(&fold(2, false), &rows), [1, 2, 2, 3]);
        assert_eq!(state(&fold(2, false), &[]), [0, 0, 0, 0]);
    }

    /// Slots: what is no item number is empty, what is named twice counts once, and the lemma's table holds for every
    /// pair of records with three slots of three items and a label.
    #[test]
    fn slots_count_every_item_once() {
        let fold = |most| Fold::Slots {
            slots: 0..3,
            items: 3,
            most,
            class: Some(Axis {
                term: 3,
                cut: Cut::Whole(2),
            }),
        };
        let rows = [
            [0.0, 0.0, 2.0, 0.0],
            [2.5, 3.0, -1.0, 1.0],
            [f64::NAN, f64::INFINITY, 1.0, 1.0],
        ];
        assert_eq!(state(&fold(3), &rows), [1, 0, 0, 1, 1, 1, 1, 2]);
        assert_eq!(state(&fold(1), &rows), [1, 0, 0, 1, 0, 1, 1, 2]);
        let cells = [-1.0, 0.0, 1.0, 2.0, 3.0];
        for most in 0..=3 {
            let mut alone: Vec<Vec<i128>> = Vec::new();
            for a in cells {
                for b in cells {
                    for c in cells {
                        alone.extend([0.0, 1.0].map(|l| state(&fold(most), &[[a, b, c, l]])));
                    }
                }
            }
            let l1 = |a: &[i128], b: &[i128]| -> i128 {
                a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
            };
            let none = vec![0; 8];
            let s = i128::from(most);
            assert_eq!(alone.iter().map(|a| l1(a, &none)).max(), Some(s + 1));
            let pairs = || alone.iter().flat_map(|a| alone.iter().map(move |b| (a, b)));
            assert_eq!(pairs().map(|(a, b)| l1(a, b)).max(), Some(2 * s + 2));
            assert!(pairs().all(|(a, b)| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1)));
        }
    }

    /// The lemma's table by brute force over all records with three items and a label.
    #[test]
    fn a_record_moves_what_the_lemma_says() {
        let records: Vec<[f64; 4]> = (0..16u32)
            .map(|b| [0, 1, 2, 3].map(|i| f64::from(b >> i & 1)))
            .collect();
        for most in 0..4 {
            let f = fold(most, true);
            let alone: Vec<Vec<i128>> = records.iter().map(|r| state(&f, &[*r])).collect();
            let none = vec![0; alone[0].len()];
            let l1 = |a: &[i128], b: &[i128]| -> i128 {
                a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
            };
            let squared = |a: &[i128], b: &[i128]| -> i128 {
                a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
            };
            let s = i128::from(most);
            let (mut added, mut replaced) = (0, 0);
            for a in &alone {
                assert!(l1(&a[..6], &none[..6]) <= s && l1(&a[6..], &none[6..]) == 1);
                added = added.max(l1(a, &none));
                for b in &alone {
                    assert!(l1(&a[..6], &b[..6]) <= 2 * s && squared(a, b) <= 2 * s + 2);
                    assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1));
                    // pooled over classes
                    assert!((0..3).all(|i| {
                        let pooled = |v: &[i128]| v[2 * i] + v[2 * i + 1];
                        (pooled(a) - pooled(b)).abs() <= 1
                    }));
                    replaced = replaced.max(l1(a, b));
                }
            }
            assert_eq!((added, replaced), (s + 1, 2 * s + 2), "{most}");
        }
    }
}
