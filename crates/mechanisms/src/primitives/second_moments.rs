//! Second moments Σ zzᵀ in Frobenius-isometric form.

use dashu::integer::UBig;
use reticent_accounting::exp::sqrt_upper;
use reticent_accounting::{Event, Rational, Relation};
use reticent_laws::Law;
use reticent_noise::{Lattice, Scale};

use super::payment::{Payment, calibrated};
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId, misuse};
use crate::fold::Fold;
use crate::moments::MAX_BITS;
use crate::numeric::{MAX_DIMENSION, exact};

/// Noisy second moments Σ zzᵀ of z = f·(g, x, y).
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let payment = Payment::Pure { epsilon: Rational::from(40u8) };
/// let step = SecondMoments { name: "ages".to_owned(), payment };
/// let fold = Fold::Moments {
///     terms: 0..1,
///     response: None,
///     shorten: Shorten { intercept: 0.5, squared_norm: 0.5 },
///     bits: 20,
/// };
/// // from [0, 1000] to [-1/2, 1/2]
/// let scaled = Expr::Column(0).mul(Expr::Constant(0.001)).add(Expr::Constant(-0.5));
/// let ages = (0..1000).map(f64::from).collect();
/// let noisy = buy_terms(Some(fold), vec![scaled], vec![ages], step.event(&context()), |desk, fold| {
///     desk.second_moments(fold, &step)
/// });
/// // the sums of 1/4, of z/2 and of z^2, for z even on [-1/2, 1/2]
/// assert!((noisy.entries[0] - 250.0).abs() < 5.0);
/// assert!(noisy.entries[1].abs() < 5.0);
/// assert!((noisy.entries[2] - 1000.0 / 12.0).abs() < 5.0);
/// # }
/// ```
///
/// # Claim
/// [`Payment::Approximate`]: (ε, δ)-DP; [`Payment::Concentrated`]: ρ-zCDP; [`Payment::Pure`]: ε-DP; each for
/// the context's relation and unit. Calibrated for replace-one, add/remove costs no more; calibrated for
/// add/remove, replace-one follows from the general conversion.
/// # Assumptions
/// Those of [`Fold::Moments`]: one z per record, on the grid, |z_i| ≤ ½, ‖z‖² ≤ Q; at most k records per unit.
/// Q is the smaller of the declared norm and g² + d/4 (+ ¼ with a response).
/// # Sensitivity
/// Frobenius norm (diagonal once, off-diagonal entries twice: the L2 norm of the isometric vector
/// (M_ii, √2·M_ij)). Add/remove: ‖zzᵀ‖ = ‖z‖² ≤ Q. Replace-one: ‖zzᵀ − z′z′ᵀ‖² = ‖z‖⁴ + ‖z′‖⁴ − 2(z·z′)² ≤ 2Q²,
/// so √2·Q. (For q < g² the sharper 2√2·g√q holds only when long rows are projected in x alone; here the
/// intercept shrinks with the row and z·z′ = 0 stays possible.)
/// L1 on the triangle: Σ_{i≤j}|z_i z_j| = ((Σ|z_i|)² + ‖z‖²)/2 ≤ (min(p·Q, S²) + Q)/2 with S = g + (p−1)/2 the sum of
/// the largest |z_i| and p coordinates (Cauchy-Schwarz); replace-one twice that.
/// A unit of k records: k times (triangle inequality along k single changes).
/// # Noise
/// Gaussian cases: deviation s on the diagonal, s/√2 off it, which is deviation s on every coordinate of the
/// isometric vector. Approximate: s = σ(ε, δ, Δ), the analytic curve. Concentrated: s = Δ/√(2ρ): the coordinates
/// are independent, so ρ adds up to Σ Δ_ii²/(2s²) + Σ Δ_ij²/(2·s²/2) = ‖ΔM‖²_F/(2s²) ≤ ρ.
/// Pure: discrete Laplace of scale Δ₁/ε on each entry of the triangle.
/// # Composition
/// One joint draw; the entries are not priced one by one.
/// # Arithmetic
/// Sums are exact integers in units of 4^−bits. Approximate: adding a correctly rounded continuous Gaussian to
/// an integer is rounding the ideal output, hence post-processing of it; the analytic curve applies. A
/// discrete Gaussian satisfies the zCDP formula exactly for integer shifts and is used for ρ only.
/// Scales are rounded up from rational upper bounds; more noise on any coordinate never costs privacy
/// (it can be added afterwards; in the zCDP sum it lowers a term).
/// # Checked by
/// `second_moments::tests::{frobenius_bounds_hold_at_vertices, triangle_bound_holds_at_vertices, scales_follow_the_formulas, noise_off_gives_the_exact_sums}`
/// # References
/// `decisions.md` §2.7, §5.5, §6.3, §6.4; `privacy.md` §14; Balle and Wang 2018; Canonne, Kamath, Steinke 2020.
#[derive(Clone, Debug, PartialEq)]
pub struct SecondMoments {
    /// Name of the step in receipts.
    pub name: String,
    /// How it is paid.
    pub payment: Payment,
}

