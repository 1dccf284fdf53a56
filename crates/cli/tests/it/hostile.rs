//! Files that are not what they seem: forged releases, outputs that are inputs, declarations changed after registration, rows of nobody.

use std::fmt::Write as _;

use serde_json::Value;

use crate::table::Folder;

const DATASET: &str = r#"
version = 1
id = "people"
data_version = "1"
source = { path = "people.csv", format = "csv" }
neighbours = "add_remove"
unit = "row"
[budget]
epsilon = "1e12"
[ledger]
path = "people.ledger"
[columns.x]
type = "real"
lower = 0
upper = 100
[columns.y]
type = "boolean"
"#;

/// Registered, with 40 rows of x and y.
fn people(change: impl Fn(String) -> String) -> Folder {
    let folder = Folder::new();
    folder.write("dataset.toml", change(DATASET.to_owned()));
    let mut rows = String::new();
    for i in 0..40 {
        writeln!(rows, "{},{}", 2 * i, i % 3 == 0).unwrap();
    }
    folder.write("people.csv", format!("x,y\n{rows}"));
    folder
}

fn plan(folder: &Folder, name: &str, releases: &str) {
    let text = format!("version = 1\ndataset = \"dataset.toml\"\n{releases}");
    folder.write(name, text);
}

fn releases(folder: &Folder, name: &str) -> Vec<Value> {
    let out = folder.reticent(&["run", name, "--json"]).code(0).out;
    let document: Value = serde_json::from_str(&out).unwrap();
    document["releases"].as_array().unwrap().clone()
}

const MODELS: &str = "[[release]]\nid = \"line\"\nkind = \"linear\"\nformula = \"x ~ y\"\nepsilon = \"1e9\"\n\
                      [[release]]\nid = \"odds\"\nkind = \"logistic\"\nformula = \"y ~ x\"\nepsilon = \"1e9\"\n";

#[test]
fn a_forged_release_is_told() {
    let folder = people(|t| t);
    folder.reticent(&["register", "dataset.toml"]).code(0);
    plan(
        &folder,
        "p.toml",
        "[[release]]\nid = \"n\"\nkind = \"count\"\nepsilon = \"1\"\n",
    );
    folder.reticent(&["run", "p.toml"]).code(0);
    let file = "out/p/release.json";
    let verify = ["ledger", "verify", "dataset.toml", "--against", file];
    folder
        .reticent(&verify)
        .code(0)
        .says(&["are those that are stored"]);
    let honest: Value = serde_json::from_slice(&std::fs::read(folder.path(file)).unwrap()).unwrap();
    for (place, value, says) in [
        ("/releases/0/value/count", Value::from(999_999), "`value`"),
        ("/releases/0/kind", Value::from("sum"), "`kind`"),
        ("/releases/0/part", Value::from("test"), "`part`"),
        (
            "/releases",
            Value::from(Vec::<Value>::new()),
            "names no releases",
        ),
        ("/releases/0/receipt/error_95", Value::from(0), "`receipt`"),
        ("/releases/0/flags", Value::from(vec!["odd"]), "`flags`"),
        ("/releases/0/request", Value::from("00"), "no release"),
        ("/relation", Value::from("replace_one"), "`relation`"),
        ("/dataset/id", Value::from("others"), "`dataset.id`"),
    ] {
        let mut forged = honest.clone();
        *forged.pointer_mut(place).unwrap() = value;
        folder.write(file, forged.to_string());
        folder.reticent(&verify).code(3).says(&[says]);
    }
}

/// Predictions replace predictions and nothing else; a run replaces nothing that it reads.
#[test]
fn outputs_spare_inputs() {
    let folder = people(|t| t);
    folder.reticent(&["register", "dataset.toml"]).code(0);
    plan(&folder, "p.toml", MODELS);
    folder.reticent(&["run", "p.toml"]).code(0);
    folder.write("new.csv", "x,y\n1,true\n2,false\n");
    let predict = |out: &str| {
        let model = "out/p/release.json#odds";
        folder.reticent(&["predict", model, "new.csv", "--out", out])
    };
    for taken in [
        "new.csv",
        "out/p/release.json",
        "people.ledger",
        "people.csv",
        "out",
    ] {
        predict(taken).code(2).says(&["--out", "something else"]);
    }
    for _ in 0..2 {
        predict("predicted.csv").code(0);
    }
    let text = std::fs::read_to_string(folder.path("predicted.csv")).unwrap();
    assert!(text.starts_with("probability,class\n") && text.lines().count() == 3);

    let folder = people(|t| t.replace("people.csv", "release.json"));
    std::fs::rename(folder.path("people.csv"), folder.path("release.json")).unwrap();
    folder.reticent(&["register", "dataset.toml"]).code(0);
    plan(&folder, "p.toml", MODELS);
    folder
        .reticent(&["run", "p.toml", "--out", "."])
        .code(2)
        .says(&["written over what the run reads"]);
    folder
        .reticent(&["run", "p.toml", "--out", "results"])
        .code(0);
}

