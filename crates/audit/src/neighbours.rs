//! Neighbour tests: the exact worst loss of shipped code over all pairs of neighbouring small tables.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use reticent_accounting::{Currency, Price, Rational, Relation, sequential};
use reticent_laws::{Distribution, Silent, Window, enumerate};
use reticent_mechanisms::program::RowProgram;
use reticent_mechanisms::{Context, Mechanism, Simulated, Trace, Unit, simulate};
use reticent_noise::{Cauchy, Correlated, GammaNorm, Lattice, LogWeights, Natural, Noise};
use serde_json::Value;

use crate::AuditError;
use crate::canary::Weakened;
use crate::tables::{Multiset, Table, Universe, neighbours};

/// Outputs less likely than this in both tables are not looked at.
pub const FLOOR: f64 = 1e-9;

/// Probability that may be lost beyond the followed part of each draw. Against [`FLOOR`] it changes a loss by at
/// most 1e-7, so that recorded losses can be asserted to 1e-6.
pub const TAIL: f64 = 1e-16;

/// The largest |ln P/P′| over the pairs of one relation, and where it is reached.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Worst {
    /// The loss; infinite if an output is possible for one table only.
    pub loss: f64,
    /// The pair of tables.
    pub pair: Option<(Multiset, Multiset)>,
}

/// What an enumeration found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Losses {
    /// One unit added or removed.
    pub add_remove: Worst,
    /// One unit replaced.
    pub replace_one: Worst,
    /// Number of tables enumerated.
    pub tables: usize,
    /// Largest number of different outputs of one table.
    pub outputs: usize,
    /// Largest probability of the branches not followed for one table.
    pub lost: f64,
}

impl Losses {
    /// The loss under a relation.
    pub fn under(&self, relation: Relation) -> f64 {
        match relation {
            Relation::AddRemove => self.add_remove.loss,
            Relation::ReplaceOne => self.replace_one.loss,
        }
    }
}

/// Method E: the exact output law of `program` on every table, compared over all neighbouring pairs. `program` may
/// run anything: a shipped mechanism, a broken one.
pub fn losses<O: Ord + Send + Sync>(
    tables: &[Multiset],
    program: impl Fn(&Multiset, &mut dyn Noise) -> O + Sync,
) -> Result<Losses, AuditError> {
    let laws: Vec<Distribution<O>> = tables
        .par_iter()
        .map(|t| enumerate(Window::Tail(TAIL), |noise| program(t, noise)))
        .collect();
    if let Some(problem) = laws.iter().find_map(Distribution::problem) {
        return Err(AuditError::Method(problem.to_owned()));
    }
    Ok(Losses {
        add_remove: worst(tables, &laws, Relation::AddRemove),
        replace_one: worst(tables, &laws, Relation::ReplaceOne),
        tables: tables.len(),
        outputs: laws.iter().map(Distribution::len).max().unwrap_or(0),
        lost: laws.iter().map(Distribution::lost).fold(0.0, f64::max),
    })
}

fn worst<O: Ord>(tables: &[Multiset], laws: &[Distribution<O>], relation: Relation) -> Worst {
    let mut worst = Worst::default();
    for (i, j) in neighbours(tables, relation) {
        let loss = laws[i].worst_loss(&laws[j], FLOOR);
        if loss > worst.loss || worst.pair.is_none() {
            worst = Worst {
                loss,
                pair: Some((tables[i].clone(), tables[j].clone())),
            };
        }
    }
    worst
}

/// A shipped mechanism in a small world.
pub struct Case<'a> {
    /// The units tables are made of.
    pub universe: &'a Universe,
    /// What is read from each record.
    pub program: &'a RowProgram,
    /// What is bought.
    pub mechanism: &'a dyn Mechanism,
    /// The privacy unit.
    pub unit: Unit,
    /// What the mechanism is calibrated for.
    pub context: &'a Context,
}

