//! Methods against reference values, the contract every kind keeps, and seeded statistics.

mod accuracy;
mod contract;
mod counters;
mod golden;
mod histogram;
mod running;
mod seeded;
mod selection;
mod support;
