//! The report: one self-contained HTML page made from a `release.json` and what is publicly known around it.
//!
//! The page needs no script and no network. It follows the reader's colour scheme, prints in black and white and fits a
//! phone. Everything here is post-processing of released values; a value that is missing or odd is shown as a dash,
//! never an error, and everything that comes from outside is escaped.
//!
//! - [`html()`]: the page; `sections` one release; `plots` the charts on the small drawing layer `svg`;
//!   `words` numbers and sentences; `read` access to values.

mod counted;
mod heat;
mod html;
mod numbers;
mod plots;
mod read;
mod roc;
#[cfg(test)]
mod sample;
mod sections;
mod svg;
mod tables;
#[cfg(test)]
mod tests;
mod verify;
mod words;

use std::fmt::Write as _;

use serde_json::Value;

use html::{Cell, Set, escape};

/// What the report shows beside the released values. Every field may be left at its default.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// Title of the page; default: the data set's id.
    pub title: Option<String>,
    /// The data set in everyday words, such as "UCI Adult, 1994 census".
    pub dataset: Option<String>,
    /// A credit or licence line for the data.
    pub credit: Option<String>,
    /// How rows were split, in words ("one third by content, salt adult-1").
    pub split: Option<String>,
    /// The row filter as written.
    pub filter: Option<String>,
    /// One row per priced release, in plan order; matched to releases by id.
    pub prices: Vec<PriceRow>,
    /// Exact total cost of the releases shown, as composed by the accounting; default: the sum over the receipts
    /// (an upper bound where parts of a split compose in parallel).
    pub total: Option<Cost>,
    /// The same under the other relation; default: the sum over the receipts.
    pub total_other: Option<Cost>,
    /// The data set's budget before and after this run.
    pub budget: Option<Budget>,
    /// The plan's text, shown folded.
    pub plan: Option<String>,
}

/// One row of the price table.
#[derive(Debug, Clone, Default)]
pub struct PriceRow {
    /// The release's id in the plan.
    pub id: String,
    /// What it is for, where the release itself does not say ("implicit count for planning").
    pub asked: Option<String>,
    /// Which rows it reads: train, test, all.
    pub part: Option<String>,
    /// What the ledger was charged in this run; default: the receipt's cost under the plan's relation, and nothing for
    /// a row without a release in the file.
    pub debited: Option<Cost>,
    /// Total in the ledger after this release.
    pub spent: Option<Cost>,
    /// Left in the budget after this release.
    pub left: Option<Cost>,
    /// The same request was already paid for: the stored release was returned and nothing debited.
    pub stored: bool,
}

/// The budget of the data set around this run.
#[derive(Debug, Clone, Default)]
pub struct Budget {
    /// The cap.
    pub cap: Cost,
    /// Spent before this run, by all plans.
    pub before: Cost,
    /// Spent after this run.
    pub after: Cost,
}

/// A cost as exact text, in the parts its currency has. All parts empty: nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cost {
    /// ε, such as "0.5" or "1/3".
    pub epsilon: Option<String>,
    /// δ.
    pub delta: Option<String>,
    /// ρ of zero-concentrated privacy.
    pub rho: Option<String>,
}

impl Cost {
    /// Reads `{"epsilon": "0.5"}`, `{"epsilon", "delta"}` or `{"rho"}`; `None` for `null` and anything else.
    pub fn from_json(v: &Value) -> Option<Cost> {
        let part = |key: &str| v.get(key).and_then(read::plain);
        let cost = Cost {
            epsilon: part("epsilon"),
            delta: part("delta"),
            rho: part("rho"),
        };
        (cost != Cost::default()).then_some(cost)
    }

    fn combine(&self, other: &Cost, sign: i128) -> Option<Cost> {
        let part = |a: &Option<String>, b: &Option<String>| match (a, b) {
            (None, None) => Some(None),
            (a, b) => words::combine(
                a.as_deref().unwrap_or("0"),
                b.as_deref().unwrap_or("0"),
                sign,
            )
            .map(Some),
        };
        Some(Cost {
            epsilon: part(&self.epsilon, &other.epsilon)?,
            delta: part(&self.delta, &other.delta)?,
            rho: part(&self.rho, &other.rho)?,
        })
    }
}

/// The privacy unit as the file states it.
#[derive(Debug)]
enum Unit {
    Row,
    Column {
        column: String,
        max_rows: Option<u64>,
    },
    Unknown,
}

impl Unit {
    fn read(v: Option<&Value>) -> Unit {
        match v {
            Some(Value::String(s)) if s == "row" => Unit::Row,
            Some(o) => match read::text(o, "column") {
                Some(column) => Unit::Column {
                    column,
                    max_rows: o.get("max_rows").and_then(Value::as_u64),
                },
                None => Unit::Unknown,
            },
            None => Unit::Unknown,
        }
    }
}

