//! Figures 4.1, 4.2, 4.4, 4.5, 4.12 and 4.13: what single plots look like, and how often one is read rightly.
//!
//! A picture is one run. So each comes with a number over many: a plot is *read rightly* if it is nearer to the true plot of its own records than to
//! that of the other models (similarity; shape difference for binned plots). Figure 4.5 has the Census microdata of `examples/pums` in place of the
//! Current Population Survey: there a plot is read rightly if the test for a fan (at .05) sees one for income. With `RETICENT_PICTURES` set to a
//! folder, the pictures are written there.

use std::sync::Arc;

use nalgebra::{DMatrix, DVector};
use reticent_accounting::{Currency, Relation, Size, parse_decimal};
use reticent_engine::formula::{self, Family};
use reticent_laws::Seeded;
use reticent_mechanisms::Context;
use reticent_mechanisms::primitives::Payment;
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::rows::Schema;
use reticent_mechanisms::source::Memory;
use reticent_noise::Noise;
use reticent_statistics::histogram::Method;
use reticent_statistics::residuals::Config;
use reticent_statistics::{DesignSpec, Facts, binned, linear, residuals};
use serde_json::{Value, json};

use super::{Model, SEED, World, bins, sample};
use crate::panels::{Panel, Pictures};
use crate::public::{Example, RELATIONS, Table, context, mean, release};
use crate::real;
use crate::studies::{at, drawn, list};
use crate::study::{Findings, Form, StudyError};
use crate::truth::bins::{equal_bins, shape_difference};
use crate::truth::plot::{Frame, similarity};
use crate::truth::{value, values};

/// Records of figures 4.1 to 4.4, and of 4.12 and 4.13.
const ROWS: [usize; 2] = [5_000, 50_000];
const BUDGETS: [&str; 2] = ["1", "0.1"];
const NAMES: [&str; 3] = ["Ideal", "Heteroscedastic", "Nonlinear"];

/// A line through records, whose residuals are shown.
struct Regression {
    schema: Arc<Schema>,
    source: Arc<Memory>,
    filter: Option<Expr>,
    rows: usize,
    fitted: Expr,
    observed: Expr,
    points: Vec<[f64; 2]>,
}

impl Regression {
    fn of(world: &World) -> Self {
        Self {
            schema: Arc::clone(&world.schema),
            source: Arc::clone(&world.source),
            filter: None,
            rows: world.x.len(),
            fitted: world.predictor(),
            observed: Expr::Column(1),
            points: world.points(),
        }
    }

    /// Least squares of the example's formula, on the records its plan's condition leaves.
    fn of_pums(plan: &str, formula: &str) -> Result<Self, StudyError> {
        let example = Example::load(plan)?;
        let filter = example.resolved.filter.clone();
        let table: Table = match &filter {
            Some(filter) => {
                let kept: Vec<usize> = (0..example.table.rows())
                    .filter(|row| value(filter, &example.table, *row).is_some_and(|v| v > 0.5))
                    .collect();
                example.table.select(&kept)
            }
            None => example.table,
        };
        let design = formula::compile(formula, table.schema(), None, Family::Linear)
            .map_err(StudyError::release)?;
        let [a, b, c, d] = design.terms.as_slice() else {
            return Err(StudyError::Example("not four terms".into()));
        };
        let y = design.response.expr().clone();
        let records: Vec<([f64; 4], f64)> =
            values([&a.expr, &b.expr, &c.expr, &d.expr, &y], &table)
                .into_iter()
                .map(|[a, b, c, d, y]| ([a, b, c, d], y))
                .collect();
        let line = least_squares(&records)?;
        let fitted = (design.terms.iter().zip(line.iter().skip(1)))
            .fold(Expr::Constant(line[0]), |sum, (term, slope)| {
                sum.add(term.expr.clone().mul(Expr::Constant(*slope)))
            });
        let points = values([&fitted, &y], &table)
            .into_iter()
            .map(|[f, y]| [f, y - f])
            .collect();
        Ok(Self {
            schema: Arc::clone(table.schema()),
            source: Arc::new(table.source()),
            filter,
            rows: table.rows(),
            fitted,
            observed: y,
            points,
        })
    }

