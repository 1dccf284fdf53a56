//! The mixed score scale: half the probability, half its logit.
//!
//! u = ½p + ½(clip(logit p, −14, 14) + 14)/28. Thresholds are chosen on this scale, because scores packed
//! near 0 or 1 are invisible on the probability scale alone. It is a fixed public map, so it costs nothing.

use reticent_mechanisms::program::{Expr, Function, Interval};

/// Half-width of the logit part.
const LOGIT: f64 = 14.0;

/// What a diagnostic is drawn from.
#[derive(Clone, Debug, PartialEq)]
pub enum Score {
    /// The linear predictor (log-odds).
    Linear(Expr),
    /// A probability in [0, 1].
    Probability(Expr),
}

impl Score {
    /// The probability.
    pub(crate) fn probability(&self) -> Expr {
        match self {
            Self::Linear(s) => s.clone().call(Function::Logistic),
            Self::Probability(p) => p.clone().clamp(unit()),
        }
    }

    /// The mixed scale, in [0, 1].
    pub(crate) fn mixed(&self) -> Expr {
        let logit = match self {
            Self::Linear(s) => s.clone(),
            Self::Probability(p) => {
                let inside = Interval {
                    lower: logistic(-LOGIT),
                    upper: 1.0 - logistic(-LOGIT),
                };
                let p = p.clone().clamp(inside);
                Expr::Div(Box::new(p.clone()), Box::new(Expr::Constant(1.0).sub(p)))
                    .call(Function::Log)
            }
        };
        let logit = logit.clamp(Interval {
            lower: -LOGIT,
            upper: LOGIT,
        });
        self.probability()
            .affine(0.5, 0.0)
            .add(logit.affine(0.25 / LOGIT, 0.25))
    }
}

fn unit() -> Interval {
    Interval {
        lower: 0.0,
        upper: 1.0,
    }
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The mixed scale of a probability.
fn mixed(p: f64) -> f64 {
    let logit = if p <= 0.0 {
        -LOGIT
    } else if p >= 1.0 {
        LOGIT
    } else {
        (p / (1.0 - p)).ln().clamp(-LOGIT, LOGIT)
    };
    0.5 * p + 0.5 * (logit + LOGIT) / (2.0 * LOGIT)
}

/// The probability at a point of the mixed scale (bisection on the log-odds, so small ones are exact too).
pub(crate) fn unmixed(u: f64) -> f64 {
    if u.is_nan() || u <= 0.0 {
        return 0.0;
    }
    if u >= 1.0 {
        return 1.0;
    }
    let (low, high) = (logistic(-LOGIT), 1.0 - logistic(-LOGIT));
    if u <= mixed(low) {
        return (2.0 * u).min(low);
    }
    if u >= mixed(high) {
        return (2.0 * u - 1.0).clamp(high, 1.0);
    }
    let (mut a, mut b) = (-LOGIT, LOGIT);
    for _ in 0..200 {
        let middle = 0.5 * (a + b);
        if middle <= a || middle >= b {
            break;
        }
        if mixed(logistic(middle)) < u {
            a = middle;
        } else {
            b = middle;
        }
    }
    logistic(0.5 * (a + b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_map_inverts() {
        for k in 1..4096 {
            let u = f64::from(k) / 4096.0;
            // Near 1 a probability resolves log-odds only to 1e-10.
            assert!((mixed(unmixed(u)) - u).abs() < 1e-11, "{u}");
        }
        assert_eq!(
            [0.0, 1.0, f64::NAN].map(unmixed).map(f64::to_bits),
            [0.0, 1.0, 0.0].map(f64::to_bits)
        );
    }
}
