//! From noisy counts to vertices, area and interval.

use reticent_laws::Law as _;
use reticent_laws::Seeded;
use reticent_noise::{Lattice, Noise};
use serde_json::{Value, json};

use super::band::{self, Rectangle};
use super::interval::{Ratio, Z, with_shape};
use crate::common::{number, real, size};
use crate::curve::{Point, area_of_cubic, area_of_lines, isotonic, trace_cubic};
use crate::histogram::Spread;

/// Replications of the area's errors.
const REPLICATIONS: u32 = 400;

/// How noise entered the counts.
pub(super) enum Law {
    /// Independent discrete Laplace on every count.
    Laplace(Lattice),
    /// The last, linear step of a histogram method, negatives then positives from the lowest bin; whether that is all its error.
    Linear(bool, Option<Spread>),
}

/// Released counts of one model, from the top score down.
pub(super) struct Tally {
    pub(super) lows: Vec<f64>,
    pub(super) negatives: Vec<f64>,
    pub(super) positives: Vec<f64>,
    pub(super) law: Law,
}

impl Tally {
    /// From counts per bin, the lowest bin first.
    pub(super) fn new(lows: &[f64], negatives: Vec<f64>, positives: Vec<f64>, law: Law) -> Self {
        let turned = |v: Vec<f64>| v.into_iter().rev().collect();
        Self {
            lows: turned(lows.to_vec()),
            negatives: turned(negatives),
            positives: turned(positives),
            law,
        }
    }

    /// Noise like that of the counts, from the top score down.
    fn again(&self, noise: &mut Seeded) -> (Vec<f64>, Vec<f64>) {
        let m = self.positives.len();
        match &self.law {
            Law::Laplace(lattice) => {
                let mut draw = || (0..m).map(|_| real(noise.lattice(lattice))).collect();
                (draw(), draw())
            }
            Law::Linear(_, Some(spread)) => {
                let drawn: Vec<f64> = spread
                    .deviations
                    .iter()
                    .map(|sd| sd * band::laplace(noise) / std::f64::consts::SQRT_2)
                    .collect();
                let zero = (spread.rebuild)(&vec![0.0; drawn.len()]);
                let cells = (spread.rebuild)(&drawn);
                let moved: Vec<f64> = cells.iter().zip(&zero).map(|(a, b)| a - b).collect();
                let (no, yes) = moved.split_at(m.min(moved.len()));
                let turned = |v: &[f64]| v.iter().rev().copied().collect();
                (turned(no), turned(yes))
            }
            Law::Linear(_, None) => (vec![0.0; m], vec![0.0; m]),
        }
    }
}

/// Everything that the pictures and tables of one model are made of.
pub(super) struct Shape<'a> {
    pub(super) tally: &'a Tally,
    pub(super) points: Vec<Point>,
    pub(super) cubic: bool,
    /// Whether thresholds are quantiles, so that a cubic may join the vertices.
    chosen: bool,
    pub(super) auc: f64,
    /// Approximate interval of the area.
    pub(super) interval: Option<(f64, f64)>,
    pub(super) error: Option<f64>,
    /// What the interval of the area inverts, if the noise is known.
    ratio: Option<Ratio>,
    /// Area by the cubic less that by lines, where thresholds are quantiles.
    bent: f64,
    /// Standard deviations of the noise in the sums of the k topmost bins: negatives, positives.
    pub(super) deviations: (Vec<f64>, Vec<f64>),
    /// The same of single bins.
    pub(super) single: (Vec<f64>, Vec<f64>),
    /// The same of the sums of all bins but the k topmost, from k = 0 on.
    pub(super) below: (Vec<f64>, Vec<f64>),
    /// Bounds of the vertices, (0, 0) first: false and true positive rate.
    pub(super) bounds: Option<Vec<Bounds>>,
    band: Vec<Rectangle>,
    proved: Option<(f64, f64)>,
    /// Whether the noise of its total explains a class: negatives, positives.
    pub(super) few: (bool, bool),
}

/// Lower and upper bound of a false and of a true positive rate.
pub(super) type Bounds = ((f64, f64), (f64, f64));

