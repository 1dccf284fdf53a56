//! Stoddard, Chen and Machanavajjhala (2014), "Differentially private algorithms for empirical machine learning": figures
//! 1 to 5, 7, 8 and Table 1 on the SMS collection, a sample of tweets and Reuters.
//!
//! Texts are read from `$RETICENT_DATA`; the short form makes its own. The vocabulary is that of the public data, as in the paper. Their private threshold
//! testing is not private; the sparse vector technique stands in its place, and beside it selection by the counts
//! that naive Bayes buys anyway.

use std::collections::HashMap;
use std::path::PathBuf;

use rayon::prelude::*;
use reticent_accounting::{Rational, Relation};
use reticent_engine::text::{Choice, ENGLISH, Labelled, TextColumn, Tokenizer, Vocabulary};
use reticent_laws::{Seeded, Silent};
use reticent_mechanisms::primitives::Payment;
use reticent_mechanisms::program::{Expr, Interval, RowProgram};
use reticent_mechanisms::rows::Schema;
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Context, Simulated, Unit, simulate};
use reticent_noise::Noise;
use reticent_statistics::features::{self, Keep, Method, Scoring};
use reticent_statistics::naive_bayes::{self, Classifier, Spec};
use reticent_statistics::{DesignSpec, Facts, Prepared, logistic};
use serde_json::{Value, json};

use super::empirical_roc::{Curve, Scored, error};
use crate::real;
use crate::study::{Findings, Form, StudyError};

/// Seed of all runs; the run is the stream.
pub const SEED: u64 = 2_014;
/// Folds of the cross-validation.
const FOLDS: usize = 10;
/// Words of a text that count, and how many are sampled for "sampling".
const MOST: usize = 20;
const SAMPLED: u32 = 10;

