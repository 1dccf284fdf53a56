//! Lazy refinement: real random variables as functions of uniform bits that are drawn only when needed.
//!
//! One special function is enough. An exponential variable is `E = -ln U`; a geometric one is
//! `floor(b E)`; a standard normal is `±E`, accepted when a second exponential exceeds `(E - 1)² / 2`.
//! [`Interval`] encloses them in fixed point over big integers; [`until`] doubles the precision
//! until the enclosure decides the integer answer, so the answer is that of the ideal real value.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "big integers do not overflow, divisors are at least 1, precisions are small multiples of the input length"
)]

use std::sync::OnceLock;

use dashu::base::DivEuclid;
use dashu::base::{BitTest, SquareRoot};
use dashu::integer::{IBig, UBig};

use crate::{Noise, Rational, fast};

/// A vector in R^p with density proportional to `exp(-‖v‖ / scale)`: the norm is Gamma(p, scale), the direction uniform.
///
/// Drawn by [`Noise::vector`], each coordinate rounded to the nearest multiple of `2^-bits` of the ideal
/// real vector. A scale of zero means no noise; of a negative scale the absolute value is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GammaNorm {
    /// Number of coordinates.
    pub dimension: usize,
    /// Scale of the norm.
    pub scale: Rational,
    /// The result counts multiples of `2^-bits`.
    pub bits: u32,
}

/// A closed interval `[lo, hi] * 2^-p`; the precision `p` is passed along by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) lo: IBig,
    pub(crate) hi: IBig,
}

impl Interval {
    /// The narrowest enclosure of a rational.
    pub(crate) fn rational(x: &Rational, p: usize) -> Self {
        let lo = (x.numerator() << p).div_euclid(IBig::from(x.denominator().clone()));
        let hi = if x.is_int() {
            lo.clone()
        } else {
            &lo + IBig::ONE
        };
        Self { lo, hi }
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        Self {
            lo: &self.lo + &other.lo,
            hi: &self.hi + &other.hi,
        }
    }

    pub(crate) fn sub(&self, other: &Self) -> Self {
        Self {
            lo: &self.lo - &other.hi,
            hi: &self.hi - &other.lo,
        }
    }

    /// Product: the extremes are among the four products of ends; `>>` rounds down.
    pub(crate) fn mul(&self, other: &Self, p: usize) -> Self {
        let ends = [
            &self.lo * &other.lo,
            &self.lo * &other.hi,
            &self.hi * &other.lo,
            &self.hi * &other.hi,
        ];
        let lo = ends.iter().min().cloned().unwrap_or(IBig::ZERO);
        let hi = ends.iter().max().cloned().unwrap_or(IBig::ZERO);
        Self {
            lo: lo >> p,
            hi: (hi >> p) + IBig::ONE,
        }
    }

    /// Square: sharper than `mul` when the interval holds zero.
    pub(crate) fn square(&self, p: usize) -> Self {
        let (a, b) = (&self.lo * &self.lo, &self.hi * &self.hi);
        let holds_zero = self.lo <= IBig::ZERO && self.hi >= IBig::ZERO;
        let lo = if holds_zero {
            IBig::ZERO
        } else {
            (&a).min(&b) >> p
        };
        Self {
            lo,
            hi: (a.max(b) >> p) + IBig::ONE,
        }
    }

    /// Quotient by a positive interval; `None` when the divisor may be zero.
    pub(crate) fn div(&self, other: &Self, p: usize) -> Option<Self> {
        if other.lo <= IBig::ZERO {
            return None;
        }
        let (lo, hi) = (&self.lo << p, &self.hi << p);
        let lo = if lo < IBig::ZERO {
            lo.div_euclid(&other.lo)
        } else {
            lo.div_euclid(&other.hi)
        };
        let hi = if hi < IBig::ZERO {
            hi.div_euclid(&other.hi)
        } else {
            hi.div_euclid(&other.lo)
        };
        Some(Self {
            lo,
            hi: hi + IBig::ONE,
        })
    }

