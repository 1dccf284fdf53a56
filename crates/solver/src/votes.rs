//! What a group of records says about one coefficient of a regression fitted to it alone.

use nalgebra::{Cholesky, DMatrix, DVector};

/// Newton steps of a logistic fit, and halvings of one.
const STEPS: u32 = 40;
const HALVINGS: u32 = 20;
/// Penalty of a logistic fit on standardised columns, so that separated groups have a fit.
const RIDGE: f64 = 0.05;
/// A column whose remainder on the others has less than this share of its variance is no column of its own.
const SINGULAR: f64 = 1e-10;

/// The regression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Least squares.
    Gaussian,
    /// Logistic regression with a slight ridge penalty; the outcome is 0 or 1.
    Binomial,
}

/// What a group is asked about the coefficient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ask {
    /// Is it above this number? A group that cannot be fitted says yes if its number is odd.
    Above(f64),
    /// Is it in this range, both ends included? A group that cannot be fitted says no.
    Within(f64, f64),
}

/// A question to every group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// The regression.
    pub family: Family,
    /// Whether it has an intercept.
    pub intercept: bool,
    /// Which of the covariates the coefficient belongs to.
    pub term: usize,
    /// What is asked.
    pub ask: Ask,
}

impl Question {
    /// The vote of group `number`. Rows are the covariates, then the outcome.
    pub fn vote(&self, number: u32, rows: &[&[f64]]) -> bool {
        let found = self.coefficient(rows).filter(|b| b.is_finite());
        match (self.ask, found) {
            (Ask::Above(limit), Some(b)) => b > limit,
            (Ask::Above(_), None) => number % 2 == 1,
            (Ask::Within(low, high), Some(b)) => low <= b && b <= high,
            (Ask::Within(..), None) => false,
        }
    }

