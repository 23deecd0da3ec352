//! The integration tests, one binary: the same claims, proved on SQLite and on PostgreSQL.

mod fingerprint;
mod harness;
mod held_keys;
mod json_input;
mod model;
mod order_body;
mod payments;
mod races;
mod readme;
mod reservations;
mod retention;
mod retention_race;
mod rivals;
mod settings;
mod smoke;
mod stock;
mod tidy;
mod two_processes;
