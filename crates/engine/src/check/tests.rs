use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::plan::{ModelRef, Scaling};

const DATASET: &str = r#"
version = 1
id = "adult"
data_version = "1996"
source = { path = "adult.csv" }
neighbours = "add_remove"
[budget]
epsilon = "10"
[ledger]
path = "adult.ledger"
[columns.age]
type = "integer"
lower = 17
upper = 90
[columns.hours]
type = "integer"
lower = 0
upper = 99
[columns.education]
type = "text"
levels = ["HS-grad", "Bachelors", "Masters"]
[columns.income]
type = "text"
levels = ["<=50K", ">50K"]
"#;

/// The example of the format's documentation.
const PLAN: &str = r#"
version = 1
dataset = "dataset.toml"
split = { test = "1/3", by = "content", salt = "adult-1" }
where = "hours > 0"
[[release]]
id = "income"
kind = "logistic"
formula = "income ~ age + C(education) + log1p(hours)"
positive = ">50K"
part = "train"                   # train | test | all
epsilon = "0.5"
[[release]]
id = "roc"
kind = "roc"
model = "income"
epsilon = "0.5"
"#;

fn dataset() -> Dataset {
    Dataset::parse(DATASET, Path::new("dataset.toml")).unwrap()
}

fn plan(text: &str) -> Result<Plan, Refusal> {
    Plan::parse(text, Path::new("work/plan.toml"))
}

fn checked(text: &str) -> Result<Checked, Refusal> {
    plan(text)?.check(&dataset())
}

fn one(release: &str) -> String {
    format!(
        "version = 1\ndataset = \"dataset.toml\"\n[[release]]\nid = \"r\"\nepsilon = 1\n{release}\n"
    )
}

#[test]
fn claims_are_checked() {
    let claim = |more: &str| {
        let text = one(&format!(
            "kind = \"verify\"\nformula = \"hours ~ age\"\nterm = \"age\"\n{more}"
        ));
        checked(&text)
    };
    for more in [
        "",
        "from = -2.5\nlevel = 0.01\ngroups = 101\nseed = 7",
        "within = [-1, 1]",
        "family = \"linear\"",
    ] {
        claim(more).unwrap_or_else(|e| panic!("{more}: {e}"));
    }
    for (more, words) in [
        ("level = 1", &["line 9", "level", "between 0 and 1"][..]),
        ("from = \"x\"", &["line 9", "from", "number"]),
        ("within = [1, 1]", &["line 9", "within", "smaller"]),
        ("within = [1]", &["line 9", "two numbers"]),
        ("from = 0\nwithin = [0, 1]", &["another question"]),
        ("positive = \"a\"", &["line 9", "logistic"]),
        ("groups = 2", &["line 9", "groups"]),
        ("family = \"probit\"", &["line 9", "\"logistic\""]),
        ("family = \"logistic\"", &["formula"]),
    ] {
        let refusal = claim(more).map(drop).unwrap_err().to_string();
        for word in words {
            assert!(refusal.contains(word), "{more}: {refusal}");
        }
    }
}

#[test]
fn the_documented_example_is_read_as_documented() {
    let p = plan(PLAN).unwrap();
    assert_eq!(p.dataset, Path::new("work/dataset.toml"));
    assert_eq!(p.text, PLAN);
    assert_eq!(p.split.as_ref().unwrap().test, (1, 3));
    assert_eq!(p.filter.as_deref(), Some("hours > 0"));
    let [income, roc] = p.releases.as_slice() else {
        panic!("two releases")
    };
    assert_eq!((income.line, roc.line), (6, 13));
    assert_eq!(income.part.as_deref(), Some("train"));
    assert_eq!(roc.part.as_deref(), Some("test"));
    let KindSpec::Logistic(fit) = &income.kind else {
        panic!("logistic")
    };
    assert_eq!(
        (fit.scale, fit.lambda, fit.data_norm),
        (Scaling::Bounds, None, None)
    );
    assert_eq!(roc.kind.inputs(), [&ModelRef::Release("income".into())]);
    let compiled = p.check(&dataset()).unwrap();
    let split = compiled.split.unwrap();
    assert_eq!(
        split.parts,
        [("train".to_owned(), 2, 3), ("test".to_owned(), 1, 3)]
    );
    assert!(compiled.filter.is_some());
}

