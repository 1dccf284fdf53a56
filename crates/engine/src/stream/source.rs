//! Reading events, each with the place after which reading may start again.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clock::Watch;
use super::config::{Format, Input, Source};
use super::file_failed;
use super::folder::{Folder, entries, files};
use super::identity::{Files, renamed, tail_of};
use super::line::{Bad, Header, Row, from_fields, json, split};
use crate::failure::Failure;
use crate::file::Identity;
use crate::outcome::Refusal;

/// A line longer than this is a bad line; it is skipped without being held in memory.
const LONGEST: usize = 1 << 20;

/// The memory of a line up to this size is used again for the next one.
const USUAL: usize = 1 << 12;

/// What is read of a file at once.
const BUFFER: usize = 1 << 16;

/// A place between two lines: file name within the source, and bytes into it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The file; empty for standard input.
    pub file: String,
    /// Bytes before it.
    pub offset: u64,
}

/// What reading gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read1 {
    /// A line that starts here.
    Line(Place, Result<Row, Bad>),
    /// Standard input is open, but has been silent for a moment.
    Wait,
    /// Nothing more: for now, for good, or before the limit.
    End,
}

/// Reads the files of a source in name order, or standard input.
pub struct Reader {
    source: Source,
    from: Place,
    open: Option<Open>,
    folder: Folder,
    files: Files,
    /// Whether nothing will be added: the last line then needs no end of its own.
    complete: bool,
    watch: Watch,
    /// When what standard input gave last had come, or up to when it was silent.
    arrived: Arc<AtomicI64>,
}

/// What came from standard input, and when (in microseconds since 1970); nothing at its end.
pub type Chunk = (i64, std::io::Result<Vec<u8>>);

struct Open {
    name: String,
    /// `None` for standard input.
    path: Option<PathBuf>,
    lines: Box<dyn BufRead + Send>,
    offset: u64,
    header: Header,
    /// The beginning of a line of standard input that has not come in whole.
    begun: Vec<u8>,
    /// Bytes of a line that is too long, while its end is looked for.
    skipped: Option<u64>,
    /// Where its header ends; 0 if it has none.
    header_end: u64,
    /// What tells this file from another of its name.
    identity: Option<Identity>,
    /// The file itself, whatever its name leads to by now; `None` for standard input.
    file: Option<File>,
    /// What it had before the place at which it ended when it was looked at last.
    ended: Option<Vec<u8>>,
    /// Whether its last line had no end when it was looked at last.
    half: bool,
}

impl Reader {
    /// Starts at a place.
    pub fn new(source: &Source, from: Place, files: Files, watch: &Watch) -> Self {
        Self {
            source: source.clone(),
            from,
            open: None,
            folder: Folder::default(),
            files,
            complete: false,
            watch: watch.clone(),
            arrived: Arc::new(AtomicI64::new(i64::MIN)),
        }
    }

    /// When the last line of standard input had come in whole; after [`Read1::Wait`] a moment up to which all is read.
    pub fn arrived(&self) -> i64 {
        self.arrived.load(Ordering::Relaxed)
    }

    /// Where a source of files ends at present.
    pub fn present_end(&self) -> Result<Place, Failure> {
        let Input::Path(path) = &self.source.input else {
            return Ok(self.place());
        };
        let Some((name, file)) = files(path)?.pop_back() else {
            return Ok(self.place());
        };
        let facts =
            std::fs::metadata(&file).map_err(|e| file_failed(&file, "events cannot be read", e))?;
        Ok(Place {
            file: name,
            offset: facts.len(),
        })
    }

    /// A source to which nothing will be added: its last line needs no end of its own.
    #[must_use]
    pub fn complete(mut self, complete: bool) -> Self {
        self.complete = complete;
        self
    }

    /// The file whose last line has no end, and was left for when it has.
    pub fn unfinished(&self) -> Option<&str> {
        let open = self.open.as_ref()?;
        let half = open.skipped.is_some() || open.half;
        half.then_some(open.name.as_str())
    }