    /// Square root of the non-negative part.
    pub(crate) fn sqrt(&self, p: usize) -> Self {
        let root = |x: &IBig| UBig::try_from(x.clone()).map_or(UBig::ZERO, |x| (x << p).sqrt());
        Self {
            lo: root(&self.lo).into(),
            hi: IBig::from(root(&self.hi)) + IBig::ONE,
        }
    }

    pub(crate) fn negate(self) -> Self {
        Self {
            lo: -self.hi,
            hi: -self.lo,
        }
    }

    /// `floor` when both ends agree.
    pub(crate) fn floor(&self, p: usize) -> Option<IBig> {
        let lo = &self.lo >> p;
        (lo == &self.hi >> p).then_some(lo)
    }

    /// `floor(x + 1/2)` when both ends agree.
    pub(crate) fn round(&self, p: usize) -> Option<IBig> {
        let half = IBig::ONE << p >> 1;
        Self {
            lo: &self.lo + &half,
            hi: &self.hi + half,
        }
        .floor(p)
    }

    /// Whether `self > other`, when the intervals are apart.
    pub(crate) fn exceeds(&self, other: &Self) -> Option<bool> {
        if self.lo > other.hi {
            Some(true)
        } else if self.hi < other.lo {
            Some(false)
        } else {
            None
        }
    }
}

/// Runs `attempt` at doubling precision until it decides.
pub(crate) fn until<T>(first: usize, mut attempt: impl FnMut(usize) -> Option<T>) -> T {
    let mut p = first.max(64);
    loop {
        if let Some(answer) = attempt(p) {
            return answer;
        }
        p = p.saturating_mul(2);
    }
}

/// The nearest value of the fixed-width type. Reached with probability below e^(-2^26) only (scales are at most 2^100).
pub(crate) fn saturate(x: &IBig) -> i128 {
    i128::try_from(x).unwrap_or(if *x < IBig::ZERO {
        i128::MIN
    } else {
        i128::MAX
    })
}

/// Enclosure of `-ln(v / 2^bits)` at precision `p`, for `v >= 1`.
///
/// # Claim
/// The true value lies in the result, whose width is a few units of `2^-p`.
/// # Arithmetic
/// `v = m 2^(L-1)`, `1 <= m < 2`, so the value is `(bits - L + 1) ln 2 - ln m` and `ln m = 2 atanh((m-1)/(m+1))`;
/// [`atanh`] states the error of the series.
/// # Checked by
/// `logarithms_against_known_digits`, `logarithm_of_products_adds`
pub(crate) fn neg_ln(v: &UBig, bits: usize, p: usize) -> Interval {
    let length = v.bit_len().max(1);
    let top = UBig::ONE << (length - 1);
    // `v >= top` by the choice of `length`; zero is treated as one
    let excess = if *v > top { v - &top } else { UBig::ZERO };
    let mantissa = atanh(&excess, &(v + &top), p);
    let halvings = IBig::from(bits) + IBig::ONE - IBig::from(length);
    let two = ln_two(p);
    let (a, b) = (&two.lo * &halvings, &two.hi * &halvings);
    Interval {
        lo: (&a).min(&b) - (&mantissa.hi << 1),
        hi: a.max(b) - (&mantissa.lo << 1),
    }
}

/// `ln 2`, kept at 1024 bits.
fn ln_two(p: usize) -> Interval {
    const KEPT: usize = 1024;
    static CACHE: OnceLock<Interval> = OnceLock::new();
    let fresh = |p| {
        let a = atanh(&UBig::ONE, &UBig::from(3_u8), p);
        Interval {
            lo: a.lo << 1,
            hi: a.hi << 1,
        }
    };
    if p > KEPT {
        return fresh(p);
    }
    let kept = CACHE.get_or_init(|| fresh(KEPT));
    Interval {
        lo: &kept.lo >> (KEPT - p),
        hi: (&kept.hi >> (KEPT - p)) + IBig::ONE,
    }
}

