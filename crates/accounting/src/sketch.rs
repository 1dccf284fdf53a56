//! Gaussian rows with a private covariance: the exact (ε, δ) curve, bounded with certainty.
//!
//! # Claim
//! r independent rows N(0, S + w²I), S = Σ xxᵀ over records with ‖x‖² ≤ R², are (ε, δ)-differentially private for δ ≥ δ(q, ε), q = R²/w².
//! [`delta_upper`] bounds δ(q, ε) from above under either relation; [`added`] returns a w²/R² for which that bound is at most δ.
//! # Assumptions
//! r = 2k is even. Rows have the law of the real Gaussian, possibly correctly rounded afterwards.
//! # Sensitivity
//! *Add/remove.* With Σ = S + w²I ≥ w²I and u = Σ^−½x the pair is N(0, I) and N(0, I + uuᵀ): one coordinate N(0, 1) or N(0, 1 + t), t = ‖u‖² ≤ q.
//! The one with t < q is the one with q after N(0, s), (1 + q + s)/(1 + s) = 1 + t, is added to both: so the worst pair is N(0, 1 + q)ʳ and
//! N(0, 1)ʳ, reached by a record of norm R beside no others.
//! *Replace-one.* A = Σ + xxᵀ and B = Σ + yyᵀ, Σ ≥ w²I. A − B has at most one positive and one negative eigenvalue, so at most one generalised eigenvalue of (A, B) is
//! above 1 and one below. A ≤ (1 + q)Σ ≤ (1 + q)B and the reverse: they are λ₁ ≤ 1 + q and λ₂ ≥ 1/(1 + q). On a common basis the pair is a product of N(0, λ₁) or N(0, 1) and, rescaled,
//! N(0, 1) or N(0, 1/λ₂); each is the pair with q after added noise, as above, and so is the product: N(0, 1 + q) × N(0, 1) or the same exchanged, reached by orthogonal
//! x, y of norm R beside no others. Its first coordinate alone is the add/remove pair: replace-one costs no less.
//! # Noise
//! Each δ is P(L > ε) − e^ε·P′(L > ε) at the exact ε, written as a sum of positive terms (G ~ Gamma(k), tails e^−x Σ_{j<k} x^j/j!):
//! towards fewer records, with y = (ε + k·ln(1 + q))/q, e^−y Σ_{j<k} (y^j/j!)(1 − (1 + q)^(j−k));
//! towards more, with y = (k·ln(1 + q) − ε)/q > 0, e^(ε−y) Σ_{j≥k} (y^j/j!)((1 + q)^(j−k) − 1), else 0;
//! replaced, with s = ε(1 + q)/q, c = (2 + q)/(1 + q), e^(−ε/q) Σ_{i+m<k} C(k+i−1, i)c^−(k+i) (s^m/m!)((1 + q)^−(i+m) − (1 + q)^−k):
//! the density of the second coordinate times the two tails of the first one, in which e^(−ε/q) is common.
//! # Arithmetic
//! Fixed point with P bits; what is added is rounded up, what is subtracted down. Growing q grows δ (above), so q may be rounded up, and is where it is below ε/2^13 or 2^−120. In the infinite
//! series terms are at most halved once 2(1 + q)y < j, so what is left out is below the last term. Whatever the bits, the result is an upper bound.
//! # Checked by
//! `sketch::tests::{golden_deltas, delta_grows_with_q, calibrations_are_certified_and_tight, invalid_inputs_are_refused}`
//! # References
//! Blocki, Blum, Datta, Sheffet 2012.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "big-number arithmetic cannot overflow; counts are bounded by MOST_ROWS; divisors are checked positive"
)]

use dashu::integer::{IBig, UBig};

use crate::exp::{exp_upper, fixed, ln_lower, ln_upper, round_to};
use crate::gaussian::{check, least, log2, log2_near, power_of_two};
use crate::{AccountingError, Rational, Relation, rational_to_f64};

/// Most rows that are priced.
pub const MOST_ROWS: u32 = 2000;

