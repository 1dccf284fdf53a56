//! Objective perturbation as shipped: its minimiser is run with given b, so that the density of what leaves comes from the
//! solver itself and from the scale it asked for, not from a formula.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "test arithmetic on small numbers"
)]

use std::sync::Arc;

use reticent_accounting::{AccountingError, Currency, Event, Rational, Relation};
use reticent_audit::density::log_determinant;
use reticent_mechanisms::primitives::Objective;
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Answer, Context, Desk, DeskError, Mechanism, Simulated, Unit, simulate};
use reticent_noise::{GammaNorm, Noise};

use super::{RELATIONS, columns, ratio};

/// Fractional bits of b, as the solver counts it.
const BITS: i32 = 84;

struct Fit(Objective);

impl Mechanism for Fit {
    fn kind(&self) -> &'static str {
        "fit"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(self.0.event(context))
    }
    fn first_pass(&self) -> Vec<reticent_mechanisms::fold::Fold> {
        Vec::new()
    }
    fn passes(&self) -> u32 {
        1
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        Ok(Answer {
            value: desk.objective(&self.0)?.coefficients.into(),
            ..Answer::default()
        })
    }
}

/// Gives b when the linear term is drawn, no noise on the solver's answer, and keeps what was asked for.
struct Script {
    linear: Vec<i128>,
    asked: Vec<GammaNorm>,
}

impl Noise for Script {
    fn bits(&mut self) -> u64 {
        panic!("the step draws two vectors and nothing else")
    }
    fn vector(&mut self, d: &GammaNorm) -> Vec<i128> {
        self.asked.push(d.clone());
        if self.asked.len() == 1 {
            self.linear.clone()
        } else {
            vec![0; d.dimension]
        }
    }
}

/// A record: covariate and outcome ±1.
type Record = (f64, f64);

struct Setting {
    step: Objective,
    context: Context,
    /// Λ.
    penalty: f64,
    /// The scale of b that the shipped step asks for.
    tau: f64,
}

impl Setting {
    /// One covariate in ±`radius`, rows in the unit ball. ε_o, 99 % of the price, is 1.
    fn new(relation: Relation, penalty: (i64, u64), radius: f64, intercept: Option<f64>) -> Self {
        let step = Objective {
            name: "fit".to_owned(),
            epsilon: ratio(100, 99),
            covariates: 0..1,
            outcome: 1,
            intercept,
            radius,
            penalty: ratio(penalty.0, penalty.1),
        };
        let mut setting = Self {
            penalty: penalty.0 as f64 / penalty.1 as f64,
            context: Context::records(relation),
            step,
            tau: 0.0,
        };
        let (_, asked) = setting.shipped(&[], &vec![0.0; setting.step.dimension()]);
        let [linear, cover] = asked.as_slice() else {
            panic!("{asked:?}")
        };
        // the cover is 2γ/(Λε_s) wide: far below everything measured here
        assert!(linear.bits == BITS as u32 && cover.scale < ratio(1, 1_000_000));
        setting.tau = linear.scale.to_f64().value();
        setting
    }

    /// What the shipped step answers when b is drawn, and what it asked the noise for.
    fn shipped(&self, table: &[Record], b: &[f64]) -> (Vec<f64>, Vec<GammaNorm>) {
        let real = |name: &str, lower: f64| Column {
            name: name.to_owned(),
            kind: Kind::Real { lower, upper: 1.0 },
            missing: Missing::Drop,
        };
        let schema = Schema {
            columns: vec![real("x", -1.0), real("y", 0.0)],
        };
        let cells = vec![
            Cells::Real(table.iter().map(|r| r.0).collect()),
            Cells::Real(table.iter().map(|r| f64::midpoint(r.1, 1.0)).collect()),
        ];
        let source = Memory::new(Arc::new(schema), vec![Batch::new(table.len(), cells)]);
        let mut script = Script {
            linear: b.iter().map(|b| libm::ldexp(*b, BITS) as i128).collect(),
            asked: Vec::new(),
        };
        let fit = Fit(self.step.clone());
        let Simulated((answer, _)) = simulate(
            &source,
            Unit::Row,
            &self.context,
            &columns(2),
            &fit,
            &mut script,
        )
        .unwrap();
        let w = answer.value.as_array().unwrap().iter();
        (w.map(|w| w.as_f64().unwrap()).collect(), script.asked)
    }

