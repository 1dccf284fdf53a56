//! The queries a histogram is wanted for, their answers and their expected errors.

use std::ops::Range;

use reticent_laws::Seeded;
use reticent_noise::Noise;
use serde_json::{Value, json};

use super::{Domain, Spread};
use crate::common::{number, numbers, size};

/// A sum over a rectangle of cells (of a line: row 0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Rows.
    pub rows: Range<usize>,
    /// Columns.
    pub columns: Range<usize>,
}

/// A public set of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Every cell.
    Identity,
    /// Every prefix of a line: cells 0..=i. On a plane as [`Workload::Rectangles`] of 2000.
    Prefix,
    /// This many ranges (of a plane: rectangles) with independent uniform ends, seeded.
    Rectangles(u32),
}

impl Workload {
    /// The queries.
    pub fn queries(self, domain: Domain) -> Vec<Query> {
        let (rows, columns) = (domain.rows(), domain.columns());
        match (self, domain) {
            (Self::Identity, _) => (0..rows)
                .flat_map(|r| {
                    (0..columns).map(move |c| Query {
                        rows: r..r + 1,
                        columns: c..c + 1,
                    })
                })
                .collect(),
            (Self::Prefix, Domain::Line(_)) => (1..=columns)
                .map(|end| Query {
                    rows: 0..1,
                    columns: 0..end,
                })
                .collect(),
            (Self::Prefix, Domain::Plane(..)) => Self::Rectangles(2000).queries(domain),
            (Self::Rectangles(count), _) => {
                let mut random = Seeded::new(20_140);
                let mut range = |n: usize| {
                    let (a, b) = (below(&mut random, n), below(&mut random, n));
                    a.min(b)..a.max(b) + 1
                };
                (0..count)
                    .map(|_| Query {
                        rows: range(rows),
                        columns: range(columns),
                    })
                    .collect()
            }
        }
    }

    /// The answers of a table of cells to queries.
    pub fn answers(domain: Domain, cells: &[f64], queries: &[Query]) -> Vec<f64> {
        let width = domain.columns() + 1;
        let mut prefix = vec![0.0; (domain.rows() + 1) * width];
        for (r, row) in cells.chunks(domain.columns().max(1)).enumerate() {
            let mut sum = 0.0;
            for (c, x) in row.iter().enumerate() {
                sum += x;
                prefix[(r + 1) * width + c + 1] = prefix[r * width + c + 1] + sum;
            }
        }
        let at = |r: usize, c: usize| prefix[r * width + c];
        queries
            .iter()
            .map(|q| {
                at(q.rows.end, q.columns.end)
                    - at(q.rows.start, q.columns.end)
                    - at(q.rows.end, q.columns.start)
                    + at(q.rows.start, q.columns.start)
            })
            .collect()
    }

    pub(super) fn describe(self, queries: &[Query], errors: Option<&[f64]>) -> Value {
        let name = match self {
            Self::Identity => "identity",
            Self::Prefix => "prefix",
            Self::Rectangles(_) => "rectangles",
        };
        let rms = errors.map(root_mean_square);
        let mut value = json!({
            "name": name,
            "queries": queries.len(),
            "rms_error": rms.map_or(Value::Null, number),
        });
        if let (Some(errors), false, Some(map)) =
            (errors, self == Self::Identity, value.as_object_mut())
        {
            map.insert("errors".to_owned(), numbers(errors));
        }
        value
    }
}

/// √(mean of squares); 0 for none.
pub(super) fn root_mean_square(xs: &[f64]) -> f64 {
    (xs.iter().map(|x| x * x).sum::<f64>() / size(xs.len().max(1))).sqrt()
}

/// Uniform below n, off by n/2⁶⁴.
fn below(random: &mut Seeded, n: usize) -> usize {
    usize::try_from((u128::from(random.bits()) * n as u128) >> 64).unwrap_or(0)
}

/// Standard deviations of the noise in the queries' answers: root mean square over cells, and per query. Simulated with signs
/// ±σ, which give linear functions of the noise the right variance.
pub(super) fn expected_errors(
    domain: Domain,
    spread: &Spread,
    queries: &[Query],
    draws: u32,
) -> (f64, Vec<f64>) {
    let zero = (spread.rebuild)(&vec![0.0; spread.deviations.len()]);
    let mut random = Seeded::new(20_141);
    let mut squares = vec![0.0; queries.len()];
    let mut cells = 0.0;
    for _ in 0..draws {
        let mut word = 0;
        let noise: Vec<f64> = spread
            .deviations
            .iter()
            .enumerate()
            .map(|(i, sd)| {
                if i % 64 == 0 {
                    word = random.bits();
                }
                if word >> (i % 64) & 1 == 1 { *sd } else { -sd }
            })
            .collect();
        let moved: Vec<f64> = (spread.rebuild)(&noise)
            .iter()
            .zip(&zero)
            .map(|(a, b)| a - b)
            .collect();
        cells += root_mean_square(&moved).powi(2);
        let answers = Workload::answers(domain, &moved, queries);
        squares
            .iter_mut()
            .zip(answers)
            .for_each(|(s, a)| *s += a * a);
    }
    let draws = f64::from(draws.max(1));
    (
        (cells / draws).sqrt(),
        squares.into_iter().map(|s| (s / draws).sqrt()).collect(),
    )
}
