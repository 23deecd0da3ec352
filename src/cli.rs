//! The tasks of the command line that have a room of their own.

pub(crate) mod erp;
pub(crate) mod reconcile;

/// Why a task ended early: one line for the person who typed it.
pub(crate) type Failure = Box<dyn std::error::Error>;
