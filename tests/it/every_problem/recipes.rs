//! For every read a call that works, and for every refusal of an operation's own the call that meets it. What the checks
//! before the claim, the claim and the service say is the same for all, and needs no recipe here.

use order_service::problem::Code;

use crate::every_command::recipes::{Call, NEW, ORDER, Step, post, put};

/// How to make a read succeed.
pub struct ReadRecipe {
    /// The `operationId`.
    pub operation: &'static str,
    /// What has to be there before.
    pub before: &'static [Step],
    /// The path; `{name}` stands for the member `name` of an answer before.
    pub path: &'static str,
    /// The table and the column without which it cannot answer; an open read needs none.
    pub needs: Option<(&'static str, &'static str)>,
}

/// How to meet one refusal of one operation.
pub struct Refusal {
    /// The `operationId`.
    pub operation: &'static str,
    /// What it says.
    pub code: Code,
    /// What has to be there before.
    pub before: &'static [Step],
    /// The call that is refused.
    pub call: Call,
}

/// A read as a call.
pub const fn get(path: &'static str) -> Call {
    Call { method: "GET", path, headers: &[], body: "" }
}

const fn read(
    operation: &'static str,
    before: &'static [Step],
    path: &'static str,
    needs: (&'static str, &'static str),
) -> ReadRecipe {
    ReadRecipe { operation, before, path, needs: Some(needs) }
}

const fn open_read(operation: &'static str, path: &'static str) -> ReadRecipe {
    ReadRecipe { operation, before: &[], path, needs: None }
}

const fn refusal(operation: &'static str, code: Code, before: &'static [Step], call: Call) -> Refusal {
    Refusal { operation, code, before, call }
}

/// An order of the total of 10 EUR.
const AN_ORDER: Step = Step::Call(post("/v1/orders", ORDER));
/// The order of the step before is cancelled.
const CANCELLED: Step = Step::Call(post("/v1/orders/{orderId}/cancel", "{}"));
/// Eight of the ten EUR of the order of the step before are paid.
const PAID: Step = Step::Call(post("/v1/payments", EIGHT));
const EIGHT: &str = r#"{"orderId":"{orderId}","amount":"8","currency":"EUR","method":"card","reference":"pi_8"}"#;
/// The customer of the order of the step before is written to.
const A_MESSAGE: Step = Step::Call(post("/v1/messages", CONFIRM));
const CONFIRM: &str = r#"{"orderId":"{orderId}","template":"order-confirmation"}"#;
/// To replace whatever stands.
const STANDING: &[(&str, &str)] = &[("If-Match", "*")];
const SHOP_ORDER: &str =
    r#"{"customerId":"c","currency":"EUR","channel":"walk","externalOrderId":"w-1","items":[{"sku":"A","qty":1}]}"#;
const CHEAPER: &str =
    r#"{"customerId":"c","currency":"EUR","items":[{"sku":"A","qty":1,"total":"5"}],"totals":{"gross":"5"}}"#;
const IN_CROWNS: &str = r#"{"customerId":"c","currency":"CZK","items":[{"sku":"A","qty":1}]}"#;
const GIVEN_UP: &str = r#"{"outcome":"abandoned","reason":"a test"}"#;
const OF_NO_ORDER: &str = r#"{"orderId":"nothing","amount":"1","currency":"EUR","method":"card"}"#;
const CONFIRM_NOTHING: &str = r#"{"orderId":"nothing","template":"order-confirmation"}"#;
const TELL_OF_NO_PAYMENT: &str = r#"{"orderId":"{orderId}","template":"payment-received"}"#;
const IN_DOLLARS: &str = r#"{"orderId":"{orderId}","amount":"1","currency":"USD","method":"card"}"#;
const TOO_MUCH: &str = r#"{"orderId":"{orderId}","amount":"10.01","currency":"EUR","method":"card"}"#;

