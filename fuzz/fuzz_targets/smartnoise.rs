//! SmartNoise metadata in YAML: a draft of a declaration or a refusal.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use reticent_engine::smartnoise;

fuzz_target!(|text: &str| {
    if let Err(refusal) = smartnoise::parse(text, Path::new("metadata.yaml"), None) {
        assert!(!refusal.to_string().is_empty());
    }
});
