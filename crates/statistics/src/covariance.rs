//! Covariance matrices: one noisy release of second moments, and everything that can be read off it.
//!
//! [`prepare`] is the paid release; [`regress`] fits any regression among its columns at no cost;
//! [`error`] and [`budget`] turn a budget into an error and an error into a budget.

mod sketch;

use nalgebra::DMatrix;
use reticent_accounting::{AccountingError, Event, Rational, rational_from_f64};
use reticent_mechanisms::fold::{Axis, Cut, Fold, Shorten};
use reticent_mechanisms::primitives::{NoisyMoments, Payment, Quantile};
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::{Value, json};

use crate::common::{Facts, Prepared, StatisticsError, number, size, sum_of, with_metadata};
use crate::derived::derived;
use crate::design::Affine;
use crate::linear::{Clip, Equation, Options, PureNoise, Step, divide, grid_bits, triangle};
use crate::simple::flags;

pub use sketch::{
    Direction, MOST_ROWS, ROWS, SketchConfig, directions, prepare_sketch, sketch_error,
};

/// Cells of the grid on which the row clip is chosen.
const CLIP_CELLS: u32 = 1000;

/// What is known about rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Rows {
    /// Every column lies within its public bounds (the default); columns are brought to [−½, ½].
    #[default]
    Box,
    /// Rows have at most this Euclidean norm; longer ones are shortened to it. All columns keep their relative scale.
    Ball(f64),
}

/// How a matrix that noise has made indefinite is repaired. The raw one is always released beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repair {
    /// Negative eigenvalues become 0: the nearest positive semidefinite matrix (the default).
    #[default]
    Clip,
    /// Negative eigenvalues become the least positive one (Xi, Kantarcioglu, Inan 2011).
    Lift,
    /// As it is.
    None,
}

/// How a covariance matrix is released.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The whole budget of the release.
    pub payment: Payment,
    /// What is known about rows.
    pub rows: Rows,
    /// Row clip; none by default, which leaves all moments unbiased.
    pub clip: Clip,
    /// Which noise pays with pure ε.
    pub noise: PureNoise,
    /// Repair of the matrix that correlations are computed from.
    pub repair: Repair,
    /// Rows are rounded to multiples of 2^−bits of the width of their bounds; 8 to 24.
    pub grid_bits: u32,
    /// Public facts copied into the value.
    pub metadata: Value,
}

impl Config {
    /// The default rules.
    pub fn new(payment: Payment) -> Self {
        Self {
            payment,
            rows: Rows::Box,
            clip: Clip::None,
            noise: PureNoise::Auto,
            repair: Repair::Clip,
            grid_bits: 20,
            metadata: Value::Null,
        }
    }
}

