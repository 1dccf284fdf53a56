//! Canaries: noise that is too small by a stated factor. A neighbour test that does not notice one is worth nothing.

use reticent_noise::{
    Cauchy, Correlated, GammaNorm, Lattice, LogWeights, Natural, Noise, Rational, Scale,
};

/// Multiplies every noise scale by a factor (below 1: too little noise) on its way to another source.
pub struct Weakened<'a> {
    inner: &'a mut dyn Noise,
    factor: Rational,
}

impl<'a> Weakened<'a> {
    /// `factor` times the noise that was asked for; must be positive.
    pub fn new(inner: &'a mut dyn Noise, factor: Rational) -> Self {
        Self { inner, factor }
    }

    fn scaled(&self, d: &Lattice) -> Lattice {
        let scale = d.scale().to_rational() * &self.factor;
        // cannot fail for a factor in (0, 1]; any other canary keeps the scale
        let scale = Scale::at_least(&scale).unwrap_or(d.scale());
        match d {
            Lattice::Laplace(_) => Lattice::Laplace(scale),
            Lattice::Geometric(_) => Lattice::Geometric(scale),
            Lattice::DiscreteGaussian(_) => Lattice::DiscreteGaussian(scale),
            Lattice::RoundedGaussian(_) => Lattice::RoundedGaussian(scale),
        }
    }
}

impl Noise for Weakened<'_> {
    fn bits(&mut self) -> u64 {
        self.inner.bits()
    }
    fn lattice(&mut self, d: &Lattice) -> i128 {
        let d = self.scaled(d);
        self.inner.lattice(&d)
    }
    fn exceeds(&mut self, d: &Lattice, bound: i128) -> bool {
        let d = self.scaled(d);
        self.inner.exceeds(&d, bound)
    }
    fn choose(&mut self, w: &LogWeights) -> usize {
        let w = LogWeights {
            rate: &w.rate / &self.factor,
            cells: w.cells.clone(),
        };
        self.inner.choose(&w)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.inner.below(n)
    }
    /// Whole weights carry no scale to cut: mechanisms that use them have a canary of their own.
    fn pick(&mut self, weights: &[Natural]) -> usize {
        self.inner.pick(weights)
    }
    fn vector(&mut self, d: &GammaNorm) -> Vec<i128> {
        let d = GammaNorm {
            scale: &d.scale * &self.factor,
            ..d.clone()
        };
        self.inner.vector(&d)
    }
    fn rows(&mut self, d: &Correlated) -> Vec<i128> {
        let added = Rational::from(d.added.clone()) * &self.factor;
        let d = Correlated {
            added: Natural::try_from(added.ceil()).unwrap_or(Natural::ONE),
            ..d.clone()
        };
        self.inner.rows(&d)
    }
    fn cauchy(&mut self, d: &Cauchy) -> i128 {
        let d = Cauchy {
            location: d.location.clone(),
            scale: &d.scale * &self.factor,
        };
        self.inner.cauchy(&d)
    }
}