impl Case<'_> {
    /// Runs the mechanism through `simulate`, the code path of releases.
    pub fn run(&self, table: &Table, noise: &mut dyn Noise) -> Result<(Value, Trace), AuditError> {
        simulate(
            table,
            self.unit,
            self.context,
            self.program,
            self.mechanism,
            noise,
        )
        .map(|Simulated((answer, trace))| (answer.value, trace))
        .map_err(|e| AuditError::Failed {
            table: Vec::new(),
            cause: e.to_string(),
        })
    }

    /// Method E over the given tables.
    pub fn losses(&self, tables: &[Multiset]) -> Result<Losses, AuditError> {
        self.weakened_losses(tables, None)
    }

    /// Method E with all noise scales multiplied by `factor`: what a canary loses.
    pub fn weakened_losses(
        &self,
        tables: &[Multiset],
        factor: Option<&Rational>,
    ) -> Result<Losses, AuditError> {
        let failure = Mutex::new(None);
        let sources: std::collections::BTreeMap<&Multiset, Table> = tables
            .iter()
            .map(|t| (t, self.universe.source(t)))
            .collect();
        let found = losses(tables, |table, noise| {
            let source = &sources[table];
            let result = match factor {
                Some(f) => self.run(source, &mut Weakened::new(noise, f.clone())),
                None => self.run(source, noise),
            };
            match result {
                Ok((value, _)) => value.to_string(),
                Err(e) => {
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) =
                        Some(AuditError::Failed {
                            table: table.clone(),
                            cause: e.to_string(),
                        });
                    String::new()
                }
            }
        })?;
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(e) => Err(e),
            None => Ok(found),
        }
    }

    /// Method M: the strategy matrix of an additive mechanism, read off the shipped code.
    pub fn strategy(&self) -> Result<Strategy, AuditError> {
        Strategy::extract(self)
    }

    /// Law and scale of the noise on each output of an additive mechanism.
    pub fn noise(&self) -> Result<Vec<(&'static str, f64)>, AuditError> {
        let empty = vec![0; self.universe.len()];
        let (value, _) = self.run(&self.universe.source(&empty), &mut Silent)?;
        let offset = numbers(&value);
        let noise = Strategy::marks(self, &offset, 32)?;
        if noise != Strategy::marks(self, &offset, 34)? {
            return Err(AuditError::Method(
                "its outputs are not linear in the draws".to_owned(),
            ));
        }
        Ok(noise)
    }

    /// Method C: see [`contract`].
    pub fn contract(&self, tables: &[Multiset]) -> Result<Price, AuditError> {
        contract(self, tables)
    }
}

/// An additive mechanism: output = A·(unit counts) + offset + noise, one draw per output.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    /// One column of A per unit.
    pub columns: Vec<Vec<f64>>,
    /// The noise on each output: its law, and its scale in units of the output.
    pub noise: Vec<(&'static str, f64)>,
}

impl Strategy {
    /// Runs the mechanism without noise on the empty table, on every unit alone and on pairs, and twice with marked
    /// noise; refuses when the outputs are not additive in units or in draws.
    fn extract(case: &Case<'_>) -> Result<Self, AuditError> {
        let k = case.universe.len();
        let silent = |units: &[usize]| -> Result<Vec<f64>, AuditError> {
            let mut table = vec![0; k];
            units.iter().for_each(|u| table[*u] += 1);
            let (value, _) = case.run(&case.universe.source(&table), &mut Silent)?;
            Ok(numbers(&value))
        };
        let offset = silent(&[])?;
        let noise = case.noise()?;
        let minus_offset =
            |v: Vec<f64>| -> Vec<f64> { v.iter().zip(&offset).map(|(a, b)| a - b).collect() };
        let columns = (0..k)
            .map(|u| silent(&[u]).map(minus_offset))
            .collect::<Result<Vec<_>, _>>()?;
        // all pairs of few units; of many, every unit with itself and with its two successors
        let reach = if k <= 16 { k } else { 3 };
        for u in 0..k {
            for v in (u..k).take(reach) {
                let both = minus_offset(silent(&[u, v])?);
                let sum: Vec<f64> = columns[u]
                    .iter()
                    .zip(&columns[v])
                    .map(|(a, b)| a + b)
                    .collect();
                if both != sum {
                    return Err(AuditError::Method(format!(
                        "units {u} and {v} together are not the sum of each alone"
                    )));
                }
            }
        }
        Ok(Self { columns, noise })
    }

    /// Law and scale of the draw on each output, from one run with distinct marks as draws.
    fn marks(
        case: &Case<'_>,
        offset: &[f64],
        shift: u32,
    ) -> Result<Vec<(&'static str, f64)>, AuditError> {
        let mut marked = Marked {
            shift,
            ..Marked::default()
        };
        let empty = vec![0; case.universe.len()];
        let (value, _) = case.run(&case.universe.source(&empty), &mut marked)?;
        if let Some(other) = marked.other {
            return Err(AuditError::Method(format!("it draws {other}")));
        }
        let outputs = numbers(&value);
        if marked.draws.len() != offset.len() || outputs.len() != offset.len() {
            return Err(AuditError::Method(
                "it does not draw once per output".to_owned(),
            ));
        }
        let scaled = outputs.iter().zip(offset).zip(&marked.draws);
        scaled
            .enumerate()
            .map(|(i, ((out, offset), (law, scale)))| {
                // the unit of the grid the draw counts in
                let unit = (out - offset) / marked.mark(i);
                let (mantissa, _) = libm::frexp(unit);
                if unit > 0.0 && (mantissa - 0.5).abs() < f64::EPSILON {
                    Ok((*law, scale * unit))
                } else {
                    Err(AuditError::Method(format!(
                        "output {i} is not its exact value plus its draw"
                    )))
                }
            })
            .collect()
    }