    /// The coefficient in the user's units; `None` without a unique fit.
    pub fn coefficient(&self, rows: &[&[f64]]) -> Option<f64> {
        let p = rows.first()?.len().checked_sub(1)?;
        if self.term >= p || rows.len() <= p + usize::from(self.intercept) {
            return None;
        }
        let n = rows.len() as f64;
        let column = |j: usize| rows.iter().map(move |r| r.get(j).copied().unwrap_or(0.0));
        let mean = |j: usize| column(j).sum::<f64>() / n;
        let centre: Vec<f64> = (0..=p)
            .map(|j| if self.intercept { mean(j) } else { 0.0 })
            .collect();
        let spread: Vec<f64> = (centre.iter().enumerate())
            .map(|(j, c)| (column(j).map(|v| (v - c).powi(2)).sum::<f64>() / n).sqrt())
            .collect();
        let unit = |j: usize| Some(*spread.get(j)?).filter(|s| *s > 0.0 && s.is_finite());
        let units: Vec<f64> = (0..p).map(unit).collect::<Option<_>>()?;
        let standard: Vec<Vec<f64>> = (units.iter().zip(&centre).enumerate())
            .map(|(j, (s, c))| column(j).map(|v| (v - c) / s).collect())
            .collect();
        let outcome: Vec<f64> = column(p).collect();
        let slope = match self.family {
            Family::Gaussian => least_squares(&standard, &outcome, self.term),
            Family::Binomial => logistic(standard, &outcome, self.intercept, self.term),
        }?;
        Some(slope / units.get(self.term)?)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Σ x_i x_jᵀ of columns.
fn gram(columns: &[Vec<f64>], weights: Option<&[f64]>) -> DMatrix<f64> {
    let p = columns.len();
    let weighted: Vec<Vec<f64>> = match weights {
        None => columns.to_vec(),
        Some(w) => (columns.iter())
            .map(|c| c.iter().zip(w).map(|(x, w)| x * w).collect())
            .collect(),
    };
    let entries: Vec<f64> = (columns.iter())
        .flat_map(|a| weighted.iter().map(move |b| dot(a, b)))
        .collect();
    DMatrix::from_vec(p, p, entries)
}

/// The factor of a matrix whose columns are well apart.
fn factor(matrix: DMatrix<f64>, scale: f64) -> Option<Cholesky<f64, nalgebra::Dyn>> {
    let factor = Cholesky::new(matrix)?;
    let apart = (factor.l_dirty().diagonal().iter()).all(|d| d * d > SINGULAR * scale);
    apart.then_some(factor)
}

/// Columns are centred if there is an intercept, so the outcome need not be.
fn least_squares(columns: &[Vec<f64>], outcome: &[f64], term: usize) -> Option<f64> {
    let right = DVector::from_vec(columns.iter().map(|c| dot(c, outcome)).collect());
    let factor = factor(gram(columns, None), outcome.len() as f64)?;
    factor.solve(&right).get(term).copied()
}

fn logistic(
    mut columns: Vec<Vec<f64>>,
    outcome: &[f64],
    intercept: bool,
    term: usize,
) -> Option<f64> {
    let n = outcome.len() as f64;
    factor(gram(&columns, None), n)?;
    if intercept {
        columns.push(vec![1.0; outcome.len()]);
    }
    let objective = |w: &DVector<f64>| {
        let loss: f64 = (predictor(&columns, w).iter().zip(outcome))
            .map(|(eta, y)| libm::log1p(libm::exp(-eta.abs())) + eta.max(0.0) - y * eta)
            .sum();
        loss + RIDGE / 2.0 * w.norm_squared()
    };
    let mut w = DVector::zeros(columns.len());
    let mut value = objective(&w);
    for _ in 0..STEPS {
        let chance: Vec<f64> = (predictor(&columns, &w).iter())
            .map(|eta| 1.0 / (1.0 + libm::exp(-eta)))
            .collect();
        let rest: Vec<f64> = outcome.iter().zip(&chance).map(|(y, p)| y - p).collect();
        let weights: Vec<f64> = chance.iter().map(|p| p * (1.0 - p)).collect();
        let gradient =
            DVector::from_vec(columns.iter().map(|c| dot(c, &rest)).collect()) - &w * RIDGE;
        let mut hessian = gram(&columns, Some(&weights));
        for i in 0..columns.len() {
            if let Some(d) = hessian.get_mut((i, i)) {
                *d += RIDGE;
            }
        }
        let step = Cholesky::new(hessian)?.solve(&gradient);
        let mut length = 1.0;
        let mut moved = false;
        for _ in 0..HALVINGS {
            let next = &w + &step * length;
            let there = objective(&next);
            if there <= value {
                moved = there < value;
                (w, value) = (next, there);
                break;
            }
            length /= 2.0;
        }
        if !moved {
            break;
        }
    }
    w.get(term).copied()
}

fn predictor(columns: &[Vec<f64>], w: &DVector<f64>) -> Vec<f64> {
    let rows = columns.first().map_or(0, Vec::len);
    let mut eta = vec![0.0; rows];
    for (column, w) in columns.iter().zip(w.iter()) {
        for (e, x) in eta.iter_mut().zip(column) {
            *e += w * x;
        }
    }
    eta
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(family: Family, intercept: bool, term: usize) -> Question {
        Question {
            family,
            intercept,
            term,
            ask: Ask::Above(0.0),
        }
    }

    fn rows(all: &[[f64; 3]]) -> Vec<&[f64]> {
        all.iter().map(<[f64; 3]>::as_slice).collect()
    }

    #[test]
    fn exact_lines_are_found() {
        // y = 1 + 2a − 3b
        let all = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [5.0, 3.0]]
            .map(|[a, b]| [a, b, 1.0 + 2.0 * a - 3.0 * b]);
        for (term, slope) in [(0, 2.0), (1, -3.0)] {
            let found = ask(Family::Gaussian, true, term)
                .coefficient(&rows(&all))
                .unwrap();
            assert!((found - slope).abs() < 1e-12, "{found}");
        }
        // through the origin: b = Σxy/Σx²
        let all = [[1.0, 2.0], [2.0, 3.0]];
        let rows: Vec<&[f64]> = all.iter().map(<[f64; 2]>::as_slice).collect();
        let found = ask(Family::Gaussian, false, 0).coefficient(&rows).unwrap();
        assert!((found - 8.0 / 5.0).abs() < 1e-12);
    }

    #[test]
    fn logistic_fits_solve_their_equations() {
        // One binary covariate: without a penalty the coefficient is the log odds ratio; 400 records make the penalty small.
        let mut all = Vec::new();
        for (x, ones) in [(0.0, 50), (1.0, 150)] {
            all.extend((0..200).map(|i| [x, f64::from(u8::from(i < ones))]));
        }
        let rows: Vec<&[f64]> = all.iter().map(<[f64; 2]>::as_slice).collect();
        let found = ask(Family::Binomial, true, 0).coefficient(&rows).unwrap();
        assert!((found - 9f64.ln()).abs() < 0.01, "{found}");
    }

    #[test]
    fn groups_without_a_fit_vote_by_rule() {
        let above = ask(Family::Gaussian, true, 0);
        let constant = [[1.0, 2.0, 3.0]; 5];
        let same = [
            [1.0, 2.0, 3.0],
            [2.0, 4.0, 1.0],
            [3.0, 6.0, 0.0],
            [4.0, 8.0, 2.0],
        ];
        let wild = [
            [f64::MAX, 0.0, 1.0],
            [-f64::MAX, 1.0, 0.0],
            [0.0, 0.5, 1.0],
            [1.0, 2.0, f64::MAX],
        ];
        for family in [Family::Gaussian, Family::Binomial] {
            let above = Question { family, ..above };
            let within = Question {
                ask: Ask::Within(f64::NEG_INFINITY, f64::INFINITY),
                ..above
            };
            for group in [
                rows(&[]),
                rows(&constant),
                rows(&same),
                rows(&wild),
                rows(&same[..2]),
            ] {
                assert!(above.vote(1, &group) && !above.vote(2, &group));
                assert!(!within.vote(1, &group));
            }
        }
        // separated classes have a finite fit
        let apart: Vec<[f64; 3]> = (0..20)
            .map(|i| {
                let x = f64::from(i) - 9.5;
                [x, f64::from(i % 3), f64::from(u8::from(x > 0.0))]
            })
            .collect();
        assert!(ask(Family::Binomial, true, 0).vote(0, &rows(&apart)));
    }
}
