//! The examples, copied to a temporary folder and run through the binary.

use std::path::Path;

use serde_json::Value;

use crate::table::{Folder, registered, reticent_in};

pub(crate) fn example(name: &str) -> Folder {
    let folder = Folder::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name);
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_file() && !name.contains(".ledger") {
            std::fs::copy(&path, folder.path(&name)).unwrap();
        }
    }
    folder
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e} in {text}"))
}

/// `price` and the final ledger agree exactly, in total and line by line, under both relations.
pub(crate) fn price_equals_ledger(folder: &Folder, plan: &str) {
    let before = folder.path("dataset.toml");
    assert!(before.exists());
    let priced = json(&folder.reticent(&["price", plan, "--json"]).code(0).out);
    let released = json(&folder.reticent(&["run", plan, "--json"]).code(0).out);
    let ledger = json(
        &folder
            .reticent(&["ledger", "show", "dataset.toml", "--json"])
            .code(0)
            .out,
    );
    assert_eq!(
        priced["total"], ledger["spent"],
        "the plan's price is what the ledger holds"
    );
    for (line, release) in priced["releases"]
        .as_array()
        .unwrap()
        .iter()
        .zip(released["releases"].as_array().unwrap())
    {
        assert_eq!(line["id"], release["id"]);
        assert_eq!(line["price"], release["receipt"]["cost"], "{}", line["id"]);
    }
    assert_eq!(ledger["unpublished"], 0);
}

/// Several curves in one plot, and a naive Bayes model that a ROC curve examines: priced before, paid once, released whole.
#[test]
fn curves_and_naive_bayes_run_and_their_price_is_their_ledger() {
    for plan in [
        "plan_roc.toml",
        "plan_roc_classes.toml",
        "plan_bayes.toml",
        "plan_select.toml",
    ] {
        price_equals_ledger(&example("adult"), plan);
    }
}

/// Claims about public census records that least squares on all of them confirms (t of 19 and more): at ε = 1 the votes of 101 groups are
/// 97 or more, those of the range 17 of 17; the chance that noise turns one answer is below 1e-9.
#[test]
fn claims_are_verified() {
    let folder = example("pums");
    price_equals_ledger(&folder, "plan_verify.toml");
    let text = std::fs::read_to_string(folder.path("out/plan_verify/release.json")).unwrap();
    let release = json(&text);
    let value = |i: usize| &release["releases"][i]["value"];
    for i in [0, 2] {
        assert_eq!(value(i)["answer"], "yes", "{}", value(i));
        assert_eq!(value(i)["direction"], "above");
    }
    // unanimous, but undecided in 1 of 300 draws
    assert_ne!(value(1)["answer"], "no", "{}", value(1));
    let report = std::fs::read_to_string(folder.path("out/plan_verify/report.html")).unwrap();
    assert!(report.contains("Is the coefficient of <code>educ</code>"));
}

