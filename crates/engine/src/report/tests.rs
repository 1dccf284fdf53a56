//! Tests of the page as a whole.

use serde_json::{Value, json};

use super::sample::{file, release, releases};
use super::{Budget, Context, Cost, PriceRow, html};

fn epsilon(e: &str) -> Cost {
    Cost {
        epsilon: Some(e.to_owned()),
        ..Cost::default()
    }
}

/// Checks that tags are balanced and attributes quoted; returns the text between the tags.
fn check(page: &str) -> String {
    const VOID: [&str; 1] = ["meta"];
    let mut open: Vec<String> = Vec::new();
    let mut text = String::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("doctype");
    while let Some(at) = rest.find('<') {
        let between = &rest[..at];
        assert!(
            !between.contains('>') || open.last().is_some_and(|t| t == "style"),
            "stray > in {between:?}"
        );
        if open.last().is_none_or(|t| t != "style") {
            text.push_str(between);
        }
        rest = &rest[at + 1..];
        let end = rest.find('>').expect("tag ends");
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        assert!(!tag.contains('<'), "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closing {name}");
            continue;
        }
        let closed = tag.ends_with('/');
        let tag = tag.trim_end_matches('/');
        let name = tag.split_whitespace().next().expect("name").to_owned();
        assert_ne!(name, "script");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        assert!(!tag.contains(" on"), "event handler in {tag}");
        if !closed {
            assert!(!VOID.contains(&name.as_str()));
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    text
}

fn page(releases: &[Value], context: &Context) -> String {
    let out = html(
        &file("adult", "add_remove", &json!("row"), releases),
        context,
    );
    check(&out);
    out
}

#[test]
fn a_report_with_every_kind_is_well_formed_and_self_contained() {
    let all = releases();
    let out = page(&all, &Context::default());
    for forbidden in [
        "http:", "https:", "//", "url(", "@import", "<script", "<img", "<link", "NaN", "inf\"",
        "null",
    ] {
        assert!(!out.contains(forbidden), "{forbidden}");
    }
    for r in &all {
        let id = r["id"].as_str().unwrap();
        assert!(
            out.contains(&format!("</span> {id}</h2>")),
            "section of {id}"
        );
        assert!(out.contains(&format!(">{id}</a>")), "row of {id}");
    }
    assert_eq!(
        out.matches("role=\"img\"").count(),
        12,
        "one labelled drawing per plot"
    );
    assert_eq!(out.matches("<desc").count(), 12);
    // Every id on the page is unique and every reference to one is met.
    let ids: Vec<&str> = out
        .split(" id=\"")
        .skip(1)
        .filter_map(|s| s.split('"').next())
        .collect();
    let unique: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len());
    for target in out
        .split("href=\"#")
        .skip(1)
        .filter_map(|s| s.split('"').next())
    {
        assert!(unique.contains(target), "{target}");
    }
    for target in out
        .split("aria-labelledby=\"")
        .skip(1)
        .filter_map(|s| s.split('"').next())
        .flat_map(|s| s.split(' '))
    {
        assert!(unique.contains(target), "{target}");
    }
}

/// Puts the text wherever a string stands.
fn poison(v: &mut Value, evil: &str) {
    match v {
        Value::String(s) => {
            let keep = ["kind", "linear", "logistic"].contains(&s.as_str());
            if !keep && super::words::value_of(s).is_none() {
                evil.clone_into(s);
            }
        }
        Value::Array(a) => {
            for x in a {
                poison(x, evil);
            }
        }
        Value::Object(o) => {
            for (_, x) in o.iter_mut().filter(|(k, _)| *k != "kind") {
                poison(x, evil);
            }
        }
        _ => {}
    }
}

#[test]
fn everything_from_outside_is_escaped() {
    let evil = "<script>alert('x')</script>\"&\u{0}";
    let mut all = releases();
    for r in &mut all {
        poison(r, evil);
    }
    all.push(release(
        evil,
        evil,
        evil,
        evil,
        &json!({evil: evil, "b": [evil]}),
        &[evil],
    ));
    let context = Context {
        title: Some(evil.into()),
        dataset: Some(evil.into()),
        credit: Some(evil.into()),
        split: Some(evil.into()),
        filter: Some(evil.into()),
        plan: Some(evil.into()),
        prices: vec![PriceRow {
            id: evil.into(),
            asked: Some(evil.into()),
            part: Some(evil.into()),
            debited: Some(epsilon(evil)),
            ..PriceRow::default()
        }],
        budget: Some(Budget {
            cap: epsilon(evil),
            before: epsilon(evil),
            after: epsilon(evil),
        }),
        total: Some(epsilon(evil)),
        total_other: Some(epsilon(evil)),
    };
    for unit in [json!(evil), json!({"column": evil, "max_rows": 3})] {
        let mut f = file(evil, evil, &unit, &all);
        check(&html(&f, &context));
        f["relation"] = json!("add_remove");
        let out = html(&f, &context);
        check(&out);
        assert!(!out.contains("<script") && out.contains("&lt;script&gt;"));
    }
}

