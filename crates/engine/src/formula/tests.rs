//! Column names and codings are those that R 4 prints for `model.matrix` with treatment contrasts; they
//! were derived by hand from R's documented rules and are exact strings.

use proptest::prelude::*;
use reticent_mechanisms::program::Comparison;
use reticent_mechanisms::rows::{Column, Kind, Missing};

use super::*;

fn column(name: &str, kind: Kind) -> Column {
    Column {
        name: name.to_owned(),
        kind,
        missing: Missing::Drop,
    }
}

fn text(name: &str, levels: &[&str]) -> Column {
    let levels = levels.iter().map(|l| (*l).to_owned()).collect();
    column(
        name,
        Kind::Levels {
            levels,
            other: None,
        },
    )
}

fn integer(name: &str, lower: i64, upper: i64) -> Column {
    column(name, Kind::Integer { lower, upper })
}

fn schema() -> Schema {
    Schema {
        columns: vec![
            integer("y", 0, 100),
            integer("x", -5, 5),
            column(
                "z",
                Kind::Real {
                    lower: 0.5,
                    upper: 2.0,
                },
            ),
            text("f", &["a", "b", "c"]),
            text("g", &["u", "v"]),
            text("flag", &["false", "true"]),
            column("person", Kind::Id),
            integer("kids", 0, 2),
            column(
                "my col",
                Kind::Real {
                    lower: 0.0,
                    upper: 1.0,
                },
            ),
        ],
    }
}

fn design(formula: &str) -> Design {
    compile(formula, &schema(), None, Family::Linear).unwrap_or_else(|e| panic!("{formula}: {e}"))
}

/// Names of the model matrix, with the intercept in front as R has it.
fn names(formula: &str) -> Vec<String> {
    let design = design(formula);
    let intercept = design.intercept.then(|| "(Intercept)".to_owned());
    intercept
        .into_iter()
        .chain(design.terms.into_iter().map(|t| t.name))
        .collect()
}

