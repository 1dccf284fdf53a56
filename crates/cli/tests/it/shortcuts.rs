//! Commands for one release: their flags make a plan, which costs and does what the same plan in a file does.

use crate::examples::json;
use crate::table::{DATASET, Folder, rows};

fn people() -> Folder {
    let folder = Folder::new();
    folder.write("dataset.toml", DATASET);
    folder.write("people.csv", rows(200));
    folder.reticent(&["register", "dataset.toml"]).code(0);
    folder
}

/// A model, its curve from the released model, a threshold off the curve for nothing; the plan that is shown is the one that was run, so running
/// it again is free.
#[test]
fn shortcuts_chain_and_are_plans() {
    let folder = people();
    let fit = [
        "logistic",
        "dataset.toml",
        "--formula",
        "sick ~ age",
        "--epsilon",
        "1",
    ];
    let price = json(
        &folder
            .reticent(&[&fit[..], &["--dry-run", "--json"]].concat())
            .code(0)
            .out,
    );
    assert_eq!(price["total"]["add_remove"]["epsilon"], "1", "{price}");
    assert!(!folder.path("out").exists());
    folder
        .reticent(&fit)
        .code(0)
        .says(&["out/logistic/release.json", "epsilon 1 now"]);
    let plan = folder
        .reticent(&[&fit[..], &["--show-plan"]].concat())
        .code(0)
        .out;
    folder.write("same.toml", plan);
    folder
        .reticent(&["run", "same.toml"])
        .code(0)
        .says(&["epsilon 1 now"]);
    let model = "out/logistic/release.json#logistic";
    folder
        .reticent(&[
            "roc",
            "dataset.toml",
            "--model",
            model,
            "--epsilon",
            "0.5",
            "--id",
            "curve",
        ])
        .code(0)
        .says(&["out/curve/report.html", "epsilon 1.5 now"]);
    folder
        .reticent(&[
            "threshold",
            "dataset.toml",
            "--from",
            "out/curve/release.json#curve",
        ])
        .code(0)
        .says(&["epsilon 1.5 now"]);
    folder
        .reticent(&[
            "quantiles",
            "dataset.toml",
            "--of",
            "age",
            "--levels",
            "0.25",
            "--levels",
            "0.5",
            "--epsilon",
            "0.5",
            "--where",
            "height > 160",
            "--out",
            "q",
        ])
        .code(0)
        .says(&["q/release.json", "epsilon 2 now"]);
}

/// What is wrong in a flag is said of the flag, and nothing is spent.
#[test]
fn wrong_flags_are_refused() {
    let folder = people();
    for (flags, code, words) in [
        (
            &["count", "dataset.toml", "--epsilon", "-1"][..],
            2,
            &["the command line", "greater than 0"][..],
        ),
        (
            &["count", "dataset.toml", "--epsilonn", "1"],
            2,
            &["--epsilon"],
        ),
        (
            &[
                "logistic",
                "dataset.toml",
                "--formula",
                "sick ~ agee",
                "--epsilon",
                "1",
            ],
            2,
            &["agee", "age"],
        ),
        (
            &["count", "nowhere.toml", "--epsilon", "1"],
            2,
            &["nowhere.toml"],
        ),
        (
            &["count", "dataset.toml", "--epsilon", "4"],
            3,
            &["epsilon"],
        ),
        (&["count", "dataset.toml"], 2, &["epsilon"]),
    ] {
        folder.reticent(flags).code(code).says(words);
    }
    let ledger = folder
        .reticent(&["ledger", "show", "dataset.toml", "--json"])
        .code(0)
        .out;
    assert_eq!(
        json(&ledger)["spent"]["add_remove"]["epsilon"],
        "0",
        "{ledger}"
    );
}
