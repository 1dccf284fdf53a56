//! Passes over the rows in doubles. Partial sums are integers, so that the result does not depend on threads or on
//! the order of blocks.

use std::ops::Range;

use nalgebra::DMatrix;
use rayon::prelude::*;

/// `total` ← AᵀA (+ `total`, if the flag is set) for the column-major matrix A with that many rows.
pub type Gram = fn(&[f64], usize, &mut DMatrix<f64>, bool);

/// Rows in the unit ball as borrowed columns.
pub struct Design<'a> {
    /// Columns in blocks of rows: `blocks[block][column]`.
    pub blocks: &'a [Vec<Vec<f64>>],
    /// What each row's covariates are multiplied by.
    pub factors: &'a [Vec<f64>],
    /// The covariates among the columns.
    pub covariates: Range<usize>,
    /// The column of the outcome, 0 or 1.
    pub outcome: usize,
    /// Value of the first coordinate, if there is an intercept.
    pub intercept: Option<f64>,
    /// The product AᵀA.
    pub gram: Gram,
}

/// Rows that share one partial sum; fixed, so that rounding does not depend on the number of threads.
const PART: usize = 4096;
/// Rows whose scratch stays in cache.
const CHUNK: usize = 256;
/// Fractional bits of partial sums.
const FAST_BITS: i32 = 80;
const VALUE_BITS: i32 = 60;
/// Tables with fewer parts than this are not sampled.
const SAMPLED_PARTS: usize = 64;

/// Which rows a pass reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of them.
    All,
    /// About an eighth of the parts, chosen by their content so that the order of blocks does not matter;
    /// sums are scaled up.
    Sample,
}

pub(crate) struct Rows<'a> {
    design: Design<'a>,
    count: usize,
    parts: Vec<(usize, Range<usize>)>,
    sample: Vec<(usize, Range<usize>)>,
}

/// Loss, gradient and Hessian of Σ log(1 + e^(−y w·x)).
pub(crate) struct Fast {
    pub(crate) value: f64,
    pub(crate) gradient: Vec<f64>,
    pub(crate) hessian: DMatrix<f64>,
}

