//! The broken mechanisms as things to audit: published constants, the claim they come with, a pair of tables that
//! refutes it.

use reticent_noise::{Lattice, Noise, NoiseError, Rational, Scale};

use super::{Auditable, Claim, Effort, Exact, Output, enumerated, enumerated_within};
use crate::AuditError;
use crate::attacks::gptt;
use crate::broken::{self, Split, clusters, floats, medians, models, partitions::Stage, pruning};

type Run = Box<dyn Fn(usize, &mut dyn Noise) -> Result<Output, NoiseError> + Send + Sync>;

/// How the exact loss of a [`Broken`] is found.
enum Way {
    /// Not at all.
    None,
    /// By enumeration of its runs, this much left out per draw.
    Enumerated(f64),
    /// By a formula.
    Formula(
        Box<dyn Fn() -> Result<f64, NoiseError> + Send + Sync>,
        &'static str,
    ),
}

/// A mechanism of [`crate::broken`] with its claim and tables.
pub struct Broken {
    name: &'static str,
    about: &'static str,
    fault: &'static str,
    claim: Claim,
    tables: Vec<&'static str>,
    pairs: Vec<(usize, usize)>,
    run: Option<Run>,
    way: Way,
    effort: Effort,
}

impl Broken {
    /// What is wrong with it.
    pub fn fault(&self) -> &'static str {
        self.fault
    }

    fn new(name: &'static str, about: &'static str, fault: &'static str, epsilon: f64) -> Self {
        Self {
            name,
            about,
            fault,
            claim: Claim::pure(epsilon),
            tables: Vec::new(),
            pairs: vec![(0, 1)],
            run: None,
            way: Way::None,
            effort: Effort::default(),
        }
    }

    fn tables(mut self, tables: &[&'static str]) -> Self {
        self.tables = tables.to_vec();
        self.pairs = (1..tables.len()).map(|i| (i - 1, i)).collect();
        self
    }

    fn runs(
        mut self,
        run: impl Fn(usize, &mut dyn Noise) -> Result<Output, NoiseError> + Send + Sync + 'static,
    ) -> Self {
        self.run = Some(Box::new(run));
        self
    }

    fn enumerated(mut self, tail: f64) -> Self {
        self.way = Way::Enumerated(tail);
        self
    }

    fn formula(
        mut self,
        how: &'static str,
        loss: impl Fn() -> Result<f64, NoiseError> + Send + Sync + 'static,
    ) -> Self {
        self.way = Way::Formula(Box::new(loss), how);
        self
    }

    fn effort(mut self, training: u64, most: u64) -> Self {
        self.effort = Effort { training, most };
        self
    }
}

impl Auditable for Broken {
    fn name(&self) -> &str {
        self.name
    }
    fn about(&self) -> &str {
        self.about
    }
    fn claim(&self) -> Claim {
        self.claim
    }
    fn tables(&self) -> Vec<String> {
        self.tables.iter().map(|t| (*t).to_owned()).collect()
    }
    fn pairs(&self) -> Vec<(usize, usize)> {
        self.pairs.clone()
    }
    fn run(&self, table: usize, noise: &mut dyn Noise) -> Result<Output, AuditError> {
        match &self.run {
            Some(run) => run(table, noise).map_err(|e| AuditError::Method(e.to_string())),
            None => Err(AuditError::Method(format!(
                "{} is known by its density only",
                self.name
            ))),
        }
    }
    fn exact(&self) -> Result<Option<Exact>, AuditError> {
        Ok(match &self.way {
            Way::None => None,
            Way::Enumerated(tail) if *tail > 0.0 => Some(enumerated_within(self, *tail)?),
            Way::Enumerated(_) => Some(enumerated(self)?),
            Way::Formula(loss, how) => Some(Exact {
                loss: loss().map_err(|e| AuditError::Method(e.to_string()))?,
                how: (*how).to_owned(),
                delta: None,
            }),
        })
    }
    fn samples(&self) -> bool {
        self.run.is_some()
    }
    fn effort(&self) -> Effort {
        self.effort
    }
}

fn bit(b: bool) -> f64 {
    f64::from(u8::from(b))
}

#[allow(clippy::cast_precision_loss, reason = "outputs for a classifier")]
fn real(x: i128) -> f64 {
    x as f64
}

fn one() -> Rational {
    Rational::from(1u8)
}

fn ratio(n: u32, d: u32) -> Rational {
    Rational::from(n) / Rational::from(d)
}

/// t queries the first kind of record raises, then t the second kind raises; table 0 has the second, table 1 the first.
fn two_halves(table: usize, t: usize) -> Vec<i128> {
    let late = |i: usize| i128::from((i >= t) == (table == 0));
    (0..2 * t).map(late).collect()
}

