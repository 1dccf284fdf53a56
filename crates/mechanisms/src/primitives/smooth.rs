//! Smooth sensitivity: of a rank statistic on a grid, and of the area under the ROC curve.

use reticent_accounting::exp::exp_upper;
use reticent_accounting::hyperbolic::{self, Hyperbolic};
use reticent_accounting::{AccountingError, Both, Event, Rational, format_rational};
use reticent_noise::Cauchy;

use super::cells::Layers;
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId, misuse};
use crate::fold::{Cut, Fold};

/// Fractional bits of the exponents below.
const BITS: usize = 64;
/// What β gives up so that rounded sensitivities stay β-smooth, in units of 2^−64.
const MARGIN: i128 = 128;
/// Bound on what the search below may miss of a logarithm, in the same units.
const MISSED: i128 = 96;
/// ln 2^−64, about: below it a sensitivity is taken as if it were there.
const FLOOR: i128 = -(45 << BITS);
/// An exponent that nothing reaches.
const NEVER: i128 = i128::MIN / 2;

/// What bounds the smooth sensitivity of order statistics on grids of at most so many cells.
///
/// # Claim
/// For cell indices of records P in a range of cells ℓ..=r, sorted and padded (P\[i\] = ℓ below the first, r beyond the last),
/// and a rank m(n) = ⌈q·n⌉ of a public 0 < q < 1, [`Smoothness::of`] is at least the local sensitivity of P\[m\] on the table and
/// on every neighbour, and β-smooth, under add/remove and replace-one, for every n ≥ 0.
/// # Sensitivity
/// S = max over k ≥ 0 of e^{−kβ}·A_k, A_k the widest window of k+1 gaps that holds the place m. Add/remove: m(n+1) − m(n) is 0
/// or 1. A window of D′ = D ± x with k+1 gaps around m′ is, with the change undone, contained in one of at most k+2 gaps around m
/// (an end at x moves outward to the next element; the place moves by at most one, and the window is extended by one gap), so
/// A_k(D′) ≤ A_{k+1}(D), hence S(D′) ≤ e^β·S(D). P\[m\] moves by at most the adjacent gap, which is a window of A_0 on both
/// tables. Replace-one: one element moves past others, so P′\[i\] ≥ P\[i−1\] and P′\[j\] ≤ P\[j+1\] with only one of them
/// strict: again one gap more. Padding makes S > 0 even for constant or no records. A positive floor
/// max(S, c), c public, is as smooth.
/// # Arithmetic
/// The best window with ends in cells a ≤ P\[m\] ≤ b runs from the last record at or below a to the first at or above b:
/// ln of its term is F(a, b) = ln(b−a) − β·(j−i−1), exact integers but for the logarithms, which lie below the truth by less than
/// 2 units of 2^−64. ln(b−a) has increasing differences, so the best b grows with a, and halving the rows finds the maximum; a
/// row searched between the answers of its neighbours loses at most 2 units per halving, at most 2·33 in all. So
/// max F ∈ [found, found + 96], and e^{found + 96} rounded up (2^−64 relative) is within 98 units above S: with
/// the rate β − 128 units in place of β the result is β-smooth.
/// # Checked by
/// `smooth::sensitivity_is_smooth`, `smooth::reference_medians`, `smooth::tests::search_agrees_with_all_pairs`
/// # References
/// `privacy.md` §5.3, §5.4; Nissim, Raskhodnikova, Smith 2007.
pub(super) struct Smoothness {
    /// ln w in units of 2^−64, rounded down; entry 0 is [`NEVER`].
    logarithms: Vec<i128>,
}

impl Smoothness {
    /// For ranges of at most `cells` cells.
    pub(super) fn new(cells: usize) -> Self {
        Self {
            logarithms: logarithms(cells),
        }
    }

