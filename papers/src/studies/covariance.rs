//! The covariance report (Bain, D'Orazzio, Sheffet, Vadhan 2014): its tables 3 and 4 and figures 8 to 20, as printed and corrected.
//!
//! *As printed*: columns scaled to [0, 1] by the data's own ends, the triangle of Σ(1, x)(1, x)ᵀ with noise of σ = √d·√(2·ln(1.25/δ))/ε on
//! every entry, negative eigenvalues lifted to the least positive one, the sweep operator, standard errors that ignore the noise. Its
//! sensitivity is too small (√d instead of √((d+1)(d+2)/2)) and the ends are not private: the numbers below are not a private release.
//! *Corrected*: the shipped `covariance` and `regress` (no clip), and the shipped `linear` (private clip), with public bounds.
//! Beside them the sketch of `covariance` (`directions.rs`).

mod directions;

use std::fmt::Write as _;
use std::path::Path;

use nalgebra::DMatrix;
use rayon::prelude::*;
use reticent_accounting::{Currency, Relation, Size};
use reticent_laws::Seeded;
use reticent_mechanisms::Context;
use reticent_mechanisms::primitives::Payment;
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::source::Memory;
use reticent_statistics::covariance::{self, Released, Repair, Rows};
use reticent_statistics::linear::{self, Options, PureNoise, sweep};
use reticent_statistics::{Facts, Prepared};
use serde_json::Value;

use super::pums::{Pums, rational};
use super::{at, list};
use crate::public::{context, mean, release};
use crate::real;
use crate::study::{Findings, Form, StudyError};
use crate::synthetic::{design, normal, table, uniform};
use crate::truth;

/// Seed of the invented records, plus the position of C; the run is the stream.
pub const ROWS_SEED: u64 = 41_000;
/// Seed of the noise, plus the number of the setting; the run is the stream.
pub const NOISE_SEED: u64 = 42_000;
/// The report's ε and δ.
const EPSILON: f64 = 0.01;
const DELTA: f64 = 1.0 / 65_536.0;
const DELTA_TEXT: &str = "1/65536";
/// The report's values of C.
const FACTORS: [f64; 4] = [1.0, 10.0, 100.0, 1000.0];
/// Records and columns of the report's invented data.
const ROWS: usize = 50_000;
const COLUMNS: usize = 5;

/// Quantile of a list; it is sorted.
fn quantile(all: &mut [f64], q: f64) -> f64 {
    all.sort_by(f64::total_cmp);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a position in the list"
    )]
    let i = (q * real(all.len().saturating_sub(1))).round() as usize;
    all.get(i).copied().unwrap_or(f64::NAN)
}

fn short(x: f64) -> String {
    if x.abs() >= 1e5 || (x != 0.0 && x.abs() < 1e-3) {
        format!("{x:.2e}")
    } else {
        format!("{x:.4}")
    }
}

/// The report's own standard deviation.
fn printed_sigma(d: usize, epsilon: f64) -> f64 {
    real(d).sqrt() * (2.0 * (1.25 / DELTA).ln()).sqrt() / epsilon
}

/// A symmetric matrix with independent normal entries of deviations (diagonal, off-diagonal).
fn noise_matrix(p: usize, (diagonal, off): (f64, f64), noise: &mut Seeded) -> DMatrix<f64> {
    let mut e = DMatrix::zeros(p, p);
    for i in 0..p {
        e[(i, i)] = diagonal * normal(noise);
        for j in i + 1..p {
            e[(i, j)] = off * normal(noise);
            e[(j, i)] = e[(i, j)];
        }
    }
    e
}

fn spectral_norm(m: &DMatrix<f64>) -> f64 {
    m.clone()
        .symmetric_eigenvalues()
        .iter()
        .fold(0.0, |a, l| f64::max(a, l.abs()))
}

/// One regression: coefficients (intercept first), s², standard errors.
#[derive(Clone, Debug)]
struct Fitted {
    b: Vec<f64>,
    s2: f64,
    se: Vec<f64>,
    /// Half-width of the interval of each coefficient.
    half: Vec<f64>,
}

