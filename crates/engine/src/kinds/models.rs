//! Fields of the model kinds beyond those every plan has, and of what is read off released values for free.

use reticent_mechanisms::primitives::MOST_GROUPS;
use reticent_statistics::covariance::{MOST_ROWS, ROWS};
use reticent_statistics::features::{Keep, Method, Scoring};
use reticent_statistics::verify::Claim;
use serde_json::{Map, Value, json};

use super::read::{formula_of, optional_count, positive_real, reference};
use super::{Clip, DEFAULT_GRID_BITS, KindSpec, ModelRef};
use crate::document::{Item, Section};
use crate::formula;
use crate::outcome::Refusal;
use crate::plan::ReleaseSpec;

/// Penalty of a logistic regression other than the public rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lambda {
    /// PrivateLR's default rule.
    Default,
    /// PrivateLR's adjusted rule.
    Adjusted,
    /// On the sum of losses.
    Value(f64),
}

/// Random projection of the predictors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    /// Onto this many columns.
    Size(u32),
    /// Onto round(2·ln n) columns.
    Auto,
}

/// Fields of a `logistic` that most plans leave out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogisticExtra {
    /// One level against the rest for each of these levels; empty: two classes.
    pub levels: Vec<String>,
    /// Noise on the coefficients instead of the objective.
    pub output: bool,
    /// Random projection.
    pub projection: Option<Projection>,
    /// Public seed of the projection.
    pub projection_seed: u32,
}

impl LogisticExtra {
    /// Reads all but the levels.
    pub(super) fn read(section: &mut Section<'_>, levels: Vec<String>) -> Result<Self, Refusal> {
        let output = match section.get("mechanism") {
            None => false,
            Some(item) => item.word(&[("objective", false), ("output", true)])?,
        };
        let projection = match section.get("projection") {
            None => None,
            Some(item) => match item.text("") {
                Ok("auto") => Some(Projection::Auto),
                _ => Some(Projection::Size(item.count(
                    1,
                    4096,
                    "Write a number of columns such as 20, or \"auto\".",
                )?)),
            },
        };
        let fix = "Write a whole number, for example projection_seed = 1.";
        let seed = optional_count(section, "projection_seed", 0, u32::MAX, fix)?;
        Ok(Self {
            levels,
            output,
            projection,
            projection_seed: seed.unwrap_or(0),
        })
    }

    /// Only what differs from the defaults, so that plans without these keys keep their request ids.
    pub(super) fn canonical(&self, fields: &mut Map<String, Value>) {
        if !self.levels.is_empty() {
            fields.insert("levels".to_owned(), json!(self.levels));
        }
        if self.output {
            fields.insert("mechanism".to_owned(), json!("output"));
        }
        if let Some(p) = self.projection {
            let size = match p {
                Projection::Size(k) => json!(k),
                Projection::Auto => json!("auto"),
            };
            fields.insert("projection".to_owned(), json!([size, self.projection_seed]));
        }
    }
}

/// Noise on second moments paid with pure ε.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PureNoise {
    /// The smaller one.
    #[default]
    Auto,
    /// Laplace on every entry.
    Laplace,
    /// The norm mechanism.
    Norm,
}

/// Fields of a `linear` regression by output perturbation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinearOutput {
    /// Λ; a public rule chooses it if absent.
    pub lambda: Option<f64>,
    /// Largest norm of the coefficients of the scaled columns; 1 if absent.
    pub coefficient_norm: Option<f64>,
}

/// Keys of a `linear` release that only noisy moments use.
const OF_MOMENTS: [&str; 5] = ["clip", "noise", "naive", "prediction", "ridge"];

