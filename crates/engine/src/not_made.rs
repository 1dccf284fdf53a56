//! What is published for a paid release that turned out to be impossible.
//!
//! Everything that can be refused is refused before payment. Two inputs exist only afterwards: the released number of rows, and models of the same
//! plan. Both are public. If a release cannot be planned with the released number of rows, it is planned as if nothing were known of it, as when the
//! plan was checked. What then still cannot be made (its model has no finite coefficients, say) is published as not made, with the reason: the
//! other releases stay whole, and the request has an answer.

use reticent_mechanisms::Mechanism;
use reticent_mechanisms::program::RowProgram;
use serde_json::{Value, json};

/// The key under which the reason stands.
const KEY: &str = "not_made";

/// The reason, if a released value is that of a release that was not made.
pub(crate) fn reason(value: &Value) -> Option<&str> {
    value.get(KEY).and_then(Value::as_str)
}

/// A release of this kind that was not made: it buys nothing and reads no row.
pub(crate) fn not_made(
    kind: &'static str,
    frame: RowProgram,
    why: &str,
) -> (RowProgram, Box<dyn Mechanism>) {
    let value = json!({KEY: why});
    let made = reticent_statistics::derived::derived(kind, value, vec![KEY.to_owned()]);
    (frame, made.mechanism)
}
