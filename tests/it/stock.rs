//! Stock: what is on hand is what was put last, and never less than what is reserved.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::http::{Answer, Caller, send};
use crate::harness::world::{World, on_both_databases};

/// The warehouse of the tenant of `World::shop`: may do everything with stock.
pub fn warehouse(world: &World) -> Caller {
    world.caller("acme", "warehouse", &["stock:write", "stock:read"])
}

/// Says what is on hand; `sku` as it stands in the path.
pub async fn put(caller: &Caller, sku: &str, key: &str, on_hand: &str) -> Answer {
    let request = caller.request(Method::PUT, &format!("/v1/stock/{sku}"));
    send(request.header("Idempotency-Key", key).json(&json!({"onHand": on_hand}))).await
}

/// The three quantities of a SKU: on hand, reserved, available.
pub async fn level(caller: &Caller, sku: &str) -> [String; 3] {
    let level = caller.get(&format!("/v1/stock/{sku}")).await.expect(200).json();
    ["onHand", "reserved", "available"].map(|name| level[name].as_str().expect("quantities are text").to_owned())
}

/// Whether `replay` is `first` again, byte for byte, and says so.
#[track_caller]
pub fn assert_replay(replay: &Answer, first: &Answer) {
    assert_eq!((replay.status, &replay.body), (first.status, &first.body));
    for name in ["content-type", "location"] {
        assert_eq!(replay.header(name), first.header(name));
    }
    assert_eq!(first.header("idempotent-replayed"), Some("false"));
    assert_eq!(replay.header("idempotent-replayed"), Some("true"));
}

/// What a problem says of the case, without what belongs to the one request: its trace and its key.
pub fn without_request(answer: &Answer) -> Value {
    let mut problem = answer.json();
    let members = problem.as_object_mut().expect("a problem is an object");
    for name in ["traceId", "idempotencyKey", "links"] {
        members.remove(name);
    }
    problem
}