/// The least w²/R², up to 2⁻³⁸ relative, for which δ is certified to be at most `delta` under the relation, with at most 48 bits.
pub fn added(
    epsilon: &Rational,
    delta: &Rational,
    rows: u32,
    relation: Relation,
) -> Result<Rational, AccountingError> {
    // below, 1 + q differs from 1 by less than logarithms are enclosed to
    let usual = *epsilon >= power_of_two(-100) && *epsilon <= Rational::from(1000);
    check("epsilon", epsilon, "at least 2^-100, at most 1000", usual)?;
    // where ε/q ends, δ is far below this, so the search does too
    let share = *delta > Rational::ZERO && *delta < Rational::ONE && log2(delta) > -3000;
    check("delta", delta, "between 1e-900 and 1", share)?;
    let even = rows.is_multiple_of(2) && (2..=MOST_ROWS).contains(&rows);
    let allowed = "an even number from 2 to 2000";
    check("rows", &Rational::from(rows), allowed, even)?;
    // of order (√(r·ln 1/δ) + ln 1/δ)/ε
    let spread = -log2_near(delta) + 1.0;
    let guess = (libm::sqrt(f64::from(rows) * spread) + spread) / rational_to_f64(epsilon);
    let first = Rational::try_from(guess).map_or(Rational::ONE, |g| power_of_two(log2(&g)));
    let bound = |place: &Rational| delta_upper(&(Rational::ONE / place), epsilon, rows, relation);
    Ok(round_to(&least(first, delta, &bound), 48, true))
}

/// An upper bound on δ(q, ε) of so many rows, at most 1; 1 for an odd number or more than [`MOST_ROWS`].
pub fn delta_upper(q: &Rational, epsilon: &Rational, rows: u32, relation: Relation) -> Rational {
    if *q <= Rational::ZERO {
        return Rational::ZERO;
    }
    let (most, finest) = (power_of_two(20), epsilon / power_of_two(13));
    if *epsilon < Rational::ZERO || *q > most || !rows.is_multiple_of(2) || rows > MOST_ROWS {
        return Rational::ONE;
    }
    let q = round_to(&q.clone().max(finest).max(power_of_two(-120)), 64, true);
    let k = usize::try_from(rows / 2).unwrap_or(usize::MAX);
    let small = usize::try_from((-log2(&q)).max(0)).unwrap_or(0);
    let curve = Curve::new(q, epsilon.clone(), k, 192 + 2 * k + 2 * small);
    let bound = match relation {
        Relation::AddRemove => curve.fewer().max(curve.more()),
        Relation::ReplaceOne => curve.replaced(),
    };
    bound.min(Rational::ONE)
}

/// A pair of fixed-point bounds on a number that is not negative.
type Bounds = (IBig, IBig);

struct Curve {
    q: Rational,
    epsilon: Rational,
    k: usize,
    p: usize,
    /// (1 + q)^−m for m from 0 to k.
    powers: Vec<Bounds>,
}

impl Curve {
    fn new(q: Rational, epsilon: Rational, k: usize, p: usize) -> Self {
        let inverse = bounds(&(Rational::ONE / (Rational::ONE + &q)), p);
        let mut powers = vec![(IBig::ONE << p, IBig::ONE << p)];
        for _ in 0..k {
            let last = powers.last().cloned().unwrap_or_default();
            powers.push(times(&last, &inverse, 1, p));
        }
        Self {
            q,
            epsilon,
            k,
            p,
            powers,
        }
    }

    /// (1 + q)^−m.
    fn power(&self, m: usize) -> Bounds {
        self.powers.get(m).cloned().unwrap_or_default()
    }

    /// Bounds on (k·ln(1 + q) + shift)/q.
    fn place(&self, shift: &Rational) -> Option<(Rational, Rational)> {
        let (base, k) = (Rational::ONE + &self.q, Rational::from(self.k));
        let lo = (ln_lower(&base).ok()? * &k + shift) / &self.q;
        let hi = (ln_upper(&base).ok()? * k + shift) / &self.q;
        Some((lo.max(Rational::ZERO), hi))
    }

    fn result(&self, exponent: &Rational, sum: IBig) -> Rational {
        let factor = exp_upper(exponent).unwrap_or(Rational::ONE);
        factor * Rational::from_parts(sum, UBig::ONE << self.p)
    }

    /// The larger variance against the smaller one.
    fn fewer(&self) -> Rational {
        let Some((lo, hi)) = self.place(&self.epsilon) else {
            return Rational::ONE;
        };
        let y = bounds(&hi, self.p);
        let one = IBig::ONE << self.p;
        let mut term = (one.clone(), one.clone());
        let mut sum = IBig::ZERO;
        for j in 0..self.k {
            let less = &one - self.power(self.k - j).0;
            sum += ((&term.1 * less) >> self.p) + IBig::ONE;
            term = times(&term, &y, j + 1, self.p);
        }
        self.result(&-lo, sum)
    }

