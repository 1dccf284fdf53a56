//! Hierarchies of series: which nodes to measure, from past outputs; filters on the nodes; consistency.

use std::collections::HashMap;
use std::sync::Arc;

use reticent_mechanisms::stream::{Forest, Mark, PARTS, Plan};

use super::bank::{Bank, Cells, Estimate, Kernel, Size};
use super::smooth::{GroupSmoother, Smoother};

/// Shares of the budget for a set of open nodes: roots are measured, and the children of open measured nodes. A node
/// gets what is left on its path divided by the number of levels still measured below it, itself included.
fn shares(forest: &Forest, measured: &[bool], budget: u32) -> Vec<u32> {
    let parents = forest.parents();
    let mut levels = vec![0_u32; parents.len()];
    for (v, parent) in parents.iter().enumerate().rev() {
        if measured[v] {
            levels[v] += 1;
            if let Some(p) = parent {
                let p = *p as usize;
                levels[p] = levels[p].max(levels[v]);
            }
        }
    }
    let mut left = vec![0_u32; parents.len()];
    let mut shares = vec![0_u32; parents.len()];
    for (v, parent) in parents.iter().enumerate() {
        if !measured[v] {
            continue;
        }
        let here = parent.map_or(budget, |p| left[p as usize]);
        shares[v] = here / levels[v].max(1);
        left[v] = here - shares[v];
    }
    shares
}

/// Which nodes are measured, given which are open.
fn measured(forest: &Forest, mut open: impl FnMut(usize) -> bool) -> Vec<bool> {
    let mut inside = vec![false; forest.len()];
    let mut below = vec![false; forest.len()];
    let mut inner = vec![false; forest.len()];
    for p in forest.parents().iter().flatten() {
        inner[*p as usize] = true;
    }
    for (v, parent) in forest.parents().iter().enumerate() {
        inside[v] = parent.is_none_or(|p| below[p as usize]);
        below[v] = inside[v] && inner[v] && open(v);
    }
    inside
}

/// The plan of past-output pruning: which nodes are open is asked of the caller, who must answer from released values.
/// A node gets what is left on its path divided by the number of levels still measured below it, itself included, so a
/// root gets at least 1/h and every path spends at most the whole.
pub fn pruned_plan(forest: &Forest, open: impl FnMut(usize) -> bool) -> Plan {
    let measured = measured(forest, open);
    Plan {
        perturb: shares(forest, &measured, PARTS),
        group: vec![0; forest.len()],
        close: Vec::new(),
    }
}

struct Node {
    bank: Bank,
    /// Prediction steps not yet made.
    behind: u32,
}

/// Prediction steps made up for when a node is measured again: at most so many.
const CATCH_UP: u32 = 256;

/// The default for hierarchies: a filter on every measured node, and a plan from what the filters believed after
/// the last tick. Plans read released counts only, so the guarantee is that of any adaptive plan.
///
/// ```
/// use reticent_mechanisms::stream::Forest;
/// use reticent_statistics::streams::Hierarchy;
///
/// let forest = Forest::new(vec![None, Some(0), Some(0)])?;
/// let mut tree = Hierarchy::new(forest, 10.0); // noise of a count with the whole budget: scale 10
/// for _ in 0..50 {
///     let plan = tree.plan();
///     let counts: Vec<Option<i64>> = plan.perturb.iter().map(|p| (*p > 0).then_some(0)).collect();
///     tree.observe(&plan, &counts);
/// }
/// // the root has been empty: its children are left out and it gets the whole budget
/// assert_eq!(tree.plan().perturb[1], 0);
/// # Ok::<(), reticent_mechanisms::stream::StreamError>(())
/// ```
pub struct Hierarchy {
    forest: Forest,
    scale: f64,
    threshold: f64,
    cells: Arc<Cells>,
    kernels: HashMap<u32, Kernel>,
    /// What a node starts with: copying it is cheaper than building it, and a first tick needs one for every node.
    fresh: Bank,
    nodes: Vec<Option<Box<Node>>>,
}

