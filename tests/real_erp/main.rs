//! The tests against a real ERP: Tryton, on a database of its own for each test. What they assert is what Tryton's tables
//! hold afterwards; a good answer of ours proves nothing. `make test-erp` sets the ERP up and runs them.

#[path = "../it"]
mod it {
    #![allow(
        dead_code,
        unused_imports,
        unused_macros,
        reason = "the ground is that of all tests, and these stand on a part of it"
    )]
    #[path = "erp/conformance.rs"]
    pub mod conformance;
    pub mod harness;
}
use it::harness;

mod arrival;
mod bench;
mod cancel;
mod connection;
mod crowd;
mod doubt;
mod promises;
mod reconcile;
mod tryton;
mod wire;
