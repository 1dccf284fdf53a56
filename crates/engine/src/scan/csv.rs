//! CSV files as row sources: quotes, CRLF, byte order marks, gzip, ragged lines and fields of any length.
//!
//! # Claim
//! Reading is total in the rows: whatever bytes follow the header, every record yields exactly one row
//! and no record can stop the scan, change another row or be counted twice. Only the machine can fail
//! (input/output, a truncated or damaged gzip stream).
//! # Arithmetic
//! One thread finds fields and gathers blocks of records; blocks are decoded and folded on the rayon
//! pool. Blocks in flight are at most [`QUEUE`] plus two per thread, each of at most `rows` records or
//! [`BLOCK_BYTES`] plus one record, and a field keeps at most [`FIELD_CAP`] + 1 bytes: memory does not
//! grow with the file. The reading thread is not a pool thread and never waits for one that waits for
//! it: workers wait only for blocks, the reader only for queue space, so the scan cannot lock up even on
//! a pool of one thread. Cells beyond the header are skipped, absent ones are missing. Empty lines are
//! not records. A quote left open extends to the end of its file.
//! # Checked by
//! `scan::tests::{bad_rows_never_fail, csv_dialects, gzip, thread_and_batch_independence, arbitrary_bytes}`

#![allow(
    clippy::arithmetic_side_effects,
    reason = "sums of lengths and counts of things in memory, far below 2^63"
)]

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use csv_core::ReadFieldResult;
use flate2::read::MultiGzDecoder;
use reticent_mechanisms::rows::Batch;
use reticent_mechanisms::rows::cell::FIELD_CAP;
use reticent_mechanisms::source::{Order, SourceError};

use super::fields::Field;
use super::{asked, damaged, failed, locate};

/// Records per block unless asked otherwise.
pub(crate) const ROWS: usize = 4096;
/// A block is closed when its fields fill this many bytes.
const BLOCK_BYTES: usize = 4 << 20;
/// Blocks that may wait between the reader and the pool.
const QUEUE: usize = 4;
/// Columns a header may name.
const MAX_COLUMNS: usize = 1 << 16;

/// Consecutive records: the bytes of the wanted fields, one after the other, and where each ends.
#[derive(Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    used: usize,
    ends: Vec<usize>,
    /// Line on which each record begins and its number of fields.
    pub(crate) records: Vec<(u64, usize)>,
}

impl Block {
    /// The bytes of a field; empty if the record is too short to have it.
    fn field(&self, record: usize, slot: usize, slots: usize) -> &[u8] {
        let at = record * slots + slot;
        let end_of = |i: usize| self.ends.get(i).copied().unwrap_or(0);
        let start = at.checked_sub(1).map_or(0, end_of);
        self.bytes.get(start..end_of(at)).unwrap_or_default()
    }

    /// Free space, never empty.
    fn room(&mut self) -> &mut [u8] {
        if self.bytes.len() < self.used + 64 {
            self.bytes.resize(self.bytes.len() * 2 + 4096, 0);
        }
        self.bytes.get_mut(self.used..).unwrap_or_default()
    }
}

/// Which fields of a file are gathered, and from which of them each column is decoded.
pub(crate) struct Wanted {
    /// For each field of the file: does a block keep it?
    keep: Vec<bool>,
    /// Kept fields per record.
    slots: usize,
    /// Column to slot; `None` if it is not asked for.
    slot_of: Vec<Option<usize>>,
}

impl Wanted {
    fn new(asked: &[Option<usize>], fields: usize) -> Self {
        let keep: Vec<bool> = (0..fields).map(|f| asked.contains(&Some(f))).collect();
        let slot = |field| keep.iter().take(field).filter(|k| **k).count();
        let slot_of = asked.iter().map(|f| f.map(slot)).collect();
        Self {
            slots: slot(fields),
            slot_of,
            keep,
        }
    }