    /// The exact loss of Laplace noise: max over units of Σ|A_ij|/b_i, or over pairs of units of Σ|A_ij − A_ik|/b_i.
    /// Infinite if an output that differs has another noise than Laplace.
    pub fn loss(&self, relation: Relation) -> f64 {
        self.worst(relation, |d, law, scale| match law {
            "discrete Laplace" => d / scale,
            _ => f64::INFINITY,
        })
    }

    /// The largest distance in standard deviations of Gaussian noise: max √Σ((A_ij − A_ik)/σ_i)². Infinite if an
    /// output that differs has another noise.
    pub fn deviations(&self, relation: Relation) -> f64 {
        let squared = self.worst(relation, |d, law, scale| match law {
            "discrete Gaussian" | "rounded Gaussian" => (d / scale) * (d / scale),
            _ => f64::INFINITY,
        });
        libm::sqrt(squared)
    }

    /// The largest sum over outputs of `cost(|difference|, law, scale)`.
    fn worst(&self, relation: Relation, cost: impl Fn(f64, &str, f64) -> f64) -> f64 {
        let nothing = vec![0.0; self.noise.len()];
        let distance = |a: &[f64], b: &[f64]| -> f64 {
            a.iter()
                .zip(b)
                .zip(&self.noise)
                .map(|((a, b), (law, scale))| {
                    let d = (a - b).abs();
                    if d > 0.0 { cost(d, law, *scale) } else { 0.0 }
                })
                .sum()
        };
        let mut worst: f64 = 0.0;
        for a in &self.columns {
            match relation {
                Relation::AddRemove => worst = worst.max(distance(a, &nothing)),
                Relation::ReplaceOne => {
                    for b in &self.columns {
                        worst = worst.max(distance(a, b));
                    }
                }
            }
        }
        worst
    }
}

/// Draws a different large number each time and remembers laws and scales.
#[derive(Default)]
struct Marked {
    shift: u32,
    draws: Vec<(&'static str, f64)>,
    other: Option<&'static str>,
}

impl Marked {
    /// Distinct, and exact in f64 beside the small numbers of tests.
    fn mark(&self, i: usize) -> f64 {
        f64::from(u32::try_from(i + 1).unwrap_or(u32::MAX)) * libm::exp2(f64::from(self.shift))
    }
}

impl Noise for Marked {
    fn bits(&mut self) -> u64 {
        self.other = Some("raw bits");
        0
    }
    fn lattice(&mut self, d: &Lattice) -> i128 {
        #[allow(clippy::cast_possible_truncation, reason = "a whole number below 2^66")]
        let mark = self.mark(self.draws.len()) as i128;
        self.draws.push((d.name(), d.scale().to_f64()));
        mark
    }
    fn exceeds(&mut self, _: &Lattice, _: i128) -> bool {
        self.other = Some("a comparison");
        true
    }
    fn choose(&mut self, _: &LogWeights) -> usize {
        self.other = Some("a choice");
        0
    }
    fn below(&mut self, _: u64) -> u64 {
        self.other = Some("a uniform integer");
        0
    }
    fn pick(&mut self, _: &[Natural]) -> usize {
        self.other = Some("a choice");
        0
    }
    fn vector(&mut self, d: &GammaNorm) -> Vec<i128> {
        self.other = Some("a vector");
        vec![0; d.dimension]
    }
    fn rows(&mut self, d: &Correlated) -> Vec<i128> {
        self.other = Some("Gaussian rows");
        vec![0; d.rows * d.dimension]
    }
    fn cauchy(&mut self, _: &Cauchy) -> i128 {
        self.other = Some("a Cauchy variable");
        0
    }
}

/// All numbers of a value, in order.
pub fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Number(n) => n.as_f64().into_iter().collect(),
        Value::Array(a) => a.iter().flat_map(numbers).collect(),
        Value::Object(o) => o.values().flat_map(numbers).collect(),
        _ => Vec::new(),
    }
}

