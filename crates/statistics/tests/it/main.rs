//! Methods against reference values, the contract every kind keeps, and seeded statistics.

mod accuracy;
mod contract;
mod counters;
mod features;
mod golden;
mod histogram;
mod models;
mod naive_bayes;
mod roc;
mod running;
mod seeded;
mod selection;
mod sketch;
mod steps;
mod streams;
mod support;
mod verify;
