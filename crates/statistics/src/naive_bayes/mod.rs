//! Naive Bayes: categorical, binary, sparse and Gaussian features, any number of classes.
//!
//! One purchase covers every count: the class sizes and n(F=1, L) of all features. A record changes one class size and at
//! most s counts, so the noise is that of s + 1 counts however many features there are; counts for F=0 follow by
//! subtraction. Selecting features by the same noisy counts costs nothing.
//! ```
//! use reticent_accounting::{Rational, Relation};
//! use reticent_mechanisms::Context;
//! use reticent_mechanisms::primitives::Payment;
//! use reticent_mechanisms::program::Expr;
//! use reticent_mechanisms::rows::{Column, Kind, Missing, Schema};
//! use reticent_statistics::{Facts, naive_bayes};
//! let levels = |name: &str, of: [&str; 2]| Column {
//!     name: name.to_owned(),
//!     kind: Kind::Levels { levels: of.map(str::to_owned).to_vec(), other: None },
//!     missing: Missing::Drop,
//! };
//! let schema = Schema { columns: vec![levels("ill", ["no", "yes"]), levels("smokes", ["no", "yes"])] };
//! let context = Context::records(Relation::AddRemove);
//! let facts = Facts { schema: &schema, filter: None, context: &context, rows: None, positive_rate: None };
//! let two = vec!["no".to_owned(), "yes".to_owned()];
//! let spec = naive_bayes::Spec {
//!     factors: vec![naive_bayes::Factor { name: "smokes".to_owned(), expr: Expr::Code(1), levels: two.clone() }],
//!     ..naive_bayes::Spec::new(Expr::Code(0), two)
//! };
//! let payment = Payment::Pure { epsilon: Rational::from(1u8) };
//! let prepared = naive_bayes::prepare(&facts, &spec, naive_bayes::Config::new(payment))?;
//! assert_eq!(prepared.mechanism.kind(), "naive_bayes");
//! # Ok::<(), reticent_statistics::StatisticsError>(())
//! ```

mod classifier;

use std::collections::HashSet;

use reticent_accounting::{AccountingError, Event, Rational};
use reticent_mechanisms::fold::{Axis, CellSum, Cut, FixedPoint, Fold};
use reticent_mechanisms::primitives::{ItemCounts, Payment, Sums};
use reticent_mechanisms::program::{Expr, Interval};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use reticent_noise::Lattice;
use serde_json::{Value, json};

pub use classifier::{Classifier, LogOdds, Numeric, Weights};

use crate::common::{Facts, Prepared, StatisticsError, numbers, real, size, whole, with_metadata};
use crate::design::Affine;
use crate::features::{Items, Keep, Scoring, kept, paid, refuse};

/// A categorical feature.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// The level's number.
    pub expr: Expr,
    /// The levels; at least two.
    pub levels: Vec<String>,
}

/// How the log-odds of two classes are written as the terms of a formula.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// An indicator: the weight of a feature, less that of the reference level (which goes to the intercept).
    Indicator {
        /// The term's name.
        term: String,
        /// The feature.
        feature: String,
        /// The feature of the reference level, if that has one.
        reference: Option<String>,
    },
    /// A number.
    Linear {
        /// The term's name.
        term: String,
        /// The numeric feature.
        feature: String,
    },
    /// Its square.
    Square {
        /// The term's name.
        term: String,
        /// The numeric feature.
        feature: String,
    },
}

/// What is told from what.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The number of the record's class.
    pub label: Expr,
    /// The classes; at least two.
    pub classes: Vec<String>,
    /// Categorical features.
    pub factors: Vec<Factor>,
    /// Binary features of which a record has few: words.
    pub items: Items,
    /// Numbers with declared bounds, taken as Gaussian within each class.
    pub numeric: Vec<(String, Expr)>,
    /// The log-odds (of two classes, or of each of several against the first) as the terms of a formula, added to the value.
    pub formula: Vec<Term>,
    /// Public facts copied into the value.
    pub metadata: Value,
}

impl Spec {
    /// Classes without features: their shares alone.
    pub fn new(label: Expr, classes: Vec<String>) -> Self {
        Self {
            label,
            classes,
            factors: Vec::new(),
            items: Items::none(),
            numeric: Vec::new(),
            formula: Vec::new(),
            metadata: json!({}),
        }
    }
}

