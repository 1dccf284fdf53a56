//! A private decomposition tree by biased counts (PrivTree).

use std::ops::Range;

use reticent_accounting::exp::exp_lower;
use reticent_accounting::{Event, Rational, Relation};
use reticent_noise::{Lattice, Scale};

use super::cells::{grid, prefix_sums};
use super::payment::calibrated;
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId, misuse};

/// Which nodes of a public tree over a grid hold many records.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let step = SplitTree {
///     name: "tree".to_owned(),
///     epsilon: Rational::from(40u8),
///     threshold: 20,
///     decay: 1,
///     height: 2,
///     fanout: 2,
///     columns: 4,
/// };
/// // The root and its left half hold many records, the right half none.
/// let nodes = buy(&[60, 60, 0, 0], &[4], step.event(&context()), |desk, ages| desk.split_tree(ages, &step));
/// assert_eq!(nodes.iter().filter(|n| n.cells() == 1).count(), 2);
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit; replace-one at most 2ε when calibrated for add/remove. Only the tree is released.
/// # Assumptions
/// The nodes are public: a node's rectangle is cut into at most `fanout` near-equal parts along every axis. At most
/// H = `height` nodes of a path are decided on (nodes of one cell, and nodes at depth H, are not).
/// # Sensitivity
/// A record is in one node per depth, and its count is the largest at the root: counts fall along a path.
/// # Noise
/// v at depth i is split iff max(c(v) − i·δ, θ − δ) + Z > θ, Z discrete Laplace of scale λ, δ ≥ 1 a whole number of records.
/// λ·ε/k ≥ K(H) under add/remove and ≥ K(H−1) + 1 under replace-one, K(H) = 1 + Σ_{j=0}^{H−2} 1/(2e^{jδ/λ} − 1); λ is the smallest such
/// scale up to a part in 2³⁰, found by bisection and verified for the very scale that is drawn with.
/// # Composition
/// One more record. Not split: a path has at most one such decision, loss ≤ 1/λ. Split: the loss of a node is ∫₀¹ h(x+t)dt,
/// x = c − iδ, with h = 0 below θ − δ, 1/λ on [θ−δ, θ) and (1/λ)/(2e^{(v−θ)/λ} − 1) above. From the bottom of the path up, x rises by at
/// least δ per level, so at most one node is in the flat part and the j-th above it adds at most (1/λ)/(2e^{jδ/λ} − 1).
/// Together ≤ K(H)/λ. Replace-one at one size: the root does not move; the gaining path costs K(H−1)/λ, the losing path 1/λ.
/// With K(H) ≤ K(H−1) + 1, add/remove then costs no more.
/// # Arithmetic
/// Integers; the sums of K are bounded above with a certified lower bound of e^{δ/λ} (at most e⁴ of it is used).
/// # Checked by
/// `split_tree::golden_biased_counts`, `split_tree::enumerated`, `split_tree::canary`, `split_tree::tests::scales_satisfy_their_bound`
/// # References
/// `privacy.md` §9.1 (b); `decisions.md` table and golden 10; Zhang, Xiao, Xie 2016.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitTree {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the step for the context's relation and unit.
    pub epsilon: Rational,
    /// θ: nodes whose biased count exceeds it tend to be split.
    pub threshold: i128,
    /// δ ≥ 1: the bias per level.
    pub decay: u32,
    /// H: number of decisions along a path, 1 to 64.
    pub height: u32,
    /// Parts along every axis, at least 2.
    pub fanout: u32,
    /// Columns of the grid seen as a plane (the number of cells for a line).
    pub columns: usize,
}

/// A rectangle of cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Rows of the plane.
    pub rows: Range<usize>,
    /// Columns of the plane.
    pub columns: Range<usize>,
    /// Distance from the root.
    pub depth: u32,
    /// Places of its children in the list of nodes; empty for a leaf.
    pub children: Range<usize>,
}

