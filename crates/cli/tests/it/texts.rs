//! Columns of tokens: a table of short texts through `select`, naive Bayes, logistic regression and a ROC curve.

use std::fmt::Write as _;

use serde_json::Value;

use crate::examples::{json, price_equals_ledger};
use crate::table::Folder;

const DATASET: &str = r#"
version = 1
id = "messages"
data_version = "1"
source = { path = "messages.csv" }
neighbours = "add_remove"
size_hint = 6000
[budget]
epsilon = "100"
[ledger]
path = "messages.ledger"
auto_register = true
[columns.spam]
type = "text"
levels = ["no", "yes"]
[columns.hour]
type = "integer"
lower = 0
upper = 23
[columns.text]
type = "tokens"
most = 6
words = "words.txt"
stop = "english"
"#;

const PLAN: &str = r#"
version = 1
dataset = "dataset.toml"
split = { test = "1/3", by = "hour" }
[[release]]
id = "sel"
kind = "select"
features = ["text", "(hour > 11)"]
label = "spam"
keep = { top = 3 }
epsilon = "4"
[[release]]
id = "bayes"
kind = "naive_bayes"
features = "sel"
epsilon = "4"
[[release]]
id = "odds"
kind = "logistic"
features = "sel"
epsilon = "8"
[[release]]
id = "whole"
kind = "naive_bayes"
formula = "spam ~ text + (hour > 11)"
epsilon = "4"
[[release]]
id = "curves"
kind = "roc"
models = ["bayes", "odds", "whole"]
epsilon = "9"
[[release]]
id = "area"
kind = "auc"
model = "bayes"
epsilon = "4"
"#;

/// 6,000 messages: half are spam; of those 3 in 4 say "free", and of the others 3 in 4 say "lunch"; 40 further words say nothing.
fn messages(bytes: &mut String) {
    bytes.push_str("hour,text,spam\n");
    let mut state = 1u64;
    let mut next = |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for i in 0..6000u64 {
        let spam = next(2) == 1;
        let mut text = String::new();
        for _ in 0..next(5) {
            let _ = write!(text, "the word{} ", next(40));
        }
        if next(4) > 0 {
            text.push_str(if spam { "FREE! free" } else { "Lunch?" });
        }
        let _ = writeln!(
            bytes,
            "{},\"{text}\",{}",
            i % 24,
            if spam { "yes" } else { "no" }
        );
    }
}

fn folder() -> Folder {
    let folder = Folder::new();
    let mut rows = String::new();
    messages(&mut rows);
    folder.write("messages.csv", &rows);
    let words: Vec<String> = (0..40).map(|i| format!("word{i}")).collect();
    folder.write("words.txt", format!("{} free lunch\n", words.join(" ")));
    folder.write("dataset.toml", DATASET);
    folder.write("plan.toml", PLAN);
    folder
}

