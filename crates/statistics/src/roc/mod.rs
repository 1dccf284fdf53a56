//! ROC curve, area and a proved band, from label counts in a few bins of the score.
//!
//! Thresholds are recursive medians of the pooled scores on the mixed scale; per bin the positives and the
//! negatives are bought; prefix sums from the top score, an isotonic fit and division by the total give the
//! vertices. Everything after the counts is post-processing.

mod band;

use std::ops::Range;

use reticent_accounting::{AccountingError, Event, Rational, split};
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::primitives::{Counts, Medians};
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use reticent_noise::{Lattice, Noise, Seeded};
use serde_json::{Value, json};

use crate::common::{
    Facts, Prepared, StatisticsError, clipped, number, positive, real, size, whole, with_metadata,
};
use crate::curve::{Point, area_of_cubic, area_of_lines, isotonic, trace_cubic};
use crate::scale::{Score, unmixed};
use crate::simple::flags;

/// Cells of the mixed scale from which thresholds are chosen.
pub(crate) const GRID: u32 = 4096;
/// Replications of the area's approximate interval.
const REPLICATIONS: u32 = 400;

/// How a ROC curve is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// ε of the release.
    pub epsilon: Rational,
    /// Number of bins, rounded down to a power of two; by default from the public number of rows.
    pub bins: Option<u32>,
    /// Share of ε for the thresholds; by default ¼ up to 8 bins and a tenth above.
    pub share: Option<f64>,
    /// Public thresholds on the probability scale; then nothing is spent on choosing them.
    pub thresholds: Option<Vec<f64>>,
    /// Public facts copied into the value (model, positive level).
    pub metadata: Value,
}

impl Config {
    /// The default rules.
    pub fn new(epsilon: Rational) -> Self {
        Self {
            epsilon,
            bins: None,
            share: None,
            thresholds: None,
            metadata: Value::Null,
        }
    }
}

/// A ROC curve of a score against a 0/1 outcome.
pub fn prepare(
    facts: &Facts<'_>,
    score: &Score,
    outcome: Expr,
    config: Config,
) -> Result<Prepared, StatisticsError> {
    positive(&config.epsilon)?;
    let mut unknown_size = false;
    let (term, cut, chosen, depth) = if let Some(thresholds) = &config.thresholds {
        let edges = public_edges(thresholds)?;
        (score.probability(), Cut::Edges(edges), false, 0)
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
                let signal = facts.signal(&config.epsilon);
                unknown_size = signal.is_none();
                signal.map_or(3, default_depth)
            }
        };
        let cut = Cut::Even {
            lower: 0.0,
            upper: 1.0,
            cells: GRID,
        };
        (score.mixed(), cut, true, depth)
    };
    let terms = vec![term, outcome];
    facts.bounds(&terms)?;
    let (for_medians, for_counts) = if chosen {
        let share = config.share.unwrap_or(if depth <= 3 { 0.25 } else { 0.1 });
        if !(share > 0.0 && share < 1.0) {
            return Err(StatisticsError::Parameter {
                name: "share",
                value: share.to_string(),
                fix: "give a share of epsilon between 0 and 1".to_owned(),
            });
        }
        let weight = u64::from(clipped((share * 1e6).round(), 1, 999_999));
        let parts = split(&config.epsilon, &[weight, 1_000_000 - weight]);
        match parts.as_slice() {
            [a, b] => (Some(a.clone()), b.clone()),
            _ => (None, config.epsilon.clone()),
        }
    } else {
        (None, config.epsilon.clone())
    };
    Ok(Prepared {
        terms,
        mechanism: Box::new(Roc {
            cut,
            medians: for_medians.map(|epsilon| Medians {
                name: "thresholds".to_owned(),
                epsilon,
                depth,
            }),
            counts: Counts {
                name: "positives and negatives per bin".to_owned(),
                epsilon: for_counts,
            },
            unknown_size,
            metadata: config.metadata,
        }),
    })
}

