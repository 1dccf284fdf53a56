//! One line of the ledger, and the hash chain over all lines.
//!
//! headₙ = SHA-256(domain ‖ headₙ₋₁ ‖ n as 8 big-endian bytes ‖ bodyₙ), head₋₁ = 0. The body is the
//! JSON text as stored. A head therefore fixes every earlier entry: editing, reordering or removing
//! one changes all later heads.

use reticent_accounting::{Cost, Price};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::identity::hex32;
use crate::{Identity, RequestId};

/// One entry of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place, from 0.
    pub sequence: u64,
    /// When it was written, in seconds since 1970 by the machine's clock; for people only.
    pub time: u64,
    /// What happened.
    pub kind: EntryKind,
    /// The chain's head after this entry.
    pub head: [u8; 32],
}

/// What an entry records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum EntryKind {
    /// The registration; always entry 0 and only that.
    Created(Box<Identity>),
    /// A payment: made before data are touched, never undone.
    Spend(Box<Spend>),
    /// A value that was stored and then handed out.
    Release {
        /// The request it answers.
        request: RequestId,
        /// SHA-256 of the stored value.
        #[serde(with = "hex32")]
        digest: [u8; 32],
    },
    /// A raised cap.
    Raise {
        /// The new cap.
        cap: Cost,
        /// Who raised it.
        who: String,
    },
}

/// A payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spend {
    /// The request it pays for.
    pub request: RequestId,
    /// Who asked.
    pub analyst: String,
    /// The kind of release, for people.
    pub label: String,
    /// The price under both relations.
    pub price: Price,
    /// Partition and part, if the rows read are one part of a declared split.
    pub partition: Option<(String, String)>,
}

#[derive(Serialize, Deserialize)]
struct Body {
    time: u64,
    #[serde(flatten)]
    kind: EntryKind,
}

/// The head before the first entry.
pub(crate) const NO_HEAD: [u8; 32] = [0; 32];

const DOMAIN: &[u8] = b"reticent ledger entry\n";

/// The head after an entry.
pub(crate) fn next_head(previous: &[u8; 32], sequence: u64, body: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(DOMAIN);
    hash.update(previous);
    hash.update(sequence.to_be_bytes());
    hash.update(body.as_bytes());
    hash.finalize().into()
}

/// SHA-256 of a released value.
pub(crate) fn digest(payload: &[u8]) -> [u8; 32] {
    Sha256::digest(payload).into()
}

/// The stored text of an entry made now.
pub(crate) fn write_body(kind: &EntryKind, time: u64) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Body {
        time,
        kind: kind.clone(),
    })
}

/// Time and content of a stored text.
pub(crate) fn read_body(body: &str) -> Result<(u64, EntryKind), serde_json::Error> {
    serde_json::from_str::<Body>(body).map(|b| (b.time, b.kind))
}