impl LinearOutput {
    /// Reads `method` and what belongs to it; nothing with noisy moments.
    pub(super) fn read(section: &mut Section<'_>) -> Result<Option<Self>, Refusal> {
        let output = match section.get("method") {
            None => false,
            Some(item) => item.word(&[("moments", false), ("output", true)])?,
        };
        let fix = "Write a positive penalty, for example lambda = 100.";
        let lambda = positive_real(section, "lambda", fix)?;
        let fix = "Write the largest norm of the coefficients, for example coefficient_norm = 1.";
        let coefficient_norm = positive_real(section, "coefficient_norm", fix)?;
        if output {
            for key in OF_MOMENTS {
                if let Some(item) = section.get(key) {
                    return Err(item
                        .refuse("has no effect on output perturbation, which releases coefficients alone")
                        .accepting("Remove it, or method = \"output\"."));
                }
            }
            return Ok(Some(Self {
                lambda,
                coefficient_norm,
            }));
        }
        for (key, given) in [("lambda", lambda), ("coefficient_norm", coefficient_norm)] {
            if given.is_some() {
                let line = section.line_of(key);
                return Err(section
                    .refuse(format!("`{key}` and method = \"output\" belong together"))
                    .at_line(line)
                    .for_key(format!("release.{key}"))
                    .accepting("Write both, or neither."));
            }
        }
        Ok(None)
    }

    pub(super) fn canonical(self, fields: &mut Map<String, Value>) {
        fields.insert("method".to_owned(), json!("output"));
        fields.insert("lambda".to_owned(), json!(self.lambda));
        let norm = self.coefficient_norm.unwrap_or(1.0);
        fields.insert("coefficient_norm".to_owned(), json!(norm));
    }
}

/// What a regression reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reported {
    /// Also the tests that ignore the noise.
    pub naive: bool,
    /// Prediction coefficients by `AdaSSP`.
    pub adassp: bool,
    /// Prediction coefficients by ridge with this weight.
    pub ridge: Option<f64>,
}

impl Reported {
    pub(super) fn read(section: &mut Section<'_>) -> Result<Self, Refusal> {
        let naive = section
            .get("naive")
            .map(|i| i.truth())
            .transpose()?
            .unwrap_or(false);
        let adassp = match section.get("prediction") {
            None => false,
            Some(item) => item.word(&[("rule", false), ("adassp", true)])?,
        };
        let fix = "Write a positive weight, for example ridge = 10.";
        let ridge = positive_real(section, "ridge", fix)?;
        if adassp && ridge.is_some() {
            return Err(section
                .refuse("`ridge` and prediction = \"adassp\" exclude each other")
                .accepting("Remove one of the two."));
        }
        Ok(Self {
            naive,
            adassp,
            ridge,
        })
    }

    pub(super) fn canonical(&self, fields: &mut Map<String, Value>) {
        if self.naive {
            fields.insert("naive".to_owned(), json!(true));
        }
        if self.adassp {
            fields.insert("prediction".to_owned(), json!("adassp"));
        }
        if let Some(ridge) = self.ridge {
            fields.insert("ridge".to_owned(), json!(ridge));
        }
    }
}

impl PureNoise {
    pub(super) fn read(section: &mut Section<'_>) -> Result<Self, Refusal> {
        match section.get("noise") {
            None => Ok(Self::Auto),
            Some(item) => item.word(&[
                ("auto", Self::Auto),
                ("laplace", Self::Laplace),
                ("norm", Self::Norm),
            ]),
        }
    }

    pub(super) fn canonical(self, fields: &mut Map<String, Value>) {
        let name = match self {
            Self::Auto => return,
            Self::Laplace => "laplace",
            Self::Norm => "norm",
        };
        fields.insert("noise".to_owned(), json!(name));
    }
}

/// Repair of an indefinite covariance matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repair {
    /// Negative eigenvalues become 0.
    #[default]
    Clip,
    /// Negative eigenvalues become the least positive one.
    Lift,
    /// None.
    None,
}

/// Fields of a `covariance`.
#[derive(Clone, Debug, PartialEq)]
pub struct CovarianceSpec {
    /// Columns or expressions.
    pub columns: Vec<String>,
    /// Public bound on the norm of a row; absent: the bounds of the columns.
    pub data_norm: Option<f64>,
    /// Row clip: private or none.
    pub clip: Clip,
    /// Noise for pure ε.
    pub noise: PureNoise,
    /// Repair.
    pub repair: Repair,
    /// Bits of the summation grid.
    pub grid_bits: u32,
    /// A sketch instead of noisy second moments.
    pub sketch: Option<SketchSpec>,
}

/// Fields of a `covariance` by sketch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SketchSpec {
    /// Rows of the sketch; a public default if absent.
    pub rows: Option<u32>,
    /// What is read off: coefficients of columns. Every column by itself if there is none.
    pub directions: Vec<Vec<(String, f64)>>,
}

