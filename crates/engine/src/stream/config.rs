//! The declaration of a stream: `stream.toml`.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use reticent_accounting::{Rational, Relation, format_rational};
use reticent_mechanisms::stream::{Forest, Split};
use sha2::{Digest, Sha256};

use super::clock::{CHOICES, Clock};
use crate::document::{self, Item, Section};
use crate::outcome::Refusal;

/// Where events come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Standard input.
    Standard,
    /// One file, or all files of a folder in name order.
    Path(PathBuf),
}

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// With a header.
    Csv,
    /// One object per line.
    Jsonl,
}

/// `[source]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Where.
    pub input: Input,
    /// How.
    pub format: Format,
    /// Wait for more at the end of the files.
    pub follow: bool,
    /// Field with the event's time, a whole number.
    pub time: String,
    /// Field with its state.
    pub state: String,
    /// Field that names the person (or other unit) it belongs to.
    pub unit: Option<String>,
    /// Field with a number of events of different units.
    pub count: Option<String>,
    /// State of the rows that say what time it is, under `clock = "marks"`.
    pub mark: Option<String>,
    /// How long after a start no tick is closed by the wall clock, so that standard input can be sent again, in units of
    /// the time field.
    pub grace: i64,
}

/// `[ticks]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// Length, in units of the time field.
    pub width: i64,
    /// Where tick 0 begins.
    pub start: i64,
    /// Where the stream ends, if it does.
    pub end: Option<i64>,
    /// What closes ticks.
    pub clock: Clock,
    /// A tick closes once the clock is this much past its end.
    pub lateness: i64,
    /// Events more than this many ticks ahead of the clock are bad lines.
    pub max_ahead: i64,
}

/// `[cap]`: ticks per day that are released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayCap {
    /// A day, in units of the time field.
    pub day: i64,
    /// Ticks of a day that are released; the rest of it is withheld.
    pub ticks: i64,
}

/// How counts are estimated.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// Bayesian filters on full-budget counts; on a hierarchy with past-output pruning.
    Filter {
        /// Ticks after which counts are expected to repeat.
        season: Option<usize>,
        /// Whether estimates of groups are made the sums of their members.
        consistent: bool,
    },
    /// Perturb, group, smooth.
    Pegasus {
        /// θ.
        threshold: i64,
        /// The grouper's share of the budget, in per cent.
        percent: u32,
        /// How it is divided.
        split: Split,
        /// How groups are smoothed.
        smoother: Smoothing,
        /// β of pruning by past outputs, on a hierarchy.
        prune: Option<f64>,
    },
    /// Noisy counts as they are.
    Laplace,
}

/// Names of smoothers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Smoothing {
    /// (5.6)
    Median,
    /// (5.5)
    Average,
    /// (5.7), shrinking to the mean.
    JamesStein,
}

/// `[[alarm]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlarmSpec {
    /// Its name in releases.
    pub name: String,
    /// What is watched.
    pub kind: AlarmKind,
    /// Window.
    pub window: usize,
    /// δ.
    pub threshold: f64,
    /// Raise a jump when its probability is at least this, instead of by the difference of estimates.
    pub probability: Option<f64>,
    /// Which series; all if empty.
    pub series: Vec<usize>,
}

/// What an alarm watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlarmKind {
    /// |now − w ticks ago| ≥ δ.
    Jump,
    /// Window sum < δ.
    Low,
    /// Window sum ≥ δ.
    High,
}

/// `[output]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Releases, one JSON object per line; standard output if absent.
    pub releases: Option<PathBuf>,
    /// The stream's own database (confidential, mode 0600).
    pub state: PathBuf,
    /// The ledger.
    pub ledger: PathBuf,
    /// Lines that could not be used (confidential, mode 0600).
    pub dead_letters: PathBuf,
    /// Port of the live page on the loopback address; 0 lets the system choose.
    pub page: Option<u16>,
}

/// A declared stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where it was read.
    pub file: PathBuf,
    /// Its name.
    pub name: String,
    /// The neighbour relation.
    pub relation: Relation,
    /// ε of a person's events in one tick.
    pub epsilon: Rational,
    /// The ledger's cap.
    pub cap: Rational,
    /// Most events of one person in one tick.
    pub per_unit: u32,
    /// Events.
    pub source: Source,
    /// Ticks.
    pub ticks: Ticks,
    /// The daily cap.
    pub day: Option<DayCap>,
    /// Names of the series, groups included, parents first.
    pub names: Vec<String>,
    /// Node of a state.
    pub states: HashMap<String, u32>,
    /// The series as trees.
    pub forest: Forest,
    /// How counts are estimated.
    pub method: Method,
    /// Window lengths.
    pub windows: Vec<usize>,
    /// Alarms.
    pub alarms: Vec<AlarmSpec>,
    /// Outputs.
    pub output: Output,
    /// Digest of everything that is declared.
    pub digest: [u8; 32],
}

