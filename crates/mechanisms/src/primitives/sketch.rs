//! Random Gaussian combinations of rows: the Johnson-Lindenstrauss sketch of second moments.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "big-integer and rational arithmetic with positive divisors"
)]

use dashu::integer::UBig;
use reticent_accounting::exp::exp_upper;
use reticent_accounting::{Event, Rational, rational_to_f64, sketch};
use reticent_noise::Correlated;

use super::payment::{Payment, calibrated};
use super::second_moments::Shape;
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId, misuse};
use crate::fold::Fold;
use crate::numeric::exact;

/// Most operations of a draw, (rows + columns)·columns²: about half a minute.
const MOST_WORK: usize = 1 << 25;

/// Rows of law N(0, Σ zzᵀ + w²·I) over a moments fold.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let (epsilon, delta) = (Rational::from(4u8), Rational::ONE / Rational::from(1_000_000u32));
/// let step = Sketch { name: "ages".to_owned(), epsilon, delta, rows: 400 };
/// let fold = Fold::Moments {
///     terms: 0..1,
///     response: None,
///     shorten: Shorten { intercept: 0.0, squared_norm: f64::INFINITY },
///     bits: 20,
/// };
/// // from [0, 1000] to [-1/2, 1/2]
/// let scaled = Expr::Column(0).mul(Expr::Constant(0.001)).add(Expr::Constant(-0.5));
/// let ages = (0..1000).map(f64::from).collect();
/// let sketch = buy_terms(Some(fold), vec![scaled], vec![ages], step.event(&context()), |desk, fold| {
///     desk.sketch(fold, &step)
/// });
/// // the sum of z^2, for z even on [-1/2, 1/2], within a few times the square root of 2/400
/// let mean = sketch.rows.iter().map(|z| z[0] * z[0]).sum::<f64>() / 400.0;
/// assert!((mean - sketch.added - 1000.0 / 12.0).abs() < 20.0);
/// # }
/// ```
///
/// # Claim
/// (ε, δ)-DP for the context's relation and unit. Calibrated for replace-one, add/remove costs no more; calibrated for add/remove, replace-one
/// follows from the general conversion.
/// # Assumptions
/// Those of [`Fold::Moments`]: one z per record that depends on that record alone, on the grid 2^−bits, ‖z‖² ≤ Q, and the fold is S = Σ zzᵀ, exactly; at most k
/// records per unit. The number of rows r, ε, δ, the grid are public.
/// # Sensitivity
/// Appending w·I to the data makes every singular value at least w without a look at them: Σ = S + w²I ≥ w²I. One record changes Σ by zzᵀ, in units of Σ by at most
/// q = Q/w²; see [`sketch`].
/// # Noise
/// None is added: r independent rows are drawn from N(0, Σ), whose law differs between neighbours by at most (ε, δ), exactly as [`sketch`] states, for w² = Q·[`sketch::added`]. An intercept
/// coordinate of 0 is the same for every record and is left out.
/// # Composition
/// One joint draw. A unit of k records: k changes in turn at (ε/k, δ′), δ′ = δ/(k·e^(ε−ε/k)), cost ε and δ′·Σ_{i<k} e^(iε/k) ≤ δ. Under replace-one a unit that loses a record is covered, since removing costs no more
/// than replacing.
/// # Arithmetic
/// In units of 4^−bits S is integers and w² is rounded up to one. The rows are correctly rounded to the grid 2^−bits ([`Correlated`]): post-processing of the real rows, decided on intervals
/// that are refined until they agree, so no floating-point number comes between S and what leaves. Which bits are needed, and so the time, can depend on S.
/// # Checked by
/// `primitives::sketch::tests::{what_is_added_follows_the_curve, impossible_sketches_are_refused}`,
/// `sketch::{losses_are_paid_for, worst_pairs_reach_the_claim, weaker_is_flagged, units_of_several_records, released_rows_have_the_law}`
/// # References
/// Blocki, Blum, Datta, Sheffet 2012.
#[derive(Clone, Debug, PartialEq)]
pub struct Sketch {
    /// Name of the step in receipts.
    pub name: String,
    /// ε for the context's relation.
    pub epsilon: Rational,
    /// δ for the context's relation.
    pub delta: Rational,
    /// r, even.
    pub rows: u32,
}

/// A released sketch.
#[derive(Clone, Debug, PartialEq)]
pub struct NoisySketch {
    /// The rows, on the scale of z; without the intercept if that is 0.
    pub rows: Vec<Vec<f64>>,
    /// w², on the scale of z zᵀ.
    pub added: f64,
    /// The multiple of which coordinates are.
    pub grid: f64,
}

impl Sketch {
    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        Payment::Approximate {
            epsilon: self.epsilon.clone(),
            delta: self.delta.clone(),
        }
        .event(format!("{}: Gaussian rows", self.name), context, calibrated)
    }

    /// Columns of the rows, and w² in units of 4^−bits. Public inputs only.
    pub fn added(&self, fold: &Fold, context: &Context) -> Result<(usize, UBig), DeskError> {
        let shape = Shape::of(fold)?;
        let columns = shape.dimension - usize::from(no_intercept(fold));
        let rows = usize::try_from(self.rows).unwrap_or(usize::MAX);
        let work = rows
            .saturating_add(columns)
            .saturating_mul(columns * columns);
        if work > MOST_WORK {
            return Err(misuse(format!(
                "{}: {rows} rows of {columns} columns take too long to draw; ask for fewer rows or columns",
                self.name
            )));
        }
        let epsilon = context.per_record(&self.epsilon);
        let records = Rational::from(context.rows_per_unit.max(1));
        let share = &self.delta / (records * exp_upper(&(&self.epsilon - &epsilon))?);
        let ratio = sketch::added(&epsilon, &share, self.rows, context.relation)?;
        let units = Rational::from(UBig::ONE << (shape.bits as usize).saturating_mul(2));
        let added = (ratio * shape.squared_norm * units).ceil();
        Ok((columns, UBig::try_from(added).unwrap_or(UBig::ONE)))
    }
}