/// The covariance matrix of named expressions.
///
/// Value: `names`, `n`, `means`, `covariance` (raw, divisor n − 1), `repaired`, `correlation` (of the repaired one, null
/// where a variance is not positive), `noise` (deviation of the noise on entries of the scaled second moments, and
/// bounds on its spectral and Frobenius norm that hold with probability .95), `moments` (what [`Released::read`] needs).
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// let people = People::new();
/// let columns = [("age".to_owned(), AGE), ("income".to_owned(), INCOME)];
/// let config = covariance::Config::new(Payment::Pure { epsilon: epsilon() });
/// let value = people.release(&covariance::prepare(&people.facts(), &columns, &config)?);
/// let between = value["correlation"][0][1].as_f64().unwrap();
/// assert!((0.9..=1.0).contains(&between), "{value}");
/// # Ok(())
/// # }
/// ```
pub fn prepare(
    facts: &Facts<'_>,
    columns: &[(String, Expr)],
    config: &Config,
) -> Result<Prepared, StatisticsError> {
    grid_bits(config.grid_bits)?;
    let d = columns.len();
    let (scaling, mut terms) = scaled(facts, columns, config.rows)?;
    let clip = config.clip == Clip::Private && scaling.iter().any(|a| *a != Affine::NOTHING);
    if clip && config.rows != Rows::Box {
        return Err(refuse(
            "clip",
            "private".to_owned(),
            "rows with a declared norm are shortened to that norm; remove clip or data_norm",
        ));
    }
    if clip {
        let square = |t| Expr::Power(Box::new(Expr::Term(t)), 2);
        terms.push(sum_of((0..d).map(square).collect()));
    }
    facts.bounds(&terms)?;
    let (for_clip, payment) = divide(&config.payment, clip, facts.context)?;
    let varying = scaling.iter().filter(|a| **a != Affine::NOTHING).count();
    let mut mechanism = Covariance {
        names: columns.iter().map(|c| c.0.clone()).collect(),
        scaling,
        rows: config.rows,
        largest: size(varying) / 4.0,
        clip: for_clip.map(|epsilon| Quantile {
            name: "row clip: .97 quantile of the squared row norms".to_owned(),
            epsilon,
            level: (97, 100),
        }),
        moments: Step::laplace(payment),
        repair: config.repair,
        bits: config.grid_bits,
        metadata: config.metadata.clone(),
    };
    let widest = mechanism.fold(clip.then_some(mechanism.largest)).0;
    mechanism.moments = mechanism
        .moments
        .choose(config.noise, &widest, facts.context);
    let narrowest = clip.then(|| mechanism.fold(Some(0.0)).0);
    for fold in narrowest.iter().chain([&widest]) {
        mechanism
            .moments
            .check(fold, facts.context, &config.payment)?;
    }
    Ok(Prepared {
        terms,
        mechanism: Box::new(mechanism),
    })
}

/// Columns as scaled: to [−½, ½] by their bounds, or all by the one radius.
fn scaled(
    facts: &Facts<'_>,
    columns: &[(String, Expr)],
    rows: Rows,
) -> Result<(Vec<Affine>, Vec<Expr>), StatisticsError> {
    if columns.is_empty() {
        return Err(refuse("columns", "none".to_owned(), "name at least one"));
    }
    let exprs: Vec<Expr> = columns.iter().map(|c| c.1.clone()).collect();
    let bounds = facts.bounds(&exprs)?;
    let scaling: Vec<Affine> = match rows {
        Rows::Box => bounds.into_iter().map(Affine::to_half).collect(),
        Rows::Ball(radius) if radius.is_finite() && radius > 0.0 => vec![
            Affine {
                factor: 0.5 / radius,
                shift: 0.0,
            };
            columns.len()
        ],
        Rows::Ball(radius) => {
            return Err(refuse(
                "data_norm",
                radius.to_string(),
                "give the largest Euclidean norm of a row, a number above 0",
            ));
        }
    };
    let terms = exprs.iter().zip(&scaling);
    let terms = terms.map(|(e, a)| a.apply(e, 0.5)).collect();
    Ok((scaling, terms))
}

fn refuse(name: &'static str, value: String, fix: &str) -> StatisticsError {
    StatisticsError::Parameter {
        name,
        value,
        fix: fix.to_owned(),
    }
}

/// # Claim
/// The declared budget for the context's relation and unit, in its own currency: one optional [`Quantile`] and one
/// [`SecondMoments`](reticent_mechanisms::primitives::SecondMoments) or, with pure ε,
/// [`NormMoments`](reticent_mechanisms::primitives::NormMoments) are bought.
/// # Assumptions
/// Those of the primitives.
/// # Composition
/// Sequential, divided as for `linear`.
/// # Arithmetic
/// z = f·(g, x): box rows have x in [−½, ½]^d, g = ½ (clipped: √(q/d)); ball rows x = row/(2·radius), ‖x‖ ≤ ½, g = ½, so that
/// Q = ½. Covariance (M_xx − mmᵀ/n)/(n − 1), n = M₀₀/g², m = M₀ₓ/g.
/// # Checked by
/// `models::{covariance_meets_the_reference, every_subset_is_least_squares, covariance_totals, repairs_and_extremes_are_total,
/// regressions_from_a_covariance_cover}`
/// # References
/// `decisions.md` §2.7, §5.5; `privacy.md` §14; Dwork, Talwar, Thakurta, Zhang 2014.
struct Covariance {
    names: Vec<String>,
    scaling: Vec<Affine>,
    rows: Rows,
    /// Largest possible squared norm of a row of the box.
    largest: f64,
    clip: Option<Quantile>,
    moments: Step,
    repair: Repair,
    bits: u32,
    metadata: Value,
}

