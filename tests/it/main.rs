//! The integration tests, one binary: the same claims, proved on SQLite and on PostgreSQL.

mod fingerprint;
mod harness;
mod json_input;
mod order_body;
mod retention;
mod retention_race;
mod settings;
mod smoke;
mod tidy;