/// Regressions and thresholds read off released values cost nothing, and a released threshold decides classes.
#[test]
fn derived_releases_are_free() {
    let folder = example("pums");
    price_equals_ledger(&folder, "plan_covariance.toml");
    let text = std::fs::read_to_string(folder.path("out/plan_covariance/release.json")).unwrap();
    let release = json(&text);
    for r in &release["releases"].as_array().unwrap()[1..] {
        assert_eq!(r["kind"], "regress");
        assert_eq!(r["receipt"]["cost"]["add_remove"]["epsilon"], "0");
        assert!(r["value"]["terms"][1]["p"].is_number());
    }
    let folder = example("adult");
    folder.reticent(&["run", "plan_threshold.toml"]).code(0);
    let model = "out/plan_threshold/release.json#income_youden";
    std::fs::write(
        folder.path("new.csv"),
        "age,education_num,sex,hours_per_week\n50,13,Male,45\n20,9,Female,20\n",
    )
    .unwrap();
    let classes = |threshold: &str| -> Vec<String> {
        let done = folder.reticent(&["predict", model, "new.csv", "--threshold", threshold]);
        let text = done.code(0).out;
        (text.lines().skip(1))
            .map(|l| l.rsplit(',').next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(classes("0"), [">50K", ">50K"]);
    assert_eq!(classes("1"), ["<=50K", "<=50K"]);
    assert_eq!(classes("out/plan_threshold/release.json#cut").len(), 2);
    folder
        .reticent(&["predict", model, "new.csv", "--threshold", "7"])
        .code(2);
}

#[test]
fn adult_runs_and_its_price_is_its_ledger() {
    let folder = example("adult");
    price_equals_ledger(&folder, "plan.toml");
    let out = folder.path("out/plan");
    let release = json(&std::fs::read_to_string(out.join("release.json")).unwrap());
    let by_id = |id: &str| {
        release["releases"]
            .as_array()
            .unwrap()
            .iter()
            .find(|r| r["id"] == id)
            .unwrap()
            .clone()
    };
    // 16,000 test records at ε = 1: the private AUC of this model is between .8 and .95 unless something is badly
    // wrong (its noise is about .001; a false alarm needs 50 standard deviations).
    let auc = by_id("roc")["value"]["auc"].as_f64().unwrap();
    assert!((0.8..0.95).contains(&auc), "AUC {auc}");
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    for word in ["<svg", "income", "roc", "residuals"] {
        assert!(report.contains(word), "{word} is in the report");
    }
    assert!(
        !report.contains("<script src") && !report.contains("href=\"http"),
        "the report stands alone"
    );
    // A second run costs nothing and gives the same releases.
    let again = json(&folder.reticent(&["run", "plan.toml", "--json"]).code(0).out);
    assert_eq!(release["releases"], again["releases"]);
    folder
        .reticent(&[
            "ledger",
            "verify",
            "dataset.toml",
            "--against",
            "out/plan/release.json",
        ])
        .code(0)
        .says(&["on this chain"]);
}

#[test]
fn pums_runs_and_its_price_is_its_ledger() {
    let folder = example("pums");
    price_equals_ledger(&folder, "plan.toml");
    let release = json(&std::fs::read_to_string(folder.path("out/plan/release.json")).unwrap());
    let terms = release["releases"][0]["value"]["terms"]
        .as_array()
        .unwrap()
        .clone();
    let estimate = |name: &str| {
        terms.iter().find(|t| t["name"] == name).unwrap()["estimate"]
            .as_f64()
            .unwrap()
    };
    // Least squares on these 10,000 rows (income clamped) gives about 240 a year and 3,900 a level; at ε = 1 the
    // released slopes have standard errors of about 40 and 200.
    assert!(
        (0.0..600.0).contains(&estimate("age")),
        "{}",
        estimate("age")
    );
    assert!(
        (2500.0..5500.0).contains(&estimate("educ")),
        "{}",
        estimate("educ")
    );
    folder.reticent(&["run", "plan_log.toml"]).code(0);
}

#[test]
fn a_model_predicts_new_rows() {
    let folder = registered();
    folder.reticent(&["run", "plan.toml"]).code(0);
    folder.write("new.csv", "group,age\na,20\nb,90\nc,\nz,50\n");
    let out = folder
        .reticent(&["predict", "out/plan/release.json#model", "new.csv"])
        .code(0)
        .out;
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 5, "{out}");
    // Predictions do not depend on which rows come together.
    folder.write("one.csv", "group,age\nb,90\n");
    let one = folder
        .reticent(&["predict", "out/plan/release.json#model", "one.csv"])
        .code(0)
        .out;
    assert_eq!(one.lines().nth(1), out.lines().nth(2));
}

#[test]
fn fresh_files_of_an_analyst_work_without_a_size_hint() {
    let folder = registered();
    let dataset = std::fs::read_to_string(folder.path("dataset.toml"))
        .unwrap()
        .replace("size_hint = 200\n", "");
    std::fs::write(folder.path("dataset.toml"), dataset).unwrap();
    let priced = json(
        &folder
            .reticent(&["price", "plan.toml", "--json"])
            .code(0)
            .out,
    );
    assert_eq!(priced["releases"][0]["id"], "_n");
    // 2 % of .25 + 1 + .5 + .5.
    assert_eq!(
        priced["releases"][0]["price"]["add_remove"]["epsilon"],
        "0.045"
    );
    folder.reticent(&["run", "plan.toml"]).code(0);
    let ledger = json(
        &folder
            .reticent(&["ledger", "show", "dataset.toml", "--json"])
            .code(0)
            .out,
    );
    assert_eq!(priced["total"], ledger["spent"]);
}

/// The accuracy of a plan and of single kinds, from public numbers; and the methods of quantiles and bounds, run.
#[test]
fn accuracy_is_planned_and_methods_run() {
    let folder = registered();
    let of_plan = json(
        &folder
            .reticent(&["plan-accuracy", "plan.toml", "--json"])
            .code(0)
            .out,
    );
    let lines = of_plan["releases"].as_array().unwrap();
    assert!(!lines.is_empty() && of_plan["rows"].is_number());
    for line in lines {
        assert!(
            line["error_95"].is_number() || line["remark"].is_string(),
            "{line}"
        );
    }
    let single = |arguments: &[&str]| {
        let mut all = vec![
            "plan-accuracy",
            "--json",
            "--relation",
            "add_remove",
            "--kind",
        ];
        all.extend(arguments);
        json(&folder.reticent(&all).code(0).out)
    };
    let histogram = single(&["histogram", "--cells", "4096", "--epsilon", "0.1"]);
    let error = histogram["error_95"].as_f64().unwrap();
    assert!((error - 30.0).abs() < 1.0, "{histogram}");
    let back = single(&[
        "histogram",
        "--cells",
        "4096",
        "--error",
        &error.to_string(),
    ]);
    assert!(
        (back["budget"].as_f64().unwrap() / 0.1 - 1.0).abs() < 0.05,
        "{back}"
    );
    let votes = single(&[
        "verify",
        "--epsilon",
        "1",
        "--rows",
        "50000",
        "--coefficients",
        "4",
    ]);
    assert_eq!(votes["unit"], "yes votes");
    let said = votes["remark"].as_str().unwrap();
    assert!(said.contains("found in 4 of 5 cases"), "{said}");
    let chosen = single(&[
        "select",
        "--epsilon",
        "1",
        "--cells",
        "5000",
        "--most",
        "20",
    ]);
    // scale 20: 20·ln 20
    assert!(
        (chosen["error_95"].as_f64().unwrap() - 60.0).abs() < 1.0,
        "{chosen}"
    );
    let model = single(&["logistic", "--epsilon", "1"]);
    assert!(
        model["error_95"].is_null() && model["remark"].as_str().unwrap().contains("covariates")
    );
    let table = folder
        .reticent(&["plan-accuracy", "--kind", "count", "--epsilon", "1"])
        .code(0)
        .out;
    assert!(table.contains("records"), "{table}");
    folder
        .reticent(&["plan-accuracy", "--kind", "count"])
        .code(2);
    folder
        .reticent(&["plan-accuracy", "--kind", "conut", "--epsilon", "1"])
        .code(2);
}

const COUNTED: &str = r#"
version = 1
dataset = "dataset.toml"
[[release]]
id = "top"
kind = "top_k"
column = "group"
k = 2
epsilon = "0.5"
[[release]]
id = "rising"
kind = "running_total"
column = "age"
epsilon = "1"
[[release]]
id = "heights"
kind = "bounds"
column = "height"
coverage = 0.95
method = "doubling"
scales = "printed"
epsilon = "0.4"
[[release]]
id = "model"
kind = "logistic"
formula = "sick ~ age"
epsilon = "0.5"
[[release]]
id = "area"
kind = "auc"
model = "model"
epsilon = "0.5"
"#;

/// Selection, running totals, a range at the printed scales (.725 of its ε is charged) and an area, priced, planned and run.
#[test]
fn counted_kinds_run_and_printed_scales_cost_less() {
    let folder = registered();
    folder.write("counted.toml", COUNTED);
    price_equals_ledger(&folder, "counted.toml");
    let ledger = json(
        &folder
            .reticent(&["ledger", "show", "dataset.toml", "--json"])
            .code(0)
            .out,
    );
    // .5 + 1 + .29 + .5 + .5
    assert_eq!(ledger["spent"]["add_remove"]["epsilon"], "2.79");
    let released = json(
        &folder
            .reticent(&["run", "counted.toml", "--json"])
            .code(0)
            .out,
    );
    let value = |id: &str| {
        let all = released["releases"].as_array().unwrap();
        all.iter().find(|r| r["id"] == id).unwrap()["value"].clone()
    };
    assert_eq!(value("top")["top"].as_array().unwrap().len(), 2);
    // a step for every whole number from 0 to 100
    let rising = value("rising");
    assert_eq!(rising["steps"], 101);
    assert_eq!(rising["method"], "honaker");
    let last = rising["totals"][100].as_f64().unwrap();
    // 200 records; a half-width of some 40, wrong once in 1e9 at ten times that
    assert!((last - 200.0).abs() < 600.0, "{last}");
    let area = value("area")["auc"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&area));
    assert_eq!(value("area")["model"], "model");
    let report = std::fs::read_to_string(folder.path("out/counted/report.html")).unwrap();
    for words in [
        "Most frequent of 3 values",
        "Records up to each step",
        "Area under the ROC curve",
    ] {
        assert!(report.contains(words), "{words}");
    }
    let planned = json(
        &folder
            .reticent(&["plan-accuracy", "counted.toml", "--json"])
            .code(0)
            .out,
    );
    for line in planned["releases"].as_array().unwrap() {
        let known = line["error_95"].is_number();
        assert_eq!(known, line["kind"] != "logistic", "{line}");
        assert!(known || line["remark"].as_str().unwrap().contains("gradient"));
    }
    // the released errors are the planned ones
    let planned = planned["releases"][1]["error_95"].as_f64().unwrap();
    let released = rising["errors_95"].as_array().unwrap();
    let largest = released
        .iter()
        .filter_map(Value::as_f64)
        .fold(0.0, f64::max);
    assert!(
        (planned / largest - 1.0).abs() < 1e-9,
        "{planned} {largest}"
    );
}

