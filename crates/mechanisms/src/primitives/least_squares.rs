//! Output perturbation for linear regression: a certified least-squares fit within a ball, then noise.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_precision_loss,
    reason = "big-integer and rational arithmetic with positive divisors; doubles only propose"
)]

use dashu::integer::{IBig, UBig};
use reticent_accounting::exp::sqrt_upper;
use reticent_accounting::{Event, Rational, rational_to_f64};
use reticent_noise::GammaNorm;
use reticent_solver::within_ball;

use super::payment::{budget, calibrated};
use super::second_moments::Shape;
use crate::context::Context;
use crate::desk::{Desk, DeskError, FoldId, misuse};
use crate::fold::Fold;
use crate::numeric::certificate::value;
use crate::numeric::exact;
use crate::numeric::rows::WEIGHT_BITS;

/// Fractional bits of coefficients while they are sought.
const FINE: usize = 192;
/// Rounding of one step of the search, in units of 2^−192: above 2√p + 1 for p ≤ 4097.
const ROUNDING: u32 = 130;
/// Coordinates of z that the exact search is meant for.
const MOST_COLUMNS: usize = 1002;

/// Ridge regression within a ball by output perturbation, over a moments fold with a response.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/desk.rs"));
/// # fn main() {
/// let step = LeastSquares {
///     name: "income".to_owned(),
///     epsilon: Rational::from(40u8),
///     penalty: Rational::from(20u8),
///     largest: Rational::ONE,
/// };
/// let fold = Fold::Moments {
///     terms: 0..1,
///     response: Some(1),
///     shorten: Shorten { intercept: 0.5, squared_norm: f64::INFINITY },
///     bits: 20,
/// };
/// // from [0, 1000] to [-1/2, 1/2]
/// let scaled = |c| Expr::Column(c).mul(Expr::Constant(0.001)).add(Expr::Constant(-0.5));
/// let ages: Vec<f64> = (0..1000).map(f64::from).collect();
/// let income = ages.iter().map(|a| 250.0 + 0.5 * a).collect();
/// let w = buy_terms(Some(fold), vec![scaled(0), scaled(1)], vec![ages, income], step.event(&context()), |desk, fold| {
///     desk.least_squares(fold, &step)
/// });
/// // half of the age; the penalty takes a fifth of it: 83/(83 + 20)
/// assert!((w[1] - 0.4).abs() < 0.1, "{w:?}");
/// # }
/// ```
///
/// # Claim
/// ε-DP for the context's relation and unit. Calibrated for add/remove, replace-one costs at most 2ε; calibrated for replace-one,
/// add/remove costs at most ε.
/// # Assumptions
/// Those of [`SecondMoments`](super::SecondMoments) on the fold: every record is one z = (x̃, y) that depends on that record alone, on the
/// grid 2^−bits, ‖z‖² ≤ Q, and the fold is Σ zzᵀ, exactly. Λ, W, ε, the grid are public. Fewer than 2^60 records, at most 1001 coefficients.
/// # Sensitivity
/// w_D minimises J_D(w) = ½Σ(y − w·x̃)² + (Λ/2)‖w‖² over the ball ‖w‖ ≤ W. One record's gradient x̃(x̃·w − y) is there at most
/// ‖x̃‖(‖x̃‖W + |y|) ≤ G = Q(W + √(1 + W²))/2, the largest value under ‖x̃‖² + y² ≤ Q. (Without the ball it has no bound.) With u = w_D, v = w_D′
/// the conditions of a minimum on a convex set, ∇J_D(u)·(v − u) ≥ 0 and ∇J_D′(v)·(u − v) ≥ 0, and strong convexity give
/// Λ‖u − v‖² ≤ (∇J_D(u) − ∇J_D(v))·(u − v) ≤ (∇J_D′(v) − ∇J_D(v))·(u − v): ‖u − v‖ ≤ G/Λ under add/remove, 2G/Λ under replace-one.
/// What the search returns lies within γ/Λ of w_D, γ = 10⁻⁶G, and cutting it to multiples of 2^−78 adds less than 65·2^−78. So it moves by at most
/// Δ = (G + 2γ)/Λ + 130·2^−78 or (2G + 2γ)/Λ + 130·2^−78.
/// # Noise
/// η of density ∝ e^(−‖η‖ε/Δ): the norm is Gamma(p, Δ/ε), p the number of coefficients. The density at any point changes by at most
/// e^(‖Δw‖ε/Δ) ≤ e^ε.
/// # Composition
/// One draw. A unit of k records: k changes at ε/k each. A replacement is two add/remove changes; with Δ for replace-one an add/remove change
/// moves w by less than Δ.
/// # Arithmetic
/// In units of 4^−bits the moments are integers M, v, and Λ is rounded down to one (at least 1), the Λ of this proof. Coefficients
/// are integers in units h = 2^−192. *Step.* F(w) = P(w − (Mw + Λw − v)/L), L = trace M + Λ, P the projection onto the ball. M is a sum of squares, so the eigenvalues
/// of I − (M + Λ)/L lie in [0, 1 − Λ/L]; P does not increase distances; so the ideal F brings any w closer to its fixed point w_D by the
/// factor 1 − Λ/L. Quotients are cut toward zero (less than √p·h), the factor W/‖u‖ of P is W over the root rounded up (at most h) and products are cut toward zero (√p·h):
/// the computed step is within e = 130h ≥ (2√p + 1)h of the ideal one, and within the ball. *Certificate.* If ‖w − F(w)‖ + e ≤ γ/L, as
/// compared in integers, then ‖w − w_D‖ ≤ (L/Λ)·γ/L = γ/Λ, and F(w), which is returned, is as close. *End.* After 1 + 128⌈L/Λ⌉ steps from anywhere the distance is at most
/// 2W·e^−128 + eL/Λ, which is below γ/Λ for the sizes that are accepted (Q ≥ 2^−40, 2^−40 ≤ W ≤ 2^40, Λ ≤ 2^60, L ≤ 2^72): then the point is returned without a
/// certificate. The start is proposed by `reticent-solver`; of it nothing is relied on but that it returns. What leaves is the point plus noise rounded
/// to 2^−78, the rounding of the ideal sum.
/// # Checked by
/// `primitives::least_squares::tests::{steps_alone_reach_the_fit, the_ball_holds, proposals_are_not_trusted}`,
/// `least_squares::{distances_are_paid_for, distances_reach_the_bound, weaker_noise_is_flagged, without_the_ball_is_flagged, released_noise_has_the_law}`
/// # References
/// `privacy.md` §13.4; Wu, Fredrikson, Wu, Jha, Naughton 2015; Chaudhuri, Monteleoni, Sarwate 2011.
#[derive(Clone, Debug, PartialEq)]
pub struct LeastSquares {
    /// Name of the step in receipts.
    pub name: String,
    /// ε of the step for the context's relation.
    pub epsilon: Rational,
    /// Λ, the penalty (Λ/2)·‖w‖² on half the sum of squares.
    pub penalty: Rational,
    /// W, the largest norm of the coefficients (of the fold's coordinates, the intercept's among them).
    pub largest: Rational,
}

