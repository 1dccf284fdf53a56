//! Figure 5.8: a tree of series.

use std::cell::RefCell;
use std::collections::VecDeque;

use reticent_accounting::{Rational, Relation};
use reticent_laws::Seeded;
use reticent_mechanisms::stream::{
    Forest, Grouper, PARTS, Plan, Session, Split, State, Stream, Ticked,
};
use reticent_mechanisms::{Context, Simulated};
use reticent_statistics::streams::{BlendedSum, GroupedHierarchy, Hierarchy, Pruning, Smoother};

use super::{SEED, data, example, head, long, rational, three};
use crate::real;
use crate::study::{Findings, Form, StudyError};

/// A binary tree over the leaves, in order; node v has children 2v+1 and 2v+2.
fn binary(leaves: usize) -> Result<Forest, StudyError> {
    let parent = |v: usize| (v > 0).then(|| u32::try_from((v - 1) / 2).unwrap_or(0));
    Forest::new((0..2 * leaves - 1).map(parent).collect()).map_err(StudyError::release)
}

/// Mean |error| over all nodes and ticks of one run of a method for hierarchies: of the sums of the last `window` counts.
fn hierarchy_error(
    leaves: &[Vec<i64>],
    epsilon: &Rational,
    grouping: Option<Grouper>,
    window: usize,
    mut plan: impl FnMut() -> Plan,
    mut estimate: impl FnMut(&Ticked) -> Vec<f64>,
) -> Result<f64, StudyError> {
    let forest = binary(leaves.len())?;
    let nodes = forest.len();
    let stream = Stream {
        name: "study".to_owned(),
        epsilon: epsilon.clone(),
        forest,
        grouper: grouping,
        common: 0,
    };
    let mut session =
        Session::new(stream, Context::records(Relation::AddRemove)).map_err(StudyError::release)?;
    let mut noise = Seeded::stream(SEED, 9);
    let mut state = State::default();
    let ticks = leaves.first().map_or(0, Vec::len);
    let (mut total, mut sums) = (0.0, vec![0_i64; nodes]);
    let mut past: VecDeque<Vec<i64>> = VecDeque::new();
    for t in 0..ticks {
        let mut exact = vec![0_i64; nodes];
        for (i, leaf) in leaves.iter().enumerate() {
            exact[leaves.len() - 1 + i] = leaf[t];
        }
        let mut tally = session.tally();
        tally.add(&exact);
        for v in (1..nodes).rev() {
            exact[(v - 1) / 2] += exact[v];
        }
        let plan = session.check(plan()).map_err(StudyError::release)?;
        let Simulated(ticked) = session
            .simulate(&mut state, tally, &plan, &mut noise)
            .map_err(StudyError::release)?;
        let estimates = estimate(&ticked);
        sums.iter_mut().zip(&exact).for_each(|(s, c)| *s += c);
        past.push_back(exact);
        if past.len() > window {
            let old = past.pop_front().unwrap_or_default();
            sums.iter_mut().zip(&old).for_each(|(s, c)| *s -= c);
        }
        total += sums
            .iter()
            .zip(&estimates)
            .map(|(c, e)| (*c as f64 - e.max(0.0)).abs())
            .sum::<f64>()
            / real(nodes);
    }
    Ok(total / real(ticks.max(1)))
}

/// The shipped default: past-output pruning with filters; sums of more than one tick are blended.
fn filtered_error(
    leaves: &[Vec<i64>],
    exact: &Rational,
    epsilon: f64,
    window: usize,
) -> Result<f64, StudyError> {
    let forest = binary(leaves.len())?;
    let mut sums = vec![BlendedSum::by_tick(window); forest.len()];
    let tree = RefCell::new((Hierarchy::new(forest, 1.0 / epsilon), None));
    hierarchy_error(
        leaves,
        exact,
        None,
        window,
        || {
            let mut tree = tree.borrow_mut();
            let plan: Plan = tree.0.plan();
            tree.1 = Some(plan.clone());
            plan
        },
        |ticked| {
            let mut tree = tree.borrow_mut();
            let Some(plan) = tree.1.take() else {
                return Vec::new();
            };
            let estimates = tree.0.observe(&plan, &ticked.counts);
            if window == 1 {
                return estimates.iter().map(|e| e.median as f64).collect();
            }
            let each = sums.iter_mut().zip(&estimates);
            each.zip(ticked.counts.iter().zip(&plan.perturb))
                .map(|((sum, e), (z, parts))| {
                    let scale = f64::from(PARTS) / (epsilon * f64::from((*parts).max(1)));
                    sum.push_measured(*z, 2.0 * scale * scale, e.mean)
                })
                .collect()
        },
    )
}

