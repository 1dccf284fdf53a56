//! Feature selection: which of many 0/1 features tell the classes apart.
//!
//! The counts n(F=1, L) of all features are bought once, with noise that grows with the number of features a record can
//! have, not with how many there are; every score, clustering and threshold is then a function of the noisy
//! counts. Two ways buy less than all counts: picking the k most frequent features directly (better while k is at
//! most the number of features of a record), and testing features one after the other against a threshold.
//!
//! [`naive_bayes`](crate::naive_bayes) buys the same counts: there selection costs nothing.

mod cluster;
mod items;
mod score;

use reticent_accounting::{AccountingError, Event, Rational};
use reticent_mechanisms::fold::Fold;
use reticent_mechanisms::primitives::{
    Change, ItemCounts, Payment, Rule, Selection, Sides, Test, ThresholdTests,
};
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::{Value, json};

pub use cluster::clusters;
pub use items::Items;
pub use score::Scoring;

use crate::common::{Facts, Prepared, StatisticsError, number, positive, real, with_metadata};

/// Which features are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    /// The k with the largest scores.
    Top(u32),
    /// Those with a score above a threshold.
    Above(f64),
}

/// How they are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// All noisy counts, then scores.
    Counts,
    /// All noisy counts, k-means on the noisy points, whole clusters kept by the score of their centre.
    Clusters(u32),
    /// The k most frequent by permute-and-flip; total count only.
    Picks,
    /// Sparse vector: features in their order, the first `answers` whose count is above the threshold.
    SparseVector {
        /// How many positive answers before it stops.
        answers: u32,
    },
}

impl Method {
    /// The rule on public numbers: picks while k is at most the number of features of a record, else all counts.
    pub fn by_rule(scoring: Scoring, keep: Keep, most: u32) -> Self {
        match (scoring, keep) {
            (Scoring::TotalCount, Keep::Top(k)) if k <= most => Self::Picks,
            _ => Self::Counts,
        }
    }

    /// The name in plans.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counts => "counts",
            Self::Clusters(_) => "clusters",
            Self::Picks => "picks",
            Self::SparseVector { .. } => "sparse_vector",
        }
    }
}

/// A selection as asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What is paid; the two ways that do not buy all counts need [`Payment::Pure`].
    pub payment: Payment,
    /// The score.
    pub scoring: Scoring,
    /// What is kept.
    pub keep: Keep,
    /// How; by rule if absent.
    pub method: Option<Method>,
    /// Public facts copied into the value.
    pub metadata: Value,
}

/// Refuses a payment without a positive budget.
pub(crate) fn paid(payment: &Payment) -> Result<(), StatisticsError> {
    positive(match payment {
        Payment::Pure { epsilon } | Payment::Approximate { epsilon, .. } => epsilon,
        Payment::Concentrated { rho } => rho,
    })?;
    if let Payment::Approximate { delta, .. } = payment
        && (*delta <= Rational::ZERO || *delta >= Rational::ONE)
    {
        return Err(refuse(
            "delta",
            reticent_accounting::format_rational(delta),
            "give a number above 0 and below 1",
        ));
    }
    Ok(())
}

pub(crate) fn refuse(name: &'static str, value: String, fix: &str) -> StatisticsError {
    StatisticsError::Parameter {
        name,
        value,
        fix: fix.to_owned(),
    }
}