/// How it is paid and smoothed.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What is paid in all. Numeric features are paid in ε; in zCDP at ε²/2.
    pub payment: Payment,
    /// Pseudo-count added to every count; by rule max(1, 2 standard deviations of the noise).
    pub smoothing: Option<f64>,
    /// Uses only the sparse features that do best by the same noisy counts. Costs nothing.
    pub keep: Option<(Scoring, Keep)>,
}

impl Config {
    /// Defaults.
    pub fn new(payment: Payment) -> Self {
        Self {
            payment,
            smoothing: None,
            keep: None,
        }
    }
}

/// Standard deviation of a noise.
pub fn deviation(lattice: &Lattice) -> f64 {
    let scale = lattice.scale().to_f64();
    if scale <= 0.0 {
        return 0.0;
    }
    match lattice {
        // variance 2r/(1−r)², r = e^(−1/b): 1/(cosh(1/b) − 1), written without cancellation
        Lattice::Laplace(_) => 1.0 / (2f64.sqrt() * (0.5 / scale).sinh()),
        Lattice::Geometric(_) => 0.5 / (0.5 / scale).sinh(),
        Lattice::DiscreteGaussian(_) | Lattice::RoundedGaussian(_) => scale,
    }
}

/// The shares of the counts and of each sum of a numeric feature: s + 1 parts for the counts, one for each sum, by how
/// many entries a record moves.
fn shares(payment: &Payment, entries: u64, sums: u64) -> Option<(Payment, Rational)> {
    let part = |of: &Rational| of / Rational::from(entries.saturating_add(sums));
    if sums == 0 {
        return Some((payment.clone(), Rational::ZERO));
    }
    Some(match payment {
        Payment::Pure { epsilon } => {
            let each = part(epsilon);
            let rest = epsilon - &each * Rational::from(sums);
            (Payment::Pure { epsilon: rest }, each)
        }
        Payment::Approximate { epsilon, delta } => {
            let each = part(epsilon);
            let counts = Payment::Approximate {
                epsilon: epsilon - &each * Rational::from(sums),
                delta: delta.clone(),
            };
            (counts, each)
        }
        Payment::Concentrated { rho } => {
            let each = crate::zcdp::epsilon_of_pure(&part(rho));
            if each <= Rational::ZERO {
                return None;
            }
            let spent = &each * &each / Rational::from(2u8) * Rational::from(sums);
            (Payment::Concentrated { rho: rho - spent }, each)
        }
    })
}

/// A classifier for the classes of `spec`.
///
/// The value has the classes, noisy counts, means and variances, and, the log-odds as terms of the formula: of two classes, or of each of several against the first.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// let people = People::new();
/// let spec = naive_bayes::Spec {
///     numeric: vec![("age".to_owned(), AGE)],
///     ..naive_bayes::Spec::new(SICK, vec!["well".to_owned(), "sick".to_owned()])
/// };
/// let config = naive_bayes::Config::new(Payment::Pure { epsilon: epsilon() });
/// let value = people.release(&naive_bayes::prepare(&people.facts(), &spec, config)?);
/// let well = value["class_counts"][0].as_f64().unwrap(); // exact: 2440
/// assert!((well - 2440.0).abs() < 60.0, "{value}");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When the spec or the budget makes no sense: decided from public inputs.
pub fn prepare(
    facts: &Facts<'_>,
    spec: &Spec,
    config: Config,
) -> Result<Prepared, StatisticsError> {
    paid(&config.payment)?;
    if spec.classes.len() < 2 || spec.classes.len() > 10_000 {
        let fix = "give from 2 to 10000 classes";
        return Err(refuse("classes", spec.classes.len().to_string(), fix));
    }
    if let Some(f) = spec.factors.iter().find(|f| f.levels.len() < 2) {
        return Err(refuse("levels", f.name.clone(), "give at least two levels"));
    }
    if let Some(a) = config.smoothing
        && !(a > 0.0 && a <= 1e12)
    {
        return Err(refuse("smoothing", a.to_string(), "give a number above 0"));
    }
    if config.keep.is_some_and(|(s, _)| s != Scoring::TotalCount) && spec.classes.len() != 2 {
        let fix = "with several classes features are selected by score = \"total\"";
        return Err(refuse("score", "two-class score".to_owned(), fix));
    }
    let (items, places) = together(&spec.factors, &spec.items);
    items.check(facts)?;
    let (mut terms, fold) = items.fold(Some((&spec.label, spec.classes.len())));
    let label = items.slots.len();
    let mut numeric = Vec::with_capacity(spec.numeric.len());
    for (name, expr) in &spec.numeric {
        let bounds = facts.interval(expr)?;
        let unit = Affine::to_unit(bounds);
        let scaled = expr.clone().affine(unit.factor, unit.shift);
        let clamp = |e: Expr, lower| e.clamp(Interval { lower, upper: 1.0 });
        numeric.push(Column {
            name: name.clone(),
            bounds,
            at: terms.len(),
        });
        terms.push(clamp(scaled.clone(), -1.0));
        terms.push(clamp(Expr::Power(Box::new(scaled), 2), 0.0));
    }
    facts.bounds(&terms)?;
    let sums = 2 * u64::try_from(numeric.len()).unwrap_or(u64::MAX / 4);
    let too_small = || {
        refuse(
            "rho",
            "too small".to_owned(),
            "give more, or fewer numeric features",
        )
    };
    let (payment, each) =
        shares(&config.payment, u64::from(items.most) + 1, sums).ok_or_else(too_small)?;
    Ok(Prepared {
        terms,
        mechanism: Box::new(NaiveBayes {
            counts: ItemCounts {
                name: "counts".to_owned(),
                payment,
                most: items.most,
                classes: true,
            },
            each,
            fold,
            label,
            places,
            names: items.names,
            numeric,
            classes: spec.classes.clone(),
            formula: spec.formula.clone(),
            metadata: spec.metadata.clone(),
            config,
        }),
    })
}

