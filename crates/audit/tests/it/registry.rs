//! Every test that a proof names exists, and every registry row names tests that exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use reticent_audit::registry::{COMPOSITES, STEPS};

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(under: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(under) else {
        return;
    };
    for path in entries.filter_map(|e| Some(e.ok()?.path())) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// (file stem or folder, test function) of every test in the workspace.
fn tests() -> BTreeSet<(String, String)> {
    let mut files = Vec::new();
    sources(&crates(), &mut files);
    let mut tests = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
        let folder = file
            .parent()
            .unwrap()
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let mut marked = false;
        for line in text.lines().map(str::trim) {
            if line == "#[test]" {
                marked = true;
            } else if marked && line.starts_with("fn ") {
                let name: String = line[3..]
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                tests.insert((stem.clone(), name.clone()));
                tests.insert((folder.clone(), name));
                marked = false;
            }
        }
    }
    tests
}

/// Names such as `a::b`, `a::{b, c}` or `b` in the text of one `Checked by` section.
fn names(section: &str) -> Vec<String> {
    let mut names = Vec::new();
    for code in section.split('`').skip(1).step_by(2) {
        let code: String = code.split_whitespace().collect();
        match code.split_once('{') {
            Some((path, list)) => names.extend(
                list.trim_end_matches('}')
                    .split(',')
                    .filter(|n| !n.is_empty())
                    .map(|n| format!("{path}{n}")),
            ),
            None => names.push(code),
        }
    }
    names
}

fn exists(name: &str, tests: &BTreeSet<(String, String)>) -> bool {
    let mut path: Vec<&str> = name.split("::").filter(|s| *s != "tests").collect();
    let function = path.pop().unwrap_or_default();
    match path.pop() {
        Some(module) => tests.contains(&(module.to_owned(), function.to_owned())),
        None => tests.iter().any(|(_, f)| f == function),
    }
}

/// Files whose tests are still being written: their names are listed, not required.
const PENDING: [&str; 0] = [];

#[test]
fn proofs_name_tests_that_exist() {
    let tests = tests();
    let mut files = Vec::new();
    for trusted in ["noise", "accounting", "ledger", "mechanisms"] {
        sources(&crates().join(trusted).join("src"), &mut files);
    }
    sources(&crates().join("engine/src/scan"), &mut files);
    let (mut sections, mut missing) = (0, Vec::new());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut section: Option<String> = None;
        for line in text.lines().map(str::trim).chain(["end"]) {
            let doc = line
                .strip_prefix("///")
                .or_else(|| line.strip_prefix("//!"))
                .map(str::trim);
            let heading = doc.is_none_or(|d| d.starts_with("# "));
            if heading && let Some(done) = section.take() {
                sections += 1;
                let found = names(&done);
                if found.is_empty() {
                    missing.push(format!("{}: no test named", file.display()));
                }
                for name in found {
                    if !exists(&name, &tests) {
                        missing.push(format!("{}: {name}", file.display()));
                    }
                }
            }
            match (doc, &mut section) {
                (Some("# Checked by"), _) => section = Some(String::new()),
                (Some(text), Some(section)) => {
                    section.push_str(text);
                    section.push(' ');
                }
                _ => {}
            }
        }
    }
    missing.retain(|m: &String| {
        let pending = PENDING.iter().any(|p| m.contains(p));
        if pending {
            println!("still to come: {m}");
        }
        !pending
    });
    assert!(
        sections >= 15,
        "only {sections} sections found: the scan is broken"
    );
    assert!(
        missing.is_empty(),
        "proofs name tests that do not exist:\n{}",
        missing.join("\n")
    );
}

#[test]
fn registry_rows_name_tests_that_exist() {
    let tests = tests();
    let mut seen = BTreeSet::new();
    for row in STEPS.iter().chain(COMPOSITES) {
        assert!(seen.insert(row.name), "{} twice", row.name);
        assert!(!row.methods.is_empty() && !row.tests.is_empty() && !row.claim.is_empty());
        for name in row.tests {
            assert!(exists(name, &tests), "{}: {name}", row.name);
        }
    }
}

/// The scan itself: lists, paths and names that do not exist.
#[test]
fn names_are_read_as_written() {
    assert_eq!(
        names("`a::tests::{b, c}`, `d` and `e::f`"),
        ["a::tests::b", "a::tests::c", "d", "e::f"]
    );
    let tests = BTreeSet::from([("a".to_owned(), "b".to_owned())]);
    assert!(exists("a::tests::b", &tests) && exists("b", &tests));
    assert!(!exists("a::c", &tests) && !exists("x::b", &tests));
}
