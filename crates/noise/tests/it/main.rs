//! Tests of the public interface. Statistical tests use fixed seeds, state their false alarm probability and
//! carry a negative control: the same draws must be rejected against a scale 5 % off.
#![allow(missing_docs)]

mod choices;
mod enumeration;
mod layers;
mod masses;
mod samplers;
mod sources;
mod tools;
mod vectors;
