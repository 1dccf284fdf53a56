//! ROC curves, areas and proved bands, from label counts in a few bins of the score.
//!
//! Thresholds are recursive medians of the pooled scores on the mixed scale; per bin the positives and the
//! negatives are bought; prefix sums from the top score, an isotonic fit and division by the total give the
//! vertices. Everything after the counts is post-processing: operating points, tables of decisions, precision and
//! recall, calibration, and the comparison of several models.
//!
//! | choice | values |
//! |---|---|
//! | [`Thresholds`] | few recursive medians by the exponential mechanism (default), by Cauchy noise on the smooth sensitivity, public even ones, quantiles of each class |
//! | counts | noise on every count (default), or a method of [`crate::histogram`] on the line of both labels' bins; none between label-separate quantiles |

mod band;
mod binormal;
mod classes;
mod compare;
mod curve;
mod interval;
mod planner;
mod points;

pub use binormal::symmetric_binormal;
pub use planner::{Plan, plan};

use std::ops::Range;

use reticent_accounting::{AccountingError, Event, Rational, rational_to_f64, split};
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::primitives::{Counts, Draw};
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Kind, Schema};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::{Value, json};

use crate::bisect::{Medians, Quantiles};
use crate::common::{
    Facts, Prepared, StatisticsError, clipped, number, positive, real, size, with_metadata,
};
use crate::histogram::{self, Method};
use crate::scale::{Score, unmixed};
use crate::simple::flags;
use classes::Classes;
use curve::{Law, Shape, Tally};

/// Cells of the mixed scale from which thresholds are chosen.
pub(crate) const GRID: u32 = 4096;
/// Models on one plot.
pub const MOST_MODELS: usize = 16;
/// Even thresholds that a method for fine histograms counts between, unless a number is given.
const FINE: u32 = 512;

/// How thresholds come about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thresholds {
    /// Recursive medians by the exponential mechanism on the mixed scale.
    #[default]
    Medians,
    /// Recursive medians by Cauchy noise on the smooth sensitivity (s-RecursiveMedians of the thesis, with corrected constants).
    Smooth,
    /// Public ones, even on the probability scale (N-FixedSpace); nothing is spent on them.
    Even,
    /// Stratified: half of them quantiles of the negatives, half quantiles of the positives. For classes of very different sizes.
    Stratified,
    /// Label-separate: quantiles of the negatives and of the positives are all there is. Nothing is counted between them, so
    /// there is no band and no interval.
    LabelSeparate,
}

/// How a ROC curve is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// ε of the release, of all models together.
    pub epsilon: Rational,
    /// Number of bins, rounded down to a power of two; by default from the public number of rows. For quantiles of each class one
    /// more than both classes have together.
    pub bins: Option<u32>,
    /// Share of ε for the thresholds; by default ¼ up to 8 bins and a tenth above. Of [`Thresholds::LabelSeparate`] the share of
    /// the quantiles, by default four fifths; the rest buys the class sizes.
    pub share: Option<f64>,
    /// Public thresholds on the probability scale; then nothing is spent on choosing them.
    pub thresholds: Option<Vec<f64>>,
    /// How thresholds come about if none are given.
    pub choice: Thresholds,
    /// How positives and negatives are counted.
    pub counts: Method,
    /// Thresholds whose tables of decisions are wanted.
    pub decide_at: Vec<f64>,
    /// Public facts copied into the value (model, positive level).
    pub metadata: Value,
}

impl Config {
    /// The default rules.
    pub fn new(epsilon: Rational) -> Self {
        Self {
            epsilon,
            bins: None,
            share: None,
            thresholds: None,
            choice: Thresholds::Medians,
            counts: Method::Identity,
            decide_at: vec![0.5],
            metadata: Value::Null,
        }
    }
}

/// A model on a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Examined {
    /// Its name on the plot.
    pub name: String,
    /// Its score.
    pub score: Score,
    /// Public facts copied into its part of the value.
    pub metadata: Value,
}

