//! The Johnson-Lindenstrauss sketch: Gaussian rows with the second moments as covariance, and directions read off them.

pub use reticent_accounting::sketch::MOST_ROWS;
use reticent_accounting::{AccountingError, Event, Rational, Size, rational_to_f64};
use reticent_mechanisms::fold::{Fold, Shorten};
use reticent_mechanisms::primitives::{NoisySketch, Sketch};
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::{Value, json};

use super::{Rows, scaled};
use crate::common::{Facts, Prepared, StatisticsError, number, numbers, size, with_metadata};
use crate::design::Affine;
use crate::linear::grid_bits;
use crate::simple::flags;

/// Rows when none are asked for: estimates within 12 % for 95 of 100 directions, before what is added.
pub const ROWS: u32 = 500;

/// A direction: its name, and a coefficient for some of the columns (by position), on the user's scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// As in reports.
    pub name: String,
    /// Position of a column, and its coefficient.
    pub weights: Vec<(usize, f64)>,
}

/// How a sketch is released.
#[derive(Clone, Debug, PartialEq)]
pub struct SketchConfig {
    /// ε
    pub epsilon: Rational,
    /// δ
    pub delta: Rational,
    /// Rows of the sketch, an even number up to 2000; [`ROWS`] by default.
    pub rows: Option<u32>,
    /// What is known about the rows of the data.
    pub norm: Rows,
    /// What is read off; every column by itself if this is empty.
    pub directions: Vec<Direction>,
    /// Rows are rounded to multiples of 2^−bits of the width of their bounds; 8 to 24.
    pub grid_bits: u32,
    /// Public facts copied into the value.
    pub metadata: Value,
}

impl SketchConfig {
    /// The default rules.
    pub fn new(epsilon: Rational, delta: Rational) -> Self {
        Self {
            epsilon,
            delta,
            rows: None,
            norm: Rows::Box,
            directions: Vec::new(),
            grid_bits: 20,
            metadata: Value::Null,
        }
    }
}

/// The sketch of the second moments of named expressions.
///
/// Value: `names`, `rows`, `directions` (`name`, `weights`, `estimate` of Σ(a·v)², `lower` and `upper` of its 95 % interval, `added`: what noise stands in for on the
/// same scale, `mean`: the estimate per record, null unless the number of records is public), `sketch` (`z`, `scale`, `added`, `grid`: what [`directions`] needs).
/// v is a record with every column measured from the middle of its bounds; with [`Rows::Ball`] from 0.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # use reticent_statistics::covariance::Direction;
/// # fn main() -> Result<(), StatisticsError> {
/// let people = People::new();
/// let columns = [("age".to_owned(), AGE), ("income".to_owned(), INCOME)];
/// let delta = Rational::ONE / Rational::from(1_000_000u32);
/// let sum = Direction { name: "income - 5 age".to_owned(), weights: vec![(1, 1.0), (0, -5.0)] };
/// let config = covariance::SketchConfig {
///     directions: vec![sum],
///     ..covariance::SketchConfig::new(Rational::from(5u8), delta)
/// };
/// let value = people.release(&covariance::prepare_sketch(&people.facts(), &columns, &config)?);
/// // income - 5 age lies from -50 to -10 around the middles 300 - 250: 4000 times the mean square 1040
/// let found = &value["directions"][0];
/// let [low, high] = ["lower", "upper"].map(|key| found[key].as_f64().unwrap());
/// assert!(low < 4000.0 * 1040.0 && 4000.0 * 1040.0 < high, "{found}");
/// // any other direction of the same release, at no further cost
/// let age = Direction { name: "age".to_owned(), weights: vec![(0, 1.0)] };
/// let more = covariance::directions(&value, &[age])?;
/// assert!((more[0]["estimate"].as_f64().unwrap() / (4000.0 * 833.5) - 1.0).abs() < 0.25, "{more:?}");
/// # Ok(())
/// # }
/// ```
pub fn prepare_sketch(
    facts: &Facts<'_>,
    columns: &[(String, Expr)],
    config: &SketchConfig,
) -> Result<Prepared, StatisticsError> {
    grid_bits(config.grid_bits)?;
    let (scaling, terms) = scaled(facts, columns, config.norm)?;
    facts.bounds(&terms)?;
    let mut directions = config.directions.clone();
    if directions.is_empty() {
        let alone = |(i, (name, _)): (usize, &(String, Expr))| Direction {
            name: name.clone(),
            weights: vec![(i, 1.0)],
        };
        directions = columns.iter().enumerate().map(alone).collect();
    }
    let (step, fold) = bought(config, columns.len());
    let added = step.added(&fold, facts.context);
    added.map_err(|e| impossible(&step, &e))?;
    let records = match facts.context.size {
        Size::Public(n) if facts.context.rows_per_unit <= 1 => Some(n),
        _ => None,
    };
    let mechanism = Sketched {
        records,
        names: columns.iter().map(|c| c.0.clone()).collect(),
        step,
        fold,
        scaling,
        directions,
        metadata: config.metadata.clone(),
    };
    Ok(Prepared {
        terms,
        mechanism: Box::new(mechanism),
    })
}

