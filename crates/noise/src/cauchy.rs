//! Cauchy draws around a location, rounded to the integers; location and scale may be confidential.

use dashu::base::BitTest;
use dashu::integer::{IBig, UBig};

use crate::refine::{Interval, saturate, until};
use crate::{Noise, Rational};

/// `location + scale * C`, `C` standard Cauchy, rounded to the nearest integer (saturating at ±2^127).
///
/// Drawn by [`Noise::cauchy`]. Unlike the lattice laws this one carries its location: the scale of smooth
/// sensitivity depends on the data, so sum and rounding must happen on the ideal real value. Of a negative scale the
/// absolute value is used; a scale of zero rounds the location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cauchy {
    /// Centre.
    pub location: Rational,
    /// Half-width at half of the density's height.
    pub scale: Rational,
}

impl Cauchy {
    /// The nearest integer to the location, halves upward: the draw without noise.
    pub fn centre(&self) -> i128 {
        let half = Rational::from_parts(IBig::ONE, UBig::from(2_u8));
        #[allow(
            clippy::arithmetic_side_effects,
            reason = "rational arithmetic does not overflow"
        )]
        saturate(&(&self.location + half).floor())
    }
}

/// A uniform variable on (0, 1) whose bits are drawn as needed.
struct Uniform {
    value: UBig,
    bits: usize,
}

#[allow(
    clippy::arithmetic_side_effects,
    reason = "big integers do not overflow; precisions are small multiples of the input length"
)]
impl Uniform {
    fn draw<N: Noise + ?Sized>(noise: &mut N) -> Self {
        Self {
            value: UBig::from(noise.bits()),
            bits: 64,
        }
    }

    /// Enclosure at precision `p`, extending the bits to match: appended bits refine the same variable.
    fn enclose<N: Noise + ?Sized>(&mut self, p: usize, noise: &mut N) -> Interval {
        while self.bits < p {
            self.value = (&self.value << 64) | UBig::from(noise.bits());
            self.bits += 64;
        }
        let lo = IBig::from(&self.value >> (self.bits - p));
        Interval {
            hi: &lo + IBig::ONE,
            lo,
        }
    }
}

/// Draws [`Cauchy`].
///
/// # Claim
/// The result is the nearest integer of `location + scale * C` for an ideal standard Cauchy variable `C`.
/// # Arithmetic
/// For a point `(±x, y)` uniform in the upper half of the unit disc the angle is uniform on (0, π), so `±x / y` is its
/// cotangent: standard Cauchy, without any transcendental function. The point comes from the unit square by rejection
/// (one round accepts with probability π/4); acceptance and rounding are decided on enclosures whose bits are
/// extended until they decide. Ties have probability 0, as does `y = 0`.
/// The number of bits used depends on location and scale; only the rounded value is returned.
/// # Checked by
/// `cauchy_follows_its_distribution`, `cauchy_extremes_are_total`, `cauchy_rounds_the_ideal_value`
pub(crate) fn cauchy<N: Noise + ?Sized>(d: &Cauchy, noise: &mut N) -> i128 {
    if d.scale.is_zero() {
        return d.centre();
    }
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "rational arithmetic does not overflow"
    )]
    let scale = if d.scale < Rational::ZERO {
        -d.scale.clone()
    } else {
        d.scale.clone()
    };
    let first = scale
        .numerator()
        .bit_len()
        .saturating_sub(scale.denominator().bit_len())
        .saturating_add(96);
    loop {
        let negative = noise.bits() & 1 == 1;
        let (mut x, mut y) = (Uniform::draw(noise), Uniform::draw(noise));
        let outside = until(64, |p| {
            let norm = x
                .enclose(p, noise)
                .square(p)
                .add(&y.enclose(p, noise).square(p));
            norm.exceeds(&Interval::rational(&Rational::ONE, p))
        });
        if outside {
            continue;
        }
        return until(first, |p| {
            let ratio = x.enclose(p, noise).div(&y.enclose(p, noise), p)?;
            let shift = ratio.mul(&Interval::rational(&scale, p), p);
            let shift = if negative { shift.negate() } else { shift };
            let value = shift.add(&Interval::rational(&d.location, p));
            value.round(p).map(|k| saturate(&k))
        });
    }
}
