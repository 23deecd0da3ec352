//! A mail that may have been sent: never sent again by itself, decided by a person, once.

use serde_json::{Value, json};

use super::{ask, order, outcomes, shop_with_mail, stands};
use crate::harness::http::{Answer, Caller};
use crate::harness::relay::{HandRelay, operation};
use crate::harness::smtp::{FakeSmtp, Moment, Step};
use crate::harness::world::{World, on_both_databases};

async fn decide(shop: &Caller, operation_id: &str, what: &str, key: &str, body: &Value) -> Answer {
    shop.post(&format!("/v1/operations/{operation_id}/{what}"), key, body).await
}

/// A message whose mail only a person can judge.
async fn unresolved(world: &World, server: &FakeSmtp, relay: &HandRelay, step: Step) -> (Caller, String, String) {
    let shop = shop_with_mail(world, server);
    server.script(&[step]);
    let order_id = order(&shop, "1").await;
    let (message_id, operation_id) = ask(&shop, "m", &order_id, "order-confirmation").await;
    relay.drain(world).await;
    assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("unresolved".into(), "unresolved".into()));
    assert_eq!(server.conversations(), 1, "nothing is sent again by itself");
    (shop, message_id, operation_id)
}

on_both_databases! {
    async fn a_lost_answer_waits_for_a_person_who_has_the_same_mail_sent_again(world: World) {
        let (server, relay) = (FakeSmtp::start(), HandRelay::new(&world, &[]));
        let (shop, message_id, operation_id) = unresolved(&world, &server, &relay, Step::AcceptThenCut).await;
        let list = shop.get("/v1/operations?status=unresolved").await.expect(200).json();
        assert_eq!(list["operations"][0]["operationId"], operation_id.as_str());
        decide(&shop, &operation_id, "retry", "r", &json!({})).await.expect(200);
        decide(&shop, &operation_id, "retry", "r", &json!({})).await.expect(200);
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("processing".into(), "processing".into()));
        relay.drain(&world).await;
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("sent".into(), "succeeded".into()));
        assert_eq!(outcomes(&operation(&shop, &operation_id).await), ["unknown", "delivered"]);
        let mails = server.mails();
        assert_eq!((mails.len(), &mails[0]), (2, &mails[1]), "the mail is the same to the last byte, its Message-ID too");
    }

    async fn no_answer_in_time_leaves_a_doubt_only_after_the_mail(world: World) {
        let (server, relay) = (FakeSmtp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with_mail(&world, &server);
        let order_id = order(&shop, "1").await;
        server.script(&[Step::Hang(Moment::Recipient), Step::AcceptThenHang]);
        let (message_id, operation_id) = ask(&shop, "m", &order_id, "order-confirmation").await;
        relay.drain(&world).await;
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("unresolved".into(), "unresolved".into()));
        assert_eq!(outcomes(&operation(&shop, &operation_id).await), ["not_delivered", "unknown"]);
        assert_eq!((server.mails().len(), server.conversations()), (1, 2));
    }

    /// Mail servers like to turn the first try away. The word that it may be sent again holds until the mail may have gone.
    async fn a_persons_word_holds_until_the_mail_may_have_been_sent(world: World) {
        let (server, relay) = (FakeSmtp::start(), HandRelay::new(&world, &[]));
        let (shop, message_id, operation_id) = unresolved(&world, &server, &relay, Step::Cut(Moment::Content)).await;
        server.script(&[Step::Say(Moment::Recipient, "451 come back"), Step::Cut(Moment::Sender), Step::AcceptThenCut]);
        decide(&shop, &operation_id, "retry", "r", &json!({})).await.expect(200);
        relay.drain(&world).await;
        assert_eq!(outcomes(&operation(&shop, &operation_id).await), ["unknown", "unavailable", "not_delivered", "unknown"]);
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("unresolved".into(), "unresolved".into()));
        assert_eq!((server.mails().len(), server.conversations()), (1, 4));
    }

    async fn what_a_person_found_ends_it(world: World) {
        let (server, relay) = (FakeSmtp::start(), HandRelay::new(&world, &[]));
        let (shop, message_id, operation_id) = unresolved(&world, &server, &relay, Step::AcceptThenCut).await;
        let named = json!({"outcome": "delivered", "erpReference": "SO-1"});
        let refused = decide(&shop, &operation_id, "resolve", "n", &named).await.expect(400);
        assert_eq!(refused.json()["details"][0]["pointer"], "/erpReference");
        let orders = world.rows("SELECT * FROM orders");
        decide(&shop, &operation_id, "resolve", "d", &json!({"outcome": "delivered"})).await.expect(200);
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("sent".into(), "succeeded".into()));
        assert_eq!(world.rows("SELECT * FROM orders"), orders, "a mail changes no order");
        relay.drain(&world).await;
        assert_eq!(server.conversations(), 1);
    }

    async fn what_is_given_up_has_failed(world: World) {
        let (server, relay) = (FakeSmtp::start(), HandRelay::new(&world, &[]));
        let (shop, message_id, operation_id) = unresolved(&world, &server, &relay, Step::Cut(Moment::Content)).await;
        let orders = world.rows("SELECT * FROM orders");
        let why = json!({"outcome": "abandoned", "reason": "the customer was called"});
        decide(&shop, &operation_id, "resolve", "a", &why).await.expect(200);
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("failed".into(), "failed".into()));
        assert_eq!(operation(&shop, &operation_id).await["error"], "Abandoned");
        assert_eq!(world.rows("SELECT * FROM orders"), orders, "a mail changes no order");
    }
}
