//! End to end, through the binary, and the rules of the house.

mod architecture;
mod audit;
mod bad_input;
mod classes;
mod examples;
mod folds;
mod hostile;
mod late;
mod lessons;
mod shortcuts;
mod streams;
mod table;
mod texts;
