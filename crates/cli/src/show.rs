//! What commands print: tables for people, JSON for machines.

use comfy_table::{ContentArrangement, Table, presets};
use reticent_engine::accounting::{
    Cost, Currency, Price, Rational, Relation, format_rational, rational_to_f64,
};
use reticent_engine::accuracy::{AccuracyTable, Line};
use reticent_engine::dataset::Dataset;
use reticent_engine::ledger::{Entry, EntryKind, Identity, Report, Status};
use reticent_engine::register::Registration;
use reticent_engine::session::{PriceTable, Ran};
use reticent_engine::{Error, Failure};
use serde_json::{Value, json};

/// Columns of a printed table.
const WIDTH: u16 = 110;

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    // The terminal's width is unknown here; long cells wrap at what most of them have.
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(WIDTH);
    table.set_header(header.to_vec());
    table
}

fn text(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

fn amount(cost: Option<&Cost>, currency: Currency) -> String {
    cost.map_or_else(
        || "unbounded".to_owned(),
        |c| match currency {
            Currency::Approximate => format!("{}, δ {}", brief(&c.amount), brief(&c.delta)),
            _ => brief(&c.amount),
        },
    )
}

/// The keys in which amounts of a currency are given.
pub(crate) fn keys(currency: Currency) -> &'static str {
    match currency {
        Currency::Pure => "epsilon",
        Currency::Approximate => "epsilon and delta",
        Currency::Concentrated => "rho",
    }
}

fn unit_of(currency: Currency) -> &'static str {
    match currency {
        Currency::Concentrated => "ρ",
        _ => "ε",
    }
}

pub(crate) fn accuracy(of: &AccuracyTable, json: bool) -> String {
    if json {
        return text(&of.to_json());
    }
    let mut out = accuracy_lines(&of.lines);
    let rows = of.rows.map_or_else(
        || "number of rows unknown".to_owned(),
        |n| format!("{n} rows"),
    );
    out.push_str(&format!(
        "Errors hold with probability .95 under {}; {rows}.\n",
        of.relation
    ));
    out
}

pub(crate) fn accuracy_line(line: &Line, json: bool) -> String {
    if json {
        return text(&line.to_json());
    }
    accuracy_lines(std::slice::from_ref(line))
}

fn accuracy_lines(lines: &[Line]) -> String {
    let mut t = table(&[
        "release",
        "kind",
        "epsilon",
        "error",
        "all together",
        "unit",
        "epsilon for half",
        "remark",
    ]);
    let short = |x: f64| {
        if x == 0.0 || (0.001..1e6).contains(&x.abs()) {
            format!("{}", (x * 1e4).round() / 1e4)
        } else {
            format!("{x:.3e}")
        }
    };
    let maybe = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), short);
    for line in lines {
        let error = line.error.as_ref();
        t.add_row(vec![
            line.id.clone(),
            line.kind.clone(),
            short(line.budget),
            maybe(error.map(|e| e.each)),
            maybe(error.map(|e| e.all)),
            error.map_or_else(String::new, |e| e.unit.to_owned()),
            maybe(line.for_half),
            line.remark.clone().unwrap_or_default(),
        ]);
    }
    format!("{t}\n")
}

pub(crate) fn price(prices: &PriceTable, json: bool) -> String {
    let currency = prices.currency;
    if json {
        return text(&prices.to_json());
    }
    let symbol = unit_of(currency);
    let mut t = table(&[
        "release",
        "kind",
        "rows",
        &format!("{symbol} add/remove"),
        &format!("{symbol} replace-one"),
        "what to expect",
    ]);
    for line in &prices.lines {
        t.add_row(vec![
            line.id.clone(),
            line.kind.clone(),
            line.part.clone(),
            amount(line.price.under(Relation::AddRemove), currency),
            amount(line.price.under(Relation::ReplaceOne), currency),
            line.accuracy
                .clone()
                .unwrap_or_else(|| "no public number of rows: give --rows".to_owned()),
        ]);
    }
    let mut out = format!("{t}\n");
    out.push_str(&format!(
        "Total {symbol} {} (add/remove), {} (replace-one); disjoint parts count once. The data set's relation is {}.\n",
        amount(prices.total.under(Relation::AddRemove), currency),
        amount(prices.total.under(Relation::ReplaceOne), currency),
        prices.relation,
    ));
    match &prices.remaining {
        Some(left) => out.push_str(&format!(
            "Left in the ledger: {}.\n",
            left.describe(currency)
        )),
        None => out.push_str("There is no ledger yet.\n"),
    }
    out
}

pub(crate) fn ran(ran: &Ran, json: bool) -> String {
    if json {
        return text(&ran.release);
    }
    let currency = ran.currency;
    let mut out = String::new();
    for file in ["release.json", "report.html"] {
        out.push_str(&format!("wrote {}\n", ran.out.join(file).display()));
    }
    let releases = ran.release["releases"].as_array();
    for release in releases.into_iter().flatten() {
        if let (Some(id), Some(why)) = (
            release["id"].as_str(),
            release["value"]["not_made"].as_str(),
        ) {
            out.push_str(&format!("{id} was not made: {why}\n"));
        }
    }
    if ran.stored > 0 {
        out.push_str(&format!(
            "{} of the releases were made before and cost nothing\n",
            ran.stored
        ));
    }
    out.push_str(&format!(
        "spent {} before, {} now, of {}\n",
        ran.spent.0.describe(currency),
        ran.spent.1.describe(currency),
        ran.cap.describe(currency)
    ));
    if ran.declared != ran.cap {
        out.push_str(&format!(
            "note: dataset.toml declares a budget of {}; what counts is the ledger's cap of {} (see reticent ledger raise)\n",
            ran.declared.describe(currency),
            ran.cap.describe(currency)
        ));
    }
    out
}

