//! (stub)

pub mod access;
pub mod answer;
pub mod body;
pub mod prefer;
pub mod trace;
pub mod unread;
