//! The public facts under which a mechanism is priced and calibrated.

use reticent_accounting::{Currency, Rational, Relation, Size};
use serde::{Deserialize, Serialize};

/// Relation, currency, size and contribution bound of the row set a mechanism works on.
///
/// Only the door makes one for a release; simulations make their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Context {
    /// The neighbour relation the guarantee is stated for.
    pub relation: Relation,
    /// What the data set's budget is counted in.
    pub currency: Currency,
    /// Whether the number of rows in this row set is public.
    pub size: Size,
    /// Largest number of rows of one privacy unit.
    pub rows_per_unit: u32,
}

impl Context {
    /// One record, private size, pure ε: the base case of the proofs.
    pub fn records(relation: Relation) -> Self {
        Self {
            relation,
            currency: Currency::Pure,
            size: Size::Private,
            rows_per_unit: 1,
        }
    }

    /// How often a unit change touches disjoint counts: 1 under add/remove, 2 under replace-one.
    pub fn touches(&self) -> u8 {
        match self.relation {
            Relation::AddRemove => 1,
            Relation::ReplaceOne => 2,
        }
    }

    /// The share of a unit's ε that each of its records gets (group privacy: k records add up).
    #[allow(clippy::arithmetic_side_effects, reason = "the divisor is at least 1")]
    pub fn per_record(&self, epsilon: &Rational) -> Rational {
        epsilon / Rational::from(self.rows_per_unit.max(1))
    }
}
