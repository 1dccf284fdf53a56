//! Density tests of the two steps whose noise has a density e^(−‖v‖/τ): the worst loss of such noise is the distance of
//! the exact outputs divided by τ, reached by outputs on the line through them. Distances come from the shipped code with the
//! noise off, τ from the shipped calibration.

use super::*;
use reticent_audit::purchases::Purchase;
use reticent_audit::tables::{neighbours, real};
use reticent_laws::{Seeded, Silent};
use reticent_mechanisms::fold::Shorten;
use reticent_mechanisms::primitives::{NormMoments, Objective, OutputPerturbation};
use reticent_mechanisms::rows::Schema;
use reticent_noise::{GammaNorm, Noise};

pub(super) fn vector(audit: &Audit, relation: Relation, table: &Multiset) -> Vec<f64> {
    let source = audit.universe.source(table);
    audit.with(relation, |case| {
        let (value, _) = case.run(&source, &mut Silent).unwrap();
        (value[0].as_array().unwrap().iter())
            .map(|x| x.as_f64().unwrap())
            .collect()
    })
}

pub(super) fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>()
        .sqrt()
}

/// Worst distances over neighbouring tables: add/remove, replace-one.
pub(super) fn distances(
    audit: &Audit,
    calibrated: Relation,
    weigh: impl Fn(Vec<f64>) -> Vec<f64>,
) -> [f64; 2] {
    let points: Vec<Vec<f64>> = (audit.tables.iter())
        .map(|t| weigh(vector(audit, calibrated, t)))
        .collect();
    RELATIONS.map(|relation| {
        (neighbours(&audit.tables, relation).iter())
            .map(|(i, j)| distance(&points[*i], &points[*j]))
            .fold(0.0, f64::max)
    })
}

pub(super) fn number(x: &Rational) -> f64 {
    x.to_f64().value()
}

const UNIT: f64 = 1024.0 * 1024.0;

fn norm(squared_norm: f64) -> (Audit, Fold, NormMoments) {
    let step = NormMoments {
        name: "moments".to_owned(),
        epsilon: ratio(1, 1),
    };
    let schema = Schema {
        columns: ["x", "w", "y"].map(|n| real(n, -0.5, 0.5)).to_vec(),
    };
    let values = [-0.5, 0.3, 0.5];
    let mut rows = Vec::new();
    for x in values {
        for w in values {
            rows.extend(values.map(|y| vec![x, w, y]));
        }
    }
    let fold = Fold::Moments {
        terms: 0..2,
        response: Some(2),
        shorten: Shorten {
            intercept: 0.25,
            squared_norm,
        },
        bits: 10,
    };
    let purchase = Purchases::one(fold.clone(), Purchase::NormMoments(step.clone()));
    let audit = Audit::new(Universe::rows(schema, rows), 3, purchase, 1);
    (audit, fold, step)
}

/// u: the diagonal, and 181/128 of the rest; triangle of a 4 × 4 matrix.
fn weighted(triangle: Vec<f64>) -> Vec<f64> {
    let diagonal = [0, 4, 7, 9];
    (triangle.into_iter().enumerate())
        .map(|(i, x)| {
            if diagonal.contains(&i) {
                x
            } else {
                x * 181.0 / 128.0
            }
        })
        .collect()
}

fn norm_losses(squared_norm: f64, calibrated: Relation) -> [f64; 2] {
    let (audit, fold, step) = norm(squared_norm);
    let law = step.vector(&fold, &audit.context(calibrated)).unwrap();
    assert_eq!((law.dimension, law.bits), (10, 0));
    // τ in units of 4^−10/128
    let tau = number(&law.scale) / UNIT / 128.0;
    distances(&audit, calibrated, weighted).map(|d| d / tau)
}

#[test]
fn norm_moments_distances() {
    let recorded = [
        (0.4, [0.998_144_753, 0.996_826_498]),
        (0.6, [0.995_978_678, 0.995_768_069]),
        (f64::INFINITY, [0.999_924_155, 0.972_904_577]),
    ];
    let mut changed = Vec::new();
    for (squared_norm, recorded) in recorded {
        for (i, calibrated) in RELATIONS.into_iter().enumerate() {
            let (audit, ..) = norm(squared_norm);
            let price = audit.price(calibrated);
            let losses = norm_losses(squared_norm, calibrated);
            for (loss, price) in losses.iter().zip(price) {
                assert!(*loss <= price, "{squared_norm} {calibrated}: {losses:?}");
            }
            if (losses[i] - recorded[i]).abs() >= 1e-6 {
                changed.push((squared_norm, calibrated, losses[i]));
            }
        }
    }
    assert!(changed.is_empty(), "{changed:?}");
}

/// The drawn vector has the law that the proof names: mean length p′τ over 4,000 draws within 6 deviations of that mean
/// (false alarm below 1e-8), which catches a scale wrong by 3 %; and no coordinate has a preferred sign.
#[test]
fn norm_moments_noise_has_the_law() {
    let law = GammaNorm {
        dimension: 10,
        scale: ratio(5000, 1),
        bits: 0,
    };
    let mut noise = Seeded::new(77);
    let (mut total, mut signs) = (0.0, vec![0i32; 10]);
    for _ in 0..4000 {
        let v = noise.vector(&law);
        #[allow(clippy::cast_precision_loss, reason = "draws far below 2^53")]
        let squares: f64 = v.iter().map(|x| (*x as f64).powi(2)).sum();
        total += squares.sqrt() / 4000.0;
        for (s, x) in signs.iter_mut().zip(&v) {
            *s += i32::from(*x > 0) - i32::from(*x < 0);
        }
    }
    // Gamma(10): deviation √10·τ of one length.
    let deviation = 10f64.sqrt() * 5000.0 / 4000f64.sqrt();
    assert!((total - 50_000.0).abs() < 6.0 * deviation, "{total}");
    // 6.5 deviations of a sum of 4,000 signs.
    assert!(signs.iter().all(|s| s.abs() < 412), "{signs:?}");
}

