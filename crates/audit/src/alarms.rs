//! The arithmetic of statistical audits: what two hit counts prove about ε, at a stated probability of false alarm.
//!
//! An audit runs a mechanism on two neighbouring tables and counts how often an event happens. If the mechanism is
//! (ε, δ)-private, P ≤ e^ε·P′ + δ. Exact (Clopper-Pearson) limits for P and P′, each missed with probability at most
//! half the stated false alarm, give a lower bound on ε that a private mechanism exceeds at most that often.

/// Hits among runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hits {
    /// How often the event happened.
    pub hits: u64,
    /// How often the mechanism ran.
    pub runs: u64,
}

/// A lower bound on ε: below the true ε except with probability at most `false_alarm`. `more` is the table on which
/// the event was expected more often (chosen before the runs, or by other runs).
pub fn epsilon_at_least(more: Hits, less: Hits, delta: f64, false_alarm: f64) -> f64 {
    let p = lower_limit(more, false_alarm / 2.0) - delta;
    let q = upper_limit(less, false_alarm / 2.0);
    if p <= 0.0 || q <= 0.0 {
        return 0.0;
    }
    libm::log(p / q).max(0.0)
}

/// Clopper-Pearson lower limit: the true probability is below it at most `alpha` of the time.
pub fn lower_limit(h: Hits, alpha: f64) -> f64 {
    if h.hits == 0 || h.runs == 0 {
        return 0.0;
    }
    // P(X >= hits; p) = alpha
    bisect(|p| at_least(h.hits, h.runs, p) > alpha).0
}

/// Clopper-Pearson upper limit: the true probability is above it at most `alpha` of the time.
pub fn upper_limit(h: Hits, alpha: f64) -> f64 {
    if h.hits >= h.runs {
        return 1.0;
    }
    // P(X <= hits; p) = alpha
    bisect(|p| at_most(h.hits, h.runs, p) < alpha).1
}