impl Covariance {
    fn fold(&self, q: Option<f64>) -> (Fold, f64) {
        fold(self.names.len(), self.rows, self.largest, q, self.bits)
    }

    fn finish(&self, noisy: &NoisyMoments, g: f64) -> Answer {
        let full = triangle(noisy, self.names.len() + 1);
        let released = Released {
            names: self.names.clone(),
            scaling: self.scaling.clone(),
            full,
            g,
            deviations: (noisy.sd_diagonal, noisy.sd_off_diagonal),
            shortened: self.clip.is_some() || self.rows != Rows::Box,
        };
        let n = released.rows();
        let raw = released.scaled_covariance();
        let (fixed, indefinite) = repair(&raw, self.repair);
        let factors = released.factors();
        let to_user = |m: &DMatrix<f64>| -> Value {
            rows_json(&DMatrix::from_fn(m.nrows(), m.ncols(), |i, j| {
                m[(i, j)] * factors[i] * factors[j]
            }))
        };
        let gaussian = matches!(
            &self.moments,
            Step::Entries(s) if !matches!(s.payment, Payment::Pure { .. })
        );
        let p = self.names.len() + 1;
        let value = json!({
            "family": "covariance",
            "names": self.names,
            "n": number(n),
            "means": released.means().iter().map(|m| number(*m)).collect::<Vec<_>>(),
            "covariance": to_user(&raw),
            "repaired": to_user(&fixed),
            "correlation": correlation(&fixed),
            "noise": {
                "entry_sd": number(noisy.sd_off_diagonal),
                "diagonal_sd": number(noisy.sd_diagonal),
                "spectral_95": if gaussian { number(spectral(noisy.sd_diagonal, p)) } else { Value::Null },
                "frobenius_95": if gaussian { number(frobenius(noisy.sd_diagonal, p)) } else { Value::Null },
            },
            "moments": released.to_json(noisy),
        });
        Answer {
            value: with_metadata(value, &self.metadata),
            error_95: None,
            flags: flags(&[
                (indefinite, "not_positive_semidefinite"),
                (self.clip.is_some(), "rows_clipped"),
                (n < 2.0, "too_few_rows"),
                (self.scaling.contains(&Affine::NOTHING), "constant_term"),
            ]),
        }
    }
}

impl Mechanism for Covariance {
    fn kind(&self) -> &'static str {
        "covariance"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        let mut steps: Vec<Event> = self.clip.iter().map(|q| q.event(context)).collect();
        steps.push(self.moments.event(context));
        Ok(Event::Sequence(steps))
    }
    fn first_pass(&self) -> Vec<Fold> {
        if self.clip.is_none() {
            return vec![self.fold(None).0];
        }
        vec![Fold::Grid {
            axes: vec![Axis {
                term: self.names.len(),
                cut: Cut::Atoms {
                    lower: 0.0,
                    upper: self.largest,
                    cells: CLIP_CELLS,
                },
            }],
            sum: None,
        }]
    }
    fn passes(&self) -> u32 {
        u32::from(self.clip.is_some())
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let (id, g) = if let Some(step) = &self.clip {
            let cell = desk.quantile(FoldId(0), step)?;
            let q = (size(cell) + 0.5) / f64::from(CLIP_CELLS) * self.largest;
            let (fold, g) = self.fold(Some(q));
            let ids = desk.scan(vec![fold])?;
            (ids.first().copied().unwrap_or(FoldId(1)), g)
        } else {
            (FoldId(0), self.fold(None).1)
        };
        let noisy = self.moments.buy(desk, id)?;
        Ok(self.finish(&noisy, g))
    }
}