#[test]
fn request_content_does_not_depend_on_spelling_or_names() {
    let p = plan(PLAN).unwrap();
    let renamed = PLAN
        .replace("\"income\"", "\"model\"")
        .replace("kind = \"logistic\"\n", "")
        .replace(
            "epsilon = \"0.5\"\n[[",
            "epsilon = 0.50\nkind = \"logistic\" # the model\nrepeat = 0\n[[",
        )
        .replace(
            "age + C(education) + log1p(hours)",
            "age+C( education )+log1p(hours)",
        );
    let q = plan(&renamed).unwrap();
    for (a, b) in p.releases.iter().zip(&q.releases) {
        assert_eq!(a.canonical(), b.canonical());
    }
    assert_eq!(p.canonical_filter(), q.canonical_filter());
    assert_ne!(p.releases[0].id, q.releases[0].id);
    let again =
        plan(&PLAN.replace("epsilon = \"0.5\"\n[[", "epsilon = \"0.5\"\nrepeat = 1\n[[")).unwrap();
    assert_ne!(p.releases[0].canonical(), again.releases[0].canonical());
    assert_eq!(
        p.releases[1].canonical(),
        serde_json::json!({"kind": "roc", "part": "test", "budget": {"epsilon": "0.5"}, "repeat": 0,
            "bins": null, "threshold_share": null})
    );
    let sum = plan(&one("kind = \"sum\"\ncolumn = \"hours\"")).unwrap();
    let of = plan(&one("kind = \"sum\"\nof = \" hours \"")).unwrap();
    assert_eq!(sum.releases[0].canonical(), of.releases[0].canonical());
}

/// Every plan in the guide is one; those over the columns of this data set are accepted for it.
#[test]
fn the_plans_of_the_guide_are_plans() {
    let guide = include_str!("../../../../docs/guide.md");
    let blocks: Vec<&str> = guide
        .split("```toml\n")
        .skip(1)
        .filter_map(|b| b.split("```").next())
        .filter(|b| b.contains("[[release]]"))
        .collect();
    assert!(blocks.len() >= 2);
    let accepted = blocks
        .iter()
        .map(|b| plan(b).unwrap_or_else(|e| panic!("{b}: {e}")))
        .filter(|p| p.check(&dataset()).is_ok())
        .map(|p| p.releases.len());
    assert_eq!(accepted.sum::<usize>(), 5);
}

