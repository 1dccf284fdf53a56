//! plan.toml: a plan or a refusal that says what would be accepted.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use reticent_engine::plan::Plan;

fuzz_target!(|text: &str| {
    match Plan::parse(text, Path::new("plan.toml")) {
        Ok(plan) => drop(plan.canonical_filter()),
        Err(refusal) => assert!(!refusal.to_string().is_empty()),
    }
});
