//! Files that are renamed, removed, linked or replaced, states that were not paid for, and marks that cannot be right.

use super::super::config::Input;
use super::super::identity::Read;
use super::*;

/// Real releases at so large an ε that they are the counts.
fn exact(folder: &Path, change: impl Fn(String) -> String) -> Config {
    config(folder, |t| {
        change(t.replace("epsilon = 1", "epsilon = 1e9"))
    })
}

/// A folder as the source, of a stream that ends when its clock is told to.
fn marked(folder: &Path, change: impl Fn(String) -> String) -> Config {
    fs::create_dir_all(folder.join("in")).unwrap();
    exact(folder, |t| {
        let t = t.replace("path = \"events.csv\"", "path = \"in\"");
        let t = t.replace("clock = \"events\"", "clock = \"marks\"");
        change(
            t.replace("format = \"csv\"", "format = \"csv\"\nmark = \"tick\"")
                .replace("end = 200\n", ""),
        )
    })
}

fn put(folder: &Path, name: &str, rows: &str) {
    fs::write(folder.join(name), format!("time,state\n{rows}")).unwrap();
}

fn counts(folder: &Path) -> Vec<i64> {
    lines(folder).iter().map(|l| l.noisy[0].unwrap()).collect()
}

fn refused(config: &Config, options: &Options, says: &str) {
    let message = go(config, options).unwrap_err().to_string();
    assert!(message.contains(says), "{message}");
}

/// One payment is for one state: another that was made before it, or beside it, is refused.
#[test]
fn a_payment_serves_one_state() {
    let folder = tempfile::tempdir().unwrap();
    let real = Options::default();
    events(folder.path(), &busy());
    let other = |ledger: &str, cap: &str| {
        config(folder.path(), |t| {
            let t = t.replace("out.jsonl", "other.jsonl");
            format!("cap = {cap}\n{t}state = \"other.state\"\nledger = \"{ledger}\"\n")
        })
    };
    // opened, and refused for its budget: a state without ticks stays behind
    assert!(go(&other("small.ledger", "0.5"), &real).is_err());
    assert!(folder.path().join("other.state").exists());
    let first = config(folder.path(), |t| t + "ledger = \"s.ledger\"\n");
    assert_eq!(go(&first, &real).unwrap().new, 20);
    refused(&other("s.ledger", "1"), &real, "with another state file");
    assert!(lines_of(folder.path(), "other.jsonl").is_empty());
    // its own ledger pays for it
    assert_eq!(go(&other("new.ledger", "1"), &real).unwrap().new, 20);
    // the head of another state, also one without ticks, is no head of this one
    fs::copy(
        folder.path().join("other.state.head"),
        folder.path().join("s.state.head"),
    )
    .unwrap();
    refused(&first, &real, "older copy");
}

fn lines_of(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_default()
}

/// Rotation by renaming, copying and cutting: refused while the source is followed, between runs, and of links in it.
#[test]
fn no_file_is_read_twice() {
    let rows = "1,a\n2,a\n3,a\n";
    for case in ["renamed", "rotated", "cut", "linked"] {
        for between in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let config = marked(folder.path(), |t| t);
            let data = folder.path().join("in");
            put(&data, "a.csv", rows);
            if between {
                put(&data, "a.csv", &format!("{rows}12,tick\n"));
                assert_eq!(go(&config, &simulated()).unwrap().ticks, 1);
            }
            let mut reader = Reader::new(
                &config.source,
                Place::default(),
                Files::new(&config, Read::default()),
                &Watch::default(),
            );
            while matches!(reader.read(None).unwrap(), Read1::Line(..)) {}
            match case {
                "renamed" => fs::rename(data.join("a.csv"), data.join("b.csv")).unwrap(),
                "rotated" => {
                    fs::rename(data.join("a.csv"), data.join("a.csv.1")).unwrap();
                    put(&data, "a.csv", "15,a\n16,a\n17,a\n18,a\n19,a\n22,tick\n");
                }
                "cut" => {
                    fs::copy(data.join("a.csv"), data.join("a.csv.1")).unwrap();
                    put(&data, "a.csv", "");
                }
                _ => fs::hard_link(data.join("a.csv"), data.join("b.csv")).unwrap(),
            }
            let failed = if between {
                go(&config, &simulated()).map(drop)
            } else {
                loop {
                    match reader.read(None) {
                        Ok(Read1::Line(..)) => {}
                        other => break other.map(drop),
                    }
                }
            };
            // where a system does not say when a file was made, a renamed one is noticed by a running program only
            let told = fs::metadata(&data).unwrap().created().is_ok();
            if cfg!(unix) && (told || !between) {
                let message = failed.unwrap_err().to_string();
                assert!(
                    ["cut or replaced", "read already", "is gone"]
                        .iter()
                        .any(|says| message.contains(says)),
                    "{case} {between}: {message}"
                );
            }
            if between {
                assert_eq!(counts(folder.path()), [3], "{case}");
            }
        }
    }
}

