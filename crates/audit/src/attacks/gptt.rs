//! The exact loss of generalised private threshold testing (Chen thesis 2018, Algorithm 5, Theorem 4) on its worst pair.
//!
//! 2t counting queries, threshold 0. On D the first t are 0 and the last t are 1, on D′ the other way round (one record
//! replaced). Output: t times "below", then t times "above". With F the distribution function of Lap(1/ε₂) and f the
//! density of Lap(1/ε₁)
//!
//! ```text
//! P_D  = ∫ f(z) [F(z) (1 − F(z−1))]^t dz      P_D′ = ∫ f(z) [F(z−1) (1 − F(z))]^t dz
//! ```
//!
//! The quotient of the integrands is at least e^{ε₂} for every z, to the power t: hence loss ≥ t·ε₂ for every ε₁, and
//! no finite ε holds for all t. [`closed_form`] and [`quadrature`] compute both integrals, by different routes.

use dashu::integer::IBig;
use dashu::rational::RBig;
use reticent_noise::Rational;

/// Both probabilities of the output, and the loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leak {
    /// Probability of the output on D.
    pub on_first: f64,
    /// Probability of the output on D′.
    pub on_second: f64,
    /// ln of their quotient.
    pub loss: f64,
}

impl Leak {
    fn new(on_first: f64, on_second: f64) -> Self {
        Self {
            on_first,
            on_second,
            loss: libm::log(on_first / on_second),
        }
    }
}

/// The largest t for which [`closed_form`] is offered: intermediate numbers stay far from the ends of f64.
pub const MOST_COPIES: u32 = 60;

/// Both integrals in closed form.
///
/// Outside (0, 1) substitution leaves ∫₀¹ y^{α−1}(1−cy)^t dy, α = t + ε₁/ε₂, a hypergeometric function, summed in a form
/// without cancellation; inside, P_D′ has a constant integrand, and that of P_D is multiplied out into exponentials
/// and summed in 320-bit fixed point, because its terms cancel. `t` is cut to 1..=[`MOST_COPIES`]; both ε must be positive.
pub fn closed_form(threshold: &Rational, query: &Rational, t: u32) -> Leak {
    let t = t.clamp(1, MOST_COPIES);
    let (a, b) = (threshold.to_f64().value(), query.to_f64().value());
    let once = libm::exp(-b);
    let power = |x: f64| libm::pow(x, f64::from(t));
    // z < 0, and e^{−a} times as much for z > 1
    let outside = |front: f64, c: f64| {
        let alpha = a / b + f64::from(t);
        (1.0 + libm::exp(-a)) * 0.5 * a * power(front) / (b * alpha) * hypergeometric(t, alpha, c)
    };
    let first = outside(0.5, 0.5 * once) + middle(threshold, query, t);
    let second = outside(0.5 * once, 0.5) + 0.5 * -libm::expm1(-a) * power(0.25 * once);
    Leak::new(first, second)
}

/// ₂F₁(−t, α; α+1; c) for 0 ≤ c < 1, by Euler's transformation (1−c)^{t+1} ₂F₁(α+1+t, 1; α+1; c): positive terms.
fn hypergeometric(t: u32, alpha: f64, c: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 0..2000 {
        let n = f64::from(n);
        term *= (alpha + 1.0 + f64::from(t) + n) / (alpha + 1.0 + n) * c;
        sum += term;
        if term < 1e-18 * sum {
            break;
        }
    }
    libm::pow(1.0 - c, f64::from(t) + 1.0) * sum
}

const BITS: usize = 320;

fn one() -> IBig {
    IBig::from(1) << BITS
}

fn fixed(x: &RBig) -> IBig {
    (x.numerator() << BITS) / IBig::from(x.denominator().clone())
}

fn times(a: &IBig, b: &IBig) -> IBig {
    (a * b) >> BITS
}

/// e^{−x} in fixed point.
fn exp_minus(x: &RBig) -> IBig {
    if x < &RBig::ZERO {
        return (one() << BITS) / exp_minus(&-x.clone());
    }
    // halve until below 2^-8, sum the series, square back
    let mut halvings = 0;
    let mut y = fixed(x);
    while y > (one() >> 8usize) {
        y >>= 1usize;
        halvings += 1;
    }
    let (mut term, mut sum) = (one(), one());
    for k in 1..60_i64 {
        term = -times(&term, &y) / IBig::from(k);
        sum += &term;
    }
    for _ in 0..halvings {
        sum = times(&sum, &sum);
    }
    sum
}