/// The family of a model that stands in a file is looked at before anything is paid, and so are its columns.
#[test]
fn models_of_files_are_of_the_right_family() {
    let folder = people(|t| t);
    folder.reticent(&["register", "dataset.toml"]).code(0);
    plan(&folder, "p.toml", MODELS);
    folder.reticent(&["run", "p.toml"]).code(0);
    for (kind, id, fits) in [
        ("roc", "line", false),
        ("auc", "line", false),
        ("binned_residuals", "line", false),
        ("residuals", "odds", false),
        ("auc", "odds", true),
        ("residuals", "line", true),
    ] {
        let model = format!("out/p/release.json#{id}");
        plan(
            &folder,
            "d.toml",
            &format!(
                "[[release]]\nid = \"d\"\nkind = \"{kind}\"\nmodel = \"{model}\"\nepsilon = 1\n"
            ),
        );
        for command in ["price", "run"] {
            let outcome = folder.reticent(&[command, "d.toml"]);
            if fits {
                outcome.code(0);
            } else {
                outcome.code(2).says(&["this examines", "models"]);
            }
        }
    }
    let file = folder.path("out/p/release.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let crossed = text.replacen("\"upper\": 100.0", "\"upper\": -5.0", 2);
    assert_ne!(text, crossed);
    std::fs::write(&file, crossed).unwrap();
    folder.write("new.csv", "x,y\n1,true\n");
    folder
        .reticent(&["predict", "out/p/release.json#odds", "new.csv"])
        .code(2)
        .says(&["the model's column x", "-5"]);
}

/// Rows without an identifier are refused, or count nowhere: as one unit they would share one bound.
#[test]
fn rows_of_nobody_count_nowhere() {
    let folder = Folder::new();
    let dataset = |rule: &str| {
        format!(
            "{}[columns.person]\ntype = \"id\"\n{rule}\n[columns.g]\ntype = \"text\"\nlevels = [\"a\", \"b\", \"c\"]\n",
            DATASET.split("[columns.x]").next().unwrap().replace(
                "unit = \"row\"",
                "unit = { column = \"person\", max_rows = 1 }"
            )
        )
    };
    folder.write(
        "people.csv",
        "person,g\n,a\nNA,b\n p ,c\np,b\nNaN,b\n-9.0,b\n",
    );
    folder.write("dataset.toml", dataset(""));
    folder
        .reticent(&["register", "dataset.toml"])
        .code(1)
        .says(&["line 2", "person", "identifier is missing", "drop"]);
    folder.write(
        "dataset.toml",
        dataset("missing = \"drop\"\nmissing_values = [\"\", \"NA\", \"-9\"]"),
    );
    folder.reticent(&["register", "dataset.toml"]).code(0);
    plan(
        &folder,
        "p.toml",
        "[[release]]\nid = \"g\"\nkind = \"histogram\"\ncolumn = \"g\"\nepsilon = \"1e9\"\n",
    );
    assert_eq!(
        releases(&folder, "p.toml")[0]["value"]["counts"],
        serde_json::json!([0, 0, 1])
    );
    folder.write("dataset.toml", dataset("missing = \"impute\""));
    folder
        .reticent(&["price", "p.toml"])
        .code(2)
        .says(&["missing"]);
}

/// What rejects a cell is part of the registration: with a public number of rows it decides what a mean is divided by.
#[test]
fn policies_are_registered() {
    let replace = |t: String| {
        t.replace("add_remove", "replace_one")
            .replace("unit = \"row\"", "unit = \"row\"\nrows = 40")
    };
    let folder = people(|t| replace(t).replace("upper = 100", "upper = 100\nmissing = \"drop\""));
    folder.reticent(&["register", "dataset.toml"]).code(0);
    plan(
        &folder,
        "p.toml",
        "[[release]]\nid = \"m\"\nkind = \"mean\"\nof = \"x\"\nepsilon = \"1\"\n",
    );
    folder.reticent(&["run", "p.toml"]).code(0);
    folder.write("dataset.toml", replace(DATASET.to_owned()));
    folder
        .reticent(&["run", "p.toml"])
        .code(3)
        .says(&["not what was registered"]);
}

