//! What a command can end with besides success.

use std::path::PathBuf;

use crate::outcome::Refusal;

/// The machine failed, or the curator's files are not what was registered. Exit code 1.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {what}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was attempted.
        what: &'static str,
        /// The cause.
        source: std::io::Error,
    },
    /// The data are not the ones that were registered.
    #[error(
        "{}: data changed since registration. Restore the registered files, or register the new ones under a new data_version.",
        path.display()
    )]
    DataChanged {
        /// The `dataset.toml`.
        path: PathBuf,
    },
    /// Registration found rows that the declared policies reject (for the curator only).
    #[error("{0}")]
    Rows(String),
    /// The ledger failed.
    #[error(transparent)]
    Ledger(reticent_ledger::LedgerError),
    /// The door failed.
    #[error(transparent)]
    Door(reticent_mechanisms::DoorError),
    /// The rows could not be read.
    #[error(transparent)]
    Source(#[from] reticent_mechanisms::source::SourceError),
    /// A stored or given release is not readable.
    #[error("{0}")]
    Release(String),
}

/// A public "no", or a failure of the machine.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A public "no".
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// The machine failed.
    #[error(transparent)]
    Error(#[from] Error),
}

impl Failure {
    /// The process exit code: 2 the request as written is refused, 3 a valid request is refused, 1 Error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Refusal(r) => r.rule.exit_code(),
            Self::Error(_) => 1,
        }
    }
}

impl From<reticent_ledger::LedgerError> for Failure {
    fn from(error: reticent_ledger::LedgerError) -> Self {
        use reticent_ledger::Kind;
        match error.kind() {
            Kind::Refused | Kind::InProgress | Kind::Missing => {
                Refusal::policy(error.to_string()).into()
            }
            _ => Error::Ledger(error).into(),
        }
    }
}

impl From<reticent_mechanisms::DoorError> for Failure {
    fn from(error: reticent_mechanisms::DoorError) -> Self {
        use reticent_mechanisms::DoorError;
        match error {
            DoorError::Ledger(e) => e.into(),
            DoorError::Accounting(e) => Refusal::request(e.to_string()).into(),
            DoorError::Program(e) => Refusal::request(e.to_string()).into(),
            other => Error::Door(other).into(),
        }
    }
}
