//! The head file `<ledger>.head`: sequence and head of the last entry, outside the database.
//!
//! # Claim
//! Written after every commit, so it never runs ahead of the ledger; a ledger that does not contain
//! the recorded (sequence, head) is an older copy or a different history. A crash between commit
//! and this write leaves the ledger ahead of the file, which is accepted and mended by the next
//! write.
//! # Assumptions
//! The writer holds the ledger's write lock, so heads are recorded in order. Readers read this
//! file *before* the entries, or hold the lock.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::LedgerError;
use crate::identity::{from_hex, to_hex};
use crate::store::{damaged, io_fault};

const TITLE: &str = "reticent ledger head 1";

/// The head file of a ledger.
pub(crate) fn path_of(ledger: &Path) -> PathBuf {
    beside(ledger, ".head")
}

/// The ledger's path with something appended to its name.
pub(crate) fn beside(ledger: &Path, suffix: &str) -> PathBuf {
    let mut name = ledger.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The recorded sequence and head; `None` if there is no file.
pub(crate) fn read(ledger: &Path) -> Result<Option<(u64, [u8; 32])>, LedgerError> {
    let text = match fs::read_to_string(path_of(ledger)) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) if e.kind() == io::ErrorKind::InvalidData => {
            return Err(damaged(ledger, "its head file is not text"));
        }
        Err(e) => return Err(io_fault(ledger, e)),
    };
    let mut lines = text.lines();
    let record = (lines.next() == Some(TITLE))
        .then(|| lines.next())
        .flatten();
    record
        .and_then(|line| line.split_once(' '))
        .and_then(|(sequence, head)| Some((sequence.parse().ok()?, from_hex(head)?)))
        .map(Some)
        .ok_or_else(|| damaged(ledger, "its head file cannot be read"))
}

/// Replaces the record: a reader sees the old one or the new one, never half of it.
pub(crate) fn write(ledger: &Path, sequence: u64, head: &[u8; 32]) -> Result<(), LedgerError> {
    let new = beside(ledger, ".head.new");
    let replace = || -> io::Result<()> {
        let mut file = File::create(&new)?;
        file.write_all(format!("{TITLE}\n{sequence} {}\n", to_hex(head)).as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path_of(ledger))
    };
    replace().map_err(|e| io_fault(ledger, e))
}