/// The fold of `d` columns, and its intercept coordinate; `q` is the clip on ‖x‖².
fn fold(d: usize, rows: Rows, largest: f64, q: Option<f64>, bits: u32) -> (Fold, f64) {
    let step = f64::from(bits).exp2();
    let (g, squared_norm) = match (rows, q) {
        (Rows::Ball(_), _) => (0.5, 0.5),
        (Rows::Box, None) => (0.5, f64::INFINITY),
        (Rows::Box, Some(q)) => {
            let g = (q / (4.0 * largest)).sqrt();
            let g = ((g * step).round() / step).clamp(1.0 / 64.0, 0.5);
            (g, g * g + q)
        }
    };
    let fold = Fold::Moments {
        terms: 0..d,
        response: None,
        shorten: Shorten {
            intercept: g,
            squared_norm,
        },
        bits,
    };
    (fold, g)
}

/// A released covariance matrix, read back for further use.
#[derive(Clone, Debug, PartialEq)]
pub struct Released {
    names: Vec<String>,
    scaling: Vec<Affine>,
    /// Noisy second moments of (g, x).
    full: DMatrix<f64>,
    g: f64,
    deviations: (f64, f64),
    shortened: bool,
}

impl Released {
    /// Reads the value of a `covariance` release.
    pub fn read(value: &Value) -> Result<Self, StatisticsError> {
        let refuse = || StatisticsError::Parameter {
            name: "from",
            value: "the release".to_owned(),
            fix: "name a covariance release: it has no second moments".to_owned(),
        };
        let moments = value.get("moments").ok_or_else(refuse)?;
        let real = |key: &str| moments.get(key).and_then(Value::as_f64);
        let list = |v: Option<&Value>| v.and_then(Value::as_array).cloned().unwrap_or_default();
        let names: Vec<String> = list(value.get("names"))
            .iter()
            .filter_map(|n| n.as_str().map(str::to_owned))
            .collect();
        let scaling: Vec<Affine> = list(moments.get("scale"))
            .iter()
            .filter_map(|s| {
                Some(Affine {
                    factor: s.get(0)?.as_f64()?,
                    shift: s.get(1)?.as_f64()?,
                })
            })
            .collect();
        let entries: Vec<f64> = list(moments.get("entries"))
            .iter()
            .filter_map(Value::as_f64)
            .collect();
        let (Some(g), Some(s), Some(o)) = (
            real("intercept").filter(|g| *g > 0.0),
            real("sd_diagonal"),
            real("sd_off_diagonal"),
        ) else {
            return Err(refuse());
        };
        let p = names.len() + 1;
        if names.is_empty() || scaling.len() != names.len() || entries.len() != p * (p + 1) / 2 {
            return Err(refuse());
        }
        let noisy = NoisyMoments {
            dimension: p,
            entries,
            sd_diagonal: s,
            sd_off_diagonal: o,
        };
        Ok(Self {
            full: triangle(&noisy, p),
            names,
            scaling,
            g,
            deviations: (s, o),
            shortened: moments.get("shortened") == Some(&Value::Bool(true)),
        })
    }

    fn to_json(&self, noisy: &NoisyMoments) -> Value {
        json!({
            "intercept": number(self.g),
            "entries": noisy.entries.iter().map(|e| number(*e)).collect::<Vec<_>>(),
            "sd_diagonal": number(noisy.sd_diagonal),
            "sd_off_diagonal": number(noisy.sd_off_diagonal),
            "scale": self.scaling.iter().map(|a| json!([number(a.factor), number(a.shift)])).collect::<Vec<_>>(),
            "shortened": self.shortened,
        })
    }

    /// Names of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The noisy number of records.
    pub fn rows(&self) -> f64 {
        self.full[(0, 0)] / (self.g * self.g)
    }

