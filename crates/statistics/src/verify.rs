//! A private yes or no about one coefficient of a regression on the confidential rows: is it different from a number, or within a
//! tolerance of one (a synthetic-data estimate)?
//!
//! The records are divided into groups, every group is fitted on its own and votes, and the number of votes is released with noise. A single
//! group says little; what is tested is whether the groups agree. It is the question a verification server answers.

use reticent_accounting::{AccountingError, Event, Rational};
use reticent_laws::Law;
use reticent_mechanisms::fold::Fold;
pub use reticent_mechanisms::primitives::Family;
use reticent_mechanisms::primitives::{Ask, MOST_GROUPS, Question, Votes};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, Mechanism};
use serde_json::{Value, json};

use crate::common::{
    Facts, Prepared, StatisticsError, clipped, number, positive, real, size, whole, with_metadata,
};
use crate::design::DesignSpec;
use crate::simple::flags;

/// Fewest records a group should have, and fewest per coefficient.
const FEWEST: f64 = 30.0;
const FEWEST_PER_COEFFICIENT: f64 = 10.0;
/// Groups if the number of rows is not known.
const UNKNOWN: u32 = 101;
/// Power for which [`Plan::detects`] is stated, as a normal quantile.
const POWER_80: f64 = 0.841_621_233_572_914_3;

/// What is asked about the coefficient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Claim {
    /// Does it differ from this number, with at most this probability of a yes if it does not?
    Differs {
        /// The number; 0 for "is it significant".
        from: f64,
        /// Level of the test, such as .05.
        level: f64,
    },
    /// Is it in this range?
    Within {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
}

/// How a claim is verified.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// ε of the release.
    pub epsilon: Rational,
    /// Least squares or logistic regression.
    pub family: Family,
    /// Name of the term whose coefficient is meant.
    pub term: String,
    /// The claim.
    pub claim: Claim,
    /// Number of groups; by a public rule if absent ([`prepare`]).
    pub groups: Option<u32>,
    /// Public seed of the division into groups.
    pub seed: u64,
}

impl Config {
    /// Whether a coefficient of a least-squares fit differs from 0 at level .05.
    pub fn new(epsilon: Rational, term: &str) -> Self {
        Self {
            epsilon,
            family: Family::Gaussian,
            term: term.to_owned(),
            claim: Claim::Differs {
                from: 0.0,
                level: 0.05,
            },
            groups: None,
            seed: 1,
        }
    }
}

