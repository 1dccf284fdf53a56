//! Methods against reference values, the contract every kind keeps, and seeded statistics.

mod contract;
mod golden;
mod histogram;
mod seeded;
mod support;