/// 2^n.
fn power(n: usize) -> Rational {
    Rational::from(UBig::ONE << n)
}

impl LeastSquares {
    /// The price of the step.
    pub fn event(&self, context: &Context) -> Event {
        Event::Pure {
            mechanism: format!("{}: output perturbation, least squares", self.name),
            loss: calibrated(&self.epsilon, context),
        }
    }

    /// G and Λ in units of 4^−bits, or why the step cannot be bought.
    fn constants(&self, fold: &Fold) -> Result<(Rational, UBig, Shape), DeskError> {
        let shape = Shape::of(fold)?;
        let refuse = |what: &str| Err(misuse(format!("{}: {what}", self.name)));
        if !matches!(fold, Fold::Moments { response, .. } if response.is_some()) {
            return refuse("least squares need a response");
        }
        if shape.dimension > MOST_COLUMNS {
            return refuse("there are too many columns");
        }
        budget(&self.name, &self.epsilon)?;
        let least = Rational::ONE / power(40);
        if self.largest < least || self.largest > power(40) || shape.squared_norm < least {
            return refuse("the norms of rows or coefficients are out of range");
        }
        let units = power((shape.bits as usize).saturating_mul(2));
        let penalty = (&self.penalty * units).floor();
        let penalty = UBig::try_from(penalty).unwrap_or(UBig::ZERO);
        if penalty == UBig::ZERO || self.penalty > power(60) {
            return refuse("the penalty is out of range");
        }
        let root = sqrt_upper(&(Rational::ONE + &self.largest * &self.largest));
        let gradient = &shape.squared_norm * (&self.largest + root) / Rational::from(2u8);
        Ok((gradient, penalty, shape))
    }

