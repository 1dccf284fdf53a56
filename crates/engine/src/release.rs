//! `release.json`, the machine-readable result of a run, and the report made from it.

use std::collections::HashMap;
use std::path::Path;

use reticent_accounting::{Cost, Currency, Relation};
use reticent_ledger::{EntryKind, Ledger, RequestId};
use reticent_mechanisms::Release;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::kinds::KindSpec;
use crate::outcome::Refusal;
use crate::report;
use crate::resolve::{Entry, Resolved};

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
            let mut fields = json!({
                "id": entry.id,
                "kind": body.kind,
                "part": entry.part.as_ref().map_or_else(|| "all".to_owned(), |p| p.names().1),
                "request": release.request.to_string(),
                "value": body.value,
                "receipt": body.receipt,
                "flags": body.flags,
            });
            let fold = entry.spec.as_ref().and_then(|s| s.fold.as_ref());
            if let (Value::Object(fields), Some(fold)) = (&mut fields, fold) {
                let fold = json!({"of": fold.of, "number": fold.number, "folds": fold.folds});
                fields.insert("fold".to_owned(), fold);
            }
            fields
        })
        .collect();
    let head = RequestId::from_bytes(*head).to_string();
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

/// Fails unless what a release.json says was released is what a ledger has stored under its requests: kinds, values, receipts, flags and
/// parts. A ledger does not know what a plan calls its releases, nor the unit in words.
pub fn check(ledger: &Ledger, document: &Value, file: &Path) -> Result<(), Failure> {
    let differs = |what: String| -> Failure {
        Refusal::policy(what)
            .in_file(file)
            .accepting("The file was edited, or belongs to another ledger: take the one that the run wrote, or run the plan again at no cost.")
            .into()
    };
    let identity = ledger.identity();
    let said = |key: &str| document.pointer(key).and_then(Value::as_str);
    let relation = identity.relation.to_string();
    let facts = [
        ("/dataset/id", &identity.dataset),
        ("/dataset/data_version", &identity.data_version),
        ("/relation", &relation),
    ];
    for (key, registered) in facts {
        if said(key) != Some(registered) {
            return Err(differs(format!(
                "`{}` is not \"{registered}\", as in the ledger",
                key.trim_start_matches('/').replace('/', ".")
            )));
        }
    }
    let mut parts = HashMap::new();
    for entry in ledger.entries()? {
        if let EntryKind::Spend(spend) = entry.kind {
            let part = spend.partition.map_or_else(|| "all".to_owned(), |p| p.1);
            parts.insert(spend.request, part);
        }
    }
    let releases = document.get("releases").and_then(Value::as_array);
    let releases = releases.filter(|all| !all.is_empty());
    for release in releases.ok_or_else(|| differs("the file names no releases".to_owned()))? {
        let field = |key: &str| release.get(key).unwrap_or(&Value::Null);
        let name = field("id").as_str().unwrap_or("?");
        let request = field("request")
            .as_str()
            .and_then(|r| r.parse::<RequestId>().ok());
        let stored = match &request {
            Some(request) => ledger.lookup(request)?,
            None => None,
        };
        let Some((request, stored)) = request.zip(stored) else {
            return Err(differs(format!(
                "the ledger has no release of the request of `{name}`"
            )));
        };
        let body = Release::read(&request, &stored)?.body;
        let part = parts.get(&request);
        let kept = json!({"part": part, "kind": body.kind, "value": body.value, "receipt": body.receipt, "flags": body.flags});
        for key in ["part", "kind", "value", "receipt", "flags"] {
            if field(key) != &kept[key] {
                return Err(differs(format!(
                    "the `{key}` of `{name}` is not the one that was released"
                )));
            }
        }
    }
    Ok(())
}

/// The document as text, with a final newline.
pub fn text(document: &Value) -> String {
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

/// What a run did to the budget.
pub(crate) struct Spending<'a> {
    /// Whether each entry came from the store.
    pub(crate) stored: &'a [bool],
    /// Total in the ledger after each entry, under the data set's relation.
    pub(crate) running: &'a [Cost],
    /// Total before and after the run.
    pub(crate) spent: &'a (Cost, Cost),
    /// The cap.
    pub(crate) cap: &'a Cost,
}

/// The report of a run.
pub(crate) fn report(resolved: &Resolved, document: &Value, spending: &Spending<'_>) -> String {
    let d = &resolved.dataset;
    let show = |c: &Cost| cost(c, d.currency);
    let total = resolved.total();
    let other = match d.neighbours {
        Relation::AddRemove => Relation::ReplaceOne,
        Relation::ReplaceOne => Relation::AddRemove,
    };
    let context = report::Context {
        title: None,
        dataset: None,
        credit: None,
        split: resolved.plan.split.as_ref().map(|s| {
            let (n, d) = s.test;
            let by = match &s.by {
                crate::plan::SplitKey::Content => "content",
                crate::plan::SplitKey::Column(c) => c,
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
            .zip(spending.stored)
            .zip(spending.running)
            .map(|((entry, stored), running)| report::PriceRow {
                id: entry.id.clone(),
                asked: asked(entry),
                part: Some(entry.rows()),
                debited: Some(if *stored {
                    show(&Cost::zero())
                } else {
                    show(&entry.payment.claim)
                }),
                spent: Some(show(running)),
                left: Some(show(&spending.cap.minus(running))),
                stored: *stored,
            })
            .collect(),
        total: total.under(d.neighbours).map(show),
        total_other: total.under(other).map(show),
        budget: Some(report::Budget {
            cap: show(spending.cap),
            before: show(&spending.spent.0),
            after: show(&spending.spent.1),
        }),
        plan: Some(resolved.plan.text.clone()),
    };
    report::html(document, &context)
}

/// What a release is about, where its value does not say it.
fn asked(entry: &Entry) -> Option<String> {
    match entry.spec.as_ref().map(|s| &s.kind) {
        None => Some("number of rows, for planning".to_owned()),
        Some(KindSpec::Count) => Some("number of records".to_owned()),
        Some(KindSpec::Sum(s)) => Some(format!("sum of {}", s.of)),
        Some(KindSpec::Mean(s)) => Some(format!("mean of {}", s.of)),
        Some(_) => None,
    }
}

fn cost(cost: &Cost, currency: Currency) -> report::Cost {
    let mut fields = cost.to_json(currency);
    report::Cost {
        epsilon: fields.remove("epsilon"),
        delta: fields.remove("delta"),
        rho: fields.remove("rho"),
    }
}
