//! Each attack with its words and its picture, as `reticent attack` prints them.

use std::fmt::Write as _;

use reticent_laws::Seeded;
use reticent_noise::{NoiseError, Rational};
use serde_json::{Value, json};

use super::people::Person;
use super::reconstruct::{Config, Reconstruction, reconstruct, success, unbroken};
use super::roc::Scored;
use super::{float, gptt, residuals, roc};
use crate::broken::floats;
use crate::picture::{Axis, Chart, short};

/// What an attack got, for people, for machines, and as a picture.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What leaked, in words.
    pub text: String,
    /// The numbers.
    pub value: Value,
    /// An SVG drawing.
    pub picture: String,
}

/// The exact loss of the variants of generalised testing against the number of queries.
pub fn gptt(epsilon: &Rational, copies: u32) -> Shown {
    use crate::broken::Split;
    let claimed = epsilon.to_f64().value();
    let copies = copies.clamp(1, gptt::MOST_COPIES);
    let variants = [
        ("NoisyCut (1/4, 3/4)", Split::NoisyCut, "red"),
        ("Algorithm 4 (1/2, 1/2)", Split::Halves, "blue"),
    ];
    let mut text = format!(
        "Private threshold testing without a cut-off. Claimed: epsilon = {claimed} for any number of queries.\n\
         The adversary asks t queries that one person raises and t that the same person lowers, and sees\n\
         \"below\" t times, then \"above\" t times. Exact privacy loss of that answer:\n\n{:>4}",
        "t"
    );
    for (name, _, _) in variants {
        let _ = write!(text, "  {name:>24}");
    }
    text.push('\n');
    let rows: Vec<(u32, Vec<gptt::Leak>)> = (1..=copies)
        .map(|t| {
            let leaks = variants
                .iter()
                .map(|(_, split, _)| {
                    let (threshold, query) = split.shares(epsilon);
                    gptt::closed_form(&threshold, &query, t)
                })
                .collect();
            (t, leaks)
        })
        .collect();
    for (t, leaks) in &rows {
        let _ = write!(text, "{t:>4}");
        for leak in leaks {
            let _ = write!(text, "  {:>24.4}", leak.loss);
        }
        text.push('\n');
    }
    text.push_str("\nThe loss is at least t times the epsilon of a query, so no finite epsilon holds for all t.\n");
    let top = rows
        .iter()
        .flat_map(|(_, l)| l.iter().map(|l| l.loss))
        .fold(claimed, f64::max);
    let mut chart = Chart::new(
        "Privacy loss of threshold testing without a cut-off",
        Axis::linear(0.0, f64::from(copies), "t: half the number of queries"),
        Axis::linear(0.0, top * 1.05, "exact loss ε"),
    );
    for (i, (name, _, class)) in variants.iter().enumerate() {
        chart.line(class, rows.iter().map(|(t, l)| (f64::from(*t), l[i].loss)));
        for (t, l) in &rows {
            let dot = if *class == "red" { "rf" } else { "bf" };
            chart.dot(dot, (f64::from(*t), l[i].loss), 2.5);
        }
        chart.note(class, name);
    }
    chart.line("blue dash", [(0.0, claimed), (f64::from(copies), claimed)]);
    chart.note("blue dash", "claimed");
    let value = json!({
        "attack": "gptt",
        "claimed": claimed,
        "rows": rows.iter().map(|(t, l)| json!({
            "t": t,
            "noisy_cut": l[0].loss,
            "algorithm_4": l[1].loss,
        })).collect::<Vec<_>>(),
    });
    Shown {
        text,
        value,
        picture: chart.svg(false),
    }
}

