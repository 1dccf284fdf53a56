use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use reticent_accounting::{Rational, Relation};
use reticent_ledger::Ledger;

use super::analysis::Line;
use super::clock::Watch;
use super::config::Config;
use super::identity::Files;
use super::line::Row;
use super::run::{Options, Running, run};
use super::source::{Place, Read1, Reader};
use super::statement::statement;
use super::store::{Opening, Store};
use crate::failure::Failure;

mod clocks;
mod files;

const BASE: &str = r#"
format = 1
name = "s"
epsilon = 1
states = ["a", "b"]
[source]
path = "events.csv"
format = "csv"
[ticks]
width = 10
start = 0
end = 200
clock = "events"
[output]
releases = "out.jsonl"
"#;

fn config(folder: &Path, change: impl Fn(String) -> String) -> Config {
    Config::parse(&change(BASE.to_owned()), &folder.join("stream.toml")).unwrap()
}

fn events(folder: &Path, rows: &[(i64, &str)]) {
    let mut text = "time,state\n".to_owned();
    for (time, state) in rows {
        text.push_str(&format!("{time},{state}\n"));
    }
    fs::write(folder.join("events.csv"), text).unwrap();
}

fn lines(folder: &Path) -> Vec<Line> {
    fs::read_to_string(folder.join("out.jsonl"))
        .unwrap_or_default()
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

fn simulated() -> Options {
    Options {
        simulate: Some(7),
        ..Options::default()
    }
}

fn go(config: &Config, options: &Options) -> Result<Running, Failure> {
    run(config, options, &mut |_| {})
}

/// Twenty ticks of a busy and a quiet series, slightly out of order.
fn busy() -> Vec<(i64, &'static str)> {
    let mut rows: Vec<(i64, &str)> = (0..190)
        .map(|t| (t, if t % 7 == 0 { "b" } else { "a" }))
        .collect();
    rows.swap(33, 36);
    rows.swap(70, 72);
    rows
}

#[test]
fn every_tick_is_released_once_and_empty_ones_too() {
    let folder = tempfile::tempdir().unwrap();
    events(folder.path(), &[(5, "a"), (31, "b"), (32, "b")]);
    let config = config(folder.path(), |t| t.replace("epsilon = 1", "epsilon = 1e9"));
    let ran = go(&config, &simulated()).unwrap();
    assert_eq!((ran.ticks, ran.new, ran.bad), (20, 20, 0));
    let lines = lines(folder.path());
    for (t, line) in lines.iter().enumerate() {
        let want = match t {
            0 => [1, 0],
            3 => [0, 2],
            _ => [0, 0],
        };
        assert_eq!(line.noisy, want.map(Some), "{t}");
        assert!(line.simulated && line.from == 10 * i64::try_from(t).unwrap());
    }
    assert_eq!(lines.len(), 20);
    // again: nothing new, nothing twice
    assert_eq!(go(&config, &simulated()).unwrap().new, 0);
    assert_eq!(self::lines(folder.path()).len(), 20);
}

/// Interrupted after every few lines, with the files growing in between: the same lines as in one go.
#[test]
fn interrupted_runs_add_up_to_an_uninterrupted_one() {
    for method in [
        "kind = \"filter\"",
        "kind = \"pegasus\"\nthreshold = 3",
        "kind = \"laplace\"",
    ] {
        let change = |t: String| format!("{t}\n[method]\n{method}\n");
        let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let rows = busy();
        events(whole.path(), &rows);
        go(&config(whole.path(), change), &simulated()).unwrap();
        for upto in (0..=rows.len()).step_by(13) {
            events(parts.path(), &rows[..upto]);
            // not told where the stream ends, it waits for more
            let mut config = config(parts.path(), change);
            config.ticks.end = None;
            go(&config, &simulated()).unwrap();
            // a crash between commit and publishing: the last line is torn
            let path = parts.path().join("out.jsonl");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, &text[..text.len().saturating_sub(9)]).unwrap();
        }
        events(parts.path(), &rows);
        go(&config(parts.path(), change), &simulated()).unwrap();
        assert_eq!(lines(whole.path()), lines(parts.path()), "{method}");
    }
}

