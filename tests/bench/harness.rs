//! What the bench shares with the integration tests: the real program as a process, looks into a database, free ports.

#![allow(dead_code, reason = "each of the two uses a part of it")]

#[path = "../it/harness/cluster.rs"]
pub mod cluster;
#[path = "../it/harness/database.rs"]
pub mod database;
#[path = "../it/harness/ports.rs"]
pub mod ports;
#[path = "../it/harness/process.rs"]
pub mod process;
#[path = "../it/harness/proxy.rs"]
pub mod proxy;
#[path = "../it/harness/raw.rs"]
pub mod raw;
#[path = "../it/harness/settings.rs"]
pub mod settings;
#[path = "../it/harness/wait.rs"]
pub mod wait;