impl Node {
    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.rows.len().saturating_mul(self.columns.len())
    }

    /// The parts of the rectangle, at most `fanout` along every axis.
    pub fn parts(&self, fanout: usize) -> Vec<Self> {
        let rows = pieces(&self.rows, fanout);
        let columns = pieces(&self.columns, fanout);
        rows.iter()
            .flat_map(|r| {
                columns.iter().map(|c| Self {
                    rows: r.clone(),
                    columns: c.clone(),
                    depth: self.depth.saturating_add(1),
                    children: 0..0,
                })
            })
            .collect()
    }
}

/// A range cut into min(n, length) near-equal, non-empty parts.
fn pieces(range: &Range<usize>, n: usize) -> Vec<Range<usize>> {
    let n = n.min(range.len()).max(1);
    let cut = |i: usize| {
        let offset = range.len().saturating_mul(i).checked_div(n).unwrap_or(0);
        range.start.saturating_add(offset)
    };
    (0..n).map(|i| cut(i)..cut(i.saturating_add(1))).collect()
}

impl SplitTree {
    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        Event::Pure {
            mechanism: format!("{}: biased counts", self.name),
            loss: calibrated(&self.epsilon, context),
        }
    }

    /// Whether the scale is large enough for the price.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "rational arithmetic; λ > 0 and 2q^j − 1 ≥ 1 divide"
    )]
    fn suffices(&self, lambda: &Rational, e: &Rational, relation: Relation) -> bool {
        if *lambda <= Rational::ZERO {
            return false;
        }
        let ratio = (Rational::from(self.decay) / lambda).min(Rational::from(4u8));
        let unit = Rational::from(1u64 << 40);
        let down = |x: Rational| Rational::from((x * &unit).floor()) / &unit;
        let growth = down(exp_lower(&ratio)).max(Rational::ONE);
        // powers rounded down, terms rounded up
        let terms = |decisions: u32| {
            let mut power = Rational::ONE;
            (1..decisions).fold(Rational::ONE, |sum, _| {
                let term = &unit / (Rational::from(2u8) * &power - Rational::ONE);
                power = down(&power * &growth);
                sum + Rational::from(term.ceil()) / &unit
            })
        };
        let need = match relation {
            Relation::AddRemove => terms(self.height),
            Relation::ReplaceOne => terms(self.height.saturating_sub(1).max(1)) + Rational::ONE,
        };
        lambda * e >= need
    }

    /// λ.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "rational arithmetic; e > 0 was checked"
    )]
    pub fn lattice(&self, context: &Context) -> Result<Lattice, DeskError> {
        let e = context.per_record(&self.epsilon);
        let shape = (1..=64).contains(&self.height) && self.fanout >= 2 && self.decay >= 1;
        if e <= Rational::ZERO || !shape {
            return Err(misuse(
                "biased counts need a budget, a decay of at least 1, a fanout of at least 2 and 1 to 64 levels",
            ));
        }
        // K(H) ≤ H, so (H + 1)/e always suffices
        let mut high = Scale::at_least(&(Rational::from(self.height.saturating_add(1)) / &e))?;
        let mut low = Rational::ZERO;
        for _ in 0..32 {
            let middle = Scale::at_least(&((&low + high.to_rational()) / Rational::from(2u8)))?;
            let value = middle.to_rational();
            if value >= high.to_rational() {
                break;
            }
            if self.suffices(&value, &e, context.relation) {
                high = middle;
            } else {
                low = value;
            }
        }
        if self.suffices(&high.to_rational(), &e, context.relation) {
            Ok(Lattice::Laplace(high))
        } else {
            Err(misuse("no noise scale fits"))
        }
    }
}

