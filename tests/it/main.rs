//! The integration tests, one binary: the same claims, proved on SQLite and on PostgreSQL.

mod contract;
mod fingerprint;
mod harness;
mod json_input;
mod order_body;
mod settings;
mod smoke;
mod tidy;