/// Which counts belong to a factor; sparse features come after those of all factors.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    factor: String,
    levels: Vec<String>,
    first: usize,
}

impl Place {
    /// Two levels have one count, the other follows by subtraction; more have one each.
    fn counts(levels: usize) -> usize {
        if levels == 2 { 1 } else { levels }
    }
}

/// Factors and sparse features as one list of features.
fn together(factors: &[Factor], sparse: &Items) -> (Items, Vec<Place>) {
    let total: usize = factors.iter().map(|f| Place::counts(f.levels.len())).sum();
    let mut items = Items::none();
    let mut places = Vec::with_capacity(factors.len());
    for f in factors {
        let first = items.names.len();
        let own = Place::counts(f.levels.len());
        let skipped = f.levels.len() - own;
        let table = (0..f.levels.len())
            .map(|l| {
                l.checked_sub(skipped)
                    .map_or(size(total), |i| size(first + i))
            })
            .collect();
        items
            .slots
            .push(Expr::Lookup(Box::new(f.expr.clone()), table));
        let labels = f.levels.iter().skip(skipped);
        items
            .names
            .extend(labels.map(|l| format!("{}={l}", f.name)));
        places.push(Place {
            factor: f.name.clone(),
            levels: f.levels.clone(),
            first,
        });
    }
    items.most = u32::try_from(factors.len()).unwrap_or(u32::MAX);
    if sparse.names.is_empty() {
        return (items, places);
    }
    (items.and(sparse.clone()), places)
}

struct Column {
    name: String,
    bounds: Interval,
    /// Its term scaled to [−1, 1]; the next is the square.
    at: usize,
}

/// Bits of the grid on which scaled numbers are summed.
const GRID: FixedPoint = FixedPoint { bits: 30 };

/// # Claim
/// ε-DP, or as its payment says: noisy counts, then two noisy sums per numeric feature; the classifier is a function of them.
/// # Composition
/// Sequential. Shares s + 1 : 1 : 1 : …, the counts getting what rounding leaves, so that the parts are the whole.
/// # Checked by
/// `naive_bayes::{counts_are_exact_without_noise, parts_are_the_whole}`, `composites::all`
struct NaiveBayes {
    counts: ItemCounts,
    each: Rational,
    fold: Fold,
    label: usize,
    places: Vec<Place>,
    names: Vec<String>,
    numeric: Vec<Column>,
    classes: Vec<String>,
    formula: Vec<Term>,
    metadata: Value,
    config: Config,
}

impl NaiveBayes {
    fn sums(&self, column: &Column, square: bool) -> Sums {
        Sums {
            name: format!("{}{}", column.name, if square { " squared" } else { "" }),
            epsilon: self.each.clone(),
            centred: true,
        }
    }

