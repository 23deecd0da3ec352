//! `operations.retry`: the duty desk wants an unresolved operation tried again, with a new budget. Who asked is written down.

use super::fingerprint::Intent;
use super::intervention::{self, Intervention};
use super::settlement::{self, Subject};
use super::{Command, Done, Method, Spec, Stop, Success, Tx};
use crate::outbox::settle::Decision;
use crate::problem::{Code, Problem};
use crate::schema::Object;

/// The operation that is to be tried again.
#[derive(Clone, Debug)]
pub struct RetryOperation {
    operation_id: String,
}

static NOTHING: Object = Object { name: "Nothing", members: &[] };

impl Command for RetryOperation {
    const SPEC: Spec = Spec {
        name: "operations.retry",
        method: Method::Post,
        route: "/v1/operations/{operationId}/retry",
        scope: "operations:manage",
        body: &NOTHING,
        body_may_be_empty: true,
        summary: "Try an unresolved operation again",
        description: "Makes an `unresolved` operation `processing` again, with a new budget of attempts and time. Where the \
            ERP can be asked whether it has the order, it is asked first. Where it cannot, and always with a mail, the message \
            is sent once more: look at the ERP, or at the mail server, before you do this.",
        examples: &[("empty", "{}")],
        successes: &[Success {
            status: 200,
            meaning: "The operation goes on.",
            id_member: intervention::TARGET_MEMBER,
            example: r#"{"status":"processing","targetOperationId":"op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b","operationId":"op_5be3a94d7f8a2b4c6d8e0f1a2b6f1d0c","links":{"self":"/v1/operations/op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b","operation":"/v1/operations/op_5be3a94d7f8a2b4c6d8e0f1a2b6f1d0c"}}"#,
        }],
        refusals: &[Code::OperationNotFound, Code::OperationNotUnresolved],
    };

    fn parse(asked: &Intent) -> Result<RetryOperation, Problem> {
        let faults = NOTHING.faults(&asked.body);
        if !faults.is_empty() {
            return Err(Problem::invalid(faults));
        }
        Ok(RetryOperation { operation_id: asked.parameter(intervention::OPERATION_ID).to_owned() })
    }

    fn execute(self, tx: &mut Tx<'_>) -> Result<Done, Stop> {
        let target = intervention::lock_unresolved(tx, &self.operation_id)?;
        let parked = intervention::decide(tx, &target, Decision::Retry)?;
        let subject = Subject {
            tenant_id: &tx.call.tenant_id,
            order_id: &target.order_id,
            operation_id: &target.operation_id,
            message_id: &parked.message_id,
            kind: parked.kind,
        };
        settlement::reopen(tx.db, &subject, tx.call.retention, tx.now)?;
        let audit = Intervention { decision: "retry", erp_reference: None, reason: None };
        intervention::write_down(tx, &target.operation_id, &audit)?;
        Ok(intervention::done(target, "processing"))
    }
}
