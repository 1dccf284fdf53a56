//! Logistic regression by objective or output perturbation, with its public rules for scaling, clipping, penalty and
//! projection; two classes, or one level against the rest for every level.

mod rules;

use reticent_accounting::{
    AccountingError, Event, Rational, rational_from_f64, rational_to_f64, split,
};
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::primitives::{Objective, OutputPerturbation, Quantile};
use reticent_mechanisms::program::{Expr, Function, squared_norm_bound};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::{Value, json};

use crate::common::{
    Facts, Prepared, StatisticsError, number, positive, size, sum_of, with_metadata,
};
use crate::design::{Affine, DesignSpec};
use crate::simple::flags;
pub(crate) use rules::clips_by_rule;
use rules::{Projected, Rule};

/// Cells of the grid on which the row clip is chosen.
const CLIP_CELLS: u32 = 1000;

/// How columns are brought to a common scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scaling {
    /// By their public bounds (the default).
    Bounds,
    /// Not at all; rows longer than this norm (of the covariates) are shortened to it, and the intercept
    /// coordinate is 1. For comparison with other tools.
    None {
        /// The largest row norm, public.
        data_norm: f64,
    },
    /// Not at all; rows have at most this norm (longer ones are shortened to it), and the intercept coordinate and the row
    /// clip follow the default rules. Best where rows are known to lie in a ball.
    Norm {
        /// The largest row norm, public.
        data_norm: f64,
    },
}

/// Whether rows are shortened to a private median of their norms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clip {
    /// Where the signal is weak for the number of columns (the default).
    Rule,
    /// Always; costs .05 of ε.
    Private,
    /// Never.
    None,
}

/// A ridge penalty other than the public rule of this crate.
#[derive(Clone, Debug, PartialEq)]
pub enum Penalty {
    /// PrivateLR's default, λ = 1/(4n(e^(ε/20) − 1)) for rows of norm 1; in the sum form Λ = R²/(4(e^(ε/20) − 1)), without n.
    Default,
    /// PrivateLR's adjusted rule, λ = 1/(4n(e^(ε/4) − 1)).
    Adjusted,
    /// λ of mean loss + (λ/2)‖w‖²; needs a public number of rows.
    Mean(f64),
    /// Λ of summed loss + (Λ/2)‖w‖².
    Sum(f64),
}

/// What the noise is added to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Perturbation {
    /// The objective (the default; better).
    #[default]
    Objective,
    /// The coefficients.
    Output,
}

/// A random projection of the columns before the fit. Projected rows are shortened to the public norm again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    /// Onto this many columns; no projection if there are not more.
    Size {
        /// Number of columns.
        size: u32,
        /// Public seed of the projection.
        seed: u64,
    },
    /// Onto round(2·ln n) columns; needs a public number of rows.
    Auto {
        /// Public seed of the projection.
        seed: u64,
    },
}

/// How a logistic model is fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// ε of the release.
    pub epsilon: Rational,
    /// Scaling of the columns.
    pub scaling: Scaling,
    /// Row clip.
    pub clip: Clip,
    /// A given penalty; by default a public rule.
    pub penalty: Option<Penalty>,
    /// Objective or output perturbation.
    pub perturbation: Perturbation,
    /// Random projection; none by default.
    pub projection: Option<Projection>,
}

impl Config {
    /// The default rules.
    pub fn new(epsilon: Rational) -> Self {
        Self {
            epsilon,
            scaling: Scaling::Bounds,
            clip: Clip::Rule,
            penalty: None,
            perturbation: Perturbation::Objective,
            projection: None,
        }
    }
}

/// A logistic regression; coefficients come back on the user's scale.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// let people = People::new();
/// let design = DesignSpec {
///     intercept: true,
///     terms: vec![("age".to_owned(), AGE)],
///     outcome: SICK,
///     metadata: Value::Null,
/// };
/// let config = logistic::Config::new(epsilon());
/// let value = people.release(&logistic::prepare(&people.facts(), &design, &config)?);
/// assert!(value["terms"][1]["estimate"].as_f64().unwrap() > 0.03, "{value}");
/// # Ok(())
/// # }
/// ```
pub fn prepare(
    facts: &Facts<'_>,
    design: &DesignSpec,
    config: &Config,
) -> Result<Prepared, StatisticsError> {
    let outcome = (String::new(), design.outcome.clone());
    several(facts, design, &[outcome], config)
}

