//! Test kit: enumeration, neighbour tables, statistical alarms, the broken mechanisms and the attacks on them.
//!
//! - [`tables`]: small worlds of privacy units, all tables over them, and which tables are neighbours;
//! - [`neighbours`]: worst losses over neighbouring tables, by enumeration of the shipped code (method E), by
//!   the strategy matrix read off the shipped code (M), and the contract of composites (C); [`density`] (D);
//! - [`heavy`]: Cauchy noise, whose scale depends on the data;
//! - [`purchases`]: a mechanism that buys given paid steps and nothing else;
//! - [`canary`]: noise that is too small by a stated factor, which every test above must notice;
//! - [`broken`]: published mechanisms that are not private, which every test above must flag;
//! - [`alarms`]: the arithmetic of statistical audits with a stated probability of false alarm;
//! - [`auditor`]: audits of any mechanism, ours, a broken one, or another program; its list of all we know;
//! - [`attacks`]: what an adversary gets from broken mechanisms and exact plots; [`picture`] draws it;
//! - [`stream`]: the same for event streams;
//! - [`registry`]: which test vouches for which mechanism.
//!
//! Nothing here is used by a release.

pub mod alarms;
pub mod attacks;
pub mod auditor;
pub mod broken;
pub mod broken_partition;
pub mod canary;
pub mod density;
pub mod heavy;
pub mod neighbours;
pub mod picture;
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
    /// A file or an argument cannot be used.
    #[error("{file}: {cause}")]
    Input {
        /// The file or argument.
        file: String,
        /// What is wrong with it.
        cause: String,
    },
    /// An audited program did not behave as the protocol asks.
    #[error("the program {program}: {cause}")]
    Program {
        /// The command.
        program: String,
        /// What is wrong.
        cause: String,
    },
    /// A mechanism broke the contract of all mechanisms.
    #[error("contract broken: {0}")]
    Contract(String),
}