struct Sums {
    value: i128,
    gradient: Vec<i128>,
    hessian: Vec<i128>,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(design: Design<'a>) -> Self {
        let parts: Vec<(usize, Range<usize>)> = design
            .factors
            .iter()
            .enumerate()
            .flat_map(|(b, f)| {
                let n = f.len();
                (0..n)
                    .step_by(PART)
                    .map(move |start| (b, start..(start + PART).min(n)))
            })
            .collect();
        let chosen = |(b, rows): &&(usize, Range<usize>)| {
            let mixed =
                design.blocks[*b][design.covariates.clone()]
                    .iter()
                    .fold(1u64, |mix, column| {
                        (mix ^ column[rows.start].to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15)
                    });
            mixed >> 61 == 0
        };
        let sample = if parts.len() < SAMPLED_PARTS {
            Vec::new()
        } else {
            parts.iter().filter(chosen).cloned().collect()
        };
        Self {
            count: design.factors.iter().map(Vec::len).sum(),
            design,
            parts,
            sample,
        }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Number of coordinates.
    fn dimension(&self) -> usize {
        self.design.covariates.len() + usize::from(self.design.intercept.is_some())
    }

    /// The chunks of a part.
    fn chunks(part: &(usize, Range<usize>)) -> impl Iterator<Item = Range<usize>> + use<> {
        let (start, end) = (part.1.start, part.1.end);
        (start..end)
            .step_by(CHUNK)
            .map(move |s| s..(s + CHUNK).min(end))
    }

    /// The columns of a chunk, scaled, into `a` (column-major).
    fn load(&self, block: usize, rows: &Range<usize>, a: &mut [f64]) {
        let design = &self.design;
        let factors = &design.factors[block][rows.clone()];
        let mut columns = a.chunks_exact_mut(rows.len());
        if let Some(g) = design.intercept
            && let Some(column) = columns.next()
        {
            column.fill(g);
        }
        for (column, values) in columns.zip(&design.blocks[block][design.covariates.clone()]) {
            for ((a, x), f) in column.iter_mut().zip(&values[rows.clone()]).zip(factors) {
                *a = x * f;
            }
        }
    }

    fn outcomes(&self, block: usize, rows: &Range<usize>) -> &[f64] {
        &self.design.blocks[block][self.design.outcome][rows.clone()]
    }

    /// Whether [`Extent::Sample`] is worth a search.
    pub(crate) fn has_sample(&self) -> bool {
        self.sample.len() >= SAMPLED_PARTS / 16
    }

    /// One pass; without `curvature` the Hessian is left at zero.
    pub(crate) fn fast(&self, w: &[f64], extent: Extent, curvature: bool) -> Fast {
        let parts = match extent {
            Extent::All => &self.parts,
            Extent::Sample => &self.sample,
        };
        let read: usize = parts.iter().map(|part| part.1.len()).sum();
        let ratio = if extent == Extent::All {
            1.0
        } else {
            self.len() as f64 / read.max(1) as f64
        };
        let p = self.dimension();
        let zero = || Sums {
            value: 0,
            gradient: vec![0; p],
            hessian: vec![0; p * (p + 1) / 2],
        };
        let sums = parts
            .par_iter()
            .fold(
                || (zero(), FastScratch::new(p)),
                |(mut sums, mut scratch), part| {
                    self.fast_part(part, w, curvature, &mut scratch, &mut sums);
                    (sums, scratch)
                },
            )
            .map(|(sums, _)| sums)
            .reduce(zero, Sums::merge);
        let unit = libm::ldexp(1.0, -FAST_BITS) * ratio;
        let mut hessian = DMatrix::zeros(p, p);
        let mut entries = sums.hessian.iter();
        for i in 0..p {
            for j in i..p {
                let h = entries.next().map_or(0.0, |h| *h as f64 * unit);
                hessian[(i, j)] = h;
                hessian[(j, i)] = h;
            }
        }
        Fast {
            value: sums.value as f64 * libm::ldexp(1.0, -VALUE_BITS) * ratio,
            gradient: sums.gradient.iter().map(|g| *g as f64 * unit).collect(),
            hessian,
        }
    }

    fn fast_part(
        &self,
        part: &(usize, Range<usize>),
        w: &[f64],
        curvature: bool,
        s: &mut FastScratch,
        sums: &mut Sums,
    ) {
        let p = w.len();
        let mut value = 0.0;
        s.gradient.fill(0.0);
        let mut first = true;
        for rows in Self::chunks(part) {
            let n = rows.len();
            let a = &mut s.columns[..n * p];
            self.load(part.0, &rows, a);
            let margins = &mut s.margins[..n];
            margins.fill(0.0);
            for (column, w) in a.chunks_exact(n).zip(w) {
                for (m, x) in margins.iter_mut().zip(column) {
                    *m += w * x;
                }
            }
            let roots = &mut s.roots[..n];
            for ((m, root), y) in margins
                .iter_mut()
                .zip(roots.iter_mut())
                .zip(self.outcomes(part.0, &rows))
            {
                let e = libm::exp(-m.abs());
                let small = e / (1.0 + e);
                let positive = *y > 0.5;
                let right = positive == (*m >= 0.0);
                value += libm::log1p(e) + if right { 0.0 } else { m.abs() };
                *root = (small * (1.0 - small)).sqrt();
                let tail = if right { small } else { 1.0 - small };
                *m = if positive { -tail } else { tail };
            }
            for (g, column) in s.gradient.iter_mut().zip(a.chunks_exact(n)) {
                *g += dot(column, margins);
            }
            if !curvature {
                continue;
            }
            for column in a.chunks_exact_mut(n) {
                for (x, root) in column.iter_mut().zip(roots.iter()) {
                    *x *= root;
                }
            }
            (self.design.gram)(a, n, &mut s.product, !first);
            first = false;
        }
        let unit = libm::ldexp(1.0, FAST_BITS);
        sums.value = sums
            .value
            .saturating_add((value * libm::ldexp(1.0, VALUE_BITS)) as i128);
        for (t, g) in sums.gradient.iter_mut().zip(&s.gradient) {
            *t = t.saturating_add((g * unit) as i128);
        }
        if !curvature {
            return;
        }
        let triangle = s
            .product
            .as_slice()
            .chunks_exact(p.max(1))
            .enumerate()
            .flat_map(|(j, column)| &column[j..]);
        for (t, h) in sums.hessian.iter_mut().zip(triangle) {
            *t = t.saturating_add((h * unit) as i128);
        }
    }
}

/// A dot product over four running sums, in a fixed order.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (x, y) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = x
        .remainder()
        .iter()
        .zip(y.remainder())
        .map(|(x, y)| x * y)
        .sum();
    for (x, y) in x.zip(y) {
        for ((lane, x), y) in lanes.iter_mut().zip(x).zip(y) {
            *lane += x * y;
        }
    }
    lanes.iter().sum::<f64>() + rest
}

