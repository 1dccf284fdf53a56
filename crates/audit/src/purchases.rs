//! A mechanism that buys given paid steps on given folds and returns what it bought: the paid primitives alone,
//! as the desk ships them.

use std::ops::Range as Span;

use reticent_accounting::{AccountingError, Event};
use reticent_mechanisms::fold::Fold;
use reticent_mechanisms::primitives::{
    Counts, Crossing, ItemCounts, JointSelection, LeastSquares, Linear, MergedBins, NormMoments,
    OutputPerturbation, Partition, Quantile, SecondMoments, Selection, Sketch, SmoothAuc,
    SplitTree, Strategy, Sums, Test, ThresholdTests, Votes, WorstQuery,
};
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use reticent_statistics::bisect::{Medians, Quantiles};
use reticent_statistics::range::Range;
use reticent_statistics::sparse_vector::SparseVector;
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
    /// Several quantiles; levels without an answer are null.
    Bisection(Quantiles),
    /// An area, in units of its grid.
    SmoothAuc(SmoothAuc),
    /// A range.
    Range(Range),
    /// Sparse vector: queries, thresholds, step.
    SparseVector(Vec<Span<usize>>, Vec<i128>, SparseVector),
    /// Second moments; the answer is the triangle.
    SecondMoments(SecondMoments),
    /// Linear queries; the answer is their noisy values.
    Linear(Strategy, Linear),
    /// A partition; the answer is the ends of its buckets.
    Partition(Partition),
    /// A tree; the answer is the first child of every node (0: none).
    SplitTree(SplitTree),
    /// A choice: queries, guesses, step.
    WorstQuery(Strategy, Vec<i128>, WorstQuery),
    /// The best of the candidates (every cell or item if there is no list); index and gap of each.
    Select(Option<Vec<Span<usize>>>, Selection),
    /// A joint selection.
    Jointly(Option<Vec<Span<usize>>>, JointSelection),
    /// Threshold tests; index, gap and value of each positive one.
    Tests(Vec<Test>, ThresholdTests),
    /// Tests that depend on earlier answers, as in a session: a search for the first of so many cells with records.
    Search(usize, ThresholdTests),
    /// Bins adjustment; the ends of closed groups.
    MergedBins(MergedBins),
    /// Counts of items, then those of classes.
    ItemCounts(ItemCounts),
    /// Second moments by the norm mechanism; the answer is the triangle.
    NormMoments(NormMoments),
    /// A logistic fit by output perturbation; its fold is not used.
    Output(OutputPerturbation),
    /// A least-squares fit by output perturbation.
    LeastSquares(LeastSquares),
    /// Gaussian rows; the answer is all of their coordinates.
    Sketch(Sketch),
    /// A vote of groups; its fold is not used.
    Votes(Votes),
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
            Purchase::Bisection(s) => s.event(context),
            Purchase::SmoothAuc(s) => s.event(context),
            Purchase::Range(s) => s.event(context),
            Purchase::SparseVector(_, _, s) => s.event(context),
            Purchase::SecondMoments(s) => s.event(context),
            Purchase::Linear(_, s) => s.event(context),
            Purchase::Partition(s) => s.event(context),
            Purchase::SplitTree(s) => s.event(context),
            Purchase::WorstQuery(_, _, s) => s.event(context),
            Purchase::Select(_, s) => s.event(context),
            Purchase::Jointly(_, s) => s.event(context),
            Purchase::Tests(_, s) | Purchase::Search(_, s) => s.event(context),
            Purchase::MergedBins(s) => s.event(context),
            Purchase::ItemCounts(s) => s.event(context),
            Purchase::NormMoments(s) => s.event(context),
            Purchase::Output(s) => s.event(context),
            Purchase::LeastSquares(s) => s.event(context),
            Purchase::Sketch(s) => s.event(context),
            Purchase::Votes(s) => s.event(context),
        };
        Ok(Event::Sequence(
            self.0.iter().map(|(_, p)| event(p)).collect(),
        ))
    }

    fn first_pass(&self) -> Vec<Fold> {
        self.0.iter().map(|(f, _)| f.clone()).collect()
    }

    fn passes(&self) -> u32 {
        let held = |p: &&(Fold, Purchase)| matches!(p.1, Purchase::Output(_) | Purchase::Votes(_));
        u32::try_from(self.0.iter().filter(held).count()).unwrap_or(u32::MAX)
    }

    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let mut values = Vec::with_capacity(self.0.len());
        for (i, (declared, purchase)) in self.0.iter().enumerate() {
            let fold = FoldId(i);
            values.push(match purchase {
                Purchase::Counts(groups, s) => {
                    integers(&desk.counts(fold, groups.as_deref(), s)?)
                }
                // the centres are public
                Purchase::Sums(groups, s) => integers(&desk.sums(fold, groups.as_deref(), s)?.0),
                Purchase::Quantile(s) => desk.quantile(fold, s)?.into(),
                Purchase::Medians(s) => s.buy(desk, fold)?.into(),
                Purchase::Bisection(s) => s
                    .buy(desk, fold)?
                    .into_iter()
                    .map(Value::from)
                    .collect::<Vec<_>>()
                    .into(),
                Purchase::SmoothAuc(s) => integer(desk.smooth_auc(fold, s)?),
                Purchase::Range(s) => s.buy(desk, fold, candidates(declared))?.into(),
                Purchase::SecondMoments(s) => desk.second_moments(fold, s)?.entries.into(),
                Purchase::Linear(strategy, s) => integers(&desk.linear(fold, strategy, s)?.values),
                Purchase::Partition(s) => {
                    let buckets = desk.partition(fold, s)?;
                    buckets.iter().map(|b| b.end).collect::<Vec<_>>().into()
                }
                Purchase::SplitTree(s) => {
                    let nodes = desk.split_tree(fold, s)?;
                    let first = nodes.iter().map(|n| n.children.start);
                    first.collect::<Vec<_>>().into()
                }
                Purchase::WorstQuery(queries, guesses, s) => {
                    desk.worst_query(fold, queries, guesses, s)?.into()
                }
                Purchase::NormMoments(s) => desk.norm_moments(fold, s)?.entries.into(),
                Purchase::Output(s) => desk.output_perturbation(s)?.into(),
                Purchase::LeastSquares(s) => desk.least_squares(fold, s)?.into(),
                Purchase::Sketch(s) => desk.sketch(fold, s)?.rows.concat().into(),
                Purchase::Votes(s) => integer(desk.votes(s)?),
                Purchase::SparseVector(queries, thresholds, s) => s
                    .buy(desk, fold, queries, thresholds)?
                    .iter()
                    .map(crossing)
                    .collect::<Vec<_>>()
                    .into(),
                Purchase::Select(candidates, s) => desk
                    .select(fold, candidates.as_deref(), s)?
                    .iter()
                    .map(|p| indexed(p.index, [p.gap, None]))
                    .collect::<Vec<_>>()
                    .into(),
                Purchase::Jointly(candidates, s) => {
                    desk.select_jointly(fold, candidates.as_deref(), s)?.into()
                }
                Purchase::Tests(tests, s) => desk
                    .threshold_tests(fold, tests, s)?
                    .iter()
                    .map(crossing)
                    .collect::<Vec<_>>()
                    .into(),
                Purchase::Search(cells, s) => {
                    let mut next = |answers: &[Option<Crossing>]| narrowed(*cells, answers);
                    desk.adaptive_tests(fold, s, &mut next)?
                        .iter()
                        .map(crossing)
                        .collect::<Vec<_>>()
                        .into()
                }
                Purchase::MergedBins(s) => desk.merged_bins(fold, s)?.into(),
                Purchase::ItemCounts(s) => {
                    let noisy = desk.item_counts(fold, s)?;
                    integers(&[noisy.items, noisy.classes].concat())
                }
            });
        }
        Ok(Answer {
            value: values.into(),
            ..Answer::default()
        })
    }
}

/// The edges of a fold that counts up to edges of one axis.
fn candidates(fold: &Fold) -> usize {
    match fold {
        Fold::Grid { axes, .. } => match axes.as_slice() {
            [axis] => axis.cut.cells().saturating_sub(1),
            _ => 0,
        },
        _ => 0,
    }
}

/// The half to ask about next, while there are two cells or more.
fn narrowed(cells: usize, answers: &[Option<Crossing>]) -> Option<Test> {
    let (mut from, mut to) = (0, cells);
    for yes in answers.iter().map(Option::is_some) {
        let middle = usize::midpoint(from, to);
        (from, to) = if yes { (from, middle) } else { (middle, to) };
    }
    (to - from > 1).then(|| Test::count(from..usize::midpoint(from, to), 1))
}

/// Index, gap and value of a positive answer.
fn crossing(c: &Crossing) -> Value {
    indexed(c.index, [c.gap, c.value])
}

fn indexed(index: usize, more: [Option<i128>; 2]) -> Value {
    let mut list = vec![Value::from(index)];
    list.extend(more.into_iter().flatten().map(integer));
    list.into()
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
