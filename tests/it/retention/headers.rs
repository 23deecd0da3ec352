//! `Idempotency-Expires`: how long a client may still ask, told by every answer that was executed or replayed.

use serde_json::json;

use super::{DAY, SPENT, age, clock_plus, epoch, expires, now, order, sweep};
use crate::harness::world::{World, on_both_databases};

on_both_databases! {
    async fn every_keyed_answer_tells_the_end_of_the_window_by_the_databases_clock(world: World) {
        let shop = world.shop();
        let bad = json!({"currency": "EUR", "items": []});
        for (key, body, status) in [("made", order(Some("1")), 201), ("refused", bad, 400), ("rules", order(Some("1")), 409)] {
            let first = shop.post("/v1/orders", key, &body).await.expect(status);
            let end = epoch(world.database(), "replay_until", key);
            assert_eq!(expires(&first), end, "{key}");
            // Whole seconds of two instants that lie a whole number of seconds apart.
            assert_eq!(end - epoch(world.database(), "completed_at", key), 7 * DAY, "{key}");
            assert_eq!(epoch(world.database(), "remember_until", key) - end, 393 * DAY, "{key}");
            let made = world.rows(&format!(
                "SELECT 1 AS made FROM operations WHERE idempotency_key = '{key}' AND completed_at <= {} \
                 AND completed_at > {}",
                clock_plus(world.database(), 1),
                clock_plus(world.database(), -60)
            ));
            assert_eq!(made.len(), 1, "{key} has the time of the database");

            age(world.database(), 3600);
            let replay = shop.post("/v1/orders", key, &body).await.expect(status);
            assert_eq!(replay.header("idempotent-replayed"), Some("true"));
            assert_eq!(expires(&replay), end - 3600, "{key}");
        }
    }

    async fn a_window_that_was_promised_stays_when_the_setting_changes(world: World) {
        let shop = world.shop();
        let first = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
        world.restart(&[("ORDERS_REPLAY_WINDOW", "1h")]).await;
        age(world.database(), 2 * 3600);
        assert_eq!(sweep(world.database(), 500), []);
        let shop = world.shop();
        let replay = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
        assert_eq!(expires(&replay), expires(&first) - 2 * 3600);
        let later = shop.post("/v1/orders", "key-2", &order(Some("2"))).await.expect(201);
        assert_eq!(expires(&later), epoch(world.database(), "created_at", "key-2") + 3600);
    }

    async fn while_an_operation_is_not_final_its_window_begins_anew_with_every_answer(world: World) {
        let shop = world.shop();
        shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
        world.database().execute(
            "UPDATE operations SET status = 'processing', completed_at = NULL, replay_until = NULL, remember_until = NULL",
        );
        age(world.database(), 100 * DAY);
        let before = now(world.database());
        let replay = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
        let after = now(world.database());
        assert!((before..=after).contains(&(expires(&replay) - 7 * DAY)), "{replay:?}");
    }

    async fn an_answer_that_is_neither_executed_nor_replayed_promises_nothing(world: World) {
        let shop = world.shop();
        shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(201);
        let conflict = shop.post("/v1/orders", "key-1", &order(Some("2"))).await.expect(409);
        assert_eq!(conflict.header("idempotency-expires"), None);
        age(world.database(), SPENT);
        let spent = shop.post("/v1/orders", "key-1", &order(Some("1"))).await.expect(409);
        assert_eq!(spent.header("idempotency-expires"), None);
    }
}
