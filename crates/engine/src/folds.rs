//! K-fold cross-validation of a model: a plan's `cross_validation` becomes k fits, k evaluations on the records left out, and one
//! figure read off them.
//!
//! # Composition
//! Fold i has a split of its own with two parts, the records left out (`test`, an interval of the hash of 1/k) and all others
//! (`train`, the intervals before and behind it). All splits cut the same hash, so every record is left out once. The ledger knows
//! (split, part) and nothing more, and that is what is relied on:
//! * Add/remove: the two parts of a split are disjoint, so a fold costs the larger of its fit and its evaluation, and k folds add.
//!   With ε/k for each of the 2k releases this is k·ε/k = ε. A record is read by k−1 fits and one evaluation, and (k−1)·ε/k + ε/k
//!   is the same: nothing is given away. With unequal shares it would be, k·max(f, e) against (k−1)·f + e; so there are none.
//! * Replace one: the record that goes and the record that comes may lie in different folds a and b. Then it leaves the one part
//!   of the splits a and b and enters the other, f + e each; in the other k−2 it is replaced within `train`, f each: together
//!   k·f + 2·e. The ledger cannot see that only two of k splits are crossed, since it does not know that they cut one hash, and
//!   charges k·(f + e). With ε/(2k) for each release this is ε, and it bounds what is lost.
//!
//! `where` conditions apply to all of it; the plan's own split does not.
//! # Checked by
//! `folds::tests`, `cli::folds`; the parts: `mechanisms::evaluate::tests::parts_of_one_name_are_one_part`

use reticent_accounting::{Rational, Relation};
use reticent_mechanisms::program::Split;
use reticent_statistics::cross_validation::Measure;
use serde_json::{Map, Value, json};

use crate::dataset::Dataset;
use crate::document::Section;
use crate::kinds::{AucSpec, KindSpec, ModelRef, RocSpec};
use crate::outcome::Refusal;
use crate::parameter::{Delta, Epsilon, Rho};
use crate::plan::{BudgetSpec, ReleaseSpec, SplitKey, by_key, salt_of};

/// Folds unless a plan says otherwise.
const FOLDS: u32 = 5;
/// Most folds: each has 1/k of the budget on 1/k of the records.
const MOST_FOLDS: u32 = 20;

/// Fields of a `cross_validation`.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossValidationSpec {
    /// The release of the same plan whose fit is repeated.
    pub model: String,
    /// Number of folds.
    pub folds: u32,
    /// What is measured.
    pub measure: Measure,
    /// What is hashed.
    pub by: SplitKey,
    /// Public salt.
    pub salt: String,
    /// The evaluations it is read off; none before the plan is complete.
    pub evaluations: Vec<ModelRef>,
}

/// The fold that a fit or an evaluation belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldSpec {
    /// The cross-validation.
    pub of: String,
    /// Which fold, from 1.
    pub number: u32,
    /// Of how many.
    pub folds: u32,
    /// What is hashed.
    pub by: SplitKey,
    /// Public salt.
    pub salt: String,
}

impl CrossValidationSpec {
    pub(crate) fn read(
        section: &mut Section<'_>,
        earlier: &[ReleaseSpec],
    ) -> Result<Self, Refusal> {
        let fix = "Name the logistic or naive_bayes release of this plan whose fit is to be repeated on folds.";
        let item = section.need("model", fix)?;
        let model = item.text(fix)?.to_owned();
        let Some(found) = earlier.iter().find(|r| r.id == model) else {
            return Err(item
                .refuse("no earlier release of this plan has that id")
                .accepting(fix));
        };
        let (selected, many) = match &found.kind {
            KindSpec::Logistic(s) => (s.features.is_some(), !s.extra.levels.is_empty()),
            KindSpec::NaiveBayes(s) => (s.features.is_some(), !s.levels.is_empty()),
            other => {
                return Err(item
                    .refuse(format!(
                        "the release \"{model}\" is of kind \"{}\"",
                        other.name()
                    ))
                    .accepting(fix));
            }
        };
        if selected {
            return Err(item
                .refuse("its features were chosen from all records, also those that a fold leaves out: the figure would be too good")
                .accepting("Cross-validate a model with a formula of its own."));
        }
        if many {
            return Err(item
                .refuse("it tells several levels apart; folds are evaluated for two classes")
                .accepting("Write positive = \"…\" with one level."));
        }
        let fix = "Write folds = 5; from 2 to 20 are accepted, because every fold gets 1/folds of the budget and of the records.";
        let folds = match section.get("folds") {
            None => FOLDS,
            Some(item) => item.count(2, MOST_FOLDS, fix)?,
        };
        let words = [Measure::Auc, Measure::Accuracy].map(|m| (m.name(), m));
        let measure = match section.get("measure") {
            None => Measure::Auc,
            Some(item) => item.word(&words)?,
        };
        Ok(Self {
            model,
            folds,
            measure,
            by: by_key(section)?,
            salt: salt_of(section)?,
            evaluations: Vec::new(),
        })
    }

