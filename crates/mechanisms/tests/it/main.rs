//! Tests of whole purchases: a table in memory, a mechanism that makes one purchase, noise as the test wants it.
#![allow(
    clippy::cast_precision_loss,
    clippy::float_cmp,
    clippy::type_complexity,
    reason = "tests compare exact values and count small things"
)]

mod hostile;
mod objective;
mod second_moments;
mod sessions;
mod table;
