//! Second moments on an integer grid.

use std::ops::Range;

use nalgebra::DMatrix;

use crate::evaluate::Evaluated;
use crate::fold::{Shorten, State};
use crate::numeric::{MAX_DIMENSION, gram, nearest, shorten, whole};

/// Rows per block: products of grid values are at most 2^46, so 128 of them add up to at most 2^53.
const BLOCK: usize = 128;

/// Finest grid.
pub(crate) const MAX_BITS: u32 = 24;

/// Adds the records of a batch to the upper triangle of Σ zzᵀ.
///
/// # Claim
/// Every record adds z zᵀ for one z that depends on that record alone, exactly, with z on the grid
/// 2^−bits, |z_0| ≤ g, |z_i| ≤ ½ and, if Q = `squared_norm` is finite, ‖z‖² ≤ Q.
/// # Assumptions
/// None on the values: coordinates are clamped to [−½, ½] here (NaN counts as −½). Fewer than 2^80 records.
/// # Sensitivity
/// Taken up in [`SecondMoments`](crate::primitives::SecondMoments), which sees only these facts about z.
/// # Arithmetic
/// f = min(1, √(Q/(g² + ‖x‖² + ¼))) (¼ only with a response, so that f does not depend on it: y² ≤ ¼)
/// with the margin of [`MARGIN`](crate::numeric::MARGIN); the norm bound then holds for every y. Coordinates
/// are rounded *toward zero*, which shortens; where nothing is shortened (Q infinite) all but the intercept go to
/// the nearest multiple, which keeps |z_i| ≤ ½ since ±½ are multiples (with bits = 0 ties go to
/// 0). Scaled by 2^bits they are integers of at most
/// ½·2^24 = 2^23, products at most 2^46, and a block of 128 rows is summed in doubles without rounding
/// (below 2^53) before it is added to the 128-bit state.
/// # Checked by
/// `moments::tests::{agrees_with_integer_arithmetic, rows_never_exceed_the_norm, odd_values_are_harmless}`
/// # References
/// `decisions.md` §5.5(a), §6.3.
pub(crate) fn add(
    terms: Range<usize>,
    response: Option<usize>,
    how: Shorten,
    bits: u32,
    state: &mut State,
    rows: &Evaluated,
) {
    let columns: Vec<&[f64]> = terms
        .chain(response)
        .map(|t| rows.terms.get(t).map_or(&[][..], Vec::as_slice))
        .collect();
    let covariates = columns
        .len()
        .saturating_sub(usize::from(response.is_some()));
    if covariates > MAX_DIMENSION || columns.iter().any(|c| c.len() < rows.rows) {
        // Refused where it is declared; contributing nothing is the safe answer here.
        return;
    }
    let p = columns.len().saturating_add(1);
    let scale = libm::ldexp(1.0, i32::try_from(bits.min(MAX_BITS)).unwrap_or(0));
    let mut z = vec![0.0; BLOCK.saturating_mul(p)];
    let mut product = DMatrix::zeros(p, p);
    let mut factor = [0.0; BLOCK];
    let never = how.squared_norm.is_infinite() && how.squared_norm > 0.0;
    let mut start = 0;
    while start < rows.rows {
        let n = rows.rows.saturating_sub(start).min(BLOCK);
        let slices = || {
            columns
                .iter()
                .map(move |c| c.get(start..).and_then(|c| c.get(..n)).unwrap_or(&[]))
        };
        factors(
            slices().take(covariates),
            response.is_some(),
            how,
            &mut factor,
        );
        let mut coordinates = z.chunks_exact_mut(n);
        // The intercept coordinate must not exceed g, so it is never rounded up.
        if let Some(first) = coordinates.next() {
            for (z, f) in first.iter_mut().zip(&factor) {
                *z = whole(unit(how.intercept) * f * scale);
            }
        }
        for (z, x) in coordinates.zip(slices()) {
            if never {
                for (z, x) in z.iter_mut().zip(x) {
                    *z = nearest(unit(*x) * scale);
                }
            } else {
                for ((z, x), f) in z.iter_mut().zip(x).zip(&factor) {
                    *z = whole(unit(*x) * f * scale);
                }
            }
        }
        gram(&z, n, &mut product, false);
        flush(&product, state);
        start = start.saturating_add(n);
    }
}