#[test]
fn every_kind_is_accepted() {
    for release in [
        "kind = \"count\"",
        "kind = \"sum\"\nof = \"hours * 2\"",
        "kind = \"mean\"\ncolumn = \"age\"",
        // Lessons, row 69: a mean can be swapped for a median.
        "kind = \"quantiles\"\ncolumn = \"age\"\nlevels = [0.5]",
        "kind = \"quantiles\"\nof = \"log1p(hours)\"\nlevels = [\"1/3\", 0.9]\ncells = 100",
        "kind = \"bounds\"\ncolumn = \"hours\"\ncoverage = 0.95",
        "kind = \"histogram\"\ncolumn = \"education\"",
        "kind = \"histogram\"\ncolumn = \"age\"\nbins = 10",
        "kind = \"histogram\"\ncolumn = \"age\"\nedges = [17, 30, 90]",
        "kind = \"crosstab\"\ncolumns = [\"education\", \"age\"]\nbins = 10",
        "kind = \"crosstab\"\ncolumns = [\"education\", \"age\"]\nbins = { age = [17, 40, 90] }",
        "kind = \"linear\"\nformula = \"hours ~ age * education\"\nclip = \"none\"\ngrid_bits = 26",
        "kind = \"logistic\"\nformula = \"income ~ .\"\nscale = \"none\"\ndata_norm = 2\nlambda = 0.5",
        "kind = \"roc\"\nmodel = \"old/release.json#income\"\nbins = 16",
        "kind = \"roc\"\nmodels = [\"old/release.json#a\", \"old/release.json#b\"]\nthresholds = \"smooth\"\ncounts = \"dawa\"\ndecide_at = [0.2, 0.5]",
        "kind = \"roc\"\nmodel = \"old/release.json#income\"\nthresholds = \"stratified\"\ncounts = \"hb\"",
        "kind = \"roc\"\nmodel = \"old/release.json#income\"\nthresholds = \"label_separate\"\nthreshold_share = 0.9",
        "kind = \"auc\"\nmodel = \"old/release.json#income\"",
        "kind = \"bounds\"\ncolumn = \"hours\"\nmethod = \"doubling\"\nscales = \"printed\"",
        "kind = \"top_k\"\ncolumn = \"education\"\nk = 2",
        "kind = \"top_k\"\ncolumn = \"age\"\nbins = 10\nk = 3\nmethod = \"peeling\"",
        "kind = \"running_total\"\ncolumn = \"age\"",
        "kind = \"running_total\"\ncolumn = \"hours\"\nsteps = 12\nmethod = \"tree\"",
        "kind = \"running_total\"\ncolumn = \"education\"\nmethod = \"honaker\"",
    ] {
        checked(&one(release)).unwrap_or_else(|e| panic!("{release}: {e}"));
    }
    let default = plan(&one("kind = \"quantiles\"\ncolumn = \"age\"")).unwrap();
    let KindSpec::Quantiles(q) = &default.releases[0].kind else {
        panic!("quantiles")
    };
    assert_eq!((q.levels.len(), q.cells), (3, 4096));
    assert_eq!(
        Binning::Even(4).edges(0.0, 1.0),
        [0.0, 0.25, 0.5, 0.75, 1.0]
    );
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table of cases")]
fn every_refusal_names_line_key_and_fix() {
    for (text, parts) in [
        (
            PLAN.replace("version = 1", "version = 3"),
            &["line 2", "version = 3"][..],
        ),
        (
            PLAN.replace("kind = \"roc\"", "kind = \"rock\""),
            &["line 15", "Did you mean \"roc\"?"],
        ),
        (
            PLAN.replace("model = \"income\"", "models = [\"income\", \"income\"]"),
            &["line 16", "named twice"],
        ),
        (
            PLAN.replace("model = \"income\"", "models = [\"income\"]"),
            &["line 16", "2 to 16 models"],
        ),
        (
            PLAN.replace(
                "model = \"income\"",
                "models = [\"income\", \"o.json#a\"]\nmodel = \"income\"",
            ),
            &["line 16", "exclude each other"],
        ),
        (
            PLAN.replace(
                "model = \"income\"",
                "model = \"income\"\ndecide_at = [0.5, 1.5]",
            ),
            &["line 17", "between 0 and 1"],
        ),
        (
            PLAN.replace(
                "model = \"income\"",
                "model = \"income\"\nthresholds = \"even\"\nthreshold_share = 0.2",
            ),
            &["line 18", "no effect"],
        ),
        (
            PLAN.replace("kind = \"roc\"", "kind = \"binned_residuals\"")
                .replace(
                    "model = \"income\"",
                    "model = \"income\"\nadjust = \"merge\"\nbin_share = 0.5",
                ),
            &["line 18", "below 1/2"],
        ),
        (
            PLAN.replace("kind = \"roc\"", "kind = \"binned_residuals\"")
                .replace(
                    "model = \"income\"",
                    "model = \"income\"\nedges = [0, 0.5, 1]\nbin_share = 0.2",
                ),
            &["line 18", "no effect"],
        ),
        (
            PLAN.replace("model = \"income\"", "model = \"incom\""),
            &["line 16", "Did you mean `income`?"],
        ),
        (
            PLAN.replace("kind = \"roc\"", "kind = \"residuals\""),
            &["line 16", "\"logistic\"", "binned_residuals"],
        ),
        (
            PLAN.replace("id = \"roc\"", "id = \"income\""),
            &["line 14", "already used", "line 6"],
        ),
        (
            PLAN.replace("id = \"roc\"", "id = \"_n\""),
            &["line 14", "starting with a letter"],
        ),
        (
            PLAN.replace("positive = ", "positiv = "),
            &[
                "line 10",
                "unknown key",
                "Did you mean `positive`?",
                "\"logistic\"",
            ],
        ),
        (
            PLAN.replace("epsilon = \"0.5\"\n[[", "epsilon = \"0\"\n[["),
            &["line 12", "release.epsilon = \"0\"", "greater than 0"],
        ),
        (
            PLAN.replace("epsilon = \"0.5\"\n[[", "epsilon = -0.5\n[["),
            &["line 12", "greater than 0"],
        ),
        (
            PLAN.replace("epsilon = \"0.5\"\n[[", "epsilon = nan\n[["),
            &["not a finite number"],
        ),
        (
            PLAN.replace("epsilon = \"0.5\"\n[[", "[["),
            &["line 6", "no privacy budget"],
        ),
        (
            PLAN.replace("epsilon = \"0.5\"\n[[", "epsilon = 1\nrho = 1\n[["),
            &["one currency"],
        ),
        (
            PLAN.replace("epsilon = \"0.5\"\n[[", "epsilon = 1\ndelta = 0.1\n[["),
            &["no delta", "Remove delta"],
        ),
        (
            PLAN.replace("epsilon = \"0.5\"\n[[", "rho = 0.1\n[["),
            &["budget is in epsilon"],
        ),
        (
            PLAN.replace("age + C", "agee + C"),
            &["line 6", "formula", "no column `agee`", "^^^^", "`age`"],
        ),
        (
            PLAN.replace("\">50K\"", "\">50\""),
            &["is not a value of the outcome", "`>50K`"],
        ),
        (
            PLAN.replace("log1p(hours)", "log1p(hours"),
            &["line 9", "never closed"],
        ),
        (
            PLAN.replace("log1p(hours)", "log(hours - 5)"),
            &["log needs an argument above 0"],
        ),
        (
            PLAN.replace("hours > 0", "hours = 0"),
            &["line 5", "where", "write =="],
        ),
        (
            PLAN.replace("hours > 0", "hour > 0"),
            &["line 5", "no column `hour`"],
        ),
        (
            PLAN.replace("\"1/3\"", "1"),
            &["line 4", "split.test = 1", "between 0 and 1"],
        ),
        (
            PLAN.replace("\"1/3\"", "\"1/3\", train = \"1/3\""),
            &["add up to 1"],
        ),
        (
            PLAN.replace("by = \"content\"", "by = \"ages\""),
            &["line 4", "split.by", "`age`"],
        ),
        (PLAN.replace("salt", "sault"), &["Did you mean `salt`?"]),
        (PLAN.replace("split = ", "# "), &["line 11", "no split"]),
        (
            PLAN.replace("part = \"train\" ", "part = \"both\""),
            &["\"train\", \"test\" or \"all\""],
        ),
        (one(""), &["`kind` is missing"]),
        (
            one("kind = \"top_k\"\ncolumn = \"education\"\nk = 4"),
            &["k = 4 of 3 candidates", "from 1 to 3"],
        ),
        (
            one(
                "kind = \"top_k\"\ncolumn = \"age\"\nbins = 1000000\nk = 100000\nmethod = \"peeling\"",
            ),
            &[
                "100000 rounds over 1000000 candidates",
                "method = \"counts\"",
            ],
        ),
        (
            one("kind = \"top_k\"\ncolumn = \"education\"\nk = 2\nmethod = \"peal\""),
            &["permute_and_flip"],
        ),
        (
            one("kind = \"running_total\"\ncolumn = \"age\"\nmethod = \"square_root\""),
            &["Gaussian noise", "honaker"],
        ),
        (
            one("kind = \"running_total\"\ncolumn = \"age\"\nsteps = 100000"),
            &["at most 65536"],
        ),
        (one("kind = \"sum\""), &["column = \"age\""]),
        (one("kind = \"sum\"\nof = \"education\""), &["has levels"]),
        (
            one("kind = \"sum\"\ncolumn = \"age\"\nof = \"age\""),
            &["exclude each other"],
        ),
        (
            one("kind = \"quantiles\"\ncolumn = \"age\"\nlevels = [0.5, 0.5]"),
            &["line 8", "must increase"],
        ),
        (
            one("kind = \"quantiles\"\ncolumn = \"age\"\nlevels = [1]"),
            &["between 0 and 1"],
        ),
        (
            one("kind = \"quantiles\"\ncolumn = \"age\"\nlevels = []"),
            &["1000 levels"],
        ),
        (
            one("kind = \"histogram\"\ncolumn = \"agee\""),
            &["no column `agee`", "`age`"],
        ),
        (
            one("kind = \"histogram\"\ncolumn = \"education\"\nbins = 3"),
            &["declared levels"],
        ),
        (
            one("kind = \"histogram\"\ncolumn = \"age\"\nedges = [3, 2]"),
            &["must increase"],
        ),
        (
            one("kind = \"crosstab\"\ncolumns = []"),
            &["between 1 and 10"],
        ),
        (
            one("kind = \"crosstab\"\ncolumns = [\"age\", \"hours\"]\nbins = 10000"),
            &["cells"],
        ),
        (
            one("kind = \"logistic\"\nformula = \"income ~ age\"\nscale = \"none\""),
            &["data_norm"],
        ),
        (
            one("kind = \"logistic\"\nformula = \"income ~ age\"\nlambda = 0"),
            &["greater than 0"],
        ),
        (
            one("kind = \"logistic\"\nformula = \"education ~ age\""),
            &["3 levels"],
        ),
        (
            one("kind = \"linear\"\nformula = \"income ~ age\""),
            &["must be a number", "logistic"],
        ),
        (
            one("kind = \"linear\"\nformula = \"age ~ income\"\ndelta = \"1e-6\""),
            &["no delta"],
        ),
        (one("kind = \"count\"\npart = \"test\""), &["no split"]),
        (
            one("kind = \"count\"").replace("[[release]]", "[release]"),
            &["expected a list"],
        ),
        (
            "version = 1\ndataset = \"d.toml\"".to_owned(),
            &["`release` is missing"],
        ),
    ] {
        let message = checked(&text).expect_err(&text).to_string();
        assert!(message.starts_with("work/plan.toml"), "{message}");
        for part in parts {
            assert!(message.contains(part), "should say {part:?}: {message}");
        }
        for internal in ["Some(", "KindSpec", "Expr", "RBig", "{}", "unwrap"] {
            assert!(!message.contains(internal), "{message}");
        }
    }
}

#[test]
fn epsilon_may_be_whole_tiny_or_huge() {
    for epsilon in ["1", "\"1\"", "1e-9", "1e9", "\"1/3\"", "5e-324"] {
        let text = one("kind = \"count\"").replace("epsilon = 1", &format!("epsilon = {epsilon}"));
        checked(&text).unwrap_or_else(|e| panic!("{epsilon}: {e}"));
    }
}

#[test]
fn a_content_split_needs_records_that_differ() {
    // 74 ages, 100 hours, 3 and 2 levels: 44,400 different records; without the hours 444.
    let text =
        one("kind = \"count\"").replace("[[release]]", "split = { test = 0.25 }\n[[release]]");
    assert_eq!(
        checked(&text).unwrap().split.unwrap().parts[1],
        ("test".to_owned(), 1, 4)
    );
    let small = DATASET.replace("upper = 99", "upper = 1");
    let small = Dataset::parse(&small, Path::new("dataset.toml")).unwrap();
    let message = plan(&text).unwrap().check(&small).unwrap_err().to_string();
    for part in [
        "line 3",
        "888 different records",
        "by = \"<column>\"",
        "by = \"age\"",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let by_age = text.replace("0.25", "0.25, by = \"age\"");
    assert!(plan(&by_age).unwrap().check(&small).is_ok());
    let unit = DATASET.replace("upper = 99", "upper = 1").replace(
        "[budget]",
        "unit = { column = \"person\", max_rows = 3 }\n[budget]",
    ) + "[columns.person]\ntype = \"id\"\n";
    let unit = Dataset::parse(&unit, Path::new("dataset.toml")).unwrap();
    assert!(plan(&text).unwrap().check(&unit).is_ok());
}

#[test]
fn gaussian_releases_ask_for_what_their_currency_needs() {
    let linear = |budget: &str| {
        one("kind = \"linear\"\nformula = \"hours ~ age\"").replace("epsilon = 1", budget)
    };
    let count = |budget: &str| one("kind = \"count\"").replace("epsilon = 1", budget);
    let on = |currency: &str, text: &str| {
        let data = DATASET.replace("epsilon = \"10\"", currency);
        let data = Dataset::parse(&data, Path::new("dataset.toml")).unwrap();
        plan(text)
            .unwrap()
            .check(&data)
            .map(drop)
            .map_err(|e| e.to_string())
    };
    let both = "epsilon = 10\ndelta = \"1e-6\"";
    assert!(
        on(both, &linear("epsilon = 1"))
            .unwrap_err()
            .contains("needs delta")
    );
    assert!(on(both, &linear("epsilon = 1\ndelta = \"1e-7\"")).is_ok());
    assert!(on(both, &count("epsilon = 1")).is_ok());
    assert!(
        on(both, &count("epsilon = 1\ndelta = \"1e-7\""))
            .unwrap_err()
            .contains("needs no delta")
    );
    assert!(
        on("rho = 1", &linear("epsilon = 1"))
            .unwrap_err()
            .contains("paid in rho")
    );
    assert!(on("rho = 1", &linear("rho = 0.1")).is_ok());
    assert!(on("rho = 1", &count("epsilon = 1")).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_damage_gives_a_plan_or_a_refusal(at in 0usize..600, remove in 0usize..20, put in "[\\[\\]{}=\"a-z0-9\\n.~+-]{0,6}") {
        let mut chars: Vec<char> = PLAN.chars().collect();
        let at = at.min(chars.len());
        let end = (at + remove).min(chars.len());
        chars.splice(at..end, put.chars());
        let text: String = chars.into_iter().collect();
        if let Ok(plan) = plan(&text) {
            // The plan is kept byte for byte (lessons, row 82).
            prop_assert_eq!(&plan.text, &text);
            let _ = plan.check(&dataset()).map_err(|e| e.to_string());
            for release in &plan.releases {
                let _ = release.canonical();
            }
        }
    }
}