/// Only the file that was read last is needed: what open ticks hold is stored. What comes late to a file that was left is not read,
/// and one event far ahead keeps nothing open.
#[test]
fn only_the_last_file_is_needed() {
    for far in ["", "5000,a\n"] {
        let folder = tempfile::tempdir().unwrap();
        let config = marked(folder.path(), |t| t);
        let data = folder.path().join("in");
        put(&data, "a.csv", &format!("{far}11,a\n12,a\n"));
        put(&data, "b.csv", "1,a\n10,tick\n13,a\n");
        assert_eq!(go(&config, &simulated()).unwrap().ticks, 1);
        put(
            &data,
            "a.csv",
            &format!("{far}11,a\n12,a\n{}", "15,a\n".repeat(9)),
        );
        put(&data, "c.csv", "20,tick\n");
        assert_eq!(go(&config, &simulated()).unwrap().ticks, 2);
        fs::remove_file(data.join("a.csv")).unwrap();
        fs::remove_file(data.join("b.csv")).unwrap();
        put(&data, "d.csv", "22,a\n30,tick\n");
        assert_eq!(go(&config, &simulated()).unwrap().ticks, 3);
        // before the last one in name order: never read
        put(&data, "b.csv", "33,a\n");
        // the last one, grown since and gone
        put(&data, "d.csv", "22,a\n30,tick\n32,a\n");
        fs::rename(data.join("d.csv"), data.join("0.csv")).unwrap();
        put(&data, "e.csv", "40,tick\n");
        refused(
            &config,
            &simulated(),
            "`d.csv`, which was read last, is gone",
        );
        fs::rename(data.join("0.csv"), data.join("d.csv")).unwrap();
        assert_eq!(go(&config, &simulated()).unwrap().ticks, 4);
        assert_eq!(counts(folder.path()), [1, 3, 1, 1], "{far:?}");
    }
}