impl Hierarchy {
    /// `scale` is that of the noise of a count that gets the whole budget. The children of a node are measured while
    /// its filtered mean is at least twice that.
    pub fn new(forest: Forest, scale: f64) -> Self {
        let nodes = (0..forest.len()).map(|_| None).collect();
        Self {
            forest,
            scale,
            threshold: 2.0 * scale,
            cells: Size::Node.cells(),
            kernels: HashMap::new(),
            fresh: Bank::new(Size::Node, None),
            nodes,
        }
    }

    /// The plan of the next tick.
    pub fn plan(&mut self) -> Plan {
        let (nodes, cells, threshold) = (&mut self.nodes, &self.cells, self.threshold);
        pruned_plan(&self.forest, |v| {
            // never measured: nothing is known, so look
            nodes[v].as_mut().is_none_or(|node| {
                node.catch_up();
                node.bank.belief(cells) >= threshold
            })
        })
    }

    /// Takes in the noisy counts of a tick; gives the estimates, 0 where nothing was measured.
    pub fn observe(&mut self, plan: &Plan, counts: &[Option<i64>]) -> Vec<Estimate> {
        let scale = self.scale;
        let mut out = vec![Estimate::default(); self.nodes.len()];
        for (v, (parts, count)) in plan.perturb.iter().zip(counts).enumerate() {
            match (count, &mut self.nodes[v]) {
                (Some(z), node) => {
                    let kernel = self.kernels.entry(*parts).or_insert_with(|| {
                        Kernel::new(&self.cells, scale * f64::from(PARTS) / f64::from(*parts))
                    });
                    let node = node.get_or_insert_with(|| {
                        Box::new(Node {
                            bank: self.fresh.clone(),
                            behind: 0,
                        })
                    });
                    node.catch_up();
                    out[v] = node.bank.observe(*z, kernel);
                }
                (None, Some(node)) => node.behind = (node.behind + 1).min(CATCH_UP),
                (None, None) => {}
            }
        }
        out
    }

    /// The series.
    pub fn forest(&self) -> &Forest {
        &self.forest
    }
}

impl Node {
    fn catch_up(&mut self) {
        for _ in 0..std::mem::take(&mut self.behind) {
            self.bank.pass();
        }
    }
}

/// How the PeGaSus variants for hierarchies divide the budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pruning {
    /// HS-PGS: every node at every tick, 1/h of the budget each.
    None,
    /// PHS-PGS with a sound pruning: children are left out while the last estimate of their parent is below β.
    PastOutputs {
        /// β, in counts.
        threshold: f64,
    },
}

/// PeGaSus on every node of a hierarchy (thesis §5.5): HS-PGS, and PHS-PGS with corrected pruning.
pub struct GroupedHierarchy {
    forest: Forest,
    perturb: u32,
    group: u32,
    pruning: Pruning,
    smoothers: Vec<GroupSmoother>,
    last: Vec<f64>,
}

impl GroupedHierarchy {
    /// `group_percent` is the grouper's share of the budget (the thesis uses 20).
    pub fn new(forest: Forest, group_percent: u32, how: Smoother, pruning: Pruning) -> Self {
        let group = PARTS / 100 * group_percent.min(100) / forest.height();
        let perturb = PARTS - group * forest.height();
        Self {
            perturb,
            group,
            pruning,
            smoothers: vec![GroupSmoother::new(how); forest.len()],
            last: vec![f64::INFINITY; forest.len()],
            forest,
        }
    }

    /// The plan of the next tick: every measured node's grouper gets its fixed share, the counts share the rest.
    pub fn plan(&self) -> Plan {
        let measured = match self.pruning {
            Pruning::None => vec![true; self.forest.len()],
            Pruning::PastOutputs { threshold } => {
                measured(&self.forest, |v| self.last[v] >= threshold)
            }
        };
        let group = measured.iter().map(|m| u32::from(*m) * self.group);
        Plan {
            group: group.collect(),
            perturb: shares(&self.forest, &measured, self.perturb),
            close: Vec::new(),
        }
    }

