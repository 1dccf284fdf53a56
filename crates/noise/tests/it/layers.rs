//! Exact laws of single rounds, layer by layer.
//!
//! Every layer compares a uniform `U`, given by words read most significant first, with one threshold. So its law is exact when
//! the answer changes precisely at the threshold: just below and just above it in the first 64 bits, and inside the word that
//! straddles it once the next words decide. Thresholds come from `tools::exp_neg`, which shares nothing with the crate.

use dashu::integer::UBig;
use reticent_laws::{Law, Tape};
use reticent_noise::{Cell, Lattice, LogWeights, Noise, Rational, Scale, exact};

use crate::tools::{close, exp_neg, ratio, scale};

const ONES: u64 = u64::MAX;
/// Integer weight of the best cell of multiplicity 1.
const BEST: u64 = 1 << 62;

fn scales() -> Vec<Scale> {
    vec![
        scale(1, 10),
        scale(1, 3),
        scale(1, 1),
        scale(7, 3),
        scale(100, 1),
        scale(1_000_000, 7),
        scale(1_000_000, 1),
    ]
}

/// `answer(words)` must be true exactly for `U` below the threshold, of which `threshold` are the first 64 bits.
fn changes_at(threshold: &UBig, answer: impl Fn(&[u64]) -> bool, label: &str) {
    let t = u64::try_from(threshold).unwrap();
    if t > 0 {
        assert!(answer(&[t - 1, ONES, ONES]), "{label}: below");
    }
    assert!(answer(&[t, 0, 0]), "{label}: straddling word, low");
    assert!(!answer(&[t, ONES, ONES]), "{label}: straddling word, high");
    if t < ONES {
        assert!(!answer(&[t + 1, 0, 0]), "{label}: above");
    }
}

#[test]
fn uniform_below_splits_every_word_evenly() {
    // n = 5 uses three bits: over all words of three low bits, each value comes from exactly one, the rest is redrawn
    for (n, bits) in [(2_u128, 1), (3, 2), (5, 3), (8, 3), (1000, 10)] {
        let mut seen = vec![0_u32; usize::try_from(n).unwrap()];
        let mut redrawn = 0;
        for word in 0..1_u64 << bits {
            let mut tape = Tape::new(vec![word]);
            let x = exact::uniform_below(n, &mut tape);
            if tape.exhausted() {
                redrawn += 1;
            } else {
                seen[usize::try_from(x).unwrap()] += 1;
            }
        }
        assert!(seen.iter().all(|&s| s == 1), "{n}");
        assert_eq!(redrawn, (1_u128 << bits) - n);
    }
    let mut tape = Tape::new(vec![7, 1]);
    assert_eq!(exact::uniform_below(1 << 65, &mut tape), (1 << 64) + 7);
    assert_eq!(
        exact::uniform_below(0, &mut tape) + exact::uniform_below(1, &mut tape),
        0
    );
    assert!(
        !exact::bernoulli(1, 0, &mut tape)
            && exact::bernoulli(3, 3, &mut tape)
            && !exact::bernoulli(0, 3, &mut tape)
    );
}

#[test]
fn bernoulli_exp_changes_at_its_probability() {
    for (n, d) in [
        (1, 1000),
        (1, 3),
        (1, 1),
        (17, 5),
        (10, 1),
        (30, 1),
        (44, 1),
    ] {
        let x = ratio(n, d);
        let answer = |words: &[u64]| exact::bernoulli_exp(&x, &mut Tape::new(words.to_vec()));
        changes_at(&exp_neg(&x, 64), answer, &format!("exp(-{n}/{d})"));
    }
    let mut silent = reticent_laws::Silent;
    assert!(
        exact::bernoulli_exp(&ratio(0, 1), &mut silent)
            && exact::bernoulli_exp(&-ratio(1, 3), &mut silent)
    );
}

