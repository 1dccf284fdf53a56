//! One regression from noisy second moments: the numbers of a report, on the user's scale.

use nalgebra::{DMatrix, DVector};
use serde_json::{Value, json};

use super::fit::{fit, floored_inverse, rows_of, solve_lifted};
use crate::common::{StatisticsError, number, size};
use crate::design::Affine;
use crate::simple::flags;
use crate::student;

/// Floor of the eigenvalues of the X block, in units of s·√(2p).
const FLOOR: f64 = 0.5;

/// Coefficients for prediction; intervals and tests always use the unshrunk ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Prediction {
    /// Ridge 2·p·σ_off²/max(W_yy, σ_yy) on the columns as scaled to [−½, ½] (the default).
    #[default]
    Rule,
    /// Ridge of this weight on the slopes of the user's columns: Σ (y − xᵀw)² + λ·‖slopes‖².
    Ridge(f64),
    /// As AdaSSP (Wang 2018) chooses it: λ = max(0, c − λ̃), c = σ_off·√(p·ln(2p²/.05)) bounding the noise, λ̃ the least
    /// eigenvalue of the noisy matrix minus c (read off the released matrix, so it costs nothing of its own).
    AdaSsp,
}

/// What is reported besides coefficients and intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Also the standard errors, t and p values of ordinary least squares, which ignore the privacy noise. They are
    /// wrong, and labelled so; for comparison with other programs.
    pub naive: bool,
    /// The prediction coefficients.
    pub prediction: Prediction,
}

impl Options {
    pub(crate) fn check(&self) -> Result<(), StatisticsError> {
        match self.prediction {
            Prediction::Ridge(lambda) if !(lambda.is_finite() && lambda >= 0.0) => {
                Err(StatisticsError::Parameter {
                    name: "ridge",
                    value: lambda.to_string(),
                    fix: "give a number of at least 0".to_owned(),
                })
            }
            _ => Ok(()),
        }
    }
}

/// Noisy moments of (g, x, y) and what their columns mean.
pub(crate) struct Equation<'a> {
    /// Names of the covariates.
    pub(crate) names: &'a [String],
    pub(crate) has_intercept: bool,
    /// Of the covariates, then of the outcome.
    pub(crate) scaling: &'a [Affine],
    /// The noisy matrix.
    pub(crate) full: DMatrix<f64>,
    /// The intercept coordinate.
    pub(crate) g: f64,
    /// Of the noise on a diagonal and on an off-diagonal entry.
    pub(crate) deviations: (f64, f64),
    pub(crate) options: Options,
}

