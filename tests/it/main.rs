//! The integration tests, one binary: the same claims, proved on SQLite and on PostgreSQL.

mod erp;
mod fingerprint;
mod harness;
mod json_input;
mod order_body;
mod readme;
mod settings;
mod smoke;
mod tidy;
