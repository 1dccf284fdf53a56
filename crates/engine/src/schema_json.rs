//! JSON Schemas (draft 2020-12) of the four file formats, for editors and for programs that write them.
//!
//! They describe shape and keys; rules across keys are checked by the parsers alone. A test asks the
//! parsers for the keys they know and compares, so the two cannot drift apart.

/// Schema of `dataset.toml`.
pub const DATASET: &str = include_str!("../schemas/dataset.json");
/// Schema of `plan.toml`.
pub const PLAN: &str = include_str!("../schemas/plan.json");
/// Schema of `release.json`.
pub const RELEASE: &str = include_str!("../schemas/release.json");
/// Schema of `stream.toml`.
pub const STREAM: &str = include_str!("../schemas/stream.json");

/// The schema of a format by its name: `dataset`, `plan`, `release` or `stream`.
pub fn schema(name: &str) -> Option<&'static str> {
    match name {
        "dataset" => Some(DATASET),
        "plan" => Some(PLAN),
        "release" => Some(RELEASE),
        "stream" => Some(STREAM),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::dataset::Dataset;
    use crate::kinds::NAMES;
    use crate::outcome::Refusal;
    use crate::plan::Plan;

    fn json(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn keys(properties: &Value) -> BTreeSet<String> {
        properties["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    }

    /// The keys a parser knows, from what it says to a key that is like none of them.
    fn known(refusal: &Refusal) -> BTreeSet<String> {
        let text = refusal.fix.clone().unwrap();
        assert!(text.starts_with("Known: "), "{refusal}");
        text.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    }

    const UNLIKE: &str = "ZQXJKWVPZQXJKWVP = 1";

    fn dataset(top: &str, source: &str, budget: &str, ledger: &str, column: &str) -> String {
        format!(
            "version = 1\nid = \"t\"\ndata_version = \"1\"\nneighbours = \"add_remove\"\n{top}\n\
             [source]\npath = \"t.csv\"\n{source}\n[budget]\nepsilon = 1\n{budget}\n\
             [ledger]\npath = \"t.ledger\"\n{ledger}\n[columns.c]\n{column}\n"
        )
    }

    fn refused(text: &str) -> BTreeSet<String> {
        known(&Dataset::parse(text, Path::new("d.toml")).unwrap_err())
    }

    #[test]
    fn the_stream_schema_has_the_keys_of_the_parser() {
        use crate::stream::Config;
        let schema = json(STREAM);
        let properties = &schema["properties"];
        let text = |[top, source, ticks, more]: [&str; 4]| {
            format!(
                "format = 1\nname = \"t\"\nepsilon = 1\nstates = [\"a\"]\n{top}\n[source]\npath = \"-\"\nformat = \"csv\"\n\
                 {source}\n[ticks]\nwidth = 1\nstart = 0\nclock = \"events\"\n{ticks}\n{more}\n"
            )
        };
        let path = Path::new("stream.toml");
        Config::parse(&text([""; 4]), path).unwrap();
        let refused = |at: usize, with: &str| {
            let mut parts = [""; 4];
            parts[at] = with;
            known(&Config::parse(&text(parts), path).unwrap_err())
        };
        assert_eq!(refused(0, UNLIKE), keys(&schema));
        assert_eq!(refused(1, UNLIKE), keys(&properties["source"]));
        assert_eq!(refused(2, UNLIKE), keys(&properties["ticks"]));
        for (table, key, schema) in [
            ("day_cap", "day = 9\nticks = 3", &properties["day_cap"]),
            ("output", "", &properties["output"]),
            (
                "[alarm]",
                "kind = \"low\"\nwindow = 2\nthreshold = 3",
                &properties["alarm"]["items"],
            ),
            ("method", "kind = \"filter\"", &schema["$defs"]["filter"]),
            (
                "method",
                "kind = \"pegasus\"\nthreshold = 3",
                &schema["$defs"]["pegasus"],
            ),
            ("method", "kind = \"laplace\"", &schema["$defs"]["laplace"]),
        ] {
            let with = format!("[{table}]\n{key}\n{UNLIKE}");
            assert_eq!(refused(3, &with), keys(schema), "{table} {key}");
        }
    }

    #[test]
    fn the_dataset_schema_has_the_keys_of_the_parser() {
        let schema = json(DATASET);
        let integer = "type = \"integer\"\nlower = 0\nupper = 1";
        Dataset::parse(&dataset("", "", "", "", integer), Path::new("d.toml")).unwrap();
        assert_eq!(
            refused(&dataset(UNLIKE, "", "", "", integer)),
            keys(&schema)
        );
        let properties = &schema["properties"];
        assert_eq!(
            refused(&dataset("", UNLIKE, "", "", integer)),
            keys(&properties["source"])
        );
        assert_eq!(
            refused(&dataset("", "", UNLIKE, "", integer)),
            keys(&schema["$defs"]["budget"])
        );
        assert_eq!(
            refused(&dataset("", "", "", UNLIKE, integer)),
            keys(&properties["ledger"])
        );
        for (kind, column) in [
            ("integer", integer),
            ("real", "type = \"real\"\nlower = 0\nupper = 1"),
            ("text", "type = \"text\"\nlevels = [\"a\"]"),
            ("boolean", "type = \"boolean\""),
            ("tokens", "type = \"tokens\"\nmost = 2\nhashed = 8"),
        ] {
            // `impute` is only asked for with the policy it belongs to, and is always asked about.
            let text = dataset("", "", "", "", &format!("{column}\n{UNLIKE}"));
            assert_eq!(refused(&text), keys(&schema["$defs"][kind]), "{kind}");
        }
        let unit = format!("unit = {{ column = \"p\", max_rows = 2, {UNLIKE} }}");
        let text = dataset(
            &unit,
            "",
            "",
            "",
            &format!("{integer}\n[columns.p]\ntype = \"id\""),
        );
        assert_eq!(refused(&text), keys(&properties["unit"]["oneOf"][1]));
    }

    fn example(kind: &str) -> &'static str {
        match kind {
            "sum" | "mean" | "quantiles" | "bounds" | "histogram" | "running_total" => {
                "column = \"x\""
            }
            "top_k" => "column = \"x\"\nk = 1",
            "crosstab" | "covariance" => "columns = [\"x\"]",
            "logistic" | "linear" | "naive_bayes" => "formula = \"y ~ x\"",
            "select" => "features = [\"(x > 1)\"]\nlabel = \"y\"\nkeep = { top = 1 }",
            "regress" => "from = \"cov\"\nformula = \"y ~ x\"",
            "threshold" => "from = \"curve\"",
            "residuals" => "model = \"lin\"",
            "auc" | "roc" | "binned_residuals" | "cross_validation" => "model = \"log\"",
            "verify" => "formula = \"y ~ x\"\nterm = \"x\"",
            _ => "",
        }
    }

    fn plan(kind: &str, top: &str, more: &str) -> Result<Plan, Refusal> {
        let text = format!(
            "version = 1\ndataset = \"d.toml\"\n{top}\n\
             [[release]]\nid = \"log\"\nkind = \"logistic\"\nformula = \"y ~ x\"\nepsilon = 1\n\
             [[release]]\nid = \"lin\"\nkind = \"linear\"\nformula = \"y ~ x\"\nepsilon = 1\n\
             [[release]]\nid = \"cov\"\nkind = \"covariance\"\ncolumns = [\"x\", \"y\"]\nepsilon = 1\n\
             [[release]]\nid = \"curve\"\nkind = \"roc\"\nmodel = \"log\"\nepsilon = 1\n\
             [[release]]\nid = \"r\"\nkind = \"{kind}\"\n{}\n{}\n{more}\n",
            if matches!(kind, "regress" | "threshold") {
                ""
            } else {
                "epsilon = 1"
            },
            example(kind)
        );
        Plan::parse(&text, Path::new("p.toml"))
    }

    #[test]
    fn the_plan_schema_has_the_keys_of_the_parser() {
        let schema = json(PLAN);
        assert_eq!(
            known(&plan("count", UNLIKE, "").unwrap_err()),
            keys(&schema)
        );
        let split = format!("split = {{ test = 0.5, {UNLIKE} }}");
        assert_eq!(
            known(&plan("count", &split, "").unwrap_err()),
            keys(&schema["properties"]["split"])
        );
        for kind in NAMES {
            plan(kind, "", "").unwrap_or_else(|e| panic!("{kind}: {e}"));
            let refusal = plan(kind, "", UNLIKE).unwrap_err();
            let mut names = known(&refusal);
            // The note on the kind is quoted with ", never with backticks.
            assert!(refusal.to_string().contains(&format!("kind \"{kind}\"")));
            names.remove(kind);
            assert_eq!(names, keys(&schema["$defs"][kind]), "{kind}");
        }
        let listed: Vec<&str> = schema["properties"]["release"]["items"]["oneOf"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["$ref"].as_str().unwrap().trim_start_matches("#/$defs/"))
            .collect();
        assert_eq!(listed, NAMES);
    }

    #[test]
    fn defaults_in_the_schema_are_those_of_the_parser() {
        let schema = json(PLAN);
        for kind in NAMES {
            let plan = plan(kind, "", "").unwrap();
            let canonical = plan.releases.last().unwrap().canonical();
            for (key, property) in schema["$defs"][kind]["properties"].as_object().unwrap() {
                let Some(default) = property.get("default") else {
                    continue;
                };
                let found = &canonical[key];
                let same = match (key.as_str(), kind) {
                    ("bins", "crosstab") => *found == serde_json::json!([{"even": default}]),
                    ("bins", _) => *found == serde_json::json!({"even": default}),
                    ("levels", _) => *found == serde_json::json!(["0.25", "0.5", "0.75"]),
                    ("coverage", _) => *found == serde_json::json!(default.to_string()),
                    _ => found == default,
                };
                assert!(same, "{kind}.{key}: {found} is not {default}");
            }
        }
    }

    #[test]
    fn references_resolve_and_kinds_of_releases_are_covered() {
        for text in [DATASET, PLAN, RELEASE] {
            let schema = json(text);
            assert_eq!(
                schema["$schema"],
                "https://json-schema.org/draft/2020-12/schema"
            );
            let mut stack = vec![&schema];
            while let Some(node) = stack.pop() {
                if let Some(reference) = node.get("$ref").and_then(Value::as_str) {
                    let name = reference.strip_prefix("#/$defs/").unwrap();
                    assert!(schema["$defs"].get(name).is_some(), "{reference}");
                }
                match node {
                    Value::Object(fields) => stack.extend(fields.values()),
                    Value::Array(items) => stack.extend(items),
                    _ => {}
                }
            }
        }
        // a key of a release is no release: `count` names a kind, whole numbers are `whole`
        let plan = json(PLAN);
        for kind in NAMES {
            let properties = plan["$defs"][kind]["properties"].as_object().unwrap();
            for (key, value) in properties {
                let mut stack = vec![value];
                while let Some(node) = stack.pop() {
                    let reference = node.get("$ref").and_then(Value::as_str);
                    let name = reference.and_then(|r| r.strip_prefix("#/$defs/"));
                    assert!(!name.is_some_and(|n| NAMES.contains(&n)), "{kind}.{key}");
                    match node {
                        Value::Object(fields) => stack.extend(fields.values()),
                        Value::Array(items) => stack.extend(items),
                        _ => {}
                    }
                }
            }
        }
        let release = json(RELEASE);
        assert!(
            NAMES
                .iter()
                .all(|k| release["$defs"].get(format!("{k}_value")).is_some())
        );
        assert_eq!(schema("dataset"), Some(DATASET));
        assert_eq!(schema("other"), None);
    }
}