/// A set of texts.
pub struct Texts {
    /// Name in the paper.
    pub name: &'static str,
    labels: [&'static str; 2],
    records: Vec<(u32, String)>,
    column: TextColumn,
    /// Of every record, the words that count and all it has.
    labelled: Labelled,
    all: Vec<Vec<usize>>,
}

/// Reads a set; at most `most` of its records.
fn texts(
    root: &std::path::Path,
    (name, file): (&'static str, &str),
    labels: [&'static str; 2],
    most: usize,
    keep: impl Fn(usize) -> bool,
) -> Result<Texts, StudyError> {
    let path = root.join(file);
    let fail = |e: std::io::Error| StudyError::Example(format!("{}: {e}", path.display()));
    let bytes = std::fs::read(&path).map_err(fail)?;
    let mut text = String::new();
    if file.ends_with("gz") {
        let mut plain = flate2::read::MultiGzDecoder::new(bytes.as_slice());
        std::io::Read::read_to_string(&mut plain, &mut text).map_err(fail)?;
    } else {
        text = String::from_utf8_lossy(&bytes).into_owned();
    }
    let records: Vec<(u32, String)> = text
        .lines()
        .enumerate()
        .filter(|(i, _)| keep(*i))
        .filter_map(|(_, line)| {
            let (label, text) = line.split_once('\t')?;
            let code = labels.iter().position(|l| *l == label)?;
            Some((u32::try_from(code).ok()?, text.to_owned()))
        })
        .take(most)
        .collect();
    Ok(Texts::new(name, labels, records))
}

impl Texts {
    /// Texts with the number of their label.
    pub fn new(name: &'static str, labels: [&'static str; 2], records: Vec<(u32, String)>) -> Self {
        let tokenizer = Tokenizer::new(ENGLISH);
        let words = records.iter().flat_map(|(_, t)| tokenizer.words(t));
        let vocabulary = Vocabulary::words(words.collect::<Vec<_>>());
        let column = TextColumn {
            name: "text".to_owned(),
            tokenizer,
            vocabulary,
            most: MOST,
            choice: Choice::Sampled {
                salt: "2014".to_owned(),
            },
        };
        let mut labelled = Labelled::new(&labels, &column);
        let wide = TextColumn {
            most: usize::MAX,
            ..column.clone()
        };
        let mut all = Vec::with_capacity(records.len());
        for (label, text) in &records {
            labelled.push(Some(*label), &column.encode(text));
            all.push(wide.encode(text).into_iter().map(|w| w as usize).collect());
        }
        Self {
            name,
            labels,
            records,
            column,
            labelled,
            all,
        }
    }

    /// Label and words of every record, each word once.
    pub(crate) fn labelled_words(&self) -> impl Iterator<Item = (usize, &[usize])> {
        let words = self.all.iter().map(Vec::as_slice);
        self.records.iter().map(|r| r.0 as usize).zip(words)
    }

    /// The fold of a record: a seeded shuffle.
    fn fold(i: usize) -> usize {
        let mut noise = Seeded::stream(SEED, i as u64);
        usize::try_from(noise.bits() % FOLDS as u64).unwrap_or(0)
    }

    fn schema(&self) -> &Schema {
        &self.labelled.schema
    }

    fn spec(&self, items: features::Items) -> Spec {
        Spec {
            items,
            ..Spec::new(Expr::Code(0), self.labels.map(str::to_owned).to_vec())
        }
    }

    /// Share of the records of a fold that a classifier gets right. `chosen` are the words of its weights.
    fn accuracy(&self, fold: usize, model: &Classifier, chosen: &[usize]) -> f64 {
        let place: HashMap<usize, usize> =
            chosen.iter().enumerate().map(|(i, w)| (*w, i)).collect();
        self.right(fold, |words| {
            let has: Vec<usize> = words.iter().filter_map(|w| place.get(w).copied()).collect();
            model.predict(&has, &[])
        })
    }

    fn right(&self, fold: usize, predict: impl Fn(&[usize]) -> usize) -> f64 {
        let (mut right, mut n) = (0, 0);
        for (i, ((label, _), words)) in self.records.iter().zip(&self.all).enumerate() {
            if Self::fold(i) == fold {
                n += 1;
                right += usize::from(predict(words) == *label as usize);
            }
        }
        real(right) / real(n.max(1))
    }
}

fn context() -> Context {
    Context::records(Relation::AddRemove)
}

pub(crate) fn facts<'a>(schema: &'a Schema, context: &'a Context) -> Facts<'a> {
    Facts {
        schema,
        filter: None,
        context,
        rows: Some(5000.0),
        positive_rate: None,
    }
}

pub(crate) fn release(
    source: &Memory,
    context: &Context,
    prepared: &Prepared,
    noise: &mut dyn Noise,
) -> Result<Value, StudyError> {
    let program = RowProgram {
        terms: prepared.terms.clone(),
        ..RowProgram::default()
    };
    let mechanism = prepared.mechanism.as_ref();
    let Simulated((answer, _)) = simulate(source, Unit::Row, context, &program, mechanism, noise)
        .map_err(StudyError::release)?;
    Ok(answer.value)
}

fn percent(p: u32) -> Rational {
    Rational::from(p) / Rational::from(100u8)
}

/// How features are chosen before the fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    /// All words.
    All,
    /// A release of its own, with this share of ε in percent.
    Select(Scoring, Method, Keep, u32),
    /// By the counts of the fit.
    Free(Scoring, Keep),
}

/// One way to get a classifier: how features are chosen, words of a text that count, noise or none.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Selection.
    pub how: How,
    /// Words of a text that count.
    pub most: u32,
    /// ε in percent; none: without noise.
    pub epsilon: Option<u32>,
}

