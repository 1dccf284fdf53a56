//! `reticent stream` through the binary: killed at random times, restarted, nothing lost, nothing twice.
//!
//! `RETICENT_KILLS=1000` runs the long form.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const SERIES: usize = 50;
const TICKS: usize = 120;

fn exact(tick: usize, series: usize) -> i64 {
    i64::try_from((tick * 7 + series * 13) % 11 * (series % 5)).unwrap()
}

/// Events of every tick, and a declaration. By the wall clock all ticks were due long ago, and close one after another
/// once everything is read; marks come after every tick, and close it three ticks later.
fn prepare(folder: &Path, method: &str, clock: &str) {
    let marks = clock == "marks";
    let mut text = "time,state,n\n".to_owned();
    for tick in 0..TICKS {
        for series in 0..SERIES {
            let n = exact(tick, series);
            if n > 0 {
                text.push_str(&format!("{tick},s{series},{n}\n"));
            }
        }
        if marks {
            text.push_str(&format!("{},tick,\n", tick + 1));
        }
    }
    fs::write(folder.join("events.csv"), text).unwrap();
    let states: Vec<String> = (0..SERIES).map(|s| format!("\"s{s}\"")).collect();
    let config = format!(
        "format = 1\nname = \"killed\"\nepsilon = 1\nstates = [{}]\n[source]\npath = \"events.csv\"\nformat = \"csv\"\ncount = \"n\"\n{}\
         [ticks]\nwidth = 1\nstart = 0\nend = {TICKS}\nclock = \"{}\"\nlateness = {}\n[method]\n{method}\n[output]\nreleases = \"out.jsonl\"\n",
        states.join(", "),
        if marks { "mark = \"tick\"\n" } else { "" },
        clock,
        if marks { 3 } else { 0 },
    );
    fs::write(folder.join("stream.toml"), config).unwrap();
}

