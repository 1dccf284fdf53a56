//! Neighbour tests of streams: the grouper, plans that depend on past outputs, pruning; and the printed pruning.

use reticent_accounting::Relation;
use reticent_audit::canary::Weakened;
use reticent_audit::stream::{Change, Events, Laws, biased_prune, cut, printed_prune, run};
use reticent_laws::{Silent, Window, enumerate};
use reticent_mechanisms::stream::Mark::{Alone, Joined, Opened};
use reticent_mechanisms::stream::{
    Forest, Grouper, Mark, PARTS, Plan, Session, Split, Stream, StreamError, Ticked,
};
use reticent_noise::{Lattice, Noise};
use reticent_statistics::streams::pruned_plan;

use super::*;

fn stream(forest: Forest, epsilon: Rational, grouper: Option<Grouper>, common: u32) -> Stream {
    Stream {
        name: "audit".to_owned(),
        epsilon,
        forest,
        grouper,
        common,
    }
}

fn session(
    forest: Forest,
    epsilon: Rational,
    grouper: Option<Grouper>,
    relation: Relation,
) -> Session {
    Session::new(
        stream(forest, epsilon, grouper, 0),
        Context::records(relation),
    )
    .unwrap()
}

fn binary(leaves: usize) -> Forest {
    let parent = |v: usize| (v > 0).then(|| u32::try_from((v - 1) / 2).unwrap());
    Forest::new((0..2 * leaves - 1).map(parent).collect()).unwrap()
}

/// All tables of one series whose counts come from `values`, one choice per tick.
fn series(values: &[i64], ticks: u32) -> Vec<Events> {
    let n = values.len();
    (0..n.pow(ticks))
        .map(|code| {
            (0..ticks)
                .map(|t| vec![values[code / n.pow(t) % n]])
                .collect()
        })
        .collect()
}

/// Worst losses of the marks alone, the whole ε spent on the grouper: (add or remove, replace), as shares of ε.
fn grouper_shares(
    split: Split,
    epsilon: u8,
    theta: i64,
    values: &[i64],
    ticks: u32,
    weaken: Option<&Rational>,
) -> (f64, f64) {
    let grouper = Grouper {
        threshold: theta,
        split,
    };
    let mut session = session(
        Forest::flat(1).unwrap(),
        ratio(epsilon.into(), 1),
        Some(grouper),
        Relation::AddRemove,
    );
    let program = |events: &Events, noise: &mut dyn Noise| -> Vec<Mark> {
        let plan = |_: &[Ticked]| Plan::uniform(1, 0, PARTS);
        let out = match weaken {
            None => run(&mut session, events, plan, noise),
            Some(f) => run(
                &mut session,
                events,
                plan,
                &mut Weakened::new(noise, f.clone()),
            ),
        };
        out.unwrap().iter().map(|t| t.marks[0]).collect()
    };
    let laws = Laws::new(series(values, ticks), 1e-13, program);
    assert!(laws.lost() < 1e-11);
    (
        laws.worst(Change::AddRemove, 1e-6) / f64::from(epsilon),
        laws.worst(Change::Replace, 1e-6) / f64::from(epsilon),
    )
}

