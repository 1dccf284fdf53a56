//! The file of releases: every committed line once, and nothing else.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::analysis::Line;
use super::config::Config;
use super::file_failed;
use super::store::{Store, chain};
use crate::failure::Failure;
use crate::outcome::Refusal;

/// Where released lines go; never two values for a tick.
pub(super) struct Publisher {
    out: Box<dyn Write + Send>,
    path: std::path::PathBuf,
    /// Ticks published before this run.
    done: i64,
}

impl Publisher {
    pub(super) fn open(config: &Config, store: &Store) -> Result<Self, Failure> {
        let ticks = store.progress()?.ticks;
        let Some(path) = &config.output.releases else {
            return Ok(Self {
                out: Box::new(std::io::stdout()),
                path: "standard output".into(),
                // the last committed tick is repeated, with the same value: it may not have arrived
                done: (ticks - 1).max(0),
            });
        };
        let failed = |e| file_failed(path, "releases cannot be written", e);
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .map_err(failed)?;
        let (done, complete, head) = published(&file, path, store.head(0)?.unwrap_or_default())?;
        if done <= ticks && store.head(done)? != Some(head) {
            return Err(foreign(path));
        }
        if done > ticks {
            return Err(Refusal::policy("the releases are ahead of the state file, which must be an older copy; going on could release a tick twice with different noise")
                .in_file(path)
                .accepting("Restore the newest state file, or give the stream another name.")
                .into());
        }
        // an unfinished last line is written again, if it is one of ours
        let mut tail = Vec::new();
        file.seek(SeekFrom::Start(complete)).map_err(failed)?;
        file.read_to_end(&mut tail).map_err(failed)?;
        let next = store.line(done)?.unwrap_or_default();
        if !next.as_bytes().starts_with(&tail) {
            return Err(foreign(path));
        }
        file.set_len(complete).map_err(failed)?;
        file.seek(SeekFrom::Start(complete)).map_err(failed)?;
        Ok(Self {
            out: Box::new(std::io::BufWriter::new(file)),
            path: path.clone(),
            done,
        })
    }

    /// A line that was committed in an earlier run.
    pub(super) fn again(&mut self, tick: i64, body: &str) -> Result<(), Failure> {
        if tick < self.done {
            return Ok(());
        }
        self.publish(tick, body)
    }

    pub(super) fn publish(&mut self, _tick: i64, body: &str) -> Result<(), Failure> {
        let path = self.path.clone();
        let failed = |e| file_failed(&path, "releases cannot be written", e);
        writeln!(self.out, "{body}").map_err(failed)?;
        self.out.flush().map_err(failed)
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let path = &self.path;
        self.out
            .flush()
            .map_err(|e| file_failed(path, "releases cannot be written", e))
    }
}

pub(super) fn foreign(path: &Path) -> Failure {
    Refusal::policy(
        "the file holds something that is not a release of this stream, or that was changed",
    )
    .in_file(path)
    .accepting("Restore it, or name another file: it will be written again from the state.")
    .into()
}

/// How many ticks a file of releases holds, the bytes of its complete lines, and the head of their chain.
fn published(file: &File, path: &Path, start: [u8; 32]) -> Result<(i64, u64, [u8; 32]), Failure> {
    let failed = |e| file_failed(path, "releases cannot be read", e);
    let (mut ticks, mut bytes, mut head) = (0, 0, start);
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(failed)?;
        if read == 0 || line.last() != Some(&b'\n') {
            return Ok((ticks, bytes, head));
        }
        let tick = serde_json::from_slice::<Line>(&line).map(|l| l.tick);
        match tick {
            Ok(tick) if tick == ticks => ticks += 1,
            _ => {
                return Err(Refusal::policy("the file holds something other than the releases of this stream, one line per tick")
                    .in_file(path)
                    .accepting("Name another file.")
                    .into());
            }
        }
        bytes += read as u64;
        let body = std::str::from_utf8(&line).unwrap_or_default();
        head = chain(&head, body.trim_end_matches('\n'));
    }
}