impl Equation<'_> {
    /// The value of a `linear` or `regress` release, and its flags.
    pub(crate) fn report(&self) -> (Value, Vec<String>) {
        let d = self.names.len();
        let (p, g) = (d + 1, self.g);
        let full = &self.full;
        let gram = full.view((0, 0), (p, p)).into_owned();
        let cross = full.view((0, p), (p, 1)).column(0).into_owned();
        let yy = full[(p, p)];
        let (s, o) = self.deviations;
        let rows = gram[(0, 0)] / (g * g);
        let estimated = d + usize::from(self.has_intercept);
        let n = rows.max(size(estimated) + 1.0);
        let df = (n - size(estimated)).max(1.0);

        // The user's coordinates u = B·z, y = s_y·y′ + (m_y/g)·z₀.
        let back = self.back();
        let y_scale = self.outcome_scale();
        let lift = (!self.has_intercept).then(|| back.rows(1, d).into_owned());
        let shift = self.outcome_middle() / g / y_scale;
        let floor = FLOOR * s * (2.0 * size(p)).sqrt();
        let fit = fit(&gram, &cross, yy, (s, o), df, floor, lift.as_ref(), shift);
        let prediction = self.prediction(&gram, &cross, yy, floor, &back);
        let mut names = self.names.to_vec();
        if self.has_intercept {
            names.insert(0, "(Intercept)".to_owned());
        }
        let estimate = self.map(&fit.b);
        let (sampling, noise) = (self.diagonal(&fit.sampling), self.diagonal(&fit.noise));
        let t = student::quantile_95(df);
        let (terms, finite) = rows_of(&names, &estimate, (&sampling, &noise), t, df);
        // Total sum of squares around the mean, or around 0 without an intercept, in z-units.
        let total = if self.has_intercept {
            yy - full[(0, p)] * full[(0, p)] / gram[(0, 0)].max(floor).max(1e-300)
        } else {
            yy + 2.0 * shift * full[(0, p)] + shift * shift * gram[(0, 0)]
        };
        let r_squared = 1.0 - fit.residual_variance * df / total;
        let usable = total > s && r_squared.is_finite();
        let slopes = self.slopes();
        let mut value = json!({
            "family": "linear",
            "terms": terms,
            "prediction": names.iter().zip(&prediction).map(|(name, b)| json!({
                "name": name, "estimate": number(*b),
            })).collect::<Vec<_>>(),
            "residual_sd": number(fit.residual_variance.max(0.0).sqrt() * y_scale.abs()),
            "s2": number(fit.residual_variance.max(0.0) * y_scale * y_scale),
            "r_squared": if usable { number(r_squared.clamp(0.0, 1.0)) } else { Value::Null },
            "f": wald(&fit.b, &(&fit.sampling + &fit.noise), &slopes, df),
            "df": number(df),
            "n": number(rows),
        });
        if self.options.naive
            && let Value::Object(fields) = &mut value
        {
            let none = vec![0.0; names.len()];
            let (terms, _) = rows_of(&names, &estimate, (&sampling, &none), t, df);
            fields.insert(
                "naive".to_owned(),
                json!({
                    "warning": "wrong: these ignore the privacy noise",
                    "terms": terms,
                    "f": wald(&fit.b, &fit.sampling, &slopes, df),
                }),
            );
        }
        let flags = flags(&[
            (fit.singular, "eigenvalues_floored"),
            (fit.floored, "residual_below_noise"),
            (rows < size(estimated) + 1.0, "too_few_rows"),
            (!usable, "r_squared_undefined"),
            (
                self.scaling.iter().take(d).any(|a| *a == Affine::NOTHING),
                "constant_term",
            ),
            (!finite, "not_finite"),
        ]);
        (value, flags)
    }

    /// Positions among the coefficients of the covariates that vary.
    fn slopes(&self) -> Vec<usize> {
        let first = usize::from(self.has_intercept);
        let varies = |j: &usize| self.scaling.get(*j) != Some(&Affine::NOTHING);
        (0..self.names.len())
            .filter(varies)
            .map(|j| j + first)
            .collect()
    }

    /// Shrunk coefficients on the user's scale.
    fn prediction(
        &self,
        gram: &DMatrix<f64>,
        cross: &DVector<f64>,
        yy: f64,
        floor: f64,
        back: &DMatrix<f64>,
    ) -> Vec<f64> {
        let p = gram.nrows();
        let (s, o) = self.deviations;
        let y_scale = self.outcome_scale();
        let shift = self.outcome_middle() / self.g / y_scale;
        let ridge = match self.options.prediction {
            Prediction::Rule => 2.0 * size(p) * o * o / yy.max(s).max(1e-300),
            Prediction::AdaSsp => {
                let bound = o * (size(p) * (2.0 * size(p * p) / 0.05).ln()).sqrt();
                let least = gram.clone().symmetric_eigenvalues().min();
                (bound - (least - bound).max(0.0)).max(0.0)
            }
            Prediction::Ridge(lambda) => {
                return self.ridge(gram, cross, floor, back, lambda);
            }
        };
        if self.has_intercept {
            return self.map(&(floored_inverse(gram, floor, ridge).0 * cross));
        }
        let lift = back.rows(1, p - 1).into_owned();
        self.map(&solve_lifted(gram, cross, &lift, floor, ridge, shift))
    }

    /// Ridge on the slopes, in the user's columns.
    fn ridge(
        &self,
        gram: &DMatrix<f64>,
        cross: &DVector<f64>,
        floor: f64,
        back: &DMatrix<f64>,
        lambda: f64,
    ) -> Vec<f64> {
        let p = gram.nrows();
        let first = usize::from(!self.has_intercept);
        let lift = back.rows(first, p - first).into_owned();
        let (_, repaired, _) = floored_inverse(gram, floor, 0.0);
        let mut system = &lift * &repaired * lift.transpose();
        let y_scale = self.outcome_scale();
        let outcome = cross * y_scale + gram.column(0) * (self.outcome_middle() / self.g);
        let right = &lift * outcome;
        for j in usize::from(self.has_intercept)..system.nrows() {
            system[(j, j)] += lambda;
        }
        // Columns of very different size: bring the diagonal to 1 first.
        let weights = system
            .diagonal()
            .map(|v| if v > 0.0 { 1.0 / v.sqrt() } else { 0.0 });
        let w = DMatrix::from_diagonal(&weights);
        let (inverse, _, _) = floored_inverse(&(&w * system * &w), 0.0, 0.0);
        (&w * inverse * &w * right).iter().copied().collect()
    }

    /// Range of the outcome: y = s_y·y′ + m_y (1 for a constant outcome).
    fn outcome_scale(&self) -> f64 {
        self.scaling
            .last()
            .filter(|a| a.factor > 0.0)
            .map_or(1.0, |a| 1.0 / a.factor)
    }

    fn outcome_middle(&self) -> f64 {
        self.scaling
            .last()
            .filter(|a| a.factor > 0.0)
            .map_or(0.0, |a| -a.shift / a.factor)
    }

    /// B: row 0 is the constant 1, row j the j-th term on the user's scale, as functions of z.
    fn back(&self) -> DMatrix<f64> {
        let p = self.names.len() + 1;
        let mut b = DMatrix::zeros(p, p);
        b[(0, 0)] = 1.0 / self.g;
        for (j, a) in self.scaling.iter().take(p - 1).enumerate() {
            if a.factor > 0.0 {
                b[(j + 1, 0)] = -a.shift / a.factor / self.g;
                b[(j + 1, j + 1)] = 1.0 / a.factor;
            }
        }
        b
    }

    /// Maps coefficients of z (with intercept) or of the lifted design (without) to the user's scale.
    fn map(&self, b: &DVector<f64>) -> Vec<f64> {
        let scale = self.outcome_scale();
        if !self.has_intercept {
            return b.iter().map(|x| x * scale).collect();
        }
        let mut all: Vec<f64> = (self.user_from_z() * b * scale).iter().copied().collect();
        if let Some(first) = all.first_mut() {
            *first += self.outcome_middle();
        }
        all
    }

    /// (y-units aside) user coefficients from z coefficients: β_j = b_j·a_j, β₀ = g·b₀ + Σ b_j·shift_j.
    fn user_from_z(&self) -> DMatrix<f64> {
        let p = self.names.len() + 1;
        let mut t = DMatrix::zeros(p, p);
        t[(0, 0)] = self.g;
        for (j, a) in self.scaling.iter().take(p - 1).enumerate() {
            t[(0, j + 1)] = a.shift;
            t[(j + 1, j + 1)] = a.factor;
        }
        t
    }

    /// Variances of the user's coefficients.
    fn diagonal(&self, m: &DMatrix<f64>) -> Vec<f64> {
        let y2 = self.outcome_scale().powi(2);
        if !self.has_intercept {
            return m.diagonal().iter().map(|v| v * y2).collect();
        }
        let t = self.user_from_z();
        (&t * m * t.transpose())
            .diagonal()
            .iter()
            .map(|v| v * y2)
            .collect()
    }
}

/// Wald's test that the given coefficients are all 0, as an F: bᵀV⁻¹b/k on (k, df). With V = s²(XᵀX)⁻¹ this is the F of ordinary
/// least squares; with the noise in V it allows for the noise.
fn wald(b: &DVector<f64>, covariance: &DMatrix<f64>, at: &[usize], df: f64) -> Value {
    let k = at.len();
    if k == 0 {
        return Value::Null;
    }
    let b = DVector::from_iterator(k, at.iter().map(|i| b[*i]));
    let mut v = covariance.select_rows(at).select_columns(at);
    v = (&v + v.transpose()) * 0.5;
    let weights = v
        .diagonal()
        .map(|x| if x > 0.0 { 1.0 / x.sqrt() } else { 0.0 });
    let w = DMatrix::from_diagonal(&weights);
    let (inverse, _, _) = floored_inverse(&(&w * v * &w), 0.0, 0.0);
    let scaled = &w * b;
    let f = (scaled.transpose() * inverse * &scaled)[(0, 0)] / size(k);
    json!({
        "statistic": number(f),
        "df1": k,
        "df2": number(df),
        "p": number(student::f_tail(f, size(k), df)),
    })
}