/// Runs per table after which an audit that expects probabilities `p` > `q` proves more than `claimed`, except with
/// probability `miss`; `None` if ln(p/q) ≤ claimed or it would take more than 10^9 runs.
pub fn runs_needed(p: f64, q: f64, claimed: f64, false_alarm: f64, miss: f64) -> Option<u64> {
    if p <= 0.0 || p > 1.0 || (q > 0.0 && libm::log(p / q) <= claimed) {
        return None;
    }
    let proves = |runs: u64| {
        // hits that are exceeded (fallen short of) with probability at most miss/2
        let few = smallest(runs, |k| at_most(k, runs, p) > miss / 2.0);
        let many = smallest(runs, |k| at_most(k, runs, q) >= 1.0 - miss / 2.0);
        let bound = epsilon_at_least(
            Hits { hits: few, runs },
            Hits { hits: many, runs },
            0.0,
            false_alarm,
        );
        bound > claimed
    };
    let mut high = 16;
    while !proves(high) {
        high *= 2;
        if high > 1_000_000_000 {
            return None;
        }
    }
    let mut low = high / 2;
    while high - low > 1 + high / 100 {
        let middle = low + (high - low) / 2;
        if proves(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// The smallest k in 0..=n for which a monotone condition holds (n if none).
fn smallest(n: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Where a condition that is false near 0 and true near 1 turns, from both sides.
fn bisect(holds: impl Fn(f64) -> bool) -> (f64, f64) {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    (low, high)
}

/// P(X ≥ k) of a binomial.
#[allow(clippy::cast_precision_loss, reason = "counts below 2^53")]
pub fn at_least(k: u64, n: u64, p: f64) -> f64 {
    if k == 0 {
        return 1.0;
    }
    if k > n {
        return 0.0;
    }
    incomplete_beta(k as f64, (n - k) as f64 + 1.0, p)
}

/// P(X ≤ k) of a binomial.
#[allow(clippy::cast_precision_loss, reason = "counts below 2^53")]
pub fn at_most(k: u64, n: u64, p: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    incomplete_beta((n - k) as f64, k as f64 + 1.0, 1.0 - p)
}

/// The regularised incomplete beta function, by Lentz's evaluation of its continued fraction.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let log_front = a * libm::log(x) + b * libm::log1p(-x) + libm::lgamma(a + b)
        - libm::lgamma(a)
        - libm::lgamma(b)
        - libm::log(a);
    let guard = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..100_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / guard(1.0 + term * d);
            c = guard(1.0 + term / c);
            fraction *= c * d;
        }
        if (fraction - before).abs() <= 1e-16 * fraction.abs() {
            break;
        }
    }
    libm::exp(log_front) * fraction
}

#[cfg(test)]
#[allow(clippy::cast_precision_loss, reason = "small counts")]
mod tests {
    use super::*;

    /// P(X ≤ k) term by term.
    fn summed(k: u64, n: u64, p: f64) -> f64 {
        let mut term = (1.0 - p).powi(i32::try_from(n).unwrap());
        let mut sum = term;
        for i in 0..k {
            term *= (n - i) as f64 / (i + 1) as f64 * p / (1.0 - p);
            sum += term;
        }
        sum
    }

    #[test]
    fn binomial_tails_agree_with_their_sums() {
        for n in [1, 2, 7, 40, 200] {
            for k in 0..n {
                for p in [0.001, 0.1, 0.5, 0.77, 0.95] {
                    let want = summed(k, n, p);
                    assert!((at_most(k, n, p) - want).abs() < 1e-12, "n={n} k={k} p={p}");
                    assert!((at_least(k + 1, n, p) - (1.0 - want)).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn limits_have_closed_forms_at_the_ends() {
        // no hit in n runs: upper limit 1 - alpha^(1/n); all hits: lower limit alpha^(1/n)
        for n in [1, 10, 1000] {
            let alpha: f64 = 1e-3;
            let root = alpha.powf(1.0 / n as f64);
            let none = Hits { hits: 0, runs: n };
            let all = Hits { hits: n, runs: n };
            assert!((upper_limit(none, alpha) - (1.0 - root)).abs() < 1e-12);
            assert!((lower_limit(all, alpha) - root).abs() < 1e-12);
            assert!(lower_limit(none, alpha).abs() < 1e-300);
            assert!((upper_limit(all, alpha) - 1.0).abs() < 1e-300);
        }
    }

    #[test]
    fn a_private_mechanism_alarms_as_rarely_as_stated() {
        // randomised response at ln 3, 40 runs each: the exact probability of a bound above ln 3
        let (p, q, runs, false_alarm) = (0.75, 0.25, 40, 0.05);
        let mass = |k: u64, p: f64| {
            at_most(k, runs, p) - if k > 0 { at_most(k - 1, runs, p) } else { 0.0 }
        };
        let mut alarms = 0.0;
        for hits in 0..=runs {
            for other in 0..=runs {
                let more = Hits { hits, runs };
                let less = Hits { hits: other, runs };
                if epsilon_at_least(more, less, 0.0, false_alarm) > 3.0_f64.ln() {
                    alarms += mass(hits, p) * mass(other, q);
                }
            }
        }
        assert!(alarms <= false_alarm, "{alarms}");
    }

    #[test]
    fn enough_runs_catch_a_fault_and_too_few_do_not_claim_to() {
        // claimed 1, true ln(.6/.2) = 1.0986
        let n = runs_needed(0.6, 0.2, 1.0, 1e-9, 1e-3).unwrap();
        assert!((1_000..100_000).contains(&n), "{n}");
        assert_eq!(runs_needed(0.6, 0.3, 1.0, 1e-9, 1e-3), None);
        // an impossible output on one side needs few runs
        assert!(runs_needed(0.5, 0.0, 1.0, 1e-9, 1e-3).unwrap() < 500);
    }
}