fn output(penalty: i64, intercept: Option<f64>) -> (Audit, OutputPerturbation) {
    let step = OutputPerturbation(Objective {
        name: "fit".to_owned(),
        epsilon: ratio(1, 1),
        covariates: 0..1,
        outcome: 1,
        intercept,
        radius: 1.0,
        penalty: ratio(penalty, 1),
    });
    let schema = Schema {
        columns: vec![real("x", -1.0, 1.0), real("y", 0.0, 1.0)],
    };
    let mut rows = Vec::new();
    for x in [-1.0, -0.5, 0.5, 1.0] {
        rows.extend([vec![x, 0.0], vec![x, 1.0]]);
    }
    let purchase = Purchases::one(grid(Vec::new()), Purchase::Output(step.clone()));
    (
        Audit::new(Universe::rows(schema, rows), 2, purchase, 3),
        step,
    )
}

fn output_losses(penalty: i64, intercept: Option<f64>, calibrated: Relation) -> [f64; 2] {
    let (audit, step) = output(penalty, intercept);
    let tau = number(&step.scale(&audit.context(calibrated)).unwrap());
    distances(&audit, calibrated, |w| w).map(|d| d / tau)
}

#[test]
fn output_perturbation_distances() {
    let recorded = [
        (1, None, [0.444_646_942, 0.401_058_136]),
        (4, None, [0.484_852_980, 0.470_620_125]),
        (4, Some(0.5), [0.480_042_707, 0.463_826_837]),
    ];
    let mut changed = Vec::new();
    for (penalty, intercept, recorded) in recorded {
        for (i, calibrated) in RELATIONS.into_iter().enumerate() {
            let (audit, step) = output(penalty, intercept);
            let price = audit.price(calibrated);
            let losses = output_losses(penalty, intercept, calibrated);
            for (loss, price) in losses.iter().zip(price) {
                assert!(*loss <= price, "{penalty} {calibrated}: {losses:?}");
            }
            if (losses[i] - recorded[i]).abs() >= 1e-6 {
                changed.push((penalty, intercept, calibrated, losses[i]));
            }
            // τ = (touches·R + 2γ)/Λ, γ = 10⁻⁹R, at ε = 1.
            let radius = 1f64.hypot(intercept.unwrap_or(0.0));
            let touches = if i == 0 { 1.0 } else { 2.0 };
            let tau = radius * (touches + 2e-9) / f64::from(i32::try_from(penalty).unwrap());
            let found = number(&step.scale(&audit.context(calibrated)).unwrap());
            assert!(found >= tau * (1.0 - 1e-15) && found < tau * (1.0 + 1e-9));
        }
    }
    assert!(changed.is_empty(), "{changed:?}");
    // One record of norm R at w near 0 moves by about R/(2Λ); where 400 records (1, +1) hold w far out, one (1, −1) has a
    // gradient near R, but the others' curvature then resists.
    let (audit, _) = output(40, None);
    let mut many = vec![0; audit.universe.len()];
    many[7] = 400;
    let mut more = many.clone();
    more[6] = 1;
    let moved = distance(
        &vector(&audit, Relation::AddRemove, &many),
        &vector(&audit, Relation::AddRemove, &more),
    );
    assert!(moved <= 1.0 / 40.0 && moved > 0.1 / 40.0, "{moved}");
}

/// Canaries: .95·r of the noise loses more than is paid. And what was published without ε in the scale (PrivateLR's manual), or
/// with Laplace noise at the L2 distance, is flagged.
#[test]
fn weaker_noise_is_flagged() {
    for (i, calibrated) in RELATIONS.into_iter().enumerate() {
        let r = norm_losses(0.4, calibrated)[i];
        let (audit, fold, step) = norm(0.4);
        let law = step.vector(&fold, &audit.context(calibrated)).unwrap();
        let tau = 0.95 * r * number(&law.scale) / UNIT / 128.0;
        assert!(distances(&audit, calibrated, weighted)[i] / tau > 1.0);

        let r = output_losses(4, None, calibrated)[i];
        let (audit, step) = output(4, None);
        let tau = 0.95 * r * number(&step.scale(&audit.context(calibrated)).unwrap());
        assert!(distances(&audit, calibrated, |w| w)[i] / tau > 1.0);
    }
    // The manual's 2/(nλ)·b: the loss does not depend on ε, so at ε = .1 it is several times the price.
    let (audit, _) = output(4, None);
    let manual = distances(&audit, Relation::ReplaceOne, |w| w)[1] / (2.0 / 4.0);
    assert!(manual > 0.1 * 3.0, "{manual}");
    // Independent Laplace noise of scale Δ₂/ε: the L1 distance counts.
    let (audit, fold, step) = norm(0.4);
    let law = step
        .vector(&fold, &audit.context(Relation::AddRemove))
        .unwrap();
    let tau = number(&law.scale) / UNIT / 128.0;
    let worst = (audit.tables.iter())
        .map(|t| {
            vector(&audit, Relation::AddRemove, t)
                .iter()
                .map(|x| x.abs())
                .sum::<f64>()
        })
        .fold(0.0, f64::max);
    assert!(worst / tau > 1.5, "{}", worst / tau);
}