/// A verified claim.
///
/// *Differs.* A group votes yes if its coefficient is above the number: if the moment of the covariate (what the other covariates leave of it) and the
/// residuals under the number is above more than half of its values over shuffles of the covariate. If the number is right and the residuals do not
/// depend on the covariate, a yes has probability ½ however skewed both are (the sign of the estimate would not: with a rare outcome and a skewed
/// covariate estimates fall below the truth far more often than above). Then the votes are binomial, and the p value is that of the noisy votes under
/// binomial plus noise: exact, with the noise in it. Where skewed residuals also scatter with the covariate, more than a yes in two may remain.
/// The answer is yes if it is at most the level, otherwise undecided: a test does not prove that nothing is there. Groups by default: 64 b² and at
/// least 100, b the scale of the noise, so that the noise adds less than a tenth to the spread of the votes.
///
/// *Within.* A group votes yes if its coefficient is in the range. The answer is what the majority says, and undecided if noise could have turned it
/// (probability .05). Groups have few rows, and their estimates scatter √K times as widely as that of all rows: with K groups the range
/// should be several times √K standard errors wide. So groups by default are few: 16 times the scale of the noise (unanimous
/// groups are then undecided in 1 of 300 cases), at least 15, an odd number.
///
/// Groups have at least 30 records, and 10 per coefficient, if [`Facts::rows`] is known; without it there are 101 groups.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// let people = People::new();
/// let design = DesignSpec {
///     intercept: true,
///     terms: vec![("age".to_owned(), AGE)],
///     outcome: INCOME,
///     metadata: Value::Null,
/// };
/// let value = people.release(&verify::prepare(&people.facts(), &design, &verify::Config::new(epsilon(), "age"))?);
/// assert_eq!((&value["answer"], &value["direction"]), (&json!("yes"), &json!("above")));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`StatisticsError::Parameter`] for a term that the design does not have, impossible claims, and numbers of groups that can never give a yes:
/// decided from public inputs.
/// # References
/// `beyond.md` §5; Barrientos, Reiter, Machanavajjhala, Chen 2019; Chen thesis 2018, chapter 1 (verification servers).
pub fn prepare(
    facts: &Facts<'_>,
    design: &DesignSpec,
    config: &Config,
) -> Result<Prepared, StatisticsError> {
    positive(&config.epsilon)?;
    design.check()?;
    let refuse =
        |name, value: String, fix: String| Err(StatisticsError::Parameter { name, value, fix });
    let Some(term) = design.terms.iter().position(|t| t.0 == config.term) else {
        let names: Vec<&str> = design.terms.iter().map(|t| t.0.as_str()).collect();
        let fix = if names.is_empty() {
            "the formula has no terms".to_owned()
        } else {
            format!("the terms are {}", names.join(", "))
        };
        return refuse("term", config.term.clone(), fix);
    };
    let ask = match config.claim {
        Claim::Differs { from, level } => {
            if !from.is_finite() {
                return refuse("from", from.to_string(), "give a number".to_owned());
            }
            if !(level > 0.0 && level < 1.0) {
                let fix = "give a level between 0 and 1, such as 0.05".to_owned();
                return refuse("level", level.to_string(), fix);
            }
            Ask::Above(from)
        }
        Claim::Within { low, high } => {
            if !(low.is_finite() && high.is_finite() && low < high) {
                let fix = "give two numbers, the smaller one first".to_owned();
                return refuse("within", format!("[{low}, {high}]"), fix);
            }
            Ask::Within(low, high)
        }
    };
    if let Some(k) = config.groups.filter(|k| !(3..=MOST_GROUPS).contains(k)) {
        return refuse("groups", k.to_string(), format!("give 3 to {MOST_GROUPS}"));
    }
    let coefficients = design.terms.len() + usize::from(design.intercept);
    let plan = Plan::new(facts, coefficients, config);
    if !plan.can_say_yes() {
        let silent = Plan {
            scale: 1e-3,
            ..plan
        };
        let fix = if silent.can_say_yes() {
            format!(
                "even unanimous groups would not show through noise of scale {:.1}; ask for more epsilon, or for more groups (of fewer records)",
                plan.scale
            )
        } else {
            "even unanimous groups are too few for this level; ask for more groups, or for a higher level".to_owned()
        };
        return refuse("groups", plan.groups.to_string(), fix);
    }
    let mut terms: Vec<_> = design.terms.iter().map(|t| t.1.clone()).collect();
    terms.push(design.outcome.clone());
    facts.bounds(&terms)?;
    let what = match config.family {
        Family::Gaussian => "least squares",
        Family::Binomial => "logistic regression",
    };
    Ok(Prepared {
        mechanism: Box::new(Verify {
            step: Votes {
                name: format!("{what}, {}", config.term),
                epsilon: config.epsilon.clone(),
                groups: plan.groups,
                covariates: 0..design.terms.len(),
                outcome: design.terms.len(),
                question: Question {
                    family: config.family,
                    intercept: design.intercept,
                    term,
                    ask,
                },
                seed: config.seed,
            },
            term: config.term.clone(),
            family: what,
            plan,
            unknown_size: facts.rows.is_none(),
            metadata: design.metadata.clone(),
        }),
        terms,
    })
}

/// The public numbers of a vote.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Number of groups.
    pub groups: u32,
    /// Scale of the noise on the votes.
    pub scale: f64,
    /// Records per group, if known.
    pub records: Option<f64>,
    claim: Claim,
}

impl Plan {
    /// By the rules of [`prepare`].
    pub fn new(facts: &Facts<'_>, coefficients: usize, config: &Config) -> Self {
        let scale = f64::from(facts.context.touches()) / facts.per_record(&config.epsilon);
        let rows = facts.rows.filter(|n| n.is_finite() && *n >= 0.0);
        let groups = config.groups.unwrap_or_else(|| {
            let Some(n) = rows else { return UNKNOWN };
            let room = (n / FEWEST.max(FEWEST_PER_COEFFICIENT * size(coefficients))).floor();
            let wanted = match config.claim {
                Claim::Differs { .. } => (64.0 * scale * scale).max(100.0),
                Claim::Within { .. } => (16.0 * scale).max(15.0),
            };
            // odd: no ties
            clipped(wanted.ceil().min(room), 3, MOST_GROUPS - 1) | 1
        });
        Self {
            groups,
            scale,
            records: rows.map(|n| n / f64::from(groups)),
            claim: config.claim,
        }
    }

    /// Half-width that holds the noise with probability .95.
    fn error(&self) -> f64 {
        (1..)
            .map(f64::from)
            .take(1 << 20)
            .find(|t| 2.0 * tail(*t, self.scale) <= 0.05)
            .map_or(f64::INFINITY, |t| t - 1.0)
    }

    /// Whether unanimous groups would be believed.
    fn can_say_yes(&self) -> bool {
        let all = f64::from(self.groups);
        match self.claim {
            Claim::Differs { level, .. } => self.p_value(all) <= level,
            Claim::Within { .. } => all / 2.0 > self.error(),
        }
    }