    /// The cell of the record of rank ⌈q·n⌉ among `start..end`, q = `level`, and its sensitivity in cells, rounded up.
    pub(super) fn of(
        &self,
        records: &Layers,
        cells: (usize, usize),
        level: (u32, u32),
        beta: &Rational,
    ) -> Result<(usize, Rational), AccountingError> {
        let rate = rate(beta)?;
        let (start, last) = (cells.0, cells.1.saturating_sub(1));
        let before = |cell: usize| records.before(cell).saturating_sub(records.before(start));
        let n = before(cells.1);
        let rank = n
            .saturating_mul(i128::from(level.0))
            .saturating_add(i128::from(level.1).saturating_sub(1))
            .checked_div(i128::from(level.1))
            .unwrap_or(n);
        // the first cell at whose end the rank is reached; the first of all for no records
        let middle = (start..last)
            .find(|c| before(c.saturating_add(1)) >= rank)
            .unwrap_or(last);
        let left = |a: usize| {
            if a < middle {
                before(a.saturating_add(1))
            } else {
                rank
            }
        };
        let right = |b: usize| {
            if b > middle {
                before(b).saturating_add(1)
            } else {
                rank
            }
        };
        let exponent = |a: usize, b: usize| {
            let gaps = right(b).saturating_sub(left(a)).saturating_sub(1);
            let width = self.logarithms.get(b.saturating_sub(a)).copied();
            width
                .unwrap_or(NEVER)
                .saturating_sub(rate.saturating_mul(gaps))
        };
        let mut best = FLOOR;
        let mut open = vec![(start, middle.saturating_add(1), middle, last)];
        while let Some((first, end, low, high)) = open.pop() {
            let row = first.midpoint(end);
            if row >= end {
                continue;
            }
            let found = (low..=high).map(|b| (exponent(row, b), b)).max();
            let (value, at) = found.unwrap_or((NEVER, low));
            best = best.max(value);
            open.push((first, row, low, at));
            open.push((row.saturating_add(1), end, at, high));
        }
        let units = Rational::from(best.saturating_add(MISSED));
        Ok((middle, exp_upper(&scaled(&units))?))
    }
}

/// Units of 2^−64 as a rational.
#[allow(clippy::arithmetic_side_effects, reason = "division by 2^64")]
fn scaled(units: &Rational) -> Rational {
    units / Rational::from(1_u128 << BITS)
}

/// β in units of 2^−64, rounded down and less the margin.
fn rate(beta: &Rational) -> Result<i128, AccountingError> {
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "rational arithmetic does not overflow"
    )]
    let units = (beta * Rational::from(1_u128 << BITS)).floor();
    i128::try_from(&units)
        .ok()
        .and_then(|u| u.checked_sub(MARGIN))
        .filter(|u| *u > MARGIN)
        .ok_or_else(|| AccountingError::OutOfRange {
            name: "beta",
            value: format_rational(beta),
            allowed: "between 2^-56 and 2^60",
        })
}

/// ln w for w < `n` in units of 2^−64, rounded down: ln(w+1) − ln w = 2·artanh(1/(2w+1)), summed at 2^−120. Every division
/// rounds down; a step errs by less than 2^8 units, 2^26 steps by less than 2^34: far below one unit of 2^−64.
fn logarithms(n: usize) -> Vec<i128> {
    let mut table = vec![NEVER];
    let (mut sum, mut odd) = (0_u128, 1_u128);
    for _ in 1..n {
        // at most 2^124
        table.push(i128::try_from(sum >> (120 - BITS)).unwrap_or(0));
        odd = odd.saturating_add(2);
        let square = odd.saturating_mul(odd);
        let mut term = (1_u128 << 121).checked_div(odd).unwrap_or(0);
        let mut k = 1_u128;
        while term > 0 {
            sum = sum.saturating_add(term.checked_div(k).unwrap_or(0));
            term = term.checked_div(square).unwrap_or(0);
            k = k.saturating_add(2);
        }
    }
    table
}