#[test]
fn geometric_changes_at_its_tails() {
    for b in scales() {
        let step = (b.to_f64().ceil()) as u64;
        for k in [1, 2, step, 3 * step + 1, 7 * step].map(|k| k.max(1)) {
            let x = Rational::from(k) / b.to_rational();
            if x > ratio(44, 1) {
                continue;
            }
            let answer = |words: &[u64]| {
                exact::geometric(b, &mut Tape::new(words.to_vec())) >= i128::from(k)
            };
            changes_at(&exp_neg(&x, 64), answer, &format!("{b:?} k = {k}"));
        }
    }
}

#[test]
fn laplace_changes_at_its_tails() {
    // the uniform has 63 bits in the first word, whose lowest bit is the sign
    for b in scales() {
        let step = (b.to_f64().ceil()) as u64;
        for k in [1, 2, step, 5 * step + 1].map(|k| k.max(1)) {
            let x = Rational::from(k) / b.to_rational();
            if x > ratio(43, 1) {
                continue;
            }
            for sign in [0, 1] {
                let answer = |words: &[u64]| {
                    let mut words = words.to_vec();
                    words[0] = words[0] << 1 | sign;
                    // enough words that a redraw of "minus zero" ends: it gives a magnitude of 0
                    words.extend([ONES - 1, 0, 0]);
                    let drawn = exact::laplace(b, &mut Tape::new(words));
                    if sign == 1 {
                        drawn <= -i128::from(k)
                    } else {
                        drawn >= i128::from(k)
                    }
                };
                let t = u64::try_from(exp_neg(&x, 63)).unwrap();
                assert!(
                    answer(&[t - 1, ONES, ONES]) && answer(&[t, 0, 0]),
                    "{b:?} {k}"
                );
                assert!(
                    !answer(&[t, ONES, ONES]) && !answer(&[t + 1, 0, 0]),
                    "{b:?} {k}"
                );
            }
        }
    }
}

#[test]
fn gaussian_acceptance_changes_at_its_probability() {
    for (sigma, k) in [
        (scale(1, 1), 0_u64),
        (scale(1, 1), 3),
        (scale(7, 3), 1),
        (scale(100, 1), 37),
        (scale(100, 1), 555),
        (scale(1_000_000, 1), 2_000_000),
    ] {
        // a word whose magnitude is clearly k: in the middle between r^(k+1) and r^k
        let tail = |k: u64| {
            u64::try_from(exp_neg(&(Rational::from(k) / sigma.to_rational()), 62)).unwrap()
        };
        let word = (tail(k) + tail(k + 1)) << 1;
        let d = Rational::from(k) / sigma.to_rational() - Rational::ONE;
        let exponent = &d * &d / Rational::from(2_u8);
        let answer = |words: &[u64]| {
            let mut tape = Tape::new([&[word], words].concat());
            let drawn = exact::discrete_gaussian(sigma, &mut tape);
            // accepted in the first round: these two words, and at most two more to decide
            tape.position() <= 4 && drawn == i128::from(k)
        };
        changes_at(&exp_neg(&exponent, 64), answer, &format!("{sigma:?} {k}"));
    }
}

#[test]
fn mass_times_acceptance_is_gaussian() {
    // proposal scale t = sigma, or 2 sigma below a quarter
    for (n, d) in [(1_u64, 10_u64), (1, 5), (1, 4), (1, 1), (7, 3), (20, 1)] {
        let sigma = n as f64 / d as f64;
        let t = if sigma < 0.25 {
            scale(2 * n, d)
        } else {
            scale(n, d)
        };
        let (laplace, gaussian) = (Lattice::Laplace(t), Lattice::DiscreteGaussian(scale(n, d)));
        let kept = |k: i128| {
            let x = k.unsigned_abs() as f64 / sigma - sigma / t.to_f64();
            laplace.mass(k) * (-x * x / 2.0).exp()
        };
        let total: f64 = (-400..=400).map(kept).sum();
        for k in [0, 1, 2, 5, 40] {
            assert!(
                close(kept(k) / total, gaussian.mass(k), 1e-12) || gaussian.mass(k) < 1e-280,
                "{n}/{d} {k}"
            );
        }
    }
}

