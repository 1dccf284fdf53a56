//! Random bits for simulation on public data: seeded, or none. No door takes them, so that no release can.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use reticent_noise::{Cauchy, Correlated, GammaNorm, Lattice, LogWeights, Natural, Noise};

use crate::Probabilities;

/// Reproducible random bits for simulation on public data only: never for a release.
#[derive(Debug, Clone)]
pub struct Seeded {
    stream: ChaCha20Rng,
}

impl Seeded {
    /// The first stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self::stream(seed, 0)
    }

    /// One of 2^64 streams of a seed, all different.
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut key = [0; 32];
        for (place, byte) in key.iter_mut().zip(
            seed.to_le_bytes()
                .into_iter()
                .chain(*b"reticent simulation stream"),
        ) {
            *place = byte;
        }
        let mut generator = ChaCha20Rng::from_seed(key);
        generator.set_stream(stream);
        Self { stream: generator }
    }
}

impl Noise for Seeded {
    fn bits(&mut self) -> u64 {
        self.stream.next_u64()
    }
}

/// Noise off: every draw is zero, every choice the best cell or the first that is possible. For simulation on public data only.
///
/// Its bits are all zero, which no sampler of [`exact`](reticent_noise::exact) that waits for a nonzero bit can end on: draw through the trait.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Noise for Silent {
    fn bits(&mut self) -> u64 {
        0
    }
    fn lattice(&mut self, _: &Lattice) -> i128 {
        0
    }
    fn choose(&mut self, w: &LogWeights) -> usize {
        w.best()
    }
    fn below(&mut self, _: u64) -> u64 {
        0
    }
    fn pick(&mut self, weights: &[Natural]) -> usize {
        weights.iter().position(|w| !w.is_zero()).unwrap_or(0)
    }
    fn vector(&mut self, d: &GammaNorm) -> Vec<i128> {
        vec![0; d.dimension]
    }
    fn rows(&mut self, d: &Correlated) -> Vec<i128> {
        vec![0; d.rows.saturating_mul(d.dimension)]
    }
    fn cauchy(&mut self, d: &Cauchy) -> i128 {
        d.centre()
    }
}
