//! Cross-validation through the binary: what is priced is what the ledger is charged, under both relations, and the figure is that
//! of records that were held out.

use serde_json::Value;

use crate::examples::{example, json, price_equals_ledger};
use crate::table::Folder;

fn released(folder: &Folder, plan: &str) -> Value {
    let path = folder.path(&format!("out/{plan}/release.json"));
    json(&std::fs::read_to_string(path).unwrap())
}

fn value(release: &Value, id: &str) -> Value {
    let all = release["releases"].as_array().unwrap();
    all.iter().find(|r| r["id"] == id).unwrap()["value"].clone()
}

#[test]
fn adult_is_cross_validated() {
    let folder = example("adult");
    price_equals_ledger(&folder, "plan_folds.toml");
    let release = released(&folder, "plan_folds");
    let of = |id: &str, key: &str| value(&release, id)[key].as_f64().unwrap();
    // The hold-out has the same formula and ε on two thirds of the records; folds are trained on four fifths.
    let (auc, low, high) = (of("cv", "estimate"), of("cv", "low"), of("cv", "high"));
    assert!((auc - of("holdout", "auc")).abs() < 0.02, "{auc}");
    assert!(low < auc && auc < high && high - low < 0.02, "{low} {high}");
    let accuracy = of("right", "estimate");
    assert!((0.79..0.87).contains(&accuracy), "{accuracy}");
    let folds = value(&release, "cv")["folds"].clone();
    assert_eq!(folds.as_array().unwrap().len(), 5);
    let report = std::fs::read_to_string(folder.path("out/plan_folds/report.html")).unwrap();
    for words in [
        "Cross-validation",
        "left out by one fit",
        "Accuracy",
        "cv.model_3",
    ] {
        assert!(report.contains(words), "{words}");
    }
    // The folds have no sections of their own, but every payment is listed.
    assert!(!report.contains("</span> cv.model_3</h2>"));
    let ledger = folder.reticent(&["ledger", "show", "dataset.toml", "--json"]);
    let spent = json(&ledger.code(0).out)["spent"]["add_remove"]["epsilon"].clone();
    // .5 for the model, .5 for the ROC curve on the other part; 5 folds, each the larger of a fit of .5 and two evaluations of .5
    assert_eq!(spent, "5.5");
    // Again at no cost.
    folder.reticent(&["run", "plan_folds.toml"]).code(0);
    assert_eq!(
        release["releases"],
        released(&folder, "plan_folds")["releases"]
    );
    // A model of a fold can be used.
    let model = "out/plan_folds/release.json#cv.model_2";
    folder.write(
        "new.csv",
        "age,education_num,marital_status,sex,hours_per_week\n50,13,Married-civ-spouse,Male,45\n",
    );
    folder.reticent(&["predict", model, "new.csv"]).code(0);
}

#[test]
fn replaced_records_cost_no_more_than_asked() {
    let folder = example("adult");
    let dataset = std::fs::read_to_string(folder.path("dataset.toml")).unwrap();
    let text = dataset.replace(
        "neighbours = \"add_remove\"",
        "neighbours = \"replace_one\"\nrows = 48842",
    );
    folder.write("dataset.toml", text);
    folder.write(
        "plan.toml",
        "version = 1\ndataset = \"dataset.toml\"\n[[release]]\nid = \"m\"\nkind = \"naive_bayes\"\nformula = \"income ~ age + sex\"\nepsilon = 1\n\
         [[release]]\nid = \"cv\"\nkind = \"cross_validation\"\nmodel = \"m\"\nfolds = 3\nmeasure = \"accuracy\"\nepsilon = 3\n",
    );
    price_equals_ledger(&folder, "plan.toml");
    let ledger = folder.reticent(&["ledger", "show", "dataset.toml", "--json"]);
    let spent = json(&ledger.code(0).out)["spent"].clone();
    assert_eq!(spent["replace_one"]["epsilon"], "4");
    let release = released(&folder, "plan");
    // Three quarters earn less.
    let accuracy = value(&release, "cv")["estimate"].as_f64().unwrap();
    assert!((0.7..0.8).contains(&accuracy), "{accuracy}");
    // Every record is left out once: the counts of the folds add up to all records, give or take the noise.
    let all = (1..=3).map(|i| value(&release, &format!("cv.accuracy_{i}"))["counts"].clone());
    let sum: f64 = all
        .flat_map(|c| c.as_array().unwrap().clone())
        .map(|c| c.as_f64().unwrap())
        .sum();
    assert!((sum - 48842.0).abs() < 200.0, "{sum}");
}