/// How many yes in each half: a post-processing of the answers, hence as good for a lower bound.
fn yes_by_half(answers: &[bool], t: usize) -> Output {
    let yes = |part: &[bool]| part.iter().map(|b| bit(*b)).sum();
    vec![
        yes(&answers[..t.min(answers.len())]),
        yes(answers.get(t..).unwrap_or(&[])),
    ]
}

const HALVES: [&str; 2] = [
    "early queries 0, late queries 1",
    "early queries 1, late queries 0 (one record replaced)",
];

/// The sparse vector family.
fn sparse_vectors() -> Vec<Broken> {
    let uncut = |name, about, split: Split, t: u32| {
        Broken::new(
            name,
            about,
            "no cut-off: the loss grows with the number of queries",
            1.0,
        )
        .tables(&HALVES)
        .runs(move |table, noise| {
            let scores = two_halves(table, t as usize);
            let answers = broken::uncut_testing(&scores, 0, &one(), split, noise)?;
            Ok(yes_by_half(&answers, t as usize))
        })
        .formula("closed form, 2 x 10 queries", move || {
            let (threshold, query) = split.shares(&one());
            Ok(gptt::closed_form(&threshold, &query, t).loss)
        })
    };
    vec![
        uncut(
            "noisy-cut",
            "NoisyCut (Lee, Clifton 2014), thesis Algorithm 2: threshold e/4, queries 3e/4, any number of answers",
            Split::NoisyCut,
            10,
        ),
        Broken::new(
            "ptt",
            "private threshold testing (Stoddard, Chen, Machanavajjhala 2014), thesis Algorithm 3: exact scores, noisy threshold",
            "exact scores: some answers are possible on one table only",
            1.0,
        )
        .tables(&["no record: scores 0, 0", "one record: scores 1, 0"])
        .runs(|table, noise| {
            let scores = [i128::from(table == 1), 0];
            let answers = broken::threshold_testing(&scores, 1, &one(), noise)?;
            Ok(answers.into_iter().map(bit).collect())
        })
        .enumerated(0.0),
        uncut(
            "algorithm-4",
            "Chen, Xiao, Zhang, Xu 2015, thesis Algorithm 4: threshold e/2, queries e/2, any number of answers",
            Split::Halves,
            10,
        ),
        Broken::new(
            "gptt",
            "generalised private threshold testing, thesis Algorithm 5: e1 = 1/2, e2 = 1, claimed 2 e1",
            "no cut-off: the loss is at least e2 per pair of queries",
            1.0,
        )
        .tables(&HALVES)
        .runs(|table, noise| {
            let scores = two_halves(table, 10);
            let answers = broken::generalised_testing(
                &scores,
                0,
                &Rational::from(2u8),
                &one(),
                |_| true,
                noise,
            )?;
            Ok(yes_by_half(&answers, 10))
        })
        .formula("closed form, 2 x 10 queries", || {
            Ok(gptt::closed_form(&ratio(1, 2), &one(), 10).loss)
        }),
        Broken::new(
            "algorithm-8",
            "generalised sparse vector, thesis Algorithm 8 as printed, c = 2",
            "the counter is set to 0 inside the loop, so nothing stops the answers",
            1.0,
        )
        .tables(&HALVES)
        .runs(|table, noise| {
            let scores = two_halves(table, 60);
            let answers =
                broken::sparse_vector_inner_reset(&scores, 0, &one(), 2, |_| true, noise)?;
            Ok(yes_by_half(&answers, 60))
        })
        .formula("closed form, 2 x 60 queries", || {
            Ok(gptt::closed_form(&ratio(1, 2), &ratio(1, 8), 60).loss)
        }),
        Broken::new(
            "range-theta-quarter",
            "range finder at scales theta/e1, 2 theta/e2 (design draft) with theta = 1/4",
            "constants proved for theta >= 1/2 only",
            1.0,
        )
        .tables(&["three records at 0", "four records at 0"])
        .runs(|table, noise| {
            let n = 3 + i128::from(table == 1);
            let found =
                broken::range_with_scales(&[n, n, n], n, (1, 4), &ratio(1, 2), &one(), noise)?;
            Ok(vec![real(i128::try_from(found).unwrap_or(0))])
        })
        .enumerated(0.0),
    ]
}