/// Keys of a `covariance` release that only noisy moments use.
const OF_NOISY_MOMENTS: [&str; 3] = ["clip", "noise", "repair"];

impl SketchSpec {
    /// Reads `method` and what belongs to it; nothing with noisy moments.
    fn read(section: &mut Section<'_>, columns: &[String]) -> Result<Option<Self>, Refusal> {
        let asked = match section.get("method") {
            None => false,
            Some(item) => item.word(&[("moments", false), ("sketch", true)])?,
        };
        let fix = "Write an even number, for example rows = 500.";
        let rows = optional_count(section, "rows", 2, MOST_ROWS, fix)?;
        let fix = "Write for example directions = [{ age = 1, educ = -1 }].";
        let directions = match section.get("directions") {
            None => None,
            Some(item) => Some(directions(&item, columns, fix)?),
        };
        if !asked {
            for (key, given) in [
                ("rows", rows.is_some()),
                ("directions", directions.is_some()),
            ] {
                if given {
                    let line = section.line_of(key);
                    return Err(section
                        .refuse(format!("`{key}` and method = \"sketch\" belong together"))
                        .at_line(line)
                        .for_key(format!("release.{key}"))
                        .accepting("Add method = \"sketch\", or remove the key."));
                }
            }
            return Ok(None);
        }
        if let (Some(rows), Some(item)) = (rows, section.get("rows"))
            && !rows.is_multiple_of(2)
        {
            return Err(item
                .refuse(
                    "an even number of rows is needed: the exact price of odd ones is not built",
                )
                .accepting("Write an even number, for example rows = 500."));
        }
        for key in OF_NOISY_MOMENTS {
            if let Some(item) = section.get(key) {
                return Err(item
                    .refuse("has no effect on a sketch, to which no noise is added")
                    .accepting("Remove it, or method = \"sketch\"."));
            }
        }
        Ok(Some(Self {
            rows,
            directions: directions.unwrap_or_default(),
        }))
    }

    fn canonical(&self, fields: &mut Map<String, Value>) {
        for key in OF_NOISY_MOMENTS {
            fields.remove(key);
        }
        fields.insert("method".to_owned(), json!("sketch"));
        fields.insert("rows".to_owned(), json!(self.rows.unwrap_or(ROWS)));
        let directions = self.directions.iter().map(|d| {
            let weights = d.iter().map(|(name, w)| (name.clone(), json!(w)));
            Value::Object(weights.collect())
        });
        fields.insert("directions".to_owned(), directions.collect());
    }
}

/// Tables of coefficients, each of a column of the release.
fn directions(
    item: &Item<'_>,
    columns: &[String],
    fix: &str,
) -> Result<Vec<Vec<(String, f64)>>, Refusal> {
    let mut found = Vec::new();
    for element in item.list(fix)? {
        let mut direction = Vec::new();
        for (name, weight) in element.section(fix)?.all() {
            let name = formula::canonical(&name).map_err(|e| weight.refuse(e.to_string()))?;
            if !columns.contains(&name) {
                return Err(weight
                    .refuse(format!("{name} is not a column of this release"))
                    .accepting(format!("Its columns are {}.", columns.join(", "))));
            }
            let value = weight.real(fix)?;
            if value != 0.0 && !(1e-100..=1e100).contains(&value.abs()) {
                return Err(weight.refuse("is too large or too small").accepting(fix));
            }
            if direction.iter().any(|(n, _)| *n == name) {
                return Err(weight
                    .refuse(format!("{name} is there twice"))
                    .accepting("Remove one of the two."));
            }
            direction.push((name, value));
        }
        if direction.iter().all(|(_, w)| *w == 0.0) {
            return Err(element
                .refuse("a direction needs a coefficient other than 0")
                .accepting(fix));
        }
        found.push(direction);
    }
    Ok(found)
}