/// log₂ of the number of bins: m = 2^⌊.4·log₂(ñε)⌋ within 4..=512.
pub(crate) fn default_depth(signal: f64) -> u32 {
    clipped((0.4 * signal.max(1.0).log2() + 1e-9).floor(), 2, 9)
}

/// Edges with the given thresholds inside and one cell beyond each end.
fn public_edges(thresholds: &[f64]) -> Result<Vec<f64>, StatisticsError> {
    let mut edges = thresholds.to_vec();
    edges.sort_by(f64::total_cmp);
    edges.dedup();
    let fine = edges.iter().all(|t| (0.0..=1.0).contains(t));
    if edges.is_empty() || edges.len() > 1 << 16 || !fine {
        return Err(StatisticsError::Parameter {
            name: "thresholds",
            value: format!("{} values", thresholds.len()),
            fix: "give 1 to 65536 probabilities".to_owned(),
        });
    }
    // No probability lies outside [0, 1], so these two cells only close the grid.
    edges.insert(0, -1.0);
    edges.push(2.0);
    Ok(edges)
}

/// # Claim
/// ε-DP for the context's relation and unit: only [`Medians`] and [`Counts`] are bought.
/// # Assumptions
/// Those of the two primitives; the score is a public function of the row (a released model).
/// # Composition
/// Sequential: thresholds ε₁, counts ε₂, ε₁ + ε₂ = ε exactly (`accounting::split`). With public thresholds
/// all of ε goes to the counts. Positives and negatives of all bins are disjoint cells of one purchase.
/// # Arithmetic
/// Cells are chosen and counted on one grid of 4096 cells of the mixed scale × label; a bin is a range of
/// cells. Rates, areas and the band are post-processing in f64; an empty class gets equal steps, flagged.
/// # Checked by
/// `golden::roc_is_the_step_function`, `contract::inner_events_sum_to_epsilon`,
/// `contract::every_kind_answers_on_every_table`, `seeded::roc_is_accurate_and_covered`
/// # References
/// `decisions.md` §2.3, §5.1, §6.5; `beyond.md` §1, §2
struct Roc {
    cut: Cut,
    medians: Option<Medians>,
    counts: Counts,
    unknown_size: bool,
    metadata: Value,
}

impl Mechanism for Roc {
    fn kind(&self) -> &'static str {
        "roc"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        let mut steps = Vec::new();
        steps.extend(self.medians.as_ref().map(|m| m.event(context)));
        steps.push(self.counts.event(context));
        Ok(Event::Sequence(steps))
    }
    fn first_pass(&self) -> Vec<Fold> {
        vec![Fold::Grid {
            axes: vec![
                Axis {
                    term: 0,
                    cut: self.cut.clone(),
                },
                Axis {
                    term: 1,
                    cut: Cut::Whole(2),
                },
            ],
            sum: None,
        }]
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let (groups, lows) = match (&self.medians, &self.cut) {
            (Some(step), _) => {
                let chosen = desk.medians(FoldId(0), step)?;
                let groups = groups(&chosen, GRID as usize);
                let lows: Vec<f64> = groups
                    .iter()
                    .map(|g| unmixed(size(g.start) / f64::from(GRID)))
                    .collect();
                (groups, lows)
            }
            (None, Cut::Edges(edges)) => {
                let cells = edges.len().saturating_sub(1);
                let groups = (0..cells).map(|i| i..i + 1).collect();
                let lows = edges.iter().take(cells).map(|e| e.max(0.0)).collect();
                (groups, lows)
            }
            (None, _) => (std::iter::once(0..GRID as usize).collect(), vec![0.0]),
        };
        let noisy = desk.counts(FoldId(0), Some(&groups), &self.counts)?;
        let lattice = self.counts.lattice(desk.context())?;
        Ok(self.finish(&noisy, &lows, &lattice))
    }
}

/// Ranges of cells between chosen boundaries.
pub(crate) fn groups(chosen: &[usize], cells: usize) -> Vec<Range<usize>> {
    let mut start = 0;
    let mut all = Vec::with_capacity(chosen.len() + 1);
    for &b in chosen {
        all.push(start..b);
        start = b;
    }
    all.push(start..cells);
    all
}

