//! Linear regression from noisy second moments, with intervals that know about the noise.
//!
//! Columns go to [−½, ½] by their public bounds; rows are shortened by their covariates alone; one noisy
//! triangle of Σ zzᵀ, z = f·(g, x, y), gives coefficients, residual deviation, R² and intervals. Everything
//! is mapped back to the user's scale by an affine change of coordinates.

mod equation;
mod fit;
mod output;
mod step;
mod sweep;

use reticent_accounting::{
    AccountingError, Currency, Event, Rational, Relation, rational_to_f64, share,
};
use reticent_mechanisms::fold::{Axis, Cut, Fold, Shorten};
use reticent_mechanisms::primitives::{NoisyMoments, Payment, Quantile};
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::Value;

use crate::common::{Facts, Prepared, StatisticsError, clipped, size, sum_of, with_metadata};
use crate::design::{Affine, DesignSpec};
use crate::zcdp::epsilon_of_pure;
pub(crate) use equation::Equation;
pub use equation::{Options, Prediction};
pub(crate) use fit::triangle;
pub(crate) use output::expected;
pub use output::{OutputConfig, prepare_output};
pub use step::PureNoise;
pub(crate) use step::Step;
pub use sweep::sweep;

/// Cells of the grid on which the row clip is chosen.
const CLIP_CELLS: u32 = 1000;
/// Whether rows are shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clip {
    /// To a private quantile of the squared norm of the covariates (a tenth of the budget; default): the .97 quantile,
    /// or lower ones where a declared number of rows says that the noise is large ([`prepare`]).
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
    /// Which noise pays with pure ε.
    pub noise: PureNoise,
    /// What is reported.
    pub options: Options,
}

impl Config {
    /// The default rules.
    pub fn new(payment: Payment) -> Self {
        Self {
            payment,
            clip: Clip::Private,
            grid_bits: 20,
            noise: PureNoise::Auto,
            options: Options::default(),
        }
    }
}

/// Signal to noise below which rows are shortened to the median norm.
const MEDIAN_BELOW: f64 = 5.0;

/// Level of the row clip in hundredths, from public numbers; n rows are declared, ε pays for the quantile, the noise has
/// deviation s at the widest clip, there are p coefficients.
///
/// The quantile is found if the (1 − a)·n rows above it outweigh the cells without any: (1 − a)·n·ε/2 ≥ 10, above ln 1000. And
/// where n/4, which bounds the mean eigenvalue of Σ zzᵀ, is below 5·s·√(2p), less noise is worth more than the weight that long rows lose.
fn clip_level(rows: Option<f64>, epsilon: f64, s: f64, p: usize) -> u32 {
    let Some(n) = rows.filter(|n| n.is_finite() && *n > 0.0) else {
        return 97;
    };
    if n / 4.0 < MEDIAN_BELOW * s * (2.0 * size(p)).sqrt() {
        return 50;
    }
    clipped(100.0 - 2000.0 / (n * epsilon), 50, 97)
}

/// A linear regression.
///
/// Rows longer than a private quantile of the squared norm of the covariates are shortened to it. Its level is .97; if
/// [`Facts::rows`] is known, it is 1 − 20/(nε) within [.5, .97], ε the quantile's own budget, and the median where n/4 <
/// 5·s·√(2p), s the noise's deviation at the widest clip: many columns on few rows.
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
/// let config = linear::Config::new(Payment::Pure { epsilon: epsilon() });
/// let value = people.release(&linear::prepare(&people.facts(), &design, &config)?);
/// let slope = value["terms"][1]["estimate"].as_f64().unwrap();
/// assert!((slope - 5.0).abs() < 0.5, "{value}");
/// # Ok(())
/// # }
/// ```
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
    Ok(mechanism
        .moments
        .deviations(&fold, facts.context)
        .map_or(f64::INFINITY, |(diagonal, _)| diagonal))
}

