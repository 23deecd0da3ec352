//! What a message tells, by which channel it leaves, and how far it is.

use crate::db::Fault;

/// A way out of the service. Each has a connection, a pace and a pause of its own, and neither waits for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// To the tenant's ERP.
    Erp,
    /// By e-mail to the customer.
    Mail,
}

impl Channel {
    /// Every channel.
    pub const ALL: [Channel; 2] = [Channel::Erp, Channel::Mail];

    /// The name in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Channel::Erp => "erp",
            Channel::Mail => "mail",
        }
    }

    /// The channel of a stored name.
    ///
    /// # Errors
    /// [`Fault::Bug`] for a name that no version of this program wrote.
    pub fn stored(name: &str) -> Result<Channel, Fault> {
        let found = Channel::ALL.into_iter().find(|channel| channel.as_str() == name);
        found.ok_or_else(|| Fault::Bug(format!("a stored row has the unknown channel {name:?}")))
    }
}

/// What a message tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A new order: the hand-over.
    OrderCreated,
    /// The order that stands in the place of one that the ERP refused: a hand-over too.
    OrderReplaced,
    /// The shop does not want the order any more.
    OrderCancelled,
    /// The order, or a part of it, was paid.
    PaymentReceived,
    /// A client wants a mail sent to the order's customer. No ERP ever hears of it.
    MessageRequested,
}

impl Kind {
    /// The kinds that hand an order over.
    pub const HAND_OVERS: [Kind; 2] = [Kind::OrderCreated, Kind::OrderReplaced];

    /// The name in the database and in the member `type` of the payload.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::OrderCreated => "order.created",
            Kind::OrderReplaced => "order.replaced",
            Kind::OrderCancelled => "order.cancelled",
            Kind::PaymentReceived => "payment.received",
            Kind::MessageRequested => "message.requested",
        }
    }

    /// The channel by which it leaves.
    #[must_use]
    pub fn channel(self) -> Channel {
        match self {
            Kind::OrderCreated | Kind::OrderReplaced | Kind::OrderCancelled | Kind::PaymentReceived => Channel::Erp,
            Kind::MessageRequested => Channel::Mail,
        }
    }

    /// The kind of a stored name.
    ///
    /// # Errors
    /// [`Fault::Bug`] for a name that no version of this program wrote.
    pub fn stored(name: &str) -> Result<Kind, Fault> {
        let all = [
            Kind::OrderCreated,
            Kind::OrderReplaced,
            Kind::OrderCancelled,
            Kind::PaymentReceived,
            Kind::MessageRequested,
        ];
        let found = all.into_iter().find(|kind| kind.as_str() == name);
        found.ok_or_else(|| Fault::Bug(format!("a stored message has the unknown kind {name:?}")))
    }
}

/// How far a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is to be delivered, now or at its next attempt.
    Waiting,
    /// A relay is delivering it, or has died over it.
    Leased,
    /// A person has to look. It holds up the later messages of its order on the same channel.
    Parked,
    /// It has arrived. Final.
    Delivered,
    /// The other side said no for good. Final.
    Refused,
    /// The duty desk gave it up. Final.
    Abandoned,
    /// A command took it back before the ERP was asked. Final, and never the state of a mail.
    Withdrawn,
}

impl State {
    /// The states that are not final.
    pub const OPEN: [State; 3] = [State::Waiting, State::Leased, State::Parked];

    /// The name in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Leased => "leased",
            State::Parked => "parked",
            State::Delivered => "delivered",
            State::Refused => "refused",
            State::Abandoned => "abandoned",
            State::Withdrawn => "withdrawn",
        }
    }
}
