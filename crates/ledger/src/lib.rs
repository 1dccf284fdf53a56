//! The durable record of every spend and every release.
