//! Binned residual plot: mean of outcome minus predicted probability in bins of the prediction.
//!
//! Thresholds by recursive medians (.2ε), counts by label (.7ε), sums of centred predictions (.1ε). The mean
//! residual needs no purchase of its own: it is the share of positives minus the mean prediction.
//!
//! PriBRP as corrected is [`Config::published`]: 2^s bins with 2^s ≤ √n, small neighbours merged by a sparse vector, then the same
//! two purchases. Bins can also be made along any declared column instead of the prediction ([`Config::against`]).

use std::ops::Range;

use std::sync::OnceLock;

use reticent_accounting::{AccountingError, Event, Rational, split};
use reticent_laws::Law;
use reticent_mechanisms::fold::{Axis, CellSum, Cut, FixedPoint, Fold};
use reticent_mechanisms::primitives::{Counts, MergedBins, Sides, Sums};
use reticent_mechanisms::program::{Expr, Interval};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::{Value, json};

use crate::bisect::Medians;
use crate::common::{
    Facts, Prepared, StatisticsError, clipped, number, positive, real, size, whole, with_metadata,
};
use crate::roc::{GRID, groups};
use crate::scale::{Score, unmixed};
use crate::simple::flags;

/// Predictions are summed on a grid of 2⁻⁴⁰.
const FIXED: FixedPoint = FixedPoint { bits: 40 };

/// How a binned residual plot is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// ε of the release.
    pub epsilon: Rational,
    /// Number of bins, rounded down to a power of two; by default from the public number of rows.
    pub bins: Option<u32>,
    /// Public, increasing edges on the probability scale; then nothing is spent on choosing them.
    pub edges: Option<Vec<f64>>,
    /// Merge neighbouring bins that are too small (a tenth of ε, as for choosing the bins); not with public edges.
    pub adjust: bool,
    /// Share of ε for choosing the bins, and once more for adjusting them (the thesis's ρ); by default a fifth, or a tenth each.
    pub share: Option<f64>,
    /// What the bins are made of, instead of the prediction: a name and a bounded expression.
    pub against: Option<(String, Expr)>,
    /// Public facts copied into the value (model).
    pub metadata: Value,
}

impl Config {
    /// The default rules.
    pub fn new(epsilon: Rational) -> Self {
        Self {
            epsilon,
            bins: None,
            edges: None,
            adjust: false,
            share: None,
            against: None,
            metadata: Value::Null,
        }
    }

    /// PriBRP as corrected, for a public or released number of rows.
    pub fn published(epsilon: Rational, rows: Option<f64>) -> Self {
        let depth = clipped(
            (rows.unwrap_or(0.0).max(1.0).sqrt().log2() + 1e-9).floor(),
            1,
            GRID.ilog2() - 1,
        );
        Self {
            bins: Some(1 << depth),
            adjust: true,
            ..Self::new(epsilon)
        }
    }
}