/// Features that tell two classes apart (`label` is 0 or 1).
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// use reticent_mechanisms::program::Comparison;
/// use reticent_statistics::features::{Config, Items, Keep, Scoring, select};
/// let people = People::new();
/// let above = |e: Expr, t: f64| Expr::Compare(Comparison::Greater, Box::new(e), Box::new(Expr::Constant(t)));
/// let features = vec![("old".to_owned(), above(AGE, 60.0)), ("rich".to_owned(), above(INCOME, 5.0))];
/// let config = Config {
///     payment: Payment::Pure { epsilon: epsilon() },
///     scoring: Scoring::PurityIndex,
///     keep: Keep::Top(1),
///     method: None,
///     metadata: Value::Null,
/// };
/// let items = Items::indicators(features, 2);
/// let value = people.release(&select(&people.facts(), &items, &SICK, config)?);
/// assert_eq!(value["features"], json!(["old"]), "{value}");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When the features, the label, the budget or the choice make no sense: decided from public inputs.
#[allow(clippy::too_many_lines, reason = "one arm per way of choosing")]
pub fn select(
    facts: &Facts<'_>,
    items: &Items,
    label: &Expr,
    config: Config,
) -> Result<Prepared, StatisticsError> {
    paid(&config.payment)?;
    items.check(facts)?;
    facts.bounds(std::slice::from_ref(label))?;
    if items.names.is_empty() || items.most == 0 {
        let fix = "name at least one feature, of which a record may have at least one";
        return Err(refuse("features", items.names.len().to_string(), fix));
    }
    match config.keep {
        Keep::Top(k) if k == 0 || k as usize > items.names.len() => {
            let fix = format!(
                "give a number from 1 to {}, the features",
                items.names.len()
            );
            return Err(refuse("k", k.to_string(), &fix));
        }
        Keep::Above(t) if !t.is_finite() || t.abs() > 1e15 => {
            return Err(refuse(
                "threshold",
                t.to_string(),
                "give a number of records",
            ));
        }
        _ => {}
    }
    let method = config
        .method
        .unwrap_or_else(|| match (&config.payment, config.scoring) {
            (Payment::Pure { .. }, s) => Method::by_rule(s, config.keep, items.most),
            _ => Method::Counts,
        });
    let pure = match &config.payment {
        Payment::Pure { epsilon } => Some(epsilon.clone()),
        _ => None,
    };
    let only = |what: &str| refuse("method", method.name().to_owned(), what);
    let step = match (method, config.keep) {
        (Method::Counts, _) => Step::Counts(ItemCounts {
            name: "features".to_owned(),
            payment: config.payment.clone(),
            most: items.most,
            classes: matches!(
                config.scoring,
                Scoring::PurityIndex | Scoring::InformationGain
            ),
        }),
        (Method::Clusters(k), _) => {
            if k == 0 || k as usize > items.names.len() {
                return Err(only("give from 1 cluster to one per feature"));
            }
            Step::Counts(ItemCounts {
                name: "features".to_owned(),
                payment: config.payment.clone(),
                most: items.most,
                classes: true,
            })
        }
        (Method::Picks, Keep::Top(k)) if config.scoring == Scoring::TotalCount => {
            Step::Picks(Selection {
                name: "features".to_owned(),
                epsilon: pure.ok_or_else(|| only("it is paid in epsilon"))?,
                picks: k,
                rule: Rule::PermuteAndFlip,
            })
        }
        (Method::Picks, _) => return Err(only("it finds the k largest total counts")),
        (Method::SparseVector { answers }, Keep::Above(t))
            if config.scoring == Scoring::TotalCount && answers > 0 =>
        {
            Step::Tests(
                ThresholdTests {
                    name: "features".to_owned(),
                    epsilon: pure.ok_or_else(|| only("it is paid in epsilon"))?,
                    answers,
                    most: u32::try_from(items.names.len()).unwrap_or(u32::MAX),
                    change: Change::COUNT,
                    nested: false,
                    sides: Sides::One,
                    gaps: false,
                    values: None,
                    custom: None,
                },
                whole_above(t),
            )
        }
        (Method::SparseVector { .. }, _) => {
            return Err(only("it tests total counts against a threshold"));
        }
    };
    // total counts do not need the label: pooled, each feature has one noise instead of two
    let labelled = !(config.scoring == Scoring::TotalCount
        && matches!(
            method,
            Method::Counts | Method::Picks | Method::SparseVector { .. }
        ));
    let (terms, fold) = items.fold(labelled.then_some((label, 2)));
    Ok(Prepared {
        terms,
        mechanism: Box::new(Select {
            names: items.names.clone(),
            labelled,
            method,
            scoring: config.scoring,
            keep: config.keep,
            fold,
            step,
            metadata: config.metadata,
        }),
    })
}

/// The smallest whole number above t, for |t| ≤ 1e15: a count exceeds t exactly if it is at least this.
#[allow(clippy::cast_possible_truncation, reason = "t was checked to be small")]
fn whole_above(t: f64) -> i128 {
    t.floor() as i128 + 1
}

enum Step {
    Counts(ItemCounts),
    Picks(Selection),
    Tests(ThresholdTests, i128),
}

