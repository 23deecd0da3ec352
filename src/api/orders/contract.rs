//! The reads of orders: their routes and what the contract document says of them.

use actix_web::web;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};

use super::{NOT_IN_LISTS, SCOPE};
use crate::api::document::headers::{AnswerHeader, RequestHeader};
use crate::api::document::schemas::{Schemas, decimal_text, instant, links, one_of, text, text_or_null};
use crate::api::page;
use crate::api::read::{Access, QueryParameter, Read};
use crate::order::{ORDER, STATES};
use crate::problem::Code;

/// `GET /v1/orders/{orderId}`.
pub static GET: Read = Read {
    path: "/v1/orders/{orderId}",
    route: || web::route().to(super::get),
    name: "ordersGet",
    tag: "orders",
    access: Access::Scope(SCOPE),
    summary: "Read an order",
    description: "The order as it was sent, normalised: decimals as text without trailing zeros, instants in UTC, codes in \
        upper case, defaults filled in, absent members absent; and beside that what has become of it. The `ETag` changes \
        with every visible change, the ERP's included; `If-None-Match` with the one that you have is answered by 304.",
    query: &[],
    headers: &[RequestHeader::IfNoneMatch],
    answer: |schemas| schemas.named("Order", |schemas| order(schemas, &[]).build().into()).into(),
    example: || EXAMPLE.to_owned(),
    answer_headers: &[AnswerHeader::ETag, AnswerHeader::CacheControl],
    problems: &[Code::OrderNotFound],
};

/// `GET /v1/orders`.
pub static LIST: Read = Read {
    path: "/v1/orders",
    route: || web::route().to(super::list),
    name: "ordersList",
    tag: "orders",
    access: Access::Scope(SCOPE),
    summary: "List orders",
    description: "Newest first, in pages. Entries are the orders without `items`, addresses and `extensions`. Orders that are \
        made while you turn the pages do not move those that you have not seen.",
    query: &[
        page::LIMIT,
        page::CURSOR,
        QueryParameter {
            name: "status",
            doc: "Only orders in this state.",
            schema: || one_of(STATES, "A state.").into(),
        },
        QueryParameter {
            name: "channel",
            doc: "Only orders of this channel; empty is the orders without one.",
            schema: || text("A channel.").into(),
        },
        QueryParameter {
            name: "externalOrderId",
            doc: "Only the orders with this technical id of the shop: one a channel.",
            schema: || text("The shop's id.").into(),
        },
        QueryParameter {
            name: "customerId",
            doc: "Only orders of this customer.",
            schema: || text("The shop's id of the customer.").into(),
        },
        QueryParameter {
            name: "createdFrom",
            doc: "Only orders made at this moment or later.",
            schema: || instant("RFC 3339 with offset.").into(),
        },
        QueryParameter {
            name: "createdTo",
            doc: "Only orders made before this moment.",
            schema: || instant("RFC 3339 with offset.").into(),
        },
    ],
    headers: &[],
    answer: page_of_orders,
    example: || {
        let mut entry: serde_json::Value = serde_json::from_str(EXAMPLE).expect("the example is JSON");
        entry.as_object_mut().expect("the example is an object").remove("items");
        serde_json::json!({ "orders": [entry], "nextCursor": null }).to_string()
    },
    answer_headers: &[],
    problems: &[Code::InvalidParameter],
};

const EXAMPLE: &str = r#"{"orderId":"ord_019adb5a34c27f10b6c9f1b0d5a1e9c4","status":"accepted","erpReference":null,
    "paidAmount":"0","operationId":"op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b","createdAt":"2026-12-02T08:15:31.402611Z",
    "updatedAt":"2026-12-02T08:15:31.402611Z","customerId":"cus_123","currency":"EUR","pricesIncludeTax":false,
    "items":[{"kind":"product","sku":"ABC","qty":"2","unit":"C62","priceBaseQty":"1"}],
    "links":{"self":"/v1/orders/ord_019adb5a34c27f10b6c9f1b0d5a1e9c4",
    "operation":"/v1/operations/op_6f1d0c5be3a94d7f8a2b4c6d8e0f1a2b"}}"#;

fn page_of_orders(schemas: &mut Schemas) -> RefOr<Schema> {
    let make = |schemas: &mut Schemas| {
        let left_out: Vec<&str> = NOT_IN_LISTS.iter().copied().chain(["items"]).collect();
        let entry = schemas.named("OrderEntry", |schemas| order(schemas, &left_out).build().into());
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .property("orders", ArrayBuilder::new().items(entry).description(Some("The orders of the page.")))
            .property("nextCursor", text_or_null("The cursor of the next page; `null` on the last."))
            .required("orders")
            .required("nextCursor")
            .build()
            .into()
    };
    schemas.named("OrderPage", make).into()
}

fn order(schemas: &mut Schemas, left_out: &[&str]) -> ObjectBuilder {
    let state = [
        ("orderId", text("The id of the order.")),
        ("status", one_of(STATES, "What has become of the order; `confirmed` means that the ERP has it.")),
        ("erpReference", text_or_null("The ERP's own number of the order, once it has it.")),
        ("paidAmount", decimal_text("The sum of the payments recorded for the order.")),
        ("operationId", text("The operation that wrote the order.")),
        ("createdAt", instant("When the order was written down, in UTC.")),
        ("updatedAt", instant("When the order changed last, in UTC.")),
    ];
    let order = ObjectBuilder::new().schema_type(Type::Object);
    let order = state.into_iter().fold(order, |order, (name, schema)| order.property(name, schema).required(name));
    schemas.stored_members(order, &ORDER, left_out).property("links", links(&["self", "operation"])).required("links")
}