/// Binned residuals of a predicted probability against a 0/1 outcome.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// let people = People::new();
/// // a fitted probability that is too small for the old
/// let score = Score::Probability(AGE.mul(Expr::Constant(0.005)));
/// let config = binned::Config::new(epsilon());
/// let value = people.release(&binned::prepare(&people.facts(), &score, SICK, config)?);
/// let last = value["bins"].as_array().unwrap().last().unwrap();
/// assert!(last["mean_residual"].as_f64() > last["two_se"].as_f64());
/// # Ok(())
/// # }
/// ```
pub fn prepare(
    facts: &Facts<'_>,
    score: &Score,
    outcome: Expr,
    config: Config,
) -> Result<Prepared, StatisticsError> {
    positive(&config.epsilon)?;
    let mut unknown_size = false;
    let across = match &config.against {
        Some((_, expr)) => Some(facts.interval(expr)?),
        None => None,
    };
    let axis_term = |default: Expr| match &config.against {
        Some((_, expr)) => expr.clone(),
        None => default,
    };
    let (axis_term, cut, limits, depth) = if let Some(edges) = &config.edges {
        let ends = checked_edges(edges, across.is_some(), config.adjust)?;
        // Along a column any prediction can be in any bin.
        let ends = if across.is_some() {
            vec![UNIT; edges.len() - 1]
        } else {
            pairs(&ends)
        };
        (
            axis_term(score.probability()),
            Cut::Edges(edges.clone()),
            limits(&ends),
            None,
        )
    } else {
        let depth = match config.bins {
            Some(bins) if (2..=GRID / 2).contains(&bins) => bins.ilog2(),
            Some(bins) => {
                return Err(StatisticsError::Parameter {
                    name: "bins",
                    value: bins.to_string(),
                    fix: format!("give 2 to {}", GRID / 2),
                });
            }
            None => {
                let known = facts.rows.zip(facts.signal(&config.epsilon));
                unknown_size = known.is_none();
                known.map_or(3, |(rows, signal)| default_depth(rows, signal))
            }
        };
        let (interval, ends) = even_cells(across);
        let cut = Cut::Even {
            lower: interval.lower,
            upper: interval.upper,
            cells: GRID,
        };
        (axis_term(score.mixed()), cut, limits(&ends), Some(depth))
    };
    let terms = vec![axis_term, outcome, score.probability()];
    facts.bounds(&terms)?;
    let adjust = config.adjust && depth.is_some();
    let weights = weights(&config, depth.is_some(), adjust)?;
    let parts = split(&config.epsilon, &weights);
    let part = |i: usize| parts.get(i).cloned().unwrap_or(Rational::ZERO);
    Ok(Prepared {
        terms,
        mechanism: Box::new(Binned {
            cut,
            limits,
            across,
            merge: depth
                .filter(|_| adjust)
                .map(|depth| merge(facts, depth, part(1))),
            medians: depth.map(|depth| Medians {
                name: "bins".to_owned(),
                epsilon: part(0),
                depth,
            }),
            counts: Counts {
                name: "outcomes per bin".to_owned(),
                epsilon: part(2),
            },
            sums: Sums {
                name: "centred predictions per bin".to_owned(),
                epsilon: part(3),
                centred: true,
            },
            unknown_size,
            axis: config
                .against
                .map_or_else(|| "fitted probability".to_owned(), |(name, _)| name),
            metadata: config.metadata,
        }),
    })
}

/// How ε is divided: bins, adjustment, outcomes, centred predictions.
fn weights(config: &Config, chosen: bool, adjust: bool) -> Result<[u64; 4], StatisticsError> {
    let refuse = |share: f64, fix: &str| {
        Err(StatisticsError::Parameter {
            name: "share",
            value: share.to_string(),
            fix: fix.to_owned(),
        })
    };
    match config.share {
        Some(share) if !chosen => {
            refuse(share, "public edges cost nothing; leave one of the two out")
        }
        Some(share) if !(share > 0.0 && share < if adjust { 0.5 } else { 1.0 }) => refuse(
            share,
            "give a share of epsilon between 0 and 1, and below 1/2 with adjustment, which takes as much again",
        ),
        Some(share) => {
            let one = u64::from(clipped((share * 1e6).round(), 1, 999_999));
            let both = if adjust { 2 * one } else { one };
            let rest = 1_000_000u64.saturating_sub(both).max(1);
            let parts = if adjust { (9, 1) } else { (7, 1) };
            let whole = parts.0 + parts.1;
            Ok([
                one * whole,
                (both - one) * whole,
                rest * parts.0,
                rest * parts.1,
            ])
        }
        None => Ok(match (chosen, adjust) {
            (true, true) => [10, 10, 72, 8],
            (true, false) => [2, 0, 7, 1],
            _ => [0, 0, 7, 1],
        }),
    }
}

/// Ends of the fine cells as probabilities: the same for every plot, found once per process.
static ENDS: OnceLock<Vec<f64>> = OnceLock::new();

/// The axis of the fine cells and the limits of the predictions in each.
fn even_cells(across: Option<Interval>) -> (Interval, Vec<(f64, f64)>) {
    if let Some(interval) = across {
        return (interval, vec![UNIT; GRID as usize]);
    }
    let end = |i| unmixed(f64::from(i) / f64::from(GRID));
    let ends = ENDS.get_or_init(|| (0..=GRID).map(end).collect());
    let axis = Interval {
        lower: UNIT.0,
        upper: UNIT.1,
    };
    (axis, pairs(ends))
}

/// Limits of a probability.
const UNIT: (f64, f64) = (0.0, 1.0);

fn pairs(ends: &[f64]) -> Vec<(f64, f64)> {
    ends.iter()
        .zip(ends.iter().skip(1))
        .map(|(a, b)| (*a, *b))
        .collect()
}

