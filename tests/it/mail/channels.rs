//! Mail and ERP do not wait for each other, and what is decided about the one never touches the other.

use serde_json::{Value, json};

use super::{ask, mail_shop, order, pay, shop_with_mail, stands};
use crate::harness::erp::{FakeErp, Step as ErpStep};
use crate::harness::http::Caller;
use crate::harness::relay::{HandRelay, connect};
use crate::harness::smtp::{FakeSmtp, Moment, Step};
use crate::harness::world::{TENANT, World, on_both_databases};

async fn order_status(shop: &Caller, order_id: &str) -> Value {
    shop.get(&format!("/v1/orders/{order_id}")).await.expect(200).json()["status"].clone()
}

/// A tenant with both channels.
fn both(world: &World, erp: &FakeErp, server: &FakeSmtp) -> Caller {
    let shop = shop_with_mail(world, server);
    connect(world, TENANT, erp, "hold");
    shop
}

on_both_databases! {
    async fn a_mail_goes_while_the_erp_rests(world: World) {
        let (erp, server, relay) = (FakeErp::start(), FakeSmtp::start(), HandRelay::new(&world, &[("ORDERS_RETRY_CAP", "1h")]));
        let shop = both(&world, &erp, &server);
        erp.script(&[ErpStep::Status(401)]);
        let order_id = order(&shop, "1").await;
        assert_eq!(relay.step().await, 1);
        let (message_id, operation_id) = ask(&shop, "m", &order_id, "order-confirmation").await;
        assert_eq!((relay.step().await, relay.step().await), (1, 0));
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("sent".into(), "succeeded".into()));
        assert_eq!((server.mails().len(), erp.requests("POST").len()), (1, 1));
        assert_eq!(order_status(&shop, &order_id).await, "accepted");
    }

    async fn an_order_goes_while_the_mail_server_rests(world: World) {
        let (erp, server, relay) = (FakeErp::start(), FakeSmtp::start(), HandRelay::new(&world, &[("ORDERS_RETRY_CAP", "1h")]));
        let shop = both(&world, &erp, &server);
        server.script(&[Step::Say(Moment::Login, "535 wrong password")]);
        let first = order(&shop, "1").await;
        ask(&shop, "m", &first, "order-confirmation").await;
        assert_eq!(relay.step().await, 2);
        let second = order(&shop, "2").await;
        assert_eq!((relay.step().await, relay.step().await), (1, 0));
        assert_eq!((order_status(&shop, &first).await, order_status(&shop, &second).await), (json!("confirmed"), json!("confirmed")));
        assert_eq!((server.mails().len(), erp.orders().len()), (0, 2));
    }

    /// An order that waits for a person holds up what the ERP is to be told of it, and not what the customer is.
    async fn a_mail_does_not_wait_behind_its_order_nor_the_order_behind_its_mail(world: World) {
        let (erp, server, relay) = (FakeErp::start(), FakeSmtp::start(), HandRelay::new(&world, &[]));
        let shop = both(&world, &erp, &server);
        erp.script(&[ErpStep::Cut]);
        server.script(&[Step::Accept, Step::Cut(Moment::Content)]);
        let order_id = order(&shop, "1").await;
        relay.drain(&world).await;
        assert_eq!(order_status(&shop, &order_id).await, "accepted");
        let first = ask(&shop, "m1", &order_id, "order-confirmation").await;
        relay.drain(&world).await;
        assert_eq!(stands(&shop, (&first.0, &first.1)).await, ("sent".into(), "succeeded".into()));
        let second = ask(&shop, "m2", &order_id, "order-confirmation").await;
        relay.drain(&world).await;
        assert_eq!(stands(&shop, (&second.0, &second.1)).await, ("unresolved".into(), "unresolved".into()));
        let answer = shop.post(&format!("/v1/orders/{order_id}/cancel"), "c", &json!({})).await.expect(200).json();
        let retry = world.rows("SELECT operation_id FROM outbox WHERE kind = 'order.created'")[0]["operation_id"].clone();
        shop.post(&format!("/v1/operations/{}/retry", retry.as_str().expect("an id")), "r", &json!({})).await.expect(200);
        relay.drain(&world).await;
        assert_eq!((&answer["status"], order_status(&shop, &order_id).await), (&json!("cancelling"), json!("cancelled")));
        assert_eq!(stands(&shop, (&second.0, &second.1)).await, ("unresolved".into(), "unresolved".into()));
    }

    async fn a_withdrawn_order_does_not_take_its_mail_along(world: World) {
        let (server, relay) = (FakeSmtp::start(), HandRelay::new(&world, &[]));
        let shop = mail_shop(&world);
        let order_id = order(&shop, "1").await;
        let (message_id, operation_id) = ask(&shop, "m", &order_id, "order-cancelled").await;
        let answer = shop.post(&format!("/v1/orders/{order_id}/cancel"), "c", &json!({})).await.expect(200).json();
        assert_eq!(answer["status"], "cancelled");
        let states = world.rows("SELECT channel, state FROM outbox ORDER BY channel");
        assert_eq!(states, [json!({"channel": "erp", "state": "withdrawn"}), json!({"channel": "mail", "state": "waiting"})]);
        crate::harness::smtp::connect_mail(&world, TENANT, &server);
        relay.drain(&world).await;
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("sent".into(), "succeeded".into()));
    }

    /// What was to be told of a refused order is held back until the order is replaced. A mail is not.
    async fn a_refused_order_does_not_hold_its_mail_back(world: World) {
        let (erp, server, relay) = (FakeErp::start(), FakeSmtp::start(), HandRelay::new(&world, &[]));
        let shop = mail_shop(&world);
        connect(&world, TENANT, &erp, "hold");
        erp.script(&[ErpStep::Status(422)]);
        let order_id = order(&shop, "1").await;
        let (message_id, operation_id) = ask(&shop, "m", &order_id, "order-confirmation").await;
        relay.drain(&world).await;
        assert_eq!(order_status(&shop, &order_id).await, "rejected");
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("processing".into(), "processing".into()));
        crate::harness::smtp::connect_mail(&world, TENANT, &server);
        relay.drain(&world).await;
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("sent".into(), "succeeded".into()));
        assert_eq!((order_status(&shop, &order_id).await, erp.requests("POST").len()), (json!("rejected"), 1));
    }

    async fn mails_of_one_order_go_in_the_order_in_which_they_were_asked_for(world: World) {
        let (server, relay) = (FakeSmtp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with_mail(&world, &server);
        let order_id = order(&shop, "1").await;
        pay(&shop, "p", &order_id).await;
        for template in ["order-confirmation", "payment-received", "order-cancelled"] {
            ask(&shop, template, &order_id, template).await;
        }
        server.script(&[Step::Say(Moment::Recipient, "450 greylisted")]);
        relay.drain(&world).await;
        let subjects: Vec<String> = server.mails().iter().map(|mail| mail.header("Subject")).collect();
        assert_eq!(subjects, ["Ihre Bestellung №1 😀", "Ihre Zahlung für die Bestellung №1 😀 ist eingegangen", "Ihre Bestellung №1 😀 ist storniert"]);
    }
}
