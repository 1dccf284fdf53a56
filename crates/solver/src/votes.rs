//! What a group of records says about one coefficient of a regression fitted to it alone.

use nalgebra::{Cholesky, DMatrix, DVector};

/// Newton steps of a logistic fit, and halvings of one.
const STEPS: u32 = 40;
const HALVINGS: u32 = 20;
/// Penalty of a logistic fit on standardised columns, so that separated groups have a fit.
const RIDGE: f64 = 0.05;
/// A column whose remainder on the others has less than this share of its variance is no column of its own.
const SINGULAR: f64 = 1e-10;

/// Shuffles that a moment is compared with: odd, so that a half of them is none.
const SHUFFLES: u32 = 19;
/// Moments closer than this share of their size are equal: without it rounding would decide where an outcome does not vary.
const EQUAL: f64 = 1e-12;

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
    /// Is it above this number? The moment of the covariate (what the others leave of it) and the residuals under this number is compared with its
    /// values over `SHUFFLES` fixed shuffles of the covariate: yes if it is above more than half of them. So where residuals do not depend on the
    /// covariate, yes has probability ½ however skewed both are. A group that cannot be fitted, or has as many above as below, says yes if its
    /// number is odd.
    Above(f64),
    /// Is it in this range, both ends included? A group that cannot be fitted says yes if its number is odd: groups that know nothing decide nothing.
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
        match self.ask {
            Ask::Above(limit) => self.above(limit, number, rows).unwrap_or(number % 2 == 1),
            Ask::Within(low, high) => {
                let found = self.coefficient(rows).map(|b| low <= b && b <= high);
                found.unwrap_or(number % 2 == 1)
            }
        }
    }

    /// Covariates in units of their spread, centred if there is an intercept; the spreads; the outcome. `None` if there are too few rows or a
    /// covariate does not vary.
    #[allow(clippy::type_complexity, reason = "three parts, named above")]
    fn standard(&self, rows: &[&[f64]]) -> Option<(Vec<Vec<f64>>, Vec<f64>, Vec<f64>)> {
        let p = rows.first()?.len().checked_sub(1)?;
        if self.term >= p || rows.len() <= p + usize::from(self.intercept) {
            return None;
        }
        let n = rows.len() as f64;
        let column = |j: usize| rows.iter().map(move |r| r.get(j).copied().unwrap_or(0.0));
        let mut columns = Vec::new();
        let mut units = Vec::new();
        for j in 0..p {
            let centre = if self.intercept {
                column(j).sum::<f64>() / n
            } else {
                0.0
            };
            let unit = (column(j).map(|v| (v - centre).powi(2)).sum::<f64>() / n).sqrt();
            if !(unit > 0.0 && unit.is_finite()) {
                return None;
            }
            columns.push(column(j).map(|v| (v - centre) / unit).collect());
            units.push(unit);
        }
        Some((columns, units, column(p).collect()))
    }

    /// Whether the moment of covariate and residuals is above more than half of its shuffles; `None` without a fit, or with as many above as below.
    fn above(&self, limit: f64, number: u32, rows: &[&[f64]]) -> Option<bool> {
        let (mut others, units, outcome) = self.standard(rows)?;
        factor(gram(&others, None), rows.len() as f64)?;
        let x = others.remove(self.term);
        let slope = limit * units.get(self.term)?;
        let (rest, left) = match self.family {
            Family::Gaussian => {
                let mut y: Vec<f64> = outcome.iter().zip(&x).map(|(y, x)| y - slope * x).collect();
                if self.intercept {
                    let mean = y.iter().sum::<f64>() / rows.len() as f64;
                    y.iter_mut().for_each(|y| *y -= mean);
                }
                (remainder(&others, &y, None)?, remainder(&others, &x, None)?)
            }
            Family::Binomial => {
                if self.intercept {
                    others.push(vec![1.0; x.len()]);
                }
                let offset: Vec<f64> = x.iter().map(|x| slope * x).collect();
                let (_, chance) = logistic(&others, &outcome, &offset)?;
                let weights: Vec<f64> = chance.iter().map(|p| p * (1.0 - p)).collect();
                let rest = outcome.iter().zip(&chance).map(|(y, p)| y - p).collect();
                (rest, remainder(&others, &x, Some(&weights))?)
            }
        };
        let moment = dot(&left, &rest);
        let near = EQUAL * (dot(&left, &left) * dot(&rest, &rest)).sqrt();
        if !near.is_finite() {
            return None;
        }
        let mut shuffled = left;
        let mut state = u64::from(number);
        let mut above = 0i64;
        for _ in 0..SHUFFLES {
            for i in (1..shuffled.len()).rev() {
                shuffled.swap(i, (split_mix(&mut state) % (i as u64 + 1)) as usize);
            }
            let other = dot(&shuffled, &rest);
            above += i64::from(moment > other + near) - i64::from(moment < other - near);
        }
        (above != 0).then_some(above > 0)
    }

    /// The coefficient in the user's units; `None` without a unique fit.
    pub fn coefficient(&self, rows: &[&[f64]]) -> Option<f64> {
        let (mut standard, units, outcome) = self.standard(rows)?;
        let slope = match self.family {
            Family::Gaussian => least_squares(&standard, &outcome, self.term),
            Family::Binomial => {
                factor(gram(&standard, None), outcome.len() as f64)?;
                if self.intercept {
                    standard.push(vec![1.0; outcome.len()]);
                }
                let (w, _) = logistic(&standard, &outcome, &vec![0.0; outcome.len()])?;
                w.get(self.term).copied()
            }
        }?;
        Some(slope / units.get(self.term)?).filter(|b| b.is_finite())
    }
}

/// Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014). Public: it only fixes the shuffles.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What the others leave of a column: the residual of its least squares on them. `None` if they are not well apart.
fn remainder(others: &[Vec<f64>], column: &[f64], weights: Option<&[f64]>) -> Option<Vec<f64>> {
    if others.is_empty() {
        return Some(column.to_vec());
    }
    let weighted: Vec<f64> = match weights {
        None => column.to_vec(),
        Some(w) => column.iter().zip(w).map(|(x, w)| x * w).collect(),
    };
    let total = weights.map_or(column.len() as f64, |w| w.iter().sum());
    let right = DVector::from_vec(others.iter().map(|c| dot(c, &weighted)).collect());
    let fit = factor(gram(others, weights), total)?.solve(&right);
    let fitted = predictor(others, &fit);
    Some(column.iter().zip(fitted).map(|(x, f)| x - f).collect())
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

/// Coefficients and fitted probabilities, with a part of the log-odds given.
fn logistic(
    columns: &[Vec<f64>],
    outcome: &[f64],
    offset: &[f64],
) -> Option<(DVector<f64>, Vec<f64>)> {
    let log_odds = |w: &DVector<f64>| -> Vec<f64> {
        let eta = predictor(columns, w);
        let padded = eta.into_iter().chain(std::iter::repeat(0.0));
        offset.iter().zip(padded).map(|(o, e)| o + e).collect()
    };
    let objective = |w: &DVector<f64>| {
        let loss: f64 = (log_odds(w).iter().zip(outcome))
            .map(|(eta, y)| libm::log1p(libm::exp(-eta.abs())) + eta.max(0.0) - y * eta)
            .sum();
        loss + RIDGE / 2.0 * w.norm_squared()
    };
    let mut w = DVector::zeros(columns.len());
    let mut value = objective(&w);
    for _ in 0..STEPS {
        let chance: Vec<f64> = (log_odds(&w).iter())
            .map(|eta| 1.0 / (1.0 + libm::exp(-eta)))
            .collect();
        let rest: Vec<f64> = outcome.iter().zip(&chance).map(|(y, p)| y - p).collect();
        let weights: Vec<f64> = chance.iter().map(|p| p * (1.0 - p)).collect();
        let gradient =
            DVector::from_vec(columns.iter().map(|c| dot(c, &rest)).collect()) - &w * RIDGE;
        let mut hessian = gram(columns, Some(&weights));
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
    let chance = (log_odds(&w).iter())
        .map(|eta| 1.0 / (1.0 + libm::exp(-eta)))
        .collect();
    Some((w, chance))
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
    fn votes_follow_the_coefficient() {
        // y = 1 + 2a − 3b exactly, and classes that follow a; the slope on a is above 1 and below 3, that on b the other way round.
        let all: Vec<[f64; 3]> = (0..40)
            .map(|i| {
                let (a, b) = (f64::from(i % 7), f64::from(i * i % 11));
                [a, b, 1.0 + 2.0 * a - 3.0 * b]
            })
            .collect();
        for intercept in [true, false] {
            for (term, limit, expected) in [
                (0, 1.0, true),
                (0, 3.0, false),
                (1, -4.0, true),
                (1, -2.0, false),
            ] {
                let question = Question {
                    ask: Ask::Above(limit),
                    ..ask(Family::Gaussian, intercept, term)
                };
                assert_eq!(question.vote(0, &rows(&all)), expected);
                assert_eq!(question.vote(1, &rows(&all)), expected);
            }
        }
        // One covariate, no intercept: nothing else is fitted.
        let classes: Vec<[f64; 2]> = (0..60)
            .map(|i| {
                let x = f64::from(i) - 29.5;
                [x, f64::from(u8::from((x > 0.0) != (i % 4 == 0)))]
            })
            .collect();
        let group: Vec<&[f64]> = classes.iter().map(<[f64; 2]>::as_slice).collect();
        for intercept in [true, false] {
            for (limit, expected) in [(0.0, true), (1.0, false)] {
                let question = Question {
                    ask: Ask::Above(limit),
                    ..ask(Family::Binomial, intercept, 0)
                };
                assert_eq!(question.vote(0, &group), expected, "{limit} {intercept}");
            }
        }
    }

    #[test]
    fn outcomes_that_do_not_vary_decide_nothing() {
        let flat: Vec<[f64; 3]> = (0..30)
            .map(|i| [f64::from(i * i % 17), f64::from(i % 5), 0.0])
            .collect();
        for family in [Family::Gaussian, Family::Binomial] {
            let question = ask(family, true, 0);
            assert!(
                question.vote(1, &rows(&flat)) && !question.vote(2, &rows(&flat)),
                "{family:?}"
            );
        }
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
                assert!(within.vote(1, &group) && !within.vote(2, &group));
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