/// # Claim
/// ε-DP, or as its payment says: one purchase, the rest is post-processing.
/// # Checked by
/// `features::{silent_selection_is_exact, selection_costs_what_is_paid}`, `composites::all`
struct Select {
    names: Vec<String>,
    labelled: bool,
    method: Method,
    scoring: Scoring,
    keep: Keep,
    fold: Fold,
    step: Step,
    metadata: Value,
}

/// Positions of the features that are kept, best first, from their scores; ties by position.
pub fn kept(scores: &[f64], keep: Keep) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    let score = |i: usize| scores.get(i).copied().unwrap_or(f64::NEG_INFINITY);
    order.sort_by(|a, b| score(*b).total_cmp(&score(*a)));
    match keep {
        Keep::Top(k) => order.truncate(k as usize),
        Keep::Above(t) => order.retain(|i| score(*i) > t),
    }
    order
}

impl Select {
    /// From noisy counts to the chosen features and their scores.
    fn choose(&self, items: &[i128], classes: &[i128]) -> (Vec<usize>, Vec<f64>) {
        let points: Vec<[f64; 2]> = if self.labelled {
            items
                .chunks(2)
                .map(|c| [0, 1].map(|i| c.get(i).copied().map_or(0.0, real)))
                .collect()
        } else {
            items.iter().map(|c| [real(*c), 0.0]).collect()
        };
        let all = [0, 1].map(|i| classes.get(i).copied().map_or(0.0, real));
        let scores: Vec<f64> = points.iter().map(|p| self.scoring.of(*p, all)).collect();
        if let Method::Clusters(k) = self.method {
            // every feature gets the score of its cluster's centre; inside a cluster its own decides
            let (centres, members) = clusters(&points, k as usize);
            let of_centre: Vec<f64> = centres.iter().map(|c| self.scoring.of(*c, all)).collect();
            let whole: Vec<f64> = members
                .iter()
                .map(|m| of_centre.get(*m).copied().unwrap_or(f64::NEG_INFINITY))
                .collect();
            let mut order = kept(&scores, Keep::Top(u32::MAX));
            order.sort_by(|a, b| whole[*b].total_cmp(&whole[*a]));
            match self.keep {
                Keep::Top(k) => order.truncate(k as usize),
                Keep::Above(t) => order.retain(|i| whole[*i] > t),
            }
            return (order, whole);
        }
        (kept(&scores, self.keep), scores)
    }
}

impl Mechanism for Select {
    fn kind(&self) -> &'static str {
        "select"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(match &self.step {
            Step::Counts(s) => s.event(context),
            Step::Picks(s) => s.event(context),
            Step::Tests(s, _) => s.event(context),
        })
    }
    fn first_pass(&self) -> Vec<Fold> {
        vec![self.fold.clone()]
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let mut noise_sd = None;
        let (chosen, scores) = match &self.step {
            Step::Counts(s) => {
                noise_sd = Some(crate::naive_bayes::deviation(&s.lattice(desk.context())?));
                let noisy = desk.item_counts(FoldId(0), s)?;
                self.choose(&noisy.items, &noisy.classes)
            }
            Step::Picks(s) => {
                let picks = desk.select(FoldId(0), None, s)?;
                (picks.into_iter().map(|p| p.index).collect(), Vec::new())
            }
            Step::Tests(s, threshold) => {
                let tests: Vec<Test> = (0..self.names.len())
                    .map(|i| Test::count(i..i + 1, *threshold))
                    .collect();
                let above = desk.threshold_tests(FoldId(0), &tests, s)?;
                (above.into_iter().map(|c| c.index).collect(), Vec::new())
            }
        };
        let names: Vec<&String> = chosen.iter().filter_map(|i| self.names.get(*i)).collect();
        let of_chosen: Option<Vec<Value>> = (!scores.is_empty()).then(|| {
            let each = chosen.iter().filter_map(|i| scores.get(*i));
            each.map(|s| number(*s)).collect()
        });
        let value = json!({
            "score": self.scoring.name(),
            "method": self.method.name(),
            "candidates": self.names.len(),
            "features": names,
            "scores": of_chosen,
            "noise_sd": noise_sd.map(number),
        });
        Ok(Answer {
            value: with_metadata(value, &self.metadata),
            error_95: None,
            flags: if chosen.is_empty() {
                vec!["no_feature_kept".to_owned()]
            } else {
                Vec::new()
            },
        })
    }
}
