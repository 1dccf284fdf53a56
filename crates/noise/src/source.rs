//! The interface of mechanisms to random bits, and the one source that releases draw from: the operating system.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use dashu::integer::UBig;

use crate::{
    Cauchy, Correlated, GammaNorm, Lattice, LogWeights, NoiseError, cauchy, choose, correlated,
    exact, refine,
};

/// The one interface of mechanisms to randomness. Object safe: used as `&mut dyn Noise`.
pub trait Noise {
    /// 64 uniform bits.
    fn bits(&mut self) -> u64;

    /// A draw of `d`.
    fn lattice(&mut self, d: &Lattice) -> i128 {
        exact::lattice(d, self)
    }

    /// Whether a draw of `d` is at least `bound`: a draw compared and forgotten.
    fn exceeds(&mut self, d: &Lattice, bound: i128) -> bool {
        self.lattice(d) >= bound
    }

    /// The index of a cell, chosen with probability proportional to its weight (0 when no cell has weight).
    fn choose(&mut self, w: &LogWeights) -> usize {
        choose::choose(w, self)
    }

    /// Uniform on `0..n` (0 for `n = 0`).
    fn below(&mut self, n: u64) -> u64 {
        // less than n
        u64::try_from(exact::uniform_below(u128::from(n), self)).unwrap_or(0)
    }

    /// The index of a whole weight, chosen with probability proportional to it (0 when none is positive).
    fn pick(&mut self, weights: &[UBig]) -> usize {
        exact::pick(weights, self)
    }

    /// A draw of `d`, in units of `2^-bits`.
    fn vector(&mut self, d: &GammaNorm) -> Vec<i128> {
        refine::gamma_norm(d, self)
    }

    /// A draw of `d`, row by row.
    fn rows(&mut self, d: &Correlated) -> Vec<i128> {
        correlated::correlated(d, self)
    }

    /// A draw of `d`, rounded to the nearest integer.
    fn cauchy(&mut self, d: &Cauchy) -> i128 {
        cauchy::cauchy(d, self)
    }
}

const BLOCK: usize = 1024;
/// The key is renewed after this many blocks (64 MiB).
const BLOCKS_PER_KEY: u64 = 1 << 16;

/// Random bits for releases: ChaCha20 keyed from the operating system.
///
/// # Claim
/// Words are the ChaCha20 key stream of a key from the operating system; a generator without such a key is never made. The key
/// is renewed after 64 MiB (a public count) and in a forked process: there the process id differs, which is noticed when the
/// 1024-byte buffer is refilled and by [`Draws::check_process`], to be called where a release starts. Neither copied nor printed.
/// # Checked by
/// `a_fork_takes_a_new_key`, `the_key_is_renewed`, `two_generators_from_the_system_differ`
pub struct Draws {
    stream: ChaCha20Rng,
    block: [u8; BLOCK],
    used: usize,
    blocks: u64,
    process: u32,
    process_id: fn() -> u32,
}

impl Draws {
    /// A generator with a fresh key. Fails when the operating system gives no random bytes.
    pub fn from_os() -> Result<Self, NoiseError> {
        Self::with_process_id(std::process::id)
    }

    fn with_process_id(process_id: fn() -> u32) -> Result<Self, NoiseError> {
        let stream = ChaCha20Rng::from_seed(os_key()?);
        Ok(Self {
            stream,
            block: [0; BLOCK],
            used: BLOCK,
            blocks: 0,
            process: process_id(),
            process_id,
        })
    }

    /// Discards what is buffered and takes a new key if this process is a fork of the one that made the generator.
    /// Done at every refill of the buffer; call it also where a release starts.
    /// Fails when a fork finds the operating system without random bytes.
    pub fn check_process(&mut self) -> Result<(), NoiseError> {
        let now = (self.process_id)();
        if now != self.process {
            self.stream = ChaCha20Rng::from_seed(os_key()?);
            self.process = now;
            self.used = BLOCK;
            self.blocks = 0;
        }
        Ok(())
    }

    /// # Panics
    /// When the process was forked in the middle of a release and the operating system has no random bytes: no
    /// answer is better than the parent's noise once more.
    fn refill(&mut self) {
        #[allow(
            clippy::panic,
            reason = "see above; the door has checked before the release started"
        )]
        if let Err(e) = self.check_process() {
            panic!("{e}");
        }
        if self.blocks >= BLOCKS_PER_KEY {
            // the old key is still strong: if the system fails now, it serves on
            if let Ok(key) = os_key() {
                self.stream = ChaCha20Rng::from_seed(key);
            }
            self.blocks = 0;
        }
        self.stream.fill_bytes(&mut self.block);
        self.blocks = self.blocks.saturating_add(1);
        self.used = 0;
    }
}

impl std::fmt::Debug for Draws {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Draws")
    }
}

fn os_key() -> Result<[u8; 32], NoiseError> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|e| NoiseError::NoEntropy {
        cause: e.to_string(),
    })?;
    Ok(key)
}

impl Noise for Draws {
    fn bits(&mut self) -> u64 {
        loop {
            if let Some(word) = self
                .block
                .get(self.used..)
                .and_then(|rest| rest.first_chunk::<8>())
            {
                self.used = self.used.saturating_add(8);
                return u64::from_le_bytes(*word);
            }
            self.refill();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Fixed bits for the tests of what this crate hides; the others use the `Seeded` of `reticent-laws`.
    pub(crate) struct Fixed(ChaCha20Rng);

    impl Fixed {
        pub(crate) fn new(seed: u64) -> Self {
            Self(ChaCha20Rng::seed_from_u64(seed))
        }
    }

    impl Noise for Fixed {
        fn bits(&mut self) -> u64 {
            self.0.next_u64()
        }
    }

    static PROCESS: AtomicU32 = AtomicU32::new(1);

    #[test]
    fn a_fork_takes_a_new_key() {
        let mut parent = Draws::with_process_id(|| PROCESS.load(Ordering::SeqCst)).unwrap();
        parent.bits();
        // what fork does: the same state twice
        let mut child = Draws {
            stream: parent.stream.clone(),
            ..Draws {
                block: parent.block,
                ..Draws::from_os().unwrap()
            }
        };
        (child.used, child.blocks, child.process, child.process_id) = (
            parent.used,
            parent.blocks,
            parent.process,
            parent.process_id,
        );
        let same: Vec<u64> = (0..10).map(|_| parent.bits()).collect();
        assert_eq!(
            same,
            (0..10).map(|_| child.bits()).collect::<Vec<u64>>(),
            "the copy is faithful"
        );
        PROCESS.store(2, Ordering::SeqCst);
        child.check_process().unwrap();
        PROCESS.store(1, Ordering::SeqCst);
        parent.check_process().unwrap();
        let (a, b): (Vec<u64>, Vec<u64>) = (0..300).map(|_| (parent.bits(), child.bits())).unzip();
        assert!(a.iter().zip(&b).all(|(x, y)| x != y));
    }

    #[test]
    fn the_key_is_renewed() {
        let mut draws = Draws::from_os().unwrap();
        let mut old = draws.stream.clone();
        draws.blocks = BLOCKS_PER_KEY;
        draws.used = BLOCK;
        assert_ne!(draws.bits(), old.next_u64());
        assert_eq!(draws.blocks, 1);
    }
}