    /// What is in the folder and was not read, although what comes behind it in name order was: it never will be.
    pub fn passed(&self) -> Vec<String> {
        let (Some(open), Input::Path(path)) = (&self.open, &self.source.input) else {
            return Vec::new();
        };
        if open.identity.is_none() {
            // what was read is not known here
            return Vec::new();
        }
        let known = self.files.names();
        let before = |name: &String| *name < open.name && !known.contains(name.as_str());
        entries(path).into_iter().filter(before).collect()
    }

    fn path(&self) -> PathBuf {
        let path = self.open.as_ref().and_then(|o| o.path.clone());
        path.unwrap_or_default()
    }

    /// What tells the file that is read now from another of its name; read from the file itself, which may have another name by now.
    pub fn tail(&self, place: &Place) -> Vec<u8> {
        let open = self.open.as_ref().filter(|o| o.name == place.file);
        open.and_then(|open| open.file.as_ref().zip(open.path.as_deref()))
            .map_or_else(Vec::new, |(file, path)| tail_of(file, path, place.offset))
    }

    /// What was read and must not be.
    pub fn files(&mut self) -> &mut Files {
        &mut self.files
    }

    /// Where the next line starts.
    pub fn place(&self) -> Place {
        self.open.as_ref().map_or_else(
            || self.from.clone(),
            |o| Place {
                file: o.name.clone(),
                offset: o.offset,
            },
        )
    }

    /// Whether the next line starts at a place or behind it.
    fn reached(&self, place: &Place) -> bool {
        let (file, offset) = match &self.open {
            Some(open) => (&open.name, open.offset),
            None => (&self.from.file, self.from.offset),
        };
        (file, offset) >= (&place.file, place.offset)
    }

    /// The next line, if it starts before the limit. [`Read1::End`] may be followed by more when the source grows.
    pub fn read(&mut self, limit: Option<&Place>) -> Result<Read1, Failure> {
        loop {
            if limit.is_some_and(|l| self.reached(l)) {
                return Ok(Read1::End);
            }
            if self.open.is_none() && !self.open_next()? {
                return Ok(Read1::End);
            }
            // what was read before a pause must still be there after it
            let before = self.open.as_mut().and_then(|open| open.ended.take());
            let changed = before.is_some_and(|before| {
                let now = self.tail(&self.place());
                // one that is gone may be: `step` says so
                !now.is_empty() && before != now
            });
            if changed {
                return Err(replaced(&self.path()));
            }
            let Some(open) = &mut self.open else {
                return Ok(Read1::End);
            };
            let place = Place {
                file: open.name.clone(),
                offset: open.offset,
            };
            match open.line()? {
                Line::Whole(bytes) => {
                    let event = self.parse(&bytes);
                    self.reuse(bytes);
                    if let Some(event) = event {
                        return Ok(Read1::Line(place, event));
                    }
                }
                Line::TooLong => {
                    open.header.none();
                    return Ok(Read1::Line(place, Err(Bad::too_long())));
                }
                Line::Waiting => return Ok(Read1::Wait),
                Line::Partial if self.complete || self.later()?.is_some() => {
                    // nothing will be added: the last line has no end of its own
                    let bytes = match &mut self.open {
                        Some(open) => open.rest()?,
                        None => Vec::new(),
                    };
                    if let Some(event) = self.parse(&bytes) {
                        return Ok(Read1::Line(place, event));
                    }
                }
                Line::PartialLong if self.complete || self.later()?.is_some() => {
                    if let Some(open) = &mut self.open {
                        open.offset += open.skipped.take().unwrap_or(0);
                        open.header.none();
                    }
                    return Ok(Read1::Line(place, Err(Bad::too_long())));
                }
                Line::Partial | Line::PartialLong | Line::End => {
                    // a later file: this one is complete
                    if !self.step()? {
                        return Ok(Read1::End);
                    }
                }
            }
        }
    }

    /// Gives the memory of a line that was looked at to the next one.
    fn reuse(&mut self, mut line: Vec<u8>) {
        if let Some(open) = &mut self.open
            && open.begun.is_empty()
            && line.capacity() <= USUAL
        {
            line.clear();
            open.begun = line;
        }
    }