#[test]
fn rounded_gaussian_rounds_at_the_half() {
    // words: the magnitude's uniform, the acceptance (2^50: an exponential of 9.7), the sign
    for (sigma, k) in [
        (scale(1, 1), 1_u64),
        (scale(1, 1), 3),
        (scale(7, 3), 2),
        (scale(100, 1), 250),
        (scale(1_000_000, 1), 3),
    ] {
        let x = (Rational::from(2 * k - 1) / Rational::from(2_u8)) / sigma.to_rational();
        let t = u64::try_from(exp_neg(&x, 64)).unwrap();
        let drawn = |first: u64, tail: u64| {
            exact::rounded_gaussian(
                sigma,
                &mut Tape::new(vec![first, 1 << 50, tail & !1, tail, tail & !1, tail & !1]),
            )
        };
        let k = i128::from(k);
        assert!(drawn(t - 1, 0) >= k && drawn(t + 1, 0) < k, "{sigma:?} {k}");
        // in the straddling word the words after the acceptance extend the magnitude
        assert!(drawn(t, 0) >= k && drawn(t, ONES) < k, "{sigma:?} {k}");
    }
}

#[test]
fn half_normal_acceptance_changes_at_its_probability() {
    // U = 1/2: the proposal is ln 2 and the threshold exp(-(ln 2 - 1)² / 2); a float pins it to 2^-49
    let threshold = (-(std::f64::consts::LN_2 - 1.0).powi(2) / 2.0).exp() * 2.0_f64.powi(64);
    // an accepted proposal gives round(10^6 ln 2)
    let accepted = |word: u64| {
        let mut tape = Tape::new(vec![1 << 63, word, 0]);
        exact::rounded_gaussian(scale(1_000_000, 1), &mut tape).abs() == 693_147
    };
    assert!(accepted((threshold * (1.0 - 1e-14)) as u64));
    assert!(!accepted((threshold * (1.0 + 1e-14)) as u64));
}

#[test]
fn rejection_of_a_choice_is_exact() {
    for (rate, gap, multiplicity) in [
        (ratio(1, 1), 1_u128, 1_u64),
        (ratio(1, 7), 3, 1),
        (ratio(41, 1), 1, 1),
        (ratio(43, 1), 1, 3),
    ] {
        let w = LogWeights {
            rate: rate.clone(),
            cells: vec![
                Cell {
                    loss: 10,
                    multiplicity: 1,
                },
                Cell {
                    loss: 10 + gap,
                    multiplicity,
                },
            ],
        };
        let run = |words: &[u64]| {
            let mut tape = Tape::new(words.to_vec());
            (tape.choose(&w), tape.position())
        };
        // words below 2^62 propose the best cell, which is always kept; then come the q words of the other
        assert_eq!(run(&[0]), (0, 1));
        assert_eq!(run(&[BEST - 1]), (0, 1));
        let proposes =
            |q: u64| run(&[BEST + q, 1, 0, 0]).0 == 1 && run(&[BEST + q, 1, 0, 0]).1 <= 4;
        let (mut low, mut high) = (0_u64, 1_u64 << 62);
        assert!(proposes(low));
        while high - low > 1 {
            let middle = u64::midpoint(low, high);
            if proposes(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        let q = high;
        // kept with probability multiplicity exp(-rate gap) 2^62 / q, to 64 bits
        let x = &rate * Rational::from(gap);
        let numerator = exp_neg(&x, 62 + 64) * UBig::from(multiplicity);
        let threshold = numerator / UBig::from(q);
        let keeps = |words: &[u64]| run(&[&[BEST], words, &[0]].concat()).0 == 1;
        changes_at(&threshold, keeps, &format!("rate {rate}"));
        // and nearly always unless the weight is tiny
        if rate < ratio(2, 1) {
            assert!(
                threshold > (UBig::ONE << 64) - (UBig::ONE << 30),
                "{threshold}"
            );
        }
    }
}