/// # Claim
/// (ε, δ) for the context's relation and unit: one [`Sketch`] is bought, and everything else is read off it.
/// # Assumptions
/// Those of the primitive.
/// # Composition
/// None.
/// # Arithmetic
/// For r rows z of law N(0, S + w²I), Σ(z·a)²/(aᵀSa + w²‖a‖²) is χ² with r degrees of freedom, exactly: the estimate is Σ(z·a)²/r − w²‖a‖², the interval divides by the
/// .975 and .025 quantiles. Rounding moves √Σ(z·a)² by at most √r·‖a‖₁·grid/2, by which it is widened.
/// # Checked by
/// `sketch::{intervals_of_directions_cover, directions_follow_the_records, odd_requests_are_refused}`
/// # References
/// Blocki, Blum, Datta, Sheffet 2012.
struct Sketched {
    /// The public number of records, if there is one: known when a plan is read, as where no cell may be missing.
    records: Option<u64>,
    step: Sketch,
    names: Vec<String>,
    fold: Fold,
    scaling: Vec<Affine>,
    directions: Vec<Direction>,
    metadata: Value,
}

impl Mechanism for Sketched {
    fn kind(&self) -> &'static str {
        "covariance"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(Event::Sequence(vec![self.step.event(context)]))
    }
    fn first_pass(&self) -> Vec<Fold> {
        vec![self.fold.clone()]
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let released = desk.sketch(FoldId(0), &self.step)?;
        let read = Read {
            scaling: self.scaling.clone(),
            released,
            records: self.records,
        };
        let found: Vec<(Value, bool)> = self
            .directions
            .iter()
            .map(|d| read.along(d, &self.names))
            .collect();
        let scale = read.scaling.iter();
        let value = json!({
            "family": "covariance",
            "method": "sketch",
            "names": self.names,
            "rows": self.step.rows,
            "centres": read.scaling.iter().map(centre).collect::<Vec<_>>(),
            "directions": found.iter().map(|f| f.0.clone()).collect::<Vec<_>>(),
            "sketch": {
                "z": read.released.rows.iter().map(|z| numbers(z)).collect::<Vec<_>>(),
                "scale": scale.map(|a| json!([number(a.factor), number(a.shift)])).collect::<Vec<_>>(),
                "added": number(read.released.added),
                "grid": number(read.released.grid),
                "records": self.records,
            },
        });
        Ok(Answer {
            value: with_metadata(value, &self.metadata),
            error_95: None,
            flags: flags(&[
                (found.iter().any(|f| f.1), "added_dominates"),
                (self.scaling.contains(&Affine::NOTHING), "constant_term"),
            ]),
        })
    }
}

/// Where a scaled column is 0; nothing for one that has a single value.
fn centre(scaling: &Affine) -> Value {
    if scaling.factor > 0.0 {
        number(0.0 - scaling.shift / scaling.factor)
    } else {
        Value::Null
    }
}

/// A released sketch.
struct Read {
    scaling: Vec<Affine>,
    released: NoisySketch,
    records: Option<u64>,
}

impl Read {
    /// What the rows say of a direction, and whether what is added is more than what was found.
    fn along(&self, direction: &Direction, names: &[String]) -> (Value, bool) {
        let mut a = vec![0.0; self.scaling.len()];
        let mut weights = serde_json::Map::new();
        for (i, weight) in &direction.weights {
            let factor = self.scaling.get(*i).map_or(0.0, |s| s.factor);
            if let (Some(a), Some(name)) = (a.get_mut(*i), names.get(*i)) {
                *a += if factor > 0.0 { weight / factor } else { 0.0 };
                weights.insert(name.clone(), number(*weight));
            }
        }
        let rows = self.released.rows.iter();
        let along = |z: &Vec<f64>| z.iter().zip(&a).map(|(z, a)| z * a).sum::<f64>();
        let total: f64 = rows.map(|z| along(z).powi(2)).sum();
        let r = size(self.released.rows.len());
        let added = self.released.added * a.iter().map(|a| a * a).sum::<f64>();
        let length = a.iter().map(|a| a.abs()).sum::<f64>();
        let off = 0.5 * self.released.grid * r.sqrt() * length;
        let end = |root: f64, level: f64| {
            let square = root.max(0.0).powi(2) / chi_square(level, self.released.rows.len());
            (square - added).max(0.0)
        };
        let estimate = total / r - added;
        let value = json!({
            "name": direction.name,
            "weights": weights,
            "estimate": number(estimate),
            "lower": number(end(total.sqrt() - off, 0.975)),
            "upper": number(end(total.sqrt() + off, 0.025)),
            "added": number(added),
            "mean": self.records.filter(|n| *n > 0).map_or(Value::Null, |n| {
                #[allow(clippy::cast_precision_loss, reason = "a public size")]
                let n = n as f64;
                number(estimate / n)
            }),
        });
        (value, length > 0.0 && estimate < added)
    }
}