impl Config {
    /// Reads a declaration.
    pub fn load(file: &Path) -> Result<Self, Refusal> {
        let text = document::load(file)?;
        Self::parse(&text, file)
    }

    /// Reads a declaration from text; paths are relative to the folder of `file`.
    pub fn parse(text: &str, file: &Path) -> Result<Self, Refusal> {
        document::read(text, file, |top| read(top, file))
    }

    /// The tick of a time, if it is not before the start.
    pub fn tick_of(&self, time: i64) -> Option<i64> {
        // a time that is further from the start than numbers reach is as far as they reach
        let since = time.saturating_sub(self.ticks.start);
        (time >= self.ticks.start).then(|| since / self.ticks.width)
    }

    /// Where a tick begins.
    pub fn begin(&self, tick: i64) -> i64 {
        self.ticks
            .start
            .saturating_add(tick.saturating_mul(self.ticks.width))
    }

    /// Number of ticks of a stream with an end.
    pub fn last(&self) -> Option<i64> {
        let end = self.ticks.end?;
        Some(
            end.saturating_sub(self.ticks.start)
                .saturating_add(self.ticks.width - 1)
                / self.ticks.width,
        )
    }

    /// Whether a tick is withheld under the daily cap: decided by the calendar alone. A tick that reaches into a day from
    /// the one before can hold events of both, so it counts for both, withheld or not.
    pub fn withheld(&self, tick: i64) -> bool {
        let Some(cap) = &self.day else { return false };
        let day = self.begin(tick).div_euclid(cap.day);
        let first = day.saturating_mul(cap.day).saturating_sub(self.ticks.start);
        // ticks of this day that begin before this one
        let first = first.max(0);
        let reaching = i64::from(first % self.ticks.width != 0);
        let earlier = first / self.ticks.width + reaching;
        tick - earlier >= cap.ticks - reaching
    }

    /// Which series is meant by a name.
    pub fn series(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|n| n == name)
    }
}

fn read(top: &mut Section<'_>, file: &Path) -> Result<Config, Refusal> {
    let base = file.parent().unwrap_or(Path::new(""));
    let format = top
        .need("format", "Write format = 1.")?
        .integer(1, 1, "Write format = 1.")?;
    debug_assert_eq!(format, 1);
    let name = top
        .need("name", "Write name = \"…\".")?
        .name("A short text.")?;
    let relation = match top.get("neighbours") {
        None => Relation::AddRemove,
        Some(item) => item.word(&[
            ("add_remove", Relation::AddRemove),
            ("replace_one", Relation::ReplaceOne),
        ])?,
    };
    let fix = "A number above 0, such as 0.1.";
    let item = top.need("epsilon", fix)?;
    let epsilon = item.rational(fix)?;
    if epsilon <= Rational::ZERO {
        return Err(item.refuse("epsilon must be above 0").accepting(fix));
    }
    let cap = match top.get("cap") {
        None => epsilon.clone(),
        Some(item) => item.rational(fix)?,
    };
    let per_unit = match top.get("per_unit") {
        None => 1,
        Some(item) => item.count(1, 1000, "Events of one person in one tick, 1 to 1000.")?,
    };
    let fix = "Add a table [source] with path, format, time and state.";
    let (mut source, grace) = read_source(&mut top.need("source", fix)?.section(fix)?, base)?;
    if per_unit > 1 && source.unit.is_none() {
        return Err(top
            .refuse("per_unit above 1 needs source.unit: the field that names the person")
            .accepting("Name the field, or leave per_unit out."));
    }
    let fix = "Add a table [ticks] with width, start and clock.";
    let ticks = read_ticks(&mut top.need("ticks", fix)?.section(fix)?)?;
    let day = read_day(top)?;
    let (names, states, forest) = read_series(top)?;
    source.grace = check_clock(top, &ticks, &source, grace, &names)?;
    let method = match top.get("method") {
        None => Method::Filter {
            season: None,
            consistent: false,
        },
        Some(item) => read_method(&mut item.section("A table with kind.")?)?,
    };
    if forest.height() == 1
        && matches!(
            method,
            Method::Filter {
                consistent: true,
                ..
            }
        )
    {
        return Err(top
            .refuse(
                "method.consistent is for a hierarchy: there are no groups to be sums of others",
            )
            .accepting("Leave it out, or declare groups."));
    }
    let windows = read_windows(top)?;
    let alarms = read_alarms(top, &names, &method, &forest)?;
    let output = match top.get("output") {
        None => Output {
            releases: None,
            state: base.join(format!("{name}.state")),
            ledger: base.join(format!("{name}.ledger")),
            dead_letters: base.join(format!("{name}.bad")),
            page: None,
        },
        Some(item) => read_output(&mut item.section("A table.")?, base, &name)?,
    };
    top.finish()?;
    let mut config = Config {
        file: file.to_owned(),
        name,
        relation,
        epsilon,
        cap,
        per_unit,
        source,
        ticks,
        day,
        names,
        states,
        forest,
        method,
        windows,
        alarms,
        output,
        digest: [0; 32],
    };
    config.digest = digest(&config);
    Ok(config)
}

