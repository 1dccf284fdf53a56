//! Tests of the public interface. Statistical tests use fixed seeds, state their false alarm probability and
//! carry a negative control: the same draws must be rejected against a scale 5 % off.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "test arithmetic on small numbers; exact values are meant to be exact"
)]

mod cauchy;
mod choices;
mod correlated;
mod enumeration;
mod layers;
mod lessons;
mod masses;
mod samplers;
mod sources;
mod tools;
mod vectors;
