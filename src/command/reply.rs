//! What a command says: done or stopped, and the answers that become of it. An answer is plain data: what is recorded is
//! what is sent.

use crate::db::{self, Fault};
use crate::json::Json;
use crate::problem::Problem;

/// A command that was carried out.
#[derive(Clone, Debug)]
pub struct Done {
    /// HTTP status: 201 when something was made, else 200.
    pub status: u16,
    /// The state of the resource, the member `status` of the answer.
    pub state: &'static str,
    /// The member that holds the resource's id: `orderId`.
    pub id_member: &'static str,
    /// The resource's id.
    pub id: String,
    /// The resource's path; also its `Location` when it was made.
    pub path: String,
    /// The order that the command is about, where there is one.
    pub order_id: Option<String>,
    /// Whether the command is carried on elsewhere: its operation is then `processing`, else `succeeded`.
    pub goes_on: bool,
}

impl Done {
    /// The JSON document of the answer.
    pub(super) fn body(&self, operation_id: &str) -> String {
        let text = |value: &str| Json::Text(value.to_owned());
        let member = |name: &str, value| (name.to_owned(), value);
        Json::Object(vec![
            member("status", text(self.state)),
            member(self.id_member, text(&self.id)),
            member("operationId", text(operation_id)),
            member(
                "links",
                Json::Object(vec![
                    member("self", text(&self.path)),
                    member("operation", Json::Text(operation_path(operation_id))),
                ]),
            ),
        ])
        .to_string()
    }
}

/// The path of an operation.
#[must_use]
pub fn operation_path(operation_id: &str) -> String {
    format!("/v1/operations/{operation_id}")
}

/// Why a command was not carried out.
#[derive(Debug)]
pub enum Stop {
    /// A deterministic no of the rules: recorded and replayed like a success.
    Refused(Box<Problem>),
    /// A failure of ours: everything is undone, and the key is free.
    Fault(Fault),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Stop {
        Stop::Refused(Box::new(problem))
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}

impl From<diesel::result::Error> for Stop {
    fn from(error: diesel::result::Error) -> Stop {
        Stop::Fault(error.into())
    }
}

/// The bytes and headers that are recorded and sent, the first time and every time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// HTTP status code.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: String,
    /// `Location`, when something was made.
    pub location: Option<String>,
    /// The body.
    pub body: String,
}

/// What a client is told about its command.
#[derive(Clone, Debug)]
pub enum Answer {
    /// This very call carried the command out, or was refused by the rules.
    First {
        /// What was recorded.
        recorded: Recorded,
        /// The end of the replay window, as of now.
        expires: db::Instant,
        /// Whether the rules said no.
        refused: bool,
    },
    /// An earlier call did; this is its answer again.
    Replay {
        /// What was recorded.
        recorded: Recorded,
        /// The end of the replay window, as of now.
        expires: db::Instant,
    },
    /// The key stands for another request.
    Conflict(Box<Problem>),
    /// The key is spent: the answer is no longer kept.
    Expired(Box<Problem>),
    /// A rival works on this key, and did not come to an end in time.
    InProgress,
}