    /// Where the sparse features begin.
    fn sparse(&self) -> usize {
        let last = self.places.last();
        last.map_or(0, |p| p.first + Place::counts(p.levels.len()))
    }

    /// Positions of the sparse features that are used; best first if they were chosen.
    fn used(&self, items: &[Vec<f64>], classes: &[f64]) -> Vec<usize> {
        let sparse = self.sparse();
        let all = sparse..items.len();
        let Some((scoring, keep)) = self.config.keep else {
            return all.collect();
        };
        let two = |v: &[f64]| [0, 1].map(|i| v.get(i).copied().unwrap_or(0.0));
        let scores: Vec<f64> = all
            .clone()
            .filter_map(|i| items.get(i))
            .map(|c| match scoring {
                Scoring::TotalCount => c.iter().sum(),
                other => other.of(two(c), two(classes)),
            })
            .collect();
        let best = kept(&scores, keep).into_iter();
        best.map(|i| i + sparse).collect()
    }

    /// The formula without the features that were not chosen, and the chosen ones, best first; nothing without a choice.
    fn chosen(&self, used: &[usize]) -> Option<(Vec<Term>, Vec<&String>)> {
        self.config.keep?;
        let names: Vec<&String> = used.iter().filter_map(|i| self.names.get(*i)).collect();
        let kept: HashSet<&String> = names.iter().copied().collect();
        let dropped: HashSet<&String> = (self.names.iter().skip(self.sparse()))
            .filter(|n| !kept.contains(n))
            .collect();
        let stays = |t: &&Term| match t {
            Term::Indicator { feature, .. } => !dropped.contains(feature),
            Term::Linear { .. } | Term::Square { .. } => true,
        };
        Some((self.formula.iter().filter(stays).cloned().collect(), names))
    }
}

impl Mechanism for NaiveBayes {
    fn kind(&self) -> &'static str {
        "naive_bayes"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        let mut steps = vec![self.counts.event(context)];
        for column in &self.numeric {
            steps.extend([false, true].map(|square| self.sums(column, square).event(context)));
        }
        Ok(Event::Sequence(steps))
    }
    fn first_pass(&self) -> Vec<Fold> {
        let label = || Axis {
            term: self.label,
            cut: Cut::Whole(u32::try_from(self.classes.len()).unwrap_or(u32::MAX)),
        };
        let sum = |term| Fold::Grid {
            axes: vec![label()],
            sum: Some(CellSum {
                term,
                fixed: GRID,
                limits: Vec::new(),
            }),
        };
        let sums = self.numeric.iter().flat_map(|c| [sum(c.at), sum(c.at + 1)]);
        std::iter::once(self.fold.clone()).chain(sums).collect()
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let sd = deviation(&self.counts.lattice(desk.context())?);
        let noisy = desk.item_counts(FoldId(0), &self.counts)?;
        let mut moments = Vec::with_capacity(self.numeric.len());
        for (i, column) in self.numeric.iter().enumerate() {
            let mut bought = |square: bool| -> Result<_, DeskError> {
                let step = self.sums(column, square);
                let fold = FoldId(1 + 2 * i + usize::from(square));
                let (sums, centres) = desk.sums(fold, None, &step)?;
                let low = if square { 0 } else { -(1i64 << GRID.bits) };
                let lattice = step.lattice(low, 1i64 << GRID.bits, desk.context())?;
                let values: Vec<(f64, f64)> = sums
                    .iter()
                    .zip(&centres)
                    .map(|(s, c)| (GRID.value(*s), GRID.value(i128::from(*c))))
                    .collect();
                Ok((values, deviation(&lattice) * GRID.step()))
            };
            moments.push((bought(false)?, bought(true)?));
        }
        let sizes: Vec<f64> = noisy.classes.iter().map(|n| real(*n).max(1.0)).collect();
        let counts: Vec<Vec<f64>> = noisy
            .items
            .chunks(self.classes.len())
            .map(|c| c.iter().map(|n| real(*n)).collect())
            .collect();
        let mut used = self.used(&counts, &sizes);
        let chosen = self.chosen(&used);
        used.sort_unstable();
        let smoothing = self.config.smoothing.unwrap_or((2.0 * sd).max(1.0));
        let mut classifier = Classifier::of_classes(self.classes.clone(), &sizes);
        for place in &self.places {
            let end = place.first + Place::counts(place.levels.len());
            let own = counts.get(place.first..end).unwrap_or_default();
            let names = self.names.get(place.first..end).unwrap_or_default();
            if place.levels.len() == 2 {
                classifier.add_binary(names, own, &sizes, smoothing);
            } else {
                classifier.add_levels(names, own, smoothing);
            }
        }
        for i in &used {
            let range = *i..*i + 1;
            classifier.add_binary(
                self.names.get(range.clone()).unwrap_or_default(),
                counts.get(range).unwrap_or_default(),
                &sizes,
                smoothing,
            );
        }
        for (column, ((sums, _), (squares, sd))) in self.numeric.iter().zip(&moments) {
            classifier.add_numeric(&column.name, column.bounds, sums, (squares, *sd), &sizes);
        }
        let value = json!({
            "class_counts": noisy.classes.iter().map(|n| whole(*n)).collect::<Vec<_>>(),
            "counts": self.names.iter().zip(noisy.items.chunks(self.classes.len()))
                .map(|(name, c)| (name.clone(), c.iter().map(|n| whole(*n)).collect()))
                .collect::<serde_json::Map<String, Value>>(),
            "smoothing": numbers(&[smoothing])[0],
            "noise_sd": numbers(&[sd])[0],
        });
        let mut value = with_metadata(value, &classifier.to_json());
        let formula = chosen.as_ref().map_or(&self.formula, |c| &c.0);
        if let Some(terms) = (classifier.log_odds()).and_then(|o| terms(formula, &classifier, o)) {
            value = with_metadata(value, &json!({ "terms": terms }));
        } else if let Some(each) = against_first(&self.formula, &classifier) {
            value = with_metadata(value, &json!({ "log_odds": each }));
        }
        if let Some((_, features)) = chosen {
            let candidates = self.names.len().saturating_sub(self.sparse());
            let choice = json!({ "features": features, "candidates": candidates });
            value = with_metadata(value, &choice);
        }
        Ok(Answer {
            value: with_metadata(value, &self.metadata),
            error_95: None,
            flags: if noisy.classes.iter().any(|n| *n < 1) {
                vec!["empty_class".to_owned()]
            } else {
                Vec::new()
            },
        })
    }
}

