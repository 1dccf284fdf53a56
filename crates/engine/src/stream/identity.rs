//! Which file is which, whatever it is called: no file of events is read twice, and none that this stream writes.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::config::{Config, Input};
use super::source::{files, replaced};
use super::store::Progress;
use crate::failure::Failure;
use crate::file::Identity;
use crate::outcome::Refusal;

/// The files that were read so far, and those that must not be.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Read, by name in the source.
    known: BTreeMap<String, Identity>,
    /// Read since it was last stored.
    fresh: Vec<(String, Identity)>,
    /// Written by this stream.
    outputs: Vec<PathBuf>,
}

impl Files {
    /// What earlier runs read, and what this one writes.
    pub fn new(config: &Config, known: BTreeMap<String, Identity>) -> Self {
        let out = &config.output;
        let standard = || PathBuf::from("/dev/stdout");
        Self {
            known,
            fresh: Vec::new(),
            outputs: vec![
                out.releases.clone().unwrap_or_else(standard),
                out.state.clone(),
                out.ledger.clone(),
                out.dead_letters.clone(),
            ],
        }
    }

    /// Read since this was last asked.
    pub fn fresh(&mut self) -> Vec<(String, Identity)> {
        std::mem::take(&mut self.fresh)
    }

    /// Notes that a file is read; refuses one that was read under another name, or is written by this stream.
    pub(super) fn admit(
        &mut self,
        name: &str,
        path: &Path,
        facts: &Metadata,
    ) -> Result<(), Failure> {
        let Some(identity) = Identity::of(facts) else {
            return Ok(());
        };
        let written = |out: &PathBuf| fs::metadata(out).ok().and_then(|f| Identity::of(&f));
        if (self.outputs.iter().filter_map(written)).any(|out| out.is(&identity)) {
            return Err(
                Refusal::policy("a file that this stream writes would be read as events")
                    .in_file(path)
                    .accepting("Take it, or the link to it, out of what is read.")
                    .into(),
            );
        }
        if self.known.get(name) == Some(&identity) {
            return Ok(());
        }
        let twin = |(other, known): &(&String, &Identity)| {
            *other != name && **known == identity && known.born.is_some()
        };
        if let Some((other, _)) = self.known.iter().find(twin) {
            return Err(renamed(path, other));
        }
        self.known.insert(name.to_owned(), identity);
        self.fresh.push((name.to_owned(), identity));
        Ok(())
    }

    /// Fails if what an earlier run stopped in cannot be gone on with: files of ticks that are still open, or the last one
    /// with nothing after it, are gone, or the last one has not in it what was read of it.
    pub fn resume(&self, input: &Input, progress: &Progress) -> Result<(), Failure> {
        let (place, reached) = (&progress.place, &progress.reached);
        let Input::Path(path) = input else {
            return Ok(());
        };
        if reached.file.is_empty() {
            return Ok(());
        }
        let there = files(path)?;
        let find = |name: &str| there.iter().find(|f| f.0 == name);
        let open = self.known.keys().chain([&place.file]);
        let open = open.filter(|f| place < reached && **f >= place.file && **f < reached.file);
        if let Some(lost) = open.clone().find(|f| find(f).is_none()) {
            return Err(Refusal::policy(format!(
                "`{lost}` is gone, and ticks that are not released yet have events in it"
            ))
            .in_file(path)
            .accepting(
                "Put it back; a file may be removed once the ticks of its events are released.",
            )
            .into());
        }
        match find(&reached.file) {
            Some((_, file)) => match fs::metadata(file) {
                Ok(facts) if facts.len() < reached.offset => Err(replaced(file)),
                _ if progress.tail.is_empty() => Ok(()),
                _ if tail(file, reached.offset) == progress.tail => Ok(()),
                _ => Err(replaced(file)),
            },
            None if place < reached && place.file == reached.file => Err(lost(path, &reached.file)),
            None if there.iter().all(|f| f.0 < reached.file) => Err(lost(path, &reached.file)),
            None => Ok(()),
        }
    }
}

/// What a file has before a place, to tell it from another that has its name; nothing if it cannot be read.
pub(super) fn tail(path: &Path, offset: u64) -> Vec<u8> {
    let from = offset.saturating_sub(TAIL);
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = fs::File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(offset - from).read_to_end(&mut bytes)?;
        Ok(Sha256::digest(&bytes).to_vec())
    };
    read().unwrap_or_default()
}

/// Bytes that are compared.
const TAIL: u64 = 4096;

fn lost(path: &Path, name: &str) -> Failure {
    Refusal::policy(format!("`{name}`, which was read last, is gone, and no file comes after it in name order: nothing would be read, and empty ticks released"))
        .in_file(path)
        .accepting("Put it back, under its name.")
        .into()
}

/// A file that has been read under another name.
pub(super) fn renamed(path: &Path, before: &str) -> Failure {
    Refusal::policy(format!("this file was read already, when it was called `{before}`: its events would count once more"))
        .in_file(path)
        .accepting("Let files keep their names in the folder that is read, and begin each new one under a later name.")
        .into()
}
