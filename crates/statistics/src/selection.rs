//! The most frequent of many candidates, and what accuracy to expect.
//!
//! Which method when: *k* candidates of which a record can have up to *s* (1 for the levels of a column).
//! Permute-and-flip while k ≤ s; above that, noise on all counts, which does not grow with k, and their order.
//! The joint mechanism is better only where the k-th count stands out, which is not public.

use reticent_accounting::exp::sqrt_lower;
use reticent_accounting::{AccountingError, Currency, Event, Rational, rational_to_f64};
use reticent_mechanisms::fold::{Axis, Fold};
use reticent_mechanisms::primitives::{
    Counts, ItemCounts, JointSelection, Payment, Rule, Selection, Sides,
};
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::{Value, json};

use crate::common::{Facts, Prepared, StatisticsError, number, positive, size, whole};
use crate::simple::{AxisCut, AxisSpec, cut};

/// How the candidates are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Permute-and-flip, k rounds.
    PermuteAndFlip,
    /// The exponential mechanism, k rounds; one-shot Gumbel top-k has the same law.
    Peeling,
    /// Noisy maximum, k rounds, with the free gap.
    NoisyMax,
    /// The joint exponential mechanism.
    Joint,
    /// Noise on every count, then their order; the counts are released too.
    Counts,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Counts,
        Self::PermuteAndFlip,
        Self::Peeling,
        Self::Joint,
        Self::NoisyMax,
    ];

    /// The rule on public numbers: a record has up to `items` of the candidates.
    pub fn by_rule(k: u32, items: u32) -> Self {
        if k <= items {
            Self::PermuteAndFlip
        } else {
            Self::Counts
        }
    }

    /// The name in plans.
    pub fn name(self) -> &'static str {
        match self {
            Self::PermuteAndFlip => "permute_and_flip",
            Self::Peeling => "peeling",
            Self::NoisyMax => "noisy_max",
            Self::Joint => "joint",
            Self::Counts => "counts",
        }
    }

    /// The ε of the step such that its zCDP price is at most ε²/2, the price of one pure release: k picks of
    /// ε_t/k cost ε_t²/(2k), or ε_t²/(8k) as bounded-range draws. A little less than that: shares of picks are rounded to a grid of at
    /// most 2⁻²⁰ of them, and the last, which gets the rest, makes the sum of squares larger by up to k·2⁻⁴⁰ of it.
    fn stretched(self, epsilon: &Rational, k: u32, context: &Context) -> Rational {
        if context.currency != Currency::Concentrated {
            return epsilon.clone();
        }
        let (picks, bounded) = match self {
            Self::PermuteAndFlip | Self::NoisyMax => (k, false),
            Self::Peeling => (k, true),
            Self::Joint => (1, true),
            Self::Counts => (1, false),
        };
        let factor = if bounded { 2u8 } else { 1 };
        let whole = sqrt_lower(&Rational::from(picks.max(1))) * Rational::from(factor) * epsilon;
        if picks <= 1 {
            return whole;
        }
        let grain = Rational::from(1u64 << 40);
        whole * (&grain - Rational::from(picks)) / grain
    }
}

/// Largest count loss, with probability 1 − β, of any of the k chosen against the best that was left: a union bound.
///
/// `epsilon` pays the whole release under the context's relation; `items` is how many candidates a record can have.
pub fn error(
    method: Method,
    candidates: usize,
    k: u32,
    items: u32,
    epsilon: &Rational,
    context: &Context,
    beta: f64,
) -> f64 {
    let d = size(candidates.max(1));
    let rounds = f64::from(k.max(1));
    let stretched = method.stretched(epsilon, k, context);
    let e = rational_to_f64(&context.per_record(&stretched)) / f64::from(context.touches());
    match method {
        // a candidate a below the best is chosen with probability at most e^{−ra}, r = e/k
        Method::PermuteAndFlip | Method::Peeling | Method::NoisyMax => {
            rounds / e * (d * rounds / beta).ln()
        }
        // d^k sequences, rate e/2
        Method::Joint => 2.0 / e * (rounds * d.ln() - beta.ln()),
        Method::Counts => 2.0 * f64::from(items.max(1)) / e * (d / beta).ln(),
    }
}

/// The ε with which [`error`] is `wanted`: errors are in proportion to 1/ε.
pub fn epsilon_for(
    method: Method,
    candidates: usize,
    k: u32,
    items: u32,
    wanted: f64,
    context: &Context,
    beta: f64,
) -> f64 {
    error(method, candidates, k, items, &Rational::ONE, context, beta) / wanted
}

