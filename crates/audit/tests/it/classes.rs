//! Quantiles of both classes on one line (stratified and label-separate ROC thresholds): losses on all small tables, also of
//! records that only change their label, and canaries.

use super::*;
use reticent_audit::purchases::Purchase;
use reticent_audit::tables::real;
use reticent_mechanisms::primitives::Draw;
use reticent_mechanisms::rows::Schema;
use reticent_statistics::bisect::Quantiles;

/// Records of (score, label), placed at score + 3·label; three quantiles, as for three negatives to one positive.
fn line(levels: [u32; 3], scores: &[u32], most: u32) -> Audit {
    let schema = Schema {
        columns: vec![real("score", 0.0, 2.0), real("label", 0.0, 1.0)],
    };
    let rows = scores
        .iter()
        .flat_map(|s| [0.0, 1.0].map(|label| vec![f64::from(*s), label]))
        .collect();
    let cut = Cut::Even {
        lower: -0.5,
        upper: 5.5,
        cells: 6,
    };
    let step = Quantiles {
        name: "quantiles of both classes".to_owned(),
        epsilon: ratio(2, 1),
        levels: levels.to_vec(),
        denominator: 16,
        draw: Draw::Exponential,
    };
    let place = Expr::Column(0).add(Expr::Column(1).affine(3.0, 0.0));
    let purchases = Purchases::one(grid(vec![axis(0, cut)]), Purchase::Bisection(step));
    Audit {
        program: RowProgram {
            terms: vec![place],
            ..RowProgram::default()
        },
        ..Audit::new(Universe::rows(schema, rows), 2, purchases, most)
    }
}

/// The recorded shares of the price: own relation and the other one, per calibration.
const SHARES: [(f64, f64); 2] = [
    (0.731_266_505, 0.498_295_312),
    (0.507_621_179, 0.673_462_070),
];

#[test]
fn both_classes_enumerated() {
    let shares = line([3, 9, 14], &[0, 1, 2], 3).shares();
    for (s, r) in shares.iter().zip(&SHARES) {
        assert!(
            (s.0 - r.0).abs() < 1e-6 && (s.1 - r.1).abs() < 1e-6,
            "shares {shares:.9?}"
        );
    }
}

#[test]
fn both_classes_canary() {
    line([3, 9, 14], &[0, 1, 2], 3).canary(SHARES.map(|s| s.0));
}

/// A replaced record may leave one class and enter the other, and both pay: noise for added and removed records, every
/// class at all of ε = 2, loses more than ε when records (score, label, or both) are replaced. Calibrated for that, the same tables lose less.
#[test]
fn half_the_noise_is_not_enough_for_replacing() {
    let audit = line([3, 9, 14], &[0, 1, 2], 4);
    let loss = |calibrated| audit.losses(calibrated).under(Relation::ReplaceOne);
    let wrong = loss(Relation::AddRemove);
    assert!(wrong > 2.15, "{wrong}");
    assert!(loss(Relation::ReplaceOne) <= 2.0);
}