impl CovarianceSpec {
    pub(super) fn read(section: &mut Section<'_>) -> Result<Self, Refusal> {
        let fix = "Write columns = [\"age\", \"log1p(income)\"].";
        let item = section.need("columns", fix)?;
        let mut columns: Vec<String> = Vec::new();
        for element in item.list(fix)? {
            let text = element.text(fix)?;
            let name = formula::canonical(text).map_err(|e| element.refuse(e.to_string()))?;
            if columns.contains(&name) {
                return Err(element
                    .refuse("this column is listed twice")
                    .accepting("Remove one of the two."));
            }
            columns.push(name);
        }
        if columns.is_empty() || columns.len() > 1000 {
            return Err(item
                .refuse("between 1 and 1000 columns are accepted")
                .accepting(fix));
        }
        let fix = "Write the largest Euclidean norm of a row that should count, for example data_norm = 1.";
        let data_norm = positive_real(section, "data_norm", fix)?;
        // squares and fourth powers of it are taken
        if data_norm.is_some_and(|norm| !(1e-60..=1e60).contains(&norm)) {
            return Err(section
                .refuse("data_norm must lie between 1e-60 and 1e60")
                .for_key("release.data_norm")
                .accepting(fix));
        }
        let sketch = SketchSpec::read(section, &columns)?;
        let clip = match section.get("clip") {
            None => Clip::None,
            Some(item) => item.word(&[("private", Clip::Private), ("none", Clip::None)])?,
        };
        let repair = match section.get("repair") {
            None => Repair::Clip,
            Some(item) => item.word(&[
                ("clip", Repair::Clip),
                ("lift", Repair::Lift),
                ("none", Repair::None),
            ])?,
        };
        let bits = optional_count(section, "grid_bits", 8, 24, "Write for example 24.")?;
        Ok(Self {
            columns,
            data_norm,
            clip,
            noise: PureNoise::read(section)?,
            repair,
            grid_bits: bits.unwrap_or(DEFAULT_GRID_BITS),
            sketch,
        })
    }

    pub(super) fn canonical(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("columns".to_owned(), json!(self.columns));
        fields.insert("data_norm".to_owned(), json!(self.data_norm));
        fields.insert("clip".to_owned(), json!(self.clip.name()));
        let repair = match self.repair {
            Repair::Clip => "clip",
            Repair::Lift => "lift",
            Repair::None => "none",
        };
        fields.insert("repair".to_owned(), json!(repair));
        fields.insert("grid_bits".to_owned(), json!(self.grid_bits));
        self.noise.canonical(&mut fields);
        if let Some(sketch) = &self.sketch {
            sketch.canonical(&mut fields);
        }
        Value::Object(fields)
    }
}

/// Fields of a `regress`: a regression from a released covariance, at no cost.
#[derive(Clone, Debug, PartialEq)]
pub struct RegressSpec {
    /// The covariance release.
    pub from: ModelRef,
    /// The formula; its columns are among those of the covariance.
    pub formula: String,
    /// What is reported.
    pub reported: Reported,
}

impl RegressSpec {
    pub(super) fn read(
        section: &mut Section<'_>,
        earlier: &[ReleaseSpec],
    ) -> Result<Self, Refusal> {
        let why = "A regression is read off a covariance release.";
        Ok(Self {
            from: reference(section, earlier, "from", &["covariance"], why)?,
            formula: formula_of(section)?,
            reported: Reported::read(section)?,
        })
    }
}

/// Which threshold of a ROC curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Point {
    /// Youden's J.
    #[default]
    Youden,
    /// Closest to the top left corner.
    TopLeft,
}

/// Fields of a `threshold`: read off a released ROC curve, at no cost.
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdSpec {
    /// The ROC release.
    pub from: ModelRef,
    /// Which point.
    pub method: Point,
}

/// Whether a release is a plot of several ROC curves, so that it does not say which to read.
fn several_curves(kind: &KindSpec) -> bool {
    matches!(kind, KindSpec::Roc(roc) if roc.models.len() > 1)
}

impl ThresholdSpec {
    pub(super) fn read(
        section: &mut Section<'_>,
        earlier: &[ReleaseSpec],
    ) -> Result<Self, Refusal> {
        let why = "A threshold is read off a ROC curve.";
        let from = reference(section, earlier, "from", &["roc"], why)?;
        if let ModelRef::Release(id) = &from
            && earlier
                .iter()
                .any(|r| &r.id == id && several_curves(&r.kind))
        {
            let line = section.line_of("from");
            return Err(section
                .refuse(format!("the release \"{id}\" has several curves"))
                .at_line(line)
                .accepting("Name a roc release of one model."));
        }
        let method = match section.get("method") {
            None => Point::Youden,
            Some(item) => item.word(&[("youden", Point::Youden), ("topleft", Point::TopLeft)])?,
        };
        Ok(Self { from, method })
    }