    /// The smaller variance against the larger one.
    fn more(&self) -> Rational {
        let Some((lo, hi)) = self.place(&-self.epsilon.clone()) else {
            return Rational::ONE;
        };
        if hi <= Rational::ZERO {
            return Rational::ZERO;
        }
        let y = (fixed(&lo, self.p, false), fixed(&hi, self.p, true));
        let base = Rational::ONE + &self.q;
        let steep = (
            fixed(&(&lo * &base), self.p, false),
            fixed(&(hi * base), self.p, true),
        );
        let one = IBig::ONE << self.p;
        let mut term = (one.clone(), one);
        let mut j = 0;
        while j < self.k {
            j += 1;
            term = times(&term, &y, j, self.p);
        }
        // upper bounds of y^j (1 + q)^(j−k)/j!, lower bounds of y^j/j!
        let mut raised = term.clone();
        let mut sum = IBig::ZERO;
        while raised.1 > IBig::from(2) || (&steep.1 >> self.p) * 2 >= IBig::from(j) {
            j += 1;
            (raised, term) = (
                times(&raised, &steep, j, self.p),
                times(&term, &y, j, self.p),
            );
            sum += &raised.1 - &term.0;
        }
        self.result(&(&self.epsilon - lo), sum + raised.1 + IBig::from(2))
    }

    /// One record in place of another.
    fn replaced(&self) -> Rational {
        let (p, k) = (self.p, self.k);
        let base = Rational::ONE + &self.q;
        let s = bounds(&(&self.epsilon * &base / &self.q), p);
        let inverse = bounds(&(&base / (Rational::ONE + &base)), p);
        let one = IBig::ONE << p;
        // sums over m of s^m/m!, from below, and of that times (1 + q)^−m, from above
        let (mut term, mut sums) = ((one.clone(), one.clone()), Vec::with_capacity(k));
        let (mut plain, mut damped) = (IBig::ZERO, IBig::ZERO);
        for m in 0..k {
            plain += &term.0;
            damped += ((&term.1 * self.power(m).1) >> p) + IBig::ONE;
            sums.push((plain.clone(), damped.clone()));
            term = times(&term, &s, m + 1, p);
        }
        let mut weight = (one.clone(), one);
        for _ in 0..k {
            weight = times(&weight, &inverse, 1, p);
        }
        let least = self.power(k).0;
        let mut sum = IBig::ZERO;
        for (i, (plain, damped)) in sums.iter().rev().enumerate() {
            let gap = ((damped * self.power(i).1) >> p) + IBig::ONE - ((plain * &least) >> p);
            sum += ((&weight.1 * gap) >> p) + IBig::ONE;
            let grown = (weight.0 * IBig::from(k + i), weight.1 * IBig::from(k + i));
            weight = times(&grown, &inverse, i + 1, p);
        }
        self.result(&(-(&self.epsilon / &self.q)), sum)
    }
}

fn bounds(x: &Rational, p: usize) -> Bounds {
    (fixed(x, p, false), fixed(x, p, true))
}

