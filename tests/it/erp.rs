//! The way of an order to the ERP, on both databases, against an ERP that does what the test asks of it.

mod cancel;
mod conformance;
mod connection;
mod doubts;
mod duty;
mod gateways;
mod killed;
mod leases;
mod outcomes;
mod pace;
mod reconcile;
mod sandbox;
mod tryton;