/// The area under the ROC curve of graded scores, by Cauchy noise on its smooth sensitivity.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// // Cells of scores × label 0 or 1: every positive record stands above every negative one.
/// let step = SmoothAuc { name: "area".to_owned(), epsilon: Rational::from(40u8) };
/// let counts = [500, 0, 0, 500];
/// let area = buy(&counts, &[2, 2], step.event(&context()), |desk, scores| desk.smooth_auc(scores, &step));
/// assert!((area as f64 / f64::from(1u32 << AUC_BITS) - 1.0).abs() < 0.05);
/// # }
/// ```
///
/// # Claim
/// ε-DP under add/remove and under replace-one with the same noise, for the context's unit.
/// # Sensitivity
/// AUC = the share of (positive, negative) pairs in which the positive record stands in the higher cell, ties counting ½; ½ if
/// a class is empty. With m = max(1, min(n₁, n₀)) a change moves it by at most 1/m under both relations: a record added to or
/// removed from a class, or moved within it, changes one average of [0, 1] values over at least m of them by at most 1/m; a label
/// flip changes it by a convex combination of 1/n₁ and 1/(n₀+1). m moves by at most 1, so
/// S = max over k of e^{−kβ}/max(1, m−k) is β-smooth; ln of its term is convex in k, so S = max(1/m, e^{−(m−1)β}).
/// # Noise
/// κ(ε, β)·S·Cauchy, β = ε/√2; the result is rounded to multiples of 2^−30.
/// # Composition
/// One draw; a unit of k records pays k times the loss of ε/k.
/// # Arithmetic
/// AUC and 1/m are exact fractions; e^{−(m−1)β} is rounded up by less than 2^−64 of it, with a rate of β − 2^−57, so that
/// the rounded S is β-smooth. The sum is rounded by an exact draw.
/// # Checked by
/// `smooth::auc_density`, `smooth::auc_moves_by_one_over_m`, `smooth::auc_canary`
/// # References
/// `privacy.md` §5.1, §6; `decisions.md` §1.
#[derive(Clone, Debug, PartialEq)]
pub struct SmoothAuc {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the step.
    pub epsilon: Rational,
}

/// Bits of the grid of a released area.
pub const AUC_BITS: u32 = 30;

impl SmoothAuc {
    /// β and κ for one record.
    pub fn calibration(&self, context: &Context) -> Result<Hyperbolic, AccountingError> {
        hyperbolic::calibrate_dense(&context.per_record(&self.epsilon))
    }

    /// The price of the step.
    pub fn event(&self, _context: &Context) -> Event {
        Event::Pure {
            mechanism: format!("{}: smooth-sensitivity area", self.name),
            loss: Both::same(&self.epsilon),
        }
    }
}

impl Desk<'_> {
    /// Buys the area of a grid of score cells × label (0 or 1), in units of 2^−[`AUC_BITS`]; not clamped.
    pub fn smooth_auc(&mut self, fold: FoldId, step: &SmoothAuc) -> Result<i128, DeskError> {
        let calibration = step.calibration(self.context)?;
        let rate = rate(&calibration.beta)?;
        self.charge(&step.event(self.context))?;
        let (fold, state) = self.state(fold)?;
        let cells = match &fold {
            Fold::Grid { axes, .. } => match axes.as_slice() {
                [score, label] if label.cut == Cut::Whole(2) => score.cut.cells(),
                _ => return Err(misfit()),
            },
            _ => return Err(misfit()),
        };
        let (mut negatives, mut positives, mut doubled) = (0_i128, 0_i128, 0_i128);
        for pair in state.0.chunks(2).take(cells) {
            let (no, yes) = (
                pair.first().copied().unwrap_or(0),
                pair.get(1).copied().unwrap_or(0),
            );
            let lower = negatives.saturating_mul(2).saturating_add(no);
            doubled = doubled.saturating_add(yes.saturating_mul(lower));
            negatives = negatives.saturating_add(no);
            positives = positives.saturating_add(yes);
        }
        let pairs = positives.saturating_mul(negatives).saturating_mul(2);
        let m = positives.min(negatives).max(1);
        self.record_as(
            &step.name,
            "Cauchy, multiple of the smooth sensitivity",
            reticent_accounting::rational_to_f64(&calibration.kappa),
        );
        let exponent = Rational::from(m.saturating_sub(1).saturating_mul(rate.saturating_neg()));
        let far = exp_upper(&scaled(&exponent))?;
        #[allow(
            clippy::arithmetic_side_effects,
            reason = "rational arithmetic; m is at least 1 and pairs is checked"
        )]
        let draw = {
            let area = if pairs > 0 {
                Rational::from(doubled) / Rational::from(pairs)
            } else {
                Rational::ONE / Rational::from(2_u8)
            };
            let sensitivity = far.max(Rational::ONE / Rational::from(m));
            let unit = Rational::from(1_u64 << AUC_BITS);
            Cauchy {
                location: area * &unit,
                scale: calibration.kappa * sensitivity * unit,
            }
        };
        Ok(self.noise.cauchy(&draw))
    }
}

