//! Selection of features: what may be chosen, how it is paid, and a logistic regression on what was.

use reticent_accounting::Currency;
use reticent_mechanisms::primitives::{ItemCounts, Payment as CountsPayment};
use reticent_mechanisms::program::{Comparison, Expr};
use reticent_statistics::accuracy::Question;
use reticent_statistics::features::{self, Items, Keep, Scoring};
use reticent_statistics::{DesignSpec, Facts, naive_bayes, selection};
use serde_json::{Value, json};

use super::{Named, at_most, chosen, features as features_of, payment, refuse, words};
use crate::budget::Payment;
use crate::kinds::{SelectSpec, Selected};
use crate::model::Examined;
use crate::outcome::Refusal;
use crate::tokens::Tokens;

/// Chosen features of a logistic regression: with the intercept as many coefficients as it takes.
const MOST_TERMS: usize = 4095;

/// The features of a selection, the outcome, and public facts, over records that meet the filter.
pub(crate) fn candidates(
    named: Named<'_>,
    filter: Option<&Expr>,
    spec: &SelectSpec,
) -> Result<(Items, Expr, Value), Refusal> {
    let label = spec.formula.split_once('~').map_or("", |f| f.0);
    let alone = format!("{label} ~ 1");
    let positive = spec.positive.as_deref();
    named.compile_within(&alone, filter, positive, "label")?;
    let refuse = |what: String| {
        Refusal::request(what).for_key("features").accepting(
            "Name texts (columns of type = \"tokens\") or conditions, for example features = [\"text\", \"(hours > 40)\", \"(education == 'Masters')\"].",
        )
    };
    let design = named.compile_within(&spec.formula, filter, positive, "features")?;
    let out = features_of(named, &design, refuse)?;
    let odd = out.factors.first().map(|f| f.name.as_str());
    if let Some(name) = odd.or_else(|| out.numeric.first().map(|n| n.0.as_str())) {
        return Err(refuse(format!(
            "{name} is no feature that a record has or has not"
        )));
    }
    at_most(spec.keep, out.items.names.len())?;
    let positive = out.classes.last();
    let facts =
        json!({"label": design.response.name(), "positive": positive, "formula": design.formula});
    Ok((out.items, out.label, facts))
}

/// A selection as the statistics take it.
pub(crate) fn select_config(
    spec: &SelectSpec,
    currency: Currency,
    paid: &Payment,
    metadata: Value,
) -> features::Config {
    features::Config {
        payment: payment(currency, paid),
        scoring: spec.scoring,
        keep: spec.keep,
        method: spec.method,
        metadata,
    }
}

/// The error that a selection has, where it is paid in ε alone: of the counts, or of what decides without them.
pub(crate) fn select_question(
    facts: &Facts<'_>,
    named: Named<'_>,
    spec: &SelectSpec,
    paid: &Payment,
) -> Option<Question> {
    let (items, ..) = candidates(named, facts.filter, spec).ok()?;
    if !matches!(
        payment(facts.context.currency, paid),
        CountsPayment::Pure { .. }
    ) {
        return None;
    }
    let features = u32::try_from(items.names.len()).ok()?;
    let by_rule = features::Method::by_rule(spec.scoring, spec.keep, items.most);
    Some(match (spec.method.unwrap_or(by_rule), spec.keep) {
        (features::Method::Picks, Keep::Top(picks)) => Question::TopK {
            candidates: features,
            picks,
            method: Some(selection::Method::PermuteAndFlip),
        },
        (features::Method::SparseVector { answers }, _) => Question::SparseVector {
            answers,
            queries: u64::from(features),
            one_direction: true,
        },
        (method, _) => Question::Features {
            features,
            most: items.most,
            classes: counts_classes(spec.scoring, method),
        },
    })
}

/// Whether a selection counts the classes too.
fn counts_classes(scoring: Scoring, method: features::Method) -> bool {
    matches!(scoring, Scoring::PurityIndex | Scoring::InformationGain)
        || matches!(method, features::Method::Clusters(_))
}