fn command(folder: &Path, extra: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reticent"));
    command
        .arg("stream")
        .arg(folder.join("stream.toml"))
        .args(extra)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn lines(folder: &Path) -> Vec<Value> {
    fs::read_to_string(folder.join("out.jsonl"))
        .unwrap_or_default()
        .split_inclusive('\n')
        .filter(|l| l.ends_with('\n'))
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

/// Starts and kills until it is done; whatever was readable before a kill must still stand afterwards. Gives the number
/// of kills that met a running process.
fn kill_until_done(folder: &Path, extra: &[&str], kills: usize) -> usize {
    let mut met = 0;
    let mut x = 0x9E37_79B9_7F4A_7C15_u64;
    let mut before: Vec<Value> = Vec::new();
    for _ in 0..kills {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut child = command(folder, extra).spawn().unwrap();
        let start = Instant::now();
        let pause = Duration::from_millis(5 + (x >> 33) % 120);
        while start.elapsed() < pause && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        met += usize::from(child.try_wait().unwrap().is_none());
        // SIGKILL
        let _ = child.kill();
        child.wait().unwrap();
        let now = lines(folder);
        assert!(now.len() >= before.len() && now[..before.len()] == before[..]);
        before = now;
    }
    assert!(command(folder, extra).status().unwrap().success());
    let all = lines(folder);
    assert_eq!(all[..before.len()], before[..]);
    assert_eq!(all.len(), TICKS);
    for (t, line) in all.iter().enumerate() {
        assert_eq!(line["tick"], t);
    }
    met
}

fn kills() -> usize {
    std::env::var("RETICENT_KILLS")
        .ok()
        .and_then(|k| k.parse().ok())
        .unwrap_or(8)
}

/// With noise keyed by tick, the union of the runs is the uninterrupted run.
#[test]
fn killed_simulations_add_up() {
    for (method, clock) in [
        ("kind = \"filter\"", "events"),
        ("kind = \"pegasus\"\nthreshold = 4", "events"),
        ("kind = \"laplace\"", "marks"),
        ("kind = \"laplace\"", "wall"),
    ] {
        let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        prepare(whole.path(), method, clock);
        prepare(parts.path(), method, clock);
        let extra = ["--simulate", "11"];
        assert!(command(whole.path(), &extra).status().unwrap().success());
        kill_until_done(parts.path(), &extra, kills());
        assert_eq!(lines(whole.path()), lines(parts.path()), "{method} {clock}");
    }
}

/// With real noise: no tick missing or changed, one spend, and outputs minus exact counts are discrete Laplace.
///
/// 6,000 draws at scale 1: the share of zeros is tanh(1/2) = .4621 and that of |x| ≤ 1 is .8020, each held within 6.5
/// standard deviations (false alarm below 10⁻⁹ together). Caught: a scale off by 10 %, ticks drawn from another law.
#[test]
fn killed_streams_keep_their_releases_and_their_law() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path(), "kind = \"laplace\"", "events");
    kill_until_done(folder.path(), &[], kills());
    let (mut zeros, mut ones, mut n) = (0.0, 0.0, 0.0);
    for (t, line) in lines(folder.path()).iter().enumerate() {
        for (s, z) in line["noisy"].as_array().unwrap().iter().enumerate() {
            let noise = z.as_i64().unwrap() - exact(t, s);
            n += 1.0;
            zeros += f64::from(u8::from(noise == 0));
            ones += f64::from(u8::from(noise.abs() <= 1));
        }
    }
    for (seen, p) in [(zeros, 0.462_117), (ones, 0.802_118)] {
        let sd = f64::sqrt(n * p * (1.0 - p));
        assert!(
            (seen - n * p).abs() < 6.5 * sd,
            "{seen} of {n}, expected {p}"
        );
    }
    let shown = Command::new(env!("CARGO_BIN_EXE_reticent"))
        .args(["--json", "ledger", "show"])
        .arg(folder.path().join("killed.ledger"))
        .output()
        .unwrap();
    assert!(shown.status.success());
    // a second opening under the same cap is refused: the one payment used it up
    let text = fs::read_to_string(folder.path().join("stream.toml")).unwrap();
    let again = text
        .replace("name = \"killed\"", "name = \"again\"")
        .replace("releases =", "ledger = \"killed.ledger\"\nreleases =");
    fs::write(folder.path().join("stream.toml"), again).unwrap();
    let refused = command(folder.path(), &[]).status().unwrap();
    assert_eq!(refused.code(), Some(3));
}

