//! The reads of operations: their routes and what the contract document says of them.

use actix_web::web;
use utoipa::openapi::schema::ObjectBuilder;

use super::{Page, STATES, View};
use crate::api::document::headers::{AnswerHeader, RequestHeader};
use crate::api::document::schemas::{self, one_of, text};
use crate::api::page;
use crate::api::read::{Access, QueryParameter, Read};
use crate::problem::Code;

/// `GET /v1/operations/{operationId}`.
pub static GET: Read = Read {
    path: "/v1/operations/{operationId}",
    route: || web::route().to(super::get),
    name: "operationsGet",
    tag: "operations",
    access: Access::AnyKey,
    summary: "Read an operation",
    description: "How far a command has come. A client sees its own operations; with the scope `operations:read` it sees those \
        of its whole tenant. While the operation is not final the answer has `Retry-After`. `Prefer: wait=20` holds the \
        answer until the operation changes or the time is over, at most 60 seconds. Until the first try of a command has \
        committed its operation is 404: send the command again with the same key.",
    query: &[],
    headers: &[RequestHeader::Prefer],
    answer: |schemas| schemas.of::<View<'static>>().into(),
    example: || {
        r#"{"operationId":"op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b","command":"orders.create","status":"succeeded",
        "orderId":"ord_019adb5a34c27f10b6c9f1b0d5a1e9c4","createdAt":"2026-12-02T08:15:31.402611Z",
        "updatedAt":"2026-12-02T08:15:31.402611Z","completedAt":"2026-12-02T08:15:31.402611Z",
        "expiresAt":"2026-12-09T08:15:31.402611Z",
        "erp":{"state":"delivered","reference":"web/48211","erpReference":"SO-1042","nextAttemptAt":null,"attempts":[
        {"number":1,"startedAt":"2026-12-02T08:15:31.402Z","endedAt":"2026-12-02T08:15:32.001Z",
        "outcome":"delivered","detail":"the ERP has taken it"}]},"error":null,
        "links":{"self":"/v1/operations/op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b",
        "order":"/v1/orders/ord_019adb5a34c27f10b6c9f1b0d5a1e9c4"}}"#
            .to_owned()
    },
    answer_headers: &[AnswerHeader::RetryAfter, AnswerHeader::PreferenceApplied],
    problems: &[Code::OperationNotFound],
};

/// `GET /v1/operations`.
pub static LIST: Read = Read {
    path: "/v1/operations",
    route: || web::route().to(super::list),
    name: "operationsList",
    tag: "operations",
    access: Access::AnyKey,
    summary: "List operations, or find the one of a key",
    description: "Newest first: the client's own, or with the scope `operations:read` those of its whole tenant. `command` and \
        `idempotencyKey` together find the one operation that a key of the asking client stands for, without sending the \
        command again. `status=unresolved` is the duty desk's list.",
    query: &[
        page::LIMIT,
        page::CURSOR,
        QueryParameter {
            name: "command",
            doc: "Only operations of this command, such as `orders.create`.",
            schema: || text("The name of a command.").into(),
        },
        QueryParameter {
            name: "idempotencyKey",
            doc: "Only the operation of this key of the asking client; needs `command`.",
            schema: || text("A key, without quotes.").into(),
        },
        QueryParameter {
            name: "status",
            doc: "Only operations in this state.",
            schema: || one_of(STATES, "A state.").into(),
        },
        QueryParameter {
            name: "orderId",
            doc: "Only operations about this order.",
            schema: || text("The id of an order.").into(),
        },
    ],
    headers: &[],
    answer: |schemas| schemas.of::<Page<'static>>().into(),
    example: || format!(r#"{{"operations":[{}],"nextCursor":null}}"#, (GET.example)()),
    answer_headers: &[],
    problems: &[Code::InvalidParameter],
};

pub(super) fn status() -> ObjectBuilder {
    one_of(STATES, "How far it has come. `succeeded` and `failed` are final for ever; `unresolved` needs a person.")
}

pub(super) fn links() -> ObjectBuilder {
    schemas::links(&["self"])
}