/// Directions of a released sketch: post-processing, at no cost. Each has the fields of `directions` in the value of [`prepare_sketch`].
pub fn directions(value: &Value, asked: &[Direction]) -> Result<Vec<Value>, StatisticsError> {
    let refuse = |name, value: &str, fix: &str| StatisticsError::Parameter {
        name,
        value: value.to_owned(),
        fix: fix.to_owned(),
    };
    let reals = |v: &Value| -> Vec<f64> {
        let list = v.as_array().into_iter().flatten();
        list.filter_map(Value::as_f64).collect()
    };
    let part = value.get("sketch").unwrap_or(&Value::Null);
    let lists = |key: &str| -> Vec<Vec<f64>> {
        let list = part.get(key).and_then(Value::as_array);
        list.into_iter().flatten().map(reals).collect()
    };
    let names: Vec<String> = (value.get("names").and_then(Value::as_array).into_iter())
        .flatten()
        .filter_map(|n| n.as_str().map(str::to_owned))
        .collect();
    let scaling: Vec<Affine> = (lists("scale").iter())
        .filter_map(|s| {
            let (factor, shift) = (*s.first()?, *s.get(1)?);
            Some(Affine { factor, shift })
        })
        .collect();
    let rows = lists("z");
    let real = |key: &str| part.get(key).and_then(Value::as_f64);
    let (Some(added), Some(grid)) = (real("added"), real("grid")) else {
        return Err(refuse(
            "from",
            "the release",
            "name a covariance release with method = \"sketch\"",
        ));
    };
    let whole = rows.len() >= 2 && rows.iter().all(|z| z.len() == names.len());
    if names.is_empty() || scaling.len() != names.len() || !whole {
        return Err(refuse("from", "the release", "its sketch is not complete"));
    }
    let outside = |d: &&Direction| d.weights.iter().any(|w| w.0 >= names.len());
    if let Some(d) = asked.iter().find(outside) {
        return Err(refuse(
            "directions",
            &d.name,
            "use columns of the release only",
        ));
    }
    let read = Read {
        scaling,
        released: NoisySketch { rows, added, grid },
        records: part.get("records").and_then(Value::as_u64),
    };
    Ok(asked.iter().map(|d| read.along(d, &names).0).collect())
}

/// The quantile of χ² with an even number of degrees of freedom: its tail is that of a Poisson variable.
fn chi_square(level: f64, freedom: usize) -> f64 {
    let tail = |x: f64| {
        let half = 0.5 * x;
        let term = |j: usize| (size(j) * half.ln() - half - libm::lgamma(size(j) + 1.0)).exp();
        (0..freedom / 2).map(term).sum::<f64>()
    };
    let (mut low, mut high) = (0.0, size(freedom) * 20.0 + 100.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if tail(middle) > 1.0 - level {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// What a budget buys: the relative deviation √(2/r) of an estimate, and what is added on the scale of one column from −½ to ½.
pub fn sketch_error(
    config: &SketchConfig,
    columns: usize,
    context: &Context,
) -> Result<(f64, f64), StatisticsError> {
    let (step, fold) = bought(config, columns);
    let (_, added) = step
        .added(&fold, context)
        .map_err(|e| impossible(&step, &e))?;
    let grid = f64::from(config.grid_bits).exp2();
    let added = rational_to_f64(&Rational::from(added)) / (grid * grid);
    Ok(((2.0 / f64::from(step.rows)).sqrt(), added))
}

fn bought(config: &SketchConfig, columns: usize) -> (Sketch, Fold) {
    let step = Sketch {
        name: "sketch".to_owned(),
        epsilon: config.epsilon.clone(),
        delta: config.delta.clone(),
        rows: config.rows.unwrap_or(ROWS),
    };
    let fold = Fold::Moments {
        terms: 0..columns,
        response: None,
        shorten: Shorten {
            intercept: 0.0,
            squared_norm: match config.norm {
                Rows::Box => f64::INFINITY,
                Rows::Ball(_) => 0.25,
            },
        },
        bits: config.grid_bits,
    };
    (step, fold)
}

fn impossible(step: &Sketch, why: &DeskError) -> StatisticsError {
    StatisticsError::Parameter {
        name: "rows",
        value: step.rows.to_string(),
        fix: why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::chi_square;

    /// R: qchisq(c(.025, .975), c(2, 100)) and so on.
    #[test]
    fn quantiles_are_those_of_tables() {
        for (level, freedom, want) in [
            (0.025, 2, 0.050_635_616),
            (0.975, 2, 7.377_758_908),
            (0.025, 100, 74.221_927_475),
            (0.975, 100, 129.561_197_186),
            (0.975, 500, 563.851_529_344),
        ] {
            let found = chi_square(level, freedom);
            assert!((found / want - 1.0).abs() < 1e-8, "{freedom} {found}");
        }
    }
}
