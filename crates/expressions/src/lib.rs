//! What is read from a record: [`cell`]s, expressions over declared columns, and the bounds that follow from the declarations.
//!
//! What a release reads from a record is written as [`Expr`]essions. [`bounds`] computes from the [`Schema`] in which
//! interval each of them must lie. A mistake there cannot break a guarantee: the door clamps every value into the interval
//! it was told, and everything it adds up is calibrated to that same interval. What the door does rely on is that the
//! functions here are functions: no state, no clock, no randomness, the same answer for the same arguments, and an answer
//! for all of them.
//!
//! ```
//! use reticent_expressions::{Column, Expr, Function, Kind, Missing, Schema, bounds};
//!
//! let income = Column {
//!     name: "income".to_owned(),
//!     kind: Kind::Real { lower: 0.0, upper: 99.0 },
//!     missing: Missing::Drop,
//! };
//! let schema = Schema { columns: vec![income] };
//! let term = Expr::Column(0).add(Expr::Constant(1.0)).call(Function::Log10);
//! assert_eq!(bounds(&schema, None, &[term])?[0].upper, 2.0);
//! # Ok::<(), reticent_expressions::ProgramError>(())
//! ```
#![cfg_attr(
    not(test),
    warn(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

pub mod cell;
mod expr;
mod schema;
mod scope;

pub use expr::{Comparison, Expr, Function, Interval, apply, entry};
pub use schema::{Column, Kind, Missing, Schema};
pub use scope::{ProgramError, Scope, bounds, columns, squared_norm_bound};
