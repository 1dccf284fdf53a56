//! Histograms to attack: one count per line, or capital loss of UCI Adult in 4096 unit cells (as DPBench's ADULT).

use std::io::Read;
use std::path::Path;

use crate::AuditError;

/// Number of cells of [`capital_loss`].
pub const CELLS: usize = 4096;

/// The text of a file, unpacked if its name ends in `.gz`.
pub fn text(path: &Path) -> Result<String, AuditError> {
    let failed = |cause: &dyn std::fmt::Display| AuditError::Input {
        file: path.display().to_string(),
        cause: cause.to_string(),
    };
    let bytes = std::fs::read(path).map_err(|e| failed(&e))?;
    if path.extension().is_some_and(|e| e == "gz") {
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(bytes.as_slice())
            .read_to_string(&mut text)
            .map_err(|e| failed(&e))?;
        return Ok(text);
    }
    String::from_utf8(bytes).map_err(|e| failed(&e))
}

/// The most cells that are read: a row of answers per cell is read, so the work grows with the square.
pub const MOST_CELLS: usize = 1 << 15;

/// One non-negative whole count per line; empty lines are left out.
pub fn counts(text: &str, file: &str) -> Result<Vec<i64>, AuditError> {
    let failed = |cause: String| AuditError::Input {
        file: file.to_owned(),
        cause,
    };
    let mut counts = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        match line.parse::<i64>() {
            Ok(n) if n >= 0 => counts.push(n),
            _ => {
                return Err(failed(format!(
                    "line {} is {line:?}; a histogram file has one whole count, 0 or more, per line",
                    i + 1
                )));
            }
        }
    }
    if counts.is_empty() || counts.len() > MOST_CELLS {
        return Err(failed(format!(
            "it has {} cells; 1 to {MOST_CELLS} are read",
            counts.len()
        )));
    }
    Ok(counts)
}

/// Columns of a CSV table with a header, as text, in the order of `names`.
pub fn columns(text: &str, file: &str, names: &[&str]) -> Result<Vec<Vec<String>>, AuditError> {
    let failed = |cause: String| AuditError::Input {
        file: file.to_owned(),
        cause,
    };
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| failed(e.to_string()))?.clone();
    let places = names
        .iter()
        .map(|name| {
            header
                .iter()
                .position(|h| h == *name)
                .ok_or_else(|| failed(format!("it has no column {name:?}")))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| failed(e.to_string()))?;
        rows.push(
            places
                .iter()
                .map(|p| record.get(*p).unwrap_or("").to_owned())
                .collect(),
        );
    }
    Ok(rows)
}

/// Records of UCI Adult by capital loss, cell = dollars; losses from 4096 on are left out (three records).
///
/// DPBench's ADULT has the same cells and a third of the records (17665), picked by its authors.
pub fn capital_loss(adult: &str, file: &str) -> Result<Vec<i64>, AuditError> {
    let mut cells = vec![0; CELLS];
    for row in columns(adult, file, &["capital_loss"])? {
        let cell = row[0].trim().parse::<usize>().ok();
        if let Some(count) = cell.and_then(|c| cells.get_mut(c)) {
            *count += 1;
        }
    }
    Ok(cells)
}