/// Words chosen and the classifier on them, from the records outside a fold.
fn fit(
    texts: &Texts,
    fold: usize,
    way: Way,
    noise: &mut dyn Noise,
) -> Result<(Vec<usize>, Classifier), StudyError> {
    let source = texts.labelled.source(|i| Texts::fold(i) != fold);
    let context = context();
    let facts = facts(texts.schema(), &context);
    let words = texts.column.items(1);
    let everything: Vec<usize> = (0..words.names.len()).collect();
    let items = words.restricted(&everything, way.most);
    let total = percent(way.epsilon.unwrap_or(100));
    let (mut chosen, mut left) = (everything, total.clone());
    let numbers: HashMap<&str, usize> = words
        .names
        .iter()
        .enumerate()
        .map(|(i, n)| (n.as_str(), i))
        .collect();
    let of_names = |names: Vec<&str>| -> Vec<usize> {
        names
            .iter()
            .filter_map(|n| numbers.get(n).copied())
            .collect()
    };
    if let How::Select(scoring, method, keep, share) = way.how {
        let part = &total * percent(share);
        left = &total - &part;
        let config = features::Config {
            payment: Payment::Pure { epsilon: part },
            scoring,
            keep,
            method: Some(method),
            metadata: json!({}),
        };
        let prepared = features::select(&facts, &items, &Expr::Code(0), config)
            .map_err(StudyError::release)?;
        let value = release(&source, &context, &prepared, noise)?;
        let names = super::list(&value, "features")
            .iter()
            .filter_map(Value::as_str);
        chosen = of_names(names.collect());
    }
    let config = naive_bayes::Config {
        smoothing: way.epsilon.is_none().then_some(1.0),
        keep: match way.how {
            How::Free(scoring, keep) => Some((scoring, keep)),
            _ => None,
        },
        ..naive_bayes::Config::new(Payment::Pure { epsilon: left })
    };
    let spec = texts.spec(words.restricted(&chosen, way.most));
    let prepared = naive_bayes::prepare(&facts, &spec, config).map_err(StudyError::release)?;
    let value = release(&source, &context, &prepared, noise)?;
    let model = Classifier::read(&value)
        .ok_or_else(|| StudyError::Release("no classifier in the release".to_owned()))?;
    let used = of_names(model.weights.iter().map(|w| w.name.as_str()).collect());
    Ok((used, model))
}

/// Mean accuracy over the folds, `runs` times.
pub fn accuracy(texts: &Texts, way: Way, runs: u32) -> Result<f64, StudyError> {
    let jobs: Vec<(u32, usize)> = (0..runs)
        .flat_map(|r| (0..FOLDS).map(move |f| (r, f)))
        .collect();
    let all = jobs
        .par_iter()
        .map(|(run, fold)| {
            let stream = u64::from(*run) * 1000 + *fold as u64;
            let mut seeded = Seeded::stream(SEED + 1, stream);
            let mut silent = Silent;
            let noise: &mut dyn Noise = if way.epsilon.is_some() {
                &mut seeded
            } else {
                &mut silent
            };
            let (chosen, model) = fit(texts, *fold, way, noise)?;
            Ok(texts.accuracy(*fold, &model, &chosen))
        })
        .collect::<Result<Vec<f64>, StudyError>>()?;
    Ok(all.iter().sum::<f64>() / real(all.len()))
}

/// Share of the larger class.
fn majority(texts: &Texts) -> f64 {
    let ones = texts.records.iter().filter(|r| r.0 == 1).count();
    let n = texts.records.len();
    real(ones.max(n - ones)) / real(n)
}