/// Noise so large that no data shine through it: additive draws saturate every sum, choices and comparisons take
/// answers fixed by a pattern. What still differs between tables got out without being paid for.
#[derive(Clone, Debug)]
pub struct Drowned {
    pattern: u64,
}

impl Drowned {
    /// One of 2^64 patterns of answers.
    pub fn new(pattern: u64) -> Self {
        Self { pattern }
    }

    fn next(&mut self) -> u64 {
        // a full-period generator; its quality does not matter
        self.pattern = self
            .pattern
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.pattern >> 33
    }
}

impl Noise for Drowned {
    fn bits(&mut self) -> u64 {
        self.next()
    }
    fn lattice(&mut self, d: &Lattice) -> i128 {
        // a draw of zero noise stays zero: it would hide nothing in a release either
        if d.scale().is_zero() {
            return 0;
        }
        // far beyond any exact sum of a small table, and all of a few small integers more or less round to it; the lower
        // part keeps sums of different draws apart, so that no tie is left for the data to break
        ((i128::from(self.next() % 7) + 1) << 120) + (i128::from(self.next()) << 88)
    }
    fn exceeds(&mut self, _: &Lattice, _: i128) -> bool {
        self.next().is_multiple_of(2)
    }
    fn choose(&mut self, w: &LogWeights) -> usize {
        let n = w.cells.len().max(1) as u64;
        usize::try_from(self.next() % n).unwrap_or(0)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
    fn pick(&mut self, weights: &[Natural]) -> usize {
        let n = weights.len().max(1) as u64;
        usize::try_from(self.next() % n).unwrap_or(0)
    }
    fn vector(&mut self, d: &GammaNorm) -> Vec<i128> {
        (0..d.dimension)
            .map(|_| (i128::from(self.next() % 7) + 1) << 120)
            .collect()
    }
    fn rows(&mut self, d: &Correlated) -> Vec<i128> {
        // as if the table were nothing beside what is added
        let mut draw = || i128::from(self.next() % 7) << 100;
        (0..d.rows * d.dimension).map(|_| draw()).collect()
    }
    fn cauchy(&mut self, _: &Cauchy) -> i128 {
        // small enough to be a boundary of a grid now and then
        i128::from(self.next() % 7)
    }
}

/// Method C, for composites whose paid steps have tests of their own.
///
/// 1. The leaves' prices add up to the declared price, in the context's currency.
/// 2. Exactly the declared steps are bought, on every table.
/// 3. With [`Drowned`] noise (three patterns) the answer is the same on every table to nine digits:
///    only paid noise stands between data and output.
///
/// Returns the price.
pub fn contract(case: &Case<'_>, tables: &[Multiset]) -> Result<Price, AuditError> {
    let refuse = |what: String| Err(AuditError::Contract(what));
    let currency: Currency = case.context.currency;
    let event = case
        .mechanism
        .event(case.context)
        .map_err(|e| AuditError::Contract(e.to_string()))?;
    let price = event
        .price(currency)
        .map_err(|e| AuditError::Contract(e.to_string()))?;
    let leaves = event
        .leaves()
        .iter()
        .map(|l| l.price(currency))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| AuditError::Contract(e.to_string()))?;
    if sequential(&leaves) != price {
        return refuse(format!("leaves do not add up to {price:?}"));
    }
    for pattern in 0..3 {
        let mut answers = BTreeSet::new();
        for table in tables {
            let (value, trace) =
                case.run(&case.universe.source(table), &mut Drowned::new(pattern))?;
            if !trace.unused.is_empty() {
                return refuse(format!("declared but not bought: {:?}", trace.unused));
            }
            if trace.event != event {
                return refuse("the event changed".to_owned());
            }
            answers.insert(as_floats(&value));
        }
        if answers.len() > 1 {
            return refuse(format!(
                "with all noise drowned the answer still depends on the table: {answers:?}"
            ));
        }
    }
    Ok(price)
}

fn as_floats(value: &Value) -> String {
    match value {
        Value::Number(n) => digits(n.as_f64().unwrap_or(f64::NAN)),
        // integers beyond i64 are written as text
        Value::String(s) => s.parse::<f64>().map_or_else(|_| s.clone(), digits),
        Value::Array(a) => a.iter().map(|v| as_floats(v) + ",").collect(),
        Value::Object(o) => o
            .iter()
            .flat_map(|(k, v)| [k.clone(), "=".to_owned(), as_floats(v), ";".to_owned()])
            .collect(),
        other => other.to_string(),
    }
}

/// Nine digits: what is left of a table beside drowned noise in an optimisation lies below the twelfth.
fn digits(x: f64) -> String {
    format!("{x:.8e}")
}