/// Open ticks are stored with who was counted in them: a bound per unit holds across restarts, whatever was read in which run.
#[test]
fn open_ticks_are_stored() {
    let rows = |text: &str| format!("time,state,who,n\n{text}");
    let first = "1,a,ann,1\n11,a,ann,1\n11,a,ann,1\n12,a,bob,1\n25,b,ann,1\n10,tick,,\n";
    let second = "13,a,ann,1\n14,a,cy,1\n15,b,bob,1\n20,tick,,\n26,b,ann,1\n30,tick,,\n";
    for (key, want) in [
        ("unit = \"who\"", [[1, 0], [3, 0], [0, 1]]),
        ("count = \"n\"", [[1, 0], [5, 1], [0, 2]]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let config = marked(folder.path(), |t| {
            t.replace("[ticks]", &format!("{key}\n[ticks]"))
        });
        let file = folder.path().join("in/a.csv");
        fs::write(&file, rows(first)).unwrap();
        assert_eq!(go(&config, &simulated()).unwrap().ticks, 1);
        fs::write(&file, rows(&format!("{first}{second}"))).unwrap();
        assert_eq!(go(&config, &simulated()).unwrap().ticks, 3);
        let found: Vec<_> = lines(folder.path()).into_iter().map(|l| l.noisy).collect();
        assert_eq!(found, want.map(|c| c.map(Some).to_vec()), "{key}");
    }
}

/// A copy that is read before its original is cut, and an original that is kept under another name while a copy takes its place.
#[test]
fn copies_are_told_by_how_they_begin() {
    let folder = tempfile::tempdir().unwrap();
    let config = marked(folder.path(), |t| {
        t.replace("path =", "follow = true\npath =")
    });
    let data = folder.path().join("in");
    put(&data, "a.csv", &"1,a\n".repeat(1100));
    let files = Files::new(&config, Read::default());
    let mut reader = Reader::new(&config.source, Place::default(), files, &Watch::default());
    while matches!(reader.read(None).unwrap(), Read1::Line(..)) {}
    fs::copy(data.join("a.csv"), data.join("a.csv.1")).unwrap();
    assert!(
        reader
            .read(None)
            .unwrap_err()
            .to_string()
            .contains("read already")
    );

    let folder = tempfile::tempdir().unwrap();
    let config = marked(folder.path(), |t| t);
    let data = folder.path().join("in");
    let rows = format!("{}11,a\n10,tick\n", "1,a\n".repeat(1100));
    put(&data, "a.csv", &rows);
    assert_eq!(go(&config, &simulated()).unwrap().ticks, 1);
    fs::rename(data.join("a.csv"), data.join("a.csv.bak")).unwrap();
    put(&data, "a.csv", &format!("{rows}15,a\n"));
    refused(&config, &simulated(), "read already");
}

/// Short files may be alike, also in the one event that they hold; so may files of which only the header was read in an earlier run.
#[test]
fn short_files_may_be_alike() {
    for (first, want) in [("", 2), ("5,a\n", 3)] {
        for stop in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let config = marked(folder.path(), |t| t);
            let data = folder.path().join("in");
            put(&data, "a.csv", first);
            if stop {
                assert_eq!(go(&config, &simulated()).unwrap().ticks, 0);
            }
            put(&data, "b.csv", "5,a\n6,a\n10,tick\n");
            assert_eq!(go(&config, &simulated()).unwrap().ticks, 1);
            assert_eq!(counts(folder.path()), [want], "{first:?} {stop}");
        }
    }
}

