//! The weighted tree.

use reticent_laws::{Law, Window, enumerate};
use reticent_noise::{Cell, GammaNorm, Lattice, LogWeights};

use crate::tools::{close, ratio, scale};

#[test]
fn a_sum_of_draws_has_the_convolved_law() {
    let d = Lattice::Laplace(scale(1, 2));
    let law = enumerate(Window::Tail(1e-13), |noise| {
        noise.lattice(&d) + noise.lattice(&d)
    });
    for k in [-3_i128, 0, 1, 4] {
        let want: f64 = (-60..=60).map(|j| d.mass(j) * d.mass(k - j)).sum();
        assert!(close(law.mass(&k), want, 1e-11), "{k}");
    }
    assert!(law.lost() <= 2.1e-13 && law.problem().is_none());
    assert!(
        (law.total() + law.lost() - 1.0).abs() < 1e-14,
        "{}",
        law.total() + law.lost() - 1.0
    );
    assert_eq!(law.mass(&1000), 0.0);
    assert_eq!(law.iter().count(), law.len());
}

#[test]
fn draws_may_depend_on_earlier_draws() {
    // a second draw only after a positive first one
    let d = Lattice::Geometric(scale(1, 1));
    let law = enumerate(Window::Tail(1e-12), |noise| {
        let first = noise.lattice(&d);
        if first > 0 {
            (first, Some(noise.lattice(&d)))
        } else {
            (first, None)
        }
    });
    assert!(close(law.mass(&(0, None)), d.mass(0), 1e-15));
    assert!(close(law.mass(&(2, Some(3))), d.mass(2) * d.mass(3), 1e-14));
    assert_eq!(law.mass(&(0, Some(0))), 0.0);
}

#[test]
fn comparisons_have_two_branches_with_exact_tails() {
    let d = Lattice::DiscreteGaussian(scale(3, 1));
    let law = enumerate(Window::default(), |noise| noise.exceeds(&d, 2));
    assert!(
        close(law.mass(&true), d.upper_tail(2), 1e-15)
            && close(law.mass(&false), 1.0 - d.upper_tail(2), 1e-14)
    );
    assert_eq!((law.runs(), law.lost()), (2, 0.0));
    let certain = enumerate(Window::default(), |noise| {
        noise.exceeds(&Lattice::Geometric(scale(3, 1)), 0)
    });
    assert_eq!((certain.runs(), certain.mass(&true)), (1, 1.0));
}

#[test]
fn choices_branch_over_cells_with_weight() {
    let cell = |loss, multiplicity| Cell { loss, multiplicity };
    let w = LogWeights {
        rate: ratio(1, 1),
        cells: vec![cell(3, 1), cell(0, 0), cell(2, 2), cell(u128::MAX, 1)],
    };
    let law = enumerate(Window::default(), |noise| noise.choose(&w));
    let e = std::f64::consts::E;
    assert!(
        close(law.mass(&0), 1.0 / (1.0 + 2.0 * e), 1e-14)
            && close(law.mass(&2), 2.0 * e / (1.0 + 2.0 * e), 1e-14)
    );
    assert_eq!(law.runs(), 2);
}

#[test]
fn windows_of_a_width_report_what_they_lose() {
    let d = Lattice::Laplace(scale(1, 1));
    let law = enumerate(Window::Width(1), |noise| noise.lattice(&d));
    assert_eq!(law.len(), 3);
    assert!(
        close(law.lost(), d.outside(1), 1e-15) && close(law.total(), 1.0 - d.outside(1), 1e-14)
    );
}

#[test]
fn what_cannot_be_enumerated_is_reported() {
    assert!(
        enumerate(Window::default(), |noise| noise.bits() & 1)
            .problem()
            .is_some()
    );
    let d = GammaNorm {
        dimension: 2,
        scale: ratio(1, 1),
        bits: 4,
    };
    assert!(
        enumerate(Window::default(), |noise| noise.vector(&d))
            .problem()
            .is_some()
    );
    let nothing = enumerate(Window::default(), |_| 7);
    assert_eq!(
        (nothing.mass(&7), nothing.problem(), nothing.runs()),
        (1.0, None, 1)
    );
}

#[test]
fn losses_of_neighbouring_counts_are_epsilon() {
    // lesson 1: counts 0 and 1 reach the same outputs, and the worst log ratio is 1/b
    let d = Lattice::Laplace(scale(2, 1));
    let law = |count: i128| enumerate(Window::Tail(1e-13), |noise| count + noise.lattice(&d));
    let (a, b) = (law(0), law(1));
    let inner = |k: &i128| (-20..=20).contains(k);
    assert!(
        a.iter()
            .filter(|(k, _)| inner(k))
            .all(|(k, _)| b.mass(k) > 0.0)
    );
    assert!(close(a.worst_loss(&b, 1e-9), 0.5, 1e-12));
}
