//! Noise scales: rationals in fixed width.

use dashu::base::{BitTest, UnsignedAbs};
use dashu::integer::{IBig, UBig};

use crate::Rational;

/// What can go wrong before any noise is drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoiseError {
    /// A noise scale below zero.
    #[error("noise scale {value} is negative; use zero or a positive number")]
    NegativeScale {
        /// The scale as asked for.
        value: String,
    },
    /// A noise scale above [`Scale::MAX_LOG2`].
    #[error(
        "noise scale is about 2^{log2}; the largest supported is 2^100: use a coarser lattice or a larger epsilon"
    )]
    ScaleTooLarge {
        /// Binary logarithm of the scale, rounded down.
        log2: i64,
    },
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes ({cause}); nothing was drawn")]
    NoEntropy {
        /// The system's own message.
        cause: String,
    },
}

/// A noise scale (zero or positive): `num / den * 2^exp` in fixed width, so that drawing never allocates.
///
/// [`Scale::at_least`] is exact when numerator and denominator fit 32 bits each and otherwise rounds up
/// by less than 2⁻³⁰ relative, so noise is never smaller than asked. Zero means no noise at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scale {
    num: u32,
    den: u32,
    exp: i32,
}

impl Scale {
    /// No noise.
    pub const ZERO: Self = Self {
        num: 0,
        den: 1,
        exp: 0,
    };
    /// The smallest positive scale is 2^-200: smaller ones are rounded up to it.
    pub const MIN_LOG2: i32 = -200;
    /// The largest scale is 2^100.
    pub const MAX_LOG2: i32 = 100;