/// Edges that leave something out would count it in the end cells.
#[test]
fn edges_reach_over_the_bounds() {
    let folder = people(|t| t);
    folder.reticent(&["register", "dataset.toml"]).code(0);
    let ask = |kind: &str, more: &str| {
        let text = format!(
            "{more}\n[[release]]\nid = \"h\"\nkind = \"{kind}\"\ncolumn = \"x\"\nepsilon = \"1e9\"\n"
        );
        let (head, tail) = text.split_once('\n').unwrap();
        plan(&folder, "p.toml", &format!("{tail}{head}\n"));
    };
    for (kind, edges) in [
        ("histogram", "bins = [10, 20, 30]"),
        ("histogram", "bins = [0, 20, 99]"),
        ("running_total", "steps = [1, 50, 100]"),
    ] {
        ask(kind, edges);
        folder
            .reticent(&["run", "p.toml"])
            .code(2)
            .says(&["do not reach from 0 to 100", "where"]);
    }
    ask("histogram", "bins = [0, 20, 100]");
    assert_eq!(
        releases(&folder, "p.toml")[0]["value"]["counts"],
        serde_json::json!([10, 30])
    );
    let text = std::fs::read_to_string(folder.path("p.toml")).unwrap();
    let within = text
        .replace("[0, 20, 100]", "[10, 20, 30]")
        .replace("[[release]]", "where = \"x >= 10 & x <= 30\"\n[[release]]");
    folder.write("p.toml", within);
    assert_eq!(
        releases(&folder, "p.toml")[0]["value"]["counts"],
        serde_json::json!([5, 6])
    );
}

/// Paths of sources and ledgers: the variable for data that may not lie here, patterns that mean the ledger, things that are no ledger.
#[test]
fn paths_are_what_they_are_declared_to_be() {
    let folder = people(|t| t.replace("\"people.csv\"", "\"$RETICENT_DATA/people.csv\""));
    let register = |set: bool| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_reticent"));
        command
            .current_dir(folder.0.path())
            .args(["register", "dataset.toml"]);
        if set {
            command.env("RETICENT_DATA", folder.0.path());
        } else {
            command.env_remove("RETICENT_DATA");
        }
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, said) = register(false);
    assert!(
        code == Some(2) && said.contains("RETICENT_DATA is not set"),
        "{said}"
    );
    assert_eq!(register(true).0, Some(0));

    let folder = people(|t| t.replace("\"people.csv\"", "\"people*\""));
    folder
        .reticent(&["register", "dataset.toml"])
        .code(2)
        .says(&["source.path", "belongs to the ledger"]);
    for path in ["people.csv", "dataset.toml", "."] {
        let folder = people(|t| t.replace("people.ledger", path));
        let outcome = folder.reticent(&["register", "dataset.toml"]);
        assert!(outcome.code == 3 || outcome.code == 2, "{}", outcome.err);
        let said = &outcome.err;
        assert!(
            said.contains("not a sound ledger") || said.contains("belongs to the ledger"),
            "{said}"
        );
    }
}

/// Noise beyond all scales is refused before it is paid for.
#[test]
fn impossible_noise_is_refused_in_time() {
    let folder = people(|t| {
        let t = t.replace(
            "unit = \"row\"",
            "unit = { column = \"who\", max_rows = 1000000 }",
        );
        let wide = t.replace("lower = 0\nupper = 100", "lower = -1e300\nupper = 1e300");
        wide.replace("unit =", "size_hint = 2\nunit =") + "[columns.who]\ntype = \"id\"\n"
    });
    folder.write("people.csv", "x,y,who\n1,true,a\n2,false,b\n");
    folder.reticent(&["register", "dataset.toml"]).code(0);
    for kind in ["sum", "mean"] {
        let release = format!(
            "[[release]]\nid = \"s\"\nkind = \"{kind}\"\nof = \"x\"\nepsilon = \"1e-12\"\n"
        );
        plan(&folder, "p.toml", &release);
        for command in ["price", "run"] {
            folder
                .reticent(&[command, "p.toml"])
                .code(2)
                .says(&["noise scale"]);
        }
    }
}

/// Rounds of a selection cost at most what was asked, to the last digit, also where the budget is counted in rho.
#[test]
fn rounds_fit_their_budget_in_rho() {
    let folder = people(|t| t.replace("epsilon = \"1e12\"", "rho = \"1e12\""));
    folder.reticent(&["register", "dataset.toml"]).code(0);
    for method in ["peeling", "permute_and_flip", "noisy_max"] {
        for (k, budget) in [
            (2, "epsilon = \"1/7\""),
            (3, "epsilon = \"0.3\""),
            (5, "rho = \"2\""),
            (5, "rho = \"1e-9\""),
        ] {
            let release = format!(
                "[[release]]\nid = \"t\"\nkind = \"top_k\"\ncolumn = \"x\"\nbins = 10\nk = {k}\nmethod = \"{method}\"\n{budget}\n"
            );
            plan(&folder, "p.toml", &release);
            folder.reticent(&["run", "p.toml"]).code(0);
        }
    }
}