    fn row(&self, x: f64) -> Vec<f64> {
        self.step.intercept.into_iter().chain([x]).collect()
    }

    /// b_D(w) = −∇(Σ loss + (Λ/2)‖w‖²) and its Jacobian's negative, the Hessian, by the formulas.
    fn formulas(&self, table: &[Record], w: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let p = w.len();
        let mut b: Vec<f64> = w.iter().map(|w| -self.penalty * w).collect();
        let mut hessian = vec![vec![0.0; p]; p];
        for (x, y) in table {
            let x = self.row(*x);
            let z: f64 = y * x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>();
            let s = 1.0 / (1.0 + z.exp());
            for i in 0..p {
                b[i] += y * s * x[i];
                for j in 0..p {
                    hessian[i][j] += s * (1.0 - s) * x[i] * x[j];
                }
            }
        }
        for (i, row) in hessian.iter_mut().enumerate() {
            row[i] += self.penalty;
        }
        (b, hessian)
    }

    /// ‖b‖ and ln det(−∂w/∂b) where the shipped step answers w: b is found by running it, the derivative by running it
    /// on both sides (central differences of fourth order).
    fn measured(&self, table: &[Record], w: &[f64]) -> (f64, f64) {
        let p = w.len();
        let (mut b, hessian) = self.formulas(table, w);
        for _ in 0..3 {
            let (got, _) = self.shipped(table, &b);
            let off: Vec<f64> = got.iter().zip(w).map(|(g, w)| g - w).collect();
            for (b, h) in b.iter_mut().zip(&hessian) {
                *b += h.iter().zip(&off).map(|(h, o)| h * o).sum::<f64>();
            }
        }
        let (got, _) = self.shipped(table, &b);
        for (got, w) in got.iter().zip(w) {
            assert!((got - w).abs() < 1e-9, "{table:?}: {got} for {w}");
        }
        let h = 0.02;
        let mut inverse = vec![vec![0.0; p]; p];
        for j in 0..p {
            let at = |t: f64| {
                let mut b = b.clone();
                b[j] += t * h;
                self.shipped(table, &b).0
            };
            let (a1, a2, c1, c2) = (at(-1.0), at(-2.0), at(1.0), at(2.0));
            for i in 0..p {
                inverse[i][j] = (8.0 * (a1[i] - c1[i]) - (a2[i] - c2[i])) / (12.0 * h);
            }
        }
        let norm = b.iter().map(|b| b * b).sum::<f64>().sqrt();
        (norm, log_determinant(inverse))
    }

    /// The largest log ratio of the densities −‖b‖/τ − ln det(−∂w/∂b) of two tables over points w, with the asked scale
    /// times `cut`. Every one agrees with the proof's formula.
    fn loss(&self, a: &[Record], b: &[Record], points: &[Vec<f64>], cut: f64) -> f64 {
        let scale = cut * self.tau;
        let log = |(norm, spread): (f64, f64)| -norm / scale - spread;
        let formula = |table: &[Record], w: &[f64]| {
            let (b, hessian) = self.formulas(table, w);
            log_determinant(hessian) - b.iter().map(|b| b * b).sum::<f64>().sqrt() / scale
        };
        let mut worst = 0.0_f64;
        for w in points {
            let loss = log(self.measured(a, w)) - log(self.measured(b, w));
            let want = formula(a, w) - formula(b, w);
            assert!(
                (loss - want).abs() < 1e-6,
                "{loss} at {w:?}, {want} by the formulas"
            );
            worst = worst.max(loss.abs());
        }
        worst
    }
}

fn line(from: i32, to: i32, parts: i32) -> Vec<Vec<f64>> {
    (from * parts..=to * parts)
        .map(|i| vec![f64::from(i) / f64::from(parts)])
        .collect()
}

fn price(setting: &Setting) -> f64 {
    let relation = setting.context.relation;
    let price = setting.step.event(&setting.context).price(Currency::Pure);
    let amount: Rational = price.unwrap().under(relation).unwrap().amount.clone();
    amount.to_f64().value()
}