/// Half a line at the end of a source that is not followed is read again when the rest has come.
#[test]
fn half_lines_are_read_again() {
    for (half, rest) in [
        ("15", "1,a\n20,tick\n"),
        ("11,", "a\n20,tick\n"),
        ("20,ti", "ck\n"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let config = marked(folder.path(), |t| {
            t.replace("width = 10", "width = 10\nmax_ahead = 100")
        });
        let data = folder.path().join("in");
        let start = "1,a\n10,tick\n12,a\n";
        put(&data, "a.csv", &format!("{start}{half}"));
        assert_eq!(go(&config, &simulated()).unwrap().ticks, 1);
        put(&data, "a.csv", &format!("{start}{half}{rest}"));
        assert_eq!(go(&config, &simulated()).unwrap().ticks, 2);
        let want = if half == "11," { 2 } else { 1 };
        assert_eq!(counts(folder.path()), [1, want], "{half}");
    }
}

/// A tick that closes after half a line does not take it for the whole.
#[test]
fn half_lines_are_not_stored_with_a_tick() {
    let folder = tempfile::tempdir().unwrap();
    let config = exact(folder.path(), |t| t);
    let mut config = config;
    config.ticks.end = None;
    let data = folder.path().join("events.csv");
    let start = "time,state\n1,a\n11,a\n25,";
    fs::write(&data, format!("{start}a")).unwrap();
    let ran = go(&config, &simulated()).unwrap();
    assert_eq!(
        (ran.bad, ran.unfinished.as_deref()),
        (0, Some("events.csv"))
    );
    fs::write(&data, format!("{start}ab\n26,b\n31,a\n")).unwrap();
    let ran = go(&config, &simulated()).unwrap();
    assert_eq!((ran.ticks, ran.bad, ran.unfinished), (3, 1, None));
    let counts: Vec<_> = lines(folder.path()).into_iter().map(|l| l.noisy).collect();
    let want = [[1, 0], [1, 0], [0, 1]].map(|c| c.map(Some).to_vec());
    assert_eq!(counts, want);
}

/// What was read from files is not sent once more by standard input: what open ticks held would count again.
#[test]
fn files_are_gone_on_with_as_files() {
    let folder = tempfile::tempdir().unwrap();
    let config = marked(folder.path(), |t| t);
    let data = folder.path().join("in");
    put(&data, "a.csv", "1,a\n12,a\n10,tick\n");
    assert_eq!(go(&config, &simulated()).unwrap().ticks, 1);
    let mut other = config.clone();
    other.source.input = Input::Standard;
    let refused = go(&other, &simulated()).unwrap_err().to_string();
    assert!(refused.contains("read from files"), "{refused}");
    put(&data, "a.csv", "1,a\n12,a\n10,tick\n20,tick\n");
    assert_eq!(go(&config, &simulated()).unwrap().ticks, 2);
    assert_eq!(counts(folder.path()), [1, 1]);
}

/// A file behind which others were read in name order, and a link that led nowhere then, are named.
#[test]
fn files_that_are_passed_over_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let config = marked(folder.path(), |t| t);
    let data = folder.path().join("in");
    put(&data, "ev-9.csv", "1,a\n10,tick\n");
    assert!(go(&config, &simulated()).unwrap().passed.is_empty());
    put(&data, "ev-10.csv", "12,a\n20,tick\n");
    let passed = go(&config, &simulated()).unwrap().passed;
    assert_eq!(passed.is_empty(), cfg!(not(unix)));
    #[cfg(unix)]
    {
        assert_eq!(passed, ["ev-10.csv"]);
        std::os::unix::fs::symlink(folder.path().join("nowhere"), data.join("ev-1.csv")).unwrap();
        let passed = go(&config, &simulated()).unwrap().passed;
        assert_eq!(passed, ["ev-1.csv", "ev-10.csv"]);
    }
}

/// What is stored of a file to know it by is of the file that was read, not of another one that has its name since.
#[cfg(unix)]
#[test]
fn a_file_is_known_by_itself_not_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let config = marked(folder.path(), |t| t);
    let data = folder.path().join("in");
    put(&data, "a.csv", "1,a\n5,b\n10,tick\n12,a\n");
    let mut reader = Reader::new(
        &config.source,
        Place::default(),
        Files::default(),
        &Watch::default(),
    );
    assert!(matches!(reader.read(None).unwrap(), Read1::Line(..)));
    let before = reader.tail(&reader.place());
    std::fs::rename(data.join("a.csv"), folder.path().join("old")).unwrap();
    put(&data, "a.csv", "2,b\n6,b\n10,tick\n12,a\n");
    assert_eq!(reader.tail(&reader.place()), before);
    assert!(!before.is_empty());
}

/// A file of the same name and other content, also a longer one, between runs and within one; the same content may have moved.
#[test]
fn a_file_is_known_by_what_was_read_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = exact(folder.path(), |t| t);
    config.ticks.end = None;
    events(folder.path(), &[(1, "a"), (11, "a"), (21, "a")]);
    assert_eq!(go(&config, &simulated()).unwrap().ticks, 2);
    events(folder.path(), &[(2, "a"), (11, "a"), (22, "a"), (31, "b")]);
    refused(&config, &simulated(), "cut or replaced");
    // copied to its place, as synchronisation does
    fs::remove_file(folder.path().join("events.csv")).unwrap();
    events(folder.path(), &[(1, "a"), (11, "a"), (21, "a"), (31, "b")]);
    assert_eq!(go(&config, &simulated()).unwrap().ticks, 3);
    assert_eq!(counts(folder.path()), [1, 1, 1]);

    let text = BASE.replace("path =", "follow = true\npath =");
    let follow = Config::parse(&text, &folder.path().join("stream.toml")).unwrap();
    let (start, files) = (Place::default(), Files::default());
    let mut reader = Reader::new(&follow.source, start, files, &Watch::default());
    while matches!(reader.read(None).unwrap(), Read1::Line(..)) {}
    events(
        folder.path(),
        &[(3, "b"), (11, "b"), (21, "b"), (31, "b"), (41, "b")],
    );
    assert!(
        reader
            .read(None)
            .unwrap_err()
            .to_string()
            .contains("cut or replaced")
    );
}

