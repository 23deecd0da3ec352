//! The history check: what clients asked and heard in a mixed run, over real sockets, of the real program that is killed
//! in the middle, must be explainable by one order of steps of the contract.
//!
//! `event` is the history, `contract` the sequential model, `linear` the checker, `workload` the shops, `run` the whole.
//! The checker is tested itself: on histories made by hand here, and with the feature `deliberate-breaks` on a service
//! that is broken on purpose.

/// What it shares with the other tests: databases, processes, and a client.
#[path = "../it/harness"]
#[allow(dead_code, reason = "this test stands on a part of the common ground")]
mod harness {
    pub mod cluster;
    pub mod database;
    pub mod http;
    pub mod orders;
    pub mod ports;
    pub mod process;
    pub mod raw;
    pub mod settings;
    pub mod wait;
}

#[cfg(feature = "deliberate-breaks")]
mod breaks;
mod by_hand;
mod contract;
mod event;
mod linear;
mod run;
mod workload;

use harness::database::Dialect;
use run::Plan;

mod a_mixed_run_is_one_order_of_steps {
    use super::{Dialect, Plan, explained};

    #[test]
    fn sqlite() {
        explained(&Plan { dialect: Dialect::Sqlite, processes: 1, ..Plan::default() });
    }

    #[test]
    fn postgres() {
        explained(&Plan { dialect: Dialect::Postgres, processes: 2, ..Plan::default() });
    }
}

fn explained(plan: &Plan) {
    run::history_of(plan).unwrap_or_else(|fault| panic!("{fault}"));
}