pub(crate) fn registration(dataset: &Dataset, registration: &Registration, json: bool) -> String {
    if json {
        return text(
            &json!({"dataset": dataset.id, "ledger": dataset.ledger, "rows": registration.rows,
            "clamped": registration.clamped.iter().map(|(c, n)| json!({"column": c, "cells": n})).collect::<Vec<_>>()}),
        );
    }
    let mut out = format!(
        "registered {} ({} rows); ledger {}\n",
        dataset.id,
        registration.rows,
        dataset.ledger.display()
    );
    for (column, cells) in registration.clamped.iter().filter(|c| c.1 > 0) {
        out.push_str(&format!(
            "note: {cells} cell{} of {column} outside its bounds will be clamped\n",
            if *cells == 1 { "" } else { "s" }
        ));
    }
    out.push_str("The row count and these notes are confidential: they are shown here once and stored nowhere.\n");
    out
}

pub(crate) fn ledger(
    identity: &Identity,
    status: &Status,
    entries: &[Entry],
    json: bool,
) -> String {
    let currency = status.currency;
    let price_json = |p: &Price| p.to_json(currency);
    if json {
        return text(&json!({
            "dataset": identity.dataset, "data_version": identity.data_version,
            "relation": status.relation.to_string(),
            "cap": status.cap.to_json(currency), "spent": price_json(&status.spent),
            "remaining": status.remaining.to_json(currency),
            "analysts": status.analysts.iter().map(|(a, s)| json!({"analyst": a, "spent": price_json(&s.spent),
                "cap": s.cap.as_ref().map(|c| c.to_json(currency))})).collect::<Vec<_>>(),
            "partitions": status.partitions.iter().map(|p| json!({"partition": p.partition, "total": price_json(&p.total),
                "parts": p.parts.iter().map(|(n, c)| json!({"part": n, "spent": price_json(c)})).collect::<Vec<_>>()})).collect::<Vec<_>>(),
            "unpublished": status.unpublished, "sequence": status.sequence,
        }));
    }
    let symbol = unit_of(currency);
    let mut t = table(&[
        "#",
        "entry",
        "analyst",
        "rows",
        &format!("{symbol} add/remove"),
        &format!("{symbol} replace-one"),
    ]);
    for entry in entries {
        t.add_row(row(entry, currency));
    }
    format!(
        "{} ({}), neighbours {}\n{t}\nspent {} of {}, {} left{}\n",
        identity.dataset,
        identity.data_version,
        status.relation,
        amount(status.spent.under(status.relation), currency),
        status.cap.describe(currency),
        status.remaining.describe(currency),
        if status.unpublished > 0 {
            format!(
                "; {} payments wait for their release: run the same plan again, at no cost",
                status.unpublished
            )
        } else {
            String::new()
        },
    )
}

fn row(entry: &Entry, currency: Currency) -> Vec<String> {
    let sequence = entry.sequence.to_string();
    match &entry.kind {
        EntryKind::Created(identity) => {
            vec![
                sequence,
                "registered".into(),
                String::new(),
                String::new(),
                identity.cap.describe(currency),
                String::new(),
            ]
        }
        EntryKind::Spend(spend) => vec![
            sequence,
            format!("paid: {}", spend.label),
            spend.analyst.clone(),
            spend
                .partition
                .as_ref()
                .map_or_else(|| "all".to_owned(), |(_, part)| part.clone()),
            amount(spend.price.under(Relation::AddRemove), currency),
            amount(spend.price.under(Relation::ReplaceOne), currency),
        ],
        EntryKind::Release { request, .. } => {
            let short: String = request.to_string().chars().take(12).collect();
            vec![
                sequence,
                format!("released {short}…"),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
            ]
        }
        EntryKind::Raise { cap, who } => {
            vec![
                sequence,
                "cap raised".into(),
                who.clone(),
                String::new(),
                cap.describe(currency),
                String::new(),
            ]
        }
    }
}

pub(crate) fn verified(report: &Report, json: bool) -> String {
    if json {
        return text(&json!({"entries": report.entries, "values": report.values,
            "against": report.against.map(|a| a.sequence), "spent": report.status.spent.to_json(report.status.currency)}));
    }
    let mut out = format!(
        "{} entries and {} stored releases: the chain holds\n",
        report.entries, report.values
    );
    if let Some(place) = report.against {
        out.push_str(&format!(
            "the release is on this chain, at entry {}, and its kinds, parts, values, receipts and flags are those that are stored (names of releases and of the unit are not)\n",
            place.sequence
        ));
    }
    out
}

pub(crate) fn raised(status: &Status, json: bool) -> String {
    if json {
        return text(
            &json!({"cap": status.cap.to_json(status.currency), "sequence": status.sequence}),
        );
    }
    format!("the cap is now {}\n", status.cap.describe(status.currency))
}

pub(crate) fn failure_json(failure: &Failure) -> String {
    let value = match failure {
        Failure::Refusal(refusal) => json!({"refusal": refusal, "exit_code": failure.exit_code()}),
        Failure::Error(error) => {
            json!({"error": error_text(error), "exit_code": failure.exit_code()})
        }
    };
    value.to_string()
}

fn error_text(error: &Error) -> String {
    error.to_string()
}

/// A number for people: exact if that is short, else seven digits and a mark that they are rounded.
fn brief(x: &Rational) -> String {
    let exact = format_rational(x);
    if exact.len() <= 16 {
        exact
    } else {
        format!("≈{:.6e}", rational_to_f64(x))
    }
}
