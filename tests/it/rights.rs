//! Who may ask is looked at on every call, replays too; and whose key a key is.

use order_service::api_key;
use order_service::db::Db;
use serde_json::{Value, json};

use crate::harness::database::Database;
use crate::harness::http::Caller;
use crate::harness::orders::{Tally, smallest};
use crate::harness::settings::config;
use crate::harness::world::{CLIENT, TENANT, World, on_both_databases};

/// Gives every API key of the usual client these scopes, as an operator does who changes a right.
fn grant(world: &World, scopes: &str) {
    world.database().execute(&format!("UPDATE api_keys SET scopes = '{scopes}' WHERE client_id = '{CLIENT}'"));
}

/// Revokes an API key as the command line does.
fn revoke(database: &Database, caller: &Caller) {
    use sha2::{Digest, Sha256};
    let mut db = Db::open(&config(database.url(), &[]).database).expect("the database opens");
    let hash = hex::encode(Sha256::digest(caller.api_key().expect("the client has a key")));
    let keys = api_key::list(&mut db).expect("the keys can be listed");
    let key = keys.iter().find(|key| hash.starts_with(&key.key_id)).expect("the key is one of them");
    api_key::revoke(&mut db, &key.key_id).expect("a valid key can be revoked");
}

on_both_databases! {
    async fn another_tenant_gets_an_order_of_its_own(world: World) {
        let (one, two) = (world.shop(), world.caller("other", CLIENT, &["orders:write", "orders:read"]));
        let first = one.post("/v1/orders", "one", &smallest()).await.expect(201);
        let second = two.post("/v1/orders", "one", &smallest()).await.expect(201);
        assert_eq!(second.header("idempotent-replayed"), Some("false"));
        assert_ne!(second.json()["orderId"], first.json()["orderId"]);
        assert_ne!(second.json()["operationId"], first.json()["operationId"]);
        let owners = world.rows("SELECT tenant_id, order_id FROM orders ORDER BY tenant_id");
        assert_eq!(owners, [
            json!({"tenant_id": TENANT, "order_id": first.json()["orderId"]}),
            json!({"tenant_id": "other", "order_id": second.json()["orderId"]}),
        ]);
        assert_eq!(Tally::of(world.database()), Tally::orders(2));
    }

    async fn another_client_of_the_tenant_gets_an_order_of_its_own(world: World) {
        let (shop, connector) = (world.shop(), world.caller(TENANT, "connector", &["orders:write"]));
        let first = shop.post("/v1/orders", "one", &smallest()).await.expect(201);
        let second = connector.post("/v1/orders", "one", &smallest()).await.expect(201);
        assert_ne!(second.json()["orderId"], first.json()["orderId"]);
        assert_eq!(Tally::of(world.database()), Tally::orders(2));
    }

    async fn an_api_key_that_is_changed_in_the_middle_of_a_retry_changes_nothing(world: World) {
        let (old, new) = (world.shop(), world.shop());
        assert_ne!(old.api_key(), new.api_key());
        let first = old.post("/v1/orders", "one", &smallest()).await.expect(201);
        revoke(world.database(), &old);
        let refused = old.post("/v1/orders", "one", &smallest()).await.expect(401);
        assert_eq!(refused.error(), "Unauthenticated");
        let replay = new.post("/v1/orders", "one", &smallest()).await.expect(201);
        assert_eq!((replay.header("idempotent-replayed"), &replay.body), (Some("true"), &first.body));
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }

    async fn a_replay_needs_the_right_that_the_first_call_had(world: World) {
        let shop = world.shop();
        let first = shop.post("/v1/orders", "one", &smallest()).await.expect(201);
        grant(&world, "orders:read");
        let refused = shop.post("/v1/orders", "one", &smallest()).await.expect(403);
        assert_eq!(refused.error(), "Forbidden");
        assert!(!refused.text().contains("ord_") && !refused.text().contains("op_"), "{}", refused.text());
        grant(&world, "orders:read,orders:write");
        let replay = shop.post("/v1/orders", "one", &smallest()).await.expect(201);
        assert_eq!((replay.header("idempotent-replayed"), &replay.body), (Some("true"), &first.body));
        assert_eq!(Tally::of(world.database()), Tally::orders(1));
    }

    async fn an_answer_before_the_claim_leaves_the_key_free(world: World) {
        let shop = world.shop();
        let nobody = shop.with_api_key(Some("osk_0000".to_owned()));
        let stranger = nobody.post("/v1/orders", "one", &smallest()).await.expect(401);
        assert_eq!(stranger.header("www-authenticate"), Some("Bearer realm=\"orders\""));
        grant(&world, "orders:read");
        shop.post("/v1/orders", "one", &smallest()).await.expect(403);
        assert_eq!(Tally::of(world.database()), Tally::default());
        grant(&world, "orders:write");
        let first = shop.post("/v1/orders", "one", &smallest()).await.expect(201);
        assert_eq!(first.header("idempotent-replayed"), Some("false"));
    }

    async fn only_the_hash_of_an_api_key_is_stored(world: World) {
        let shop = world.shop();
        shop.post("/v1/orders", "one", &smallest()).await.expect(201);
        let secret = shop.api_key().expect("the client has a key");
        assert!(secret.len() >= 64 + "osk_".len(), "256 bits in hexadecimal");
        let rows: Vec<Value> = world.rows("SELECT * FROM api_keys");
        assert_eq!(rows.len(), 1);
        let everything = format!("{:?}", world.database().everything());
        assert!(!everything.contains(secret) && !everything.contains(secret.trim_start_matches("osk_")));
    }

    async fn what_is_not_a_bearer_key_is_nobody(world: World) {
        let shop = world.shop();
        let secret = shop.api_key().expect("the client has a key").to_owned();
        let stranger = world.stranger();
        for value in ["", "Bearer", "Bearer ", &secret, &format!("Basic {secret}"), &format!("Bearer {secret}x")] {
            let request = stranger.request(reqwest::Method::GET, "/v1/orders").header("Authorization", value);
            let refused = crate::harness::http::send(request).await.expect(401);
            assert_eq!(refused.error(), "Unauthenticated", "{value}");
        }
        let twice = shop.request(reqwest::Method::GET, "/v1/orders").header("Authorization", format!("Bearer {secret}"));
        crate::harness::http::send(twice).await.expect(401);
        let lower = stranger.request(reqwest::Method::GET, "/v1/orders").header("Authorization", format!("bearer  {secret}"));
        crate::harness::http::send(lower).await.expect(200);
    }
}
