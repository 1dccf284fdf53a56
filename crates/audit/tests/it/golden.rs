//! Golden instances of `decisions.md` §4 that concern what is built: exact numbers derived independently of the code.

use super::neighbours as n;
use super::*;
use reticent_audit::density::{
    Labelled, gaussian_delta, gaussian_epsilon, gaussian_sigma, objective_log_density,
    worst_on_grid,
};
use reticent_audit::neighbours::{TAIL, losses};
use reticent_audit::purchases::Purchase;
use reticent_audit::tables::neighbours;
use reticent_laws::{Window, enumerate};
use reticent_statistics::range::{Range, RangeScales};

/// Probabilities of the answers 0, 1, … of a mechanism with one index as its output.
fn probabilities(audit: &Audit, relation: Relation, table: &Multiset) -> Vec<f64> {
    let source = audit.universe.source(table);
    let law = audit.with(relation, |case| {
        enumerate(Window::Tail(TAIL), |noise| {
            let (value, _) = case.run(&source, noise).unwrap();
            value[0].as_u64().unwrap()
        })
    });
    assert_eq!(law.problem(), None);
    (0..4).map(|i| law.mass(&i)).collect()
}

pub(crate) fn close(found: &[f64], wanted: &[f64], tolerance: f64) {
    assert_eq!(found.len(), wanted.len());
    for (f, w) in found.iter().zip(wanted) {
        assert!(
            (f - w).abs() < tolerance,
            "found {found:?}, wanted {wanted:?}"
        );
    }
}

fn largest_ratio(p: &[f64], q: &[f64]) -> f64 {
    p.iter()
        .zip(q)
        .map(|(p, q)| (p / q).ln().abs())
        .fold(0.0, f64::max)
}

/// Instance 5: θ = 19/20, e₁ = e₂ = ½, three candidates and a fallback.
#[test]
fn range_finder() {
    let world = |values: &[f64]| {
        let mut audit = n::range(ratio(1, 1), (19, 20), &[0.0, 1.0, 2.0, 3.0], 0);
        audit.universe = Universe::reals(0.0, 4.0, values);
        audit
    };
    // candidates 0, 1, 2 lie at and beyond the records; the fourth is the public fallback
    let audit = world(&[0.0, 2.0]);
    let ar = |t: [u32; 2]| probabilities(&audit, Relation::AddRemove, &t.to_vec());
    let r1 = |t: [u32; 2]| probabilities(&audit, Relation::ReplaceOne, &t.to_vec());
    let (four, more) = (ar([4, 0]), ar([4, 1]));
    close(
        &four,
        &[0.567_263_983, 0.149_187_416, 0.073_648_980, 0.209_899_622],
        1e-9,
    );
    close(
        &more,
        &[0.356_860_533, 0.189_887_765, 0.180_960_797, 0.272_290_905],
        1e-9,
    );
    assert!((largest_ratio(&four, &more) - 0.898_970_1).abs() < 1e-7);
    let loss = largest_ratio(&ar([20, 0]), &ar([20, 1]));
    assert!((loss - 0.974_723_1).abs() < 1e-7, "{loss}");
    let loss = largest_ratio(&r1([4, 0]), &r1([3, 1]));
    assert!((loss - 0.889_824_2).abs() < 1e-7, "{loss}");
    let loss = largest_ratio(&r1([20, 0]), &r1([19, 1]));
    assert!((loss - 0.975_776_0).abs() < 1e-7, "{loss}");
}

/// The priced mixed cases of the range finder: replace-one scales on row sets of private size.
#[test]
fn range_finder_on_parts() {
    let step = Range {
        name: "range".to_owned(),
        epsilon: ratio(1, 1),
        coverage: (19, 20),
        scales: RangeScales::default(),
    };
    let context = Context::records(Relation::ReplaceOne);
    let price = step.event(&context).price(Currency::Pure).unwrap();
    // θ e₁ + e₂
    let under = |r: Relation| price.under(r).unwrap().amount.clone();
    assert_eq!(under(Relation::AddRemove), ratio(39, 40));
    assert_eq!(under(Relation::ReplaceOne), ratio(1, 1));
    for coverage in [(1, 3), (20, 20), (21, 20), (0, 0), (5, 0)] {
        assert!(
            Range {
                coverage,
                ..step.clone()
            }
            .check()
            .is_err(),
            "{coverage:?}"
        );
    }
}