    /// The bytes of a cell.
    pub(crate) fn raw<'a>(&self, block: &'a Block, record: usize, column: usize) -> &'a [u8] {
        let slot = self.slot_of.get(column).copied().flatten();
        slot.map_or(&[], |slot| block.field(record, slot, self.slots))
    }

    /// Decodes a block.
    pub(crate) fn decode(&self, block: &Block, fields: &[Field]) -> Batch {
        let rows = block.records.len();
        let cells = |(field, slot): (&Field, &Option<usize>)| match slot {
            Some(slot) => field.texts((0..rows).map(|r| Some(block.field(r, *slot, self.slots)))),
            None => field.unread(),
        };
        let cells = fields.iter().zip(&self.slot_of).flat_map(cells).collect();
        Batch::new(rows, cells)
    }
}

/// One open CSV file, positioned behind its header.
pub(crate) struct Reader {
    input: BufReader<Box<dyn Read + Send>>,
    core: csv_core::Reader,
    /// Line feeds skipped between records, which the core did not see.
    skipped: u64,
    /// Names in the header.
    pub(crate) header: Vec<String>,
    scrap: Vec<u8>,
    context: String,
}

impl Reader {
    /// Opens the file and reads its header.
    pub(crate) fn open(path: &Path) -> Result<Self, SourceError> {
        let context = path.display().to_string();
        let mut reader = Self {
            input: BufReader::with_capacity(1 << 18, plain(path, &context)?),
            core: csv_core::Reader::new(),
            skipped: 0,
            header: Vec::new(),
            scrap: vec![0; 4096],
            context,
        };
        let mut block = Block::default();
        let all = Wanted {
            keep: vec![true; MAX_COLUMNS],
            slots: MAX_COLUMNS,
            slot_of: Vec::new(),
        };
        reader.record(&mut block, &all)?;
        let what = match block.records.first() {
            None => "the file is empty; it needs a header line that names the columns",
            Some((_, fields)) if *fields > MAX_COLUMNS => "the header names over 65536 columns",
            Some((_, fields)) => {
                let name = |i| String::from_utf8_lossy(block.field(0, i, MAX_COLUMNS).trim_ascii());
                reader.header = (0..*fields).map(|i| name(i).into_owned()).collect();
                return Ok(reader);
            }
        };
        Err(damaged(&reader.context, what))
    }