    fn context(&self, relation: Relation, currency: Currency) -> Context {
        let size = match relation {
            Relation::AddRemove => Size::Private,
            Relation::ReplaceOne if self.filter.is_some() => Size::Private,
            Relation::ReplaceOne => Size::Public(self.rows as u64),
        };
        context(relation, currency, size)
    }

    fn facts<'a>(&'a self, context: &'a Context) -> Facts<'a> {
        Facts {
            schema: &self.schema,
            filter: self.filter.as_ref(),
            context,
            rows: Some(real(self.rows)),
            positive_rate: None,
        }
    }

    fn plot(&self, relation: Relation, stream: u64, config: &Config) -> Result<Value, StudyError> {
        let context = self.context(relation, Currency::Pure);
        let config = Config {
            seed: stream,
            ..config.clone()
        };
        let facts = self.facts(&context);
        let prepared = residuals::prepare(&facts, &self.fitted, &self.observed, config)
            .map_err(StudyError::release)?;
        let noise: &mut dyn Noise = &mut Seeded::stream(SEED, stream);
        let filter = self.filter.as_ref();
        Ok(release(&self.source, &context, filter, &prepared, noise)?.value)
    }

    /// The same records with a private line: `linear` with pure ε = 1.
    fn with_private_line(world: &World, relation: Relation) -> Result<Self, StudyError> {
        let plain = Self::of(world);
        let context = plain.context(relation, Currency::Pure);
        let design = DesignSpec {
            intercept: true,
            terms: vec![("x".to_owned(), Expr::Column(0))],
            outcome: Expr::Column(1),
            metadata: json!({"formula": "y ~ x"}),
        };
        let payment = Payment::Pure {
            epsilon: super::one()?,
        };
        let facts = plain.facts(&context);
        let prepared = linear::prepare(&facts, &design, &linear::Config::new(payment))
            .map_err(StudyError::release)?;
        let noise: &mut dyn Noise = &mut Seeded::stream(SEED, 77);
        let found = release(&plain.source, &context, None, &prepared, noise)?.value;
        let coefficients: Vec<f64> = list(&found, "prediction")
            .iter()
            .map(|t| at(t, "estimate"))
            .collect();
        let [a, b] = coefficients.as_slice() else {
            return Err(StudyError::release("not two coefficients"));
        };
        let points = (world.x.iter().zip(&world.y))
            .map(|(x, y)| [a + b * x, y - a - b * x])
            .collect();
        Ok(Self {
            fitted: Expr::Column(0).affine(*b, *a),
            points,
            ..plain
        })
    }
}

/// Least squares with an intercept, by orthogonal triangles.
fn least_squares<const N: usize>(records: &[([f64; N], f64)]) -> Result<Vec<f64>, StudyError> {
    let x = DMatrix::from_fn(records.len(), N + 1, |i, j| {
        if j == 0 { 1.0 } else { records[i].0[j - 1] }
    });
    let y = DVector::from_fn(records.len(), |i, _| records[i].1);
    let qr = x.qr();
    let right = qr.q().transpose() * y;
    (qr.r().solve_upper_triangular(&right))
        .map(|b| b.iter().copied().collect())
        .ok_or_else(|| StudyError::Example("least squares has no solution".into()))
}

