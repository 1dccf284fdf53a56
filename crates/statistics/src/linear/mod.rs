//! Linear regression from noisy second moments, with intervals that know about the noise.
//!
//! Columns go to [−½, ½] by their public bounds; rows are shortened by their covariates alone; one noisy
//! triangle of Σ zzᵀ, z = f·(g, x, y), gives coefficients, residual deviation, R² and intervals. Everything
//! is mapped back to the user's scale by an affine change of coordinates.

mod fit;

use nalgebra::{DMatrix, DVector};
use reticent_accounting::{
    AccountingError, Currency, Event, Rational, Relation, rational_to_f64, share,
};
use reticent_laws::Law;
use reticent_mechanisms::fold::{Axis, Cut, Fold, Shorten};
use reticent_mechanisms::primitives::{NoisyMoments, Payment, Quantile, SecondMoments};
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::{Value, json};

use crate::common::{Facts, Prepared, StatisticsError, number, size, sum_of, with_metadata};
use crate::design::{Affine, DesignSpec};
use crate::simple::flags;
use crate::student;
use crate::zcdp::epsilon_of_pure;
use fit::{Fit, fit, floored_inverse, rows_of, solve_lifted, triangle};

/// Cells of the grid on which the row clip is chosen.
const CLIP_CELLS: u32 = 1000;
/// Floor of the eigenvalues of the X block, in units of s·√(2p).
const FLOOR: f64 = 0.5;

/// Whether rows are shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clip {
    /// To a private .97 quantile of the squared norm of the covariates (a tenth of the budget; default).
    Private,
    /// Never.
    None,
}

/// How a linear model is fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The whole budget of the release.
    pub payment: Payment,
    /// Row clip.
    pub clip: Clip,
    /// Rows are rounded to multiples of 2^−bits of the width of their bounds; 8 to 24.
    pub grid_bits: u32,
}

impl Config {
    /// The default rules.
    pub fn new(payment: Payment) -> Self {
        Self {
            payment,
            clip: Clip::Private,
            grid_bits: 20,
        }
    }
}

/// A linear regression.
pub fn prepare(
    facts: &Facts<'_>,
    design: &DesignSpec,
    config: &Config,
) -> Result<Prepared, StatisticsError> {
    let (terms, mechanism) = plan(facts, design, config)?;
    Ok(Prepared {
        terms,
        mechanism: Box::new(mechanism),
    })
}

/// The standard deviation of the noise on a second moment of columns scaled to ±½ when no row is shortened; smaller with a
/// released row clip.
pub(crate) fn moment_deviation(
    facts: &Facts<'_>,
    design: &DesignSpec,
    config: &Config,
) -> Result<f64, StatisticsError> {
    let (_, mechanism) = plan(facts, design, config)?;
    let (fold, _) = mechanism.fold(mechanism.largest, mechanism.clip.is_none());
    let units = f64::from(2 * mechanism.bits).exp2();
    Ok(mechanism
        .moments
        .lattices(&fold, facts.context)
        .map_or(f64::INFINITY, |(diagonal, _)| diagonal.std_dev() / units))
}

fn plan(
    facts: &Facts<'_>,
    design: &DesignSpec,
    config: &Config,
) -> Result<(Vec<Expr>, Linear), StatisticsError> {
    design.check()?;
    if !(8..=24).contains(&config.grid_bits) {
        return Err(StatisticsError::Parameter {
            name: "grid_bits",
            value: config.grid_bits.to_string(),
            fix: "give 8 to 24".to_owned(),
        });
    }
    let d = design.terms.len();
    let mut exprs = design.exprs();
    exprs.push(design.outcome.clone());
    let scaling: Vec<Affine> = facts
        .bounds(&exprs)?
        .into_iter()
        .map(Affine::to_half)
        .collect();
    let varying = scaling
        .iter()
        .take(d)
        .filter(|a| **a != Affine::NOTHING)
        .count();
    let mut terms: Vec<Expr> = exprs
        .iter()
        .zip(&scaling)
        .map(|(e, a)| a.apply(e, 0.5))
        .collect();
    let clip = config.clip == Clip::Private && varying > 0;
    if clip {
        terms.push(sum_of(
            (0..d)
                .map(|t| Expr::Power(Box::new(Expr::Term(t)), 2))
                .collect(),
        ));
    }
    facts.bounds(&terms)?;
    let (for_clip, payment) = divide(&config.payment, clip, facts.context)?;
    let mechanism = Linear {
        names: design.terms.iter().map(|(n, _)| n.clone()).collect(),
        has_intercept: design.intercept,
        scaling,
        largest: size(varying) / 4.0,
        clip: for_clip.map(|epsilon| Quantile {
            name: "row clip: .97 quantile of the squared row norms".to_owned(),
            epsilon,
            level: (97, 100),
        }),
        moments: SecondMoments {
            name: "second moments".to_owned(),
            payment,
        },
        bits: config.grid_bits,
        metadata: design.metadata.clone(),
    };
    // Sensitivities grow with the clip: if the ends can be calibrated, so can what lies between.
    for (q, never) in [(0.0, !clip), (mechanism.largest, !clip)] {
        let (fold, _) = mechanism.fold(q, never);
        mechanism
            .moments
            .lattices(&fold, facts.context)
            .map_err(|reason| StatisticsError::Parameter {
                name: "budget",
                value: format!("{:?}", config.payment),
                fix: format!("it cannot be calibrated ({reason})"),
            })?;
    }
    Ok((terms, mechanism))
}