/// The released triangle.
#[derive(Clone, Debug, PartialEq)]
pub struct NoisyMoments {
    /// Dimension of z.
    pub dimension: usize,
    /// Upper triangle, row-major, diagonal included, on the scale of z zᵀ.
    pub entries: Vec<f64>,
    /// Standard deviation of the noise on a diagonal entry.
    pub sd_diagonal: f64,
    /// Standard deviation of the noise on an off-diagonal entry.
    pub sd_off_diagonal: f64,
}

impl SecondMoments {
    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        let mechanism = format!("{}: second moments", self.name);
        self.payment.event(mechanism, context, calibrated)
    }
}

/// The public facts about z that sensitivities are computed from.
pub(super) struct Shape {
    /// Coordinates of z.
    pub(super) dimension: usize,
    pub(super) bits: u32,
    /// Upper bound on ‖z‖².
    pub(super) squared_norm: Rational,
    /// Upper bound on Σ|z_i|.
    sum: Rational,
}

#[allow(
    clippy::arithmetic_side_effects,
    reason = "rational arithmetic with positive constant divisors"
)]
impl Shape {
    pub(super) fn of(fold: &Fold) -> Result<Self, DeskError> {
        let Fold::Moments {
            terms,
            response,
            shorten,
            bits,
        } = fold
        else {
            return Err(misuse("second moments need a moments fold".to_owned()));
        };
        let g = exact(shorten.intercept)
            .filter(|_| (0.0..=0.5).contains(&shorten.intercept))
            .ok_or_else(|| {
                misuse(format!(
                    "the intercept coordinate {} must lie in 0..=0.5: rescale the rows",
                    shorten.intercept
                ))
            })?;
        if *bits > MAX_BITS {
            return Err(misuse(format!(
                "a grid of 2^-{bits} is too fine: use at most {MAX_BITS} bits"
            )));
        }
        if terms.len() > MAX_DIMENSION {
            return Err(misuse(format!(
                "{} columns are too many: at most {MAX_DIMENSION}",
                terms.len()
            )));
        }
        let others = terms.len().saturating_add(usize::from(response.is_some()));
        let whole = &g * &g + Rational::from(others) / Rational::from(4u8);
        let declared = shorten.squared_norm;
        let squared_norm = if declared == f64::INFINITY {
            whole
        } else {
            exact(declared)
                .filter(|_| declared >= 1e-100)
                .ok_or_else(|| misuse(format!("the squared norm {declared} must be positive")))?
                .min(whole)
        };
        Ok(Self {
            dimension: others.saturating_add(1),
            bits: *bits,
            squared_norm,
            sum: g + Rational::from(others) / Rational::from(2u8),
        })
    }

    /// L2 sensitivity of the isometric vector for one record.
    pub(super) fn frobenius(&self, relation: Relation) -> Rational {
        match relation {
            Relation::AddRemove => self.squared_norm.clone(),
            Relation::ReplaceOne => sqrt_upper(&Rational::from(2u8)) * &self.squared_norm,
        }
    }

    /// L1 sensitivity of the triangle for one record.
    fn triangle(&self, relation: Relation) -> Rational {
        let by_norm = Rational::from(self.dimension) * &self.squared_norm;
        let one = (by_norm.min(&self.sum * &self.sum) + &self.squared_norm) / Rational::from(2u8);
        match relation {
            Relation::AddRemove => one,
            Relation::ReplaceOne => one * Rational::from(2u8),
        }
    }
}

impl SecondMoments {
    /// The noise on diagonal and off-diagonal entries, in units of 4^−bits.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "rational arithmetic; divisors are checked to be positive"
    )]
    pub fn lattices(
        &self,
        fold: &Fold,
        context: &Context,
    ) -> Result<(Lattice, Lattice), DeskError> {
        let shape = Shape::of(fold)?;
        let records = Rational::from(context.rows_per_unit.max(1));
        let units = Rational::from(UBig::ONE << (shape.bits as usize).saturating_mul(2));
        let frobenius = shape.frobenius(context.relation) * &records;
        let triangle = shape.triangle(context.relation) * records;
        let one = Rational::ONE;
        let (scale, law) =
            self.payment
                .noise(&self.name, || Ok(triangle), || Ok((frobenius, one)))?;
        let diagonal = scale * units;
        let off = match self.payment {
            Payment::Pure { .. } => diagonal.clone(),
            _ => &diagonal * sqrt_upper(&(Rational::ONE / Rational::from(2u8))),
        };
        let lattice = |scale| Ok::<_, DeskError>(law(Scale::at_least(&scale)?));
        Ok((lattice(diagonal)?, lattice(off)?))
    }
}