/// Reconstruction of a histogram (Algorithms 6 and 7).
pub fn reconstruction(
    name: &str,
    counts: &[i64],
    epsilon: &Rational,
    config: &Config,
    seed: u64,
) -> Result<Shown, NoiseError> {
    let found = reconstruct(counts, config, &mut Seeded::new(seed))?;
    let all = success(counts, &found.estimates, |_| true);
    let small = success(counts, &found.estimates, |x| x <= 5);
    let alone = counts.iter().filter(|x| (1..=2).contains(*x)).count();
    let alone_found = counts
        .iter()
        .zip(&found.estimates)
        .filter(|(x, e)| (1..=2).contains(*x) && x == e)
        .count();
    let claimed = epsilon.to_f64().value();
    let text = format!(
        "Reconstruction of {name}: {} cells, {} records, through threshold testing with exact scores\n\
         (\"epsilon = {claimed} for any number of queries\").\n\n\
         difference queries read     {}\n\
         groups of equal answers     {}\n\
         cells reconstructed exactly {} of {} ({:.1} %)\n\
         of those with 0 to 5        {:.1} %\n\
         cells with 1 or 2 people    {alone_found} of {alone} exact\n\n\
         A cell with one person in it is that person. At a small epsilon none of this should be possible.\n",
        counts.len(),
        counts.iter().sum::<i64>(),
        found.queries,
        found.groups.len(),
        counts
            .iter()
            .zip(&found.estimates)
            .filter(|(a, b)| a == b)
            .count(),
        counts.len(),
        100.0 * all,
        100.0 * small,
    );
    let value = json!({
        "attack": "reconstruct",
        "histogram": name,
        "cells": counts.len(),
        "records": counts.iter().sum::<i64>(),
        "epsilon": claimed,
        "threshold_epsilon": config.threshold.to_f64().value(),
        "totals_epsilon": config.totals.to_f64().value(),
        "failure": config.failure,
        "seed": seed,
        "queries": found.queries,
        "groups": found.groups.len(),
        "unbroken": unbroken(counts),
        "exact": all,
        "exact_small": small,
        "estimates": found.estimates,
    });
    Ok(Shown {
        text,
        value,
        picture: compared(name, counts, &found),
    })
}

#[allow(clippy::cast_precision_loss, reason = "a drawing")]
fn compared(name: &str, counts: &[i64], found: &Reconstruction) -> String {
    let top = counts
        .iter()
        .chain(&found.estimates)
        .fold(1, |a, b| a.max(*b)) as f64;
    // 0 is drawn half a step below 1 on the logarithmic axis
    let place = |x: i64| if x <= 0 { 0.6 } else { x as f64 };
    let mut chart = Chart::new(
        &format!("{name}: what is true, and what the adversary reads"),
        Axis::linear(0.0, counts.len() as f64, "cell"),
        Axis::log(0.6, 1.5 * top, "records in the cell"),
    );
    chart.note("gf", "true count above 0");
    chart.note("bo", "reconstructed exactly");
    chart.note("ro", "reconstructed wrongly");
    for (i, x) in counts.iter().enumerate() {
        if *x > 0 {
            let at = i as f64 + 0.5;
            chart.rect(
                "gf",
                (at - 0.002 * counts.len() as f64, 0.6),
                (at + 0.002 * counts.len() as f64, place(*x)),
            );
        }
    }
    for (i, (x, e)) in counts.iter().zip(&found.estimates).enumerate() {
        if *x > 0 || x != e {
            let class = if x == e { "bo" } else { "ro" };
            chart.dot(class, (i as f64 + 0.5, place(*e)), 3.0);
        }
    }
    chart.svg(false)
}

