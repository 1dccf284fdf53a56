//! Structures that go deeper where there are more records: AG and PrivTree.

use reticent_accounting::{Event, Rational, rational_to_f64, share};
use reticent_mechanisms::primitives::{Linear, Node, Payment, SplitTree};
use reticent_mechanisms::{Context, Desk, DeskError, FoldId};
use serde_json::json;

use super::linear::{Total, totals};
use super::tree::Tree;
use super::{Algorithm, Domain, Estimate, Setting};
use crate::common::{StatisticsError, clipped, real, size};

/// Share of a paid total that only chooses the coarse grid: 2 %.
const TOTAL: (u64, u64) = (1, 50);

/// AG: an even grid with half of ε, then every cell of it cut again by its noisy count. The coarse grid follows a public or
/// paid number of rows, never the exact one.
pub(super) struct Grid {
    domain: Domain,
    known: Option<f64>,
    total: Option<Total>,
    first: Linear,
    second: Linear,
    /// ε of one record, for the rules of the grids.
    epsilon: f64,
}

pub(super) fn grid(setting: &Setting<'_>) -> Result<Grid, StatisticsError> {
    let epsilon = setting.epsilon()?;
    let known = setting.public_total().or(setting.rows);
    let (for_total, rest) = match known {
        Some(_) => (Rational::ZERO, epsilon.clone()),
        None => share(epsilon, TOTAL.0, TOTAL.1),
    };
    let (first, second) = share(&rest, 1, 2);
    let records =
        f64::from(setting.context.touches()) * f64::from(setting.context.rows_per_unit.max(1));
    let linear = |name: &str, epsilon: Rational| Linear {
        name: name.to_owned(),
        payment: Payment::Pure { epsilon },
    };
    Ok(Grid {
        domain: setting.domain,
        total: known.is_none().then(|| Total::paid(for_total)),
        known,
        epsilon: rational_to_f64(&rest) / records,
        first: linear("coarse grid", first),
        second: linear("fine grids", second),
    })
}

impl Algorithm for Grid {
    fn events(&self, context: &Context) -> Vec<Event> {
        let mut events = self
            .total
            .as_ref()
            .map_or(Vec::new(), |t| t.events(context));
        events.push(self.first.event(context));
        events.push(self.second.event(context));
        events
    }

    fn run(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<Estimate, DeskError> {
        let cells = self.domain.cells();
        let rows = match (&self.known, &self.total) {
            (Some(n), _) => *n,
            (None, Some(total)) => total.buy(desk, fold, cells)?.0,
            (None, None) => 0.0,
        };
        // the rules of the paper, constant 10 for one grid and 5 for the second
        let one_grid = (rows.max(0.0) * self.epsilon / 10.0).sqrt();
        let coarse = clipped((one_grid / 4.0).ceil(), 10, 4096) as usize;
        let mut nodes = vec![Node {
            rows: 0..self.domain.rows(),
            columns: 0..self.domain.columns(),
            depth: 0,
            children: 0..0,
        }];
        let parts = nodes[0].parts(coarse);
        nodes[0].children = 1..1 + parts.len();
        nodes.extend(parts);
        let level_one = nodes.len();
        let mut shares = vec![1; level_one];
        shares[0] = 0;
        let tree = Tree {
            nodes: nodes.clone(),
        };
        let (strategy, _) = tree.strategy(self.domain, &shares);
        let first = desk.linear(fold, &strategy, &self.first)?;
        for i in 1..level_one {
            let count = first.values.get(i - 1).map_or(0.0, |v| real(*v)).max(0.0);
            let fine = clipped((count * self.epsilon / 2.0 / 5.0).sqrt().ceil(), 1, 4096) as usize;
            let parts = nodes[i].parts(fine);
            nodes[i].children = nodes.len()..nodes.len() + parts.len();
            nodes.extend(parts);
        }
        let mut shares = vec![1; nodes.len()];
        shares[..level_one].fill(0);
        let tree = Tree { nodes };
        let (strategy, measured) = tree.strategy(self.domain, &shares);
        let mut second = desk.linear(fold, &strategy, &self.second)?;
        // both levels together, coarse first
        let all: Vec<usize> = (1..level_one).chain(measured).collect();
        second.values.splice(0..0, first.values);
        second.noise.splice(0..0, first.noise);
        let fit = totals(tree.nodes.clone(), all, &second, None);
        let domain = self.domain;
        let leaves = tree.leaves().len();
        let estimate = Estimate::new(
            &second,
            Box::new(move |values| tree.spread(domain, &fit(values))),
        );
        Ok(Estimate {
            details: json!({"buckets": leaves}),
            ..estimate
        })
    }
}

/// PrivTree: half of ε splits dense regions, half counts the leaves.
pub(super) struct Splits {
    domain: Domain,
    split: SplitTree,
    leaves: Linear,
}

pub(super) fn tree(setting: &Setting<'_>) -> Result<Splits, StatisticsError> {
    let domain = setting.domain;
    let (first, second) = share(setting.epsilon()?, 1, 2);
    let side = domain.rows().max(domain.columns()).max(2);
    let height = clipped(size(side).log2().ceil(), 1, 64);
    let records =
        f64::from(setting.context.touches()) * f64::from(setting.context.rows_per_unit.max(1));
    // δ = λ ln 2 for the scale at which the decay of a level is ln 2: λ = 2.6/ε
    let lambda = 2.6 * records / rational_to_f64(&first);
    let decay = clipped((lambda * std::f64::consts::LN_2).round(), 1, u32::MAX);
    Ok(Splits {
        domain,
        split: SplitTree {
            name: "splits".to_owned(),
            epsilon: first,
            threshold: 0,
            decay,
            height,
            fanout: 2,
            columns: domain.columns(),
        },
        leaves: Linear {
            name: "leaves".to_owned(),
            payment: Payment::Pure { epsilon: second },
        },
    })
}

impl Algorithm for Splits {
    fn events(&self, context: &Context) -> Vec<Event> {
        vec![self.split.event(context), self.leaves.event(context)]
    }

    fn run(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<Estimate, DeskError> {
        let tree = Tree {
            nodes: desk.split_tree(fold, &self.split)?,
        };
        let leaves = tree.leaves();
        let mut shares = vec![0; tree.nodes.len()];
        leaves.iter().for_each(|i| shares[*i] = 1);
        let (strategy, measured) = tree.strategy(self.domain, &shares);
        let noisy = desk.linear(fold, &strategy, &self.leaves)?;
        let (domain, nodes) = (self.domain, tree.nodes.len());
        let count = leaves.len();
        let estimate = Estimate::new(
            &noisy,
            Box::new(move |values| {
                let mut totals = vec![0.0; nodes];
                for (i, v) in measured.iter().zip(values) {
                    totals[*i] = *v;
                }
                tree.spread(domain, &totals)
            }),
        );
        Ok(Estimate {
            details: json!({"buckets": count}),
            ..estimate
        })
    }
}
