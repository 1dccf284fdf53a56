//! AHP: clusters of cells with similar noisy counts.

use std::ops::Range;

use reticent_accounting::{Event, share};
use reticent_mechanisms::primitives::{Linear, Payment, Row, Strategy};
use reticent_mechanisms::{Context, Desk, DeskError, FoldId};
use serde_json::json;

use super::linear::{Identity, identity_step};
use super::{Algorithm, Estimate, Setting, deviation};
use crate::common::{StatisticsError, real, size};

/// Half of ε finds the clusters.
const FIRST: (u64, u64) = (1, 2);

/// See the module text.
pub(super) struct Ahp {
    cells: usize,
    first: Identity,
    second: Linear,
}

pub(super) fn ahp(setting: &Setting<'_>) -> Result<Ahp, StatisticsError> {
    let (first, second) = share(setting.epsilon()?, FIRST.0, FIRST.1);
    Ok(Ahp {
        cells: setting.domain.cells(),
        first: identity_step(
            setting.domain.cells(),
            "first look",
            Payment::Pure { epsilon: first },
        ),
        second: Linear {
            name: "clusters".to_owned(),
            payment: Payment::Pure { epsilon: second },
        },
    })
}

/// Cells in clusters: sorted by noisy count (counts below the level of noise are taken for zero), cut greedily where the squared
/// distance to the running mean would cost more than the noise of one more cluster.
fn clusters(noisy: &[f64], first: f64, second: f64) -> Vec<Vec<usize>> {
    let floor = first * size(noisy.len().max(2)).ln().sqrt();
    let looked: Vec<f64> = noisy
        .iter()
        .map(|x| if *x < floor { 0.0 } else { *x })
        .collect();
    let mut order: Vec<usize> = (0..noisy.len()).collect();
    order.sort_by(|a, b| looked[*b].total_cmp(&looked[*a]).then(a.cmp(b)));
    let mut all: Vec<Vec<usize>> = Vec::new();
    let (mut sum, mut squares) = (0.0, 0.0);
    for i in order {
        let x = looked[i];
        if let Some(open) = all.last_mut() {
            let n = size(open.len());
            let before = squares - sum * sum / n;
            let after = squares + x * x - (sum + x) * (sum + x) / (n + 1.0);
            // joined: scatter after, one noise; apart: scatter before, two
            if after - before <= second * second {
                open.push(i);
                sum += x;
                squares += x * x;
                continue;
            }
        }
        all.push(vec![i]);
        (sum, squares) = (x, x * x);
    }
    for cluster in &mut all {
        cluster.sort_unstable();
    }
    all
}

/// Increasing cells as ranges.
fn runs(cells: &[usize]) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    for i in cells {
        match all.last_mut() {
            Some(r) if r.end == *i => r.end += 1,
            _ => all.push(*i..i + 1),
        }
    }
    all
}

impl Algorithm for Ahp {
    fn events(&self, context: &Context) -> Vec<Event> {
        let mut events = self.first.events(context);
        events.push(self.second.event(context));
        events
    }

    fn run(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<Estimate, DeskError> {
        let first = self.first.buy(desk, fold)?;
        let noisy: Vec<f64> = first.values.iter().map(|v| real(*v)).collect();
        let sd = first.noise.first().map_or(0.0, |l| deviation(*l));
        let one = self
            .second
            .lattices(
                &Strategy::new(1, vec![Row::count(std::iter::once(0..1), 1)]),
                desk.context(),
            )?
            .first()
            .map_or(0.0, |l| deviation(*l));
        let clusters = clusters(&noisy, sd, one);
        let rows = clusters.iter().map(|c| Row::count(runs(c), 1)).collect();
        let strategy = Strategy::new(self.cells, rows);
        let measured = desk.linear(fold, &strategy, &self.second)?;
        let (count, cells) = (clusters.len(), self.cells);
        let estimate = Estimate::new(
            &measured,
            Box::new(move |values| {
                let mut out = vec![0.0; cells];
                for (cluster, total) in clusters.iter().zip(values) {
                    for i in cluster {
                        out[*i] = total / size(cluster.len());
                    }
                }
                out
            }),
        );
        Ok(Estimate {
            details: json!({"buckets": count}),
            ..estimate
        })
    }
}
