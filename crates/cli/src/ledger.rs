//! `reticent ledger`.

use std::path::{Path, PathBuf};

use reticent_engine::accounting::{Cost, Currency};
use reticent_engine::ledger::{AgainstRelease, Ledger, RequestId};
use reticent_engine::{
    Error, Failure, budget, dataset::Dataset, file, outcome::Refusal, release, session,
};
use serde_json::Value;

use crate::arguments::LedgerAction;
use crate::show;

/// Carries out an action; the text to print.
pub(crate) fn carry_out(action: LedgerAction, json: bool) -> Result<String, Failure> {
    match action {
        LedgerAction::Show { of } => {
            let ledger = Ledger::open(path(&of)?)?;
            let identity = ledger.identity().clone();
            Ok(show::ledger(
                &identity,
                &ledger.status()?,
                &ledger.entries()?,
                json,
            ))
        }
        LedgerAction::Verify { of, against } => {
            let against = against
                .map(|release| document(&release).map(|(text, place)| (release, text, place)))
                .transpose()?;
            let mut ledger = Ledger::open(path(&of)?)?;
            let report = ledger.verify(against.as_ref().map(|a| &a.2))?;
            if let Some((file, document, _)) = &against {
                release::check(&ledger, document, file)?;
            }
            Ok(show::verified(&report, json))
        }
        LedgerAction::Raise {
            of,
            epsilon,
            delta,
            rho,
            by,
        } => {
            let cap = budget::cap(epsilon.as_deref(), delta.as_deref(), rho.as_deref())?;
            raise(&of, cap, &by, json)
        }
    }
}

fn raise(
    of: &Path,
    (given, cap): (Currency, Cost),
    by: &str,
    json: bool,
) -> Result<String, Failure> {
    session::plain_name(by, "--by")?;
    let mut ledger = Ledger::open(path(of)?)?;
    let currency = ledger.identity().currency;
    if given != currency {
        return Err(Refusal::request(format!(
            "this ledger counts {}, not {}",
            show::keys(currency),
            show::keys(given)
        ))
        .into());
    }
    let status = ledger.raise(&cap, by)?;
    Ok(show::raised(&status, json))
}

/// The ledger named by a dataset.toml, or the path itself.
fn path(of: &Path) -> Result<PathBuf, Failure> {
    if of.extension().is_some_and(|e| e == "toml") {
        Ok(Dataset::load(of)?.ledger)
    } else {
        Ok(of.to_owned())
    }
}

/// A release.json, and the place in the chain that it names.
fn document(release: &Path) -> Result<(Value, AgainstRelease), Failure> {
    let refuse = |what: &str| Refusal::request(what).in_file(release);
    let text = file::text(release).map_err(|source| Error::File {
        path: release.to_owned(),
        what: "the release cannot be read",
        source,
    })?;
    let document: Value =
        serde_json::from_str(&text).map_err(|e| refuse(&format!("not a release.json: {e}")))?;
    let ledger = document.get("ledger").unwrap_or(&Value::Null);
    let sequence = ledger.get("sequence").and_then(Value::as_u64);
    let head = ledger
        .get("head")
        .and_then(Value::as_str)
        .and_then(|h| h.parse::<RequestId>().ok());
    match (sequence, head) {
        (Some(sequence), Some(head)) => {
            let place = AgainstRelease {
                sequence,
                head: *head.as_bytes(),
            };
            Ok((document, place))
        }
        _ => Err(refuse("the file names no place in a ledger")
            .for_key("ledger")
            .into()),
    }
}