    /// The scale `x`, or the next one above that fits.
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_wrap,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bit lengths of numbers in memory are far below 2^60; after the range check exp lies in -232..=69"
    )]
    pub fn at_least(x: &Rational) -> Result<Self, NoiseError> {
        if *x < Rational::ZERO {
            return Err(NoiseError::NegativeScale {
                value: x.to_string(),
            });
        }
        if x.is_zero() {
            return Ok(Self::ZERO);
        }
        let (n, d) = (x.numerator().unsigned_abs(), x.denominator());
        if let (Ok(num), Ok(den)) = (u32::try_from(&n), u32::try_from(d)) {
            return Ok(Self { num, den, exp: 0 });
        }
        // log2 x lies in (estimate - 1, estimate + 1)
        let estimate = n.bit_len() as i64 - d.bit_len() as i64;
        if estimate > i64::from(Self::MAX_LOG2) + 1 {
            return Err(NoiseError::ScaleTooLarge { log2: estimate - 1 });
        }
        if estimate < i64::from(Self::MIN_LOG2) {
            return Ok(Self {
                num: 1,
                den: 1,
                exp: Self::MIN_LOG2,
            });
        }
        // m = ceil(x * 2^-e) with x * 2^-e in (2^30, 2^32): at most 2^32, relative rounding below 2^-30
        let e = estimate - 31;
        let (n, d) = if e < 0 {
            (n << (-e) as usize, d.clone())
        } else {
            (n, d << e as usize)
        };
        let m = (n + &d - UBig::ONE) / d;
        let scale = match u32::try_from(&m) {
            Ok(num) => Self {
                num,
                den: 1,
                exp: e as i32,
            },
            Err(_) => Self {
                num: 1 << 31,
                den: 1,
                exp: e as i32 + 1,
            },
        };
        if scale.to_rational() > Rational::from(UBig::ONE << Self::MAX_LOG2 as usize) {
            return Err(NoiseError::ScaleTooLarge { log2: estimate - 1 });
        }
        Ok(scale)
    }

    /// The exact value.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "exact rational arithmetic; the denominator is at least 1"
    )]
    pub fn to_rational(self) -> Rational {
        let power = UBig::ONE << usize::try_from(self.exp.unsigned_abs()).unwrap_or(0);
        let (n, d) = (IBig::from(self.num), UBig::from(self.den.max(1)));
        if self.exp >= 0 {
            Rational::from_parts(n * IBig::from(power), d)
        } else {
            Rational::from_parts(n, d * power)
        }
    }

    /// The value to within one rounding of the quotient (relative error at most 2⁻⁵³: powers of two are exact).
    pub fn to_f64(self) -> f64 {
        // |exp| <= 232, so the power of two is a normal number
        let power = f64::from_bits(u64::from(self.exp.wrapping_add(1023).cast_unsigned()) << 52);
        f64::from(self.num) / f64::from(self.den) * power
    }

    /// `(h, j)` with `self = h * 2^j` and `h` about `2^log2`, for a scale above that; `(self, 0)` else.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "|exp| <= 232 and the logarithms are below 100"
    )]
    pub(crate) fn split(self, log2: i32) -> (Self, u32) {
        let size = self.num.max(1).ilog2().cast_signed() - self.den.max(1).ilog2().cast_signed()
            + self.exp;
        let shift = (size - log2).max(0);
        (
            Self {
                exp: self.exp - shift,
                ..self
            },
            shift.cast_unsigned(),
        )
    }

    /// Twice the scale, exactly; only for scales far below the largest.
    #[allow(clippy::arithmetic_side_effects, reason = "exp <= 69")]
    pub(crate) fn doubled(self) -> Self {
        Self {
            exp: self.exp + 1,
            ..self
        }
    }

    /// Whether the scale is zero, which means no noise.
    pub fn is_zero(self) -> bool {
        self.num == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(n: i64, d: u64) -> Rational {
        Rational::from_parts(IBig::from(n), UBig::from(d))
    }

    #[test]
    fn small_fractions_are_exact() {
        for (n, d) in [
            (0, 1),
            (1, 10),
            (1, 1_000_000_000),
            (4_294_967_295, 4_294_967_295),
            (4_294_967_295, 7),
        ] {
            assert_eq!(
                Scale::at_least(&ratio(n, d)).unwrap().to_rational(),
                ratio(n, d)
            );
        }
    }

    #[test]
    fn large_fractions_round_up_by_less_than_two_to_minus_thirty() {
        let mut x = ratio(1_234_567_890_123_457, 999_999_999_989);
        for step in 0..60_i32 {
            let got = Scale::at_least(&x).unwrap().to_rational();
            assert!(got >= x, "step {step}");
            assert!(
                (got - &x) * Rational::from(UBig::ONE << 30) <= x,
                "step {step}"
            );
            x *= if step % 2 == 0 {
                ratio(7, 2)
            } else {
                ratio(999_999_999_989, 2_999_999_999_986)
            };
        }
        let x = Rational::from_parts(IBig::from(10).pow(27), UBig::from(3_u8));
        let got = Scale::at_least(&x).unwrap();
        assert!(got.to_rational() >= x && got.to_f64() / 3.333_333_333e26 - 1.0 < 1e-8);
        let x = Rational::from(UBig::from(u64::MAX));
        assert_eq!(
            Scale::at_least(&x).unwrap().to_rational(),
            Rational::from(UBig::ONE << 64)
        );
    }

    #[test]
    fn refuses_negative_and_beyond_the_largest() {
        assert!(matches!(
            Scale::at_least(&ratio(-1, 3)),
            Err(NoiseError::NegativeScale { .. })
        ));
        let top = Rational::from(UBig::ONE << 100);
        assert_eq!(Scale::at_least(&top).unwrap().to_rational(), top);
        let above = Rational::from((UBig::ONE << 100) + UBig::ONE);
        assert!(matches!(
            Scale::at_least(&above),
            Err(NoiseError::ScaleTooLarge { .. })
        ));
        let tiny = Rational::from_parts(IBig::ONE, UBig::ONE << 4000);
        assert_eq!(
            Scale::at_least(&tiny).unwrap().to_rational(),
            Rational::from_parts(IBig::ONE, UBig::ONE << 200)
        );
        assert!(!Scale::at_least(&tiny).unwrap().is_zero());
    }

    #[test]
    fn float_value_agrees() {
        for (n, d) in [(1, 10), (1_000_000, 1), (3, 7)] {
            let want = f64::from(i32::try_from(n).unwrap()) / f64::from(u32::try_from(d).unwrap());
            assert!((Scale::at_least(&ratio(n, d)).unwrap().to_f64() - want).abs() <= want * 1e-15);
        }
    }
}
