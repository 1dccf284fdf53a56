//! Models and diagnostics built on paid primitives; never sees a row.
