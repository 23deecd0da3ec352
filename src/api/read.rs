//! A read as the edge sees it: its path, its handler and its description, in one place. Routes and contract document are made
//! of the same list, so that neither can have a read that the other lacks.

use actix_web::Route;
use utoipa::openapi::{RefOr, Schema};

use super::document::headers::{AnswerHeader, RequestHeader};
use super::document::schemas::Schemas;
use crate::problem::Code;

/// One read: `GET` and `HEAD` of a path.
#[derive(Debug)]
pub struct Read {
    /// Route template: `/v1/orders/{orderId}`.
    pub path: &'static str,
    /// Makes the route with the handler; the method is added to it.
    pub route: fn() -> Route,
    /// The `operationId`: resource and verb, such as `ordersGet`.
    pub name: &'static str,
    /// The resource, under which the document groups it: `orders`.
    pub tag: &'static str,
    /// Who may read.
    pub access: Access,
    /// One line for the contract document.
    pub summary: &'static str,
    /// What a client developer has to know, in Markdown.
    pub description: &'static str,
    /// The parameters of the query.
    pub query: &'static [QueryParameter],
    /// The headers that change the answer. With `If-None-Match` the answer can be 304.
    pub headers: &'static [RequestHeader],
    /// The schema of the 200 answer.
    pub answer: fn(&mut Schemas) -> RefOr<Schema>,
    /// The 200 answer as a JSON text.
    pub example: fn() -> String,
    /// The headers of the 200 answer, beside those of every answer.
    pub answer_headers: &'static [AnswerHeader],
    /// Its problems, beside those of access and of the service itself.
    pub problems: &'static [Code],
}

/// Who may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody, without a key.
    Open,
    /// Every valid key.
    AnyKey,
    /// A key with this scope.
    Scope(&'static str),
}

/// One parameter of a query.
#[derive(Debug)]
pub struct QueryParameter {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// What values it takes.
    pub schema: fn() -> RefOr<Schema>,
}