/// An emptied state file, one without its write-ahead log, an older copy, and one whose head file is gone: refused, with and
/// without a file of releases. So is a file of releases that was changed.
#[test]
fn older_states_release_nothing() {
    for releases in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        events(folder.path(), &busy()[..90]);
        let config = config(folder.path(), |t| {
            let t = t
                .replace("epsilon = 1", "epsilon = 1\ncap = 5")
                .replace("end = 200\n", "");
            if releases {
                t
            } else {
                t.replace("releases = \"out.jsonl\"\n", "")
            }
        });
        let state = &config.output.state;
        let head = folder.path().join("s.state.head");
        let real = Options::default();
        let ran = go(&config, &real).unwrap();
        assert!(ran.new > 3);
        let (old, old_head) = (fs::read(state).unwrap(), fs::read(&head).unwrap());
        events(folder.path(), &busy()[..120]);
        assert!(go(&config, &real).unwrap().new > 0);
        let (new, new_head) = (fs::read(state).unwrap(), fs::read(&head).unwrap());
        // under another ledger nothing is paid, and nothing is forgotten
        let mut other = config.clone();
        other.output.ledger = folder.path().join("other.ledger");
        assert!(matches!(go(&other, &real), Err(Failure::Refusal(_))));
        assert_eq!(fs::read(&head).unwrap(), new_head);
        let refused = |bytes: &[u8]| {
            fs::write(state, bytes).unwrap();
            assert!(matches!(go(&config, &real), Err(Failure::Refusal(_))));
        };
        refused(b"");
        refused(&old);
        fs::remove_file(&head).unwrap();
        fs::write(state, &new).unwrap();
        assert!(go(&config, &real).is_err());
        // behind by a crash between commit and mark: accepted, and mended at once, with or without a new tick
        fs::write(&head, &old_head).unwrap();
        assert_eq!(go(&config, &real).unwrap().new, 0);
        assert_eq!(fs::read(&head).unwrap(), new_head);
        fs::write(&head, &old_head).unwrap();
        events(folder.path(), &busy()[..150]);
        assert!(go(&config, &real).unwrap().new > 0);
        assert_ne!(fs::read(&head).unwrap(), new_head);
        if releases {
            let out = folder.path().join("out.jsonl");
            let text = fs::read_to_string(&out).unwrap();
            let changed = text.replacen("\"noisy\":[", "\"noisy\":[7", 1);
            assert_ne!(changed, text);
            for foreign in [changed, text.clone() + "{\"key\": 1}"] {
                fs::write(&out, &foreign).unwrap();
                assert!(matches!(go(&config, &real), Err(Failure::Refusal(_))));
                assert_eq!(fs::read_to_string(&out).unwrap(), foreign);
            }
            fs::write(&out, &text[..text.len() - 9]).unwrap();
            go(&config, &real).unwrap();
            assert_eq!(fs::read_to_string(&out).unwrap(), text);
            for text in ["reticent stream head 1\n-9223372036854775808 00\n", "x"] {
                fs::write(&head, text).unwrap();
                assert!(go(&config, &real).is_err());
            }
        }
    }
}

/// What would be read as events, or twice, is refused before anything is paid, whatever it is called.
#[test]
fn outputs_are_no_events() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("in")).unwrap();
    fs::write(folder.path().join("in/1.csv"), "time,state\n1,a\n").unwrap();
    events(folder.path(), &[(1, "a")]);
    for (from, to, say) in [
        ("path = \"events.csv\"", "path = \"in\"", "in/s.bad"),
        (
            "releases = \"out.jsonl\"",
            "releases = \"in/../events.csv\"",
            "the source",
        ),
        (
            "releases = \"out.jsonl\"",
            "releases = \"in/../s.bad\"",
            "the same file",
        ),
        (
            "path = \"events.csv\"",
            "path = \"gone.csv\"",
            "cannot be read",
        ),
        (
            "releases = \"out.jsonl\"",
            "releases = \"s.state-wal\"",
            "beside itself",
        ),
        (
            "releases = \"out.jsonl\"",
            "releases = \"s.ledger.head\"",
            "beside itself",
        ),
    ] {
        let bad = if to == "path = \"in\"" {
            "dead_letters = \"in/s.bad\"\n"
        } else {
            ""
        };
        let text = BASE.replace(from, to) + bad;
        let config = Config::parse(&text, &folder.path().join("stream.toml")).unwrap();
        let message = go(&config, &Options::default()).unwrap_err().to_string();
        assert!(message.contains(say), "{message}");
        assert!(!config.output.ledger.exists(), "{to}");
    }
}

