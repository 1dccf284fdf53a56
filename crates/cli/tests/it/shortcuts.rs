//! Commands for one release: their flags make a plan, which costs and does what the same plan in a file does.

use std::path::Path;

use reticent_engine::shortcut::{example, examples, kinds};

use crate::examples::{example as example_folder, json};
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

/// Wrong commands, with the exit code and what is said.
const WRONG: &[(&[&str], i32, &[&str])] = &[
    (
        &["count", "dataset.toml", "--epsilon", "-1"],
        2,
        &["refused: --epsilon \"-1\": must be greater than 0"],
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
    (
        &["count", "dataset.toml"],
        2,
        &["refused: the release has no privacy budget. Write --epsilon 0.5"],
    ),
    (
        &["count", "dataset.toml", "--epsilon", "1", "--delta", "1e-7"],
        2,
        &["unexpected argument '--delta'"],
    ),
    (
        &["auc", "dataset.toml", "--epsilon", "1"],
        2,
        &["refused: --model is missing. Name a released one"],
    ),
    (
        &[
            "threshold",
            "dataset.toml",
            "--from",
            "nope/release.json#roc",
        ],
        2,
        &["refused: --from: nope/release.json cannot be read"],
    ),
    (
        &[
            "count",
            "dataset.toml",
            "--epsilon",
            "1",
            "--where",
            "ages > 1",
        ],
        2,
        &["refused: --where: ", "Did you mean `age`"],
    ),
    (
        &[
            "histogram",
            "dataset.toml",
            "--column",
            "age",
            "--bins",
            "0",
            "--epsilon",
            "1",
        ],
        2,
        &["refused: --bins 0: must be between 1 and"],
    ),
    (
        &[
            "covariance",
            "dataset.toml",
            "--columns",
            "age",
            "--columns",
            "height",
            "--data-norm",
            "0",
            "--epsilon",
            "1",
        ],
        2,
        &[
            "refused: --data-norm \"0\": must be greater than 0",
            "--data-norm 1",
        ],
    ),
    (
        &[
            "logistic",
            "dataset.toml",
            "--formula",
            "sick ~ age",
            "--epsilon",
            "1",
            "--features",
            "x",
        ],
        2,
        &["unexpected argument '--features'"],
    ),
    (
        &[
            "naive-bayes",
            "dataset.toml",
            "--formula",
            "sick ~ age",
            "--epsilon",
            "0.5",
            "--keep",
            INJECTED,
        ],
        2,
        &["refused: --keep", "expected a table"],
    ),
    (
        &[
            "naive-bayes",
            "dataset.toml",
            "--formula",
            "sick ~ age",
            "--epsilon",
            "0.5",
            "--keep",
            "3",
        ],
        2,
        &["refused: --keep 3: expected a table, found a number"],
    ),
    (
        &[
            "naive-bayes",
            "dataset.toml",
            "--formula",
            "sick ~ age",
            "--epsilon",
            "0.5",
            "--keep",
            "{ top = 1, above = 2 }",
        ],
        2,
        &["refused: --keep {…}: `top` and `above` exclude each other"],
    ),
    (
        &["predict", "#model", "people.csv"],
        2,
        &["names no release"],
    ),
    (
        &[
            "crosstab",
            "dataset.toml",
            "--columns",
            "[\"group\"]\nepsilon = \"1\"\n#",
        ],
        2,
        &["no privacy budget"],
    ),
];

/// What is wrong in a flag is said of the flag, and nothing is spent.
#[test]
fn wrong_flags_are_refused() {
    let folder = people();
    for (flags, code, words) in WRONG {
        folder.reticent(flags).code(*code).says(words);
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

/// A table, and behind it a release of its own.
const INJECTED: &str = "{ top = 1 }\n\n[[release]]\nkind = \"count\"\nid = \"x\"\nepsilon = \"2\"";

/// Refusals for machines name the flag, and no line of a plan that is in no file.
#[test]
fn refusals_for_machines_name_flags() {
    let folder = people();
    let said = folder
        .reticent(&[
            "verify",
            "dataset.toml",
            "--formula",
            "sick ~ age",
            "--term",
            "age",
            "--within",
            "1",
            "--epsilon",
            "1",
            "--json",
        ])
        .code(2)
        .err;
    let refusal = &json(&said)["refusal"];
    assert_eq!(refusal["key"], "--within", "{said}");
    assert!(
        refusal["file"].is_null() && refusal["line"].is_null(),
        "{said}"
    );
}

/// Numbers, lists and names in every form that is said to be taken.
#[test]
fn values_are_read_as_they_are_meant() {
    let folder = Folder::new();
    let levels = "levels = [\"[0,18)\", \"[1, 2]\", \"x\"]\nother = \"x\"";
    let dataset = DATASET.replace("levels = [\"a\", \"b\", \"c\"]", levels);
    folder.write(
        "dataset.toml",
        dataset.replace("[columns.group]", "[columns.\"[grp]\"]"),
    );
    folder.write("people.csv", rows(200).replace("group", "[grp]"));
    folder.reticent(&["register", "dataset.toml"]).code(0);
    let outcome = [
        "logistic",
        "dataset.toml",
        "--formula",
        "`[grp]` ~ age",
        "--epsilon",
        "1",
    ];
    for (flags, line) in [
        (
            &[&outcome[..], &["--positive", "[0,18)"]].concat()[..],
            "positive = \"[0,18)\"",
        ),
        (
            &[&outcome[..], &["--positive", "\"[1, 2]\""]].concat(),
            "positive = \"[1, 2]\"",
        ),
        (
            &[&outcome[..], &["--positive", "x", "--positive", "[0,18)"]].concat(),
            "positive = [\"x\", \"[0,18)\"]",
        ),
        (
            &[
                "crosstab",
                "dataset.toml",
                "--columns",
                "[grp]",
                "--epsilon",
                "1",
            ],
            "columns = [\"[grp]\"]",
        ),
        (
            &[
                "histogram",
                "dataset.toml",
                "--column",
                "age",
                "--bins",
                "0",
                "--bins",
                "100",
                "--epsilon",
                "1",
            ],
            "bins = [\"0\", \"100\"]",
        ),
        (
            &[
                "histogram",
                "dataset.toml",
                "--column",
                "age",
                "--bins",
                "020",
                "--epsilon",
                "1",
            ],
            "bins = 20",
        ),
        (
            &[
                "linear",
                "dataset.toml",
                "--formula",
                "height ~ age",
                "--naive",
                "--epsilon",
                "1",
            ],
            "naive = true",
        ),
        (
            &[
                "count",
                "dataset.toml",
                "--epsilon",
                "1",
                "--where",
                "-age < 0",
            ],
            "where = \"-age < 0\"",
        ),
    ] {
        folder.reticent(&[flags, &["--dry-run"]].concat()).code(0);
        folder
            .reticent(&[flags, &["--show-plan"]].concat())
            .code(0)
            .says(&[line]);
    }
}

/// Thresholds of decisions: one is enough, and their order says nothing.
#[test]
fn decisions_are_asked_for_in_any_order() {
    let folder = people();
    folder
        .reticent(&[
            "logistic",
            "dataset.toml",
            "--formula",
            "sick ~ age",
            "--epsilon",
            "1",
        ])
        .code(0);
    let roc = [
        "roc",
        "dataset.toml",
        "--model",
        "out/logistic/release.json#logistic",
        "--epsilon",
        "0.5",
    ];
    let request = |more: &[&str]| {
        folder.reticent(&[&roc[..], more].concat()).code(0);
        let text = std::fs::read_to_string(folder.path("out/roc/release.json")).unwrap();
        json(&text)["releases"].as_array().unwrap().last().unwrap()["request"].clone()
    };
    let plain = request(&[]);
    assert_eq!(request(&["--decide-at", ".5"]), plain);
    let two = request(&["--decide-at", "0.5", "--decide-at", "0.25"]);
    assert_eq!(request(&["--decide-at", "[0.25, 0.5, 0.25]"]), two);
    assert_ne!(two, plain);
}

/// Results of another request do not vanish without a word, and the same request again is no other.
#[test]
fn replaced_results_are_remarked() {
    let folder = people();
    let count = ["count", "dataset.toml", "--epsilon", "0.5"];
    for (more, remarked) in [
        (&[][..], false),
        (&[], false),
        (&["--where", "age > 50"], true),
        (&["--out", "elsewhere"], false),
    ] {
        let said = folder.reticent(&[&count[..], more].concat()).code(0).err;
        assert_eq!(said.contains("note: out/count held"), remarked, "{said}");
    }
}

/// A path that a plan cannot hold is not another path.
#[cfg(target_os = "linux")]
#[test]
fn a_path_in_no_utf_8_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let folder = people();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_reticent"))
        .current_dir(folder.path("."))
        .args(["count", "--epsilon", "1"])
        .arg(std::ffi::OsStr::from_bytes(b"d\xff.toml"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("DATASET") && said.contains("not a path in UTF-8"),
        "{said}"
    );
}

/// Every kind's help shows a command, which runs on the examples.
#[test]
fn every_example_of_the_help_runs() {
    let folder = Folder::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for file in [
        "adult/dataset.toml",
        "adult/adult.csv.gz",
        "pums/dataset.toml",
        "pums/pums.csv",
    ] {
        let to = folder.path("examples").join(file);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(root.join("examples").join(file), to).unwrap();
    }
    let all = examples();
    assert_eq!(all.len(), kinds().len());
    for (kind, arguments) in all {
        let flags: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let typed = example(kind).unwrap();
        folder
            .reticent(&[flags[0], "--help"])
            .code(0)
            .says(&["Example:", &typed]);
        folder
            .reticent(&[&flags[..], &["--dry-run"]].concat())
            .code(0);
        if ["logistic", "linear", "covariance", "roc"].contains(&kind) {
            folder.reticent(&flags).code(0);
        }
    }
}

/// A model fitted under a condition predicts within the bounds that the condition left it.
#[test]
fn predictions_stay_in_the_bounds_of_the_condition() {
    let folder = example_folder("pums");
    folder.write(
        "new.csv",
        "income,educ,age\n-5,5,20\n0,5,31\n1,5,59\n100,5,70\n",
    );
    for (formula, condition, equal) in [
        (
            "age ~ log(income) + educ",
            "income > 0",
            &[(0, 1), (1, 2)][..],
        ),
        ("educ ~ age", "age > 30 & age < 60", &[(0, 1), (2, 3)]),
    ] {
        let fit = [
            "linear",
            "dataset.toml",
            "--formula",
            formula,
            "--where",
            condition,
            "--epsilon",
            "3",
            "--delta",
            "1e-7",
        ];
        folder.reticent(&fit).code(0);
        let out = folder
            .reticent(&["predict", "out/linear/release.json#linear", "new.csv"])
            .code(0)
            .out;
        let lines: Vec<&str> = out.lines().skip(1).collect();
        assert_eq!(lines.len(), 4, "{out}");
        assert!(
            lines.iter().all(|l| l.parse::<f64>().unwrap().is_finite()),
            "{out}"
        );
        for (a, b) in equal {
            assert_eq!(lines[*a], lines[*b], "{out}");
        }
        assert_ne!(lines[1], lines[3], "{out}");
    }
}