impl Desk<'_> {
    /// Buys the tree: nodes in breadth-first order, the root first.
    pub fn split_tree(&mut self, fold: FoldId, step: &SplitTree) -> Result<Vec<Node>, DeskError> {
        let lattice = step.lattice(self.context)?;
        self.charge(&step.event(self.context))?;
        let (fold, state) = self.state(fold)?;
        let cells = grid(&fold)?.cells;
        let columns = step.columns.max(1);
        if cells.checked_rem(columns) != Some(0) {
            return Err(misuse("the columns of a plane must divide its cells"));
        }
        let prefix = prefix_sums(state.0.iter().take(cells).copied());
        let count = |node: &Node| {
            node.rows.clone().fold(0i128, |sum, row| {
                let at = |column: usize| {
                    let i = row.saturating_mul(columns).saturating_add(column);
                    prefix.get(i).copied().unwrap_or(0)
                };
                sum.saturating_add(at(node.columns.end))
                    .saturating_sub(at(node.columns.start))
            })
        };
        self.record(&step.name, &lattice, 1.0);
        let mut nodes = vec![Node {
            rows: 0..cells.checked_div(columns).unwrap_or(0),
            columns: 0..columns,
            depth: 0,
            children: 0..0,
        }];
        let mut next = 0usize;
        // at most one node per cell and depth
        while let Some(node) = nodes.get(next).cloned() {
            if node.cells() > 1 && node.depth < step.height {
                let bias = i128::from(node.depth).saturating_mul(i128::from(step.decay));
                let floor = step.threshold.saturating_sub(i128::from(step.decay));
                let biased = count(&node).saturating_sub(bias).max(floor);
                let need = step.threshold.saturating_sub(biased).saturating_add(1);
                if self.noise.exceeds(&lattice, need) {
                    let first = nodes.len();
                    nodes.extend(node.parts(step.fanout as usize));
                    let last = nodes.len();
                    if let Some(parent) = nodes.get_mut(next) {
                        parent.children = first..last;
                    }
                }
            }
            next = next.saturating_add(1);
        }
        Ok(nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reticent_accounting::parse_decimal;

    fn scale(epsilon: &str, decay: u32, height: u32, relation: Relation) -> f64 {
        let step = SplitTree {
            name: "tree".to_owned(),
            epsilon: parse_decimal(epsilon).unwrap(),
            threshold: 0,
            decay,
            height,
            fanout: 2,
            columns: 8,
        };
        step.lattice(&Context::records(relation))
            .unwrap()
            .scale()
            .to_f64()
    }

    /// The constants of golden 10, one decision, huge and tiny ε, and the formula in floating point.
    #[test]
    fn scales_satisfy_their_bound() {
        let found = scale("1", 2, 7, Relation::AddRemove);
        assert!((found - 2.471_305_6).abs() < 1e-6, "{found}");
        let found = scale("0.2", 10, 7, Relation::AddRemove);
        assert!((found - 12.356_528).abs() < 1e-5, "{found}");
        for epsilon in ["1e-9", "0.3", "1", "7", "1e9"] {
            let e: f64 = epsilon.parse().unwrap();
            for height in [1, 2, 8, 64] {
                for decay in [1, 3, 4_000_000_000] {
                    for relation in [Relation::AddRemove, Relation::ReplaceOne] {
                        let found = scale(epsilon, decay, height, relation);
                        let ratio = f64::from(decay) / found;
                        let sum = |h: u32| {
                            1.0 + (0..h.saturating_sub(1))
                                .map(|j| 1.0 / (2.0 * (f64::from(j) * ratio).exp() - 1.0))
                                .sum::<f64>()
                        };
                        let need = match relation {
                            Relation::AddRemove => sum(height),
                            Relation::ReplaceOne => sum((height - 1).max(1)) + 1.0,
                        };
                        assert!(
                            found * e >= need * (1.0 - 1e-9),
                            "{epsilon} {height} {decay}"
                        );
                        assert!(
                            found * e <= need * 1.04 + 1e-6,
                            "{epsilon} {height} {decay}"
                        );
                    }
                }
            }
        }
    }
}