/// Enclosure of `atanh(n / d)`, `0 <= n / d <= 1/3`, of width at most one unit.
///
/// # Arithmetic
/// `w = p + 32` bits; every step rounds down, so the sum is a lower bound. With `z <= 1/3` a term inherits 1/9 of
/// the error of the one before, plus at most 2 units; the terms shrink ninefold, so there are at most `w/3 + 2`,
/// and what is dropped after the first zero term is below 4 units. The error is below `w + 16` units of `2^-w`.
fn atanh(n: &UBig, d: &UBig, p: usize) -> Interval {
    let w = p + 32;
    let z = (n << w) / d;
    let square = (&z * &z) >> w;
    let (mut term, mut sum, mut k) = (z.clone(), z, 1_u64);
    while !term.is_zero() {
        term = (&term * &square) >> w;
        k += 2;
        sum += &term / k;
    }
    let hi = (&sum + UBig::from(w + 16)) >> 32;
    Interval {
        lo: (sum >> 32).into(),
        hi: IBig::from(hi) + IBig::ONE,
    }
}

/// An exponential variable of mean 1: `E = -ln U`, the bits of `U` drawn as needed.
///
/// # Claim
/// `U` is uniform on (0, 1) (0 has probability 0), hence `E` is exponential; extending appends bits to the same `U`.
/// # Arithmetic
/// With `v` the first `n` bits, `U` lies in `[v, v + 1] 2^-n`, so `E` lies in `[-ln(v 2^-n) - 1/v, -ln(v 2^-n)]`.
#[derive(Debug, Clone)]
pub(crate) struct Exponential {
    /// The first bits, aligned to the left of a word: `U` lies in `[head, head + 2] 2^-64`.
    head: u64,
    value: UBig,
    bits: usize,
}

impl Exponential {
    pub(crate) fn draw<N: Noise + ?Sized>(noise: &mut N) -> Self {
        let head = noise.bits();
        Self {
            head,
            value: UBig::from(head),
            bits: 64,
        }
    }

    /// From the upper 63 bits of a word (the lowest bit serves as a sign elsewhere).
    pub(crate) fn from_upper(word: u64) -> Self {
        Self {
            head: word & !1,
            value: UBig::from(word >> 1),
            bits: 63,
        }
    }

    /// A float within [`fast::ERROR`] of the value, except with probability 2⁻¹⁶.
    pub(crate) fn approximate(&self) -> Option<f64> {
        fast::neg_ln(self.head)
    }

    /// Enclosure at precision `p`, extending the bits to match.
    pub(crate) fn enclose<N: Noise + ?Sized>(&mut self, p: usize, noise: &mut N) -> Interval {
        while self.bits < p || self.value.is_zero() {
            self.value = (&self.value << 64) | UBig::from(noise.bits());
            self.bits += 64;
        }
        let mut e = neg_ln(&self.value, self.bits, p);
        e.lo -= IBig::from((UBig::ONE << p) / &self.value) + IBig::ONE;
        e
    }

    /// Whether the variable exceeds `x`.
    pub(crate) fn exceeds<N: Noise + ?Sized>(&mut self, x: &Rational, noise: &mut N) -> bool {
        until(96, |p| {
            self.enclose(p, noise).exceeds(&Interval::rational(x, p))
        })
    }

    /// `floor(b E)`.
    pub(crate) fn floor_times<N: Noise + ?Sized>(&mut self, b: &Rational, noise: &mut N) -> IBig {
        let first = 64
            + b.numerator()
                .bit_len()
                .saturating_sub(b.denominator().bit_len());
        until(first, |p| {
            self.enclose(p, noise)
                .mul(&Interval::rational(b, p), p)
                .floor(p)
        })
    }

