//! How an attempt to deliver a message ended.

/// How an attempt ended. Only what surely did not arrive is sent again without a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The ERP has taken it, now.
    Delivered,
    /// The ERP had it before, from an earlier attempt whose answer was lost.
    AlreadyThere,
    /// The ERP said no, and will say no again.
    Refused,
    /// The ERP has something else under our name. A person has to look; nothing is overwritten.
    Conflict,
    /// Surely not arrived: no connection was made, or nothing was sent.
    NotDelivered,
    /// The ERP asked us to come back later, and did nothing.
    Unavailable,
    /// The connection itself is wrong: key, host name, certificate. No order is to blame.
    Misconfigured,
    /// Nobody here knows whether it arrived.
    Unknown,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Outcome; 8] = [
        Outcome::Delivered,
        Outcome::AlreadyThere,
        Outcome::Refused,
        Outcome::Conflict,
        Outcome::NotDelivered,
        Outcome::Unavailable,
        Outcome::Misconfigured,
        Outcome::Unknown,
    ];

    /// The name in the database, in operations, in metrics and in the log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Delivered => "delivered",
            Outcome::AlreadyThere => "already_there",
            Outcome::Refused => "refused",
            Outcome::Conflict => "conflict",
            Outcome::NotDelivered => "not_delivered",
            Outcome::Unavailable => "unavailable",
            Outcome::Misconfigured => "misconfigured",
            Outcome::Unknown => "unknown",
        }
    }
}