/// The clip's ε and what is left for the moments; the total is exact in the data set's currency.
fn divide(
    payment: &Payment,
    clip: bool,
    context: &Context,
) -> Result<(Option<Rational>, Payment), StatisticsError> {
    let amount = match payment {
        Payment::Approximate { epsilon, .. } | Payment::Pure { epsilon } => epsilon,
        Payment::Concentrated { rho } => rho,
    };
    if *amount <= Rational::ZERO {
        return Err(StatisticsError::Parameter {
            name: "budget",
            value: reticent_accounting::format_rational(amount),
            fix: "give a number above 0".to_owned(),
        });
    }
    let fits = match payment {
        Payment::Approximate { .. } => context.currency == Currency::Approximate,
        Payment::Concentrated { .. } => context.currency == Currency::Concentrated,
        Payment::Pure { .. } => true,
    };
    if !fits {
        return Err(StatisticsError::Currency {
            what: "second moments with Gaussian noise",
            fix: "give epsilon alone, or use a data set whose budget has a delta or a rho",
        });
    }
    if !clip {
        return Ok((None, payment.clone()));
    }
    Ok(match payment {
        Payment::Approximate { epsilon, delta } => {
            let (q, epsilon) = share(epsilon, 1, 10);
            (
                Some(q),
                Payment::Approximate {
                    epsilon,
                    delta: delta.clone(),
                },
            )
        }
        Payment::Pure { epsilon } => {
            let (q, epsilon) = share(epsilon, 1, 10);
            (Some(q), Payment::Pure { epsilon })
        }
        Payment::Concentrated { rho } => {
            // A bounded-range draw of ε costs ε²/8, so ρ/20 buys ε = √(8ρ/20) = √(2·(ρ/5)).
            let (fifth, _) = share(rho, 1, 5);
            let q = epsilon_of_pure(&fifth);
            let step = Quantile {
                name: String::new(),
                epsilon: q.clone(),
                level: (97, 100),
            };
            let price = step
                .event(context)
                .price(Currency::Concentrated)
                .ok()
                .and_then(|p| p.under(context.relation).map(|c| c.amount.clone()))
                .unwrap_or(Rational::ZERO);
            let rest = rho - price;
            if q <= Rational::ZERO || rest <= Rational::ZERO {
                return Err(StatisticsError::Parameter {
                    name: "rho",
                    value: reticent_accounting::format_rational(rho),
                    fix: "too small to divide; use clip = \"none\"".to_owned(),
                });
            }
            (Some(q), Payment::Concentrated { rho: rest })
        }
    })
}

/// # Claim
/// The declared budget for the context's relation and unit, in its own currency: one optional [`Quantile`]
/// and one [`SecondMoments`] are bought.
/// # Assumptions
/// Those of the primitives.
/// # Composition
/// Sequential. (ε, δ) and pure ε: a tenth of ε for the clip, the rest (and all of δ) for the moments. ρ: the
/// clip takes what its bounded-range price ε²/8 comes to, about ρ/20; the moments get exactly the rest.
/// # Arithmetic
/// Floor of the X block's eigenvalues ½·s·√(2p); b = G⁻¹v; covariance G⁻¹(σ_r²·G + Cov e)G⁻¹ (see `fit.rs`);
/// prediction coefficients with ridge 2·p·σ_off²/max(W_yy, σ_yy). Intervals by Student's t.
/// # Checked by
/// `golden::{linear_meets_least_squares, linear_without_intercept_is_exact}`,
/// `contract::{linear_totals_in_every_currency, every_kind_answers_on_every_table}`, `seeded::linear_intervals_cover`
/// # References
/// `decisions.md` §2.7, §5.5; `beyond.md` §7; `privacy.md` §14
struct Linear {
    names: Vec<String>,
    has_intercept: bool,
    /// Of the terms, then of the outcome.
    scaling: Vec<Affine>,
    /// Largest possible squared norm of the covariates.
    largest: f64,
    clip: Option<Quantile>,
    moments: SecondMoments,
    bits: u32,
    metadata: Value,
}

