//! The answers depend on a key's time, and on nothing else: not on the cleaner, not on what it has done half of.

use super::{DAY, FORGOTTEN, SPENT, age, assert_replayed, assert_whole, clock_plus, order, shown, sweep};
use crate::harness::http::Caller;
use crate::harness::world::{World, on_both_databases};

/// The answer to a request with another body than the first one's.
async fn conflict(shop: &Caller, key: &str) -> crate::harness::http::Answer {
    let answer = shop.post("/v1/orders", key, &order(Some("another"))).await.expect(409);
    assert_eq!(answer.error(), "IdempotencyKeyConflict");
    answer
}

on_both_databases! {
    async fn within_the_window_the_cleaner_leaves_everything(world: World) {
        let shop = world.shop();
        let first = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
        age(world.database(), 6 * DAY);
        assert_eq!(sweep(world.database(), 500), []);
        let replay = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
        assert_replayed(&replay, &first);
    }

    async fn past_the_window_the_key_is_spent_cleaned_or_not(world: World) {
        let shop = world.shop();
        let first = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201).json();
        age(world.database(), SPENT);
        let operation = first["links"]["operation"].as_str().expect("a link");
        let ask = async || (
            shown(&shop.post("/v1/orders", "key-1", &order(Some("1"))).await),
            shown(&conflict(&shop, "key-1").await),
            shown(&shop.get(operation).await.expect(200)),
        );

        let before = ask().await;
        let bodies = "SELECT reply_body, member_digests FROM operations WHERE reply_body IS NOT NULL";
        assert_eq!(world.rows(bodies).len(), 1);
        assert_eq!(sweep(world.database(), 500).len(), 1);
        let kept = "SELECT 1 AS kept FROM operations WHERE reply_body IS NOT NULL OR member_digests IS NOT NULL";
        assert_eq!(world.rows(kept).len(), 0);
        assert_eq!(ask().await, before);

        let ((status, _, spent), ..) = before;
        assert_eq!((status, &spent["error"]), (409, &"IdempotencyKeyExpired".into()));
        assert_eq!(spent["orderId"], first["orderId"]);
        assert_eq!(spent["links"], first["links"]);
        assert_eq!((world.count("orders"), world.count("claims"), world.count("outbox")), (1, 1, 1));
    }

    async fn a_spent_key_with_another_body_is_a_conflict_that_tells_nothing_of_the_first(world: World) {
        let shop = world.shop();
        shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
        let fresh = conflict(&shop, "key-1").await.json();
        assert_eq!(fresh["details"][0]["pointer"], "/externalOrderId");
        age(world.database(), SPENT);
        let spent = conflict(&shop, "key-1").await;
        assert_eq!(spent.json()["details"], serde_json::Value::Null);
        assert_eq!((world.count("orders"), world.count("operations")), (1, 1));
    }

    async fn a_recorded_refusal_is_spent_like_a_success(world: World) {
        let shop = world.shop();
        let bad = serde_json::json!({"currency": "EUR", "items": []});
        let refused = shop.post("/v1/orders", "key-1", &bad).await.expect(400);
        let replay = shop.post("/v1/orders", "key-1", &bad).await.expect(400);
        assert_replayed(&replay, &refused);
        age(world.database(), SPENT);
        let before = shown(&shop.post("/v1/orders", "key-1", &bad).await);
        sweep(world.database(), 500);
        assert_eq!(shown(&shop.post("/v1/orders", "key-1", &bad).await), before);
        assert_eq!((before.0, &before.2["error"]), (409, &"IdempotencyKeyExpired".into()));
    }

    async fn the_window_ends_at_its_end(world: World) {
        let shop = world.shop();
        shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
        let end_at = |seconds| {
            let end = clock_plus(world.database(), seconds);
            world.database().execute(&format!("UPDATE operations SET replay_until = {end}"));
        };
        end_at(60);
        shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
        // The clock has reached the end by the time of the request, if only by nothing at all.
        end_at(0);
        let spent = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(409);
        assert_eq!(spent.error(), "IdempotencyKeyExpired");
        assert_eq!(sweep(world.database(), 500).len(), 1);
    }

    async fn a_body_that_the_cleaner_drops_during_a_replay_makes_the_key_spent_and_no_fault(world: World) {
        // The cleaner reads the clock after the transaction of the replay has begun, and commits before its look at the row:
        // the replay finds a window that is open for its own clock, and no body.
        let shop = world.shop();
        shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
        world.database().execute("UPDATE operations SET reply_body = NULL, member_digests = NULL");
        let spent = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(409);
        assert_eq!(spent.error(), "IdempotencyKeyExpired");
        conflict(&shop, "key-1").await;
        assert_eq!(world.count("orders"), 1);
    }

    async fn nothing_of_an_operation_that_is_not_final_ever_ends(world: World) {
        let shop = world.shop();
        let first = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
        world.database().execute(
            "UPDATE operations SET status = 'processing', completed_at = NULL, replay_until = NULL, remember_until = NULL",
        );
        age(world.database(), 10 * FORGOTTEN);
        assert_eq!(sweep(world.database(), 500), []);
        let replay = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
        assert_eq!(replay.body, first.body);
        assert_whole(world.database());
    }

    async fn a_key_memory_that_ends_with_the_window_leaves_no_spent_key(world: World) {
        let settings = [("ORDERS_REPLAY_WINDOW", "1d"), ("ORDERS_KEY_MEMORY", "1d")];
        for cleaned in [false, true] {
            world.restart(&settings).await;
            let shop = world.shop();
            let (key, external) = (format!("key-{cleaned}"), format!("order-{cleaned}"));
            shop.post("/v1/orders", &key, &order(Some(&external))).await.expect(201);
            age(world.database(), DAY);
            if cleaned {
                let steps: Vec<_> = sweep(world.database(), 500).iter().map(|batch| batch.step.as_str()).collect();
                assert_eq!(steps, ["keys"]);
            }
            let anew = shop.post("/v1/orders", &key, &order(Some(&external))).await.expect(409);
            assert_eq!((anew.error().as_str(), anew.header("idempotent-replayed")), ("DuplicateOrder", Some("false")));
        }
        assert_eq!(world.count("orders"), 2);
        assert_whole(world.database());
    }
}
