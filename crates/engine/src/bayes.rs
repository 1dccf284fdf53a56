//! Naive Bayes from a formula: columns of levels, conditions, numbers and texts, each as it is; and feature selection.

use std::collections::{HashMap, HashSet};

use reticent_accounting::{Currency, Rational};
use reticent_mechanisms::primitives::{ItemCounts, Payment as CountsPayment};
use reticent_mechanisms::program::{Comparison, Expr};
use reticent_mechanisms::rows::{Kind, Schema};
use reticent_statistics::accuracy::Question;
use reticent_statistics::features::{self, Items, Keep, Scoring};
use reticent_statistics::naive_bayes::{self, Config, Factor, Spec, Term};
use reticent_statistics::{DesignSpec, Facts, selection};
use serde_json::{Value, json};

use crate::budget::Payment;
use crate::dataset::Dataset;
use crate::formula::{self, Design, Family, Response};
use crate::kinds::{NaiveBayesSpec, SelectSpec, Selected};
use crate::model::Examined;
use crate::outcome::Refusal;
use crate::tokens::{self, Tokens};

/// Chosen features of a logistic regression: with the intercept as many coefficients as it takes.
const MOST_TERMS: usize = 4095;

/// Slots of texts times features: every slot has a table of all features.
const MOST_ENTRIES: usize = 1 << 25;

/// What a formula may name: the declared columns, and texts by the name of their column.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    /// The declared columns, slots of texts included.
    pub(crate) schema: &'a Schema,
    /// The texts.
    pub(crate) tokens: &'a [Tokens],
}

impl<'a> Named<'a> {
    pub(crate) fn of(dataset: &'a Dataset) -> Self {
        Self {
            schema: &dataset.schema,
            tokens: &dataset.tokens,
        }
    }

    /// Compiles a formula in which texts stand for numbers.
    pub(crate) fn compile(
        &self,
        formula: &str,
        positive: Option<&str>,
        key: &str,
    ) -> Result<Design, Refusal> {
        let schema = tokens::named(self.schema, self.tokens);
        formula::compile(formula, &schema, positive, Family::Logistic)
            .map_err(|e| Refusal::request(e.to_string()).for_key(key))
    }

    /// The same over records that meet the filter, where every value must have finite public bounds.
    pub(crate) fn compile_within(
        &self,
        formula: &str,
        filter: Option<&Expr>,
        positive: Option<&str>,
        key: &str,
    ) -> Result<Design, Refusal> {
        let schema = tokens::named(self.schema, self.tokens);
        formula::compile_within(formula, &schema, filter, positive, Family::Logistic)
            .map_err(|e| Refusal::request(e.to_string()).for_key(key))
    }

    /// The text that a term is.
    fn text(&self, term: &Expr) -> Option<&'a Tokens> {
        let Expr::Column(at) = term else { return None };
        self.tokens.get(at.checked_sub(self.schema.columns.len())?)
    }

    /// The text that has this column of the schema among its slots.
    pub(crate) fn slot(&self, column: usize) -> Option<&'a Tokens> {
        self.tokens.iter().find(|t| t.slots().contains(&column))
    }

    /// Whether an expression computes with a text.
    fn mentions_text(&self, expr: &Expr) -> bool {
        let mut found = false;
        expr.walk(&mut |e| {
            let (Expr::Column(c) | Expr::Code(c) | Expr::Level { column: c, .. }) = e else {
                return;
            };
            found |= *c >= self.schema.columns.len();
        });
        found
    }
}

/// The name of a feature that is a word of a text.
fn word(column: &str, word: &str) -> String {
    format!("{column}={word}")
}

/// The words of a text as features.
fn words(tokens: &Tokens) -> Items {
    let mut items = tokens.column.items(tokens.first);
    for name in &mut items.names {
        *name = word(&tokens.column.name, name);
    }
    items
}

/// Refuses a formula that does more than name columns, over records that meet the filter.
pub(crate) fn check(
    named: Named<'_>,
    filter: Option<&Expr>,
    spec: &NaiveBayesSpec,
) -> Result<(), Refusal> {
    named.compile_within(&spec.formula, filter, one_level(spec), "formula")?;
    let found = self::spec(named, spec, None)?;
    let total = found.items.names.len();
    match spec.keep {
        Some(_) if total == 0 => Err(Refusal::request(
            "there are no conditions or words to choose from; columns of levels and numbers always stay",
        )
        .for_key("keep")
        .accepting("Remove `keep`, or name texts or conditions such as (hours > 40).")),
        Some((_, keep)) => at_most(keep, total),
        None => Ok(()),
    }
}

