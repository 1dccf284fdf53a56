//! Private event streams: noisy counts and groups of many series, tick by tick, from one payment.
//!
//! Events are (unit, node, tick). The nodes of a [`Forest`] are the series; an event counts at its node and at every
//! node above. Per tick a public [`Plan`] says which nodes are measured and with which share of the budget; it may
//! depend on what was released before, on nothing else. `Session::step` is pure: state and events in, noisy counts,
//! marks and new state out. [`Live`] is a session that is paid for in a ledger and draws from the operating system.

mod forest;
mod grouper;
mod live;
mod session;

pub use forest::{Checked, Forest, PARTS, Plan};
pub use grouper::{Group, GroupNoise, LARGEST_COUNT, Mark};
pub use live::{Live, Opened, Order};
pub use session::{Grouper, Session, Split, State, Stream, Tally, Ticked};

use reticent_accounting::AccountingError;
use reticent_ledger::LedgerError;
use reticent_noise::NoiseError;

/// Why a stream did not serve. Decided from public inputs, except for failures of the machine.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// A node names a parent that does not come before it.
    #[error("node {node} has parent {parent}; a parent must come before its children")]
    Parent {
        /// The node.
        node: usize,
        /// Its parent.
        parent: usize,
    },
    /// A forest without nodes, or too large.
    #[error("a stream of {nodes} series; give 1 to {most}")]
    Size {
        /// Nodes asked for.
        nodes: usize,
        /// Most nodes.
        most: usize,
    },
    /// A plan with another number of nodes than the stream.
    #[error("a plan for {plan} nodes on a stream of {nodes}")]
    Shape {
        /// Nodes of the plan.
        plan: usize,
        /// Nodes of the stream.
        nodes: usize,
    },
    /// A plan that spends more than the budget on one path.
    #[error("the path to node {node} would cost {spent} of {PARTS} parts")]
    Path {
        /// The node.
        node: usize,
        /// Parts spent from its root to it.
        spent: u64,
    },
    /// A plan that gives the root less than was declared.
    #[error("the root gets {given} parts, {declared} were declared")]
    Common {
        /// Parts in the plan.
        given: u64,
        /// Parts declared.
        declared: u32,
    },
    /// A plan that runs a grouper where none is declared.
    #[error("node {node} runs a grouper, but the stream declares none")]
    NoGrouper {
        /// The node.
        node: usize,
    },
    /// A declaration that cannot be served.
    #[error("{0}")]
    Declaration(&'static str),
    /// Stored state that is not a state of this stream.
    #[error("the stored state of the stream is damaged")]
    State,
    /// The ledger refused or failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A price is impossible.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
    /// A noise scale is impossible, or there is no randomness.
    #[error(transparent)]
    Noise(#[from] NoiseError),
}
