//! `orders.put`: create or replace under an id of the client's. Nobody overwrites what they have not seen, and what the ERP
//! was asked for stands.

use futures_util::future::join;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::http::{Answer, Caller, send};
use crate::harness::orders::{Tally, smallest, with};
use crate::harness::world::{World, on_both_databases};

const PATH: &str = "/v1/orders/web-1";
const NEW: Option<(&str, &str)> = Some(("If-None-Match", "*"));

/// Puts an order under `web-1`, with a precondition or without.
async fn put(caller: &Caller, key: &str, precondition: Option<(&str, &str)>, order: &Value) -> Answer {
    let request = caller.command(Method::PUT, PATH, key, order);
    match precondition {
        Some((name, value)) => send(request.header(name, value)).await,
        None => send(request).await,
    }
}

/// The smallest order with another quantity.
fn of(quantity: u32) -> Value {
    with(&json!({"items": [{"sku": "ABC", "qty": quantity}]}))
}

/// The `ETag` that the order has now.
async fn etag(caller: &Caller) -> String {
    caller.get(PATH).await.expect(200).header("etag").expect("an order has one").to_owned()
}

/// The order's messages, oldest first: kind and state.
fn messages(world: &World) -> Vec<(String, String)> {
    let rows = world.rows("SELECT kind, state FROM outbox ORDER BY position, message_id");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    rows.iter().map(|row| (text(&row["kind"]), text(&row["state"]))).collect()
}

fn message(kind: &str, state: &str) -> (String, String) {
    (kind.to_owned(), state.to_owned())
}

/// Says that the answer is this refusal, that it is recorded, and that it left nothing else.
async fn is_refused(world: &World, code: &str, ask: impl AsyncFn() -> Answer) {
    let before = Tally::of(world.database());
    let orders = world.rows("SELECT order_id, status, version, document FROM orders ORDER BY order_id");
    let first = ask().await;
    assert_eq!(first.error(), code, "{}", first.text());
    assert_eq!(first.header("idempotent-replayed"), Some("false"));
    let replay = ask().await;
    assert_eq!((replay.status, &replay.body), (first.status, &first.body));
    assert_eq!(replay.header("idempotent-replayed"), Some("true"));
    assert_eq!(Tally::of(world.database()), before + Tally::answers(1), "{code}");
    assert_eq!(
        world.rows("SELECT order_id, status, version, document FROM orders ORDER BY order_id"),
        orders,
        "{code}"
    );
}

