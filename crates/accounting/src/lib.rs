//! What a mechanism costs under each neighbour relation, and how costs add up.
//!
//! Pure arithmetic over exact rationals: nothing here draws noise, opens a file or sees a row.
//!
//! * [`Event`]: what a mechanism did; its [`Price`] in one of the three [currencies](Currency).
//! * [`sequential`] and [`parallel`]: the two ways prices compose.
//! * [`split`] and [`share`]: parts of a budget that never exceed the whole.
//! * [`exp`], [`gaussian`], [`hyperbolic`], [`sketch`]: certified bounds on the transcendental functions that
//!   calibrations need.
//!
//! No floating-point number enters anything that is debited. `to_f64` exists for display and for
//! planning only.

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

mod error;
mod event;
pub mod exp;
pub mod gaussian;
pub mod hyperbolic;
mod number;
mod price;
pub mod sketch;
mod split;
mod terms;

pub use error::AccountingError;
pub use event::{Both, Event};
pub use number::{
    Rational, format_rational, parse_decimal, parse_rational, rational_from_f64, rational_to_f64,
};
pub use price::{Cost, CostFields, Price, convert_to_replace_one, parallel, sequential};
pub use split::{floor_to_grid, grid_bits, share, split};
pub use terms::{Currency, Relation, Size};
