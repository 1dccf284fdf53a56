//! Discrete Laplace noise on disjoint counts and on sums over disjoint cells.

use std::ops::Range;

use reticent_accounting::{Event, Rational};
use reticent_noise::Lattice;

use super::cells::{Grid, grid};
use super::payment::{additive, scale};
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId, misuse};
use crate::fold::{State, limits};

/// Counts of disjoint cells, each with discrete Laplace noise.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let step = Counts { name: "ages".to_owned(), epsilon: Rational::from(40u8) };
/// // Three cells with 3, 0 and 9 records; at ε = 40 the noise is all but always 0.
/// let found = buy(&[3, 0, 9], &[3], step.event(&context()), |desk, ages| desk.counts(ages, None, &step));
/// assert_eq!(found, [3, 0, 9]);
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit. Under add/remove the loss is ε and under replace-one at most
/// 2ε when calibrated for add/remove; ε/2 and ε when calibrated for replace-one.
/// # Assumptions
/// The groups of cells are disjoint; a unit contributes at most `rows_per_unit` rows.
/// # Sensitivity
/// A record is in at most one cell. Adding or removing it changes one count by 1 (L1 = 1); replacing it
/// changes at most two counts by 1 each (L1 ≤ 2). A unit of k rows is k such changes.
/// # Noise
/// Every count gets an independent discrete Laplace draw of scale a·k/ε, a = 1 (add/remove) or 2.
/// # Composition
/// P(output)/P′(output) ≤ Π e^{|Δ_i|/scale} = e^{Σ|Δ_i|/scale} ≤ e^ε.
/// # Arithmetic
/// Integers throughout; the scale is rounded up. Adding saturates at the ends of i128, a function of the
/// noisy value.
/// # Checked by
/// `neighbours::counts_enumerated`, `neighbours::counts_matrix`, `canaries::counts`
/// # References
/// `privacy.md` §11; Ghosh, Roughgarden, Sundararajan 2009.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the whole step, for the context's relation and unit.
    pub epsilon: Rational,
}

/// Sums of a bounded term over disjoint cells, each with discrete Laplace noise on the term's grid.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let step = Sums { name: "money".to_owned(), epsilon: Rational::from(40u8), centred: false };
/// let fixed = FixedPoint::for_magnitude(1000.0, 20);
/// let fold = Fold::Grid { axes: vec![], sum: Some(CellSum { term: 0, fixed, limits: vec![] }) };
/// let (sums, _) = buy_from(fold, vec![vec![120.5, 30.0, 7.25]], step.event(&context()), |desk, money| {
///     desk.sums(money, None, &step)
/// });
/// assert!((fixed.value(sums[0]) - 157.75).abs() < 500.0);
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit; losses as for [`Counts`].
/// # Sensitivity
/// Group g sums v − c_g over its records, v an integer with lo_g ≤ v ≤ hi_g and c_g a public integer
/// (0 unless centred, then ⌊(lo_g+hi_g)/2⌋). Let m_g = max(hi_g − c_g, c_g − lo_g). Add/remove changes
/// one group's sum by at most m_g. A replacement inside group g changes its sum by at most
/// hi_g − lo_g ≤ 2·m_g; one across groups g, h by at most m_g and m_h.
/// # Noise
/// Group g: scale a·k·m_g/ε (a = 1 add/remove, 2 replace-one). For a single uncentred group with
/// 0 < lo a replace-one scale of k·(hi − lo)/ε would do, but only while the row set has a public size;
/// one scale that holds for every row set is used instead.
/// # Composition
/// Add/remove: m_g/(m_g/ε) = ε. Replace-one inside: (hi−lo)/(2m_g/ε) ≤ ε; across: ε/2 + ε/2.
/// # Arithmetic
/// Integers; every record is rounded to the grid before it is added (rounding is monotone, so the limits
/// are those of the rounded bounds).
/// # Checked by
/// `neighbours::sums_enumerated`, `neighbours::binned_sums_algebra`, `canaries::sums`
/// # References
/// `privacy.md` §8 (centring), §11, §16.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the whole step.
    pub epsilon: Rational,
    /// Subtract each group's middle from every record (and report sums of deviations).
    pub centred: bool,
}

impl Counts {
    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        Event::Pure {
            mechanism: format!("{}: discrete Laplace counts", self.name),
            loss: additive(&self.epsilon, context),
        }
    }

    /// The noise on every count.
    pub fn lattice(&self, context: &Context) -> Result<Lattice, DeskError> {
        let touches = Rational::from(context.touches());
        let scale = scale(&self.name, &touches, &self.epsilon, context)?;
        Ok(Lattice::Laplace(scale))
    }
}

impl Sums {
    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        Event::Pure {
            mechanism: format!("{}: discrete Laplace sums", self.name),
            loss: additive(&self.epsilon, context),
        }
    }

    fn centre(&self, low: i64, high: i64) -> i64 {
        if self.centred {
            low.saturating_add(high).div_euclid(2)
        } else {
            0
        }
    }

    /// The noise on the sum of a group whose records lie in `low..=high` (grid units).
    #[allow(clippy::arithmetic_side_effects, reason = "rational arithmetic")]
    pub fn lattice(&self, low: i64, high: i64, context: &Context) -> Result<Lattice, DeskError> {
        let c = self.centre(low, high);
        let m = high.saturating_sub(c).max(c.saturating_sub(low)).max(0);
        let sensitivity = Rational::from(m) * Rational::from(context.touches());
        let scale = scale(&self.name, &sensitivity, &self.epsilon, context)?;
        Ok(Lattice::Laplace(scale))
    }
}

