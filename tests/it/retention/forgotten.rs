//! Past the key memory a key is new again, and only the identity of the shop's order guards.

use serde_json::Value;

use super::{FORGOTTEN, SPENT, age, age_where, assert_replayed, assert_whole, order, shown, sweep};
use crate::harness::world::{World, on_both_databases};

on_both_databases! {
    async fn a_key_spent_and_then_forgotten_makes_no_second_order(world: World) {
        let shop = world.shop();
        let first = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201).json();
        age(world.database(), SPENT);
        sweep(world.database(), 500);
        let spent = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(409);
        assert_eq!(spent.error(), "IdempotencyKeyExpired");
        assert_eq!(spent.json()["links"]["self"], first["links"]["self"]);

        age(world.database(), FORGOTTEN);
        sweep(world.database(), 500);
        assert_eq!((world.count("claims"), world.count("operations"), world.count("outbox")), (0, 0, 0));
        let duplicate = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(409);
        assert_eq!(duplicate.error(), "DuplicateOrder");
        assert_eq!(duplicate.json()["orderId"], first["orderId"]);
        assert_eq!(duplicate.json()["links"]["order"], first["links"]["self"]);
        assert_eq!((world.count("orders"), world.count("outbox")), (1, 0));

        // The key stands for this refusal now, as for any other first answer.
        let replay = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(409);
        assert_replayed(&replay, &duplicate);
        assert_whole(world.database());
    }

    async fn a_forgotten_key_is_answered_alike_cleaned_or_not(world: World) {
        let shop = world.shop();
        let mut answers = Vec::new();
        for cleaned in [false, true] {
            world.database().execute("DELETE FROM claims; DELETE FROM operations; DELETE FROM outbox; \
                DELETE FROM order_lines; DELETE FROM orders");
            shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
            age(world.database(), FORGOTTEN);
            if cleaned {
                assert_eq!(sweep(world.database(), 500).len(), 1);
            }
            let operation = shop.get("/v1/operations?command=orders.create&idempotencyKey=key-1").await.expect(200);
            assert_eq!(operation.json()["operations"], Value::Array(vec![]));
            let (status, mut headers, mut body) = shown(&shop.post("/v1/orders", "key-1", &order(Some("2"))).await);
            headers.retain(|(name, _)| !["location", "idempotency-expires"].contains(&name.as_str()));
            let made = body["orderId"].take();
            assert_eq!(body["links"]["self"].take(), Value::from(format!("/v1/orders/{}", made.as_str().expect("an id"))));
            answers.push((status, headers, body));
            assert_eq!((world.count("orders"), world.count("claims"), world.count("operations")), (2, 1, 1));
        }
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[0].0, 201);
    }

    async fn the_operation_of_a_forgotten_key_cannot_be_read_cleaned_or_not(world: World) {
        let shop = world.shop();
        let first = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201).json();
        let operation = first["links"]["operation"].as_str().expect("a link");
        shop.get(operation).await.expect(200);
        age(world.database(), FORGOTTEN);
        let before = shown(&shop.get(operation).await.expect(404));
        sweep(world.database(), 500);
        assert_eq!(shown(&shop.get(operation).await.expect(404)), before);
        shop.get(first["links"]["self"].as_str().expect("a link")).await.expect(200);
    }

    async fn an_order_without_an_id_of_the_shop_is_guarded_as_long_as_its_key_is_remembered(world: World) {
        let shop = world.shop();
        let mut order_ids = Vec::new();
        // The operation id of a key is always the same: what the first life left behind must not stand in the way.
        for cleaned in [false, true, false] {
            let made = shop.post("/v1/orders", "key-1", &order(None)).await.expect(201);
            assert_eq!(made.header("idempotent-replayed"), Some("false"));
            order_ids.push(made.json()["orderId"].clone());
            age(world.database(), SPENT);
            shop.post("/v1/orders", "key-1", &order(None)).await.expect(409);
            age(world.database(), FORGOTTEN);
            if cleaned {
                sweep(world.database(), 500);
            }
        }
        order_ids.dedup();
        assert_eq!(order_ids.len(), 3);
        assert_eq!((world.count("orders"), world.count("claims"), world.count("outbox")), (3, 1, 1));
        assert_whole(world.database());
    }

    async fn a_key_is_forgotten_in_its_own_scope_alone(world: World) {
        let (shop, other) = (world.shop(), world.caller("other", "shop", &["orders:write"]));
        let connector = world.caller("acme", "connector", &["orders:write"]);
        for caller in [&shop, &other, &connector] {
            caller.post("/v1/orders", "key-1", &order(None)).await.expect(201);
        }
        age_where(world.database(), FORGOTTEN, "tenant_id = 'acme' AND client_id = 'shop'");
        let batches = sweep(world.database(), 500);
        assert_eq!(batches.iter().map(|batch| (batch.tenant_id.as_str(), batch.rows)).collect::<Vec<_>>(), [("acme", 1)]);
        for caller in [&other, &connector] {
            let replay = caller.post("/v1/orders", "key-1", &order(None)).await.expect(201);
            assert_eq!(replay.header("idempotent-replayed"), Some("true"));
        }
        assert_eq!((world.count("claims"), world.count("outbox")), (2, 2));
    }
}
