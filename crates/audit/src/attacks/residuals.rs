//! The one unknown record, from an exact residual plot (Chen thesis 2018, §4.2): its point is the one that is left, and
//! outcome = prediction + residual.

/// A point of the plot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Prediction of the released model.
    pub predicted: f64,
    /// Outcome minus prediction.
    pub residual: f64,
}

impl Point {
    /// The outcome behind a point.
    pub fn outcome(&self) -> f64 {
        self.predicted + self.residual
    }

    fn key(&self) -> (u64, u64) {
        (self.predicted.to_bits(), self.residual.to_bits())
    }
}

/// The points of `plot` that the known records do not account for.
pub fn left_over(plot: &[Point], known: &[Point]) -> Vec<Point> {
    let mut budget = std::collections::BTreeMap::new();
    for p in known {
        *budget.entry(p.key()).or_insert(0_usize) += 1;
    }
    plot.iter()
        .filter(|p| match budget.get_mut(&p.key()) {
            Some(n) if *n > 0 => {
                *n -= 1;
                false
            }
            _ => true,
        })
        .copied()
        .collect()
}

/// All covariates on a grid whose prediction is exactly the one seen: what the plot says about who it is.
pub fn candidates<C: Copy>(
    seen: f64,
    grid: impl IntoIterator<Item = C>,
    predict: impl Fn(C) -> f64,
) -> Vec<C> {
    grid.into_iter()
        .filter(|c| predict(*c).to_bits() == seen.to_bits())
        .collect()
}
