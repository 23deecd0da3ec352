//! What the end of a message does to its order and to operations: for the relay, which heard the ERP, and for the duty desk.
//! A hand-over makes its order `confirmed` or `rejected`; a cancel makes it `cancelled`, or `confirmed` again. A mail changes
//! no order.

use super::Retention;
use super::operation::{self, End, Open};
use super::order_rows::{self, OrderRow};
use crate::db::{self, Db, Fault};
use crate::message::{self, Status};
use crate::outbox::{self, Kind, State};
use crate::problem::Code;

/// The message that came to an end, or to a person.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The tenant.
    pub tenant_id: &'a str,
    /// The order that the message is about; its row is locked by [`conclude`].
    pub order_id: &'a str,
    /// The operation that the message belongs to.
    pub operation_id: &'a str,
    /// The message.
    pub message_id: &'a str,
    /// What it was to tell.
    pub kind: Kind,
}

/// How it came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion<'a> {
    /// It has arrived; with the ERP's own name of the order, where it told one.
    Delivered(Option<&'a str>),
    /// The other side, or the duty desk, said no for good.
    No(Code),
    /// A person has to look.
    Unresolved,
}

/// Moves the order and the operations on, inside the caller's transaction, which has settled the message.
///
/// # Errors
/// A [`Fault`] of the statements.
pub fn conclude(
    db: &mut Db,
    subject: &Subject<'_>,
    conclusion: Conclusion<'_>,
    retention: Retention,
    now: db::Instant,
) -> Result<(), Fault> {
    let order = order_rows::find_and_lock(db, subject.tenant_id, subject.order_id)?;
    let order =
        order.ok_or_else(|| Fault::Bug(format!("a message is about the unknown order {}", subject.order_id)))?;
    let own = [subject.operation_id.to_owned()];
    let operation = (subject.tenant_id, own.as_slice());
    let mut windows = Windows { db, retention, now };
    match conclusion {
        Conclusion::Unresolved => {
            operation::set_open(windows.db, operation, Open::Unresolved, now)?;
            windows.set_message(subject, Status::Unresolved)
        }
        Conclusion::Delivered(erp_reference) => {
            let status = match subject.kind {
                // A cancel may be on its way already: then it goes on.
                Kind::OrderCreated | Kind::OrderReplaced if order.status == "accepted" => "confirmed",
                Kind::OrderCancelled => "cancelled",
                Kind::OrderCreated | Kind::OrderReplaced | Kind::PaymentReceived | Kind::MessageRequested => {
                    &order.status
                }
            };
            // What an ERP names when it takes a payment or a cancel is not the order.
            let of_order = match subject.kind {
                Kind::OrderCreated | Kind::OrderReplaced => erp_reference,
                Kind::OrderCancelled | Kind::PaymentReceived | Kind::MessageRequested => None,
            };
            windows.set_order(subject, &order, status, of_order)?;
            windows.set_message(subject, Status::Sent)?;
            windows.end(operation, End::Succeeded)
        }
        Conclusion::No(code) => {
            windows.end(operation, End::Failed(no_of(subject.kind, code)))?;
            match subject.kind {
                Kind::OrderCreated | Kind::OrderReplaced => windows.refuse_order(subject, &order),
                Kind::OrderCancelled => windows.set_order(subject, &order, "confirmed", None),
                Kind::PaymentReceived => Ok(()),
                Kind::MessageRequested => windows.set_message(subject, Status::Failed),
            }
        }
    }
}

/// Lets an unresolved operation go on, inside the caller's transaction, which has released the message.
///
/// # Errors
/// A [`Fault`] of the statements.
pub fn reopen(db: &mut Db, subject: &Subject<'_>, retention: Retention, now: db::Instant) -> Result<(), Fault> {
    let own = [subject.operation_id.to_owned()];
    operation::set_open(db, (subject.tenant_id, &own), Open::Processing, now)?;
    Windows { db, retention, now }.set_message(subject, Status::Processing)
}

/// An ERP that refuses to cancel says that it is too late; what refuses a mail is no ERP.
fn no_of(kind: Kind, code: Code) -> Code {
    match (kind, code) {
        (Kind::OrderCancelled, Code::RefusedByErp) => Code::OrderNotCancellable,
        (Kind::MessageRequested, Code::RefusedByErp) => Code::RefusedByMailServer,
        (_, code) => code,
    }
}

/// The connection of a transaction, with what every change needs.
struct Windows<'a> {
    db: &'a mut Db,
    retention: Retention,
    now: db::Instant,
}

impl Windows<'_> {
    fn end(&mut self, operations: (&str, &[String]), end: End) -> Result<(), Fault> {
        operation::end(self.db, operations, end, self.retention, self.now)
    }

    fn set_order(
        &mut self,
        subject: &Subject<'_>,
        order: &OrderRow,
        status: &str,
        erp_reference: Option<&str>,
    ) -> Result<(), Fault> {
        if status == order.status && erp_reference.is_none() {
            return Ok(());
        }
        order_rows::set_by_erp(self.db, subject.tenant_id, order, (status, erp_reference), self.now)
    }

    /// What is told to an ERP has no row of its own.
    fn set_message(&mut self, subject: &Subject<'_>, status: Status) -> Result<(), Fault> {
        match subject.kind {
            Kind::MessageRequested => {
                message::set_status(self.db, (subject.tenant_id, subject.message_id), status, self.now)
            }
            Kind::OrderCreated | Kind::OrderReplaced | Kind::OrderCancelled | Kind::PaymentReceived => Ok(()),
        }
    }

    /// The order will not be in the ERP. A cancel that waited for it has what it wanted, and nothing more is to be told;
    /// else payments that waited for it become a matter for a person, until another hand-over follows. What was reserved for
    /// the order stays reserved: a corrected order may take its place, and only the shop knows whether one will.
    fn refuse_order(&mut self, subject: &Subject<'_>, order: &OrderRow) -> Result<(), Fault> {
        let (tenant_id, order_id) = (subject.tenant_id, subject.order_id);
        if order.status == "cancelling" {
            let rest = outbox::withdraw_rest(self.db, tenant_id, order_id)?;
            let (cancels, others): (Vec<_>, Vec<_>) =
                rest.into_iter().partition(|(_, kind)| *kind == Kind::OrderCancelled);
            self.end((tenant_id, &names(cancels)), End::Succeeded)?;
            self.end((tenant_id, &names(others)), End::Failed(Code::OrderWithdrawn))?;
            return self.set_order(subject, order, "cancelled", None);
        }
        let held_back = outbox::move_all(self.db, (tenant_id, order_id), State::Waiting, State::Parked)?;
        operation::set_open(self.db, (tenant_id, &held_back), Open::Unresolved, self.now)?;
        self.set_order(subject, order, "rejected", None)
    }
}

fn names(operations: Vec<(String, Kind)>) -> Vec<String> {
    operations.into_iter().map(|(operation_id, _)| operation_id).collect()
}
