//! DAWA: a private partition, then a weighted tree over its buckets.

use std::ops::Range;

use reticent_accounting::{Event, Rational, share};
use reticent_mechanisms::primitives::{Linear, Order, Partition, Payment, Row, Strategy};
use reticent_mechanisms::{Context, Desk, DeskError, FoldId};
use serde_json::json;

use super::linear::{fitted_shares, totals};
use super::post::hilbert_order;
use super::tree::Tree;
use super::{Algorithm, Domain, Estimate, Query, Setting, Workload};
use crate::common::{StatisticsError, clipped, size};

/// A quarter of ε chooses the partition.
const PARTITION: (u64, u64) = (1, 4);

/// See the module text. On a plane the cells are laid along a Hilbert curve.
pub(super) struct Dawa {
    domain: Domain,
    order: Order,
    workload: Vec<Query>,
    partition: Partition,
    step: Linear,
}

pub(super) fn dawa(setting: &Setting<'_>) -> Result<Dawa, StatisticsError> {
    let domain = setting.domain;
    let (first, second) = share(setting.epsilon()?, PARTITION.0, PARTITION.1);
    let order: Order = match domain {
        Domain::Line(_) => None,
        Domain::Plane(rows, columns) => Some(hilbert_order(rows, columns).into()),
    };
    let line = Domain::Line(domain.cells());
    let workload = match domain {
        Domain::Line(_) => setting.config.workload.queries(domain),
        // a rectangle is many ranges of the curve, of all lengths
        Domain::Plane(..) => Workload::Rectangles(1000).queries(line),
    };
    let touches = u64::from(setting.context.touches())
        .saturating_mul(u64::from(setting.context.rows_per_unit.max(1)));
    Ok(Dawa {
        domain,
        workload,
        partition: Partition {
            name: "partition".to_owned(),
            epsilon: first.clone(),
            penalty: penalty(domain.cells(), touches, &first, &second),
            longest: domain.cells(),
            order: order.clone(),
        },
        order,
        step: Linear {
            name: "buckets".to_owned(),
            payment: Payment::Pure { epsilon: second },
        },
    })
}

/// What a bucket costs, in records: its share of the second stage's noise, 1/ε₂, but at least σ(.57 ln N − 2.5) with σ = 4/ε₁ the scale of the
/// noise on costs. The paper's 1/ε₂ alone lets the noise of the many candidates choose: at N = 4096 half of the cells become buckets of
/// their own whatever the data are. With this rule noise alone makes about 200 buckets at N = 4096 and at N = 65536 (measured). The
/// privacy proof holds for every public penalty.
fn penalty(cells: usize, touches: u64, first: &Rational, second: &Rational) -> Rational {
    let factor = clipped((0.57 * size(cells.max(1)).ln() - 2.5) * 4000.0, 0, 100_000);
    let touches = Rational::from(touches);
    let floor = &touches * Rational::from(factor) / (first * Rational::from(1000u32));
    (touches / second).max(floor)
}

impl Algorithm for Dawa {
    fn events(&self, context: &Context) -> Vec<Event> {
        vec![self.partition.event(context), self.step.event(context)]
    }

    fn run(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<Estimate, DeskError> {
        let buckets = desk.partition(fold, &self.partition)?;
        let tree = Tree::even(Domain::Line(buckets.len()), 2);
        let shares = fitted_shares(&tree, &buckets, &self.workload);
        let cells = |from: usize, to: usize| -> Range<usize> {
            let start = buckets.get(from).map_or(0, |b| b.start);
            start..to.checked_sub(1).map_or(start, |last| buckets[last].end)
        };
        let measured: Vec<usize> = (0..tree.nodes.len()).filter(|i| shares[*i] > 0).collect();
        let rows = measured
            .iter()
            .map(|i| {
                let node = &tree.nodes[*i].columns;
                Row::count(std::iter::once(cells(node.start, node.end)), shares[*i])
            })
            .collect();
        let strategy = Strategy {
            order: self.order.clone(),
            cells: self.domain.cells(),
            rows,
        };
        let noisy = desk.linear(fold, &strategy, &self.step)?;
        let count = buckets.len();
        let leaves = tree.leaves();
        let fit = totals(tree.nodes.clone(), measured, &noisy, None);
        let place: Vec<(usize, usize)> = leaves
            .iter()
            .map(|i| (*i, tree.nodes[*i].columns.start))
            .collect();
        let order = self.order.clone();
        let length = self.domain.cells();
        let estimate = Estimate::new(
            &noisy,
            Box::new(move |values| {
                let all = fit(values);
                let mut cells = vec![0.0; length];
                for (node, bucket) in &place {
                    let Some(range) = buckets.get(*bucket) else {
                        continue;
                    };
                    let each = all[*node] / size(range.len().max(1));
                    match &order {
                        None => cells[range.clone()].fill(each),
                        Some(order) => {
                            for i in &order[range.clone()] {
                                cells[*i] = each;
                            }
                        }
                    }
                }
                cells
            }),
        );
        Ok(Estimate {
            details: json!({"buckets": count}),
            ..estimate
        })
    }
}
