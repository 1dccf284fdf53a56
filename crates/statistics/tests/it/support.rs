//! Tables in memory, and running a prepared release on them.

use std::path::PathBuf;
use std::sync::Arc;

use reticent_accounting::{Rational, parse_decimal};
use reticent_laws::Seeded;
use reticent_mechanisms::program::RowProgram;
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Answer, Context, Simulated, Trace, Unit, simulate};
use reticent_noise::Noise;
use reticent_statistics::{Facts, Prepared};
use serde_json::Value;

pub(crate) struct Table {
    pub(crate) schema: Arc<Schema>,
    pub(crate) source: Memory,
    pub(crate) rows: usize,
}

/// Real columns with given bounds; NaN is a missing cell and drops the row.
pub(crate) fn reals(columns: &[(&str, Vec<f64>, f64, f64)]) -> Table {
    let rows = columns.first().map_or(0, |c| c.1.len());
    let schema = Arc::new(Schema {
        columns: columns
            .iter()
            .map(|(name, _, lower, upper)| Column {
                name: (*name).to_owned(),
                kind: Kind::Real {
                    lower: *lower,
                    upper: *upper,
                },
                missing: Missing::Drop,
            })
            .collect(),
    });
    let batches = (0..rows)
        .step_by(1000)
        .map(|start| {
            let range = start..(start + 1000).min(rows);
            Batch::new(
                range.len(),
                columns
                    .iter()
                    .map(|c| Cells::Real(c.1[range.clone()].to_vec()))
                    .collect(),
            )
        })
        .collect();
    Table {
        source: Memory::new(schema.clone(), batches),
        schema,
        rows,
    }
}

/// A CSV of numbers with bounds from the (public) data.
pub(crate) fn csv(name: &str) -> (Vec<String>, Vec<Vec<f64>>) {
    let text = file(name);
    let mut lines = text.lines();
    let names: Vec<String> = lines
        .next()
        .unwrap()
        .split(',')
        .map(|n| n.trim_matches('"').to_owned())
        .collect();
    let mut columns = vec![Vec::new(); names.len()];
    for line in lines {
        for (column, cell) in columns.iter_mut().zip(line.split(',')) {
            column.push(match cell.trim_matches('"') {
                "setosa" => 0.0,
                "versicolor" => 1.0,
                "virginica" => 2.0,
                number => number.parse().unwrap(),
            });
        }
    }
    (names, columns)
}

pub(crate) fn with_data_bounds(names: &[String], columns: &[Vec<f64>]) -> Table {
    let all: Vec<_> = names
        .iter()
        .zip(columns)
        .map(|(n, c)| {
            let low = c.iter().copied().fold(f64::INFINITY, f64::min);
            let high = c.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            (n.as_str(), c.clone(), low, high)
        })
        .collect();
    reals(&all)
}

pub(crate) fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../golden")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

pub(crate) fn json(name: &str) -> Value {
    serde_json::from_str(&file(name)).unwrap()
}

pub(crate) fn floats(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v.as_f64().unwrap_or(f64::INFINITY))
        .collect()
}

pub(crate) fn rational(text: &str) -> Rational {
    parse_decimal(text).unwrap()
}

impl Table {
    pub(crate) fn facts<'a>(&'a self, context: &'a Context, rows: Option<f64>) -> Facts<'a> {
        Facts {
            schema: &self.schema,
            filter: None,
            context,
            rows,
            positive_rate: None,
        }
    }

    pub(crate) fn run(
        &self,
        context: &Context,
        prepared: &Prepared,
        noise: &mut dyn Noise,
    ) -> (Answer, Trace) {
        let program = RowProgram {
            terms: prepared.terms.clone(),
            filter: None,
            part: None,
        };
        let Simulated(done) = simulate(
            &self.source,
            Unit::Row,
            context,
            &program,
            prepared.mechanism.as_ref(),
            noise,
        )
        .unwrap();
        done
    }
}

/// A uniform number in [0, 1).
#[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
pub(crate) fn uniform(noise: &mut Seeded) -> f64 {
    (noise.bits() >> 11) as f64 / 9_007_199_254_740_992.0
}