    /// P(|B + L − K/2| ≥ |votes − K/2|), B binomial(K, ½), L the noise: discrete Laplace.
    pub fn p_value(&self, votes: f64) -> f64 {
        let k = f64::from(self.groups);
        let off = (votes - k / 2.0).abs();
        if off <= 0.0 {
            return 1.0;
        }
        // P(B = b) from the middle outwards; what is below 1e-18 of the largest counts as nothing.
        let middle = (k / 2.0).floor();
        let log_middle = libm::lgamma(k + 1.0)
            - libm::lgamma(middle + 1.0)
            - libm::lgamma(k - middle + 1.0)
            - k * std::f64::consts::LN_2;
        let mut p = 0.0;
        let mut add = |b: f64, chance: f64| {
            let above = (off - (b - k / 2.0)).ceil();
            let below = (off + (b - k / 2.0)).ceil();
            p += chance * (tail(above, self.scale) + tail(below, self.scale)).min(1.0);
        };
        for up in [true, false] {
            let mut b = if up { middle } else { middle - 1.0 };
            let mut chance = log_middle.exp();
            if !up {
                chance *= middle / (k - middle + 1.0);
            }
            while (0.0..=k).contains(&b) && chance > 1e-18 * log_middle.exp() {
                add(b, chance);
                if up {
                    chance *= (k - b) / (b + 1.0);
                    b += 1.0;
                } else {
                    chance *= b / (k - b + 1.0);
                    b -= 1.0;
                }
            }
        }
        p.clamp(0.0, 1.0)
    }