/// A file that is shorter than what an earlier run read of it, though not than where it has to read on.
#[test]
fn a_file_cut_between_runs_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path(), |t| t);
    config.ticks.end = None;
    events(folder.path(), &busy()[..95]);
    assert!(go(&config, &simulated()).unwrap().new > 0);
    events(folder.path(), &busy()[..90]);
    let message = go(&config, &simulated()).unwrap_err().to_string();
    assert!(message.contains("cut or replaced"), "{message}");
    events(folder.path(), &busy());
    assert!(go(&config, &simulated()).unwrap().new > 0);
}

/// A line that is too long stays one line while it is written, and a file that was cut or replaced is no longer read.
#[test]
fn growing_files_are_watched() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("events.csv");
    let text = BASE.replace("path =", "follow = true\npath =");
    let config = Config::parse(&text, &folder.path().join("stream.toml")).unwrap();
    let append = |text: &str| {
        let mut file = fs::OpenOptions::new().append(true).open(&file).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    let start = || {
        fs::write(&file, "time,state\n1,a\n").unwrap();
        let mut reader = Reader::new(
            &config.source,
            Place::default(),
            Files::default(),
            &Watch::default(),
        );
        assert!(matches!(reader.read(None), Ok(Read1::Line(_, Ok(_)))));
        reader
    };
    let mut reader = start();
    append(&"y".repeat(3 << 19));
    let quiet = |reader: &mut Reader| loop {
        match reader.read(None).unwrap() {
            Read1::Wait => {}
            other => break other,
        }
    };
    assert_eq!(quiet(&mut reader), Read1::End);
    append("5,a\n6,a\n");
    assert!(matches!(quiet(&mut reader), Read1::Line(_, Err(_))));
    assert!(matches!(quiet(&mut reader), Read1::Line(_, Ok(Row::Event(e))) if e.time == 6));
    assert_eq!(quiet(&mut reader), Read1::End);
    fs::write(&file, "time,state\n7,a\n").unwrap();
    assert!(
        reader
            .read(None)
            .unwrap_err()
            .to_string()
            .contains("cut or replaced")
    );
    // another file of that name, just as long
    let mut reader = start();
    fs::rename(&file, folder.path().join("old")).unwrap();
    fs::write(&file, "time,state\n1,a\n8,a\n").unwrap();
    assert_eq!(reader.read(None).is_err(), cfg!(unix));
    let place = reader.place();
    fs::write(&file, "time").unwrap();
    let mut later = Reader::new(&config.source, place, Files::default(), &Watch::default());
    assert!(later.read(None).is_err());
}

/// The header is the first line with something on it, but for remarks; a restart finds it again. Where that line is none, no later one is.
#[test]
fn a_file_has_one_place_for_its_header() {
    let long = format!("{}time,state\n", "x".repeat(1 << 20));
    let before: [(&[u8], bool); 8] = [
        (b"", true),
        (b"\n", true),
        (b"# times in seconds\n\n", true),
        (b"\xef\xbb\xbf", true),
        (b"\xef\xbb\xbf# a remark\n", true),
        (b"\xff\xfe,\n", false),
        (long.as_bytes(), false),
        (b"0,a\n", false),
    ];
    for (start, found) in before {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("events.csv");
        let mut open = config(folder.path(), |t| t.replace("epsilon = 1", "epsilon = 1e9"));
        open.ticks.end = None;
        let text = [start, b"time,state\n3,a\n15,a\n28,b\n"].concat();
        fs::write(&file, &text).unwrap();
        let bad = go(&open, &simulated()).unwrap().bad;
        fs::write(&file, [&text[..], b"29,b\n31,a\n32,a\n45,a\n"].concat()).unwrap();
        let more = go(&open, &simulated()).unwrap().bad;
        assert_eq!(more == 0, found, "{bad}");
        let counts: Vec<_> = lines(folder.path()).into_iter().map(|l| l.noisy).collect();
        let want = [[1, 0], [1, 0], [0, 2], [2, 0]].map(|c| c.map(Some).to_vec());
        let want = if found { &want[..] } else { &[] };
        assert_eq!(counts, want, "{:?}", start.get(..20));
    }
}

