//! The fitted classifier: log weights per feature and class. Every record is predicted by itself.

use reticent_mechanisms::program::{Expr, Interval};
use serde_json::{Value, json};

use crate::common::numbers;
use crate::features::Items;

/// What a feature adds to the logarithm of each class's likelihood when a record has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// The feature.
    pub name: String,
    /// One number per class.
    pub of_class: Vec<f64>,
}

/// A Gaussian feature, on the user's scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Numeric {
    /// The feature.
    pub name: String,
    /// Mean in each class.
    pub mean: Vec<f64>,
    /// Variance in each class, positive.
    pub variance: Vec<f64>,
}

/// A naive Bayes classifier.
///
/// score(c) = base(c) + Σ weights(c) of the features the record has + Σ log densities of its numbers; the probabilities
/// are proportional to e^score.
#[derive(Clone, Debug, PartialEq)]
pub struct Classifier {
    /// The classes.
    pub classes: Vec<String>,
    /// Logarithm of each class's share, plus what features add that a record does not have.
    pub base: Vec<f64>,
    /// The 0/1 features.
    pub weights: Vec<Weights>,
    /// The numbers.
    pub numeric: Vec<Numeric>,
}

/// Intercept, a weight per feature, (linear, quadratic) coefficients per number.
pub type LogOdds = (f64, Vec<f64>, Vec<(f64, f64)>);

impl Classifier {
    /// Classes of these (positive) sizes, without features.
    pub(crate) fn of_classes(classes: Vec<String>, sizes: &[f64]) -> Self {
        let total: f64 = sizes.iter().sum();
        Self {
            classes,
            base: sizes.iter().map(|n| (n / total).ln()).collect(),
            weights: Vec::new(),
            numeric: Vec::new(),
        }
    }

    /// Binary features: x(c) of n(c) records have one. x is clipped to [½, n − ½]; with a pseudo-count κ and q the share over
    /// all classes, p(c) = (x + κ)/(n + κ/q): a count lost in noise goes to q in every class, and then says nothing.
    pub(crate) fn add_binary(
        &mut self,
        names: &[String],
        counts: &[Vec<f64>],
        sizes: &[f64],
        smoothing: f64,
    ) {
        for (name, of) in names.iter().zip(counts) {
            let pairs = || of.iter().zip(sizes);
            let clipped: Vec<f64> = pairs()
                .map(|(x, n)| x.min(n - 0.5).max(0.5f64.min(n / 2.0)))
                .collect();
            let share = clipped.iter().sum::<f64>() / sizes.iter().sum::<f64>();
            let p: Vec<f64> = clipped
                .iter()
                .zip(sizes)
                .map(|(x, n)| (x + smoothing) / (n + smoothing / share))
                .map(|p| p.clamp(1e-12, 1.0 - 1e-12))
                .collect();
            for (base, p) in self.base.iter_mut().zip(&p) {
                *base += (-p).ln_1p();
            }
            self.weights.push(Weights {
                name: name.clone(),
                of_class: p.iter().map(|p| p.ln() - (-p).ln_1p()).collect(),
            });
        }
    }

    /// The levels of one factor, of which a record has exactly one: p = (max(x, 0) + κ)/Σ.
    pub(crate) fn add_levels(&mut self, names: &[String], counts: &[Vec<f64>], smoothing: f64) {
        let classes = self.classes.len();
        let smooth = |x: f64| x.max(0.0) + smoothing;
        let totals: Vec<f64> = (0..classes)
            .map(|c| {
                counts
                    .iter()
                    .filter_map(|of| of.get(c))
                    .map(|x| smooth(*x))
                    .sum()
            })
            .collect();
        for (name, of) in names.iter().zip(counts) {
            let of_class = of.iter().zip(&totals);
            self.weights.push(Weights {
                name: name.clone(),
                of_class: of_class.map(|(x, t)| (smooth(*x) / t).ln()).collect(),
            });
        }
    }

    /// A number scaled to [−1, 1]: `sums` and `squares` are (Σ(u − centre), centre) per class, `sd` the noise of the latter.
    pub(crate) fn add_numeric(
        &mut self,
        name: &str,
        bounds: Interval,
        sums: &[(f64, f64)],
        (squares, sd): (&[(f64, f64)], f64),
        sizes: &[f64],
    ) {
        let half = (bounds.upper - bounds.lower) / 2.0;
        let middle = f64::midpoint(bounds.upper, bounds.lower);
        let average = |(s, c): (f64, f64), n: f64, low: f64| (s / n + c).clamp(low, 1.0);
        let mut out = Numeric {
            name: name.to_owned(),
            mean: Vec::new(),
            variance: Vec::new(),
        };
        for ((s, q), n) in sums.iter().zip(squares).zip(sizes) {
            let m = average(*s, *n, -1.0);
            // a variance the noise could have made is not taken at its word
            let floor = (sd / n).clamp(1e-4, 1.0 / 3.0);
            let v = (average(*q, *n, 0.0) - m * m).max(floor);
            out.mean.push(middle + half * m);
            out.variance.push((v * half * half).max(f64::MIN_POSITIVE));
        }
        self.numeric.push(out);
    }

