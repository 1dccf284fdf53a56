//! Linear regression by output perturbation: noise on the coefficients of a ridge fit within a ball, and nothing else.

use reticent_accounting::{AccountingError, Event, Rational, rational_from_f64, rational_to_f64};
use reticent_mechanisms::fold::{Fold, Shorten};
use reticent_mechanisms::primitives::LeastSquares;
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::{Value, json};

use super::grid_bits;
use crate::common::{Facts, Prepared, StatisticsError, number, positive, size, with_metadata};
use crate::design::{Affine, DesignSpec};
use crate::simple::flags;

/// The intercept coordinate, as long as a column can be.
const INTERCEPT: f64 = 0.5;

/// How the coefficients are found and paid for.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputConfig {
    /// ε of the release.
    pub epsilon: Rational,
    /// Λ of ½Σ(y − w·x)² + (Λ/2)‖w‖², columns and outcome scaled to [−½, ½]; by a public rule if absent ([`prepare_output`]).
    pub penalty: Option<f64>,
    /// W: the largest norm of the coefficients of the scaled columns. With 1, a column's whole range moves the outcome by at most its whole range.
    pub coefficient_norm: f64,
    /// Rows are rounded to multiples of 2^−bits of the width of their bounds; 8 to 24.
    pub grid_bits: u32,
}

impl OutputConfig {
    /// The default rules.
    pub fn new(epsilon: Rational) -> Self {
        Self {
            epsilon,
            penalty: None,
            coefficient_norm: 1.0,
            grid_bits: 20,
        }
    }
}

/// A linear regression by output perturbation (Wu et al. 2015): pure ε, coefficients only.
///
/// Columns and outcome go to [−½, ½] by their public bounds. The fit minimises ½Σ(y − w·x)² + (Λ/2)‖w‖² over ‖w‖ ≤ W; without that ball
/// one record has no bounded influence. Noise has the density e^(−‖η‖/τ), τ about G/(Λε), 2G/(Λε) under replace-one.
///
/// *The rule for Λ.* With n rows known, p coefficients and G the bound on a record's gradient, noise costs about (n/24)·p(p + 1)·τ² of
/// half the sum of squares and shrinkage about 1.5·Λ²W²/n (columns spread evenly, coefficients of norm W/2); the sum is least at
/// Λ = √(n/6)·(p(p + 1))^¼·√(G/(Wε)), 2G under replace-one. It is never so small that the noise is on average longer than W; without n it makes
/// it half as long as W.
///
/// The value has `terms` with `estimate` and `noise_error`, the standard deviation of the noise, which is public. It has no standard errors:
/// they need the residual variance and the second moments of the covariates, which are not released, and the shrinkage toward 0 is a bias that
/// no such number would show. A release with them is [`prepare`](super::prepare).
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// let people = People::new();
/// let design = DesignSpec {
///     intercept: true,
///     terms: vec![("age".to_owned(), AGE)],
///     outcome: INCOME,
///     metadata: Value::Null,
/// };
/// let config = linear::OutputConfig::new(epsilon());
/// let value = people.release(&linear::prepare_output(&people.facts(), &design, &config)?);
/// let slope = value["terms"][1]["estimate"].as_f64().unwrap();
/// assert!(slope > 2.0 && slope < 6.0, "{value}"); // 5, shrunk
/// assert!(value["terms"][1]["noise_error"].as_f64().unwrap() < 1.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A design without an intercept (columns are centred by their bounds), and penalties, norms and budgets out of range: decided from public inputs.
pub fn prepare_output(
    facts: &Facts<'_>,
    design: &DesignSpec,
    config: &OutputConfig,
) -> Result<Prepared, StatisticsError> {
    let (terms, mechanism) = plan(facts, design, config)?;
    Ok(Prepared {
        terms,
        mechanism: Box::new(mechanism),
    })
}