    /// `floor(b E + 1/2)`.
    pub(crate) fn round_times<N: Noise + ?Sized>(&mut self, b: &Rational, noise: &mut N) -> IBig {
        let first = 64
            + b.numerator()
                .bit_len()
                .saturating_sub(b.denominator().bit_len());
        until(first, |p| {
            self.enclose(p, noise)
                .mul(&Interval::rational(b, p), p)
                .round(p)
        })
    }
}

/// The absolute value of a standard normal: an exponential `E`, accepted when a second one exceeds `(E - 1)² / 2`.
///
/// # Claim
/// The density of an accepted `E` is proportional to `e^-x e^(-(x-1)²/2) = e^(-1/2) e^(-x²/2)` on `x >= 0`; one round
/// accepts with probability `sqrt(π/2) e^(-1/2)` = .760.
/// # Checked by
/// `rounded_gaussian_follows_its_masses`
pub(crate) fn half_normal<N: Noise + ?Sized>(noise: &mut N) -> Exponential {
    loop {
        let mut x = Exponential::draw(noise);
        let mut e = Exponential::draw(noise);
        let quick = match (x.approximate(), e.approximate()) {
            (Some(x), Some(e)) => fast::exceeds(e, 0.5 * (x - 1.0) * (x - 1.0), 1.0 + x * x),
            _ => None,
        };
        let accepted = quick.unwrap_or_else(|| {
            until(96, |p| {
                let one = Interval {
                    lo: IBig::ONE << p,
                    hi: IBig::ONE << p,
                };
                let d = x.enclose(p, noise).sub(&one).square(p);
                let half = Interval {
                    lo: d.lo >> 1,
                    hi: (d.hi >> 1) + IBig::ONE,
                };
                e.enclose(p, noise).exceeds(&half)
            })
        });
        if accepted {
            return x;
        }
    }
}

/// Draws [`GammaNorm`].
///
/// # Claim
/// Each coordinate is the nearest multiple of `2^-bits` of `R z_i / ‖z‖`, `R` a sum of `p` exponentials times the
/// scale, `z` independent standard normals; this real vector has density proportional to `exp(-‖v‖ / scale)`.
/// # Arithmetic
/// The bits of all variables are extended together until every rounding is decided; ties have probability 0.
/// # Checked by
/// `vector_of_one_dimension_is_a_rounded_laplace`, `vector_norm_and_direction`
pub(crate) fn gamma_norm<N: Noise + ?Sized>(d: &GammaNorm, noise: &mut N) -> Vec<i128> {
    if d.scale.is_zero() {
        return vec![0; d.dimension];
    }
    let mut lengths: Vec<_> = (0..d.dimension).map(|_| Exponential::draw(noise)).collect();
    let mut normals: Vec<_> = (0..d.dimension)
        .map(|_| (half_normal(noise), noise.bits() & 1 == 1))
        .collect();
    let scale = if d.scale < Rational::ZERO {
        -d.scale.clone()
    } else {
        d.scale.clone()
    };
    let scale = scale * Rational::from(UBig::ONE << usize::try_from(d.bits).unwrap_or(0));
    let first = 64
        + scale
            .numerator()
            .bit_len()
            .saturating_sub(scale.denominator().bit_len());
    until(first, |p| {
        let zero = Interval {
            lo: IBig::ZERO,
            hi: IBig::ZERO,
        };
        let radius = lengths
            .iter_mut()
            .fold(zero.clone(), |sum, e| sum.add(&e.enclose(p, noise)));
        let radius = radius.mul(&Interval::rational(&scale, p), p);
        let z: Vec<_> = normals
            .iter_mut()
            .map(|(x, sign)| (x.enclose(p, noise), *sign))
            .collect();
        let norm = z
            .iter()
            .fold(zero, |sum, (x, _)| sum.add(&x.square(p)))
            .sqrt(p);
        z.into_iter()
            .map(|(x, sign)| {
                let v = radius.mul(&x, p).div(&norm, p)?;
                let v = if sign { v.negate() } else { v };
                v.round(p).map(|k| saturate(&k))
            })
            .collect()
    })
}
