//! A plan resolved against its data set: who is asked for what, on which rows, at which price, in which
//! order. Public inputs only; the data are never opened here.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use reticent_accounting::{
    Cost, Currency, Price, Rational, Relation, parallel, rational_to_f64, sequential,
};
use reticent_ledger::RequestId;
use reticent_mechanisms::program::{Expr, Part, Split};
use reticent_mechanisms::{Unit as DoorUnit, Wanted, claim_price};
use reticent_statistics::range::RangeScales;
use reticent_statistics::simple::printed_share;
use reticent_statistics::zcdp;
use serde_json::{Value, json};

use crate::budget::{Payment, payment};
use crate::dataset::{Dataset, Unit};
use crate::failure::Failure;
use crate::folds::FoldSpec;
use crate::kinds::KindSpec;
use crate::model::Examined;
use crate::outcome::Refusal;
use crate::plan::{ModelRef, Plan, ReleaseSpec};
use crate::request::{digest, identify, request_id};

/// Name of the implicit release of the number of rows.
pub const SIZE_ID: &str = "_n";

/// One release of the resolved plan.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name in the plan, or [`SIZE_ID`].
    pub id: String,
    /// The plan's words; none for [`SIZE_ID`].
    pub spec: Option<ReleaseSpec>,
    /// Its request id.
    pub request: RequestId,
    /// What it costs.
    pub payment: Payment,
    /// The part of the rows it reads.
    pub part: Option<Part>,
    /// That part's share of the rows, by declaration of the split.
    pub fraction: f64,
    /// Releases of wave w need only releases of earlier waves.
    pub wave: usize,
    /// The model it examines, if any.
    pub model: Option<Input>,
    /// Further models on the same plot.
    pub more: Vec<Input>,
}

impl Entry {
    /// The rows it reads, in words.
    pub fn rows(&self) -> String {
        let part = self.part.as_ref().map(|p| p.names().1);
        let fold = self.spec.as_ref().and_then(|s| s.fold.as_ref());
        match (part, fold) {
            (None, _) => "all".to_owned(),
            (Some(part), None) => part,
            (Some(part), Some(f)) => format!("{part}, fold {}/{}", f.number, f.folds),
        }
    }

    /// All models it examines.
    pub fn models(&self) -> impl Iterator<Item = &Input> {
        self.model.iter().chain(&self.more)
    }
}

/// A model that a release examines.
#[derive(Clone, Debug)]
pub enum Input {
    /// A release of the same plan, by position among the entries.
    Entry(usize),
    /// A released value from a file.
    File(Examined),
}

/// A plan with everything public that pricing and running need.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The data set's declaration.
    pub dataset: Dataset,
    /// The plan.
    pub plan: Plan,
    /// The `where` condition.
    pub filter: Option<Expr>,
    /// The releases in order of payment; the first may be [`SIZE_ID`].
    pub entries: Vec<Entry>,
}

