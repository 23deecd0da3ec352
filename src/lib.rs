//! An order service (e-shop to ERP) with idempotent commands.

pub mod config;

pub mod app;

pub mod api;

pub mod command;

pub mod outbox;

pub mod order;

pub mod money;

pub mod schema;

pub mod json;

pub mod problem;

pub mod db;

pub mod metrics;