    /// Noisy second moments of (1, columns…) on the user's scale: what the sweep operator takes. Without noise this is Σ(1, x)(1, x)ᵀ.
    pub fn second_moments(&self) -> DMatrix<f64> {
        let p = self.names.len() + 1;
        let mut b = DMatrix::zeros(p, p);
        b[(0, 0)] = 1.0 / self.g;
        for (j, a) in self.scaling.iter().enumerate() {
            if a.factor > 0.0 {
                b[(j + 1, 0)] = -a.shift / a.factor / self.g;
                b[(j + 1, j + 1)] = 1.0 / a.factor;
            }
        }
        &b * &self.full * b.transpose()
    }

    fn factors(&self) -> Vec<f64> {
        let width = |a: &Affine| if a.factor > 0.0 { 1.0 / a.factor } else { 0.0 };
        self.scaling.iter().map(width).collect()
    }

    fn means(&self) -> Vec<f64> {
        let n = self.rows().max(1.0);
        (self.scaling.iter().enumerate())
            .map(|(j, a)| {
                let mean = (self.full[(0, j + 1)] / self.g / n).clamp(-0.5, 0.5);
                if a.factor > 0.0 {
                    (mean - a.shift) / a.factor
                } else {
                    0.0
                }
            })
            .collect()
    }

    /// Covariances of the columns as scaled.
    fn scaled_covariance(&self) -> DMatrix<f64> {
        let d = self.names.len();
        let n = self.rows().max(2.0);
        let sum = |j: usize| self.full[(0, j + 1)] / self.g;
        DMatrix::from_fn(d, d, |i, j| {
            (self.full[(i + 1, j + 1)] - sum(i) * sum(j) / n) / (n - 1.0)
        })
    }
}

/// Any regression among the columns of a released covariance matrix: post-processing, at no cost.
///
/// `terms` are names and positions among the columns, `outcome` a position. The value has the shape of a `linear`
/// release; intervals and tests allow for the noise.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// let people = People::new();
/// let columns = [("age".to_owned(), AGE), ("income".to_owned(), INCOME)];
/// let config = covariance::Config::new(Payment::Pure { epsilon: epsilon() });
/// let released = people.release(&covariance::prepare(&people.facts(), &columns, &config)?);
/// // income on age, or any other regression among the columns, at no further cost
/// let from = covariance::Released::read(&released)?;
/// let options = linear::Options::default();
/// let free = covariance::regress(&from, &[("age".to_owned(), 0)], 1, true, options, &Value::Null)?;
/// let value = people.release(&free);
/// assert!((value["terms"][1]["estimate"].as_f64().unwrap() - 5.0).abs() < 0.5, "{value}");
/// # Ok(())
/// # }
/// ```
pub fn regress(
    from: &Released,
    terms: &[(String, usize)],
    outcome: usize,
    intercept: bool,
    options: Options,
    metadata: &Value,
) -> Result<Prepared, StatisticsError> {
    options.check()?;
    let d = from.names.len();
    let refuse = |value: String, fix: &str| StatisticsError::Parameter {
        name: "formula",
        value,
        fix: fix.to_owned(),
    };
    if outcome >= d || terms.iter().any(|t| t.1 >= d) {
        let fix = "use columns of the covariance release only";
        return Err(refuse(from.names.join(", "), fix));
    }
    if terms.iter().any(|t| t.1 == outcome) || (terms.is_empty() && !intercept) {
        let fix = "the outcome cannot explain itself, and there must be something to estimate";
        return Err(refuse(
            from.names.get(outcome).cloned().unwrap_or_default(),
            fix,
        ));
    }
    let mut at: Vec<usize> = vec![0];
    at.extend(terms.iter().map(|t| t.1 + 1));
    at.push(outcome + 1);
    let scaling: Vec<Affine> = (at.iter().skip(1))
        .filter_map(|i| from.scaling.get(i - 1).copied())
        .collect();
    let names: Vec<String> = terms.iter().map(|t| t.0.clone()).collect();
    let equation = Equation {
        names: &names,
        has_intercept: intercept,
        scaling: &scaling,
        full: from.full.select_rows(&at).select_columns(&at),
        g: from.g,
        deviations: from.deviations,
        options,
    };
    let (value, mut flags) = equation.report();
    if from.shortened {
        flags.push("rows_shortened_with_outcome".to_owned());
    }
    Ok(derived("regress", with_metadata(value, metadata), flags))
}

