//! The ground the tests stand on: databases, the running service, and those who call it.

pub mod cluster;
pub mod database;
pub mod erp;
pub mod head;
pub mod http;
pub mod orders;
pub mod ports;
pub mod process;
pub mod proxy;
pub mod raw;
pub mod relay;
pub mod rival;
pub mod settings;
pub mod tls;
pub mod tryton;
pub mod wait;
pub mod world;
