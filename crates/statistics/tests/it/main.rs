//! Methods against reference values, the contract every kind keeps, and seeded statistics.

mod accuracy;
mod contract;
mod counters;
mod features;
mod golden;
mod histogram;
mod naive_bayes;
mod seeded;
mod selection;
mod support;
