//! The SQLite file: creation, opening, migration, rows, and what its errors mean.
//!
//! Write-ahead log with full synchronisation: a commit that returned is on disk. Writers take the
//! write lock when they begin, so everything read inside a write transaction stays true until it
//! ends.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Params, Transaction, TransactionBehavior,
};

use crate::RequestId;
use crate::error::{Kind, LedgerError};
use crate::owner::random_name;
use crate::sidecar::beside;

/// The newest format this program writes.
pub(crate) const FORMAT: i64 = 1;

/// Marks the file as ours ("RtLd").
const APPLICATION: i64 = 0x5274_4C64;

/// How often a writer looks whether another one has finished: about 30 seconds in all. SQLite's own
/// handler sleeps up to a tenth of a second between looks and can starve beside a busy writer.
const LOOKS: i32 = 20_000;

const TABLES: &str = "
    CREATE TABLE entries (sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, head BLOB NOT NULL) STRICT;
    CREATE TABLE payloads (request BLOB PRIMARY KEY, payload BLOB NOT NULL) STRICT;
";

/// Format 0 did not record which process holds a reservation: none of its owners is alive.
const CLAIMS: &str = "CREATE TABLE claims (request BLOB PRIMARY KEY, owner TEXT NOT NULL) STRICT;";

/// An open database.
pub(crate) struct Store {
    connection: Connection,
    path: PathBuf,
}

/// A transaction on the database at `path`.
pub(crate) struct Session<'a> {
    transaction: Transaction<'a>,
    pub(crate) path: &'a Path,
}

/// One row of the chain.
pub(crate) struct Row {
    pub(crate) sequence: u64,
    pub(crate) body: String,
    pub(crate) head: [u8; 32],
}

impl Store {
    /// Makes a new ledger file with its first entry. It appears under its name complete, or not at
    /// all.
    pub(crate) fn create(path: &Path, body: &str, head: &[u8; 32]) -> Result<(), LedgerError> {
        let name = random_name().map_err(|e| io_fault(path, e))?;
        let draft = beside(path, &format!(".new-{name}"));
        private(&draft).map_err(|e| io_fault(path, e))?;
        let made = write_draft(&draft, body, head)
            .map_err(|e| fault(path, &e))
            .and_then(|()| publish_draft(&draft, path));
        for suffix in ["", "-wal", "-shm", "-journal"] {
            // What was published keeps its own name.
            let _ = fs::remove_file(beside(&draft, suffix));
        }
        made
    }

    /// Opens an existing ledger file for writing, migrating an older format.
    pub(crate) fn open(path: &Path) -> Result<Self, LedgerError> {
        match fs::metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(file(Kind::Missing, path, ""));
            }
            Err(e) => return Err(io_fault(path, e)),
            Ok(found) if !found.is_file() => return Err(damaged(path, "it is not a file")),
            Ok(_) => {}
        }
        // One name for the head file and the owners, whichever link led here.
        let path = &fs::canonicalize(path).map_err(|e| io_fault(path, e))?;
        let connection = Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )
        .map_err(|e| fault(path, &e))?;
        let mut store = Self {
            connection,
            path: path.to_owned(),
        };
        store.prepare()?;
        Ok(store)
    }

    /// The ledger's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Starts a write transaction: no other process writes until it ends. Dropped without a commit it is undone.
    pub(crate) fn write(&mut self) -> Result<Session<'_>, LedgerError> {
        let path = &self.path;
        self.connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map(|transaction| Session { transaction, path })
            .map_err(|e| fault(path, &e))
    }

    /// A consistent view for several reads.
    pub(crate) fn read(&self) -> Result<Session<'_>, LedgerError> {
        let path = &self.path;
        self.connection
            .unchecked_transaction()
            .map(|transaction| Session { transaction, path })
            .map_err(|e| fault(path, &e))
    }

    /// SQLite's own check of the whole file.
    pub(crate) fn integrity(&self) -> Result<(), LedgerError> {
        let verdict: String = self
            .connection
            .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
            .map_err(|e| fault(&self.path, &e))?;
        if verdict == "ok" {
            Ok(())
        } else {
            Err(damaged(&self.path, verdict))
        }
    }

    #[cfg(test)]
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn prepare(&mut self) -> Result<(), LedgerError> {
        let path = self.path.clone();
        let failed = |e| fault(&path, &e);
        self.connection
            .busy_handler(Some(wait_for_lock))
            .map_err(failed)?;
        if self
            .connection
            .is_readonly(rusqlite::MAIN_DB)
            .map_err(failed)?
        {
            return Err(file(Kind::ReadOnly, &path, ""));
        }
        let application: i64 = pragma(&self.connection, "application_id").map_err(failed)?;
        if application != APPLICATION {
            return Err(damaged(&path, "it is not a ledger, or was never finished"));
        }
        durable(&self.connection).map_err(failed)?;
        let found: i64 = pragma(&self.connection, "user_version").map_err(failed)?;
        match found {
            FORMAT => Ok(()),
            0 => self.migrate_from_0(),
            _ => {
                let what = format!(
                    "it has format version {found}; this program knows up to {FORMAT}: use a newer one"
                );
                Err(file(Kind::Version, &path, what))
            }
        }
    }

    fn migrate_from_0(&mut self) -> Result<(), LedgerError> {
        let path = self.path.clone();
        let failed = |e| fault(&path, &e);
        let write = self.write()?.transaction;
        // Another process may have migrated while this one waited for the lock.
        if pragma(&write, "user_version").map_err(failed)? == 0 {
            write.execute_batch(CLAIMS).map_err(failed)?;
            write
                .pragma_update(None, "user_version", FORMAT)
                .map_err(failed)?;
        }
        write.commit().map_err(failed)
    }
}

