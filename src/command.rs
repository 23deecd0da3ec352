//! (stub)

pub mod fingerprint;
pub mod key;
