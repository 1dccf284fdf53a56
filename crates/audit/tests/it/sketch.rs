//! Gaussian rows over a private covariance. Laws come from the shipped code: what it asks the noise to draw, N(0, A)² for two rows. For a pair (A, B)
//! with generalised eigenvalues λ the log ratio under A is Σ (λ_i − 1)·E_i − ln λ_i, under B Σ (1 − 1/λ_i)·E_i − ln λ_i, E_i exponential: δ at the
//! claimed ε is exact, by formulas of its own.

use super::*;
use reticent_audit::purchases::Purchase;
use reticent_audit::tables::{neighbours, real};
use reticent_laws::Seeded;
use reticent_mechanisms::fold::Shorten;
use reticent_mechanisms::primitives::Sketch;
use reticent_mechanisms::rows::Schema;
use reticent_noise::{Correlated, Noise};

const DELTA: f64 = 1e-4;

/// What would be drawn.
#[derive(Default)]
struct Asked(Vec<Correlated>);

impl Noise for Asked {
    fn bits(&mut self) -> u64 {
        0
    }
    fn rows(&mut self, d: &Correlated) -> Vec<i128> {
        self.0.push(d.clone());
        vec![0; d.rows * d.dimension]
    }
}

/// Records of p coordinates, the corners among them; a grid of 2^−10.
fn sketch(p: usize, rows: u32, squared_norm: f64, most: u32) -> Audit {
    let step = Sketch {
        name: "sketch".to_owned(),
        epsilon: ratio(1, 1),
        delta: ratio(1, 10_000),
        rows,
    };
    let fold = Fold::Moments {
        terms: 0..p,
        response: None,
        shorten: Shorten {
            intercept: 0.0,
            squared_norm,
        },
        bits: 10,
    };
    let schema = Schema {
        columns: (["x", "w"].iter().take(p))
            .map(|n| real(n, -0.5, 0.5))
            .collect(),
    };
    let points: &[[f64; 2]] = &[[0.5, 0.5], [0.5, -0.5], [-0.25, 0.125], [0.0, 0.5]];
    let records = points.iter().map(|r| r[..p].to_vec()).collect();
    let purchase = Purchases::one(fold, Purchase::Sketch(step));
    Audit::new(Universe::rows(schema, records), p, purchase, most)
}

/// S + w²I of a table, two coordinates at most (a missing one has variance 1 everywhere).
fn covariance(audit: &Audit, calibrated: Relation, table: &Multiset, added: f64) -> [f64; 3] {
    let source = audit.universe.source(table);
    let mut asked = Asked::default();
    audit
        .with(calibrated, |case| case.run(&source, &mut asked))
        .unwrap();
    let law = &asked.0[0];
    assert_eq!((asked.0.len(), law.rows), (1, 2));
    let added = law.added.to_f64().value() * added;
    #[allow(clippy::cast_precision_loss, reason = "a few records")]
    let entry = |i: usize| law.moments[i] as f64;
    if law.dimension == 1 {
        [entry(0) + added, 0.0, 1.0]
    } else {
        [entry(0) + added, entry(1), entry(2) + added]
    }
}

/// P[a·E₁ + b·E₂ > t] for exponential E.
fn tail(a: f64, b: f64, t: f64) -> f64 {
    let (a, b) = (a.max(b), a.min(b));
    if a <= 0.0 {
        // both at most 0
        return if t >= 0.0 {
            0.0
        } else {
            1.0 - tail(-b, -a, -t)
        };
    }
    if b < 0.0 {
        return if t >= 0.0 {
            a / (a - b) * (-t / a).exp()
        } else {
            1.0 + b / (a - b) * (-t / b).exp()
        };
    }
    if t <= 0.0 {
        1.0
    } else if b == 0.0 {
        (-t / a).exp()
    } else if (a - b) / a < 1e-9 {
        (1.0 + t / a) * (-t / a).exp()
    } else {
        (a * (-t / a).exp() - b * (-t / b).exp()) / (a - b)
    }
}

/// Generalised eigenvalues of (A, B).
fn ratios(a: [f64; 3], b: [f64; 3]) -> [f64; 2] {
    let determinant = b[0] * b[2] - b[1] * b[1];
    let trace = (a[0] * b[2] - 2.0 * a[1] * b[1] + a[2] * b[0]) / determinant;
    let product = (a[0] * a[2] - a[1] * a[1]) / determinant;
    let root = (0.25 * trace * trace - product).max(0.0).sqrt();
    let large = 0.5 * trace + root;
    let clean = |l: f64| if (l - 1.0).abs() < 1e-12 { 1.0 } else { l };
    [clean(large), clean(product / large)]
}

/// P(L > ε) − e^ε·P′(L > ε), the worse of the two directions.
fn delta(epsilon: f64, a: [f64; 3], b: [f64; 3]) -> f64 {
    let one_way = |[x, y]: [f64; 2]| {
        let t = epsilon + x.ln() + y.ln();
        let (here, there) = (
            tail(x - 1.0, y - 1.0, t),
            tail(1.0 - 1.0 / x, 1.0 - 1.0 / y, t),
        );
        here - epsilon.exp() * there
    };
    one_way(ratios(a, b)).max(one_way(ratios(b, a)))
}