/// Figure 2: logistic regression on the k words of a selection.
#[allow(clippy::too_many_lines, reason = "one experiment, step by step")]
fn logistic_accuracy(
    texts: &Texts,
    selection: Option<(Scoring, Method, u32)>,
    k: u32,
    runs: u32,
) -> Result<f64, StudyError> {
    let jobs: Vec<(u32, usize)> = (0..runs)
        .flat_map(|r| (0..FOLDS).map(move |f| (r, f)))
        .collect();
    let all = jobs
        .par_iter()
        .map(|(run, fold)| {
            let mut noise = Seeded::stream(SEED + 2, u64::from(*run) * 1000 + *fold as u64);
            let (scoring, method, share) =
                selection.unwrap_or((Scoring::TotalCount, Method::Counts, 0));
            let keep = Keep::Top(k);
            let source = texts.labelled.source(|i| Texts::fold(i) != *fold);
            let context = context();
            let facts = facts(texts.schema(), &context);
            let words = texts.column.items(1);
            let payment = Payment::Pure {
                epsilon: percent(if share == 0 { 100 } else { share }),
            };
            let config = features::Config {
                payment,
                scoring,
                keep,
                method: Some(method),
                metadata: json!({}),
            };
            let prepared = features::select(&facts, &words, &Expr::Code(0), config)
                .map_err(StudyError::release)?;
            // without a share the words are the true ones, as the paper took its 5000
            let value = if share == 0 {
                release(&source, &context, &prepared, &mut Silent)?
            } else {
                release(&source, &context, &prepared, &mut noise)?
            };
            let names: Vec<&str> = super::list(&value, "features")
                .iter()
                .filter_map(Value::as_str)
                .collect();
            let chosen: Vec<usize> = words
                .names
                .iter()
                .enumerate()
                .filter(|(_, n)| names.contains(&n.as_str()))
                .map(|(i, _)| i)
                .collect();
            let only = words.restricted(&chosen, u32::try_from(MOST).unwrap_or(20));
            let unit = Interval {
                lower: 0.0,
                upper: 1.0,
            };
            let indicator = |i: usize| {
                let mut weights = vec![0.0; chosen.len()];
                weights[i] = 1.0;
                only.weighted(&weights).clamp(unit)
            };
            let design = DesignSpec {
                intercept: true,
                terms: (0..chosen.len())
                    .map(|i| (format!("w{i}"), indicator(i)))
                    .collect(),
                outcome: Expr::Code(0),
                metadata: json!({}),
            };
            let config = logistic::Config {
                scaling: logistic::Scaling::None {
                    data_norm: real(MOST).sqrt(),
                },
                clip: logistic::Clip::None,
                ..logistic::Config::new(percent(100 - share))
            };
            let prepared =
                logistic::prepare(&facts, &design, &config).map_err(StudyError::release)?;
            let value = release(&source, &context, &prepared, &mut noise)?;
            let terms: HashMap<&str, f64> = super::list(&value, "terms")
                .iter()
                .filter_map(|t| Some((t["name"].as_str()?, t["estimate"].as_f64()?)))
                .collect();
            let place: HashMap<usize, usize> =
                chosen.iter().enumerate().map(|(i, w)| (*w, i)).collect();
            let intercept = terms.get("(Intercept)").copied().unwrap_or(0.0);
            Ok(texts.right(*fold, |has| {
                let each = has.iter().filter_map(|w| place.get(w));
                let sum: f64 = each
                    .map(|i| terms.get(format!("w{i}").as_str()).copied().unwrap_or(0.0))
                    .sum();
                usize::from(intercept + sum > 0.0)
            }))
        })
        .collect::<Result<Vec<f64>, StudyError>>()?;
    Ok(all.iter().sum::<f64>() / real(all.len()))
}

/// Figure 3: F1 of the words with a total count above a threshold.
pub fn f1(
    texts: &Texts,
    threshold: f64,
    method: Method,
    epsilon: u32,
    runs: u32,
) -> Result<f64, StudyError> {
    let source = texts.labelled.source(|_| true);
    let context = context();
    let facts = facts(texts.schema(), &context);
    let words = texts.column.items(1);
    let found = |noise: &mut dyn Noise, method| -> Result<Vec<String>, StudyError> {
        let config = features::Config {
            payment: Payment::Pure {
                epsilon: percent(epsilon),
            },
            scoring: Scoring::TotalCount,
            keep: Keep::Above(threshold),
            method: Some(method),
            metadata: json!({}),
        };
        let prepared = features::select(&facts, &words, &Expr::Code(0), config)
            .map_err(StudyError::release)?;
        let value = release(&source, &context, &prepared, noise)?;
        let names = super::list(&value, "features").iter();
        Ok(names.filter_map(Value::as_str).map(str::to_owned).collect())
    };
    let truth = found(&mut Silent, Method::Counts)?;
    let answers = u32::try_from(truth.len().max(1)).unwrap_or(u32::MAX);
    let method = match method {
        // the number of answers is the true one: better than any analyst could choose it
        Method::SparseVector { .. } => Method::SparseVector { answers },
        other => other,
    };
    let each = (0..runs).into_par_iter().map(|run| {
        let got = found(&mut Seeded::stream(SEED + 3, u64::from(run)), method)?;
        let both = got.iter().filter(|w| truth.contains(w)).count();
        Ok(2.0 * real(both) / real((got.len() + truth.len()).max(1)))
    });
    let all = each.collect::<Result<Vec<f64>, StudyError>>()?;
    Ok(all.iter().sum::<f64>() / real(all.len()))
}