impl Resolved {
    /// Reads a plan and its data set.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        Self::of(Plan::load(path)?)
    }

    /// Reads the data set of a plan.
    pub fn of(plan: Plan) -> Result<Self, Failure> {
        let dataset = Dataset::load(&plan.dataset)?;
        Ok(Self::new(dataset, plan)?)
    }

    /// Resolves a plan against a data set.
    pub fn new(dataset: Dataset, plan: Plan) -> Result<Self, Refusal> {
        let checked = plan.check(&dataset)?;
        let (filter, split) = (checked.filter, checked.split);
        let mut entries: Vec<Entry> = Vec::new();
        let payments: Vec<Payment> = plan
            .releases
            .iter()
            .map(|r| {
                budgeted(&dataset, r)
                    .and_then(|r| payment(dataset.currency, &r))
                    .map(|paid| at_printed_scales(&dataset, r, paid))
                    .map_err(|e| e.in_file(&plan.file))
            })
            .collect::<Result<_, _>>()?;
        if public_rows(&dataset).is_none() && plan.releases.iter().any(needs_size) {
            entries.push(size_entry(&dataset, &plan, &payments));
        }
        let mut positions: HashMap<&str, usize> = HashMap::new();
        for (release, payment) in plan.releases.iter().zip(payments) {
            let place = |e: Refusal| e.in_file(&plan.file).at_line(release.line);
            let mut wave = usize::from(entries.first().is_some_and(|e| e.spec.is_none()));
            let mut inputs = Vec::new();
            let mut models = Vec::new();
            for input in release.kind.inputs() {
                match input {
                    ModelRef::Release(id) => {
                        let at = *positions.get(id.as_str()).ok_or_else(|| {
                            place(
                                Refusal::request(format!("there is no earlier release {id}"))
                                    .for_key("model"),
                            )
                        })?;
                        wave = wave.max(entries[at].wave + 1);
                        inputs.push(entries[at].request);
                        models.push(Input::Entry(at));
                    }
                    ModelRef::File { path, id } => {
                        let key = release.kind.input_key();
                        let (found, digest) = from_file(path, id, key).map_err(place)?;
                        inputs.push(digest);
                        models.push(Input::File(found));
                    }
                }
            }
            let (part, fraction) = match &release.fold {
                None => part(split.as_ref(), release)?,
                Some(fold) => fold_part(&dataset, release, fold).map_err(place)?,
            };
            positions.insert(&release.id, entries.len());
            entries.push(Entry {
                id: release.id.clone(),
                spec: Some(release.clone()),
                request: request_id(&dataset, &plan, release, &inputs),
                payment,
                part,
                fraction,
                wave,
                model: (!models.is_empty()).then(|| models.remove(0)),
                more: models,
            });
        }
        Ok(Self {
            dataset,
            plan,
            filter,
            entries,
        })
    }

    /// What the door is asked to reserve, in order.
    pub fn wanted(&self) -> Vec<Wanted> {
        self.entries
            .iter()
            .map(|e| Wanted {
                request: e.request,
                claim: e.payment.claim.clone(),
                part: e.part.clone(),
                label: e
                    .spec
                    .as_ref()
                    .map_or("count", |s| s.kind.name())
                    .to_owned(),
            })
            .collect()
    }

    /// The price of one release under both relations.
    pub fn price(&self, entry: &Entry) -> Price {
        claim_price(
            &entry.payment.claim,
            self.dataset.neighbours,
            self.dataset.currency,
        )
    }

    /// The price of the whole plan: releases on all rows add up, disjoint parts of one split compose in parallel, splits add up.
    pub fn total(&self) -> Price {
        let mut whole = Vec::new();
        let mut splits: BTreeMap<String, BTreeMap<String, Vec<Price>>> = BTreeMap::new();
        for entry in &self.entries {
            let slot = match entry.part.as_ref().map(Part::names) {
                None => &mut whole,
                Some((split, part)) => splits.entry(split).or_default().entry(part).or_default(),
            };
            slot.push(self.price(entry));
        }
        for parts in splits.values() {
            let parts: Vec<Price> = parts.values().map(|p| sequential(p)).collect();
            whole.push(parallel(&parts));
        }
        sequential(&whole)
    }

    /// The privacy unit as the door takes it.
    pub fn unit(&self) -> DoorUnit {
        door_unit(&self.dataset)
    }

    /// The public number of rows, if there is one: a declared hint or count.
    pub fn public_rows(&self) -> Option<u64> {
        public_rows(&self.dataset)
    }
}

/// The privacy unit as the door takes it.
pub fn door_unit(dataset: &Dataset) -> DoorUnit {
    match &dataset.unit {
        Unit::Row => DoorUnit::Row,
        Unit::Column {
            column, max_rows, ..
        } => DoorUnit::Column {
            column: *column,
            max_rows: *max_rows,
        },
    }
}

fn public_rows(dataset: &Dataset) -> Option<u64> {
    dataset.size_hint.or(match dataset.neighbours {
        Relation::ReplaceOne => dataset.rows,
        Relation::AddRemove => None,
    })
}

/// Published scales cost less than the ε they are written for: only that is claimed.
fn at_printed_scales(dataset: &Dataset, release: &ReleaseSpec, mut payment: Payment) -> Payment {
    let KindSpec::Bounds(s) = &release.kind else {
        return payment;
    };
    if s.scales == RangeScales::Printed {
        let share = printed_share(rational_to_f64(&s.coverage), dataset.neighbours);
        let factor = match dataset.currency {
            Currency::Concentrated => &share * &share,
            Currency::Pure | Currency::Approximate => share,
        };
        payment.claim.amount *= factor;
    }
    payment
}

/// Whether the rules of a kind use the number of rows.
fn needs_size(release: &ReleaseSpec) -> bool {
    matches!(
        release.kind.name(),
        "mean" | "logistic" | "linear" | "roc" | "residuals" | "binned_residuals" | "verify"
    )
}

