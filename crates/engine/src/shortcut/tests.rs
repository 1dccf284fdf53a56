use std::path::Path;

use proptest::prelude::*;
use reticent_accounting::Currency;

use super::*;
use crate::dataset::Dataset;
use crate::kinds::NAMES;
use crate::plan::Plan;

#[test]
fn every_kind_has_its_flags() {
    let kinds = kinds();
    assert_eq!(kinds.len() + 1, NAMES.len());
    for (kind, about) in &kinds {
        assert!(
            NAMES.contains(&kind.as_str()) && !about.is_empty(),
            "{kind}"
        );
        let keys = keys(kind);
        assert!(keys.iter().any(|k| k.name == "id"), "{kind}");
        assert!(keys.iter().all(|k| !k.help.is_empty()), "{kind}: {keys:?}");
    }
    assert!(keys("nothing").is_empty());
}

#[test]
fn values_follow_the_types_of_their_keys() {
    let given = |pairs: &[(&str, &[&str])]| -> Vec<(String, Vec<String>)> {
        let each = pairs.iter();
        each.map(|(k, v)| ((*k).to_owned(), v.iter().map(|s| (*s).to_owned()).collect()))
            .collect()
    };
    let dataset = Path::new("some \"where\"/d.toml");
    let covariance = given(&[
        ("columns", &["age", "log1p(income)"]),
        ("method", &["sketch"]),
        ("rows", &["40"]),
        ("directions", &["{ age = 1 }", "{ age = 2 }"]),
        ("epsilon", &["1"]),
        ("delta", &["1e-6"]),
    ]);
    let text = plan("covariance", dataset, None, &covariance);
    for line in [
        "dataset = \"some \\\"where\\\"/d.toml\"",
        "columns = [\"age\", \"log1p(income)\"]",
        "rows = 40",
        "directions = [{ age = 1 }, { age = 2 }]",
        "delta = \"1e-6\"",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(Plan::parse(&text, Path::new("p.toml")).is_ok(), "{text}");
    let bayes = given(&[
        ("id", &["b"]),
        ("formula", &["y ~ a"]),
        ("positive", &["[\"x\", \"z\"]"]),
        ("epsilon", &["0.5"]),
    ]);
    let text = plan("naive_bayes", dataset, Some("a > 1"), &bayes);
    assert!(text.contains("where = \"a > 1\"") && text.contains("positive = [\"x\", \"z\"]"));
    assert!(Plan::parse(&text, Path::new("p.toml")).is_ok(), "{text}");
    let one = given(&[
        ("formula", &["y ~ a"]),
        ("positive", &["x"]),
        ("keep", &["{ top = 1 }"]),
        ("epsilon", &["0.5"]),
    ]);
    let text = plan("naive_bayes", dataset, None, &one);
    assert!(text.contains("positive = \"x\"") && text.contains("keep = { top = 1 }"));
    assert!(Plan::parse(&text, Path::new("p.toml")).is_ok(), "{text}");
    // a mistake stays one: what is no number is a text, which the plan's reader refuses
    let wrong = given(&[
        ("columns", &["age"]),
        ("rows", &["many"]),
        ("epsilon", &["1"]),
    ]);
    let text = plan("covariance", dataset, None, &wrong);
    assert!(Plan::parse(&text, Path::new("p.toml")).is_err());
}

fn given(pairs: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    let each = pairs.iter();
    each.map(|(k, v)| ((*k).to_owned(), v.iter().map(|s| (*s).to_owned()).collect()))
        .collect()
}

/// The one release of a plan, as TOML reads it.
fn release(text: &str) -> toml::Table {
    let top: toml::Table = text.parse().unwrap();
    let list = top["release"].as_array().unwrap();
    assert_eq!(list.len(), 1, "{text}");
    assert_eq!(top.len(), 3, "{text}");
    list[0].as_table().unwrap().clone()
}

/// The value that a flag sets, as TOML.
fn set(kind: &str, key: &str, values: &[&str]) -> String {
    let text = plan(kind, Path::new("d.toml"), None, &given(&[(key, values)]));
    let release = release(&text);
    assert_eq!(release.len(), 3, "{text}");
    values::written(&release[key])
}

/// What is pasted behind a list or a table is part of the value, whatever it would be in a plan.
#[test]
fn a_value_cannot_add_keys_or_releases() {
    let more = "{ top = 1 }\n\n[[release]]\nkind = \"count\"\nid = \"x\"\nepsilon = \"500\"";
    assert!(set("naive_bayes", "keep", &[more]).starts_with('"'));
    let text = plan(
        "naive_bayes",
        Path::new("d.toml"),
        None,
        &given(&[("keep", &[more])]),
    );
    let refusal = Plan::parse(&text, Path::new(NAME)).unwrap_err();
    assert!(refusal.to_string().contains("formula"), "{refusal}");
    for (kind, key, value) in [
        (
            "crosstab",
            "columns",
            "[\"married\"]\nepsilon = \"1000\"\n#",
        ),
        ("covariance", "directions", "{age=1}]\nrows = 40 #"),
        ("naive_bayes", "keep", "{ top = 1 }\nsmoothing = 5"),
        ("verify", "within", "[1, 2]\nlevel = 1"),
        ("roc", "decide_at", "[0.5] # no"),
    ] {
        set(kind, key, &[value]);
        set(kind, key, &[value, value]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is given for a key sets that key: no other, and no other line.
    #[test]
    fn a_flag_sets_its_key_and_nothing_else(
        value in "[\\[{\"']?[a-c0-9 =,.\\[\\]{}\"'#\\\\\n\r\t\u{7f}é-]{0,20}",
        more in prop::collection::vec("\\PC{0,6}", 0..2),
    ) {
        let values: Vec<String> = std::iter::once(value).chain(more).collect();
        for kind in ["crosstab", "histogram", "naive_bayes", "covariance", "roc", "linear", "verify"] {
            for key in keys(kind).iter().filter(|k| k.name != "id") {
                let all = if key.list { &values[..] } else { &values[..1] };
                let text = plan(kind, Path::new("d.toml"), None, &[(key.name.clone(), all.to_vec())]);
                let release = release(&text);
                prop_assert_eq!(release.len(), 3, "{}", text);
                prop_assert_eq!(text.lines().count(), 7, "{}", text);
            }
        }
    }
}

#[test]
fn numbers_are_read_as_everywhere() {
    for (given, read) in [
        ("020", "20"),
        ("20.", "20"),
        (" 1e1 ", "10"),
        ("infinity", "\"infinity\""),
        ("1/3", "\"1/3\""),
        ("many", "\"many\""),
    ] {
        assert_eq!(set("linear", "grid_bits", &[given]), read);
    }
    assert_eq!(set("roc", "decide_at", &[".5"]), "[0.5]");
    assert_eq!(set("roc", "decide_at", &[".5", "0.25"]), "[0.5, 0.25]");
    assert_eq!(
        set("roc", "decide_at", &["[0.5, 0.1234567890123456789]"]),
        "[0.5, \"0.1234567890123456789\"]"
    );
    // an amount stays the text that was written
    assert_eq!(set("count", "epsilon", &["0.10"]), "\"0.10\"");
    assert_eq!(set("linear", "naive", &["true"]), "true");
}

#[test]
fn names_may_look_like_lists() {
    for (given, read) in [
        (&["[0,18)"][..], "\"[0,18)\""),
        (&["{a}"], "\"{a}\""),
        (&["[grp]"], "\"[grp]\""),
        (&["1"], "\"1\""),
        (&["[1, 2]"], "[1, 2]"),
        (&["\"[1, 2]\""], "\"[1, 2]\""),
        (&["'say \"so\"'"], "\"say \\\"so\\\"\""),
        (&["[\"a\", \"b\"]"], "[\"a\", \"b\"]"),
        (&["[0,18)", "\"[1, 2]\""], "[\"[0,18)\", \"[1, 2]\"]"),
    ] {
        assert_eq!(set("logistic", "positive", given), read, "{given:?}");
    }
    for (given, read) in [
        (&["[grp]"][..], "[\"[grp]\"]"),
        (&["[1, 2]"], "[\"[1, 2]\"]"),
        (&["[\"a\"]"], "[\"a\"]"),
        (&["a", "[\"b\"]"], "[\"a\", \"[\\\"b\\\"]\"]"),
    ] {
        assert_eq!(set("crosstab", "columns", given), read, "{given:?}");
    }
    assert_eq!(set("histogram", "bins", &["18", "95"]), "[\"18\", \"95\"]");
    assert_eq!(set("histogram", "bins", &["18"]), "18");
    assert_eq!(
        set("crosstab", "bins", &["{ age = [0, 1.5], \"a b\" = 3 }"]),
        "{ \"a b\" = 3, age = [0, 1.5] }"
    );
    assert_eq!(set("sum", "column", &["[\"a\"]"]), "\"[\\\"a\\\"]\"");
}

/// Messages about keys name flags; what the user wrote is left alone.
#[test]
fn refusals_are_about_flags() {
    let of = |kind: &str, pairs: &[(&str, &[&str])]| {
        let text = plan(kind, Path::new("d.toml"), None, &given(pairs));
        let refusal = Plan::parse(&text, Path::new(NAME)).unwrap_err();
        refused(kind, refusal).to_string()
    };
    let one: (&str, &[&str]) = ("epsilon", &["1"]);
    for (said, expected) in [
        (
            of("verify", &[("formula", &["y ~ a"]), one]),
            "--term is missing. Write the term of the formula whose coefficient is meant, for example --term age.",
        ),
        (
            of(
                "covariance",
                &[("columns", &["a"]), ("data_norm", &["1e70"]), one],
            ),
            "--data-norm: --data-norm must lie between 1e-60 and 1e60. Write the largest Euclidean norm of a row that should count, for example --data-norm 1.",
        ),
        (
            of("roc", &[("model", &["m"]), one]),
            "--model \"m\": not of the form \"release.json#id\". Name a released one, for example out/logistic/release.json#logistic after `reticent logistic`.",
        ),
        (
            of("count", &[]),
            "the release has no privacy budget. Write --epsilon 0.5, or --rho 0.01 where the data set's budget is in rho.",
        ),
        (
            of(
                "naive_bayes",
                &[("formula", &["y ~ a"]), ("keep", &["{ top = 0 }"]), one],
            ),
            "--keep, top 0: must be between 1 and",
        ),
    ] {
        assert!(said.starts_with(expected), "{said}\n{expected}");
    }
    let theirs = Refusal::request("there is no column `level`")
        .in_file(Path::new(NAME))
        .at_line(7);
    let said = refused(
        "verify",
        theirs
            .for_key("release \"v\", formula")
            .accepting("Known: `level`, `from`."),
    );
    assert_eq!(
        said.to_string(),
        "--formula: there is no column `level`. Known: `level`, `from`."
    );
    let elsewhere = Refusal::request("no")
        .in_file(Path::new("d.toml"))
        .at_line(3)
        .for_key("columns");
    assert_eq!(refused("crosstab", elsewhere.clone()), elsewhere);
    assert_eq!(
        words::of_flags("with method = \"sketch\": (a_method = 1)", &["method"]),
        "with --method sketch: (a_method = 1)"
    );
}

/// What the command line can never take is no flag: amounts of another currency, features of another release.
#[test]
fn flags_are_those_that_can_work() {
    let names = |kind: &str| keys(kind).into_iter().map(|k| k.name).collect::<Vec<_>>();
    assert!(!names("logistic").contains(&"features".to_owned()));
    assert!(!names("naive_bayes").contains(&"features".to_owned()));
    assert!(names("select").contains(&"features".to_owned()));
    for (kind, _) in kinds() {
        let said: Vec<Key> = keys(&kind)
            .into_iter()
            .filter(|k| k.help.contains("this plan"))
            .collect();
        assert!(said.is_empty(), "{kind}: {said:?}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (kind, arguments) in examples() {
        let file = folder.join(&arguments[1]);
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.replace(
            "epsilon = \"10\"\n\n",
            "epsilon = \"10\"\ndelta = \"1e-6\"\n\n",
        );
        let dataset = Dataset::parse(&text, &file).unwrap();
        assert_eq!(dataset.currency, Currency::Approximate);
        let mut flags: Vec<(String, Vec<String>)> = Vec::new();
        for pair in arguments[2..].chunks(2) {
            let key = pair[0].trim_start_matches("--").replace('-', "_");
            if key == "where" || key == "delta" {
                continue;
            }
            match flags.iter_mut().find(|f| f.0 == key) {
                Some((_, values)) => values.push(pair[1].clone()),
                None => flags.push((key, vec![pair[1].clone()])),
            }
        }
        if kind == "running_total" {
            flags.extend(given(&[("method", &["square_root"])]));
        }
        let gaussian = names(kind).contains(&"delta".to_owned());
        flags.extend(given(&[("delta", &["1e-7"])]));
        let text = plan(kind, Path::new("d.toml"), None, &flags);
        let checked = Plan::parse(&text, Path::new(NAME)).and_then(|p| p.check(&dataset));
        assert_eq!(checked.is_ok(), gaussian, "{kind}: {checked:?}");
    }
}