impl Desk<'_> {
    /// Buys the noisy second moments of a moments fold.
    pub fn second_moments(
        &mut self,
        fold: FoldId,
        step: &SecondMoments,
    ) -> Result<NoisyMoments, DeskError> {
        let (fold, state) = self.state(fold)?;
        let (diagonal, off) = step.lattices(&fold, self.context)?;
        let shape = Shape::of(&fold)?;
        self.charge(&step.event(self.context))?;
        let unit = libm::ldexp(
            1.0,
            i32::try_from(shape.bits).unwrap_or(0).saturating_mul(-2),
        );
        let mut entries = Vec::with_capacity(state.0.len());
        let mut sums = state.0.iter();
        for i in 0..shape.dimension {
            for j in i..shape.dimension {
                let lattice = if i == j { &diagonal } else { &off };
                let sum = sums.next().copied().unwrap_or(0);
                let noisy = sum.saturating_add(self.noise.lattice(lattice));
                #[allow(
                    clippy::cast_precision_loss,
                    reason = "rounding of an already noisy value"
                )]
                entries.push(noisy as f64 * unit);
            }
        }
        self.record(&format!("{}: diagonal", step.name), &diagonal, unit);
        self.record(&format!("{}: off-diagonal", step.name), &off, unit);
        Ok(NoisyMoments {
            dimension: shape.dimension,
            entries,
            sd_diagonal: diagonal.std_dev() * unit,
            sd_off_diagonal: off.std_dev() * unit,
        })
    }
}

#[cfg(test)]
#[allow(
    clippy::approx_constant,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    clippy::manual_midpoint,
    clippy::needless_pass_by_value,
    reason = "tests compare exact values and count small things"
)]
mod tests {
    use super::*;
    use crate::fold::Shorten;
    use reticent_accounting::{parse_decimal, rational_to_f64};

    fn fold(d: usize, response: bool, g: f64, q: f64, bits: u32) -> Fold {
        Fold::Moments {
            terms: 0..d,
            response: response.then_some(d),
            shorten: Shorten {
                intercept: g,
                squared_norm: q,
            },
            bits,
        }
    }

    fn vertices(d: usize) -> Vec<Vec<f64>> {
        (0..1u32 << d)
            .map(|mask| {
                std::iter::once(0.5)
                    .chain((0..d).map(|i| if mask >> i & 1 == 1 { 0.5 } else { -0.5 }))
                    .collect()
            })
            .collect()
    }

    /// ‖a aᵀ − b bᵀ‖_F, or of a aᵀ alone.
    fn distance(a: &[f64], b: Option<&[f64]>) -> f64 {
        let mut sum = 0.0;
        for i in 0..a.len() {
            for j in 0..a.len() {
                let other = b.map_or(0.0, |b| b[i] * b[j]);
                sum += (a[i] * a[j] - other).powi(2);
            }
        }
        sum.sqrt()
    }

    #[test]
    fn frobenius_bounds_hold_at_vertices() {
        let published = [0.7071, 1.0, 1.4142, 1.7321, 2.1213, 2.4495];
        for d in 1..=6usize {
            let shape = Shape::of(&fold(d, false, 0.5, f64::INFINITY, 24)).unwrap();
            let all = vertices(d);
            let single = all.iter().map(|a| distance(a, None)).fold(0.0, f64::max);
            let pair = all
                .iter()
                .flat_map(|a| all.iter().map(move |b| distance(a, Some(b))))
                .fold(0.0, f64::max);
            let bound = |r| rational_to_f64(&shape.frobenius(r));
            // add/remove: exactly (d + 1)/4; replace-one: within 2^½·(d + 1)/4
            assert!((single - (d as f64 + 1.0) / 4.0).abs() < 1e-12);
            assert!((bound(Relation::AddRemove) - single).abs() < 1e-12);
            assert!((pair - published[d - 1]).abs() < 1e-4, "{d} {pair}");
            assert!(
                bound(Relation::ReplaceOne) >= pair && bound(Relation::ReplaceOne) < 1.1 * pair
            );
        }
        // q < g²: the sharper published bound is for rows projected in x alone; ours covers both.
        let shape = Shape::of(&fold(1, false, 0.5, 0.45, 24)).unwrap();
        let bound = rational_to_f64(&shape.frobenius(Relation::ReplaceOne));
        assert!((bound - 0.636_396_1).abs() < 1e-6 && bound > 0.632_455_5);
    }

