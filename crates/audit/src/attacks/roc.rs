//! The one unknown record, from an exact ROC curve (Matthews and Harel 2013; Stoddard, Chen, Machanavajjhala 2014, §4.3).
//!
//! The adversary knows the scores and labels of all records but one, and the published curve. Every hypothesis about
//! the missing record (label, place among the known scores) gives a curve; the published one leaves only the truth.

/// A record: score and label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// Score of the model.
    pub score: f64,
    /// Whether the outcome is positive.
    pub positive: bool,
}

/// An exact empirical curve: (false positive rate, true positive rate) after each distinct score, the highest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve(pub Vec<(f64, f64)>);

/// Positives and negatives by distinct score, the highest first.
fn steps(records: &[Scored]) -> Vec<(f64, u32, u32)> {
    let mut sorted: Vec<&Scored> = records.iter().collect();
    sorted.sort_by(|a, b| b.score.total_cmp(&a.score));
    let mut steps: Vec<(f64, u32, u32)> = Vec::new();
    for r in sorted {
        let (p, n) = (u32::from(r.positive), u32::from(!r.positive));
        match steps.last_mut() {
            Some(last) if last.0.total_cmp(&r.score).is_eq() => {
                last.1 += p;
                last.2 += n;
            }
            _ => steps.push((r.score, p, n)),
        }
    }
    steps
}

fn curve_of(steps: impl Iterator<Item = (u32, u32)> + Clone) -> Curve {
    let (positives, negatives) = steps
        .clone()
        .fold((0, 0), |(p, n), step| (p + step.0, n + step.1));
    let share = |k: u32, n: u32| {
        if n == 0 {
            0.0
        } else {
            f64::from(k) / f64::from(n)
        }
    };
    let (mut p, mut n) = (0, 0);
    Curve(
        steps
            .map(|step| {
                p += step.0;
                n += step.1;
                (share(n, negatives), share(p, positives))
            })
            .collect(),
    )
}

/// The exact curve of some records.
pub fn curve(records: &[Scored]) -> Curve {
    curve_of(steps(records).into_iter().map(|(_, p, n)| (p, n)))
}

/// What the curve says about the missing record: a label and the open interval (or the single point) of its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hypothesis {
    /// The label.
    pub positive: bool,
    /// The known score next above (infinite if there is none); equal to `low` if the scores are tied.
    pub high: f64,
    /// The known score next below.
    pub low: f64,
}

impl Hypothesis {
    /// Whether a record fits.
    pub fn fits(&self, r: &Scored) -> bool {
        let tied = self.high.total_cmp(&self.low).is_eq();
        let inside = if tied {
            r.score.total_cmp(&self.low).is_eq()
        } else {
            self.low < r.score && r.score < self.high
        };
        inside && r.positive == self.positive
    }
}

/// All hypotheses that give exactly the published curve.
pub fn infer(known: &[Scored], published: &Curve) -> Vec<Hypothesis> {
    let steps = steps(known);
    let mut found = Vec::new();
    for positive in [false, true] {
        let (p, n) = (u32::from(positive), u32::from(!positive));
        for at in 0..=steps.len() {
            // in the gap above step `at`
            let high = if at == 0 {
                f64::INFINITY
            } else {
                steps[at - 1].0
            };
            let low = steps.get(at).map_or(f64::NEG_INFINITY, |s| s.0);
            if published.0.len() == steps.len() + 1 {
                let with = steps[..at]
                    .iter()
                    .map(|s| (s.1, s.2))
                    .chain([(p, n)])
                    .chain(steps[at..].iter().map(|s| (s.1, s.2)));
                if same(with, published) {
                    found.push(Hypothesis {
                        positive,
                        high,
                        low,
                    });
                }
            }
            // tied with step `at`
            if at < steps.len() && published.0.len() == steps.len() {
                let with = steps.iter().enumerate().map(|(i, s)| {
                    if i == at {
                        (s.1 + p, s.2 + n)
                    } else {
                        (s.1, s.2)
                    }
                });
                if same(with, published) {
                    found.push(Hypothesis {
                        positive,
                        high: low,
                        low,
                    });
                }
            }
        }
    }
    found
}

fn same(steps: impl Iterator<Item = (u32, u32)> + Clone, published: &Curve) -> bool {
    let curve = curve_of(steps);
    curve.0.len() == published.0.len()
        && curve
            .0
            .iter()
            .zip(&published.0)
            .all(|(a, b)| a.0.to_bits() == b.0.to_bits() && a.1.to_bits() == b.1.to_bits())
}