/// Drawing b and minimising is the proved bijection, to the certificate's γ = 10⁻⁹R: −∇ at the answer is b.
#[test]
fn shipped_minimiser_inverts_the_gradient() {
    let tables: [&[Record]; 4] = [
        &[],
        &[(1.0, 1.0)],
        &[(0.8, 1.0), (-0.5, 1.0), (0.25, -1.0)],
        &[(1.0, -1.0); 40],
    ];
    for intercept in [None, Some(0.2)] {
        let radius = if intercept.is_some() { 0.8 } else { 1.0 };
        for penalty in [(1, 4), (10, 1)] {
            let setting = Setting::new(Relation::AddRemove, penalty, radius, intercept);
            for table in tables {
                let table: Vec<Record> = table.iter().map(|r| (radius * r.0, r.1)).collect();
                let mut last = f64::INFINITY;
                for i in -12..=12_i32 {
                    let b: Vec<f64> = (0..setting.step.dimension())
                        .map(|j| 2.5 * f64::from(i) - 3.0 * j as f64)
                        .collect();
                    let (w, _) = setting.shipped(&table, &b);
                    let (back, _) = setting.formulas(&table, &w);
                    let off = b.iter().zip(&back).map(|(a, b)| (a - b) * (a - b));
                    // γ, the margin of a shortened row (2^−38 of at most 40 rows) and the doubles of this check
                    assert!(off.sum::<f64>().sqrt() < 1e-9 + 4e-10, "{table:?} at {b:?}");
                    if intercept.is_none() {
                        assert!(w[0] < last);
                        last = w[0];
                    }
                }
            }
        }
    }
}

/// The worst loss of shipped neighbours, per relation: at Λ = ¼ the determinant rules (instance 2: .6514373), at Λ = 10 the
/// noise. The price is 1.0101.
#[test]
fn shipped_losses() {
    let mut found = Vec::new();
    let mut points = line(-9, 9, 8);
    points.push(vec![1.0425]);
    for (relation, pairs) in RELATIONS.into_iter().zip([
        [
            (vec![], vec![(1.0, 1.0)]),
            (vec![(0.5, -1.0); 3], vec![(0.5, -1.0); 4]),
        ],
        [
            (vec![(1.0, 1.0)], vec![(1.0, -1.0)]),
            (vec![(1.0, 1.0), (0.5, 1.0)], vec![(1.0, 1.0), (1.0, 1.0)]),
        ],
    ]) {
        for penalty in [(1, 4), (10, 1)] {
            let setting = Setting::new(relation, penalty, 1.0, None);
            let worst = pairs
                .iter()
                .map(|(a, b)| setting.loss(a, b, &points, 1.0))
                .fold(0.0, f64::max);
            assert!(worst <= price(&setting), "{relation} {penalty:?}: {worst}");
            found.push(worst);
        }
    }
    super::golden::close(
        &found,
        &[0.651_437_3, 0.975_174_7, 0.253_440_7, 0.487_653_7],
        1e-6,
    );
}

/// A scale of b cut to .95 r must exceed the price.
#[test]
fn shipped_canary() {
    let setting = Setting::new(Relation::AddRemove, (10, 1), 1.0, None);
    let points = line(-9, -8, 4);
    let (a, b) = ([], [(1.0, 1.0)]);
    let whole = setting.loss(&a, &b, &points, 1.0);
    let price = price(&setting);
    assert!(whole > 0.96 * price && whole <= price, "{whole}");
    let cut = setting.loss(&a, &b, &points, 0.95 * whole / price);
    assert!(cut > price, "{cut}");
}

/// Two coefficients, the intercept inside the norm: the shipped answers' densities on a grid.
#[test]
fn shipped_losses_with_intercept() {
    let points: Vec<Vec<f64>> = (-2..=2)
        .flat_map(|i| (-4..=4).map(move |j| vec![f64::from(i) * 2.0, f64::from(j) * 1.5]))
        .collect();
    let common = vec![(0.5, 1.0), (-0.25, -1.0)];
    let with = |r: Record| [common.clone(), vec![r]].concat();
    let mut found = Vec::new();
    for relation in RELATIONS {
        let setting = Setting::new(relation, (1, 2), 0.8, Some(0.2));
        let pair = match relation {
            Relation::AddRemove => (common.clone(), with((0.8, 1.0))),
            Relation::ReplaceOne => (with((0.8, 1.0)), with((0.8, -1.0))),
        };
        let worst = setting.loss(&pair.0, &pair.1, &points, 1.0);
        assert!(worst <= price(&setting), "{relation}: {worst}");
        found.push(worst);
    }
    super::golden::close(&found, &[0.695_987_4, 0.353_516_5], 1e-6);
}
