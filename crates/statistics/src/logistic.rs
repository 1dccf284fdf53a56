//! Logistic regression by objective perturbation, with its public rules for scaling, clipping and penalty.

use reticent_accounting::{
    AccountingError, Event, Rational, rational_from_f64, rational_to_f64, split,
};
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::primitives::{Objective, Quantile};
use reticent_mechanisms::program::{Expr, Function, squared_norm_bound};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::{Value, json};

use crate::common::{
    Facts, Prepared, StatisticsError, number, positive, size, sum_of, with_metadata,
};
use crate::design::{Affine, DesignSpec};
use crate::simple::flags;

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

/// A given ridge penalty.
#[derive(Clone, Debug, PartialEq)]
pub enum Penalty {
    /// λ of mean loss + (λ/2)‖w‖²; needs a public number of rows.
    Mean(f64),
    /// Λ of summed loss + (Λ/2)‖w‖².
    Sum(f64),
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
}

impl Config {
    /// The default rules.
    pub fn new(epsilon: Rational) -> Self {
        Self {
            epsilon,
            scaling: Scaling::Bounds,
            clip: Clip::Rule,
            penalty: None,
        }
    }
}

/// A logistic regression; coefficients come back on the user's scale.
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

/// The half-width of the noise in the objective: with probability .95 it shifts the gradient of the summed loss by no more than
/// this many records can. It does not depend on the row clip: noise and gradients are in proportion to the norm.
pub(crate) fn noise_in_records(
    facts: &Facts<'_>,
    design: &DesignSpec,
    config: &Config,
) -> Result<f64, StatisticsError> {
    let (_, mechanism) = plan(facts, design, config)?;
    let calibration = mechanism
        .objective(mechanism.radius)
        .and_then(|(step, _)| Ok((step.dimension(), step.calibration(facts.context)?)));
    let Ok((p, found)) = calibration else {
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

fn plan(
    facts: &Facts<'_>,
    design: &DesignSpec,
    config: &Config,
) -> Result<(Vec<Expr>, Logistic), StatisticsError> {
    positive(&config.epsilon)?;
    design.check()?;
    let d = design.terms.len();
    let scaling = match config.scaling {
        Scaling::Bounds => design.logistic_scaling(facts)?,
        Scaling::None { .. } => vec![Affine::IDENTITY; d],
    };
    let mut terms: Vec<Expr> = design
        .terms
        .iter()
        .zip(&scaling)
        .map(|((_, e), a)| a.apply(e, 1.0))
        .collect();
    terms.push(design.outcome.clone());
    let bounds = facts.program(&terms).bounds(facts.schema)?;
    let bound = squared_norm_bound(&terms, &bounds, &(0..d).collect::<Vec<_>>())?;
    let (radius, intercept) = match config.scaling {
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
        Scaling::None { data_norm } => {
            if !(data_norm.is_finite() && data_norm > 0.0) {
                return Err(StatisticsError::Parameter {
                    name: "data_norm",
                    value: data_norm.to_string(),
                    fix: "give the largest Euclidean norm of a row, a number above 0".to_owned(),
                });
            }
            (data_norm, 1.0)
        }
    };
    if !radius.is_finite() {
        return Err(StatisticsError::Parameter {
            name: "formula",
            value: "unbounded".to_owned(),
            fix: "narrow the declared bounds: the largest row norm is not finite".to_owned(),
        });
    }
    let clip = match config.clip {
        Clip::None => false,
        Clip::Private => d > 0,
        Clip::Rule => config.scaling == Scaling::Bounds && clips_by_rule(facts, &config.epsilon, d),
    };
    if clip {
        terms.push(
            sum_of(
                (0..d)
                    .map(|t| Expr::Power(Box::new(Expr::Term(t)), 2))
                    .collect(),
            )
            .call(Function::Sqrt),
        );
    }
    facts.bounds(&terms)?;
    let parts = split(&config.epsilon, &[u64::from(clip), 19]);
    let (for_clip, for_fit) = match parts.as_slice() {
        [a, b] => (a.clone(), b.clone()),
        _ => (Rational::ZERO, config.epsilon.clone()),
    };
    let fraction = fraction(facts, &for_fit, d);
    let rule = match &config.penalty {
        Some(given) => Rule::Given(given_penalty(facts, given)?),
        None => Rule::Curvature {
            fraction,
            epsilon: facts.per_record(&for_fit),
        },
    };
    let mechanism = Logistic {
        names: design.terms.iter().map(|(n, _)| n.clone()).collect(),
        scaling,
        has_intercept: design.intercept,
        radius,
        intercept,
        keep_intercept: config.scaling != Scaling::Bounds || bound <= 0.0,
        clip: clip.then(|| Quantile {
            name: "row clip: median of the row norms".to_owned(),
            epsilon: for_clip,
            level: (1, 2),
        }),
        epsilon: for_fit,
        rule,
        unknown_size: facts.rows.is_none() && config.penalty.is_none(),
        metadata: design.metadata.clone(),
    };
    mechanism.check(facts.context)?;
    Ok((terms, mechanism))
}

/// f = clip(.1·√(ñε)/d, .05, .3), with ñε/4 under replace-one; .05 when no size is known.
pub(crate) fn fraction(facts: &Facts<'_>, epsilon: &Rational, d: usize) -> f64 {
    facts
        .quartered_signal(epsilon)
        .map_or(0.05, |s| (0.1 * s.sqrt() / size(d.max(1))).clamp(0.05, 0.3))
}

fn given_penalty(facts: &Facts<'_>, given: &Penalty) -> Result<f64, StatisticsError> {
    let refuse = |value: f64, fix: &str| StatisticsError::Parameter {
        name: "lambda",
        value: value.to_string(),
        fix: fix.to_owned(),
    };
    match given {
        Penalty::Sum(total) if total.is_finite() && *total > 0.0 => Ok(*total),
        Penalty::Sum(total) => Err(refuse(*total, "give a number above 0")),
        Penalty::Mean(lambda) if lambda.is_finite() && *lambda > 0.0 => facts
            .rows
            .filter(|n| n.is_finite() && *n >= 1.0)
            .map(|n| lambda * n)
            .ok_or_else(|| {
                refuse(
                    *lambda,
                    "a penalty per row needs a public number of rows: declare size_hint, or give the penalty of the summed loss",
                )
            }),
        Penalty::Mean(lambda) => Err(refuse(*lambda, "give a number above 0")),
    }
}

#[derive(Clone, Copy, Debug)]
enum Rule {
    Given(f64),
    /// Λ such that the curvature term costs the given fraction of ε (per record).
    Curvature {
        fraction: f64,
        epsilon: f64,
    },
}

impl Rule {
    /// Λ for a full row norm R.
    fn penalty(self, norm: f64) -> f64 {
        match self {
            Self::Given(total) => total,
            // The exponent is capped so that a huge ε leaves a tiny but positive penalty.
            Self::Curvature { fraction, epsilon } => {
                norm * norm / (4.0 * (fraction * epsilon).min(20.0).exp_m1())
            }
        }
    }
}

/// # Claim
/// ε-DP for the context's relation and unit: one optional [`Quantile`] and one [`Objective`] are bought.
/// # Assumptions
/// Those of the primitives; radius, intercept coordinate and penalty are functions of public facts and of the
/// released clip.
/// # Composition
/// Sequential: .05ε for the clip if it is used, the rest for the fit; the total is exact.
/// # Arithmetic
/// R² = c² + g², g = c/4, c the released clip or the largest possible row norm. Λ = R²/(4(e^{fε} − 1)) with f
/// from the public number of rows, .05 without one; the exponent is capped at 20. Every norm the clip may
/// choose is calibrated before anything is bought, so that no refusal can depend on it. The map back to the
/// user's scale is affine: β_j = a_j·w_j, β₀ = g·w₀ + Σ shift_j·w_j.
/// # Checked by
/// `golden::{logistic_meets_exact_coefficients, logistic_scaling_is_undone}`,
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
    clip: Option<Quantile>,
    epsilon: Rational,
    rule: Rule,
    unknown_size: bool,
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

    /// Curvature term ln(1 + R²/(4Λ)).
    fn curvature(&self, radius: f64) -> f64 {
        let norm = self.norm(radius);
        (norm * norm / (4.0 * self.rule.penalty(norm))).ln_1p()
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
            self.objective(radius)
                .and_then(|(step, _)| step.calibration(context))
                .err()
        });
        let Some(reason) = refused else {
            return Ok(());
        };
        let epsilon = rational_to_f64(&context.per_record(&self.epsilon));
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
            Rule::Curvature { .. } => StatisticsError::Parameter {
                name: "epsilon",
                value: epsilon.to_string(),
                fix: format!("it is too small or the row norm is out of range ({reason})"),
            },
        })
    }

    fn objective(&self, radius: f64) -> Result<(Objective, f64), DeskError> {
        let penalty = self.rule.penalty(self.norm(radius));
        Ok((
            Objective {
                name: "logistic regression".to_owned(),
                epsilon: self.epsilon.clone(),
                covariates: 0..self.names.len(),
                outcome: self.names.len(),
                intercept: self.coordinate(radius),
                radius,
                penalty: rational_from_f64(penalty)?,
            },
            penalty,
        ))
    }

    /// Coefficients on the user's scale, intercept first if there is one.
    fn unscale(&self, w: &[f64], radius: f64) -> Vec<(String, f64)> {
        let mut rest = w;
        let mut shift = 0.0;
        if let (Some(g), [first, tail @ ..]) = (self.coordinate(radius), w) {
            shift = first * g;
            rest = tail;
        }
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

impl Mechanism for Logistic {
    fn kind(&self) -> &'static str {
        "logistic"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        let mut steps = Vec::new();
        steps.extend(self.clip.as_ref().map(|q| q.event(context)));
        // The price does not depend on the radius.
        let fit = Objective {
            name: "logistic regression".to_owned(),
            epsilon: self.epsilon.clone(),
            covariates: 0..self.names.len(),
            outcome: self.names.len(),
            intercept: None,
            radius: self.radius,
            penalty: Rational::ONE,
        };
        steps.push(fit.event(context));
        Ok(Event::Sequence(steps))
    }
    fn first_pass(&self) -> Vec<Fold> {
        self.clip
            .iter()
            .map(|_| Fold::Grid {
                axes: vec![Axis {
                    term: self.names.len() + 1,
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
        1
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
        let (step, penalty) = self.objective(radius)?;
        let fit = desk.objective(&step)?;
        let terms = self.unscale(&fit.coefficients, radius);
        let epsilon = rational_to_f64(&desk.context().per_record(&self.epsilon));
        let curvature = self.curvature(radius);
        let norm = self.norm(radius);
        let odd = terms.iter().any(|(_, b)| !b.is_finite());
        let value = json!({
            "family": "logistic",
            "terms": terms.iter().map(|(name, b)| json!({"name": name, "estimate": number(*b)})).collect::<Vec<_>>(),
            "lambda": number(penalty),
            "data_norm": number(norm),
            "radius": number(radius),
            "epsilon_terms": {
                "clip": self.clip.as_ref().map(|q| number(rational_to_f64(&q.epsilon))),
                "fit": number(rational_to_f64(&self.epsilon)),
                "per_record": number(epsilon),
                "curvature": number(curvature),
                "solver": number(0.01 * epsilon),
                "noise": number(0.99 * epsilon - curvature),
            },
        });
        Ok(Answer {
            value: with_metadata(value, &self.metadata),
            error_95: None,
            flags: flags(&[
                (self.unknown_size, "size_unknown"),
                (self.clip.is_some(), "rows_clipped"),
                (self.scaling.contains(&Affine::NOTHING), "constant_term"),
                (odd, "not_finite"),
            ]),
        })
    }
}

/// Whether the rule asks for a private row clip: √(ñε)/d < 10 (ñε/4 under replace-one).
pub(crate) fn clips_by_rule(facts: &Facts<'_>, epsilon: &Rational, d: usize) -> bool {
    d > 0
        && facts
            .quartered_signal(epsilon)
            .is_some_and(|s| s.sqrt() / size(d) < 10.0)
}
