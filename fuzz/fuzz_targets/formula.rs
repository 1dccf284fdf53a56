//! Formulas and conditions: what is accepted has a canonical spelling that means the same and is its own; its bounds hold.
#![no_main]

use libfuzzer_sys::fuzz_target;
use reticent_engine::formula;
use reticent_mechanisms::program::Scope;
use reticent_mechanisms::rows::{Column, Kind, Missing, Schema};

fn schema() -> Schema {
    let column = |name: &str, kind| Column {
        name: name.to_owned(),
        kind,
        missing: Missing::Drop,
    };
    let levels = ["a", "b", "c d"].map(str::to_owned).to_vec();
    let columns = vec![
        column("n", Kind::Integer { lower: 0, upper: 9 }),
        column(
            "x",
            Kind::Real {
                lower: -1.0,
                upper: 2.0,
            },
        ),
        column(
            "f",
            Kind::Levels {
                levels,
                other: Some(0),
            },
        ),
        column("y", Kind::Integer { lower: 0, upper: 1 }),
    ];
    Schema { columns }
}

fuzz_target!(|text: &str| {
    if let Ok(canonical) = formula::canonical(text) {
        let again = formula::canonical(&canonical).expect("a canonical spelling parses");
        assert_eq!(canonical, again);
    }
    let schema = schema();
    let condition = formula::condition(text, &schema).ok();
    if let Ok(expression) = formula::expression_within(text, &schema, condition.as_ref()) {
        let bounds = Scope::new(&schema, condition.as_ref()).interval(&expression);
        let bounds = bounds.expect("an accepted expression has bounds");
        assert!(
            bounds.lower.is_finite() && bounds.upper.is_finite() && bounds.lower <= bounds.upper
        );
    }
    for family in [formula::Family::Linear, formula::Family::Logistic] {
        let _ = formula::compile_within(text, &schema, condition.as_ref(), None, family);
    }
});