/// One level against the rest, for every level: as many fits, each with an equal share of ε. `levels` are their names
/// and 0/1 outcomes; the design's own outcome is not used. The value has `classes`, each with `level` and `terms`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// use reticent_mechanisms::program::Comparison;
/// let people = People::new();
/// let compare = |c, t: f64| Expr::Compare(c, Box::new(INCOME), Box::new(Expr::Constant(t)));
/// let levels = [
///     ("poor".to_owned(), compare(Comparison::Less, 250.0)),
///     ("rich".to_owned(), compare(Comparison::GreaterEqual, 250.0)),
/// ];
/// let design = DesignSpec {
///     intercept: true,
///     terms: vec![("age".to_owned(), AGE)],
///     outcome: Expr::Constant(0.0), // each level is fitted in its place
///     metadata: Value::Null,
/// };
/// let config = logistic::Config::new(epsilon());
/// let value = people.release(&logistic::one_against_rest(&people.facts(), &design, &levels, &config)?);
/// assert_eq!(value["classes"].as_array().unwrap().len(), 2, "{value}");
/// # Ok(())
/// # }
/// ```
pub fn one_against_rest(
    facts: &Facts<'_>,
    design: &DesignSpec,
    levels: &[(String, Expr)],
    config: &Config,
) -> Result<Prepared, StatisticsError> {
    if levels.len() < 2 {
        return Err(StatisticsError::Parameter {
            name: "positive",
            value: format!("{} levels", levels.len()),
            fix: "one level against the rest needs at least two levels".to_owned(),
        });
    }
    several(facts, design, levels, config)
}

/// The largest norm of a row of covariates, and the intercept coordinate that goes with it.
fn row_norm(scaling: Scaling, bound: f64) -> Result<(f64, f64), StatisticsError> {
    let (radius, intercept) = match scaling {
        Scaling::Bounds => {
            // A relative margin above the rounding of the row norm, so that no row is shortened by it.
            let c = bound.sqrt() * (1.0 + 1e-12);
            if c > 0.0 {
                (c, c / 4.0)
            } else {
                // No covariate varies: only the intercept counts in the norm.
                (1e-6, 1.0)
            }
        }
        Scaling::None { data_norm } | Scaling::Norm { data_norm } => {
            if !(data_norm.is_finite() && data_norm > 0.0) {
                return Err(StatisticsError::Parameter {
                    name: "data_norm",
                    value: data_norm.to_string(),
                    fix: "give the largest Euclidean norm of a row, a number above 0".to_owned(),
                });
            }
            match scaling {
                Scaling::Norm { .. } => (data_norm, data_norm / 4.0),
                _ => (data_norm, 1.0),
            }
        }
    };
    if !radius.is_finite() {
        return Err(StatisticsError::Parameter {
            name: "formula",
            value: "unbounded".to_owned(),
            fix: "narrow the declared bounds: the largest row norm is not finite".to_owned(),
        });
    }
    Ok((radius, intercept))
}

/// The half-width of the noise in the objective of one fit: with probability .95 it shifts the gradient of the summed loss by no
/// more than this many records can. It does not depend on the row clip: noise and gradients are in proportion to the norm.
pub(crate) fn noise_in_records(
    facts: &Facts<'_>,
    design: &DesignSpec,
    config: &Config,
) -> Result<f64, StatisticsError> {
    let outcome = (String::new(), design.outcome.clone());
    let (_, mechanism) = plan(facts, design, &[outcome], config)?;
    let calibration = mechanism.fits.first().map(|fit| {
        let step = mechanism.step(fit, mechanism.radius)?;
        Ok::<_, DeskError>((step.dimension(), step.calibration(facts.context)?))
    });
    let Some(Ok((p, found))) = calibration else {
        return Ok(f64::INFINITY);
    };
    let (scale, radius) = (
        rational_to_f64(&found.scale),
        rational_to_f64(&found.radius),
    );
    Ok(gamma_95(p) * scale / radius)
}