/// No more features are kept than there are.
fn at_most(keep: Keep, total: usize) -> Result<(), Refusal> {
    match keep {
        Keep::Top(k) if k as usize > total => {
            Err(Refusal::request(format!("there are {total} features"))
                .for_key("keep")
                .with_value(format!("{{ top = {k} }}"))
                .accepting(format!("Write a number from 1 to {total}.")))
        }
        _ => Ok(()),
    }
}

fn refuse(what: String) -> Refusal {
    Refusal::request(what).for_key("formula").accepting(
        "Name columns of levels, numbers, conditions or texts, for example income ~ education + age.",
    )
}

/// Which of the features an earlier release chose; before it is made, as many as it can choose. None: all count.
fn chosen(
    selected: Option<&Selected>,
    found: Option<&Examined>,
    names: &[String],
) -> Option<Vec<usize>> {
    let selected = selected?;
    let list = match found {
        Some(Examined::Value(value)) => value.get("features").and_then(Value::as_array),
        _ => None,
    };
    let Some(list) = list else {
        let most = usize::try_from(selected.most).unwrap_or(usize::MAX);
        return Some((0..names.len().min(most)).collect());
    };
    let places: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
    let at = |name: &Value| places.get(name.as_str()?).copied();
    Some(list.iter().filter_map(at).collect())
}

/// What is told from what; `found` is the release whose choice of features is used, if it is one's.
pub(crate) fn spec(
    named: Named<'_>,
    spec: &NaiveBayesSpec,
    found: Option<&Examined>,
) -> Result<Spec, Refusal> {
    let design = named.compile(&spec.formula, one_level(spec), "formula")?;
    let mut out = features(named, &design, refuse)?;
    if !spec.levels.is_empty() {
        several(named, &design, &spec.levels, &mut out)?;
    }
    if let Some(chosen) = chosen(spec.features.as_ref(), found, &out.items.names) {
        let most = u32::try_from(chosen.len()).unwrap_or(u32::MAX);
        out.items = out.items.restricted(&chosen, most);
        let names: HashSet<&String> = out.items.names.iter().collect();
        out.formula.retain(|t| match t {
            Term::Indicator { feature, .. } => names.contains(feature),
            Term::Linear { .. } | Term::Square { .. } => true,
        });
    }
    Ok(out)
}

/// A level with which the formula can be read: with several any of them does.
fn one_level(spec: &NaiveBayesSpec) -> Option<&str> {
    let first = spec.levels.first();
    spec.positive.as_deref().or(first.map(String::as_str))
}

/// Makes every level of the outcome a class of its own. The counts of a record go to one class whatever their number, so the price
/// and the noise are those of two.
fn several(
    named: Named<'_>,
    design: &Design,
    wanted: &[String],
    out: &mut Spec,
) -> Result<(), Refusal> {
    let refuse = |what: String| Refusal::request(what).for_key("positive");
    let column = match &design.response {
        Response::Binary { column, .. } => *column,
        Response::Numeric { .. } => None,
    };
    let declared = column.and_then(|c| Some((c, levels(named.schema, c)?.1)));
    let Some((column, levels)) = declared else {
        return Err(
            refuse("the outcome is no column of declared levels".to_owned())
                .accepting("Write the one level that counts as positive."),
        );
    };
    let known: Vec<&str> = levels.iter().map(String::as_str).collect();
    if let Some(odd) = wanted.iter().find(|w| !known.contains(&w.as_str())) {
        return Err(refuse(format!("{odd} is no level of the outcome"))
            .accepting(crate::suggest::advice(odd, &known)));
    }
    if let Some(left) = levels.iter().find(|l| !wanted.contains(l)) {
        return Err(
            refuse(format!("the level {left} is not listed")).accepting(format!(
                "List all levels: {}.",
                crate::document::quoted(&known)
            )),
        );
    }
    out.label = Expr::Code(column);
    out.classes = levels.to_vec();
    if let Value::Object(fields) = &mut out.metadata {
        fields.remove("positive");
    }
    Ok(())
}

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
    let out = features(named, &design, refuse)?;
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
    let out = features(named, &design, refuse)?;
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