/// a·b/n.
fn times(a: &Bounds, b: &Bounds, n: usize, p: usize) -> Bounds {
    let n = IBig::from(n);
    (
        ((&a.0 * &b.0) >> p) / &n,
        (((&a.1 * &b.1) >> p) + IBig::ONE) / n + IBig::ONE,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_decimal;

    const RELATIONS: [Relation; 2] = [Relation::AddRemove, Relation::ReplaceOne];

    fn q(text: &str) -> Rational {
        parse_decimal(text).unwrap()
    }

    /// From incomplete gamma functions and quadrature in mpmath at 40 digits: q, ε, r, towards fewer, towards more, replaced.
    const GOLDEN: [(&str, &str, u32, &str, &str, &str); 7] = [
        (
            "1",
            "1",
            2,
            "0.091969860292860580399",
            "0",
            "0.12262648039048077387",
        ),
        (
            "0.05",
            "1",
            2,
            "3.6991767756318104617e-11",
            "0",
            "5.0272039571672142146e-11",
        ),
        (
            "0.02",
            "1",
            20,
            "7.0881117271722966074e-18",
            "0",
            "7.4288798816387104997e-17",
        ),
        (
            "0.02",
            "0.5",
            100,
            "0.00005388080232641650531",
            "1.2059047134668194271e-7",
            "0.000525002444809542576",
        ),
        (
            "3",
            "4",
            10,
            "0.63372358222224677122",
            "0.1719679472417943822",
            "0.8185489776641236535",
        ),
        (
            "0.5",
            "0.1",
            6,
            "0.23875075430608186298",
            "0.22368775655215588201",
            "0.33391115033532412124",
        ),
        (
            "0.004",
            "0.2",
            200,
            "6.9527809058141496614e-8",
            "1.2019208509684773918e-12",
            "3.7749084008090063563e-6",
        ),
    ];

    fn close(found: &Rational, golden: &str) {
        let golden = q(golden);
        let slack = &golden * q("1e-15");
        assert!(
            *found >= &golden - &slack && *found <= &golden + &slack,
            "{} is not {golden}",
            rational_to_f64(found)
        );
    }

    #[test]
    fn golden_deltas() {
        for (x, epsilon, rows, fewer, more, replaced) in GOLDEN {
            let k = rows as usize / 2;
            let curve = Curve::new(q(x), q(epsilon), k, 200 + 2 * k);
            close(&curve.fewer(), fewer);
            close(&curve.more(), more);
            close(&curve.replaced(), replaced);
            let [added, replaced] = RELATIONS.map(|r| delta_upper(&q(x), &q(epsilon), rows, r));
            assert!(added >= curve.fewer() && added >= curve.more() && replaced >= added);
        }
    }

    #[test]
    fn delta_grows_with_q() {
        for relation in RELATIONS {
            for (epsilon, rows) in [("0.1", 2), ("1", 40), ("5", 10)] {
                let mut last = Rational::ZERO;
                for i in 1..60u32 {
                    let now = delta_upper(
                        &(Rational::from(i * i) / Rational::from(500u32)),
                        &q(epsilon),
                        rows,
                        relation,
                    );
                    assert!(now > last || now == Rational::ONE, "{epsilon} {rows} {i}");
                    last = now;
                }
            }
        }
    }

    #[test]
    fn calibrations_are_certified_and_tight() {
        for relation in RELATIONS {
            for (epsilon, delta, rows) in [
                ("1", "1e-6", 2),
                ("1", "1e-6", 500),
                ("0.01", "1e-9", 40),
                ("20", "0.1", 10),
                ("0.5", "1e-30", 2000),
            ] {
                let (epsilon, delta) = (q(epsilon), q(delta));
                let found = added(&epsilon, &delta, rows, relation).unwrap();
                let at = |w: &Rational| delta_upper(&(Rational::ONE / w), &epsilon, rows, relation);
                assert!(at(&found) <= delta);
                assert!(at(&(&found * q("0.999999"))) > delta);
            }
        }
        // many rows are as good as Gaussian noise of deviation w²√(2/r) on the directional sum
        let (epsilon, delta) = (q("1"), q("1e-6"));
        let w = added(&epsilon, &delta, 2000, Relation::AddRemove).unwrap();
        let sigma = crate::gaussian::sigma(&epsilon, &delta, &Rational::ONE).unwrap();
        let ratio = rational_to_f64(&w) * (2.0f64 / 2000.0).sqrt() / rational_to_f64(&sigma);
        assert!((0.98..1.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn invalid_inputs_are_refused() {
        let (one, delta) = (Rational::ONE, q("1e-6"));
        for relation in RELATIONS {
            assert!(added(&Rational::ZERO, &delta, 2, relation).is_err());
            assert!(added(&q("1001"), &delta, 2, relation).is_err());
            assert!(added(&one, &Rational::ZERO, 2, relation).is_err());
            assert!(added(&one, &one, 2, relation).is_err());
            for rows in [0, 3, 2002] {
                assert!(added(&one, &delta, rows, relation).is_err());
            }
            assert_eq!(delta_upper(&one, &one, 3, relation), Rational::ONE);
            assert_eq!(delta_upper(&one, &q("-1"), 2, relation), Rational::ONE);
            assert_eq!(delta_upper(&q("1e9"), &one, 2, relation), Rational::ONE);
            assert_eq!(
                delta_upper(&Rational::ZERO, &one, 2, relation),
                Rational::ZERO
            );
            // no budget in sight: still a bound above 0
            assert!(delta_upper(&q("1e-300"), &one, 2, relation) > Rational::ZERO);
            assert!(added(&one, &q("1e-1000"), 2, relation).is_err());
            assert!(added(&q("1e-60"), &delta, 2, relation).is_err());
            let tiny = delta_upper(&q("1e-300"), &q("1e-300"), 2, relation);
            assert!(tiny > Rational::ZERO && tiny < q("1e-18"));
            for (epsilon, rows) in [("1e-9", 2), ("1", 2000), ("1000", 2), ("1000", 2000)] {
                let end = delta_upper(&q("1e-300"), &q(epsilon), rows, relation);
                assert!(end < q("1e-1000"), "{epsilon} {rows}");
            }
        }
    }
}
