//! Canaries: the same tests with .95·r of the noise (r: the recorded share of the price) must exceed the price.

use super::neighbours as n;
use super::*;
use reticent_audit::neighbours::Strategy;
use reticent_mechanisms::primitives::Payment;

#[test]
fn counts() {
    n::counts().canary([1.0, 1.0]);
}

#[test]
fn sums() {
    n::sums(false).canary([1.0, 1.0]);
    n::sums(true).canary([1.0, 1.0]);
}

#[test]
fn quantile() {
    n::quantile(ratio(1, 1), (1, 2), &n::EDGES_AND_INSIDES, 4)
        .canary([0.928_452_816, 0.827_988_939]);
}

#[test]
fn medians() {
    n::medians(ratio(2, 1), 2, 6, 4).canary([0.897_748_434, 0.570_025_047]);
}

#[test]
fn range() {
    n::range(ratio(2, 1), (1, 2), &[0.0, 1.0, 2.0, 3.0], 3).canary([0.879_797_597, 0.926_564_419]);
}

#[test]
fn sparse_vector() {
    let (general, nested) = ([0..1, 1..2, 1..3], [1..2, 1..3, 0..4]);
    n::sparse_vector(ratio(1, 1), &general, &[1, 2, 3], 2, false, false, 3).canary([1.0, 1.0]);
    n::sparse_vector(ratio(1, 1), &nested, &[1, 2, 3], 1, true, false, 3).canary([0.5, 1.0]);
}

/// Second moments: the recorded share r of the price that the test rows reach, pure (L1) and Gaussian (squared L2);
/// the same matrix with .95·r of the noise exceeds the price.
#[test]
fn second_moments() {
    let cases = [
        (0.4, [0.951_871_872, 0.515_747_070]),
        (0.6, [0.949_039_459, 0.515_961_965]),
        (f64::INFINITY, [1.0, 0.456_822_057]),
    ];
    for (squared_norm, recorded) in cases {
        for (i, calibrated) in RELATIONS.into_iter().enumerate() {
            let audit = n::moments(
                Payment::Pure {
                    epsilon: ratio(1, 1),
                },
                squared_norm,
            );
            let price = audit.price(calibrated)[i];
            let strategy = audit.strategy(calibrated);
            let r = strategy.loss(calibrated) / price;
            assert!(
                r <= 1.0 && (r - recorded[i]).abs() < 1e-6,
                "{squared_norm} {calibrated}: {r}"
            );
            assert!(cut(&strategy, 0.95 * r).loss(calibrated) > price);

            let rho = ratio(1, 8);
            let strategy =
                n::moments(Payment::Concentrated { rho }, squared_norm).strategy(calibrated);
            let spent = |s: &Strategy| s.deviations(calibrated).powi(2) / 2.0;
            let r = (spent(&strategy) / 0.125).sqrt();
            assert!(r <= 1.0 && r > 0.5, "{squared_norm} {calibrated}: {r}");
            assert!(spent(&cut(&strategy, 0.95 * r)) > 0.125);
        }
    }
}

fn cut(strategy: &Strategy, factor: f64) -> Strategy {
    let mut weaker = strategy.clone();
    weaker.noise.iter_mut().for_each(|n| n.1 *= factor);
    weaker
}
