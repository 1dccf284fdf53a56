//! Is the process that reserved still alive?
//!
//! # Claim
//! A handle that reserves holds an operating-system lock on a file of its own in
//! `<ledger>.owners/`. The system drops the lock when the process ends, however it ends, so "the
//! file is missing or can be locked" means: its owner is gone and will never publish.
//! # Assumptions
//! Files are made, tested and swept only by a holder of the ledger's write lock, so no one sees a
//! file between its creation and its locking. The file system supports advisory locks.
//! # Checked by
//! `pay::{a_dead_owner_leaves_its_payment, a_live_owner_keeps_its_request}`

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::identity::to_hex;
use crate::sidecar::beside;

/// A held lock. Dropping it removes the file, in the process that made it.
pub(crate) struct Owner {
    id: String,
    path: PathBuf,
    process: u32,
    _locked: File,
}

impl Owner {
    /// Makes and locks a new owner file, after removing those of processes that are gone.
    pub(crate) fn acquire(ledger: &Path) -> io::Result<Self> {
        let folder = beside(ledger, ".owners");
        fs::create_dir_all(&folder)?;
        sweep(&folder);
        let id = random_name()?;
        let path = folder.join(&id);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)?;
        file.try_lock().map_err(io::Error::from)?;
        Ok(Self {
            id,
            path,
            process: std::process::id(),
            _locked: file,
        })
    }

    /// The name stored with each reservation.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Whether this is still the process that acquired the lock (a fork is not).
    pub(crate) fn is_mine(&self) -> bool {
        self.process == std::process::id()
    }

    /// Whether the named owner's process still runs.
    pub(crate) fn is_alive(ledger: &Path, id: &str) -> io::Result<bool> {
        // A name from an edited ledger must not lead outside the folder.
        if id.len() != NAME_LENGTH || !id.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Ok(false);
        }
        match OpenOptions::new()
            .write(true)
            .open(beside(ledger, ".owners").join(id))
        {
            Ok(file) => match file.try_lock() {
                Ok(()) => Ok(false),
                Err(TryLockError::WouldBlock) => Ok(true),
                Err(TryLockError::Error(e)) => Err(e),
            },
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.is_mine() {
            // Left behind, the file would be swept by the next owner.
            let _ = fs::remove_file(&self.path);
        }
    }
}

const NAME_LENGTH: usize = 32;

/// 128 random bits in hexadecimal.
pub(crate) fn random_name() -> io::Result<String> {
    let mut bytes = [0; NAME_LENGTH / 2];
    getrandom::fill(&mut bytes).map_err(|e| io::Error::other(e.to_string()))?;
    Ok(to_hex(&bytes))
}

/// Removes the files of owners that are gone. Failing to is harmless.
fn sweep(folder: &Path) {
    let Ok(files) = fs::read_dir(folder) else {
        return;
    };
    for file in files.flatten() {
        let path = file.path();
        let gone = OpenOptions::new()
            .write(true)
            .open(&path)
            .is_ok_and(|f| f.try_lock().is_ok());
        if gone {
            let _ = fs::remove_file(&path);
        }
    }
}
