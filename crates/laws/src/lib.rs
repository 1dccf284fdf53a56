//! What noise looks like from outside: masses and tails in floating point, exact output laws of programs, replay.
//!
//! For receipts, error bars and tests. No draw, no price and no scale of a release depends on anything here.
//!
//! - [`Law`] and [`Probabilities`] describe one draw.
//! - [`enumerate()`] runs a program once for every combination of its draws: the exact [`Distribution`] of its output.
//! - [`Seeded`] and [`Silent`] are noise for simulation on public data: reproducible, and off.
//! - [`Recorder`] and [`Tape`] run the same code with the same noise on another table.
//!
//! ```
//! use reticent_laws::{Law, Window, enumerate};
//! use reticent_noise::{Lattice, Noise, Rational, Scale};
//!
//! let noise = Lattice::Laplace(Scale::at_least(&Rational::from(2_u8))?);
//! let law = |count| enumerate(Window::default(), |draws| count + draws.lattice(&noise));
//! assert!((law(40).mass(&41) - noise.mass(1)).abs() < 1e-12);
//! assert!((law(40).worst_loss(&law(41), 1e-9) - 0.5).abs() < 1e-12);
//! # Ok::<(), reticent_noise::NoiseError>(())
//! ```
#![allow(
    clippy::cast_precision_loss,
    reason = "probabilities are floating point; the errors are stated"
)]

mod enumerate;
mod law;
mod simulation;
mod tape;

pub use enumerate::{Distribution, Window, enumerate};
pub use law::{Law, Probabilities};
pub use simulation::{Seeded, Silent};
pub use tape::{Recorder, Tape};