/// The sketch of the example: directions in file and report near the true sums, the rows in the file, plan-accuracy beforehand. Nothing fixes the noise of a command, so "near" is ten deviations (false alarm below 1e-15).
#[test]
fn a_sketch_gives_sums_along_directions() {
    let folder = example("pums");
    price_equals_ledger(&folder, "plan_sketch.toml");
    let text = std::fs::read_to_string(folder.path("out/plan_sketch/release.json")).unwrap();
    let release = json(&text);
    let value = &release["releases"][0]["value"];
    assert_eq!(
        (&value["method"], &value["rows"]),
        (&"sketch".into(), &500.into())
    );
    assert_eq!(value["sketch"]["z"].as_array().unwrap().len(), 500);
    let mut truth = [0.0; 3];
    let table = std::fs::read_to_string(folder.path("pums.csv")).unwrap();
    let mut lines = table.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |name: &str, low: f64, high: f64| {
            let at = head
                .iter()
                .position(|h| h.trim_matches('"') == name)
                .unwrap();
            let x: f64 = cells[at].parse().unwrap();
            x.clamp(low, high) - 0.5 * (low + high)
        };
        let (age, educ) = (number("age", 18.0, 95.0), number("educ", 1.0, 16.0));
        let income = number("income", 0.0, 300_000.0);
        truth[0] += income.powi(2);
        truth[1] += (income - 5000.0 * educ).powi(2);
        truth[2] += (age - educ).powi(2);
    }
    for (found, truth) in value["directions"].as_array().unwrap().iter().zip(truth) {
        let number = |key: &str| found[key].as_f64().unwrap();
        let deviation = (number("estimate") + number("added")) * (2.0f64 / 500.0).sqrt();
        assert!(
            (number("estimate") - truth).abs() < 10.0 * deviation,
            "{found} {truth}"
        );
        assert!(number("lower") < number("estimate") && number("estimate") < number("upper"));
    }
    assert_eq!(value["directions"][1]["name"], "income - 5000 educ");
    let report = std::fs::read_to_string(folder.path("out/plan_sketch/report.html")).unwrap();
    for words in [
        "Sums of squares along directions",
        "usually better",
        "a sketch of 500 rows",
    ] {
        assert!(report.contains(words), "{words}");
    }
    let planned = folder.reticent(&["plan-accuracy", "plan_sketch.toml", "--json"]);
    let planned = json(&planned.code(0).out);
    let said = planned["releases"][0]["remark"].as_str().unwrap();
    assert!(
        said.contains("within 12 %") && !said.contains("too little"),
        "{said}"
    );
}