/// The sweep of a matrix of (1, x…, y) on all but y, with naive standard errors.
fn swept(m: &DMatrix<f64>) -> Fitted {
    let y = m.nrows() - 1;
    let s = sweep(m, &(0..y).collect::<Vec<_>>());
    let s2 = s[(y, y)] / (m[(0, 0)] - real(y));
    let se: Vec<f64> = (0..y).map(|i| (-s[(i, i)] * s2).max(0.0).sqrt()).collect();
    Fitted {
        b: (0..y).map(|i| s[(i, y)]).collect(),
        s2,
        half: se.iter().map(|e| 1.96 * e).collect(),
        se,
    }
}

/// Records as columns; the last is the outcome.
struct Data {
    columns: Vec<Vec<f64>>,
    /// Public bounds of the columns.
    bounds: Vec<(f64, f64)>,
    /// Σ(1, x)(1, x)ᵀ.
    moments: DMatrix<f64>,
}

impl Data {
    fn new(columns: Vec<Vec<f64>>, bounds: Vec<(f64, f64)>) -> Self {
        let n = columns[0].len();
        let p = columns.len() + 1;
        let cell = |i: usize, r: usize| if i == 0 { 1.0 } else { columns[i - 1][r] };
        let moments = DMatrix::from_fn(p, p, |i, j| (0..n).map(|r| cell(i, r) * cell(j, r)).sum());
        Self {
            columns,
            bounds,
            moments,
        }
    }

    /// The report's invented data: normal columns, y = C·x₁ + N(0, 1).
    fn invented(factor: f64, run: u64) -> Self {
        let mut noise = Seeded::stream(ROWS_SEED, run);
        let mut columns = Vec::new();
        let mut bounds = Vec::new();
        for _ in 0..COLUMNS - 1 {
            let (m, s) = (
                10.0 * uniform(&mut noise) - 5.0,
                0.5 + 2.0 * uniform(&mut noise),
            );
            let (low, high) = (m - 5.0 * s, m + 5.0 * s);
            let draw = |noise: &mut Seeded| (m + s * normal(noise)).clamp(low, high);
            columns.push((0..ROWS).map(|_| draw(&mut noise)).collect::<Vec<f64>>());
            bounds.push((low, high));
        }
        let (low, high) = (factor * bounds[0].0 - 5.0, factor * bounds[0].1 + 5.0);
        let y = (columns[0].iter())
            .map(|x| (factor * x + normal(&mut noise)).clamp(low, high))
            .collect();
        columns.push(y);
        bounds.push((low, high));
        Self::new(columns, bounds)
    }

    /// The printed mechanism with one draw of noise.
    fn printed(&self, noise: &mut Seeded) -> Fitted {
        let d = self.columns.len();
        let p = d + 1;
        // x = low + (high − low)·x′ by the data's ends.
        let mut back = DMatrix::identity(p, p);
        let mut forth = DMatrix::identity(p, p);
        for (j, c) in self.columns.iter().enumerate() {
            let low = c.iter().copied().fold(f64::INFINITY, f64::min);
            let high = c.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            back[(j + 1, 0)] = low;
            back[(j + 1, j + 1)] = high - low;
            forth[(j + 1, 0)] = -low / (high - low);
            forth[(j + 1, j + 1)] = 1.0 / (high - low);
        }
        let sigma = printed_sigma(d, EPSILON);
        let noisy =
            &forth * &self.moments * forth.transpose() + noise_matrix(p, (sigma, sigma), noise);
        let (repaired, _) = covariance::repair(&noisy, Repair::Lift);
        swept(&(&back * repaired * back.transpose()))
    }

    /// A source that holds every record `times` times.
    fn source(&self, times: usize) -> (std::sync::Arc<reticent_mechanisms::rows::Schema>, Memory) {
        let repeated: Vec<Vec<f64>> = self.columns.iter().map(|c| c.repeat(times)).collect();
        let columns: Vec<(String, &[f64], f64, f64)> = (repeated.iter().zip(&self.bounds))
            .enumerate()
            .map(|(i, (c, b))| (format!("x{}", i + 1), c.as_slice(), b.0, b.1))
            .collect();
        table(&columns)
    }
}

fn payment(epsilon: &str) -> Result<Payment, StudyError> {
    Ok(Payment::Approximate {
        epsilon: rational(epsilon)?,
        delta: rational(DELTA_TEXT)?,
    })
}

