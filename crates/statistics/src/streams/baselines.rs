//! Methods that PeGaSus is compared with. They add noise to exact counts of their own accord, so they are for public
//! data only: results are marked [`Simulated`].

use reticent_mechanisms::Simulated;
use reticent_noise::{Lattice, Noise, NoiseError, Rational, Scale};

fn laplace(scale: &Rational) -> Result<Lattice, NoiseError> {
    Ok(Lattice::Laplace(Scale::at_least(scale)?))
}

/// The dyadic nodes of one block and their noisy sums; level 0 holds the counts.
struct Tree(Vec<Vec<f64>>);

impl Tree {
    fn new(counts: &[i64], levels: u32, law: &Lattice, noise: &mut dyn Noise) -> Self {
        let mut nodes = Vec::new();
        for level in 0..levels {
            let sums = counts.chunks(1 << level).map(|part| {
                let exact: i64 = part.iter().sum();
                noise.lattice(law) as f64 + exact as f64
            });
            nodes.push(sums.collect());
        }
        Self(nodes)
    }

    /// Sum of the counts from..to, over the largest dyadic nodes inside.
    fn sum(&self, mut from: usize, to: usize) -> f64 {
        let mut total = 0.0;
        while from < to {
            let mut level = 0;
            while level + 1 < self.0.len()
                && from.is_multiple_of(2 << level)
                && from + (2 << level) <= to
            {
                level += 1;
            }
            total += self.0[level][from >> level];
            from += 1 << level;
        }
        total
    }
}

/// SW_w (Bolot et al. 2013): a binary tree on every block of w counts, each node with noise (levels)/ε; a window is a
/// suffix of one block and a prefix of the next. Sums of the windows that end at each tick.
pub fn window_trees(
    counts: &[i64],
    window: usize,
    epsilon: &Rational,
    noise: &mut dyn Noise,
) -> Result<Simulated<Vec<f64>>, NoiseError> {
    let window = window.max(1);
    let levels = window.next_power_of_two().ilog2() + 1;
    let law = laplace(&(Rational::from(levels) / epsilon))?;
    let trees: Vec<Tree> = counts
        .chunks(window)
        .map(|block| Tree::new(block, levels, &law, noise))
        .collect();
    let sums = (0..counts.len()).map(|t| {
        let (block, end) = (t / window, t % window + 1);
        let before = if block > 0 {
            trees[block - 1].sum(end, window)
        } else {
            0.0
        };
        before + trees[block].sum(0, end)
    });
    Ok(Simulated(sums.collect()))
}

/// The binary mechanism (Chan, Shi, Song 2010; Dwork et al. 2010) for a known length: running totals from a dyadic tree
/// over all ticks, noise (levels)/ε on each node.
pub fn binary_tree(
    counts: &[i64],
    epsilon: &Rational,
    noise: &mut dyn Noise,
) -> Result<Simulated<Vec<f64>>, NoiseError> {
    let levels = counts.len().next_power_of_two().ilog2() + 1;
    let tree = Tree::new(
        counts,
        levels,
        &laplace(&(Rational::from(levels) / epsilon))?,
        noise,
    );
    Ok(Simulated(
        (1..=counts.len()).map(|t| tree.sum(0, t)).collect(),
    ))
}

#[cfg(test)]
mod tests {
    use reticent_laws::{Seeded, Silent};

    use super::*;

    #[test]
    fn without_noise_the_sums_are_exact() {
        let counts: Vec<i64> = (0..37).map(|i| i * i % 11).collect();
        let epsilon = Rational::from(1_u8);
        for w in [1, 2, 5, 8, 16] {
            let sums = window_trees(&counts, w, &epsilon, &mut Silent).unwrap().0;
            for (t, sum) in sums.iter().enumerate() {
                let want: i64 = counts[(t + 1).saturating_sub(w)..=t].iter().sum();
                assert!((sum - want as f64).abs() < 1e-9, "{w} {t}");
            }
        }
        let totals = binary_tree(&counts, &epsilon, &mut Silent).unwrap().0;
        let mut want = 0;
        for (total, c) in totals.iter().zip(&counts) {
            want += c;
            assert!((total - want as f64).abs() < 1e-9);
        }
    }

    /// Full windows of 8 use at most 2·3 nodes of variance about 2·16: below 6·32 by a wide margin of chance.
    /// 4,000 windows; a scale off by half would show (mean of squares 140 ± 5).
    #[test]
    fn noise_is_that_of_few_nodes() {
        let sums = window_trees(
            &vec![0; 4000],
            8,
            &Rational::from(1_u8),
            &mut Seeded::new(5),
        );
        let squares = sums.unwrap().0.iter().map(|s| s * s).sum::<f64>() / 4000.0;
        assert!((60.0..200.0).contains(&squares), "{squares}");
    }
}
