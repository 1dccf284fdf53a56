//! `release.json`, the machine-readable result of a run, and the report made from it.

use reticent_accounting::{Cost, Currency};
use reticent_ledger::Stored;
use reticent_mechanisms::Release;
use serde_json::{Value, json};

use crate::report;
use crate::resolve::{Resolved, SIZE_ID};

/// The name and version written into every release.
pub const SOFTWARE: &str = concat!("reticent ", env!("CARGO_PKG_VERSION"));

/// The content of `release.json`.
pub fn document(
    resolved: &Resolved,
    releases: &[Release],
    sequence: u64,
    head: &[u8; 32],
) -> Value {
    let d = &resolved.dataset;
    let releases: Vec<Value> = resolved
        .entries
        .iter()
        .zip(releases)
        .map(|(entry, release)| {
            let body = &release.body;
            json!({
                "id": entry.id,
                "kind": body.kind,
                "part": entry.part.as_ref().map_or_else(|| "all".to_owned(), |p| p.names().1),
                "request": release.request.to_string(),
                "value": body.value,
                "receipt": body.receipt,
                "flags": body.flags,
            })
        })
        .collect();
    let head: String = head.iter().map(|b| format!("{b:02x}")).collect();
    json!({
        "version": 1,
        "software": SOFTWARE,
        "dataset": {"id": d.id, "data_version": d.data_version},
        "relation": d.neighbours.to_string(),
        "unit": d.unit.to_json(),
        "releases": releases,
        "ledger": {"sequence": sequence, "head": head},
    })
}

/// The document as text, with a final newline.
pub fn text(document: &Value) -> String {
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

/// The report of a run.
pub fn report(
    resolved: &Resolved,
    document: &Value,
    known: &[Option<Stored>],
    spent: &(Cost, Cost),
    cap: &Cost,
) -> String {
    let currency = resolved.dataset.currency;
    let total = crate::session::total(resolved);
    let context = report::Context {
        title: None,
        dataset: None,
        credit: None,
        split: resolved.plan.split.as_ref().map(|s| {
            let (n, d) = s.test;
            let by = match &s.by {
                crate::plan::SplitKey::Content => "content".to_owned(),
                crate::plan::SplitKey::Column(c) => c.clone(),
            };
            format!(
                "{n}/{d} for testing, by a hash of {by} with salt “{}”",
                s.salt
            )
        }),
        filter: resolved.plan.filter.clone(),
        prices: resolved
            .entries
            .iter()
            .zip(known)
            .map(|(entry, known)| report::PriceRow {
                id: entry.id.clone(),
                asked: (entry.id == SIZE_ID).then(|| "number of rows, for planning".to_owned()),
                part: Some(
                    entry
                        .part
                        .as_ref()
                        .map_or_else(|| "all".to_owned(), |p| p.names().1),
                ),
                debited: Some(cost(&entry.payment.claim, currency)),
                spent: None,
                left: None,
                stored: known.is_some(),
            })
            .collect(),
        total: total
            .under(resolved.dataset.neighbours)
            .map(|c| cost(c, currency)),
        budget: Some(report::Budget {
            cap: cost(cap, currency),
            before: cost(&spent.0, currency),
            after: cost(&spent.1, currency),
        }),
        plan: Some(resolved.plan.text.clone()),
    };
    report::html(document, &context)
}

fn cost(cost: &Cost, currency: Currency) -> report::Cost {
    let mut fields = cost.to_json(currency);
    report::Cost {
        epsilon: fields.remove("epsilon"),
        delta: fields.remove("delta"),
        rho: fields.remove("rho"),
    }
}