/// A ROC curve of a score against a 0/1 outcome.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// let people = People::new();
/// let score = Score::Probability(AGE.mul(Expr::Constant(0.01)));
/// let value = people.release(&roc::prepare(&people.facts(), &score, SICK, roc::Config::new(epsilon()))?);
/// assert!((value["auc"].as_f64().unwrap() - 0.925).abs() < 0.05, "{}", value["auc"]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`StatisticsError::Parameter`] for bins, shares, thresholds or methods that are not possible; decided from public inputs.
#[allow(
    clippy::needless_pass_by_value,
    reason = "given up, as by the other constructors"
)]
pub fn prepare(
    facts: &Facts<'_>,
    score: &Score,
    outcome: Expr,
    config: Config,
) -> Result<Prepared, StatisticsError> {
    let only = Examined {
        name: String::new(),
        score: score.clone(),
        metadata: config.metadata.clone(),
    };
    build(facts, &[only], outcome, &config, true)
}

/// ROC curves of several scores against one 0/1 outcome, and the differences of their areas with p-values that include the noise.
/// Every model gets an equal part of ε.
///
/// # Errors
/// As [`prepare`]; fewer than one or more than [`MOST_MODELS`] models.
///
/// ```
/// use reticent_accounting::{Rational, Relation};
/// use reticent_mechanisms::{Context, program::Expr, rows::{Column, Kind, Missing, Schema}};
/// use reticent_statistics::{Facts, Score, roc};
///
/// let column = |name: &str| Column {
///     name: name.into(),
///     kind: Kind::Real { lower: 0.0, upper: 1.0 },
///     missing: Missing::Drop,
/// };
/// let schema = Schema { columns: ["p", "q", "y"].map(column).to_vec() };
/// let context = Context::records(Relation::AddRemove);
/// let facts = Facts { schema: &schema, filter: None, context: &context, rows: Some(5000.0), positive_rate: None };
/// let models = [0, 1].map(|c| roc::Examined {
///     name: schema.columns[c].name.clone(),
///     score: Score::Probability(Expr::Column(c)),
///     metadata: serde_json::Value::Null,
/// });
/// let both = roc::prepare_several(&facts, &models, Expr::Column(2), &roc::Config::new(Rational::ONE))?;
/// assert_eq!(both.terms.len(), 3);
/// # Ok::<(), reticent_statistics::StatisticsError>(())
/// ```
pub fn prepare_several(
    facts: &Facts<'_>,
    models: &[Examined],
    outcome: Expr,
    config: &Config,
) -> Result<Prepared, StatisticsError> {
    build(facts, models, outcome, config, false)
}

fn parameter(name: &'static str, value: String, fix: String) -> StatisticsError {
    StatisticsError::Parameter { name, value, fix }
}

fn build(
    facts: &Facts<'_>,
    models: &[Examined],
    outcome: Expr,
    config: &Config,
    alone: bool,
) -> Result<Prepared, StatisticsError> {
    positive(&config.epsilon)?;
    if models.is_empty() || models.len() > MOST_MODELS {
        return Err(parameter(
            "models",
            models.len().to_string(),
            format!("name 1 to {MOST_MODELS} models"),
        ));
    }
    if config.decide_at.len() > 64 || !config.decide_at.iter().all(|t| (0.0..=1.0).contains(t)) {
        return Err(parameter(
            "decide_at",
            format!("{} values", config.decide_at.len()),
            "give at most 64 probabilities".to_owned(),
        ));
    }
    if matches!(config.counts, Method::Ag | Method::PrivTree) {
        return Err(parameter(
            "counts",
            config.counts.name().to_owned(),
            "use laplace, hb, privelet, greedyh, dawa, ahp, mwem or uniform".to_owned(),
        ));
    }
    if config.choice == Thresholds::LabelSeparate
        && (config.counts != Method::Identity || config.thresholds.is_some())
    {
        return Err(parameter(
            "counts",
            config.counts.name().to_owned(),
            "leave counts and thresholds out: nothing is counted between label-separate quantiles"
                .to_owned(),
        ));
    }
    let parts = split(&config.epsilon, &vec![1; models.len()]);
    let unknown_size = facts.signal(&config.epsilon).is_none()
        && config.bins.is_none()
        && config.thresholds.is_none()
        && config.choice != Thresholds::Even;
    let mut terms = Vec::new();
    let mut lines = Vec::new();
    for (at, (model, epsilon)) in models.iter().zip(&parts).enumerate() {
        let (term, line) = line(facts, model, (at, models.len()), epsilon, config, alone)?;
        terms.push(term);
        lines.push(line);
    }
    let places = models.iter().map(|m| classes::place(&m.score, &outcome));
    match lines.first().map(|l| &l.chooser) {
        Some(Chooser::Separate(_)) => terms = places.collect(),
        Some(Chooser::Stratified(_)) => {
            let places: Vec<Expr> = places.collect();
            terms.push(outcome.clone());
            terms.extend(places);
            facts.bounds(&terms)?;
        }
        _ => {}
    }
    if terms.len() == models.len() {
        terms.push(outcome);
    }
    facts.bounds(&terms)?;
    Ok(Prepared {
        terms,
        mechanism: Box::new(Roc {
            lines,
            alone,
            unknown_size,
            rows: facts.rows.filter(|r| r.is_finite() && *r >= 0.0),
            planned: planner::plan(facts, &config.epsilon, models.len()).drawn,
            decide_at: config.decide_at.clone(),
        }),
    })
}