on_both_databases! {
    async fn the_first_put_makes_the_sku_and_the_next_one_replaces_what_is_on_hand(world: World) {
        let warehouse = warehouse(&world);
        let first = put(&warehouse, "ABC", "k1", "12.50").await.expect(201);
        assert_eq!(first.header("location"), Some("/v1/stock/ABC"));
        let body = first.json();
        let operation = body["operationId"].as_str().expect("an operation has an id");
        assert_eq!(
            body,
            json!({"status": "stored", "sku": "ABC", "operationId": operation,
                "links": {"self": "/v1/stock/ABC", "operation": format!("/v1/operations/{operation}")}})
        );
        assert_eq!(
            warehouse.get("/v1/stock/ABC").await.expect(200).json(),
            json!({"sku": "ABC", "onHand": "12.5", "reserved": "0", "available": "12.5",
                "links": {"self": "/v1/stock/ABC"}})
        );

        let second = put(&warehouse, "ABC", "k2", "0.000001").await.expect(200);
        assert_eq!(second.header("location"), None);
        assert_eq!(
            world.rows("SELECT tenant_id, sku, on_hand FROM stock"),
            [json!({"tenant_id": "acme", "sku": "ABC", "on_hand": 1})]
        );

        // The first answer again, although the stock is another now; and it changes nothing.
        let replay = put(&warehouse, "ABC", "k1", "12.5").await.expect(201);
        assert_replay(&replay, &first);
        assert_eq!(level(&warehouse, "ABC").await, ["0.000001", "0", "0.000001"]);
        assert_eq!(world.count("claims"), 2);
    }

    async fn a_sku_may_be_of_any_script_and_its_link_leads_back_to_it(world: World) {
        let warehouse = warehouse(&world);
        let made = put(&warehouse, "%C4%BE%2FA%20%25%2B%F0%9F%A7%80", "k1", "3").await.expect(201);
        let location = made.header("location").expect("something was made").to_owned();
        assert_eq!(warehouse.get(&location).await.expect(200).json()["sku"], "ľ/A %+🧀");
        assert_eq!(world.rows("SELECT sku FROM stock"), [json!({"sku": "ľ/A %+🧀"})]);
        // Another spelling of the same path is the same intent.
        let replay = put(&warehouse, "%c4%be%2fA%20%25+%f0%9f%a7%80", "k1", "3.0").await.expect(201);
        assert_eq!(replay.header("idempotent-replayed"), Some("true"));

        let longest = "č".repeat(255);
        put(&warehouse, &longest, "k2", "1").await.expect(201);
        let refused = put(&warehouse, &format!("{longest}x"), "k3", "1").await.expect(400);
        assert_eq!(refused.error(), "InvalidRequest");
        assert_eq!(refused.json()["details"][0]["code"], "TooLong");
        assert_eq!(world.count("stock"), 2);
    }

    async fn a_path_that_is_no_text_is_malformed_and_names_no_sku(world: World) {
        let warehouse = warehouse(&world);
        for path in ["%FF", "a%00b"] {
            let refused = put(&warehouse, path, "k1", "1").await.expect(400);
            assert_eq!(refused.error(), "MalformedRequest");
            assert_eq!(warehouse.get(&format!("/v1/stock/{path}")).await.expect(400).error(), "MalformedRequest");
        }
        assert_eq!((world.count("stock"), world.count("claims")), (0, 0));
        put(&warehouse, "ABC", "k1", "1").await.expect(201);
    }

    async fn a_quantity_that_breaks_the_rule_is_refused_and_changes_nothing(world: World) {
        let warehouse = warehouse(&world);
        for (index, quantity) in ["-1", "1000000000", "0.0000001", "1e2", ""].into_iter().enumerate() {
            let refused = put(&warehouse, "ABC", &format!("k{index}"), quantity).await.expect(400);
            assert_eq!(refused.json()["details"][0]["pointer"], "/onHand", "{quantity}");
        }
        assert_eq!((world.count("stock"), world.count("claims"), world.count("operations")), (0, 5, 5));
        put(&warehouse, "ABC", "greatest", "999999999.999999").await.expect(201);
        assert_eq!(level(&warehouse, "ABC").await, ["999999999.999999", "0", "999999999.999999"]);
        put(&warehouse, "ABC", "nothing", "0").await.expect(200);
    }

    async fn less_than_is_reserved_cannot_be_on_hand(world: World) {
        let warehouse = warehouse(&world);
        put(&warehouse, "ABC", "k1", "5").await.expect(201);
        let reservation = json!({"items": [{"sku": "ABC", "qty": "1.5"}, {"sku": "ABC", "qty": 2}]});
        let reserved = warehouse.post("/v1/reservations", "r1", &reservation).await.expect(201).json();

        let refused = put(&warehouse, "ABC", "k2", "3.499999").await.expect(409);
        assert_eq!(refused.error(), "StockBelowReserved");
        assert_eq!(
            refused.json()["detail"],
            "3.5 of this SKU is reserved; that much at least has to be on hand."
        );
        assert_eq!(refused.json()["links"]["stock"], "/v1/stock/ABC");
        assert_eq!(level(&warehouse, "ABC").await, ["5", "3.5", "1.5"]);
        put(&warehouse, "ABC", "k3", "3.5").await.expect(200);
        assert_eq!(level(&warehouse, "ABC").await, ["3.5", "3.5", "0"]);

        let path = format!("{}/release", reserved["links"]["self"].as_str().expect("a link is text"));
        warehouse.post(&path, "k4", &json!({})).await.expect(200);
        put(&warehouse, "ABC", "k5", "0").await.expect(200);
        let replay = put(&warehouse, "ABC", "k2", "3.499999").await.expect(409);
        assert_replay(&replay, &refused);
    }

    async fn rivals_for_a_new_sku_make_it_once(world: World) {
        let warehouse = warehouse(&world);
        let keys: Vec<String> = (0..8).map(|number| format!("k{number}")).collect();
        let answers = join_all(keys.iter().map(|key| put(&warehouse, "ABC", key, "7"))).await;
        let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 201]);
        assert_eq!(world.rows("SELECT on_hand FROM stock"), [json!({"on_hand": 7_000_000})]);
    }

    async fn stock_is_seen_by_its_tenant_and_with_its_scope_alone(world: World) {
        let warehouse = warehouse(&world);
        put(&warehouse, "ABC", "k1", "1").await.expect(201);
        let shop = world.shop();
        assert_eq!(shop.get("/v1/stock/ABC").await.expect(403).error(), "Forbidden");
        assert_eq!(put(&shop, "ABC", "k1", "2").await.expect(403).error(), "Forbidden");

        let stranger = world.caller("other", "warehouse", &["stock:write", "stock:read"]);
        let theirs = stranger.get("/v1/stock/ABC").await.expect(404);
        let unknown = stranger.get("/v1/stock/XYZ").await.expect(404);
        assert_eq!(theirs.error(), "SkuNotFound");
        assert_eq!(without_request(&theirs), without_request(&unknown));
        // The same SKU of another tenant is another SKU.
        put(&stranger, "ABC", "k1", "9").await.expect(201);
        assert_eq!(level(&warehouse, "ABC").await, ["1", "0", "1"]);
    }
}
