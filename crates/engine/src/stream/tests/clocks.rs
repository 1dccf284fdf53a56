//! One event changes one tick, whatever closes ticks, and a restart changes nothing.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::stream::clock::Time;
use crate::stream::config::Input;
use crate::stream::source::Chunk;

type Rows = Vec<(i64, &'static str)>;

/// Rows that come, and what the clock shows afterwards.
type Step = (Rows, i64);

/// A clock that stands still until the stream waits for more: then rows come, and the clock is set. The end of the script,
/// or of the steps before a restart, stops the run.
struct Script {
    steps: Mutex<VecDeque<Step>>,
    left: AtomicI64,
    now: AtomicI64,
    file: PathBuf,
    stop: Arc<AtomicBool>,
}

impl Time for Script {
    fn now(&self) -> i64 {
        self.now.load(Ordering::Relaxed) * 1_000_000
    }

    fn wait(&self) {
        let step = self.steps.lock().unwrap().pop_front();
        let Some((rows, now)) = step.filter(|_| self.left.fetch_sub(1, Ordering::Relaxed) > 0)
        else {
            return self.stop.store(true, Ordering::Relaxed);
        };
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(&self.file)
            .unwrap();
        for (time, state) in rows {
            writeln!(file, "{time},{state}").unwrap();
        }
        self.now.store(now, Ordering::Relaxed);
    }
}

/// Declares a stream of 10 ticks under a clock.
fn declare(folder: &Path, clock: &str, lateness: i64, max_ahead: i64) -> Config {
    let mark = if clock == "marks" {
        "mark = \"tick\"\n"
    } else {
        ""
    };
    config(folder, |t| {
        t.replace("end = 200", "end = 100")
            .replace(
                "\"events\"",
                &format!("\"{clock}\"\nlateness = {lateness}\nmax_ahead = {max_ahead}"),
            )
            .replace("path =", &format!("{mark}follow = true\npath ="))
            + "[method]\nkind = \"laplace\"\n"
    })
}

/// Plays a script, broken off and begun again after every `every` steps, and gives the noisy counts of each tick.
fn play(
    clock: &str,
    [lateness, max_ahead]: [i64; 2],
    steps: &[Step],
    every: usize,
) -> Vec<Vec<Option<i64>>> {
    let folder = tempfile::tempdir().unwrap();
    let config = declare(folder.path(), clock, lateness, max_ahead);
    fs::write(folder.path().join("events.csv"), "time,state\n").unwrap();
    let (mut done, mut now) = (0, 0);
    while done < steps.len() {
        let options = Options {
            stop: Arc::new(AtomicBool::new(false)),
            ..simulated()
        };
        let script = Arc::new(Script {
            steps: Mutex::new(steps[done..].iter().cloned().collect()),
            left: AtomicI64::new(i64::try_from(every).unwrap()),
            now: AtomicI64::new(now),
            file: folder.path().join("events.csv"),
            stop: Arc::clone(&options.stop),
        });
        let options = Options {
            watch: Watch(Arc::clone(&script) as Arc<dyn Time>),
            ..options
        };
        go(&config, &options).unwrap();
        now = script.now.load(Ordering::Relaxed);
        done += every;
    }
    lines(folder.path()).into_iter().map(|l| l.noisy).collect()
}

/// How many ticks differ.
fn apart(a: &[Vec<Option<i64>>], b: &[Vec<Option<i64>>]) -> usize {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

/// Events by the step in which they come; steps end with the clock (and, for marks, with a mark) at 10, 20, …
fn script(clock: &str, events: &[(usize, i64, &'static str)]) -> Vec<Step> {
    (0..13)
        .map(|step| {
            let now = 10 * i64::try_from(step + 1).unwrap();
            let mut rows: Rows = (events.iter().filter(|e| e.0 == step))
                .map(|e| (e.1, e.2))
                .collect();
            if clock == "marks" {
                rows.push((now, "tick"));
            }
            (rows, now)
        })
        .collect()
}

/// A stream in disorder: late events, events ahead, some too far, some bridging the way for others.
fn disorder() -> Vec<(usize, i64, &'static str)> {
    let mut events = vec![
        (0, 95, "b"),
        (0, 35, "b"),
        (0, 65, "a"),
        (0, 99, "a"),
        (1, 3, "a"),
        (1, 7, "b"),
        (4, 12, "a"),
        (5, 500, "a"),
        (5, -4, "a"),
        (6, 55, "nowhere"),
        (7, 70, "b"),
        (9, 69, "b"),
    ];
    for tick in 0..10_usize {
        for _ in 0..3 {
            let time = 10 * i64::try_from(tick).unwrap() + 5;
            events.push((tick, time, "a"));
        }
    }
    events
}

/// Every event of a stream left out, or moved: one tick differs, or two, and all ticks are there.
#[test]
fn one_event_changes_one_tick() {
    for clock in ["wall", "marks"] {
        for (rules, every) in [([0, 100], 99), ([10, 4], 99), ([10, 4], 1)] {
            let events = disorder();
            let all = play(clock, rules, &script(clock, &events), every);
            assert_eq!(all.len(), 10, "{clock}");
            let mut some = 0;
            for i in 0..14 {
                let mut less = events.clone();
                let gone = less.remove(i);
                let without = play(clock, rules, &script(clock, &less), every);
                let differ = apart(&all, &without);
                assert!(differ <= 1, "{clock} {rules:?} {every} {gone:?}: {differ}");
                some += differ;
                less.push((gone.0, (gone.1 + 37).rem_euclid(100), gone.2));
                let moved = play(clock, rules, &script(clock, &less), every);
                assert!(apart(&all, &moved) <= 2, "{clock} {gone:?}");
            }
            assert!(some >= 4, "{clock} {rules:?}");
        }
    }
}

/// A thousand events each of three ticks, and one event with its clock far ahead that comes before them all.
#[test]
fn an_event_far_ahead_decides_about_no_other() {
    let base: Vec<(usize, i64, &str)> = [(0, 5), (1, 15), (2, 25)]
        .into_iter()
        .flat_map(|(step, time)| vec![(step, time, "a"); 1000])
        .collect();
    let with = [vec![(0, 95, "b")], base.clone()].concat();
    for clock in ["wall", "marks"] {
        for lateness in [0, 10] {
            for max_ahead in [3, 100] {
                let play = |events| play(clock, [lateness, max_ahead], &script(clock, events), 99);
                let (without, with) = (play(&base), play(&with));
                let differ: Vec<usize> = (0..10).filter(|t| without[*t] != with[*t]).collect();
                let want: &[usize] = if max_ahead == 3 { &[] } else { &[9] };
                assert_eq!(differ, want, "{clock} {lateness}");
                assert!(with[1][0].unwrap() > 900);
            }
        }
    }
}

/// By the times of events, among streams that come in order to within the lateness: one tick differs.
#[test]
fn in_order_events_may_close_ticks() {
    let times = [
        1, 12, 5, 13, 14, 30, 22, 31, 45, 36, 52, 61, 55, 70, 81, 74, 90, 99,
    ];
    let run = |times: &[i64]| {
        let folder = tempfile::tempdir().unwrap();
        let mut config = declare(folder.path(), "events", 10, 100);
        config.source.follow = false;
        let rows: Rows = times.iter().map(|t| (*t, "a")).collect();
        events(folder.path(), &rows);
        go(&config, &simulated()).unwrap();
        let noisy: Vec<_> = lines(folder.path()).into_iter().map(|l| l.noisy).collect();
        assert_eq!(noisy.len(), 10);
        noisy
    };
    let all = run(&times);
    for i in 0..times.len() {
        let mut less = times.to_vec();
        less.remove(i);
        assert_eq!(apart(&all, &run(&less)), 1, "{}", times[i]);
    }
}

/// Broken off after every step, or every few, and begun again: the same as in one go. Rows too far ahead when they came
/// stay out, though they are read again when the clock shows more.
#[test]
fn restarts_change_nothing() {
    for clock in ["wall", "marks", "events"] {
        for rules in [[0, 100], [10, 4], [25, 4]] {
            let script = script(clock, &disorder());
            let whole = play(clock, rules, &script, 99);
            for every in [1, 2, 5] {
                assert_eq!(
                    play(clock, rules, &script, every),
                    whole,
                    "{clock} {rules:?} {every}"
                );
            }
        }
    }
}

/// What waits in the source when the program starts is read before anything is closed, however late it is by the clock.
#[test]
fn what_waits_is_read_before_ticks_close() {
    let rows: Rows = (0..100).rev().map(|t| (t, "a")).collect();
    let noisy = play("wall", [0, 100], &[(rows, 1_000_000)], 99);
    let empty = play("wall", [0, 100], &[(Vec::new(), 1_000_000)], 99);
    assert_eq!(noisy.len(), 10);
    for (with, without) in noisy.iter().zip(&empty) {
        assert_eq!(with[0].unwrap() - without[0].unwrap(), 10);
    }
}

/// Marks going back change nothing, marks that say no time are bad lines, and neither needs a unit.
/// One mark decides nothing, be it the last time there is.
#[test]
fn a_mark_beyond_all_numbers_is_far() {
    let config = Config::parse(
        &BASE.replace("start = 0", "start = -10"),
        Path::new("s.toml"),
    );
    let tick = config.unwrap().tick_of(i64::MAX).unwrap();
    assert_eq!(tick, i64::MAX / 10);
}

#[test]
fn marks_are_no_events() {
    for format in ["csv", "jsonl"] {
        let folder = tempfile::tempdir().unwrap();
        let rows = [
            ("5", "a", "x"),
            ("15", "tick", ""),
            ("7", "a", "y"),
            ("12", "tick", ""),
            ("noon", "tick", ""),
            ("8", "a", ""),
            ("20", " tick ", ""),
            ("9", "a", "z"),
        ];
        let mut text = if format == "csv" {
            "time,state,who\n".to_owned()
        } else {
            String::new()
        };
        for (time, state, who) in rows {
            text.push_str(&if format == "csv" {
                format!("{time},{state},{who}\n")
            } else {
                let who = if who.is_empty() {
                    String::new()
                } else {
                    format!(", \"who\": \"{who}\"")
                };
                format!("{{\"time\": \"{time}\", \"state\": \"{state}\"{who}}}\n")
            });
        }
        fs::write(folder.path().join("events.csv"), text).unwrap();
        let config = config(folder.path(), |t| {
            t.replace("\"events\"", "\"marks\"\nlateness = 10")
                .replace("epsilon = 1", "epsilon = 1e9")
                .replace(
                    "\"csv\"",
                    &format!("\"{format}\"\nunit = \"who\"\nmark = \"tick\""),
                )
                .replace("end = 200\n", "")
        });
        let ran = go(&config, &simulated()).unwrap();
        // a mark going back, one without a time, an event without a unit, a late one
        assert_eq!((ran.ticks, ran.bad), (1, 4), "{format}");
        assert_eq!(lines(folder.path())[0].noisy, [Some(2), Some(0)]);
        let bad = fs::read_to_string(folder.path().join("s.bad")).unwrap();
        assert!(
            bad.contains("a mark before the last one")
                && bad.contains("no unit")
                && bad.contains("late")
        );
    }
}

/// A row of many events counts as many up to a bound: no row is dropped for one event more.
#[test]
fn counts_are_cut_and_not_dropped() {
    let noisy = |count: &str| {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("time,state,n\n5,a,{count}\n");
        fs::write(folder.path().join("events.csv"), text).unwrap();
        let config = config(folder.path(), |t| {
            t.replace("epsilon = 1", "epsilon = 1e9")
                .replace("\"csv\"", "\"csv\"\ncount = \"n\"")
        });
        let ran = go(&config, &simulated()).unwrap();
        (lines(folder.path())[0].noisy[0].unwrap(), ran.bad)
    };
    let most = 1 << 40;
    for (count, want) in [
        ("1099511627775", (most - 1, 0)),
        ("1099511627776", (most, 0)),
        ("1099511627777", (most, 0)),
        ("9223372036854775808", (most, 0)),
        ("99999999999999999999999999999999999999999999", (most, 0)),
        ("0", (0, 0)),
        ("-1", (0, 1)),
        ("1.5", (0, 1)),
        ("", (0, 1)),
    ] {
        assert_eq!(noisy(count), want, "{count}");
    }
}

/// The receipt and the first line say what closes ticks, and what that assumes.
#[test]
fn the_words_say_what_is_assumed() {
    let folder = tempfile::tempdir().unwrap();
    for (clock, says) in [
        ("wall", "by its own time and arrival"),
        ("marks", "whose state is \"tick\""),
        (
            "events",
            "only among streams whose events come in order to within 3",
        ),
    ] {
        let config = declare(folder.path(), clock, 3, 100);
        let statement = statement(&config);
        assert_eq!(statement["clock"], clock);
        assert!(
            statement["words"].as_str().unwrap().contains(says),
            "{statement}"
        );
        let number = statement["words"]
            .as_str()
            .unwrap()
            .contains("not protected");
        assert_eq!(number, clock == "events", "{statement}");
    }
    events(folder.path(), &busy());
    let config = config(folder.path(), |t| t);
    go(&config, &Options::default()).unwrap();
    let lines = lines(folder.path());
    assert!(
        lines[0]
            .guarantee
            .contains("All ticks are released when the events end")
    );
    assert!(lines[1..].iter().all(|l| l.guarantee.is_empty()));
}

/// Standard input that was read at given times.
struct Piped(Mutex<Option<Receiver<Chunk>>>);

impl Time for Piped {
    fn now(&self) -> i64 {
        0
    }

    fn wait(&self) {}

    fn input(&self) -> Option<Receiver<Chunk>> {
        self.0.lock().unwrap().take()
    }
}

/// What comes from standard input at given times (in quarters of a second), with a grace after the start at 0.
fn piped(chunks: &[(i64, &str)], grace: i64) -> Vec<Vec<Option<i64>>> {
    let folder = tempfile::tempdir().unwrap();
    let mut config = declare(folder.path(), "wall", 0, 5);
    (config.source.input, config.source.follow) = (Input::Standard, false);
    config.source.grace = grace;
    let (sender, receiver) = channel();
    for (at, text) in chunks.iter().filter(|c| !c.1.is_empty()) {
        let chunk = text.as_bytes().to_vec();
        sender.send((at * 250_000, Ok(chunk))).unwrap();
    }
    drop(sender);
    let options = Options {
        watch: Watch(Arc::new(Piped(Mutex::new(Some(receiver))))),
        ..simulated()
    };
    go(&config, &options).unwrap();
    lines(folder.path()).into_iter().map(|l| l.noisy).collect()
}

/// From standard input, too, an event is late by its own arrival: whatever else came, or did not come, in between.
#[test]
fn a_line_of_standard_input_is_late_by_its_own_arrival() {
    let chunks = [
        (0, "time,state\n"),
        (4, "95,b\n5,a\n"),
        // half a line, which is there when its end is
        (39, "6,a\n7,"),
        (40, "a\n12,a\n"),
        (41, "8,a\n13,a\n65,b\n"),
        (44, "9,a\n"),
        (79, "14,a\n"),
        (83, "15,a\n25,a\n70,a\n"),
    ];
    let all = piped(&chunks, 0);
    assert_eq!(all.len(), 10);
    let none = piped(&chunks[..1], 0);
    let exact: Vec<i64> = (0..10)
        .map(|t| all[t][0].unwrap() - none[t][0].unwrap())
        .collect();
    // 95 is more than five ticks ahead; 7, 8 and 9 came at 10 or later, and 15 after 20
    assert_eq!(exact, [2, 3, 1, 0, 0, 0, 0, 1, 0, 0]);
    for (at, gone) in [
        (1, "95,b\n"),
        (1, "\n5,a"),
        (2, "6,a\n"),
        (3, "12,a\n"),
        (4, "8,a\n"),
        (4, "65,b\n"),
        (5, "9,a\n"),
        (6, "14,a\n"),
        (7, "15,a\n"),
    ] {
        let mut less = chunks;
        let text = less[at].1.replacen(gone, "", 1);
        less[at].1 = &text;
        assert!(apart(&all, &piped(&less, 0)) <= 1, "{gone}");
    }
    // for eleven seconds after the start nothing is closed
    let patient = piped(&chunks, 11);
    let exact: Vec<i64> = (0..10)
        .map(|t| patient[t][0].unwrap() - none[t][0].unwrap())
        .collect();
    assert_eq!(exact, [4, 3, 1, 0, 0, 0, 0, 1, 0, 0]);
}
