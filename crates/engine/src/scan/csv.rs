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

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use csv_core::ReadFieldResult;
use flate2::read::MultiGzDecoder;
use reticent_mechanisms::rows::{Batch, Cells, Schema};
use reticent_mechanisms::source::{Order, SourceError};

use super::cells::{Decoder, FIELD_CAP, trim};
use super::{damaged, failed, locate};

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
    pub(crate) fn field(&self, record: usize, slot: usize, slots: usize) -> &[u8] {
        let at = record.saturating_mul(slots).saturating_add(slot);
        let end = self.ends.get(at).copied().unwrap_or(0);
        let start = at.checked_sub(1).and_then(|i| self.ends.get(i)).copied().unwrap_or(0);
        self.bytes.get(start..end).unwrap_or_default()
    }

    fn clear(&mut self) {
        self.used = 0;
        self.ends.clear();
        self.records.clear();
    }
}

/// Which fields of a file are gathered, and from which of them each declared column is decoded.
pub(crate) struct Wanted {
    /// For each field of the file: does a block keep it?
    keep: Vec<bool>,
    /// Kept fields per record.
    pub(crate) slots: usize,
    /// Schema column to slot; `None` if it is not asked for.
    pub(crate) slot_of: Vec<Option<usize>>,
}

impl Wanted {
    fn new(positions: &[usize], columns: &[usize], fields: usize) -> Self {
        let field_of = |column: usize| positions.get(column).copied().filter(|_| columns.contains(&column));
        let mut kept: Vec<usize> = (0..positions.len()).filter_map(field_of).collect();
        kept.sort_unstable();
        kept.dedup();
        let slot = |column| field_of(column).and_then(|f| kept.binary_search(&f).ok());
        Self {
            slot_of: (0..positions.len()).map(slot).collect(),
            keep: (0..fields).map(|f| kept.binary_search(&f).is_ok()).collect(),
            slots: kept.len(),
        }
    }

