//! Several quantiles by bisection of a grid: how one ε is divided among the depths of a [`Bisection`].

use reticent_accounting::hyperbolic::Hyperbolic;
use reticent_accounting::{AccountingError, Event, Rational, Relation, share, split};
use reticent_mechanisms::primitives::{Bisection, Draw, Words};
use reticent_mechanisms::{Context, Desk, DeskError, FoldId};

/// Quantiles at general levels for one ε.
///
/// # Claim
/// ε-DP for the context's relation and unit: one [`Bisection`] whose losses are the parts of ε by `accounting::split`, in proportion to
/// how many of them a change costs at each depth: 1 under add/remove; under replace-one 2, but 1 at the root of smooth draws.
/// # Checked by
/// `smooth::bisection_enumerated`, `smooth::medians_enumerated`, `classes::both_classes_enumerated`
#[derive(Clone, Debug, PartialEq)]
pub struct Quantiles {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the whole step for the context's relation.
    pub epsilon: Rational,
    /// Numerators of the levels, increasing.
    pub levels: Vec<u32>,
    /// Their denominator.
    pub denominator: u32,
    /// How boundaries are drawn.
    pub draw: Draw,
}

impl Quantiles {
    /// Number of depths: 2^s − 1 levels fit into s.
    pub fn depth(&self) -> u32 {
        usize::BITS - self.levels.len().leading_zeros()
    }

    /// The step as the desk sells it.
    pub fn step(&self, context: &Context) -> Bisection {
        let shared = |depth| self.draw == Draw::Smooth && depth == 0;
        let touches: Vec<u64> = (0..self.depth())
            .map(|depth| match context.relation {
                Relation::ReplaceOne if !shared(depth) => 2,
                _ => 1,
            })
            .collect();
        let parts = split(&self.epsilon, &touches).into_iter().zip(touches);
        let words = match self.draw {
            Draw::Exponential => Words {
                event: "exponential-mechanism bisection, depth",
                noise: "exponential mechanism, ε per record and depth",
                unit: 1.0,
            },
            Draw::Smooth => Words {
                event: "smooth-sensitivity bisection, depth",
                noise: "Cauchy, multiple of the smooth sensitivity",
                unit: 1.0,
            },
        };
        Bisection {
            name: self.name.clone(),
            words,
            losses: parts
                .map(|(part, touches)| part / Rational::from(touches))
                .collect(),
            levels: self.levels.clone(),
            denominator: self.denominator,
            draw: self.draw,
        }
    }

    /// The price of the step: one draw per depth along any record's path.
    pub fn event(&self, context: &Context) -> Event {
        self.step(context).event()
    }

    /// β and κ per depth, for one record.
    ///
    /// # Errors
    /// When a loss is out of the range of `hyperbolic::calibrate`.
    pub fn calibrations(&self, context: &Context) -> Result<Vec<Hyperbolic>, AccountingError> {
        self.step(context).calibrations(context)
    }

    /// Buys boundaries near the levels, as [`Desk::bisection`].
    ///
    /// # Errors
    /// As [`Desk::bisection`].
    pub fn buy(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<Vec<Option<usize>>, DeskError> {
        let step = self.step(desk.context());
        desk.bisection(fold, &step)
    }
}

/// 2^depth − 1 thresholds by recursive medians on an even grid.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../mechanisms/doc/desk.rs"));
/// # fn main() {
/// use reticent_statistics::bisect::Medians;
/// let step = Medians { name: "quartiles".to_owned(), epsilon: Rational::from(80u8), depth: 2 };
/// let counts = [0, 20, 0, 40, 0, 20, 0];
/// let edges = buy(&counts, &[7], step.event(&context()), |desk, scores| step.buy(desk, scores));
/// assert_eq!(edges.len(), 3);
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit: one [`Bisection`] at the levels k/2^depth. Every level within its range is ½, so
/// the draws are those of recursive medians, exponent (e/2)|L − R|.
/// # Composition
/// Over `depth` levels: depth·e and 2·depth·e. So e = ε/depth under add/remove and ε/(2·depth) under replace-one, equal
/// parts of ε of which the last takes what rounding left.
/// # Checked by
/// `neighbours::medians_enumerated`, `canaries::medians`
/// # References
/// `decisions.md` §2.2 and table; Kaplan, Schnapp, Stemmer 2022.
#[derive(Clone, Debug, PartialEq)]
pub struct Medians {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the whole step for the context's relation.
    pub epsilon: Rational,
    /// Number of levels, 1 to 30.
    pub depth: u32,
}

impl Medians {
    /// The step as the desk sells it.
    pub fn step(&self, context: &Context) -> Bisection {
        let mut rest = self.epsilon.clone();
        let mut losses = Vec::new();
        for left in (1..=u64::from(self.depth)).rev() {
            let (level, remaining) = share(&rest, 1, left);
            losses.push(level / Rational::from(context.touches()));
            rest = remaining;
        }
        let denominator = 1 << self.depth.min(30);
        Bisection {
            name: self.name.clone(),
            words: Words {
                event: "exponential-mechanism medians, level",
                noise: "exponential mechanism, rate per level",
                unit: 0.5,
            },
            losses,
            levels: (1..denominator).collect(),
            denominator,
            draw: Draw::Exponential,
        }
    }

    /// The price of the step: one bounded-range draw per level along any record's path.
    pub fn event(&self, context: &Context) -> Event {
        self.step(context).event()
    }

    /// Buys thresholds over the first axis of a grid (other axes pooled): the chosen cell boundaries, increasing and
    /// distinct, each in 1..cells.
    ///
    /// # Errors
    /// As [`Desk::bisection`].
    pub fn buy(&self, desk: &mut Desk<'_>, fold: FoldId) -> Result<Vec<usize>, DeskError> {
        let step = self.step(desk.context());
        Ok(desk.bisection(fold, &step)?.into_iter().flatten().collect())
    }
}