    pub(super) fn canonical(&self) -> Value {
        json!({"method": match self.method { Point::Youden => "youden", Point::TopLeft => "topleft" }})
    }
}

/// Fields of `verify`.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifySpec {
    /// The formula of the regression.
    pub formula: String,
    /// Whether it is logistic instead of least squares.
    pub logistic: bool,
    /// The outcome level that counts as positive, of a logistic regression.
    pub positive: Option<String>,
    /// The term whose coefficient is meant.
    pub term: String,
    /// What is said of it.
    pub claim: Claim,
    /// Number of groups; a public rule chooses it if absent.
    pub groups: Option<u32>,
    /// Public seed of the division into groups.
    pub seed: u32,
}

impl VerifySpec {
    pub(super) fn read(section: &mut Section<'_>) -> Result<Self, Refusal> {
        let formula = formula_of(section)?;
        let logistic = match section.get("family") {
            None => false,
            Some(item) => item.word(&[("linear", false), ("logistic", true)])?,
        };
        let fix = "Write the level that counts as positive, for example positive = \">50K\".";
        let positive = match section.get("positive") {
            None => None,
            Some(item) if !logistic => {
                return Err(item
                    .refuse("only a logistic regression has a positive outcome")
                    .accepting("Remove it, or add family = \"logistic\"."));
            }
            Some(item) => Some(item.name(fix)?),
        };
        let fix =
            "Write the term of the formula whose coefficient is meant, for example term = \"age\".";
        let term = section.need("term", fix)?.text(fix)?.to_owned();
        let claim = claim(section)?;
        let fix = "Write a number of groups such as 101, or leave it to the rule.";
        let groups = optional_count(section, "groups", 3, MOST_GROUPS, fix)?;
        let fix = "Write a whole number, for example seed = 1.";
        let seed = optional_count(section, "seed", 0, u32::MAX, fix)?.unwrap_or(1);
        Ok(Self {
            formula,
            logistic,
            positive,
            term,
            claim,
            groups,
            seed,
        })
    }

    /// The regression.
    pub(crate) fn family(&self) -> formula::Family {
        if self.logistic {
            formula::Family::Logistic
        } else {
            formula::Family::Linear
        }
    }

    pub(super) fn canonical(&self) -> Value {
        let text = formula::canonical(&self.formula).unwrap_or_else(|_| self.formula.clone());
        let claim = match self.claim {
            Claim::Differs { from, level } => json!({"from": from, "level": level}),
            Claim::Within { low, high } => json!({"within": [low, high]}),
        };
        json!({
            "formula": text, "family": if self.logistic { "logistic" } else { "linear" },
            "positive": self.positive, "term": self.term, "claim": claim, "groups": self.groups, "seed": self.seed,
        })
    }
}

/// `within = [low, high]`, or `from` and `level`.
fn claim(section: &mut Section<'_>) -> Result<Claim, Refusal> {
    let fix = "Write the number that the coefficient is compared with, for example from = 0.";
    let from = (section.get("from")).map(|i| i.real(fix)).transpose()?;
    let fix = "Write a level between 0 and 1, for example level = 0.05.";
    let level = match section.get("level") {
        None => None,
        Some(item) => match item.real(fix)? {
            x if x > 0.0 && x < 1.0 => Some(x),
            _ => return Err(item.refuse("must lie between 0 and 1").accepting(fix)),
        },
    };
    let Some(range) = section.get("within") else {
        return Ok(Claim::Differs {
            from: from.unwrap_or(0.0),
            level: level.unwrap_or(0.05),
        });
    };
    if from.or(level).is_some() {
        return Err(range
            .refuse("`within` asks another question than `from` and `level`")
            .accepting("Remove `within`, or the other keys."));
    }
    let fix =
        "Write the range as two numbers, the smaller one first: for example within = [1.5, 2.5].";
    let ends = range.list(fix)?;
    let [low, high] = ends.as_slice() else {
        return Err(range.refuse("two numbers are needed").accepting(fix));
    };
    let (low, high) = (low.real(fix)?, high.real(fix)?);
    if low >= high {
        return Err(range
            .refuse("the first number must be smaller than the second")
            .accepting(fix));
    }
    Ok(Claim::Within { low, high })
}

