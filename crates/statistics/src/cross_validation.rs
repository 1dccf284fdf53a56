//! Cross-validation: what models say of the records they have not seen, fold by fold, as one figure. Post-processing of released
//! values, which costs nothing.
//!
//! # Noise
//! The area is the mean of the folds' areas; scores of different models are not compared. Around it stands an interval by the
//! method of variance estimates recovery: every fold brings the distance to the ends of its own interval, which holds the privacy
//! noise, and the deviation of an area of so many positives and negatives over the choice of records (Hanley and McNeil). Folds are
//! disjoint and their noise is independent, so squared distances add where the folds are clear. The area of a fold that noise nearly drowns
//! is drawn towards ½, which no mean over folds takes away: the distances of such folds (an end at 0 or 1, or wider than .15) add as they are. The accuracy is the share of right decisions among the noisy
//! counts of all folds; its variance is that of a share of so many records, plus that of the noise, carried through the ratio.
//! What the interval leaves out: other training records would have given other models. No unbiased estimate of that variance
//! exists (Bengio and Grandvalet), so it is said instead.
//! # Checked by
//! `cross_validation::tests`
//! # References
//! Hanley and McNeil 1982; Zou and Donner 2008; Bengio and Grandvalet 2004

use serde_json::{Value, json};

use crate::common::{Prepared, number, with_metadata};
use crate::derived::derived;
use crate::simple::flags;

/// The normal quantile of .975.
const Z: f64 = 1.959_964;

/// What is measured on the records left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Area under the ROC curve; of every fold the value of a `roc` release.
    #[default]
    Auc,
    /// Share of right decisions at probability ½; of every fold a cross table of outcome and decision, row-major, no before yes.
    Accuracy,
}

impl Measure {
    /// Its name in plans.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auc => "auc",
            Self::Accuracy => "accuracy",
        }
    }
}

/// A figure and the ends of its interval; none where noise leaves nothing to say.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Figure {
    estimate: f64,
    low: f64,
    high: f64,
}

impl Figure {
    /// Whether its estimate is not drawn anywhere by noise.
    fn is_clear(&self) -> bool {
        self.low > 0.0 && self.high < 1.0 && self.high - self.low <= CLEAR
    }

    fn json(this: Option<Self>) -> Value {
        let of = |x: fn(&Self) -> f64| this.as_ref().map_or(Value::Null, |f| number(x(f)));
        json!({"estimate": of(|f| f.estimate), "low": of(|f| f.low), "high": of(|f| f.high)})
    }
}

/// One figure from those of the folds, released values. Null stands for a fold that is not there yet.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// use reticent_statistics::cross_validation::Measure;
/// # fn main() -> Result<(), StatisticsError> {
/// let people = People::new();
/// let fold = json!({"counts": [40, 10, 5, 45], "error_95": 3.0});
/// let free = cross_validation::prepare(Measure::Accuracy, &[fold.clone(), fold], &Value::Null);
/// let value = people.release(&free);
/// assert_eq!(value["estimate"], 0.85);
/// assert!(value["low"].as_f64().unwrap() > 0.78 && value["high"].as_f64().unwrap() < 0.91);
/// # Ok(())
/// # }
/// ```
pub fn prepare(measure: Measure, folds: &[Value], metadata: &Value) -> Prepared {
    let each: Vec<Option<Figure>> = folds
        .iter()
        .map(|fold| match measure {
            Measure::Auc => area(fold),
            Measure::Accuracy => accuracy(std::slice::from_ref(fold)),
        })
        .collect();
    let pooled = match measure {
        Measure::Auc => mean(&each),
        Measure::Accuracy => accuracy(folds),
    };
    let there = folds.iter().any(|f| !f.is_null());
    let missing = there && each.iter().any(Option::is_none);
    let mut value = Figure::json(pooled);
    if let Value::Object(fields) = &mut value {
        let list = each.iter().zip(1..).map(|(f, n)| {
            let mut one = Figure::json(*f);
            if let Value::Object(fields) = &mut one {
                fields.insert("fold".to_owned(), json!(n));
            }
            one
        });
        fields.insert("measure".to_owned(), json!(measure.name()));
        fields.insert("folds".to_owned(), list.collect());
        fields.insert(
            "interval".to_owned(),
            json!("approximately .95, for the noise and the choice of the records left out; not for the choice of the training records"),
        );
    }
    let drowned = measure == Measure::Auc && each.iter().flatten().any(|f| !f.is_clear());
    let flags = flags(&[(missing, "fold_without_figure"), (drowned, "noisy_folds")]);
    derived("cross_validation", with_metadata(value, metadata), flags)
}

