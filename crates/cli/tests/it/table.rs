//! Small data sets for the tests.

use std::path::{Path, PathBuf};

use std::process::Command;

/// A folder with a data set in it.
pub(crate) struct Folder(pub(crate) tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("written");
        path
    }

    /// `reticent` with these arguments, run in the folder.
    pub(crate) fn reticent(&self, arguments: &[&str]) -> Outcome {
        reticent_in(self.0.path(), arguments)
    }
}

/// What a run of the binary came to.
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Outcome {
    /// Asserts an exit code, showing what was printed.
    pub(crate) fn code(self, expected: i32) -> Self {
        assert_eq!(
            self.code, expected,
            "stdout:\n{}\nstderr:\n{}",
            self.out, self.err
        );
        assert!(!self.err.contains("panicked"), "a panic: {}", self.err);
        self
    }

    /// Asserts that the message names all of these.
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(
                self.err.contains(word) || self.out.contains(word),
                "{word:?} is missing in:\n{}\n{}",
                self.out,
                self.err
            );
        }
        self
    }
}

pub(crate) fn reticent_in(folder: &Path, arguments: &[&str]) -> Outcome {
    let output = Command::new(env!("CARGO_BIN_EXE_reticent"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("it runs");
    Outcome {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A data set of 200 people with an age, a group and an outcome; private, so it must be registered.
pub(crate) const DATASET: &str = r#"
version = 1
id = "people"
data_version = "1"
source = { path = "people.csv", format = "csv" }
neighbours = "add_remove"
unit = "row"
size_hint = 200
[budget]
epsilon = "3"
[ledger]
path = "people.ledger"
[columns.age]
type = "integer"
lower = 0
upper = 100
[columns.group]
type = "text"
levels = ["a", "b", "c"]
[columns.height]
type = "real"
lower = 50
upper = 250
[columns.sick]
type = "text"
levels = ["no", "yes"]
"#;

pub(crate) fn rows(n: usize) -> String {
    let mut text = String::from("age,group,height,sick\n");
    for i in 0..n {
        let age = (i * 37) % 101;
        let group = ["a", "b", "c"][i % 3];
        let sick = if (age + i % 7) > 55 { "yes" } else { "no" };
        text.push_str(&format!("{age},{group},{}.5,{sick}\n", 150 + (i * 13) % 50));
    }
    text
}

pub(crate) const PLAN: &str = r#"
version = 1
dataset = "dataset.toml"
split = { test = "1/2", by = "age", salt = "s" }
[[release]]
id = "people"
kind = "count"
epsilon = "0.25"
[[release]]
id = "model"
kind = "logistic"
formula = "sick ~ age + group"
positive = "yes"
epsilon = "1"
[[release]]
id = "roc"
kind = "roc"
model = "model"
epsilon = "0.5"
[[release]]
id = "binned"
kind = "binned_residuals"
model = "model"
epsilon = "0.5"
"#;

/// A folder with data, declaration and plan; registered.
pub(crate) fn registered() -> Folder {
    let folder = unregistered();
    folder.reticent(&["register", "dataset.toml"]).code(0);
    folder
}

pub(crate) fn unregistered() -> Folder {
    let folder = Folder::new();
    folder.write("people.csv", rows(200));
    folder.write("dataset.toml", DATASET);
    folder.write("plan.toml", PLAN);
    folder
}