/// Fewest distinct scores between which label-separate quantiles mean something.
const DISTINCT: u64 = 1000;

/// Whether scores of these terms can be told apart well enough for label-separate quantiles: quantiles between ties may lie anywhere in the empty
/// stretch beside them, and a curve drawn through them says nothing. For the terms of a model's design, by declaration: the caller asks, because a
/// fitted model may use fewer of them, which nobody knows before it is paid.
///
/// # Errors
/// [`StatisticsError::Parameter`] if they take fewer than 1000 values together.
pub fn untied<'a>(
    schema: &Schema,
    terms: impl IntoIterator<Item = &'a Expr>,
) -> Result<(), StatisticsError> {
    let values = |column: usize| match schema.columns.get(column).map(|c| &c.kind) {
        Some(Kind::Integer { lower, upper }) => upper.abs_diff(*lower).saturating_add(1),
        Some(Kind::Levels { levels, .. }) => levels.len() as u64,
        _ => u64::MAX,
    };
    let columns = RowProgram {
        terms: terms.into_iter().cloned().collect(),
        ..RowProgram::default()
    }
    .columns();
    let distinct = columns.into_iter().map(values).fold(1, u64::saturating_mul);
    if distinct < DISTINCT {
        return Err(parameter(
            "thresholds",
            "label_separate".to_owned(),
            format!(
                "the score takes at most {distinct} values; quantiles of each class need scores without ties: leave thresholds out"
            ),
        ));
    }
    Ok(())
}

/// Thresholds that cost nothing, if the config asks for them.
fn public_thresholds(config: &Config) -> Result<Option<Vec<f64>>, StatisticsError> {
    let even =
        |bins: u32| -> Vec<f64> { (1..bins).map(|k| f64::from(k) / f64::from(bins)).collect() };
    Ok(match (&config.thresholds, config.choice) {
        (Some(thresholds), _) => Some(thresholds.clone()),
        (None, Thresholds::Even) => {
            let bins = config.bins.unwrap_or(FINE);
            if !(2..=1 << 16).contains(&bins) {
                let fix = "give 2 to 65536".to_owned();
                return Err(parameter("bins", bins.to_string(), fix));
            }
            Some(even(bins))
        }
        (None, _) => None,
    })
}