    /// Scores of a record that has the features at these positions of [`Classifier::weights`] and these numbers. Positions
    /// that do not exist count for nothing; numbers that are missing or not finite are left out.
    pub fn scores(&self, has: &[usize], values: &[f64]) -> Vec<f64> {
        let mut scores = self.base.clone();
        let mut seen = has.to_vec();
        seen.sort_unstable();
        seen.dedup();
        for w in seen.into_iter().filter_map(|i| self.weights.get(i)) {
            scores
                .iter_mut()
                .zip(&w.of_class)
                .for_each(|(s, w)| *s += w);
        }
        for (x, f) in values
            .iter()
            .zip(&self.numeric)
            .filter(|(x, _)| x.is_finite())
        {
            for ((s, m), v) in scores.iter_mut().zip(&f.mean).zip(&f.variance) {
                *s -= 0.5 * (v.ln() + (x - m) * (x - m) / v);
            }
        }
        scores
    }

    /// Probabilities of the classes.
    pub fn probabilities(&self, has: &[usize], values: &[f64]) -> Vec<f64> {
        let scores = self.scores(has, values);
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let raised: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
        let total: f64 = raised.iter().sum();
        raised.iter().map(|r| r / total).collect()
    }

    /// The most probable class; the first of equals.
    pub fn predict(&self, has: &[usize], values: &[f64]) -> usize {
        let scores = self.scores(has, values);
        let each = scores.iter().enumerate();
        each.fold((0, f64::NEG_INFINITY), |best, (i, s)| {
            if *s > best.1 { (i, *s) } else { best }
        })
        .0
    }

    /// Log-odds of the second of two classes against the first: intercept, a weight per feature, and (linear, quadratic)
    /// coefficients per number.
    pub fn log_odds(&self) -> Option<LogOdds> {
        (self.classes.len() == 2).then(|| self.log_odds_of(1))?
    }

    /// Log-odds of a class against the first; none if there is no such class.
    pub fn log_odds_of(&self, class: usize) -> Option<LogOdds> {
        let difference = |v: &[f64]| Some(v.get(class)? - v.first()?);
        let mut intercept = difference(&self.base)?;
        let weights = self.weights.iter();
        let weights = weights
            .map(|w| difference(&w.of_class))
            .collect::<Option<_>>()?;
        let mut quadratic = Vec::with_capacity(self.numeric.len());
        for f in &self.numeric {
            let of = |i: usize| Some((*f.mean.get(i)?, *f.variance.get(i)?));
            let ((m, v), (mean, var)) = (of(0)?, of(class)?);
            intercept += 0.5 * (v.ln() - var.ln() + m * m / v - mean * mean / var);
            quadratic.push((mean / var - m / v, 0.5 * (1.0 / v - 1.0 / var)));
        }
        Some((intercept, weights, quadratic))
    }

    /// The log-odds of two classes as an expression. `items` names this classifier's 0/1 features in their order; `numbers`
    /// are the numeric ones in theirs.
    pub fn predictor(&self, items: &Items, numbers: &[Expr]) -> Option<Expr> {
        let (intercept, weights, quadratic) = self.log_odds()?;
        let mut parts = vec![Expr::Constant(intercept), items.weighted(&weights)];
        for ((a, b), x) in quadratic.iter().zip(numbers) {
            parts.push(x.clone().mul(Expr::Constant(*a)));
            let square = Expr::Power(Box::new(x.clone()), 2);
            parts.push(square.mul(Expr::Constant(*b)));
        }
        Some(crate::common::sum_of(parts))
    }

    /// As part of a release.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "family": "naive_bayes",
            "classes": self.classes,
            "base": numbers(&self.base),
            "weights": self.weights.iter().map(|w| json!({
                "name": w.name,
                "of_class": numbers(&w.of_class),
            })).collect::<Vec<_>>(),
            "numeric": self.numeric.iter().map(|n| json!({
                "name": n.name,
                "mean": numbers(&n.mean),
                "variance": numbers(&n.variance),
            })).collect::<Vec<_>>(),
        })
    }

    /// Reads a classifier back from the value of a release; `None` if it is none.
    pub fn read(value: &Value) -> Option<Self> {
        let list = |v: &Value| -> Option<Vec<f64>> {
            v.as_array()?
                .iter()
                .map(|x| x.as_f64().filter(|x| x.is_finite()))
                .collect()
        };
        let classes: Vec<String> = value["classes"]
            .as_array()?
            .iter()
            .map(|c| c.as_str().map(str::to_owned))
            .collect::<Option<_>>()?;
        let full = |v: Vec<f64>| (v.len() == classes.len()).then_some(v);
        let weights = value["weights"].as_array()?.iter();
        let weights = weights
            .map(|w| {
                Some(Weights {
                    name: w["name"].as_str()?.to_owned(),
                    of_class: full(list(&w["of_class"])?)?,
                })
            })
            .collect::<Option<_>>()?;
        let numeric = value["numeric"].as_array()?.iter();
        let numeric = numeric
            .map(|n| {
                Some(Numeric {
                    name: n["name"].as_str()?.to_owned(),
                    mean: full(list(&n["mean"])?)?,
                    variance: full(list(&n["variance"])?)?,
                })
            })
            .collect::<Option<_>>()?;
        Some(Self {
            base: full(list(&value["base"])?)?,
            weights,
            numeric,
            classes,
        })
    }
}