fn features(
    named: Named<'_>,
    design: &Design,
    refuse: impl Fn(String) -> Refusal,
) -> Result<Spec, Refusal> {
    let schema = named.schema;
    if !design.intercept {
        return Err(refuse(
            "naive Bayes has class sizes; a formula without an intercept says nothing".to_owned(),
        ));
    }
    if named.mentions_text(design.response.expr()) {
        return Err(refuse("a text cannot be the outcome".to_owned()));
    }
    let (negative, positive) = classes(&design.response);
    let mut out = Spec::new(
        design.response.expr().clone(),
        vec![negative, positive.clone()],
    );
    let mut conditions: Vec<(String, Expr)> = Vec::new();
    let mut texts: Vec<&Tokens> = Vec::new();
    let mut squares = String::new();
    for t in &design.terms {
        if let Some(text) = named.text(&t.expr) {
            texts.push(text);
            continue;
        }
        if named.mentions_text(&t.expr) {
            return Err(refuse(format!(
                "{} computes with a text, which is no number",
                t.name
            )));
        }
        match &t.expr {
            Expr::Level { column, level } if !is_condition(schema, *column, *level, &t.name) => {
                let (name, levels) = levels(schema, *column)
                    .ok_or_else(|| refuse(format!("{} has no levels", t.name)))?;
                let of = |l: u32| {
                    let level = levels.get(l as usize);
                    format!("{name}={}", level.map_or("", String::as_str))
                };
                if !out.factors.iter().any(|f| f.name == name) {
                    out.factors.push(Factor {
                        name: name.to_owned(),
                        expr: Expr::Code(*column),
                        levels: levels.to_vec(),
                    });
                }
                out.formula
                    .push(indicator(schema, *column, *level, &t.name, &of, design));
            }
            Expr::Column(column) if named.slot(*column).is_some() => {
                return Err(refuse(format!(
                    "{} numbers a word and is no size; name the text itself",
                    t.name
                )));
            }
            Expr::Column(column) => {
                let name = name(schema, *column);
                let square = format!("I({}^2)", formula::quote_name(name));
                squares.push_str(" + ");
                squares.push_str(&square);
                out.numeric.push((name.to_owned(), t.expr.clone()));
                out.formula.push(Term::Linear {
                    term: t.name.clone(),
                    feature: name.to_owned(),
                });
                out.formula.push(Term::Square {
                    term: square,
                    feature: name.to_owned(),
                });
            }
            Expr::Level { .. }
            | Expr::Compare(..)
            | Expr::And(..)
            | Expr::Or(..)
            | Expr::Not(_) => {
                conditions.push((t.name.clone(), t.expr.clone()));
                out.formula.push(Term::Indicator {
                    term: t.name.clone(),
                    feature: t.name.clone(),
                    reference: None,
                });
            }
            _ => {
                return Err(refuse(format!(
                    "{} is no column as it stands, and naive Bayes takes features one by one",
                    t.name
                )));
            }
        }
    }
    fit_in_memory(&texts, conditions.len(), &refuse)?;
    let most = u32::try_from(conditions.len()).unwrap_or(u32::MAX);
    out.items = Items::indicators(conditions, most);
    add_words(&mut out, &texts);
    out.metadata = metadata(schema, design, &texts, &positive, &squares);
    Ok(out)
}

/// Refuses more words and features than memory should hold.
fn fit_in_memory(
    texts: &[&Tokens],
    conditions: usize,
    refuse: &impl Fn(String) -> Refusal,
) -> Result<(), Refusal> {
    let sizes = texts
        .iter()
        .map(|t| (t.column.most, t.column.vocabulary.len() as usize));
    let (slots, features) = sizes.fold((conditions, conditions), |sum, of| {
        (sum.0.saturating_add(of.0), sum.1.saturating_add(of.1))
    });
    if !texts.is_empty() && slots.saturating_mul(features) > MOST_ENTRIES {
        return Err(refuse(format!(
            "{slots} words of a record times {features} features are more than {MOST_ENTRIES}; declare a smaller `most`, fewer words or fewer buckets"
        )));
    }
    Ok(())
}

/// Adds every word of the texts as a feature.
fn add_words(out: &mut Spec, texts: &[&Tokens]) {
    for text in texts {
        let items = words(text);
        out.formula
            .extend(items.names.iter().map(|name| Term::Indicator {
                term: name.clone(),
                feature: name.clone(),
                reference: None,
            }));
        out.items = if out.items.names.is_empty() {
            items
        } else {
            out.items.clone().and(items)
        };
    }
}