/// A unit that is a number is the one that was written, or a bad line: two people never become one.
#[test]
fn numbers_that_are_units_are_exact() {
    for (unit, other, bad) in [
        (
            "123456789012345678901234567890123",
            "123456789012345678901234567890124",
            2,
        ),
        ("1.5", "2.5", 2),
        ("1e3", "2e3", 2),
        ("18446744073709551614", "18446744073709551615", 0),
        ("-7", "-8", 0),
        (
            "\"123456789012345678901234567890123\"",
            "\"123456789012345678901234567890124\"",
            0,
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        // a mark of the byte order before the first line
        let text = format!(
            "\u{feff}{{\"time\": 1, \"state\": \"a\", \"who\": {unit}}}\n{{\"time\": 2, \"state\": \"b\", \"who\": {other}}}\n"
        );
        fs::write(folder.path().join("events.csv"), text).unwrap();
        let config = config(folder.path(), |t| {
            t.replace("epsilon = 1", "epsilon = 1e9")
                .replace("\"csv\"", "\"jsonl\"")
                .replace("path =", "unit = \"who\"\npath =")
        });
        assert_eq!(go(&config, &simulated()).unwrap().bad, bad, "{unit}");
        let want = if bad == 0 {
            [Some(1), Some(1)]
        } else {
            [Some(0); 2]
        };
        assert_eq!(lines(folder.path())[0].noisy, want, "{unit}");
    }
}

#[test]
fn late_duplicate_and_bad_lines_have_one_treatment() {
    let folder = tempfile::tempdir().unwrap();
    let text = "time,state,who\n1,a,x\n1,a,x\n2,b,x\n3,a,y\n25,a,x\n4,a,z\n9,nowhere,x\n-3,a,x\nnever,a,x\n900,a,x\n1000000000,a,x\n";
    fs::write(folder.path().join("events.csv"), text).unwrap();
    let config = config(folder.path(), |t| {
        t.replace("epsilon = 1", "epsilon = 1e9")
            .replace("path =", "unit = \"who\"\npath =")
    });
    let ran = go(&config, &simulated()).unwrap();
    // late z, unknown state, before the start, no number, after the end (twice)
    assert_eq!(ran.bad, 6);
    let first = &lines(folder.path())[0];
    // x counts once in the tick (the first event), y once
    assert_eq!(first.noisy, [Some(2), Some(0)]);
    let bad = fs::read_to_string(folder.path().join("s.bad")).unwrap();
    assert!(bad.lines().count() == 6 && bad.contains("nowhere") && bad.contains("late"));
    #[cfg(unix)]
    for file in ["s.bad", "s.state"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(folder.path().join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    // read again after a restart: nothing is reported twice
    assert_eq!(go(&config, &simulated()).unwrap().bad, 0);
}

/// The ledger holds one spend whatever happens; a lost or older state file is refused.
#[test]
fn opening_is_paid_once() {
    let folder = tempfile::tempdir().unwrap();
    events(folder.path(), &busy());
    let config = config(folder.path(), |t| t);
    let mut open = config.clone();
    open.ticks.end = None;
    let real = Options::default();
    go(&open, &real).unwrap();
    let older = fs::read(folder.path().join("s.state")).unwrap();
    assert!(go(&config, &real).unwrap().new > 0);
    assert_eq!(go(&config, &real).unwrap().new, 0);
    let spent = || {
        let ledger = Ledger::open(folder.path().join("s.ledger")).unwrap();
        ledger.status().unwrap().spent.add_remove.unwrap().amount
    };
    assert_eq!(spent(), Rational::from(1_u8));
    // simulated runs must not touch a real state
    assert!(matches!(
        go(&config, &simulated()),
        Err(Failure::Refusal(_))
    ));
    fs::write(folder.path().join("s.state"), older).unwrap();
    let refused = go(&config, &real).unwrap_err();
    assert!(refused.to_string().contains("older copy"), "{refused}");
    fs::remove_file(folder.path().join("s.state")).unwrap();
    let refused = go(&config, &real).unwrap_err();
    assert!(
        refused.to_string().contains("state file is gone"),
        "{refused}"
    );
    assert_eq!(spent(), Rational::from(1_u8));
    // a second stream does not fit under the cap
    let text = BASE.replace("name = \"s\"", "name = \"t\"") + "ledger = \"s.ledger\"\n";
    let other = Config::parse(&text, &folder.path().join("t.toml")).unwrap();
    assert!(matches!(go(&other, &real), Err(Failure::Refusal(_))));
}

#[test]
fn the_daily_cap_withholds_by_the_calendar() {
    let folder = tempfile::tempdir().unwrap();
    events(folder.path(), &[]);
    let config = config(folder.path(), |t| {
        t.replace("[source]", "[day_cap]\nday = 50\nticks = 3\n[source]")
    });
    go(&config, &simulated()).unwrap();
    let withheld: Vec<bool> = lines(folder.path()).iter().map(|l| l.withheld).collect();
    let day = [false, false, false, true, true];
    assert_eq!(withheld, [day, day, day, day].concat());
    let said = statement(&config);
    assert_eq!(said["loss"]["most_per_person_and_day"], "3");
    // 12 of 20 ticks are released
    assert_eq!(said["loss"]["user_level"], "12");
    assert_eq!(said["loss"]["w_event_of_12_ticks"], "12");
    let words = said["words"].as_str().unwrap();
    assert!(
        words.contains("w-event") && words.contains("at most 12 by the end"),
        "{words}"
    );
    let mut open = config.clone();
    open.ticks.end = None;
    assert!(statement(&open)["loss"]["user_level"].is_null());
    assert!(statement(&open).to_string().contains("without bound"));
}

/// No day meets more released ticks than its cap, whatever the start, the width and the length of a day are: also when
/// ticks reach over midnight or are longer than a day.
#[test]
fn no_day_meets_more_ticks_than_its_cap() {
    for (width, day, start) in [
        (10, 50, 0),
        (30, 100, 0),
        (30, 90, 15),
        (75, 50, 0),
        (120, 50, -7),
        (7, 24, -100),
    ] {
        for cap in 0..4_i64 {
            let text = BASE
                .replace("width = 10", &format!("width = {width}"))
                .replace("start = 0", &format!("start = {start}"))
                .replace("end = 200\n", "")
                .replace(
                    "[source]",
                    &format!("[day_cap]\nday = {day}\nticks = {cap}\n[source]"),
                );
            let config = Config::parse(&text, Path::new("stream.toml")).unwrap();
            let released: Vec<i64> = (0..400).filter(|t| !config.withheld(*t)).collect();
            let reach = |t: i64| {
                let from = start + t * width;
                (from.div_euclid(day), (from + width - 1).div_euclid(day))
            };
            for d in start.div_euclid(day)..400 * width / day {
                let met = released
                    .iter()
                    .filter(|t| (reach(**t).0..=reach(**t).1).contains(&d));
                assert!(
                    i64::try_from(met.count()).unwrap() <= cap,
                    "{width} {day} {start} {cap} {d}"
                );
            }
            // where ticks fit into days the cap is used up
            let fits = day % width == 0 && start % width == 0;
            assert!(!fits || i64::try_from(released.len()).unwrap() >= 400 * width / day * cap);
        }
    }
}

#[test]
fn hierarchies_measure_what_their_plan_says() {
    let folder = tempfile::tempdir().unwrap();
    events(folder.path(), &busy());
    let config = config(folder.path(), |t| {
        t.replace("[source]", "[groups]\nall = [\"a\", \"b\"]\n[source]")
    });
    assert_eq!(config.names, ["all", "a", "b"]);
    go(&config, &simulated()).unwrap();
    let lines = lines(folder.path());
    assert!(lines.iter().all(|l| l.noisy[0].is_some()));
    // same-tick swap: 2 (h − 1)/h at ε = 1, h = 2
    assert_eq!(
        statement(&config)["loss"]["another_state_in_the_same_tick"],
        "1"
    );
    let binary = Config::parse(
        &BASE.replace(
            "[\"a\", \"b\"]",
            "[\"a\", \"b\", \"c\", \"d\", \"e\"]\nbinary_groups = true",
        ),
        &folder.path().join("b.toml"),
    )
    .unwrap();
    assert_eq!((binary.forest.len(), binary.forest.height()), (9, 4));
    assert_eq!(binary.relation, Relation::AddRemove);
}

/// Every line says how far zeros and plain noise are off; at ε = 1 the noise is off by 1/sinh(1) = .851 on average.
#[test]
fn baselines_stand_beside_every_estimate() {
    let folder = tempfile::tempdir().unwrap();
    events(folder.path(), &busy());
    let config = config(folder.path(), |t| t);
    go(&config, &simulated()).unwrap();
    let mut sums = [0.0; 2];
    for (t, line) in lines(folder.path()).iter().enumerate() {
        let baselines = line.baselines.as_ref().unwrap();
        assert_eq!(baselines.laplace, [Some(0.851); 2]);
        for (v, sum) in sums.iter_mut().enumerate() {
            *sum += f64::from(i32::try_from(line.noisy[v].unwrap()).unwrap());
            let mean = *sum / f64::from(u32::try_from(t + 1).unwrap());
            assert!((baselines.zero[v] - mean.max(0.0)).abs() < 6e-4);
        }
    }
}

/// Groups are the sums of their members when asked for, and only in a hierarchy.
#[test]
fn consistent_groups_are_sums() {
    let folder = tempfile::tempdir().unwrap();
    events(folder.path(), &busy());
    let method = "[method]\nkind = \"filter\"\nconsistent = true\n";
    let config = config(folder.path(), |t| {
        t.replace("[source]", "[groups]\nall = [\"a\", \"b\"]\n[source]") + method
    });
    go(&config, &simulated()).unwrap();
    let mut whole = 0;
    for line in lines(folder.path()) {
        if line.noisy.iter().all(Option::is_some) {
            whole += 1;
            let e = &line.estimate;
            assert!((e[0] - e[1] - e[2]).abs() < 2e-3 && e.iter().all(|x| *x >= 0.0));
        }
    }
    assert!(whole > 0);
    let flat = Config::parse(&(BASE.to_owned() + method), Path::new("stream.toml")).unwrap_err();
    assert!(flat.to_string().contains("consistent"), "{flat}");
}

/// Windows of a tree: sums of noisy counts for Laplace; with filters within 1.5 standard deviations of those (the noise of a
/// node has at most twice the scale here), 0 for a node that was left out.
#[test]
fn windows_of_a_tree_follow_its_measurements() {
    for (method, filters) in [("laplace", false), ("filter", true)] {
        let folder = tempfile::tempdir().unwrap();
        events(folder.path(), &busy());
        let config = config(folder.path(), |t| {
            "windows = [1, 4]\n".to_owned()
                + &t.replace("[source]", "[groups]\nall = [\"a\", \"b\"]\n[source]")
                + &format!("[method]\nkind = \"{method}\"\n")
        });
        go(&config, &simulated()).unwrap();
        let lines = lines(folder.path());
        assert!(lines.len() > 4);
        for (t, line) in lines.iter().enumerate() {
            for v in 0..3 {
                for (w, sums) in &line.windows {
                    let measured = lines[(t + 1).saturating_sub(*w)..=t]
                        .iter()
                        .filter_map(|l| l.noisy[v])
                        .map(|z| f64::from(i32::try_from(z).unwrap()));
                    let measured: Vec<f64> = measured.collect();
                    let noise = 1.5
                        * (8.0 * f64::from(u32::try_from(measured.len()).unwrap())).sqrt()
                        + 1e-3;
                    let off = (sums[v] - measured.iter().sum::<f64>()).abs();
                    assert!(
                        off <= if filters { noise } else { 1e-3 },
                        "{t} {v} {w}: {off}"
                    );
                }
            }
        }
    }
}

/// A jump alarm by probability: raised by a step far above the noise, and not before it.
#[test]
fn jumps_can_be_raised_by_their_probability() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<(i64, &str)> = (150..200).flat_map(|t| vec![(t, "a"); 6]).collect();
    events(folder.path(), &rows);
    let alarm = "[[alarm]]\nkind = \"jump\"\nwindow = 2\nthreshold = 30\nprobability = 0.5\n";
    let config = config(folder.path(), |t| t + alarm);
    go(&config, &simulated()).unwrap();
    let raised: Vec<i64> = lines(folder.path())
        .iter()
        .filter(|l| l.alarms.iter().any(|a| a.1 == "a"))
        .map(|l| l.tick)
        .collect();
    assert_eq!(raised, [15]);
    let low = BASE.to_owned() + &alarm.replace("jump", "low");
    assert!(Config::parse(&low, Path::new("stream.toml")).is_err());
}

#[test]
fn declarations_are_checked() {
    let file = Path::new("stream.toml");
    let cases = [
        ("epsilon = 1", "epsilon = 0", "above 0"),
        ("[\"a\", \"b\"]", "[\"a\", \"a\"]", "different"),
        ("width = 10", "width = 0", "between"),
        ("epsilon = 1", "epsilon = 1\nper_unit = 3", "source.unit"),
        ("epsilon = 1", "epsilon = 1\nepsilonn = 1", "unknown key"),
        (
            "[source]",
            "[groups]\ng = [\"g\"]\n[source]",
            "contains itself",
        ),
        ("[source]", "[groups]\ng = [\"z\"]\n[source]", "no state"),
        (
            "[source]",
            "[groups]\ng = [\"a\"]\nh = [\"a\"]\n[source]",
            "two groups",
        ),
        (
            "[source]",
            "[method]\nkind = \"pegasus\"\n[source]",
            "threshold",
        ),
        ("[source]", "[[alarm]]\nkind = \"up\"\n[source]", "known"),
        (
            "clock = \"events\"\n",
            "",
            "\"wall\": ticks close by this machine's clock",
        ),
        (
            "clock = \"events\"\n",
            "",
            "\"marks\": ticks close by rows in the source",
        ),
        (
            "clock = \"events\"\n",
            "",
            "\"events\": ticks close by the times of the events",
        ),
        ("\"events\"", "\"even\"", "no such clock"),
        ("\"events\"", "3", "text"),
        ("\"events\"", "\"marks\"", "needs source.mark"),
        (
            "format = \"csv\"",
            "format = \"csv\"\nmark = \"tick\"",
            "belongs to clock = \"marks\"",
        ),
        ("\"events\"", "\"events\"\nlateness = -1", "between"),
        (
            "\"events\"",
            "\"wall\"\nlateness = 9223372036854775807",
            "between",
        ),
        ("\"events\"", "\"wall\"\nmax_ahead = -1", "between"),
        ("[\"a\", \"b\"]", "[\"a\", \" b\"]", "ends with a blank"),
        (
            "\"events\"",
            "\"events\"\ntime_unit = \"seconds\"",
            "is for clock = \"wall\"",
        ),
        ("\"events\"", "\"wall\"\ntime_unit = \"hours\"", "known"),
        (
            "format = \"csv\"",
            "format = \"csv\"\ngrace = 1",
            "standard input",
        ),
    ];
    for (from, to, says) in cases {
        let refused = Config::parse(&BASE.replace(from, to), file).unwrap_err();
        assert!(refused.to_string().contains(says), "{to}: {refused}");
    }
    let marks = |mark: &str| {
        let text = BASE.replace("\"events\"", "\"marks\"").replace(
            "format = \"csv\"",
            &format!("format = \"csv\"\nmark = \"{mark}\""),
        );
        Config::parse(&text, file)
    };
    assert!(marks("tick").is_ok());
    for (mark, says) in [("a", "also a state"), ("", "empty"), (" tick", "spaces")] {
        let refused = marks(mark).unwrap_err();
        assert!(refused.to_string().contains(says), "{mark}: {refused}");
    }
}

/// A folder that grows: files in name order, unfinished lines left for later, places that can be resumed from.
#[test]
fn growing_folders_are_read_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("in");
    fs::create_dir(&data).unwrap();
    fs::write(
        data.join("1.jsonl"),
        "{\"time\": 1, \"state\": \"a\"}\n{\"time\": 2, \"sta",
    )
    .unwrap();
    let text = BASE
        .replace("events.csv", "in")
        .replace("\"csv\"", "\"jsonl\"");
    let mut config = Config::parse(&text, &folder.path().join("stream.toml")).unwrap();
    config.source.follow = true;
    let mut reader = Reader::new(
        &config.source,
        Place::default(),
        Files::default(),
        &Watch::default(),
    );
    let time = |read: Read1| match read {
        Read1::Line(_, Ok(Row::Event(event))) => event.time,
        other => panic!("{other:?}"),
    };
    assert_eq!(time(reader.read(None).unwrap()), 1);
    assert_eq!(reader.read(None).unwrap(), Read1::End);
    let place = reader.place();
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(data.join("1.jsonl"))
        .unwrap();
    file.write_all(b"te\": \"a\"}\nnonsense\n").unwrap();
    fs::write(data.join("2.jsonl"), "{\"time\": 3, \"state\": \"a\"}\n").unwrap();
    for reader in [
        &mut reader,
        &mut Reader::new(&config.source, place, Files::default(), &Watch::default()),
    ] {
        assert_eq!(time(reader.read(None).unwrap()), 2);
        assert!(matches!(reader.read(None).unwrap(), Read1::Line(_, Err(_))));
        assert_eq!(time(reader.read(None).unwrap()), 3);
        assert_eq!(reader.read(None).unwrap(), Read1::End);
    }
    // A complete source, or a file that others follow: the last line needs no end of its own.
    fs::write(data.join("3.jsonl"), "{\"time\": 4, \"state\": \"a\"}").unwrap();
    assert_eq!(reader.read(None).unwrap(), Read1::End);
    fs::write(data.join("4.jsonl"), "{\"time\": 5, \"state\": \"a\"}").unwrap();
    assert_eq!(time(reader.read(None).unwrap()), 4);
    assert_eq!(reader.read(None).unwrap(), Read1::End);
    config.source.follow = false;
    let mut whole = Reader::new(
        &config.source,
        reader.place(),
        Files::default(),
        &Watch::default(),
    );
    // it may be half a line as long as the end is not declared
    assert_eq!(whole.read(None).unwrap(), Read1::End);
    assert_eq!(whole.unfinished(), Some("4.jsonl"));
    let mut whole = whole.complete(true);
    assert_eq!(time(whole.read(None).unwrap()), 5);
    assert_eq!(whole.unfinished(), None);
    assert_eq!(whole.read(None).unwrap(), Read1::End);
}

#[test]
fn a_stopped_run_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    events(folder.path(), &busy());
    let options = Options {
        stop: Arc::new(AtomicBool::new(true)),
        ..simulated()
    };
    let config = config(folder.path(), |t| t);
    assert_eq!(go(&config, &options).unwrap(), Running::default());
    let store = Store::open(&config.output.state, &config.digest, Opening::Simulated).unwrap();
    assert_eq!(store.progress().unwrap().ticks, 0);
    let mut seen = BTreeMap::new();
    store
        .lines(|t, body| {
            seen.insert(t, body.to_owned());
            Ok(())
        })
        .unwrap();
    assert!(seen.is_empty());
}