/// The test records of one fold, scored by the classifier of the others without noise.
fn scored(texts: &Texts) -> Result<Scored, StudyError> {
    let way = Way {
        how: How::All,
        most: 20,
        epsilon: None,
    };
    let (_, model) = fit(texts, 0, way, &mut Silent)?;
    let test = (0..texts.records.len()).filter(|i| Texts::fold(*i) == 0);
    Ok(test
        .filter_map(|i| {
            let p = model.probabilities(texts.all.get(i)?, &[]);
            Some((*p.get(1)?, texts.records.get(i)?.0 == 1))
        })
        .collect())
}

fn share(x: f64) -> String {
    format!("{x:.3}")
}

/// The folder of the data.
fn root() -> Result<PathBuf, StudyError> {
    std::env::var_os("RETICENT_DATA").map(PathBuf::from).ok_or_else(|| {
        StudyError::Example(
            "RETICENT_DATA must name a folder with sms_spam/sms.tsv and its neighbours (papers/README.md)".to_owned(),
        )
    })
}

/// Made-up texts for the short form, which needs no data: 3000 texts of 15 words from 4000, of which 20 are three times as
/// frequent under either label; one text in five has the first label.
fn made_up() -> Texts {
    const WORDS: u64 = 4000;
    const TELLING: u64 = 20;
    let mut noise = Seeded::stream(SEED, u64::MAX);
    let word = |w: u64| -> String {
        let letters = std::iter::successors(Some(w + 1000), |w| (*w >= 26).then_some(w / 26));
        let letter = |w: u64| char::from(b'a' + u8::try_from(w % 26).unwrap_or(0));
        std::iter::once('q').chain(letters.map(letter)).collect()
    };
    let records = (0..3000)
        .map(|_| {
            let label = u32::from(noise.bits() % 5 != 0);
            let words: Vec<String> = (0..15)
                .map(|_| {
                    let telling = noise.bits() % 3 == 0;
                    let pick = noise.bits();
                    word(if telling {
                        // Of the telling words, three in four belong to the label.
                        let own = u64::from(label) ^ u64::from(noise.bits() % 4 == 0);
                        own * TELLING + pick % TELLING
                    } else {
                        2 * TELLING + pick % (WORDS - 2 * TELLING)
                    })
                })
                .collect();
            (label, words.join(" "))
        })
        .collect();
    Texts::new("made up", ["spam", "ham"], records)
}

/// The three sets, or made-up texts in the short form.
pub fn sets(form: Form) -> Result<Vec<Texts>, StudyError> {
    if form == Form::Quick {
        return Ok(vec![made_up()]);
    }
    let root = root()?;
    let sms = texts(
        &root,
        ("SMS", "sms_spam/sms.tsv"),
        ["spam", "ham"],
        6000,
        |_| true,
    )?;
    let tweets = ("TWITTER", "twitter_sentiment140/tweets.tsv.gz");
    let tweets = texts(&root, tweets, ["negative", "positive"], 7304, |_| true)?;
    let meta = std::fs::read(root.join("reuters21578/meta.tsv.gz"))
        .map_err(|e| StudyError::Example(format!("meta.tsv.gz: {e}")))?;
    let mut plain = String::new();
    std::io::Read::read_to_string(
        &mut flate2::read::MultiGzDecoder::new(meta.as_slice()),
        &mut plain,
    )
    .map_err(|e| StudyError::Example(format!("meta.tsv.gz: {e}")))?;
    let subset: Vec<bool> = plain
        .lines()
        .skip(1)
        .map(|l| l.split('\t').nth(6) == Some("1"))
        .collect();
    let inside = |i: usize| subset.get(i) == Some(&true);
    let reuters = ("REUTERS", "reuters21578/reuters.tsv.gz");
    let reuters = texts(&root, reuters, ["other", "earn"], usize::MAX, inside)?;
    Ok(vec![sms, tweets, reuters])
}

