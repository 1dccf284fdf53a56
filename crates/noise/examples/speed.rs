//! Nanoseconds per draw: `cargo run --release -p reticent-noise --example speed`.

use std::hint::black_box;
use std::time::Instant;

use reticent_noise::{Cell, Draws, GammaNorm, Lattice, LogWeights, Noise, Rational, Scale};

/// The fastest of many short batches: other work on the machine only makes a batch slower.
fn time(label: &str, unit: &str, mut draw: impl FnMut()) {
    let mut batch = |runs: u32| {
        let start = Instant::now();
        for _ in 0..runs {
            draw();
        }
        start.elapsed().as_secs_f64()
    };
    let mut runs = 1_u32;
    while batch(runs) < 2e-3 && runs < 1 << 28 {
        runs *= 2;
    }
    let fastest = (0..80).map(|_| batch(runs)).fold(f64::INFINITY, f64::min);
    println!(
        "{label:<44} {:>12.1} ns per {unit}",
        fastest * 1e9 / f64::from(runs)
    );
}

fn main() -> Result<(), reticent_noise::NoiseError> {
    let mut noise = Draws::from_os()?;
    time("64 bits", "word", || {
        black_box(noise.bits());
    });
    time("process id", "call", || {
        black_box(std::process::id());
    });
    for (text, n, d) in [
        (".1", 1_u64, 10_u64),
        ("1", 1, 1),
        ("100", 100, 1),
        ("1e6", 1_000_000, 1),
        ("2^40", 1 << 40, 1),
        ("2^90", u64::MAX, 1),
    ] {
        let mut x = Rational::from(n) / Rational::from(d);
        if text == "2^90" {
            x *= Rational::from(1_u64 << 26);
        }
        let s = Scale::at_least(&x)?;
        for lattice in [
            Lattice::Laplace(s),
            Lattice::Geometric(s),
            Lattice::DiscreteGaussian(s),
            Lattice::RoundedGaussian(s),
        ] {
            time(&format!("{}, scale {text}", lattice.name()), "draw", || {
                black_box(noise.lattice(black_box(&lattice)));
            });
        }
    }
    let dynamic: &mut dyn Noise = &mut noise;
    let lattice = Lattice::Laplace(Scale::at_least(&Rational::ONE)?);
    time("discrete Laplace, scale 1, dyn", "draw", || {
        black_box(dynamic.lattice(black_box(&lattice)));
    });
    for cells in [4_u128, 4096, 1_000_000] {
        let w = LogWeights {
            rate: Rational::from(1_u64) / Rational::from(10_u64),
            cells: (0..cells)
                .map(|i| Cell {
                    loss: i.abs_diff(cells / 2),
                    multiplicity: 3,
                })
                .collect(),
        };
        time(&format!("choice among {cells} cells"), "choice", || {
            black_box(noise.choose(black_box(&w)));
        });
    }
    for dimension in [1, 5, 50] {
        let d = GammaNorm {
            dimension,
            scale: Rational::from(3_u64),
            bits: 40,
        };
        time(
            &format!("gamma-norm vector, dimension {dimension}"),
            "vector",
            || {
                black_box(noise.vector(black_box(&d)));
            },
        );
    }
    Ok(())
}