fn setting(relation: Relation, n: usize) -> Context {
    let size = match relation {
        Relation::AddRemove => Size::Private,
        Relation::ReplaceOne => Size::Public(n as u64),
    };
    context(relation, Currency::Approximate, size)
}

fn read(value: &Value) -> Fitted {
    let of = |key: &str| -> Vec<f64> { list(value, "terms").iter().map(|t| at(t, key)).collect() };
    let (low, high) = (of("conf_low"), of("conf_high"));
    Fitted {
        b: of("estimate"),
        s2: at(value, "s2"),
        se: of("std_error"),
        half: low.iter().zip(&high).map(|(l, h)| (h - l) / 2.0).collect(),
    }
}

/// The shipped releases on a source of `n` records.
struct Shipped<'a> {
    source: &'a Memory,
    context: &'a Context,
    covariance: Prepared,
    linear: Prepared,
    columns: usize,
}

impl<'a> Shipped<'a> {
    fn new(
        schema: &'a reticent_mechanisms::rows::Schema,
        source: &'a Memory,
        context: &'a Context,
        n: usize,
        columns: usize,
    ) -> Result<Self, StudyError> {
        let facts = Facts {
            schema,
            filter: None,
            context,
            rows: Some(real(n)),
            positive_rate: None,
        };
        let names: Vec<(String, Expr)> = (0..columns)
            .map(|i| (format!("x{}", i + 1), Expr::Column(i)))
            .collect();
        let config = covariance::Config::new(payment("0.01")?);
        Ok(Self {
            source,
            context,
            covariance: covariance::prepare(&facts, &names, &config)
                .map_err(StudyError::release)?,
            linear: linear::prepare(
                &facts,
                &design(columns - 1),
                &linear::Config::new(payment("0.01")?),
            )
            .map_err(StudyError::release)?,
            columns,
        })
    }

    /// `covariance`, then `regress`.
    fn regress(&self, noise: &mut Seeded) -> Result<Fitted, StudyError> {
        let answer = release(self.source, self.context, None, &self.covariance, noise)?;
        let released = Released::read(&answer.value).map_err(StudyError::release)?;
        let terms: Vec<(String, usize)> = (0..self.columns - 1)
            .map(|i| (format!("x{}", i + 1), i))
            .collect();
        let made = covariance::regress(
            &released,
            &terms,
            self.columns - 1,
            true,
            Options::default(),
            &Value::Null,
        )
        .map_err(StudyError::release)?;
        let answer = release(self.source, self.context, None, &made, noise)?;
        Ok(read(&answer.value))
    }

    fn fit(&self, noise: &mut Seeded) -> Result<Fitted, StudyError> {
        let answer = release(self.source, self.context, None, &self.linear, noise)?;
        Ok(read(&answer.value))
    }
}

/// Figures 8 to 10: norms of the noise matrix, mean (least to largest) over the draws.
fn norms(findings: &mut Findings, draws: u32) -> Result<(), StudyError> {
    let context = setting(Relation::AddRemove, ROWS);
    let mut line = |figure: &str, what: String, d: usize, epsilon: &str, frobenius: bool| {
        let budget = payment(epsilon)?;
        let error = covariance::error(&budget, PureNoise::Auto, d, Rows::Box, &context)
            .map_err(StudyError::release)?;
        let e: f64 = epsilon.parse().map_err(StudyError::release)?;
        let mut cells = Vec::new();
        // Per unit of x ∈ [0, 1]: the corrected noise is on columns of the same width 1, but about their middle.
        let off = error.diagonal / std::f64::consts::SQRT_2;
        let sigma = printed_sigma(d, e);
        for deviations in [(sigma, sigma), (error.diagonal, off)] {
            let mut noise = Seeded::stream(NOISE_SEED, d as u64);
            let all: Vec<f64> = (0..draws)
                .map(|_| {
                    let m = noise_matrix(d + 1, deviations, &mut noise);
                    if frobenius {
                        m.norm()
                    } else {
                        spectral_norm(&m)
                    }
                })
                .collect();
            let (low, high) = all
                .iter()
                .fold((f64::INFINITY, 0.0f64), |(l, h), x| (l.min(*x), h.max(*x)));
            cells.push(format!(
                "{} ({} to {})",
                short(mean(&all)),
                short(low),
                short(high)
            ));
        }
        let corrected = cells.pop().unwrap_or_default();
        let printed = cells.pop().unwrap_or_default();
        findings.rows.push(vec![
            figure.to_owned(),
            what,
            printed,
            corrected,
            String::new(),
        ]);
        Ok::<(), StudyError>(())
    };
    for epsilon in ["0.01", "0.1", "0.5", "1"] {
        line(
            "8",
            format!("spectral norm, d = 3, ε = {epsilon}"),
            3,
            epsilon,
            false,
        )?;
    }
    for n in [10_000, 100_000] {
        line(
            "9",
            format!("spectral norm, d = 3, ε = 0.01, n = {n}"),
            3,
            "0.01",
            false,
        )?;
    }
    for d in [2, 5, 10] {
        line(
            "10",
            format!("Frobenius norm, d = {d}, ε = 0.01"),
            d,
            "0.01",
            true,
        )?;
    }
    Ok(())
}