/// The area of one fold, with the choice of records in its interval.
fn area(roc: &Value) -> Option<Figure> {
    let at = |key: &str| roc.get(key).and_then(Value::as_f64);
    let (a, low, high) = (at("auc")?, at("auc_low")?, at("auc_high")?);
    let bins = roc.get("bins")?.as_array()?;
    let total = |key: &str| -> f64 {
        let all = bins.iter().filter_map(|b| b.get(key)?.as_f64());
        all.sum::<f64>().max(1.0)
    };
    let sd = Z * deviation_of_area(a, total("positives"), total("negatives"));
    Some(Figure {
        estimate: a,
        low: (a - (a - low).hypot(sd)).clamp(0.0, 1.0),
        high: (a + (high - a).hypot(sd)).clamp(0.0, 1.0),
    })
}

/// The deviation of an area over the choice of so many positives and negatives.
fn deviation_of_area(a: f64, positives: f64, negatives: f64) -> f64 {
    // an area of 1 among few records does not mean that there are no others
    let pairs = positives.min(negatives);
    let a = a.clamp(0.5 / (pairs + 1.0), 1.0 - 0.5 / (pairs + 1.0));
    let (q1, q2) = (a / (2.0 - a), 2.0 * a * a / (1.0 + a));
    let more = (positives - 1.0) * (q1 - a * a) + (negatives - 1.0) * (q2 - a * a);
    ((a * (1.0 - a) + more) / (positives * negatives))
        .max(0.0)
        .sqrt()
}

/// Widest interval of a fold whose area is taken for unbiased.
const CLEAR: f64 = 0.15;

/// The mean of the folds that have a figure.
fn mean(each: &[Option<Figure>]) -> Option<Figure> {
    let found: Vec<&Figure> = each.iter().flatten().collect();
    if found.is_empty() {
        return None;
    }
    let k = crate::common::size(found.len());
    let estimate = found.iter().map(|f| f.estimate).sum::<f64>() / k;
    let distance = |of: fn(&Figure) -> f64| {
        let (mut squares, mut plain) = (0.0, 0.0);
        for f in &found {
            let far = (f.estimate - of(f)).abs();
            if f.is_clear() {
                squares += far * far;
            } else {
                plain += far;
            }
        }
        (squares.sqrt() + plain) / k
    };
    Some(Figure {
        estimate,
        low: (estimate - distance(|f| f.low)).max(0.0),
        high: (estimate + distance(|f| f.high)).min(1.0),
    })
}

/// The share of right decisions in cross tables of two outcomes and two decisions; none where the total may be noise.
fn accuracy(tables: &[Value]) -> Option<Figure> {
    let (mut right, mut wrong, mut noise) = (0.0, 0.0, 0.0);
    for table in tables {
        let counts: Vec<f64> = table
            .get("counts")?
            .as_array()?
            .iter()
            .filter_map(Value::as_f64)
            .collect();
        let [no, raised, missed, yes] = *counts.as_slice() else {
            return None;
        };
        right += no + yes;
        wrong += raised + missed;
        // two cells each; √2/ln 20 is the deviation of Laplace noise over its .95 quantile
        let error = table.get("error_95")?.as_f64()?;
        noise += 2.0 * (error * std::f64::consts::SQRT_2 / 20.0_f64.ln()).powi(2);
    }
    let total: f64 = right + wrong;
    if total <= 0.0 || total * total <= Z * Z * 2.0 * noise {
        return None;
    }
    let share = (right / total).clamp(0.0, 1.0);
    // of a share near 0 or 1 the plain variance says too little: two more of each (Agresti and Coull)
    let near = (share * total + 2.0) / (total + 4.0);
    let variance = near * (1.0 - near) / total
        + noise * (right * right + wrong * wrong) / (total * total * total * total);
    let half = Z * variance.sqrt();
    Some(Figure {
        estimate: share,
        low: (share - half).max(0.0),
        high: (share + half).min(1.0),
    })
}

#[cfg(test)]
mod tests {
    use reticent_accounting::{Currency, Relation};
    use reticent_laws::Seeded;
    use reticent_mechanisms::Context;
    use reticent_noise::Noise;

    use super::*;

