//! The series of a stream, and what a plan may spend on each.

use super::StreamError;

/// Shares of the budget are multiples of 1/`PARTS`; divisible by every number up to 20.
pub const PARTS: u32 = 232_792_560;

/// Most nodes of a stream.
const MOST: usize = 1 << 24;

/// Trees of series: a node counts the events at it and at everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forest {
    parents: Vec<Option<u32>>,
    height: u32,
}

impl Forest {
    /// `nodes` series that share no event: every node a root.
    pub fn flat(nodes: usize) -> Result<Self, StreamError> {
        Self::new(vec![None; nodes])
    }

    /// The parent of every node; parents come before their children.
    pub fn new(parents: Vec<Option<u32>>) -> Result<Self, StreamError> {
        let nodes = parents.len();
        if nodes == 0 || nodes > MOST {
            return Err(StreamError::Size { nodes, most: MOST });
        }
        let mut depths: Vec<u32> = Vec::with_capacity(nodes);
        for (node, parent) in parents.iter().enumerate() {
            let depth = match parent {
                None => 1,
                Some(parent) => {
                    let parent = *parent as usize;
                    let above = depths.get(parent).filter(|_| parent < node);
                    above
                        .ok_or(StreamError::Parent { node, parent })?
                        .saturating_add(1)
                }
            };
            depths.push(depth);
        }
        let height = depths.into_iter().max().unwrap_or(1);
        Ok(Self { parents, height })
    }

    /// Number of nodes (at least 1).
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Nodes on the longest path.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Parent of every node.
    pub fn parents(&self) -> &[Option<u32>] {
        &self.parents
    }

    /// Whether there is exactly one root.
    pub fn single_root(&self) -> bool {
        self.parents.iter().filter(|p| p.is_none()).count() == 1
    }

    /// Adds every node's count to its parent's, from the bottom.
    pub(super) fn total(&self, counts: &mut [i64]) {
        for (node, parent) in self.parents.iter().enumerate().rev() {
            let count = counts.get(node).copied().unwrap_or(0);
            if let Some(above) = parent.and_then(|p| counts.get_mut(p as usize)) {
                *above = above.saturating_add(count);
            }
        }
    }
}

/// Parts of the budget for every node at one tick: 0 leaves a node out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// For the noisy count.
    pub perturb: Vec<u32>,
    /// For the grouper.
    pub group: Vec<u32>,
    /// Nodes whose open group is closed before the tick.
    pub close: Vec<usize>,
}

impl Plan {
    /// The same shares at every node.
    pub fn uniform(nodes: usize, perturb: u32, group: u32) -> Self {
        Self {
            perturb: vec![perturb; nodes],
            group: vec![group; nodes],
            close: Vec::new(),
        }
    }
}

/// A plan that keeps within the budget on every path; the only kind a session runs.
///
/// # Claim
/// For every leaf, the parts of the nodes on its path from the root add up to at most [`PARTS`], so the shares of
/// ε add up to at most ε.
/// # Arithmetic
/// Integers: a share is a whole number of parts, sums are in u64 and cannot overflow (a path has at most 2²⁴ nodes of
/// 2³³ parts).
/// # Checked by
/// `streams::plans_beyond_the_budget_are_refused`, `streams::plans_enumerated`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked(Plan);

impl Checked {
    /// Checks a plan against a forest; `common` parts were promised to the root.
    pub(super) fn new(plan: Plan, forest: &Forest, common: u32) -> Result<Self, StreamError> {
        let nodes = forest.len();
        for shape in [plan.perturb.len(), plan.group.len()] {
            if shape != nodes {
                return Err(StreamError::Shape { plan: shape, nodes });
            }
        }
        let mut spent: Vec<u64> = Vec::with_capacity(nodes);
        let shares = plan.perturb.iter().zip(&plan.group);
        for (node, (parent, (p, g))) in forest.parents.iter().zip(shares).enumerate() {
            let above = parent
                .and_then(|p| spent.get(p as usize))
                .copied()
                .unwrap_or(0);
            let here = u64::from(*p).saturating_add(u64::from(*g));
            let total = above.saturating_add(here);
            if total > u64::from(PARTS) {
                return Err(StreamError::Path { node, spent: total });
            }
            if parent.is_none() && here < u64::from(common) {
                return Err(StreamError::Common {
                    given: here,
                    declared: common,
                });
            }
            spent.push(total);
        }
        Ok(Self(plan))
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.0
    }
}
