//! Naive Bayes from a formula: columns of levels, conditions, numbers and texts, each as it is. Feature selection: [`selection`].

pub(crate) mod selection;

use std::collections::{HashMap, HashSet};

use reticent_accounting::{Currency, Rational};
use reticent_mechanisms::primitives::{ItemCounts, Payment as CountsPayment};
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::rows::{Kind, Schema};
use reticent_statistics::Facts;
use reticent_statistics::features::{Items, Keep};
use reticent_statistics::naive_bayes::{self, Config, Factor, Spec, Term};
use serde_json::{Value, json};

use crate::budget::Payment;
use crate::dataset::Dataset;
use crate::formula::{self, Design, Family, Response};
use crate::kinds::{NaiveBayesSpec, Selected};
use crate::model::Examined;
use crate::outcome::Refusal;
use crate::tokens::{self, Tokens};

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
mod tests;
