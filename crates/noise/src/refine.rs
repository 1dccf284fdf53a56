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

use crate::fast::{self, Near};
use crate::{Noise, Rational};

/// A vector in R^p with density proportional to `exp(-‖v‖ / scale)`: the norm is Gamma(p, scale), the direction uniform.
///
/// Drawn by [`Noise::vector`], each coordinate rounded to the nearest multiple of `2^-bits` of the ideal
/// real vector (saturating at 2^127). A scale of zero means no noise; of a negative scale the absolute value is used.
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
/// The true value lies in the result, whose width is a few units of `2^-p` per factor of 2 in `v / 2^bits`.
/// # Arithmetic
/// `v = m 2^(L-1)`, `1 <= m < 2`, and `c = 1 + i/16 <= m < c + 1/16`, so the value is `(bits - L + 1) ln 2 - ln c - ln(m/c)`
/// with `ln x = 2 atanh((x-1)/(x+1))`; [`atanh`] states the error of the series.
/// # Checked by
/// `logarithms_against_known_digits`, `logarithms_of_products_add`
pub(crate) fn neg_ln(v: &UBig, bits: usize, p: usize) -> Interval {
    // zero is treated as one
    let v = if v.is_zero() { UBig::ONE } else { v.clone() };
    let length = v.bit_len();
    let top = UBig::ONE << (length - 1);
    let (m, sixteenths) = (&v << 4, (&v << 4) >> (length - 1));
    let c = &top * &sixteenths;
    let rest = atanh(&(&m - &c), &(m + c), p);
    let ln_c = ln_sixteenths(usize::try_from(sixteenths).map_or(0, |s| s - 16), p);
    let halvings = IBig::from(bits) + IBig::ONE - IBig::from(length);
    let two = ln_sixteenths(16, p);
    let (a, b) = (&two.lo * &halvings, &two.hi * &halvings);
    Interval {
        lo: (&a).min(&b) - ln_c.hi - (rest.hi << 1),
        hi: a.max(b) - ln_c.lo - (rest.lo << 1),
    }
}

/// `ln(1 + i/16)` for `i <= 16`; kept at 512 bits.
fn ln_sixteenths(i: usize, p: usize) -> Interval {
    const KEPT: usize = 512;
    static TABLE: OnceLock<Vec<Interval>> = OnceLock::new();
    let fresh = |i: usize, p| {
        let a = atanh(&UBig::from(i), &UBig::from(32 + i), p);
        Interval {
            lo: a.lo << 1,
            hi: a.hi << 1,
        }
    };
    let table = TABLE.get_or_init(|| (0..=16).map(|i| fresh(i, KEPT)).collect());
    match table.get(i) {
        Some(kept) if p <= KEPT => Interval {
            lo: &kept.lo >> (KEPT - p),
            hi: (&kept.hi >> (KEPT - p)) + IBig::ONE,
        },
        _ => fresh(i, p),
    }
}

/// Enclosure of `atanh(n / d)`, `0 <= n / d <= 1/3`, of width at most two units.
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
/// # Checked by
/// `exponential_extends_the_same_uniform`, `bernoulli_exp_changes_at_its_probability`
#[derive(Debug, Clone)]
pub(crate) struct Exponential {
    /// The first bits, aligned to the left of a word: `U` lies in `[head, head + 2] 2^-64`.
    head: u64,
    value: UBig,
    bits: usize,
}

impl Exponential {
    pub(crate) fn draw<N: Noise + ?Sized>(noise: &mut N) -> Self {
        Self::from_head(noise.bits(), 64)
    }

    /// From the first `known` (at most 64) bits, aligned to the left of a word.
    pub(crate) fn from_head(head: u64, known: u32) -> Self {
        let known = known.min(64);
        let value = UBig::from(head.checked_shr(64 - known).unwrap_or(0));
        Self {
            head,
            value,
            bits: usize::try_from(known).unwrap_or(0),
        }
    }