    /// Squared distances of clear folds add, distances of drowned folds as they are: by hand.
    #[test]
    fn drowned_folds_keep_their_distances() {
        let fold = |estimate, low, high| {
            Some(Figure {
                estimate,
                low,
                high,
            })
        };
        let clear = mean(&[fold(0.8, 0.77, 0.84), fold(0.7, 0.66, 0.73), None]).unwrap();
        assert!((clear.estimate - 0.75).abs() < 1e-12);
        assert!((clear.low - 0.725).abs() < 1e-12 && (clear.high - 0.775).abs() < 1e-12);
        let drowned = mean(&[fold(0.6, 0.2, 1.0), fold(1.0, 0.0, 1.0)]).unwrap();
        assert!((drowned.low - 0.1).abs() < 1e-12 && drowned.high >= 1.0);
        let mixed = mean(&[fold(0.8, 0.77, 0.84), fold(0.6, 0.2, 0.9)]).unwrap();
        assert!((mixed.low - (0.7 - 0.43 / 2.0)).abs() < 1e-12);
        assert!((mixed.high - (0.7 + 0.34 / 2.0)).abs() < 1e-12);
    }

    fn fold(a: f64, half: f64, n: f64) -> Value {
        json!({"auc": a, "auc_low": a - half, "auc_high": a + half,
            "bins": [{"positives": n / 2.0, "negatives": n}, {"positives": n / 2.0, "negatives": 0.0}]})
    }

    #[test]
    fn areas_are_averaged() {
        let one = area(&fold(0.8, 0.01, 200.0)).unwrap();
        // 200 of each: Q1 = 2/3, Q2 = .7111; variance (.16 + 199 * (.02667 + .07111)) / 40000
        let sd = ((0.16 + 199.0 * (2.0 / 3.0 - 0.64 + 1.28 / 1.8 - 0.64)) / 40000.0_f64).sqrt();
        assert!((one.low - (0.8 - (Z * sd).hypot(0.01))).abs() < 1e-12);
        let all = mean(&[Some(one); 4]).unwrap();
        assert!((all.estimate - 0.8).abs() < 1e-12);
        assert!((all.high - 0.8 - (one.high - 0.8) / 2.0).abs() < 1e-12);
        // no fold, odd values and placeholders
        assert_eq!(mean(&[None, None]), None);
        for odd in [Value::Null, json!({"auc": 0.5}), json!({"auc": "x"})] {
            assert_eq!(area(&odd), None);
            assert_eq!(accuracy(&[odd]), None);
        }
        assert!(area(&fold(1.0, 0.0, 0.0)).unwrap().low < 0.6);
    }

    /// Shares of noisy counts: the interval holds the truth about 95 times of 100, with much noise and with little.
    #[test]
    fn accuracies_are_held() {
        for (n, scale) in [(60_u32, 1.0), (400, 10.0), (4000, 1.0)] {
            let mut random = Seeded::new(u64::from(n));
            #[allow(clippy::cast_precision_loss, reason = "53 bits")]
            let mut uniform = || ((random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
            let (mut held, runs) = (0, 2000);
            for _ in 0..runs {
                let folds: Vec<Value> = (0..4)
                    .map(|_| {
                        let mut counts = [0.0; 4];
                        for _ in 0..n / 4 {
                            counts[usize::from(uniform() >= 0.85)] += 1.0;
                        }
                        let mut noise = || {
                            let u = uniform() - 0.5;
                            -scale * u.signum() * (1.0 - 2.0 * u.abs()).ln()
                        };
                        json!({"counts": counts.map(|c| c + noise()), "error_95": scale * 20.0_f64.ln()})
                    })
                    .collect();
                let found = accuracy(&folds);
                held += i32::from(found.is_none_or(|f| f.low <= 0.85 && 0.85 <= f.high));
            }
            let share = f64::from(held) / f64::from(runs);
            assert!((0.93..=1.0).contains(&share), "{n} {scale}: {share}");
        }
    }

    #[test]
    fn it_is_free() {
        for measure in [Measure::Auc, Measure::Accuracy] {
            let prepared = prepare(measure, &[Value::Null, Value::Null], &Value::Null);
            let context = Context::records(Relation::ReplaceOne);
            let event = prepared.mechanism.event(&context).unwrap();
            let price = event.price(Currency::Pure).unwrap();
            for relation in [Relation::AddRemove, Relation::ReplaceOne] {
                assert!(price.under(relation).unwrap().is_zero());
            }
        }
    }
}