/// Sums of `window` noisy counts, every node at every tick with 1/h of the budget.
fn laplace_sums(leaves: &[Vec<i64>], exact: &Rational, window: usize) -> Result<f64, StudyError> {
    let forest = binary(leaves.len())?;
    let share = Plan::uniform(forest.len(), PARTS / forest.height(), 0);
    let mut sums = vec![BlendedSum::new(window, 0.0); forest.len()];
    hierarchy_error(
        leaves,
        exact,
        None,
        window,
        || share.clone(),
        |ticked| {
            let each = sums.iter_mut().zip(&ticked.counts);
            each.map(|(sum, z)| {
                let z = z.unwrap_or(0);
                sum.push(z, z as f64)
            })
            .collect()
        },
    )
}

/// Runs the study.
///
/// # Errors
/// When the data cannot be read.
pub fn run(form: Form) -> Result<Findings, StudyError> {
    let leaves: Vec<Vec<i64>> = if form == Form::Quick {
        example()?.into_values().collect()
    } else {
        long(&data("streams_flights/multi128_5min_sparse.csv.gz")?, 1)
            .into_values()
            .collect()
    };
    let height = binary(leaves.len())?.height();
    let zero = {
        let total: i64 = leaves.iter().flatten().sum();
        f64::from(height) * total as f64 / real((2 * leaves.len() - 1) * leaves[0].len())
    };
    let mut findings = Findings {
        settings: vec![
            format!("Mean |error| over all nodes and ticks, estimates cut at 0; {} leaves, {} ticks, one run, seed {SEED}. All-zero output: {zero:.3}.", leaves.len(), leaves[0].len()),
            "PHS-PGS here prunes by past outputs (β = 2/ε); as printed it costs up to (h − 1)/2 times its budget and is not run.".to_owned(),
        ],
        head: head(&["ε", "HS-Laplace", "HS-PGS", "PHS-PGS, sound", "past-output pruning with filters"]),
        ..Findings::default()
    };
    let goals = [("1", 0.60), ("0.1", 0.83), ("0.01", 1.0)];
    for (epsilon, goal) in goals {
        let exact = rational(epsilon)?;
        let e = epsilon.parse::<f64>().map_err(StudyError::release)?;
        let forest = binary(leaves.len())?;
        let nodes = forest.len();
        let share = Plan::uniform(nodes, PARTS / height, 0);
        let plain = |t: &Ticked| t.counts.iter().map(|z| z.unwrap_or(0) as f64).collect();
        let laplace = hierarchy_error(&leaves, &exact, None, 1, || share.clone(), plain)?;
        let per_level = Grouper {
            threshold: (5.0 * f64::from(height) / (0.2 * e)).round() as i64,
            split: Split::Printed,
        };
        let mut grouped = [0.0; 2];
        let prunings = [Pruning::None, Pruning::PastOutputs { threshold: 2.0 / e }];
        for (error, pruning) in grouped.iter_mut().zip(prunings) {
            let tree = RefCell::new(GroupedHierarchy::new(
                forest.clone(),
                20,
                Smoother::Median,
                pruning,
            ));
            *error = hierarchy_error(
                &leaves,
                &exact,
                Some(per_level),
                1,
                || tree.borrow().plan(),
                |t| tree.borrow_mut().observe(&t.counts, &t.marks),
            )?;
        }
        let ours = filtered_error(&leaves, &exact, e, 1)?;
        let errors = [laplace, grouped[0], grouped[1], ours];
        findings.rows.push(
            std::iter::once(epsilon.to_owned())
                .chain(errors.map(three))
                .collect(),
        );
        if form == Form::Full {
            findings.require(
                ours <= goal,
                format!("ε = {epsilon}: at most {goal}, measured {ours:.3}"),
            );
        } else {
            findings.require(
                ours < grouped[0].min(laplace),
                format!("ε = {epsilon}: below HS-PGS and HS-Laplace: {ours:.3}"),
            );
        }
    }
    for window in [16, 256] {
        let row = ["1", "0.1", "0.01"].map(|epsilon| -> Result<String, StudyError> {
            let exact = rational(epsilon)?;
            let e = epsilon.parse::<f64>().map_err(StudyError::release)?;
            let plain = laplace_sums(&leaves, &exact, window)?;
            let ours = filtered_error(&leaves, &exact, e, window)?;
            Ok(format!(
                "ε = {epsilon}: {} against {}",
                three(ours),
                three(plain)
            ))
        });
        let row = row.into_iter().collect::<Result<Vec<_>, _>>()?;
        findings.settings.push(format!(
            "Sums of {window} ticks, blended filters against sums of HS-Laplace counts: {}; all-zero output: {}.",
            row.join(", "),
            three(zero * window as f64)
        ));
    }
    Ok(findings)
}