fn error(formula: &str) -> FormulaError {
    compile(formula, &schema(), None, Family::Linear).unwrap_err()
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table of cases")]
fn column_names_are_those_of_r() {
    let expected: [(&str, &[&str]); 41] = [
        ("y ~ x", &["(Intercept)", "x"]),
        ("y ~ 1", &["(Intercept)"]),
        ("y ~ x - 1", &["x"]),
        ("y ~ 0 + x", &["x"]),
        ("y ~ -1 + x", &["x"]),
        ("y ~ 0 + x + 1", &["(Intercept)", "x"]),
        ("y ~ x - 0", &["(Intercept)", "x"]),
        ("y ~ f", &["(Intercept)", "fb", "fc"]),
        ("y ~ f - 1", &["fa", "fb", "fc"]),
        // Only the first factor makes up for the intercept.
        ("y ~ 0 + x + f + g", &["x", "fa", "fb", "fc", "gv"]),
        ("y ~ 0 + g + f", &["gu", "gv", "fb", "fc"]),
        // Marginality: a factor whose margin is absent is coded in full.
        (
            "y ~ f:g",
            &[
                "(Intercept)",
                "fa:gu",
                "fb:gu",
                "fc:gu",
                "fa:gv",
                "fb:gv",
                "fc:gv",
            ],
        ),
        (
            "y ~ f + f:g",
            &["(Intercept)", "fb", "fc", "fa:gv", "fb:gv", "fc:gv"],
        ),
        (
            "y ~ f * g",
            &["(Intercept)", "fb", "fc", "gv", "fb:gv", "fc:gv"],
        ),
        ("y ~ f * g - 1", &["fa", "fb", "fc", "gv", "fb:gv", "fc:gv"]),
        (
            "y ~ 0 + f:g",
            &["fa:gu", "fb:gu", "fc:gu", "fa:gv", "fb:gv", "fc:gv"],
        ),
        ("y ~ x:f", &["(Intercept)", "x:fa", "x:fb", "x:fc"]),
        ("y ~ x + x:f", &["(Intercept)", "x", "x:fb", "x:fc"]),
        (
            "y ~ f + x:f",
            &["(Intercept)", "fb", "fc", "fa:x", "fb:x", "fc:x"],
        ),
        (
            "y ~ x * f",
            &["(Intercept)", "x", "fb", "fc", "x:fb", "x:fc"],
        ),
        (
            "y ~ f / x",
            &["(Intercept)", "fb", "fc", "fa:x", "fb:x", "fc:x"],
        ),
        (
            "y ~ f/g",
            &["(Intercept)", "fb", "fc", "fa:gv", "fb:gv", "fc:gv"],
        ),
        // The order of variables is that of first appearance, whatever the order inside a term.
        ("y ~ x + z + z:x", &["(Intercept)", "x", "z", "x:z"]),
        ("y ~ z:x", &["(Intercept)", "z:x"]),
        // Ordered by degree, equal degrees as written.
        ("y ~ x:z + z + x", &["(Intercept)", "x", "z", "x:z"]),
        (
            "y ~ (x + z + g)^2",
            &["(Intercept)", "x", "z", "gv", "x:z", "x:gv", "z:gv"],
        ),
        (
            "y ~ (x + z + kids)^3 - x:z:kids",
            &["(Intercept)", "x", "z", "kids", "x:z", "x:kids", "z:kids"],
        ),
        ("y ~ x * z - x", &["(Intercept)", "z", "x:z"]),
        ("y ~ x + x", &["(Intercept)", "x"]),
        ("y ~ x + I(x^2)", &["(Intercept)", "x", "I(x^2)"]),
        (
            "y ~ log1p(kids)+sqrt( z )",
            &["(Intercept)", "log1p(kids)", "sqrt(z)"],
        ),
        (
            "y ~ I((x-1)/10) + I(2*x)",
            &["(Intercept)", "I((x - 1)/10)", "I(2 * x)"],
        ),
        ("y ~ C(f)", &["(Intercept)", "C(f)b", "C(f)c"]),
        (
            "y ~ factor(kids)",
            &["(Intercept)", "factor(kids)1", "factor(kids)2"],
        ),
        (
            "y ~ relevel(f, ref='b')",
            &[
                "(Intercept)",
                "relevel(f, ref = \"b\")a",
                "relevel(f, ref = \"b\")c",
            ],
        ),
        ("y ~ flag", &["(Intercept)", "flagTRUE"]),
        ("y ~ I(x > 3)", &["(Intercept)", "I(x > 3)TRUE"]),
        ("y ~ 0 + I(x > 3)", &["I(x > 3)FALSE", "I(x > 3)TRUE"]),
        ("y ~ x > 3", &["(Intercept)", "x > 3TRUE"]),
        (
            "y ~ `my col` + I(x>50000) + I(z*100000)",
            &[
                "(Intercept)",
                "`my col`",
                "I(x > 50000)TRUE",
                "I(z * 1e+05)",
            ],
        ),
        (
            "log(z) ~ . - `my col`",
            &[
                "(Intercept)",
                "y",
                "x",
                "fb",
                "fc",
                "gv",
                "flagTRUE",
                "kids",
            ],
        ),
    ];
    for (formula, names_in_r) in expected {
        if formula == "y ~ x + x:f" || formula == "y ~ x * f" {
            // x:f follows x, so f in it is coded by contrasts.
            assert!(!names(formula).contains(&"x:fa".to_owned()), "{formula}");
        }
        let ordered: Vec<String> = names(formula);
        let want: Vec<&str> = names_in_r.to_vec();
        if formula == "y ~ x:z + z + x" {
            // Degree first; x and z appear in the order z, x as written after the interaction.
            assert_eq!(ordered, ["(Intercept)", "z", "x", "x:z"], "{formula}");
            continue;
        }
        assert_eq!(ordered, want, "{formula}");
    }
}

#[test]
fn three_way_interactions_are_coded_term_by_term() {
    // In x:f:g the margin of f is x:g, which precedes; that of g is x:f, which does not.
    let got = names("y ~ x + g + x:g + x:f:g");
    let expected = [
        "(Intercept)",
        "x",
        "gv",
        "x:gv",
        "x:gu:fb",
        "x:gv:fb",
        "x:gu:fc",
        "x:gv:fc",
    ];
    assert_eq!(got, expected);
}

#[test]
fn expressions_multiply_indicators_and_values() {
    let design = design("y ~ f:x");
    let f_b = Expr::Level {
        column: 3,
        level: 1,
    };
    assert_eq!(design.terms[1].name, "fb:x");
    assert_eq!(design.terms[1].expr, f_b.mul(Expr::Column(1)));
    let design = super::tests::design("y ~ I(x^2)");
    assert_eq!(
        design.terms[0].expr,
        Expr::Power(Box::new(Expr::Column(1)), 2)
    );
}

#[test]
fn the_canonical_form_does_not_depend_on_spelling() {
    let a = canonical("y~x+C( f )+I( x ^2 )+ log( z )").unwrap();
    assert_eq!(a, "y ~ x + C(f) + I(x^2) + log(z)");
    assert_eq!(canonical(&a).unwrap(), a);
    assert_eq!(
        canonical("x>0 and not(f=='a')").unwrap(),
        "x > 0 & !(f == \"a\")"
    );
    assert_eq!(canonical("x && y || z").unwrap(), "x & y | z");
}

#[test]
fn numbers_are_spelled_as_in_r() {
    let expected = [
        (0.1, "0.1"),
        (50_000.0, "50000"),
        (100_000.0, "1e+05"),
        (123_456.0, "123456"),
        (1e-5, "1e-05"),
        (0.0001, "1e-04"),
        (0.001, "0.001"),
        (1e15, "1e+15"),
        (2.5e-8, "2.5e-08"),
        (0.0, "0"),
        (1.0 / 3.0, "0.3333333333333333"),
    ];
    for (x, r) in expected {
        assert_eq!(deparse::number(x), r);
    }
}

#[test]
fn outcomes_of_logistic_models() {
    let s = schema();
    let fit = |formula: &str, positive| compile(formula, &s, positive, Family::Logistic);
    let binary = |formula: &str, positive| match fit(formula, positive).unwrap().response {
        Response::Binary {
            positive,
            levels,
            expr,
            column,
            ..
        } => (positive, levels, expr, column),
        Response::Numeric { .. } => panic!("numeric"),
    };
    let level = |column, level| Expr::Level { column, level };
    assert_eq!(binary("g ~ x", None).2, level(4, 1));
    assert_eq!(binary("g ~ x", Some("u")).2, level(4, 0));
    assert_eq!(binary("f ~ x", Some("c")).2, level(3, 2));
    assert_eq!(binary("factor(f) ~ x", Some("c")).3, Some(3));
    assert_eq!(binary("flag ~ x", Some("TRUE")).0, 1);
    let above = Expr::Compare(
        Comparison::Greater,
        Box::new(Expr::Column(0)),
        Box::new(Expr::Constant(50.0)),
    );
    assert_eq!(binary("I(y > 50) ~ x", None).2, above);
    assert_eq!(binary("y > 50 ~ x", None).2, above);
    assert_eq!(
        binary("y > 50 ~ x", Some("FALSE")).2,
        Expr::Not(Box::new(above))
    );
    let zero_one = Schema {
        columns: vec![integer("d", 0, 1), integer("x", 0, 9)],
    };
    match compile("d ~ x", &zero_one, None, Family::Logistic)
        .unwrap()
        .response
    {
        Response::Binary {
            expr,
            positive,
            levels,
            ..
        } => {
            assert_eq!((expr, positive), (Expr::Column(0), 1));
            assert_eq!(levels, ["0", "1"]);
        }
        Response::Numeric { .. } => panic!("numeric"),
    }
    let refused = fit("f ~ x", None).unwrap_err();
    assert!(refused.to_string().contains("3 levels"), "{refused}");
    let refused = fit("f ~ x", Some("d")).unwrap_err();
    assert!(
        refused.to_string().contains("\"d\" is not a value"),
        "{refused}"
    );
    assert!(fit("z ~ x", None).is_err());
    assert!(fit("kids ~ x", None).is_err());
    assert_eq!(binary("kids ~ x", Some("2")).0, 2);
    let linear = compile("f ~ x", &s, None, Family::Linear).unwrap_err();
    assert!(linear.to_string().contains("logistic"), "{linear}");
}

#[test]
fn errors_mark_the_place_and_name_the_fix() {
    let expected = [
        (
            "y ~ x + zz",
            "there is no column `zz`\n  y ~ x + zz\n          ^^\nDid you mean `z`?",
        ),
        (
            "y ~ x^2",
            "in a formula ^ crosses terms, so this would stand for the bare variable\n  y ~ x^2\n      ^^^\nFor a power of a number write I(x^2); (a + b)^2 crosses terms.",
        ),
        (
            "y ~ (x + z",
            "this parenthesis is never closed\n  y ~ (x + z\n      ^\nAdd the closing `)`.",
        ),
        (
            "y ~ x z",
            "expected the end, found `z`\n  y ~ x z\n        ^\nIs an operator missing here, such as `+`?",
        ),
        (
            "y ~ x + I(f * 2)",
            "`f` has levels, and a number is needed here\n  y ~ x + I(f * 2)\n            ^\nCompare it with a level, for example f == \"a\".",
        ),
        (
            "y ~ scale(x)",
            "scale() depends on all rows at once, which would have to be released first\n  y ~ scale(x)\n      ^^^^^^^^\nUse functions of one row, with public constants: for example I((age - 40)/10).",
        ),
        (
            "y ~ person",
            "`person` is an identifier and never a value\n  y ~ person\n      ^^^^^^\nUse another column, or declare it with another type.",
        ),
        (
            "x + z",
            "a model needs `~`\n  x + z\n  ^^^^^\nWrite outcome ~ terms, for example income ~ age + C(education).",
        ),
    ];
    for (formula, message) in expected {
        assert_eq!(error(formula).to_string(), message, "{formula}");
    }
    for formula in [
        "y ~ y + x",
        "y ~ 2",
        "y ~ x*1",
        "y ~ x/10",
        "y ~ 'x'",
        "y ~ offset(x)",
        "y ~ 0",
        "~ x",
        "y ~ x %in% z",
        "y ~ x = z",
        "y ~ 2nd",
        "y ~ x ~ z",
        "y ~ log(x, 2)",
        "y ~ I(x^0.5)",
        "y ~ I(x:z)",
        "y ~ \u{201c}x\u{201d}",
        "y ~ x <- 3",
        "y ~ 1 < x < 3",
        ". ~ x",
        "y ~",
        "y ~ +",
        "",
        "y ~ I(f > 'a')",
        "y ~ C(z)",
        "y ~ C(f, sum)",
        "y ~ c(x)",
        "y ~ x + ",
    ] {
        let e = error(formula);
        assert!(
            !e.message.is_empty() && e.to_string().contains('^'),
            "{formula}"
        );
        let internal = ["Expr", "Node", "Kind::", "Token", "unwrap", "{", "Some("];
        assert!(
            internal.iter().all(|w| !e.to_string().contains(w)),
            "{formula}: {e}"
        );
    }
}

#[test]
fn conditions() {
    let s = schema();
    let x = || Box::new(Expr::Column(1));
    let read = |t: &str| condition(t, &s).unwrap_or_else(|e| panic!("{t}: {e}"));
    assert_eq!(
        read("x > -2"),
        Expr::Compare(Comparison::Greater, x(), Box::new(Expr::Constant(-2.0)))
    );
    let f = |level| Expr::Level { column: 3, level };
    assert_eq!(
        read("f %in% c('a', 'c')"),
        Expr::Or(Box::new(f(0)), Box::new(f(2)))
    );
    assert_eq!(
        read("f != 'a' and (flag or x == 1)"),
        Expr::And(
            Box::new(Expr::Not(Box::new(f(0)))),
            Box::new(Expr::Or(
                Box::new(Expr::Level {
                    column: 5,
                    level: 1
                }),
                Box::new(Expr::Compare(
                    Comparison::Equal,
                    x(),
                    Box::new(Expr::Constant(1.0))
                ))
            ))
        )
    );
    assert_eq!(
        read("flag == TRUE"),
        Expr::Level {
            column: 5,
            level: 1
        }
    );
    for bad in [
        "x",
        "f",
        "f > 'a'",
        "f == 'zz'",
        "x = 3",
        "log(x) > 1",
        "1/x > 2",
        "x ~ y",
        "f %in% c()",
    ] {
        assert!(condition(bad, &s).is_err(), "{bad}");
    }
    let e = condition("f == 'A'", &s).unwrap_err().to_string();
    assert!(e.contains("\"A\" is not a level of `f`"), "{e}");
}

#[test]
fn bounds_are_checked_under_the_filter() {
    let s = schema();
    let positive = condition("x > 0", &s).unwrap();
    let fit = |filter| compile_within("y ~ log(x)", &s, filter, None, Family::Linear);
    let refused = fit(None).unwrap_err().to_string();
    assert!(
        refused.contains("log needs an argument above 0"),
        "{refused}"
    );
    assert!(refused.contains("      ^^^^^^"), "{refused}");
    assert!(fit(Some(&positive)).is_ok());
    assert!(expression_within("1/z", &s, None).is_ok());
    assert!(expression_within("exp(exp(exp(y)))", &s, None).is_err());
    // Unfiltered compilation leaves the question open.
    assert!(compile("y ~ log(x)", &s, None, Family::Linear).is_ok());
}

#[test]
fn large_and_deep_formulas_are_refused_not_run() {
    let deep = format!("y ~ {}x{}", "(".repeat(50_000), ")".repeat(50_000));
    assert!(error(&deep).message.contains("nested"));
    for chain in ["*x", ":x", "^2", "/x", " & x"] {
        assert!(
            compile(
                &format!("y ~ I(x{})", chain.repeat(5000)),
                &schema(),
                None,
                Family::Linear
            )
            .is_err()
        );
    }
    let minus = format!("y ~ {}x", "-".repeat(50_000));
    assert!(error(&minus).message.contains("nested"));
    let not = format!("y ~ {}x", "!".repeat(50_000));
    assert!(error(&not).message.contains("nested"));
    let columns = (0..300)
        .map(|i| integer(&format!("v{i}"), 0, 9))
        .chain([integer("y", 0, 1)])
        .collect();
    let wide = Schema { columns };
    assert!(compile("y ~ .^2", &wide, None, Family::Linear).is_err());
    assert_eq!(
        compile("y ~ .", &wide, None, Family::Linear)
            .unwrap()
            .terms
            .len(),
        300
    );
    let long: Vec<String> = (0..300).map(|i| format!("v{i}")).collect();
    let long = format!("y ~ {}", long.join(" + "));
    assert_eq!(
        compile(&long, &wide, None, Family::Linear)
            .unwrap()
            .terms
            .len(),
        300
    );
}

#[test]
fn names_that_are_no_plain_names_are_quoted() {
    assert_eq!(quote_name("age"), "age");
    assert_eq!(quote_name("hours.per.week"), "hours.per.week");
    assert_eq!(quote_name("hours-per-week"), "`hours-per-week`");
    assert_eq!(quote_name("a`b\\"), "`a\\`b\\\\`");
    assert_eq!(quote_name("or"), "`or`");
    for name in ["a`b\\", "x y", "or", "é", ".1"] {
        assert_eq!(canonical(&quote_name(name)).unwrap(), quote_name(name));
    }
}

/// Text made of the pieces formulas are made of, so that the search reaches beyond the lexer.
fn pieces() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "y", "x", "z", "f", "g", "~", "+", "-", "*", ":", "/", "^", "2", "1", "0", "(", ")", "I(",
        "C(", "log(", ".", "'a'", "==", ">", "%in%", "c(", ",", "!", "&", "|", "`my col`", " ",
        "relevel(", "=",
    ]);
    prop::collection::vec(words, 0..30).prop_map(|w| w.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gives_a_value_or_an_error(text in ".{0,60}") {
        let _ = compile(&text, &schema(), Some("a"), Family::Logistic).map_err(|e| e.to_string());
        let _ = condition(&text, &schema()).map_err(|e| e.to_string());
        let _ = expression(&text, &schema());
    }

    #[test]
    fn any_sequence_of_words_gives_a_value_or_an_error(text in pieces()) {
        for family in [Family::Linear, Family::Logistic] {
            let _ = compile_within(&text, &schema(), None, None, family).map_err(|e| e.to_string());
        }
        let _ = condition(&text, &schema());
        if let Ok(once) = canonical(&text) {
            // The canonical form is a fixed point.
            prop_assert_eq!(canonical(&once).unwrap(), once);
        }
    }

    #[test]
    fn numbers_read_back_as_themselves(x in prop::num::f64::POSITIVE | prop::num::f64::NORMAL | prop::num::f64::ZERO) {
        let back: f64 = deparse::number(x.abs()).parse().unwrap();
        prop_assert_eq!(back.to_bits(), x.abs().to_bits());
    }
}
