//! Which file is which, whatever it is called: no file of events is read twice, and none that this stream writes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io::{Read as _, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::config::{Config, Input};
use super::file_failed;
use super::folder::files;
use super::source::replaced;
use super::store::Progress;
use crate::failure::Failure;
use crate::file::Identity;
use crate::outcome::Refusal;

/// What was read: to be stored, or stored before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Names and identities of files that were begun.
    pub identities: Vec<(String, Identity)>,
    /// How long files begin that were read to their ends: name, where their headers end, digest of the 4 kB from there.
    pub starts: Vec<(String, u64, Vec<u8>)>,
}

/// The files that were read so far, and those that must not be.
#[derive(Clone, Debug, Default)]
pub struct Files {
    known: Known,
    /// Read since it was last stored.
    fresh: Read,
    /// Written by this stream.
    outputs: Vec<PathBuf>,
}

/// Names by the digest of how their files begin, and how many were before them.
type Starts = HashMap<Vec<u8>, Vec<(usize, String)>>;

/// What was read, found by what it is: looking for a file takes no longer when many were read.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Names, and when the files were made, by device and number on it.
    identities: HashMap<(u64, u64), Vec<(String, Identity)>>,
    /// Files that were read to their ends, by where their headers end.
    starts: BTreeMap<u64, Starts>,
    /// How many there are in `starts`.
    ended: usize,
}

impl Known {
    fn new(read: Read) -> Self {
        let mut known = Self::default();
        for entry in &read.identities {
            known.begin(entry);
        }
        for start in read.starts {
            known.end(start);
        }
        known
    }

    /// Adds a file that is begun; whether it is new.
    fn begin(&mut self, entry: &(String, Identity)) -> bool {
        let key = (entry.1.device, entry.1.inode);
        let there = self.identities.entry(key).or_default();
        let new = !there.contains(entry);
        if new {
            there.push(entry.clone());
        }
        new
    }

    /// Adds the beginning of a file that was read to its end.
    fn end(&mut self, (name, from, digest): (String, u64, Vec<u8>)) {
        let there = self.starts.entry(from).or_default();
        there.entry(digest).or_default().push((self.ended, name));
        self.ended += 1;
    }

    /// The name under which a file was read, if it is another one.
    fn twin(&self, name: &str, identity: &Identity) -> Option<&str> {
        let there = self.identities.get(&(identity.device, identity.inode))?;
        let twin = |(other, known): &&(String, Identity)| {
            other != name && known == identity && known.born.is_some()
        };
        there.iter().find(twin).map(|(other, _)| other.as_str())
    }

    /// The name of the first file that was read and began as this one does, if it is another one.
    fn copied(&self, name: &str, path: &Path, length: u64) -> Option<&str> {
        let long = self
            .starts
            .iter()
            .filter(|(from, _)| length >= *from + TAIL);
        let alike = long.filter_map(|(from, digests)| digests.get(&before(path, *from, TAIL)));
        let others = alike.filter_map(|names| names.iter().find(|(_, other)| other != name));
        others.min().map(|(_, other)| other.as_str())
    }
}

impl Files {
    /// What earlier runs read, and what this one writes.
    pub fn new(config: &Config, known: Read) -> Self {
        let out = &config.output;
        let standard = || PathBuf::from("/dev/stdout");
        Self {
            known: Known::new(known),
            fresh: Read::default(),
            outputs: vec![
                out.releases.clone().unwrap_or_else(standard),
                out.state.clone(),
                out.ledger.clone(),
                out.dead_letters.clone(),
            ],
        }
    }

    /// The names of files that were begun.
    pub(super) fn names(&self) -> HashSet<&str> {
        let all = self.known.identities.values().flatten();
        all.map(|(name, _)| name.as_str()).collect()
    }

    /// Read since this was last asked.
    pub fn fresh(&mut self) -> Read {
        std::mem::take(&mut self.fresh)
    }

