//! release.json from anywhere: a report is drawn from whatever JSON it is given.
#![no_main]

use libfuzzer_sys::fuzz_target;
use reticent_engine::report::{Context, html};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(release) = serde_json::from_slice(bytes) {
        let page = html(&release, &Context::default());
        assert!(page.starts_with("<!"));
    }
});