/// The gap beyond which a noisy maximum at `rate` (1/scale, one-sided noise) is the true one with probability 1 − β: a
/// candidate that is not the largest and leads by g has noise of at least g.
///
/// ```
/// // Of 1000 candidates at scale 2 a lead of 2·ln(1000/.05) is the truth with probability .95.
/// let gap = reticent_statistics::selection::decisive_gap(1000, 0.5, 0.05);
/// assert!((gap - 2.0 * 20_000_f64.ln()).abs() < 1e-9);
/// ```
pub fn decisive_gap(candidates: usize, rate: f64, beta: f64) -> f64 {
    (size(candidates.max(1)) / beta).ln() / rate
}

/// The k most frequent cells of an axis: levels of a column, or bins.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// use reticent_statistics::simple::{AxisCut, AxisSpec};
/// let people = People::new();
/// // incomes end at 535: the last classes are thin
/// let cut = AxisCut::Even { lower: 0.0, upper: 600.0, cells: 6 };
/// let axis = AxisSpec { name: "income".to_owned(), expr: INCOME, cut };
/// let value = people.release(&selection::top_k(&people.facts(), &axis, 4, None, &epsilon())?);
/// assert_eq!(value["top"].as_array().unwrap().len(), 4);
/// assert!(!value["top"].to_string().contains("600"), "{value}");
/// # Ok(())
/// # }
/// ```
pub fn top_k(
    facts: &Facts<'_>,
    axis: &AxisSpec,
    k: u32,
    method: Option<Method>,
    epsilon: &Rational,
) -> Result<Prepared, StatisticsError> {
    let (cells, label) = cut(axis)?;
    let labels = labels(&axis.cut, &label);
    facts.bounds(std::slice::from_ref(&axis.expr))?;
    let fold = Fold::Grid {
        axes: vec![Axis {
            term: 0,
            cut: cells,
        }],
        sum: None,
    };
    let terms = vec![axis.expr.clone()];
    build(
        facts,
        (terms, fold),
        labels,
        (k, 1),
        method,
        epsilon,
        &axis.name,
    )
}

/// The k most frequent of many items, of which a record may have several (expressions above ½); the first `most` that
/// it has count.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// use reticent_mechanisms::program::Comparison;
/// let people = People::new();
/// let above = |t: f64| Expr::Compare(Comparison::Greater, Box::new(AGE), Box::new(Expr::Constant(t)));
/// let items = [90.0, 10.0, 50.0].map(|t| (format!("above {t}"), above(t))).to_vec();
/// let value = people.release(&selection::top_items(&people.facts(), items, 3, 1, None, &epsilon())?);
/// assert!(value["top"].to_string().contains("above 10"), "{value}");
/// # Ok(())
/// # }
/// ```
pub fn top_items(
    facts: &Facts<'_>,
    items: Vec<(String, Expr)>,
    most: u32,
    k: u32,
    method: Option<Method>,
    epsilon: &Rational,
) -> Result<Prepared, StatisticsError> {
    let (labels, terms): (Vec<String>, Vec<Expr>) = items.into_iter().unzip();
    facts.bounds(&terms)?;
    let fold = Fold::Items {
        items: 0..terms.len(),
        most,
        class: None,
    };
    build(
        facts,
        (terms, fold),
        labels,
        (k, most),
        method,
        epsilon,
        "items",
    )
}

fn labels(cut: &AxisCut, label: &Value) -> Vec<String> {
    if let AxisCut::Levels(levels) = cut {
        return levels.clone();
    }
    let edges: Vec<&Value> = label["edges"].as_array().into_iter().flatten().collect();
    edges
        .windows(2)
        .map(|w| format!("{} to {}", w[0], w[1]))
        .collect()
}

fn build(
    facts: &Facts<'_>,
    (terms, fold): (Vec<Expr>, Fold),
    labels: Vec<String>,
    (k, items): (u32, u32),
    method: Option<Method>,
    epsilon: &Rational,
    of: &str,
) -> Result<Prepared, StatisticsError> {
    positive(epsilon)?;
    let refuse = |name, value: u32, fix: String| {
        Err(StatisticsError::Parameter {
            name,
            value: value.to_string(),
            fix,
        })
    };
    if k == 0 || k as usize > labels.len() {
        let fix = format!("give a number from 1 to {}, the candidates", labels.len());
        return refuse("k", k, fix);
    }
    if items == 0 {
        return refuse(
            "most",
            items,
            "a record counts for at least 1 item".to_owned(),
        );
    }
    let method = method.unwrap_or(Method::by_rule(k, items));
    let context = facts.context;
    let step = Step::new(method, k, items, labels.len(), epsilon, context);
    if let Step::Joint(joint) = &step
        && f64::from(joint.cap) > MOST_LEVELS
    {
        return refuse(
            "k",
            k,
            "the joint mechanism needs fewer or a larger epsilon".to_owned(),
        );
    }
    Ok(Prepared {
        terms,
        mechanism: Box::new(Top {
            of: of.to_owned(),
            error: error(method, labels.len(), k, items, epsilon, context, 0.05),
            labels,
            k,
            method,
            fold,
            step,
        }),
    })
}

