//! Cauchy noise under audit: the request itself (method D), and its law gathered into finitely many outcomes (E).
//!
//! The scale of smooth sensitivity depends on the data, so what a mechanism asks for is captured per table and compared by
//! the exact loss of two Cauchy laws, the hyperbolic distance of (location, scale) in the upper half-plane.

use std::ops::RangeInclusive;

use reticent_accounting::Relation;
use reticent_noise::{Cauchy, Cell, GammaNorm, Lattice, LogWeights, Noise, Rational};

use crate::AuditError;
use crate::neighbours::{Case, Worst};
use crate::tables::{Multiset, neighbours};

/// The exact two-sided max-divergence of Cauchy(m, s) and Cauchy(m′, s′): cosh d = 1 + ((m−m′)² + (s−s′)²)/(2ss′).
///
/// ```
/// let d = reticent_audit::heavy::cauchy_loss((0.0, 1.0), (0.3, 1.2));
/// assert!((d - 0.327_672_412_0).abs() < 1e-10);
/// ```
pub fn cauchy_loss(a: (f64, f64), b: (f64, f64)) -> f64 {
    let (dm, ds) = (a.0 - b.0, a.1 - b.1);
    2.0 * libm::asinh(libm::hypot(dm, ds) / (2.0 * libm::sqrt(a.1 * b.1)))
}

/// Smooth sensitivity of the record of rank ⌈n/2⌉ (the lower median) by its definition, O(n²): `sorted` values within
/// `lower..=upper`, padded by the ends.
pub fn smooth_sensitivity(sorted: &[f64], lower: f64, upper: f64, beta: f64) -> f64 {
    let n = sorted.len();
    let m = n.div_ceil(2);
    // positions are shifted by n + 2 so that they do not go below 0
    let at = |i: usize| match (i).checked_sub(n + 2) {
        Some(i) if i > n => upper,
        Some(i) if i >= 1 => sorted[i - 1],
        _ => lower,
    };
    let mut best: f64 = 0.0;
    for k in 0..=n {
        let widest = (0..=k + 1)
            .map(|t| at(n + 2 + m + t) - at(n + 1 + m + t - k))
            .fold(0.0, f64::max);
        #[allow(clippy::cast_precision_loss, reason = "small tables")]
        let term = libm::exp(-(k as f64) * beta) * widest;
        best = best.max(term);
    }
    best
}

/// Answers a Cauchy request with the rounded location and remembers it; other draws are refused.
#[derive(Default)]
pub struct Captured {
    /// (location, scale) of each request.
    pub draws: Vec<(f64, f64)>,
    other: bool,
}

impl Noise for Captured {
    fn bits(&mut self) -> u64 {
        self.other = true;
        0
    }
    fn lattice(&mut self, _: &Lattice) -> i128 {
        self.other = true;
        0
    }
    fn choose(&mut self, _: &LogWeights) -> usize {
        self.other = true;
        0
    }
    fn vector(&mut self, d: &GammaNorm) -> Vec<i128> {
        self.other = true;
        vec![0; d.dimension]
    }
    fn cauchy(&mut self, d: &Cauchy) -> i128 {
        let float = |x: &Rational| x.to_f64().value();
        self.draws.push((float(&d.location), float(&d.scale)));
        d.centre()
    }
}

/// Location and scale that a mechanism of one Cauchy draw asks for on a table.
pub fn request(case: &Case<'_>, table: &Multiset) -> Result<(f64, f64), AuditError> {
    let mut captured = Captured::default();
    case.run(&case.universe.source(table), &mut captured)?;
    match (captured.draws.as_slice(), captured.other) {
        ([draw], false) => Ok(*draw),
        _ => Err(AuditError::Method(
            "it does not make exactly one Cauchy draw".to_owned(),
        )),
    }
}

/// The exact worst loss of a mechanism of one Cauchy draw, all scales multiplied by `factor`, before rounding to its grid.
pub fn losses(
    case: &Case<'_>,
    tables: &[Multiset],
    relation: Relation,
    factor: f64,
) -> Result<Worst, AuditError> {
    let requests = tables
        .iter()
        .map(|t| request(case, t).map(|(m, s)| (m, s * factor)))
        .collect::<Result<Vec<_>, _>>()?;
    let mut worst = Worst::default();
    for (i, j) in neighbours(tables, relation) {
        let loss = cauchy_loss(requests[i], requests[j]);
        if loss > worst.loss || worst.pair.is_none() {
            worst = Worst {
                loss,
                pair: Some((tables[i].clone(), tables[j].clone())),
            };
        }
    }
    Ok(worst)
}

/// Turns a Cauchy draw into a choice among the integers of a window and "outside", so that programs to which all results
/// outside the window are alike can be enumerated.
pub struct Gathered<'a> {
    inner: &'a mut dyn Noise,
    window: RangeInclusive<i32>,
}

impl<'a> Gathered<'a> {
    /// Results in `window` one by one.
    pub fn new(inner: &'a mut dyn Noise, window: RangeInclusive<i32>) -> Self {
        Self { inner, window }
    }
}

impl Noise for Gathered<'_> {
    fn bits(&mut self) -> u64 {
        self.inner.bits()
    }
    fn lattice(&mut self, d: &Lattice) -> i128 {
        self.inner.lattice(d)
    }
    fn exceeds(&mut self, d: &Lattice, bound: i128) -> bool {
        self.inner.exceeds(d, bound)
    }
    fn choose(&mut self, w: &LogWeights) -> usize {
        self.inner.choose(w)
    }
    fn vector(&mut self, d: &GammaNorm) -> Vec<i128> {
        self.inner.vector(d)
    }
    fn cauchy(&mut self, d: &Cauchy) -> i128 {
        let (location, scale) = (d.location.to_f64().value(), d.scale.to_f64().value());
        // the probability between two points, without cancelling in the tails
        let between = |a: f64, b: f64| {
            let (a, b) = ((a - location) / scale, (b - location) / scale);
            libm::atan2(b - a, 1.0 + a * b) / std::f64::consts::PI
        };
        let tail = |x: f64| libm::atan2(scale, x) / std::f64::consts::PI;
        let (low, high) = (
            f64::from(*self.window.start()),
            f64::from(*self.window.end()),
        );
        let outside = tail(location - low + 0.5) + tail(high + 0.5 - location);
        let mut masses: Vec<f64> = self
            .window
            .clone()
            .map(|k| between(f64::from(k) - 0.5, f64::from(k) + 0.5))
            .collect();
        masses.push(outside);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "masses lie within [0, 1]: below 2^60"
        )]
        let cells = masses
            .iter()
            .map(|p| Cell {
                loss: 0,
                multiplicity: (p * libm::exp2(60.0)) as u64,
            })
            .collect();
        let index = self.inner.choose(&LogWeights {
            rate: Rational::ZERO,
            cells,
        });
        self.window.clone().nth(index).map_or(i128::MAX, i128::from)
    }
}