/// Private Bounds at its printed scales: priced at θε/2 + ε/4 and .75 ε, and no table loses more; noise cut to .95 of the worst
/// share of that price is noticed.
#[test]
fn printed_range_scales() {
    for (coverage, added, [alone, pair]) in [
        ((19, 20), 0.725, [0.940_682_773, 0.942_660_014]),
        ((1, 2), 0.5, [0.991_617_714, 0.994_411_810]),
    ] {
        let mut audit = n::range(ratio(1, 1), coverage, &[0.0, 1.0, 2.0, 3.0], 4);
        let [(_, Purchase::Range(step))] = audit.mechanism.0.as_mut_slice() else {
            panic!("one range")
        };
        step.scales = RangeScales::Printed;
        for calibrated in RELATIONS {
            close(&audit.price(calibrated), &[added, 0.75], 1e-12);
        }
        // the scales do not depend on the relation
        audit.check([(alone, pair), (pair, alone)]);
        audit.canary([alone, pair]);
    }
}

/// Instance 6: three queries near their thresholds, every pattern of differences the relation allows: the shipped
/// constants are reached exactly and never exceeded.
#[test]
fn sparse_vector() {
    // the cells of one record: in none, one or several of the three queries
    let patterns: [&[std::ops::Range<usize>]; 2] = [&[0..1, 1..2, 1..3], &[0..2, 1..3, 2..4]];
    let mut worst = [[0.0_f64; 2]; 2];
    for queries in patterns {
        for thresholds in [[1, 1, 1], [1, 2, 3]] {
            for c in [1, 2] {
                let audit = n::sparse_vector(ratio(1, 1), queries, &thresholds, c, false, false, 2);
                for (shares, own) in audit.shares().iter().zip(&mut worst[c as usize - 1]) {
                    *own = own.max(shares.0);
                }
            }
        }
    }
    for share in worst.iter().flatten() {
        assert!((share - 1.0).abs() < 1e-9, "{worst:?}");
    }
    // joint law of (index, gap) at scales 1 and 1 (e = 2, c = 1): exactly 1/b_θ + 1/b_q = 2
    let audit = n::sparse_vector(ratio(2, 1), &[0..1, 1..2], &[1, 1], 1, false, true, 2);
    let loss = audit.losses(Relation::AddRemove).add_remove.loss;
    assert!((loss - 2.0).abs() < 1e-6, "{loss}");
}

/// Instance 7: cells (0,4) (4,8) (8,12) (12,16), e = 1.
#[test]
fn em_quantile() {
    let median = |values: &[f64]| n::quantile(ratio(1, 1), (1, 2), values, 0);
    let audit = median(&[0.0, 1.0, 12.0]);
    let before = probabilities(&audit, Relation::AddRemove, &vec![2, 1, 1]);
    let after = probabilities(&audit, Relation::AddRemove, &vec![2, 1, 2]);
    close(
        &before,
        &[0.410_476_766, 0.248_966_744, 0.248_966_744, 0.091_589_747],
        1e-9,
    );
    close(
        &after,
        &[0.435_702_069, 0.264_266_663, 0.264_266_663, 0.035_764_604],
        1e-9,
    );
    assert!((largest_ratio(&before, &after) - 0.940_360_6).abs() < 1e-7);
    // worst cases over all tables: from at most n to at most n + 1 records, and between tables of at most n
    let worst = |level, values: &[f64], most, relation| {
        let audit = n::quantile(ratio(1, 1), level, values, most);
        audit.losses(Relation::AddRemove).under(relation)
    };
    let values = [0.0, 4.0, 5.0, 9.0, 12.0, 16.0];
    let (ar, r1) = (Relation::AddRemove, Relation::ReplaceOne);
    for (found, wanted) in [
        (
            worst((1, 2), &[0.0, 1.0, 4.0, 8.0, 12.0, 16.0], 5, ar),
            0.940_360_6,
        ),
        (worst((1, 2), &n::EDGES_AND_INSIDES, 4, r1), 1.756_441_8),
        (worst((3, 4), &values, 7, ar), 0.977_133_0),
        (worst((3, 4), &values, 6, r1), 1.278_826_5),
    ] {
        assert!(
            (found - wanted).abs() < 1e-7,
            "found {found}, wanted {wanted}"
        );
    }
}