impl Linear {
    fn fold(&self, q: f64, never: bool) -> (Fold, f64) {
        let d = self.names.len();
        let step = f64::from(self.bits).exp2();
        // g = √(q/d), on the grid so that the intercept coordinate is exact.
        let g = if self.largest > 0.0 {
            (q / (4.0 * self.largest)).sqrt()
        } else {
            0.5
        };
        let g = ((g * step).round() / step).clamp(1.0 / 64.0, 0.5);
        let squared_norm = if never {
            f64::INFINITY
        } else {
            g * g + q + 0.25
        };
        let fold = Fold::Moments {
            terms: 0..d,
            response: Some(d),
            shorten: Shorten {
                intercept: g,
                squared_norm,
            },
            bits: self.bits,
        };
        (fold, g)
    }
}

impl Mechanism for Linear {
    fn kind(&self) -> &'static str {
        "linear"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        let mut steps = Vec::new();
        steps.extend(self.clip.as_ref().map(|q| q.event(context)));
        steps.push(self.moments.event(context));
        Ok(Event::Sequence(steps))
    }
    fn first_pass(&self) -> Vec<Fold> {
        if self.clip.is_some() {
            vec![Fold::Grid {
                axes: vec![Axis {
                    term: self.names.len() + 1,
                    cut: Cut::Atoms {
                        lower: 0.0,
                        upper: self.largest,
                        cells: CLIP_CELLS,
                    },
                }],
                sum: None,
            }]
        } else {
            vec![self.fold(self.largest, true).0]
        }
    }
    fn passes(&self) -> u32 {
        u32::from(self.clip.is_some())
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let (id, g) = if let Some(step) = &self.clip {
            let cell = desk.quantile(FoldId(0), step)?;
            let q = (size(cell) + 0.5) / f64::from(CLIP_CELLS) * self.largest;
            let (fold, g) = self.fold(q, false);
            let ids = desk.scan(vec![fold])?;
            (ids.first().copied().unwrap_or(FoldId(1)), g)
        } else {
            (FoldId(0), self.fold(self.largest, true).1)
        };
        let noisy = desk.second_moments(id, &self.moments)?;
        Ok(self.finish(&noisy, g))
    }
}