/// The missing record from an exact ROC curve: one in full, and how often over the first `trials`.
pub fn roc(people: &[Person], trials: usize) -> Shown {
    let records: Vec<Scored> = people.iter().map(Person::scored).collect();
    let published = roc::curve(&records);
    let without = |i: usize| -> Vec<Scored> {
        records
            .iter()
            .enumerate()
            .filter(|(j, _)| *j != i)
            .map(|(_, r)| *r)
            .collect()
    };
    let trials = trials.min(records.len());
    let (mut labels, mut widest, mut wrong) = (0, 0.0_f64, 0);
    for (i, r) in records.iter().enumerate().take(trials) {
        let found = roc::infer(&without(i), &published);
        let one_label = found.iter().all(|h| h.positive == found[0].positive);
        labels += usize::from(!found.is_empty() && one_label);
        wrong += usize::from(!found.iter().any(|h| h.fits(r)));
        for h in &found {
            widest = widest.max(h.high.min(1.0) - h.low.max(0.0));
        }
    }
    // an interior positive record makes the clearest picture
    let shown = records
        .iter()
        .position(|r| r.positive && (0.3..0.6).contains(&r.score))
        .unwrap_or(0);
    let found = roc::infer(&without(shown), &published);
    let (low, high) = found.iter().fold((1.0_f64, 0.0_f64), |(l, h), x| {
        (l.min(x.low), h.max(x.high))
    });
    let truth = records.get(shown);
    let text = format!(
        "An exact ROC curve of {} records. The adversary knows all of them but one.\n\n\
         curves tried per record         every label and every place among the known scores\n\
         label read off the curve        {labels} of {trials} records\n\
         true record among what is left  {} of {trials}\n\
         score located to within         {:.5} (widest over all)\n\n\
         Record {shown}: the curve leaves {} hypothes{}: label {}, score in [{:.5}, {:.5}]. True: {}, {:.5}.\n",
        records.len(),
        trials - wrong,
        widest,
        found.len(),
        if found.len() == 1 { "is" } else { "es" },
        found.first().map_or("none", |h| words(h.positive)),
        low,
        high,
        truth.map_or("none", |r| words(r.positive)),
        truth.map_or(f64::NAN, |r| r.score),
    );
    let mut chart = Chart::new(
        "An exact ROC curve gives the one unknown record away",
        Axis::linear(0.0, 1.0, "false positive rate"),
        Axis::linear(0.0, 1.0, "true positive rate"),
    );
    chart.note("blue", "published curve");
    chart.note("red dash", "curve of the known records");
    chart.note("rf", "the step of the unknown one");
    let start = [(0.0, 0.0)];
    let known = roc::curve(&without(shown));
    chart.line("blue", start.into_iter().chain(published.0.iter().copied()));
    chart.line("red dash", start.into_iter().chain(known.0.iter().copied()));
    if let Some(r) = truth {
        let above = records.iter().filter(|o| o.score > r.score);
        let (mut p, mut n) = (0_u32, 0_u32);
        above.for_each(|o| {
            p += u32::from(o.positive);
            n += u32::from(!o.positive);
        });
        let all = records.iter().filter(|o| o.positive).count();
        #[allow(clippy::cast_precision_loss, reason = "a drawing")]
        let at = (
            f64::from(n) / (records.len() - all).max(1) as f64,
            f64::from(p) / all.max(1) as f64,
        );
        chart.dot("rf", at, 5.0);
        chart.label(
            at,
            (12.0, 14.0),
            "start",
            &format!("label {}, score {:.3}", words(r.positive), r.score),
        );
    }
    let value = json!({
        "attack": "roc",
        "records": records.len(),
        "trials": trials,
        "labels_read": labels,
        "truth_excluded": wrong,
        "widest_score_interval": widest,
    });
    Shown {
        text,
        value,
        picture: chart.svg(false),
    }
}

fn words(positive: bool) -> &'static str {
    if positive { "positive" } else { "negative" }
}