/// The vertices of one label: prefix sums from the top score, isotonic, divided by their total.
fn rates(counts: &[f64]) -> Option<Vec<f64>> {
    let mut sum = 0.0;
    let prefix: Vec<f64> = counts
        .iter()
        .map(|c| {
            sum += c;
            sum
        })
        .collect();
    let fit = isotonic(&prefix);
    let total = fit.last().copied().unwrap_or(0.0);
    (total > 0.0).then(|| fit.iter().map(|s| (s.max(0.0) / total).min(1.0)).collect())
}

/// The curve of two sequences of rates, (0,0) first. An empty class gets equal steps.
fn vertices(negatives: &[f64], positives: &[f64]) -> Vec<Point> {
    let even = || -> Vec<f64> {
        let m = size(positives.len().max(1));
        (1..=positives.len()).map(|k| size(k) / m).collect()
    };
    let fpr = rates(negatives).unwrap_or_else(even);
    let tpr = rates(positives).unwrap_or_else(even);
    std::iter::once((0.0, 0.0))
        .chain(fpr.into_iter().zip(tpr))
        .collect()
}

/// The area: mean of the areas of T(F) and F(T).
fn area(points: &[Point], cubic: bool) -> f64 {
    let flipped: Vec<Point> = points.iter().map(|(f, t)| (*t, *f)).collect();
    let (a, b) = if cubic {
        (area_of_cubic(points), area_of_cubic(&flipped))
    } else {
        (area_of_lines(points), area_of_lines(&flipped))
    };
    (0.5 * (a + 1.0 - b)).clamp(0.0, 1.0)
}

/// The cubic suits smooth scores: every pooled bin has at least a quarter of its even share.
fn is_smooth(negatives: &[f64], positives: &[f64]) -> bool {
    let pooled: Vec<f64> = negatives
        .iter()
        .zip(positives)
        .map(|(a, b)| a + b)
        .collect();
    let total: f64 = pooled.iter().sum();
    let least = total / (4.0 * size(pooled.len().max(1)));
    pooled.len() > 2 && total > 0.0 && pooled.iter().all(|n| *n >= least)
}

impl Roc {
    /// Post-processing of the noisy counts; `noisy` is bins × (negatives, positives), bins from the lowest
    /// score, `lows` their lower ends.
    fn finish(&self, noisy: &[i128], lows: &[f64], lattice: &Lattice) -> Answer {
        let bins: Vec<(f64, i128, i128)> = lows
            .iter()
            .zip(noisy.chunks_exact(2))
            .filter_map(|(low, pair)| match pair {
                [negative, positive] => Some((*low, *negative, *positive)),
                _ => None,
            })
            .rev()
            .collect();
        let negatives: Vec<f64> = bins.iter().map(|b| real(b.1)).collect();
        let positives: Vec<f64> = bins.iter().map(|b| real(b.2)).collect();
        let points = vertices(&negatives, &positives);
        let cubic = self.medians.is_some() && is_smooth(&negatives, &positives);
        let auc = area(&points, cubic);
        let (low, high) = interval(&points, &negatives, &positives, lattice, cubic, auc);
        let scale = lattice.scale().to_f64();
        let (band, proved) = band::band(&negatives, &positives, scale);
        let error = (auc - low).max(high - auc);
        let mut top = 1.0;
        let shown: Vec<Value> = bins
            .iter()
            .map(|(low, negative, positive)| {
                let bin = json!({
                    "score_low": number(*low),
                    "score_high": number(top),
                    "positives": whole(*positive),
                    "negatives": whole(*negative),
                });
                top = *low;
                bin
            })
            .collect();
        let curve = if cubic {
            trace_cubic(&points, 16)
        } else {
            points.clone()
        };
        let small = |counts: &[f64]| {
            // Below this total the noise of the total alone explains it.
            counts.iter().sum::<f64>() <= 2.0 * scale * (2.0 * size(counts.len())).sqrt()
        };
        let thresholds = std::iter::once(Value::Null).chain(bins.iter().map(|b| number(b.0)));
        let value = json!({
            "vertices": thresholds.zip(&points).map(|(threshold, (f, t))| json!({
                "threshold": threshold, "fpr": number(*f), "tpr": number(*t),
            })).collect::<Vec<_>>(),
            "curve": curve.iter().map(|(f, t)| json!({"fpr": number(*f), "tpr": number(*t)})).collect::<Vec<_>>(),
            "interpolation": if cubic { "monotone_cubic" } else { "lines" },
            "auc": number(auc),
            "auc_low": number(low),
            "auc_high": number(high),
            "auc_interval": "approximate: released counts with the known noise added again",
            "auc_proved_low": number(proved.0),
            "auc_proved_high": number(proved.1),
            "band": band.iter().map(|r| json!({
                "fpr_low": number(r.fpr.0), "fpr_high": number(r.fpr.1),
                "tpr_low": number(r.tpr.0), "tpr_high": number(r.tpr.1),
            })).collect::<Vec<_>>(),
            "bins": shown,
            "error_95": number(error),
        });
        Answer {
            value: with_metadata(value, &self.metadata),
            error_95: Some(error),
            flags: flags(&[
                (self.unknown_size, "size_unknown"),
                (small(&positives), "few_positives"),
                (small(&negatives), "few_negatives"),
            ]),
        }
    }
}

