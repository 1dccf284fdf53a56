//! Figures 7 and 8 and Table 1 of the same paper: the area between the true and the private ROC curve of a test part.

use reticent_accounting::{Rational, Relation};
use reticent_laws::Seeded;
use reticent_mechanisms::Context;
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_noise::{Lattice, Noise, Scale};
use reticent_statistics::{Score, roc};
use serde_json::Value;

use super::empirical_ml::{SEED, facts, release};
use crate::real;
use crate::study::StudyError;

/// A test part: probability of label 1, and the label.
pub type Scored = Vec<(f64, bool)>;

/// How a curve is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// Noise of scale t/ε on the cumulative counts at t thresholds.
    Laplace(u32),
    /// Noise of scale 1/ε on the counts of this many even cells.
    FixedSpace(u32),
    /// Private medians with 2^k bins: the shipped release.
    Medians(u32),
    /// The shipped release with its own choice of bins.
    Rule,
}

/// (false positive rate, true positive rate), increasing, from (0, 0) to (1, 1).
type Points = Vec<(f64, f64)>;

/// From counts per cell, best scores first.
fn points(cells: impl IntoIterator<Item = (f64, f64)>) -> Points {
    let mut out = vec![(0.0, 0.0)];
    let (mut no, mut yes) = (0.0, 0.0);
    for (n, y) in cells {
        no += n;
        yes += y;
        out.push((no, yes));
    }
    normal(out)
}

/// Cumulative counts made increasing and divided by their ends.
fn normal(mut cumulative: Points) -> Points {
    let mut top = (0.0f64, 0.0f64);
    for p in &mut cumulative {
        top = (top.0.max(p.0), top.1.max(p.1));
        *p = top;
    }
    let safe = (top.0.max(1.0), top.1.max(1.0));
    let mut out: Points = cumulative
        .iter()
        .map(|p| (p.0 / safe.0, p.1 / safe.1))
        .collect();
    out.push((1.0, 1.0));
    out
}

fn exact(data: &Scored) -> Points {
    let mut sorted = data.clone();
    sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let groups = sorted.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq());
    points(groups.map(|g| {
        let yes = g.iter().filter(|r| r.1).count();
        (real(g.len() - yes), real(yes))
    }))
}

/// ∫|T₁ − T₂| over the false positive rate.
fn between(a: &Points, b: &Points) -> f64 {
    const STEPS: usize = 4000;
    let at = |p: &Points, x: f64| {
        let i = p.partition_point(|q| q.0 <= x);
        match (i.checked_sub(1).and_then(|i| p.get(i)), p.get(i)) {
            (Some(l), Some(r)) if r.0 > l.0 => l.1 + (r.1 - l.1) * (x - l.0) / (r.0 - l.0),
            (Some(l), _) => l.1,
            (None, _) => 0.0,
        }
    };
    let xs = (0..STEPS).map(|i| (real(i) + 0.5) / real(STEPS));
    xs.map(|x| (at(a, x) - at(b, x)).abs()).sum::<f64>() / real(STEPS)
}

#[allow(clippy::cast_precision_loss, reason = "counts of records")]
fn noisy(exact: usize, lattice: &Lattice, noise: &mut dyn Noise) -> f64 {
    real(exact) + noise.lattice(lattice) as f64
}

fn one(
    data: &Scored,
    curve: Curve,
    epsilon: &Rational,
    noise: &mut Seeded,
) -> Result<Points, StudyError> {
    let lattice = |times: u32| {
        let scale = Rational::from(times) / epsilon;
        Scale::at_least(&scale)
            .map(Lattice::Laplace)
            .map_err(StudyError::release)
    };
    let count = |yes: bool, inside: &dyn Fn(f64) -> bool| {
        data.iter().filter(|r| r.1 == yes && inside(r.0)).count()
    };
    match curve {
        Curve::Laplace(t) => {
            let law = lattice(t)?;
            let mut scores: Vec<f64> = data.iter().map(|r| r.0).collect();
            scores.sort_by(|a, b| b.total_cmp(a));
            let mut cumulative = vec![(0.0, 0.0)];
            for i in 1..=t as usize {
                let at = (scores.len() * i / t as usize).saturating_sub(1);
                let threshold = scores.get(at).copied().unwrap_or(0.0);
                let mut side = |yes| noisy(count(yes, &|s| s >= threshold), &law, noise);
                cumulative.push((side(false), side(true)));
            }
            Ok(normal(cumulative))
        }
        Curve::FixedSpace(cells) => {
            let law = lattice(1)?;
            let n = f64::from(cells);
            let each: Vec<(f64, f64)> = (0..cells)
                .rev()
                .map(|c| {
                    let inside = |s: f64| ((s * n).floor().min(n - 1.0) - f64::from(c)).abs() < 0.5;
                    let mut side = |yes| noisy(count(yes, &inside), &law, noise);
                    (side(false), side(true))
                })
                .collect();
            Ok(points(each))
        }
        Curve::Medians(_) | Curve::Rule => {
            let column = |name: &str| Column {
                name: name.to_owned(),
                kind: Kind::Real {
                    lower: 0.0,
                    upper: 1.0,
                },
                missing: Missing::Drop,
            };
            let schema = Schema {
                columns: vec![column("score"), column("label")],
            };
            let cells = vec![
                Cells::Real(data.iter().map(|r| r.0).collect()),
                Cells::Real(data.iter().map(|r| f64::from(u8::from(r.1))).collect()),
            ];
            let source = Memory::new(schema.clone().into(), vec![Batch::new(data.len(), cells)]);
            let context = Context::records(Relation::AddRemove);
            let mut facts = facts(&schema, &context);
            facts.rows = Some(real(data.len()));
            let config = roc::Config {
                bins: match curve {
                    Curve::Medians(k) => Some(1 << k),
                    _ => None,
                },
                ..roc::Config::new(epsilon.clone())
            };
            let score = Score::Probability(Expr::Column(0));
            let prepared = roc::prepare(&facts, &score, Expr::Column(1), config)
                .map_err(StudyError::release)?;
            let value = release(&source, &context, &prepared, noise)?;
            let mut list = super::list(&value, "curve");
            if list.is_empty() {
                list = super::list(&value, "vertices");
            }
            let of = |v: &Value, key: &str| v.get(key).and_then(Value::as_f64);
            let mut out: Points = list
                .iter()
                .filter_map(|v| Some((of(v, "fpr")?, of(v, "tpr")?)))
                .collect();
            out.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
            out.insert(0, (0.0, 0.0));
            out.push((1.0, 1.0));
            Ok(out)
        }
    }
}

/// Median over `runs` of the area between the true curve and a private one.
///
/// # Errors
/// When a release cannot be made.
pub fn error(
    data: &Scored,
    curve: Curve,
    epsilon: &Rational,
    runs: u32,
) -> Result<f64, StudyError> {
    let truth = exact(data);
    let mut all = (0..runs)
        .map(|run| {
            let mut noise = Seeded::stream(SEED + 4, u64::from(run));
            Ok(between(&truth, &one(data, curve, epsilon, &mut noise)?))
        })
        .collect::<Result<Vec<f64>, StudyError>>()?;
    all.sort_by(f64::total_cmp);
    Ok(all.get(all.len() / 2).copied().unwrap_or(f64::NAN))
}
