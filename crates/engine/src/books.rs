//! Opening a data set's ledger and files: registration, and the checks of every later run.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use reticent_accounting::Relation;
use reticent_ledger::{Identity, Ledger};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::dataset::{Dataset, Format, MissingPolicy, OtherPolicy, Policy};
use crate::failure::{Error, Failure};
use crate::outcome::Refusal;
use crate::register::{self, Registration};
use crate::scan::{self, Files, Layout, Rejects};
use crate::tokens::Tokens;

/// What the scanner needs to know of a declaration.
pub fn layout(dataset: &Dataset) -> Layout {
    let policies = dataset.policies.iter();
    Layout {
        schema: Arc::clone(&dataset.schema),
        texts: dataset.tokens.clone(),
        missing_values: policies.clone().map(|p| p.missing_values.clone()).collect(),
        rejects: policies
            .map(|p| Rejects {
                missing: matches!(p.missing, MissingPolicy::Reject),
                other: matches!(p.other, OtherPolicy::Reject),
                outside: false,
            })
            .collect(),
    }
}

/// The data files of a declaration, in name order.
pub fn files(dataset: &Dataset) -> Result<Files, Failure> {
    let (pattern, base) = dataset.source_place()?;
    for name in beside_ledger(dataset) {
        if register::matches(pattern, &base, &name).map_err(Error::Source)? {
            return Err(Refusal::request(format!(
                "`source.path` also means {}, which belongs to the ledger",
                name.display()
            ))
            .in_file(&dataset.file)
            .for_key("source.path")
            .accepting("Keep the ledger in another folder, or write a narrower pattern.")
            .into());
        }
    }
    let paths: Vec<PathBuf> = register::expand(pattern, &base).map_err(Error::Source)?;
    let format = match dataset.source.format {
        Format::Csv => scan::Format::Csv,
        Format::Parquet => scan::Format::Parquet,
    };
    Ok(Files::open(paths, format, layout(dataset)).map_err(Error::Source)?)
}

/// Registers a data set: reads every row once, refuses rows the policies reject, creates the ledger with
/// its cap. What is returned is for the curator's eyes only.
pub fn register(dataset: &Dataset) -> Result<(Registration, Ledger), Failure> {
    if dataset.ledger.exists() {
        if let Err(e) = Ledger::open(&dataset.ledger)
            && e.kind() == reticent_ledger::Kind::Damaged
        {
            return Err(Refusal::policy(format!("there is something at the ledger's path already, and it is not a sound ledger: {e}"))
                .in_file(&dataset.file)
                .for_key("ledger.path")
                .accepting("Name a file that does not exist; if it is this data set's ledger, restore it from a backup.")
                .into());
        }
        return Err(Refusal::policy("the ledger exists already: this data set is registered")
            .in_file(&dataset.ledger)
            .accepting("Use it, or declare a new data_version and another ledger path for changed data.")
            .into());
    }
    let files = files(dataset)?;
    let registration = register::register(&files).map_err(Error::Source)?;
    if registration.total_errors > 0 {
        return Err(Error::Rows(rejected(&registration)).into());
    }
    if let (Relation::ReplaceOne, Some(declared)) = (dataset.neighbours, dataset.rows)
        && declared != registration.rows
    {
        return Err(Error::Rows(format!(
            "the data were not registered: rows = {declared} is declared, but the files have {} rows. Under replace_one the \
             number of rows is public and must be right. Nothing was created. Correct `rows` in {}.",
            registration.rows,
            dataset.file.display()
        ))
        .into());
    }
    let identity = Identity {
        dataset: dataset.id.clone(),
        data_version: dataset.data_version.clone(),
        relation: dataset.neighbours,
        currency: dataset.currency,
        cap: dataset.cap.clone(),
        analysts: dataset.analysts.clone(),
        fingerprint_key: registration.key,
        fingerprint: registration.fingerprint,
        schema_digest: declaration(dataset),
    };
    let ledger = Ledger::create(&dataset.ledger, &identity)?;
    Ok((registration, ledger))
}

fn rejected(registration: &Registration) -> String {
    let plural = if registration.total_errors == 1 {
        ""
    } else {
        "s"
    };
    let mut text = format!(
        "the data were not registered: {} error{plural}.\n",
        registration.total_errors
    );
    for error in &registration.errors {
        let _ = writeln!(text, "  {error}");
    }
    let hidden = registration
        .total_errors
        .saturating_sub(registration.errors.len() as u64);
    if hidden > 0 {
        let _ = writeln!(text, "  … and {hidden} more");
    }
    text.push_str("Nothing was created. Correct the data, or change the policies in dataset.toml.");
    text
}