/// Instance 12: the binned residual sums, and the naive parts of the same table.
#[test]
fn binned_residuals() {
    let audit = n::binned(ratio(9, 10), ratio(1, 10));
    for relation in RELATIONS {
        let loss = audit.strategy(relation).loss(relation);
        assert!((loss - 1.0).abs() < 1e-12, "{relation} {loss}");
    }
    // centring is what makes it so: uncentred, the top bin alone needs 128 times its width
    let mut uncentred = n::binned(ratio(9, 10), ratio(1, 10));
    if let Purchase::Sums(_, step) = &mut uncentred.mechanism.0[1].1 {
        step.centred = false;
    }
    let (narrow, wide) = (
        audit.strategy(Relation::AddRemove).noise,
        uncentred.strategy(Relation::AddRemove).noise,
    );
    assert!((wide[11].1 / narrow[11].1 - 128.0).abs() < 1e-12);
}

/// Instance 2: densities of objective perturbation. One coefficient, R = 1, Λ = ¼; and an intercept, corrected.
#[test]
fn objective_density() {
    let line = || (-4000..=4000).map(|i| vec![f64::from(i) / 400.0]);
    let (penalty, radius) = (0.25, 1.0);
    let left = 1.0 - (1.0_f64 + radius * radius / (4.0 * penalty)).ln();
    assert!((left - 0.306_852_8).abs() < 1e-7);
    let tau = radius / left;
    assert!((tau - 3.258_891_4).abs() < 1e-7);
    let one = |x: f64, y: f64| Labelled {
        x: vec![x],
        y,
        times: 1.0,
    };
    let loss = |a: &[Labelled], b: &[Labelled], tau: f64| {
        worst_on_grid(
            |w| objective_log_density(w, a, penalty, tau),
            |w| objective_log_density(w, b, penalty, tau),
            line(),
        )
    };
    let (worst, at) = loss(&[], &[one(1.0, 1.0)], tau);
    assert!((worst - 0.651_437_3).abs() < 1e-7, "{worst}");
    assert!((at[0].abs() - 1.0425).abs() < 0.003, "{at:?}");
    // all pairs of records from a grid beside three common sets, both relations
    let records = [-1.0, -0.5, 0.5, 1.0].map(|u| one(u, 1.0));
    let commons = [
        vec![],
        vec![one(1.0, 1.0)],
        vec![
            Labelled {
                times: 5.0,
                ..one(0.5, -1.0)
            },
            one(1.0, 1.0),
        ],
    ];
    let mut worst = [0.0_f64; 2];
    for common in &commons {
        let with = |r: &Labelled| [common.clone(), vec![r.clone()]].concat();
        for a in &records {
            worst[0] = worst[0].max(loss(common, &with(a), tau).0);
            for b in &records {
                worst[1] = worst[1].max(loss(&with(a), &with(b), 2.0 * tau).0);
            }
        }
    }
    // the price is 1
    assert!(worst.iter().all(|w| *w <= 1.0), "{worst:?}");
    close(&worst, &[0.651_437_3, 0.466_849_1], 1e-6);
}

/// The shipped constants of objective perturbation are those of instance 2.
#[test]
fn objective_constants() {
    let step = reticent_mechanisms::primitives::Objective {
        name: "fit".to_owned(),
        // ε_o = 99 % of it is 1
        epsilon: ratio(100, 99),
        covariates: 0..1,
        outcome: 1,
        intercept: None,
        radius: 1.0,
        penalty: ratio(1, 4),
    };
    for (relation, factor) in RELATIONS.into_iter().zip([1.0, 2.0]) {
        let context = Context::records(relation);
        let constants = step.calibration(&context).unwrap();
        let value = |x: &Rational| x.to_f64().value();
        let left = 1.0 - 2.0_f64.ln();
        assert!((value(&constants.noise_epsilon) - left).abs() < 1e-9);
        assert!(value(&constants.scale) >= factor / left * (1.0 - 1e-15));
        assert!((value(&constants.scale) * left / factor - 1.0).abs() < 1e-9);
        assert!((value(&constants.solver_epsilon) - 1.0 / 99.0).abs() < 1e-12);
        // 2γ/(Λ ε_s), γ = 10^-9 R
        assert!((value(&constants.solver_scale) / (8e-9 * 99.0) - 1.0).abs() < 1e-9);
        let spent = step.event(&context).price(Currency::Pure).unwrap();
        assert_eq!(spent.under(relation).unwrap().amount, ratio(100, 99));
        // a unit of two rows: half of ε for each
        let pair = Context {
            rows_per_unit: 2,
            ..context
        };
        assert!(step.calibration(&pair).is_err(), "ln 2 is more than .495");
    }
}

