//! Which file is which, whatever it is called, and writing one without leaving half of it.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// What tells a file from any other, where the system has such a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The device.
    pub device: u64,
    /// The number on it, which may be given to another file once this one is removed.
    pub inode: u64,
    /// When it was made, in nanoseconds since 1970.
    pub born: Option<i64>,
}

impl Identity {
    /// Of a file.
    pub fn of(facts: &Metadata) -> Option<Self> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let made = facts.created().ok();
            let since = made.and_then(|t| t.duration_since(UNIX_EPOCH).ok());
            Some(Self {
                device: facts.dev(),
                inode: facts.ino(),
                born: since.and_then(|d| i64::try_from(d.as_nanos()).ok()),
            })
        }
        #[cfg(not(unix))]
        {
            let _ = facts;
            None
        }
    }

    /// Whether both name the same file, if neither was removed in between.
    pub fn is(&self, other: &Self) -> bool {
        self.device == other.device && self.inode == other.inode
    }
}

/// Whether two paths lead to the same file.
pub fn same(a: &Path, b: &Path) -> bool {
    let of = |path| Identity::of(&fs::metadata(path).ok()?);
    match of(a).zip(of(b)) {
        Some((a, b)) => a.is(&b),
        None => fs::canonicalize(a).is_ok_and(|a| fs::canonicalize(b).is_ok_and(|b| a == b)),
    }
}

/// Writes a file beside its place and moves it there: whoever reads it sees the old one or the new one. What is no regular file
/// (a terminal, a pipe) is written to as it is.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|facts| !facts.is_file()) {
        return fs::OpenOptions::new()
            .write(true)
            .open(path)?
            .write_all(text.as_bytes());
    }
    let mut draft = path.as_os_str().to_owned();
    draft.push(".part");
    let mut file = File::create(&draft)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

/// The text of a regular file; a pipe or a device would be waited for without end.
pub fn text(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.is_file() {
        return fs::read_to_string(path);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "not a regular file",
    ))
}
