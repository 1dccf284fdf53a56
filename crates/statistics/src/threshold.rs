//! A probability threshold for classes, read off a released ROC curve at no cost.

use serde_json::{Value, json};

use crate::common::{Prepared, StatisticsError, number, with_metadata};
use crate::derived::derived;

/// Which point of the curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The largest tpr − fpr (Youden's J).
    #[default]
    Youden,
    /// The point closest to (0, 1).
    TopLeft,
}

impl Method {
    /// Its name in plans.
    pub fn name(self) -> &'static str {
        match self {
            Self::Youden => "youden",
            Self::TopLeft => "topleft",
        }
    }

    /// Smaller is better.
    fn distance(self, fpr: f64, tpr: f64) -> f64 {
        match self {
            Self::Youden => fpr - tpr,
            Self::TopLeft => fpr.hypot(1.0 - tpr),
        }
    }
}

/// The threshold of a released ROC curve: classes are positive from it on. Of equally good points the one with
/// the largest threshold; ½ if the curve has no vertex between its ends.
///
/// `roc` is the value of a `roc` release, or null for a placeholder that only has a price.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// let people = People::new();
/// let score = Score::Probability(AGE.mul(Expr::Constant(0.01)));
/// let curve = people.release(&roc::prepare(&people.facts(), &score, SICK, roc::Config::new(epsilon()))?);
/// // read from the released curve: costs nothing
/// let free = threshold::prepare(&curve, threshold::Method::Youden, &Value::Null)?;
/// let value = people.release(&free);
/// assert!((0.5..0.75).contains(&value["threshold"].as_f64().unwrap()), "{value}");
/// # Ok(())
/// # }
/// ```
pub fn prepare(roc: &Value, method: Method, metadata: &Value) -> Result<Prepared, StatisticsError> {
    let vertices = roc.get("vertices").and_then(Value::as_array);
    if vertices.is_none() && !roc.is_null() {
        return Err(StatisticsError::Parameter {
            name: "from",
            value: "the release".to_owned(),
            fix: "name a roc release: it has no vertices".to_owned(),
        });
    }
    let mut best: Option<(f64, f64, f64, f64)> = None;
    for vertex in vertices.into_iter().flatten() {
        let at = |key: &str| vertex.get(key).and_then(Value::as_f64);
        let (Some(t), Some(f), Some(y)) = (at("threshold"), at("fpr"), at("tpr")) else {
            continue;
        };
        let d = method.distance(f, y);
        if best.is_none_or(|b| d < b.0 || (d <= b.0 && t > b.1)) {
            best = Some((d, t, f, y));
        }
    }
    let found = best.is_some();
    let (_, t, fpr, tpr) = best.unwrap_or((0.0, 0.5, f64::NAN, f64::NAN));
    let value = json!({
        "threshold": number(t),
        "method": method.name(),
        "sensitivity": number(tpr),
        "specificity": number(1.0 - fpr),
        "c_index": roc.get("auc").cloned().unwrap_or(Value::Null),
    });
    let flags = if found {
        Vec::new()
    } else {
        vec!["threshold_not_measured".to_owned()]
    };
    Ok(derived("threshold", with_metadata(value, metadata), flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_rules() {
        // J: .3 at .8, .5 at .4, .5 at .3; distance to (0, 1): .70, .51, .45.
        let curve = json!({"auc": 0.75, "vertices": [
            {"threshold": null, "fpr": 0.0, "tpr": 0.0}, {"threshold": 0.8, "fpr": 0.0, "tpr": 0.3},
            {"threshold": 0.4, "fpr": 0.1, "tpr": 0.6}, {"threshold": 0.3, "fpr": 0.3, "tpr": 0.79},
            {"threshold": 0.0, "fpr": 1.0, "tpr": 1.0}]});
        let best = |method: Method| {
            let mut all: Vec<(f64, f64)> = curve["vertices"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|v| {
                    let d = method.distance(v["fpr"].as_f64()?, v["tpr"].as_f64()?);
                    Some((d, v["threshold"].as_f64()?))
                })
                .collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            all[0].1
        };
        assert!((best(Method::Youden) - 0.4).abs() < 1e-12);
        assert!((best(Method::TopLeft) - 0.3).abs() < 1e-12);
        assert!(prepare(&curve, Method::Youden, &Value::Null).is_ok());
        assert!(prepare(&Value::Null, Method::Youden, &Value::Null).is_ok());
        assert!(prepare(&json!({"count": 3}), Method::Youden, &Value::Null).is_err());
    }
}
