//! Tests of whole purchases: a table in memory, a mechanism that makes one purchase, noise as the test wants it.

mod objective;
mod second_moments;
mod table;