/// What to expect of a selection.
pub(crate) fn select_accuracy(
    facts: &Facts<'_>,
    named: Named<'_>,
    spec: &SelectSpec,
    paid: &Payment,
) -> Option<String> {
    let (items, ..) = candidates(named, facts.filter, spec).ok()?;
    let payment = payment(facts.context.currency, paid);
    let pure = matches!(payment, CountsPayment::Pure { .. });
    let rule = || {
        if pure {
            features::Method::by_rule(spec.scoring, spec.keep, items.most)
        } else {
            features::Method::Counts
        }
    };
    match spec.method.unwrap_or_else(rule) {
        method @ (features::Method::Counts | features::Method::Clusters(_)) => {
            let step = ItemCounts {
                name: "features".to_owned(),
                payment,
                most: items.most,
                classes: counts_classes(spec.scoring, method),
            };
            let noise = naive_bayes::deviation(&step.lattice(facts.context).ok()?);
            Some(format!(
                "the count of each of {} features carries noise of standard deviation {noise:.1}",
                items.names.len()
            ))
        }
        features::Method::Picks | features::Method::SparseVector { .. } => Some(format!(
            "chosen among {} features; their counts are not released",
            items.names.len()
        )),
    }
}

/// The design of a logistic regression on the features that a release chose.
pub(crate) fn design_of_chosen(
    named: Named<'_>,
    formula: &str,
    positive: Option<&str>,
    selected: &Selected,
    found: Option<&Examined>,
) -> Result<DesignSpec, Refusal> {
    let design = named.compile(formula, positive, "features")?;
    let out = features_of(named, &design, refuse)?;
    // names first: of a large vocabulary only the chosen words become terms
    let mut names: Vec<String> = Vec::new();
    let mut texts: Vec<(usize, &Tokens)> = Vec::new();
    let mut conditions: Vec<&Expr> = Vec::new();
    for t in design
        .terms
        .iter()
        .filter(|t| named.text(&t.expr).is_none())
    {
        names.push(t.name.clone());
        conditions.push(&t.expr);
    }
    for text in design.terms.iter().filter_map(|t| named.text(&t.expr)) {
        texts.push((names.len(), text));
        names.extend(words(text).names);
    }
    let possible = names
        .len()
        .min(usize::try_from(selected.most).unwrap_or(usize::MAX));
    if possible > MOST_TERMS {
        return Err(Refusal::request(format!(
            "the selection may keep {possible} features; a logistic regression takes {MOST_TERMS}"
        ))
        .for_key("features")
        .accepting("Write for example keep = { top = 100 } in the select release."));
    }
    let chosen = chosen(Some(selected), found, &names).unwrap_or_default();
    let term = |at: usize| {
        let expr = if let Some(condition) = conditions.get(at) {
            (*condition).clone()
        } else {
            let (first, text) = texts.iter().rev().find(|t| t.0 <= at)?;
            let number = i64::try_from(at - first).ok()?;
            has(text.first..text.first + text.column.most, number)
        };
        Some((names.get(at)?.clone(), expr))
    };
    Ok(DesignSpec {
        intercept: true,
        outcome: out.label,
        terms: chosen.into_iter().filter_map(term).collect(),
        metadata: out.metadata,
    })
}

/// Whether one of the slots holds this number.
fn has(slots: std::ops::Range<usize>, number: i64) -> Expr {
    #[allow(
        clippy::cast_precision_loss,
        reason = "numbers of words are below 2^21"
    )]
    let of = |slot| {
        Expr::Compare(
            Comparison::Equal,
            Box::new(Expr::Column(slot)),
            Box::new(Expr::Constant(number as f64)),
        )
    };
    let either = |a, b| Expr::Or(Box::new(a), Box::new(b));
    slots.map(of).reduce(either).unwrap_or(Expr::Constant(0.0))
}