/// Instance 2, second part: records (1, x), 6459 × (.77, +1), 6051 × (.93, −1), then (1, +1) against (.7, −1).
#[test]
fn objective_density_with_intercept() {
    let record = |x: f64, y: f64, times: f64| Labelled {
        x: vec![1.0, x],
        y,
        times,
    };
    let common = vec![record(0.77, 1.0, 6459.0), record(0.93, -1.0, 6051.0)];
    let a = [common.clone(), vec![record(1.0, 1.0, 1.0)]].concat();
    let b = [common, vec![record(0.7, -1.0, 1.0)]].concat();
    let loss = |w: [f64; 2], penalty: f64, tau: f64| {
        (objective_log_density(&w, &a, penalty, tau) - objective_log_density(&w, &b, penalty, tau))
            .abs()
    };
    let published = loss([17.0, -20.0], 4.876_041_6, 2.222_222_2);
    assert!((published - 1.125_184_0).abs() < 1e-6, "{published}");
    // corrected: R² = 2, Λ = R²/(4(e^.1 − 1)), τ = 2R/(1 − .1)
    let penalty = 2.0 / (4.0 * 0.1_f64.exp_m1());
    let tau = 2.0 * 2.0_f64.sqrt() / 0.9;
    assert!((penalty - 4.754_166_0).abs() < 1e-7 && (tau - 3.142_696_8).abs() < 1e-7);
    let corrected = loss([17.0, -20.0], penalty, tau);
    assert!((corrected - 0.784_383_4).abs() < 1e-6, "{corrected}");
    let mut worst: f64 = 0.0;
    for w in 0..=60 {
        for v in -70..=0 {
            worst = worst.max(loss([f64::from(w), f64::from(v)], penalty, tau));
        }
    }
    assert!((worst - 0.831_176_2).abs() < 1e-6, "{worst}");
}

/// Rows of the cube's vertices, as triangles with weights per entry.
fn triangles(d: u32, intercept: f64, off_diagonal: f64) -> Vec<Vec<f64>> {
    (0..1_u32 << d)
        .map(|bits| {
            let row: Vec<f64> = std::iter::once(intercept)
                .chain((0..d).map(|i| f64::from(bits >> i & 1) - 0.5))
                .collect();
            let mut out = Vec::new();
            for i in 0..row.len() {
                for j in i..row.len() {
                    let weight = if i == j { 1.0 } else { off_diagonal };
                    out.push(weight * row[i] * row[j]);
                }
            }
            out
        })
        .collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b) * (a - b))
        .sum::<f64>()
        .sqrt()
}

