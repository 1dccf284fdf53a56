//! dataset.toml: a data set or a refusal that says what would be accepted.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use reticent_engine::dataset::Dataset;

fuzz_target!(|text: &str| {
    match Dataset::parse(text, Path::new("dataset.toml")) {
        Ok(dataset) => {
            dataset.schema.digest();
            dataset.unit.to_json();
        }
        Err(refusal) => assert!(!refusal.to_string().is_empty()),
    }
});