on_both_databases! {
    async fn a_put_without_a_precondition_is_not_even_recorded(world: World) {
        let shop = world.shop();
        assert_eq!(put(&shop, "one", None, &smallest()).await.expect(428).error(), "PreconditionRequired");
        for precondition in [
            ("If-None-Match", "\"1\""), ("If-Match", "1"), ("If-Match", "\"1"), ("If-Match", ""), ("If-Match", "\"1\" \"2\""),
        ] {
            let malformed = put(&shop, "one", Some(precondition), &smallest()).await.expect(400);
            assert_eq!(malformed.error(), "MalformedRequest", "{precondition:?}");
        }
        let both = shop.command(Method::PUT, PATH, "one", &smallest()).header("If-Match", "*").header("If-None-Match", "*");
        assert_eq!(send(both).await.expect(400).error(), "MalformedRequest");
        assert_eq!(Tally::of(world.database()), Tally::default());
        put(&shop, "one", NEW, &smallest()).await.expect(201);
    }

    async fn an_order_is_made_once_under_the_clients_own_id(world: World) {
        let shop = world.shop();
        let made = put(&shop, "one", NEW, &smallest()).await.expect(201);
        assert_eq!((made.header("location"), &made.json()["orderId"]), (Some(PATH), &json!("web-1")));
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
        assert_eq!(etag(&shop).await, "\"1\"");
        is_refused(&world, "PreconditionFailed", async || put(&shop, "two", NEW, &smallest()).await).await;
        // The same id in another tenant is another order.
        let other = world.caller("other", "shop", &["orders:write"]);
        put(&other, "one", NEW, &smallest()).await.expect(201);
    }

    async fn an_id_is_plain_and_not_one_of_ours(world: World) {
        let shop = world.shop();
        let long = "x".repeat(65);
        for id in ["ord_1", "-a", ".a", "a%20b", "a%2Fb", "%C4%8D", long.as_str()] {
            let request = || send(shop.command(Method::PUT, &format!("/v1/orders/{id}"), id, &smallest()).header("If-None-Match", "*"));
            let refused = request().await.expect(400);
            assert_eq!((refused.error().as_str(), &refused.json()["details"][0]["code"]), ("InvalidRequest", &json!("BadOrderId")), "{id}");
            assert_eq!(request().await.header("idempotent-replayed"), Some("true"), "{id}");
        }
        assert_eq!(Tally::of(world.database()), Tally::answers(7));
        let longest = format!("/v1/orders/A.b_c-{}", "9".repeat(58));
        let made = shop.command(Method::PUT, &longest, "longest", &smallest()).header("If-None-Match", "*");
        assert_eq!(send(made).await.expect(201).header("location"), Some(longest.as_str()));
    }

    async fn a_replacement_withdraws_what_the_erp_was_not_asked_for(world: World) {
        let shop = world.shop();
        put(&shop, "one", NEW, &of(1)).await.expect(201);
        let old = etag(&shop).await;
        let two_lines = with(&json!({"items": [{"sku": "B", "qty": 7}, {"sku": "C", "qty": 8}], "customerId": "bob"}));
        let replaced = put(&shop, "two", Some(("If-Match", &old)), &two_lines).await.expect(200);
        assert_eq!((replaced.header("location"), &replaced.json()["status"]), (None, &json!("accepted")));
        let now = shop.get(PATH).await.expect(200);
        assert_ne!(now.header("etag"), Some(old.as_str()));
        let now = now.json();
        assert_eq!((&now["customerId"], &now["items"][1]["qty"]), (&json!("bob"), &json!("8")));
        assert_eq!(now["operationId"], replaced.json()["operationId"]);
        assert_eq!(messages(&world), [message("order.created", "withdrawn"), message("order.created", "waiting")]);
        let lines = world.rows("SELECT sku FROM order_lines ORDER BY line_no");
        assert_eq!(lines, [json!({"sku": "B"}), json!({"sku": "C"})]);
        let expected = Tally { lines: 2, messages: 2, ..Tally::orders(1) } + Tally::answers(1);
        assert_eq!(Tally::of(world.database()), expected);
        // The first answer is given again as it was, though its order is another now.
        let replay = put(&shop, "one", NEW, &of(1)).await.expect(201);
        assert_eq!(replay.header("idempotent-replayed"), Some("true"));
    }

    async fn a_stale_put_is_refused_unless_the_order_is_already_so(world: World) {
        let shop = world.shop();
        put(&shop, "one", NEW, &of(1)).await.expect(201);
        put(&shop, "two", Some(("If-Match", "\"1\"")), &of(2)).await.expect(200);
        for stale in ["\"1\"", "\"0\", \"9\"", "W/\"2\""] {
            let key = format!("stale {stale}").replace([' ', '"'], "-");
            is_refused(&world, "PreconditionFailed", async || put(&shop, &key, Some(("If-Match", stale)), &of(3)).await).await;
        }
        // The client's retry under a new key: it stands already, and nothing is done twice.
        let (before, outbox) = (Tally::of(world.database()), messages(&world));
        let equal = put(&shop, "equal", Some(("If-Match", "\"1\"")), &of(2)).await.expect(200);
        assert_eq!(equal.json()["status"], "accepted");
        assert_eq!((etag(&shop).await.as_str(), messages(&world)), ("\"2\"", outbox));
        assert_eq!(Tally::of(world.database()), before + Tally::answers(1));
        for (key, tags) in [("any", "*"), ("list", "\"0\", \"3\"")] {
            let quantity = if key == "any" { 4 } else { 5 };
            put(&shop, key, Some(("If-Match", tags)), &of(quantity)).await.expect(200);
        }
    }

    async fn what_is_not_there_cannot_be_replaced(world: World) {
        let shop = world.shop();
        for tags in ["*", "\"1\""] {
            let key = format!("key-{}", tags.len());
            is_refused(&world, "PreconditionFailed", async || put(&shop, &key, Some(("If-Match", tags)), &smallest()).await).await;
        }
    }

    async fn the_precondition_is_part_of_the_intent(world: World) {
        let shop = world.shop();
        put(&shop, "one", NEW, &smallest()).await.expect(201);
        let conflict = put(&shop, "one", Some(("If-Match", "\"1\"")), &smallest()).await.expect(409);
        assert_eq!(conflict.error(), "IdempotencyKeyConflict");
        // No member of the body differs.
        assert_eq!(conflict.json()["details"], json!(null));
        let elsewhere = shop.command(Method::PUT, "/v1/orders/web-2", "one", &smallest()).header("If-None-Match", "*");
        assert_eq!(send(elsewhere).await.expect(409).error(), "IdempotencyKeyConflict");
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }

    async fn the_identity_of_a_shop_order_never_changes(world: World) {
        let shop = world.shop();
        let order = with(&json!({"channel": "web", "externalOrderId": "N1"}));
        put(&shop, "one", NEW, &order).await.expect(201);
        for (number, members) in [
            json!({"channel": "web", "externalOrderId": "N2"}),
            json!({"channel": "app", "externalOrderId": "N1"}),
            json!({"channel": "web"}),
            json!({}),
        ]
        .iter()
        .enumerate()
        {
            let key = format!("key-{number}");
            is_refused(&world, "OrderIdentityFixed", async || put(&shop, &key, Some(("If-Match", "*")), &with(members)).await).await;
        }
        let second = shop.command(Method::PUT, "/v1/orders/web-2", "two", &order).header("If-None-Match", "*");
        let duplicate = send(second).await.expect(409);
        assert_eq!((duplicate.error().as_str(), &duplicate.json()["orderId"]), ("DuplicateOrder", &json!("web-1")));
        assert_eq!(world.count("orders"), 1);
    }

    async fn only_what_the_erp_was_not_asked_for_or_refused_is_replaced(world: World) {
        let shop = world.shop();
        put(&shop, "one", NEW, &of(1)).await.expect(201);
        for status in ["confirmed", "cancelling", "cancelled"] {
            world.database().execute(&format!("UPDATE orders SET status = '{status}'"));
            is_refused(&world, "OrderNotReplaceable", async || put(&shop, status, Some(("If-Match", "*")), &of(2)).await).await;
        }
        // The ERP is being asked at this moment.
        world.database().execute("UPDATE orders SET status = 'accepted'; UPDATE outbox SET state = 'leased'");
        is_refused(&world, "OrderNotReplaceable", async || put(&shop, "leased", Some(("If-Match", "*")), &of(2)).await).await;
        world.database().execute("UPDATE orders SET status = 'rejected'; UPDATE outbox SET state = 'delivered'");
        let replaced = put(&shop, "again", Some(("If-Match", "*")), &of(2)).await.expect(200);
        assert_eq!(replaced.json()["status"], "accepted");
        assert_eq!(messages(&world), [message("order.created", "delivered"), message("order.replaced", "waiting")]);
    }

    async fn of_two_puts_on_one_version_one_wins(world: World) {
        let shop = world.shop();
        put(&shop, "one", NEW, &of(100)).await.expect(201);
        for round in 1..=10 {
            let known = etag(&shop).await;
            let (left, right) = (format!("left-{round}"), format!("right-{round}"));
            let (left, right) = join(
                put(&shop, &left, Some(("If-Match", &known)), &of(round)),
                put(&shop, &right, Some(("If-Match", &known)), &of(round + 1000)),
            )
            .await;
            let mut statuses = [left.status.as_u16(), right.status.as_u16()];
            statuses.sort_unstable();
            assert_eq!(statuses, [200, 412], "{} {}", left.text(), right.text());
            let winner = if left.status == 200 { round } else { round + 1000 };
            assert_eq!(shop.get(PATH).await.json()["items"][0]["qty"], winner.to_string());
        }
        let waiting = messages(&world).into_iter().filter(|(_, state)| state == "waiting").count();
        assert_eq!((waiting, world.count("outbox"), world.count("order_lines")), (1, 11, 1));
    }

    async fn of_two_creations_under_one_id_one_wins(world: World) {
        let shop = world.shop();
        let (two, three) = (of(2), of(3));
        let (left, right) = join(put(&shop, "left", NEW, &two), put(&shop, "right", NEW, &three)).await;
        let mut statuses = [left.status.as_u16(), right.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 412]);
        assert_eq!(Tally::of(world.database()), Tally::orders(1) + Tally::answers(1));
    }

    async fn a_put_beside_a_cancel_leaves_nothing_for_the_erp(world: World) {
        let shop = world.shop();
        for round in 0..10 {
            let path = format!("/v1/orders/web-{round}");
            let ask = |key: String, name: &'static str, value: &'static str, order: Value| {
                send(shop.command(Method::PUT, &path, &key, &order).header(name, value))
            };
            ask(format!("made-{round}"), "If-None-Match", "*", of(1)).await.expect(201);
            let (cancel, reason) = (format!("cancel-{round}"), json!({}));
            let cancel_path = format!("{path}/cancel");
            let (replaced, cancelled) = join(
                ask(format!("put-{round}"), "If-Match", "\"1\"", of(2)),
                shop.post(&cancel_path, &cancel, &reason),
            )
            .await;
            cancelled.expect(200);
            // It came first, or it found another version.
            assert!(replaced.status == 200 || replaced.status == 412, "{}", replaced.text());
            assert_eq!(shop.get(&path).await.json()["status"], "cancelled");
        }
        assert_eq!(world.rows("SELECT message_id FROM outbox WHERE state = 'waiting'"), Vec::<Value>::new());
    }
}