    fn parse(&mut self, bytes: &[u8]) -> Option<Result<Row, Bad>> {
        let Ok(text) = std::str::from_utf8(bytes) else {
            let line = String::from_utf8_lossy(bytes).into_owned();
            if let Some(open) = &mut self.open {
                open.header.none();
            }
            return Some(Err(Bad {
                why: "not UTF-8",
                line,
            }));
        };
        let line = text.trim_end_matches(['\n', '\r']);
        if line.trim().is_empty() {
            return None;
        }
        let event = match self.source.format {
            Format::Jsonl => json(&self.source, line),
            Format::Csv => {
                let open = self.open.as_mut()?;
                if matches!(open.header, Header::Unread) {
                    open.header = Header::of(&self.source, line);
                    open.header_end = open.offset;
                    if matches!(open.header, Header::Columns(_)) {
                        return None;
                    }
                }
                match (&open.header, split(line)) {
                    (Header::Columns(columns), Some(fields)) => {
                        from_fields(&self.source, columns, &fields)
                    }
                    (Header::Columns(_), None) => Err("not one record of CSV"),
                    (Header::Unread, _) => Err("a remark before the header"),
                    (Header::None, _) => Err("in a file without a header of the declared fields"),
                }
            }
        };
        Some(event.map_err(|why| Bad {
            why,
            line: line.to_owned(),
        }))
    }

    /// Opens the first file at or after the starting place.
    fn open_next(&mut self) -> Result<bool, Failure> {
        match self.source.input.clone() {
            Input::Standard => {
                self.open = Some(Open {
                    name: String::new(),
                    path: None,
                    lines: Box::new(Fed::new(&self.watch, &self.arrived)),
                    offset: 0,
                    header: Header::Unread,
                    begun: Vec::new(),
                    skipped: None,
                    header_end: 0,
                    identity: None,
                    file: None,
                    ended: None,
                    half: false,
                });
                Ok(true)
            }
            Input::Path(path) => {
                let from = self.from.clone();
                match files(&path)?.into_iter().find(|f| f.0 >= from.file) {
                    Some((name, file)) => {
                        let offset = if name == from.file { from.offset } else { 0 };
                        self.open = Some(self.open_file(&name, &file, offset)?);
                        Ok(true)
                    }
                    None => Ok(false),
                }
            }
        }
    }

    /// The file after the open one.
    fn later(&mut self) -> Result<Option<(String, PathBuf)>, Failure> {
        let (Some(open), Input::Path(path)) = (&self.open, &self.source.input) else {
            return Ok(None);
        };
        self.folder.after(path, &open.name)
    }

    /// Moves to the next file, if there is one. The present one must still be the file that was opened, but may be gone when
    /// another follows, which must not be the same under a new name.
    fn step(&mut self) -> Result<bool, Failure> {
        let later = self.later()?;
        if let Some(open) = &self.open {
            open.unchanged(later.is_some())?;
            // what came before the later file was begun, after this one had been read to its end
            let grown = open.file.as_ref().and_then(|file| file.metadata().ok());
            let read = open.offset + open.skipped.unwrap_or(0);
            if later.is_some() && grown.is_some_and(|facts| facts.len() > read) {
                return Ok(true);
            }
            if let Some((_, file)) = &later
                && let (Ok(facts), Some(mine)) = (std::fs::metadata(file), &open.identity)
                && Identity::of(&facts).is_some_and(|i| i.is(mine))
            {
                return Err(renamed(file, &open.name));
            }
        }
        if let Some(open) = self.open.as_ref().filter(|_| later.is_some())
            && let (Some(file), Some(path)) = (&open.file, &open.path)
        {
            let told = (open.header_end, open.offset);
            self.files.left(&open.name, (file, path), told);
        }
        let Some((name, file)) = later else {
            let tail = self.tail(&self.place());
            if let Some(open) = &mut self.open {
                open.ended = Some(tail);
            }
            return Ok(false);
        };
        self.open = Some(self.open_file(&name, &file, 0)?);
        Ok(true)
    }