/// Whether a level's indicator was written as a condition, `(sex == "Male")`, and is not one of a column's dummies, whose names end with the level.
fn is_condition(schema: &Schema, column: usize, level: u32, term: &str) -> bool {
    let text = levels(schema, column)
        .and_then(|l| l.1.get(level as usize))
        .map_or("", String::as_str);
    term.contains(" == ") && (!term.ends_with(text) || term.ends_with(&format!("\"{text}\"TRUE")))
}

/// The dummy of a level. Of two levels the first has no count of its own: the second's weight says all.
fn indicator(
    schema: &Schema,
    column: usize,
    level: u32,
    term: &str,
    of: &impl Fn(u32) -> String,
    design: &Design,
) -> Term {
    let levels = levels(schema, column).map_or(0, |l| l.1.len());
    let dummies: Vec<u32> = design
        .terms
        .iter()
        .filter_map(|t| match t.expr {
            Expr::Level { column: c, level } if c == column => Some(level),
            _ => None,
        })
        .collect();
    let all = u32::try_from(levels).unwrap_or(u32::MAX);
    let reference = (0..all).find(|l| !dummies.contains(l));
    if levels == 2 && level == 0 {
        // counted is the second level, which the formula takes as the reference
        return Term::Indicator {
            term: term.to_owned(),
            feature: String::new(),
            reference: Some(of(1)),
        };
    }
    Term::Indicator {
        term: term.to_owned(),
        feature: of(level),
        reference: reference.filter(|_| levels > 2).map(of),
    }
}

fn name(schema: &Schema, column: usize) -> &str {
    schema.columns.get(column).map_or("", |c| c.name.as_str())
}

fn levels(schema: &Schema, column: usize) -> Option<(&str, &[String])> {
    match &schema.columns.get(column)?.kind {
        Kind::Levels { levels, .. } => Some((name(schema, column), levels)),
        _ => None,
    }
}

fn classes(response: &Response) -> (String, String) {
    let Response::Binary {
        levels, positive, ..
    } = response
    else {
        return ("0".to_owned(), "1".to_owned());
    };
    let yes = levels
        .get(*positive as usize)
        .cloned()
        .unwrap_or_else(|| "1".to_owned());
    let no = match levels.as_slice() {
        [first, second] if *first == yes => second.clone(),
        [first, _] => first.clone(),
        _ => format!("not {yes}"),
    };
    (no, yes)
}

/// The public facts that let the released model predict by itself.
fn metadata(
    schema: &Schema,
    design: &Design,
    texts: &[&Tokens],
    positive: &str,
    squares: &str,
) -> Value {
    let mut used = Vec::new();
    let mut visit = |e: &Expr| match e {
        Expr::Column(c) | Expr::Code(c) | Expr::Level { column: c, .. } => used.push(*c),
        _ => {}
    };
    design.terms.iter().for_each(|t| t.expr.walk(&mut visit));
    design.response.expr().walk(&mut visit);
    for t in texts {
        used.extend(t.first..t.first + t.column.most);
    }
    used.sort_unstable();
    used.dedup();
    let columns = used.iter().filter_map(|c| schema.columns.get(*c).cloned());
    let mut facts = json!({
        "formula": format!("{}{squares}", design.formula),
        "response": design.response.name(),
        "positive": positive,
        "columns": Schema { columns: columns.collect() },
    });
    if let (false, Value::Object(fields)) = (texts.is_empty(), &mut facts) {
        let about = texts.iter().map(|t| tokens::public(&t.column));
        fields.insert("texts".to_owned(), about.collect());
    }
    facts
}

fn payment(currency: Currency, payment: &Payment) -> CountsPayment {
    match currency {
        Currency::Concentrated => CountsPayment::Concentrated {
            rho: payment.claim.amount.clone(),
        },
        Currency::Approximate if payment.delta > Rational::ZERO => CountsPayment::Approximate {
            epsilon: payment.epsilon.clone(),
            delta: payment.delta.clone(),
        },
        _ => CountsPayment::Pure {
            epsilon: payment.epsilon.clone(),
        },
    }
}

/// How it is paid and smoothed.
pub(crate) fn config(spec: &NaiveBayesSpec, currency: Currency, paid: &Payment) -> Config {
    Config {
        smoothing: spec.smoothing,
        keep: spec.keep,
        ..Config::new(payment(currency, paid))
    }
}