#[test]
fn features_are_selected_and_used() {
    let folder = folder();
    price_equals_ledger(&folder, "plan.toml");
    let text = std::fs::read_to_string(folder.path("out/plan/release.json")).unwrap();
    let release = json(&text);
    let all = release["releases"].as_array().unwrap();
    let value = |id: &str| all.iter().find(|r| r["id"] == id).unwrap()["value"].clone();
    // About 1,500 of 2,000 training records of a class say its word; the noise of a count has scale 7 / 4.
    let sel = value("sel");
    let mut best: Vec<&str> = (sel["features"].as_array().unwrap().iter().take(2))
        .map(|f| f.as_str().unwrap())
        .collect();
    best.sort_unstable();
    assert_eq!(best, ["text=free", "text=lunch"]);
    assert_eq!(sel["candidates"], 43);
    assert_eq!(
        (sel["score"].as_str(), sel["method"].as_str()),
        (Some("difference"), Some("counts"))
    );
    assert!(sel["scores"][0].as_f64().unwrap() > 1000.0, "{sel}");
    let weight = |id: &str, name: &str| {
        let terms = value(id)["terms"].clone();
        let found = terms.as_array().unwrap().iter().find(|t| t["name"] == name);
        found.and_then(|t| t["estimate"].as_f64())
    };
    assert_eq!(value("bayes")["counts"].as_object().unwrap().len(), 3);
    assert_eq!(value("whole")["counts"].as_object().unwrap().len(), 43);
    for id in ["bayes", "odds", "whole"] {
        assert!(weight(id, "text=free").unwrap() > 1.0, "{id}");
        assert!(weight(id, "text=lunch").unwrap() < -1.0, "{id}");
    }
    // A record has its word in 3 of 4 cases and is guessed else: 15/16 + 1/32.
    let area = value("area")["auc"].as_f64().unwrap();
    assert!((area - 0.969).abs() < 0.05, "{area}");
    for curve in value("curves")["models"].as_array().unwrap() {
        let auc = curve["auc"].as_f64().unwrap();
        assert!((auc - 0.969).abs() < 0.06, "{curve}");
    }
    let report = std::fs::read_to_string(folder.path("out/plan/report.html")).unwrap();
    for words in ["Features, of 43,", "Chosen features", "text=free"] {
        assert!(report.contains(words), "{words}");
    }
    let priced = folder.reticent(&["price", "plan.toml"]).code(0).out;
    assert!(priced.contains("43 features"), "{priced}");
    for id in ["bayes", "odds", "whole"] {
        let area = area_of_predictions(&folder, id);
        assert!((area - 0.969).abs() < 0.02, "{id} {area}");
    }
    // Registered words are part of the declaration.
    folder.write("words.txt", "free lunch");
    let plan = PLAN.replace("top = 3", "top = 1");
    folder.write("plan.toml", &plan);
    let refused = folder.reticent(&["run", "plan.toml"]).code(3).err;
    assert!(refused.contains("not what was registered"), "{refused}");
}

/// The exact area under the ROC curve of what `predict` says of all messages.
fn area_of_predictions(folder: &Folder, id: &str) -> f64 {
    let model = format!("out/plan/release.json#{id}");
    let out = folder
        .reticent(&["predict", &model, "messages.csv"])
        .code(0)
        .out;
    let messages = std::fs::read_to_string(folder.path("messages.csv")).unwrap();
    let (mut spam, mut other) = (Vec::new(), Vec::new());
    for (line, message) in out.lines().zip(messages.lines()).skip(1) {
        let p: f64 = line.split(',').next().unwrap().parse().unwrap();
        if message.ends_with("yes") {
            &mut spam
        } else {
            &mut other
        }
        .push(p);
    }
    assert_eq!(spam.len() + other.len(), 6000);
    let mut above = 0.0;
    for yes in &spam {
        for no in &other {
            above += if yes > no {
                1.0
            } else if yes < no {
                0.0
            } else {
                0.5
            };
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "a few thousand")]
    let pairs = (spam.len() * other.len()) as f64;
    above / pairs
}