/// SMS and the first 6840 tweets, as in the studies of ROC curves.
pub(crate) fn pair() -> Result<[Texts; 2], StudyError> {
    let root = root()?;
    let read = |file, labels, most| texts(&root, file, labels, most, |_| true);
    let tweets = ("TWITTER", "twitter_sentiment140/tweets.tsv.gz");
    Ok([
        read(("SMS", "sms_spam/sms.tsv"), ["spam", "ham"], 6000)?,
        read(tweets, ["negative", "positive"], 6840)?,
    ])
}

/// Words kept by selections.
const KEPT: u32 = 200;

/// The ways of figure 1 by name.
pub fn ways(epsilon: u32) -> Vec<(&'static str, Way)> {
    use Scoring::{
        DifferenceCount as Dc, InformationGain as Ig, PurityIndex as Pi, TotalCount as Tc,
    };
    let private = |how, most| Way {
        how,
        most,
        epsilon: Some(epsilon),
    };
    let exact = |how| Way {
        how,
        most: 20,
        epsilon: None,
    };
    let top = Keep::Top(KEPT);
    let few = Keep::Top(30);
    let own = |s, m, share| How::Select(s, m, top, share);
    let vector = Method::SparseVector { answers: 50 };
    vec![
        ("no noise, all", exact(How::All)),
        ("no noise, TC", exact(How::Free(Tc, top))),
        ("no noise, DC", exact(How::Free(Dc, top))),
        ("no noise, PI", exact(How::Free(Pi, top))),
        ("no noise, IG", exact(How::Free(Ig, top))),
        ("all", private(How::All, 20)),
        ("all, sampling 10", private(How::All, SAMPLED)),
        (
            "TC perturbed .5",
            private(own(Tc, Method::Counts, 50), SAMPLED),
        ),
        (
            "DC perturbed .5",
            private(own(Dc, Method::Counts, 50), SAMPLED),
        ),
        (
            "PI perturbed .5",
            private(own(Pi, Method::Counts, 50), SAMPLED),
        ),
        (
            "IG perturbed .5",
            private(own(Ig, Method::Counts, 50), SAMPLED),
        ),
        (
            "TC clusters .2",
            private(own(Tc, Method::Clusters(8), 20), SAMPLED),
        ),
        (
            "DC clusters .2",
            private(own(Dc, Method::Clusters(8), 20), SAMPLED),
        ),
        (
            "TC sparse vector .2",
            private(How::Select(Tc, vector, Keep::Above(100.0), 20), 20),
        ),
        ("TC free", private(How::Free(Tc, top), SAMPLED)),
        ("DC free", private(How::Free(Dc, few), SAMPLED)),
        ("IG free", private(How::Free(Ig, few), SAMPLED)),
    ]
}