/// What to expect of the counts.
pub(crate) fn accuracy(
    facts: &Facts<'_>,
    named: Named<'_>,
    spec: &NaiveBayesSpec,
    paid: &Payment,
) -> Option<String> {
    let spec = self::spec(named, spec, None).ok()?;
    let factors = u32::try_from(spec.factors.len()).ok()?;
    // an upper bound: numeric features take two shares each
    let shares = factors + spec.items.most + 2 * u32::try_from(spec.numeric.len()).ok()?;
    let step = ItemCounts {
        name: "counts".to_owned(),
        payment: payment(facts.context.currency, paid),
        most: shares,
        classes: true,
    };
    let noise = naive_bayes::deviation(&step.lattice(facts.context).ok()?);
    Some(format!(
        "each count by class carries noise of standard deviation {noise:.1}"
    ))
}

#[cfg(test)]
mod tests {
    use reticent_accounting::Relation;
    use reticent_mechanisms::program::RowProgram;
    use reticent_mechanisms::rows::{Batch, Cells, Column, Missing};
    use reticent_mechanisms::source::Memory;
    use reticent_mechanisms::{Context, Simulated, Unit, simulate};
    use reticent_noise::{Noise, Seeded, Silent};
    use reticent_statistics::naive_bayes::Classifier;

    use super::*;
    use crate::model::Model;

    fn schema() -> Schema {
        let column = |name: &str, kind| Column {
            name: name.to_owned(),
            kind,
            missing: Missing::Drop,
        };
        let levels = |of: &[&str]| Kind::Levels {
            levels: of.iter().map(|l| (*l).to_owned()).collect(),
            other: None,
        };
        let number = |lower, upper| Kind::Real { lower, upper };
        Schema {
            columns: vec![
                column("y", levels(&["no", "yes"])),
                column("three", levels(&["a", "b", "c"])),
                column("two", levels(&["p", "q"])),
                column("x value", number(0.0, 10.0)),
                column("z", number(-1.0, 1.0)),
            ],
        }
    }

    fn spec_of(formula: &str) -> NaiveBayesSpec {
        NaiveBayesSpec {
            formula: formula.to_owned(),
            positive: None,
            levels: Vec::new(),
            smoothing: Some(1.0),
            features: None,
            keep: None,
        }
    }