/// Figures 11 to 17 and coverage: regressions on invented data.
#[allow(
    clippy::too_many_lines,
    reason = "one row of the table after the other"
)]
fn regressions(findings: &mut Findings, form: Form) -> Result<(), StudyError> {
    let runs = form.pick(20, 500);
    for (c, factor) in FACTORS.into_iter().enumerate() {
        if form == Form::Quick && c % 3 != 0 {
            continue;
        }
        let data = Data::invented(factor, c as u64);
        let truth = swept(&data.moments);
        let (schema, source) = data.source(1);
        // Printed, regress (add/remove), linear under both relations.
        let mut all: Vec<Vec<Fitted>> = Vec::new();
        let seed = |k: u64| NOISE_SEED + 100 + 10 * c as u64 + k;
        all.push(
            (0..u64::from(runs))
                .into_par_iter()
                .map(|run| data.printed(&mut Seeded::stream(seed(0), run)))
                .collect(),
        );
        for (k, relation) in [
            (1, Relation::AddRemove),
            (2, Relation::AddRemove),
            (3, Relation::ReplaceOne),
        ] {
            let context = setting(relation, ROWS);
            let shipped = Shipped::new(&schema, &source, &context, ROWS, COLUMNS)?;
            let fits: Result<Vec<Fitted>, StudyError> = (0..u64::from(runs))
                .into_par_iter()
                .map(|run| {
                    let mut noise = Seeded::stream(seed(k), run);
                    if k == 1 {
                        shipped.regress(&mut noise)
                    } else {
                        shipped.fit(&mut noise)
                    }
                })
                .collect();
            all.push(fits?);
        }
        let shown = |f: &dyn Fn(&[Fitted]) -> f64| -> Vec<String> {
            all.iter().take(3).map(|fits| short(f(fits))).collect()
        };
        let distances = |fits: &[Fitted]| -> Vec<f64> {
            let one = |f: &Fitted| {
                f.b.iter()
                    .zip(&truth.b)
                    .map(|(a, b)| (a - b).powi(2))
                    .sum::<f64>()
            };
            fits.iter().map(|f| one(f).sqrt()).collect()
        };
        let slope = |fits: &[Fitted]| -> Vec<f64> {
            fits.iter().map(|f| (f.b[1] - truth.b[1]).abs()).collect()
        };
        let mut line = |figure: &str, what: &str, cells: Vec<String>, truth: String| {
            let (printed, regress, linear) = (&cells[0], &cells[1], &cells[2]);
            findings.rows.push(vec![
                figure.to_owned(),
                format!("{what}, C = {factor}"),
                printed.clone(),
                format!("{regress}; {linear}"),
                truth,
            ]);
        };
        line(
            "11",
            "mean beta distance",
            shown(&|f| mean(&distances(f))),
            String::new(),
        );
        line(
            "12",
            "95 % quantile of beta distance",
            shown(&|f| quantile(&mut distances(f), 0.95)),
            String::new(),
        );
        let s2 = |f: &[Fitted]| quantile(&mut f.iter().map(|f| f.s2).collect::<Vec<_>>(), 0.95);
        line("13", "95 % quantile of s²", shown(&s2), short(truth.s2));
        for (figure, q) in [("14", 0.80), ("15", 0.76), ("16", 0.73), ("17", 0.70)] {
            let what = format!("{:.0} % quantile of the slope's distance", 100.0 * q);
            line(
                figure,
                &what,
                shown(&|f| quantile(&mut slope(f), q)),
                short(truth.b[1]),
            );
        }
        // The interval of the slope should hold the C that the data were made with.
        let holds = |fits: &[Fitted]| {
            fits.iter()
                .filter(|f| (f.b[1] - factor).abs() <= f.half[1])
                .count()
        };
        let held: Vec<usize> = all.iter().map(|f| holds(f)).collect();
        line(
            "–",
            "nominal 95 % intervals that hold C",
            held.iter()
                .map(|h| format!("{:.1} %", 100.0 * real(*h) / f64::from(runs)))
                .collect(),
            String::new(),
        );
        for (k, name) in [
            (1, "regress, add/remove"),
            (2, "linear, add/remove"),
            (3, "linear, replace-one"),
        ] {
            let share = real(held[k]) / f64::from(runs);
            // Of 20 runs of the short form: 16 or fewer hold with probability .016 if 95 % are right, .59 if 80 % are.
            let least = if form == Form::Full { 0.90 } else { 0.85 };
            findings.require(
                share >= least && (share <= 0.99 || form == Form::Quick),
                format!("C = {factor}, {name}: nominal 95 % intervals of the slope hold in 90 to 99 % of {runs} runs ({:.1} %)", 100.0 * share),
            );
        }
    }
    Ok(())
}