/// One model's term and steps.
fn line(
    facts: &Facts<'_>,
    model: &Examined,
    (at, models): (usize, usize),
    epsilon: &Rational,
    config: &Config,
    alone: bool,
) -> Result<(Expr, Line), StatisticsError> {
    let called = |step: &str| {
        if alone {
            step.to_owned()
        } else {
            format!("{}: {step}", model.name)
        }
    };
    let public = public_thresholds(config)?;
    let share_out_of_range = config.share.is_some_and(|s| !(s > 0.0 && s < 1.0));
    if share_out_of_range {
        return Err(parameter(
            "share",
            config.share.unwrap_or(0.0).to_string(),
            "give a share of epsilon between 0 and 1".to_owned(),
        ));
    }
    let (term, cut, chooser, for_counts) = if let Some(thresholds) = public {
        let edges = public_edges(&thresholds)?;
        let cut = Cut::Edges(edges);
        (
            model.score.probability(),
            cut,
            Chooser::Public,
            epsilon.clone(),
        )
    } else {
        let depth = match config.bins {
            Some(bins) if (2..=GRID / 2).contains(&bins) => bins.ilog2(),
            Some(bins) => {
                let fix = format!("give 2 to {}", GRID / 2);
                return Err(parameter("bins", bins.to_string(), fix));
            }
            None => {
                let signal = facts.signal(epsilon);
                match config.choice {
                    Thresholds::LabelSeparate => signal.map_or(4, separate_depth),
                    // three thresholds are too few for two classes
                    Thresholds::Stratified => signal.map_or(3, default_depth).max(3),
                    _ => signal.map_or(3, default_depth),
                }
            }
        };
        let share = config.share.unwrap_or(match config.choice {
            Thresholds::LabelSeparate => 0.8,
            _ if depth <= 3 => 0.25,
            _ => 0.1,
        });
        let weight = u64::from(clipped((share * 1e6).round(), 1, 999_999));
        let (first, second) = reticent_accounting::share(epsilon, weight, 1_000_000);
        let shares = (first, 1_000_000 - weight);
        let chooser = chooser(facts, &called, config, (epsilon, shares), depth)?;
        let cut = Cut::Even {
            lower: 0.0,
            upper: 1.0,
            cells: GRID,
        };
        (model.score.mixed(), cut, chooser, second)
    };
    let counting = if matches!(chooser, Chooser::Separate(_)) {
        Counting::None
    } else if config.counts == Method::Identity {
        Counting::Laplace(Counts {
            name: called("positives and negatives per bin"),
            epsilon: for_counts,
        })
    } else {
        histogram::on_line(config.counts, 2, &for_counts, facts.context, facts.rows)?;
        Counting::Method(config.counts, for_counts)
    };
    Ok((
        term,
        Line {
            at,
            label: models,
            name: model.name.clone(),
            cut,
            chooser,
            counting,
            metadata: model.metadata.clone(),
        },
    ))
}

/// The steps that choose thresholds, for the part of a model's ε that is theirs and the millionths left for the rest.
fn chooser(
    facts: &Facts<'_>,
    called: &dyn Fn(&str) -> String,
    config: &Config,
    (epsilon, (part, rest)): (&Rational, (Rational, u64)),
    depth: u32,
) -> Result<Chooser, StatisticsError> {
    let name = called("thresholds");
    Ok(match config.choice {
        Thresholds::Smooth => {
            let step = Quantiles {
                name,
                epsilon: part,
                levels: (1..1 << depth).collect(),
                denominator: 1 << depth,
                draw: Draw::Smooth,
            };
            step.calibrations(facts.context).map_err(|e| {
                parameter(
                    "epsilon",
                    rational_to_f64(epsilon).to_string(),
                    e.to_string(),
                )
            })?;
            Chooser::Smooth(step)
        }
        Thresholds::Stratified => {
            // The levels follow the class sizes: declared ones, or a fifth of this part buys them.
            let declared = facts.positive_rate.is_some_and(f64::is_finite);
            let sizes = if declared { 0 } else { 200_000 };
            Chooser::Stratified(Classes::new(facts, called, &part, depth, sizes))
        }
        Thresholds::LabelSeparate => {
            Chooser::Separate(Classes::new(facts, called, epsilon, depth, rest))
        }
        Thresholds::Medians | Thresholds::Even => Chooser::Medians(Medians {
            name,
            epsilon: part,
            depth,
        }),
    })
}

