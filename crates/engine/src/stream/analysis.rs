//! From noisy counts to a line of releases: estimates, windows, alarms. Post-processing, and the only source of plans.

use reticent_mechanisms::stream::{Mark, PARTS, Plan, Ticked};
use reticent_statistics::streams::{
    Bank, BlendedSum, GroupSmoother, GroupedHierarchy, Hierarchy, JumpProbability, Kernel, Monitor,
    Pruning, Side, Size, Smoother, Towards, Watch, WindowSumSmoother, consistent,
};
use serde::{Deserialize, Serialize};

use super::config::{AlarmKind, Config, Method, Smoothing};

/// A released tick, as stored and published.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The stream.
    pub stream: String,
    /// The tick, from 0.
    pub tick: i64,
    /// Where it begins, in units of the time field.
    pub from: i64,
    /// On the first line: what is protected, and when that holds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub guarantee: String,
    /// Set in simulated runs: there is no guarantee.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// Set when the daily cap withholds the tick; then everything else is empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
    /// Noisy counts by series; `null` where the plan measured nothing.
    pub noisy: Vec<Option<i64>>,
    /// Marks of the grouper, one letter per series: `-` off, `o` opened, `j` joined, `a` alone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub marks: String,
    /// Estimates by series.
    pub estimate: Vec<f64>,
    /// What publishing zeros, and publishing `noisy` as it is, would be off by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baselines: Option<Baselines>,
    /// Window sums: length and sums by series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<(usize, Vec<f64>)>,
    /// Alarms that are raised: name, series, score.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alarms: Vec<(String, String, f64)>,
}

/// Mean |error| of the two methods that need no estimate, by series, for comparison with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Baselines {
    /// Of publishing 0 at every tick: the mean noisy count so far, over the ticks in which the series was measured.
    pub zero: Vec<f64>,
    /// Of this tick's noisy count: the mean |noise|, known beforehand; `null` where nothing was measured.
    pub laplace: Vec<Option<f64>>,
}

impl Line {
    /// What the session gave, for a replay.
    pub fn ticked(&self) -> Ticked {
        let mark = |b: char| match b {
            'o' => Mark::Opened,
            'j' => Mark::Joined,
            'a' => Mark::Alone,
            _ => Mark::Off,
        };
        let mut marks: Vec<Mark> = self.marks.chars().map(mark).collect();
        marks.resize(self.noisy.len(), Mark::Off);
        Ticked {
            counts: self.noisy.clone(),
            marks,
        }
    }
}

fn letters(marks: &[Mark]) -> String {
    if marks.iter().all(|m| *m == Mark::Off) {
        return String::new();
    }
    marks
        .iter()
        .map(|m| match m {
            Mark::Off => '-',
            Mark::Opened => 'o',
            Mark::Joined => 'j',
            Mark::Alone => 'a',
        })
        .collect()
}

enum Estimator {
    Filters(Vec<Bank>, Box<Kernel>),
    Tree(Box<Hierarchy>),
    Groups(Vec<GroupSmoother>),
    GroupTree(Box<GroupedHierarchy>),
    Plain,
}

enum Watcher {
    Monitor(Monitor),
    /// The probability of the jump, and from where on it raises an alarm.
    Likely(Box<JumpProbability>, f64),
}

enum WindowSum {
    Blended(BlendedSum),
    /// Nodes of a hierarchy: measured or not, with noise that follows the plan.
    ByTick(BlendedSum),
    Grouped(WindowSumSmoother),
}

/// The state of the post-processing: a function of the released lines.
pub struct Analysis {
    config: Config,
    estimator: Estimator,
    uniform: Plan,
    windows: Vec<(usize, Vec<WindowSum>)>,
    alarms: Vec<(usize, usize, Watcher)>,
    planned: Option<Plan>,
    scale: f64,
    /// Noisy counts so far: sum and number, by series.
    totals: Vec<(f64, f64)>,
}

