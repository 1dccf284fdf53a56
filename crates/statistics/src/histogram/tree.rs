//! Trees over cells and their least-squares estimates.

use std::ops::Range;

use reticent_mechanisms::primitives::{Node, Row, Strategy};

use super::Domain;

/// A tree of rectangles, breadth first, the root first.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// The nodes.
    pub nodes: Vec<Node>,
}

impl Tree {
    /// The even tree down to single cells: at most `fanout` parts along every axis.
    pub fn even(domain: Domain, fanout: usize) -> Self {
        let mut nodes = vec![Node {
            rows: 0..domain.rows(),
            columns: 0..domain.columns(),
            depth: 0,
            children: 0..0,
        }];
        let mut next = 0;
        while next < nodes.len() {
            if nodes[next].cells() > 1 {
                let parts = nodes[next].parts(fanout.max(2));
                nodes[next].children = nodes.len()..nodes.len() + parts.len();
                nodes.extend(parts);
            }
            next += 1;
        }
        Self { nodes }
    }

    /// Places of the nodes without children.
    pub fn leaves(&self) -> Vec<usize> {
        (0..self.nodes.len())
            .filter(|i| self.nodes[*i].children.is_empty())
            .collect()
    }

    /// A strategy that counts the nodes with a share, and which they are.
    pub fn strategy(&self, domain: Domain, shares: &[u32]) -> (Strategy, Vec<usize>) {
        let measured: Vec<usize> = (0..self.nodes.len()).filter(|i| shares[*i] > 0).collect();
        let rows = measured
            .iter()
            .map(|i| Row::count(ranges(domain, &self.nodes[*i]), shares[*i]))
            .collect();
        (Strategy::new(domain.cells(), rows), measured)
    }

    /// Cells from the totals of the leaves, spread evenly inside each.
    pub fn spread(&self, domain: Domain, totals: &[f64]) -> Vec<f64> {
        let mut cells = vec![0.0; domain.cells()];
        for i in self.leaves() {
            let node = &self.nodes[i];
            let each = totals[i] / crate::common::size(node.cells().max(1));
            for range in ranges(domain, node) {
                cells[range].fill(each);
            }
        }
        cells
    }
}

/// The cells of a rectangle as ranges of the row-major order.
pub(super) fn ranges(domain: Domain, node: &Node) -> Vec<Range<usize>> {
    let width = domain.columns();
    if node.columns.len() == width {
        return std::iter::once(node.rows.start * width..node.rows.end * width).collect();
    }
    node.rows
        .clone()
        .map(|r| r * width + node.columns.start..r * width + node.columns.end)
        .collect()
}

/// Least-squares totals of all nodes from noisy totals of some, given with their variances (infinite: not measured; 0: exact).
/// Two passes, exact for any shape and any variances, as long as every leaf or one of its ancestors' other descendants settles
/// it; what nothing settles is spread evenly.
///
/// Hay, Rastogi, Miklau, Suciu 2010, for uneven weights.
pub fn least_squares(nodes: &[Node], values: &[f64], variances: &[f64]) -> Vec<f64> {
    let n = nodes.len();
    // what each subtree says about its root
    let (mut below, mut spread) = (values.to_vec(), variances.to_vec());
    for i in (0..n).rev() {
        let children = nodes[i].children.clone();
        if children.is_empty() {
            if spread[i].is_infinite() {
                below[i] = 0.0;
            }
            continue;
        }
        let sum: f64 = below[children.clone()].iter().sum();
        let variance: f64 = spread[children].iter().sum();
        (below[i], spread[i]) = combine((values[i], variances[i]), (sum, variance));
    }
    // what the rest of the tree says
    let mut totals = below.clone();
    for i in 0..n {
        let children = nodes[i].children.clone();
        if children.is_empty() {
            continue;
        }
        let sum: f64 = below[children.clone()].iter().sum();
        let unknown = spread[children.clone()]
            .iter()
            .filter(|v| v.is_infinite())
            .count();
        let variance: f64 = spread[children.clone()].iter().sum();
        let gap = totals[i] - sum;
        let count = crate::common::size(children.len());
        for c in children {
            let part = if unknown > 0 {
                f64::from(u8::from(spread[c].is_infinite())) / crate::common::size(unknown)
            } else if variance > 0.0 {
                spread[c] / variance
            } else {
                1.0 / count
            };
            totals[c] = below[c] + part * gap;
        }
    }
    totals
}

/// Inverse-variance mean of two measurements.
fn combine(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    if a.1.is_infinite() || b.1 <= 0.0 {
        return b;
    }
    if b.1.is_infinite() || a.1 <= 0.0 {
        return a;
    }
    let weight = b.1 / (a.1 + b.1);
    (weight * a.0 + (1.0 - weight) * b.0, weight * a.1)
}
