//! Bins adjustment: neighbour tests by enumeration, golden instance 8 of `decisions.md` §4, canary.

use std::collections::BTreeMap;

use super::*;
use reticent_audit::purchases::Purchase;
use reticent_laws::Law;
use reticent_mechanisms::primitives::{MergedBins, Sides};
use reticent_noise::{Lattice, Scale};

use super::selection::*;

pub(crate) fn bins_step(epsilon: Rational, threshold: i128, sides: Sides) -> MergedBins {
    MergedBins {
        name: "bins".to_owned(),
        epsilon,
        threshold,
        sides,
    }
}

fn bins(epsilon: Rational, threshold: i128, sides: Sides) -> Audit {
    let most = if sides == Sides::One { 4 } else { 2 };
    let step = bins_step(epsilon, threshold, sides);
    cells(3, Purchase::MergedBins(step), most)
}

#[test]
fn merged_bins_enumerated() {
    bins(ratio(4, 1), 2, Sides::One).check([(1.0, 1.0), (1.0, 1.0)]);
    bins(ratio(8, 1), 1, Sides::Both).check([(1.0, 0.974_640_972), (0.947_490_260, 0.999_999_972)]);
}

#[test]
fn merged_bins_canary() {
    bins(ratio(4, 1), 2, Sides::One).canary([1.0, 1.0]);
    bins(ratio(8, 1), 1, Sides::Both).canary([1.0, 0.947_490_260]);
}

/// The law of the ends, group by group from the masses of the noise: fresh noise makes groups independent.
fn bins_law(sizes: &[u32], threshold: i128, noise: Lattice) -> BTreeMap<Vec<usize>, f64> {
    let mut open = vec![(Vec::new(), 1.0)];
    let mut law = BTreeMap::new();
    while let Some((ends, p)) = open.pop() {
        let start = ends.last().copied().unwrap_or(0);
        let width = noise.radius(1e-16);
        for end in start + 1..=sizes.len() + 1 {
            let mut sum = 0.0;
            for rho in -width..=width {
                let mut path = noise.mass(rho);
                let mut count = 0;
                for (i, size) in sizes.iter().enumerate().skip(start).take(end - start) {
                    count += i128::from(*size);
                    let need = threshold + rho - count;
                    path *= if i + 1 == end {
                        noise.upper_tail(need)
                    } else {
                        noise.lower_tail(need)
                    };
                }
                sum += path;
            }
            if end > sizes.len() {
                *law.entry(ends.clone()).or_insert(0.0) += p * sum;
            } else {
                open.push(([ends.clone(), vec![end]].concat(), p * sum));
            }
        }
    }
    law
}

/// Instance 8, on the law above; the shipped code has that law.
#[test]
fn golden_bins() {
    for sides in [Sides::One, Sides::Both] {
        let audit = bins(ratio(8, 1), 2, sides);
        for relation in RELATIONS {
            let noise = bins_step(ratio(8, 1), 2, sides)
                .lattice(&audit.context(relation))
                .unwrap();
            for table in [vec![1, 1, 2], vec![0, 0, 0], vec![3, 0, 1]] {
                let wanted = bins_law(&table, 2, noise);
                let found = law(&audit, relation, &table);
                close(wanted.values().sum(), 1.0, 1e-12);
                for (ends, p) in wanted {
                    close(found.mass(&serde_json::json!(ends).to_string()), p, 1e-12);
                }
            }
        }
    }
    let scale = |b| Scale::at_least(&ratio(b, 1)).unwrap();
    let never = |t: &[u32]| bins_law(t, 1, Lattice::Laplace(scale(1)))[&Vec::new()];
    let (before, after) = (never(&[3, 3, 3, 3]), never(&[4, 3, 3, 3]));
    close(before, 9.710_749_6e-6, 1e-13);
    close(after, 3.572_385_1e-6, 1e-13);
    close((before / after).ln(), 0.999_999_999_94, 1e-10);
    // sizes 0, 1, 3 and one record more somewhere, at the printed scale 2/ε
    let worst = |noise, threshold| {
        let (mut added, mut replaced) = (0.0_f64, 0.0_f64);
        let loss = |a: &BTreeMap<Vec<usize>, f64>, b: &BTreeMap<Vec<usize>, f64>| {
            a.iter()
                .map(|(o, p)| (p / b[o]).ln().abs())
                .fold(0.0, f64::max)
        };
        for code in 0..81_usize {
            let sizes: Vec<u32> = (0..4)
                .map(|i| [0, 1, 3][code / 3_usize.pow(i) % 3])
                .collect();
            let base = bins_law(&sizes, threshold, noise);
            let more: Vec<_> = (0..4)
                .map(|i| {
                    let mut t = sizes.clone();
                    t[i] += 1;
                    bins_law(&t, threshold, noise)
                })
                .collect();
            for a in &more {
                added = added.max(loss(&base, a));
                for b in &more {
                    replaced = replaced.max(loss(a, b));
                }
            }
        }
        (added, replaced)
    };
    close(worst(Lattice::Laplace(scale(2)), 1).0, 0.499_999_2, 1e-7);
    close(worst(Lattice::Laplace(scale(2)), 4).1, 0.900_251_1, 1e-7);
    let (added, replaced) = worst(Lattice::Geometric(scale(2)), 4);
    assert!(added <= 0.5 + 1e-9);
    close(replaced, 1.0, 1e-9);
}
