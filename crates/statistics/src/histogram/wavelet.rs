//! The Haar wavelet of sums and differences, and Privelet.

use std::ops::Range;

use reticent_accounting::Event;
use reticent_mechanisms::primitives::{Linear, Row, Strategy, Weights};
use reticent_mechanisms::{Context, Desk, DeskError, FoldId};

use super::{Algorithm, Domain, Estimate, Setting};

/// One coefficient: left sum minus right sum of a dyadic range, or the total (no split).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Coefficient {
    range: Range<usize>,
    split: Option<usize>,
}

/// Total first, then differences level by level. A dyadic range whose right half lies outside the cells has none.
fn coefficients(cells: usize) -> Vec<Coefficient> {
    let mut all = vec![Coefficient {
        range: 0..cells,
        split: None,
    }];
    let mut width = cells.max(1).next_power_of_two();
    while width > 1 {
        for start in (0..cells).step_by(width) {
            let split = start + width / 2;
            if split < cells {
                all.push(Coefficient {
                    range: start..(start + width).min(cells),
                    split: Some(split),
                });
            }
        }
        width /= 2;
    }
    all
}

/// Sums and differences (left minus right) of a line: the total, then level by level. Any length; a power of two gives as
/// many coefficients as cells.
///
/// ```
/// use reticent_statistics::histogram::{haar, haar_inverse};
/// let coefficients = haar(&[3.0, 1.0, 4.0, 2.0]);
/// assert_eq!(coefficients, [10.0, -2.0, 2.0, 2.0]);
/// assert_eq!(haar_inverse(4, &coefficients), [3.0, 1.0, 4.0, 2.0]);
/// ```
pub fn haar(cells: &[f64]) -> Vec<f64> {
    let sum = |r: Range<usize>| cells[r].iter().sum::<f64>();
    coefficients(cells.len())
        .into_iter()
        .map(|c| match c.split {
            None => sum(c.range),
            Some(m) => sum(c.range.start..m) - sum(m..c.range.end),
        })
        .collect()
}

/// Cells from [`haar`] coefficients.
pub fn haar_inverse(cells: usize, values: &[f64]) -> Vec<f64> {
    // totals by first cell: a range that is not split keeps its total in place
    let mut totals = vec![0.0; cells];
    if let (Some(first), Some(total)) = (totals.first_mut(), values.first()) {
        *first = *total;
    }
    for (c, difference) in coefficients(cells).iter().zip(values) {
        if let Some(m) = c.split {
            let total = totals[c.range.start];
            totals[c.range.start] = f64::midpoint(total, *difference);
            totals[m] = f64::midpoint(total, -difference);
        }
    }
    totals
}

/// Privelet: equal shares on every coefficient; a plane gets all products of a row and a column coefficient. A public total is
/// used as it is.
pub(super) struct Privelet {
    domain: Domain,
    strategy: Strategy,
    step: Linear,
    /// A public total replaces the first coefficient.
    total: Option<f64>,
}

pub(super) fn privelet(setting: &Setting<'_>) -> Privelet {
    let total = setting.public_total();
    let mut strategy = strategy(setting.domain);
    if total.is_some() {
        strategy.rows.remove(0);
    }
    Privelet {
        domain: setting.domain,
        strategy,
        step: Linear {
            name: "wavelet".to_owned(),
            payment: setting.payment(),
        },
        total,
    }
}

/// All coefficients with equal shares, the total first.
pub(super) fn strategy(domain: Domain) -> Strategy {
    let rows = coefficients(domain.rows());
    let columns = coefficients(domain.columns());
    let mut all = Vec::with_capacity(rows.len() * columns.len());
    for r in &rows {
        for c in &columns {
            all.push(row(domain, r, c));
        }
    }
    Strategy::new(domain.cells(), all)
}

fn row(domain: Domain, r: &Coefficient, c: &Coefficient) -> Row {
    let sign = |split: Option<usize>, i: usize| split.map_or(1, |m| if i < m { 1 } else { -1 });
    let width = domain.columns();
    let mut pieces = Vec::new();
    for i in r.range.clone() {
        let s = sign(r.split, i);
        let at = |j: usize| i * width + j;
        match c.split {
            None => pieces.push((at(c.range.start)..at(c.range.end), s)),
            Some(m) => {
                pieces.push((at(c.range.start)..at(m), s));
                pieces.push((at(m)..at(c.range.end), -s));
            }
        }
    }
    Row {
        weights: Weights::Ranges(pieces),
        share: 1,
    }
}

impl Algorithm for Privelet {
    fn events(&self, context: &Context) -> Vec<Event> {
        vec![self.step.event(context)]
    }

    fn run(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<Estimate, DeskError> {
        let measured = desk.linear(fold, &self.strategy, &self.step)?;
        let (domain, total) = (self.domain, self.total);
        Ok(Estimate::new(
            &measured,
            Box::new(move |values| {
                let mut all: Vec<f64> = total.into_iter().collect();
                all.extend_from_slice(values);
                inverse(domain, &all)
            }),
        ))
    }
}

/// Rows first, then columns.
fn inverse(domain: Domain, values: &[f64]) -> Vec<f64> {
    let (rows, columns) = (domain.rows(), domain.columns());
    if rows == 1 {
        return haar_inverse(columns, values);
    }
    let lines: Vec<Vec<f64>> = values
        .chunks(columns)
        .map(|line| haar_inverse(columns, line))
        .collect();
    let mut cells = vec![0.0; domain.cells()];
    for c in 0..columns {
        let column: Vec<f64> = lines.iter().map(|l| l[c]).collect();
        for (r, x) in haar_inverse(rows, &column).into_iter().enumerate() {
            cells[r * columns + c] = x;
        }
    }
    cells
}
