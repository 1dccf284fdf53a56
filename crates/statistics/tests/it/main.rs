//! Methods against reference values, the contract every kind keeps, and seeded statistics.

mod contract;
mod golden;
mod models;
mod seeded;
mod support;