    /// The noise on the coefficients, or why the step cannot be bought. Public inputs only.
    pub fn vector(&self, fold: &Fold, context: &Context) -> Result<GammaNorm, DeskError> {
        let (gradient, penalty, shape) = self.constants(fold)?;
        let units = power((shape.bits as usize).saturating_mul(2));
        let two = Rational::from(2u8);
        let errors = &two * tolerance(&gradient);
        let moved = (&gradient * Rational::from(context.touches()) + errors) * units
            / Rational::from(penalty)
            + Rational::from(130u8) / power(WEIGHT_BITS as usize);
        let law = GammaNorm {
            dimension: shape.dimension.saturating_sub(1),
            scale: moved / context.per_record(&self.epsilon),
            bits: WEIGHT_BITS,
        };
        if Rational::from(law.dimension) * &law.scale > power(37) {
            let text = "epsilon or the penalty is too small for this step; ask for more";
            return Err(misuse(format!("{}: {text}", self.name)));
        }
        Ok(law)
    }
}

/// γ for a gradient bound G.
fn tolerance(gradient: &Rational) -> Rational {
    gradient / Rational::from(1_000_000u32)
}

/// What is minimised, in units of 4^−bits.
struct Problem {
    /// Row by row.
    matrix: Vec<Vec<IBig>>,
    cross: Vec<IBig>,
    penalty: IBig,
    /// Above all eigenvalues of matrix + penalty.
    steepest: IBig,
    /// W in units of 2^−192, rounded down.
    radius: IBig,
    /// γ/L in units of 2^−192, less the rounding of a step.
    near: IBig,
}

impl Problem {
    /// From the upper triangle of Σ zzᵀ, the response last.
    fn new(
        triangle: &[i128],
        p: usize,
        penalty: UBig,
        largest: &Rational,
        near: &Rational,
    ) -> Self {
        let entry = |i: usize, j: usize| {
            let (i, j) = (i.min(j), i.max(j));
            // row i of the triangle of p + 1 columns begins at its diagonal
            let at = i * (2 * p + 1 - i) / 2 + j;
            IBig::from(triangle.get(at).copied().unwrap_or(0))
        };
        let penalty = IBig::from(penalty);
        let steepest = (0..p).fold(penalty.clone(), |sum, i| sum + entry(i, i));
        let whole = |x: Rational| x.floor();
        Self {
            matrix: (0..p)
                .map(|i| (0..p).map(|j| entry(i, j)).collect())
                .collect(),
            cross: (0..p).map(|i| entry(i, p)).collect(),
            radius: whole(largest * power(FINE)),
            near: whole(near * power(FINE) / Rational::from(steepest.clone()))
                - IBig::from(ROUNDING),
            penalty,
            steepest,
        }
    }

    /// One step of projected gradient descent.
    fn step(&self, w: &[IBig]) -> Vec<IBig> {
        let rows = w.iter().zip(&self.matrix).zip(&self.cross);
        let mut next: Vec<IBig> = rows
            .map(|((own, row), v)| {
                let product = row
                    .iter()
                    .zip(w)
                    .fold(IBig::ZERO, |sum, (m, w)| sum + m * w);
                let gradient = product + &self.penalty * own - (v << FINE);
                // division cuts toward zero
                (own * &self.steepest - gradient) / &self.steepest
            })
            .collect();
        let squares = square(&next);
        if squares > &self.radius * &self.radius {
            let length = root(&squares) + IBig::ONE;
            for w in &mut next {
                *w = &*w * &self.radius / &length;
            }
        }
        next
    }

