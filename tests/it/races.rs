//! Rivals that meet in one process: whoever comes first, there is one order, and everybody learns its number.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::harness::http::{Answer, Caller};
use crate::harness::orders::{Tally, smallest, with};
use crate::harness::world::{World, on_both_databases};

/// Sends the same order so many times at once.
async fn send_at_once(caller: &Caller, key: &str, order: &Value, times: usize) -> Vec<Answer> {
    join_all((0..times).map(|_| caller.post("/v1/orders", key, order))).await
}

/// How many of the answers say that they are the first.
fn firsts(answers: &[Answer]) -> usize {
    answers.iter().filter(|answer| answer.header("idempotent-replayed") == Some("false")).count()
}

on_both_databases! {
    async fn fifty_rivals_of_one_key_make_one_order(world: World) {
        let answers = send_at_once(&world.shop(), "one", &smallest(), 50).await;
        let bodies: BTreeSet<String> = answers.iter().map(Answer::text).collect();
        assert_eq!(bodies.len(), 1, "{bodies:?}");
        assert!(answers.iter().all(|answer| answer.status == 201), "{answers:?}");
        assert_eq!(firsts(&answers), 1);
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }

    async fn a_pool_of_one_connection_serves_fifty_replays_of_one_key(world: World) {
        world.restart(&[("ORDERS_POOL_SIZE", "1")]).await;
        let shop = world.shop();
        let first = shop.post("/v1/orders", "one", &smallest()).await.expect(201);
        let answers = send_at_once(&shop, "one", &smallest(), 50).await;
        for answer in &answers {
            assert_eq!((answer.status.as_u16(), &answer.body), (201, &first.body), "{}", answer.text());
        }
        assert_eq!(firsts(&answers), 0);
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }

    async fn of_two_bodies_under_one_key_the_first_to_commit_stands(world: World) {
        let shop = world.shop();
        for round in 0..10 {
            let key = format!("key-{round}");
            let (two, three) = (smallest(), with(&json!({"items": [{"sku": "ABC", "qty": 3}]})));
            let answers = join_all([&two, &three, &two, &three].map(|order| shop.post("/v1/orders", &key, order))).await;
            let statuses: Vec<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
            assert!(statuses == [201, 409, 201, 409] || statuses == [409, 201, 409, 201], "{statuses:?}");
            for answer in answers.iter().filter(|answer| answer.status == 409) {
                assert_eq!(answer.error(), "IdempotencyKeyConflict");
                assert_eq!(answer.json()["details"][0]["pointer"], "/items");
            }
        }
        assert_eq!(Tally::of(world.database()), Tally::orders(10));
    }

    async fn two_keys_for_one_shop_order_make_one_order(world: World) {
        let shop = world.shop();
        for round in 0..10 {
            let order = with(&json!({"channel": "web", "externalOrderId": format!("N{round}")}));
            let (webhook, storefront) = (format!("webhook-{round}"), format!("storefront-{round}"));
            let answers = join_all([&webhook, &storefront].map(|key| shop.post("/v1/orders", key, &order))).await;
            let (made, refused) = match (answers[0].status.as_u16(), answers[1].status.as_u16()) {
                (201, 409) => (&answers[0], &answers[1]),
                (409, 201) => (&answers[1], &answers[0]),
                other => panic!("{other:?}: {} {}", answers[0].text(), answers[1].text()),
            };
            let order_id = &made.json()["orderId"];
            assert_eq!(refused.error(), "DuplicateOrder");
            assert_eq!(&refused.json()["orderId"], order_id);
            let link = refused.json()["links"]["order"].as_str().expect("there is a link to the order").to_owned();
            assert_eq!(&shop.get(&link).await.expect(200).json()["orderId"], order_id);
        }
        assert_eq!(Tally::of(world.database()), Tally::orders(10) + Tally::answers(10));
    }

    async fn equal_orders_under_two_keys_are_two_intents(world: World) {
        let shop = world.shop();
        let keys: Vec<String> = (0..20).map(|number| format!("key-{number}")).collect();
        let order = smallest();
        let answers = join_all(keys.iter().map(|key| shop.post("/v1/orders", key, &order))).await;
        let ids: BTreeSet<String> = answers.iter().map(|answer| answer.json()["orderId"].to_string()).collect();
        assert_eq!(ids.len(), 20);
        assert_eq!(Tally::of(world.database()), Tally::orders(20));
    }
}