/// Public edges; those of probabilities reach to 0 and 1, because predictions outside count in the outer bins.
fn checked_edges(edges: &[f64], any: bool, adjust: bool) -> Result<Vec<f64>, StatisticsError> {
    let refuse = |fix: &str| StatisticsError::Parameter {
        name: "edges",
        value: format!("{} values", edges.len()),
        fix: fix.to_owned(),
    };
    if adjust {
        return Err(refuse(
            "public edges are not adjusted; leave one of the two out",
        ));
    }
    let increasing = edges.iter().zip(edges.iter().skip(1)).all(|(a, b)| a < b);
    let inside = any || edges.iter().all(|e| (0.0..=1.0).contains(e));
    let finite = edges.iter().all(|e| e.is_finite());
    if edges.len() < 2 || edges.len() > 1 << 16 || !increasing || !inside || !finite {
        return Err(refuse(if any {
            "give at least two increasing numbers"
        } else {
            "give at least two increasing probabilities"
        }));
    }
    let mut ends = edges.to_vec();
    if let Some(first) = ends.first_mut() {
        *first = 0.0;
    }
    if let Some(last) = ends.last_mut() {
        *last = 1.0;
    }
    Ok(ends)
}

/// The adjustment of 2^depth bins. Thesis: θ = n/2^{s+1} + 4·ln(2/γ)/ε₂, γ = .9; the second term is the scale of its noise times
/// ln(2/γ), and our scale is a/ε₂ (a = 1, replace-one 2).
fn merge(facts: &Facts<'_>, depth: u32, epsilon: Rational) -> MergedBins {
    let half = facts.rows.unwrap_or(0.0) / f64::from(1u32 << (depth + 1).min(31));
    let noise = f64::from(facts.context.touches()) / facts.per_record(&epsilon);
    let threshold = half + noise * (2.0f64 / 0.9).ln();
    MergedBins {
        name: "bins adjustment".to_owned(),
        epsilon,
        threshold: i128::from(clipped(threshold.ceil(), 1, u32::MAX)),
        sides: Sides::One,
    }
}

/// `decisions.md` §5.3: s = clip(⌊log₂ min(√ñ, ñε/150)⌋, 3, 6).
pub(crate) fn default_depth(rows: f64, signal: f64) -> u32 {
    let bins = rows.max(1.0).sqrt().min(signal / 150.0).max(1.0);
    clipped((bins.log2() + 1e-9).floor(), 3, 6)
}

/// Limits of the predictions of each cell, one grid step wider than its ends: the prediction and the cell
/// are computed separately and may differ by rounding.
fn limits(ends: &[(f64, f64)]) -> Vec<(i64, i64)> {
    ends.iter()
        .map(|(low, high)| {
            (
                FIXED.index(*low).saturating_sub(SLACK),
                FIXED.index(*high).saturating_add(SLACK),
            )
        })
        .collect()
}

/// Grid steps (2⁻⁴⁰ each) by which rounding of the mixed scale may move a prediction past its cell.
const SLACK: i64 = 1 << 10;

/// # Claim
/// ε-DP for the context's relation and unit: [`Medians`], [`MergedBins`] if wanted, [`Counts`] and centred [`Sums`] are bought.
/// # Assumptions
/// Those of the primitives. Limits of a bin's predictions are public functions of its cells; a prediction
/// outside them (rounding) is clamped by the fold, record by record.
/// # Composition
/// Sequential .2ε, .7ε, .1ε (7 : 1 with public edges; .1, .1, .72, .08 with adjustment; or by [`Config::share`]); the total is exact (`accounting::split`).
/// The adjustment counts the released bins in a pass of its own.
/// # Arithmetic
/// Predictions on a grid of 2⁻⁴⁰. The mean residual is the share of positives less the mean prediction.
/// # Checked by
/// `golden::binned_residuals_meet_the_reference`, `contract::inner_events_sum_to_epsilon`,
/// `contract::every_kind_answers_on_every_table`, `seeded::binned_residuals_see_a_shift`
/// # References
/// `decisions.md` §5.3, §6.5; `privacy.md` §8; `beyond.md` §5
struct Binned {
    cut: Cut,
    limits: Vec<(i64, i64)>,
    /// The range of the column along which bins are made, if it is not the prediction.
    across: Option<Interval>,
    merge: Option<MergedBins>,
    axis: String,
    medians: Option<Medians>,
    counts: Counts,
    sums: Sums,
    unknown_size: bool,
    metadata: Value,
}

struct Bin {
    low: f64,
    high: f64,
    /// Where it is drawn: the middle along a column, else the mean prediction.
    place: f64,
    count: f64,
    mean_fitted: f64,
    mean_residual: f64,
    two_se: f64,
}

/// Cells and the ends of the axis that belong to them.
type Group = (Range<usize>, (f64, f64));