impl Session<'_> {
    /// Makes what was written permanent.
    pub(crate) fn commit(self) -> Result<(), LedgerError> {
        let path = self.path;
        self.transaction.commit().map_err(|e| fault(path, &e))
    }

    /// The row at a place in the chain.
    pub(crate) fn row(&self, sequence: u64) -> Result<Option<Row>, LedgerError> {
        let sql = "SELECT sequence, body, head FROM entries WHERE sequence = ?1";
        self.one(sql, [place(sequence)], read_row)
    }

    /// Hands every row after a place to `each`, in order; what `each` objects to is damage.
    pub(crate) fn rows_after(
        &self,
        sequence: u64,
        mut each: impl FnMut(Row) -> Result<(), String>,
    ) -> Result<(), LedgerError> {
        let sql = "SELECT sequence, body, head FROM entries WHERE sequence > ?1 ORDER BY sequence";
        self.all(sql, [place(sequence)], |row| Ok(each(read_row(row)?)))
    }

    /// Adds a row to the chain.
    pub(crate) fn append(
        &self,
        sequence: u64,
        body: &str,
        head: &[u8; 32],
    ) -> Result<(), LedgerError> {
        append(&self.transaction, sequence, body, head).map_err(|e| fault(self.path, &e))
    }

    /// The stored value of a request.
    pub(crate) fn payload(&self, request: &RequestId) -> Result<Option<Vec<u8>>, LedgerError> {
        let sql = "SELECT payload FROM payloads WHERE request = ?1";
        self.one(sql, [request.as_bytes()], |row| row.get(0))
    }

    /// Stores the value of a request; a second one is a constraint violation.
    pub(crate) fn store_payload(
        &self,
        request: &RequestId,
        payload: &[u8],
    ) -> Result<(), LedgerError> {
        let sql = "INSERT INTO payloads (request, payload) VALUES (?1, ?2)";
        self.run(sql, (request.as_bytes(), payload))
    }

    /// Hands every stored value to `each`; what `each` objects to is damage.
    pub(crate) fn payloads(
        &self,
        mut each: impl FnMut(RequestId, &[u8]) -> Result<(), String>,
    ) -> Result<(), LedgerError> {
        self.all("SELECT request, payload FROM payloads", [], |row| {
            let payload = row.get_ref(1)?.as_blob()?;
            Ok(each(RequestId::from_bytes(row.get(0)?), payload))
        })
    }

    /// Who holds a reservation.
    pub(crate) fn owner(&self, request: &RequestId) -> Result<Option<String>, LedgerError> {
        let sql = "SELECT owner FROM claims WHERE request = ?1";
        self.one(sql, [request.as_bytes()], |row| row.get(0))
    }

    /// Gives a reservation to an owner.
    pub(crate) fn set_owner(&self, request: &RequestId, owner: &str) -> Result<(), LedgerError> {
        let sql = "INSERT OR REPLACE INTO claims (request, owner) VALUES (?1, ?2)";
        self.run(sql, (request.as_bytes(), owner))
    }

    /// Forgets who held a reservation that is now answered.
    pub(crate) fn clear_owner(&self, request: &RequestId) -> Result<(), LedgerError> {
        let sql = "DELETE FROM claims WHERE request = ?1";
        self.run(sql, [request.as_bytes()])
    }

    fn one<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, LedgerError> {
        let found = self.transaction.query_row(sql, parameters, read);
        found.optional().map_err(|e| fault(self.path, &e))
    }

    fn run(&self, sql: &str, parameters: impl Params) -> Result<(), LedgerError> {
        let done = self.transaction.execute(sql, parameters);
        done.map(drop).map_err(|e| fault(self.path, &e))
    }

    fn all(
        &self,
        sql: &str,
        parameters: impl Params,
        mut each: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<Result<(), String>>,
    ) -> Result<(), LedgerError> {
        let visit = || {
            let mut query = self.transaction.prepare_cached(sql)?;
            let mut rows = query.query(parameters)?;
            while let Some(row) = rows.next()? {
                let seen = each(row)?;
                if seen.is_err() {
                    return Ok(seen);
                }
            }
            Ok(Ok(()))
        };
        visit()
            .map_err(|e| fault(self.path, &e))?
            .map_err(|what| damaged(self.path, what))
    }
}