/// A placeholder for [`regress`] before anything is released: only its (zero) price is meant.
pub fn regress_placeholder() -> Prepared {
    derived("regress", Value::Null, Vec::new())
}

/// A positive semidefinite version, and whether the matrix was not one.
pub fn repair(matrix: &DMatrix<f64>, how: Repair) -> (DMatrix<f64>, bool) {
    let eigen = matrix.clone().symmetric_eigen();
    let indefinite = eigen.eigenvalues.iter().any(|l| *l < 0.0);
    let least = match how {
        Repair::None => return (matrix.clone(), indefinite),
        Repair::Clip => 0.0,
        Repair::Lift => (eigen.eigenvalues.iter().copied())
            .filter(|l| *l > 0.0)
            .fold(f64::INFINITY, f64::min),
    };
    if !indefinite {
        return (matrix.clone(), false);
    }
    let least = if least.is_finite() { least } else { 0.0 };
    let kept = eigen.eigenvalues.map(|l| if l < 0.0 { least } else { l });
    let v = &eigen.eigenvectors;
    let fixed = v * DMatrix::from_diagonal(&kept) * v.transpose();
    ((&fixed + fixed.transpose()) * 0.5, true)
}

fn correlation(covariance: &DMatrix<f64>) -> Value {
    let d = covariance.nrows();
    (0..d)
        .map(|i| {
            (0..d)
                .map(|j| {
                    let scale = (covariance[(i, i)] * covariance[(j, j)]).sqrt();
                    if covariance[(i, i)] > 0.0 && covariance[(j, j)] > 0.0 && scale > 0.0 {
                        number((covariance[(i, j)] / scale).clamp(-1.0, 1.0))
                    } else {
                        Value::Null
                    }
                })
                .collect::<Value>()
        })
        .collect()
}

fn rows_json(m: &DMatrix<f64>) -> Value {
    m.row_iter()
        .map(|r| r.iter().map(|x| number(*x)).collect::<Value>())
        .collect()
}

/// Bound on the spectral norm of the isometric Gaussian noise with deviation s on the diagonal, with probability .95:
/// E‖E‖ ≤ √2·s·√p, and ‖E‖ is s-Lipschitz in the standard normals behind it.
fn spectral(s: f64, p: usize) -> f64 {
    s * ((2.0 * size(p)).sqrt() + (2.0 * (1.0f64 / 0.05).ln()).sqrt())
}

/// The same for the Frobenius norm, s·χ with p(p + 1)/2 degrees of freedom.
fn frobenius(s: f64, p: usize) -> f64 {
    s * (size(p * (p + 1) / 2).sqrt() + (2.0 * (1.0f64 / 0.05).ln()).sqrt())
}

/// What a budget buys: the noise on second moments of (½, x), x scaled to [−½, ½] (a ball: to norm ½).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MomentsError {
    /// Half-width that holds the noise of an off-diagonal entry with probability .95 (normal; conservative for others).
    pub entry: f64,
    /// Deviation of the noise on a diagonal entry.
    pub diagonal: f64,
    /// Bound on the spectral norm of the noise with probability .95; Gaussian noise only.
    pub spectral: Option<f64>,
    /// The same for the Frobenius norm.
    pub frobenius: Option<f64>,
}

