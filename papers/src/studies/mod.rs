//! One file per study.

pub(crate) mod adult;
pub mod adult_binned;
pub mod adult_roc;
pub mod covariance;
pub mod dpbench;
pub mod empirical_ml;
pub mod empirical_roc;
pub mod models;
pub mod pegasus;
pub mod plots;
pub(crate) mod pums;
pub mod pums_linear;
pub mod pums_residuals;
pub mod roc;
pub mod sparse_vector;
pub mod which_mechanism;

use serde_json::Value;

/// A number of a released value; not-a-number if it is not there.
pub(crate) fn at(value: &Value, key: &str) -> f64 {
    value.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

/// A list of a released value.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The points a released residual plot shows.
pub(crate) fn drawn(value: &Value) -> Vec<[f64; 2]> {
    list(value, "points")
        .iter()
        .filter_map(|p| Some([p.get(0)?.as_f64()?, p.get(1)?.as_f64()?]))
        .collect()
}

/// "k of n".
pub(crate) fn of(k: usize, n: usize) -> String {
    format!("{k} of {n}")
}