#[test]
fn totals_are_exact_and_agree_between_the_parts_of_the_page() {
    // .05 + .5·4 + 1 + .1·8 + .3 + .5 + .05·3 = 4.8, few of them exact in binary.
    let out = page(&releases(), &Context::default());
    let foot = out
        .split("<tfoot>")
        .nth(1)
        .and_then(|s| s.split("</tfoot>").next())
        .unwrap()
        .to_owned();
    assert_eq!(foot.matches(">4.8<").count(), 2, "{foot}");
    // e^4.8 = 121.510
    assert!(out.contains("<strong>122</strong>"));
    let context = Context {
        budget: Some(Budget {
            cap: epsilon("10"),
            before: epsilon("0.3"),
            after: epsilon("5.1"),
        }),
        ..Context::default()
    };
    let out = page(&releases(), &context);
    let foot = out
        .split("<tfoot>")
        .nth(1)
        .and_then(|s| s.split("</tfoot>").next())
        .unwrap()
        .to_owned();
    assert!(
        foot.contains(">4.8<") && foot.contains(">5.1<") && foot.contains(">4.9<"),
        "{foot}"
    );
    assert!(
        out.contains("This report cost ε\u{a0}=\u{a0}4.8."),
        "own cost"
    );
    // The composed total of the accounting takes precedence over the sum (parallel parts).
    let out = page(
        &releases(),
        &Context {
            total: Some(epsilon("2")),
            ..Context::default()
        },
    );
    assert!(out.contains("<strong>7.39</strong>"));
}

#[test]
fn a_stored_release_costs_nothing_again() {
    let all = [release(
        "a",
        "count",
        "0.5",
        "1",
        &json!({"count": 10, "error_95": 6}),
        &[],
    )];
    let context = Context {
        prices: vec![PriceRow {
            id: "a".into(),
            stored: true,
            ..PriceRow::default()
        }],
        budget: Some(Budget {
            cap: epsilon("1"),
            before: epsilon("0.5"),
            after: epsilon("0.5"),
        }),
        ..Context::default()
    };
    let out = page(&all, &context);
    assert!(out.contains("already paid"));
    let body = out
        .split("<tbody>")
        .nth(1)
        .and_then(|s| s.split("</tbody>").next())
        .unwrap()
        .to_owned();
    assert_eq!(
        body.matches(">0.5<").count(),
        3,
        "cost, spent, left: {body}"
    );
}

#[test]
fn an_unlisted_price_counts_in_the_total() {
    let all = [release(
        "a",
        "count",
        "0.5",
        "1",
        &json!({"count": 10, "error_95": 6}),
        &[],
    )];
    let row = PriceRow {
        id: "_n".into(),
        asked: Some("planning count".into()),
        debited: Some(epsilon("0.02")),
        ..PriceRow::default()
    };
    let out = page(
        &all,
        &Context {
            prices: vec![row],
            ..Context::default()
        },
    );
    let foot = out
        .split("<tfoot>")
        .nth(1)
        .and_then(|s| s.split("</tfoot>").next())
        .unwrap()
        .to_owned();
    assert_eq!(foot.matches(">0.52<").count(), 2, "{foot}");
    assert!(out.contains("planning count") && out.contains("<strong>1.69</strong>")); // e^0.52 = 1.682
}

#[test]
fn a_missing_cost_is_never_read_as_zero() {
    let mut all = releases();
    all[0]["receipt"]["cost"]["add_remove"] = Value::Null;
    let out = page(&all, &Context::default());
    assert!(out.contains("not limited") && out.contains("cannot state a limit"));
    all[0]["receipt"] = json!("public");
    let out = page(&all, &Context::default());
    assert!(out.contains("Declared public") && out.contains(">4.65<"));
    all[0].as_object_mut().unwrap().remove("receipt");
    assert!(page(&all, &Context::default()).contains("cannot state a limit"));
}