    /// Opens a file at an offset; a CSV header is looked for in what is before it, as it was when that was read.
    fn open_file(&mut self, name: &str, path: &Path, offset: u64) -> Result<Open, Failure> {
        let failed = |e| file_failed(path, "events cannot be read", e);
        let file = File::open(path).map_err(failed)?;
        let facts = file.metadata().map_err(failed)?;
        self.files.admit(name, path, (&facts, offset))?;
        if facts.len() < offset {
            return Err(replaced(path));
        }
        let mut open = Open {
            name: name.to_owned(),
            path: Some(path.to_owned()),
            lines: Box::new(BufReader::new(std::io::empty())),
            offset: 0,
            header: Header::Unread,
            begun: Vec::new(),
            skipped: None,
            header_end: 0,
            identity: Identity::of(&facts),
            file: Some(file),
            ended: None,
            half: false,
        };
        open.go_to(0)?;
        while self.source.format == Format::Csv
            && matches!(open.header, Header::Unread)
            && open.offset < offset
        {
            match open.line()? {
                Line::Whole(bytes) => self.header(&mut open, &bytes),
                Line::Partial => {
                    let bytes = open.rest()?;
                    self.header(&mut open, &bytes);
                }
                Line::TooLong => open.header.none(),
                Line::Waiting => {}
                Line::PartialLong | Line::End => break,
            }
            open.header_end = open.offset.min(offset);
        }
        open.go_to(offset)?;
        Ok(open)
    }

    /// Takes in a line that was read before.
    fn header(&self, open: &mut Open, line: &[u8]) {
        match std::str::from_utf8(line) {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => open.header = Header::of(&self.source, line.trim_end_matches(['\n', '\r'])),
            Err(_) => open.header.none(),
        }
    }
}

/// Standard input by way of a thread, so that nobody waits for it long and that it is known when something came. At most
/// four buffers are read ahead.
struct Fed {
    chunks: Receiver<Chunk>,
    present: Vec<u8>,
    used: usize,
    watch: Watch,
    arrived: Arc<AtomicI64>,
}

impl Fed {
    fn new(watch: &Watch, arrived: &Arc<AtomicI64>) -> Self {
        let chunks = watch.0.input().unwrap_or_else(|| standard_input(watch));
        Self {
            chunks,
            present: Vec::new(),
            used: 0,
            watch: watch.clone(),
            arrived: Arc::clone(arrived),
        }
    }
}

fn standard_input(watch: &Watch) -> Receiver<Chunk> {
    let (sender, chunks) = sync_channel(4);
    let watch = watch.clone();
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut chunk = vec![0; 1 << 16];
            let read = input.read(&mut chunk).map(|n| {
                chunk.truncate(n);
                chunk
            });
            if read
                .as_ref()
                .is_err_and(|e| e.kind() == ErrorKind::Interrupted)
            {
                continue;
            }
            let last = !read.as_ref().is_ok_and(|c| !c.is_empty());
            if sender.send((watch.0.now(), read)).is_err() || last {
                return;
            }
        }
    });
    chunks
}

impl BufRead for Fed {
    /// Nothing at the end; [`ErrorKind::WouldBlock`] after a moment of silence.
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.used >= self.present.len() {
            (self.used, self.present) = (0, Vec::new());
            // what came before this moment is here when the wait is over
            let since = self.watch.0.now();
            match self.chunks.recv_timeout(Duration::from_millis(50)) {
                Ok((at, chunk)) => {
                    self.present = chunk?;
                    self.arrived.store(at, Ordering::Relaxed);
                }
                Err(RecvTimeoutError::Disconnected) => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.arrived.store(since, Ordering::Relaxed);
                    return Err(ErrorKind::WouldBlock.into());
                }
            }
        }
        Ok(self.present.get(self.used..).unwrap_or_default())
    }

    fn consume(&mut self, bytes: usize) {
        self.used += bytes;
    }
}

impl Read for Fed {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let n = self.fill_buf()?.read(out)?;
        self.consume(n);
        Ok(n)
    }
}

enum Line {
    Whole(Vec<u8>),
    TooLong,
    Partial,
    /// Too long already, and without an end.
    PartialLong,
    Waiting,
    End,
}

