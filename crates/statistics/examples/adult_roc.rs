//! Accuracy of the private ROC area and coverage of its proved band on the test part of UCI Adult (public).
//!
//! A logistic model is fitted on the training part (ε = 1); then the curve is released again and again at
//! ε = 1 on the test part and compared with the true one.
//!
//! `zcat examples/adult/adult.csv.gz | cargo run --release -p reticent-statistics --example adult_roc -- 200`

use std::sync::Arc;

use reticent_accounting::{Relation, parse_decimal};
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Context, Simulated, Unit, simulate};
use reticent_noise::{Noise, Seeded};
use reticent_statistics::{DesignSpec, Facts, Prepared, Score, logistic, model, roc};
use serde_json::Value;

type Error = Box<dyn std::error::Error>;
type Columns = Vec<Vec<f64>>;

const NAMES: [&str; 7] = [
    "age",
    "education_num",
    "hours_per_week",
    "log1p(capital_gain)",
    "married",
    "sexMale",
    "income",
];
const BOUNDS: [(f64, f64); 7] = [
    (17.0, 90.0),
    (1.0, 16.0),
    (1.0, 99.0),
    (0.0, 11.6),
    (0.0, 1.0),
    (0.0, 1.0),
    (0.0, 1.0),
];

fn main() -> Result<(), Error> {
    let runs: u64 = std::env::args().nth(1).map_or(Ok(200), |r| r.parse())?;
    let (train, test) = read()?;
    for relation in [Relation::AddRemove, Relation::ReplaceOne] {
        one(&train, &test, &Context::records(relation), runs)?;
    }
    Ok(())
}

fn one(train: &[Vec<f64>], test: &[Vec<f64>], context: &Context, runs: u64) -> Result<(), Error> {
    let design = DesignSpec {
        intercept: true,
        terms: NAMES
            .iter()
            .take(6)
            .enumerate()
            .map(|(i, n)| ((*n).to_owned(), Expr::Column(i)))
            .collect(),
        outcome: Expr::Column(6),
        metadata: Value::Null,
    };
    let config = logistic::Config::new(parse_decimal("1")?);
    let (schema, source) = table(train);
    let facts = facts(&schema, context, 32_000.0);
    let prepared = logistic::prepare(&facts, &design, &config)?;
    let fit = run(&source, context, &prepared, &mut Seeded::new(1))?;
    let b: Vec<f64> = fit["terms"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|t| t["estimate"].as_f64())
        .collect();
    let terms: Vec<(f64, Expr)> = b
        .iter()
        .skip(1)
        .enumerate()
        .map(|(i, b)| (*b, Expr::Column(i)))
        .collect();
    let score = Score::Linear(model::linear_predictor(b[0], &terms));
    let scores: Vec<f64> = (0..test[0].len())
        .map(|r| b[0] + (0..6).map(|c| b[c + 1] * test[c][r]).sum::<f64>())
        .collect();
    let (curve, area) = truth(&scores, &test[6]);
    let (schema, source) = table(test);
    let facts = self::facts(&schema, context, 16_000.0);
    let prepared = roc::prepare(
        &facts,
        &score,
        Expr::Column(6),
        roc::Config::new(parse_decimal("1")?),
    )?;
    let (mut near, mut inside, mut covered, mut total) = (0u32, 0u32, 0u32, 0.0);
    for seed in 0..runs {
        let value = run(&source, context, &prepared, &mut Seeded::stream(2, seed))?;
        let get = |k: &str| value[k].as_f64().unwrap_or(f64::NAN);
        let error = (get("auc") - area).abs();
        total += error;
        near += u32::from(error < 0.01);
        inside += u32::from(get("auc_low") <= area && area <= get("auc_high"));
        covered += u32::from(covers(&value, &curve));
    }
    #[allow(clippy::cast_precision_loss, reason = "a number of runs")]
    let n = runs as f64;
    println!(
        "{}: true area {area:.4}; of {runs} runs: within .01 {near}, interval covers {inside}, band covers the whole curve {covered}; mean error {:.5}",
        context.relation,
        total / n
    );
    Ok(())
}

