//! Held rows for the logistic loss, and the exact pass over them that certifies a minimiser.
//!
//! Rows are scaled by the power of two 2^−e with ½ ≤ R·2^−e < 1, so every bound here is for rows in the unit
//! ball. Sums over rows are integers: they do not depend on threads or on the order of blocks.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    reason = "numeric kernel over buffers it sizes itself; integer ranges are bounded in the functions' text"
)]

use std::ops::Range;

use dashu::integer::IBig;
use rayon::prelude::*;
use reticent_solver::Design;

use super::{gram, shorten, sigmoid};
use crate::source::Held;

/// Rows that share one partial sum.
const PART: usize = 4096;
/// Rows whose scratch stays in cache.
const CHUNK: usize = 256;
/// Fractional bits of a row's coordinates in the exact pass.
const ROW_BITS: i32 = 52;
/// Fractional bits of coefficients.
pub(crate) const WEIGHT_BITS: u32 = 78;
/// Coefficients stay within ±2^118 units.
pub(crate) const WEIGHT_LIMIT: i128 = 1 << 118;
/// The low word of a coefficient.
const WORD: u32 = 60;
/// Fractional bits of the logistic function's values in the exact pass.
const TAIL_BITS: u32 = 84;
/// Such a value is kept in two words of half the width.
const HALF_TAIL: u32 = TAIL_BITS / 2;
/// Fractional bits of [`Rows::exact_gradient`].
pub(crate) const GRADIENT_BITS: u32 = 136;
/// Error of [`Rows::exact_gradient`] per row, as a power of two.
pub(crate) const ROW_ERROR_BITS: u32 = 83;
/// Held rows, shortened to the radius and scaled into the unit ball.
pub(crate) struct Rows<'a> {
    held: &'a Held,
    covariates: Range<usize>,
    outcome: usize,
    intercept: Option<f64>,
    /// Shortening and scaling of every row, block by block.
    factors: Vec<Vec<f64>>,
    parts: Vec<(usize, Range<usize>)>,
}

impl<'a> Rows<'a> {
    /// # Claim
    /// A row's coordinates depend on that row alone and its norm is at most √(radius² + intercept²)·2^−exponent.
    /// # Arithmetic
    /// Covariates: the lemma of [`super::MARGIN`] with B = radius²; scaling by 2^−e is exact and
    /// cutting to 52 fractional bits (in the exact pass) shortens. The intercept coordinate is a constant.
    /// # Checked by
    /// `numeric::rows::tests::rows_never_exceed_the_radius`
    pub(crate) fn new(
        held: &'a Held,
        covariates: Range<usize>,
        outcome: usize,
        intercept: Option<f64>,
        radius: f64,
        exponent: i32,
    ) -> Self {
        let scale = libm::ldexp(1.0, -exponent);
        let factors: Vec<Vec<f64>> = held
            .blocks
            .par_iter()
            .map(|block| {
                let mut s = vec![0.0; block.get(outcome).map_or(0, Vec::len)];
                for column in &block[covariates.clone()] {
                    for (s, x) in s.iter_mut().zip(column) {
                        *s += x * x;
                    }
                }
                for s in &mut s {
                    *s = shorten(radius * radius, *s) * scale;
                }
                s
            })
            .collect();
        let parts: Vec<(usize, Range<usize>)> = factors
            .iter()
            .enumerate()
            .flat_map(|(b, f)| {
                let n = f.len();
                (0..n)
                    .step_by(PART)
                    .map(move |start| (b, start..(start + PART).min(n)))
            })
            .collect();
        Self {
            held,
            covariates,
            outcome,
            intercept: intercept.map(|g| g * scale),
            factors,
            parts,
        }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.held.rows
    }

    /// Number of coordinates.
    pub(crate) fn dimension(&self) -> usize {
        self.covariates.len() + usize::from(self.intercept.is_some())
    }

    /// The chunks of a part: block, rows.
    fn chunks(part: &(usize, Range<usize>)) -> impl Iterator<Item = Range<usize>> + use<> {
        let (start, end) = (part.1.start, part.1.end);
        (start..end)
            .step_by(CHUNK)
            .map(move |s| s..(s + CHUNK).min(end))
    }