/// Instance 11: sensitivities of second moments by brute force over the vertices of the cube.
#[test]
#[allow(clippy::approx_constant, reason = "printed golden values")]
fn moments() {
    let plain = [
        (1.1456, 1.0),
        (1.2990, 1.4142),
        (1.4577, 1.7321),
        (1.6202, 2.0),
        (1.7854, 2.2361),
        (1.9526, 2.5),
    ];
    let isometric = [0.7071, 1.0, 1.4142, 1.7321, 2.1213, 2.4495];
    for (d, ((added, replaced), iso)) in (1..=6).zip(plain.iter().zip(isometric)) {
        let rows = triangles(d, 1.0, 1.0);
        let zero = vec![0.0; rows[0].len()];
        let far = rows.iter().map(|r| distance(r, &zero)).fold(0.0, f64::max);
        let apart = |rows: &[Vec<f64>]| {
            rows.iter()
                .flat_map(|a| rows.iter().map(|b| distance(a, b)))
                .fold(0.0, f64::max)
        };
        assert!((far - added).abs() < 5e-5, "d={d} {far}");
        assert!(
            (apart(&rows) - replaced).abs() < 5e-5,
            "d={d} {}",
            apart(&rows)
        );
        let rows = triangles(d, 0.5, std::f64::consts::SQRT_2);
        let far = rows.iter().map(|r| distance(r, &zero)).fold(0.0, f64::max);
        assert!((far - f64::from(d + 1) / 4.0).abs() < 1e-12);
        assert!((apart(&rows) - iso).abs() < 5e-5, "d={d} {}", apart(&rows));
    }
    // L1 of six coordinates of one half: ((Σ|z|)² + ‖z‖²)/2
    let l1: f64 = triangles(5, 0.5, 1.0)
        .iter()
        .map(|r| r.iter().map(|v| v.abs()).sum())
        .fold(0.0, f64::max);
    assert!((l1 - 5.25).abs() < 1e-12);
}

/// Instance 11: the analytic Gaussian, by bisection on the exact curve.
#[test]
fn gaussian_calibration() {
    for (epsilon, delta, sigma) in [
        (0.01, 1.0 / 65536.0, 231.4077),
        (0.1, 1e-6, 36.30469),
        (1.0, 1e-6, 4.224_679),
        (10.0, 1e-6, 0.541_086_8),
    ] {
        let found = gaussian_sigma(epsilon, delta, 1.0);
        assert!((found / sigma - 1.0).abs() < 1e-6, "{epsilon} {found}");
        assert!((gaussian_epsilon(found, delta, 1.0) / epsilon - 1.0).abs() < 1e-6);
        // the published classical constant is wrong for large epsilon
        let classical = (2.0 * (1.25 / delta).ln()).sqrt() / epsilon;
        assert_eq!(
            gaussian_delta(classical, epsilon, 1.0) > delta,
            epsilon > 9.0
        );
    }
}

/// Instance 14: counts on the parts of a split at .4 and .6: under replacement a record may change sides.
#[test]
fn split_parts() {
    let audit = |e: Rational| {
        let fold = grid(vec![axis(0, reticent_mechanisms::fold::Cut::Whole(1))]);
        Audit::new(
            Universe::reals(0.0, 1.0, &[0.0]),
            1,
            Purchases::one(fold, Purchase::Counts(None, n::counts_step(e))),
            1,
        )
    };
    let events = [ratio(2, 5), ratio(3, 5)].map(|e| {
        let audit = audit(e);
        audit
            .mechanism
            .event(&audit.context(Relation::AddRemove))
            .unwrap()
    });
    let both = reticent_accounting::Event::Disjoint(events.to_vec());
    let price = both.price(Currency::Pure).unwrap();
    let under = |r: Relation| price.under(r).unwrap().amount.clone();
    assert_eq!(under(Relation::AddRemove), ratio(3, 5));
    // doubled inside the second part: 1.2; across: 1
    assert_eq!(under(Relation::ReplaceOne), ratio(6, 5));
    // enumerated: two counts side by side, units that belong to the first or the second part
    let tables = Universe::reals(0.0, 1.0, &[0.0, 1.0]).tables(3);
    let scale = |e: Rational| reticent_noise::Scale::at_least(&(ratio(1, 1) / e)).unwrap();
    let (first, second) = (
        scale(ratio(2, 5) * ratio(5, 1)),
        scale(ratio(3, 5) * ratio(5, 1)),
    );
    let found = losses(&tables, |t, noise| {
        let a = noise.lattice(&reticent_noise::Lattice::Laplace(first));
        let b = noise.lattice(&reticent_noise::Lattice::Laplace(second));
        (i128::from(t[0]) + a, i128::from(t[1]) + b)
    })
    .unwrap();
    // at five times the budget: 5 · .6 and 5 · (.4 + .6)
    assert!((found.add_remove.loss - 3.0).abs() < 1e-9);
    assert!((found.replace_one.loss - 5.0).abs() < 1e-9);
    assert_eq!(neighbours(&tables, Relation::ReplaceOne).len(), 1 + 2 + 3);
}