/// Impossible keys, regressions from a sketch (planned or released) and other currencies.
#[test]
fn what_a_sketch_cannot_do_is_refused() {
    let folder = example("pums");
    folder.reticent(&["run", "plan_sketch.toml"]).code(0);
    let plan = std::fs::read_to_string(folder.path("plan_sketch.toml")).unwrap();
    let first = plan.split("[[release]]\nid = \"moments\"").next().unwrap();
    for (from, to, parts) in [
        ("columns =", "rows = 7\ncolumns =", ["rows", "even"]),
        ("columns =", "rows = 4000\ncolumns =", ["rows", "2000"]),
        (
            "columns =",
            "repair = \"lift\"\ncolumns =",
            ["repair", "no effect"],
        ),
        (
            "method = \"sketch\"\n",
            "",
            ["directions", "belong together"],
        ),
        ("age = 1,", "sex = 1,", ["sex", "not a column"]),
        (
            "{ income = 1 }",
            "{ income = 0 }",
            ["directions", "other than 0"],
        ),
        ("delta = \"2e-7\"\n", "", ["delta", "Add delta"]),
    ] {
        folder.write("bad.toml", first.replacen(from, to, 1));
        let message = folder.reticent(&["price", "bad.toml"]).code(2).err;
        assert!(parts.iter().all(|p| message.contains(p)), "{to}: {message}");
    }
    let regress = "\n[[release]]\nid = \"r\"\nkind = \"regress\"\nfrom = \"sketch\"\nformula = \"income ~ age\"\n";
    for from in ["sketch", "out/plan_sketch/release.json#sketch"] {
        folder.write(
            "bad.toml",
            format!(
                "{first}{}",
                regress.replace("\"sketch\"", &format!("\"{from}\""))
            ),
        );
        let message = folder.reticent(&["price", "bad.toml"]).code(2).err;
        assert!(message.contains("no means"), "{from}: {message}");
    }
    let dataset = std::fs::read_to_string(folder.path("dataset.toml")).unwrap();
    let budget = "epsilon = \"10\"\ndelta = \"1e-6\"";
    for instead in ["epsilon = \"10\"", "rho = \"10\""] {
        folder.write("dataset.toml", dataset.replacen(budget, instead, 1));
        let paid = "epsilon = \"1\"\ndelta = \"2e-7\"\n";
        let own = instead.replace("10", "1") + "\n";
        folder.write("bad.toml", first.replacen(paid, &own, 1));
        let message = folder.reticent(&["price", "bad.toml"]).code(2).err;
        assert!(message.contains("Remove method"), "{message}");
    }
}

