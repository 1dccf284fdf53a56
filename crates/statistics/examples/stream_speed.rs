//! How fast streams step: PeGaSus for one series against a straightforward grouper that recomputes the deviation from
//! all counts of the group, the filter banks, and many series per tick. All figures of one run, one core, by processor time.
//!
//! `cargo run --release -p reticent-statistics --example stream_speed`
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "rates for people"
)]

use reticent_accounting::{Rational, Relation};
use reticent_laws::Seeded;
use reticent_mechanisms::Context;
use reticent_mechanisms::stream::{
    Forest, Group, GroupNoise, Grouper, Mark, PARTS, Plan, Session, Split, State, Stream,
};
use reticent_noise::{Lattice, Noise, Scale};
use reticent_statistics::streams::{Bank, GroupSmoother, Hierarchy, Kernel, Size, Smoother};

/// Processor time of this process in seconds (Linux; in steps of 10 ms), or 0: other work on the machine does not count.
fn now() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = text.rsplit(')').next().unwrap_or_default();
    let fields = after.split_whitespace().skip(11).take(2);
    fields.filter_map(|f| f.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn rate(steps: usize, from: f64) -> f64 {
    steps as f64 / (now() - from).max(0.01)
}

fn law(scale: i64) -> Lattice {
    Lattice::Laplace(Scale::at_least(&Rational::from(scale)).unwrap_or(Scale::ZERO))
}

fn session(
    forest: Forest,
    grouper: Option<Grouper>,
) -> Result<Session, Box<dyn std::error::Error>> {
    let stream = Stream {
        name: "speed".to_owned(),
        epsilon: Rational::from(1_u8) / Rational::from(10_u8),
        forest,
        grouper,
        common: 0,
    };
    Ok(Session::new(stream, Context::records(Relation::AddRemove))?)
}

/// Deviation of the whole group at every step: O(g).
fn plain_grouper(counts: &[i64], theta: i64, law: &GroupNoise, noise: &mut dyn Noise) -> usize {
    let (mut group, mut level, mut joined): (Vec<i64>, i128, usize) = (Vec::new(), 0, 0);
    for count in counts {
        if group.is_empty() {
            level = i128::from(theta) + noise.lattice(&law.threshold);
            group.push(*count);
            continue;
        }
        group.push(*count);
        let mean = group.iter().sum::<i64>() as f64 / group.len() as f64;
        let deviation: f64 = group.iter().map(|c| (*c as f64 - mean).abs()).sum();
        if (deviation.floor() as i128) + noise.lattice(&law.deviation) < level {
            joined += 1;
        } else {
            group.clear();
        }
    }
    joined
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    one_series();
    banks();
    many_series()?;
    tree()
}

fn one_series() {
    let steps = 2_000_000;
    let busy: Vec<i64> = (0..steps)
        .map(|t| 40 + (t as i64 * 7919 % 13) - 6)
        .collect();
    let quiet: Vec<i64> = (0..steps).map(|t| i64::from(t % 977 == 0)).collect();
    let noises = GroupNoise {
        threshold: law(259),
        deviation: law(326),
    };
    let wide: Vec<i64> = (0..steps)
        .map(|t| 40 + (t as i64 * 7919 % 101) - 50)
        .collect();
    // θ far above any deviation of a few thousand ticks: groups of thousands of different counts
    for (name, counts, theta) in [
        ("busy", &busy, 250),
        ("busy, long groups", &wide, 100_000),
        ("quiet", &quiet, 1250),
        ("silent, long groups", &quiet, 20_000),
    ] {
        let mut noise = Seeded::new(1);
        let perturb = law(12);
        let mut group = Group::default();
        let mut smoother = GroupSmoother::new(Smoother::Median);
        let (start, mut joined) = (now(), 0_usize);
        for count in counts {
            let noisy = noise.lattice(&perturb) + i128::from(*count);
            let mark = group.push(*count, theta, &noises, &mut noise);
            joined += usize::from(mark == Mark::Joined);
            std::hint::black_box(smoother.push(mark, noisy as f64));
        }
        let whole = rate(steps, start);
        let (mut group, start) = (Group::default(), now());
        for count in counts {
            std::hint::black_box(group.push(*count, theta, &noises, &mut noise));
        }
        let ours = rate(steps, start);
        let part = if theta > 2000 { steps / 40 } else { steps / 4 };
        let start = now();
        std::hint::black_box(plain_grouper(&counts[..part], theta, &noises, &mut noise));
        let plain = rate(part, start);
        println!(
            "{name}: PeGaSus {:.2} million steps/s (groups of {:.1} ticks); grouper alone {:.2}, O(g) reference {:.3}, ratio {:.1}",
            whole / 1e6,
            steps as f64 / (steps - joined) as f64 * 2.0,
            ours / 1e6,
            plain / 1e6,
            ours / plain
        );
    }
}

fn banks() {
    for (name, size, season) in [
        ("large bank, season 288", Size::Large, Some(288)),
        ("large bank", Size::Large, None),
        ("small bank", Size::Small, None),
        ("node bank", Size::Node, None),
    ] {
        let kernel = Kernel::new(&size.cells(), 10.0);
        let mut bank = Bank::new(size, season);
        let mut noise = Seeded::new(2);
        let steps = 100_000;
        let noisy: Vec<i64> = (0..steps)
            .map(|t| 34 + (t as i64 * 7919 % 13) + noise.lattice(&law(10)) as i64)
            .collect();
        let start = now();
        for z in &noisy {
            std::hint::black_box(bank.observe(*z, &kernel));
        }
        println!(
            "{name}: {:.2} µs a tick, {} bytes",
            1e6 / rate(steps, start),
            bank.bytes()
        );
    }
}

fn many_series() -> Result<(), Box<dyn std::error::Error>> {
    let mut noise = Seeded::new(3);
    let n = 100_000;
    let mut flat = session(Forest::flat(n)?, None)?;
    let plan = flat.check(Plan::uniform(n, PARTS, 0))?;
    let mut grouped = session(
        Forest::flat(n)?,
        Some(Grouper {
            threshold: 250,
            split: Split::Optimal,
        }),
    )?;
    let group_plan = grouped.check(Plan::uniform(n, PARTS / 5 * 4, PARTS / 5))?;
    let kernel = Kernel::new(&Size::Node.cells(), 10.0);
    let mut banks = vec![Bank::new(Size::Node, None); n];
    let mut state = State::default();
    let counts: Vec<i64> = (0..n as i64).map(|i| i % 50).collect();
    let mut smoothers = vec![GroupSmoother::new(Smoother::Median); n];
    for _ in 0..3 {
        let mut tally = flat.tally();
        tally.add(&counts);
        let start = now();
        let out = flat
            .simulate(&mut State::default(), tally, &plan, &mut noise)?
            .0;
        let measured = now() - start;
        for (bank, z) in banks.iter_mut().zip(&out.counts) {
            std::hint::black_box(bank.observe(z.unwrap_or(0), &kernel));
        }
        let filtered = now() - start;
        let mut tally = grouped.tally();
        tally.add(&counts);
        let start = now();
        let out = grouped
            .simulate(&mut state, tally, &group_plan, &mut noise)?
            .0;
        for (s, (z, m)) in smoothers.iter_mut().zip(out.counts.iter().zip(&out.marks)) {
            std::hint::black_box(s.push(*m, z.unwrap_or(0) as f64));
        }
        println!(
            "{n} series: counts {measured:.2} s, with filters {filtered:.2} s; PeGaSus {:.2} s",
            now() - start
        );
    }
    Ok(())
}

fn tree() -> Result<(), Box<dyn std::error::Error>> {
    let mut noise = Seeded::new(4);
    let leaves = 100_000;
    let parent = |v: usize| (v > 0).then(|| ((v - 1) / 2) as u32);
    let forest = Forest::new((0..2 * leaves - 1).map(parent).collect())?;
    let mut tree = session(forest.clone(), None)?;
    let mut hierarchy = Hierarchy::new(forest, 10.0);
    let mut counts = vec![0_i64; 2 * leaves - 1];
    for (i, c) in counts.iter_mut().enumerate().skip(leaves - 1) {
        *c = i64::from(i % 100 == 0) * 60;
    }
    for tick in 0..6 {
        let mut tally = tree.tally();
        tally.add(&counts);
        let start = now();
        let plan = hierarchy.plan();
        let checked = tree.check(plan.clone())?;
        let out = tree
            .simulate(&mut State::default(), tally, &checked, &mut noise)?
            .0;
        std::hint::black_box(hierarchy.observe(&plan, &out.counts));
        let measured = out.counts.iter().flatten().count();
        println!(
            "tree of {leaves} leaves, tick {tick}: {measured} nodes measured, {:.2} s",
            now() - start
        );
    }
    Ok(())
}