fn read_day(top: &mut Section<'_>) -> Result<Option<DayCap>, Refusal> {
    let Some(item) = top.get("day_cap") else {
        return Ok(None);
    };
    let mut section = item.section("A table with day and ticks.")?;
    let fix = "The length of a day in time units.";
    let day = section.need("day", fix)?.integer(1, 1 << 40, fix)?;
    let fix = "How many ticks of a day are released.";
    let ticks = section.need("ticks", fix)?.integer(0, 1 << 40, fix)?;
    section.finish()?;
    Ok(Some(DayCap { day, ticks }))
}

fn read_windows(top: &mut Section<'_>) -> Result<Vec<usize>, Refusal> {
    match top.get("windows") {
        None => Ok(Vec::new()),
        Some(item) => item
            .list("A list such as [12, 288].")?
            .iter()
            .map(|w| Ok(w.count(1, 1 << 20, "1 to 1048576 ticks.")? as usize))
            .collect(),
    }
}

/// What makes it another stream: everything that changes what is released or what it means, not where it is read.
fn digest(config: &Config) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"reticent stream\n");
    let states: BTreeMap<&String, &u32> = config.states.iter().collect();
    let text = format!(
        "{:?}\n{:?}\n{}\n{}\n{:?} {:?} {:?} {:?} {:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n",
        config.name,
        config.relation,
        format_rational(&config.epsilon),
        config.per_unit,
        config.source.time,
        config.source.state,
        config.source.unit,
        config.source.count,
        config.source.mark,
        config.ticks,
        config.day,
        config.names,
        states,
        config.forest,
        config.method,
    );
    hash.update(text);
    if config.ticks.clock == Clock::Events {
        // what is said of the number of released ticks depends on it
        hash.update([u8::from(config.source.follow)]);
    }
    hash.finalize().into()
}

/// The source, and its `grace` as declared.
fn read_source(section: &mut Section<'_>, base: &Path) -> Result<(Source, Option<i64>), Refusal> {
    let path = section.need("path", "A file, a folder, or \"-\" for standard input.")?;
    let path = path.text("A file, a folder, or \"-\" for standard input.")?;
    let input = match path {
        "-" => Input::Standard,
        path => Input::Path(base.join(path)),
    };
    let format = section
        .need("format", "Write \"csv\" or \"jsonl\".")?
        .word(&[("csv", Format::Csv), ("jsonl", Format::Jsonl)])?;
    let follow = match section.get("follow") {
        None => false,
        Some(item) => item.truth()?,
    };
    let mut field = |key: &'static str| -> Result<Option<String>, Refusal> {
        section
            .get(key)
            .map(|i| i.name("The name of a field."))
            .transpose()
    };
    let time = field("time")?.unwrap_or_else(|| "time".to_owned());
    let state = field("state")?.unwrap_or_else(|| "state".to_owned());
    let (unit, count) = (field("unit")?, field("count")?);
    let mark = match section.get("mark") {
        None => None,
        Some(item) => Some(item.name("The state of marks, such as \"tick\".")?),
    };
    if mark.as_ref().is_some_and(|m| m.is_empty() || m != m.trim()) {
        return Err(section
            .refuse(
                "the state of marks is empty or has spaces around it; states are read without them",
            )
            .accepting("A name such as \"tick\"."));
    }
    let fix = "A whole number, in units of the time field.";
    let grace = match section.get("grace") {
        None => None,
        Some(item) => Some(item.integer(0, MOST, fix)?),
    };
    if unit.is_some() && count.is_some() {
        return Err(section
            .refuse("a count of events cannot name a unit")
            .accepting("Leave out `count` or `unit`."));
    }
    section.finish()?;
    let source = Source {
        input,
        format,
        follow,
        time,
        state,
        unit,
        count,
        mark,
        grace: 0,
    };
    Ok((source, grace))
}