    #[test]
    fn triangle_bound_holds_at_vertices() {
        for d in 1..=6usize {
            let shape = Shape::of(&fold(d, false, 0.5, f64::INFINITY, 24)).unwrap();
            let largest = vertices(d)
                .iter()
                .map(|z| {
                    (0..z.len())
                        .flat_map(|i| (i..z.len()).map(move |j| (i, j)))
                        .map(|(i, j)| (z[i] * z[j]).abs())
                        .sum::<f64>()
                })
                .fold(0.0, f64::max);
            let bound = rational_to_f64(&shape.triangle(Relation::AddRemove));
            assert!((bound - largest).abs() < 1e-12, "{d}");
            assert!(
                (rational_to_f64(&shape.triangle(Relation::ReplaceOne)) - 2.0 * bound).abs()
                    < 1e-12
            );
            if d == 5 {
                assert!((bound - 5.25).abs() < 1e-12);
            }
        }
        // Shortened rows: (min(p·Q, S²) + Q)/2 with p = 6, Q = ½.
        let shape = Shape::of(&fold(5, false, 0.5, 0.5, 24)).unwrap();
        assert!((rational_to_f64(&shape.triangle(Relation::AddRemove)) - 1.75).abs() < 1e-12);
    }

    #[test]
    fn scales_follow_the_formulas() {
        let decimal = |s: &str| parse_decimal(s).unwrap();
        let step = |payment| SecondMoments {
            name: "m".to_owned(),
            payment,
        };
        for (relation, rows, factor) in [
            (Relation::AddRemove, 1u32, 1.0),
            (Relation::ReplaceOne, 1, std::f64::consts::SQRT_2),
            (Relation::AddRemove, 3, 3.0),
        ] {
            let mut context = Context::records(relation);
            context.rows_per_unit = rows;
            let fold = fold(3, true, 0.25, 0.75, 20);
            let unit = libm::ldexp(1.0, 40);
            let check = |payment, s: f64, off: f64| {
                let (a, b) = step(payment).lattices(&fold, &context).unwrap();
                for (lattice, want) in [(a, s), (b, off)] {
                    let got = lattice.scale().to_f64() / unit;
                    // rounded up, by little
                    assert!(
                        got >= want * (1.0 - 1e-12) && got <= want * (1.0 + 1e-6),
                        "{got} {want}"
                    );
                }
            };
            let s = 4.224_679 * 0.75 * factor;
            let (epsilon, delta) = (decimal("1"), decimal("1e-6"));
            let (a, b) = step(Payment::Approximate {
                epsilon: epsilon.clone(),
                delta,
            })
            .lattices(&fold, &context)
            .unwrap();
            assert!(matches!(a, Lattice::RoundedGaussian(_)));
            assert!((a.scale().to_f64() / unit / s - 1.0).abs() < 1e-6);
            assert!((b.scale().to_f64() / unit * std::f64::consts::SQRT_2 / s - 1.0).abs() < 1e-6);
            let s = 0.75 * factor / 0.5;
            check(
                Payment::Concentrated {
                    rho: decimal("0.125"),
                },
                s,
                s * std::f64::consts::FRAC_1_SQRT_2,
            );
            // S = ¼ + 4/2, S² > p·Q = 3.75
            let l1 = (3.75 + 0.75) / 2.0
                * if factor == std::f64::consts::SQRT_2 {
                    2.0
                } else {
                    factor
                };
            check(Payment::Pure { epsilon }, l1, l1);
        }
        for (bad, word) in [
            (fold(3, true, 0.6, 1.0, 24), "0..=0.5"),
            (fold(3, true, f64::NAN, 1.0, 24), "0..=0.5"),
            (fold(3, true, 0.5, 1.0, 25), "24"),
            (fold(3, true, 0.5, 0.0, 24), "positive"),
            (fold(3, true, 0.5, f64::NAN, 24), "positive"),
            (fold(5000, true, 0.5, 1.0, 24), "4096"),
            (
                Fold::Grid {
                    axes: vec![],
                    sum: None,
                },
                "moments fold",
            ),
        ] {
            let pure = step(Payment::Pure {
                epsilon: decimal("1"),
            });
            let text = pure
                .lattices(&bad, &Context::records(Relation::AddRemove))
                .unwrap_err()
                .to_string();
            assert!(text.contains(word), "{text}");
        }
        let none = step(Payment::Pure {
            epsilon: Rational::ZERO,
        });
        assert!(
            none.lattices(
                &fold(1, false, 0.5, 1.0, 24),
                &Context::records(Relation::AddRemove)
            )
            .is_err()
        );
    }
}
