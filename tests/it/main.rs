//! The integration tests, one binary: the same claims, proved on SQLite and on PostgreSQL.

mod bad_input;
mod crowds;
mod every_command;
mod faults;
mod fingerprint;
mod harness;
mod held_keys;
mod json_input;
mod operations;
mod order_body;
mod order_of_checks;
mod orders_api;
mod orders_cancel;
mod orders_put;
mod payments;
mod races;
mod readme;
mod replay;
mod reservations;
mod retention;
mod retention_race;
mod rights;
mod rivals;

mod settings;
mod smoke;
mod stock;
mod tidy;
mod two_processes;
mod wire;
