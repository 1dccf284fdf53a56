//! Which value was it? Reads the answer off the last bits of a floating-point Laplace release.

use reticent_noise::Noise;

use crate::broken::floats::{naive_laplace, reachable};

/// What an output proves about two candidate values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Only the first value can produce it.
    First,
    /// Only the second value can produce it.
    Second,
    /// Both can.
    Open,
}

/// Which of two values can have produced an output.
pub fn verdict(seen: f64, first: f64, second: f64, scale: f64) -> Verdict {
    match (
        reachable(seen, first, scale),
        reachable(seen, second, scale),
    ) {
        (true, false) => Verdict::First,
        (false, true) => Verdict::Second,
        _ => Verdict::Open,
    }
}

/// Of many outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Outputs seen.
    pub outputs: u32,
    /// Outputs that name the true value.
    pub named: u32,
    /// Outputs that name the other one: must be 0.
    pub wrong: u32,
}

/// Draws `outputs` releases of `value` and asks whether each excludes `other`.
pub fn tally(value: f64, other: f64, scale: f64, outputs: u32, noise: &mut dyn Noise) -> Tally {
    let mut t = Tally {
        outputs,
        ..Tally::default()
    };
    for _ in 0..outputs {
        match verdict(naive_laplace(value, scale, noise), value, other, scale) {
            Verdict::First => t.named += 1,
            Verdict::Second => t.wrong += 1,
            Verdict::Open => {}
        }
    }
    t
}