impl Binned {
    /// Groups of cells and the ends of the axis that belong to them.
    fn bins(&self, desk: &mut Desk<'_>) -> Result<Vec<Group>, DeskError> {
        let cells = self.cut.cells();
        let Some(step) = &self.medians else {
            let edges = match &self.cut {
                Cut::Edges(edges) => edges.as_slice(),
                _ => &[],
            };
            return Ok((0..cells).map(|i| i..i + 1).zip(pairs(edges)).collect());
        };
        let mut groups = groups(&step.buy(desk, FoldId(0))?, cells);
        if let Some(step) = &self.merge {
            groups = self.merged(desk, step, groups)?;
        }
        let share = |cell: usize| size(cell) / f64::from(GRID);
        let end = |cell: usize| match self.across {
            Some(i) => i.lower + (i.upper - i.lower) * share(cell),
            None => unmixed(share(cell)),
        };
        Ok(groups
            .into_iter()
            .map(|g| {
                let ends = (end(g.start), end(g.end));
                (g, ends)
            })
            .collect())
    }

    /// Merges neighbours from the left until each is large enough; what is left over joins the last.
    fn merged(
        &self,
        desk: &mut Desk<'_>,
        step: &MergedBins,
        groups: Vec<Range<usize>>,
    ) -> Result<Vec<Range<usize>>, DeskError> {
        let groups: Vec<Range<usize>> = groups.into_iter().filter(|g| !g.is_empty()).collect();
        let (lower, upper) = match &self.cut {
            Cut::Even { lower, upper, .. } => (*lower, *upper),
            _ => UNIT,
        };
        let edge = |cell: usize| lower + (upper - lower) * size(cell) / f64::from(GRID);
        let edges = std::iter::once(0)
            .chain(groups.iter().map(|g| g.end))
            .map(edge)
            .collect();
        let folds = desk.scan(vec![Fold::Grid {
            axes: vec![Axis {
                term: 0,
                cut: Cut::Edges(edges),
            }],
            sum: None,
        }])?;
        let ends = desk.merged_bins(folds.first().copied().unwrap_or(FoldId(0)), step)?;
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(ends.len() + 1);
        let mut start = 0;
        for end in ends {
            if let Some(last) = end.checked_sub(1).and_then(|i| groups.get(i)) {
                merged.push(start..last.end);
                start = last.end;
            }
        }
        let all = groups.last().map_or(start, |g| g.end);
        match merged.last_mut() {
            Some(last) => last.end = all,
            None => merged.push(0..all),
        }
        Ok(merged)
    }
}

impl Mechanism for Binned {
    fn kind(&self) -> &'static str {
        "binned_residuals"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        let mut steps = Vec::new();
        steps.extend(self.medians.as_ref().map(|m| m.event(context)));
        steps.extend(self.merge.as_ref().map(|m| m.event(context)));
        steps.push(self.counts.event(context));
        steps.push(self.sums.event(context));
        Ok(Event::Sequence(steps))
    }
    fn passes(&self) -> u32 {
        u32::from(self.merge.is_some())
    }
    fn first_pass(&self) -> Vec<Fold> {
        let axis = |term: usize, cut: Cut| Axis { term, cut };
        vec![
            Fold::Grid {
                axes: vec![axis(0, self.cut.clone()), axis(1, Cut::Whole(2))],
                sum: None,
            },
            // Without the label axis: one sum, and one noise, per bin.
            Fold::Grid {
                axes: vec![axis(0, self.cut.clone())],
                sum: Some(CellSum {
                    term: 2,
                    fixed: FIXED,
                    limits: self.limits.clone(),
                }),
            },
        ]
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let (groups, ends): (Vec<Range<usize>>, Vec<(f64, f64)>) =
            self.bins(desk)?.into_iter().unzip();
        let counts = desk.counts(FoldId(0), Some(&groups), &self.counts)?;
        let (sums, centres) = desk.sums(FoldId(1), Some(&groups), &self.sums)?;
        let count_noise = self.counts.lattice(desk.context())?;
        let mut bins = Vec::with_capacity(groups.len());
        for (g, group) in groups.iter().enumerate() {
            let low = self.limits.get(group.start).map_or(0, |l| l.0);
            let high = self
                .limits
                .get(group.end.saturating_sub(1))
                .map_or(0, |l| l.1);
            let sum_noise = self.sums.lattice(low, high, desk.context())?.std_dev() * FIXED.step();
            let (low, high) = ends.get(g).copied().unwrap_or(UNIT);
            let mut bin = bin(
                if self.across.is_some() {
                    UNIT
                } else {
                    (low, high)
                },
                (
                    real(counts.get(2 * g).copied().unwrap_or(0)),
                    real(counts.get(2 * g + 1).copied().unwrap_or(0)),
                ),
                FIXED.value(i128::from(centres.get(g).copied().unwrap_or(0))),
                FIXED.value(sums.get(g).copied().unwrap_or(0)),
                (count_noise.std_dev(), sum_noise),
            );
            if self.across.is_some() {
                (bin.low, bin.high, bin.place) = (low, high, 0.5 * (low + high));
            }
            bins.push((
                bin,
                counts.get(2 * g).copied().unwrap_or(0),
                counts.get(2 * g + 1).copied().unwrap_or(0),
            ));
        }
        let error = count_noise.quantile_95();
        let slope = weighted_slope(bins.iter().map(|b| &b.0));
        let thin = bins.iter().any(|b| b.0.count < 2.0 * error);
        let shown = |(b, negatives, positives): &(Bin, i128, i128)| {
            let mut one = json!({
                "low": number(b.low),
                "high": number(b.high),
                "count": whole(negatives.saturating_add(*positives)),
                "positives": whole(*positives),
                "mean_fitted": number(b.mean_fitted),
                "mean_residual": number(b.mean_residual),
                "two_se": number(b.two_se),
            });
            if let (Some(_), Value::Object(map)) = (self.across, &mut one) {
                map.insert("place".to_owned(), number(b.place));
            }
            one
        };
        let value = json!({
            "x": self.axis,
            "bins": bins.iter().map(shown).collect::<Vec<_>>(),
            "weighted_slope": slope.map_or(Value::Null, number),
            "error_95": number(error),
        });
        Ok(Answer {
            value: with_metadata(value, &self.metadata),
            error_95: Some(error),
            flags: flags(&[(self.unknown_size, "size_unknown"), (thin, "thin_bins")]),
        })
    }
}