    /// The columns of a chunk in units of 2^−52, into `a` (column-major).
    fn load(&self, block: usize, rows: &Range<usize>, a: &mut [i64]) {
        let scale = libm::ldexp(1.0, ROW_BITS);
        let n = rows.len();
        let factors = &self.factors[block][rows.clone()];
        let mut columns = a.chunks_exact_mut(n);
        if let Some(g) = self.intercept
            && let Some(column) = columns.next()
        {
            column.fill((g * scale) as i64);
        }
        for (column, values) in columns.zip(&self.held.blocks[block][self.covariates.clone()]) {
            for ((a, x), f) in column.iter_mut().zip(&values[rows.clone()]).zip(factors) {
                *a = (x * f * scale) as i64;
            }
        }
    }

    fn outcomes(&self, block: usize, rows: &Range<usize>) -> &[f64] {
        &self.held.blocks[block][self.outcome][rows.clone()]
    }

    /// The rows as the search sees them.
    pub(crate) fn design(&self) -> Design<'_> {
        Design {
            blocks: &self.held.blocks,
            factors: &self.factors,
            covariates: self.covariates.clone(),
            outcome: self.outcome,
            intercept: self.intercept,
            gram,
        }
    }

    /// The gradient of Σ log(1 + e^(−y w·x)) at w (units of 2^−78, within [`WEIGHT_LIMIT`]), in units of 2^−136.
    ///
    /// # Claim
    /// The result differs from the true gradient by a vector of norm less than n·2^−83.
    /// # Arithmetic
    /// Coordinates of a row are k·2^−52 with |k| ≤ 2^52, those of w are (h·2^60 + l)·2^−78 with |h| ≤ 2^58, 0 ≤ l < 2^60.
    /// Over at most 4097 coordinates Σkh < 2^123 and Σkl < 2^125: the margin is *exact* in two 128-bit words. It is
    /// cut to 96 fractional bits (or taken as ±2^8 beyond that, an error of e^−256): σ errs by at most 2^−98; σ itself by
    /// 1.1·2^−85 ([`sigmoid::smaller_tail`]) and its cut to 84 bits by 2^−84: together below 2^−83. A row's gradient is
    /// that number times a vector of norm at most 1. With the 84 bits in two words of 42, products are below
    /// 2^94 and a part of 4096 rows below 2^106; parts are added as big integers, without error.
    /// # Checked by
    /// `numeric::rows::tests::{exact_gradient_against_rationals, sums_do_not_depend_on_blocks}`
    pub(crate) fn exact_gradient(&self, w: &[i128]) -> Vec<IBig> {
        let p = self.dimension();
        let zero = || vec![IBig::ZERO; p];
        let words: Vec<(i64, i64)> = w
            .iter()
            .map(|w| {
                let w = (*w).clamp(-WEIGHT_LIMIT, WEIGHT_LIMIT);
                ((w >> WORD) as i64, (w & ((1 << WORD) - 1)) as i64)
            })
            .collect();
        self.parts
            .par_iter()
            .fold(
                || (zero(), ExactScratch::new(p)),
                |(mut sums, mut scratch), part| {
                    self.exact_part(part, &words, &mut scratch);
                    for (t, (high, low)) in sums.iter_mut().zip(&scratch.gradient) {
                        *t += (IBig::from(*high) << HALF_TAIL as usize) + IBig::from(*low);
                    }
                    (sums, scratch)
                },
            )
            .map(|(sums, _)| sums)
            .reduce(zero, |mut a, b| {
                a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
                a
            })
    }

    fn exact_part(&self, part: &(usize, Range<usize>), w: &[(i64, i64)], s: &mut ExactScratch) {
        let p = w.len();
        s.gradient.fill((0, 0));
        for rows in Self::chunks(part) {
            let n = rows.len();
            let a = &mut s.columns[..n * p];
            self.load(part.0, &rows, a);
            let margins = &mut s.margins[..n];
            margins.fill((0, 0));
            for (column, (h, l)) in a.chunks_exact(n).zip(w) {
                for ((high, low), k) in margins.iter_mut().zip(column) {
                    *high = high.wrapping_add(wide(*k, *h));
                    *low = low.wrapping_add(wide(*k, *l));
                }
            }
            let tails = &mut s.tails[..n];
            for ((tail, (high, low)), y) in tails
                .iter_mut()
                .zip(margins.iter())
                .zip(self.outcomes(part.0, &rows))
            {
                *tail = loss_slope(*high, *low, *y > 0.5);
            }
            for ((high, low), column) in s.gradient.iter_mut().zip(a.chunks_exact(n)) {
                let (mut h, mut l) = (0i128, 0i128);
                for ((th, tl), k) in tails.iter().zip(column) {
                    h = h.wrapping_add(wide(*k, *th));
                    l = l.wrapping_add(wide(*k, *tl));
                }
                *high = high.wrapping_add(h);
                *low = low.wrapping_add(l);
            }
        }
    }
}