    /// Notes that a file is read from an offset on; refuses one that was read under another name, begins like one that was, or is
    /// written by this stream.
    pub(super) fn admit(
        &mut self,
        name: &str,
        path: &Path,
        (facts, offset): (&Metadata, u64),
    ) -> Result<(), Failure> {
        if let Some(identity) = Identity::of(facts) {
            let written = |out: &PathBuf| fs::metadata(out).ok().and_then(|f| Identity::of(&f));
            if (self.outputs.iter().filter_map(written)).any(|out| out.is(&identity)) {
                return Err(Refusal::policy(
                    "a file that this stream writes would be read as events",
                )
                .in_file(path)
                .accepting("Take it, or the link to it, out of what is read.")
                .into());
            }
            if let Some(other) = self.known.twin(name, &identity) {
                return Err(renamed(path, other));
            }
            let entry = (name.to_owned(), identity);
            if self.known.begin(&entry) {
                self.fresh.identities.push(entry);
            }
        }
        // what is gone on with was compared where it was left
        if offset == 0
            && let Some(other) = self.known.copied(name, path, facts.len())
        {
            return Err(renamed(path, other));
        }
        Ok(())
    }

    /// Notes how a file begins, of which this much was told after its header: another that begins so is a copy of it. Short files may be
    /// alike by chance, or by one event; they are known by what they are only.
    pub(super) fn left(
        &mut self,
        name: &str,
        open: (&fs::File, &Path),
        (from, offset): (u64, u64),
    ) {
        if offset < from.saturating_add(TAIL) {
            return;
        }
        let digest = piece(open, from, TAIL);
        if !digest.is_empty() {
            let start = (name.to_owned(), from, digest);
            self.known.end(start.clone());
            self.fresh.starts.push(start);
        }
    }

    /// Fails if the file in which an earlier run stopped cannot be gone on with: it is gone, or has not in it what was read of it.
    pub fn resume(input: &Input, progress: &Progress) -> Result<(), Failure> {
        let place = &progress.place;
        if place.file.is_empty() {
            return Ok(());
        }
        let Input::Path(path) = input else {
            return Err(Refusal::policy(format!("this stream was read from files, the last one `{}`; what they held of open ticks is stored, and would count again if it were sent once more", place.file))
                .for_key("source.path")
                .accepting("Go on with the files.")
                .into());
        };
        let there = files(path)?;
        let Some((_, file)) = there.iter().find(|f| f.0 == place.file) else {
            return Err(Refusal::policy(format!("`{}`, which was read last, is gone, and with it events that may have come to it since", place.file))
                .in_file(path)
                .accepting("Put it back, under its name: a file may go once a tick was released that needed a later one.")
                .into());
        };
        let failed = |e| file_failed(file, "events cannot be read", e);
        let shorter = fs::metadata(file).map_err(failed)?.len() < place.offset;
        if shorter || (!progress.tail.is_empty() && tail(file, place.offset) != progress.tail) {
            return Err(replaced(file));
        }
        Ok(())
    }
}

/// What a file has before a place, to tell it from another that has its name; nothing if it cannot be read.
pub(super) fn tail(path: &Path, offset: u64) -> Vec<u8> {
    let from = offset.saturating_sub(TAIL);
    before(path, from, offset - from)
}

/// [`tail`] of a file that is open, whatever its name leads to by now.
pub(super) fn tail_of(file: &fs::File, path: &Path, offset: u64) -> Vec<u8> {
    let from = offset.saturating_sub(TAIL);
    piece((file, path), from, offset - from)
}

/// Digest of so many bytes of an open file; nothing if they are not there.
fn piece((file, path): (&fs::File, &Path), from: u64, bytes: u64) -> Vec<u8> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileExt;
        let _ = path;
        let mut read = vec![0; usize::try_from(bytes).unwrap_or(0)];
        let all = file.read_exact_at(&mut read, from);
        all.map_or_else(|_| Vec::new(), |()| Sha256::digest(&read).to_vec())
    }
    #[cfg(not(unix))]
    {
        // reading here would move the place at which the events are read
        let _ = file;
        before(path, from, bytes)
    }
}

/// Digest of so many bytes from a place on; nothing if they cannot be read.
fn before(path: &Path, from: u64, bytes: u64) -> Vec<u8> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = fs::File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut read = Vec::new();
        file.take(bytes).read_to_end(&mut read)?;
        Ok(Sha256::digest(&read).to_vec())
    };
    read().unwrap_or_default()
}

/// Bytes that are compared.
const TAIL: u64 = 4096;

/// A file that has been read under another name.
pub(super) fn renamed(path: &Path, before: &str) -> Failure {
    Refusal::policy(format!("this file was read already, when it was called `{before}`: its events would count once more"))
        .in_file(path)
        .accepting("Let files keep their names in the folder that is read, and begin each new one under a later name.")
        .into()
}