    /// Appends the next record to the block, if there is one.
    fn record(&mut self, block: &mut Block, wanted: &Wanted) -> Result<(), SourceError> {
        self.skip_line_ends()?;
        let line = self.core.line() + self.skipped;
        let complete = block.ends.len() + wanted.slots;
        let (mut fields, mut start) = (0, block.used);
        loop {
            let kept = wanted.keep.get(fields) == Some(&true);
            let fits = kept && block.used - start <= FIELD_CAP;
            let output = if fits {
                block.room()
            } else {
                self.scrap.as_mut_slice()
            };
            let input = fill(&mut self.input, &self.context)?;
            let (result, read, written) = self.core.read_field(input, output);
            self.input.consume(read);
            block.used += if fits { written } else { 0 };
            match result {
                ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull => {}
                ReadFieldResult::End => return Ok(()),
                ReadFieldResult::Field { record_end } => {
                    fields += 1;
                    if kept {
                        block.used = block.used.min(start + FIELD_CAP + 1);
                        block.ends.push(block.used);
                        start = block.used;
                    }
                    if record_end {
                        block.ends.resize(complete, block.used);
                        block.records.push((line, fields));
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Consumes the line ends before a record, so that its first line is known.
    fn skip_line_ends(&mut self) -> Result<(), SourceError> {
        while let Some(end @ (b'\r' | b'\n')) = fill(&mut self.input, &self.context)?.first() {
            self.skipped += u64::from(*end == b'\n');
            self.input.consume(1);
        }
        Ok(())
    }

    /// Hands every block of the file to `see`, in order; `see` returns the block to fill next, or
    /// `None` to stop.
    pub(crate) fn blocks(
        mut self,
        fields: &[Field],
        (columns, rows): (&[usize], usize),
        mut see: impl FnMut(Block, &Arc<Wanted>) -> Option<Block>,
    ) -> Result<(), SourceError> {
        let asked = asked(
            fields,
            &locate(fields, &self.header, &self.context)?,
            columns,
        );
        let wanted = Arc::new(Wanted::new(&asked, self.header.len()));
        let mut next = Some(Block::default());
        while let Some(mut block) = next {
            (block.used, block.ends, block.records) = (0, Vec::new(), Vec::new());
            while block.records.len() < rows && block.used < BLOCK_BYTES {
                let before = block.records.len();
                self.record(&mut block, &wanted)?;
                if block.records.len() == before {
                    break;
                }
            }
            next = if block.records.is_empty() {
                None
            } else {
                see(block, &wanted)
            };
        }
        Ok(())
    }
}

/// Reads all files and visits their batches.
pub(crate) fn visit(
    paths: &[PathBuf],
    fields: &[Field],
    (columns, rows, order): (&[usize], usize, Order),
    visit: &(dyn Fn(&Batch) + Sync),
) -> Result<(), SourceError> {
    // A poisoned lock only means that another worker of the same scan died.
    let spare: Mutex<Vec<Block>> = Mutex::new(Vec::new());
    let spares = || spare.lock().unwrap_or_else(PoisonError::into_inner);
    let read = |queue: SyncSender<(Block, Arc<Wanted>)>| {
        paths.iter().try_for_each(|path| {
            Reader::open(path)?.blocks(fields, (columns, rows), |block, wanted| {
                queue.send((block, Arc::clone(wanted))).ok()?;
                Some(spares().pop().unwrap_or_default())
            })
        })
    };
    let work = |blocks: &Mutex<Receiver<(Block, Arc<Wanted>)>>| {
        loop {
            let next = blocks.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((block, wanted)) = next else { return };
            let batch = wanted.decode(&block, fields);
            spares().push(block);
            visit(&batch);
        }
    };
    std::thread::scope(|threads| {
        let (queue, blocks) = sync_channel(QUEUE);
        // Owned by this closure: should a visit unwind, the queue closes and the reader ends.
        let blocks = Mutex::new(blocks);
        let reader = threads.spawn(move || read(queue));
        match order {
            Order::File => work(&blocks),
            Order::Any => rayon::scope(|pool| {
                (0..rayon::current_num_threads()).for_each(|_| pool.spawn(|_| work(&blocks)));
            }),
        }
        reader
            .join()
            .unwrap_or_else(|_| Err(damaged("reader", "the reading thread died")))
    })
}

/// The file's bytes, decompressed if they are gzip, without byte order mark.
fn plain(path: &Path, context: &str) -> Result<Box<dyn Read + Send>, SourceError> {
    let io = |e| failed(context, e);
    let (head, file) = peek(File::open(path).map_err(io)?).map_err(io)?;
    let zipped = head.starts_with(&[0x1f, 0x8b]);
    if !zipped
        && path
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("gz"))
    {
        return Err(damaged(
            context,
            "named .gz, but not gzip; compress the file or rename it",
        ));
    }
    let bytes = BufReader::new(Cursor::new(head).chain(file));
    let bytes: Box<dyn Read + Send> = if zipped {
        Box::new(MultiGzDecoder::new(bytes))
    } else {
        Box::new(bytes)
    };
    let (mut head, rest) = peek(bytes).map_err(io)?;
    if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        return Err(damaged(context, "the text is UTF-16; save it as UTF-8"));
    }
    if head == [0xef, 0xbb, 0xbf] {
        head.clear();
    }
    Ok(Box::new(Cursor::new(head).chain(rest)))
}

/// The first three bytes (fewer only at the end of the file), and the rest.
fn peek<R: Read>(mut input: R) -> std::io::Result<(Vec<u8>, R)> {
    let mut head = Vec::with_capacity(3);
    input.by_ref().take(3).read_to_end(&mut head)?;
    Ok((head, input))
}

/// Buffered bytes; none at the end of the file.
fn fill<'a, R: Read>(input: &'a mut BufReader<R>, context: &str) -> Result<&'a [u8], SourceError> {
    while let Err(e) = input.fill_buf() {
        if e.kind() != ErrorKind::Interrupted {
            return Err(failed(context, e));
        }
    }
    input.fill_buf().map_err(|e| failed(context, e))
}
