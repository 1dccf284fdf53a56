//! MWEM: multiplicative weights on the queries that are farthest off.

use reticent_accounting::{Event, Rational, share, split};
use reticent_mechanisms::primitives::{Linear, Node, Payment, Row, Strategy, WorstQuery};
use reticent_mechanisms::{Context, Desk, DeskError, FoldId};
use serde_json::json;

use super::linear::Total;
use super::tree::ranges;
use super::{Algorithm, Domain, Estimate, Query, Setting, Workload};
use crate::common::{StatisticsError, real, size};

/// Rounds.
const ROUNDS: usize = 10;
/// Times that all measurements so far are replayed after each round.
const REPLAYS: usize = 20;
/// Guesses are in units of 1/1024.
const UNIT: u32 = 1024;
/// Most queries to choose from.
const MOST_QUERIES: usize = 2048;
/// Share of a paid total: 5 %.
const TOTAL: (u64, u64) = (1, 20);

/// See the module text. The mass of the estimate is a public or paid total.
pub(super) struct Mwem {
    domain: Domain,
    total: Total,
    queries: Vec<Query>,
    strategy: Strategy,
    rounds: Vec<(WorstQuery, Linear)>,
}

pub(super) fn mwem(setting: &Setting<'_>) -> Result<Mwem, StatisticsError> {
    let domain = setting.domain;
    let epsilon = setting.epsilon()?;
    let (total, rest) = if let Some(n) = setting.public_total() {
        (Total::Public(n), epsilon.clone())
    } else {
        let (part, rest) = share(epsilon, TOTAL.0, TOTAL.1);
        (Total::paid(part), rest)
    };
    let parts: Vec<Rational> = split(&rest, &[1; 2 * ROUNDS]);
    let rounds = parts
        .chunks(2)
        .enumerate()
        .filter_map(|(i, pair)| match pair {
            [choose, measure] => Some((
                WorstQuery {
                    name: format!("round {}: choice", i + 1),
                    epsilon: choose.clone(),
                    unit: UNIT,
                },
                Linear {
                    name: format!("round {}: measurement", i + 1),
                    payment: Payment::Pure {
                        epsilon: measure.clone(),
                    },
                },
            )),
            _ => None,
        })
        .collect();
    let all = setting.config.workload.queries(domain);
    let step = all.len().div_ceil(MOST_QUERIES).max(1);
    let queries: Vec<Query> = all.into_iter().step_by(step).collect();
    let rows = queries.iter().map(|q| row(domain, q)).collect();
    Ok(Mwem {
        domain,
        total,
        strategy: Strategy::new(domain.cells(), rows),
        queries,
        rounds,
    })
}

fn row(domain: Domain, query: &Query) -> Row {
    let node = Node {
        rows: query.rows.clone(),
        columns: query.columns.clone(),
        depth: 0,
        children: 0..0,
    };
    Row::count(ranges(domain, &node), 1)
}

/// A number of records in units of 1/[`UNIT`], within ±2^62.
#[allow(clippy::cast_possible_truncation, reason = "clamped before the cast")]
fn units(x: f64) -> i128 {
    (x * f64::from(UNIT)).round().clamp(-4.6e18, 4.6e18) as i128
}

impl Algorithm for Mwem {
    fn events(&self, context: &Context) -> Vec<Event> {
        let mut events = self.total.events(context);
        for (choose, measure) in &self.rounds {
            events.push(choose.event(context));
            events.push(measure.event(context));
        }
        events
    }

    fn run(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<Estimate, DeskError> {
        let cells = self.domain.cells();
        let mass = self.total.buy(desk, fold, cells)?.0.max(1.0);
        let mut estimate = vec![mass / size(cells.max(1)); cells];
        let mut seen: Vec<(usize, f64)> = Vec::new();
        for (choose, measure) in &self.rounds {
            let guesses: Vec<i128> = Workload::answers(self.domain, &estimate, &self.queries)
                .into_iter()
                .map(units)
                .collect();
            let picked = desk.worst_query(fold, &self.strategy, &guesses, choose)?;
            let strategy = Strategy {
                rows: self
                    .strategy
                    .rows
                    .get(picked)
                    .cloned()
                    .into_iter()
                    .collect(),
                ..Strategy::new(cells, Vec::new())
            };
            let noisy = desk.linear(fold, &strategy, measure)?;
            seen.push((picked, noisy.values.first().map_or(0.0, |v| real(*v))));
            for _ in 0..REPLAYS {
                for (query, target) in &seen {
                    self.update(&mut estimate, *query, *target, mass);
                }
            }
        }
        Ok(Estimate {
            cells: estimate,
            spread: None,
            details: json!({"rounds": self.rounds.len()}),
        })
    }
}

impl Mwem {
    /// Multiplies the cells of a query by e^{(target − now)/(2·mass)} and scales back to the mass.
    fn update(&self, estimate: &mut [f64], query: usize, target: f64, mass: f64) {
        let Some(q) = self.queries.get(query) else {
            return;
        };
        let width = self.domain.columns();
        let row = |r: usize| r * width + q.columns.start..r * width + q.columns.end;
        let now: f64 = q
            .rows
            .clone()
            .map(|r| estimate[row(r)].iter().sum::<f64>())
            .sum();
        let factor = ((target - now) / (2.0 * mass)).clamp(-30.0, 30.0).exp();
        for r in q.rows.clone() {
            estimate[row(r)].iter_mut().for_each(|x| *x *= factor);
        }
        let sum: f64 = estimate.iter().sum();
        if sum > 0.0 && sum.is_finite() {
            estimate.iter_mut().for_each(|x| *x *= mass / sum);
        }
    }
}