/// Times and lengths are at most this.
const MOST: i64 = 1 << 52;

/// What the clock needs of the source, and what belongs to another clock. Gives the grace of standard input.
fn check_clock(
    top: &Section<'_>,
    ticks: &Ticks,
    source: &Source,
    grace: Option<i64>,
    names: &[String],
) -> Result<i64, Refusal> {
    match (&source.mark, ticks.clock) {
        (None, Clock::Marks) => {
            return Err(top
                .refuse("clock = \"marks\" needs source.mark: the state of the rows that say what time it is")
                .accepting("Write mark = \"tick\" under [source], or choose another clock."));
        }
        (Some(_), Clock::Wall { .. } | Clock::Events) => {
            return Err(top
                .refuse("source.mark belongs to clock = \"marks\"")
                .accepting("Leave `mark` out, or choose clock = \"marks\"."));
        }
        (Some(mark), Clock::Marks) if names.contains(mark) => {
            return Err(top
                .refuse(format!(
                    "source.mark is {mark}, which is also a state or group: events would be taken for marks"
                ))
                .accepting("Give marks a state of their own."));
        }
        _ => {}
    }
    match ticks.clock {
        Clock::Wall { per_second } if source.input == Input::Standard => {
            Ok(grace.unwrap_or(per_second * 10))
        }
        _ if grace.is_some() => Err(top
            .refuse("source.grace is for standard input under clock = \"wall\"")
            .accepting(
                "Leave it out: files are read to their present end, however long it takes.",
            )),
        _ => Ok(0),
    }
}

/// `clock` and `time_unit`.
fn read_clock(section: &mut Section<'_>) -> Result<Clock, Refusal> {
    let kind = match section.get("clock") {
        None => {
            return Err(section
                .refuse("ticks.clock is missing: say what closes a tick")
                .accepting(CHOICES));
        }
        Some(item) => {
            let words = [
                ("wall", Clock::Wall { per_second: 1 }),
                ("marks", Clock::Marks),
                ("events", Clock::Events),
            ];
            if item
                .text(CHOICES)
                .is_ok_and(|t| !words.iter().any(|w| w.0 == t))
            {
                return Err(item.refuse("no such clock").accepting(CHOICES));
            }
            item.word(&words)?
        }
    };
    let unit = match section.get("time_unit") {
        None => None,
        Some(item) => Some(item.word(&[
            ("seconds", 1),
            ("milliseconds", 1000),
            ("microseconds", 1_000_000),
        ])?),
    };
    match (kind, unit) {
        (Clock::Wall { .. }, Some(per_second)) => Ok(Clock::Wall { per_second }),
        (_, Some(_)) => Err(section
            .refuse("ticks.time_unit is for clock = \"wall\": it says how times compare with this machine's clock")
            .accepting("Leave it out.")),
        (kind, None) => Ok(kind),
    }
}