/// An approximate .95 interval of the area: the released curve as truth, the known noise added again with a
/// fixed seed, and half the difference between cubic and lines for the unknown shape within bins.
fn interval(
    points: &[Point],
    negatives: &[f64],
    positives: &[f64],
    lattice: &Lattice,
    cubic: bool,
    auc: f64,
) -> (f64, f64) {
    let truth = |pick: fn(&Point) -> f64, counts: &[f64]| -> Vec<f64> {
        let total: f64 = counts.iter().sum::<f64>().max(0.0);
        points
            .iter()
            .zip(points.iter().skip(1))
            .map(|(a, b)| (pick(b) - pick(a)) * total)
            .collect()
    };
    let (negatives, positives) = (truth(|p| p.0, negatives), truth(|p| p.1, positives));
    let mut noise = Seeded::new(0x0052_4f43);
    let mut again = |counts: &[f64]| -> Vec<f64> {
        counts
            .iter()
            .map(|c| c + real(noise.lattice(lattice)))
            .collect()
    };
    let mut errors: Vec<f64> = (0..REPLICATIONS)
        .map(|_| {
            let (n, p) = (again(&negatives), again(&positives));
            area(&vertices(&n, &p), cubic) - auc
        })
        .collect();
    errors.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let index = clipped(
            (share * f64::from(REPLICATIONS)).round(),
            0,
            REPLICATIONS - 1,
        );
        errors.get(index as usize).copied().unwrap_or(0.0)
    };
    let shape = if cubic {
        0.5 * (auc - area(points, false)).abs()
    } else {
        0.0
    };
    // Reflected at the estimate: an error e in the replication means the truth lies at −e.
    let low = (auc - at(0.975).max(0.0) - shape).clamp(0.0, 1.0);
    let high = (auc - at(0.025).min(0.0) + shape).clamp(0.0, 1.0);
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_follow_the_rule() {
        for (signal, bins) in [
            (1.0, 4),
            (181.0, 4),
            (182.0, 8),
            (1023.0, 8),
            (1024.0, 16),
            (5793.0, 32),
            (32768.0, 64),
            (185_364.0, 128),
            (1_048_576.0, 256),
            (1e12, 512),
        ] {
            assert_eq!(1u32 << default_depth(signal), bins, "{signal}");
        }
    }

    #[test]
    fn empty_classes_give_the_diagonal() {
        let points = vertices(&[-1.0, 0.0, -2.0], &[0.0, -1.0, 0.0]);
        assert_eq!(points.first(), Some(&(0.0, 0.0)));
        assert_eq!(points.last(), Some(&(1.0, 1.0)));
        assert!((area(&points, false) - 0.5).abs() < 1e-12);
    }
}
