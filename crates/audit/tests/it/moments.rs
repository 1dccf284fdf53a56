//! The two sums of the residual plot's tests: golden sensitivities, the strategy matrix under both relations, a canary.

use super::*;
use reticent_audit::purchases::Purchase;
use reticent_mechanisms::primitives::{Linear, Payment, Strategy};
use reticent_statistics::residuals::moments::strategy;

/// Units of the weights.
const ONE: f64 = 1_048_576.0;

/// A parabola and a line at u = 0, ½, 1, residuals −R, 0, R.
fn ends(centre: f64) -> Strategy {
    strategy(
        &[1.0, -0.5, 1.0],
        &[-1.0, 0.0, 1.0],
        &[-1.0, 0.0, 1.0],
        centre,
    )
}

/// Middles of 8 × 8 cells; the line is centred at u = .4.
fn middles() -> Strategy {
    let at = |k: u8| (f64::from(k) + 0.5) / 8.0;
    let us: Vec<f64> = (0..8).map(at).collect();
    let curvature: Vec<f64> = us.iter().map(|u| 6.0 * u * u - 6.0 * u + 1.0).collect();
    let fan: Vec<f64> = us.iter().map(|u| (u - 0.4) / 0.6).collect();
    let residual: Vec<f64> = us.iter().map(|u| 2.0 * u - 1.0).collect();
    strategy(&curvature, &fan, &residual, 0.3)
}

#[allow(clippy::cast_precision_loss, reason = "few cells")]
fn audit(strategy: Strategy) -> Audit {
    let cells = strategy.cells;
    let values: Vec<f64> = (0..cells).map(|i| i as f64).collect();
    let cut = Cut::Whole(u32::try_from(cells).unwrap());
    let step = Linear {
        name: "moments".to_owned(),
        payment: Payment::Pure {
            epsilon: ratio(1, 1),
        },
    };
    Audit::new(
        Universe::reals(0.0, cells as f64 - 1.0, &values),
        1,
        Purchases::one(grid(vec![axis(0, cut)]), Purchase::Linear(strategy, step)),
        0,
    )
}

/// `decisions.md` §2.5 and §4, instance 12: T₁ alone 1 | 2, T₂ alone max(c, 1−c) | twice, together 2−c | 2(2−c).
#[test]
fn golden_sensitivities() {
    let found = |s: &Strategy| RELATIONS.map(|r| s.sensitivity(r).unwrap());
    #[allow(clippy::cast_possible_truncation, reason = "small multiples of 2^18")]
    let wanted = |x: f64| [(x * ONE) as i128, (2.0 * x * ONE) as i128];
    for (c, alone, together) in [
        (0.0, 1.0, 2.0),
        (0.25, 0.75, 1.75),
        (0.5, 0.5, 1.5),
        (1.0, 1.0, 1.0),
    ] {
        let both = ends(c);
        assert_eq!(found(&both), wanted(together), "c = {c}");
        let only = |i: usize| Strategy {
            rows: vec![both.rows[i].clone()],
            ..both.clone()
        };
        assert_eq!(found(&only(0)), wanted(1.0));
        assert_eq!(found(&only(1)), wanted(alone), "c = {c}");
    }
}

/// Exact losses at ε = 1 over every cell and pair of cells: own relation and the other one.
#[test]
fn worst_losses_by_matrix() {
    for (name, strategy) in [("ends", ends(0.5)), ("middles", middles())] {
        let audit = audit(strategy);
        for calibrated in RELATIONS {
            let matrix = audit.strategy(calibrated);
            let price = audit.price(calibrated);
            for (r, most) in RELATIONS.into_iter().zip(price) {
                let loss = matrix.loss(r);
                assert!(loss <= most + 1e-9, "{name} {calibrated} {r}: {loss}");
            }
            if name == "ends" {
                let wanted = match calibrated {
                    Relation::AddRemove => [1.0, 2.0],
                    Relation::ReplaceOne => [0.5, 1.0],
                };
                let found = RELATIONS.map(|r| matrix.loss(r));
                assert!(
                    found.iter().zip(wanted).all(|(f, w)| (f - w).abs() < 1e-6),
                    "{calibrated}: {found:?}"
                );
            }
        }
    }
}

/// At .95 of the noise the price is exceeded.
#[test]
fn canary() {
    for calibrated in RELATIONS {
        let audit = audit(ends(0.5));
        let mut matrix = audit.strategy(calibrated);
        matrix.noise.iter_mut().for_each(|n| n.1 *= 0.95);
        assert!(matrix.loss(calibrated) > 1.0 + 1e-3);
    }
}
