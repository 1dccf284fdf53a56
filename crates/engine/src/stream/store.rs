//! The stream's own database: one transaction per tick, on disk before anything of the tick is published.
//!
//! Beside it the file `<state>.head` has the number of ticks and the head of their chain. It is written after every commit and before
//! publishing, so it is never ahead of the database, and a database that is behind it, or has another chain, is an older copy (or one
//! without its write-ahead log). Going on from that would draw noise again for ticks that were published.
//!
//! It holds the exact counts of open groups, so it is as confidential as the events: mode 0600, and never copied to
//! where releases go. The filters are not in it; they are computed again from the released lines.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::file_failed;
use super::identity::Read;
use super::pending::Fresh;
use super::source::Place;
use crate::failure::{Error, Failure};
use crate::file::Identity;
use crate::outcome::Refusal;

const TABLES: &str = "
    CREATE TABLE stream (id INTEGER PRIMARY KEY CHECK (id = 0), digest BLOB NOT NULL, simulated INTEGER NOT NULL, birth BLOB NOT NULL) STRICT;
    CREATE TABLE ticks (tick INTEGER PRIMARY KEY, body TEXT NOT NULL, head BLOB NOT NULL) STRICT;
    CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 0), groups BLOB NOT NULL, place TEXT NOT NULL, clock INTEGER NOT NULL, tail BLOB NOT NULL) STRICT;
    CREATE TABLE open_units (tick INTEGER NOT NULL, place INTEGER NOT NULL, unit BLOB NOT NULL, node INTEGER NOT NULL, PRIMARY KEY (tick, place)) STRICT;
    CREATE TABLE open_counts (tick INTEGER NOT NULL, node INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (tick, node)) STRICT;
    CREATE TABLE files (name TEXT NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL, born INTEGER) STRICT;
    CREATE TABLE starts (name TEXT NOT NULL, bytes INTEGER NOT NULL, digest BLOB NOT NULL) STRICT;
    PRAGMA user_version = 3;
";

/// The open database of a stream.
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// What tells this database from any other, and the head of the chain before its first tick: random, and stored with the payment.
    birth: [u8; 32],
    /// Whether the head file is kept: simulated noise is a function of the tick, and drawn again it is the same.
    marked: bool,
}

/// What is known before the database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Nothing is paid.
    Simulated,
    /// Not paid yet.
    New,
    /// Paid before: whatever was released must be in it.
    Paid,
}

const TITLE: &str = "reticent stream head 1";

fn head_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".head");
    PathBuf::from(name)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

fn gone(path: &Path) -> Failure {
    Refusal::policy("this stream was opened before, but its state file is gone; going on could release a tick twice with different noise")
        .in_file(path)
        .accepting("Restore the state file, or give the stream another name; it will be paid for again.")
        .into()
}

/// What a restart goes on from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Ticks committed.
    pub ticks: i64,
    /// Hash of the chain of ticks so far.
    pub head: [u8; 32],
    /// Open groups, encoded.
    pub groups: Vec<u8>,
    /// Where to read on.
    pub place: Place,
    /// What the clock showed: the last mark, or the largest time of an event.
    pub clock: i64,
    /// What tells the file it was read in from another of its name; empty if nothing does.
    pub tail: Vec<u8>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            ticks: 0,
            head: [0; 32],
            groups: Vec::new(),
            place: Place::default(),
            clock: i64::MIN,
            tail: Vec::new(),
        }
    }
}

impl Store {
    /// Opens the database of a stream, or makes it. `digest` names the declaration. What was paid for must be there.
    pub fn open(path: &Path, digest: &[u8; 32], kind: Opening) -> Result<Self, Failure> {
        if kind == Opening::Paid && !path.exists() {
            return Err(gone(path));
        }
        private(path)?;
        // one name for the files beside it, whichever link led here
        let path = &fs::canonicalize(path).map_err(|e| file_failed(path, "cannot be opened", e))?;
        let connection = Connection::open(path).map_err(|e| broken(path, &e))?;
        let mut store = Self {
            connection,
            path: path.to_owned(),
            birth: [0; 32],
            marked: kind != Opening::Simulated,
        };
        store.prepare(digest, kind)?;
        Ok(store)
    }

