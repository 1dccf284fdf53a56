//! Bad input: what it is answered with, and that nothing is spent.

use std::fs;

use serde_json::Value;

use crate::table::{DATASET, Folder, PLAN, registered, rows, unregistered};

fn spent(folder: &Folder) -> String {
    let out = folder
        .reticent(&["ledger", "show", "dataset.toml", "--json"])
        .code(0)
        .out;
    let ledger: Value = serde_json::from_str(&out).unwrap();
    ledger["spent"]["add_remove"]["epsilon"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn with_release(lines: &str) -> String {
    format!("version = 1\ndataset = \"dataset.toml\"\n[[release]]\nid = \"x\"\n{lines}\n")
}

/// A refused plan: exit code, words of the message, and an untouched ledger.
fn refused(lines: &str, code: i32, words: &[&str]) {
    let folder = registered();
    folder.write("plan.toml", with_release(lines));
    folder
        .reticent(&["run", "plan.toml"])
        .code(code)
        .says(words);
    assert_eq!(spent(&folder), "0");
    folder
        .reticent(&["price", "plan.toml"])
        .code(if code == 3 { 0 } else { code });
}

#[test]
fn epsilons_that_are_not_budgets() {
    for epsilon in [
        "0",
        "-1",
        "\"nan\"",
        "\"inf\"",
        "\"1e400000000\"",
        "\"many\"",
        "\"\"",
    ] {
        refused(
            &format!("kind = \"count\"\nepsilon = {epsilon}"),
            2,
            &["plan.toml", "epsilon"],
        );
    }
}

#[test]
fn more_than_is_left() {
    refused("kind = \"count\"\nepsilon = \"1e9\"", 3, &["3"]);
    refused(
        "kind = \"count\"\nepsilon = \"3.0000000000000000000001\"",
        3,
        &["3"],
    );
}

#[test]
fn what_is_over_the_budget_is_refused_before_the_data_are_looked_at() {
    let folder = registered();
    folder.write(
        "plan.toml",
        with_release("kind = \"count\"\nepsilon = \"4\""),
    );
    fs::remove_file(folder.path("people.csv")).unwrap();
    folder.reticent(&["run", "plan.toml"]).code(3).says(&["3"]);
    assert_eq!(spent(&folder), "0");
}

#[test]
fn extreme_epsilons_work_where_the_cap_allows() {
    for kind in [
        "kind = \"count\"",
        "kind = \"sum\"\nof = \"age\"",
        "kind = \"mean\"\nof = \"age\"",
        "kind = \"histogram\"\ncolumn = \"group\"",
        "kind = \"histogram\"\ncolumn = \"age\"",
        "kind = \"crosstab\"\ncolumns = [\"group\", \"sick\"]",
        "kind = \"quantiles\"\nof = \"height\"\nlevels = [0.25, 0.5, 0.75]",
        "kind = \"bounds\"\nof = \"height\"",
        "kind = \"logistic\"\nformula = \"sick ~ age + group\"",
        "kind = \"linear\"\nformula = \"height ~ age + group\"",
    ] {
        for epsilon in ["1e-9", "1e9"] {
            let folder = unregistered();
            folder.write(
                "dataset.toml",
                DATASET.replace("epsilon = \"3\"", "epsilon = \"2e9\""),
            );
            folder.reticent(&["register", "dataset.toml"]).code(0);
            folder.write(
                "plan.toml",
                with_release(&format!("{kind}\nepsilon = \"{epsilon}\"")),
            );
            folder.reticent(&["run", "plan.toml"]).code(0);
        }
    }
}

#[test]
fn formulas_that_name_what_is_not_there() {
    refused(
        "kind = \"logistic\"\nformula = \"sick ~ agee\"\nepsilon = 1",
        2,
        &["agee", "age"],
    );
    refused(
        "kind = \"linear\"\nformula = \"height ~ log(age)\"\nepsilon = 1",
        2,
        &["log"],
    );
    refused(
        "kind = \"linear\"\nformula = \"height ~ (age\"\nepsilon = 1",
        2,
        &["formula"],
    );
    refused(
        "kind = \"linear\"\nformula = \"group ~ age\"\nepsilon = 1",
        2,
        &["group"],
    );
}

#[test]
fn unknown_keys_kinds_and_models() {
    refused("kind = \"cuont\"\nepsilon = 1", 2, &["count"]);
    refused("kind = \"count\"\nepsilom = 1", 2, &["epsilon"]);
    refused(
        "kind = \"roc\"\nmodel = \"nobody\"\nepsilon = 1",
        2,
        &["nobody"],
    );
    refused(
        "kind = \"count\"\nepsilon = 1\ndelta = \"1e-6\"",
        2,
        &["delta"],
    );
    refused("kind = \"count\"\nrho = \"0.1\"", 2, &["epsilon"]);
}

#[test]
fn the_same_request_twice_in_a_plan() {
    let folder = registered();
    let two = with_release("kind = \"count\"\nepsilon = 1")
        + "[[release]]\nid = \"y\"\nkind = \"count\"\nepsilon = 1\n";
    folder.write("plan.toml", &two);
    folder
        .reticent(&["run", "plan.toml"])
        .code(2)
        .says(&["repeat"]);
    folder.write(
        "plan.toml",
        two.replace("id = \"y\"", "id = \"y\"\nrepeat = 1"),
    );
    folder.reticent(&["run", "plan.toml"]).code(0);
    assert_eq!(spent(&folder), "2");
}

#[test]
fn odd_tables_still_give_releases() {
    let constant: String = "age,group,height,sick\n".to_owned() + &"40,a,170,no\n".repeat(50);
    let tables = [
        ("header only", "age,group,height,sick\n".to_owned()),
        ("one row", rows(1)),
        ("constant columns, single class", constant),
        ("two rows", rows(2)),
    ];
    for (name, text) in tables {
        let folder = unregistered();
        folder.write("people.csv", text);
        let registered = folder.reticent(&["register", "dataset.toml"]);
        if registered.code != 0 {
            assert!(name == "header only", "{name}: {}", registered.err);
            continue;
        }
        folder.reticent(&["run", "plan.toml"]).code(0);
        let linear = with_release(
            "kind = \"linear\"\nformula = \"height ~ age + I(2 * age) + group\"\nepsilon = \"0.5\"",
        );
        folder.write("linear.toml", linear);
        folder.reticent(&["run", "linear.toml"]).code(0);
    }
}

#[test]
fn errors_in_rows_are_for_the_curator() {
    let cases: [(&str, Vec<u8>, &[&str]); 8] = [
        (
            "an unknown level",
            b"age,group,height,sick\n40,a,170,no\n41,q,170,no\n".to_vec(),
            &["line 3", "group", "q"],
        ),
        (
            "a missing cell",
            b"age,group,height,sick\n,a,170,no\n".to_vec(),
            &["line 2", "age"],
        ),
        (
            "not a number",
            b"age,group,height,sick\nold,a,170,no\n".to_vec(),
            &["line 2", "age", "old"],
        ),
        (
            "a column twice",
            b"age,age,group,height,sick\n1,1,a,170,no\n".to_vec(),
            &["age"],
        ),
        (
            "a column missing",
            b"age,group,height\n1,a,170\n".to_vec(),
            &["sick"],
        ),
        ("an empty file", b"".to_vec(), &["people.csv"]),
        (
            "not UTF-8",
            b"age,group,height,sick\n1,\xff\xfe,170,no\n".to_vec(),
            &["line 2", "group"],
        ),
        (
            "a huge field",
            [
                b"age,group,height,sick\n1,".as_slice(),
                &b"x".repeat(1_000_000),
                b",170,no\n",
            ]
            .concat(),
            &["line 2", "group"],
        ),
    ];
    for (name, data, words) in cases {
        let folder = unregistered();
        folder.write("people.csv", data);
        let outcome = folder.reticent(&["register", "dataset.toml"]);
        assert_ne!(outcome.code, 0, "{name}");
        assert!(outcome.err.len() < 20_000, "{name}: a short message");
        outcome.says(words);
        assert!(
            !folder.path("people.ledger").exists(),
            "{name}: nothing was created"
        );
    }
}

#[test]
fn values_out_of_bounds_are_clamped_not_refused() {
    let folder = unregistered();
    folder.write(
        "people.csv",
        rows(50) + "1000,a,1e308,no\n-5,b,inf,yes\n40,c,-inf,no\n",
    );
    folder.reticent(&["register", "dataset.toml"]).code(0);
    folder.reticent(&["run", "plan.toml"]).code(0);
}

#[test]
fn running_needs_registration_and_the_registered_data() {
    let folder = unregistered();
    folder
        .reticent(&["run", "plan.toml"])
        .code(3)
        .says(&["register"]);
    folder.reticent(&["register", "dataset.toml"]).code(0);
    folder.reticent(&["register", "dataset.toml"]).code(3);
    folder.write("people.csv", rows(201));
    folder
        .reticent(&["run", "plan.toml"])
        .code(1)
        .says(&["data changed since registration"]);
    assert_eq!(spent(&folder), "0");
    folder.write("people.csv", rows(200));
    folder.reticent(&["run", "plan.toml"]).code(0);
}

#[test]
fn a_declared_number_of_rows_must_be_right() {
    let folder = unregistered();
    let declared =
        |n: usize| DATASET.replacen("\"add_remove\"", &format!("\"replace_one\"\nrows = {n}"), 1);
    folder.write("dataset.toml", declared(199));
    folder
        .reticent(&["register", "dataset.toml"])
        .code(1)
        .says(&["rows = 199", "200 rows"]);
    assert!(!folder.path("people.ledger").exists());
    folder.write("dataset.toml", declared(200));
    folder.reticent(&["register", "dataset.toml"]).code(0);
    folder.reticent(&["run", "plan.toml"]).code(0);
}

#[test]
fn a_changed_declaration_is_noticed() {
    let folder = registered();
    for (from, to, word) in [
        ("upper = 100", "upper = 120", "columns"),
        (
            "\"add_remove\"",
            "\"replace_one\"\nrows = 200",
            "neighbours",
        ),
        (
            "data_version = \"1\"",
            "data_version = \"2\"",
            "data_version",
        ),
        ("id = \"people\"", "id = \"persons\"", "id"),
    ] {
        folder.write("dataset.toml", DATASET.replacen(from, to, 1));
        folder.reticent(&["run", "plan.toml"]).code(3).says(&[word]);
    }
}

/// The ledger adds up losses of one kind of unit: another unit, bound per unit or reading of cells is another ledger.
#[test]
fn a_changed_unit_or_reading_is_noticed() {
    let folder = unregistered();
    let declared = DATASET.replace(
        "type = \"text\"\nlevels = [\"a\", \"b\", \"c\"]",
        "type = \"id\"",
    );
    let unit = |max_rows: u32| {
        let text = format!("unit = {{ column = \"group\", max_rows = {max_rows} }}");
        declared.replace("unit = \"row\"", &text)
    };
    folder.write("dataset.toml", unit(2));
    folder.write(
        "plan.toml",
        with_release("kind = \"count\"\nepsilon = \"0.5\""),
    );
    folder.reticent(&["register", "dataset.toml"]).code(0);
    folder.reticent(&["run", "plan.toml"]).code(0);
    let before = spent(&folder);
    let reading = unit(2).replace("upper = 250", "upper = 250\nmissing_values = [\"-9\"]");
    for changed in [declared.clone(), unit(1), unit(3), reading] {
        folder.write("dataset.toml", changed);
        folder
            .reticent(&["run", "plan.toml"])
            .code(3)
            .says(&["unit", "dataset.toml"]);
    }
    folder.write("dataset.toml", unit(2));
    assert_eq!(spent(&folder), before);
}

/// Under `replace_one` the declared count is that of the file: a mean over the records that are left divides by
/// their own number, which is bought.
#[test]
fn a_mean_does_not_count_dropped_records() {
    let folder = unregistered();
    let declared = DATASET
        .replace("\"add_remove\"", "\"replace_one\"\nrows = 200")
        .replace("epsilon = \"3\"", "epsilon = \"1000\"");
    let rows: Vec<&str> = (0..200)
        .map(|i| {
            if i % 2 == 0 {
                "30,a,250,no\n"
            } else {
                "30,a,,no\n"
            }
        })
        .collect();
    let rows = rows.concat();
    folder.write("people.csv", format!("age,group,height,sick\n{rows}"));
    folder.write(
        "dataset.toml",
        declared.replace("upper = 250", "upper = 250\nmissing = \"drop\""),
    );
    folder.reticent(&["register", "dataset.toml"]).code(0);
    folder.write(
        "plan.toml",
        with_release("kind = \"mean\"\nof = \"height\"\nepsilon = \"400\""),
    );
    let out = folder.reticent(&["run", "plan.toml", "--json"]).code(0).out;
    let release: Value = serde_json::from_str(&out).unwrap();
    let value = &release["releases"][0]["value"];
    // All 100 values are 250. The noise of the count has scale 2/100, of the sum less than 1; off by more than 5 with
    // probability below 1e-9.
    assert_eq!(value["count"], 100);
    assert!(value["mean"].as_f64().unwrap() > 245.0, "{value}");
    // Without a dropping policy the declared count is used, and nothing is spent on it.
    folder.write(
        "plan.toml",
        with_release("kind = \"mean\"\nof = \"age\"\nepsilon = \"400\""),
    );
    let out = folder.reticent(&["run", "plan.toml", "--json"]).code(0).out;
    let release: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(release["releases"][0]["value"]["count"], 200);
    assert_eq!(
        release["releases"][0]["receipt"]["noise"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

/// Names stand in the ledger for good and are printed from there.
#[test]
fn an_analyst_has_a_plain_name() {
    let folder = registered();
    for name in ["", " ", "a\u{1b}[31m", "a\nb", "a\u{202e}b"] {
        let out = folder.reticent(&["run", "plan.toml", "--analyst", name, "--json"]);
        let refusal: Value = serde_json::from_str(&out.code(2).err).unwrap();
        assert_eq!(refusal["exit_code"], 2);
    }
    assert_eq!(spent(&folder), "0");
    folder
        .reticent(&["run", "plan.toml", "--analyst", "Zoë O'Hara"])
        .code(0);
}

#[test]
fn raising_a_cap_names_what_is_counted_and_who() {
    let folder = registered();
    let raise =
        |more: &[&str]| folder.reticent(&[&["ledger", "raise", "dataset.toml"], more].concat());
    raise(&["--rho", "1", "--by", "me"])
        .code(2)
        .says(&["counts epsilon, not rho"]);
    raise(&["--epsilon", "4", "--by", "a\u{1b}[31m"])
        .code(2)
        .says(&["--by"]);
    raise(&["--epsilon", "4", "--by", "me"]).code(0);
}

#[test]
fn a_wrong_command_line_is_a_refusal_for_machines_too() {
    let folder = registered();
    for line in [&["bogus", "--json"][..], &["run", "--json"], &["--json"]] {
        let out = folder.reticent(line).code(2);
        let refusal: Value = serde_json::from_str(&out.err).unwrap();
        assert_eq!(refusal["exit_code"], 2);
        assert!(out.out.is_empty());
    }
}

#[test]
fn a_changed_plan_pays_for_what_is_new_only() {
    let folder = registered();
    folder.reticent(&["run", "plan.toml"]).code(0);
    let before = spent(&folder);
    // Another order of keys, a comment, another name: the same requests.
    let renamed = PLAN.replace(
        "id = \"people\"\nkind = \"count\"",
        "kind = \"count\" # how many\nid = \"persons\"",
    );
    folder.write("plan.toml", renamed);
    folder.reticent(&["run", "plan.toml"]).code(0);
    assert_eq!(spent(&folder), before);
    folder.write(
        "plan.toml",
        PLAN.to_owned()
            + "[[release]]\nid = \"more\"\nkind = \"count\"\nepsilon = \"0.25\"\nrepeat = 1\n",
    );
    folder.reticent(&["run", "plan.toml"]).code(0);
    assert_ne!(spent(&folder), before);
}

#[test]
fn damaged_ledgers_are_refused() {
    type Damage = fn(&Folder);
    let cases: [(&str, Damage); 3] = [
        ("truncated", |f| {
            let bytes = fs::read(f.path("people.ledger")).unwrap();
            fs::write(f.path("people.ledger"), &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("garbage", |f| {
            fs::write(f.path("people.ledger"), b"not a ledger at all").unwrap();
        }),
        ("gone", |f| {
            fs::remove_file(f.path("people.ledger")).unwrap();
        }),
    ];
    for (name, damage) in cases {
        let folder = registered();
        folder.reticent(&["run", "plan.toml"]).code(0);
        for extra in ["people.ledger-wal", "people.ledger-shm"] {
            let _ = fs::remove_file(folder.path(extra));
        }
        damage(&folder);
        let outcome = folder.reticent(&["run", "plan.toml"]);
        assert!(
            matches!(outcome.code, 1 | 3),
            "{name}: {} {}",
            outcome.code,
            outcome.err
        );
        assert!(outcome.err.contains("ledger"), "{name}: {}", outcome.err);
    }
    // An older copy.
    let folder = registered();
    fs::copy(folder.path("people.ledger"), folder.path("old")).unwrap();
    folder.reticent(&["run", "plan.toml"]).code(0);
    for extra in ["people.ledger-wal", "people.ledger-shm"] {
        let _ = fs::remove_file(folder.path(extra));
    }
    fs::copy(folder.path("old"), folder.path("people.ledger")).unwrap();
    folder
        .reticent(&["run", "plan.toml"])
        .code(1)
        .says(&["ledger"]);
}

#[test]
fn raising_is_recorded_and_only_upward() {
    let folder = registered();
    folder
        .reticent(&[
            "ledger",
            "raise",
            "dataset.toml",
            "--epsilon",
            "1",
            "--by",
            "board",
        ])
        .code(3);
    folder
        .reticent(&[
            "ledger",
            "raise",
            "dataset.toml",
            "--epsilon",
            "5",
            "--by",
            "board",
        ])
        .code(0)
        .says(&["5"]);
    folder
        .reticent(&[
            "ledger",
            "raise",
            "dataset.toml",
            "--rho",
            "5",
            "--by",
            "board",
        ])
        .code(2);
    folder
        .reticent(&["ledger", "show", "dataset.toml"])
        .code(0)
        .says(&["board", "cap raised"]);
    folder
        .reticent(&["ledger", "verify", "dataset.toml"])
        .code(0)
        .says(&["the chain holds"]);
    // The declaration still says 3: the run says which one counts.
    folder
        .reticent(&["run", "plan.toml"])
        .code(0)
        .says(&["note:", "epsilon 3", "epsilon 5"]);
}

#[test]
fn an_output_folder_that_cannot_be_written_costs_nothing() {
    let folder = registered();
    folder.write("file", "not a folder");
    folder
        .reticent(&["run", "plan.toml", "--out", "file/inside"])
        .code(1)
        .says(&["output folder"]);
    assert_eq!(spent(&folder), "0");
}

/// Numbers that no table of an exact loss, or no list of quantiles, can be made for.
#[test]
fn numbers_beyond_what_can_be_computed() {
    let folder = Folder::new();
    let too_much = ["attack", "gptt", "--epsilon", "1e308"];
    folder.reticent(&too_much).code(2).says(&["--copies"]);
    folder
        .reticent(&["attack", "gptt", "--epsilon", "2"])
        .code(0);
    let many = "plan-accuracy --kind quantiles --levels 4294967294 --epsilon 1";
    let many: Vec<&str> = many.split(' ').collect();
    folder.reticent(&many).code(2);
}