/// The use of an earlier selection.
#[derive(Clone, Debug, PartialEq)]
pub struct Selected {
    /// The `select` release, of the same plan.
    pub from: ModelRef,
    /// How many features it may have chosen.
    pub most: u32,
}

impl Selected {
    /// Reads `features = "sel"`; with it come formula and positive outcome of that release, which then must not be given.
    pub(super) fn read(
        section: &mut Section<'_>,
        earlier: &[ReleaseSpec],
    ) -> Result<Option<(Self, SelectSpec)>, Refusal> {
        let Some(item) = section.get("features") else {
            return Ok(None);
        };
        let why = "Name an earlier select release of this plan.";
        if item.text(why)?.contains('#') {
            return Err(item
                .refuse("only a selection of the same plan can be used")
                .accepting(why));
        }
        let from = reference(section, earlier, "features", &["select"], why)?;
        let found = earlier.iter().find_map(|r| match (&r.kind, &from) {
            (KindSpec::Select(s), ModelRef::Release(id)) if r.id == *id => Some(s.clone()),
            _ => None,
        });
        for key in ["formula", "positive"] {
            if let Some(item) = section.get(key) {
                return Err(item
                    .refuse("features and outcome are those of the selection")
                    .accepting(format!("Remove `{key}`, or `features`.")));
            }
        }
        Ok(found.map(|spec| {
            let most = match (spec.keep, spec.method) {
                (Keep::Top(k), _) => k,
                (Keep::Above(_), Some(Method::SparseVector { answers })) => answers,
                (Keep::Above(_), _) => u32::MAX,
            };
            (Self { from, most }, spec)
        }))
    }

    /// Only what differs from the defaults, so that plans without this key keep their request ids.
    pub(super) fn canonical(selected: Option<&Self>, fields: &mut Map<String, Value>) {
        if selected.is_some() {
            fields.insert("features".to_owned(), json!("selected"));
        }
    }
}

/// Fields of a `select`.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectSpec {
    /// label ~ features.
    pub formula: String,
    /// The level of the label that counts as positive.
    pub positive: Option<String>,
    /// Which features are kept.
    pub keep: Keep,
    /// By which score.
    pub scoring: Scoring,
    /// How; a rule on public numbers if absent.
    pub method: Option<Method>,
}

impl SelectSpec {
    pub(super) fn read(section: &mut Section<'_>) -> Result<Self, Refusal> {
        let fix = "Write features = [\"text\"]: texts (columns of type = \"tokens\") and conditions such as \"(hours > 40)\".";
        let item = section.need("features", fix)?;
        let mut features: Vec<String> = Vec::new();
        for element in item.list(fix)? {
            let text = element.text(fix)?;
            let name = formula::canonical(text).map_err(|e| element.refuse(e.to_string()))?;
            if features.contains(&name) {
                return Err(element
                    .refuse("this feature is listed twice")
                    .accepting("Remove one of the two."));
            }
            features.push(name);
        }
        if features.is_empty() || features.len() > 10_000 {
            return Err(item
                .refuse("between 1 and 10000 entries are accepted")
                .accepting(fix));
        }
        let fix =
            "Write the outcome that features should tell apart, for example label = \"spam\".";
        let item = section.need("label", fix)?;
        let label = formula::canonical(item.text(fix)?).map_err(|e| item.refuse(e.to_string()))?;
        let formula = format!("{label} ~ {}", features.join(" + "));
        if formula::canonical(&formula).is_err() {
            return Err(item.refuse("not an outcome").accepting(fix));
        }
        let fix = "Write the level that counts as positive, for example positive = \"yes\".";
        let positive = section.get("positive").map(|i| i.name(fix)).transpose()?;
        let item = section.need("keep", KEEP)?;
        Ok(Self {
            formula,
            positive,
            keep: keep(&item)?,
            scoring: scoring(section)?.unwrap_or(Scoring::DifferenceCount),
            method: method(section)?,
        })
    }