impl Linear {
    /// Everything after the purchase.
    fn finish(&self, noisy: &NoisyMoments, g: f64) -> Answer {
        let d = self.names.len();
        let p = d + 1;
        let full = triangle(noisy, p + 1);
        let gram = full.view((0, 0), (p, p)).into_owned();
        let cross = full.view((0, p), (p, 1)).column(0).into_owned();
        let yy = full[(p, p)];
        let (s, o) = (noisy.sd_diagonal, noisy.sd_off_diagonal);
        let rows = gram[(0, 0)] / (g * g);
        let estimated = d + usize::from(self.has_intercept);
        let n = rows.max(size(estimated) + 1.0);
        let df = (n - size(estimated)).max(1.0);

        // The user's coordinates u = B·z, y = s_y·y′ + (m_y/g)·z₀.
        let back = self.back(g);
        let y_scale = self.outcome_scale();
        let lift = if self.has_intercept {
            None
        } else {
            Some(back.rows(1, d).into_owned())
        };
        let y_shift = self.outcome_middle() / g;

        let floor = FLOOR * s * (2.0 * size(p)).sqrt();
        let fit = fit(
            &gram,
            &cross,
            yy,
            (s, o),
            df,
            floor,
            lift.as_ref(),
            y_shift / y_scale,
        );
        let prediction_ridge = {
            let sd_yy = s;
            let denominator = yy.max(sd_yy).max(1e-300);
            2.0 * size(p) * o * o / denominator
        };
        let (inverse, _, _) = floored_inverse(&gram, floor, prediction_ridge);
        let shrunk = if let Some(lift) = &lift {
            solve_lifted(
                &gram,
                &cross,
                lift,
                floor,
                prediction_ridge,
                y_shift / y_scale,
            )
        } else {
            &inverse * &cross
        };

        let (names, estimate, covariances) = self.to_user(&fit, g, lift.as_ref());
        let prediction = self.map(&shrunk, g, lift.is_some());
        let t = student::quantile_95(df);
        let (sampling, noise) = covariances;
        let (terms, finite) = rows_of(&names, &estimate, (&sampling, &noise), t);
        // Total sum of squares around the mean, or around 0 without an intercept, in z-units.
        let total = if self.has_intercept {
            yy - full[(0, p)] * full[(0, p)] / gram[(0, 0)].max(floor).max(1e-300)
        } else {
            let m = y_shift / y_scale;
            yy + 2.0 * m * full[(0, p)] + m * m * gram[(0, 0)]
        };
        let r_squared = 1.0 - fit.residual_variance * df / total;
        let usable = total > s && r_squared.is_finite();
        let value = json!({
            "family": "linear",
            "terms": terms,
            "prediction": names.iter().zip(&prediction).map(|(name, b)| json!({
                "name": name, "estimate": number(*b),
            })).collect::<Vec<_>>(),
            "residual_sd": number(fit.residual_variance.max(0.0).sqrt() * y_scale.abs()),
            "r_squared": if usable { number(r_squared.clamp(0.0, 1.0)) } else { Value::Null },
            "df": number(df),
            "n": number(rows),
        });
        Answer {
            value: with_metadata(value, &self.metadata),
            error_95: None,
            flags: flags(&[
                (fit.singular, "eigenvalues_floored"),
                (fit.floored, "residual_below_noise"),
                (rows < size(estimated) + 1.0, "too_few_rows"),
                (!usable, "r_squared_undefined"),
                (
                    self.scaling.iter().take(d).any(|a| *a == Affine::NOTHING),
                    "constant_term",
                ),
                (!finite, "not_finite"),
            ]),
        }
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
    fn back(&self, g: f64) -> DMatrix<f64> {
        let p = self.names.len() + 1;
        let mut b = DMatrix::zeros(p, p);
        b[(0, 0)] = 1.0 / g;
        for (j, a) in self.scaling.iter().take(p - 1).enumerate() {
            if a.factor > 0.0 {
                b[(j + 1, 0)] = -a.shift / a.factor / g;
                b[(j + 1, j + 1)] = 1.0 / a.factor;
            }
        }
        b
    }

    /// Maps coefficients of z (with intercept) or of the lifted design (without) to the user's scale.
    fn map(&self, b: &DVector<f64>, g: f64, lifted: bool) -> Vec<f64> {
        let scale = self.outcome_scale();
        if lifted {
            return b.iter().map(|x| x * scale).collect();
        }
        let matrix = self.user_from_z(g);
        let mut all: Vec<f64> = (matrix * b * scale).iter().copied().collect();
        if let Some(first) = all.first_mut() {
            *first += self.outcome_middle();
        }
        all
    }

    /// (y-units aside) user coefficients from z coefficients: β_j = b_j·a_j, β₀ = g·b₀ + Σ b_j·shift_j.
    fn user_from_z(&self, g: f64) -> DMatrix<f64> {
        let p = self.names.len() + 1;
        let mut t = DMatrix::zeros(p, p);
        t[(0, 0)] = g;
        for (j, a) in self.scaling.iter().take(p - 1).enumerate() {
            t[(0, j + 1)] = a.shift;
            t[(j + 1, j + 1)] = a.factor;
        }
        t
    }

    #[allow(clippy::type_complexity, reason = "names, estimates and two diagonals")]
    fn to_user(
        &self,
        fit: &Fit,
        g: f64,
        lift: Option<&DMatrix<f64>>,
    ) -> (Vec<String>, Vec<f64>, (Vec<f64>, Vec<f64>)) {
        let mut names = self.names.clone();
        let estimate = self.map(&fit.b, g, lift.is_some());
        let y2 = self.outcome_scale().powi(2);
        let diagonal = |m: &DMatrix<f64>| -> Vec<f64> {
            if lift.is_some() {
                return m.diagonal().iter().map(|v| v * y2).collect();
            }
            let t = self.user_from_z(g);
            (&t * m * t.transpose())
                .diagonal()
                .iter()
                .map(|v| v * y2)
                .collect()
        };
        if lift.is_none() {
            names.insert(0, "(Intercept)".to_owned());
        }
        (
            names,
            estimate,
            (diagonal(&fit.sampling), diagonal(&fit.noise)),
        )
    }
}

/// The budget as an ε per record, smaller by √2 under replace-one: for the planning page.
pub(crate) fn budget(payment: &Payment, context: &Context) -> f64 {
    let k = f64::from(context.rows_per_unit.max(1));
    let amount = match payment {
        Payment::Approximate { epsilon, .. } | Payment::Pure { epsilon } => {
            rational_to_f64(epsilon)
        }
        Payment::Concentrated { rho } => (2.0 * rational_to_f64(rho)).sqrt(),
    };
    let halved = match context.relation {
        Relation::AddRemove => 1.0,
        Relation::ReplaceOne => std::f64::consts::SQRT_2,
    };
    amount / k / halved
}