fn covers(value: &Value, curve: &[(f64, f64)]) -> bool {
    let band: Vec<[f64; 4]> = value["band"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|r| {
            ["fpr_low", "fpr_high", "tpr_low", "tpr_high"]
                .map(|k| r[k].as_f64().unwrap_or(f64::NAN))
        })
        .collect();
    curve.iter().all(|(f, t)| {
        band.iter().any(|[a, b, c, d]| {
            *f >= a - 1e-9 && *f <= b + 1e-9 && *t >= c - 1e-9 && *t <= d + 1e-9
        })
    })
}

/// Empirical curve (ties move diagonally) and its area.
fn truth(scores: &[f64], labels: &[f64]) -> (Vec<(f64, f64)>, f64) {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let positives: f64 = labels.iter().sum();
    let negatives: f64 = labels.iter().map(|y| 1.0 - y).sum();
    let (mut f, mut t, mut area) = (0.0, 0.0, 0.0);
    let mut curve = vec![(0.0, 0.0)];
    for group in order.chunk_by(|a, b| scores[*a].total_cmp(&scores[*b]).is_eq()) {
        let up = group.iter().map(|i| labels[*i]).sum::<f64>() / positives;
        let right = group.iter().map(|i| 1.0 - labels[*i]).sum::<f64>() / negatives;
        area += right * (t + 0.5 * up);
        f += right;
        t += up;
        curve.push((f, t));
    }
    (curve, area)
}

fn facts<'a>(schema: &'a Schema, context: &'a Context, rows: f64) -> Facts<'a> {
    Facts {
        schema,
        filter: None,
        context,
        rows: Some(rows),
        positive_rate: Some(0.24),
    }
}

fn run(
    source: &Memory,
    context: &Context,
    prepared: &Prepared,
    noise: &mut dyn Noise,
) -> Result<Value, Error> {
    let program = RowProgram {
        terms: prepared.terms.clone(),
        filter: None,
        part: None,
    };
    let Simulated((answer, _)) = simulate(
        source,
        Unit::Row,
        context,
        &program,
        prepared.mechanism.as_ref(),
        noise,
    )?;
    Ok(answer.value)
}

fn table(columns: &[Vec<f64>]) -> (Arc<Schema>, Memory) {
    let schema = Arc::new(Schema {
        columns: NAMES
            .iter()
            .zip(BOUNDS)
            .map(|(name, (lower, upper))| Column {
                name: (*name).to_owned(),
                kind: Kind::Real { lower, upper },
                missing: Missing::Drop,
            })
            .collect(),
    });
    let batch = Batch::new(
        columns.first().map_or(0, Vec::len),
        columns.iter().map(|c| Cells::Real(c.clone())).collect(),
    );
    (schema.clone(), Memory::new(schema, vec![batch]))
}

/// Columns of the training and of the test part.
fn read() -> Result<(Columns, Columns), Error> {
    let text = std::io::read_to_string(std::io::stdin())?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or("").split(',').collect();
    let place = |name: &str| header.iter().position(|h| *h == name).unwrap_or(usize::MAX);
    let mut parts = (vec![Vec::new(); 7], vec![Vec::new(); 7]);
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |name: &str| cells.get(place(name)).copied().unwrap_or("");
        let flag = |on: bool| f64::from(u8::from(on));
        let row = [
            cell("age").parse()?,
            cell("education_num").parse()?,
            cell("hours_per_week").parse()?,
            cell("capital_gain").parse::<f64>()?.ln_1p(),
            flag(cell("marital_status") == "Married-civ-spouse"),
            flag(cell("sex") == "Male"),
            flag(cell("income") == ">50K"),
        ];
        let part = if cell("split") == "test" {
            &mut parts.1
        } else {
            &mut parts.0
        };
        for (column, x) in part.iter_mut().zip(row) {
            column.push(x);
        }
    }
    Ok(parts)
}