/// ∫₀¹ ½ε₁e^{−ε₁z} (K − ½e^{−ε₂z} − ½e^{−ε₂}e^{ε₂z})^t dz, K = 1 + ¼e^{−ε₂}: the trinomial multiplied out.
fn middle(a: &RBig, b: &RBig, t: u32) -> f64 {
    let once = exp_minus(b);
    let k = one() + (&once >> 2usize);
    let powers = |base: &IBig| {
        let mut list = vec![one()];
        for i in 0..t as usize {
            let next = times(&list[i], base);
            list.push(next);
        }
        list
    };
    let (k_powers, once_powers) = (powers(&k), powers(&once));
    let half_a = a / RBig::from(2u8);
    let n = i64::from(t);
    // ∫ ½a e^{−sz} dz over [0, 1], s = a + d·b, by d = i − j
    let integrals: Vec<IBig> = (-n..=n)
        .map(|d| {
            let s = a + b * RBig::from(d);
            if s == RBig::ZERO {
                return fixed(&half_a);
            }
            let width = one() - exp_minus(&s);
            times(&width, &fixed(&(&half_a / &s)))
        })
        .collect();
    let mut sum = IBig::from(0);
    let mut outer = IBig::from(1); // t over i
    for i in 0..=t as usize {
        let left = t as usize - i;
        let mut inner = IBig::from(1); // t − i over j
        for j in 0..=left {
            let mut term = times(&k_powers[left - j], &once_powers[j]);
            term = times(&term, &integrals[(t as usize + i) - j]) >> (i + j);
            term = term * &outer * &inner;
            if (i + j) % 2 == 1 {
                term = -term;
            }
            sum += term;
            inner = inner * IBig::from(left - j) / IBig::from(j + 1);
        }
        outer = outer * IBig::from(left) / IBig::from(i + 1);
    }
    RBig::from_parts(sum, dashu::integer::UBig::from(1u8) << BITS)
        .to_f64()
        .value()
}

/// Both integrals by composite Gauss-Legendre quadrature.
pub fn quadrature(threshold: f64, query: f64, t: u32) -> Leak {
    let (a, b) = (threshold, query);
    let below = |z: f64| {
        if z < 0.0 {
            0.5 * libm::exp(b * z)
        } else {
            1.0 - 0.5 * libm::exp(-b * z)
        }
    };
    let above = |z: f64| below(-z);
    let density = |z: f64| 0.5 * a * libm::exp(-a * z.abs());
    let power = |x: f64| libm::pow(x, f64::from(t));
    let both = |z: f64| {
        let f = density(z);
        [
            f * power(below(z) * above(z - 1.0)),
            f * power(below(z - 1.0) * above(z)),
        ]
    };
    // beyond this the integrands, falling like e^{−(a+tb)|z|}, are below 1e-30 of their largest
    let reach = 75.0 / (a + f64::from(t) * b);
    let mut total = [0.0; 2];
    for (from, to, panels) in [(-reach, 0.0, 60), (0.0, 1.0, 8), (1.0, 1.0 + reach, 60)] {
        let width = (to - from) / f64::from(panels);
        for p in 0..panels {
            let centre = from + (f64::from(p) + 0.5) * width;
            for (x, w) in legendre() {
                for sign in [-1.0, 1.0] {
                    let value = both(centre + sign * x * 0.5 * width);
                    for (sum, v) in total.iter_mut().zip(value) {
                        *sum += 0.5 * width * w * v;
                    }
                }
            }
        }
    }
    Leak::new(total[0], total[1])
}

/// Positive nodes and weights of the eight-point rule, by Newton's method on the Legendre polynomial.
fn legendre() -> [(f64, f64); 4] {
    const N: u32 = 8;
    std::array::from_fn(|i| {
        #[allow(clippy::cast_precision_loss, reason = "i < 4")]
        let mut x = libm::cos(std::f64::consts::PI * (i as f64 + 0.75) / (f64::from(N) + 0.5));
        let mut slope = 1.0;
        for _ in 0..50 {
            let (mut p, mut before) = (1.0, 0.0);
            for k in 0..N {
                let k = f64::from(k);
                (p, before) = (((2.0 * k + 1.0) * x * p - k * before) / (k + 1.0), p);
            }
            slope = f64::from(N) * (x * p - before) / (x * x - 1.0);
            let step = p / slope;
            x -= step;
            if step.abs() < 1e-16 {
                break;
            }
        }
        (x, 2.0 / ((1.0 - x * x) * slope * slope))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_integrate_polynomials() {
        // ∫ x^k over [−1, 1] for even k < 16
        for k in (0..16).step_by(2) {
            let sum: f64 = legendre().iter().map(|(x, w)| 2.0 * w * x.powi(k)).sum();
            assert!((sum - 2.0 / (f64::from(k) + 1.0)).abs() < 1e-14, "{k}");
        }
    }

    #[test]
    fn fixed_point_exponentials() {
        for (n, d) in [(1_i64, 3_u64), (-7, 2), (20, 1), (0, 1)] {
            let x = RBig::from_parts(IBig::from(n), dashu::integer::UBig::from(d));
            let got = RBig::from_parts(exp_minus(&x), dashu::integer::UBig::from(1u8) << BITS)
                .to_f64()
                .value();
            let want = libm::exp(-x.to_f64().value());
            assert!((got / want - 1.0).abs() < 1e-15, "{got} {want}");
        }
    }
}