    fn named(schema: &Schema) -> Named<'_> {
        Named {
            schema,
            tokens: &[],
        }
    }

    /// 500 records, as codes.
    fn records() -> Vec<[u32; 5]> {
        let mut random = Seeded::new(3);
        let mut next = |n: u64| u32::try_from(random.bits() % n).unwrap();
        (0..500)
            .map(|_| {
                let y = next(2);
                [
                    y,
                    (next(3) + y) % 3,
                    next(2 + u64::from(y)) % 2,
                    next(6) + 2 * y,
                    next(10),
                ]
            })
            .collect()
    }

    /// The numbers of a record.
    fn numbers(r: &[u32; 5]) -> (f64, f64) {
        (f64::from(r[3]), f64::from(r[4]) / 5.0 - 1.0)
    }

    /// What is released without noise.
    fn released(schema: &Schema, spec: &NaiveBayesSpec) -> Value {
        let rows = records();
        let codes = |i: usize| Cells::Code(rows.iter().map(|r| r[i]).collect());
        let reals = |f: &dyn Fn(&[u32; 5]) -> f64| Cells::Real(rows.iter().map(f).collect());
        let batch = Batch::new(
            500,
            vec![
                codes(0),
                codes(1),
                codes(2),
                reals(&|r| numbers(r).0),
                reals(&|r| numbers(r).1),
            ],
        );
        let source = Memory::new(schema.clone().into(), vec![batch]);
        let context = Context::records(Relation::AddRemove);
        let facts = Facts {
            schema,
            filter: None,
            context: &context,
            rows: None,
            positive_rate: None,
        };
        let spec = self::spec(named(schema), spec, None).unwrap();
        let config = Config {
            smoothing: Some(1.0),
            ..Config::new(CountsPayment::Pure {
                epsilon: Rational::from(1u8),
            })
        };
        let prepared = naive_bayes::prepare(&facts, &spec, config).unwrap();
        let program = RowProgram {
            terms: prepared.terms,
            ..RowProgram::default()
        };
        let mechanism = prepared.mechanism.as_ref();
        let mut silent = Silent;
        let Simulated((answer, _)) = simulate(
            &source,
            Unit::Row,
            &context,
            &program,
            mechanism,
            &mut silent,
        )
        .unwrap();
        answer.value
    }

    /// The features that the record has, and its numbers, as the classifier takes them.
    fn features_of(classifier: &Classifier, r: &[u32; 5]) -> (Vec<usize>, Vec<f64>) {
        let (x, z) = numbers(r);
        let names = [
            format!("y={}", ["no", "yes"][r[0] as usize]),
            format!("three={}", ["a", "b", "c"][r[1] as usize]),
            format!("two={}", ["p", "q"][r[2] as usize]),
        ];
        let held = |w: &str| {
            names.iter().any(|n| n == w)
                || (w.contains('>') && z > 0.0)
                || (w.contains("==") && r[1] == 1)
        };
        let has = (0..classifier.weights.len())
            .filter(|i| held(&classifier.weights[*i].name))
            .collect();
        let values = classifier.numeric.iter();
        (
            has,
            values.map(|n| if n.name == "z" { z } else { x }).collect(),
        )
    }

    fn cells(r: &[u32; 5]) -> crate::predict::Cells {
        let (x, z) = numbers(r);
        let cells = [f64::from(r[0]), f64::from(r[1]), f64::from(r[2]), x, z];
        cells.into_iter().enumerate().collect()
    }

    /// The model read back from a release predicts what the classifier does, record by record: all levels, also with another
    /// reference, conditions, numbers and their squares.
    #[test]
    fn the_released_model_is_the_classifier() {
        let schema = schema();
        for formula in [
            "y ~ three + two + `x value` + (z > 0)",
            "y ~ (three == 'b') + two + `x value` + (z > 0)",
            "y ~ relevel(three, ref = \"b\") + relevel(two, ref = \"q\") + z",
        ] {
            let value = released(&schema, &spec_of(formula));
            let classifier = Classifier::read(&value).unwrap();
            let model = Model::read(&value).unwrap();
            assert_eq!(model.positive.as_deref(), Some("yes"));
            let predictor = model.linear_predictor(&model.design(&schema).unwrap());
            for r in &records() {
                let (has, values) = features_of(&classifier, r);
                let scores = classifier.scores(&has, &values);
                let odds = crate::predict::evaluate(&predictor, &cells(r));
                assert!(
                    (odds - (scores[1] - scores[0])).abs() < 1e-8,
                    "{formula} {r:?}"
                );
            }
        }
    }

    /// The same of three classes, in whatever order the plan lists them; their price is that of two.
    #[test]
    fn several_classes_are_the_classifier() {
        let schema = schema();
        for formula in [
            "three ~ y + two + `x value` + (z > 0)",
            "three ~ relevel(two, ref = \"q\") + z",
            "three ~ 1",
        ] {
            let spec = NaiveBayesSpec {
                levels: ["c", "a", "b"].map(str::to_owned).to_vec(),
                ..spec_of(formula)
            };
            let value = released(&schema, &spec);
            assert!(value.get("positive").is_none() && value.get("terms").is_none());
            let classifier = Classifier::read(&value).unwrap();
            assert_eq!(classifier.classes, ["a", "b", "c"]);
            let model = crate::predict::Classes::read(&value, &schema)
                .unwrap()
                .unwrap();
            for r in &records() {
                let (has, values) = features_of(&classifier, r);
                let expected = classifier.probabilities(&has, &values);
                for (p, q) in model.probabilities(&cells(r)).iter().zip(&expected) {
                    assert!((p - q).abs() < 1e-9, "{formula} {r:?}");
                }
            }
            assert!(Model::read(&value).is_err());
        }
        let refused = |formula: &str, levels: &[&str]| {
            let spec = NaiveBayesSpec {
                levels: levels.iter().map(|l| (*l).to_owned()).collect(),
                ..spec_of(formula)
            };
            check(named(&schema), None, &spec).unwrap_err().to_string()
        };
        let message = refused("three ~ two", &["a", "b"]);
        assert!(message.contains("the level c is not listed"), "{message}");
        let message = refused("three ~ two", &["a", "b", "d"]);
        assert!(message.contains("d is no level"), "{message}");
        let message = refused("(z > 0) ~ two", &["TRUE", "FALSE"]);
        assert!(message.contains("declared levels"), "{message}");
    }

    #[test]
    fn formulas_that_do_more_are_refused() {
        for formula in [
            "y ~ three:two",
            "y ~ log1p(z + 2)",
            "y ~ I(z^2)",
            "y ~ 0 + three",
            "y ~ w",
        ] {
            let refusal = check(named(&schema()), None, &spec_of(formula)).unwrap_err();
            assert!(!refusal.to_string().is_empty(), "{formula}");
        }
    }
}
