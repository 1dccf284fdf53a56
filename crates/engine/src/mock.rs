//! `mock`: fake rows of the declared shape, to try a plan on without touching the data.
//!
//! Every cell is drawn independently and uniformly within its declared bounds or levels, from a printed
//! seed. The declaration is public, hence so is the result; it says nothing about the real rows.

use std::io::{self, Write};

use reticent_laws::Seeded;
use reticent_mechanisms::rows::{Column, Kind};
use reticent_noise::Noise;

use crate::dataset::{Dataset, Unit};
use crate::tokens::{Stored, stored};

/// Writes a CSV file of `rows` fake rows.
///
/// If `positive_rate` is declared, the last two-level column has its second level at that rate.
pub fn write(dataset: &Dataset, rows: u64, seed: u64, out: impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let columns = &dataset.schema.columns;
    let stored = stored(&dataset.schema, &dataset.tokens);
    let names = stored.iter().map(|s| match s {
        Stored::Plain(_, column) => &column.name,
        Stored::Text(text) => &text.column.name,
    });
    writer.write_record(names).map_err(cause)?;
    let rated = dataset.positive_rate.and_then(|rate| {
        let two = |c: &Column| matches!(&c.kind, Kind::Levels { levels, .. } if levels.len() == 2);
        columns.iter().rposition(two).map(|index| (index, rate))
    });
    // On average a unit has half of the rows it may have.
    let units = match &dataset.unit {
        Unit::Row => rows,
        Unit::Column { max_rows, .. } => rows.div_ceil(u64::from(max_rows.div_ceil(2).max(1))),
    };
    let mut noise = Seeded::new(seed);
    for row in 0..rows {
        for stored in &stored {
            let cell = match stored {
                Stored::Text(text) => text.column.mock(&mut noise),
                Stored::Plain(_, column) if column.kind == Kind::Id => {
                    let unit = if units < rows {
                        below(&mut noise, u128::from(units))
                    } else {
                        u128::from(row)
                    };
                    format!("unit-{unit}")
                }
                Stored::Plain(index, column) => {
                    let rate = rated.filter(|r| r.0 == *index).map(|r| r.1);
                    cell(&column.kind, rate, &mut noise)
                }
            };
            writer.write_field(cell).map_err(cause)?;
        }
        writer.write_record(None::<&[u8]>).map_err(cause)?;
    }
    writer.flush()
}

/// The failure underneath: a reader that has gone away must stay recognisable.
fn cause(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

fn cell(kind: &Kind, rate: Option<f64>, noise: &mut Seeded) -> String {
    match kind {
        Kind::Integer { lower, upper } => {
            let width = u128::from(upper.abs_diff(*lower)).saturating_add(1);
            let step = i64::try_from(below(noise, width)).unwrap_or(0);
            lower.saturating_add(step).to_string()
        }
        Kind::Real { lower, upper } => {
            let x = lower + (upper - lower) * unit_interval(noise);
            x.clamp(*lower, *upper).to_string()
        }
        Kind::Levels { levels, .. } => {
            let index = match rate {
                Some(rate) => usize::from(unit_interval(noise) < rate),
                None => usize::try_from(below(noise, levels.len().max(1) as u128)).unwrap_or(0),
            };
            levels.get(index).cloned().unwrap_or_default()
        }
        Kind::Id => String::new(),
    }
}

/// Uniform below `n`, up to an imbalance of 2⁻⁶⁴ that fake data can bear.
fn below(noise: &mut Seeded, n: u128) -> u128 {
    u128::from(noise.bits()).wrapping_mul(n) >> 64
}

fn unit_interval(noise: &mut Seeded) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    let x = (noise.bits() >> 11) as f64;
    x / 9_007_199_254_740_992.0
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const DATASET: &str = r#"
        version = 1
        id = "t"
        data_version = "1"
        source = { path = "t.csv" }
        neighbours = "add_remove"
        unit = { column = "person", max_rows = 4 }
        positive_rate = 0.1
        [budget]
        epsilon = 1
        [ledger]
        path = "t.ledger"
        [columns.person]
        type = "id"
        [columns.age]
        type = "integer"
        lower = 17
        upper = 19
        [columns."pay, net"]
        type = "real"
        lower = -1
        upper = 1e3
        [columns.region]
        type = "text"
        levels = ["north", "a \"b\", c"]
        [columns.y]
        type = "boolean"
    "#;

    fn mock(rows: u64, seed: u64) -> Vec<csv::StringRecord> {
        let dataset = Dataset::parse(DATASET, Path::new("dataset.toml")).unwrap();
        let mut out = Vec::new();
        write(&dataset, rows, seed, &mut out).unwrap();
        let mut reader = csv::Reader::from_reader(out.as_slice());
        assert_eq!(
            reader.headers().unwrap(),
            vec!["person", "age", "pay, net", "region", "y"]
        );
        reader.records().map(Result::unwrap).collect()
    }

    #[test]
    fn rows_have_the_declared_shape() {
        let rows = mock(4000, 1);
        assert_eq!(rows.len(), 4000);
        for row in &rows {
            assert!((17..=19).contains(&row[1].parse::<i64>().unwrap()));
            assert!((-1.0..=1000.0).contains(&row[2].parse::<f64>().unwrap()));
            assert!(["north", "a \"b\", c"].contains(&&row[3]));
        }
        let count =
            |column: usize, value: &str| rows.iter().filter(|r| &r[column] == value).count();
        // 400 expected, standard deviation 19: outside 250..550 with probability below 1e-14.
        assert!(
            (250..550).contains(&count(4, "true")),
            "{}",
            count(4, "true")
        );
        // 2000 expected, standard deviation 32.
        assert!((1700..2300).contains(&count(3, "north")));
        let people: std::collections::HashSet<&str> = rows.iter().map(|r| &r[0]).collect();
        assert!(people.len() > 1500 && people.len() <= 2000);
    }

    #[test]
    fn the_seed_decides_everything() {
        assert_eq!(mock(50, 7), mock(50, 7));
        assert_ne!(mock(50, 7), mock(50, 8));
        assert!(mock(0, 7).is_empty());
    }
}