fn plan(
    facts: &Facts<'_>,
    design: &DesignSpec,
    config: &Config,
) -> Result<(Vec<Expr>, Linear), StatisticsError> {
    design.check()?;
    grid_bits(config.grid_bits)?;
    config.options.check()?;
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
    let mut mechanism = Linear {
        names: design.terms.iter().map(|(n, _)| n.clone()).collect(),
        has_intercept: design.intercept,
        scaling,
        largest: size(varying) / 4.0,
        clip: None,
        moments: Step::laplace(payment),
        options: config.options,
        bits: config.grid_bits,
        metadata: design.metadata.clone(),
    };
    let widest = mechanism.fold(mechanism.largest, !clip).0;
    mechanism.moments = mechanism
        .moments
        .choose(config.noise, &widest, facts.context);
    // Sensitivities grow with the clip: if the ends can be calibrated, so can what lies between.
    let check = |fold| {
        mechanism
            .moments
            .check(fold, facts.context, &config.payment)
    };
    let narrowest = mechanism.fold(0.0, !clip).0;
    check(&narrowest)?;
    let (s, _) = check(&widest)?;
    mechanism.clip = for_clip.map(|epsilon| {
        let level = clip_level(facts.rows, facts.per_record(&epsilon), s, d + 1);
        Quantile {
            name: format!("row clip: .{level} quantile of the squared row norms"),
            epsilon,
            level: (level, 100),
        }
    });
    Ok((terms, mechanism))
}

pub(crate) fn grid_bits(bits: u32) -> Result<(), StatisticsError> {
    if (8..=24).contains(&bits) {
        return Ok(());
    }
    Err(StatisticsError::Parameter {
        name: "grid_bits",
        value: bits.to_string(),
        fix: "give 8 to 24".to_owned(),
    })
}

/// The clip's ε and what is left for the moments; the total is exact in the data set's currency.
pub(crate) fn divide(
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
/// and one [`SecondMoments`](reticent_mechanisms::primitives::SecondMoments) or, with pure ε, one
/// [`NormMoments`](reticent_mechanisms::primitives::NormMoments) are bought.
/// # Assumptions
/// Those of the primitives.
/// # Composition
/// Sequential. (ε, δ) and pure ε: a tenth of ε for the clip, the rest (and all of δ) for the moments. ρ: the
/// clip takes what its bounded-range price ε²/8 comes to, about ρ/20; the moments get exactly the rest.
/// # Arithmetic
/// Floor of the X block's eigenvalues ½·s·√(2p); b = G⁻¹v; covariance G⁻¹(σ_r²·G + Cov e)G⁻¹ (see `fit.rs`);
/// raised eigenvalues add their share; prediction coefficients with ridge 2·p·σ_off²/max(W_yy, σ_yy). Intervals by Student's t.
/// # Checked by
/// `linear::tests::the_clip_follows_public_numbers`, `linear::fit::tests::raised_eigenvalues_widen_intervals`,
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
    moments: Step,
    options: Options,
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
        let noisy = self.moments.buy(desk, id)?;
        Ok(self.finish(&noisy, g))
    }
}

impl Linear {
    /// Everything after the purchase.
    fn finish(&self, noisy: &NoisyMoments, g: f64) -> Answer {
        let equation = Equation {
            names: &self.names,
            has_intercept: self.has_intercept,
            scaling: &self.scaling,
            full: triangle(noisy, self.names.len() + 2),
            g,
            deviations: (noisy.sd_diagonal, noisy.sd_off_diagonal),
            options: self.options,
        };
        let (value, flags) = equation.report();
        Answer {
            value: with_metadata(value, &self.metadata),
            error_95: None,
            flags,
        }
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

#[cfg(test)]
mod tests {
    use super::clip_level;

    #[test]
    fn the_clip_follows_public_numbers() {
        // Unknown size; many rows.
        assert_eq!(clip_level(None, 0.1, 86.0, 51), 97);
        assert_eq!(clip_level(Some(10_000.0), 0.1, 4.0, 3), 97);
        // 1 − 20/48.8 = .59: the rows above the quantile must be found among empty cells.
        assert_eq!(clip_level(Some(50_000.0), 1.0 / 1024.0, 400.0, 5), 59);
        // 2500 < 5·86·√102 = 4343.
        assert_eq!(clip_level(Some(10_000.0), 0.1, 86.0, 51), 50);
        for rows in [0.0, 1.0, 1e-300, 1e300, f64::NAN, f64::INFINITY] {
            for epsilon in [1e-12, 1.0, 1e15] {
                assert!((50..=97).contains(&clip_level(Some(rows), epsilon, 1.0, 2)));
            }
        }
    }
}
