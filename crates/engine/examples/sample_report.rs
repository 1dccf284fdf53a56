//! Writes a report on made-up numbers of every kind, to look at:
//! `cargo run --release -p reticent-engine --example sample_report -- report.html`

use std::process::ExitCode;

use reticent_engine::report::{Budget, Context, Cost, PriceRow, html};
use serde_json::json;

#[allow(unreachable_pub, dead_code)]
#[path = "../src/report/sample.rs"]
mod sample;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: sample_report FILE.html");
        return ExitCode::from(2);
    };
    let epsilon = |e: &str| Cost {
        epsilon: Some(e.to_owned()),
        ..Cost::default()
    };
    let part = |id: &str, part: &str| PriceRow {
        id: id.into(),
        part: Some(part.into()),
        ..PriceRow::default()
    };
    let context = Context {
        title: Some("Income in the 1994 census".into()),
        dataset: Some("UCI Adult (simulated numbers)".into()),
        credit: Some(
            "Made-up numbers in the shape of UCI Adult (CC BY 4.0) and a US census extract.".into(),
        ),
        split: Some("one third for testing, by content, salt adult-1".into()),
        filter: Some("hours_per_week > 0".into()),
        prices: vec![
            part("income", "train"),
            part("roc", "test"),
            part("fit-check", "test"),
            part("pay", "train"),
            part("pay-residuals", "test"),
        ],
        total: None,
        total_other: None,
        budget: Some(Budget {
            cap: epsilon("10"),
            before: epsilon("0.3"),
            after: epsilon("4"),
        }),
        plan: Some("version = 1\ndataset = \"dataset.toml\"\n".into()),
    };
    let page = html(
        &sample::file("adult", "add_remove", &json!("row"), &sample::releases()),
        &context,
    );
    match std::fs::write(&path, page) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{path}: {e}");
            ExitCode::FAILURE
        }
    }
}
