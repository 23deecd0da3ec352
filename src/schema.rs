//! (stub)

/// One fault of a body.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Fault {
    /// JSON Pointer (RFC 6901) of the member at fault; empty for the whole body.
    pub pointer: String,
    /// Stable code.
    pub code: &'static str,
    /// What is allowed.
    pub message: String,
}