/// What is known of the noise before the release: the mean length of the noise as a share of W, and Λ as a share of the
/// largest mean eigenvalue that so many rows can give.
pub(crate) fn expected(
    facts: &Facts<'_>,
    design: &DesignSpec,
    config: &OutputConfig,
) -> Result<(f64, Option<f64>), StatisticsError> {
    let (_, mechanism) = plan(facts, design, config)?;
    let law = mechanism.step.vector(&mechanism.fold(), facts.context);
    let noise = law.map_or(f64::INFINITY, |law| {
        rational_to_f64(&law.scale) * size(law.dimension) / config.coefficient_norm
    });
    let penalty = rational_to_f64(&mechanism.step.penalty);
    let rows = facts.rows.filter(|n| n.is_finite() && *n >= 1.0);
    Ok((noise, rows.map(|n| penalty / (penalty + n / 12.0))))
}

fn plan(
    facts: &Facts<'_>,
    design: &DesignSpec,
    config: &OutputConfig,
) -> Result<(Vec<reticent_mechanisms::program::Expr>, Output), StatisticsError> {
    let refuse = |name: &'static str, value: String, fix: &str| StatisticsError::Parameter {
        name,
        value,
        fix: fix.to_owned(),
    };
    let exact = |name, x: f64| {
        rational_from_f64(x).map_err(|e| refuse(name, x.to_string(), &e.to_string()))
    };
    positive(&config.epsilon)?;
    design.check()?;
    grid_bits(config.grid_bits)?;
    if !design.intercept {
        return Err(refuse(
            "formula",
            "no intercept".to_owned(),
            "keep the intercept: columns are centred by their bounds; or use the noisy moments (method = \"moments\")",
        ));
    }
    let norms = 1e-6..=1e6;
    if !norms.contains(&config.coefficient_norm) {
        return Err(refuse(
            "coefficient_norm",
            config.coefficient_norm.to_string(),
            "give a number from 1e-6 to 1e6; 1 lets a column's range move the outcome by its range",
        ));
    }
    if let Some(x) = config.penalty
        && !(1e-6..=1e15).contains(&x)
    {
        return Err(refuse(
            "lambda",
            x.to_string(),
            "give a number from 1e-6 to 1e15",
        ));
    }
    let mut exprs = design.exprs();
    exprs.push(design.outcome.clone());
    let bounds = facts.bounds(&exprs)?;
    let middle = bounds.last().map_or(0.0, |b| 0.5 * (b.lower + b.upper));
    let scaling: Vec<Affine> = bounds.into_iter().map(Affine::to_half).collect();
    let terms: Vec<_> = (exprs.iter().zip(&scaling))
        .map(|(e, a)| a.apply(e, 0.5))
        .collect();
    facts.bounds(&terms)?;
    let penalty = config
        .penalty
        .unwrap_or_else(|| rule(facts, design.terms.len() + 1, config));
    let flags = flags(&[
        (
            facts.rows.is_none() && config.penalty.is_none(),
            "size_unknown",
        ),
        (
            scaling
                .iter()
                .take(design.terms.len())
                .any(|a| *a == Affine::NOTHING),
            "constant_term",
        ),
        (true, "no_standard_errors"),
    ]);
    let mechanism = Output {
        names: design.terms.iter().map(|(n, _)| n.clone()).collect(),
        scaling,
        middle,
        bits: config.grid_bits,
        step: LeastSquares {
            name: "linear regression".to_owned(),
            epsilon: config.epsilon.clone(),
            penalty: exact("lambda", penalty)?,
            largest: exact("coefficient_norm", config.coefficient_norm)?,
        },
        flags,
        metadata: design.metadata.clone(),
    };
    // every refusal of the primitive, before anything is bought
    if let Err(e) = mechanism.step.vector(&mechanism.fold(), facts.context) {
        let fix = format!("give more, a larger lambda or fewer columns ({e})");
        let given = reticent_accounting::format_rational(&config.epsilon);
        return Err(refuse("epsilon", given, &fix));
    }
    Ok((terms, mechanism))
}