impl Analysis {
    /// Nothing released yet. `scale` is that of the noise of a count that gets the whole budget.
    pub fn new(config: &Config, scale: f64) -> Self {
        let n = config.forest.len();
        let h = config.forest.height();
        let (estimator, uniform) = match &config.method {
            Method::Filter { season, .. } if h == 1 => {
                let size = if n > 1000 { Size::Node } else { Size::Large };
                let kernel = Box::new(Kernel::new(&size.cells(), scale));
                let banks = (0..n).map(|_| Bank::new(size, *season)).collect();
                (
                    Estimator::Filters(banks, kernel),
                    Plan::uniform(n, PARTS, 0),
                )
            }
            Method::Filter { .. } => {
                let tree = Box::new(Hierarchy::new(config.forest.clone(), scale));
                (Estimator::Tree(tree), Plan::uniform(n, 0, 0))
            }
            Method::Pegasus {
                percent,
                smoother,
                prune,
                ..
            } => {
                let group = PARTS / 100 * percent;
                let scale = scale * f64::from(PARTS) / f64::from(PARTS - group) * f64::from(h);
                let how = match smoother {
                    Smoothing::Median => Smoother::Median,
                    Smoothing::Average => Smoother::Average,
                    Smoothing::JamesStein => Smoother::JamesStein {
                        variance: 2.0 * scale * scale,
                        towards: Towards::Mean,
                        positive_part: true,
                    },
                };
                if h == 1 {
                    let smoothers = vec![GroupSmoother::new(how); n];
                    (
                        Estimator::Groups(smoothers),
                        Plan::uniform(n, PARTS - group, group),
                    )
                } else {
                    let pruning = prune.map_or(Pruning::None, |threshold| Pruning::PastOutputs {
                        threshold,
                    });
                    let tree = GroupedHierarchy::new(config.forest.clone(), *percent, how, pruning);
                    (Estimator::GroupTree(Box::new(tree)), Plan::uniform(n, 0, 0))
                }
            }
            Method::Laplace => (Estimator::Plain, Plan::uniform(n, PARTS / h, 0)),
        };
        let variance = 2.0 * scale * scale;
        let window = |w: usize| match estimator {
            Estimator::Groups(_) => WindowSum::Grouped(WindowSumSmoother::new(w as u64)),
            Estimator::Tree(_) | Estimator::GroupTree(_) => {
                WindowSum::ByTick(BlendedSum::by_tick(w))
            }
            _ => WindowSum::Blended(BlendedSum::new(w, variance)),
        };
        let windows = config
            .windows
            .iter()
            .map(|w| (*w, (0..n).map(|_| window(*w)).collect()))
            .collect();
        let alarms = watchers(config, &estimator);
        Self {
            config: config.clone(),
            estimator,
            uniform,
            windows,
            alarms,
            planned: None,
            scale,
            totals: vec![(0.0, 0.0); n],
        }
    }

    /// The plan of the next tick: a function of released lines.
    pub fn plan(&mut self) -> Plan {
        let plan = match &mut self.estimator {
            Estimator::Tree(tree) => tree.plan(),
            Estimator::GroupTree(tree) => tree.plan(),
            _ => self.uniform.clone(),
        };
        self.planned = Some(plan.clone());
        plan
    }

    /// The line of a tick that was measured under the last plan.
    pub fn line(&mut self, tick: i64, ticked: &Ticked) -> Line {
        let plan = self.planned.take().unwrap_or_else(|| self.uniform.clone());
        let n = ticked.counts.len();
        // (published, used for sums and alarms)
        let (estimate, means): (Vec<f64>, Vec<f64>) = match &mut self.estimator {
            Estimator::Filters(banks, kernel) => banks
                .iter_mut()
                .zip(&ticked.counts)
                .map(|(bank, z)| {
                    let e = bank.observe(z.unwrap_or(0), kernel);
                    (e.median as f64, e.mean)
                })
                .unzip(),
            Estimator::Tree(tree) => {
                let each = tree.observe(&plan, &ticked.counts);
                let means: Vec<f64> = each.iter().map(|e| e.mean).collect();
                if matches!(
                    self.config.method,
                    Method::Filter {
                        consistent: true,
                        ..
                    }
                ) {
                    let measured = each.iter().zip(&ticked.counts);
                    let variances: Vec<Option<f64>> =
                        measured.map(|(e, z)| z.map(|_| e.variance)).collect();
                    let sums = consistent(tree.forest(), &means, &variances);
                    (sums.clone(), sums)
                } else {
                    (each.iter().map(|e| e.median as f64).collect(), means)
                }
            }
            Estimator::Groups(smoothers) => smoothers
                .iter_mut()
                .zip(ticked.counts.iter().zip(&ticked.marks))
                .map(|(s, (z, mark))| {
                    let x = s.push(*mark, z.unwrap_or(0) as f64);
                    (x.max(0.0), x)
                })
                .unzip(),
            Estimator::GroupTree(tree) => tree
                .observe(&ticked.counts, &ticked.marks)
                .into_iter()
                .map(|x| (x.max(0.0), x))
                .unzip(),
            Estimator::Plain => ticked
                .counts
                .iter()
                .map(|z| {
                    let x = z.unwrap_or(0) as f64;
                    (x.max(0.0), x)
                })
                .unzip(),
        };
        let mut line = self.empty(tick);
        line.windows = self.window_sums(&plan, ticked, &means);
        for (i, v, watcher) in &mut self.alarms {
            let (score, raised) = match (watcher, &self.estimator) {
                (Watcher::Likely(jump, at_least), Estimator::Filters(banks, _)) => {
                    let likely = banks.get(*v).map_or(0.0, |b| jump.push(b.posterior()));
                    (likely, likely >= *at_least)
                }
                (Watcher::Likely(..), _) => continue,
                (Watcher::Monitor(monitor), _) => {
                    let alarm = monitor.push(means.get(*v).copied().unwrap_or(0.0));
                    (alarm.score, alarm.raised)
                }
            };
            if raised {
                let names = (
                    self.config.alarms[*i].name.clone(),
                    self.config.names[*v].clone(),
                );
                line.alarms.push((names.0, names.1, round(score)));
            }
        }
        debug_assert_eq!(estimate.len(), n);
        line.baselines = Some(self.baselines(&plan, ticked));
        line.noisy.clone_from(&ticked.counts);
        line.marks = letters(&ticked.marks);
        line.estimate = estimate.into_iter().map(round).collect();
        line
    }