/// The missing record from an exact residual plot.
pub fn residual_plot(people: &[Person], trials: usize) -> Shown {
    let plot: Vec<_> = people.iter().map(Person::point).collect();
    let grid = || (17..=90).flat_map(|age| (1..=16).map(move |education| (age, education)));
    let trials = trials.min(people.len());
    let (mut outcomes, mut identified) = (0, 0);
    for (i, person) in people.iter().enumerate().take(trials) {
        let known: Vec<_> = people
            .iter()
            .enumerate()
            .filter(|(j, _)| *j != i)
            .map(|(_, p)| p.point())
            .collect();
        let left = residuals::left_over(&plot, &known);
        if let [point] = left.as_slice() {
            outcomes += usize::from((point.outcome() - f64::from(person.hours)).abs() < 1e-9);
            let who = residuals::candidates(point.predicted, grid(), |(age, education)| {
                Person::expected_hours(age, education)
            });
            identified += usize::from(who == [(person.age, person.education)]);
        }
    }
    let target = people.first().map(|p| (p, p.point()));
    let mut text = format!(
        "An exact residual plot of hours of work on age and education, {} records, the model released.\n\
         The adversary knows all records but one.\n\n\
         outcome read off the left-over point (prediction + residual)  {outcomes} of {trials}\n\
         age and education read off its prediction                     {identified} of {trials}\n",
        people.len()
    );
    if let Some((p, point)) = target {
        let _ = write!(
            text,
            "\nFirst record: the point at ({:.4}, {:.4}) is left, so hours = {:.0}; only age {} with education {} predicts {:.4}.\n",
            point.predicted,
            point.residual,
            point.outcome(),
            p.age,
            p.education,
            point.predicted
        );
    }
    let range = |f: fn(&residuals::Point) -> f64| {
        plot.iter()
            .map(f)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
                (l.min(v), h.max(v))
            })
    };
    let (x, y) = (range(|p| p.predicted), range(|p| p.residual));
    let mut chart = Chart::new(
        "An exact residual plot gives the one unknown record away",
        Axis::linear(x.0 - 0.3, x.1 + 0.3, "predicted hours per week"),
        Axis::linear(y.0 - 3.0, y.1 + 3.0, "residual"),
    );
    chart.note("bo", "records the adversary knows");
    chart.note("rf", "the point that is left over");
    plot.iter()
        .skip(1)
        .for_each(|p| chart.dot("bo", (p.predicted, p.residual), 2.0));
    if let Some((p, point)) = target {
        let at = (point.predicted, point.residual);
        chart.dot("rf", at, 6.0);
        let right = point.predicted > 0.5 * (x.0 + x.1);
        chart.label(
            at,
            (if right { -9.0 } else { 9.0 }, 22.0),
            if right { "end" } else { "start" },
            &format!(
                "age {}, education {}, {} hours",
                p.age, p.education, p.hours
            ),
        );
    }
    let value = json!({
        "attack": "residuals",
        "records": people.len(),
        "trials": trials,
        "outcomes_read": outcomes,
        "people_identified": identified,
    });
    Shown {
        text,
        value,
        picture: chart.svg(false),
    }
}

/// The last bits of a floating-point Laplace release.
pub fn float_bits(first: f64, second: f64, scale: f64, outputs: u32, seed: u64) -> Shown {
    let mut noise = Seeded::new(seed);
    let tallies = [(first, second), (second, first)]
        .map(|(value, other)| float::tally(value, other, scale, outputs, &mut noise));
    let share = |t: &float::Tally| f64::from(t.named) / f64::from(t.outputs.max(1));
    let text = format!(
        "Textbook Laplace noise of scale {scale} in double precision, values {first} and {second}\n\
         (epsilon = {} by the formula).\n\n\
         outputs of {first} that {second} cannot produce  {} of {} ({:.1} %)\n\
         outputs of {second} that {first} cannot produce  {} of {} ({:.1} %)\n\
         outputs that name the wrong value   {}\n\n\
         Such an output proves which value it was: no epsilon describes that.\n",
        short((first - second).abs() / scale),
        tallies[0].named,
        outputs,
        100.0 * share(&tallies[0]),
        tallies[1].named,
        outputs,
        100.0 * share(&tallies[1]),
        tallies[0].wrong + tallies[1].wrong,
    );
    // forty neighbouring doubles far out, where outputs are sparse
    let around = first.max(second) + 2.0 * scale;
    let mut chart = Chart::new(
        "Which doubles can come out: neighbouring numbers, two values",
        Axis::linear(
            0.0,
            40.0,
            "the doubles just above value + 2b, one after the other",
        ),
        Axis::linear(0.0, 3.0, ""),
    )
    .sized(220.0, 90.0);
    for (row, value, class) in [(2.0, first, "bf"), (1.0, second, "rf")] {
        let mut y = around;
        for i in 0..40 {
            let fits = floats::reachable(y, value, scale);
            let at = (f64::from(i) + 0.5, row);
            chart.dot(if fits { class } else { "g" }, at, 5.0);
            y = y.next_up();
        }
        chart.label((0.0, row), (-10.0, 4.0), "end", &format!("{value}"));
    }
    let value = json!({
        "attack": "float",
        "values": [first, second],
        "scale": scale,
        "outputs": outputs,
        "seed": seed,
        "named": [tallies[0].named, tallies[1].named],
        "wrong": tallies[0].wrong + tallies[1].wrong,
    });
    Shown {
        text,
        value,
        picture: chart.svg(true),
    }
}
