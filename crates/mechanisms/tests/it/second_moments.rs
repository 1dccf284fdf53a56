//! Second moments bought whole: noise off, and the noise that is added.

use reticent_accounting::{Rational, Relation, parse_decimal};
use reticent_laws::{Seeded, Silent};
use reticent_mechanisms::fold::{Fold, Shorten};
use reticent_mechanisms::primitives::{NoisyMoments, Payment, SecondMoments};
use reticent_mechanisms::{Context, FoldId};
use reticent_noise::Noise;

use crate::table::{buy, memory};

fn moments(
    columns: &[Vec<f64>],
    payment: Payment,
    batch: usize,
    noise: &mut dyn Noise,
) -> NoisyMoments {
    let step = SecondMoments {
        name: "moments".to_owned(),
        payment,
    };
    let context = Context::records(Relation::AddRemove);
    let fold = Fold::Moments {
        terms: 0..columns.len() - 1,
        response: Some(columns.len() - 1),
        shorten: Shorten {
            intercept: 0.25,
            squared_norm: f64::INFINITY,
        },
        bits: 24,
    };
    let event = step.event(&context);
    buy(
        &memory(columns, 0.5, batch),
        columns.len(),
        &context,
        event,
        vec![fold],
        noise,
        &move |desk| desk.second_moments(FoldId(0), &step),
    )
    .unwrap()
}

fn payments() -> [Payment; 3] {
    let one = || Rational::from(1u8);
    [
        Payment::Pure { epsilon: one() },
        Payment::Concentrated { rho: one() },
        Payment::Approximate {
            epsilon: one(),
            delta: parse_decimal("1e-6").unwrap(),
        },
    ]
}

#[test]
fn noise_off_gives_the_exact_sums() {
    let columns: Vec<Vec<f64>> = (0..4)
        .map(|c| {
            (0..700)
                .map(|i| f64::from((i * (c + 3) + c) % 65) / 64.0 - 0.5)
                .collect()
        })
        .collect();
    let mut z = vec![vec![0.25; 700]];
    z.extend(columns.iter().cloned());
    for payment in payments() {
        let got = moments(&columns, payment, 64, &mut Silent);
        let mut entries = got.entries.iter();
        for i in 0..5 {
            for j in i..5 {
                let want: f64 = z[i].iter().zip(&z[j]).map(|(a, b)| a * b).sum();
                assert_eq!(*entries.next().unwrap(), want, "{i} {j}");
            }
        }
        assert!(got.dimension == 5 && entries.next().is_none());
    }
}

#[test]
fn noise_has_the_stated_deviation() {
    // The mean of (noise/sd)² over k ≥ 1600 draws has deviation at most √(5/k) ≤ .056 (Laplace; less for Gaussians): it
    // leaves 1 ± .35, 6.2 deviations, with probability below 1e-9. A factor √2 in a deviation (2 in the mean) is caught.
    let empty = vec![vec![]; 3];
    for payment in payments() {
        let (mut on, mut off) = (Vec::new(), Vec::new());
        let mut noise = Seeded::new(31);
        for _ in 0..400 {
            let got = moments(&empty, payment.clone(), 10, &mut noise);
            let mut entries = got.entries.iter();
            for i in 0..4 {
                for j in i..4 {
                    let e = entries.next().unwrap();
                    if i == j {
                        on.push(e / got.sd_diagonal);
                    } else {
                        off.push(e / got.sd_off_diagonal);
                    }
                }
            }
            let ratio = got.sd_diagonal / got.sd_off_diagonal;
            let want = if matches!(payment, Payment::Pure { .. }) {
                1.0
            } else {
                std::f64::consts::SQRT_2
            };
            assert!((ratio - want).abs() < 1e-6);
        }
        for sample in [on, off] {
            let ratio = sample.iter().map(|x| x * x).sum::<f64>() / sample.len() as f64;
            assert!((0.65..1.35).contains(&ratio), "{payment:?} {ratio}");
        }
    }
}
