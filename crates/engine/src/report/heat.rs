//! The heat map of a histogram of two columns.

use std::fmt::Write as _;

use serde_json::Value;

use super::plots::Figure;
use super::read::{list, num, nums, text};
use super::svg::{Axis, Plot, Ticks, Words};
use super::words::{self, as_f64};

/// Squares drawn at most along a side; finer cells are added up.
const MOST: usize = 64;

/// Rows run upward, columns to the right.
pub(super) fn figure(v: &Value, key: &str) -> Option<Figure> {
    let counts = nums(v, "counts");
    let [rows, columns] = list(v, "axes") else {
        return None;
    };
    let size = |axis: &Value| match list(axis, "levels").len() {
        0 => list(axis, "edges").len().saturating_sub(1),
        n => n,
    };
    let (height, width) = (size(rows), size(columns));
    if height == 0 || width == 0 || counts.len() != height.checked_mul(width)? {
        return None;
    }
    let (down, across) = (height.min(MOST), width.min(MOST));
    let mut squares = vec![0.0; down * across];
    for (i, c) in counts.iter().enumerate().filter(|(_, c)| c.is_finite()) {
        let (r, c_at) = (i / width * down / height, i % width * across / width);
        squares[r * across + c_at] += c;
    }
    let top = squares.iter().copied().fold(1.0, f64::max);
    // Numbers along the sides where the cells are even, else the number of the cell.
    let ends = |axis: &Value, n: usize| {
        let edges = nums(axis, "edges");
        let even = edges.windows(2).all(|w| {
            let width = (edges.last().copied().unwrap_or(0.0) - edges[0]) / as_f64(n);
            (w[1] - w[0] - width).abs() <= 1e-6 * width.abs()
        });
        match (edges.first(), edges.last()) {
            (Some(a), Some(b)) if even && a < b => (*a, *b),
            _ => (0.0, as_f64(n)),
        }
    };
    let (x, y) = (ends(columns, width), ends(rows, height));
    let mut p = Plot::new(
        Axis::exact(x.0, x.1, 6.0),
        Axis::exact(y.0, y.1, 6.0),
        420.0,
    );
    let at = |(a, b): (f64, f64), i: usize, n: usize| a + (b - a) * as_f64(i) / as_f64(n);
    for (i, count) in squares.iter().enumerate() {
        let weight = (count / top).clamp(0.0, 1.0);
        let (r, c) = (i / across, i % across);
        let corners = (
            p.x(at(x, c, across)),
            p.x(at(x, c + 1, across)),
            p.y(at(y, r, down)),
            p.y(at(y, r + 1, down)),
        );
        if let (true, (Some(x0), Some(x1), Some(y0), Some(y1))) = (weight > 0.004, corners) {
            let mut square = String::new();
            let _ = write!(
                square,
                r#"<rect class="bar" x="{x0:.1}" y="{y1:.1}" width="{:.1}" height="{:.1}" fill-opacity="{weight:.2}" stroke="none"/>"#,
                x1 - x0,
                y0 - y1
            );
            p.raw(&square);
        }
    }
    let name = |axis: &Value| text(axis, "name").unwrap_or_default();
    let description = format!(
        "Heat map of {} by {}, {height} by {width} cells; the stronger the shade, the more records.",
        name(rows),
        name(columns)
    );
    let error = num(v, "error_95")
        .map(|e| {
            format!(
                " Noise of a cell: within {} in 95 of 100 runs.",
                words::number(e)
            )
        })
        .unwrap_or_default();
    let merged = if (down, across) == (height, width) {
        String::new()
    } else {
        format!(" Drawn as {down} by {across} squares.")
    };
    let words = Words {
        title: "Histogram of two columns",
        description: &description,
        x: &name(columns),
        y: &name(rows),
    };
    let note = format!("{error}{merged}");
    Some(Figure {
        svg: p.finish(key, &words, Ticks::Numbers, Ticks::Numbers),
        legend: vec![("bar", format!("up to {} records", words::number(top)))],
        note: (!note.is_empty()).then(|| note.trim().to_owned()),
    })
}