/// One release as the sections need it.
#[derive(Debug)]
struct Release<'a> {
    id: &'a str,
    kind: &'a str,
    value: &'a Value,
    receipt: &'a Value,
    flags: Vec<String>,
    /// One of the fits and evaluations of a cross-validation, which has the section.
    fold: bool,
}

impl<'a> Release<'a> {
    fn read(v: &'a Value) -> Release<'a> {
        let word = |key: &str| v.get(key).and_then(Value::as_str).unwrap_or(words::NONE);
        Release {
            id: word("id"),
            kind: word("kind"),
            value: v.get("value").unwrap_or(&Value::Null),
            receipt: v.get("receipt").unwrap_or(&Value::Null),
            flags: read::list(v, "flags")
                .iter()
                .filter_map(read::plain)
                .collect(),
            fold: v.get("fold").is_some_and(Value::is_object),
        }
    }

    /// Cost under one relation; a public release costs nothing, `None` means not limited.
    fn cost(&self, relation: &str) -> Option<Cost> {
        if self.receipt.as_str() == Some("public") {
            return Some(Cost {
                epsilon: Some("0".to_owned()),
                ..Cost::default()
            });
        }
        self.receipt
            .get("cost")?
            .get(relation)
            .and_then(Cost::from_json)
    }

    fn cost_under(&self, relation: Option<&str>) -> Option<Cost> {
        self.cost(relation?)
    }
}

/// The report as one HTML page.
pub fn html(release: &Value, context: &Context) -> String {
    let releases: Vec<Release<'_>> = read::list(release, "releases")
        .iter()
        .map(Release::read)
        .collect();
    let relation = release.get("relation").and_then(Value::as_str);
    let unit = Unit::read(release.get("unit"));
    let dataset = release.get("dataset").unwrap_or(&Value::Null);
    let id = read::text(dataset, "id").unwrap_or_else(|| words::NONE.to_owned());
    let title = context
        .title
        .clone()
        .unwrap_or_else(|| format!("Private report on {id}"));
    let simulated = releases
        .iter()
        .any(|r| r.flags.iter().any(|f| f == "simulated"));

    let mut out =
        String::from("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>");
    out.push_str(r#"<meta name="viewport" content="width=device-width, initial-scale=1"/>"#);
    out.push_str(r#"<meta name="color-scheme" content="light dark"/>"#);
    // The page may load nothing at all, whatever a value contains.
    out.push_str(
        r#"<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>"#,
    );
    let _ = write!(
        out,
        "<title>{}</title><style>{}</style></head><body><main>",
        escape(&title),
        include_str!("style.css")
    );

    header(&mut out, &title, &id, dataset, release, context);
    if simulated {
        let _ = write!(
            out,
            r#"<p class="flag"><strong>Note.</strong> {}</p>"#,
            escape(&words::flag("simulated"))
        );
    }
    asked(&mut out, &releases, context);
    promise(&mut out, &releases, relation, &unit, context);
    spent(&mut out, &releases, relation, context);
    for (i, r) in releases.iter().enumerate().filter(|(_, r)| !r.fold) {
        out.push_str(&sections::section(i + 1, r, relation));
    }
    footer(&mut out, release, context);
    out.push_str("</main></body></html>\n");
    out
}

fn header(
    out: &mut String,
    title: &str,
    id: &str,
    dataset: &Value,
    release: &Value,
    context: &Context,
) {
    let version = read::text(dataset, "data_version")
        .map_or_else(String::new, |v| format!(", version {}", escape(&v)));
    let name = context
        .dataset
        .as_deref()
        .map_or_else(String::new, |n| format!("{} · ", escape(n)));
    let made =
        read::text(release, "software").map_or_else(String::new, |s| format!(" · {}", escape(&s)));
    let _ = write!(
        out,
        "<header><h1>{}</h1><p>{name}data set <code>{}</code>{version}{made}</p></header>",
        escape(title),
        escape(id)
    );
}

fn asked(out: &mut String, releases: &[Release<'_>], context: &Context) {
    out.push_str(r#"<section id="asked"><h2>What was asked</h2><ol>"#);
    for (i, r) in releases.iter().enumerate().filter(|(_, r)| !r.fold) {
        let price = context.prices.iter().find(|p| p.id == r.id);
        let mut about = sections::describe(r.kind, r.value);
        if let Some(asked) = price.and_then(|p| p.asked.as_deref()) {
            about = escape(asked);
        }
        let part = price
            .and_then(|p| p.part.as_deref())
            .map_or_else(String::new, |p| match p {
                "all" => String::new(),
                p => format!(r#" <span class="part">{} part</span>"#, escape(p)),
            });
        let _ = write!(
            out,
            r##"<li><a href="#release-{}">{}</a> <span class="kind">{}</span>{}{}{part}</li>"##,
            i + 1,
            escape(r.id),
            escape(&words::kind(r.kind)),
            if about.is_empty() { "" } else { ": " },
            about
        );
    }
    out.push_str("</ol>");
    if releases.is_empty() {
        out.push_str("<p>Nothing was released.</p>");
    }
    for (name, text) in [("Rows used", &context.filter), ("Split", &context.split)] {
        if let Some(text) = text {
            let _ = write!(out, "<p>{name}: {}</p>", escape(text));
        }
    }
    out.push_str("</section>");
}

fn total(releases: &[Release<'_>], relation: &str) -> Option<Cost> {
    releases
        .iter()
        .try_fold(Cost::default(), |sum, r| sum.combine(&r.cost(relation)?, 1))
}

/// Price rows whose release is not in the file, such as the implicit count for planning.
fn unlisted<'c>(releases: &[Release<'_>], context: &'c Context) -> Vec<&'c PriceRow> {
    context
        .prices
        .iter()
        .filter(|p| releases.iter().all(|r| r.id != p.id))
        .collect()
}

/// Cost of this report under the data set's relation: as composed by the accounting, else the sum over the receipts
/// and the unlisted rows. `None` when any of it is not limited.
fn own_total(releases: &[Release<'_>], relation: Option<&str>, context: &Context) -> Option<Cost> {
    if let Some(t) = &context.total {
        return Some(t.clone());
    }
    let extra = unlisted(releases, context)
        .into_iter()
        .filter_map(|p| p.debited.as_ref());
    extra
        .into_iter()
        .try_fold(total(releases, relation?)?, |sum, c| sum.combine(c, 1))
}

fn promise(
    out: &mut String,
    releases: &[Release<'_>],
    relation: Option<&str>,
    unit: &Unit,
    context: &Context,
) {
    let _ = write!(
        out,
        r#"<section id="promise" class="box"><h2>What is protected, and how well</h2><p>{}</p>"#,
        words::protection(relation, unit)
    );
    if releases.is_empty() {
        out.push_str("</section>");
        return;
    }
    let own = own_total(releases, relation, context);
    // Unlisted rows have no price under the other relation.
    let swap = if unlisted(releases, context).is_empty() {
        total(releases, "replace_one")
    } else {
        None
    };
    let _ = write!(
        out,
        "<p>{}</p>",
        words::odds(relation, unit, own.as_ref(), swap.as_ref())
    );
    if let Some(b) = &context.budget {
        let _ = write!(
            out,
            "<p>This report cost {}. Everything released from this data set so far, this report included, comes to {}{}; \
             {} is allowed in all.</p>",
            escape(
                &own.as_ref()
                    .map_or_else(|| words::NONE.to_owned(), words::cost)
            ),
            escape(&words::cost(&b.after)),
            escape(&words::as_factor(&b.after)),
            escape(&words::cost(&b.cap))
        );
    }
    let _ = write!(
        out,
        r#"<p class="small">{}</p></section>"#,
        escape(words::NOT_PROMISED)
    );
}

#[allow(
    clippy::too_many_lines,
    reason = "one drawing, read from top to bottom"
)]
fn spent(out: &mut String, releases: &[Release<'_>], relation: Option<&str>, context: &Context) {
    let replace = relation == Some("replace_one");
    let keys = if replace {
        ["replace_one", "add_remove"]
    } else {
        ["add_remove", "replace_one"]
    };
    // With nothing but ε on the page the symbol moves into the heads of the columns.
    let plain = only_epsilon(releases, keys, context);
    let show = |c: &Cost| match (plain, &c.epsilon) {
        (true, Some(e)) => escape(&words::amount(e)),
        (true, None) => "0".to_owned(),
        // One part per line keeps seven columns on a page.
        _ => escape(&words::cost(c)).replace(", ", "<br>"),
    };
    let cell = |c: Option<&Cost>| c.map_or_else(|| words::NONE.to_owned(), show);
    let limited = |c: Option<Cost>| c.map_or_else(|| "not limited".to_owned(), |c| show(&c));

    let mut running = context
        .budget
        .as_ref()
        .map_or_else(|| Some(Cost::default()), |b| Some(b.before.clone()));
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let unlisted = unlisted(releases, context);
    for p in &unlisted {
        running =
            running.and_then(|sum| sum.combine(p.debited.as_ref().unwrap_or(&Cost::default()), 1));
        rows.push(vec![
            escape(&p.id),
            escape(p.asked.as_deref().unwrap_or("not in this report")),
            String::new(),
            cell(p.debited.as_ref()),
            words::NONE.to_owned(),
            cell(p.spent.as_ref().or(running.as_ref())),
            cell(p.left.as_ref()),
        ]);
    }
    for (i, r) in releases.iter().enumerate() {
        let price = context.prices.iter().find(|p| p.id == r.id);
        let stored = price.is_some_and(|p| p.stored);
        let paid = match price.and_then(|p| p.debited.clone()) {
            Some(c) => Some(c),
            None if stored => Some(Cost::default()),
            None => r.cost_under(relation),
        };
        running = running.zip(paid).and_then(|(sum, c)| sum.combine(&c, 1));
        let so_far = price
            .and_then(|p| p.spent.clone())
            .or_else(|| running.clone());
        let left = price
            .and_then(|p| p.left.clone())
            .or_else(|| context.budget.as_ref()?.cap.combine(so_far.as_ref()?, -1));
        let note = if stored {
            r#" <span class="part">already paid</span>"#
        } else {
            ""
        };
        rows.push(vec![
            format!(
                r##"<a href="#release-{}">{}</a>{note}"##,
                i + 1,
                escape(r.id)
            ),
            escape(&words::kind(r.kind)),
            sections::headline(r.kind, r.value).map_or_else(String::new, |h| escape(&h.0)),
            limited(r.cost(keys[0])),
            limited(r.cost(keys[1])),
            cell(so_far.as_ref()),
            cell(left.as_ref()),
        ]);
    }
    let other = if let Some(total) = &context.total_other {
        show(total)
    } else if unlisted.is_empty() {
        limited(total(releases, keys[1]))
    } else {
        words::NONE.to_owned()
    };
    let last = |key: usize| {
        rows.last()
            .and_then(|r| r.get(key))
            .cloned()
            .unwrap_or_default()
    };
    let (after, left) = match &context.budget {
        Some(b) => (show(&b.after), cell(b.cap.combine(&b.after, -1).as_ref())),
        None => (last(5), last(6)),
    };
    let own = own_total(releases, relation, context);
    let foot = [
        "this report".to_owned(),
        String::new(),
        String::new(),
        limited(own),
        other,
        after,
        left,
    ];

    let mark = if plain { "ε, " } else { "cost, " };
    let names = if replace {
        ["replace\u{a0}one", "add/remove"]
    } else {
        ["add/remove", "replace\u{a0}one"]
    };
    let (first, second) = (format!("{mark}{}", names[0]), format!("{mark}{}", names[1]));
    let head = [
        ("release", Set::Text),
        ("kind", Set::Whole),
        ("result", Set::Whole),
        (first.as_str(), Set::Number),
        (second.as_str(), Set::Number),
        ("total spent", Set::Number),
        ("left", Set::Number),
    ];
    out.push_str(r#"<section id="spent"><h2>What was spent</h2>"#);
    out.push_str(&html::table(
        if plain { "spent" } else { "spent tight" },
        &head,
        &rows,
        Some(&foot),
    ));
    let _ = write!(
        out,
        r#"<p class="small">What counts for this data set is {}; the other relation is shown for comparison. Costs add up over everything ever released from a data set. Releases on different parts of one split share a cost under add/remove, so a total can be below the sum of its rows.</p></section>"#,
        names[0]
    );
}

fn only_epsilon(releases: &[Release<'_>], keys: [&str; 2], context: &Context) -> bool {
    let plain = |c: &Cost| c.delta.is_none() && c.rho.is_none();
    let budget = context
        .budget
        .iter()
        .flat_map(|b| [&b.cap, &b.before, &b.after]);
    let prices = context
        .prices
        .iter()
        .flat_map(|p| [&p.debited, &p.spent, &p.left])
        .flatten();
    releases
        .iter()
        .flat_map(|r| keys.map(|k| r.cost(k)))
        .flatten()
        .all(|c| plain(&c))
        && budget.chain(prices).chain(&context.total).all(plain)
}

fn footer(out: &mut String, release: &Value, context: &Context) {
    out.push_str("<footer>");
    if let Some(plan) = &context.plan {
        out.push_str(&html::details(
            "The plan",
            &format!("<pre>{}</pre>", escape(plan)),
        ));
    }
    if let Some(ledger) = release.get("ledger") {
        let _ = write!(
            out,
            "<p>Ledger entry {}, head <code>{}</code>.</p>",
            escape(&read::text(ledger, "sequence").unwrap_or_else(|| words::NONE.to_owned())),
            escape(&read::text(ledger, "head").unwrap_or_else(|| words::NONE.to_owned()))
        );
    }
    if let Some(credit) = &context.credit {
        let _ = write!(out, "<p>{}</p>", escape(credit));
    }
    out.push_str("<p>All values stand unrounded, with their signs, in release.json.</p></footer>");
}
