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

pub mod evaluate;
pub mod fold;
pub mod moments;
pub mod program;
pub mod rows;
pub mod source;
