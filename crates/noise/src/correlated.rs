//! Gaussian rows with a covariance that is given exactly.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "big integers do not overflow, divisors are bounded away from 0, precisions double"
)]

use dashu::base::BitTest;
use dashu::integer::{IBig, UBig};

use crate::refine::{Exponential, Interval, half_normal, saturate};
use crate::{Noise, Rational};

/// Independent rows of law N(0, S + a·I), rounded to the nearest integers (saturating at 2^127).
///
/// Drawn by [`Noise::rows`], row by row. S must be positive semidefinite, as a sum of squares is; an a of 0 counts as 1. The one draw whose
/// *law* is private: what protects S is a, by a proof at the caller, not the absence of private numbers here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correlated {
    /// Number of rows.
    pub rows: usize,
    /// Columns of a row.
    pub dimension: usize,
    /// Upper triangle of S, row by row, diagonal included; what is missing is 0.
    pub moments: Vec<i128>,
    /// What is added to the diagonal.
    pub added: UBig,
}

impl Correlated {
    /// Entry (i, j) of S + a·I.
    fn entry(&self, i: usize, j: usize) -> IBig {
        let (low, high) = (i.min(j), i.max(j));
        // row `low` of the triangle begins at its diagonal
        let at = low * (2 * self.dimension + 1 - low) / 2 + high - low;
        let entry = IBig::from(self.moments.get(at).copied().unwrap_or(0));
        if i == j {
            entry + IBig::from(self.added.clone().max(UBig::ONE))
        } else {
            entry
        }
    }

    /// Rows of a lower triangle L with LLᵀ = S + a·I, enclosed with p fractional bits; none if too few bits leave a pivot in doubt.
    fn factor(&self, p: usize) -> Option<Vec<Vec<Interval>>> {
        let mut factor: Vec<Vec<Interval>> = Vec::with_capacity(self.dimension);
        for i in 0..self.dimension {
            let mut row: Vec<Interval> = Vec::with_capacity(i + 1);
            for j in 0..=i {
                let whole = Interval::rational(&Rational::from(self.entry(i, j)), p);
                if let Some(upper) = factor.get(j) {
                    let rest = whole.sub(&product(&row, upper, p));
                    row.push(rest.div(upper.last()?, p)?);
                } else {
                    let squares = row.iter().map(|x| x.square(p));
                    let rest = squares.fold(whole, |rest, square| rest.sub(&square));
                    if rest.lo <= IBig::ZERO {
                        return None;
                    }
                    row.push(rest.sqrt(p));
                }
            }
            factor.push(row);
        }
        Some(factor)
    }
}

/// Σ a_i·b_i over the length of the shorter.
fn product(a: &[Interval], b: &[Interval], p: usize) -> Interval {
    let zero = Interval::rational(&Rational::ZERO, p);
    (a.iter().zip(b)).fold(zero, |sum, (a, b)| sum.add(&a.mul(b, p)))
}

/// Draws [`Correlated`].
///
/// # Claim
/// Row i is the nearest integer vector to L·g_i, L the Cholesky factor of S + a·I and g_i independent standard normals: the rounding of a
/// row of law N(0, S + a·I).
/// # Arithmetic
/// L and g are intervals over big integers that hold the real numbers, and so is L·g. Where the ends of a coordinate round to different integers, the
/// bits of the *same* normals are extended, L is computed anew with twice the bits, and the row is tried again. Pivots are at least a ≥ 1, so enough bits always
/// give a factor; ties have probability 0. How many bits that takes can depend on S.
/// # Checked by
/// `correlated::tests::{factors_hold_the_matrix, rank_deficient_factors_exist, more_bits_change_nothing}`,
/// `correlated::{rows_have_their_law, rows_of_a_rank_deficient_sum, faults_are_caught, recordings_repeat_rows}`
pub(crate) fn correlated<N: Noise + ?Sized>(d: &Correlated, noise: &mut N) -> Vec<i128> {
    let longest = (0..d.dimension).map(|i| d.entry(i, i).bit_len()).max();
    let mut p = 64 + longest.unwrap_or(0);
    let mut factor = d.factor(p);
    let mut drawn = Vec::with_capacity(d.rows.saturating_mul(d.dimension));
    for _ in 0..d.rows {
        let mut normals: Vec<(Exponential, bool)> = (0..d.dimension)
            .map(|_| (half_normal(noise), noise.bits() & 1 == 1))
            .collect();
        loop {
            if let Some(row) = factor
                .as_ref()
                .and_then(|f| round(f, &mut normals, p, noise))
            {
                drawn.extend(row);
                break;
            }
            p *= 2;
            factor = d.factor(p);
        }
    }
    drawn
}