    /// The value in floating point, with its error.
    pub(crate) fn approximate(&self) -> Option<Near> {
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

/// An exponential `E`, accepted when a second one exceeds `(E - 1)² / 2`.
///
/// # Claim
/// The density of an accepted `E` is proportional to `e^-x e^(-(x-1)²/2) = e^(-1/2) e^(-x²/2)` on `x >= 0`: the absolute value
/// of a standard normal. One round accepts with probability `sqrt(π/2) e^(-1/2)` = .760.
/// # Arithmetic
/// With `x` within `error`, `(x - 1)²/2` is within `error (|x - 1| + 1)`, roundings included, and `|x - 1| <= 1 + x²`.
/// # Checked by
/// `half_normal_acceptance_changes_at_its_probability`, `samplers_follow_their_masses`
pub(crate) fn half_normal<N: Noise + ?Sized>(noise: &mut N) -> Exponential {
    loop {
        let (x, e) = (noise.bits(), noise.bits());
        let quick = fast::neg_ln(x).zip(fast::neg_ln(e)).and_then(|(x, e)| {
            let d = x.value - 1.0;
            fast::exceeds(e, 0.5 * d * d, x.error * (2.0 + x.value * x.value))
        });
        let mut x = Exponential::from_head(x, 64);
        if quick.unwrap_or_else(|| accepts(&mut x, Exponential::from_head(e, 64), noise)) {
            return x;
        }
    }
}

/// Whether `e > (x - 1)² / 2`.
#[cold]
fn accepts<N: Noise + ?Sized>(x: &mut Exponential, mut e: Exponential, noise: &mut N) -> bool {
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
}

/// Draws [`GammaNorm`].
///
/// # Claim
/// Each coordinate is the nearest multiple of `2^-bits` of `R z_i / ‖z‖`, `R` a sum of `p` exponentials times the
/// scale, `z` independent standard normals; this real vector has density proportional to `exp(-‖v‖ / scale)`.
/// # Arithmetic
/// The bits of all variables are extended together until every rounding is decided; ties have probability 0.
/// # Checked by
/// `vector_of_one_dimension_is_a_rounded_laplace`, `vector_norm_and_direction`, `direction_is_uniform_in_the_plane`
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::Fixed;

    /// Whether the interval holds a decimal given by its digits, and is narrower than `width` units.
    fn holds(i: &Interval, digits: &str, decimals: usize, p: usize, width: u32) -> bool {
        let n: IBig = digits.parse().unwrap();
        let scale = IBig::from(10).pow(decimals);
        // the decimal is cut: the true value is up to one last digit above
        &i.lo * &scale <= (&n + IBig::ONE) << p
            && &i.hi * &scale >= n << p
            && &i.hi - &i.lo <= IBig::from(width)
    }

    #[test]
    fn logarithms_against_known_digits() {
        // ln 2, ln 3, ln 10 to 49 decimals
        for (v, digits) in [
            (2_u32, "6931471805599453094172321214581765680755001343602"),
            (3, "10986122886681096913952452369225257046474905578227"),
            (10, "23025850929940456840179914546843642076011014886287"),
        ] {
            for p in [64, 150, 512, 700] {
                let i = neg_ln(&UBig::from(v), 0, p).negate();
                assert!(holds(&i, digits, 49, p, 24), "ln {v} at {p}");
            }
        }
        let zero = neg_ln(&UBig::from(1_u8), 0, 100);
        assert!(zero.lo <= IBig::ZERO && zero.hi >= IBig::ZERO);
    }

    #[test]
    fn logarithms_of_products_add() {
        let mut noise = Fixed::new(1);
        for i in 0..300 {
            let (a, b) = (
                UBig::from(noise.bits() >> (i % 60) | 1),
                UBig::from(noise.bits() | 1),
            );
            let p = 100 + 3 * i;
            let sum = neg_ln(&a, 0, p).add(&neg_ln(&b, 0, p));
            let product = neg_ln(&(a * b), 0, p);
            assert_eq!(sum.exceeds(&product), None);
            assert!(sum.hi - sum.lo < IBig::from(1000));
        }
    }

    #[test]
    fn interval_operations_hold_the_exact_results() {
        // random rationals with signs; the exact result must lie inside, the width stay at a few units of the operands' size
        let mut noise = Fixed::new(2);
        let p = 40;
        let unit = Rational::from(UBig::ONE << p);
        let inside = |i: &Interval, x: &Rational| {
            Rational::from(i.lo.clone()) <= x * &unit && x * &unit <= Rational::from(i.hi.clone())
        };
        for _ in 0..500 {
            let mut draw = || {
                Rational::from(noise.bits().cast_signed() >> 40)
                    / Rational::from((noise.bits() >> 50) + 1)
            };
            let (x, y) = (draw(), draw());
            let (a, b) = (Interval::rational(&x, p), Interval::rational(&y, p));
            assert!(inside(&a, &x) && &a.hi - &a.lo <= IBig::ONE);
            assert!(inside(&a.add(&b), &(&x + &y)) && inside(&a.sub(&b), &(&x - &y)));
            assert!(inside(&a.mul(&b, p), &(&x * &y)) && inside(&a.square(p), &(&x * &x)));
            if y > Rational::ZERO {
                assert!(inside(&a.div(&b, p).unwrap(), &(&x / &y)));
                let root = b.sqrt(p);
                let square = root.square(p);
                assert!(inside(&square, &y));
            } else {
                assert_eq!(a.div(&b, p), None);
            }
            assert!(inside(&a.clone().negate(), &-x.clone()));
            if let (Some(floor), Some(round)) = (a.floor(p), a.round(p)) {
                assert_eq!(
                    (floor, round),
                    (
                        x.floor(),
                        (&x + Rational::ONE / Rational::from(2_u8)).floor()
                    )
                );
            }
        }
        let straddling = Interval {
            lo: IBig::from(-1),
            hi: IBig::ONE,
        };
        assert_eq!(
            (straddling.floor(p), straddling.round(p)),
            (None, Some(IBig::ZERO))
        );
        assert_eq!(
            (straddling.exceeds(&straddling), straddling.square(p).lo),
            (None, IBig::ZERO)
        );
    }

    #[test]
    fn exponential_extends_the_same_uniform() {
        // enclosures at growing precision shrink around one value
        let mut noise = Fixed::new(3);
        for head in [0, 1, 1 << 20, 1 << 48, u64::MAX] {
            let mut e = Exponential::from_head(head, 64);
            let (mut before, mut p_before) = (e.enclose(64, &mut noise), 64);
            for p in [100, 200, 640] {
                let now = e.enclose(p, &mut noise);
                let lifted = Interval {
                    lo: before.lo << (p - p_before),
                    hi: before.hi << (p - p_before),
                };
                assert!(
                    now.exceeds(&lifted).is_none()
                        && now.lo
                            >= lifted.lo.clone() - IBig::from(8) * (IBig::ONE << (p - p_before))
                );
                // U has as many significant bits less as it has leading zeros
                assert!(&now.hi - &now.lo < IBig::ONE << 80);
                (before, p_before) = (now, p);
            }
        }
    }

    #[test]
    fn values_beyond_the_width_saturate() {
        let big = IBig::ONE << 200;
        assert_eq!(
            (saturate(&big), saturate(&-big), saturate(&IBig::from(-7))),
            (i128::MAX, i128::MIN, -7)
        );
    }
}