    pub(crate) fn canonical(&self) -> Value {
        json!({"folds": self.folds, "measure": self.measure.name()})
    }
}

impl FoldSpec {
    /// Whether both leave out the same records.
    fn same(&self, other: &Self) -> bool {
        let of = |f: &Self| (f.number, f.folds);
        of(self) == of(other) && self.by == other.by && self.salt == other.salt
    }

    /// What request ids contain.
    pub(crate) fn canonical(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("number".to_owned(), json!(self.number));
        fields.insert("of".to_owned(), json!(self.folds));
        fields.insert("by".to_owned(), self.by.canonical());
        fields.insert("salt".to_owned(), json!(self.salt));
        Value::Object(fields)
    }

    /// The records left out and all others.
    pub(crate) fn split(&self, dataset: &Dataset, line: u32) -> Result<Split, Refusal> {
        let before = self.number.saturating_sub(1);
        let behind = self.folds.saturating_sub(self.number);
        let parts = [("train", before), ("test", 1), ("train", behind)];
        Ok(Split {
            by: self.by.compile(dataset, "by", line)?,
            salt: self.salt.clone(),
            parts: parts
                .into_iter()
                .filter(|p| p.1 > 0)
                .map(|(name, share)| (name.to_owned(), share, self.folds))
                .collect(),
        })
    }

    /// That part's share of the records.
    pub(crate) fn fraction(&self, part: &str) -> f64 {
        let test = 1.0 / f64::from(self.folds);
        if part == "test" { test } else { 1.0 - test }
    }

    /// The budget of one fit or evaluation, of that of the whole.
    pub(crate) fn budget(
        &self,
        whole: &BudgetSpec,
        relation: Relation,
    ) -> Result<BudgetSpec, Refusal> {
        let shares = match relation {
            Relation::AddRemove => self.folds,
            Relation::ReplaceOne => self.folds.saturating_mul(2),
        };
        let of = |x: &Rational| x / Rational::from(shares);
        let refuse = |e: reticent_accounting::AccountingError| Refusal::request(e.to_string());
        let epsilon = whole.epsilon.as_ref();
        let rho = whole.rho.as_ref();
        let delta = whole.delta.as_ref();
        Ok(BudgetSpec {
            epsilon: (epsilon.map(|e| Epsilon::new(of(e.rational()))).transpose())
                .map_err(refuse)?,
            delta: (delta.map(|d| Delta::new(of(d.rational()))).transpose()).map_err(refuse)?,
            rho: (rho.map(|r| Rho::new(of(r.rational()))).transpose()).map_err(refuse)?,
        })
    }
}

