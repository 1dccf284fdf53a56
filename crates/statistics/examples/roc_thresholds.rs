//! Errors of the area by the ways of choosing thresholds: the table in `docs/roc.md`.
//!
//! `cargo run --release -p reticent-statistics --example roc_thresholds`

use std::sync::Arc;

use reticent_accounting::{Relation, parse_decimal};
use reticent_laws::Seeded;
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Context, Simulated, Unit, simulate};
use reticent_noise::Noise;
use reticent_statistics::roc::{Config, Thresholds, prepare};
use reticent_statistics::{Facts, Score};

const RUNS: u32 = 100;

fn uniform(noise: &mut Seeded) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    let u = (noise.bits() >> 11) as f64;
    u / 9_007_199_254_740_992.0
}

/// Scores logistic(1.5·(z + 1.6·y − 1.2)), z the sum of twelve uniform numbers less 6, negatives first; and the area.
fn scores(negatives: u32, positives: u32) -> (Vec<f64>, Vec<f64>, f64) {
    let mut noise = Seeded::new(9);
    let (mut p, mut y) = (Vec::new(), Vec::new());
    for i in 0..negatives + positives {
        let label = f64::from(u8::from(i >= negatives));
        let z: f64 = (0..12).map(|_| uniform(&mut noise)).sum::<f64>() - 6.0;
        p.push(1.0 / (1.0 + (-1.5 * (z + 1.6 * label - 1.2)).exp()));
        y.push(label);
    }
    let (no, yes) = p.split_at(negatives as usize);
    let mut sorted = no.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[allow(clippy::cast_precision_loss, reason = "small counts")]
    let won: f64 = yes
        .iter()
        .map(|s| sorted.partition_point(|t| t < s) as f64)
        .sum();
    let area = won / (f64::from(negatives) * f64::from(positives));
    (p, y, area)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let column = |name: &str| Column {
        name: name.to_owned(),
        kind: Kind::Real {
            lower: 0.0,
            upper: 1.0,
        },
        missing: Missing::Drop,
    };
    let schema = Arc::new(Schema {
        columns: vec![column("p"), column("y")],
    });
    let ways = [
        ("medians", Thresholds::Medians, false),
        ("stratified", Thresholds::Stratified, false),
        ("stratified, declared share", Thresholds::Stratified, true),
        ("label_separate", Thresholds::LabelSeparate, false),
    ];
    println!("| records | ε | {} |", ways.map(|w| w.0).join(" | "));
    println!("|---|---|---|---|---|---|");
    for (negatives, positives) in [(481, 77), (385, 299), (9800, 200), (5000, 5000)] {
        let (p, y, area) = scores(negatives, positives);
        let rows = negatives + positives;
        let batch = Batch::new(p.len(), vec![Cells::Real(p), Cells::Real(y)]);
        let source = Memory::new(schema.clone(), vec![batch]);
        for relation in [Relation::AddRemove, Relation::ReplaceOne] {
            let context = Context::records(relation);
            for epsilon in ["0.25", "1"] {
                let mut cells = Vec::new();
                for (_, choice, declared) in ways {
                    let facts = Facts {
                        schema: &schema,
                        filter: None,
                        context: &context,
                        rows: Some(f64::from(rows)),
                        positive_rate: declared.then(|| f64::from(positives) / f64::from(rows)),
                    };
                    let config = Config {
                        choice,
                        ..Config::new(parse_decimal(epsilon)?)
                    };
                    let score = Score::Probability(Expr::Column(0));
                    let prepared = prepare(&facts, &score, Expr::Column(1), config)?;
                    let program = RowProgram {
                        terms: prepared.terms,
                        ..RowProgram::default()
                    };
                    let mut sum = 0.0;
                    for run in 0..RUNS {
                        let mut noise = Seeded::stream(5, u64::from(run));
                        let Simulated((answer, _)) = simulate(
                            &source,
                            Unit::Row,
                            &context,
                            &program,
                            prepared.mechanism.as_ref(),
                            &mut noise,
                        )?;
                        sum += (answer.value["auc"].as_f64().unwrap_or(0.5) - area).abs();
                    }
                    cells.push(format!("{:.4}", sum / f64::from(RUNS)));
                }
                println!(
                    "| {negatives} and {positives}, {relation} | {epsilon} | {} |",
                    cells.join(" | ")
                );
            }
        }
    }
    Ok(())
}
