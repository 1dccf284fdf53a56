// What the examples of the constructors share: public records, and a release from them with seeded noise.
// A confidential table goes through the door instead, with the same code from the prepared release on.
use std::sync::Arc;
use reticent_accounting::{Rational, Relation};
use reticent_mechanisms::primitives::Payment;
use reticent_mechanisms::program::{Expr, RowProgram};
use reticent_mechanisms::rows::{Batch, Cells, Column, Kind, Missing, Schema};
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{Context, Simulated, Unit, simulate};
use reticent_statistics::*;
use serde_json::{Value, json};

const AGE: Expr = Expr::Column(0);
const INCOME: Expr = Expr::Column(1);
const SICK: Expr = Expr::Column(2);

/// Four thousand people of ages 0 to 99: income is five times the age and up to 40 more, those of about 60 and older are sick.
struct People {
    schema: Arc<Schema>,
    context: Context,
    source: Memory,
}

impl People {
    fn new() -> Self {
        let column = |name: &str, upper: f64| Column {
            name: name.to_owned(),
            kind: Kind::Real { lower: 0.0, upper },
            missing: Missing::Drop,
        };
        let columns = vec![column("age", 100.0), column("income", 600.0), column("sick", 1.0)];
        let schema = Arc::new(Schema { columns });
        let age = |i: u32| f64::from(i % 100);
        let income = (0..4000).map(|i| 5.0 * age(i) + f64::from(i % 41));
        let sick = (0..4000).map(|i| if age(i) + f64::from(i % 37) > 78.0 { 1.0 } else { 0.0 });
        let cells = [(0..4000).map(age).collect(), income.collect(), sick.collect()];
        let batch = Batch::new(4000, cells.into_iter().map(Cells::Real).collect());
        Self {
            context: Context::records(Relation::AddRemove),
            source: Memory::new(schema.clone(), vec![batch]),
            schema,
        }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            schema: &self.schema,
            filter: None,
            context: &self.context,
            rows: Some(4000.0),
            positive_rate: None,
        }
    }

    fn release(&self, prepared: &Prepared) -> Value {
        let program = RowProgram { terms: prepared.terms.clone(), ..RowProgram::default() };
        let mut noise = reticent_laws::Seeded::new(7);
        let Simulated((answer, _)) =
            simulate(&self.source, Unit::Row, &self.context, &program, prepared.mechanism.as_ref(), &mut noise).unwrap();
        answer.value
    }
}

fn epsilon() -> Rational {
    Rational::from(1u8)
}
