//! Blank lines between the rows of a CSV file.

use std::cell::Cell;
use std::io::Read;
use std::rc::Rc;

/// The first blank line that a row follows, once it was read.
pub(super) type Blank = Rc<Cell<Option<u32>>>;

/// Passes bytes of a CSV file on and looks for blank lines behind the header, which readers of CSV skip.
pub(super) struct BlankLines<R> {
    inner: R,
    found: Blank,
    at: Within,
    line: u32,
    records: u64,
    candidate: Option<u32>,
}

/// Where in a CSV file the next byte is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Line,
    /// Behind a carriage return that ended a line.
    LineAfterReturn,
    Field,
    Unquoted,
    Quoted,
    /// Behind a quote inside of quotes: the end of them, or the first half of one.
    Quote,
}

impl<R: Read> BlankLines<R> {
    pub(super) fn watch(inner: R) -> (Self, Blank) {
        let found = Blank::default();
        let lines = Self {
            inner,
            found: Rc::clone(&found),
            at: Within::Line,
            line: 1,
            records: 0,
            candidate: None,
        };
        (lines, found)
    }

    fn see(&mut self, byte: u8) {
        use Within::{Field, Line, LineAfterReturn, Quote, Quoted, Unquoted};
        let start = matches!(self.at, Line | LineAfterReturn);
        let half = self.at == LineAfterReturn && byte == b'\n';
        self.at = match (self.at, byte) {
            (Quoted, b'"') => Quote,
            (Quoted, _) | (Quote | Line | LineAfterReturn | Field, b'"') => Quoted,
            (_, b'\r') => LineAfterReturn,
            (_, b'\n') => Line,
            (_, b',') => Field,
            _ => Unquoted,
        };
        if start && matches!(byte, b'\r' | b'\n') {
            if !half && self.records > 0 && self.candidate.is_none() {
                self.candidate = Some(self.line);
            }
        } else if start {
            self.records += 1;
            if self.found.get().is_none() {
                self.found.set(self.candidate);
            }
        }
        self.line = self.line.saturating_add(u32::from(byte == b'\n'));
    }
}

impl<R: Read> Read for BlankLines<R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(to)?;
        to.iter().take(read).for_each(|b| self.see(*b));
        Ok(read)
    }
}
