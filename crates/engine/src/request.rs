//! Request ids: the same request is served once and then from the store.

use reticent_ledger::RequestId;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::dataset::Dataset;
use crate::plan::{Plan, ReleaseSpec, SplitSpec};

/// SHA-256 of the canonical JSON of (data set id, data_version, relation, unit, split, where, the release
/// with defaults resolved, request ids of released inputs). Comments, key order, the release's own id and
/// the analyst do not enter.
pub(crate) fn request_id(
    dataset: &Dataset,
    plan: &Plan,
    release: &ReleaseSpec,
    inputs: &[RequestId],
) -> RequestId {
    identify(dataset, plan, &release.canonical(), inputs)
}

/// The request id of a release the plan does not spell out.
pub(crate) fn identify(
    dataset: &Dataset,
    plan: &Plan,
    release: &Value,
    inputs: &[RequestId],
) -> RequestId {
    let canonical = json!({
        "dataset": dataset.id,
        "data_version": dataset.data_version,
        "relation": dataset.neighbours.to_string(),
        "unit": dataset.unit.to_json(),
        // a fold has a split of its own
        "split": plan.split.as_ref().filter(|_| release.get("fold").is_none()).map(SplitSpec::canonical),
        "where": plan.canonical_filter(),
        "release": release,
        "inputs": inputs.iter().map(RequestId::to_string).collect::<Vec<_>>(),
    });
    digest(&canonical)
}

/// Digest of a JSON value in canonical form: object keys are sorted, there is no white space.
pub(crate) fn digest(value: &Value) -> RequestId {
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    RequestId::from_bytes(Sha256::digest(&bytes).into())
}