    fn window_sums(
        &mut self,
        plan: &Plan,
        ticked: &Ticked,
        means: &[f64],
    ) -> Vec<(usize, Vec<f64>)> {
        let smoothed = matches!(self.estimator, Estimator::GroupTree(_));
        let mut out = Vec::with_capacity(self.windows.len());
        for (w, sums) in &mut self.windows {
            let sum = |v: usize, s: &mut WindowSum| {
                let count = ticked.counts.get(v).copied().flatten();
                let z = count.unwrap_or(0);
                let x = match s {
                    WindowSum::Blended(b) => b.push(z, means[v]),
                    // smoothers have no posterior to weigh against the counts: their values are added up
                    WindowSum::ByTick(b) if smoothed => b.push_measured(None, 0.0, means[v]),
                    WindowSum::ByTick(b) => {
                        let part = f64::from(plan.perturb[v].max(1));
                        let scale = self.scale * f64::from(PARTS) / part;
                        b.push_measured(count, 2.0 * scale * scale, means[v])
                    }
                    WindowSum::Grouped(g) => g.push(ticked.marks[v], z as f64),
                };
                round(x)
            };
            let each = sums
                .iter_mut()
                .enumerate()
                .map(|(v, s)| sum(v, s))
                .collect();
            out.push((*w, each));
        }
        out
    }

    fn baselines(&mut self, plan: &Plan, ticked: &Ticked) -> Baselines {
        let mut out = Baselines::default();
        let mut known = (0, 0.0);
        let each = ticked.counts.iter().zip(&plan.perturb);
        for ((z, parts), (sum, number)) in each.zip(&mut self.totals) {
            if let Some(z) = z {
                *sum += *z as f64;
                *number += 1.0;
            }
            out.zero.push(round((*sum / number.max(1.0)).max(0.0)));
            if known.0 != *parts {
                let scale = self.scale * f64::from(PARTS) / f64::from(*parts);
                known = (*parts, round(mean_noise(scale)));
            }
            out.laplace.push(z.map(|_| known.1));
        }
        out
    }

    /// A line without content, as for withheld ticks.
    pub fn empty(&self, tick: i64) -> Line {
        Line {
            stream: self.config.name.clone(),
            tick,
            from: self.config.begin(tick),
            ..Line::default()
        }
    }
}

/// Mean |x| of discrete Laplace noise: 2r/(1 − r²) for r = e^(−1/scale), which is 1/sinh(1/scale).
fn mean_noise(scale: f64) -> f64 {
    1.0 / (1.0 / scale.max(1e-300)).sinh()
}

fn watchers(config: &Config, estimator: &Estimator) -> Vec<(usize, usize, Watcher)> {
    let mut all = Vec::new();
    for (i, spec) in config.alarms.iter().enumerate() {
        let watch = match spec.kind {
            AlarmKind::Jump => Watch::JumpOrDrop,
            AlarmKind::Low => Watch::LowSignal,
            AlarmKind::High => {
                let sum = |w: &[f64]| w.iter().sum::<f64>();
                Watch::Window(std::sync::Arc::new(sum), Side::AtLeast)
            }
        };
        for v in 0..config.forest.len() {
            if !spec.series.is_empty() && !spec.series.contains(&v) {
                continue;
            }
            let watcher = match (spec.probability, estimator) {
                (Some(at_least), Estimator::Filters(_, kernel)) => {
                    let jump = JumpProbability::new(kernel.cells(), spec.window, spec.threshold);
                    Watcher::Likely(Box::new(jump), at_least)
                }
                _ => Watcher::Monitor(Monitor::new(watch.clone(), spec.window, spec.threshold)),
            };
            all.push((i, v, watcher));
        }
    }
    all
}

/// Three decimals are more than the noise leaves.
fn round(x: f64) -> f64 {
    let r = (x * 1000.0).round() / 1000.0;
    if r.is_finite() { r + 0.0 } else { 0.0 }
}
