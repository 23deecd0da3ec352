//! An order service (e-shop to ERP) with idempotent commands: one intent, one order, however often it is sent.
//!
//! The life of a command, in reading order: [`api::commands`] authenticates, reads and normalises it; [`command::run`] claims
//! its key, executes it and records the answer in one transaction; a repeat finds the claim and gets the recorded answer
//! byte for byte. [`outbox`] holds what has to reach the ERP; [`relay`] brings it there through a gateway of [`erp`].
//! [`reconcile`] compares both sides afterwards.
//! [`retention`] clears away what nobody may ask for any more.

pub mod config;

pub mod app;

pub mod api;

pub mod relay;

pub mod reconcile;

pub mod policy;

pub mod retention;

pub mod command;

pub mod stock;

pub mod payment;

pub mod outbox;

pub mod erp;

pub mod order;

pub mod money;

pub mod schema;

pub mod json;

pub mod problem;

pub mod api_key;

pub mod db;

pub mod metrics;