/// −y·σ(−y m) for the margin m = (high·2^60 + low)·2^−130, in two words of 42 bits (units of 2^−84).
fn loss_slope(high: i128, low: i128, positive: bool) -> (i64, i64) {
    // 130 − 96 = 34: m in units of 2^−96 is high·2^26 + low/2^34.
    let m = if high.unsigned_abs() >= 1 << 78 {
        high.signum() << 104
    } else {
        (high << 26) + (low >> 34)
    };
    let small = sigmoid::smaller_tail(m.unsigned_abs());
    let right = positive == (m >= 0);
    let one = 1u128 << sigmoid::Q;
    let tail = (if right { small } else { one - small }) >> (sigmoid::Q - TAIL_BITS);
    let (high, low) = (
        (tail >> HALF_TAIL) as i64,
        (tail & ((1 << HALF_TAIL) - 1)) as i64,
    );
    if positive { (-high, -low) } else { (high, low) }
}

/// The full product of two words.
fn wide(a: i64, b: i64) -> i128 {
    i128::from(a).wrapping_mul(i128::from(b))
}

struct ExactScratch {
    columns: Vec<i64>,
    margins: Vec<(i128, i128)>,
    tails: Vec<(i64, i64)>,
    gradient: Vec<(i128, i128)>,
}

impl ExactScratch {
    fn new(p: usize) -> Self {
        Self {
            columns: vec![0; CHUNK * p],
            margins: vec![(0, 0); CHUNK],
            tails: vec![(0, 0); CHUNK],
            gradient: vec![(0, 0); p],
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::approx_constant,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    clippy::manual_midpoint,
    clippy::needless_pass_by_value,
    reason = "tests compare exact values and count small things"
)]
mod tests {
    use super::*;
    use dashu::integer::UBig;
    use reticent_accounting::Rational;
    use reticent_accounting::exp::{exp_lower, exp_upper};
    use reticent_laws::Seeded;
    use reticent_noise::Noise;

    /// A table of `d` columns in ±1 and an outcome, in blocks of the given lengths.
    fn held(lengths: &[usize], d: usize, seed: u64) -> Held {
        let mut noise = Seeded::new(seed);
        let mut uniform = || (noise.bits() >> 11) as f64 / 9_007_199_254_740_992.0;
        let total: usize = lengths.iter().sum();
        let rows: Vec<Vec<f64>> = (0..total)
            .map(|_| {
                let mut row: Vec<f64> = (0..d).map(|_| 2.0 * uniform() - 1.0).collect();
                row.push(f64::from(u8::from(uniform() < 0.4)));
                row
            })
            .collect();
        let mut rest = rows.as_slice();
        let blocks = lengths
            .iter()
            .map(|n| {
                let (head, tail) = rest.split_at(*n);
                rest = tail;
                (0..=d)
                    .map(|c| head.iter().map(|r| r[c]).collect())
                    .collect()
            })
            .collect();
        Held {
            rows: total,
            blocks,
        }
    }

