//! The door: private rows, folds with proved sensitivity, mechanisms, releases.
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

mod context;
mod desk;
mod door;
mod evaluate;
pub mod fold;
pub mod items;
mod mechanism;
mod moments;
mod numeric;
pub mod primitives;
pub mod program;
pub mod rows;
pub mod session;
pub mod source;
pub mod stream;

pub use context::Context;
pub use desk::{Desk, DeskError, FoldId, NoiseRecord};
pub use door::{
    Body, DoorError, Private, Receipt, Release, Slot, Task, Ticket, Wanted, claim_price,
    row_set_size,
};
pub use evaluate::Unit;
pub use mechanism::{Answer, Mechanism, Simulated, Trace, simulate};
