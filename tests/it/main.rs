//! The integration tests, one binary: the same claims, proved on SQLite and on PostgreSQL.

mod fingerprint;
mod harness;
mod held_keys;
mod json_input;
mod order_body;
mod races;
mod settings;
mod smoke;
mod tidy;
mod two_processes;