/// Whether the intercept coordinate is 0 in every record.
fn no_intercept(fold: &Fold) -> bool {
    matches!(fold, Fold::Moments { shorten, .. } if exact(shorten.intercept).is_some_and(|g| g.is_zero()))
}

impl Desk<'_> {
    /// Buys the sketch of a moments fold.
    pub fn sketch(&mut self, fold: FoldId, step: &Sketch) -> Result<NoisySketch, DeskError> {
        let (fold, state) = self.state(fold)?;
        let (columns, added) = step.added(&fold, self.context)?;
        let shape = Shape::of(&fold)?;
        self.charge(&step.event(self.context))?;
        // without the intercept the triangle lacks its first row
        let skipped = if no_intercept(&fold) {
            shape.dimension
        } else {
            0
        };
        let law = Correlated {
            rows: usize::try_from(step.rows).unwrap_or(0),
            dimension: columns,
            moments: state.0.into_iter().skip(skipped).collect(),
            added,
        };
        let drawn = self.noise.rows(&law);
        let grid = libm::ldexp(1.0, i32::try_from(shape.bits).unwrap_or(0).saturating_neg());
        let sketch = NoisySketch {
            #[allow(
                clippy::cast_precision_loss,
                reason = "rounding of an already noisy value"
            )]
            rows: drawn
                .chunks(columns.max(1))
                .map(|row| row.iter().map(|z| *z as f64 * grid).collect())
                .collect(),
            added: rational_to_f64(&Rational::from(law.added)) * grid * grid,
            grid,
        };
        self.record_as(
            &format!("{}: rows", step.name),
            "Gaussian rows, added to the diagonal of their covariance",
            sketch.added,
        );
        Ok(sketch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::Shorten;
    use reticent_accounting::{Relation, parse_decimal};

    fn fold(d: usize, g: f64, squared_norm: f64, bits: u32) -> Fold {
        Fold::Moments {
            terms: 0..d,
            response: None,
            shorten: Shorten {
                intercept: g,
                squared_norm,
            },
            bits,
        }
    }

    fn step(epsilon: &str, delta: &str, rows: u32) -> Sketch {
        Sketch {
            name: "s".to_owned(),
            epsilon: parse_decimal(epsilon).unwrap(),
            delta: parse_decimal(delta).unwrap(),
            rows,
        }
    }

    #[test]
    fn what_is_added_follows_the_curve() {
        for relation in [Relation::AddRemove, Relation::ReplaceOne] {
            let context = Context::records(relation);
            for (g, norm, q, columns) in [
                (0.0, f64::INFINITY, 0.75, 3),
                (0.5, f64::INFINITY, 1.0, 4),
                (0.0, 0.25, 0.25, 3),
            ] {
                let step = step("0.8", "1e-6", 60);
                let (found, added) = step.added(&fold(3, g, norm, 20), &context).unwrap();
                assert_eq!(found, columns);
                let added = Rational::from(added) / Rational::from(UBig::ONE << 40);
                let x = Rational::try_from(q).unwrap();
                let at = |w: &Rational| {
                    sketch::delta_upper(&(&x / w), &step.epsilon, step.rows, relation)
                };
                assert!(at(&added) <= step.delta);
                assert!(at(&(added * parse_decimal("0.99999").unwrap())) > step.delta);
            }
        }
        // k records: k changes at a k-th of ε, and δ shared so that the chain of them stays within δ
        let mut context = Context::records(Relation::AddRemove);
        context.rows_per_unit = 3;
        let (_, three) = step("0.9", "1e-6", 60)
            .added(&fold(3, 0.0, f64::INFINITY, 20), &context)
            .unwrap();
        context.rows_per_unit = 1;
        let shared = 1e-6 / (3.0 * 0.6f64.exp());
        let (_, one) = step("0.3", &format!("{shared:e}"), 60)
            .added(&fold(3, 0.0, f64::INFINITY, 20), &context)
            .unwrap();
        let ratio = three.to_f64().value() / one.to_f64().value();
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
    }

    #[test]
    fn impossible_sketches_are_refused() {
        let context = Context::records(Relation::AddRemove);
        let open = f64::INFINITY;
        for (step, fold, word) in [
            (step("0", "1e-6", 2), fold(1, 0.0, open, 20), "epsilon"),
            (step("1", "0", 2), fold(1, 0.0, open, 20), "delta"),
            (step("1", "1e-6", 7), fold(1, 0.0, open, 20), "even"),
            (step("1", "1e-6", 2), fold(4000, 0.0, open, 20), "too long"),
            (
                step("1", "1e-6", 2000),
                fold(200, 0.0, open, 20),
                "too long",
            ),
            (step("1", "1e-6", 2), fold(1, 0.7, open, 20), "0..=0.5"),
        ] {
            let text = step.added(&fold, &context).unwrap_err().to_string();
            assert!(text.contains(word), "{text}");
        }
    }
}