/// How a plot is made: the default, and the papers' with DAWA.
fn ways(epsilon: &str) -> Result<[(&'static str, Config); 2], StudyError> {
    let e = parse_decimal(epsilon).map_err(StudyError::release)?;
    let printed = Config {
        method: Method::Dawa,
        ..Config::published(e.clone())
    };
    Ok([("default", Config::new(e)), ("PriRP, DAWA", printed)])
}

/// Share of plots read rightly and mean similarity to the own true plot.
fn read(
    own: usize,
    all: &[Regression],
    relation: Relation,
    config: &Config,
    (place, plots): (u64, u32),
) -> Result<[f64; 2], StudyError> {
    let shown = &all[own];
    let found = sample(place, plots, |stream| {
        let points = drawn(&shown.plot(relation, stream, config)?);
        let to: Vec<f64> = (all.iter())
            .map(|other| similarity(&other.points, &points))
            .collect();
        let nearest = to.iter().all(|d| to[own] <= *d);
        Ok((f64::from(u8::from(nearest)), to[own]))
    })?;
    let of = |k: fn(&(f64, f64)) -> f64| mean(&found.iter().map(k).collect::<Vec<_>>());
    Ok([of(|f| f.0), of(|f| f.1)])
}

fn scatter(title: String, frame: &Frame, points: Vec<[f64; 2]>) -> Panel {
    Panel {
        title,
        x: frame.x,
        y: frame.y,
        points,
        ..Panel::default()
    }
}

fn push(out: &mut Findings, figure: &str, setting: String, paper: &str, both: [String; 2]) {
    let [add, replace] = both;
    let cells = [figure.to_owned(), setting, paper.to_owned(), replace, add];
    out.rows.push(cells.to_vec());
}

fn share_and_distance([share, distance]: [f64; 2]) -> String {
    format!("{share:.2} ({distance:.3})")
}

/// Figures 4.1 and 4.2; the picture is that of the papers' relation.
fn synthetic(form: Form, out: &mut Findings, pictures: &Pictures) -> Result<(), StudyError> {
    let plots = form.pick(5, 100);
    let all: Vec<Regression> = [Model::IDEAL, Model::HETEROSCEDASTIC, Model::NONLINEAR]
        .into_iter()
        .zip(51..)
        .map(|(model, seed)| Regression::of(&World::linear(model, ROWS[0], seed)))
        .collect();
    let mut panels: Vec<Panel> = (all.iter().zip(NAMES))
        .map(|(r, name)| {
            let frame = Frame::around(&r.points);
            scatter(format!("{name}: true"), &frame, r.points.clone())
        })
        .collect();
    for epsilon in BUDGETS {
        for (way, config) in ways(epsilon)? {
            for (own, name) in NAMES.into_iter().enumerate() {
                let both = [0, 1]
                    .map(|r: usize| read(own, &all, RELATIONS[r].0, &config, (own as u64, plots)));
                let [add, replace] = both;
                let (add, replace) = (add?, replace?);
                if way == "default" && epsilon == "1" {
                    for (found, relation) in [(add, "add/remove"), (replace, "replace-one")] {
                        out.require(
                            found[0] >= 0.95,
                            format!("{name}, ε = 1, {relation}: {:.2} of the plots are read rightly (at least .95)", found[0]),
                        );
                    }
                }
                let paper = if epsilon == "1" {
                    "\"well preserved\""
                } else {
                    "\"diluted\", the curve still seen"
                };
                let both = [add, replace].map(share_and_distance);
                push(
                    out,
                    "4.1, 4.2",
                    format!("{name}, ε = {epsilon}: {way}"),
                    paper,
                    both,
                );
                let r = &all[own];
                let plot = r.plot(Relation::ReplaceOne, 5, &config)?;
                let title = format!("{way}, ε = {epsilon}");
                panels.push(scatter(title, &Frame::around(&r.points), drawn(&plot)));
            }
        }
    }
    let about = "Five rows of three scatter plots: the true residuals of a right, a fanning and a curved model of 5,000 records, and private ones with epsilon 1 and 0.1.";
    pictures.write(
        "figure-4-2.svg",
        "Figures 4.1 and 4.2: true and private residual plots, n = 5000, replace-one",
        about,
        3,
        &panels,
    )
}

/// Figure 4.4: the plot of a private line.
fn private_line(form: Form, out: &mut Findings, pictures: &Pictures) -> Result<(), StudyError> {
    let plots = form.pick(5, 100);
    let world = |model, seed| World::linear(model, ROWS[0], seed);
    let mut cells: Vec<[String; 4]> = Vec::new();
    let mut panels = Vec::new();
    for (relation, _) in RELATIONS {
        let all = [
            Regression::with_private_line(&world(Model::IDEAL, 51), relation)?,
            Regression::with_private_line(&world(Model::HETEROSCEDASTIC, 52), relation)?,
            Regression::with_private_line(&world(Model::NONLINEAR, 53), relation)?,
        ];
        let mut found = Vec::new();
        for epsilon in BUDGETS {
            for (_, config) in ways(epsilon)? {
                found.push(share_and_distance(read(
                    0,
                    &all,
                    relation,
                    &config,
                    (20, plots),
                )?));
            }
        }
        if relation == Relation::ReplaceOne {
            let frame = Frame::around(&all[0].points);
            panels.push(scatter(
                "true, private line".to_owned(),
                &frame,
                all[0].points.clone(),
            ));
            for epsilon in BUDGETS {
                for (way, config) in ways(epsilon)? {
                    let plot = all[0].plot(relation, 5, &config)?;
                    panels.push(scatter(
                        format!("{way}, ε = {epsilon}"),
                        &frame,
                        drawn(&plot),
                    ));
                }
            }
        }
        cells.push(std::array::from_fn(|i| found[i].clone()));
    }
    let settings = [
        "1: default",
        "1: PriRP, DAWA",
        "0.1: default",
        "0.1: PriRP, DAWA",
    ];
    for (i, setting) in settings.into_iter().enumerate() {
        let both = [cells[0][i].clone(), cells[1][i].clone()];
        let setting = format!("Ideal, private line (ε = 1), plot with ε = {setting}");
        push(out, "4.4", setting, "\"still evident\"", both);
    }
    let about = "Scatter plots of residuals of a private line for the ideal records: true, and private with epsilon 1 and 0.1.";
    pictures.write(
        "figure-4-4.svg",
        "Figure 4.4: residual plots of a private line, n = 5000, replace-one",
        about,
        3,
        &panels,
    )
}

/// Figure 4.5: income and its logarithm.
fn income(form: Form, out: &mut Findings, pictures: &Pictures) -> Result<(), StudyError> {
    let plots = form.pick(5, 100);
    let right = "age + I(age^2) + educ + married";
    let both = [
        (
            "income",
            Regression::of_pums("pums/plan_log.toml", &format!("income ~ {right}"))?,
        ),
        (
            "log(income)",
            Regression::of_pums("pums/plan_log.toml", &format!("log(income) ~ {right}"))?,
        ),
    ];
    let mut panels = Vec::new();
    for (name, regression) in &both {
        let frame = Frame::around(&regression.points);
        panels.push(scatter(
            format!("{name}: true"),
            &frame,
            regression.points.clone(),
        ));
        for epsilon in BUDGETS {
            let e = parse_decimal(epsilon).map_err(StudyError::release)?;
            let config = Config {
                tests: true,
                ..Config::new(e)
            };
            let found = RELATIONS.map(|(relation, _)| {
                let all = sample(30, plots, |stream| {
                    let plot = regression.plot(relation, stream, &config)?;
                    let p = at(&plot["tests"]["fan"], "p_value");
                    Ok((
                        f64::from(u8::from(p < 0.05)),
                        similarity(&regression.points, &drawn(&plot)),
                    ))
                })?;
                let of = |k: fn(&(f64, f64)) -> f64| mean(&all.iter().map(k).collect::<Vec<_>>());
                Ok::<_, StudyError>([of(|f| f.0), of(|f| f.1)])
            });
            let [add, replace] = found;
            let both = [add?, replace?];
            let (least, most) = if *name == "income" {
                (0.75, 1.0)
            } else {
                (0.0, 0.1)
            };
            if epsilon == "1" {
                out.require(
                    both.iter().all(|f| (least..=most).contains(&f[0])),
                    format!(
                        "{name}, ε = 1: the fan is seen in {:.2} and {:.2} of the plots ({least} to {most})",
                        both[0][0], both[1][0]
                    ),
                );
            }
            let setting = format!(
                "{name}, ε = {epsilon}, n = {}: default with tests",
                regression.rows
            );
            let paper = if *name == "income" {
                "fan \"evident\""
            } else {
                "\"improvement\""
            };
            push(out, "4.5", setting, paper, both.map(share_and_distance));
            let plot = regression.plot(Relation::ReplaceOne, 5, &config)?;
            panels.push(scatter(
                format!("default, ε = {epsilon}"),
                &frame,
                drawn(&plot),
            ));
        }
    }
    let about = "Two rows of three scatter plots: residuals of income and of its logarithm, true and private with epsilon 1 and 0.1. Those of income fan out, those of the logarithm less.";
    pictures.write(
        "figure-4-5.svg",
        "Figure 4.5: income and log income (Census microdata)",
        about,
        3,
        &panels,
    )
}

/// Figures 4.12 and 4.13.
fn logistic(form: Form, out: &mut Findings, pictures: &Pictures) -> Result<(), StudyError> {
    let plots = form.pick(5, 100);
    let rows = form.pick(5_000, 50_000) as usize;
    let worlds = [
        World::logistic(false, rows, 61),
        World::logistic(true, rows, 62),
    ];
    let truths = [0, 1].map(|k: usize| equal_bins(&worlds[k].outcomes()));
    let names = ["M₁ (right)", "M₂ (curved)"];
    let panel = |title: String, bins: &[[f64; 3]], limits: Vec<[f64; 2]>| Panel {
        title,
        x: (0.0, 1.0),
        y: (-0.2, 0.2),
        points: bins.iter().map(|b| [b[0], b[1]]).collect(),
        limits,
        ..Panel::default()
    };
    let mut panels: Vec<Panel> = (names.iter().zip(&truths))
        .map(|(name, bins)| {
            let limit = |b: &[f64; 3]| [b[0], 2.0 * (b[0] * (1.0 - b[0]) / b[2]).sqrt()];
            panel(
                format!("{name}: true"),
                bins,
                bins.iter().map(limit).collect(),
            )
        })
        .collect();
    for epsilon in BUDGETS {
        let e = parse_decimal(epsilon).map_err(StudyError::release)?;
        let ways = [
            ("default", binned::Config::new(e.clone())),
            (
                "PriBRP corrected",
                binned::Config::published(e, Some(real(rows))),
            ),
        ];
        for (way, config) in ways {
            for (own, name) in names.into_iter().enumerate() {
                let world = &worlds[own];
                let mut cells = Vec::new();
                for (relation, called) in RELATIONS {
                    let ready = world.binned(relation, &config)?;
                    let found = sample(40, plots, |stream| {
                        let bins = bins(&ready.run(world, stream)?);
                        let to = [0, 1].map(|k: usize| shape_difference(&truths[k], &bins));
                        Ok((f64::from(u8::from(to[own] <= to[1 - own])), to[own]))
                    })?;
                    let of =
                        |k: fn(&(f64, f64)) -> f64| mean(&found.iter().map(k).collect::<Vec<_>>());
                    let found = [of(|f| f.0), of(|f| f.1)];
                    if way == "default" && epsilon == "1" {
                        out.require(
                            found[0] >= 0.95,
                            format!("{name}, ε = 1, {called}: {:.2} of the plots are read rightly (at least .95)", found[0]),
                        );
                    }
                    cells.push(share_and_distance(found));
                    if relation == Relation::ReplaceOne {
                        let plot = ready.run(world, 5)?;
                        let limits = (list(&plot, "bins").iter())
                            .map(|b| [at(b, "mean_fitted"), at(b, "two_se")])
                            .collect();
                        panels.push(panel(
                            format!("{way}, ε = {epsilon}"),
                            &self::bins(&plot),
                            limits,
                        ));
                    }
                }
                let paper = if epsilon == "1" {
                    "\"well preserved\""
                } else {
                    "\"less obvious\""
                };
                let both = [cells[0].clone(), cells[1].clone()];
                push(
                    out,
                    "4.12, 4.13",
                    format!("{name}, n = {rows}, ε = {epsilon}: {way}"),
                    paper,
                    both,
                );
            }
        }
    }
    let about = "Five rows of two binned residual plots: the right and the curved logistic model, true and private with epsilon 1 and 0.1, with limits of two standard errors.";
    pictures.write(
        "figure-4-13.svg",
        "Figures 4.12 and 4.13: binned residual plots, replace-one",
        about,
        2,
        &panels,
    )
}

/// Runs the study.
///
/// # Errors
/// When a release or a picture cannot be made.
pub fn run(form: Form) -> Result<Findings, StudyError> {
    let mut out = Findings {
        settings: vec![
            format!("Records as in the other two studies; n = {} (residuals) and {} (binned), noise seed {SEED}, {} plots per setting.", ROWS[0], form.pick(5_000, 50_000), form.pick(5, 100)),
            "Share of plots read rightly (nearest to the true plot of its own model among the true plots of all models), in brackets the mean distance to the own true plot: similarity, or shape difference for binned plots.".to_owned(),
            "Figure 4.5: share of plots whose test for a fan has p < .05; least squares without noise, records with an income.".to_owned(),
        ],
        head: ["figure", "setting", "papers", "replace-one", "add/remove"]
            .map(str::to_owned)
            .to_vec(),
        ..Findings::default()
    };
    let pictures = Pictures::from_env();
    synthetic(form, &mut out, &pictures)?;
    private_line(form, &mut out, &pictures)?;
    income(form, &mut out, &pictures)?;
    logistic(form, &mut out, &pictures)?;
    Ok(out)
}