/// Clamps to [−½, ½], NaN to −½.
fn unit(x: f64) -> f64 {
    let x = if x > -0.5 { x } else { -0.5 };
    if x < 0.5 { x } else { 0.5 }
}

fn factors<'a>(
    covariates: impl Iterator<Item = &'a [f64]>,
    response: bool,
    how: Shorten,
    factor: &mut [f64; BLOCK],
) {
    if how.squared_norm.is_nan() || how.squared_norm <= 0.0 {
        *factor = [0.0; BLOCK];
        return;
    }
    if how.squared_norm.is_infinite() {
        *factor = [1.0; BLOCK];
        return;
    }
    let g = unit(how.intercept);
    *factor = [g * g + if response { 0.25 } else { 0.0 }; BLOCK];
    for x in covariates {
        for (s, x) in factor.iter_mut().zip(x) {
            let x = unit(*x);
            *s += x * x;
        }
    }
    for f in factor {
        *f = shorten(how.squared_norm, *f);
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "the entries are integers of at most 2^53"
)]
fn flush(product: &DMatrix<f64>, state: &mut State) {
    let p = product.ncols();
    let entries = state.0.iter_mut();
    // Column j of the symmetric product from row j on is row j of the upper triangle.
    let triangle = product
        .as_slice()
        .chunks_exact(p.max(1))
        .enumerate()
        .flat_map(|(j, column)| column.iter().skip(j));
    for (sum, v) in entries.zip(triangle) {
        *sum = sum.saturating_add(i128::from(*v as i64));
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
    use crate::fold::Fold;
    use reticent_laws::Seeded;
    use reticent_noise::Noise;

    fn table(n: usize, columns: usize, seed: u64) -> Evaluated {
        let mut noise = Seeded::new(seed);
        let terms = (0..columns)
            .map(|c| {
                (0..n)
                    .map(|_| {
                        let u = (noise.bits() >> 11) as f64 / 9_007_199_254_740_992.0;
                        if c == 1 {
                            (u * 4.0).floor() / 4.0 - 0.5
                        } else {
                            u - 0.5
                        }
                    })
                    .collect()
            })
            .collect();
        Evaluated { rows: n, terms }
    }

    fn run(rows: &Evaluated, response: bool, how: Shorten, bits: u32) -> State {
        let d = rows.terms.len() - usize::from(response);
        let fold = Fold::Moments {
            terms: 0..d,
            response: response.then_some(d),
            shorten: how,
            bits,
        };
        let mut state = fold.zero();
        fold.add(&mut state, rows, &[]);
        state
    }

    fn reference(rows: &Evaluated, g: f64, bits: u32) -> Vec<i128> {
        let scale = f64::from(1u32 << bits);
        let mut z = vec![vec![(g * scale) as i128; rows.rows]];
        for c in &rows.terms {
            z.push(
                c.iter()
                    .map(|x| (x * scale).round_ties_even() as i128)
                    .collect(),
            );
        }
        let mut sums = Vec::new();
        for i in 0..z.len() {
            for j in i..z.len() {
                sums.push(z[i].iter().zip(&z[j]).map(|(a, b)| a * b).sum());
            }
        }
        sums
    }

    #[test]
    fn agrees_with_integer_arithmetic() {
        let never = |g| Shorten {
            intercept: g,
            squared_norm: f64::INFINITY,
        };
        for (n, d, bits, g) in [
            (0, 3, 24, 0.5),
            (1, 1, 24, 0.5),
            (127, 2, 3, 0.25),
            (128, 7, 24, 0.5),
            (1000, 9, 17, 0.1),
        ] {
            let rows = table(n, d, 7);
            assert!(
                run(&rows, false, never(g), bits).0 == reference(&rows, g, bits),
                "{n} {d}"
            );
            assert!(
                run(&rows, d > 1, never(g), bits).0 == reference(&rows, g, bits),
                "{n} {d}"
            );
        }
        // The largest values: 128 rows of products 2^46 add up to 2^53 exactly.
        let rows = Evaluated {
            rows: 300,
            terms: vec![vec![0.5; 300], vec![-0.5; 300]],
        };
        let state = run(&rows, true, never(0.5), 24);
        assert!(state.0 == [1, 1, -1, 1, -1, 1].map(|s| s * 300 * (1i128 << 46)));
    }

    #[test]
    fn rows_never_exceed_the_norm() {
        let mut noise = Seeded::new(3);
        for d in [1usize, 2, 5, 20, 300] {
            for case in 0..60 {
                let mut rows = table(1, d + 1, noise.bits());
                if case % 3 == 0 {
                    rows.terms
                        .iter_mut()
                        .for_each(|c| c[0] = if noise.bits() & 1 == 0 { 0.5 } else { -0.5 });
                }
                let q = (noise.bits() >> 40) as f64 / 16_777_216.0 * d as f64 / 4.0 + 1e-6;
                let g = libm::sqrt(q / d as f64).min(0.5);
                for response in [true, false] {
                    let norm = g * g + q + if response { 0.25 } else { 0.0 };
                    let how = Shorten {
                        intercept: g,
                        squared_norm: norm,
                    };
                    let state = run(&rows, response, how, 24);
                    let p = d + 2;
                    let mut at = 0;
                    let mut trace = 0;
                    for i in 0..p {
                        trace += state.0[at];
                        at += p - i;
                    }
                    let trace = Rational::from(trace) / Rational::from(1i128 << 48);
                    assert!(
                        trace <= crate::numeric::exact(norm).unwrap(),
                        "d {d} case {case}"
                    );
                    // and it is not shortened without need
                    let x2: f64 = rows.terms[..d + usize::from(!response)]
                        .iter()
                        .map(|c| c[0] * c[0])
                        .sum();
                    let full = g * g + x2 + if response { 0.25 } else { 0.0 };
                    let z0 = libm::sqrt(state.0[0] as f64) / 16_777_216.0;
                    let want = g * libm::sqrt(norm / full).min(1.0);
                    assert!((z0 - want).abs() < 1e-7, "{z0} {want}");
                }
            }
        }
    }

    use reticent_accounting::Rational;

    #[test]
    fn odd_values_are_harmless() {
        let rows = Evaluated {
            rows: 4,
            terms: vec![
                vec![f64::NAN, f64::INFINITY, -1e308, 0.25],
                vec![0.0, -0.0, 1e-300, 3.0],
            ],
        };
        for q in [f64::INFINITY, 0.3, 1e-30, 0.0, -1.0, f64::NAN] {
            let state = run(
                &rows,
                true,
                Shorten {
                    intercept: 0.5,
                    squared_norm: q,
                },
                24,
            );
            let bound = if q.is_infinite() { 0.75 } else { q.max(0.0) };
            let trace = (state.0[0] + state.0[3] + state.0[5]) as f64 / libm::ldexp(1.0, 48);
            assert!(
                trace <= 4.0 * bound || (q.is_nan() && trace == 0.0),
                "{q}: {trace}"
            );
        }
        // Missing columns contribute nothing.
        let short = Evaluated {
            rows: 2,
            terms: vec![vec![0.5]],
        };
        assert!(
            run(
                &short,
                false,
                Shorten {
                    intercept: 0.5,
                    squared_norm: 1.0
                },
                24
            )
            .0 == [0, 0, 0]
        );
    }
}