    /// The |t| of a fit to all rows from which on a difference is found with probability .8.
    pub fn detects(&self) -> Option<f64> {
        let Claim::Differs { level, .. } = self.claim else {
            return None;
        };
        let k = f64::from(self.groups);
        let (mut low, mut high) = (0.0, k / 2.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.p_value(k / 2.0 + middle) <= level {
                high = middle;
            } else {
                low = middle;
            }
        }
        let threshold = high;
        let power = |t: f64| {
            let p = 0.5 * libm::erfc(-t / k.sqrt() / std::f64::consts::SQRT_2);
            let deviation = (k * p * (1.0 - p) + 2.0 * self.scale * self.scale).sqrt();
            k * (p - 0.5) - threshold >= POWER_80 * deviation
        };
        let (mut low, mut high) = (0.0, 10.0 * k.sqrt());
        if !power(high) {
            return None;
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if power(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(high)
    }

    fn answer(&self, votes: f64) -> Value {
        let k = f64::from(self.groups);
        let mut value = json!({
            "groups": self.groups,
            "share": number((votes / k).clamp(0.0, 1.0)),
        });
        let fields = match self.claim {
            Claim::Differs { from, level } => {
                let p = self.p_value(votes);
                let side = if votes > k / 2.0 { "above" } else { "below" };
                json!({
                    "question": "differs", "from": number(from), "level": number(level), "p_value": number(p),
                    "answer": if p <= level { "yes" } else { "undecided" },
                    "direction": (p <= level).then_some(side),
                    "detects": self.detects().map(number),
                })
            }
            Claim::Within { low, high } => {
                let lead = votes - k / 2.0;
                let answer = match (lead.abs() > self.error(), lead > 0.0) {
                    (false, _) => "undecided",
                    (true, true) => "yes",
                    (true, false) => "no",
                };
                json!({
                    "question": "within", "low": number(low), "high": number(high), "answer": answer,
                })
            }
        };
        if let (Value::Object(map), Value::Object(more)) = (&mut value, fields) {
            map.extend(more);
        }
        value
    }
}

/// P(L ≥ t) for whole t and discrete Laplace noise of scale b: e^(−t/b)/(1 + e^(−1/b)) above 0.
fn tail(t: f64, b: f64) -> f64 {
    let above = |t: f64| libm::exp(-t / b) / (1.0 + libm::exp(-1.0 / b));
    if t >= 1.0 {
        above(t)
    } else {
        1.0 - above(1.0 - t)
    }
}

/// # Claim
/// ε-DP: one [`Votes`].
/// # Assumptions
/// Those of the primitive. For the p value, not for privacy: records are independent, and a group's estimate is as likely above as below a true number.
/// # Arithmetic
/// The answer is a function of the noisy votes and public numbers.
/// # Checked by
/// `contract::{inner_events_sum_to_epsilon, every_kind_answers_on_every_table}`,
/// `verify::tests::{p_values_are_those_of_the_law, rules_for_groups}`, `verify::{levels_hold, claims_are_found}`
struct Verify {
    step: Votes,
    term: String,
    family: &'static str,
    plan: Plan,
    unknown_size: bool,
    metadata: Value,
}

impl Mechanism for Verify {
    fn kind(&self) -> &'static str {
        "verify"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(self.step.event(context))
    }
    fn first_pass(&self) -> Vec<Fold> {
        Vec::new()
    }
    fn passes(&self) -> u32 {
        1
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let error = self.step.lattice(desk.context())?.quantile_95();
        let votes = desk.votes(&self.step)?;
        let mut value = self.plan.answer(real(votes));
        if let Value::Object(map) = &mut value {
            map.insert("term".to_owned(), json!(self.term));
            map.insert("family".to_owned(), json!(self.family));
            map.insert("votes".to_owned(), whole(votes));
            map.insert("error_95".to_owned(), number(error));
        }
        let few = self.plan.records.is_some_and(|r| r < FEWEST);
        Ok(Answer {
            value: with_metadata(value, &self.metadata),
            error_95: Some(error),
            flags: flags(&[(self.unknown_size, "size_unknown"), (few, "small_groups")]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reticent_accounting::{Relation, parse_decimal};
    use reticent_mechanisms::rows::Schema;

    fn plan(rows: Option<f64>, epsilon: &str, relation: Relation, claim: Claim) -> Plan {
        let schema = Schema {
            columns: Vec::new(),
        };
        let context = Context::records(relation);
        let facts = Facts {
            schema: &schema,
            filter: None,
            context: &context,
            rows,
            positive_rate: None,
        };
        let config = Config {
            claim,
            ..Config::new(parse_decimal(epsilon).unwrap(), "x")
        };
        Plan::new(&facts, 2, &config)
    }

    const DIFFERS: Claim = Claim::Differs {
        from: 0.0,
        level: 0.05,
    };
    const WITHIN: Claim = Claim::Within {
        low: 0.0,
        high: 1.0,
    };

    /// Against the sum over all pairs (b, l), for small K.
    #[test]
    fn p_values_are_those_of_the_law() {
        for (k, scale) in [(3u32, 0.5f64), (7, 2.0), (12, 1.0)] {
            let plan = Plan {
                groups: k,
                scale,
                records: None,
                claim: DIFFERS,
            };
            let q = (-1.0 / scale).exp();
            let binomial = |b: u32| {
                (0..b).fold(0.5f64.powi(k.cast_signed()), |p, i| {
                    p * f64::from(k - i) / f64::from(i + 1)
                })
            };
            for votes in -5..=18 {
                let off = (f64::from(votes) - f64::from(k) / 2.0).abs();
                let mut p = 0.0;
                for b in 0..=k {
                    for l in -200..=200i32 {
                        let laplace = (1.0 - q) / (1.0 + q) * q.powi(l.abs());
                        if (f64::from(b) + f64::from(l) - f64::from(k) / 2.0).abs() >= off {
                            p += binomial(b) * laplace;
                        }
                    }
                }
                let found = plan.p_value(f64::from(votes));
                assert!(
                    (found - p).abs() < 1e-12,
                    "{k} {scale} {votes}: {found} {p}"
                );
            }
        }
        // large numbers of groups: the normal law
        let plan = Plan {
            groups: 1_000_001,
            scale: 1.0,
            records: None,
            claim: DIFFERS,
        };
        let p = plan.p_value(500_000.5 + 1.959_964 * 500.0);
        assert!((p - 0.05).abs() < 1e-3, "{p}");
    }

    #[test]
    fn rules_for_groups() {
        let groups = |rows, epsilon, relation, claim| plan(rows, epsilon, relation, claim).groups;
        assert_eq!(groups(None, "1", Relation::AddRemove, DIFFERS), 101);
        assert_eq!(groups(Some(1e6), "1", Relation::AddRemove, DIFFERS), 101);
        assert_eq!(groups(Some(1e6), "0.1", Relation::AddRemove, DIFFERS), 6401);
        assert_eq!(
            groups(Some(1e6), "0.1", Relation::ReplaceOne, DIFFERS),
            25601
        );
        // 30 records each
        assert_eq!(groups(Some(3e4), "0.1", Relation::AddRemove, DIFFERS), 1001);
        assert_eq!(groups(Some(1e6), "0.1", Relation::AddRemove, WITHIN), 161);
        assert_eq!(groups(Some(1e6), "10", Relation::ReplaceOne, WITHIN), 15);
        assert_eq!(groups(Some(0.0), "1", Relation::AddRemove, WITHIN), 3);
        assert!(!plan(Some(0.0), "1", Relation::AddRemove, WITHIN).can_say_yes());
        assert!(plan(Some(1e4), "0.1", Relation::ReplaceOne, WITHIN).can_say_yes());
        // a test of 1001 binomial votes finds a t of about (1.96 + .84)·√(π/2) = 3.5
        let found = plan(Some(1e6), "10", Relation::AddRemove, DIFFERS)
            .detects()
            .unwrap();
        assert!((3.4..3.8).contains(&found), "{found}");
    }
}