/// Runs the study.
///
/// # Errors
/// When the data are not there or a release cannot be made.
#[allow(clippy::too_many_lines, reason = "a list of figures")]
pub fn run(form: Form) -> Result<Findings, StudyError> {
    let sets = sets(form)?;
    let runs = form.pick(1, 2);
    let mut out = Findings {
        settings: vec![
            format!(
                "add/remove, s = {MOST}, sampling r = {SAMPLED}, {KEPT} words kept, 10-fold cross-validation, {runs} run(s), seed {SEED}"
            ),
            "vocabulary: all words of the (public) data without stop words".to_owned(),
        ],
        head: ["figure", "set", "what", "value"]
            .map(str::to_owned)
            .to_vec(),
        ..Findings::default()
    };
    let mut row = |figure: &str, set: &str, what: &str, value: f64| {
        out.rows.push(vec![
            figure.to_owned(),
            set.to_owned(),
            what.to_owned(),
            share(value),
        ]);
    };
    let mut best: Vec<(f64, f64)> = Vec::new();
    for texts in &sets {
        let base = majority(texts);
        row("1", texts.name, "majority", base);
        let (mut all, mut free) = (0.0, 0.0f64);
        for (name, way) in ways(100) {
            if form == Form::Quick && !["all", "DC free", "no noise, all"].contains(&name) {
                continue;
            }
            let a = accuracy(texts, way, runs)?;
            row("1", texts.name, name, a);
            if name == "all" {
                all = a;
            }
            if name.ends_with("free") {
                free = free.max(a);
            }
        }
        best.push((all, free));
    }
    let sms = &sets[0];
    let thresholds: &[f64] = if form == Form::Quick {
        &[100.0]
    } else {
        &[400.0, 200.0, 100.0, 50.0, 25.0]
    };
    for t in thresholds {
        for (name, method) in [
            ("counts", Method::Counts),
            ("clusters", Method::Clusters(8)),
            ("sparse vector", Method::SparseVector { answers: 1 }),
        ] {
            let f = f1(sms, *t, method, 100, form.pick(2, 20))?;
            row("3", sms.name, &format!("F1 above {t}: {name}"), f);
        }
    }
    for texts in sets.iter().take(2) {
        let test = scored(texts)?;
        let n = u32::try_from(test.len()).unwrap_or(u32::MAX);
        for epsilon in [100, 50, 25, 10] {
            for k in [10u32, 9, 8, 7] {
                if form == Form::Quick && (k != 7 || epsilon != 100) {
                    continue;
                }
                let curves = [
                    (format!("Laplace, {k} thresholds"), Curve::Laplace(k)),
                    (
                        format!("fixed space, n/{}", 1 << (10 - k)),
                        Curve::FixedSpace((n >> (10 - k)).max(2)),
                    ),
                    (format!("medians, 2^{k}"), Curve::Medians(k)),
                ];
                for (name, curve) in curves {
                    let e = error(&test, curve, &percent(epsilon), form.pick(3, 10))?;
                    let figure = if k == 10 { "7, 8, Table 1" } else { "7, 8" };
                    row(
                        figure,
                        texts.name,
                        &format!("ε = {}: {name}", f64::from(epsilon) / 100.0),
                        e,
                    );
                }
            }
            if form == Form::Full {
                let e = error(&test, Curve::Rule, &percent(epsilon), 10)?;
                row(
                    "Table 1",
                    texts.name,
                    &format!("ε = {}: our rule", f64::from(epsilon) / 100.0),
                    e,
                );
            }
        }
    }
    if form == Form::Full {
        use Scoring::{DifferenceCount as Dc, TotalCount as Tc};
        for (name, selection) in [
            ("true top 50 by TC", None),
            ("TC perturbed .5", Some((Tc, Method::Counts, 50))),
            ("DC perturbed .5", Some((Dc, Method::Counts, 50))),
            ("TC clusters .2", Some((Tc, Method::Clusters(8), 20))),
        ] {
            row(
                "2",
                sms.name,
                name,
                logistic_accuracy(sms, selection, 50, 1)?,
            );
        }
        for texts in &sets {
            for epsilon in [100, 50, 25, 10] {
                for (name, way) in ways(epsilon) {
                    if [
                        "TC perturbed .5",
                        "TC clusters .2",
                        "TC sparse vector .2",
                        "DC free",
                    ]
                    .contains(&name)
                    {
                        let e = f64::from(epsilon) / 100.0;
                        row(
                            "4",
                            texts.name,
                            &format!("ε = {e}: {name}"),
                            accuracy(texts, way, runs)?,
                        );
                    }
                }
            }
        }
        for texts in sets.iter().take(2) {
            for part in [10, 30, 50, 70, 90] {
                let how = How::Select(Tc, Method::Counts, Keep::Top(KEPT), part);
                let way = Way {
                    how,
                    most: 20,
                    epsilon: Some(100),
                };
                row(
                    "5ab",
                    texts.name,
                    &format!("share of selection .{}", part / 10),
                    accuracy(texts, way, runs)?,
                );
            }
            for r in [2, 5, 10, 15, 20] {
                let how = How::Select(Tc, Method::Counts, Keep::Top(KEPT), 50);
                let way = Way {
                    how,
                    most: r,
                    epsilon: Some(100),
                };
                row(
                    "5cd",
                    texts.name,
                    &format!("r = {r}"),
                    accuracy(texts, way, runs)?,
                );
            }
        }
    }
    for (texts, (all, free)) in sets.iter().zip(&best) {
        out.require(
            free > all,
            format!(
                "{}: selection by the counts of the fit beats all words ({free:.3} to {all:.3})",
                texts.name
            ),
        );
    }
    Ok(out)
}