/// Every way of choosing, also one that may choose nothing; all are priced before and paid once, and what becomes of the
/// choice can be examined.
#[test]
fn every_way_of_choosing_runs() {
    let folder = folder();
    let mut plan = "version = 1\ndataset = \"dataset.toml\"\n".to_owned();
    for (i, keys) in [
        "keep = { top = 2 }\nscoring = \"total\"",
        "keep = { top = 40 }\nscoring = \"information\"",
        "keep = { above = 1e9 }\nscoring = \"purity\"",
        "keep = { above = 100 }\nscoring = \"total\"\nmethod = \"sparse_vector\"\nanswers = 2",
        "keep = { top = 2 }\nmethod = \"clusters\"\nclusters = 4",
    ]
    .iter()
    .enumerate()
    {
        let _ = write!(
            plan,
            "[[release]]\nid = \"sel{i}\"\nkind = \"select\"\nfeatures = [\"text\"]\nlabel = \"spam\"\n{keys}\nepsilon = 2\n\
             [[release]]\nid = \"bayes{i}\"\nkind = \"naive_bayes\"\nfeatures = \"sel{i}\"\nepsilon = 2\n\
             [[release]]\nid = \"odds{i}\"\nkind = \"logistic\"\nfeatures = \"sel{i}\"\nepsilon = 2\n\
             [[release]]\nid = \"curves{i}\"\nkind = \"roc\"\nmodels = [\"bayes{i}\", \"odds{i}\"]\nepsilon = 2\n\
             [[release]]\nid = \"bins{i}\"\nkind = \"binned_residuals\"\nmodel = \"bayes{i}\"\nepsilon = 2\n"
        );
    }
    folder.write("ways.toml", &plan);
    price_equals_ledger(&folder, "ways.toml");
    let text = std::fs::read_to_string(folder.path("out/ways/release.json")).unwrap();
    let release = json(&text);
    let all = release["releases"].as_array().unwrap();
    let value = |id: &str| all.iter().find(|r| r["id"] == id).unwrap()["value"].clone();
    let methods: Vec<Value> = (0..5)
        .map(|i| value(&format!("sel{i}"))["method"].clone())
        .collect();
    assert_eq!(
        methods,
        ["picks", "counts", "counts", "sparse_vector", "clusters"]
    );
    assert!(value("sel2")["features"].as_array().unwrap().is_empty());
    assert_eq!(value("bayes2")["counts"].as_object().unwrap().len(), 0);
    assert_eq!(value("bayes1")["counts"].as_object().unwrap().len(), 40);
}

/// Naive Bayes chooses among its own noisy counts: same price, all counts released, few terms.
#[test]
fn naive_bayes_selects_for_free() {
    let folder = folder();
    let plan = |keys: &str| {
        format!(
            "version = 1\ndataset = \"dataset.toml\"\n[[release]]\nid = \"few\"\nkind = \"naive_bayes\"\n\
             formula = \"spam ~ text + (hour > 11)\"\n{keys}\nepsilon = \"4\"\n\
             [[release]]\nid = \"curve\"\nkind = \"roc\"\nmodel = \"few\"\nepsilon = \"4\"\n"
        )
    };
    folder.write("all.toml", plan(""));
    folder.write("few.toml", plan("keep = { top = 2 }\nscoring = \"purity\""));
    let price = |name: &str| {
        json(&folder.reticent(&["price", name, "--json"]).code(0).out)["total"].clone()
    };
    assert_eq!(price("all.toml"), price("few.toml"));
    price_equals_ledger(&folder, "few.toml");
    let text = std::fs::read_to_string(folder.path("out/few/release.json")).unwrap();
    let value = json(&text)["releases"][0]["value"].clone();
    let mut best: Vec<&str> = (value["features"].as_array().unwrap().iter())
        .map(|f| f.as_str().unwrap())
        .collect();
    best.sort_unstable();
    assert_eq!(best, ["text=free", "text=lunch"]);
    assert_eq!(value["counts"].as_object().unwrap().len(), 43);
    // the intercept and the two words
    assert_eq!(value["terms"].as_array().unwrap().len(), 3);
    assert_eq!(value["weights"].as_array().unwrap().len(), 2);
    let auc = json(&text)["releases"][1]["value"]["auc"].as_f64().unwrap();
    assert!((auc - 0.969).abs() < 0.05, "{auc}");
    let report = std::fs::read_to_string(folder.path("out/few/report.html")).unwrap();
    assert!(report.contains("kept, of 43"), "{report}");
    for (keys, parts) in [
        ("keep = { top = 44 }", ["keep", "43 features"]),
        ("scoring = \"total\"", ["scoring", "keep = { top = 20 }"]),
        (
            "keep = { top = 2, above = 1 }",
            ["keep", "exclude each other"],
        ),
        ("keep = 2", ["keep", "top = 20"]),
    ] {
        folder.write("bad.toml", plan(keys));
        let message = folder.reticent(&["price", "bad.toml"]).code(2).err;
        assert!(
            parts.iter().all(|p| message.contains(p)),
            "{keys}: {message}"
        );
    }
    folder.write(
        "bad.toml",
        plan("keep = { top = 2 }").replace("text + (hour > 11)", "hour"),
    );
    let message = folder.reticent(&["price", "bad.toml"]).code(2).err;
    assert!(message.contains("no conditions or words"), "{message}");
    folder.write(
        "bad.toml",
        PLAN.replacen(
            "features = \"sel\"",
            "features = \"sel\"\nkeep = { top = 1 }",
            1,
        ),
    );
    let message = folder.reticent(&["price", "bad.toml"]).code(2).err;
    assert!(message.contains("chosen by another release"), "{message}");
}

