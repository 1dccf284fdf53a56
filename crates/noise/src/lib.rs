//! Exact integer samplers over a source of random bits.