/// Worst δ under each relation when calibrated for one, with a part of what is added.
fn worst(audit: &Audit, calibrated: Relation, part: f64) -> [f64; 2] {
    let laws: Vec<[f64; 3]> = (audit.tables.iter())
        .map(|t| covariance(audit, calibrated, t, part))
        .collect();
    RELATIONS.map(|relation| {
        let (epsilon, _) = claimed(calibrated, relation);
        (neighbours(&audit.tables, relation).iter())
            .map(|(i, j)| delta(epsilon, laws[*i], laws[*j]))
            .fold(0.0, f64::max)
    })
}

/// (ε, δ) as priced.
fn claimed(calibrated: Relation, relation: Relation) -> (f64, f64) {
    match (calibrated, relation) {
        (Relation::AddRemove, Relation::ReplaceOne) => (2.0, DELTA * (1.0 + 1f64.exp())),
        _ => (1.0, DELTA),
    }
}

/// All tables of up to three records of one and two coordinates, rows within their box or shortened: δ is at most what is paid, under both
/// relations and both calibrations.
#[test]
fn losses_are_paid_for() {
    for p in [1, 2] {
        for squared_norm in [f64::INFINITY, 0.2] {
            let audit = sketch(p, 2, squared_norm, 3);
            for calibrated in RELATIONS {
                let context = audit.context(calibrated);
                let event = audit.mechanism.event(&context).unwrap();
                let price = event.price(Currency::Approximate).unwrap();
                let found = worst(&audit, calibrated, 1.0);
                for (relation, found) in RELATIONS.into_iter().zip(found) {
                    let (epsilon, delta) = claimed(calibrated, relation);
                    let paid = price.under(relation).unwrap();
                    assert!((paid.amount.to_f64().value() - epsilon).abs() < 1e-12);
                    let paid = paid.delta.to_f64().value();
                    assert!(paid >= delta * (1.0 - 1e-12) && paid < delta * (1.0 + 1e-9));
                    assert!(found <= delta, "{p} {calibrated} {relation}: {found}");
                }
            }
        }
    }
}

/// The proofs' worst pairs are among the tables: the longest record beside none (one coordinate suffices), and two orthogonal corners.
#[test]
fn worst_pairs_reach_the_claim() {
    let reached = [
        worst(&sketch(1, 2, f64::INFINITY, 1), Relation::AddRemove, 1.0)[0],
        worst(&sketch(2, 2, f64::INFINITY, 1), Relation::AddRemove, 1.0)[0],
        worst(&sketch(2, 2, f64::INFINITY, 1), Relation::ReplaceOne, 1.0)[1],
    ];
    for delta in reached {
        assert!(delta <= DELTA && delta > 0.9999 * DELTA, "{reached:?}");
    }
}

/// Canary: 5 % less is added than is paid for.
#[test]
fn weaker_is_flagged() {
    for (i, calibrated) in RELATIONS.into_iter().enumerate() {
        let found = worst(&sketch(2, 2, f64::INFINITY, 1), calibrated, 0.95)[i];
        assert!(found > 1.2 * DELTA, "{calibrated}: {found}");
    }
}

/// Units of two records: both of them at once.
#[test]
fn units_of_several_records() {
    let mut audit = sketch(2, 2, f64::INFINITY, 2);
    audit.rows_per_unit = 2;
    for (i, calibrated) in RELATIONS.into_iter().enumerate() {
        let laws: Vec<[f64; 3]> = (audit.tables.iter())
            .map(|t| covariance(&audit, calibrated, t, 1.0))
            .collect();
        let size = |t: usize| audit.tables[t].iter().sum::<u32>();
        let mut worst = 0f64;
        for a in 0..laws.len() {
            for b in 0..laws.len() {
                // one unit comes or goes, or any two records are replaced by any two
                let neighbours = if i == 0 {
                    size(a) == 0
                } else {
                    size(a) == size(b)
                };
                if neighbours {
                    worst = worst.max(delta(1.0, laws[a], laws[b]));
                }
            }
        }
        assert!(
            worst <= DELTA && worst > 0.01 * DELTA,
            "{calibrated} {worst}"
        );
    }
}

/// What leaves is rows of that law: 20 runs of 1,000 rows of one coordinate, Σz² over its expectation within 7 deviations of √(2/20000) (false alarm below
/// 1e-11), which catches a variance wrong by 8 %.
#[test]
fn released_rows_have_the_law() {
    let audit = sketch(1, 1000, f64::INFINITY, 0);
    let table = vec![60, 0, 0, 0];
    let source = audit.universe.source(&table);
    let (mut asked, mut noise) = (Asked::default(), Seeded::new(92));
    let mut total = 0.0;
    audit.with(Relation::AddRemove, |case| {
        case.run(&source, &mut asked).unwrap();
        for _ in 0..20 {
            let (value, _) = case.run(&source, &mut noise).unwrap();
            let rows = value[0].as_array().unwrap();
            assert_eq!(rows.len(), 1000);
            total += (rows.iter())
                .map(|z| z.as_f64().unwrap().powi(2) / 20_000.0)
                .sum::<f64>();
        }
    });
    let law = &asked.0[0];
    // in units of 4^−10; the records have ¼ each
    assert_eq!(law.moments, [60 << 18]);
    let unit = f64::from(1 << 20);
    let want = 15.0 + law.added.to_f64().value() / unit;
    let off = (total / want - 1.0) / (2.0f64 / 20_000.0).sqrt();
    assert!(off.abs() < 7.0, "{total} {want}");
}