/// Opens the ledger of a data set and checks that it belongs to this declaration. A missing ledger is a
/// refusal, unless the curator declared the data public (`auto_register`).
pub fn ledger(dataset: &Dataset) -> Result<Ledger, Failure> {
    if !dataset.ledger.exists() {
        if head_file(dataset).exists() {
            return Err(
                Refusal::policy("this data set was registered, and its ledger is gone")
                    .in_file(&dataset.ledger)
                    .accepting(
                        "Restore the ledger with its head file, from the newest copy there is.",
                    )
                    .into(),
            );
        }
        if !dataset.auto_register {
            return Err(Refusal::policy(
                "this data set is not registered: its ledger does not exist",
            )
            .in_file(&dataset.ledger)
            .accepting(format!(
                "Its curator must run: reticent register {}",
                dataset.file.display()
            ))
            .into());
        }
        let made = register(dataset).map(|(_, ledger)| ledger);
        if made.is_ok() || !dataset.ledger.exists() {
            return made;
        }
        // Another first run was faster: its ledger is this one. The head file follows the ledger.
        for _ in 0..50 {
            if head_file(dataset).exists() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
    let ledger = Ledger::open(&dataset.ledger)?;
    let id = ledger.identity();
    let differs = |what: &str, declared: String, registered: String| -> Failure {
        Refusal::policy(format!("{what} is {declared} in the declaration, but {registered} was registered"))
            .in_file(&dataset.file)
            .for_key(what)
            .accepting("Restore the registered declaration, or register under a new data_version with a new ledger path.")
            .into()
    };
    if id.dataset != dataset.id {
        return Err(differs("id", dataset.id.clone(), id.dataset.clone()));
    }
    if id.data_version != dataset.data_version {
        return Err(differs(
            "data_version",
            dataset.data_version.clone(),
            id.data_version.clone(),
        ));
    }
    if id.relation != dataset.neighbours {
        return Err(differs(
            "neighbours",
            dataset.neighbours.to_string(),
            id.relation.to_string(),
        ));
    }
    if id.currency != dataset.currency {
        return Err(differs(
            "budget",
            dataset.cap.describe(dataset.currency),
            id.cap.describe(id.currency),
        ));
    }
    if id.schema_digest != declaration(dataset) {
        return Err(Refusal::policy(
            "columns, their `missing`, `other` and `missing_values`, unit or rows are not what was registered: the ledger counts what units of that kind lose",
        )
        .in_file(&dataset.file)
        .accepting("Restore the registered declaration, or register under a new data_version with a new ledger path.")
        .into());
    }
    Ok(ledger)
}

/// Digest of everything declared that says what a record and a unit are. What the ledger adds up are losses of
/// one kind of unit over one reading of the files: with another bound per unit, another number of rows or other
/// missing cells the sums would bound nothing, and where a cell may be missing the number of rows is no public count.
fn declaration(dataset: &Dataset) -> [u8; 32] {
    let missing: Vec<&[String]> = dataset
        .policies
        .iter()
        .map(|p| p.missing_values.as_slice())
        .collect();
    let unit = dataset.unit.to_json();
    let mut declared = json!([dataset.schema.digest(), unit, dataset.rows, missing]);
    if let (false, Value::Array(list)) = (dataset.tokens.is_empty(), &mut declared) {
        // Without texts the digest is what it was before there were any.
        list.push(dataset.tokens.iter().map(Tokens::digest).collect());
    }
    if let Value::Array(list) = &mut declared {
        let rejects = |p: &Policy| {
            let missing = matches!(p.missing, MissingPolicy::Reject);
            json!([missing, matches!(p.other, OtherPolicy::Reject)])
        };
        list.push(json!({"rejects": dataset.policies.iter().map(rejects).collect::<Vec<_>>()}));
    }
    Sha256::digest(declared.to_string().as_bytes()).into()
}

fn head_file(dataset: &Dataset) -> PathBuf {
    beside(dataset, ".head")
}

fn beside(dataset: &Dataset, ending: &str) -> PathBuf {
    let mut name = dataset.ledger.clone().into_os_string();
    name.push(ending);
    PathBuf::from(name)
}

/// The ledger and the files it keeps beside itself.
fn beside_ledger(dataset: &Dataset) -> [PathBuf; 6] {
    ["", "-wal", "-shm", "-journal", ".head", ".head.new"].map(|ending| beside(dataset, ending))
}

/// Whether the files are still the registered ones.
pub fn check_fingerprint(dataset: &Dataset, ledger: &Ledger, files: &Files) -> Result<(), Failure> {
    let id = ledger.identity();
    let now = register::fingerprint(&id.fingerprint_key, files.paths()).map_err(Error::Source)?;
    if now == id.fingerprint {
        return Ok(());
    }
    Err(Error::DataChanged {
        path: dataset.file.clone(),
    }
    .into())
}
