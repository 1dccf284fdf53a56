//! Test kit: enumeration, neighbour tables, statistical alarms, the broken mechanisms and the attacks on them.
//!
//! - [`tables`]: small worlds of privacy units, all tables over them, and which tables are neighbours;
//! - [`neighbours`]: worst losses over neighbouring tables, by enumeration of the shipped code (method E), by
//!   the strategy matrix read off the shipped code (M), and the contract of composites (C); [`density`] (D);
//! - [`purchases`]: a mechanism that buys given paid steps and nothing else;
//! - [`canary`]: noise that is too small by a stated factor, which every test above must notice;
//! - [`broken`]: published mechanisms that are not private, which every test above must flag;
//! - [`alarms`]: the arithmetic of statistical audits with a stated probability of false alarm;
//! - [`stream`]: the same for event streams;
//! - [`registry`]: which test vouches for which mechanism.
//!
//! Nothing here is used by a release.

pub mod alarms;
pub mod broken;
pub mod canary;
pub mod density;
pub mod neighbours;
pub mod purchases;
pub mod registry;
pub mod stream;
pub mod tables;

/// Why an audit could not be carried out (not: what it found).
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The mechanism under audit did not run.
    #[error("the mechanism under audit failed on table {table:?}: {cause}")]
    Failed {
        /// The table.
        table: Vec<u32>,
        /// The mechanism's error.
        cause: String,
    },
    /// The mechanism drew something the method cannot follow.
    #[error("this method cannot follow the mechanism: {0}; use another method")]
    Method(String),
    /// A mechanism broke the contract of all mechanisms.
    #[error("contract broken: {0}")]
    Contract(String),
}
