//! Monotone curves through released points: isotonic fit, monotone cubic, areas.

/// Isotonic least squares, equal weights (pool adjacent violators).
pub(crate) fn isotonic(values: &[f64]) -> Vec<f64> {
    isotonic_weighted(values, &vec![1.0; values.len()])
}

/// Isotonic least squares with positive weights.
pub(crate) fn isotonic_weighted(values: &[f64], weights: &[f64]) -> Vec<f64> {
    // weighted sum, weight, length
    let mut blocks: Vec<(f64, f64, usize)> = Vec::with_capacity(values.len());
    for (v, w) in values.iter().zip(weights) {
        blocks.push((v * w, *w, 1));
        while let [.., (a, v, n), (b, w, m)] = blocks.as_slice() {
            if a / v <= b / w {
                break;
            }
            let merged = (a + b, v + w, n + m);
            blocks.pop();
            blocks.pop();
            blocks.push(merged);
        }
    }
    blocks
        .into_iter()
        .flat_map(|(sum, weight, n)| std::iter::repeat_n(sum / weight, n))
        .collect()
}

/// A point of a curve.
pub(crate) type Point = (f64, f64);

/// Area under straight lines between points with non-decreasing abscissae.
pub(crate) fn area_of_lines(points: &[Point]) -> f64 {
    points
        .iter()
        .zip(points.iter().skip(1))
        .map(|((x0, y0), (x1, y1))| (x1 - x0) * (y0 + y1) / 2.0)
        .sum()
}

/// Area under the monotone cubic through the points. Where the abscissa repeats the curve is vertical;
/// the cubic runs separately on each side.
pub(crate) fn area_of_cubic(points: &[Point]) -> f64 {
    pieces(points)
        .iter()
        .map(|piece| {
            let slopes = slopes(piece);
            piece
                .iter()
                .zip(piece.iter().skip(1))
                .zip(slopes.iter().zip(slopes.iter().skip(1)))
                .map(|(((x0, y0), (x1, y1)), (d0, d1))| {
                    let h = x1 - x0;
                    h * (y0 + y1) / 2.0 + h * h * (d0 - d1) / 12.0
                })
                .sum::<f64>()
        })
        .sum()
}

/// Points along the monotone cubic, `per_interval` between neighbours, the given points included.
pub(crate) fn trace_cubic(points: &[Point], per_interval: u32) -> Vec<Point> {
    let mut out = Vec::new();
    for piece in pieces(points) {
        let slopes = slopes(&piece);
        let ends = piece.iter().zip(piece.iter().skip(1));
        for (((x0, y0), (x1, y1)), (d0, d1)) in ends.zip(slopes.iter().zip(slopes.iter().skip(1))) {
            let h = x1 - x0;
            for i in 0..per_interval {
                let t = f64::from(i) / f64::from(per_interval);
                let (t2, t3) = (t * t, t * t * t);
                let y = y0 * (2.0 * t3 - 3.0 * t2 + 1.0)
                    + y1 * (3.0 * t2 - 2.0 * t3)
                    + h * (d0 * (t3 - 2.0 * t2 + t) + d1 * (t3 - t2));
                out.push((x0 + t * h, y.clamp(y0.min(*y1), y0.max(*y1))));
            }
        }
        out.extend(piece.last());
    }
    out
}

/// Runs of strictly increasing abscissae; neighbours share an abscissa where the curve is vertical.
fn pieces(points: &[Point]) -> Vec<Vec<Point>> {
    let mut all: Vec<Vec<Point>> = Vec::new();
    for p in points {
        match all.last_mut() {
            Some(piece) if piece.last().is_none_or(|(x, _)| p.0 > *x) => piece.push(*p),
            _ => all.push(vec![*p]),
        }
    }
    all
}

/// Derivatives of the monotone cubic (harmonic means; one-sided, shape-preserving ends).
fn slopes(piece: &[Point]) -> Vec<f64> {
    let secants: Vec<(f64, f64)> = piece
        .iter()
        .zip(piece.iter().skip(1))
        .map(|((x0, y0), (x1, y1))| (x1 - x0, (y1 - y0) / (x1 - x0)))
        .collect();
    match secants.as_slice() {
        [] => vec![0.0; piece.len()],
        [(_, s)] => vec![*s, *s],
        [first, second, ..] => {
            let mut all = vec![end_slope(*first, *second)];
            for pair in secants.windows(2) {
                if let [(h0, s0), (h1, s1)] = pair {
                    all.push(if s0 * s1 <= 0.0 {
                        0.0
                    } else {
                        let (w0, w1) = (2.0 * h1 + h0, h1 + 2.0 * h0);
                        (w0 + w1) / (w0 / s0 + w1 / s1)
                    });
                }
            }
            if let [.., before, last] = secants.as_slice() {
                all.push(end_slope(*last, *before));
            }
            all
        }
    }
}

fn end_slope((h0, s0): (f64, f64), (h1, s1): (f64, f64)) -> f64 {
    let d = ((2.0 * h0 + h1) * s0 - h0 * s1) / (h0 + h1);
    if d * s0 <= 0.0 {
        0.0
    } else if s0 * s1 <= 0.0 && d.abs() > 3.0 * s0.abs() {
        3.0 * s0
    } else {
        d
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isotonic_pools() {
        assert_eq!(isotonic(&[1.0, 3.0, 2.0, 4.0]), vec![1.0, 2.5, 2.5, 4.0]);
        assert_eq!(isotonic(&[3.0, 2.0, 1.0]), vec![2.0; 3]);
        assert!(isotonic(&[]).is_empty());
    }

    #[test]
    fn cubic_keeps_lines_and_beats_them_on_smooth_curves() {
        let line: Vec<Point> = (0..5)
            .map(|i| (f64::from(i) / 4.0, f64::from(i) / 4.0))
            .collect();
        assert!((area_of_cubic(&line) - 0.5).abs() < 1e-15);
        // y = √x-like curve 1-(1-x)^3, area 3/4.
        let smooth: Vec<Point> = (0..9)
            .map(|i| {
                let x = f64::from(i) / 8.0;
                (x, 1.0 - (1.0 - x).powi(3))
            })
            .collect();
        let (cubic, lines) = (area_of_cubic(&smooth), area_of_lines(&smooth));
        assert!(
            (cubic - 0.75).abs() < 0.2 * (lines - 0.75).abs(),
            "{cubic} {lines}"
        );
        let traced = trace_cubic(&smooth, 50);
        assert!((area_of_lines(&traced) - cubic).abs() < 1e-4);
        assert!(traced.windows(2).all(|w| w[0].1 <= w[1].1));
    }

    #[test]
    fn verticals_carry_no_area() {
        let step = [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)];
        assert!((area_of_cubic(&step) - 1.0).abs() < 1e-15);
        assert!((area_of_lines(&step) - 1.0).abs() < 1e-15);
    }
}