    /// What tells this database from any other.
    pub fn birth(&self) -> String {
        hex(&self.birth)
    }

    fn prepare(&mut self, digest: &[u8; 32], kind: Opening) -> Result<(), Failure> {
        let simulated = kind == Opening::Simulated;
        let failed = |e: rusqlite::Error| broken(&self.path, &e);
        let c = &self.connection;
        // one writer for as long as the program runs
        c.pragma_update(None, "locking_mode", "EXCLUSIVE")
            .map_err(failed)?;
        c.pragma_update(None, "journal_mode", "WAL")
            .map_err(failed)?;
        c.pragma_update(None, "synchronous", "FULL")
            .map_err(failed)?;
        let known: bool = c
            .query_row(
                "SELECT count(*) FROM sqlite_master WHERE name = 'ticks'",
                [],
                |r| r.get::<_, i64>(0),
            )
            .map_err(failed)?
            > 0;
        if !known {
            if kind == Opening::Paid {
                return Err(gone(&self.path));
            }
            let mut birth = [0; 32];
            if !simulated {
                getrandom::fill(&mut birth)
                    .map_err(|e| Error::Release(format!("no random bytes: {e}")))?;
            }
            let write = c.unchecked_transaction().map_err(failed)?;
            write.execute_batch(TABLES).map_err(failed)?;
            write
                .execute(
                    "INSERT INTO stream VALUES (0, ?1, ?2, ?3)",
                    params![digest.as_slice(), simulated, birth.as_slice()],
                )
                .map_err(failed)?;
            write.commit().map_err(failed)?;
        }
        let version: i64 = c
            .pragma_query_value(None, "user_version", |r| r.get(0))
            .map_err(failed)?;
        if version != 3 {
            return Err(Refusal::policy("the state file was made by another version of this program")
                .in_file(&self.path)
                .accepting("Go on with that version, or give the stream another name; it will be paid for again.")
                .into());
        }
        let (stored, was, birth): (Vec<u8>, bool, Vec<u8>) = c
            .query_row("SELECT digest, simulated, birth FROM stream", [], |r| {
                Ok((r.get(0)?, r.get(1)?, r.get(2)?))
            })
            .map_err(failed)?;
        if stored != digest {
            return Err(Refusal::policy("the stored state belongs to another declaration of this stream")
                .in_file(&self.path)
                .accepting("Restore the declaration, or give the changed stream another name; it will be paid for again.")
                .into());
        }
        if was != simulated {
            return Err(
                Refusal::policy("simulated and real runs cannot share a state file")
                    .in_file(&self.path)
                    .into(),
            );
        }
        self.birth = birth
            .try_into()
            .map_err(|_| self.damaged("what tells it from others"))?;
        match kind {
            Opening::Simulated => Ok(()),
            // whoever is refused later must have changed nothing: a head of ticks that were released stays
            Opening::New if !self.has_head() && self.progress()?.ticks == 0 => {
                self.mark(0, &self.birth)
            }
            Opening::New | Opening::Paid => self.is_newest(),
        }
    }

    /// The head of the chain after so many ticks, if there are as many.
    pub fn head(&self, ticks: i64) -> Result<Option<[u8; 32]>, Failure> {
        if ticks == 0 {
            return Ok(Some(self.birth));
        }
        let found: Option<Vec<u8>> = self
            .connection
            .query_row("SELECT head FROM ticks WHERE tick = ?1", [ticks - 1], |r| {
                r.get(0)
            })
            .optional()
            .map_err(|e| broken(&self.path, &e))?;
        Ok(found.and_then(|h| h.try_into().ok()))
    }