/// x that a Gamma(p, 1) draw, the norm of the noise in units of its scale, exceeds with probability .05.
fn gamma_95(p: usize) -> f64 {
    let beyond = |x: f64| {
        // P = Σ_{i<p} e^{−x} xⁱ/i!, in logarithms
        let mut ln_term = -x;
        let mut sum = 0.0;
        for i in 0..p {
            sum += ln_term.exp();
            ln_term += x.ln() - size(i + 1).ln();
        }
        sum
    };
    let (mut low, mut high) = (1e-9, 20.0 + 3.0 * size(p));
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if beyond(middle) > 0.05 {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

fn several(
    facts: &Facts<'_>,
    design: &DesignSpec,
    outcomes: &[(String, Expr)],
    config: &Config,
) -> Result<Prepared, StatisticsError> {
    let (terms, mechanism) = plan(facts, design, outcomes, config)?;
    Ok(Prepared {
        terms,
        mechanism: Box::new(mechanism),
    })
}

fn plan(
    facts: &Facts<'_>,
    design: &DesignSpec,
    outcomes: &[(String, Expr)],
    config: &Config,
) -> Result<(Vec<Expr>, Logistic), StatisticsError> {
    positive(&config.epsilon)?;
    design.check()?;
    let d = design.terms.len();
    let scaling = match config.scaling {
        Scaling::Bounds => design.logistic_scaling(facts)?,
        Scaling::None { .. } | Scaling::Norm { .. } => vec![Affine::IDENTITY; d],
    };
    let mut terms: Vec<Expr> = design
        .terms
        .iter()
        .zip(&scaling)
        .map(|((_, e), a)| a.apply(e, 1.0))
        .collect();
    let bounds = facts.program(&terms).bounds(facts.schema)?;
    let bound = squared_norm_bound(&terms, &bounds, &(0..d).collect::<Vec<_>>())?;
    let (radius, intercept) = row_norm(config.scaling, bound)?;
    // Terms: the scaled columns, the outcomes, the projected columns, the row norm.
    terms.extend(outcomes.iter().map(|o| o.1.clone()));
    let projection = Projected::of(facts, config.projection, d)?;
    let covariates = match &projection {
        None => 0..d,
        Some(p) => {
            terms.extend(p.terms());
            d + outcomes.len()..terms.len()
        }
    };
    let (for_clip, for_fits) = {
        let clip = match config.clip {
            Clip::None => false,
            Clip::Private => d > 0,
            Clip::Rule => {
                !matches!(config.scaling, Scaling::None { .. })
                    && clips_by_rule(facts, &config.epsilon, covariates.len())
            }
        };
        let parts = split(&config.epsilon, &[u64::from(clip), 19]);
        match parts.as_slice() {
            [a, b] => (clip.then(|| a.clone()), b.clone()),
            _ => (None, config.epsilon.clone()),
        }
    };
    if for_clip.is_some() {
        let square = |t| Expr::Power(Box::new(Expr::Term(t)), 2);
        terms.push(sum_of(covariates.clone().map(square).collect()).call(Function::Sqrt));
    }
    facts.bounds(&terms)?;
    let shares = split(&for_fits, &vec![1; outcomes.len()]);
    let least = shares.iter().min().cloned().unwrap_or(for_fits);
    let p = covariates.len() + usize::from(design.intercept);
    let rule = Rule::of(facts, config, &least, covariates.len(), p)?;
    let flags = flags(&[
        (
            facts.rows.is_none() && config.penalty.is_none(),
            "size_unknown",
        ),
        (for_clip.is_some(), "rows_clipped"),
        (scaling.contains(&Affine::NOTHING), "constant_term"),
        (
            config.projection.is_some() && projection.is_none(),
            "projection_not_needed",
        ),
    ]);
    let mechanism = Logistic {
        names: design.terms.iter().map(|(n, _)| n.clone()).collect(),
        scaling,
        has_intercept: design.intercept,
        radius,
        intercept,
        keep_intercept: match config.scaling {
            Scaling::Bounds => bound <= 0.0,
            Scaling::None { .. } => true,
            Scaling::Norm { .. } => false,
        },
        norm_term: terms.len().saturating_sub(1),
        clip: for_clip.map(|epsilon| Quantile {
            name: "row clip: median of the row norms".to_owned(),
            epsilon,
            level: (1, 2),
        }),
        fits: shares
            .into_iter()
            .zip(outcomes)
            .enumerate()
            .map(|(i, (epsilon, (level, _)))| (level.clone(), d + i, epsilon))
            .collect(),
        covariates,
        perturbation: config.perturbation,
        flags,
        projection,
        rule,
        metadata: design.metadata.clone(),
    };
    mechanism.check(facts.context)?;
    Ok((terms, mechanism))
}

/// # Claim
/// ε-DP for the context's relation and unit: one optional [`Quantile`] and, for every outcome, one [`Objective`] or one
/// [`OutputPerturbation`] are bought.
/// # Assumptions
/// Those of the primitives; radius, intercept coordinate and penalty are functions of public facts and of the
/// released clip.
/// # Composition
/// Sequential: .05ε for the clip if it is used, the rest in equal parts for the fits; the total is exact.
/// # Arithmetic
/// R² = c² + g², g = c/4, c the released clip or the largest possible row norm. Λ = R²/(4(e^{fε} − 1)) with f
/// from the public number of rows, .05 without one; the exponent is capped at 20. Every norm the clip may
/// choose is calibrated before anything is bought, so that no refusal can depend on it. The map back to the
/// user's scale is affine: β_j = a_j·w_j, β₀ = g·w₀ + Σ shift_j·w_j. A projection z = Px, drawn from a public seed before
/// the data are touched, is part of the row program; the primitive shortens z to the radius whatever P does to
/// lengths, and w = Pᵀw_z (the same predictor for every row that was not shortened).
/// # Checked by
/// `golden::{logistic_meets_exact_coefficients, logistic_scaling_is_undone}`, `models::{output_noise_off_is_the_penalised_fit,
/// penalty_rules_meet_the_reference, projected_fit_is_the_fit_of_the_projection, one_against_rest_is_each_fit}`,
/// `contract::{inner_events_sum_to_epsilon, every_kind_answers_on_every_table, large_epsilon_is_the_plain_fit}`
/// # References
/// `decisions.md` §2.6, §5.4; `beyond.md` §6; `privacy.md` §13
struct Logistic {
    names: Vec<String>,
    scaling: Vec<Affine>,
    has_intercept: bool,
    radius: f64,
    /// Value of the intercept coordinate at full radius.
    intercept: f64,
    /// The intercept coordinate does not follow the clip.
    keep_intercept: bool,
    /// The term that holds the row norm, if there is a clip.
    norm_term: usize,
    clip: Option<Quantile>,
    /// Level, outcome term and ε of every fit.
    fits: Vec<(String, usize, Rational)>,
    covariates: std::ops::Range<usize>,
    perturbation: Perturbation,
    projection: Option<Projected>,
    /// Public remarks.
    flags: Vec<String>,
    rule: Rule,
    metadata: Value,
}

impl Logistic {
    fn coordinate(&self, radius: f64) -> Option<f64> {
        self.has_intercept.then(|| {
            if self.keep_intercept {
                self.intercept
            } else {
                radius / 4.0
            }
        })
    }

    fn norm(&self, radius: f64) -> f64 {
        radius.hypot(self.coordinate(radius).unwrap_or(0.0))
    }

    /// The row norms a private clip may choose: R_max·2^(−j/16) down to R_max/8. Few enough that every one
    /// is calibrated before anything is bought.
    fn radii(&self) -> Vec<f64> {
        let steps = if self.clip.is_some() { 48 } else { 0 };
        (0..=steps)
            .map(|j| self.radius * (-f64::from(j) / 16.0).exp2())
            .collect()
    }

    /// Refuses, before anything is bought, what cannot be calibrated for some possible row norm.
    fn check(&self, context: &Context) -> Result<(), StatisticsError> {
        let refused = self.radii().into_iter().find_map(|radius| {
            let steps = self.fits.iter().map(|f| self.step(f, radius));
            let calibrated = |step: Result<Objective, DeskError>| match self.perturbation {
                Perturbation::Objective => step.and_then(|s| s.calibration(context).map(drop)),
                Perturbation::Output => {
                    step.and_then(|s| OutputPerturbation(s).scale(context).map(drop))
                }
            };
            steps.map(calibrated).find_map(Result::err)
        });
        let Some(reason) = refused else {
            return Ok(());
        };
        let epsilon = self.per_fit(context);
        Err(match self.rule {
            Rule::Given(total) => {
                let norm = self.norm(self.radius);
                let least = norm * norm / (4.0 * (0.5 * epsilon).min(20.0).exp_m1());
                StatisticsError::Parameter {
                    name: "lambda",
                    value: total.to_string(),
                    fix: format!(
                        "a summed penalty of at least {least:.4} leaves half of epsilon for the noise ({reason})"
                    ),
                }
            }
            Rule::Curvature { .. } | Rule::Scaled(_) => StatisticsError::Parameter {
                name: "epsilon",
                value: epsilon.to_string(),
                fix: format!("it is too small or the row norm is out of range ({reason})"),
            },
        })
    }

    /// ε of one record in the first fit (the others have the same, up to rounding).
    fn per_fit(&self, context: &Context) -> f64 {
        self.fits
            .first()
            .map_or(0.0, |f| rational_to_f64(&context.per_record(&f.2)))
    }

    fn step(
        &self,
        (_, outcome, epsilon): &(String, usize, Rational),
        radius: f64,
    ) -> Result<Objective, DeskError> {
        Ok(Objective {
            name: "logistic regression".to_owned(),
            epsilon: epsilon.clone(),
            covariates: self.covariates.clone(),
            outcome: *outcome,
            intercept: self.coordinate(radius),
            radius,
            penalty: rational_from_f64(self.rule.penalty(self.norm(radius)))?,
        })
    }

    /// Coefficients on the user's scale, intercept first if there is one.
    fn unscale(&self, w: &[f64], radius: f64) -> Vec<(String, f64)> {
        let mut rest = w;
        let mut shift = 0.0;
        if let (Some(g), [first, tail @ ..]) = (self.coordinate(radius), w) {
            shift = first * g;
            rest = tail;
        }
        let lifted = self.projection.as_ref().map(|p| p.lift(rest));
        let rest = lifted.as_deref().unwrap_or(rest);
        let mut terms = Vec::with_capacity(w.len());
        for ((name, a), w) in self.names.iter().zip(&self.scaling).zip(rest) {
            terms.push((name.clone(), a.factor * w));
            shift += a.shift * w;
        }
        if self.has_intercept {
            terms.insert(0, ("(Intercept)".to_owned(), shift));
        }
        terms
    }
}

impl Logistic {
    fn value(
        &self,
        classes: &[(&str, Vec<(String, f64)>)],
        radius: f64,
        context: &Context,
    ) -> Value {
        let norm = self.norm(radius);
        let penalty = self.rule.penalty(norm);
        let epsilon = self.per_fit(context);
        let whole = self.fits.iter().fold(Rational::ZERO, |s, f| s + &f.2);
        let terms = |all: &[(String, f64)]| -> Value {
            let row = |(name, b): &(String, f64)| json!({"name": name, "estimate": number(*b)});
            all.iter().map(row).collect()
        };
        let mut value = json!({
            "family": "logistic",
            "perturbation": match self.perturbation {
                Perturbation::Objective => "objective",
                Perturbation::Output => "output",
            },
            "lambda": number(penalty),
            "data_norm": number(norm),
            "radius": number(radius),
        });
        let Value::Object(fields) = &mut value else {
            return value;
        };
        let mut parts = json!({
            "clip": self.clip.as_ref().map(|q| number(rational_to_f64(&q.epsilon))),
            "fit": number(rational_to_f64(&whole)),
            "per_record": number(epsilon),
        });
        if let (Perturbation::Objective, Value::Object(parts)) = (self.perturbation, &mut parts) {
            // The curvature term is ln(1 + R²/(4Λ)).
            let curvature = (norm * norm / (4.0 * penalty)).ln_1p();
            parts.insert("curvature".to_owned(), number(curvature));
            parts.insert("solver".to_owned(), number(0.01 * epsilon));
            let noise = 0.99 * epsilon - curvature;
            parts.insert("noise".to_owned(), number(noise));
        }
        fields.insert("epsilon_terms".to_owned(), parts);
        if let Some(p) = &self.projection {
            let about = json!({"columns": p.rows.len(), "seed": p.seed});
            fields.insert("projection".to_owned(), about);
        }
        if let [("", only)] = classes {
            fields.insert("terms".to_owned(), terms(only));
        } else {
            let class = |(level, all): &(&str, Vec<(String, f64)>)| json!({"level": level, "terms": terms(all)});
            fields.insert("family".to_owned(), json!("one_against_rest"));
            fields.insert("classes".to_owned(), classes.iter().map(class).collect());
        }
        value
    }
}

impl Mechanism for Logistic {
    fn kind(&self) -> &'static str {
        "logistic"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        let mut steps = Vec::new();
        steps.extend(self.clip.as_ref().map(|q| q.event(context)));
        for fit in &self.fits {
            // The price does not depend on radius, intercept and penalty.
            let step = Objective {
                name: "logistic regression".to_owned(),
                epsilon: fit.2.clone(),
                covariates: self.covariates.clone(),
                outcome: fit.1,
                intercept: None,
                radius: self.radius,
                penalty: Rational::ONE,
            };
            steps.push(match self.perturbation {
                Perturbation::Objective => step.event(context),
                Perturbation::Output => OutputPerturbation(step).event(context),
            });
        }
        Ok(Event::Sequence(steps))
    }
    fn first_pass(&self) -> Vec<Fold> {
        self.clip
            .iter()
            .map(|_| Fold::Grid {
                axes: vec![Axis {
                    term: self.norm_term,
                    cut: Cut::Atoms {
                        lower: 0.0,
                        upper: self.radius,
                        cells: CLIP_CELLS,
                    },
                }],
                sum: None,
            })
            .collect()
    }
    fn passes(&self) -> u32 {
        u32::try_from(self.fits.len()).unwrap_or(u32::MAX)
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let mut radius = self.radius;
        if let Some(step) = &self.clip {
            let cell = desk.quantile(FoldId(0), step)?;
            let middle = (size(cell) + 0.5) / f64::from(CLIP_CELLS) * self.radius;
            // Rounded up to a calibrated norm: at most 4.5 % longer.
            radius = self
                .radii()
                .into_iter()
                .filter(|r| *r >= middle)
                .fold(f64::INFINITY, f64::min)
                .min(self.radius);
        }
        let mut classes = Vec::with_capacity(self.fits.len());
        for fit in &self.fits {
            let step = self.step(fit, radius)?;
            let w = match self.perturbation {
                Perturbation::Objective => desk.objective(&step)?.coefficients,
                Perturbation::Output => desk.output_perturbation(&OutputPerturbation(step))?,
            };
            classes.push((fit.0.as_str(), self.unscale(&w, radius)));
        }
        let odd = classes.iter().any(|c| c.1.iter().any(|b| !b.1.is_finite()));
        let value = self.value(&classes, radius, desk.context());
        let mut flags = self.flags.clone();
        if odd {
            flags.push("not_finite".to_owned());
        }
        Ok(Answer {
            value: with_metadata(value, &self.metadata),
            error_95: None,
            flags,
        })
    }
}