/// log₂ of the number of bins: m = 2^⌊.4·log₂(ñε)⌋ within 4..=512.
pub(crate) fn default_depth(signal: f64) -> u32 {
    clipped((0.4 * signal.max(1.0).log2() + 1e-9).floor(), 2, 9)
}

/// log₂ of one more than the number of quantiles of both classes: for each class the default rule at half the signal. Recorded
/// with `examples/roc_thresholds.rs`.
pub(crate) fn separate_depth(signal: f64) -> u32 {
    default_depth(signal / 2.0) + 1
}

/// Edges with the given thresholds inside and one cell beyond each end.
fn public_edges(thresholds: &[f64]) -> Result<Vec<f64>, StatisticsError> {
    let mut edges = thresholds.to_vec();
    edges.sort_by(f64::total_cmp);
    edges.dedup();
    let fine = edges.iter().all(|t| (0.0..=1.0).contains(t));
    if edges.is_empty() || edges.len() > 1 << 16 || !fine {
        return Err(StatisticsError::Parameter {
            name: "thresholds",
            value: format!("{} values", thresholds.len()),
            fix: "give 1 to 65536 probabilities".to_owned(),
        });
    }
    // No probability lies outside [0, 1], so these two cells only close the grid.
    edges.insert(0, -1.0);
    edges.push(2.0);
    Ok(edges)
}

/// # Claim
/// ε-DP for the context's relation and unit: only the steps of the models' thresholds and counts are bought.
/// # Assumptions
/// Those of the primitives; the scores are public functions of the row (released models).
/// # Composition
/// Sequential over models (equal parts of ε) and steps: thresholds ε₁, counts ε₂, ε₁ + ε₂ = ε exactly
/// (`accounting::split`). With public thresholds all of ε goes to the counts. Positives and negatives of all bins are
/// disjoint cells of one purchase, or of one line of cells that a histogram method works on. Quantiles of each class: see
/// `classes`; label-separate ones are the whole release.
/// # Arithmetic
/// Cells are chosen and counted on one grid of 4096 cells of the mixed scale × label; a bin is a range of
/// cells (counted again between the same edges where a histogram method counts). Rates, areas and the band are
/// post-processing in f64; an empty class gets equal steps, flagged.
/// # Checked by
/// `golden::roc_is_the_step_function`, `contract::inner_events_sum_to_epsilon`,
/// `contract::every_kind_answers_on_every_table`, `seeded::roc_is_accurate_and_covered`,
/// `roc::{prices_add_up, every_variant_answers_on_every_table}`
/// # References
/// `decisions.md` §2.3, §5.1, §6.5; `beyond.md` §1, §2
struct Roc {
    lines: Vec<Line>,
    alone: bool,
    unknown_size: bool,
    rows: Option<f64>,
    planned: bool,
    decide_at: Vec<f64>,
}

/// One model's curve.
struct Line {
    at: usize,
    label: usize,
    name: String,
    cut: Cut,
    chooser: Chooser,
    counting: Counting,
    metadata: Value,
}

enum Chooser {
    Public,
    Medians(Medians),
    Smooth(Quantiles),
    Stratified(Classes),
    Separate(Classes),
}

enum Counting {
    None,
    Laplace(Counts),
    Method(Method, Rational),
}

impl Line {
    /// Whether cells stand label by label, as the methods of the histogram module count them.
    fn by_label(&self) -> bool {
        matches!(
            (&self.chooser, &self.counting),
            (Chooser::Public, Counting::Method(..))
        )
    }