impl<'a> Shape<'a> {
    /// `chosen`: thresholds are quantiles, so that a cubic may join the vertices.
    pub(super) fn new(tally: &'a Tally, chosen: bool, seed: usize) -> Self {
        let points = vertices(&tally.negatives, &tally.positives);
        let cubic = chosen && is_smooth(&tally.negatives, &tally.positives);
        let auc = area(&points, cubic);
        let (band, proved, bounds) = match &tally.law {
            Law::Laplace(lattice) => {
                let scale = lattice.scale().to_f64();
                let found = band::band(&tally.negatives, &tally.positives, scale);
                (found.0, Some(found.1), Some(found.2))
            }
            Law::Linear(..) => (Vec::new(), None, None),
        };
        let mut shape = Self {
            tally,
            cubic,
            chosen,
            auc,
            interval: None,
            error: None,
            ratio: None,
            bent: 0.0,
            deviations: (Vec::new(), Vec::new()),
            single: (Vec::new(), Vec::new()),
            below: (Vec::new(), Vec::new()),
            bounds,
            band,
            proved,
            few: (false, false),
            points,
        };
        shape.replicate(seed);
        let small = |counts: &[f64], deviations: &[f64]| {
            // Below this total the noise of the total alone explains it.
            counts.iter().sum::<f64>() <= 2.0 * deviations.last().copied().unwrap_or(0.0)
        };
        shape.few = (
            small(&tally.negatives, &shape.deviations.0),
            small(&tally.positives, &shape.deviations.1),
        );
        shape
    }

    /// Whether the noise is all by which the counts err.
    pub(super) fn known(&self) -> bool {
        matches!(
            &self.tally.law,
            Law::Laplace(_) | Law::Linear(true, Some(_))
        )
    }

    /// The known noise drawn again with a fixed seed: deviations of sums. Then the area's approximate .95 interval.
    fn replicate(&mut self, seed: usize) {
        let tally = self.tally;
        let m = tally.positives.len();
        let mut noise = Seeded::new(0x0052_4f43 + ((seed as u64) << 32));
        let mut squares = [vec![0.0; m], vec![0.0; m], vec![0.0; m], vec![0.0; m]];
        let mut rests = [vec![0.0; m + 1], vec![0.0; m + 1]];
        let drawn: Vec<_> = (0..REPLICATIONS).map(|_| tally.again(&mut noise)).collect();
        for (no, yes) in &drawn {
            for (side, draws) in [no, yes].into_iter().enumerate() {
                let mut sum = 0.0;
                for (k, d) in draws.iter().enumerate() {
                    sum += d;
                    squares[side][k] += sum * sum;
                    squares[side + 2][k] += d * d;
                }
                let mut rest = 0.0;
                for (d, square) in draws.iter().zip(&mut rests[side]).rev() {
                    rest += d;
                    *square += rest * rest;
                }
            }
        }
        let root = |s: f64| (s / f64::from(REPLICATIONS)).sqrt();
        let below = rests.map(|v| v.into_iter().map(root).collect::<Vec<f64>>());
        let [a, b, c, d] = squares.map(|v| v.into_iter().map(root).collect::<Vec<f64>>());
        (self.deviations, self.single) = match &tally.law {
            Law::Laplace(lattice) => {
                let one = lattice.std_dev();
                let sums: Vec<f64> = (1..=m).map(|k| one * size(k).sqrt()).collect();
                let rests: Vec<f64> = (0..=m).map(|k| one * size(m - k).sqrt()).collect();
                self.below = (rests.clone(), rests);
                ((sums.clone(), sums), (vec![one; m], vec![one; m]))
            }
            Law::Linear(..) => {
                let [no, yes] = below;
                self.below = (no, yes);
                ((a, b), (c, d))
            }
        };
        if self.known() {
            self.invert(&drawn);
        }
    }

    /// The approximate interval: test inversion for straight lines, moved and widened by what the shape within bins may add.
    fn invert(&mut self, drawn: &[(Vec<f64>, Vec<f64>)]) {
        let (no, yes) = (&self.tally.negatives, &self.tally.positives);
        self.ratio = Some(match &self.tally.law {
            Law::Laplace(lattice) => Ratio::independent(no, yes, lattice.std_dev()),
            Law::Linear(..) => Ratio::replicated(no, yes, drawn),
        });
        if self.chosen {
            self.bent = area(&self.points, true) - area(&self.points, false);
        }
        self.interval = self.interval_at(Z);
        self.error = self
            .interval
            .map(|(low, high)| (self.auc - low).max(high - self.auc));
    }