fn misfit() -> DeskError {
    misuse("an area needs a grid of scores and a label of two levels")
}

#[cfg(test)]
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "small test data"
)]
mod tests {
    use reticent_accounting::{parse_rational, rational_to_f64};
    use reticent_laws::Seeded;
    use reticent_noise::Noise;

    use super::*;

    fn layers(prefix: Vec<i128>) -> Layers {
        Layers {
            prefix,
            single: false,
        }
    }

    #[test]
    fn logarithms_are_rounded_down() {
        let table = logarithms(5000);
        assert_eq!((table[0], table[1]), (NEVER, 0));
        for w in [2_usize, 3, 10, 999, 4999] {
            // ln w · 2^64 to the digits of f64, and by certified bounds
            let upper = reticent_accounting::exp::ln_upper(&Rational::from(w as u64)).unwrap();
            let gap = upper * Rational::from(1_u128 << BITS) - Rational::from(table[w]);
            assert!(gap >= Rational::ZERO && gap < Rational::from(2_u8), "{w}");
        }
    }

    /// Halving against all pairs (and against the definition over sorted records) on random ranges with ties and gaps.
    #[test]
    fn search_agrees_with_all_pairs() {
        let mut random = Seeded::new(31);
        let mut draw = |n: u64| random.bits() % n;
        let smoothness = Smoothness::new(64);
        for round in 0..400 {
            let cells = 2 + draw(40) as usize;
            let mut counts = vec![0_i128; cells + 4];
            for _ in 0..draw(60) {
                let at = draw(cells as u64 + 4) as usize;
                counts[at] += i128::from(1 + draw(3));
            }
            let mut sum = 0;
            let mut prefix = vec![0];
            prefix.extend(counts.iter().map(|c| {
                sum += c;
                sum
            }));
            let level = [(1, 2), (1, 4), (9, 10)][round % 3];
            let beta = parse_rational(["0.05", "0.5", "1.3"][round % 3]).unwrap();
            let (cell, s) = smoothness
                .of(&layers(prefix), (2, cells + 2), level, &beta)
                .unwrap();
            // the definition
            let sorted: Vec<usize> = (2..cells + 2)
                .flat_map(|c| std::iter::repeat_n(c, counts[c] as usize))
                .collect();
            let n = sorted.len() as i64;
            let at = |i: i64| match i {
                i if i < 1 => 2,
                i if i > n => cells + 1,
                i => sorted[i as usize - 1],
            };
            let m = (n * i64::from(level.0)).div_euclid(i64::from(level.1))
                + i64::from((n * i64::from(level.0)) % i64::from(level.1) != 0);
            assert_eq!(cell, at(m), "round {round}");
            let mut want: f64 = 0.0;
            for k in 0..=n {
                for t in 0..=k + 1 {
                    let width = at(m + t) - at(m + t - k - 1);
                    let b = rational_to_f64(&beta);
                    want = want.max((-(k as f64) * b).exp() * width as f64);
                }
            }
            let got = rational_to_f64(&s);
            assert!(
                (got / want - 1.0).abs() < 1e-12,
                "round {round}: {got} {want}"
            );
        }
    }

    #[test]
    fn rates_and_floors_are_total() {
        assert!(rate(&parse_rational("1e-18").unwrap()).is_err());
        assert!(rate(&Rational::ZERO).is_err());
        assert!(rate(&parse_rational("1e-15").unwrap()).is_ok());
        // a million equal records: the sensitivity is the public floor
        let mut prefix = vec![0; 3];
        prefix.extend([1_000_000; 6]);
        let (cell, s) = Smoothness::new(8)
            .of(&layers(prefix), (0, 8), (1, 2), &Rational::ONE)
            .unwrap();
        assert_eq!(cell, 2);
        assert!(s > Rational::ZERO && rational_to_f64(&s) < 1e-19);
        // and without records the whole range is in reach
        let (cell, s) = Smoothness::new(8)
            .of(&layers(vec![0; 9]), (0, 8), (1, 2), &Rational::ONE)
            .unwrap();
        assert_eq!((cell, (rational_to_f64(&s) * 1e9).round()), (0, 7e9));
    }
}