    /// Whether the head file speaks of released ticks. One of a state that was never paid for does not.
    fn has_head(&self) -> bool {
        let start = format!("{TITLE}\n0 ");
        match crate::file::text(&head_of(&self.path)) {
            Ok(text) => !text.starts_with(&start),
            Err(e) => e.kind() != std::io::ErrorKind::NotFound,
        }
    }

    /// Refuses a database that does not reach what its head file says; brings the file up to the database.
    fn is_newest(&self) -> Result<(), Failure> {
        let path = head_of(&self.path);
        let text = match crate::file::text(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(Refusal::policy("the file that says how many ticks were released is gone; without it an older copy of the state could release a tick twice with different noise")
                    .in_file(&path)
                    .accepting("Restore the state with all files of its name (-wal, .head), or give the stream another name; it will be paid for again.")
                    .into());
            }
            Err(e) => {
                return Err(file_failed(
                    &path,
                    "the head of the state cannot be read",
                    e,
                ));
            }
        };
        let mut lines = text.lines();
        let record = (lines.next() == Some(TITLE))
            .then(|| lines.next())
            .flatten();
        let (ticks, head) = record
            .and_then(|line| line.split_once(' '))
            .and_then(|(ticks, head)| Some((ticks.parse::<u32>().ok()?, head)))
            .ok_or_else(|| self.damaged("the file .head beside it"))?;
        let ticks = i64::from(ticks);
        if self.head(ticks)?.is_some_and(|h| hex(&h) == head) {
            let progress = self.progress()?;
            // stopped between commit and mark: what is published now has to be on record first
            return if progress.ticks > ticks {
                self.mark(progress.ticks, &progress.head)
            } else {
                Ok(())
            };
        }
        Err(Refusal::policy(format!("the state is an older copy, or lacks its write-ahead log: {ticks} ticks were released, and it does not have them; going on could release a tick twice with different noise"))
            .in_file(&self.path)
            .accepting("Restore the newest state with all files of its name (-wal, .head), or give the stream another name; it will be paid for again.")
            .into())
    }

    /// Writes the head file: a reader sees the old one or the new one, never half of it.
    fn mark(&self, ticks: i64, head: &[u8; 32]) -> Result<(), Failure> {
        let path = head_of(&self.path);
        let mut new = path.clone().into_os_string();
        new.push(".new");
        let replace = || -> std::io::Result<()> {
            // whatever is there, and wherever it may lead to
            match fs::remove_file(&new) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
            let mut file = fs::File::create_new(&new)?;
            file.write_all(format!("{TITLE}\n{ticks} {}\n", hex(head)).as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        replace().map_err(|e| file_failed(&path, "the head of the state cannot be written", e))
    }

    /// What was committed last.
    pub fn progress(&self) -> Result<Progress, Failure> {
        let failed = |e: rusqlite::Error| broken(&self.path, &e);
        let c = &self.connection;
        let last: Option<(i64, Vec<u8>)> = c
            .query_row(
                "SELECT tick, head FROM ticks ORDER BY tick DESC LIMIT 1",
                [],
                |r| Ok((r.get(0)?, r.get(1)?)),
            )
            .optional()
            .map_err(failed)?;
        let (ticks, head) = match last {
            None => (0, self.birth),
            Some((tick, head)) => {
                let head = head.try_into();
                (
                    tick + 1,
                    head.map_err(|_| self.damaged("the chain of ticks"))?,
                )
            }
        };
        let read: Option<(Vec<u8>, String, i64, Vec<u8>)> = c
            .query_row("SELECT groups, place, clock, tail FROM state", [], |r| {
                Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?))
            })
            .optional()
            .map_err(failed)?;
        let start = Progress {
            ticks,
            head,
            ..Progress::default()
        };
        let Some((groups, place, clock, tail)) = read else {
            return Ok(start);
        };
        let place = serde_json::from_str(&place);
        Ok(Progress {
            groups,
            place: place.map_err(|_| self.damaged("a place in the events"))?,
            clock,
            tail,
            ..start
        })
    }

    /// What was read of the events: files by what they are, and how they begin.
    pub fn files(&self) -> Result<Read, Failure> {
        let failed = |e: rusqlite::Error| broken(&self.path, &e);
        let mut query = self
            .connection
            .prepare("SELECT name, device, inode, born FROM files")
            .map_err(failed)?;
        let rows = query.query_map([], |r| {
            let identity = Identity {
                device: r.get::<_, i64>(1)?.cast_unsigned(),
                inode: r.get::<_, i64>(2)?.cast_unsigned(),
                born: r.get(3)?,
            };
            Ok((r.get(0)?, identity))
        });
        let identities = rows.and_then(Iterator::collect).map_err(failed)?;
        let mut query = self
            .connection
            .prepare("SELECT name, bytes, digest FROM starts")
            .map_err(failed)?;
        let rows = query.query_map([], |r| {
            Ok((r.get(0)?, r.get::<_, i64>(1)?.unsigned_abs(), r.get(2)?))
        });
        let starts = rows.and_then(Iterator::collect).map_err(failed)?;
        Ok(Read { identities, starts })
    }

    /// What the ticks hold that were open when the last one closed.
    pub fn open_ticks(&self) -> Result<Fresh, Failure> {
        let failed = |e: rusqlite::Error| broken(&self.path, &e);
        let mut query = self
            .connection
            .prepare("SELECT tick, place, unit, node FROM open_units ORDER BY tick, place")
            .map_err(failed)?;
        let rows = query.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?)));
        let units = rows.and_then(Iterator::collect).map_err(failed)?;
        let mut query = self
            .connection
            .prepare("SELECT tick, node, count FROM open_counts")
            .map_err(failed)?;
        let rows = query.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)));
        let counts = rows.and_then(Iterator::collect).map_err(failed)?;
        Ok(Fresh { units, counts })
    }

    /// Makes a tick durable: its line, the open groups, what the open ticks hold, where to read on, and what was `read`, all or
    /// nothing. Gives the tick.
    pub fn commit(
        &mut self,
        body: &str,
        progress: &Progress,
        open: &Fresh,
        read: &Read,
    ) -> Result<i64, Failure> {
        let tick = progress.ticks - 1;
        let path = self.path.clone();
        let failed = |e: rusqlite::Error| broken(&path, &e);
        let write = self.connection.transaction().map_err(failed)?;
        insert(&write, tick, body, progress).map_err(failed)?;
        keep(&write, tick, open).map_err(failed)?;
        note(&write, read).map_err(failed)?;
        write.commit().map_err(failed)?;
        if self.marked {
            self.mark(progress.ticks, &progress.head)?;
        }
        Ok(tick)
    }

    /// Makes durable how far events were read between two ticks, and what the open ticks hold: what was judged once is not judged again.
    pub fn save(&mut self, progress: &Progress, open: &Fresh, read: &Read) -> Result<(), Failure> {
        let path = self.path.clone();
        let failed = |e: rusqlite::Error| broken(&path, &e);
        let write = self.connection.transaction().map_err(failed)?;
        place(&write, progress).map_err(failed)?;
        keep(&write, progress.ticks - 1, open).map_err(failed)?;
        note(&write, read).map_err(failed)?;
        write.commit().map_err(failed)
    }

    /// The line of a tick, if it is committed.
    pub fn line(&self, tick: i64) -> Result<Option<String>, Failure> {
        let found =
            self.connection
                .query_row("SELECT body FROM ticks WHERE tick = ?1", [tick], |r| {
                    r.get(0)
                });
        found.optional().map_err(|e| broken(&self.path, &e))
    }

    /// The committed lines from a tick on, checked against the chain, oldest first.
    pub fn lines(
        &self,
        mut each: impl FnMut(i64, &str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let failed = |e: rusqlite::Error| broken(&self.path, &e);
        let mut query = self
            .connection
            .prepare("SELECT tick, body, head FROM ticks ORDER BY tick")
            .map_err(failed)?;
        let mut rows = query.query([]).map_err(failed)?;
        let (mut want, mut head) = (0_i64, self.birth);
        while let Some(row) = rows.next().map_err(failed)? {
            let (tick, body, stored): (i64, String, Vec<u8>) = (
                row.get(0).map_err(failed)?,
                row.get(1).map_err(failed)?,
                row.get(2).map_err(failed)?,
            );
            head = chain(&head, &body);
            if tick != want || stored != head {
                return Err(self.damaged("the chain of ticks"));
            }
            want += 1;
            each(tick, &body)?;
        }
        Ok(())
    }

    fn damaged(&self, what: &str) -> Failure {
        Error::Release(format!(
            "{}: {what} is damaged; restore the file",
            self.path.display()
        ))
        .into()
    }
}