/// Standard input: told where to resume, resent ticks are not released twice.
#[test]
fn standard_input_resumes_where_it_was_told() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let config = "format = 1\nname = \"piped\"\nepsilon = 1\nstates = [\"a\"]\n[source]\npath = \"-\"\nformat = \"jsonl\"\n\
                  [ticks]\nwidth = 10\nstart = 0\nclock = \"events\"\n[output]\nreleases = \"out.jsonl\"\n";
    fs::write(folder.path().join("stream.toml"), config).unwrap();
    let feed = |times: &[i64]| {
        let mut child = command(folder.path(), &["--simulate", "3"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        for time in times {
            writeln!(input, "{{\"time\": {time}, \"state\": \"a\"}}").unwrap();
        }
        drop(input);
        let out = child.wait_with_output().unwrap();
        assert!(out.status.success());
        String::from_utf8(out.stderr).unwrap()
    };
    assert!(feed(&[1, 5, 12, 25]).contains("{\"resume_from\":0}"));
    let first = lines(folder.path());
    assert_eq!(first.len(), 2);
    assert!(feed(&[1, 12, 25, 31]).contains("{\"resume_from\":20}"));
    let all = lines(folder.path());
    assert_eq!((all.len(), &all[..2]), (3, &first[..]));
}

/// SIGTERM and SIGINT while it waits for standard input: exit 0, every line complete, half a line left unread, and the next
/// run goes on from there.
#[cfg(unix)]
#[test]
fn a_signal_ends_it_cleanly() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let config = "format = 1\nname = \"piped\"\nepsilon = 1\nstates = [\"a\", \"ab\"]\n[source]\npath = \"-\"\nformat = \"csv\"\n\
                  [ticks]\nwidth = 10\nstart = 0\nclock = \"events\"\n[output]\nreleases = \"out.jsonl\"\n";
    fs::write(folder.path().join("stream.toml"), config).unwrap();
    for (signal, rows, ticks) in [
        ("-TERM", "time,state\n1,a\n12,a\n25,a\n99,a", 2),
        ("-INT", "time,state\n25,a\n31,a\n", 3),
    ] {
        let mut child = command(folder.path(), &["--simulate", "3"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(rows.as_bytes()).unwrap();
        input.flush().unwrap();
        let start = Instant::now();
        while lines(folder.path()).len() < ticks && start.elapsed() < Duration::from_mins(1) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let pid = child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success());
        // the pipe stays open: it is the signal that ends it
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
        drop(input);
        assert_eq!(lines(folder.path()).len(), ticks);
        let text = fs::read_to_string(folder.path().join("out.jsonl")).unwrap();
        assert!(text.ends_with('\n'));
        assert!(
            fs::read_to_string(folder.path().join("piped.bad"))
                .unwrap_or_default()
                .is_empty()
        );
    }
}

/// By the wall clock ticks close, and the stream ends, while standard input is open and says nothing or half a line.
#[test]
fn a_silent_input_does_not_hold_ticks_open() {
    use std::io::Write;
    use std::time::{SystemTime, UNIX_EPOCH};
    for words in ["", "{\"time\": 1"] {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let start = now.as_secs();
        let config = format!(
            "format = 1\nname = \"live\"\nepsilon = 1\nstates = [\"a\"]\n[source]\npath = \"-\"\nformat = \"jsonl\"\ngrace = 0\n\
             [ticks]\nwidth = 1\nstart = {start}\nend = {}\nclock = \"wall\"\n[output]\nreleases = \"out.jsonl\"\n",
            start + 2
        );
        fs::write(folder.path().join("stream.toml"), config).unwrap();
        let mut child = command(folder.path(), &["--simulate", "3"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(words.as_bytes()).unwrap();
        input.flush().unwrap();
        assert!(child.wait().unwrap().success());
        drop(input);
        assert_eq!(lines(folder.path()).len(), 2);
    }
}

/// The shipped example, end to end: every tick of the week, both declarations, one payment each.
#[test]
fn the_flights_example_runs() {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/flights");
    let folder = tempfile::tempdir().unwrap();
    for file in ["flights.csv", "stream.toml", "tree.toml"] {
        fs::copy(from.join(file), folder.path().join(file)).unwrap();
    }
    fs::create_dir(folder.path().join("out")).unwrap();
    for (config, out, series) in [
        ("stream.toml", "releases.jsonl", 16),
        ("tree.toml", "tree.jsonl", 20),
    ] {
        let run = |extra: &[&str]| {
            Command::new(env!("CARGO_BIN_EXE_reticent"))
                .arg("stream")
                .arg(folder.path().join(config))
                .args(extra)
                .output()
                .unwrap()
        };
        let said = run(&["--dry-run"]);
        assert!(said.status.success());
        let statement: Value = serde_json::from_slice(&said.stdout).unwrap();
        assert_eq!(statement["series"], series);
        assert_eq!(statement["loss"]["added_or_removed"], "0.5");
        assert_eq!(statement["clock"], "events");
        assert!(run(&[]).status.success());
        let text = fs::read_to_string(folder.path().join("out").join(out)).unwrap();
        assert_eq!(text.lines().count(), 2016);
        assert!(text.lines().all(|l| !l.contains("simulated")));
        assert!(
            text.lines()
                .next()
                .unwrap()
                .contains("come in order to within")
        );
    }
}
