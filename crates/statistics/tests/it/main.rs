//! Methods against reference values, the contract every kind keeps, and seeded statistics.

mod contract;
mod golden;
mod seeded;
mod streams;
mod support;
