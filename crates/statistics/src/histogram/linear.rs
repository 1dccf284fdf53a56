//! Identity, uniform, HB and GreedyH.

use reticent_accounting::{Event, Rational};
use reticent_mechanisms::primitives::{Linear, Measured, Node, Payment, Row, Strategy};
use reticent_mechanisms::{Context, Desk, DeskError, FoldId};

use super::tree::{Tree, least_squares};
use super::workload::Query;
use super::{Algorithm, Domain, Estimate, Rebuild, Setting, Workload, deviation};
use crate::common::{StatisticsError, real, size};

/// Noise on every cell.
pub(super) struct Identity {
    strategy: Strategy,
    step: Linear,
}

pub(super) fn identity(setting: &Setting<'_>) -> Identity {
    identity_step(setting.domain.cells(), "cells", setting.payment())
}

pub(super) fn identity_step(cells: usize, name: &str, payment: Payment) -> Identity {
    Identity {
        strategy: identity_strategy(cells),
        step: Linear {
            name: name.to_owned(),
            payment,
        },
    }
}

pub(super) fn identity_strategy(cells: usize) -> Strategy {
    let rows = (0..cells)
        .map(|i| Row::count(std::iter::once(i..i + 1), 1))
        .collect();
    Strategy::new(cells, rows)
}

impl Identity {
    pub(super) fn buy(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<Measured, DeskError> {
        desk.linear(fold, &self.strategy, &self.step)
    }
}

impl Algorithm for Identity {
    fn events(&self, context: &Context) -> Vec<Event> {
        vec![self.step.event(context)]
    }
    fn run(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<Estimate, DeskError> {
        Ok(Estimate::new(
            &self.buy(desk, fold)?,
            Box::new(<[f64]>::to_vec),
        ))
    }
}

/// One total, spread evenly. A public total costs nothing.
pub(super) struct Uniform {
    cells: usize,
    total: Total,
}

pub(super) fn uniform(setting: &Setting<'_>) -> Result<Uniform, StatisticsError> {
    Ok(Uniform {
        cells: setting.domain.cells(),
        total: match setting.public_total() {
            Some(n) => Total::Public(n),
            None => Total::paid(setting.epsilon()?.clone()),
        },
    })
}

/// The number of records, public or bought.
pub(super) enum Total {
    /// Public.
    Public(f64),
    /// A noisy count.
    Paid(Linear),
}

impl Total {
    pub(super) fn paid(epsilon: Rational) -> Self {
        Self::Paid(Linear {
            name: "total".to_owned(),
            payment: Payment::Pure { epsilon },
        })
    }

    pub(super) fn events(&self, context: &Context) -> Vec<Event> {
        match self {
            Self::Public(_) => Vec::new(),
            Self::Paid(step) => vec![step.event(context)],
        }
    }