    /// How thresholds follow the classes, if they do, in the words of plans.
    fn classwise(&self) -> Option<&'static str> {
        match self.chooser {
            Chooser::Stratified(_) => Some("stratified"),
            Chooser::Separate(_) => Some("label_separate"),
            _ => None,
        }
    }

    fn fold(&self, cut: Cut, by_label: bool) -> Fold {
        let score = Axis { term: self.at, cut };
        let label = Axis {
            term: self.label,
            cut: Cut::Whole(2),
        };
        Fold::Grid {
            axes: if by_label {
                vec![label, score]
            } else {
                vec![score, label]
            },
            sum: None,
        }
    }

    fn events(&self, context: &Context) -> Vec<Event> {
        let mut steps = match &self.chooser {
            Chooser::Public => Vec::new(),
            Chooser::Medians(step) => vec![step.event(context)],
            Chooser::Smooth(step) => vec![step.event(context)],
            Chooser::Stratified(steps) | Chooser::Separate(steps) => steps.events(context),
        };
        match &self.counting {
            Counting::None => {}
            Counting::Laplace(step) => steps.push(step.event(context)),
            Counting::Method(method, epsilon) => {
                // Refused in `build` if it cannot be made; its events do not depend on the number of cells.
                let algorithm = histogram::on_line(*method, 2, epsilon, context, None);
                steps.extend(algorithm.map_or(Vec::new(), |a| a.events(context)));
            }
        }
        steps
    }

    /// Buys thresholds and counts.
    fn buy(&self, desk: &mut Desk<'_>, rows: Option<f64>) -> Result<Tally, DeskError> {
        let fold = FoldId(self.at);
        let chosen = match &self.chooser {
            Chooser::Public => None,
            Chooser::Medians(step) => Some(step.buy(desk, fold)?),
            Chooser::Smooth(step) => {
                let mut found: Vec<usize> = step.buy(desk, fold)?.into_iter().flatten().collect();
                found.dedup();
                Some(found)
            }
            Chooser::Stratified(steps) => {
                Some(steps.buy(desk, FoldId(self.label + self.at))?.thresholds())
            }
            Chooser::Separate(steps) => return Ok(steps.buy(desk, fold)?.tally()),
        };
        let (groups, lows): (Vec<Range<usize>>, Vec<f64>) = match (&chosen, &self.cut) {
            (Some(chosen), _) => {
                let groups = groups(chosen, GRID as usize);
                let lows = groups
                    .iter()
                    .map(|g| unmixed(size(g.start) / f64::from(GRID)))
                    .collect();
                (groups, lows)
            }
            (None, Cut::Edges(edges)) => {
                let cells = edges.len().saturating_sub(1);
                let groups = (0..cells).map(|i| i..i + 1).collect();
                (
                    groups,
                    edges.iter().take(cells).map(|e| e.max(0.0)).collect(),
                )
            }
            (None, _) => (std::iter::once(0..GRID as usize).collect(), vec![0.0]),
        };
        match &self.counting {
            Counting::None => Ok(Tally::new(
                &[],
                Vec::new(),
                Vec::new(),
                Law::Linear(false, None),
            )),
            Counting::Laplace(step) => {
                let noisy = desk.counts(fold, Some(&groups), step)?;
                let lattice = step.lattice(desk.context())?;
                let side = |at: usize| noisy.iter().skip(at).step_by(2).map(|n| real(*n)).collect();
                Ok(Tally::new(&lows, side(0), side(1), Law::Laplace(lattice)))
            }
            Counting::Method(method, epsilon) => {
                let fold = if let Some(chosen) = &chosen {
                    let inner = chosen.iter().map(|b| size(*b) / f64::from(GRID));
                    let edges = std::iter::once(-1.0).chain(inner).chain([2.0]).collect();
                    let folds = desk.scan(vec![self.fold(Cut::Edges(edges), true)])?;
                    folds.first().copied().unwrap_or(fold)
                } else {
                    fold
                };
                let context = desk.context().clone();
                let algorithm =
                    histogram::on_line(*method, 2 * groups.len(), epsilon, &context, rows)
                        .map_err(|e| DeskError::Misuse(e.to_string()))?;
                let estimate = algorithm.run(desk, fold)?;
                let (no, yes) = estimate
                    .cells
                    .split_at(groups.len().min(estimate.cells.len()));
                let law = Law::Linear(method.is_linear(), estimate.spread);
                Ok(Tally::new(&lows, no.to_vec(), yes.to_vec(), law))
            }
        }
    }
}

