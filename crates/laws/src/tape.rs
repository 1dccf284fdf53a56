//! Recording random words and replaying them.

use crate::Seeded;
use reticent_noise::Noise;

/// Replays recorded words, so that the same code runs with the same noise on another table.
#[derive(Debug, Clone)]
pub struct Tape {
    words: Vec<u64>,
    next: usize,
    spare: Seeded,
}

impl Tape {
    /// A tape of these words.
    pub fn new(words: Vec<u64>) -> Self {
        Self {
            words,
            next: 0,
            spare: Seeded::new(0),
        }
    }

    /// Whether more words were asked for than recorded; from then on a fixed seeded stream answers.
    pub fn exhausted(&self) -> bool {
        self.next > self.words.len()
    }

    /// Words read so far.
    pub fn position(&self) -> usize {
        self.next
    }

    /// Back to the start.
    pub fn rewind(&mut self) {
        self.next = 0;
        self.spare = Seeded::new(0);
    }
}

impl Noise for Tape {
    fn bits(&mut self) -> u64 {
        let word = self.words.get(self.next).copied();
        self.next = self.next.saturating_add(1);
        word.unwrap_or_else(|| self.spare.bits())
    }
}

/// Records the words another source gives.
#[derive(Debug)]
pub struct Recorder<N: Noise> {
    source: N,
    words: Vec<u64>,
}

impl<N: Noise> Recorder<N> {
    /// Starts recording `source`.
    pub fn new(source: N) -> Self {
        Self {
            source,
            words: Vec::new(),
        }
    }

    /// The words so far.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The recording as a tape.
    pub fn into_tape(self) -> Tape {
        Tape::new(self.words)
    }
}

impl<N: Noise> Noise for Recorder<N> {
    fn bits(&mut self) -> u64 {
        let word = self.source.bits();
        self.words.push(word);
        word
    }
}