    pub(super) fn canonical(&self) -> Value {
        let size = match self.method {
            Some(Method::Clusters(k)) => Some(k),
            Some(Method::SparseVector { answers }) => Some(answers),
            _ => None,
        };
        json!({
            "formula": formula::canonical(&self.formula).unwrap_or_else(|_| self.formula.clone()),
            "positive": self.positive,
            "keep": canonical_keep(self.keep),
            "scoring": self.scoring.name(),
            "method": self.method.map(Method::name),
            "size": size,
        })
    }
}

/// What a key `keep` accepts.
const KEEP: &str = "Write keep = { top = 20 }, or keep = { above = 100 } for all features with a score above that.";

pub(super) fn canonical_keep(keep: Keep) -> Value {
    match keep {
        Keep::Top(k) => json!({"top": k}),
        Keep::Above(t) => json!({"above": t}),
    }
}

fn scoring(section: &mut Section<'_>) -> Result<Option<Scoring>, Refusal> {
    let words = Scoring::ALL.map(|s| (s.name(), s));
    (section.get("scoring")).map(|i| i.word(&words)).transpose()
}

/// `keep` and `scoring` of a naive Bayes classifier, which selects by the counts that it buys anyway.
pub(super) fn kept(
    section: &mut Section<'_>,
    selected: bool,
) -> Result<Option<(Scoring, Keep)>, Refusal> {
    let by = scoring(section)?;
    let line = section.line_of("scoring");
    let Some(item) = section.get("keep") else {
        return match by {
            None => Ok(None),
            Some(_) => Err(section
                .refuse("`scoring` says by which score features are kept, and all are")
                .at_line(line)
                .for_key("release.scoring")
                .accepting("Add for example keep = { top = 20 }, or remove `scoring`.")),
        };
    };
    if selected {
        return Err(item
            .refuse("the features were chosen by another release already")
            .accepting("Remove `keep`, or write a formula in place of `features`."));
    }
    let by = by.unwrap_or(Scoring::DifferenceCount);
    Ok(Some((by, keep(&item)?)))
}

fn keep(item: &Item<'_>) -> Result<Keep, Refusal> {
    let fix = KEEP;
    let mut table = item.section(fix)?;
    let top = optional_count(&mut table, "top", 1, 1 << 20, fix)?;
    let above = table.get("above").map(|i| i.real(fix)).transpose()?;
    table.finish()?;
    match (top, above) {
        (Some(k), None) => Ok(Keep::Top(k)),
        (None, Some(t)) if t.abs() <= 1e15 => Ok(Keep::Above(t)),
        (Some(_), Some(_)) => Err(item
            .refuse("`top` and `above` exclude each other")
            .accepting(fix)),
        (None, Some(_)) => Err(item.refuse("`above` is too large").accepting(fix)),
        (None, None) => Err(item
            .refuse("either `top` or `above` is needed")
            .accepting(fix)),
    }
}

fn method(section: &mut Section<'_>) -> Result<Option<Method>, Refusal> {
    const NAMES: [(&str, u8); 4] = [
        ("counts", 0),
        ("clusters", 1),
        ("picks", 2),
        ("sparse_vector", 3),
    ];
    let word = section.get("method").map(|i| i.word(&NAMES)).transpose()?;
    let fix = "Write the number of clusters, for example clusters = 8.";
    let clusters = optional_count(section, "clusters", 1, 100_000, fix)?;
    let fix = "Write how many features are found before it stops, for example answers = 10.";
    let answers = optional_count(section, "answers", 1, 1 << 20, fix)?;
    for (key, belongs, given) in [("clusters", 1, clusters), ("answers", 3, answers)] {
        if (word == Some(belongs)) != given.is_some() {
            let (line, name) = (section.line_of(key), NAMES[usize::from(belongs)].0);
            return Err(section
                .refuse(format!("`{key}` and method = \"{name}\" belong together"))
                .at_line(line)
                .for_key(format!("release.{key}"))
                .accepting(format!("Write both, for example {key} = 8, or neither.")));
        }
    }
    Ok(match (word, clusters, answers) {
        (Some(0), ..) => Some(Method::Counts),
        (Some(2), ..) => Some(Method::Picks),
        (_, Some(k), _) => Some(Method::Clusters(k)),
        (_, _, Some(answers)) => Some(Method::SparseVector { answers }),
        _ => None,
    })
}
