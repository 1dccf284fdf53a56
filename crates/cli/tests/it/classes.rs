//! Outcomes of more than two classes: one level against the rest, and naive Bayes over all levels in one release.

use std::fmt::Write as _;

use crate::examples::{json, price_equals_ledger};
use crate::table::Folder;

const DATASET: &str = r#"
version = 1
id = "flowers"
data_version = "1"
source = { path = "flowers.csv" }
neighbours = "add_remove"
size_hint = 3000
[budget]
epsilon = "100"
[ledger]
path = "flowers.ledger"
auto_register = true
[columns.kind]
type = "text"
levels = ["iris", "rose", "tulip"]
[columns.width]
type = "real"
lower = 0
upper = 10
[columns.note]
type = "tokens"
most = 2
words = ["thorns", "bulb", "blue"]
"#;

const PLAN: &str = r#"
version = 1
dataset = "dataset.toml"
[[release]]
id = "rest"
kind = "logistic"
formula = "kind ~ width + I(width^2)"
positive = ["iris", "rose", "tulip"]
epsilon = "9"
[[release]]
id = "bayes"
kind = "naive_bayes"
formula = "kind ~ width + note"
positive = ["tulip", "iris", "rose"]
epsilon = "5"
"#;

/// 3,000 flowers, a third of each kind, of widths about 2, 5 and 8; two in three have a word that tells.
fn folder() -> Folder {
    let folder = Folder::new();
    let mut rows = "kind,width,note\n".to_owned();
    for i in 0..3000_u32 {
        let kind = i % 3;
        let (name, word) = [("iris", "blue"), ("rose", "thorns"), ("tulip", "bulb")][kind as usize];
        let width = 2.0 + 3.0 * f64::from(kind) + f64::from(i * 7 % 31) / 10.0 - 1.5;
        let note = if i % 7 < 5 { word } else { "pretty" };
        let _ = writeln!(rows, "{name},{width},{note}");
    }
    folder.write("flowers.csv", rows);
    folder.write("dataset.toml", DATASET);
    folder.write("plan.toml", PLAN);
    folder
}

#[test]
fn every_level_has_its_probability() {
    let folder = folder();
    price_equals_ledger(&folder, "plan.toml");
    for id in ["rest", "bayes"] {
        let model = format!("out/plan/release.json#{id}");
        let out = folder
            .reticent(&["predict", &model, "flowers.csv"])
            .code(0)
            .out;
        let mut lines = out.lines();
        assert_eq!(
            lines.next(),
            Some("probability,class,P(iris),P(rose),P(tulip)")
        );
        let data = std::fs::read_to_string(folder.path("flowers.csv")).unwrap();
        let mut right = 0;
        for (line, flower) in lines.zip(data.lines().skip(1)) {
            let cells: Vec<&str> = line.split(',').collect();
            let each: Vec<f64> = cells[2..].iter().map(|p| p.parse().unwrap()).collect();
            assert!((each.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{line}");
            let top = each.iter().copied().fold(0.0, f64::max);
            assert_eq!(cells[0].parse::<f64>().unwrap().to_bits(), top.to_bits());
            right += i32::from(flower.starts_with(cells[1]));
        }
        assert!(right > 2800, "{id}: {right}");
        // a row alone is predicted as among the others; without a width there is nothing to say
        folder.write("one.csv", "note,width\nblue,2.5\nblue,\n");
        let one = folder.reticent(&["predict", &model, "one.csv"]).code(0).out;
        assert!(one.lines().nth(1).unwrap().contains("iris"), "{one}");
        assert_eq!(one.lines().nth(2), Some(",,,,"));
        let refused = folder.reticent(&["predict", &model, "one.csv", "--threshold", "0.5"]);
        refused.code(2).says(&["two classes"]);
    }
    // Several classes carry the noise of two.
    let two = PLAN.replace("[\"tulip\", \"iris\", \"rose\"]", "\"rose\"");
    folder.write("two.toml", two);
    folder.reticent(&["run", "two.toml"]).code(0);
    let noise = |plan: &str| {
        let path = folder.path(&format!("out/{plan}/release.json"));
        let release = json(&std::fs::read_to_string(path).unwrap());
        release["releases"][1]["value"]["noise_sd"].clone()
    };
    assert_eq!(noise("plan"), noise("two"));
    let report = std::fs::read_to_string(folder.path("out/plan/report.html")).unwrap();
    for words in ["rose against the rest", "rose against iris", "note=bulb"] {
        assert!(report.contains(words), "{words}");
    }
}

#[test]
fn refusals_name_what_would_be_accepted() {
    let folder = folder();
    for (from, to, parts) in [
        (
            "[\"tulip\", \"iris\", \"rose\"]",
            "[\"tulip\", \"iris\"]",
            &["positive", "level rose is not listed", "List all"][..],
        ),
        (
            "[\"tulip\", \"iris\", \"rose\"]",
            "[\"tulip\", \"iris\", \"rosa\"]",
            &["positive", "rosa is no level", "Did you mean `rose`?"],
        ),
        (
            "[\"tulip\", \"iris\", \"rose\"]",
            "[\"tulip\", \"tulip\"]",
            &["line 14", "listed twice"],
        ),
        (
            "epsilon = \"5\"",
            "epsilon = \"5\"\n[[release]]\nid = \"roc\"\nkind = \"roc\"\nmodel = \"bayes\"\nepsilon = 1",
            &["line 16", "not a model"],
        ),
        (
            "epsilon = \"5\"",
            "epsilon = \"5\"\n[[release]]\nid = \"cv\"\nkind = \"cross_validation\"\nmodel = \"bayes\"\nepsilon = 1",
            &["line 19", "two classes"],
        ),
    ] {
        assert!(PLAN.contains(from), "{from}");
        folder.write("bad.toml", PLAN.replace(from, to));
        let message = folder.reticent(&["price", "bad.toml"]).code(2).err;
        for part in parts {
            assert!(
                message.contains(part),
                "{to:?} should say {part:?}: {message}"
            );
        }
    }
}