/// One `where` holds for a whole plan: for a choice of features and for the models that use it. A feature whose bounds depend on it
/// is accepted with it and refused without, where it is written; and a choice made under another `where` cannot be used.
#[test]
fn choice_and_models_see_the_same_records() {
    let folder = folder();
    let plan = |condition: &str, feature: &str| {
        let plan = PLAN.replace("(hour > 11)", feature);
        let plan = plan.replace("[\"text\", ", "[\"text\", \"(hour > 2)\", ");
        plan.replacen("split = { test = \"1/3\", by = \"hour\" }\n", condition, 1)
    };
    let logarithm = "(log(hour) > 2.4)";
    folder.write("with.toml", plan("where = \"hour > 0\"\n", logarithm));
    price_equals_ledger(&folder, "with.toml");
    let text = std::fs::read_to_string(folder.path("out/with/release.json")).unwrap();
    let release = json(&text);
    let value = |id: &str| {
        let all = release["releases"].as_array().unwrap();
        all.iter().find(|r| r["id"] == id).unwrap()["value"].clone()
    };
    assert_eq!(value("sel")["candidates"], 44);
    let names = |id: &str| -> Vec<String> {
        let mut names: Vec<String> = (value(id)["terms"].as_array().unwrap().iter().skip(1))
            .map(|t| t["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort_unstable();
        names
    };
    // both models have the chosen features, no others
    let mut chosen: Vec<String> = (value("sel")["features"].as_array().unwrap().iter())
        .map(|f| f.as_str().unwrap().to_owned())
        .collect();
    chosen.sort_unstable();
    assert_eq!(names("bayes"), chosen);
    assert_eq!(names("odds"), chosen);
    // hour 0 is left out: 250 of 6,000 records; the noise of a class size has scale 4 / 4
    for id in ["bayes", "whole"] {
        let counts = value(id)["class_counts"].clone();
        let total: f64 = (counts.as_array().unwrap().iter())
            .map(|n| n.as_f64().unwrap())
            .sum();
        assert!((total - 5750.0).abs() < 100.0, "{total}");
    }
    for (condition, feature, part) in [
        ("", logarithm, "line 4"),
        ("where = \"hour > 0\"\n", "(log(hour - 5) > 1)", "line 5"),
    ] {
        folder.write("bad.toml", plan(condition, feature));
        let message = folder.reticent(&["price", "bad.toml"]).code(2).err;
        for p in [part, "features", "log"] {
            assert!(message.contains(p), "{p}: {message}");
        }
    }
    let own = plan("", "(hour > 11)").replacen(
        "features = \"sel\"",
        "features = \"sel\"\nwhere = \"hour > 3\"",
        1,
    );
    folder.write("bad.toml", own);
    let message = folder.reticent(&["price", "bad.toml"]).code(2).err;
    assert!(message.contains("where"), "{message}");
    let other = plan("", "(hour > 11)").replacen(
        "features = \"sel\"",
        "features = \"out/with/release.json#sel\"",
        1,
    );
    folder.write("bad.toml", other);
    let message = folder.reticent(&["price", "bad.toml"]).code(2).err;
    assert!(message.contains("same plan"), "{message}");
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table of cases")]
fn refusals_name_what_would_be_accepted() {
    let folder = folder();
    for (from, to, parts) in [
        (
            "keep = { top = 3 }",
            "",
            &["line 5", "`keep` is missing", "top = 20"][..],
        ),
        ("top = 3", "top = 44", &["line 5", "keep", "43 features"]),
        (
            "top = 3",
            "top = 3, above = 5",
            &["line 10", "keep", "exclude each other"],
        ),
        ("top = 3", "topp = 3", &["line 10", "Did you mean `top`?"]),
        (
            "label = \"spam\"",
            "label = \"spa\"",
            &["line 5", "label", "spam"],
        ),
        (
            "label = \"spam\"",
            "label = \"text\"",
            &["line 5", "text is the outcome"],
        ),
        (
            "\"(hour > 11)\"]",
            "\"hour\"]",
            &["line 5", "features", "hour is no feature"],
        ),
        (
            "\"(hour > 11)\"]",
            "\"(text > 1)\"]",
            &["line 5", "features", "is no number"],
        ),
        ("\"(hour > 11)\"]", "\"text\"]", &["line 8", "listed twice"]),
        (
            "features = \"sel\"",
            "features = \"sal\"",
            &["line 15", "features", "Did you mean `sel`?"],
        ),
        (
            "features = \"sel\"",
            "features = \"release.json#sel\"",
            &["line 15", "same plan"],
        ),
        (
            "features = \"sel\"",
            "features = \"sel\"\nformula = \"spam ~ text\"",
            &["line 16", "formula", "Remove"],
        ),
        (
            "keep = { top = 3 }",
            "keep = { top = 3 }\nmethod = \"clusters\"",
            &["belong together", "clusters = 8"],
        ),
        (
            "keep = { top = 3 }",
            "keep = { top = 3 }\nmethod = \"picks\"",
            &["picks", "total counts"],
        ),
        (
            "spam ~ text + ",
            "spam ~ I(text^2) + ",
            &["line 22", "formula", "is no number"],
        ),
        (
            "kind = \"naive_bayes\"\nformula",
            "kind = \"logistic\"\nformula",
            &[
                "line 22",
                "formula",
                "`text` is a text of words",
                "select release",
            ],
        ),
        (
            "kind = \"naive_bayes\"\nformula = \"spam ~ text + (hour > 11)\"",
            "kind = \"logistic\"\nformula = \"spam ~ .\"",
            &["line 22", "`text` is a text of words"],
        ),
        (
            "spam ~ text + ",
            "spam ~ text.1 + ",
            &["line 22", "formula", "numbers a word", "name the text"],
        ),
    ] {
        assert!(PLAN.contains(from), "{from}");
        folder.write("bad.toml", PLAN.replacen(from, to, 1));
        let message = folder.reticent(&["price", "bad.toml"]).code(2).err;
        assert!(message.contains("bad.toml"), "{message}");
        for part in parts {
            assert!(
                message.contains(part),
                "{to:?} should say {part:?}: {message}"
            );
        }
    }
    folder.write(
        "dataset.toml",
        DATASET.replace("words = \"words.txt\"", "hashed = 5000"),
    );
    folder.write("bad.toml", PLAN.replace("top = 3", "above = 5"));
    let message = folder.reticent(&["price", "bad.toml"]).code(2).err;
    for part in ["line 17", "features", "4095", "top = 100"] {
        assert!(message.contains(part), "{message}");
    }
    // A thousand tables of a million features would not fit into memory.
    let vast = DATASET.replace("most = 6", "most = 1000");
    folder.write(
        "dataset.toml",
        vast.replace("words = \"words.txt\"", "hashed = 1048576"),
    );
    folder.write("bad.toml", PLAN);
    let message = folder.reticent(&["price", "bad.toml"]).code(2).err;
    for part in [
        "line 5",
        "features",
        "1001 words",
        "1048577 features",
        "fewer buckets",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert!(!folder.path("messages.ledger").exists());
}