/// The rounded row, if p bits decide it.
fn round<N: Noise + ?Sized>(
    factor: &[Vec<Interval>],
    normals: &mut [(Exponential, bool)],
    p: usize,
    noise: &mut N,
) -> Option<Vec<i128>> {
    let normals: Vec<Interval> = normals
        .iter_mut()
        .map(|(size, sign)| {
            let size = size.enclose(p, noise);
            if *sign { size.negate() } else { size }
        })
        .collect();
    let whole = |row: &Vec<Interval>| product(row, &normals, p).round(p);
    let row = factor.iter().map(|row| whole(row).map(|k| saturate(&k)));
    row.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moments of records.
    fn of(records: &[&[i128]], p: usize, added: u64) -> Correlated {
        let pairs = (0..p).flat_map(|i| (i..p).map(move |j| (i, j)));
        Correlated {
            rows: 1,
            dimension: p,
            moments: pairs
                .map(|(i, j)| records.iter().map(|x| x[i] * x[j]).sum())
                .collect(),
            added: UBig::from(added),
        }
    }

    fn check(d: &Correlated, p: usize) {
        let factor = d.factor(p).unwrap();
        for i in 0..d.dimension {
            for j in 0..=i {
                let back = product(&factor[i], &factor[j], p);
                let entry = d.entry(i, j) << p;
                assert!(back.lo <= entry && entry <= back.hi);
                assert!(&back.hi - &back.lo < IBig::ONE << (p - 20), "{i} {j}");
            }
        }
    }

    #[test]
    fn factors_hold_the_matrix() {
        let records: [&[i128]; 4] = [&[5, -3, 2], &[1, 100, -7], &[40, 0, 1], &[-9, 9, 9]];
        let d = of(&records, 3, 7);
        assert_eq!(d.entry(2, 0), IBig::from(10 - 7 + 40 - 81));
        assert_eq!(d.entry(1, 1), IBig::from(9 + 10_000 + 81 + 7));
        for p in [80, 200] {
            check(&d, p);
        }
        let d = of(&[], 2, 0);
        assert_eq!((d.entry(0, 0), d.entry(0, 1)), (IBig::ONE, IBig::ZERO));
    }

    /// A million equal records: one large eigenvalue, three equal to what is added.
    #[test]
    fn rank_deficient_factors_exist() {
        let mut d = of(&[&[1 << 23, 1 << 23, -(1 << 23), 1 << 22]], 4, 3);
        for entry in &mut d.moments {
            *entry *= 1_000_000;
        }
        assert!(d.factor(8).is_none(), "too few bits are noticed");
        check(&d, 256);
    }

    /// Too few bits decide nothing; from the first number of bits that decides a row on, more of them give the same row.
    #[test]
    fn more_bits_change_nothing() {
        let d = of(&[&[1 << 40, 3 << 38, -7], &[1 << 39, 1 << 41, 5]], 3, 11);
        let mut noise = crate::source::tests::Fixed::new(79);
        let mut undecided = 0;
        for _ in 0..200 {
            let mut normals: Vec<_> = (0..3)
                .map(|_| (half_normal(&mut noise), noise.bits() & 1 == 1))
                .collect();
            let mut rows = [48, 96, 192, 384, 768].map(|p| {
                let factor = d.factor(p)?;
                round(&factor, &mut normals, p, &mut noise)
            });
            undecided += rows.iter().filter(|r| r.is_none()).count();
            rows.sort();
            let decided: Vec<_> = rows.iter().flatten().collect();
            assert!(decided.len() >= 2 && decided.windows(2).all(|w| w[0] == w[1]));
        }
        assert!(undecided > 0);
    }
}