/// Tables 3 and 4 and figures 18 to 20: income on age and education, the 10,000 public records 122 times.
#[allow(
    clippy::too_many_lines,
    reason = "one row of the table after the other"
)]
fn census(findings: &mut Findings, form: Form) -> Result<(), StudyError> {
    let pums = Pums::load()?;
    let [age, educ] = pums.design.terms.as_slice() else {
        return Err(StudyError::Example(
            "the model has other terms than two".into(),
        ));
    };
    let outcome: &Expr = pums.design.response.expr();
    let records = truth::values([&age.expr, &educ.expr, outcome], &pums.example.table);
    let column = |i: usize| records.iter().map(|r| r[i]).collect::<Vec<f64>>();
    let bounds = vec![(18.0, 95.0), (1.0, 16.0), (0.0, 300_000.0)];
    let times = if form == Form::Full { 122 } else { 10 };
    let columns: Vec<Vec<f64>> = (0..3).map(column).collect();
    let n = records.len() * times;
    let mut data = Data::new(columns, bounds);
    let (schema, source) = data.source(times);
    data.moments *= real(times);
    let truth = swept(&data.moments);
    let context = setting(Relation::AddRemove, n);
    let shipped = Shipped::new(&schema, &source, &context, n, 3)?;
    let runs = form.pick(10, 200);
    let printed: Vec<Fitted> = (0..u64::from(runs))
        .map(|run| data.printed(&mut Seeded::stream(NOISE_SEED + 200, run)))
        .collect();
    let regress = (0..u64::from(runs))
        .into_par_iter()
        .map(|run| shipped.regress(&mut Seeded::stream(NOISE_SEED + 201, run)))
        .collect::<Result<Vec<_>, StudyError>>()?;
    let linear = (0..u64::from(runs))
        .into_par_iter()
        .map(|run| shipped.fit(&mut Seeded::stream(NOISE_SEED + 202, run)))
        .collect::<Result<Vec<_>, StudyError>>()?;
    for (i, name) in ["intercept", "age", "educ"].into_iter().enumerate() {
        let one = |f: &Fitted| format!("{} (s.e. {})", short(f.b[i]), short(f.se[i]));
        findings.rows.push(vec![
            "tables 3, 4".to_owned(),
            format!("{name}, first run, n = {n}"),
            one(&printed[0]),
            format!("{}; {}", one(&regress[0]), one(&linear[0])),
            one(&truth),
        ]);
    }
    for (figure, i, name) in [("18", 1, "age"), ("19", 2, "educ"), ("20", 0, "intercept")] {
        let spread = |fits: &[Fitted]| {
            let mut all: Vec<f64> = fits.iter().map(|f| f.b[i]).collect();
            format!(
                "{} [{}, {}]",
                short(quantile(&mut all, 0.5)),
                short(quantile(&mut all, 0.05)),
                short(quantile(&mut all, 0.95))
            )
        };
        findings.rows.push(vec![
            figure.to_owned(),
            format!("{name}: median [5 %, 95 %] of {runs} runs"),
            spread(&printed),
            format!("{}; {}", spread(&regress), spread(&linear)),
            short(truth.b[i]),
        ]);
        if let Some(folder) = std::env::var_os("RETICENT_FIGURES") {
            let of = |fits: &[Fitted]| fits.iter().map(|f| f.b[i]).collect::<Vec<f64>>();
            let page = strips(
                name,
                truth.b[i],
                &[
                    ("as printed", of(&printed)),
                    ("regress", of(&regress)),
                    ("linear", of(&linear)),
                ],
            );
            std::fs::write(
                Path::new(&folder).join(format!("figure-{figure}.svg")),
                page,
            )
            .map_err(StudyError::release)?;
        }
    }
    for (fits, name) in [(&regress, "regress"), (&linear, "linear")] {
        for i in 1..3 {
            // The records are fixed: only the noise varies, so an interval of noise and sampling holds more often.
            let held = fits
                .iter()
                .filter(|f| (f.b[i] - truth.b[i]).abs() <= f.half[i])
                .count();
            findings.require(
                real(held) >= 0.9 * real(fits.len()),
                format!("census, {name}: intervals of coefficient {i} hold the full-data value in at least 90 % of {runs} runs ({held})"),
            );
        }
    }
    Ok(())
}

