//! (stub)

pub mod body;
pub mod trace;