    #[test]
    fn rows_never_exceed_the_radius() {
        for d in [1usize, 3, 17, 600] {
            let held = held(&[40], d, d as u64);
            for radius in [1e-30_f64, 0.3, 0.9, 1.0, 40.0] {
                let g = 0.25 * radius;
                let norm = (radius * radius + g * g).sqrt();
                let (_, exponent) = libm::frexp(norm);
                let rows = Rows::new(&held, 0..d, d, Some(g), radius, exponent);
                let (part, n) = (0..40, 40);
                let mut a = vec![0i64; n * (d + 1)];
                rows.load(0, &part, &mut a);
                let unit = Rational::from(UBig::ONE << 52);
                let bound = crate::numeric::exact(radius * libm::ldexp(1.0, -exponent)).unwrap();
                for i in 0..n {
                    let square: IBig = (1..=d)
                        .map(|j| IBig::from(a[j * n + i]))
                        .map(|k| &k * &k)
                        .sum();
                    assert!(
                        Rational::from(square) / (&unit * &unit) <= &bound * &bound,
                        "{d} {radius} {i}"
                    );
                    let g_hat = Rational::from(a[i]) / &unit;
                    assert!(g_hat <= &bound / Rational::from(4u8));
                }
            }
        }
    }

    #[test]
    fn exact_gradient_against_rationals() {
        let held = held(&[5, 7], 3, 2);
        let rows = Rows::new(&held, 0..3, 3, Some(0.25), 0.9, 0);
        let one = 1i128 << WEIGHT_BITS;
        for w in [
            [0, 0, 0, 0],
            [one, -2 * one + 12_345, one / 3, 7],
            [40 * one + 99, -(60 * one) + 3, 100 * one, -one / 1_000_003],
        ] {
            let got = rows.exact_gradient(&w);
            let weights: Vec<Rational> = w
                .iter()
                .map(|w| Rational::from(*w) / Rational::from(one))
                .collect();
            let mut want = vec![Rational::ZERO; 4];
            for (b, block) in held.blocks.iter().enumerate() {
                let n = block[0].len();
                let mut a = vec![0i64; n * 4];
                rows.load(b, &(0..n), &mut a);
                for i in 0..n {
                    let x: Vec<Rational> = (0..4)
                        .map(|j| Rational::from(a[j * n + i]) / Rational::from(1i64 << 52))
                        .collect();
                    let m: Rational = x
                        .iter()
                        .zip(&weights)
                        .map(|(x, w)| x * w)
                        .fold(Rational::ZERO, |s, t| s + t);
                    let y = if block[3][i] > 0.5 {
                        Rational::ONE
                    } else {
                        -Rational::ONE
                    };
                    let t = &m * &y;
                    let e = (exp_lower(&t) + exp_upper(&t).unwrap()) / Rational::from(2u8);
                    let slope = -y / (Rational::ONE + e);
                    want.iter_mut().zip(&x).for_each(|(s, x)| *s += &slope * x);
                }
            }
            let allowed = Rational::from(held.rows)
                / Rational::from(UBig::ONE << (ROW_ERROR_BITS as usize - 1));
            for (got, want) in got.iter().zip(&want) {
                let off = Rational::from(got.clone())
                    / Rational::from(UBig::ONE << GRADIENT_BITS as usize)
                    - want;
                assert!(off < allowed && off > -allowed.clone(), "{w:?}");
            }
        }
    }

    #[test]
    fn sums_do_not_depend_on_blocks() {
        let one = held(&[9000], 6, 4);
        let parts = held(&[4096, 4096, 808], 6, 4);
        let mut turned = held(&[4096, 4096, 808], 6, 4);
        turned.blocks.reverse();
        let odd = held(&[1, 300, 8699], 6, 4);
        let rows = |h| Rows::new(h, 0..6, 6, None, 1.0, 0);
        let w: Vec<f64> = (0..6).map(|i| f64::from(i) - 2.2).collect();
        let exact: Vec<i128> = w
            .iter()
            .map(|w| (w * libm::ldexp(1.0, 78)) as i128)
            .collect();
        let want = rows(&one).exact_gradient(&exact);
        for other in [&parts, &turned, &odd] {
            assert_eq!(rows(other).exact_gradient(&exact), want);
        }
    }
}