/// Histograms, partitions, hierarchies, clusters.
fn histograms() -> Vec<Broken> {
    let printed_scales = Stage::with_longest(&[1, 2, 3], 3, 3, 4, &ratio(1, 4), &ratio(1, 2), true);
    let half_scales = Stage {
        scales: vec![Some(ratio(1, 2)), Some(one())],
        ..Stage::new(&[1, 2], 1, 1, &one(), &ratio(1, 2), false)
    };
    let clamped = Stage {
        // units of 1/4: deviations are multiples of 2/8
        scales: vec![Some(Rational::from(16u8)); 4],
        clamped: true,
        ..Stage::new(&[1, 2, 4, 8], 4, 4, &one(), &one(), false)
    };
    vec![
        Broken::new(
            "prune",
            "PRUNE, thesis Algorithm 18, as printed: h = 8, beta = 2",
            "every node has its own threshold noise, so the losses of a path add up",
            1.0,
        )
        .tables(&["path counts all 0", "path counts all 1", "path counts all 2"])
        .runs(|table, noise| {
            let count = i128::try_from(table).unwrap_or(0);
            let level = pruning::path(&[count; 7], 2, &one(), noise)?;
            Ok(vec![real(i128::try_from(level).unwrap_or(0))])
        })
        .formula("law of one decision, 7 of them", || {
            pruning::loss(&[0; 7], &[1; 7], 2, &one())
        })
        .effort(50_000, 1_000_000),
        Broken::new(
            "dawa-bare-cells",
            "DAWA stage 1 as in the authors' code, e1 = 1/4: single cells without noise, half the scale",
            "the winning bucket must have noise, and twice as much",
            0.25,
        )
        .tables(&["cells 2, 2, 2", "cells 2, 3, 2"])
        .runs(move |table, noise| {
            let cells = [2, 2 + i128::from(table == 1), 2];
            Ok(vec![bit(printed_scales.all_single(&cells, noise)?)])
        })
        .enumerated(0.0)
        .effort(100_000, 1_000_000),
        Broken::new(
            "dawa-half-scale",
            "DAWA stage 1, all candidates noised at half the scale of the proof",
            "both the winner's and its rivals' costs move: the scale needs both",
            1.0,
        )
        .tables(&["cells 0, 1, 4", "cells 0, 0, 4"])
        .runs(move |table, noise| {
            let cells = [0, i128::from(table == 0), 4];
            Ok(vec![f64::from(half_scales.of_three(&cells, noise)?)])
        })
        .enumerated(1e-11)
        .effort(50_000, 500_000),
        Broken::new(
            "dawa-clamped-costs",
            "DAWA stage 1 at the scale of the proof, negative noisy deviations raised to 0, 8 cells",
            "raising costs ties the decision to all other noises, uncompensated",
            1.0,
        )
        .tables(&["eight cells of 2", "the fifth cell 3"])
        .runs(move |table, noise| {
            let mut cells = [2; 8];
            cells[4] += i128::from(table == 1);
            Ok(vec![bit(clamped.all_single(&cells, noise)?)])
        })
        .formula("closed form, all single cells", || {
            Ok(crate::broken::partitions::clamped_loss(8))
        })
        .effort(5_000, 50_000),
        Broken::new(
            "cluster-selection",
            "cluster selection (Stoddard, Chen, Machanavajjhala 2014, Algorithm 1), one step, s = 20",
            "one record moves up to s points and their sums, not one point",
            1.0,
        )
        .tables(&["20 features with count 10", "20 features with count 11"])
        .runs(|table, noise| {
            let (a, b, centres) = clusters::worst_pair();
            let (sizes, sums) = clusters::questions(if table == 0 { &a } else { &b }, &centres);
            let mut out = Vec::new();
            for (values, scale) in [(sizes, 2_u8), (sums.concat(), 40)] {
                let law = Lattice::Laplace(Scale::at_least(&Rational::from(scale))?);
                out.extend(values.iter().map(|v| real(i128::from(*v) + noise.lattice(&law))));
            }
            Ok(out)
        })
        .formula("L1 distances of the two questions", || Ok(clusters::loss()))
        .effort(5_000, 50_000),
    ]
}