/// Of more than two classes, the log-odds of each against the first; none without a formula.
fn against_first(formula: &[Term], classifier: &Classifier) -> Option<Vec<Value>> {
    let first = classifier.classes.first()?;
    let rest = classifier.classes.iter().enumerate().skip(1);
    rest.map(|(at, level)| {
        let terms = terms(formula, classifier, classifier.log_odds_of(at)?)?;
        Some(json!({"level": level, "against": first, "terms": terms}))
    })
    .collect()
}

/// Log-odds as terms, intercept first; none without a formula.
fn terms(
    formula: &[Term],
    classifier: &Classifier,
    (mut intercept, weights, quadratic): LogOdds,
) -> Option<Vec<Value>> {
    // without any feature the intercept alone is the model
    if formula.is_empty() && !(classifier.weights.is_empty() && classifier.numeric.is_empty()) {
        return None;
    }
    let names = classifier.weights.iter().map(|w| w.name.as_str());
    let by_name: std::collections::HashMap<&str, f64> = names.zip(weights).collect();
    let weight = |name: &str| by_name.get(name).copied().unwrap_or(0.0);
    let number = |name: &str| {
        let at = classifier.numeric.iter().position(|n| n.name == name);
        at.and_then(|i| quadratic.get(i).copied())
            .unwrap_or((0.0, 0.0))
    };
    let mut references: Vec<&String> = Vec::new();
    let mut out = Vec::with_capacity(formula.len() + 1);
    for t in formula {
        let (term, estimate) = match t {
            Term::Indicator {
                term,
                feature,
                reference,
            } => {
                let base = reference.as_ref().map_or(0.0, |r| weight(r));
                references.extend(reference);
                (term, weight(feature) - base)
            }
            Term::Linear { term, feature } => (term, number(feature).0),
            Term::Square { term, feature } => (term, number(feature).1),
        };
        out.push(json!({"name": term, "estimate": numbers(&[estimate])[0]}));
    }
    references.sort_unstable();
    references.dedup();
    intercept += references.iter().map(|r| weight(r)).sum::<f64>();
    out.insert(
        0,
        json!({"name": "(Intercept)", "estimate": numbers(&[intercept])[0]}),
    );
    Some(out)
}
