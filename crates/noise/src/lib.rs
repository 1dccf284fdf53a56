//! Exact integer samplers over a source of random bits.
//!
//! Every draw has exactly the law of its ideal distribution: a sampler asks for random bits, works
//! with a rigorous enclosure of the ideal real value, and asks for more bits until the integer answer
//! is decided. Nothing here sees private data, with one exception that says so: the law of [`Correlated`] rows.
//!
//! - [`Noise`] is the one interface of mechanisms to randomness: [`Draws`] for releases. Simulation,
//!   replay and exact output laws: crate `reticent-laws`.
//! - [`Lattice`] names the distributions on the integers, [`Scale`] their parameter.
//! - [`exact`] holds the samplers, `fast` and `refine` the floating-point and big-integer enclosures that carry them.
//!
//! ```
//! use reticent_laws::{Window, enumerate};
//! use reticent_noise::{Draws, Lattice, Noise, Rational, Scale};
//!
//! // a count of 40 with epsilon 1/2: two-sided discrete Laplace of scale 2
//! let noise = Lattice::Laplace(Scale::at_least(&Rational::from(2_u8))?);
//! let count = |draws: &mut dyn Noise, true_count: i128| true_count + draws.lattice(&noise);
//!
//! let released = count(&mut Draws::from_os()?, 40);
//! assert!((released - 40).abs() < 100);
//!
//! // the same code, enumerated on neighbouring tables: the worst log ratio of output probabilities is 1/2
//! let law = |n| enumerate(Window::Tail(1e-13), |draws| count(draws, n));
//! assert!((law(40).worst_loss(&law(41), 1e-9) - 0.5).abs() < 1e-12);
//! # Ok::<(), reticent_noise::NoiseError>(())
//! ```
#![cfg_attr(
    not(test),
    warn(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::float_cmp,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss
    )
)]

mod cauchy;
mod choose;
mod correlated;
pub mod exact;
mod fast;
mod lattice;
mod refine;
mod scale;
mod source;

pub use cauchy::Cauchy;
pub use choose::{Cell, LogWeights};
pub use correlated::Correlated;
pub use lattice::Lattice;
pub use refine::GammaNorm;
pub use scale::{NoiseError, Scale};
pub use source::{Draws, Noise};

/// A whole number of any size.
pub type Natural = dashu::integer::UBig;

/// An exact rational number.
pub type Rational = dashu::rational::RBig;