/// Adds a row to the chain.
fn append(db: &Connection, sequence: u64, body: &str, head: &[u8; 32]) -> rusqlite::Result<()> {
    db.prepare_cached("INSERT INTO entries (sequence, body, head) VALUES (?1, ?2, ?3)")?
        .execute((place(sequence), body, head))
        .map(drop)
}

/// A failure of the file as this crate's error.
pub(crate) fn file(kind: Kind, path: &Path, what: impl Into<String>) -> LedgerError {
    LedgerError::File {
        kind,
        path: path.to_owned(),
        what: what.into(),
    }
}

/// A database error as this crate's error.
fn fault(path: &Path, error: &rusqlite::Error) -> LedgerError {
    use rusqlite::Error as Sql;
    let no_space = error.sqlite_extended_error_code() == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE);
    let kind = match (error.sqlite_error_code(), error) {
        _ if no_space => Kind::DiskFull,
        (Some(ErrorCode::DiskFull), _) => Kind::DiskFull,
        (Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked), _) => Kind::Busy,
        (Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied), _) => Kind::ReadOnly,
        (
            Some(
                ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::ConstraintViolation
                | ErrorCode::Unknown,
            ),
            _,
        )
        | (
            _,
            Sql::InvalidColumnType(..)
            | Sql::FromSqlConversionFailure(..)
            | Sql::IntegralValueOutOfRange(..)
            | Sql::QueryReturnedNoRows,
        ) => Kind::Damaged,
        _ => Kind::Io,
    };
    file(kind, path, error.to_string())
}

/// A file error as this crate's error.
#[allow(clippy::needless_pass_by_value, reason = "the shape map_err asks for")]
pub(crate) fn io_fault(path: &Path, error: io::Error) -> LedgerError {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Kind::DiskFull
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Kind::ReadOnly,
        _ => Kind::Io,
    };
    file(kind, path, error.to_string())
}

/// Damage found by our own checks.
pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> LedgerError {
    file(Kind::Damaged, path, what)
}

fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        sequence: sequence_at(row)?,
        body: row.get(1)?,
        head: row.get(2)?,
    })
}

/// A sequence number as SQLite counts; none is near the limit.
fn place(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}

fn sequence_at(row: &rusqlite::Row<'_>) -> rusqlite::Result<u64> {
    let stored: i64 = row.get(0)?;
    u64::try_from(stored).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, stored))
}

fn pragma(db: &Connection, name: &str) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, name, |row| row.get(0))
}

/// Sleeps half a millisecond to two; the mixture keeps two waiters from moving in step.
fn wait_for_lock(looks: i32) -> bool {
    std::thread::sleep(match looks % 4 {
        0 => Duration::from_micros(500),
        1 => Duration::from_millis(1),
        2 => Duration::from_micros(1500),
        _ => Duration::from_millis(2),
    });
    looks < LOOKS
}

fn durable(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "fullfsync", "ON")?;
    db.pragma_update(None, "trusted_schema", "OFF")?;
    db.pragma_update(None, "cell_size_check", "ON")
}

/// Makes a file that its owner alone can read: the ledger has the key of the fingerprint. SQLite gives its mode to the log beside it.
fn private(draft: &Path) -> io::Result<()> {
    let mut new = fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut new, 0o600);
    new.write(true).create_new(true).open(draft).map(drop)
}

fn write_draft(draft: &Path, body: &str, head: &[u8; 32]) -> rusqlite::Result<()> {
    let mut db = Connection::open(draft)?;
    durable(&db)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    let write = db.transaction()?;
    write.execute_batch(TABLES)?;
    write.execute_batch(CLAIMS)?;
    write.pragma_update(None, "application_id", APPLICATION)?;
    write.pragma_update(None, "user_version", FORMAT)?;
    append(&write, 0, body, head)?;
    write.commit()?;
    db.close().map_err(|(_, e)| e)
}

/// Gives the finished draft its name, unless that name is taken.
fn publish_draft(draft: &Path, path: &Path) -> Result<(), LedgerError> {
    let exists = || file(Kind::Exists, path, "");
    let link = || -> io::Result<()> {
        File::open(draft)?.sync_all()?;
        fs::hard_link(draft, path)
    };
    match link() {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(exists()),
        // Some file systems have no hard links.
        Err(e)
            if e.kind() == io::ErrorKind::Unsupported
                || e.kind() == io::ErrorKind::PermissionDenied =>
        {
            if path.exists() {
                return Err(exists());
            }
            fs::rename(draft, path).map_err(|e| io_fault(path, e))?;
        }
        Err(e) => return Err(io_fault(path, e)),
    }
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    // Not every system lets a folder be synchronised.
    let _ = File::open(folder).and_then(|f| f.sync_all());
    Ok(())
}