fn insert(write: &Connection, tick: i64, body: &str, progress: &Progress) -> rusqlite::Result<()> {
    write
        .prepare_cached("INSERT INTO ticks VALUES (?1, ?2, ?3)")?
        .execute(params![tick, body, progress.head.as_slice()])?;
    place(write, progress)
}

fn place(write: &Connection, progress: &Progress) -> rusqlite::Result<()> {
    let place = serde_json::to_string(&progress.place).unwrap_or_default();
    write
        .prepare_cached("INSERT OR REPLACE INTO state VALUES (0, ?1, ?2, ?3, ?4)")?
        .execute(params![
            progress.groups,
            place,
            progress.clock,
            progress.tail
        ])
        .map(drop)
}

fn keep(write: &Connection, tick: i64, open: &Fresh) -> rusqlite::Result<()> {
    let mut units =
        write.prepare_cached("INSERT OR REPLACE INTO open_units VALUES (?1, ?2, ?3, ?4)")?;
    for (tick, at, unit, node) in &open.units {
        units.execute(params![tick, at, unit, node])?;
    }
    let mut counts =
        write.prepare_cached("INSERT OR REPLACE INTO open_counts VALUES (?1, ?2, ?3)")?;
    for (tick, node, count) in &open.counts {
        counts.execute(params![tick, node, count])?;
    }
    for table in ["open_units", "open_counts"] {
        write
            .prepare_cached(&format!("DELETE FROM {table} WHERE tick <= ?1"))?
            .execute([tick])?;
    }
    Ok(())
}

