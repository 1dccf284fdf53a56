//! The area under the ROC curve alone, by Cauchy noise on its smooth sensitivity.

use reticent_accounting::{AccountingError, Event, Rational, rational_to_f64};
use reticent_mechanisms::fold::{Axis, Cut, Fold};
use reticent_mechanisms::primitives::{AUC_BITS, SmoothAuc};
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::{Answer, Context, Desk, DeskError, FoldId, Mechanism};
use serde_json::{Value, json};

use crate::Score;
use crate::common::{Facts, Prepared, StatisticsError, number, positive, real, with_metadata};
use crate::roc::symmetric_binormal;

/// What the curve takes for granted.
const ASSUMES: &str = "scores of both classes normal with equal variance on some scale; drawn from the released area alone";

/// Cells of the mixed score scale; scores in one cell count as ties.
const GRID: u32 = 4096;

/// The area of a score for a 0/1 outcome, clamped to [0, 1]. All of ε goes to one number; a [`crate::roc`] gives the curve as
/// well, and from about a thousand records a more accurate area.
///
/// The symmetric binormal curve of the released area ([`crate::roc::symmetric_binormal`]) comes with it: post-processing, which
/// costs nothing. It shows what the area would mean if the scores of both classes were normal with equal variance on some scale; it
/// is not the curve of the data.
///
/// `metadata` is copied into the value: public facts about the model.
///
/// The error depends on the smaller class m and is not released: noise about κ·max(1/m, e^{−(m−1)β}), κ ≈ √2/ε for small ε.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() -> Result<(), StatisticsError> {
/// let people = People::new();
/// let score = Score::Probability(AGE.mul(Expr::Constant(0.01)));
/// let value = people.release(&auc::prepare(&people.facts(), &score, SICK, &epsilon(), Value::Null)?);
/// assert!(value["auc"].as_f64().unwrap() > 0.85); // exact: .925
/// // the middle of the curve lies on the antidiagonal
/// let middle = &value["binormal_curve"][61];
/// assert!((middle["fpr"].as_f64().unwrap() + middle["tpr"].as_f64().unwrap() - 1.0).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A score or outcome that does not fit the schema; an ε below 2⁻⁴⁵ per record.
/// # References
/// `privacy.md` §6; Chen thesis 2018 (SmoothS).
pub fn prepare(
    facts: &Facts<'_>,
    score: &Score,
    outcome: Expr,
    epsilon: &Rational,
    metadata: Value,
) -> Result<Prepared, StatisticsError> {
    positive(epsilon)?;
    let terms = vec![score.mixed(), outcome];
    facts.bounds(&terms)?;
    let step = SmoothAuc {
        name: "area".to_owned(),
        epsilon: epsilon.clone(),
    };
    step.calibration(facts.context)
        .map_err(|e| StatisticsError::Parameter {
            name: "epsilon",
            value: rational_to_f64(epsilon).to_string(),
            fix: e.to_string(),
        })?;
    Ok(Prepared {
        terms,
        mechanism: Box::new(Auc { step, metadata }),
    })
}

/// # Claim
/// ε-DP: one [`SmoothAuc`]; the binormal curve is a function of the released area.
/// # Checked by
/// `contract::{inner_events_sum_to_epsilon, every_kind_answers_on_every_table}`, `accuracy::areas_are_those_of_pairs`,
/// `binormal::its_area_is_the_area`
struct Auc {
    step: SmoothAuc,
    metadata: Value,
}

impl Mechanism for Auc {
    fn kind(&self) -> &'static str {
        "auc"
    }
    fn event(&self, context: &Context) -> Result<Event, AccountingError> {
        Ok(self.step.event(context))
    }
    fn first_pass(&self) -> Vec<Fold> {
        let cut = Cut::Even {
            lower: 0.0,
            upper: 1.0,
            cells: GRID,
        };
        vec![Fold::Grid {
            axes: vec![
                Axis { term: 0, cut },
                Axis {
                    term: 1,
                    cut: Cut::Whole(2),
                },
            ],
            sum: None,
        }]
    }
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError> {
        let noisy = real(desk.smooth_auc(FoldId(0), &self.step)?) / f64::from(1_u32 << AUC_BITS);
        let area = noisy.clamp(0.0, 1.0);
        // rounded, because more digits would only fill the file
        let six = |x: f64| number((x * 1e6).round() / 1e6);
        let curve: Vec<Value> = symmetric_binormal(area)
            .into_iter()
            .map(|(f, t)| json!({"fpr": six(f), "tpr": six(t)}))
            .collect();
        Ok(Answer {
            value: with_metadata(
                json!({
                    "auc": number(area),
                    "binormal_curve": curve,
                    "binormal_assumes": ASSUMES,
                }),
                &self.metadata,
            ),
            error_95: None,
            flags: super::simple::flags(&[(!(0.0..=1.0).contains(&noisy), "clamped")]),
        })
    }
}