    /// The areas that the released counts do not exclude at z deviations of the known noise; nothing if the noise is not known.
    pub(super) fn interval_at(&self, z: f64) -> Option<(f64, f64)> {
        let lines = self.ratio.as_ref()?.interval(z);
        let deviations = self.single.0.iter().chain(&self.single.1);
        let one = deviations.copied().fold(0.0, f64::max);
        let counts = (&*self.tally.negatives, &*self.tally.positives);
        let (low, high) = with_shape(lines, counts, (z, one), self.chosen.then_some(self.bent));
        // The isotonic estimate may leave the interval of the plain counts.
        let low = low.min(self.auc).clamp(0.0, 1.0);
        let high = high.max(self.auc).clamp(0.0, 1.0);
        Some((low, high))
    }

    /// The curve's own part of the value.
    pub(super) fn value(&self) -> Value {
        let tally = self.tally;
        let mut top = 1.0;
        let bins: Vec<Value> = tally
            .lows
            .iter()
            .zip(tally.negatives.iter().zip(&tally.positives))
            .map(|(low, (negatives, positives))| {
                let bin = json!({
                    "score_low": number(*low),
                    "score_high": number(top),
                    "positives": count(*positives),
                    "negatives": count(*negatives),
                });
                top = *low;
                bin
            })
            .collect();
        let curve = if self.cubic {
            trace_cubic(&self.points, 16)
        } else {
            self.points.clone()
        };
        let thresholds = std::iter::once(Value::Null).chain(tally.lows.iter().map(|b| number(*b)));
        let optional = |x: Option<f64>| x.map_or(Value::Null, number);
        json!({
            "vertices": thresholds.zip(&self.points).map(|(threshold, (f, t))| json!({
                "threshold": threshold, "fpr": number(*f), "tpr": number(*t),
            })).collect::<Vec<_>>(),
            "curve": curve.iter().map(|(f, t)| json!({"fpr": number(*f), "tpr": number(*t)})).collect::<Vec<_>>(),
            "interpolation": if self.cubic { "monotone_cubic" } else { "lines" },
            "auc": number(self.auc),
            "auc_low": optional(self.interval.map(|i| i.0)),
            "auc_high": optional(self.interval.map(|i| i.1)),
            "auc_interval": if self.interval.is_some() {
                "approximate: areas that the released counts and the known noise do not exclude"
            } else {
                "none: the error of this way of counting depends on the data"
            },
            "auc_proved_low": optional(self.proved.map(|p| p.0)),
            "auc_proved_high": optional(self.proved.map(|p| p.1)),
            "band": self.band.iter().map(|r| json!({
                "fpr_low": number(r.fpr.0), "fpr_high": number(r.fpr.1),
                "tpr_low": number(r.tpr.0), "tpr_high": number(r.tpr.1),
            })).collect::<Vec<_>>(),
            "bins": bins,
            "error_95": optional(self.error),
        })
    }
}

/// A whole count as a whole number, an estimate as it is.
fn count(x: f64) -> Value {
    if x.fract() == 0.0 && x.abs() < 9.0e15 {
        #[allow(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
        return Value::from(x as i64);
    }
    number(x)
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
pub(super) fn vertices(negatives: &[f64], positives: &[f64]) -> Vec<Point> {
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
pub(super) fn area(points: &[Point], cubic: bool) -> f64 {
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

/// One label's counts with a non-decreasing running sum, from the top score: the counts that the vertices stand for.
pub(super) fn fitted_sums(counts: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let prefix: Vec<f64> = counts
        .iter()
        .map(|c| {
            sum += c;
            sum
        })
        .collect();
    isotonic(&prefix).into_iter().map(|s| s.max(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_classes_give_the_diagonal() {
        let points = vertices(&[-1.0, 0.0, -2.0], &[0.0, -1.0, 0.0]);
        assert_eq!(points.first(), Some(&(0.0, 0.0)));
        assert_eq!(points.last(), Some(&(1.0, 1.0)));
        assert!((area(&points, false) - 0.5).abs() < 1e-12);
    }
}