/// The releases that a cross-validation stands for: fits, evaluations, and itself, read off the evaluations. Any other release is
/// itself.
pub(crate) fn expand(
    release: ReleaseSpec,
    earlier: &[ReleaseSpec],
) -> Result<Vec<ReleaseSpec>, Refusal> {
    let KindSpec::CrossValidation(spec) = &release.kind else {
        return Ok(vec![release]);
    };
    let named = |what: &str, number: u32| format!("{}.{what}_{number}", release.id);
    let measure = spec.measure.name();
    let model = earlier.iter().find(|r| r.id == spec.model);
    let Some(kind) = model.map(|r| r.kind.clone()) else {
        return Ok(Vec::new());
    };
    let one = |id: String, kind: KindSpec, part: &str, number: u32| ReleaseSpec {
        id,
        kind,
        part: Some(part.to_owned()),
        fold: Some(FoldSpec {
            of: release.id.clone(),
            number,
            folds: spec.folds,
            by: spec.by.clone(),
            salt: spec.salt.clone(),
        }),
        ..release.clone()
    };
    let mut out = Vec::new();
    let mut models = Vec::new();
    for number in 1..=spec.folds {
        let fit = one(named("model", number), kind.clone(), "train", number);
        // another cross-validation may have asked for the very same fit
        let same = |r: &&ReleaseSpec| {
            let fold = r
                .fold
                .as_ref()
                .is_some_and(|f| fit.fold.as_ref().is_some_and(|g| f.same(g)));
            let asked = (&r.part, &r.budget, r.repeat) == (&fit.part, &fit.budget, fit.repeat);
            fold && asked && r.kind == fit.kind
        };
        if let Some(made) = earlier.iter().find(same) {
            models.push((number, made.id.clone()));
        } else {
            models.push((number, fit.id.clone()));
            out.push(fit);
        }
    }
    let mut evaluations = Vec::new();
    for (number, id) in models {
        let model = ModelRef::Release(id);
        let kind = match spec.measure {
            Measure::Auc => KindSpec::Roc(RocSpec::plain(model)),
            Measure::Accuracy => KindSpec::Decisions(AucSpec { model }),
        };
        let id = named(measure, number);
        evaluations.push(ModelRef::Release(id.clone()));
        out.push(one(id, kind, "test", number));
    }
    for id in out.iter().map(|r| &r.id) {
        if let Some(other) = earlier.iter().find(|r| r.id == *id) {
            return Err(Refusal::request(format!(
                "a fold would be called \"{id}\", as the release in line {} is",
                other.line
            ))
            .at_line(release.line)
            .for_key("release.id")
            .accepting("Give one of the two another id."));
        }
    }
    let kind = KindSpec::CrossValidation(CrossValidationSpec {
        evaluations,
        ..spec.clone()
    });
    out.push(ReleaseSpec {
        kind,
        budget: BudgetSpec::none(),
        ..release
    });
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use reticent_accounting::{Cost, parse_rational};

    use super::*;
    use crate::plan::Plan;
    use crate::resolve::Resolved;

    fn dataset(neighbours: &str, budget: &str) -> Dataset {
        let text = format!(
            "version = 1\nid = \"t\"\ndata_version = \"1\"\nsource = {{ path = \"t.csv\" }}\nneighbours = \"{neighbours}\"\n\
             {}size_hint = 5000\n[budget]\n{budget}\n[ledger]\npath = \"t.ledger\"\n[columns.y]\ntype = \"text\"\nlevels = [\"no\", \"yes\"]\n\
             other = \"no\"\n[columns.x]\ntype = \"integer\"\nlower = 0\nupper = 100000\n[columns.z]\ntype = \"text\"\nlevels = [\"a\", \"b\", \"c\"]\nother = \"a\"\n",
            if neighbours == "replace_one" {
                "rows = 5000\n"
            } else {
                ""
            }
        );
        Dataset::parse(&text, Path::new("d.toml")).unwrap()
    }

    const MODEL: &str =
        "[[release]]\nid = \"m\"\nkind = \"logistic\"\nformula = \"y ~ x\"\nepsilon = 1\n";

    fn plan(keys: &str) -> Result<Plan, Refusal> {
        let text = format!(
            "version = 1\ndataset = \"d.toml\"\n{MODEL}[[release]]\nid = \"cv\"\nkind = \"cross_validation\"\n{keys}\n"
        );
        Plan::parse(&text, Path::new("p.toml"))
    }

    /// Both relations, record by record: the price is what the releases that a neighbour touches can lose at most. Under add/remove
    /// it is that and no more.
    #[test]
    fn the_price_bounds_every_neighbour() {
        for (relation, neighbours) in [
            (Relation::AddRemove, "add_remove"),
            (Relation::ReplaceOne, "replace_one"),
        ] {
            for k in [2, 3, 7, 20_u32] {
                let plan = plan(&format!("model = \"m\"\nfolds = {k}\nepsilon = \"0.7\"")).unwrap();
                let resolved = Resolved::new(dataset(neighbours, "epsilon = 10"), plan).unwrap();
                let folds: Vec<_> = (resolved.entries.iter())
                    .filter_map(|e| Some((e, e.spec.as_ref()?.fold.as_ref()?.number)))
                    .collect();
                assert_eq!(folds.len(), 2 * k as usize);
                let mut only = resolved.clone();
                only.entries.retain(|e| e.id != "m");
                let total = only.total().under(relation).unwrap().clone();
                assert_eq!(total.amount, parse_rational("0.7").unwrap(), "{k}");
                // a record in fold a becomes one in fold b; without a second one it is added or removed
                let lost = |a: u32, b: Option<u32>| {
                    let each = folds.iter().map(|(entry, number)| {
                        let price = resolved.price(entry);
                        let test = entry.part.as_ref().unwrap().names().1 == "test";
                        let reads = |fold: u32| (fold == *number) == test;
                        let one = price.under(Relation::AddRemove).unwrap().clone();
                        match (reads(a), b.map(reads)) {
                            (true, Some(true)) => {
                                price.under(Relation::ReplaceOne).unwrap().clone()
                            }
                            (true, _) | (_, Some(true)) => one,
                            _ => Cost::zero(),
                        }
                    });
                    each.fold(Cost::zero(), |sum, c| sum.plus(&c))
                };
                for a in 1..=k {
                    if relation == Relation::AddRemove {
                        assert_eq!(lost(a, None), total);
                    } else {
                        for b in 1..=k {
                            assert!(lost(a, Some(b)).within(&total), "{k} {a} {b}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn budgets_in_rho_are_never_exceeded() {
        for (keys, spent) in [
            ("model = \"m\"\nrho = \"0.5\"", "0.5"),
            // pure steps of ε/5 in a budget of ρ: 5·(ε/5)²/2
            ("model = \"m\"\nepsilon = 1", "0.1"),
        ] {
            let resolved =
                Resolved::new(dataset("add_remove", "rho = 10"), plan(keys).unwrap()).unwrap();
            let mut only = resolved.clone();
            only.entries.retain(|e| e.id != "m");
            let total = only.total().under(Relation::AddRemove).unwrap().clone();
            assert_eq!(total.amount, parse_rational(spent).unwrap(), "{keys}");
        }
    }

    /// A fold does not depend on the plan's split, so the same fold of another plan comes from the store.
    #[test]
    fn the_split_of_the_plan_does_not_matter() {
        let ids = |top: &str| {
            let text = format!(
                "version = 1\ndataset = \"d.toml\"\n{top}\n{MODEL}[[release]]\nid = \"cv\"\nkind = \"cross_validation\"\nmodel = \"m\"\nepsilon = 1\n"
            );
            let plan = Plan::parse(&text, Path::new("p.toml")).unwrap();
            let resolved = Resolved::new(dataset("add_remove", "epsilon = 10"), plan).unwrap();
            resolved
                .entries
                .iter()
                .map(|e| e.request)
                .collect::<Vec<_>>()
        };
        let (without, with) = (ids(""), ids("split = { test = \"1/3\" }"));
        assert_ne!(without[0], with[0]);
        assert_eq!(without[1..11], with[1..11]);
    }

    /// Two figures of one model share the fits, and the ledger charges both evaluations.
    #[test]
    fn fits_are_shared() {
        let plan = plan(
            "model = \"m\"\nfolds = 3\nepsilon = 3\n[[release]]\nid = \"again\"\nkind = \"cross_validation\"\nmodel = \"m\"\nfolds = 3\nmeasure = \"accuracy\"\nepsilon = 3",
        )
        .unwrap();
        let ids: Vec<&str> = plan.releases.iter().map(|r| r.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "m",
                "cv.model_1",
                "cv.model_2",
                "cv.model_3",
                "cv.auc_1",
                "cv.auc_2",
                "cv.auc_3",
                "cv",
                "again.accuracy_1",
                "again.accuracy_2",
                "again.accuracy_3",
                "again"
            ]
        );
        let resolved = Resolved::new(dataset("add_remove", "epsilon = 10"), plan).unwrap();
        let total = resolved.total().under(Relation::AddRemove).unwrap().clone();
        // the model, and three folds of two evaluations of 1
        assert_eq!(total.amount, parse_rational("7").unwrap());
        crate::session::validate(&resolved, Some(5000)).unwrap();
    }

    #[test]
    fn refusals_name_line_key_and_fix() {
        for (keys, parts) in [
            (
                "epsilon = 1",
                &["line 8", "`model` is missing", "naive_bayes"][..],
            ),
            (
                "model = \"n\"\nepsilon = 1",
                &["line 11", "model", "no earlier release"],
            ),
            (
                "model = \"m\"\nfolds = 1\nepsilon = 1",
                &["line 12", "folds", "1", "2 to 20"],
            ),
            (
                "model = \"m\"\nfolds = 21\nepsilon = 1",
                &["line 12", "folds", "2 to 20"],
            ),
            ("model = \"m\"\nfolds = 5", &["no privacy budget"]),
            (
                "model = \"m\"\npart = \"train\"\nepsilon = 1",
                &["line 12", "part", "divide all records"],
            ),
            (
                "model = \"m\"\nmeasure = \"loss\"\nepsilon = 1",
                &["line 12", "measure", "\"accuracy\""],
            ),
            (
                "model = \"m\"\nby = \"\"\nepsilon = 1",
                &["line 12", "by", "names no column"],
            ),
            (
                "model = \"m\"\nfold = 3\nepsilon = 1",
                &["line 12", "Did you mean `folds`?"],
            ),
            (
                "model = \"r.json#m\"\nepsilon = 1",
                &["line 11", "no earlier release"],
            ),
        ] {
            let message = plan(keys).unwrap_err().to_string();
            for part in parts {
                assert!(
                    message.contains(part),
                    "{keys:?} should say {part:?}: {message}"
                );
            }
        }
        for (model, part) in [
            (
                "kind = \"linear\"\nformula = \"x ~ y\"\nepsilon = 1\ndelta = \"1e-7\"",
                "is of kind \"linear\"",
            ),
            (
                "kind = \"logistic\"\nformula = \"z ~ x\"\npositive = [\"a\", \"b\", \"c\"]\nepsilon = 1",
                "two classes",
            ),
            (
                "kind = \"naive_bayes\"\nformula = \"z ~ x\"\npositive = [\"a\", \"b\", \"c\"]\nepsilon = 1",
                "two classes",
            ),
        ] {
            let text = format!(
                "version = 1\ndataset = \"d.toml\"\n[[release]]\nid = \"m\"\n{model}\n[[release]]\nid = \"cv\"\nkind = \"cross_validation\"\nmodel = \"m\"\nepsilon = 1\n"
            );
            let message = Plan::parse(&text, Path::new("p.toml"))
                .unwrap_err()
                .to_string();
            assert!(message.contains(part), "{message}");
        }
        // a name that a fold would have
        let text = format!(
            "version = 1\ndataset = \"d.toml\"\n{MODEL}[[release]]\nid = \"cv.auc_2\"\nkind = \"count\"\nepsilon = 1\n[[release]]\nid = \"cv\"\nkind = \"cross_validation\"\nmodel = \"m\"\nepsilon = 1\n"
        );
        let message = Plan::parse(&text, Path::new("p.toml"))
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("cv.auc_2") && message.contains("line 8"),
            "{message}"
        );
        // against the data set
        let resolved = |keys: &str| {
            Resolved::new(dataset("add_remove", "epsilon = 10"), plan(keys).unwrap())
                .unwrap_err()
                .to_string()
        };
        let message = resolved("model = \"m\"\nby = \"w\"\nepsilon = 1");
        assert!(
            message.contains("by = \"w\"") && message.contains("line 8"),
            "{message}"
        );
        let message = resolved("model = \"m\"\nepsilon = 1\ndelta = \"1e-7\"");
        assert!(message.contains("no delta"), "{message}");
    }
}