/// Sums, medians, models, floating point.
#[allow(clippy::too_many_lines, reason = "a list")]
fn models_and_sums() -> Vec<Broken> {
    let delta = 1.0 / 65536.0;
    let mut moments = Broken::new(
        "covariance-sqrt-d",
        "second moments with the published sensitivity sqrt(d), d = 50, classical Gaussian, delta = 2^-16",
        "sqrt(d) is the norm of a row, not of its second moments",
        1.0,
    )
    .tables(&["no record", "one record (1, ..., 1)"])
    .runs(move |table, noise| {
        let deviation = models::published_deviation(50, 1.0, delta);
        let entries = models::second_moments(50, i128::from(table == 1), deviation, noise)?;
        Ok(entries.into_iter().map(real).collect())
    })
    .formula("Gaussian curve at delta", move || {
        Ok(models::true_epsilon(50, 1.0, delta))
    })
    .effort(12_000, 12_000);
    moments.claim.delta = delta;
    // far bins: the corrected edges of decisions §4, instance 12
    let edges = [0.0, 0.25, 0.5, 63.0 / 64.0, 1.0];
    vec![
        Broken::new(
            "pribrp",
            "binned residual plot, thesis Algorithm 13, as printed, last bin [63/64, 1]",
            "the sensitivity of a sum is the width of its bin, as if records could not be added or leave",
            1.0,
        )
        .tables(&["no record in the bin", "one record (p, y) = (1, 0)"])
        .runs(|table, noise| {
            let records = [(128, 0)];
            let found = broken::printed_bin_release((126, 128), &records[..table.min(1)], noise)?;
            Ok(found.into_iter().map(real).collect())
        })
        .formula("L1 distance in scales", move || {
            Ok(broken::printed_bin_sums(&edges, &[(3, 1.0, 0.0)]).0)
        })
        .effort(5_000, 50_000),
        moments,
        Broken::new(
            "cauchy-median",
            "smooth-sensitivity median with the papers' constants: scale 8S/e, beta = e",
            "the constants belong to beta = e/2",
            1.0,
        )
        .tables(&["54 zeros, 13 of e^-13, 40 ones", "one zero turned into a one"])
        .formula("hyperbolic distance, exact", || {
            let (a, b) = medians::cauchy_pair(107, 13, 1.0);
            Ok(medians::median_loss(&a, &b, 8.0, 1.0))
        }),
        Broken::new(
            "unpadded-median",
            "smooth-sensitivity median without padding by the bounds",
            "constant data have sensitivity 0: no noise",
            1.0,
        )
        .tables(&["1/2, 1/2, 1/2", "1/2, 1/2, 0.6"])
        .runs(|table, noise| {
            let sorted = [0.5, 0.5, if table == 0 { 0.5 } else { 0.6 }];
            Ok(vec![medians::release(&sorted, 1.0, false, noise)])
        })
        .formula("one table has no noise", || {
            let scale = |last| medians::smooth_median(&[0.5, 0.5, last], 0.7, false).1;
            let bare = scale(0.5) <= 0.0 && scale(0.6) > 0.0;
            Ok(if bare { f64::INFINITY } else { 0.0 })
        })
        .effort(2_000, 20_000),
        Broken::new(
            "privatelr-intercept",
            "PrivateLR 1.2: intercept outside the unit ball, default penalty",
            "rows have norm sqrt 2, not 1",
            1.0,
        )
        .tables(&[
            "12511 records with (1, +1)",
            "the same with (.7, -1) in its place",
        ])
        .formula("density at (17, -20)", || Ok(models::private_lr_intercept_loss())),
        Broken::new(
            "privatelr-single-class",
            "PrivateLR 1.2: if all labels agree, 1/2 is returned without noise",
            "a branch on the data before the noise",
            1.0,
        )
        .tables(&["20 positive records", "19 positive, one negative"])
        .runs(|table, noise| {
            let mut labels = [true; 20];
            labels[7] = table == 0;
            Ok(vec![models::single_class_branch(&labels, noise)])
        })
        .formula("one table draws no noise", || {
            let twice = |last: bool| {
                let mut labels = [true; 20];
                labels[7] = last;
                [1, 2].map(|seed| {
                    models::single_class_branch(&labels, &mut reticent_laws::Seeded::new(seed))
                })
            };
            let (bare, noisy) = (twice(true), twice(false));
            let same = |x: [f64; 2]| x[0].to_bits() == x[1].to_bits();
            Ok(if same(bare) && !same(noisy) {
                f64::INFINITY
            } else {
                0.0
            })
        })
        .effort(500, 20_000),
        Broken::new(
            "float-laplace",
            "textbook Laplace noise in double precision, counts 0 and 1, scale 1",
            "the set of doubles that can come out depends on the value",
            1.0,
        )
        .tables(&["count 0", "count 1"])
        .runs(|table, noise| {
            let (value, scale) = (if table == 0 { 0.0 } else { 1.0 }, 1.0);
            let seen = floats::naive_laplace(value, scale, noise);
            // what an adversary computes from the output
            Ok(vec![
                seen,
                bit(floats::reachable(seen, 0.0, scale)),
                bit(floats::reachable(seen, 1.0, scale)),
            ])
        })
        .effort(2_000, 20_000),
    ]
}

/// All broken mechanisms.
pub fn broken() -> Vec<Broken> {
    let mut all = sparse_vectors();
    all.extend(histograms());
    all.extend(models_and_sums());
    all
}