    /// The total and the standard deviation of its noise.
    pub(super) fn buy(
        &self,
        desk: &mut Desk<'_>,
        fold: FoldId,
        cells: usize,
    ) -> Result<(f64, f64), DeskError> {
        match self {
            Self::Public(n) => Ok((*n, 0.0)),
            Self::Paid(step) => {
                let all = Row::count(std::iter::once(0..cells), 1);
                let measured = desk.linear(fold, &Strategy::new(cells, vec![all]), step)?;
                let value = measured.values.first().map_or(0.0, |v| real(*v));
                Ok((value, measured.noise.first().map_or(0.0, |l| deviation(*l))))
            }
        }
    }
}

impl Algorithm for Uniform {
    fn events(&self, context: &Context) -> Vec<Event> {
        self.total.events(context)
    }
    fn run(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<Estimate, DeskError> {
        let (total, sd) = self.total.buy(desk, fold, self.cells)?;
        let cells = self.cells;
        let rebuild: Rebuild = Box::new(move |v| vec![v[0] / size(cells.max(1)); cells]);
        Ok(Estimate {
            cells: rebuild(&[total]),
            spread: Some(super::Spread {
                deviations: vec![sd],
                rebuild,
            }),
            details: serde_json::json!({}),
        })
    }
}

/// A tree of noisy totals and its least-squares cells.
pub(super) struct Hierarchy {
    domain: Domain,
    tree: Tree,
    strategy: Strategy,
    measured: Vec<usize>,
    step: Linear,
    /// A public total, used as an exact measurement of the root.
    total: Option<f64>,
}

impl Hierarchy {
    /// `shares[i]` of the budget for node `i`; nodes without a share are not measured.
    fn new(setting: &Setting<'_>, name: &str, tree: Tree, shares: &[u32]) -> Self {
        let (strategy, measured) = tree.strategy(setting.domain, shares);
        Self {
            domain: setting.domain,
            tree,
            strategy,
            measured,
            step: Linear {
                name: name.to_owned(),
                payment: setting.payment(),
            },
            total: setting.public_total(),
        }
    }
}

/// HB: equal shares on every level but the root, fanout by the rule of its paper. The root of a tree of one cell is measured.
pub(super) fn hb(setting: &Setting<'_>) -> Hierarchy {
    let (tree, shares) = hb_tree(setting.domain);
    Hierarchy::new(setting, "tree", tree, &shares)
}

/// The tree of HB and the shares of its nodes.
pub(super) fn hb_tree(domain: Domain) -> (Tree, Vec<u32>) {
    let tree = Tree::even(domain, fanout(domain));
    let mut shares = vec![1; tree.nodes.len()];
    if tree.nodes.len() > 1 {
        shares[0] = 0;
    }
    (tree, shares)
}

/// The fanout with the smallest predicted error of ranges.
///
/// Line: (b − 1)h³ − 2(b + 1)h²/3 for h levels below the root, the average variance over all ranges after least squares (Qardaji,
/// Yang, Li 2013). Plane: h² times the number of nodes a random rectangle with sides of a third is made of, times .4 where least squares has several
/// levels to combine (fitted to measured errors of sides 64 to 256).
pub(super) fn fanout(domain: Domain) -> usize {
    let side = domain.rows().max(domain.columns()).max(2);
    let cost = |b: usize| {
        let mut levels = 1;
        let mut reach = b;
        while reach < side {
            reach = reach.saturating_mul(b);
            levels += 1;
        }
        let (b, h) = (size(b), f64::from(levels));
        match domain {
            Domain::Line(_) => (b - 1.0) * h.powi(3) - 2.0 * (b + 1.0) * h * h / 3.0,
            Domain::Plane(..) => {
                let grid = |level: i32| b.powi(level).min(size(side));
                let nodes = |level: i32| {
                    let parts = grid(level) / grid(level - 1);
                    let inside = parts * (grid(level - 1) / 3.0 - 1.0).max(0.0);
                    (grid(level) / 3.0).powi(2) - inside * inside
                };
                let gain = if levels == 1 { 1.0 } else { 0.4 };
                gain * h * h * (1..=levels).map(nodes).sum::<f64>()
            }
        }
    };
    (2..=side.min(4096))
        .filter(|b| *b <= 64 || *b == side)
        .min_by(|a, b| cost(*a).total_cmp(&cost(*b)))
        .unwrap_or(2)
}

/// GreedyH: a binary tree whose shares are fitted to the workload.
pub(super) fn greedy(setting: &Setting<'_>) -> Result<Hierarchy, StatisticsError> {
    setting.epsilon()?;
    let (tree, shares) = greedy_tree(setting.domain, setting.config.workload);
    Ok(Hierarchy::new(setting, "weighted tree", tree, &shares))
}

/// The tree of GreedyH and the shares of its nodes.
pub(super) fn greedy_tree(domain: Domain, workload: Workload) -> (Tree, Vec<u32>) {
    let tree = Tree::even(domain, 2);
    let cells: Vec<std::ops::Range<usize>> = (0..domain.cells()).map(|i| i..i + 1).collect();
    let shares = fitted_shares(&tree, &cells, &workload.queries(domain));
    (tree, shares)
}

/// At most this many queries are looked at to fit shares.
const MOST_QUERIES: usize = 1024;
/// Shares of a path add up to about this.
const PATH: f64 = 1_048_576.0;

/// Shares that minimise the summed variance of ranges of a line put together from the fewest nodes of a tree over buckets.
///
/// With u_v the mean squared weight of node v in these sums and path shares that add up to 1, the optimum is found from the leaves up:
/// C_v = (u_v^⅓ + (Σ C_child)^⅓)³, and v takes the part u_v^⅓ / C_v^⅓ of what its path has left. Nodes that no query uses get
/// nothing; leaves always something.
pub(super) fn fitted_shares(
    tree: &Tree,
    buckets: &[std::ops::Range<usize>],
    queries: &[Query],
) -> Vec<u32> {
    let nodes = &tree.nodes;
    let mut usage = vec![0.0; nodes.len()];
    let step = queries.len().div_ceil(MOST_QUERIES).max(1);
    let used: Vec<&Query> = queries.iter().step_by(step).collect();
    for query in &used {
        let cells = &query.columns;
        let first = buckets.partition_point(|b| b.end <= cells.start);
        let last = buckets.partition_point(|b| b.start < cells.end);
        let covered = |i: usize| {
            let b = &buckets[i];
            let inside = b
                .end
                .min(cells.end)
                .saturating_sub(b.start.max(cells.start));
            size(inside) / size(b.len().max(1))
        };
        let (mut from, mut to) = (first, last);
        for end in [first, last.saturating_sub(1)] {
            if end < last && from < to && covered(end) < 1.0 {
                mark(nodes, &mut usage, end..end + 1, covered(end).powi(2));
                if end == from {
                    from += 1;
                } else {
                    to -= 1;
                }
            }
        }
        mark(nodes, &mut usage, from..to, 1.0);
    }
    let count = size(used.len().max(1));
    let least = 1e-6;
    let mut roots = vec![0.0; nodes.len()];
    let mut parts = vec![1.0; nodes.len()];
    for i in (0..nodes.len()).rev() {
        let u: f64 = usage[i] / count;
        let children = nodes[i].children.clone();
        if children.is_empty() {
            roots[i] = u.max(least).cbrt();
            continue;
        }
        let below: f64 = children.map(|c: usize| f64::powi(roots[c], 3)).sum::<f64>();
        roots[i] = u.cbrt() + below.cbrt();
        parts[i] = u.cbrt() / roots[i];
    }
    let mut left = vec![1.0; nodes.len()];
    let mut shares = vec![0u32; nodes.len()];
    for i in 0..nodes.len() {
        let share = left[i] * parts[i];
        for c in nodes[i].children.clone() {
            left[c] = left[i] - share;
        }
        let leaf = nodes[i].children.is_empty();
        shares[i] = crate::common::clipped((share * PATH).round(), u32::from(leaf), 1 << 21);
    }
    shares
}

/// Adds `weight` to the fewest nodes that make up a range of buckets.
fn mark(nodes: &[Node], usage: &mut [f64], range: std::ops::Range<usize>, weight: f64) {
    let mut open = vec![0usize];
    while let Some(i) = open.pop() {
        let node = &nodes[i];
        let (start, end) = (node.columns.start, node.columns.end);
        if end <= range.start || start >= range.end {
            continue;
        }
        if range.start <= start && end <= range.end {
            usage[i] += weight;
        } else {
            open.extend(node.children.clone());
        }
    }
}

/// The map from measurements of some nodes to the least-squares totals of all.
pub(super) fn totals(
    nodes: Vec<Node>,
    measured: Vec<usize>,
    noise: &Measured,
    total: Option<f64>,
) -> Rebuild {
    let mut variances = vec![f64::INFINITY; nodes.len()];
    for (i, lattice) in measured.iter().zip(&noise.noise) {
        variances[*i] = deviation(*lattice).powi(2);
    }
    if total.is_some() {
        variances[0] = 0.0;
    }
    Box::new(move |values| {
        let mut all = vec![0.0; nodes.len()];
        for (i, v) in measured.iter().zip(values) {
            all[*i] = *v;
        }
        if let Some(n) = total {
            all[0] = n;
        }
        least_squares(&nodes, &all, &variances)
    })
}

impl Algorithm for Hierarchy {
    fn events(&self, context: &Context) -> Vec<Event> {
        vec![self.step.event(context)]
    }
    fn run(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<Estimate, DeskError> {
        let measured = desk.linear(fold, &self.strategy, &self.step)?;
        let fit = totals(
            self.tree.nodes.clone(),
            self.measured.clone(),
            &measured,
            self.total,
        );
        let (tree, domain) = (self.tree.clone(), self.domain);
        Ok(Estimate::new(
            &measured,
            Box::new(move |values| tree.spread(domain, &fit(values))),
        ))
    }
}
