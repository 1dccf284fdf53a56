//! Same random tape, two tables: a mechanism may draw different noise only where its outputs already differ.

use reticent_laws::{Recorder, Seeded};
use reticent_noise::{Cauchy, Correlated, GammaNorm, Lattice, LogWeights, Noise};
use serde::Serialize;

use super::Auditable;
use crate::AuditError;

/// What replays showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replay {
    /// Tapes replayed on each pair of tables.
    pub tapes: u64,
    /// How often both tables gave the same output.
    pub same_output: u64,
    /// How often the draws (law, scale, order) differed although the outputs were the same.
    pub hidden_difference: u64,
    /// How often the draws differed at all.
    pub different_draws: u64,
    /// The first draw that differed, if any: on one table and on the other.
    pub example: Option<(String, String)>,
}

/// Writes down what is drawn.
struct Log<N: Noise> {
    inner: N,
    draws: Vec<String>,
}

impl<N: Noise> Noise for Log<N> {
    fn bits(&mut self) -> u64 {
        self.draws.push("64 bits".to_owned());
        self.inner.bits()
    }
    fn lattice(&mut self, d: &Lattice) -> i128 {
        self.draws
            .push(format!("{} of scale {}", d.name(), d.scale().to_f64()));
        self.inner.lattice(d)
    }
    fn exceeds(&mut self, d: &Lattice, bound: i128) -> bool {
        self.draws
            .push(format!("{} of scale {}", d.name(), d.scale().to_f64()));
        self.inner.exceeds(d, bound)
    }
    fn choose(&mut self, w: &LogWeights) -> usize {
        self.draws.push("a choice".to_owned());
        self.inner.choose(w)
    }
    /// Location and scale are both functions of the records (smooth sensitivity); that they may be is proved by their hyperbolic
    /// distance, so only the draw itself is written down.
    fn cauchy(&mut self, d: &Cauchy) -> i128 {
        self.draws.push("a Cauchy draw".to_owned());
        self.inner.cauchy(d)
    }
    /// Their covariance is the records' own, by its own proof; only the draw is written down.
    fn rows(&mut self, d: &Correlated) -> Vec<i128> {
        self.draws.push("Gaussian rows".to_owned());
        self.inner.rows(d)
    }
    fn vector(&mut self, d: &GammaNorm) -> Vec<i128> {
        self.draws.push(format!(
            "a vector of {} numbers, scale {}",
            d.dimension,
            d.scale.to_f64().value()
        ));
        self.inner.vector(d)
    }
}

/// Replays fifty tapes on every pair (the first eight of them).
pub fn replay(mechanism: &dyn Auditable, seed: u64) -> Result<Replay, AuditError> {
    let mut found = Replay {
        tapes: 50,
        same_output: 0,
        hidden_difference: 0,
        different_draws: 0,
        example: None,
    };
    for (i, j) in mechanism.pairs().into_iter().take(8) {
        for tape in 0..found.tapes {
            let mut first = Log {
                inner: Recorder::new(Seeded::stream(seed ^ 0x7a9e, tape)),
                draws: Vec::new(),
            };
            let a = mechanism.run(i, &mut first)?;
            let mut second = Log {
                inner: first.inner.into_tape(),
                draws: Vec::new(),
            };
            let b = mechanism.run(j, &mut second)?;
            let same =
                a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.to_bits() == b.to_bits());
            found.same_output += u64::from(same);
            if first.draws != second.draws {
                found.different_draws += 1;
                found.hidden_difference += u64::from(same);
                if found.example.is_none() {
                    let longest = first.draws.len().max(second.draws.len());
                    let at = |d: &[String], k: usize| {
                        d.get(k).cloned().unwrap_or_else(|| "nothing".to_owned())
                    };
                    found.example = (0..longest)
                        .map(|k| (at(&first.draws, k), at(&second.draws, k)))
                        .find(|(a, b)| a != b);
                }
            }
        }
    }
    Ok(found)
}