/// Levels of the joint mechanism that are still drawn in well under a second.
const MOST_LEVELS: f64 = 20_000.0;

enum Step {
    Select(Selection),
    Joint(JointSelection),
    Counts(Counts),
    Items(ItemCounts),
}

impl Step {
    fn new(
        method: Method,
        k: u32,
        items: u32,
        candidates: usize,
        epsilon: &Rational,
        context: &Context,
    ) -> Self {
        let name = "top".to_owned();
        let stretched = method.stretched(epsilon, k, context);
        let select = |rule| {
            Self::Select(Selection {
                name: name.clone(),
                epsilon: stretched.clone(),
                picks: k,
                rule,
            })
        };
        match method {
            Method::PermuteAndFlip => select(Rule::PermuteAndFlip),
            Method::Peeling => select(Rule::Exponential),
            Method::NoisyMax => select(Rule::NoisyMax {
                sides: Sides::One,
                gaps: true,
            }),
            Method::Joint => {
                // beyond it lies less than e^-20 of the probability
                let far = error(
                    method,
                    candidates,
                    k,
                    items,
                    epsilon,
                    context,
                    (-20.0f64).exp(),
                );
                let cap = crate::common::clipped(far.ceil(), 1, 1 << 30);
                Self::Joint(JointSelection {
                    name,
                    epsilon: stretched,
                    picks: k,
                    cap,
                })
            }
            Method::Counts if items == 1 => Self::Counts(Counts {
                name,
                epsilon: stretched,
            }),
            Method::Counts => Self::Items(ItemCounts {
                name,
                payment: match context.currency {
                    Currency::Concentrated => Payment::Concentrated {
                        rho: epsilon * epsilon / Rational::from(2u8),
                    },
                    _ => Payment::Pure { epsilon: stretched },
                },
                most: items,
                classes: false,
            }),
        }
    }
}

/// # Claim
/// ε-DP: one purchase.
/// # Checked by
/// `selection::{silent_selection_is_exact, selection_errors_hold}`, `composites::all`
struct Top {
    of: String,
    labels: Vec<String>,
    k: u32,
    method: Method,
    fold: Fold,
    step: Step,
    error: f64,
}

impl Mechanism for Top {
    fn kind(&self) -> &'static str {
        "top_k"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(match &self.step {
            Step::Select(s) => s.event(context),
            Step::Joint(s) => s.event(context),
            Step::Counts(s) => s.event(context),
            Step::Items(s) => s.event(context),
        })
    }
    fn first_pass(&self) -> Vec<Fold> {
        vec![self.fold.clone()]
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let (mut gaps, mut counts) = (Vec::new(), Vec::new());
        let mut ranked = |noisy: Vec<i128>| {
            let mut order: Vec<usize> = (0..noisy.len()).collect();
            // ties by the public order of candidates
            order.sort_by_key(|i| std::cmp::Reverse(noisy.get(*i).copied()));
            order.truncate(self.k as usize);
            counts = order
                .iter()
                .filter_map(|i| noisy.get(*i).map(|c| whole(*c)))
                .collect();
            order
        };
        let picked = match &self.step {
            Step::Select(s) => {
                let picks = desk.select(FoldId(0), None, s)?;
                gaps = picks.iter().filter_map(|p| p.gap.map(whole)).collect();
                picks.into_iter().map(|p| p.index).collect()
            }
            Step::Joint(s) => desk.select_jointly(FoldId(0), None, s)?,
            Step::Counts(s) => ranked(desk.counts(FoldId(0), None, s)?),
            Step::Items(s) => ranked(desk.item_counts(FoldId(0), s)?.items),
        };
        let top: Vec<&String> = picked.iter().filter_map(|i| self.labels.get(*i)).collect();
        let some = |v: Vec<Value>| (!v.is_empty()).then_some(v);
        Ok(Answer {
            value: json!({
                "column": self.of,
                "k": self.k,
                "method": self.method.name(),
                "candidates": self.labels.len(),
                "top": top,
                "gaps": some(gaps),
                "counts": some(counts),
                "rank_error_95": number(self.error),
            }),
            error_95: None,
            flags: Vec::new(),
        })
    }
}