    /// Smooths the counts of a tick; 0 where nothing was measured.
    pub fn observe(&mut self, counts: &[Option<i64>], marks: &[Mark]) -> Vec<f64> {
        let each = self.smoothers.iter_mut().zip(&mut self.last);
        each.zip(counts.iter().zip(marks))
            .map(|((smoother, last), (count, mark))| {
                // the parent is below the threshold; look again when it opens
                *last = count.map_or(f64::INFINITY, |z| smoother.push(*mark, z as f64));
                if count.is_some() { *last } else { 0.0 }
            })
            .collect()
    }
}

/// Makes estimates of a hierarchy add up: the values nearest to them, by squares divided by the variances, among those
/// where every node with measured children is their sum. Nodes without a variance take no part and become 0.
///
/// Two passes (Hay, Rastogi, Miklau, Suciu 2010, for general variances): upward every node is combined with the sum
/// of its children, downward what is missing is shared out in proportion to the variances.
pub fn least_squares(forest: &Forest, values: &[f64], variances: &[Option<f64>]) -> Vec<f64> {
    let parents = forest.parents();
    let n = parents.len();
    let own = |v: usize| variances.get(v).copied().flatten().map(|s| s.max(1e-12));
    let (mut sum, mut spread, mut has) = (vec![0.0; n], vec![0.0; n], vec![false; n]);
    let mut up: Vec<(f64, f64)> = vec![(0.0, 0.0); n];
    for v in (0..n).rev() {
        let Some(s) = own(v) else { continue };
        up[v] = if has[v] {
            let share = spread[v] / (s + spread[v]);
            (share * values[v] + (1.0 - share) * sum[v], share * s)
        } else {
            (values[v], s)
        };
        if let Some(p) = parents[v] {
            let p = p as usize;
            sum[p] += up[v].0;
            spread[p] += up[v].1;
            has[p] = true;
        }
    }
    let mut out = vec![0.0; n];
    for v in 0..n {
        if own(v).is_none() {
            continue;
        }
        out[v] = match parents[v].map(|p| p as usize) {
            Some(p) if own(p).is_some() => up[v].0 + up[v].1 / spread[p] * (out[p] - sum[p]),
            _ => up[v].0,
        };
    }
    out
}

