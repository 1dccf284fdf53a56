//! Lessons from the field (`docs/lessons.md`), end to end; and that every test named there exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::table::{DATASET, Folder, PLAN, registered, rows, unregistered};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e} in {text}"))
}

fn plan(releases: &[&str]) -> String {
    let mut text = String::from("version = 1\ndataset = \"dataset.toml\"\n");
    for (i, release) in releases.iter().enumerate() {
        writeln!(text, "[[release]]\nid = \"r{i}\"\n{release}").unwrap();
    }
    text
}

/// A registered folder with another declaration.
fn declared(dataset: &str, data: &str) -> Folder {
    let folder = unregistered();
    folder.write("dataset.toml", dataset);
    folder.write("people.csv", data);
    folder.reticent(&["register", "dataset.toml"]).code(0);
    folder
}

/// Runs a plan; the releases.
fn run(folder: &Folder, text: &str) -> Vec<Value> {
    folder.write("plan.toml", text);
    let out = folder.reticent(&["run", "plan.toml", "--json"]).code(0).out;
    json(&out)["releases"].as_array().unwrap().clone()
}

fn spent(folder: &Folder) -> String {
    let out = folder
        .reticent(&["ledger", "show", "dataset.toml", "--json"])
        .code(0)
        .out;
    json(&out)["spent"]["add_remove"]["epsilon"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn with_budget(epsilon: &str) -> String {
    DATASET.replace("epsilon = \"3\"", &format!("epsilon = \"{epsilon}\""))
}

/// One release of every kind.
const KINDS: [&str; 12] = [
    "kind = \"count\"\nepsilon = 1",
    "kind = \"sum\"\nof = \"age\"\nepsilon = 1",
    "kind = \"mean\"\nof = \"age\"\nepsilon = 1",
    "kind = \"histogram\"\ncolumn = \"group\"\nepsilon = 1",
    "kind = \"crosstab\"\ncolumns = [\"group\", \"sick\"]\nepsilon = 1",
    "kind = \"quantiles\"\nof = \"height\"\nlevels = [0.25, 0.5, 0.75]\nepsilon = 1",
    "kind = \"bounds\"\nof = \"height\"\nepsilon = 1",
    "kind = \"logistic\"\nformula = \"sick ~ age + group\"\nepsilon = 1",
    "kind = \"linear\"\nformula = \"height ~ age + group\"\nepsilon = 1",
    "kind = \"roc\"\nmodel = \"r7\"\nepsilon = 1",
    "kind = \"binned_residuals\"\nmodel = \"r7\"\nepsilon = 1",
    "kind = \"residuals\"\nmodel = \"r8\"\nepsilon = 1",
];

/// Rows 36 and 83: prices are a function of plan and declaration, and a request that is refused as written never
/// comes near the data, which are not there.
#[test]
fn prices_and_refusals_need_no_data() {
    let folder = declared(&with_budget("20"), &rows(200));
    folder.write("plan.toml", plan(&KINDS));
    let with_data = folder.reticent(&["price", "plan.toml", "--json"]).code(0);
    fs::remove_file(folder.path("people.csv")).unwrap();
    let without = folder.reticent(&["price", "plan.toml", "--json"]).code(0);
    assert_eq!(with_data.out, without.out);
    assert_eq!(json(&without.out)["total"]["add_remove"]["epsilon"], "12");
    for refused in [
        "kind = \"sum\"\nof = \"weight\"\nepsilon = 1",
        "kind = \"linear\"\nformula = \"height ~ log(age)\"\nepsilon = 1",
        "kind = \"logistic\"\nformula = \"sick ~ age\"\nlambda = 1e-9\nclip = \"none\"\nepsilon = \"0.001\"",
        "kind = \"count\"\nepsilon = 0",
    ] {
        folder.write("plan.toml", plan(&[refused]));
        folder.reticent(&["run", "plan.toml"]).code(2);
    }
    assert_eq!(spent(&folder), "0");
    // only an accepted request opens them
    folder.write("plan.toml", plan(&KINDS[..1]));
    folder
        .reticent(&["run", "plan.toml"])
        .code(1)
        .says(&["people.csv"]);
    assert_eq!(spent(&folder), "0");
}

/// Rows 16, 25 and 50: bounds and levels are declared; nothing is read off the data in their place.
#[test]
fn columns_need_declared_bounds_and_levels() {
    for (from, to, column) in [
        ("lower = 50\nupper = 250\n", "", "height"),
        ("lower = 50\n", "", "height"),
        ("upper = 100\n", "", "age"),
        ("levels = [\"a\", \"b\", \"c\"]\n", "", "group"),
        ("levels = [\"a\", \"b\", \"c\"]\n", "levels = []\n", "group"),
        (
            "lower = 50\nupper = 250\n",
            "lower = \"nan\"\nupper = 250\n",
            "height",
        ),
        (
            "lower = 50\nupper = 250\n",
            "lower = 250\nupper = 50\n",
            "height",
        ),
    ] {
        let folder = unregistered();
        assert!(DATASET.contains(from));
        folder.write("dataset.toml", DATASET.replacen(from, to, 1));
        for command in [["register", "dataset.toml"], ["run", "plan.toml"]] {
            folder
                .reticent(&command)
                .code(2)
                .says(&[column, "dataset.toml"]);
        }
        assert!(!folder.path("people.ledger").exists());
    }
}

/// Rows 27 and 85: the unit is enforced, and printed in the release and on the report.
#[test]
fn the_privacy_unit_is_enforced_and_printed() {
    let dataset = with_budget("5000000")
        .replace(
            "unit = \"row\"",
            "unit = { column = \"person\", max_rows = 3 }",
        )
        .replace(
            "[columns.age]",
            "[columns.person]\ntype = \"id\"\n[columns.age]",
        );
    let mut data = String::from("person,age,group,height,sick\n");
    for i in 0..1000 {
        writeln!(data, "ann,{},a,170,no", i % 100).unwrap();
    }
    data.push_str("bob,40,b,180,no\ncyd,41,c,181,yes\n");
    let folder = declared(&dataset, &data);
    let releases = run(&folder, &plan(&["kind = \"count\"\nepsilon = \"1000000\""]));
    // noise of scale 3e-6 is 0 except with probability below 1e-100000
    assert_eq!(releases[0]["value"]["count"], 5);
    let file = json(&fs::read_to_string(folder.path("out/plan/release.json")).unwrap());
    assert_eq!(file["unit"]["column"], "person");
    assert_eq!(file["unit"]["max_rows"], 3);
    let report = fs::read_to_string(folder.path("out/plan/report.html")).unwrap();
    assert!(report.contains("person"));

    let folder = registered();
    run(&folder, &plan(&["kind = \"count\"\nepsilon = 1"]));
    let file = json(&fs::read_to_string(folder.path("out/plan/release.json")).unwrap());
    assert_eq!(file["unit"], "row");
    assert!(
        fs::read_to_string(folder.path("out/plan/report.html"))
            .unwrap()
            .contains("row")
    );
}

/// Rows 58, 63, 72, 78 and 81: every release says in fixed fields what made it, under which relation and unit, what
/// it cost, and which noise of which scale stands on it; and the report has every release.
#[test]
fn releases_say_what_they_are() {
    let folder = declared(&with_budget("20"), &rows(200));
    let releases = run(&folder, &plan(&KINDS));
    assert_eq!(releases.len(), KINDS.len());
    let file = json(&fs::read_to_string(folder.path("out/plan/release.json")).unwrap());
    assert_eq!(file["version"], 1);
    let software = file["software"].as_str().unwrap();
    assert!(software.starts_with("reticent ") && software.contains('.'));
    assert_eq!(file["dataset"]["id"], "people");
    assert!(file["relation"].is_string() && file["ledger"]["head"].is_string());
    let report = fs::read_to_string(folder.path("out/plan/report.html")).unwrap();
    for release in &releases {
        let kind = release["kind"].as_str().unwrap();
        let receipt = &release["receipt"];
        assert_eq!(receipt["cost"]["add_remove"]["epsilon"], "1", "{kind}");
        assert!(receipt["cost"]["replace_one"]["epsilon"].is_string());
        assert!(receipt["event"].is_object(), "{kind}");
        let noise = receipt["noise"].as_array().unwrap();
        assert!(!noise.is_empty(), "{kind}");
        for step in noise {
            assert!(step["name"].is_string() && step["distribution"].is_string());
            assert!(step["scale"].as_f64().unwrap() > 0.0, "{kind}: {step}");
        }
        // counts, sums and curves carry one error; models and quantiles one per number
        let error = match kind {
            "linear" => release["value"]["terms"]
                .as_array()
                .unwrap()
                .iter()
                .all(|t| t["std_error"].is_number() && t["conf_low"].is_number()),
            "quantiles" => release["value"]["rank_error_95"].is_number(),
            "bounds" | "logistic" => true,
            _ => receipt["error_95"].as_f64().is_some_and(|e| e > 0.0),
        };
        assert!(error, "{kind} has no error: {release}");
        let id = release["id"].as_str().unwrap();
        assert!(report.contains(id), "{id} is in the report");
    }
    // steps are charged one by one
    let steps = |kind: &str| {
        releases.iter().find(|r| r["kind"] == kind).unwrap()["receipt"]["noise"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(steps("mean"), 2);
    assert!(steps("roc") >= 2 && steps("residuals") >= 3);
}

/// Row 57: the expected error of a histogram follows epsilon, in the price before and in the release after.
#[test]
fn errors_follow_epsilon() {
    let folder = declared(&with_budget("40"), &rows(200));
    let error = |epsilon: &str| {
        let text = plan(&[&format!(
            "kind = \"histogram\"\ncolumn = \"group\"\nepsilon = {epsilon}"
        )]);
        run(&folder, &text)[0]["receipt"]["error_95"]
            .as_f64()
            .unwrap()
    };
    let (one, tenth) = (error("1"), error("\"0.1\""));
    // two-sided discrete Laplace: 95 % of the mass within 3 at ε = 1 and 30 at ε = 0.1
    assert!((2.0..=4.0).contains(&one), "{one}");
    assert!((27.0..=33.0).contains(&tenth), "{tenth}");
    folder.write(
        "plan.toml",
        plan(&["kind = \"histogram\"\ncolumn = \"group\"\nepsilon = \"0.2\""]),
    );
    let priced = folder.reticent(&["price", "plan.toml"]).code(0);
    assert!(priced.out.contains("15"), "{}", priced.out);
}

/// Rows 44 and 45: a whole plan is priced line by line before it runs; the lines add up to the total; a budget in
/// ρ is shown as ρ and pure steps enter it as ε²/2.
#[test]
fn plans_are_priced_line_by_line() {
    let folder = declared(
        &DATASET.replace("epsilon = \"3\"", "rho = \"3\""),
        &rows(200),
    );
    let text = plan(&[
        "kind = \"count\"\nrho = \"0.5\"",
        "kind = \"sum\"\nof = \"age\"\nrho = \"0.125\"",
        "kind = \"linear\"\nformula = \"height ~ age\"\nrho = \"0.25\"",
    ]);
    folder.write("plan.toml", &text);
    let priced = json(
        &folder
            .reticent(&["price", "plan.toml", "--json"])
            .code(0)
            .out,
    );
    let lines: Vec<&str> = priced["releases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["price"]["add_remove"]["rho"].as_str().unwrap())
        .collect();
    assert_eq!(lines, ["0.5", "0.125", "0.25"]);
    assert_eq!(priced["total"]["add_remove"]["rho"], "0.875");
    let releases = run(&folder, &text);
    // ρ = 1/2 buys a pure ε of 1
    let scale = releases[0]["receipt"]["noise"][0]["scale"]
        .as_f64()
        .unwrap();
    assert!((scale - 1.0).abs() < 1e-5, "{scale}");
}

/// Rows 33 and 42: two hundred equal parts of 1 are all accepted, the last one too; after that the smallest spend
/// is refused.
#[test]
fn two_hundred_parts_fit_and_nothing_more() {
    let folder = declared(&with_budget("1"), &rows(20));
    let parts: Vec<String> = (0..200)
        .map(|i| format!("kind = \"count\"\nepsilon = \"0.005\"\nrepeat = {i}"))
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    assert_eq!(run(&folder, &plan(&parts)).len(), 200);
    assert_eq!(spent(&folder), "1");
    // 5e-324 is too small to draw noise for at all (2); the smallest possible spend is over the budget (3)
    for (epsilon, code) in [("5e-324", 2), ("1e-12", 3)] {
        let text = plan(&[&format!("kind = \"count\"\nepsilon = \"{epsilon}\"")]);
        folder.write("plan.toml", text);
        folder.reticent(&["run", "plan.toml"]).code(code);
    }
    assert_eq!(spent(&folder), "1");
}

/// Row 38: parts of one split cost the dearest part; all rows, and a second split, add up.
#[test]
fn disjoint_parts_share_and_overlapping_rows_add() {
    let folder = registered();
    let count = |part: &str, epsilon: &str| {
        format!(
            "[[release]]\nid = \"{part}\"\nkind = \"count\"\npart = \"{part}\"\nepsilon = \"{epsilon}\"\n"
        )
    };
    let split = |salt: &str| {
        format!(
            "version = 1\ndataset = \"dataset.toml\"\nsplit = {{ test = \"1/2\", by = \"age\", salt = \"{salt}\" }}\n"
        )
    };
    let text = split("one") + &count("train", "0.4") + &count("test", "0.6") + &count("all", "0.1");
    run(&folder, &text);
    assert_eq!(spent(&folder), "0.7");
    run(&folder, &(split("two") + &count("train", "0.4")));
    assert_eq!(spent(&folder), "1.1");
}

/// Five folds under a budget for one model: the second fold is refused and the ledger shows the first. (In a
/// published library the folds were charged to copies of the accountant, which then showed nothing.)
#[test]
fn cross_validation_is_charged_fold_by_fold() {
    let folder = declared(&with_budget("1"), &rows(200));
    for fold in 1..=5 {
        folder.write(
            "plan.toml",
            format!(
                "version = 1\ndataset = \"dataset.toml\"\nsplit = {{ test = \"1/5\", by = \"age\", salt = \"fold {fold}\" }}\n[[release]]\nid = \"m\"\nkind = \"logistic\"\nformula = \"sick ~ age\"\nepsilon = 1\n"
            ),
        );
        folder
            .reticent(&["run", "plan.toml"])
            .code(if fold == 1 { 0 } else { 3 });
        assert_eq!(spent(&folder), "1");
    }
}

/// Rows 8, 9 and 77: releases cannot be seeded by anyone, and two runs of one plan on one table differ.
#[test]
fn releases_cannot_be_seeded() {
    let sum = "kind = \"sum\"\nof = \"height\"\nepsilon = \"0.01\"";
    let folder = registered();
    folder.write("plan.toml", plan(&[&format!("{sum}\nseed = 1")]));
    folder
        .reticent(&["run", "plan.toml"])
        .code(2)
        .says(&["seed"]);
    folder.write("plan.toml", plan(&[sum]));
    folder
        .reticent(&["run", "plan.toml", "--seed", "1"])
        .code(2);
    assert_eq!(spent(&folder), "0");
    let value = |folder: &Folder| run(folder, &plan(&[sum]))[0]["value"]["sum"].clone();
    // noise of scale 25,000 on a grid of 2^-32: equal with probability below 1e-13
    assert_ne!(value(&folder), value(&registered()));
}

/// Rows 65, 66 and 69: a range is found for a price, on a line of its own in the ledger; the median is asked for as
/// the mean is, and where one is refused the other is, before anything is paid.
#[test]
fn ranges_and_medians_are_ordinary_requests() {
    let folder = declared(&with_budget("9"), &rows(200));
    let releases = run(
        &folder,
        &plan(&["kind = \"bounds\"\nof = \"height\"\nepsilon = 1"]),
    );
    let end = |key: &str| releases[0]["value"][key].as_f64().unwrap();
    assert!(50.0 <= end("lower") && end("lower") < end("upper") && end("upper") <= 250.0);
    folder
        .reticent(&["ledger", "show", "dataset.toml"])
        .code(0)
        .says(&["paid: bounds"]);
    assert_eq!(spent(&folder), "1");
    for (of, code) in [
        ("age", 0),
        ("height", 0),
        ("log(height)", 0),
        ("age * height", 0),
        ("group", 2),
        ("log(age)", 2),
        ("nobody", 2),
    ] {
        for kind in ["kind = \"mean\"", "kind = \"quantiles\"\nlevels = [0.5]"] {
            folder.write(
                "plan.toml",
                plan(&[&format!("{kind}\nof = \"{of}\"\nepsilon = \"0.5\"")]),
            );
            folder.reticent(&["run", "plan.toml"]).code(code);
        }
    }
    assert_eq!(spent(&folder), "5");
}

/// Row 67: whole numbers are fine as budgets and as data.
#[test]
fn whole_numbers_are_numbers() {
    let folder = declared(
        &DATASET
            .replace("epsilon = \"3\"", "epsilon = 3")
            .replace("lower = 50\nupper = 250", "lower = 50.0\nupper = 250"),
        &rows(50),
    );
    run(
        &folder,
        &plan(&[
            "kind = \"mean\"\nof = \"age\"\nepsilon = 1",
            "kind = \"mean\"\nof = \"height\"\nepsilon = 1.0",
            "kind = \"sum\"\nof = \"age\"\nepsilon = \"1\"",
        ]),
    );
    assert_eq!(spent(&folder), "3");
}

/// Row 68: what people read names files, keys and values, and never the names of our types or raw templates.
#[test]
fn messages_have_no_internal_names() {
    let folder = registered();
    let mut messages = Vec::new();
    for release in [
        "kind = \"cuont\"\nepsilon = 1",
        "kind = \"count\"\nepsilom = 1",
        "kind = \"count\"",
        "kind = \"count\"\nepsilon = true",
        "kind = \"count\"\nepsilon = \"x\"",
        "kind = \"count\"\nepsilon = -1",
        "kind = \"count\"\nepsilon = 4",
        "kind = \"count\"\nrho = 1",
        "kind = \"sum\"\nof = \"\"\nepsilon = 1",
        "kind = \"sum\"\nof = \"log(age)\"\nepsilon = 1",
        "kind = \"sum\"\nof = \"1 / age\"\nepsilon = 1",
        "kind = \"quantiles\"\nof = \"age\"\nlevels = [2]\nepsilon = 1",
        "kind = \"histogram\"\ncolumn = \"age\"\nbins = 0\nepsilon = 1",
        "kind = \"crosstab\"\ncolumns = []\nepsilon = 1",
        "kind = \"logistic\"\nformula = \"sick ~\"\nepsilon = 1",
        "kind = \"logistic\"\nformula = \"height ~ age\"\nepsilon = 1",
        "kind = \"logistic\"\nformula = \"sick ~ age\"\npositive = \"maybe\"\nepsilon = 1",
        "kind = \"logistic\"\nformula = \"sick ~ age\"\nscale = \"none\"\nepsilon = 1",
        "kind = \"linear\"\nformula = \"height ~ age\"\ngrid_bits = 99\nepsilon = 1",
        "kind = \"roc\"\nmodel = \"r9\"\nepsilon = 1",
        "kind = \"roc\"\nmodel = \"other.json#m\"\nepsilon = 1",
    ] {
        folder.write("plan.toml", plan(&[release]));
        let outcome = folder.reticent(&["run", "plan.toml"]);
        assert!(matches!(outcome.code, 2 | 3), "{release}: {}", outcome.err);
        messages.push(outcome.err);
    }
    for arguments in [
        &["run", "nowhere.toml"][..],
        &["ledger", "show", "nowhere.ledger"],
        &["predict", "nowhere.json#m", "people.csv"],
        &["init", "nowhere.csv"],
    ] {
        let outcome = folder.reticent(arguments);
        assert_ne!(outcome.code, 0);
        messages.push(outcome.err);
    }
    assert_eq!(spent(&folder), "0");
    for message in messages {
        assert!(message.len() > 20, "too short to help: {message}");
        for internal in [
            "::",
            "Some(",
            "None",
            "Ok(",
            "Err(",
            "{}",
            "{:",
            "Rational",
            "IBig",
            "RBig",
            "reticent_",
            "unwrap",
            "panicked",
            "DeskError",
            "StatisticsError",
            "ProgramError",
            "expected struct",
        ] {
            assert!(!message.contains(internal), "{internal:?} in: {message}");
        }
    }
}

/// Rows 64, 70, 71 and 76: every declared level is answered, also the ones nobody has, as signed numbers around
/// zero; undeclared ones count in the level declared for them; nothing is suppressed.
#[test]
fn every_declared_key_is_answered() {
    let dataset = with_budget("1000").replace(
        "levels = [\"a\", \"b\", \"c\"]\n",
        "levels = [\"a\", \"b\", \"never\", \"rest\"]\nother = \"rest\"\n",
    );
    let folder = declared(&dataset, &rows(300));
    let releases = run(
        &folder,
        &plan(&["kind = \"histogram\"\ncolumn = \"group\"\nepsilon = \"100\""]),
    );
    let value = &releases[0]["value"];
    // 100 rows each of a, b and c; noise at ε = 100 is 0 except with probability below 1e-42
    assert_eq!(value["counts"], serde_json::json!([100, 100, 0, 100]));
    assert_eq!(
        value["levels"],
        serde_json::json!(["a", "b", "never", "rest"])
    );
    assert_eq!(releases[0]["flags"], serde_json::json!([]));
    // an empty cell is negative as often as positive: 60 draws at ε = 0.1, all of one sign with probability below 1e-15
    let many: Vec<String> = (0..60)
        .map(|i| {
            format!("kind = \"histogram\"\ncolumn = \"group\"\nepsilon = \"0.1\"\nrepeat = {i}")
        })
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let empty: Vec<i64> = run(&folder, &plan(&many))
        .iter()
        .map(|r| r["value"]["counts"][2].as_i64().unwrap())
        .collect();
    assert!(empty.iter().any(|c| *c < 0) && empty.iter().any(|c| *c > 0));
}

/// Row 46: a missing cell has a declared policy; without one the table is not accepted, with one it is applied and
/// never silently turned into a number.
#[test]
fn missing_cells_follow_the_declared_policy() {
    let data = "age,group,height,sick\n40,a,170,no\nNaN,a,170,no\n,b,180,yes\n";
    let folder = unregistered();
    folder.write("people.csv", data);
    folder
        .reticent(&["register", "dataset.toml"])
        .code(1)
        .says(&["line 3", "age"]);
    assert!(!folder.path("people.ledger").exists());
    for (policy, sum) in [
        ("missing = \"drop\"", 40.0),
        ("missing = \"impute\"\nimpute = 30", 100.0),
    ] {
        let dataset = with_budget("2000000").replacen(
            "type = \"integer\"\n",
            &format!("type = \"integer\"\n{policy}\n"),
            1,
        );
        let folder = declared(&dataset, data);
        let releases = run(
            &folder,
            &plan(&["kind = \"sum\"\nof = \"age\"\nepsilon = \"1000000\""]),
        );
        assert_eq!(releases[0]["value"]["sum"].as_f64(), Some(sum), "{policy}");
    }
}

/// Row 49: infinities are clamped like any other value out of bounds, whatever asks.
#[test]
fn infinities_are_clamped_everywhere() {
    let data = "age,group,height,sick\n40,a,inf,no\n41,b,-inf,yes\n42,c,1e999,no\n43,c,-1e999,no\n";
    let folder = declared(&with_budget("90000000"), data);
    let releases = run(
        &folder,
        &plan(&[
            "kind = \"count\"\nepsilon = \"10000000\"",
            "kind = \"sum\"\nof = \"height\"\nepsilon = \"10000000\"",
            "kind = \"mean\"\nof = \"height\"\nepsilon = \"10000000\"",
            "kind = \"histogram\"\ncolumn = \"height\"\nbins = 2\nepsilon = \"10000000\"",
        ]),
    );
    assert_eq!(releases[0]["value"]["count"], 4);
    let number = |i: usize, key: &str| releases[i]["value"][key].as_f64().unwrap();
    assert!((number(1, "sum") - 600.0).abs() < 0.01);
    assert!((number(2, "mean") - 150.0).abs() < 0.01);
    assert_eq!(releases[3]["value"]["counts"], serde_json::json!([2, 2]));
}

/// Rows 75 and 82: plans are tried on public fake data, made without the data; a plan is an ordinary file that gives
/// the same prices wherever it is copied; nothing is uploaded anywhere.
#[test]
fn plans_travel_and_are_tried_on_fake_data() {
    let folder = unregistered();
    fs::remove_file(folder.path("people.csv")).unwrap();
    let mock = folder
        .reticent(&["mock", "dataset.toml", "--rows", "50"])
        .code(0)
        .out;
    assert_eq!(mock.lines().count(), 51);
    assert_eq!(
        folder
            .reticent(&["mock", "dataset.toml", "--rows", "50"])
            .code(0)
            .out,
        mock
    );
    let elsewhere = declared(DATASET, &mock);
    let before = fs::read(elsewhere.path("plan.toml")).unwrap();
    elsewhere.reticent(&["run", "plan.toml"]).code(0);
    assert_eq!(fs::read(elsewhere.path("plan.toml")).unwrap(), before);
    assert_eq!(before, PLAN.as_bytes());
    let price = |f: &Folder| {
        let mut prices = json(&f.reticent(&["price", "plan.toml", "--json"]).code(0).out);
        prices["remaining"] = Value::Null;
        prices
    };
    assert_eq!(price(&folder), price(&elsewhere));
}

/// Row 74: the report says in odds what the worst case is, and does not scold small budgets.
#[test]
fn the_report_speaks_in_odds() {
    let folder = registered();
    run(&folder, &plan(&["kind = \"count\"\nepsilon = \"0.01\""]));
    let report = fs::read_to_string(folder.path("out/plan/report.html")).unwrap();
    assert!(report.contains("odds"), "a sentence about odds");
    assert!(!report.to_lowercase().contains("too small"));
}

// ---- the page itself ----

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Names of the tests of each file, as crate, module path (without `tests`) and function.
fn tests() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let krate = folder.file_name().unwrap().to_string_lossy().into_owned();
        let mut files = Vec::new();
        sources(&folder, &mut files);
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let modules: Vec<String> = file
                .strip_prefix(&folder)
                .unwrap()
                .with_extension("")
                .iter()
                .map(|p| p.to_string_lossy().into_owned())
                .filter(|p| !matches!(p.as_str(), "src" | "tests" | "it" | "mod" | "lib"))
                .collect();
            let mut is_test = false;
            for line in text.lines().map(str::trim) {
                if line == "#[test]" {
                    is_test = true;
                } else if let Some(rest) = line.strip_prefix("fn ").filter(|_| is_test) {
                    let name = rest.split('(').next().unwrap();
                    let mut path = vec![krate.clone()];
                    path.extend(modules.clone());
                    path.push(name.to_owned());
                    names.insert(path.join("::"));
                    is_test = false;
                }
            }
        }
    }
    names
}

/// Every row of `docs/lessons.md` names tests that exist, or says in words that it is not built yet.
#[test]
fn lessons_name_tests_that_exist() {
    let page = fs::read_to_string(root().join("docs/lessons.md")).unwrap();
    let known = tests();
    assert!(known.len() > 150, "only {} tests found", known.len());
    let mut rows: BTreeMap<u32, String> = BTreeMap::new();
    let mut named = 0;
    for line in page.lines().filter(|l| l.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let Ok(number) = cells[0].parse::<u32>() else {
            continue;
        };
        assert_eq!(cells.len(), 4, "row {number} has four cells");
        let last = cells[3];
        let tests: Vec<&str> = last
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|t| t.contains("::"))
            .collect();
        assert!(
            !tests.is_empty() || last.starts_with("later:"),
            "row {number} names no test and does not say \"later:\""
        );
        for test in tests {
            assert!(
                known.contains(test),
                "row {number} names {test}, which does not exist"
            );
            named += 1;
        }
        assert!(
            rows.insert(number, last.to_owned()).is_none(),
            "row {number} twice"
        );
    }
    assert_eq!(
        rows.keys().copied().collect::<Vec<_>>(),
        (1..=85).collect::<Vec<_>>()
    );
    assert!(named > 100, "{named}");
}