/// Means of one bin [low, high) from noisy counts, the centre c and the noisy sum T of (p − c).
///
/// The variance of a residual is that of the outcome in the bin; a bin that shows one outcome only would claim
/// certainty, so there the model's variance stands in. Noise: with m = m₀ + m₁ the mean residual is (m₁ − c·m − T)/m, so m₁ moves it
/// by (1 − c − r)/m, m₀ by −(c + r)/m and T by −1/m.
fn bin(
    (low, high): (f64, f64),
    (negatives, positives): (f64, f64),
    centre: f64,
    sum: f64,
    (count_sd, sum_sd): (f64, f64),
) -> Bin {
    let count = (negatives + positives).max(1.0);
    let mean_fitted = (centre + sum / count).clamp(low, high);
    let mean_residual = ((positives - centre * count - sum) / count).clamp(-high, 1.0 - low);
    let observed = (mean_fitted + mean_residual).clamp(0.0, 1.0);
    let of_outcome = if negatives >= 1.0 && positives >= 1.0 {
        observed * (1.0 - observed) * count / (count - 1.0)
    } else {
        mean_fitted * (1.0 - mean_fitted)
    };
    let variance = of_outcome / count;
    let noise = ((1.0 - centre - mean_residual) * count_sd).powi(2)
        + ((centre + mean_residual) * count_sd).powi(2)
        + sum_sd * sum_sd;
    Bin {
        low,
        high,
        place: mean_fitted,
        count,
        mean_fitted,
        mean_residual,
        two_se: 2.0 * (variance + noise / (count * count)).sqrt(),
    }
}

/// Slope of mean residual on the bins' places, bins weighted by their released counts.
fn weighted_slope<'a>(bins: impl Iterator<Item = &'a Bin> + Clone) -> Option<f64> {
    let total: f64 = bins.clone().map(|b| b.count).sum();
    let mean = |pick: fn(&Bin) -> f64| -> f64 {
        bins.clone().map(|b| b.count * pick(b)).sum::<f64>() / total
    };
    let (x, y) = (mean(|b| b.place), mean(|b| b.mean_residual));
    let (mut xx, mut xy) = (0.0, 0.0);
    for b in bins {
        xx += b.count * (b.place - x).powi(2);
        xy += b.count * (b.place - x) * (b.mean_residual - y);
    }
    (xx > 1e-12 * total).then(|| xy / xx)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_follow_the_rule() {
        for (rows, epsilon, depth) in [
            (1000.0, 1.0, 3),
            (2500.0, 1.0, 4),
            (5000.0, 1.0, 5),
            (10_000.0, 1.0, 6),
            (1e9, 1.0, 6),
        ] {
            assert_eq!(default_depth(rows, rows * epsilon), depth, "{rows}");
        }
    }
}