/// The reads.
pub const READS: &[ReadRecipe] = &[
    read("ordersList", &[AN_ORDER], "/v1/orders", ("orders", "document")),
    read("ordersGet", &[AN_ORDER], "/v1/orders/{orderId}", ("orders", "document")),
    read("paymentsGet", &[AN_ORDER, PAID], "/v1/payments/{paymentId}", ("payments", "document")),
    read(
        "stockGet",
        &[Step::Call(put("/v1/stock/READ", &[], r#"{"onHand":5}"#))],
        "/v1/stock/READ",
        ("stock", "on_hand"),
    ),
    read(
        "reservationsGet",
        &[
            Step::Call(put("/v1/stock/HELD", &[], r#"{"onHand":5}"#)),
            Step::Call(post("/v1/reservations", r#"{"items":[{"sku":"HELD","qty":3}]}"#)),
        ],
        "/v1/reservations/{reservationId}",
        ("reservations", "operation_id"),
    ),
    read("messagesGet", &[AN_ORDER, A_MESSAGE], "/v1/messages/{messageId}", ("messages", "template")),
    read("operationsList", &[AN_ORDER], "/v1/operations", ("operations", "status")),
    read("operationsGet", &[AN_ORDER], "/v1/operations/{operationId}", ("operations", "status")),
    read("idempotencyPolicyGet", &[], "/v1/idempotency-policy", ("api_keys", "client_id")),
    open_read("healthAlive", "/healthz"),
    open_read("healthReady", "/readyz"),
    open_read("serviceContract", "/openapi.json"),
];

/// The refusals.
pub const REFUSALS: &[Refusal] = &[
    refusal(
        "ordersCreate",
        Code::DuplicateOrder,
        &[Step::Call(post("/v1/orders", SHOP_ORDER))],
        post("/v1/orders", SHOP_ORDER),
    ),
    refusal(
        "ordersPut",
        Code::PreconditionFailed,
        &[Step::Call(put("/v1/orders/walk-stands", NEW, ORDER))],
        put("/v1/orders/walk-stands", NEW, ORDER),
    ),
    refusal(
        "ordersPut",
        Code::DuplicateOrder,
        &[Step::Call(put(
            "/v1/orders/walk-first",
            NEW,
            r#"{"customerId":"c","currency":"EUR","externalOrderId":"w-2","items":[{"sku":"A","qty":1}]}"#,
        ))],
        put(
            "/v1/orders/walk-second",
            NEW,
            r#"{"customerId":"c","currency":"EUR","externalOrderId":"w-2","items":[{"sku":"A","qty":1}]}"#,
        ),
    ),
    refusal(
        "ordersPut",
        Code::OrderIdentityFixed,
        &[AN_ORDER],
        put(
            "/v1/orders/{orderId}",
            STANDING,
            r#"{"customerId":"c","currency":"EUR","externalOrderId":"w-3","items":[{"sku":"A","qty":1}]}"#,
        ),
    ),
    refusal(
        "ordersPut",
        Code::OrderNotReplaceable,
        &[AN_ORDER, CANCELLED],
        put("/v1/orders/{orderId}", STANDING, CHEAPER),
    ),
    refusal("ordersPut", Code::CurrencyMismatch, &[AN_ORDER, PAID], put("/v1/orders/{orderId}", STANDING, IN_CROWNS)),
    refusal("ordersPut", Code::Overpayment, &[AN_ORDER, PAID], put("/v1/orders/{orderId}", STANDING, CHEAPER)),
    refusal("ordersCancel", Code::OrderNotFound, &[], post("/v1/orders/nothing/cancel", "{}")),
    refusal(
        "ordersCancel",
        Code::OrderAlreadyCancelled,
        &[AN_ORDER, CANCELLED],
        post("/v1/orders/{orderId}/cancel", "{}"),
    ),
    refusal(
        "ordersCancel",
        Code::OrderNotCancellable,
        &[AN_ORDER, Step::Sql("UPDATE orders SET status = 'rejected' WHERE order_id = '{orderId}'")],
        post("/v1/orders/{orderId}/cancel", "{}"),
    ),
    refusal("paymentsCreate", Code::OrderNotFound, &[], post("/v1/payments", OF_NO_ORDER)),
    refusal("paymentsCreate", Code::OrderClosed, &[AN_ORDER, CANCELLED], post("/v1/payments", EIGHT)),
    refusal("paymentsCreate", Code::DuplicatePayment, &[AN_ORDER, PAID], post("/v1/payments", EIGHT)),
    refusal("paymentsCreate", Code::CurrencyMismatch, &[AN_ORDER], post("/v1/payments", IN_DOLLARS)),
    refusal("paymentsCreate", Code::Overpayment, &[AN_ORDER], post("/v1/payments", TOO_MUCH)),
    refusal(
        "stockPut",
        Code::StockBelowReserved,
        &[
            Step::Call(put("/v1/stock/BELOW", &[], r#"{"onHand":5}"#)),
            Step::Call(post("/v1/reservations", r#"{"items":[{"sku":"BELOW","qty":3}]}"#)),
        ],
        put("/v1/stock/BELOW", &[], r#"{"onHand":2}"#),
    ),
    refusal(
        "reservationsCreate",
        Code::InsufficientStock,
        &[Step::Call(put("/v1/stock/SCARCE", &[], r#"{"onHand":1}"#))],
        post("/v1/reservations", r#"{"items":[{"sku":"SCARCE","qty":2}]}"#),
    ),
    refusal(
        "reservationsCreate",
        Code::OrderNotFound,
        &[],
        post("/v1/reservations", r#"{"orderId":"nothing","items":[{"sku":"SCARCE","qty":1}]}"#),
    ),
    refusal(
        "reservationsCreate",
        Code::OrderClosed,
        &[AN_ORDER, CANCELLED],
        post("/v1/reservations", r#"{"orderId":"{orderId}","items":[{"sku":"SCARCE","qty":1}]}"#),
    ),
    refusal("reservationsRelease", Code::ReservationNotFound, &[], post("/v1/reservations/nothing/release", "{}")),
    refusal(
        "reservationsRelease",
        Code::ReservationAlreadyReleased,
        &[
            Step::Call(put("/v1/stock/FREED", &[], r#"{"onHand":5}"#)),
            Step::Call(post("/v1/reservations", r#"{"items":[{"sku":"FREED","qty":3}]}"#)),
            Step::Call(post("/v1/reservations/{reservationId}/release", "{}")),
        ],
        post("/v1/reservations/{reservationId}/release", "{}"),
    ),
    refusal("messagesSend", Code::OrderNotFound, &[], post("/v1/messages", CONFIRM_NOTHING)),
    refusal(
        "messagesSend",
        Code::NoRecipient,
        &[Step::Call(post("/v1/orders", r#"{"customerId":"c","currency":"EUR","items":[{"sku":"A","qty":1}]}"#))],
        post("/v1/messages", CONFIRM),
    ),
    refusal("messagesSend", Code::NothingPaid, &[AN_ORDER], post("/v1/messages", TELL_OF_NO_PAYMENT)),
    refusal("operationsRetry", Code::OperationNotFound, &[], post("/v1/operations/nothing/retry", "{}")),
    refusal(
        "operationsRetry",
        Code::OperationNotUnresolved,
        &[AN_ORDER],
        post("/v1/operations/{operationId}/retry", "{}"),
    ),
    refusal("operationsResolve", Code::OperationNotFound, &[], post("/v1/operations/nothing/resolve", GIVEN_UP)),
    refusal(
        "operationsResolve",
        Code::OperationNotUnresolved,
        &[AN_ORDER],
        post("/v1/operations/{operationId}/resolve", GIVEN_UP),
    ),
    refusal("ordersGet", Code::OrderNotFound, &[], get("/v1/orders/nothing")),
    refusal("paymentsGet", Code::PaymentNotFound, &[], get("/v1/payments/nothing")),
    refusal("messagesGet", Code::MessageNotFound, &[], get("/v1/messages/nothing")),
    refusal("stockGet", Code::SkuNotFound, &[], get("/v1/stock/nothing")),
    refusal("reservationsGet", Code::ReservationNotFound, &[], get("/v1/reservations/nothing")),
    refusal("operationsGet", Code::OperationNotFound, &[], get("/v1/operations/nothing")),
];
