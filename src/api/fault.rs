//! Faults at the boundary: each is logged here, once, with its trace id, and becomes a problem that shows nothing internal.

use actix_web::HttpRequest;

use super::trace::TraceId;
use crate::db::Fault;
use crate::problem::{Code, Problem};

/// The target of the log of faults, for `RUST_LOG`.
pub const FAULT_LOG: &str = "order_service::fault";

/// Seconds after which a database that was away or busy is worth another try.
const RETRY_AFTER_SECONDS: u64 = 1;

/// What the client is told of a fault of ours.
#[must_use]
pub fn problem_of(request: &HttpRequest, fault: &Fault) -> Problem {
    log::error!(target: FAULT_LOG, "trace_id={} error={:?}", TraceId::of(request), fault.to_string());
    let unavailable = |detail| Problem::unavailable(detail, RETRY_AFTER_SECONDS);
    match fault {
        Fault::Busy => unavailable("Too many requests wait for the database. Nothing happened."),
        Fault::ClaimHeld | Fault::Unreachable(_) | Fault::Database(_) => {
            unavailable("The database cannot be used right now. Nothing happened.")
        }
        Fault::Serialization(_) => unavailable("Too many rivals changed the same rows. Nothing happened."),
        Fault::CommitUnknown(_) => {
            unavailable("The database failed while it committed: the outcome is not known. The same key finds out.")
        }
        Fault::Bug(_) => Problem::new(Code::InternalError, "The service failed in a way that it did not expect."),
    }
}