impl Mechanism for Roc {
    fn kind(&self) -> &'static str {
        "roc"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        let mut steps = Vec::new();
        for line in &self.lines {
            steps.extend(line.events(context));
        }
        Ok(Event::Sequence(steps))
    }
    fn first_pass(&self) -> Vec<Fold> {
        let first = self.lines.iter().map(|l| match l.chooser {
            Chooser::Separate(_) => classes::fold(l.at),
            _ => l.fold(l.cut.clone(), l.by_label()),
        });
        // The line of model i is fold (number of models) + i, of a term behind the outcome.
        let lines = self
            .lines
            .iter()
            .filter(|l| matches!(l.chooser, Chooser::Stratified(_)))
            .map(|l| classes::fold(l.label + 1 + l.at));
        first.chain(lines).collect()
    }
    fn passes(&self) -> u32 {
        let again = |l: &&Line| matches!(l.counting, Counting::Method(..)) && !l.by_label();
        u32::try_from(self.lines.iter().filter(again).count()).unwrap_or(u32::MAX)
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let mut tallies = Vec::new();
        for line in &self.lines {
            tallies.push(line.buy(desk, self.rows)?);
        }
        let smooth = |line: &Line| !matches!(line.chooser, Chooser::Public | Chooser::Separate(_));
        let shapes: Vec<Shape> = self
            .lines
            .iter()
            .zip(&tallies)
            .enumerate()
            .map(|(at, (line, tally))| Shape::new(tally, smooth(line), at))
            .collect();
        let each: Vec<Value> = self
            .lines
            .iter()
            .zip(&shapes)
            .map(|(line, shape)| {
                let mut value = self.value(shape);
                if let (Some(how), Value::Object(map)) = (line.classwise(), &mut value) {
                    map.insert("thresholds".to_owned(), json!(how));
                }
                with_metadata(value, &line.metadata)
            })
            .collect();
        let error = shapes.iter().filter_map(|s| s.error).reduce(f64::max);
        let few = |pick: fn(&Shape) -> bool| shapes.iter().any(pick);
        let flags = flags(&[
            (self.unknown_size, "size_unknown"),
            (few(|s| s.few.1), "few_positives"),
            (few(|s| s.few.0), "few_negatives"),
            (!self.planned, "too_little_signal"),
        ]);
        let value = match each.as_slice() {
            [only] if self.alone => only.clone(),
            _ => json!({
                "models": each,
                "comparisons": compare::all(&self.lines.iter().map(|l| l.name.as_str()).collect::<Vec<_>>(), &shapes),
                "error_95": error.map_or(Value::Null, number),
            }),
        };
        Ok(Answer {
            value,
            error_95: error,
            flags,
        })
    }
}

impl Roc {
    /// Everything that follows from the counts of one model.
    fn value(&self, shape: &Shape) -> Value {
        let mut value = shape.value();
        if let Value::Object(map) = &mut value {
            let drawn = self.planned && !shape.few.0 && !shape.few.1;
            map.insert("drawn".to_owned(), json!(drawn));
            map.insert("operating_points".to_owned(), points::operating(shape));
            map.insert(
                "decisions".to_owned(),
                self.decide_at
                    .iter()
                    .map(|t| points::decision(shape, *t))
                    .collect(),
            );
            let (curve, average) = points::precision_recall(shape);
            map.insert("precision_recall".to_owned(), curve);
            map.insert("average_precision".to_owned(), average);
            map.insert("calibration".to_owned(), points::calibration(shape));
        }
        value
    }
}

/// Ranges of cells between chosen boundaries.
pub(crate) fn groups(chosen: &[usize], cells: usize) -> Vec<Range<usize>> {
    let mut start = 0;
    let mut all = Vec::with_capacity(chosen.len() + 1);
    for &b in chosen {
        all.push(start..b);
        start = b;
    }
    all.push(start..cells);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_follow_the_rule() {
        for (signal, bins) in [
            (1.0, 4),
            (181.0, 4),
            (182.0, 8),
            (1023.0, 8),
            (1024.0, 16),
            (5793.0, 32),
            (32768.0, 64),
            (185_364.0, 128),
            (1_048_576.0, 256),
            (1e12, 512),
        ] {
            assert_eq!(1u32 << default_depth(signal), bins, "{signal}");
        }
    }
}
