//! The random numbers of the reference sets: a seed sequence, PCG64 (XSL-RR) and a 256-layer ziggurat, as NumPy's `Generator` has them.
//!
//! Sources: O'Neill 2014 (PCG), 2015 (seed sequences); Marsaglia, Tsang 2000 and Doornik 2005 (ziggurat).

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "words of a generator"
)]

const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;
/// Edge of the tail and area of a layer.
const TAIL: f64 = 3.654_152_885_361_009;
const AREA: f64 = 0.004_928_673_233_99;
const MANTISSA: f64 = 4_503_599_627_370_496.0;

/// The generator of one seed.
pub(crate) struct Pcg {
    state: u128,
    increment: u128,
    layers: Layers,
}

struct Layers {
    inside: [u64; 256],
    width: [f64; 256],
    height: [f64; 256],
}

/// One hash of a seed sequence.
struct Hash {
    constant: u32,
    multiplier: u32,
}

impl Hash {
    fn of(&mut self, word: u32) -> u32 {
        let word = word ^ self.constant;
        self.constant = self.constant.wrapping_mul(self.multiplier);
        let word = word.wrapping_mul(self.constant);
        word ^ (word >> 16)
    }
}

/// Four 64-bit words from a seed.
fn seed_words(seed: u64) -> [u64; 4] {
    let mut hash = Hash {
        constant: 0x43b0_d7e5,
        multiplier: 0x931e_8875,
    };
    let mut pool = [seed as u32, (seed >> 32) as u32, 0, 0].map(|w| hash.of(w));
    for from in 0..4 {
        for to in (0..4).filter(|to| *to != from) {
            let mixed = (0xca01_f9dd_u32.wrapping_mul(pool[to]))
                .wrapping_sub(0x4973_f715_u32.wrapping_mul(hash.of(pool[from])));
            pool[to] = mixed ^ (mixed >> 16);
        }
    }
    let mut out = Hash {
        constant: 0x8b51_f9dd,
        multiplier: 0x58f3_8ded,
    };
    let words: Vec<u64> = (0..8).map(|i| u64::from(out.of(pool[i % 4]))).collect();
    [0, 2, 4, 6].map(|i| words[i] | (words[i + 1] << 32))
}

impl Layers {
    fn new() -> Self {
        let density = |x: f64| (-0.5 * x * x).exp();
        let base = AREA / density(TAIL);
        let mut layers = Self {
            inside: [0; 256],
            width: [0.0; 256],
            height: [0.0; 256],
        };
        layers.inside[0] = (TAIL / base * MANTISSA) as u64;
        layers.width[0] = base / MANTISSA;
        layers.height[0] = 1.0;
        layers.width[255] = TAIL / MANTISSA;
        layers.height[255] = density(TAIL);
        let mut edge = TAIL;
        for i in (1..255).rev() {
            let next = (-2.0 * (AREA / edge + density(edge)).ln()).sqrt();
            layers.inside[i + 1] = (next / edge * MANTISSA) as u64;
            layers.width[i] = next / MANTISSA;
            layers.height[i] = density(next);
            edge = next;
        }
        layers
    }
}

impl Pcg {
    /// From a seed.
    pub(crate) fn new(seed: u64) -> Self {
        let [a, b, c, d] = seed_words(seed).map(u128::from);
        let mut pcg = Self {
            state: 0,
            increment: (((c << 64) | d) << 1) | 1,
            layers: Layers::new(),
        };
        pcg.step();
        pcg.state = pcg.state.wrapping_add((a << 64) | b);
        pcg.step();
        pcg
    }

    fn step(&mut self) {
        self.state = (self.state.wrapping_mul(MULTIPLIER)).wrapping_add(self.increment);
    }

    /// 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.step();
        let folded = ((self.state >> 64) as u64) ^ (self.state as u64);
        folded.rotate_right((self.state >> 122) as u32)
    }

    /// Uniform in [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / 9_007_199_254_740_992.0
    }

    /// Standard normal.
    pub(crate) fn normal(&mut self) -> f64 {
        loop {
            let bits = self.bits();
            let layer = (bits & 0xff) as usize;
            let negative = (bits >> 8) & 1 == 1;
            let size = (bits >> 9) & 0x000f_ffff_ffff_ffff;
            let x = size as f64 * self.layers.width[layer] * if negative { -1.0 } else { 1.0 };
            if size < self.layers.inside[layer] {
                return x;
            }
            if layer == 0 {
                loop {
                    let beyond = -(-self.uniform()).ln_1p() / TAIL;
                    let y = -(-self.uniform()).ln_1p();
                    if y + y > beyond * beyond {
                        let negative = (size >> 8) & 1 == 1;
                        return (TAIL + beyond) * if negative { -1.0 } else { 1.0 };
                    }
                }
            }
            let (above, below) = (self.layers.height[layer - 1], self.layers.height[layer]);
            if (above - below) * self.uniform() + below < (-0.5 * x * x).exp() {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of NumPy 2.4.6, `Generator(PCG64(20180417))`.
    #[test]
    fn agrees_with_numpy() {
        let mut pcg = Pcg::new(20_180_417);
        assert_eq!(pcg.bits(), 0x6c28_5572_3fdb_f588);
        assert_eq!(pcg.bits(), 0x0412_6673_3b33_fde2);
        assert_eq!(pcg.bits(), 0x977d_c49f_6230_1bf7);
        let mut pcg = Pcg::new(20_180_417);
        let all: Vec<f64> = (0..100_000).map(|_| pcg.normal()).collect();
        let close = |x: f64, y: f64| (x - y).abs() < 1e-9;
        assert!(close(all[0], -0.604_070_806_926_762_3) && close(all[2], -2.154_126_188_176_235_7));
        assert!(close(all.iter().sum(), -402.729_728_802_968_7));
        assert!(close(
            all.iter().copied().fold(0.0, f64::max),
            4.066_896_901_823_887
        ));
        assert!(close(pcg.uniform(), 0.124_913_195_998_788_7));
    }
}