/// Every run as a tick, one row per mechanism, the truth as a line: an SVG.
fn strips(name: &str, truth: f64, rows: &[(&str, Vec<f64>)]) -> String {
    let all = rows.iter().flat_map(|r| r.1.iter().copied()).chain([truth]);
    let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| {
        (l.min(x), h.max(x))
    });
    let width = (high - low).max(1e-12);
    let at = |x: f64| 130.0 + 480.0 * (x - low) / width;
    let mut out = String::from(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 180" font-family="sans-serif" font-size="12">"#,
    );
    let _ = write!(
        out,
        r#"<text x="10" y="18">{name}: released coefficient, every run; line: least squares on all records</text>"#
    );
    for (k, (label, values)) in rows.iter().enumerate() {
        let y = 50 + 40 * k;
        let _ = write!(out, r#"<text x="10" y="{}">{label}</text>"#, y + 4);
        for v in values {
            let x = at(*v);
            let _ = write!(
                out,
                r##"<line x1="{x:.1}" x2="{x:.1}" y1="{}" y2="{}" stroke="#246" stroke-opacity=".3"/>"##,
                y - 10,
                y + 10
            );
        }
    }
    let x = at(truth);
    let _ = write!(
        out,
        r##"<line x1="{x:.1}" x2="{x:.1}" y1="30" y2="150" stroke="#b30"/><text x="130" y="172">{}</text><text x="610" y="172" text-anchor="end">{}</text></svg>"##,
        short(low),
        short(high)
    );
    out
}

/// Runs the study.
pub fn run(form: Form) -> Result<Findings, StudyError> {
    let mut findings = Findings {
        settings: vec![
            format!("ε = {EPSILON}, δ = 2⁻¹⁶; invented data: {ROWS} records of {COLUMNS} columns, the last C·x₁ + N(0, 1) (seed {ROWS_SEED}, the position of C as stream); noise seeds from {NOISE_SEED}, the run as stream."),
            "As printed: not a private release (sensitivity √d, the data's own ends); its claimed ε is exceeded. Corrected: the shipped releases with public bounds of five deviations on each side, add/remove.".to_owned(),
            "Column \"corrected\" of figures 11 to 20 and the tables: `covariance` and `regress` without clip; `linear` with its private clip.".to_owned(),
        ],
        head: ["figure", "what", "as printed", "corrected", "no noise"].map(str::to_owned).to_vec(),
        ..Findings::default()
    };
    norms(&mut findings, form.pick(100, 1000))?;
    regressions(&mut findings, form)?;
    census(&mut findings, form)?;
    directions::run(&mut findings, form)?;
    Ok(findings)
}
