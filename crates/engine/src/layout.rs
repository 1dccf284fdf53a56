//! How the files of a data set are read, as its declaration says it.

use std::sync::Arc;

use reticent_mechanisms::rows::Schema;
use reticent_mechanisms::rows::cell::Meaning;

use crate::scan::fields::{Content, Field};
use crate::tokens::{Stored, Tokens, stored};

/// How cells are read: all of it declared by the curator, none of it learned from rows.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The declared columns.
    pub schema: Arc<Schema>,
    /// The texts of the files whose slots are columns of the schema.
    pub texts: Vec<Tokens>,
    /// Per column, the texts that mean missing (empty text always does, unless it is a declared level).
    pub missing_values: Vec<Vec<String>>,
    /// Per column, what registration must reject.
    pub rejects: Vec<Rejects>,
}

impl Layout {
    /// The columns of the files, in schema order.
    pub(crate) fn fields(&self) -> Vec<Field> {
        let field = |stored: &Stored<'_>| match *stored {
            Stored::Plain(at, column) => {
                let missing = self.missing_values.get(at);
                let missing = missing.map_or(&[][..], Vec::as_slice);
                Field {
                    name: column.name.clone(),
                    columns: at..at.saturating_add(1),
                    content: Content::Cell(Meaning::new(&column.kind, missing)),
                }
            }
            Stored::Text(text) => Field {
                name: text.column.name.clone(),
                columns: text.slots(),
                content: Content::Words(text.column.clone()),
            },
        };
        stored(&self.schema, &self.texts)
            .iter()
            .map(field)
            .collect()
    }
}

/// Cells that registration reports as errors. Scanning never looks at this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rejects {
    /// Missing cells.
    pub missing: bool,
    /// Texts that are not declared levels.
    pub other: bool,
    /// Numbers outside the bounds; otherwise they are counted, and clamped.
    pub outside: bool,
}