/// The error that a budget buys for this many columns, from public numbers only.
///
/// ```
/// use reticent_accounting::parse_decimal;
/// use reticent_mechanisms::{Context, primitives::Payment};
/// use reticent_statistics::covariance::{self, Rows};
/// use reticent_statistics::linear::PureNoise;
/// let context = Context::records(reticent_accounting::Relation::AddRemove);
/// let payment = Payment::Approximate { epsilon: parse_decimal("1")?, delta: parse_decimal("1e-6")? };
/// let error = covariance::error(&payment, PureNoise::Auto, 3, Rows::Box, &context)?;
/// // σ(1, 10⁻⁶) = 4.224679 and Q = (3 + 1)/4: deviation 4.22 on the diagonal, 4.22/√2 off it.
/// assert!((error.diagonal - 4.2247).abs() < 1e-3 && (error.entry - 1.96 * 2.9873).abs() < 1e-2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn error(
    payment: &Payment,
    noise: PureNoise,
    columns: usize,
    rows: Rows,
    context: &Context,
) -> Result<MomentsError, StatisticsError> {
    let (fold, _) = fold(columns, rows, size(columns) / 4.0, None, 20);
    let step = Step::laplace(payment.clone()).choose(noise, &fold, context);
    let (s, o) = step.check(&fold, context, payment)?;
    let gaussian = !matches!(payment, Payment::Pure { .. });
    // .95 quantiles in deviations: normal 1.96, Laplace 2.12.
    let quantile = if gaussian { 1.96 } else { 2.12 };
    let p = columns + 1;
    Ok(MomentsError {
        entry: quantile * o,
        diagonal: s,
        spectral: gaussian.then(|| spectral(s, p)),
        frobenius: gaussian.then(|| frobenius(s, p)),
    })
}

/// The smallest budget, to three digits, whose [`MomentsError::entry`] is at most `target`: an ε (with the given δ), or without δ a
/// pure ε; in a context whose currency is ρ, a ρ.
pub fn budget(
    target: f64,
    delta: Option<&Rational>,
    columns: usize,
    rows: Rows,
    context: &Context,
) -> Result<Payment, StatisticsError> {
    let impossible = || StatisticsError::Parameter {
        name: "error",
        value: target.to_string(),
        fix: "give a number above 0 that some budget between 1e-9 and 1e9 reaches".to_owned(),
    };
    if !(target.is_finite() && target > 0.0) {
        return Err(impossible());
    }
    let payment = |x: f64| -> Result<Payment, StatisticsError> {
        let amount = rational_from_f64(x).map_err(|_| impossible())?;
        Ok(match (context.currency, delta) {
            (reticent_accounting::Currency::Concentrated, _) => {
                Payment::Concentrated { rho: amount }
            }
            (_, Some(delta)) => Payment::Approximate {
                epsilon: amount,
                delta: delta.clone(),
            },
            (_, None) => Payment::Pure { epsilon: amount },
        })
    };
    let reaches = |x: f64| -> Result<bool, StatisticsError> {
        let found = error(&payment(x)?, PureNoise::Auto, columns, rows, context)?;
        Ok(found.entry <= target)
    };
    let (mut low, mut high) = (1e-9f64, 1e9f64);
    if !reaches(high)? {
        return Err(impossible());
    }
    while high / low > 1.0005 {
        let middle = (low * high).sqrt();
        if reaches(middle)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    payment(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs_by_name() {
        // Eigenvalues 3 and −1, vectors (1, 1) and (1, −1).
        let m = DMatrix::from_row_slice(2, 2, &[1.0, 2.0, 2.0, 1.0]);
        let (clipped, was) = repair(&m, Repair::Clip);
        assert!(was && (clipped - DMatrix::from_element(2, 2, 1.5)).norm() < 1e-12);
        let (lifted, _) = repair(&m, Repair::Lift);
        assert!((lifted - DMatrix::identity(2, 2) * 3.0).norm() < 1e-12);
        assert_eq!(repair(&m, Repair::None).0, m);
        let negative = DMatrix::identity(2, 2) * -1.0;
        assert_eq!(repair(&negative, Repair::Lift).0, DMatrix::zeros(2, 2));
    }
}