    /// A point within γ/Λ of the minimiser, from any start.
    fn minimise(&self, start: Vec<IBig>) -> Vec<IBig> {
        let mut left = (&self.steepest / &self.penalty + IBig::ONE) * IBig::from(128u8) + IBig::ONE;
        let mut point = start;
        while left > IBig::ZERO {
            let next = self.step(&point);
            let moved: Vec<IBig> = next.iter().zip(&point).map(|(a, b)| a - b).collect();
            point = next;
            if self.near > IBig::ZERO && square(&moved) <= &self.near * &self.near {
                break;
            }
            left -= IBig::ONE;
        }
        point
    }

    /// Where to start.
    fn proposal(&self) -> Vec<IBig> {
        let near = |x: &IBig| x.to_f64().value();
        let mut matrix: Vec<f64> = self.matrix.iter().flatten().map(near).collect();
        let p = self.cross.len();
        for entry in matrix.iter_mut().step_by(p.saturating_add(1)) {
            *entry += near(&self.penalty);
        }
        let cross: Vec<f64> = self.cross.iter().map(near).collect();
        let radius = libm::ldexp(near(&(&self.radius >> 128)), -64);
        let mut found = within_ball(matrix, &cross, radius);
        found.resize(p, 0.0);
        let whole = |w: f64| exact(w).map_or(IBig::ZERO, |w| (w * power(FINE)).floor());
        found.into_iter().map(whole).collect()
    }
}

fn square(w: &[IBig]) -> IBig {
    w.iter().fold(IBig::ZERO, |sum, w| sum + w * w)
}

/// The integer below the square root of a number that is not negative.
fn root(x: &IBig) -> IBig {
    use dashu::base::SquareRoot;
    UBig::try_from(x.clone()).map_or(IBig::ZERO, |x| IBig::from(x.sqrt()))
}

impl Desk<'_> {
    /// Buys the coefficients of a moments fold with a response, the intercept's first.
    pub fn least_squares(
        &mut self,
        fold: FoldId,
        step: &LeastSquares,
    ) -> Result<Vec<f64>, DeskError> {
        let (fold, state) = self.state(fold)?;
        let law = step.vector(&fold, self.context)?;
        let (gradient, penalty, shape) = step.constants(&fold)?;
        self.charge(&step.event(self.context))?;
        let units = power((shape.bits as usize).saturating_mul(2));
        let near = tolerance(&gradient) * units;
        let problem = Problem::new(&state.0, law.dimension, penalty, &step.largest, &near);
        let found = problem.minimise(problem.proposal());
        let noise = self.noise.vector(&law);
        self.record_as(
            &format!("{}: coefficients", step.name),
            "uniform direction, Gamma norm, scale",
            rational_to_f64(&law.scale),
        );
        let coarse = IBig::ONE << (FINE - WEIGHT_BITS as usize);
        let noisy = found.iter().zip(&noise).map(|(w, n)| {
            let w = i128::try_from(w / &coarse).unwrap_or(0);
            value(w.saturating_add(*n))
        });
        Ok(noisy.collect())
    }
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    reason = "tests compare exact values and count small things"
)]
mod tests {
    use super::*;
    use reticent_laws::Seeded;
    use reticent_noise::Noise;

    /// Moments of `n` rows of `p` coordinates (the first ½) and a response, on the grid 2^−10.
    fn triangle(n: usize, p: usize, seed: u64, outcome: impl Fn(&[i128]) -> i128) -> Vec<i128> {
        let mut noise = Seeded::new(seed);
        let mut sums = vec![0; (p + 1) * (p + 2) / 2];
        for _ in 0..n {
            let mut z = vec![512];
            z.extend((1..p).map(|_| i128::from(noise.bits() % 1025) - 512));
            z.push(outcome(&z));
            let mut at = 0;
            for i in 0..=p {
                for j in i..=p {
                    sums[at] += z[i] * z[j];
                    at += 1;
                }
            }
        }
        sums
    }

