//! `operations.resolve`: the duty desk has looked at the ERP, and says how an unresolved operation ended. Who said so, when
//! and why is written down.

use super::fingerprint::Intent;
use super::intervention::{self, Intervention, Target};
use super::settlement::{self, Conclusion, Subject};
use super::{Command, Done, Method, Spec, Stop, Success, Tx};
use crate::outbox::settle::Decision;
use crate::problem::{Code, Problem};
use crate::schema::{Fault as BodyFault, Kind, Member, Object, code};

/// The operation that is to end, and how.
#[derive(Clone, Debug)]
pub struct ResolveOperation {
    operation_id: String,
    verdict: Verdict,
}

#[derive(Clone, Debug)]
enum Verdict {
    /// The ERP has it, under this name of its own; or the mail was sent, which has none.
    Delivered { erp_reference: Option<String>, reason: Option<String> },
    /// It is given up, for this reason.
    Abandoned { reason: String },
}

/// The body of the command.
static BODY: Object = Object {
    name: "Resolution",
    members: &[
        Member::required("outcome", Kind::Token(&["delivered", "abandoned"]), "What a person found, or decided."),
        Member::optional(
            "erpReference",
            Kind::Text { min: 1, max: 255 },
            "The ERP's own name of the order; required with `delivered`, not allowed with `abandoned` nor of a mail.",
        ),
        Member::optional(
            "reason",
            Kind::Text { min: 1, max: 500 },
            "Why it is given up, for those who ask later; required with `abandoned`, allowed with `delivered`.",
        ),
    ],
};

impl Command for ResolveOperation {
    const SPEC: Spec = Spec {
        name: "operations.resolve",
        method: Method::Post,
        route: "/v1/operations/{operationId}/resolve",
        scope: "operations:manage",
        body: &BODY,
        body_may_be_empty: false,
        summary: "End an unresolved operation",
        description: "Ends an `unresolved` operation by what a person found at the ERP. `delivered`: the ERP has it; the order \
            becomes what it would have become (`confirmed`, `cancelled`); a mail was sent. `abandoned`: it is given up; an order that was to be \
            handed over becomes `rejected`, one that was to be cancelled is `confirmed` again. Nothing is sent to the ERP.",
        examples: &[
            ("delivered", r#"{"outcome":"delivered","erpReference":"SO-1042"}"#),
            ("mail", r#"{"outcome":"delivered","reason":"The log of the mail server has it."}"#),
            ("abandoned", r#"{"outcome":"abandoned","reason":"The customer ordered by telephone."}"#),
        ],
        successes: &[Success {
            status: 200,
            meaning: "The operation has ended.",
            id_member: intervention::TARGET_MEMBER,
            example: r#"{"status":"succeeded","targetOperationId":"op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b","operationId":"op_5be3a94d7f8a2b4c6d8e0f1a2b6f1d0c","links":{"self":"/v1/operations/op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b","operation":"/v1/operations/op_5be3a94d7f8a2b4c6d8e0f1a2b6f1d0c"}}"#,
        }],
        refusals: &[Code::OperationNotFound, Code::OperationNotUnresolved],
    };

    fn parse(asked: &Intent) -> Result<ResolveOperation, Problem> {
        let body = &asked.body;
        let mut faults = BODY.faults(body);
        let (erp_reference, reason) = (body.text("erpReference"), body.text("reason"));
        let is_there = |name| body.get(name).is_some_and(|value| !value.is_null());
        let mut fault = |pointer: &str, code: &'static str, message: &str| {
            faults.push(BodyFault { pointer: pointer.to_owned(), code, message: message.to_owned() });
        };
        match body.text("outcome") {
            Some("abandoned") if is_there("erpReference") => {
                fault("/erpReference", code::UNKNOWN_MEMBER, "What is given up has no name at the ERP.");
            }
            Some("abandoned") if !is_there("reason") => {
                fault("/reason", code::REQUIRED, "Say why it is given up.");
            }
            _ => {}
        }
        let verdict = match (body.text("outcome"), erp_reference, reason) {
            (Some("delivered"), name, _) => {
                Some(Verdict::Delivered { erp_reference: name.map(str::to_owned), reason: reason.map(str::to_owned) })
            }
            (Some("abandoned"), _, Some(reason)) => Some(Verdict::Abandoned { reason: reason.to_owned() }),
            _ => None,
        };
        match verdict {
            Some(verdict) if faults.is_empty() => {
                Ok(ResolveOperation { operation_id: asked.parameter(intervention::OPERATION_ID).to_owned(), verdict })
            }
            _ => Err(Problem::invalid(faults)),
        }
    }

    fn execute(self, tx: &mut Tx<'_>) -> Result<Done, Stop> {
        let target = intervention::lock_unresolved(tx, &self.operation_id)?;
        self.verdict.check_name(&target)?;
        let (decision, conclusion, audit, state) = match &self.verdict {
            Verdict::Delivered { erp_reference, reason } => (
                Decision::Delivered,
                Conclusion::Delivered(erp_reference.as_deref()),
                Intervention {
                    decision: "delivered",
                    erp_reference: erp_reference.as_deref(),
                    reason: reason.as_deref(),
                },
                "succeeded",
            ),
            Verdict::Abandoned { reason } => (
                Decision::Abandoned,
                Conclusion::No(Code::Abandoned),
                Intervention { decision: "abandoned", erp_reference: None, reason: Some(reason) },
                "failed",
            ),
        };
        let parked = intervention::decide(tx, &target, decision)?;
        let subject = Subject {
            tenant_id: &tx.call.tenant_id,
            order_id: &target.order_id,
            operation_id: &target.operation_id,
            message_id: &parked.message_id,
            kind: parked.kind,
        };
        settlement::conclude(tx.db, &subject, conclusion, tx.call.retention, tx.now)?;
        intervention::write_down(tx, &target.operation_id, &audit)?;
        Ok(intervention::done(target, state))
    }
}

impl Verdict {
    /// An order that the ERP has is known there by a name; a mail has none. Which of the two it is, only the target tells.
    fn check_name(&self, target: &Target) -> Result<(), Problem> {
        let (code, message) = match self {
            Verdict::Delivered { erp_reference: None, .. } if !target.is_mail => {
                (code::REQUIRED, "Say under which name the ERP has it.")
            }
            Verdict::Delivered { erp_reference: Some(_), .. } if target.is_mail => {
                (code::UNKNOWN_MEMBER, "A mail has no name at the ERP.")
            }
            Verdict::Delivered { .. } | Verdict::Abandoned { .. } => return Ok(()),
        };
        let fault = BodyFault { pointer: "/erpReference".to_owned(), code, message: message.to_owned() };
        Err(Problem::invalid(vec![fault]))
    }
}