fn read_ticks(section: &mut Section<'_>) -> Result<Ticks, Refusal> {
    let fix = "A whole number, in units of the time field.";
    let width = section.need("width", fix)?.integer(1, MOST, fix)?;
    let start = section.need("start", fix)?.integer(-MOST, MOST, fix)?;
    let end = match section.get("end") {
        None => None,
        Some(item) => Some(item.integer(start, MOST, fix)?),
    };
    let clock = read_clock(section)?;
    let mut or = |key, default| -> Result<i64, Refusal> {
        section
            .get(key)
            .map_or(Ok(default), |i: Item<'_>| i.integer(0, MOST, fix))
    };
    let (lateness, max_ahead) = (or("lateness", 0)?, or("max_ahead", 100_000)?);
    section.finish()?;
    Ok(Ticks {
        width,
        start,
        end,
        clock,
        lateness,
        max_ahead,
    })
}

type Series = (Vec<String>, HashMap<String, u32>, Forest);

/// `states = [..]`, and `[groups]` that name their members: states or other groups.
fn read_series(top: &mut Section<'_>) -> Result<Series, Refusal> {
    let fix = "List the public names of all states: states = [\"a\", \"b\"].";
    let item = top.need("states", fix)?;
    let states = item
        .list(fix)?
        .iter()
        .map(|s| s.name("A name."))
        .collect::<Result<Vec<String>, Refusal>>()?;
    if let Some(odd) = states.iter().find(|s| s.trim() != s.as_str()) {
        return Err(item
            .refuse(format!("the state {odd:?} begins or ends with a blank, which is cut off where events are read"))
            .accepting("Write it without."));
    }
    let line = item.refuse("the states must be different, and at least one");
    let mut seen = std::collections::HashSet::new();
    if states.is_empty() || !states.iter().all(|s| seen.insert(s.clone())) {
        return Err(line.accepting(fix));
    }
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    if let Some(item) = top.get("groups") {
        let mut section = item.section("A table: group = [members].")?;
        for (name, members) in section.all() {
            let members = members
                .list("A list of states or groups.")?
                .iter()
                .map(|m| m.name("A name."))
                .collect::<Result<Vec<String>, Refusal>>()?;
            groups.push((name, members));
        }
    }
    let binary = match top.get("binary_groups") {
        None => false,
        Some(item) => item.truth()?,
    };
    if binary {
        if !groups.is_empty() {
            return Err(top.refuse("binary_groups and groups exclude each other"));
        }
        groups = binary_groups(&states);
    }
    let all: Vec<&String> = groups.iter().map(|g| &g.0).chain(&states).collect();
    let index: HashMap<&String, usize> = all.iter().enumerate().map(|(i, n)| (*n, i)).collect();
    if index.len() != all.len() {
        return Err(top.refuse("a group has the name of a state or of another group"));
    }
    let mut parent: Vec<Option<usize>> = vec![None; all.len()];
    for (at, (name, members)) in groups.iter().enumerate() {
        for member in members {
            let Some(i) = index.get(member) else {
                return Err(top.refuse(format!(
                    "groups.{name} names {member}, which is no state and no group"
                )));
            };
            if parent[*i].replace(at).is_some() {
                return Err(top.refuse(format!(
                    "{member} is in two groups; groups must be nested or apart"
                )));
            }
        }
    }
    // parents first: by depth; a cycle has no depth
    let depth = |mut i: usize| {
        let mut d = 0;
        while let Some(p) = parent[i] {
            d += 1;
            i = p;
            if d > all.len() {
                return None;
            }
        }
        Some(d)
    };
    let mut order = (0..all.len())
        .map(|i| depth(i).map(|d| (d, i)))
        .collect::<Option<Vec<(usize, usize)>>>()
        .ok_or_else(|| top.refuse("a group contains itself"))?;
    order.sort_unstable();
    let mut node = vec![0_u32; all.len()];
    for (at, (_, i)) in order.iter().enumerate() {
        node[*i] = u32::try_from(at).unwrap_or(u32::MAX);
    }
    let parents = order
        .iter()
        .map(|(_, i)| parent[*i].map(|p| node[p]))
        .collect();
    let forest = Forest::new(parents).map_err(|e| top.refuse(e.to_string()))?;
    let names = order.iter().map(|(_, i)| all[*i].clone()).collect();
    let states = states.iter().map(|s| (s.clone(), node[index[s]])).collect();
    Ok((names, states, forest))
}

/// A binary tree over the states in order: group names are the positions they span.
fn binary_groups(states: &[String]) -> Vec<(String, Vec<String>)> {
    let mut groups = Vec::new();
    let mut open = vec![(0, states.len())];
    let name = |a: usize, b: usize| {
        if b - a == 1 {
            states[a].clone()
        } else {
            format!("{}..{}", a + 1, b)
        }
    };
    while let Some((a, b)) = open.pop() {
        if b - a < 2 {
            continue;
        }
        let middle = a + (b - a).div_ceil(2);
        groups.push((name(a, b), vec![name(a, middle), name(middle, b)]));
        open.extend([(a, middle), (middle, b)]);
    }
    groups
}

fn read_method(section: &mut Section<'_>) -> Result<Method, Refusal> {
    let kind = section
        .need("kind", "\"filter\", \"pegasus\" or \"laplace\".")?
        .word(&[("filter", 0), ("pegasus", 1), ("laplace", 2)])?;
    let method = match kind {
        0 => Method::Filter {
            season: section
                .get("season")
                .map(|i| i.count(2, 1 << 20, "Ticks of a season, 2 or more."))
                .transpose()?
                .map(|s| s as usize),
            consistent: match section.get("consistent") {
                None => false,
                Some(item) => item.truth()?,
            },
        },
        1 => Method::Pegasus {
            threshold: match section.get("threshold") {
                None => {
                    return Err(section
                        .refuse("pegasus needs threshold")
                        .accepting("θ, a whole number; the thesis uses 5/(0.2 ε)."));
                }
                Some(i) => i.integer(0, 1 << 40, "θ, a whole number.")?,
            },
            percent: section
                .get("group_percent")
                .map_or(Ok(20), |i| i.count(1, 99, "1 to 99."))?,
            split: section.get("split").map_or(Ok(Split::Optimal), |i| {
                i.word(&[("printed", Split::Printed), ("optimal", Split::Optimal)])
            })?,
            smoother: section.get("smoother").map_or(Ok(Smoothing::Median), |i| {
                i.word(&[
                    ("median", Smoothing::Median),
                    ("average", Smoothing::Average),
                    ("james_stein", Smoothing::JamesStein),
                ])
            })?,
            prune: section
                .get("prune")
                .map(|i| i.real("β, in counts."))
                .transpose()?,
        },
        _ => Method::Laplace,
    };
    section.finish()?;
    Ok(method)
}

/// All `[[alarm]]` tables.
fn read_alarms(
    top: &mut Section<'_>,
    names: &[String],
    method: &Method,
    forest: &Forest,
) -> Result<Vec<AlarmSpec>, Refusal> {
    let mut alarms = Vec::new();
    if let Some(item) = top.get("alarm") {
        for (i, item) in item.list("[[alarm]] tables.")?.iter().enumerate() {
            let alarm = read_alarm(item, i, names)?;
            let filters = matches!(method, Method::Filter { .. }) && forest.height() == 1;
            if alarm.probability.is_some() && !(filters && alarm.kind == AlarmKind::Jump) {
                return Err(item
                    .refuse("an alarm by probability is a jump, and needs filters on series without a hierarchy")
                    .accepting("Leave `probability` out."));
            }
            alarms.push(alarm);
        }
    }
    Ok(alarms)
}

fn read_alarm(item: &Item<'_>, i: usize, names: &[String]) -> Result<AlarmSpec, Refusal> {
    let mut section = item.section("A table with kind, window and threshold.")?;
    let name = section
        .get("name")
        .map_or_else(|| Ok(format!("alarm{}", i + 1)), |n| n.name("A name."))?;
    let kind = section
        .need("kind", "\"jump\", \"low\" or \"high\".")?
        .word(&[
            ("jump", AlarmKind::Jump),
            ("low", AlarmKind::Low),
            ("high", AlarmKind::High),
        ])?;
    let window = section
        .need("window", "Ticks.")?
        .count(1, 1 << 20, "1 to 1048576 ticks.")? as usize;
    let threshold = section.need("threshold", "A count.")?.real("A count.")?;
    let probability = match section.get("probability") {
        None => None,
        Some(item) => {
            let fix = "A number above 0 and below 1, such as 0.5.";
            let p = item.real(fix)?;
            if !(p > 0.0 && p < 1.0) {
                return Err(item
                    .refuse("a probability is between 0 and 1")
                    .accepting(fix));
            }
            Some(p)
        }
    };
    let mut series = Vec::new();
    if let Some(item) = section.get("series") {
        for name in item.list("A list of states or groups.")? {
            let text = name.name("A name.")?;
            let at = names.iter().position(|n| *n == text);
            series.push(at.ok_or_else(|| name.refuse("no state and no group has this name"))?);
        }
    }
    section.finish()?;
    Ok(AlarmSpec {
        name,
        kind,
        window,
        threshold,
        probability,
        series,
    })
}

fn read_output(section: &mut Section<'_>, base: &Path, name: &str) -> Result<Output, Refusal> {
    let mut path = |key: &'static str| -> Result<Option<PathBuf>, Refusal> {
        section
            .get(key)
            .map(|i| i.text("A path.").map(|p| base.join(p)))
            .transpose()
    };
    let or = |p: Option<PathBuf>, ending: &str| {
        p.unwrap_or_else(|| base.join(format!("{name}.{ending}")))
    };
    let releases = path("releases")?;
    let state = or(path("state")?, "state");
    let ledger = or(path("ledger")?, "ledger");
    let dead_letters = or(path("dead_letters")?, "bad");
    let page = section
        .get("page")
        .map(|i| i.count(0, 65535, "A port, 0 to 65535."))
        .transpose()?
        .and_then(|p| u16::try_from(p).ok());
    section.finish()?;
    Ok(Output {
        releases,
        state,
        ledger,
        dead_letters,
        page,
    })
}