fn note(write: &Connection, read: &Read) -> rusqlite::Result<()> {
    for (name, file) in &read.identities {
        let numbers = (file.device.cast_signed(), file.inode.cast_signed());
        write
            .prepare_cached("INSERT INTO files VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![name, numbers.0, numbers.1, file.born])?;
    }
    for (name, bytes, digest) in &read.starts {
        let bytes = i64::try_from(*bytes).unwrap_or(i64::MAX);
        write
            .prepare_cached("INSERT INTO starts VALUES (?1, ?2, ?3)")?
            .execute(params![name, bytes, digest])?;
    }
    Ok(())
}

/// The head of the chain after a line.
pub fn chain(head: &[u8; 32], body: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"reticent stream tick\n");
    hash.update(head);
    hash.update(body.as_bytes());
    hash.finalize().into()
}

/// Makes a file that only its owner can read, if it is not there yet.
pub(super) fn private(path: &Path) -> Result<(), Failure> {
    let failed = |e| file_failed(path, "cannot be made", e);
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        options.mode(0o600);
        let file = options.open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        }
    }
    #[cfg(not(unix))]
    options.open(path).map_err(failed)?;
    Ok(())
}

fn broken(path: &Path, error: &rusqlite::Error) -> Failure {
    file_failed(
        path,
        "the stream's state",
        std::io::Error::other(error.to_string()),
    )
}
