//! The ledger as its callers see it: payments, caps, tampering, crashes, full disks.

mod crash;
mod disk;
mod pay;
mod support;
mod tamper;