/// The public rule of [`prepare_output`].
fn rule(facts: &Facts<'_>, coefficients: usize, config: &OutputConfig) -> f64 {
    let (p, w) = (size(coefficients), config.coefficient_norm);
    let squares = INTERCEPT * INTERCEPT + p / 4.0;
    let gradient = 0.5 * squares * (w + w.hypot(1.0));
    let ratio =
        f64::from(facts.context.touches()) * gradient / (w * facts.per_record(&config.epsilon));
    let found = match facts.rows {
        Some(n) if n.is_finite() && n > 0.0 => {
            let balanced = (n / 6.0).sqrt() * (p * (p + 1.0)).powf(0.25) * ratio.sqrt();
            balanced.max(p * ratio)
        }
        _ => 2.0 * p * ratio,
    };
    if found.is_finite() {
        found.clamp(1e-6, 1e15)
    } else {
        1e15
    }
}

/// # Claim
/// ε-DP for the context's relation and unit: one [`LeastSquares`] is bought.
/// # Assumptions
/// Those of the primitive; scaling, penalty and norm are functions of public facts.
/// # Composition
/// A single purchase of the whole ε.
/// # Arithmetic
/// y = s·y′ + m and x′_j = a_j·x_j + b_j: β_j = s·a_j·w_j, β₀ = m + s·(g·w₀ + Σ b_j·w_j), g = ½. A coordinate of the noise has deviation
/// τ√(p + 1) and coordinates are uncorrelated.
/// # Checked by
/// `models::{least_squares_noise_off_is_the_ridge_fit, least_squares_noise_is_as_stated}`,
/// `contract::{inner_events_sum_to_epsilon, every_kind_answers_on_every_table}`, `composites::all`
struct Output {
    names: Vec<String>,
    /// Of the terms, then of the outcome.
    scaling: Vec<Affine>,
    /// Middle of the outcome's bounds.
    middle: f64,
    bits: u32,
    step: LeastSquares,
    flags: Vec<String>,
    metadata: Value,
}

impl Output {
    fn fold(&self) -> Fold {
        let d = self.names.len();
        Fold::Moments {
            terms: 0..d,
            response: Some(d),
            shorten: Shorten {
                intercept: INTERCEPT,
                squared_norm: f64::INFINITY,
            },
            bits: self.bits,
        }
    }

    /// Name, estimate and deviation of the noise on the user's scale, the intercept first.
    fn terms(&self, w: &[f64], deviation: f64) -> Vec<(String, f64, f64)> {
        let width = self
            .scaling
            .last()
            .map_or(0.0, |a| if a.factor > 0.0 { 1.0 / a.factor } else { 0.0 });
        let at = |i: usize| w.get(i).copied().unwrap_or(0.0);
        let mut intercept = INTERCEPT * at(0);
        let mut squares = INTERCEPT * INTERCEPT;
        let mut terms = Vec::with_capacity(self.names.len() + 1);
        for (j, (name, a)) in self.names.iter().zip(&self.scaling).enumerate() {
            let factor = width * a.factor;
            terms.push((name.clone(), factor * at(j + 1), factor.abs() * deviation));
            intercept += a.shift * at(j + 1);
            squares += a.shift * a.shift;
        }
        let first = (
            "(Intercept)".to_owned(),
            self.middle + width * intercept,
            width * squares.sqrt() * deviation,
        );
        terms.insert(0, first);
        terms
    }
}

impl Mechanism for Output {
    fn kind(&self) -> &'static str {
        "linear"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(Event::Sequence(vec![self.step.event(context)]))
    }
    fn first_pass(&self) -> Vec<Fold> {
        vec![self.fold()]
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let law = self.step.vector(&self.fold(), desk.context())?;
        let scale = rational_to_f64(&law.scale);
        let w = desk.least_squares(FoldId(0), &self.step)?;
        let terms = self.terms(&w, scale * (size(law.dimension) + 1.0).sqrt());
        let odd = terms.iter().any(|t| !t.1.is_finite());
        let value = json!({
            "family": "linear",
            "perturbation": "output",
            "lambda": number(rational_to_f64(&self.step.penalty)),
            "coefficient_norm": number(rational_to_f64(&self.step.largest)),
            "terms": terms.iter().map(|(name, b, noise)| json!({
                "name": name, "estimate": number(*b), "noise_error": number(*noise),
            })).collect::<Vec<_>>(),
        });
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