impl Desk<'_> {
    /// Buys noisy counts. `groups` merges ranges of cells of the grid's first axis (disjoint, increasing);
    /// `None` keeps every cell. The result is row-major: groups × cells of the other axes.
    pub fn counts(
        &mut self,
        fold: FoldId,
        groups: Option<&[Range<usize>]>,
        step: &Counts,
    ) -> Result<Vec<i128>, DeskError> {
        self.charge(&step.event(self.context))?;
        let (fold, state) = self.state(fold)?;
        let grid = grid(&fold)?;
        let exact = merged(&grid, &state, groups, 0)?;
        let lattice = step.lattice(self.context)?;
        self.record(&step.name, &lattice, 1.0);
        Ok(exact
            .into_iter()
            .map(|c| c.saturating_add(self.noise.lattice(&lattice)))
            .collect())
    }

    /// Buys noisy sums of the grid's summed term, in grid units, with the centre subtracted from each
    /// record of each group. Shape as for [`Desk::counts`]; also returns every group's centre.
    pub fn sums(
        &mut self,
        fold: FoldId,
        groups: Option<&[Range<usize>]>,
        step: &Sums,
    ) -> Result<(Vec<i128>, Vec<i64>), DeskError> {
        self.charge(&step.event(self.context))?;
        let (fold, state) = self.state(fold)?;
        let grid = grid(&fold)?;
        let sum = grid.sum.ok_or_else(|| misuse("this grid carries no sum"))?;
        let limits = limits(sum, &self.bounds);
        let counts = merged(&grid, &state, groups, 0)?;
        let sums = merged(&grid, &state, groups, grid.cells)?;
        let ranges = ranges(&grid, groups);
        let mut noisy = Vec::with_capacity(sums.len());
        let mut centres = Vec::with_capacity(ranges.len());
        let mut widest: Option<Lattice> = None;
        for (g, range) in ranges.iter().enumerate() {
            let (low, high) = group_limits(&limits, range);
            let c = step.centre(low, high);
            centres.push(c);
            let lattice = step.lattice(low, high, self.context)?;
            if widest
                .as_ref()
                .is_none_or(|w| w.scale().to_f64() < lattice.scale().to_f64())
            {
                widest = Some(lattice);
            }
            for inner in 0..grid.inner {
                let at = g.saturating_mul(grid.inner).saturating_add(inner);
                let count = counts.get(at).copied().unwrap_or(0);
                let exact = sums
                    .get(at)
                    .copied()
                    .unwrap_or(0)
                    .saturating_sub(count.saturating_mul(i128::from(c)));
                noisy.push(exact.saturating_add(self.noise.lattice(&lattice)));
            }
        }
        if let Some(lattice) = widest {
            self.record(&step.name, &lattice, sum.fixed.step());
        }
        Ok((noisy, centres))
    }
}

fn ranges(grid: &Grid<'_>, groups: Option<&[Range<usize>]>) -> Vec<Range<usize>> {
    groups.map_or_else(
        || (0..grid.first).map(|i| i..i.saturating_add(1)).collect(),
        <[Range<usize>]>::to_vec,
    )
}

/// Exact merged cells; refuses overlapping groups, because disjointness is part of the sensitivity lemma.
fn merged(
    grid: &Grid<'_>,
    state: &State,
    groups: Option<&[Range<usize>]>,
    offset: usize,
) -> Result<Vec<i128>, DeskError> {
    let ranges = ranges(grid, groups);
    let ordered = ranges
        .iter()
        .zip(ranges.iter().skip(1))
        .all(|(a, b)| a.end <= b.start);
    if !ordered || ranges.iter().any(|r| r.start > r.end || r.end > grid.first) {
        return Err(misuse("groups of cells must be disjoint and in order"));
    }
    let mut out = Vec::with_capacity(ranges.len().saturating_mul(grid.inner));
    for range in ranges {
        for inner in 0..grid.inner {
            let total = range.clone().fold(0i128, |t, cell| {
                let at = offset
                    .saturating_add(cell.saturating_mul(grid.inner))
                    .saturating_add(inner);
                t.saturating_add(state.0.get(at).copied().unwrap_or(0))
            });
            out.push(total);
        }
    }
    Ok(out)
}

/// The narrowest limits that hold for every cell of a group, whatever order the cells' limits come in. A cell's
/// upper limit is at least its lower one, as in the fold.
fn group_limits(limits: &[(i64, i64)], range: &Range<usize>) -> (i64, i64) {
    let last = limits.len().saturating_sub(1);
    let mut group: Option<(i64, i64)> = None;
    for (low, high) in range.clone().filter_map(|cell| limits.get(cell.min(last))) {
        let high = high.max(low);
        group = Some(group.map_or((*low, *high), |(l, h)| (l.min(*low), h.max(*high))));
    }
    group.unwrap_or((0, 0))
}
