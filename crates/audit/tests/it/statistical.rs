//! Statistical audits of the shipped samplers: 100,000 seeded runs of a mechanism on its worst pair of tables.
//!
//! Each asserts three things. The hits agree with the enumerated law (Clopper-Pearson limits, false alarm 1e-9 per
//! limit), so that enumeration and sampling are the same mechanism. They prove no more than the price (false alarm
//! 1e-9). With the noise halved they prove more than the price: the planted fault is caught. The smallest fault these
//! numbers of runs catch is stated by [`alarms::runs_needed`] and asserted to be at most 35 % of the noise.

use super::neighbours as n;
use super::*;
use reticent_audit::alarms::{self, Hits, epsilon_at_least};
use reticent_audit::canary::Weakened;
use reticent_audit::neighbours::TAIL;
use reticent_audit::purchases::Purchase;
use reticent_laws::{Distribution, Seeded, Window, enumerate};
use reticent_noise::Noise;

const RUNS: u64 = 100_000;
const FALSE_ALARM: f64 = 1e-9;

fn law(audit: &Audit, table: &Multiset, factor: &Rational) -> Distribution<String> {
    let source = audit.universe.source(table);
    audit.with(Relation::AddRemove, |case| {
        enumerate(Window::Tail(TAIL), |noise| {
            let mut noise = Weakened::new(noise, factor.clone());
            case.run(&source, &mut noise).unwrap().0.to_string()
        })
    })
}

fn hits(audit: &Audit, table: &Multiset, event: &[String], noise: &mut dyn Noise) -> Hits {
    let source = audit.universe.source(table);
    let hits = audit.with(Relation::AddRemove, |case| {
        (0..RUNS)
            .filter(|_| event.contains(&case.run(&source, noise).unwrap().0.to_string()))
            .count()
    });
    Hits {
        hits: hits as u64,
        runs: RUNS,
    }
}

/// The event: all outputs whose loss is at least nine tenths of the largest one among outputs with probability above
/// .02, in the direction in which that one points.
fn examine(audit: &Audit, one: &Multiset, other: &Multiset) {
    let whole = ratio(1, 1);
    let (a, b) = (law(audit, one, &whole), law(audit, other, &whole));
    let largest = |p: &Distribution<String>, q: &Distribution<String>| {
        p.iter()
            .filter(|(_, mass)| *mass > 0.02)
            .map(|(o, mass)| (mass / q.mass(o)).ln())
            .fold(0.0, f64::max)
    };
    let forward = largest(&a, &b) >= largest(&b, &a);
    let (p, q, more, less) = if forward {
        (a, b, one, other)
    } else {
        (b, a, other, one)
    };
    let least = (0.9 * largest(&p, &q)).exp();
    let event: Vec<String> = p
        .iter()
        .filter(|(o, mass)| *mass > least * q.mass(o))
        .map(|(o, _)| o.clone())
        .collect();
    let sum = |d: &Distribution<String>| event.iter().map(|o| d.mass(o)).sum::<f64>();
    let price = audit.price(Relation::AddRemove)[0];
    let mut seeded = Seeded::new(20_261_127);
    let found = [more, less].map(|t| hits(audit, t, &event, &mut seeded));
    for (h, exact) in found.iter().zip([sum(&p), sum(&q)]) {
        let (low, high) = (
            alarms::lower_limit(*h, FALSE_ALARM),
            alarms::upper_limit(*h, FALSE_ALARM),
        );
        assert!(
            low <= exact && exact <= high,
            "{exact} outside {low}..{high}"
        );
    }
    let proved = epsilon_at_least(found[0], found[1], 0.0, FALSE_ALARM);
    assert!(
        proved <= price && proved > 0.6 * price,
        "proved {proved} of {price}"
    );
    let half = ratio(1, 2);
    let mut weak = Weakened::new(&mut seeded, half);
    let cut = [more, less].map(|t| hits(audit, t, &event, &mut weak));
    let proved = epsilon_at_least(cut[0], cut[1], 0.0, FALSE_ALARM);
    assert!(
        proved > price,
        "the planted fault proves only {proved} of {price}"
    );
    // the power stated above: 35 % less noise would be caught but for one time in a million
    let weaker = ratio(13, 20);
    let (p, q) = (law(audit, more, &weaker), law(audit, less, &weaker));
    let needed = alarms::runs_needed(sum(&p), sum(&q), price, FALSE_ALARM, 1e-6);
    assert!(needed.is_some_and(|r| r <= RUNS), "{needed:?}");
}

#[test]
fn counts() {
    let fold = grid(vec![axis(0, Cut::Whole(1))]);
    let audit = Audit::new(
        Universe::reals(0.0, 1.0, &[0.0]),
        1,
        Purchases::one(fold, Purchase::Counts(None, n::counts_step(ratio(1, 1)))),
        0,
    );
    examine(&audit, &vec![1], &vec![0]);
}

#[test]
fn quantile() {
    let audit = n::quantile(ratio(1, 1), (1, 2), &[0.0, 1.0, 12.0], 0);
    examine(&audit, &vec![2, 1, 1], &vec![2, 1, 2]);
}

#[test]
fn range() {
    let audit = n::range(ratio(1, 1), (19, 20), &[0.0, 1.0, 2.0, 3.0], 0);
    // many records below the first candidate, one above the second
    examine(&audit, &vec![20, 0, 0, 0], &vec![20, 0, 1, 0]);
}