    /// Decodes a block.
    pub(crate) fn decode(&self, block: &Block, decoders: &[Decoder]) -> Batch {
        let rows = block.records.len();
        let column = |(decoder, slot): (&Decoder, &Option<usize>)| match slot {
            Some(slot) => decoder.texts((0..rows).map(|r| Some(block.field(r, *slot, self.slots)))),
            None => Cells::Unread,
        };
        Batch::new(rows, decoders.iter().zip(&self.slot_of).map(column).collect())
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
            input: BufReader::with_capacity(1 << 18, plain(path).map_err(|e| failed(&context, e))??),
            core: csv_core::Reader::new(),
            skipped: 0,
            header: Vec::new(),
            scrap: vec![0; 1 << 12],
            context,
        };
        let mut block = Block::default();
        if !reader.record(&mut block, None)? {
            return Err(damaged(&reader.context, "the file is empty; it needs a header line that names the columns"));
        }
        let names = block.ends.len();
        if names > MAX_COLUMNS || block.used >= BLOCK_BYTES {
            return Err(damaged(&reader.context, "the header line names over 65536 columns or exceeds 4 MiB"));
        }
        reader.header =
            (0..names).map(|i| String::from_utf8_lossy(trim(block.field(0, i, names))).into_owned()).collect();
        Ok(reader)
    }

    /// Appends the next record to the block, its kept fields only (`None`: all); false at the end.
    fn record(&mut self, block: &mut Block, wanted: Option<&Wanted>) -> Result<bool, SourceError> {
        self.skip_line_ends()?;
        let line = self.core.line().saturating_add(self.skipped);
        let slots = wanted.map_or(MAX_COLUMNS.saturating_add(1), |w| w.slots);
        let (mut fields, mut filled, mut start) = (0usize, 0usize, block.used);
        loop {
            let kept = filled < slots
                && wanted.map_or(block.used < BLOCK_BYTES, |w| w.keep.get(fields).copied().unwrap_or(false));
            let fits = kept && block.used.saturating_sub(start) <= FIELD_CAP;
            if fits && block.bytes.len().saturating_sub(block.used) < 64 {
                block.bytes.resize(block.bytes.len().saturating_mul(2).max(1 << 12), 0);
            }
            let output = if fits { block.bytes.get_mut(block.used..) } else { Some(self.scrap.as_mut_slice()) };
            let input = match self.input.fill_buf() {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                other => other.map_err(|e| failed(&self.context, e))?,
            };
            let (result, read, written) = self.core.read_field(input, output.unwrap_or_default());
            self.input.consume(read);
            if fits {
                block.used = block.used.saturating_add(written);
            }
            match result {
                ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull => {}
                ReadFieldResult::End => return Ok(false),
                ReadFieldResult::Field { record_end } => {
                    fields = fields.saturating_add(1);
                    if kept {
                        block.used = block.used.min(start.saturating_add(FIELD_CAP).saturating_add(1));
                        block.ends.push(block.used);
                        (filled, start) = (filled.saturating_add(1), block.used);
                    }
                    if record_end {
                        if let Some(wanted) = wanted {
                            (filled..wanted.slots).for_each(|_| block.ends.push(block.used));
                        }
                        block.records.push((line, fields));
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Consumes the line ends before a record, so that its first line is known.
    fn skip_line_ends(&mut self) -> Result<(), SourceError> {
        loop {
            let input = match self.input.fill_buf() {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                other => other.map_err(|e| failed(&self.context, e))?,
            };
            let ends = input.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
            if ends == 0 {
                return Ok(());
            }
            let feeds = input.iter().take(ends).filter(|b| **b == b'\n').count();
            self.skipped = self.skipped.saturating_add(u64::try_from(feeds).unwrap_or(0));
            self.input.consume(ends);
        }
    }

    /// Fills the block with up to `rows` records; false if there are none left.
    fn block(&mut self, block: &mut Block, wanted: &Wanted, rows: usize) -> Result<bool, SourceError> {
        block.clear();
        while block.records.len() < rows.max(1) && block.used < BLOCK_BYTES {
            if !self.record(block, Some(wanted))? {
                break;
            }
        }
        Ok(!block.records.is_empty())
    }

    /// Hands every block of the file to `see`, in order; `see` returns the block to fill next, or `None`
    /// to stop.
    pub(crate) fn blocks(
        mut self,
        schema: &Schema,
        columns: &[usize],
        rows: usize,
        mut see: impl FnMut(Block, &Wanted) -> Option<Block>,
    ) -> Result<(), SourceError> {
        let positions = locate(schema, &self.header, &self.context)?;
        let wanted = Wanted::new(&positions, columns, self.header.len());
        let mut block = Block::default();
        while self.block(&mut block, &wanted, rows)? {
            match see(block, &wanted) {
                Some(next) => block = next,
                None => break,
            }
        }
        Ok(())
    }
}

/// Reads all files and visits their batches.
pub(crate) fn visit(
    paths: &[std::path::PathBuf],
    schema: &Schema,
    decoders: &[Decoder],
    (columns, rows, order): (&[usize], usize, Order),
    visit: &(dyn Fn(Batch) + Sync),
) -> Result<(), SourceError> {
    type Sent = (Block, std::sync::Arc<Vec<Option<usize>>>, usize);
    let spare: Mutex<Vec<Block>> = Mutex::new(Vec::new());
    let spares = || spare.lock().unwrap_or_else(PoisonError::into_inner);
    let read = |queue: SyncSender<Sent>| {
        for path in paths {
            let mut shared = None;
            Reader::open(path)?.blocks(schema, columns, rows, |block, wanted| {
                let slot_of = shared.get_or_insert_with(|| std::sync::Arc::new(wanted.slot_of.clone())).clone();
                queue.send((block, slot_of, wanted.slots)).ok()?;
                Some(spares().pop().unwrap_or_default())
            })?;
        }
        Ok(())
    };
    let work = |blocks: &Mutex<Receiver<Sent>>| {
        loop {
            let next = blocks.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((block, slot_of, slots)) = next else { return };
            let wanted = Wanted { keep: Vec::new(), slots, slot_of: slot_of.to_vec() };
            let batch = wanted.decode(&block, decoders);
            spares().push(block);
            visit(batch);
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
                for _ in 0..rayon::current_num_threads() {
                    pool.spawn(|_| work(&blocks));
                }
            }),
        }
        drop(blocks);
        reader.join().unwrap_or_else(|_| Err(damaged("reader", "the reading thread died")))
    })
}

/// The file's bytes, decompressed if they are gzip, without byte order mark.
fn plain(path: &Path) -> std::io::Result<Result<Box<dyn Read + Send>, SourceError>> {
    let context = path.display().to_string();
    let (head, file) = peek(File::open(path)?)?;
    let named = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"));
    let zipped = head.starts_with(&[0x1f, 0x8b]);
    if named && !zipped {
        return Ok(Err(damaged(&context, "the name ends in .gz but the content is not gzip; compress or rename it")));
    }
    let bytes = Cursor::new(head).chain(file);
    let bytes: Box<dyn Read + Send> =
        if zipped { Box::new(MultiGzDecoder::new(BufReader::new(bytes))) } else { Box::new(bytes) };
    let (mut head, rest) = peek(bytes)?;
    if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        return Ok(Err(damaged(&context, "the text is UTF-16; save it as UTF-8")));
    }
    if head.starts_with(&[0xef, 0xbb, 0xbf]) {
        head.clear();
    }
    Ok(Ok(Box::new(Cursor::new(head).chain(rest))))
}

/// The first three bytes (fewer only at the end of the file), and the rest.
fn peek<R: Read>(mut input: R) -> std::io::Result<(Vec<u8>, R)> {
    let mut head = Vec::with_capacity(3);
    input.by_ref().take(3).read_to_end(&mut head)?;
    Ok((head, input))
}
