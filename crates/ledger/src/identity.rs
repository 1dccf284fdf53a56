//! What is fixed when a data set is registered, and the names of requests.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use reticent_accounting::{Cost, Currency, Relation};
use serde::{Deserialize, Serialize};

/// Everything about a ledger that never changes, except that the cap may be raised.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The data set's id.
    pub dataset: String,
    /// Its version.
    pub data_version: String,
    /// The neighbour relation every price is debited under.
    pub relation: Relation,
    /// The currency of every cap.
    pub currency: Currency,
    /// The cap; [`crate::Ledger::identity`] shows the present one after a raise.
    pub cap: Cost,
    /// Caps by analyst; `"default"` is the cap of everyone not named.
    pub analysts: BTreeMap<String, Cost>,
    /// The key of the data fingerprint.
    #[serde(with = "hex32")]
    pub fingerprint_key: [u8; 32],
    /// The keyed fingerprint of the data.
    #[serde(with = "hex32")]
    pub fingerprint: [u8; 32],
    /// A digest of what was declared about records and units: columns, unit, number of rows.
    #[serde(with = "hex32")]
    pub schema_digest: [u8; 32],
}

/// The fingerprint and its key stay out of logs.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("dataset", &self.dataset)
            .field("data_version", &self.data_version)
            .field("relation", &self.relation)
            .field("currency", &self.currency)
            .field("cap", &self.cap)
            .field("analysts", &self.analysts)
            .finish_non_exhaustive()
    }
}

impl Identity {
    /// The cap of one analyst, if there is one.
    pub fn analyst_cap(&self, analyst: &str) -> Option<&Cost> {
        self.analysts
            .get(analyst)
            .or_else(|| self.analysts.get("default"))
    }
}

/// The SHA-256 that names a request; written as 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId(#[serde(with = "hex32")] [u8; 32]);

impl RequestId {
    /// From the digest.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_hex(&self.0))
    }
}

/// Text that is not 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a request id: it must be 64 hexadecimal digits")]
pub struct NotARequestId(String);

impl FromStr for RequestId {
    type Err = NotARequestId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        from_hex(text)
            .map(Self)
            .ok_or_else(|| NotARequestId(text.chars().take(80).collect()))
    }
}

/// Lower-case hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, b| text + &format!("{b:02x}"))
}

/// Reads exactly 64 hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// Serde form of a digest: hexadecimal text.
pub(crate) mod hex32 {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::to_hex(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(from)?;
        super::from_hex(&text).ok_or_else(|| D::Error::custom("expected 64 hexadecimal digits"))
    }
}