/// Outputs that are the source, the declaration or each other under another name, and sources that become outputs.
#[cfg(unix)]
#[test]
fn links_are_followed_to_what_they_name() {
    let says = |setup: &dyn Fn(&Path), extra: &str, want: &str| {
        let folder = tempfile::tempdir().unwrap();
        let config = marked(folder.path(), |t| t + extra);
        put(&folder.path().join("in"), "a.csv", "1,a\n1,zzz\n12,tick\n");
        setup(folder.path());
        refused(&config, &Options::default(), want);
        assert!(!config.output.ledger.exists(), "{want}: nothing is paid");
    };
    let link = |from: &'static str, to: &'static str| {
        move |folder: &Path| {
            fs::write(folder.join(from), "").unwrap();
            fs::hard_link(folder.join(from), folder.join(to)).unwrap();
        }
    };
    says(&link("out.jsonl", "s.bad"), "", "same file");
    says(&link("in/b.csv", "s.bad"), "", "read as events");
    says(&link("stream.toml", "s.bad"), "", "the declaration");
    says(
        &|folder| fs::write(folder.join("stream.toml"), BASE).unwrap(),
        "dead_letters = \"stream.toml\"\n",
        "the declaration",
    );
}

/// A dangling link among the sources that the bad lines later fill.
#[cfg(unix)]
#[test]
fn bad_lines_are_not_read_as_events() {
    let folder = tempfile::tempdir().unwrap();
    let config = marked(folder.path(), |t| t);
    let data = folder.path().join("in");
    put(&data, "a.csv", "1,a\n1,zzz\n12,tick\n");
    std::os::unix::fs::symlink(folder.path().join("s.bad"), data.join("zz.csv")).unwrap();
    refused(&config, &simulated(), "read as events");
    fs::remove_file(data.join("zz.csv")).unwrap();
    // made while the stream runs
    fs::write(folder.path().join("s.bad"), "{}\n").unwrap();
    let files = Files::new(&config, Read::default());
    let mut reader = Reader::new(&config.source, Place::default(), files, &Watch::default());
    assert!(matches!(reader.read(None), Ok(Read1::Line(..))));
    std::os::unix::fs::symlink(folder.path().join("s.bad"), data.join("zz.csv")).unwrap();
    let failed = loop {
        match reader.read(None) {
            Ok(Read1::Line(..)) => {}
            other => break other.unwrap_err().to_string(),
        }
    };
    assert!(failed.contains("this stream writes"), "{failed}");
}

/// Releases that hold something are refused before anything is paid, and a head file that leads elsewhere overwrites nothing.
#[cfg(unix)]
#[test]
fn what_is_there_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    events(folder.path(), &busy());
    let config = config(folder.path(), |t| t);
    fs::write(folder.path().join("out.jsonl"), "not ours\n").unwrap();
    refused(&config, &Options::default(), "not a release of this stream");
    let ledger = Ledger::open(folder.path().join("s.ledger")).unwrap();
    assert_eq!(ledger.entries().unwrap().len(), 1, "registered, not paid");
    drop(ledger);
    fs::write(folder.path().join("out.jsonl"), "").unwrap();
    let head = folder.path().join("s.state.head.new");
    std::os::unix::fs::symlink(folder.path().join("out.jsonl"), &head).unwrap();
    assert_eq!(go(&config, &Options::default()).unwrap().new, 20);
    assert_eq!(lines(folder.path()).len(), 20);
}

/// A bad line ends no stream, also when it cannot be kept.
#[cfg(unix)]
#[test]
fn bad_lines_decide_about_nothing() {
    let folder = tempfile::tempdir().unwrap();
    events(folder.path(), &[(1, "a"), (2, "zzz"), (31, "a")]);
    let config = exact(folder.path(), |t| t + "dead_letters = \"/dev/full\"\n");
    // not a file: refused before it runs
    refused(&config, &simulated(), "is no file");
    let config = exact(folder.path(), |t| t);
    let options = simulated();
    let ran = go(&config, &options).unwrap();
    assert_eq!((ran.ticks, ran.bad, ran.unwritten), (20, 1, 0));
}