/// The implicit count: 2 % of the plan's total.
fn size_entry(dataset: &Dataset, plan: &Plan, payments: &[Payment]) -> Entry {
    let total = payments
        .iter()
        .fold(Rational::ZERO, |s, p| s + &p.claim.amount);
    let amount = total * Rational::from(2u8) / Rational::from(100u8);
    let (epsilon, rho) = match dataset.currency {
        Currency::Concentrated => (zcdp::epsilon_of_pure(&amount), Some(amount.clone())),
        Currency::Pure | Currency::Approximate => (amount.clone(), None),
    };
    let release = json!({"kind": "count", "part": "all", "implicit": reticent_accounting::format_rational(&amount)});
    Entry {
        id: SIZE_ID.to_owned(),
        spec: None,
        request: identify(dataset, plan, &release, &[]),
        payment: Payment {
            claim: Cost::pure(amount),
            epsilon,
            delta: Rational::ZERO,
            rho,
        },
        part: None,
        fraction: 1.0,
        wave: 0,
        model: None,
        more: Vec::new(),
    }
}

/// The release with the budget that it has for itself.
fn budgeted(dataset: &Dataset, release: &ReleaseSpec) -> Result<ReleaseSpec, Refusal> {
    let mut own = release.clone();
    if let Some(fold) = &release.fold {
        own.budget = fold
            .budget(&release.budget, dataset.neighbours)
            .map_err(|e| e.at_line(release.line))?;
    }
    Ok(own)
}

/// The part of a fold.
fn fold_part(
    dataset: &Dataset,
    release: &ReleaseSpec,
    fold: &FoldSpec,
) -> Result<(Option<Part>, f64), Refusal> {
    let name = release.part.as_deref().unwrap_or_default();
    let split = fold.split(dataset, release.line)?;
    let index = split.parts.iter().position(|p| p.0 == name);
    let index = index.ok_or_else(|| {
        Refusal::request(format!("a fold has no part {name}")).for_key("release.part")
    })?;
    Ok((Some(Part { split, index }), fold.fraction(name)))
}

fn part(split: Option<&Split>, release: &ReleaseSpec) -> Result<(Option<Part>, f64), Refusal> {
    match (&release.part, split) {
        (None, _) => Ok((None, 1.0)),
        (Some(name), Some(split)) => {
            let index = split
                .parts
                .iter()
                .position(|p| p.0 == *name)
                .ok_or_else(|| {
                    Refusal::request(format!("there is no part {name}"))
                        .at_line(release.line)
                        .for_key("release.part")
                })?;
            let (_, n, d) = split.parts[index];
            Ok((
                Some(Part {
                    split: split.clone(),
                    index,
                }),
                f64::from(n) / f64::from(d),
            ))
        }
        (Some(_), None) => Err(Refusal::request("the plan has no split")
            .at_line(release.line)
            .for_key("release.part")),
    }
}

/// Reads a model from a `release.json`: a released one, or coefficients declared public.
fn from_file(path: &Path, id: &str, key: &str) -> Result<(Examined, RequestId), Refusal> {
    let file = path.display();
    let refuse = |what: String| Refusal::request(what).for_key(format!("release.{key}"));
    let text =
        crate::file::text(path).map_err(|e| refuse(format!("{file} cannot be read: {e}")))?;
    let document: Value = serde_json::from_str(&text)
        .map_err(|e| refuse(format!("{file} is not a release.json: {e}")))?;
    let releases = document.get("releases").and_then(Value::as_array);
    let release = releases
        .into_iter()
        .flatten()
        .find(|r| r.get("id").and_then(Value::as_str) == Some(id))
        .ok_or_else(|| refuse(format!("there is no release \"{id}\" in {file}")))?;
    let receipt = release.get("receipt").unwrap_or(&Value::Null);
    if receipt.as_str() != Some("public") && receipt.get("event").is_none() {
        return Err(refuse("the model has no receipt".to_owned())
            .accepting("Only a released model, or coefficients the curator declares with \"receipt\": \"public\", can be examined."));
    }
    let value = release.get("value").unwrap_or(&Value::Null);
    let model = Examined::read(value).map_err(|e| refuse(e.to_string()))?;
    Ok((model, digest(&json!({"value": value, "receipt": receipt}))))
}