/// [`least_squares`], then made non-negative from the top: negative children become 0 and their siblings shrink in
/// proportion, so that a node is still the sum of its measured children.
///
/// ```
/// use reticent_mechanisms::stream::Forest;
/// use reticent_statistics::streams::consistent;
///
/// let forest = Forest::new(vec![None, Some(0), Some(0)])?;
/// let sums = consistent(&forest, &[9.0, 12.0, -6.0], &[Some(1.0); 3]);
/// assert!((sums[0] - sums[1] - sums[2]).abs() < 1e-9 && sums[2] >= 0.0);
/// # Ok::<(), reticent_mechanisms::stream::StreamError>(())
/// ```
pub fn consistent(forest: &Forest, values: &[f64], variances: &[Option<f64>]) -> Vec<f64> {
    let mut out = least_squares(forest, values, variances);
    let parents = forest.parents();
    // positive mass and number of the measured children
    let mut below = vec![(0.0, 0.0); out.len()];
    for (v, parent) in parents.iter().enumerate() {
        if let Some(p) = parent
            && variances.get(v).is_some_and(Option::is_some)
        {
            let (mass, number) = &mut below[*p as usize];
            *mass += out[v].max(0.0);
            *number += 1.0;
        }
    }
    for (v, parent) in parents.iter().enumerate() {
        let here = out[v].max(0.0);
        out[v] = match parent.map(|p| p as usize) {
            _ if variances.get(v).is_none_or(Option::is_none) => 0.0,
            Some(p) if variances.get(p).is_some_and(Option::is_some) => {
                let (mass, number) = below[p];
                if mass > 0.0 {
                    here * (out[p] / mass)
                } else {
                    out[p] / number
                }
            }
            _ => here,
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(leaves: usize) -> Forest {
        let n = 2 * leaves - 1;
        let parent = |v: usize| (v > 0).then(|| ((v - 1) / 2) as u32);
        Forest::new((0..n).map(parent).collect()).unwrap()
    }

    /// Shares: h levels when all are open, everything at a closed root, never more than the whole on a path.
    #[test]
    fn shares_follow_the_rule() {
        let forest = binary(4);
        let all = shares(&forest, &[true; 7], PARTS);
        assert_eq!(all, [PARTS / 3; 7]);
        let m = measured(&forest, |v| v == 0 || v == 1);
        assert_eq!(m, [true, true, true, true, true, false, false]);
        let some = shares(&forest, &m, PARTS);
        let third = PARTS / 3;
        assert_eq!(some, [third, third, 2 * third, third, third, 0, 0]);
        let closed = measured(&forest, |_| false);
        assert_eq!(shares(&forest, &closed, PARTS)[0], PARTS);
    }

    /// Against the normal equations of a small tree, solved by brute-force descent on the leaves.
    #[test]
    fn least_squares_is_the_nearest_consistent_tree() {
        let forest = binary(4);
        let values = [20.0, 7.0, 15.0, 1.0, 4.0, 9.0, 3.0];
        let variances = [1.0, 2.0, 0.5, 3.0, 1.0, 4.0, 2.0].map(Some);
        let got = least_squares(&forest, &values, &variances);
        for v in 0..3 {
            assert!((got[v] - got[2 * v + 1] - got[2 * v + 2]).abs() < 1e-9);
        }
        let cost = |leaves: &[f64; 4]| {
            let mut all = [0.0; 7];
            all[3..].copy_from_slice(leaves);
            for v in (0..3).rev() {
                all[v] = all[2 * v + 1] + all[2 * v + 2];
            }
            (0..7)
                .map(|v| (all[v] - values[v]).powi(2) / variances[v].unwrap())
                .sum::<f64>()
        };
        let mut leaves = [0.0; 4];
        leaves.copy_from_slice(&got[3..]);
        let best = cost(&leaves);
        for i in 0..4 {
            for step in [-1e-3, 1e-3] {
                let mut moved = leaves;
                moved[i] += step;
                assert!(cost(&moved) > best);
            }
        }
    }

    /// Sums hold at every node, nothing is negative, and what is so already is left alone.
    #[test]
    fn consistent_trees_are_sums_of_what_is_not_negative() {
        let forest = binary(4);
        let some = [Some(1.0); 7];
        for values in [
            [3.0, -8.0, 9.0, -5.0, -2.0, 14.0, -7.0],
            [-4.0, -1.0, -1.0, -3.0, 1.0, 0.0, 0.0],
            [50.0, 0.0, 0.0, -9.0, -9.0, -9.0, -9.0],
        ] {
            let got = consistent(&forest, &values, &some);
            assert!(got.iter().all(|x| *x >= 0.0), "{got:?}");
            for v in 0..3 {
                assert!((got[v] - got[2 * v + 1] - got[2 * v + 2]).abs() < 1e-9);
            }
        }
        let good = [10.0, 7.0, 3.0, 4.0, 3.0, 1.0, 2.0];
        for (got, want) in consistent(&forest, &good, &some).iter().zip(good) {
            assert!((got - want).abs() < 1e-9);
        }
        // the right half was not measured
        let part = [
            Some(1.0),
            Some(1.0),
            Some(1.0),
            Some(1.0),
            Some(1.0),
            None,
            None,
        ];
        let got = consistent(&forest, &good, &part);
        assert!((got[2] - 3.0).abs() < 1e-9 && got[5].abs() + got[6].abs() < 1e-12);
    }

    /// A pruned node's children come back when it fills again.
    #[test]
    fn pruned_nodes_come_back() {
        let mut tree = Hierarchy::new(binary(4), 2.0);
        let run = |tree: &mut Hierarchy, leaf: i64, ticks: usize| {
            let mut measured = 0;
            for _ in 0..ticks {
                let plan = tree.plan();
                let counts: Vec<Option<i64>> = (0..7)
                    .map(|v| {
                        let size = [4, 2, 2, 1, 1, 1, 1][v];
                        (plan.perturb[v] > 0).then_some(size * leaf)
                    })
                    .collect();
                tree.observe(&plan, &counts);
                measured = counts.iter().flatten().count();
            }
            measured
        };
        assert_eq!(run(&mut tree, 0, 60), 1);
        assert_eq!(run(&mut tree, 40, 60), 7);
        assert_eq!(run(&mut tree, 0, 60), 1);
    }
}
