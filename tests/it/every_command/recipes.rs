//! For every command a call that works, and one that its own rules refuse. A new command needs its recipe here, and then
//! is held to the rules that all commands keep.

/// How to make a command succeed, and how to have it refused.
pub struct Recipe {
    /// The command's name.
    pub command: &'static str,
    /// What has to be there before.
    pub before: &'static [Step],
    /// The call that works.
    pub call: Call,
    /// The call, under a key of its own and after the one that works, that the rules refuse; and the code of the refusal.
    pub refused: (Call, &'static str),
}

/// What is asked for. `{name}` in the path or the body stands for the member `name` of an answer before.
#[derive(Clone, Copy)]
pub struct Call {
    /// HTTP method.
    pub method: &'static str,
    /// The path.
    pub path: &'static str,
    /// Further headers.
    pub headers: &'static [(&'static str, &'static str)],
    /// A JSON text.
    pub body: &'static str,
}

/// One thing that has to be there before.
pub enum Step {
    /// A command that succeeds.
    Call(Call),
    /// A statement past the service. `{name}` stands for the member `name` of an answer before.
    Sql(&'static str),
}

/// A `POST` of a JSON text.
pub const fn post(path: &'static str, body: &'static str) -> Call {
    Call { method: "POST", path, headers: &[], body }
}

/// A `PUT` of a JSON text.
pub const fn put(path: &'static str, headers: &'static [(&'static str, &'static str)], body: &'static str) -> Call {
    Call { method: "PUT", path, headers, body }
}

/// Create only.
pub const NEW: &[(&str, &str)] = &[("If-None-Match", "*")];
const SHOP_ORDER: &str = r#"{"customerId":"c","currency":"EUR","externalOrderId":"r-1","items":[{"sku":"A","qty":1}]}"#;
/// An order with a total of 10 EUR.
pub const ORDER: &str = r#"{"customerId":"c","customer":{"email":"c@shop.example"},"currency":"EUR","items":[{"sku":"A","qty":1,"total":"10"}],"totals":{"gross":"10"}}"#;
/// What a command of the duty desk works on.
const UNRESOLVED: &str =
    "UPDATE operations SET status = 'unresolved', completed_at = NULL WHERE operation_id = '{operationId}'";

/// The recipes.
pub const RECIPES: &[Recipe] = &[
    Recipe {
        command: "orders.create",
        before: &[],
        call: post("/v1/orders", SHOP_ORDER),
        refused: (post("/v1/orders", SHOP_ORDER), "DuplicateOrder"),
    },
    Recipe {
        command: "orders.put",
        before: &[],
        call: put("/v1/orders/put-1", NEW, ORDER),
        refused: (put("/v1/orders/put-1", NEW, ORDER), "PreconditionFailed"),
    },
    Recipe {
        command: "orders.cancel",
        before: &[Step::Call(post("/v1/orders", ORDER))],
        call: post("/v1/orders/{orderId}/cancel", r#"{"reason":"changed their mind"}"#),
        refused: (post("/v1/orders/{orderId}/cancel", "{}"), "OrderAlreadyCancelled"),
    },
    Recipe {
        command: "payments.create",
        before: &[Step::Call(post("/v1/orders", ORDER))],
        call: post(
            "/v1/payments",
            r#"{"orderId":"{orderId}","amount":"4","currency":"EUR","method":"card","reference":"pi_1"}"#,
        ),
        refused: (
            post(
                "/v1/payments",
                r#"{"orderId":"{orderId}","amount":"4","currency":"EUR","method":"card","reference":"pi_1"}"#,
            ),
            "DuplicatePayment",
        ),
    },
    Recipe {
        command: "stock.put",
        before: &[
            Step::Call(put("/v1/stock/PUT", &[], r#"{"onHand":5}"#)),
            Step::Call(post("/v1/reservations", r#"{"items":[{"sku":"PUT","qty":3}]}"#)),
        ],
        call: put("/v1/stock/PUT", &[], r#"{"onHand":12}"#),
        refused: (put("/v1/stock/PUT", &[], r#"{"onHand":1}"#), "StockBelowReserved"),
    },
    Recipe {
        command: "reservations.create",
        before: &[Step::Call(put("/v1/stock/RESERVE", &[], r#"{"onHand":5}"#))],
        call: post("/v1/reservations", r#"{"items":[{"sku":"RESERVE","qty":3}]}"#),
        refused: (post("/v1/reservations", r#"{"items":[{"sku":"RESERVE","qty":3}]}"#), "InsufficientStock"),
    },
    Recipe {
        command: "reservations.release",
        before: &[
            Step::Call(put("/v1/stock/RELEASE", &[], r#"{"onHand":5}"#)),
            Step::Call(post("/v1/reservations", r#"{"items":[{"sku":"RELEASE","qty":3}]}"#)),
        ],
        call: post("/v1/reservations/{reservationId}/release", "{}"),
        refused: (post("/v1/reservations/{reservationId}/release", "{}"), "ReservationAlreadyReleased"),
    },
    Recipe {
        command: "messages.send",
        before: &[Step::Call(post("/v1/orders", ORDER))],
        call: post("/v1/messages", r#"{"orderId":"{orderId}","template":"order-confirmation"}"#),
        refused: (post("/v1/messages", r#"{"orderId":"ord_0","template":"order-confirmation"}"#), "OrderNotFound"),
    },
    Recipe {
        command: "operations.retry",
        before: &[Step::Call(post("/v1/orders", ORDER)), Step::Sql(UNRESOLVED)],
        call: post("/v1/operations/{operationId}/retry", "{}"),
        refused: (post("/v1/operations/{operationId}/retry", "{}"), "OperationNotUnresolved"),
    },
    Recipe {
        command: "operations.resolve",
        before: &[Step::Call(post("/v1/orders", ORDER)), Step::Sql(UNRESOLVED)],
        call: post("/v1/operations/{operationId}/resolve", r#"{"outcome":"abandoned","reason":"a test"}"#),
        refused: (
            post("/v1/operations/{operationId}/resolve", r#"{"outcome":"abandoned","reason":"a test"}"#),
            "OperationNotUnresolved",
        ),
    },
];