#[test]
fn odd_values_do_not_stop_the_report() {
    for v in [
        json!(null),
        json!([]),
        json!({}),
        json!("x"),
        json!({"releases": [null, 1, "x", {}, []]}),
    ] {
        check(&html(&v, &Context::default()));
    }
    let odd = [
        json!(null),
        json!("nan"),
        json!("x"),
        json!(-1),
        json!(1e308),
        json!(0),
        json!([]),
        json!({}),
        json!([null]),
        json!([1e308, -1e308]),
    ];
    // Replace every field of every value, one at a time and two levels deep, by every odd thing.
    for r in releases() {
        let keys: Vec<String> = r["value"].as_object().unwrap().keys().cloned().collect();
        for key in &keys {
            for o in &odd {
                let mut changed = r.clone();
                changed["value"][key] = o.clone();
                page(&[changed], &Context::default());
                for i in 0..2 {
                    let inner: Vec<String> = r["value"][key]
                        .get(i)
                        .and_then(Value::as_object)
                        .map(|m| m.keys().cloned().collect())
                        .unwrap_or_default();
                    for k in inner {
                        let mut changed = r.clone();
                        changed["value"][key][i][&k] = o.clone();
                        page(&[changed], &Context::default());
                    }
                }
            }
            let mut changed = r.clone();
            changed["value"].as_object_mut().unwrap().remove(key);
            page(&[changed], &Context::default());
        }
        let mut changed = r.clone();
        changed["value"] = Value::Null;
        page(&[changed], &Context::default());
    }
}

#[test]
fn negative_counts_are_kept_in_the_table_and_clipped_in_the_drawing() {
    let value = json!({"column": "x", "levels": ["a", "b"], "counts": [-7, 20], "error_95": 6});
    let out = page(
        &[release("h", "histogram", "1", "2", &value, &[])],
        &Context::default(),
    );
    assert!(out.contains(">−7<"));
    assert!(out.contains("1 count is below zero because of the noise; drawn as zero."));
}

#[test]
fn a_hundred_releases_stay_small() {
    let all: Vec<Value> = (0..100)
        .map(|i| {
            release(
                &format!("c{i}"),
                "count",
                "0.01",
                "0.02",
                &json!({"count": i, "error_95": 300}),
                &[],
            )
        })
        .collect();
    let out = page(&all, &Context::default());
    assert!((0..100).all(|i| out.contains(&format!("</span> c{i}</h2>"))));
    assert!(
        out.contains(">1<"),
        "the sum of a hundred hundredths is one"
    );
    assert!(out.len() < 400_000, "{}", out.len());
}

#[test]
fn many_points_are_thinned_and_it_is_said() {
    let points: Vec<Value> = (0..50_000)
        .map(|i| json!([f64::from(i % 251), f64::from(i % 241)]))
        .collect();
    let value =
        json!({"box": {"x_low": 0, "x_high": 251, "y_low": 0, "y_high": 241}, "points": points});
    let out = page(
        &[release("r", "residuals", "1", "2", &value, &[])],
        &Context::default(),
    );
    assert!(out.contains("of 50\u{202f}000 points are drawn"));
    assert!(out.len() < 200_000, "{}", out.len());
}

#[test]
fn a_long_histogram_keeps_its_peaks() {
    let bins = 300_000_u32;
    let edges: Vec<f64> = (0..=bins).map(f64::from).collect();
    // one bin that is narrower than a pixel stands out
    let counts: Vec<f64> = (0..bins)
        .map(|i| {
            if i == 123_456 {
                900.0
            } else {
                f64::from(i % 7)
            }
        })
        .collect();
    let value = json!({"column": "x", "edges": edges, "counts": counts, "error_95": 1.0});
    let out = page(
        &[release("h", "histogram", "1", "2", &value, &[])],
        &Context::default(),
    );
    check(&out);
    let path = out.split(r#"class="line" d="M"#).nth(1).unwrap();
    let drawn: Vec<f64> = path
        .split('"')
        .next()
        .unwrap()
        .split('L')
        .map(|point| point.split(' ').nth(1).unwrap().parse().unwrap())
        .collect();
    assert!(drawn.len() < 8_000, "{}", drawn.len());
    // the peak is the highest point, far above the others
    let mut sorted = drawn;
    sorted.sort_by(f64::total_cmp);
    assert!(sorted[0] + 200.0 < sorted[2], "{:?}", &sorted[..4]);
    assert!(out.len() < 400_000, "{}", out.len());
}

#[test]
fn relations_and_units_are_stated() {
    let all = releases();
    let out = html(
        &file(
            "d",
            "replace_one",
            &json!({"column": "person", "max_rows": 4}),
            &all,
        ),
        &Context::default(),
    );
    check(&out);
    assert!(
        out.contains("counts for this data set is replace\u{a0}one;")
            && out.contains("one value of <strong>person</strong>")
    );
    assert!(out.contains("no more than 4 rows of each are used"));
    // Every plot names its cost and relation.
    assert_eq!(out.matches("replace one</li></ul>").count(), 12);
}