/// Where a release is given ρ, its steps together cost that, also where the rules of its kind change with ε; where it is given ε, they have that ε together.
#[test]
fn steps_use_the_rho_that_is_paid() {
    for (relation, size) in [
        ("add_remove", "size_hint = 40"),
        ("replace_one", "rows = 40"),
    ] {
        let folder = people(|t| {
            let t = t.replace("epsilon = \"1e12\"", "rho = \"1e12\"");
            t.replace(
                "neighbours = \"add_remove\"",
                &format!("{size}\nneighbours = \"{relation}\""),
            )
        });
        folder.reticent(&["register", "dataset.toml"]).code(0);
        let deciles = "levels = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]\n";
        let plain = [
            format!("kind = \"quantiles\"\nof = \"x\"\n{deciles}"),
            format!("kind = \"quantiles\"\nof = \"x\"\nmethod = \"recursive\"\n{deciles}"),
            "kind = \"mean\"\nof = \"x\"\n".to_owned(),
            "kind = \"bounds\"\nof = \"x\"\n".to_owned(),
            "kind = \"count\"\n".to_owned(),
        ];
        let models = [
            "kind = \"roc\"\nmodel = \"odds\"\n".to_owned(),
            "kind = \"residuals\"\nmodel = \"line\"\n".to_owned(),
            "kind = \"binned_residuals\"\nmodel = \"odds\"\n".to_owned(),
        ];
        for (at, kind) in plain.iter().chain(&models).enumerate() {
            for (budget, rho, epsilon) in [
                ("rho = \"0.5\"", 0.5, None),
                ("rho = \"1e-6\"", 1e-6, None),
                ("epsilon = \"1\"", 0.5, Some(1.0)),
            ] {
                let fits = if at < plain.len() { "" } else { MODELS };
                let fits = fits.replace("epsilon = \"1e9\"", "rho = \"100\"");
                let release = format!("{fits}[[release]]\nid = \"r\"\n{kind}{budget}\n");
                plan(&folder, "p.toml", &release);
                let all = releases(&folder, "p.toml");
                let release = all.iter().find(|r| r["id"] == "r").unwrap();
                let spent = cost(&release["receipt"]["event"], relation);
                let seen = format!("{relation} {kind}{budget}: {spent:?}");
                assert!(spent.0 <= rho * (1.0 + 1e-12), "{seen}");
                match epsilon {
                    // where bins change with ε the cost jumps: the place before the jump is found to a part in 2^16
                    None => assert!(spent.0 > rho * 0.999, "{seen}"),
                    // calibrated for replacements some steps cost less than they have
                    Some(epsilon) => assert!(spent.1 < epsilon * (1.0 + 1e-9), "{seen}"),
                }
            }
        }
    }
}

/// What all steps of an event cost in ρ and in ε.
fn cost(event: &Value, relation: &str) -> (f64, f64) {
    let (kind, body) = event.as_object().unwrap().iter().next().unwrap();
    let loss = || {
        let text = body["loss"][relation].as_str().unwrap();
        let (above, below) = text.split_once('/').unwrap_or((text, "1"));
        above.parse::<f64>().unwrap() / below.parse::<f64>().unwrap()
    };
    match kind.as_str() {
        "sequence" => {
            let inner = body.as_array().unwrap().iter();
            let each = inner.map(|e| cost(e, relation));
            each.fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
        }
        "pure" => (loss().powi(2) / 2.0, loss()),
        "bounded_range" => (loss().powi(2) / 8.0, loss()),
        "free" => (0.0, 0.0),
        other => panic!("{other}"),
    }
}

/// Metadata that contradict themselves are refused, with their line.
#[test]
fn metadata_name_one_unit() {
    let folder = Folder::new();
    let table = |more: &str, second: &str| {
        format!(
            "'':\n  s:\n    t:\n      {more}\n      a:\n        type: int\n        private_id: True\n      b:\n        type: int\n{second}        lower: 0\n        upper: 9\n"
        )
    };
    for (text, says) in [
        (
            table("row_privacy: False", "        private_id: True\n"),
            "both marked",
        ),
        (table("max_ids: abc", ""), "`max_ids` is not a whole number"),
        (table("max_ids: 0", ""), "`max_ids` is not a whole number"),
        (table("rows: -1", ""), "`rows` is not a whole number"),
    ] {
        folder.write("m.yaml", text);
        folder
            .reticent(&["init", "m.yaml"])
            .code(2)
            .says(&["line", says]);
    }
    folder.write("m.yaml", table("max_ids: 3", ""));
    let out = folder.reticent(&["init", "m.yaml"]).code(0).out;
    assert!(out.contains("column = \"a\", max_rows = 3"), "{out}");
}
