//! Method C over every composite of the registry: prices add up, exactly the declared steps are bought, and with all
//! noise drowned nothing of the table is left in the answer.

use std::collections::BTreeSet;

use super::*;
use reticent_accounting::Size;
use reticent_audit::auditor::composites::{currency, prepare, schema};
use reticent_audit::neighbours::Case;
use reticent_audit::registry::COMPOSITES;
use reticent_statistics::Facts;

#[test]
fn all() {
    let rows = vec![
        vec![0.0, 0.0],
        vec![1.5, 1.0],
        vec![4.0, 1.0],
        vec![f64::NAN, 1.0],
    ];
    let universe = Universe::rows(schema(), rows);
    let tables = universe.tables(2);
    let mut failures = Vec::new();
    let mut names = BTreeSet::new();
    for row in COMPOSITES {
        names.insert(row.name);
        for relation in RELATIONS {
            for rows_per_unit in [1, 3] {
                let context = Context {
                    relation,
                    currency: currency(row.name),
                    size: Size::Private,
                    rows_per_unit,
                };
                let schema = schema();
                let facts = Facts {
                    schema: &schema,
                    filter: None,
                    context: &context,
                    rows: Some(1000.0),
                    positive_rate: Some(0.5),
                };
                let prepared = prepare(row.name, &facts)
                    .unwrap_or_else(|| panic!("no constructor for {}", row.name))
                    .unwrap();
                let program = RowProgram {
                    terms: prepared.terms,
                    ..RowProgram::default()
                };
                let case = Case {
                    universe: &universe,
                    program: &program,
                    mechanism: prepared.mechanism.as_ref(),
                    unit: Unit::Row,
                    context: &context,
                };
                match case.contract(&tables) {
                    Ok(price) => {
                        let own = &price.under(relation).unwrap().amount;
                        if *own > ratio(1, 1) {
                            failures.push(format!("{} {relation}: costs {own}", row.name));
                        }
                    }
                    Err(e) => {
                        failures.push(format!("{} {relation} k={rows_per_unit}: {e}", row.name));
                    }
                }
            }
        }
    }
    assert_eq!(names.len(), COMPOSITES.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