const DIRECT: &str = r#"
version = 1
dataset = "dataset.toml"
[[release]]
id = "direct"
kind = "linear"
formula = "height ~ age"
method = "output"
epsilon = "2"
[[release]]
id = "plot"
kind = "residuals"
model = "direct"
epsilon = "0.5"
"#;

/// Output perturbation of a linear regression: coefficients with the deviation of their noise and no other error, in file, report and plan;
/// it predicts and is examined as any linear model; keys of the other method are refused.
#[test]
fn linear_by_output_perturbation() {
    let folder = registered();
    folder.write("direct.toml", DIRECT);
    price_equals_ledger(&folder, "direct.toml");
    let released = json(
        &folder
            .reticent(&["run", "direct.toml", "--json"])
            .code(0)
            .out,
    );
    let (direct, flags) = (
        &released["releases"][0]["value"],
        &released["releases"][0]["flags"],
    );
    assert_eq!(
        (&direct["perturbation"], &direct["coefficient_norm"]),
        (&"output".into(), &1.0.into())
    );
    let terms = direct["terms"].as_array().unwrap();
    assert_eq!((terms.len(), &terms[1]["name"]), (2, &"age".into()));
    assert!(
        terms
            .iter()
            .all(|t| t["noise_error"].as_f64().unwrap() > 0.0 && t["std_error"].is_null())
    );
    assert!(flags.to_string().contains("no_standard_errors"), "{flags}");
    let report = std::fs::read_to_string(folder.path("out/direct/report.html")).unwrap();
    for words in [
        "std. deviation of the noise",
        "There are no standard errors",
        "coefficients of a ridge fit",
    ] {
        assert!(report.contains(words), "{words}");
    }
    let planned = json(
        &folder
            .reticent(&["plan-accuracy", "direct.toml", "--json"])
            .code(0)
            .out,
    );
    let said = planned["releases"][0]["remark"].as_str().unwrap();
    assert!(
        said.contains("mean length") && said.contains("shrinks"),
        "{said}"
    );
    folder.write("new.csv", "age\n20\n60\n");
    let predicted = folder
        .reticent(&["predict", "out/direct/release.json#direct", "new.csv"])
        .code(0)
        .out;
    assert_eq!(predicted.lines().count(), 3, "{predicted}");
    for (from, to, parts) in [
        (
            "method = \"output\"",
            "method = \"output\"\nclip = \"none\"",
            ["clip", "no effect"],
        ),
        (
            "method = \"output\"",
            "method = \"output\"\nridge = 2",
            ["ridge", "no effect"],
        ),
        (
            "method = \"output\"",
            "lambda = 3",
            ["lambda", "belong together"],
        ),
        (
            "method = \"output\"",
            "coefficient_norm = 3",
            ["coefficient_norm", "belong together"],
        ),
        (
            "method = \"output\"",
            "method = \"outputs\"",
            ["method", "output"],
        ),
        (
            "method = \"output\"",
            "method = \"output\"\ncoefficient_norm = 1e9",
            ["coefficient_norm", "1e6"],
        ),
        (
            "method = \"output\"",
            "method = \"output\"\nlambda = 1e-9",
            ["lambda", "1e-6"],
        ),
        ("~ age", "~ 0 + age", ["formula", "intercept"]),
    ] {
        folder.write("bad.toml", DIRECT.replacen(from, to, 1));
        let message = folder.reticent(&["price", "bad.toml"]).code(2).err;
        assert!(parts.iter().all(|p| message.contains(p)), "{to}: {message}");
    }
}

#[test]
fn help_has_examples_and_schema_prints() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert!(
        reticent_in(here, &["run", "--help"])
            .code(0)
            .out
            .contains("Example")
    );
    for of in ["dataset", "plan", "release"] {
        let schema = json(&reticent_in(here, &["schema", of]).code(0).out);
        assert!(schema["$schema"].is_string());
    }
}
