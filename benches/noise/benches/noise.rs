//! One draw of discrete Laplace and discrete Gaussian noise, ours and OpenDP's exact samplers, in one run.
//!
//! `cargo bench --manifest-path benches/Cargo.toml -p bench-noise`

use std::hint::black_box;

use dashu::rational::RBig;
use divan::Bencher;
use opendp::traits::samplers::{sample_discrete_gaussian, sample_discrete_laplace};
use reticent_noise::{Draws, Lattice, Noise, Scale};

const SCALES: [u32; 3] = [1, 100, 1_000_000];

fn main() {
    divan::main();
}

fn scale(s: u32) -> Scale {
    Scale::at_least(&RBig::from(s)).expect("a scale")
}

#[divan::bench(args = SCALES, sample_size = 2000)]
fn laplace_ours(bencher: Bencher, s: u32) {
    let lattice = Lattice::Laplace(scale(s));
    let mut noise = Draws::from_os().expect("randomness");
    bencher.bench_local(|| noise.lattice(black_box(&lattice)));
}

#[divan::bench(args = SCALES, sample_size = 500)]
fn laplace_opendp(bencher: Bencher, s: u32) {
    let s = RBig::from(s);
    bencher.bench_local(|| sample_discrete_laplace(black_box(s.clone())).expect("a draw"));
}

#[divan::bench(args = SCALES, sample_size = 2000)]
fn gaussian_ours(bencher: Bencher, s: u32) {
    let lattice = Lattice::DiscreteGaussian(scale(s));
    let mut noise = Draws::from_os().expect("randomness");
    bencher.bench_local(|| noise.lattice(black_box(&lattice)));
}

#[divan::bench(args = SCALES, sample_size = 500)]
fn gaussian_opendp(bencher: Bencher, s: u32) {
    let s = RBig::from(s);
    bencher.bench_local(|| sample_discrete_gaussian(black_box(s.clone())).expect("a draw"));
}
