//! A mechanism that buys given paid steps on given folds and returns what it bought: the paid primitives alone,
//! as the desk ships them.

use std::ops::Range as Span;

use reticent_accounting::{AccountingError, Event};
use reticent_mechanisms::fold::Fold;
use reticent_mechanisms::primitives::{
    Counts, Medians, NormMoments, OutputPerturbation, Quantile, Range, SecondMoments, SparseVector,
    Sums,
};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::Value;

/// One paid step.
#[derive(Clone, Debug, PartialEq)]
pub enum Purchase {
    /// Noisy counts.
    Counts(Option<Vec<Span<usize>>>, Counts),
    /// Noisy sums.
    Sums(Option<Vec<Span<usize>>>, Sums),
    /// A quantile.
    Quantile(Quantile),
    /// Recursive medians.
    Medians(Medians),
    /// A range.
    Range(Range),
    /// Sparse vector: queries, thresholds, step.
    SparseVector(Vec<Span<usize>>, Vec<i128>, SparseVector),
    /// Second moments; the answer is the triangle.
    SecondMoments(SecondMoments),
    /// Second moments by the norm mechanism; the answer is the triangle.
    NormMoments(NormMoments),
    /// A logistic fit by output perturbation; its fold is not used.
    Output(OutputPerturbation),
}

/// Steps in the order of purchase, each on a fold of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Purchases(pub Vec<(Fold, Purchase)>);

impl Purchases {
    /// A single step.
    pub fn one(fold: Fold, purchase: Purchase) -> Self {
        Self(vec![(fold, purchase)])
    }
}

impl Mechanism for Purchases {
    fn kind(&self) -> &'static str {
        "purchases"
    }

    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        let event = |p: &Purchase| match p {
            Purchase::Counts(_, s) => s.event(context),
            Purchase::Sums(_, s) => s.event(context),
            Purchase::Quantile(s) => s.event(context),
            Purchase::Medians(s) => s.event(context),
            Purchase::Range(s) => s.event(context),
            Purchase::SparseVector(_, _, s) => s.event(context),
            Purchase::SecondMoments(s) => s.event(context),
            Purchase::NormMoments(s) => s.event(context),
            Purchase::Output(s) => s.event(context),
        };
        Ok(Event::Sequence(
            self.0.iter().map(|(_, p)| event(p)).collect(),
        ))
    }

    fn first_pass(&self) -> Vec<Fold> {
        self.0.iter().map(|(f, _)| f.clone()).collect()
    }

    fn passes(&self) -> u32 {
        let held = |p: &&(Fold, Purchase)| matches!(p.1, Purchase::Output(_));
        u32::try_from(self.0.iter().filter(held).count()).unwrap_or(u32::MAX)
    }

    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let mut values = Vec::with_capacity(self.0.len());
        for (i, (_, purchase)) in self.0.iter().enumerate() {
            let fold = FoldId(i);
            values.push(match purchase {
                Purchase::Counts(groups, s) => {
                    integers(&desk.counts(fold, groups.as_deref(), s)?)
                }
                // the centres are public
                Purchase::Sums(groups, s) => integers(&desk.sums(fold, groups.as_deref(), s)?.0),
                Purchase::Quantile(s) => desk.quantile(fold, s)?.into(),
                Purchase::Medians(s) => desk.medians(fold, s)?.into(),
                Purchase::Range(s) => desk.range(fold, s)?.into(),
                Purchase::SecondMoments(s) => desk.second_moments(fold, s)?.entries.into(),
                Purchase::NormMoments(s) => desk.norm_moments(fold, s)?.entries.into(),
                Purchase::Output(s) => desk.output_perturbation(s)?.into(),
                Purchase::SparseVector(queries, thresholds, s) => desk
                    .sparse_vector(fold, queries, thresholds, s)?
                    .iter()
                    .map(|c| {
                        let mut pair = vec![Value::from(c.index)];
                        pair.extend(c.gap.map(integer));
                        Value::from(pair)
                    })
                    .collect::<Vec<_>>()
                    .into(),
            });
        }
        Ok(Answer {
            value: values.into(),
            ..Answer::default()
        })
    }
}

fn integers(values: &[i128]) -> Value {
    values
        .iter()
        .map(|v| integer(*v))
        .collect::<Vec<_>>()
        .into()
}

/// Exact in the range of i64, text beyond.
fn integer(value: i128) -> Value {
    i64::try_from(value).map_or_else(|_| value.to_string().into(), Value::from)
}
