//! `reticent stream`: events in, private counts out, tick by tick, for as long as it runs.
//!
//! [`config`] reads the declaration, [`source`] reads events with the place they came from, [`line`](mod@line) says what each line is, [`clock`] says what closes
//! ticks, [`mod@run`] closes them and pays, [`mod@statement`] says what is guaranteed, [`store`] makes each tick durable before anything of it is published, [`analysis`] turns noisy counts into
//! estimates, windows and alarms (and does so again after a restart), [`page`] shows them live.
#![allow(
    clippy::cast_precision_loss,
    reason = "counts and sums shown to people are far below 2^53"
)]

pub mod analysis;
pub mod clock;
pub mod config;
mod folder;
mod identity;
pub mod line;
pub mod page;
mod pending;
mod places;
mod publisher;
pub mod run;
pub mod source;
pub mod statement;
pub mod store;
#[cfg(test)]
mod tests;

pub use config::Config;
pub use run::{Options, Running, run};
pub use statement::statement;

use std::path::Path;

use crate::failure::{Error, Failure};

/// A file that failed.
pub(crate) fn file_failed(path: &Path, what: &'static str, source: std::io::Error) -> Failure {
    Error::File {
        path: path.to_owned(),
        what,
        source,
    }
    .into()
}

impl From<reticent_mechanisms::stream::StreamError> for Failure {
    fn from(error: reticent_mechanisms::stream::StreamError) -> Self {
        use crate::outcome::Refusal;
        use reticent_mechanisms::stream::StreamError;
        match error {
            StreamError::Ledger(e) => e.into(),
            other => Refusal::request(other.to_string()).into(),
        }
    }
}