impl Open {
    /// Reads on from an offset, in the file that was opened.
    fn go_to(&mut self, offset: u64) -> Result<(), Failure> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let path = self.path.clone().unwrap_or_default();
        let failed = |e| file_failed(&path, "events cannot be read", e);
        let mut file = file.try_clone().map_err(failed)?;
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        self.lines = Box::new(BufReader::with_capacity(BUFFER, file));
        self.offset = offset;
        self.begun.clear();
        self.skipped = None;
        Ok(())
    }

    /// Fails if the file was cut or replaced since it was opened, or is gone, unless that may be.
    fn unchanged(&self, may_be_gone: bool) -> Result<(), Failure> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let facts = match std::fs::metadata(path) {
            Ok(facts) => facts,
            Err(e) if e.kind() == ErrorKind::NotFound && may_be_gone => return Ok(()),
            Err(_) => return Err(replaced(path)),
        };
        if facts.len() < self.offset + self.skipped.unwrap_or(0)
            || Identity::of(&facts) != self.identity
        {
            return Err(replaced(path));
        }
        Ok(())
    }

    /// The next complete line. A line without its end stays unread in a file (it may still be growing).
    fn line(&mut self) -> Result<Line, Failure> {
        let path = self.path.as_deref();
        let failed = |e| {
            let path = path.unwrap_or(Path::new("standard input"));
            file_failed(path, "events cannot be read", e)
        };
        if let Some(skipped) = &mut self.skipped {
            match skip(&mut self.lines, skipped) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Line::Waiting),
                Err(e) => return Err(failed(e)),
                // a while of it: the clock is looked at in between
                Ok(Skipped::Some) => return Ok(Line::Waiting),
                // its end may still be written
                Ok(Skipped::All) if self.path.is_some() => return Ok(Line::PartialLong),
                Ok(Skipped::Line | Skipped::All) => {}
            }
            self.offset += *skipped;
            self.skipped = None;
            return Ok(Line::TooLong);
        }
        let room = LONGEST.saturating_sub(self.begun.len()) as u64;
        match (&mut self.lines)
            .take(room)
            .read_until(b'\n', &mut self.begun)
        {
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Line::Waiting),
            read => read.map_err(failed)?,
        };
        let bytes = std::mem::take(&mut self.begun);
        self.half = false;
        if bytes.is_empty() {
            return Ok(Line::End);
        }
        if bytes.last() != Some(&b'\n') {
            if bytes.len() >= LONGEST {
                self.skipped = Some(LONGEST as u64);
                return self.line();
            }
            if self.file.is_none() {
                // the last line of standard input
                self.offset += bytes.len() as u64;
                return Ok(Line::Whole(bytes));
            }
            // read it again when it is complete
            self.half = true;
            self.go_to(self.offset)?;
            return Ok(Line::Partial);
        }
        self.offset += bytes.len() as u64;
        Ok(Line::Whole(bytes))
    }

    /// A last line without an end.
    fn rest(&mut self) -> Result<Vec<u8>, Failure> {
        let path = self.path.clone().unwrap_or_default();
        let mut bytes = Vec::new();
        (&mut self.lines)
            .take(LONGEST as u64)
            .read_until(b'\n', &mut bytes)
            .map_err(|e| file_failed(&path, "events cannot be read", e))?;
        self.offset += bytes.len() as u64;
        self.half = false;
        Ok(bytes)
    }
}

/// Skips towards the end of the line, at most a megabyte, and counts the bytes skipped; whether the end is reached.
fn skip(lines: &mut dyn BufRead, total: &mut u64) -> std::io::Result<Skipped> {
    let before = *total;
    while *total - before < LONGEST as u64 {
        let buffer = lines.fill_buf()?;
        if buffer.is_empty() {
            return Ok(Skipped::All);
        }
        if let Some(at) = buffer.iter().position(|b| *b == b'\n') {
            lines.consume(at + 1);
            *total += at as u64 + 1;
            return Ok(Skipped::Line);
        }
        let all = buffer.len();
        lines.consume(all);
        *total += all as u64;
    }
    Ok(Skipped::Some)
}

/// How far a line was skipped.
enum Skipped {
    /// Some of it.
    Some,
    /// To its end.
    Line,
    /// To the end of what there is.
    All,
}

pub(super) fn replaced(path: &Path) -> Failure {
    Refusal::policy("the file that events are read from was cut or replaced: places in it mean nothing any more")
        .in_file(path)
        .accepting("Let files grow, begin new ones in a folder (`path` may name one), and remove only those that are followed by others.")
        .into()
}
