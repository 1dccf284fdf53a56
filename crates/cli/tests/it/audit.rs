//! `reticent audit` and `reticent attack`: verdicts as exit codes, refusals, pictures.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn reticent(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_reticent"))
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("the binary runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn the_exit_code_is_the_verdict() {
    let list = reticent(&["audit"]);
    assert_eq!(list.status.code(), Some(0));
    assert!(said(&list).contains("sparse_vector") && said(&list).contains("noisy-cut"));
    let flagged = reticent(&["audit", "ptt", "--json"]);
    assert_eq!(flagged.status.code(), Some(4), "{}", said(&flagged));
    let report: serde_json::Value = serde_json::from_slice(&flagged.stdout).unwrap();
    assert_eq!(report["exact"]["loss"], "infinite");
    let fine = reticent(&["audit", "counts", "--training", "400", "--runs", "1024"]);
    assert_eq!(fine.status.code(), Some(0), "{}", said(&fine));
    assert!(said(&fine).contains("not flagged"));
}

#[test]
fn bad_requests_are_refused_with_the_remedy() {
    let cases: [(&[&str], &str); 6] = [
        (&["audit", "nobody"], "prints the list"),
        (&["audit", "ptt", "--false-alarm", "0"], "--false-alarm"),
        (&["audit", "--", "true"], "--first"),
        (
            &["attack", "reconstruct", "--epsilon", "-1"],
            "positive number",
        ),
        (&["attack", "float", "--scale", "0"], "positive one"),
        (&["attack", "roc", "--adult", "README.md"], "README.md"),
    ];
    for (arguments, remedy) in cases {
        let output = reticent(arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            said(&output)
        );
        assert!(
            said(&output).contains(remedy),
            "{arguments:?}: {}",
            said(&output)
        );
    }
}

#[test]
fn attacks_draw_pictures() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["gptt", "reconstruct", "roc", "residuals", "float"] {
        let file = folder.path().join(format!("{name}.svg"));
        let out = file.to_str().unwrap();
        let mut arguments = vec!["attack", name, "--json", "--out", out];
        if name == "roc" || name == "residuals" {
            arguments.extend(["--records", "120", "--trials", "20"]);
        }
        let output = reticent(&arguments);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", said(&output));
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(value["attack"], name);
        let picture = std::fs::read_to_string(&file).unwrap();
        assert!(
            picture.starts_with("<svg") && !picture.contains("NaN"),
            "{name}"
        );
    }
}
