//! The tasks of the command line that have a room of their own.

mod connection;
pub(crate) mod erp;
pub(crate) mod mail;
pub(crate) mod reconcile;

/// Why a task ended early: one line for the person who typed it.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// The names of a shop and the words of an ERP may hold anything; on a terminal a line stays a line, and moves no cursor.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { letter.escape_default().to_string() } else { letter.into() })
        .collect()
}