impl Sums {
    #[allow(
        clippy::needless_pass_by_value,
        reason = "the shape rayon's reduce asks for"
    )]
    fn merge(mut self, other: Self) -> Self {
        self.value = self.value.saturating_add(other.value);
        let add = |a: &mut [i128], b: &[i128]| {
            a.iter_mut()
                .zip(b)
                .for_each(|(a, b)| *a = a.saturating_add(*b));
        };
        add(&mut self.gradient, &other.gradient);
        add(&mut self.hessian, &other.hessian);
        self
    }
}

struct FastScratch {
    columns: Vec<f64>,
    margins: Vec<f64>,
    roots: Vec<f64>,
    gradient: Vec<f64>,
    product: DMatrix<f64>,
}

impl FastScratch {
    fn new(p: usize) -> Self {
        Self {
            columns: vec![0.0; CHUNK * p],
            margins: vec![0.0; CHUNK],
            roots: vec![0.0; CHUNK],
            gradient: vec![0.0; p],
            product: DMatrix::zeros(p, p),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of `d` columns in ±1 and an outcome, in blocks of the given lengths, in reverse order if asked.
    fn blocks(lengths: &[usize], d: usize, reversed: bool) -> Vec<Vec<Vec<f64>>> {
        let mut state = 4_u64;
        let mut uniform = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / 9_007_199_254_740_992.0
        };
        let mut blocks: Vec<_> = lengths
            .iter()
            .map(|n| {
                let mut columns = vec![Vec::new(); d + 1];
                for _ in 0..*n {
                    for column in columns.iter_mut().take(d) {
                        column.push(2.0 * uniform() - 1.0);
                    }
                    columns[d].push(f64::from(u8::from(uniform() < 0.4)));
                }
                columns
            })
            .collect();
        if reversed {
            blocks.reverse();
        }
        blocks
    }

    fn gram(a: &[f64], rows: usize, total: &mut DMatrix<f64>, add: bool) {
        let a = DMatrix::from_column_slice(rows, total.ncols(), &a[..rows * total.ncols()]);
        let product = a.transpose() * a;
        *total = if add { &*total + product } else { product };
    }

    fn pass(blocks: &[Vec<Vec<f64>>], w: &[f64]) -> Fast {
        let d = w.len();
        let factors: Vec<Vec<f64>> = blocks.iter().map(|b| vec![0.4; b[d].len()]).collect();
        let design = Design {
            blocks,
            factors: &factors,
            covariates: 0..d,
            outcome: d,
            intercept: None,
            gram,
        };
        Rows::new(design).fast(w, Extent::All, true)
    }

    #[test]
    fn sums_do_not_depend_on_blocks() {
        let w: Vec<f64> = (0..6).map(|i| f64::from(i) - 2.2).collect();
        let parts = [4096, 4096, 808];
        let one = pass(&blocks(&[9000], 6, false), &w);
        for other in [
            pass(&blocks(&parts, 6, false), &w),
            pass(&blocks(&parts, 6, true), &w),
        ] {
            assert_eq!(one.value.to_bits(), other.value.to_bits());
            assert_eq!(one.gradient, other.gradient);
            assert_eq!(one.hessian, other.hessian);
        }
    }

    /// Against the formulas, row by row.
    #[test]
    #[allow(clippy::needless_range_loop, reason = "indices as in the formulas")]
    fn loss_gradient_and_curvature() {
        let table = blocks(&[300, 41], 3, false);
        let w = [0.7, -3.0, 12.0];
        let (mut value, mut gradient, mut hessian) = (0.0, [0.0; 3], [[0.0; 3]; 3]);
        for block in &table {
            for i in 0..block[3].len() {
                let x = [0, 1, 2].map(|j| 0.4 * block[j][i]);
                let y = 2.0 * block[3][i] - 1.0;
                let z = y * (0..3).map(|j| x[j] * w[j]).sum::<f64>();
                value += (-z).exp().ln_1p();
                let s = 1.0 / (1.0 + z.exp());
                for j in 0..3 {
                    gradient[j] -= y * s * x[j];
                    for k in 0..3 {
                        hessian[j][k] += s * (1.0 - s) * x[j] * x[k];
                    }
                }
            }
        }
        let got = pass(&table, &w);
        assert!((got.value - value).abs() < 1e-9 * value);
        for j in 0..3 {
            assert!((got.gradient[j] - gradient[j]).abs() < 1e-10);
            for k in 0..3 {
                assert!((got.hessian[(j, k)] - hessian[j][k]).abs() < 1e-10);
            }
        }
    }
}