/// Times at or after the end, several records in a line, units with blanks around them.
#[test]
fn lines_are_judged_whole() {
    let folder = tempfile::tempdir().unwrap();
    let uneven = exact(folder.path(), |t| t.replace("end = 200", "end = 15"));
    events(
        folder.path(),
        &[(1, "a"), (12, "a"), (14, "a"), (15, "a"), (19, "a")],
    );
    let ran = go(&uneven, &simulated()).unwrap();
    assert_eq!((counts(folder.path()), ran.bad), (vec![1, 2], 2));

    let folder = tempfile::tempdir().unwrap();
    let config = exact(folder.path(), |t| t);
    fs::write(
        folder.path().join("events.csv"),
        "time,state\n1,a\r2,a\r3,a\n4,a\r\n",
    )
    .unwrap();
    assert_eq!(go(&config, &simulated()).unwrap().bad, 1);
    assert_eq!(counts(folder.path())[0], 1);

    let folder = tempfile::tempdir().unwrap();
    let config = exact(folder.path(), |t| {
        t.replace("[ticks]", "unit = \"who\"\n[ticks]")
    });
    let text = "time, state, who\n1,a,ann\n2, a, ann\n3 , a ,ann \n";
    fs::write(folder.path().join("events.csv"), text).unwrap();
    go(&config, &simulated()).unwrap();
    assert_eq!(counts(folder.path())[0], 1);
}

/// Marks on schedule close ticks whatever `max_ahead` is; marks in other units stop the stream instead of running away with it.
#[test]
fn marks_are_measured_from_the_last_one() {
    let mut punctual = String::new();
    for t in 0..8 {
        punctual += &format!("{},a\n{},tick\n", 10 * t + 1, 10 * t + 10);
    }
    for (keys, ticks) in [("max_ahead = 0", 8), ("max_ahead = 3\nlateness = 50", 3)] {
        let folder = tempfile::tempdir().unwrap();
        let config = marked(folder.path(), |t| {
            t.replace("width = 10", &format!("width = 10\n{keys}"))
        });
        put(&folder.path().join("in"), "a.csv", &punctual);
        let ran = go(&config, &simulated()).unwrap();
        assert_eq!((ran.ticks, ran.bad), (ticks, 0), "{keys}");
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("in");
    let config = marked(folder.path(), |t| {
        t.replace("width = 10", "width = 10\nmax_ahead = 5")
    });
    put(
        &data,
        "a.csv",
        "1,a\n10,tick\n12,a\n500,tick\n20,tick\n9000,tick\n9010,tick\n",
    );
    refused(&config, &simulated(), "--catch-up");
    assert_eq!(counts(folder.path()), [1, 1]);
    let mut late = simulated();
    late.catch_up = true;
    // a silence of ninety ticks, and events that came after it
    let after = "1,a\n10,tick\n12,a\n500,tick\n20,tick\n1001,a\n1010,tick\n1011,a\n1020,tick\n";
    put(&data, "a.csv", after);
    assert_eq!(go(&config, &late).unwrap().ticks, 102);
    let found = counts(folder.path());
    assert_eq!((found[0], found[1], found[101]), (1, 1, 1));
}

/// Under the events' own clock one after the end says that the end has come, also while the source is followed.
#[test]
fn an_event_after_the_end_closes_it() {
    let folder = tempfile::tempdir().unwrap();
    let config = exact(folder.path(), |t| {
        let t = t.replace("path =", "follow = true\npath =");
        t.replace("end = 200", "end = 15")
    });
    events(folder.path(), &[(1, "a"), (12, "a"), (20, "a")]);
    assert_eq!(go(&config, &simulated()).unwrap().ticks, 2);
    assert_eq!(counts(folder.path()), [1, 1]);
}