    fn ratio(n: i64, d: u64) -> Rational {
        Rational::from(n) / Rational::from(d)
    }

    fn problem(sums: &[i128], p: usize, penalty: u64, largest: &Rational) -> Problem {
        // γ = 10⁻⁶ in units of 4^−10
        let near = ratio(1 << 20, 1_000_000);
        Problem::new(sums, p, UBig::from(penalty << 20), largest, &near)
    }

    fn floats(w: &[IBig]) -> Vec<f64> {
        let unit = power(FINE);
        w.iter()
            .map(|w| rational_to_f64(&(Rational::from(w.clone()) / &unit)))
            .collect()
    }

    fn distance(a: &[IBig], b: &[IBig]) -> f64 {
        let (a, b) = (floats(a), floats(b));
        a.iter()
            .zip(&b)
            .map(|(a, b)| (a - b).powi(2))
            .sum::<f64>()
            .sqrt()
    }

    /// From 0, from the proposal and from far outside the ball: within γ/Λ of the same point; inside the ball and on its surface.
    #[test]
    fn steps_alone_reach_the_fit() {
        for (n, p) in [(0, 2), (1, 3), (40, 3), (300, 6)] {
            let sums = triangle(n, p, n as u64, |z| (z[1] * 3 / 4 + 100).clamp(-512, 512));
            for (penalty, largest) in [(1, ratio(1, 1)), (1, ratio(1, 8)), (50, ratio(3, 1))] {
                let problem = problem(&sums, p, penalty, &largest);
                let zero = vec![IBig::ZERO; p];
                let found = problem.minimise(problem.proposal());
                let far = vec![IBig::ONE << (FINE + 70); p];
                for start in [zero, far] {
                    let slow = problem.minimise(start);
                    let off = distance(&slow, &found);
                    assert!(off <= 2e-6 / penalty as f64, "{n} {p} {penalty}: {off}");
                }
                assert!(square(&found) <= &problem.radius * &problem.radius);
            }
        }
    }

    /// y = 10 x: the fit is as long as the ball allows, and the gradient points outwards.
    #[test]
    fn the_ball_holds() {
        let sums = triangle(500, 3, 5, |z| (z[1] * 10).clamp(-512, 512));
        let problem = problem(&sums, 3, 1, &ratio(1, 2));
        let w = problem.minimise(problem.proposal());
        let floats = floats(&w);
        let length = floats.iter().map(|w| w * w).sum::<f64>().sqrt();
        assert!((length - 0.5).abs() < 1e-9, "{length}");
        let gradient: Vec<f64> = (0..3)
            .map(|i| {
                let row = &problem.matrix[i];
                let own: f64 = (0..3).map(|j| row[j].to_f64().value() * floats[j]).sum();
                own + problem.penalty.to_f64().value() * floats[i]
                    - problem.cross[i].to_f64().value()
            })
            .collect();
        let ratio = gradient[1] / floats[1];
        assert!(ratio < 0.0);
        let off = (0..3)
            .map(|i| (gradient[i] - ratio * floats[i]).abs())
            .fold(0.0, f64::max);
        assert!(off < 1e-3 * gradient[1].abs(), "{gradient:?} {floats:?}");
    }

    /// Exact where the answer is known: one coordinate, w = v/(M + Λ).
    #[test]
    fn proposals_are_not_trusted() {
        let sums = triangle(7, 1, 1, |_| 256);
        let problem = problem(&sums, 1, 2, &ratio(1, 1));
        // 7·¼ = 1.75 and 7·⅛ = .875, Λ = 2
        let want = 0.875 / 3.75;
        for start in [problem.proposal(), vec![-(IBig::ONE << 300)]] {
            let found = floats(&problem.minimise(start))[0];
            assert!((found - want).abs() <= 0.5e-6, "{found}");
        }
    }
}