/// Split, ε, θ, values, ticks, recorded shares.
type GrouperCase = (Split, u8, i64, &'static [i64], u32, (f64, f64));

/// Streams of length 3 over {0, 1, 2}, and longer jumps; both splits.
#[test]
fn grouper_enumerated() {
    let cases: [GrouperCase; 4] = [
        (
            Split::Printed,
            4,
            1,
            &[0, 1, 2],
            3,
            (0.181_195_907, 0.335_948_300),
        ),
        (
            Split::Optimal,
            4,
            1,
            &[0, 1, 2],
            3,
            (0.166_584_869, 0.311_068_962),
        ),
        (
            Split::Optimal,
            4,
            5,
            &[0, 1, 2],
            3,
            (0.148_156_236, 0.264_250_208),
        ),
        (
            Split::Optimal,
            8,
            2,
            &[0, 1, 4],
            4,
            (0.304_483_783, 0.265_330_185),
        ),
    ];
    for (split, epsilon, theta, values, ticks, recorded) in cases {
        let (added, replaced) = grouper_shares(split, epsilon, theta, values, ticks, None);
        assert!(added <= 1.0 && replaced <= 2.0);
        assert!(
            (added - recorded.0).abs() < 1e-6 && (replaced - recorded.1).abs() < 1e-6,
            "{split:?} {theta} {values:?} {ticks}: {added:.9} {replaced:.9}"
        );
    }
}

/// The same with .95·r of the noise must lose more than the price.
#[test]
fn grouper_canary() {
    let (r, _) = grouper_shares(Split::Optimal, 8, 2, &[0, 1, 4], 4, None);
    // .95 r, rounded up
    assert!((950_000.0 * r).ceil() <= 289_260.0);
    let factor = ratio(289_260, 1_000_000);
    let (cut, _) = grouper_shares(Split::Optimal, 8, 2, &[0, 1, 4], 4, Some(&factor));
    assert!((r - 0.304_483_783).abs() < 1e-6 && cut > 1.0, "{r} {cut}");
}

/// A spy: every draw is 0 and its scale is kept.
#[derive(Default)]
struct Scales(Vec<f64>);

impl Noise for Scales {
    fn bits(&mut self) -> u64 {
        0
    }
    fn lattice(&mut self, d: &Lattice) -> i128 {
        self.0.push(d.scale().to_f64());
        0
    }
}

/// Counts that one event at a node adds.
fn path(forest: &Forest, node: usize) -> Vec<f64> {
    let mut counts = vec![0.0; forest.len()];
    let mut at = Some(node);
    while let Some(v) = at {
        counts[v] = 1.0;
        at = forest.parents()[v].map(|p| p as usize);
    }
    counts
}

/// Σ |Δ|/scale of the shipped code, over the nodes a plan measures.
fn matrix_loss(session: &mut Session, plan: &Plan, a: &[f64], b: &[f64]) -> f64 {
    let mut spy = Scales::default();
    let events = vec![vec![0; a.len()]];
    let out = run(session, &events, |_| plan.clone(), &mut spy).unwrap();
    let drawn = out[0].counts.iter().map(Option::is_some);
    let mut scales = spy.0.iter();
    a.iter()
        .zip(b)
        .zip(drawn)
        .filter(|(_, drawn)| *drawn)
        .map(|((a, b), _)| (a - b).abs() / scales.next().unwrap())
        .sum()
}

/// Golden 10: three levels, four leaves, every plan that past-output pruning can make. Exact losses: 1 for an event
/// more or less, 4/3 for another state in the same tick, 2 for any other replacement (two paths at two ticks).
#[test]
fn counts_matrix() {
    let forest = binary(4);
    let none = vec![0.0; 7];
    for (relation, unit) in [(Relation::AddRemove, 1.0), (Relation::ReplaceOne, 0.5)] {
        let mut session = session(forest.clone(), ratio(1, 1), None, relation);
        let (mut added, mut swapped): (f64, f64) = (0.0, 0.0);
        let mut canary: f64 = 0.0;
        for open in 0..8_usize {
            let plan = pruned_plan(&forest, |v| open >> v & 1 == 1);
            for leaf in 3..7 {
                let one = path(&forest, leaf);
                let loss = matrix_loss(&mut session, &plan, &one, &none);
                // every leaf's path is paid for in full, whatever is pruned
                assert!(
                    (loss - unit).abs() < 1e-8,
                    "{relation} {open} {leaf} {loss}"
                );
                added = added.max(loss);
                for other in 3..7 {
                    let two = path(&forest, other);
                    swapped = swapped.max(matrix_loss(&mut session, &plan, &one, &two));
                }
            }
            let mut more = plan.clone();
            more.perturb.iter_mut().for_each(|p| *p = *p / 19 * 20);
            canary = canary.max(f64::from(u8::from(session.check(more).is_ok())));
        }
        assert!((added - unit).abs() < 1e-8 && (swapped - unit * 4.0 / 3.0).abs() < 1e-8);
        assert!(
            canary < 0.5,
            "a plan that spends 1/.95 of the budget was accepted"
        );
        let declared = stream(forest.clone(), ratio(1, 1), None, PARTS / 3);
        let bound = declared.swap_loss(&Context::records(relation));
        assert_eq!(
            bound,
            ratio(4, 3) * ratio(1, if unit < 1.0 { 2 } else { 1 })
        );
        let event = declared.event(&Context::records(relation));
        let price = event.price(Currency::Pure).unwrap();
        let amount = |r| price.under(r).unwrap().amount.to_f64().value();
        assert!((amount(Relation::AddRemove) - unit).abs() < 1e-15);
        assert!((amount(Relation::ReplaceOne) - 2.0 * unit).abs() < 1e-15);
    }
}

/// A path of two nodes over two ticks; the lower one is measured while the upper one was last seen at 1 or more.
fn adaptive(weaken: Option<&Rational>, relation: Relation) -> Laws<Vec<Ticked>> {
    let forest = Forest::new(vec![None, Some(0)]).unwrap();
    let mut session = session(
        forest.clone(),
        ratio(8 * i64::from(relation == Relation::ReplaceOne) + 8, 1),
        None,
        relation,
    );
    let tables = (0..16_i64)
        .map(|c| vec![vec![0, c & 3], vec![0, c >> 2]])
        .filter(|t| t.iter().flatten().sum::<i64>() <= 2)
        .collect::<Vec<Events>>();
    Laws::new(tables, 1e-12, |events, noise| {
        let plan = |past: &[Ticked]| {
            pruned_plan(&forest, |_| {
                past.last().is_none_or(|t| t.counts[0].unwrap_or(0) >= 1)
            })
        };
        let out = match weaken {
            None => run(&mut session, events, plan, noise),
            Some(f) => run(
                &mut session,
                events,
                plan,
                &mut Weakened::new(noise, f.clone()),
            ),
        };
        cut(out.unwrap(), -1, 2)
    })
}

/// Exact law of an adaptive plan: an event more or less costs ε, one moved to another tick 2ε.
#[test]
fn plans_enumerated() {
    for relation in RELATIONS {
        let laws = adaptive(None, relation);
        let (added, replaced) = (
            laws.worst(Change::AddRemove, 1e-4),
            laws.worst(Change::Replace, 1e-4),
        );
        assert!((added - 8.0).abs() < 1e-3, "{relation} {added}");
        assert!((replaced - 16.0).abs() < 1e-3, "{relation} {replaced}");
    }
}

#[test]
fn plans_canary() {
    let laws = adaptive(Some(&ratio(19, 20)), Relation::AddRemove);
    assert!(laws.worst(Change::AddRemove, 1e-8) > 8.0 * 1.04);
}

/// Two leaves under a root that is promised half: a change of state in a tick costs ε, not 2ε.
#[test]
fn swaps_of_state() {
    let declared = stream(binary(2), ratio(2, 1), None, PARTS / 2);
    let context = Context::records(Relation::AddRemove);
    assert_eq!(declared.swap_loss(&context), ratio(2, 1));
    let mut session = Session::new(declared, context).unwrap();
    let tables = [[0, 0], [1, 0], [0, 1], [1, 1], [2, 0], [0, 2]]
        .map(|[a, b]| vec![vec![0, a, b]])
        .to_vec();
    let laws = Laws::new(tables, 1e-12, |events, noise| {
        let half = |_: &[Ticked]| Plan::uniform(3, PARTS / 2, 0);
        cut(run(&mut session, events, half, noise).unwrap(), -1, 3)
    });
    assert!((laws.worst(Change::AddRemove, 1e-6) - 2.0).abs() < 1e-5);
    assert!((laws.worst(Change::SwapState, 1e-6) - 2.0).abs() < 1e-5);
}

#[test]
fn plans_beyond_the_budget_are_refused() {
    let session = session(binary(2), ratio(1, 1), None, Relation::AddRemove);
    let check = |perturb: [u32; 3]| {
        session.check(Plan {
            perturb: perturb.to_vec(),
            group: vec![0; 3],
            close: Vec::new(),
        })
    };
    assert!(check([PARTS / 2, PARTS / 2, PARTS / 2]).is_ok());
    assert!(check([0, PARTS, PARTS]).is_ok());
    let beyond = check([PARTS / 2, PARTS / 2, PARTS / 2 + 1]);
    assert!(matches!(beyond, Err(StreamError::Path { node: 2, .. })));
    assert!(matches!(
        check([u32::MAX, u32::MAX, 0]),
        Err(StreamError::Path { node: 0, .. })
    ));
    let grouped = session.check(Plan::uniform(3, 0, 1));
    assert!(matches!(grouped, Err(StreamError::NoGrouper { node: 0 })));
    let short = session.check(Plan::uniform(2, 1, 0));
    assert!(matches!(short, Err(StreamError::Shape { .. })));
    let promised = Session::new(
        stream(binary(2), ratio(1, 1), None, PARTS / 2),
        Context::records(Relation::AddRemove),
    )
    .unwrap();
    let little = promised.check(Plan::uniform(3, 1, 0));
    assert!(matches!(little, Err(StreamError::Common { .. })));
    let forest = Forest::flat(2).unwrap();
    assert!(
        Session::new(
            stream(forest, ratio(1, 1), None, 1),
            Context::records(Relation::AddRemove)
        )
        .is_err()
    );
    assert!(Forest::new(vec![Some(0)]).is_err() && Forest::flat(0).is_err());
}

/// Golden 10: PRUNE as printed costs 2.22 ε at h = 8, β = 2 (all counts of the path 0, then 1). The decisions of
/// different nodes share no noise, so "nothing is pruned" costs seven times what one visible decision does.
#[test]
fn printed_pruning_is_flagged() {
    let law = |count: i64| {
        enumerate(Window::Tail(1e-16), |noise| {
            printed_prune(&[count; 2], 2, &ratio(1, 1), noise).unwrap()
        })
    };
    let (before, after) = (law(0).mass(&1), law(1).mass(&1));
    let loss = 7.0 * (after / before).ln();
    assert!((loss - 2.151_096_218).abs() < 1e-6, "{loss}");
    // the printed, continuous noise: P(Lap + Lap > x) = e^{−x/2}(1 + x/4)/2 at ε = 1
    let above = |x: f64| 0.5 * (-x / 2.0).exp() * (1.0 + x / 4.0);
    let printed = 7.0 * (above(1.0) / above(2.0)).ln();
    assert!((printed - 2.223_749_1).abs() < 1e-7, "{printed}");
    // two levels at once, enumerated: twice one level
    let two = |count: i64| {
        enumerate(Window::Tail(1e-9), |noise| {
            printed_prune(&[count; 3], 2, &ratio(3, 1), noise).unwrap()
        })
        .mass(&2)
    };
    let one = |count: i64| {
        enumerate(Window::Tail(1e-9), |noise| {
            printed_prune(&[count; 2], 2, &ratio(3, 1), noise).unwrap()
        })
        .mass(&1)
    };
    let (single, double) = ((one(1) / one(0)).ln(), (two(1) / two(0)).ln());
    assert!((double - 2.0 * single).abs() < 1e-6);
}

/// Golden 10: biased counts on a path of seven nodes, within ε: all monotone counts in 0..=4 and an event that ends at
/// any depth; and equal counts, where the biased ones lie exactly δ apart, which is the worst case.
#[test]
fn biased_pruning_is_within_its_budget() {
    let mut paths = vec![Vec::new()];
    for _ in 0..7 {
        paths = paths
            .into_iter()
            .flat_map(|p: Vec<i64>| {
                let top = p.last().copied().unwrap_or(4);
                (0..=top).map(move |c| [p.clone(), vec![c]].concat())
            })
            .collect();
    }
    paths.extend((5..=24).map(|c| vec![c; 7]));
    let scale = ratio(24_713_056, 10_000_000);
    let law = |counts: &[i64]| {
        enumerate(Window::Tail(1e-16), |noise| {
            biased_prune(counts, 3, 2, &scale, noise).unwrap()
        })
    };
    let mut worst: f64 = 0.0;
    for counts in &paths {
        let before = law(counts);
        for depth in 1..=7 {
            let more: Vec<i64> = counts
                .iter()
                .enumerate()
                .map(|(i, c)| c + i64::from(i < depth))
                .collect();
            worst = worst.max(before.worst_loss(&law(&more), 0.0));
        }
    }
    assert!(
        worst <= 1.0 && (worst - 0.997_572_0).abs() < 1e-6,
        "{worst}"
    );
}

/// With noise off, a session gives the thesis's Example 7 through the whole path.
#[test]
fn silent_sessions_are_exact() {
    let grouper = Grouper {
        threshold: 2,
        split: Split::Printed,
    };
    let mut session = session(
        Forest::flat(1).unwrap(),
        ratio(1, 1),
        Some(grouper),
        Relation::AddRemove,
    );
    let events: Events = [5, 5, 6, 9, 10].map(|c| vec![c]).to_vec();
    let plan = |_: &[Ticked]| Plan::uniform(1, PARTS / 5 * 4, PARTS / 5);
    let out = run(&mut session, &events, plan, &mut Silent).unwrap();
    let marks: Vec<Mark> = out.iter().map(|t| t.marks[0]).collect();
    assert_eq!(marks, [Opened, Joined, Joined, Alone, Opened]);
    assert!(
        out.iter()
            .zip(&events)
            .all(|(t, e)| t.counts[0] == Some(e[0]))
    );
}
